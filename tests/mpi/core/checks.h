/* What both programs share. */
#define _DEFAULT_SOURCE /* MAP_ANONYMOUS */
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "node.h"

#define CHECK(condition) \
    do { \
        if (!(condition)) { \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
            exit(1); \
        } \
    } while (0)

/* The memory of a node: some 90 MB, of which a test writes few.  Pages that nobody writes cost nothing. */
static void *node_memory(int ranks) {
    void *memory = mmap(NULL, (size_t)node_nbytes(ranks), PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(memory != MAP_FAILED);
    return memory;
}

/* Of ranks that are all threads of this process, which may read and write its memory; NULL where nothing
   is lent. */
static int lending;

static const pid_t *processes(void) {
    static pid_t own[16];
    for (int rank = 0; rank < 16; rank++) {
        own[rank] = getpid();
    }
    return lending ? own : NULL;
}

static void free_memory(void *memory, int ranks) { munmap(memory, (size_t)node_nbytes(ranks)); }
