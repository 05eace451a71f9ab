/* `Program`: a rank's program as an object of Python's. */
#include "binding.h"

#include <stdatomic.h>
#include <stdlib.h>

PyTypeObject *program_type;

static int read_place(PyObject *object, struct place *place) {
    long long offset;
    if (!PyArg_ParseTuple(object, "iL;a place is (slot, offset)", &place->slot, &offset)) {
        return 0;
    }
    place->offset = offset;
    return 1;
}

static int too_large(int64_t count, function large) {
    if (count > INT_MAX && !large) {
        PyErr_SetString(PyExc_OverflowError, "this MPI library takes no counts beyond 2^31");
        return 1;
    }
    return 0;
}

static int read_message(PyObject *object, struct message *message) {
    PyObject *at;
    long long count;
    unsigned long long type;
    if (!PyArg_ParseTuple(object, "piOLK;a message", &message->sends, &message->peer, &at, &count,
                          &type) ||
        !read_place(at, &message->at)) {
        return 0;
    }
    message->count = count;
    message->type = type;
    return !too_large(count, message->sends ? mpi.Isend_c : mpi.Irecv_c);
}

static int read_messages_of(PyObject *numbers, struct program *program, int *used,
                            struct instruction *one) {
    Py_ssize_t number = PyTuple_Size(numbers);
    if (number < 0) {
        return 0;
    }
    one->first = *used;
    one->number = (int)number;
    for (Py_ssize_t n = 0; n < number; n++) {
        program->order[(*used)++] = (int)PyLong_AsLong(PyTuple_GetItem(numbers, n));
    }
    return !PyErr_Occurred();
}

/* (START or AWAIT, messages), (COMBINE, left, right, into, count, type, operator's name, element),
   (COPY, from, into, bytes) or (COPY_TYPED, from, into, count, type, count, type). */
static int read_instruction(PyObject *object, struct program *program, int *used,
                            struct instruction *one) {
    PyObject *left, *right, *into, *kind = PyTuple_GetItem(object, 0);
    long long count, into_count;
    unsigned long long type, into_type;
    const char *operation;
    int element, unused;
    if (!kind || (one->kind = (enum kind)PyLong_AsLong(kind), PyErr_Occurred())) {
        return 0;
    }
    switch (one->kind) {
    case START:
    case AWAIT: {
        PyObject *numbers;
        return PyArg_ParseTuple(object, "iO!", &unused, &PyTuple_Type, &numbers) &&
               read_messages_of(numbers, program, used, one);
    }
    case COMBINE:
        if (!PyArg_ParseTuple(object, "iOOOLKsC", &unused, &left, &right, &into, &count, &type,
                              &operation, &element) ||
            !read_place(left, &one->left) || !read_place(right, &one->right) ||
            !read_place(into, &one->into) || too_large(count, mpi.Reduce_local_c)) {
            return 0;
        }
        one->loop = element < 128 ? kernel_for(operation, (char)element) : NULL;
        one->count = count;
        one->type = type;
        return 1;
    case COPY:
        if (!PyArg_ParseTuple(object, "iOOL", &unused, &left, &into, &count)) {
            return 0;
        }
        break;
    case COPY_TYPED:
        if (!PyArg_ParseTuple(object, "iOOLKLK", &unused, &left, &into, &count, &type, &into_count,
                              &into_type) ||
            too_large(count > into_count ? count : into_count, mpi.Sendrecv_c)) {
            return 0;
        }
        one->type = type;
        one->into_count = into_count;
        one->into_type = into_type;
        break;
    default:
        PyErr_SetString(PyExc_ValueError, "an instruction that nobody knows");
        return 0;
    }
    one->count = count;
    return read_place(left, &one->left) && read_place(into, &one->into);
}

static int numbers_in(PyObject *instructions) {
    Py_ssize_t total = 0;
    for (Py_ssize_t n = 0; n < PyTuple_Size(instructions); n++) {
        PyObject *one = PyTuple_GetItem(instructions, n);
        if (PyTuple_Check(one) && PyTuple_Size(one) == 2) {
            PyObject *numbers = PyTuple_GetItem(one, 1);
            total += PyTuple_Check(numbers) ? PyTuple_Size(numbers) : 0;
        }
    }
    return (int)total;
}

static int fill(struct program *program, PyObject *messages, PyObject *instructions,
                PyObject *requests) {
    int used = 0;
    for (int n = 0; n < program->messages_number; n++) {
        if (!read_message(PyTuple_GetItem(messages, n), &program->messages[n])) {
            return 0;
        }
    }
    for (int n = 0; n < program->instructions_number; n++) {
        PyObject *one = PyTuple_GetItem(instructions, n);
        if (!PyTuple_Check(one)) {
            PyErr_SetString(PyExc_TypeError, "an instruction is a tuple");
            return 0;
        }
        if (!read_instruction(one, program, &used, &program->instructions[n])) {
            return 0;
        }
    }
    if (requests != Py_None) {
        program->persistent = 1;
        if (!PyTuple_Check(requests) || PyTuple_Size(requests) != program->messages_number) {
            PyErr_SetString(PyExc_ValueError, "persistent programs have a request per message");
            return 0;
        }
        for (int n = 0; n < program->messages_number; n++) {
            handle value = PyLong_AsUnsignedLongLong(PyTuple_GetItem(requests, n));
            set_handle(&mpi, program_request(program, n), value);
        }
        if (PyErr_Occurred()) {
            return 0;
        }
    }
    if (!program_check(program)) {
        PyErr_SetString(PyExc_ValueError, "a program with numbers outside of its tables");
        return 0;
    }
    return 1;
}

static PyObject *program_new_object(PyTypeObject *type, PyObject *args, PyObject *named) {
    static char *names[] = {"comm",  "op",         "rank",     "tag",      "slots", "messages",
                            "instructions", "forwarding", "requests", NULL};
    unsigned long long comm, op;
    int rank, tag, slots, forwarding;
    PyObject *messages, *instructions, *requests;
    if (!PyArg_ParseTupleAndKeywords(args, named, "KKiiiO!O!iO", names, &comm, &op, &rank, &tag,
                                     &slots, &PyTuple_Type, &messages, &PyTuple_Type,
                                     &instructions, &forwarding, &requests)) {
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
    self->program = program_new(&mpi, (int)PyTuple_Size(messages), numbers_in(instructions),
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
    if (!fill(self->program, messages, instructions, requests)) {
        Py_DECREF(self);
        return NULL;
    }
    return (PyObject *)self;
}

static void program_dealloc(Program *self) {
    PyTypeObject *type = Py_TYPE((PyObject *)self);
    if (self->program) {
        progress_free(self->program);
    }
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    release(self);
    Py_DECREF(type);
}

static PyObject *busy(void) {
    PyErr_SetString(PyExc_RuntimeError, "this collective is being executed");
    return NULL;
}

enum outcome program_execute(Program *self, enum outcome (*act)(struct program *), int begins) {
    enum outcome outcome = BUSY;
    if (self->freed) {
        PyErr_SetString(PyExc_ValueError, "this collective was freed");
        return BUSY;
    }
    if (!begins || progress_own(self->program)) {
        Py_BEGIN_ALLOW_THREADS
        outcome = act(self->program);
        Py_END_ALLOW_THREADS
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

static PyObject *program_run_object(Program *self, PyObject *unused) {
    (void)unused;
    return executed(self, progress_run, 1);
}

static PyObject *program_start(Program *self, PyObject *unused) {
    (void)unused;
    return executed(self, progress_begin, 1);
}

static PyObject *program_wait(Program *self, PyObject *unused) {
    (void)unused;
    return executed(self, progress_finish, 0);
}

static PyObject *program_test(Program *self, PyObject *unused) {
    (void)unused;
    return executed(self, progress_test, 0);
}

static PyObject *program_give_back(Program *self, PyObject *unused) {
    int pending = 0;
    (void)unused;
    Py_BEGIN_ALLOW_THREADS
    pending = progress_give_up(self->program);
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
                                int number) {
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
    if (outcome < PENDING) {
        Py_DECREF(callback);
        Py_DECREF((PyObject *)self);
        free(completion);
        return mpi_error(self->program->error);
    }
    return PyLong_FromUnsignedLongLong(handle_at(&mpi, &request));
}

static PyObject *program_start_request_alone(Program *self, PyObject *callback) {
    return program_start_request(self, callback, NULL, 0);
}

static PyObject *program_interrupted(Program *self, PyObject *unused) {
    (void)unused;
    return PyBool_FromLong(self->program->state == BROKEN);
}

static PyMethodDef methods[] = {
    {"set_address", (PyCFunction)program_set_address, METH_VARARGS, "Set the address of a slot."},
    {"retag", (PyCFunction)program_retag, METH_O, "Set the tag of its messages."},
    {"run", (PyCFunction)program_run_object, METH_NOARGS, "Execute everything."},
    {"start", (PyCFunction)program_start, METH_NOARGS, "Execute what waits for nothing."},
    {"wait", (PyCFunction)program_wait, METH_NOARGS, "Execute the rest."},
    {"test", (PyCFunction)program_test, METH_NOARGS, "Whether all is done; never blocks."},
    {"interrupted", (PyCFunction)program_interrupted, METH_NOARGS, "Whether it failed half-way."},
    {"start_request", (PyCFunction)program_start_request_alone, METH_O,
     "Start it as a request of MPI's."},
    {"give_back", (PyCFunction)program_give_back, METH_NOARGS, "Free it."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc, "One rank's program, bound to buffers."},
    {Py_tp_new, program_new_object},
    {Py_tp_dealloc, program_dealloc},
    {Py_tp_methods, methods},
    {0, NULL},
};

PyType_Spec program_spec = {
    .name = "collwise.mpi.engine._engine.Program",
    .basicsize = sizeof(Program),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = slots,
};
