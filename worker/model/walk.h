/*
 * A call's requests in the order of their prefix tree, cut into chunks of tokens: what is computed
 * when. Pure: the engine does it, the dry run counts it.
 */
#ifndef WORKER_MODEL_WALK_H
#define WORKER_MODEL_WALK_H

#include <stdbool.h>

#include "worker/model/prefix.h"

#define WALK_CHUNK     512 /* tokens of a pass: what a layer's weights are read for once */
#define WALK_HEAD_ROWS 256 /* rows of logits computed together */

/* A request in its turn: what it adds to the path in the chunk at hand. */
struct walk_step {
    size_t request;
    size_t first;  /* position of its first token in this chunk */
    size_t row;    /* of the chunk */
    size_t n;      /* 0: all of it is on the path */
    size_t unread; /* its first rows: their hidden states are read by no request */
    bool whole;    /* its last token is in this chunk, or was there before */
};

struct walk {
    struct prefix_input *inputs; /* filled by the caller between init and start */
    size_t n;
    size_t at;   /* requests that are whole */
    size_t done; /* positions of the next one that chunks before computed; 0: it has not begun */
    struct walk_step *steps; /* of the chunk at hand */
    size_t n_steps;
    size_t rows;
    size_t *order;
};

/* Allocates for n inputs; walk_start() orders them after the caller has filled them in, and lowers
 * their `read` to what requests read that go on from them. */
void walk_init(struct walk *w, size_t n);
void walk_start(struct walk *w, const struct prefix_path *path);
void walk_release(struct walk *w);
/* The next chunk, in which no more than `limit` requests become whole. False when nothing is left,
 * or limit is 0. The path runs ahead: it is what the cache holds once the chunk is computed. */
bool walk_next(struct walk *w, struct prefix_path *path, size_t limit);

#endif
