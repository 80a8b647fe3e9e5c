/* Which database is trusted when a daemon opens a shared state folder: only one that was whole when
 * its daemon had the folder last. */
#include <unistd.h>

#include "base/layout/layout.h"
#include "base/xalloc.h"
#include "daemon/shared_state.h"
#include "tests/unit/check.h"
#include "tests/unit/scratch.h"

#define STALE    "a database of before"
#define DATABASE "local/" LAYOUT_DATABASE

static int open_shared(struct err *err)
{
    struct shared_state s;
    char *state = xasprintf("%s/state", scratch_folder);
    char *local = xasprintf("%s/local", scratch_folder);
    const struct serve_options o = {.state = state, .database = local};
    int rc = shared_state_open(&o, &s, err);
    if (rc == 0) {
        s.taken.own.released = true;
        assert_int_equal(tenure_renew(state, &s.taken.own, err), 0);
    }
    shared_state_release(&s);
    free(local);
    free(state);
    return rc;
}

static bool is_stale(void)
{
    char *text = scratch_read(DATABASE);
    const bool same = strcmp(text, STALE) == 0;
    free(text);
    return same;
}

/* Another host's daemon served since this one, and said that it stopped. */
static void put_other(int64_t number)
{
    struct tenure t;
    struct err err;
    tenure_init(&t);
    t.number = number;
    (void)snprintf(t.host, sizeof(t.host), "elsewhere");
    (void)snprintf(t.database_id, sizeof(t.database_id), "another");
    assert_int_equal(tenure_claim("state", &t, &err), 0);
    t.released = true;
    assert_int_equal(tenure_renew("state", &t, &err), 0);
}

static void test_a_rebuild_that_failed_is_repeated(void **state)
{
    struct err err;
    (void)state;
    scratch_put("state/programs/waits-00c0ffee", LAYOUT_GRID, "");
    scratch_put("local", "unused", "");
    assert_int_equal(open_shared(&err), 0);
    assert_false(is_stale());
    scratch_put("local", LAYOUT_DATABASE, STALE);
    assert_int_equal(open_shared(&err), 0); /* it was the last one: trusted */
    assert_true(is_stale());
    put_other(3);
    scratch_put("state/programs/broken-00c0ffee", LAYOUT_JOURNAL, "{}\n{}\n");
    assert_int_not_equal(open_shared(&err), 0);
    assert_true(is_stale());
    assert_int_equal(unlink("state/programs/broken-00c0ffee/" LAYOUT_JOURNAL), 0);
    assert_int_equal(rmdir("state/programs/broken-00c0ffee"), 0);
    assert_int_equal(open_shared(&err), 0);
    assert_false(is_stale());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_a_rebuild_that_failed_is_repeated, scratch_enter,
                                        scratch_leave),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
