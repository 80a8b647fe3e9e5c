/* Results of other names of a work, as a receipt is verified: task by task, the work first. */
#include <stdlib.h>
#include <string.h>

#include "base/diag.h"
#include "base/json/json.h"
#include "base/xalloc.h"
#include "ctl/receipt/verify/verify_parts.h"
#include "tests/unit/check.h"
#include "tests/unit/prereg/support.h"

/* SMALL_PROGRAM's tasks: 2 archs x 2 seeds x 2 stages; those of moe are other names of dense's. */
#define SAME "[[same_work]]\nacross = \"arch\"\n"
#define WORK "{\"protocol\":1,\"attempt\":\"w\",\"metrics\":{\"acc\":0.5}}"

static const struct {
    const char *result; /* of task 4, another name of task 0's work; @: the digest of WORK */
    bool done;          /* the work is */
    const char *says;   /* NULL: it holds */
} CASES[] = {
    {"{\"protocol\":1,\"attempt\":\"n\",\"metrics\":{\"acc\":0.5},"
     "\"same_work\":{\"attempt\":\"w\",\"sha256\":\"@\"}}",
     true, NULL},
    {"{\"protocol\":1,\"attempt\":\"n\",\"metrics\":{\"acc\":0.6},"
     "\"same_work\":{\"attempt\":\"w\",\"sha256\":\"@\"}}",
     true, "\"metrics\" is not that of its work"},
    {"{\"protocol\":1,\"attempt\":\"n\",\"metrics\":{\"acc\":0.5}}", true, "does not say so"},
    /* its work was lost since: nothing can be compared */
    {"{\"protocol\":1,\"attempt\":\"n\",\"metrics\":{\"acc\":0.6},"
     "\"same_work\":{\"attempt\":\"w\",\"sha256\":\"@\"}}",
     false, NULL},
};

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
    char *text = xasprintf("%s%s", SMALL_PROGRAM, SAME);
    struct plan_program *p = program_of(text, NULL);
    for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
        CHECK_ROW("%zu", i);
        struct err err = {0};
        struct verifying v = {.program = p, .err = &err};
        v.history.tasks = xcalloc(program_n_tasks(p), sizeof(*v.history.tasks));
        v.history.tasks[0].result = digest_bytes(WORK, strlen(WORK));
        cJSON *work = parse(WORK);
        cJSON *name = parse(CASES[i].result);
        assert_int_equal(CASES[i].done ? verify_same_work(&v, 0, work) : 0, 0);
        const int rc = verify_same_work(&v, 4, name);
        assert_int_equal(rc, CASES[i].says == NULL ? 0 : ERR_LOCK);
        if (CASES[i].says != NULL && strstr(err.msg, CASES[i].says) == NULL) {
            fail_msg("found \"%s\"", err.msg);
        }
        verify_same_work_release(&v);
        cJSON_Delete(work);
        cJSON_Delete(name);
        free(v.history.tasks);
    }
    program_free(p);
    free(text);
}

/* What the plan does not declare no result may say. */
static void test_a_work_of_its_own(void **state)
{
    (void)state;
    struct plan_program *p = program_of(SMALL_PROGRAM, NULL);
    struct err err = {0};
    struct verifying v = {.program = p, .err = &err};
    cJSON *name = parse(CASES[0].result);
    assert_int_equal(verify_same_work(&v, 4, name), ERR_LOCK);
    assert_non_null(strstr(err.msg, "which the plan does not"));
    assert_null(v.works);
    cJSON_Delete(name);
    program_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_a_work_of_its_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
