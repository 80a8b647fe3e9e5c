/* [scope] against what is held fixed: what differs must be declared, what is declared should
 * differ. */
#include <stdlib.h>
#include <string.h>

#include "base/json/json.h"
#include "base/xalloc.h"
#include "tests/unit/check.h"
#include "tests/unit/truthtable/fixture.h"
#include "truthtable/prove/check.h"

/* Two arms: y has twice the parameters of x, and the same tokens. */
#define DESCRIBED                                                                                  \
    "{\"arch=x\":{\"train\":{\"facts\":{\"params_total\":100,\"tokens\":50}}},"                    \
    "\"arch=y\":{\"train\":{\"facts\":{\"params_total\":200,\"tokens\":50}}}}"

static struct plan_program *program_with(const char *scope)
{
    char *text = xasprintf(
        "[program]\nname = \"t\"\nschema = 1\n"
        "[[factor]]\nname = \"arch\"\nlevels = [\"x\", \"y\"]\n"
        "[stage.train]\ncommand = [\"t\"]\nparams = { a = \"$arch\" }\n"
        "[measure]\nq = { metric = \"train.loss\" }\n"
        "[contrast]\nc = { between = { arch = [\"x\", \"y\"] } }\n"
        "[[input]]\nname = \"i\"\nlevels = [[\"a\", \"contrast.c.mean > 0\"], [\"b\", "
        "\"otherwise\"]]\n"
        "[table]\ninputs = [\"i\"]\nrows = [[\"a\", \"A\"], [\"b\", \"B\"]]\n"
        "[outcome]\nA = { prior = 0.5, title = \"a\" }\nB = { prior = 0.4, title = \"b\" }\n%s",
        scope);
    struct plan_program *p = fixture_program(text);
    free(text);
    return p;
}

#define DECLARED                                                                                   \
    "{ column = \"params_total\", text = \"t\" }, { column = \"tokens_per_total\", text = \"t\" }"

static const struct {
    const char *scope;
    const char *says[3]; /* of [scope], in order */
} CASES[] = {
    {"", {NULL}},
    {"[scope]\nconfounds = [" DECLARED "]\n", {NULL}},
    {"[scope]\nclaims = [\"a\"]\n",
     {"P_total differs between the arms of c (x2) and is not declared",
      "tokens/P_total differs between the arms of c (x2) and is not declared", NULL}},
    {"[scope]\nconfounds = [" DECLARED ", { column = \"tokens\", text = \"t\" }]\n",
     {"tokens is equal between the arms of every contrast", NULL}},
    {"[scope]\nconfounds = [" DECLARED
     ", { column = \"steps\", text = \"not known, so no word of it\" }]\n",
     {NULL}},
    {"[scope]\nconfounds = [" DECLARED ", { column = \"P_total\", text = \"t\" }]\n",
     {"\"P_total\" is not a column of what is held fixed", NULL}},
};

/* Those that begin with "scope". */
static void expect(const struct diag *d, const char *const *wanted)
{
    size_t n = 0;
    for (size_t i = 0; i < d->n_items; i++) {
        if (strncmp(d->items[i].msg, "scope", strlen("scope")) != 0) {
            continue;
        }
        if (wanted[n] == NULL || strstr(d->items[i].msg, wanted[n]) == NULL) {
            fail_msg("not expected: %s", d->items[i].msg);
        }
        n++;
    }
    if (wanted[n] != NULL) {
        fail_msg("missing: %s", wanted[n]);
    }
}

static void test_what_differs_is_declared(void **state)
{
    (void)state;
    cJSON *described = NULL;
    struct err err = {0};
    assert_int_equal(json_parse(DESCRIBED, strlen(DESCRIBED), &described, &err), 0);
    for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
        CHECK_ROW("%s", CASES[i].scope);
        struct plan_program *p = program_with(CASES[i].scope);
        struct check_report r;
        struct diag diag;
        diag_init(&diag, "t");
        assert_int_equal(check_run(p, described, &r, &diag, &err), 0);
        expect(&diag, CASES[i].says);
        cJSON *json = check_json(&r);
        const cJSON *confounds = json_member(json_member(json, "fixed"), "confounds");
        assert_true(p->scope.declared == (confounds != NULL));
        cJSON_Delete(json);
        check_release(&r);
        diag_release(&diag);
        program_free(p);
    }
    cJSON_Delete(described);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_what_differs_is_declared)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
