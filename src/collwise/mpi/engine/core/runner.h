/* Walking a program: a stepper that never blocks, and a runner that does.  Whoever calls in here has
   taken the program (`progress.h`). */
#ifndef COLLWISE_RUNNER_H
#define COLLWISE_RUNNER_H

#include "program.h"

enum outcome {
    BUSY = -3,   /* a thread is at it already; nothing was done */
    BROKE = -2,  /* the rest cannot be executed: an error came after the first message */
    FAILED = -1, /* an error before the first message, or a message of another length */
    PENDING = 0,
    DONE = 1
};

/* A message that was too long for its buffer, or too short, is over, and others wait for the rest, which
   is executed all the same; the outcome is FAILED in the end.  The library's error code is in the program. */

/* Execute instructions from where the program is to `end`, as far as nothing has to be waited for. */
enum outcome program_step(struct program *program, int end);

/* The same inside of the library's progress, where nothing may be completed, and no operator of the
   user's be called: messages are looked at, and are left to `program_settle`. */
enum outcome program_poll(struct program *program, int end);

/* Complete the messages that polling found complete. */
enum outcome program_settle(struct program *program);

/* Execute the rest; MPI may block. */
enum outcome program_finish(struct program *program);

/* Begin anew, and do what waits for nothing. */
enum outcome program_begin(struct program *program);

/* Combine so many elements as a COMBINE says, wherever its operands are.   Returns MPI's error, or 0. */
int program_combine(const struct program *program, const struct instruction *todo, const char *left,
                    char *right, char *into, int64_t count);

/* Let the next step be the first. */
void program_reset(struct program *program);

/* End it: cancel what is still to be received.  Returns how many sends still read their memory. */
int program_abandon(struct program *program);

#endif
