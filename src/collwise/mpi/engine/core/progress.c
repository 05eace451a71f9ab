#define _POSIX_C_SOURCE 200809L
#include "progress.h"

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#define PATIENCE_NS 1000000
#define IDLE_ROUNDS 100 /* after which the helper waits until it is woken */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of what is running */
static struct program *running;
static atomic_int number;

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

/* The lock is held.  A program that failed is left to its owner, who meets the error in the end. */
static void advance_all(void) {
    for (struct program *one = running, *next; one; one = next) {
        next = one->next;
        if (program_step(one, one->forwarding) != PENDING) {
            unlink_program(one);
        }
    }
}

void progress_advance(void) {
    if (progress_running() && pthread_mutex_trylock(&lock) == 0) {
        advance_all();
        pthread_mutex_unlock(&lock);
    }
}

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

static void wake_helper(void) {
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
        wake_helper();
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
