/*
 * Windows are spread evenly over the held-out stream and the same ones are used at every
 * evaluation, so losses of different steps compare. The standard error treats windows as
 * independent; a single window has none (NaN). SIGTERM is checked between batches, and an
 * interrupted evaluation leaves no trace.
 */
#include "worker/train/evaluate.h"

#include <math.h>

#include "base/math/elementary.h"
#include "base/xalloc.h"
#include "worker/report/stop.h"

/* Windows of one source: all alike in length. A source too short for one is a single shorter
 * window. */
struct windows {
    size_t length;
    size_t total;
    size_t used;
};

/* Which windows: `used` of `total`, window i beginning at total * i / used. */
static struct windows windows_of(const struct train_source *src, const struct train_options *opt)
{
    struct windows w = {.length = (size_t)opt->model.context};

    w.total = (src->val.n - 1) / w.length;
    if (w.total == 0)
        return (struct windows){.length = src->val.n - 1, .total = 1, .used = 1};
    w.used = (size_t)(opt->val_tokens / (int64_t)w.length);
    if (w.used < 1)
        w.used = 1;
    if (w.used > w.total)
        w.used = w.total;
    return w;
}

/* The losses of windows first .. first + n - 1 into means[0 .. n - 1]. */
static void run_windows(struct trainer *t, const struct train_source *src, const struct windows *w,
                        size_t first, size_t n, double *means)
{
    double *loss = xcalloc(n * w->length, sizeof(*loss));
    struct run_batch batch = {
        .tokens = t->tokens, .targets = t->targets, .batch = n, .length = w->length};

    for (size_t i = 0; i < n; i++) {
        const uint32_t *from = src->val.ids + (first + i) * w->total / w->used * w->length;
        memcpy(t->tokens + i * w->length, from, w->length * sizeof(*from));
        memcpy(t->targets + i * w->length, from + 1, w->length * sizeof(*from));
    }
    run_forward(t->run, &t->w, &batch, NULL);
    run_token_losses(t->run, &t->w, &batch, loss);
    for (size_t i = 0; i < n; i++) {
        double sum = 0.0;
        for (size_t j = 0; j < w->length; j++)
            sum += loss[i * w->length + j];
        means[i] = sum / (double)w->length;
    }
    free(loss);
}

/* Mean and standard error over the windows. */
static struct val_loss summarise(const double *means, const struct windows *w)
{
    double sum = 0.0, squares = 0.0, n = (double)w->used;

    for (size_t i = 0; i < w->used; i++)
        sum += means[i];
    for (size_t i = 0; i < w->used; i++)
        squares += (means[i] - sum / n) * (means[i] - sum / n);
    return (struct val_loss){
        .loss = sum / n,
        .se = w->used > 1 ? sqrt(squares / (n - 1.0) / n) : (double)NAN,
        .n = (int64_t)(w->used * w->length),
    };
}

static int evaluate_source(struct trainer *t, const struct train_source *src, struct val_loss *out,
                           struct err *err)
{
    struct windows w = windows_of(src, t->opt);
    size_t most = (size_t)t->opt->micro_batch;
    double *means = xcalloc(w.used, sizeof(*means));
    int rc = 0;

    for (size_t at = 0; rc == 0 && at < w.used; at += most) {
        run_windows(t, src, &w, at, w.used - at < most ? w.used - at : most, means + at);
        if (stop_asked())
            rc = err_set(err, ERR_BUSY, "asked to stop");
    }
    if (rc == 0)
        *out = summarise(means, &w);
    free(means);
    return rc;
}

int evaluate_run(struct trainer *t, struct train_evaluation *out, struct err *err)
{
    double variance = 0.0;

    out->whole = (struct val_loss){0};
    for (size_t i = 0; i < train_data_n_validated(t->data); i++) {
        const struct train_source *src = train_data_validated(t->data, i);
        struct val_loss *part = &out->source[i];
        int rc = evaluate_source(t, src, part, err);
        if (rc < 0)
            return rc;
        out->whole.loss += src->weight * part->loss;
        out->whole.n += part->n;
        variance += src->weight * part->se * (src->weight * part->se);
    }
    out->whole.se = sqrt(variance);
    return 0;
}

double evaluate_bits_per_byte(const struct train_source *src, double loss)
{
    return loss / ELEMENTARY_LN_2 * (double)src->val.n / (double)src->val.n_bytes;
}
