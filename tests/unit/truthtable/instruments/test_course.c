/* Slope and crossing of a gap, against numbers of a search over two million places; and the course
 * as an instrument of a program with made-up losses. */
#include <math.h>
#include <string.h>

#include "base/xalloc.h"
#include "tests/unit/check.h"
#include "tests/unit/truthtable/instruments/sample.h"
#include "truthtable/instruments/course.h"

#define PLACE 1e-6 /* of the search */
#define EXACT 1e-12

static const double AT[] = {0.1, 0.4, 1.0};

static void expect_near(double got, double want, double within)
{
    if (!(fabs(got - want) <= within)) {
        fail_msg("%.17g, not %.17g", got, want);
    }
}

static struct course course_of(const double *gaps, size_t n)
{
    return (struct course){.at = AT, .n_marks = 3, .gaps = gaps, .n = n, .scale = 1};
}

static void test_slope(void **state)
{
    static const double gaps[] = {-0.05, 0.01, 0.06, -0.04, 0.02, 0.05, -0.055, 0.012, 0.07};
    const struct course c = course_of(gaps, 3);
    const struct course_slope s = course_slope(&c);
    (void)state;
    expect_near(s.slope, 0.11412698412698412, EXACT);
    expect_near(s.se, 0.011616618707004431, EXACT);
    expect_near(s.low, 0.06414470793683281, EXACT);
    expect_near(s.high, 0.1641092603171354, EXACT);
}

/* Within the piece where the sign changes, and across a mark. */
static void test_crossing(void **state)
{
    static const double own[] = {-0.05, 0.01, 0.06, -0.04, 0.02, 0.05, -0.055, 0.012, 0.07};
    static const double across[] = {-0.05, 0.01, 0.06, -0.04, -0.02, 0.05, -0.055, 0.042, 0.07};
    const struct {
        const double *gaps;
        double at, low, high;
    } cases[] = {{own, 0.33262075, 0.25871095, 0.39609325},
                 {across, 0.345763, 0.22961035, 0.79218325}};
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CHECK_ROW("%zu", i);
        const struct course c = course_of(cases[i].gaps, 3);
        const struct course_crossing x = course_crossing(&c);
        assert_int_equal(x.n, 1);
        assert_true(x.has_interval);
        expect_near(x.at, cases[i].at, PLACE);
        expect_near(x.low, cases[i].low, PLACE);
        expect_near(x.high, cases[i].high, PLACE);
    }
}

/* Replicates that differ by far more than the gap: the interval holds 0 at every mark. */
static void test_open_interval(void **state)
{
    static const double gaps[] = {-1, 0, 1.1, 1, 0.1, -1, -0.1, 0, 0.2};
    const struct course c = course_of(gaps, 3);
    const struct course_crossing x = course_crossing(&c);
    (void)state;
    assert_int_equal(x.n, 1);
    assert_true(x.has_interval);
    assert_true(isnan(x.low));
    assert_true(isnan(x.high));
}

/* A gap that keeps its sign, touches 0, begins at 0, or changes its sign through 0 or twice. */
static void test_number_of_crossings(void **state)
{
    static const struct {
        double gaps[3];
        size_t n;
        double at;
    } cases[] = {{{1, 2, 3}, 0, (double)NAN},   {{1, 0, 2}, 0, (double)NAN},
                 {{0, 1, 2}, 0, (double)NAN},   {{-1, 0, 2}, 1, 0.4},
                 {{-1, 2, -1}, 2, (double)NAN}, {{-1, 1, 2}, 1, 0.25},
                 {{-1, 0, 0}, 0, (double)NAN},  {{-2, -2, 1}, 1, 0.8}};
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CHECK_ROW("%zu", i);
        const struct course c = course_of(cases[i].gaps, 1);
        const struct course_crossing x = course_crossing(&c);
        assert_int_equal(x.n, cases[i].n);
        assert_true(isnan(cases[i].at) ? isnan(x.at) : fabs(x.at - cases[i].at) < EXACT);
        assert_false(x.has_interval); /* one replicate */
    }
}

/* Replicates that agree to rounding have no spread: neither interval is one of width 0. */
static void test_no_spread(void **state)
{
    static const double gaps[] = {-0.5, 0.25, 1, -0.5, 0.25 + 1e-16, 1};
    const struct course c = course_of(gaps, 2);
    const struct course_slope s = course_slope(&c);
    const struct course_crossing x = course_crossing(&c);
    (void)state;
    assert_true(isfinite(s.slope));
    assert_true(isnan(s.se) && isnan(s.low) && isnan(s.high));
    expect_near(x.at, 0.3, EXACT);
    assert_false(x.has_interval);
}

/* ---- as an instrument ---- */

#define COURSE                                                                                     \
    "[instrument.course]\ncontrast = \"arch\"\nmarks = { loss = 1, text = 0.1, code = 0.4 }\n"     \
    "[forecast]\nwidens = { condition = \"instrument.course.widens\", confidence = 0.9 }\n"

/* moe - dense at 0.1, 0.4 and 1 are the gaps given, [replicate][mark]. */
static void put_gaps(struct sample_program *t, const double gaps[9])
{
    static const char *const measures[] = {"text", "code", "loss"};
    for (size_t k = 0; k < 3; k++) {
        sample_cells(t, measures[k],
                     (const double[6]){1, 2, 3, 1 + gaps[k], 2 + gaps[3 + k], 3 + gaps[6 + k]});
    }
}

static cJSON *computed_of(const double gaps[9])
{
    struct sample_program t;
    sample_open(&t, TOLD_PROGRAM COURSE);
    put_gaps(&t, gaps);
    cJSON *computed = sample_compute(&t);
    sample_close(&t);
    return computed;
}

#define INSTRUMENT "instruments.course."

/* Marks come in the order of their places; a gap is favored by the arm with the lower loss. */
static void test_marks(void **state)
{
    static const double gaps[] = {-0.05, 0.01, 0.06, -0.04, 0.02, 0.05, -0.055, 0.012, 0.07};
    cJSON *computed = computed_of(gaps);
    (void)state;
    sample_expect_text(computed, INSTRUMENT "marks.0.measure", "text");
    sample_expect_text(computed, INSTRUMENT "marks.2.measure", "loss");
    sample_expect(computed, INSTRUMENT "marks.0.gap", -0.145 / 3, 1e-12);
    sample_expect(computed, INSTRUMENT "marks.0.n", 3, 0);
    sample_expect_text(computed, INSTRUMENT "marks.0.favours", "moe");
    sample_expect_text(computed, INSTRUMENT "marks.2.favours", "dense");
    sample_expect_text(computed, INSTRUMENT "course", "crosses");
    sample_expect(computed, INSTRUMENT "slope.slope", 0.11412698412698412, 1e-12);
    sample_expect(computed, INSTRUMENT "slope.ci_high", 0.1641092603171354, 1e-9);
    sample_expect(computed, INSTRUMENT "crossing.low", 0.25871095, 1e-5);
    sample_expect_truth(computed, INSTRUMENT "fields.crosses", true);
    sample_expect_truth(computed, INSTRUMENT "fields.widens", false);
    sample_expect(computed, INSTRUMENT "fields.crossing", 0.33262075, 1e-5);
    sample_expect_truth(computed, "forecasts.widens.outcome", false);
    cJSON_Delete(computed);
}

/* The size of the gap decides, whatever its sign. */
static void test_widens_and_narrows(void **state)
{
    static const struct {
        double gaps[9];
        const char *course;
        bool widens, narrows;
    } cases[] = {
        {{0.01, 0.02, 0.06, 0.02, 0.03, 0.065, 0.01, 0.025, 0.062}, "widens", true, false},
        {{-0.01, -0.02, -0.06, -0.02, -0.03, -0.065, -0.01, -0.025, -0.062}, "widens", true, false},
        {{0.06, 0.02, 0.01, 0.065, 0.03, 0.02, 0.062, 0.025, 0.01}, "narrows", false, true},
        {{-0.06, -0.02, -0.01, -0.065, -0.03, -0.02, -0.062, -0.025, -0.01},
         "narrows",
         false,
         true},
        {{0.01, 0.02, 0.03, 0.03, 0.02, 0.01, 0.02, 0.01, 0.02}, "unresolved", false, false},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CHECK_ROW("%zu", i);
        cJSON *computed = computed_of(cases[i].gaps);
        sample_expect_text(computed, INSTRUMENT "course", cases[i].course);
        sample_expect_truth(computed, INSTRUMENT "fields.widens", cases[i].widens);
        sample_expect_truth(computed, INSTRUMENT "fields.narrows", cases[i].narrows);
        sample_expect_truth(computed, INSTRUMENT "fields.crosses", false);
        sample_expect_text(computed, INSTRUMENT "crossing.why", "not within range");
        sample_expect_null(computed, INSTRUMENT "fields.crossing");
        cJSON_Delete(computed);
    }
}

/* Without a value at one mark the others are shown, and nothing is said of the course. */
static void test_missing_mark(void **state)
{
    struct sample_program t;
    (void)state;
    sample_open(&t, TOLD_PROGRAM COURSE);
    sample_cells(&t, "loss", (const double[6]){1, 2, 3, 1.5, 2.6, 3.7});
    cJSON *computed = sample_compute(&t);
    sample_expect_null(computed, INSTRUMENT "marks.0.gap");
    sample_expect(computed, INSTRUMENT "marks.2.gap", 0.6, 1e-12);
    sample_expect_null(computed, INSTRUMENT "course");
    sample_expect_null(computed, INSTRUMENT "slope.slope");
    sample_expect_text(computed, INSTRUMENT "slope.why", "text: the record is missing");
    sample_expect_null(computed, INSTRUMENT "fields.widens");
    sample_expect_null(computed, INSTRUMENT "fields.first");
    sample_expect(computed, INSTRUMENT "fields.last", 0.6, 1e-12);
    sample_expect_null(computed, "forecasts.widens.outcome");
    cJSON_Delete(computed);
    sample_close(&t);
}

/* A task that was blocked leaves with its partner: slope and marks are over the other two. */
static void test_excluded_replicate(void **state)
{
    static const double gaps[] = {0.01, 0.02, 0.06, 0.02, 0.03, 0.065, 0.01, 0.025, 0.062};
    struct sample_program t;
    (void)state;
    sample_open(&t, TOLD_PROGRAM COURSE "[exclusion]\nbudget = 0.5\n");
    put_gaps(&t, gaps);
    evidence_set_task(&t.e, 5, 0, TASK_END_BLOCKED, "oom");
    cJSON *computed = sample_compute(&t);
    sample_expect(computed, INSTRUMENT "marks.0.n", 2, 0);
    sample_expect(computed, INSTRUMENT "slope.n", 2, 0);
    sample_expect(computed, INSTRUMENT "slope.left_out", 1, 0);
    sample_expect(computed, INSTRUMENT "slope.slope",
                  (0.05714285714285713 + 0.05119047619047619) / 2, 1e-9);
    cJSON_Delete(computed);
    sample_close(&t);
}

#define TWO_SETTINGS                                                                               \
    "[program]\nname = \"computed\"\nschema = 1\n"                                                 \
    "[[factor]]\nname = \"arch\"\nlevels = [\"dense\", \"moe\"]\n"                                 \
    "[[factor]]\nname = \"lr\"\nlevels = [1, 2]\n"                                                 \
    "[[factor]]\nname = \"seed\"\nlevels = [1, 2, 3]\nreplicate = true\n"                          \
    "[stage.train]\ncommand = [\"./w\"]\n[measure]\n"                                              \
    "loss = { metric = \"train.loss\", better = \"lower\" }\n"                                     \
    "text = { metric = \"train.loss:text\", better = \"lower\", counted = false }\n"               \
    "code = { metric = \"train.loss:code\", better = \"lower\", counted = false }\n"               \
    "[contrast]\narch = { between = { arch = [\"moe\", \"dense\"] } }\n"                           \
    "[[input]]\nname = \"i\"\nlevels = [[\"a\", \"contrast.arch[loss].mean > 0\"], [\"b\", "       \
    "\"otherwise\"]]\n"                                                                            \
    "[table]\ninputs = [\"i\"]\nrows = [[\"a\", \"A\"], [\"b\", \"B\"]]\n"                         \
    "[outcome]\nA = { prior = 0.5, title = \"a\" }\nB = { prior = 0.4, title = \"b\" }\n"          \
    "[exclusion]\nbudget = 0.5\n"

/* One setting has no gap and the other one of its place. A replicate that lost a pair of the latter
 * would have the course of the former: it is left out as a whole, and the next one begins at 0. */
static void test_replicate_that_lost_a_setting(void **state)
{
    static const char *const measures[] = {"text", "code", "loss"};
    struct sample_program t;
    (void)state;
    sample_open(&t, TWO_SETTINGS COURSE);
    for (size_t c = 0; c < 12; c++) {
        const size_t seed = c % 3 + 1;
        for (size_t k = 0; k < 3; k++) {
            const double gap = c < 9 ? 0 : AT[k] + 0.001 * (double)(seed * k);
            sample_metric(&t, t.p->cells[c].name, measures[k], 1 + gap);
        }
    }
    evidence_set_task(&t.e, 9, 0, TASK_END_BLOCKED, "oom");
    cJSON *computed = sample_compute(&t);
    sample_expect(computed, INSTRUMENT "slope.n", 2, 0);
    sample_expect(computed, INSTRUMENT "slope.left_out", 1, 0);
    sample_expect(computed, INSTRUMENT "slope.slope", 0.5 + 0.0005 * 2.5 * 0.9 / 0.42, 1e-9);
    const char *reading = sample_at(computed, INSTRUMENT "reading")->valuestring;
    assert_non_null(strstr(reading, "1 replicate that lost a pair is left out of both."));
    cJSON_Delete(computed);
    sample_close(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_slope),         cmocka_unit_test(test_crossing),
        cmocka_unit_test(test_open_interval), cmocka_unit_test(test_number_of_crossings),
        cmocka_unit_test(test_no_spread),     cmocka_unit_test(test_replicate_that_lost_a_setting),
        cmocka_unit_test(test_marks),         cmocka_unit_test(test_widens_and_narrows),
        cmocka_unit_test(test_missing_mark),  cmocka_unit_test(test_excluded_replicate),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
