/*
 * Finds the holder of a state folder. Whether it is held is found by trying the locks of state.lock
 * and of the folder (the former may have been deleted). The holder is read from /proc/locks, or,
 * where that does not name it (another file system's numbers, a container), from the number that
 * the daemon writes into state.lock.
 */
#include "daemon/rpc/owner.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "base/files/file.h"
#include "base/layout/layout.h"
#include "base/strbuf.h"
#include "base/text.h"
#include "daemon/rpc/schema.h"
#include "state/tenure/record.h"

#define LOCKS_MAX     ((size_t)16 << 20)
#define STAT_MAX      4096
#define NUMBER_MAX    64
#define PID_MAX_LIMIT ((int64_t)4194304) /* of the kernel */

/* "4711 (preregd) S ...": the name may hold anything, so that the state is after the last ')'. */
static void look_at_process(struct rpc_owner *owner)
{
    char path[64];
    struct strbuf text = STRBUF_INIT;
    struct err ignored;
    (void)snprintf(path, sizeof(path), "/proc/%ld/stat", (long)owner->pid);
    if (file_read(path, STAT_MAX, &text, &ignored) == 0) {
        const char *begin = strchr(text.buf, '(');
        const char *end = strrchr(text.buf, ')');
        if (begin != NULL && end != NULL && end > begin && end[1] == ' ') {
            (void)snprintf(owner->name, sizeof(owner->name), "%.*s", (int)(end - begin - 1),
                           begin + 1);
            owner->is_stopped = end[2] == 'T' || end[2] == 't';
        }
    }
    strbuf_release(&text);
}

static pid_t pid_of(const char *word)
{
    int64_t pid = 0;
    struct err ignored;
    return text_to_int(word, 1, PID_MAX_LIMIT, &pid, &ignored) == 0 ? (pid_t)pid : 0;
}

/* "1: FLOCK ADVISORY WRITE 4711 08:01:131 0 EOF": the holder, when it is a lock of this place. A
 * line that waits for another ("1: -> FLOCK") has one word more and is passed over. */
static pid_t holder_in_line(char *line, const char *place)
{
    enum { KIND = 1, MODE = 3, PID, PLACE, N_WORDS };
    char *words[N_WORDS] = {NULL};
    char *rest = NULL;
    size_t n = 0;
    for (char *w = strtok_r(line, " ", &rest); w != NULL && n < N_WORDS;
         w = strtok_r(NULL, " ", &rest)) {
        words[n++] = w;
    }
    if (n < N_WORDS || strcmp(words[KIND], "FLOCK") != 0 || strcmp(words[MODE], "WRITE") != 0) {
        return 0;
    }
    return strcmp(words[PLACE], place) == 0 ? pid_of(words[PID]) : 0;
}

/* Compares device and inode: another file system may use the same inode number. */
pid_t rpc_owner_in_locks(char *locks, const struct stat *st)
{
    char place[64];
    char *rest = NULL;
    pid_t pid = 0;
    (void)snprintf(place, sizeof(place), "%02x:%02x:%llu", major(st->st_dev), minor(st->st_dev),
                   (unsigned long long)st->st_ino);
    for (char *line = strtok_r(locks, "\n", &rest); line != NULL && pid == 0;
         line = strtok_r(NULL, "\n", &rest)) {
        pid = holder_in_line(line, place);
    }
    return pid;
}

/* The process that holds the flock on this file; 0: /proc/locks does not name it. */
static pid_t holder_of(const char *path)
{
    struct stat st;
    struct strbuf text = STRBUF_INIT;
    struct err ignored;
    pid_t pid = 0;
    if (stat(path, &st) == 0 && file_read("/proc/locks", LOCKS_MAX, &text, &ignored) == 0) {
        pid = rpc_owner_in_locks(text.buf, &st);
    }
    strbuf_release(&text);
    return pid;
}

/* The number in state.lock, if a process has that number now. */
static pid_t noted_owner(const char *lock)
{
    struct strbuf text = STRBUF_INIT;
    struct err ignored;
    pid_t pid = 0;
    if (file_read(lock, NUMBER_MAX, &text, &ignored) == 0) {
        text.buf[strcspn(text.buf, "\n")] = '\0';
        pid = pid_of(text.buf);
    }
    strbuf_release(&text);
    return pid > 0 && kill(pid, 0) != 0 && errno == ESRCH ? 0 : pid;
}

bool rpc_owner_find(const char *state, struct rpc_owner *out)
{
    char *state_folder = tenure_local_folder(state);
    char *lock = path_join(state_folder, LAYOUT_STATE_LOCK);
    bool lock_held = false;
    bool folder_held = false;
    struct err ignored;
    *out = (struct rpc_owner){.name = "preregd"};
    /* An error leaves "not held". */
    (void)!lock_is_held(lock, &lock_held, &ignored);
    (void)!lock_is_held(state_folder, &folder_held, &ignored);
    if (lock_held || folder_held) {
        out->pid = holder_of(lock_held ? lock : state_folder);
        out->pid = out->pid == 0 && lock_held ? noted_owner(lock) : out->pid;
    }
    if (out->pid > 0) {
        look_at_process(out);
    }
    free(lock);
    free(state_folder);
    return lock_held || folder_held;
}

/* The messages common to a daemon without a socket and one that is silent: an unknown holder,
 * another program, a stopped process. 0: none of them applies, and the caller's own message is set.
 */
static int say_common(int code, const char *state_folder, const struct rpc_owner *owner,
                      struct err *err)
{
    const long pid = (long)owner->pid;
    if (pid == 0) {
        return err_set(err, code,
                       "a process whose number is not known holds %s and does not answer (`ps -C "
                       "preregd` lists the daemons)",
                       state_folder);
    }
    if (strcmp(owner->name, "preregd") != 0) {
        return err_set(err, code, "%s (process %ld) holds %s; wait until it ends", owner->name, pid,
                       state_folder);
    }
    if (owner->is_stopped) {
        return err_set(err, code,
                       "preregd (process %ld) is stopped and cannot answer: `kill -CONT %ld` lets "
                       "it go on",
                       pid, pid);
    }
    return 0;
}

/* The daemon of a shared state folder may be on another host, which its tenure names. */
static bool is_elsewhere(const char *state_folder, struct tenure *last)
{
    struct tenure own;
    struct err ignored;
    bool found = false;
    tenure_init(&own);
    return tenure_read(state_folder, last, &found, &ignored) == 0 && found && !last->released &&
           !tenure_is_same_host(last, &own);
}

int rpc_owner_unreachable(const char *state_folder, struct err *err)
{
    struct rpc_owner owner;
    struct tenure last;
    if (is_elsewhere(state_folder, &last)) {
        char *who = tenure_text(&last);
        int rc = err_set(err, ERR_NO_DAEMON,
                         "the daemon of %.80s is on another host (%.120s): ask there", state_folder,
                         who);
        free(who);
        return rc;
    }
    if (!rpc_owner_find(state_folder, &owner)) {
        return err_set(err, ERR_NO_DAEMON,
                       "no daemon answers at %s/" LAYOUT_SOCKET
                       " (`preregd serve` or `preregd submit` starts one)",
                       state_folder);
    }
    const long pid = (long)owner.pid;
    const int rc = say_common(ERR_NO_DAEMON, state_folder, &owner, err);
    return rc != 0 ? rc
                   : err_set(err, ERR_NO_DAEMON,
                             "preregd (process %ld) does not listen at %s/" LAYOUT_SOCKET
                             ": it is starting, or makes a deleted socket again within seconds. If "
                             "not: `kill %ld`, then `preregd serve`",
                             pid, state_folder, pid);
}

int rpc_owner_silent(const char *state_folder, int64_t waited_ms, struct err *err)
{
    struct rpc_owner owner;
    const double seconds = (double)waited_ms / 1e3;
    if (!rpc_owner_find(state_folder, &owner)) {
        return err_set(err, ERR_TIMEOUT, "the daemon did not answer within %.3g s", seconds);
    }
    const long pid = (long)owner.pid;
    const int rc = say_common(ERR_TIMEOUT, state_folder, &owner, err);
    return rc != 0 ? rc
                   : err_set(err, ERR_TIMEOUT,
                             "preregd (process %ld) did not answer within %.3g s; preregd.log may "
                             "say why. `kill %ld` (or `kill -9 %ld`) ends it, what runs goes on, "
                             "and `preregd serve` starts the next",
                             pid, seconds, pid, pid);
}
