/* `Node`: a rank's end of the memory that the ranks of a node share. */
#include "binding.h"

#include <stdlib.h>
#include <unistd.h>

PyTypeObject *node_type;

static PyObject *node_new_object(PyTypeObject *type, PyObject *args, PyObject *named) {
    static char *names[] = {"memory", "ranks", "rank", "sets", NULL};
    PyObject *memory;
    int ranks, rank, sets;
    if (!PyArg_ParseTupleAndKeywords(args, named, "Oiii", names, &memory, &ranks, &rank, &sets)) {
        return NULL;
    }
    allocfunc allocate = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    Node *self = (Node *)allocate(type, 0);
    if (!self || PyObject_GetBuffer(memory, &self->memory, PyBUF_WRITABLE) < 0) {
        Py_XDECREF((PyObject *)self);
        return NULL;
    }
    if (sets < 1 || sets > MOST_SETS || rank < 0 || rank >= ranks || self->memory.len < node_nbytes(ranks, sets) ||
        (uintptr_t)self->memory.buf % 64) {
        PyErr_Format(PyExc_ValueError, "%d sets for rank %d of %d in %zd bytes", sets, rank, ranks,
                     self->memory.len);
        Py_DECREF(self);
        return NULL;
    }
    self->ranks = ranks;
    self->process = (int)getpid();
    self->ends = calloc((size_t)sets, sizeof *self->ends);
    for (int set = 0; self->ends && set < sets; set++) {
        self->ends[self->sets++] = node_open(self->memory.buf, ranks, rank, set);
        if (!self->ends[set]) {
            break;
        }
    }
    if (!self->ends || !self->ends[self->sets - 1]) {
        Py_DECREF(self);
        return PyErr_NoMemory();
    }
    return (PyObject *)self;
}

static void node_dealloc(Node *self) {
    PyTypeObject *type = Py_TYPE((PyObject *)self);
    while (self->sets) {
        node_close(self->ends[--self->sets]);
    }
    free(self->ends);
    if (self->memory.obj) {
        PyBuffer_Release(&self->memory);
    }
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    release(self);
    Py_DECREF(type);
}

static PyObject *node_choose_set(Node *self, PyObject *object) {
    long long number = PyLong_AsLongLong(object);
    if (number == -1 && PyErr_Occurred()) {
        return NULL;
    }
    return PyLong_FromLong(node_choose(self->memory.buf, self->ranks, self->sets, number));
}

static PyObject *node_give_back_set(Node *self, PyObject *object) {
    long set = PyLong_AsLong(object);
    if (set < 1 || set >= self->sets) {
        return PyErr_Occurred() ? NULL : PyErr_Format(PyExc_ValueError, "no set %ld", set);
    }
    if (self->process == (int)getpid()) {
        node_give_back(self->memory.buf, (int)set);
    }
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
    {"choose", (PyCFunction)node_choose_set, METH_O, "The set for the so many-th request, or 0."},
    {"give_back", (PyCFunction)node_give_back_set, METH_O, "This rank needs it no more."},
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
