/* `Calls`: the blocking calls on one communicator that need nothing of Python.

   A call whose buffers are plain is looked up by a key that determines all that MPI guarantees to be
   equal on all ranks.  A program, or the library's own collective, then runs on the buffers where
   they are.  Each method returns True if it served; the key if nobody taught what serves it (see
   `remember`); None if the buffers are for mpi4py to read.  Non-blocking and persistent calls, the
   methods with `request`, take what mpi4py's take, and return a request; `slow` serves what C cannot. */
#include "calls.h"

#include <stdlib.h>
#include <string.h>

/* --- reading the arguments ------------------------------------------------------------------ */

static void advance_others(void) {
    if (progress_running()) {
        Py_BEGIN_ALLOW_THREADS
        progress_advance();
        Py_END_ALLOW_THREADS
    }
}

/* The communicator of a call, and this rank's place in it. */
static int read_comm(const Calls *self, PyObject *comm, struct call *call) {
    call->comm = handle_of(comm);
    call->form = self->form;
    call->vectors = call->some_vectors;
    call->op = 0;
    call->root = 0;
    call->in_place = call->receives = 0;
    call->rank = self->rank;
    call->ranks = self->ranks;
    if (self->ranks) {
        return 1;
    }
    return !CALL(Comm_rank, COMM_INT, &mpi, (call->comm, &call->rank)) &&
           !CALL(Comm_size, COMM_INT, &mpi, (call->comm, &call->ranks));
}

static int read_root(PyObject *object, struct call *call) {
    if (!PyLong_CheckExact(object)) {
        return 0;
    }
    long root = PyLong_AsLong(object);
    if (root == -1 && PyErr_Occurred()) {
        PyErr_Clear();
        return 0;
    }
    call->root = (int)root;
    return root >= 0 && root < call->ranks;
}

static int read_sent(PyObject *object, int parts, struct call *call) {
    call->in_place = object == mpi_in_place || object == Py_None;
    return call->in_place || read_buffer(object, 0, parts, &call->sent);
}

static int arguments(Py_ssize_t number, Py_ssize_t expected) {
    if (number != expected) {
        PyErr_Format(PyExc_TypeError, "%zd arguments, not %zd", expected, number);
    }
    return number == expected;
}

/* bcast(comm, buffer, root) */
static PyObject *calls_bcast(Calls *self, PyObject *const *args, Py_ssize_t number) {
    struct call call = {.method = BCAST};
    if (!arguments(number, 3)) {
        return NULL;
    }
    advance_others();
    if (!read_comm(self, args[0], &call) || !read_root(args[2], &call) ||
        !read_buffer(args[1], call.rank != call.root, 1, &call.sent)) {
        Py_RETURN_NONE;
    }
    return call_serve(self, &call);
}

/* What Reduce, Allreduce and Reduce_scatter_block have in common.   parts: ranks that divide what is
   combined among them; counts are those of one. */
static PyObject *combining(Calls *self, PyObject *sent, PyObject *received, PyObject *op,
                           int receives, int parts, struct call *call) {
    if (!read_operator(op, &call->op) || !read_sent(sent, parts, call)) {
        Py_RETURN_NONE;
    }
    call->receives = receives;
    if ((call->in_place && !receives) ||
        (receives && !read_buffer(received, 1, call->in_place ? parts : 1, &call->received))) {
        call->receives = 0;
        call_release(call);
        Py_RETURN_NONE;
    }
    if (receives && !call->in_place &&
        (call->sent.type != call->received.type || call->sent.count != call->received.count)) {
        call_release(call);
        Py_RETURN_NONE;
    }
    return call_serve(self, call);
}

/* reduce(comm, sendbuf, recvbuf, op, root) */
static PyObject *calls_reduce(Calls *self, PyObject *const *args, Py_ssize_t number) {
    struct call call = {.method = REDUCE};
    if (!arguments(number, 5)) {
        return NULL;
    }
    advance_others();
    if (!read_comm(self, args[0], &call) || !read_root(args[4], &call)) {
        Py_RETURN_NONE;
    }
    return combining(self, args[1], args[2], args[3], call.rank == call.root, 1, &call);
}

/* allreduce(comm, sendbuf, recvbuf, op) */
static PyObject *calls_allreduce(Calls *self, PyObject *const *args, Py_ssize_t number) {
    struct call call = {.method = ALLREDUCE};
    if (!arguments(number, 4)) {
        return NULL;
    }
    advance_others();
    if (!read_comm(self, args[0], &call)) {
        Py_RETURN_NONE;
    }
    return combining(self, args[1], args[2], args[3], 1, 1, &call);
}

/* reduce_scatter_block(comm, sendbuf, recvbuf, op) */
static PyObject *calls_reduce_scatter_block(Calls *self, PyObject *const *args,
                                            Py_ssize_t number) {
    struct call call = {.method = REDUCE_SCATTER_BLOCK};
    if (!arguments(number, 4)) {
        return NULL;
    }
    advance_others();
    if (!read_comm(self, args[0], &call)) {
        Py_RETURN_NONE;
    }
    return combining(self, args[1], args[2], args[3], 1, call.ranks, &call);
}

/* Whether this rank sends what the receive buffer says of it. */
static PyObject *gathering(Calls *self, int64_t part, struct call *call) {
    if (!call->in_place &&
        call->sent.count * call->sent.size != part * call->received.size) {
        call_release(call);
        Py_RETURN_NONE;
    }
    return call_serve(self, call);
}

/* allgather(comm, sendbuf, recvbuf) */
static PyObject *calls_allgather(Calls *self, PyObject *const *args, Py_ssize_t number) {
    struct call call = {.method = ALLGATHER};
    if (!arguments(number, 3)) {
        return NULL;
    }
    advance_others();
    if (!read_comm(self, args[0], &call) || !read_sent(args[1], 1, &call)) {
        Py_RETURN_NONE;
    }
    if (!read_buffer(args[2], 1, call.ranks, &call.received)) {
        call_release(&call);
        Py_RETURN_NONE;
    }
    call.receives = 1;
    return gathering(self, call.received.count, &call);
}

/* allgatherv(comm, sendbuf, recvbuf) */
static PyObject *calls_allgatherv(Calls *self, PyObject *const *args, Py_ssize_t number) {
    struct call call = {.method = ALLGATHERV};
    if (!arguments(number, 3)) {
        return NULL;
    }
    advance_others();
    if (!read_comm(self, args[0], &call) || !read_sent(args[1], 1, &call)) {
        Py_RETURN_NONE;
    }
    if (call.ranks > FEW_RANKS) {
        call.vectors = malloc(2 * sizeof(int) * (size_t)call.ranks);
        if (!call.vectors) {
            call_release(&call);
            return PyErr_NoMemory();
        }
    }
    if (!read_vector(args[2], call.ranks, call.vectors, call.vectors + call.ranks,
                     &call.received)) {
        call_release(&call);
        Py_RETURN_NONE;
    }
    call.receives = 1;
    return gathering(self, call.vectors[call.rank], &call);
}

/* --- calls that make requests -------------------------------------------------------------------- */

static const char *const every[METHODS] = {
    "Bcast", "Reduce", "Allreduce", "Reduce_scatter_block", "Allgather", "Allgatherv"};

typedef PyObject *serving(Calls *self, PyObject *const *args, Py_ssize_t number);

/* What C cannot serve: slow(method, key or None, arguments). */
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

/* fewest, most: arguments of the method; those that are left out are MPI.SUM and root 0. */
static PyObject *request(Calls *self, enum method method, serving *serve, Py_ssize_t fewest,
                         Py_ssize_t most, PyObject *const *args, Py_ssize_t number,
                         PyObject *names) {
    PyObject *key = Py_NewRef(Py_None);
    if (self->form == BLOCKING) {
        return PyErr_Format(PyExc_TypeError, "these calls make no requests");
    }
    if (!names && number >= fewest && number <= most) {
        PyObject *zero = PyLong_FromLong(0), *all[] = {self->comm, NULL, NULL, self->sum, zero};
        if (method == BCAST) {
            all[2] = zero;
        }
        memcpy(all + 1, args, (size_t)number * sizeof *args);
        PyObject *answer = zero ? serve(self, all, most + 1) : NULL;
        Py_DECREF(key);
        Py_XDECREF(zero);
        key = answer;
        if (!key || (key != Py_None && !PyBytes_Check(key))) {
            return key;
        }
    }
    PyObject *result = by_python(self, method, key, args, number, names);
    Py_DECREF(key);
    return result;
}

#define REQUEST(name, METHOD, fewest, most)                                                        \
    static PyObject *calls_request_##name(Calls *self, PyObject *const *args, Py_ssize_t number,  \
                                          PyObject *names) {                                       \
        return request(self, METHOD, calls_##name, fewest, most, args, number, names);            \
    }
REQUEST(bcast, BCAST, 1, 2)
REQUEST(reduce, REDUCE, 2, 4)
REQUEST(allreduce, ALLREDUCE, 2, 3)
REQUEST(reduce_scatter_block, REDUCE_SCATTER_BLOCK, 2, 3)
REQUEST(allgather, ALLGATHER, 2, 2)
REQUEST(allgatherv, ALLGATHERV, 2, 2)

/* --- the type ------------------------------------------------------------------------------- */

static PyObject *calls_new(PyTypeObject *type, PyObject *args, PyObject *named) {
    PyObject *methods, *failed, *comm = NULL, *sum = NULL, *slow = NULL;
    int rank = 0, ranks = 0, form = BLOCKING;
    static char *names[] = {"methods", "failed", "rank", "ranks", "form", "comm", "default_op", "slow", NULL};
    if (!PyArg_ParseTupleAndKeywords(args, named, "OO|iiiOOO", names, &methods, &failed, &rank, &ranks,
                                     &form, &comm, &sum, &slow)) {
        return NULL;
    }
    if (form < BLOCKING || form > PERSISTENT || (form != BLOCKING && (!ranks || !slow))) {
        PyErr_SetString(PyExc_ValueError, "a form, and for requests all that they need");
        return NULL;
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
        self->comm = Py_XNewRef(comm);
        self->sum = Py_XNewRef(sum);
        self->slow = Py_XNewRef(slow);
        self->rank = rank;
        self->ranks = ranks;
        self->failed = Py_NewRef(failed);
    }
    return (PyObject *)self;
}

static int calls_traverse(Calls *self, visitproc visit, void *arg) {
    Py_VISIT(Py_TYPE((PyObject *)self));
    Py_VISIT(self->failed);
    Py_VISIT(self->comm);
    Py_VISIT(self->slow);
    for (unsigned n = 0; n < self->size; n++) {
        Py_VISIT(self->entries[n].idle);
        Py_VISIT(self->entries[n].private);
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

#define FAST(name, text) {#name, (PyCFunction)(void (*)(void))calls_##name, METH_FASTCALL, text}

#define NAMED(name)                                                                                \
    {"request_" #name, (PyCFunction)(void (*)(void))calls_request_##name,                          \
     METH_FASTCALL | METH_KEYWORDS, "As mpi4py's method or form."}

static PyMethodDef methods[] = {
    NAMED(bcast), NAMED(reduce), NAMED(allreduce), NAMED(reduce_scatter_block), NAMED(allgather),
    NAMED(allgatherv),
    FAST(bcast, "bcast(comm, buffer, root)"),
    FAST(reduce, "reduce(comm, sendbuf, recvbuf, op, root)"),
    FAST(allreduce, "allreduce(comm, sendbuf, recvbuf, op)"),
    FAST(reduce_scatter_block, "reduce_scatter_block(comm, sendbuf, recvbuf, op)"),
    FAST(allgather, "allgather(comm, sendbuf, recvbuf)"),
    FAST(allgatherv, "allgatherv(comm, sendbuf, recvbuf)"),
    {"remember", (PyCFunction)calls_remember, METH_VARARGS,
     "remember(key, program or None, locations)"},
    {"forget", (PyCFunction)calls_forget, METH_NOARGS, "Forget what was learned."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc, "The blocking calls on one communicator that need nothing of Python."},
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
