/* Any numbers as the rows of a mixed model: estimates that are finite and hang together, or a
 * sentence that says why there are none; never without an end. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "truthtable/instruments/mixed.h"

#define ROWS_MAX    ((size_t)48)
#define COLUMNS_MAX ((size_t)8)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool ok)
{
    if (!ok) {
        abort();
    }
}

struct bytes {
    const uint8_t *at;
    size_t left;
};

static uint8_t take(struct bytes *b)
{
    if (b->left == 0) {
        return 0;
    }
    b->left--;
    return *b->at++;
}

/* Mostly small whole numbers, which make ties and combinations; now and then any double. */
static double take_number(struct bytes *b)
{
    uint8_t first = take(b);
    if (first < 0xf0) {
        return (double)(first % 16) - 4;
    }
    if (first < 0xf8) {
        return ldexp((double)take(b) - 128, (int)take(b) * 8 - 1020);
    }
    double any = 0;
    uint8_t raw[sizeof(any)];
    for (size_t i = 0; i < sizeof(raw); i++) {
        raw[i] = take(b);
    }
    memcpy(&any, raw, sizeof(any));
    return any;
}

static void check_fit(const struct mixed_data *d, const struct mixed_fit *f)
{
    must(isfinite(f->loglik) && isfinite(f->theta) && f->theta >= 0);
    must(isfinite(f->var_b) && f->var_b >= 0 && isfinite(f->var_e) && f->var_e > 0);
    must(f->r2_marginal >= 0 && f->r2_marginal <= f->r2_conditional * (1 + 1e-12) + 1e-12);
    must(f->r2_conditional <= 1 + 1e-12);
    for (size_t k = 0; k < d->p; k++) {
        must(isfinite(f->beta[k]) && isfinite(f->se[k]) && f->se[k] >= 0);
    }
}

static void check_reasons(const struct mixed_data *d, const struct mixed_fit *f)
{
    must(f->singular == (f->n_reasons > 0) && f->rank <= d->p);
    for (size_t i = 0; i < f->n_reasons; i++) {
        const struct mixed_reason *r = &f->reasons[i];
        must(r->kind == MIXED_BOUNDARY_THETA || (r->column < d->p && !f->kept[r->column]));
        for (size_t k = 0; r->kind == MIXED_ALIASED && k < r->n_of; k++) {
            must(r->of[k] < r->column && f->kept[r->of[k]] && isfinite(r->coefficient[k]));
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct bytes b = {data, size};
    double x[ROWS_MAX * COLUMNS_MAX];
    double y[ROWS_MAX];
    size_t group[ROWS_MAX];
    struct mixed_data d = {.x = x, .y = y, .group = group};
    struct mixed_fit f;
    struct arena arena;
    d.n = take(&b) % (ROWS_MAX + 1);
    d.p = take(&b) % (COLUMNS_MAX + 1);
    d.n_groups = 1 + take(&b) % ROWS_MAX;
    bool intercept = take(&b) % 2 == 0;
    for (size_t i = 0; i < d.n; i++) {
        group[i] = take(&b) % d.n_groups;
        y[i] = take_number(&b);
        for (size_t k = 0; k < d.p; k++) {
            x[i * d.p + k] = intercept && k == 0 ? 1 : take_number(&b);
        }
    }
    arena_init(&arena);
    int rc = mixed_model_fit(&d, &arena, &f);
    must((rc == 0) == (f.why == NULL));
    check_reasons(&d, &f);
    if (rc == 0) {
        check_fit(&d, &f);
    }
    arena_release(&arena);
    return 0;
}
