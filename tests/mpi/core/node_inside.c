/* node.c as it is, with the functions that it calls replaced by the explorer's; and all that the
   scenarios need to know of its inside. */
#define _GNU_SOURCE
#include <string.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "explorer.h"

#define memcpy explorer_copy
#define syscall explorer_syscall
#define process_vm_readv explorer_read
#define process_vm_writev explorer_write
#define nanosleep explorer_nap
#undef _GNU_SOURCE /* it is defined there */
#include "node.c"
#undef memcpy

#include <stdio.h>

#include "node_inside.h"

void begin_counting_at(struct node *node, uint32_t count) {
    for (int other = 0; other < node->ranks; other++) {
        node->sent[other] = node->known_read[other] = node->received[other] = count;
        struct row *row = row_of(node, node->rank, other);
        atomic_store(&row->read, count);
        for (uint32_t last = count - LETTERS; last != count; last++) {
            atomic_store(&row->letters[last % LETTERS].full, last + 1);
        }
    }
    node->first = node->end = count;
}

void name_word(const void *word, int ranks, char *name, size_t size) {
    const struct {
        const char *name;
        int64_t nbytes, number;
    } parts[] = {
        {"claim", sizeof(struct claim), 1},
        {"bed", sizeof(struct bed), ranks},
        {"row", sizeof(struct row), ranks * ranks},
        {"ring", sizeof(struct ring), ranks},
    };
    int64_t at = (const char *)word - shared_memory, lane = at / lane_nbytes(ranks);
    at %= lane_nbytes(ranks);
    for (size_t n = 0; n < sizeof parts / sizeof *parts; n++) {
        int64_t one = parts[n].nbytes;
        if (at >= 0 && at < one * parts[n].number) {
            snprintf(name, size, "byte %d of %s %d, lane %d", (int)(at % one), parts[n].name,
                     (int)(at / one), (int)lane);
        }
        at -= one * parts[n].number;
    }
}
