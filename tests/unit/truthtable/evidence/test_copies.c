/* Results that are copies of one another: what counts as one, and what no longer rests on it. */
#include <string.h>

#include "base/json/json.h"
#include "base/xalloc.h"
#include "tests/unit/check.h"
#include "tests/unit/truthtable/fixture.h"
#include "truthtable/evaluate/verdict_file.h"

/* 6 cells in three stages; the exam reads no seed of its own. */
#define HEAD                                                                                       \
    "[program]\nname = \"t\"\nschema = 1\nquestion = \"?\"\n"                                      \
    "[[factor]]\nname = \"arch\"\nlevels = [\"x\", \"y\"]\n"                                       \
    "[[factor]]\nname = \"seed\"\nlevels = [1, 2, 3]\nreplicate = true\n"                          \
    "[stage.prepare]\ncommand = [\"w\"]\nparams = { a = \"$arch\", s = \"$seed\" }\n"              \
    "[stage.train]\ncommand = [\"w\"]\nafter = [\"prepare\"]\n"                                    \
    "params = { a = \"$arch\", s = \"$seed\" }\n"                                                  \
    "[stage.exam]\ncommand = [\"w\"]\n"
#define TAIL                                                                                       \
    "[measure]\nloss = { metric = \"train.loss\", better = \"lower\" }\n"                          \
    "acc = { metric = \"exam.acc\", items = 10, chance = 0.1, floor = 0.2 }\n"                     \
    "[contrast]\narch = { between = { arch = [\"y\", \"x\"] } }\n"                                 \
    "[[input]]\nname = \"i\"\nlevels = [[\"a\", \"contrast.arch[acc].ci_low > -1\"], [\"b\", "     \
    "\"otherwise\"]]\n"                                                                            \
    "[table]\ninputs = [\"i\"]\nrows = [[\"a\", \"A\"], [\"b\", \"B\"]]\n"                         \
    "[outcome]\nA = { prior = 0.5, title = \"a\" }\nB = { prior = 0.4, title = \"b\" }\n"          \
    "[exclusion]\nbudget = 0.5\n"

static const char toml[] = HEAD "after = [\"train\"]\nparams = { t = 1 }\n" TAIL;
static const char baseline[] = HEAD "[stage.exam.when.arch]\ny = { s = \"$seed\" }\n" TAIL;

#define NONE "------"

/* Data, models and scores of the six cells: x1 x2 x3 y1 y2 y3. */
struct run {
    const char *toml;     /* NULL: that of above */
    const char *prepared; /* a letter each; '-': no artifact */
    const char *models;   /* likewise */
    double losses[6];
    int right[6];
};

static void add(struct evidence *e, size_t cell, size_t stage, char *text)
{
    struct err err;
    cJSON *result = cJSON_Parse(text);
    assert_non_null(result);
    assert_int_equal(evidence_add_result(e, cell, stage, result, &err), 0);
    cJSON_Delete(result);
    free(text);
}

static char *artifact(char digest)
{
    return digest == '-'
               ? xstrdup("")
               : xasprintf("{\"path\":\"model.bin\",\"sha256\":\"%c\",\"bytes\":1}", digest);
}

static const cJSON *figure_of(const struct table_verdict *v, size_t measure)
{
    const cJSON *contrast = json_member(verdict_json(v), "contrasts")->child;
    return cJSON_GetArrayItem(json_member(contrast, "measures"), (int)measure);
}

static void fill(const struct run *run, struct plan_program **p, struct evidence *e)
{
    *p = fixture_program(run->toml == NULL ? toml : run->toml);
    evidence_init(e, *p);
    fixture_all_done(e);
    for (size_t c = 0; c < 6; c++) {
        char *prepared = artifact(run->prepared[c]);
        char *model = artifact(run->models[c]);
        add(e, c, 0, xasprintf("{\"metrics\":{},\"artifacts\":[%s]}", prepared));
        add(e, c, 1,
            xasprintf("{\"metrics\":{\"loss\":%g},\"artifacts\":[%s]}", run->losses[c], model));
        add(e, c, 2,
            xasprintf("{\"metrics\":{\"acc\":{\"value\":%g,\"n\":10}}}", run->right[c] / 10.0));
        free(prepared);
        free(model);
    }
}

static void compute(struct evidence *e, struct table_verdict *v)
{
    struct err err;
    assert_int_equal(verdict_compute(e, "r", "h", v, &err), 0);
    evidence_release(e);
}

static void judge(const struct run *run, struct plan_program **p, struct table_verdict *v)
{
    struct evidence e;
    fill(run, p, &e);
    compute(&e, v);
}

static void expect(const struct run *run, size_t n_notes, const char *first, double n_loss,
                   double n_acc)
{
    struct plan_program *p = NULL;
    struct table_verdict v;
    judge(run, &p, &v);
    const cJSON *notes = json_member(verdict_json(&v), "notes");
    assert_int_equal(cJSON_GetArraySize(notes), n_notes);
    if (n_notes > 0) {
        assert_string_equal(notes->child->valuestring, first);
    }
    for (size_t m = 0; m < 2; m++) {
        const double n = m == 0 ? n_loss : n_acc;
        assert_true(json_member(figure_of(&v, m), "n")->valuedouble == n);
        assert_int_equal(cJSON_IsNull(json_member(figure_of(&v, m), "ci_low")) != 0, n < 3);
    }
    assert_int_equal(v.kind, n_acc < 3 ? VERDICT_INDETERMINATE : VERDICT_BOUND);
    verdict_release(&v);
    program_free(p);
}

static void test_copies(void **state)
{
    static const char x2[] =
        "not independent: arch=x,seed=2/train gave the same as arch=x,seed=1/train";
    (void)state;
    /* Six models: nothing is said. */
    expect(&(struct run){NULL, NONE, "abcdef", {1, 2, 3, 4, 6, 5}, {1, 2, 3, 7, 6, 4}}, 0, NULL, 3,
           3);
    /* Seed 2 of x is seed 1 again; so is its score, which comes from the same model. */
    expect(&(struct run){NULL, NONE, "aacdef", {1, 1, 3, 4, 6, 5}, {1, 1, 3, 7, 6, 4}}, 1, x2, 2,
           2);
    /* The same model with other scores: only the training is a copy. */
    expect(&(struct run){NULL, NONE, "aacdef", {1, 1, 3, 4, 6, 5}, {1, 2, 3, 7, 6, 4}}, 1, x2, 2,
           3);
    /* Another metric: not the same result. */
    expect(&(struct run){NULL, NONE, "aacdef", {1, 2, 3, 4, 6, 5}, {1, 1, 3, 7, 6, 4}}, 0, NULL, 3,
           3);
    /* Equal scores without any artifact may be chance. */
    expect(&(struct run){NULL, NONE, "------", {1, 1, 3, 4, 6, 5}, {1, 1, 3, 7, 6, 4}}, 0, NULL, 3,
           3);
    /* The other arm. */
    expect(&(struct run){NULL, NONE, "abcaef", {1, 2, 3, 1, 6, 5}, {1, 2, 3, 1, 6, 4}}, 1,
           "not independent: arch=y,seed=1/train gave the same as arch=x,seed=1/train", 2, 2);
}

static void test_stage_between(void **state)
{
    static const char x2[] =
        "not independent: arch=x,seed=2/prepare gave the same as arch=x,seed=1/prepare";
    (void)state;
    /* The same data, other models: equal scores are chance. */
    expect(&(struct run){NULL, "aacdef", "abcdef", {1, 2, 3, 4, 6, 5}, {1, 1, 3, 7, 6, 4}}, 0, NULL,
           3, 3);
    /* No model tells: the data do. */
    expect(&(struct run){NULL, "aacdef", NONE, {1, 2, 3, 4, 6, 5}, {1, 1, 3, 7, 6, 4}}, 1, x2, 3,
           2);
    expect(&(struct run){NULL, "aacdef", "abcdef", {1, 1, 3, 4, 6, 5}, {1, 2, 3, 7, 6, 4}}, 1, x2,
           2, 3);
}

/* The first of those with the same data is of another score, or trained another model: the others
 * are copies of one another all the same. */
static void test_not_the_first(void **state)
{
    static const char x3[] =
        "not independent: arch=x,seed=3/prepare gave the same as arch=x,seed=2/prepare";
    (void)state;
    /* Another score. */
    expect(&(struct run){NULL, "aaadef", NONE, {1, 2, 3, 4, 6, 5}, {1, 2, 2, 7, 6, 4}}, 1, x3, 3,
           2);
    /* Another model: x1 says nothing of the others, which say nothing of each other. */
    expect(&(struct run){NULL, "aaadef", "abbdef", {1, 2, 2, 4, 6, 5}, {1, 1, 1, 7, 6, 4}}, 1, x3,
           2, 2);
    expect(&(struct run){NULL, "aaadef", "abcdef", {1, 2, 3, 4, 6, 5}, {1, 1, 1, 7, 6, 4}}, 0, NULL,
           3, 3);
    /* No model tells of x2 and y1: each is a copy of a cell before it, x3 of none. */
    expect(&(struct run){NULL, "aaaaef", "a-b-ef", {1, 2, 3, 4, 6, 5}, {1, 1, 1, 1, 6, 4}}, 2,
           "not independent: arch=x,seed=2/prepare gave the same as arch=x,seed=1/prepare", 3, 1);
}

/* A ladder of stages, each after the two before it, has more ways down than anybody can walk. The
 * copies are of a stage that is on none of them. */
static void test_ladder(void **state)
{
    enum { N_STEPS = 80 };
    struct strbuf sb = STRBUF_INIT;
    struct plan_program *p = NULL;
    struct evidence e;
    struct table_verdict v;
    struct err err;
    (void)state;
    strbuf_adds(&sb, "[program]\nname = \"t\"\nschema = 1\nquestion = \"?\"\n"
                     "[[factor]]\nname = \"arch\"\nlevels = [\"x\", \"y\"]\n"
                     "[[factor]]\nname = \"seed\"\nlevels = [1, 2]\nreplicate = true\n"
                     "[stage.alone]\ncommand = [\"w\"]\nparams = { s = \"$seed\" }\n"
                     "[stage.s0]\ncommand = [\"w\"]\nparams = { a = \"$arch\", s = \"$seed\" }\n"
                     "[stage.s1]\ncommand = [\"w\"]\nafter = [\"s0\"]\n");
    for (int i = 2; i < N_STEPS; i++) {
        strbuf_addf(&sb, "[stage.s%d]\ncommand = [\"w\"]\nafter = [\"s%d\", \"s%d\"]\n", i, i - 1,
                    i - 2);
    }
    strbuf_addf(
        &sb,
        "[measure]\nacc = { metric = \"s%d.acc\" }\n"
        "[contrast]\narch = { between = { arch = [\"y\", \"x\"] } }\n"
        "[[input]]\nname = \"i\"\nlevels = [[\"a\", \"contrast.arch[acc].mean > -1\"], "
        "[\"b\", \"otherwise\"]]\n"
        "[table]\ninputs = [\"i\"]\nrows = [[\"a\", \"A\"], [\"b\", \"B\"]]\n"
        "[outcome]\nA = { prior = 0.5, title = \"a\" }\nB = { prior = 0.4, title = \"b\" }\n",
        N_STEPS - 1);
    p = fixture_program(sb.buf);
    evidence_init(&e, p);
    fixture_all_done(&e);
    for (size_t c = 0; c < p->n_cells; c++) {
        add(&e, c, program_find_stage(p, "alone"),
            xstrdup(
                "{\"metrics\":{},\"artifacts\":[{\"path\":\"m\",\"sha256\":\"a\",\"bytes\":1}]}"));
        add(&e, c, p->measures[0].stage, xstrdup("{\"metrics\":{\"acc\":1}}"));
    }
    assert_int_equal(verdict_compute(&e, "r", "h", &v, &err), 0);
    assert_int_equal(cJSON_GetArraySize(json_member(verdict_json(&v), "notes")), 0);
    assert_int_equal(v.kind, VERDICT_BOUND);
    verdict_release(&v);
    evidence_release(&e);
    program_free(p);
    strbuf_release(&sb);
}

/* The exam of x takes no seed and comes after nothing that does: by the plan its three cells are
 * one, without any artifact and whatever they scored. */
static void test_asked(void **state)
{
    static const char first[] = "not independent: arch=x,seed=2 is given the same tasks as "
                                "arch=x,seed=1";
    struct run run = {.toml = baseline,
                      .prepared = NONE,
                      .models = NONE,
                      .losses = {1, 2, 3, 4, 6, 5},
                      .right = {2, 2, 2, 7, 6, 4}};
    (void)state;
    expect(&run, 2, first, 3, 1);
    run.right[1] = 5;
    expect(&run, 2, first, 3, 1);
}

/* The pair of the first of equal cells is out: one of the others stands for it, and n is that of
 * the pairs that are left. */
static void test_first_is_out(void **state)
{
    static const struct run runs[] = {
        {baseline, NONE, NONE, {1, 2, 3, 4, 6, 5}, {2, 2, 2, 7, 6, 4}},
        {NULL, NONE, "aacdef", {1, 1, 3, 4, 6, 5}, {1, 1, 3, 7, 6, 4}},
    };
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct plan_program *p = NULL;
        struct evidence e;
        struct table_verdict v;
        fill(&runs[i], &p, &e);
        evidence_set_task(&e, 3, 2, TASK_END_BLOCKED, "oom"); /* y1; then the pair of x1 is out */
        compute(&e, &v);
        const cJSON *acc = figure_of(&v, 1);
        assert_true(json_member(acc, "n")->valuedouble == (i == 0 ? 1 : 2));
        assert_false(cJSON_IsNull(json_member(acc, "mean")));
        assert_int_equal(cJSON_IsNull(json_member(acc, "ci_low")) != 0, i == 0);
        verdict_release(&v);
        program_free(p);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_copies),        cmocka_unit_test(test_stage_between),
        cmocka_unit_test(test_not_the_first), cmocka_unit_test(test_ladder),
        cmocka_unit_test(test_asked),         cmocka_unit_test(test_first_is_out)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
