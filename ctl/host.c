/*
 * Runs a command of preregctl on another machine. ssh hands one text to the shell of HOST, so every
 * word is quoted there, and a small script compares the versions before it runs the command. The
 * script's own failures have exit codes that no command of preregctl has. With a terminal on both
 * ends of this process ssh gives one to the command, so --watch draws as it does here.
 */
#include "ctl/host.h"

#include <errno.h>
#include <fcntl.h>
#include <langinfo.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define SCRIPT_ABSENT  97  /* no preregctl there that runs */
#define SCRIPT_VERSION 98  /* of another version */
#define SSH_FAILED     255 /* ssh's own; it has said why */
#define HOST_MAX       ((size_t)255)

int host_take(int *argc, char **argv, const char **host, struct err *err)
{
    int to = 1;
    bool over = false;
    *host = NULL;
    for (int from = 1; from < *argc; from++) {
        char *word = argv[from];
        over = over || strcmp(word, "--") == 0;
        const bool joined = strncmp(word, "--host=", 7) == 0;
        if (over || (!joined && strcmp(word, "--host") != 0)) {
            argv[to++] = word;
            continue;
        }
        if (*host != NULL) {
            return err_set(err, ERR_USAGE, "--host is given twice");
        }
        if (!joined && from + 1 >= *argc) {
            return err_set(err, ERR_USAGE, "--host needs a value");
        }
        *host = joined ? word + 7 : argv[++from];
    }
    *argc = to;
    argv[to] = NULL;
    return 0;
}

/* ssh would read a word that begins with "-" as an option of its own. */
static int check_name(const char *host, struct err *err)
{
    bool fits = host[0] != '\0' && host[0] != '-' && strlen(host) <= HOST_MAX;
    for (const char *c = host; fits && *c != '\0'; c++) {
        fits = (unsigned char)*c > ' ' && *c != '\x7f';
    }
    return fits ? 0
                : err_set(err, ERR_USAGE,
                          "\"%.80s\" cannot be a host: expected HOST or USER@HOST as ssh takes it",
                          host);
}

/* $PREREGD_HOST concerns the commands that ask about a state folder; --host is an order. */
int host_choose(const struct ctl_command *c, const char *given, const char **host, struct err *err)
{
    const char *named = given != NULL ? given : getenv("PREREGD_HOST");
    *host = NULL;
    if (given == NULL && (named == NULL || named[0] == '\0')) {
        return 0;
    }
    if (given == NULL && c != NULL && (c->options & CTL_HERE) != 0) {
        return 0;
    }
    int rc = check_name(named, err);
    if (rc != 0) {
        return given != NULL ? err_wrap(err, "--host") : err_wrap(err, "PREREGD_HOST");
    }
    if (c == NULL || (c->options & CTL_HOST) == 0) {
        return err_set(err, ERR_USAGE,
                       "`%s` works on files of the machine where it runs: run it on %.80s (`ssh -t "
                       "%.80s preregctl …`)%s",
                       c == NULL ? "submit" : c->name, named, named,
                       given != NULL ? ", or leave --host out" : ", or unset PREREGD_HOST");
    }
    *host = named;
    return 0;
}

/* "$1" is our version as `preregctl --version` prints it, "$2" the locale, "$3" NO_COLOR. The login
 * shell of HOST sees quoted words only; sh runs the rest, whatever that shell is. */
void host_script(struct strbuf *out, char *const *argv, const char *version, bool utf8,
                 bool no_colour)
{
    static const char SCRIPT[] =
        "have=$(preregctl --version) || exit 97; "
        "[ \"$have\" = \"$1\" ] || { printf \"%s\\n\" \"$have\" >&2; exit 98; }; "
        "LC_ALL=$2; NO_COLOR=$3; export LC_ALL NO_COLOR; unset PREREGD_HOST; "
        "shift 3; exec preregctl \"$@\"";
    struct strbuf own = STRBUF_INIT;
    strbuf_adds(out, "exec sh -c ");
    strbuf_add_quoted(out, SCRIPT);
    strbuf_adds(out, " sh ");
    strbuf_addf(&own, "preregctl %s", version);
    strbuf_add_quoted(out, own.buf);
    strbuf_addf(out, " %s '%s'", utf8 ? "C.UTF-8" : "C", no_colour ? "1" : "");
    for (; *argv != NULL; argv++) {
        strbuf_addc(out, ' ');
        strbuf_add_quoted(out, *argv);
    }
    strbuf_release(&own);
}

/* In the child: ssh ends with us, and Ctrl-C reaches it as the shell left that. */
static void execute(const char *const *words, pid_t parent, int say)
{
    (void)signal(SIGINT, SIG_DFL);
    (void)signal(SIGQUIT, SIG_DFL);
    (void)prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() == parent) {
        (void)execvp(words[0], (char *const *)(uintptr_t)words); /* execvp changes nothing */
    }
    const int why = errno;
    (void)!write(say, &why, sizeof(why));
    _exit(127);
}

/* Starts ssh and waits for it. *why is the errno of an execution that failed, else 0. */
static int run_words(const char *const *words, int *status, int *why, struct err *err)
{
    int pipes[2];
    const pid_t self = getpid();
    *why = 0;
    if (pipe2(pipes, O_CLOEXEC) != 0) {
        return err_set_errno(err, errno, "pipe");
    }
    (void)signal(SIGINT, SIG_IGN); /* ssh decides, and we report its end */
    (void)signal(SIGQUIT, SIG_IGN);
    const pid_t pid = fork();
    if (pid == 0) {
        execute(words, self, pipes[1]);
    }
    const int forked = errno;
    (void)close(pipes[1]);
    if (pid > 0 && read(pipes[0], why, sizeof(*why)) != (ssize_t)sizeof(*why)) {
        *why = 0;
    }
    (void)close(pipes[0]);
    if (pid < 0) {
        return err_set_errno(err, forked, "fork");
    }
    while (waitpid(pid, status, 0) != pid) {
        if (errno != EINTR) {
            return err_set_errno(err, errno, "wait for ssh");
        }
    }
    return 0;
}

/* The end of ssh as ours: 0 to 7 are those of the command. */
static int take_end(const char *host, const char *ssh, int status, enum exit_code *code,
                    struct err *err)
{
    const int ended = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    if (ended >= 0 && ended <= EXIT_VOID) {
        *code = (enum exit_code)ended;
        return 0;
    }
    if (ended == SCRIPT_VERSION) {
        return err_set(
            err, ERR_VERSION,
            "%.80s has another version of preregctl (printed above), this is %s: install "
            "the same one on both machines",
            host, PREREGD_VERSION);
    }
    if (ended == SCRIPT_ABSENT || ended == 127) {
        return err_set(
            err, ERR_NOT_FOUND,
            "%.80s has no preregctl in the PATH of commands that ssh runs there: install "
            "it, or add its folder to that PATH",
            host);
    }
    if (ended == SSH_FAILED) {
        return err_set(err, ERR_NO_DAEMON, "%.80s cannot be reached: %.80s said why", host, ssh);
    }
    return err_set(err, ERR_OTHER, "the command on %.80s ended with %s %d", host,
                   ended >= 0 ? "code" : "signal", ended >= 0 ? ended : WTERMSIG(status));
}

/* Without a terminal ssh must not read our standard input, which may be a script's. */
int host_run(const char *host, char *const *argv, enum exit_code *code, struct err *err)
{
    const char *named = getenv("PREREGD_SSH");
    const char *no_colour = getenv("NO_COLOR");
    const char *ssh = named != NULL && named[0] != '\0' ? named : "ssh";
    const bool terminal = isatty(STDIN_FILENO) == 1 && isatty(STDOUT_FILENO) == 1;
    struct strbuf script = STRBUF_INIT;
    int status = 0;
    int why = 0;
    host_script(&script, argv, PREREGD_VERSION, strcmp(nl_langinfo(CODESET), "UTF-8") == 0,
                no_colour != NULL && no_colour[0] != '\0');
    const char *const words[] = {ssh, terminal ? "-t" : "-nT", "--", host, script.buf, NULL};
    int rc = run_words(words, &status, &why, err);
    if (rc == 0 && why != 0) {
        rc = err_set_errno(err, why, "start %s (PREREGD_SSH)", ssh);
    }
    if (rc == 0) {
        rc = take_end(host, ssh, status, code, err);
    }
    strbuf_release(&script);
    return rc;
}
