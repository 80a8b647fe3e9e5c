#include "worker/data/added.h"

#include <assert.h>

#include "base/text.h"
#include "base/xalloc.h"

void added_init(struct added *a)
{
    *a = (struct added){0};
}

void added_release(struct added *a)
{
    for (size_t i = 0; i < a->n; i++)
        free(a->tokens[i].content);
    free(a->tokens);
    added_init(a);
}

void added_put(struct added *a, const struct added_token *token)
{
    assert(token->len > 0);
    ARRAY_GROW(a->tokens, a->n, a->cap);
    a->tokens[a->n++] = *token;
    a->first[token->normalized][(unsigned char)token->content[0]] = true;
}

const struct added_token *added_by_id(const struct added *a, uint32_t id)
{
    for (size_t i = 0; i < a->n; i++)
        if (a->tokens[i].id == id)
            return &a->tokens[i];
    return NULL;
}

/* Unicode's White_Space. */
static bool is_space(uint32_t c)
{
    return (c >= 0x09 && c <= 0x0d) || c == 0x20 || c == 0x85 || c == 0xa0 || c == 0x1680 ||
           (c >= 0x2000 && c <= 0x200a) || c == 0x2028 || c == 0x2029 || c == 0x202f ||
           c == 0x205f || c == 0x3000;
}

static size_t space_after(const char *text, size_t len, size_t at)
{
    uint32_t c = 0;
    size_t n;

    while ((n = text_utf8_next(text + at, len - at, &c)) > 0 && is_space(c))
        at += n;
    return at;
}

static size_t space_before(const char *text, size_t from, size_t at)
{
    while (at > from) {
        size_t start = at - 1;
        uint32_t c = 0;
        while (start > from && ((unsigned char)text[start] & 0xc0) == 0x80)
            start--;
        if (text_utf8_next(text + start, at - start, &c) != at - start || !is_space(c))
            break;
        at = start;
    }
    return at;
}

static const struct added_token *longest_at(const struct added *a, int round, const char *text,
                                            size_t len)
{
    const struct added_token *best = NULL;

    for (size_t i = 0; i < a->n; i++) {
        const struct added_token *t = &a->tokens[i];
        if (t->normalized == (round == 1) && t->len <= len &&
            (best == NULL || t->len > best->len) && memcmp(text, t->content, t->len) == 0)
            best = t;
    }
    return best;
}

const struct added_token *added_find(const struct added *a, int round, const char *text, size_t len,
                                     size_t from, size_t bounds[2])
{
    const bool *first = a->first[round];

    for (size_t at = from; at < len; at++) {
        if (!first[(unsigned char)text[at]])
            continue;
        const struct added_token *t = longest_at(a, round, text + at, len - at);
        if (t == NULL)
            continue;
        bounds[0] = t->lstrip ? space_before(text, from, at) : at;
        bounds[1] = at + t->len;
        if (t->rstrip)
            bounds[1] = space_after(text, len, bounds[1]);
        return t;
    }
    return NULL;
}
