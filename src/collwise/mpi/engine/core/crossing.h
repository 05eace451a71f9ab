/* Messages of a program that stay inside the node: they go through shared memory (`node.h`).

   Publishing is a state, not a wait: while there is no room a rank reads whatever has come.  All reads
   are open from the start, as receives are.  Between two ranks messages keep their order. */
#ifndef COLLWISE_CROSSING_H
#define COLLWISE_CROSSING_H

#include "program.h"

/* Prepare a program that has such messages, once its tables are filled; 0 where memory is short. */
int crossings_prepare(struct program *program);
void crossings_free(struct program *program);

/* Before it is begun anew, and when it is given up: none is open. */
void crossings_reset(struct program *program);

static inline int stays_inside(const struct program *program, int message) {
    return program->home && program->messages[message].node_rank >= 0;
}

static inline int crosses(const struct program *program, int message) {
    return program->node && stays_inside(program, message);
}

/* Take the lane of the program's tag, and give it back once nothing is under way. */
static inline void crossings_take_lane(struct program *program) {
    program->node = program->home ? node_take(program->home, program->tag) : NULL;
}

static inline void crossings_give_lane(struct program *program) {
    if (program->node && program->node != program->home) {
        node_give(program->node);
        program->node = NULL;
    }
}

static inline int crossing_over(const struct program *program, int message) {
    return program->crossings[program->messages[message].published_with].over;
}

/* Whether a COMBINE was executed when its message came. */
static inline int crossing_combined(const struct program *program, const struct instruction *todo) {
    return todo->reads && program->crossings[todo->reads - 1].combined;
}

/* Open one; MPI's error, or 0. */
int crossing_begin(struct program *program, int message);

/* Move pieces as far as they have come or there is room.  0: an error, which is in the program.
   patiently: what a COMBINE will read soon where it was published may stay there. */
int crossings_move(struct program *program, int patiently);

/* The rest of that, where a rank waits: nobody else may wait for the room. */
int crossings_drain(struct program *program);

/* Nobody writes to the program's memory any more.   Returns how many of its messages others still read. */
int crossings_withdraw(struct program *program);

/* Let MPI get on: another rank may need that for a message of the user's. */
void crossings_serve_mpi(const struct program *program);

/* Let some time pass after so many looks in vain, and let MPI get on.   for_mpi: a message of MPI's is
   waited for, too. */
void crossings_pause(struct program *program, int looks, int for_mpi);

#endif
