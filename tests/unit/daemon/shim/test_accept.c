/* The result of a work, accepted under another name: what it becomes, and what is refused. Linked
 * with linkat() wrapped, so that a file system can refuse links. */
#include <errno.h>
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

static int link_errno; /* what linkat() fails with; 0: it works */

int __real_linkat(int from_dir, const char *from, int to_dir, const char *to, int flags);
int __wrap_linkat(int from_dir, const char *from, int to_dir, const char *to, int flags);

int __wrap_linkat(int from_dir, const char *from, int to_dir, const char *to, int flags)
{
    if (link_errno != 0) {
        errno = link_errno;
        return -1;
    }
    return __real_linkat(from_dir, from, to_dir, to, flags);
}

/* Copied only where the file system has no links to give. */
static void test_files_that_cannot_be_linked(void **state)
{
    const struct scene *s = *state;
    static const struct {
        int error;
        bool copied;
    } cases[] = {{EIO, false},  {ENOSPC, false}, {EACCES, false}, {EXDEV, true},
                 {EPERM, true}, {EMLINK, true},  {ENOSYS, true},  {EOPNOTSUPP, true}};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CHECK_ROW("%s", strerror(cases[i].error));
        struct err err = {0};
        write_task(s, WORK);
        link_errno = cases[i].error;
        const int rc = accept_run(&err);
        link_errno = 0;
        assert_int_equal(rc == 0, cases[i].copied);
        assert_int_equal(file_kind_at("model/weights"),
                         cases[i].copied ? FILE_REGULAR : FILE_ABSENT);
        if (rc != 0) {
            assert_non_null(strstr(err.msg, strerror(cases[i].error)));
        }
    }
}

/* A result that its worker wrote without spaces, of a size that the daemon accepts, is not written
 * in a form that it would refuse. `depth` arrays in one another hold n numbers. */
static char *deep_result(size_t depth, size_t n)
{
    struct strbuf text = STRBUF_INIT;
    strbuf_adds(&text, "{\"attempt\":\"worker\",\"metrics\":{},\"artifacts\":[],\"x\":");
    for (size_t i = 0; i < depth; i++) {
        strbuf_addc(&text, '[');
    }
    for (size_t i = 0; i < n; i++) {
        strbuf_adds(&text, i == 0 ? "1" : ",1");
    }
    for (size_t i = 0; i < depth; i++) {
        strbuf_addc(&text, ']');
    }
    strbuf_addc(&text, '}');
    return strbuf_detach(&text);
}

static void test_a_large_result_stays_acceptable(void **state)
{
    const struct scene *s = *state;
    struct err err = {0};
    cJSON *result = NULL;
    char *text = deep_result(50, 170000); /* indented, 17 MB */
    free(scratch_write(s->work, LAYOUT_RESULT, text, 0600));
    write_task(s, text);
    free(text);
    if (accept_run(&err) != 0) {
        fail_msg("%s", err.msg);
    }
    assert_int_equal(json_read_file(LAYOUT_RESULT, LAYOUT_RESULT_MAX, &result, &err), 0);
    assert_string_equal(json_member(result, "attempt")->valuestring, "own");
    cJSON_Delete(result);
    /* One that is too large with what is added to it is refused here, where the reason is known. */
    char *full = xmalloc(LAYOUT_RESULT_MAX + 1);
    static const char head[] = "{\"attempt\":\"worker\",\"metrics\":{},\"artifacts\":[],\"x\":\"";
    memset(full, 'x', LAYOUT_RESULT_MAX);
    memcpy(full, head, strlen(head));
    memcpy(full + LAYOUT_RESULT_MAX - 2, "\"}", 3);
    free(scratch_write(s->work, LAYOUT_RESULT, full, 0600));
    write_task(s, full);
    free(full);
    assert_int_equal(unlink(LAYOUT_RESULT), 0);
    assert_int_not_equal(accept_run(&err), 0);
    assert_non_null(strstr(err.msg, "at most 16777216"));
    assert_int_equal(file_kind_at(LAYOUT_RESULT), FILE_ABSENT);
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
        cmocka_unit_test_setup_teardown(test_files_that_cannot_be_linked, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_large_result_stays_acceptable, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_what_is_refused, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
