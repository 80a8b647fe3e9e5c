/* The heartbeat of an attempt: written, read, refused when torn, and compared by its sequence. */
#include <unistd.h>

#include "base/layout/layout.h"
#include "base/xalloc.h"
#include "daemon/shim/heartbeat.h"
#include "tests/unit/check.h"
#include "tests/unit/scratch.h"

static void test_what_is_written_is_read(void **state)
{
    struct heartbeat h;
    struct heartbeat read;
    struct err err;
    (void)state;
    heartbeat_init(&h, "17 of\n\"ours\"");
    assert_string_equal(h.job, "17?of?\"ours\"");
    assert_int_equal(heartbeat_read(".", &read, &err), ERR_NOT_FOUND);
    for (int64_t i = 1; i <= 3; i++) {
        assert_int_equal(heartbeat_write(".", &h, &err), 0);
        assert_int_equal(heartbeat_read(".", &read, &err), 0);
        assert_int_equal(read.sequence, i);
        assert_string_equal(read.boot_id, h.boot_id);
        assert_string_equal(read.host, h.host);
        assert_string_equal(read.job, h.job);
    }
    assert_int_equal(access("." LAYOUT_HEARTBEAT ".tmp", F_OK), -1);
    heartbeat_init(&h, NULL);
    assert_string_equal(h.job, "-");
}

static void test_a_torn_line_is_corrupt(void **state)
{
    static const char *const torn[] = {"",
                                       "1",
                                       "1 boot host job",
                                       "1 boot host job \n",
                                       "1 boot host job more\n",
                                       "1 boot host\n",
                                       "0 boot host job\n",
                                       "-1 boot host job\n",
                                       "99999999999999999999 boot host job\n",
                                       "1 boot host job\n2 boot host job\n"};
    struct heartbeat h;
    struct err err;
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(torn); i++) {
        CHECK_ROW("%s", torn[i]);
        scratch_put(".", LAYOUT_HEARTBEAT, torn[i]);
        assert_int_equal(heartbeat_read(".", &h, &err), ERR_CORRUPT);
        assert_int_equal(h.sequence, 0);
    }
}

/* By our own clock, and by rising sequences alone. */
static void test_only_a_higher_sequence_is_news(void **state)
{
    static const struct {
        int64_t sequence;
        int64_t now_ms;
        bool news;
        bool moved;
        int64_t still_ms;
    } rows[] = {{7, 1000, true, false, 0},     {7, 5000, false, false, 4000},
                {6, 6000, false, false, 5000}, /* an old copy */
                {8, 9000, true, true, 0},      {7, 9500, false, true, 500},
                {8, 12000, false, true, 3000}};
    struct heartbeat_watch w = {0};
    (void)state;
    assert_int_equal(heartbeat_still_ms(&w, (struct mono_time){5}), -1);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        CHECK_ROW("%zu", i);
        struct heartbeat h = {.sequence = rows[i].sequence};
        struct mono_time now = {rows[i].now_ms};
        assert_int_equal(heartbeat_note(&w, &h, now), rows[i].news);
        assert_int_equal(w.moved, rows[i].moved);
        assert_int_equal(heartbeat_still_ms(&w, now), rows[i].still_ms);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_what_is_written_is_read, scratch_enter, scratch_leave),
        cmocka_unit_test_setup_teardown(test_a_torn_line_is_corrupt, scratch_enter, scratch_leave),
        cmocka_unit_test(test_only_a_higher_sequence_is_news),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
