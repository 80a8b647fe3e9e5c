#include "tests/unit/worker/model/subject.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"
#include "tests/unit/check.h"
#include "tests/unit/worker/shape.h"

#define SEED   20261121
#define TOKENS 4 /* few different ones, so that requests share a lot */

void subject_err_none(int rc, const struct err *err)
{
    if (rc < 0)
        fail_msg("%s", err->msg);
}

static struct err err;

static void no_error(int rc)
{
    subject_err_none(rc, &err);
}

const struct shape SHAPES[N_SHAPES] = {
    {"dense, tied", SHAPE(2, 48, 3, 3, 257, 70, .ffn = 40, .tie_embeddings = true)},
    {"grouped, own head", SHAPE(3, 72, 6, 2, 2117, 140, .ffn = 100)},
    {"one group, long", SHAPE(1, 32, 4, 1, 64, 700, .ffn = 24, .tie_embeddings = true)},
    {"mixture", SHAPE(2, 40, 2, 2, 65, 70, .experts = 5, .top_k = 2, .expert_ffn = 20,
                      .renormalise = true, .tie_embeddings = true)},
    {"mixture with a dense block and shared experts",
     SHAPE(3, 36, 2, 1, 100, 90, .ffn = 28, .experts = 9, .top_k = 3, .expert_ffn = 16, .shared = 2,
           .dense_layers = 1)},
};

static uint64_t state_of_draw;

uint32_t subject_draw(uint32_t below)
{
    state_of_draw = state_of_draw * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(state_of_draw >> 33) % below;
}

void subject_open(struct subject *s, const struct shape *shape)
{
    s->cfg = shape->cfg;
    no_error(model_config_validate(&s->cfg, &err));
    no_error(weights_init(&s->plain, &s->cfg, &err));
    no_error(weights_init(&s->packed, &s->cfg, &err));
    weights_randomise(&s->plain, SEED, 0.3);
    weights_randomise(&s->packed, SEED, 0.3);
    for (size_t i = 0; i < weights_n_bias(&s->cfg); i++)
        s->plain.route_bias[i] = s->packed.route_bias[i] = (real)(i * 37 % 11) / 10;
    no_error(engine_create(&s->packed, &s->engine, &err));
    no_error(run_create(&s->cfg, RUN_INFER, (size_t)s->cfg.context, &s->run, &err));
    state_of_draw = SEED;
}

void subject_close(struct subject *s)
{
    engine_free(s->engine);
    run_free(s->run);
    weights_release(&s->plain);
    weights_release(&s->packed);
}

void subject_draw_requests(const struct subject *s, struct score_request *r, size_t n)
{
    size_t most = (size_t)s->cfg.context + 1;

    for (size_t i = 0; i < n; i++) {
        uint32_t *tokens = xcalloc(most, sizeof(*tokens));
        size_t kept = 0;
        if (i > 0) {
            const struct score_request *other = &r[subject_draw((uint32_t)i)];
            kept = subject_draw((uint32_t)other->n + 1);
            memcpy(tokens, other->tokens, kept * sizeof(*tokens));
        }
        size_t len = kept + subject_draw(25);
        len = len < 2 ? 2 : len > most ? most : len;
        if (i % 16 == 7)
            len = most;
        for (size_t t = kept; t < len; t++)
            tokens[t] = subject_draw(TOKENS) * 13 % (uint32_t)s->cfg.vocab;
        size_t tail = 1 + subject_draw(12);
        r[i] = (struct score_request){
            .tokens = tokens, .n = len, .first = tail >= len ? 1 : len - tail};
    }
}

void subject_release_requests(struct score_request *r, size_t n)
{
    for (size_t i = 0; i < n; i++)
        free((void *)(uintptr_t)r[i].tokens);
}

void subject_score_plainly(struct subject *s, struct score_request *r)
{
    struct run_batch batch = {.tokens = r->tokens, .batch = 1, .length = r->n - 1};
    size_t vocab = (size_t)s->cfg.vocab;

    run_forward(s->run, &s->plain, &batch, NULL);
    r->sum = 0;
    r->greedy = true;
    for (size_t i = r->first; i < r->n; i++) {
        const real *logits = run_logits(s->run, &s->plain, i - 1, 1);
        double max = (double)logits[0], sum = 0;
        size_t top = 0;
        for (size_t v = 1; v < vocab; v++)
            if ((double)logits[v] > max) {
                max = (double)logits[v];
                top = v;
            }
        for (size_t v = 0; v < vocab; v++)
            sum += exp((double)logits[v] - max);
        r->sum += (double)logits[r->tokens[i]] - max - log(sum);
        r->greedy = r->greedy && top == r->tokens[i];
    }
}
