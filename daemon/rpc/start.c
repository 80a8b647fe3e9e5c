/* Starts `preregd serve` for a client that found no daemon, and waits until it answers. The new
 * daemon gets a session of its own, / as working directory and STATE/preregd.log as output. When
 * two clients start one at the same time, state.lock decides and both are served by the winner. */
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/files/file.h"
#include "base/layout/layout.h"
#include "base/xalloc.h"
#include "daemon/rpc/client.h"
#include "daemon/rpc/owner.h"
#include "state/tenure/record.h"

#define LOG_READ_MAX   ((size_t)64 << 20)
#define START_PAUSE_MS 20
#define START_LIMIT_MS 20000

extern char **environ;

/* Returns 0 or an errno, as posix_spawn() does. */
static int spawn_daemon(const char *program, const char *log, pid_t *pid)
{
    char *name = xstrdup("preregd");
    char *verb = xstrdup("serve");
    char *argv[] = {name, verb, NULL};
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attr;
    (void)posix_spawn_file_actions_init(&actions);
    (void)posix_spawnattr_init(&attr);
    (void)posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSID);
    (void)posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    (void)posix_spawn_file_actions_addopen(&actions, 1, log,
                                           O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW, 0600);
    (void)posix_spawn_file_actions_adddup2(&actions, 1, 2);
    (void)posix_spawn_file_actions_addchdir_np(&actions, "/");
    int why = posix_spawn(pid, program, &actions, &attr, argv, environ);
    (void)posix_spawn_file_actions_destroy(&actions);
    (void)posix_spawnattr_destroy(&attr);
    free(name);
    free(verb);
    return why;
}

/* Reports the last line of the daemon's log as the reason why it ended. */
static int say_last_words(const char *log, struct err *err)
{
    struct strbuf text = STRBUF_INIT;
    struct err ignored;
    if (file_read(log, LOG_READ_MAX, &text, &ignored) != 0) {
        strbuf_clear(&text);
    }
    while (text.len > 0 && text.buf[text.len - 1] == '\n') {
        text.buf[--text.len] = '\0';
    }
    const char *line = strrchr(text.buf, '\n');
    line = line == NULL ? text.buf : line + 1;
    int rc = err_set(err, ERR_NO_DAEMON, "preregd ended at once: %s (%s)", line, log);
    strbuf_release(&text);
    return rc;
}

/* Waits until a daemon answers, the child ends, or the time is up. Another daemon that was faster
 * is as good. */
static int wait_until_it_answers(const char *folder, const char *log, pid_t pid, struct err *err)
{
    int64_t until = clock_mono().ms + START_LIMIT_MS;
    bool ended = false;
    for (;;) {
        struct rpc_client *c = NULL;
        int rc = rpc_try_open(folder, &c, err);
        if (rc == 0) {
            rpc_close(c);
            return 0;
        }
        if (rc != ERR_NO_DAEMON) {
            return rc;
        }
        if (ended) {
            struct rpc_owner other;
            return rpc_owner_find(folder, &other) ? rpc_owner_unreachable(folder, err)
                                                  : say_last_words(log, err);
        }
        if (clock_mono().ms > until) {
            return err_set(err, ERR_NO_DAEMON, "preregd did not answer within %d s; see %s",
                           START_LIMIT_MS / 1000, log);
        }
        int status = 0;
        ended = waitpid(pid, &status, WNOHANG) == pid;
        clock_sleep_ms(START_PAUSE_MS);
    }
}

/* The state folder is made first, readable by this user only, because the log is opened in it
 * before the daemon runs. */
int rpc_start_daemon(const char *state_folder, struct err *err)
{
    struct strbuf own = STRBUF_INIT;
    pid_t pid = -1;
    if (path_of_self(&own, err) != 0 || dir_make_durable(state_folder, 0700, err) != 0 ||
        dir_check_private(state_folder, err) != 0) {
        strbuf_release(&own);
        return err->code;
    }
    char *program = path_join(own.buf, "preregd");
    char *local = tenure_local_folder(state_folder);
    char *log = path_join(local, LAYOUT_LOG);
    int why = 0;
    int rc;
    if (setenv("PREREGD_STATE", state_folder, 1) != 0) {
        rc = err_set_errno(err, errno, "set PREREGD_STATE");
    } else if ((why = spawn_daemon(program, log, &pid)) != 0) {
        rc = err_set_errno(err, why, "start %s", program);
    } else {
        rc = wait_until_it_answers(state_folder, log, pid, err);
    }
    free(program);
    free(log);
    free(local);
    strbuf_release(&own);
    return rc;
}
