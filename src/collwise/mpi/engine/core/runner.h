/* Walking a program: a stepper that never blocks, and a runner that does. */
#ifndef COLLWISE_RUNNER_H
#define COLLWISE_RUNNER_H

#include "program.h"

enum outcome { FAILED = -1, PENDING = 0, DONE = 1 };

/* A message that was too long for its buffer is over, and others wait for the rest, which is executed
   all the same; the outcome is FAILED in the end.  Any other error breaks the program, unless no
   message was started before.  FAILED leaves the library's error code in the program. */

/* Execute instructions from where the program is to `end`, as far as nothing has to be waited for. */
enum outcome program_step(struct program *program, int end);

/* The same inside of the library's progress, where nothing may be completed: messages are looked at,
   and are left to `program_complete`. */
enum outcome program_poll(struct program *program, int end);

/* Complete the messages that polling found complete. */
void program_complete(struct program *program);

/* Execute the rest; MPI may block. */
enum outcome program_finish(struct program *program);

/* Begin anew, and do what waits for nothing. */
enum outcome program_begin(struct program *program);

/* Execute everything. */
enum outcome program_run(struct program *program);

#endif
