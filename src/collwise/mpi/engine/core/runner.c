#include "runner.h"

#include <stdlib.h>
#include <string.h>

#define OF(number) program->order[one->first + (number)]

static int started(struct program *program, int number) {
    const struct library *library = program->library;
    const struct message *m = &program->messages[number];
    void *request = program_request(program, number);
    if (program->persistent) {
        return CALL(Start, START, library, (request));
    }
    void *at = program_place(program, m->at);
    if (m->sends) {
        return CALL_COUNT(Isend, ISEND, m->count, library,
                          (at, m->count, m->type, m->peer, program->tag, program->comm, request));
    }
    return CALL_COUNT(Irecv, IRECV, m->count, library,
                      (at, m->count, m->type, m->peer, program->tag, program->comm, request));
}

/* Complete a message that was started.  In Wait, MPICH gives up its core whenever it looks for a
   message in vain (sched_yield, one to three microseconds, when the message itself takes half a
   one); in Test it does not.  A rank that has to wait long still blocks in Wait; where ranks
   share cores, all do so at once, so that the others get on. */
static int completed(struct program *program, int number, int *patience) {
    const struct library *library = program->library;
    void *request = program_request(program, number);
    for (; *patience > 0; --*patience) {
        int complete = 0;
        int error = CALL(Test, TEST, library, (request, &complete, program->status));
        if (complete || error) {
            return error;
        }
    }
    return CALL(Wait, WAIT, library, (request, program->status));
}

static int combined(struct program *program, const struct instruction *one) {
    void *left = program_place(program, one->left), *right = program_place(program, one->right);
    if (one->loop) {
        one->loop(left, right, program_place(program, one->into), one->count);
        return 0;
    }
    return CALL_COUNT(Reduce_local, REDUCE_LOCAL, one->count, program->library,
                      (left, right, one->count, one->type, program->op));
}

/* Copy elements with gaps where the library calls us: in its hooks nothing may be called that makes
   progress, as messages do. */
static int packed(const struct program *program, const struct instruction *one, const void *from,
                  void *into) {
    const struct library *library = program->library;
    int64_t room = 0, end = 0, begin = 0;
    int error = CALL_AS(Pack_size_c, PACK_SIZE_ARGS, int64_t, library,
                        (one->count, one->type, program->comm, &room));
    void *between = malloc((size_t)room + 1);
    if (!between) {
        return library->too_long;
    }
    if (!error) {
        error = CALL_AS(Pack_c, PACK_ARGS, int64_t, library,
                        (from, one->count, one->type, between, room, &end, program->comm));
    }
    if (!error) {
        error = CALL_AS(Unpack_c, UNPACK_ARGS, int64_t, library,
                        (between, end, &begin, into, one->into_count, one->into_type,
                         program->comm));
    }
    free(between);
    return error;
}

static int copied(struct program *program, const struct instruction *one) {
    void *from = program_place(program, one->left), *into = program_place(program, one->into);
    if (one->kind == COPY) {
        memmove(into, from, (size_t)one->count);
        return 0;
    }
    if (program->library->hooks && program->library->Unpack_c) {
        return packed(program, one, from, into);
    }
    int64_t most = one->count > one->into_count ? one->count : one->into_count;
    /* Only MPI knows the gaps: this rank sends the elements to itself. */
    return CALL_COUNT(Sendrecv, SENDRECV, most, program->library,
                      (from, one->count, one->type, program->rank, program->tag, into,
                       one->into_count, one->into_type, program->rank, program->tag,
                       program->comm, program->status));
}

/* Execute an instruction that waits for nothing. */
static int executed(struct program *program, const struct instruction *one) {
    switch (one->kind) {
    case START:
        for (int n = 0; n < one->number; n++) {
            int error = started(program, OF(n));
            if (error) {
                return error;
            }
            program->begun = 1;
        }
        return 0;
    case COMBINE:
        return combined(program, one);
    default:
        return copied(program, one);
    }
}

/* Whether the rest can be executed after a call to MPI.   begun: messages were started before it. */
static int goes_on(struct program *program, int error, int begun) {
    int class = error;
    if (!error) {
        return 1;
    }
    program->error = program->error ? program->error : error;
    int known = !CALL(Error_class, ERROR_CLASS, program->library, (error, &class));
    if (known && class == program->library->too_long) {
        return 1;
    }
    program->interrupted = begun;
    return 0;
}

static enum outcome at_end(const struct program *program) {
    return program->error ? FAILED : DONE;
}

/* Execute what waits for nothing, and move on. */
static int passes(struct program *program, const struct instruction *one) {
    int error = executed(program, one);
    return goes_on(program, error, program->begun);
}

enum outcome program_poll(struct program *program, int end) {
    if (program->interrupted) {
        return FAILED;
    }
    for (; program->at < end; program->at++) {
        const struct instruction *one = &program->instructions[program->at];
        if (one->kind != AWAIT) {
            if (!passes(program, one)) {
                return FAILED;
            }
            continue;
        }
        for (int n = 0; n < one->number; n++) {
            if (!CALL(MPIX_Request_is_complete, IS_COMPLETE, program->library,
                      (handle_at(program->library, program_request(program, OF(n)))))) {
                return PENDING;
            }
        }
        program->polled = 1;
    }
    return DONE;
}

void program_complete(struct program *program) {
    for (int at = 0; program->polled && at < program->at; at++) {
        const struct instruction *one = &program->instructions[at];
        for (int n = 0; one->kind == AWAIT && n < one->number; n++) {
            goes_on(program,
                    CALL(Wait, WAIT, program->library,
                         (program_request(program, OF(n)), program->status)),
                    1);
        }
    }
    program->polled = 0;
}

enum outcome program_step(struct program *program, int end) {
    program_complete(program);
    if (program->interrupted) {
        return FAILED;
    }
    for (; program->at < end; program->at++) {
        const struct instruction *one = &program->instructions[program->at];
        if (one->kind != AWAIT) {
            if (!passes(program, one)) {
                return FAILED;
            }
            continue;
        }
        for (int n = 0; n < one->number; n++) { /* those that were complete are so at once */
            int complete = 0;
            int error = CALL(Test, TEST, program->library,
                             (program_request(program, OF(n)), &complete, program->status));
            if (!goes_on(program, error, 1)) {
                return FAILED;
            }
            if (!complete && !error) {
                return PENDING;
            }
        }
    }
    return end < program->instructions_number ? DONE : at_end(program);
}

enum outcome program_finish(struct program *program) {
    program_complete(program);
    if (program->interrupted) {
        return FAILED;
    }
    for (; program->at < program->instructions_number; program->at++) {
        const struct instruction *one = &program->instructions[program->at];
        if (one->kind != AWAIT) {
            if (!passes(program, one)) {
                return FAILED;
            }
            continue;
        }
        int patience = program->library->patience;
        for (int n = 0; n < one->number; n++) {
            if (!goes_on(program, completed(program, OF(n), &patience), 1)) {
                return FAILED;
            }
        }
    }
    return at_end(program);
}

static void reset(struct program *program) {
    program->at = program->begun = program->polled = program->error = program->interrupted = 0;
}

enum outcome program_begin(struct program *program) {
    reset(program);
    for (; program->at < program->instructions_number; program->at++) {
        const struct instruction *one = &program->instructions[program->at];
        if (one->kind == AWAIT) {
            break;
        }
        if (!passes(program, one)) {
            return FAILED;
        }
    }
    return DONE;
}

enum outcome program_run(struct program *program) {
    reset(program);
    return program_finish(program);
}
