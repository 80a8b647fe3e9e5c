/* Whose the cells under [run] work are: claimed once, kept by the state that claimed them wherever
 * it goes, refused to others and to copies, adopted from a state that is gone. */
#include <sys/stat.h>
#include <unistd.h>

#include "base/files/file.h"
#include "base/layout/layout.h"
#include "base/xalloc.h"
#include "state/ownership/state_id.h"
#include "state/ownership/work_owner.h"
#include "tests/unit/check.h"
#include "tests/unit/scratch.h"

#define WORK "work/p-00c0ffee"
#define ID   "12345678-1234-4234-8234-123456789012"

static struct work_owner own_of(const char *state)
{
    struct work_owner own;
    struct err err;
    char *path = path_join(scratch_folder, state);
    assert_int_equal(dir_make(path, 0700, &err), 0);
    assert_int_equal(work_owner_init(&own, path, &err), 0);
    free(path);
    assert_int_equal(dir_make(WORK, 0700, &err), 0);
    return own;
}

static void test_a_state_has_one_id(void **state)
{
    char first[UUID_TEXT_SIZE];
    char id[UUID_TEXT_SIZE];
    struct err err;
    (void)state;
    (void)own_of("a");
    (void)own_of("b");
    assert_int_equal(state_id_read("a", first, &err), 0);
    assert_int_equal(state_id_have("a", id, &err), 0);
    assert_string_equal(id, first);
    assert_int_equal(state_id_read("b", id, &err), 0);
    assert_string_not_equal(id, first);
    static const char *const bad[] = {"", "\n", "12345678-1234-4234-8234-12345678901\n",
                                      "not-a-uuid-not-a-uuid-not-a-uuid-not\n"};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        CHECK_ROW("%s", bad[i]);
        scratch_put("a", LAYOUT_STATE_ID, bad[i]);
        assert_int_equal(state_id_have("a", id, &err), ERR_CORRUPT);
        assert_non_null(strstr(err.msg, LAYOUT_STATE_ID));
    }
}

static void test_another_state_is_refused(void **state)
{
    struct work_owner a = own_of("a");
    struct work_owner b = own_of("b");
    struct work_owner found;
    struct err err;
    (void)state;
    assert_int_equal(work_owner_check(WORK, &b, false, &err), 0);
    assert_int_equal(work_owner_read(WORK, &found, &err), ERR_NOT_FOUND);
    assert_int_equal(work_owner_claim(WORK, &a, false, &err), 0);
    assert_int_equal(work_owner_claim(WORK, &a, false, &err), 0);
    assert_int_equal(work_owner_read(WORK, &found, &err), 0);
    assert_string_equal(found.id, a.id);
    assert_int_equal(work_owner_check(WORK, &b, false, &err), ERR_BUSY);
    assert_int_equal(work_owner_claim(WORK, &b, false, &err), ERR_BUSY);
    assert_int_equal(work_owner_keep(WORK, &b, &err), ERR_BUSY);
    assert_int_equal(err_exit_code(ERR_BUSY), EXIT_ANY);
    assert_non_null(strstr(err.msg, "/a of host "));
    assert_non_null(strstr(err.msg, "--adopt-work"));
    work_owner_release(WORK, &b); /* not its own */
    assert_int_equal(work_owner_keep(WORK, &a, &err), 0);
    work_owner_release(WORK, &a);
    assert_int_equal(work_owner_claim(WORK, &b, false, &err), 0);
}

/* The whole command must be in the message, however long the path is. */
static void test_the_message_is_not_cut(void **state)
{
    struct work_owner a = own_of("a");
    struct work_owner b = own_of("b");
    struct err err;
    (void)state;
    memset(a.state, 'x', 300);
    memset(a.host, 'h', 100);
    a.state[0] = '/';
    assert_int_equal(work_owner_claim(WORK, &a, false, &err), 0);
    assert_int_equal(work_owner_check(WORK, &b, false, &err), ERR_BUSY);
    assert_non_null(strstr(err.msg, "`preregd submit --adopt-work`"));
}

/* The same folder after a move to another path, or on another host. */
static void test_a_state_that_moves_keeps_it(void **state)
{
    struct work_owner a = own_of("a");
    struct work_owner found;
    struct err err;
    (void)state;
    assert_int_equal(work_owner_claim(WORK, &a, false, &err), 0);
    assert_int_equal(work_owner_read(WORK, &found, &err), 0);
    char since[WALL_TEXT_SIZE];
    memcpy(since, found.since, sizeof(since));
    assert_int_equal(rename("a", "c"), 0);
    struct work_owner c = own_of("c");
    assert_int_equal(work_owner_check(WORK, &c, false, &err), 0);
    assert_int_equal(work_owner_claim(WORK, &c, false, &err), 0);
    (void)snprintf(c.host, sizeof(c.host), "elsewhere");
    assert_int_equal(work_owner_claim(WORK, &c, false, &err), 0);
    assert_int_equal(work_owner_read(WORK, &found, &err), 0);
    assert_string_equal(found.state, c.state);
    assert_string_equal(found.host, "elsewhere");
    assert_string_equal(found.since, since);
}

/* A copy has the same id, and both paths are there; or, on another host, the file changed while
 * this daemon served. */
static void test_a_copy_is_refused(void **state)
{
    struct work_owner a = own_of("a");
    struct err err;
    (void)state;
    assert_int_equal(work_owner_claim(WORK, &a, false, &err), 0);
    char *id = scratch_read("a/" LAYOUT_STATE_ID);
    scratch_put("copy", LAYOUT_STATE_ID, id);
    free(id);
    struct work_owner copy = own_of("copy");
    assert_string_equal(copy.id, a.id);
    assert_int_equal(work_owner_claim(WORK, &copy, true, &err), ERR_BUSY);
    assert_non_null(strstr(err.msg, "is a copy of it"));
    assert_int_equal(work_owner_keep(WORK, &a, &err), 0);
    (void)snprintf(copy.state, sizeof(copy.state), "%s", a.state);
    (void)snprintf(copy.host, sizeof(copy.host), "elsewhere");
    assert_int_equal(work_owner_claim(WORK, &copy, false, &err), 0);
    assert_int_equal(work_owner_keep(WORK, &a, &err), ERR_BUSY);
}

static void test_what_is_gone_is_adopted(void **state)
{
    struct work_owner a = own_of("a");
    struct work_owner b = own_of("b");
    struct err err;
    (void)state;
    assert_int_equal(work_owner_claim(WORK, &a, false, &err), 0);
    assert_int_equal(work_owner_check(WORK, &b, true, &err), ERR_BUSY);
    assert_int_equal(work_owner_claim(WORK, &b, true, &err), ERR_BUSY);
    assert_non_null(strstr(err.msg, "is not gone"));
    assert_int_equal(dir_remove("a", &err), 0);
    assert_int_equal(work_owner_claim(WORK, &b, false, &err), ERR_BUSY);
    assert_int_equal(work_owner_check(WORK, &b, true, &err), 0);
    assert_int_equal(work_owner_claim(WORK, &b, true, &err), 0);
    assert_int_equal(work_owner_keep(WORK, &b, &err), 0);
    assert_int_equal(work_owner_keep(WORK, &a, &err), ERR_BUSY);
}

/* Removed by hand: the daemon that has the cells claims them again. No folder: its disk is away. */
static void test_a_file_that_is_gone(void **state)
{
    struct work_owner a = own_of("a");
    struct err err;
    (void)state;
    assert_int_equal(work_owner_claim(WORK, &a, false, &err), 0);
    assert_int_equal(unlink(WORK "/" LAYOUT_OWNER), 0);
    assert_int_equal(work_owner_keep(WORK, &a, &err), 0);
    assert_int_equal(access(WORK "/" LAYOUT_OWNER, F_OK), 0);
    assert_int_equal(dir_remove("work", &err), 0);
    assert_int_equal(work_owner_keep(WORK, &a, &err), ERR_NOT_FOUND);
    assert_int_equal(work_owner_claim(WORK, &a, false, &err), ERR_NOT_FOUND);
    assert_int_equal(work_owner_check(WORK, &a, false, &err), 0);
}

static void test_a_file_is_checked(void **state)
{
    static const char *const bad[] = {
        "",
        "{}",
        "[]",
        "{\"schema\":2}",
        "{\"schema\":1,\"state_id\":\"x\",\"host\":\"h\",\"state\":\"/s\",\"since\":\"now\"}",
        ("{\"schema\":1,\"state_id\":\"" ID
         "\",\"host\":\"h\\u001b\",\"state\":\"/s\",\"since\":\"\"}")};
    struct work_owner a = own_of("a");
    struct err err;
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        CHECK_ROW("%s", bad[i]);
        scratch_put(WORK, LAYOUT_OWNER, bad[i]);
        assert_int_equal(work_owner_check(WORK, &a, true, &err), ERR_CORRUPT);
        assert_int_equal(work_owner_claim(WORK, &a, true, &err), ERR_CORRUPT);
        assert_non_null(strstr(err.msg, LAYOUT_OWNER));
    }
}

#define IN_FOLDER(f) cmocka_unit_test_setup_teardown(f, scratch_enter, scratch_leave)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_FOLDER(test_a_state_has_one_id),     IN_FOLDER(test_another_state_is_refused),
        IN_FOLDER(test_the_message_is_not_cut), IN_FOLDER(test_a_state_that_moves_keeps_it),
        IN_FOLDER(test_a_copy_is_refused),      IN_FOLDER(test_what_is_gone_is_adopted),
        IN_FOLDER(test_a_file_that_is_gone),    IN_FOLDER(test_a_file_is_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
