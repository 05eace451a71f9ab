/* `Node`: a rank's end of the memory that the ranks of a node share; and what is asked before there is one. */
#include "calls.h"

#include <stdatomic.h>
#include <unistd.h>

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

static uint64_t mark;

PyObject *node_mark(PyObject *module, PyObject *unused) {
    (void)module, (void)unused;
    mark = (uint64_t)tally_now() << 20 ^ (uint64_t)getpid();
    return Py_BuildValue("iKK", (int)getpid(), (unsigned long long)(uintptr_t)&mark,
                         (unsigned long long)mark);
}

PyObject *node_reads_mark(PyObject *module, PyObject *args) {
    int process;
    unsigned long long address, word;
    (void)module;
    return PyArg_ParseTuple(args, "(iKK)", &process, &address, &word)
               ? PyBool_FromLong(node_reads(process, address, word)) : NULL;
}

/* A cache line goes from one of two ranks to the other and back, in rounds with these numbers; False if
   the other rank does not answer. */
PyObject *node_bounce(PyObject *module, PyObject *args) {
    Py_buffer memory;
    unsigned round, end;
    int first, spins = 1 << 26;
    (void)module;
    if (!PyArg_ParseTuple(args, "w*pII", &memory, &first, &round, &end)) {
        return NULL;
    }
    _Atomic unsigned *lines = memory.buf, *mine = lines + 16 * !first, *theirs = lines + 16 * first;
    if (memory.len < 128) {
        spins = 0;
    } else if (first) {
        atomic_store(mine, round);
    }
    for (; round < end && spins; round++) {
        while (atomic_load(theirs) != round && --spins) {
        }
        atomic_store(mine, round + (unsigned)first);
    }
    PyBuffer_Release(&memory);
    return PyBool_FromLong(spins > 0);
}
