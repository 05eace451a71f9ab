#define _GNU_SOURCE /* syscall, process_vm_readv */
#include "node.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#ifdef __linux__
#include <linux/futex.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#endif

#define LINE _Alignas(64)

enum { HERE = -1, LENT = -2 }; /* instead of a piece's number */

struct letter {
    LINE _Atomic uint32_t full;
    uint32_t nbytes, last;
    int32_t piece; /* its number in the writer's ring; HERE: it lies here; LENT: in the writer's memory */
    union {
        char bytes[SHORT];
        uint64_t at;
        struct loan {
            uint64_t from;
            int64_t nbytes;
            _Atomic uint64_t to; /* 0: nobody else copies */
            _Atomic uint32_t taken; /* parts; and of the others a bit for each: */
            _Atomic uint32_t done, readers, writers; /* over; the system refused it to the other one */
            _Atomic uint32_t lost; /* it refused a part to both */
        } loan;
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
    pid_t *processes; /* of all ranks */
    int ranks, rank, lends;
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
    size_t counted = 3 * (size_t)ranks * sizeof(uint32_t), known = (size_t)ranks * sizeof(pid_t);
    struct node *first = calloc(1, (1 + (size_t)lanes) * (sizeof *first + counted) + known);
    uint32_t *counters = (void *)(first + 1 + lanes);
    pid_t *processes = (void *)(counters + 3 * ranks * (1 + lanes));
    for (int n = 0; first && n <= lanes; n++, counters += 3 * ranks) {
        struct node *node = &first[n];
        node->process = getpid();
        node->processes = processes;
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

void node_lend_among(struct node *first, const pid_t *processes) {
    memcpy(first->processes, processes, (size_t)first->ranks * sizeof *processes);
    for (int n = 0; n <= first->lanes; n++) {
        first[n].lends = 1;
    }
}

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

static struct letter *written_next(struct node *node, int reader) {
    return &row_of(node, node->rank, reader)->letters[node->sent[reader] % LETTERS];
}

static void post(struct node *node, int reader, struct letter *letter) {
    atomic_store(&letter->full, ++node->sent[reader]);
    ring_bell(&node->beds[reader]);
}

int64_t node_publish(struct node *node, const int *readers, int number, const char *data,
                     int64_t nbytes, int in_letters) {
    int64_t taken = nbytes < PIECE ? nbytes : PIECE;
    uint64_t at = 0;
    int32_t piece = HERE;
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
        struct letter *letter = written_next(node, readers[n]);
        letter->nbytes = (uint32_t)taken;
        letter->last = taken == nbytes;
        letter->piece = piece;
        if (piece >= 0) {
            letter->data.at = at % RING;
        } else {
            memcpy(letter->data.bytes, data, (size_t)taken);
        }
        post(node, readers[n], letter);
    }
    return taken;
}

/* --- loans ---------------------------------------------------------------------------------------- */

#ifdef __linux__
#define MOVE(function, process, here, there, nbytes) \
    (function(process, &(struct iovec){here, (size_t)(nbytes)}, 1, \
              &(struct iovec){(void *)(uintptr_t)(there), (size_t)(nbytes)}, 1, 0) == (nbytes))
#else
#define MOVE(function, process, here, there, nbytes) ((void)(here), (void)(there), 0)
#endif

int node_reads(pid_t process, uint64_t address, uint64_t word) {
    uint64_t read = 0;
    return MOVE(process_vm_readv, process, &read, address, sizeof read) && read == word;
}

int node_lend(struct node *node, const int *readers, int number, const char *data, int64_t nbytes,
              uint32_t *letters) {
    for (int n = 0; n < number; n++) {
        if (!node->lends || !has_room(node, readers[n])) {
            return 0;
        }
    }
    for (int n = 0; n < number; n++) {
        letters[n] = node->sent[readers[n]];
        struct letter *letter = written_next(node, readers[n]);
        struct loan *loan = &letter->data.loan;
        letter->last = 1;
        letter->piece = LENT;
        loan->from = (uintptr_t)data;
        loan->nbytes = nbytes;
        atomic_store_explicit(&loan->to, 0, memory_order_relaxed);
        atomic_store_explicit(&loan->taken, 0, memory_order_relaxed);
        atomic_store_explicit(&loan->done, 0, memory_order_relaxed);
        atomic_store_explicit(&loan->readers, 0, memory_order_relaxed);
        atomic_store_explicit(&loan->writers, 0, memory_order_relaxed);
        atomic_store_explicit(&loan->lost, 0, memory_order_relaxed);
        post(node, readers[n], letter);
    }
    return 1;
}

/* A loan has eight parts or nine, or fewer of PART. */
static int64_t part_nbytes(const struct loan *loan) {
    return loan->nbytes / 8 > PART ? loan->nbytes / 8 : PART;
}

static uint32_t parts_of(const struct loan *loan) {
    return (uint32_t)((loan->nbytes + part_nbytes(loan) - 1) / part_nbytes(loan));
}

struct part {
    int64_t begin, nbytes; /* 0: there is none */
    uint32_t bit;
    int again; /* the system refused it to the other one */
};

/* The next part: one that was refused to the other one, or that nobody took. */
static struct part next_part(struct loan *loan, _Atomic uint32_t *refused) {
    struct part part = {0, 0, 0, 1};
    uint32_t bits = atomic_load(refused), number = 0;
    if (bits) {
        part.bit = bits & -bits;
        if (!(atomic_fetch_and(refused, ~part.bit) & part.bit)) {
            return part; /* withdrawn */
        }
        while (part.bit >> number > 1) {
            number++;
        }
    } else {
        uint32_t parts = parts_of(loan);
        number = atomic_load(&loan->taken) < parts ? atomic_fetch_add(&loan->taken, 1) : parts;
        if (number >= parts) {
            return part;
        }
        part.bit = 1u << number;
        part.again = 0;
    }
    part.begin = number * part_nbytes(loan);
    part.nbytes = loan->nbytes - part.begin;
    part.nbytes = part.nbytes < part_nbytes(loan) ? part.nbytes : part_nbytes(loan);
    return part;
}

/* A part was copied, or is the other one's to copy, or cannot be. */
static void end_part(struct loan *loan, const struct part *part, int moved, _Atomic uint32_t *others) {
    if (!moved && !part->again) {
        atomic_fetch_or(others, part->bit);
        return;
    }
    if (!moved) {
        atomic_store(&loan->lost, 1);
    }
    atomic_fetch_or(&loan->done, part->bit);
}

enum fetched node_returned(struct node *node, const int *readers, int number,
                           const uint32_t *letters) {
    int waits = 0, lost = 0;
    for (int n = 0; n < number; n++) {
        struct row *row = row_of(node, node->rank, readers[n]);
        struct loan *loan = &row->letters[letters[n] % LETTERS].data.loan;
        if ((int32_t)(atomic_load(&row->read) - letters[n]) > 0) {
            int same = node->sent[readers[n]] - letters[n] <= LETTERS; /* the letter, no later one */
            lost |= same && atomic_load(&loan->lost);
            continue;
        }
        uint64_t to = atomic_load(&loan->to);
        struct part part = {0, 0, 0, 0};
        part = to ? next_part(loan, &loan->writers) : part;
        waits = 1;
        if (part.nbytes) {
            end_part(loan, &part, MOVE(process_vm_writev, node->processes[readers[n]],
                                       (char *)(uintptr_t)loan->from + part.begin,
                                       to + (uint64_t)part.begin, part.nbytes), &loan->readers);
            ring_bell(&node->beds[readers[n]]);
            return FETCHED_PART;
        }
    }
    return waits ? FETCH_WAITS : lost ? FETCH_REFUSED : FETCHED_ALL;
}

static struct letter *next_letter(struct node *node, int writer) {
    return &row_of(node, writer, node->rank)->letters[node->received[writer] % LETTERS];
}

int node_look(struct node *node, int writer, struct piece *piece) {
    struct letter *letter = next_letter(node, writer);
    if (atomic_load(&letter->full) != node->received[writer] + 1) {
        return 0;
    }
    piece->lent = letter->piece == LENT;
    piece->data = piece->lent          ? (const char *)(uintptr_t)letter->data.loan.from
                  : letter->piece < 0 ? letter->data.bytes
                                      : node->rings[writer].bytes + letter->data.at;
    piece->nbytes = piece->lent ? letter->data.loan.nbytes : letter->nbytes;
    piece->last = (int)letter->last;
    return 1;
}

int node_read(struct node *node, int writer, const char *data, void *into, int64_t nbytes) {
    return MOVE(process_vm_readv, node->processes[writer], into, data, nbytes);
}

enum fetched node_fetch(struct node *node, int writer, char *into) {
    struct loan *loan = &next_letter(node, writer)->data.loan;
    if (!atomic_load_explicit(&loan->to, memory_order_relaxed)) {
        atomic_store(&loan->to, (uintptr_t)into);
        ring_bell(&node->beds[writer]);
    }
    struct part part = next_part(loan, &loan->readers);
    if (part.nbytes) {
        end_part(loan, &part, node_read(node, writer, (const char *)(uintptr_t)loan->from + part.begin,
                                        into + part.begin, part.nbytes), &loan->writers);
        ring_bell(&node->beds[writer]);
        return FETCHED_PART;
    }
    uint32_t all = (1u << parts_of(loan)) - 1, done = atomic_load(&loan->done);
    return done != all ? FETCH_WAITS : atomic_load(&loan->lost) ? FETCH_REFUSED : FETCHED_ALL;
}

void node_lose(struct node *node, int writer) {
    atomic_store(&next_letter(node, writer)->data.loan.lost, 1);
}

void node_withdraw(struct node *node, int writer) {
    struct loan *loan = &next_letter(node, writer)->data.loan;
    uint32_t parts = parts_of(loan), taken = atomic_fetch_add(&loan->taken, parts);
    uint32_t begun = (1u << (taken < parts ? taken : parts)) - 1;
    uint32_t over = atomic_exchange(&loan->writers, 0) | atomic_load(&loan->readers);
    for (int naps = 0; begun & ~(over | atomic_load(&loan->done)) && naps < 1000; naps++) {
        nanosleep(&(struct timespec){0, 1000000}, NULL); /* unless the writer was killed at it */
        over |= atomic_load(&loan->readers);
    }
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
