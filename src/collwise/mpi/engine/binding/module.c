/* The Python module `_engine`: finds MPI's functions, and makes programs of what Python worked out. */
#define _GNU_SOURCE /* RTLD_DEFAULT */
#include "calls.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

struct library mpi;
PyObject *mpi_exception, *mpi_in_place;
void *mpi_in_place_value;

PyObject *mpi_error(int code) {
    PyObject *error = PyObject_CallFunction(mpi_exception, "i", code);
    if (error) {
        PyErr_SetObject(mpi_exception, error);
        Py_DECREF(error);
    }
    return NULL;
}

PyObject *program_failed(const struct program *program, PyObject *owner, const char *method) {
    PyObject *type, *value, *trace;
    mpi_error(program->error);
    PyErr_Fetch(&type, &value, &trace);
    PyErr_NormalizeException(&type, &value, &trace);
    PyObject *answer = PyObject_CallMethod(owner, method, "O", value);
    if (answer) {
        Py_DECREF(answer);
        PyErr_Restore(type, value, trace);
    } else { /* what it raises is raised instead */
        Py_XDECREF(type);
        Py_XDECREF(value);
        Py_XDECREF(trace);
    }
    return NULL;
}

/* A function of MPI: first in the global scope, so that tools which were preloaded see the calls,
   then in the library that mpi4py is linked with. */
static function look_up(void *library, const char *prefix, const char *name) {
    char full[64];
    snprintf(full, sizeof full, "%s%s", prefix, name);
    void *symbol = dlsym(RTLD_DEFAULT, full);
    if (!symbol) {
        symbol = dlsym(library, full);
    }
    function result;
    memcpy(&result, &symbol, sizeof result); /* what POSIX has dlsym return functions for */
    return result;
}

static void *let_go_of_gil(void) { return PyEval_SaveThread(); }
static void regain_gil(void *thread) {
    if (thread) {
        PyEval_RestoreThread(thread);
    }
}

/* connect(path, width, status_size, too_long, no_memory, nobody, byte): look up MPI's functions in a library
   that is loaded, and in those that it needs.  Returns the names of those that are missing. */
static PyObject *connect_library(PyObject *module, PyObject *args) {
    const char *path;
    int width, status_size, too_long, no_memory, nobody;
    unsigned long long byte;
    (void)module;
    if (!PyArg_ParseTuple(args, "siiiiiK", &path, &width, &status_size, &too_long, &no_memory,
                          &nobody, &byte)) {
        return NULL;
    }
    if ((width != 4 && width != 8) || status_size < 0 || status_size > 4096) {
        return PyErr_Format(PyExc_ValueError, "handles of %d bytes, statuses of %d", width,
                            status_size);
    }
    void *library = dlopen(path, RTLD_LAZY | RTLD_NOLOAD);
    if (!library) {
        return PyErr_Format(PyExc_OSError, "%s is not loaded", path);
    }
    struct library candidate = {
        .width = width, .status_size = status_size, .too_long = too_long, .no_memory = no_memory};
    PyObject *missing = PyList_New(0);
#define LOOK_UP(name, args) \
    candidate.name##_c = look_up(library, "MPI_", #name "_c"); \
    candidate.name = look_up(library, "MPI_", #name); \
    if (missing && !candidate.name) { \
        PyObject *text = PyUnicode_FromString("MPI_" #name); \
        if (!text || PyList_Append(missing, text) < 0) { \
            Py_CLEAR(missing); \
        } \
        Py_XDECREF(text); \
    }
    MPI_FUNCTIONS(LOOK_UP)
#undef LOOK_UP
    candidate.hooks = width == 4; /* MPICH's own handles */
#define LOOK_UP(name) \
    candidate.name = look_up(library, "", #name); \
    candidate.hooks &= candidate.name != NULL;
    OPTIONAL_FUNCTIONS(LOOK_UP)
#undef LOOK_UP
#define LOOK_UP(name) candidate.name = look_up(library, "MPI_", #name);
    LATER_FUNCTIONS(LOOK_UP)
#undef LOOK_UP
#define LOOK_UP(name) candidate.name = look_up(library, "", #name);
    TOOL_FUNCTIONS(LOOK_UP)
#undef LOOK_UP
    candidate.null_stream = 0x3c000000; /* MPIX_STREAM_NULL */
    candidate.nobody = nobody;
    candidate.byte = byte;
    candidate.let_go = let_go_of_gil;
    candidate.regain = regain_gil;
    candidate.patience = 300; /* some ten microseconds */
    if (missing && PyList_Size(missing) == 0) {
        progress_watch_forks();
        mpi = candidate;
    }
    return missing;
}

/* describe(what mpi4py's and NumPy's objects are like): mpi4py's Exception, IN_PLACE and its address,
   Request and Prequest, where what must live as long lies in these, the handle of MPI_INFO_NULL,
   DATATYPE_NULL, ERR_OTHER, where statuses have their bytes (or -1), the offset of handles in all
   objects, Datatype and Op; `types`, a list of (handle, bytes of an element, format); `operators`, a
   list of handles; NumPy's class of arrays; `dtypes`, a list of (dtype, handle, bytes of an element). */
static PyObject *describe(PyObject *module, PyObject *args) {
    PyObject *exception, *in_place, *request, *prequest, *datatype, *op, *types, *operators, *array;
    PyObject *no_type, *dtypes;
    long long address;
    unsigned long long info;
    Py_ssize_t held, handle_offset;
    (void)module;
    if (!PyArg_ParseTuple(args, "OOLOOnKOiinO!O!O!O!O!O!", &exception, &in_place, &address, &request,
                          &prequest, &held, &info, &no_type, &mpi.other, &mpi.count_at,
                          &handle_offset, &PyType_Type, &datatype,
                          &PyType_Type, &op, &PyList_Type, &types, &PyList_Type, &operators,
                          &PyType_Type, &array, &PyList_Type, &dtypes) ||
        !reader_setup(handle_offset, types, operators, datatype, op, array, dtypes)) {
        return NULL;
    }
    mpi_exception = Py_NewRef(exception);
    mpi_in_place = Py_NewRef(in_place);
    mpi_in_place_value = (void *)(intptr_t)address;
    request_classes[NONBLOCKING] = Py_NewRef(request);
    request_classes[PERSISTENT] = Py_NewRef(prequest);
    request_held = held;
    mpi.no_info = info;
    mpi.no_type = handle_of(no_type);
    Py_RETURN_NONE;
}

static PyObject *running(PyObject *module, PyObject *unused) {
    (void)module, (void)unused;
    return PyLong_FromLong(progress_running());
}

static PyObject *quick_runs(PyObject *module, PyObject *unused) {
    (void)module, (void)unused;
    return PyLong_FromUnsignedLong(progress_quick_runs);
}

static PyObject *requests(PyObject *module, PyObject *unused) {
    (void)module, (void)unused;
    return PyLong_FromLong(progress_requests());
}

static PyObject *advance(PyObject *module, PyObject *unused) {
    (void)module, (void)unused;
    if (progress_running()) {
        Py_BEGIN_ALLOW_THREADS
        progress_advance();
        Py_END_ALLOW_THREADS
    }
    Py_RETURN_NONE;
}

static PyObject *allow_helper(PyObject *module, PyObject *everything) {
    (void)module;
    progress_allow_helper(PyObject_IsTrue(everything) == 1);
    Py_RETURN_NONE;
}

static PyObject *stop(PyObject *module, PyObject *unused) {
    (void)module, (void)unused;
    Py_BEGIN_ALLOW_THREADS
    progress_stop();
    Py_END_ALLOW_THREADS
    Py_RETURN_NONE;
}

static PyObject *hooks(PyObject *module, PyObject *unused) {
    (void)module, (void)unused;
    return PyBool_FromLong(mpi.hooks);
}

static PyObject *guard(PyObject *module, PyObject *unused) {
    (void)module, (void)unused;
    switch_guard();
    Py_RETURN_NONE;
}

static PyObject *hold(PyObject *module, PyObject *unused) {
    (void)module, (void)unused;
    return PyBool_FromLong(switch_hold());
}

static PyObject *let_go(PyObject *module, PyObject *unused) {
    (void)module, (void)unused;
    switch_release();
    Py_RETURN_NONE;
}

static PyObject *share_cores(PyObject *module, PyObject *unused) {
    (void)module, (void)unused;
    mpi.patience = 0;
    Py_RETURN_NONE;
}

static PyObject *has_loop(PyObject *module, PyObject *args) {
    const char *operation;
    int element;
    (void)module;
    if (!PyArg_ParseTuple(args, "sC", &operation, &element)) {
        return NULL;
    }
    return PyBool_FromLong(element < 128 && kernel_for(operation, (char)element) != NULL);
}

static PyObject *bytes_of_node(PyObject *module, PyObject *args) {
    int ranks;
    (void)module;
    return PyArg_ParseTuple(args, "i", &ranks) ? PyLong_FromLongLong(node_nbytes(ranks)) : NULL;
}

static PyMethodDef functions[] = {
    {"connect", connect_library, METH_VARARGS,
     "connect(path, width, status_size, too_long, no_memory, nobody, byte)"},
    {"describe", describe, METH_VARARGS, "describe(what mpi4py's and NumPy's objects are like)"},
    {"running", running, METH_NOARGS, "How many programs other ranks wait for."},
    {"quick_runs", quick_runs, METH_NOARGS, "How many executions ended with the GIL held."},
    {"requests", requests, METH_NOARGS, "How many requests of MPI's are executed by its hooks."},
    {"advance", advance, METH_NOARGS, "Advance them."},
    {"allow_helper", allow_helper, METH_O, "Let a helper thread advance them."},
    {"stop", stop, METH_NOARGS, "End the helper thread."},
    {"hooks", hooks, METH_NOARGS, "Whether the library calls us when it makes progress."},
    {"guard", guard, METH_NOARGS, "From now on the library's calls hold the lock of its variables."},
    {"hold", hold, METH_NOARGS, "Take the lock of the library's variables; False if it is taken."},
    {"release", let_go, METH_NOARGS, "Give it back."},
    {"share_cores", share_cores, METH_NOARGS, "From now on block at once: others need the core."},
    {"node_nbytes", bytes_of_node, METH_VARARGS, "node_nbytes(ranks)"},
    {"mark", node_mark, METH_NOARGS, "This process, the address of a word, and the word."},
    {"reads", node_reads_mark, METH_VARARGS, "Whether the mark of a process can be read in its memory."},
    {"bounce", node_bounce, METH_VARARGS, "bounce(memory, first, begin, end)"},
    {"has_loop", has_loop, METH_VARARGS, "has_loop(operator, element)"},
    {NULL, NULL, 0, NULL},
};

#define FAILS_TO_ADD(kind) PyModule_AddIntConstant(module, #kind, kind) < 0

static int add_types(PyObject *module) {
    PyObject *program = PyType_FromModuleAndSpec(module, &program_spec, NULL);
    PyObject *calls = PyType_FromModuleAndSpec(module, &calls_spec, NULL);
    PyObject *persistent = PyType_FromModuleAndSpec(module, &persistent_spec, NULL);
    PyObject *node = PyType_FromModuleAndSpec(module, &node_spec, NULL);
    program_type = (PyTypeObject *)program;
    node_type = (PyTypeObject *)node;
    int fails = !program || !calls || !persistent || !node ||
                PyModule_AddObjectRef(module, "Node", node) < 0 ||
                PyModule_AddObjectRef(module, "Program", program) < 0 ||
                PyModule_AddObjectRef(module, "Calls", calls) < 0 ||
                PyModule_AddObjectRef(module, "Persistent", persistent) < 0 ||
                FAILS_TO_ADD(START) || FAILS_TO_ADD(AWAIT) || FAILS_TO_ADD(COMBINE) ||
                FAILS_TO_ADD(COPY) || FAILS_TO_ADD(COPY_TYPED);
    Py_XDECREF(calls);
    Py_XDECREF(persistent);
    return -fails;
}

static PyModuleDef_Slot slots[] = {
    {Py_mod_exec, add_types},
    {0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, .m_name = "_engine", .m_methods = functions, .m_slots = slots,
};

PyMODINIT_FUNC PyInit__engine(void) { return PyModuleDef_Init(&definition); }
