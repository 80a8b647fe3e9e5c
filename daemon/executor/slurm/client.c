/*
 * The command's standard streams are files in memory, so that nothing has to be read while it runs
 * and no child of it can hold a pipe open. A call is done when its process has ended, by itself or
 * by the watchdog; its handles are closed before `done`, so that the owner may free itself there.
 */
#include "daemon/executor/slurm/client.h"

#include <assert.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/files/file.h"
#include "base/xalloc.h"

#define WATCHDOG_MS (150 * 1000) /* sbatch itself tries for 120 s (docs/slurm.md, rule 6) */
#define CHECK_MS    1000
#define PRINTED_MAX ((off_t)64 << 20)

enum { IN, OUT, ERR, STREAMS };

struct slurm_call {
    uv_process_t process;
    uv_timer_t watchdog;
    unsigned n_open; /* handles that are not closed yet */
    int fds[STREAMS];
    int64_t until_ms;
    bool has_process; /* its handle is open, also after a failed start */
    bool started;
    bool missing; /* there is no such program, or it may not be run */
    bool ended;   /* waited for: its number may be another's */
    bool killed;  /* by the watchdog, or for printing too much */
    int code;     /* -1: not by an exit */
    struct strbuf printed;
    struct strbuf said;
    slurm_reply_fn *done; /* NULL: given up */
    void *ctx;
};

static bool take(int fd, struct strbuf *out)
{
    struct stat st;
    if (fd < 0 || fstat(fd, &st) != 0 || st.st_size > PRINTED_MAX) {
        return false;
    }
    strbuf_reserve(out, (size_t)st.st_size + 1);
    ssize_t n = pread(fd, out->buf, (size_t)st.st_size, 0);
    out->len = n > 0 ? (size_t)n : 0;
    out->buf[out->len] = '\0';
    return n == st.st_size;
}

static void finish(struct slurm_call *c)
{
    const bool whole_out = take(c->fds[OUT], &c->printed);
    if (c->started) {
        (void)take(c->fds[ERR], &c->said);
    }
    const struct slurm_reply reply = {.whole = c->started && !c->killed && whole_out,
                                      .missing = c->missing,
                                      .code = c->started && !c->killed ? c->code : -1,
                                      .out = &c->printed,
                                      .err = &c->said};
    if (c->done != NULL) {
        c->done(c->ctx, &reply);
    }
    for (int i = 0; i < STREAMS; i++) {
        if (c->fds[i] >= 0) {
            (void)close(c->fds[i]);
        }
    }
    strbuf_release(&c->printed);
    strbuf_release(&c->said);
    free(c);
}

static void on_closed(uv_handle_t *handle)
{
    struct slurm_call *c = handle->data;
    assert(c->n_open > 0);
    if (--c->n_open == 0) {
        finish(c);
    }
}

static void close_all(struct slurm_call *c)
{
    uv_close((uv_handle_t *)&c->watchdog, on_closed);
    if (c->has_process) {
        c->n_open++;
        uv_close((uv_handle_t *)&c->process, on_closed);
    }
}

static void on_exit_of(uv_process_t *process, int64_t status, int signal)
{
    struct slurm_call *c = process->data;
    c->ended = true;
    c->code = signal == 0 ? (int)status : -1;
    close_all(c);
}

static void on_watchdog(uv_timer_t *timer)
{
    struct slurm_call *c = timer->data;
    struct stat st;
    const bool prints_on = fstat(c->fds[OUT], &st) == 0 && st.st_size > PRINTED_MAX;
    if (!c->started) {
        close_all(c);
    } else if (!c->killed && (prints_on || clock_mono().ms >= c->until_ms)) {
        c->killed = true;
        (void)uv_process_kill(&c->process, SIGKILL);
    }
}

static int open_streams(struct slurm_call *c, const char *input, struct err *err)
{
    static const char *const names[] = {"slurm-in", "slurm-out", "slurm-err"};
    int rc = 0;
    for (int i = 0; i < STREAMS; i++) {
        c->fds[i] = -1;
    }
    for (int i = 0; rc == 0 && i < STREAMS; i++) {
        const char *text = i == IN && input != NULL ? input : "";
        rc = file_in_memory(names[i], text, strlen(text), &c->fds[i], err);
    }
    return rc;
}

static int spawn(struct slurm_call *c, uv_loop_t *loop, const struct slurm_command *command,
                 struct err *err)
{
    uv_stdio_container_t stdio[STREAMS];
    for (int i = 0; i < STREAMS; i++) {
        stdio[i] = (uv_stdio_container_t){.flags = UV_INHERIT_FD, .data.fd = c->fds[i]};
    }
    union { /* libuv does not change them */
        char *const *in;
        char **out;
    } args = {.in = command->argv}, env = {.in = command->environment};
    const uv_process_options_t options = {.exit_cb = on_exit_of,
                                          .file = command->argv[0],
                                          .args = args.out,
                                          .env = env.out,
                                          .stdio_count = STREAMS,
                                          .stdio = stdio};
    c->process.data = c;
    c->has_process = true; /* libuv wants it closed even if it has not started */
    int rc = uv_spawn(loop, &c->process, &options);
    c->missing = rc == UV_ENOENT || rc == UV_EACCES; /* anything else may pass: EAGAIN, EMFILE */
    return rc == 0 ? 0 : err_set(err, ERR_IO, "%s: %s", command->argv[0], uv_strerror(rc));
}

struct slurm_call *slurm_call_start(uv_loop_t *loop, const struct slurm_command *command,
                                    slurm_reply_fn *done, void *ctx)
{
    struct slurm_call *c = xcalloc(1, sizeof(*c));
    struct err err;
    c->done = done;
    c->ctx = ctx;
    c->code = -1;
    c->n_open = 1;
    c->printed = c->said = (struct strbuf)STRBUF_INIT;
    c->until_ms = clock_mono().ms + WATCHDOG_MS;
    (void)uv_timer_init(loop, &c->watchdog);
    c->watchdog.data = c;
    int rc = open_streams(c, command->input, &err);
    if (rc == 0) {
        rc = spawn(c, loop, command, &err);
    }
    c->started = rc == 0;
    if (rc != 0) {
        strbuf_adds(&c->said, err.msg);
    }
    (void)uv_timer_start(&c->watchdog, on_watchdog, c->started ? CHECK_MS : 0, CHECK_MS);
    return c;
}

void slurm_call_give_up(struct slurm_call *c)
{
    c->done = NULL;
    if (c->started && !c->killed && !c->ended) {
        c->killed = true;
        (void)uv_process_kill(&c->process, SIGKILL);
    }
}
