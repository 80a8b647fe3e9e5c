/*
 * main: finds the command, parses its options, runs it, and turns its result into an exit code.
 * Errors are printed here and nowhere else, as JSON when that was asked for. Output is flushed
 * before success is reported, so that a full disk is an error.
 */
#include <errno.h>
#include <locale.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/files/file.h"
#include "base/machine/proc.h"
#include "base/text.h"
#include "base/xalloc.h"
#include "ctl/ctl.h"
#include "ctl/host.h"
#include "ctl/text/out.h"

/* Whether --json or -j is among the arguments: errors found while parsing them must be JSON,
 * too. */
static bool wants_json(char *const *argv)
{
    for (; *argv != NULL && strcmp(*argv, "--") != 0; argv++) {
        if (strcmp(*argv, "--json") == 0 || strcmp(*argv, "-j") == 0) {
            return true;
        }
    }
    return false;
}

/* Reports an unknown command with the nearest known one. */
static int unknown_command(const char *name, bool json)
{
    struct err err;
    const char **known = xcalloc(ctl_n_commands, sizeof(*known));
    for (size_t i = 0; i < ctl_n_commands; i++) {
        known[i] = ctl_commands[i].name;
    }
    const char *near = text_nearest(name, known, ctl_n_commands);
    (void)err_set(&err, ERR_USAGE,
                  near ? "no command %.80s; did you mean %s?" : "no command %.80s%s", name,
                  near ? near : " (see `preregctl help`)");
    out_error(NULL, json, &err);
    free(known);
    return EXIT_USAGE;
}

/* `preregctl submit` executes preregd, which starts the daemon: users expect it here. Returns
 * after an error only. */
static int submit(char **argv, const char *given)
{
    struct strbuf folder = STRBUF_INIT;
    struct err err = {0};
    const char *host = NULL;
    int rc = host_choose(NULL, given, &host, &err);
    if (rc == 0) {
        rc = path_of_self(&folder, &err);
    }
    char *program = path_join(folder.buf, "preregd");
    if (rc == 0) {
        argv[0] = program;
        (void)execv(program, argv);
        rc = err_set_errno(&err, errno, "start %s", program);
    }
    out_error("submit", false, &err);
    free(program);
    strbuf_release(&folder);
    return (int)err_exit_code(rc);
}

/* Runs the command, here or on the host that is chosen. */
static int run(const struct ctl_command *c, char **argv, const char *given, bool json)
{
    struct ctl_options o;
    struct err err = {0};
    enum exit_code code = EXIT_OK;
    const char *host = NULL;
    int argc = 0;
    while (argv[argc] != NULL) {
        argc++;
    }
    int rc = ctl_options_parse(c, argc, argv, &o, &err);
    if (rc == 0 && o.help) {
        ctl_print_help(c);
        return EXIT_OK;
    }
    if (rc == 0) {
        rc = host_choose(c, given, &host, &err);
    }
    if (rc == 0) {
        rc = host != NULL ? host_run(host, argv, &code, &err) : c->run(&o, &code, &err);
    }
    if (rc == 0) {
        rc = out_flush(&err);
    }
    if (rc != 0) {
        out_error(c->name, o.json || (rc == ERR_USAGE && json), &err);
        return (int)err_exit_code(rc);
    }
    return (int)code;
}

/* Rewrites `preregctl --state FOLDER COMMAND` to `preregctl COMMAND --state FOLDER`. */
static void move_state_back(int argc, char **argv)
{
    int n = 0;
    if (argc > 2 && strncmp(argv[1], "--state=", 8) == 0) {
        n = 1;
    } else if (argc > 3 && strcmp(argv[1], "--state") == 0) {
        n = 2;
    }
    if (n > 0) {
        char *command = argv[n + 1];
        memmove(&argv[2], &argv[1], (size_t)n * sizeof(*argv));
        argv[1] = command;
    }
}

int main(int argc, char **argv)
{
    /* before any file is opened: a closed standard descriptor would be reused */
    proc_mend_inherited();
    /* for the terminal's character set only; numbers keep the C form */
    (void)setlocale(LC_CTYPE, "");
    if (argc < 2) {
        ctl_print_help(NULL);
        return EXIT_USAGE;
    }
    const char *host = NULL;
    struct err err = {0};
    const bool json = wants_json(argv + 1);
    if (host_take(&argc, argv, &host, &err) != 0) {
        out_error(NULL, json, &err);
        return EXIT_USAGE;
    }
    move_state_back(argc, argv);
    const char *name = argc < 2 ? "help" : argv[1];
    if (strcmp(name, "--version") == 0 || strcmp(name, "-V") == 0) {
        name = "version";
    } else if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0) {
        name = "help";
    }
    const struct ctl_command *c = ctl_find_command(name);
    if (c == NULL && strcmp(name, "submit") == 0) {
        return submit(argv, host);
    }
    return c == NULL ? unknown_command(name, json) : run(c, argv + 1, host, json);
}
