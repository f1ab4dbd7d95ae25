/* Executes the script of an MPI rank (see script.py) and notes when each of its iterations ends.
 *
 *   replay SCRIPTS CONTROL
 *
 * SCRIPTS is a folder with a file for each rank, RANK.txt. CONTROL is a file of 64-bit words that all ranks of the job
 * and the process that measures them have mapped (see control.py): the ranks write how many iterations they have
 * completed and when, on the clock that all processes of the machine share, and wait before an iteration for as long
 * as the limit says. Nothing of this is on the network.
 *
 * A rank computes by sleeping, and waits for messages by testing them every POLL ns, so that a few processor cores are
 * enough for many ranks. Its sockets get the DSCP that the control file has. Its iterations are marks of progress too,
 * which an agent reads (libfairlane-progress). */
#define _GNU_SOURCE
#include <dirent.h>
#include <fairlane_progress.h>
#include <fcntl.h>
#include <mpi.h>
#include <netinet/in.h>
#include <netinet/ip.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define POLL 100000       /* ns between two tests for messages */
#define GATE 500000       /* ns between two looks at the limit */
#define MOST_REQUESTS 4096
#define DATA_NETWORK 0x0a4d0000u /* 10.77.0.0/16, where the jobs' messages go */

enum { RANKS, CAPACITY, LIMIT, FROZEN, QUIT, MARKING, DSCP, HEADER = 64 };
enum { COUNT, READY, BLOCK = 8 };

typedef struct {
    char kind; /* first letter of the operation; 'l' is an MPI_Ialltoall */
    int count;
    int64_t *values;
} Operation;

static _Atomic int64_t *control;
static _Atomic int64_t *mine;
static _Atomic int64_t *times;
static int64_t marking = -1;
static MPI_Request requests[MOST_REQUESTS];
static char *buffers[MOST_REQUESTS + 2];
static int64_t sizes[MOST_REQUESTS + 2];

static void fail(const char *what) {
    fprintf(stderr, "replay: %s\n", what);
    MPI_Abort(MPI_COMM_WORLD, 1);
    exit(1);
}

static void pause_ns(int64_t ns) {
    struct timespec wait = {ns / 1000000000, ns % 1000000000};
    while (nanosleep(&wait, &wait) != 0) {
    }
}

static int64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * (int64_t)1000000000 + now.tv_nsec;
}

/* A buffer of at least so many bytes, for each request one. */
static char *buffer(int number, int64_t size) {
    if (sizes[number] < size) {
        free(buffers[number]);
        buffers[number] = calloc(1, (size_t)size);
        if (buffers[number] == NULL) fail("out of memory");
        sizes[number] = size;
    }
    return buffers[number];
}

static void wait_for(int count, MPI_Request *pending) {
    int done = 0;
    while (MPI_Testall(count, pending, &done, MPI_STATUSES_IGNORE), !done) pause_ns(POLL);
}

/* Marks all sockets of the data network with a DSCP. */
static void mark_sockets(int dscp) {
    DIR *folder = opendir("/proc/self/fd");
    if (folder == NULL) return;
    for (struct dirent *one = readdir(folder); one != NULL; one = readdir(folder)) {
        struct sockaddr_in peer;
        socklen_t length = sizeof peer;
        int fd = atoi(one->d_name), field = dscp << 2;
        if (getpeername(fd, (struct sockaddr *)&peer, &length) != 0 || peer.sin_family != AF_INET) continue;
        if ((ntohl(peer.sin_addr.s_addr) & 0xffff0000u) != DATA_NETWORK) continue;
        setsockopt(fd, IPPROTO_IP, IP_TOS, &field, sizeof field);
    }
    closedir(folder);
}

/* Waits until this rank may begin its next iteration. False if it is to end. */
static int may_go_on(int64_t completed) {
    for (;;) {
        if (control[QUIT]) return 0;
        if (!control[FROZEN] && completed < control[LIMIT]) break;
        pause_ns(GATE);
    }
    if (marking != control[MARKING]) {
        marking = control[MARKING];
        mark_sockets((int)control[DSCP]);
    }
    return 1;
}

static int64_t completed = 0;

static int mark(void) {
    if (completed >= control[CAPACITY]) fail("more iterations than the control file has room for");
    times[completed] = now_ns();
    mine[COUNT] = ++completed;
    fairlane_mark_progress();
    return may_go_on(completed);
}

static MPI_Request *request_of(int64_t number) {
    if (number < 0 || number >= MOST_REQUESTS) fail("too many requests");
    return requests + number;
}

static void start_send(const int64_t *value) {
    MPI_Request *request = request_of(value[2]);
    char *from = buffer((int)value[2], value[1]);
    MPI_Isend(from, (int)value[1], MPI_BYTE, (int)value[0], 0, MPI_COMM_WORLD, request);
}

/* Receives do not know the size of their message: they get that of the largest. */
static int64_t largest = 1;

static void start_receive(const int64_t *value) {
    MPI_Request *request = request_of(value[1]);
    char *to = buffer((int)value[1], largest);
    MPI_Irecv(to, (int)largest, MPI_BYTE, (int)value[0], 0, MPI_COMM_WORLD, request);
}

static void all_to_all(int64_t size) {
    int ranks;
    MPI_Request request;
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    char *from = buffer(MOST_REQUESTS, size * ranks), *to = buffer(MOST_REQUESTS + 1, size * ranks);
    MPI_Ialltoall(from, (int)size, MPI_BYTE, to, (int)size, MPI_BYTE, MPI_COMM_WORLD, &request);
    wait_for(1, &request);
}

static void wait_named(const Operation *operation) {
    static MPI_Request pending[MOST_REQUESTS];
    for (int at = 0; at < operation->count; at++) pending[at] = requests[operation->values[at]];
    wait_for(operation->count, pending);
}

/* Executes the operations up to the end of a loop. False if the rank is to end; `*at` is then of no use. */
static int run(const Operation *operations, int count, int *at) {
    for (; *at < count; (*at)++) {
        const Operation *now = operations + *at;
        const int64_t *value = now->values;
        switch (now->kind) {
        case 'c':
            if (value[0] > 0) pause_ns(value[0]);
            break;
        case 's':
            start_send(value);
            break;
        case 'r':
            start_receive(value);
            break;
        case 'w':
            wait_named(now);
            break;
        case 'a':
            all_to_all(value[0]);
            break;
        case 'm':
            if (!mark()) return 0;
            break;
        case 'l': {
            int begin = *at + 1;
            for (int64_t pass = 0; value[0] == 0 || pass < value[0]; pass++) {
                *at = begin;
                if (!run(operations, count, at)) return 0;
            }
            break;
        }
        case 'e':
            return 1;
        }
    }
    return 1;
}

static Operation *read_script(const char *folder, int rank, int *count) {
    static const char *const names[] = {"compute", "isend", "irecv", "wait", "alltoall", "mark", "repeat", "end"};
    static const char kinds[] = "csrwamle";
    char *path = malloc(strlen(folder) + 32), *line = NULL;
    size_t room = 0;
    Operation *found = NULL;
    if (path == NULL) fail("out of memory");
    sprintf(path, "%s/%d.txt", folder, rank);
    FILE *file = fopen(path, "r");
    if (file == NULL) fail("cannot read its script");
    for (*count = 0; getline(&line, &room, file) > 0; (*count)++) {
        found = realloc(found, (size_t)(*count + 1) * sizeof *found);
        if (found == NULL) fail("out of memory");
        Operation *now = found + *count;
        now->count = 0, now->kind = 0, now->values = malloc((strlen(line) + 1) * sizeof *now->values);
        if (now->values == NULL) fail("out of memory");
        char *word = strtok(line, " \n");
        for (unsigned at = 0; word != NULL && at < sizeof names / sizeof *names; at++)
            if (strcmp(word, names[at]) == 0) now->kind = kinds[at];
        if (now->kind == 0) fail("its script has an unknown operation");
        while ((word = strtok(NULL, " \n")) != NULL) now->values[now->count++] = atoll(word);
        if (now->kind == 's' && now->values[1] > largest) largest = now->values[1];
    }
    fclose(file), free(line), free(path);
    return found;
}

int main(int argc, char **argv) {
    int rank, count, at = 0;
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* nothing is left over when what started it is killed */
    prctl(PR_SET_TIMERSLACK, 1);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (argc != 3) fail("usage: replay SCRIPTS CONTROL");
    int file = open(argv[2], O_RDWR);
    struct stat info;
    if (file < 0 || fstat(file, &info) != 0) fail("cannot open the control file");
    control = mmap(NULL, (size_t)info.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (control == MAP_FAILED) fail("cannot map the control file");
    mine = control + HEADER + rank * (BLOCK + control[CAPACITY]);
    times = mine + BLOCK;
    Operation *operations = read_script(argv[1], rank, &count);
    int64_t own = largest;
    MPI_Allreduce(&own, &largest, 1, MPI_INT64_T, MPI_MAX, MPI_COMM_WORLD);
    if (fairlane_progress_open() != 0) fail("cannot have a page of its progress");
    mine[READY] = 1;
    if (may_go_on(0)) run(operations, count, &at);
    while (!control[QUIT]) pause_ns(GATE);
    MPI_Finalize();
    return 0;
}
