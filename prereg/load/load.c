/*
 * The readers that all sections share: diagnostics with the dotted path of what they are about,
 * names with suggestions, typed members with ranges. Nothing here knows a section.
 */
#include "prereg/load/load.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json/json.h"
#include "base/text.h"
#include "base/xalloc.h"

struct place load_place(const struct toml_node *n)
{
    return (struct place){.line = n->line, .column = n->column};
}

struct place load_key_place(const struct toml_node *n)
{
    return (struct place){.line = n->key_line, .column = n->key_column};
}

/* "measure.mmlu.floor", "factor.arch.levels[2]": tables of an array go by their name when they have
 * one. */
static void add_path(struct strbuf *out, const struct toml_node *n)
{
    if (n->parent == NULL) {
        return;
    }
    add_path(out, n->parent);
    const struct toml_node *name = toml_member(n, "name");
    if (n->key != NULL || (name != NULL && name->kind == TOML_STRING && name->string[0] != '\0')) {
        strbuf_addf(out, "%s%.64s", out->len == 0 ? "" : ".",
                    n->key != NULL ? n->key : name->string);
    } else {
        strbuf_addf(out, "[%zu]", n->index);
    }
}

/* Adds one diagnostic, prefixed with the node's path. */
static void report(struct load *l, enum diag_level level, struct place at,
                   const struct toml_node *n, const char *text)
{
    struct strbuf path = STRBUF_INIT;
    add_path(&path, n);
    diag_add(l->diag, level, at.line, at.column, "%s%s%s", path.buf, path.len == 0 ? "" : ": ",
             text);
    strbuf_release(&path);
}

#define FORMAT_TEXT(text, fmt)                                                                     \
    do {                                                                                           \
        va_list ap;                                                                                \
        va_start(ap, fmt);                                                                         \
        (void)vsnprintf(text, sizeof(text), fmt, ap);                                              \
        va_end(ap);                                                                                \
    } while (0)

void load_error(struct load *l, const struct toml_node *at, const char *fmt, ...)
{
    char text[1024];
    FORMAT_TEXT(text, fmt);
    report(l, DIAG_ERROR, load_place(at), at, text);
}

void load_error_key(struct load *l, const struct toml_node *at, const char *fmt, ...)
{
    char text[1024];
    FORMAT_TEXT(text, fmt);
    report(l, DIAG_ERROR, load_key_place(at), at, text);
}

void load_warn(struct load *l, const struct toml_node *at, const char *fmt, ...)
{
    char text[1024];
    FORMAT_TEXT(text, fmt);
    report(l, DIAG_WARNING, load_place(at), at, text);
}

void load_missing(struct load *l, const char *text)
{
    diag_add(l->diag, DIAG_ERROR, 1, 1, "%s", text);
}

const char *load_nearest(const char *name, struct names names)
{
    const char **known = xcalloc(names.n, sizeof(*known));
    for (size_t i = 0; i < names.n; i++) {
        known[i] = names_at(names, i);
    }
    const char *near = text_nearest(name, known, names.n);
    free(known);
    return near;
}

/* "; did you mean "x"?", or nothing. */
static const char *hint(const char *name, struct names names, char *out, size_t size)
{
    const char *near = load_nearest(name, names);
    (void)snprintf(out, size, near == NULL ? "%s" : "; did you mean \"%s\"?",
                   near == NULL ? "" : near);
    return out;
}

size_t load_lookup(struct load *l, const struct toml_node *at, struct names names)
{
    if (at->kind != TOML_STRING) {
        load_error(l, at, "expected the name of a %s, found %s", names.what,
                   toml_kind_name(at->kind));
        return INDEX_NONE;
    }
    size_t i = names_find(names, at->string);
    if (i == INDEX_NONE) {
        char near[128];
        load_error(l, at, "unknown %s \"%.80s\"%s", names.what, at->string,
                   hint(at->string, names, near, sizeof(near)));
    }
    return i;
}

/* The message's path is the table's: the unknown key itself is quoted in the text. */
size_t load_lookup_key(struct load *l, const struct toml_node *at, struct names names)
{
    size_t i = names_find(names, at->key);
    if (i == INDEX_NONE) {
        char near[128];
        report(l, DIAG_ERROR, load_key_place(at), at->parent,
               arena_printf(&l->p->arena, "unknown %s \"%.80s\"%s", names.what, at->key,
                            hint(at->key, names, near, sizeof(near))));
    }
    return i;
}

void load_check_keys(struct load *l, const struct toml_node *table, const char *const *known,
                     size_t n_known)
{
    const struct names names = {"key", known, n_known, sizeof(*known)};
    for (size_t i = 0; i < table->n_items; i++) {
        (void)load_lookup_key(l, table->items[i], names);
    }
}

bool load_is(struct load *l, const struct toml_node *n, enum toml_kind kind)
{
    if (n->kind == kind || (kind == TOML_FLOAT && n->kind == TOML_INTEGER)) {
        return true;
    }
    load_error(l, n, "expected %s, found %s", toml_kind_name(kind), toml_kind_name(n->kind));
    return false;
}

struct toml_node *load_member(struct load *l, const struct toml_node *table, const char *key,
                              enum toml_kind kind)
{
    struct toml_node *m = toml_member(table, key);
    return m != NULL && load_is(l, m, kind) ? m : NULL;
}

struct toml_node *load_need(struct load *l, const struct toml_node *table, const char *key,
                            enum toml_kind kind)
{
    if (toml_member(table, key) == NULL) {
        load_error_key(l, table, "\"%s\" is missing", key);
        return NULL;
    }
    return load_member(l, table, key, kind);
}

bool load_bool(struct load *l, const struct toml_node *table, const char *key, bool *out)
{
    const struct toml_node *m = load_member(l, table, key, TOML_BOOLEAN);
    if (m != NULL) {
        *out = m->boolean;
    }
    return m != NULL;
}

bool load_int(struct load *l, const struct toml_node *table, const char *key,
              const int64_t range[2], int64_t *out)
{
    const struct toml_node *m = load_member(l, table, key, TOML_INTEGER);
    if (m == NULL) {
        return false;
    }
    if (m->integer < range[0] || m->integer > range[1]) {
        load_error(l, m, "%lld is outside %lld..%lld", (long long)m->integer, (long long)range[0],
                   (long long)range[1]);
        return false;
    }
    *out = m->integer;
    return true;
}

bool load_number(struct load *l, const struct toml_node *table, const char *key, double *out)
{
    const struct toml_node *m = load_member(l, table, key, TOML_FLOAT);
    if (m != NULL) {
        *out = m->real;
    }
    return m != NULL;
}

bool load_word(struct load *l, const struct toml_node *table, const char *key,
               const char *const *words, size_t *out)
{
    const struct toml_node *m = load_member(l, table, key, TOML_STRING);
    if (m == NULL) {
        return false;
    }
    struct strbuf list = STRBUF_INIT;
    bool found = false;
    for (size_t i = 0; !found && words[i] != NULL; i++) {
        if (strcmp(words[i], m->string) == 0) {
            *out = i;
            found = true;
        }
        strbuf_addf(&list, "%s\"%s\"",
                    i == 0                 ? ""
                    : words[i + 1] == NULL ? " or "
                                           : ", ",
                    words[i]);
    }
    if (!found) {
        load_error(l, m, "\"%.80s\" is not %s", m->string, list.buf);
    }
    strbuf_release(&list);
    return found;
}

bool load_text(struct load *l, const struct toml_node *table, const char *key, bool required,
               const char **out)
{
    const struct toml_node *m =
        required ? load_need(l, table, key, TOML_STRING) : load_member(l, table, key, TOML_STRING);
    if (m == NULL) {
        return false;
    }
    if (m->string[0] == '\0') {
        load_error(l, m, "an empty string");
        return false;
    }
    *out = m->string;
    return true;
}

bool load_name_ok(struct load *l, const struct toml_node *at, const char *name)
{
    if (text_is_name(name)) {
        return true;
    }
    bool is_key = name == at->key;
    report(l, DIAG_ERROR, is_key ? load_key_place(at) : load_place(at), is_key ? at->parent : at,
           arena_printf(&l->p->arena,
                        "\"%.80s\" is not a name: a lower-case letter, then lower-case letters, "
                        "digits and _, 64 at most",
                        name));
    return false;
}

static bool few_enough(struct load *l, const struct toml_node *n, size_t n_max)
{
    if (n->n_items <= n_max) {
        return true;
    }
    load_error_key(l, n, "%zu entries; the limit is %zu", n->n_items, n_max);
    return false;
}

/* Members of another kind are removed from the section, so that readers need not check again. */
struct toml_node *load_section(struct load *l, const char *key, enum toml_kind kind, size_t n_max)
{
    struct toml_node *section = load_member(l, l->root, key, TOML_TABLE);
    if (section == NULL || !few_enough(l, section, n_max)) {
        return NULL;
    }
    size_t n = 0;
    for (size_t i = 0; i < section->n_items; i++) {
        struct toml_node *m = section->items[i];
        (void)load_name_ok(l, m, m->key);
        if (load_is(l, m, kind)) {
            section->items[n++] = m;
        }
    }
    section->n_items = n;
    return section;
}

struct toml_node *load_tables(struct load *l, const char *key, size_t n_max)
{
    struct toml_node *array = toml_member(l->root, key);
    if (array == NULL) {
        return NULL;
    }
    bool ok = array->kind == TOML_ARRAY;
    for (size_t i = 0; ok && i < array->n_items; i++) {
        ok = array->items[i]->kind == TOML_TABLE;
    }
    if (!ok) {
        load_error_key(l, array, "expected tables under [[%s]], found %s", key,
                       array->kind == TOML_ARRAY ? "other values" : toml_kind_name(array->kind));
        return NULL;
    }
    return few_enough(l, array, n_max) ? array : NULL;
}

/* Splits at the first dot: names of stages have none, names of metrics may. */
const char *load_metric(struct load *l, const struct toml_node *at, const char *text, size_t *stage)
{
    *stage = INDEX_NONE;
    const char *dot = strchr(text, '.');
    if (dot == NULL || dot == text || dot[1] == '\0') {
        load_error(l, at, "expected \"stage.metric\", found \"%.80s\"", text);
        return NULL;
    }
    struct toml_node name = *at;
    name.string = arena_strndup(&l->p->arena, text, (size_t)(dot - text));
    *stage = load_lookup(l, &name, names_stages(l->p));
    return dot + 1;
}

struct cond_text load_condition(struct load *l, const struct toml_node *table)
{
    struct cond_text c = {.text = ""};
    if (load_text(l, table, "condition", true, &c.text)) {
        c.place = load_place(toml_member(table, "condition"));
    }
    return c;
}
