/* `Node`: a rank's end of the memory that the ranks of a node share. */
#include "binding.h"

PyTypeObject *node_type;

static PyObject *node_new_object(PyTypeObject *type, PyObject *args, PyObject *named) {
    static char *names[] = {"memory", "ranks", "rank", NULL};
    PyObject *memory;
    int ranks, rank;
    if (!PyArg_ParseTupleAndKeywords(args, named, "Oii", names, &memory, &ranks, &rank)) {
        return NULL;
    }
    allocfunc allocate = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    Node *self = (Node *)allocate(type, 0);
    if (!self || PyObject_GetBuffer(memory, &self->memory, PyBUF_WRITABLE) < 0) {
        Py_XDECREF((PyObject *)self);
        return NULL;
    }
    if (rank < 0 || rank >= ranks || self->memory.len < node_nbytes(ranks) ||
        (uintptr_t)self->memory.buf % 64) {
        PyErr_Format(PyExc_ValueError, "rank %d of %d in %zd bytes at %p", rank, ranks,
                     self->memory.len, self->memory.buf);
        Py_DECREF(self);
        return NULL;
    }
    self->ranks = ranks;
    self->end = node_open(self->memory.buf, ranks, rank);
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

static PyObject *node_lend_among_object(Node *self, PyObject *numbers) {
    Py_buffer processes;
    if (PyObject_GetBuffer(numbers, &processes, PyBUF_SIMPLE) < 0) {
        return NULL;
    }
    int fit = processes.len == self->ranks * (Py_ssize_t)sizeof(pid_t);
    if (fit) {
        node_lend_among(self->end, processes.buf);
    } else {
        PyErr_SetString(PyExc_ValueError, "a process for each rank");
    }
    PyBuffer_Release(&processes);
    return fit ? Py_NewRef(Py_None) : NULL;
}

static PyMethodDef methods[] = {
    {"lend_among", (PyCFunction)node_lend_among_object, METH_O,
     "From now on ranks, with these process ids, may read and write each other's memory."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_methods, methods},
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
