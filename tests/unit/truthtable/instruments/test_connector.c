/* The connector's shares of the sources in the whole gap, and its trigger's condition. */
#include <string.h>

#include "base/json/json.h"
#include "base/xalloc.h"
#include "prereg/load/program_load.h"
#include "tests/unit/check.h"
#include "tests/unit/truthtable/instruments/sample.h"
#include "truthtable/condition/decision_rules.h"

#define MIX "[stage.train.params]\nmix = { text = 0.6, code = 0.4 }\n"
#define CONNECTOR                                                                                  \
    "[instrument.connector]\nloss = \"loss\"\nsources = { text = \"text\", code = \"code\" }\n"

/* Gaps of three replicates; the whole is that of the mix. */
static void put_gaps(struct sample_program *t, double shift)
{
    static const double text[3] = {0.1, 0.2, 0.3};
    static const double code[3] = {0.4, 0.5, 0.9};
    double cells[3][6] = {{0}};
    for (size_t r = 0; r < 3; r++) {
        cells[0][3 + r] = text[r] + shift;
        cells[1][3 + r] = code[r] + shift;
        cells[2][3 + r] = 0.6 * cells[0][3 + r] + 0.4 * cells[1][3 + r];
    }
    sample_cells(t, "text", cells[0]);
    sample_cells(t, "code", cells[1]);
    sample_cells(t, "loss", cells[2]);
}

static cJSON *compute(const char *toml, double shift)
{
    struct sample_program t;
    sample_open(&t, toml);
    put_gaps(&t, shift);
    cJSON *computed = sample_compute(&t);
    sample_close(&t);
    return computed;
}

static void test_shares(void **state)
{
    (void)state;
    cJSON *computed = compute(TOLD_PROGRAM MIX CONNECTOR, 1);
    sample_expect(computed, "instruments.connector.sources.0.weight", 0.6, 0);
    sample_expect(computed, "instruments.connector.sources.0.share", 9.0 / 17, 1e-12);
    sample_expect(computed, "instruments.connector.sources.0.share_se", 0.013061997, 1e-7);
    sample_expect_null(computed, "instruments.connector.sources.0.share_why");
    sample_expect(computed, "instruments.connector.sources.1.share", 8.0 / 17, 1e-12);
    sample_expect(computed, "instruments.connector.sources.1.share_se", 0.013061997, 1e-7);
    assert_true(sample_at(computed, "instruments.connector.sources_rest")->valuedouble < 1e-12);
    cJSON_Delete(computed);
    /* one of two sources: the other is the rest */
    computed = compute(TOLD_PROGRAM MIX "[instrument.connector]\nloss = \"loss\"\n"
                                        "sources = { code = \"code\" }\n",
                       1);
    sample_expect(computed, "instruments.connector.sources_rest", 9.0 / 17, 1e-12);
    cJSON_Delete(computed);
}

/* A gap that may be 0 has shares without an error. */
static void test_gap_that_may_be_none(void **state)
{
    (void)state;
    cJSON *computed = compute(TOLD_PROGRAM MIX CONNECTOR, 0);
    sample_expect(computed, "instruments.connector.sources.0.share", 1.0 / 3, 1e-12);
    sample_expect_null(computed, "instruments.connector.sources.0.share_se");
    sample_expect_text(computed, "instruments.connector.sources.0.share_why",
                       "no error: the whole gap may be 0");
    cJSON_Delete(computed);
}

static void test_no_weight(void **state)
{
    static const struct {
        const char *toml, *why;
    } cases[] = {
        {TOLD_PROGRAM CONNECTOR, "the mix of stage train has no weight of \"text\""},
        {TOLD_PROGRAM MIX
         "[stage.train.when.arch]\nmoe = { mix = { text = 0.5, code = 0.5 } }\n" CONNECTOR,
         "the weight of \"text\" is not the same in all cells"},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CHECK_ROW("%s", cases[i].why);
        cJSON *computed = compute(cases[i].toml, 1);
        sample_expect_null(computed, "instruments.connector.sources.0.share");
        sample_expect_text(computed, "instruments.connector.sources.0.share_why", cases[i].why);
        sample_expect_null(computed, "instruments.connector.sources_rest");
        cJSON_Delete(computed);
    }
}

/* Perplexity of one source, its loss at a mark, and the loss of another source are no part of the
 * whole loss. */
static void test_unlike_quantities(void **state)
{
    static const struct {
        const char *metric, *loss, *why;
    } cases[] = {
        {"train.perplexity:text", "loss", "perplexity:text is not a part of loss"},
        {"train.loss:text@0.5", "loss", "loss:text@0.5 is not a part of loss"},
        {"train.loss:text", "code", "loss:text is not a part of loss:code"},
        {"train.loss:text", "loss", NULL},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CHECK_ROW("%s of %s", cases[i].metric, cases[i].loss);
        char *plan = xasprintf("%s%s[instrument.connector]\nloss = \"%s\"\n"
                               "sources = { text = \"text\" }\n",
                               TOLD_PROGRAM, MIX, cases[i].loss);
        char *at = strstr(plan, "train.loss:text");
        char *toml = xasprintf("%.*s%s%s", (int)(at - plan), plan, cases[i].metric,
                               at + strlen("train.loss:text"));
        cJSON *computed = compute(toml, 1);
        if (cases[i].why != NULL) {
            sample_expect_null(computed, "instruments.connector.sources.0.share");
            sample_expect_text(computed, "instruments.connector.sources.0.share_why", cases[i].why);
            sample_expect_null(computed, "instruments.connector.sources_rest");
        } else {
            sample_expect(computed, "instruments.connector.sources.0.share", 9.0 / 17, 1e-12);
        }
        cJSON_Delete(computed);
        free(toml);
        free(plan);
    }
}

/* It fires when all of it holds, whichever parts it has. */
static void test_trigger(void **state)
{
    static const struct {
        const char *trigger;
        double gap;
        double acc; /* of the second arm; negative: none is recorded */
        int fires;  /* 1, 0; -1: it cannot be known */
    } cases[] = {
        {"{ perplexity_ratio = 1.5, condition = \"contrast.arch[acc].mean >= 0.04\" }", 0.5, 0.5,
         1},
        {"{ perplexity_ratio = 1.5, condition = \"contrast.arch[acc].mean >= 0.04\" }", 0.5, 0.31,
         0},
        {"{ perplexity_ratio = 1.5, condition = \"contrast.arch[acc].mean >= 0.04\" }", 0.1, 0.5,
         0},
        {"{ perplexity_ratio = 1.5, condition = \"contrast.arch[acc].mean >= 0.04\" }", 0.5, -1,
         -1},
        {"{ perplexity_ratio = 1.5, condition = \"contrast.arch[acc].mean >= 0.04\" }", 0.1, -1, 0},
        {"{ condition = \"contrast.arch[acc].mean >= 0.04\" }", 0.1, 0.5, 1},
        {"{ condition = \"counter.k == 0\" }", 0.1, 0.5, 0},
        {"{ perplexity_ratio = 1.5 }", 0.5, -1, 1},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CHECK_ROW("%zu: %s", i, cases[i].trigger);
        struct sample_program t;
        const double gap = cases[i].gap;
        const double acc = cases[i].acc;
        char *toml = xasprintf(TOLD_PROGRAM CONNECTOR "trigger = %s\n", cases[i].trigger);
        sample_open(&t, toml);
        sample_cells(&t, "loss", (const double[6]){2, 2, 2, 2 + gap, 2 + gap, 2 + gap});
        if (acc >= 0) {
            sample_cells(&t, "acc", (const double[6]){0.3, 0.3, 0.3, acc, acc, acc});
        }
        cJSON *computed = sample_compute(&t);
        if (cases[i].fires < 0) {
            sample_expect_null(computed, "instruments.connector.trigger.fires");
            sample_expect_text(computed, "instruments.connector.trigger.why",
                               "the record is missing");
            sample_expect_null(computed, "instruments.connector.fields.trigger");
        } else {
            sample_expect_truth(computed, "instruments.connector.trigger.fires", cases[i].fires);
            sample_expect_truth(computed, "instruments.connector.fields.trigger", cases[i].fires);
        }
        cJSON_Delete(computed);
        sample_close(&t);
        free(toml);
    }
}

/* Faults of a trigger have the place of its text. */
static void test_faults(void **state)
{
    static const struct {
        const char *trigger, *says;
    } cases[] = {
        {"{}", "perplexity_ratio"},
        {"{ ratio = 2 }", "unknown key \"ratio\""},
        {"{ condition = 1 }", "expected a string"},
        {"{ perplexity_ratio = 1, condition = \"counter.k == 0\" }", "1 is not more than 1"},
        {"{ condition = \"counter.z == 0\" }", "counter \"z\""},
        {"{ condition = \"instrument.connector.shows\" }", "forecasts only"},
        {"{ condition = \"otherwise\" }", "otherwise"},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CHECK_ROW("%s", cases[i].trigger);
        struct plan_program *p = NULL;
        struct rules rules = {0};
        struct diag diag;
        struct err err = {0};
        char *toml = xasprintf(TOLD_PROGRAM CONNECTOR "trigger = %s\n", cases[i].trigger);
        diag_init(&diag, "grid.toml");
        int rc = program_parse(toml, strlen(toml), "/tmp/grid.toml", &p, &diag, &err);
        if (rc == 0) {
            rc = rules_compile(p, &rules, &diag, &err);
            rules_release(&rules);
        }
        assert_int_equal(rc, ERR_INVALID);
        assert_true(diag.n_items >= 1);
        if (strstr(diag.items[0].msg, cases[i].says) == NULL) {
            fail_msg("expected \"%s\", found: %s", cases[i].says, diag.items[0].msg);
        }
        assert_int_equal(diag.items[0].line, 38);
        diag_release(&diag);
        program_free(p);
        free(toml);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shares),    cmocka_unit_test(test_gap_that_may_be_none),
        cmocka_unit_test(test_no_weight), cmocka_unit_test(test_trigger),
        cmocka_unit_test(test_faults),    cmocka_unit_test(test_unlike_quantities),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
