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

/* The entry of a key, or the empty one where it would be. */
struct entry *table_find(struct entry *entries, unsigned size, const void *key, Py_ssize_t nbytes,
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

void table_forget(Calls *self) {
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

int64_t *tally_numbers(PyObject *tally) {
    return (int64_t *)(void *)PyByteArray_AsString(tally);
}

int64_t tally_now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

/* Count a call that began at a time and is over now. */
void tally_count(PyObject *tally, int64_t begin) {
    int64_t *numbers = tally_numbers(tally), end = tally_now();
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
        table_forget(self);
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
            *table_find(entries, size, key, length, self->entries[n].hash) = self->entries[n];
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
PyObject *calls_remember(Calls *self, PyObject *given) {
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
    if ((idle != NULL) != (self->form != BLOCKING && program != Py_None)) {
        PyErr_SetString(PyExc_TypeError, "idle plans, where programs are started, and only there");
        return NULL;
    }
    if (tally != Py_None) {
        if (!PyByteArray_Check(tally) || PyByteArray_Size(tally) < (Py_ssize_t)sizeof(int64_t[NUMBERS])) {
            PyErr_SetString(PyExc_TypeError, "a bytearray for the numbers of a tally, or None");
            return NULL;
        }
        entry.tally = tally;
        entry.until = tally_numbers(tally)[UNTIL];
    }
    if (!grow(self)) {
        return NULL;
    }
    entry.hash = table_hash((int64_t *)text, length / (Py_ssize_t)sizeof(int64_t));
    struct entry *place = table_find(self->entries, self->size, text, length, entry.hash);
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

PyObject *calls_forget(Calls *self, PyObject *unused) {
    (void)unused;
    table_forget(self);
    Py_RETURN_NONE;
}
