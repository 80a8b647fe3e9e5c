/*
 * Goes through the tensors in the order of the table. Muon sees a stack of experts as so many
 * matrices: of the stacked gate and up two for each expert, of down one.
 */
#include "worker/train/optimiser.h"

#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "worker/nn/adamw.h"
#include "worker/nn/muon.h"
#include "worker/nn/sgd.h"

/* Whether Muon updates tensors of a role: the matrices of the blocks, without the router's. */
static bool is_hidden_matrix(enum tensor_role role)
{
    switch (role) {
    case TENSOR_Q:
    case TENSOR_K:
    case TENSOR_V:
    case TENSOR_O:
    case TENSOR_GATE:
    case TENSOR_UP:
    case TENSOR_DOWN:
    case TENSOR_EXPERT_GATE_UP:
    case TENSOR_EXPERT_DOWN:
    case TENSOR_SHARED_GATE:
    case TENSOR_SHARED_UP:
    case TENSOR_SHARED_DOWN: return true;
    case TENSOR_EMBED:
    case TENSOR_NORM_ATTENTION:
    case TENSOR_NORM_FFN:
    case TENSOR_ROUTER:
    case TENSOR_NORM_FINAL:
    case TENSOR_HEAD:
    case TENSOR_ROLE_NR: break;
    }
    return false;
}

static enum optimiser_kind kind_of(const struct train_options *opt, const struct tensor *t)
{
    if (opt->optimiser == OPTIMISER_MUON && !is_hidden_matrix(t->role))
        return OPTIMISER_ADAMW;
    return opt->optimiser;
}

/* Matrices that are stacked in a tensor. */
static size_t stacked(const struct tensor *t, const struct model_config *cfg)
{
    if (t->role == TENSOR_EXPERT_GATE_UP)
        return 2 * (size_t)cfg->experts;
    return t->role == TENSOR_EXPERT_DOWN ? (size_t)cfg->experts : 1;
}

struct optimiser_size optimiser_size(const struct train_options *opt)
{
    struct tensor_table table;
    struct optimiser_size size = {0};

    tensor_table_init(&table, &opt->model);
    for (size_t i = 0; i < table.n; i++) {
        const struct tensor *t = &table.items[i];
        enum optimiser_kind kind = kind_of(opt, t);
        if (kind == OPTIMISER_ADAMW)
            size.second += tensor_size(t);
        if (kind != OPTIMISER_MUON)
            continue;
        size_t scratch = muon_scratch(t->rows / stacked(t, &opt->model), t->cols);
        size.scratch = scratch > size.scratch ? scratch : size.scratch;
    }
    tensor_table_release(&table);
    return size;
}

double optimiser_flops(const struct train_options *opt)
{
    struct tensor_table table;
    double flops = 0.0;

    tensor_table_init(&table, &opt->model);
    for (size_t i = 0; i < table.n; i++) {
        const struct tensor *t = &table.items[i];
        size_t n = stacked(t, &opt->model);
        if (kind_of(opt, t) == OPTIMISER_MUON)
            flops += (double)n * muon_flops(t->rows / n, t->cols);
    }
    tensor_table_release(&table);
    return flops;
}

int optimiser_init(struct optimiser *o, const struct train_options *opt, struct err *err)
{
    size_t n_params = (size_t)model_config_total(&opt->model);
    struct optimiser_size size = optimiser_size(opt);

    *o = (struct optimiser){.n_second = size.second, .m = real_alloc(n_params)};
    o->v = size.second > 0 ? real_alloc(size.second) : NULL;
    o->scratch = size.scratch > 0 ? real_alloc(size.scratch) : NULL;
    if (o->m == NULL || (size.second > 0 && o->v == NULL) ||
        (size.scratch > 0 && o->scratch == NULL))
        return err_set(err, ERR_OTHER, "no memory for the moments of %zu parameters", n_params);
    return 0;
}

void optimiser_release(struct optimiser *o)
{
    free(o->m);
    free(o->v);
    free(o->scratch);
    *o = (struct optimiser){0};
}

static void update_muon(struct optimiser *o, const struct weights *w, const struct tensor *t,
                        real *grad, const struct muon *muon)
{
    size_t n = stacked(t, &w->cfg), rows = t->rows / n;

    for (size_t i = 0; i < n; i++) {
        size_t at = t->offset + i * rows * t->cols;
        muon_update(w->params + at, o->m + at, grad + at, o->scratch, rows, t->cols, muon);
    }
}

void optimiser_update(struct optimiser *o, const struct weights *w, real *grad,
                      const struct train_options *opt, const struct optimiser_step *step)
{
    const bool muons = opt->optimiser == OPTIMISER_MUON;
    const double lr = opt->lr * step->rate;
    struct adamw adamw = {.lr = muons ? opt->adamw_lr * step->rate : lr,
                          .beta1 = opt->beta1,
                          .beta2 = opt->beta2,
                          .eps = opt->eps,
                          .clip = step->clip,
                          .t = step->t};
    struct muon muon = {.lr = lr,
                        .momentum = opt->momentum,
                        .clip = step->clip,
                        .nesterov = opt->nesterov,
                        .precision = opt->precision};
    struct sgd sgd = {
        .lr = lr, .momentum = opt->momentum, .clip = step->clip, .nesterov = opt->nesterov};
    real *v = o->v;

    for (size_t i = 0; i < w->table.n; i++) {
        const struct tensor *t = &w->table.items[i];
        const size_t at = t->offset, n = tensor_size(t);
        const enum optimiser_kind kind = kind_of(opt, t);
        adamw.decay = muon.decay = sgd.decay = t->decays ? opt->weight_decay : 0.0;
        if (kind == OPTIMISER_MUON) {
            update_muon(o, w, t, grad, &muon);
        } else if (kind == OPTIMISER_SGD) {
            sgd_update(w->params + at, o->m + at, grad + at, n, &sgd);
        } else {
            adamw_update(w->params + at, o->m + at, v, grad + at, n, &adamw);
            v += n;
        }
    }
}

void optimiser_forget_expert(struct optimiser *o, const struct weights *w, int layer, size_t expert)
{
    static const enum tensor_role expert_roles[] = {TENSOR_EXPERT_GATE_UP, TENSOR_EXPERT_DOWN};

    for (size_t i = 0; i < sizeof(expert_roles) / sizeof(expert_roles[0]); i++) {
        const struct tensor *t = tensor_find(&w->table, expert_roles[i], layer);
        size_t n = tensor_size(t) / (size_t)w->cfg.experts, at = t->offset + n * expert;
        memset(o->m + at, 0, n * sizeof(*o->m));
        /* Experts have second moments only where all tensors do. */
        if (o->n_second == w->table.n_params)
            memset(o->v + at, 0, n * sizeof(*o->v));
    }
}
