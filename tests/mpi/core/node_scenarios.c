/* What the ranks of a node do with node.h's functions, for the explorer: a few messages that meet
   each end of the memory, and lanes.  tests/mpi/test_node_explored.py builds and runs it, with rows
   of two letters and rings of two pieces.

     node_scenarios DEVIATIONS [SCENARIO [again]]

   again: what earlier runs did is done again. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "explorer.h"
#include "node_inside.h"

static struct node *ends[MOST_RANKS];
static const struct scenario *this;

/* The ranks' own memory, behind what they share: others read and write there, too. */
enum { OWN = 512 };
static char *own(int rank) {
    return shared_memory + node_nbytes(this->ranks) + 2 * OWN * rank;
}

static void open_all(void) {
    const pid_t processes[MOST_RANKS] = {0};
    for (int rank = 0; rank < this->ranks; rank++) {
        ends[rank] = node_open(shared_memory, this->ranks, rank);
        node_lend_among(ends[rank], processes);
    }
}

static void open_near_the_end(void) {
    open_all();
    for (int rank = 0; rank < this->ranks; rank++) {
        begin_counting_at(ends[rank], UINT32_MAX - 1);
    }
}

static void close_all(void) {
    for (int rank = 0; rank < this->ranks; rank++) {
        node_close(ends[rank]);
    }
}

/* MESSAGES.  All ranks know all of them: each publishes its own, in order, and reads what is for
   it, in the order of each writer. */
enum { A = 1, B = 2, C = 4, IN_LETTERS = 8, LENT = 16, MOST_MESSAGES = 8, LONGEST = 4 * PIECE };

static struct message {
    int writer, nbytes;
    int to; /* ranks, and perhaps IN_LETTERS or LENT */
} messages[MOST_MESSAGES + 1];

/* A buffer is its owner's again.  (The explorer does not see what the C library's memset does.) */
static void overwrite(char *buffer) {
    for (int n = 0; n < OWN; n++) {
        buffer[n] = 'x';
    }
}

static char content(int message, int64_t byte) { return (char)(17 * message + byte + 1); }

/* The next message from a writer that is for one of these ranks. */
static int next(int from, int writer, int to) {
    while (messages[from].to && (messages[from].writer != writer || !(messages[from].to & to))) {
        from++;
    }
    return from;
}

/* moved: bytes of it that were published; -1: it is lent. */
static int publish(struct node *node, int rank, int *at, int64_t *moved) {
    const struct message *one = &messages[*at];
    static uint32_t letters[MOST_RANKS][MOST_RANKS];
    int readers[MOST_RANKS], number = 0;
    char *data = own(rank);
    if (!one->to) {
        return 0;
    }
    for (int reader = 0; reader < MOST_RANKS; reader++) {
        if (one->to & 1 << reader) {
            readers[number++] = reader;
        }
    }
    if (*moved < 0) {
        enum fetched fetched = node_returned(node, readers, number, letters[rank]);
        if (fetched == FETCHED_ALL || fetched == FETCH_REFUSED) {
            overwrite(data);
            *at = next(*at + 1, rank, A | B | C);
            *moved = 0;
        }
        return fetched != FETCH_WAITS;
    }
    for (int64_t n = *moved; n < one->nbytes; n++) {
        data[n] = content(*at, n);
    }
    if (one->to & LENT) {
        int lent = node_lend(node, readers, number, data, one->nbytes, letters[rank]);
        *moved = lent ? -1 : 0;
        return lent;
    }
    int64_t taken = node_publish(node, readers, number, data + *moved, one->nbytes - *moved,
                                 one->to & IN_LETTERS);
    overwrite(data);
    if (taken < 0) {
        return 0;
    }
    expect(taken <= PIECE, "a piece is too long", taken, PIECE);
    *moved += taken;
    if (*moved == one->nbytes) {
        *at = next(*at + 1, rank, A | B | C);
        *moved = 0;
    }
    return 1;
}

static int receive(struct node *node, int rank, int writer, int *at, int64_t *moved) {
    struct piece piece;
    if (!messages[*at].to || !node_look(node, writer, &piece)) {
        return 0;
    }
    expect(piece.lent == !!(messages[*at].to & LENT), "lent", piece.lent, messages[*at].to);
    if (piece.lent) {
        enum fetched fetched = node_fetch(node, writer, own(rank) + OWN);
        if (fetched == FETCH_WAITS || fetched == FETCHED_PART) {
            return fetched == FETCHED_PART;
        }
        if (fetched == FETCH_REFUSED) {
            node_withdraw(node, writer);
            overwrite(own(rank) + OWN);
            piece.nbytes = 0;
        }
        piece.data = own(rank) + OWN;
    }
    for (int64_t n = 0; n < piece.nbytes; n++) {
        expect(piece.data[n] == content(*at, *moved + n), "a wrong byte", piece.data[n],
               content(*at, *moved + n));
    }
    *moved += piece.lent ? messages[*at].nbytes : piece.nbytes;
    expect(piece.last == (*moved == messages[*at].nbytes), "a wrong end", *moved,
           messages[*at].nbytes);
    if (piece.last) {
        *at = next(*at + 1, writer, 1 << rank);
        *moved = 0;
    }
    node_acknowledge(node, writer);
    if (piece.lent) {
        overwrite(own(rank) + OWN);
    }
    return 1;
}

/* As the engine does: it looks some times, then it is drowsy, looks once more, and sleeps. */
static void exchange(struct node *node, int rank, int looks) {
    int sent = next(0, rank, A | B | C), received[MOST_RANKS], vain = 0;
    int64_t published = 0, moved[MOST_RANKS] = {0};
    for (int writer = 0; writer < this->ranks; writer++) {
        received[writer] = next(0, writer, 1 << rank);
    }
    for (int open = 1; open;) {
        int drowsy = vain >= looks, any = 0;
        uint32_t bell = drowsy ? node_drowse(node) : 0;
        any |= publish(node, rank, &sent, &published);
        open = messages[sent].to;
        for (int writer = 0; writer < this->ranks; writer++) {
            any |= receive(node, rank, writer, &received[writer], &moved[writer]);
            open |= messages[received[writer]].to;
        }
        vain = any ? 0 : vain + 1;
        if (drowsy) {
            if (!any && open) {
                node_sleep(node, bell, 1);
            }
            node_rouse(node);
        }
    }
}

/* Who published and read everything has room for more. */
static void end_messages(int whole) {
    const char data[PIECE] = "";
    for (int rank = 0; whole && rank < this->ranks; rank++) {
        int reader = !rank;
        int64_t taken = node_publish(ends[rank], &reader, 1, data, PIECE, 0);
        expect(taken == PIECE, "room is lost", rank, taken);
    }
    close_all();
}

static void always_drowsy(int rank) { exchange(ends[rank], rank, 0); }
static void looking_twice(int rank) { exchange(ends[rank], rank, 1); }

/* LANES.  Each rank takes those of some numbers and keeps them for different times; on a lane that
   it has, rank 0 publishes a letter to the others. */
enum { REQUESTS = 5 };

static int numbers[REQUESTS];
static struct {
    int told;           /* the first rank: 1, or -1 */
    int holders, ended; /* ranks */
} requests[REQUESTS];
static int kept; /* most that rank 0 holds */

static void broadcast(struct node *lane, int rank, int number) {
    int readers[] = {1, 2};
    char byte = (char)number;
    struct piece piece;
    if (rank == 0) {
        int64_t taken = node_publish(lane, readers, this->ranks - 1, &byte, 1, 0);
        expect(taken == 1, "there is room in a lane that nobody uses", taken, 1);
        return;
    }
    for (;;) {
        uint32_t bell = node_drowse(lane);
        int there = node_look(lane, 0, &piece);
        if (!there) {
            node_sleep(lane, bell, 1);
        }
        node_rouse(lane);
        if (there) {
            expect(*piece.data == byte, "another request's byte", *piece.data, byte);
            node_acknowledge(lane, 0);
            return;
        }
    }
}

static void take(int rank, int n, struct node **lanes) {
    struct node *lane = lanes[n] = node_take(ends[rank], numbers[n]);
    int told = lane ? 1 : -1;
    expect(!requests[n].told || requests[n].told == told, "ranks are told differently", rank, n);
    requests[n].told = told;
    if (!lane) {
        return;
    }
    for (int other = 0; other < REQUESTS; other++) {
        int shared = other != n && requests[other].holders && numbers[other] % LANES == numbers[n] % LANES;
        expect(!shared, "two requests have a lane", n, other);
    }
    requests[n].holders++;
    broadcast(lane, rank, n);
}

static void give(int n, struct node **lanes) {
    if (lanes[n]) {
        requests[n].holders--;
        node_give(lanes[n]);
    }
    lanes[n] = NULL;
}

static void request(int rank) {
    struct node *lanes[REQUESTS] = {NULL};
    const int most = kept + rank;
    for (int n = 0; n < REQUESTS; n++) {
        take(rank, n, lanes);
        if (n >= most) {
            give(n - most, lanes);
        }
    }
    for (int n = REQUESTS; n-- > 0;) {
        give(n, lanes);
    }
}

static void begin_requests(int first) {
    memset(requests, 0, sizeof requests);
    for (int n = 0; n < REQUESTS; n++) {
        numbers[n] = first + n;
    }
    open_all();
}

/* Who gave all lanes back gets those of the next requests. */
static void end_requests(int whole) {
    for (int n = 0; whole && n < LANES * this->ranks; n++) {
        int number = numbers[REQUESTS - 1] + 1 + n / this->ranks;
        expect(node_take(ends[n % this->ranks], number) != NULL, "a lane is lost", n, 0);
    }
    close_all();
}

static void rising(void) { begin_requests(1); }

/* Of one lane numbers are below 2^27 - 1. */
static void to_the_last(void) { begin_requests(((1 << 27) - 1) * LANES - LANES - REQUESTS); }

static const struct one {
    struct scenario scenario;
    struct message messages[MOST_MESSAGES];
    int kept;
} every[] = {
    {{"the last lanes", 2, 0, to_the_last, request, end_requests}, {{0}}, 1},
    {{"lanes of two ranks", 2, 0, rising, request, end_requests}, {{0}}, 2},
    {{"short messages", 2, 0, open_all, always_drowsy, end_messages},
     {{0, 3, B}, {0, 0, B}, {0, SHORT + 1, B | IN_LETTERS}, {0, SHORT, B}, {0, 1, B}}, 0},
    {{"long messages", 2, 0, open_all, looking_twice, end_messages},
     {{0, 2 * PIECE + 1, B}, {0, SHORT + 1, B}, {0, PIECE, B}, {0, 2 * SHORT, B}}, 0},
    {{"messages both ways", 2, 0, open_all, looking_twice, end_messages},
     {{0, PIECE + 3, B}, {1, PIECE, A}, {0, 1, B}, {1, SHORT + 1, A}, {1, 1, A}}, 0},
    {{"around the ring", 2, 0, open_all, looking_twice, end_messages},
     {{0, SHORT + 1, B}, {0, SHORT + 1, B}, {0, PIECE, B}, {1, PIECE, A}}, 0},
    {{"counters begin anew", 2, 0, open_near_the_end, looking_twice, end_messages},
     {{0, 3, B}, {0, 3 * PIECE, B}, {1, PIECE, A}, {1, 1, A}}, 0},
    {{"a loan", 2, 0, open_all, looking_twice, end_messages},
     {{0, 3 * PART, B | LENT}, {0, 3, B}}, 0},
    {{"loans", 2, 0, open_all, always_drowsy, end_messages},
     {{0, 2 * PART, B | LENT}, {0, PART + 1, B | LENT}, {1, 2 * PART, A | LENT}, {0, SHORT, B}}, 0},
    {{"loans of two readers", 3, 0, open_all, always_drowsy, end_messages},
     {{0, PART, B | C | LENT}}, 0},
    {{"lanes of three ranks", 3, 0, rising, request, end_requests}, {{0}}, 1},
    {{"messages of all ranks", 3, 0, open_all, always_drowsy, end_messages},
     {{0, PIECE, B | C}, {1, PIECE, A | C}, {2, SHORT + 1, A | B}}, 0},
    {{"a slow reader", 3, 0, open_all, always_drowsy, end_messages},
     {{0, PIECE, B | C}, {0, SHORT + 1, C}, {0, 1, B | C}}, 0},
    {{"readers of some pieces", 3, 0, open_all, always_drowsy, end_messages},
     {{0, SHORT + 1, B}, {0, SHORT + 1, C}, {0, 2 * SHORT + 1, B | C}}, 0},
};

int main(int count, char **words) {
    int found = 0;
    if (count < 2) {
        fprintf(stderr, "node_scenarios DEVIATIONS [SCENARIO [again]]\n");
        return 2;
    }
    for (size_t n = 0; n < sizeof every / sizeof *every; n++) {
        struct scenario scenario = every[n].scenario;
        if (count > 2 && strcmp(words[2], scenario.name) != 0) {
            continue;
        }
        this = &scenario;
        scenario.nbytes = (size_t)(node_nbytes(scenario.ranks) + 2 * OWN * scenario.ranks);
        expect(scenario.nbytes <= sizeof shared_memory, "too much memory", 0, 0);
        memcpy(messages, every[n].messages, sizeof every[n].messages);
        kept = every[n].kept;
        explore(&scenario, atoi(words[1]), count > 3);
        found++;
    }
    return found ? 0 : 2;
}
