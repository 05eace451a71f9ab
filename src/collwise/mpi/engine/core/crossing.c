#define _DEFAULT_SOURCE /* sched_yield with the rest */
#include "crossing.h"

#include "runner.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

enum {
    LOOKS = 400,       /* in vain, some ten microseconds, before a rank yields its core */
    FEW_LOOKS = 30,    /* where ranks share cores */
    YIELDS = 500,      /* before it sleeps: to be woken takes longer than to be next */
    LOOKS_FOR_MPI = 50, /* after so many MPI gets on */
    NAP_NS = 20000,    /* the first; each is twice as long as the one before */
    LONGEST_NAP_NS = 1000000,
    WINDOW = 32,       /* so many messages may wait for room while later ones are published */
};

/* Two rows of numbers by rank of the node, and the messages in the order in which they are begun. */
struct crossing_lists {
    int writers_number, sends_number, first_send;
    int *writers;  /* the ranks that something is received from */
    int *heads;    /* by rank: the message that the next piece belongs to; -1: none */
    int *firsts;   /* by rank: what `heads` is in the beginning */
    int *next;     /* by message received: the next one from the same rank; sent: its place in `sends` */
    int *sends;    /* the messages with which others are published */
    int *readers, *readers_from; /* of these, the ranks that read them: between two places */
    uint32_t *letters; /* by place in `readers`: the letter with which it was lent */
    int *full;     /* by rank: the last pass in which it had no room */
    int pass;
    int held;      /* something stayed where it had been published, since its reader comes soon */
    int broken;    /* MPI could not unpack what has come: nothing moves any more */
};

/* Who reads each of the sends: counted, and then written from the last message down. */
static void list_readers(struct program *program) {
    struct crossing_lists *lists = program->crossing_lists;
    for (int pass = 0; pass < 2; pass++) {
        for (int m = program->messages_number - 1; m >= 0; m--) {
            const struct message *one = &program->messages[m];
            if (one->sends && one->node_rank >= 0) {
                int *from = &lists->readers_from[lists->next[one->published_with]];
                if (pass) {
                    lists->readers[--*from] = one->node_rank;
                } else {
                    ++*from;
                }
            }
        }
        for (int nth = 1; !pass && nth <= lists->sends_number; nth++) {
            lists->readers_from[nth] += lists->readers_from[nth - 1];
        }
    }
}

/* Who reads few letters may do so late.  In the ring they would keep its room from longer messages to
   others, so beside such they go in letters.  Where there are none, all go on in letters when the ring is
   full.   longer: numbers by rank, all 0. */
static void spare_the_ring(struct program *program, int *longer) {
    int any = 0;
    for (int pass = 0; pass < 2; pass++) {
        for (int m = 0; m < program->messages_number; m++) {
            const struct message *one = &program->messages[m];
            if (!one->sends || one->node_rank < 0) {
                continue;
            }
            if (!pass && node_letters(one->nbytes) > LETTERS) {
                any = longer[one->node_rank] = 1;
            } else if (pass && any && !longer[one->node_rank]) {
                program->messages[one->published_with].in_letters = 1;
            }
        }
    }
}

/* Let an AWAIT's messages inside the node come last: for MPI's it is as if there were no others. */
static void await_apart(struct program *program, struct instruction *todo) {
    int *awaited = program->order + todo->first, by_mpi = 0;
    for (int n = 0; n < todo->number; n++) {
        int message = awaited[n];
        if (program->messages[message].node_rank < 0) {
            awaited[n] = awaited[by_mpi];
            awaited[by_mpi++] = message;
        }
    }
    todo->inside = todo->number - by_mpi;
    todo->number = by_mpi;
}

int crossings_prepare(struct program *program) {
    int messages = program->messages_number, ranks = 0;
    int64_t letters = LETTERS;
    for (int m = 0; m < messages; m++) {
        struct message *one = &program->messages[m];
        const struct instruction *reader = &program->instructions[one->combine];
        ranks = one->node_rank >= ranks ? one->node_rank + 1 : ranks;
        int with = one->published_with;
        if (with < 0 || with >= messages || one->nbytes < 0 ||
            (with != m && (!one->sends || program->messages[with].published_with != with ||
                           (program->messages[with].node_rank < 0) != (one->node_rank < 0)))) {
            return 0;
        }
        int64_t element = one->combine ? one->nbytes / reader->count : 0;
        if (element && !reader->reads && /* another may be the other operand */
            !(one->nbytes % reader->count) && !(PIECE % element) && !(SHORT % element)) {
            program->instructions[one->combine].reads = m + 1;
        } else {
            one->combine = 0;
        }
    }
    struct crossing_lists *lists = calloc(1, sizeof *lists);
    int *numbers = calloc(5 * ((size_t)messages + (size_t)ranks + 1), sizeof *numbers);
    program->crossings = calloc((size_t)messages + 1, sizeof *program->crossings);
    program->crossing_lists = lists;
    if (!lists || !numbers || !program->crossings) {
        free(numbers);
        return 0;
    }
    lists->next = numbers;
    lists->sends = lists->next + messages;
    lists->readers = lists->sends + messages;
    lists->readers_from = lists->readers + messages;
    lists->writers = lists->readers_from + messages + 1;
    lists->heads = lists->writers + ranks;
    lists->firsts = lists->heads + ranks;
    lists->full = lists->firsts + ranks;
    lists->letters = (uint32_t *)(lists->full + 2 * ranks); /* `spare_the_ring` uses as many again */
    int *lasts = lists->heads; /* until it is reset */
    for (int rank = 0; rank < ranks; rank++) {
        lists->firsts[rank] = lasts[rank] = -1;
    }
    for (int at = 0; at < program->instructions_number; at++) {
        struct instruction *todo = &program->instructions[at];
        if (todo->kind == AWAIT) {
            await_apart(program, todo);
        }
        for (int n = 0; todo->kind == START && n < todo->number; n++) {
            int m = program->order[todo->first + n], rank = program->messages[m].node_rank;
            if (rank < 0) {
                continue;
            }
            if (program->messages[m].sends) {
                if (program->messages[m].published_with == m) {
                    lists->next[m] = lists->sends_number;
                    lists->sends[lists->sends_number++] = m;
                }
                continue;
            }
            letters -= node_letters(program->messages[m].nbytes);
            if (lasts[rank] < 0) {
                lists->writers[lists->writers_number++] = rank;
                lists->firsts[rank] = m;
            } else {
                lists->next[lasts[rank]] = m;
            }
            lists->next[m] = -1;
            lasts[rank] = m;
        }
    }
    list_readers(program);
    spare_the_ring(program, lists->full + ranks);
    program->few_letters = letters >= 0;
    crossings_reset(program);
    return 1;
}

void crossings_reset(struct program *program) {
    struct crossing_lists *lists = program->crossing_lists;
    for (int m = 0; m < program->messages_number; m++) {
        struct crossing *crossing = &program->crossings[m];
        if (!crossing->lent || crossing->over || !program->messages[m].sends) {
            free(crossing->packed); /* otherwise others still read it */
        }
        *crossing = (struct crossing){0};
    }
    for (int n = 0; n < lists->writers_number; n++) {
        lists->heads[lists->writers[n]] = lists->firsts[lists->writers[n]];
    }
    lists->first_send = lists->broken = lists->held = 0;
    program->open = program->unsent = 0;
}

void crossings_free(struct program *program) {
    if (program->crossings && program->crossing_lists) {
        crossings_reset(program);
        free(program->crossing_lists->next);
    }
    free(program->crossing_lists);
    free(program->crossings);
}

/* --- elements with gaps ------------------------------------------------------------------------ */

#define PACKING(N, suffix) \
    N end = 0, room = (N)one->nbytes; \
    return one->sends ? CALL_AS(Pack##suffix, PACK_ARGS, N, program->library, \
                                (data, (N)one->count, one->type, between, room, &end, program->comm)) \
                      : CALL_AS(Unpack##suffix, UNPACK_ARGS, N, program->library, \
                                (between, room, &end, data, (N)one->count, one->type, program->comm))

/* Pack a message that is sent, or unpack one that was received. */
static int packed(const struct program *program, const struct message *one, void *between) {
    void *data = program_place(program, one->place);
    if (program->library->Pack_c && program->library->Unpack_c) {
        PACKING(int64_t, _c);
    }
    PACKING(int, );
}

int crossing_begin(struct program *program, int number) {
    const struct message *one = &program->messages[number];
    struct crossing *crossing = &program->crossings[number];
    if (one->published_with != number) {
        return 0; /* it went, or goes, with that one */
    }
    if (one->has_gaps) {
        crossing->packed = malloc((size_t)one->nbytes + 1);
        int error = !crossing->packed ? program->library->no_memory
                    : one->sends      ? packed(program, one, crossing->packed)
                                      : 0;
        if (error) {
            return error;
        }
    }
    crossing->begun = 1;
    program->open++;
    program->unsent += one->sends;
    return one->sends && !crossings_move(program, 1) ? program->error : 0;
}

/* --- moving ------------------------------------------------------------------------------------ */

static void over(struct program *program, struct crossing *crossing) {
    free(crossing->packed);
    crossing->packed = NULL;
    crossing->over = 1;
    program->open--;
}

/* Whether the walk waits for this message only, and then combines it. */
static int combines_next(const struct program *program, int number) {
    const struct instruction *todo = &program->instructions[program->at];
    if (program->at + 1 != program->messages[number].combine || todo->kind != AWAIT || todo->number) {
        return 0;
    }
    for (int n = todo->first; n < todo->first + todo->inside; n++) {
        if (program->order[n] != number && !crossing_over(program, program->order[n])) {
            return 0;
        }
    }
    return 1;
}

/* Combine a piece with as much of the other operand. */
static int combined(struct program *program, int number, const struct piece *piece, int64_t nbytes) {
    const struct message *one = &program->messages[number];
    const struct instruction *todo = &program->instructions[one->combine];
    struct crossing *crossing = &program->crossings[number];
    char *left = program_place(program, todo->left), *right = program_place(program, todo->right);
    char *into = program_place(program, todo->into);
    int is_left = todo->left.slot == one->place.slot && todo->left.offset == one->place.offset;
    crossing->combined = 1;
    return program_combine(program, todo, is_left ? piece->data : left + crossing->moved,
                           is_left ? right + crossing->moved : (char *)(uintptr_t)piece->data,
                           into + crossing->moved, nbytes / (one->nbytes / todo->count));
}

/* Copy or combine a part of a message that was lent. */
static enum fetched borrowed(struct program *program, int writer, const struct piece *piece, int here,
                             char *into) {
    _Alignas(64) char part[32 << 10];
    int number = program->crossing_lists->heads[writer];
    struct crossing *crossing = &program->crossings[number];
    int64_t wanted = program->messages[number].nbytes;
    int64_t rest = (piece->nbytes < wanted ? piece->nbytes : wanted) - crossing->moved;
    struct piece copied = {part, rest < (int64_t)sizeof part ? rest : (int64_t)sizeof part, 0, 0};
    int alone = here || piece->nbytes != wanted; /* not together with the writer */
    if (alone && !crossing->lent &&
        node_read(program->node, writer, piece->data + crossing->moved, part, copied.nbytes)) {
        int error = here ? combined(program, number, &copied, copied.nbytes) : 0;
        program->error = error ? error : program->error;
        if (!here) {
            memcpy(into + crossing->moved, part, (size_t)copied.nbytes);
        }
        crossing->moved += copied.nbytes;
        return error ? FETCH_REFUSED : copied.nbytes < rest ? FETCHED_PART : FETCHED_ALL;
    }
    if (crossing->moved || piece->nbytes != wanted) {
        node_lose(program->node, writer);
        return FETCH_REFUSED;
    }
    crossing->lent = 1;
    return node_fetch(program->node, writer, into);
}

/* The piece that is next from a rank; 0 if none has come, -1 for an error. */
static int received(struct program *program, int writer, int patiently) {
    struct crossing_lists *lists = program->crossing_lists;
    int number = lists->heads[writer], error = 0;
    struct piece piece;
    if (number < 0 || !program->crossings[number].begun ||
        !node_look(program->node, writer, &piece)) {
        return 0;
    }
    const struct message *one = &program->messages[number];
    struct crossing *crossing = &program->crossings[number];
    int begun = crossing->moved || crossing->lent;
    int here = one->combine && (begun ? crossing->combined : combines_next(program, number));
    if (one->combine && !here && !begun && patiently) {
        lists->held = 1;
        return 0;
    }
    char *into = one->has_gaps ? crossing->packed : program_place(program, one->place);
    int64_t fits = one->nbytes - (piece.lent ? 0 : crossing->moved);
    if (piece.nbytes > fits) { /* as MPI has it: the rest is lost, and the error is told in the end */
        program->error = program->error ? program->error : program->library->too_long;
    } else {
        fits = piece.nbytes;
    }
    if (piece.lent) {
        enum fetched fetched = borrowed(program, writer, &piece, here, into);
        if (fetched == FETCH_REFUSED) {
            node_acknowledge(program->node, writer); /* the writer is to hear of it */
            crossing->lent = 0;
            program->error = program->error ? program->error : program->library->other;
        }
        if (fetched != FETCHED_ALL) {
            return (int)fetched;
        }
        crossing->moved = 0;
    } else if (here) {
        error = combined(program, number, &piece, fits);
    } else {
        memcpy(into + crossing->moved, piece.data, (size_t)fits);
    }
    crossing->moved += fits;
    node_acknowledge(program->node, writer);
    if (piece.last) {
        if (crossing->moved < one->nbytes) {
            program->error = program->error ? program->error : program->library->other;
        } else if (one->has_gaps) {
            error = packed(program, one, crossing->packed);
        }
        over(program, crossing);
        lists->heads[writer] = lists->next[number];
    }
    program->error = error ? error : program->error;
    return error ? -1 : 1;
}

/* Publish a message as far as there is room.   nth: among the sends. */
static void publish(struct program *program, int nth) {
    struct crossing_lists *lists = program->crossing_lists;
    const struct message *one = &program->messages[lists->sends[nth]];
    struct crossing *crossing = &program->crossings[lists->sends[nth]];
    const int *readers = lists->readers + lists->readers_from[nth];
    int number = lists->readers_from[nth + 1] - lists->readers_from[nth];
    const char *data = one->has_gaps ? crossing->packed : program_place(program, one->place);
    int in_letters = one->in_letters && program->node != program->home;
    for (int n = 0; n < number; n++) {
        if (lists->full[readers[n]] == lists->pass) {
            goto full; /* an earlier message to that rank waits */
        }
    }
    /* A rank that only sends may run ahead as far as its ring goes; others wait here anyway. */
    if (one->nbytes >= (lists->writers_number ? LEND : RING) && !crossing->moved &&
        node_lend(program->node, readers, number, data, one->nbytes,
                  lists->letters + lists->readers_from[nth])) {
        crossing->lent = 1;
        program->moves++;
        return;
    }
    while (!crossing->over) {
        int64_t taken = node_publish(program->node, readers, number, data + crossing->moved,
                                     one->nbytes - crossing->moved, in_letters);
        if (taken < 0) {
            goto full;
        }
        program->moves++;
        crossing->moved += taken;
        if (crossing->moved == one->nbytes) {
            program->unsent--;
            over(program, crossing);
        }
    }
    return;
full:
    for (int n = 0; n < number; n++) {
        lists->full[readers[n]] = lists->pass;
    }
}

/* See whether a message that was lent was read, or help. */
static void await_return(struct program *program, int nth) {
    struct crossing_lists *lists = program->crossing_lists;
    int from = lists->readers_from[nth];
    enum fetched fetched = node_returned(program->node, lists->readers + from,
                                         lists->readers_from[nth + 1] - from, lists->letters + from);
    program->moves += fetched != FETCH_WAITS;
    if (fetched == FETCH_REFUSED) {
        program->error = program->error ? program->error : program->library->other;
        lists->broken = 1;
    }
    if (fetched == FETCHED_ALL || fetched == FETCH_REFUSED) {
        program->unsent--;
        over(program, &program->crossings[lists->sends[nth]]);
    }
}

int crossings_move(struct program *program, int patiently) {
    struct crossing_lists *lists = program->crossing_lists;
    lists->held &= patiently;
    for (int n = 0; n < lists->writers_number && !lists->broken; n++) {
        int more;
        while ((more = received(program, lists->writers[n], patiently)) > 0) {
            program->moves++;
        }
        lists->broken = more < 0;
    }
    if (lists->broken) {
        return 0;
    }
    lists->pass = lists->pass == INT_MAX ? 1 : lists->pass + 1;
    for (int nth = lists->first_send, waiting = 0; nth < lists->sends_number && waiting < WINDOW;
         nth++) {
        const struct crossing *crossing = &program->crossings[lists->sends[nth]];
        if (!crossing->begun) {
            break;
        }
        if (crossing->lent && !crossing->over) {
            await_return(program, nth);
        } else if (!crossing->over) {
            publish(program, nth);
        }
        waiting += !crossing->over;
        lists->first_send += !waiting;
    }
    return !lists->broken;
}

int crossings_withdraw(struct program *program) {
    struct crossing_lists *lists = program->crossing_lists;
    int read = 0;
    for (int n = 0; program->node && n < lists->writers_number; n++) {
        int number = lists->heads[lists->writers[n]];
        if (number >= 0 && program->crossings[number].lent) {
            node_withdraw(program->node, lists->writers[n]);
            program->crossings[number].lent = 0; /* once: it waits for what is being written */
        }
    }
    for (int nth = 0; nth < lists->sends_number; nth++) {
        const struct crossing *crossing = &program->crossings[lists->sends[nth]];
        read += crossing->lent && !crossing->over;
    }
    return read;
}

int crossings_drain(struct program *program) {
    return !program->crossing_lists->held || crossings_move(program, 0);
}

void crossings_serve_mpi(const struct program *program) {
    int found; /* nothing: no message goes from this rank to itself now */
    CALL(Iprobe, IPROBE, program->library,
         (program->rank, program->tag, program->comm, &found, program->status));
}

void crossings_pause(struct program *program, int looks, int for_mpi) {
    int briefly = program->library->patience ? LOOKS : FEW_LOOKS;
    if (looks >= briefly + YIELDS || looks % LOOKS_FOR_MPI == LOOKS_FOR_MPI - 1) {
        crossings_serve_mpi(program);
    }
    if (looks < briefly) {
        return;
    }
    looks -= briefly;
    if (for_mpi || looks < YIELDS) {
        sched_yield();
        return;
    }
    int doublings = looks - YIELDS < 6 ? looks - YIELDS : 6;
    int64_t nap_ns = (int64_t)NAP_NS << doublings;
    uint64_t before = program->moves;
    uint32_t bell = node_drowse(program->node);
    if (crossings_move(program, 0) && program->moves == before) {
        node_sleep(program->node, bell, nap_ns < LONGEST_NAP_NS ? nap_ns : LONGEST_NAP_NS);
    }
    node_rouse(program->node);
}
