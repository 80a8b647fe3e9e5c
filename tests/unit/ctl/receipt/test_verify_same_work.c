/* Results of other names of a work, as a receipt is verified: task by task, the work first. */
#include <stdlib.h>
#include <string.h>

#include "base/diag.h"
#include "base/json/json.h"
#include "base/xalloc.h"
#include "ctl/receipt/verify/verify_parts.h"
#include "tests/unit/check.h"
#include "tests/unit/prereg/support.h"

/* SMALL_PROGRAM with a third arch: 3 archs x 2 seeds x 2 stages; tasks 4 and 8 are other names of
 * task 0's work. */
#define SAME "[[same_work]]\nacross = \"arch\"\n"
#define WORK "{\"protocol\":1,\"attempt\":\"w\",\"metrics\":{\"acc\":0.5}}"

#define ZEROS "0000000000000000000000000000000000000000000000000000000000000000"
#define NAME(attempt, acc, of)                                                                     \
    "{\"protocol\":1,\"attempt\":\"" attempt "\",\"metrics\":{\"acc\":" acc                        \
    "},\"same_work\":{\"attempt\":\"" of "\",\"sha256\":\"@\"}}"

static const struct {
    const char *results[2]; /* of tasks 4 and 8; @: the digest of WORK; NULL: that is not done */
    bool done;              /* the work is; otherwise it was lost since */
    bool was_accepted;      /* by the journal */
    const char *says;       /* NULL: it holds */
} CASES[] = {
    {{NAME("n", "0.5", "w"), NAME("m", "0.5", "w")}, true, true, NULL},
    {{NAME("n", "0.6", "w"), NULL}, true, true, "\"metrics\" is not that of its work"},
    {{"{\"protocol\":1,\"attempt\":\"n\",\"metrics\":{\"acc\":0.5}}", NULL},
     true,
     true,
     "does not say so"},
    /* the names of a lost work have the result that the journal accepted of it, all the same */
    {{NAME("n", "0.5", "w"), NAME("m", "0.5", "w")}, false, true, NULL},
    {{NULL, NAME("m", "0.5", "w")}, false, true, NULL},
    {{NAME("n", "0.5", "w"), NAME("m", "0.6", "w")},
     false,
     true,
     "\"metrics\" is not that of its work"},
    {{NAME("n", "0.5", "x"), NULL}, false, true, "the task of its work has no attempt x"},
    {{NAME("n", "0.5", "w"), NULL}, false, false, "is not one that the journal accepted"},
    {{"{\"protocol\":1,\"attempt\":\"n\",\"metrics\":{\"acc\":0.5}}", NULL},
     false,
     true,
     "does not say so"},
    {{"{\"same_work\":{\"attempt\":\"w\",\"sha256\":\"" ZEROS "\"}}", NULL},
     false,
     false,
     "is not one that the journal accepted"},
    {{"{\"same_work\":{\"attempt\":\"w\",\"sha256\":\"00\"}}", NULL},
     false,
     true,
     "is not one that the journal accepted"},
};

static struct plan_program *plan_of(const char *from, const char *to)
{
    char *three = text_replace(SMALL_PROGRAM, "\"moe\"]", "\"moe\", \"wide\"]");
    char *changed = text_replace(three, from, to);
    char *text = xasprintf("%s%s", changed, SAME);
    struct plan_program *p = program_of(text, NULL);
    free(three);
    free(changed);
    free(text);
    return p;
}

static cJSON *parse(const char *text)
{
    char hex[DIGEST_HEX_SIZE];
    struct digest d = digest_bytes(WORK, strlen(WORK));
    digest_hex(&d, hex);
    char *whole = strchr(text, '@') == NULL ? xstrdup(text) : text_replace(text, "@", hex);
    cJSON *o = cJSON_Parse(whole);
    assert_non_null(o);
    free(whole);
    return o;
}

static void test_names(void **state)
{
    (void)state;
    struct plan_program *p = plan_of("Which?", "Which?");
    struct history_attempt attempt = {.task = 0, .row = {.id = "w"}};
    for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
        CHECK_ROW("%zu", i);
        struct err err = {0};
        struct verifying v = {.program = p, .err = &err};
        v.history.tasks = xcalloc(program_n_tasks(p), sizeof(*v.history.tasks));
        v.history.attempts = &attempt;
        v.history.n_attempts = 1;
        if (CASES[i].was_accepted) {
            v.history.tasks[0].result = digest_bytes(WORK, strlen(WORK));
        }
        cJSON *work = parse(WORK);
        int rc = CASES[i].done ? verify_same_work(&v, 0, work) : 0;
        for (size_t k = 0; rc == 0 && k < ARRAY_LEN(CASES[i].results); k++) {
            if (CASES[i].results[k] != NULL) {
                cJSON *name = parse(CASES[i].results[k]);
                rc = verify_same_work(&v, 4 + 4 * k, name);
                cJSON_Delete(name);
            }
        }
        assert_int_equal(rc, CASES[i].says == NULL ? 0 : ERR_LOCK);
        if (CASES[i].says != NULL && strstr(err.msg, CASES[i].says) == NULL) {
            fail_msg("found \"%s\"", err.msg);
        }
        /* nothing is kept behind the last name */
        assert_true(CASES[i].says != NULL || v.works.of[0] == NULL);
        verify_same_work_release(&v);
        cJSON_Delete(work);
        free(v.history.tasks);
    }
    program_free(p);
}

#define OWN_LR                                                                                     \
    "params = { lr = 1e-3, seed = \"$seed\", data = \"corpus\" }\n[stage.train.when.arch]\nmoe = " \
    "{ lr = 2 }\n"
#define RESOLVED(of_moe)                                                                           \
    "{\"arch=dense\":{\"train\":{\"resolves\":{\"lr\":7}}},\"arch=moe\":{\"train\":{\"resolves\":" \
    "{\"lr\":" of_moe "}}},\"arch=wide\":{\"train\":{\"resolves\":{\"lr\":7}}}}"
#define SOLVED "{\"arch=moe\":{\"train\":{\"lr\":2}}}"

/* Whether the plan's other names ask the same: as written, as the lock has it, or not at all. */
static void test_works(void **state)
{
    static const struct {
        const char *params;
        const char *solved;
        const char *describe;
        size_t n_amendments;
        int rc;
        const char *says; /* of the fault, or of what is not shown; NULL: it is shown */
    } cases[] = {
        {"params = { lr = 1, seed = \"$seed\" }\n", "{}", "{}", 0, 0, NULL},
        {"params = { lr = 1, seed = \"$seed\" }\n", SOLVED, "{}", 0, ERR_LOCK,
         "`lr` of stage train is another in arch=moe,seed=1 than in arch=dense,seed=1"},
        {OWN_LR, "{}", RESOLVED("7"), 0, 0, "`lr` of stage train is another in arch=moe,seed=1"},
        {OWN_LR, "{}", RESOLVED("8"), 0, ERR_LOCK, "`lr` of stage train is another in arch=moe"},
        {OWN_LR, "{}", "{}", 0, ERR_LOCK, "and no worker says that it comes to the same"},
        /* a stranger's remarks in other forms */
        {OWN_LR, "{}",
         "{\"arch=dense\":{\"train\":{\"params\":[1],\"resolves\":[{\"lr\":7}]}},\"arch=moe\":[1,2]"
         ","
         "\"arch=wide\":{\"train\":null}}",
         0, ERR_LOCK, "and no worker says"},
        /* what a remark says to be solved is not */
        {OWN_LR, "{}",
         "{\"arch=dense\":{\"train\":{\"params\":{\"lr\":2}}},\"arch=wide\":{\"train\":{\"params\":"
         "{\"lr\":"
         "2}}}}",
         0, ERR_LOCK, "and no worker says"},
        /* an amendment may have brought answers that are not in the lock */
        {OWN_LR, "{}", "{}", 1, 0, "`lr` of stage train is another in arch=moe,seed=1"},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CHECK_ROW("%zu", i);
        struct err err = {0};
        struct plan_program *p =
            plan_of("params = { lr = 1e-3, seed = \"$seed\", data = \"corpus\" }\n"
                    "[stage.train.when.arch]\nmoe = { experts = 4 }\n",
                    cases[i].params);
        cJSON *solved = cJSON_Parse(cases[i].solved);
        cJSON *describe = cJSON_Parse(cases[i].describe);
        struct lock lock = {
            .solved = solved, .describe = describe, .n_amendments = cases[i].n_amendments};
        struct verifying v = {.program = p, .err = &err, .lock = &lock};
        arena_init(&v.arena);
        v.established = json_array();
        assert_int_equal(verify_works(&v), cases[i].rc);
        const char *said = cases[i].rc != 0 ? err.msg : v.works.rests_on;
        assert_int_equal(cJSON_GetArraySize(v.established), cases[i].says == NULL ? 1 : 0);
        if (cases[i].says == NULL) {
            assert_null(said);
        } else if (said == NULL || strstr(said, cases[i].says) == NULL) {
            fail_msg("found \"%s\"", said == NULL ? "nothing" : said);
        }
        cJSON_Delete(v.established);
        cJSON_Delete(solved);
        cJSON_Delete(describe);
        arena_release(&v.arena);
        program_free(p);
    }
}

/* What the plan does not declare no result may say. */
static void test_a_work_of_its_own(void **state)
{
    (void)state;
    struct plan_program *p = program_of(SMALL_PROGRAM, NULL);
    struct err err = {0};
    struct verifying v = {.program = p, .err = &err};
    cJSON *name = parse(CASES[0].results[0]);
    assert_int_equal(verify_same_work(&v, 4, name), ERR_LOCK);
    assert_non_null(strstr(err.msg, "which the plan does not"));
    assert_null(v.works.of);
    cJSON_Delete(name);
    program_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_works),
        cmocka_unit_test(test_a_work_of_its_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
