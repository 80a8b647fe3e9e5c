/* The proofs: totality, partial states, witnesses, impossibility, what is held fixed; and exact
 * linear systems. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json/json.h"
#include "base/xalloc.h"
#include "tests/unit/check.h"
#include "tests/unit/truthtable/fixture.h"
#include "truthtable/prove/check.h"
#include "truthtable/prove/rational.h"

struct checked {
    struct plan_program *p;
    struct diag diag;
    struct check_report r;
};

static void run(struct checked *c, struct plan_program *p, const char *describe)
{
    struct err err;
    cJSON *said = NULL;
    c->p = p;
    diag_init(&c->diag, "grid.toml");
    if (describe != NULL) {
        assert_int_equal(json_parse(describe, strlen(describe), &said, &err), 0);
    }
    if (check_run(p, said, &c->r, &c->diag, &err) != 0) {
        fail_msg("%s", err.msg);
    }
    cJSON_Delete(said);
}

static void finish(struct checked *c)
{
    check_release(&c->r);
    diag_release(&c->diag);
    program_free(c->p);
}

static void expect_error(const struct checked *c, const char *message)
{
    for (size_t i = 0; i < c->diag.n_items; i++) {
        if (c->diag.items[i].level == DIAG_ERROR && strstr(c->diag.items[i].msg, message) != NULL) {
            return;
        }
    }
    diag_print(&c->diag, stderr);
    fail_msg("no error \"%s\"", message);
}

/* A program of one proportion with a floor; inputs, table and outcomes as given. */
static struct plan_program *program_of(const char *rest)
{
    struct strbuf sb = STRBUF_INIT;
    strbuf_adds(
        &sb,
        "[program]\nname = \"t\"\nschema = 1\nquestion = \"?\"\n"
        "[[factor]]\nname = \"arch\"\nlevels = [\"x\", \"y\"]\n"
        "[[factor]]\nname = \"seed\"\nlevels = [1, 2]\nreplicate = true\n"
        "[stage.train]\ncommand = [\"prereg-train\"]\nparams = { a = \"$arch\", s = \"$seed\" }\n"
        "[measure]\nq = { metric = \"train.q\", items = 1000, chance = 0.25, floor = 0.3 }\n"
        "[contrast]\nc = { between = { arch = [\"x\", \"y\"] }, over = \"cleared\" }\n"
        "[counter]\nk = { contrast = \"c\", clears = \"every_cell\", binds = true }\n");
    strbuf_adds(&sb, rest);
    struct plan_program *p = fixture_program(sb.buf);
    strbuf_release(&sb);
    return p;
}

#define OUTCOMES                                                                                   \
    "[outcome]\nO1 = { prior = 0.5, title = \"one\" }\nO2 = { prior = 0.4, title = \"two\" }\n"

static void test_holes_and_clashes(void **state)
{
    struct checked c;
    (void)state;
    run(&c,
        program_of("[[input]]\nname = \"i\"\nlevels = [[\"a\", \"contrast.c[q].mean > 0\"], "
                   "[\"b\", \"otherwise\"]]\n"
                   "[[input]]\nname = \"j\"\nlevels = [[\"u\", \"counter.k == 1\"], [\"v\", "
                   "\"counter.k == 0\"]]\n"
                   "[table]\ninputs = [\"i\", \"j\"]\n"
                   "rows = [[\"a\", \"u\", \"O1\"], [\"a\", \"u\", \"O2\"], [\"b\", \"v\", "
                   "\"O2\"], [\"b\", \"u\", \"O2\"]]\n" OUTCOMES),
        NULL);
    assert_int_equal(c.r.table.n_combinations, 4);
    assert_int_equal(c.r.table.n_holes, 1);
    assert_int_equal(c.r.table.n_clashes, 1);
    expect_error(&c, "the table has no row for i a, j v");
    expect_error(&c, "rows 1 and 2 are both for i a, j u");
    finish(&c);
}

static void test_impossible(void **state)
{
    /* Each level "a" can be reached by no complete records; the outcome that hangs on it is an
     * error. */
    static const char *const conditions[] = {
        "counter.k == 2",
        "counter.k > 1",
        "0 < counter.k < 1",
        "counter.k >= 1 and contrast.c.max_abs >= 4", /* percent for a share */
        "counter.k >= 1 and contrast.c.mean > 0 and contrast.c.mean < -0",
        "counter.k >= 1 and contrast.c.max_abs < contrast.c.mean_abs",
        "counter.k >= 1 and contrast.c.mean_abs < 0.01 and contrast.c.mean > 0.02",
        "contrast.c[q].mean > 0.3 and not contrast.c[q].mean >= 0.2",
        "abs(contrast.c[q].mean) < 0.1 and contrast.c[q].mean * 2 > 0.2",
        "max(contrast.c[q].mean, 0) < 0",
        "measure.q['x'].mean > 1 or measure.q['x'].mean < 0",
        "contrast.c[q].n == 3",
        "contrast.c[q].n < 0",
        "1 < contrast.c[q].n < 2",
        "not counter.k <= 1",
        "(counter.k + 1) within 0.5 and counter.k == 1",
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(conditions); i++) {
        CHECK_ROW("%s", conditions[i]);
        struct checked c;
        char *rest = xasprintf(
            "[[input]]\nname = \"i\"\nlevels = [[\"a\", \"%s\"], [\"b\", \"otherwise\"]]\n"
            "[table]\ninputs = [\"i\"]\nrows = [[\"a\", \"O1\"], [\"b\", \"O2\"]]\n" OUTCOMES,
            conditions[i]);
        run(&c, program_of(rest), NULL);
        if (c.r.outcomes[0].reach != REACH_IMPOSSIBLE) {
            fail_msg("not proved impossible: %s", conditions[i]);
        }
        expect_error(&c, "outcome O1 is impossible");
        assert_int_equal(c.r.outcomes[1].reach, REACH_WITNESSED);
        finish(&c);
        free(rest);
    }
}

static void test_not_impossible(void **state)
{
/* The search for witnesses does not find it, so that the prover has its say. */
#define RARE "contrast.c[q].mean == 0.123456 and "
    /* Hard or unusual to reach, but not impossible: the prover must not say so. */
    static const char *const conditions[] = {
        "contrast.c.max_abs >= 4", /* open while nothing clears */
        "contrast.c.mean > 0 and contrast.c.mean < 0",
        "fact.train.x > 3 and fact.train.x < 2",       /* facts may be missing */
        "contrast.c[q].mean * contrast.c[q].mean < 0", /* not linear */
        "contrast.c[q].mean == 0.123456",
        "contrast.c[q].mean > 0.999 and counter.k == 0",
        "contrast.c[q].bf10 < 0",
        "contrast.c[q].ci_low > contrast.c[q].ci_high", /* open while the replicates agree */
        "contrast.c[q].item_low > contrast.c[q].mean",
        "contrast.c[q].n < 2", /* copies are no replicates */
        "contrast.c[q].n == 0",
        "contrast.c[q].sd < 0", /* open with copies */
        "counter.k == 1 and contrast.c.min <= contrast.c.mean <= contrast.c.max",
        /* Coefficients that overflow the prover's integers are not 0. */
        RARE "measure.q['x'].mean * (contrast.c[q].mean * 1e30 * 1e30) > 1",
        RARE "(contrast.c[q].mean * 1e30 * 1e30) * measure.q['x'].mean > 1",
        RARE "measure.q['x'].mean > 0.1 and "
             "measure.q['x'].mean / (1 + contrast.c[q].mean * 1e30 * 1e30) < 0.05",
        RARE "min(measure.q['x'].mean * (contrast.c[q].mean * 1e30 * 1e30), 1) > 0",
        "(measure.q['x'].mean * (contrast.c[q].mean * 1e30 * 1e30)) within 0.5",
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(conditions); i++) {
        CHECK_ROW("%s", conditions[i]);
        struct checked c;
        char *rest = xasprintf(
            "[[input]]\nname = \"i\"\nlevels = [[\"a\", \"%s\"], [\"b\", \"otherwise\"]]\n"
            "[table]\ninputs = [\"i\"]\nrows = [[\"a\", \"O1\"], [\"b\", \"O2\"]]\n" OUTCOMES,
            conditions[i]);
        run(&c, program_of(rest), NULL);
        if (c.r.outcomes[0].reach == REACH_IMPOSSIBLE || c.diag.n_errors > 0) {
            fail_msg("wrongly impossible: %s", conditions[i]);
        }
        finish(&c);
        free(rest);
    }
}

/* Records have a number of items, the made-up ones too: what rests on an interval over items is
 * reached, whether the plan says how many items there are or not. */
static void test_items(void **state)
{
    static const char rest[] =
        "[measure.r]\nmetric = \"train.r\"\nchance = 0.25\n"
        "[[input]]\nname = \"i\"\nlevels = [[\"up\", \"contrast.c[%s].item_low > 0\"], "
        "[\"down\", \"contrast.c[%s].item_high < 0\"], [\"none\", \"otherwise\"]]\n"
        "[table]\ninputs = [\"i\"]\nrows = [[\"up\", \"O1\"], [\"down\", \"O2\"], [\"none\", "
        "\"O2\"]]\n" OUTCOMES;
    static const char *const measures[] = {"q", "r"};
    (void)state;
    for (size_t m = 0; m < ARRAY_LEN(measures); m++) {
        CHECK_ROW("%s", measures[m]);
        struct checked c;
        char *text = xasprintf(rest, measures[m], measures[m]);
        run(&c, program_of(text), NULL);
        for (size_t k = 0; k < 3; k++) {
            assert_int_equal(c.r.rows[k].reach, REACH_WITNESSED);
            assert_true(c.r.rows[k].alone);
        }
        assert_true(c.r.outcomes[0].binds && c.r.outcomes[1].binds);
        for (size_t i = 0; i < c.diag.n_items; i++) {
            assert_null(strstr(c.diag.items[i].msg, "row"));
            assert_null(strstr(c.diag.items[i].msg, "outcome"));
        }
        finish(&c);
        free(text);
    }
}

/* Levels that leave a gap: with none true every level is possible, so that the gap's records fire
 * both rows. */
static void test_gap(void **state)
{
    struct checked c;
    (void)state;
    run(&c,
        program_of(
            "[[input]]\nname = \"i\"\nlevels = [[\"a\", \"contrast.c[q].mean > 2\"], [\"b\", "
            "\"contrast.c[q].mean < 0\"]]\n"
            "[table]\ninputs = [\"i\"]\nrows = [[\"a\", \"O1\"], [\"b\", \"O2\"]]\n" OUTCOMES),
        NULL);
    assert_int_equal(c.r.rows[0].reach, REACH_WITNESSED);
    assert_false(c.r.rows[0].alone);
    assert_false(c.r.outcomes[0].binds);
    assert_true(c.r.outcomes[1].binds);
    finish(&c);
}

static void test_paper(void **state)
{
    struct checked c;
    (void)state;
    run(&c, fixture_program_file("tests/unit/prereg/fixtures/below_the_floor.toml"), NULL);
    assert_int_equal(c.diag.n_errors, 0);
    assert_int_equal(c.r.table.n_combinations, 16);
    /* 3 x 3 x 15 sets of possible levels, 16 of them with one each. */
    assert_int_equal(c.r.table.n_partial, 119);
    for (size_t k = 0; k < c.p->n_rows; k++) {
        bool zero = k % 4 == 3;
        assert_int_equal(c.r.rows[k].reach, REACH_WITNESSED);
        assert_int_equal(c.r.rows[k].alone, !zero);
    }
    for (size_t o = 0; o < c.p->n_outcomes; o++) {
        assert_true(c.r.outcomes[o].binds);
    }
    assert_true(fabs(c.r.measures[0].floor_above_chance - 5.473231830159099) < 1e-9);
    assert_true(fabs(c.r.prior_remainder - 0.12) < 1e-12);
    finish(&c);
}

/* The count of indeterminate states by plain enumeration of all sets of levels. */
static void test_indeterminate_count(void **state)
{
    struct checked c;
    uint64_t n = 0;
    (void)state;
    run(&c, fixture_program_file("tests/unit/prereg/fixtures/below_the_floor.toml"), NULL);
    const struct plan_program *p = c.p;
    for (unsigned a = 1; a < 4; a++) {
        for (unsigned b = 1; b < 4; b++) {
            for (unsigned k = 1; k < 16; k++) {
                unsigned seen = 0;
                for (size_t r = 0; r < p->n_rows; r++) {
                    const size_t *l = p->rows[r].levels;
                    bool fires = (a >> l[0] & 1U) && (b >> l[1] & 1U) && (k >> l[2] & 1U);
                    seen |= fires ? 1U << p->rows[r].outcome : 0;
                }
                n += (seen & (seen - 1)) != 0 ? 1 : 0;
            }
        }
    }
    assert_int_equal(c.r.table.n_indeterminate, n);
    finish(&c);
}

/* 15 inputs of two levels, about what a file may hold: 32768 rows, 3^15 states. */
static void test_large_table(void **state)
{
    struct strbuf sb = STRBUF_INIT;
    struct checked c;
    (void)state;
    for (int i = 0; i < 15; i++) {
        strbuf_addf(&sb,
                    "[[input]]\nname = \"i%d\"\nlevels = [[\"a\", \"contrast.c[q].mean > %d\"], "
                    "[\"b\", \"otherwise\"]]\n",
                    i, i - 7);
    }
    strbuf_adds(&sb, "[table]\ninputs = [");
    for (int i = 0; i < 15; i++) {
        strbuf_addf(&sb, "%s\"i%d\"", i > 0 ? ", " : "", i);
    }
    strbuf_adds(&sb, "]\nrows = [\n");
    for (unsigned r = 0; r < 1U << 15; r++) {
        strbuf_adds(&sb, "[");
        for (unsigned i = 0; i < 15; i++) {
            strbuf_adds(&sb, (r >> i & 1U) != 0 ? "\"a\"," : "\"b\",");
        }
        strbuf_adds(&sb, (r & 1U) != 0 ? "\"O1\"],\n" : "\"O2\"],\n");
    }
    strbuf_adds(&sb, "]\n" OUTCOMES);
    struct plan_program *p = program_of(sb.buf);
    struct mono_time start = clock_mono();
    run(&c, p, NULL);
    int64_t ms = clock_mono().ms - start.ms;
    print_message("32768 rows: %lld ms\n", (long long)ms);
    assert_int_equal(c.r.table.n_holes + c.r.table.n_clashes, 0);
    assert_true(c.r.table.states_counted);
    assert_int_equal(c.r.table.n_partial, 14348907 - 32768);
    /* Indeterminate exactly where the first input is open. */
    assert_int_equal(c.r.table.n_indeterminate, 4782969);
    assert_int_equal(c.r.table.n_listed, CHECK_LISTED_MAX);
    assert_true(ms < 20000);
    finish(&c);
    strbuf_release(&sb);
}

#define BY_SIGN                                                                                    \
    "[[input]]\nname = \"i\"\nlevels = [[\"a\", \"contrast.c[q].mean > 0\"], [\"b\", "             \
    "\"otherwise\"]]\n[table]\ninputs = [\"i\"]\nrows = [[\"a\", \"O1\"], [\"b\", "                \
    "\"O2\"]]\n" OUTCOMES

static void test_fixed(void **state)
{
    struct checked c;
    (void)state;
    run(&c, program_of(BY_SIGN),
        "{\"arch=x\":{\"train\":{\"metrics\":[\"q\"],\"seconds\":10,\"facts\":{\"params_total\":"
        "34611712,\"params_active\":34611712,"
        "\"active_ffn\":768,\"tokens\":10240000,\"steps\":5000,\"flops_per_token\":2e8,\"disk_"
        "bytes\":1e9}}},"
        "\"arch=y\":{\"train\":{\"metrics\":[\"q\"],\"seconds\":20,\"facts\":{\"params_total\":"
        "62956032,\"params_active\":34644480,"
        "\"active_ffn\":768,\"tokens\":10240000,\"steps\":5000,\"flops_per_token\":2e8,\"disk_"
        "bytes\":2e9,"
        "\"tokens_per_expert\":2560000}}}}");
    assert_string_equal(
        c.r.fixed_words.equal,
        "P_active (within 0.095 %), active ffn width, tokens, tokens/P_active (within "
        "0.095 %), FLOPs per token, steps");
    assert_string_equal(c.r.fixed_words.differ,
                        "P_total (x1.82), tokens/P_total (x1.82), tokens per expert (x4)");
    assert_string_equal(c.r.fixed_words.unknown, "");
    assert_true(c.r.plan.seconds == 60);
    assert_true(c.r.plan.disk_bytes == 6e9);
    assert_true(c.r.plan.flops == 4 * 10240000 * 2e8);
    assert_true(fabs(c.r.measures[0].detectable - 2.801585218 * sqrt(0.3 * 0.7 / 1000)) < 1e-9);
    assert_string_equal(c.r.fixed_contrasts[0].equal, c.r.fixed_words.equal);
    cJSON *j = check_json(&c.r);
    assert_true(cJSON_IsObject(json_member(j, "fixed")));
    cJSON_Delete(j);
    finish(&c);
}

/* A script that states no model's size still states how long it trains. */
static void test_fixed_steps(void **state)
{
    struct checked c;
    (void)state;
    run(&c, program_of(BY_SIGN),
        "{\"arch=x\":{\"train\":{\"metrics\":[\"q\"],\"facts\":{\"steps\":300}}},"
        "\"arch=y\":{\"train\":{\"metrics\":[\"q\"],\"facts\":{\"steps\":300}}}}");
    assert_string_equal(c.r.fixed_words.equal, "steps");
    assert_non_null(strstr(c.r.fixed_words.unknown, "P_total"));
    assert_true(isnan(c.r.plan.flops));
    finish(&c);
}

static void test_bad_conditions(void **state)
{
    struct checked c;
    struct err err;
    (void)state;
    c.p = program_of(
        "[[input]]\nname = \"i\"\nlevels = [[\"a\", \"counter.z > 0\"], [\"b\", \"contrast.c.men > "
        "0\"]]\n"
        "[table]\ninputs = [\"i\"]\nrows = [[\"a\", \"O1\"], [\"b\", \"O2\"]]\n" OUTCOMES);
    diag_init(&c.diag, "grid.toml");
    assert_int_equal(check_run(c.p, NULL, &c.r, &c.diag, &err), ERR_INVALID);
    /* Both, in one go, at their places. */
    assert_int_equal(c.diag.n_errors, 2);
    assert_int_equal(c.diag.items[0].line, c.diag.items[1].line);
    assert_true(c.diag.items[0].column < c.diag.items[1].column);
    finish(&c);
}

static struct linear expression(double constant, double x, double y)
{
    struct linear e = linear_constant(rational_of_double(constant));
    e.coef[0] = rational_of_double(x);
    e.coef[1] = rational_of_double(y);
    return e;
}

static void test_linear_systems(void **state)
{
    static const struct {
        struct {
            double constant, x, y;
            bool strict;
        } rows[4];
        size_t n;
        bool integer; /* x */
        bool may;
    } cases[] = {
        {{{-1, 1, 0, false}, {1, -1, 0, false}}, 2, false, true}, /* x = 1 */
        {{{-1, 1, 0, true}, {1, -1, 0, false}}, 2, false, false}, /* x > 1, x <= 1 */
        {{{0, 1, -1, true}, {0, -1, 1, true}}, 2, false, false},  /* x > y > x */
        {{{-0.3, 1, 0, false}, {0.1, -1, 1, false}, {0.2, 0, -1, false}}, 3, false, true},
        {{{-0.3, 1, 0, true}, {0.1, -1, 1, false}, {0.2, 0, -1, false}}, 3, false, false},
        {{{0, 1, 0, true}, {1, -1, 0, true}}, 2, true, false}, /* 0 < k < 1 */
        {{{0, 1, 0, true}, {1, -1, 0, true}}, 2, false, true},
        {{{-2.5, 1, 0, false}, {2.9, -1, 0, false}}, 2, true, false}, /* 2.5 <= k <= 2.9 */
        {{{2.9, 1, 0, false}, {-2.5, -1, 0, false}}, 2, true, false}, /* negative side */
        {{{3, 1, 0, false}, {-2.5, -1, 0, false}}, 2, true, true},    /* k = -3 */
        {{{1e300, 1, 0, false}}, 1, false, true},                     /* does not fit: left out */
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct linear_system *s = xcalloc(3, sizeof(*s));
        s->integer[0] = cases[i].integer;
        for (size_t r = 0; r < cases[i].n; r++) {
            struct linear e =
                expression(cases[i].rows[r].constant, cases[i].rows[r].x, cases[i].rows[r].y);
            system_add(s, &e, cases[i].rows[r].strict);
        }
        if (system_may_hold(s, s + 1) != cases[i].may) {
            fail_msg("case %zu", i);
        }
        free(s);
    }
}

static size_t count_notes(const struct checked *c, const char *message)
{
    size_t n = 0;
    for (size_t i = 0; i < c->diag.n_items; i++) {
        bool is_note = c->diag.items[i].level == DIAG_NOTE;
        n += is_note && strstr(c->diag.items[i].msg, message) != NULL ? 1 : 0;
    }
    return n;
}

/* Each stage and entry is read in another way but those whose names say so. */
static void test_unread(void **state)
{
    static const char rest[] =
        "[data]\nin_params = \"a\"\nin_when = \"a\"\nin_level = \"a\"\nin_command = \"a\"\n"
        "in_key = \"a\"\nunread = \"a\"\n"
        "[[factor]]\nname = \"of\"\nlevels = [\"in_level\"]\n"
        "[stage.before]\ncommand = [\"prereg-train\"]\nparams = { of = \"$of\", list = [\"x\", "
        "\"in_params:5\"] }\n"
        "[stage.before.when.arch]\nx = { data = \"in_when\" }\ny = { mixture = { in_key = 1 } }\n"
        "[stage.behind]\nafter = [\"before\"]\ncommand = [\"bin/prereg-eval\", "
        "\"--data=in_command\"]\n"
        "[stage.factual]\ncommand = [\"prereg-train\"]\n"
        "[[input]]\nname = \"i\"\nlevels = [[\"a\", \"counter.k == 1\"], [\"b\", \"otherwise\"]]\n"
        "[validity]\nv = { condition = \"ratio(fact.factual.n, arch, 'x', 'y') within 0.1\", "
        "on_fail = \"flag\" }\n"
        "[table]\ninputs = [\"i\"]\nrows = [[\"a\", \"O1\"], [\"b\", \"O2\"]]\n" OUTCOMES;
    struct checked c;
    (void)state;
    run(&c, program_of(rest), NULL);
    assert_int_equal(count_notes(&c, "stage.behind: no measure"), 1);
    assert_int_equal(count_notes(&c, "stage."), 1);
    assert_int_equal(count_notes(&c, "data.unread: no stage names it"), 1);
    assert_int_equal(count_notes(&c, "data."), 1);
    finish(&c);
    /* A worker that is not ours may know the name by itself. */
    char *foreign = xasprintf("[stage.foreign]\ncommand = [\"w\"]\n%s", rest);
    run(&c, program_of(foreign), NULL);
    assert_int_equal(count_notes(&c, "data."), 0);
    assert_int_equal(count_notes(&c, "stage."), 2);
    finish(&c);
    free(foreign);
}

/* Thresholds on one quantity, with room between the two levels of each input: every combination is
 * a row, and all but those that a single number can fire are proved impossible, by pairs of levels.
 */
static void test_nested_thresholds(void **state)
{
    enum { N = 16 };
    struct strbuf sb = STRBUF_INIT;
    struct checked c;
    size_t n_impossible = 0;
    (void)state;
    for (int i = 0; i < N; i++) {
        strbuf_addf(&sb,
                    "[[input]]\nname = \"i%d\"\nlevels = [[\"a\", \"contrast.c[q].mean > %.2f\"], "
                    "[\"b\", \"contrast.c[q].mean < %.2f\"]]\n",
                    i, 0.1 * i - 0.8, 0.1 * i - 0.85);
    }
    strbuf_adds(&sb, "[table]\ninputs = [");
    for (int i = 0; i < N; i++) {
        strbuf_addf(&sb, "%s\"i%d\"", i > 0 ? ", " : "", i);
    }
    strbuf_adds(&sb, "]\nrows = [\n");
    for (unsigned r = 0; r < 1U << N; r++) {
        strbuf_adds(&sb, "[");
        for (unsigned i = 0; i < N; i++) {
            strbuf_adds(&sb, (r >> i & 1U) != 0 ? "\"a\"," : "\"b\",");
        }
        strbuf_adds(&sb, (r & 1U) != 0 ? "\"O1\"],\n" : "\"O2\"],\n");
    }
    strbuf_adds(&sb, "]\n" OUTCOMES);
    run(&c, program_of(sb.buf), NULL);
    for (unsigned r = 0; r < 1U << N; r++) {
        bool nested = (r & (r + 1)) == 0; /* the lowest thresholds are passed, and no other */
        n_impossible += c.r.rows[r].reach == REACH_IMPOSSIBLE ? 1 : 0;
        if (nested == (c.r.rows[r].reach == REACH_IMPOSSIBLE)) {
            fail_msg("row %u", r);
        }
    }
    assert_int_equal(n_impossible, (1U << N) - N - 1);
    assert_int_equal(c.r.n_conflicts, N - 1); /* of neighbours: they close all others */
    assert_false(c.r.proofs_ended);
    finish(&c);
    strbuf_release(&sb);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_holes_and_clashes),
        cmocka_unit_test(test_impossible),
        cmocka_unit_test(test_not_impossible),
        cmocka_unit_test(test_items),
        cmocka_unit_test(test_gap),
        cmocka_unit_test(test_paper),
        cmocka_unit_test(test_indeterminate_count),
        cmocka_unit_test(test_large_table),
        cmocka_unit_test(test_unread),
        cmocka_unit_test(test_nested_thresholds),
        cmocka_unit_test(test_fixed),
        cmocka_unit_test(test_fixed_steps),
        cmocka_unit_test(test_bad_conditions),
        cmocka_unit_test(test_linear_systems),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
