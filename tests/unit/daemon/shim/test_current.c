/* current-attempt: which attempt of a task may publish a result. */
#include <unistd.h>

#include "base/layout/layout.h"
#include "base/xalloc.h"
#include "daemon/shim/current.h"
#include "tests/unit/check.h"
#include "tests/unit/scratch.h"

#define ID_A "11111111-1111-4111-8111-111111111111"
#define ID_B "22222222-2222-4222-8222-222222222222"

/* What an attempt, number 3 and ID_A, concludes from the file's text. */
static void test_only_a_later_attempt_fences(void **state)
{
    static const struct {
        const char *text; /* NULL: no file */
        enum current_finding found;
        int code;
    } rows[] = {
        {"3 " ID_A "\n", CURRENT_OURS, 0},
        {"4 " ID_B "\n", CURRENT_SUPERSEDED, 0},
        {"3 " ID_B "\n", CURRENT_SUPERSEDED, 0},
        {"2 " ID_B "\n", CURRENT_UNKNOWN, ERR_BUSY}, /* an old copy */
        {NULL, CURRENT_UNKNOWN, ERR_NOT_FOUND},
        {"", CURRENT_UNKNOWN, ERR_CORRUPT},
        {"4 " ID_B, CURRENT_UNKNOWN, ERR_CORRUPT},
        {"4  \n", CURRENT_UNKNOWN, ERR_CORRUPT},
        {"0 " ID_B "\n", CURRENT_UNKNOWN, ERR_CORRUPT},
        {"99999999999 " ID_B "\n", CURRENT_UNKNOWN, ERR_CORRUPT},
        {"4 not-a-uuid\n", CURRENT_UNKNOWN, ERR_CORRUPT},
    };
    char *folder = attempt_name_format(3, ID_A);
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        CHECK_ROW("%s", rows[i].text == NULL ? "(none)" : rows[i].text);
        struct err err = {0};
        (void)unlink(LAYOUT_CURRENT);
        if (rows[i].text != NULL) {
            scratch_put(".", LAYOUT_CURRENT, rows[i].text);
        }
        assert_int_equal(current_compare(folder, &err), rows[i].found);
        assert_int_equal(err.code, rows[i].code);
    }
    free(folder);
}

static void test_what_is_written_is_read(void **state)
{
    struct attempt_name a = {.no = 12, .id = ID_A};
    struct attempt_name read;
    struct err err = {0};
    (void)state;
    assert_int_equal(current_read(".", &read, &err), ERR_NOT_FOUND);
    assert_int_equal(current_write(".", &a, &err), 0);
    assert_int_equal(current_read(".", &read, &err), 0);
    assert_int_equal(read.no, 12);
    assert_string_equal(read.id, ID_A);
    assert_int_equal(current_compare("./not-an-attempt", &err), CURRENT_UNKNOWN);
    assert_int_equal(err.code, ERR_INVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_only_a_later_attempt_fences, scratch_enter,
                                        scratch_leave),
        cmocka_unit_test_setup_teardown(test_what_is_written_is_read, scratch_enter, scratch_leave),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
