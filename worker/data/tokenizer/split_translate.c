/*
 * Translates Oniguruma's patterns for PCRE2. Both dialects agree on everything that is let through
 * here. Only \s is rewritten, because PCRE2's includes U+180E, which is not white space since
 * Unicode 6.3. Anything else is refused by name and position.
 */
#include <ctype.h>
#include <stdbool.h>

#include "worker/data/tokenizer/split.h"

struct translate {
    const char *pattern;
    size_t at;
    struct strbuf *out;
    struct err *err;
};

static int refuse(const struct translate *t, const char *what)
{
    return err_set(t->err, ERR_REFUSED, "split pattern, character %zu: %s is not supported",
                   t->at + 1, what);
}

/* \p{L}, \p{Lu}: a general category. \p{Han}: a script, where PCRE2's bare name would also take
 * characters that several scripts share. Either may be negated by ^. */
static int take_property(struct translate *t)
{
    const char *from = t->pattern + t->at;

    if (from[2] != '{')
        return refuse(t, "\\p without braces");
    const char *name = from + 3 + (from[3] == '^');
    int len = (int)strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_");
    bool category = len > 0 && len <= 2 && strchr("LMNPSZC", name[0]) != NULL;
    if (len == 0 || name[len] != '}' || (len <= 2 && !category))
        return refuse(t, "this property");
    strbuf_addf(t->out, "\\%c{%s%s%.*s}", from[1], from[3] == '^' ? "^" : "",
                category ? "" : "sc:", len, name);
    t->at += (size_t)(name + len + 1 - from);
    return 0;
}

/* Escapes that mean the same in both dialects, and \p, \P, \s and \S. */
static int take_escape(struct translate *t)
{
    char c = t->pattern[t->at + 1];

    if (c == 'p' || c == 'P')
        return take_property(t);
    if (c == 's')
        strbuf_adds(t->out, "\\p{White_Space}");
    else if (c == 'S')
        strbuf_adds(t->out, "\\P{White_Space}");
    else if (c != '\0' && (strchr("drnt", c) != NULL || ispunct((unsigned char)c) != 0))
        strbuf_add(t->out, t->pattern + t->at, 2);
    else
        return refuse(t, "this escape");
    t->at += 2;
    return 0;
}

static int take_class(struct translate *t)
{
    strbuf_addc(t->out, '[');
    t->at++;
    if (t->pattern[t->at] == '^') {
        strbuf_addc(t->out, '^');
        t->at++;
    }
    if (t->pattern[t->at] == ']')
        return refuse(t, "a class that begins with ]");
    while (t->pattern[t->at] != ']') {
        const char *p = t->pattern + t->at;
        if (p[0] == '\0')
            return err_set(t->err, ERR_SYNTAX, "split pattern: a class without end");
        if (p[0] == '[' || (p[0] == '&' && p[1] == '&'))
            return refuse(t, "a class inside a class");
        if (p[0] == '\\') {
            int rc = take_escape(t);
            if (rc < 0)
                return rc;
            continue;
        }
        strbuf_addc(t->out, p[0]);
        t->at++;
    }
    strbuf_addc(t->out, ']');
    t->at++;
    return 0;
}

/* Groups, lookarounds and (?i:; no named groups, no conditions. */
static int take_group(struct translate *t)
{
    static const char *const known[] = {"(?:", "(?i:", "(?=", "(?!", "(?<=", "(?<!"};
    const char *p = t->pattern + t->at;
    size_t len = 1;

    if (p[1] == '?' || p[1] == '*') {
        len = 0;
        for (size_t i = 0; len == 0 && i < sizeof(known) / sizeof(known[0]); i++)
            if (strncmp(p, known[i], strlen(known[i])) == 0)
                len = strlen(known[i]);
        if (len == 0)
            return refuse(t, "this kind of group");
    }
    strbuf_add(t->out, p, len);
    t->at += len;
    return 0;
}

/* {n}, {n,}, {n,m}; a + behind it repeats again in one dialect and holds on in the other. */
static int take_count(struct translate *t)
{
    const char *p = t->pattern + t->at;
    size_t len = 1 + strspn(p + 1, "0123456789");

    if (len > 1 && p[len] == ',')
        len += 1 + strspn(p + len + 1, "0123456789");
    if (len == 1 || p[len] != '}')
        return refuse(t, "this brace");
    len++;
    if (p[len] == '+' || p[len] == '?')
        return refuse(t, "a quantifier behind a count");
    strbuf_add(t->out, p, len);
    t->at += len;
    return 0;
}

int split_translate(const char *pattern, struct strbuf *out, struct err *err)
{
    struct translate t = {.pattern = pattern, .out = out, .err = err};
    int rc = 0;

    while (rc == 0 && pattern[t.at] != '\0') {
        switch (pattern[t.at]) {
        case '\\': rc = take_escape(&t); break;
        case '[': rc = take_class(&t); break;
        case '(': rc = take_group(&t); break;
        case '{': rc = take_count(&t); break;
        case '^': rc = refuse(&t, "^ outside a class"); break;
        case '$': rc = refuse(&t, "$"); break;
        default: strbuf_addc(out, pattern[t.at++]); break;
        }
    }
    return rc;
}
