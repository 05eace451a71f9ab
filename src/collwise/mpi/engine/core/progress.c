#define _POSIX_C_SOURCE 200809L
#include "progress.h"

#include "crossing.h"

#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define PATIENCE_NS 1000000
#define IDLE_ROUNDS 100 /* after which the helper waits until it is woken */
#define LOOKS_AT_ONCE 200 /* in a non-blocking call: some three microseconds, as a generalized request */
#define QUICK_LOOKS 30  /* for a message inside the node, before other threads are let go: a microsecond */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct program *running;
static atomic_int linked; /* programs in `running`; threads look at it and at what they set themselves
                             (`hooked`, `asleep`) in turn, so the order of both counts */
static const struct library *progress_library; /* the hooks are called with a state only */

static int forked; /* this is a child of the process that runs MPI */

int progress_running(void) { return linked; }
int progress_forked(void) { return forked; }

/* --- the states ------------------------------------------------------------------------------- */

static int change(struct program *program, int from, int to) {
    return atomic_compare_exchange_strong(&program->state, &from, to);
}

int progress_own(struct program *program) { return change(program, IDLE, OWNED); }

/* The lock is held. */
static void unlink_program(struct program *program) {
    struct program **link = &running;
    while (*link && *link != program) {
        link = &(*link)->next;
    }
    if (*link) { /* after a fork the child's list is empty */
        *link = program->next;
        linked--;
    }
}

/* Where a program is that nobody executes any more. */
static enum outcome put_down(struct program *program, enum outcome outcome) {
    int over = program->settled == program->instructions_number;
    program->state = outcome == BROKE ? BROKEN : over ? IDLE : RESTING;
    return outcome;
}

/* Take a program for its owner.   waits: for another thread's step.   mine: what becomes of one that
   is linked, OWNED or STEPPED.   Returns its new state; otherwise BROKEN, or another that forbids it. */
static int take(struct program *program, int mine, int waits) {
    if (change(program, RESTING, OWNED) || change(program, IDLE, OWNED)) {
        return OWNED;
    }
    pthread_mutex_lock(&lock);
    while (waits && program->state == STEPPED && !pthread_equal(program->stepper, pthread_self())) {
        pthread_mutex_unlock(&lock);
        sched_yield();
        pthread_mutex_lock(&lock);
    }
    int state = program->state;
    if (state == RUNNING) {
        if (mine == OWNED) {
            unlink_program(program);
        }
        program->stepper = pthread_self();
        program->state = state = mine;
    } else if (state == RESTING || state == IDLE) { /* since that step */
        program->state = state = OWNED;
    } else if (state == OWNED || state == STEPPED) {
        state = LEFT; /* nobody's to take */
    }
    pthread_mutex_unlock(&lock);
    return state;
}

static enum outcome refusal(struct program *program, int state) {
    if (state != BROKEN) {
        return BUSY;
    }
    if (change(program, BROKEN, OWNED)) { /* it may have broken in a hook */
        program_abandon(program);
        put_down(program, BROKE);
    }
    return BROKE;
}

/* The end of a step; the lock is held. */
static void stepped(struct program *program, enum outcome outcome) {
    if (program->state == LEFT) {
        unlink_program(program);
        program_free(program);
    } else if (outcome >= PENDING && program_needed(program)) {
        program->state = RUNNING;
    } else {
        unlink_program(program);
        put_down(program, outcome);
    }
}

/* Advance everything in a way.  A program that failed is left to its owner, who meets the error in the
   end. */
static void advance_all(enum outcome (*step)(struct program *, int)) {
    if (!progress_running()) {
        return;
    }
    pthread_mutex_lock(&lock);
    for (struct program *program = running, *next; program; program = next) {
        enum outcome outcome = PENDING;
        if (program->state != RUNNING) {
            next = program->next;
            continue;
        }
        program->state = STEPPED;
        program->stepper = pthread_self();
        pthread_mutex_unlock(&lock);
        outcome = step(program, program->forwarding);
        pthread_mutex_lock(&lock);
        next = program->next; /* it is linked as long as it is STEPPED or LEFT */
        stepped(program, outcome);
    }
    pthread_mutex_unlock(&lock);
}

void progress_advance(void) { advance_all(program_step); }

/* --- where the library has hooks -------------------------------------------------------------- */

enum { NO_PROGRESS = 0, OVER = 1 }; /* MPIX_ASYNC_NOPROGRESS, MPIX_ASYNC_DONE */

static atomic_int hooked; /* the library calls us, for what is running */

static int hook(void *unused) {
    (void)unused;
    advance_all(program_poll);
    if (progress_running()) {
        return NO_PROGRESS;
    }
    hooked = 0;
    int none = 0; /* something may have been started just now */
    return progress_running() && atomic_compare_exchange_strong(&hooked, &none, 1) ? NO_PROGRESS
                                                                                    : OVER;
}

static int start_hook(const struct library *library, int (*poll)(void *), void *state) {
    return CALL(MPIX_Async_start, ASYNC_START, library, (poll, state, library->null_stream));
}

/* A program as one of MPI's generalized requests. */
struct grequest {
    struct program *program;
    uint64_t request; /* in the library's width */
    void (*freed)(void *);
    void *owner;
};

static atomic_int requests; /* that the library's hooks still poll */
static atomic_int ending;

int progress_requests(void) { return ending ? 0 : requests; }

/* Complete a request whose program is done; otherwise it is to be polled again. */
static int polled(struct grequest *grequest) {
    const struct library *library = progress_library;
    struct program *program = grequest->program;
    if (forked) {
        return NO_PROGRESS;
    }
    switch (program_poll(program, program->instructions_number)) {
    case PENDING:
        return ending ? OVER : NO_PROGRESS; /* MPI_Finalize waits until its hooks are over */
    case BROKE:
        program->state = BROKEN;
        break;
    default:
        break;
    }
    requests--;
    CALL(MPI_Grequest_complete, GREQUEST_COMPLETE, library,
         (handle_at(library, &grequest->request)));
    return OVER;
}

static int poll_grequest(void *thing) {
    return polled(((void *(*)(void *))progress_library->MPIX_Async_get_state)(thing));
}

/* Somebody completes the request, outside of the library's progress. */
static int query_grequest(void *extra, void *status) {
    struct grequest *grequest = extra;
    struct program *program = grequest->program;
    const struct library *library = program->library;
    if (program->state != BROKEN && program_settle(program) == BROKE) {
        program->state = BROKEN;
    }
    CALL(MPI_Status_set_elements, SET_ELEMENTS, library, (status, library->byte, 0));
    CALL(MPI_Status_set_cancelled, SET_CANCELLED, library, (status, 0));
    return program->error;
}

static int free_grequest(void *extra) {
    struct grequest *grequest = extra;
    grequest->freed(grequest->owner);
    free(grequest);
    return 0;
}

static int cancel_grequest(void *extra, int complete) {
    (void)extra, (void)complete; /* a collective cannot be cancelled */
    return 0;
}

void progress_complete(struct program *program) {
    if (program->state == BROKEN || program_settle(program) == BROKE) {
        put_down(program, BROKE);
        program_abandon(program);
    } else {
        crossings_give_lane(program);
        program->started = 0;
        put_down(program, DONE);
    }
}

/* A collective that is over when it is begun, or a moment later, as most are inside a node, costs little
   more than a blocking one: its request is an MPI_Isend to MPI_PROC_NULL, which is complete.   PENDING: it is
   not over, or has an error, which a generalized request tells. */
static enum outcome over_at_once(struct program *program, void *request) {
    const struct library *library = program->library;
    int looks = program->node && library->patience ? LOOKS_AT_ONCE : 1;
    enum outcome outcome;
    do {
        outcome = program_poll(program, program->instructions_number);
    } while (outcome == PENDING && --looks);
    if (outcome == BROKE || (outcome == DONE && program_settle(program) == BROKE)) {
        program_abandon(program);
        return BROKE;
    }
    if (outcome != DONE) {
        return PENDING;
    }
    program->error = CALL(Isend, ISEND, library,
                          (NULL, 0, library->byte, library->nobody, 0, program->comm, request));
    return program->error ? BROKE : DONE;
}

enum outcome progress_start_request(struct program *program, void *request,
                                    void (*freed)(void *owner), void *owner) {
    const struct library *library = progress_library = program->library;
    struct grequest *grequest = malloc(sizeof *grequest);
    program->error = library->no_memory;
    crossings_take_lane(program);
    enum outcome outcome = grequest ? program_begin(program) : FAILED;
    outcome = outcome >= PENDING ? over_at_once(program, request) : outcome;
    if (outcome == DONE) {
        free(grequest);
        progress_complete(program);
        return DONE;
    }
    if (outcome == PENDING) {
        *grequest = (struct grequest){program, 0, freed, owner};
        int error = CALL(MPI_Grequest_start, GREQUEST_START, library,
                         (query_grequest, free_grequest, cancel_grequest, grequest,
                          &grequest->request));
        if (error) { /* otherwise that of a message stays, for `query_grequest` */
            program->error = error;
            program_abandon(program);
            outcome = BROKE;
        }
    }
    if (outcome < PENDING) {
        free(grequest);
        program->node = NULL; /* the lane is that of the next call with this tag */
        return put_down(program, outcome);
    }
    memcpy(request, &grequest->request, (size_t)library->width);
    program->state = LIBRARYS;
    requests++;
    /* Without a hook where all is there, as for who only publishes inside the node. */
    int error = polled(grequest) == OVER ? 0 : start_hook(library, poll_grequest, grequest);
    if (error) { /* nobody would move it on */
        requests--;
        program->error = error;
        program_abandon(program);
        return put_down(program, BROKE);
    }
    return PENDING;
}

/* --- a helper thread --------------------------------------------------------------------------- */

static pthread_mutex_t helper_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t wake = PTHREAD_COND_INITIALIZER;
static pthread_t helper;
static atomic_int helper_allowed, helper_here, asleep, calls_mpi;

static enum outcome helped(struct program *program, int end) {
    return calls_mpi || program_in_memory(program) ? program_step(program, end) : PENDING;
}

static void *help(void *unused) {
    const struct timespec patience = {0, PATIENCE_NS};
    int idle = 0;
    while (!ending) {
        if (progress_running()) {
            idle = 0;
            advance_all(helped);
        } else if (++idle > IDLE_ROUNDS) {
            pthread_mutex_lock(&helper_lock);
            asleep = 1;
            while (!progress_running() && !ending) {
                pthread_cond_wait(&wake, &helper_lock);
            }
            asleep = 0;
            pthread_mutex_unlock(&helper_lock);
            idle = 0;
        }
        nanosleep(&patience, NULL);
    }
    return unused;
}

static void start_helper(void) {
    sigset_t every, before;
    sigfillset(&every); /* signals are for Python's threads */
    pthread_mutex_lock(&helper_lock);
    pthread_sigmask(SIG_SETMASK, &every, &before);
    if (!helper_here && !ending && pthread_create(&helper, NULL, help, NULL) == 0) {
        helper_here = 1;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_mutex_unlock(&helper_lock);
}

/* Let somebody advance what was linked just now. */
static void call_for_help(const struct program *program) {
    const struct library *library = program->library;
    if (library->hooks) {
        int none = 0;
        if (atomic_compare_exchange_strong(&hooked, &none, 1) &&
            start_hook(library, hook, NULL)) {
            hooked = 0; /* then only our own calls advance it */
        }
    }
    if (library->hooks && !program->users_op) {
        return;
    }
    if (!helper_here && helper_allowed) {
        start_helper();
    } else if (asleep) {
        pthread_mutex_lock(&helper_lock);
        pthread_cond_signal(&wake);
        pthread_mutex_unlock(&helper_lock);
    }
}

/* A child has the memory of its parent, but none of its threads, and no part in its messages. */
static void in_child(void) {
    forked = 1;
    pthread_mutex_init(&lock, NULL);
    pthread_mutex_init(&helper_lock, NULL);
    running = NULL;
    linked = helper_here = helper_allowed = 0;
}

void progress_allow_helper(int everything) {
    calls_mpi = everything;
    helper_allowed = 1;
}

static void watch(void) { pthread_atfork(NULL, NULL, in_child); }

void progress_watch_forks(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, watch);
}

void progress_stop(void) {
    pthread_mutex_lock(&helper_lock);
    int here = helper_here;
    ending = 1;
    helper_here = 0;
    helper_allowed = 0;
    pthread_cond_signal(&wake);
    pthread_mutex_unlock(&helper_lock);
    if (here) {
        pthread_join(helper, NULL);
    }
}

/* --- what owners do ----------------------------------------------------------------------------- */

/* To let other threads go and to regain them takes as long as a short message, and is only needed where
   MPI is called (another thread may hold its locks), or where something is waited for. */
static int is_quick(const struct program *program) {
    return program->quick && program->node && !progress_running();
}

unsigned long progress_quick_runs;

/* What a quick program can do before anybody is let go. */
static enum outcome look(struct program *program) {
    enum outcome outcome;
    int looks = program->library->patience ? QUICK_LOOKS : 1;
    do {
        outcome = program_step(program, program->instructions_number);
    } while (outcome == PENDING && --looks);
    progress_quick_runs += outcome == DONE;
    return outcome;
}

enum outcome progress_begin(struct program *program) {
    const struct library *library = program->library;
    void *threads = is_quick(program) ? NULL : library->let_go();
    progress_advance();
    enum outcome outcome = program_begin(program);
    if (outcome < PENDING || !program_needed(program)) {
        put_down(program, outcome);
    } else {
        pthread_mutex_lock(&lock);
        program->next = running;
        running = program;
        linked++;
        program->state = RUNNING;
        pthread_mutex_unlock(&lock);
        if (!threads && library->hooks && !hooked) {
            threads = library->let_go();
        }
        call_for_help(program);
        outcome = DONE;
    }
    library->regain(threads);
    return outcome;
}

static enum outcome finish(struct program *program) {
    uint64_t moves = program->moves;
    for (int looks = 0; progress_running(); looks++) { /* somebody may wait for those while we wait */
        enum outcome outcome = program_step(program, program->instructions_number);
        if (outcome != PENDING) {
            return outcome;
        }
        progress_advance();
        looks = program->moves == moves ? looks : 0;
        moves = program->moves;
        if (program->node) {
            crossings_pause(program, looks, !program->open);
        } else if (!program->library->patience) {
            sched_yield();
        }
    }
    return program_finish(program);
}

enum outcome progress_finish(struct program *program) {
    int state = program->quick ? take(program, OWNED, 0) : LEFT;
    enum outcome outcome = state == OWNED && is_quick(program) ? look(program) : PENDING;
    void *threads = outcome == PENDING ? program->library->let_go() : NULL;
    state = state == OWNED ? OWNED : take(program, OWNED, 1);
    outcome = state != OWNED       ? refusal(program, state)
              : outcome == PENDING ? put_down(program, finish(program))
                                   : put_down(program, outcome);
    program->library->regain(threads);
    return outcome;
}

enum outcome progress_test(struct program *program) {
    void *threads = program->library->let_go();
    progress_advance();
    int state = take(program, STEPPED, 1);
    enum outcome outcome = state == OWNED || state == STEPPED
                               ? program_step(program, program->instructions_number)
                               : refusal(program, state);
    if (outcome == PENDING && program->node) {
        crossings_serve_mpi(program);
    }
    if (state == OWNED) {
        put_down(program, outcome);
    } else if (state == STEPPED) {
        pthread_mutex_lock(&lock);
        stepped(program, outcome);
        pthread_mutex_unlock(&lock);
    }
    program->library->regain(threads);
    return outcome;
}

enum outcome progress_run(struct program *program) {
    void *threads = NULL;
    program_reset(program);
    enum outcome outcome = is_quick(program) ? look(program) : PENDING;
    if (outcome == PENDING) {
        threads = program->library->let_go();
        outcome = finish(program);
    }
    put_down(program, outcome);
    program->library->regain(threads);
    return outcome;
}

int progress_give_up(struct program *program) {
    int state = take(program, OWNED, 1);
    if (state != OWNED && state != BROKEN) {
        return -1;
    }
    if (state == OWNED && program->at == program->instructions_number && !program->open) {
        crossings_give_lane(program);
    }
    int pending = program_abandon(program);
    put_down(program, state == BROKEN ? BROKE : DONE);
    return pending;
}

int progress_free(struct program *program) {
    pthread_mutex_lock(&lock);
    int freed = program->state != STEPPED;
    if (!freed) {
        program->state = LEFT;
    } else if (program->state == RUNNING) {
        unlink_program(program);
    }
    pthread_mutex_unlock(&lock);
    if (freed) {
        program_free(program);
    }
    return freed;
}
