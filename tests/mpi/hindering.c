/* Stands before an MPI library, and hinders collwise as older libraries do.

   HINDER says how, at any time: "none" (there is no tool interface), "hidden" or "renamed" (of the
   variables that choose algorithms), "fixed" (nothing can be written) or "crowded" (there is no
   room for a communicator).  As MPICH 4.0 does: "glued" (descriptions without newlines) and "wrong"
   (Allgather_init is, from its second start on).  As Open MPI 4.1 does: "rules" (whether there are
   dynamic rules cannot be written), "untyped" (a type has no size) and "transient" (Bcast_init is
   not there).  HINDERED is the only rank that is hindered; all are if it is unset. */

#define _GNU_SOURCE
#include <ctype.h>
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

static int hindered(const char *how) {
    const char *said = getenv("HINDER"), *only = getenv("HINDERED"), *rank = getenv("PMI_RANK");
    rank = rank ? rank : getenv("OMPI_COMM_WORLD_RANK");
    return said && !strcmp(said, how) && (!only || (rank && !strcmp(only, rank)));
}

int MPI_T_init_thread(int required, int *provided) {
    int (*next)(int, int *) = dlsym(RTLD_NEXT, __func__);
    return hindered("none") ? 1 : next(required, provided);
}

int MPI_T_cvar_get_info(int index, char *name, int *length, int *verbosity, void *type,
                        void *enumeration, char *text, int *text_length, int *bind, int *scope) {
    int (*next)(int, char *, int *, int *, void *, void *, char *, int *, int *, int *) =
        dlsym(RTLD_NEXT, __func__);
    int error = next(index, name, length, verbosity, type, enumeration, text, text_length, bind,
                     scope);
    char *word = error || !name ? NULL : strcasestr(name, "algorithm");
    if (word && hindered("renamed")) {
        memcpy(word, "method_of", 9);
    }
    if (!error && text && hindered("glued")) {
        char *to = text;
        for (const char *from = text; *from; from++) {
            if (*from == '\n') {
                for (; isspace(from[1]); from++) {
                }
            } else {
                *to++ = *from;
            }
        }
        *to = 0;
    }
    return word && hindered("hidden") ? 1 : error;
}

static void *rules;

int MPI_T_cvar_handle_alloc(int index, void *object, void **made, int *count) {
    int (*next)(int, void *, void **, int *) = dlsym(RTLD_NEXT, __func__);
    int (*find)(const char *, int *) = dlsym(RTLD_NEXT, "MPI_T_cvar_get_index"), known = -1;
    int error = next(index, object, made, count);
    if (!find("coll_tuned_use_dynamic_rules", &known) && known == index) {
        rules = *made;
    }
    return error;
}

int MPI_T_cvar_write(void *variable, const void *value) {
    int (*next)(void *, const void *) = dlsym(RTLD_NEXT, __func__);
    int refused = hindered("fixed") || (variable == rules && hindered("rules"));
    return refused ? 1 : next(variable, value);
}

/* All ranks must call the library, or the others would wait. */
#define CREATING(type)                                        \
    int MPI_Comm_split(type comm, int colour, int key, type *made) { \
        int (*next)(type, int, int, type *) = dlsym(RTLD_NEXT, __func__); \
        int error = next(comm, colour, key, made);            \
        return hindered("crowded") ? 16 : error;              \
    }
#ifdef INTEGERS
typedef int word;
#else
typedef void *word;
#endif
CREATING(word)

#define SIZING(name, count)                                                        \
    int name(word type, count *size) {                                             \
        int (*next)(word, count *) = dlsym(RTLD_NEXT, __func__);                   \
        int (*name_of)(word, char *, int *) = dlsym(RTLD_NEXT, "MPI_Type_get_name"), length; \
        char called[1024];                                                         \
        int odd = hindered("untyped") && !name_of(type, called, &length) && !strcmp(called, "MPI_COUNT"); \
        return odd ? 3 : next(type, size);                                         \
    }
SIZING(MPI_Type_size_x, long long)
#ifdef INTEGERS /* Open MPI has none */
SIZING(MPI_Type_size_c, long long)
#endif

enum { UNAVAILABLE = -1431655766 }; /* what mpi4py takes for a function that is not there */

#define BROADCASTING(name, count)                                                  \
    int name(void *data, count n, word type, int root, word comm, word info, word *request) { \
        int (*next)(void *, count, word, int, word, word, word *) = dlsym(RTLD_NEXT, __func__); \
        return hindered("transient") ? UNAVAILABLE : next(data, n, type, root, comm, info, request); \
    }
BROADCASTING(MPI_Bcast_init, int)
#ifdef INTEGERS /* Open MPI has none */
BROADCASTING(MPI_Bcast_init_c, long long)
#endif

static word gathering;
static unsigned char *gathered;
static int starts, freed;

#define GATHERING(name, count)                                                     \
    int name(const void *data, count n, word type, void *all, count m, word into, word comm, \
             word info, word *request) {                                           \
        int (*next)(const void *, count, word, void *, count, word, word, word, word *) = \
            dlsym(RTLD_NEXT, __func__);                                            \
        int error = next(data, n, type, all, m, into, comm, info, request);        \
        if (!gathered && !freed && hindered("wrong")) { /* the first is the library's default */ \
            gathering = *request, gathered = all;                                  \
        }                                                                          \
        return error;                                                              \
    }
GATHERING(MPI_Allgather_init, int)
#ifdef INTEGERS /* Open MPI has none */
GATHERING(MPI_Allgather_init_c, long long)
#endif

int MPI_Start(word *request) {
    int (*next)(word *) = dlsym(RTLD_NEXT, __func__);
    starts += *request == gathering;
    return next(request);
}

int MPI_Wait(word *request, void *status) {
    int (*next)(word *, void *) = dlsym(RTLD_NEXT, __func__);
    int ours = *request == gathering && gathered && starts > 1, error = next(request, status);
    if (ours) {
        gathered[0]++;
    }
    return error;
}

int MPI_Request_free(word *request) {
    int (*next)(word *) = dlsym(RTLD_NEXT, __func__);
    if (gathered && *request == gathering) {
        gathered = NULL, freed = 1;
    }
    return next(request);
}
