/* The Python module `_dependencies`: `rows_of_lists` of `dependencies.py`, which says what it means.

   An interval map knows for every byte of a rank's slots which operation wrote it last. */
#define Py_LIMITED_API 0x030b0000
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum kind { SEND, RECEIVE, COMBINE, COPY, KINDS };
enum asked { COMBINES = 1, COPIES = 2, LAST_ONLY = 4 };
enum { CELLS = 5 }; /* rank, place, kind, peer, bytes */

struct numbers { int64_t *at; size_t count, room; };

struct interval { int64_t begin, end, writer; };

struct map { /* of one slot and owner, in the order of bytes */
    int64_t slot, owner;
    struct interval *at;
    size_t count, room;
};

struct maps { struct map *at; size_t count, room; }; /* a table by hash, half of it unused */

static int grown(void **at, size_t *room, size_t needed, size_t width) {
    if (needed <= *room) {
        return 1;
    }
    size_t more = needed + needed / 2 + 16;
    void *moved = PyMem_Realloc(*at, more * width);
    if (!moved) {
        PyErr_NoMemory();
        return 0;
    }
    *at = moved, *room = more;
    return 1;
}

static int append(struct numbers *numbers, int64_t number) {
    if (!grown((void **)&numbers->at, &numbers->room, numbers->count + 1, 8)) {
        return 0;
    }
    numbers->at[numbers->count++] = number;
    return 1;
}

/* The map of a slot and owner, or the unused place for it. */
static struct map *find(const struct maps *maps, int64_t slot, int64_t owner) {
    uint64_t hash = ((uint64_t)slot * 0x9E3779B97F4A7C15u ^ (uint64_t)owner) * 0xD6E8FEB86659FD93u;
    size_t place = (size_t)(hash >> 32) & (maps->room - 1);
    struct map *map = &maps->at[place];
    while (map->slot >= 0 && (map->slot != slot || map->owner != owner)) {
        place = (place + 1) & (maps->room - 1);
        map = &maps->at[place];
    }
    return map;
}

static void empty(struct maps *maps) {
    for (size_t n = 0; n < maps->room; n++) {
        PyMem_Free(maps->at[n].at);
        maps->at[n] = (struct map){.slot = -1};
    }
    maps->count = 0;
}

/* The map of a slot and owner, made if there was none. */
static struct map *made(struct maps *maps, int64_t slot, int64_t owner) {
    if (2 * maps->count >= maps->room) {
        struct maps larger = {.room = maps->room ? 4 * maps->room : 16, .count = maps->count};
        if (!(larger.at = PyMem_Calloc(larger.room, sizeof *larger.at))) {
            PyErr_NoMemory();
            return NULL;
        }
        for (size_t n = 0; n < larger.room; n++) {
            larger.at[n].slot = -1;
        }
        for (size_t n = 0; n < maps->room; n++) {
            if (maps->at[n].slot >= 0) {
                *find(&larger, maps->at[n].slot, maps->at[n].owner) = maps->at[n];
            }
        }
        PyMem_Free(maps->at);
        *maps = larger;
    }
    struct map *map = find(maps, slot, owner);
    if (map->slot < 0) {
        map->slot = slot, map->owner = owner;
        maps->count++;
    }
    return map;
}

/* The first interval that does not end before a range begins. */
static size_t first_touching(const struct map *map, int64_t begin) {
    size_t low = 0, high = map->count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (map->at[middle].end <= begin) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static int write_range(struct map *map, struct interval key) {
    size_t first = first_touching(map, key.begin), last = first, number = 0;
    struct interval pieces[3];
    while (last < map->count && map->at[last].begin < key.end) {
        last++;
    }
    if (first < last && map->at[first].begin < key.begin) { /* keep the bytes outside the range */
        pieces[number] = map->at[first];
        pieces[number++].end = key.begin;
    }
    pieces[number++] = key;
    if (first < last && map->at[last - 1].end > key.end) {
        pieces[number] = map->at[last - 1];
        pieces[number++].begin = key.end;
    }
    size_t rest = map->count - last, count = first + number + rest;
    if (!grown((void **)&map->at, &map->room, count, sizeof *map->at)) {
        return 0;
    }
    memmove(map->at + first + number, map->at + last, rest * sizeof *map->at);
    memcpy(map->at + first, pieces, number * sizeof *pieces);
    map->count = count;
    return 1;
}

/* The columns that `rows_of_lists` fills, and what it knows while it goes through the lists. */
struct rows {
    struct numbers cells[CELLS], begins, needs;
    /* for the present rank: its maps, and where each operation's set of rows begins in `sets` */
    struct maps maps;
    struct numbers sets, set_begins, gathered;
    int asked;
};

static int by_number(const void *a, const void *b) {
    int64_t one = *(const int64_t *)a, other = *(const int64_t *)b;
    return (one > other) - (one < other);
}

/* Add to `gathered` the rows on which the bytes of blocks in a slot depend. */
static int gather(struct rows *rows, int64_t slot, const int64_t *blocks, Py_ssize_t count) {
    for (Py_ssize_t n = 0; n < count; n++) {
        int64_t begin = blocks[3 * n + 1], end = begin + blocks[3 * n + 2];
        if (end == begin || !rows->maps.room) {
            continue;
        }
        const struct map *map = find(&rows->maps, slot, blocks[3 * n]);
        for (size_t at = first_touching(map, begin); at < map->count && map->at[at].begin < end; at++) {
            const int64_t *ends = rows->set_begins.at + map->at[at].writer;
            for (int64_t m = ends[0]; m < ends[1]; m++) {
                if (!append(&rows->gathered, rows->sets.at[m])) {
                    return 0;
                }
            }
        }
    }
    return 1;
}

/* Sort `gathered` and remove repeated numbers; keep only the last number if LAST_ONLY. */
static void settle(struct rows *rows) {
    int64_t *at = rows->gathered.at;
    size_t count = rows->gathered.count, kept = 0;
    if (count > 1 && rows->asked & LAST_ONLY) {
        for (size_t n = 1; n < count; n++) {
            at[0] = at[n] > at[0] ? at[n] : at[0];
        }
        count = 1;
    } else if (count > 1) {
        qsort(at, count, 8, by_number);
    }
    for (size_t n = 0; n < count; n++) {
        if (!kept || at[kept - 1] != at[n]) {
            at[kept++] = at[n];
        }
    }
    rows->gathered.count = kept;
}

static int64_t number_at(PyObject *tuple, Py_ssize_t n) {
    PyObject *item = PyTuple_GetItem(tuple, n);
    return item ? PyLong_AsLongLong(item) : -1;
}

/* Read an operation's blocks into `numbers`; returns the sum of their bytes, -1 on an error. */
static int64_t read_blocks(PyObject *blocks, struct numbers *numbers) {
    Py_ssize_t count = PyTuple_Check(blocks) ? PyTuple_Size(blocks) : -1;
    int64_t nbytes = 0;
    numbers->count = 0;
    if (count < 0) {
        PyErr_SetString(PyExc_TypeError, "blocks are a tuple");
        return -1;
    }
    for (Py_ssize_t n = 0; n < count; n++) {
        PyObject *block = PyTuple_GetItem(blocks, n);
        if (!PyTuple_Check(block) || PyTuple_Size(block) != 3) {
            PyErr_SetString(PyExc_TypeError, "a block is (owner, offset, length)");
            return -1;
        }
        for (int cell = 0; cell < 3; cell++) {
            int64_t number = number_at(block, cell);
            if ((number == -1 && PyErr_Occurred()) || !append(numbers, number)) {
                return -1;
            }
        }
        int64_t length = numbers->at[3 * n + 2], offset = numbers->at[3 * n + 1];
        if (length < 0 || offset > INT64_MAX / 4 || length > INT64_MAX / 4 - nbytes) {
            PyErr_SetString(PyExc_OverflowError, "bytes beyond 2^61");
            return -1;
        }
        nbytes += length;
    }
    return nbytes;
}

/* Add one operation: its row, if it has one, and the set of rows on which its result depends. */
static int add(struct rows *rows, int64_t rank, int64_t place, int64_t kind, PyObject *op,
               struct numbers *blocks) {
    static const Py_ssize_t FIELDS[KINDS] = {3, 3, 4, 4}, BLOCKS[KINDS] = {1, 1, 3, 2};
    static const Py_ssize_t READS[KINDS][2] = {{2, -1}, {-1, -1}, {0, 1}, {0, -1}};
    static const Py_ssize_t WRITES[KINDS] = {-1, 2, 2, 1};
    if (PyTuple_Size(op) != FIELDS[kind]) {
        PyErr_SetString(PyExc_TypeError, "an operation with other fields");
        return 0;
    }
    int64_t nbytes = read_blocks(PyTuple_GetItem(op, BLOCKS[kind]), blocks);
    if (nbytes < 0) {
        return 0;
    }
    Py_ssize_t count = (Py_ssize_t)blocks->count / 3;
    rows->gathered.count = 0;
    for (int n = 0; n < 2; n++) {
        if (READS[kind][n] >= 0 &&
            !gather(rows, number_at(op, READS[kind][n]), blocks->at, count)) {
            return 0;
        }
    }
    settle(rows);
    int is_row = kind == SEND || kind == RECEIVE || (kind == COMBINE && rows->asked & COMBINES) ||
                 (kind == COPY && rows->asked & COPIES);
    if (is_row) {
        int64_t peer = kind <= RECEIVE ? number_at(op, 0) : rank;
        int64_t cells[CELLS] = {rank, place, kind, peer, nbytes};
        for (int n = 0; n < CELLS; n++) {
            if (!append(&rows->cells[n], cells[n])) {
                return 0;
            }
        }
        for (size_t n = 0; n < rows->gathered.count; n++) {
            if (!append(&rows->needs, rows->gathered.at[n])) {
                return 0;
            }
        }
        if (!append(&rows->begins, (int64_t)rows->needs.count)) {
            return 0;
        }
        rows->gathered.count = 0;
        if (!append(&rows->gathered, (int64_t)rows->cells[0].count - 1)) {
            return 0;
        }
    }
    if (WRITES[kind] >= 0) {
        int64_t slot = number_at(op, WRITES[kind]), shift = kind == COPY ? number_at(op, 3) : 0;
        for (size_t n = 0; n < rows->gathered.count; n++) {
            if (!append(&rows->sets, rows->gathered.at[n])) {
                return 0;
            }
        }
        for (Py_ssize_t n = 0; n < count; n++) {
            int64_t begin = blocks->at[3 * n + 1] + shift, length = blocks->at[3 * n + 2];
            struct interval key = {begin, begin + length, place};
            struct map *map = length ? made(&rows->maps, slot, blocks->at[3 * n]) : NULL;
            if (length && (!map || !write_range(map, key))) {
                return 0;
            }
        }
    }
    return append(&rows->set_begins, (int64_t)rows->sets.count) && !PyErr_Occurred();
}

static int add_list(struct rows *rows, int64_t rank, PyObject *list, PyObject *kinds,
                    struct numbers *blocks) {
    PyObject *operations = PySequence_Tuple(list);
    if (!operations) {
        return 0;
    }
    int fine = 1;
    empty(&rows->maps);
    rows->sets.count = rows->set_begins.count = 0;
    fine = append(&rows->set_begins, 0);
    for (Py_ssize_t place = 0; fine && place < PyTuple_Size(operations); place++) {
        PyObject *op = PyTuple_GetItem(operations, place);
        int64_t kind = 0;
        while (kind < KINDS && (PyObject *)Py_TYPE(op) != PyTuple_GetItem(kinds, kind)) {
            kind++;
        }
        if (kind == KINDS) {
            PyErr_SetString(PyExc_TypeError, "an operation of another kind");
            fine = 0;
        } else {
            fine = add(rows, rank, place, kind, op, blocks);
        }
    }
    Py_DECREF(operations);
    return fine;
}

/* rows_of_lists(lists, kinds, asked) */
static PyObject *rows_of_lists(PyObject *module, PyObject *args) {
    PyObject *lists, *kinds, *every, *answer = NULL;
    struct rows rows = {.asked = 0};
    struct numbers blocks = {0};
    (void)module;
    if (!PyArg_ParseTuple(args, "OO!i", &lists, &PyTuple_Type, &kinds, &rows.asked) ||
        !(every = PySequence_Tuple(lists))) {
        return NULL;
    }
    int fine = PyTuple_Size(kinds) == KINDS && append(&rows.begins, 0);
    for (Py_ssize_t rank = 0; fine && rank < PyTuple_Size(every); rank++) {
        fine = add_list(&rows, rank, PyTuple_GetItem(every, rank), kinds, &blocks);
        fine = fine && (rank % 64 || !PyErr_CheckSignals());
    }
    Py_DECREF(every);
    struct numbers *columns[] = {&rows.cells[0], &rows.cells[1], &rows.cells[2], &rows.cells[3],
                                 &rows.cells[4], &rows.begins, &rows.needs};
    if (fine && (answer = PyTuple_New(7))) {
        for (int n = 0; n < 7; n++) {
            Py_ssize_t nbytes = (Py_ssize_t)columns[n]->count * 8;
            PyObject *bytes = PyByteArray_FromStringAndSize((const char *)columns[n]->at, nbytes);
            if (!bytes || PyTuple_SetItem(answer, n, bytes)) {
                Py_CLEAR(answer);
                break;
            }
        }
    }
    if (!answer && !PyErr_Occurred()) {
        PyErr_SetString(PyExc_ValueError, "four kinds of operations");
    }
    empty(&rows.maps);
    void *rest[] = {rows.maps.at, rows.sets.at, rows.set_begins.at, rows.gathered.at, blocks.at};
    for (size_t n = 0; n < sizeof rest / sizeof *rest; n++) {
        PyMem_Free(rest[n]);
    }
    for (int n = 0; n < 7; n++) {
        PyMem_Free(columns[n]->at);
    }
    return answer;
}

static PyMethodDef methods[] = {{"rows_of_lists", rows_of_lists, METH_VARARGS, NULL}, {0}};
static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, .m_name = "_dependencies",
                                        .m_size = 0, .m_methods = methods};

PyMODINIT_FUNC PyInit__dependencies(void) { return PyModuleDef_Init(&definition); }
