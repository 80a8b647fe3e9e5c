/* The update of a step: AdamW, Muon, gradient descent, tensor by tensor. A tall matrix is turned
 * before Muon's iterations and turned back after them, as docs/arithmetic.md has it; the trainer
 * multiplies from the other side instead. */
#include <math.h>
#include <string.h>

#include "base/math/elementary.h"
#include "base/xalloc.h"
#include "tests/unit/worker/train/second_numbers.h"
#include "tests/unit/worker/train/second_step.h"

#define PART 65536

double second_norm_squared(const float *x, size_t n)
{
    double sum = 0;

    for (size_t at = 0; at < n; at += PART)
        sum += second_sum_squares(x + at, n - at < PART ? n - at : PART);
    return sum;
}

/* The constants of a step. */
struct second_rates {
    double lr; /* of this optimiser and step */
    double decay;
    double t;
    float clip;
};

static void adamw(struct second *s, const struct tensor *t, const struct second_rates *r)
{
    const struct train_options *o = s->opt;
    const float b1 = (float)o->beta1, c1 = (float)(1 - o->beta1), b2 = (float)o->beta2,
                c2 = (float)(1 - o->beta2),
                rate = (float)(r->lr / (1 - elementary_pow(o->beta1, r->t))),
                root = (float)(1 / (1 - elementary_pow(o->beta2, r->t))), eps = (float)o->eps,
                keep = (float)(1 - r->lr * r->decay);

    for (size_t i = t->offset; i < t->offset + tensor_size(t); i++) {
        float g = s->g[i] * r->clip;
        s->m[i] = b1 * s->m[i] + c1 * g;
        s->v[i] = b2 * s->v[i] + (c2 * g) * g;
        s->p[i] = s->p[i] * keep - (rate * s->m[i]) / (sqrtf(s->v[i] * root) + eps);
    }
}

static void sgd(struct second *s, const struct tensor *t, const struct second_rates *r)
{
    const float mu = (float)s->opt->momentum, decay = (float)r->decay, lr = (float)r->lr;

    for (size_t i = t->offset; i < t->offset + tensor_size(t); i++) {
        float d = s->g[i] * r->clip + decay * s->p[i];
        s->m[i] = mu * s->m[i] + d;
        s->p[i] = s->p[i] - lr * (s->opt->nesterov ? d + mu * s->m[i] : s->m[i]);
    }
}

/* The five iterations on x (rows, cols), rows <= cols. */
static void orthogonalise(float *x, size_t rows, size_t cols, bool bfloat16)
{
    const float a = 3.4445F, b = -4.775F, c = 2.0315F;
    const size_t square[3] = {rows, rows, cols}, twice[3] = {rows, rows, rows},
                 last[3] = {rows, cols, rows};
    float *m = xcalloc(rows * rows, sizeof(float)), *q = xcalloc(rows * rows, sizeof(float));
    float *y = xcalloc(rows * cols, sizeof(float));

    for (int k = 0; k < 5; k++) {
        second_product(m, false, second_plain(x, cols), second_turned(x, cols), square, bfloat16);
        second_product(q, false, second_plain(m, rows), second_plain(m, rows), twice, bfloat16);
        for (size_t i = 0; i < rows * rows; i++)
            q[i] = b * m[i] + c * q[i];
        for (size_t i = 0; i < rows * cols; i++)
            y[i] = a * x[i];
        second_product(y, true, second_plain(q, rows), second_plain(x, cols), last, bfloat16);
        memcpy(x, y, rows * cols * sizeof(float));
    }
    free(m);
    free(q);
    free(y);
}

static void turn(float *to, const float *from, size_t rows, size_t cols)
{
    for (size_t i = 0; i < rows; i++)
        for (size_t j = 0; j < cols; j++)
            to[j * rows + i] = from[i * cols + j];
}

/* One matrix, which begins at element `at` of the parameters. */
static void muon(struct second *s, size_t at, size_t rows, size_t cols,
                 const struct second_rates *r)
{
    const struct train_options *o = s->opt;
    const float mu = (float)o->momentum, rest = (float)(1 - o->momentum),
                keep = (float)(1 - r->lr * r->decay);
    const size_t n = rows * cols;
    float *x = xcalloc(n, sizeof(float)), *y = xcalloc(n, sizeof(float));

    for (size_t i = 0; i < n; i++) {
        float part = rest * (s->g[at + i] * r->clip), *m = &s->m[at + i];
        *m = mu * *m + part;
        x[i] = o->nesterov ? part + mu * *m : *m;
    }
    float f = (float)(1 / (sqrt(second_norm_squared(x, n)) + 1e-7));
    for (size_t i = 0; i < n; i++)
        x[i] *= f;
    const bool tall = rows > cols, bfloat16 = o->precision == PRODUCT_BFLOAT16;
    if (tall) {
        turn(y, x, rows, cols);
        orthogonalise(y, cols, rows, bfloat16);
        turn(x, y, cols, rows);
    } else {
        orthogonalise(x, rows, cols, bfloat16);
    }
    double ratio = (double)rows / (double)cols;
    float rate = (float)(r->lr * sqrt(ratio > 1 ? ratio : 1));
    for (size_t i = 0; i < n; i++)
        s->p[at + i] = s->p[at + i] * keep - rate * x[i];
    free(x);
    free(y);
}

void second_update(struct second *s, double factor, float clip, int64_t step)
{
    const struct train_options *o = s->opt;
    const size_t experts = (size_t)o->model.experts;

    for (size_t i = 0; i < s->table.n; i++) {
        const struct tensor *t = &s->table.items[i];
        const bool hidden = t->layer >= 0 && t->decays && t->role != TENSOR_ROUTER;
        struct second_rates r = {.lr = o->lr * factor,
                                 .decay = t->decays ? o->weight_decay : 0,
                                 .t = (double)step + 1,
                                 .clip = clip};
        size_t parts = t->role == TENSOR_EXPERT_GATE_UP ? 2 * experts : 1;
        parts = t->role == TENSOR_EXPERT_DOWN ? experts : parts;
        if (o->optimiser == OPTIMISER_SGD) {
            sgd(s, t, &r);
        } else if (o->optimiser == OPTIMISER_MUON && hidden) {
            for (size_t k = 0; k < parts; k++)
                muon(s, t->offset + k * (tensor_size(t) / parts), t->rows / parts, t->cols, &r);
        } else {
            if (o->optimiser == OPTIMISER_MUON)
                r.lr = o->adamw_lr * factor;
            adamw(s, t, &r);
        }
    }
}
