/*
 * Builds a real trainer on random tokens and alternates its steps with their products alone
 * (bench_products.c), then measures the machine's limits (bench_machine.c). The built-in models
 * have fixed shapes, so that figures of different machines and versions compare. The peak of memory
 * is read after the warm-up and before the other two allocate theirs.
 */
#include "worker/train/bench.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/files/file.h"
#include "base/json/json.h"
#include "base/text.h"
#include "base/xalloc.h"
#include "worker/nn/threads.h"
#include "worker/train/memory.h"
#include "worker/train/trainer.h"
#include "worker/train/trial.h"

#define FILE_BYTES_MAX (1u << 20)
#define WARM_UP        2
#define BATCH_MAX      65536
#define CONTEXT_MAX    65536

#define BATCH 8 /* sequences a step of a built-in model */

/* Tied, with as many groups as heads; the chosen experts' weights sum to 1. */
static const struct builtin {
    const char *name;
    int layers, width, heads, vocab, context;
    int ffn; /* dense */
    int experts, top_k, expert_ffn;
} BUILTINS[] = {
    {"dense34m", 8, 512, 8, 32768, 256, 768, 0, 0, 0},
    {"moe63m", 8, 512, 8, 32768, 256, 0, 8, 2, 384},
    {"dense10m", 6, 320, 5, 4096, 256, 864, 0, 0, 0},
    {"demo", 4, 128, 4, 257, 128, 256, 0, 0, 0},
    {"demo-moe", 4, 128, 4, 257, 128, 0, 8, 2, 128},
};
#define BUILTINS_NR (sizeof(BUILTINS) / sizeof(BUILTINS[0]))

int bench_options_read(int argc, char **argv, struct bench_options *out, struct err *err)
{
    struct {
        const char *flag;
        int64_t *value;
        int64_t max;
    } numbers[] = {{"--batch", &out->batch, BATCH_MAX},
                   {"--context", &out->context, CONTEXT_MAX},
                   {"--threads", &out->threads, 1024},
                   {"--steps", &out->steps, BENCH_STEPS_MAX}};
    size_t n_numbers = sizeof(numbers) / sizeof(numbers[0]);

    *out = (struct bench_options){.what = BUILTINS[0].name, .threads = 1, .steps = 10};
    for (int i = 0; i < argc; i++) {
        size_t k = 0;
        if (strcmp(argv[i], "--openblas") == 0) {
            out->products = PRODUCTS_OPENBLAS;
            continue;
        }
        if (strcmp(argv[i], "--bfloat16") == 0) {
            out->precision = PRODUCT_BFLOAT16;
            continue;
        }
        if (strcmp(argv[i], "--json") == 0) {
            out->json = true;
            continue;
        }
        while (k < n_numbers && strcmp(argv[i], numbers[k].flag) != 0)
            k++;
        if (k == n_numbers && (argv[i][0] == '-' || i > 0))
            return err_set(err, ERR_USAGE, "--bench: \"%.60s\" is not one of its options", argv[i]);
        if (k == n_numbers) {
            out->what = argv[i];
            continue;
        }
        if (i + 1 == argc)
            return err_set(err, ERR_USAGE, "--bench: %s needs a number", argv[i]);
        if (text_to_int(argv[i + 1], 1, numbers[k].max, numbers[k].value, err) < 0)
            return err_set(err, ERR_USAGE, "--bench: %s: expected a number from 1 to %lld", argv[i],
                           (long long)numbers[k].max);
        i++;
    }
    return 0;
}

/* The shape, and the sequences a step, of a file of parameters or of a whole task. */
static int read_file(const char *path, struct model_config *cfg, int64_t *batch, struct err *err)
{
    cJSON *obj = NULL;
    int64_t batch_tokens = 0, micro = 0;

    int rc = json_read_file(path, FILE_BYTES_MAX, &obj, err);
    if (rc < 0)
        return rc;
    const cJSON *inner = json_member(obj, "params"), *params = inner == NULL ? obj : inner;
    rc = model_config_get(params, cfg, err);
    if (rc == 0 &&
        (rc = json_opt_int(params, "batch_tokens", 1, INT32_MAX, &batch_tokens, err)) == 0)
        rc = json_opt_int(params, "micro_batch", 1, INT32_MAX, &micro, err);
    if (rc == 0) {
        *batch = batch_tokens / cfg->context;
        *batch = micro > 0 && (*batch == 0 || micro < *batch) ? micro : *batch;
        *batch = *batch < 1 ? 1 : *batch;
    } else {
        err_wrap(err, "%s", path);
    }
    cJSON_Delete(obj);
    return rc;
}

static int find_model(const struct bench_options *opt, struct model_config *cfg, int64_t *batch,
                      struct err *err)
{
    const char *names[BUILTINS_NR];

    for (size_t i = 0; i < BUILTINS_NR; i++) {
        names[i] = BUILTINS[i].name;
        if (strcmp(opt->what, names[i]) != 0)
            continue;
        const struct builtin *b = &BUILTINS[i];
        *cfg = (struct model_config){.layers = b->layers,
                                     .width = b->width,
                                     .heads = b->heads,
                                     .kv_heads = b->heads,
                                     .ffn = b->ffn,
                                     .vocab = b->vocab,
                                     .context = b->context,
                                     .tie_embeddings = true,
                                     .experts = b->experts,
                                     .top_k = b->top_k,
                                     .expert_ffn = b->expert_ffn,
                                     .renormalise = b->experts > 0,
                                     .rope_theta = 10000.0,
                                     .norm_eps = 1e-5};
        *batch = BATCH;
        return 0;
    }
    if (file_kind_at(opt->what) == FILE_REGULAR)
        return read_file(opt->what, cfg, batch, err);
    const char *near = text_nearest(opt->what, names, BUILTINS_NR);
    return err_set(err, ERR_USAGE,
                   "--bench: \"%.80s\" is neither a file nor a built-in model%s%s%s", opt->what,
                   near == NULL ? "" : " (did you mean \"", near == NULL ? "" : near,
                   near == NULL ? "" : "\"?)");
}

/* Before any of it is asked for: whether a pass is one that the trainer makes, and fits. */
static int check_size(const struct train_options *train, struct err *err)
{
    const double mib = 0x1p20;
    double tokens = (double)train->batch_tokens;
    double need = trainer_bytes(train) + sizeof(uint32_t) * tokens * TRIAL_WINDOWS;
    double there = memory_of_machine();

    if (train->batch_tokens > MICRO_TOKENS_MAX)
        return err_set(err, ERR_USAGE,
                       "--bench: %lld sequences of %d tokens; a pass takes at most %lld tokens",
                       (long long)train->micro_batch, train->model.context,
                       (long long)MICRO_TOKENS_MAX);
    if (there > 0.0 && need > there)
        return err_set(err, ERR_USAGE, "--bench: needs at least %.1f MiB, this machine has %.1f",
                       need / mib, there / mib);
    return 0;
}

static double peak_bytes(void)
{
    struct rusage usage;

    return getrusage(RUSAGE_SELF, &usage) == 0 ? (double)usage.ru_maxrss * 1024.0 : (double)NAN;
}

/* Seconds of one forward pass with its losses, on the batch that the last step left. */
static double forward(struct trainer *t, int64_t batch, double *loss)
{
    struct run_batch pass = {.tokens = t->tokens,
                             .targets = t->targets,
                             .batch = (size_t)batch,
                             .length = (size_t)t->opt->model.context};
    int64_t begin = pass_clock_now_ns(t->clock->clock);

    run_set_clock(t->run, NULL);
    run_forward(t->run, &t->w, &pass, NULL);
    run_token_losses(t->run, &t->w, &pass, loss);
    run_set_clock(t->run, t->clock);
    return (double)(pass_clock_now_ns(t->clock->clock) - begin) * 1e-9;
}

/* Warm-up steps count for nothing; with more than one thread the wall clock is the only fair
 * one. */
static int measure(struct trainer *t, struct bench_result *r, struct err *err)
{
    size_t n_tokens = (size_t)r->batch * (size_t)r->model.context, n = (size_t)r->n;
    double *steps = xcalloc(n, sizeof(*steps)), *forwards = xcalloc(n, sizeof(*forwards));
    double *walls = xcalloc(n, sizeof(*walls));
    double *losses = xcalloc(n_tokens, sizeof(*losses)), loss = 0.0;
    struct bench_products *products = NULL;
    struct bench_machine *machine = NULL;
    struct pass_clock clock = {.clock =
                                   r->threads == 1 ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC};
    int rc = 0;

    /* The first steps touch every page and fill the caches. */
    for (int i = 0; rc == 0 && i < WARM_UP; i++)
        rc = trainer_step(t, &loss, err);
    /* Now, because what follows is not the trainer's. */
    r->peak_bytes = peak_bytes();
    if (rc == 0)
        rc = bench_products_create(&r->model, t->opt->precision, n_tokens, clock.clock, &products,
                                   err);
    if (rc == 0)
        rc = bench_machine_create(t->opt->precision, clock.clock, &machine, err);
    t->clock = &clock;
    run_set_clock(t->run, &clock);
    for (size_t i = 0; rc == 0 && i < n; i++) {
        int64_t begin = pass_clock_now_ns(clock.clock), wall = pass_clock_now_ns(CLOCK_MONOTONIC);
        rc = trainer_step(t, &loss, err);
        steps[i] = (double)(pass_clock_now_ns(clock.clock) - begin) * 1e-9;
        walls[i] = (double)(pass_clock_now_ns(CLOCK_MONOTONIC) - wall) * 1e-9;
        forwards[i] = forward(t, r->batch, losses);
        bench_products_round(products);
    }
    /* Not between steps: it leaves nothing of theirs in the caches. */
    for (size_t i = 0; rc == 0 && i < n && i < BENCH_ROUNDS_MAX; i++)
        bench_machine_round(machine);
    if (rc == 0) {
        r->step_wall = bench_spread_of(walls, n);
        r->step_seconds = bench_spread_of(steps, n);
        r->forward_seconds = bench_spread_of(forwards, n);
        r->rate =
            model_config_flops_per_token(&r->model) * (double)n_tokens / r->step_seconds.median;
        r->products = bench_products_rate(products);
        r->peak = bench_machine_peak(machine);
        r->bandwidth = bench_machine_bandwidth(machine);
        bench_products_count(products, r->work);
        bench_parts_count(&r->model, n_tokens, r->work);
        for (int i = 0; i < PASS_NR; i++)
            r->part[i] = (double)clock.ns[i] * 1e-9 / (double)n;
    }
    bench_products_free(products);
    bench_machine_free(machine);
    free(steps), free(forwards), free(walls), free(losses);
    return rc;
}

int bench_run(const struct bench_options *opt, FILE *out, struct err *err)
{
    struct bench_result result = {.n = opt->steps,
                                  .threads = opt->threads,
                                  .kind = opt->products,
                                  .precision = opt->precision};
    struct train_data data;
    struct trainer trainer;

    int rc = find_model(opt, &result.model, &result.batch, err);
    if (rc < 0)
        return rc;
    if (opt->context > 0)
        result.model.context = (int)opt->context;
    if (opt->batch > 0)
        result.batch = opt->batch;
    struct train_options train =
        trial_options(&result.model, result.batch, opt->steps + WARM_UP, opt->precision);
    rc = check_size(&train, err);
    if (rc < 0)
        return rc;
    rc = nn_threads_start((int)opt->threads, err);
    if (rc < 0)
        return rc;
    product_choose(opt->products, (int)opt->threads);
    result.planned_bytes = trainer_bytes(&train);
    trial_data(&data, &result.model, result.batch);
    rc = trainer_init(&trainer, &train, &data, err);
    if (rc == 0)
        rc = measure(&trainer, &result, err);
    trainer_release(&trainer);
    train_data_release(&data);
    nn_threads_stop();
    return rc < 0 ? rc : bench_print(&result, opt->json, out, err);
}
