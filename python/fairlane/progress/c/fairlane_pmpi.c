/* Marks the progress of an MPI program that is not changed: LD_PRELOAD=libfairlane-pmpi.so
 *
 * FAIRLANE_PROGRESS_CALL=MPI_Allreduce   a mark after every call of this function
 * FAIRLANE_PROGRESS_EVERY=N              a mark after every N-th of these calls; of all calls listed below if none is named
 *
 * What is wrong with these variables is reported by rank 0 at MPI_Init; the program goes on without marks. Calls of C and
 * of Fortran (mpif.h, mpi and mpi_f08 of Open MPI) count, but not those that the MPI library makes within another call. */
#include "fairlane_progress.h"

#include <errno.h>
#include <mpi.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

typedef const int *Ints;
typedef MPI_Datatype Type;
typedef const MPI_Datatype *Types;
typedef MPI_Request *Req;

/* C(name, name in Fortran, arguments in Fortran, parameters, arguments) of every function that can be marked. */
#define FUNCTIONS(C)                                                                                                    \
    C(Barrier, barrier, 2, (MPI_Comm c), (c))                                                                           \
    C(Bcast, bcast, 6, (void *a, int n, Type t, int r, MPI_Comm c), (a, n, t, r, c))                                    \
    C(Gather, gather, 9, (const void *a, int n, Type t, void *b, int m, Type u, int r, MPI_Comm c),                     \
      (a, n, t, b, m, u, r, c))                                                                                         \
    C(Gatherv, gatherv, 10, (const void *a, int n, Type t, void *b, Ints m, Ints d, Type u, int r, MPI_Comm c),         \
      (a, n, t, b, m, d, u, r, c))                                                                                      \
    C(Scatter, scatter, 9, (const void *a, int n, Type t, void *b, int m, Type u, int r, MPI_Comm c),                   \
      (a, n, t, b, m, u, r, c))                                                                                         \
    C(Scatterv, scatterv, 10, (const void *a, Ints n, Ints d, Type t, void *b, int m, Type u, int r, MPI_Comm c),       \
      (a, n, d, t, b, m, u, r, c))                                                                                      \
    C(Allgather, allgather, 8, (const void *a, int n, Type t, void *b, int m, Type u, MPI_Comm c),                      \
      (a, n, t, b, m, u, c))                                                                                            \
    C(Allgatherv, allgatherv, 9, (const void *a, int n, Type t, void *b, Ints m, Ints d, Type u, MPI_Comm c),           \
      (a, n, t, b, m, d, u, c))                                                                                         \
    C(Alltoall, alltoall, 8, (const void *a, int n, Type t, void *b, int m, Type u, MPI_Comm c), (a, n, t, b, m, u, c)) \
    C(Alltoallv, alltoallv, 10,                                                                                         \
      (const void *a, Ints n, Ints d, Type t, void *b, Ints m, Ints e, Type u, MPI_Comm c),                             \
      (a, n, d, t, b, m, e, u, c))                                                                                      \
    C(Alltoallw, alltoallw, 10,                                                                                         \
      (const void *a, Ints n, Ints d, Types t, void *b, Ints m, Ints e, Types u, MPI_Comm c),                           \
      (a, n, d, t, b, m, e, u, c))                                                                                      \
    C(Reduce, reduce, 8, (const void *a, void *b, int n, Type t, MPI_Op o, int r, MPI_Comm c), (a, b, n, t, o, r, c))   \
    C(Allreduce, allreduce, 7, (const void *a, void *b, int n, Type t, MPI_Op o, MPI_Comm c), (a, b, n, t, o, c))       \
    C(Reduce_scatter, reduce_scatter, 7, (const void *a, void *b, Ints n, Type t, MPI_Op o, MPI_Comm c),                \
      (a, b, n, t, o, c))                                                                                               \
    C(Reduce_scatter_block, reduce_scatter_block, 7, (const void *a, void *b, int n, Type t, MPI_Op o, MPI_Comm c),     \
      (a, b, n, t, o, c))                                                                                               \
    C(Scan, scan, 7, (const void *a, void *b, int n, Type t, MPI_Op o, MPI_Comm c), (a, b, n, t, o, c))                 \
    C(Exscan, exscan, 7, (const void *a, void *b, int n, Type t, MPI_Op o, MPI_Comm c), (a, b, n, t, o, c))             \
    C(Ibarrier, ibarrier, 3, (MPI_Comm c, Req q), (c, q))                                                               \
    C(Ibcast, ibcast, 7, (void *a, int n, Type t, int r, MPI_Comm c, Req q), (a, n, t, r, c, q))                        \
    C(Igather, igather, 10, (const void *a, int n, Type t, void *b, int m, Type u, int r, MPI_Comm c, Req q),           \
      (a, n, t, b, m, u, r, c, q))                                                                                      \
    C(Iscatter, iscatter, 10, (const void *a, int n, Type t, void *b, int m, Type u, int r, MPI_Comm c, Req q),         \
      (a, n, t, b, m, u, r, c, q))                                                                                      \
    C(Iallgather, iallgather, 9, (const void *a, int n, Type t, void *b, int m, Type u, MPI_Comm c, Req q),             \
      (a, n, t, b, m, u, c, q))                                                                                         \
    C(Ialltoall, ialltoall, 9, (const void *a, int n, Type t, void *b, int m, Type u, MPI_Comm c, Req q),               \
      (a, n, t, b, m, u, c, q))                                                                                         \
    C(Ialltoallv, ialltoallv, 11,                                                                                       \
      (const void *a, Ints n, Ints d, Type t, void *b, Ints m, Ints e, Type u, MPI_Comm c, Req q),                      \
      (a, n, d, t, b, m, e, u, c, q))                                                                                   \
    C(Ireduce, ireduce, 9, (const void *a, void *b, int n, Type t, MPI_Op o, int r, MPI_Comm c, Req q),                 \
      (a, b, n, t, o, r, c, q))                                                                                         \
    C(Iallreduce, iallreduce, 8, (const void *a, void *b, int n, Type t, MPI_Op o, MPI_Comm c, Req q),                  \
      (a, b, n, t, o, c, q))                                                                                            \
    C(Neighbor_allgather, neighbor_allgather, 8, (const void *a, int n, Type t, void *b, int m, Type u, MPI_Comm c),    \
      (a, n, t, b, m, u, c))                                                                                            \
    C(Neighbor_alltoall, neighbor_alltoall, 8, (const void *a, int n, Type t, void *b, int m, Type u, MPI_Comm c),      \
      (a, n, t, b, m, u, c))                                                                                            \
    C(Neighbor_alltoallv, neighbor_alltoallv, 10,                                                                       \
      (const void *a, Ints n, Ints d, Type t, void *b, Ints m, Ints e, Type u, MPI_Comm c),                             \
      (a, n, d, t, b, m, e, u, c))                                                                                      \
    C(Send, send, 7, (const void *a, int n, Type t, int r, int g, MPI_Comm c), (a, n, t, r, g, c))                      \
    C(Ssend, ssend, 7, (const void *a, int n, Type t, int r, int g, MPI_Comm c), (a, n, t, r, g, c))                    \
    C(Recv, recv, 8, (void *a, int n, Type t, int r, int g, MPI_Comm c, MPI_Status *s), (a, n, t, r, g, c, s))          \
    C(Sendrecv, sendrecv, 13,                                                                                           \
      (const void *a, int n, Type t, int r, int g, void *b, int m, Type u, int f, int h, MPI_Comm c, MPI_Status *s),    \
      (a, n, t, r, g, b, m, u, f, h, c, s))                                                                             \
    C(Isend, isend, 8, (const void *a, int n, Type t, int r, int g, MPI_Comm c, Req q), (a, n, t, r, g, c, q))          \
    C(Irecv, irecv, 8, (void *a, int n, Type t, int r, int g, MPI_Comm c, Req q), (a, n, t, r, g, c, q))                \
    C(Wait, wait, 3, (Req q, MPI_Status *s), (q, s))                                                                    \
    C(Waitall, waitall, 4, (int n, Req q, MPI_Status *s), (n, q, s))                                                    \
    C(Startall, startall, 3, (int n, Req q), (n, q))                                                                    \
    C(Win_fence, win_fence, 3, (int assertion, MPI_Win w), (assertion, w))

#define NUMBER(name, lower, count, parameters, arguments) CALL_##name,
#define NAME(name, lower, count, parameters, arguments) "MPI_" #name,
enum { FUNCTIONS(NUMBER) CALLS };
static const char *const names[CALLS] = {FUNCTIONS(NAME)};

enum { ANY = -1, NONE = -2 };
static int marked = NONE;
static unsigned long every = 1;
static char complaint[4096];
static atomic_ulong calls;
static _Thread_local int depth;
static pthread_once_t settings = PTHREAD_ONCE_INIT;

/* The edit distance of two words without regard to case. */
static size_t distance(const char *word, const char *other) {
    size_t row[64], length = strlen(other);
    if (length >= 64) return SIZE_MAX;
    for (size_t j = 0; j <= length; j++) row[j] = j;
    for (size_t i = 1; i <= strlen(word); i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= length; j++) {
            char pair[2][2] = {{word[i - 1], '\0'}, {other[j - 1], '\0'}};
            size_t best = diagonal + (strcasecmp(pair[0], pair[1]) != 0);
            diagonal = row[j];
            if (row[j] + 1 < best) best = row[j] + 1;
            if (row[j - 1] + 1 < best) best = row[j - 1] + 1;
            row[j] = best;
        }
    }
    return row[length];
}

static void refuse_call(const char *call) {
    size_t least = strlen(call) / 2 + 1;
    const char *nearest = NULL;
    int at = snprintf(complaint, sizeof complaint, "FAIRLANE_PROGRESS_CALL = \"%.80s\": unknown call; allowed: ", call);
    for (int i = 0; i < CALLS; i++) {
        at += snprintf(complaint + at, sizeof complaint - (size_t)at, "%s%s", i == 0 ? "" : ", ", names[i]);
        size_t away = distance(call, names[i]);
        if (away < least) least = away, nearest = names[i];
    }
    if (nearest != NULL) snprintf(complaint + at, sizeof complaint - (size_t)at, "; did you mean \"%s\"?", nearest);
}

static void read_settings(void) {
    const char *call = getenv("FAIRLANE_PROGRESS_CALL"), *number = getenv("FAIRLANE_PROGRESS_EVERY");
    int named = call != NULL && *call != '\0', counted = number != NULL && *number != '\0', wanted = ANY;
    if (!named && !counted) {
        snprintf(complaint, sizeof complaint, "set FAIRLANE_PROGRESS_CALL, FAIRLANE_PROGRESS_EVERY or both");
        return;
    }
    if (counted) {
        errno = 0;
        every = strspn(number, "0123456789") == strlen(number) ? strtoul(number, NULL, 10) : 0;
        if (every == 0 || errno != 0) {
            snprintf(complaint, sizeof complaint,
                     "FAIRLANE_PROGRESS_EVERY = \"%.80s\": not a number of calls; allowed: 1 or more", number);
            return;
        }
    }
    if (named) {
        for (wanted = 0; wanted < CALLS && strcmp(call, names[wanted]) != 0; wanted++) continue;
        if (wanted == CALLS) {
            refuse_call(call);
            return;
        }
    }
    marked = wanted;
}

static void initialised(void) {
    int rank = 0;
    pthread_once(&settings, read_settings);
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0 && complaint[0] != '\0') fprintf(stderr, "fairlane: no progress is marked: %s\n", complaint);
    complaint[0] = '\0';
}

static void enter(void) { depth++; }

static void leave(int call) {
    if (--depth > 0) return;
    pthread_once(&settings, read_settings);
    if (marked != call && marked != ANY) return;
    if ((atomic_fetch_add_explicit(&calls, 1, memory_order_relaxed) + 1) % every == 0) fairlane_mark_progress();
}

int MPI_Init(int *count, char ***values) {
    int status = PMPI_Init(count, values);
    if (status == MPI_SUCCESS) initialised();
    return status;
}

int MPI_Init_thread(int *count, char ***values, int required, int *provided) {
    int status = PMPI_Init_thread(count, values, required, provided);
    if (status == MPI_SUCCESS) initialised();
    return status;
}

#define IN_C(name, lower, count, parameters, arguments)                                                                 \
    int MPI_##name parameters {                                                                                         \
        enter();                                                                                                        \
        int status = PMPI_##name arguments;                                                                             \
        leave(CALL_##name);                                                                                             \
        return status;                                                                                                  \
    }
FUNCTIONS(IN_C)

/* In Fortran every argument is an address. Open MPI's Fortran functions do not call those of C that are replaced above. */
#define P1 (void *a)
#define A1 (a)
#define P2 (void *a, void *b)
#define A2 (a, b)
#define P3 (void *a, void *b, void *c)
#define A3 (a, b, c)
#define P4 (void *a, void *b, void *c, void *d)
#define A4 (a, b, c, d)
#define P6 (void *a, void *b, void *c, void *d, void *e, void *f)
#define A6 (a, b, c, d, e, f)
#define P7 (void *a, void *b, void *c, void *d, void *e, void *f, void *g)
#define A7 (a, b, c, d, e, f, g)
#define P8 (void *a, void *b, void *c, void *d, void *e, void *f, void *g, void *h)
#define A8 (a, b, c, d, e, f, g, h)
#define P9 (void *a, void *b, void *c, void *d, void *e, void *f, void *g, void *h, void *i)
#define A9 (a, b, c, d, e, f, g, h, i)
#define P10 (void *a, void *b, void *c, void *d, void *e, void *f, void *g, void *h, void *i, void *j)
#define A10 (a, b, c, d, e, f, g, h, i, j)
#define P11 (void *a, void *b, void *c, void *d, void *e, void *f, void *g, void *h, void *i, void *j, void *k)
#define A11 (a, b, c, d, e, f, g, h, i, j, k)
#define P13                                                                                                             \
    (void *a, void *b, void *c, void *d, void *e, void *f, void *g, void *h, void *i, void *j, void *k, void *l, void *m)
#define A13 (a, b, c, d, e, f, g, h, i, j, k, l, m)

#define FORTRAN(function, count, after)                                                                                 \
    void p##function P##count __attribute__((weak));                                                                    \
    void function P##count {                                                                                            \
        enter();                                                                                                        \
        p##function A##count;                                                                                           \
        after;                                                                                                          \
    }
#define IN_FORTRAN(name, lower, count, parameters, arguments)                                                           \
    FORTRAN(mpi_##lower##_, count, leave(CALL_##name))                                                                  \
    FORTRAN(mpi_##lower##_f08_, count, leave(CALL_##name))
FUNCTIONS(IN_FORTRAN)

static void initialised_in_fortran(void) {
    depth--;
    initialised();
}
FORTRAN(mpi_init_, 1, initialised_in_fortran())
FORTRAN(mpi_init_f08_, 1, initialised_in_fortran())
FORTRAN(mpi_init_thread_, 3, initialised_in_fortran())
FORTRAN(mpi_init_thread_f08_, 3, initialised_in_fortran())
