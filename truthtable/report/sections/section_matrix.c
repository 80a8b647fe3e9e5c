/*
 * The section "Difference matrix": every pair of conditions on every counted measure, as the
 * verdict lists them. The largest known difference is marked. The verdict leaves the list out above
 * a limit, and the section then says how many there are.
 */
#include <math.h>
#include <string.h>

#include "truthtable/report/document/fmt.h"
#include "truthtable/report/sections/sections.h"
#include "truthtable/report/verdict_words.h"

#define MEASURES_MAX ((size_t)16)

/* The counted measures, which the verdict lists one after another, each with the same pairs in the
 * same order. */
struct matrix {
    const cJSON *pairs[MEASURES_MAX]; /* the first pair of each measure */
    size_t n;
    size_t n_pairs;
    size_t n_open; /* differences that are undetermined */
    double largest;
};

/* Whether two pairs agree in a member. */
static bool same_text(const cJSON *a, const cJSON *b, const char *key)
{
    const char *left = member_text(a, key);
    const char *right = member_text(b, key);
    return left != NULL && right != NULL && strcmp(left, right) == 0;
}

/* Finds where each measure's pairs begin, and the largest difference. */
static struct matrix matrix_of(const cJSON *list)
{
    struct matrix x = {.n = 0, .largest = -1};
    const cJSON *pair = NULL;
    cJSON_ArrayForEach(pair, list)
    {
        bool is_new = x.n == 0 || !same_text(pair, x.pairs[x.n - 1], "measure");
        if (is_new && x.n == MEASURES_MAX) {
            break;
        }
        if (is_new) {
            x.pairs[x.n++] = pair;
        }
        x.n_pairs += x.n == 1 ? 1 : 0;
        double size = fabs(member_number(pair, "difference"));
        x.n_open += isfinite(size) ? 0 : 1;
        x.largest = isfinite(size) ? fmax(x.largest, size) : x.largest;
    }
    return x;
}

/* The row is the matrix at the pair that it has reached. */
static void pair_cell(const struct doc_slot *s)
{
    const cJSON *pair = ((const struct matrix *)s->row)->pairs[0];
    s->cell->text = arena_printf(s->arena, "%s " FMT_MINUS " %s", words_member(pair, "a"),
                                 words_member(pair, "b"));
}

/* A difference on the measure `n` with its standard error; the largest is marked. */
static void difference_cell(const struct doc_slot *s)
{
    const struct matrix *x = s->row;
    const cJSON *pair = x->pairs[s->column->n];
    const double v = member_number(pair, "difference");
    const double se = member_number(pair, "se");
    const bool most = isfinite(v) && fabs(v) >= x->largest;
    const char *text = isfinite(v) ? fmt_signed(s->arena, v, 4) : "undetermined";
    if (isfinite(v) && isfinite(se)) {
        text = arena_printf(s->arena, "%s \xc2\xb1 %s", text, fmt_fixed(s->arena, se, 4));
    }
    doc_number(s, most ? arena_printf(s->arena, "\xe2\x97\x86 %s", text) : text, v);
    doc_datum(s, "se", se);
    s->cell->tone = !isfinite(v) ? TONE_WARN : most ? TONE_LIT : TONE_PLAIN;
}

/* Walks all measures' lists in step; each has the same pairs in the same order. */
static void add_table(struct doc *d, struct matrix *x)
{
    static const struct doc_column pair =
        COLUMN("Pair of conditions, a " FMT_MINUS " b", ALIGN_TEXT, pair_cell);
    struct doc_columns columns = doc_columns(d, &pair, 1);
    for (size_t i = 0; i < x->n; i++) {
        doc_column_add(d, &columns, words_member(x->pairs[i], "measure"), difference_cell)->n =
            (int)i;
    }
    struct doc_table *t =
        doc_table(d, "difference-matrix",
                  "The difference matrix: every pair of conditions on every counted measure, mean "
                  "\xc2\xb1 standard error over replicates. Marked: the largest absolute "
                  "difference that is known.",
                  columns.items, columns.n);
    for (size_t i = 0; i < x->n_pairs; i++) {
        (void)doc_row(d, t, x);
        for (size_t k = 0; k < x->n; k++) {
            x->pairs[k] = x->pairs[k] == NULL ? NULL : x->pairs[k]->next;
        }
    }
}

/* Nothing at all for a program with one condition. */
void section_matrix(struct doc *d, const struct report_model *m)
{
    const cJSON *pairs = member(m->verdict, "pairs");
    const cJSON *list = member(pairs, "list");
    double n = member_number(pairs, "n");
    if (!(n > 0)) {
        return;
    }
    doc_section(d, "difference-matrix", "Difference matrix");
    struct matrix x = matrix_of(list);
    if (x.n == 0) {
        doc_paragraph(d, "Left out: %s differences are more than a table can show.",
                      fmt_count(&d->arena, (int64_t)n));
        return;
    }
    struct arena *a = &d->arena;
    const char *open = x.n_open == 0 ? ""
                                     : arena_printf(a, ", %s of them undetermined",
                                                    fmt_count(a, (int64_t)x.n_open));
    const char *largest =
        x.largest < 0 ? ""
                      : arena_printf(a, "; the largest%s is %s in absolute value",
                                     x.n_open == 0 ? "" : " known", fmt_fixed(a, x.largest, 4));
    doc_paragraph(d,
                  "%s between conditions%s%s. These inform; only the contrasts above reach the "
                  "table.",
                  fmt_plural(a, (int64_t)n, "difference", "differences"), open, largest);
    add_table(d, &x);
}
