/* Reads the list whole, collects the unknown commands, and asks one question for all of them.
 * The caller says which stages would be executed, and finds the state folder. */
#include "prereg/lock/trust.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/files/digest.h"
#include "base/files/file.h"
#include "base/json/json.h"
#include "base/layout/layout.h"
#include "base/terminal.h"
#include "base/text.h"
#include "base/xalloc.h"
#include "prereg/lock/object.h"

#define LIST_BYTES_MAX ((size_t)64 << 20)

/* Of one stage whose command is not known. */
struct unknown {
    size_t stage;
    char hex[DIGEST_HEX_SIZE];
};

/* Whether the command is one of our workers, installed beside this executable, without arguments
 * or env: it executes nothing that the program brings. */
static bool is_bundled(const struct plan_program *p, const struct plan_stage *s)
{
    static const char *const names[] = {"prereg-train", "prereg-eval", "prereg-data"};
    struct strbuf self = STRBUF_INIT;
    struct err err;
    char *worker = NULL;
    bool ours = false;
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        ours = ours || strcmp(s->command[0], names[i]) == 0;
    }
    ours = ours && s->n_command == 1 && (s->env == NULL || s->env->child == NULL) &&
           s->environment == NULL && path_of_self(&self, &err) == 0 &&
           object_resolve_worker(p, s->command[0], &worker, &err) == 0;
    if (ours) {
        char *there = path_folder(worker);
        ours = strcmp(self.buf, there) == 0;
        free(there);
    }
    free(worker);
    strbuf_release(&self);
    return ours;
}

/* One digest over words, env and the files' bytes: a changed file is a new command. */
static int digest_command(const struct plan_program *p, size_t stage, char hex[DIGEST_HEX_SIZE],
                          struct err *err)
{
    const struct plan_stage *s = &p->stages[stage];
    struct strbuf text = STRBUF_INIT;
    struct digest sum;
    cJSON *o = json_object();
    cJSON *words = json_array();
    cJSON *files = json_object();
    int rc = 0;
    json_put(o, "command", words);
    json_put(o, "files", files);
    json_put(o, "env", s->env == NULL ? cJSON_CreateNull() : json_copy(s->env));
    if (s->environment != NULL) {
        json_put_string(o, "environment", s->image != NULL ? s->environment : s->environment_path);
    }
    for (size_t i = 0; rc == 0 && i < s->n_command; i++) {
        char *path = NULL;
        json_push_string(words, s->command[i]);
        rc = object_resolve_argument(p, stage, i, &path, err);
        if (rc == 0 && path != NULL) {
            rc = digest_file(path, &sum, NULL, err);
            digest_hex(&sum, hex);
            json_put_string(files, s->command[i], rc == 0 ? hex : NULL);
        }
        free(path);
    }
    if (rc != 0 || (rc = json_canonical(o, &text, err)) != 0) {
        goto out;
    }
    sum = digest_bytes(text.buf, text.len);
    digest_hex(&sum, hex);
out:
    strbuf_release(&text);
    cJSON_Delete(o);
    return rc;
}

/* Whether a line of the list begins with it. */
static bool is_listed(const struct strbuf *list, const char *hex)
{
    const size_t n = DIGEST_HEX_SIZE - 1;
    for (const char *line = list->buf; line != NULL && *line != '\0';) {
        if (strncmp(line, hex, n) == 0 && (line[n] == '\n' || line[n] == ' ')) {
            return true;
        }
        line = strchr(line, '\n');
        line = line == NULL ? NULL : line + 1;
    }
    return false;
}

/* The command as one line without control characters, which is safe to print on a terminal. */
static char *command_line(const struct plan_program *p, size_t stage)
{
    const struct plan_stage *s = &p->stages[stage];
    struct strbuf line = STRBUF_INIT;
    strbuf_addf(&line, "stage.%s:", s->name);
    if (s->environment != NULL) {
        strbuf_addf(&line, " in %s:", s->image != NULL ? s->environment : s->environment_path);
    }
    for (const cJSON *v = s->env == NULL ? NULL : s->env->child; v != NULL; v = v->next) {
        strbuf_addf(&line, " %s=%s", v->string, cJSON_IsString(v) ? v->valuestring : "");
    }
    for (size_t i = 0; i < s->n_command; i++) {
        strbuf_addf(&line, " %s", s->command[i]);
    }
    char *text = strbuf_detach(&line);
    text_make_utf8(text);
    text_make_line(text);
    return text;
}

/* Appends in one write, without following a link at the list's name. */
static int list_append(const char *path, const struct plan_program *p, const struct unknown *u,
                       size_t n, struct err *err)
{
    struct strbuf text = STRBUF_INIT;
    for (size_t i = 0; i < n; i++) {
        char *line = command_line(p, u[i].stage);
        strbuf_addf(&text, "%s %s\n", u[i].hex, line);
        free(line);
    }
    char *folder = path_folder(path);
    int rc = dir_make(folder, 0700, err);
    if (rc != 0) {
        goto out;
    }
    int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0) {
        rc = err_set_errno(err, errno, "open %s", path);
        goto out;
    }
    rc = file_write_all(fd, text.buf, text.len, err);
    (void)close(fd);
out:
    free(folder);
    strbuf_release(&text);
    return rc;
}

/* Shows all unknown commands and asks one question; only "y" or "yes" lets them run. */
static int ask_on_terminal(const struct plan_program *p, const struct unknown *u, size_t n,
                           struct err *err)
{
    char answer[16] = "";
    terminal_printf(stderr, "%s executes what was never run here by you:\n", p->name);
    for (size_t i = 0; i < n; i++) {
        char *line = command_line(p, u[i].stage);
        terminal_printf(stderr, "  %s\n", line);
        free(line);
    }
    terminal_printf(stderr, "It runs as you, without a sandbox. Run it? [y/N] ");
    (void)fflush(stderr);
    bool yes =
        fgets(answer, sizeof(answer), stdin) != NULL &&
        (strcmp(answer, "y\n") == 0 || strcmp(answer, "yes\n") == 0 || strcmp(answer, "Y\n") == 0);
    return yes ? 0 : err_set(err, ERR_REFUSED, "nothing was executed");
}

/* The error where no question can be asked; it names the first command and how to allow it. */
static int refuse(const struct plan_program *p, const struct unknown *u, size_t n, struct err *err)
{
    char *line = command_line(p, u[0].stage);
    int rc = err_set(err, ERR_REFUSED,
                     "%s:%u:%u: %.300s: was never run here by you, and there is no terminal to ask "
                     "on (%zu command%s); read it, then repeat with --run, or with --no-run if the "
                     "command takes it",
                     p->path, p->stages[u[0].stage].place.line, p->stages[u[0].stage].place.column,
                     line, n, n == 1 ? "" : "s");
    free(line);
    return rc;
}

/* The stages that would be executed and whose commands are not in the list. */
static int find_unknown(const struct trust_ask *ask, const struct plan_program *p,
                        const struct strbuf *list, struct unknown *u, size_t *n, struct err *err)
{
    int rc = 0;
    *n = 0;
    for (size_t i = 0; rc == 0 && i < p->n_stages; i++) {
        if ((ask->all || p->stages[i].describes) && !is_bundled(p, &p->stages[i])) {
            u[*n].stage = i;
            rc = digest_command(p, i, u[*n].hex, err);
            *n += rc == 0 && !is_listed(list, u[*n].hex) ? 1 : 0;
        }
    }
    return rc;
}

/* Appends to the list. A failure is reported and ignored: the user is asked again the next time. */
static void remember(const char *path, const struct plan_program *p, const struct unknown *u,
                     size_t n)
{
    struct err err;
    if (list_append(path, p, u, n, &err) != 0) {
        terminal_printf(stderr, "what may run is not remembered: %s\n", err.msg);
    }
}

int trust_commands(const struct trust_ask *ask, const struct plan_program *p, struct err *err)
{
    const char *by_env = getenv(TRUST_VARIABLE);
    bool run = ask->run || (by_env != NULL && strcmp(by_env, "1") == 0);
    struct strbuf list = STRBUF_INIT;
    struct unknown *u = xcalloc(p->n_stages + 1, sizeof(*u));
    size_t n = 0;
    struct err unread;
    char *path = ask->state == NULL ? NULL : path_join(ask->state, LAYOUT_KNOWN_COMMANDS);
    if (path == NULL || file_read(path, LIST_BYTES_MAX, &list, &unread) != 0) {
        strbuf_clear(&list); /* nothing is known */
    }
    int rc = find_unknown(ask, p, &list, u, &n, err);
    if (rc == 0 && n > 0 && !run) {
        const bool asks = !ask->quiet && isatty(STDIN_FILENO) == 1 && isatty(STDERR_FILENO) == 1;
        rc = asks ? ask_on_terminal(p, u, n, err) : refuse(p, u, n, err);
    }
    if (rc == 0 && n > 0 && path != NULL) {
        remember(path, p, u, n);
    }
    free(path);
    free(u);
    strbuf_release(&list);
    return rc;
}
