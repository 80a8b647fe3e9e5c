/*
 * Shows a course instrument: the gap at every mark, its slope and crossing, and the figure with
 * bands. Courses over the same marks share one figure, under the first of them, since what one
 * contrast does while the other does something else is what a reader compares; those that are more
 * than a figure holds share the next one.
 */
#include <math.h>
#include <string.h>

#include "base/xalloc.h"
#include "truthtable/report/document/fmt.h"
#include "truthtable/report/document/plot.h"
#include "truthtable/report/sections/instrument_blocks.h"
#include "truthtable/report/sections/json_columns.h"
#include "truthtable/report/verdict_words.h"

#define COURSES_MAX PLOT_LEGEND_MAX

static size_t n_marks(const cJSON *course)
{
    return (size_t)cJSON_GetArraySize(member(course, "marks"));
}

/* Whether two courses have their marks at the same places. */
static bool same_marks(const cJSON *a, const cJSON *b)
{
    const cJSON *x = member(a, "marks");
    const cJSON *y = member(b, "marks");
    if (n_marks(a) != n_marks(b)) {
        return false;
    }
    x = x == NULL ? NULL : x->child;
    y = y == NULL ? NULL : y->child;
    for (; x != NULL && y != NULL; x = x->next, y = y->next) {
        double difference = member_number(x, "at") - member_number(y, "at");
        if (!(fabs(difference) <= 0)) {
            return false;
        }
    }
    return true;
}

/* The courses that share the figure of this one, in the order of the report; how many. A figure
 * that is full before this one is met is that of others. */
static size_t courses_with(const struct report_model *m, const cJSON *of,
                           const cJSON *out[COURSES_MAX])
{
    size_t n = 0;
    bool met = false;
    const cJSON *instrument = NULL;
    cJSON_ArrayForEach(instrument, member(m->instruments, "instruments"))
    {
        if (strcmp(words_member(instrument, "kind"), "course") != 0 ||
            member_text(instrument, "why") != NULL || !same_marks(instrument, of)) {
            continue;
        }
        if (n == COURSES_MAX && met) {
            break;
        }
        n = n == COURSES_MAX ? 0 : n;
        met = met || instrument == of;
        out[n++] = instrument;
    }
    return n;
}

/* "active: dense_active - moe". */
static const char *name_of(struct arena *a, const cJSON *course)
{
    return arena_printf(a, "%s: %s " FMT_MINUS " %s", words_member(course, "contrast"),
                        words_member(course, "a"), words_member(course, "b"));
}

static struct plot_curve curve_of(struct arena *a, const cJSON *course, size_t series)
{
    size_t n = n_marks(course);
    double *values = arena_array(a, 4 * n + 1, sizeof(*values));
    size_t k = 0;
    const cJSON *mark = NULL;
    cJSON_ArrayForEach(mark, member(course, "marks"))
    {
        values[k] = member_number(mark, "at");
        values[n + k] = member_number(mark, "gap");
        values[2 * n + k] = member_number(mark, "ci_low");
        values[3 * n + k] = member_number(mark, "ci_high");
        k++;
    }
    return (struct plot_curve){.series = series,
                               .strong = true,
                               .xs = values,
                               .ys = &values[n],
                               .lows = &values[2 * n],
                               .highs = &values[3 * n],
                               .n = n,
                               .dots = true,
                               .tooltip = name_of(a, course)};
}

/* Of all courses over the same marks, under the first of them. */
static void add_figure(struct doc *d, const struct report_model *m, const cJSON *instrument)
{
    struct arena *a = &d->arena;
    const cJSON *courses[COURSES_MAX];
    struct plot_curve curves[COURSES_MAX];
    const char *names[COURSES_MAX];
    const char *desc = "";
    size_t n = courses_with(m, instrument, courses);
    if (n > 0 && courses[0] != instrument) {
        doc_paragraph(d, "Its curve is in the figure of the course %s, which has the same marks.",
                      words_member(courses[0], "name"));
        return;
    }
    for (size_t i = 0; i < n; i++) {
        curves[i] = curve_of(a, courses[i], i);
        names[i] = name_of(a, courses[i]);
        desc = arena_printf(a, "%s%s%s. %s", desc, i == 0 ? "" : " ", names[i],
                            words_member(courses[i], "reading"));
    }
    struct plot_lines plot = {
        .head = {.title = "Gaps over the run",
                 .desc = desc,
                 .x_title = "fraction of the horizon",
                 .y_title = "gap"},
        .curves = curves,
        .n_curves = n,
        .names = names,
        .n_names = n,
        .zero = true,
    };
    plot_lines(doc_figure(d, show_id(d, instrument, "gaps"),
                          "The gap at every mark of the run; bands and bars: the 95 % t interval "
                          "over replicates, at each mark by itself.",
                          &plot.head),
               &plot);
}

/* Marks as rows. */
static void add_marks(struct doc *d, const cJSON *instrument)
{
    static const struct doc_column columns[] = {
        {"At", ALIGN_TEXT, json_cell_short, "at", 4, NULL},
        JSON_TEXT("Measure", "measure"),
        JSON_ESTIMATE("Gap", "gap"),
        JSON_INTERVAL("95 % interval"),
        JSON_COUNT("n", "n"),
        JSON_TEXT("Favours", "favours"),
        JSON_REMARK,
    };
    struct doc_table *t =
        doc_table(d, show_id(d, instrument, "marks"),
                  arena_printf(&d->arena,
                               "The gap %s at every mark, a fraction of the horizon: the "
                               "verdict's own figures of the contrast.",
                               name_of(&d->arena, instrument)),
                  columns, ARRAY_LEN(columns));
    json_rows(d, t, member(instrument, "marks"));
}

static void course_cell(const struct doc_slot *s)
{
    const char *word = member_text(json_part(s), "course");
    s->cell->text = word == NULL ? FMT_NONE : word;
}

/* "0.42 [0.31, 0.66]", "not within range". */
static void crossing_cell(const struct doc_slot *s)
{
    const cJSON *crossing = member(json_part(s), "crossing");
    const char *why = member_text(crossing, "why");
    double low = member_number(crossing, "low");
    double high = member_number(crossing, "high");
    struct arena *a = s->arena;
    doc_datum(s, "at", member_number(crossing, "at"));
    doc_datum(s, "low", low);
    doc_datum(s, "high", high);
    if (why != NULL) {
        s->cell->text = why;
    } else if (!cJSON_IsTrue(member(crossing, "has_interval"))) {
        s->cell->text = fmt_short(a, member_number(crossing, "at"), 3);
    } else {
        s->cell->text =
            arena_printf(a, "%s [%s, %s]", fmt_short(a, member_number(crossing, "at"), 3),
                         isfinite(low) ? fmt_short(a, low, 3) : "at or before the first mark",
                         isfinite(high) ? fmt_short(a, high, 3) : "at or after the last mark");
    }
}

/* One row: what the course as a whole comes to. */
static void add_slope(struct doc *d, const cJSON *instrument)
{
    static const struct doc_column columns[] = {
        JSON_LABEL("Of"),
        JSON_ESTIMATE("Slope", "slope"),
        JSON_INTERVAL("95 % interval"),
        JSON_COUNT("n", "n"),
        COLUMN("The gap", ALIGN_TEXT, course_cell),
        COLUMN("Changes sign at", ALIGN_TEXT, crossing_cell),
        JSON_REMARK,
    };
    struct doc_table *t =
        doc_table(d, show_id(d, instrument, "slope"),
                  "Slope: of the least squares line through a replicate's gaps, over the whole "
                  "horizon; intervals over replicates. The change of sign is that of the mean gap, "
                  "straight between marks; its interval is where the gap's own holds 0.",
                  columns, ARRAY_LEN(columns));
    const struct json_row row = {name_of(&d->arena, instrument), member(instrument, "slope"),
                                 instrument};
    doc_row(d, t, &row);
}

/* The picture first, then its numbers. */
void show_course(struct doc *d, const struct report_model *m, const cJSON *instrument)
{
    add_figure(d, m, instrument);
    add_marks(d, instrument);
    add_slope(d, instrument);
}
