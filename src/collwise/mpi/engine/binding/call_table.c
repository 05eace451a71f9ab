/* The table of `Calls`: what serves the calls of a key, and the tallies in which they are counted. */
#include "calls.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

uint64_t table_hash(const int64_t *key, Py_ssize_t numbers) {
    uint64_t hash = 0x9E3779B97F4A7C15u;
    for (Py_ssize_t n = 0; n < numbers; n++) {
        hash = (hash ^ (uint64_t)key[n]) * 0xFF51AFD7ED558CCDu;
        hash ^= hash >> 32;
    }
    return hash;
}

/* The entry of a key, or NULL. */
struct entry *table_find(const Calls *self, const void *key, Py_ssize_t nbytes, uint64_t hash) {
    unsigned number = self->size ? self->chains[hash & (self->size - 1)] : 0;
    while (number) {
        struct entry *entry = &self->entries[number - 1];
        char *known;
        Py_ssize_t length;
        if (entry->hash == hash && PyBytes_AsStringAndSize(entry->key, &known, &length) == 0 &&
            length == nbytes && !memcmp(known, key, (size_t)nbytes)) {
            return entry;
        }
        number = entry->next;
    }
    return NULL;
}

void entry_hold(struct entry *entry) {
    Py_XINCREF(entry->key);
    Py_XINCREF((PyObject *)entry->program);
    Py_XINCREF(entry->switched.comm);
    Py_XINCREF(entry->tally);
    Py_XINCREF(entry->idle);
    Py_XINCREF(entry->tags);
}

void entry_release(struct entry *entry) {
    Py_XDECREF(entry->key);
    Py_XDECREF((PyObject *)entry->program);
    Py_XDECREF(entry->switched.comm);
    Py_XDECREF(entry->tally);
    Py_XDECREF(entry->idle);
    Py_XDECREF(entry->tags);
}

void table_forget(Calls *self) {
    struct entry *entries = self->entries;
    unsigned used = self->used;
    free(self->chains);
    self->entries = NULL;
    self->chains = NULL;
    self->size = self->used = 0;
    self->remembered = 0;
    for (unsigned n = 0; n < used; n++) {
        entry_release(&entries[n]);
    }
    free(entries);
}

int64_t *numbers_of(PyObject *memory) {
    return (int64_t *)(void *)PyByteArray_AsString(memory);
}

int64_t tally_now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

/* Count a call that began at a time and is over now. */
void tally_count(PyObject *tally, int64_t begin) {
    int64_t *numbers = numbers_of(tally), end = tally_now();
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

static void chain(Calls *self, unsigned number) {
    unsigned *first = &self->chains[self->entries[number].hash & (self->size - 1)];
    self->entries[number].next = *first;
    *first = number + 1;
}

static int grow(Calls *self) {
    unsigned size = self->size ? 2 * self->size : 32;
    struct entry *entries = realloc(self->entries, size * sizeof *entries);
    self->entries = entries ? entries : self->entries;
    unsigned *chains = entries ? calloc(size, sizeof *chains) : NULL;
    if (!chains) {
        PyErr_NoMemory();
        return 0;
    }
    free(self->chains);
    self->chains = chains;
    self->size = size;
    for (unsigned n = 0; n < self->used; n++) {
        chain(self, n);
    }
    return 1;
}

/* Remember a new one, in the place of the oldest where there are MOST.   old: what stood there. */
static int add(Calls *self, const struct entry *entry, struct entry *old) {
    if (self->used == self->size && self->size < MOST && !grow(self)) {
        return 0;
    }
    unsigned number = (unsigned)(self->remembered++ % MOST);
    if (number < self->used) {
        *old = self->entries[number];
        unsigned *link = &self->chains[old->hash & (self->size - 1)];
        while (*link != number + 1) {
            link = &self->entries[*link - 1].next;
        }
        *link = old->next;
    } else {
        self->used++;
    }
    self->entries[number] = *entry;
    chain(self, number);
    return 1;
}

/* Where the slots of a program lie. */
static int read_locations(PyObject *locations, const struct program *program, struct entry *entry) {
    entry->locations_number = (int)PyTuple_Size(locations);
    for (int n = 0; n < entry->locations_number; n++) {
        struct slot_location *location = &entry->locations[n];
        long long displacement;
        if (!PyArg_ParseTuple(PyTuple_GetItem(locations, n), "ipL", &location->slot,
                              &location->received, &displacement)) {
            return 0;
        }
        location->displacement = displacement;
        if (!program || location->slot < 0 || location->slot >= program->slots_number) {
            PyErr_SetString(PyExc_IndexError, "no such slot");
            return 0;
        }
    }
    return 1;
}

/* How the library's own serves: on another communicator, or with other values of its variables. */
static int read_switched(PyObject *object, struct switched *switched) {
    if (!PyTuple_Check(object)) {
        switched->comm = object;
        return 1;
    }
    switched->settings_number = (int)PyTuple_Size(object);
    if (switched->settings_number > MOST_SETTINGS || !mpi.MPI_T_cvar_read || !mpi.MPI_T_cvar_write) {
        PyErr_SetString(PyExc_TypeError, "a few variables of a library that has some");
        return 0;
    }
    for (int n = 0; n < switched->settings_number; n++) {
        unsigned long long variable;
        if (!PyArg_ParseTuple(PyTuple_GetItem(object, n), "Ki", &variable,
                              &switched->settings[n].value)) {
            return 0;
        }
        switched->settings[n].variable = (void *)(uintptr_t)variable;
    }
    return 1;
}

/* The memory of so many numbers, or None. */
static int read_memory(PyObject *object, Py_ssize_t numbers, PyObject **memory) {
    if (object == Py_None) {
        return 1;
    }
    *memory = object;
    if (!PyByteArray_Check(object) ||
        PyByteArray_Size(object) < numbers * (Py_ssize_t)sizeof(int64_t)) {
        PyErr_Format(PyExc_TypeError, "a bytearray for %zd numbers, or None", numbers);
        return 0;
    }
    return 1;
}

/* remember(key, program, locations, tally, idle, tags): the program serves calls of this key from now
   on; if it is None, the library's own collective does.  It may be a communicator on which to call
   that instead, or a tuple of (variable, value) that hold during the call.
   locations: (slot, whether it lies in the receive buffer, displacement in bytes) of each slot.
   tally: the memory in which calls are counted, or None.
   idle, tags: for non-blocking and persistent calls, the list of idle plans to start them on, and the
   memory of the next tag and the last one. */
PyObject *calls_remember(Calls *self, PyObject *args) {
    PyObject *program, *locations, *tally = Py_None, *tags = Py_None;
    struct entry entry = {.until = INT64_MAX};
    char *text;
    Py_ssize_t length;
    if (!PyArg_ParseTuple(args, "O!OO!|OO!O", &PyBytes_Type, &entry.key, &program, &PyTuple_Type,
                          &locations, &tally, &PyList_Type, &entry.idle, &tags) ||
        PyBytes_AsStringAndSize(entry.key, &text, &length) < 0 ||
        !read_memory(tally, NUMBERS, &entry.tally) ||
        !read_memory(tags, TAGS, &entry.tags)) {
        return NULL;
    }
    if (program != Py_None && Py_TYPE(program) != program_type) {
        if (!read_switched(program, &entry.switched)) {
            return NULL;
        }
        program = Py_None;
    }
    if (program != Py_None) {
        if ( PyTuple_Size(locations) > MOST_SLOTS) {
            PyErr_SetString(PyExc_TypeError, "a Program has a few slots");
            return NULL;
        }
        entry.program = entry.idle ? NULL : (Program *)program;
        if (!read_locations(locations, ((Program *)program)->program, &entry)) {
            return NULL;
        }
    }
    int starts = self->form != BLOCKING && program != Py_None;
    if ((entry.idle != NULL) != starts || (entry.tags != NULL) != starts) {
        PyErr_SetString(PyExc_TypeError, "idle plans, where programs are started, and only there");
        return NULL;
    }
    if (entry.tally) {
        entry.until = numbers_of(entry.tally)[UNTIL];
    }
    entry.hash = table_hash((int64_t *)text, length / (Py_ssize_t)sizeof(int64_t));
    struct entry *place = table_find(self, text, length, entry.hash), old = {.key = NULL};
    if (place) {
        old = *place;
        entry.next = old.next;
        *place = entry;
    } else if (!add(self, &entry, &old)) {
        return NULL;
    }
    entry_hold(&entry); /* to release the old one may call Python, and so us */
    entry_release(&old);
    Py_RETURN_NONE;
}

PyObject *calls_forget(Calls *self, PyObject *unused) {
    (void)unused;
    table_forget(self);
    Py_RETURN_NONE;
}
