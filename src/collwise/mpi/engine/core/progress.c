#define _POSIX_C_SOURCE 200809L
#include "progress.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define PATIENCE_NS 1000000
#define IDLE_ROUNDS 100 /* after which the helper waits until it is woken */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of what is running */
static struct program *running;
static atomic_int number;
static const struct library *progress_library; /* the hooks are called with a state only */

static pthread_mutex_t helper_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t wake = PTHREAD_COND_INITIALIZER;
static pthread_t helper;
static atomic_int helper_allowed, helper_here, asleep, end;

int progress_running(void) { return atomic_load_explicit(&number, memory_order_acquire); }

static void link_program(struct program *program) {
    pthread_mutex_lock(&lock);
    program->next = running;
    running = program;
    atomic_fetch_add(&number, 1);
    pthread_mutex_unlock(&lock);
}

/* The lock is held. */
static void unlink_program(struct program *program) {
    for (struct program **link = &running; *link; link = &(*link)->next) {
        if (*link == program) {
            *link = program->next;
            program->next = NULL;
            atomic_fetch_sub(&number, 1);
            return;
        }
    }
}

/* Advance everything in a way, unless another thread does so now.  A program that failed is left to
   its owner, who meets the error in the end. */
static void advance_all(enum outcome (*step)(struct program *, int)) {
    if (!progress_running() || pthread_mutex_trylock(&lock)) {
        return;
    }
    for (struct program *one = running, *next; one; one = next) {
        next = one->next;
        if (step(one, one->forwarding) != PENDING) {
            unlink_program(one);
        }
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
    void (*completed)(void *);
    void *owner;
};

static int poll_grequest(void *thing) {
    const struct library *library = progress_library;
    struct grequest *grequest =
        ((void *(*)(void *))library->MPIX_Async_get_state)(thing);
    if (program_poll(grequest->program, grequest->program->instructions_number) == PENDING) {
        return NO_PROGRESS;
    }
    CALL(MPI_Grequest_complete, GREQUEST_COMPLETE, library,
         (handle_at(library, &grequest->request)));
    return OVER;
}

/* Somebody completes the request, outside of the library's progress. */
static int query_grequest(void *extra, void *status) {
    struct grequest *grequest = extra;
    const struct library *library = grequest->program->library;
    progress_complete(grequest->program);
    CALL(MPI_Status_set_elements, SET_ELEMENTS, library, (status, library->byte, 0));
    CALL(MPI_Status_set_cancelled, SET_CANCELLED, library, (status, 0));
    return grequest->program->error;
}

static int free_grequest(void *extra) {
    struct grequest *grequest = extra;
    grequest->completed(grequest->owner);
    free(grequest);
    return 0;
}

static int cancel_grequest(void *extra, int complete) {
    (void)extra, (void)complete; /* a collective cannot be cancelled */
    return 0;
}

void progress_complete(struct program *program) {
    if (!program->interrupted) {
        program_complete(program);
    }
}

enum outcome progress_start_request(struct program *program, void *request,
                                    void (*completed)(void *owner), void *owner) {
    const struct library *library = progress_library = program->library;
    struct grequest *grequest = malloc(sizeof *grequest);
    if (!grequest || program_begin(program) == FAILED) {
        free(grequest);
        return FAILED;
    }
    *grequest = (struct grequest){program, 0, completed, owner};
    program->error = CALL(MPI_Grequest_start, GREQUEST_START, library,
                          (query_grequest, free_grequest, cancel_grequest, grequest,
                           &grequest->request));
    if (program->error) {
        free(grequest);
        program->interrupted = 1;
        return FAILED;
    }
    memcpy(request, &grequest->request, (size_t)library->width);
    program->error = start_hook(library, poll_grequest, grequest);
    if (program->error) { /* nobody would move it on */
        program->interrupted = 1;
        return FAILED;
    }
    return DONE;
}

/* --- where it has none: a helper thread -------------------------------------------------------- */

static void *help(void *unused) {
    const struct timespec patience = {0, PATIENCE_NS};
    int idle = 0;
    while (!end) {
        if (progress_running()) {
            idle = 0;
            progress_advance();
        } else if (++idle > IDLE_ROUNDS) {
            pthread_mutex_lock(&helper_lock);
            asleep = 1;
            while (!progress_running() && !end) {
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

/* Let somebody advance what was started just now. */
static void call_for_help(const struct library *library) {
    if (library->hooks) {
        int none = 0;
        if (atomic_compare_exchange_strong(&hooked, &none, 1) &&
            start_hook(library, hook, NULL)) {
            hooked = 0; /* then only our own calls advance it */
        }
        return;
    }
    if (!helper_here && helper_allowed) {
        pthread_mutex_lock(&helper_lock);
        if (!helper_here && !end && pthread_create(&helper, NULL, help, NULL) == 0) {
            helper_here = 1;
        }
        pthread_mutex_unlock(&helper_lock);
    } else if (asleep) {
        pthread_mutex_lock(&helper_lock);
        pthread_cond_signal(&wake);
        pthread_mutex_unlock(&helper_lock);
    }
}

enum outcome progress_begin(struct program *program) {
    progress_advance();
    if (program_begin(program) == FAILED) {
        return FAILED;
    }
    if (program->at < program->forwarding) {
        link_program(program);
        call_for_help(program->library);
    }
    return DONE;
}

void progress_remove(struct program *program) {
    if (progress_running()) {
        pthread_mutex_lock(&lock);
        unlink_program(program);
        pthread_mutex_unlock(&lock);
    }
}

enum outcome progress_finish(struct program *program) {
    progress_remove(program);
    while (progress_running()) { /* somebody may wait for those while we wait for him */
        enum outcome outcome = program_step(program, program->instructions_number);
        if (outcome != PENDING) {
            return outcome;
        }
        progress_advance();
    }
    return program_finish(program);
}

enum outcome progress_test(struct program *program) {
    progress_remove(program);
    progress_advance();
    enum outcome outcome = program_step(program, program->instructions_number);
    if (outcome == PENDING && program->at < program->forwarding) {
        link_program(program);
    }
    return outcome;
}

enum outcome progress_run(struct program *program) {
    if (!progress_running()) {
        return program_run(program);
    }
    enum outcome outcome = progress_begin(program);
    return outcome == FAILED ? outcome : progress_finish(program);
}

void progress_allow_helper(void) { helper_allowed = 1; }

void progress_stop(void) {
    pthread_mutex_lock(&helper_lock);
    int here = helper_here;
    end = 1;
    helper_here = 0;
    helper_allowed = 0;
    pthread_cond_signal(&wake);
    pthread_mutex_unlock(&helper_lock);
    if (here) {
        pthread_join(helper, NULL);
    }
}
