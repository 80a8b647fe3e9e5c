/* Accepted results as inputs: whatever became of their files since is seen before a spawn. Linked
 * with stat() and lstat() wrapped, so that a disk can fail under one path. */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files/file.h"
#include "base/layout/layout.h"
#include "base/xalloc.h"
#include "daemon/program/inputs.h"
#include "daemon/program/result.h"
#include "tests/unit/check.h"
#include "tests/unit/prereg/support.h"

#define RESULT                                                                                     \
    "{\"artifacts\":[{\"path\":\"model/model.bin\",\"sha256\":"                                    \
    "\"2689367b205c16ce32ed4200942b8b8b1e262dfc70d9bc9fbc77c49699a4f1df\",\"bytes\":2}]}\n"

int __wrap_stat(const char *path, struct stat *st);
int __wrap_lstat(const char *path, struct stat *st);
int __real_stat(const char *path, struct stat *st);
int __real_lstat(const char *path, struct stat *st);

static struct {
    const char *end; /* of the path that cannot be looked at; NULL: none */
    int why;
} fault;

static bool fails(const char *path)
{
    size_t n = strlen(path);
    size_t end = fault.end == NULL ? n + 1 : strlen(fault.end);
    if (end > n || strcmp(path + n - end, fault.end) != 0) {
        return false;
    }
    errno = fault.why;
    return true;
}

int __wrap_stat(const char *path, struct stat *st)
{
    return fails(path) ? -1 : __real_stat(path, st);
}

int __wrap_lstat(const char *path, struct stat *st)
{
    return fails(path) ? -1 : __real_lstat(path, st);
}

struct world {
    char *root; /* the program's folder */
    char *cells;
    char *folder; /* of the attempt */
    struct plan_cell cell;
    struct plan_program program;
    struct bundle plan;
    struct hosted hosted;
    struct accepted input;
    struct accepted_list list;
};

static int set_up(void **state)
{
    static char task[] = "arm=a,seed=1/train";
    struct world *w = xcalloc(1, sizeof(*w));
    struct err err = {0};
    static char cell[] = "arm=a,seed=1";
    w->root = scratch_make();
    w->cells = path_join(w->root, "cells");
    w->folder = path_join(w->cells, "arm=a,seed=1/train/attempt-0001");
    w->cell.folder = cell;
    w->program = (struct plan_program){.cells = &w->cell, .n_cells = 1};
    w->plan.program = &w->program;
    w->hosted = (struct hosted){.folder = w->root, .plan = &w->plan};
    char *model = path_join(w->folder, "model");
    assert_int_equal(dir_make(model, 0700, &err), 0);
    free(scratch_write(model, "model.bin", "ok", 0600));
    free(scratch_write(w->folder, LAYOUT_RESULT, RESULT, 0600));
    free(model);
    w->input = (struct accepted){.stage = "train",
                                 .task = task,
                                 .folder = w->folder,
                                 .digest = digest_bytes(RESULT, strlen(RESULT))};
    w->list = (struct accepted_list){.hosted = &w->hosted, .items = &w->input, .n = 1};
    *state = w;
    return 0;
}

static int tear_down(void **state)
{
    struct world *w = *state;
    fault.end = NULL;
    scratch_remove(w->root);
    free(w->folder);
    free(w->cells);
    free(w);
    return 0;
}

static void expect(const struct world *w, struct pin_cache *cache, const char *what)
{
    struct err err = {0};
    int rc = inputs_verify(&w->list, cache, &err);
    if (rc != (what == NULL ? 0 : ERR_LOCK) || (what != NULL && strstr(err.msg, what) == NULL)) {
        fail_msg("%d, %s; expected %s", rc, err.msg, what == NULL ? "nothing" : what);
    }
    if (what != NULL) { /* what to do is in the message */
        assert_non_null(strstr(err.msg, "arm=a,seed=1/train"));
        assert_non_null(strstr(err.msg, "preregctl lost"));
    }
}

/* Sizes without bytes: an artifact of the same length is not told apart, and that is said. */
static void test_glance(void **state)
{
    const struct world *w = *state;
    struct err err = {0};
    size_t n = 0;
    assert_int_equal(inputs_glance(&w->list, &n, &err), 0);
    assert_in_range(n, 1, 9);
    free(scratch_write(w->folder, "model/model.bin", "longer than it was accepted", 0600));
    assert_int_equal(inputs_glance(&w->list, &n, &err), ERR_LOCK);
    assert_non_null(strstr(err.msg, "model/model.bin has 27 bytes, not"));
}

static void test_whole(void **state)
{
    expect(*state, NULL, NULL);
}

static void test_other_model(void **state)
{
    const struct world *w = *state;
    struct pin_cache *cache = pin_cache_create();
    expect(w, cache, NULL);
    free(scratch_write(w->folder, "model/model.bin", "no", 0600));
    expect(w, cache, "artifact model/model.bin is not what its digest says");
    pin_cache_free(cache);
}

static void test_longer_model(void **state)
{
    const struct world *w = *state;
    free(scratch_write(w->folder, "model/model.bin", "ok\n", 0600));
    expect(w, NULL, "artifact model/model.bin is not what its digest says");
}

static void test_other_result(void **state)
{
    const struct world *w = *state;
    free(scratch_write(w->folder, LAYOUT_RESULT, "{\"artifacts\":[]}\n", 0600));
    expect(w, NULL, "result.json was changed");
}

static void test_gone(void **state)
{
    const struct world *w = *state;
    char *model = path_join(w->folder, "model/model.bin");
    char *result = path_join(w->folder, LAYOUT_RESULT);
    assert_int_equal(unlink(model), 0);
    expect(w, NULL, "artifact model/model.bin is not a file");
    assert_int_equal(unlink(result), 0);
    expect(w, NULL, "result.json is gone");
    free(result);
    free(model);
}

static void expect_no_answer(const struct world *w, int wanted, const char *what)
{
    struct err err = {0};
    int rc = inputs_verify(&w->list, NULL, &err);
    if (rc != wanted || strstr(err.msg, what) == NULL) {
        fail_msg("%d, %s; expected %s", rc, err.msg, what);
    }
    assert_null(strstr(err.msg, "preregctl lost"));
}

/* What cannot be looked at is not gone. */
static void test_failing_disk(void **state)
{
    static const int whys[] = {EIO, EACCES, ESTALE};
    static const char *const ends[] = {"/" LAYOUT_RESULT, "/model.bin"};
    for (size_t i = 0; i < ARRAY_LEN(whys) * ARRAY_LEN(ends); i++) {
        fault.why = whys[i / ARRAY_LEN(ends)];
        fault.end = ends[i % ARRAY_LEN(ends)];
        expect_no_answer(*state, ERR_IO, "make its disk readable");
    }
    fault.end = NULL;
    expect(*state, NULL, NULL);
}

/* Nor is what lies on a disk that is not there: all of its folder, or what was in it. */
static void test_cells_away(void **state)
{
    const struct world *w = *state;
    char *away = path_join(w->root, "away");
    struct err err;
    assert_int_equal(rename(w->cells, away), 0);
    expect_no_answer(w, ERR_NOT_FOUND, "is its disk mounted?");
    assert_int_equal(dir_make(w->cells, 0700, &err), 0);
    expect_no_answer(w, ERR_NOT_FOUND, "is its disk mounted?");
    fault.why = EIO;
    fault.end = "/cells";
    expect_no_answer(w, ERR_IO, "Input/output error");
    fault.end = NULL;
    assert_int_equal(rmdir(w->cells), 0);
    assert_int_equal(rename(away, w->cells), 0);
    expect(w, NULL, NULL);
    free(away);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
    const struct CMUnitTest tests[] = {TEST(test_whole),        TEST(test_glance),
                                       TEST(test_other_model),  TEST(test_longer_model),
                                       TEST(test_other_result), TEST(test_gone),
                                       TEST(test_failing_disk), TEST(test_cells_away)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
