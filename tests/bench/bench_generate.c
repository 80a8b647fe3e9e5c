/*
 * bench_generate: what a step of generation costs with one generation and with several at once, and
 * the share of memory's speed that it reaches, in processor time of one thread, with random
 * weights. A step reads every weight once, and each generation's keys and values. Memory's speed is
 * that of y += a x over two vectors of 512 MiB, in the same round. A last cache that is larger than
 * the weights helps the steps.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"
#include "tests/unit/worker/shape.h"
#include "worker/model/engine.h"
#include "worker/nn/cpu.h"
#include "worker/nn/pass_clock.h"
#include "worker/nn/vec.h"

enum { ROUNDS = 3, PROMPT = 32, STEPS = 64 };

#define VECTOR ((size_t)128 << 20) /* elements: 512 MiB */
#define PIECE  ((size_t)65536)
#define AIM    0.6

static const struct model_config CFG =
    SHAPE(8, 512, 8, 8, 32768, 1024, .ffn = 768, .tie_embeddings = true);
static const size_t COUNTS[] = {1, 2, 4, 8};

static double now(void)
{
    return (double)pass_clock_now_ns(CLOCK_PROCESS_CPUTIME_ID) * 1e-9;
}

static void check(int rc, const struct err *err)
{
    if (rc == 0)
        return;
    (void)fprintf(stderr, "bench_generate: %s\n", err->msg);
    exit(1);
}

/* Returns bytes a second, two reads and a write for each element, as prereg-train --bench does. */
static double measure_memory(real *y, const real *x)
{
    double start = now();

    for (size_t i = 0; i < VECTOR; i += PIECE)
        vec_axpy(y + i, (real)0.5, x + i, PIECE);
    return 3.0 * (double)(VECTOR * sizeof(real)) / (now() - start);
}

/* Returns the seconds of `n` generations of so many tokens each, their prompts included. */
static double generate(struct engine *e, size_t n, size_t tokens)
{
    uint32_t prompts[8][PROMPT];
    struct score_generation g[8];
    struct score_stop stop = {.end_of_text = UINT32_MAX};
    struct err err;

    memset(g, 0, sizeof(g));
    for (size_t i = 0; i < n; i++) {
        for (size_t t = 0; t < PROMPT; t++)
            prompts[i][t] = (uint32_t)((i * 7919 + t * 104729) % (size_t)CFG.vocab);
        g[i].prompt = prompts[i];
        g[i].n = PROMPT;
        g[i].max_tokens = tokens;
    }
    double start = now();
    check(engine_generate(e, g, n, &stop, &err), &err);
    double took = now() - start;
    for (size_t i = 0; i < n; i++)
        token_list_release(&g[i].out);
    return took;
}

static void print_figure(size_t n, const char *what, const char *unit, const double *values,
                         const char *more)
{
    printf("{\"figure\":\"%zu at once, %s\",\"unit\":\"%s\",\"values\":[", n, what, unit);
    for (int i = 0; i < ROUNDS; i++)
        printf("%s%.4g", i == 0 ? "" : ",", values[i]);
    printf("]%s}\n", more);
}

static void bench_count(struct engine *e, size_t n, double weights, real *vectors)
{
    /* Keys and values of one token; a step reads those of all tokens before it. */
    double token = 2.0 * CFG.layers * CFG.width * (double)sizeof(real),
           bytes = weights + (double)n * token * (PROMPT + (STEPS + 1) / 2.0);
    double speed[ROUNDS], slower[ROUNDS];
    char aim[32];

    (void)generate(e, n, 2);
    for (int i = 0; i < ROUNDS; i++) {
        double memory = measure_memory(vectors, vectors + VECTOR),
               step = (generate(e, n, 1 + STEPS) - generate(e, n, 1)) / STEPS;
        speed[i] = (double)n / step;
        slower[i] = memory / (bytes / step);
        printf("%zu at once: %.2f ms a step, %.1f of %.1f GB/s\n", n, step * 1e3,
               bytes / step * 1e-9, memory * 1e-9);
    }
    (void)snprintf(aim, sizeof(aim), ",\"aim\":%.3f", 1 / AIM);
    print_figure(n, "tokens", "1/s", speed, "");
    print_figure(n, "time over that of as many bytes of memory", "x", slower, aim);
}

int main(void)
{
    struct weights w;
    struct engine *e = NULL;
    struct err err;
    real *vectors = real_alloc(2 * VECTOR);

    if (vectors == NULL) {
        (void)fprintf(stderr, "bench_generate: no memory for vectors of 1 GiB\n");
        return 77;
    }
    for (size_t i = 0; i < 2 * VECTOR; i++)
        vectors[i] = (real)1e-3;
    printf("dense34m; kernels %s\n", nn_cpu_text(nn_cpu()));
    check(weights_init(&w, &CFG, &err), &err);
    weights_randomise(&w, 1, 0.02);
    double bytes = (double)w.table.n_params * (double)sizeof(real);
    check(engine_create(&w, &e, &err), &err);
    for (size_t i = 0; i < sizeof(COUNTS) / sizeof(COUNTS[0]); i++)
        bench_count(e, COUNTS[i], bytes, vectors);
    engine_free(e);
    weights_release(&w);
    free(vectors);
    return 0;
}
