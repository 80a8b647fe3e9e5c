/*
 * open: the address of the live page, which it turns on if it is off. Opens a browser where there
 * is a desktop, and prints the tunnels to type where the session is remote. The token is never on a
 * command line, where other users of the machine would read it: the browser is given a file of this
 * user's own that leads to the page.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/files/file.h"
#include "base/json/json.h"
#include "base/terminal.h"
#include "base/xalloc.h"
#include "ctl/ask.h"
#include "ctl/ctl.h"
#include "ctl/text/out.h"

#define OPENER_FILE "http.open.html" /* beside the page's socket */
#define LOCAL_PORT  8080

static bool is_set(const char *name)
{
    const char *value = getenv(name);
    return value != NULL && value[0] != '\0';
}

/* A page that leads to the address; only this user may read it. */
static int write_opener(const cJSON *page, char **path, struct err *err)
{
    struct strbuf text = STRBUF_INIT;
    char *folder = path_folder(answer_text(page, "socket", "/"));
    *path = path_join(folder, OPENER_FILE);
    strbuf_addf(&text,
                "<!doctype html><meta charset=\"utf-8\"><title>preregd</title>"
                "<meta http-equiv=\"refresh\" content=\"0;url=%s\">\n",
                answer_text(page, "url", ""));
    int rc = file_write_atomic(*path, text.buf, text.len, 0600, err);
    strbuf_release(&text);
    free(folder);
    return rc;
}

/* True when xdg-open took it. Its output would be that of a browser. */
static bool open_browser(const char *path)
{
    const pid_t pid = fork();
    if (pid == 0) {
        const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
        if (null < 0 || dup2(null, STDIN_FILENO) < 0 || dup2(null, STDOUT_FILENO) < 0 ||
            dup2(null, STDERR_FILENO) < 0) {
            _exit(127);
        }
        (void)execlp("xdg-open", "xdg-open", path, (char *)NULL);
        _exit(127);
    }
    int status = 0;
    return pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) &&
           WEXITSTATUS(status) == 0;
}

static void say_tunnels(const cJSON *page)
{
    char host[256] = "HOST";
    struct strbuf socket = STRBUF_INIT;
    const char *at = answer_text(page, "host", "127.0.0.1");
    const bool v6 = strchr(at, ':') != NULL;
    (void)gethostname(host, sizeof(host) - 1);
    strbuf_add_quoted(&socket, answer_text(page, "socket", ""));
    terminal_printf(stdout,
                    "\nfrom your own machine, one of\n"
                    "  ssh -N -L %d:%s%s%s:%lld %s\n"
                    "  ssh -N -L %d:%s %s\n"
                    "and then\n"
                    "  http://localhost:%d/#token=%s\n",
                    LOCAL_PORT, v6 ? "[" : "", at, v6 ? "]" : "",
                    (long long)answer_int(page, "port", 0), host, LOCAL_PORT, socket.buf, host,
                    LOCAL_PORT, answer_text(page, "token", ""));
    strbuf_release(&socket);
}

int cmd_open(const struct ctl_options *o, enum exit_code *code, struct err *err)
{
    const bool remote = is_set("SSH_CONNECTION");
    const bool desktop = (is_set("DISPLAY") || is_set("WAYLAND_DISPLAY")) && !remote;
    cJSON *params = json_object();
    cJSON *page = NULL;
    char *path = NULL;
    *code = EXIT_OK;
    json_put_bool(params, "start", true);
    json_put_bool(params, "new_token", o->new_token);
    int rc = ask(o, "page", params, &page, err);
    if (rc == 0 && o->json) {
        rc = out_json(page, err);
    } else if (rc == 0) {
        terminal_printf(stdout, "%s\n", answer_text(page, "url", ""));
        if (remote) {
            say_tunnels(page);
        }
    }
    if (rc == 0 && desktop && !o->print && !o->json) {
        rc = write_opener(page, &path, err);
        if (rc == 0 && !open_browser(path)) {
            terminal_printf(stderr, "xdg-open did not open it: open the address yourself\n");
        }
    }
    free(path);
    cJSON_Delete(page);
    return rc;
}
