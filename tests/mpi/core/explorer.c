/* A model checker for C that ranks run on memory which they share.

   WHAT IS TESTED is compiled with -fsanitize=thread, but linked without that sanitizer: the
   functions which the compiler then calls, at each atomic operation and at each access to memory,
   are here.  Ranks are coroutines of one process.

   INTERLEAVINGS.  A rank can lose the core before each of its atomic operations and system calls,
   and nowhere else: what it does between two of them is its own, or a race.  A run goes on with
   the same rank while that can go on.  Each of the following is a deviation, and all runs are made
   that have no more of them than a number:
     - another rank goes on instead (a preemption);
     - a load gets an older value than the last (see MEMORY);
     - a weak comparison fails although the word is as expected;
     - the kernel lets a rank sleep no longer, although nobody woke it;
     - it refuses to copy from or to another rank's memory.
   Who goes on is free where a rank ends, sleeps or naps: then another goes on, if any can.  Nobody's sleep ends by a limit of time: where
   all that have not ended sleep, a wake-up was lost.

   RUNS start from the beginning and repeat the choices of the last one, up to the last choice
   that has another way to go on.  A run stops where an earlier one was in the same state.  A rank's
   state is a hash of the operations that it made and of the stores that it saw, which all follow
   from what it is; so interleavings that differ only in the order of operations which have nothing
   to do with each other are the same.  How many ends there are, and a sum of them, is told.

   RACES.  Each rank has a vector clock.  A store that releases leaves its clock at the word, a load
   that acquires joins it.  Two accesses to the same bytes that are no atomic operations, one of
   which writes, are a race if no clock orders them, even where they came out in order.

   MEMORY.  A word keeps its last stores.  A load may get any that is not older than what the rank
   saw or stored of that word, than what its clock says was stored before, or, if it is
   sequentially consistent, than the last store that is so, too.  Thus a store that only releases
   may be seen late by a rank that stores and then loads.

   WHAT IS NOT EXPLORED: more deviations; memory weaker than this, such as loads of values that are
   stored later; fences and other atomic operations (they do not link), atomic words outside
   the shared memory (they fail); faults of the compiler.  Plain accesses are looked at in words of four bytes. */
#define _GNU_SOURCE
#include "explorer.h"

#include <linux/futex.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

enum {
    STACK = 64 << 10,
    CHOICES = 1 << 12,
    STEPS = 1 << 13, /* of a run */
    WORDS = 128,     /* atomic ones */
    KEPT = 4,        /* stores of one */
    PLAIN = 4,       /* bytes that are looked at together */
    STATES = 1 << 23,
};

typedef uint32_t clocks[MOST_RANKS];

_Alignas(64) char shared_memory[128 << 10];

static struct {
    ucontext_t context;
    char *stack;
    int ended;
    const void *asleep_on;
    clocks clock;
    uint64_t past; /* the hash of its state */
} ranks[MOST_RANKS];
static const struct scenario *scenario;
static ucontext_t outside;
static int now; /* the rank that goes on; -1: none */

/* Of this run: what was done, to tell it. */
static struct {
    int rank;
    const char *what;
    const void *word;
    uint64_t value;
} steps[STEPS];
static int steps_number;
static long runs, all_steps;
static int whole;

static void fail(const char *what, long seen, long expected) {
    printf("%s: %s (%ld, %ld) in run %ld\n", scenario->name, what, seen, expected, runs + 1);
    for (int n = 0; n < steps_number; n++) {
        char name[80] = "";
        if (steps[n].word) {
            name_word(steps[n].word, scenario->ranks, name, sizeof name);
        }
        printf("    rank %d: %s %s: %#llx\n", steps[n].rank, steps[n].what, name,
               (unsigned long long)steps[n].value);
    }
    exit(1);
}

void expect(int holds, const char *what, long seen, long expected) {
    if (!holds) {
        fail(what, seen, expected);
    }
}

static void step(const char *what, const void *word, uint64_t value) {
    expect(steps_number < STEPS, "too many steps", steps_number, STEPS);
    steps[steps_number].rank = now;
    steps[steps_number].what = what;
    steps[steps_number].word = word;
    steps[steps_number++].value = value;
}

/* STATES that earlier runs were in, and those of this one. */
static uint64_t states[STATES], sum_of_ends;
static long states_number, ends_number;
static int repeats;

static uint64_t mixed(uint64_t hash, uint64_t with) {
    hash = hash * 0x9e3779b97f4a7c15u + with + 1;
    hash = (hash ^ hash >> 30) * 0xbf58476d1ce4e5b9u;
    hash = (hash ^ hash >> 27) * 0x94d049bb133111ebu;
    return hash ^ hash >> 31;
}

static uint64_t *place_of(uint64_t state) {
    uint64_t place = state % STATES;
    while (states[place] && states[place] != state) {
        place = (place + 1) % STATES;
    }
    return &states[place];
}

/* CHOICES of this run; the first so many are repeated. */
static struct {
    short taken, ways;
} choices[CHOICES];
static int choices_number, repeated, deviations, allowed;

/* Go on in one of several ways.   price: of all but the first, in deviations. */
static int choose(int ways, int price) {
    if (ways <= 1 || deviations + price > allowed) {
        return 0;
    }
    expect(choices_number < CHOICES, "too many choices", choices_number, CHOICES);
    if (choices_number >= repeated) {
        choices[choices_number].taken = 0;
        choices[choices_number].ways = (short)ways;
    }
    int taken = choices[choices_number++].taken;
    deviations += taken ? price : 0;
    return taken;
}

/* Add a state; 0 if a run was in it before.   kind: of those with the same operations. */
static uint64_t add_state(int kind) {
    uint64_t state = (uint64_t)kind;
    for (int rank = 0; rank < scenario->ranks; rank++) {
        state = mixed(state, ranks[rank].past + (ranks[rank].asleep_on != NULL));
    }
    for (int spent = 0; spent < deviations; spent++) {
        if (*place_of(mixed(state, (uint64_t)spent))) {
            return 0;
        }
    }
    state = mixed(state, (uint64_t)deviations);
    uint64_t *place = place_of(state);
    if (*place) {
        return 0;
    }
    states_number++;
    expect(states_number < STATES / 2, "too many states", states_number, STATES / 2);
    return *place = state;
}

static int can_go_on(int rank) { return !ranks[rank].ended && !ranks[rank].asleep_on; }

static void leave(void) {
    now = -1;
    setcontext(&outside);
}

/* Before an operation: who goes on?   naps: this rank only if no other can. */
static void pass_on(int naps) {
    int me = now, able[MOST_RANKS], number = 0;
    if (me < 0) {
        return; /* begin and end of a scenario */
    }
    if (choices_number >= repeated && !repeats && !add_state(me)) {
        leave();
    }
    if (can_go_on(me) && !naps) {
        able[number++] = me;
    }
    for (int rank = 0; rank < scenario->ranks; rank++) {
        if (rank != me && can_go_on(rank)) {
            able[number++] = rank;
        }
    }
    expect(number > 0, naps ? "a rank naps in vain: nobody else can go on"
                            : "a wake-up was lost: all sleep", me, 0);
    now = able[choose(number, can_go_on(me) && !naps)];
    if (now != me) {
        swapcontext(&ranks[me].context, &ranks[now].context);
    }
}

static void point(void) { pass_on(0); }

/* CLOCKS and the atomic words. */
static void join(uint32_t *clock, const uint32_t *other) {
    for (int rank = 0; rank < MOST_RANKS; rank++) {
        clock[rank] = other[rank] > clock[rank] ? other[rank] : clock[rank];
    }
}

struct store {
    uint64_t value, past; /* the writer's, which says what store it is */
    int writer, consistent;
    uint32_t when;    /* by its writer's clock */
    clocks released;  /* who acquires it joins this */
};

static struct word {
    struct store stores[KEPT]; /* by number */
    long number;
    long seen[MOST_RANKS]; /* the number of the last that a rank saw */
    clocks used;           /* when a rank was at it last */
} words[WORDS];
static int words_number;
static short word_at[sizeof shared_memory / PLAIN]; /* its number, from 1 */

static size_t place_in_memory(const volatile void *at) {
    return (size_t)((const volatile char *)at - shared_memory);
}

/* RACES: who read and wrote bytes last, but by atomic operations. */
static struct plain {
    int writer;
    uint32_t written;
    clocks read;
} plain[sizeof shared_memory / PLAIN];

static void look_for_race(int writes, int writer, uint32_t written, const uint32_t *read) {
    const uint32_t *clock = ranks[now].clock;
    expect(written <= clock[writer],
           writes ? "a race: two ranks write a byte" : "a race: what is read is written", now,
           writer);
    for (int rank = 0; writes && rank < scenario->ranks; rank++) {
        expect(read[rank] <= clock[rank], "a race: what is written is read", now, rank);
    }
}

/* The word that this rank is to load or to store. */
static struct word *word_of(const volatile void *at, uint64_t value, int stores) {
    size_t place = place_in_memory(at) / PLAIN;
    expect(place < sizeof word_at / sizeof *word_at, "a word that is not shared", 0, 0);
    look_for_race(stores, plain[place].writer, plain[place].written, plain[place].read);
    if (!word_at[place]) {
        expect(words_number < WORDS, "too many words", words_number, WORDS);
        word_at[place] = (short)++words_number;
        struct word *word = &words[words_number - 1];
        memset(word, 0, sizeof *word);
        word->stores[0].value = value;
        word->stores[0].consistent = 1;
        word->number = 1;
    }
    struct word *word = &words[word_at[place] - 1];
    word->used[now] = ranks[now].clock[now];
    return word;
}

static struct store *store_of(struct word *word, long number) {
    return &word->stores[number % KEPT];
}

static int acquires(int order) { return order != __ATOMIC_RELAXED && order != __ATOMIC_RELEASE; }
static int releases(int order) {
    return order == __ATOMIC_RELEASE || order == __ATOMIC_ACQ_REL || order == __ATOMIC_SEQ_CST;
}

/* Load the last store but `older` ones. */
static uint64_t loaded(const volatile void *at, struct word *word, long older, int order) {
    struct store *store = store_of(word, word->number - 1 - older);
    word->seen[now] = word->number - 1 - older;
    if (acquires(order)) {
        join(ranks[now].clock, store->released);
    }
    ranks[now].past = mixed(mixed(ranks[now].past, store->past), place_in_memory(at));
    return store->value;
}

/* How many stores before the last this rank may still load. */
static int older_ones(const struct word *word, int order) {
    int older = 0;
    while (older + 1 < KEPT && word->number - 1 - older > word->seen[now]) {
        const struct store *store = &word->stores[(word->number - 1 - older) % KEPT];
        int before = store->when <= ranks[now].clock[store->writer];
        if (before || (order == __ATOMIC_SEQ_CST && store->consistent)) {
            break;
        }
        older++;
    }
    return older;
}

static void stored(const volatile void *at, struct word *word, uint64_t value, int order,
                   int changes) {
    const struct store *last = store_of(word, word->number - 1);
    struct store *store = store_of(word, word->number);
    clocks released = {0};
    if (changes) { /* what the one before released is released by this one, too */
        join(released, last->released);
    }
    if (releases(order)) {
        join(released, ranks[now].clock);
    }
    uint64_t past = mixed(mixed(ranks[now].past, last->past), place_in_memory(at) + 1);
    *store = (struct store){value, past, now, order == __ATOMIC_SEQ_CST, ranks[now].clock[now], {0}};
    memcpy(store->released, released, sizeof released);
    ranks[now].past = past;
    word->seen[now] = word->number++;
    ranks[now].clock[now]++;
}

#define CHANGING(bits, type, name, after)                                                          \
    type __tsan_atomic##bits##_##name(volatile type *at, type value, int order) {                  \
        point();                                                                                   \
        type before = *at;                                                                         \
        if (now >= 0) {                                                                            \
            struct word *word = word_of(at, before, 1);                                            \
            loaded(at, word, 0, order);                                                            \
            stored(at, word, after, order, 1);                                                     \
            step("changes", (const void *)at, after);                                              \
        }                                                                                          \
        *at = after;                                                                               \
        return before;                                                                             \
    }
#define ATOMICS(bits, type)                                                                        \
    type __tsan_atomic##bits##_load(const volatile type *at, int order) {                          \
        if (now < 0) {                                                                             \
            return *at;                                                                            \
        }                                                                                          \
        point();                                                                                   \
        struct word *word = word_of(at, *at, 0);                                                      \
        int older = choose(1 + older_ones(word, order), 1);                                        \
        type value = (type)loaded(at, word, older, order);                                         \
        step(older ? "loads what was" : "loads", (const void *)at, value);                         \
        return value;                                                                              \
    }                                                                                              \
    void __tsan_atomic##bits##_store(volatile type *at, type value, int order) {                   \
        if (now >= 0) {                                                                            \
            point();                                                                               \
            stored(at, word_of(at, *at, 1), value, order, 0);                                         \
            step("stores", (const void *)at, value);                                               \
        }                                                                                          \
        *at = value;                                                                               \
    }                                                                                              \
    CHANGING(bits, type, fetch_add, before + value)                                                \
    CHANGING(bits, type, fetch_or, before | value)                                                 \
    CHANGING(bits, type, fetch_and, before & value)                                                \
    CHANGING(bits, type, exchange, value)                                                          \
    type __tsan_atomic##bits##_fetch_sub(volatile type *at, type value, int order) {               \
        return __tsan_atomic##bits##_fetch_add(at, (type)(0 - value), order);                      \
    }                                                                                              \
    static int compared##bits(volatile type *at, type *expected, type value, int order,            \
                              int if_not, int weak) {                                              \
        if (now < 0) {                                                                             \
            int is = *at == *expected;                                                             \
            *(is ? (type *)at : expected) = is ? value : *at;                                      \
            return is;                                                                             \
        }                                                                                          \
        point();                                                                                   \
        type before = *at;                                                                         \
        struct word *word = word_of(at, before, 1);                                                   \
        if (before != *expected || (weak && choose(2, 1))) {                                       \
            *expected = (type)loaded(at, word, 0, if_not);                                         \
            ranks[now].past = mixed(ranks[now].past, 1);                                           \
            step("fails to change", (const void *)at, before);                                     \
            return 0;                                                                              \
        }                                                                                          \
        loaded(at, word, 0, order);                                                                \
        stored(at, word, value, order, 1);                                                         \
        step("changes", (const void *)at, value);                                                  \
        *at = value;                                                                               \
        return 1;                                                                                  \
    }                                                                                              \
    int __tsan_atomic##bits##_compare_exchange_weak(volatile type *at, type *expected, type value, \
                                                    int order, int if_not) {                       \
        return compared##bits(at, expected, value, order, if_not, 1);                              \
    }                                                                                              \
    int __tsan_atomic##bits##_compare_exchange_strong(volatile type *at, type *expected,           \
                                                      type value, int order, int if_not) {         \
        return compared##bits(at, expected, value, order, if_not, 0);                              \
    }
ATOMICS(32, uint32_t)
ATOMICS(64, uint64_t)

long explorer_syscall(long number, ...) {
    va_list given;
    va_start(given, number);
    uint32_t *at = va_arg(given, uint32_t *);
    int operation = va_arg(given, int) & FUTEX_CMD_MASK;
    uint32_t value = va_arg(given, uint32_t);
    va_end(given);
    point();
    struct word *word = word_of(at, *at, 0);
    struct store *last = store_of(word, word->number - 1); /* the kernel has a lock for the word: */
    last->past = ranks[now].past = mixed(ranks[now].past, last->past); /* its calls have an order */
    if (operation == FUTEX_WAKE) {
        long woken = -1;
        for (int rank = 0; rank < scenario->ranks && woken < 0; rank++) {
            woken = ranks[rank].asleep_on == at ? rank : -1;
        }
        if (woken >= 0) {
            ranks[woken].asleep_on = NULL;
        }
        step("wakes", at, (uint64_t)woken);
        return woken >= 0;
    }
    expect(operation == FUTEX_WAIT, "another call of the kernel", operation, FUTEX_WAIT);
    step("sleeps unless another value is in", at, value);
    if (*at != value) {
        return -1;
    }
    if (!choose(2, 1)) {
        ranks[now].asleep_on = at;
        point();
        step("is awake again by", at, 0);
    }
    return 0;
}

static void touch(const void *at, size_t nbytes, int writes) {
    size_t begin = place_in_memory(at);
    if (begin >= sizeof shared_memory || now < 0 || !nbytes) {
        return;
    }
    for (size_t n = begin / PLAIN; n <= (begin + nbytes - 1) / PLAIN; n++) {
        struct plain *one = &plain[n];
        look_for_race(writes, one->writer, one->written, one->read);
        if (word_at[n]) {
            look_for_race(1, 0, 0, words[word_at[n] - 1].used);
        }
        if (writes) {
            *one = (struct plain){now, ranks[now].clock[now], {0}};
            word_at[n] = 0; /* what was there is no atomic word any more */
        } else {
            one->read[now] = ranks[now].clock[now];
        }
    }
}

void *explorer_copy(void *into, const void *from, size_t nbytes) {
    touch(from, nbytes, 0);
    touch(into, nbytes, 1);
    return memcpy(into, from, nbytes);
}

static ssize_t moved(void *into, const void *from, size_t nbytes) {
    point();
    int refused = choose(2, 1);
    ranks[now].past = mixed(ranks[now].past, 3 + (uint64_t)refused);
    step(refused ? "may not copy" : "copies", NULL, nbytes);
    if (refused) {
        return -1;
    }
    explorer_copy(into, from, nbytes);
    return (ssize_t)nbytes;
}

ssize_t explorer_read(pid_t process, const struct iovec *here, unsigned long heres,
                      const struct iovec *there, unsigned long theres, unsigned long flags) {
    (void)process, (void)heres, (void)theres, (void)flags;
    return moved(here->iov_base, there->iov_base, there->iov_len);
}

ssize_t explorer_write(pid_t process, const struct iovec *here, unsigned long heres,
                       const struct iovec *there, unsigned long theres, unsigned long flags) {
    (void)process, (void)heres, (void)theres, (void)flags;
    return moved(there->iov_base, here->iov_base, here->iov_len);
}

int explorer_nap(const struct timespec *time, struct timespec *rest) {
    (void)time, (void)rest;
    ranks[now].past = mixed(ranks[now].past, 5);
    step("naps", NULL, 0);
    pass_on(1);
    return 0;
}

#define ACCESSES(nbytes)                                                                           \
    void __tsan_read##nbytes(void *at) { touch(at, nbytes, 0); }                                   \
    void __tsan_write##nbytes(void *at) { touch(at, nbytes, 1); }                                  \
    void __tsan_unaligned_read##nbytes(void *at) { touch(at, nbytes, 0); }                         \
    void __tsan_unaligned_write##nbytes(void *at) { touch(at, nbytes, 1); }
ACCESSES(1)
ACCESSES(2)
ACCESSES(4)
ACCESSES(8)
ACCESSES(16)
void __tsan_read_range(void *at, size_t nbytes) { touch(at, nbytes, 0); }
void __tsan_write_range(void *at, size_t nbytes) { touch(at, nbytes, 1); }
void __tsan_init(void) {}
void __tsan_func_entry(void *caller) { (void)caller; }
void __tsan_func_exit(void) {}

/* RUNS. */
static void live(int rank) {
    scenario->rank(rank);
    ranks[rank].ended = 1;
    ranks[rank].past = mixed(ranks[rank].past, 2);
    for (int other = 0; other < scenario->ranks; other++) {
        if (!ranks[other].ended) {
            point();
        }
    }
    deviations = 0; /* ends are the same at any price */
    uint64_t end = add_state(MOST_RANKS);
    ends_number += end != 0;
    sum_of_ends += end;
    whole = 1;
    leave();
}

static void run(void) {
    memset(shared_memory, 0, scenario->nbytes);
    memset(plain, 0, scenario->nbytes / PLAIN * sizeof *plain);
    memset(word_at, 0, scenario->nbytes / PLAIN * sizeof *word_at);
    words_number = steps_number = choices_number = deviations = whole = 0;
    now = -1;
    scenario->begin();
    for (int rank = 0; rank < scenario->ranks; rank++) {
        ucontext_t *context = &ranks[rank].context;
        ranks[rank].ended = 0;
        ranks[rank].asleep_on = NULL;
        ranks[rank].past = (uint64_t)rank;
        memset(ranks[rank].clock, 0, sizeof(clocks));
        ranks[rank].clock[rank] = 1;
        getcontext(context);
        context->uc_stack.ss_sp = ranks[rank].stack;
        context->uc_stack.ss_size = STACK;
        makecontext(context, (void (*)(void))live, 1, rank);
    }
    now = choose(scenario->ranks, 0);
    swapcontext(&outside, &ranks[now].context);
    scenario->end(whole);
    runs++;
    all_steps += steps_number;
}

void explore(const struct scenario *explored, int most, int repeating) {
    scenario = explored;
    allowed = most;
    repeats = repeating;
    if (states_number) {
        memset(states, 0, sizeof states);
    }
    runs = all_steps = states_number = ends_number = repeated = 0;
    sum_of_ends = 0;
    for (int rank = 0; rank < MOST_RANKS; rank++) {
        ranks[rank].stack = ranks[rank].stack ? ranks[rank].stack : malloc(STACK);
    }
    do {
        run();
        repeated = choices_number;
        while (repeated && choices[repeated - 1].taken + 1 >= choices[repeated - 1].ways) {
            repeated--;
        }
        if (repeated) {
            choices[repeated - 1].taken++;
        }
    } while (repeated);
    printf("%s: %ld ends (sum %llx) of at most %d deviations; %ld runs, %ld steps\n",
           scenario->name, ends_number, (unsigned long long)sum_of_ends, allowed, runs, all_steps);
}
