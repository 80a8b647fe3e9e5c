/*
 * Edits the text instead of writing a program anew, so that comments and layout survive. The TOML
 * tree gives the place of each key and value; where a value ends is found by a scan over strings,
 * comments and brackets. A key on a line of its own becomes a comment, one inside braces is taken
 * out with its comma. Edits are collected in the order of the text and then applied once.
 */
#include "ctl/successor.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/diag.h"
#include "base/xalloc.h"
#include "prereg/load/toml.h"

#define WHY_LEVELS "   # their results are known: choose others"
#define WHY_BELIEF "   # state it again, with what is known now"

struct text_edit {
    size_t from; /* bytes that are replaced */
    size_t to;
    const char *with; /* in the arena */
};

struct editing {
    struct arena arena;
    const char *text;
    size_t len;
    struct text_edit *edits;
    size_t n;
    size_t cap;
};

/* The byte at a line and column; columns count characters. */
static size_t offset_of(const struct editing *e, unsigned line, unsigned column)
{
    size_t at = 0;
    for (unsigned l = 1; l < line && at < e->len; at++) {
        l += e->text[at] == '\n' ? 1 : 0;
    }
    for (unsigned c = 1; c < column && at < e->len; c++) {
        do {
            at++;
        } while (at < e->len && ((unsigned char)e->text[at] & 0xC0U) == 0x80U);
    }
    return at;
}

/* The byte behind the string that opens at `at`. */
static size_t string_end(const struct editing *e, size_t at)
{
    const char quote = e->text[at];
    const bool triple = e->len - at >= 3 && e->text[at + 1] == quote && e->text[at + 2] == quote;
    const size_t n = triple ? 3 : 1;
    at += n;
    while (at < e->len) {
        size_t run = 0;
        while (run < n && at + run < e->len && e->text[at + run] == quote) {
            run++;
        }
        if (run == n) {
            return at + n;
        }
        at += quote == '"' && e->text[at] == '\\' ? 2 : 1;
    }
    return e->len;
}

static size_t line_end(const struct editing *e, size_t at)
{
    const char *end = memchr(e->text + at, '\n', e->len - at);
    return end == NULL ? e->len : (size_t)(end - e->text);
}

/* The byte behind the value that begins at `at`: its brackets are balanced, and outside of them it
 * ends before a comma, a closing bracket, a comment or the end of the line. */
static size_t value_end(const struct editing *e, size_t at)
{
    size_t depth = 0;
    while (at < e->len) {
        const char c = e->text[at];
        if (c == '"' || c == '\'') {
            at = string_end(e, at);
        } else if (c == '#' && depth > 0) {
            at = line_end(e, at);
        } else if (depth == 0 && strchr(",]}#\n", c) != NULL) {
            break;
        } else {
            depth += c == '[' || c == '{' ? 1 : 0;
            depth -= c == ']' || c == '}' ? 1 : 0;
            at++;
            if (depth == 0 && (c == ']' || c == '}')) {
                return at;
            }
        }
    }
    while (at > 0 &&
           (e->text[at - 1] == ' ' || e->text[at - 1] == '\t' || e->text[at - 1] == '\r')) {
        at--;
    }
    return at;
}

static void add_edit(struct editing *e, size_t from, size_t to, const char *with)
{
    if (e->n == e->cap) {
        e->cap = e->cap == 0 ? 16 : 2 * e->cap;
        e->edits = xreallocarray(e->edits, e->cap, sizeof(*e->edits));
    }
    e->edits[e->n++] = (struct text_edit){from, to, with};
}

/* Whether nothing but spaces precedes it in its line. */
static bool begins_line(const struct editing *e, size_t at)
{
    while (at > 0 && (e->text[at - 1] == ' ' || e->text[at - 1] == '\t')) {
        at--;
    }
    return at == 0 || e->text[at - 1] == '\n';
}

/* Turns the lines of a key into comments. */
static void comment_out(struct editing *e, size_t from, size_t to, const char *why)
{
    struct strbuf with = STRBUF_INIT;
    strbuf_addf(&with, "# ");
    for (size_t i = from; i < to; i++) {
        strbuf_addc(&with, e->text[i]);
        if (e->text[i] == '\n') {
            strbuf_addf(&with, "# ");
        }
    }
    strbuf_addf(&with, "%s", why);
    add_edit(e, from, to, arena_strdup(&e->arena, with.buf));
    strbuf_release(&with);
}

/* Takes a key out of braces, with the comma behind it or, at their end, the one before it. */
static void take_out(struct editing *e, size_t from, size_t to)
{
    size_t behind = to + strspn(e->text + to, " \t");
    if (behind < e->len && e->text[behind] == ',') {
        behind++;
        to = behind + strspn(e->text + behind, " \t");
    } else {
        size_t before = from;
        while (before > 0 && (e->text[before - 1] == ' ' || e->text[before - 1] == '\t')) {
            before--;
        }
        from = before > 0 && e->text[before - 1] == ',' ? before - 1 : from;
    }
    add_edit(e, from, to, "");
}

/* Removes a member of a table; NULL is fine. */
static void leave_out(struct editing *e, const struct toml_node *n, const char *why)
{
    if (n == NULL) {
        return;
    }
    const size_t from = offset_of(e, n->key_line, n->key_column);
    const size_t to = value_end(e, offset_of(e, n->line, n->column));
    if (begins_line(e, from)) {
        comment_out(e, from, to, why);
    } else {
        take_out(e, from, to);
    }
}

/* That member of each table of a section. */
static void leave_out_each(struct editing *e, const struct toml_node *section, const char *key,
                           const char *why)
{
    for (size_t i = 0; section != NULL && i < section->n_items; i++) {
        leave_out(e, toml_member(section->items[i], key), why);
    }
}

/* The levels of factors that are replicates. */
static void leave_out_seeds(struct editing *e, const struct toml_node *factors)
{
    for (size_t i = 0; factors != NULL && i < factors->n_items; i++) {
        const struct toml_node *replicate = toml_member(factors->items[i], "replicate");
        if (replicate != NULL && replicate->kind == TOML_BOOLEAN && replicate->boolean) {
            leave_out(e, toml_member(factors->items[i], "levels"), WHY_LEVELS);
        }
    }
}

/* The new name, and the old root behind it or in place of an earlier one. */
static void rename_program(struct editing *e, const struct toml_node *program,
                           const struct successor *to)
{
    const struct toml_node *name = toml_member(program, "name");
    const struct toml_node *earlier = toml_member(program, "supersedes");
    const size_t at = offset_of(e, name->line, name->column);
    const char *root = arena_printf(&e->arena, "\"%s\"", to->root);
    const char *with = arena_printf(&e->arena, "\"%s\"", to->name);
    if (earlier == NULL) {
        const bool own_line = begins_line(e, offset_of(e, name->key_line, name->key_column));
        with = arena_printf(&e->arena, "%s%ssupersedes = %s", with, own_line ? "\n" : ", ", root);
    } else {
        const size_t was = offset_of(e, earlier->line, earlier->column);
        add_edit(e, was, value_end(e, was), root);
    }
    add_edit(e, at, value_end(e, at), with);
}

static int by_place(const void *a, const void *b)
{
    const struct text_edit *x = a;
    const struct text_edit *y = b;
    return (x->from > y->from) - (x->from < y->from);
}

static void apply(struct editing *e, struct strbuf *out)
{
    size_t at = 0;
    qsort(e->edits, e->n, sizeof(*e->edits), by_place);
    for (size_t i = 0; i < e->n; i++) {
        assert(e->edits[i].from >= at && e->edits[i].to >= e->edits[i].from);
        strbuf_add(out, e->text + at, e->edits[i].from - at);
        strbuf_addf(out, "%s", e->edits[i].with);
        at = e->edits[i].to;
    }
    strbuf_add(out, e->text + at, e->len - at);
}

int successor_write(const char *path, const struct strbuf *old, const struct successor *to,
                    struct strbuf *out, struct err *err)
{
    struct editing e = {.text = old->buf, .len = old->len};
    struct toml_node *root = NULL;
    struct diag diag;
    arena_init(&e.arena);
    diag_init(&diag, path);
    int rc = toml_parse(old->buf, old->len, &e.arena, &root, &diag);
    const struct toml_node *program = toml_member(root, "program");
    const struct toml_node *name = toml_member(program, "name");
    if (rc != 0) {
        rc = diag_result(&diag, err);
    } else if (name == NULL || name->kind != TOML_STRING) {
        rc = err_set(err, ERR_INVALID, "%s: [program] has no name", path);
    } else {
        rename_program(&e, program, to);
        leave_out_seeds(&e, toml_member(root, "factor"));
        leave_out_each(&e, toml_member(root, "outcome"), "prior", WHY_BELIEF);
        leave_out_each(&e, toml_member(root, "forecast"), "confidence", WHY_BELIEF);
        apply(&e, out);
    }
    free(e.edits);
    diag_release(&diag);
    arena_release(&e.arena);
    return rc;
}
