/* Tries all interleavings of a few ranks that share memory; explorer.c says how. */
#ifndef EXPLORER_H
#define EXPLORER_H

#include <stddef.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <time.h>

enum { MOST_RANKS = 3 };

/* What the ranks do.   begin, end: before they start and after their end, in no rank's name.
   whole: all ranks came to their end, since this was not stopped as a repetition. */
struct scenario {
    const char *name;
    int ranks;
    size_t nbytes; /* of memory that they share */
    void (*begin)(void);
    void (*rank)(int rank);
    void (*end)(int whole);
};

/* The memory that ranks share, which is zeros when a run begins. */
extern char shared_memory[128 << 10];

/* All runs of a scenario with at most so many deviations.  The first that fails ends the process,
   with its steps.   repeating: what earlier runs did is done again, to show that nothing is lost. */
void explore(const struct scenario *scenario, int deviations, int repeating);

/* What holds in every run. */
void expect(int holds, const char *what, long seen, long expected);

/* Where an atomic word lies in the structure of the tested file. */
void name_word(const void *word, int ranks, char *name, size_t size);

/* Called by the tested file in the place of the C library's. */
void *explorer_copy(void *into, const void *from, size_t nbytes);
long explorer_syscall(long number, ...);
ssize_t explorer_read(pid_t process, const struct iovec *here, unsigned long, const struct iovec *there,
                      unsigned long, unsigned long);
ssize_t explorer_write(pid_t process, const struct iovec *here, unsigned long,
                       const struct iovec *there, unsigned long, unsigned long);
int explorer_nap(const struct timespec *time, struct timespec *rest);

#endif
