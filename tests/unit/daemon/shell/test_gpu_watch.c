/* Which processes on a GPU are not ours, and what is said of them. */
#include <stdlib.h>

#include "daemon/shell/gpu_watch.h"
#include "daemon/shim/mark.h"
#include "tests/unit/check.h"

#define OURS   "01234567-89ab-4def-8123-456789abcdef"
#define OTHERS "99999999-89ab-4def-8123-456789abcdef"

static void test_users(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        const char *processes;
        bool other_pids;
        bool held;
        const char *says;
    } rows[] = {
        {"none", "", false, false, ""},
        {"a stranger", "{\"pid\":4711,\"name\":\"python\",\"user\":\"x\"}", false, false,
         "pid 4711 (python) of user x"},
        {"also on one that we hold", "{\"pid\":4711,\"name\":\"python\"}", false, true,
         "pid 4711 (python)"},
        {"one that has ended", "{\"pid\":4711}", false, false, ""},
        {"ours by its group", "{\"pid\":1,\"name\":\"a\",\"attempt\":\"" OURS "\"}", false, false,
         ""},
        {"of another daemon", "{\"pid\":1,\"name\":\"a\",\"attempt\":\"" OTHERS "\"}", false, false,
         "pid 1 (a)"},
        {"ours by its mark", "{\"pid\":1,\"name\":\"a\",\"mark\":\"50520123456789ab\"}", false,
         false, ""},
        {"another's mark", "{\"pid\":1,\"name\":\"a\",\"mark\":\"5052999999999999\"}", false, false,
         "pid 1 (a)"},
        {"a server", "{\"pid\":1,\"name\":\"nvidia-cuda-mps\"}", false, false, ""},
        {"three",
         "{\"pid\":1,\"name\":\"a\"},{\"pid\":2,\"name\":\"b\"},{\"pid\":3,\"name\":\"c\"}", false,
         false, "pid 1 (a) and pid 2 (b) and 1 more"},
        {"other numbers, not ours", "{\"pid\":4711}", true, false, "pid 4711"},
        {"other numbers, perhaps ours", "{\"pid\":4711}", true, true, ""},
    };
    char ids[1][UUID_TEXT_SIZE] = {OURS};
    uint64_t marks[1] = {mark_limit(OURS)};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        CHECK_ROW("%s", rows[i].name);
        const struct gpu_owners ours = {
            .ids = ids, .marks = marks, .n = 1, .other_pids = rows[i].other_pids};
        struct strbuf json = STRBUF_INIT;
        struct strbuf says = STRBUF_INIT;
        struct gpu_list list;
        struct err err;
        strbuf_addf(&json, "[{\"uuid\":\"GPU-a\",\"model\":\"m\",\"processes\":[%s]}]",
                    rows[i].processes);
        assert_int_equal(gpu_list_read(json.buf, json.len, &list, &err), 0);
        gpu_users_text(&list.items[0], &ours, rows[i].held, &says);
        assert_string_equal(says.buf, rows[i].says);
        gpu_list_release(&list);
        strbuf_release(&json);
        strbuf_release(&says);
    }
}

static void test_memory_of_others(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        const char *members;
        bool other_pids;
        bool held;
        int64_t bytes;
    } rows[] = {
        {"all is free", "\"free_bytes\":100", false, false, 0},
        {"not known", "\"processes\":[]", false, false, 0},
        {"nobody's", "\"free_bytes\":60", false, false, 40},
        {"ours",
         "\"free_bytes\":60,\"processes\":[{\"pid\":1,\"attempt\":\"" OURS
         "\",\"memory_bytes\":30}]",
         false, true, 10},
        {"ours, how much is not known",
         "\"free_bytes\":60,\"processes\":[{\"pid\":1,\"attempt\":\"" OURS "\"}]", false, true, 0},
        {"ours have more than is used",
         "\"free_bytes\":60,\"processes\":[{\"pid\":1,\"attempt\":\"" OURS
         "\",\"memory_bytes\":90}]",
         false, true, 0},
        {"of another daemon",
         "\"free_bytes\":60,\"processes\":[{\"pid\":1,\"attempt\":\"" OTHERS
         "\",\"memory_bytes\":30}]",
         false, false, 40},
        {"other numbers, perhaps ours", "\"free_bytes\":60", true, true, 0},
        {"other numbers, not ours", "\"free_bytes\":60", true, false, 40},
        {"more than there is", "\"free_bytes\":200", false, false, 0},
    };
    char ids[1][UUID_TEXT_SIZE] = {OURS};
    uint64_t marks[1] = {mark_limit(OURS)};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        CHECK_ROW("%s", rows[i].name);
        const struct gpu_owners ours = {
            .ids = ids, .marks = marks, .n = 1, .other_pids = rows[i].other_pids};
        struct strbuf json = STRBUF_INIT;
        struct gpu_list list;
        struct err err;
        strbuf_addf(&json, "[{\"uuid\":\"GPU-a\",\"model\":\"m\",\"memory_bytes\":100,%s}]",
                    rows[i].members);
        assert_int_equal(gpu_list_read(json.buf, json.len, &list, &err), 0);
        assert_int_equal(gpu_others_bytes(&list.items[0], &ours, rows[i].held), rows[i].bytes);
        gpu_list_release(&list);
        strbuf_release(&json);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_users),
                                       cmocka_unit_test(test_memory_of_others)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
