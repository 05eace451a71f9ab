/* Stands before an MPI library, and hinders collwise in switching the library's algorithms.

   HINDER says how, at any time: "none" (there is no tool interface), "hidden" or "renamed" (of the
   variables that choose algorithms), "fixed" (nothing can be written) or "crowded" (there is no
   room for a communicator).  HINDERED is the only rank that is hindered; all are if it is unset. */

#define _GNU_SOURCE
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
    return word && hindered("hidden") ? 1 : error;
}

int MPI_T_cvar_write(void *variable, const void *value) {
    int (*next)(void *, const void *) = dlsym(RTLD_NEXT, __func__);
    return hindered("fixed") ? 1 : next(variable, value);
}

/* All ranks must call the library, or the others would wait. */
#define CREATING(type)                                        \
    int MPI_Comm_create(type comm, type group, type *made) {  \
        int (*next)(type, type, type *) = dlsym(RTLD_NEXT, __func__); \
        int error = next(comm, group, made);                  \
        return hindered("crowded") ? 16 : error;              \
    }
#ifdef INTEGERS
CREATING(int)
#else
CREATING(void *)
#endif
