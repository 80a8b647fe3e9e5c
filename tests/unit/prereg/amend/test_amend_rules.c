/* What may change when: every cell of the table, by the daemon's judgement and by a file alone. */
#include <stdlib.h>
#include <string.h>

#include "base/files/file.h"
#include "base/json/json.h"
#include "base/xalloc.h"
#include "prereg/amend/amend_rules.h"
#include "prereg/amend/amendment.h"
#include "tests/unit/check.h"
#include "tests/unit/prereg/amending.h"
#include "tests/unit/prereg/support.h"

#define ROOT_OF_ANOTHER "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

#define YES  "yyyy" /* allowed at nothing run, nothing scored, sealed, seen */
#define MID  "yyyn"
#define HALF "yynn"
#define NO   "nnnn"

static const struct amend_case {
    const char *what;
    const char *from;
    const char *to;
    const char *section; /* of a change that is refused, or any */
    const char *allowed;
} CELLS[] = {
    /* sealed for good */
    {"factor", "levels = [1, 2]", "levels = [1, 2, 3]", "factors", NO},
    {"order of factors' levels", "[\"dense\", \"moe\"]\n[[f", "[\"moe\", \"dense\"]\n[[f",
     "factors", NO},
    {"floor", "floor = 0.3, best", "floor = 0.29, best", "floors", NO},
    {"best arm", "best_arm = 0.31", "best_arm = 0.3", "floors", NO},
    {"chance", "chance = 0.25, floor = 0.3, b", "chance = 0.2, floor = 0.3, b", "chance", NO},
    {"items", "items = 100", "items = 99", "items", NO},
    {"items gone", "items = 100, ", "", "items", NO},
    {"better", "better = \"lower\"", "better = \"higher\"", "measures", NO},
    {"counted", "counted = false", "counted = true", "measures", NO},
    {"a new measure", "[contrast]", "fresh = { metric = \"other.x\" }\n[contrast]", "measures", NO},
    {"a measure less",
     "loss = { metric = \"train.val_loss\", better = \"lower\", counted = false }", "", "measures",
     NO},
    {"order of measures",
     "more = { metric = \"other.acc\", chance = 0.25, floor = 0.3 }\nloss = { "
     "metric = \"train.val_loss\", better = \"lower\", counted = false }",
     "loss = { metric = \"train.val_loss\", better = \"lower\", counted = false }\nmore = { metric "
     "= "
     "\"other.acc\", chance = 0.25, floor = 0.3 }",
     "measures", NO},
    {"counter", "every_cell", "arm_means", "counters", NO},
    {"contrast", "[\"moe\", \"dense\"] } }", "[\"dense\", \"moe\"] } }", "contrasts", NO},
    {"input", "counter.k >= 1", "counter.k >= 2", "inputs", NO},
    {"table", "[\"no\", \"O2\"]]", "[\"no\", \"O1\"]]", "table", NO},
    {"outcome's title", "title = \"cleared\"", "title = \"Cleared\"", "outcomes", NO},
    {"prior", "prior = 0.4", "prior = 0.45", "priors", NO},
    {"budget", "budget = 0.1", "budget = 0.2", "budget", NO},
    {"what an excluded cell does", "budget = 0.1", "budget = 0.1\nevery_cell = \"fails\"", "budget",
     NO},
    /* what says what is run */
    {"name", "name = \"p\"", "name = \"q\"", "the program's name and question", NO},
    {"question", "Which?", "Which one?", "the program's name and question", NO},
    {"supersedes", "schema = 1", "schema = 1\nsupersedes = \"" ROOT_OF_ANOTHER "\"",
     "the program's name and question", NO},
    {"command", "after = [\"train\"]\ncommand = [\"./worker.sh\"]\nparams",
     "after = [\"train\"]\ncommand = [\"./worker.sh\", \"-x\"]\nparams", "stages", NO},
    {"threads", "threads = 2", "threads = 1", "stages", NO},
    {"env", "MODE = \"a\"", "MODE = \"b\"", "stages", NO},
    {"after", "[stage.other]\nafter = [\"train\"]", "[stage.other]\nafter = [\"train\", \"score\"]",
     "stages", NO},
    {"a new stage", "[measure]", "[stage.extra]\ncommand = [\"./worker.sh\"]\n[measure]", "stages",
     NO},
    {"new data", "[stage.train]", "fresh = \"worker.sh\"\n[stage.train]", "contents of data", NO},
    {"other data under another path", "corpus = \"corpus.txt\"", "corpus = \"worker.sh\"",
     "contents of data", NO},
    {"pin", "workers = \"record\"", "workers = \"refuse\"", "[pin]", NO},
    {"lock", "[pin]", "[lock]\nsign = \"required\"\n[pin]", "[lock]", NO},
    /* what may change */
    {"metric", "score.acc_norm", "score.acc", "metric of a measure", MID},
    {"metric of a stage that is not sealed", "score.acc_norm", "train.acc", "metric of a measure",
     NO},
    {"metric that unseals a stage", "score.acc_norm", "other.f1", "metric of a measure", NO},
    {"params", "shots = 5", "shots = 4", "params of a stage", MID},
    {"params that are new", "shots = 5", "shots = 5, seed = 1", "params of a stage", MID},
    {"params of a level", "experts = 4", "experts = 8", "params of a stage", MID},
    {"data path", "corpus = \"corpus.txt\"", "corpus = \"copy.txt\"", "data path", MID},
    {"validity", "<= 1.2\"", "<= 1.3\"", "validity", HALF},
    {"validity voids", "on_fail = \"flag\", timing = true", "on_fail = \"void\"", "validity", HALF},
    {"validity gone",
     "[validity]\nstep = { condition = \"0.85 <= ratio(fact.train.step_seconds, "
     "arch, 'moe', 'dense') <= 1.2\", on_fail = \"flag\", timing = true }\n",
     "", "validity", HALF},
    {"new apparatus", "[pin]",
     "[apparatus.ref]\nstage = \"other\"\nmodel = \"corpus.txt\"\nexpect = { metric = "
     "\"other.acc\", value = 0.27, within = 0.1 }\n[pin]",
     "apparatus", HALF},
    {"forecast", "confidence = 0.8", "confidence = 0.7", "forecasts", HALF},
    {"new forecast", "confidence = 0.8 }",
     "confidence = 0.8 }\nsmall = { condition = \"contrast.arch.mean < 1\", confidence = 0.5 }",
     "forecasts", HALF},
    {"instrument", "wide = 0.02", "wide = 0.03", "instruments", YES},
    {"new instrument", "[forecast]",
     "[instrument.again]\nkind = \"bayes\"\ncontrast = \"arch\"\npriors = { narrow = 0.01 "
     "}\n[forecast]",
     "instruments", YES},
    {"instrument gone",
     "[instrument.bayes]\nkind = \"bayes\"\ncontrast = \"arch\"\npriors = { wide = 0.02 }\n", "",
     "instruments", YES},
};

static void check_refusal(const struct amend_case *c, const cJSON *refused)
{
    const char *why = amending_text_of(refused, "why");
    bool too_late = strstr(why, access_level_words(ACCESS_SEEN)) != NULL;
    if (strcmp(c->allowed, NO) == 0 && !too_late && strstr(why, AMEND_SUPERSEDE) == NULL) {
        fail_msg("%s: \"%s\" does not name the way out", c->what, why);
    }
    assert_true(strlen(amending_text_of(refused, "path")) > 0);
}

/* Stages of which a task has begun, as there must be some at each level: none, train, train and one
 * more that is not changed. */
static void test_every_cell_of_the_table(void **state)
{
    static const uint64_t started[ACCESS_NR] = {0, 0, 4, 4};
    const struct amending_world *w = *state;
    for (size_t i = 0; i < ARRAY_LEN(CELLS); i++) {
        CHECK_ROW("%s", CELLS[i].what);
        char *text = text_replace(amending_program, CELLS[i].from, CELLS[i].to);
        for (unsigned level = 0; level < ACCESS_NR; level++) {
            struct amending_judged j =
                amending_judge(w, text, (enum access_level)level, started[level]);
            bool ok = cJSON_GetArraySize(j.refused) == 0;
            if (j.changes->child == NULL) {
                fail_msg("%s: no change was seen", CELLS[i].what);
            }
            if (ok != (CELLS[i].allowed[level] == 'y')) {
                fail_msg("%s at %s: %s", CELLS[i].what, access_level_name((enum access_level)level),
                         ok ? "allowed" : "refused");
            }
            const cJSON *shown = ok ? j.changes->child : j.refused->child->prev; /* the last */
            assert_string_equal(amending_text_of(shown, "section"), CELLS[i].section);
            assert_true(cJSON_IsTrue(json_member(j.changes->child, "post_hoc")) ==
                        (level == ACCESS_SEEN));
            if (!ok) {
                check_refusal(&CELLS[i], shown);
            }
            amending_judged_release(&j);
        }
        free(text);
    }
}

static bool is_allowed(const struct amending_world *w, const char *from, const char *to,
                       uint64_t started)
{
    char *text = text_replace(amending_program, from, to);
    struct amending_judged j = amending_judge(w, text, ACCESS_NOTHING_SCORED, started);
    bool ok = j.refused->child == NULL;
    amending_judged_release(&j);
    free(text);
    return ok;
}

static void test_what_has_begun_is_fixed(void **state)
{
    const struct amending_world *w = *state;
    assert_true(is_allowed(w, "shots = 5", "shots = 4", 1));
    assert_false(is_allowed(w, "lr = 1e-3", "lr = 2e-3", 1));
    assert_false(is_allowed(w, "experts = 4", "experts = 8", 1));
    assert_true(is_allowed(w, "lr = 1e-3", "lr = 2e-3", 2));
    assert_false(is_allowed(w, "shots = 5", "shots = 4", 2));
    /* an open value is seen, whatever else is sealed */
    assert_true(is_allowed(w, "train.val_loss", "train.loss", 0));
    assert_false(is_allowed(w, "train.val_loss", "train.loss", 1));
}

static void test_what_differs_in_the_lock_alone_is_refused(void **state)
{
    static const char *const paths[][3] = {
        {"data", "corpus", NULL}, {"files", "./worker.sh", NULL}, {"imported", NULL, NULL}};
    const struct amending_world *w = *state;
    for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
        CHECK_ROW("%s", paths[i][0]);
        cJSON *changed = json_copy(w->lock->locked);
        cJSON *holder = changed;
        const char *key = paths[i][0];
        if (paths[i][1] != NULL) {
            holder = cJSON_GetObjectItemCaseSensitive(changed, key);
            key = paths[i][1];
        }
        cJSON_DeleteItemFromObjectCaseSensitive(holder, key);
        json_put_string(holder, key, "another");
        cJSON *changes = amendment_changes(w->lock->locked, changed);
        cJSON *refused = json_array();
        struct amend_state s = {w->program, w->program, ACCESS_NOTHING_RUN, {{0}}, NULL};
        amend_classify(&s, changes, refused);
        assert_int_equal(cJSON_GetArraySize(changes), 1);
        assert_int_equal(cJSON_GetArraySize(refused), 1);
        cJSON_Delete(refused);
        cJSON_Delete(changes);
        cJSON_Delete(changed);
    }
}

/* A chain that was made by hand is held to the table as well, as far as a file tells: metrics of
 * open stages and of those that are unsealed so need the program. */
static void test_files_keep_the_table(void **state)
{
    const struct amending_world *w = *state;
    for (size_t i = 0; i < ARRAY_LEN(CELLS); i++) {
        CHECK_ROW("%s", CELLS[i].what);
        char *text = text_replace(amending_program, CELLS[i].from, CELLS[i].to);
        for (unsigned level = 0; level < ACCESS_NR; level++) {
            struct amending_judged j = amending_judge(w, text, (enum access_level)level, 0);
            struct amendment_chain chain;
            struct err err = {0};
            cJSON *a = amending_amendment_with(w, j.changes, (enum access_level)level);
            bool of_metric = strcmp(CELLS[i].section, "metric of a measure") == 0;
            bool wanted = of_metric ? level < ACCESS_SEEN : CELLS[i].allowed[level] == 'y';
            amendments_begin(w->lock, &chain);
            bool taken = amendments_append(&chain, w->lock->root, a, &err) == 0;
            if (taken != wanted) {
                fail_msg("%s at %s: %s", CELLS[i].what, access_level_name((enum access_level)level),
                         taken ? "taken" : err.msg);
            }
            if (!taken) {
                assert_int_equal(err.code, ERR_LOCK);
                assert_non_null(strstr(err.msg, "is changed by no amendment when"));
                cJSON_Delete(a);
            }
            amendments_release(&chain);
            amending_judged_release(&j);
        }
        free(text);
    }
}

/* Whatever differs, applying the changes gives the other. */
static void test_changes_lead_from_one_to_the_other(void **state)
{
    const struct amending_world *w = *state;
    struct err err = {0};
    for (size_t i = 0; i < ARRAY_LEN(CELLS); i++) {
        CHECK_ROW("%s", CELLS[i].what);
        if (CELLS[i].allowed[0] != 'y') {
            continue;
        }
        char *text = text_replace(amending_program, CELLS[i].from, CELLS[i].to);
        struct amending_judged j = amending_judge(w, text, ACCESS_NOTHING_RUN, 0);
        struct amendment_chain chain;
        cJSON *a = amending_amendment_with(w, j.changes, ACCESS_NOTHING_RUN);
        amendments_begin(w->lock, &chain);
        if (amendments_append(&chain, w->lock->root, a, &err) != 0) {
            fail_msg("%s: %s", CELLS[i].what, err.msg);
        }
        struct plan_program *then = program_of(text, w->folder);
        struct lock *lock = NULL;
        assert_int_equal(lock_read_amended(w->folder, &lock, &err), 0);
        lock_take_amendments(lock, &chain);
        assert_int_equal(lock_verify(then, lock, LOCK_PLAN, NULL, NULL, &err), 0);
        lock_free(lock);
        program_free(then);
        amending_judged_release(&j);
        free(text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_every_cell_of_the_table, amending_world_make,
                                        amending_world_remove),
        cmocka_unit_test_setup_teardown(test_what_has_begun_is_fixed, amending_world_make,
                                        amending_world_remove),
        cmocka_unit_test_setup_teardown(test_what_differs_in_the_lock_alone_is_refused,
                                        amending_world_make, amending_world_remove),
        cmocka_unit_test_setup_teardown(test_files_keep_the_table, amending_world_make,
                                        amending_world_remove),
        cmocka_unit_test_setup_teardown(test_changes_lead_from_one_to_the_other,
                                        amending_world_make, amending_world_remove),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
