/*
 * Samples are rows of floats in one array: per mixture layer the experts' shares, then entropy, z
 * and `same`. Load, occupancy and dead experts are not stored; read_layer() derives them from the
 * shares. The stability `same` takes two extra forward passes over the probe tokens around a
 * sampled step, which is why only ROUTER_SAMPLES steps are sampled.
 */
#include "worker/train/router_log.h"

#include <math.h>

#include "base/files/file.h"
#include "base/math/elementary.h"
#include "base/xalloc.h"
#include "worker/model/run.h"

#define NO_PROBE                                                                                   \
    (-1.0F) /* `same` where nothing is held out: checkpoints hold finite numbers only */

/* Behind the shares of the experts. */
enum { AT_ENTROPY, AT_Z, AT_SAME, AT_NR };

static size_t per_layer(const struct router_log *log)
{
    return log->experts + AT_NR;
}

static int64_t every_of(const struct train_options *opt)
{
    return opt->steps / ROUTER_SAMPLES + 1;
}

static size_t samples_until(int64_t every, int64_t steps, int64_t step)
{
    return (size_t)(step / every) + (step == steps && steps % every != 0 ? 1 : 0);
}

/* The sample of a step that is due. */
static float *sample_at(const struct router_log *log, int64_t step)
{
    size_t index = samples_until(log->every, log->steps, step) - 1;

    return log->values + index * log->layers * per_layer(log);
}

/* Sequences from the start of every part of the validation in turn, as long as the shortest part
 * allows. */
static void choose_probe(struct router_log *log, const struct train_options *opt,
                         const struct train_data *data)
{
    size_t length = (size_t)opt->model.context;
    const size_t n_parts = train_data_n_validated(data);

    length = length < ROUTER_PROBE_TOKENS ? length : ROUTER_PROBE_TOKENS;
    for (size_t i = 0; i < n_parts; i++) {
        size_t n = train_data_validated(data, i)->val.n;
        length = n < length ? n : length;
    }
    if (n_parts == 0 || length == 0)
        return;
    size_t n = ROUTER_PROBE_TOKENS / length;
    n = n < (size_t)opt->micro_batch ? n : (size_t)opt->micro_batch;
    log->tokens = xcalloc(n * length, sizeof(*log->tokens));
    for (size_t i = 0; i < n; i++) {
        const struct token_stream *val = &train_data_validated(data, i % n_parts)->val;
        size_t start = i / n_parts * length % (val->n - length + 1);
        memcpy(log->tokens + i * length, val->ids + start, length * sizeof(*log->tokens));
    }
    log->probe_batch = n;
    log->probe_length = length;
    log->before = xcalloc(log->layers * n * length, sizeof(*log->before));
    log->after = xcalloc(log->layers * n * length, sizeof(*log->after));
}

void router_log_init(struct router_log *log, const struct train_options *opt,
                     const struct train_data *data)
{
    *log = (struct router_log){
        .layers = opt->model.experts > 0 ? (size_t)model_config_moe_layers(&opt->model) : 0,
        .first_layer = opt->model.dense_layers,
        .experts = (size_t)opt->model.experts,
        .steps = opt->steps,
        .every = every_of(opt),
    };
    if (log->layers == 0)
        return;
    log->values = xcalloc(router_log_length(log, opt->steps), sizeof(*log->values));
    choose_probe(log, opt, data);
}

void router_log_release(struct router_log *log)
{
    free(log->values);
    free(log->tokens);
    free(log->before);
    free(log->after);
    *log = (struct router_log){0};
}

bool router_log_is_due(const struct router_log *log, int64_t step)
{
    return log->layers > 0 && (step % log->every == 0 || step == log->steps);
}

size_t router_log_length(const struct router_log *log, int64_t step)
{
    return log->layers == 0
               ? 0
               : samples_until(log->every, log->steps, step) * log->layers * per_layer(log);
}

double router_log_numbers(const struct train_options *opt)
{
    struct router_log log = {
        .layers = opt->model.experts > 0 ? (size_t)model_config_moe_layers(&opt->model) : 0,
        .experts = (size_t)opt->model.experts,
        .steps = opt->steps,
        .every = every_of(opt),
    };

    return (double)router_log_length(&log, opt->steps);
}

/* The first choice of every probe token in every mixture layer. */
static void probe(const struct router_log *log, struct run *run, const struct weights *w,
                  uint32_t *first)
{
    size_t n = log->probe_batch * log->probe_length;
    struct run_batch batch = {
        .tokens = log->tokens, .batch = log->probe_batch, .length = log->probe_length};

    if (n == 0)
        return;
    run_forward(run, w, &batch, NULL);
    for (size_t i = 0; i < log->layers; i++)
        run_first_choices(run, log->first_layer + (int)i, n, first + i * n);
}

void router_log_before(struct router_log *log, struct run *run, const struct weights *w)
{
    probe(log, run, w, log->before);
}

/* The share of probe tokens whose first choice in this layer did not change. */
static float same_share(const struct router_log *log, size_t layer)
{
    size_t n = log->probe_batch * log->probe_length, same = 0;

    for (size_t i = layer * n; i < (layer + 1) * n; i++)
        same += log->before[i] == log->after[i];
    return n == 0 ? NO_PROBE : (float)((double)same / (double)n);
}

void router_log_after(struct router_log *log, struct run *run, const struct weights *w,
                      const struct router_stats *stats, int64_t step)
{
    float *at = sample_at(log, step);

    probe(log, run, w, log->after);
    for (size_t i = 0; i < log->layers; i++, at += per_layer(log)) {
        const struct router_stats *s = &stats[log->first_layer + (int)i];
        struct health_facts f = {0};
        double total = 0.0;
        health_layer_facts(s, log->experts, &f);
        for (size_t e = 0; e < log->experts; e++)
            total += (double)s->counts[e];
        for (size_t e = 0; e < log->experts; e++)
            at[e] = (float)((double)s->counts[e] / total);
        at[log->experts + AT_ENTROPY] = (float)f.entropy;
        at[log->experts + AT_Z] = (float)f.z;
        at[log->experts + AT_SAME] = same_share(log, i);
    }
}

/* A sample's quantities of one layer, derived from the shares and the entropy. */
struct router_sample {
    double values[HEALTH_NAMES_NR];
};

static struct router_sample read_layer(const struct router_log *log, const float *at)
{
    struct router_sample r = {{0.0}};
    double n = (double)log->experts, entropy = (double)at[log->experts + AT_ENTROPY];

    r.values[HEALTH_OCCUPANCY] = (double)INFINITY;
    for (size_t e = 0; e < log->experts; e++) {
        double fair = (double)at[e] * n;
        r.values[HEALTH_LOAD] = fmax(r.values[HEALTH_LOAD], fair);
        r.values[HEALTH_OCCUPANCY] = fmin(r.values[HEALTH_OCCUPANCY], fair);
        r.values[HEALTH_DEAD] += fair < DEAD_SHARE ? 1.0 : 0.0;
    }
    r.values[HEALTH_ENTROPY] = entropy;
    r.values[HEALTH_EFFECTIVE] = elementary_pow(n, entropy);
    r.values[HEALTH_Z] = (double)at[log->experts + AT_Z];
    r.values[HEALTH_SAME] = (double)at[log->experts + AT_SAME];
    return r;
}

static void say_layer(const struct router_sample *r, int64_t step, int layer, struct events *ev)
{
    char name[64];

    for (size_t i = 0; i < HEALTH_NAMES_NR; i++) {
        if (i == HEALTH_SAME && r->values[i] < 0.0)
            continue;
        if (layer < 0)
            (void)snprintf(name, sizeof(name), "%s", HEALTH_NAMES[i]);
        else
            (void)snprintf(name, sizeof(name), "%s:%d", HEALTH_NAMES[i], layer);
        events_point(ev, step, name, r->values[i]);
    }
}

void router_log_say(const struct router_log *log, int64_t step, struct events *ev)
{
    const float *at = sample_at(log, step);
    struct router_sample mean = {{0.0}};

    for (size_t i = 0; i < log->layers; i++) {
        struct router_sample r = read_layer(log, at + i * per_layer(log));
        for (size_t k = 0; k < HEALTH_NAMES_NR; k++)
            mean.values[k] += r.values[k] / (double)log->layers;
    }
    say_layer(&mean, step, -1, ev);
    for (size_t i = 0; i < log->layers && log->layers > 1; i++) {
        struct router_sample r = read_layer(log, at + i * per_layer(log));
        say_layer(&r, step, log->first_layer + (int)i, ev);
    }
}

/* One line of router.csv; an unknown `same` is an empty cell. */
static void add_line(const struct router_log *log, struct strbuf *text, int64_t step, size_t layer)
{
    const float *at = sample_at(log, step) + layer * per_layer(log);
    struct router_sample r = read_layer(log, at);

    strbuf_addf(text, "%lld,%d", (long long)step, log->first_layer + (int)layer);
    for (size_t k = 0; k < HEALTH_NAMES_NR; k++) {
        if (k == HEALTH_SAME && r.values[k] < 0.0)
            strbuf_adds(text, ",");
        else
            strbuf_addf(text, ",%.7g", r.values[k]);
    }
    for (size_t e = 0; e < log->experts; e++)
        strbuf_addf(text, ",%.7g", (double)at[e]);
    strbuf_addc(text, '\n');
}

int router_log_write(const struct router_log *log, int64_t step, const char *path, struct err *err)
{
    struct strbuf text = STRBUF_INIT;

    strbuf_adds(&text, "step,layer");
    for (size_t k = 0; k < HEALTH_NAMES_NR; k++)
        strbuf_addf(&text, ",%s", HEALTH_NAMES[k]);
    for (size_t e = 0; e < log->experts; e++)
        strbuf_addf(&text, ",share_%zu", e);
    strbuf_addc(&text, '\n');
    for (int64_t s = 1; s <= step; s++)
        for (size_t i = 0; i < log->layers && router_log_is_due(log, s); i++)
            add_line(log, &text, s, i);
    int rc = file_write_atomic(path, text.buf, text.len, 0644, err);
    strbuf_release(&text);
    return rc;
}

double router_log_same(const struct router_log *log, int64_t from, int64_t step, int layer)
{
    double sum = 0.0, n = 0.0;

    for (int64_t s = from + 1; s <= step; s++) {
        for (size_t i = 0; i < log->layers && router_log_is_due(log, s); i++) {
            float same = sample_at(log, s)[i * per_layer(log) + log->experts + AT_SAME];
            if (same < 0.0F || (layer >= 0 && layer != log->first_layer + (int)i))
                continue;
            sum += (double)same;
            n += 1.0;
        }
    }
    return n > 0.0 ? sum / n : (double)NAN;
}
