/* What is on the disk before `done` is journalled: every file and folder that an accepted result
 * rests on. The calls are the test's own, which notes what they are made for. */
#include <string.h>

#include <errno.h>
#include <pthread.h>
#include <unistd.h>

#include "base/files/file.h"
#include "base/json/json.h"
#include "base/xalloc.h"
#include "daemon/program/durable.h"
#include "tests/unit/check.h"
#include "tests/unit/prereg/support.h"

int fsync(int fd);
int syncfs(int fd);

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static char synced[8192]; /* paths, a line each */
static unsigned n_whole;
static const char *fails_at; /* the end of a path */
static int fails_with;
static bool slow;

static int note(int fd)
{
    char link[64];
    char path[512];
    int failed = 0;
    (void)snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, path, sizeof(path) - 1);
    path[n > 0 ? n : 0] = '\0';
    (void)pthread_mutex_lock(&mutex);
    size_t len = strlen(synced);
    (void)snprintf(synced + len, sizeof(synced) - len, "%s\n", path);
    size_t tail = fails_at == NULL ? 0 : strlen(fails_at);
    if (tail > 0 && strlen(path) >= tail && strcmp(path + strlen(path) - tail, fails_at) == 0) {
        failed = fails_with;
    }
    (void)pthread_mutex_unlock(&mutex);
    errno = failed;
    return failed == 0 ? 0 : -1;
}

int fsync(int fd)
{
    return note(fd);
}

int syncfs(int fd)
{
    (void)fd;
    (void)pthread_mutex_lock(&mutex);
    n_whole++;
    (void)pthread_mutex_unlock(&mutex);
    if (slow) {
        (void)usleep(20000); /* others gather meanwhile */
    }
    return 0;
}

struct world {
    char *top;
    char *attempt;
    cJSON *result;
    struct sync_group *group;
};

/* On tmpfs where there is one: nothing there comes along with a file. */
static int set_up(void **state)
{
    struct world *w = xcalloc(1, sizeof(*w));
    struct err err = {0};
    static const char text[] =
        "{\"artifacts\":[{\"path\":\"model/model.bin\"},{\"path\":\"items.jsonl\"}],"
        "\"items\":\"items.jsonl\"}";
    w->top = access("/dev/shm", W_OK) == 0 ? xstrdup("/dev/shm/prereg-durable-XXXXXX")
                                           : xstrdup("/tmp/prereg-durable-XXXXXX");
    assert_non_null(mkdtemp(w->top));
    w->attempt = path_join(w->top, "cells/c/s/attempt-0001");
    char *model = path_join(w->attempt, "model");
    assert_int_equal(dir_make(model, 0700, &err), 0);
    free(scratch_write(model, "model.bin", "m", 0600));
    free(scratch_write(w->attempt, "items.jsonl", "i", 0600));
    free(scratch_write(w->attempt, "result.json", text, 0600));
    assert_int_equal(json_parse(text, strlen(text), &w->result, &err), 0);
    w->group = sync_group_new();
    sync_group_stand_alone(w->group);
    synced[0] = '\0';
    n_whole = 0;
    fails_at = NULL;
    slow = false;
    free(model);
    *state = w;
    return 0;
}

static int tear_down(void **state)
{
    struct world *w = *state;
    struct err err;
    int rc = dir_remove(w->top, &err);
    sync_group_free(w->group);
    cJSON_Delete(w->result);
    free(w->attempt);
    free(w->top);
    free(w);
    return rc;
}

static bool was_synced(const char *folder, const char *name)
{
    char *line = xasprintf("%s%s%s\n", folder, name[0] == '\0' ? "" : "/", name);
    bool found = strstr(synced, line) != NULL;
    free(line);
    return found;
}

static void test_every_path(void **state)
{
    static const char *const inside[] = {"model/model.bin", "items.jsonl", "result.json"};
    static const char *const above[] = {"cells/c/s/attempt-0001/model",
                                        "cells/c/s/attempt-0001",
                                        "cells/c/s",
                                        "cells/c",
                                        "cells",
                                        ""};
    const struct world *w = *state;
    struct err err = {0};
    assert_int_equal(durable_result(w->group, w->attempt, w->top, w->result, &err), 0);
    for (size_t i = 0; i < ARRAY_LEN(inside); i++) {
        CHECK_ROW("%s", inside[i]);
        assert_true(was_synced(w->attempt, inside[i]));
    }
    for (size_t i = 0; strncmp(w->top, "/dev/shm", 8) == 0 && i < ARRAY_LEN(above); i++) {
        assert_true(was_synced(w->top, above[i]));
    }
    assert_int_equal(n_whole, 0);
}

/* What cannot be synced is not accepted: a full disk as such, anything else as not known. */
static void test_failing(void **state)
{
    static const struct {
        const char *at;
        int with;
        int code;
    } cases[] = {{"result.json", EIO, ERR_IO},
                 {"model.bin", ENOSPC, ERR_NO_SPACE},
                 {"items.jsonl", EDQUOT, ERR_NO_SPACE}};
    const struct world *w = *state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CHECK_ROW("%s", cases[i].at);
        struct err err = {0};
        fails_at = cases[i].at;
        fails_with = cases[i].with;
        assert_int_equal(durable_result(w->group, w->attempt, w->top, w->result, &err),
                         cases[i].code);
        assert_non_null(strstr(err.msg, cases[i].at));
    }
}

static void test_many_artifacts(void **state)
{
    const struct world *w = *state;
    struct err err = {0};
    for (int i = 0; i < 100; i++) {
        cJSON *a = json_object();
        json_put_string(a, "path", "items.jsonl");
        json_push(cJSON_GetObjectItem(w->result, "artifacts"), a);
    }
    assert_int_equal(durable_result(w->group, w->attempt, w->top, w->result, &err), 0);
    assert_int_equal(n_whole, 1);
    assert_string_equal(synced, "");
}

static void *make_durable(void *argument)
{
    const struct world *w = argument;
    struct err err = {0};
    for (int i = 0; i < 4; i++) {
        assert_int_equal(durable_result(w->group, w->attempt, w->top, w->result, &err), 0);
    }
    return NULL;
}

/* Results that come together share a sync of the whole: fewer of those than results. */
static void test_together(void **state)
{
    pthread_t threads[16];
    slow = true;
    for (size_t i = 0; i < ARRAY_LEN(threads); i++) {
        CHECK_ROW("threads[%zu]", i);
        assert_int_equal(pthread_create(&threads[i], NULL, make_durable, *state), 0);
    }
    for (size_t i = 0; i < ARRAY_LEN(threads); i++) {
        CHECK_ROW("threads[%zu]", i);
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    }
    const struct world *w = *state;
    assert_int_equal(sync_group_rounds(w->group), n_whole);
    assert_true(n_whole < 4 * ARRAY_LEN(threads));
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
    const struct CMUnitTest tests[] = {TEST(test_every_path), TEST(test_failing),
                                       TEST(test_many_artifacts), TEST(test_together)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
