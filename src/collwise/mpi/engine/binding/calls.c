/* `Calls`: the blocking calls on one communicator that need nothing of Python.

   A call whose buffers are plain is looked up by a key that determines all that MPI guarantees to be
   equal on all ranks.  A program, or the library's own collective, then runs on the buffers where
   they are.  Each method returns True if it served; the key if nobody taught what serves it (see
   `remember`); None if the buffers are for mpi4py to read.  With `starts` calls are non-blocking, and
   the handle of a request is returned where they were started. */
#include "binding.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

enum method { BCAST, REDUCE, ALLREDUCE, REDUCE_SCATTER_BLOCK, ALLGATHER, ALLGATHERV, METHODS };

#define MOST 4096   /* keys; the table starts anew when it has so many */
#define FEW_RANKS 64
#define HEAD 8      /* numbers of a key without counts */
#define MOST_SLOTS 4

/* Which buffer of a call a slot lies in, and how far from its beginning. */
struct aim {
    int slot, received;
    int64_t distance;
};

/* The numbers of a tally (comm/recording.py); what follows are starts and ends of the last calls. */
enum { TIMES, UNTIL, NANOSECONDS, LAST, NUMBERS };

struct entry {
    PyObject *key; /* bytes; NULL for an empty entry */
    uint64_t hash;
    Program *program; /* NULL: the library's own serves, or plans that are started */
    PyObject *idle, *take_tag; /* these: a list, and what gives the next tag */
    PyObject *tally;  /* a bytearray where calls are counted; or NULL */
    int64_t until;    /* how many calls it may have counted when this entry serves */
    int aims_number;
    struct aim aims[MOST_SLOTS];
};

typedef struct {
    PyObject_HEAD
    unsigned planned; /* a bit for each method that programs may serve */
    int starts;       /* calls are started, as requests of MPI's */
    PyObject *failed; /* called with the error of a program that leaves messages over */
    int rank, ranks;  /* in the communicator; 0 ranks: it is asked at each call */
    struct entry *entries;
    unsigned size, used;
} Calls;

/* A call whose buffers were read. */
struct call {
    enum method method;
    handle comm, op;
    int root, rank, ranks;
    int in_place, receives;
    struct reading sent, received;
    int *vectors; /* ALLGATHERV: counts, then displacements */
    int some_vectors[2 * FEW_RANKS];
};

/* --- the table ------------------------------------------------------------------------------ */

static uint64_t hash_of(const int64_t *key, Py_ssize_t numbers) {
    uint64_t hash = 0x9E3779B97F4A7C15u;
    for (Py_ssize_t n = 0; n < numbers; n++) {
        hash = (hash ^ (uint64_t)key[n]) * 0xFF51AFD7ED558CCDu;
        hash ^= hash >> 32;
    }
    return hash;
}

/* The entry of a key, or the empty one where it would be. */
static struct entry *find(struct entry *entries, unsigned size, const void *key, Py_ssize_t nbytes,
                          uint64_t hash) {
    for (unsigned place = (unsigned)hash;; place++) {
        struct entry *entry = &entries[place & (size - 1)];
        char *known;
        Py_ssize_t length;
        if (!entry->key) {
            return entry;
        }
        if (entry->hash == hash && PyBytes_AsStringAndSize(entry->key, &known, &length) == 0 &&
            length == nbytes && !memcmp(known, key, (size_t)nbytes)) {
            return entry;
        }
    }
}

static void forget(Calls *self) {
    struct entry *entries = self->entries;
    unsigned size = self->size;
    self->entries = NULL;
    self->size = self->used = 0;
    for (unsigned n = 0; n < size; n++) {
        Py_XDECREF(entries[n].key);
        Py_XDECREF((PyObject *)entries[n].program);
        Py_XDECREF(entries[n].tally);
        Py_XDECREF(entries[n].idle);
        Py_XDECREF(entries[n].take_tag);
    }
    free(entries);
}

static int64_t *numbers_of(PyObject *tally) {
    return (int64_t *)(void *)PyByteArray_AsString(tally);
}

static int64_t now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

/* Count a call that began at a time and is over now. */
static void count(PyObject *tally, int64_t begin) {
    int64_t *numbers = numbers_of(tally), end = now();
    int64_t kept = (PyByteArray_Size(tally) / (Py_ssize_t)sizeof *numbers - NUMBERS) / 2;
    if (kept) {
        int64_t *place = numbers + NUMBERS + 2 * (numbers[TIMES] % kept);
        place[0] = begin;
        place[1] = end;
    }
    numbers[TIMES]++;
    numbers[NANOSECONDS] += end - begin;
    numbers[LAST] = begin;
}

static int grow(Calls *self) {
    if (self->used * 2 < self->size) {
        return 1;
    }
    if (self->used >= MOST) {
        forget(self);
    }
    unsigned size = self->size ? 2 * self->size : 32;
    struct entry *entries = calloc(size, sizeof *entries);
    if (!entries) {
        PyErr_NoMemory();
        return 0;
    }
    for (unsigned n = 0; n < self->size; n++) {
        char *key;
        Py_ssize_t length;
        if (self->entries[n].key &&
            PyBytes_AsStringAndSize(self->entries[n].key, &key, &length) == 0) {
            *find(entries, size, key, length, self->entries[n].hash) = self->entries[n];
        }
    }
    free(self->entries);
    self->entries = entries;
    self->size = size;
    return 1;
}

/* Where the slots of a program lie. */
static int read_aims(PyObject *aims, const struct program *program, struct entry *entry) {
    entry->aims_number = (int)PyTuple_Size(aims);
    for (int n = 0; n < entry->aims_number; n++) {
        struct aim *aim = &entry->aims[n];
        long long distance;
        if (!PyArg_ParseTuple(PyTuple_GetItem(aims, n), "ipL", &aim->slot, &aim->received,
                              &distance)) {
            return 0;
        }
        aim->distance = distance;
        if (!program || aim->slot < 0 || aim->slot >= program->slots_number) {
            PyErr_SetString(PyExc_IndexError, "no such slot");
            return 0;
        }
    }
    return 1;
}

/* remember(key, program, aims, tally): from now on this program serves calls of this key, or, if it is
   None, the library's own collective.   aims: (slot, whether it is in the receive buffer, distance).
   tally: the memory in which to count calls, or None.   idle, take_tag: calls of this key are started
   on one of the idle plans with such a program. */
static PyObject *calls_remember(Calls *self, PyObject *given) {
    PyObject *key, *program, *aims, *tally = Py_None, *idle = NULL, *take_tag = NULL;
    struct entry entry = {.until = INT64_MAX};
    char *text;
    Py_ssize_t length;
    if (!PyArg_ParseTuple(given, "O!OO!|OO!O", &PyBytes_Type, &key, &program, &PyTuple_Type,
                          &aims, &tally, &PyList_Type, &idle, &take_tag) ||
        PyBytes_AsStringAndSize(key, &text, &length) < 0) {
        return NULL;
    }
    if (program != Py_None) {
        if (Py_TYPE(program) != program_type || PyTuple_Size(aims) > MOST_SLOTS) {
            PyErr_SetString(PyExc_TypeError, "a Program with a few slots, or None");
            return NULL;
        }
        entry.program = idle ? NULL : (Program *)program;
        if (!read_aims(aims, ((Program *)program)->program, &entry)) {
            return NULL;
        }
    }
    if (!idle != !self->starts) {
        PyErr_SetString(PyExc_TypeError, "idle plans, where calls are started, and only there");
        return NULL;
    }
    if (tally != Py_None) {
        if (!PyByteArray_Check(tally) || PyByteArray_Size(tally) < (Py_ssize_t)sizeof(int64_t[NUMBERS])) {
            PyErr_SetString(PyExc_TypeError, "a bytearray for the numbers of a tally, or None");
            return NULL;
        }
        entry.tally = tally;
        entry.until = numbers_of(tally)[UNTIL];
    }
    if (!grow(self)) {
        return NULL;
    }
    entry.hash = hash_of((int64_t *)text, length / (Py_ssize_t)sizeof(int64_t));
    struct entry *place = find(self->entries, self->size, text, length, entry.hash);
    struct entry old = *place;
    self->used += !old.key;
    Py_INCREF(key);
    Py_XINCREF((PyObject *)entry.program);
    Py_XINCREF(entry.tally);
    entry.key = key;
    entry.idle = Py_XNewRef(idle);
    entry.take_tag = Py_XNewRef(take_tag);
    *place = entry;
    Py_XDECREF(old.tally);
    Py_XDECREF(old.idle);
    Py_XDECREF(old.take_tag);
    Py_XDECREF(old.key);
    Py_XDECREF((PyObject *)old.program);
    Py_RETURN_NONE;
}

static PyObject *calls_forget(Calls *self, PyObject *unused) {
    (void)unused;
    forget(self);
    Py_RETURN_NONE;
}

/* --- serving a call ------------------------------------------------------------------------- */

static void release(struct call *call) {
    if (!call->in_place) {
        release_buffer(&call->sent);
    }
    if (call->receives) {
        release_buffer(&call->received);
    }
    if (call->vectors != call->some_vectors) {
        free(call->vectors);
    }
}

static int library_call(const struct call *call) {
    const void *from = call->in_place ? mpi_in_place_value : call->sent.address;
    void *into = call->receives ? call->received.address : NULL;
    const struct reading *whole = call->in_place ? &call->received : &call->sent;
    int64_t count = whole->count;
    handle type = whole->type, comm = call->comm, op = call->op;
    switch (call->method) {
    case BCAST:
        return CALL_COUNT(Bcast, BCAST, count, &mpi, (call->sent.address, count, type, call->root,
                                                      comm));
    case REDUCE:
        return CALL_COUNT(Reduce, REDUCE, count, &mpi,
                          (from, into, count, type, op, call->root, comm));
    case ALLREDUCE:
        return CALL_COUNT(Allreduce, ALLREDUCE, count, &mpi, (from, into, count, type, op, comm));
    case REDUCE_SCATTER_BLOCK:
        count = call->in_place ? count / call->ranks : call->received.count;
        return CALL_COUNT(Reduce_scatter_block, ALLREDUCE, count, &mpi,
                          (from, into, count, type, op, comm));
    case ALLGATHER: {
        int64_t part = call->received.count, most = part > count ? part : count;
        return CALL_COUNT(Allgather, ALLGATHER, most, &mpi,
                          (from, count, type, into, part, call->received.type, comm));
    }
    default:
        return CALL(Allgatherv, ALLGATHERV, &mpi,
                    (from, (int)count, type, into, call->vectors, call->vectors + call->ranks,
                     call->received.type, comm));
    }
}

/* Whether the library has a form for counts as large as this call's. */
static int countable(const struct call *call) {
    static const size_t large[METHODS] = {
        offsetof(struct library, Bcast_c),     offsetof(struct library, Reduce_c),
        offsetof(struct library, Allreduce_c), offsetof(struct library, Reduce_scatter_block_c),
        offsetof(struct library, Allgather_c), offsetof(struct library, Allgatherv_c),
    };
    int64_t sent = call->in_place ? 0 : call->sent.count;
    int64_t received = call->receives && call->method != ALLGATHERV ? call->received.count : 0;
    if (sent <= INT_MAX && received <= INT_MAX) {
        return 1;
    }
    function form = *(const function *)((const char *)&mpi + large[call->method]);
    return call->method != ALLGATHERV && form != NULL;
}

static PyObject *by_library(struct call *call) {
    int error;
    if (!countable(call)) {
        release(call);
        Py_RETURN_NONE;
    }
    Py_BEGIN_ALLOW_THREADS
    error = library_call(call);
    Py_END_ALLOW_THREADS
    release(call);
    if (error) {
        return mpi_error(error);
    }
    Py_RETURN_TRUE;
}

static void aim_at(const struct call *call, const struct entry *entry, struct program *program) {
    for (int n = 0; n < entry->aims_number; n++) {
        const struct aim *aim = &entry->aims[n];
        const struct reading *buffer = aim->received ? &call->received : &call->sent;
        program->slots[aim->slot] = (char *)((uintptr_t)buffer->address + (uintptr_t)aim->distance);
    }
}

static PyObject *by_program(Calls *self, struct call *call, const struct entry *entry) {
    Program *owner = entry->program;
    struct program *program = owner->program;
    aim_at(call, entry, program);
    Py_INCREF((PyObject *)owner); /* another thread may let the table forget it */
    owner->busy = 1;
    enum outcome outcome;
    Py_BEGIN_ALLOW_THREADS
    outcome = progress_run(program);
    Py_END_ALLOW_THREADS
    owner->busy = 0;
    PyObject *result = NULL;
    if (outcome != FAILED) {
        result = Py_NewRef(Py_True);
    } else if (program->left_over) {
        program_failed(program, self->failed, "__call__");
    } else {
        mpi_error(program->error);
    }
    Py_DECREF((PyObject *)owner);
    release(call);
    return result;
}

/* Start the call on an idle plan; None if there is none.  Tags are taken for calls that are made. */
static PyObject *by_request(Calls *self, struct call *call, const struct entry *place) {
    const struct entry known = *place, *entry = &known; /* Python may let the table forget it */
    Py_ssize_t last = PyList_Size(entry->idle) - 1;
    if (last < 0) {
        release(call);
        Py_RETURN_NONE;
    }
    PyObject *plan = Py_NewRef(PyList_GetItem(entry->idle, last)), *request = NULL;
    if (PyList_SetSlice(entry->idle, last, last + 1, NULL) < 0) {
        Py_DECREF(plan);
        release(call);
        return NULL;
    }
    PyObject *take_tag = Py_NewRef(entry->take_tag), *tag = NULL;
    PyObject *owner = PyObject_GetAttrString(plan, "program");
    PyObject *over = PyObject_GetAttrString(plan, "over");
    if (owner && over && (tag = PyObject_CallNoArgs(take_tag))) {
        struct program *program = ((Program *)owner)->program;
        struct reading held[2];
        int number = 0;
        if (!call->in_place) {
            held[number++] = call->sent;
        }
        if (call->receives) {
            held[number++] = call->received;
        }
        program->tag = (int)PyLong_AsLong(tag);
        aim_at(call, entry, program);
        request = program_fly((Program *)owner, over, held, number);
        if (request) { /* the buffers are held until it is complete */
            call->sent.view.obj = call->received.view.obj = NULL;
        } else if (program->left_over) {
            PyErr_Clear();
            program_failed(program, self->failed, "__call__");
        }
    }
    Py_XDECREF(tag);
    Py_XDECREF(over);
    Py_XDECREF(owner);
    Py_DECREF(take_tag);
    Py_DECREF(plan);
    release(call);
    return request;
}

static PyObject *serve(Calls *self, struct call *call) {
    if (!(self->planned & 1u << call->method)) {
        return by_library(call); /* nobody asks for one that would be started */
    }
    const struct reading *sent = call->in_place ? NULL : &call->sent;
    const struct reading *received = call->receives ? &call->received : NULL;
    const int64_t head[HEAD] = {
        (int64_t)call->method << 32 | call->in_place << 1 | call->receives,
        call->root,
        (int64_t)call->op,
        call->ranks,
        sent ? sent->count : -1,
        sent ? (int64_t)sent->type : -1,
        received ? received->count : -1,
        received ? (int64_t)received->type : -1,
    };
    int64_t some[HEAD + FEW_RANKS], *key = some;
    Py_ssize_t numbers = HEAD;
    memcpy(some, head, sizeof head);
    if (call->method == ALLGATHERV) {
        size_t nbytes = 2 * sizeof(int) * (size_t)call->ranks;
        numbers += call->ranks; /* two ints for each rank */
        if (call->ranks > FEW_RANKS) {
            key = malloc(sizeof head + nbytes);
            if (!key) {
                release(call);
                return PyErr_NoMemory();
            }
            memcpy(key, head, sizeof head);
        }
        key[HEAD - 2] = 0; /* the length of the buffer; the counts say what is used */
        memcpy(key + HEAD, call->vectors, nbytes);
    }
    Py_ssize_t nbytes = numbers * (Py_ssize_t)sizeof *key;
    struct entry *entry = NULL;
    if (self->size) {
        entry = find(self->entries, self->size, key, nbytes, hash_of(key, numbers));
    }
    PyObject *result = NULL;
    PyObject *tally = entry && entry->key ? entry->tally : NULL;
    int64_t begin = tally ? now() : 0;
    Py_XINCREF(tally); /* the table may forget it meanwhile */
    if (!entry || !entry->key || (entry->program && !entry->program->program) ||
        (tally && numbers_of(tally)[TIMES] >= entry->until)) {
        release(call);
        result = PyBytes_FromStringAndSize((const char *)key, nbytes);
    } else if (entry->idle) {
        result = by_request(self, call, entry);
    } else if (!entry->program) {
        result = by_library(call);
    } else if (entry->program->busy) {
        release(call);
        result = Py_NewRef(Py_None);
    } else {
        result = by_program(self, call, entry);
    }
    if (tally && result == Py_True) {
        count(tally, begin);
    }
    Py_XDECREF(tally);
    if (key != some) {
        free(key);
    }
    return result;
}

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

static int read_root(PyObject *given, struct call *call) {
    if (!PyLong_CheckExact(given)) {
        return 0;
    }
    long root = PyLong_AsLong(given);
    if (root == -1 && PyErr_Occurred()) {
        PyErr_Clear();
        return 0;
    }
    call->root = (int)root;
    return root >= 0 && root < call->ranks;
}

static int read_sent(PyObject *given, int writable, struct call *call) {
    call->in_place = given == mpi_in_place || given == Py_None;
    return call->in_place || read_buffer(given, writable, 1, &call->sent);
}

static int arguments(Py_ssize_t number, Py_ssize_t expected) {
    if (number != expected) {
        PyErr_Format(PyExc_TypeError, "%zd arguments, not %zd", expected, number);
    }
    return number == expected;
}

/* bcast(comm, buffer, root) */
static PyObject *calls_bcast(Calls *self, PyObject *const *given, Py_ssize_t number) {
    struct call call = {.method = BCAST};
    if (!arguments(number, 3)) {
        return NULL;
    }
    advance_others();
    if (!read_comm(self, given[0], &call) || !read_root(given[2], &call) ||
        !read_buffer(given[1], call.rank != call.root, 1, &call.sent)) {
        Py_RETURN_NONE;
    }
    return serve(self, &call);
}

/* What Reduce, Allreduce and Reduce_scatter_block have in common.   parts: ranks that divide what is
   combined among them. */
static PyObject *combining(Calls *self, PyObject *sent, PyObject *received, PyObject *op,
                           int receives, int parts, struct call *call) {
    if (!read_operator(op, &call->op) || !read_sent(sent, 0, call)) {
        Py_RETURN_NONE;
    }
    call->receives = receives;
    if ((call->in_place && !receives) ||
        (receives && !read_buffer(received, 1, 1, &call->received))) {
        call->receives = 0;
        release(call);
        Py_RETURN_NONE;
    }
    int fits = !call->in_place || call->received.count % parts == 0;
    if (receives && !call->in_place) {
        fits = call->sent.type == call->received.type &&
               call->sent.count == call->received.count * parts;
    }
    if (!fits) {
        release(call);
        Py_RETURN_NONE;
    }
    return serve(self, call);
}

/* reduce(comm, sendbuf, recvbuf, op, root) */
static PyObject *calls_reduce(Calls *self, PyObject *const *given, Py_ssize_t number) {
    struct call call = {.method = REDUCE};
    if (!arguments(number, 5)) {
        return NULL;
    }
    advance_others();
    if (!read_comm(self, given[0], &call) || !read_root(given[4], &call)) {
        Py_RETURN_NONE;
    }
    return combining(self, given[1], given[2], given[3], call.rank == call.root, 1, &call);
}

/* allreduce(comm, sendbuf, recvbuf, op) */
static PyObject *calls_allreduce(Calls *self, PyObject *const *given, Py_ssize_t number) {
    struct call call = {.method = ALLREDUCE};
    if (!arguments(number, 4)) {
        return NULL;
    }
    advance_others();
    if (!read_comm(self, given[0], &call)) {
        Py_RETURN_NONE;
    }
    return combining(self, given[1], given[2], given[3], 1, 1, &call);
}

/* reduce_scatter_block(comm, sendbuf, recvbuf, op) */
static PyObject *calls_reduce_scatter_block(Calls *self, PyObject *const *given,
                                            Py_ssize_t number) {
    struct call call = {.method = REDUCE_SCATTER_BLOCK};
    if (!arguments(number, 4)) {
        return NULL;
    }
    advance_others();
    if (!read_comm(self, given[0], &call)) {
        Py_RETURN_NONE;
    }
    return combining(self, given[1], given[2], given[3], 1, call.ranks, &call);
}

/* Whether this rank sends what the receive buffer says of it. */
static PyObject *gathering(Calls *self, int64_t part, struct call *call) {
    if (!call->in_place &&
        call->sent.count * call->sent.size != part * call->received.size) {
        release(call);
        Py_RETURN_NONE;
    }
    return serve(self, call);
}

/* allgather(comm, sendbuf, recvbuf) */
static PyObject *calls_allgather(Calls *self, PyObject *const *given, Py_ssize_t number) {
    struct call call = {.method = ALLGATHER};
    if (!arguments(number, 3)) {
        return NULL;
    }
    advance_others();
    if (!read_comm(self, given[0], &call) || !read_sent(given[1], 0, &call)) {
        Py_RETURN_NONE;
    }
    if (!read_buffer(given[2], 1, call.ranks, &call.received)) {
        release(&call);
        Py_RETURN_NONE;
    }
    call.receives = 1;
    return gathering(self, call.received.count, &call);
}

/* allgatherv(comm, sendbuf, recvbuf) */
static PyObject *calls_allgatherv(Calls *self, PyObject *const *given, Py_ssize_t number) {
    struct call call = {.method = ALLGATHERV};
    if (!arguments(number, 3)) {
        return NULL;
    }
    advance_others();
    if (!read_comm(self, given[0], &call) || !read_sent(given[1], 0, &call)) {
        Py_RETURN_NONE;
    }
    if (call.ranks > FEW_RANKS) {
        call.vectors = malloc(2 * sizeof(int) * (size_t)call.ranks);
        if (!call.vectors) {
            release(&call);
            return PyErr_NoMemory();
        }
    }
    if (!read_vector(given[2], call.ranks, call.vectors, call.vectors + call.ranks,
                     &call.received)) {
        release(&call);
        Py_RETURN_NONE;
    }
    call.receives = 1;
    return gathering(self, call.vectors[call.rank], &call);
}

/* --- the type ------------------------------------------------------------------------------- */

static PyObject *calls_new(PyTypeObject *type, PyObject *given, PyObject *named) {
    PyObject *methods, *failed;
    int rank = 0, ranks = 0, starts = 0;
    static char *names[] = {"methods", "failed", "rank", "ranks", "starts", NULL};
    static const char *const every[METHODS] = {
        "Bcast", "Reduce", "Allreduce", "Reduce_scatter_block", "Allgather", "Allgatherv"};
    if (!PyArg_ParseTupleAndKeywords(given, named, "OO|iip", names, &methods, &failed, &rank,
                                     &ranks, &starts)) {
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
        self->starts = starts;
        self->rank = rank;
        self->ranks = ranks;
        self->failed = Py_NewRef(failed);
    }
    return (PyObject *)self;
}

static int calls_traverse(Calls *self, visitproc visit, void *arg) {
    Py_VISIT(Py_TYPE((PyObject *)self));
    Py_VISIT(self->failed);
    for (unsigned n = 0; n < self->size; n++) {
        Py_VISIT(self->entries[n].idle);
        Py_VISIT(self->entries[n].take_tag);
    }
    return 0;
}

static int calls_clear(Calls *self) {
    forget(self);
    Py_CLEAR(self->failed);
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

static PyMethodDef methods[] = {
    FAST(bcast, "bcast(comm, buffer, root)"),
    FAST(reduce, "reduce(comm, sendbuf, recvbuf, op, root)"),
    FAST(allreduce, "allreduce(comm, sendbuf, recvbuf, op)"),
    FAST(reduce_scatter_block, "reduce_scatter_block(comm, sendbuf, recvbuf, op)"),
    FAST(allgather, "allgather(comm, sendbuf, recvbuf)"),
    FAST(allgatherv, "allgatherv(comm, sendbuf, recvbuf)"),
    {"remember", (PyCFunction)calls_remember, METH_VARARGS, "remember(key, program or None, aims)"},
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
