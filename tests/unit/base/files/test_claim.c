/* A file that one claimant makes, and what killed claimants leave behind. */
#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/files/claim.h"
#include "base/files/file.h"
#include "base/xalloc.h"
#include "tests/unit/check.h"
#include "tests/unit/scratch.h"

#define ID "12345678-1234-4234-8234-12345678901"

static size_t n_files(const char *folder)
{
    struct name_list names = {0};
    struct err err;
    assert_int_equal(dir_list(folder, &names, &err), 0);
    size_t n = names.n;
    name_list_release(&names);
    return n;
}

static void test_one_claims(void **state)
{
    struct err err;
    (void)state;
    assert_int_equal(claim_file("f/x", "first\n", 6, &err), ERR_NOT_FOUND);
    assert_int_equal(dir_make("f", 0700, &err), 0);
    assert_int_equal(claim_file("f/x", "first\n", 6, &err), 0);
    assert_int_equal(claim_file("f/x", "second\n", 7, &err), ERR_EXISTS);
    char *text = scratch_read("f/x");
    assert_string_equal(text, "first\n");
    free(text);
    assert_int_equal(n_files("f"), 1); /* no temporary file stays */
}

/* A file with a time, in seconds from now. */
static void put(const char *name, int64_t seconds)
{
    struct timespec times[2] = {{.tv_sec = time(NULL) + seconds}, {.tv_sec = time(NULL) + seconds}};
    scratch_put("f", name, "");
    char *path = path_join("f", name);
    assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
    free(path);
}

static void test_stale_files_are_swept(void **state)
{
    static const struct {
        const char *name;
        int64_t age_s;
        bool stays;
    } files[] = {
        {"." ID "0.tmp", CLAIM_STALE_S + 60, false},
        {"." ID "1.tmp", CLAIM_STALE_S - 60, true}, /* its claimant may live */
        {"." ID "2.tmp", 0, true},
        {"." ID "3.tmp", -CLAIM_STALE_S, true}, /* of a clock that was set back */
        {"." ID "x.tmp", CLAIM_STALE_S + 60, true},
        {"." ID "4.tmp.x", CLAIM_STALE_S + 60, true},
        {ID "5.tmp", CLAIM_STALE_S + 60, true},
        {".notes.tmp", CLAIM_STALE_S + 60, true},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(files); i++) {
        put(files[i].name, -files[i].age_s);
    }
    claim_sweep("f");
    for (size_t i = 0; i < ARRAY_LEN(files); i++) {
        CHECK_ROW("%s", files[i].name);
        char *path = path_join("f", files[i].name);
        assert_int_equal(access(path, F_OK) == 0, files[i].stays);
        free(path);
    }
    assert_int_equal(n_files("f"), ARRAY_LEN(files) - 1); /* and none of the sweep's own */
    claim_sweep("absent");
}

#define IN_FOLDER(f) cmocka_unit_test_setup_teardown(f, scratch_enter, scratch_leave)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_FOLDER(test_one_claims),
        IN_FOLDER(test_stale_files_are_swept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
