/* What the inputs of a table read, as lines with unit, interval and n; and the first error where no
 * outcome binds. */
#include <string.h>

#include "base/json/json.h"
#include "tests/unit/check.h"
#include "tests/unit/truthtable/fixture.h"
#include "truthtable/evaluate/effect_lines.h"
#include "truthtable/evaluate/verdict_file.h"

/* 6 cells, arch x seed; a training of ours, an evaluation of ours and a worker from elsewhere. */
static const char head[] =
    "[program]\nname = \"t\"\nschema = 1\nquestion = \"?\"\n"
    "[[factor]]\nname = \"arch\"\nlevels = [\"dense\", \"moe\"]\n"
    "[[factor]]\nname = \"seed\"\nlevels = [1, 2, 3]\nreplicate = true\n"
    "[stage.train]\ncommand = [\"/opt/bin/prereg-train\"]\n"
    "params = { a = \"$arch\", s = \"$seed\" }\n"
    "[stage.exam]\ncommand = [\"prereg-eval\"]\nafter = [\"train\"]\nparams = { t = \"exam\" }\n"
    "[stage.speech]\ncommand = [\"./w.py\"]\nafter = [\"train\"]\nparams = { t = \"s\" }\n"
    "[measure]\n"
    "exam = { metric = \"exam.acc\", items = 100, chance = 0.25, floor = 0.3 }\n"
    "loss = { metric = \"train.val_loss@0.2\", better = \"lower\" }\n"
    "bits = { metric = \"train.val_bits_per_byte:web\", better = \"lower\", counted = false }\n"
    "step = { metric = \"train.target_step\", better = \"lower\", counted = false }\n"
    "wer = { metric = \"speech.wer\", better = \"lower\", counted = false }\n"
    "heard = { metric = \"speech.heard\", items = 100, floor = 0.3, counted = false }\n"
    "[contrast]\n"
    "arch = { between = { arch = [\"moe\", \"dense\"] } }\n"
    "[counter]\nk = { contrast = \"arch\", clears = \"every_cell\", binds = true }\n";

static const char tail[] =
    "[table]\ninputs = [\"ahead\"]\nrows = [[\"yes\", \"Y\"], [\"no\", \"N\"]]\n"
    "[outcome]\nY = { prior = 0.5, title = \"y\" }\nN = { prior = 0.4, title = \"n\" }\n"
    "[exclusion]\nbudget = 0.0\n";

struct scene {
    struct plan_program *p;
    struct evidence e;
    struct table_verdict v;
    struct strbuf text;
};

/* Differences moe - dense: exam +0.10, +0.11, +0.12; the loss -0.5, -0.4, -0.3. */
static void open_scene(struct scene *s, const char *condition, const char *rest)
{
    struct strbuf toml = STRBUF_INIT;
    strbuf_addf(&toml,
                "%s[[input]]\nname = \"ahead\"\nlevels = [[\"yes\", \"%s\"], [\"no\", "
                "\"otherwise\"]]\n%s%s",
                head, condition, tail, rest);
    s->p = fixture_program(toml.buf);
    strbuf_release(&toml);
    evidence_init(&s->e, s->p);
    strbuf_init(&s->text);
    fixture_all_done(&s->e);
}

/* All but those of the cell `except`. */
static void score_all(struct scene *s, size_t except)
{
    for (size_t c = 0; c < 6; c++) {
        const double i = (double)(c % 3);
        const bool moe = c >= 3;
        if (c != except) {
            fixture_score(&s->e, c, "exam", moe ? 0.5 + i / 100 : 0.4, 100);
            fixture_score(&s->e, c, "loss", moe ? 3.5 + i / 10 : 4, 1000);
        }
        fixture_score(&s->e, c, "bits", moe ? 1 : 1.25 + i / 8, 1000);
        fixture_score(&s->e, c, "step", moe ? 90 : 100 + i, 0);
        fixture_score(&s->e, c, "heard", moe ? 0.5 + i / 100 : 0.4, 100);
        fixture_score(&s->e, c, "wer", moe ? 0.25 : 0.5, 0);
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
    strbuf_release(&s->text);
    verdict_release(&s->v);
    evidence_release(&s->e);
    program_free(s->p);
}

static void expect_lines(const char *condition, const char *want)
{
    struct scene s;
    open_scene(&s, condition, "");
    score_all(&s, INDEX_NONE);
    judge(&s);
    effect_lines(verdict_json(&s.v), EFFECTS_SHOWN, "", &s.text);
    assert_string_equal(s.text.buf, want);
    strbuf_clear(&s.text);
    effect_error_lines(verdict_json(&s.v), "", &s.text);
    assert_int_equal(s.v.kind, VERDICT_BOUND);
    assert_string_equal(s.text.buf, "");
    close_scene(&s);
}

static void test_units(void **state)
{
    (void)state;
    expect_lines("contrast.arch[exam].mean > 0",
                 "arch[exam], moe - dense: +11.00 percentage points, 95 % interval +8.52 to "
                 "+13.48 over replicates, n = 3\n");
    expect_lines("contrast.arch[loss].mean > 0",
                 "arch[loss], moe - dense: -0.4 nats per token, 95 % interval -0.6484 to -0.1516 "
                 "over replicates, n = 3\n");
    expect_lines("contrast.arch[bits].mean > 0",
                 "arch[bits], moe - dense: -0.375 bits per byte, 95 % interval -0.6855 to "
                 "-0.06448 over replicates, n = 3\n");
    expect_lines("contrast.arch[step].mean > 0",
                 "arch[step], moe - dense: -11 steps, 95 % interval -13.48 to -8.516 over "
                 "replicates, n = 3\n");
    expect_lines("contrast.arch[wer].mean > 0",
                 "arch[wer], moe - dense: -0.25 (unit of speech.wer), no interval (no spread "
                 "seen: the replicates' differences are equal), n = 3\n");
}

/* A floor alone makes it a proportion, too: in its unit, and with an interval over items. */
static void test_floor_alone(void **state)
{
    (void)state;
    expect_lines("contrast.arch[heard].item_low > 0",
                 "arch[heard], moe - dense: +11.00 percentage points, 95 % interval -2.72 to "
                 "+24.72 over items, n = 3\n");
}

/* The interval is the one that the table reads. */
static void test_intervals(void **state)
{
    (void)state;
    expect_lines("contrast.arch[exam].item_low > 0",
                 "arch[exam], moe - dense: +11.00 percentage points, 95 % interval -2.72 to "
                 "+24.72 over items, n = 3\n");
    expect_lines("contrast.arch[exam].item_low > 0 and contrast.arch[exam].ci_low > 0",
                 "arch[exam], moe - dense: +11.00 percentage points, 95 % interval +8.52 to "
                 "+13.48 over replicates, n = 3\n");
}

/* A pooled figure has no interval: those of its parts follow, each once; `loss` and `exam` share no
 * unit. */
static void test_pooled_and_counter(void **state)
{
    (void)state;
    expect_lines("contrast.arch.max_abs > 1 and counter.k > 0 and contrast.arch.mean > 0",
                 "arch, moe - dense, mean over the measures that count: -0.145 (from -0.4 to "
                 "+0.11), n = 2 (measures x settings)\n"
                 "arch[exam], moe - dense: +11.00 percentage points, 95 % interval +8.52 to "
                 "+13.48 over replicates, n = 3\n"
                 "arch[loss], moe - dense: -0.4 nats per token, 95 % interval -0.6484 to -0.1516 "
                 "over replicates, n = 3\n"
                 "counter.k: 1 of 1 measures reaches its floor in every cell: exam\n");
}

static void test_arm(void **state)
{
    (void)state;
    expect_lines("measure.exam['moe'].mean >= 0.5",
                 "measure.exam['moe'].mean: 51.00 %, n = 3 cells\n");
    expect_lines("measure.loss['moe'].mean < 4",
                 "measure.loss['moe'].mean: 3.6 nats per token, n = 3 cells\n");
}

/* Neither what no input reads nor what only a forecast reads. */
static void test_others_are_left_out(void **state)
{
    struct scene s;
    (void)state;
    open_scene(&s, "contrast.arch[exam].mean > 0",
               "[forecast]\nf = { condition = \"contrast.arch[wer].mean > 0\", confidence = 0.9 "
               "}\n");
    score_all(&s, INDEX_NONE);
    judge(&s);
    assert_int_equal(cJSON_GetArraySize(json_member(verdict_json(&s.v), "effects")), 1);
    assert_true(cJSON_IsNull(json_member(verdict_json(&s.v), "first_error")));
    effect_lines(verdict_json(&s.v), 0, "  ", &s.text);
    assert_string_equal(s.text.buf, "  and 1 more (`preregctl verdict --json`)\n");
    close_scene(&s);
}

static void expect_error(struct scene *s, const char *task, const char *want)
{
    judge(s);
    effect_error_lines(verdict_json(&s->v), "  ", &s->text);
    assert_string_equal(s->text.buf, want);
    if (task == NULL) {
        assert_null(effect_error_task(verdict_json(&s->v)));
    } else {
        assert_string_equal(effect_error_task(verdict_json(&s->v)), task);
    }
    close_scene(s);
}

static void test_indeterminate(void **state)
{
    struct scene s;
    (void)state;
    open_scene(&s, "contrast.arch[exam].mean > 0", "");
    score_all(&s, 4);
    fixture_score(&s.e, 4, "loss", 3.5, 1000);
    expect_error(&s, "arch=moe,seed=2/exam",
                 "  first error: exam of arch=moe,seed=2: the record is missing\n"
                 "  input ahead is open: the record is missing\n");
    /* A record that nothing reads stands between nothing and an outcome. */
    open_scene(&s, "contrast.arch[step].mean > 0", "");
    score_all(&s, INDEX_NONE);
    fixture_score(&s.e, 0, "bits", 2, 1000);
    fixture_score(&s.e, 1, "step", 3, 0);
    expect_error(&s, "arch=dense,seed=2/train",
                 "  first error: step of arch=dense,seed=2: recorded more than once\n"
                 "  input ahead is open: recorded more than once\n");
    /* A person's act is never excluded; it began at the training. */
    open_scene(&s, "contrast.arch[exam].mean > 0", "");
    score_all(&s, INDEX_NONE);
    evidence_set_task(&s.e, 1, 0, TASK_END_BLOCKED, "cancelled");
    evidence_set_task(&s.e, 1, 1, TASK_END_NEVER_RUN, "dependency");
    evidence_set_task(&s.e, 1, 2, TASK_END_NEVER_RUN, "dependency");
    expect_error(&s, "arch=dense,seed=2/train",
                 "  first error: arch=dense,seed=2/train: blocked (cancelled)\n"
                 "  input ahead is open: never run: dependency (cancelled)\n");
}

/* What failed in the same cell, but not before the task, did not lose it. */
static void test_failed_task(void **state)
{
    struct scene s;
    (void)state;
    open_scene(&s, "contrast.arch[exam].mean > 0", "");
    score_all(&s, INDEX_NONE);
    evidence_set_task(&s.e, 1, 1, TASK_END_NEVER_RUN, "cancelled");
    evidence_set_task(&s.e, 1, 2, TASK_END_BLOCKED, "oom");
    expect_error(&s, "arch=dense,seed=2/exam",
                 "  first error: arch=dense,seed=2/exam: never run (cancelled)\n"
                 "  input ahead is open: never run: cancelled\n");
    open_scene(&s, "contrast.arch[exam].mean > 0", "");
    score_all(&s, INDEX_NONE);
    evidence_set_task(&s.e, 1, 0, TASK_END_NEVER_RUN, "cancelled");
    evidence_set_task(&s.e, 1, 1, TASK_END_NEVER_RUN, "dependency");
    evidence_set_task(&s.e, 1, 2, TASK_END_BLOCKED, "oom");
    expect_error(&s, "arch=dense,seed=2/train",
                 "  first error: arch=dense,seed=2/train: never run (cancelled)\n"
                 "  input ahead is open: never run: dependency (cancelled)\n");
    open_scene(&s, "contrast.arch[exam].mean > 0", "");
    score_all(&s, INDEX_NONE);
    evidence_set_task(&s.e, 1, 0, TASK_END_BLOCKED, "oom");
    evidence_set_narrower(&s.e, 1, 0, "cpus");
    evidence_set_task(&s.e, 1, 1, TASK_END_NEVER_RUN, "dependency");
    expect_error(&s, "arch=dense,seed=2/train",
                 "  first error: arch=dense,seed=2/train: blocked (oom) under narrower [run] "
                 "limits: cpus\n"
                 "  input ahead is open: never run: dependency (oom) under narrower [run] limits: "
                 "cpus\n");
}

static void test_void(void **state)
{
    struct scene s;
    (void)state;
    open_scene(&s, "contrast.arch[exam].mean > 0", "");
    score_all(&s, INDEX_NONE);
    evidence_set_task(&s.e, 3, 1, TASK_END_BLOCKED, "oom");
    expect_error(&s, "arch=moe,seed=1/exam",
                 "  first error: arch=moe,seed=1/exam: blocked (oom)\n");
    /* What the rule read comes with its value. */
    open_scene(&s, "contrast.arch[exam].mean > 0",
               "[validity]\nlearned = { condition = \"measure.loss['moe'].mean < 3\", on_fail = "
               "\"void\" }\n");
    score_all(&s, INDEX_NONE);
    judge(&s);
    effect_lines(verdict_json(&s.v), EFFECTS_SHOWN, "", &s.text);
    assert_non_null(strstr(s.text.buf, "\nmeasure.loss['moe'].mean: 3.6 nats per token, n = 3 "
                                       "cells\n"));
    strbuf_clear(&s.text);
    verdict_release(&s.v);
    expect_error(&s, NULL,
                 "  first error: validity learned, measure.loss['moe'].mean < 3, does not hold\n");
}

/* verdict.json may come from a receipt. */
static void test_hostile(void **state)
{
    static const char text[] =
        "{\"outcome\":\"INDETERMINATE\",\"first_error\":{\"task\":3,\"what\":\"a\\nb\"},"
        "\"inputs\":[7,{\"name\":[],\"why\":\"c\\u001bd\"}],"
        "\"effects\":[null,1,{\"kind\":\"counter\",\"name\":\"counter.k\"},"
        "{\"kind\":\"pooled\",\"name\":\"contrast.x\",\"value\":\"1\"},"
        "{\"kind\":\"difference\",\"name\":\"contrast.y[z]\",\"a\":\"l\\nm\",\"b\":\"n\","
        "\"value_bounds\":[null,0.5],\"unit\":\"proportion\",\"low\":1}]}";
    struct strbuf out = STRBUF_INIT;
    struct err err;
    cJSON *v = NULL;
    (void)state;
    assert_int_equal(json_parse(text, strlen(text), &v, &err), 0);
    effect_error_lines(v, "", &out);
    assert_string_equal(out.buf, "first error: a?b\ninput ? is open: no reason was given\n");
    assert_null(effect_error_task(v));
    strbuf_clear(&out);
    effect_lines(v, EFFECTS_SHOWN, "", &out);
    assert_string_equal(out.buf, "?: not known (no reason was given)\n"
                                 "?: not known (no reason was given)\n"
                                 "counter.k: 0 to 0 of 0 measures reach their floor in the mean "
                                 "of each arm\n"
                                 "x, mean over the measures that count: not known (no reason was "
                                 "given)\n"
                                 "y[z], l?m - n: unbounded to +50.00 percentage points, no "
                                 "interval (not known)\n");
    strbuf_release(&out);
    cJSON_Delete(v);
}

/* A trend is one line, whichever fields are read; a rank is one among all levels. */
static void test_over_levels(void **state)
{
    (void)state;
    expect_lines("trend(measure.exam, arch).ci_low > 0 and trend(measure.exam, arch).n > 1",
                 "trend(measure.exam, arch).slope: +11.00 percentage points a level, 95 % interval "
                 "+8.52 to +13.48 over replicates, n = 3\n");
    expect_lines("trend(measure.wer, arch).slope < 0",
                 "trend(measure.wer, arch).slope: -0.25 (unit of speech.wer) a level, no interval "
                 "(no spread seen: the replicates' slopes are equal), n = 3\n");
    expect_lines("rank(measure.loss, arch, 'moe') == 1",
                 "rank(measure.loss, arch, 'moe'): 1, n = 2 levels\n");
    expect_lines("rank(measure.exam, arch, 'dense') == 1",
                 "rank(measure.exam, arch, 'dense'): 2, n = 2 levels\n");
    expect_lines("rank(measure.heard, arch, 'moe') < rank(measure.heard, arch, 'dense')",
                 "rank(measure.heard, arch, 'moe'): 1, n = 2 levels\n"
                 "rank(measure.heard, arch, 'dense'): 2, n = 2 levels\n");
}

static void expect_open(const char *condition, const struct evidence_value *value, const char *want)
{
    struct scene s;
    open_scene(&s, condition, "");
    score_all(&s, 5);
    if (value != NULL) {
        evidence_add_metric(&s.e, 5, 0, "val_loss@0.2", value);
    }
    judge(&s);
    assert_int_equal(s.v.kind, VERDICT_INDETERMINATE);
    effect_lines(verdict_json(&s.v), EFFECTS_SHOWN, "", &s.text);
    assert_string_equal(s.text.buf, want);
    close_scene(&s);
}

/* With a value missing at any level nothing is said; a bound leaves a range. */
static void test_over_levels_is_open(void **state)
{
    static const struct evidence_value above = {
        .state = VALUE_CENSORED, .bound_above = true, .bound = 3.9, .why = "not reached"};
    (void)state;
    expect_open("rank(measure.loss, arch, 'dense') == 1", NULL,
                "rank(measure.loss, arch, 'dense'): not known (the record is missing)\n");
    expect_open("trend(measure.loss, arch).slope > 0", NULL,
                "trend(measure.loss, arch).slope: not known (the record is missing)\n");
    expect_open("rank(measure.loss, arch, 'dense') == 1", &above,
                "rank(measure.loss, arch, 'dense'): 1 to 2, n = 2 levels\n");
    expect_open("trend(measure.loss, arch).ci_low > 0", &above,
                "trend(measure.loss, arch).slope: -0.3333 to unbounded nats per token a level, no "
                "interval (a value is known only as a bound), n = 3\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_units),         cmocka_unit_test(test_floor_alone),
        cmocka_unit_test(test_intervals),     cmocka_unit_test(test_pooled_and_counter),
        cmocka_unit_test(test_arm),           cmocka_unit_test(test_others_are_left_out),
        cmocka_unit_test(test_indeterminate), cmocka_unit_test(test_failed_task),
        cmocka_unit_test(test_void),          cmocka_unit_test(test_hostile),
        cmocka_unit_test(test_over_levels),   cmocka_unit_test(test_over_levels_is_open),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
