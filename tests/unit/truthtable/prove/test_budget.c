/* Passes over the data, as workers describe them: what is repeated too often, and unequally. */
#include <stdlib.h>
#include <string.h>

#include "base/json/json.h"
#include "base/xalloc.h"
#include "tests/unit/check.h"
#include "tests/unit/truthtable/fixture.h"
#include "truthtable/prove/check.h"

#define PROGRAM                                                                                    \
    "[program]\nname = \"t\"\nschema = 1\n"                                                        \
    "[[factor]]\nname = \"arch\"\nlevels = [\"x\", \"y\"]\n"                                       \
    "[stage.train]\ncommand = [\"t\"]\nparams = { a = \"$arch\" }\n"                               \
    "[measure]\nq = { metric = \"train.loss\" }\n"                                                 \
    "[contrast]\nc = { between = { arch = [\"x\", \"y\"] } }\n"                                    \
    "[[input]]\nname = \"i\"\nlevels = [[\"a\", \"contrast.c.mean > 0\"], [\"b\", "                \
    "\"otherwise\"]]\n"                                                                            \
    "[table]\ninputs = [\"i\"]\nrows = [[\"a\", \"A\"], [\"b\", \"B\"]]\n"                         \
    "[outcome]\nA = { prior = 0.5, title = \"a\" }\nB = { prior = 0.4, title = \"b\" }\n"

#define FACTS(x, y)                                                                                \
    "{\"arch=x\":{\"train\":{\"facts\":{" x "}}},\"arch=y\":{\"train\":{\"facts\":{" y "}}}}"
/* Of a dense arm, whose every parameter is active, and of one with experts. */
#define DENSE "\"params_total\":100,\"params_active\":100,\"tokens\":50,"
#define MOE   "\"params_total\":200,\"params_active\":100,\"tokens\":50,\"tokens_per_expert\":25,"

static const struct {
    const char *described;
    const char *scope;
    const char *says[3]; /* that name passes or unique tokens, in order */
    const char *unknown; /* named among the columns that are not known; NULL: neither of these is */
} CASES[] = {
    /* A worker that says nothing of its data. */
    {FACTS("\"params_total\":100", "\"params_total\":100"), "", {NULL}, NULL},
    /* Less than one pass, however unequal, repeats nothing. */
    {FACTS("\"params_total\":100,\"passes\":0.2,\"passes:web\":0.2",
           "\"params_total\":100,\"passes\":0.8,\"passes:web\":0.8"),
     "",
     {NULL},
     NULL},
    {FACTS("\"params_total\":100,\"passes\":4,\"passes:web\":4",
           "\"params_total\":100,\"passes\":4,\"passes:web\":4"),
     "",
     {NULL},
     NULL},
    {FACTS("\"params_total\":100,\"passes\":4.5,\"passes:web\":4.5,\"passes:maths\":1",
           "\"params_total\":100,\"passes\":4.5,\"passes:web\":4.5,\"data_tokens:web\":12345"),
     "",
     {"stage.train: arch=x passes 4.5 times over \"web\": beyond 4 passes", NULL},
     NULL},
    {FACTS("\"params_total\":100,\"passes\":1,\"passes:web\":1",
           "\"params_total\":100,\"passes\":8,\"passes:web\":8,\"data_tokens:web\":12345"),
     "",
     {"stage.train: arch=y passes 8 times over \"web\" of about 1.23e+04 tokens: beyond 4 passes",
      "contrast.c: one arm passes over its data 8 times as often as the other", NULL},
     NULL},
    {FACTS("\"params_total\":100,\"passes\":2,\"passes:web\":2",
           "\"params_total\":100,\"passes\":3,\"passes:web\":3"),
     "[scope]\nclaims = [\"a\"]\n",
     {"scope.confounds: passes over the data differs between the arms of c (x1.5)", NULL},
     NULL},
    {FACTS("\"params_total\":100,\"passes\":2", "\"params_total\":100,\"passes\":3"),
     "[scope]\nconfounds = [{ column = \"passes\", text = \"t\" }]\n",
     {NULL},
     NULL},
    /* Of one arm alone: not known between them. */
    {FACTS("\"params_total\":100,\"passes\":2", "\"params_total\":100"),
     "",
     {NULL},
     "passes over the data"},
    /* Experts share what is unique as they share all tokens: admitting the one admits the other. */
    {FACTS(DENSE "\"passes\":2,\"unique_tokens\":25",
           MOE "\"passes\":2,\"unique_tokens\":25,\"unique_tokens_per_expert\":12.5"),
     "[scope]\nconfounds = [{ column = \"tokens_per_expert\", text = \"t\" },\n"
     "  { column = \"params_total\", text = \"t\" }, { column = \"tokens_per_total\", text = \"t\" "
     "}]\n",
     {NULL},
     NULL},
    {FACTS(DENSE "\"passes\":2,\"unique_tokens\":25",
           MOE "\"passes\":2,\"unique_tokens\":25,\"unique_tokens_per_expert\":12.5"),
     "[scope]\nclaims = [\"a\"]\n",
     {"scope.confounds: unique tokens per expert differs between the arms of c (x2)", NULL},
     NULL},
};

static bool is_about_data(const char *msg)
{
    return strstr(msg, "passes") != NULL || strstr(msg, "unique tokens") != NULL;
}

static void expect(const struct diag *d, const char *const *wanted)
{
    size_t n = 0;
    for (size_t i = 0; i < d->n_items; i++) {
        if (!is_about_data(d->items[i].msg)) {
            continue;
        }
        if (wanted[n] == NULL || strstr(d->items[i].msg, wanted[n]) == NULL) {
            fail_msg("not expected: %s", d->items[i].msg);
        }
        assert_int_equal(d->items[i].level, DIAG_WARNING);
        assert_true(d->items[i].line > 0);
        n++;
    }
    if (wanted[n] != NULL) {
        fail_msg("missing: %s", wanted[n]);
    }
}

static void test_repeated_data(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
        CHECK_ROW("CASES[%zu]", i);
        cJSON *described = NULL;
        struct err err = {0};
        struct check_report r;
        struct diag diag;
        assert_int_equal(
            json_parse(CASES[i].described, strlen(CASES[i].described), &described, &err), 0);
        char *text = xasprintf("%s%s", PROGRAM, CASES[i].scope);
        struct plan_program *p = fixture_program(text);
        diag_init(&diag, "t");
        assert_int_equal(check_run(p, described, &r, &diag, &err), 0);
        expect(&diag, CASES[i].says);
        const char *unknown = r.fixed_words.unknown;
        if (CASES[i].unknown == NULL) {
            assert_false(is_about_data(unknown));
        } else if (strstr(unknown, CASES[i].unknown) == NULL) {
            fail_msg("not unknown: %s", unknown);
        }
        check_release(&r);
        diag_release(&diag);
        program_free(p);
        cJSON_Delete(described);
        free(text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_repeated_data)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
