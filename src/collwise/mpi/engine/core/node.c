#define _DEFAULT_SOURCE /* syscall */
#include "node.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#ifdef __linux__
#include <linux/futex.h>
#include <sys/syscall.h>
#endif

#define LINE _Alignas(64)

struct letter {
    LINE _Atomic uint32_t full;
    uint32_t nbytes, last;
    int32_t piece; /* its number in the writer's ring; -1: it lies here */
    union {
        char bytes[SHORT];
        uint64_t at;
    } data;
};

struct row {
    LINE _Atomic uint32_t read;
    struct letter letters[LETTERS];
};

struct bed {
    LINE _Atomic uint32_t bell;
    _Atomic uint32_t asleep;
};

struct ring {
    struct {
        LINE _Atomic uint32_t left;
    } pieces[PIECES];
    LINE char bytes[RING];
};

struct claim {
    LINE _Atomic uint64_t word; /* the turn decided last, that which has the lane, ranks that have it */
};

enum { TURN = 27, OWNER = 10 }; /* bits of a turn, and of the ranks */
#define TURNS (((uint64_t)1 << TURN) - 1)
#define HOLDERS (((uint64_t)1 << OWNER) - 1)

struct node {
    pid_t process;
    int ranks, rank;
    int lanes; /* that follow the first */
    struct claim *claim;
    struct bed *beds;
    struct row *rows;   /* of all pairs: the writer's, by reader */
    struct ring *rings;
    uint32_t *sent, *known_read, *received; /* letters, by rank */
    uint32_t first, end;      /* pieces in the own ring, by number */
    uint64_t free_to, used_to; /* bytes of it, ever counted on */
    uint64_t ends[PIECES];
};

static int64_t lane_nbytes(int64_t n) {
    return (int64_t)sizeof(struct claim) + n * (int64_t)sizeof(struct bed) +
           n * n * (int64_t)sizeof(struct row) + n * (int64_t)sizeof(struct ring);
}

static int lanes_for(int ranks) {
    int64_t lanes = LANES_NBYTES / lane_nbytes(ranks);
    return lanes < LANES ? (int)lanes : LANES;
}

int64_t node_nbytes(int ranks) { return (1 + lanes_for(ranks)) * lane_nbytes(ranks); }

struct node *node_open(void *memory, int ranks, int rank) {
    int lanes = lanes_for(ranks);
    size_t counted = 3 * (size_t)ranks * sizeof(uint32_t);
    struct node *first = calloc(1 + (size_t)lanes, sizeof *first + counted);
    uint32_t *counters = (void *)(first + 1 + lanes);
    for (int n = 0; first && n <= lanes; n++, counters += 3 * ranks) {
        struct node *node = &first[n];
        node->process = getpid();
        node->lanes = lanes;
        node->ranks = ranks;
        node->rank = rank;
        node->claim = (void *)((char *)memory + n * lane_nbytes(ranks));
        node->beds = (void *)(node->claim + 1);
        node->rows = (void *)(node->beds + ranks);
        node->rings = (void *)(node->rows + (int64_t)ranks * ranks);
        node->sent = counters;
        node->known_read = counters + ranks;
        node->received = counters + 2 * ranks;
    }
    return first;
}

void node_close(struct node *first) { free(first); }

struct node *node_take(struct node *first, int number) {
    if (!first->lanes) {
        return NULL;
    }
    struct node *lane = &first[1 + number % first->lanes];
    uint64_t turn = (uint64_t)(number / first->lanes) + 1, next; /* numbers are below 2^27 - 1 */
    uint64_t word = atomic_load(&lane->claim->word);
    do {
        int held = (word & HOLDERS) != 0;
        if (word >> (TURN + OWNER) >= turn) { /* it was this turn's, or later */
            return held && (word >> OWNER & TURNS) == turn ? lane : NULL;
        }
        next = held ? word & (TURNS << OWNER | HOLDERS) : turn << OWNER | (uint64_t)first->ranks;
    } while (!atomic_compare_exchange_weak(&lane->claim->word, &word,
                                           next | turn << (TURN + OWNER)));
    return word & HOLDERS ? NULL : lane;
}

void node_give(struct node *lane) {
    if (lane->process == getpid()) { /* a forked child's copies of requests give nothing back */
        atomic_fetch_sub(&lane->claim->word, 1);
    }
}

static struct row *row_of(struct node *node, int writer, int reader) {
    return &node->rows[(int64_t)writer * node->ranks + reader];
}

static void ring_bell(struct bed *bed) {
    if (atomic_load(&bed->asleep)) {
        atomic_fetch_add(&bed->bell, 1);
#ifdef __linux__
        syscall(SYS_futex, &bed->bell, FUTEX_WAKE, 1, NULL, NULL, 0);
#endif
    }
}

static int has_room(struct node *node, int reader) {
    if (node->sent[reader] - node->known_read[reader] < LETTERS) {
        return 1;
    }
    struct row *row = row_of(node, node->rank, reader);
    node->known_read[reader] = atomic_load(&row->read);
    return node->sent[reader] - node->known_read[reader] < LETTERS;
}

/* Room in the own ring for so many bytes; a piece does not go around its end.  0 if there is none. */
static int find_room(struct node *node, int64_t nbytes, uint64_t *at) {
    struct ring *ring = &node->rings[node->rank];
    while (node->first != node->end && !atomic_load(&ring->pieces[node->first % PIECES].left)) {
        node->free_to = node->ends[node->first++ % PIECES];
    }
    if (node->first == node->end) { /* from the beginning again: these pages are there and warm */
        node->free_to = node->used_to = 0;
    }
    uint64_t begin = node->used_to, place = begin % RING;
    if (place + (uint64_t)nbytes > RING) {
        begin += RING - place;
    }
    *at = begin;
    return node->end - node->first < PIECES && begin + (uint64_t)nbytes - node->free_to <= RING;
}

int64_t node_publish(struct node *node, const int *readers, int number, const char *data,
                     int64_t nbytes, int in_letters) {
    int64_t taken = nbytes < PIECE ? nbytes : PIECE;
    uint64_t at = 0;
    int32_t piece = -1;
    for (int n = 0; n < number; n++) {
        if (!has_room(node, readers[n])) {
            return -1;
        }
    }
    if (taken > SHORT && (in_letters || !find_room(node, taken, &at))) {
        if (node_letters(nbytes) > LETTERS) {
            return -1;
        }
        taken = SHORT;
    }
    if (taken > SHORT) {
        struct ring *ring = &node->rings[node->rank];
        memcpy(ring->bytes + at % RING, data, (size_t)taken);
        piece = (int32_t)(node->end++ % PIECES);
        node->used_to = node->ends[piece] = (at + (uint64_t)taken + 63) / 64 * 64;
        atomic_store_explicit(&ring->pieces[piece].left, (uint32_t)number, memory_order_relaxed);
    }
    for (int n = 0; n < number; n++) {
        uint32_t before = node->sent[readers[n]]++;
        struct letter *letter = &row_of(node, node->rank, readers[n])->letters[before % LETTERS];
        letter->nbytes = (uint32_t)taken;
        letter->last = taken == nbytes;
        letter->piece = piece;
        if (piece >= 0) {
            letter->data.at = at % RING;
        } else {
            memcpy(letter->data.bytes, data, (size_t)taken);
        }
        atomic_store(&letter->full, before + 1);
        ring_bell(&node->beds[readers[n]]);
    }
    return taken;
}

static struct letter *next_letter(struct node *node, int writer) {
    return &row_of(node, writer, node->rank)->letters[node->received[writer] % LETTERS];
}

int node_look(struct node *node, int writer, struct piece *piece) {
    struct letter *letter = next_letter(node, writer);
    if (atomic_load(&letter->full) != node->received[writer] + 1) {
        return 0;
    }
    piece->data = letter->piece < 0 ? letter->data.bytes
                                    : node->rings[writer].bytes + letter->data.at;
    piece->nbytes = letter->nbytes;
    piece->last = (int)letter->last;
    return 1;
}

void node_acknowledge(struct node *node, int writer) {
    int32_t piece = next_letter(node, writer)->piece;
    if (piece >= 0) {
        atomic_fetch_sub(&node->rings[writer].pieces[piece].left, 1);
    }
    atomic_store(&row_of(node, writer, node->rank)->read, ++node->received[writer]);
    ring_bell(&node->beds[writer]);
}

uint32_t node_drowse(struct node *node) {
    struct bed *bed = &node->beds[node->rank];
    uint32_t bell = atomic_load(&bed->bell);
    atomic_store(&bed->asleep, 1);
    return bell;
}

void node_sleep(struct node *node, uint32_t bell, int64_t limit_ns) {
    const struct timespec limit = {0, limit_ns};
#ifdef __linux__
    syscall(SYS_futex, &node->beds[node->rank].bell, FUTEX_WAIT, bell, &limit, NULL, 0);
#else
    (void)node, (void)bell;
    nanosleep(&limit, NULL);
#endif
}

void node_rouse(struct node *node) { atomic_store(&node->beds[node->rank].asleep, 0); }
