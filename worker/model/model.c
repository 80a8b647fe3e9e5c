#include "worker/model/model.h"

#include "base/xalloc.h"
#include "worker/model/import.h"
#include "worker/model/run.h"
#include "worker/nn/crossent.h"
#include "worker/nn/gemm.h"

struct model {
    struct import_source source;
    struct weights weights;
    struct store_info info;
    struct run *run;
    double *loss; /* (head rows) */
    real *max;    /* (head rows) */
};

static int cut_context(struct model_config *cfg, int context, struct err *err)
{
    if (context > cfg->context)
        return err_set(err, ERR_USAGE, "a context of %d tokens: the model takes %d", context,
                       cfg->context);
    if (context > 0)
        cfg->context = context;
    return 0;
}

int model_open_within(const char *folder, int threads, int context, struct model **out,
                      struct err *err)
{
    struct model *m = xcalloc(1, sizeof(*m));
    struct model_config *cfg = &m->weights.cfg;

    *out = NULL;
    gemm_set_threads(threads);
    int rc = import_find(folder, &m->source, err);
    if (rc == 0)
        rc = import_weights(&m->source, &m->weights, &m->info, err);
    if (rc == 0)
        rc = cut_context(cfg, context, err);
    if (rc == 0)
        rc = run_create(cfg, RUN_INFER, (size_t)cfg->context, &m->run, err);
    if (rc < 0) {
        model_free(m);
        return rc;
    }
    m->loss = xcalloc(run_head_rows(m->run), sizeof(*m->loss));
    m->max = xcalloc(run_head_rows(m->run), sizeof(*m->max));
    *out = m;
    return 0;
}

int model_open(const char *folder, int threads, struct model **out, struct err *err)
{
    return model_open_within(folder, threads, 0, out, err);
}

int model_check_memory(const char *folder, int context, int64_t allowed, struct err *err)
{
    struct import_source source;
    struct model_config cfg;
    const double mib = 0x1p20;

    int rc = import_find(folder, &source, err);
    if (rc < 0)
        return rc;
    rc = import_config(&source, &cfg, err);
    import_source_release(&source);
    if (rc == 0)
        rc = cut_context(&cfg, context, err);
    if (rc < 0 || allowed <= 0)
        return rc;
    double needed = sizeof(real) * (double)model_config_total(&cfg) +
                    run_bytes(&cfg, RUN_INFER, (size_t)cfg.context);
    if (needed <= (double)allowed)
        return 0;
    return err_set(err, ERR_USAGE,
                   "memory_bytes: the model needs at least %.1f MiB (%lld parameters, a context of "
                   "%d tokens), the task may use %.1f MiB",
                   needed / mib, (long long)model_config_total(&cfg), cfg.context,
                   (double)allowed / mib);
}

void model_free(struct model *m)
{
    if (m == NULL)
        return;
    run_free(m->run);
    weights_release(&m->weights);
    store_info_release(&m->info);
    import_source_release(&m->source);
    free(m->loss);
    free(m->max);
    free(m);
}

const struct model_config *model_config(const struct model *m)
{
    return &m->weights.cfg;
}

struct digest model_digest(const struct model *m)
{
    return m->info.weights;
}

const char *model_tokenizer_spec(const struct model *m)
{
    return m->info.tokenizer_spec;
}

const char *model_tokenizer_file(const struct model *m)
{
    return m->source.tokenizer;
}

struct digest model_tokenizer_digest(const struct model *m)
{
    return m->info.tokenizer;
}

static int check_tokens(const struct model *m, const uint32_t *tokens, size_t n, struct err *err)
{
    for (size_t i = 0; i < n; i++)
        if (tokens[i] >= (uint32_t)m->weights.cfg.vocab)
            return err_set(err, ERR_RANGE, "token %u is outside the model's vocabulary of %d",
                           tokens[i], m->weights.cfg.vocab);
    return 0;
}

/* Rows at .. at + rows - 1 of the pass predict tokens[at + 1 ..]. */
static void score_rows(struct model *m, const uint32_t *tokens, size_t at, size_t rows,
                       double *logprob, bool *is_top)
{
    size_t v = (size_t)m->weights.cfg.vocab;
    const real *logits = run_logits(m->run, &m->weights, at, rows);

    crossent_forward(m->loss, m->max, logits, tokens + at + 1, rows, v);
    for (size_t i = 0; i < rows; i++) {
        logprob[i] = -m->loss[i];
        if (is_top != NULL)
            is_top[i] = logits[i * v + tokens[at + 1 + i]] >= m->max[i];
    }
}

int model_score(struct model *m, const uint32_t *tokens, size_t n, size_t first, double *logprob,
                bool *is_top, struct err *err)
{
    size_t context = (size_t)m->weights.cfg.context;

    if (first < 1 || first >= n || n - 1 > context)
        return err_set(err, ERR_RANGE, "score %zu .. %zu of a context of %zu", first, n, context);
    int rc = check_tokens(m, tokens, n, err);
    if (rc < 0)
        return rc;
    struct run_batch batch = {.tokens = tokens, .batch = 1, .length = n - 1};
    run_forward(m->run, &m->weights, &batch, NULL);
    for (size_t at = first - 1; at < n - 1; at += run_head_rows(m->run)) {
        size_t left = n - 1 - at, most = run_head_rows(m->run);
        size_t done = at - (first - 1);
        score_rows(m, tokens, at, left < most ? left : most, logprob + done,
                   is_top == NULL ? NULL : is_top + done);
    }
    return 0;
}

int model_next_logits(struct model *m, const uint32_t *tokens, size_t n, float *logits,
                      struct err *err)
{
    if (n < 1 || n > (size_t)m->weights.cfg.context)
        return err_set(err, ERR_RANGE, "%zu tokens in a context of %d", n, m->weights.cfg.context);
    int rc = check_tokens(m, tokens, n, err);
    if (rc < 0)
        return rc;
    struct run_batch batch = {.tokens = tokens, .batch = 1, .length = n};
    run_forward(m->run, &m->weights, &batch, NULL);
    const real *row = run_logits(m->run, &m->weights, n - 1, 1);
    memcpy(logits, row, (size_t)m->weights.cfg.vocab * sizeof(*logits));
    return 0;
}

const char *model_blas_text(void)
{
    return gemm_blas_text();
}
