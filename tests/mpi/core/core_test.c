/* The engine's core over a transport of its own: all ranks in one process, messages in a list.

   The core takes functions, so nothing is mocked that it would otherwise include.  Compiled and run
   by tests/mpi/test_engine.py, with the sanitizers. */
#include "checks.h"

#include <pthread.h>
#include <sched.h>
#include <string.h>

#include "crossing.h"
#include "progress.h"

enum { RANKS = 5, MOST = 512, TRUNCATED = 15, SHORTENED = 16 };

struct envelope {
    int taken, from, to, tag;
    int64_t nbytes;
    char bytes[64];
};

/* A request's number is its handle.  The communicator's handle is the rank that calls. */
struct pending {
    int used, persistent, active, cancelled, arrived, error, receives, peer, tag, rank;
    void *buffer;
    int64_t nbytes, got;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct envelope mail[4096];
static int letters, failing_sends, width, threads;
static _Thread_local int in_library; /* this thread is in a hook */
static struct pending pending[MOST];

static void put(int from, int to, int tag, const void *bytes, int64_t nbytes) {
    int kept = 0;
    for (int n = 0; letters == 4096 && n < letters; n++) {
        if (!mail[n].taken) {
            mail[kept++] = mail[n];
        }
    }
    letters = letters == 4096 ? kept : letters;
    CHECK(letters < 4096 && nbytes <= 64);
    struct envelope *one = &mail[letters++];
    *one = (struct envelope){0, from, to, tag, nbytes, {0}};
    memcpy(one->bytes, bytes, (size_t)nbytes);
}

/* Take the oldest message of a receive; 1 if there was one, and the library's error in `error`. */
static int take(struct pending *into, int *error) {
    for (int n = 0; n < letters; n++) {
        struct envelope *one = &mail[n];
        if (!one->taken && one->from == into->peer && one->to == into->rank &&
            one->tag == into->tag) {
            one->taken = 1;
            *error = one->nbytes > into->nbytes ? 100 + TRUNCATED : 0;
            into->got = *error ? into->nbytes : one->nbytes;
            memcpy(into->buffer, one->bytes, (size_t)into->got);
            return 1;
        }
    }
    return 0;
}

static int number_of(const void *request) {
    return width == 4 ? (int)*(const uint32_t *)request : (int)*(const uint64_t *)request;
}

static void set_number(void *request, int number) {
    if (width == 4) {
        *(uint32_t *)request = (uint32_t)number;
    } else {
        *(uint64_t *)request = (uint64_t)number;
    }
}

static int new_request(int receives, int persistent, void *buffer, int64_t nbytes, int peer, int tag,
                       int rank) {
    for (int n = 1; n < MOST; n++) {
        if (!pending[n].used) {
            pending[n] = (struct pending){1,    persistent, 0,   0,    0,      0,
                                          receives, peer,   tag, rank, buffer, nbytes, 0};
            return n;
        }
    }
    CHECK(!"too many requests");
    return 0;
}

static int fake_start(void *request) {
    pthread_mutex_lock(&lock);
    struct pending *one = &pending[number_of(request)];
    CHECK(one->used && !one->active);
    one->active = 1;
    if (!one->receives) {
        put(one->rank, one->peer, one->tag, one->buffer, one->nbytes);
    }
    pthread_mutex_unlock(&lock);
    return 0;
}

static int fake_test(void *request, int *complete, void *status) {
    int error = 0, number = number_of(request);
    struct pending *one = &pending[number];
    CHECK(!in_library); /* a hook only looks */
    memset(status, 1, 24);
    *complete = 1;
    if (!number) {
        return 0;
    }
    pthread_mutex_lock(&lock);
    if (one->active && one->receives) {
        error = one->error;
        *complete = one->cancelled || one->arrived ||
                    take(one, &error);
    }
    if (*complete) {
        memcpy(status, &one->got, sizeof one->got);
        one->active = one->cancelled = one->arrived = one->error = 0;
        if (!one->persistent) {
            one->used = 0;
            set_number(request, 0);
        }
    }
    pthread_mutex_unlock(&lock);
    return error;
}

static int fake_wait(void *request, void *status) {
    for (int complete, error;; sched_yield()) {
        error = fake_test(request, &complete, status);
        CHECK(complete || threads); /* in one thread nobody else could complete it */
        if (complete) {
            return error;
        }
    }
}

static int fake_cancel(void *request) {
    struct pending *one = &pending[number_of(request)];
    pthread_mutex_lock(&lock);
    CHECK(one->used && one->active && one->receives);
    one->cancelled = 1;
    pthread_mutex_unlock(&lock);
    return 0;
}

static int begin(int receives, void *buffer, int64_t nbytes, int peer, int tag, handle rank,
                 void *request) {
    if (!receives && failing_sends && !--failing_sends) {
        return 117;
    }
    pthread_mutex_lock(&lock);
    set_number(request, new_request(receives, 0, buffer, nbytes, peer, tag, (int)rank));
    pthread_mutex_unlock(&lock);
    return fake_start(request);
}

static int fake_error_class(int error, int *class) {
    *class = error - 100;
    return 0;
}

/* The functions in both widths; types are one byte, except that combining is of doubles. */
#define FAKES(H) \
    static int isend_##H(const void *b, int n, H t, int peer, int tag, H comm, void *request) { \
        (void)t; \
        return begin(0, (void *)(uintptr_t)b, n, peer, tag, comm, request); \
    } \
    static int irecv_##H(void *b, int n, H t, int peer, int tag, H comm, void *request) { \
        (void)t; \
        return begin(1, b, n, peer, tag, comm, request); \
    } \
    static int get_count_##H(const void *status, H t, int *n) { \
        int64_t got; \
        memcpy(&got, status, sizeof got); \
        *n = t == 1 ? (int)got : -1; \
        return 0; \
    } \
    static int iprobe_##H(int peer, int tag, H comm, int *found, void *status) { \
        (void)peer, (void)tag, (void)comm, (void)status; \
        return *found = 0; \
    } \
    static int sendrecv_##H(const void *b, int n, H t, int to, int tag, void *c, int m, H u, \
                            int from, int tag2, H comm, void *status) { \
        uint64_t request; \
        int error = isend_##H(b, n, t, to, tag, comm, &request); \
        error = error ? error : fake_wait(&request, status); \
        error = error ? error : irecv_##H(c, m, u, from, tag2, comm, &request); \
        return error ? error : fake_wait(&request, status); \
    } \
    static int reduce_local_##H(const void *a, void *b, int n, H t, H op) { \
        const double *left = a; \
        double *right = b; \
        CHECK(t == (H)8 && op == (H)3 && !in_library); \
        for (int i = 0; i < n; i++) { \
            right[i] = left[i] - 2 * right[i]; \
        } \
        return 0; \
    }
FAKES(uint32_t)
FAKES(uint64_t)

/* The library's progress: a thread that calls what was given to it, until that is over. */
static struct {
    int (*poll)(void *);
    void *state;
} hooks[8];
static int hooks_number, stops;

static int fake_async_start(int (*poll)(void *), void *state, uint32_t stream) {
    (void)stream;
    pthread_mutex_lock(&lock);
    CHECK(hooks_number < 8);
    hooks[hooks_number].poll = poll;
    hooks[hooks_number++].state = state;
    pthread_mutex_unlock(&lock);
    return 0;
}

static int fake_is_complete(uint32_t request) {
    struct pending *one = &pending[request];
    int complete = 1;
    pthread_mutex_lock(&lock);
    if (request && one->active && one->receives && !one->arrived) {
        one->arrived = take(one, &one->error);
        complete = one->arrived;
    }
    pthread_mutex_unlock(&lock);
    return complete;
}

static void *progress_thread(void *unused) {
    for (int over = 0; !over; sched_yield()) {
        pthread_mutex_lock(&lock);
        int number = hooks_number;
        over = stops;
        pthread_mutex_unlock(&lock);
        for (int n = number - 1; n >= 0; n--) {
            in_library = 1;
            int done = hooks[n].poll(hooks[n].state);
            in_library = 0;
            pthread_mutex_lock(&lock);
            if (done) {
                hooks[n] = hooks[--hooks_number];
            }
            pthread_mutex_unlock(&lock);
        }
    }
    return unused;
}

static void *let_nothing_go(void) { return NULL; }
static void regain_nothing(void *threads) { CHECK(!threads); }

static struct library library_of(int handle_width) {
    struct library one = {.width = handle_width, .status_size = 24, .byte = 1,
                          .too_long = TRUNCATED, .other = 100 + SHORTENED};
#define GIVE(H) \
    one.Isend = (function)isend_##H, one.Irecv = (function)irecv_##H; \
    one.Get_count = (function)get_count_##H; \
    one.Iprobe = (function)iprobe_##H, one.Sendrecv = (function)sendrecv_##H, one.Reduce_local = (function)reduce_local_##H;
    if (handle_width == 4) {
        GIVE(uint32_t)
    } else {
        GIVE(uint64_t)
    }
    one.let_go = let_nothing_go;
    one.regain = regain_nothing;
    one.Start = (function)fake_start;
    one.Wait = (function)fake_wait;
    one.Test = (function)fake_test;
    one.Cancel = (function)fake_cancel;
    one.MPIX_Async_start = (function)fake_async_start;
    one.MPIX_Request_is_complete = (function)fake_is_complete;
    one.Error_class = (function)fake_error_class;
    width = handle_width;
    return one;
}

/* A link of a chain: receive 16 bytes, send them on.  Slot 0 is the buffer. */
static struct program *chain_link(const struct library *library, int rank, char *buffer,
                                  int persistent) {
    int receives = rank > 0, sends = rank < RANKS - 1, number = receives + sends;
    struct program *one = program_new(library, number, 2 * number, 2 * number, 1);
    CHECK(one);
    one->comm = (handle)rank;
    one->rank = rank;
    one->tag = 7;
    one->persistent = persistent;
    one->slots[0] = buffer;
    for (int n = 0; n < number; n++) {
        int send = n == receives;
        one->messages[n] = (struct message){.sends = send, .peer = send ? rank + 1 : rank - 1,
                                            .count = 16, .type = 1, .node_rank = -1,
                                            .published_with = n, .nbytes = 16};
        if (persistent) {
            set_number(program_request(one, n),
                       new_request(!send, 1, buffer, 16, one->messages[n].peer, 7, rank));
        }
        one->order[2 * n] = one->order[2 * n + 1] = n;
        one->instructions[2 * n] = (struct instruction){.kind = START, .first = 2 * n, .number = 1};
        one->instructions[2 * n + 1] =
            (struct instruction){.kind = AWAIT, .first = 2 * n + 1, .number = 1};
    }
    one->forwarding = sends ? 2 * number - 1 : 0;
    CHECK(program_check(one));
    return one;
}

static void a_chain(int handle_width, int persistent, unsigned seed) {
    struct library library = library_of(handle_width);
    char buffers[RANKS][16] = {{0}};
    struct program *ranks[RANKS];
    memset(pending, 0, sizeof pending);
    letters = 0;
    srand(seed);
    memcpy(buffers[0], "sixteen letters", 16);
    for (int rank = 0; rank < RANKS; rank++) {
        ranks[rank] = chain_link(&library, rank, buffers[rank], persistent);
    }
    for (int again = 0; again < 3; again++) {
        buffers[0][0] = (char)('a' + again);
        if (seed % 3 == 0) { /* in the order of the chain everything has come already */
            for (int rank = 0; rank < RANKS; rank++) {
                CHECK(progress_own(ranks[rank]) && progress_run(ranks[rank]) == DONE);
            }
        } else {
            for (int rank = RANKS - 1; rank >= 0; rank--) {
                CHECK(progress_own(ranks[rank]) && progress_begin(ranks[rank]) == DONE);
            }
            for (int left = RANKS, done[RANKS] = {0}; left;) {
                int rank = rand() % RANKS;
                if (!done[rank] && progress_test(ranks[rank]) == DONE) {
                    done[rank] = 1;
                    left--;
                }
            }
            CHECK(progress_running() == 0);
        }
        for (int rank = 1; rank < RANKS; rank++) {
            CHECK(!memcmp(buffers[rank], buffers[0], 16));
        }
    }
    for (int rank = 0; rank < RANKS; rank++) {
        program_free(ranks[rank]);
    }
}

struct rank_of {
    const struct library *library;
    int rank, rounds;
    void *memory; /* of the node, or NULL */
};

/* Let every other link of a chain cross in the memory of the node, on a lane of a request's. */
static void cross(struct program *one, void *memory) {
    for (int n = 0; n < one->messages_number; n++) {
        int peer = one->messages[n].peer;
        one->messages[n].node_rank = peer / 2 == one->rank / 2 ? peer : -1;
    }
    one->home = opened(memory, RANKS, one->rank);
    CHECK(one->home && crossings_prepare(one));
    crossings_take_lane(one);
    CHECK(one->node);
}

/* A rank of a chain: begun again and again, looked at or not, and ended. */
static void *owner(void *argument) {
    const struct rank_of *self = argument;
    unsigned seed = (unsigned)self->rank + 1;
    char buffer[16];
    struct program *one = chain_link(self->library, self->rank, buffer, 0);
    one->instructions = realloc(one->instructions, 6 * sizeof *one->instructions);
    if (one->forwarding == 3 && self->rank % 2) { /* received, combined, sent on */
        memmove(one->instructions + 3, one->instructions + 2, 2 * sizeof *one->instructions);
        one->instructions[2] = (struct instruction){.kind = COMBINE, .type = 8};
        one->instructions_number = one->at = one->settled = 5;
        one->forwarding = 4;
        one->op = 3;
        one->users_op = 1;
    }
    if (self->memory) {
        cross(one, self->memory);
    }
    struct node *home = one->home;
    for (int round = 0; round < self->rounds; round++) {
        buffer[0] = self->rank ? 0 : (char)(1 + round % 100);
        CHECK(progress_own(one) && progress_begin(one) == DONE);
        enum outcome outcome = PENDING;
        for (int looks = rand_r(&seed) % 4; looks && outcome == PENDING; looks--) {
            outcome = progress_test(one);
            CHECK(outcome == PENDING || outcome == DONE);
        }
        for (int idle = rand_r(&seed) % 3 * 50; idle; idle--) {
            sched_yield();
        }
        CHECK(progress_finish(one) == DONE && one->state == IDLE);
        CHECK(buffer[0] == (char)(1 + round % 100));
    }
    CHECK(progress_give_up(one) == 0 && !one->node);
    progress_free(one);
    node_close(home);
    return NULL;
}

/* Programs that wait for what never comes, given up or left in the middle. */
static void *leaver(void *argument) {
    const struct rank_of *self = argument;
    static char buffer[16];
    for (int round = 0; round < self->rounds; round++) {
        struct program *one = chain_link(self->library, 2, buffer, 0);
        one->tag = 99;
        CHECK(progress_own(one) && progress_begin(one) == DONE);
        CHECK(progress_test(one) == PENDING);
        if (round % 10) {
            CHECK(progress_give_up(one) == 0 && one->state == IDLE);
        }
        progress_free(one);
    }
    return NULL;
}

/* Owners, the library's hook and the helper at once; `with_hooks`, the helper calls operators only. */
static void threads_of_all_kinds(int handle_width, int with_hooks, int in_node, int patience) {
    void *memory = in_node ? node_memory(RANKS) : NULL;
    struct library library = library_of(handle_width);
    struct rank_of ranks[RANKS + 1];
    pthread_t owners[RANKS + 1], progress;
    memset(pending, 0, sizeof pending);
    letters = hooks_number = stops = 0;
    threads = 1;
    library.hooks = with_hooks;
    library.patience = patience;
    progress_allow_helper(1);
    CHECK(!pthread_create(&progress, NULL, progress_thread, NULL));
    for (int rank = 0; rank <= RANKS; rank++) {
        ranks[rank] = (struct rank_of){&library, rank, 300, memory};
        CHECK(!pthread_create(&owners[rank], NULL, rank < RANKS ? owner : leaver, &ranks[rank]));
    }
    for (int rank = 0; rank <= RANKS; rank++) {
        CHECK(!pthread_join(owners[rank], NULL));
    }
    pthread_mutex_lock(&lock);
    stops = 1;
    pthread_mutex_unlock(&lock);
    CHECK(!pthread_join(progress, NULL));
    CHECK(progress_running() == 0);
    threads = 0;
    if (memory) { /* all have given the lane back */
        struct node *home = opened(memory, RANKS, 0);
        CHECK(node_take(home, 7 + LANES));
        node_close(home);
        free_memory(memory, RANKS);
    }
}

static void a_helper_forwards(void) {
    struct library library = library_of(8);
    char buffers[RANKS][16] = {{0}};
    struct program *ranks[RANKS];
    memset(pending, 0, sizeof pending);
    letters = 0;
    memcpy(buffers[0], "sixteen letters", 16);
    progress_allow_helper(1);
    for (int rank = RANKS - 1; rank >= 0; rank--) {
        ranks[rank] = chain_link(&library, rank, buffers[rank], 1);
        CHECK(progress_own(ranks[rank]) && progress_begin(ranks[rank]) == DONE);
    }
    for (long round = 0; progress_running() && round < 2000000000L; round++) {
    }
    CHECK(progress_running() == 0);
    progress_stop();
    for (int rank = 0; rank < RANKS; rank++) {
        CHECK(progress_finish(ranks[rank]) == DONE);
        CHECK(!memcmp(buffers[rank], buffers[0], 16));
        program_free(ranks[rank]);
    }
}

/* Rank 0 alone: combine by the library and by a loop, copy bytes and by messages to itself. */
static void local_instructions(int handle_width) {
    struct library library = library_of(handle_width);
    double left[3] = {1, 2, 3}, right[3] = {4, 5, 6}, copy[3], third[3];
    int64_t a[3] = {1, -2, INT64_MAX}, b[3] = {5, 5, 1}, c[3];
    struct program *one = program_new(&library, 0, 0, 4, 7);
    void *slots[] = {left, right, copy, third, a, b, c};
    letters = 0;
    memcpy(one->slots, slots, sizeof slots);
    one->op = 3;
    one->instructions[0] = (struct instruction){
        .kind = COMBINE, .left = {0, 0}, .right = {1, 0}, .into = {1, 0}, .count = 3, .type = 8};
    one->instructions[1] =
        (struct instruction){.kind = COPY, .left = {1, 0}, .into = {2, 0}, .count = sizeof copy};
    one->instructions[2] = (struct instruction){.kind = COPY_TYPED, .left = {2, 8}, .into = {3, 0},
                                                .count = 16, .type = 1, .into_count = 16,
                                                .into_type = 1};
    one->instructions[3] = (struct instruction){.kind = COMBINE, .left = {4, 0}, .right = {5, 0},
                                                .into = {6, 0}, .count = 3,
                                                .loop = kernel_for("sum", 'q')};
    CHECK(program_check(one) && one->instructions[3].loop);
    CHECK(progress_own(one) && progress_run(one) == DONE);
    CHECK(copy[0] == -7 && third[0] == -8 && third[1] == -9);
    CHECK(c[0] == 6 && c[1] == 3 && c[2] == INT64_MIN); /* it wraps around */
    program_free(one);
}

/* Every loop, on memory that is aligned for nothing. */
static void loops(void) {
    static const char *const names[] = {"sum", "prod", "min", "max", "band", "bor", "bxor",
                                        "land", "lor", "lxor", "replace"};
    char memory[3][67];
    for (size_t n = 0; n < sizeof names / sizeof *names; n++) {
        for (const char *type = "bhiqBHIQ?fdg"; *type; type++) {
            kernel loop = kernel_for(names[n], *type);
            int logical = names[n][0] == 'l', known = n < (*type == 'f' || *type == 'd' ? 2 : 10);
            known = known && *type != 'g';
            CHECK((loop != NULL) == (known && logical == (*type == '?')));
            if (loop) {
                for (int i = 0; i < 67; i++) {
                    memory[0][i] = (char)(37 * i), memory[1][i] = (char)(-11 * i);
                }
                loop(memory[0] + 1, memory[1] + 3, memory[2] + 1, 8);
                loop(memory[0] + 1, memory[1] + 3, memory[1] + 3, 8);
                CHECK(!memcmp(memory[2] + 1, memory[1] + 3, 8));
            }
        }
    }
    CHECK(!kernel_for("sum", 0));
}

enum { VECTOR = 40000, LONG = 2 * RING }; /* several pieces, the last of them short; more than a ring */

/* Rank 0 or 1 of two that send each other a vector and combine both, the other's on the left.   Slots: own,
   received, result. */
static struct program *exchange(const struct library *library, int rank, int64_t count, kernel loop,
                                void *memory, char *vectors[3]) {
    int64_t nbytes = 8 * count;
    struct program *one = program_new(library, 2, 4, 5, 3);
    struct place own = {0, 0}, received = {1, 0}, result = {2, 0};
    CHECK(one);
    memcpy(one->slots, vectors, 3 * sizeof *vectors);
    one->op = 3;
    for (int n = 0; n < 2; n++) { /* what it receives, what it sends */
        one->messages[n] = (struct message){.sends = n, .peer = 1 - rank, .count = nbytes, .type = 1,
                                            .place = n ? own : received, .node_rank = 1 - rank,
                                            .published_with = n, .nbytes = nbytes, .combine = n ? 0 : 3};
        one->order[n] = n;
    }
    one->order[3] = 1;
    one->instructions[0] = (struct instruction){.kind = START, .number = 2};
    one->instructions[1] =
        (struct instruction){.kind = COPY, .left = own, .into = result, .count = nbytes};
    one->instructions[2] = (struct instruction){.kind = AWAIT, .first = 2, .number = 1};
    one->instructions[3] = (struct instruction){.kind = COMBINE, .left = received, .right = result,
                                                .into = result, .count = count, .type = 8, .loop = loop};
    one->instructions[4] = (struct instruction){.kind = AWAIT, .first = 3, .number = 1};
    one->forwarding = 5;
    one->rank = rank;
    one->home = one->node = opened(memory, RANKS, rank);
    CHECK(program_check(one) && one->home && crossings_prepare(one));
    return one;
}

/* A message is combined where it was published.   late: by rank 1 only, as it comes to rank 0 when that
   is not about to combine. */
static void combined_in_place(kernel loop, int64_t count, int late) {
    struct library library = library_of(8);
    void *memory = node_memory(RANKS);
    double *vectors[2][3];
    struct program *ranks[2];
    for (int rank = 0; rank < 2; rank++) {
        for (int n = 0; n < 3; n++) {
            vectors[rank][n] = calloc((size_t)count, 8);
            for (int64_t i = 0; !n && i < count; i++) {
                vectors[rank][n][i] = (double)(i % 1000 + rank);
            }
        }
        ranks[rank] = exchange(&library, rank, count, loop, memory, (char **)vectors[rank]);
    }
    for (int again = 0; again < 2; again++) {
        for (int rank = 0; rank < 2; rank++) {
            program_reset(ranks[rank]);
        }
        for (int rank = 1; late && rank >= 0; rank--) {
            CHECK(program_step(ranks[rank], 1) == DONE);
        }
        for (int steps = 0; program_step(ranks[steps % 2], 5) != DONE || steps < 3; steps++) {
        }
        for (int rank = 0; rank < 2; rank++) {
            int copied = ((uint64_t *)vectors[rank][1])[count - 1] != 0;
            CHECK(copied == (late && !rank));
            for (int64_t i = 0; i < count; i++) {
                double other = (double)(i % 1000 + 1 - rank), own = (double)(i % 1000 + rank);
                CHECK(vectors[rank][2][i] == (loop ? other + own : other - 2 * own));
            }
        }
    }
    for (int rank = 0; rank < 2; rank++) {
        node_close(ranks[rank]->home);
        program_free(ranks[rank]);
        for (int n = 0; n < 3; n++) {
            free(vectors[rank][n]);
        }
    }
    free_memory(memory, RANKS);
}

/* Rank 0 receives a vector from each of two others, and combines the two.   loop: NULL for the library's
   operator, which overwrites the right one, so that only the left one may be read where it was published.
   order: what comes first, the left one or the right one; 2: both are there from the start. */
static void both_operands_from_slots(kernel loop, int64_t count, int order) {
    struct library library = library_of(8);
    void *memory = node_memory(RANKS);
    int64_t nbytes = 8 * count;
    int reader = 0;
    double *vectors[5]; /* received: left, right; the result; sent: left, right */
    struct program *one = program_new(&library, 2, 4, 3, 3);
    struct place result = {loop ? 2 : 1, 0};
    for (int n = 0; n < 5; n++) {
        vectors[n] = calloc((size_t)count, 8);
        for (int64_t i = 0; n > 2 && i < count; i++) {
            vectors[n][i] = (double)(i % 1000 + 7 * n);
        }
    }
    memcpy(one->slots, vectors, 3 * sizeof *vectors);
    one->op = 3;
    for (int n = 0; n < 2; n++) {
        one->messages[n] = (struct message){.peer = 1 + n, .count = nbytes, .type = 1,
                                            .place = {n, 0}, .node_rank = 1 + n, .published_with = n,
                                            .nbytes = nbytes, .combine = loop || !n ? 2 : 0};
        one->order[n] = one->order[2 + n] = n;
    }
    one->instructions[0] = (struct instruction){.kind = START, .number = 2};
    one->instructions[1] = (struct instruction){.kind = AWAIT, .first = 2, .number = 2};
    one->instructions[2] = (struct instruction){.kind = COMBINE, .left = {0, 0}, .right = {1, 0},
                                                .into = result, .count = count, .type = 8,
                                                .loop = loop};
    one->home = one->node = opened(memory, RANKS, 0);
    CHECK(program_check(one) && one->home && crossings_prepare(one));
    program_reset(one);
    for (int turn = 0; turn < 2; turn++) {
        int which = order == 1 ? !turn : turn;
        struct node *writer = opened(memory, RANKS, 1 + which);
        for (int64_t moved = 0, taken; moved < nbytes; moved += taken) {
            taken = node_publish(writer, &reader, 1, (char *)vectors[3 + which] + moved, nbytes - moved,
                                 0);
            CHECK(taken > 0);
        }
        CHECK(turn || order == 2 || program_step(one, 3) == PENDING);
        node_close(writer);
    }
    while (program_step(one, 3) != DONE) {
    }
    for (int64_t i = 0; i < count; i++) {
        double left = vectors[3][i], right = vectors[4][i];
        CHECK(vectors[result.slot][i] == (loop ? left + right : left - 2 * right));
    }
    CHECK((vectors[0][count - 1] == 0) == (order > 0)); /* otherwise it was copied: nobody may wait */
    CHECK(vectors[1][count - 1] != 0);                  /* only one is read where it was published */
    node_close(one->home);
    program_free(one);
    for (int n = 0; n < 5; n++) {
        free(vectors[n]);
    }
    free_memory(memory, RANKS);
}

/* A program of rank 0, 1 or 2: rank 1 sends a message to 0, and a long one to 2. */
static struct program *short_and_long(const struct library *library, void *memory, int rank,
                                      int64_t nbytes, char *buffer) {
    int number = rank == 1 ? 2 : 1;
    struct program *one = program_new(library, number, 2 * number, 2, 1);
    CHECK(one);
    one->slots[0] = buffer;
    one->tag = 7;
    for (int n = 0; n < number; n++) {
        int64_t its = rank == 2 || n ? LONG : nbytes;
        one->messages[n] = (struct message){.sends = rank == 1, .count = its, .type = 1, .nbytes = its,
                                            .node_rank = rank == 1 ? 2 * n : 1, .published_with = n};
        one->order[n] = one->order[number + n] = n;
    }
    one->instructions[0] = (struct instruction){.kind = START, .number = number};
    one->instructions[1] = (struct instruction){.kind = AWAIT, .first = number, .number = number};
    one->home = opened(memory, RANKS, rank);
    CHECK(program_check(one) && one->home && crossings_prepare(one));
    crossings_take_lane(one);
    CHECK(one->node && progress_own(one));
    return one;
}

/* Rank 0 begins and comes back when the others are over: nobody waits for it if it reads few letters.
   full: the ring is, of what rank 2 has yet to read. */
static void who_only_reads(int64_t nbytes, int few, int full) {
    struct library library = library_of(8);
    void *memory = node_memory(RANKS);
    char *buffers[3];
    struct program *ranks[3];
    const int reader = 2;
    for (int rank = 0; rank < 3; rank++) {
        buffers[rank] = calloc(1, LONG);
        memset(buffers[rank], 'x' * (rank == 1), LONG);
        ranks[rank] = short_and_long(&library, memory, rank, nbytes, buffers[rank]);
    }
    CHECK(progress_begin(ranks[0]) == DONE && progress_running() == !few);
    while (full && node_publish(ranks[1]->node, &reader, 1, buffers[1], PIECE, 0) > 0) {
    }
    program_reset(ranks[1]);
    program_reset(ranks[2]);
    CHECK(program_step(ranks[1], 2) == PENDING && ranks[1]->crossings[0].over == (few || !full));
    for (struct piece piece; full && node_look(ranks[2]->node, 1, &piece) &&
                             piece.last && !piece.lent;) {
        node_acknowledge(ranks[2]->node, 1);
    }
    for (int steps = 0; program_step(ranks[1], 2) != DONE; steps++) {
        CHECK(steps < 1000);
        program_step(ranks[2], 2);
        progress_advance(); /* as a hook would do */
    }
    while (program_step(ranks[2], 2) != DONE) {
    }
    CHECK(progress_finish(ranks[0]) == DONE && !memcmp(buffers[0], buffers[1], (size_t)nbytes));
    CHECK(!memcmp(buffers[2], buffers[1], LONG));
    for (int rank = 0; rank < 3; rank++) {
        node_close(ranks[rank]->home);
        program_free(ranks[rank]);
        free(buffers[rank]);
    }
    free_memory(memory, RANKS);
}

static void errors(void) {
    struct library library = library_of(4);
    char long_one[16] = "longer than that", short_one[8];
    struct program *one = chain_link(&library, RANKS - 1, short_one, 0);
    memset(pending, 0, sizeof pending);
    letters = 0;
    one->messages[0].count = 8;
    put(RANKS - 2, RANKS - 1, 7, long_one, 16);
    CHECK(progress_own(one) && progress_run(one) == FAILED && one->error == 100 + TRUNCATED);
    CHECK(!memcmp(short_one, long_one, 8));
    program_free(one);

    one = chain_link(&library, 1, long_one, 0); /* the rest is executed: others wait for it */
    put(0, 1, 7, "too short", 9);
    CHECK(progress_own(one) && progress_run(one) == FAILED && one->error == 100 + SHORTENED);
    CHECK(mail[letters - 1].to == 2 && !mail[letters - 1].taken);
    put(0, 1, 7, short_one, 8);
    put(0, 1, 7, long_one, 16); /* one that was too short is over in its own execution only */
    CHECK(progress_own(one) && progress_run(one) == FAILED && one->error == 100 + SHORTENED);
    CHECK(progress_own(one) && progress_run(one) == DONE);
    program_free(one);

    one = chain_link(&library, 1, long_one, 0);
    put(0, 1, 7, long_one, 16);
    failing_sends = 1; /* after a message was received */
    CHECK(progress_own(one) && progress_run(one) == BROKE && one->error == 117);
    CHECK(one->state == BROKEN && !progress_own(one));
    CHECK(progress_finish(one) == BROKE && progress_test(one) == BROKE);
    CHECK(progress_give_up(one) == 0);
    program_free(one);

    one = chain_link(&library, 0, long_one, 0);
    failing_sends = 1; /* the very first message */
    CHECK(progress_own(one) && progress_run(one) == FAILED && one->state == IDLE);
    CHECK(progress_own(one) && progress_begin(one) == DONE && progress_finish(one) == DONE);
    program_free(one);
}

static void bad_numbers(void) {
    struct library library = library_of(8);
    char buffer[16];
    for (int what = 0; what < 6; what++) {
        struct program *one = chain_link(&library, 1, buffer, 0);
        int *wrong[] = {&one->messages[1].place.slot, &one->order[2], &one->instructions[0].first,
                        &one->instructions[3].number, &one->forwarding};
        if (what < 5) {
            *wrong[what] = what % 2 ? 100 : -1;
        } else {
            one->messages[0].count = -1;
        }
        CHECK(!program_check(one));
        program_free(one);
    }
}

int main(void) {
    for (unsigned seed = 0; seed < 12; seed++) {
        a_chain(seed % 2 ? 4 : 8, seed / 2 % 2, seed);
    }
    local_instructions(4);
    local_instructions(8);
    loops();
    for (int n = 0; n < 16; n++) {
        lending = n & 8;
        combined_in_place(n & 1 ? kernel_for("sum", 'd') : NULL, n & 2 ? VECTOR : 8, n & 4);
    }
    for (int n = 0; n < 12; n++) {
        both_operands_from_slots(n & 1 ? kernel_for("sum", 'd') : NULL, n & 2 ? VECTOR : 8, n / 4);
    }
    for (int full = 0; full < 2; full++) {
        lending = full;
        who_only_reads(8, 1, full);
        who_only_reads(512, 1, full);
        who_only_reads(LETTERS * SHORT, 1, full);
        who_only_reads(LETTERS * SHORT + 1, 0, full);
    }
    errors();
    bad_numbers();
    threads_of_all_kinds(4, 1, 0, 0);
    threads_of_all_kinds(8, 0, 0, 0);
    threads_of_all_kinds(4, 1, 1, 0);
    threads_of_all_kinds(8, 0, 1, 300);
    a_helper_forwards();
    return 0;
}
