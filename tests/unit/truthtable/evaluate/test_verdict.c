/* Verdicts of one small program under every kind of bad luck: exclusion, VOID, INDETERMINATE,
 * undetermined records. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/json/json.h"
#include "base/xalloc.h"
#include "tests/unit/check.h"
#include "tests/unit/truthtable/fixture.h"
#include "truthtable/evaluate/verdict_file.h"
#include "truthtable/evidence/measure_scores.h"

/* 12 cells: arch x lr x seed; counted tasks: 24 (exam and quiz), budget 3. */
static const char toml[] =
    "[program]\nname = \"t\"\nschema = 1\nquestion = \"?\"\n"
    "[[factor]]\nname = \"arch\"\nlevels = [\"dense\", \"moe\"]\n"
    "[[factor]]\nname = \"lr\"\nlevels = [1e-3, 2e-3]\n"
    "[[factor]]\nname = \"seed\"\nlevels = [1, 2, 3]\nreplicate = true\n"
    "[stage.train]\ncommand = [\"w\"]\nparams = { a = \"$arch\", l = \"$lr\", s = \"$seed\" }\n"
    "[stage.exam]\ncommand = [\"w\"]\nafter = [\"train\"]\nparams = { t = \"exam\" }\n"
    "[stage.quiz]\ncommand = [\"w\"]\nafter = [\"train\"]\nparams = { t = \"quiz\" }\n"
    "[stage.side]\ncommand = [\"w\"]\nafter = [\"train\"]\nparams = { t = \"side\" }\n"
    "[measure]\n"
    "exam = { metric = \"exam.acc\", items = 100, chance = 0.25, floor = 0.3 }\n"
    "quiz = { metric = \"quiz.acc\", items = 100, chance = 0.25, floor = 0.4 }\n"
    "side = { metric = \"side.acc\", items = 100, chance = 0.25, floor = 0.4, best_arm = 0.6, "
    "counted = false }\n"
    "steps = { metric = \"train.target_step\", better = \"lower\", counted = false }\n"
    "[contrast]\n"
    "arch = { between = { arch = [\"moe\", \"dense\"] }, over = \"cleared\" }\n"
    "low  = { between = { arch = [\"moe\", \"dense\"] }, where = { lr = 1e-3 } }\n"
    "high = { between = { arch = [\"moe\", \"dense\"] }, where = { lr = 2e-3 } }\n"
    "shift = { of = \"high\", minus = \"low\" }\n"
    "[counter]\n"
    "k = { contrast = \"arch\", clears = \"every_cell\", binds = true }\n"
    "k_mean = { contrast = \"arch\", clears = \"arm_means\" }\n"
    "[[input]]\nname = \"ahead\"\nlevels = [[\"moe\", \"contrast.arch.mean > 0\"], [\"dense\", "
    "\"contrast.arch.mean < 0\"]]\n"
    "[[input]]\nname = \"cleared\"\nlevels = [[\"some\", \"counter.k >= 1\"], [\"none\", "
    "\"otherwise\"]]\n"
    "[table]\ninputs = [\"ahead\", \"cleared\"]\n"
    "rows = [[\"moe\", \"some\", \"M\"], [\"dense\", \"some\", \"D\"], [\"moe\", \"none\", \"N\"], "
    "[\"dense\", \"none\", \"N\"]]\n"
    "[outcome]\nM = { prior = 0.4, title = \"moe\" }\nD = { prior = 0.3, title = \"dense\" }\n"
    "N = { prior = 0.25, title = \"neither\" }\n"
    "[exclusion]\nbudget = 0.13\n"
    "[validity]\n"
    "active = { condition = \"ratio(fact.train.active, arch, 'moe', 'dense') within 0.01\", "
    "on_fail = \"void\" }\n"
    "times = { condition = \"ratio(fact.train.seconds, arch, 'moe', 'dense') < 1.2\", on_fail = "
    "\"flag\", timing = true }\n";

enum { TRAIN, EXAM, QUIZ, SIDE };

struct scene {
    struct plan_program *p;
    struct evidence e;
    struct table_verdict v;
};

static void add_fact(struct scene *s, size_t cell, const char *name, double value)
{
    struct evidence_value v = {.state = VALUE_KNOWN, .value = value};
    evidence_add_fact(&s->e, cell, TRAIN, name, &v);
}

/* moe is ahead by 0.05 in both; all cells clear exam, none clears quiz. */
static void open_scene(struct scene *s, const char *program)
{
    s->p = fixture_program(program);
    evidence_init(&s->e, s->p);
    fixture_all_done(&s->e);
    for (size_t c = 0; c < 12; c++) {
        bool moe = c >= 6;
        add_fact(s, c, "active", 1000);
        add_fact(s, c, "seconds", moe ? 1.5 : 1);
    }
}

static double exam_score(size_t cell)
{
    /* Seeds differ, so that there is a spread; every value is a count of 100. */
    return (cell >= 6 ? 40 + 2 * (double)(cell % 3) : 35 + (double)(cell % 3)) / 100;
}

static void score_all(struct scene *s, size_t except)
{
    for (size_t c = 0; c < 12; c++) {
        if (c != except) {
            fixture_score(&s->e, c, "exam", exam_score(c), 100);
        }
        fixture_score(&s->e, c, "quiz", 0.3, 100);
        fixture_score(&s->e, c, "side", c >= 6 ? 0.45 : 0.5, 100);
        fixture_score(&s->e, c, "steps", 100, 0);
    }
}

static void judge(struct scene *s)
{
    struct err err;
    if (verdict_compute(&s->e, "r", "h", &s->v, &err) != 0) {
        fail_msg("%s", err.msg);
    }
}

static void close_scene(struct scene *s)
{
    verdict_release(&s->v);
    evidence_release(&s->e);
    program_free(s->p);
}

static const cJSON *member(const cJSON *o, const char *key)
{
    const cJSON *m = json_member(o, key);
    if (m == NULL) {
        fail_msg("no \"%s\"", key);
    }
    return m;
}

static const cJSON *named(const cJSON *list, const char *key, const char *name)
{
    const cJSON *m = NULL;
    cJSON_ArrayForEach(m, list)
    {
        if (strcmp(cJSON_GetStringValue(member(m, key)), name) == 0) {
            return m;
        }
    }
    fail_msg("no %s %s", key, name);
    return NULL;
}

static const cJSON *figure(const struct scene *s, const char *contrast, const char *measure)
{
    return named(
        member(named(member(verdict_json(&s->v), "contrasts"), "name", contrast), "measures"),
        "measure", measure);
}

static void expect(const cJSON *v, const char *want)
{
    struct strbuf sb = STRBUF_INIT;
    struct err err;
    assert_int_equal(json_line(v, &sb, &err), 0);
    assert_string_equal(sb.buf, want);
    strbuf_release(&sb);
}

static void near(const cJSON *v, double want)
{
    assert_true(cJSON_IsNumber(v));
    if (!(fabs(v->valuedouble - want) < 1e-12)) {
        fail_msg("got %.17g, want %.17g", v->valuedouble, want);
    }
}

static void test_bound(void **state)
{
    struct scene s;
    (void)state;
    open_scene(&s, toml);
    score_all(&s, INDEX_NONE);
    judge(&s);
    assert_int_equal(s.v.kind, VERDICT_BOUND);
    assert_int_equal(s.v.outcome, program_find_outcome(s.p, "M"));
    expect(member(verdict_json(&s.v), "rows_fired"), "[1]");
    expect(member(verdict_json(&s.v), "counters"), "{\"k\":[1,1],\"k_mean\":[1,1]}");
    expect(member(verdict_json(&s.v), "notes"), "[]");
    expect(member(verdict_json(&s.v), "undetermined"), "[]");
    near(member(verdict_json(&s.v), "surprisal_bits"), -log2(0.4));
    near(member(verdict_json(&s.v), "brier"), 0.6 * 0.6 + 0.3 * 0.3 + 0.25 * 0.25 + 0.05 * 0.05);
    /* d_i = 5, 6, 7 hundredths: mean 6, sd 1, se 1/sqrt 3, t(2) = 4.302653. */
    const cJSON *f = figure(&s, "arch", "exam");
    near(member(f, "n"), 3);
    near(member(f, "mean"), 0.06);
    near(member(f, "sd"), 0.01);
    near(member(f, "se"), 0.01 / sqrt(3));
    near(member(f, "ci_low"), 0.06 - 4.302652729911275 * 0.01 / sqrt(3));
    assert_true(cJSON_IsNull(member(f, "bf10")));
    expect(member(figure(&s, "arch", "exam"), "excluded"), "[]");
    /* Only exam cleared: the pool holds its two settings. */
    const cJSON *pooled =
        member(named(member(verdict_json(&s.v), "contrasts"), "name", "arch"), "pooled");
    near(member(pooled, "n"), 2);
    near(member(pooled, "max_abs"), 0.06);
    /* 4 conditions -> 6 pairs x 2 counted measures */
    near(member(member(verdict_json(&s.v), "pairs"), "n"), 12);
    /* side: the floor is reached, but no arm mean reaches 0.6. */
    const cJSON *g = member(verdict_json(&s.v), "gates");
    for (g = g->child; strcmp(cJSON_GetStringValue(member(g, "measure")), "side") != 0;) {
        g = g->next;
    }
    assert_true(cJSON_IsFalse(member(g, "cleared")));
    /* Timings flag outside the verdict. */
    assert_int_equal(cJSON_GetArraySize(member(verdict_json(&s.v), "validity")), 1);
    assert_true(cJSON_IsFalse(member(verdict_timing(&s.v)->child, "holds")));
    close_scene(&s);
}

static void test_missing_record(void **state)
{
    struct scene s;
    (void)state;
    open_scene(&s, toml);
    score_all(&s, 4);
    judge(&s);
    assert_int_equal(s.v.kind, VERDICT_INDETERMINATE);
    assert_int_equal(verdict_kind_exit(s.v.kind), EXIT_INDETERMINATE);
    expect(member(verdict_json(&s.v), "rows_fired"), "[1,2,3,4]");
    expect(member(verdict_json(&s.v), "counters"), "{\"k\":[0,1],\"k_mean\":[0,1]}");
    expect(member(verdict_json(&s.v), "prior"), "null");
    const cJSON *in = named(member(verdict_json(&s.v), "inputs"), "name", "ahead");
    assert_string_equal(cJSON_GetStringValue(member(in, "why")),
                        "whether exam cleared is undetermined");
    assert_string_equal(cJSON_GetStringValue(member(figure(&s, "arch", "exam"), "why")),
                        "the record is missing");
    close_scene(&s);
}

/* A pair that is not known may turn out a copy: n is no number before it is. What is excluded stays
 * out. */
static void test_n_is_open(void **state)
{
    struct scene s;
    (void)state;
    open_scene(&s, toml);
    score_all(&s, 4);
    judge(&s);
    const cJSON *f = figure(&s, "arch", "exam");
    expect(member(f, "n"), "null");
    expect(member(f, "n_bounds"), "[0,3]");
    near(member(figure(&s, "arch", "quiz"), "n"), 3);
    size_t n_open = 0;
    const cJSON *pair = NULL;
    cJSON_ArrayForEach(pair, member(member(verdict_json(&s.v), "pairs"), "list"))
    {
        n_open += cJSON_IsNull(member(pair, "n")) ? 1 : 0;
        assert_int_equal(cJSON_IsNull(member(pair, "n")), cJSON_IsNull(member(pair, "difference")));
    }
    assert_int_equal(n_open, 3);
    close_scene(&s);
}

/* What arrives bad is undetermined and never excluded. */
static void test_bad_records(void **state)
{
    static const struct {
        struct evidence_value v;
        bool twice;
        const char *why;
    } cases[] = {
        {{.state = VALUE_KNOWN, .value = (double)NAN}, false, "not finite"},
        {{.state = VALUE_KNOWN, .value = (double)INFINITY}, false, "not finite"},
        {{.state = VALUE_NULL, .why = "gone"}, false, "gone"},
        {{.state = VALUE_KNOWN, .value = 0.5}, true, "recorded more than once"},
        {{.state = VALUE_KNOWN, .value = 1.5}, false, "outside 0..1"},
        {{.state = VALUE_KNOWN, .value = -0.1}, false, "outside 0..1"},
        {{.state = VALUE_KNOWN, .value = 0.5, .has_n = true, .n = 50},
         false,
         "on 50 items, the plan says 100"},
        {{.state = VALUE_KNOWN, .value = 0.5}, false, "n is not known, the plan says 100 items"},
        {{.state = VALUE_CENSORED, .bound = 0.5, .has_n = true, .n = 50},
         false,
         "on 50 items, the plan says 100"},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CHECK_ROW("%s", cases[i].why);
        struct scene s;
        open_scene(&s, toml);
        score_all(&s, 4);
        evidence_add_metric(&s.e, 4, EXAM, "acc", &cases[i].v);
        if (cases[i].twice) {
            evidence_add_metric(&s.e, 4, EXAM, "acc", &cases[i].v);
        }
        judge(&s);
        assert_int_equal(s.v.kind, VERDICT_INDETERMINATE);
        const cJSON *f = figure(&s, "arch", "exam");
        assert_string_equal(cJSON_GetStringValue(member(f, "why")), cases[i].why);
        expect(member(f, "excluded"), "[]");
        close_scene(&s);
    }
}

/* A floor is a share of items, with or without a chance beside it; without either a score may be
 * any number. */
static void test_support(void **state)
{
    static const struct {
        struct plan_measure m;
        struct evidence_value v;
        const char *why; /* NULL: it counts */
    } cases[] = {
        {{.has_floor = true}, {.state = VALUE_KNOWN, .value = 1.5}, "outside 0..1"},
        {{.has_floor = true}, {.state = VALUE_KNOWN, .value = -0.1}, "outside 0..1"},
        {{.has_floor = true}, {.state = VALUE_KNOWN, .value = 1}, NULL},
        {{.has_floor = true},
         {.state = VALUE_CENSORED, .bound = 27, .bound_above = true},
         "a bound outside 0..1"},
        {{.has_chance = true}, {.state = VALUE_KNOWN, .value = 1.5}, "outside 0..1"},
        {{.lower_better = true}, {.state = VALUE_KNOWN, .value = 1.5}, NULL},
    };
    struct arena arena;
    (void)state;
    arena_init(&arena);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CHECK_ROW("%s", cases[i].why);
        const struct score s = score_read(&cases[i].m, &cases[i].v, false, &arena);
        assert_int_equal(s.value.known, cases[i].why == NULL);
        if (cases[i].why != NULL) {
            assert_string_equal(s.value.why, cases[i].why);
        }
    }
    arena_release(&arena);
}

static void test_excluded(void **state)
{
    struct scene s;
    (void)state;
    open_scene(&s, toml);
    score_all(&s, 4);
    evidence_set_task(&s.e, 4, EXAM, TASK_END_BLOCKED, "oom");
    judge(&s);
    const cJSON *f = figure(&s, "arch", "exam");
    /* Cell 4 is dense, 0.002, seed 2; its partner 10 leaves too: settings 6 and (5 + 7) / 2. */
    expect(member(f, "excluded"), "[\"arch=dense,lr=0.002,seed=2\"]");
    near(member(f, "n"), 3);
    near(member(f, "mean"), 0.06);
    near(member(member(f, "settings")->child->next, "difference"), 0.06);
    /* Whatever else rests on the cell says so too. */
    const cJSON *pair = NULL;
    size_t n_without = 0;
    cJSON_ArrayForEach(pair, member(member(verdict_json(&s.v), "pairs"), "list"))
    {
        bool touched =
            strcmp(cJSON_GetStringValue(member(pair, "measure")), "exam") == 0 &&
            (strcmp(cJSON_GetStringValue(member(pair, "a")), "arch=dense,lr=0.002") == 0 ||
             strcmp(cJSON_GetStringValue(member(pair, "b")), "arch=dense,lr=0.002") == 0);
        near(member(pair, "n"), touched ? 2 : 3);
        expect(member(pair, "excluded"), touched ? "[\"arch=dense,lr=0.002,seed=2\"]" : "[]");
        n_without += touched ? 1 : 0;
    }
    assert_int_equal(n_without, 3);
    /* The gate of an excluded cell stays unknown: exam may or may not clear. */
    expect(member(verdict_json(&s.v), "counters"), "{\"k\":[0,1],\"k_mean\":[1,1]}");
    assert_int_equal(s.v.kind, VERDICT_INDETERMINATE);
    expect(
        member(member(verdict_json(&s.v), "coverage"), "counted"),
        "{\"planned\":24,\"done\":23,\"blocked\":1,\"never_run\":0,\"excluded\":1,\"budget\":3}");
    const cJSON *note = member(verdict_json(&s.v), "notes")->child;
    assert_string_equal(cJSON_GetStringValue(note),
                        "counters disagree: k_mean is 1, k (which binds) is 0 to 1");
    close_scene(&s);
}

/* Lost under narrower limits of [run] than others had: no chance, so nothing is left out, and the
 * budget is not touched. What comes after it is open in the same way. */
static void test_narrower(void **state)
{
    static const char limits[] = "memory 1 bytes, others of its stage had no limit of memory";
    struct scene s;
    (void)state;
    open_scene(&s, toml);
    score_all(&s, 4);
    evidence_set_task(&s.e, 4, EXAM, TASK_END_BLOCKED, "oom");
    evidence_set_narrower(&s.e, 4, EXAM, limits);
    evidence_set_task(&s.e, 7, TRAIN, TASK_END_BLOCKED, "hang");
    evidence_set_narrower(&s.e, 7, TRAIN, limits);
    evidence_set_task(&s.e, 7, EXAM, TASK_END_NEVER_RUN, "dependency");
    /* Not chance by its cause alone: its limits say nothing more. */
    evidence_set_task(&s.e, 8, QUIZ, TASK_END_BLOCKED, "bad_result");
    evidence_set_narrower(&s.e, 8, QUIZ, limits);
    judge(&s);
    const cJSON *f = figure(&s, "arch", "exam");
    expect(member(f, "excluded"), "[]");
    expect(member(f, "mean"), "null");
    near(member(member(member(verdict_json(&s.v), "coverage"), "counted"), "excluded"), 0);
    const cJSON *list = member(verdict_json(&s.v), "undetermined");
    assert_int_equal(cJSON_GetArraySize(list), 4);
    for (int i = 0; i < 4; i++) {
        const cJSON *task = cJSON_GetArrayItem(list, i);
        const cJSON *narrower = json_member(task, "narrower");
        assert_int_equal(cJSON_IsTrue(member(task, "by_person")), i < 3);
        assert_int_equal(narrower != NULL, i < 3);
        assert_true(narrower == NULL || strcmp(narrower->valuestring, limits) == 0);
    }
    assert_string_equal(
        cJSON_GetStringValue(member(f, "why")),
        "never run: dependency (hang) under narrower [run] limits: memory 1 bytes, others of its "
        "stage had no limit of memory");
    close_scene(&s);
}

static void test_setting_without_pair(void **state)
{
    static const char *const spread[] = {"sd", "se", "ci_low", "ci_high"};
    struct scene s;
    (void)state;
    open_scene(&s, toml);
    score_all(&s, INDEX_NONE);
    /* One of each pair of the second setting. */
    evidence_set_task(&s.e, 3, EXAM, TASK_END_BLOCKED, "crash");
    evidence_set_task(&s.e, 4, EXAM, TASK_END_BLOCKED, "hang");
    evidence_set_task(&s.e, 11, EXAM, TASK_END_BLOCKED, "timeout");
    judge(&s);
    const cJSON *f = figure(&s, "arch", "exam");
    assert_true(cJSON_IsNull(member(f, "mean")));
    assert_string_equal(cJSON_GetStringValue(member(f, "why")), "a setting has no pair left");
    /* The pairs of the other setting have a spread; it is not that of the contrast. */
    expect(member(f, "n"), "3");
    for (size_t i = 0; i < ARRAY_LEN(spread); i++) {
        CHECK_ROW("%s", spread[i]);
        assert_true(cJSON_IsNull(member(f, spread[i])));
    }
    assert_true(cJSON_IsNumber(member(figure(&s, "low", "exam"), "se")));
    near(member(figure(&s, "low", "exam"), "mean"), 0.06);
    close_scene(&s);
}

static void expect_void(struct scene *s, const char *why)
{
    judge(s);
    assert_int_equal(s->v.kind, VERDICT_VOID);
    assert_int_equal(verdict_kind_exit(s->v.kind), EXIT_VOID);
    assert_string_equal(cJSON_GetStringValue(member(verdict_json(&s->v), "outcome")), "VOID");
    if (strstr(s->v.why, why) == NULL) {
        fail_msg("%s", s->v.why);
    }
    expect(member(verdict_json(&s->v), "surprisal_bits"), "null");
    close_scene(s);
}

static void test_over_budget(void **state)
{
    struct scene s;
    (void)state;
    open_scene(&s, toml);
    score_all(&s, INDEX_NONE);
    for (size_t c = 0; c < 4; c++) {
        evidence_set_task(&s.e, c, EXAM, TASK_END_BLOCKED, "crash");
    }
    expect_void(&s, "4 counted tasks are lost, the exclusion budget is 3");
}

/* One loss over the budget of a plan that allows none: the sentence of today, and of the versions
 * that gave one task the plural. Files of theirs are compared byte for byte. */
static void test_over_budget_by_one(void **state)
{
    static const struct verdict_form forms[] = {{.lacks_added = false, .has_why_before = false},
                                                {.lacks_added = false, .has_why_before = true},
                                                {.lacks_added = true, .has_why_before = false},
                                                {.lacks_added = true, .has_why_before = true}};
    struct scene s;
    struct err err;
    (void)state;
    open_scene(&s, toml);
    s.p->exclusion_budget = 0;
    score_all(&s, INDEX_NONE);
    evidence_set_task(&s.e, 0, EXAM, TASK_END_BLOCKED, "crash");
    judge(&s);
    assert_int_equal(s.v.kind, VERDICT_VOID);
    assert_string_equal(s.v.why, "1 counted task is lost, the exclusion budget is 0");
    for (size_t i = 0; i < ARRAY_LEN(forms); i++) {
        CHECK_ROW("forms[%zu]", i);
        struct strbuf text = STRBUF_INIT;
        assert_int_equal(verdict_pretty_as(&s.v, forms[i], &text, &err), 0);
        const char *why = forms[i].has_why_before ? "\"why\": \"1 counted tasks are lost, the"
                                                  : "\"why\": \"1 counted task is lost, the";
        assert_non_null(strstr(text.buf, why));
        assert_int_equal(strstr(text.buf, "\"effects\":") == NULL, forms[i].lacks_added);
        const struct verdict_form form = verdict_form_of(&text);
        assert_int_equal(form.lacks_added, forms[i].lacks_added);
        assert_int_equal(form.has_why_before, forms[i].has_why_before);
        strbuf_release(&text);
    }
    close_scene(&s);
}

/* A lost training takes two counted tasks with it. */
static void test_dependency(void **state)
{
    struct scene s;
    (void)state;
    open_scene(&s, toml);
    score_all(&s, INDEX_NONE);
    for (size_t c = 0; c < 2; c++) {
        evidence_set_task(&s.e, c, TRAIN, TASK_END_BLOCKED, c == 0 ? "oom" : "cancelled");
        for (size_t stage = EXAM; stage <= SIDE; stage++) {
            evidence_set_task(&s.e, c, stage, TASK_END_NEVER_RUN, "dependency");
        }
    }
    judge(&s);
    expect(
        member(member(verdict_json(&s.v), "coverage"), "counted"),
        "{\"planned\":24,\"done\":20,\"blocked\":0,\"never_run\":4,\"excluded\":2,\"budget\":3}");
    /* What a person did is undetermined and stands first. */
    const cJSON *first = member(verdict_json(&s.v), "undetermined")->child;
    assert_string_equal(cJSON_GetStringValue(member(first, "cell")), "arch=dense,lr=0.001,seed=2");
    assert_true(cJSON_IsTrue(member(first, "by_person")));
    assert_string_equal(cJSON_GetStringValue(member(figure(&s, "arch", "exam"), "why")),
                        "never run: dependency (cancelled)");
    /* The cancelled training leaves the void validity unknown. */
    assert_int_equal(s.v.kind, VERDICT_VOID);
    assert_non_null(strstr(s.v.why, "validity active is unknown"));
    close_scene(&s);
}

static void test_validity(void **state)
{
    struct scene s;
    (void)state;
    open_scene(&s, toml);
    score_all(&s, INDEX_NONE);
    add_fact(&s, 7, "active", 1000);
    expect_void(&s, "validity active is unknown: recorded more than once");
    open_scene(&s, toml);
    score_all(&s, INDEX_NONE);
    evidence_release(&s.e);
    evidence_init(&s.e, s.p);
    fixture_all_done(&s.e);
    for (size_t c = 0; c < 12; c++) {
        add_fact(&s, c, "active", c >= 6 ? 1100 : 1000);
    }
    expect_void(&s, "validity active failed");
}

static void test_censored(void **state)
{
    struct scene s;
    (void)state;
    open_scene(&s, toml);
    for (size_t c = 0; c < 12; c++) {
        struct evidence_value bound = {
            .state = VALUE_CENSORED, .bound_above = true, .bound = 500, .why = "not_reached"};
        struct evidence_value known = {.state = VALUE_KNOWN, .value = 400};
        fixture_score(&s.e, c, "exam", exam_score(c), 100);
        fixture_score(&s.e, c, "quiz", 0.3, 100);
        evidence_add_metric(&s.e, c, TRAIN, "target_step", c >= 6 ? &bound : &known);
    }
    judge(&s);
    const cJSON *f = figure(&s, "arch", "steps");
    assert_true(cJSON_IsNull(member(f, "mean")));
    expect(member(f, "mean_bounds"), "[100,null]");
    assert_true(cJSON_IsNull(member(f, "se")));
    close_scene(&s);
}

static void test_difference(void **state)
{
    struct scene s;
    (void)state;
    open_scene(&s, toml);
    score_all(&s, INDEX_NONE);
    judge(&s);
    near(member(figure(&s, "shift", "exam"), "mean"), 0);
    near(member(figure(&s, "shift", "exam"), "n"), 3);
    expect(member(named(member(verdict_json(&s.v), "contrasts"), "name", "shift"), "of"),
           "\"high\"");
    expect(member(named(member(verdict_json(&s.v), "contrasts"), "name", "low"), "where"),
           "{\"lr\":\"0.001\"}");
    close_scene(&s);
}

/* A partial evaluation before the end: nothing but pending tasks. */
static void test_pending(void **state)
{
    struct scene s;
    (void)state;
    s.p = fixture_program(toml);
    evidence_init(&s.e, s.p);
    judge(&s);
    assert_int_equal(s.v.kind, VERDICT_VOID); /* its validity is unknown */
    expect(member(member(verdict_json(&s.v), "coverage"), "tasks"),
           "{\"planned\":48,\"done\":0,\"blocked\":0,\"never_run\":0,\"pending\":48}");
    expect(member(verdict_json(&s.v), "rows_fired"), "[1,2,3,4]");
    close_scene(&s);
}

static void test_excluded_fails(void **state)
{
    struct scene s;
    struct strbuf text = STRBUF_INIT;
    (void)state;
    const char *at = strstr(toml, "budget = 0.13\n");
    strbuf_add(&text, toml, (size_t)(at - toml));
    strbuf_addf(&text, "every_cell = \"fails\"\n%s", at);
    open_scene(&s, text.buf);
    score_all(&s, 4);
    evidence_set_task(&s.e, 4, EXAM, TASK_END_BLOCKED, "oom");
    judge(&s);
    expect(member(verdict_json(&s.v), "counters"), "{\"k\":[0,0],\"k_mean\":[1,1]}");
    assert_int_equal(s.v.outcome, program_find_outcome(s.p, "N"));
    close_scene(&s);
    strbuf_release(&text);
}

/* Item counts that sum beyond 64 bits: an arm of 0.25 everywhere never reaches a floor of 0.3, even
 * where the wrapped sums would. */
static void test_item_counts_without_end(void **state)
{
    enum { SEEDS = 4097 };
    static const char head[] =
        "[program]\nname = \"t\"\nschema = 1\nquestion = \"?\"\n"
        "[[factor]]\nname = \"arch\"\nlevels = [\"dense\", \"moe\"]\n"
        "[stage.exam]\ncommand = [\"w\"]\nparams = { a = \"$arch\", s = \"$seed\" }\n"
        "[measure]\nexam = { metric = \"exam.acc\", chance = 0.1, floor = 0.3 }\n"
        "[contrast]\narch = { between = { arch = [\"moe\", \"dense\"] } }\n"
        "[counter]\nk = { contrast = \"arch\", clears = \"arm_means\", binds = true }\n"
        "[[input]]\nname = \"cleared\"\nlevels = [[\"one\", \"counter.k == 1\"], [\"none\", "
        "\"otherwise\"]]\n"
        "[table]\ninputs = [\"cleared\"]\nrows = [[\"one\", \"Y\"], [\"none\", \"N\"]]\n"
        "[outcome]\nY = { prior = 0.5, title = \"y\" }\nN = { prior = 0.5, title = \"n\" }\n"
        "[exclusion]\nbudget = 0.1\n"
        "[[factor]]\nname = \"seed\"\nreplicate = true\nlevels = [";
    struct scene s;
    struct strbuf text = STRBUF_INIT;
    (void)state;
    strbuf_adds(&text, head);
    for (int i = 0; i < SEEDS; i++) {
        strbuf_addf(&text, "%s%d", i == 0 ? "" : ", ", i);
    }
    strbuf_adds(&text, "]\n");
    s.p = fixture_program(text.buf);
    evidence_init(&s.e, s.p);
    fixture_all_done(&s.e);
    for (size_t c = 0; c < s.p->n_cells; c++) {
        fixture_score(&s.e, c, "exam", 0.25, (int64_t)1 << 52);
    }
    judge(&s);
    expect(member(verdict_json(&s.v), "counters"), "{\"k\":[0,0]}");
    assert_int_equal(s.v.outcome, program_find_outcome(s.p, "N"));
    close_scene(&s);
    strbuf_release(&text);
}

/* One measure is a share; the other is not counted, but an input reads it. */
static const char one_share[] =
    "[program]\nname = \"t\"\nschema = 1\nquestion = \"?\"\n"
    "[[factor]]\nname = \"arch\"\nlevels = [\"dense\", \"moe\"]\n"
    "[[factor]]\nname = \"lr\"\nlevels = [1, 2]\n"
    "[[factor]]\nname = \"seed\"\nreplicate = true\nlevels = [1, 2, 3, 4, 5, 6, 7, 8]\n"
    "[stage.exam]\ncommand = [\"w\"]\nparams = { a = \"$arch\", l = \"$lr\", s = \"$seed\" }\n"
    "[stage.side]\ncommand = [\"w\"]\nparams = { a = \"$arch\", l = \"$lr\", s = \"$seed\", t = 1 "
    "}\n"
    "[measure]\nexam = { metric = \"exam.acc\", chance = 0.1, floor = 0.35 }\n"
    "side = { metric = \"side.loss\", counted = false }\n"
    "[contrast]\narch = { between = { arch = [\"moe\", \"dense\"] } }\n"
    "[counter]\nk = { contrast = \"arch\", clears = \"arm_means\", binds = true }\n"
    "[[input]]\nname = \"cleared\"\nlevels = [[\"one\", \"counter.k == 1\"], [\"none\", "
    "\"otherwise\"]]\n"
    "[[input]]\nname = \"better\"\nlevels = [[\"yes\", \"contrast.arch[side].mean > 0\"], [\"no\", "
    "\"otherwise\"]]\n"
    "[table]\ninputs = [\"cleared\", \"better\"]\nrows = [[\"one\", \"yes\", \"Y\"], [\"none\", "
    "\"yes\", \"N\"], [\"one\", \"no\", \"N\"], [\"none\", \"no\", \"N\"]]\n"
    "[outcome]\nY = { prior = 0.5, title = \"y\" }\nN = { prior = 0.5, title = \"n\" }\n"
    "[exclusion]\nbudget = 0.05\n"; /* of 64 tasks: 3 */

static void open_shares(struct scene *s)
{
    s->p = fixture_program(one_share);
    evidence_init(&s->e, s->p);
    fixture_all_done(&s->e);
    for (size_t c = 0; c < s->p->n_cells; c++) {
        fixture_score(&s->e, c, "exam", 0.35, 20);
        fixture_score(&s->e, c, "side", c >= 16 ? 2 : 1, 0);
    }
}

/* Seven times 0.35 is under 7 * 0.35 in floating point. An arm's mean is exact all the same, with
 * pairs excluded or not, equally many in each setting or not. */
static void test_arm_mean_is_exact(void **state)
{
    (void)state;
    for (size_t n_lost = 0; n_lost <= 3; n_lost++) {
        struct scene s;
        open_shares(&s);
        for (size_t c = 0; c < n_lost; c++) {
            evidence_set_task(&s.e, c == 2 ? 8 : c, 0, TASK_END_BLOCKED, "oom");
        }
        judge(&s);
        expect(member(verdict_json(&s.v), "counters"), "{\"k\":[1,1]}");
        assert_int_equal(s.v.outcome, program_find_outcome(s.p, "Y"));
        close_scene(&s);
    }
}

/* What an input reads is subject to the budget, counted or not. */
static void test_budget_of_what_is_read(void **state)
{
    (void)state;
    for (size_t n_lost = 3; n_lost <= 4; n_lost++) {
        struct scene s;
        open_shares(&s);
        for (size_t c = 0; c < n_lost; c++) {
            evidence_set_task(&s.e, 2 * c, 1, TASK_END_BLOCKED, "crash");
        }
        judge(&s);
        const cJSON *counted = member(member(verdict_json(&s.v), "coverage"), "counted");
        near(member(counted, "planned"), 64);
        near(member(counted, "excluded"), (double)n_lost);
        near(member(counted, "budget"), 3);
        assert_int_equal(s.v.kind, n_lost == 3 ? VERDICT_BOUND : VERDICT_VOID);
        close_scene(&s);
    }
}

/* Replicates that agree, up to rounding, give no interval: what rests on one is open. Sampling
 * items still leaves one. */
static void test_no_spread(void **state)
{
    static const char *const fields[] = {"se", "ci_low", "ci_high", "bf10"};
    struct scene s;
    (void)state;
    open_scene(&s, toml);
    score_all(&s, INDEX_NONE);
    judge(&s);
    /* quiz: 0.3 everywhere; side: 0.45 - 0.5 everywhere; exam: 0.05, 0.06, 0.07. */
    for (size_t m = 0; m < 2; m++) {
        const cJSON *f = figure(&s, "arch", m == 0 ? "quiz" : "side");
        near(member(f, "sd"), 0);
        for (size_t i = 0; i < ARRAY_LEN(fields); i++) {
            CHECK_ROW("%s", fields[i]);
            assert_true(cJSON_IsNull(member(f, fields[i])));
        }
        assert_string_equal(cJSON_GetStringValue(member(f, "why")),
                            "no spread seen: the replicates' differences are equal");
    }
    const double se = sqrt(0.45 * 0.55 / 100 + 0.5 * 0.5 / 100);
    const cJSON *f = figure(&s, "arch", "side");
    near(member(f, "item_se"), se);
    near(member(f, "item_low"), -0.05 - 1.959963984540054 * se);
    near(member(f, "item_high"), -0.05 + 1.959963984540054 * se);
    /* A difference of contrasts adds the variances of both. */
    near(member(figure(&s, "shift", "side"), "item_se"), sqrt(2) * se);
    assert_true(cJSON_IsNumber(member(figure(&s, "arch", "exam"), "se")));
    /* The pairs of conditions alike. */
    const cJSON *pair = NULL;
    cJSON_ArrayForEach(pair, member(member(verdict_json(&s.v), "pairs"), "list"))
    {
        if (strcmp(cJSON_GetStringValue(member(pair, "measure")), "quiz") == 0) {
            assert_true(cJSON_IsNull(member(pair, "se")));
            assert_non_null(cJSON_GetStringValue(member(pair, "why")));
        }
    }
    close_scene(&s);
}

/* 0.9 - 0.8 and 0.8 - 0.7 differ in the last bit. */
static void test_no_spread_but_rounding(void **state)
{
    struct scene s;
    (void)state;
    open_scene(&s, toml);
    for (size_t c = 0; c < 12; c++) {
        fixture_score(&s.e, c, "exam", (double)(6 + c % 3 + (c >= 6 ? 1 : 0)) / 10, 100);
        fixture_score(&s.e, c, "quiz", c >= 6 ? 1 : 0, 100);
    }
    judge(&s);
    assert_true(cJSON_IsNull(member(figure(&s, "arch", "exam"), "ci_low")));
    near(member(figure(&s, "arch", "exam"), "sd"), 0);
    /* Always right against never right: no spread of items either. */
    const cJSON *f = figure(&s, "arch", "quiz");
    assert_true(cJSON_IsNull(member(f, "item_se")));
    assert_string_equal(cJSON_GetStringValue(member(f, "item_why")),
                        "no spread seen: every item, or none, was right");
    close_scene(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bound),
        cmocka_unit_test(test_missing_record),
        cmocka_unit_test(test_bad_records),
        cmocka_unit_test(test_support),
        cmocka_unit_test(test_n_is_open),
        cmocka_unit_test(test_excluded),
        cmocka_unit_test(test_narrower),
        cmocka_unit_test(test_setting_without_pair),
        cmocka_unit_test(test_over_budget),
        cmocka_unit_test(test_over_budget_by_one),
        cmocka_unit_test(test_dependency),
        cmocka_unit_test(test_validity),
        cmocka_unit_test(test_censored),
        cmocka_unit_test(test_difference),
        cmocka_unit_test(test_pending),
        cmocka_unit_test(test_excluded_fails),
        cmocka_unit_test(test_item_counts_without_end),
        cmocka_unit_test(test_no_spread),
        cmocka_unit_test(test_no_spread_but_rounding),
        cmocka_unit_test(test_arm_mean_is_exact),
        cmocka_unit_test(test_budget_of_what_is_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
