/*
 * match = { to, on } asks for the feed-forward width at which this level has as many parameters as
 * another one. Under --describe the daemon passes the other levels as "peers", the width is solved
 * here, and the lock keeps the answer as a parameter; a running task therefore finds the width set
 * and solves nothing.
 */
#include <math.h>

#include "base/json/json.h"
#include "worker/train/options.h"

#define WIDTH_STEP 8

enum match_on { MATCH_ACTIVE, MATCH_TOTAL };
static const char *const MATCH_ON[] = {"active", "total"};

static int64_t count(const struct model_config *cfg, enum match_on on)
{
    return on == MATCH_ACTIVE ? model_config_active(cfg) : model_config_total(cfg);
}

/* The width that is solved for: expert_ffn of a mixture, else ffn. */
static int *free_width(struct model_config *cfg)
{
    return cfg->experts > 0 ? &cfg->expert_ffn : &cfg->ffn;
}

/* The level's parameters, wherever the factors of "peers" hold a level of that name; NULL (with a
 * fault) else. */
static const cJSON *find_peer(struct params *p, const struct worker_task *task, const char *level)
{
    const cJSON *factor, *found = NULL;

    cJSON_ArrayForEach(factor, task->peers)
    {
        const cJSON *peer = cJSON_IsObject(factor) ? json_member(factor, level) : NULL;
        if (peer != NULL && found != NULL) {
            params_fault(p, "match", "level \"%.60s\" exists in two factors", level);
            return NULL;
        }
        if (peer != NULL)
            found = peer;
    }
    if (found == NULL)
        params_fault(p, "match", "no other level \"%.60s\" to match", level);
    return found;
}

/* The count is linear in the width, so the nearest multiple of WIDTH_STEP follows from two counts.
 */
static void solve(struct train_options *opt, enum match_on on, int64_t want)
{
    int *width = free_width(&opt->model);

    *width = WIDTH_STEP;
    int64_t first = count(&opt->model, on);
    *width = 2 * WIDTH_STEP;
    int64_t slope = count(&opt->model, on) - first;
    double units = 1.0 + (double)(want - first) / (double)slope;
    *width = WIDTH_STEP * (int)fmax(1.0, fmin(round(units), 1e6));
    opt->solved = true;
    opt->solved_ffn = *width;
    opt->match_ratio = (double)count(&opt->model, on) / (double)want;
}

void match_read(struct params *p, const struct worker_task *task, struct train_options *opt)
{
    struct params m, peer_params;
    struct param_faults peer_faults = {0};
    struct model_config peer;

    if (!params_has(p, "match"))
        return;
    params_init_table(&m, p, "match");
    params_require(&m, "to");
    params_require(&m, "on");
    const char *to = params_string(&m, "to", "");
    enum match_on on = (enum match_on)params_choice(&m, "on", MATCH_ON, 2, MATCH_ACTIVE);
    params_finish(&m);
    if (*free_width(&opt->model) > 0 || p->faults->n > 0)
        return; /* solved by the lock already, or not solvable yet */
    const cJSON *level = find_peer(p, task, to);
    if (level == NULL)
        return;
    params_init(&peer_params, level, &peer_faults);
    model_config_read(&peer_params, false, &peer);
    model_config_check(&peer_params, &peer);
    if (peer_faults.n > 0)
        params_fault(p, "match", "\"%.60s\" cannot be counted: %s: %s", to,
                     peer_faults.items[0].key, peer_faults.items[0].why);
    else
        solve(opt, on, count(&peer, on));
    param_faults_release(&peer_faults);
}
