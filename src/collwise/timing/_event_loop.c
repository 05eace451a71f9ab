/* The Python module `_event_loop`: the loop of `event_loop.py`, which says what everything means. */
#define Py_LIMITED_API 0x030b0000
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <stdlib.h>

enum { MOST_LEVELS = 32, OFTEN = 1 << 16 };
enum outcome { DONE, STUCK, PAST_LIMIT, TOO_LATE, FAILED };
static const int64_t NEVER = -1, NONE = -1, LATEST = (int64_t)1 << 61;

/* The bits of `rules`, which are the rules of the law. */
enum rule { RENDEZVOUS = 1, IN_ORDER_OF_TIME = 2, ONE_PARTNER = 4, ONE_PROCESSOR = 8, IN_TURNS = 16 };

/* Of events at one time, those of the lowest kind come first: arrivals at shared ports (negative
   kinds), then requests; at a processor, a send comes before an arrived message, or before a read. */
enum kind { AT_PROCESSOR_SEND = 0, REQUEST = 1, AT_PROCESSOR_ARRIVAL = 2, READ = 2 };

struct event {
    int64_t time;
    int32_t kind, source, target, row;
};

struct shared { /* the ports that groups of a level share */
    const int64_t *busy, *group; /* by row; by rank */
    int64_t *out_free, *last_in; /* by group */
};

struct partner { int64_t rank, until, others_until; };

struct loop {
    int64_t rows, ranks, sends, ports, rules, limit;
    const int64_t *source, *target, *at_source, *at_target, *begins, *needs, *gap, *reach;
    const int64_t *send_port, *receive_port, *own_sends, *own_receives;
    const int64_t *routes, *links, *entry, *absorb, *along;
    int64_t *asked, *start, *received, *served, *waited, *holder;
    int levels, late, past;
    struct shared shared[MOST_LEVELS];
    /* `make` allocates the following arrays; the ones above are arguments of `play` */
    int64_t *reader_begins, *readers, *missing, *ready, *passage;
    int64_t *queue, *queue_begins, *next, *free, *left, *stack, stacked, number;
    char *requested, *on_stack;
    int64_t *link_free, *link_holder, count_links;
    struct partner *partners;
    struct event *heap, *arrived;
    int64_t events, *arrived_begins, *arrived_count, *cpu;
};

static int64_t later(int64_t a, int64_t b) { return a > b ? a : b; }

static int before(struct event a, struct event b) {
    if (a.time != b.time) {
        return a.time < b.time;
    }
    if (a.kind != b.kind) {
        return a.kind < b.kind;
    }
    if (a.source != b.source) {
        return a.source < b.source;
    }
    return a.target != b.target ? a.target < b.target : a.row < b.row;
}

static void push(struct event *heap, int64_t *events, struct event event) {
    int64_t hole = (*events)++;
    while (hole && before(event, heap[(hole - 1) / 2])) {
        heap[hole] = heap[(hole - 1) / 2];
        hole = (hole - 1) / 2;
    }
    heap[hole] = event;
}

static struct event pop(struct event *heap, int64_t *events) {
    struct event first = heap[0], last = heap[--*events];
    int64_t hole = 0, child;
    while ((child = 2 * hole + 1) < *events) {
        child += child + 1 < *events && before(heap[child + 1], heap[child]);
        if (!before(heap[child], last)) {
            break;
        }
        heap[hole] = heap[child];
        hole = child;
    }
    heap[hole] = last;
    return first;
}

static void push_row(struct loop *loop, int64_t time, int32_t kind, int64_t row) {
    int32_t ends[] = {(int32_t)loop->source[row], (int32_t)loop->target[row]};
    struct event event = {time, kind, ends[0], ends[1], (int32_t)row};
    loop->late |= time > LATEST;
    push(loop->heap, &loop->events, event);
}

static int64_t head(const struct loop *loop, int64_t port) {
    return loop->next[port] < loop->queue_begins[port + 1] ? loop->queue[loop->next[port]] : NONE;
}

static int combines(const struct loop *loop, int64_t row) { return loop->target[row] == NONE; }

static void wake(struct loop *loop, int64_t rank) {
    if (!loop->on_stack[rank]) {
        loop->on_stack[rank] = 1;
        loop->stack[loop->stacked++] = rank;
    }
}

/* Whether a message goes through shared memory, where a rank does one thing at a time. */
static int in_turns(const struct loop *loop, int64_t row) {
    return loop->rules & IN_TURNS && loop->entry[row] > 0;
}

/* Complete a row at `time`; rows that wait for its data may become ready. */
static void end_row(struct loop *loop, int64_t row, int64_t time) {
    loop->received[row] = time;
    loop->late |= time > LATEST;
    loop->past |= time > loop->limit;
    for (int64_t n = loop->reader_begins[row]; n < loop->reader_begins[row + 1]; n++) {
        int64_t reader = loop->readers[n];
        loop->ready[reader] = later(loop->ready[reader], time);
        loop->missing[reader]--;
    }
}

/* Receive a message at its receive port at `time`; the port is free again at `free`. */
static void receive(struct loop *loop, int64_t row, int64_t time, int64_t free) {
    int64_t port = loop->sends + loop->receive_port[row];
    loop->free[port] = free;
    loop->next[port]++;
    loop->left[port] -= loop->rules & RENDEZVOUS ? loop->reach[row] : loop->absorb[row];
    end_row(loop, row, time);
    loop->past |= loop->limit <= LATEST && time > loop->limit - loop->left[port];
}

/* The combine that is next at all receive ports (if `sending`, also send ports), or NONE. */
static int64_t next_combine(const struct loop *loop, int64_t rank, int sending) {
    int64_t row = head(loop, loop->sends + loop->own_receives[rank]);
    if (row == NONE || !combines(loop, row)) {
        return NONE;
    }
    for (int64_t port = loop->own_receives[rank]; port < loop->own_receives[rank + 1]; port++) {
        if (head(loop, loop->sends + port) != row) {
            return NONE;
        }
    }
    for (int64_t port = loop->own_sends[rank]; sending && port < loop->own_sends[rank + 1]; port++) {
        if (head(loop, port) != row) {
            return NONE;
        }
    }
    return row;
}

/* Do the combine that is next at all ports of a rank, if there is one and its data is there. */
static int combine(struct loop *loop, int64_t rank) {
    int64_t row = next_combine(loop, rank, 1);
    if (row == NONE || loop->missing[row]) {
        return 0;
    }
    int64_t time = loop->ready[row];
    const int64_t *own[] = {loop->own_sends + rank, loop->own_receives + rank};
    for (int way = 0; way < 2; way++) {
        for (int64_t port = own[way][0]; port < own[way][1]; port++) {
            time = later(time, loop->free[port + way * loop->sends]);
        }
    }
    loop->start[row] = time;
    for (int way = 0; way < 2; way++) {
        for (int64_t n = own[way][0]; n < own[way][1]; n++) {
            int64_t port = n + way * loop->sends;
            loop->free[port] = time + loop->gap[row];
            loop->next[port]++;
            loop->left[port] -= loop->gap[row];
        }
    }
    end_row(loop, row, time + loop->gap[row]);
    return 1;
}

/* When all ranks wait: do a combine before sends that are earlier in the rank's list. */
static int combine_before_sends(struct loop *loop, int64_t rank) {
    int64_t row = next_combine(loop, rank, 0);
    if (row == NONE) {
        return 0;
    }
    for (int64_t port = loop->own_sends[rank]; port < loop->own_sends[rank + 1]; port++) {
        int64_t place = loop->next[port];
        while (loop->queue[place] != row) {
            place++;
        }
        for (; place > loop->next[port]; place--) {
            loop->queue[place] = loop->queue[place - 1];
        }
        loop->queue[place] = row;
    }
    return combine(loop, rank);
}

/* Pass a message on to its next shared port inside `outermost`, or else to its target. */
static void arrive(struct loop *loop, int64_t time, int outermost, int64_t row) {
    for (int level = outermost - 1; level >= 0; level--) {
        if (loop->shared[level].busy[row]) {
            push_row(loop, time, -1 - level, row);
            return;
        }
    }
    loop->late |= time > LATEST;
    loop->passage[row] = time;
    if (loop->at_target[row] != NONE) {
        wake(loop, loop->target[row]);
    }
}

static int64_t when_links_free(struct loop *loop, int64_t row, int64_t ready) {
    int64_t start = ready;
    for (int64_t n = loop->routes[row]; n < loop->routes[row + 1]; n++) {
        start = later(start, loop->link_free[loop->links[n]] - loop->entry[row]);
    }
    for (int64_t n = loop->routes[row]; start > ready && n < loop->routes[row + 1]; n++) {
        if (loop->link_free[loop->links[n]] - loop->entry[row] == start) {
            loop->waited[row] = loop->links[n];
            loop->holder[row] = loop->link_holder[loop->links[n]];
            break;
        }
    }
    for (int64_t n = loop->routes[row]; n < loop->routes[row + 1]; n++) {
        loop->link_free[loop->links[n]] = start + loop->gap[row];
        loop->link_holder[loop->links[n]] = row;
    }
    return start;
}

static int64_t when_partners_free(const struct loop *loop, int64_t row, int64_t time) {
    const struct partner *source = &loop->partners[loop->source[row]];
    const struct partner *target = &loop->partners[loop->target[row]];
    time = later(time, source->rank == loop->target[row] ? source->others_until : source->until);
    return later(time, target->rank == loop->source[row] ? target->others_until : target->until);
}

static void meet(struct partner *partner, int64_t other, int64_t until) {
    if (partner->rank != other) {
        partner->rank = other, partner->others_until = partner->until;
    }
    partner->until = later(partner->until, until);
}

/* Start a message that is next at its ports, once all ports and links that it needs are free. */
static void serve(struct loop *loop, int64_t row, int64_t time) {
    int64_t port = loop->send_port[row];
    if (loop->rules & ONE_PARTNER) {
        time = when_partners_free(loop, row, time);
    }
    for (int way = 0; way < 2; way++) {
        for (int level = 0; level < loop->levels; level++) {
            struct shared *shared = &loop->shared[level];
            int64_t *free = &shared->out_free[shared->group[loop->source[row]]];
            if (shared->busy[row] && way) {
                *free = time + shared->busy[row];
            } else if (shared->busy[row]) {
                time = later(time, *free);
            }
        }
    }
    loop->asked[row] = time;
    if (loop->routes) {
        time = when_links_free(loop, row, time);
    }
    loop->free[port] = time + loop->gap[row];
    loop->next[port]++;
    loop->requested[port] = 0;
    if (in_turns(loop, row)) {
        loop->cpu[loop->source[row]] = time + loop->gap[row];
    }
    if (loop->rules & ONE_PARTNER) {
        meet(&loop->partners[loop->source[row]], loop->target[row], time + loop->gap[row]);
        meet(&loop->partners[loop->target[row]], loop->source[row], time + loop->gap[row]);
    }
    for (int64_t one = row; one != NONE && loop->start[one] == NEVER; one = loop->along[one]) {
        loop->start[one] = time;
        loop->served[one] = loop->number++;
        if (loop->rules & RENDEZVOUS) {
            receive(loop, one, time + loop->reach[one], time + loop->reach[one]);
            wake(loop, loop->target[one]);
        } else {
            arrive(loop, time + loop->reach[one], loop->levels, one);
        }
    }
    wake(loop, loop->source[row]);
}

/* Request the next message at a send port, if its data is there and, in a rendezvous, its receive
   is next.  It starts at once unless requests are in order of time; returns whether it did. */
static int request(struct loop *loop, int64_t port) {
    int64_t row = head(loop, port);
    if (row == NONE || loop->requested[port] || loop->missing[row] || combines(loop, row)) {
        return 0;
    }
    int64_t time = later(loop->ready[row], loop->free[port]);
    if (loop->rules & RENDEZVOUS) {
        int64_t at = loop->receive_port[row];
        if (at == NONE || head(loop, loop->sends + at) != row) {
            return 0;
        }
        time = later(time, loop->free[loop->sends + at]);
    }
    if (loop->rules & IN_ORDER_OF_TIME) {
        loop->requested[port] = 1;
        push_row(loop, time, REQUEST, row);
        return 0;
    }
    serve(loop, row, time);
    return 1;
}

/* Do all combines, receives and requests of a rank that are possible now. */
static void go_on(struct loop *loop, int64_t rank) {
    int64_t row;
    while (combine(loop, rank)) {
    }
    for (int64_t n = loop->own_receives[rank]; n < loop->own_receives[rank + 1]; n++) {
        int64_t port = loop->sends + n;
        while ((row = head(loop, port)) != NONE && !combines(loop, row) &&
               loop->source[row] != NONE) {
            if (loop->rules & RENDEZVOUS) {
                request(loop, loop->send_port[row]);
                break;
            }
            int64_t time = loop->passage[row];
            if (time == NEVER) {
                break;
            }
            if (in_turns(loop, row)) {
                if (!loop->requested[port]) {
                    loop->requested[port] = 1;
                    push_row(loop, later(time - loop->absorb[row], loop->free[port]), READ, row);
                }
                break;
            }
            if (loop->free[port] != NEVER) {
                time = later(time, loop->free[port] + loop->absorb[row]);
            }
            receive(loop, row, time, time);
            wake(loop, rank);
        }
    }
    for (int64_t port = loop->own_sends[rank]; port < loop->own_sends[rank + 1]; port++) {
        while (request(loop, port)) {
        }
    }
}

/* The next event at a rank's processor: its next send, or its first arrived message. */
static int next_at_processor(const struct loop *loop, int64_t rank, struct event *event) {
    int64_t row = head(loop, rank), from = loop->arrived_begins[rank];
    int found = 0;
    if (row != NONE && !loop->missing[row]) {
        int64_t time = later(later(loop->cpu[rank], loop->free[rank]), loop->ready[row]);
        *event = (struct event){time, AT_PROCESSOR_SEND, (int32_t)rank, 0, (int32_t)row};
        found = 1;
    }
    if (loop->arrived_count[rank]) {
        struct event first = loop->arrived[from];
        int64_t gap_free = loop->free[loop->sends + rank];
        int64_t time = later(later(first.time, loop->cpu[rank]), gap_free);
        if (!found || time < event->time) {
            *event = (struct event){time, AT_PROCESSOR_ARRIVAL, (int32_t)rank, 0, first.row};
            found = 1;
        }
    }
    return found;
}

static void plan_processor(struct loop *loop, int64_t rank) {
    struct event event;
    if (next_at_processor(loop, rank, &event)) {
        loop->late |= event.time > LATEST;
        push(loop->heap, &loop->events, event);
    }
}

/* Do an event at a rank's processor.  `gap` is the time until a port is free again, `reach` until
   the message arrives, `entry` the overhead of a send, `absorb` that of a receive. */
static void use_processor(struct loop *loop, struct event event) {
    struct event now;
    int64_t rank = event.source, row = event.row, port = rank;
    if (!next_at_processor(loop, rank, &now) || before(now, event) || before(event, now)) {
        return; /* out of date: a newer event of this rank is in the heap */
    }
    loop->past |= event.time > loop->limit;
    if (event.kind == AT_PROCESSOR_SEND) {
        int64_t to = loop->target[row];
        loop->start[row] = event.time;
        loop->served[row] = loop->number++;
        loop->cpu[rank] = event.time + loop->entry[row];
        loop->free[port] = event.time + loop->gap[row];
        loop->next[port]++;
        if (loop->at_target[row] != NONE) {
            int64_t time = event.time + loop->reach[row];
            struct event arrival = {time, 0, (int32_t)rank, 0, (int32_t)row};
            push(loop->arrived + loop->arrived_begins[to], &loop->arrived_count[to], arrival);
            plan_processor(loop, to);
        }
    } else {
        pop(loop->arrived + loop->arrived_begins[rank], &loop->arrived_count[rank]);
        loop->cpu[rank] = event.time + loop->absorb[row];
        loop->free[loop->sends + rank] = event.time + loop->gap[row];
        end_row(loop, row, loop->cpu[rank]);
    }
    plan_processor(loop, rank);
}

static void handle(struct loop *loop, struct event event) {
    int64_t rank = event.kind == READ ? event.target : event.source;
    loop->past |= event.time > loop->limit;
    if (loop->rules & ONE_PROCESSOR) {
        use_processor(loop, event);
    } else if (in_turns(loop, event.row) && event.time < loop->cpu[rank]) {
        push_row(loop, loop->cpu[rank], event.kind, event.row);
    } else if (event.kind == READ) {
        int64_t time = loop->cpu[rank] = event.time + loop->absorb[event.row];
        loop->requested[loop->sends + loop->receive_port[event.row]] = 0;
        receive(loop, event.row, time, time);
        wake(loop, rank);
    } else if (event.kind == REQUEST) {
        serve(loop, event.row, event.time);
    } else {
        int level = -1 - event.kind;
        struct shared *shared = &loop->shared[level];
        int64_t *last = &shared->last_in[shared->group[event.target]];
        if (*last != NEVER) {
            event.time = later(event.time, *last + shared->busy[event.row]);
        }
        *last = event.time;
        arrive(loop, event.time, level, event.row);
    }
}

static enum outcome play(struct loop *loop) {
    for (int64_t rank = loop->ranks - 1; rank >= 0; rank--) {
        if (loop->rules & ONE_PROCESSOR) {
            plan_processor(loop, rank);
        } else {
            wake(loop, rank);
        }
    }
    for (int64_t count = 1; !loop->late; count++) {
        if (loop->past) {
            return PAST_LIMIT;
        }
        if (loop->stacked) {
            int64_t rank = loop->stack[--loop->stacked];
            loop->on_stack[rank] = 0;
            go_on(loop, rank);
        } else if (loop->events) {
            handle(loop, pop(loop->heap, &loop->events));
        } else {
            int64_t freed = 0;
            for (int64_t rank = 0; loop->rules & RENDEZVOUS && rank < loop->ranks; rank++) {
                if (combine_before_sends(loop, rank)) {
                    wake(loop, rank);
                    freed = 1;
                }
            }
            if (!freed) {
                break;
            }
        }
        if (count % OFTEN == 0 && PyErr_CheckSignals()) {
            return FAILED;
        }
    }
    if (loop->late) {
        return TOO_LATE;
    }
    for (int64_t row = 0; row < loop->rows; row++) {
        int is_received = loop->at_target[row] == NONE && loop->source[row] != NONE &&
                          !combines(loop, row);
        if (is_received ? loop->start[row] == NEVER : loop->received[row] == NEVER) {
            return STUCK;
        }
    }
    return DONE;
}

struct listed { int64_t place, row, port; };

static int by_place(const void *a, const void *b) {
    const struct listed *one = a, *other = b;
    return (one->place > other->place) - (one->place < other->place);
}

/* Whether a row stands at a send port: all but the further ones of a publication. */
static int is_sent(const struct loop *loop, int64_t row) {
    return loop->source[row] != NONE && (combines(loop, row) || loop->send_port[row] != NONE);
}

/* Fill every port's queue with the rows that use the port, in the order of the rank's list; a
   combine is in all queues of its rank. */
static int make_queues(struct loop *loop) {
    int64_t *begins = PyMem_Calloc((size_t)loop->ranks + 2, 8), total = 0;
    int64_t *filled = PyMem_Calloc((size_t)loop->ports + 1, 8);
    struct listed *listed = PyMem_Malloc((2 * (size_t)loop->rows + 1) * sizeof *listed);
    if (!begins || !filled || !listed) {
        goto end;
    }
    for (int64_t row = 0; row < loop->rows; row++) {
        if (is_sent(loop, row)) {
            begins[loop->source[row] + 2]++;
        }
        if (!combines(loop, row) && loop->at_target[row] != NONE) {
            begins[loop->target[row] + 2]++;
        }
    }
    for (int64_t rank = 0; rank < loop->ranks; rank++) {
        begins[rank + 2] += begins[rank + 1];
    }
    for (int64_t row = 0; row < loop->rows; row++) {
        if (is_sent(loop, row)) {
            int64_t port = combines(loop, row) ? NONE : loop->send_port[row];
            struct listed one = {loop->at_source[row], row, port};
            listed[begins[loop->source[row] + 1]++] = one;
        }
        if (!combines(loop, row) && loop->at_target[row] != NONE) {
            struct listed one = {loop->at_target[row], row, loop->sends + loop->receive_port[row]};
            listed[begins[loop->target[row] + 1]++] = one;
        }
    }
    for (int way = 0; way < 2; way++) { /* count, then fill */
        for (int64_t rank = 0; rank < loop->ranks; rank++) {
            int64_t low = begins[rank], high = begins[rank + 1], sorted = 1;
            for (int64_t n = low + 1; n < high; n++) {
                sorted &= listed[n - 1].place <= listed[n].place;
            }
            if (!sorted) {
                qsort(listed + low, (size_t)(high - low), sizeof *listed, by_place);
            }
            for (int64_t n = low; n < high; n++) {
                int64_t first = listed[n].port, last = first, row = listed[n].row;
                for (int side = 0; side < 2; side++) {
                    if (listed[n].port == NONE) {
                        const int64_t *own = side ? loop->own_receives : loop->own_sends;
                        first = own[rank] + side * loop->sends;
                        last = own[rank + 1] - 1 + side * loop->sends;
                    } else if (side) {
                        break;
                    }
                    for (int64_t port = first; port <= last; port++, total++) {
                        if (way) {
                            loop->queue[loop->queue_begins[port] + filled[port]] = row;
                        }
                        if (way && loop->limit <= LATEST && loop->left[port] <= loop->limit) {
                            loop->left[port] += combines(loop, row) ? loop->gap[row]
                                                : loop->rules & RENDEZVOUS ? loop->reach[row]
                                                                           : loop->absorb[row];
                        }
                        filled[port]++;
                    }
                }
            }
        }
        if (!way) {
            if (!(loop->queue = PyMem_Malloc(((size_t)total + 1) * 8))) {
                goto end;
            }
            for (int64_t port = 0; port < loop->ports; port++) {
                loop->queue_begins[port + 1] = loop->queue_begins[port] + filled[port];
                loop->next[port] = loop->queue_begins[port];
                filled[port] = 0;
            }
        }
    }
end:
    PyMem_Free(begins), PyMem_Free(filled), PyMem_Free(listed);
    return loop->queue != NULL;
}

/* Allocate the loop's own arrays: readers of rows, queues, heaps.  Returns 0 without memory. */
static int make(struct loop *loop) {
    size_t rows = (size_t)loop->rows + 2, ranks = (size_t)loop->ranks + 2;
    size_t ports = (size_t)loop->ports + 1, needs = (size_t)loop->begins[loop->rows] + 1;
    int processor = (loop->rules & (ONE_PROCESSOR | IN_TURNS)) != 0;
    int64_t **zeros[] = {&loop->reader_begins, &loop->missing, &loop->ready};
    for (int n = 0; n < 3; n++) {
        if (!(*zeros[n] = PyMem_Calloc(rows, 8))) {
            return 0;
        }
    }
    loop->readers = PyMem_Malloc(needs * 8);
    loop->passage = PyMem_Malloc(rows * 8);
    loop->queue_begins = PyMem_Calloc(ports, 8);
    loop->next = PyMem_Calloc(ports, 8);
    loop->free = PyMem_Calloc(ports, 8);
    loop->left = PyMem_Calloc(ports, 8);
    loop->stack = PyMem_Malloc(ranks * 8);
    loop->on_stack = PyMem_Calloc(ranks, 1);
    loop->requested = PyMem_Calloc(ports, 1);
    loop->link_free = PyMem_Calloc((size_t)loop->count_links + 1, 8);
    loop->link_holder = PyMem_Calloc((size_t)loop->count_links + 1, 8);
    loop->partners = PyMem_Calloc(loop->rules & ONE_PARTNER ? ranks : 1, sizeof *loop->partners);
    int heaped = (loop->rules & (IN_ORDER_OF_TIME | ONE_PROCESSOR)) != 0;
    loop->heap = PyMem_Malloc((heaped ? 3 * rows + ranks : 1) * sizeof *loop->heap);
    loop->arrived = PyMem_Malloc((processor ? rows : 1) * sizeof *loop->arrived);
    loop->arrived_begins = PyMem_Calloc(processor ? ranks : 1, 8);
    loop->arrived_count = PyMem_Calloc(processor ? ranks : 1, 8);
    loop->cpu = PyMem_Calloc(processor ? ranks : 1, 8);
    if (!loop->readers || !loop->passage || !loop->queue_begins || !loop->next || !loop->free ||
        !loop->left || !loop->stack || !loop->on_stack || !loop->requested || !loop->link_free ||
        !loop->link_holder || !loop->partners || !loop->heap || !loop->arrived ||
        !loop->arrived_begins || !loop->arrived_count || !loop->cpu || !make_queues(loop)) {
        return 0;
    }
    for (int64_t n = loop->sends; n < loop->ports; n++) {
        loop->free[n] = loop->rules & (RENDEZVOUS | ONE_PROCESSOR) ? 0 : NEVER;
    }
    for (int64_t n = 0; loop->rules & ONE_PARTNER && n < loop->ranks; n++) {
        loop->partners[n].rank = NONE;
    }
    for (int64_t row = 0; row < loop->rows; row++) {
        loop->start[row] = loop->received[row] = loop->passage[row] = NEVER;
        loop->waited[row] = loop->holder[row] = NONE;
        loop->missing[row] = loop->begins[row + 1] - loop->begins[row];
        if (processor && loop->at_target[row] != NONE) {
            loop->arrived_begins[loop->target[row] + 1]++;
        }
        for (int64_t n = loop->begins[row]; n < loop->begins[row + 1]; n++) {
            loop->reader_begins[loop->needs[n] + 1]++;
        }
    }
    for (int64_t n = 0; n < loop->rows; n++) {
        loop->reader_begins[n + 1] += loop->reader_begins[n];
    }
    for (int64_t n = 0; processor && n < loop->ranks; n++) {
        loop->arrived_begins[n + 1] += loop->arrived_begins[n];
    }
    for (int64_t row = loop->rows - 1; row >= 0; row--) {
        for (int64_t n = loop->begins[row]; n < loop->begins[row + 1]; n++) {
            loop->readers[--loop->reader_begins[loop->needs[n] + 1]] = row;
        }
    }
    for (int64_t n = 0; n < loop->rows; n++) { /* the ends were moved to the beginnings */
        loop->reader_begins[n] = loop->reader_begins[n + 1];
    }
    loop->reader_begins[loop->rows] = loop->begins[loop->rows];
    return 1;
}

static void unmake(struct loop *loop) {
    void *made[] = {loop->reader_begins, loop->readers, loop->missing, loop->ready, loop->passage,
                    loop->queue, loop->queue_begins, loop->next, loop->free, loop->left,
                    loop->stack, loop->on_stack, loop->requested, loop->link_free,
                    loop->link_holder, loop->partners, loop->heap, loop->arrived,
                    loop->arrived_begins, loop->arrived_count, loop->cpu};
    for (size_t n = 0; n < sizeof made / sizeof *made; n++) {
        PyMem_Free(made[n]);
    }
}

/* The buffers of the arrays that one call of `play` got. */
struct buffers { Py_buffer kept[25 + 4 * MOST_LEVELS]; int count; };

static int64_t *items(struct buffers *buffers, PyObject *object, int64_t count, int flags) {
    Py_buffer *buffer = &buffers->kept[buffers->count];
    if (PyObject_GetBuffer(object, buffer, flags)) {
        return NULL;
    }
    ++buffers->count;
    if (count >= 0 && buffer->len != count * 8) {
        PyErr_Format(PyExc_ValueError, "%zd bytes for %lld items", buffer->len, (long long)count);
        return NULL;
    }
    return buffer->buf;
}

/* Whether all numbers of a column are in [low, high). */
static int within(const int64_t *column, int64_t count, int64_t low, int64_t high) {
    int inside = 1;
    for (int64_t n = 0; n < count; n++) {
        inside &= column[n] >= low && column[n] < high;
    }
    return inside;
}

static int checked(const struct loop *loop, int64_t needs, int64_t links) {
    int64_t rows = loop->rows, ranks = loop->ranks, receives = loop->ports - loop->sends;
    int ordered = loop->begins[0] == 0 && loop->begins[rows] == needs;
    for (int64_t n = 0; n < rows; n++) {
        ordered &= loop->begins[n] <= loop->begins[n + 1];
        ordered &= !loop->routes || loop->routes[n] <= loop->routes[n + 1];
    }
    if (loop->routes) {
        ordered &= loop->routes[0] == 0 && loop->routes[rows] == links;
        ordered &= within(loop->links, links, 0, loop->count_links);
    }
    for (int64_t n = 0; n < ranks; n++) {
        ordered &= loop->own_sends[n] < loop->own_sends[n + 1];
        ordered &= loop->own_receives[n] < loop->own_receives[n + 1];
    }
    for (int64_t n = 0; n < rows; n++) {
        ordered &= loop->source[n] == NONE || is_sent(loop, n) || !(loop->rules & RENDEZVOUS);
        ordered &= loop->at_target[n] == NONE || loop->receive_port[n] != NONE;
        ordered &= !combines(loop, n) || (loop->source[n] != NONE && loop->at_target[n] == NONE);
    }
    ordered &= !(loop->rules & ONE_PROCESSOR) || (loop->sends == ranks && receives == ranks);
    return ordered && within(loop->source, rows, NONE, ranks) &&
           within(loop->target, rows, NONE, ranks) && within(loop->needs, needs, 0, rows) &&
           within(loop->send_port, rows, NONE, loop->sends) && within(loop->along, rows, NONE, rows) &&
           within(loop->receive_port, rows, NONE, receives) &&
           loop->own_sends[0] == 0 && loop->own_sends[ranks] == loop->sends &&
           loop->own_receives[0] == 0 && loop->own_receives[ranks] == receives;
}

/* play(rows, ranks, rules, limit, columns, needs, ports, routes, levels, results): see `event_loop`. */
static PyObject *play_rows(PyObject *module, PyObject *args) {
    PyObject *columns, *given_needs, *ports, *routes, *levels, *results, *answer = NULL;
    struct buffers buffers = {.count = 0};
    struct loop loop = {0};
    long long rows, ranks, rules, limit;
    (void)module;
    if (!PyArg_ParseTuple(args, "LLLLO!OO!O!O!O!", &rows, &ranks, &rules, &limit, &PyTuple_Type,
                          &columns, &given_needs, &PyTuple_Type, &ports, &PyTuple_Type, &routes,
                          &PyTuple_Type, &levels, &PyTuple_Type, &results)) {
        return NULL;
    }
    if (rows < 0 || rows > INT32_MAX / 4 || ranks < 0 || ranks > INT32_MAX / 4 ||
        PyTuple_Size(columns) != 12 || PyTuple_Size(ports) != 2 || PyTuple_Size(results) != 6 ||
        (PyTuple_Size(routes) != 0 && PyTuple_Size(routes) != 3) ||
        PyTuple_Size(levels) > MOST_LEVELS) {
        return PyErr_Format(PyExc_ValueError, "%lld rows of %lld ranks", rows, ranks);
    }
    loop.rows = rows, loop.ranks = ranks, loop.rules = rules, loop.limit = limit;
    const int64_t **column[] = {&loop.source, &loop.target, &loop.at_source, &loop.at_target,
                                &loop.send_port, &loop.receive_port, &loop.gap, &loop.reach,
                                &loop.entry, &loop.absorb, &loop.begins, &loop.along};
    int64_t **result[] = {&loop.asked, &loop.start, &loop.received, &loop.served, &loop.waited,
                          &loop.holder};
    const int64_t **port[] = {&loop.own_sends, &loop.own_receives};
    for (int n = 0; n < 12; n++) {
        *column[n] = items(&buffers, PyTuple_GetItem(columns, n), rows + (n == 10), PyBUF_CONTIG_RO);
        if (!*column[n]) {
            goto end;
        }
    }
    for (int n = 0; n < 6; n++) {
        *result[n] = items(&buffers, PyTuple_GetItem(results, n), rows, PyBUF_CONTIG);
        if (!*result[n]) {
            goto end;
        }
    }
    for (int n = 0; n < 2; n++) {
        *port[n] = items(&buffers, PyTuple_GetItem(ports, n), ranks + 1, PyBUF_CONTIG_RO);
        if (!*port[n]) {
            goto end;
        }
    }
    loop.sends = loop.own_sends[ranks], loop.ports = loop.sends + loop.own_receives[ranks];
    if (!(loop.needs = items(&buffers, given_needs, -1, PyBUF_CONTIG_RO))) {
        goto end;
    }
    int64_t needs = buffers.kept[buffers.count - 1].len / 8, links = 0;
    if (PyTuple_Size(routes)) {
        loop.count_links = PyLong_AsLongLong(PyTuple_GetItem(routes, 2));
        if (!(loop.routes = items(&buffers, PyTuple_GetItem(routes, 0), rows + 1, PyBUF_CONTIG_RO)) ||
            !(loop.links = items(&buffers, PyTuple_GetItem(routes, 1), -1, PyBUF_CONTIG_RO))) {
            goto end;
        }
        links = buffers.kept[buffers.count - 1].len / 8;
    }
    for (; loop.levels < PyTuple_Size(levels); loop.levels++) {
        struct shared *level = &loop.shared[loop.levels];
        PyObject *busy, *group, *out_free, *last_in;
        if (!PyArg_ParseTuple(PyTuple_GetItem(levels, loop.levels), "OOOO", &busy, &group,
                              &out_free, &last_in)) {
            goto end;
        }
        Py_ssize_t groups = PyObject_Size(out_free);
        if (!(level->busy = items(&buffers, busy, rows, PyBUF_CONTIG_RO)) ||
            !(level->group = items(&buffers, group, ranks, PyBUF_CONTIG_RO)) ||
            !(level->out_free = items(&buffers, out_free, groups, PyBUF_CONTIG)) ||
            !(level->last_in = items(&buffers, last_in, groups, PyBUF_CONTIG))) {
            goto end;
        }
        if (!within(level->group, ranks, 0, groups)) {
            PyErr_SetString(PyExc_ValueError, "a group that is not there");
            goto end;
        }
    }
    if (!checked(&loop, needs, links)) {
        PyErr_SetString(PyExc_ValueError, "rows that name what is not there");
    } else if (!make(&loop)) {
        PyErr_NoMemory();
    } else {
        enum outcome outcome = play(&loop);
        answer = outcome == FAILED ? NULL : PyLong_FromLong(outcome);
    }
end:
    unmake(&loop);
    while (buffers.count) {
        PyBuffer_Release(&buffers.kept[--buffers.count]);
    }
    return answer;
}

static PyMethodDef methods[] = {{"play", play_rows, METH_VARARGS, NULL}, {0}};
static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, .m_name = "_event_loop",
                                        .m_size = 0, .m_methods = methods};

PyMODINIT_FUNC PyInit__event_loop(void) { return PyModuleDef_Init(&definition); }
