/* The paper's program on the reconstructed records: every published aggregate that can hold comes
 * out. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/files/file.h"
#include "base/json/json.h"
#include "tests/unit/check.h"
#include "tests/unit/truthtable/fixture.h"
#include "truthtable/condition/stats.h"
#include "truthtable/evaluate/verdict.h"
#include "truthtable/evaluate/verdict_file.h"

#define RECORDS "ops/programs/below_the_floor/replay/records.json"

struct replayed {
    struct plan_program *p;
    struct table_verdict v;
};

static int set_up(void **state)
{
    static struct replayed r;
    struct err err;
    char *path = path_join(TEST_SOURCE_DIR, RECORDS);
    r.p = fixture_program_file("tests/unit/prereg/fixtures/below_the_floor.toml");
    if (replay_run(r.p, NULL, path, &r.v, &err) != 0) {
        print_error("%s\n", err.msg);
        return -1;
    }
    free(path);
    *state = &r;
    return 0;
}

static int tear_down(void **state)
{
    struct replayed *r = *state;
    verdict_release(&r->v);
    program_free(r->p);
    return 0;
}

static double number(const cJSON *o, const char *key)
{
    const cJSON *m = json_member(o, key);
    assert_true(cJSON_IsNumber(m));
    return m->valuedouble;
}

static const char *string(const cJSON *o, const char *key)
{
    return cJSON_GetStringValue(json_member(o, key));
}

static void expect_line(const cJSON *v, const char *want)
{
    struct strbuf sb = STRBUF_INIT;
    struct err err;
    assert_int_equal(json_line(v, &sb, &err), 0);
    assert_string_equal(sb.buf, want);
    strbuf_release(&sb);
}

static void test_verdict(void **state)
{
    const struct replayed *r = *state;
    const cJSON *j = verdict_json(&r->v);
    assert_int_equal(r->v.kind, VERDICT_BOUND);
    assert_int_equal(verdict_kind_exit(r->v.kind), EXIT_OK);
    assert_string_equal(string(j, "outcome"), "O4");
    assert_string_equal(string(j, "records"), "reconstructed");
    expect_line(json_member(j, "rows_fired"), "[4,8,12,16]");
    expect_line(json_member(j, "counters"), "{\"k\":[0,0],\"k_mean\":[0,0]}");
    expect_line(json_member(j, "coverage"),
                "{\"tasks\":{\"planned\":60,\"done\":48,\"blocked\":12,\"never_run\":0},"
                "\"records\":{\"planned\":48,\"done\":36,\"blocked\":12,\"never_run\":0},"
                "\"counted\":{\"planned\":36,\"done\":36,\"blocked\":0,\"never_run\":0,"
                "\"excluded\":0,\"budget\":3}}");
    assert_true(number(j, "prior") == 0.17);
    assert_true(fabs(number(j, "surprisal_bits") - 2.5563933485243853) < 1e-12);
}

static void test_inputs(void **state)
{
    const struct replayed *r = *state;
    expect_line(json_member(verdict_json(&r->v), "inputs"),
                "[{\"name\":\"magnitude\",\"level\":null,\"possible\":[\"decisive\",\"small\"],"
                "\"why\":\"no pairs: no counted measure cleared\",\"holds\":[null,null]},"
                "{\"name\":\"direction\",\"level\":null,\"possible\":[\"dense\",\"moe\"],"
                "\"why\":\"no pairs: no counted measure cleared\",\"holds\":[null,null]},"
                "{\"name\":\"cleared\",\"level\":\"0\",\"possible\":[\"0\"],\"why\":null,"
                "\"holds\":[false,false,false,true]}]");
}

/* Best score of a measure, with its margin. */
static void best_gate(const cJSON *j, const char *measure, double *score, double *z, size_t *n)
{
    const cJSON *g = NULL;
    *score = -1;
    *n = 0;
    cJSON_ArrayForEach(g, json_member(j, "gates"))
    {
        if (strcmp(string(g, "measure"), measure) != 0) {
            continue;
        }
        (*n)++;
        if (cJSON_IsNumber(json_member(g, "score")) && number(g, "score") > *score) {
            *score = number(g, "score");
            *z = number(g, "z");
        }
    }
}

static void test_gates(void **state)
{
    const struct replayed *r = *state;
    double score = 0;
    double z = 0;
    size_t n = 0;
    best_gate(verdict_json(&r->v), "mmlu", &score, &z, &n);
    assert_int_equal(n, 12);
    assert_true(fabs(score - 0.2316) < 5e-5);
    assert_true(fabs(z + 10.8) < 0.05);
    best_gate(verdict_json(&r->v), "gsm8k", &score, &z, &n);
    assert_int_equal(n, 12);
    assert_true(score < 0);
    const cJSON *g = NULL;
    cJSON_ArrayForEach(g, json_member(verdict_json(&r->v), "gates"))
    {
        if (strcmp(string(g, "measure"), "gsm8k") == 0) {
            assert_true(cJSON_IsNull(json_member(g, "cleared")));
            assert_string_equal(string(g, "why"), "blocked: not_measurable");
        } else {
            assert_true(cJSON_IsFalse(json_member(g, "cleared")));
        }
    }
}

static const cJSON *named(const cJSON *list, const char *key, const char *name)
{
    const cJSON *m = NULL;
    cJSON_ArrayForEach(m, list)
    {
        if (strcmp(string(m, key), name) == 0) {
            return m;
        }
    }
    fail_msg("no %s", name);
    return NULL;
}

static const cJSON *figure(const cJSON *j, const char *contrast, const char *measure)
{
    const cJSON *k = named(json_member(j, "contrasts"), "name", contrast);
    return named(json_member(k, "measures"), "measure", measure);
}

static void test_differences(void **state)
{
    const struct replayed *r = *state;
    const cJSON *pairs = json_member(verdict_json(&r->v), "pairs");
    double largest = 0;
    const cJSON *of_largest = NULL;
    const cJSON *pair = NULL;
    assert_true(number(pairs, "n") == 18);
    cJSON_ArrayForEach(pair, json_member(pairs, "list"))
    {
        if (fabs(number(pair, "difference")) > largest) {
            largest = fabs(number(pair, "difference"));
            of_largest = pair;
        }
    }
    assert_true(fabs(largest - 0.006314) < 5e-7);
    assert_string_equal(string(of_largest, "measure"), "winogrande");
    assert_string_equal(string(of_largest, "a"), "arch=dense,lr=0.001");
    assert_string_equal(string(of_largest, "b"), "arch=dense,lr=0.002");
    static const char *const measures[] = {"mmlu", "hellaswag", "winogrande"};
    double widest = 0;
    for (size_t m = 0; m < 3; m++) {
        const cJSON *at = NULL;
        cJSON_ArrayForEach(
            at, json_member(figure(verdict_json(&r->v), "arch", measures[m]), "settings"))
        {
            double d = fabs(number(at, "difference"));
            assert_true(d >= 0.000150 && (m == 2 || d < 0.0034205));
            widest = d > widest ? d : widest;
        }
    }
    assert_true(fabs(widest - 0.004999) < 1e-6); /* the replay's README says why */
}

/* The paper's factors, from estimate and standard error in percentage points. */
static void test_intervals(void **state)
{
    const struct replayed *r = *state;
    static const struct {
        const char *measure;
        double bf10[3];
    } published[] = {{"mmlu", {0.0898, 0.0450, 0.0265}},
                     {"hellaswag", {0.0388, 0.0194, 0.0114}},
                     {"winogrande", {0.6726, 0.4136, 0.2581}}};
    static const double sd[] = {1.0, 2.0, 3.4};
    for (size_t m = 0; m < 3; m++) {
        const cJSON *f = figure(verdict_json(&r->v), "arch", published[m].measure);
        const cJSON *bounds = json_member(f, "bf10_bounds");
        for (size_t i = 0; i < 3; i++) {
            double bf = exp(stat_ln_bf10(100 * number(f, "mean"), 100 * number(f, "se"), sd[i]));
            assert_true(fabs(bf - published[m].bf10[i]) <= 0.00005);
        }
        assert_true(fabs(cJSON_GetArrayItem(bounds, 0)->valuedouble - published[m].bf10[2]) <=
                    0.00005);
        assert_true(fabs(cJSON_GetArrayItem(bounds, 1)->valuedouble - published[m].bf10[0]) <=
                    0.00005);
    }
    assert_true(fabs(number(figure(verdict_json(&r->v), "arch", "loss"), "mean") - 0.388) < 1e-9);
}

static void test_bytes(void **state)
{
    const struct replayed *r = *state;
    struct table_verdict again;
    struct err err;
    struct strbuf a = STRBUF_INIT;
    struct strbuf b = STRBUF_INIT;
    char *path = path_join(TEST_SOURCE_DIR, RECORDS);
    assert_int_equal(replay_run(r->p, NULL, path, &again, &err), 0);
    assert_int_equal(verdict_pretty(&r->v, &a, &err), 0);
    assert_int_equal(verdict_pretty(&again, &b, &err), 0);
    assert_string_equal(a.buf, b.buf);
    /* The lists made one by one are those of the tree. */
    strbuf_clear(&b);
    assert_int_equal(json_pretty(verdict_json(&again), &b, &err), 0);
    assert_string_equal(a.buf, b.buf);
    /* Timings stand in the provenance alone. */
    assert_null(strstr(a.buf, "step_seconds"));
    assert_int_equal(cJSON_GetArraySize(verdict_timing(&again)), 1);
    assert_true(cJSON_IsTrue(json_member(verdict_timing(&again)->child, "holds")));
    strbuf_release(&a);
    strbuf_release(&b);
    verdict_release(&again);
    free(path);
}

/* A verdict outlives the records that it was made from. */
static void test_reasons_stay(void **state)
{
    const struct replayed *r = *state;
    static const char records[] =
        "{\"schema\":1,\"program\":\"below_the_floor\",\"records\":[{\"cell\":"
        "\"arch=dense,lr=0.001,seed=42\",\"stage\":\"mmlu\",\"metrics\":"
        "{\"acc\":{\"value\":null,\"why\":\"a reason of its own\"}}}]}";
    char path[] = "/tmp/preregd-records-XXXXXX";
    struct table_verdict v;
    struct err err;
    const cJSON *g = NULL;
    size_t n = 0;
    int fd = mkstemp(path);
    assert_true(fd >= 0 && close(fd) == 0);
    assert_int_equal(file_write_atomic(path, records, strlen(records), 0600, &err), 0);
    if (replay_run(r->p, NULL, path, &v, &err) != 0) {
        fail_msg("%s", err.msg);
    }
    cJSON_ArrayForEach(g, json_member(verdict_json(&v), "gates"))
    {
        n += strcmp(string(g, "why"), "a reason of its own") == 0 ? 1 : 0;
    }
    assert_int_equal(n, 1);
    assert_int_equal(unlink(path), 0);
    verdict_release(&v);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_verdict),      cmocka_unit_test(test_inputs),
        cmocka_unit_test(test_gates),        cmocka_unit_test(test_differences),
        cmocka_unit_test(test_intervals),    cmocka_unit_test(test_bytes),
        cmocka_unit_test(test_reasons_stay),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
