/*
 * The tree is never built: sorting the requests by token ids is its preorder. Two requests compare
 * by how far each follows the cached path first, since the one that leaves it later (or ends on it)
 * has to be computed while the cache still holds that part.
 */
#include "worker/model/prefix.h"

#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"

void prefix_path_init(struct prefix_path *path, size_t context)
{
    *path = (struct prefix_path){.tokens = xcalloc(context, sizeof(*path->tokens))};
}

void prefix_path_release(struct prefix_path *path)
{
    free(path->tokens);
    *path = (struct prefix_path){0};
}

/* What sorting needs to know of an input. */
struct prefix_place {
    const uint32_t *tokens;
    size_t n;
    size_t on_path; /* how many of its first tokens are on the path */
    size_t index;
};

size_t prefix_common(const uint32_t *a, size_t n_a, const uint32_t *b, size_t n_b)
{
    size_t n = n_a < n_b ? n_a : n_b, i = 0;

    while (i < n && a[i] == b[i])
        i++;
    return i;
}

/* Compares two inputs that agree up to `at` and leave the path there. */
static int compare_off_path(const struct prefix_place *a, const struct prefix_place *b, size_t at)
{
    size_t i = at + prefix_common(a->tokens + at, a->n - at, b->tokens + at, b->n - at);

    if (i < a->n && i < b->n)
        return a->tokens[i] < b->tokens[i] ? -1 : 1;
    if (a->n != b->n)
        return a->n < b->n ? -1 : 1;
    return a->index < b->index ? -1 : 1;
}

static int compare(const void *left, const void *right)
{
    const struct prefix_place *a = left, *b = right;

    if (a->on_path == b->on_path)
        return compare_off_path(a, b, a->on_path);
    /* One leaves the path, or ends, where the other is still on it. */
    if (a->on_path < b->on_path)
        return a->n == a->on_path ? -1 : 1;
    return b->n == b->on_path ? 1 : -1;
}

void prefix_order(const struct prefix_input *in, size_t n, const struct prefix_path *path,
                  size_t *order)
{
    struct prefix_place *places = xcalloc(n, sizeof(*places));

    for (size_t i = 0; i < n; i++)
        places[i] = (struct prefix_place){
            .tokens = in[i].tokens,
            .n = in[i].n,
            .on_path = prefix_common(in[i].tokens, in[i].n, path->tokens, path->n),
            .index = i};
    qsort(places, n, sizeof(*places), compare);
    for (size_t i = 0; i < n; i++)
        order[i] = places[i].index;
    free(places);
}

size_t prefix_take(struct prefix_path *path, const struct prefix_input *in)
{
    size_t shared = prefix_common(in->tokens, in->n, path->tokens, path->n);

    if (shared == in->n)
        return shared;
    memcpy(path->tokens + shared, in->tokens + shared, (in->n - shared) * sizeof(*in->tokens));
    path->n = in->n;
    return shared;
}

void prefix_rows_init(struct prefix_rows *rows, size_t context)
{
    *rows = (struct prefix_rows){.at = xcalloc(context, sizeof(*rows->at))};
}

void prefix_rows_release(struct prefix_rows *rows)
{
    free(rows->at);
    *rows = (struct prefix_rows){0};
}

size_t prefix_rows_want(struct prefix_rows *rows, size_t p, size_t limit)
{
    if (rows->at[p] != 0)
        return rows->at[p] - 1;
    if (rows->n == limit)
        return limit;
    rows->at[p] = (uint32_t)++rows->n;
    if (p >= rows->end)
        rows->end = p + 1;
    return rows->n - 1;
}

void prefix_rows_leave(struct prefix_rows *rows, size_t from)
{
    if (from >= rows->end)
        return;
    memset(rows->at + from, 0, (rows->end - from) * sizeof(*rows->at));
    rows->end = from;
}

void prefix_rows_clear(struct prefix_rows *rows)
{
    prefix_rows_leave(rows, 0);
    rows->n = 0;
}
