/*
 * Shows a mixed instrument: sentences on singularity and dropped cells first, then estimates in
 * tables of FITS_MAX responses, then forest plots. A coefficient that could not be estimated says
 * so instead of being blank.
 */
#include <math.h>
#include <string.h>

#include "base/xalloc.h"
#include "truthtable/report/document/fmt.h"
#include "truthtable/report/document/plot.h"
#include "truthtable/report/measure_values.h"
#include "truthtable/report/sections/instrument_blocks.h"
#include "truthtable/report/sections/json_columns.h"
#include "truthtable/report/sections/row_columns.h"
#include "truthtable/report/verdict_words.h"

#define FITS_MAX    ((size_t)5) /* side by side */
#define ROWS_MAX    ((size_t)60)
#define NAMES_CHARS ((size_t)240)
#define NAMES_BYTES (4 * NAMES_CHARS) /* as many as the characters may have */
#define TWO_ERRORS  2.0
#define SIGMA       "\xcf\x83"
#define THETA       "\xce\xb8"
#define SQUARED     "\xc2\xb2"

/* A fit's term by name; responses may have different terms. */
static const cJSON *term_of(const cJSON *fit, const char *name)
{
    const cJSON *term = NULL;
    cJSON_ArrayForEach(term, member(fit, "terms"))
    {
        if (strcmp(words_member(term, "name"), name) == 0) {
            return term;
        }
    }
    return NULL;
}

/* A row: a term or a figure of the fits, whose cell in the column of a fit `show` fills. */
struct fit_row {
    const char *label;
    void (*show)(const struct doc_slot *s, const cJSON *fit);
    const char *key;
};

/* Every column but the first is about a fit. */
static void fit_cell(const struct doc_slot *s)
{
    ((const struct fit_row *)s->row)->show(s, s->column->of);
}

/* An estimate, "not estimable", or an em dash for a term that this fit does not have. */
static void show_term(const struct doc_slot *s, const cJSON *fit)
{
    const cJSON *term = term_of(fit, ((const struct fit_row *)s->row)->key);
    if (term == NULL) {
        s->cell->text = FMT_NONE;
    } else if (cJSON_IsFalse(member(term, "estimable"))) {
        doc_number(s, "not estimable", (double)NAN);
        s->cell->tone = TONE_WARN;
    } else {
        show_estimate(s, member_number(term, "beta"), member_number(term, "se"));
    }
}

/* The rows follow the first fit that has terms: all fits of an instrument have the same columns. */
static void add_terms(struct doc *d, struct doc_table *t)
{
    const cJSON *names = NULL;
    for (size_t i = 1; i < t->n_columns && cJSON_GetArraySize(names) == 0; i++) {
        names = member(t->columns[i].of, "terms");
    }
    const cJSON *term = NULL;
    cJSON_ArrayForEach(term, names)
    {
        const char *name = words_member(term, "name");
        doc_row(d, t, &(struct fit_row){name, show_term, name});
    }
}

static void show_figure(const struct doc_slot *s, const cJSON *fit)
{
    show_short(s, fit, ((const struct fit_row *)s->row)->key, 5);
}

/* Whether the figures above may be read as they are. A fit that failed may still be known to be
 * singular. */
static void show_singular(const struct doc_slot *s, const cJSON *fit)
{
    static const struct show_words words = {"singular", "not singular", "not known"};
    show_flag(s, fit, "singular", &words);
    s->cell->tone = cJSON_IsFalse(member(fit, "singular")) ? TONE_PLAIN : TONE_WARN;
}

/* Variances, R2 and numbers of rows, below the terms. */
static void add_summary(struct doc *d, struct doc_table *t)
{
    static const struct fit_row rows[] = {
        {SIGMA " between the groups", show_figure, "sigma_b"},
        {SIGMA " within them", show_figure, "sigma_e"},
        {THETA ", the ratio of the two", show_figure, "theta"},
        {"Log-likelihood, restricted", show_figure, "loglik"},
        {"R" SQUARED " of the fixed terms", show_figure, "r2_marginal"},
        {"R" SQUARED " with the groups", show_figure, "r2_conditional"},
        {"Rows (cells)", show_figure, "n"},
        {"Groups", show_figure, "n_groups"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        doc_row(d, t, &rows[i])->tone = TONE_MUTED;
    }
    doc_row(d, t, &(struct fit_row){"The fit", show_singular, NULL});
}

/* Responses side by side. */
static void add_table(struct doc *d, const cJSON *instrument, const struct doc_columns *columns)
{
    struct doc_table *t = doc_table(
        d, show_id(d, instrument, ""),
        arena_printf(&d->arena,
                     "Linear mixed model by restricted maximum likelihood, a random intercept for "
                     "each %s: estimates \xc2\xb1 standard errors, by response.",
                     words_member(instrument, "random")),
        columns->items, columns->n);
    add_terms(d, t);
    add_summary(d, t);
}

/* As many tables as are needed, each of up to FITS_MAX responses. */
static void add_tables(struct doc *d, const cJSON *instrument)
{
    static const struct doc_column term = ROW_TEXT("Term", struct fit_row, label);
    struct doc_columns columns = doc_columns(d, &term, 1);
    const cJSON *fit = NULL;
    cJSON_ArrayForEach(fit, member(instrument, "fits"))
    {
        if (columns.n > FITS_MAX) {
            add_table(d, instrument, &columns);
            columns = doc_columns(d, &term, 1);
        }
        /* For others the list above says why nothing was fitted. */
        if (member_count(fit, "terms") > 0) {
            doc_column_add(d, &columns, words_member(fit, "response"), fit_cell)->of = fit;
        }
    }
    if (columns.n > 1) {
        add_table(d, instrument, &columns);
    }
}

/* One reason in words. */
static const char *reason_words(struct arena *a, const cJSON *reason, const char *random)
{
    const char *kind = words_member(reason, "kind");
    const char *term = words_member(reason, "term");
    /* The kinds of mixed.h; an unknown one is printed by its name. */
    if (strcmp(kind, "no_variance") == 0) {
        return arena_printf(a, "%s is the same in every row", term);
    }
    if (strcmp(kind, "aliased") == 0) {
        return arena_printf(a, "%s is a combination of %s", term,
                            words_list(a, member(reason, "of")));
    }
    if (strcmp(kind, "boundary") == 0) {
        return arena_printf(a, THETA " is at its boundary: the levels of %s add no variance",
                            random);
    }
    return kind;
}

/* Whether a fit is singular, and why. */
static const char *fit_words(struct arena *a, const cJSON *fit, const char *random)
{
    const char *why = member_text(fit, "why");
    const char *text = "";
    const cJSON *reason = NULL;
    cJSON_ArrayForEach(reason, member(fit, "reasons"))
    {
        text = arena_printf(a, "%s%s%s", text, text[0] == '\0' ? "" : "; ",
                            reason_words(a, reason, random));
    }
    /* Reasons of singularity are given with and without a fit. */
    const char *because = text[0] == '\0' ? "" : arena_printf(a, ": %s", text);
    if (why != NULL) {
        return arena_printf(a, "not fitted (%s)%s", why, because);
    }
    const cJSON *singular = member(fit, "singular");
    return cJSON_IsTrue(singular)    ? arena_printf(a, "the fit is singular%s", because)
           : cJSON_IsFalse(singular) ? "the fit is not singular"
                                     : "whether the fit is singular is not known";
}

/* "6 cells were dropped (router_load is null: arch=dense,...)". */
static const char *dropped_words(struct arena *a, const cJSON *fit)
{
    const cJSON *constant = member(fit, "constant_by_dropping");
    const cJSON *row = NULL;
    const char *names = "";
    const char *why = NULL;
    size_t n = 0;
    cJSON_ArrayForEach(row, member(fit, "dropped"))
    {
        /* Only the first reason is shown; instruments.json has each. */
        why = why == NULL ? words_member(row, "why") : why;
        if (strlen(names) <=
            NAMES_BYTES) { /* what is behind is cut off: large programs drop many */
            names = arena_printf(a, "%s%s%s", names, n == 0 ? "" : "; ", words_member(row, "cell"));
        }
        n++;
    }
    if (n == 0) {
        return "";
    }
    const char *text = arena_printf(a, "%s left out, the first because %s: %s",
                                    fmt_plural(a, (int64_t)n, "cell is", "cells are"), why,
                                    fmt_cut(a, names, NAMES_CHARS));
    return cJSON_GetArraySize(constant) == 0
               ? text
               : arena_printf(a, "%s. Without them these no longer vary: %s", text,
                              words_list(a, constant));
}

typedef const char *(*say_fn)(struct arena *a, const cJSON *fit, const char *random);

/* dropped_words() in the form that add_sentences() takes. */
static const char *say_dropped(struct arena *a, const cJSON *fit, const char *random)
{
    (void)random;
    return dropped_words(a, fit);
}

/* Responses with the same sentence share a line. */
static void add_sentences(struct doc *d, const cJSON *instrument, struct doc_list *list, say_fn say)
{
    struct arena *a = &d->arena;
    const char *random = words_member(instrument, "random");
    const cJSON *fits = member(instrument, "fits");
    for (const cJSON *fit = fits == NULL ? NULL : fits->child; fit != NULL; fit = fit->next) {
        const char *text = say(a, fit, random);
        /* A sentence is printed with the first response that has it. */
        bool said = text[0] == '\0';
        for (const cJSON *f = fits->child; !said && f != fit; f = f->next) {
            said = strcmp(say(a, f, random), text) == 0;
        }
        if (said) {
            continue;
        }
        const char *names = words_member(fit, "response");
        for (const cJSON *f = fit->next; f != NULL; f = f->next) {
            /* Later responses with the same sentence join the line. */
            names = strcmp(say(a, f, random), text) == 0
                        ? arena_printf(a, "%s, %s", names, words_member(f, "response"))
                        : names;
        }
        doc_point(d, list, "%s: %s.", names, text);
    }
}

/* Adds the estimable terms of one fit, without the intercept, which has another scale. */
static size_t forest_rows(struct arena *a, const cJSON *fit, size_t series, struct plot_row *rows,
                          size_t n)
{
    const cJSON *term = NULL;
    cJSON_ArrayForEach(term, member(fit, "terms"))
    {
        double beta = member_number(term, "beta");
        double se = member_number(term, "se");
        const char *name = words_member(term, "name");
        /* The intercept has the scale of scores, not of differences. */
        if (n == ROWS_MAX || !isfinite(beta) || strcmp(name, "intercept") == 0 ||
            cJSON_IsFalse(member(term, "estimable"))) {
            continue;
        }
        struct plot_mark *mark = arena_alloc(a, sizeof(*mark));
        *mark = (struct plot_mark){
            .value = beta, .low = beta - TWO_ERRORS * se, .high = beta + TWO_ERRORS * se};
        const char *label = arena_printf(a, "%s \xc2\xb7 %s", words_member(fit, "response"), name);
        mark->tooltip = arena_printf(a, "%s: %s \xc2\xb1 %s", label, fmt_signed(a, beta, 5),
                                     fmt_fixed(a, se, 5));
        rows[n++] =
            (struct plot_row){.label = label, .series = series, .marks = mark, .n_marks = 1};
    }
    return n;
}

/* Shares have one scale and share a figure; every other response has a figure of its own. */
static void add_forest(struct doc *d, const struct report_model *m, const cJSON *instrument,
                       const cJSON *only)
{
    struct arena *a = &d->arena;
    struct plot_row *rows = arena_array(a, ROWS_MAX, sizeof(*rows));
    size_t n = 0;
    size_t series = 0;
    const cJSON *fit = NULL;
    cJSON_ArrayForEach(fit, member(instrument, "fits"))
    {
        size_t index = program_find_measure(m->program, words_member(fit, "response"));
        /* A response of an older plan may no longer be a measure. */
        bool is_share = index != INDEX_NONE && measure_is_share(&m->program->measures[index]);
        if (only == NULL ? is_share : fit == only) {
            n = forest_rows(a, fit, series, rows, n);
        }
        series++;
    }
    if (n == 0) {
        return;
    }
    const char *of = only == NULL ? "shares" : words_member(only, "response");
    const struct plot_rule zero = {0, "no difference", "zero"};
    struct plot_dots plot = {.head = {.title = "Fixed terms",
                                      .desc = "The table has the figures.",
                                      .x_title = "estimate"},
                             .rows = rows,
                             .n_rows = n,
                             .rules = &zero,
                             .n_rules = 1,
                             .band_from = (double)NAN};
    const char *caption =
        arena_printf(a, "Fixed terms on %s, with two standard errors to either side.",
                     only == NULL ? "the benchmark measures" : of);
    plot_dots(doc_figure(d, show_id(d, instrument, of), caption, &plot.head), &plot);
}

/* Shares together, then the others one by one. */
static void add_forests(struct doc *d, const struct report_model *m, const cJSON *instrument)
{
    add_forest(d, m, instrument, NULL);
    const cJSON *fit = NULL;
    cJSON_ArrayForEach(fit, member(instrument, "fits"))
    {
        size_t index = program_find_measure(m->program, words_member(fit, "response"));
        if (index != INDEX_NONE && !measure_is_share(&m->program->measures[index])) {
            add_forest(d, m, instrument, fit);
        }
    }
}

/* Words before numbers: a singular fit must not be read without its reason. */
void show_mixed(struct doc *d, const struct report_model *m, const cJSON *instrument)
{
    struct doc_list *list = doc_list(d);
    add_sentences(d, instrument, list, fit_words);
    add_sentences(d, instrument, list, say_dropped);
    add_tables(d, instrument);
    add_forests(d, m, instrument);
}
