/* The instruments of programs with made-up scores, against numbers worked out by hand. */
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "base/json/json.h"
#include "base/xalloc.h"
#include "tests/unit/check.h"
#include "tests/unit/truthtable/instruments/sample.h"
#include "truthtable/evaluate/verdict_file.h"
#include "truthtable/instruments/instrument_work.h"

#define EXACT 1e-9

/* Replicates whose mean is d and whose standard error is se. */
static void put_estimate(struct sample_program *t, const char *measure, double d, double se)
{
    double sd = se * sqrt(3);
    sample_cells(t, measure, (const double[6]){0, 0, 0, d - sd, d, d + sd});
}

/* Estimates and errors in percentage points as the paper gives them; the factors are those of
 * vectors/statistics.json. */
static void test_paper_bayes(void **state)
{
    static const struct {
        double d, se, bf10[3];
        const char *reading;
    } cases[] = {
        {0.2503,
         0.8716,
         {0.6726300199048957, 0.4135971942891096, 0.2581195457675443},
         "depends on the prior"},
        {0.0544,
         0.0578,
         {0.08972531619657982, 0.044968449763777146, 0.02646564498632865},
         "for the null"},
        {0,
         0.0388,
         {0.038770827398072284, 0.01939635033815774, 0.011411021710671494},
         "for the null"},
        {0.05,
         0.01,
         {2679.887088603439, 1341.2504660517407, 789.1385651032881},
         "against the null"},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct sample_program t;
        sample_open(&t,
                    TOLD_PROGRAM "[instrument.bayes]\ncontrast = \"arch\"\nmeasures = [\"raw\"]\n"
                                 "priors = { skeptical = 1, noncommittal = 2, flame = 3.4 }\n");
        put_estimate(&t, "raw", cases[i].d, cases[i].se);
        cJSON *computed = sample_compute(&t);
        for (size_t k = 0; k < 3; k++) {
            char path[64];
            (void)snprintf(path, sizeof(path), "instruments.bayes.measures.0.cells.%zu.bf10", k);
            sample_expect(computed, path, cases[i].bf10[k], 1e-8);
            (void)snprintf(path, sizeof(path), "instruments.bayes.measures.0.cells.%zu.ln_bf10", k);
            sample_expect(computed, path, log(cases[i].bf10[k]), 1e-8);
        }
        sample_expect_text(computed, "instruments.bayes.measures.0.reading", cases[i].reading);
        sample_expect_truth(computed, "instruments.bayes.fields.robust", i > 0);
        sample_expect_truth(computed, "instruments.bayes.fields.all_null", i == 1 || i == 2);
        sample_expect_truth(computed, "instruments.bayes.fields.any_against", i == 3);
        sample_expect(computed, "instruments.bayes.fields.n_null", i == 1 || i == 2 ? 1 : 0, 0);
        sample_expect(computed, "instruments.bayes.fields.min_bf10", cases[i].bf10[2], 1e-8);
        cJSON_Delete(computed);
        sample_close(&t);
    }
}

/* A measure without values leaves what is over all measures open, not false. */
static void test_bayes_undetermined(void **state)
{
    struct sample_program t;
    (void)state;
    sample_open(&t, TOLD_PROGRAM "[instrument.bayes]\ncontrast = \"arch\"\n"
                                 "measures = [\"raw\", \"acc\"]\npriors = { one = 1 }\n"
                                 "[forecast]\nrobust = { condition = \"instrument.bayes.robust\", "
                                 "confidence = 0.9 }\n");
    put_estimate(&t, "raw", 0, 0.0388);
    cJSON *computed = sample_compute(&t);
    sample_expect_null(computed, "instruments.bayes.measures.1.cells.0.bf10");
    sample_expect_text(computed, "instruments.bayes.measures.1.why", "the record is missing");
    sample_expect_null(computed, "instruments.bayes.fields.robust");
    sample_expect_null(computed, "instruments.bayes.fields.all_null");
    sample_expect_truth(computed, "instruments.bayes.fields.any_null", true);
    sample_expect_null(computed, "instruments.bayes.fields.any_against");
    sample_expect_null(computed, "instruments.bayes.fields.max_bf10");
    sample_expect_null(computed, "forecasts.robust.outcome");
    sample_expect_null(computed, "forecasts.robust.brier");
    sample_expect_text(computed, "forecasts.robust.why", "the record is missing");
    sample_expect(computed, "forecast_score.unknown", 1, 0);
    sample_expect_null(computed, "forecast_score.bits");
    cJSON_Delete(computed);
    sample_close(&t);
}

#define MIXED_FACTS                                                                                \
    "[instrument.mixed]\nresponse = [\"acc\", \"raw\"]\n"                                          \
    "fixed = [\"arch\", \"fact.train.router_load\", \"fact.train.router_kills\", "                 \
    "\"fact.train.router_occupancy\", \"fact.train.router_anneal\"]\nrandom = \"seed\"\n"          \
    "[forecast]\nsingular = { condition = \"instrument.mixed.singular\", confidence = 0.9 }\n"     \
    "rank = { condition = \"instrument.mixed.rank_deficient and instrument.mixed.n_singular == "   \
    "2\", confidence = 0.6 }\n"

/* The paper's case: dense cells have no router, and the four components of the vector are pinned in
 * the cells that are left. */
static void test_mixed_paper(void **state)
{
    static const char *const facts[] = {"router_load", "router_kills", "router_occupancy",
                                        "router_anneal"};
    static const double pinned[] = {1, 0, 0.125, 0.1};
    struct sample_program t;
    (void)state;
    sample_open(&t, TOLD_PROGRAM MIXED_FACTS);
    sample_cells(&t, "acc", (const double[6]){0.22, 0.221, 0.223, 0.225, 0.228, 0.226});
    sample_cells(&t, "raw", (const double[6]){1, 2, 3, 4, 6, 5});
    for (size_t c = 0; c < 6; c++) {
        for (size_t f = 0; f < 4; f++) {
            if (c < 3) {
                sample_fact_null(&t, t.p->cells[c].name, facts[f], "dense");
            } else {
                sample_fact(&t, t.p->cells[c].name, facts[f], pinned[f]);
            }
        }
    }
    cJSON *computed = sample_compute(&t);
    const cJSON *fit = sample_at(computed, "instruments.mixed.fits.1");
    sample_expect_truth(fit, "singular", true);
    sample_expect(fit, "n", 3, 0);
    assert_int_equal(cJSON_GetArraySize(sample_at(fit, "dropped")), 3);
    sample_expect_text(fit, "dropped.0.cell", "arch=dense,seed=1");
    sample_expect_text(fit, "dropped.0.why", "fact.train.router_load: dense");
    assert_int_equal(cJSON_GetArraySize(sample_at(fit, "constant_by_dropping")), 1);
    sample_expect_text(fit, "constant_by_dropping.0", "arch[moe]");
    static const char *const named[] = {"arch[moe]", "fact.train.router_load",
                                        "fact.train.router_kills", "fact.train.router_occupancy",
                                        "fact.train.router_anneal"};
    for (size_t i = 0; i < ARRAY_LEN(named); i++) {
        char path[32];
        (void)snprintf(path, sizeof(path), "reasons.%zu.term", i);
        sample_expect_text(fit, path, named[i]);
        (void)snprintf(path, sizeof(path), "reasons.%zu.kind", i);
        sample_expect_text(fit, path, "no_variance");
        (void)snprintf(path, sizeof(path), "terms.%zu.estimable", i + 1);
        sample_expect_truth(fit, path, false);
    }
    sample_expect_truth(computed, "forecasts.singular.outcome", true);
    sample_expect(computed, "forecasts.singular.brier", 0.01, EXACT);
    sample_expect(computed, "forecasts.singular.bits", -log2(0.9), EXACT);
    sample_expect_null(computed, "forecasts.rank.outcome"); /* one group a row: no fit to count */
    sample_expect(computed, "forecast_score.scored", 1, 0);
    cJSON_Delete(computed);
    sample_close(&t);
}

/* {1,2,3}, {4,5,6}, {7,8,9} one-way, and a cell that a factor's level explains. */
static void test_mixed_one_way(void **state)
{
    static const char *const toml =
        "[program]\nname = \"one\"\nschema = 1\n"
        "[[factor]]\nname = \"arm\"\nlevels = [1, 2, 3]\n"
        "[[factor]]\nname = \"seed\"\nlevels = [1, 2, 3]\nreplicate = true\n"
        "[stage.train]\ncommand = [\"./w\"]\n[measure]\ny = { metric = \"train.y\" }\n"
        "[contrast]\nc = { between = { arm = [1, 2] } }\n"
        "[[input]]\nname = \"i\"\nlevels = [[\"a\", \"contrast.c.mean > 0\"], [\"b\", "
        "\"otherwise\"]]\n"
        "[table]\ninputs = [\"i\"]\nrows = [[\"a\", \"A\"], [\"b\", \"B\"]]\n"
        "[outcome]\nA = { prior = 0.5, title = \"a\" }\nB = { prior = 0.4, title = \"b\" }\n"
        "[instrument.mixed]\nresponse = [\"y\"]\nfixed = []\nrandom = \"seed\"\n"
        "[instrument.supplementary]\nkind = \"mixed\"\nresponse = [\"y\"]\nfixed = [\"arm\"]\n"
        "random = \"seed\"\n";
    struct sample_program t;
    (void)state;
    sample_open(&t, toml);
    for (size_t c = 0; c < 9; c++) { /* seed is the fast one */
        sample_metric(&t, t.p->cells[c].name, "y", (double)(c % 3 * 3 + c / 3 + 1));
    }
    cJSON *computed = sample_compute(&t);
    sample_expect(computed, "instruments.mixed.fits.0.sigma_b", sqrt(26.0 / 3), 1e-8);
    sample_expect(computed, "instruments.mixed.fits.0.sigma_e", 1, 1e-8);
    sample_expect(computed, "instruments.mixed.fits.0.theta", 2.943920288775949, 1e-8);
    sample_expect_truth(computed, "instruments.mixed.fits.0.singular", false);
    sample_expect_truth(computed, "instruments.mixed.fields.rank_deficient", false);
    sample_expect_truth(computed, "instruments.mixed.discussion_only", false);
    sample_expect_truth(computed, "instruments.supplementary.discussion_only", true);
    sample_expect_text(computed, "instruments.supplementary.columns.0.name", "arm[2]");
    sample_expect_text(computed, "instruments.supplementary.columns.1.name", "arm[3]");
    cJSON_Delete(computed);
    sample_close(&t);
}

#define CONNECTOR                                                                                  \
    "[instrument.connector]\nloss = \"loss\"\ntrigger = { perplexity_ratio = 1.5 }\n"              \
    "sources = { text = \"text\", code = \"code\" }\n"

static const struct {
    const char *name;
    double loss, loss_se, acc_dense, acc_moe, acc_se;
    const char *which; /* NULL: none */
    const char *favours;
} CASES[] = {
    {"paper", 0.388, 0.01, 0.23, 0.231, 0.001, "CASE-A", NULL},
    {"same", 0.388, 0.01, 0.4, 0.35, 0.001, "CASE-B", "dense"},
    {"opposite", 0.388, 0.01, 0.35, 0.4, 0.001, "CASE-C", "moe"},
    {"neither", 0.001, 0.01, 0.35, 0.351, 0.01, "CASE-D", NULL},
    {"nothing clears, no gap", 0.001, 0.01, 0.2, 0.21, 0.001, "CASE-D", NULL},
    {"gap, and benchmarks that show none", 0.388, 0.01, 0.35, 0.351, 0.01, NULL, NULL},
    {"benchmarks alone", 0.001, 0.01, 0.35, 0.4, 0.001, NULL, "moe"},
};

static void test_connector_cases(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
        CHECK_ROW("%s", CASES[i].name);
        struct sample_program t;
        double sd = CASES[i].acc_se * sqrt(3);
        double base = CASES[i].acc_dense;
        double moe = CASES[i].acc_moe;
        sample_open(&t, TOLD_PROGRAM CONNECTOR);
        put_estimate(&t, "loss", CASES[i].loss, CASES[i].loss_se);
        put_estimate(&t, "text", 0.1, 0.01);
        put_estimate(&t, "code", i == 1 ? -0.1 : 0.5, 0.01);
        sample_cells(&t, "acc", (const double[6]){base, base, base, moe - sd, moe, moe + sd});
        cJSON *computed = sample_compute(&t);
        if (CASES[i].which == NULL) {
            sample_expect_null(computed, "instruments.connector.case");
            sample_expect_truth(computed, "instruments.connector.fields.case_a", false);
        } else {
            sample_expect_text(computed, "instruments.connector.case", CASES[i].which);
        }
        if (CASES[i].favours == NULL) {
            sample_expect_null(computed, "instruments.connector.benchmarks.favours");
        } else {
            sample_expect_text(computed, "instruments.connector.benchmarks.favours",
                               CASES[i].favours);
        }
        sample_expect_truth(computed, "instruments.connector.sources_agree", i != 1);
        if (i == 1) {
            assert_non_null(strstr(sample_at(computed, "instruments.connector.limit")->valuestring,
                                   "they do not"));
        } else {
            sample_expect_null(computed, "instruments.connector.limit");
        }
        cJSON_Delete(computed);
        sample_close(&t);
    }
}

static void test_connector_paper(void **state)
{
    struct sample_program t;
    (void)state;
    sample_open(&t, TOLD_PROGRAM
                "[instrument.connector]\nloss = \"loss\"\ntrigger = { perplexity_ratio = 1.5 }\n"
                "[forecast]\na = { condition = \"instrument.connector.case_a and "
                "instrument.connector.gap > 0\", confidence = 0.75 }\n"
                "t = { condition = \"instrument.connector.trigger\", confidence = 0.75 }\n");
    put_estimate(&t, "loss", 0.388, 0.01);
    sample_cells(&t, "acc", (const double[6]){0.23, 0.231, 0.229, 0.23, 0.231, 0.232});
    cJSON *computed = sample_compute(&t);
    sample_expect(computed, "instruments.connector.loss.gap", 0.388, EXACT);
    sample_expect(computed, "instruments.connector.loss.se", 0.01, EXACT);
    sample_expect(computed, "instruments.connector.loss.inflation", 0.4740295, 1e-6);
    sample_expect_text(computed, "instruments.connector.loss.worse", "moe");
    sample_expect_text(computed, "instruments.connector.case", "CASE-A");
    sample_expect_truth(computed, "instruments.connector.trigger.fires", false);
    sample_expect(computed, "instruments.connector.trigger.ratio", 1.4740295, 1e-6);
    assert_non_null(strstr(sample_at(computed, "instruments.connector.limit")->valuestring,
                           "no sources are declared"));
    sample_expect(computed, "forecasts.a.brier", 0.0625, EXACT);
    sample_expect(computed, "forecasts.t.brier", 0.5625, EXACT);
    sample_expect(computed, "forecasts.t.bits", 2, EXACT);
    sample_expect(computed, "forecast_score.brier", 0.3125, EXACT);
    sample_expect(computed, "forecast_score.bits", 2 - log2(0.75), EXACT);
    sample_expect(computed, "priors.bits", 1, EXACT);
    sample_expect_text(computed, "priors.outcome", "O2");
    cJSON_Delete(computed);
    sample_close(&t);
}

static void test_router(void **state)
{
    struct sample_program t;
    (void)state;
    sample_open(
        &t, TOLD_PROGRAM
        "[instrument.router]\nstage = \"train\"\n"
        "components = [\"router_load\", \"router_entropy\"]\n"
        "[instrument.lost]\nkind = \"router\"\nstage = \"train\"\ncomponents = [\"none\"]\n");
    for (size_t c = 0; c < 6; c++) {
        const char *cell = t.p->cells[c].name;
        if (c < 3) {
            sample_fact_null(&t, cell, "router_load", "dense");
            sample_fact_null(&t, cell, "router_entropy", "dense");
            continue;
        }
        sample_fact(&t, cell, "router_load", 1.25);
        sample_fact(&t, cell, "router_entropy", 0.75 + 0.01 * (double)(c - 3));
        sample_fact(&t, cell, "router_effective", 4.5 + 0.2 * (double)(c - 3));
    }
    cJSON *computed = sample_compute(&t);
    sample_expect_truth(computed, "instruments.router.components.0.pinned", true);
    sample_expect_truth(computed, "instruments.router.components.1.pinned", false);
    sample_expect(computed, "instruments.router.components.1.sd", 0.01, EXACT);
    sample_expect_text(computed, "instruments.router.pinned.0", "router_load");
    sample_expect_text(computed, "instruments.router.conditions.0.why", "dense");
    sample_expect_null(computed, "instruments.router.conditions.0.effective_experts");
    sample_expect(computed, "instruments.router.conditions.1.effective_experts", 4.7, EXACT);
    sample_expect(computed, "instruments.router.fields.entropy_share", 0.76, EXACT);
    sample_expect_truth(computed, "instruments.router.fields.all_pinned", false);
    sample_expect_null(computed, "instruments.lost.fields.all_pinned");
    cJSON_Delete(computed);
    sample_close(&t);
}

static void test_anchors(void **state)
{
    struct sample_program t;
    (void)state;
    sample_open(&t, TOLD_PROGRAM
                "[instrument.anchors]\nsource = \"a table\"\n"
                "models = { \"dense-50m\" = { acc = 0.2737 }, other = { acc = 0.4 } }\n");
    sample_cells(&t, "acc", (const double[6]){0.22, 0.23, 0.24, 0.25, 0.26, 0.27});
    cJSON *computed = sample_compute(&t);
    sample_expect_truth(computed, "instruments.anchors.models.0.measures.0.clears_floor", false);
    sample_expect_truth(computed, "instruments.anchors.models.1.measures.0.clears_floor", true);
    sample_expect(computed, "instruments.anchors.models.0.measures.0.conditions.0.difference",
                  0.23 - 0.2737, EXACT);
    sample_expect(computed, "instruments.anchors.models.0.measures.0.highest", 0.27, 0);
    sample_expect(computed, "instruments.anchors.fields.min_difference", 0.23 - 0.4, EXACT);
    sample_expect(computed, "instruments.anchors.fields.max_difference", 0.26 - 0.2737, EXACT);
    sample_expect(computed, "instruments.anchors.fields.max_abs", 0.17, EXACT);
    cJSON_Delete(computed);
    sample_close(&t);
}

/* One arm's cells are all the same, the other's far apart: what holds of all is not said of each.
 */
static void test_dispersion_of_conditions(void **state)
{
    struct sample_program t;
    (void)state;
    sample_open(&t, TOLD_PROGRAM);
    sample_cells(&t, "acc", (const double[6]){0.25, 0.25, 0.25, 0.20, 0.25, 0.30});
    cJSON *computed = sample_compute(&t);
    sample_expect_text(computed, "instruments.dispersion.reading",
                       "All cells of a measure together, tighter than binomial (lower tail under 5 "
                       "%): nothing. Looser than binomial (upper tail under 5 %): acc. Single "
                       "conditions by themselves: tighter in 1 of 2, looser in 1.");
    cJSON_Delete(computed);
    sample_close(&t);
}

/* Scores .22 .. .27 of 1000 items: chi2 = 1000 * .00175 / (.245 * .755). */
static void test_always(void **state)
{
    struct sample_program t;
    (void)state;
    sample_open(&t, TOLD_PROGRAM);
    sample_cells(&t, "acc", (const double[6]){0.22, 0.23, 0.24, 0.25, 0.26, 0.27});
    cJSON *computed = sample_compute(&t);
    const cJSON *margin = sample_at(computed, "instruments.margins.measures.0");
    sample_expect(margin, "floor_above_chance", 0.05 / sqrt(0.25 * 0.75 / 1000), EXACT);
    sample_expect_text(margin, "highest.cell", "arch=moe,seed=3");
    sample_expect(margin, "highest.z", -0.03 / sqrt(0.27 * 0.73 / 1000), EXACT);
    sample_expect(margin, "cleared", 0, 0);
    const cJSON *whole = sample_at(computed, "instruments.dispersion.measures.0.whole");
    sample_expect(whole, "chi2", 1.75 / (0.245 * 0.755), EXACT);
    sample_expect(whole, "df", 5, 0);
    sample_expect(whole, "sd", sqrt(0.00175 / 5), EXACT);
    sample_expect(whole, "sd_binomial", sqrt(0.245 * 0.755 / 1000), EXACT);
    sample_expect(computed, "instruments.dispersion.measures.0.conditions.0.df", 2, 0);
    const cJSON *power = sample_at(computed, "instruments.detectable.contrasts.0.measures.0");
    sample_expect(power, "observed", 0.03, EXACT);
    sample_expect(power, "by_items.items_for_observed", 1075, 0);
    sample_expect(power, "by_items.difference",
                  (1.959963984540054 + 0.8416212335729143) *
                      sqrt((0.23 * 0.77 + 0.26 * 0.74) / 3 / 1000),
                  EXACT);
    sample_expect_text(computed, "instruments.detectable.contrasts.0.measures.1.by_items.why",
                       "not a share of items");
    sample_expect_text(computed, "instruments.margins.declared", "always");
    cJSON_Delete(computed);
    sample_close(&t);
}

/* How an instrument was declared follows from the amendments that touch it. */
static void test_declared(void **state)
{
    struct sample_program t;
    (void)state;
    sample_open(&t, TOLD_PROGRAM "[instrument.router]\nstage = \"train\"\n");
    cJSON *seen = cJSON_Parse("[{\"level\":\"sealed\",\"changes\":[{\"path\":[\"plan\","
                              "\"instrument\",\"router\",\"stage\"],\"post_hoc\":false}]}]");
    cJSON *late = cJSON_Parse("[{\"level\":\"seen\",\"changes\":[{\"path\":[\"plan\","
                              "\"instrument\",\"router\"],\"post_hoc\":true}]}]");
    cJSON *other = cJSON_Parse("[{\"level\":\"seen\",\"changes\":[{\"path\":[\"plan\","
                               "\"instrument\",\"routers\"],\"post_hoc\":true}]}]");
    const cJSON *const all[] = {NULL, seen, late, other};
    static const char *const expected[] = {"locked", "amended", "amended, post hoc", "locked"};
    for (size_t i = 0; i < ARRAY_LEN(all); i++) {
        t.amendments = all[i];
        cJSON *computed = sample_compute(&t);
        sample_expect_text(computed, "instruments.router.declared", expected[i]);
        cJSON_Delete(computed);
    }
    cJSON_Delete(seen);
    cJSON_Delete(late);
    cJSON_Delete(other);
    sample_close(&t);
}

/* Priors amended when the verdict stands: the verdict keeps its Bayes factors, the instruments are
 * those of the amended plan. */
static void test_priors_after(void **state)
{
    static const char *const plans[] = {
        TOLD_PROGRAM "[instrument.bayes]\ncontrast = \"arch\"\nmeasures = [\"raw\"]\n"
                     "priors = { wide = 1 }\n",
        TOLD_PROGRAM "[instrument.bayes]\ncontrast = \"arch\"\nmeasures = [\"raw\"]\n"
                     "priors = { wide = 2 }\n"};
    struct sample_program t[2];
    struct table_verdict v;
    struct lock lock = {0};
    struct err err = {0};
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        sample_open(&t[i], plans[i]);
        put_estimate(&t[i], "raw", 0, 0.0388);
    }
    assert_int_equal(verdict_compute(&t[0].e, lock.root, lock.head, &v, &err), 0);
    const struct instruments_input in = {
        .folder = "nowhere", .program = t[1].p, .lock = &lock, .verdict = verdict_json(&v)};
    cJSON *computed = instruments_of_evidence(&in, &t[1].e);
    sample_expect_null(computed, "why");
    sample_expect(computed, "instruments.bayes.measures.0.cells.0.bf10", 0.01939635033815774, 1e-8);
    cJSON_Delete(computed);
    /* another score is another matter */
    sample_metric(&t[1], "arch=moe,seed=1", "acc", 0.5);
    computed = instruments_of_evidence(&in, &t[1].e);
    assert_true(cJSON_IsString(sample_at(computed, "why")));
    cJSON_Delete(computed);
    verdict_release(&v);
    sample_close(&t[0]);
    sample_close(&t[1]);
}

/* A child that was ended: the limit in words, not the number of a signal. */
static void test_ended(void **state)
{
    static const struct {
        int status;
        const char *words;
    } cases[] = {
        {W_EXITCODE(0, SIGALRM), "they took longer than their limit of 900 seconds"},
        {W_EXITCODE(0, SIGKILL), "their process was ended by SIGKILL"},
        {W_EXITCODE(0, SIGABRT), "they were ended by a fault of their own, or had no memory left"},
        {W_EXITCODE(1, 0), NULL}};
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CHECK_ROW("%s", cases[i].words);
        char why[128] = "";
        assert_int_equal(instruments_ended_words(cases[i].status, why, sizeof(why)),
                         cases[i].words != NULL);
        assert_string_equal(why, cases[i].words == NULL ? "" : cases[i].words);
    }
}

/* A factor of very many levels takes no memory by the gigabyte: it is not fitted, and says so. */
static void test_mixed_too_large(void **state)
{
    struct strbuf text = STRBUF_INIT;
    struct sample_program t;
    (void)state;
    strbuf_adds(&text, "[program]\nname = \"wide\"\nschema = 1\n[[factor]]\nname = \"arch\"\n"
                       "levels = [\"a\", \"b\"]\n[[factor]]\nname = \"many\"\nlevels = [0");
    for (int i = 1; i < 2000; i++) {
        strbuf_addf(&text, ", %d", i);
    }
    strbuf_adds(
        &text,
        "]\n[stage.train]\ncommand = [\"./w\"]\n[measure]\nraw = { metric = \"train.raw\" }\n"
        "[contrast]\narch = { between = { arch = [\"a\", \"b\"] } }\n"
        "[[input]]\nname = \"i\"\nlevels = [[\"a\", \"contrast.arch.mean > 0\"], "
        "[\"b\", \"otherwise\"]]\n[table]\ninputs = [\"i\"]\n"
        "rows = [[\"a\", \"A\"], [\"b\", \"B\"]]\n[outcome]\n"
        "A = { prior = 0.5, title = \"a\" }\nB = { prior = 0.4, title = \"b\" }\n"
        "[instrument.mixed]\nresponse = [\"raw\"]\nfixed = [\"many\"]\nrandom = \"arch\"\n"
        "[forecast]\nsingular = { condition = \"instrument.mixed.singular\", confidence = "
        "0.9 }\n");
    sample_open(&t, text.buf);
    cJSON *computed = sample_compute(&t);
    static const char why[] =
        "the fixed terms make 2000 columns over 4000 cells, with 2 groups: more "
        "than is fitted here";
    sample_expect_text(computed, "instruments.mixed.why", why);
    sample_expect_null(computed, "instruments.mixed.fields.singular");
    sample_expect_text(computed, "forecasts.singular.why", why);
    assert_int_equal(cJSON_GetArraySize(sample_at(computed, "instruments.mixed.fits")), 0);
    cJSON_Delete(computed);
    sample_close(&t);
    strbuf_release(&text);
}

/* Cells whose training is not done are said, not passed over. */
static void test_router_not_done(void **state)
{
    struct sample_program t;
    (void)state;
    sample_open(&t, TOLD_PROGRAM "[instrument.router]\nstage = \"train\"\n");
    sample_fact(&t, "arch=moe,seed=1", "router_load", 1.5);
    sample_fact(&t, "arch=moe,seed=2", "router_load", 1.25);
    evidence_set_task(&t.e, program_find_cell(t.p, "arch=moe,seed=3"), 0, TASK_END_BLOCKED,
                      "crashed");
    for (size_t c = 0; c < 3; c++) {
        evidence_set_task(&t.e, c, 0, TASK_END_BLOCKED, "crashed");
    }
    cJSON *computed = sample_compute(&t);
    sample_expect(computed, "instruments.router.not_done", 4, 0);
    sample_expect(computed, "instruments.router.conditions.0.not_done", 3, 0);
    sample_expect(computed, "instruments.router.conditions.1.not_done", 1, 0);
    sample_expect_text(computed, "instruments.router.conditions.0.vector.0.why",
                       "no task of its cells is done");
    assert_non_null(strstr(sample_at(computed, "instruments.router.reading")->valuestring,
                           "Left out: cells of which train is not done, 4 of 6."));
    cJSON_Delete(computed);
    sample_close(&t);
}

/* Every measure in every condition, and the levels by their means: better is lower for a loss, and
 * equal means share a rank. */
static void test_means_and_ranks(void **state)
{
    struct sample_program t;
    (void)state;
    sample_open(&t, TOLD_PROGRAM);
    sample_cells(&t, "loss", (const double[6]){1, 2, 3, 1.5, 2.6, 3.7});
    sample_cells(&t, "text", (const double[6]){1, 2, 3, 3, 2, 1});
    sample_cells(&t, "raw", (const double[6]){4, 4, 4, 5, 5, 5});
    cJSON *computed = sample_compute(&t);
    sample_expect_text(computed, "means.2.measure", "loss");
    sample_expect_text(computed, "means.2.condition", "arch=dense");
    sample_expect(computed, "means.2.mean", 2, EXACT);
    sample_expect(computed, "means.2.se", 1 / sqrt(3), EXACT);
    sample_expect(computed, "means.2.ci_low", 2 - 4.302652729749464 / sqrt(3), EXACT);
    sample_expect(computed, "means.2.ci_high", 2 + 4.302652729749464 / sqrt(3), EXACT);
    sample_expect(computed, "means.2.n", 3, 0);
    sample_expect_null(computed, "means.0.mean");
    sample_expect_text(computed, "means.0.why", "the record is missing");
    sample_expect(computed, "means.8.mean", 4, EXACT);
    sample_expect_null(computed, "means.8.se");
    sample_expect_text(computed, "means.8.why", "no spread seen: the replicates are equal");
    sample_expect_text(computed, "ranks.0.why", "the record is missing");
    sample_expect_text(computed, "ranks.1.order.0.level", "dense");
    sample_expect(computed, "ranks.1.order.1.rank", 2, 0);
    sample_expect(computed, "ranks.1.order.1.mean", 2.6, EXACT);
    sample_expect_text(computed, "ranks.1.setting", "all");
    sample_expect(computed, "ranks.2.order.0.rank", 1, 0);
    sample_expect(computed, "ranks.2.order.1.rank", 1, 0);
    sample_expect_text(computed, "ranks.4.order.0.level", "moe");
    cJSON_Delete(computed);
    sample_close(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_paper_bayes),     cmocka_unit_test(test_bayes_undetermined),
        cmocka_unit_test(test_mixed_paper),     cmocka_unit_test(test_mixed_one_way),
        cmocka_unit_test(test_connector_cases), cmocka_unit_test(test_connector_paper),
        cmocka_unit_test(test_router),          cmocka_unit_test(test_anchors),
        cmocka_unit_test(test_always),          cmocka_unit_test(test_dispersion_of_conditions),
        cmocka_unit_test(test_declared),        cmocka_unit_test(test_priors_after),
        cmocka_unit_test(test_ended),           cmocka_unit_test(test_router_not_done),
        cmocka_unit_test(test_mixed_too_large), cmocka_unit_test(test_means_and_ranks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
