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

/* All ranks are threads of this process, which may read and write its memory. */
static int lending;

static struct node *opened(void *memory, int ranks, int rank) {
    struct node *node = node_open(memory, ranks, rank);
    pid_t processes[16];
    for (int n = 0; n < ranks; n++) {
        processes[n] = getpid();
    }
    if (node && lending) {
        node_lend_among(node, processes);
    }
    return node;
}

static void free_memory(void *memory, int ranks) { munmap(memory, (size_t)node_nbytes(ranks)); }
