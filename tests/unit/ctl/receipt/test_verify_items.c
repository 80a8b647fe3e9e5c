/* What is said of a receipt's items: of how many scores of counted measures they are the basis. */
#include <stdlib.h>
#include <string.h>

#include "base/files/file.h"
#include "base/json/json.h"
#include "base/xalloc.h"
#include "ctl/receipt/verify/verify_parts.h"
#include "tests/unit/check.h"
#include "tests/unit/prereg/support.h"

#define RIGHT "{\"item\":0,\"acc\":1,\"x\":2}\n{\"item\":1,\"acc\":1,\"x\":2}\n"

/* A result of task 1, dense's first evaluation; its measure is `acc`. */
struct scored {
    const char *items; /* NULL: it names none */
    const char *metrics;
};

static const struct {
    struct scored one, other; /* of tasks 1 and 3 */
    enum verify_basis basis;
    size_t n_uncounted;
    const char *uncounted;
    size_t n_faulty, n_empty;
    const char *fault; /* NULL: it follows */
} CASES[] = {
    {{RIGHT, "{\"acc\":{\"value\":1,\"n\":2}}"},
     {RIGHT, "{\"acc\":{\"value\":1,\"n\":2}}"},
     BASIS_ITEMS,
     0,
     "",
     0,
     0,
     NULL},
    /* no score at all */
    {{RIGHT, "{\"acc\":null}"}, {RIGHT, "{\"acc\":null}"}, BASIS_RECORDS, 0, "", 0, 0, NULL},
    /* a member of another name: of the measure's score the items say nothing */
    {{"{\"item\":0,\"acc_\":1}\n", "{\"acc\":{\"value\":0.7,\"n\":1}}"},
     {"{\"item\":0,\"acc_\":1}\n", "{\"acc\":{\"value\":0.7,\"n\":1}}"},
     BASIS_RECORDS,
     2,
     "arch=dense,seed=1/score.acc",
     0,
     0,
     NULL},
    {{"{\"item\":0,\"acc_\":1,\"x\":2}\n", "{\"x\":2,\"acc\":{\"value\":0.7,\"n\":1}}"},
     {RIGHT, "{\"acc\":{\"value\":1,\"n\":2}}"},
     BASIS_ITEMS_IN_PART,
     1,
     "arch=dense,seed=1/score.acc",
     0,
     0,
     NULL},
    /* another score that no measure reads may be missing */
    {{RIGHT, "{\"y\":3,\"acc\":{\"value\":1,\"n\":2}}"},
     {RIGHT, "{\"acc\":{\"value\":1,\"n\":2}}"},
     BASIS_ITEMS,
     0,
     "",
     0,
     0,
     NULL},
    /* a result without items */
    {{RIGHT, "{\"acc\":{\"value\":1,\"n\":2}}"},
     {NULL, "{\"acc\":{\"value\":0.9,\"n\":2}}"},
     BASIS_ITEMS_IN_PART,
     1,
     "arch=dense,seed=2/score.acc",
     0,
     0,
     NULL},
    {{RIGHT, "{\"acc\":{\"value\":1,\"n\":2}}"},
     {NULL, "{\"acc\":null}"},
     BASIS_ITEMS,
     0,
     "",
     0,
     0,
     NULL},
    /* lines that were left out of the score */
    {{RIGHT
      "{\"item\":2,\"acc\":0,\"fault\":\"x\"}\n{\"item\":3,\"x\":0}\n{\"item\":4,\"acc\":null}\n",
      "{\"acc\":{\"value\":1,\"n\":2}}"},
     {RIGHT, "{\"acc\":{\"value\":1,\"n\":2}}"},
     BASIS_ITEMS,
     0,
     "",
     1,
     2,
     NULL},
    /* a counted measure says over how many items it is */
    {{RIGHT, "{\"acc\":1}"},
     {NULL, "{}"},
     BASIS_RECORDS,
     0,
     "",
     0,
     0,
     "n of acc, on which the verdict"},
    /* over none, it has no value */
    {{RIGHT, "{\"acc\":{\"value\":1,\"n\":0}}"}, {NULL, "{}"}, BASIS_RECORDS, 0, "", 0, 0, NULL},
    {{RIGHT, "{\"x\":2,\"acc\":{\"value\":1,\"n\":2}}"},
     {RIGHT, "{\"acc\":{\"value\":1,\"n\":2}}"},
     BASIS_ITEMS,
     0,
     "",
     0,
     0,
     NULL},
};

/* The items under their digest, as a receipt has them. */
static void put_items(const char *folder, const char *text, char hex[DIGEST_HEX_SIZE])
{
    struct err err = {0};
    const struct digest d = digest_bytes(text, strlen(text));
    digest_hex(&d, hex);
    char *path = xasprintf("%s/" RECEIPT_ITEMS "/%s.jsonl", folder, hex);
    assert_int_equal(file_write_atomic(path, text, strlen(text), 0600, &err), 0);
    free(path);
}

static cJSON *result_of(const char *folder, const struct scored *s)
{
    char hex[DIGEST_HEX_SIZE];
    char *text = NULL;
    if (s->items != NULL) {
        put_items(folder, s->items, hex);
        text = xasprintf("{\"metrics\":%s,\"items\":\"items.jsonl\",\"artifacts\":[{\"path\":"
                         "\"items.jsonl\",\"sha256\":\"%s\",\"bytes\":1}]}",
                         s->metrics, hex);
    } else {
        text = xasprintf("{\"metrics\":%s}", s->metrics);
    }
    cJSON *o = cJSON_Parse(text);
    assert_non_null(o);
    free(text);
    return o;
}

static char *scratch_with_items(void)
{
    struct err err = {0};
    char *folder = scratch_make();
    char *items = path_join(folder, RECEIPT_ITEMS);
    assert_int_equal(dir_make(items, 0700, &err), 0);
    free(items);
    return folder;
}

static void test_basis(void **state)
{
    (void)state;
    struct plan_program *p = program_of(SMALL_PROGRAM, NULL);
    for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
        CHECK_ROW("%zu", i);
        struct err err = {0};
        char *folder = scratch_with_items();
        cJSON *one = result_of(folder, &CASES[i].one);
        cJSON *other = result_of(folder, &CASES[i].other);
        struct verifying v = {
            .program = p, .err = &err, .history = {.n_tasks = program_n_tasks(p)}};
        v.established = json_array();
        assert_int_equal(files_open(&v.files, folder, &err), 0);
        int rc = verify_items(&v, 1, one);
        rc = rc == 0 ? verify_items(&v, 3, other) : rc;
        rc = rc == 0 ? verify_items_end(&v) : rc;
        assert_int_equal(rc, CASES[i].fault == NULL ? 0 : ERR_LOCK);
        if (CASES[i].fault != NULL) {
            assert_non_null(strstr(err.msg, CASES[i].fault));
        } else {
            assert_int_equal(verify_items_basis(&v), CASES[i].basis);
            assert_int_equal(v.items.n_uncounted, CASES[i].n_uncounted);
            assert_string_equal(v.items.n_uncounted > 0 ? v.items.uncounted.buf : "",
                                CASES[i].uncounted);
            assert_int_equal(v.items.count.n_faulty, CASES[i].n_faulty);
            assert_int_equal(v.items.count.n_empty, CASES[i].n_empty);
        }
        verify_items_release(&v);
        files_release(&v.files);
        cJSON_Delete(v.established);
        cJSON_Delete(one);
        cJSON_Delete(other);
        scratch_remove(folder);
    }
    program_free(p);
}

/* Many results may name one large file: what is read of items has a limit. */
static void test_limit(void **state)
{
    (void)state;
    struct err err = {0};
    struct plan_program *p = program_of(SMALL_PROGRAM, NULL);
    char *folder = scratch_with_items();
    cJSON *result = result_of(folder, &CASES[0].one);
    struct verifying v = {.program = p, .err = &err, .history = {.n_tasks = program_n_tasks(p)}};
    assert_int_equal(files_open(&v.files, folder, &err), 0);
    v.files.items[0].bytes = RECEIPT_COUNTED_MAX / 2; /* as the listing says */
    assert_int_equal(verify_items(&v, 1, result), 0);
    assert_int_equal(verify_items(&v, 3, result), 0);
    assert_int_equal(verify_items(&v, 5, result), ERR_LOCK);
    assert_non_null(strstr(err.msg, "more than 32 GiB of items"));
    verify_items_release(&v);
    files_release(&v.files);
    cJSON_Delete(result);
    scratch_remove(folder);
    program_free(p);
}

/* Where no task has a result, no items may be there either. */
static void test_without_results(void **state)
{
    (void)state;
    char hex[DIGEST_HEX_SIZE];
    struct err err = {0};
    struct plan_program *p = program_of(SMALL_PROGRAM, NULL);
    char *folder = scratch_with_items();
    put_items(folder, RIGHT, hex);
    struct verifying v = {.program = p, .err = &err, .history = {.n_tasks = program_n_tasks(p)}};
    assert_int_equal(files_open(&v.files, folder, &err), 0);
    assert_int_equal(verify_items_end(&v), ERR_LOCK);
    assert_non_null(strstr(err.msg, "no accepted result names these items"));
    verify_items_release(&v);
    files_release(&v.files);
    scratch_remove(folder);
    program_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_basis),
        cmocka_unit_test(test_limit),
        cmocka_unit_test(test_without_results),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
