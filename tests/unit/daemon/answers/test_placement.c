/* Where an attempt of Slurm ran is read from its folder, and only when it may be. */
#include "base/json/json.h"
#include "base/xalloc.h"
#include "daemon/answers/placement.h"
#include "daemon/shim/heartbeat.h"
#include "tests/unit/check.h"
#include "tests/unit/scratch.h"

static void test_folders_are_read_where_they_may_be(void **state)
{
    static const struct {
        const char *folder;
        enum attempt_state at;
        const char *job; /* NULL: not known */
    } rows[] = {
        {".", ATTEMPT_ENDED, "17"},  {".", ATTEMPT_RUNNING, "17"},    {".", ATTEMPT_STARTING, NULL},
        {NULL, ATTEMPT_ENDED, NULL}, {"absent", ATTEMPT_ENDED, NULL},
    };
    const struct shell sh = {0};
    struct heartbeat h;
    struct err err;
    (void)state;
    heartbeat_init(&h, "17");
    assert_int_equal(heartbeat_write(".", &h, &err), 0);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        CHECK_ROW("%zu", i);
        const struct attempt_row a = {.state = rows[i].at,
                                      .placement = {.executor = EXECUTOR_SLURM}};
        cJSON *o = json_object();
        placement_put(o, &sh, rows[i].folder, &a);
        const cJSON *job = json_member(o, "job");
        const cJSON *node = json_member(o, "node");
        assert_int_equal(cJSON_IsNull(job), rows[i].job == NULL);
        assert_int_equal(cJSON_IsNull(node), rows[i].job == NULL);
        if (rows[i].job != NULL) {
            assert_string_equal(job->valuestring, rows[i].job);
            assert_string_equal(node->valuestring, h.host);
        }
        cJSON_Delete(o);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_folders_are_read_where_they_may_be),
    };
    return cmocka_run_group_tests(tests, scratch_enter, scratch_leave);
}
