#include "prereg/load.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/text.h"
#include "base/xalloc.h"

struct place load_place(const struct toml_node *n)
{
    return (struct place){.line = n->line, .column = n->column};
}

static void report(struct load *l, enum diag_level level, struct place at, const char *fmt,
                   va_list ap) __attribute__((format(printf, 4, 0)));

static void report(struct load *l, enum diag_level level, struct place at, const char *fmt,
                   va_list ap)
{
    char text[1024];
    (void)vsnprintf(text, sizeof(text), fmt, ap);
    diag_add(l->diag, level, at.line, at.column, "%s", text);
}

void load_error(struct load *l, const struct toml_node *at, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    report(l, DIAG_ERROR, load_place(at), fmt, ap);
    va_end(ap);
}

void load_error_key(struct load *l, const struct toml_node *at, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    report(l, DIAG_ERROR, (struct place){at->key_line, at->key_column}, fmt, ap);
    va_end(ap);
}

void load_warn(struct load *l, const struct toml_node *at, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    report(l, DIAG_WARNING, load_place(at), fmt, ap);
    va_end(ap);
}

static const char *hint(const char *name, const char *const *known, size_t n_known, char *out,
                        size_t size)
{
    const char *near = text_nearest(name, known, n_known);
    (void)snprintf(out, size, near == NULL ? "%s" : "; did you mean \"%s\"?",
                   near == NULL ? "" : near);
    return out;
}

void load_unknown(struct load *l, const struct toml_node *at, const char *what, const char *name,
                  const char *const *known, size_t n_known)
{
    char near[128];
    load_error(l, at, "unknown %s \"%s\"%s", what, name,
               hint(name, known, n_known, near, sizeof(near)));
}

void load_check_keys(struct load *l, const struct toml_node *table, const char *where,
                     const char *const *known, size_t n_known)
{
    for (size_t i = 0; i < table->n_items; i++) {
        const struct toml_node *m = table->items[i];
        bool found = false;
        for (size_t k = 0; !found && k < n_known; k++) {
            found = strcmp(known[k], m->key) == 0;
        }
        if (!found) {
            char near[128];
            load_error_key(l, m, "%s: unknown key \"%s\"%s", where, m->key,
                           hint(m->key, known, n_known, near, sizeof(near)));
        }
    }
}

bool load_is(struct load *l, const struct toml_node *n, const char *where, enum toml_kind kind)
{
    if (n->kind == kind || (kind == TOML_FLOAT && n->kind == TOML_INTEGER)) {
        return true;
    }
    load_error(l, n, "%s%s%s: expected %s, found %s", where, n->key == NULL ? "" : ".",
               n->key == NULL ? "" : n->key, toml_kind_name(kind), toml_kind_name(n->kind));
    return false;
}

struct toml_node *load_member(struct load *l, const struct toml_node *table, const char *where,
                              const char *key, enum toml_kind kind)
{
    struct toml_node *m = toml_member(table, key);
    return m != NULL && load_is(l, m, where, kind) ? m : NULL;
}

struct toml_node *load_need(struct load *l, const struct toml_node *table, const char *where,
                            const char *key, enum toml_kind kind)
{
    if (toml_member(table, key) == NULL) {
        load_error_key(l, table, "%s: \"%s\" is missing", where, key);
        return NULL;
    }
    return load_member(l, table, where, key, kind);
}

bool load_bool(struct load *l, const struct toml_node *table, const char *where, const char *key,
               bool *out)
{
    const struct toml_node *m = load_member(l, table, where, key, TOML_BOOLEAN);
    if (m != NULL) {
        *out = m->boolean;
    }
    return m != NULL;
}

bool load_int(struct load *l, const struct toml_node *table, const char *where, const char *key,
              int64_t range[2], int64_t *out)
{
    const struct toml_node *m = load_member(l, table, where, key, TOML_INTEGER);
    if (m == NULL) {
        return false;
    }
    if (m->integer < range[0] || m->integer > range[1]) {
        load_error(l, m, "%s.%s: %lld is outside %lld..%lld", where, key, (long long)m->integer,
                   (long long)range[0], (long long)range[1]);
        return false;
    }
    *out = m->integer;
    return true;
}

bool load_number(struct load *l, const struct toml_node *table, const char *where, const char *key,
                 double *out)
{
    const struct toml_node *m = load_member(l, table, where, key, TOML_FLOAT);
    if (m != NULL) {
        *out = m->real;
    }
    return m != NULL;
}

bool load_word(struct load *l, const struct toml_node *table, const char *where, const char *key,
               const char *const *words, size_t n_words, size_t *out)
{
    const struct toml_node *m = load_member(l, table, where, key, TOML_STRING);
    if (m == NULL) {
        return false;
    }
    for (size_t i = 0; i < n_words; i++) {
        if (strcmp(words[i], m->string) == 0) {
            *out = i;
            return true;
        }
    }
    struct strbuf list = STRBUF_INIT;
    for (size_t i = 0; i < n_words; i++) {
        strbuf_addf(&list, "%s\"%s\"", i == 0 ? "" : " or ", words[i]);
    }
    load_error(l, m, "%s.%s: \"%s\" is not %s", where, key, m->string, list.buf);
    strbuf_release(&list);
    return false;
}

bool load_text(struct load *l, const struct toml_node *table, const char *where, const char *key,
               bool required, const char **out)
{
    const struct toml_node *m = required ? load_need(l, table, where, key, TOML_STRING)
                                         : load_member(l, table, where, key, TOML_STRING);
    if (m == NULL) {
        return false;
    }
    if (m->string[0] == '\0') {
        load_error(l, m, "%s.%s: an empty string", where, key);
        return false;
    }
    *out = m->string;
    return true;
}

bool load_name_ok(struct load *l, const struct toml_node *at, const char *where, const char *name)
{
    if (text_is_name(name)) {
        return true;
    }
    struct place place =
        name == at->key ? (struct place){at->key_line, at->key_column} : load_place(at);
    diag_add(l->diag, DIAG_ERROR, place.line, place.column,
             "%s: \"%.80s\" is not a name: a lower-case letter, then lower-case letters, digits "
             "and _, 64 at most",
             where, name);
    return false;
}

static bool few_enough(struct load *l, const struct toml_node *n, const char *what, size_t n_max)
{
    if (n->n_items <= n_max) {
        return true;
    }
    load_error_key(l, n, "%s: %zu entries; the limit is %zu", what, n->n_items, n_max);
    return false;
}

struct toml_node *load_section(struct load *l, const char *key, enum toml_kind kind, size_t n_max)
{
    struct toml_node *section = load_member(l, l->root, "grid", key, TOML_TABLE);
    if (section == NULL || !few_enough(l, section, key, n_max)) {
        return NULL;
    }
    bool ok = true;
    for (size_t i = 0; i < section->n_items; i++) {
        const struct toml_node *m = section->items[i];
        (void)load_name_ok(l, m, key, m->key);
        ok = load_is(l, m, key, kind) && ok;
    }
    return ok ? section : NULL;
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
        load_error_key(l, array, "%s: expected tables under [[%s]], found %s", key, key,
                       array->kind == TOML_ARRAY ? "other values" : toml_kind_name(array->kind));
        return NULL;
    }
    return few_enough(l, array, key, n_max) ? array : NULL;
}

static const char *name_at(const void *items, size_t size, size_t i)
{
    const char *name;
    memcpy(&name, (const char *)items + i * size, sizeof(name));
    return name;
}

size_t load_find(const void *items, size_t n, size_t size, const char *name)
{
    for (size_t i = 0; i < n; i++) {
        if (strcmp(name_at(items, size, i), name) == 0) {
            return i;
        }
    }
    return INDEX_NONE;
}

size_t load_lookup(struct load *l, const struct toml_node *at, const char *what, const void *items,
                   size_t n, size_t size)
{
    if (at->kind != TOML_STRING) {
        load_error(l, at, "expected the name of a %s, found %s", what, toml_kind_name(at->kind));
        return INDEX_NONE;
    }
    size_t i = load_find(items, n, size, at->string);
    if (i == INDEX_NONE) {
        const char **known = xcalloc(n, sizeof(*known));
        for (size_t k = 0; k < n; k++) {
            known[k] = name_at(items, size, k);
        }
        load_unknown(l, at, what, at->string, known, n);
        free(known);
    }
    return i;
}

const char *load_metric(struct load *l, const struct toml_node *at, const char *where,
                        size_t *stage)
{
    *stage = INDEX_NONE;
    const char *dot = strchr(at->string, '.');
    if (dot == NULL || dot == at->string || dot[1] == '\0') {
        load_error(l, at, "%s.metric: expected \"stage.metric\", found \"%s\"", where, at->string);
        return NULL;
    }
    struct toml_node name = *at;
    name.string = arena_strndup(&l->p->arena, at->string, (size_t)(dot - at->string));
    *stage = load_lookup(l, &name, "stage", l->p->stages, l->p->n_stages, sizeof(struct stage));
    return dot + 1;
}

struct cond_text load_condition(struct load *l, const struct toml_node *table, const char *where)
{
    struct cond_text c = {.text = ""};
    if (load_text(l, table, where, "condition", true, &c.text)) {
        c.place = load_place(toml_member(table, "condition"));
    }
    return c;
}
