/*
 * Initial values come from a counter-based generator: element i of tensor t is a function of (seed,
 * t, i) alone. So they do not depend on threads or order, and one expert can be redrawn without
 * touching the rest. A re-draw uses another stream and mixes its round into the key.
 */
#include "worker/model/weights.h"

#include <assert.h>
#include <math.h>

#include "base/xalloc.h"
#include "worker/data/philox.h"
#include "worker/nn/pages.h"

/* Of weights that are repeated. A prime, so that rows of a matrix differ: routers' rows that did
 * not would send all tokens to one expert. */
#define PERIOD 65521

real *real_alloc(size_t n)
{
    if (n > SIZE_MAX / sizeof(real))
        return NULL;
    real *p = pages_alloc(n * sizeof(real));
    if (p != NULL)
        memset(p, 0, n * sizeof(real));
    return p;
}

size_t weights_n_bias(const struct model_config *cfg)
{
    return (size_t)cfg->layers * (size_t)cfg->experts;
}

int weights_init(struct weights *w, const struct model_config *cfg, struct err *err)
{
    *w = (struct weights){.cfg = *cfg};
    tensor_table_init(&w->table, cfg);
    w->params = real_alloc(w->table.n_params);
    if (w->params != NULL && cfg->experts > 0)
        w->route_bias = real_alloc(weights_n_bias(cfg));
    if (w->params == NULL || (cfg->experts > 0 && w->route_bias == NULL)) {
        weights_release(w);
        return err_set(err, ERR_OTHER, "no memory for %lld parameters",
                       (long long)model_config_total(cfg));
    }
    return 0;
}

void weights_release(struct weights *w)
{
    tensor_table_release(&w->table);
    free(w->params);
    free(w->route_bias);
    w->params = NULL;
    w->route_bias = NULL;
}

/* Elements first .. first + n - 1 of a tensor; words of pair i / 2, so that ranges can be drawn
 * alone. */
static void draw(real *out, size_t first, size_t n, uint64_t seed, enum philox_stream stream,
                 uint32_t key, double sd)
{
    double pair[2] = {0.0, 0.0};

    for (size_t i = first; i < first + n; i++) {
        if (i % 2 == 0 || i == first) {
            struct philox words = philox_at(seed, stream, key, i / 2);
            philox_normal(&words, pair);
        }
        out[i - first] = (real)(sd * pair[i % 2]);
    }
}

static double tensor_sd(const struct weights *w, const struct tensor *t, double sd)
{
    return t->residual ? sd / sqrt(2.0 * w->cfg.layers) : sd;
}

void weights_randomise(struct weights *w, uint64_t seed, double sd)
{
    for (size_t i = 0; i < w->table.n; i++) {
        const struct tensor *t = &w->table.items[i];
        real *out = w->params + t->offset;
        if (t->ones)
            for (size_t j = 0; j < tensor_size(t); j++)
                out[j] = 1;
        else
            draw(out, 0, tensor_size(t), seed, PHILOX_INIT, (uint32_t)i, tensor_sd(w, t, sd));
    }
}

void weights_repeat(struct weights *w, double sd)
{
    real *drawn = xcalloc(PERIOD, sizeof(*drawn));

    draw(drawn, 0, PERIOD, 0, PHILOX_INIT, 0, 1.0);
    for (size_t i = 0; i < w->table.n; i++) {
        const struct tensor *t = &w->table.items[i];
        real *out = w->params + t->offset;
        real scale = (real)tensor_sd(w, t, sd);
        for (size_t j = 0, at = t->offset % PERIOD; j < tensor_size(t); j++) {
            out[j] = t->ones ? 1 : scale * drawn[at];
            at = at + 1 < PERIOD ? at + 1 : 0;
        }
    }
    free(drawn);
}

void weights_reset_expert(struct weights *w, int layer, int expert, uint64_t seed, double sd,
                          uint32_t round)
{
    static const enum tensor_role stacked[] = {TENSOR_EXPERT_GATE_UP, TENSOR_EXPERT_DOWN};

    for (size_t i = 0; i < sizeof(stacked) / sizeof(stacked[0]); i++) {
        const struct tensor *t = tensor_find(&w->table, stacked[i], layer);
        assert(t != NULL);
        size_t n = tensor_size(t) / (size_t)w->cfg.experts;
        size_t first = n * (size_t)expert;
        uint32_t key = (uint32_t)(t - w->table.items) ^ round * 0x9E3779B9u;
        draw(w->params + t->offset + first, first, n, seed, PHILOX_RESET, key, tensor_sd(w, t, sd));
    }
}

real *weights_at(const struct weights *w, enum tensor_role role, int layer)
{
    const struct tensor *t = tensor_find(&w->table, role, layer);

    return t == NULL ? NULL : w->params + t->offset;
}
