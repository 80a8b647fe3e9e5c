/*
 * Searching is by hash, once per distinct length of contents: at each position whose byte begins
 * some content, the longest length is tried first. The cost therefore does not grow with the number
 * of tokens, of which some files have thousands. White space that lstrip and rstrip take is found
 * from the token outwards and belongs to the token's bounds.
 */
#include "worker/data/tokenizer/added_tokens.h"

#include <assert.h>

#include "base/text.h"
#include "base/xalloc.h"

void added_init(struct added *a)
{
    *a = (struct added){0};
    byte_map_init(&a->contents);
}

void added_release(struct added *a)
{
    for (uint32_t i = 0; i < a->n; i++)
        free(a->tokens[i].content);
    free(a->tokens);
    byte_map_release(&a->contents);
    free(a->by_id);
    for (int round = 0; round < 2; round++)
        free(a->lengths[round].items);
    added_init(a);
}

static void note_id(struct added *a, uint32_t id, uint32_t index)
{
    for (; a->n_ids <= id; a->n_ids++) {
        ARRAY_GROW(a->by_id, a->n_ids, a->cap_ids);
        a->by_id[a->n_ids] = ADDED_NONE;
    }
    a->by_id[id] = index;
}

/* Keeps the list of lengths sorted and without repeats. */
static void note_length(struct added_lengths *l, size_t len)
{
    size_t at = 0;

    while (at < l->n && l->items[at] > len)
        at++;
    if (at < l->n && l->items[at] == len)
        return;
    ARRAY_GROW(l->items, l->n, l->cap);
    memmove(l->items + at + 1, l->items + at, (l->n - at) * sizeof(*l->items));
    l->items[at] = len;
    l->n++;
}

void added_put(struct added *a, const struct added_token *token)
{
    assert(token->len > 0 && added_by_id(a, token->id) == NULL);
    assert(added_by_content(a, token->content, token->len) == NULL);
    uint32_t entry = byte_map_add(&a->contents, token->content, token->len);
    a->contents.entries[entry].value = a->n;
    note_id(a, token->id, a->n);
    note_length(&a->lengths[token->normalized], token->len);
    a->first[token->normalized][(unsigned char)token->content[0]] = true;
    ARRAY_GROW(a->tokens, a->n, a->cap);
    a->tokens[a->n++] = *token;
}

const struct added_token *added_by_id(const struct added *a, uint32_t id)
{
    return id < a->n_ids && a->by_id[id] != ADDED_NONE ? &a->tokens[a->by_id[id]] : NULL;
}

const struct added_token *added_by_content(const struct added *a, const char *content, size_t len)
{
    uint32_t entry = byte_map_find(&a->contents, content, len);

    return entry == BYTE_MAP_NONE ? NULL : &a->tokens[a->contents.entries[entry].value];
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

/* Where the white space that ends at `at` begins, no earlier than `from`. */
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

/* The longest content of this round with which the text begins. */
static const struct added_token *longest_at(const struct added *a, int round, const char *text,
                                            size_t len)
{
    const struct added_lengths *lengths = &a->lengths[round];

    for (size_t i = 0; i < lengths->n; i++) {
        if (lengths->items[i] > len)
            continue;
        const struct added_token *t = added_by_content(a, text, lengths->items[i]);
        if (t != NULL && t->normalized == (round == 1))
            return t;
    }
    return NULL;
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
