/*
 * An engine's life. Its buffers are one allocation (worker/model/carve.h) that lay_out() divides.
 * Creation packs every matrix in place; norms and an untied embedding stay as they are, since they
 * are not multiplied through packed_product().
 *
 * Slots for generations are opened later (engine_generate.c), because scoring never needs them.
 */
#include "worker/model/engine_private.h"

#include <stdlib.h>

#include "base/xalloc.h"
#include "worker/model/carve.h"
#include "worker/nn/rope.h"
#include "worker/nn/rowwise/packed.h"

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

/* The buffers that only a mixture needs. */
static void lay_out_mixture(struct carver *c, struct engine *e)
{
    size_t rows = ENGINE_CHUNK, experts = (size_t)e->cfg.experts;
    size_t top = rows * (size_t)e->cfg.top_k;

    e->p = carve_real(c, rows * experts);
    e->route_w = carve_real(c, top);
    e->chosen = carve_u32(c, top);
    e->counts = carve_u32(c, experts);
    e->place = carve_u32(c, top);
    e->begins = carve_u32(c, experts + 1);
    e->grouped = carve_real(c, top * engine_width(e));
}

/* Every buffer but the slots; reads cfg and dims. */
static void lay_out(struct carver *c, struct engine *e)
{
    const struct model_config *cfg = &e->cfg;
    size_t rows = ENGINE_CHUNK, width = engine_width(e), context = (size_t)cfg->context;
    size_t expert = (size_t)cfg->expert_ffn; /* one expert at a time */
    size_t ffn = max_size((size_t)cfg->ffn, max_size(expert, (size_t)cfg->shared * expert));

    e->path_cache.at = carve_real(c, (size_t)cfg->layers * attend_cache(&e->dims));
    e->hidden = carve_real(c, context * width);
    e->known = carve(c, context, sizeof(*e->known));
    e->ids = carve_u32(c, rows);
    e->x = carve_real(c, rows * width);
    e->xn = carve_real(c, rows * width);
    e->qkv = carve_real(c, rows * model_config_qkv(cfg));
    e->att = carve_real(c, rows * width);
    e->gu = carve_real(c, rows * 2 * ffn);
    e->h = carve_real(c, rows * ffn);
    e->rstd = carve_real(c, rows);
    e->rope = carve_real(c, context * e->dims.dim);
    e->attention = carve_real(c, attend_scratch(&e->dims));
    e->head.x = carve_real(c, ENGINE_HEAD_ROWS * width);
    e->head.logits = carve_real(c, (size_t)ENGINE_HEAD_ROWS * ENGINE_HEAD_COLS);
    e->head.sums = carve(c, ENGINE_HEAD_ROWS, sizeof(*e->head.sums));
    if (cfg->experts > 0)
        lay_out_mixture(c, e);
}

double engine_bytes(const struct model_config *cfg)
{
    struct engine e = {.cfg = *cfg, .dims = dims_of(cfg)};
    struct carver count = {0};

    lay_out(&count, &e);
    return (double)count.used + 2 * (double)e.dims.context * sizeof(uint32_t); /* path and rows */
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
    struct carver carver = {0};

    lay_out(&carver, e);
    e->memory = real_alloc(carver.used / sizeof(real));
    if (e->memory == NULL)
        return err_set(err, ERR_OTHER, "no memory: %zu bytes to score up to %d tokens", carver.used,
                       e->cfg.context);
    carver = (struct carver){.memory = (char *)e->memory};
    lay_out(&carver, e);
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
    pack(w, scratch, TENSOR_Q, layer, 1, model_config_qkv(cfg), c);
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
    if (e == NULL)
        return;
    free(e->memory);
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

void engine_trim_path(struct engine *e, const struct prefix_input *inputs, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        size_t on_path = prefix_common(inputs[i].tokens, inputs[i].n, e->path.tokens, e->path.n);
        for (size_t p = inputs[i].read; p < on_path; p++)
            if (!e->known[p]) {
                e->path.n = p;
                break;
            }
    }
}

void engine_keep_hidden(struct engine *e, const struct walk_step *s)
{
    size_t c = engine_width(e), from = s->first + s->unread, n = s->n - s->unread;

    memcpy(e->hidden + from * c, e->xn + (s->row + s->unread) * c, n * c * sizeof(real));
    for (size_t i = 0; i < s->n; i++)
        e->known[s->first + i] = i >= s->unread;
}

void engine_forget(struct engine *e)
{
    e->path.n = 0;
    prefix_rows_clear(&e->head.rows);
    e->head.n_wants = 0;
}
