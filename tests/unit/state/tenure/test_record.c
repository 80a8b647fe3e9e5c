/* The files of tenures: claimed once, replaced by their owner, compared, and read from a folder in
 * which anything may be. */
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/layout/layout.h"
#include "base/xalloc.h"
#include "state/tenure/record.h"
#include "tests/unit/check.h"
#include "tests/unit/scratch.h"

static struct tenure own(int64_t number)
{
    struct tenure t;
    tenure_init(&t);
    t.number = number;
    t.pid_start = 5;
    (void)snprintf(t.job, sizeof(t.job), "17");
    (void)snprintf(t.cluster, sizeof(t.cluster), "lab");
    (void)snprintf(t.database, sizeof(t.database), "/somewhere");
    return t;
}

static void test_a_number_is_claimed_once(void **state)
{
    struct tenure t = own(1);
    struct tenure read;
    struct err err;
    bool found = true;
    (void)state;
    assert_false(tenure_is_kept("."));
    assert_int_equal(tenure_read(".", &read, &found, &err), 0);
    assert_false(found);
    assert_int_equal(tenure_claim(".", &t, &err), 0);
    assert_true(tenure_is_kept("."));
    struct tenure other = own(1);
    assert_int_equal(tenure_claim(".", &other, &err), ERR_EXISTS);
    assert_int_equal(tenure_read(".", &read, &found, &err), 0);
    assert_true(found);
    assert_memory_equal(&read, &t, sizeof(t));
    char *text = tenure_text(&read);
    assert_non_null(strstr(text, "Slurm job 17 of lab"));
    free(text);
}

static void test_the_owner_renews_until_it_is_taken_over(void **state)
{
    struct tenure t = own(1);
    struct tenure next = own(2);
    struct tenure read;
    struct err err;
    bool found = false;
    (void)state;
    assert_int_equal(tenure_claim(".", &t, &err), 0);
    for (int64_t i = 2; i < 5; i++) {
        assert_int_equal(tenure_check(".", &t, &err), 0);
        assert_int_equal(tenure_renew(".", &t, &err), 0);
        assert_int_equal(tenure_read(".", &read, &found, &err), 0);
        assert_int_equal(read.sequence, i);
    }
    assert_int_equal(tenure_claim(".", &next, &err), 0);
    assert_int_equal(tenure_check(".", &t, &err), ERR_MOVED);
    assert_int_equal(err_exit_code(ERR_MOVED), EXIT_MOVED);
    assert_int_equal(tenure_check(".", &next, &err), 0);
    assert_int_equal(tenure_read(".", &read, &found, &err), 0);
    assert_int_equal(read.number, 2);
}

/* A successor that judged long ago, and has been overtaken twice: the number that it wants is free
 * again, since older files are removed. */
static void test_a_late_claim_is_refused(void **state)
{
    struct tenure t = own(3);
    struct tenure late = own(1);
    struct tenure read;
    struct err err;
    bool found = false;
    (void)state;
    assert_int_equal(tenure_claim(".", &t, &err), 0);
    assert_int_equal(tenure_claim(".", &late, &err), ERR_EXISTS);
    assert_int_equal(access(LAYOUT_TENURE "/00000001.json", F_OK), -1);
    assert_int_equal(tenure_read(".", &read, &found, &err), 0);
    assert_int_equal(read.number, 3);
}

/* Behind the last number there is none: it would have a name that no daemon reads. */
static void test_the_last_number(void **state)
{
    struct tenure t = own(99999999);
    struct err err;
    (void)state;
    assert_int_equal(tenure_claim(".", &t, &err), 0);
    assert_int_equal(tenure_check(".", &t, &err), 0);
    t.number++;
    assert_int_equal(tenure_claim(".", &t, &err), ERR_RANGE);
    assert_non_null(strstr(err.msg, "99999999.json"));
    assert_int_equal(access(LAYOUT_TENURE "/100000000.json", F_OK), -1);
}

/* Only the file before is kept; what is not a record is left alone. */
static void test_older_files_are_removed(void **state)
{
    struct err err;
    (void)state;
    for (int64_t i = 1; i <= 4; i++) {
        struct tenure t = own(i);
        assert_int_equal(tenure_claim(".", &t, &err), 0);
        scratch_put(LAYOUT_TENURE, "notes.txt", "a person's");
    }
    assert_int_equal(access(LAYOUT_TENURE "/00000002.json", F_OK), -1);
    assert_int_equal(access(LAYOUT_TENURE "/00000003.json", F_OK), 0);
    assert_int_equal(access(LAYOUT_TENURE "/00000004.json", F_OK), 0);
    assert_int_equal(access(LAYOUT_TENURE "/notes.txt", F_OK), 0);
}

/* What a claimant leaves that is killed between writing its file and naming it. */
static void test_files_of_killed_claimants_are_removed(void **state)
{
    static const char stale[] = ".12345678-1234-4234-8234-123456789012.tmp";
    static const char young[] = ".12345678-1234-4234-8234-123456789013.tmp";
    const struct timespec long_ago[2] = {{.tv_sec = 1000}, {.tv_sec = 1000}};
    struct tenure t = own(1);
    struct err err;
    (void)state;
    scratch_put(LAYOUT_TENURE, stale, "");
    scratch_put(LAYOUT_TENURE, young, "");
    char *path = xasprintf(LAYOUT_TENURE "/%s", stale);
    assert_int_equal(utimensat(AT_FDCWD, path, long_ago, 0), 0);
    assert_int_equal(tenure_claim(".", &t, &err), 0);
    assert_int_equal(access(path, F_OK), -1);
    free(path);
    path = xasprintf(LAYOUT_TENURE "/%s", young);
    assert_int_equal(access(path, F_OK), 0);
    free(path);
}

static void test_a_record_is_checked(void **state)
{
    static const char *const bad[] = {"", "{}", "[]", "{\"schema\":2}",
                                      "{\"schema\":1,\"number\":1,\"sequence\":0}"};
    struct tenure t = own(1);
    struct tenure read;
    struct err err;
    bool found = true;
    (void)state;
    assert_int_equal(tenure_claim(".", &t, &err), 0);
    char *good = scratch_read(LAYOUT_TENURE "/00000001.json");
    scratch_put(LAYOUT_TENURE, "00000002.json", good); /* its number is 1 */
    assert_int_equal(tenure_read(".", &read, &found, &err), ERR_CORRUPT);
    assert_non_null(strstr(err.msg, "00000002.json"));
    free(good);
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        CHECK_ROW("%s", bad[i]);
        scratch_put(LAYOUT_TENURE, "00000002.json", bad[i]);
        assert_int_equal(tenure_read(".", &read, &found, &err), ERR_CORRUPT);
        assert_false(found);
    }
}

static void test_the_local_folder_is_of_this_host(void **state)
{
    struct tenure t = own(1);
    struct err err;
    (void)state;
    char *folder = tenure_local_folder(".");
    assert_string_equal(folder, ".");
    free(folder);
    assert_int_equal(tenure_claim(".", &t, &err), 0);
    folder = tenure_local_folder(".");
    assert_string_equal(folder, "/somewhere");
    free(folder);
    t = own(2);
    (void)snprintf(t.host, sizeof(t.host), "elsewhere");
    assert_int_equal(tenure_claim(".", &t, &err), 0);
    folder = tenure_local_folder(".");
    assert_string_equal(folder, ".");
    free(folder);
}

#define IN_FOLDER(f) cmocka_unit_test_setup_teardown(f, scratch_enter, scratch_leave)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_FOLDER(test_a_number_is_claimed_once),
        IN_FOLDER(test_the_owner_renews_until_it_is_taken_over),
        IN_FOLDER(test_a_late_claim_is_refused),
        IN_FOLDER(test_the_last_number),
        IN_FOLDER(test_older_files_are_removed),
        IN_FOLDER(test_files_of_killed_claimants_are_removed),
        IN_FOLDER(test_a_record_is_checked),
        IN_FOLDER(test_the_local_folder_is_of_this_host),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
