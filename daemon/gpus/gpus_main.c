/*
 * prereg-gpus [LIMIT_MS]: prints the GPUs of this machine as a JSON array (docs/gpus.md). A child
 * asks the drivers; this process only waits for it, and gives up without it when the time is up,
 * since a process that hangs inside a driver cannot even be killed.
 *
 * Exit codes: 0; 1 when something failed; 2 for bad words; 3 when a driver did not answer in time.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/files/file.h"
#include "base/machine/proc.h"
#include "base/terminal.h"
#include "base/text.h"
#include "daemon/gpus/gpus.h"

#define LIMIT_MS    10000
#define LIMIT_MOST  (60 * 60 * 1000)
#define EXIT_STUCK  3
#define PIECE_BYTES ((size_t)16 * 1024)

/* ---- in the child ---- */

/* Simulated GPUs, else those of the drivers; then what the environment lets see. */
static int list_all(struct gpu_list *out, struct strbuf *notes, struct err *err)
{
    const char *pretend = getenv(GPU_PRETEND);
    int rc = 0;
    if (pretend != NULL && pretend[0] != '\0') {
        rc = pretend_list(pretend, out, err);
    } else {
        if (!nvml_list(out, notes)) {
            nvidia_proc_list("/", out, notes);
        }
        amd_list("/", out, notes);
    }
    struct strbuf ignored = STRBUF_INIT;
    gpu_list_bound(out, GPU_NVIDIA, getenv("CUDA_VISIBLE_DEVICES"), &ignored);
    gpu_list_bound(out, GPU_AMD, getenv("ROCR_VISIBLE_DEVICES"), &ignored);
    if (rc == 0 && ignored.len > 0 && out->n > 0) {
        strbuf_addf(notes, "not read of the visible devices: %.100s\n", ignored.buf);
    }
    strbuf_release(&ignored);
    return rc;
}

static _Noreturn void run_child(int out_fd)
{
    struct gpu_list list = {0};
    struct strbuf notes = STRBUF_INIT;
    struct strbuf text = STRBUF_INIT;
    struct err err = {0};
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    int rc = list_all(&list, &notes, &err);
    if (rc == 0 && (rc = gpu_list_write(&list, &text, &err)) == 0) {
        rc = file_write_all(out_fd, text.buf, text.len, &err);
    }
    if (rc != 0) {
        terminal_printf(stderr, "%s\n", err.msg);
    } else {
        terminal_printf(stderr, "%s", notes.buf);
    }
    (void)fflush(stderr);
    _exit(rc == 0 ? EXIT_SUCCESS : EXIT_FAILURE);
}

/* ---- in the parent ---- */

/* Everything until the child closes its end; false when the time is up first. */
static bool collect(int fd, int64_t limit_ms, struct strbuf *out)
{
    const int64_t due = clock_mono().ms + limit_ms;
    for (;;) {
        struct pollfd p = {.fd = fd, .events = POLLIN};
        const int64_t left = due - clock_mono().ms;
        if (left <= 0 || out->len > GPU_JSON_MAX) {
            return false;
        }
        if (poll(&p, 1, (int)left) < 0 && errno != EINTR) {
            return false;
        }
        if (p.revents == 0) {
            continue;
        }
        strbuf_reserve(out, PIECE_BYTES);
        ssize_t n = read(fd, out->buf + out->len, PIECE_BYTES);
        if (n == 0) {
            return true;
        }
        out->len += n > 0 ? (size_t)n : 0;
        out->buf[out->len] = '\0';
    }
}

static int ask(int64_t limit_ms, struct strbuf *out)
{
    int ends[2];
    int status = 0;
    if (pipe2(ends, O_CLOEXEC) != 0) {
        terminal_printf(stderr, "pipe: %s\n", strerror(errno));
        return EXIT_FAILURE;
    }
    pid_t child = fork();
    if (child == 0) {
        run_child(ends[1]);
    }
    (void)close(ends[1]);
    if (child < 0) {
        terminal_printf(stderr, "fork: %s\n", strerror(errno));
        return EXIT_FAILURE;
    }
    if (!collect(ends[0], limit_ms, out)) {
        (void)kill(child, SIGKILL);
        terminal_printf(stderr, "a GPU driver did not answer within %lld ms\n",
                        (long long)limit_ms);
        return EXIT_STUCK; /* not waited for: it may never end */
    }
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    if (WIFSIGNALED(status)) {
        terminal_printf(stderr, "asking the GPU drivers ended by signal %d\n", WTERMSIG(status));
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : EXIT_FAILURE;
}

int main(int argc, char **argv)
{
    struct strbuf out = STRBUF_INIT;
    struct err err;
    int64_t limit_ms = LIMIT_MS;
    proc_mend_inherited();
    if (argc > 2 || (argc == 2 && text_to_int(argv[1], 1, LIMIT_MOST, &limit_ms, &err) != 0)) {
        terminal_printf(stderr,
                        "usage: prereg-gpus [LIMIT_MS]\nexpected a time limit from 1 to %d ms\n",
                        LIMIT_MOST);
        return EXIT_USAGE;
    }
    int code = ask(limit_ms, &out);
    if (code == EXIT_SUCCESS) {
        strbuf_addc(&out, '\n');
        code = file_write_all(STDOUT_FILENO, out.buf, out.len, &err) == 0 ? code : EXIT_FAILURE;
    }
    strbuf_release(&out);
    return code;
}
