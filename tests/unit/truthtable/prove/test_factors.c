/* Factors whose levels make the same tasks: refused, for every way in which a stage can or cannot
 * take a factor. */
#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"
#include "tests/unit/check.h"
#include "tests/unit/truthtable/fixture.h"
#include "truthtable/prove/check.h"

/* Stages as given; the measures read `eval` and `train`, the input `condition`. */
static struct plan_program *program_of(const char *stages, const char *condition)
{
    struct strbuf sb = STRBUF_INIT;
    strbuf_addf(
        &sb,
        "[program]\nname = \"t\"\nschema = 1\n"
        "[[factor]]\nname = \"arch\"\nlevels = [\"x\", \"y\", \"z\"]\n"
        "[[factor]]\nname = \"wd\"\nlevels = [0, 0.1]\n"
        "[[factor]]\nname = \"seed\"\nlevels = [1, 2, 3]\nreplicate = true\n"
        "%s"
        "[measure]\nq = { metric = \"eval.q\", items = 10, chance = 0.1 }\n"
        "loss = { metric = \"train.loss\", better = \"lower\" }\n"
        "[contrast]\nc = { between = { arch = [\"x\", \"y\"] } }\n"
        "other = { between = { arch = [\"x\", \"z\"] } }\n"
        "both = { of = \"other\", minus = \"c\" }\n"
        "[[input]]\nname = \"i\"\nlevels = [[\"a\", \"%s\"], "
        "[\"b\", \"otherwise\"]]\n"
        "[table]\ninputs = [\"i\"]\nrows = [[\"a\", \"A\"], [\"b\", \"B\"]]\n"
        "[outcome]\nA = { prior = 0.5, title = \"a\" }\nB = { prior = 0.4, title = \"b\" }\n",
        stages, condition);
    struct plan_program *p = fixture_program(sb.buf);
    strbuf_release(&sb);
    return p;
}

#define TRAIN     "[stage.train]\ncommand = [\"t\"]\n"
#define EVAL      "[stage.eval]\nafter = [\"train\"]\ncommand = [\"e\"]\n"
#define ALL       "params = { a = \"$arch\", w = \"$wd\", s = \"$seed\" }\n"
#define WHEN_ARCH "[stage.train.when.arch]\nx = {}\ny = { experts = 8 }\nz = { experts = 4 }\n"

static const struct {
    const char *stages;
    const char *error;   /* NULL: none */
    const char *warning; /* NULL: none */
} CASES[] = {
    /* an evaluation reads nothing of it: its training does */
    {TRAIN ALL EVAL, NULL, NULL},
    {TRAIN "params = { w = \"$wd\", deep = { s = [\"$seed\"] } }\n" WHEN_ARCH EVAL, NULL, NULL},
    /* a value in place of the factor */
    {TRAIN "params = { a = \"$arch\", w = \"$wd\", s = 1 }\n" EVAL,
     "factor.seed: no stage that a measure reads takes it: its 3 levels", NULL},
    {TRAIN "params = { a = \"$arch\", w = 0.1, s = \"$seed\" }\n" EVAL,
     "factor.wd: no stage that a measure reads takes it", NULL},
    {TRAIN EVAL, "factor.arch: no stage that a measure reads takes it: its 3 levels", NULL},
    /* only a stage that no measure reads takes it */
    {TRAIN "params = { a = \"$arch\", w = \"$wd\" }\n" EVAL
           "[stage.aside]\ncommand = [\"s\"]\nparams = { s = \"$seed\" }\n",
     "factor.seed: no stage that a measure reads takes it", NULL},
    /* every level replaces what took it */
    {TRAIN ALL "[stage.train.when.arch]\nx = { s = 1 }\ny = { s = 1 }\nz = { s = 1 }\n" EVAL,
     "factor.seed: levels \"1\" and \"2\" are the same tasks in every stage", NULL},
    /* an arm may take no seed at all, one value as it has; one seed of it twice is a mistake */
    {TRAIN ALL "[stage.train.when.arch]\ny = { s = 1 }\n" EVAL, NULL,
     "factor.seed: all 3 levels are the same tasks where arch=y,wd=0: one value there"},
    {TRAIN ALL "[stage.train.when.seed]\n3 = { s = 2 }\n[stage.train.when.arch]\ny = {}\n" EVAL,
     "factor.seed: levels \"2\" and \"3\" are the same tasks in every stage", NULL},
    {TRAIN "params = { a = \"$arch\", w = \"$wd\", s = \"$seed\", t = \"$seed\" }\n"
           "[stage.train.when.arch]\ny = { s = 1 }\n"
           "[stage.train.when.seed]\n2 = { t = 1 }\n3 = { t = 3 }\n1 = { t = 1 }\n" EVAL,
     "factor.seed: levels \"1\" and \"2\" are the same tasks where arch=y,wd=0", NULL},
    /* an arm alike in another's level may be */
    {TRAIN ALL "[stage.train.when.arch]\ny = { w = 0 }\n" EVAL, NULL,
     "factor.wd: levels \"0\" and \"0.1\" are the same tasks where arch=y,seed=1"},
    /* two of three levels */
    {TRAIN "params = { w = \"$wd\", s = \"$seed\" }\n"
           "[stage.train.when.arch]\nx = { experts = 4 }\nz = { experts = 4 }\n" EVAL,
     "factor.arch: levels \"x\" and \"z\" are the same tasks in every stage", NULL},
    /* the evaluation alone takes it */
    {TRAIN "params = { a = \"$arch\", s = \"$seed\" }\n" EVAL "params = { shots = \"$wd\" }\n",
     NULL, NULL},
};

static const char *found(const struct diag *d, enum diag_level level)
{
    for (size_t i = 0; i < d->n_items; i++) {
        if (d->items[i].level == level && strncmp(d->items[i].msg, "factor.", 7) == 0) {
            return d->items[i].msg;
        }
    }
    return NULL;
}

static void expect(size_t i, const char *what, const char *wanted, const char *is)
{
    if ((wanted == NULL) != (is == NULL) || (wanted != NULL && strstr(is, wanted) == NULL)) {
        fail_msg("case %zu: expected %s \"%s\", found \"%s\"", i, what,
                 wanted == NULL ? "none" : wanted, is == NULL ? "none" : is);
    }
}

static void test_cases(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
        CHECK_ROW("%s", CASES[i].stages);
        struct diag diag;
        struct plan_program *p = program_of(CASES[i].stages, "contrast.c[q].mean > 0");
        diag_init(&diag, "grid.toml");
        check_factors(p, &diag);
        expect(i, "an error", CASES[i].error, found(&diag, DIAG_ERROR));
        expect(i, "a warning", CASES[i].warning, found(&diag, DIAG_WARNING));
        diag_release(&diag);
        program_free(p);
    }
}

/* Arm y takes no seed, and neither does the training of any arm: an interval that they are part of
 * is never known. */
static void test_intervals(void **state)
{
    static const struct {
        const char *condition;
        const char *error; /* NULL: none */
    } cases[] = {
        {"contrast.c[q].mean > 0 and contrast.c[q].item_low > 0", NULL},
        {"contrast.c[q].n >= 1", NULL},
        {"contrast.other[q].ci_low > 0", NULL},
        {"contrast.c[q].mean > 0 and not (contrast.c[q].ci_low > 0)",
         "input i: contrast.c[q].ci_low is never known: arch=y,wd=0,seed=2 is given the same tasks "
         "as arch=y,wd=0,seed=1"},
        {"contrast.c[q].sd < 1", "contrast.c[q].sd is never known"},
        {"trend(measure.q, arch).slope > 0 and rank(measure.q, arch, 'y') == 1", NULL},
        {"trend(measure.q, arch).ci_low > 0",
         "input i: trend(measure.q, arch).ci_low is never known: arch="},
        {"contrast.both[q].se < 1", "contrast.both[q].se is never known"},
        {"contrast.other[loss].ci_high < 0",
         "which makes one replicate of the two; a condition on mean can be decided"},
        {"contrast.other[loss].mean < 0 and contrast.other[q].ci_low > 0 and "
         "contrast.c[q].ci_low > 0",
         "a condition on mean, item_low or item_high can be decided"},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CHECK_ROW("%s", cases[i].condition);
        struct diag diag;
        struct plan_program *p = program_of(TRAIN "params = { a = \"$arch\", w = \"$wd\" }\n" EVAL
                                                  "[stage.eval.when.arch]\nx = { s = \"$seed\" }\n"
                                                  "z = { s = \"$seed\" }\n",
                                            cases[i].condition);
        const char *error = NULL;
        diag_init(&diag, "grid.toml");
        check_factors(p, &diag);
        for (size_t k = 0; k < diag.n_items; k++) {
            error = diag.items[k].level == DIAG_ERROR ? diag.items[k].msg : error;
        }
        expect(i, "an error", cases[i].error, error);
        diag_release(&diag);
        program_free(p);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_cases),
                                       cmocka_unit_test(test_intervals)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
