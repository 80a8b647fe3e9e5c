/* Tokens of a condition: taking one, expecting one, and the message for a wrong one. */
#include "truthtable/condition/condition_parse.h"

#include <stdarg.h>
#include <string.h>

#include "base/text.h"
#include "base/xalloc.h"

/* The place of a byte of the text in grid.toml: the text begins one column after its opening quote.
 */
static struct place place_of(const struct cond_text *text, size_t offset)
{
    struct place at = text->place;
    if (at.line == 0) {
        return at;
    }
    at.column++;
    size_t len = strlen(text->text);
    for (size_t i = 0; i < offset && i < len;) {
        size_t n = text_utf8_next(text->text + i, len - i, NULL);
        at.column++;
        /* Conditions may span lines in a multi-line string. */
        if (text->text[i] == '\n') {
            at.line++;
            at.column = 1;
        }
        i += n == 0 ? 1 : n;
    }
    return at;
}

/* "X is expected, not Y", or "it ends where X is expected". */
struct cond *cond_fail_expected(struct cond_parser *ps, const char *what)
{
    if (ps->tok.kind == TOKEN_END) {
        return cond_fail(ps, ps->tok.offset, "it ends where %s is expected", what);
    }
    return cond_fail(ps, ps->tok.offset, "%s is expected, not \"%.*s\"", what, (int)ps->tok.len,
                     ps->tok.start);
}

/* A malformed token fails here, so that no other function sees one. */
void cond_advance(struct cond_parser *ps)
{
    if (ps->failed) {
        ps->tok = (struct token){.kind = TOKEN_END, .start = ""};
        return;
    }
    ps->tok = lexer_next(&ps->lexer);
    if (ps->tok.kind == TOKEN_BAD) {
        (void)cond_fail(ps, ps->tok.offset, "%s", ps->tok.message);
    }
}

/* The character goes into the message in quotes. */
bool cond_expect(struct cond_parser *ps, char c)
{
    if (!token_is_char(&ps->tok, c)) {
        (void)cond_fail_expected(ps, (const char[]){'"', c, '"', '\0'});
        return false;
    }
    cond_advance(ps);
    return !ps->failed;
}

/* Reports the first failure and sets `failed`; later ones are consequences and are dropped. Returns
 * NULL for the caller to return. */
struct cond *cond_fail(struct cond_parser *ps, size_t offset, const char *fmt, ...)
{
    if (ps->failed) {
        return NULL;
    }
    ps->failed = true;
    char message[512];
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(message, sizeof(message), fmt, ap);
    va_end(ap);
    struct place at = place_of(ps->text, offset);
    diag_add(ps->diag, DIAG_ERROR, at.line, at.column, "condition \"%.80s%s\": %s", ps->text->text,
             strlen(ps->text->text) > 80 ? "..." : "", message);
    return NULL;
}

/* The name is cut for the message; nearest names are found by edit distance. */
struct cond *cond_fail_unknown(struct cond_parser *ps, const struct token *t, const char *what,
                               const char *const *known, size_t n_known)
{
    char name[65];
    size_t len = t->len < sizeof(name) - 1 ? t->len : sizeof(name) - 1;
    memcpy(name, t->start, len);
    name[len] = '\0';
    const char *near = text_nearest(name, known, n_known);
    return near == NULL ? cond_fail(ps, t->offset, "there is no %s \"%s\"", what, name)
                        : cond_fail(ps, t->offset, "there is no %s \"%s\"; did you mean \"%s\"?",
                                    what, name, near);
}

/* A node with every index unset. The limit on nodes bounds the work of everything that walks
 * trees. */
struct cond *cond_new(struct cond_parser *ps, enum cond_kind kind, size_t offset)
{
    if (ps->failed) {
        return NULL;
    }
    if (++ps->n_nodes > COND_NODES_MAX) {
        return cond_fail(ps, offset, "more than %d parts", COND_NODES_MAX);
    }
    struct cond *c = arena_alloc(ps->facts->arena, sizeof(*c));
    c->kind = kind;
    c->offset = offset;
    c->index = c->measure = c->fact = c->factor = c->level_a = c->level_b = INDEX_NONE;
    return c;
}

/* Consumes a token of this kind and returns it. */
bool cond_take(struct cond_parser *ps, enum token_kind kind, const char *what, struct token *out)
{
    if (ps->tok.kind != kind) {
        (void)cond_fail_expected(ps, what);
        return false;
    }
    *out = ps->tok;
    cond_advance(ps);
    return !ps->failed;
}
