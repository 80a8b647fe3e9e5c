/*
 * The files between daemon and shim. The daemon passes what to run as the shim's standard input, a
 * file in memory that the worker's tree inherits: a process that has it open belongs to the attempt
 * (SHIM_MARK). The shim answers with one file in the attempt's folder: start.json (who runs it),
 * which it keeps open and locked, and which becomes exit.json (the same, and how it ended).
 * docs/daemon.md.
 *
 * start.json is empty until its worker is about to be released; exit.json appears whole or not at
 * all. Both carry the attempt's id, so that a file that strayed into another folder is refused.
 * Older shims kept two files and a separate lock; those are still read.
 */
#ifndef DAEMON_SHIM_FILES_H
#define DAEMON_SHIM_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/files/digest.h"
#include "base/machine/gpu_list.h"
#include "base/strbuf.h"
#include "base/uuid.h"
#include "daemon/shim/pid.h"

#define SHIM_PROTOCOL    1
#define SHIM_CGROUP_SIZE ((size_t)4096)
#define SHIM_MARK        "prereg-attempt-" /* and the attempt's id: the name of the file in memory */
#define SHIM_OLD_TREE    "tree.lock"       /* what marks the tree of an older shim */

struct shim_spec {
    char attempt[UUID_TEXT_SIZE];
    char *exec;  /* absolute path that is executed */
    char **argv; /* NULL-terminated */
    size_t n_argv;
    char **env; /* NULL-terminated "NAME=value": the whole environment */
    size_t n_env;
    int64_t memory_bytes;         /* 0: no limit */
    int64_t grace_ms;             /* between SIGTERM and SIGKILL */
    int64_t threads;              /* for start.json; 0 unknown, so the next */
    char worker[DIGEST_HEX_SIZE]; /* digest of the worker's locked executable, or "" */
    bool shared;                  /* hosts share the state folder: the shim writes a heartbeat and
                                     obeys current-attempt (cluster.h) */
    bool takes_job;               /* the job's environment is the worker's, where env has no such
                                     name: lines of [run.slurm] setup have made it */
    struct gpu_list gpus;         /* that it is given, for start.json */
    bool asks_gpus;               /* a cluster gives them: the shim finds out which (job_gpus.h) */
    char pin_gpu[GPU_MODEL_SIZE]; /* the locked model of those; "" none */
};

/* Frees what the functions below added; all zero afterwards. */
void shim_spec_release(struct shim_spec *s);
void shim_spec_add_arg(struct shim_spec *s, const char *arg);
void shim_spec_add_env(struct shim_spec *s, const char *name, const char *value);
/* Appends it; ERR_RANGE when it is more than the shim reads. */
int shim_spec_text(const struct shim_spec *s, struct strbuf *out, struct err *err) MUST_CHECK;
int shim_spec_read(int fd, struct shim_spec *out, struct err *err) MUST_CHECK;

/* The file that the attempt's shim holds locked while it lives: start.json. */
char *shim_lock_path(const char *folder) __attribute__((returns_nonnull));
/* Whether a worker was ever about to run there. */
bool shim_was_started(const char *folder);

struct shim_start {
    char attempt[UUID_TEXT_SIZE];
    int64_t shim_pid;
    int64_t shim_start; /* clock ticks since boot */
    int64_t worker_pid;
    int64_t worker_start;
    char boot_id[40];
    char host[256];
    char kernel[256]; /* "" if an older shim did not write it; likewise those below */
    char cpu[128];
    int64_t threads; /* that the worker was given; -1 unknown */
    char worker[DIGEST_HEX_SIZE];
    char cgroup[SHIM_CGROUP_SIZE]; /* of the attempt; "" none */
    const struct gpu_list *gpus;   /* only when it is written; or NULL */
    char time[WALL_TEXT_SIZE];
};

/* fd: of start.json. Claims the room that exit.json will need, so that a full disk cannot lose it;
 * where the file system cannot, *reserved is false and blanks after start.json do it. */
int shim_exit_reserve(int fd, bool *reserved, struct err *err) MUST_CHECK;
/* Text of start.json without the worker, of which only its own process knows pid and start; that
 * process adds them and writes the file. shim_start_finish() makes system calls only (and one
 * snprintf) and returns an errno. */
int shim_start_prepare(const struct shim_start *s, bool reserved, struct strbuf *text,
                       struct err *err) MUST_CHECK;
int shim_start_finish(int fd, struct strbuf *text, bool reserved,
                      const struct pid_stat *worker) MUST_CHECK;
/* Also of an attempt that has ended. ERR_NOT_FOUND when nothing was started; ERR_CORRUPT when it is
 * torn or not of this attempt. */
int shim_start_read(const char *folder, const char *attempt, struct shim_start *out,
                    struct err *err) MUST_CHECK;

/* The GPUs that start.json, or exit.json, names; none when it is not there or names none. */
void shim_start_gpus(const char *folder, const char *attempt, struct gpu_list *out);

enum shim_reason {
    SHIM_EXITED,
    SHIM_SIGNALLED,
    SHIM_SPAWN_FAILED, /* never ran; `detail` says why */
    SHIM_MEMORY,       /* over its limit: killed by the shim, or by the kernel's OOM killer */
    SHIM_DISK,         /* ended badly while the disk was full */
    SHIM_MOVED,        /* ended badly after the attempt's folder was moved or removed */
    SHIM_REASON_NR
};

struct shim_exit {
    char attempt[UUID_TEXT_SIZE];
    enum shim_reason reason;
    int code;            /* -1 unless it exited */
    int signal;          /* 0 unless a signal ended it */
    bool asked_to_stop;  /* the shim had passed SIGTERM on, or killed it on request */
    int64_t left_behind; /* processes that outlived the worker and were killed */
    int64_t ran_ms;      /* by the monotonic clock; -1 if an older shim did not write it */
    int64_t user_ms;
    int64_t system_ms;
    int64_t max_rss_bytes;
    char time[WALL_TEXT_SIZE];
    char detail[200];
};

/* The word in exit.json. */
const char *shim_reason_name(enum shim_reason r);

/* fd is of start.json in folder. Its members stay in exit.json: `start` has them, or is all zero
 * when it is empty. */
int shim_exit_write(const char *folder, int fd, const struct shim_start *start,
                    const struct shim_exit *x, struct err *err) MUST_CHECK;
int shim_exit_read(const char *folder, const char *attempt, struct shim_exit *out,
                   struct err *err) MUST_CHECK;

#endif
