/*
 * An engine's life: one list of buffers (list_buffers()) serves counting, allocation and release,
 * so the three cannot disagree. Creation packs every matrix in place; norms and an untied embedding
 * stay as they are, since they are not multiplied through packed_product().
 *
 * Slots for generations are opened later (engine_generate.c), because scoring never needs them.
 */
#include "worker/model/engine_private.h"

#include <stdlib.h>

#include "base/xalloc.h"
#include "worker/nn/packed.h"
#include "worker/nn/rope.h"

/* One of an engine's buffers. */
struct buffer {
    void **at;
    size_t n;
    size_t size;
};

#define BUFFERS_MAX 24

static size_t max_size(size_t a, size_t b)
{
    return a > b ? a : b;
}

static size_t packed_width(const struct model_config *cfg)
{
    return (size_t)(cfg->heads + 2 * cfg->kv_heads) * (size_t)(cfg->width / cfg->heads);
}

size_t engine_width(const struct engine *e)
{
    return (size_t)e->cfg.width;
}

static struct attend_dims dims_of(const struct model_config *cfg)
{
    return (struct attend_dims){.heads = (size_t)cfg->heads,
                                .groups = (size_t)cfg->kv_heads,
                                .dim = (size_t)(cfg->width / cfg->heads),
                                .context = (size_t)cfg->context};
}

static void buffer_add(struct buffer *list, size_t *n, void *at, size_t count, size_t size)
{
    list[(*n)++] = (struct buffer){at, count, size};
}

/* The buffers that only a mixture needs; returns the new length of the list. */
static size_t list_mixture(struct engine *e, struct buffer *list, size_t n)
{
    size_t rows = ENGINE_CHUNK, experts = (size_t)e->cfg.experts;
    size_t top = rows * (size_t)e->cfg.top_k;

    if (experts == 0)
        return n;
    buffer_add(list, &n, &e->p, rows * experts, sizeof(real));
    buffer_add(list, &n, &e->route_w, top, sizeof(real));
    buffer_add(list, &n, &e->chosen, top, sizeof(uint32_t));
    buffer_add(list, &n, &e->counts, experts, sizeof(uint32_t));
    buffer_add(list, &n, &e->place, top, sizeof(uint32_t));
    buffer_add(list, &n, &e->begins, experts + 1, sizeof(uint32_t));
    buffer_add(list, &n, &e->grouped, top * engine_width(e), sizeof(real));
    return n;
}

/* All buffers but the slots, with the addresses that will point to them. Only the sizes are read
 * from e. */
static size_t list_buffers(struct engine *e, struct buffer *list)
{
    const struct model_config *cfg = &e->cfg;
    size_t rows = ENGINE_CHUNK, c = engine_width(e), context = (size_t)cfg->context, n = 0;
    size_t ffn = rows * max_size((size_t)cfg->ffn, (size_t)cfg->shared * (size_t)cfg->expert_ffn);

    ffn = max_size(ffn, rows * (size_t)cfg->expert_ffn); /* one expert at a time */
    buffer_add(list, &n, &e->path_cache.at, (size_t)cfg->layers * attend_cache(&e->dims),
               sizeof(real));
    buffer_add(list, &n, &e->hidden, context * c, sizeof(real));
    buffer_add(list, &n, &e->ids, rows, sizeof(uint32_t));
    buffer_add(list, &n, &e->x, rows * c, sizeof(real));
    buffer_add(list, &n, &e->xn, rows * c, sizeof(real));
    buffer_add(list, &n, &e->qkv, rows * packed_width(cfg), sizeof(real));
    buffer_add(list, &n, &e->att, rows * c, sizeof(real));
    buffer_add(list, &n, &e->gu, 2 * ffn, sizeof(real));
    buffer_add(list, &n, &e->h, ffn, sizeof(real));
    buffer_add(list, &n, &e->rstd, rows, sizeof(real));
    buffer_add(list, &n, &e->rope, context * e->dims.dim, sizeof(real));
    buffer_add(list, &n, &e->attention, attend_scratch(&e->dims), sizeof(real));
    buffer_add(list, &n, &e->head.x, ENGINE_HEAD_ROWS * c, sizeof(real));
    buffer_add(list, &n, &e->head.logits, (size_t)ENGINE_HEAD_ROWS * ENGINE_HEAD_COLS,
               sizeof(real));
    buffer_add(list, &n, &e->head.sums, ENGINE_HEAD_ROWS, sizeof(struct logsum));
    return list_mixture(e, list, n);
}

static double bytes_of(const struct buffer *list, size_t n)
{
    double sum = 0;

    for (size_t i = 0; i < n; i++)
        sum += (double)list[i].n * (double)list[i].size;
    return sum;
}

double engine_bytes(const struct model_config *cfg)
{
    struct engine e = {.cfg = *cfg, .dims = dims_of(cfg)};
    struct buffer list[BUFFERS_MAX];
    size_t n = list_buffers(&e, list);

    return bytes_of(list, n) + 2 * (double)e.dims.context * sizeof(uint32_t); /* path and rows */
}

double engine_slots_bytes(const struct model_config *cfg)
{
    struct attend_dims dims = dims_of(cfg);
    double slot = (double)engine_slot_reals(cfg, &dims) * sizeof(real);
    double all = SCORE_SLOTS * slot, most = (double)SCORE_SLOT_BYTES;

    /* A call of short generations opens more and shorter slots than one of the longest. */
    return slot > most ? slot : all < most ? all : most;
}

size_t engine_slot_reals(const struct model_config *cfg, const struct attend_dims *dims)
{
    return (size_t)cfg->layers * attend_cache(dims);
}

size_t engine_slots_fitting(const struct model_config *cfg, const struct attend_dims *dims)
{
    size_t fit = SCORE_SLOT_BYTES / (engine_slot_reals(cfg, dims) * sizeof(real));

    return fit < 1 ? 1 : fit < SCORE_SLOTS ? fit : SCORE_SLOTS;
}

static int allocate(struct engine *e, struct err *err)
{
    struct buffer list[BUFFERS_MAX];
    size_t n = list_buffers(e, list);

    for (size_t i = 0; i < n; i++) {
        /* real_alloc() counts in reals; the buffers of other types are rounded up to them. */
        *list[i].at = real_alloc((list[i].n * list[i].size + sizeof(real) - 1) / sizeof(real));
        if (*list[i].at == NULL)
            return err_set(err, ERR_OTHER, "no memory: %.0f bytes to score up to %d tokens",
                           bytes_of(list, n), e->cfg.context);
    }
    return 0;
}

/* n matrices (out, in), one after the other from the tensor's start; none when the model lacks
 * it. */
static void pack(struct weights *w, real *scratch, enum tensor_role role, int layer, size_t n,
                 size_t out, size_t in)
{
    real *at = weights_at(w, role, layer);

    for (size_t i = 0; at != NULL && i < n; i++)
        packed_make(at + i * out * in, scratch, out, in);
}

static void pack_layer(struct weights *w, real *scratch, int layer)
{
    const struct model_config *cfg = &w->cfg;
    size_t c = (size_t)cfg->width, f = (size_t)cfg->ffn, experts = (size_t)cfg->experts;
    size_t expert = (size_t)cfg->expert_ffn, shared = (size_t)cfg->shared * expert;

    /* Q, K and V are adjacent and are one product, and so are gate and up. */
    pack(w, scratch, TENSOR_Q, layer, 1, packed_width(cfg), c);
    pack(w, scratch, TENSOR_O, layer, 1, c, c);
    pack(w, scratch, TENSOR_GATE, layer, 1, 2 * f, c);
    pack(w, scratch, TENSOR_DOWN, layer, 1, c, f);
    pack(w, scratch, TENSOR_ROUTER, layer, 1, experts, c);
    pack(w, scratch, TENSOR_EXPERT_GATE_UP, layer, experts, 2 * expert, c);
    pack(w, scratch, TENSOR_EXPERT_DOWN, layer, experts, c, expert);
    pack(w, scratch, TENSOR_SHARED_GATE, layer, 1, 2 * shared, c);
    pack(w, scratch, TENSOR_SHARED_DOWN, layer, 1, c, shared);
}

/* scratch holds one panel of the widest matrix. */
static int pack_all(struct weights *w, struct err *err)
{
    const struct model_config *cfg = &w->cfg;
    size_t in = max_size((size_t)cfg->width, (size_t)cfg->ffn);
    size_t expert = max_size(1, (size_t)cfg->shared) * (size_t)cfg->expert_ffn;
    real *scratch = real_alloc(PACKED_COLS * max_size(in, expert));

    if (scratch == NULL)
        return err_set(err, ERR_OTHER, "no memory to pack the weights");
    for (int layer = 0; layer < cfg->layers; layer++)
        pack_layer(w, scratch, layer);
    pack(w, scratch, cfg->tie_embeddings ? TENSOR_EMBED : TENSOR_HEAD, -1, 1, (size_t)cfg->vocab,
         (size_t)cfg->width);
    free(scratch);
    return 0;
}

int engine_create(struct weights *weights, struct engine **out, struct err *err)
{
    struct engine *e = xcalloc(1, sizeof(*e));

    *out = NULL;
    e->cfg = weights->cfg;
    e->w = weights;
    e->dims = dims_of(&e->cfg);
    e->path_cache.context = e->dims.context;
    prefix_path_init(&e->path, e->dims.context);
    prefix_rows_init(&e->head.rows, e->dims.context);
    int rc = allocate(e, err);
    if (rc == 0)
        rc = pack_all(weights, err);
    if (rc < 0) {
        engine_free(e);
        return rc;
    }
    rope_table(e->rope, e->cfg.rope_theta, e->dims.context, e->dims.dim);
    *out = e;
    return 0;
}

void engine_free_slots(struct engine *e)
{
    for (size_t i = 0; i < SCORE_SLOTS; i++) {
        free(e->slots[i].at);
        e->slots[i].at = NULL;
    }
}

void engine_free(struct engine *e)
{
    struct buffer list[BUFFERS_MAX];

    if (e == NULL)
        return;
    size_t n = list_buffers(e, list);
    for (size_t i = 0; i < n; i++)
        free(*list[i].at);
    engine_free_slots(e);
    free(e->head.wants);
    prefix_path_release(&e->path);
    prefix_rows_release(&e->head.rows);
    free(e);
}

int engine_check_tokens(const struct engine *e, const uint32_t *tokens, size_t n, struct err *err)
{
    for (size_t i = 0; i < n; i++)
        if (tokens[i] >= (uint32_t)e->cfg.vocab)
            return err_set(err, ERR_RANGE, "token %u is outside the model's vocabulary of %d",
                           tokens[i], e->cfg.vocab);
    return 0;
}

void engine_forget(struct engine *e)
{
    e->path.n = 0;
    prefix_rows_clear(&e->head.rows);
    e->head.n_wants = 0;
}
