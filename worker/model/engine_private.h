/* The inside of an engine, shared by engine.c (buffers), engine_pass.c, engine_head.c,
 * engine_score.c, engine_generate.c and engine_rates.c. */
#ifndef WORKER_MODEL_ENGINE_PRIVATE_H
#define WORKER_MODEL_ENGINE_PRIVATE_H

#include "worker/model/engine.h"
#include "worker/model/walk.h"
#include "worker/nn/logsum.h"
#include "worker/nn/rowwise/attend.h"

#define ENGINE_CHUNK     WALK_CHUNK
#define ENGINE_HEAD_ROWS WALK_HEAD_ROWS
#define ENGINE_HEAD_COLS 2048 /* columns of logits that are computed at a time */

/* Keys and values of all layers for a sequence of up to `context` tokens. */
struct engine_cache {
    real *at;       /* (layers, attend_cache()) */
    size_t context; /* positions it has room for */
};

/* Tokens of a pass at following positions of one sequence. Segments of a pass are computed in their
 * order, each with what those before it left in its cache. */
struct engine_segment {
    size_t row; /* its first row of the pass */
    size_t n;
    size_t first;  /* position of its first token */
    size_t unread; /* its first rows: only their keys and values are wanted of the last layer */
    const struct engine_cache *cache;
    const struct engine_cache *copy_to; /* receives a copy of the sequence so far; NULL: none */
};

/* A scored token: the row of its logits, and its request. */
struct engine_want {
    size_t row;
    uint32_t target;
    real logit;
    struct score_request *request;
};

struct engine_head {
    struct prefix_rows rows;
    real *x;             /* (ENGINE_HEAD_ROWS, C) */
    real *logits;        /* (ENGINE_HEAD_ROWS, ENGINE_HEAD_COLS) */
    struct logsum *sums; /* (ENGINE_HEAD_ROWS) */
    struct engine_want *wants;
    size_t n_wants, cap_wants;
};

struct engine {
    struct model_config cfg;
    const struct weights *w; /* packed */
    struct attend_dims dims; /* with the path's context */
    real *memory;            /* all buffers below but the slots */
    struct engine_cache path_cache;
    struct prefix_path path;
    real *hidden; /* (context, C) of the path's tokens, normalised: the head's input */
    bool *known;  /* (context) whether a position's hidden state was computed */

    /* One pass: rows N up to ENGINE_CHUNK; width C, packed W. */
    uint32_t *ids;    /* (N) */
    real *x;          /* (N, C) */
    real *xn;         /* (N, C) */
    real *qkv;        /* (N, W) */
    real *att;        /* (N, C) */
    real *gu;         /* (N, 2 F), the largest form of F */
    real *h;          /* (N, F) */
    real *rstd;       /* (N) */
    real *rope;       /* (context, D) */
    real *attention;  /* scratch */
    real *p;          /* (N, E) of the router */
    real *route_w;    /* (N, K) */
    uint32_t *chosen; /* (N, K) */
    uint32_t *counts; /* (E) */
    uint32_t *place;  /* (N K) */
    uint32_t *begins; /* (E + 1) */
    real *grouped;    /* (N K, C) inputs, then outputs, of experts */

    struct engine_head head;
    struct engine_cache slots[SCORE_SLOTS]; /* made when they are first used */
    size_t slot_context;
};

size_t engine_width(const struct engine *e);

/* Computes e->ids through all layers; e->xn (n, C) is then what the head reads, but for rows that
 * are unread. */
void engine_pass(struct engine *e, const struct engine_segment *segments, size_t n_segments,
                 size_t n);

/* Columns from .. from + n - 1 of the logits of `rows` rows of x, rows n apart. `from` begins a
 * panel (worker/nn/rowwise/packed.h). */
void engine_head_product(const struct engine *e, real *logits, const real *x, size_t rows,
                         size_t from, size_t n);
/* head->sums of rows 0 .. rows - 1 of x; also the logits that head->wants name. */
void engine_head_sums(struct engine *e, const real *x, size_t rows);
/* Shortens the path to before the first position that one of the inputs reads and that is not
 * known, since an earlier call had no use for it. */
void engine_trim_path(struct engine *e, const struct prefix_input *inputs, size_t n);
/* The hidden states of a step that engine_pass() computed, for the path. */
void engine_keep_hidden(struct engine *e, const struct walk_step *s);
/* Everything a request wants, whose last token the path holds and e->hidden has. */
void engine_head_take(struct engine *e, struct score_request *r);
/* Computes the rows that wait and adds them to their requests. */
void engine_head_flush(struct engine *e);

/* ERR_RANGE names the first token outside the vocabulary. */
int engine_check_tokens(const struct engine *e, const uint32_t *tokens, size_t n,
                        struct err *err) MUST_CHECK;
/* Empties the path and drops the rows and wants that wait. */
void engine_forget(struct engine *e);
/* Slots for sequences of up to `context` tokens: *n of them, no more than wanted, as
 * SCORE_SLOT_BYTES and SCORE_SLOTS allow. ERR_OTHER without memory. */
int engine_open_slots(struct engine *e, size_t context, size_t wanted, size_t *n,
                      struct err *err) MUST_CHECK;
void engine_free_slots(struct engine *e);
/* Of a slot with dims->context positions: its size, and how many may be open. */
size_t engine_slot_reals(const struct model_config *cfg, const struct attend_dims *dims);
size_t engine_slots_fitting(const struct model_config *cfg, const struct attend_dims *dims);

#endif
