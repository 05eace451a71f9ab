/* Programs that run while their owner is elsewhere.

   A rank in the middle of a chain has to forward data between the start and the end of a program.
   Whoever calls in here advances all that are running.  So does the library, where it has hooks,
   whenever it makes progress.  Elsewhere, and where an operator of the user's has to be called, a
   helper thread advances those that nobody came back to for about a millisecond.

   THE STATES of a program say who may touch it:

       IDLE      not begun, or over: its owner, with the GIL
       OWNED     a thread of its owner's executes it: that thread only
       RUNNING   begun, linked, and other ranks wait for it (`program_needed`), be it only to read what
                 they published: whoever makes it STEPPED first
       STEPPED   linked; one thread takes a step: that thread only.  Its owner waits, without the GIL
       RESTING   begun, and no other rank waits for it any more: nobody before its owner
       LIBRARYS  a generalized request: the library's hook, then who completes the request
       BROKEN    an error came after its first message: it can only be given up
       LEFT      its owner is gone: as STEPPED, and whoever takes the step frees it

       IDLE -> OWNED -> RUNNING <-> STEPPED -> RESTING -> OWNED -> IDLE
                  \-> RESTING, BROKEN  |\-> BROKEN, IDLE, LEFT
                  \-> LIBRARYS -> IDLE or BROKEN      RUNNING -> OWNED (its owner waits for it)

   LOCKS.  `lock` guards the list and every change to or from RUNNING and STEPPED.  It is held for some
   instructions only, and nothing is called under it, so it can be taken under the GIL and under MPI's
   own locks.  Nothing of the user's runs under it: no operator, no finaliser, no garbage collection.
   `helper_lock` is for making, waking and ending the helper.  Who waits for a step of another thread
   (`take`) must not hold the GIL: an operator in that step may need it.  Nobody waits for a step of
   his own thread: an operator that ends or gives up the very program that calls it is told BUSY.

   OWNERS.  The binding's object owns the program; Python's plan owns the persistent requests, the
   derived types and the memory, and keeps all of them until the program is IDLE, or until
   `progress_give_up` returns 0.  Requests of messages that are not persistent are the program's. */
#ifndef COLLWISE_PROGRESS_H
#define COLLWISE_PROGRESS_H

#include "runner.h"

/* How many programs are running that other ranks wait for. */
int progress_running(void);

/* How many executions ended before any thread was let go. */
extern unsigned long progress_quick_runs;

/* Advance everything that is running, without blocking, but for what other threads advance now. */
void progress_advance(void);

/* Take a program that is IDLE, for `begin`, `run` or `start_request`; 0 if it is not.  Never blocks. */
int progress_own(struct program *program);

/* The next four let other threads of the owner go (`library.h`) where they call MPI or wait. */

/* Begin a program, and let it run if others wait for it. */
enum outcome progress_begin(struct program *program);

/* Execute the rest of a program that has begun; others that are running advance meanwhile. */
enum outcome progress_finish(struct program *program);

/* Advance everything, and say whether all of this program is done.  Never blocks, unless another thread
   takes a step of it. */
enum outcome progress_test(struct program *program);

/* Execute everything; others that are running advance meanwhile. */
enum outcome progress_run(struct program *program);

/* Make a program IDLE, whatever is under way: what it still receives is cancelled.  Returns how many
   sends still read its memory; -1 if it is being executed by this thread, or by the library. */
int progress_give_up(struct program *program);

/* Free a program, or let the thread do so that takes a step of it: then it returns 0.  Never blocks. */
int progress_free(struct program *program);

/* Start a program that the library's progress executes, as a request of MPI's, whose handle is
   written to `request`.  Only where the library has hooks, and not with an operator of the user's.
   DONE: it is over, the program IDLE.  PENDING: `freed` is called with `owner`, inside of MPI, when the
   request was completed and freed; call `progress_complete` later, outside of MPI. */
enum outcome progress_start_request(struct program *program, void *request,
                                    void (*freed)(void *owner), void *owner);
void progress_complete(struct program *program);

/* Let there be a helper thread as soon as something is running.   everything: under
   MPI_THREAD_MULTIPLE.  Otherwise it advances programs in memory only, which must not call MPI. */
void progress_allow_helper(int everything);

/* Notice forks from now on.  A child executes nothing: messages are its parent's. */
void progress_watch_forks(void);
int progress_forked(void);

/* How many of these requests are not complete; 0 after `progress_stop`. */
int progress_requests(void);

/* MPI ends: end the helper thread, which does not come again, and leave requests as they are. */
void progress_stop(void);

#endif
