/* The result of a work, accepted under another name: what it becomes, and what is refused. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files/digest.h"
#include "base/files/file.h"
#include "base/json/json.h"
#include "base/layout/layout.h"
#include "base/xalloc.h"
#include "daemon/shim/accept.h"
#include "tests/unit/check.h"
#include "tests/unit/scratch.h"

#define WORK                                                                                       \
    "{\"protocol\":1,\"attempt\":\"worker\",\"metrics\":{\"acc\":NaN,\"loss\":{\"value\":0.25}},"  \
    "\"artifacts\":[{\"path\":\"model/weights\",\"sha256\":\"x\",\"bytes\":7},"                    \
    "{\"path\":\"items.jsonl\",\"sha256\":\"y\"}],\"items\":\"items.jsonl\"}"

struct scene {
    char *folder;
    char *work; /* the attempt that did the work */
    char *own;  /* this one: the working directory */
    char *back;
};

static int set_up(void **state)
{
    struct scene *s = xcalloc(1, sizeof(*s));
    struct err err;
    s->folder = scratch_make();
    s->work = path_join(s->folder, "work");
    s->own = path_join(s->folder, "own");
    char *model = path_join(s->work, "model");
    assert_int_equal(dir_make(model, 0700, &err), 0);
    assert_int_equal(dir_make(s->own, 0700, &err), 0);
    free(scratch_write(s->work, LAYOUT_RESULT, WORK, 0600));
    free(scratch_write(s->work, "items.jsonl", "{}\n", 0600));
    free(scratch_write(model, "weights", "weights", 0600));
    free(model);
    s->back = getcwd(NULL, 0);
    assert_int_equal(chdir(s->own), 0);
    *state = s;
    return 0;
}

static int tear_down(void **state)
{
    struct scene *s = *state;
    assert_int_equal(chdir(s->back), 0);
    scratch_remove(s->folder);
    free(s->work);
    free(s->own);
    free(s->back);
    free(s);
    return 0;
}

static void write_task(const struct scene *s, const char *accepted)
{
    char hex[DIGEST_HEX_SIZE];
    struct digest d = digest_bytes(accepted, strlen(accepted));
    digest_hex(&d, hex);
    char *task = xasprintf(
        "{\"attempt\":\"own\",\"accepts\":{\"folder\":\"%s\",\"sha256\":\"%s\"}}", s->work, hex);
    free(scratch_write(s->own, LAYOUT_TASK, task, 0600));
    free(task);
}

static void test_all_of_it_is_there(void **state)
{
    const struct scene *s = *state;
    struct err err;
    cJSON *result = NULL;
    struct stat links;
    write_task(s, WORK);
    if (accept_run(&err) != 0) {
        fail_msg("%s", err.msg);
    }
    assert_int_equal(json_read_file(LAYOUT_RESULT, LAYOUT_RESULT_MAX, &result, &err), 0);
    assert_string_equal(json_member(result, "attempt")->valuestring, "own");
    const cJSON *of = json_member(result, "same_work");
    assert_string_equal(json_member(of, "attempt")->valuestring, "worker");
    assert_int_equal(strlen(json_member(of, "sha256")->valuestring), DIGEST_HEX_SIZE - 1);
    assert_true(cJSON_IsNull(json_member(json_member(result, "metrics"), "acc")));
    assert_int_equal(cJSON_GetArraySize(json_member(result, "artifacts")), 2);
    assert_int_equal(stat("model/weights", &links), 0);
    assert_int_equal(links.st_nlink, 2); /* no second copy */
    assert_int_equal(stat("items.jsonl", &links), 0);
    cJSON_Delete(result);
    /* an attempt that was ended on the way is not repeated in its folder, but may have begun */
    assert_int_equal(accept_run(&err), 0);
}

static void test_what_is_refused(void **state)
{
    const struct scene *s = *state;
    static const struct {
        const char *result; /* in place of WORK; NULL: it */
        const char *accepted;
        const char *says;
    } cases[] = {
        {NULL, "another", "is not what was accepted"},
        {"{\"attempt\":\"worker\",\"artifacts\":[{\"path\":\"../own/task.json\"}]}", NULL,
         "is outside the attempt"},
        {"{\"attempt\":\"worker\",\"artifacts\":[{\"path\":\"none\"}]}", NULL, "none"},
        {"{\"artifacts\":[]}", NULL, "attempt"},
        {"{\"attempt\":", NULL, "line 1"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CHECK_ROW("%zu", i);
        struct err err = {0};
        const char *text = cases[i].result == NULL ? WORK : cases[i].result;
        free(scratch_write(s->work, LAYOUT_RESULT, text, 0600));
        write_task(s, cases[i].accepted == NULL ? text : cases[i].accepted);
        assert_int_not_equal(accept_run(&err), 0);
        if (strstr(err.msg, cases[i].says) == NULL) {
            fail_msg("expected \"%s\", found \"%s\"", cases[i].says, err.msg);
        }
        assert_int_equal(file_kind_at(LAYOUT_RESULT), FILE_ABSENT);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_all_of_it_is_there, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_what_is_refused, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
