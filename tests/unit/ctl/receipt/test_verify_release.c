/* Who fills the roles that [release] requires: each another key and another principal. */
#include <stdlib.h>
#include <string.h>

#include "base/json/json.h"
#include "base/xalloc.h"
#include "ctl/receipt/verify/verify_parts.h"
#include "tests/unit/check.h"
#include "tests/unit/prereg/support.h"

#define SIGNED(key, who, role)                                                                     \
    "{\"key\":\"" key "\",\"principal\":\"" who "\",\"role\":\"" role "\",\"allowed\":true}"

static const struct {
    const char *signatures;
    const char *why; /* NULL: released */
} CASES[] = {
    {"[]", "no allowed signer signed it as: scientific, adversarial"},
    {"[" SIGNED("1", "sara", "scientific") "]", "no allowed signer signed it as: adversarial"},
    {"[" SIGNED("1", "sara", "scientific") "," SIGNED("2", "adam", "adversarial") "]", NULL},
    {"[" SIGNED("1", "sara", "scientific") "," SIGNED("1", "sara", "adversarial") "]",
     "one reviewer signed in more than one role"},
    /* two keys of one person */
    {"[" SIGNED("1", "sara", "scientific") "," SIGNED("2", "sara", "adversarial") "]",
     "one reviewer signed in more than one role"},
    /* one key under two names */
    {"[" SIGNED("1", "sara", "scientific") "," SIGNED("1", "adam", "adversarial") "]",
     "one reviewer signed in more than one role"},
    /* more keys of the same two roles do not help; a second person does, wherever listed */
    {"[" SIGNED("1", "sara", "scientific") "," SIGNED("2", "sara", "scientific") "," SIGNED(
         "3", "sara", "scientific") "," SIGNED("4", "sara", "scientific") "," SIGNED("5", "sara",
                                                                                     "adversaria"
                                                                                     "l") "]",
     "one reviewer signed in more than one role"},
    {"[" SIGNED("1", "sara", "scientific") "," SIGNED("2", "sara", "scientific") "," SIGNED(
         "3", "sara", "scientific") "," SIGNED("4", "adam", "scientific") "," SIGNED("5", "sara",
                                                                                     "adversaria"
                                                                                     "l") "]",
     NULL},
    /* who is not allowed fills no role */
    {"[" SIGNED("1", "sara", "scientific") ",{\"key\":\"2\",\"principal\":null,\"role\":"
                                           "\"adversarial\",\"allowed\":false}]",
     "no allowed signer signed it as: adversarial"},
    /* a signature in no role */
    {"[" SIGNED("1", "sara", "scientific") ",{\"key\":\"2\",\"principal\":\"adam\",\"role\":null,"
                                           "\"allowed\":true}]",
     "no allowed signer signed it as: adversarial"},
};

static void test_roles(void **state)
{
    (void)state;
    char *text =
        xasprintf("%s[release]\nrequires = [\"scientific\", \"adversarial\"]\n", SMALL_PROGRAM);
    struct plan_program *p = program_of(text, NULL);
    const struct verify_spec spec = {.allowed_signers = "signers"};
    for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
        CHECK_ROW("%zu", i);
        struct verify_answer out = {0};
        struct verifying v = {.program = p, .spec = &spec, .out = &out};
        v.signatures = cJSON_Parse(CASES[i].signatures);
        assert_non_null(v.signatures);
        cJSON *release = verify_release(&v);
        const cJSON *why = json_member(release, "why");
        assert_int_equal(out.is_unreleased, CASES[i].why != NULL);
        assert_int_equal(cJSON_IsTrue(json_member(release, "released")), CASES[i].why == NULL);
        if (CASES[i].why != NULL) {
            assert_non_null(strstr(why->valuestring, CASES[i].why));
        }
        cJSON_Delete(release);
        cJSON_Delete(v.signatures);
    }
    program_free(p);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_roles)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
