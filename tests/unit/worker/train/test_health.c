/* Router health: the facts worked out by hand, the two remedies, and the state's way through a
 * checkpoint. */
#include <math.h>
#include <unistd.h>

#include "base/files/file.h"
#include "base/json/json.h"
#include "base/xalloc.h"
#include "tests/unit/check.h"
#include "tests/unit/worker/shape.h"
#include "worker/model/run.h"
#include "worker/train/health.h"
#include "worker/train/router_log.h"

#define EXPERTS 4

/* One dense block and one mixture; `step` saw 100 tokens with the given counts. */
struct health_case {
    struct train_options opt;
    struct weights w;
    struct optimiser optimiser;
    struct health h;
};

static void init(struct health_case *k)
{
    struct err err = {0};

    *k = (struct health_case){.opt = {.steps = 10, .seed = 5, .init_std = 0.1}};
    k->opt.model = (struct model_config)SHAPE(2, 8, 2, 2, 11, 8, .ffn = 8, .experts = EXPERTS,
                                              .top_k = 2, .expert_ffn = 8, .dense_layers = 1);
    assert_int_equal(weights_init(&k->w, &k->opt.model, &err), 0);
    weights_randomise(&k->w, 5, 0.1);
    assert_int_equal(optimiser_init(&k->optimiser, &k->opt, &err), 0);
    for (size_t i = 0; i < k->w.table.n_params; i++)
        k->optimiser.m[i] = k->optimiser.v[i] = 1;
    health_init(&k->h, &k->opt.model);
}

static void release(struct health_case *k)
{
    weights_release(&k->w);
    optimiser_release(&k->optimiser);
    health_release(&k->h);
}

static void one_step(struct health_case *k, const uint64_t counts[EXPERTS], int64_t step)
{
    struct router_stats *s = &k->h.step[1];

    health_begin_step(&k->h);
    for (size_t e = 0; e < EXPERTS; e++) {
        s->counts[e] = counts[e];
        s->p_sum[e] = (double)counts[e] / 2.0;
    }
    s->z_sum = 300.0;
    s->tokens = 100;
    health_end_step(&k->h, &k->w, &k->optimiser, &k->opt, step);
}

static void test_facts(void **state)
{
    (void)state;
    static const uint64_t early[EXPERTS] = {200, 0, 0, 0}, late[EXPERTS] = {100, 50, 50, 0};
    struct health_case k;
    struct health_facts f;
    const double entropy = 0.5 * log(2.0) + 0.5 * log(4.0);

    init(&k);
    assert_false(health_facts(&k.h, &k.opt.model, &f));
    for (int64_t step = 0; step < 9; step++)
        one_step(&k, early, step); /* before the last tenth: not in the facts */
    assert_false(health_facts(&k.h, &k.opt.model, &f));
    one_step(&k, late, 9);
    assert_true(health_facts(&k.h, &k.opt.model, &f));
    assert_true(fabs(f.load - 2.0) < 1e-12);
    assert_true(fabs(f.occupancy) < 1e-12);
    assert_true(fabs(f.dead - 1.0) < 1e-12);
    assert_true(fabs(f.entropy - entropy / log(4.0)) < 1e-12);
    assert_true(fabs(f.effective - exp(entropy)) < 1e-12);
    assert_true(fabs(f.z - 3.0) < 1e-12);
    release(&k);
}

static void test_biases_move_towards_balance(void **state)
{
    (void)state;
    static const uint64_t counts[EXPERTS] = {100, 50, 50, 0};
    struct health_case k;

    init(&k);
    k.opt.bias_update_rate = 0.25;
    one_step(&k, counts, 0);
    const real *bias = k.w.route_bias;
    for (size_t e = 0; e < EXPERTS; e++)
        assert_true(bias[e] == 0); /* the dense block has none */
    assert_true(bias[EXPERTS] == -0.25F && bias[EXPERTS + 1] == 0);
    assert_true(bias[EXPERTS + 2] == 0 && bias[EXPERTS + 3] == 0.25F);
    release(&k);
}

/* How many of expert e's numbers differ between two arrays that lie like the parameters. */
static size_t differing(const struct weights *w, const real *a, const real *b, size_t e)
{
    const struct tensor *t = tensor_find(&w->table, TENSOR_EXPERT_DOWN, 1);
    size_t n = tensor_size(t) / EXPERTS, count = 0;

    for (size_t i = t->offset + e * n; i < t->offset + (e + 1) * n; i++)
        count += a[i] < b[i] || a[i] > b[i];
    return count;
}

static void test_dead_experts_are_drawn_anew(void **state)
{
    (void)state;
    static const uint64_t counts[EXPERTS] = {100, 99, 0, 1};
    struct health_case k;

    init(&k);
    size_t n = k.w.table.n_params;
    real *before = real_alloc(n), *ones = real_alloc(n);
    memcpy(before, k.w.params, n * sizeof(real));
    memcpy(ones, k.optimiser.m, n * sizeof(real));
    k.opt.reset_dead_experts = 2;
    one_step(&k, counts, 0);
    assert_int_equal(k.h.kills, 0);
    one_step(&k, counts, 1);
    assert_int_equal(k.h.kills, 1); /* expert 3 has 2 % of a fair share */
    for (size_t e = 0; e < EXPERTS; e++) {
        assert_int_equal(differing(&k.w, before, k.w.params, e), e == 2 ? 64 : 0);
        assert_int_equal(differing(&k.w, ones, k.optimiser.m, e), e == 2 ? 64 : 0);
        assert_int_equal(differing(&k.w, ones, k.optimiser.v, e), e == 2 ? 64 : 0);
    }
    /* Drawn again, it becomes another one. */
    memcpy(before, k.w.params, n * sizeof(real));
    one_step(&k, counts, 2);
    one_step(&k, counts, 3);
    assert_int_equal(k.h.kills, 2);
    assert_int_equal(differing(&k.w, before, k.w.params, 2), 64);
    free(before);
    free(ones);
    release(&k);
}

static void test_survives_a_checkpoint(void **state)
{
    (void)state;
    static const uint64_t counts[EXPERTS] = {100, 60, 40, 0};
    struct health_case k, back;
    struct err err = {0};

    init(&k);
    init(&back);
    k.opt.reset_dead_experts = 100;
    one_step(&k, counts, 8);
    one_step(&k, counts, 9);
    k.h.kills = 3;
    cJSON *obj = json_object();
    health_put(&k.h, obj);
    assert_int_equal(health_get(&back.h, obj, &err), 0);
    assert_int_equal(back.h.kills, 3);
    for (size_t e = 0; e < EXPERTS; e++) {
        assert_int_equal(back.h.since_reset[EXPERTS + e], 2 * counts[e]);
        assert_int_equal(back.h.window[1].counts[e], k.h.window[1].counts[e]);
        assert_true(back.h.window[1].p_sum[e] - k.h.window[1].p_sum[e] == 0.0);
    }
    assert_int_equal(back.h.window[1].tokens, k.h.window[1].tokens);
    assert_true(back.h.window[1].z_sum - k.h.window[1].z_sum == 0.0);
    cJSON *array = cJSON_GetObjectItemCaseSensitive(obj, "counts");
    cJSON_SetNumberHelper(cJSON_GetArrayItem(array, 7), -1.0);
    assert_int_equal(health_get(&back.h, obj, &err), ERR_CORRUPT);
    cJSON_SetNumberHelper(cJSON_GetArrayItem(array, 7), 0.0);
    json_push_number(array, 0.0);
    assert_int_equal(health_get(&back.h, obj, &err), ERR_CORRUPT);
    cJSON_DeleteItemFromArray(array, 8);
    assert_int_equal(health_get(&back.h, obj, &err), 0);
    cJSON_DeleteItemFromArray(array, 7);
    assert_int_equal(health_get(&back.h, obj, &err), ERR_CORRUPT);
    cJSON_Delete(obj);
    release(&k);
    release(&back);
}

#define PROBE_TEXT 300

/* A source whose held-out tokens are all that the log looks at. */
static void make_data(struct train_data *data, uint32_t ids[PROBE_TEXT])
{
    for (uint32_t i = 0; i < PROBE_TEXT; i++)
        ids[i] = i % 11;
    *data = (struct train_data){.n_sources = 1, .context = 8};
    data->sources[0] = (struct train_source){.name = "a", .weight = 1.0};
    data->sources[0].val = (struct token_stream){.ids = ids, .n = PROBE_TEXT};
}

struct log_case {
    struct health_case k;
    struct train_data data;
    struct router_log log;
    struct run *run;
    uint32_t ids[PROBE_TEXT];
};

static void log_init(struct log_case *c, int64_t steps)
{
    struct err err = {0};

    init(&c->k);
    c->k.opt.steps = steps;
    c->k.opt.micro_batch = 4;
    make_data(&c->data, c->ids);
    router_log_init(&c->log, &c->k.opt, &c->data);
    assert_int_equal(run_create(&c->k.opt.model, RUN_TRAIN, 32, &c->run, &err), 0);
}

static void log_release(struct log_case *c)
{
    router_log_release(&c->log);
    run_free(c->run);
    release(&c->k);
}

/* A sample of a step that changes the choice by a bias of one expert. */
static void log_step(struct log_case *c, int64_t step, uint32_t expert, real bias)
{
    static const uint64_t counts[EXPERTS] = {100, 50, 50, 0};

    router_log_before(&c->log, c->run, &c->k.w);
    one_step(&c->k, counts, step - 1);
    c->k.w.route_bias[EXPERTS + expert] += bias;
    router_log_after(&c->log, c->run, &c->k.w, c->k.h.step, step);
}

/* The share of the fixed set that chooses an expert first, through the run itself; *of_first is
 * what the first token chooses. */
static double share_of(struct log_case *c, uint32_t expert, uint32_t *of_first)
{
    uint32_t first[32];
    struct run_batch batch = {.tokens = c->ids, .batch = 4, .length = 8};
    double n = 0.0;

    run_forward(c->run, &c->k.w, &batch, NULL);
    run_first_choices(c->run, 1, 32, first);
    for (size_t i = 0; i < 32; i++)
        n += first[i] == expert;
    *of_first = first[0];
    return n / 32.0;
}

/* `same` is 1 when nothing changes; when every token is made to choose one expert, it is the share
 * that chose it before. */
static void test_same_choice(void **state)
{
    (void)state;
    struct log_case c;
    uint32_t expert = 0, ignored;

    log_init(&c, 10);
    log_step(&c, 1, 0, 0);
    assert_true(router_log_same(&c.log, 0, 1, 1) == 1.0);
    (void)share_of(&c, 0, &expert);
    double before = share_of(&c, expert, &ignored);
    assert_true(before > 0.0 && before < 1.0);
    log_step(&c, 2, expert, 1000);
    assert_true(share_of(&c, expert, &ignored) == 1.0);
    assert_true(fabs(router_log_same(&c.log, 1, 2, 1) - before) < 1e-6);
    assert_true(fabs(router_log_same(&c.log, 0, 2, -1) - (1.0 + before) / 2.0) < 1e-6);
    assert_true(isnan(router_log_same(&c.log, 2, 2, -1)));
    log_release(&c);
}

/* Which steps are sampled: some fifty, and the last. */
static void test_samples(void **state)
{
    (void)state;
    static const struct {
        int64_t steps, every, n;
    } cases[] = {{1, 1, 1}, {10, 1, 10}, {49, 1, 49}, {50, 2, 25}, {101, 3, 34}, {1000, 21, 48}};

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CHECK_ROW("cases[%zu]", i);
        struct log_case c;
        int64_t n = 0;
        log_init(&c, cases[i].steps);
        size_t one = router_log_length(&c.log, cases[i].every);
        assert_int_equal(one, EXPERTS + 3);
        for (int64_t step = 1; step <= cases[i].steps; step++) {
            n += router_log_is_due(&c.log, step);
            assert_int_equal(router_log_length(&c.log, step), (size_t)n * one);
        }
        assert_int_equal(n, cases[i].n);
        assert_true(router_log_is_due(&c.log, cases[i].steps));
        assert_true(router_log_numbers(&c.k.opt) == (double)((size_t)n * one));
        log_release(&c);
    }
}

static void test_log_file(void **state)
{
    (void)state;
    static const char expected[] =
        "step,layer,router_load,router_occupancy,router_entropy,router_effective,"
        "router_dead,router_z,router_same,share_0,share_1,share_2,share_3\n"
        "1,1,2,0,0.75,2.828427,1,3,1,0.5,0.25,0.25,0\n"
        "2,1,2,0,0.75,2.828427,1,3,1,0.5,0.25,0.25,0\n";
    struct log_case c;
    struct err err = {0};
    struct strbuf text = STRBUF_INIT;
    char path[] = "/tmp/prereg-router-XXXXXX";
    int fd = mkstemp(path);

    assert_true(fd >= 0);
    log_init(&c, 3);
    log_step(&c, 1, 0, 0);
    log_step(&c, 2, 0, 0);
    assert_int_equal(router_log_write(&c.log, 2, path, &err), 0);
    assert_int_equal(file_read(path, 4096, &text, &err), 0);
    assert_string_equal(text.buf, expected);
    strbuf_release(&text);
    (void)close(fd);
    (void)unlink(path);
    log_release(&c);
}

static void test_anneal(void **state)
{
    (void)state;

    assert_true(schedule_anneal(0.1, 0, 11) == 1.0);
    assert_true(fabs(schedule_anneal(0.1, 5, 11) - 0.55) < 1e-12);
    assert_true(schedule_anneal(0.1, 10, 11) == 0.1);
    assert_true(schedule_anneal(3.0, 5, 11) == 2.0);
    assert_true(schedule_anneal(0.1, 0, 1) == 1.0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_facts),
        cmocka_unit_test(test_biases_move_towards_balance),
        cmocka_unit_test(test_dead_experts_are_drawn_anew),
        cmocka_unit_test(test_survives_a_checkpoint),
        cmocka_unit_test(test_same_choice),
        cmocka_unit_test(test_samples),
        cmocka_unit_test(test_log_file),
        cmocka_unit_test(test_anneal),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
