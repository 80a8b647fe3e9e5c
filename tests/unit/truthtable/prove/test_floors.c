/* Floors near chance, chance against a worker's own figure: warned of, with the figure; and what
 * the table reads while nothing seals it. */
#include <stdlib.h>
#include <string.h>

#include "base/json/json.h"
#include "base/xalloc.h"
#include "prereg/program/input_reads.h"
#include "tests/unit/check.h"
#include "tests/unit/truthtable/fixture.h"
#include "truthtable/prove/check.h"

static struct plan_program *program_of(const char *measures, const char *condition)
{
    struct strbuf sb = STRBUF_INIT;
    strbuf_addf(
        &sb,
        "[program]\nname = \"t\"\nschema = 1\n"
        "[[factor]]\nname = \"arch\"\nlevels = [\"x\", \"y\"]\n"
        "[stage.train]\ncommand = [\"t\"]\nparams = { a = \"$arch\" }\n"
        "[stage.eval]\nafter = [\"train\"]\ncommand = [\"e\"]\n"
        "[measure]\n%s\n"
        "[contrast]\nc = { between = { arch = [\"x\", \"y\"] } }\n"
        "[[input]]\nname = \"i\"\nlevels = [[\"a\", \"%s\"], [\"b\", \"otherwise\"]]\n"
        "[table]\ninputs = [\"i\"]\nrows = [[\"a\", \"A\"], [\"b\", \"B\"]]\n"
        "[outcome]\nA = { prior = 0.5, title = \"a\" }\nB = { prior = 0.4, title = \"b\" }\n",
        measures, condition);
    struct plan_program *p = fixture_program(sb.buf);
    strbuf_release(&sb);
    return p;
}

#define TWO_CHOICES "{\"arch=x\":{\"eval\":{\"facts\":{\"chance\":0.5}}}}"

static const struct {
    const char *measure;
    const char *describe;
    const char *warnings[3];
} FLOORS[] = {
    {"q = { metric = \"eval.acc\", items = 100, chance = 0.25, floor = 0.4 }", NULL, {NULL}},
    {"q = { metric = \"eval.acc\", items = 100, chance = 0.25, floor = 0.27 }",
     NULL,
     {"the floor 0.27 is 0.46 standard errors above chance (0.25 on 100 items): a guessing cell "
      "clears it with probability 0.32; 2 standard errors are 0.3366"}},
    {"q = { metric = \"eval.acc\", items = 10000, chance = 0.25, floor = 0.27 }", NULL, {NULL}},
    {"q = { metric = \"eval.acc\", chance = 0.25, floor = 0.25 }",
     NULL,
     {"the floor 0.25 is not above chance, 0.25: guessing clears it"}},
    {"q = { metric = \"eval.acc\", items = 100, chance = 0.25, floor = 0.4 }",
     TWO_CHOICES,
     {"chance = 0.25, and guessing among the choices of its items gives 0.5"}},
    {"q = { metric = \"eval.acc\", items = 100, floor = 0.4 }",
     TWO_CHOICES,
     {"the floor 0.4 is not above chance, 0.5"}},
    {"q = { metric = \"eval.acc\", items = 100, chance = 0.5, floor = 0.7 }", TWO_CHOICES, {NULL}},
    {"q = { metric = \"eval.exact_match\", items = 100, chance = 0.25, floor = 0.4 }",
     TWO_CHOICES,
     {NULL}},
};

static void expect(size_t i, const struct diag *d, const char *const *wanted)
{
    size_t n = 0;
    for (; wanted[n] != NULL; n++) {
        if (n >= d->n_items || strstr(d->items[n].msg, wanted[n]) == NULL) {
            fail_msg("case %zu: expected \"%s\", found \"%s\"", i, wanted[n],
                     n < d->n_items ? d->items[n].msg : "nothing");
        }
        assert_int_equal(d->items[n].level, DIAG_WARNING);
    }
    if (d->n_items != n) {
        fail_msg("case %zu: not expected: %s", i, d->items[n].msg);
    }
}

static void test_floors(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(FLOORS); i++) {
        CHECK_ROW("%s", FLOORS[i].measure);
        struct diag diag;
        struct err err;
        cJSON *said = NULL;
        const char *text = FLOORS[i].describe;
        struct plan_program *p = program_of(FLOORS[i].measure, "contrast.c[q].mean > 0");
        assert_int_equal(text == NULL ? 0 : json_parse(text, strlen(text), &said, &err), 0);
        diag_init(&diag, "grid.toml");
        check_floors(p, said, &diag);
        expect(i, &diag, FLOORS[i].warnings);
        diag_release(&diag);
        cJSON_Delete(said);
        program_free(p);
    }
}

#define SEALED "q = { metric = \"eval.acc\" }\n"
#define LOSS   "loss = { metric = \"train.loss\", counted = false }\n"

static const struct {
    const char *measures;
    const char *condition;
    const char *warnings[3];
} OPEN[] = {
    {SEALED LOSS, "contrast.c[q].mean > 0", {NULL}},
    {SEALED LOSS,
     "contrast.c[loss].mean > 0",
     {"the table reads measure loss, which is not sealed"}},
    {SEALED LOSS, "measure.loss['x'].mean > 0", {"the table reads measure loss"}},
    {SEALED LOSS, "fact.train.loss > 0", {"the table reads fact.train.loss, which"}},
    {SEALED LOSS, "fact.eval.loss > 0", {NULL}},
    /* its stage is sealed by a counted measure */
    {SEALED "more = { metric = \"eval.more\", counted = false }",
     "contrast.c[more].mean > 0",
     {NULL}},
    {SEALED LOSS,
     "ratio(fact.train.seconds, arch, 'x', 'y') < contrast.c[ loss ].mean",
     {"the table reads measure loss", "the table reads fact.train.seconds"}},
    /* Blanks may stand between words; what is in quotes is no name. */
    {SEALED LOSS, "measure. loss['x'].mean > 0", {"the table reads measure loss"}},
    {SEALED LOSS, "measure . loss ['x'] . mean > 0", {"the table reads measure loss"}},
    {SEALED LOSS,
     "fact. train.x > fact . train . y or fact.train. x > 2",
     {"the table reads fact.train.x, which", "the table reads fact.train.y, which"}},
};

static void test_open(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(OPEN); i++) {
        CHECK_ROW("%s", OPEN[i].measures);
        struct diag diag;
        struct plan_program *p = program_of(OPEN[i].measures, OPEN[i].condition);
        diag_init(&diag, "grid.toml");
        open_reads_check(p, &diag);
        expect(i, &diag, OPEN[i].warnings);
        diag_release(&diag);
        program_free(p);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_floors), cmocka_unit_test(test_open)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
