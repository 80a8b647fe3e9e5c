/*
 * The campaign in figures, before its cells one by one: what each stage took in attempts, wall time
 * and processor time, what ended attempts early, and how much work was lost with them. Sums of
 * attempts, which may have run beside each other; the caption has the time from the first start to
 * the last end.
 */
#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "base/xalloc.h"
#include "prereg/task/task_cause.h"
#include "truthtable/report/document/fmt.h"
#include "truthtable/report/sections/row_columns.h"
#include "truthtable/report/sections/sections.h"
#include "truthtable/report/verdict_words.h"

/* What a stage, a cause or everything took. */
struct campaign_row {
    const char *name;
    size_t attempts;
    size_t resumed;
    size_t lost;
    double wall_ms;
    double cpu_ms;
    double lost_ms;
    double lost_tokens;
    size_t unknown; /* lost attempts of which no file says how far they came */
};

struct campaign {
    struct campaign_row *stages; /* and the whole behind them */
    struct campaign_row causes[CAUSE_NR];
    struct wall_time first;
    struct wall_time last;
};

/* Adds what is known. */
static void add(double *sum, double v)
{
    *sum += isfinite(v) ? v : 0;
}

static void add_attempt(struct campaign_row *r, const cJSON *attempt,
                        const struct report_loss *loss)
{
    const cJSON *from = member(attempt, "resumed_from");
    r->attempts++;
    r->resumed += from != NULL && !cJSON_IsNull(from) ? 1 : 0;
    add(&r->wall_ms, attempt_wall_ms(attempt));
    add(&r->cpu_ms, member_number(attempt, "user_ms"));
    add(&r->cpu_ms, member_number(attempt, "system_ms"));
    if (loss != NULL) {
        r->lost++;
        add(&r->lost_ms, loss->ms);
        add(&r->lost_tokens, loss->tokens);
        r->unknown += isfinite(loss->ms) ? 0 : 1;
    }
}

/* The first start and the last end. */
static void widen(struct campaign *c, const cJSON *attempt)
{
    struct wall_time t;
    const char *started = member_text(attempt, "started");
    const char *ended = member_text(attempt, "ended");
    if (started != NULL && clock_wall_parse(started, &t) &&
        (c->first.ms == 0 || t.ms < c->first.ms)) {
        c->first = t;
    }
    if (ended != NULL && clock_wall_parse(ended, &t) && t.ms > c->last.ms) {
        c->last = t;
    }
}

/* All attempts of the grid; losses are in the same order. */
static void collect(struct campaign *c, const struct report_model *m)
{
    const size_t n_stages = m->program->n_stages;
    size_t n_losses = 0;
    const cJSON *task = NULL;
    cJSON_ArrayForEach(task, member(m->provenance, "tasks"))
    {
        const char *name = member_text(task, "stage");
        const size_t stage = name == NULL ? INDEX_NONE : program_find_stage(m->program, name);
        const cJSON *attempt = NULL;
        cJSON_ArrayForEach(attempt, member(task, "attempts"))
        {
            const bool is_lost = attempt_is_lost(attempt) && n_losses < m->losses.n;
            const struct report_loss *loss = is_lost ? &m->losses.items[n_losses++] : NULL;
            const char *cause = member_text(attempt, "cause");
            widen(c, attempt);
            add_attempt(&c->stages[n_stages], attempt, loss);
            if (stage != INDEX_NONE) {
                add_attempt(&c->stages[stage], attempt, loss);
            }
            if (loss != NULL && cause_from_name(cause) < CAUSE_NR) {
                add_attempt(&c->causes[cause_from_name(cause)], attempt, loss);
            }
        }
    }
}

/* The tokens of what was lost; an em dash where nothing was, or is known. */
static void tokens_cell(const struct doc_slot *s)
{
    const struct campaign_row *r = s->row;
    s->cell->text = r->lost_tokens > 0 ? fmt_whole(s->arena, round(r->lost_tokens)) : FMT_NONE;
    if (r->lost_tokens > 0) {
        doc_number(s, s->cell->text, round(r->lost_tokens));
    }
}

/* One row for each stage, and their sum. */
static void add_stages(struct doc *d, const struct report_model *m, struct campaign *c)
{
    static const struct doc_column columns[] = {
        ROW_TEXT("Stage", struct campaign_row, name),
        ROW_FIGURE("Attempts", row_cell_tally, struct campaign_row, attempts),
        ROW_FIGURE("Resumed", row_cell_tally, struct campaign_row, resumed),
        ROW_FIGURE("Ended early", row_cell_faults, struct campaign_row, lost),
        ROW_FIGURE("Wall time", row_cell_span, struct campaign_row, wall_ms),
        ROW_FIGURE("Processor time", row_cell_span, struct campaign_row, cpu_ms),
        ROW_FIGURE("Lost time", row_cell_span, struct campaign_row, lost_ms),
        COLUMN("Lost tokens", ALIGN_NUMBER, tokens_cell),
    };
    struct arena *a = &d->arena;
    const struct campaign_row *all = &c->stages[m->program->n_stages];
    const double whole = (double)(c->last.ms - c->first.ms);
    struct doc_table *t = doc_table(
        d, "campaign",
        arena_printf(a,
                     "The campaign: %s from the first start of an attempt to the last end. Times "
                     "are sums over attempts, which may run beside each other. Lost is what a task "
                     "did again after an attempt without a result, or never used, by the attempt's "
                     "own progress%s.",
                     c->first.ms > 0 && whole >= 0 ? fmt_span(a, whole) : "an unknown time",
                     all->unknown == 0 ? ""
                                       : arena_printf(a, "; of %s no file says how far it came",
                                                      fmt_plural(a, (int64_t)all->unknown,
                                                                 "attempt", "attempts"))),
        columns, ARRAY_LEN(columns));
    for (size_t s = 0; s <= m->program->n_stages; s++) {
        c->stages[s].name = s < m->program->n_stages ? m->program->stages[s].name : "all";
        (void)doc_row(d, t, &c->stages[s]);
    }
}

/* One row for each cause that ended attempts. */
static void add_causes(struct doc *d, struct campaign *c)
{
    static const struct doc_column columns[] = {
        ROW_TEXT("Cause", struct campaign_row, name),
        ROW_FIGURE("Attempts", row_cell_tally, struct campaign_row, lost),
        ROW_FIGURE("Wall time", row_cell_span, struct campaign_row, wall_ms),
        ROW_FIGURE("Lost time", row_cell_span, struct campaign_row, lost_ms),
        COLUMN("Lost tokens", ALIGN_NUMBER, tokens_cell),
    };
    struct doc_table *t = NULL;
    for (int i = CAUSE_NONE + 1; i < CAUSE_NR; i++) {
        if (c->causes[i].lost == 0) {
            continue;
        }
        if (t == NULL) {
            t = doc_table(d, "deaths", "What ended attempts without a result.", columns,
                          ARRAY_LEN(columns));
        }
        c->causes[i].name = cause_name((enum cause)i);
        (void)doc_row(d, t, &c->causes[i]);
    }
}

void blocks_campaign(struct doc *d, const struct report_model *m)
{
    struct campaign c = {0};
    c.stages = arena_array(&d->arena, m->program->n_stages + 1, sizeof(*c.stages));
    collect(&c, m);
    add_stages(d, m, &c);
    add_causes(d, &c);
}
