/* Accepted results as inputs: whatever became of their files since is seen before a spawn. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file.h"
#include "base/xalloc.h"
#include "daemon/inputs.h"
#include "daemon/result.h"
#include "tests/unit/prereg/support.h"

#define RESULT                                                                                     \
    "{\"artifacts\":[{\"path\":\"model/model.bin\",\"sha256\":"                                    \
    "\"2689367b205c16ce32ed4200942b8b8b1e262dfc70d9bc9fbc77c49699a4f1df\",\"bytes\":2}]}\n"

struct world {
    char *folder;
    struct accepted input;
    struct accepted_list list;
};

static int set_up(void **state)
{
    static char task[] = "arm=a,seed=1/train";
    struct world *w = xcalloc(1, sizeof(*w));
    struct err err = {0};
    w->folder = scratch_make();
    char *model = path_join(w->folder, "model");
    assert_int_equal(dir_make(model, 0700, &err), 0);
    free(scratch_write(model, "model.bin", "ok", 0600));
    free(scratch_write(w->folder, RESULT_FILE, RESULT, 0600));
    free(model);
    w->input = (struct accepted){.stage = "train",
                                 .task = task,
                                 .folder = w->folder,
                                 .digest = digest_bytes(RESULT, strlen(RESULT))};
    w->list = (struct accepted_list){.items = &w->input, .n = 1};
    *state = w;
    return 0;
}

static int tear_down(void **state)
{
    struct world *w = *state;
    scratch_remove(w->folder);
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
    free(scratch_write(w->folder, RESULT_FILE, "{\"artifacts\":[]}\n", 0600));
    expect(w, NULL, "result.json was changed");
}

static void test_gone(void **state)
{
    const struct world *w = *state;
    char *model = path_join(w->folder, "model/model.bin");
    char *result = path_join(w->folder, RESULT_FILE);
    assert_int_equal(unlink(model), 0);
    expect(w, NULL, "artifact model/model.bin is not a file");
    assert_int_equal(unlink(result), 0);
    expect(w, NULL, "result.json is gone");
    free(result);
    free(model);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
    const struct CMUnitTest tests[] = {TEST(test_whole), TEST(test_other_model),
                                       TEST(test_longer_model), TEST(test_other_result),
                                       TEST(test_gone)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
