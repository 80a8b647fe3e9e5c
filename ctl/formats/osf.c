/* osf: the locked plan as plain text, under the questions of the Open Science Framework's form "OSF
 * Preregistration", to be pasted there. It says what the plan says; a question that a plan does not
 * answer is answered so. Texts of the plan are written on one line each. */
#include <stdlib.h>
#include <string.h>

#include "base/json/json.h"
#include "base/text.h"
#include "base/xalloc.h"
#include "ctl/formats/writers.h"
#include "prereg/lock/imported.h"

#define NOT_STATED "The plan does not say.\n"

/* Appends text on one line, without control characters. */
static void add_plain(struct strbuf *sb, const char *text)
{
    char *line = xstrdup(text);
    text_make_line(line);
    strbuf_adds(sb, line);
    free(line);
}

static void add_question(struct strbuf *sb, const char *question)
{
    strbuf_addf(sb, "\n%s\n", question);
    for (size_t i = 0; i < strlen(question); i++) {
        strbuf_addc(sb, '-');
    }
    strbuf_addc(sb, '\n');
}

static void add_page(struct strbuf *sb, const char *title)
{
    strbuf_addf(sb, "\n\n== %s ==\n", title);
}

/* "- NAME: TEXT" */
static void add_item(struct strbuf *sb, const char *name, const char *text)
{
    strbuf_adds(sb, "- ");
    add_plain(sb, name);
    strbuf_adds(sb, ": ");
    add_plain(sb, text);
    strbuf_addc(sb, '\n');
}

static void add_hypotheses(struct strbuf *sb, const struct plan_program *p)
{
    strbuf_adds(sb, "Outcomes, with the probability that was given to each before the data:\n");
    for (size_t i = 0; i < p->n_outcomes; i++) {
        char *name = xasprintf("%s (prior %.6g)", p->outcomes[i].name, p->outcomes[i].prior);
        add_item(sb, name, p->outcomes[i].title);
        free(name);
    }
    if (p->n_forecasts > 0) {
        strbuf_adds(sb, "Forecasts, each with its confidence:\n");
    }
    for (size_t i = 0; i < p->n_forecasts; i++) {
        const struct plan_forecast *f = &p->forecasts[i];
        char *name = xasprintf("%s (%.6g)", f->name, f->confidence);
        add_item(sb, name, f->condition.text);
        free(name);
    }
    if (p->scope.mechanism != NULL) {
        add_item(sb, "Mechanism", p->scope.mechanism);
    }
}

static void add_factors(struct strbuf *sb, const struct plan_program *p, bool replicates)
{
    for (size_t i = 0; i < p->n_factors; i++) {
        const struct plan_factor *f = &p->factors[i];
        struct strbuf levels = STRBUF_INIT;
        for (size_t k = 0; k < f->n_levels; k++) {
            strbuf_addf(&levels, "%s%s", k == 0 ? "" : ", ", f->levels[k].text);
        }
        if (f->replicate == replicates) {
            add_item(sb, f->name, levels.buf);
        }
        strbuf_release(&levels);
    }
}

static void add_design_plan(struct strbuf *sb, const struct plan_program *p)
{
    add_page(sb, "Design Plan");
    add_question(sb, "Study type");
    strbuf_adds(sb, "Other: a computational experiment. Every level of every factor is run.\n");
    add_question(sb, "Blinding");
    strbuf_adds(sb, "Scores of counted measures are sealed until every planned task has ended.\n");
    add_question(sb, "Is there any additional blinding in this study?");
    strbuf_adds(sb, "An earlier look (unblinding) is recorded in the journal and in the report.\n");
    add_question(sb, "Study design");
    strbuf_addf(sb, "Full factorial, %zu cells:\n", p->n_cells);
    add_factors(sb, p, false);
    add_factors(sb, p, true);
    add_question(sb, "Randomization");
    strbuf_adds(sb, "Levels are not drawn: all are run. Replicates, which are averaged over:\n");
    add_factors(sb, p, true);
}

static void add_stages(struct strbuf *sb, const struct receipt_source *s)
{
    const struct plan_program *p = s->program;
    strbuf_adds(sb, "Each cell runs these stages:\n");
    for (size_t i = 0; i < p->n_stages; i++) {
        struct strbuf text = STRBUF_INIT;
        struct err ignored;
        for (size_t k = 0; k < p->stages[i].n_command; k++) {
            strbuf_addf(&text, "%s%s", k == 0 ? "" : " ", p->stages[i].command[k]);
        }
        strbuf_adds(&text, ", parameters ");
        (void)!json_line(p->stages[i].params, &text, &ignored);
        add_item(sb, p->stages[i].name, text.buf);
        strbuf_release(&text);
    }
    strbuf_adds(sb, p->n_data > 0 ? "They read these data, pinned by digest:\n" : "");
    for (size_t i = 0; i < p->n_data; i++) {
        const char *digest = lock_data_digest(s->lock, p->data[i].name);
        char *text = xasprintf("%s, %s", p->data[i].path, digest != NULL ? digest : "not pinned");
        add_item(sb, p->data[i].name, text);
        free(text);
    }
}

static void add_sampling_plan(struct strbuf *sb, const struct receipt_source *s)
{
    const struct plan_program *p = s->program;
    add_page(sb, "Sampling Plan");
    add_question(sb, "Existing Data");
    strbuf_adds(sb, imported_lock(s->lock)
                        ? "Registration following analysis of the data: the records were imported, "
                          "and the plan was locked at the import.\n"
                    : s->imported ? "The records were imported; the lock is of the time below.\n"
                                  : "Registration prior to creation of data\n");
    add_question(sb, "Explanation of existing data");
    strbuf_adds(sb, "Nothing proves that no data existed before the lock.\n");
    add_question(sb, "Data collection procedures");
    add_stages(sb, s);
    add_question(sb, "Sample size");
    strbuf_addf(sb, "%zu cells, %zu conditions, %zu tasks. Items of each measure:\n", p->n_cells,
                p->n_conditions, program_n_tasks(p));
    for (size_t i = 0; i < p->n_measures; i++) {
        char *n = p->measures[i].has_items ? xasprintf("%lld", (long long)p->measures[i].items)
                                           : xstrdup("not stated");
        add_item(sb, p->measures[i].name, n);
        free(n);
    }
    add_question(sb, "Sample size rationale");
    strbuf_adds(sb, NOT_STATED);
    add_question(sb, "Stopping rule");
    strbuf_adds(sb, "Every planned task runs to its end; the verdict is read off once none is "
                    "left.\n");
}

static void add_variables(struct strbuf *sb, const struct plan_program *p)
{
    add_page(sb, "Variables");
    add_question(sb, "Manipulated variables");
    add_factors(sb, p, false);
    add_question(sb, "Measured variables");
    for (size_t i = 0; i < p->n_measures; i++) {
        const struct plan_measure *m = &p->measures[i];
        struct strbuf text = STRBUF_INIT;
        strbuf_addf(&text, "%s, %s is better, %s", m->metric_text,
                    m->lower_better ? "lower" : "higher", m->counted ? "counted" : "not counted");
        if (m->has_chance) {
            strbuf_addf(&text, ", chance %.6g", m->chance);
        }
        if (m->has_floor) {
            strbuf_addf(&text, ", floor %s", m->floor_text);
        }
        add_item(sb, m->name, text.buf);
        strbuf_release(&text);
    }
    add_question(sb, "Indices");
    for (size_t i = 0; i < p->n_counters; i++) {
        const struct counter *k = &p->counters[i];
        char *text =
            xasprintf("how many counted measures clear their floor in %s, for the contrast %s%s",
                      k->clears == CLEARS_EVERY_CELL ? "every cell" : "the means of the arms",
                      p->contrasts[k->contrast].name, k->binds ? "; it binds" : "");
        add_item(sb, k->name, text);
        free(text);
    }
}

static void add_contrasts(struct strbuf *sb, const struct plan_program *p)
{
    for (size_t i = 0; i < p->n_contrasts; i++) {
        const struct plan_contrast *c = &p->contrasts[i];
        char *text = NULL;
        if (c->is_difference) {
            text = xasprintf("%s minus %s", p->contrasts[c->of].name, p->contrasts[c->minus].name);
        } else {
            const struct plan_factor *f = &p->factors[c->factor];
            text = xasprintf("%s %s minus %s, over pairs of cells that differ in it alone", f->name,
                             f->levels[c->level_a].text, f->levels[c->level_b].text);
        }
        add_item(sb, c->name, text);
        free(text);
    }
}

static void add_criteria(struct strbuf *sb, const struct plan_program *p)
{
    for (size_t i = 0; i < p->n_inputs; i++) {
        for (size_t k = 0; k < p->inputs[i].n_levels; k++) {
            char *name = xasprintf("%s is %s", p->inputs[i].name, p->inputs[i].levels[k].name);
            add_item(sb, name, p->inputs[i].levels[k].condition.text);
            free(name);
        }
    }
    for (size_t i = 0; i < p->n_rows; i++) {
        struct strbuf row = STRBUF_INIT;
        for (size_t k = 0; k < p->n_table_inputs; k++) {
            const struct plan_input *in = &p->inputs[p->table_inputs[k]];
            strbuf_addf(&row, "%s%s = %s", k == 0 ? "" : ", ", in->name,
                        in->levels[p->rows[i].levels[k]].name);
        }
        add_item(sb, row.buf, p->outcomes[p->rows[i].outcome].name);
        strbuf_release(&row);
    }
}

static void add_analysis_plan(struct strbuf *sb, const struct plan_program *p)
{
    add_page(sb, "Analysis Plan");
    add_question(sb, "Statistical models");
    strbuf_adds(sb, "Paired differences of means, with t intervals over replicates:\n");
    add_contrasts(sb, p);
    add_question(sb, "Transformations");
    strbuf_adds(sb, NOT_STATED);
    add_question(sb, "Inference criteria");
    strbuf_adds(sb, "Inputs, then the table that maps each combination to an outcome:\n");
    add_criteria(sb, p);
    add_question(sb, "Data exclusion");
    strbuf_addf(sb,
                "At most a share of %.6g of the counted tasks may be lost for mechanical "
                "causes; more makes the comparison void. A cell without a value %s.\n",
                p->exclusion_budget, p->excluded_fails ? "fails its gate" : "is unknown");
    for (size_t i = 0; i < p->n_validity; i++) {
        char *name = xasprintf("%s (%s)", p->validity[i].name,
                               p->validity[i].on_fail == ON_FAIL_VOID ? "void" : "flag");
        add_item(sb, name, p->validity[i].condition.text);
        free(name);
    }
    add_question(sb, "Missing data");
    strbuf_adds(sb, "A missing score is undetermined, never imputed; what depends on it is unknown "
                    "unless every value would give the same.\n");
    add_question(sb, "Exploratory analysis");
    strbuf_adds(sb, "Instruments inform and never bind:\n");
    for (size_t i = 0; i < p->n_instruments; i++) {
        add_item(sb, p->instruments[i].name, p->instruments[i].kind);
    }
}

static void add_lock(struct strbuf *sb, const struct receipt_source *s)
{
    char time[WALL_TEXT_SIZE];
    clock_wall_text(lock_made_at(s->lock), time);
    add_page(sb, "Other");
    add_question(sb, "Other");
    strbuf_addf(sb, "Lock of preregd: root %s, made %s by its maker's clock, %s.\n", s->lock->root,
                time, s->lock->signature != NULL ? "signed" : "not signed");
    if (s->lock->n_amendments > 0) {
        strbuf_addf(sb,
                    "This is the plan after %zu amendments, head %s; the receipt has each with "
                    "its reason.\n",
                    s->lock->n_amendments, s->lock->head);
    }
    for (size_t i = 0; i < s->program->scope.not_claimed.n; i++) {
        add_item(sb, "Not claimed", s->program->scope.not_claimed.items[i]);
    }
}

int write_osf(const struct receipt_source *s, const struct format_output *out, struct err *err)
{
    const struct plan_program *p = s->program;
    struct strbuf sb = STRBUF_INIT;
    add_page(&sb, "Study Information");
    add_question(&sb, "Title");
    add_plain(&sb, p->name);
    strbuf_addc(&sb, '\n');
    add_question(&sb, "Description");
    add_plain(&sb, p->question != NULL ? p->question : "The plan states no question.");
    strbuf_addc(&sb, '\n');
    add_question(&sb, "Hypotheses");
    add_hypotheses(&sb, p);
    add_design_plan(&sb, p);
    add_sampling_plan(&sb, s);
    add_variables(&sb, p);
    add_analysis_plan(&sb, p);
    add_lock(&sb, s);
    format_note(out, "authors, license and subjects of the form are not in a plan: left out");
    int rc = format_put(out, "preregistration.txt", &sb, err);
    strbuf_release(&sb);
    return rc;
}
