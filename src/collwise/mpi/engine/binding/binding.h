/* What the parts of the Python module share.  Only CPython's limited API is used. */
#ifndef COLLWISE_BINDING_H
#define COLLWISE_BINDING_H

#define Py_LIMITED_API 0x030b0000
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "../core/progress.h"

/* The MPI library of this process, and what mpi4py's objects look like. */
extern struct library mpi;
extern PyObject *mpi_exception;  /* mpi4py's MPI.Exception */
extern PyObject *mpi_in_place;   /* mpi4py's MPI.IN_PLACE */
extern void *mpi_in_place_value; /* the pointer for it */

/* Raise MPI.Exception for an error code of the library; returns NULL. */
PyObject *mpi_error(int code);

/* The same for a program that failed; before, a method of `owner` hears of it. */
PyObject *program_failed(const struct program *program, PyObject *owner, const char *method);

/* The handle in an object of mpi4py's. */
handle handle_of(PyObject *object);
void set_handle_of(PyObject *object, handle value);
void *place_of_handle(PyObject *object);

/* A rank's end of the memory that the ranks of a node share. */
typedef struct {
    PyObject_HEAD
    Py_buffer memory;
    int ranks;
    struct node *end;
} Node;

typedef struct {
    PyObject_HEAD
    struct program *program;
    Node *node; /* or NULL */
    PyObject *scratch; /* the memory of slots that are in no buffer of a call, or NULL */
    PyObject *users_type; /* a Datatype of mpi4py's, or NULL */
    int freed; /* its owner gave it back */
} Program;

/* Whether this is a forked child, in which nothing is executed; then an exception is raised. */
int refused_in_child(void);

/* Execute a part of a program, which lets the GIL go for MPI and to wait.   begins: it has to be IDLE.   A negative outcome: an
   exception is raised, but for BROKE and FAILED, of which the caller tells. */
enum outcome program_execute(Program *self, enum outcome (*act)(struct program *), int begins);

/* Functions of the module: a word of this process, whether another's can be read, and how long a cache
   line takes (`_engine.pyi`). */
PyObject *node_mark(PyObject *module, PyObject *unused);
PyObject *node_reads_mark(PyObject *module, PyObject *args);
PyObject *node_bounce(PyObject *module, PyObject *args);

extern PyTypeObject *program_type, *node_type;
extern PyType_Spec program_spec, calls_spec, persistent_spec, node_spec;

/* Set where handles lie in objects of mpi4py's, and what is predefined: `types` is a list of (handle,
   bytes of an element, format), `operators` one of handles, `dtypes` one of (NumPy's dtype, handle,
   bytes); and the classes of mpi4py and of NumPy's arrays. */
int reader_setup(Py_ssize_t offset, PyObject *types, PyObject *operators, PyObject *datatype,
                 PyObject *op, PyObject *array, PyObject *dtypes);

/* A contiguous buffer of elements of a predefined type. */
struct reading {
    Py_buffer view;
    char *address;
    int64_t count;
    int64_t size; /* bytes of an element */
    handle type;
    int64_t nbytes; /* of the whole buffer, of which the count may take less */
};

/* Read a buffer: an object with elements of its own, `[object, type]` or `[object, count, type]`.
   Returns 0, without an exception, for everything else, which is for mpi4py to read.   parts:
   where the count is not given, it is for so many ranks together, and divided. */
int read_buffer(PyObject *object, int writable, int parts, struct reading *reading);

/* Read the receive buffer of an Allgatherv.   counts, displacements: room for `ranks` of each. */
int read_vector(PyObject *object, int ranks, int *counts, int *displacements,
                struct reading *reading);

void release_buffer(struct reading *reading);

/* Start a program as a request of MPI's; returns its handle.   completed: is called, with the GIL,
   after the request was completed.   held: `number` buffers, released at the same time, and kept by
   the caller if the start fails.   over: whether all is done; then nothing is held, nor called. */
PyObject *program_start_request(Program *self, PyObject *completed, const struct reading *held,
                                int number, int *over);

/* An operator whose handle means the same for ever; 0 for all others. */
int read_operator(PyObject *object, handle *op);
int is_predefined(handle op);

#endif
