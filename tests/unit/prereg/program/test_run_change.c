/* A change of [run] as text: whole, in one line, and of a hostile receipt. */
#include <stdio.h>
#include <string.h>

#include "base/json/json.h"
#include "prereg/program/run_change.h"
#include "tests/unit/check.h"

#define HEAD "from row 7 of the journal on, [run] was "

static const struct {
    const char *change;
    const char *line;
    const char *tasks;
} CASES[] = {
    {"{\"row\":7,\"run\":{},\"blocked\":0,\"first\":[]}", HEAD "{}: 0 tasks were blocked under it",
     ""},
    {"{\"row\":7,\"run\":{\"slots\":2,\"memory\":\"1GiB\"},\"blocked\":1,\"first\":[\"a/b "
     "(oom)\"]}",
     HEAD "{\"memory\":\"1GiB\",\"slots\":2}: 1 task was blocked under it: a/b (oom)", "a/b (oom)"},
    {"{\"row\":7,\"run\":{},\"blocked\":5,\"first\":[\"a\",\"b\"]}",
     HEAD "{}: 5 tasks were blocked under it: a, b and 3 more", "a, b and 3 more"},
    {"{\"row\":\"7\",\"blocked\":{},\"first\":[1,\"b\",null]}",
     "from row 0 of the journal on, [run] was : 0 tasks were blocked under it: b", "b"},
    {"[]", "from row 0 of the journal on, [run] was : 0 tasks were blocked under it", ""},
};

static void test_cases(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(CASES) / sizeof(CASES[0]); i++) {
        struct strbuf line = STRBUF_INIT;
        struct strbuf tasks = STRBUF_INIT;
        cJSON *change = cJSON_Parse(CASES[i].change);
        assert_non_null(change);
        run_change_line(change, &line);
        run_change_tasks(change, &tasks);
        assert_string_equal(line.buf, CASES[i].line);
        assert_string_equal(tasks.buf, CASES[i].tasks);
        cJSON_Delete(change);
        strbuf_release(&line);
        strbuf_release(&tasks);
    }
}

/* However long: the settings of many stages are printed whole. */
static void test_long(void **state)
{
    struct strbuf line = STRBUF_INIT;
    char key[32];
    cJSON *change = json_object();
    cJSON *run = json_object();
    (void)state;
    for (int i = 0; i < 100; i++) {
        cJSON *stage = json_object();
        (void)snprintf(key, sizeof(key), "stage_%03d", i);
        json_put_int(stage, "crashes", 9);
        json_put(run, key, stage);
    }
    json_put(change, "run", run);
    run_change_line(change, &line);
    assert_non_null(strstr(line.buf, "\"stage_099\":{\"crashes\":9}}: 0 tasks"));
    cJSON_Delete(change);
    strbuf_release(&line);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_cases), cmocka_unit_test(test_long)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
