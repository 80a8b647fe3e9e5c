/*
 * Reads the parameters group by group through worker/report/params.h, which collects faults with
 * their keys. Checks that need several values run only when the single values hold, so a typo gives
 * one fault and not five. What follows from the rest (steps, passes, evaluations) is computed last,
 * and a try is cut after that.
 */
#include "worker/train/options.h"

#include <math.h>

#include "base/json/json.h"
#include "worker/data/tokenizer/tokenizer.h"

#define TOKENS_MAX         ((int64_t)1 << 50)
#define MICRO_TOKENS       4096 /* default size of one pass */
#define TARGET_EVALUATIONS 50   /* by default a target is checked this often */
#define MIX_TOLERANCE      1e-6
#define BACKWARD_FACTOR    3.0  /* training costs three times a forward pass */
#define STOP_MIN           1e-9 /* of the horizon */
#define TRY_VAL_TOKENS     4096 /* of a source, in a try */

static const char *const CONTRACTS[CONTRACT_NR] = {"fixed", "active", "total"};
static const char *const OPTIMISERS[OPTIMISER_NR] = {"adamw", "muon", "sgd"};
static const char *const PRODUCTS[PRODUCTS_NR] = {"fixed", "openblas"};
static const char *const PRECISIONS[PRODUCT_PRECISION_NR] = {"float32", "bfloat16"};
static const char *const SCHEDULES[SCHEDULE_NR] = {"cosine", "wsd", "constant"};

void train_options_read_horizon(struct params *p, struct train_options *opt)
{
    struct params h;

    params_require(p, "horizon");
    params_init_table(&h, p, "horizon");
    if (h.obj == NULL)
        return;
    params_require(&h, "contract");
    opt->horizon.contract =
        (enum contract)params_choice(&h, "contract", CONTRACTS, CONTRACT_NR, CONTRACT_FIXED);
    bool fixed = opt->horizon.contract == CONTRACT_FIXED;
    params_require(&h, fixed ? "tokens" : "ratio");
    opt->horizon.tokens = params_int(&h, "tokens", 1, TOKENS_MAX, 1);
    opt->horizon.ratio = params_number(&h, "ratio", 1e-6, 1e9, 1.0);
    opt->horizon.stop = params_number(&h, "stop", STOP_MIN, 1.0, 1.0);
    if (params_has(&h, fixed ? "ratio" : "tokens"))
        params_fault(&h, fixed ? "ratio" : "tokens", "does not go with contract \"%s\"",
                     CONTRACTS[opt->horizon.contract]);
    params_finish(&h);
}

/* The table `schedule`; every fraction is of the horizon. */
static void read_schedule(struct params *p, struct train_options *opt)
{
    struct params s;

    params_init_table(&s, p, "schedule");
    opt->schedule.kind =
        (enum schedule_kind)params_choice(&s, "kind", SCHEDULES, SCHEDULE_NR, SCHEDULE_COSINE);
    opt->schedule.warmup = params_number(&s, "warmup", 0.0, 1.0, 0.02);
    opt->schedule.floor = params_number(&s, "floor", 0.0, 1.0, 0.1);
    opt->schedule.decay = params_number(&s, "decay", 0.0, 1.0, 0.2);
    if (params_has(&s, "decay") && opt->schedule.kind != SCHEDULE_WSD)
        params_fault(&s, "decay", "is for \"wsd\" only");
    if (opt->schedule.kind == SCHEDULE_WSD && opt->schedule.warmup + opt->schedule.decay > 1.0)
        params_fault(&s, "decay", "warmup and decay together exceed the horizon");
    params_finish(&s);
}

/* A name in a parameter must be one of the task's data. */
static void check_source(struct params *p, const struct worker_task *task, const char *key,
                         const char *name)
{
    const cJSON *entry = task->data == NULL ? NULL : json_member(task->data, name);

    if (entry == NULL)
        params_fault(p, key, "\"%.60s\" is not one of the program's data", name);
}

/* Shares must sum to 1 up to MIX_TOLERANCE, and are then scaled to do so exactly. */
static void read_mix_table(struct params *p, const struct worker_task *task, const cJSON *mix,
                           struct train_options *opt)
{
    const cJSON *part;
    double sum = 0.0;

    cJSON_ArrayForEach(part, mix)
    {
        if (!cJSON_IsNumber(part) || !(part->valuedouble > 0.0) || !isfinite(part->valuedouble)) {
            params_fault(p, "mix", "%.60s: expected a positive number", part->string);
            return;
        }
        if (opt->n_mix == MIX_MAX) {
            params_fault(p, "mix", "more than %d sources", MIX_MAX);
            return;
        }
        check_source(p, task, "mix", part->string);
        opt->mix[opt->n_mix++] = (struct mix_part){part->string, part->valuedouble};
        sum += part->valuedouble;
    }
    if (fabs(sum - 1.0) > MIX_TOLERANCE)
        params_fault(p, "mix", "the shares sum to %g, not to 1", sum);
    for (size_t i = 0; i < opt->n_mix; i++)
        opt->mix[i].weight /= sum;
}

/* mix = { name = share, ... }, or data = "name" for one source. */
static void read_mix(struct params *p, const struct worker_task *task, struct train_options *opt)
{
    const cJSON *mix = params_value(p, "mix");
    const char *one = params_string(p, "data", NULL);

    if ((mix == NULL) == (one == NULL)) {
        params_fault(p, "mix",
                     mix == NULL ? "is required (or data = \"name\" for one source)"
                                 : "excludes data");
    } else if (one != NULL) {
        check_source(p, task, "data", one);
        opt->mix[0] = (struct mix_part){one, 1.0};
        opt->n_mix = 1;
    } else if (!cJSON_IsObject(mix)) {
        params_fault(p, "mix", "expected a table");
    } else {
        read_mix_table(p, task, mix, opt);
    }
}

static void read_tokenizer(struct params *p, const struct worker_task *task,
                           struct train_options *opt)
{
    opt->tokenizer = params_string(p, "tokenizer", TOKENIZER_BYTES);
    if (strcmp(opt->tokenizer, TOKENIZER_BYTES) != 0) {
        check_source(p, task, "tokenizer", opt->tokenizer);
        params_require(p, "vocab");
    } else if (opt->model.vocab < (int)TOKENIZER_BYTES_VOCAB) {
        params_fault(p, "vocab", "%d is under the %u of tokenizer \"bytes\"", opt->model.vocab,
                     TOKENIZER_BYTES_VOCAB);
    }
}

/* init = "name": weights alone; init = { run = "name" }: all of a run's state. */
static void read_init(struct params *p, const struct worker_task *task, struct train_options *opt)
{
    const cJSON *value = params_value(p, "init");
    struct params run;

    if (!cJSON_IsObject(value)) {
        opt->init = params_string(p, "init", NULL);
        if (opt->init != NULL)
            check_source(p, task, "init", opt->init);
        return;
    }
    params_init_table(&run, p, "init");
    params_require(&run, "run");
    opt->init_run = params_string(&run, "run", NULL);
    if (opt->init_run != NULL)
        check_source(&run, task, "run", opt->init_run);
    params_finish(&run);
}

/* A list of rising fractions of the horizon; returns how many. */
static size_t read_fractions(struct params *p, const char *key, double out[MARKS_MAX])
{
    const cJSON *list = params_value(p, key), *v;
    size_t n = 0;

    if (list == NULL)
        return 0;
    if (!cJSON_IsArray(list)) {
        params_fault(p, key, "expected an array of fractions");
        return 0;
    }
    cJSON_ArrayForEach(v, list)
    {
        double last = n == 0 ? 0.0 : out[n - 1];
        if (!cJSON_IsNumber(v) || !(v->valuedouble > last && v->valuedouble <= 1.0)) {
            params_fault(p, key, "expected rising fractions in (0, 1]");
            return 0;
        }
        if (n == MARKS_MAX) {
            params_fault(p, key, "more than %d", MARKS_MAX);
            return 0;
        }
        out[n++] = v->valuedouble;
    }
    return n;
}

/* Both lists in one: every snapshot is measured, too. */
static void read_marks(struct params *p, struct train_options *opt)
{
    double marks[MARKS_MAX], snapshots[MARKS_MAX];
    size_t n_marks = read_fractions(p, "marks", marks), i = 0, k = 0;
    size_t n_snapshots = read_fractions(p, "snapshots", snapshots);

    while (i < n_marks || k < n_snapshots) {
        bool snapshot = i == n_marks || (k < n_snapshots && snapshots[k] <= marks[i]);
        double at = snapshot ? snapshots[k] : marks[i];
        if (opt->n_marks == MARKS_MAX) {
            params_fault(p, "snapshots", "with the marks more than %d", MARKS_MAX);
            return;
        }
        k += snapshot ? 1 : 0;
        i += i < n_marks && marks[i] == at ? 1 : 0;
        opt->is_snapshot[opt->n_marks] = snapshot;
        opt->marks[opt->n_marks++] = at;
    }
}

/* Keys of one optimiser that another does not have. */
static void check_optimiser_keys(struct params *p, enum optimiser_kind kind)
{
    static const struct {
        const char *key;
        bool of[OPTIMISER_NR];
    } keys[] = {
        {"beta1", {true, true, false}},    {"beta2", {true, true, false}},
        {"eps", {true, true, false}},      {"momentum", {false, true, true}},
        {"nesterov", {false, true, true}}, {"adamw_lr", {false, true, false}},
    };
    static const char *const own[OPTIMISER_NR] = {"beta1, beta2, eps",
                                                  "momentum, nesterov, adamw_lr, beta1, beta2, eps",
                                                  "momentum, nesterov"};

    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
        if (!keys[i].of[kind] && params_has(p, keys[i].key))
            params_fault(p, keys[i].key,
                         "does not go with optimizer = \"%s\", whose own keys are %s",
                         OPTIMISERS[kind], own[kind]);
}

static void read_optimiser(struct params *p, struct train_options *opt)
{
    const size_t faults = p->faults->n;

    opt->optimiser = (enum optimiser_kind)params_choice(p, "optimizer", OPTIMISERS, OPTIMISER_NR,
                                                        OPTIMISER_ADAMW);
    const bool known = p->faults->n == faults, muon = opt->optimiser == OPTIMISER_MUON,
               sgd = opt->optimiser == OPTIMISER_SGD;
    params_require(p, "lr");
    params_require(p, "seed");
    opt->lr = params_number(p, "lr", 0.0, 1e30, 1e-3);
    opt->seed = (uint64_t)params_int(p, "seed", 0, JSON_INT_MAX, 0);
    opt->weight_decay = params_number(p, "weight_decay", 0.0, 10.0, sgd ? 0.0 : 0.1);
    opt->clip = params_number(p, "clip", 0.0, 1e9, 1.0);
    opt->beta1 = params_number(p, "beta1", 0.0, 0.999999, 0.9);
    opt->beta2 = params_number(p, "beta2", 0.0, 0.999999, 0.95);
    opt->eps = params_number(p, "eps", 1e-30, 1.0, 1e-8);
    opt->momentum = params_number(p, "momentum", 0.0, 0.999999, muon ? 0.95 : 0.9);
    opt->nesterov = params_bool(p, "nesterov", muon);
    opt->adamw_lr = params_number(p, "adamw_lr", 0.0, 1e30, 3e-4);
    if (known) /* else every key might be that of the one that was meant */
        check_optimiser_keys(p, opt->optimiser);
    if (sgd && opt->nesterov && opt->momentum == 0.0)
        params_fault(p, "nesterov", "needs a momentum above 0");
    opt->init_std = params_number(p, "init_std", 0.0, 10.0, 0.02);
}

static void read_router(struct params *p, struct train_options *opt)
{
    static const char *const only_moe[] = {
        "balance_loss",       "router_z_loss", "bias_update_rate", "balance_anneal",
        "reset_dead_experts", "router_noise",  "capacity_factor"};

    opt->balance_loss = params_number(p, "balance_loss", 0.0, 1e6, 0.0);
    opt->router_z_loss = params_number(p, "router_z_loss", 0.0, 1e6, 0.0);
    opt->router_noise = params_number(p, "router_noise", 0.0, 100.0, 0.0);
    opt->capacity_factor = params_number(p, "capacity_factor", 0.0, 1e6, 0.0);
    opt->bias_update_rate = params_number(p, "bias_update_rate", 0.0, 1.0, 0.0);
    opt->balance_anneal = params_number(p, "balance_anneal", 0.0, 1e6, 1.0);
    opt->reset_dead_experts = params_int(p, "reset_dead_experts", 0, TOKENS_MAX, 0);
    for (size_t i = 0; i < sizeof(only_moe) / sizeof(only_moe[0]) && opt->model.experts == 0; i++)
        if (params_has(p, only_moe[i]))
            params_fault(p, only_moe[i], "needs experts");
}

enum product_kind train_options_products(const struct worker_task *task)
{
    const cJSON *value = task->params == NULL ? NULL : json_member(task->params, "products");

    for (int i = 0; i < PRODUCTS_NR && cJSON_IsString(value); i++)
        if (strcmp(value->valuestring, PRODUCTS[i]) == 0)
            return (enum product_kind)i;
    return PRODUCTS_FIXED;
}

/* validation = "name": a text of its own, and nothing of the sources is held out. */
static void read_validation(struct params *p, const struct worker_task *task,
                            struct train_options *opt)
{
    opt->val_fraction = params_number(p, "val_fraction", 1e-6, 0.5, 0.05);
    opt->validation = params_string(p, "validation", NULL);
    if (opt->validation == NULL)
        return;
    check_source(p, task, "validation", opt->validation);
    for (size_t i = 0; i < opt->n_mix; i++)
        if (strcmp(opt->mix[i].name, opt->validation) == 0)
            params_fault(p, "validation",
                         "\"%.60s\" is trained on: its loss would not be one of "
                         "unseen text",
                         opt->validation);
    if (params_has(p, "val_fraction"))
        params_fault(p, "val_fraction",
                     "does not go with validation: nothing of the sources is held out then");
    opt->val_fraction = 0.0;
}

static void read_evaluation(struct params *p, struct train_options *opt)
{
    opt->has_target = params_has(p, "target_loss");
    opt->target_loss = params_number(p, "target_loss", 0.0, 1e6, 0.0);
    opt->stop_at_target = params_bool(p, "stop_at_target", false);
    opt->val_tokens = params_int(p, "val_tokens", 1, TOKENS_MAX, 65536);
    opt->eval_every = params_int(p, "eval_every", 0, TOKENS_MAX, 0);
    opt->val_curve = opt->eval_every > 0;
    opt->products =
        (enum product_kind)params_choice(p, "products", PRODUCTS, PRODUCTS_NR, PRODUCTS_FIXED);
    opt->precision = (enum product_precision)params_choice(p, "precision", PRECISIONS,
                                                           PRODUCT_PRECISION_NR, PRODUCT_FLOAT32);
    if (opt->precision == PRODUCT_BFLOAT16 && opt->products == PRODUCTS_OPENBLAS)
        params_fault(p, "precision", "\"bfloat16\" needs products = \"fixed\"");
    opt->resume_any_core = params_bool(p, "resume_any_core", false);
    if (opt->stop_at_target && !opt->has_target)
        params_fault(p, "stop_at_target", "needs target_loss");
    read_marks(p, opt);
}

/* Where the run ends, and whether what is asked of it comes before that. */
static void derive_end(struct params *p, struct train_options *opt)
{
    int64_t end = horizon_end(&opt->horizon, opt->steps);

    if (end < 1)
        params_fault(p, "horizon.stop", "%g of %lld steps is less than one step", opt->horizon.stop,
                     (long long)opt->steps);
    /* Their facts are about the last tenth, and a later run could not get back its first part. */
    if (opt->model.experts > 0 && end < opt->steps && end > horizon_tail_begin(opt->steps))
        params_fault(p, "horizon.stop",
                     "with experts at most %g, or 1: the routers' facts are about the last tenth "
                     "of the steps",
                     1.0 - HORIZON_TAIL);
    for (size_t i = 0; i < opt->n_marks; i++)
        if (horizon_fraction(opt->steps, opt->marks[i]) > end)
            params_fault(p, opt->is_snapshot[i] ? "snapshots" : "marks",
                         "%g is after horizon.stop = %g", opt->marks[i], opt->horizon.stop);
    opt->left_out = opt->steps - end;
}

/* What follows from the rest: sequences a step, steps, how often to look for the target. */
static void derive(struct params *p, struct train_options *opt)
{
    int64_t context = opt->model.context;

    if (opt->batch_tokens % context != 0)
        params_fault(p, "batch_tokens", "%lld is not a multiple of context %lld",
                     (long long)opt->batch_tokens, (long long)context);
    if (opt->micro_batch == 0)
        opt->micro_batch = MICRO_TOKENS > context ? MICRO_TOKENS / context : 1;
    if (opt->micro_batch > opt->batch_tokens / context)
        opt->micro_batch = opt->batch_tokens / context;
    if (opt->micro_batch > MICRO_TOKENS_MAX / context) {
        params_fault(p, "micro_batch", "%lld sequences of %lld tokens; a pass takes at most %lld",
                     (long long)opt->micro_batch, (long long)context, (long long)MICRO_TOKENS_MAX);
        return;
    }
    opt->steps = horizon_steps(&opt->horizon, &opt->model, opt->batch_tokens);
    if (opt->steps < 1)
        params_fault(p, "horizon", "%.0f tokens are less than one step of %lld",
                     horizon_tokens(&opt->horizon, &opt->model), (long long)opt->batch_tokens);
    if (opt->steps > INT32_MAX)
        params_fault(p, "horizon", "%lld steps", (long long)opt->steps);
    derive_end(p, opt);
    if (opt->has_target && opt->eval_every == 0)
        opt->eval_every = opt->steps > TARGET_EVALUATIONS ? opt->steps / TARGET_EVALUATIONS : 1;
}

size_t train_options_snapshots(const struct train_options *opt)
{
    size_t n = 0;

    for (size_t i = 0; i < opt->n_marks; i++)
        n += opt->is_snapshot[i] ? 1 : 0;
    return n;
}

/* Evaluations, each a forward pass over every part of the validation, and the steps. */
double train_options_work(const struct train_options *opt)
{
    double evaluations = 1.0 + (double)opt->n_marks;
    int64_t steps = train_options_end(opt) - opt->first_step;

    if (opt->eval_every > 0)
        evaluations += (double)(steps / opt->eval_every);
    return (double)steps * (double)opt->batch_tokens +
           evaluations * (double)train_options_n_validated(opt) * (double)opt->val_tokens /
               BACKWARD_FACTOR;
}

/* Of `preregctl try`: fewer steps, and less to evaluate; its scores are thrown away. */
static void cut_for_try(const struct worker_task *task, struct train_options *opt)
{
    const int64_t least = opt->model.context > TRY_VAL_TOKENS ? opt->model.context : TRY_VAL_TOKENS;

    opt->whole_work = train_options_work(opt);
    opt->steps =
        train_options_end(opt) < task->try_steps ? train_options_end(opt) : task->try_steps;
    opt->left_out = 0;
    if (opt->val_tokens > least)
        opt->val_tokens = least;
    opt->tried_work = train_options_work(opt);
}

/* Names that other trainers have, with what to do here. */
static void refuse_foreign(struct params *p)
{
    static const struct {
        const char *key;
        const char *why;
    } foreign[] = {
        {"dropout",
         "not supported: its masks would differ between the arms that a plan compares, and "
         "runs of a few passes over their data do not need it; use weight_decay"},
        {"weight_tying", "is called tie_embeddings (true by default)"},
    };

    for (size_t i = 0; i < sizeof(foreign) / sizeof(foreign[0]); i++)
        if (params_has(p, foreign[i].key))
            params_fault(p, foreign[i].key, "%s", foreign[i].why);
}

void train_options_read(const struct worker_task *task, struct train_options *opt,
                        struct param_faults *faults)
{
    struct params p;

    *opt = (struct train_options){0};
    params_init(&p, task->params, faults);
    model_config_read(&p, params_has(&p, "match"), &opt->model);
    train_options_read_horizon(&p, opt);
    read_schedule(&p, opt);
    params_require(&p, "batch_tokens");
    opt->batch_tokens = params_int(&p, "batch_tokens", 1, TOKENS_MAX, opt->model.context);
    opt->micro_batch = params_int(&p, "micro_batch", 1, TOKENS_MAX, 0);
    read_mix(&p, task, opt);
    read_tokenizer(&p, task, opt);
    read_init(&p, task, opt);
    read_optimiser(&p, opt);
    read_router(&p, opt);
    read_validation(&p, task, opt);
    read_evaluation(&p, opt);
    match_read(&p, task, opt);
    refuse_foreign(&p);
    bool values_hold = faults->n == 0;
    params_finish(&p);
    if (values_hold)
        model_config_check(&p, &opt->model);
    if (faults->n == 0)
        derive(&p, opt);
    if (faults->n == 0 && task->try_steps > 0)
        cut_for_try(task, opt);
}
