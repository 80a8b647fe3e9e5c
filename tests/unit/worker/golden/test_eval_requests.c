/*
 * Prompts and tokens against digests of what lm-evaluation-harness 0.4.3 sends for the same files
 * and GPT-2's tokenizer (tests/golden/eval_requests.json, written by tests/oracle/test_eval.py
 * --golden). Skipped where the shared data are not.
 */
#include "base/files/file.h"
#include "base/json/json.h"
#include "tests/oracle/requests.h"
#include "tests/unit/check.h"
#include "tests/unit/sparse.h"

#define GOLDEN TEST_SOURCE_DIR "/tests/golden/eval_requests.json"

struct fixture {
    char *data; /* of the shared folder; NULL: there is none */
    cJSON *golden;
    struct tokenizer *tok;
};

struct tally {
    struct digest_stream digest;
    int64_t requests;
};

static void count(void *self, const struct asked *one)
{
    struct tally *t = self;
    asked_digest(&t->digest, one);
    t->requests++;
}

static char *shared_path(const struct fixture *f, const cJSON *relative)
{
    return path_join(f->data, cJSON_GetStringValue(relative));
}

static int set_up(void **state)
{
    static struct fixture f;
    struct err err = {0};
    const char *shared = getenv("PREREGD_SHARED");
    *state = &f;
    if (json_read_file(GOLDEN, (size_t)1 << 20, &f.golden, &err) != 0)
        return -1;
    f.data = path_join(shared == NULL ? "/nowhere" : shared, "data");
    if (file_kind_at(f.data) != FILE_FOLDER) {
        free(f.data);
        f.data = NULL;
        return 0;
    }
    char *path = shared_path(&f, json_member(f.golden, "tokenizer"));
    const int rc = tokenizer_open(path, &f.tok, &err);
    free(path);
    return rc;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    tokenizer_free(f->tok);
    cJSON_Delete(f->golden);
    free(f->data);
    return 0;
}

static cJSON *task_of(const struct fixture *f, const cJSON *wanted)
{
    cJSON *task = json_object();
    cJSON *data = json_object();
    const cJSON *one;
    json_put_int(task, "protocol", TASK_PROTOCOL);
    json_put_string(task, "attempt", "golden");
    json_put_int(task, "attempt_no", 1);
    json_put_int(task, "threads", 1);
    json_put(task, "params", json_copy(json_member(wanted, "params")));
    json_put(task, "resume", json_array());
    cJSON_ArrayForEach(one, json_member(wanted, "data"))
    {
        cJSON *entry = json_object();
        char *path = shared_path(f, one);
        json_put_string(entry, "path", path);
        json_put(data, one->string, entry);
        free(path);
    }
    json_put(task, "data", data);
    return task;
}

static void check(const struct fixture *f, const cJSON *wanted)
{
    struct asker a;
    struct tally t = {0};
    struct err err = {0};
    char hex[DIGEST_HEX_SIZE];
    double context = 0.0, requests = 0.0;
    digest_start(&t.digest);
    assert_int_equal(json_get_number(f->golden, "context", &context, &err), 0);
    assert_int_equal(json_get_number(wanted, "requests", &requests, &err), 0);
    int rc = asker_open(&a, task_of(f, wanted), f->tok, (size_t)context, &err);
    if (rc == 0)
        rc = asker_walk(&a, count, &t, &err);
    asker_release(&a);
    if (rc != 0)
        fail_msg("%s: %s", wanted->string, err.msg);
    const struct digest found = digest_finish(&t.digest);
    digest_hex(&found, hex);
    if (t.requests != (int64_t)requests ||
        strcmp(hex, cJSON_GetStringValue(json_member(wanted, "sha256"))) != 0)
        fail_msg("%s: %lld requests, digest %s; tests/oracle/test_eval.py shows where they differ",
                 wanted->string, (long long)t.requests, hex);
}

static void requests_are_the_harness(void **state)
{
    const struct fixture *f = *state;
    const cJSON *cases = json_member(f->golden, "cases");
    if (f->data == NULL)
        skip();
    for (int i = 0; i < cJSON_GetArraySize(cases); i += (int)sparse_part())
        check(f, cJSON_GetArrayItem(cases, i));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(requests_are_the_harness)};
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
