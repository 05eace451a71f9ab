/* Messages through shared memory between threads that are ranks: random ones, from all to some.

   Compiled and run by tests/mpi/test_engine.py, with the sanitizers.  All threads know all messages;
   each publishes its own, in order, and reads what is for it, in the order of each writer. */
#include "checks.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>

_Static_assert((LETTERS & (LETTERS - 1)) == 0 && (PIECES & (PIECES - 1)) == 0,
               "2^32 is no multiple: counters of letters and pieces cannot wrap");

enum { MOST = 5, MESSAGES = 3000, LONGEST = 3 * PIECE };

static struct message {
    int writer, nbytes, number, readers[MOST];
} messages[MESSAGES];
static int ranks;
static char *memory;

static char content(int message, int64_t byte) { return (char)(7 * message + byte % 251); }

static int reads(const struct message *one, int rank) {
    for (int n = 0; n < one->number; n++) {
        if (one->readers[n] == rank) {
            return 1;
        }
    }
    return 0;
}

/* The next message from a writer to a reader, or of a writer if reader is negative. */
static int next(int from, int writer, int reader) {
    while (from < MESSAGES &&
           (messages[from].writer != writer || (reader >= 0 && !reads(&messages[from], reader)))) {
        from++;
    }
    return from;
}

enum { LENDING = -1 };

/* Lend a message, or see whether it was read; how many bytes are the writer's again, or -1. */
static int64_t lend(struct node *node, const struct message *one, int64_t *moved, const char *data,
                    uint32_t *letters) {
    if (*moved == 0) {
        *moved = node_lend(node, one->readers, one->number, data, one->nbytes, letters) ? LENDING : 0;
        return -1;
    }
    enum fetched fetched = node_returned(node, one->readers, one->number, letters);
    CHECK(fetched != FETCH_REFUSED);
    return fetched == FETCHED_ALL ? one->nbytes - LENDING : -1;
}

static int publish(struct node *node, int rank, int *at, int64_t *moved, char *data, uint32_t *letters) {
    const struct message *one = &messages[*at];
    if (*at == MESSAGES) {
        return 0;
    }
    for (int64_t n = 0; !*moved && n < one->nbytes; n++) {
        data[n] = content(*at, n);
    }
    int lent = lending && one->nbytes >= LEND && *at % 2;
    int64_t taken =
        lent ? lend(node, one, moved, data, letters)
             : node_publish(node, one->readers, one->number, data + *moved, one->nbytes - *moved,
                            *at % 3 == 0 && node_letters(one->nbytes) <= LETTERS);
    CHECK(lent || taken <= PIECE);
    if (taken < 0) {
        return 0;
    }
    *moved += taken;
    if (*moved == one->nbytes) {
        memset(data, 'x', (size_t)one->nbytes); /* it is the writer's again */
        *at = next(*at + 1, rank, -1);
        *moved = 0;
    }
    return 1;
}

/* Copy what was lent: with the writer, or alone; whether all has come. */
static int borrow(struct node *node, int writer, struct piece *piece, int together, char *into) {
    if (together) {
        enum fetched fetched = node_fetch(node, writer, into);
        CHECK(fetched != FETCH_REFUSED);
        if (fetched != FETCHED_ALL) {
            return 0;
        }
    } else {
        CHECK(node_read(node, writer, piece->data, into, piece->nbytes));
    }
    piece->data = into;
    return 1;
}

static int receive(struct node *node, int rank, int writer, int *at, int64_t *moved, char *into) {
    struct piece piece;
    if (*at == MESSAGES || !node_look(node, writer, &piece) ||
        (piece.lent && !borrow(node, writer, &piece, *at % 4 == 1, into))) {
        return 0;
    }
    for (int64_t n = 0; n < piece.nbytes; n++) {
        CHECK(piece.data[n] == content(*at, *moved + n));
    }
    *moved += piece.nbytes;
    CHECK(piece.last == (*moved == messages[*at].nbytes));
    if (piece.last) {
        *at = next(*at + 1, writer, rank);
        *moved = 0;
    }
    node_acknowledge(node, writer);
    return 1;
}

static void *rank_of(void *argument) {
    int rank = *(int *)argument, sent = next(0, rank, -1), received[MOST], vain = 0;
    int64_t published = 0, moved[MOST] = {0};
    struct node *node = opened(memory, ranks, rank);
    char *data = malloc(LONGEST), *into = malloc((size_t)ranks * LONGEST);
    uint32_t letters[MOST];
    for (int writer = 0; writer < ranks; writer++) {
        received[writer] = next(0, writer, rank);
    }
    for (int open = 1; open;) {
        int drowsy = vain > 20, any = 0;
        uint32_t bell = drowsy ? node_drowse(node) : 0;
        any |= publish(node, rank, &sent, &published, data, letters);
        open = sent < MESSAGES;
        for (int writer = 0; writer < ranks; writer++) {
            any |= receive(node, rank, writer, &received[writer], &moved[writer],
                           into + writer * LONGEST);
            open |= received[writer] < MESSAGES;
        }
        vain = any ? 0 : vain + 1;
        if (drowsy) {
            if (!any && open) {
                node_sleep(node, bell, 900000000); /* who is not woken is noticed */
            }
            node_rouse(node);
        }
    }
    free(data);
    free(into);
    node_close(node);
    return NULL;
}

/* Requests take lanes, each rank in its own time.  All ranks have to be told the same, and a lane has
   one request at a time. */
enum { REQUESTS = 20000, KEPT = 6 };
static atomic_int told[REQUESTS]; /* what the first was told: 1, or -1 */
static atomic_int owner[LANES], holders[LANES], at[MOST];

/* The number that the slowest rank is at. */
static int slowest(void) {
    int number = REQUESTS;
    for (int rank = 0; rank < ranks; rank++) {
        int theirs = atomic_load(&at[rank]);
        number = theirs < number ? theirs : number;
    }
    return number;
}

static void hold(int number, int change) {
    int lane = number % LANES;
    if (change > 0) {
        int holding = atomic_load(&holders[lane]); /* first: another rank may take it, too, after this */
        int before = atomic_exchange(&owner[lane], number);
        CHECK(before == number || holding == 0);
    }
    atomic_fetch_add(&holders[lane], change);
    CHECK(owner[lane] == number);
}

static void *requester(void *argument) {
    int rank = *(int *)argument, kept[KEPT] = {0};
    unsigned seed = (unsigned)rank;
    struct node *first = opened(memory, ranks, rank), *lanes[KEPT] = {NULL};
    for (int number = 1; number < REQUESTS; number++) {
        int place = rand_r(&seed) % KEPT, none = 0;
        if (lanes[place]) {
            hold(kept[place], -1);
            node_give(lanes[place]);
        }
        kept[place] = number;
        lanes[place] = node_take(first, number);
        CHECK(lanes[place] == node_take(first, number));
        if (lanes[place]) {
            hold(number, 1);
        }
        int answer = lanes[place] ? 1 : -1;
        CHECK(atomic_compare_exchange_strong(&told[number], &none, answer) || none == answer);
        atomic_store(&at[rank], number);
        while (number - slowest() > 4 * LANES) {
            sched_yield();
        }
    }
    node_close(first);
    return NULL;
}

static void requests(void) {
    pthread_t threads[MOST];
    int numbers[MOST], taken = 0;
    ranks = MOST;
    memory = node_memory(ranks);
    for (int rank = 0; rank < ranks; rank++) {
        numbers[rank] = rank;
        CHECK(!pthread_create(&threads[rank], NULL, requester, &numbers[rank]));
    }
    for (int rank = 0; rank < ranks; rank++) {
        CHECK(!pthread_join(threads[rank], NULL));
    }
    for (int number = 1; number < REQUESTS; number++) {
        taken += told[number] > 0;
    }
    CHECK(taken > REQUESTS / 20 && taken < REQUESTS - 1);
    free_memory(memory, ranks);
}

/* A reader that does not read keeps the ring full.  Messages to another go on as far as letters carry. */
static void a_full_ring(void) {
    static char data[PIECE];
    int slow = 1, quick = 2;
    memory = node_memory(3);
    struct node *writer = opened(memory, 3, 0), *reader = opened(memory, 3, quick);
    struct piece piece;
    while (node_publish(writer, &slow, 1, data, PIECE, 0) > 0) {
    }
    CHECK(node_publish(writer, &quick, 1, data, LETTERS * SHORT + 1, 0) < 0);
    for (int64_t left = LETTERS * SHORT; left; left -= SHORT) {
        CHECK(node_publish(writer, &quick, 1, data, left, 0) == SHORT);
    }
    CHECK(node_publish(writer, &quick, 1, data, 1, 0) < 0);
    for (int letters = LETTERS; letters--; node_acknowledge(reader, 0)) {
        CHECK(node_look(reader, 0, &piece) && piece.nbytes == SHORT && piece.last == !letters);
    }
    node_close(writer);
    node_close(reader);
    free_memory(memory, 3);
}

/* Who withdraws gets no more bytes, whoever copies. */
static void withdrawn(void) {
    static char data[8 * PART], into[8 * PART];
    int reader_rank = 1;
    uint32_t letter;
    memory = node_memory(2);
    struct node *writer = opened(memory, 2, 0), *reader = opened(memory, 2, 1);
    struct piece piece;
    memset(data, 1, sizeof data);
    CHECK(node_lend(writer, &reader_rank, 1, data, sizeof data, &letter));
    CHECK(node_returned(writer, &reader_rank, 1, &letter) == FETCH_WAITS); /* nobody said where to */
    CHECK(node_look(reader, 0, &piece) && piece.lent && piece.nbytes == sizeof data && piece.last);
    CHECK(node_fetch(reader, 0, into) == FETCHED_PART);
    CHECK(node_returned(writer, &reader_rank, 1, &letter) == FETCHED_PART);
    node_withdraw(reader, 0);
    CHECK(node_returned(writer, &reader_rank, 1, &letter) == FETCH_WAITS);
    CHECK(into[0] && into[2 * PART - 1] && !into[2 * PART]);
    node_acknowledge(reader, 0);
    CHECK(node_returned(writer, &reader_rank, 1, &letter) == FETCHED_ALL);
    node_close(writer);
    node_close(reader);
    free_memory(memory, 2);
}

/* What the system refuses to one of them the other copies; who is refused it alone cannot go on. */
static void refused(int to_writer, int to_reader) {
    static char data[8 * PART], into[8 * PART];
    int reader_rank = 1;
    uint32_t letter;
    const pid_t nobody = 0x3fffffff; /* no process has this number */
    const pid_t writers[2] = {getpid(), to_writer ? nobody : getpid()};
    const pid_t readers[2] = {to_reader ? nobody : getpid(), getpid()};
    memory = node_memory(2);
    struct node *writer = node_open(memory, 2, 0), *reader = node_open(memory, 2, 1);
    struct piece piece;
    node_lend_among(writer, writers);
    node_lend_among(reader, readers);
    memset(data, 7, sizeof data);
    memset(into, 0, sizeof into);
    CHECK(node_lend(writer, &reader_rank, 1, data, sizeof data, &letter));
    CHECK(node_look(reader, 0, &piece) && piece.lent);
    CHECK(node_read(reader, 0, data, into, 1) == !to_reader);
    enum fetched fetched = FETCH_WAITS;
    for (int turns = 0; fetched != FETCHED_ALL && fetched != FETCH_REFUSED; turns++) {
        CHECK(turns < 100);
        fetched = node_fetch(reader, 0, into);
        CHECK(node_returned(writer, &reader_rank, 1, &letter) <= FETCHED_PART);
    }
    CHECK(fetched == (to_writer && to_reader ? FETCH_REFUSED : FETCHED_ALL));
    CHECK((memcmp(data, into, sizeof data) == 0) == (fetched == FETCHED_ALL));
    node_acknowledge(reader, 0);
    CHECK(node_returned(writer, &reader_rank, 1, &letter) == fetched);
    node_close(writer);
    node_close(reader);
    free_memory(memory, 2);
}

int main(void) {
    for (unsigned seed = 0; seed < 6; seed++) {
        pthread_t threads[MOST];
        int numbers[MOST];
        srand(seed);
        ranks = 2 + (int)seed % (MOST - 1);
        lending = seed > 1;
        memory = node_memory(ranks);
        for (int m = 0; m < MESSAGES; m++) {
            int sizes[] = {rand() % 9, rand() % 60, rand() % 3000, m % 50 ? 8 : rand() % LONGEST};
            messages[m] = (struct message){rand() % ranks, sizes[rand() % 4], 0, {0}};
            int all = rand() % 2;
            for (int reader = 0; reader < ranks; reader++) {
                if (reader != messages[m].writer && (all || rand() % 2)) {
                    messages[m].readers[messages[m].number++] = reader;
                }
            }
            if (!messages[m].number) {
                messages[m].readers[messages[m].number++] = !messages[m].writer;
            }
        }
        for (int rank = 0; rank < ranks; rank++) {
            numbers[rank] = rank;
            CHECK(!pthread_create(&threads[rank], NULL, rank_of, &numbers[rank]));
        }
        for (int rank = 0; rank < ranks; rank++) {
            CHECK(!pthread_join(threads[rank], NULL));
        }
        free_memory(memory, ranks);
    }
    requests();
    a_full_ring();
    lending = 1;
    withdrawn();
    for (int which = 0; which < 4; which++) {
        refused(which & 1, which & 2);
    }
    return 0;
}
