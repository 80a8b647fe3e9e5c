/* The chain of amendments that follows from the lock or is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file.h"
#include "base/json.h"
#include "base/xalloc.h"
#include "prereg/amend_rules.h"
#include "prereg/amendment.h"
#include "tests/unit/prereg/amending.h"
#include "tests/unit/prereg/support.h"

static const char *const STEPS[4] = {"score.acc_norm", "score.acc", "score.f1", "score.em"};

/* Three of them; list[i] is the caller's. */
static void write_chain(const struct amending_world *w, cJSON *list[3])
{
    const char *previous = w->lock->root;
    for (int i = 0; i < 3; i++) {
        const char *const values[2] = {STEPS[i], STEPS[i + 1]};
        list[i] = amending_amendment_of(w, i + 1, previous, values);
        amending_write_amendment(w, (size_t)i + 1, list[i]);
        previous = amending_text_of(list[i], "head");
    }
}

static void free_chain(cJSON *list[3])
{
    for (int i = 0; i < 3; i++) {
        cJSON_Delete(list[i]);
    }
}

static void test_an_amended_lock(void **state)
{
    const struct amending_world *w = *state;
    struct lock *lock = NULL;
    struct err err = {0};
    cJSON *list[3];
    assert_int_equal(lock_read_amended(w->folder, &lock, &err), 0);
    assert_string_equal(lock->head, lock->root);
    assert_int_equal(lock->n_amendments, 0);
    lock_free(lock);
    write_chain(w, list);
    assert_int_equal(lock_read_amended(w->folder, &lock, &err), 0);
    assert_int_equal(lock->n_amendments, 3);
    assert_string_equal(lock->root, w->lock->root);
    assert_string_equal(lock->head, amending_text_of(list[2], "head"));
    const cJSON *acc = json_member(json_member(lock->plan, "measure"), "acc");
    assert_string_equal(amending_text_of(acc, "metric"), STEPS[3]);
    char *text = text_replace(amending_program, STEPS[0], STEPS[3]);
    struct program *then = program_of(text, w->folder);
    assert_int_equal(lock_verify(then, lock, LOCK_ALL, NULL, NULL, &err), 0);
    assert_int_equal(lock_verify(w->program, lock, LOCK_PLAN, NULL, NULL, &err), ERR_LOCK);
    program_free(then);
    free(text);
    lock_free(lock);
    free_chain(list);
}

static void test_tampering_is_named(void **state)
{
    static const char *const keys[] = {"program", "time", "reason", "level"};
    const struct amending_world *w = *state;
    cJSON *list[3];
    write_chain(w, list);
    for (size_t i = 0; i < ARRAY_LEN(keys); i++) { /* edited, the head left as it was */
        cJSON *a = json_copy(list[1]);
        amending_set_text(a, keys[i], "sealed");
        amending_write_amendment(w, 2, a);
        amending_expect_refused(w, ERR_LOCK, "0002.json: it was changed after it was made");
        amending_put_head(a); /* and made to fit: then what follows does not */
        amending_write_amendment(w, 2, a);
        amending_expect_refused(w, ERR_LOCK, "0003.json: it follows");
        cJSON_Delete(a);
    }
    amending_write_amendment(w, 1, list[1]); /* two exchanged */
    amending_write_amendment(w, 2, list[0]);
    amending_expect_refused(w, ERR_LOCK, "0001.json: its number is 2");
    amending_write_amendment(w, 1, list[0]);
    char *path = amendment_file(w->amendments, 2, "json"); /* one taken out */
    assert_int_equal(unlink(path), 0);
    amending_expect_refused(w, ERR_LOCK, "0002.json is missing");
    free(scratch_write(w->amendments, "0002.json", "{\"schema\":1,", 0600));
    amending_expect_refused(w, ERR_LOCK, "0002.json");
    free(scratch_write(w->amendments, "0002.json", "{\"schema\":2}", 0600));
    amending_expect_refused(w, ERR_VERSION, "schema 2");
    free(path);
    free_chain(list);
}

static void test_what_does_not_follow(void **state)
{
    static const struct {
        const char *key;
        const char *value;
        const char *word;
    } cases[] = {
        {"level", "unknown", "\"level\""},
        {"reason", "", "needs a reason"},
        {"reason", "   ", "needs a reason"},
        {"reason", "\x1b[31mred", "not plain text on one line"},
        {"reason", "two\nlines", "not plain text on one line"},
        {"reason",
         "turned \xe2\x80\xae"
         "about",
         "not plain text on one line"},
        {"previous", "00", "it follows"},
        {"root", "00", "another program"},
        {"changes", "none", "changes nothing"},
        {"signature", "yes", "not a whole amendment"},
        {"describe", "much", "not a whole amendment"},
    };
    const struct amending_world *w = *state;
    const char *const values[2] = {STEPS[0], STEPS[1]};
    const char *const stale[2] = {STEPS[2], STEPS[3]};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        cJSON *a = amending_amendment_of(w, 1, w->lock->root, values);
        amending_set_text(a, cases[i].key, cases[i].value);
        amending_put_head(a);
        amending_write_amendment(w, 1, a);
        amending_expect_refused(w, ERR_LOCK, cases[i].word);
        cJSON_Delete(a);
    }
    cJSON *a =
        amending_amendment_of(w, 1, w->lock->root, stale); /* from a value that never stood there */
    amending_write_amendment(w, 1, a);
    amending_expect_refused(w, ERR_LOCK, "plan.measure.acc.metric is not what it changes from");
    cJSON_Delete(a);
    a = amending_amendment_of(w, 1, w->lock->root, (const char *const[2]){STEPS[0], STEPS[0]});
    amending_write_amendment(w, 1, a);
    amending_expect_refused(w, ERR_LOCK, "plan.measure.acc.metric is changed to what it is");
    cJSON_Delete(a);
    a = amending_amendment_of(w, 1, w->lock->root, values);
    cJSON *change = cJSON_GetObjectItemCaseSensitive(a, "changes")->child;
    cJSON_DeleteItemFromObjectCaseSensitive(change, "from"); /* adds what is there */
    amending_put_head(a);
    amending_write_amendment(w, 1, a);
    amending_expect_refused(w, ERR_LOCK, "is not what it changes from");
    cJSON_ReplaceItemInArray(cJSON_GetObjectItemCaseSensitive(change, "path"), 1,
                             cJSON_CreateString("nowhere"));
    amending_put_head(a);
    amending_write_amendment(w, 1, a);
    amending_expect_refused(w, ERR_LOCK, "leads to nothing");
    cJSON_Delete(a);
}

/* Two made from the same head, each setting the same value: the second does not follow. */
static void test_contradictory_amendments(void **state)
{
    const struct amending_world *w = *state;
    const char *const one[2] = {STEPS[0], STEPS[1]};
    const char *const other[2] = {STEPS[0], STEPS[2]};
    cJSON *first = amending_amendment_of(w, 1, w->lock->root, one);
    cJSON *stale = amending_amendment_of(w, 2, w->lock->root, other);
    amending_write_amendment(w, 1, first);
    amending_write_amendment(w, 2, stale);
    amending_expect_refused(w, ERR_LOCK, "0002.json: it follows");
    amending_set_text(stale, "previous", amending_text_of(first, "head"));
    amending_put_head(stale);
    amending_write_amendment(w, 2, stale);
    amending_expect_refused(w, ERR_LOCK, "is not what it changes from");
    cJSON_Delete(stale);
    cJSON_Delete(first);
}

static void test_post_hoc_is_as_the_level_says(void **state)
{
    static const enum access_level levels[] = {ACCESS_SEEN, ACCESS_SEALED};
    const struct amending_world *w = *state;
    char *text = text_replace(amending_program, "wide = 0.02", "wide = 0.03");
    for (size_t i = 0; i < ARRAY_LEN(levels); i++) {
        struct amending_judged j = amending_judge(w, text, levels[i], 0);
        cJSON *a = amending_amendment_with(w, j.changes, levels[1 - i]);
        amending_write_amendment(w, 1, a);
        amending_expect_refused(w, ERR_LOCK, "\"post_hoc\" is not as its level says");
        cJSON_Delete(a);
        amending_judged_release(&j);
    }
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_an_amended_lock, amending_world_make,
                                        amending_world_remove),
        cmocka_unit_test_setup_teardown(test_tampering_is_named, amending_world_make,
                                        amending_world_remove),
        cmocka_unit_test_setup_teardown(test_what_does_not_follow, amending_world_make,
                                        amending_world_remove),
        cmocka_unit_test_setup_teardown(test_contradictory_amendments, amending_world_make,
                                        amending_world_remove),
        cmocka_unit_test_setup_teardown(test_post_hoc_is_as_the_level_says, amending_world_make,
                                        amending_world_remove),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
