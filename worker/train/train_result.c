/*
 * Every name in result.json comes from here: metrics in the order of train_result_metric_names(),
 * which
 * --describe prints and a result must match, then facts about size, speed and routers. Values that
 * do not exist in this run (a mark after an early stop, a target not reached, router facts of a
 * dense model) are null with a reason, never absent.
 */
#include "worker/train/train_result.h"

#include <math.h>

#include "base/files/file.h"
#include "base/json/json.h"
#include "base/xalloc.h"
#include "worker/model/store.h"
#include "worker/nn/cpu.h"
#include "worker/nn/product/product.h"
#include "worker/report/result.h"
#include "worker/train/budget.h"
#include "worker/train/checkpoint/earlier_run.h"
#include "worker/train/checkpoint/snapshot.h"

#define TRAIN_LOSS_TAIL 0.1 /* of the steps */
#define STOPPED         "stopped_at_target"

/* "val_loss@0.2", or of a source "val_loss:stories@0.2". */
static void mark_name(const char *metric, const char *source, double mark,
                      char name[METRIC_NAME_SIZE])
{
    char number[JSON_NUMBER_MAX];

    json_number_text(mark, number);
    (void)snprintf(name, METRIC_NAME_SIZE, "%s%s%s@%s", metric, source == NULL ? "" : ":",
                   source == NULL ? "" : source, number);
}

void train_result_source_name(const char *metric, const char *source, char name[METRIC_NAME_SIZE])
{
    (void)snprintf(name, METRIC_NAME_SIZE, "%s:%s", metric, source);
}

/* The names at one mark. */
static void add_mark(const struct train_options *opt, double mark,
                     void (*add)(void *ctx, const char *name), void *ctx)
{
    char name[METRIC_NAME_SIZE];

    for (size_t i = 0; i <= train_options_n_validated(opt); i++) {
        const char *source = i == 0 ? NULL : train_options_validated(opt, i - 1);
        mark_name("val_loss", source, mark, name);
        add(ctx, name);
        mark_name("val_bits_per_byte", source, mark, name);
        add(ctx, name);
    }
    if (opt->has_target) {
        mark_name("target_hit", NULL, mark, name);
        add(ctx, name);
    }
}

void train_result_metric_names(const struct train_options *opt,
                               void (*add)(void *ctx, const char *name), void *ctx)
{
    char name[METRIC_NAME_SIZE];

    add(ctx, "val_loss");
    add(ctx, "val_bits_per_byte");
    add(ctx, "train_loss");
    for (size_t i = 0; i < train_options_n_validated(opt); i++) {
        const char *source = train_options_validated(opt, i);
        train_result_source_name("val_loss", source, name);
        add(ctx, name);
        train_result_source_name("val_bits_per_byte", source, name);
        add(ctx, name);
    }
    add(ctx, "best_val_loss");
    add(ctx, "best_val_step");
    for (size_t i = 0; i < opt->n_marks; i++)
        add_mark(opt, opt->marks[i], add, ctx);
    if (opt->has_target)
        add(ctx, "target_step");
}

static void metric_name(const char *metric, const char *source, double mark,
                        char name[METRIC_NAME_SIZE])
{
    if (mark > 0.0)
        mark_name(metric, source, mark, name);
    else if (source != NULL)
        train_result_source_name(metric, source, name);
    else
        (void)snprintf(name, METRIC_NAME_SIZE, "%s", metric);
}

/* n < 0: the run ended before its mark. */
static void put_value(const char *metric, const char *source, double mark, const struct val_loss *v,
                      struct worker_result *r)
{
    char name[METRIC_NAME_SIZE];

    metric_name(metric, source, mark, name);
    if (v->n < 0)
        result_metric_null(r, name, STOPPED, NULL);
    else
        result_metric(r, name, v->loss, v->n, v->se);
}

/* Losses and bits per byte of an evaluation, under the names of its mark; 0: of the end. */
static void put_evaluation(const struct trainer *t, const struct train_evaluation *e, double mark,
                           struct worker_result *r)
{
    char name[METRIC_NAME_SIZE];
    double bits = 0.0, variance = 0.0;

    put_value("val_loss", NULL, mark, &e->whole, r);
    for (size_t i = 0; i < train_data_n_validated(t->data); i++) {
        const struct train_source *src = train_data_validated(t->data, i);
        const struct val_loss *part = &e->source[i];
        struct val_loss b = {.loss = evaluate_bits_per_byte(src, part->loss),
                             .se = evaluate_bits_per_byte(src, part->se),
                             .n = part->n};
        put_value("val_loss", src->name, mark, part, r);
        put_value("val_bits_per_byte", src->name, mark, &b, r);
        bits += src->weight * b.loss;
        variance += src->weight * b.se * (src->weight * b.se);
    }
    metric_name("val_bits_per_byte", NULL, mark, name);
    if (e->whole.n < 0)
        result_metric_null(r, name, STOPPED, NULL);
    else
        result_metric(r, name, bits, e->whole.n, sqrt(variance));
}

/* A target that was reached after the mark was not reached at it. */
static void put_hit(const struct trainer *t, double mark, struct worker_result *r)
{
    char name[METRIC_NAME_SIZE];
    int64_t step = horizon_fraction(t->opt->steps, mark);

    mark_name("target_hit", NULL, mark, name);
    result_metric(r, name, t->target_step >= 0 && t->target_step <= step ? 1.0 : 0.0, -1,
                  (double)NAN);
}

static void put_marks(const struct trainer *t, struct worker_result *r)
{
    char bound[32];

    result_metric(r, "best_val_loss", t->best.loss, t->best.n, t->best.se);
    result_metric(r, "best_val_step", (double)t->best_step, -1, (double)NAN);
    for (size_t i = 0; i < t->opt->n_marks; i++) {
        put_evaluation(t, &t->marks[i], t->opt->marks[i], r);
        if (t->opt->has_target)
            put_hit(t, t->opt->marks[i], r);
    }
    if (!t->opt->has_target)
        return;
    if (t->target_step >= 0) {
        result_metric(r, "target_step", (double)t->target_step, -1, (double)NAN);
        return;
    }
    (void)snprintf(bound, sizeof(bound), ">%lld", (long long)t->evaluated_step);
    result_metric_null(r, "target_step", "not_reached", bound);
}

/* The mean training loss over the last TRAIN_LOSS_TAIL of the steps. */
static double tail_loss(const struct trainer *t)
{
    int64_t n = horizon_fraction(t->step, TRAIN_LOSS_TAIL);
    double sum = 0.0;

    n = n < 1 ? 1 : n;
    for (int64_t i = t->step - n; i < t->step; i++)
        sum += (double)t->history[i].loss;
    return sum / (double)n;
}

static int compare_floats(const void *a, const void *b)
{
    const float *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

/* The median, because checkpoints and other work on the machine make some steps long. */
static double median_seconds(const struct trainer *t)
{
    size_t n = (size_t)t->step;
    float *s = xcalloc(n, sizeof(*s));

    for (size_t i = 0; i < n; i++)
        s[i] = t->history[i].seconds;
    qsort(s, n, sizeof(*s), compare_floats);
    double median = ((double)s[n / 2] + (double)s[(n - 1) / 2]) / 2.0;
    free(s);
    return median;
}

/* One layer's facts, or with layer -1 the means, under plain names. */
static void put_health(const struct health_facts *f, double same, int layer,
                       struct worker_result *r)
{
    const double values[HEALTH_NAMES_NR] = {f->load, f->occupancy, f->entropy, f->effective,
                                            f->dead, f->z,         same};
    char name[METRIC_NAME_SIZE];

    for (size_t i = 0; i < HEALTH_NAMES_NR; i++) {
        if (layer < 0)
            (void)snprintf(name, sizeof(name), "%s", HEALTH_NAMES[i]);
        else
            (void)snprintf(name, sizeof(name), "%s:%d", HEALTH_NAMES[i], layer);
        if (i == HEALTH_SAME && !isfinite(same))
            result_fact_null(r, name, "nothing_held_out");
        else
            result_fact(r, name, values[i]);
    }
}

/* Per-layer facts, named "router_load:3". */
static void put_layers(const struct trainer *t, int64_t from, struct worker_result *r)
{
    const struct model_config *cfg = &t->opt->model;

    for (int layer = cfg->dense_layers; layer < cfg->layers; layer++) {
        struct health_facts f;
        health_layer_facts(&t->health.window[layer], (size_t)cfg->experts, &f);
        put_health(&f, router_log_same(&t->router, from, t->step, layer), layer, r);
    }
}

static void put_no_health(const char *why, struct worker_result *r)
{
    for (size_t i = 0; i < HEALTH_NAMES_NR; i++)
        result_fact_null(r, HEALTH_NAMES[i], why);
}

/* The routers' facts over the last HORIZON_TAIL of the steps, means first. */
static void put_router(const struct trainer *t, struct worker_result *r)
{
    int64_t from = horizon_tail_begin(train_options_end(t->opt));
    struct health_facts f;
    bool known = health_facts(&t->health, &t->opt->model, &f);

    if (t->opt->model.experts == 0) {
        put_no_health("dense", r);
        result_fact_null(r, "router_kills", "dense");
        result_fact_null(r, "router_anneal", "dense");
        return;
    }
    if (known)
        put_health(&f, router_log_same(&t->router, from, t->step, -1), -1, r);
    else
        put_no_health("no_steps_in_window", r);
    result_fact(r, "router_kills", (double)t->health.kills);
    if (t->opt->capacity_factor > 0.0)
        result_fact(r, "router_dropped", health_dropped(&t->health, &t->opt->model));
    result_fact(r, "router_anneal",
                schedule_anneal(t->opt->balance_anneal, t->step - 1, t->opt->steps));
    if (known)
        put_layers(t, from, r);
}

static void put_fact(void *ctx, const char *name, double value)
{
    result_fact(ctx, name, value);
}

static void put_facts(const struct trainer *t, struct worker_result *r)
{
    struct data_budget budget;
    const struct model_config *cfg = &t->opt->model;
    double tokens = (double)t->step * (double)t->opt->batch_tokens;
    double optimiser = optimiser_flops(t->opt) / (double)t->opt->batch_tokens;

    result_fact(r, "params_total", (double)model_config_total(cfg));
    result_fact(r, "params_active", (double)model_config_active(cfg));
    result_fact(r, "active_ffn", (double)model_config_active_ffn(cfg));
    result_fact(r, "flops_per_token", model_config_flops_per_token(cfg) + optimiser);
    if (optimiser > 0.0)
        result_fact(r, OPTIMISER_FLOPS, optimiser);
    result_fact(r, "tokens", tokens);
    result_fact(r, "steps", (double)t->step);
    if (cfg->experts > 0)
        result_fact(r, "tokens_per_expert", tokens * cfg->top_k / cfg->experts);
    budget_of_data(t->data, tokens, &budget);
    budget_facts(&budget, t->opt, put_fact, r);
    if (t->opt->has_target)
        result_fact(r, TARGET_RESOLUTION, (double)t->opt->eval_every);
    result_fact(r, "step_seconds", median_seconds(t));
    result_fact(r, "tokens_per_second", (double)t->opt->batch_tokens / median_seconds(t));
    put_router(t, r);
    result_fact_text(r, "made_by", t->made_by);
}

static int name_model(const char *tokenizer, struct worker_result *r, struct err *err)
{
    const char *const names[] = {MODEL_FILE_BIN, MODEL_FILE_JSON, tokenizer};
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < ARRAY_LEN(names) && names[i] != NULL; i++) {
        char *path = path_join(MODEL_FOLDER, names[i]);
        rc = result_artifact(r, path, err);
        free(path);
    }
    return rc;
}

/* With the tokenizer, so that the model can be asked without the task's data; model.json is the
 * last to be written. */
static int save_model(const struct trainer *t, struct worker_result *r, struct err *err)
{
    struct store_info info = {
        .tokenizer_spec = xstrdup(t->opt->tokenizer),
        .tokenizer = tokenizer_digest(t->data->tokenizer),
        .step = t->step,
    };
    const char *tokenizer = NULL;

    int rc = dir_make_durable(MODEL_FOLDER, 0755, err);
    if (rc == 0 && (rc = tokenizer_save(t->data->tokenizer, MODEL_FOLDER, &tokenizer, err)) == 0 &&
        (rc = store_save(MODEL_FOLDER, &t->w, &info, err)) == 0)
        rc = name_model(tokenizer, r, err);
    store_info_release(&info);
    if (rc < 0 || t->opt->model.experts == 0)
        return rc;
    rc = router_log_write(&t->router, t->step, ROUTER_LOG_FILE, err);
    return rc == 0 ? result_artifact(r, ROUTER_LOG_FILE, err) : rc;
}

struct worker_environment train_environment(int threads)
{
    return (struct worker_environment){.threads = threads,
                                       .blas = product_text(),
                                       .arithmetic = product_contract(),
                                       .instructions = nn_cpu_text(nn_cpu())};
}

int train_result_write(const struct trainer *t, const struct train_evaluation *last,
                       const struct worker_task *task, double seconds, struct err *err)
{
    struct worker_result r;

    result_init(&r, task);
    put_evaluation(t, last, 0.0, &r);
    result_metric(&r, "train_loss", tail_loss(t), -1, (double)NAN);
    put_marks(t, &r);
    put_facts(t, &r);
    for (size_t i = 0; i < t->data->n_sources; i++)
        result_read(&r, t->data->sources[i].name, &t->data->sources[i].read);
    if (t->data->validation.name != NULL)
        result_read(&r, t->data->validation.name, &t->data->validation.read);
    if (t->opt->init != NULL)
        result_read(&r, t->opt->init, &t->data->init);
    if (t->opt->init_run != NULL)
        result_read(&r, t->opt->init_run, &t->data->init);
    if (!digest_is_zero(&t->data->tokenizer_read))
        result_read(&r, t->opt->tokenizer, &t->data->tokenizer_read);
    if (t->opt->whole_work > 0.0)
        result_try(&r, t->opt->tried_work, t->opt->whole_work, seconds);
    /* Artifacts must exist before the result that names them. */
    int rc = save_model(t, &r, err);
    if (rc == 0 && t->opt->left_out > 0 && t->step == train_options_end(t->opt))
        rc = earlier_run_artifacts(&r, err);
    if (rc == 0)
        rc = snapshot_artifacts(t, &r, err);
    /* Now that saving has had its memory: the peak is one of the facts. */
    const struct worker_environment env = train_environment(task->threads);
    result_fact_sheet(&r, &env);
    if (rc == 0)
        rc = result_write(&r, err);
    result_release(&r);
    return rc;
}
