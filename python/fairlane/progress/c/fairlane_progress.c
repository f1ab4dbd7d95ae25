/* The writer of progress pages: see fairlane_progress.h. Linux only: it reads /proc/self. */
#define _GNU_SOURCE
#include "fairlane_progress.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { VERSION = 1, PAGE_BYTES = 4096, TEXT_BYTES = 64, PATH_BYTES = 1024 };

typedef struct {
    _Atomic uint64_t magic; /* published last */
    uint32_t version;
    uint32_t pid;
    uint64_t started;       /* start of the process, clock ticks since boot: tells a reused pid */
    uint64_t pid_namespace; /* inode of /proc/self/ns/pid */
    uint64_t opened;        /* ns of CLOCK_MONOTONIC */
    int32_t rank;
    uint32_t reserved;
    char job[TEXT_BYTES];
    char host[TEXT_BYTES];
    char padding[16];
    _Atomic uint64_t count;    /* on a cache line of its own */
    _Atomic uint64_t fraction; /* low 32 bits of the count that it belongs to, then the fraction in units of 2^-32 */
    _Atomic uint64_t marked;   /* ns of CLOCK_MONOTONIC; 0 before the first mark */
} Page;

_Static_assert(ATOMIC_LLONG_LOCK_FREE == 2, "64-bit atomics must be lock-free: readers are other processes");
_Static_assert(sizeof(_Atomic uint64_t) == 8 && offsetof(Page, version) == 8 && offsetof(Page, pid) == 12, "layout");
_Static_assert(offsetof(Page, started) == 16 && offsetof(Page, opened) == 32 && offsetof(Page, rank) == 40, "layout");
_Static_assert(offsetof(Page, job) == 48 && offsetof(Page, host) == 112 && offsetof(Page, count) == 192, "layout");
_Static_assert(offsetof(Page, fraction) == 200 && offsetof(Page, marked) == 208, "layout");

static Page nowhere; /* takes the marks of a process that has no page */
static _Atomic(Page *) current;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t handlers = PTHREAD_ONCE_INIT;
static char path[PATH_BYTES + 2 * TEXT_BYTES]; /* of the page; empty if there is none */

static uint64_t now(clockid_t clock) {
    struct timespec time;
    clock_gettime(clock, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static const char *first_set(const char *const names[]) {
    for (; *names != NULL; names++) {
        const char *value = getenv(*names);
        if (value != NULL && *value != '\0') return value;
    }
    return NULL;
}

/* Copies text; characters that have no place in the name of a file become '_'. */
static void copy_name(char *to, const char *from) {
    size_t at = 0;
    for (; from[at] != '\0' && at < TEXT_BYTES - 1; at++) {
        char c = from[at];
        int plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '_';
        to[at] = plain || c == '-' ? c : '_';
    }
    to[at] = '\0';
}

/* mpirun within a Slurm job inherits SLURM_PROCID of its daemon, so the ranks that MPI itself sets come first. */
static int32_t rank_of_process(void) {
    static const char *const names[] = {"FAIRLANE_RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *value = getenv(names[i]);
        if (value == NULL || *value == '\0' || strspn(value, "0123456789") != strlen(value)) continue;
        errno = 0;
        long rank = strtol(value, NULL, 10);
        if (errno == 0 && rank <= INT32_MAX) return (int32_t)rank;
    }
    return 0;
}

static void name_job(char *job) {
    static const char *const names[] = {"FAIRLANE_JOB", "SLURM_JOB_ID", "PBS_JOBID",      "LSB_JOBID",
                                        "FLUX_JOB_ID",  "PMI_JOBID",    "PMIX_NAMESPACE", NULL};
    const char *value = first_set(names);
    if (value != NULL)
        copy_name(job, value);
    else
        snprintf(job, TEXT_BYTES, "pid-%ld", (long)getpid());
}

static void name_host(char *host) {
    const char *node = getenv("SLURMD_NODENAME");
    char name[256] = "";
    if (node == NULL || *node == '\0') {
        gethostname(name, sizeof name - 1);
        node = name;
    }
    copy_name(host, node);
}

/* The 22nd field of /proc/self/stat; the second, in parentheses, may have any characters. */
static int start_of_process(uint64_t *started) {
    char text[1024];
    int file = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
    if (file < 0) return errno;
    ssize_t length = read(file, text, sizeof text - 1);
    close(file);
    if (length <= 0) return EIO;
    text[length] = '\0';
    char *field = strrchr(text, ')');
    for (int number = 2; number < 22 && field != NULL; number++) field = strchr(field + 1, ' ');
    if (field == NULL) return EIO;
    *started = strtoull(field, NULL, 10);
    return 0;
}

/* The directory, made if it is absent. Nobody else may be able to replace our file in it. */
static int open_directory(char *directory, const char **reason) {
    const char *given = getenv("FAIRLANE_PROGRESS_DIR"), *runtime = getenv("XDG_RUNTIME_DIR");
    int flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC;
    if (given != NULL && *given != '\0') {
        if (*given != '/') return *reason = "FAIRLANE_PROGRESS_DIR has to be an absolute path", errno = EINVAL, -1;
        if (strlen(given) >= PATH_BYTES) return errno = ENAMETOOLONG, -1;
        strcpy(directory, given);
    } else if (access("/dev/shm", W_OK | X_OK) == 0 || runtime == NULL || *runtime != '/') {
        snprintf(directory, PATH_BYTES, "/dev/shm/fairlane-%lu", (unsigned long)geteuid());
        flags |= O_NOFOLLOW;
    } else if (snprintf(directory, PATH_BYTES, "%s/fairlane", runtime) >= PATH_BYTES) {
        return errno = ENAMETOOLONG, -1;
    }
    if (mkdir(directory, 0700) != 0 && errno != EEXIST) return -1;
    int opened = open(directory, flags);
    struct stat found;
    if (opened < 0 || fstat(opened, &found) != 0) return -1;
    if (found.st_uid != geteuid() && found.st_uid != 0)
        *reason = "belongs to another user";
    else if ((found.st_mode & 022) != 0 && (found.st_mode & S_ISVTX) == 0)
        *reason = "others may write to it, and it is not sticky";
    else
        return opened;
    close(opened);
    return errno = EPERM, -1;
}

static void forget_in_child(void) {
    path[0] = '\0'; /* it is the parent's */
    atomic_store_explicit(&current, NULL, memory_order_relaxed);
    pthread_mutex_unlock(&lock);
}

static void before_fork(void) { pthread_mutex_lock(&lock); }

static void after_fork(void) { pthread_mutex_unlock(&lock); }

static void add_handlers(void) { pthread_atfork(before_fork, after_fork, forget_in_child); }

static int make_page(char *directory, const char **reason) {
    Page header = {.version = VERSION, .pid = (uint32_t)getpid(), .rank = rank_of_process()};
    struct stat namespace;
    name_job(header.job);
    name_host(header.host);
    int failed = start_of_process(&header.started);
    if (failed != 0) return *reason = "/proc/self/stat cannot be read", failed;
    if (stat("/proc/self/ns/pid", &namespace) == 0) header.pid_namespace = namespace.st_ino;
    int folder = open_directory(directory, reason);
    if (folder < 0) return errno;
    char name[2 * TEXT_BYTES];
    snprintf(name, sizeof name, "%s-%d-%lu.progress", header.job, (int)header.rank, (unsigned long)header.pid);
    int flags = O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
    int file = openat(folder, name, flags, 0600);
    /* Left by a killed process that had this pid, or by this one before it called exec. */
    if (file < 0 && errno == EEXIST && unlinkat(folder, name, 0) == 0) file = openat(folder, name, flags, 0600);
    failed = file < 0 ? errno : posix_fallocate(file, 0, PAGE_BYTES); /* a full disk is an error here, later a SIGBUS */
    Page *page = NULL;
    if (failed == 0) {
        page = mmap(NULL, PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
        if (page == MAP_FAILED) failed = errno;
    }
    if (file >= 0) close(file);
    if (failed != 0) {
        if (file >= 0) unlinkat(folder, name, 0);
        close(folder);
        return failed;
    }
    close(folder);
    header.opened = now(CLOCK_MONOTONIC);
    memcpy((char *)page + sizeof page->magic, (char *)&header + sizeof header.magic, sizeof header - sizeof header.magic);
    uint64_t magic;
    memcpy(&magic, "fairlane", sizeof magic);
    atomic_store_explicit(&page->magic, magic, memory_order_release);
    snprintf(path, sizeof path, "%s/%s", directory, name);
    atomic_store_explicit(&current, page, memory_order_release);
    return 0;
}

static int open_page(int again) {
    static int told;
    int failed = 0;
    pthread_once(&handlers, add_handlers);
    pthread_mutex_lock(&lock);
    Page *page = atomic_load_explicit(&current, memory_order_relaxed);
    if (page == NULL || (again && page == &nowhere)) {
        char directory[PATH_BYTES] = "";
        const char *reason = NULL;
        failed = make_page(directory, &reason);
        if (failed != 0) {
            atomic_store_explicit(&current, &nowhere, memory_order_release);
            if (!told && rank_of_process() == 0)
                fprintf(stderr, "fairlane: progress is not recorded: %s%s%s\n", directory, *directory ? ": " : "",
                        reason != NULL ? reason : strerror(failed));
            told = 1;
        }
    }
    pthread_mutex_unlock(&lock);
    return failed;
}

int fairlane_progress_open(void) { return open_page(1); }

static Page *page_of_process(void) {
    Page *page = atomic_load_explicit(&current, memory_order_acquire);
    if (page == NULL) {
        open_page(0);
        page = atomic_load_explicit(&current, memory_order_acquire);
    }
    return page == NULL ? &nowhere : page; /* NULL: another thread has forked this process meanwhile */
}

void fairlane_mark_progress(void) {
    Page *page = page_of_process();
    atomic_fetch_add_explicit(&page->count, 1, memory_order_relaxed);
    atomic_store_explicit(&page->marked, now(CLOCK_MONOTONIC_COARSE), memory_order_relaxed);
}

void fairlane_mark_progress_fraction(double fraction) {
    Page *page = page_of_process();
    uint64_t part = !(fraction > 0) ? 0 : fraction >= 1 ? UINT32_MAX : (uint64_t)(fraction * 4294967296.0);
    uint64_t count = atomic_load_explicit(&page->count, memory_order_relaxed);
    atomic_store_explicit(&page->fraction, count << 32 | part, memory_order_relaxed);
    atomic_store_explicit(&page->marked, now(CLOCK_MONOTONIC_COARSE), memory_order_relaxed);
}

/* The page stays mapped: another thread may be at a mark. */
static void __attribute__((destructor)) remove_page(void) {
    pthread_mutex_lock(&lock);
    if (path[0] != '\0') unlink(path);
    path[0] = '\0';
    atomic_store_explicit(&current, &nowhere, memory_order_release);
    pthread_mutex_unlock(&lock);
}

void fairlane_progress_close(void) { remove_page(); }
