/* router.csv: what is read of it, and which files are refused and why. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/files/digest.h"
#include "base/files/file.h"
#include "base/json/json.h"
#include "base/xalloc.h"
#include "tests/unit/check.h"
#include "tests/unit/scratch.h"
#include "truthtable/report/router_course.h"

#define HEAD "step,layer,router_load,router_entropy,router_effective,router_dead,share_0,share_1\n"
#define GOOD                                                                                       \
    HEAD "1,2,1.5,0.8,1.7,0,0.75,0.25\n1,5,1,1,2,0,0.5,0.5\n"                                      \
         "10,2,2,0,1,1,1,0\n10,5,1,,2,0,0.5,0.5\n"

static void test_what_is_read(void **state)
{
    (void)state;
    /* A worker's file may end its last line or not. */
    static const char *const texts[] = {GOOD, GOOD "\n"};
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        struct router_course c;
        struct err err = {0};
        if (router_course_parse(texts[i], strlen(texts[i]), &c, &err) != 0) {
            fail_msg("%s", err.msg);
        }
        assert_int_equal(c.n_samples, 2);
        assert_int_equal(c.n_layers, 2);
        assert_int_equal(c.n_experts, 2);
        assert_int_equal(c.layers[0], 2);
        assert_int_equal(c.layers[1], 5);
        assert_true(c.steps[0] == 1 && c.steps[1] == 10);
        assert_true(router_share(&c, 0, 0, 0) == 0.75 && router_share(&c, 1, 0, 1) == 0);
        assert_true(c.values[ROUTER_ENTROPY][0] == 0.9 && isnan(c.values[ROUTER_ENTROPY][1]));
        assert_true(c.values[ROUTER_DEAD][1] == 0.5);
        assert_true(c.values[ROUTER_EFFECTIVE][0] == 1.85);
        router_course_release(&c);
    }
}

/* Of another worker: no figures but the shares. */
static void test_without_figures(void **state)
{
    (void)state;
    struct router_course c;
    struct err err = {0};
    const char *text = "layer,share_0,step\n0,1,7\n";
    assert_int_equal(router_course_parse(text, strlen(text), &c, &err), 0);
    assert_true(c.n_experts == 1 && c.steps[0] == 7 && isnan(c.values[ROUTER_DEAD][0]));
    router_course_release(&c);
}

static void test_what_is_refused(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        const char *says;
    } cases[] = {
        {"", "line 1: no columns step, layer and share_0"},
        {"step,layer,share_1\n1,0,1\n", "line 1: no columns"},
        {"step,share_0\n1,1\n", "line 1: no columns"},
        {"step,layer,share_0,x,share_1\n1,0,1,0,0\n",
         "line 1: share_1 is not beside the share before it"},
        {HEAD, "no step"},
        {HEAD "1,2,1,1,1,0,0.5\n", "line 2: 7 fields, expected 8"},
        {HEAD "1,2,1,1,1,0,half,0.5\n", "line 2: \"half\" is not a number"},
        {HEAD "1,2,1,1,1,0,,0.5\n", "line 2: \"\" is not a share of 1"},
        {HEAD "1,2,1,1,1,0,1.5,0\n", "line 2: \"1.5\" is not a share of 1"},
        {HEAD "1,2,1,1,1,0,-0.1,0\n", "line 2: \"-0.1\" is not a share of 1"},
        {HEAD ",2,1,1,1,0,1,0\n", "line 2: no step or no layer"},
        {HEAD "1,,1,1,1,0,1,0\n", "line 2: no step or no layer"},
        {HEAD "-1,2,1,1,1,0,1,0\n", "line 2: no step or no layer"},
        {HEAD "1,1.5,1,1,1,0,1,0\n", "line 2: layer 1.5 is not a whole number"},
        {HEAD "5,2,1,1,1,0,1,0\n4,2,1,1,1,0,1,0\n", "line 3: steps do not increase"},
        {HEAD "5,1,1,1,1,0,1,0\n5,2,1,1,1,0,1,0\n6,1,1,1,1,0,1,0\n7,1,1,1,1,0,1,0\n",
         "line 5: the step before this one lacks a layer"},
        {HEAD "5,1,1,1,1,0,1,0\n5,2,1,1,1,0,1,0\n6,1,1,1,1,0,1,0\n", "the last step lacks a layer"},
        {HEAD "5,1,1,1,1,0,1,0\n6,2,1,1,1,0,1,0\n",
         "line 3: layer 2 is not where the first step has it"},
        {HEAD "5,1,1,1,1,0,1,0\n6,1,1,1,1,0,1,0\n6,1,1,1,1,0,1,0\n",
         "line 4: layer 1 is not where the first step has it"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CHECK_ROW("%s", cases[i].text);
        struct router_course c;
        struct err err = {0};
        assert_true(router_course_parse(cases[i].text, strlen(cases[i].text), &c, &err) < 0);
        if (strstr(err.msg, cases[i].says) == NULL) {
            fail_msg("%s", err.msg);
        }
        assert_null(c.shares);
    }
    struct router_course c;
    struct err err = {0};
    assert_true(router_course_parse("step\0", 5, &c, &err) < 0);
}

/* A result beside the file in an attempt's folder, behind the link that the daemon made. */
static cJSON *make_task(const char *text, const char *digest_of)
{
    char hex[DIGEST_HEX_SIZE];
    struct digest digest = digest_bytes(digest_of, strlen(digest_of));
    digest_hex(&digest, hex);
    scratch_put(scratch_folder, "task/attempt-0001-a/router.csv", text);
    scratch_put(scratch_folder, "task/attempt-0001-a/result.json", "{}");
    char *link = path_join(scratch_folder, "task/result.json");
    (void)unlink(link);
    assert_int_equal(symlink("attempt-0001-a/result.json", link), 0);
    free(link);
    cJSON *result = json_object();
    cJSON *artifacts = json_array();
    cJSON *one = json_object();
    json_put_string(one, "path", "router.csv");
    json_put_string(one, "sha256", hex);
    json_push(artifacts, one);
    json_put(result, "artifacts", artifacts);
    return result;
}

static void test_the_digest_must_hold(void **state)
{
    (void)state;
    struct router_courses all = {0};
    char *task = path_join(scratch_folder, "task");
    cJSON *empty = json_object();
    cJSON *good = make_task(GOOD, GOOD);
    router_courses_add(&all, task, empty, 0, 0);
    assert_true(all.n == 0 && all.n_unread == 0);
    router_courses_add(&all, task, good, 3, 1);
    assert_true(all.n == 1 && all.items[0].cell == 3 && all.items[0].stage == 1);
    cJSON *changed = make_task(HEAD "1,2,1,1,1,0,1,0\n", GOOD);
    router_courses_add(&all, task, changed, 4, 1);
    assert_true(all.n == 1 && all.n_unread == 1);
    /* The folder may have been cleaned away. */
    router_courses_add(&all, "/nowhere/at/all", good, 4, 1);
    assert_true(all.n == 1 && all.n_unread == 2);
    router_courses_release(&all);
    cJSON_Delete(empty);
    cJSON_Delete(good);
    cJSON_Delete(changed);
    free(task);
}

/* Two replicates of each condition: the first one's shares are kept, of the first conditions that
 * have a course, in whatever order they come. */
static void test_shares_that_are_kept(void **state)
{
    (void)state;
    enum { N_CONDITIONS = 12, N = 2 * N_CONDITIONS };
    struct plan_cell cells[N];
    struct router_courses all = {0};
    size_t n_kept = 0;
    for (size_t i = 0; i < N; i++) {
        struct err err = {0};
        struct router_course c;
        cells[i] = (struct plan_cell){.condition = N_CONDITIONS - 1 - i % N_CONDITIONS};
        assert_int_equal(router_course_parse(GOOD, strlen(GOOD), &c, &err), 0);
        c.cell = i;
        ARRAY_GROW(all.items, all.n, all.cap);
        all.items[all.n++] = c;
        router_courses_trim(&all, cells);
    }
    for (size_t i = 0; i < N; i++) {
        const bool kept = all.items[i].shares != NULL;
        assert_int_equal(kept, i < N_CONDITIONS && cells[i].condition < ROUTER_MAPS_MAX);
        assert_true(all.items[i].values[ROUTER_ENTROPY][0] == 0.9);
        n_kept += kept;
    }
    assert_int_equal(n_kept, ROUTER_MAPS_MAX);
    router_courses_release(&all);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_read),
        cmocka_unit_test(test_without_figures),
        cmocka_unit_test(test_what_is_refused),
        cmocka_unit_test(test_shares_that_are_kept),
        cmocka_unit_test_setup_teardown(test_the_digest_must_hold, scratch_enter, scratch_leave),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
