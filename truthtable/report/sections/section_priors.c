/*
 * The section "Priors": what was believed before there was data, and how surprising the outcome is.
 * Surprisal and Brier score are the verdict's; without a bound outcome nothing is scored.
 */
#include <math.h>

#include "base/math/elementary.h"
#include "base/xalloc.h"
#include "truthtable/report/document/fmt.h"
#include "truthtable/report/document/plot.h"
#include "truthtable/report/sections/row_columns.h"
#include "truthtable/report/sections/sections.h"

/* INDEX_NONE for VOID and INDETERMINATE, which name no outcome. */
static size_t bound_outcome(const struct report_model *m)
{
    const char *name = member_text(m->verdict, "outcome");
    return name == NULL ? INDEX_NONE : program_find_outcome(m->program, name);
}

struct prior_row {
    const char *outcome;
    double prior;
    const char *title;
    bool is_outcome; /* else the remainder, which cannot surprise */
};

static void surprisal_cell(const struct doc_slot *s)
{
    const struct prior_row *row = s->row;
    s->cell->text = FMT_NONE;
    if (row->is_outcome) {
        const double bits = -elementary_log2(row->prior);
        doc_number(s, fmt_fixed(s->arena, bits, 3), bits);
    }
}

/* The remainder has a row of its own if it is more than rounding. */
static void add_table(struct doc *d, const struct plan_program *p, size_t bound, double rest)
{
    static const struct doc_column columns[] = {
        ROW_TEXT("Outcome", struct prior_row, outcome),
        ROW_FIGURE("Prior", row_cell_number, struct prior_row, prior),
        COLUMN("Surprisal, bits", ALIGN_NUMBER, surprisal_cell),
        ROW_TEXT("Title, as locked", struct prior_row, title),
    };
    struct doc_table *t = doc_table(d, "priors", "The outcomes and their priors, as locked.",
                                    columns, ARRAY_LEN(columns));
    for (size_t i = 0; i < p->n_outcomes; i++) {
        const struct plan_outcome *o = &p->outcomes[i];
        const bool binds = i == bound;
        const char *name = binds ? arena_printf(&d->arena, "\xe2\x97\x86 %s", o->name) : o->name;
        doc_row(d, t, &(struct prior_row){name, o->prior, o->title, true})->tone =
            binds ? TONE_LIT : TONE_PLAIN;
    }
    if (rest > 1e-12) {
        doc_row(d, t, &(struct prior_row){"remainder", rest, "assigned to no outcome", false})
            ->tone = TONE_MUTED;
    }
}

/* The bar of shares, the bound outcome lit. */
static void add_figure(struct doc *d, const struct plan_program *p, size_t bound, double rest)
{
    struct arena *a = &d->arena;
    struct plot_share *shares = arena_array(a, p->n_outcomes + 1, sizeof(*shares));
    size_t n = 0;
    for (size_t i = 0; i < p->n_outcomes; i++) {
        shares[n++] = (struct plot_share){
            .label = p->outcomes[i].name, .share = p->outcomes[i].prior, .lit = i == bound};
    }
    if (rest > 1e-12) {
        shares[n++] = (struct plot_share){.label = "remainder", .share = rest, .rest = true};
    }
    struct plot_shares plot = {
        .head = {.title = "Prior probabilities of the outcomes",
                 .desc = bound == INDEX_NONE
                             ? "No outcome is lit: none binds."
                             : arena_printf(a, "%s is lit: it binds.", p->outcomes[bound].name)},
        .shares = shares,
        .n_shares = n};
    plot_shares(doc_figure(d, "priors", "What was believed, as locked.", &plot.head), &plot);
}

/* A sum above 1 leaves no remainder. */
void section_priors(struct doc *d, const struct report_model *m)
{
    const struct plan_program *p = m->program;
    struct arena *a = &d->arena;
    size_t bound = bound_outcome(m);
    double rest = 1;
    for (size_t i = 0; i < p->n_outcomes; i++) {
        rest -= p->outcomes[i].prior;
    }
    rest = fmax(rest, 0);
    doc_section(d, "priors", "Priors");
    if (bound == INDEX_NONE) {
        doc_paragraph(d, "No outcome binds, so the priors are not scored.");
    } else {
        doc_paragraph(
            d,
            "%s had a prior of %s: %s bits of surprise. The Brier score of the stated priors, with "
            "the unassigned remainder as one more outcome, is %s (0 is best, 2 worst).",
            p->outcomes[bound].name, fmt_short(a, p->outcomes[bound].prior, 4),
            fmt_fixed(a, member_number(m->verdict, "surprisal_bits"), 3),
            fmt_fixed(a, member_number(m->verdict, "brier"), 4));
    }
    add_figure(d, p, bound, rest);
    add_table(d, p, bound, rest);
}
