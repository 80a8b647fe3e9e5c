/* prereg-train --bench: its words, and that what it prints hangs together. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/json/json.h"
#include "base/xalloc.h"
#include "tests/unit/check.h"
#include "tests/unit/worker/shape.h"
#include "worker/train/bench.h"

static void test_words(void **state)
{
    (void)state;
    static const struct {
        const char *argv[5];
        int rc;
        const char *says;
    } cases[] = {
        {{"demo", "--batch", "4", "--json"}, 0, NULL},
        {{"--steps", "3", "demo"}, ERR_USAGE, "\"demo\""},
        {{"demo", "--batch"}, ERR_USAGE, "--batch needs a number"},
        {{"demo", "--steps", "0"}, ERR_USAGE, "from 1 to 10000"},
        {{"demo", "--quick"}, ERR_USAGE, "\"--quick\""},
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CHECK_ROW("%s", cases[i].argv[0]);
        struct bench_options opt;
        struct err err = {0};
        char *argv[ARRAY_LEN(cases[0].argv)] = {NULL};
        int argc = 0;
        while (cases[i].argv[argc] != NULL) {
            argv[argc] = xstrdup(cases[i].argv[argc]);
            argc++;
        }
        assert_int_equal(bench_options_read(argc, argv, &opt, &err), cases[i].rc);
        if (cases[i].says != NULL)
            assert_non_null(strstr(err.msg, cases[i].says));
        else
            assert_true(opt.batch == 4 && opt.threads == 1 && opt.json);
        while (argc-- > 0)
            free(argv[argc]);
    }
}

static void test_unknown_model(void **state)
{
    (void)state;
    struct bench_options opt = {.what = "dense34", .threads = 1, .steps = 1};
    struct err err = {0};

    assert_int_equal(bench_run(&opt, stdout, &err), ERR_USAGE);
    assert_non_null(strstr(err.msg, "did you mean \"dense34m\"?"));
}

/* Said before any memory is asked for, not by whoever runs out of it. */
static void test_too_large(void **state)
{
    (void)state;
    static const struct {
        int64_t batch, context;
        const char *says;
    } cases[] = {{65536, 65536, "a pass takes at most 1048576 tokens"},
                 {64, 16384, "this machine has"}};
    FILE *f = fopen("large.json", "w");
    struct err err = {0};

    assert_non_null(f);
    (void)fputs("{\"layers\":512,\"width\":8192,\"heads\":2,\"context\":16,\"ffn\":8192}", f);
    assert_int_equal(fclose(f), 0);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CHECK_ROW("%s", cases[i].says);
        struct bench_options opt = {.what = "large.json",
                                    .threads = 1,
                                    .steps = 1,
                                    .batch = cases[i].batch,
                                    .context = cases[i].context};
        assert_int_equal(bench_run(&opt, stdout, &err), ERR_USAGE);
        assert_non_null(strstr(err.msg, cases[i].says));
    }
    (void)unlink("large.json");
}

/* Products and attention together are what flops_per_token counts, but for the norms' weights,
 * which are multiplied by no matrix. */
static void test_products_count_the_model(void **state)
{
    (void)state;
    static const struct model_config models[] = {
        SHAPE(2, 32, 4, 2, 300, 16, .ffn = 48),
        SHAPE(3, 32, 4, 4, 300, 16, .ffn = 24, .tie_embeddings = true, .experts = 5, .top_k = 2,
              .expert_ffn = 8, .shared = 1, .dense_layers = 1),
    };

    for (size_t i = 0; i < ARRAY_LEN(models); i++) {
        CHECK_ROW("models[%zu]", i);
        const struct model_config *cfg = &models[i];
        const size_t n = 1536;
        struct bench_products *c = NULL;
        struct bench_part parts[PASS_NR] = {0};
        struct err err = {0};
        double norms = (2.0 * cfg->layers + 1.0) * cfg->width;
        double want = model_config_flops_per_token(cfg) - 6.0 * norms;

        assert_int_equal(bench_products_create(cfg, PRODUCT_FLOAT32, n, CLOCK_MONOTONIC, &c, &err),
                         0);
        bench_products_count(c, parts);
        bench_products_free(c);
        bench_parts_count(cfg, n, parts);
        double found = (parts[PASS_BODY].operations + parts[PASS_HEAD].operations +
                        parts[PASS_ATTENTION].operations) /
                       (double)n;
        double head = 6.0 * cfg->vocab * cfg->width * (double)n;
        assert_true(fabs(parts[PASS_HEAD].operations / head - 1.0) < 1e-12);
        if (!(fabs(found / want - 1.0) < 1e-12))
            fail_msg("model %zu: %.17g operations a token, %.17g expected", i, found, want);
    }
}

static double number(const cJSON *obj, const char *key)
{
    struct err err = {0};
    double value = 0.0;

    if (json_get_number(obj, key, &value, &err) != 0)
        fail_msg("%s", err.msg);
    return value;
}

/* The bound is the greater of the two times that the limits allow. */
static void check_part(const cJSON *part, const cJSON *obj)
{
    double compute = number(part, "operations") / (number(obj, "peak_gflops") * 1e9);
    double move = number(part, "bytes") / (number(obj, "memory_gbytes_per_second") * 1e9);
    const char *bound = json_member(part, "bound")->valuestring;

    assert_string_equal(bound, move > compute ? "memory" : "peak");
    double want = fmax(move, compute) / number(part, "seconds");
    assert_true(fabs(number(part, "reached") / want - 1.0) < 1e-9);
}

static void check_numbers(const cJSON *obj)
{
    const cJSON *shares = json_member(obj, "time_shares"), *roofline = json_member(obj, "roofline");
    const cJSON *part;
    double gflops = number(obj, "gflops"), peak = number(obj, "peak_gflops"), sum = 0.0;
    double products = number(obj, "products_gflops");

    assert_true(gflops > 0.0 && fabs(number(obj, "share_of_peak") - gflops / peak) < 1e-9);
    assert_true(products > 0.0 &&
                fabs(number(obj, "products_share_of_peak") - products / peak) < 1e-9);
    /* nothing is as fast as the kernel alone; a tenth for a machine that changes its pace */
    assert_true(products < 1.1 * peak && gflops < 1.1 * peak);
    assert_string_equal(json_member(json_member(roofline, "optimiser"), "bound")->valuestring,
                        "memory");
    cJSON_ArrayForEach(part, roofline)
    {
        check_part(part, obj);
    }
    cJSON_ArrayForEach(part, shares)
    {
        assert_true(part->valuedouble >= 0.0);
        sum += part->valuedouble;
    }
    assert_true(fabs(sum - 1.0) < 1e-9);
    assert_true(json_member(shares, "head_gemm")->valuedouble > 0.0);
    assert_true(json_member(shares, "routing")->valuedouble > 0.0);
}

static void test_file_and_json(void **state)
{
    (void)state;
    char path[] = "bench-XXXXXX", *text = NULL;
    size_t size = 0;
    int fd = mkstemp(path);
    FILE *f = fdopen(fd, "w"), *out = open_memstream(&text, &size);
    struct bench_options opt = {.what = path, .threads = 1, .steps = 3, .json = true};
    struct err err = {0};
    cJSON *obj = NULL;

    (void)fputs("{\"params\":{\"layers\":2,\"width\":32,\"heads\":2,\"context\":16,\"experts\":4,"
                "\"top_k\":2,\"expert_ffn\":16,\"batch_tokens\":64}}",
                f);
    (void)fclose(f);
    if (bench_run(&opt, out, &err) < 0)
        fail_msg("%s", err.msg);
    (void)fclose(out);
    (void)unlink(path);
    assert_int_equal(json_parse(text, size, &obj, &err), 0);
    assert_true(json_member(obj, "batch")->valueint == 4);
    check_numbers(obj);
    cJSON_Delete(obj);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_words),         cmocka_unit_test(test_unknown_model),
        cmocka_unit_test(test_too_large),     cmocka_unit_test(test_products_count_the_model),
        cmocka_unit_test(test_file_and_json),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
