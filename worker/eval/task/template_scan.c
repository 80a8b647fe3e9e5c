/*
 * Reads what is between the braces of a template: path { "|" filter [ "(" arguments ")" ] }. A
 * recursive-descent reader over one pointer; everything it makes is in the arena, so errors need no
 * cleaning up. Messages carry the column in the source.
 */
#include <stdarg.h>
#include <stdio.h>

#include "base/strbuf.h"
#include "base/xalloc.h"
#include "worker/eval/task/template_private.h"

int template_fault(const struct template_scan *s, struct err *err, const char *fmt, ...)
{
    char why[160];
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(why, sizeof(why), fmt, ap);
    va_end(ap);
    return err_set(err, ERR_SYNTAX, "column %zu: %s", (size_t)(s->at - s->source) + 1, why);
}

static void skip_spaces(struct template_scan *s)
{
    while (*s->at == ' ')
        s->at++;
}

static bool name_char(char c, bool first)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
           (!first && c >= '0' && c <= '9');
}

static int scan_name(struct template_scan *s, const char *what, const char **out, struct err *err)
{
    const char *start = s->at;
    if (!name_char(*s->at, true))
        return template_fault(s, err, "expected %s", what);
    while (name_char(*s->at, false))
        s->at++;
    *out = arena_strndup(s->arena, start, (size_t)(s->at - start));
    return 0;
}

/* [number], below TEMPLATE_LIST_MAX. */
static int scan_index(struct template_scan *s, size_t *out, struct err *err)
{
    *out = 0;
    for (s->at++; *s->at >= '0' && *s->at <= '9'; s->at++) {
        *out = *out * 10 + (size_t)(*s->at - '0');
        if (*out >= TEMPLATE_LIST_MAX)
            return template_fault(s, err, "an index of %d or more", TEMPLATE_LIST_MAX);
    }
    if (*s->at != ']' || s->at[-1] == '[')
        return template_fault(s, err, "expected a number and ]");
    s->at++;
    return 0;
}

/* Steps separated by dots or given by [number]; @group is a path of its own. */
static int scan_path(struct template_scan *s, struct template_step **out, struct err *err)
{
    struct template_step **end = out;
    for (;;) {
        struct template_step *step = arena_alloc(s->arena, sizeof(*step));
        int rc = 0;
        if (end == out && strncmp(s->at, TEMPLATE_GROUP, strlen(TEMPLATE_GROUP)) == 0) {
            s->at += strlen(TEMPLATE_GROUP);
            step->name = TEMPLATE_GROUP;
            *out = step;
            return 0;
        }
        if (end != out && *s->at == '[')
            rc = scan_index(s, &step->index, err);
        else
            rc = scan_name(s, "a column's name", &step->name, err);
        if (rc != 0)
            return rc;
        *end = step;
        end = &step->next;
        if (*s->at == '.')
            s->at++;
        else if (*s->at != '[')
            return 0;
    }
}

/* 'text', in which '' is one quote. */
static int scan_quoted(struct template_scan *s, const char **out, struct err *err)
{
    struct strbuf text = STRBUF_INIT;
    for (s->at++; *s->at != '\0'; s->at++) {
        if (*s->at == '\'' && *++s->at != '\'')
            break;
        strbuf_addc(&text, *s->at);
    }
    const bool closed = s->at[-1] == '\'';
    *out = arena_strndup(s->arena, text.buf, text.len);
    strbuf_release(&text);
    return closed ? 0 : template_fault(s, err, "a ' is never closed");
}

/* Quoted texts separated by commas, or a path where the filter takes one. */
static int scan_args(struct template_scan *s, struct template_use *use, struct err *err)
{
    const char **texts = arena_array(s->arena, FILTER_ARGS_MAX, sizeof(*texts));
    size_t n = 0;
    use->args.texts = texts;
    s->at++;
    skip_spaces(s);
    if (*s->at != '\'' && *s->at != ')') {
        if (!use->filter->paths)
            return template_fault(s, err, "expected a text in '...'");
        int rc = scan_path(s, &use->path, err);
        skip_spaces(s);
        if (rc != 0 || *s->at == ')')
            return rc != 0 ? rc : (s->at++, 0);
        return template_fault(s, err, "expected )");
    }
    while (*s->at == '\'') {
        if (n == FILTER_ARGS_MAX)
            return template_fault(s, err, "more than %d arguments", FILTER_ARGS_MAX);
        int rc = scan_quoted(s, &texts[n++], err);
        if (rc != 0)
            return rc;
        skip_spaces(s);
        if (*s->at != ',')
            break;
        s->at++;
        skip_spaces(s);
        if (*s->at != '\'')
            return template_fault(s, err, "expected a text in '...'");
    }
    use->args.n = n;
    if (*s->at != ')')
        return template_fault(s, err, "expected , or )");
    s->at++;
    return 0;
}

/* A filter's name and arguments, checked against its table entry. */
static int scan_use(struct template_scan *s, struct template_use *use, struct err *err)
{
    const char *name = NULL;
    const char *start = s->at;
    int rc = scan_name(s, "a filter's name", &name, err);
    if (rc != 0)
        return rc;
    use->filter = filter_find(name);
    if (use->filter == NULL) {
        const char *nearest = filter_nearest(name);
        s->at = start;
        if (nearest != NULL)
            return template_fault(s, err, "no filter '%.40s'; did you mean '%s'?", name, nearest);
        return template_fault(s, err, "no filter '%.40s'", name);
    }
    skip_spaces(s);
    if (*s->at == '(' && (rc = scan_args(s, use, err)) != 0)
        return rc;
    if (use->filter->pairs && use->args.n % 2 != 0)
        return template_fault(s, err, "%s takes its arguments in pairs", name);
    if (use->path != NULL ||
        (use->args.n >= use->filter->min_args && use->args.n <= use->filter->max_args))
        return 0;
    if (use->filter->min_args == use->filter->max_args)
        return template_fault(s, err, "%s takes %zu arguments, not %zu", name,
                              use->filter->min_args, use->args.n);
    return template_fault(s, err, "%s takes %zu to %zu arguments, not %zu", name,
                          use->filter->min_args, use->filter->max_args, use->args.n);
}

/* A path and its filters, from { to }. */
int template_scan_field(struct template_scan *s, struct template_part *part, struct err *err)
{
    struct template_use **end = &part->uses;
    s->at++;
    skip_spaces(s);
    int rc = scan_path(s, &part->path, err);
    for (skip_spaces(s); rc == 0 && *s->at == '|'; skip_spaces(s)) {
        struct template_use *use = arena_alloc(s->arena, sizeof(*use));
        s->at++;
        skip_spaces(s);
        rc = scan_use(s, use, err);
        *end = use;
        end = &use->next;
    }
    if (rc == 0 && *s->at != '}')
        rc = template_fault(s, err, "expected | or }");
    if (rc == 0)
        s->at++;
    return rc;
}
