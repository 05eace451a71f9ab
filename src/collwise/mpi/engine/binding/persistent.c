/* `Persistent`: a collective that can be started again and again.  Python's class inherits it, and
   does what is not done often. */
#include "binding.h"

/* LOST: it was active when its communicator broke. */
enum request_state { INACTIVE, ACTIVE, REFUSED, LOST };

typedef struct {
    PyObject_HEAD
    Program *program;
    enum request_state state;
} Persistent;

/* Call a method of the Python class that inherits this one. */
static int call_method(Persistent *self, const char *method, PyObject *argument) {
    PyObject *answer = PyObject_CallMethod((PyObject *)self, method, argument ? "O" : NULL, argument);
    Py_XDECREF(answer);
    return answer != NULL;
}

/* Execute a part of the program; an error of MPI may break the communicator. */
static enum outcome executed(Persistent *self, enum outcome (*act)(struct program *)) {
    enum outcome outcome = program_execute(self->program, act, act == progress_begin);
    if (outcome == BROKE || outcome == FAILED) {
        self->state = self->state == ACTIVE ? INACTIVE : self->state;
        program_failed(self->program->program, (PyObject *)self, "_failed");
    }
    return outcome;
}

/* Let Python raise why a request can be neither started nor completed. */
static PyObject *refused(Persistent *self) {
    if (call_method(self, "_refuse", NULL)) {
        PyErr_SetString(PyExc_SystemError, "a refusal that raised nothing");
    }
    return NULL;
}

static PyObject *persistent_start(Persistent *self, PyObject *unused) {
    (void)unused;
    if (self->state != INACTIVE) {
        return refused(self);
    }
    self->state = ACTIVE;
    if (executed(self, progress_begin) < PENDING) {
        self->state = self->state == ACTIVE ? INACTIVE : self->state;
        return NULL;
    }
    Py_RETURN_NONE;
}

/* Whether the arguments are a status or none, which is left as it is. */
static int at_most_a_status(Py_ssize_t positional, PyObject *names) {
    Py_ssize_t named = names ? PyTuple_Size(names) : 0;
    if (positional + named > 1 ||
        (named && PyUnicode_CompareWithASCIIString(PyTuple_GetItem(names, 0), "status"))) {
        PyErr_SetString(PyExc_TypeError, "only a status can be given");
        return 0;
    }
    return 1;
}

static PyObject *persistent_wait(Persistent *self, PyObject *const *args, Py_ssize_t number,
                                 PyObject *names) {
    (void)args;
    if (!at_most_a_status(number, names)) {
        return NULL;
    }
    if (self->state == ACTIVE) {
        if (executed(self, progress_finish) < PENDING) {
            return NULL;
        }
        self->state = INACTIVE;
    }
    return self->state == LOST ? refused(self) : Py_NewRef(Py_True);
}

/* then: the state of one that is done. */
static PyObject *tested(Persistent *self, Py_ssize_t number, PyObject *names,
                        enum request_state then) {
    enum outcome outcome = DONE;
    if (!at_most_a_status(number, names)) {
        return NULL;
    }
    if (self->state == ACTIVE) {
        outcome = executed(self, progress_test);
    } else {
        Py_BEGIN_ALLOW_THREADS
        progress_advance();
        Py_END_ALLOW_THREADS
    }
    if (self->state == LOST) {
        return refused(self);
    }
    if (outcome == DONE && self->state == ACTIVE) {
        self->state = then;
    }
    return outcome < PENDING ? NULL : PyBool_FromLong(outcome == DONE);
}

static PyObject *persistent_test(Persistent *self, PyObject *const *args, Py_ssize_t number,
                                 PyObject *names) {
    (void)args;
    return tested(self, number, names, INACTIVE);
}

static PyObject *persistent_get_status(Persistent *self, PyObject *const *args, Py_ssize_t number,
                                       PyObject *names) {
    (void)args;
    return tested(self, number, names, ACTIVE);
}

static PyObject *persistent_refuse(Persistent *self, PyObject *unused) {
    (void)unused;
    int lost = (self->state == ACTIVE || self->state == LOST) && !self->program->freed;
    self->state = lost ? LOST : REFUSED;
    Py_RETURN_NONE;
}

static PyObject *persistent_active(Persistent *self, void *unused) {
    (void)unused;
    return PyBool_FromLong(self->state == ACTIVE || self->state == LOST);
}

static PyObject *persistent_new(PyTypeObject *type, PyObject *args, PyObject *named) {
    PyObject *program = PyTuple_Size(args) > 0 ? PyTuple_GetItem(args, 0) : NULL;
    (void)named;
    if (!program || Py_TYPE(program) != program_type) {
        PyErr_SetString(PyExc_TypeError, "a persistent collective is made of a Program");
        return NULL;
    }
    allocfunc allocate = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    Persistent *self = (Persistent *)allocate(type, 0);
    if (self) {
        self->program = (Program *)Py_NewRef(program);
    }
    return (PyObject *)self;
}

static void persistent_dealloc(Persistent *self) {
    PyTypeObject *type = Py_TYPE((PyObject *)self);
    Py_CLEAR(self->program);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    release(self);
    Py_DECREF(type);
}

static PyMethodDef methods[] = {
    {"Start", (PyCFunction)persistent_start, METH_NOARGS, "Start the collective."},
    {"Wait", (PyCFunction)(void (*)(void))persistent_wait, METH_FASTCALL | METH_KEYWORDS,
     "Return when this rank's part is complete."},
    {"Test", (PyCFunction)(void (*)(void))persistent_test, METH_FASTCALL | METH_KEYWORDS,
     "Whether this rank's part is complete; completes it if so."},
    {"Get_status", (PyCFunction)(void (*)(void))persistent_get_status,
     METH_FASTCALL | METH_KEYWORDS, "Whether Wait would return at once."},
    {"refuse", (PyCFunction)persistent_refuse, METH_NOARGS, "Refuse to start from now on."},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef properties[] = {
    {"active", (getter)persistent_active, NULL, "Whether it was started and not yet completed.",
     NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc, "A collective that can be started again and again."},
    {Py_tp_new, persistent_new},
    {Py_tp_dealloc, persistent_dealloc},
    {Py_tp_methods, methods},
    {Py_tp_getset, properties},
    {0, NULL},
};

PyType_Spec persistent_spec = {
    .name = "collwise.mpi.engine._engine.Persistent",
    .basicsize = sizeof(Persistent),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
    .slots = slots,
};
