/* `Program`: a rank's program as an object of Python's. */
#include "../core/crossing.h"
#include "binding.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <structmember.h>

PyTypeObject *program_type;

static int too_large(int64_t count, function large) {
    if (count > INT_MAX && !large) {
        PyErr_SetString(PyExc_OverflowError, "this MPI library takes no counts beyond 2^31");
        return 1;
    }
    return 0;
}

/* (sends, peer, place, count, type, bytes, and of one inside the node: rank there, published with,
   has gaps, the COMBINE that may read it there) */
static int read_message(PyObject *object, struct message *message, int number) {
    long long offset, count, nbytes;
    unsigned long long type;
    message->node_rank = -1;
    message->published_with = number;
    if (!PyArg_ParseTuple(object, "pi(iL)LKL|iipi;a message", &message->sends, &message->peer,
                          &message->place.slot, &offset, &count, &type, &nbytes,
                          &message->node_rank, &message->published_with, &message->has_gaps,
                          &message->combine)) {
        return 0;
    }
    message->place.offset = offset;
    message->count = count;
    message->type = type;
    message->nbytes = nbytes;
    return !too_large(count, message->sends ? mpi.Isend_c : mpi.Irecv_c);
}

/* (kind, first, number, left, right, into, count, type, count and type of into, operator's name,
   element), whatever of that its kind needs */
static int read_instruction(PyObject *object, struct instruction *instruction) {
    int kind, element;
    long long left, right, into, count, into_count;
    unsigned long long type, into_type;
    const char *operation;
    if (!PyArg_ParseTuple(object, "iii(iL)(iL)(iL)LKLKsC;an instruction", &kind,
                          &instruction->first, &instruction->number, &instruction->left.slot, &left,
                          &instruction->right.slot, &right, &instruction->into.slot, &into, &count,
                          &type, &into_count, &into_type, &operation, &element)) {
        return 0;
    }
    if (kind < START || kind > COPY_TYPED) {
        PyErr_SetString(PyExc_ValueError, "an instruction that nobody knows");
        return 0;
    }
    instruction->kind = (enum kind)kind;
    instruction->left.offset = left;
    instruction->right.offset = right;
    instruction->into.offset = into;
    instruction->count = count;
    instruction->type = type;
    instruction->into_count = into_count;
    instruction->into_type = into_type;
    if (kind == COMBINE) {
        instruction->loop = element < 128 ? kernel_for(operation, (char)element) : NULL;
        return !too_large(count, mpi.Reduce_local_c);
    }
    return kind != COPY_TYPED ||
           !too_large(count > into_count ? count : into_count, mpi.Sendrecv_c);
}

static PyObject *row(PyObject *table, int n) {
    PyObject *object = PyTuple_GetItem(table, n);
    if (!PyTuple_Check(object)) {
        PyErr_SetString(PyExc_TypeError, "messages and instructions are tuples");
        return NULL;
    }
    return object;
}

/* Its tables are as long as those of Python.   requests: None if it makes them itself. */
static int fill(struct program *program, PyObject *messages, PyObject *order,
                PyObject *instructions, PyObject *requests) {
    for (int n = 0; n < program->messages_number; n++) {
        PyObject *message = row(messages, n);
        if (!message || !read_message(message, &program->messages[n], n)) {
            return 0;
        }
    }
    for (int n = 0; n < program->order_number; n++) {
        program->order[n] = (int)PyLong_AsLong(PyTuple_GetItem(order, n));
    }
    for (int n = 0; n < program->instructions_number; n++) {
        PyObject *instruction = row(instructions, n);
        if (!instruction || !read_instruction(instruction, &program->instructions[n])) {
            return 0;
        }
    }
    program->persistent = requests != Py_None;
    if (program->persistent &&
        (!PyTuple_Check(requests) || PyTuple_Size(requests) != program->messages_number)) {
        PyErr_SetString(PyExc_ValueError, "persistent programs have a request per message");
        return 0;
    }
    for (int n = 0; program->persistent && n < program->messages_number; n++) {
        handle value = PyLong_AsUnsignedLongLong(PyTuple_GetItem(requests, n));
        set_handle(&mpi, program_request(program, n), value);
    }
    if (!PyErr_Occurred() && !program_check(program)) {
        PyErr_SetString(PyExc_ValueError, "a program with numbers outside of its tables");
    }
    return !PyErr_Occurred();
}

/* Let its messages inside the node go through memory.   A persistent one has a lane from now on. */
static int join(Program *self, PyObject *node) {
    if (node == Py_None) {
        return 1;
    }
    if (Py_TYPE(node) != node_type) {
        PyErr_SetString(PyExc_TypeError, "messages go through the memory of a Node");
        return 0;
    }
    self->node = (Node *)Py_NewRef(node);
    self->program->home = self->program->node = self->node->end;
    if (!crossings_prepare(self->program)) {
        PyErr_SetString(PyExc_ValueError, "messages that cannot be published so, or no memory");
        return 0;
    }
    if (self->program->persistent) {
        crossings_take_lane(self->program);
    }
    return 1;
}

static PyObject *program_new_object(PyTypeObject *type, PyObject *args, PyObject *named) {
    static char *names[] = {"comm",  "op",         "rank",     "tag",      "slots", "messages",
                            "order", "instructions", "forwarding", "requests", "node",
                            "quick", "users_type", NULL};
    unsigned long long comm, op;
    int rank, tag, slots, forwarding;
    int quick = 0;
    PyObject *messages, *order, *instructions, *requests, *node = Py_None, *users_type = Py_None;
    if (!PyArg_ParseTupleAndKeywords(args, named, "KKiiiO!O!O!iO|OpO", names, &comm, &op, &rank, &tag,
                                     &slots, &PyTuple_Type, &messages, &PyTuple_Type, &order,
                                     &PyTuple_Type, &instructions, &forwarding, &requests, &node,
                                     &quick, &users_type)) {
        return NULL;
    }
    if (!mpi.width || slots < 0) {
        PyErr_SetString(PyExc_ValueError, "connect() was not called, or a number is negative");
        return NULL;
    }
    allocfunc allocate = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    Program *self = (Program *)allocate(type, 0);
    if (!self) {
        return NULL;
    }
    self->program = program_new(&mpi, (int)PyTuple_Size(messages), (int)PyTuple_Size(order),
                                (int)PyTuple_Size(instructions), slots);
    if (!self->program) {
        Py_DECREF(self);
        return PyErr_NoMemory();
    }
    self->program->comm = comm;
    self->program->op = op;
    self->program->users_op = !is_predefined(op);
    self->program->rank = rank;
    self->program->tag = tag;
    self->program->forwarding = forwarding;
    self->program->quick = quick;
    if (users_type != Py_None) {
        self->users_type = Py_NewRef(users_type);
        self->program->users_type = place_of_handle(users_type);
    }
    if (!fill(self->program, messages, order, instructions, requests) || !join(self, node)) {
        Py_DECREF(self);
        return NULL;
    }
    return (PyObject *)self;
}

static void program_dealloc(Program *self) {
    PyTypeObject *type = Py_TYPE((PyObject *)self);
    if (!self->program || progress_free(self->program)) { /* a step of it may need the memory */
        Py_XDECREF((PyObject *)self->node);
        Py_XDECREF(self->scratch);
        Py_XDECREF(self->users_type);
    }
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    release(self);
    Py_DECREF(type);
}

static PyObject *busy(void) {
    PyErr_SetString(PyExc_RuntimeError, "this collective is being executed");
    return NULL;
}

int refused_in_child(void) {
    if (progress_forked()) {
        PyErr_SetString(PyExc_RuntimeError, "a forked process has no part in its parent's collectives");
    }
    return progress_forked();
}

enum outcome program_execute(Program *self, enum outcome (*act)(struct program *), int begins) {
    enum outcome outcome = BUSY;
    if (self->freed) {
        PyErr_SetString(PyExc_ValueError, "this collective was freed");
        return BUSY;
    }
    if (refused_in_child()) {
        return BUSY;
    }
    if (!begins || progress_own(self->program)) {
        outcome = act(self->program);
    }
    if (outcome == BUSY) {
        busy();
    }
    return outcome;
}

static PyObject *program_set_address(Program *self, PyObject *args) {
    int slot;
    PyObject *address;
    if (!PyArg_ParseTuple(args, "iO", &slot, &address)) {
        return NULL;
    }
    if (self->program->state != IDLE) {
        return busy();
    }
    /* It may be where position 0 would be, before any memory: a negative number, or a large one. */
    unsigned long long value = PyLong_AsUnsignedLongLongMask(address);
    if (PyErr_Occurred()) {
        return NULL;
    }
    if (slot < 0 || slot >= self->program->slots_number) {
        PyErr_SetString(PyExc_IndexError, "no such slot");
        return NULL;
    }
    self->program->slots[slot] = (char *)(uintptr_t)value;
    Py_RETURN_NONE;
}

static PyObject *program_retag(Program *self, PyObject *object) {
    long tag = PyLong_AsLong(object);
    if (tag == -1 && PyErr_Occurred()) {
        return NULL;
    }
    if (self->program->state != IDLE) {
        return busy();
    }
    self->program->tag = (int)tag;
    Py_RETURN_NONE;
}

static PyObject *executed(Program *self, enum outcome (*act)(struct program *), int begins) {
    enum outcome outcome = program_execute(self, act, begins);
    if (outcome < PENDING) {
        return outcome == BUSY ? NULL : mpi_error(self->program->error);
    }
    return PyBool_FromLong(outcome == DONE);
}

#define EXECUTES(name, act, begins) \
    static PyObject *name(Program *self, PyObject *unused) { \
        (void)unused; \
        return executed(self, act, begins); \
    }
EXECUTES(program_run_object, progress_run, 1)
EXECUTES(program_start, progress_begin, 1)
EXECUTES(program_wait, progress_finish, 0)
EXECUTES(program_test, progress_test, 0)

static PyObject *program_give_back(Program *self, PyObject *unused) {
    int pending = 0;
    (void)unused;
    Py_BEGIN_ALLOW_THREADS
    pending = progress_forked() ? 0 : progress_give_up(self->program);
    Py_END_ALLOW_THREADS
    if (pending < 0) {
        return busy();
    }
    self->freed = 1;
    return PyBool_FromLong(pending == 0);
}

/* --- as a request of MPI's ---------------------------------------------------------------------- */

/* A program whose request was completed and freed, somewhere inside of MPI and without the GIL. */
struct completion {
    Program *program;
    PyObject *completed; /* called without arguments, with the GIL */
    struct reading held[2];
    int held_number;
    struct completion *next;
};

static _Atomic(struct completion *) completions;

/* Release what completed requests held, and call their `completed`; with the GIL. */
static int give_back_completed(void *unused) {
    (void)unused;
    struct completion *one = atomic_exchange(&completions, NULL);
    while (one) {
        struct completion *next = one->next;
        Py_BEGIN_ALLOW_THREADS
        progress_complete(one->program->program);
        Py_END_ALLOW_THREADS
        for (int n = 0; n < one->held_number; n++) {
            release_buffer(&one->held[n]);
        }
        PyObject *answer = PyObject_CallNoArgs(one->completed);
        if (!answer) {
            PyErr_WriteUnraisable(one->completed);
        }
        Py_XDECREF(answer);
        Py_DECREF(one->completed);
        Py_DECREF((PyObject *)one->program);
        free(one);
        one = next;
    }
    return 0;
}

static void was_freed(void *owner) {
    struct completion *one = owner, *first = atomic_load(&completions);
    do {
        one->next = first;
    } while (!atomic_compare_exchange_weak(&completions, &first, one));
    if (Py_IsInitialized()) {
        /* Where the queue is full, the next request that completes does this. */
        Py_AddPendingCall(give_back_completed, NULL);
    }
}

PyObject *program_start_request(Program *self, PyObject *callback, const struct reading *held,
                                int number, int *over) {
    if (refused_in_child()) {
        return NULL;
    }
    give_back_completed(NULL);
    if (self->freed || !progress_own(self->program)) {
        return busy();
    }
    struct completion *completion = malloc(sizeof *completion);
    if (!completion || !mpi.hooks) {
        free(completion);
        self->program->state = IDLE;
        return mpi.hooks ? PyErr_NoMemory()
                         : PyErr_Format(PyExc_NotImplementedError, "this library has no hooks");
    }
    uint64_t request = 0;
    enum outcome outcome;
    *completion = (struct completion){.program = (Program *)Py_NewRef((PyObject *)self),
                                      .completed = Py_NewRef(callback),
                                      .held_number = number};
    for (int n = 0; n < number; n++) {
        completion->held[n] = held[n];
    }
    Py_BEGIN_ALLOW_THREADS
    outcome = progress_start_request(self->program, &request, was_freed, completion);
    Py_END_ALLOW_THREADS
    *over = outcome == DONE;
    if (outcome != PENDING) {
        Py_DECREF(callback);
        Py_DECREF((PyObject *)self);
        free(completion);
    }
    return outcome < PENDING ? mpi_error(self->program->error)
                             : PyLong_FromUnsignedLongLong(handle_at(&mpi, &request));
}

static PyObject *program_start_request_alone(Program *self, PyObject *callback) {
    int over;
    PyObject *request = program_start_request(self, callback, NULL, 0, &over);
    PyObject *answer = request && over ? PyObject_CallNoArgs(callback) : NULL;
    if (request && over && !answer) {
        PyErr_WriteUnraisable(callback);
    }
    Py_XDECREF(answer);
    return request;
}

static PyObject *program_interrupted(Program *self, PyObject *unused) {
    (void)unused;
    return PyBool_FromLong(self->program->state == BROKEN);
}

static PyObject *program_in_memory_object(Program *self, PyObject *unused) {
    (void)unused;
    return PyBool_FromLong(program_in_memory(self->program));
}

static PyMethodDef methods[] = {
    {"set_address", (PyCFunction)program_set_address, METH_VARARGS, "Set the address of a slot."},
    {"retag", (PyCFunction)program_retag, METH_O, "Set the tag of its messages."},
    {"run", (PyCFunction)program_run_object, METH_NOARGS, "Execute everything."},
    {"start", (PyCFunction)program_start, METH_NOARGS, "Execute what waits for nothing."},
    {"wait", (PyCFunction)program_wait, METH_NOARGS, "Execute the rest."},
    {"test", (PyCFunction)program_test, METH_NOARGS, "Whether all is done; never blocks."},
    {"interrupted", (PyCFunction)program_interrupted, METH_NOARGS, "Whether it failed half-way."},
    {"in_memory", (PyCFunction)program_in_memory_object, METH_NOARGS, "Whether MPI carries no message."},
    {"start_request", (PyCFunction)program_start_request_alone, METH_O,
     "Start it as a request of MPI's."},
    {"give_back", (PyCFunction)program_give_back, METH_NOARGS, "Free it."},
    {NULL, NULL, 0, NULL},
};

static PyMemberDef members[] = {
    {"scratch", T_OBJECT, offsetof(Program, scratch), 0, "The memory of slots in no buffer."},
    {NULL, 0, 0, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc, "One rank's program, bound to buffers."},
    {Py_tp_new, program_new_object},
    {Py_tp_dealloc, program_dealloc},
    {Py_tp_methods, methods},
    {Py_tp_members, members},
    {0, NULL},
};

PyType_Spec program_spec = {
    .name = "collwise.mpi.engine._engine.Program",
    .basicsize = sizeof(Program),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = slots,
};
