/* What a short message costs in plain C, between two ranks: what no engine can be faster than.

   Build and run where the library is: mpicc -O2 benchmarks/message_cost.c -o message_cost &&
   mpiexec -n 2 ./message_cost.   Interleaved rounds of CALLS calls, as in benchmarks/engine.py; of
   each round the slower rank counts.  Prints medians in microseconds. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { CALLS = 20, ROUNDS = 2000, KINDS = 4 };

static double now_us(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

static int ascending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int main(int argc, char **argv) {
    static const char *const names[KINDS] = {
        "MPI_Bcast", "MPI_Send, MPI_Recv", "MPI_Start, MPI_Wait", "MPI_Isend, MPI_Irecv, MPI_Wait"};
    static const int sizes[] = {8, 512, 4096};
    static double times[KINDS][ROUNDS];
    char buffer[4096] = {0};
    int rank, level;
    MPI_Comm world = MPI_COMM_WORLD, other;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
    MPI_Comm_rank(world, &rank);
    MPI_Comm_dup(world, &other);
    for (int s = 0; s < 3; s++) {
        int n = sizes[s];
        MPI_Request persistent, one;
        MPI_Status status;
        if (rank == 0) {
            MPI_Send_init(buffer, n, MPI_BYTE, 1, 5, other, &persistent);
        } else {
            MPI_Recv_init(buffer, n, MPI_BYTE, 0, 5, other, &persistent);
        }
        for (int round = 0; round < ROUNDS; round++) {
            for (int kind = 0; kind < KINDS; kind++) {
                MPI_Barrier(world);
                double begin = now_us();
                for (int call = 0; call < CALLS; call++) {
                    if (kind == 0) {
                        MPI_Bcast(buffer, n, MPI_BYTE, 0, world);
                    } else if (kind == 1 && rank == 0) {
                        MPI_Send(buffer, n, MPI_BYTE, 1, 4, other);
                    } else if (kind == 1) {
                        MPI_Recv(buffer, n, MPI_BYTE, 0, 4, other, &status);
                    } else if (kind == 2) {
                        MPI_Start(&persistent);
                        MPI_Wait(&persistent, &status);
                    } else {
                        if (rank == 0) {
                            MPI_Isend(buffer, n, MPI_BYTE, 1, 6, other, &one);
                        } else {
                            MPI_Irecv(buffer, n, MPI_BYTE, 0, 6, other, &one);
                        }
                        MPI_Wait(&one, &status);
                    }
                }
                double mine = (now_us() - begin) / CALLS;
                MPI_Allreduce(&mine, &times[kind][round], 1, MPI_DOUBLE, MPI_MAX, world);
            }
        }
        for (int kind = 0; kind < KINDS && rank == 0; kind++) {
            qsort(times[kind], ROUNDS, sizeof(double), ascending);
            printf("%5d B  %-32s %.2f\n", n, names[kind], times[kind][ROUNDS / 2]);
        }
        MPI_Request_free(&persistent);
    }
    MPI_Finalize();
    return 0;
}
