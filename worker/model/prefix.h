/*
 * The order in which requests are computed, so that what they have in common is computed once.
 *
 * Requests are the leaves of a prefix tree over token ids and are computed in its preorder: a
 * request that is the beginning of others precedes them. At each branching the child on the cached
 * path is first, the others follow by token id; equal requests keep their order. The path is what a
 * cache holds at a moment: the tokens of the request computed last.
 *
 * Pure: the engine and the dry run share it.
 */
#ifndef WORKER_MODEL_PREFIX_H
#define WORKER_MODEL_PREFIX_H

#include <stddef.h>
#include <stdint.h>

/* What the model reads of one request. */
struct prefix_input {
    const uint32_t *tokens;
    size_t n;
    size_t read; /* the first position whose hidden state is read */
};

struct prefix_path {
    uint32_t *tokens; /* (context) */
    size_t n;
};

/* Rows of logits that wait to be computed together, so that requests which want the row after the
 * same tokens share one. */
struct prefix_rows {
    uint32_t *at; /* (context) by position of the path: number of its row + 1, 0 none */
    size_t end;   /* none from here on */
    size_t n;
};

void prefix_path_init(struct prefix_path *path, size_t context);
void prefix_path_release(struct prefix_path *path);

/* The length of the longest common beginning. */
size_t prefix_common(const uint32_t *a, size_t n_a, const uint32_t *b, size_t n_b);

/* order (n): indices of the inputs. */
void prefix_order(const struct prefix_input *in, size_t n, const struct prefix_path *path,
                  size_t *order);
/* How many tokens of the input are on the path. Afterwards the path holds the input; one that is
 * wholly on it leaves it as it is. */
size_t prefix_take(struct prefix_path *path, const struct prefix_input *in);

void prefix_rows_init(struct prefix_rows *rows, size_t context);
void prefix_rows_release(struct prefix_rows *rows);
/* The row of position p of the path, new if its number is what rows->n was; or `limit`, when so
 * many wait already and none of them is this one. */
size_t prefix_rows_want(struct prefix_rows *rows, size_t p, size_t limit);
/* The path holds other tokens from here on. */
void prefix_rows_leave(struct prefix_rows *rows, size_t from);
/* All rows were computed: none waits any more. */
void prefix_rows_clear(struct prefix_rows *rows);

#endif
