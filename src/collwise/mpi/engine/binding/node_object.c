/* `Node`: a rank's end of the memory that the ranks of a node share. */
#include "binding.h"

PyTypeObject *node_type;

static PyObject *node_new_object(PyTypeObject *type, PyObject *args, PyObject *named) {
    static char *names[] = {"memory", "ranks", "rank", "processes", NULL};
    PyObject *memory;
    Py_buffer processes = {0};
    int ranks, rank;
    if (!PyArg_ParseTupleAndKeywords(args, named, "Oii|y*", names, &memory, &ranks, &rank,
                                     &processes)) {
        return NULL;
    }
    int lends = processes.len == ranks * (Py_ssize_t)sizeof(pid_t);
    allocfunc allocate = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    Node *self = (Node *)allocate(type, 0);
    if (!self || PyObject_GetBuffer(memory, &self->memory, PyBUF_WRITABLE) < 0) {
        Py_XDECREF((PyObject *)self);
        PyBuffer_Release(&processes);
        return NULL;
    }
    if (rank < 0 || rank >= ranks || self->memory.len < node_nbytes(ranks) ||
        (uintptr_t)self->memory.buf % 64) {
        PyErr_Format(PyExc_ValueError, "rank %d of %d in %zd bytes at %p", rank, ranks,
                     self->memory.len, self->memory.buf);
        PyBuffer_Release(&processes);
        Py_DECREF(self);
        return NULL;
    }
    self->end = node_open(self->memory.buf, ranks, rank, lends ? processes.buf : NULL);
    PyBuffer_Release(&processes);
    if (!self->end) {
        Py_DECREF(self);
        return PyErr_NoMemory();
    }
    return (PyObject *)self;
}

static void node_dealloc(Node *self) {
    PyTypeObject *type = Py_TYPE((PyObject *)self);
    node_close(self->end);
    if (self->memory.obj) {
        PyBuffer_Release(&self->memory);
    }
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    release(self);
    Py_DECREF(type);
}

static PyType_Slot slots[] = {
    {Py_tp_doc, "A rank's end of the memory that the ranks of a node share."},
    {Py_tp_new, node_new_object},
    {Py_tp_dealloc, node_dealloc},
    {0, NULL},
};

PyType_Spec node_spec = {
    .name = "collwise.mpi.engine._engine.Node",
    .basicsize = sizeof(Node),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = slots,
};
