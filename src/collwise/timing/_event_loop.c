/* The Python module `_event_loop`: the loop of `level_queues.py`, which says what everything means. */
#define Py_LIMITED_API 0x030b0000
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>

enum { MOST_LEVELS = 16, OFTEN = 1 << 16 };
enum outcome { DONE, CIRCLE, PAST_LIMIT, TOO_LATE, FAILED };
static const int64_t NEVER = -1, LATEST = (int64_t)1 << 61;

struct event {
    int64_t time;
    int32_t kind; /* 1: a request; -1 - level: an arrival at a group's port */
    int32_t message;
};

struct level {
    const int64_t *busy, *group; /* by message; by rank */
    int64_t *out_free, *last_in; /* by group */
};

/* The columns come in this order, each a buffer of int64; RECEIVED is in receive order. */
enum column { STEP, REACH, SOURCE, TARGET, READY_AT, POSITION, ORDER, SEND_BEGINS, RECEIVE_BEGINS,
              START, RECEIVED, COLUMNS };

struct loop {
    int64_t *column[COLUMNS];
    const char *waits;
    int64_t messages, ranks, events, limit;
    int levels, late;
    struct level level[MOST_LEVELS];
    struct event *heap;
    int64_t *passage, *next_send, *next_receive, *send_free;
    char *requested;
};

static int64_t later(int64_t a, int64_t b) { return a > b ? a : b; }

/* In the order of time, kind, source, target and, of two between the same ranks, as they were sent. */
static int before(const struct loop *loop, struct event a, struct event b) {
    if (a.time != b.time) {
        return a.time < b.time;
    }
    if (a.kind != b.kind) {
        return a.kind < b.kind;
    }
    const int64_t *source = loop->column[SOURCE], *target = loop->column[TARGET];
    if (source[a.message] != source[b.message]) {
        return source[a.message] < source[b.message];
    }
    if (target[a.message] != target[b.message]) {
        return target[a.message] < target[b.message];
    }
    return a.message < b.message;
}

static void push(struct loop *loop, int64_t time, int32_t kind, int64_t message) {
    struct event event = {time, kind, (int32_t)message};
    int64_t hole = loop->events++;
    loop->late |= time > LATEST;
    while (hole && before(loop, event, loop->heap[(hole - 1) / 2])) {
        loop->heap[hole] = loop->heap[(hole - 1) / 2];
        hole = (hole - 1) / 2;
    }
    loop->heap[hole] = event;
}

static struct event pop(struct loop *loop) {
    struct event first = loop->heap[0], last = loop->heap[--loop->events];
    int64_t hole = 0, child;
    while ((child = 2 * hole + 1) < loop->events) {
        child += child + 1 < loop->events && before(loop, loop->heap[child + 1], loop->heap[child]);
        if (!before(loop, loop->heap[child], last)) {
            break;
        }
        loop->heap[hole] = loop->heap[child];
        hole = child;
    }
    loop->heap[hole] = last;
    return first;
}

/* Receive what has arrived and is next; then request the next send. */
static void advance(struct loop *loop, int64_t rank) {
    int64_t *received = loop->column[RECEIVED], *start = loop->column[START];
    const int64_t *step = loop->column[STEP], *begins = loop->column[RECEIVE_BEGINS];
    int64_t here = loop->next_receive[rank], end = begins[rank + 1];
    for (; here < end; here++) {
        int64_t message = loop->column[ORDER][here];
        int64_t behind = here > begins[rank] ? received[here - 1] : NEVER;
        if (loop->column[SOURCE][message] == rank) { /* a combine */
            if (loop->next_send[rank] != message) {
                break;
            }
            start[message] = later(loop->send_free[rank], behind);
            received[here] = loop->send_free[rank] = start[message] + step[message];
            loop->next_send[rank]++;
        } else if (loop->passage[here] != NEVER) {
            int64_t passed = loop->passage[here];
            received[here] = behind == NEVER ? passed : later(passed, behind + step[message]);
        } else {
            break;
        }
        loop->late |= received[here] > LATEST;
    }
    loop->next_receive[rank] = here;
    int64_t message = loop->next_send[rank];
    if (loop->requested[rank] || message >= loop->column[SEND_BEGINS][rank + 1] ||
        loop->column[READY_AT][message] > here || loop->column[TARGET][message] == rank) {
        return;
    }
    loop->requested[rank] = 1;
    int64_t ready = loop->send_free[rank];
    if (loop->waits[message]) {
        ready = later(ready, received[loop->column[READY_AT][message] - 1]);
    }
    push(loop, ready, 1, message);
}

/* At the next port inside a level; or at the target. */
static void arrive(struct loop *loop, int64_t time, int outermost, int64_t message) {
    for (int level = outermost - 1; level >= 0; level--) {
        if (loop->level[level].busy[message]) {
            push(loop, time, -1 - level, message);
            return;
        }
    }
    int64_t target = loop->column[TARGET][message], position = loop->column[POSITION][message];
    loop->late |= time > LATEST;
    loop->passage[position] = time;
    if (position == loop->next_receive[target]) {
        advance(loop, target);
    }
}

static void serve(struct loop *loop, int64_t time, int64_t message) {
    int64_t rank = loop->column[SOURCE][message];
    for (int j = 0; j < loop->levels; j++) {
        struct level *level = &loop->level[j];
        if (level->busy[message]) {
            time = later(time, level->out_free[level->group[rank]]);
        }
    }
    for (int j = 0; j < loop->levels; j++) {
        struct level *level = &loop->level[j];
        if (level->busy[message]) {
            level->out_free[level->group[rank]] = time + level->busy[message];
        }
    }
    loop->column[START][message] = time;
    loop->send_free[rank] = time + loop->column[STEP][message];
    loop->next_send[rank] = message + 1;
    loop->requested[rank] = 0;
    arrive(loop, time + loop->column[REACH][message], loop->levels, message);
    advance(loop, rank);
}

static enum outcome play(struct loop *loop) {
    for (int64_t rank = 0; rank < loop->ranks; rank++) {
        advance(loop, rank);
    }
    for (int64_t count = 1; loop->events && !loop->late; count++) {
        struct event event = pop(loop);
        if (event.time > loop->limit) {
            return PAST_LIMIT;
        }
        if (event.kind > 0) {
            serve(loop, event.time, event.message);
        } else {
            struct level *level = &loop->level[-1 - event.kind];
            int64_t *last = &level->last_in[level->group[loop->column[TARGET][event.message]]];
            if (*last != NEVER) {
                event.time = later(event.time, *last + level->busy[event.message]);
            }
            *last = event.time;
            arrive(loop, event.time, -1 - event.kind, event.message);
        }
        if (count % OFTEN == 0 && PyErr_CheckSignals()) {
            return FAILED;
        }
    }
    if (loop->late) {
        return TOO_LATE;
    }
    for (int64_t rank = 0; rank < loop->ranks; rank++) {
        if (loop->next_receive[rank] < loop->column[RECEIVE_BEGINS][rank + 1]) {
            return CIRCLE;
        }
    }
    return DONE;
}

/* A buffer of so many items of 8 bytes (or of one), kept until the end; flags: PyBUF_CONTIG if it is
   written to, or PyBUF_CONTIG_RO. */
static void *items(PyObject *object, int64_t count, int width, int flags, Py_buffer *kept,
                   int *buffers) {
    Py_buffer *buffer = &kept[*buffers];
    if (PyObject_GetBuffer(object, buffer, flags)) {
        return NULL;
    }
    ++*buffers;
    if (buffer->len != count * width) {
        return PyErr_Format(PyExc_ValueError, "%zd bytes for %lld items", buffer->len,
                            (long long)count);
    }
    return buffer->buf;
}

/* play(messages, ranks, columns, waits, ports, limit): ports has for each level how long a message keeps one busy,
   every rank's group, and for each group twice what the engine notes: 0, and NEVER. */
static PyObject *play_events(PyObject *module, PyObject *args) {
    PyObject *columns, *waits, *ports, *answer = NULL;
    Py_buffer kept[COLUMNS + 1 + 4 * MOST_LEVELS];
    struct loop loop = {0};
    long long messages, ranks, limit;
    int buffers = 0;
    (void)module;
    if (!PyArg_ParseTuple(args, "LLO!OO!L", &messages, &ranks, &PyTuple_Type, &columns, &waits,
                          &PyTuple_Type, &ports, &limit)) {
        return NULL;
    }
    if (messages < 0 || messages > INT32_MAX || ranks < 0 || ranks > INT32_MAX ||
        PyTuple_Size(columns) != COLUMNS || PyTuple_Size(ports) > MOST_LEVELS) {
        return PyErr_Format(PyExc_ValueError, "%lld messages of %lld ranks", messages, ranks);
    }
    loop.messages = messages, loop.ranks = ranks, loop.limit = limit;
    for (int n = 0; n < COLUMNS; n++) {
        int64_t count = n == SEND_BEGINS || n == RECEIVE_BEGINS ? ranks + 1 : messages;
        int flags = n == START || n == RECEIVED ? PyBUF_CONTIG : PyBUF_CONTIG_RO;
        loop.column[n] = items(PyTuple_GetItem(columns, n), count, 8, flags, kept, &buffers);
        if (!loop.column[n]) {
            goto end;
        }
    }
    if (!(loop.waits = items(waits, messages, 1, PyBUF_CONTIG_RO, kept, &buffers))) {
        goto end;
    }
    for (; loop.levels < PyTuple_Size(ports); loop.levels++) {
        struct level *level = &loop.level[loop.levels];
        PyObject *busy, *group, *out_free, *last_in;
        if (!PyArg_ParseTuple(PyTuple_GetItem(ports, loop.levels), "OOOO", &busy, &group,
                              &out_free, &last_in)) {
            goto end;
        }
        Py_ssize_t groups = PyObject_Size(out_free);
        if (!(level->busy = items(busy, messages, 8, PyBUF_CONTIG_RO, kept, &buffers)) ||
            !(level->group = items(group, ranks, 8, PyBUF_CONTIG_RO, kept, &buffers)) ||
            !(level->out_free = items(out_free, groups, 8, PyBUF_CONTIG, kept, &buffers)) ||
            !(level->last_in = items(last_in, groups, 8, PyBUF_CONTIG, kept, &buffers))) {
            goto end;
        }
    }
    loop.heap = PyMem_Malloc((size_t)(messages + 1) * sizeof *loop.heap);
    loop.passage = PyMem_Malloc((size_t)(messages + 1) * 8);
    loop.next_send = PyMem_Malloc((size_t)(ranks + 1) * 8);
    loop.next_receive = PyMem_Malloc((size_t)(ranks + 1) * 8);
    loop.send_free = PyMem_Calloc((size_t)(ranks + 1), 8);
    loop.requested = PyMem_Calloc((size_t)(ranks + 1), 1);
    if (!loop.heap || !loop.passage || !loop.next_send || !loop.next_receive || !loop.send_free ||
        !loop.requested) {
        PyErr_NoMemory();
        goto end;
    }
    for (int64_t n = 0; n < messages; n++) {
        loop.passage[n] = NEVER;
    }
    for (int64_t n = 0; n < ranks; n++) {
        loop.next_send[n] = loop.column[SEND_BEGINS][n];
        loop.next_receive[n] = loop.column[RECEIVE_BEGINS][n];
    }
    enum outcome outcome = play(&loop);
    if (outcome != FAILED) {
        answer = PyLong_FromLong(outcome);
    }
end:
    PyMem_Free(loop.heap);
    PyMem_Free(loop.passage);
    PyMem_Free(loop.next_send);
    PyMem_Free(loop.next_receive);
    PyMem_Free(loop.send_free);
    PyMem_Free(loop.requested);
    while (buffers) {
        PyBuffer_Release(&kept[--buffers]);
    }
    return answer;
}

static PyMethodDef methods[] = {{"play", play_events, METH_VARARGS, NULL}, {0}};
static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, .m_name = "_event_loop",
                                        .m_size = 0, .m_methods = methods};

PyMODINIT_FUNC PyInit__event_loop(void) { return PyModuleDef_Init(&definition); }
