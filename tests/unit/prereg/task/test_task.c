/* task.json as a worker reads it. */
#include <stdlib.h>
#include <string.h>

#include "base/json/json.h"
#include "base/xalloc.h"
#include "prereg/task/task.h"
#include "tests/unit/check.h"
#include "tests/unit/prereg/support.h"

#define ATTEMPT "0f8fad5b-d9cb-469f-a165-70867728950e"

static struct lock *lock_in(const char *folder, const struct plan_program *p)
{
    struct lock *lock = NULL;
    struct err err = {0};
    free(scratch_write(folder, "corpus.txt", "once upon a time\n", 0600));
    free(scratch_write(folder, "worker.sh", "#!/bin/sh\n", 0700));
    if (lock_build(p, NULL, NULL, &lock, &err) != 0) {
        fail_msg("%s", err.msg);
    }
    return lock;
}

static char *canonical(cJSON *v)
{
    struct strbuf text = STRBUF_INIT;
    struct err err = {0};
    assert_int_equal(json_canonical(v, &text, &err), 0);
    cJSON_Delete(v);
    return strbuf_detach(&text);
}

static void test_an_attempt(void **state)
{
    (void)state;
    char *folder = scratch_make();
    struct plan_program *p = program_of(SMALL_PROGRAM, folder);
    struct lock *lock = lock_in(folder, p);
    const char *const inputs[] = {"/state/train/attempt-1"};
    const char *const resume[] = {"/state/score/attempt-2", "/state/score/attempt-1"};
    const struct task_attempt a = {.cell = program_find_cell(p, "arch=moe,seed=2"),
                                   .stage = program_find_stage(p, "score"),
                                   .id = ATTEMPT,
                                   .no = 3,
                                   .input_folders = inputs,
                                   .resume = resume,
                                   .n_resume = 2,
                                   .memory_bytes = 1024,
                                   .deadline_ms = 5000};
    char cell[DIGEST_HEX_SIZE];
    char task[DIGEST_HEX_SIZE];
    task_cell_id(p, lock->root, a.cell, cell);
    task_id(p, lock->root, a.cell, a.stage, task);
    char *found = canonical(task_json_build(p, lock, &a));
    char *expected = xasprintf(
        "{\"attempt\":\"" ATTEMPT "\",\"attempt_no\":3,\"cell\":{\"factors\":{\"arch\":\"moe\","
        "\"seed\":2},\"id\":\"%s\",\"name\":\"arch=moe,seed=2\"},\"checkpoint\":\"auto\","
        "\"command\":[\"./worker.sh\"],"
        "\"data\":{\"corpus\":{\"path\":\"%s/corpus.txt\",\"sha256\":\"%s\"}},\"deadline_ms\":5000,"
        "\"digest\":\"%s\",\"head\":\"%s\",\"inputs\":{\"train\":\"/state/train/attempt-1\"},"
        "\"memory_bytes\":1024,\"params\":{},\"program\":\"small\",\"protocol\":1,"
        "\"resume\":[\"/state/score/attempt-2\",\"/state/score/attempt-1\"],\"root\":\"%s\","
        "\"sealed\":true,\"sealed_metrics\":[\"acc\"],\"stage\":\"score\",\"threads\":1}",
        cell, folder, lock_data_digest(lock, "corpus"), task, lock->root, lock->root);
    assert_string_equal(found, expected);
    free(expected);
    free(found);
    lock_free(lock);
    program_free(p);
    scratch_remove(folder);
}

static void test_a_question(void **state)
{
    (void)state;
    struct plan_program *p = program_of(SMALL_PROGRAM, "/where");
    const struct task_attempt a = {.cell = program_find_cell(p, "arch=dense,seed=2"), .stage = 0};
    cJSON *task = task_json_build(p, NULL, &a);
    assert_null(json_member(task, "attempt"));
    assert_null(json_member(task, "root"));
    cJSON *rest = json_object();
    json_put(rest, "checkpoint", json_copy(json_member(task, "checkpoint")));
    json_put(rest, "data", json_copy(json_member(task, "data")));
    json_put(rest, "peers", json_copy(json_member(task, "peers")));
    json_put(rest, "threads", json_copy(json_member(task, "threads")));
    char *found = canonical(rest);
    assert_string_equal(
        found, "{\"checkpoint\":300,\"data\":{\"corpus\":{\"path\":\"/where/corpus.txt\"}},"
               "\"peers\":{\"arch\":{\"moe\":{\"data\":\"corpus\",\"experts\":4,"
               "\"lr\":0.001,\"seed\":2}}},\"threads\":2}");
    free(found);
    cJSON_Delete(task);
    program_free(p);
}

static void test_identities_differ(void **state)
{
    (void)state;
    struct plan_program *p = program_of(SMALL_PROGRAM, NULL);
    char seen[16][DIGEST_HEX_SIZE];
    size_t n = 0;
    for (size_t c = 0; c < p->n_cells; c++) {
        task_cell_id(p, "a", c, seen[n++]);
        for (size_t s = 0; s < p->n_stages; s++) {
            task_id(p, "a", c, s, seen[n++]);
        }
    }
    task_cell_id(p, "b", 0, seen[n++]);
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k < i; k++) {
            assert_string_not_equal(seen[i], seen[k]);
        }
    }
    program_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_an_attempt),
        cmocka_unit_test(test_a_question),
        cmocka_unit_test(test_identities_differ),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
