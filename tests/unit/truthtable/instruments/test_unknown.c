/* What is not known stays open: no reading of an instrument says more than its figures. */
#include <math.h>
#include <string.h>

#include "base/json/json.h"
#include "base/xalloc.h"
#include "tests/unit/check.h"
#include "tests/unit/truthtable/instruments/sample.h"

#define CONNECTOR "[instrument.connector]\nloss = \"loss\"\ntrigger = { perplexity_ratio = 1.5 }\n"
#define TWO_BENCHMARKS                                                                             \
    "[measure.more]\nmetric = \"score.more\"\n[measure.most]\nmetric = \"score.most\"\n"

static void expect_part(const cJSON *computed, const char *path, const char *part)
{
    const cJSON *at = sample_at(computed, path);
    if (!cJSON_IsString(at) || strstr(at->valuestring, part) == NULL) {
        fail_msg("%s is %s", path, cJSON_PrintUnformatted(at));
    }
}

static void put_loss(struct sample_program *t, double gap)
{
    sample_cells(t, "loss", (const double[6]){1, 1, 1, 1 + gap - 0.01, 1 + gap, 1 + gap + 0.01});
}

/* A blocked cell leaves its gate unknown, its contrast determined: the case is open for a reason,
 * and the cases that the loss rules out are false. */
static void test_gate_is_open(void **state)
{
    struct sample_program t;
    (void)state;
    sample_open(&t, TOLD_PROGRAM "[exclusion]\nbudget = 0.2\n" CONNECTOR);
    put_loss(&t, 0.388);
    for (size_t c = 0; c < 5; c++) {
        sample_metric(&t, t.p->cells[c].name, "acc",
                      0.4 + 0.01 * (double)(c % 3) + (c == 4 ? 0.02 : 0));
    }
    evidence_set_task(&t.e, 5, 1, TASK_END_BLOCKED, "crash");
    cJSON *computed = sample_compute(&t);
    sample_expect_null(computed, "instruments.connector.benchmarks.measures.0.clears");
    sample_expect_null(computed, "instruments.connector.case");
    expect_part(computed, "instruments.connector.case_why",
                "acc: whether it clears is undetermined");
    expect_part(computed, "instruments.connector.reading",
                "acc: whether it clears is undetermined");
    sample_expect_null(computed, "instruments.connector.fields.case_a");
    sample_expect_truth(computed, "instruments.connector.fields.case_b", false);
    sample_expect_truth(computed, "instruments.connector.fields.case_d", false);
    expect_part(computed, "instruments.margins.reading", "undetermined");
    sample_expect(computed, "instruments.detectable.contrasts.0.measures.0.by_items.cells_a", 2, 0);
    cJSON_Delete(computed);
    sample_close(&t);
}

/* Two that clear and disagree are none of the four cases, whatever a third may yet be. */
static void test_known_disagreement(void **state)
{
    struct sample_program t;
    (void)state;
    sample_open(&t, TOLD_PROGRAM TWO_BENCHMARKS CONNECTOR);
    put_loss(&t, 0.388);
    sample_cells(&t, "more", (const double[6]){1, 1, 1, 1.99, 2, 2.01});
    sample_cells(&t, "most", (const double[6]){2, 2, 2, 0.99, 1, 1.01});
    cJSON *computed = sample_compute(&t); /* acc has no record */
    sample_expect_null(computed, "instruments.connector.case");
    expect_part(computed, "instruments.connector.case_why", "favour different arms");
    sample_expect_truth(computed, "instruments.connector.fields.case_b", false);
    sample_expect_truth(computed, "instruments.connector.fields.case_c", false);
    cJSON_Delete(computed);
    sample_close(&t);
}

/* A gap whose ratio is beyond double is surely more than the trigger's. */
static void test_trigger_beyond_double(void **state)
{
    struct sample_program t;
    (void)state;
    sample_open(&t, TOLD_PROGRAM CONNECTOR);
    put_loss(&t, 1000);
    cJSON *computed = sample_compute(&t);
    sample_expect_null(computed, "instruments.connector.trigger.ratio");
    sample_expect_text(computed, "instruments.connector.trigger.why", "the ratio is beyond double");
    sample_expect_truth(computed, "instruments.connector.trigger.fires", true);
    cJSON_Delete(computed);
    sample_close(&t);
}

/* Scores without variance do not make every difference detectable. */
static void test_nothing_to_detect_by(void **state)
{
    struct sample_program t;
    (void)state;
    sample_open(&t, TOLD_PROGRAM);
    sample_cells(&t, "acc", (const double[6]){0, 0, 0, 1, 1, 1});
    cJSON *computed = sample_compute(&t);
    const cJSON *at = sample_at(computed, "instruments.detectable.contrasts.0.measures.0");
    sample_expect_null(at, "by_items.difference");
    sample_expect_text(at, "by_items.why", "the scores have no variance");
    sample_expect_null(at, "by_replicates.difference");
    sample_expect_text(at, "by_replicates.why",
                       "no spread seen: the replicates' differences are equal");
    cJSON_Delete(computed);
    sample_close(&t);
}

/* Without a single score the sentences count what is open. */
static void test_sentences_without_scores(void **state)
{
    struct sample_program t;
    (void)state;
    sample_open(&t, TOLD_PROGRAM "[instrument.mixed]\nresponse = [\"acc\"]\nfixed = [\"arch\"]\n"
                                 "random = \"seed\"\n[instrument.items]\ncontrast = \"arch\"\n"
                                 "[instrument.router]\nstage = \"train\"\n");
    cJSON *computed = sample_compute(&t);
    sample_expect_text(computed, "instruments.mixed.reading",
                       "0 of 1 fits are singular, of 1 it is not known; 1 not fitted, the first is "
                       "acc: no row is left.");
    sample_expect_text(computed, "instruments.items.reading",
                       "0 of 1 intervals leave 0 out; 1 is undetermined.");
    sample_expect_text(computed, "instruments.margins.reading",
                       "0 of 6 gates are cleared, 6 are undetermined.");
    sample_expect_text(
        computed, "instruments.dispersion.reading",
        "All cells of a measure together, tighter than binomial (lower tail under 5 %): "
        "nothing. Undetermined: acc.");
    expect_part(computed, "instruments.router.reading", "Undetermined, the first as router_load: ");
    cJSON_Delete(computed);
    sample_close(&t);
}

/* A component that one cell recorded twice is not pinned by the others. */
static void test_router_doubled(void **state)
{
    struct sample_program t;
    (void)state;
    sample_open(&t, TOLD_PROGRAM "[instrument.router]\nstage = \"train\"\n"
                                 "components = [\"router_load\"]\n");
    for (size_t c = 3; c < 6; c++) {
        sample_fact(&t, t.p->cells[c].name, "router_load", 1.25);
        sample_fact(&t, t.p->cells[c].name, "router_entropy", 0.5);
    }
    sample_fact(&t, t.p->cells[4].name, "router_load", 1.5);
    sample_fact(&t, t.p->cells[5].name, "router_entropy", 0.5);
    cJSON *computed = sample_compute(&t);
    sample_expect_null(computed, "instruments.router.components.0.pinned");
    sample_expect_text(computed, "instruments.router.components.0.why",
                       "arch=moe,seed=2: recorded more than once");
    sample_expect_null(computed, "instruments.router.fields.all_pinned");
    sample_expect_null(computed, "instruments.router.fields.entropy_share");
    cJSON_Delete(computed);
    sample_close(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gate_is_open),
        cmocka_unit_test(test_known_disagreement),
        cmocka_unit_test(test_trigger_beyond_double),
        cmocka_unit_test(test_nothing_to_detect_by),
        cmocka_unit_test(test_sentences_without_scores),
        cmocka_unit_test(test_router_doubled),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
