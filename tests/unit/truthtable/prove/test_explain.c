/* What can reach each row: contradictions cut down to what they need, groups of inputs, levels
 * without a use, and the table told row by row. */
#include <stdlib.h>
#include <string.h>

#include "base/json/json.h"
#include "base/xalloc.h"
#include "tests/unit/check.h"
#include "tests/unit/truthtable/fixture.h"
#include "truthtable/prove/check_explain.h"
#include "truthtable/prove/check_parts.h"

#define OUTCOMES                                                                                   \
    "[outcome]\nO1 = { prior = 0.5, title = \"one\" }\nO2 = { prior = 0.4, title = \"two\" }\n"

struct checked {
    struct plan_program *p;
    struct diag diag;
    struct check_report r;
};

/* Two proportions, three arms of which one is in no contrast unless `all_arms`. */
static struct plan_program *program_of(const char *rest, bool all_arms)
{
    char *text = xasprintf(
        "[program]\nname = \"t\"\nschema = 1\nquestion = \"?\"\n"
        "[[factor]]\nname = \"arch\"\nlevels = [\"x\", \"y\", \"z\"]\n"
        "[[factor]]\nname = \"seed\"\nlevels = [1, 2]\nreplicate = true\n"
        "[stage.train]\ncommand = [\"w\"]\nparams = { a = \"$arch\", s = \"$seed\" }\n"
        "[measure]\nq = { metric = \"train.q\", items = 1000, chance = 0.25, floor = 0.3 }\n"
        "p = { metric = \"train.p\", items = 1000, chance = 0.25 }\n"
        "[contrast]\nc = { between = { arch = [\"x\", \"y\"] }, over = \"cleared\" }\n%s"
        "[counter]\nk = { contrast = \"c\", clears = \"every_cell\", binds = true }\n%s" OUTCOMES,
        all_arms
            ? "d = { between = { arch = [\"z\", \"y\"] } }\ne = { of = \"c\", minus = \"d\" }\n"
            : "",
        rest);
    struct plan_program *p = fixture_program(text);
    free(text);
    return p;
}

static void run(struct checked *c, struct plan_program *p)
{
    struct err err;
    c->p = p;
    diag_init(&c->diag, "grid.toml");
    if (check_run(p, NULL, &c->r, &c->diag, &err) != 0) {
        fail_msg("%s", err.msg);
    }
}

static void finish(struct checked *c)
{
    check_release(&c->r);
    diag_release(&c->diag);
    program_free(c->p);
}

static size_t count_words(const struct checked *c, const char *words)
{
    size_t n = 0;
    for (size_t i = 0; i < c->diag.n_items; i++) {
        n += strstr(c->diag.items[i].msg, words) != NULL ? 1 : 0;
    }
    return n;
}

/* All combinations of two-level inputs named i0, i1, ...; row 0 leads to O1, the others to O2. */
static char *inputs_of(const char *const *conditions, size_t n)
{
    struct strbuf sb = STRBUF_INIT;
    for (size_t i = 0; i < n; i++) {
        strbuf_addf(
            &sb, "[[input]]\nname = \"i%zu\"\nlevels = [[\"a\", \"%s\"], [\"b\", \"otherwise\"]]\n",
            i, conditions[i]);
    }
    strbuf_adds(&sb, "[table]\ninputs = [");
    for (size_t i = 0; i < n; i++) {
        strbuf_addf(&sb, "%s\"i%zu\"", i > 0 ? ", " : "", i);
    }
    strbuf_adds(&sb, "]\nrows = [\n");
    for (size_t r = 0; r < (size_t)1 << n; r++) {
        strbuf_addc(&sb, '[');
        for (size_t i = 0; i < n; i++) {
            strbuf_adds(&sb, (r >> (n - 1 - i) & 1U) != 0 ? "\"b\", " : "\"a\", ");
        }
        strbuf_addf(&sb, "\"O%d\"],\n", r == 0 ? 1 : 2);
    }
    strbuf_adds(&sb, "]\n");
    return strbuf_detach(&sb);
}

/* The contradiction is between the first and the last input, whatever stands between them. */
static void test_conflict(void **state)
{
    static const char *const conditions[] = {"contrast.c[q].mean > 0.5", "contrast.c[p].mean > 0",
                                             "fact.train.x > 1.1", "contrast.c[q].mean < 0.2"};
    struct checked c;
    (void)state;
    char *rest = inputs_of(conditions, ARRAY_LEN(conditions));
    run(&c, program_of(rest, true));
    free(rest);
    assert_int_equal(c.r.n_conflicts, 1);
    const size_t *levels = c.r.conflicts[0].levels;
    assert_true(levels[0] == 0 && levels[1] == INDEX_NONE && levels[2] == INDEX_NONE &&
                levels[3] == 0);
    for (size_t k = 0; k < c.p->n_rows; k++) {
        bool impossible = c.p->rows[k].levels[0] == 0 && c.p->rows[k].levels[3] == 0;
        assert_int_equal(c.r.rows[k].reach, impossible ? REACH_IMPOSSIBLE : REACH_WITNESSED);
    }
    assert_int_equal(count_words(&c, "outcome O1 is impossible"), 1);
    cJSON *told = check_explain(&c.r, SIZE_MAX);
    const cJSON *first = cJSON_GetArrayItem(json_member(told, "rows"), 0);
    assert_string_equal(json_member(first, "why")->valuestring,
                        "i0 a (contrast.c[q].mean > 0.5) and i3 a (contrast.c[q].mean < 0.2) never "
                        "hold together");
    cJSON_Delete(told);
    finish(&c);
}

/* Thresholds of one number: a row can fire exactly when its levels are in order. */
static void test_thresholds(void **state)
{
    enum { N = 11 };
    char *conditions[N];
    struct checked c;
    (void)state;
    for (int i = 0; i < N; i++) {
        conditions[i] = xasprintf("contrast.c[q].mean > %g", (i - 5) / 10.0);
    }
    char *rest = inputs_of((const char *const *)conditions, N);
    run(&c, program_of(rest, true));
    assert_false(c.r.proofs_ended);
    for (size_t k = 0; k < c.p->n_rows; k++) {
        bool ordered = true;
        for (size_t i = 0; i + 1 < N; i++) {
            ordered = ordered && c.p->rows[k].levels[i] <= c.p->rows[k].levels[i + 1];
        }
        if ((c.r.rows[k].reach == REACH_IMPOSSIBLE) == ordered) {
            fail_msg("row %zu: %d", k + 1, c.r.rows[k].reach);
        }
    }
    for (size_t i = 0; i < c.r.n_conflicts; i++) {
        size_t n = 0;
        for (size_t k = 0; k < N; k++) {
            n += c.r.conflicts[i].levels[k] != INDEX_NONE ? 1 : 0;
        }
        assert_int_equal(n, 2);
    }
    for (int i = 0; i < N; i++) {
        free(conditions[i]);
    }
    free(rest);
    finish(&c);
}

/* Which inputs belong together: the same digit, the same group. */
static void test_groups(void **state)
{
    static const struct {
        const char *conditions[3];
        const char *groups;
    } cases[] = {
        {{"contrast.c[q].mean > 0", "contrast.c[p].mean > 0", "contrast.d[q].mean > 0"}, "012"},
        {{"contrast.c[q].mean > 0", "contrast.c[p].mean > 0", "contrast.c[q].ci_low > 0"}, "010"},
        {{"contrast.c.mean > 0", "counter.k == 1", "contrast.c[q].mean > 0"}, "001"},
        {{"contrast.c[q].mean > 0", "contrast.e[q].mean > 0", "contrast.d[q].mean > 0"}, "000"},
        {{"contrast.c[q].mean > 0", "contrast.e[p].mean > 0", "contrast.d[q].mean > 0"}, "012"},
        {{"measure.q['x'].mean > 0.3", "fact.train.x > 3", "measure.q['y'].mean > 0.3"}, "010"},
        {{"rank(measure.q, arch, 'x') == 1", "counter.k == 1", "measure.q['y'].mean > 0.3"}, "010"},
        {{"trend(measure.q, arch).slope > 0", "counter.k == 1", "rank(measure.q, arch, 'y') > 1"},
         "010"},
        {{"contrast.c[q].mean > 0 or fact.train.x > 1", "contrast.c[p].mean > contrast.c[q].mean",
          "counter.k == 1"},
         "001"},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CHECK_ROW("%s", cases[i].conditions[0]);
        char *rest = inputs_of(cases[i].conditions, 3);
        struct plan_program *p = program_of(rest, true);
        struct rules rules;
        size_t group[3];
        char found[4] = "";
        fixture_rules(p, &rules);
        (void)related_groups(&rules, group);
        for (size_t k = 0; k < 3; k++) {
            found[k] = (char)('0' + group[k]);
        }
        assert_string_equal(found, cases[i].groups);
        rules_release(&rules);
        program_free(p);
        free(rest);
    }
}

static void test_use(void **state)
{
    static const struct {
        const char *condition;
        bool all_arms;
        size_t n_factor;
        size_t n_input;
    } cases[] = {
        {"contrast.c[q].mean > 0", true, 0, 0},
        {"contrast.c[q].mean > 0", false, 1, 0},
        {"measure.q['z'].mean > 0.3", false, 0, 0},
        {"ratio(fact.train.x, arch, 'z', 'y') > 1", false, 0, 0},
        {"fact.train.x > 1", false, 0, 0},
        {"rank(measure.q, arch, 'x') == 1", false, 0, 0},
        {"trend(measure.q, arch).slope > 0", false, 0, 0},
        {"rank(measure.q, arch, 'x') > 3", true, 0, 1},
        {"rank(measure.q, arch, 'x') >= 1", true, 0, 1}, /* then `otherwise` never holds */
        {"rank(measure.q, arch, 'x') + rank(measure.q, arch, 'y') + rank(measure.q, arch, 'z') > 6",
         true, 0, 1},
        {"trend(measure.q, arch).slope > 1", true, 0, 1},
        {"measure.q['x'].mean > 1", true, 0, 1},
        {"measure.q['x'].mean >= 0", true, 0, 1}, /* then `otherwise` never holds */
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CHECK_ROW("%s", cases[i].condition);
        struct checked c;
        char *rest = inputs_of(&cases[i].condition, 1);
        run(&c, program_of(rest, cases[i].all_arms));
        size_t n_factor = count_words(&c, "level \"z\" of arch has no use");
        size_t n_input = count_words(&c, "of input i0 has no use");
        if (n_factor != cases[i].n_factor || n_input != cases[i].n_input ||
            count_words(&c, "no use") != n_factor + n_input) {
            fail_msg("%s: %zu and %zu", cases[i].condition, n_factor, n_input);
        }
        free(rest);
        finish(&c);
    }
}

/* Levels that leave a gap, so that an outcome fires beside another and never alone. */
static void test_uncovered(void **state)
{
    static const struct {
        const char *levels;
        size_t n_uncovered;
        size_t n_beside; /* outcomes that no scores bind */
        size_t n_unfired;
    } cases[] = {
        {"[\"a\", \"contrast.c[q].mean > 0\"], [\"b\", \"otherwise\"]", 0, 0, 0},
        {"[\"a\", \"contrast.c[q].mean > 0\"], [\"b\", \"contrast.c[q].mean <= 0\"]", 0, 0, 0},
        {"[\"a\", \"rank(measure.q, arch, 'x') == 1\"], "
         "[\"b\", \"rank(measure.q, arch, 'x') >= 2\"]",
         0, 0, 0},
        {"[\"a\", \"counter.k >= 2\"], [\"b\", \"counter.k == 0\"]", 1, 1, 0}, /* one measure */
        {"[\"a\", \"contrast.c[q].mean * contrast.c[q].mean < -1\"], [\"b\", \"otherwise\"]", 0, 0,
         1},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CHECK_ROW("%s", cases[i].levels);
        struct checked c;
        char *rest = xasprintf("[[input]]\nname = \"i\"\nlevels = [%s]\n[table]\ninputs = [\"i\"]\n"
                               "rows = [[\"a\", \"O1\"], [\"b\", \"O2\"]]\n",
                               cases[i].levels);
        run(&c, program_of(rest, true));
        assert_int_equal(count_words(&c, "input i: none of its levels holds under some scores"),
                         cases[i].n_uncovered);
        assert_int_equal(count_words(&c, "outcome O1: no scores were found that bind it"),
                         cases[i].n_beside);
        assert_int_equal(count_words(&c, "outcome O1: no scores were found that fire"),
                         cases[i].n_unfired);
        assert_int_equal(count_words(&c, "outcome O2"), 0);
        assert_int_equal(count_words(&c, "not shown to cover every case"), 0);
        free(rest);
        finish(&c);
    }
}

static void expect_line(const cJSON *v, const char *wanted)
{
    struct strbuf line = STRBUF_INIT;
    struct err err;
    assert_int_equal(json_line(v, &line, &err), 0);
    assert_string_equal(line.buf, wanted);
    strbuf_release(&line);
}

static void test_paper(void **state)
{
    struct checked c;
    (void)state;
    run(&c, fixture_program_file("tests/unit/prereg/fixtures/below_the_floor.toml"));
    assert_int_equal(count_words(&c, "no use"), 0);
    cJSON *told = check_explain(&c.r, 3);
    expect_line(json_member(told, "witnessed_alone"), "12");
    expect_line(json_member(told, "witnessed"), "4");
    assert_int_equal(cJSON_GetArraySize(json_member(told, "rows")), 6); /* 1, 2, 3, 4, 8, 12 */
    const cJSON *row = cJSON_GetArrayItem(json_member(told, "rows"), 3);
    expect_line(json_member(row, "row"), "4");
    expect_line(json_member(row, "levels"), "[\"decisive\",\"dense\",\"0\"]");
    expect_line(json_member(row, "reach"), "\"witnessed\"");
    expect_line(json_member(row, "fires_with"), "[8,12,16]");
    expect_line(json_member(row, "states"), "31"); /* 2 x 2 x 8 sets, less itself */
    expect_line(json_member(row, "needs"), "[\"cleared\"]");
    expect_line(json_member(row, "why"), "null");
    assert_memory_equal(json_member(row, "scores")->valuestring, "mmlu: 0.", 8);
    row = cJSON_GetArrayItem(json_member(told, "rows"), 0);
    expect_line(json_member(row, "fires_with"), "[]");
    expect_line(json_member(row, "needs"), "[\"magnitude\",\"direction\",\"cleared\"]");
    cJSON_Delete(told);
    finish(&c);
}

/* A table with a hole is told as far as it goes. */
static void test_not_whole(void **state)
{
    struct checked c;
    (void)state;
    run(&c, program_of("[[input]]\nname = \"i\"\nlevels = [[\"a\", \"counter.k == 1\"], [\"b\", "
                       "\"otherwise\"]]\n[table]\ninputs = [\"i\"]\nrows = [[\"a\", \"O1\"]]\n",
                       true));
    cJSON *told = check_explain(&c.r, SIZE_MAX);
    expect_line(json_member(told, "total"), "1");
    expect_line(json_member(cJSON_GetArrayItem(json_member(told, "rows"), 0), "needs"), "null");
    cJSON_Delete(told);
    finish(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_conflict),  cmocka_unit_test(test_thresholds),
        cmocka_unit_test(test_groups),    cmocka_unit_test(test_use),
        cmocka_unit_test(test_paper),     cmocka_unit_test(test_not_whole),
        cmocka_unit_test(test_uncovered),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
