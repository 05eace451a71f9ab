/* Messages between the ranks of a node, in memory that they share: no MPI in here.

   For every two ranks there is a row of letters from one to the other, each of two cache lines.  A short
   piece of a message lies in its letter; a longer one lies in the writer's ring, once for all who
   read it.  A slow reader keeps the ring's room from all others, but not their rows: where the ring is
   full, a message for which a row has enough letters goes there, in short pieces.  Nothing is matched
   and nothing searched: both ends count the letters of their row, and pieces come in the order in which
   they were published.

       full         in a letter    writer: the letter is the so many-th of its row
       read         of a row       reader: so many letters were read
       to           of a loan      reader: others may copy there, too
       taken, done  of a loan      whoever copies: parts that were begun, and that are over
       lost         of a loan      whoever copies: the system refused a part to both
       left         of a piece     readers: so many of them have not read it yet
       asleep, bell of a rank      the rank: it is about to sleep; others: that is over

   MEMORY ORDERS.  A letter and the piece that it tells of are written before `full` and read after it:
   release and acquire.  They are read before `read` and `left` and overwritten after these: release
   and acquire again; `left` is only ever decreased, so what is read of it synchronises with all who
   decreased it.  SLEEP.  A rank stores `asleep` and then looks at what it waits for; others store that
   and then look at `asleep`.  All four are sequentially consistent, so one of the two sees the other:
   the rank looks in vain only if the other rings.  The bell is read before `asleep` is stored, and the
   kernel lets nobody sleep whose bell has changed since.

   LANES.  All of that stands in the memory several times.  The first lane is for blocking calls, which
   all ranks make in the same order.  A request has a number, the same on all ranks and rising, which
   says what lane it may have.  The rank that comes first decides: it has the lane if all ranks gave it
   back that had it before.  A word says whose turn was decided last, whose the lane is, and how many
   ranks have yet to give it back; so a rank that comes late still finds that it has it.  The word is
   only changed by sequentially consistent operations, so owners of a lane follow each other. */
#ifndef COLLWISE_NODE_H
#define COLLWISE_NODE_H

#include <stdint.h>
#include <sys/types.h>

enum {
    LETTERS = 32,         /* of a row */
    SHORT = 112,          /* bytes that fit into a letter */
    PIECES = 32,          /* most that a writer has in its ring */
    PIECE = 64 << 10,     /* most bytes of one */
    RING = 16 * PIECE,    /* a reader of lines that still lie in the writer's cache waits for them */
    LEND = 96 << 10,      /* fewest bytes of a message that is lent */
    PART = 64 << 10,      /* fewest bytes of one part of it */
    LANES = 16,           /* for requests, */
    LANES_NBYTES = 128 << 20, /* but no more than this holds; pages that nobody used are not there */
};

/* One rank's end of a lane.  One thread at a time uses it. */
struct node;

/* Bytes of memory for some ranks, which is zeros in the beginning. */
int64_t node_nbytes(int ranks);

/* The first lane; NULL where memory is short. */
struct node *node_open(void *memory, int ranks, int rank);
void node_close(struct node *first);

/* From now on messages may be lent.   processes: of the ranks, all of which may read and write each
   other's memory (`node_reads`). */
void node_lend_among(struct node *first, const pid_t *processes);

/* The lane of the request with this number; NULL, on all ranks, if it has none.  Asked again, the answer
   is the same.  A rank gives a lane back once, when nothing is under way on it. */
struct node *node_take(struct node *first, int number);
void node_give(struct node *lane);

/* Whether a word of another process can be read, and so all of its memory be read and written. */
int node_reads(pid_t process, uint64_t address, uint64_t word);

/* How many letters a message takes that does not lie in the ring. */
static inline int64_t node_letters(int64_t nbytes) { return 1 + (nbytes - 1) / SHORT; }

/* Publish a piece from the beginning of a message: no more than so many bytes, which are its rest.
   in_letters: not in the ring, although there may be room; all letters of a row are enough for it.
   Returns how many were published; -1 if there is no room. */
int64_t node_publish(struct node *node, const int *readers, int number, const char *data,
                     int64_t nbytes, int in_letters);

/* Lend a whole message to its readers.   letters: the number of each reader's letter is written there.
   Returns 0 if there is no room. */
int node_lend(struct node *node, const int *readers, int number, const char *data, int64_t nbytes,
              uint32_t *letters);

/* Whether all have read it (FETCHED_ALL), or one could not (FETCH_REFUSED); otherwise help: copy a part to
   somebody who has not, if any is left (FETCHED_PART). */
enum fetched { FETCH_REFUSED = -1, FETCH_WAITS, FETCHED_PART, FETCHED_ALL };
enum fetched node_returned(struct node *node, const int *readers, int number, const uint32_t *letters);

/* The next piece from a writer; 0 if there is none.   last: it ends its message.   lent: `data` is in
   the writer's memory. */
struct piece {
    const char *data;
    int64_t nbytes;
    int last, lent;
};
int node_look(struct node *node, int writer, struct piece *piece);

/* Copy a part of a lent piece, all of which goes to `into`.   FETCH_WAITS: the writer is at the last ones.
   FETCH_REFUSED: the system refused a part to both; acknowledge it, which tells the writer. */
enum fetched node_fetch(struct node *node, int writer, char *into);

/* The lent piece cannot be read as it has to be. */
void node_lose(struct node *node, int writer);

/* Nobody copies any more parts, and nobody is at one. */
void node_withdraw(struct node *node, int writer);

/* Read bytes of a lent piece; 0 if the system refuses. */
int node_read(struct node *node, int writer, const char *data, void *into, int64_t nbytes);

/* That piece was read. */
void node_acknowledge(struct node *node, int writer);

/* To sleep until something is published or read: be drowsy, look once more, sleep if that was in vain,
   and rouse. */
uint32_t node_drowse(struct node *node);
void node_sleep(struct node *node, uint32_t bell, int64_t limit_ns);
void node_rouse(struct node *node);

#endif
