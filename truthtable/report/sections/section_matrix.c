/*
 * The section "Difference matrix": every pair of conditions on every counted measure, as the
 * verdict lists them. The largest known difference is marked. The verdict leaves the list out above
 * a limit, and the section then says how many there are.
 */
#include <math.h>
#include <string.h>

#include "truthtable/report/document/fmt.h"
#include "truthtable/report/sections/sections.h"

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

/* A difference with its standard error. */
static struct doc_cell difference_words(struct arena *a, const cJSON *pair, double largest)
{
    double v = member_number(pair, "difference");
    double se = member_number(pair, "se");
    if (!isfinite(v)) {
        return (struct doc_cell){.text = "undetermined", .tone = TONE_WARN};
    }
    const char *text = fmt_signed(a, v, 4);
    if (isfinite(se)) {
        text = arena_printf(a, "%s \xc2\xb1 %s", text, fmt_fixed(a, se, 4));
    }
    const bool most = fabs(v) >= largest;
    return (struct doc_cell){.text = most ? arena_printf(a, "\xe2\x97\x86 %s", text) : text,
                             .tone = most ? TONE_LIT : TONE_PLAIN};
}

/* The same with both values as data. */
static struct doc_cell difference_cell(struct doc *d, const cJSON *pair, double largest)
{
    struct doc_cell cell = difference_words(&d->arena, pair, largest);
    doc_datum(d, &cell, "value", member_number(pair, "difference"));
    doc_datum(d, &cell, "se", member_number(pair, "se"));
    return cell;
}

/* Walks all measures' lists in step; each has the same pairs in the same order. */
static void add_table(struct doc *d, struct matrix *x)
{
    struct arena *a = &d->arena;
    struct doc_column columns[MEASURES_MAX + 1] = {
        {"Pair of conditions, a " FMT_MINUS " b", ALIGN_TEXT}};
    for (size_t i = 0; i < x->n; i++) {
        columns[i + 1] = (struct doc_column){member_text(x->pairs[i], "measure"), ALIGN_NUMBER};
    }
    struct doc_table *t =
        doc_table(d, "difference-matrix",
                  "The difference matrix: every pair of conditions on every counted measure, mean "
                  "\xc2\xb1 standard error over replicates. Marked: the largest absolute "
                  "difference that is known.",
                  columns, x->n + 1);
    for (size_t i = 0; i < x->n_pairs; i++) {
        struct doc_row *row = doc_row(d, t);
        row->cells[0].text = arena_printf(a, "%s " FMT_MINUS " %s", member_text(x->pairs[0], "a"),
                                          member_text(x->pairs[0], "b"));
        for (size_t k = 0; k < x->n; k++) {
            row->cells[k + 1] = difference_cell(d, x->pairs[k], x->largest);
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
