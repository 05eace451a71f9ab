/* Programs that run while their owner is elsewhere.

   A rank in the middle of a chain has to forward data between the start and the end of a program.
   Whoever calls in here advances all that are running.  So does the library, where it has hooks,
   whenever it makes progress; elsewhere a helper thread advances those that nobody came back to for
   about a millisecond.  Whoever advances them holds the lock, and never blocks in
   MPI meanwhile. */
#ifndef COLLWISE_PROGRESS_H
#define COLLWISE_PROGRESS_H

#include "runner.h"

/* How many programs are running that still have to forward data. */
int progress_running(void);

/* Advance everything that is running, without blocking; nothing if another thread does so now. */
void progress_advance(void);

/* Begin a program, and let it run if others wait for it. */
enum outcome progress_begin(struct program *program);

/* Execute the rest of a program that has begun; others that are running advance meanwhile. */
enum outcome progress_finish(struct program *program);

/* Advance everything, and say whether all of this program is done.  Never blocks. */
enum outcome progress_test(struct program *program);

/* Execute everything; others that are running advance meanwhile. */
enum outcome progress_run(struct program *program);

/* Forget a program that is complete or given up. */
void progress_remove(struct program *program);

/* Start a program that the library's progress executes, as a generalized request, whose handle is
   written to `request`.  Only where the library has hooks.   completed: is called with `owner`, inside
   of MPI, when the request was completed and freed; call `progress_complete` later, outside of MPI. */
enum outcome progress_start_request(struct program *program, void *request,
                                    void (*completed)(void *owner), void *owner);
void progress_complete(struct program *program);

/* Let there be a helper thread as soon as something is running.  Only under MPI_THREAD_MULTIPLE. */
void progress_allow_helper(void);

/* End the helper thread; it does not come again. */
void progress_stop(void);

#endif
