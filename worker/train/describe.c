/*
 * --describe and --count: everything that follows from parameters alone. It reads no data but sizes
 * of files, a sample of each source, a tokenizer and the header of a starting model, so it is fast
 * enough for every cell of a plan. Checks are in the order in which a run would fail, and each
 * needs those before it to have passed.
 */
#include <math.h>

#include "base/files/file.h"
#include "base/json/json.h"
#include "base/xalloc.h"
#include "worker/model/store.h"
#include "worker/nn/gemm.h"
#include "worker/report/describe.h"
#include "worker/report/machine_rates.h"
#include "worker/train/budget.h"
#include "worker/train/checkpoint/earlier_run.h"
#include "worker/train/initial_model.h"
#include "worker/train/memory.h"
#include "worker/train/train.h"
#include "worker/train/train_result.h"
#include "worker/train/trial.h"

#define PARAMS_FILE_MAX     (1u << 20)
#define START_SECONDS       0.1
#define RESOLUTION_MAX      0.01 /* of the horizon */
#define CHECKPOINTS_ON_DISK 3.0  /* two, and the third while it is written */

static void add_metric(void *ctx, const char *name)
{
    description_metric(ctx, name);
}

/* The facts that follow from the shape; of a run, its optimiser's products are operations, too. */
static void describe_counts(const struct model_config *cfg, double more_flops_per_token,
                            struct description *d)
{
    description_fact(d, "params_total", (double)model_config_total(cfg));
    description_fact(d, "params_active", (double)model_config_active(cfg));
    description_fact(d, "active_ffn", (double)model_config_active_ffn(cfg));
    description_fact(d, "flops_per_token",
                     model_config_flops_per_token(cfg) + more_flops_per_token);
}

/* How finely target_step is known. */
static void describe_target(const struct train_options *opt, struct description *d)
{
    int64_t fine = (int64_t)floor((double)opt->steps * RESOLUTION_MAX);
    char text[200];

    description_fact(d, TARGET_RESOLUTION, (double)opt->eval_every);
    if (opt->eval_every <= fine || opt->eval_every == 1)
        return;
    (void)snprintf(text, sizeof(text),
                   "target_step is known to %lld steps, %.2g %% of the horizon: eval_every = %lld "
                   "makes that at most 1 %%",
                   (long long)opt->eval_every, 100.0 * (double)opt->eval_every / (double)opt->steps,
                   (long long)(fine < 1 ? 1 : fine));
    description_note(d, text);
}

/* The models that later stages can read, beside the last one. */
static void describe_snapshots(const struct train_options *opt, struct description *d)
{
    for (size_t i = 0; i < opt->n_marks; i++) {
        if (!opt->is_snapshot[i])
            continue;
        char *folder = store_snapshot_folder(opt->marks[i]);
        char *path = path_join(folder, MODEL_FILE_BIN);
        description_artifact(d, path);
        free(path);
        free(folder);
    }
}

/* Contract, ratio and tokens matter to a run only by the steps that they come to. */
static void resolve_horizon(const struct worker_task *task, const struct train_options *opt,
                            struct description *d)
{
    static const char *const keys[] = {"contract", "ratio", "tokens"};
    cJSON *horizon = json_copy(json_member(task->params, "horizon"));

    for (size_t i = 0; i < ARRAY_LEN(keys); i++)
        cJSON_DeleteItemFromObjectCaseSensitive(horizon, keys[i]);
    json_put_int(horizon, "steps", horizon_steps(&opt->horizon, &opt->model, opt->batch_tokens));
    description_resolves(d, "horizon", horizon);
}

static void describe_seconds(const struct worker_task *task, const struct train_options *opt,
                             struct description *d)
{
    struct strbuf why = STRBUF_INIT, note = STRBUF_INIT;

    description_seconds(d, START_SECONDS + trial_seconds(task, opt, &why));
    if (why.len > 0) {
        machine_rates_assumed(why.buf, &note);
        description_note(d, note.buf);
    }
    strbuf_release(&why);
    strbuf_release(&note);
}

static void describe_facts(const struct worker_task *task, const struct train_options *opt,
                           const struct memory_need *need, struct description *d)
{
    const struct model_config *cfg = &opt->model;
    double total = (double)model_config_total(cfg);
    double steps = (double)train_options_end(opt);
    double copies = CHECKPOINTS_ON_DISK + (opt->left_out > 0 ? 1.0 : 0.0);
    double models = 1.0 + (double)train_options_snapshots(opt);
    double tokens = steps * (double)opt->batch_tokens;
    double optimiser = optimiser_flops(opt) / (double)opt->batch_tokens;

    describe_counts(cfg, optimiser, d);
    if (optimiser > 0.0)
        description_fact(d, OPTIMISER_FLOPS, optimiser);
    description_fact(d, "tokens", tokens);
    description_fact(d, "steps", steps);
    if (cfg->experts > 0)
        description_fact(d, "tokens_per_expert", tokens * cfg->top_k / cfg->experts);
    if (opt->solved) {
        description_fact(d, "match_ratio", opt->match_ratio);
        description_param(d, cfg->experts > 0 ? "expert_ffn" : "ffn", (double)opt->solved_ffn);
    }
    if (opt->has_target)
        describe_target(opt, d);
    resolve_horizon(task, opt, d);
    description_fact(d, "memory_bytes", memory_most(need));
    description_fact(d, "memory_least_bytes", memory_least(need));
    description_fact(d, "disk_bytes",
                     sizeof(real) * ((2.0 * total + (double)optimiser_size(opt).second) * copies +
                                     total * models));
    describe_seconds(task, opt, d);
}

static void add_fact(void *ctx, const char *name, double value)
{
    description_fact(ctx, name, value);
}

static void describe_budget(const struct worker_task *task, const struct train_options *opt,
                            const struct tokenizer *tok, struct description *d)
{
    struct data_budget b;

    budget_of_files(task, opt, tok, &b);
    budget_facts(&b, opt, add_fact, d);
}

/* A model that cannot be read is a fault of the parameter that names it. */
static void check_start(const struct worker_task *task, struct train_options *opt,
                        struct param_faults *faults)
{
    const size_t before = faults->n;
    struct params p;
    struct err err;

    if (initial_model_check(task, opt, faults, &err) == 0 && faults->n == before &&
        earlier_run_check(task, opt, faults, &err) == 0)
        return;
    if (faults->n > before)
        return;
    params_init(&p, NULL, faults);
    params_fault(&p, "init", "%s", err.msg);
}

/* What a reader of the plan would want to know before it is locked. */
static void describe_notes(const struct train_options *opt, struct description *d)
{
    const struct model_config *cfg = &opt->model;

    if (cfg->experts > 1 && cfg->top_k == 1 && cfg->renormalise)
        description_note(d, "top_k = 1 with renormalise = true (the default): the chosen expert's "
                            "weight is always 1, so the router learns from its balance and z "
                            "losses alone; use renormalise = false");
    if (opt->products == PRODUCTS_OPENBLAS && gemm_is_narrow())
        description_note(d, "OpenBLAS's core here is of AVX2 and the processor has AVX-512: about "
                            "half the speed; OPENBLAS_CORETYPE = \"SkylakeX\" in the stage's env "
                            "(locked: results depend on it) is about twice as fast");
}

int train_describe(const struct worker_task *task, FILE *out, struct err *err)
{
    struct param_faults faults = {0};
    struct train_options opt;
    struct description d;
    struct memory_need need = {0};
    struct tokenizer *tok = NULL;

    description_init(&d);
    train_options_read(task, &opt, &faults);
    if (faults.n == 0)
        check_start(task, &opt, &faults);
    if (faults.n == 0)
        tok = train_data_tokenizer(task, &opt, &faults);
    if (faults.n == 0 && tok != NULL)
        train_data_check_sources(task, &opt, tok, &faults);
    if (faults.n == 0) {
        /* Against the task's limit alone: this need not be the machine that will run it. */
        memory_need_of(&opt, memory_corpus_of_files(task, &opt), task->threads, &need);
        memory_check(&need, (double)task->memory_bytes, &opt, &faults);
    }
    if (faults.n == 0) {
        train_result_metric_names(&opt, add_metric, &d);
        describe_facts(task, &opt, &need, &d);
        describe_snapshots(&opt, &d);
        describe_budget(task, &opt, tok, &d);
        describe_notes(&opt, &d);
    }
    int rc = description_print(&d, &faults, out, err);
    description_release(&d);
    param_faults_release(&faults);
    tokenizer_free(tok);
    return rc;
}

/* Of a file with a horizon too: what follows from the counts. */
static void count_horizon(struct params *p, const struct model_config *cfg, struct description *d)
{
    struct train_options opt = {.model = *cfg};

    if (!params_has(p, "horizon"))
        return;
    params_require(p, "batch_tokens");
    opt.batch_tokens = params_int(p, "batch_tokens", 1, JSON_INT_MAX, cfg->context);
    train_options_read_horizon(p, &opt);
    if (p->faults->n > 0)
        return;
    double steps =
        (double)horizon_end(&opt.horizon, horizon_steps(&opt.horizon, cfg, opt.batch_tokens));
    double tokens = steps * (double)opt.batch_tokens;
    description_fact(d, "steps", steps);
    description_fact(d, "tokens", tokens);
    description_fact(d, "tokens_per_param", tokens / (double)model_config_total(cfg));
    description_fact(d, "tokens_per_active_param", tokens / (double)model_config_active(cfg));
    if (cfg->experts > 0)
        description_fact(d, "tokens_per_expert", tokens * cfg->top_k / cfg->experts);
}

static int print_count(const cJSON *obj, FILE *out, struct err *err)
{
    struct param_faults faults = {0};
    struct model_config cfg;
    struct description d;
    struct strbuf text = STRBUF_INIT;
    struct params p;

    params_init(&p, obj, &faults);
    description_init(&d);
    model_config_read(&p, false, &cfg);
    if (faults.n == 0)
        model_config_check(&p, &cfg);
    if (faults.n == 0) {
        describe_counts(&cfg, 0.0, &d);
        count_horizon(&p, &cfg, &d);
    }
    int rc = param_faults_result(&faults, err);
    param_faults_say(&faults, "prereg-train");
    if (rc == 0)
        rc = json_line(d.facts, &text, err);
    if (rc == 0)
        (void)fprintf(out, "%s\n", text.buf);
    strbuf_release(&text);
    description_release(&d);
    param_faults_release(&faults);
    return rc;
}

int train_count(const char *path, FILE *out, struct err *err)
{
    cJSON *obj = NULL;

    int rc = json_read_file(path, PARAMS_FILE_MAX, &obj, err);
    if (rc == 0) {
        const cJSON *params = json_member(obj, "params"); /* of a whole task */
        rc = print_count(params != NULL ? params : obj, out, err);
    }
    cJSON_Delete(obj);
    return rc < 0 ? err_wrap(err, "%s", path_name(path)) : 0;
}
