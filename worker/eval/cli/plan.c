/*
 * Runs the whole evaluation against counters (count.h), so batches, prompts and shared prefixes are
 * the real ones. Rates measured on the model turn the counts into seconds, by the function that
 * --describe uses. Making the requests is part of a run as well and is timed.
 *
 * What cutting costs is found by building every request twice, once for the model's context and
 * once for an unlimited one.
 */
#include "worker/eval/cli/plan.h"

#include <sys/resource.h>

#include "base/clock.h"
#include "base/files/file.h"
#include "base/json/json.h"
#include "base/terminal.h"
#include "base/xalloc.h"
#include "worker/eval/cli/count.h"
#include "worker/eval/cli/estimate.h"
#include "worker/eval/cli/evaluation.h"

/* A run whose requests are counted and never computed. */
struct plan {
    struct eval_session e;
    struct score_rates rates;
    struct request_count count;
    double lost; /* tokens that are computed again because the cut at the left moved them */
};

/* How many tokens two requests begin with alike. */
static size_t common_tokens(const struct request *a, const struct request *b)
{
    size_t n = 0;
    while (n < a->tokens.n && n < b->tokens.n && a->tokens.ids[n] == b->tokens.ids[n])
        n++;
    return n;
}

/* The tokens of the i-th request that none before it in the list begins with. */
static size_t new_tokens(const struct request_list *list, size_t i)
{
    size_t most = 0;
    for (size_t k = 0; k < i; k++) {
        const size_t n = common_tokens(&list->items[k], &list->items[i]);
        most = n > most ? n : most;
    }
    return list->items[i].tokens.n - most;
}

/* What the requests of an item, which begin at `from`, add to those of the item before, as they are
 * asked (cut) and as they would be of a model that takes any length (whole). */
static double lost_tokens(const struct request_list *cut, const struct request_list *whole,
                          size_t from)
{
    double lost = 0.0;
    for (size_t i = from; i < cut->n && i < whole->n; i++) {
        const size_t now = new_tokens(cut, i);
        const size_t then = new_tokens(whole, i);
        lost += now > then ? (double)(now - then) : 0.0;
    }
    return lost;
}

/* Takes the first n requests back. */
static void drop_first(struct request_list *list, size_t n)
{
    for (size_t i = n; i < list->n; i++) {
        const struct request kept = list->items[i];
        list->items[i] = list->items[i - n];
        list->items[i - n] = kept;
    }
    list->n -= n;
}

/* Adds up p->lost over the items, each compared with the one before. */
static int count_lost(struct plan *p, struct err *err)
{
    const struct benchmark *b = &p->e.bench;
    struct scorer_setup setup = p->e.scorer.setup;
    struct request_list cut = {0};
    struct request_list whole = {0};
    struct scorer scorer;
    char fault[FAULT_MAX];
    setup.rules.max_length = SIZE_MAX / 2;
    int rc = scorer_init(&scorer, &setup, err);
    for (size_t i = 0; rc == 0 && i < b->n_selected; i++) {
        const size_t before = cut.n;
        rc = scorer_build(&p->e.scorer, b->selected[i], &cut, fault, err);
        if (rc == 0 && fault[0] == '\0')
            rc = scorer_build(&scorer, b->selected[i], &whole, fault, err);
        const bool alike = rc == 0 && fault[0] == '\0' && cut.n == whole.n;
        p->lost += alike && i > 0 ? lost_tokens(&cut, &whole, before) : 0.0;
        drop_first(&cut, alike ? before : cut.n);
        drop_first(&whole, alike ? before : whole.n);
    }
    request_list_release(&cut);
    request_list_release(&whole);
    scorer_release(&scorer);
    return rc;
}

static double peak_bytes(void)
{
    struct rusage usage;
    return getrusage(RUSAGE_SELF, &usage) == 0 ? (double)usage.ru_maxrss * 1024.0 : 0.0;
}

/* The report on standard output. */
static void print_plan(const struct plan *p, FILE *out)
{
    const struct score_cost *c = &p->count.cost;
    const double seconds =
        estimate_of_counts(c, &p->rates, model_shape(p->e.model)) + p->count.seconds;
    char span[64];
    terminal_printf(out, "task             %s\n", p->e.options.spec->name);
    fprintf(out, "items            %zu", p->e.bench.n_selected);
    fprintf(out, p->count.n_faults == 0 ? "\n" : ", of which %zu cannot be asked\n",
            p->count.n_faults);
    fprintf(out, "requests         %.0f\n", c->requests);
    fprintf(out, "tokens           %.0f\n", c->tokens);
    fprintf(out, "distinct tokens  %.0f (%.2f to 1)\n", c->distinct_tokens,
            c->distinct_tokens > 0.0 ? c->tokens / c->distinct_tokens : 1.0);
    fprintf(out, "rows of logits   %.0f\n", c->head_rows);
    if (c->generated > 0.0)
        fprintf(out, "generated        at most %.0f tokens\n", c->generated);
    fprintf(out, "context          %zu tokens", p->e.lm.context);
    if (p->count.n_cut_items == 0)
        fprintf(out, ": every item fits\n");
    else
        fprintf(out,
                ": %zu items lose %.0f tokens at the left; sharing that this costs: %.0f distinct "
                "tokens (%.1f %%)\n",
                p->count.n_cut_items, p->count.n_cut, p->lost,
                100.0 * p->lost / c->distinct_tokens);
    fprintf(out, "time             %s%s, one thread (BLAS: %s)\n",
            c->generated > 0.0 ? "at most " : "",
            clock_span_text((int64_t)(seconds * 1000.0), span, sizeof(span)), model_kernels_text());
    fprintf(out, "memory           %.0f MiB\n", peak_bytes() / 1048576.0);
}

/* Prepares as a run, measures the rates, then swaps the model for counters. */
static int plan_run(struct plan *p, FILE *out, struct err *err)
{
    int rc = evaluation_prepare(&p->e, false, err);
    if (rc == 0)
        rc = model_measure_rates(p->e.model, &p->rates, err);
    if (rc != 0)
        return rc;
    p->count.counter = p->e.counter;
    request_count_answers(&p->count, &p->e.lm);
    rc = request_count_items(&p->count, &p->e.scorer, p->e.bench.selected, p->e.bench.n_selected,
                             err);
    if (rc == 0 && p->count.n_cut_items > 0)
        rc = count_lost(p, err);
    if (rc == 0)
        print_plan(p, out);
    return rc;
}

int eval_plan(const struct worker_task *task, FILE *out, struct err *err)
{
    struct plan p = {.lost = 0.0};
    evaluation_init(&p.e, task);
    int rc = plan_run(&p, out, err);
    evaluation_release(&p.e);
    return rc;
}
