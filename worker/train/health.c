/*
 * Sums of the routers' statistics, per layer: of the current step, of the window at the end of the
 * run that the facts are about, and of assignments since the last check for dead experts. The last
 * two are part of the checkpoint (health_put(), health_get()), so a resumed run reports the same
 * facts.
 */
#include "worker/train/health.h"

#include <math.h>

#include "base/json/json.h"
#include "base/math/elementary.h"
#include "base/xalloc.h"

const char *const HEALTH_NAMES[HEALTH_NAMES_NR] = {
    "router_load", "router_occupancy", "router_entropy", "router_effective",
    "router_dead", "router_z",         "router_same"};

static struct router_stats *stats_create(size_t layers, size_t experts)
{
    struct router_stats *stats = xcalloc(layers, sizeof(*stats));

    for (size_t i = 0; i < layers; i++) {
        stats[i].counts = xcalloc(experts, sizeof(*stats[i].counts));
        stats[i].p_sum = xcalloc(experts, sizeof(*stats[i].p_sum));
    }
    return stats;
}

static void stats_free(struct router_stats *stats, size_t layers)
{
    for (size_t i = 0; stats != NULL && i < layers; i++) {
        free(stats[i].counts);
        free(stats[i].p_sum);
    }
    free(stats);
}

void health_init(struct health *h, const struct model_config *cfg)
{
    *h = (struct health){.layers = (size_t)cfg->layers, .experts = (size_t)cfg->experts};
    if (h->experts == 0)
        return;
    h->step = stats_create(h->layers, h->experts);
    h->window = stats_create(h->layers, h->experts);
    h->since_reset = xcalloc(h->layers * h->experts, sizeof(*h->since_reset));
}

void health_release(struct health *h)
{
    stats_free(h->step, h->layers);
    stats_free(h->window, h->layers);
    free(h->since_reset);
    *h = (struct health){0};
}

static void stats_clear(struct router_stats *s, size_t experts)
{
    memset(s->counts, 0, experts * sizeof(*s->counts));
    memset(s->p_sum, 0, experts * sizeof(*s->p_sum));
    s->z_sum = 0.0;
    s->tokens = 0;
    s->dropped = 0;
}

void health_begin_step(struct health *h)
{
    for (size_t i = 0; i < h->layers && h->experts > 0; i++)
        stats_clear(&h->step[i], h->experts);
}

/* Loss-free balancing: the bias of an expert under the mean load rises by the rate, over it falls.
 */
static void move_biases(const struct router_stats *s, real *bias, size_t experts, double rate)
{
    uint64_t total = 0;

    for (size_t e = 0; e < experts; e++)
        total += s->counts[e];
    for (size_t e = 0; e < experts; e++) {
        if (s->counts[e] * experts < total)
            bias[e] += (real)rate;
        else if (s->counts[e] * experts > total)
            bias[e] -= (real)rate;
    }
}

/* Experts under DEAD_SHARE of a fair share since the last check get fresh weights and empty
 * moments. */
static void reset_dead(struct health *h, struct weights *w, struct optimiser *optimiser,
                       const struct train_options *opt, size_t layer)
{
    uint64_t *counts = h->since_reset + layer * h->experts, total = 0;

    for (size_t e = 0; e < h->experts; e++)
        total += counts[e];
    for (size_t e = 0; e < h->experts; e++) {
        if ((double)counts[e] * (double)h->experts >= DEAD_SHARE * (double)total)
            continue;
        h->kills++;
        weights_reset_expert(w, (int)layer, (int)e, opt->seed, opt->init_std, (uint32_t)h->kills);
        optimiser_forget_expert(optimiser, w, (int)layer, e);
    }
    memset(counts, 0, h->experts * sizeof(*counts));
}

/* Adds a step's sums to those of the window. */
static void add_window(struct router_stats *sum, const struct router_stats *s, size_t experts)
{
    for (size_t e = 0; e < experts; e++) {
        sum->counts[e] += s->counts[e];
        sum->p_sum[e] += s->p_sum[e];
    }
    sum->z_sum += s->z_sum;
    sum->tokens += s->tokens;
    sum->dropped += s->dropped;
}

void health_end_step(struct health *h, struct weights *w, struct optimiser *optimiser,
                     const struct train_options *opt, int64_t step)
{
    bool look = opt->reset_dead_experts > 0 && (step + 1) % opt->reset_dead_experts == 0;
    bool in_window = step >= horizon_tail_begin(train_options_end(opt));

    for (size_t i = (size_t)w->cfg.dense_layers; i < h->layers && h->experts > 0; i++) {
        if (opt->bias_update_rate > 0.0)
            move_biases(&h->step[i], w->route_bias + i * h->experts, h->experts,
                        opt->bias_update_rate);
        for (size_t e = 0; e < h->experts; e++)
            h->since_reset[i * h->experts + e] += h->step[i].counts[e];
        if (look)
            reset_dead(h, w, optimiser, opt, i);
        if (in_window)
            add_window(&h->window[i], &h->step[i], h->experts);
    }
}

void health_layer_facts(const struct router_stats *s, size_t experts, struct health_facts *out)
{
    double n = (double)experts, total = 0.0, entropy = 0.0;

    *out = (struct health_facts){.occupancy = (double)INFINITY};
    for (size_t e = 0; e < experts; e++)
        total += (double)s->counts[e];
    for (size_t e = 0; e < experts; e++) {
        double fair = (double)s->counts[e] / total * n;
        double p = s->p_sum[e] / (double)s->tokens;
        out->load = fmax(out->load, fair);
        out->occupancy = fmin(out->occupancy, fair);
        out->dead += fair < DEAD_SHARE ? 1.0 : 0.0;
        entropy -= p > 0.0 ? p * elementary_log(p) : 0.0;
    }
    out->entropy = experts > 1 ? entropy / elementary_log(n) : 1.0;
    out->effective = elementary_exp(entropy);
    out->z = s->z_sum / (double)s->tokens;
}

static void add_mean(struct health_facts *mean, const struct health_facts *f, double n_layers)
{
    mean->load += f->load / n_layers;
    mean->occupancy += f->occupancy / n_layers;
    mean->entropy += f->entropy / n_layers;
    mean->effective += f->effective / n_layers;
    mean->dead += f->dead / n_layers;
    mean->z += f->z / n_layers;
}

/* Layers weigh the same, whatever their load. */
bool health_facts(const struct health *h, const struct model_config *cfg, struct health_facts *out)
{
    double n_layers = model_config_moe_layers(cfg);

    *out = (struct health_facts){0};
    if (h->experts == 0 || h->window[cfg->dense_layers].tokens == 0)
        return false;
    for (size_t i = (size_t)cfg->dense_layers; i < h->layers; i++) {
        struct health_facts f;
        health_layer_facts(&h->window[i], h->experts, &f);
        add_mean(out, &f, n_layers);
    }
    return true;
}

void health_clear_window(struct health *h)
{
    for (size_t i = 0; i < h->layers && h->experts > 0; i++)
        stats_clear(&h->window[i], h->experts);
}

double health_dropped(const struct health *h, const struct model_config *cfg)
{
    double dropped = 0.0, assigned = 0.0;

    for (size_t i = (size_t)cfg->dense_layers; i < h->layers && h->experts > 0; i++) {
        dropped += (double)h->window[i].dropped;
        assigned += (double)h->window[i].tokens * cfg->top_k;
    }
    return dropped / assigned;
}

void health_put(const struct health *h, cJSON *obj)
{
    cJSON *counts = json_array(), *p_sum = json_array(), *z = json_array(), *since = json_array();

    for (size_t i = 0; i < h->layers && h->experts > 0; i++) {
        for (size_t e = 0; e < h->experts; e++) {
            json_push_number(counts, (double)h->window[i].counts[e]);
            json_push_number(p_sum, h->window[i].p_sum[e]);
            json_push_number(since, (double)h->since_reset[i * h->experts + e]);
        }
        json_push_number(z, h->window[i].z_sum);
        json_push_number(z, (double)h->window[i].tokens);
        json_push_number(z, (double)h->window[i].dropped);
    }
    json_put(obj, "counts", counts);
    json_put(obj, "p_sum", p_sum);
    json_put(obj, "z_tokens", z);
    json_put(obj, "since_reset", since);
    json_put_int(obj, "kills", h->kills);
}

/* The next number of an array of counts and sums: none is negative, none beyond a whole double. */
static double next(const cJSON **at, bool *ok)
{
    if (*at == NULL || !cJSON_IsNumber(*at) || (*at)->valuedouble < 0.0 ||
        (*at)->valuedouble > (double)JSON_INT_MAX) {
        *ok = false;
        return 0.0;
    }
    double v = (*at)->valuedouble;
    *at = (*at)->next;
    return v;
}

int health_get(struct health *h, const cJSON *obj, struct err *err)
{
    static const char *const keys[] = {"counts", "p_sum", "z_tokens", "since_reset"};
    const cJSON *at[ARRAY_LEN(keys)];
    bool ok = true;

    for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
        const cJSON *array = NULL;
        int rc = json_get_array(obj, keys[i], &array, err);
        if (rc < 0)
            return rc;
        at[i] = array->child;
    }
    for (size_t i = 0; i < h->layers && h->experts > 0; i++) {
        for (size_t e = 0; e < h->experts; e++) {
            h->window[i].counts[e] = (uint64_t)next(&at[0], &ok);
            h->window[i].p_sum[e] = next(&at[1], &ok);
            h->since_reset[i * h->experts + e] = (uint64_t)next(&at[3], &ok);
        }
        h->window[i].z_sum = next(&at[2], &ok);
        h->window[i].tokens = (uint64_t)next(&at[2], &ok);
        h->window[i].dropped = (uint64_t)next(&at[2], &ok);
    }
    for (size_t i = 0; i < ARRAY_LEN(keys); i++)
        ok = ok && at[i] == NULL; /* exactly as many as were asked for */
    if (!ok)
        return err_set(err, ERR_CORRUPT, "router health is of another model");
    return json_get_int(obj, "kills", 0, JSON_INT_MAX, &h->kills, err);
}
