/* A job of a campaign: repeats one pattern of messages, and writes how long each iteration took on the slowest rank.
 *
 *   measure PATTERN --bytes N [--iterations N] [--warm-up N] [--no-barrier] --output FILE     a victim
 *   measure PATTERN --bytes N --endless --ready FILE [--burst S --pause S]                    an aggressor
 *
 * all_posted      MPI_Isend and MPI_Irecv of N bytes to and from every other rank, in the order of ranks; wait for all
 * ring_allgather  ranks - 1 steps of MPI_Sendrecv to the next and from the previous rank, N / ranks bytes each
 * incast          every other rank sends N bytes to rank 0, which waits for all of them
 *
 * The barrier before an iteration (not with --no-barrier, and never of an incast) and the copy of a rank's own block are
 * not timed. With --burst, rank 0 decides after every iteration whether the burst goes on and broadcasts that; then all
 * ranks sleep for --pause. SIGTERM ends a rank at once.
 *
 * FILE appears under its name when it is complete. It begins with the hosts in the order of ranks and the MPI library.
 * With --slurm-names they are the names that srun gives its tasks (SLURMD_NODENAME), else those of the machines. */
#define _POSIX_C_SOURCE 200809L
#include <errno.h>
#include <limits.h>
#include <mpi.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

typedef struct {
    const char *output, *ready;
    long bytes, iterations, warm_up;
    double burst, pause;
    int barrier, endless, slurm_names;
} Options;

static int rank, ranks;
static char *outgoing, *incoming;
static MPI_Request *requests;
static MPI_Status *statuses; /* not MPI_STATUSES_IGNORE: compilers warn of what it is in MPICH */

static void fail(const char *format, ...) {
    char words[1024]; /* printed at once: other ranks write to the same terminal */
    va_list values;
    va_start(values, format);
    vsnprintf(words, sizeof words, format, values);
    va_end(values);
    fprintf(stderr, "measure, rank %d: %s\n", rank, words);
    MPI_Abort(MPI_COMM_WORLD, 2);
    exit(2);
}

static void *allocate(size_t count, size_t size) {
    void *memory = count > SIZE_MAX / size ? NULL : malloc(count * size);
    if (memory == NULL) fail("out of memory: %zu times %zu bytes", count, size);
    memset(memory, 1, count * size); /* pages are there before the first iteration */
    return memory;
}

/* Patterns return the time of the part that is timed, seconds. */

static double all_posted(const Options *options) {
    size_t block = (size_t)options->bytes;
    int size = (int)options->bytes, count = 0;
    memcpy(incoming + (size_t)rank * block, outgoing + (size_t)rank * block, block);
    double start = MPI_Wtime();
    for (int peer = 0; peer < ranks; peer++) {
        if (peer == rank) continue;
        MPI_Isend(outgoing + (size_t)peer * block, size, MPI_BYTE, peer, 0, MPI_COMM_WORLD, requests + count++);
        MPI_Irecv(incoming + (size_t)peer * block, size, MPI_BYTE, peer, 0, MPI_COMM_WORLD, requests + count++);
    }
    MPI_Waitall(count, requests, statuses);
    return MPI_Wtime() - start;
}

static long ring_block(const Options *options) {
    return options->bytes / ranks > 0 ? options->bytes / ranks : 1;
}

static double ring_allgather(const Options *options) {
    int size = (int)ring_block(options), next = (rank + 1) % ranks, previous = (rank + ranks - 1) % ranks;
    memcpy(incoming + (size_t)rank * (size_t)size, outgoing, (size_t)size);
    double start = MPI_Wtime();
    for (int step = 0; step < ranks - 1; step++) {
        size_t sent = (size_t)((rank - step + ranks) % ranks), received = (size_t)((rank - step - 1 + ranks) % ranks);
        MPI_Sendrecv(incoming + sent * (size_t)size, size, MPI_BYTE, next, 0, incoming + received * (size_t)size, size,
                     MPI_BYTE, previous, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    return MPI_Wtime() - start;
}

static double incast(const Options *options) {
    size_t block = (size_t)options->bytes;
    int size = (int)options->bytes;
    double start = MPI_Wtime();
    if (rank == 0) {
        for (int peer = 1; peer < ranks; peer++)
            MPI_Irecv(incoming + (size_t)peer * block, size, MPI_BYTE, peer, 0, MPI_COMM_WORLD, requests + peer - 1);
        MPI_Waitall(ranks - 1, requests, statuses);
    } else {
        MPI_Isend(outgoing, size, MPI_BYTE, 0, 0, MPI_COMM_WORLD, requests);
        MPI_Waitall(1, requests, statuses);
    }
    return MPI_Wtime() - start;
}

typedef struct {
    const char *name;
    double (*iterate)(const Options *options);
    int may_wait; /* whether its iterations may begin with a barrier */
} Pattern;

static const Pattern patterns[] = {
    {"all_posted", all_posted, 1}, {"ring_allgather", ring_allgather, 1}, {"incast", incast, 0}};

static double iterate(const Pattern *pattern, const Options *options) {
    if (pattern->may_wait && options->barrier) MPI_Barrier(MPI_COMM_WORLD);
    return pattern->iterate(options);
}

static void sleep_for(double seconds) {
    struct timespec rest;
    rest.tv_sec = (time_t)seconds;
    rest.tv_nsec = (long)((seconds - (double)rest.tv_sec) * 1e9);
    while (nanosleep(&rest, &rest) != 0 && errno == EINTR) {
    }
}

/* Writes a file from rank 0: hosts and library, then the times if there are any. It gets its name when it is whole. */
static void write_file(const Options *options, const char *path, const double *times, long count) {
    char own[MPI_MAX_PROCESSOR_NAME] = "", library[MPI_MAX_LIBRARY_VERSION_STRING] = "", *hosts = NULL;
    int length;
    const char *node = options->slurm_names ? getenv("SLURMD_NODENAME") : NULL;
    if (node != NULL) snprintf(own, sizeof own, "%s", node);
    else MPI_Get_processor_name(own, &length);
    if (rank == 0) hosts = allocate((size_t)ranks, MPI_MAX_PROCESSOR_NAME);
    MPI_Gather(own, MPI_MAX_PROCESSOR_NAME, MPI_CHAR, hosts, MPI_MAX_PROCESSOR_NAME, MPI_CHAR, 0, MPI_COMM_WORLD);
    if (rank != 0) return;
    MPI_Get_library_version(library, &length);
    library[strcspn(library, "\r\n")] = '\0';
    char *scratch = allocate(strlen(path) + 6, 1);
    sprintf(scratch, "%s.part", path);
    FILE *file = fopen(scratch, "w");
    if (file == NULL) fail("%s: cannot be written: %s", scratch, strerror(errno));
    fprintf(file, "# hosts:");
    for (int at = 0; at < ranks; at++) fprintf(file, " %s", hosts + (size_t)at * MPI_MAX_PROCESSOR_NAME);
    fprintf(file, "\n# library: %s\niteration,seconds\n", library);
    for (long at = 0; at < count; at++) fprintf(file, "%ld,%.9f\n", at, times[at]);
    int wrong = ferror(file);
    if (fclose(file) != 0 || wrong || rename(scratch, path) != 0)
        fail("%s: cannot be written: %s", path, strerror(errno));
    free(scratch), free(hosts);
}

static void run_victim(const Pattern *pattern, const Options *options) {
    double *times = allocate((size_t)options->iterations, sizeof *times);
    double *slowest = allocate((size_t)options->iterations, sizeof *slowest);
    for (long at = 0; at < options->warm_up; at++) iterate(pattern, options);
    for (long at = 0; at < options->iterations; at++) times[at] = iterate(pattern, options);
    MPI_Reduce(times, slowest, (int)options->iterations, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    write_file(options, options->output, slowest, options->iterations);
}

static void run_aggressor(const Pattern *pattern, const Options *options) {
    for (long at = 0; at < options->warm_up; at++) iterate(pattern, options);
    write_file(options, options->ready, NULL, 0);
    for (;;) {
        double start = MPI_Wtime();
        int goes_on = 0;
        do {
            iterate(pattern, options);
            if (options->burst > 0) {
                goes_on = MPI_Wtime() - start < options->burst;
                MPI_Bcast(&goes_on, 1, MPI_INT, 0, MPI_COMM_WORLD);
            }
        } while (goes_on);
        if (options->pause > 0) sleep_for(options->pause);
    }
}

static void end(int number) {
    (void)number;
    _exit(0);
}

static const char *value_of(int *at, int count, char **words) {
    if (*at + 1 >= count) fail("%s: its value is missing", words[*at]);
    return words[++*at];
}

static long whole(const char *name, const char *text, long least, long most) {
    char *rest;
    errno = 0;
    long found = strtol(text, &rest, 10);
    if (errno != 0 || *text == '\0' || *rest != '\0' || found < least || found > most)
        fail("%s %s: not a whole number from %ld to %ld", name, text, least, most);
    return found;
}

static double duration(const char *name, const char *text) {
    char *rest;
    double found = strtod(text, &rest);
    if (*text == '\0' || *rest != '\0' || !(found >= 0 && found < 1e6)) fail("%s %s: not a time in seconds", name, text);
    return found;
}

static Options read_options(int count, char **words) {
    Options options = {NULL, NULL, -1, 1000, 5, 0, 0, 1, 0, 0};
    for (int at = 2; at < count; at++) {
        const char *name = words[at];
        if (strcmp(name, "--no-barrier") == 0) options.barrier = 0;
        else if (strcmp(name, "--endless") == 0) options.endless = 1;
        else if (strcmp(name, "--slurm-names") == 0) options.slurm_names = 1;
        else if (strcmp(name, "--output") == 0) options.output = value_of(&at, count, words);
        else if (strcmp(name, "--ready") == 0) options.ready = value_of(&at, count, words);
        else if (strcmp(name, "--bytes") == 0) options.bytes = whole(name, value_of(&at, count, words), 1, INT_MAX);
        else if (strcmp(name, "--iterations") == 0)
            options.iterations = whole(name, value_of(&at, count, words), 1, INT_MAX);
        else if (strcmp(name, "--warm-up") == 0) options.warm_up = whole(name, value_of(&at, count, words), 0, INT_MAX);
        else if (strcmp(name, "--burst") == 0) options.burst = duration(name, value_of(&at, count, words));
        else if (strcmp(name, "--pause") == 0) options.pause = duration(name, value_of(&at, count, words));
        else fail("%s: unknown option", name);
    }
    if (options.bytes < 0) fail("--bytes is missing");
    if (options.endless ? options.ready == NULL : options.output == NULL)
        fail(options.endless ? "--endless needs --ready" : "--output is missing");
    if (!options.endless && (options.burst > 0 || options.pause > 0)) fail("--burst and --pause need --endless");
    return options;
}

int main(int argc, char **argv) {
    const Pattern *pattern = NULL;
    MPI_Init(&argc, &argv);
    struct sigaction on_term;
    memset(&on_term, 0, sizeof on_term);
    on_term.sa_handler = end;
    sigaction(SIGTERM, &on_term, NULL);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    for (size_t at = 0; argc > 1 && at < sizeof patterns / sizeof *patterns; at++)
        if (strcmp(argv[1], patterns[at].name) == 0) pattern = patterns + at;
    if (pattern == NULL) fail("%s: no pattern; allowed: all_posted, ring_allgather, incast", argc > 1 ? argv[1] : "");
    Options options = read_options(argc, argv);
    if (ranks < 2) fail("runs on 2 ranks or more, this is one: did the launcher start each rank by itself?");
    size_t block = (size_t)(pattern->iterate == ring_allgather ? ring_block(&options) : options.bytes);
    outgoing = allocate((size_t)ranks, block);
    incoming = allocate((size_t)ranks, block);
    requests = allocate((size_t)ranks, 2 * sizeof *requests);
    statuses = allocate((size_t)ranks, 2 * sizeof *statuses);
    if (options.endless) run_aggressor(pattern, &options);
    else run_victim(pattern, &options);
    MPI_Finalize();
    return 0;
}
