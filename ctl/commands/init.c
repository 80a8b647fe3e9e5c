/*
 * init [FOLDER]: writes a starter program, a template or a successor, under the folder's name. The
 * first two are compiled in (templates.c.in); the first one is the starter, which --list leaves
 * out. A successor is made from a program that was locked (successor.h).
 */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/files/file.h"
#include "base/layout/layout.h"
#include "base/strbuf.h"
#include "base/terminal.h"
#include "base/text.h"
#include "base/xalloc.h"
#include "ctl/ctl.h"
#include "ctl/load.h"
#include "ctl/successor.h"
#include "ctl/templates.h"

#define STARTER_NAME "\"starter\""

/* The folder's own name where it can be a program's name, else the starter's. */
static char *name_of(const char *folder)
{
    char *absolute = path_absolute(NULL, folder);
    size_t len = strlen(absolute);
    /* drop "/" and "/." at the end, to find the folder's name */
    while (len > 1 &&
           (absolute[len - 1] == '/' || (absolute[len - 1] == '.' && absolute[len - 2] == '/'))) {
        absolute[--len] = '\0';
    }
    /* a folder's name may have characters that a program's may not */
    char *name = xstrdup(text_is_name(path_name(absolute)) ? path_name(absolute) : "starter");
    free(absolute);
    return name;
}

/* Whether the file begins a template: the others of it follow. */
static bool is_first(size_t i)
{
    return i == 0 || strcmp(template_files[i].name, template_files[i - 1].name) != 0;
}

/* What a template asks, from its first line: "# What it asks". */
static void print_list(void)
{
    for (size_t i = 1; i < n_template_files; i++) {
        const struct template_file *t = &template_files[i];
        if (!is_first(i)) {
            continue;
        }
        const char *line = (const char *)t->text + strlen("# ");
        const char *end = memchr(line, '\n', t->len - strlen("# "));
        assert(end != NULL);
        terminal_printf(stdout, "%-16s %.*s\n", t->name, (int)(end - line), line);
    }
}

/* The template of that name; NULL is the starter. Returns NULL after an error. */
static const struct template_file *find_template(const char *name, struct err *err)
{
    if (name == NULL) {
        return &template_files[0];
    }
    /* the names so far, for the message */
    struct strbuf all = STRBUF_INIT;
    for (size_t i = 1; i < n_template_files; i++) {
        if (!is_first(i)) {
            continue;
        }
        if (strcmp(template_files[i].name, name) == 0) {
            strbuf_release(&all);
            return &template_files[i];
        }
        strbuf_addf(&all, "%s%s", i > 1 ? ", " : "", template_files[i].name);
    }
    (void)err_set(err, ERR_USAGE, "no template \"%s\"; there are %s", name, all.buf);
    strbuf_release(&all);
    return NULL;
}

/* Writes the template with its placeholder name replaced; every template contains it. */
static int write_template(const struct template_file *template, const char *path,
                          const char *folder, struct err *err)
{
    struct strbuf text = STRBUF_INIT;
    const char *start = (const char *)template->text;
    const char *at = memmem(start, template->len, STARTER_NAME, strlen(STARTER_NAME));
    assert(at != NULL);
    size_t before = (size_t)(at - start);
    char *name = name_of(folder);
    strbuf_add(&text, start, before);
    strbuf_addf(&text, "\"%s\"", name);
    strbuf_add(&text, at + strlen(STARTER_NAME), template->len - before - strlen(STARTER_NAME));
    int rc = file_write_atomic(path, text.buf, text.len, 0644, err);
    free(name);
    strbuf_release(&text);
    return rc;
}

/* Whether the template has files beside its grid.toml. */
static bool has_companions(const struct template_file *template)
{
    size_t next = (size_t)(template - template_files) + 1;
    return next < n_template_files && !is_first(next);
}

/* Writes the files of a template that belong beside its grid.toml. One that exists is an error, so
 * that nothing of the user's is overwritten; grid.toml is written after them. */
static int write_companions(const struct template_file *template, const char *folder,
                            struct err *err)
{
    size_t first = (size_t)(template - template_files) + 1;
    int rc = 0;
    for (size_t i = first; rc == 0 && i < n_template_files && !is_first(i); i++) {
        const struct template_file *t = &template_files[i];
        char *path = path_join(folder, t->path);
        char *parent = path_folder(path);
        if (file_kind_at(path) != FILE_ABSENT) {
            rc = err_set(err, ERR_EXISTS, "%s exists already and is left unchanged", path);
        } else if ((rc = dir_make(parent, 0777, err)) == 0) {
            rc = file_write_atomic(path, t->text, t->len, 0644, err);
        }
        free(parent);
        free(path);
    }
    return rc;
}

/* The root of the lock beside a program. The lock must be there and be of its plan as it is. */
static int root_of(const char *grid, char root[DIGEST_HEX_SIZE], struct err *err)
{
    struct plan_program *p = NULL;
    struct lock *lock = NULL;
    int rc = load_program(grid, &p, err);
    if (rc == 0) {
        rc = load_lock(p, &lock, err);
    }
    if (rc == 0 && lock == NULL) {
        rc = err_set(err, ERR_LOCK,
                     "%s has no lock, so it has no root to supersede: lock it first, or copy it",
                     grid);
    }
    if (rc == 0) {
        memcpy(root, lock->root, DIGEST_HEX_SIZE);
    }
    lock_free(lock);
    program_free(p);
    return rc;
}

/* Writes the successor of the program at `from`, a file or its folder. */
static int write_successor(const char *from, const char *path, const char *folder, struct err *err)
{
    char *grid = file_kind_at(from) == FILE_FOLDER ? path_join(from, LAYOUT_GRID) : xstrdup(from);
    char *name = name_of(folder);
    char root[DIGEST_HEX_SIZE] = "";
    struct strbuf old = STRBUF_INIT;
    struct strbuf text = STRBUF_INIT;
    int rc = root_of(grid, root, err);
    if (rc == 0) {
        rc = file_read(grid, LAYOUT_GRID_MAX, &old, err);
    }
    if (rc == 0) {
        rc = successor_write(grid, &old, &(struct successor){name, root}, &text, err);
    }
    if (rc == 0) {
        rc = file_write_atomic(path, text.buf, text.len, 0644, err);
    }
    if (rc == 0) {
        terminal_printf(stdout,
                        "%s is written: it supersedes %s.\n"
                        "Priors, confidences and the levels of replicates are left out: state "
                        "them again, then run\n"
                        "  preregctl check %s\n"
                        "which names each that is missing. Relative paths now start at the new "
                        "folder.\n",
                        path, root, path);
    }
    strbuf_release(&text);
    strbuf_release(&old);
    free(name);
    free(grid);
    return rc;
}

/* Appends a path quoted for the shell, and never looking like an option. */
static void add_shell_word(struct strbuf *out, const char *path)
{
    static const char plain[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./-";
    const char *dot = path[0] == '-' ? "./" : "";
    if (path[strspn(path, plain)] == '\0') {
        strbuf_addf(out, "%s%s", dot, path);
        return;
    }
    strbuf_addf(out, "'%s", dot);
    for (const char *c = path; *c != '\0'; c++) {
        strbuf_add(out, c, 1);
        strbuf_addf(out, "%s", *c == '\'' ? "\\''" : "");
    }
    strbuf_addf(out, "'");
}

/* Of a template with files of its own: the commands in the comment on top of its grid.toml, which
 * are the lines "#   COMMAND". */
static void add_own_commands(struct strbuf *out, const struct template_file *template)
{
    static const char mark[] = "#   ";
    const char *line = (const char *)template->text;
    const char *end = line + template->len;
    while (has_companions(template) && line < end && *line == '#') {
        const char *feed = memchr(line, '\n', (size_t)(end - line));
        size_t n = (size_t)((feed == NULL ? end : feed) - line);
        if (n > strlen(mark) && memcmp(line, mark, strlen(mark)) == 0) {
            strbuf_addf(out, "  %.*s\n", (int)(n - strlen(mark)), line + strlen(mark));
        }
        line += n + 1;
    }
}

/* The commands that follow, ready to be pasted. */
static void print_next(const struct template_file *template, const char *path, const char *folder)
{
    struct strbuf cd = STRBUF_INIT;
    struct strbuf own = STRBUF_INIT;
    add_own_commands(&own, template);
    if (strcmp(folder, ".") != 0) {
        strbuf_addf(&cd, "  cd ");
        add_shell_word(&cd, folder);
        strbuf_addf(&cd, "\n");
    }
    terminal_printf(stdout, "%s is written. Next:\n%s%s", path, cd.len > 0 ? cd.buf : "",
                    own.len > 0 ? own.buf
                                : "  prereg-data demo --seed 1 --out data\n"
                                  "  preregctl check grid.toml\n"
                                  "  preregctl try grid.toml\n"
                                  "  preregctl lock grid.toml\n"
                                  "  preregd submit grid.toml --wait\n");
    strbuf_release(&own);
    strbuf_release(&cd);
}

/* An existing grid.toml is never overwritten; the folder may exist. */
static int write_program(const struct ctl_options *o, const char *folder, struct err *err)
{
    const struct template_file *template = find_template(o->template_name, err);
    int rc = template == NULL ? err->code : dir_make(folder, 0777, err);
    if (rc != 0) {
        return rc;
    }
    char *path = path_join(folder, LAYOUT_GRID);
    if (file_kind_at(path) != FILE_ABSENT) {
        rc = err_set(err, ERR_EXISTS, "%s exists already and is left unchanged", path);
    } else if (o->from != NULL) {
        rc = write_successor(o->from, path, folder, err);
    } else if ((rc = write_companions(template, folder, err)) == 0 &&
               (rc = write_template(template, path, folder, err)) == 0) {
        print_next(template, path, folder);
    }
    free(path);
    return rc;
}

int cmd_init(const struct ctl_options *o, enum exit_code *code, struct err *err)
{
    *code = EXIT_OK;
    if (o->list && (o->n_args > 0 || o->template_name != NULL || o->from != NULL)) {
        return err_set(err, ERR_USAGE, "--list takes nothing else: it writes nothing");
    }
    if (o->list) {
        print_list();
        return 0;
    }
    if (o->from != NULL && o->template_name != NULL) {
        return err_set(err, ERR_USAGE, "--from and --template exclude each other");
    }
    return write_program(o, o->n_args > 0 ? o->args[0] : ".", err);
}
