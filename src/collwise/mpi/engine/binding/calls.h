/* What the files of `Calls` share: the table of what serves which call, and a call that was read. */
#ifndef COLLWISE_CALLS_H
#define COLLWISE_CALLS_H

#include "binding.h"

enum method { BCAST, REDUCE, ALLREDUCE, REDUCE_SCATTER_BLOCK, ALLGATHER, ALLGATHERV, METHODS };

enum form { BLOCKING, NONBLOCKING, PERSISTENT };

#define MOST 4096   /* keys, a power of two; then the table forgets the oldest for each new one */
#define FEW_RANKS 64
#define HEAD 8      /* numbers of a key without counts */
#define MOST_SLOTS 4
#define MOST_SETTINGS 6

/* Which buffer of a call a slot lies in, and its displacement there, in bytes. */
struct slot_location {
    int slot, received;
    int64_t displacement;
};

/* A variable of the library, by its handle, and the value that it has during a call. */
struct setting {
    void *variable;
    int value;
};

/* Which of the library's own algorithms serves; neither: the one that it chooses. */
struct switched {
    PyObject *comm; /* on this communicator, or NULL */
    int settings_number;
    struct setting settings[MOST_SETTINGS];
};

/* Numbers in memory that Python has, too: those of a tally (comm/recording.py), which the starts and
   ends of the last calls follow; and the tags of a private communicator. */
enum { TIMES, UNTIL, NANOSECONDS, LAST, NUMBERS };
enum { NEXT_TAG, LAST_TAG, TAGS };

struct entry {
    PyObject *key; /* bytes */
    uint64_t hash;
    unsigned next; /* 1 + the number of the next one in its chain; 0: none */
    Program *program; /* NULL: the library's own serves, or plans that are started */
    struct switched switched; /* how the library's own serves */
    PyObject *idle;   /* these: a list */
    PyObject *tally, *tags; /* bytearrays where calls are counted, and where their tags are; or NULL */
    int64_t until;    /* how many calls it may have counted when this entry serves */
    int locations_number;
    struct slot_location locations[MOST_SLOTS];
};

typedef struct {
    PyObject_HEAD
    unsigned planned; /* a bit for each method that programs may serve */
    enum form form;
    PyObject *failed; /* called with the error of an interrupted program */
    PyObject *comm, *sum, *slow; /* the communicator, the operator where none is given, and who serves
                                    what C cannot */
    handle handle; /* the communicator's; mpi4py's object has another once it was freed */
    int rank, ranks;
    struct entry *entries; /* as they came, round and round */
    unsigned *chains;      /* by hash: 1 + the number of an entry; 0: none */
    unsigned size, used;   /* room for `size` entries, and as many chains */
    uint64_t remembered;   /* keys, since the table was empty */
} Calls;

/* A call whose buffers were read. */
struct call {
    enum method method;
    enum form form;
    uint64_t request; /* where the library writes its handle */
    handle comm, op;
    struct switched switched; /* its communicator is not looked at */
    int root, rank, ranks;
    int in_place, receives;
    struct reading sent, received;
    int *vectors; /* ALLGATHERV: counts, then displacements */
    int some_vectors[2 * FEW_RANKS];
};

/* call_table.c */
uint64_t table_hash(const int64_t *key, Py_ssize_t numbers);
struct entry *table_find(const Calls *self, const void *key, Py_ssize_t nbytes, uint64_t hash);
void table_forget(Calls *self);
void entry_hold(struct entry *entry);
void entry_release(struct entry *entry);
int64_t *numbers_of(PyObject *memory);
int64_t tally_now(void);
void tally_count(PyObject *tally, int64_t begin);
PyObject *calls_remember(Calls *self, PyObject *args);
PyObject *calls_forget(Calls *self, PyObject *unused);

/* call_serving.c */
void switch_guard(void);
int switch_hold(void);
void switch_release(void);
extern PyObject *request_classes[3]; /* by form: mpi4py's; and where in their objects lies what they */
extern Py_ssize_t request_held;      /* keep alive, or -1 */
void call_release(struct call *call);
PyObject *call_serve(Calls *self, struct call *call);

#endif
