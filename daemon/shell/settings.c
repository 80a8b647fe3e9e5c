/*
 * Reads serve.toml. Its names are few, so it is read by hand: every table and key that is not known
 * is an error, as is a group that this machine does not have.
 */
#include "daemon/shell/settings.h"

#include <grp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files/file.h"
#include "base/layout/layout.h"
#include "base/text.h"
#include "base/xalloc.h"
#include "prereg/load/toml.h"

struct reading {
    struct diag *diag;
    const char *state;
    struct settings *out;
};

static void fault(struct reading *r, const struct toml_node *at, const char *text)
{
    diag_add(r->diag, DIAG_ERROR, at->line, at->column, "%s", text);
}

/* Only the owner may write to it: it opens the daemon to others. */
static int check_file(const char *path, struct err *err)
{
    struct stat st;
    int rc = file_lstat(path, &st, err);
    if (rc != 0) {
        return rc;
    }
    if (!S_ISREG(st.st_mode) || st.st_uid != geteuid() || (st.st_mode & 077) != 0) {
        return err_set(err, ERR_REFUSED,
                       "%.180s must be a file of your own that others cannot read or write: `chmod "
                       "600` it",
                       path);
    }
    return 0;
}

static void take_group(struct reading *r, const struct toml_node *n)
{
    struct rpc_readers *to = &r->out->readers;
    if (n->kind != TOML_STRING) {
        fault(r, n, "serve.readers: expected names of groups");
        return;
    }
    const struct group *g = getgrnam(n->string);
    if (g == NULL) {
        diag_add(r->diag, DIAG_ERROR, n->line, n->column,
                 "serve.readers: this machine has no group \"%.60s\" (`getent group`)", n->string);
    } else if (to->n_groups == RPC_READER_GROUPS_MAX) {
        diag_add(r->diag, DIAG_ERROR, n->line, n->column, "serve.readers: at most %d groups",
                 RPC_READER_GROUPS_MAX);
    } else {
        to->groups[to->n_groups++] = g->gr_gid;
    }
}

static void take_readers(struct reading *r, const struct toml_node *n)
{
    if (n->kind != TOML_ARRAY) {
        fault(r, n, "serve.readers: expected an array of names of groups");
        return;
    }
    for (size_t i = 0; i < n->n_items; i++) {
        take_group(r, n->items[i]);
    }
}

/* Whether `path` is the state folder or below it: that folder is never opened. */
static bool is_in_state(const char *path, const char *state)
{
    const size_t n = strlen(state);
    return strncmp(path, state, n) == 0 && (path[n] == '/' || path[n] == '\0');
}

/* The parent must be there; its links are resolved, so that no link leads into the state folder. */
static void take_folder(struct reading *r, const struct toml_node *n)
{
    if (n->kind != TOML_STRING || n->string[0] != '/' || n->string[1] == '\0') {
        fault(r, n, "serve.folder: expected the absolute path of a folder");
        return;
    }
    char *parent = path_folder(n->string);
    char *real = realpath(parent, NULL);
    char *state = realpath(r->state, NULL);
    if (real == NULL) {
        diag_add(r->diag, DIAG_ERROR, n->line, n->column, "serve.folder: %.120s: no such folder",
                 parent);
    } else {
        char *path = path_join(real, path_name(n->string));
        if (state != NULL && is_in_state(path, state)) {
            fault(r, n,
                  "serve.folder: expected a folder outside of the state folder, which stays closed "
                  "to others");
        }
        free(r->out->readers.folder);
        r->out->readers.folder = path;
    }
    free(state);
    free(real);
    free(parent);
}

static void unknown(struct reading *r, const struct toml_node *n, const char *known)
{
    diag_add(r->diag, DIAG_ERROR, n->key_line, n->key_column, "%.60s: unknown; expected %s", n->key,
             known);
}

static void take_serve(struct reading *r, const struct toml_node *serve)
{
    const struct toml_node *readers = toml_member(serve, "readers");
    const struct toml_node *folder = toml_member(serve, "folder");
    for (size_t i = 0; i < serve->n_items; i++) {
        if (serve->items[i] != readers && serve->items[i] != folder) {
            unknown(r, serve->items[i], "readers or folder");
        }
    }
    if (readers != NULL) {
        take_readers(r, readers);
    }
    if (folder != NULL) {
        take_folder(r, folder);
    }
    if (r->diag->n_errors == 0 && r->out->readers.n_groups > 0 && folder == NULL) {
        fault(r, readers,
              "serve.readers: serve.folder is missing: an absolute path outside of the state "
              "folder, where readers find the socket");
    }
}

/* [http]: the table alone turns the page on. */
static void take_http(struct reading *r, const struct toml_node *http)
{
    struct err err;
    const struct toml_node *listen = toml_member(http, "listen");
    for (size_t i = 0; i < http->n_items; i++) {
        if (http->items[i] != listen) {
            unknown(r, http->items[i], "listen");
        }
    }
    r->out->http.on = true;
    r->out->http.at = (struct loopback_address){.host = "127.0.0.1"};
    if (listen == NULL) {
        return;
    }
    if (listen->kind != TOML_STRING) {
        fault(r, listen, "http.listen: expected text such as \"127.0.0.1:0\"");
    } else if (loopback_parse(listen->string, &r->out->http.at, &err) != 0) {
        diag_add(r->diag, DIAG_ERROR, listen->line, listen->column, "http.listen: %s", err.msg);
    }
}

static void take_notify(struct reading *r, const struct toml_node *notify)
{
    const struct toml_node *command = toml_member(notify, "command");
    for (size_t i = 0; i < notify->n_items; i++) {
        if (notify->items[i] != command) {
            unknown(r, notify->items[i], "command");
        }
    }
    bool fine = command != NULL && command->kind == TOML_ARRAY && command->n_items > 0 &&
                command->n_items <= SETTINGS_COMMAND_MAX;
    for (size_t i = 0; fine && i < command->n_items; i++) {
        fine = command->items[i]->kind == TOML_STRING;
    }
    if (!fine || command->items[0]->string[0] != '/') {
        fault(r, command == NULL ? notify : command,
              "notify.command: expected an array of texts, the first of which is the absolute path "
              "of an executable");
        return;
    }
    r->out->notify = xcalloc(command->n_items + 1, sizeof(*r->out->notify));
    for (size_t i = 0; i < command->n_items; i++) {
        r->out->notify[i] = xstrdup(command->items[i]->string);
    }
}

static void take_root(struct reading *r, const struct toml_node *root)
{
    for (size_t i = 0; i < root->n_items; i++) {
        const struct toml_node *n = root->items[i];
        static const struct {
            const char *name;
            void (*take)(struct reading *r, const struct toml_node *table);
        } tables[] = {{"serve", take_serve}, {"http", take_http}, {"notify", take_notify}};
        size_t t = 0;
        while (t < ARRAY_LEN(tables) && strcmp(n->key, tables[t].name) != 0) {
            t++;
        }
        if (t == ARRAY_LEN(tables)) {
            unknown(r, n, "[serve], [http] or [notify]");
        } else if (n->kind != TOML_TABLE) {
            diag_add(r->diag, DIAG_ERROR, n->line, n->column, "%s: expected a table",
                     tables[t].name);
        } else {
            tables[t].take(r, n);
        }
    }
}

static int parse(const struct strbuf *text, const char *path, const char *state,
                 struct settings *out, struct err *err)
{
    struct diag diag;
    struct arena arena;
    struct toml_node *root = NULL;
    struct reading r = {.diag = &diag, .state = state, .out = out};
    diag_init(&diag, path);
    arena_init(&arena);
    if (!text_is_utf8(text->buf, text->len)) {
        diag_add(&diag, DIAG_ERROR, 0, 0, "not UTF-8 text");
    } else if (toml_parse(text->buf, text->len, &arena, &root, &diag) == 0) {
        take_root(&r, root);
    }
    int rc = diag_result(&diag, err);
    arena_release(&arena);
    diag_release(&diag);
    return rc;
}

int settings_read(const char *state, struct settings *out, struct err *err)
{
    struct strbuf text = STRBUF_INIT;
    char *path = path_join(state, LAYOUT_SERVE);
    *out = (struct settings){0};
    int rc = check_file(path, err);
    if (rc != 0) {
        rc = rc == ERR_NOT_FOUND ? 0 : rc; /* without the file: the defaults */
        goto out;
    }
    rc = file_read(path, LAYOUT_SERVE_MAX, &text, err);
    if (rc != 0) {
        goto out;
    }
    rc = parse(&text, path, state, out, err);
    if (rc == 0 && out->readers.n_groups == 0) {
        free(out->readers.folder); /* a folder without readers is not opened */
        out->readers.folder = NULL;
    }
out:
    strbuf_release(&text);
    free(path);
    return rc;
}

void settings_release(struct settings *s)
{
    free(s->readers.folder);
    for (size_t i = 0; s->notify != NULL && s->notify[i] != NULL; i++) {
        free(s->notify[i]);
    }
    free(s->notify);
    *s = (struct settings){0};
}
