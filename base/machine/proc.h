/* Running a child to its end and taking what it says: for --describe, ssh-keygen and the like.
 * Blocking; the daemon's loop uses libuv instead. */
#ifndef BASE_MACHINE_PROC_H
#define BASE_MACHINE_PROC_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/strbuf.h"

/* What main() of a program that runs children or opens files calls first. The parent may
 * have closed descriptors 0 to 2: then the next file would get that number, and be read or written
 * as if it were a standard stream; each that is missing becomes /dev/null (reads end, writes fail).
 * Or SIGCHLD is ignored: then no child's exit code could be had. */
void proc_mend_inherited(void);

enum proc_place {
    PROC_OWN_GROUP,   /* whatever it leaves behind ends with it */
    PROC_NO_TERMINAL, /* the same, in a session of its own: it cannot ask the user anything */
    PROC_TERMINAL,    /* in our group: it may ask on the terminal; what it leaves behind stays */
};

struct proc_spec {
    const char *exec;        /* what is executed; NULL: argv[0] */
    const char *const *argv; /* NULL-terminated; argv[0] is a path, or a name looked up in PATH */
    const char *const *env;  /* NULL-terminated; NULL: inherit */
    const char *cwd;         /* NULL: inherit */
    int64_t timeout_ms;      /* then SIGKILL to the whole process group; 0: none */
    size_t max_out_bytes;    /* of stdout; more is ERR_RANGE */
    enum proc_place place;
    int in_fd; /* becomes its stdin; 0: /dev/null. Both stay the caller's; both are above 2 */
    int fd3;   /* becomes its descriptor 3, /dev/fd/3; 0: none */
    const sigset_t *stops; /* blocked signals: one that is pending ends it (ERR_REFUSED); or NULL */
};

/* Blocks SIGINT, SIGTERM and SIGHUP but for those that are ignored (nohup), so that what was begun
 * can be cleaned up; they take effect when *before is the mask again. */
void proc_hold_signals(sigset_t *held, sigset_t *before);
/* Whether one of these is pending. */
bool proc_signal_waits(const sigset_t *held);

struct proc_result {
    int code;          /* exit code, -1 when a signal ended it */
    int signal;        /* 0, or the signal */
    struct strbuf out; /* stdout */
    struct strbuf err; /* the last 4 KiB of stderr */
};

/* 0 when the child was started and has ended, however it ended; without its exit code, as where
 * SIGCHLD is ignored, it is an error. result is always valid to release. */
int proc_run(const struct proc_spec *spec, struct proc_result *result, struct err *err) MUST_CHECK;
void proc_result_release(struct proc_result *result);

/* Executables that a user's commands name: found as a shell would, but without the current folder.
 */

/* Whether `path` is a regular file that may be executed. */
bool is_program(const char *path);

/* The first such file `name` in the absolute folders of $PATH; NULL when there is none. For
 * free(). */
char *find_program(const char *name);

#endif
