/* A rank's program: instructions over a table of buffers, plain data.  It knows neither Python nor
   mpi.h, and is walked by `runner.h`. */
#ifndef COLLWISE_PROGRAM_H
#define COLLWISE_PROGRAM_H

#include <pthread.h>
#include <stdatomic.h>

#include "kernels.h"
#include "library.h"
#include "node.h"

/* A place in a buffer: the buffer's number in the table, and bytes from its address. */
struct place {
    int slot;
    int64_t offset;
};

/* A message.  Of MPI's in a persistent program the request exists, and nothing else is looked at. */
struct message {
    int sends;
    int peer;
    struct place place;
    int64_t count;
    handle type;
    int node_rank;      /* the peer's in the node, through whose memory the message goes; -1: MPI's */
    int published_with; /* the first message that sends the same bytes, or this one */
    int has_gaps;       /* its elements are not plain bytes in memory */
    int64_t nbytes;     /* of its elements */
    int over;           /* the turn in which MPI completed it last */
    int in_letters;     /* of a request: it is not to lie in the ring */
    int combine;        /* the one instruction that reads it, once, if that may read it where it was
                           published; 0: none, so it is copied to its place */
};

/* How far a message inside the node is (`crossing.h`).   packed: its bytes, where elements have gaps. */
struct crossing {
    int64_t moved;
    char *packed;
    int begun, over;
    int combined; /* its bytes so far were read where they had been published */
};

enum kind {
    START,      /* start these messages, in this order */
    AWAIT,      /* wait until these messages are complete; they were started before */
    COMBINE,    /* left and right, into a third place or one of the two */
    COPY,       /* bytes from left to into */
    COPY_TYPED, /* elements of one type from left, to elements of another in into */
};

struct instruction {
    enum kind kind;
    int first, number; /* START, AWAIT: which entries of `order` are the messages */
    int inside;        /* AWAIT: so many entries after these are messages inside the node */
    struct place left, right, into;
    int64_t count;     /* elements, or bytes of a COPY */
    handle type;
    kernel loop;       /* COMBINE: NULL for MPI_Reduce_local, whose result is in the right place */
    int64_t into_count;
    handle into_type;
    int reads;         /* COMBINE: 1 + the message that names it; 0: none */
};

/* Who may touch a program; `progress.h` has the rules. */
enum state { IDLE, OWNED, RUNNING, STEPPED, RESTING, LIBRARYS, BROKEN, LEFT };

struct program {
    const struct library *library;
    handle comm, op;
    int users_op;     /* the operator is the user's: it may do anything, so no hook calls it */
    const void *users_type; /* where the handle of the type is that it gets instead of a duplicate, as
                               long as there is one; or NULL */
    int rank, tag;
    int persistent;   /* the requests of messages that leave the node were made beforehand */
    int turn;         /* how often it was begun */
    int messages_number, order_number, instructions_number, slots_number;
    int forwarding;   /* so many instructions other ranks wait for */
    int quick;        /* none of it calls MPI, and all is short */
    struct message *messages;
    int *order;
    struct instruction *instructions;
    char **slots;     /* addresses of the buffers */
    char *requests;   /* a handle for every message, in the library's width */
    char *status;     /* room for one */
    struct node *home; /* the node's first lane, for blocking calls; NULL: MPI carries all messages */
    struct node *node; /* the lane of this call; NULL: MPI carries it */
    struct crossing *crossings; /* by message */
    struct crossing_lists *crossing_lists;
    int open;         /* crossings that were begun and are not over */
    int unsent;       /* of these, sends */
    int few_letters;  /* what it receives inside the node fits into letters: no sender waits for room */
    uint64_t moves;   /* pieces, ever */
    int at;           /* the next instruction */
    int settled;      /* up to here messages were completed; polling only looks at them */
    int started;      /* messages started, in the order of instructions; 0 once all are over */
    int error;        /* what the first call to MPI returned that failed */
    _Atomic int state;     /* an `enum state` */
    pthread_t stepper;     /* of one that is STEPPED: the thread */
    struct program *next;  /* of one that is RUNNING or STEPPED */
};

/* Make a program without instructions, IDLE; NULL where memory is short.   Its tables are zero. */
struct program *program_new(const struct library *library, int messages, int order,
                            int instructions, int slots);
void program_free(struct program *program);

/* Whether all numbers in it are within their tables. */
int program_check(const struct program *program);

/* Whether other ranks wait for what this program still has to do: to forward, to publish, or to make
   room by reading.  Few letters have room however late they are read, since those of an earlier execution
   were read before this one began; and what others read does not wait for them (`spare_the_ring`).  So
   nobody waits for who only reads few letters: it may do so in its `Wait`, and MPI asks no more. */
static inline int program_needed(const struct program *program) {
    int open = program->few_letters ? program->unsent : program->open;
    return program->at < program->forwarding || open;
}

/* Whether MPI carries none of its messages in this execution. */
static inline int program_in_memory(const struct program *program) {
    int inside = program->node != NULL;
    for (int n = 0; n < program->messages_number; n++) {
        inside &= program->messages[n].node_rank >= 0;
    }
    return inside;
}

static inline void *program_request(const struct program *program, int message) {
    return program->requests + (int64_t)message * program->library->width;
}

static inline void *program_place(const struct program *program, struct place place) {
    /* As numbers: the table may hold where position 0 would be, outside of any buffer. */
    return (void *)((uintptr_t)program->slots[place.slot] + (uintptr_t)place.offset);
}

#endif
