/*
 * A step is one pass here, of no more tokens than a fraction of a second takes; the clock of the
 * trainer's parts tells what a token costs from what a step costs beside (the update of the
 * weights). The least of a few rounds counts, in processor time with one thread: other work on the
 * machine only ever adds. A large model is measured smaller and with shorter sequences, at whose
 * rate of operations the whole is taken.
 */
#include "worker/train/trial.h"

#include "base/clock.h"
#include "base/rng.h"
#include "base/strbuf.h"
#include "base/xalloc.h"
#include "worker/nn/cpu.h"
#include "worker/nn/pass_clock.h"
#include "worker/nn/product/bfloat16.h"
#include "worker/nn/threads.h"
#include "worker/report/machine_rates.h"
#include "worker/train/trainer.h"

#define PASS_FLOPS  4e10 /* of a pass that is timed, at most, unless that is under PASS_TOKENS */
#define PASS_TOKENS 256
#define ENOUGH_NS   ((int64_t)200000000)
#define LONGEST_NS  ((int64_t)5000000000) /* of all steps, on the wall */
#define ROUNDS_MAX  1000
#define PARAMS_MOST ((int64_t)16 << 20)

/* In the names of rates; AdamW is what all were measured with before. */
static const char *const OPTIMISER_NAMES[OPTIMISER_NR] = {"", " muon", " sgd"};

/* Seconds of one thing. */
struct trial_rates {
    double token; /* in a pass */
    double step;  /* beside its passes */
};

struct train_options trial_options(const struct model_config *cfg, int64_t batch, int64_t steps,
                                   enum product_precision precision)
{
    return (struct train_options){.model = *cfg,
                                  .schedule = {.kind = SCHEDULE_CONSTANT},
                                  .batch_tokens = batch * cfg->context,
                                  .micro_batch = batch,
                                  .steps = steps,
                                  .seed = 1,
                                  .lr = 1e-4,
                                  .adamw_lr = 1e-4,
                                  .momentum = 0.9,
                                  .precision = precision,
                                  .weight_decay = 0.1,
                                  .clip = 1.0,
                                  .beta1 = 0.9,
                                  .beta2 = 0.95,
                                  .eps = 1e-8,
                                  .init_std = 0.02,
                                  .is_timed = true,
                                  .balance_loss = cfg->experts > 0 ? 0.01 : 0.0,
                                  .balance_anneal = 1.0};
}

void trial_data(struct train_data *data, const struct model_config *cfg, int64_t batch)
{
    struct train_source *src = &data->sources[0];
    struct rng rng;

    *data = (struct train_data){.n_sources = 1, .seed = 1, .context = (size_t)cfg->context};
    src->name = "random";
    src->weight = 1.0;
    src->block_part = MIX_BLOCK;
    src->n_windows = (uint64_t)batch * TRIAL_WINDOWS;
    src->train.n = (src->n_windows + 1) * data->context + 1;
    src->train.ids = xcalloc(src->train.n, sizeof(*src->train.ids));
    rng_seed(&rng, 1);
    for (size_t i = 0; i < src->train.n; i++)
        src->train.ids[i] = (uint32_t)rng_below(&rng, (uint64_t)cfg->vocab);
}

/* The least of some steps, after one that touches every page; that one alone where it takes long.
 */
static int time_steps(struct trainer *t, struct pass_clock *clock, struct trial_rates *out,
                      struct err *err)
{
    const double tokens = (double)t->opt->batch_tokens;
    const int64_t start = clock_mono_ns();
    double loss = 0.0;
    int64_t sum = 0;
    int rc = 0;

    t->clock = clock;
    run_set_clock(t->run, clock);
    for (int i = 0; rc == 0 && i <= ROUNDS_MAX && (i < 2 || sum < ENOUGH_NS); i++) {
        if (i > 0 && clock_mono_ns() - start > LONGEST_NS)
            break;
        int64_t before = clock->ns[PASS_OPTIMISER], begin = pass_clock_now_ns(clock->clock);
        rc = trainer_step(t, &loss, err);
        int64_t took = pass_clock_now_ns(clock->clock) - begin;
        double step = (double)(clock->ns[PASS_OPTIMISER] - before) * 1e-9;
        double token = ((double)took * 1e-9 - step) / tokens;
        out->step = i <= 1 || step < out->step ? step : out->step;
        out->token = i <= 1 || token < out->token ? token : out->token;
        sum += i > 0 ? took : 0;
    }
    return rc;
}

static double bytes_of(const struct train_options *opt, int threads)
{
    return trainer_bytes(opt) + threads * run_thread_bytes(&opt->model) +
           sizeof(uint32_t) * TRIAL_WINDOWS * (double)opt->batch_tokens;
}

/* The options of a trial that may be made: with a smaller batch where that is what takes memory. */
static bool find_options(const struct model_config *cfg, const struct train_options *like,
                         int threads, struct train_options *opt, struct strbuf *why)
{
    int64_t most = (int64_t)(PASS_FLOPS / model_config_flops_per_token(cfg)) / cfg->context;
    int64_t batch = like->micro_batch < most ? like->micro_batch : most < 1 ? 1 : most;
    const double room = machine_rates_room();

    *opt = trial_options(cfg, batch, ROUNDS_MAX + 1, like->precision);
    opt->optimiser = like->optimiser;
    opt->router_noise = like->router_noise;
    for (; batch > 1 && bytes_of(opt, threads) > room; batch /= 2) {
        opt->micro_batch = batch / 2;
        opt->batch_tokens = opt->micro_batch * cfg->context;
    }
    const double pass = model_config_flops_per_token(cfg) * (double)opt->batch_tokens;
    return machine_rates_allowed(bytes_of(opt, threads), pass + optimiser_flops(opt), why);
}

static int measure(const struct train_options *opt, const struct train_options *like, int threads,
                   struct trial_rates *out, struct err *err)
{
    struct pass_clock clock = {.clock = threads == 1 ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC};
    struct trial_rates found = {0};
    struct train_data data;
    struct trainer trainer;

    int rc = nn_threads_start(threads, err);
    if (rc < 0)
        return rc;
    product_choose(like->products, threads);
    trial_data(&data, &opt->model, opt->micro_batch);
    rc = trainer_init(&trainer, opt, &data, err);
    if (rc == 0)
        rc = time_steps(&trainer, &clock, &found, err);
    if (rc == 0)
        *out = found;
    trainer_release(&trainer);
    train_data_release(&data);
    nn_threads_stop();
    return rc;
}

/* Measures, within bounds; else `why` gets the reason. */
static bool try_measure(const struct model_config *cfg, const struct train_options *like,
                        int threads, struct trial_rates *out, struct strbuf *why)
{
    struct train_options opt;
    struct err err;

    if (!find_options(cfg, like, threads, &opt, why))
        return false;
    if (measure(&opt, like, threads, out, &err) == 0)
        return true;
    strbuf_adds(why, err.msg);
    return false;
}

/* The model, with fewer layers and a shorter context where it is large. */
static struct model_config trial_model(const struct train_options *opt)
{
    struct model_config cfg = opt->model;

    model_config_shrink(&cfg, PARAMS_MOST);
    while (cfg.context / 2 >= PASS_TOKENS &&
           model_config_flops_per_token(&cfg) * cfg.context > PASS_FLOPS)
        cfg.context /= 2;
    return cfg;
}

/* Everything that a rate depends on, in words. */
static void add_name(struct strbuf *name, const struct model_config *cfg,
                     const struct train_options *opt, int threads)
{
    bool bfloat16 = opt->precision == PRODUCT_BFLOAT16;

    strbuf_addf(name, "train %s%s%s%s, %d threads, %lld at once: ", nn_cpu_text(nn_cpu()),
                opt->products == PRODUCTS_OPENBLAS ? " openblas" : "",
                !bfloat16              ? ""
                : bfloat16_is_native() ? " bfloat16 pairs"
                                       : " bfloat16",
                OPTIMISER_NAMES[opt->optimiser], threads, (long long)opt->micro_batch);
    if (opt->router_noise > 0.0)
        strbuf_adds(name, "router noise, ");
    model_config_name(cfg, name);
}

/* How many times as long the update of the whole takes: by Muon's products, whose part is nearly
 * all of it where there are any, else by parameters. */
static double update_ratio(const struct train_options *whole, const struct train_options *part)
{
    return whole->optimiser == OPTIMISER_MUON ? optimiser_flops(whole) / optimiser_flops(part)
                                              : (double)model_config_total(&whole->model) /
                                                    (double)model_config_total(&part->model);
}

double trial_seconds(const struct worker_task *task, const struct train_options *opt,
                     struct strbuf *why)
{
    struct model_config cfg = trial_model(opt);
    double whole = model_config_flops_per_token(&opt->model),
           part = model_config_flops_per_token(&cfg);
    struct train_options smaller = *opt;
    const double usual = TASK_USUAL_FLOPS * task->threads;
    struct trial_rates r = {.token = part / usual};
    struct strbuf name = STRBUF_INIT;
    double values[2];

    smaller.model = cfg;
    r.step = optimiser_flops(&smaller) / usual;
    add_name(&name, &cfg, opt, task->threads);
    if (machine_rates_find(task, name.buf, values, 2)) {
        r = (struct trial_rates){values[0], values[1]};
    } else if (task->rates != NULL && try_measure(&cfg, opt, task->threads, &r, why)) {
        values[0] = r.token;
        values[1] = r.step;
        machine_rates_keep(task, name.buf, values, 2);
    }
    strbuf_release(&name);
    return train_options_work(opt) * r.token * whole / part +
           (double)(train_options_end(opt) - opt->first_step) * r.step *
               update_ratio(opt, &smaller);
}
