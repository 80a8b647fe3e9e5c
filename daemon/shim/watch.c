/*
 * The shim's loop around its worker: waits for signals with a timeout, and on every tick checks the
 * grace time, the memory of the tree and the size of its logs.
 *
 * The shim is the reaper of the whole tree (PR_SET_CHILD_SUBREAPER), so waitpid() failing with
 * ECHILD proves that nothing of it is left. The signals it acts on are blocked and fetched one by
 * one, so no handler ever runs.
 */
#include "daemon/shim/watch.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/files/file.h"
#include "base/layout/layout.h"
#include "daemon/shim/group.h"
#include "daemon/shim/memory.h"
#include "daemon/shim/pid.h"

#define MEMORY_TICK_MS 50                       /* the worker alone */
#define TREE_TICK_MS   500                      /* its members are listed again */
#define LOG_TICK_MS    250                      /* the size of its logs */
#define LOG_FAST_MS    20                       /* while they grow fast */
#define LOG_FAST_BYTES ((off_t)4 * 1024 * 1024) /* in a tick: more is fast */
#define LOG_HEAD_BYTES ((off_t)1 * 1024 * 1024) /* kept of a log that grew over the limit */
#define LOG_TAIL_BYTES ((off_t)31 * 1024 * 1024)
#define LOG_MAX_BYTES  ((off_t)48 * 1024 * 1024)
#define DISK_TRY_BYTES ((int64_t)1024 * 1024)
#define REAP_PAUSE_MS  2
#define OOM_AGE_MS     2000 /* of the count of OOM kills before the worker */

struct watched_log {
    off_t seen; /* its length at the last tick */
    off_t grew; /* since the tick before */
    off_t cut;  /* up to where it has been emptied */
};

struct watch {
    pid_t worker;
    const struct watch_limits *limits;
    struct shim_exit *exit;
    struct pid_list tree; /* as last listed, the worker included */
    int64_t tree_due_ms;
    int64_t log_due_ms;
    int64_t kill_due_ms; /* 0: it was not asked to stop */
    int64_t oom_kills;   /* when it began */
    struct watched_log logs[2];
    bool ended;
    int status;
    bool killed_for_memory;
    bool killed;
};

int watch_block_signals(sigset_t *set, struct err *err)
{
    /* Ignored signals are inherited through exec: children would be reaped unseen, and workers
     * would not notice a broken pipe. */
    (void)signal(SIGCHLD, SIG_DFL);
    (void)signal(SIGPIPE, SIG_DFL);
    (void)sigemptyset(set);
    (void)sigaddset(set, SIGCHLD);
    (void)sigaddset(set, SIGTERM);
    (void)sigaddset(set, SIGINT);
    (void)sigaddset(set, SIGHUP);
    (void)sigaddset(set, SIGUSR1);
    (void)sigaddset(set, SIGUSR2);
    if (sigprocmask(SIG_BLOCK, set, NULL) != 0) {
        return err_set_errno(err, errno, "block signals");
    }
    return 0;
}

/* Children of ours that have ended are ours until waited for, so their numbers cannot have been
 * reused. A grandchild's number may be, between listing and signal, if its own parent reaps it;
 * hence the start time is compared through a pidfd. */
static void signal_one(pid_t pid, int sig)
{
    struct pid_stat s;
    struct err err;
    char boot[40];
    int fd = -1;
    if (!pid_stat_read(pid, &s)) {
        return;
    }
    clock_boot_id(boot);
    if (pid_open(pid, s.start, boot, &fd, &err) == 0 && fd >= 0) {
        (void)pid_signal(fd, sig, &err);
        (void)close(fd);
    }
}

static void look_at_tree(struct watch *w)
{
    struct err err;
    pid_list_release(&w->tree);
    if (pid_descendants(getpid(), &w->tree, &err) != 0) {
        pid_list_release(&w->tree); /* /proc did not open: listed again at the next tick */
    }
}

static void kill_tree(struct watch *w)
{
    w->killed = true;
    if (w->limits->group != NULL) {
        group_kill(w->limits->group);
    }
    look_at_tree(w);
    for (size_t i = 0; i < w->tree.n; i++) {
        signal_one(w->tree.pids[i], SIGKILL);
    }
}

static void ask_to_stop(struct watch *w)
{
    w->exit->asked_to_stop = true;
    if (w->kill_due_ms == 0) {
        w->kill_due_ms = clock_mono().ms + w->limits->grace_ms;
        (void)kill(w->worker, SIGTERM); /* our child, not waited for yet: the number is its own */
    }
}

/* A time limit is near: the worker may use all that is left to write its checkpoint. */
static void ask_for_checkpoint(struct watch *w)
{
    w->exit->asked_to_stop = true;
    (void)kill(w->worker, SIGTERM); /* our child, as above */
}

/* Reaps whatever has ended; remembers how the worker did. */
static bool reap(struct watch *w)
{
    int status = 0;
    pid_t pid;
    while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
        if (pid == w->worker) {
            w->ended = true;
            w->status = status;
        }
    }
    return pid < 0 && errno == ECHILD;
}

/* The quick sum decides that all is well; only the exact one decides to kill. */
static void check_memory(struct watch *w)
{
    struct pid_list one = {.pids = &w->worker, .n = 1};
    const struct pid_list *who = w->tree.n > 0 ? &w->tree : &one;
    if (w->limits->memory_bytes == 0 || memory_quick(who) <= w->limits->memory_bytes) {
        return;
    }
    look_at_tree(w);
    if (memory_exact(&w->tree) > w->limits->memory_bytes) {
        w->killed_for_memory = true;
        kill_tree(w);
    }
}

/* A log over its limit loses its middle: the blocks are given back, offsets stay as they are, so
 * that a program that follows the file keeps its place. A file system that cannot punch holes gets
 * the whole log truncated. */
static void cut_log(const char *name, struct watched_log *log, off_t max)
{
    struct stat st;
    if (stat(name, &st) != 0) {
        return;
    }
    log->grew = st.st_size - log->seen;
    log->seen = st.st_size;
    off_t upto = st.st_size - LOG_TAIL_BYTES;
    if (st.st_size - log->cut <= max || upto <= LOG_HEAD_BYTES) {
        return;
    }
    int fd = open(name, O_WRONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0) {
        return;
    }
    if (fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, LOG_HEAD_BYTES,
                  upto - LOG_HEAD_BYTES) == 0) {
        log->cut = upto;
    } else if (ftruncate(fd, 0) == 0) {
        *log = (struct watched_log){0};
    }
    (void)close(fd);
}

static void cut_logs(struct watch *w, off_t max)
{
    cut_log(LAYOUT_STDOUT, &w->logs[0], max);
    cut_log(LAYOUT_STDERR, &w->logs[1], max);
}

static bool logs_grow_fast(const struct watch *w)
{
    return w->logs[0].grew > LOG_FAST_BYTES || w->logs[1].grew > LOG_FAST_BYTES;
}

static void tick(struct watch *w)
{
    int64_t now = clock_mono().ms;
    if (w->kill_due_ms != 0 && now >= w->kill_due_ms && !w->ended) {
        kill_tree(w);
        w->kill_due_ms = now + TREE_TICK_MS; /* again, should it have forked meanwhile */
    }
    if (now >= w->tree_due_ms && w->limits->memory_bytes != 0) {
        look_at_tree(w);
        w->tree_due_ms = now + TREE_TICK_MS;
    }
    if (now >= w->log_due_ms) {
        cut_logs(w, LOG_MAX_BYTES);
        w->log_due_ms = now + (logs_grow_fast(w) ? LOG_FAST_MS : LOG_TICK_MS);
    }
    check_memory(w);
    if (w->limits->tick != NULL && !w->limits->tick(w->limits->ctx) && !w->killed) {
        w->exit->asked_to_stop = true;
        kill_tree(w);
    }
}

static int64_t wait_ms(const struct watch *w)
{
    int64_t now = clock_mono().ms;
    int64_t ms = w->limits->memory_bytes != 0 ? MEMORY_TICK_MS : LOG_TICK_MS;
    if (logs_grow_fast(w)) {
        ms = LOG_FAST_MS;
    }
    if (w->kill_due_ms != 0 && w->kill_due_ms - now < ms) {
        ms = w->kill_due_ms > now ? w->kill_due_ms - now : 0;
    }
    return ms;
}

static int wait_for_signal(struct watch *w, const sigset_t *set)
{
    int64_t ms = wait_ms(w);
    struct timespec limit = {.tv_sec = ms / 1000, .tv_nsec = (ms % 1000) * 1000000};
    return sigtimedwait(set, NULL, &limit);
}

static void watch_worker(struct watch *w, const sigset_t *set)
{
    while (!reap(w) && !w->ended) {
        int sig = wait_for_signal(w, set);
        if (sig == SIGTERM || sig == SIGINT || sig == SIGHUP) {
            ask_to_stop(w);
        } else if (sig == SIGUSR2) {
            ask_for_checkpoint(w);
        } else if (sig == SIGUSR1) {
            w->exit->asked_to_stop = true;
            kill_tree(w);
        }
        tick(w);
    }
}

/* Kills everything that outlived the worker until no child is left to wait for. What is found
 * before the first kill counts as left behind. */
static void clear_tree(struct watch *w)
{
    while (!reap(w)) {
        look_at_tree(w);
        w->exit->left_behind += w->killed ? 0 : (int64_t)w->tree.n;
        kill_tree(w);
        clock_sleep_ms(REAP_PAUSE_MS);
    }
}

/* A guess: SIGKILL that the shim did not send, while the kernel's count of OOM kills rose. */
static bool killed_by_kernel_for_memory(const struct watch *w)
{
    return w->exit->signal == SIGKILL && !w->killed && w->oom_kills >= 0 &&
           memory_oom_kills() > w->oom_kills;
}

/* Full means less than is kept free for workers, since a failed worker may have removed its
 * unfinished files. A quota shows only when something is written, hence the trial. */
static bool disk_is_full(void)
{
    struct disk_room room;
    struct err err;
    const char *what = NULL;
    return (disk_room(".", &room) && !disk_has_room(&room, 10, &what)) ||
           disk_try(".", DISK_TRY_BYTES, &err) == ERR_NO_SPACE;
}

/* After the whole tree was reaped, so that RUSAGE_CHILDREN covers it. The first reason that
 * applies. */
static void fill_exit(struct watch *w, bool oom)
{
    struct shim_exit *x = w->exit;
    struct rusage u = {0};
    (void)getrusage(RUSAGE_CHILDREN, &u);
    x->user_ms = (int64_t)u.ru_utime.tv_sec * 1000 + u.ru_utime.tv_usec / 1000;
    x->system_ms = (int64_t)u.ru_stime.tv_sec * 1000 + u.ru_stime.tv_usec / 1000;
    x->max_rss_bytes = (int64_t)u.ru_maxrss * 1024;
    x->reason = x->signal != 0 ? SHIM_SIGNALLED : SHIM_EXITED;
    if (w->killed_for_memory || oom) {
        x->reason = SHIM_MEMORY;
    } else if (x->code != 0 && !x->asked_to_stop && disk_is_full()) {
        x->reason = SHIM_DISK;
    }
}

int watch_run(pid_t worker, const sigset_t *set, const struct watch_limits *limits,
              struct shim_exit *out, struct err *err)
{
    struct watch w = {.worker = worker,
                      .limits = limits,
                      .exit = out,
                      .oom_kills = memory_oom_kills_lately(OOM_AGE_MS),
                      .log_due_ms = clock_mono().ms + LOG_TICK_MS,
                      .tree_due_ms = clock_mono().ms + MEMORY_TICK_MS};
    int64_t begun_ms = clock_mono().ms;
    watch_worker(&w, set);
    out->ran_ms = clock_mono().ms - begun_ms;
    if (!w.ended) {
        pid_list_release(&w.tree);
        return err_set(err, ERR_OTHER, "the worker was gone before it was waited for");
    }
    out->code = WIFEXITED(w.status) ? WEXITSTATUS(w.status) : -1;
    out->signal = WIFSIGNALED(w.status) ? WTERMSIG(w.status) : 0;
    bool oom = killed_by_kernel_for_memory(&w);
    clear_tree(&w);
    cut_logs(&w, LOG_HEAD_BYTES + LOG_TAIL_BYTES); /* no writer is left */
    fill_exit(&w, oom);
    pid_list_release(&w.tree);
    return 0;
}
