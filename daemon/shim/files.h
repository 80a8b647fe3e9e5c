/*
 * The small files of an attempt folder through which daemon and shim speak: shim.json (what to
 * run), start.json (who runs it), exit.json (how it ended), and the two locks. docs/daemon.md.
 *
 * start.json is there before the worker is let go; exit.json appears whole or not at all. Both
 * carry the attempt's id, so that a file that strayed into another folder is refused.
 */
#ifndef DAEMON_SHIM_FILES_H
#define DAEMON_SHIM_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/digest.h"
#include "base/err.h"
#include "base/uuid.h"

#define SHIM_SPEC_FILE   "shim.json"
#define SHIM_START_FILE  "start.json"
#define SHIM_EXIT_FILE   "exit.json"
#define SHIM_LOCK_FILE   "shim.lock"
#define SHIM_TREE_FILE   "tree.lock"
#define SHIM_STDOUT_FILE "stdout.log"
#define SHIM_STDERR_FILE "stderr.log"
#define SHIM_OWN_LOG     "shim.log"
#define SHIM_PROTOCOL    1
#define SHIM_FILE_MAX    ((size_t)1024 * 1024)
#define SHIM_CGROUP_SIZE ((size_t)4096)

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
};

void shim_spec_release(struct shim_spec *s);
void shim_spec_add_arg(struct shim_spec *s, const char *arg);
void shim_spec_add_env(struct shim_spec *s, const char *name, const char *value);
/* ERR_RANGE when it is more than the shim reads. */
int shim_spec_write(const char *folder, const struct shim_spec *s, struct err *err) MUST_CHECK;
int shim_spec_read(const char *folder, struct shim_spec *out, struct err *err) MUST_CHECK;

struct shim_start {
    char attempt[UUID_TEXT_SIZE];
    int64_t shim_pid;
    int64_t shim_start; /* clock ticks since boot */
    int64_t worker_pid;
    int64_t worker_start;
    char boot_id[40];
    char host[256];
    char kernel[256]; /* "" where an older shim did not say; so the next ones */
    char cpu[128];
    int64_t threads; /* that the worker was given; -1 unknown */
    char worker[DIGEST_HEX_SIZE];
    char cgroup[SHIM_CGROUP_SIZE]; /* of the attempt; "" none */
};

int shim_start_write(const char *folder, const struct shim_start *s, struct err *err) MUST_CHECK;
/* ERR_NOT_FOUND when there is none; ERR_CORRUPT when it is torn or not of this attempt. */
int shim_start_read(const char *folder, const char *attempt, struct shim_start *out,
                    struct err *err) MUST_CHECK;

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
    bool asked_to_stop;  /* the shim had passed SIGTERM on, or killed it when told to */
    int64_t left_behind; /* processes that outlived the worker and were killed */
    int64_t ran_ms;      /* by the monotonic clock; -1 where an older shim did not say */
    int64_t user_ms;
    int64_t system_ms;
    int64_t max_rss_bytes;
    char time[WALL_TEXT_SIZE];
    char detail[200];
};

const char *shim_reason_name(enum shim_reason r);

/* Claims the room that exit.json will need, so that a full disk cannot lose it. */
int shim_exit_reserve(const char *folder, struct err *err) MUST_CHECK;
int shim_exit_write(const char *folder, const struct shim_exit *x, struct err *err) MUST_CHECK;
int shim_exit_read(const char *folder, const char *attempt, struct shim_exit *out,
                   struct err *err) MUST_CHECK;

#endif
