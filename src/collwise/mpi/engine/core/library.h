/* An MPI library as the core sees it: functions given at start, handles of 4 or 8 bytes.

   Nothing here is taken from mpi.h, so one binary serves every library.  A handle is carried as a
   word; a call passes it in the width that the library knows. */
#ifndef COLLWISE_LIBRARY_H
#define COLLWISE_LIBRARY_H

#include <limits.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef uint64_t handle;

/* Each function's parameters.  H: a handle.   N: a count, int or, in the _c form, 64 bits. */
#define START_ARGS(H, N) (void *)
#define WAIT_ARGS(H, N) (void *, void *)
#define TEST_ARGS(H, N) (void *, int *, void *)
#define CANCEL_ARGS(H, N) (void *)
#define GET_COUNT_ARGS(H, N) (const void *, H, N *)
#define IRECV_ARGS(H, N) (void *, N, H, int, int, H, void *)
#define IPROBE_ARGS(H, N) (int, int, H, int *, void *)
#define ISEND_ARGS(H, N) (const void *, N, H, int, int, H, void *)
#define SENDRECV_ARGS(H, N) (const void *, N, H, int, int, void *, N, H, int, int, H, void *)
#define PACK_SIZE_ARGS(H, N) (N, H, H, N *)
#define PACK_ARGS(H, N) (const void *, N, H, void *, N, N *, H)
#define UNPACK_ARGS(H, N) (const void *, N, N *, void *, N, H, H)
#define REDUCE_LOCAL_ARGS(H, N) (const void *, void *, N, H, H)
#define OF_BCAST(H, N) void *, N, H, int, H
#define OF_REDUCE(H, N) const void *, void *, N, H, H, int, H
#define OF_ALLREDUCE(H, N) const void *, void *, N, H, H, H
#define OF_ALLGATHER(H, N) const void *, N, H, void *, N, H, H
#define OF_ALLGATHERV(H, N) const void *, N, H, void *, const N *, const N *, H, H
#define BCAST_ARGS(H, N) (OF_BCAST(H, N))
#define REDUCE_ARGS(H, N) (OF_REDUCE(H, N))
#define ALLREDUCE_ARGS(H, N) (OF_ALLREDUCE(H, N))
#define ALLGATHER_ARGS(H, N) (OF_ALLGATHER(H, N))
#define ALLGATHERV_ARGS(H, N) (OF_ALLGATHERV(H, N))
#define IBCAST_ARGS(H, N) (OF_BCAST(H, N), void *)
#define IREDUCE_ARGS(H, N) (OF_REDUCE(H, N), void *)
#define IALLREDUCE_ARGS(H, N) (OF_ALLREDUCE(H, N), void *)
#define IALLGATHER_ARGS(H, N) (OF_ALLGATHER(H, N), void *)
#define IALLGATHERV_ARGS(H, N) (OF_ALLGATHERV(H, N), void *)
#define BCAST_INIT_ARGS(H, N) (OF_BCAST(H, N), H, void *)
#define REDUCE_INIT_ARGS(H, N) (OF_REDUCE(H, N), H, void *)
#define ALLREDUCE_INIT_ARGS(H, N) (OF_ALLREDUCE(H, N), H, void *)
#define ALLGATHER_INIT_ARGS(H, N) (OF_ALLGATHER(H, N), H, void *)
#define ALLGATHERV_INIT_ARGS(H, N) (OF_ALLGATHERV(H, N), H, void *)
#define ERROR_CLASS_ARGS(H, N) (int, int *)

/* Every function that is called: its name in MPI, and its parameters. */
#define MPI_FUNCTIONS(_) \
    _(Start, START) _(Wait, WAIT) _(Test, TEST) _(Cancel, CANCEL) _(Get_count, GET_COUNT) \
    _(Iprobe, IPROBE) _(Isend, ISEND) _(Irecv, IRECV) _(Sendrecv, SENDRECV) \
    _(Pack_size, PACK_SIZE) _(Pack, PACK) _(Unpack, UNPACK) \
    _(Reduce_local, REDUCE_LOCAL) \
    _(Bcast, BCAST) _(Reduce, REDUCE) _(Allreduce, ALLREDUCE) _(Reduce_scatter_block, ALLREDUCE) \
    _(Allgather, ALLGATHER) _(Allgatherv, ALLGATHERV) \
    _(Ibcast, IBCAST) _(Ireduce, IREDUCE) _(Iallreduce, IALLREDUCE) \
    _(Ireduce_scatter_block, IALLREDUCE) _(Iallgather, IALLGATHER) _(Iallgatherv, IALLGATHERV) \
    _(Error_class, ERROR_CLASS)

/* Functions that some libraries have, by their full names.  With the first three the library calls us
   whenever it makes progress, and started programs move on in any call of MPI. */
#define OPTIONAL_FUNCTIONS(_) \
    _(MPIX_Async_start) _(MPIX_Async_get_state) _(MPIX_Request_is_complete) \
    _(MPI_Grequest_start) _(MPI_Grequest_complete) \
    _(MPI_Status_set_elements) _(MPI_Status_set_cancelled)

/* Functions of MPI 4. */
#define LATER_FUNCTIONS(_) \
    _(Bcast_init) _(Reduce_init) _(Allreduce_init) _(Reduce_scatter_block_init) \
    _(Allgather_init) _(Allgatherv_init)

/* Functions that read and write the library's variables, by their full names. */
#define TOOL_FUNCTIONS(_) _(MPI_T_cvar_read) _(MPI_T_cvar_write)

#define ASYNC_START_ARGS(H, N) (int (*)(void *), void *, H)
#define IS_COMPLETE_ARGS(H, N) (H)
#define GREQUEST_START_ARGS(H, N) \
    (int (*)(void *, void *), int (*)(void *), int (*)(void *, int), void *, void *)
#define GREQUEST_COMPLETE_ARGS(H, N) (H)
#define SET_ELEMENTS_ARGS(H, N) (void *, H, int)
#define SET_CANCELLED_ARGS(H, N) (void *, int)

typedef void (*function)(void);

struct library {
    int width;       /* bytes of a handle: 4 or 8 */
    int status_size; /* bytes of a status */
    int too_long;    /* the class of the error that a message was too long for its buffer */
    int other;       /* MPI_ERR_OTHER: it was too short, or the system refused to let it be read */
    int no_memory;   /* the error that memory is short */
#define FIELD(name, args) function name, name##_c;
    MPI_FUNCTIONS(FIELD)
#undef FIELD
#define FIELD(name) function name;
    OPTIONAL_FUNCTIONS(FIELD)
    LATER_FUNCTIONS(FIELD)
    TOOL_FUNCTIONS(FIELD)
#undef FIELD
    int hooks;          /* all of the optional functions are there */
    int patience;       /* so often a message is looked for before MPI may block */
    handle null_stream; /* what MPIX_Async_start takes for "any" */
    handle no_info;     /* MPI_INFO_NULL */
    int nobody;         /* MPI_PROC_NULL */
    int count_at;       /* where a status has the lower word of its bytes; negative: unknown */
    handle byte;        /* the type of which a completed request has none */
    handle no_type;     /* MPI_DATATYPE_NULL */
    void *(*let_go)(void);  /* let other threads of the owner run while this one calls MPI or waits */
    void (*regain)(void *); /* the end of that; NULL: none were let go */
};

/* The handle that the library wrote somewhere, and one written for it. */
static inline handle handle_at(const struct library *library, const void *at) {
    uint32_t narrow;
    uint64_t wide;
    memcpy(&narrow, at, sizeof narrow);
    if (library->width == 4) {
        return narrow;
    }
    memcpy(&wide, at, sizeof wide);
    return wide;
}

static inline void set_handle(const struct library *library, void *at, handle value) {
    uint32_t narrow = (uint32_t)value;
    memcpy(at, library->width == 4 ? (const void *)&narrow : &value, (size_t)library->width);
}

#define CALL_AS(field, args, N, library, values) \
    ((library)->width == 4 ? ((int(*) args(uint32_t, N))(library)->field) values \
                           : ((int(*) args(uint64_t, N))(library)->field) values)

/* Call a function whose counts, if it has any, are known to be small. */
#define CALL(name, args, library, values) CALL_AS(name, args##_ARGS, int, library, values)

/* Call a function in the form that takes this count. */
#define CALL_COUNT(name, args, count, library, values) \
    ((count) > INT_MAX ? CALL_AS(name##_c, args##_ARGS, int64_t, library, values) \
                       : CALL(name, args, library, values))

#endif
