/*
 * The section "Priors": what was believed before there was data, and how surprising the outcome is.
 * Surprisal and Brier score are the verdict's; without a bound outcome nothing is scored.
 */
#include <math.h>
#include <string.h>

#include "truthtable/report/document/fmt.h"
#include "truthtable/report/document/plot.h"
#include "truthtable/report/sections/sections.h"

/* INDEX_NONE for VOID and INDETERMINATE, which name no outcome. */
static size_t bound_outcome(const struct report_model *m)
{
    const char *name = member_text(m->verdict, "outcome");
    return name == NULL ? INDEX_NONE : program_find_outcome(m->program, name);
}

/* The remainder has a row of its own if it is more than rounding. */
static void add_table(struct doc *d, const struct plan_program *p, size_t bound, double rest)
{
    static const struct doc_column columns[] = {{"Outcome", ALIGN_TEXT},
                                                {"Prior", ALIGN_NUMBER},
                                                {"Surprisal, bits", ALIGN_NUMBER},
                                                {"Title, as locked", ALIGN_TEXT}};
    struct arena *a = &d->arena;
    struct doc_table *t =
        doc_table(d, "priors", "The outcomes and their priors, as locked.", columns, 4);
    for (size_t i = 0; i < p->n_outcomes; i++) {
        struct doc_row *row = doc_row(d, t);
        row->tone = i == bound ? TONE_LIT : TONE_PLAIN;
        row->cells[0].text = i == bound ? arena_printf(a, "\xe2\x97\x86 %s", p->outcomes[i].name)
                                        : p->outcomes[i].name;
        double bits = -log2(p->outcomes[i].prior);
        doc_number(d, &row->cells[1], fmt_short(a, p->outcomes[i].prior, 4), p->outcomes[i].prior);
        doc_number(d, &row->cells[2], fmt_fixed(a, bits, 3), bits);
        row->cells[3].text = p->outcomes[i].title;
    }
    if (rest > 1e-12) {
        struct doc_row *row = doc_row(d, t);
        row->tone = TONE_MUTED;
        row->cells[0].text = "remainder";
        doc_number(d, &row->cells[1], fmt_short(a, rest, 4), rest);
        row->cells[2].text = FMT_NONE;
        row->cells[3].text = "assigned to no outcome";
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
    const char *summary = bound == INDEX_NONE
                              ? "No outcome is lit: none binds."
                              : arena_printf(a, "%s is lit: it binds.", p->outcomes[bound].name);
    const char *id = NULL;
    struct doc_figure *f = doc_figure(d, "priors", "What was believed, as locked.", summary, &id);
    struct plot_shares plot = {
        .head = {.id = id, .title = "Prior probabilities of the outcomes", .desc = summary},
        .shares = shares,
        .n_shares = n};
    plot_shares(&f->svg, &plot);
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
