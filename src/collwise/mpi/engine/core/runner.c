#include "runner.h"

#include "crossing.h"

#include <stdlib.h>
#include <string.h>

#define OF(number) program->order[todo->first + (number)]

/* How many messages of an AWAIT are MPI's in this execution. */
static int by_mpi(const struct program *program, const struct instruction *todo) {
    return program->node ? todo->number : todo->number + todo->inside;
}

static int started(struct program *program, int number) {
    const struct library *library = program->library;
    const struct message *m = &program->messages[number];
    void *request = program_request(program, number);
    if (crosses(program, number)) {
        return crossing_begin(program, number);
    }
    if (program->persistent && !stays_inside(program, number)) {
        return CALL(Start, START, library, (request));
    }
    void *data = program_place(program, m->place);
    if (m->sends) {
        return CALL_COUNT(Isend, ISEND, m->count, library,
                          (data, m->count, m->type, m->peer, program->tag, program->comm, request));
    }
    return CALL_COUNT(Irecv, IRECV, m->count, library,
                      (data, m->count, m->type, m->peer, program->tag, program->comm, request));
}

int program_combine(const struct program *program, const struct instruction *todo, const char *left,
                    char *right, char *into, int64_t count) {
    if (todo->loop) {
        todo->loop(left, right, into, count);
        return 0;
    }
    const struct library *library = program->library;
    handle users = program->users_type ? handle_at(library, program->users_type) : library->no_type;
    handle type = users == library->no_type ? todo->type : users;
    return CALL_COUNT(Reduce_local, REDUCE_LOCAL, count, library,
                      (left, right, count, type, program->op));
}

static int combined(const struct program *program, const struct instruction *todo) {
    if (crossing_combined(program, todo)) {
        return 0; /* as it came */
    }
    return program_combine(program, todo, program_place(program, todo->left),
                           program_place(program, todo->right), program_place(program, todo->into),
                           todo->count);
}

/* Copy elements with gaps where the library calls us: in its hooks nothing may be called that makes
   progress, as messages do. */
static int packed(const struct program *program, const struct instruction *todo, const void *from,
                  void *into) {
    const struct library *library = program->library;
    int64_t room = 0, end = 0, begin = 0;
    int error = CALL_AS(Pack_size_c, PACK_SIZE_ARGS, int64_t, library,
                        (todo->count, todo->type, program->comm, &room));
    void *between = malloc((size_t)room + 1);
    if (!between) {
        return library->no_memory;
    }
    if (!error) {
        error = CALL_AS(Pack_c, PACK_ARGS, int64_t, library,
                        (from, todo->count, todo->type, between, room, &end, program->comm));
    }
    if (!error) {
        error = CALL_AS(Unpack_c, UNPACK_ARGS, int64_t, library,
                        (between, end, &begin, into, todo->into_count, todo->into_type,
                         program->comm));
    }
    free(between);
    return error;
}

static int copied(struct program *program, const struct instruction *todo) {
    void *from = program_place(program, todo->left), *into = program_place(program, todo->into);
    if (todo->kind == COPY) {
        memmove(into, from, (size_t)todo->count);
        return 0;
    }
    if (program->library->hooks && program->library->Unpack_c) {
        return packed(program, todo, from, into);
    }
    int64_t most = todo->count > todo->into_count ? todo->count : todo->into_count;
    /* Only MPI knows the gaps: this rank sends the elements to itself. */
    return CALL_COUNT(Sendrecv, SENDRECV, most, program->library,
                      (from, todo->count, todo->type, program->rank, program->tag, into,
                       todo->into_count, todo->into_type, program->rank, program->tag,
                       program->comm, program->status));
}

/* --- waiting -------------------------------------------------------------------------------- */

/* What the error means that the library completed a message with. */
static enum outcome over(struct program *program, int error) {
    int class = error;
    if (!error) {
        return DONE;
    }
    program->error = program->error ? program->error : error;
    int known = !CALL(Error_class, ERROR_CLASS, program->library, (error, &class));
    return known && class == program->library->too_long ? DONE : BROKE;
}

/* Whether the last status surely tells of so many bytes: asking MPI takes as long as a short message. */
static int has_length(const struct program *program, int64_t nbytes) {
    uint32_t word = 0;
    if (program->library->count_at >= 0) {
        memcpy(&word, program->status + program->library->count_at, sizeof word);
    }
    return program->library->count_at >= 0 && word == (uint32_t)nbytes;
}

/* What it means that the library found a message complete, or not; its status is the last. */
static enum outcome message_over(struct program *program, int number, int complete, int error) {
    struct message *m = &program->messages[number];
    int nbytes = -1; /* negative: more than can be told */
    if (!complete && !error) {
        return PENDING;
    }
    m->over = program->turn;
    if (!error && !m->sends && !program->error && !has_length(program, m->nbytes)) {
        CALL(Get_count, GET_COUNT, program->library,
             (program->status, program->library->byte, &nbytes));
        program->error = nbytes >= 0 && nbytes < m->nbytes ? program->library->other : 0;
    }
    return over(program, error);
}

static int is_over(const struct program *program, int number) {
    return program->messages[number].over == program->turn;
}

typedef enum outcome waiting(struct program *program, const struct instruction *todo);

/* Messages inside the node move; whether one of these is not over yet. */
static enum outcome crossed(struct program *program, const struct instruction *todo) {
    if (!program->open) {
        return DONE;
    }
    if (!crossings_move(program, !todo->number)) { /* a wait for MPI's may be long */
        return BROKE;
    }
    for (int n = todo->number; n < todo->number + todo->inside; n++) {
        if (!crossing_over(program, OF(n))) {
            return crossings_drain(program) ? PENDING : BROKE;
        }
    }
    return DONE;
}

static enum outcome tested(struct program *program, const struct instruction *todo) {
    enum outcome outcome = crossed(program, todo);
    if (outcome != DONE) {
        return outcome;
    }
    for (int n = 0; n < by_mpi(program, todo) && outcome == DONE; n++) {
        int complete = 0;
        if (is_over(program, OF(n))) {
            continue;
        }
        int error = CALL(Test, TEST, program->library,
                         (program_request(program, OF(n)), &complete, program->status));
        outcome = message_over(program, OF(n), complete, error);
    }
    return outcome;
}

static enum outcome looked_at(struct program *program, const struct instruction *todo) {
    enum outcome outcome = crossed(program, todo);
    if (outcome != DONE) {
        return outcome;
    }
    for (int n = 0; n < by_mpi(program, todo); n++) {
        if (!CALL(MPIX_Request_is_complete, IS_COMPLETE, program->library,
                  (handle_at(program->library, program_request(program, OF(n)))))) {
            return PENDING;
        }
    }
    return DONE;
}

/* Complete a message that was started.  In Wait, MPICH gives up its core whenever it looks for a
   message in vain (sched_yield, one to three microseconds, when the message itself takes half a
   one); in Test it does not.  A rank that has to wait long still blocks in Wait; where ranks
   share cores, all do so at once, so that the others get on. */
static int wait_for(struct program *program, int number, int *patience) {
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

/* As long as messages inside the node are open: look for all, and block in MPI for none. */
static enum outcome watched(struct program *program, const struct instruction *todo) {
    enum outcome outcome = PENDING;
    uint64_t moves = program->moves;
    for (int looks = 0; program->open && outcome == PENDING; looks++) {
        outcome = tested(program, todo);
        if (program->moves != moves) {
            moves = program->moves;
            looks = 0;
        }
        if (outcome == PENDING && program->open) {
            crossings_pause(program, looks, crossed(program, todo) == DONE);
        }
    }
    return outcome == BROKE ? BROKE : DONE;
}

static enum outcome waited_for(struct program *program, const struct instruction *todo) {
    int patience = program->library->patience;
    if (program->open && watched(program, todo) == BROKE) {
        return BROKE;
    }
    for (int n = 0; n < by_mpi(program, todo); n++) {
        if (!is_over(program, OF(n)) &&
            message_over(program, OF(n), 1, wait_for(program, OF(n), &patience)) == BROKE) {
            return BROKE;
        }
    }
    return DONE;
}

/* --- walking -------------------------------------------------------------------------------- */

/* Execute an instruction that waits for nothing. */
static enum outcome executed(struct program *program, const struct instruction *todo) {
    int error = 0;
    if (todo->kind == START) {
        for (int n = 0; n < todo->number && !error; n++) {
            error = started(program, OF(n));
            program->started += !error;
        }
    } else {
        error = todo->kind == COMBINE ? combined(program, todo) : copied(program, todo);
    }
    if (!error) {
        return DONE;
    }
    program->error = program->error ? program->error : error;
    return program->started ? BROKE : FAILED;
}

static enum outcome walk(struct program *program, int end, waiting *await) {
    for (; program->at < end; program->at++) {
        const struct instruction *todo = &program->instructions[program->at];
        int users = program->users_op && todo->kind == COMBINE && !todo->loop;
        enum outcome outcome = todo->kind == AWAIT                ? await(program, todo)
                               : users && await == looked_at ? PENDING
                                                             : executed(program, todo);
        if (outcome != DONE) {
            return outcome;
        }
    }
    if (program->open && !crossings_move(program, 0)) {
        return BROKE;
    }
    return end == program->instructions_number && program->error ? FAILED : DONE;
}

/* The same outside of the library's progress. */
static enum outcome walk_outside(struct program *program, int end, waiting *await) {
    enum outcome outcome = program_settle(program);
    if (outcome == DONE) {
        outcome = walk(program, end, await);
        program->settled = program->at;
    }
    if (outcome == BROKE || outcome == FAILED) {
        program_abandon(program);
    } else if (program->at == program->instructions_number) {
        program->started = 0;
    }
    return outcome;
}

enum outcome program_poll(struct program *program, int end) {
    return walk(program, end, looked_at);
}

enum outcome program_settle(struct program *program) {
    for (; program->settled < program->at; program->settled++) {
        const struct instruction *todo = &program->instructions[program->settled];
        if (todo->kind == AWAIT && waited_for(program, todo) == BROKE) {
            return BROKE;
        }
    }
    return DONE;
}

enum outcome program_step(struct program *program, int end) {
    return walk_outside(program, end, tested);
}

enum outcome program_finish(struct program *program) {
    return walk_outside(program, program->instructions_number, waited_for);
}

void program_reset(struct program *program) {
    program->at = program->settled = program->started = program->error = 0;
    program->turn = program->turn == INT_MAX ? 1 : program->turn + 1;
    if (program->home) {
        crossings_reset(program);
    }
}

enum outcome program_begin(struct program *program) {
    int end = 0;
    while (end < program->instructions_number && program->instructions[end].kind != AWAIT) {
        end++;
    }
    program_reset(program);
    return walk_outside(program, end, tested);
}

int program_abandon(struct program *program) {
    const struct library *library = program->library;
    int pending = program->home ? crossings_withdraw(program) : 0, left = program->started;
    for (int at = 0; left; at++) {
        const struct instruction *todo = &program->instructions[at];
        for (int n = 0; todo->kind == START && n < todo->number && left; n++, left--) {
            void *request = program_request(program, OF(n));
            int complete = 0; /* one that is over is found complete again */
            if (crosses(program, OF(n))) {
                continue;
            }
            if (CALL(Test, TEST, library, (request, &complete, program->status)) || complete) {
                continue;
            }
            if (program->messages[OF(n)].sends) {
                pending++;
            } else if (!CALL(Cancel, CANCEL, library, (request))) {
                CALL(Wait, WAIT, library, (request, program->status));
            }
        }
    }
    program->started = pending ? program->started : 0;
    program->open = program->unsent = 0;
    program->at = program->settled = program->instructions_number;
    return pending;
}
