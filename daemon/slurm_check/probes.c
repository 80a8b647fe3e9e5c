/* The probes: one for stages with GPUs and one for those without, since they may run on other
 * nodes, and one for each stage of which only sbatch itself knows whether a node fits. */
#include "daemon/slurm_check/asking.h"

#include <stdio.h>

#include "base/clock.h"
#include "base/json/json.h"
#include "daemon/slurm_check/probe.h"

/* Of a job that cannot begin now: sbatch has accepted it by then, and the reason is known. */
#define DOUBT_WAIT_MS 4000

static void put_probe(struct slurm_asking *c, size_t stage, const struct probe_result *r)
{
    static const char *const states[] = {
        [PROBE_ANSWERED] = "answered", [PROBE_WAITED] = "waiting", [PROBE_FAILED] = "failed"};
    cJSON *row = json_object();
    json_put_string(row, "stage", c->p->stages[stage].name);
    json_put_string(row, "state", states[r->state]);
    json_put_string(row, "host", r->host[0] != '\0' ? r->host : NULL);
    json_put_string(row, "version", r->version[0] != '\0' ? r->version : NULL);
    json_put_int(row, "waited_ms", r->waited_ms);
    asking_put_known(row, "seen_ms", r->seen_ms);
    if (r->skew_bound_ms >= 0) {
        json_put_int(row, "skew_ms", r->skew_ms);
        json_put_int(row, "skew_bound_ms", r->skew_bound_ms);
    } else {
        json_put_null(row, "skew_ms");
        json_put_null(row, "skew_bound_ms");
    }
    if (r->flock == PROBE_FLOCK_UNKNOWN) {
        json_put_null(row, "flock");
    } else {
        json_put_bool(row, "flock", r->flock == PROBE_FLOCK_SEEN);
    }
    json_put_string(row, "work", c->work);
    json_put_string(row, "why", r->why[0] != '\0' ? r->why : NULL);
    json_push(cJSON_GetObjectItemCaseSensitive(c->answer, "probes"), row);
}

static struct place fault_place(const struct slurm_asking *c, size_t stage,
                                const struct probe_result *r)
{
    const struct run_settings *run = &c->p->run;
    struct place at = {0};
    switch (r->fault) {
    case PROBE_FAULT_WORK: at = run->work_place; break;
    case PROBE_FAULT_SHIM: at = run->slurm.shim_place; break;
    case PROBE_FAULT_SETUP:
        if (run->slurm.n_setup > 0) { /* a site's own script may end with the same code */
            at = run->slurm.setup_at[r->setup_line > 0 ? r->setup_line - 1 : 0];
        }
        break;
    case PROBE_FAULT_OTHER: return asking_place_of_refusal(c, stage, r->why);
    }
    return asking_place(c, stage, at);
}

/* A warning: a cluster that is full, or whose nodes are away, says nothing about the program. */
static void say_waited(struct slurm_asking *c, size_t stage, const struct probe_result *r)
{
    const struct slurm_request request = asking_request(c, stage);
    const struct place at = asking_place(c, stage, (struct place){0});
    char away[200];
    char span[48];
    const size_t n = cluster_count_away(&c->cluster, c->partition, &request, away, sizeof(away));
    struct strbuf nodes = STRBUF_INIT;
    if (c->in_doubt[stage]) {
        strbuf_addf(&nodes, "no node that is up can run it now (%s", away);
        if (n > 1) {
            strbuf_addf(&nodes, ", and %zu more", n - 1);
        }
        strbuf_adds(&nodes, "); ");
    }
    if (r->waited_ms > 0) {
        strbuf_addf(&nodes, "the probe job waited %s in Slurm and was cancelled: ",
                    clock_span_text(r->waited_ms, span, sizeof(span)));
    }
    diag_add(c->diag, DIAG_WARNING, at.line, at.column,
             "run.%s: %s%s; whether nodes see %s is not known%s", c->p->stages[stage].name,
             nodes.buf, r->why, c->work,
             c->in_doubt[stage] || r->waited_ms == 0 ? "" : " (--slurm-wait TIME waits longer)");
    strbuf_release(&nodes);
}

static int probe_stage(struct slurm_asking *c, size_t stage, struct err *err)
{
    const struct slurm_request request = asking_request(c, stage);
    struct probe_result r;
    const int64_t wait_ms = c->how->wait_ms;
    const struct probe_spec spec = {
        .tools = &c->tools,
        .request = &request,
        .shim = c->shim,
        .setup = c->p->run.slurm.setup,
        .n_setup = c->p->run.slurm.n_setup,
        .work = c->work,
        .wait_ms = c->in_doubt[stage] && wait_ms > DOUBT_WAIT_MS ? DOUBT_WAIT_MS : wait_ms};
    int rc = probe_run(&spec, &r, err);
    if (rc != 0) {
        return rc;
    }
    if (r.state == PROBE_FAILED) {
        const struct place at = fault_place(c, stage, &r);
        diag_add(c->diag, DIAG_ERROR, at.line, at.column, "run.%s: %s", c->p->stages[stage].name,
                 r.why);
    } else if (r.state == PROBE_WAITED) {
        say_waited(c, stage, &r);
    }
    put_probe(c, stage, &r);
    return 0;
}

static bool asks_the_same(const struct slurm_asking *c, size_t a, size_t b)
{
    const struct slurm_request x = asking_request(c, a);
    const struct slurm_request y = asking_request(c, b);
    return x.threads == y.threads && x.memory_bytes == y.memory_bytes && x.gpus == y.gpus &&
           x.time_ms == y.time_ms;
}

/* Whether a probe before this stage's has shown what this one would. */
static bool is_shown(const struct slurm_asking *c, size_t stage)
{
    bool shown = false;
    for (size_t s = 0; s < stage && !shown; s++) {
        const bool same_kind = (c->p->stages[s].run.gpu_thousandths > 0) ==
                               (c->p->stages[stage].run.gpu_thousandths > 0);
        shown = asking_is_of_slurm(c->p, s) &&
                (c->in_doubt[stage] ? asks_the_same(c, s, stage) : same_kind);
    }
    return shown;
}

int probes_run(struct slurm_asking *c, struct err *err)
{
    int rc = 0;
    for (size_t s = 0; rc == 0 && s < c->p->n_stages; s++) {
        if (asking_is_of_slurm(c->p, s) && !is_shown(c, s)) {
            rc = probe_stage(c, s, err);
        }
    }
    return rc;
}
