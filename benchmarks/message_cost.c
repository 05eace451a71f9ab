/* What a short message costs in plain C, between two ranks, by how it is completed.

   Build and run where the library is: mpicc -O2 benchmarks/message_cost.c -o message_cost &&
   mpiexec -n 2 ./message_cost.   Interleaved rounds of CALLS messages, as in benchmarks/engine.py,
   all from rank 0 or to and fro, or of one message from a common start (a race); of each round the
   slower rank counts.  Prints medians in microseconds per message. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { CALLS = 20, ROUNDS = 2000 };

static double now_us(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

static int ascending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* How the messages of a round are sent and received. */
enum kind {
    NOTHING, BCAST, BLOCKING, PERSISTENT_WAIT, PERSISTENT_TEST, IMMEDIATE_WAIT, IMMEDIATE_TEST, KINDS
};
enum way { ONE_WAY, TO_AND_FRO, RACE, WAYS };
static const char *const ways[WAYS] = {"one way", "to and fro", "race"};
static const char *const names[KINDS] = {
    "nothing", "MPI_Bcast", "MPI_Send, MPI_Recv", "MPI_Start, MPI_Wait", "MPI_Start, MPI_Test",
    "MPI_Isend, MPI_Irecv, MPI_Wait", "MPI_Isend, MPI_Irecv, MPI_Test"};

static void complete(MPI_Request *request, int tests) {
    MPI_Status status;
    if (!tests) {
        MPI_Wait(request, &status);
    }
    for (int done = !tests; !done;) {
        MPI_Test(request, &done, &status);
    }
}

/* Leave at a moment that rank 0 names, on the clock of the host that both share. */
static void line_up(void) {
    double moment = now_us() + 20;
    MPI_Bcast(&moment, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    while (now_us() < moment) {
    }
}

int main(int argc, char **argv) {
    static double times[KINDS][ROUNDS];
    static const int sizes[] = {8, 512, 4096};
    static char buffer[4096];
    int rank, level;
    MPI_Comm world = MPI_COMM_WORLD, other;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
    MPI_Comm_rank(world, &rank);
    MPI_Comm_dup(world, &other);
    for (int turn = 0; turn < WAYS * 3; turn++) {
        enum way way = (enum way)(turn / 3);
        int n = sizes[turn % 3], peer = 1 - rank, calls = way == RACE ? 1 : CALLS;
        MPI_Request made[2], one;
        MPI_Recv_init(buffer, n, MPI_BYTE, peer, 5, other, &made[0]);
        MPI_Send_init(buffer, n, MPI_BYTE, peer, 5, other, &made[1]);
        for (int round = 0; round < ROUNDS; round++) {
            for (enum kind kind = 0; kind < KINDS; kind++) {
                MPI_Barrier(world);
                if (way == RACE) {
                    line_up();
                }
                double begin = now_us();
                for (int call = 0; call < calls; call++) {
                    int from = way == TO_AND_FRO ? call % 2 : 0, sends = rank == from;
                    if (kind == NOTHING) {
                        continue;
                    }
                    if (kind == BCAST) {
                        MPI_Bcast(buffer, n, MPI_BYTE, from, world);
                    } else if (kind == BLOCKING && sends) {
                        MPI_Send(buffer, n, MPI_BYTE, peer, 4, other);
                    } else if (kind == BLOCKING) {
                        MPI_Recv(buffer, n, MPI_BYTE, peer, 4, other, MPI_STATUS_IGNORE);
                    } else if (kind == PERSISTENT_WAIT || kind == PERSISTENT_TEST) {
                        MPI_Start(&made[sends]);
                        complete(&made[sends], kind == PERSISTENT_TEST);
                    } else {
                        if (sends) {
                            MPI_Isend(buffer, n, MPI_BYTE, peer, 6, other, &one);
                        } else {
                            MPI_Irecv(buffer, n, MPI_BYTE, peer, 6, other, &one);
                        }
                        complete(&one, kind == IMMEDIATE_TEST);
                    }
                }
                double end = now_us(), since = way == RACE ? 0 : begin, last[2];
                double mine[2] = {end - since, since - begin}; /* in a race from the first start */
                MPI_Allreduce(mine, last, 2, MPI_DOUBLE, MPI_MAX, world);
                times[kind][round] = (last[0] + last[1]) / calls;
            }
        }
        for (enum kind kind = 0; kind < KINDS && rank == 0; kind++) {
            qsort(times[kind], ROUNDS, sizeof(double), ascending);
            printf("%-10s %5d B  %-32s %.2f\n", ways[way], n, names[kind], times[kind][ROUNDS / 2]);
        }
        MPI_Request_free(&made[0]);
        MPI_Request_free(&made[1]);
    }
    MPI_Finalize();
    return 0;
}
