/* preregd: `serve` runs the daemon of a state folder, `submit` hands it a program. Reads the
 * command line, opens the log and maps errors to exit codes; everything else is shell.c's and
 * submit.c's. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files/file.h"
#include "base/layout/layout.h"
#include "base/log.h"
#include "base/machine/proc.h"
#include "base/terminal.h"
#include "base/text.h"
#include "base/xalloc.h"
#include "daemon/rpc/client.h"
#include "daemon/serve.h"
#include "daemon/shared_state.h"
#include "daemon/submit.h"

#define SLURM_WAIT_MIN_MS ((int64_t)1000)
#define SLURM_WAIT_MS     ((int64_t)20 * 1000)
#define SLURM_WAIT_MAX_MS ((int64_t)24 * 60 * 60 * 1000)

static const char usage_text[] =
    "usage: preregd serve [--foreground] [--http [ADDRESS:PORT]]\n"
    "                     [--database FOLDER [--take-over]]\n"
    "       preregd submit GRID.TOML [--wait] [--json] [--run] [--adopt-work]\n"
    "                      [--no-slurm-check] [--slurm-wait TIME]\n"
    "       preregd --version | --help\n"
    "\n"
    "serve    is the daemon of the state folder ($PREREGD_STATE, else $XDG_STATE_HOME/preregd,\n"
    "         else ~/.local/state/preregd). It stays in this terminal until SIGTERM, SIGINT or\n"
    "         `preregctl stop`; what runs goes on then, and the next daemon adopts it. It logs to\n"
    "         STATE/preregd.log, with --foreground to standard error instead. (`submit` starts "
    "one\n"
    "         in the background.)\n"
    "         --http turns the live page on, at a loopback address (127.0.0.1:0: any free port);\n"
    "         `preregctl open` prints where it is.\n"
    "         --database (PREREGD_DATABASE) is for a state folder on a file system that hosts "
    "share:\n"
    "         database, socket and log are then in FOLDER, on a local disk of this host. It "
    "refuses\n"
    "         while another host's daemon is not provably gone; --take-over lets a person decide.\n"
    "submit   hands a locked program to it, and starts it when none answers. --wait follows to "
    "the\n"
    "         verdict. A command of the program's own that was never run here is run after a\n"
    "         question on the terminal, or with --run (PREREGD_RUN=1). --adopt-work takes its "
    "cells\n"
    "         in [run] work from another state folder, which is gone for good.\n"
    "         A program with stages under Slurm is first checked as `preregctl check --slurm` does "
    "it:\n"
    "         what could never run is refused; a full queue, or nodes that are down, is a "
    "warning.\n"
    "         The probe job waits 20s in the queue, or TIME; --no-slurm-check asks nothing.\n"
    "\n"
    "exit codes: 0, 1 anything else, 2 usage, 3 lock mismatch or tampering, 4 INDETERMINATE,\n"
    "            5 invalid program, 6 no daemon, 7 VOID,\n"
    "            8 taken over by another daemon\n";

static int usage(void)
{
    (void)fputs(usage_text, stderr);
    return EXIT_USAGE;
}

static int fail(const struct err *err)
{
    terminal_printf(stderr, "preregd: %s\n", err->msg);
    return (int)err_exit_code(err->code);
}

/* The folder must belong to this user alone before anything is written to it. */
static int open_log(const struct serve_options *o, bool foreground, struct err *err)
{
    char *local = NULL;
    int rc = shared_state_local(o, &local, err);
    if (rc == 0) {
        char *path = path_join(local, LAYOUT_LOG);
        rc = log_open(foreground ? NULL : path, err);
        free(path);
    }
    free(local);
    return rc;
}

/* Only at a terminal: a script must not answer for a person. */
static bool confirm(const char *question)
{
    char answer[16] = "";
    if (isatty(STDIN_FILENO) != 1 || isatty(STDERR_FILENO) != 1) {
        return false;
    }
    terminal_printf(stderr, "%s [yes/no] ", question);
    return fgets(answer, sizeof(answer), stdin) != NULL && strcmp(answer, "yes\n") == 0;
}

/* What follows --http may be left out. False: what is there is not an address. */
static bool http_option_read(int argc, char **argv, int *i, struct loopback_address *at)
{
    struct err err;
    const char *text = "127.0.0.1:0";
    if (*i + 1 < argc && argv[*i + 1][0] != '-') {
        text = argv[++*i];
    }
    if (loopback_parse(text, at, &err) == 0) {
        return true;
    }
    terminal_printf(stderr, "preregd: --http: %s\n", err.msg);
    return false;
}

static bool serve_options_read(int argc, char **argv, struct serve_options *o, bool *foreground)
{
    static struct loopback_address page;
    for (int i = 2; i < argc; i++) {
        if (strcmp(argv[i], "--foreground") == 0) {
            *foreground = true;
        } else if (strcmp(argv[i], "--take-over") == 0) {
            o->take_over = true;
        } else if (strcmp(argv[i], "--database") == 0 && i + 1 < argc) {
            o->database = argv[++i];
        } else if (strcmp(argv[i], "--http") == 0) {
            o->http = &page;
            if (!http_option_read(argc, argv, &i, &page)) {
                return false;
            }
        } else {
            return false;
        }
    }
    return o->database == NULL || o->database[0] != '\0';
}

/* With umask 077: nothing in the state folder is for other users. */
static int serve(int argc, char **argv)
{
    const char *database = getenv("PREREGD_DATABASE");
    struct serve_options o = {
        .confirm = confirm, .database = database != NULL && database[0] != '\0' ? database : NULL};
    bool foreground = false;
    char *state = NULL;
    struct err err;
    if (!serve_options_read(argc, argv, &o, &foreground)) {
        return usage();
    }
    (void)umask(077);
    int rc = rpc_state_folder(&state, &err);
    if (rc == 0) {
        o.state = state;
        rc = open_log(&o, foreground, &err);
    }
    if (rc == 0) {
        rc = serve_state(&o, &err);
        if (rc != 0) {
            log_error("%s", err.msg);
        }
    }
    free(state);
    return rc == 0 ? EXIT_OK : fail(&err);
}

/* False: the words are not those of `submit`. */
static bool submit_options_read(int argc, char **argv, struct submit_options *o)
{
    struct err ignored;
    for (int i = 2; i < argc; i++) {
        if (strcmp(argv[i], "--wait") == 0) {
            o->wait = true;
        } else if (strcmp(argv[i], "--json") == 0) {
            o->json = true;
        } else if (strcmp(argv[i], "--run") == 0) {
            o->run = true;
        } else if (strcmp(argv[i], "--adopt-work") == 0) {
            o->adopt_work = true;
        } else if (strcmp(argv[i], "--no-slurm-check") == 0) {
            o->no_slurm_check = true;
        } else if (strcmp(argv[i], "--slurm-wait") == 0 && i + 1 < argc) {
            if (text_to_ms(argv[++i], &o->slurm_wait_ms, &ignored) != 0 ||
                o->slurm_wait_ms < SLURM_WAIT_MIN_MS || o->slurm_wait_ms > SLURM_WAIT_MAX_MS) {
                terminal_printf(stderr,
                                "preregd: --slurm-wait: \"%s\" is not a time from 1s to 24h\n",
                                argv[i]);
                return false;
            }
        } else if (argv[i][0] != '-' && o->path == NULL) {
            o->path = argv[i];
        } else {
            return false;
        }
    }
    return o->path != NULL;
}

/* It would submit here what the user of $PREREGD_HOST means for another machine. */
static int check_host(struct err *err)
{
    const char *host = getenv("PREREGD_HOST");
    return host == NULL || host[0] == '\0'
               ? 0
               : err_set(err, ERR_USAGE,
                         "`submit` works on files of the machine where it runs: run it on %.60s "
                         "(`ssh -t %.60s preregd submit …`), or unset PREREGD_HOST",
                         host, host);
}

static int submit(int argc, char **argv)
{
    struct submit_options o = {.slurm_wait_ms = SLURM_WAIT_MS};
    enum exit_code code = EXIT_OK;
    struct err err;
    if (!submit_options_read(argc, argv, &o)) {
        return usage();
    }
    return check_host(&err) == 0 && submit_run(&o, &code, &err) == 0 ? (int)code : fail(&err);
}

int main(int argc, char **argv)
{
    proc_mend_inherited();
    if (argc >= 2 && strcmp(argv[1], "serve") == 0) {
        return serve(argc, argv);
    }
    if (argc >= 2 && strcmp(argv[1], "submit") == 0) {
        return submit(argc, argv);
    }
    if (argc == 2 && strcmp(argv[1], "--version") == 0) {
        terminal_printf(stdout, "preregd %s\n", PREREGD_VERSION);
        return EXIT_OK;
    }
    if (argc == 2 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "help") == 0)) {
        (void)fputs(usage_text, stdout);
        return EXIT_OK;
    }
    return usage();
}
