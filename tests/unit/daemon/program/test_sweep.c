/* Of dead attempts the newest checkpoints stay, of dead writers nothing. */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/files/file.h"
#include "base/xalloc.h"
#include "daemon/program/sweep.h"
#include "tests/unit/check.h"
#include "tests/unit/scratch.h"

static bool is_there(const char *root, const char *name)
{
    char *path = path_join(root, name);
    bool there = file_kind_at(path) != FILE_ABSENT;
    free(path);
    return there;
}

static void test_attempts(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        bool stays;
    } FILES[] = {
        {"a3/checkpoint/step-000300/manifest.json", true},
        {"a3/checkpoint/step-000200/manifest.json", false},
        {"a3/checkpoint/step-000900/state", true},  /* torn: none that may be counted on */
        {"a3/checkpoint/best/manifest.json", true}, /* not of this form */
        {"a2/checkpoint/step-000400/manifest.json", true},
        {"a2/checkpoint/step-000300/manifest.json", false},
        {"a1/checkpoint/step-000100/manifest.json", false},
        {"a1/.result.json.5f0e7c1a-0d5a-4a0e-9a39-3b8f6f3f4b10.tmp", false},
        {"a1/checkpoint/.x.5f0e7c1a-0d5a-4a0e-9a39-3b8f6f3f4b10.tmp", false},
        {"a1/items.tmp", true}, /* a worker's own */
        {"a1/events.jsonl", true},
    };
    char *root = scratch_make();
    char *folders[3];
    for (size_t i = 0; i < ARRAY_LEN(FILES); i++) {
        CHECK_ROW("%s", FILES[i].name);
        scratch_put(root, FILES[i].name, "x");
    }
    for (int i = 0; i < 3; i++) {
        folders[i] = xasprintf("%s/a%d", root, 3 - i);
    }
    sweep_attempts(folders, 3);
    for (size_t i = 0; i < ARRAY_LEN(FILES); i++) {
        if (is_there(root, FILES[i].name) != FILES[i].stays) {
            fail_msg("%s", FILES[i].name);
        }
    }
    for (int i = 0; i < 3; i++) {
        free(folders[i]);
    }
    scratch_remove(root);
}

/* What may be written this very moment stays. */
static void test_state(void **state)
{
    (void)state;
    static const char *const OLD[] = {".a.b.tmp", "objects/.a.b.tmp", "programs/p-1/.a.b.tmp",
                                      "programs/p-1/report/.a.b.tmp"};
    char *root = scratch_make();
    for (size_t i = 0; i < ARRAY_LEN(OLD); i++) {
        CHECK_ROW("%s", OLD[i]);
        char *path = xasprintf("%s/%s", root, OLD[i]);
        scratch_put(root, OLD[i], "x");
        struct timespec old[2] = {{.tv_sec = 1}, {.tv_sec = 1}};
        assert_int_equal(utimensat(AT_FDCWD, path, old, 0), 0);
        free(path);
    }
    scratch_put(root, "programs/p-1/.young.b.tmp", "x");
    scratch_put(root, "programs/p-1/grid.toml", "x");
    sweep_state(root);
    for (size_t i = 0; i < ARRAY_LEN(OLD); i++) {
        CHECK_ROW("%s", OLD[i]);
        assert_false(is_there(root, OLD[i]));
    }
    assert_true(is_there(root, "programs/p-1/.young.b.tmp"));
    assert_true(is_there(root, "programs/p-1/grid.toml"));
    scratch_remove(root);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_attempts),
                                       cmocka_unit_test(test_state)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
