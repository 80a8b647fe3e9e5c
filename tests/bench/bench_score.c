/*
 * bench_score [--long] [MODEL]: what scoring costs, on sets of requests shaped like the
 * benchmarks', with random weights, in processor time of one thread. MODEL: dense34m (default) or
 * moe63m.
 *
 * For each set: requests, tokens and distinct tokens, rates, what the dry run predicted, and how
 * the time stands to sgemm's bound: the operations of body, attention and head at the rate that
 * sgemm reaches at the model's shapes by BOUND_ROWS rows, measured before each round.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/xalloc.h"
#include "tests/unit/worker/shape.h"
#include "worker/model/engine.h"
#include "worker/nn/cpu.h"
#include "worker/nn/gemm.h"
#include "worker/nn/pass_clock.h"
#include "worker/nn/rowwise/attend.h"

#define BOUND_ROWS 512
#define ROUNDS     3

static const struct {
    const char *name;
    struct model_config cfg;
} MODELS[] = {
    {"dense34m", SHAPE(8, 512, 8, 8, 32768, 1024, .ffn = 768, .tie_embeddings = true)},
    {"moe63m", SHAPE(8, 512, 8, 8, 32768, 1024, .experts = 8, .top_k = 2, .expert_ffn = 384,
                     .renormalise = true, .tie_embeddings = true)},
};

static double now(void)
{
    return (double)pass_clock_now_ns(CLOCK_PROCESS_CPUTIME_ID) * 1e-9;
}

static uint64_t state_of_draw = 1;

static uint32_t draw(uint32_t from, uint32_t to)
{
    state_of_draw = state_of_draw * 6364136223846793005u + 1442695040888963407u;
    return from + (uint32_t)(state_of_draw >> 33) % (to - from + 1);
}

/* --- request sets --- */

struct set {
    const char *name;
    struct score_request *r;
    size_t n, cap;
    struct score_generation *g;
    size_t n_g;
    uint32_t now[4096];
    uint32_t vocab;
};

static size_t write_tokens(struct set *s, size_t at, size_t n)
{
    for (size_t i = at; i < at + n; i++)
        s->now[i] = draw(0, s->vocab - 1);
    return at + n;
}

static void add_request(struct set *s, size_t n, size_t first)
{
    uint32_t *tokens = xcalloc(n, sizeof(*tokens));

    memcpy(tokens, s->now, n * sizeof(*tokens));
    ARRAY_GROW(s->r, s->n, s->cap);
    s->r[s->n++] = (struct score_request){.tokens = tokens, .n = n, .first = first};
}

/* Five shots before the questions of a subject, four letters after each question. */
static void draw_mmlu(struct set *s, size_t n)
{
    size_t shots = 0;

    for (size_t i = 0; i < n / 4; i++) {
        if (i % 100 == 0)
            shots = write_tokens(s, 0, draw(350, 700));
        size_t end = write_tokens(s, shots, draw(30, 180));
        for (uint32_t letter = 0; letter < 4; letter++) {
            s->now[end] = letter;
            add_request(s, end + 1, end);
        }
    }
}

/* Four endings of a context. */
static void draw_hellaswag(struct set *s, size_t n)
{
    for (size_t i = 0; i < n / 4; i++) {
        size_t end = write_tokens(s, 0, draw(20, 110));
        for (size_t k = 0; k < 4; k++)
            add_request(s, write_tokens(s, end, draw(10, 40)), end);
    }
}

/* The same end after two contexts that differ in a word. */
static void draw_winogrande(struct set *s, size_t n)
{
    for (size_t i = 0; i < n / 2; i++) {
        size_t same = write_tokens(s, 0, draw(8, 20)), tail = draw(4, 12);
        for (size_t k = 0; k < 2; k++) {
            size_t end = write_tokens(s, same, 1);
            add_request(s, write_tokens(s, end, tail), end);
        }
    }
}

/* Prompts that share nothing, as much generated as the format allows. */
static void draw_gsm8k(struct set *s, size_t n)
{
    s->n_g = n;
    s->g = xcalloc(n, sizeof(*s->g));
    for (size_t i = 0; i < n; i++) {
        size_t len = write_tokens(s, 0, draw(600, 768));
        uint32_t *prompt = xcalloc(len, sizeof(*prompt));
        memcpy(prompt, s->now, len * sizeof(*prompt));
        s->g[i] = (struct score_generation){.prompt = prompt, .n = len, .max_tokens = 256};
    }
}

/* --- the bound --- */

struct bound {
    double body;  /* GF/s */
    double head;  /* GF/s */
    double token; /* operations of the blocks' products, a token */
    double row;   /* of a row of logits */
    double key;   /* of a key attended */
};

/* Seconds of one product y = x W^T. */
static double time_product(const real *x, const real *w, real *y, size_t rows, size_t out,
                           size_t in)
{
    double best = 1e9;

    for (int i = 0; i < 2 * ROUNDS; i++) {
        double start = now();
        gemm(y, out, false, operand_plain(x, in), operand_turned(w, in), rows, out, in);
        double took = now() - start;
        best = took < best ? took : best;
    }
    return best;
}

static struct bound measure_bound(const struct model_config *cfg)
{
    size_t c = (size_t)cfg->width, v = (size_t)cfg->vocab,
           packed = c + 2 * c * (size_t)cfg->kv_heads / (size_t)cfg->heads;
    size_t f = (size_t)(cfg->experts > 0 ? cfg->expert_ffn : cfg->ffn),
           times = (size_t)(cfg->experts > 0 ? cfg->top_k : 1);
    const size_t shapes[][3] = {{packed, c, 1}, {c, c, 1}, {2 * f, c, times}, {c, f, times}};
    real *x = real_alloc(BOUND_ROWS * (c > f ? c : f)), *w = real_alloc(v * c),
         *y = real_alloc(BOUND_ROWS * v);
    double seconds = 0;
    struct bound b = {.row = 2.0 * (double)v * (double)c, .key = 4.0 * (double)c * cfg->layers};

    gemm_set_threads(1);
    for (size_t i = 0; i < v * c; i++)
        w[i] = (real)draw(0, 1000) * (real)1e-3;
    for (size_t i = 0; i < BOUND_ROWS * c; i++)
        x[i] = (real)draw(0, 1000) * (real)1e-3;
    for (size_t i = 0; i < ARRAY_LEN(shapes); i++) {
        double ops = 2.0 * (double)shapes[i][0] * (double)shapes[i][1] * (double)shapes[i][2];
        b.token += ops * cfg->layers;
        seconds += time_product(x, w, y, BOUND_ROWS, shapes[i][0], shapes[i][1]) *
                   (double)shapes[i][2] * cfg->layers / BOUND_ROWS;
    }
    b.body = b.token / seconds * 1e-9;
    b.head = b.row * BOUND_ROWS / time_product(x, w, y, BOUND_ROWS, v, c) * 1e-9;
    free(x);
    free(w);
    free(y);
    return b;
}

/* --- attention alone --- */

static void bench_attention(const struct model_config *cfg)
{
    const size_t cases[][2] = {{16, 64},   {40, 100}, {60, 500}, {512, 0},
                               {512, 512}, {10, 800}, {1, 900}};
    struct attend_dims dims = {.heads = (size_t)cfg->heads,
                               .groups = (size_t)cfg->kv_heads,
                               .dim = (size_t)(cfg->width / cfg->heads),
                               .context = (size_t)cfg->context};
    size_t packed = (dims.heads + 2 * dims.groups) * dims.dim;
    real *cache = real_alloc(attend_cache(&dims)), *scratch = real_alloc(attend_scratch(&dims));
    real *qkv = real_alloc(512 * packed), *out = real_alloc(512 * dims.heads * dims.dim);

    for (size_t i = 0; i < 512 * packed; i++)
        qkv[i] = (real)draw(0, 1000) * (real)1e-3;
    printf("attention alone, GF/s (queries at position):");
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        size_t n = cases[i][0], first = cases[i][1];
        double keys = (double)n * ((double)first + ((double)n + 1) / 2),
               ops = 4.0 * (double)cfg->width * keys;
        size_t times = (size_t)(2e9 / ops) + 1;
        double start = now();
        for (size_t k = 0; k < times; k++) {
            attend_store(cache, qkv, n, first, &dims);
            attend_forward(out, qkv, n, first, cache, scratch, &dims);
        }
        printf(" %zu at %zu: %.0f", n, first, ops * (double)times / (now() - start) * 1e-9);
    }
    printf("\n");
    free(cache);
    free(scratch);
    free(qkv);
    free(out);
}

/* --- a set --- */

static void check(int rc, const struct err *err)
{
    if (rc == 0)
        return;
    (void)fprintf(stderr, "bench_score: %s\n", err->msg);
    exit(1);
}

static double run_set(struct engine *e, struct set *s, size_t call)
{
    struct err err;
    struct score_stop stop = {.end_of_text = UINT32_MAX};
    double start = now();

    for (size_t at = 0; at < s->n; at += call)
        check(engine_score(e, s->r + at, s->n - at < call ? s->n - at : call, NULL, &err), &err);
    if (s->n_g > 0)
        check(engine_generate(e, s->g, s->n_g, &stop, &err), &err);
    return now() - start;
}

/* Puts something else on the path, so that every round computes what was counted. */
static void leave_path(struct engine *e, const struct set *s)
{
    struct err err;
    const uint32_t first = s->n > 0 ? s->r[0].tokens[0] : s->g[0].prompt[0];
    const uint32_t other[] = {(first + 1) % s->vocab, 0};
    struct score_request r = {.tokens = other, .n = 2, .first = 1};

    check(engine_score(e, &r, 1, NULL, &err), &err);
}

static void print_figure(const char *set, const char *what, const char *unit, const double *values,
                         const char *more)
{
    printf("{\"figure\":\"%s, %s\",\"unit\":\"%s\",\"values\":[", set, what, unit);
    for (int i = 0; i < ROUNDS; i++)
        printf("%s%.4g", i == 0 ? "" : ",", values[i]);
    printf("]%s}\n", more);
}

static void bench_set(struct engine *e, const struct model_config *cfg, struct set *s,
                      const struct score_rates *rates)
{
    const size_t call = 4096;
    struct score_cost cost = {0};
    struct score_counter *counter = score_counter_create(cfg);
    double best = 1e9, ops = 0, times[ROUNDS], bounds[ROUNDS];

    for (size_t at = 0; at < s->n; at += call)
        score_counter_score(counter, s->r + at, s->n - at < call ? s->n - at : call, &cost);
    score_counter_generate(counter, s->g, s->n_g, &cost);
    score_counter_free(counter);
    for (int i = 0; i < ROUNDS; i++) {
        struct bound b = measure_bound(cfg);
        double tokens = cost.distinct_tokens + cost.generated,
               rows = cost.head_rows + cost.generated;
        double body = tokens * b.token + (cost.keys + cost.generated_keys) * b.key,
               head = rows * b.row;
        leave_path(e, s);
        double bound = (body / b.body + head / b.head) * 1e-9, took = run_set(e, s, call);
        best = took < best ? took : best;
        ops = body + head;
        times[i] = took;
        bounds[i] = took / bound;
        printf("round %d: sgemm %.0f body, %.0f head GF/s; %.2f s, %.0f %% of the bound\n", i + 1,
               b.body, b.head, took, 100 * bound / took);
    }
    double said = score_seconds(&cost, rates), off[ROUNDS], speed[ROUNDS];
    for (int i = 0; i < ROUNDS; i++) {
        off[i] = said > times[i] ? said / times[i] - 1 : times[i] / said - 1;
        speed[i] = (cost.distinct_tokens + cost.generated) / times[i];
    }
    printf("%s: %.0f requests, %.0f tokens, %.0f distinct (1 in %.2f), %.0f keys a token, %.0f "
           "rows of "
           "logits, %.0f generated; best %.3f s, %.0f GF/s; predicted %.3f s\n",
           s->name, cost.requests, cost.tokens, cost.distinct_tokens,
           cost.tokens / cost.distinct_tokens, cost.keys / cost.distinct_tokens, cost.head_rows,
           cost.generated, best, ops / best * 1e-9, said);
    /* A decoding step reads all weights for a few rows: sgemm's bound says nothing of it. */
    if (s->n_g == 0)
        print_figure(s->name, "time / sgemm's bound", "", bounds, ",\"aim\":1.25,\"limit\":2.5");
    print_figure(s->name, "prediction off by", "", off, ",\"aim\":0.2");
    print_figure(s->name, "tokens", "1/s", speed, "");
}

int main(int argc, char **argv)
{
    const struct {
        const char *name;
        void (*draw)(struct set *s, size_t n);
        size_t share; /* of the number of requests, one in so many */
    } sets[] = {{"mmlu-like", draw_mmlu, 1},
                {"hellaswag-like", draw_hellaswag, 4},
                {"winogrande-like", draw_winogrande, 2},
                {"gsm8k-like", draw_gsm8k, 20}};
    bool is_long = argc > 1 && strcmp(argv[1], "--long") == 0;
    const char *name = argc > 1 + is_long ? argv[1 + is_long] : "dense34m";
    size_t n = is_long ? 800 : 40, model = 0;
    struct weights w;
    struct engine *e = NULL;
    struct err err;
    struct score_rates rates;

    while (model < ARRAY_LEN(MODELS) && strcmp(MODELS[model].name, name) != 0)
        model++;
    if (model == ARRAY_LEN(MODELS))
        return 2;
    const struct model_config *cfg = &MODELS[model].cfg;
    printf("%s; kernels %s; OpenBLAS: %s\n", name, nn_cpu_text(nn_cpu()), gemm_blas_text());
    check(weights_init(&w, cfg, &err), &err);
    weights_randomise(&w, 1, 0.02);
    check(engine_create(&w, &e, &err), &err);
    bench_attention(cfg);
    double start = now();
    check(engine_measure(e, &rates, &err), &err);
    printf(
        "rates, us: token %.1f key %.4f row %.1f generated %.1f its key %.4f; measured in %.2f s\n",
        rates.distinct_token * 1e6, rates.key * 1e6, rates.head_row * 1e6, rates.generated * 1e6,
        rates.generated_key * 1e6, now() - start);
    for (size_t i = 0; i < ARRAY_LEN(sets); i++) {
        struct set *s = xcalloc(1, sizeof(*s));
        s->name = sets[i].name;
        s->vocab = (uint32_t)cfg->vocab;
        sets[i].draw(s, n / sets[i].share);
        bench_set(e, cfg, s, &rates);
    }
    struct rusage usage;
    (void)getrusage(RUSAGE_SELF, &usage);
    printf("peak memory %ld MiB (the bound's operands included)\n", usage.ru_maxrss >> 10);
    engine_free(e);
    weights_release(&w);
    return 0;
}
