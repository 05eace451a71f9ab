/* The plain buffers, which most calls bring.  Everything else mpi4py reads. */
#include "binding.h"

#include <string.h>

struct known_type {
    handle type;
    int64_t size; /* 0: an empty entry */
};

#define TABLE 256 /* entries, more than twice as many as MPI has predefined types */
static struct known_type by_handle[TABLE];
static struct known_type by_format[2][128]; /* complex numbers have a Z before their letter */
#define MOST_DTYPES 32
static struct {
    PyObject *dtype;
    struct known_type type;
} by_dtype[MOST_DTYPES]; /* NumPy's own, of which there is one object each */
static PyTypeObject *array_class;
static PyObject *dtype_name;
static handle operators[64];
static int operators_number;
static PyTypeObject *datatype_class, *op_class;
static Py_ssize_t handle_offset;

void *place_of_handle(PyObject *object) { return (char *)object + handle_offset; }

handle handle_of(PyObject *object) { return handle_at(&mpi, place_of_handle(object)); }

void set_handle_of(PyObject *object, handle value) {
    set_handle(&mpi, place_of_handle(object), value);
}

static struct known_type *entry_of(handle type) {
    unsigned place = (unsigned)((type * 0x9E3779B97F4A7C15u) >> 56);
    while (by_handle[place].size && by_handle[place].type != type) {
        place = (place + 1) % TABLE;
    }
    return &by_handle[place];
}

static struct known_type *format_entry(const char *format) {
    if (!format) {
        format = "B"; /* as the buffer protocol has it */
    }
    int is_complex = format[0] == 'Z';
    unsigned char letter = (unsigned char)format[is_complex];
    if (!letter || letter >= 128 || format[is_complex + 1]) {
        return NULL;
    }
    return &by_format[is_complex][letter];
}

int reader_setup(Py_ssize_t offset, PyObject *types, PyObject *given_operators, PyObject *datatype,
                 PyObject *op, PyObject *array, PyObject *dtypes) {
    Py_ssize_t known = PyList_Size(types), native = PyList_Size(dtypes);
    handle_offset = offset;
    operators_number = (int)PyList_Size(given_operators);
    dtype_name = PyUnicode_InternFromString("dtype");
    if (known < 0 || known > TABLE / 2 || operators_number < 0 || operators_number > 64 ||
        native < 0 || native > MOST_DTYPES) {
        PyErr_SetString(PyExc_ValueError, "too many types or operators");
        return 0;
    }
    memset(by_handle, 0, sizeof by_handle);
    memset(by_format, 0, sizeof by_format);
    for (Py_ssize_t n = 0; n < known; n++) {
        unsigned long long type;
        long long size;
        const char *format;
        if (!PyArg_ParseTuple(PyList_GetItem(types, n), "KLs", &type, &size, &format)) {
            return 0;
        }
        /* Python extends the sign of a narrow handle. */
        struct known_type one = {mpi.width == 4 ? (uint32_t)type : type, size};
        *entry_of(one.type) = one;
        struct known_type *place = *format ? format_entry(format) : NULL;
        if (place) {
            *place = one;
        }
    }
    for (int n = 0; n < operators_number; n++) {
        operators[n] = PyLong_AsUnsignedLongLong(PyList_GetItem(given_operators, n));
    }
    for (Py_ssize_t n = 0; n < native; n++) {
        PyObject *dtype;
        unsigned long long type;
        long long size;
        if (!PyArg_ParseTuple(PyList_GetItem(dtypes, n), "OKL", &dtype, &type, &size)) {
            return 0;
        }
        by_dtype[n].dtype = Py_NewRef(dtype);
        by_dtype[n].type = (struct known_type){type, size};
    }
    array_class = (PyTypeObject *)Py_NewRef(array);
    datatype_class = (PyTypeObject *)Py_NewRef(datatype);
    op_class = (PyTypeObject *)Py_NewRef(op);
    return !PyErr_Occurred();
}

int is_predefined(handle op) {
    for (int n = 0; n < operators_number; n++) {
        if (operators[n] == op) {
            return 1;
        }
    }
    return 0;
}

int read_operator(PyObject *object, handle *op) {
    return Py_TYPE(object) == op_class && (*op = handle_of(object), is_predefined(*op));
}

static int read_type(PyObject *object, struct reading *reading) {
    if (Py_TYPE(object) != datatype_class) {
        return 0;
    }
    reading->type = handle_of(object);
    reading->size = entry_of(reading->type)->size;
    return reading->size > 0;
}

/* A number that is plainly one. */
static int read_integer(PyObject *object, int64_t *number) {
    if (!PyLong_CheckExact(object)) {
        return 0;
    }
    *number = PyLong_AsLongLong(object);
    if (*number == -1 && PyErr_Occurred()) {
        PyErr_Clear();
        return 0;
    }
    return 1;
}

static Py_ssize_t length_of(PyObject *sequence) {
    return PyList_CheckExact(sequence)    ? PyList_Size(sequence)
           : PyTuple_CheckExact(sequence) ? PyTuple_Size(sequence)
                                          : -1;
}

/* Borrowed; of a list or a tuple. */
static PyObject *item_of(PyObject *sequence, Py_ssize_t n) {
    return PyList_CheckExact(sequence) ? PyList_GetItem(sequence, n) : PyTuple_GetItem(sequence, n);
}

void release_buffer(struct reading *reading) {
    if (reading->view.obj) {
        PyBuffer_Release(&reading->view);
    }
}

static int no_buffer(struct reading *reading) {
    release_buffer(reading);
    reading->view.obj = NULL;
    return 0;
}

/* What the elements of an array are, without asking for their format, which takes long. */
static void read_dtype(PyObject *data, struct reading *reading) {
    PyObject *dtype = PyObject_GetAttr(data, dtype_name);
    for (int n = 0; dtype && n < MOST_DTYPES && by_dtype[n].dtype; n++) {
        if (by_dtype[n].dtype == dtype) {
            reading->type = by_dtype[n].type.type;
            reading->size = by_dtype[n].type.size;
            break;
        }
    }
    Py_XDECREF(dtype);
    PyErr_Clear();
}

/* Take hold of an object's memory; its own format says what the elements are if no type does.  It
   may call Python (`__buffer__`), which may change the list that holds the object. */
static int hold(PyObject *borrowed, int writable, struct reading *reading) {
    PyObject *data = Py_NewRef(borrowed);
    if (!reading->size && Py_TYPE(data) == array_class) {
        read_dtype(data, reading);
    }
    int flags = PyBUF_ANY_CONTIGUOUS | (writable ? PyBUF_WRITABLE : 0) |
                (reading->size ? 0 : PyBUF_FORMAT);
    int held = PyObject_GetBuffer(data, &reading->view, flags) == 0;
    Py_DECREF(data);
    if (!held) {
        PyErr_Clear();
        reading->view.obj = NULL;
        return 0;
    }
    if (!reading->view.len && Py_TYPE(data) != array_class) {
        return no_buffer(reading); /* MPI.BOTTOM and MPI.IN_PLACE look so */
    }
    reading->address = reading->view.buf;
    reading->nbytes = reading->view.len;
    if (!reading->size) {
        const struct known_type *own = format_entry(reading->view.format);
        if (!own || !own->size || own->size != reading->view.itemsize) {
            return no_buffer(reading);
        }
        reading->type = own->type;
        reading->size = own->size;
    }
    return 1;
}

int read_buffer(PyObject *object, int writable, int parts, struct reading *reading) {
    PyObject *data = object;
    int64_t count = -1;
    Py_ssize_t length = length_of(object);
    reading->view.obj = NULL;
    reading->size = 0;
    if (length >= 0) {
        if (length < 2 || length > 3 || !read_type(item_of(object, length - 1), reading) ||
            (length == 3 && (!read_integer(item_of(object, 1), &count) || count < 0))) {
            return 0;
        }
        data = item_of(object, 0);
    }
    if (!hold(data, writable, reading)) {
        return 0;
    }
    int64_t elements = reading->nbytes / reading->size;
    if (count < 0) {
        if (reading->nbytes % reading->size || elements % parts) {
            return no_buffer(reading);
        }
        count = elements / parts;
    } else if (count > elements / parts) {
        return no_buffer(reading);
    }
    reading->count = count;
    return 1;
}

static int read_integers(PyObject *object, int ranks, int *numbers) {
    if (length_of(object) != ranks) {
        return 0;
    }
    for (int n = 0; n < ranks; n++) {
        int64_t number;
        if (!read_integer(item_of(object, n), &number) || number < 0 || number > INT_MAX) {
            return 0;
        }
        numbers[n] = (int)number;
    }
    return 1;
}

/* [data, counts], [data, counts, type], [data, counts, displacements, type]; of the first two also
   with (counts, displacements) in the place of counts. */
int read_vector(PyObject *object, int ranks, int *counts, int *displacements,
                struct reading *reading) {
    PyObject *data = object, *where = NULL;
    Py_ssize_t length = length_of(object);
    reading->view.obj = NULL;
    reading->size = 0;
    if (length >= 0) {
        if (length < 2 || length > 4 ||
            (length > 2 && !read_type(item_of(object, length - 1), reading))) {
            return 0;
        }
        PyObject *many = item_of(object, 1);
        data = item_of(object, 0);
        if (length == 4) {
            where = item_of(object, 2);
        } else if (PyTuple_CheckExact(many)) {
            if (PyTuple_Size(many) != 2) {
                return 0;
            }
            where = PyTuple_GetItem(many, 1);
            many = PyTuple_GetItem(many, 0);
        }
        if (!read_integers(many, ranks, counts) ||
            (where && where != Py_None && !read_integers(where, ranks, displacements))) {
            return 0;
        }
    }
    if (!hold(data, 1, reading)) {
        return 0;
    }
    int64_t elements = reading->nbytes / reading->size, next = 0;
    if (length < 0) { /* divided evenly, and the first ranks get what is left */
        if (reading->nbytes % reading->size || elements > INT_MAX) {
            return no_buffer(reading);
        }
        for (int n = 0; n < ranks; n++) {
            counts[n] = (int)(elements / ranks + (n < elements % ranks));
        }
    }
    for (int n = 0; n < ranks; n++) {
        if (!where || where == Py_None) {
            if (next > INT_MAX) {
                return no_buffer(reading);
            }
            displacements[n] = (int)next;
            next += counts[n];
        }
        if (next > elements || (int64_t)displacements[n] + counts[n] > elements) {
            return no_buffer(reading);
        }
    }
    reading->count = elements;
    return 1;
}
