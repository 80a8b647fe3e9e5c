/* What the rest of a plan makes of a change: priors, forecasts, facts, metrics and files that are
 * somebody else's as well. */
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

#define BAYES                                                                                      \
    "[instrument.bayes]\nkind = \"bayes\"\ncontrast = \"arch\"\npriors = { wide = 0.02 }\n"
#define NARROW                                                                                     \
    "[instrument.narrow]\nkind = \"bayes\"\ncontrast = \"arch\"\npriors = { narrow = 0.01 }\n"

/* What gives the priors of a bf10 that the table or a validity reads is sealed with it. */
static void test_priors_that_a_condition_reads(void **state)
{
    static const struct {
        const char *what;
        const char *from;
        const char *to;
        bool sealed;
    } cases[] = {
        {"priors", "wide = 0.02", "wide = 0.03", true},
        {"one prior more", "wide = 0.02", "wide = 0.02, w = 0.1", true},
        {"gone", BAYES, "", true},
        {"another kind", BAYES, "[instrument.bayes]\nkind = \"items\"\ncontrast = \"arch\"\n",
         true},
        {"before it", BAYES, NARROW BAYES, true},
        {"after it", BAYES, BAYES NARROW, false},
        {"the same priors, another name", "[instrument.bayes]", "[instrument.bayesian]", false},
        {"bounds", "wide = 0.02 }\n", "wide = 0.02 }\nbounds = [0.3, 3.0]\n", false},
        {"another instrument", "[forecast]",
         "[instrument.m]\nkind = \"items\"\ncontrast = \"arch\"\n[forecast]", false},
    };
    static const char *const readers[][2] = {
        {"\"counter.k >= 1\"", "\"contrast.arch[acc].bf10 > 1\""},
        {"on_fail = \"flag\", timing = true }",
         "on_fail = \"flag\", timing = true }\n"
         "b = { condition = \"1 < contrast.arch[acc].bf10\", "
         "on_fail = \"void\" }"}};
    const struct amending_world *w = *state;
    for (size_t r = 0; r < ARRAY_LEN(readers); r++) {
        CHECK_ROW("%s", readers[r][0]);
        struct err err = {0};
        struct amending_world other = *w;
        char *base = text_replace(amending_program, readers[r][0], readers[r][1]);
        other.program = program_of(base, w->folder);
        assert_int_equal(lock_build(other.program, NULL, NULL, &other.lock, &err), 0);
        for (size_t i = 0; i < ARRAY_LEN(cases) * ACCESS_NR; i++) {
            enum access_level level = (enum access_level)(i % ACCESS_NR);
            CHECK_ROW("%s at %s", cases[i / ACCESS_NR].what, access_level_name(level));
            char *text = text_replace(base, cases[i / ACCESS_NR].from, cases[i / ACCESS_NR].to);
            struct amending_judged j = amending_judge(&other, text, level, 0);
            struct amendment_chain chain;
            bool sealed = cases[i / ACCESS_NR].sealed;
            if ((j.refused->child != NULL) != sealed) {
                fail_msg("%s at %s", cases[i / ACCESS_NR].what, access_level_name(level));
            }
            if (sealed) {
                assert_non_null(
                    strstr(amending_text_of(j.refused->child, "why"), "contrast.arch[acc].bf10"));
                assert_non_null(strstr(amending_text_of(j.refused->child, "why"), AMEND_SUPERSEDE));
            }
            cJSON *a =
                amending_amendment_with(&other, j.changes, level); /* by the file alone, too */
            amendments_begin(other.lock, &chain);
            assert_int_equal(amendments_append(&chain, other.lock->root, a, &err),
                             sealed ? ERR_LOCK : 0);
            if (sealed) {
                cJSON_Delete(a);
            }
            amendments_release(&chain);
            amending_judged_release(&j);
            free(text);
        }
        lock_free(other.lock);
        program_free(other.program);
        free(base);
    }
}

/* Nothing is scored, and yet train's results lie open: what is said of them now is no forecast. */
static void test_forecasts_of_what_lies_open(void **state)
{
    static const struct {
        const char *condition;
        uint64_t started;
        bool post_hoc;
    } cases[] = {
        {"contrast.arch[loss].mean > 0", 0, false}, {"contrast.arch[loss].mean > 0", 1, true},
        {"contrast.arch[acc].mean > 0", 1, false},  {"contrast.arch.mean > 0", 1, false},
        {"fact.train.step_seconds > 1", 1, true},   {"fact.score.seconds > 1", 1, false},
        {"measure.loss['moe'].mean < 3", 1, true},  {"instrument.bayes.robust", 1, true},
        {"instrument.bayes.robust", 0, false},      {"contrast.lossless.mean > 0", 1, false},
    };
    const struct amending_world *w = *state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char *new = xasprintf("confidence = 0.8 }\nnew = { condition = \"%s\", confidence = 0.5 }",
                              cases[i].condition);
        char *text = text_replace(amending_program, "confidence = 0.8 }", new);
        struct amending_judged j = amending_judge(w, text, ACCESS_NOTHING_SCORED, cases[i].started);
        struct amendment_chain chain;
        struct err err = {0};
        bool found = false;
        assert_null(j.refused->child);
        const cJSON *c;
        cJSON_ArrayForEach(c, j.changes)
        {
            struct strbuf path = STRBUF_INIT;
            amendment_path_text(c, &path);
            if (strcmp(path.buf, "plan.forecast.new") == 0) {
                found = cJSON_IsTrue(json_member(c, "post_hoc")) == cases[i].post_hoc;
            }
            strbuf_release(&path);
        }
        if (!found) {
            fail_msg("%s, started %d", cases[i].condition, (int)cases[i].started);
        }
        cJSON *a = amending_amendment_with(w, j.changes, ACCESS_NOTHING_SCORED);
        amendments_begin(w->lock, &chain);
        assert_int_equal(amendments_append(&chain, w->lock->root, a, &err), 0);
        amendments_release(&chain);
        amending_judged_release(&j);
        free(text);
        free(new);
    }
}

/* Exchanged metrics would be exchanged floors. */
static void test_metric_of_another_measure(void **state)
{
    const struct amending_world *w = *state;
    static const char *const steps[][3] = {{"acc", "score.acc_norm", "score.acc"},
                                           {"more", "other.acc", "score.acc_norm"}};
    char *text = text_replace(amending_program, "other.acc", "score.acc_norm");
    struct amending_judged j = amending_judge(w, text, ACCESS_NOTHING_RUN, 0);
    assert_int_equal(cJSON_GetArraySize(j.refused), 1);
    assert_non_null(strstr(amending_text_of(j.refused->child, "why"), "measure.acc"));
    amending_judged_release(&j);
    free(text);
    /* nor in two steps: what it was as locked counts */
    struct amendment_chain chain;
    struct err err = {0};
    amendments_begin(w->lock, &chain);
    for (int i = 0; i < 2; i++) {
        cJSON *a = amending_amendment_of(w, i + 1, chain.head, &steps[i][1]);
        cJSON *path = cJSON_GetObjectItemCaseSensitive(
            cJSON_GetObjectItemCaseSensitive(a, "changes")->child, "path");
        cJSON_ReplaceItemInArray(path, 2, cJSON_CreateString(steps[i][0]));
        amending_put_head(a);
        int rc = amendments_append(&chain, w->lock->root, a, &err);
        assert_int_equal(rc, i == 0 ? 0 : ERR_LOCK);
        if (rc != 0) {
            assert_non_null(strstr(err.msg, "measure.acc"));
            cJSON_Delete(a);
        }
    }
    amendments_release(&chain);
}

/* A digest that is taken out by hand would leave a worker's file unpinned. */
static void test_digests_of_files_by_hand(void **state)
{
    static const char *const cases[] = {
        "{\"path\":[\"files\",\"./worker.sh\"],\"from\":%s,\"post_hoc\":false}",
        "{\"path\":[\"files\",\"stray\"],\"to\":%s,\"post_hoc\":false}",
    };
    const struct amending_world *w = *state;
    const cJSON *digest = json_member(w->lock->files, "./worker.sh");
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CHECK_ROW("%s", cases[i]);
        struct amendment_chain chain;
        struct err err = {0};
        cJSON *changes = json_array();
        cJSON *change = NULL;
        char *quoted = xasprintf("\"%s\"", digest->valuestring);
        char *text = text_replace(cases[i], "%s", quoted);
        assert_int_equal(json_parse(text, strlen(text), &change, &err), 0);
        json_push(changes, change);
        cJSON *a = amending_amendment_with(w, changes, ACCESS_NOTHING_RUN);
        amendments_begin(w->lock, &chain);
        assert_int_equal(amendments_append(&chain, w->lock->root, a, &err), ERR_LOCK);
        assert_non_null(strstr(err.msg, "not a reference model"));
        cJSON_Delete(a);
        cJSON_Delete(changes);
        amendments_release(&chain);
        free(text);
        free(quoted);
    }
}

/* A forecast is not made true by another instrument of the same name. */
static void test_instruments_that_a_forecast_reads(void **state)
{
    static const struct {
        const char *condition;
        const char *from;
        const char *to;
        bool fixed;
    } cases[] = {
        {"instrument.bayes.robust", "wide = 0.02", "wide = 0.03", true},
        {"not instrument.bayes.robust", "wide = 0.02 }\n", "wide = 0.02 }\nbounds = [0.3, 3.0]\n",
         true},
        {"contrast.arch[acc].bf10 > 1", "wide = 0.02", "wide = 0.03", true},
        {"contrast.arch[acc].bf10 > 1", BAYES, NARROW BAYES, true},
        {"contrast.arch[acc].bf10 > 1", BAYES, BAYES NARROW, false},
        {"instrument.bayes.robust", BAYES, BAYES NARROW, false},
        {"contrast.arch.mean > 0", "wide = 0.02", "wide = 0.03", false},
    };
    static const struct {
        enum access_level level;
        uint64_t started;
        bool fixed;
    } when[] = {{ACCESS_NOTHING_RUN, 0, false},
                {ACCESS_NOTHING_SCORED, 0, false},
                {ACCESS_NOTHING_SCORED, 1, true},
                {ACCESS_SEALED, 4, true},
                {ACCESS_SEEN, 4, true}};
    const struct amending_world *w = *state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CHECK_ROW("%s", cases[i].condition);
        struct err err = {0};
        struct amending_world other = *w;
        char *base = text_replace(amending_program, "\"contrast.arch.mean > 0\"", "\"CONDITION\"");
        char *text = text_replace(base, "CONDITION", cases[i].condition);
        other.program = program_of(text, w->folder);
        assert_int_equal(lock_build(other.program, NULL, NULL, &other.lock, &err), 0);
        char *then = text_replace(text, cases[i].from, cases[i].to);
        for (size_t k = 0; k < ARRAY_LEN(when); k++) {
            CHECK_ROW("when[%zu]", k);
            struct amending_judged j = amending_judge(&other, then, when[k].level, when[k].started);
            bool refused = j.refused->child != NULL;
            if (refused != (cases[i].fixed && when[k].fixed)) {
                fail_msg("%s: %s at %zu: %d", cases[i].condition, cases[i].to, k, refused);
            }
            if (refused) {
                assert_non_null(
                    strstr(amending_text_of(j.refused->child, "why"), cases[i].condition));
            }
            struct amendment_chain chain;
            cJSON *a = amending_amendment_with(&other, j.changes, when[k].level);
            bool by_file = cases[i].fixed && when[k].level >= ACCESS_SEALED;
            amendments_begin(other.lock, &chain);
            assert_int_equal(amendments_append(&chain, other.lock->root, a, &err),
                             by_file ? ERR_LOCK : 0);
            if (by_file) {
                cJSON_Delete(a);
            }
            amendments_release(&chain);
            amending_judged_release(&j);
        }
        free(then);
        lock_free(other.lock);
        program_free(other.program);
        free(text);
        free(base);
    }
}

/* What is taken away or bent once its facts lie open is post hoc as much as what is added. */
static void test_what_is_changed_when_its_facts_lie_open(void **state)
{
    static const struct {
        const char *from;
        const char *to;
        uint64_t started;
        bool post_hoc;
    } cases[] = {
        {"<= 1.2\"", "<= 1.3\"", 0, false},
        {"<= 1.2\"", "<= 1.3\"", 1, true},
        {"<= 1.2\"", "<= 1.3\"", 4, false}, /* another stage, and sealed */
        {"on_fail = \"flag\", timing = true", "on_fail = \"void\"", 1, true},
        {"[validity]\nstep = { condition = \"0.85 <= ratio(fact.train.step_seconds, "
         "arch, 'moe', 'dense') <= 1.2\", on_fail = \"flag\", timing = true }\n",
         "", 1, true},
        {"[forecast]\n",
         "[forecast]\nloss = { condition = \"contrast.arch[loss].mean > 0\", "
         "confidence = 0.9 }\n",
         1, true},
    };
    const struct amending_world *w = *state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CHECK_ROW("%s", cases[i].from);
        char *text = text_replace(amending_program, cases[i].from, cases[i].to);
        struct amending_world other = *w;
        struct amending_judged j = amending_judge(w, text, ACCESS_NOTHING_SCORED, cases[i].started);
        assert_null(j.refused->child);
        if (cJSON_IsTrue(json_member(j.changes->child, "post_hoc")) != cases[i].post_hoc) {
            fail_msg("%s", cases[i].to);
        }
        if (strcmp(cases[i].from, "[forecast]\n") == 0) { /* and taken away again */
            struct err err = {0};
            other.program = program_of(text, w->folder);
            assert_int_equal(lock_build(other.program, NULL, NULL, &other.lock, &err), 0);
            amending_judged_release(&j);
            j = amending_judge(&other, amending_program, ACCESS_NOTHING_SCORED, 1);
            assert_true(cJSON_IsTrue(json_member(j.changes->child, "post_hoc")));
            lock_free(other.lock);
            program_free(other.program);
        }
        amending_judged_release(&j);
        free(text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_priors_that_a_condition_reads, amending_world_make,
                                        amending_world_remove),
        cmocka_unit_test_setup_teardown(test_forecasts_of_what_lies_open, amending_world_make,
                                        amending_world_remove),
        cmocka_unit_test_setup_teardown(test_metric_of_another_measure, amending_world_make,
                                        amending_world_remove),
        cmocka_unit_test_setup_teardown(test_digests_of_files_by_hand, amending_world_make,
                                        amending_world_remove),
        cmocka_unit_test_setup_teardown(test_instruments_that_a_forecast_reads, amending_world_make,
                                        amending_world_remove),
        cmocka_unit_test_setup_teardown(test_what_is_changed_when_its_facts_lie_open,
                                        amending_world_make, amending_world_remove),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
