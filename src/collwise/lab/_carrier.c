/* The Python module `_carrier`: the class of `carrier.py`, which says what everything means. */
#define _GNU_SOURCE
#define Py_LIMITED_API 0x030b0000
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

enum { LARGEST = 65536, ADDRESS = 4, TARGET_AT = 16, READY = 64, RECEIVER = -1, DELIVERED = -2 };
enum count { PACKETS, NBYTES, DROPS, WORST_NS, COUNTS };
static const int64_t NS_BITS = 8000000000, READ_AHEAD_NS = 2000000;
static const int64_t SPIN_NS = 20000; /* to sleep and be woken takes longer than a shorter wait */

/* What happens to a packet next: its first bit reaches a trunk (from 0 on) or the receiver's port,
   or it is delivered.  lag: how much later its last bit arrives. */
struct event {
    int64_t at, sequence, lag;
    int stage, source, target, nbytes;
    char *packet;
};

struct carrier {
    PyObject head;
    int hosts, trunks, epoll, control;
    int64_t *rate, *latency, *trunk_rate;        /* latency: [source * hosts + target] */
    int *trunk;                                  /* the same, RECEIVER where there is none */
    int64_t *egress_free, *ingress_free, *trunk_free;
    int64_t *resume;                             /* when to read a TUN again; 0: it is read */
    int *tun;
    char *address, *buffer;
    struct event *heap;
    int64_t events, room, sequence;
};

static int64_t later(int64_t a, int64_t b) { return a > b ? a : b; }

static int64_t clock_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * (int64_t)1000000000 + now.tv_nsec;
}

static int before(const struct event *a, const struct event *b) {
    return a->at != b->at ? a->at < b->at : a->sequence < b->sequence;
}

/* There is room for it: an event that was taken, or `send` has made some. */
static void push(struct carrier *own, struct event event) {
    int64_t hole = own->events++;
    while (hole && before(&event, &own->heap[(hole - 1) / 2])) {
        own->heap[hole] = own->heap[(hole - 1) / 2];
        hole = (hole - 1) / 2;
    }
    own->heap[hole] = event;
}

static struct event pop(struct carrier *own) {
    struct event first = own->heap[0], last = own->heap[--own->events];
    int64_t hole = 0, child;
    while ((child = 2 * hole + 1) < own->events) {
        child += child + 1 < own->events && before(&own->heap[child + 1], &own->heap[child]);
        if (!before(&own->heap[child], &last)) {
            break;
        }
        own->heap[hole] = own->heap[child];
        hole = child;
    }
    own->heap[hole] = last;
    return first;
}

/* When the sender's port will be free; -1 with an exception set. */
static int64_t take(struct carrier *own, int64_t now, int source, int target, const char *packet,
                    int nbytes) {
    if (own->events == own->room) {
        int64_t room = 2 * own->room + READY;
        struct event *heap = PyMem_Realloc(own->heap, (size_t)room * sizeof *heap);
        if (!heap) {
            PyErr_NoMemory();
            return -1;
        }
        own->heap = heap, own->room = room;
    }
    char *copy = PyMem_Malloc((size_t)nbytes + 1);
    if (!copy) {
        PyErr_NoMemory();
        return -1;
    }
    memcpy(copy, packet, (size_t)nbytes);
    int64_t lag = nbytes * NS_BITS / own->rate[source];
    int64_t begins = later(now, own->egress_free[source]);
    int way = source * own->hosts + target, stage = own->trunk[way];
    int64_t at = stage == RECEIVER ? begins + own->latency[way] : begins;
    own->egress_free[source] = begins + lag;
    push(own, (struct event){at, ++own->sequence, lag, stage, source, target, nbytes, copy});
    return begins + lag;
}

/* The next packet that has arrived by now, into `event`; 0 if there is none.  The caller frees it. */
static int arrived(struct carrier *own, int64_t now, struct event *event) {
    while (own->events && own->heap[0].at <= now) {
        *event = pop(own);
        if (event->stage == DELIVERED) {
            return 1;
        }
        int trunk = event->stage;
        int64_t *free = trunk == RECEIVER ? &own->ingress_free[event->target] : &own->trunk_free[trunk];
        int64_t rate = trunk == RECEIVER ? own->rate[event->target] : own->trunk_rate[trunk];
        int64_t begins = later(event->at, *free);
        int64_t ends = later(begins + event->nbytes * NS_BITS / rate, event->at + event->lag);
        *free = ends;
        if (trunk == RECEIVER) {
            event->at = ends, event->lag = 0, event->stage = DELIVERED;
        } else {
            event->at = begins + own->latency[event->source * own->hosts + event->target];
            event->lag = ends - begins, event->stage = RECEIVER;
        }
        push(own, *event);
    }
    return 0;
}

static void deliver_due(struct carrier *own, int64_t now, int64_t *counts, uint64_t *lateness,
                        int64_t largest_us) {
    struct event event;
    while (arrived(own, now, &event)) {
        counts[DROPS] += write(own->tun[event.target], event.packet, (size_t)event.nbytes) < 0;
        int64_t late = clock_ns() - event.at, us = late / 1000;
        counts[PACKETS]++;
        counts[NBYTES] += event.nbytes;
        counts[WORST_NS] = later(counts[WORST_NS], late);
        lateness[us < largest_us ? us : largest_us]++;
        PyMem_Free(event.packet);
    }
}

static int listen_to(struct carrier *own, int host, int change, uint32_t events) {
    int descriptor = host == own->hosts ? own->control : own->tun[host];
    struct epoll_event event = {.events = events, .data.u32 = (uint32_t)host};
    return epoll_ctl(own->epoll, change, descriptor, &event);
}

/* Read one packet of a host; -1 with an exception set. */
static int read_from(struct carrier *own, int source, int64_t *counts) {
    ssize_t nbytes = read(own->tun[source], own->buffer, LARGEST);
    if (nbytes < 0) {
        if (errno == EAGAIN || errno == EINTR) {
            return 0;
        }
        PyErr_SetFromErrno(PyExc_OSError);
        return -1;
    }
    int target = own->hosts;
    if (nbytes >= TARGET_AT + ADDRESS && (unsigned char)own->buffer[0] >> 4 == 4) {
        for (target = 0; target < own->hosts; target++) {
            if (!memcmp(own->address + ADDRESS * target, own->buffer + TARGET_AT, ADDRESS)) {
                break;
            }
        }
    }
    if (target == own->hosts) {
        counts[DROPS]++;
        return 0;
    }
    int64_t now = clock_ns();
    int64_t free = take(own, now, source, target, own->buffer, (int)nbytes);
    if (free < 0) {
        return -1;
    }
    if (free > now + READ_AHEAD_NS) {
        own->resume[source] = free - READ_AHEAD_NS;
        if (listen_to(own, source, EPOLL_CTL_MOD, 0)) {
            PyErr_SetFromErrno(PyExc_OSError);
            return -1;
        }
    }
    return 0;
}

/* 1 if `control` has something to read, 0 if the time is over, -1 with an exception set. */
static int carry(struct carrier *own, int64_t until, int64_t *counts, uint64_t *lateness,
                 int64_t largest_us) {
    struct epoll_event ready[READY];
    for (;;) {
        int64_t now = clock_ns(), next = until;
        deliver_due(own, now, counts, lateness, largest_us);
        if (now >= until) {
            return 0;
        }
        for (int host = 0; host < own->hosts; host++) {
            if (own->resume[host] && own->resume[host] <= now) {
                own->resume[host] = 0;
                listen_to(own, host, EPOLL_CTL_MOD, EPOLLIN);
            } else if (own->resume[host] && own->resume[host] < next) {
                next = own->resume[host];
            }
        }
        int count = epoll_wait(own->epoll, ready, READY, 0);
        if (count == 0) { /* epoll itself waits in whole milliseconds; ppoll on it, in nanoseconds */
            struct pollfd one = {own->epoll, POLLIN, 0};
            next = own->events && own->heap[0].at < next ? own->heap[0].at : next;
            int64_t wait = next - clock_ns();
            if (wait < SPIN_NS) {
                continue;
            }
            struct timespec longest = {wait / 1000000000, wait % 1000000000};
            count = ppoll(&one, 1, &longest, NULL) < 0 ? -1 : 0;
        }
        if (count < 0) {
            if (errno != EINTR) {
                PyErr_SetFromErrno(PyExc_OSError);
                return -1;
            }
            if (PyErr_CheckSignals()) {
                return -1;
            }
        }
        for (int n = 0; n < count; n++) {
            int host = (int)ready[n].data.u32;
            if (host == own->hosts) {
                return 1;
            }
            if (read_from(own, host, counts) < 0) {
                return -1;
            }
        }
    }
}

/* A sequence of numbers as int64, or None as RECEIVER, into new memory; NULL with an exception. */
static int64_t *numbers(PyObject *sequence, Py_ssize_t count) {
    if (PySequence_Size(sequence) != count) {
        if (!PyErr_Occurred()) {
            PyErr_Format(PyExc_ValueError, "%zd numbers are needed", count);
        }
        return NULL;
    }
    int64_t *values = PyMem_Calloc((size_t)count + 1, sizeof *values);
    for (Py_ssize_t n = 0; values && n < count; n++) {
        PyObject *item = PySequence_GetItem(sequence, n);
        values[n] = !item || item == Py_None ? RECEIVER : PyLong_AsLongLong(item);
        Py_XDECREF(item);
    }
    if (!values) {
        PyErr_NoMemory();
    } else if (PyErr_Occurred()) {
        PyMem_Free(values);
        return NULL;
    }
    return values;
}

static int ports_from(struct carrier *own, PyObject *latencies, PyObject *trunks) {
    int hosts = own->hosts;
    own->latency = PyMem_Calloc((size_t)hosts * hosts + 1, sizeof *own->latency);
    own->trunk = PyMem_Calloc((size_t)hosts * hosts + 1, sizeof *own->trunk);
    if (!own->latency || !own->trunk) {
        PyErr_NoMemory();
        return -1;
    }
    for (int n = 0; n < hosts * hosts; n++) {
        own->trunk[n] = RECEIVER;
    }
    for (int table = 0; table < 2; table++) {
        PyObject *rows = table ? trunks : latencies;
        for (int source = 0; source < hosts && rows != Py_None; source++) {
            PyObject *row = PySequence_GetItem(rows, source);
            int64_t *values = row ? numbers(row, hosts) : NULL;
            Py_XDECREF(row);
            if (!values) {
                return -1;
            }
            for (int target = 0; target < hosts; target++) {
                if (!table) {
                    own->latency[source * hosts + target] = values[target];
                } else if (values[target] >= RECEIVER && values[target] < own->trunks) {
                    own->trunk[source * hosts + target] = (int)values[target];
                } else {
                    PyErr_Format(PyExc_ValueError, "there is no trunk %lld", (long long)values[target]);
                }
            }
            PyMem_Free(values);
            if (PyErr_Occurred()) {
                return -1;
            }
        }
    }
    return 0;
}

static int initialise(PyObject *self, PyObject *args, PyObject *names) {
    static char *known[] = {"rates", "latencies_ns", "trunk_rates", "trunks", NULL};
    struct carrier *own = (struct carrier *)self;
    PyObject *rates, *latencies, *trunk_rates = NULL, *trunks = Py_None;
    own->epoll = own->control = -1;
    if (!PyArg_ParseTupleAndKeywords(args, names, "OO|OO", known, &rates, &latencies, &trunk_rates,
                                     &trunks)) {
        return -1;
    }
    Py_ssize_t hosts = PySequence_Size(rates), count = trunk_rates ? PySequence_Size(trunk_rates) : 0;
    if (hosts < 0 || count < 0) {
        return -1;
    }
    own->hosts = (int)hosts, own->trunks = (int)count;
    if (!(own->rate = numbers(rates, hosts)) ||
        (trunk_rates && !(own->trunk_rate = numbers(trunk_rates, count)))) {
        return -1;
    }
    for (Py_ssize_t n = 0; n < hosts + count; n++) {
        if ((n < hosts ? own->rate[n] : own->trunk_rate[n - hosts]) < 1) {
            PyErr_SetString(PyExc_ValueError, "a rate is below 1 bit/s");
            return -1;
        }
    }
    own->egress_free = PyMem_Calloc((size_t)hosts + 1, 8);
    own->ingress_free = PyMem_Calloc((size_t)hosts + 1, 8);
    own->trunk_free = PyMem_Calloc((size_t)count + 1, 8);
    own->resume = PyMem_Calloc((size_t)hosts + 1, 8);
    if (!own->egress_free || !own->ingress_free || !own->trunk_free || !own->resume) {
        PyErr_NoMemory();
        return -1;
    }
    return ports_from(own, latencies, trunks);
}

static void finish(PyObject *self) {
    struct carrier *own = (struct carrier *)self;
    PyTypeObject *type = Py_TYPE(self);
    while (own->events) {
        PyMem_Free(own->heap[--own->events].packet);
    }
    void *made[] = {own->rate, own->latency, own->trunk_rate, own->trunk, own->egress_free,
                    own->ingress_free, own->trunk_free, own->resume, own->tun, own->address,
                    own->buffer, own->heap};
    for (size_t n = 0; n < sizeof made / sizeof *made; n++) {
        PyMem_Free(made[n]);
    }
    if (own->buffer) {
        close(own->epoll);
    }
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    release(self);
    Py_DECREF(type);
}

static PyObject *send(PyObject *self, PyObject *args) {
    struct carrier *own = (struct carrier *)self;
    long long now;
    int source, target;
    const char *packet;
    Py_ssize_t nbytes;
    if (!PyArg_ParseTuple(args, "Liiy#", &now, &source, &target, &packet, &nbytes)) {
        return NULL;
    }
    if (source < 0 || source >= own->hosts || target < 0 || target >= own->hosts || nbytes > LARGEST) {
        return PyErr_Format(PyExc_ValueError, "%zd bytes from %d to %d", nbytes, source, target);
    }
    int64_t free = take(own, now, source, target, packet, (int)nbytes);
    return free < 0 ? NULL : PyLong_FromLongLong(free);
}

static PyObject *deliver(PyObject *self, PyObject *argument) {
    long long now = PyLong_AsLongLong(argument);
    PyObject *delivered = PyErr_Occurred() ? NULL : PyList_New(0);
    struct event event;
    while (delivered && arrived((struct carrier *)self, now, &event)) {
        PyObject *one = Py_BuildValue("Liy#", (long long)event.at, event.target, event.packet,
                                      (Py_ssize_t)event.nbytes);
        PyMem_Free(event.packet);
        if (!one || PyList_Append(delivered, one)) {
            Py_CLEAR(delivered);
        }
        Py_XDECREF(one);
    }
    return delivered;
}

static PyObject *next_event(PyObject *self, void *unused) {
    struct carrier *own = (struct carrier *)self;
    (void)unused;
    return own->events ? PyLong_FromLongLong(own->heap[0].at) : Py_NewRef(Py_None);
}

static PyObject *attach(PyObject *self, PyObject *args) {
    struct carrier *own = (struct carrier *)self;
    PyObject *tuns;
    const char *addresses;
    Py_ssize_t length;
    if (!PyArg_ParseTuple(args, "Oy#i", &tuns, &addresses, &length, &own->control)) {
        return NULL;
    }
    if (own->buffer || length != (Py_ssize_t)ADDRESS * own->hosts) {
        return PyErr_Format(PyExc_ValueError, "%zd bytes of addresses, once", length);
    }
    int64_t *descriptors = numbers(tuns, own->hosts);
    own->tun = PyMem_Calloc((size_t)own->hosts + 1, sizeof *own->tun);
    own->address = PyMem_Malloc((size_t)length + 1);
    if (!descriptors || !own->tun || !own->address) {
        PyMem_Free(descriptors);
        return PyErr_Occurred() ? NULL : PyErr_NoMemory();
    }
    memcpy(own->address, addresses, (size_t)length);
    for (int host = 0; host < own->hosts; host++) {
        own->tun[host] = (int)descriptors[host];
    }
    PyMem_Free(descriptors);
    if (!(own->buffer = PyMem_Malloc(LARGEST))) {
        return PyErr_NoMemory();
    }
    if ((own->epoll = epoll_create1(EPOLL_CLOEXEC)) < 0) {
        return PyErr_SetFromErrno(PyExc_OSError);
    }
    for (int host = 0; host <= own->hosts; host++) {
        if (listen_to(own, host, EPOLL_CTL_ADD, EPOLLIN)) {
            return PyErr_SetFromErrno(PyExc_OSError);
        }
    }
    return Py_NewRef(Py_None);
}

static PyObject *forward(PyObject *self, PyObject *args) {
    struct carrier *own = (struct carrier *)self;
    PyObject *objects[2], *answer = NULL;
    Py_buffer counts = {0}, lateness = {0};
    long long until;
    if (!PyArg_ParseTuple(args, "LOO", &until, &objects[0], &objects[1])) {
        return NULL;
    }
    if (!PyObject_GetBuffer(objects[0], &counts, PyBUF_CONTIG) &&
        !PyObject_GetBuffer(objects[1], &lateness, PyBUF_CONTIG)) {
        if (!own->buffer || counts.len != 8 * COUNTS || lateness.len < 8) {
            PyErr_SetString(PyExc_ValueError, "attach it first; 4 counts and a histogram");
        } else {
            int asked = carry(own, until, counts.buf, lateness.buf, lateness.len / 8 - 1);
            answer = asked < 0 ? NULL : PyBool_FromLong(asked);
        }
    }
    PyBuffer_Release(&counts);
    PyBuffer_Release(&lateness);
    return answer;
}

static PyMethodDef methods[] = {{"send", send, METH_VARARGS, NULL},
                                {"deliver", deliver, METH_O, NULL},
                                {"attach", attach, METH_VARARGS, NULL},
                                {"forward", forward, METH_VARARGS, NULL},
                                {0}};
static PyGetSetDef values[] = {{"next_event", next_event, NULL, NULL, NULL}, {0}};
static PyType_Slot slots[] = {{Py_tp_init, initialise},
                              {Py_tp_dealloc, finish},
                              {Py_tp_methods, methods},
                              {Py_tp_getset, values},
                              {0, NULL}};
static PyType_Spec specification = {"collwise.lab._carrier.Carrier", sizeof(struct carrier), 0,
                                    Py_TPFLAGS_DEFAULT, slots};

static int fill(PyObject *module) {
    PyObject *type = PyType_FromModuleAndSpec(module, &specification, NULL);
    int failed = !type || PyModule_AddObjectRef(module, "Carrier", type);
    Py_XDECREF(type);
    return failed ? -1 : 0;
}

static PyModuleDef_Slot parts[] = {{Py_mod_exec, fill}, {0, NULL}};
static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, .m_name = "_carrier", .m_size = 0,
                                        .m_slots = parts};

PyMODINIT_FUNC PyInit__carrier(void) { return PyModuleDef_Init(&definition); }
