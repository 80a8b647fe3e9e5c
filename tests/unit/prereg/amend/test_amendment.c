/* The chain of amendments that follows from the lock or is refused. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/files/file.h"
#include "base/json/json.h"
#include "base/xalloc.h"
#include "prereg/amend/amend_known.h"
#include "prereg/amend/amend_rules.h"
#include "prereg/amend/amendment.h"
#include "tests/unit/check.h"
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
    struct plan_program *then = program_of(text, w->folder);
    assert_int_equal(lock_verify(then, lock, LOCK_ALL, NULL, NULL, &err), 0);
    assert_int_equal(lock_verify(w->program, lock, LOCK_PLAN, NULL, NULL, &err), ERR_LOCK);
    program_free(then);
    free(text);
    lock_free(lock);
    free_chain(list);
}

static void test_tampering_is_named(void **state)
{
    static const char *const keys[] = {"program", "reason", "level"};
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

/* Nobody un-sees: a level never falls. */
static void test_levels_never_fall(void **state)
{
    static const char *const levels[][2] = {
        {"sealed", "nothing_run"}, {"sealed", "nothing_scored"}, {"nothing_scored", "nothing_run"}};
    const struct amending_world *w = *state;
    for (size_t i = 0; i < ARRAY_LEN(levels); i++) {
        const char *previous = w->lock->root;
        cJSON *list[2];
        for (int k = 0; k < 2; k++) {
            const char *const values[2] = {STEPS[k], STEPS[k + 1]};
            list[k] = amending_amendment_of(w, k + 1, previous, values);
            amending_set_text(list[k], "level", levels[i][k]);
            amending_put_head(list[k]);
            amending_write_amendment(w, (size_t)k + 1, list[k]);
            previous = amending_text_of(list[k], "head");
        }
        amending_expect_refused(w, ERR_LOCK, "0002.json: its \"level\" is nothing_");
        cJSON_Delete(list[0]);
        cJSON_Delete(list[1]);
    }
}

static void test_what_does_not_follow(void **state)
{
    static const struct {
        const char *key;
        const char *value;
        const char *word;
    } cases[] = {
        {"level", "unknown", "\"level\""},
        {"time", "today", "\"time\""},
        {"time", "\x1b[31m2026-01-01T00:00:00.000Z", "\"time\""},
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
    cJSON *a = amending_amendment_of(w, 1, w->lock->root, values);
    cJSON *signature = json_object(); /* whose fingerprint would be printed */
    json_put_string(signature, "fingerprint", "\x1b[31mred");
    cJSON_DeleteItemFromObjectCaseSensitive(a, "signature");
    json_put(a, "signature", signature);
    amending_write_amendment(w, 1, a);
    amending_expect_refused(w, ERR_LOCK, "not a whole SSH signature");
    cJSON_Delete(a);
    a = amending_amendment_of(w, 1, w->lock->root, stale); /* from a value that never stood there */
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

/* A result by which params of stage "other" were changed, as the file of an amendment bears it. */
static cJSON *known_result(const char *stage)
{
    cJSON *known = json_array();
    cJSON *r = json_object();
    json_put_string(r, "check", "ref");
    json_put_string(r, "stage", stage);
    json_put_string(r, "model", "corpus.txt");
    json_put_string(r, "metric", "other.x");
    json_put_string(r, "text", "it did not hold");
    json_put_int(r, "attempt", 1);
    json_put_int(r, "amendment", 0);
    json_put_number(r, "expected", 0.1);
    json_put_number(r, "within", 0.01);
    json_put_number(r, "value", 0.667);
    json_put_bool(r, "holds", false);
    json_push(known, r);
    return known;
}

/* What was known of a check and what is post hoc go together, whoever wrote the file. */
static void test_post_hoc_is_as_what_was_known_says(void **state)
{
    static const struct {
        const char *stage; /* NULL: nothing was known */
        bool post_hoc;
        const char *refused; /* NULL: it is taken */
    } cases[] = {{"other", true, NULL},
                 {"other", false, "or what was known then"},
                 {"score", false, NULL},
                 {"score", true, "or what was known then"},
                 {NULL, true, "or what was known then"},
                 {NULL, false, NULL}};
    const struct amending_world *w = *state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct lock *lock = NULL;
        struct err err = {0};
        struct amending_judged j = {.changes = json_array(), .refused = json_array()};
        cJSON *change = json_object();
        cJSON *path = json_array();
        static const char *const keys[] = {"plan", "stage", "other", "params"};
        for (size_t k = 0; k < ARRAY_LEN(keys); k++) {
            json_push_string(path, keys[k]);
        }
        json_put(change, "path", path);
        json_put(change, "to", json_object());
        const cJSON *plan = json_member(w->lock->locked, "plan");
        const cJSON *was = json_member(json_member(json_member(plan, "stage"), "other"), "params");
        if (was != NULL) {
            json_put(change, "from", json_copy(was));
            json_put_int(cJSON_GetObjectItemCaseSensitive(change, "to"), "more", 1);
        }
        json_put_bool(change, "post_hoc", cases[i].post_hoc);
        json_push(j.changes, change);
        cJSON *a = amending_amendment_with(w, j.changes, ACCESS_NOTHING_SCORED);
        if (cases[i].stage != NULL) {
            json_put(a, AMENDMENT_KNOWN, known_result(cases[i].stage));
            amending_put_head(a);
        }
        amending_write_amendment(w, 1, a);
        if (cases[i].refused != NULL) {
            amending_expect_refused(w, ERR_LOCK, cases[i].refused);
        } else if (lock_read_amended(w->folder, &lock, &err) != 0) {
            fail_msg("case %zu: %s", i, err.msg);
        }
        lock_free(lock);
        cJSON_Delete(a);
        amending_judged_release(&j);
    }
}

static cJSON *parsed(const char *text)
{
    cJSON *v = NULL;
    struct err err;
    assert_int_equal(json_parse(text, strlen(text), &v, &err), 0);
    return v;
}

static void test_what_touches_a_check(void **state)
{
    static const struct {
        const char *change;
        bool touches;
    } cases[] = {
        {"{\"path\":[\"plan\",\"apparatus\",\"ref\",\"expect\",\"value\"]}", true},
        {"{\"path\":[\"plan\",\"apparatus\",\"ref\"],\"from\":{}}", true},
        {"{\"path\":[\"plan\",\"apparatus\",\"reference\"]}", false},
        {"{\"path\":[\"plan\",\"apparatus\"],\"from\":{\"ref\":{}}}", true},
        {"{\"path\":[\"plan\",\"apparatus\"],\"to\":{\"other\":{}}}", false},
        {"{\"path\":[\"plan\",\"order\",\"apparatus\"]}", false},
        {"{\"path\":[\"plan\",\"stage\",\"other\",\"params\",\"limit\"]}", true},
        {"{\"path\":[\"plan\",\"stage\",\"score\",\"params\"]}", false},
        {"{\"path\":[\"solved\",\"arch=a\",\"other\",\"ffn\"]}", true},
        {"{\"path\":[\"files\",\"corpus.txt\"]}", true},
        {"{\"path\":[\"files\",\"another\"]}", false},
        {"{\"path\":[\"plan\",\"validity\",\"ref\"]}", false},
        {"{}", false},
    };
    (void)state;
    cJSON *known = known_result("other");
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CHECK_ROW("%s", cases[i].change);
        cJSON *change = parsed(cases[i].change);
        if (amend_is_known(known, change) != cases[i].touches) {
            fail_msg("%s", cases[i].change);
        }
        cJSON_Delete(change);
    }
    cJSON_Delete(known);
}

static void test_known_is_a_list_of_results(void **state)
{
    static const char *const cases[] = {"[]",  "{}",   "[{}]",
                                        "[1]", "null", "[{\"check\":\"ref\",\"attempt\":0}]"};
    struct err err;
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CHECK_ROW("%s", cases[i]);
        cJSON *known = parsed(cases[i]);
        assert_int_equal(amend_check_known(known, &err), ERR_LOCK);
        cJSON_Delete(known);
    }
    cJSON *known = known_result("other");
    assert_int_equal(amend_check_known(known, &err), 0);
    assert_int_equal(amend_check_known(NULL, &err), 0);
    cJSON_Delete(known);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_an_amended_lock, amending_world_make,
                                        amending_world_remove),
        cmocka_unit_test_setup_teardown(test_tampering_is_named, amending_world_make,
                                        amending_world_remove),
        cmocka_unit_test_setup_teardown(test_levels_never_fall, amending_world_make,
                                        amending_world_remove),
        cmocka_unit_test_setup_teardown(test_what_does_not_follow, amending_world_make,
                                        amending_world_remove),
        cmocka_unit_test_setup_teardown(test_contradictory_amendments, amending_world_make,
                                        amending_world_remove),
        cmocka_unit_test_setup_teardown(test_post_hoc_is_as_the_level_says, amending_world_make,
                                        amending_world_remove),
        cmocka_unit_test_setup_teardown(test_post_hoc_is_as_what_was_known_says,
                                        amending_world_make, amending_world_remove),
        cmocka_unit_test(test_what_touches_a_check),
        cmocka_unit_test(test_known_is_a_list_of_results),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
