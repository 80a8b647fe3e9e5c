/*
 * What a finished run leaves: result.json with metrics, facts and digests of everything read, the
 * harness's files as artifacts, and a line about the cost on standard error. Metrics without a
 * value carry the reason. The digest of a model that was an input is recorded under the stage that
 * made it.
 */
#include "base/layout/layout.h"
#include "base/xalloc.h"
#include "worker/eval/cli/evaluation.h"
#include "worker/eval/harness/harness_files.h"
#include "worker/eval/score/core_summary.h"
#include "worker/report/stop.h"

/* A value, or null with the reason. */
static void put_metric(struct worker_result *r, const struct eval_session *e,
                       const struct summary_entry *s)
{
    if (e->null_why != NULL)
        result_metric_null(r, s->name, e->null_why, NULL);
    else if (s->why != NULL || s->score.n == 0)
        result_metric_null(r, s->name, s->why != NULL ? s->why : "no_items", NULL);
    else
        result_metric(r, s->name, s->score.value, (int64_t)s->score.n, s->score.se);
}

/* Which members of a suite the result is of. */
static void put_members(struct worker_result *r, struct eval_session *e)
{
    const struct task_spec *suite = e->options.spec;
    struct strbuf absent = STRBUF_INIT;
    if (suite->n_members == 0)
        return;
    const size_t n = core_summary_absent(suite, &e->bench.set, &absent);
    result_fact(r, "core_tasks_present", (double)n);
    if (absent.len > 0) {
        result_fact_text(r, "core_tasks_absent", absent.buf);
        events_note(&e->events, "%zu of %zu tasks of %s are here; absent: %s", n, suite->n_members,
                    suite->name, absent.buf);
    }
    strbuf_release(&absent);
}

/* Counts and costs; "asked" and the costs are of this attempt alone. */
static void put_facts(struct worker_result *r, const struct eval_session *e)
{
    result_fact(r, "items", (double)e->bench.n_selected);
    result_fact(r, "faulty_items", (double)e->n_faults);
    result_fact(r, "cut_items", (double)e->n_cut_items);
    result_fact(r, "cut_tokens", e->n_cut);
    result_fact(r, "asked_items", (double)(e->n_done - e->n_taken));
    result_fact(r, "requests", e->cost.requests);
    result_fact(r, "tokens", e->cost.tokens);
    result_fact(r, "distinct_tokens", e->cost.distinct_tokens);
    result_fact(r, "seconds", e->seconds);
    result_fact(r, "cpu_seconds", e->cpu_seconds);
    const struct worker_environment env = model_environment(SCORE_THREADS);
    result_fact_sheet(r, &env);
}

int eval_write_result(struct eval_session *e, struct err *err)
{
    const struct summary_rules rules = {.pools_leaves = e->options.rules->pools_leaves,
                                        .bootstrap_iters =
                                            e->null_why == NULL ? (size_t)e->options.bootstrap : 0,
                                        .baselines = e->options.baselines,
                                        .asked = stop_asked};
    struct worker_result r;
    int rc = summary_finish(&e->summary, &rules, err);
    if (rc != 0)
        return rc;
    result_init(&r, e->task);
    for (size_t i = 0; i < e->summary.n; i++)
        put_metric(&r, e, &e->summary.entries[i]);
    put_facts(&r, e);
    put_members(&r, e);
    for (size_t i = 0; i < e->n_reads; i++)
        if (e->reads[i].data->name != NULL)
            result_read(&r, e->reads[i].data->name, &e->reads[i].digest);
    if (e->options.model_data.name == NULL && model_has_file(e->model)) {
        const struct digest model = model_digest(e->model);
        result_input(&r, e->options.model, &model);
    }
    if (e->whole_work > 0.0)
        result_try(&r, e->tried_work, e->whole_work, e->seconds);
    result_items(&r, LAYOUT_ITEMS);
    /* Artifacts before the result that names them. */
    rc = result_artifact(&r, LAYOUT_ITEMS, err);
    if (rc == 0 && (rc = harness_run_write(e, &r, err)) == 0)
        rc = result_write(&r, err);
    result_release(&r);
    return rc;
}

void eval_say_cost(const struct eval_session *e)
{
    const struct score_cost *c = &e->cost;
    if (c->requests == 0.0)
        return;
    fprintf(stderr,
            "prereg-eval: %zu items asked in %.1f s (%.1f s of processor time): %.0f requests, "
            "%.0f tokens, of which %.0f distinct (%.2f to 1)\n",
            e->n_done - e->n_taken, e->seconds, e->cpu_seconds, c->requests, c->tokens,
            c->distinct_tokens, c->tokens / c->distinct_tokens);
}
