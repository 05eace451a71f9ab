/* A call of `Calls` whose buffers were read: looked up, and executed by whoever serves it. */
#include "calls.h"

#include <stdlib.h>
#include <string.h>

void call_release(struct call *call) {
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

#define UNABLE INT_MIN /* the library has no such function, or none for so large a count */

/* most: the larger count.   Of Allgatherv's large form the counts of all ranks are wider, too. */
#define IN_FORM(name, later, args, most, ...)                                                        \
    return (most) > INT_MAX && (call->form != BLOCKING || !mpi.name##_c || call->method == ALLGATHERV) ? UNABLE   \
           : call->form == NONBLOCKING                                                               \
               ? CALL(later, I##args, &mpi, (__VA_ARGS__, &call->request))                           \
           : call->form == BLOCKING   ? CALL_COUNT(name, args, most, &mpi, (__VA_ARGS__))            \
           : mpi.name##_init == NULL ? UNABLE                                                        \
               : CALL(name##_init, args##_INIT, &mpi, (__VA_ARGS__, mpi.no_info, &call->request))

static int library_call(struct call *call) {
    const void *from = call->in_place ? mpi_in_place_value : call->sent.address;
    void *into = call->receives ? call->received.address : NULL;
    const struct reading *whole = call->in_place ? &call->received : &call->sent;
    int64_t count = whole->count;
    handle type = whole->type, comm = call->comm, op = call->op;
    switch (call->method) {
    case BCAST:
        IN_FORM(Bcast, Ibcast, BCAST, count, call->sent.address, count, type, call->root, comm);
    case REDUCE:
        IN_FORM(Reduce, Ireduce, REDUCE, count, from, into, count, type, op, call->root, comm);
    case ALLREDUCE:
        IN_FORM(Allreduce, Iallreduce, ALLREDUCE, count, from, into, count, type, op, comm);
    case REDUCE_SCATTER_BLOCK:
        IN_FORM(Reduce_scatter_block, Ireduce_scatter_block, ALLREDUCE, count, from, into, count, type,
                op, comm);
    case ALLGATHER: {
        int64_t part = call->received.count, most = part > count ? part : count;
        IN_FORM(Allgather, Iallgather, ALLGATHER, most, from, count, type, into, part,
                call->received.type, comm);
    }
    default: {
        int64_t most = call->in_place ? 0 : count;
        IN_FORM(Allgatherv, Iallgatherv, ALLGATHERV, most, from, count, type, into,
                (void *)call->vectors, (void *)(call->vectors + call->ranks), call->received.type,
                comm);
    }
    }
}

/* One lock for the variables of the library, which are the whole process's.  Nobody waits for it
   here: where it is taken, Python waits, and says for how long. */
static int guarded, held;

void switch_guard(void) { __atomic_store_n(&guarded, 1, __ATOMIC_RELEASE); }

int switch_hold(void) { return !__atomic_exchange_n(&held, 1, __ATOMIC_ACQUIRE); }

void switch_release(void) { __atomic_store_n(&held, 0, __ATOMIC_RELEASE); }

typedef int of_variable(void *, void *);

/* The library's call while its variables have other values; UNABLE if another thread is in one. */
static int switched_call(struct call *call) {
    of_variable *read = (of_variable *)mpi.MPI_T_cvar_read;
    of_variable *write = (of_variable *)mpi.MPI_T_cvar_write;
    struct setting *settings = call->switched.settings;
    int former[MOST_SETTINGS], changed = 0, error = 0;
    if (!__atomic_load_n(&guarded, __ATOMIC_ACQUIRE)) {
        return library_call(call);
    }
    if (!switch_hold()) {
        return UNABLE;
    }
    while (changed < call->switched.settings_number && !error) {
        error = read(settings[changed].variable, &former[changed]) ||
                write(settings[changed].variable, &settings[changed].value);
        changed += !error;
    }
    error = error ? UNABLE : library_call(call);
    while (changed-- > 0) {
        write(settings[changed].variable, &former[changed]);
    }
    switch_release();
    return error;
}

PyObject *request_classes[3];
Py_ssize_t request_held = -1;

/* A request of mpi4py's.   held: lives as long as it is not complete, or NULL. */
static PyObject *request_object(enum form form, handle value, PyObject *held) {
    PyObject *made = PyObject_CallNoArgs(request_classes[form]);
    if (made) {
        set_handle_of(made, value);
        if (held) {
            PyObject **place = (PyObject **)(void *)((char *)made + request_held), *old = *place;
            *place = Py_NewRef(held);
            Py_XDECREF(old);
        }
    }
    return made;
}

static void release_held(PyObject *capsule) {
    struct call *call = PyCapsule_GetPointer(capsule, NULL);
    call_release(call);
    free(call);
}

/* The library's own request; None if it has no such function. */
static PyObject *by_librarys_request(struct call *read) {
    struct call *call = request_held > 0 ? malloc(sizeof *call) : NULL;
    if (!call) {
        call_release(read);
        Py_RETURN_NONE;
    }
    *call = *read;
    if (read->vectors == read->some_vectors) {
        call->vectors = call->some_vectors;
    }
    PyObject *held = PyCapsule_New(call, NULL, release_held), *request = NULL;
    if (!held) {
        call_release(call);
        free(call);
        return NULL;
    }
    int error;
    Py_BEGIN_ALLOW_THREADS
    error = switched_call(call);
    Py_END_ALLOW_THREADS
    request = error == UNABLE ? Py_NewRef(Py_None)
              : error         ? mpi_error(error)
                              : request_object(call->form, handle_at(&mpi, &call->request), held);
    Py_DECREF(held);
    return request;
}

static PyObject *by_library(struct call *call) {
    int error;
    if (call->form != BLOCKING) {
        return by_librarys_request(call);
    }
    Py_BEGIN_ALLOW_THREADS
    error = switched_call(call);
    Py_END_ALLOW_THREADS
    call_release(call);
    if (error == UNABLE) {
        Py_RETURN_NONE;
    }
    return error ? mpi_error(error) : Py_NewRef(Py_True);
}

static void set_addresses(const struct call *call, const struct entry *entry,
                          struct program *program) {
    for (int n = 0; n < entry->locations_number; n++) {
        const struct slot_location *location = &entry->locations[n];
        const struct reading *buffer = location->received ? &call->received : &call->sent;
        program->slots[location->slot] =
            (char *)((uintptr_t)buffer->address + (uintptr_t)location->displacement);
    }
}

/* Whether the memory of a call's two buffers is apart. */
static int apart(const struct call *call) {
    const struct reading *sent = &call->sent, *received = &call->received;
    if (call->in_place || !call->receives) {
        return 1;
    }
    int64_t sends = sent->count * sent->size, receives = received->count * received->size;
    sends *= call->method == REDUCE_SCATTER_BLOCK ? call->ranks : 1;
    receives *= call->method == ALLGATHER ? call->ranks : 1;
    return sent->address + sends <= received->address || received->address + receives <= sent->address;
}

static PyObject *by_program(Calls *self, struct call *call, const struct entry *entry) {
    Program *owner = entry->program;
    struct program *program = owner->program;
    if (refused_in_child()) {
        call_release(call);
        return NULL;
    }
    if (!progress_own(program)) {
        call_release(call);
        Py_RETURN_NONE;
    }
    set_addresses(call, entry, program);
    Py_INCREF((PyObject *)owner); /* another thread may let the table forget it */
    enum outcome outcome = progress_run(program);
    PyObject *result = NULL;
    if (outcome >= PENDING) {
        result = Py_NewRef(Py_True);
    } else if (outcome == BROKE) {
        program_failed(program, self->failed, "__call__");
    } else {
        mpi_error(program->error);
    }
    Py_DECREF((PyObject *)owner);
    call_release(call);
    return result;
}

/* Whether a plan's attribute is a program that is idle and has all slots of the entry. */
static int serves(PyObject *owner, const struct entry *entry) {
    const struct program *program =
        owner && Py_TYPE(owner) == program_type ? ((Program *)owner)->program : NULL;
    int known = program && program->state == IDLE;
    for (int n = 0; known && n < entry->locations_number; n++) {
        known = entry->locations[n].slot < program->slots_number;
    }
    if (!known && !PyErr_Occurred()) {
        PyErr_SetString(PyExc_TypeError, "an idle plan without a program that can be started");
    }
    return known;
}

/* Whether C may take another tag; otherwise Python says what serves the call. */
static int tags_left(PyObject *memory) {
    const int64_t *tags = numbers_of(memory);
    return tags[NEXT_TAG] <= tags[LAST_TAG];
}

/* Start the call on an idle plan.  A tag is used up by a call that was made. */
static PyObject *by_request(Calls *self, struct call *call, const struct entry *place) {
    struct entry entry = *place; /* Python may let the table forget it */
    Py_ssize_t last = PyList_Size(entry.idle) - 1;
    PyObject *plan = Py_NewRef(PyList_GetItem(entry.idle, last)), *request = NULL;
    entry_hold(&entry);
    int taken = PyList_SetSlice(entry.idle, last, last + 1, NULL) == 0;
    PyObject *owner = taken ? PyObject_GetAttrString(plan, "program") : NULL;
    PyObject *over = owner ? PyObject_GetAttrString(plan, "over") : NULL;
    if (over && serves(owner, &entry)) {
        struct program *program = ((Program *)owner)->program;
        int64_t *tags = numbers_of(entry.tags);
        struct reading held[2];
        int number = 0, at_once = 0;
        if (!call->in_place) {
            held[number++] = call->sent;
        }
        if (call->receives) {
            held[number++] = call->received;
        }
        program->tag = (int)tags[NEXT_TAG];
        set_addresses(call, &entry, program);
        request = program_start_request((Program *)owner, over, held, number, &at_once);
        tags[NEXT_TAG] += request != NULL;
        if (request && !at_once) { /* the buffers are held until it is complete */
            call->sent.view.obj = call->received.view.obj = NULL;
        } else if (program->state == BROKEN) {
            PyErr_Clear();
            Py_XDECREF(PyObject_CallMethod(plan, "Free", NULL)); /* its types are nobody else's */
            PyErr_Clear();
            program_failed(program, self->failed, "__call__");
        } else { /* the call is over, or was not made, and the next one can use the plan */
            PyList_Append(entry.idle, plan);
        }
    }
    Py_XDECREF(over);
    Py_XDECREF(owner);
    Py_DECREF(plan);
    entry_release(&entry);
    call_release(call);
    if (request) {
        unsigned long long value = PyLong_AsUnsignedLongLong(request);
        Py_DECREF(request);
        request = request_object(NONBLOCKING, value, NULL);
    }
    return request;
}

PyObject *call_serve(Calls *self, struct call *call) {
    if (!(self->planned & 1u << call->method)) {
        return by_library(call);
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
                call_release(call);
                return PyErr_NoMemory();
            }
            memcpy(key, head, sizeof head);
        }
        key[HEAD - 2] = 0; /* the length of the buffer; the counts say what is used */
        memcpy(key + HEAD, call->vectors, nbytes);
    }
    Py_ssize_t nbytes = numbers * (Py_ssize_t)sizeof *key;
    struct entry *entry = table_find(self, key, nbytes, table_hash(key, numbers));
    PyObject *result = NULL, *tally = entry ? entry->tally : NULL;
    int64_t begin = tally ? tally_now() : 0;
    Py_XINCREF(tally); /* the table may forget it meanwhile */
    if (!entry || (entry->program && entry->program->freed) ||
        (entry->idle && PyList_Size(entry->idle) <= 0) || (entry->tags && !tags_left(entry->tags)) ||
        (tally && numbers_of(tally)[TIMES] >= entry->until)) {
        call_release(call);
        result = PyBytes_FromStringAndSize((const char *)key, nbytes);
    } else if ((entry->idle || entry->program) && !apart(call)) {
        call_release(call);
        result = Py_NewRef(Py_None); /* Python says whether that is wrong */
    } else if (entry->idle) {
        result = by_request(self, call, entry);
    } else if (!entry->program) {
        call->switched = entry->switched;
        if (entry->switched.comm) {
            call->comm = handle_of(entry->switched.comm);
        }
        result = by_library(call);
    } else {
        result = by_program(self, call, entry);
    }
    if (tally && result == Py_True) {
        tally_count(tally, begin);
    }
    Py_XDECREF(tally);
    if (key != some) {
        free(key);
    }
    return result;
}
