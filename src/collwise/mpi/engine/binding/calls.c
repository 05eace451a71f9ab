/* `Calls`: the calls of one form on one communicator, as methods that take what mpi4py's take.

   A call whose buffers are plain is looked up by a key that determines all that MPI guarantees to be
   equal on all ranks.  A program, or the library's own collective, then runs on the buffers where
   they are.  Everything else is for `slow`.  The functions that read and serve a call return

       NULL         if an exception was raised,
       None         if mpi4py has to read the buffers,
       bytes        if nobody taught what serves it (see `remember`): its key,
       True         if a blocking call was served,
       its request  if another call was served. */
#include "calls.h"

#include <stdlib.h>
#include <string.h>

/* --- reading the arguments ------------------------------------------------------------------ */

/* root: NULL where none was given. */
static int read_root(PyObject *root, struct call *call) {
    if (!root) {
        return 1;
    }
    if (!PyLong_CheckExact(root)) {
        return 0;
    }
    long number = PyLong_AsLong(root);
    if (number == -1 && PyErr_Occurred()) {
        PyErr_Clear();
        return 0;
    }
    call->root = (int)number;
    return number >= 0 && number < call->ranks;
}

static int read_sent(PyObject *object, int parts, struct call *call) {
    call->in_place = object == mpi_in_place || object == Py_None;
    return call->in_place || read_buffer(object, 0, parts, &call->sent);
}

static PyObject *broadcasting(Calls *self, PyObject *const *args, struct call *call) {
    if (!read_root(args[1], call) ||
        !read_buffer(args[0], call->rank != call->root, 1, &call->sent)) {
        Py_RETURN_NONE;
    }
    return call_serve(self, call);
}

/* Counts of a Reduce_scatter_block are those of one rank. */
static PyObject *combining(Calls *self, PyObject *const *args, struct call *call) {
    int parts = call->method == REDUCE_SCATTER_BLOCK ? call->ranks : 1;
    if ((call->method == REDUCE && !read_root(args[3], call)) ||
        !read_operator(args[2], &call->op) || !read_sent(args[0], parts, call)) {
        Py_RETURN_NONE;
    }
    int receives = call->method != REDUCE || call->rank == call->root;
    if ((call->in_place && !receives) ||
        (receives && !read_buffer(args[1], 1, call->in_place ? parts : 1, &call->received))) {
        call_release(call);
        Py_RETURN_NONE;
    }
    call->receives = receives;
    if (receives && !call->in_place &&
        (call->sent.type != call->received.type || call->sent.count != call->received.count)) {
        call_release(call);
        Py_RETURN_NONE;
    }
    return call_serve(self, call);
}

static PyObject *gathering(Calls *self, PyObject *const *args, struct call *call) {
    if (!read_sent(args[0], 1, call)) {
        Py_RETURN_NONE;
    }
    int vectors = call->method == ALLGATHERV;
    if (vectors && call->ranks > FEW_RANKS &&
        !(call->vectors = malloc(2 * sizeof(int) * (size_t)call->ranks))) {
        call_release(call);
        return PyErr_NoMemory();
    }
    call->receives = vectors ? read_vector(args[1], call->ranks, call->vectors,
                                           call->vectors + call->ranks, &call->received)
                             : read_buffer(args[1], 1, call->ranks, &call->received);
    int64_t part = vectors ? call->vectors[call->rank] : call->received.count;
    if (!call->receives || (!call->in_place && call->sent.count * call->sent.size !=
                                                   part * call->received.size)) {
        call_release(call);
        Py_RETURN_NONE;
    }
    return call_serve(self, call);
}

/* --- the methods -------------------------------------------------------------------------------- */

static const char *const every[METHODS] = {
    "Bcast", "Reduce", "Allreduce", "Reduce_scatter_block", "Allgather", "Allgatherv"};

/* slow(method, key or None, arguments) */
static PyObject *by_python(Calls *self, enum method method, PyObject *key, PyObject *const *args,
                           Py_ssize_t number, PyObject *names) {
    Py_ssize_t named = names ? PyTuple_Size(names) : 0;
    PyObject *all = PyTuple_New(number + 2), *words = named ? PyDict_New() : NULL, *result = NULL;
    PyObject *name = PyUnicode_FromString(every[method]);
    if (all && name && (words || !named)) {
        PyTuple_SetItem(all, 0, Py_NewRef(name));
        PyTuple_SetItem(all, 1, Py_NewRef(key));
        for (Py_ssize_t n = 0; n < number; n++) {
            PyTuple_SetItem(all, n + 2, Py_NewRef(args[n]));
        }
        int wrong = 0;
        for (Py_ssize_t n = 0; n < named; n++) {
            wrong |= PyDict_SetItem(words, PyTuple_GetItem(names, n), args[number + n]) < 0;
        }
        result = wrong ? NULL : PyObject_Call(self->slow, all, words);
    }
    Py_XDECREF(name);
    Py_XDECREF(words);
    Py_XDECREF(all);
    return result;
}

typedef PyObject *serving(Calls *self, PyObject *const *args, struct call *call);

/* fewest, most: arguments of the method; those that are left out are MPI.SUM and root 0. */
static PyObject *served(Calls *self, enum method method, serving *serve, Py_ssize_t fewest,
                        Py_ssize_t most, PyObject *const *args, Py_ssize_t number,
                        PyObject *names) {
    PyObject *answer = Py_NewRef(Py_None);
    if (progress_running()) {
        Py_BEGIN_ALLOW_THREADS
        progress_advance();
        Py_END_ALLOW_THREADS
    }
    if (!names && number >= fewest && number <= most && handle_of(self->comm) == self->handle) {
        PyObject *all[] = {NULL, NULL, self->sum, NULL};
        struct call call = {.method = method, .form = self->form, .comm = self->handle,
                            .rank = self->rank, .ranks = self->ranks};
        call.vectors = call.some_vectors;
        memcpy(all, args, (size_t)number * sizeof *args);
        Py_DECREF(answer);
        answer = serve(self, all, &call);
    }
    if (answer == Py_None || (answer && PyBytes_Check(answer))) {
        PyObject *key = answer;
        answer = by_python(self, method, key, args, number, names);
        Py_DECREF(key);
    } else if (answer == Py_True) {
        Py_DECREF(answer);
        answer = Py_NewRef(Py_None);
    }
    return answer;
}

#define METHOD(name, NAME, serve, fewest, most)                                                    \
    static PyObject *calls_##name(Calls *self, PyObject *const *args, Py_ssize_t number,          \
                                  PyObject *names) {                                               \
        return served(self, NAME, serve, fewest, most, args, number, names);                      \
    }
METHOD(bcast, BCAST, broadcasting, 1, 2)
METHOD(reduce, REDUCE, combining, 2, 4)
METHOD(allreduce, ALLREDUCE, combining, 2, 3)
METHOD(reduce_scatter_block, REDUCE_SCATTER_BLOCK, combining, 2, 3)
METHOD(allgather, ALLGATHER, gathering, 2, 2)
METHOD(allgatherv, ALLGATHERV, gathering, 2, 2)

/* --- the type ------------------------------------------------------------------------------- */

static PyObject *calls_new(PyTypeObject *type, PyObject *args, PyObject *named) {
    PyObject *methods, *failed, *comm, *sum, *slow;
    int rank, ranks, form;
    static char *names[] = {"form", "methods", "comm", "rank", "ranks", "default_op", "slow", "failed", NULL};
    if (!PyArg_ParseTupleAndKeywords(args, named, "iOOiiOOO", names, &form, &methods, &comm, &rank,
                                     &ranks, &sum, &slow, &failed)) {
        return NULL;
    }
    if (form < BLOCKING || form > PERSISTENT || rank < 0 || rank >= ranks) {
        return PyErr_Format(PyExc_ValueError, "form %d, rank %d of %d", form, rank, ranks);
    }
    unsigned planned = 0;
    for (int method = 0; method < METHODS; method++) {
        PyObject *name = PyUnicode_FromString(every[method]);
        int contained = name ? PySequence_Contains(methods, name) : -1;
        Py_XDECREF(name);
        if (contained < 0) {
            return NULL;
        }
        planned |= (unsigned)contained << method;
    }
    allocfunc allocate = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    Calls *self = (Calls *)allocate(type, 0);
    if (self) {
        self->planned = planned;
        self->form = (enum form)form;
        self->rank = rank;
        self->ranks = ranks;
        self->comm = Py_NewRef(comm);
        self->handle = handle_of(comm);
        self->sum = Py_NewRef(sum);
        self->slow = Py_NewRef(slow);
        self->failed = Py_NewRef(failed);
    }
    return (PyObject *)self;
}

static int calls_traverse(Calls *self, visitproc visit, void *arg) {
    Py_VISIT(Py_TYPE((PyObject *)self));
    Py_VISIT(self->failed);
    Py_VISIT(self->comm);
    Py_VISIT(self->slow);
    for (unsigned n = 0; n < self->used; n++) {
        Py_VISIT(self->entries[n].idle);
    }
    return 0;
}

static int calls_clear(Calls *self) {
    table_forget(self);
    Py_CLEAR(self->failed);
    Py_CLEAR(self->comm);
    Py_CLEAR(self->sum);
    Py_CLEAR(self->slow);
    return 0;
}

static void calls_dealloc(Calls *self) {
    PyTypeObject *type = Py_TYPE((PyObject *)self);
    PyObject_GC_UnTrack(self);
    calls_clear(self);
    freefunc release_self = (freefunc)PyType_GetSlot(type, Py_tp_free);
    release_self(self);
    Py_DECREF(type);
}

#define NAMED(name)                                                                                \
    {#name, (PyCFunction)(void (*)(void))calls_##name, METH_FASTCALL | METH_KEYWORDS,              \
     "As mpi4py's method of this form."}

static PyMethodDef methods[] = {
    NAMED(bcast), NAMED(reduce), NAMED(allreduce), NAMED(reduce_scatter_block), NAMED(allgather),
    NAMED(allgatherv),
    {"remember", (PyCFunction)calls_remember, METH_VARARGS,
     "remember(key, program or None, locations)"},
    {"forget", (PyCFunction)calls_forget, METH_NOARGS, "Forget what was learned."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc, "The calls of one form on one communicator that need nothing of Python."},
    {Py_tp_new, calls_new},
    {Py_tp_dealloc, calls_dealloc},
    {Py_tp_traverse, calls_traverse},
    {Py_tp_clear, calls_clear},
    {Py_tp_methods, methods},
    {0, NULL},
};

PyType_Spec calls_spec = {
    .name = "collwise.mpi.engine._engine.Calls",
    .basicsize = sizeof(Calls),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .slots = slots,
};
