/* Parameters: what is refused and how it is said; exact counts; horizons; matching; schedules;
 * --describe. */
#include <math.h>
#include <unistd.h>

#include "base/files/file.h"
#include "base/json/json.h"
#include "base/xalloc.h"
#include "tests/unit/check.h"
#include "tests/unit/scratch.h"
#include "tests/unit/worker/train/fixture.h"
#include "worker/nn/cpu.h"
#include "worker/train/options.h"
#include "worker/train/train.h"

#define GOOD                                                                                       \
    "{'layers':2,'width':32,'heads':2,'ffn':48,'context':64,'batch_tokens':512,'lr':0.003,"        \
    "'seed':3,'horizon':{'contract':'fixed','tokens':60000},'mix':{'a':1}}"

/* A task in memory, for the given parameters and peers (single quotes; NULL: none). */
static struct worker_task make_task(const char *params, const char *peers)
{
    struct worker_task t = {.json = json_object(), .attempt = "", .threads = 1};
    cJSON *obj = fixture_params(params);
    cJSON *data = fixture_params("{'a':{'path':'/nowhere'},'tok':{'path':'/nowhere'}}");

    json_put(t.json, "params", obj);
    json_put(t.json, "data", data);
    t.params = obj;
    t.data = data;
    if (peers != NULL) {
        cJSON *p = fixture_params(peers);
        json_put(t.json, "peers", p);
        t.peers = p;
    }
    return t;
}

/* GOOD with the members of `patch` put over it; null removes one. */
static struct worker_task patched_task(const char *patch, const char *peers)
{
    struct worker_task t = make_task(GOOD, peers);
    cJSON *changes = fixture_params(patch), *c;
    cJSON *params = cJSON_GetObjectItemCaseSensitive(t.json, "params");

    cJSON_ArrayForEach(c, changes)
    {
        cJSON_DeleteItemFromObjectCaseSensitive(params, c->string);
        if (!cJSON_IsNull(c))
            json_put(params, c->string, json_copy(c));
    }
    cJSON_Delete(changes);
    return t;
}

static const struct {
    const char *patch, *key, *why;
} FAULTS[] = {
    {"{'heads':3}", "heads", "does not divide width"},
    {"{'heads':32}", "heads", "even"},
    {"{'heads':4,'kv_heads':3}", "kv_heads", "does not divide"},
    {"{'layers':null}", "layers", "required"},
    {"{'width':2.5}", "width", "whole number"},
    {"{'layers':0}", "layers", "not in"},
    {"{'ffn':null}", "ffn", "required"},
    {"{'laers':2}", "laers", "did you mean \"layers\""},
    {"{'zzzzzzzz':2}", "zzzzzzzz", "unknown parameter"},
    {"{'seed':-1}", "seed", "not in"},
    {"{'lr':'fast'}", "lr", "expected a number"},
    {"{'horizon':{'contract':'fixed','tokens':100}}", "horizon", "less than one step"},
    {"{'horizon':{'contract':'fixd','tokens':1000}}", "horizon.contract", "not one of"},
    {"{'horizon':{'contract':'total','tokens':1000}}", "horizon.ratio", "required"},
    {"{'horizon':{'contract':'fixed','tokens':1000,'ratio':2}}", "horizon.ratio", "does not go"},
    {"{'horizon':{'contract':'fixed'}}", "horizon.tokens", "required"},
    {"{'horizon':{'contract':'fixed','token':1000}}", "horizon.token", "did you mean \"tokens\""},
    {"{'horizon':7}", "horizon", "expected a table"},
    {"{'schedule':{'kind':'linear'}}", "schedule.kind", "not one of cosine, wsd, constant"},
    {"{'schedule':{'kind':'wsd','warmup':0.5,'decay':0.6}}", "schedule.decay", "exceed"},
    {"{'schedule':{'decay':0.6}}", "schedule.decay", "wsd"},
    {"{'batch_tokens':500}", "batch_tokens", "multiple of context"},
    {"{'mix':{'a':0.5}}", "mix", "sum to 0.5"},
    {"{'mix':{'a':-1}}", "mix", "positive"},
    {"{'mix':{'nothing':1}}", "mix", "not one of the program's data"},
    {"{'mix':null}", "mix", "required"},
    {"{'data':'a'}", "mix", "excludes"},
    {"{'vocab':200}", "vocab", "under the 257"},
    {"{'tokenizer':'tok'}", "vocab", "required"},
    {"{'tokenizer':'other','vocab':300}", "tokenizer", "not one of"},
    {"{'experts':4,'top_k':5,'expert_ffn':8,'ffn':null}", "top_k", "5 of 4"},
    {"{'experts':4,'top_k':2,'ffn':null}", "expert_ffn", "required"},
    {"{'experts':4,'expert_ffn':8,'ffn':null}", "top_k", "required"},
    {"{'experts':4,'top_k':2,'expert_ffn':8,'dense_layers':2}", "dense_layers", "no mixture"},
    {"{'top_k':2}", "experts", "required with"},
    {"{'balance_loss':0.01}", "balance_loss", "needs experts"},
    {"{'capacity_factor':1.25}", "capacity_factor", "needs experts"},
    {"{'optimizer':'lion'}", "optimizer", "\"lion\" is not one of adamw, muon, sgd"},
    {"{'momentum':0.9}", "momentum", "does not go with optimizer = \"adamw\", whose own keys are "},
    {"{'nesterov':true}", "nesterov", "beta1, beta2, eps"},
    {"{'adamw_lr':0.01}", "adamw_lr", "does not go with optimizer = \"adamw\""},
    {"{'optimizer':'sgd','beta2':0.9}", "beta2", "whose own keys are momentum, nesterov"},
    {"{'optimizer':'sgd','adamw_lr':0.01}", "adamw_lr", "does not go with optimizer = \"sgd\""},
    {"{'optimizer':'sgd','eps':1e-9}", "eps", "does not go with optimizer = \"sgd\""},
    {"{'optimizer':'sgd','momentum':0,'nesterov':true}", "nesterov", "needs a momentum above 0"},
    {"{'optimizer':'muon','momentum':1}", "momentum", "not in"},
    {"{'optimizer':'muon','momentm':0.5}", "momentm", "did you mean \"momentum\""},
    {"{'validation':'nothing'}", "validation", "not one of the program's data"},
    {"{'validation':'a'}", "validation", "\"a\" is trained on"},
    {"{'validation':'tok','val_fraction':0.1}", "val_fraction", "does not go with validation"},
    {"{'validation':7}", "validation", "expected a string"},
    {"{'dropout':0.1}", "dropout", "use weight_decay"},
    {"{'weight_tying':true}", "weight_tying", "tie_embeddings"},
    {"{'marks':[0.5,0.2]}", "marks", "rising"},
    {"{'marks':[0]}", "marks", "rising"},
    {"{'stop_at_target':true}", "stop_at_target", "needs target_loss"},
    {"{'products':'mkl'}", "products", "not one of fixed, openblas"},
    {"{'precision':'float16'}", "precision", "not one of float32, bfloat16"},
    {"{'precision':'bfloat16','products':'openblas'}", "precision", "needs products = "},
    {"{'match':{'to':'moe','on':'active'},'ffn':null}", "match", "no other level"},
    {"{'match':{'to':'moe','on':'size'},'ffn':null}", "match.on", "not one of"},
    {"{'layers':1048576}", "layers", "not in"},
    {"{'width':131072,'layers':1024,'ffn':1048576}", "layers", "parameters; at most"},
    {"{'experts':2,'top_k':1,'shared':1024,'expert_ffn':32768,'ffn':null}", "shared", "over"},
    {"{'batch_tokens':1099511627776,'micro_batch':17179869184,'horizon':{'contract':'fixed',"
     "'tokens':1099511627776}}",
     "micro_batch", "a pass takes at most 1048576"},
    {"{'layers':1,'context':1,'batch_tokens':1,'vocab':1048576,'width':131072,"
     "'horizon':{'contract':'total','ratio':1e9}}",
     "horizon", "9007199254740992 steps"},
};

static void test_faults(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(FAULTS); i++) {
        struct param_faults faults = {0};
        struct train_options opt;
        struct worker_task t = patched_task(FAULTS[i].patch, NULL);
        train_options_read(&t, &opt, &faults);
        bool found = false;
        for (size_t j = 0; j < faults.n && !found; j++)
            found = strcmp(faults.items[j].key, FAULTS[i].key) == 0 &&
                    strstr(faults.items[j].why, FAULTS[i].why) != NULL;
        if (!found)
            fail_msg("%s: %zu faults, first %s: %s", FAULTS[i].patch, faults.n,
                     faults.n > 0 ? faults.items[0].key : "-",
                     faults.n > 0 ? faults.items[0].why : "-");
        param_faults_release(&faults);
        task_release(&t);
    }
}

static void test_several_faults_at_once(void **state)
{
    (void)state;
    struct param_faults faults = {0};
    struct train_options opt;
    struct err err = {0};
    struct worker_task t = patched_task("{'lr':null,'seed':'x','nonsense':1}", NULL);

    train_options_read(&t, &opt, &faults);
    assert_int_equal(faults.n, 3);
    assert_int_equal(param_faults_result(&faults, &err), ERR_USAGE);
    assert_non_null(strstr(err.msg, "2 more"));
    param_faults_release(&faults);
    task_release(&t);
}

static void test_defaults(void **state)
{
    (void)state;
    struct param_faults faults = {0};
    struct train_options opt;
    struct worker_task t = make_task(GOOD, NULL);

    train_options_read(&t, &opt, &faults);
    assert_int_equal(faults.n, 0);
    assert_int_equal(opt.steps, 117);
    assert_int_equal(opt.micro_batch, 8);
    assert_int_equal(opt.model.vocab, 257);
    assert_int_equal(opt.model.kv_heads, 2);
    assert_true(opt.model.tie_embeddings);
    assert_true(opt.beta1 == 0.9 && opt.beta2 == 0.95 && opt.weight_decay == 0.1 && opt.clip == 1);
    task_release(&t);
}

/* What an optimiser has by default, and all that it may be given. */
static void test_optimisers(void **state)
{
    (void)state;
    static const struct {
        const char *patch;
        struct train_options want;
    } cases[] = {
        {"{'optimizer':'adamw','beta1':0.8}",
         {.optimiser = OPTIMISER_ADAMW, .weight_decay = 0.1, .beta1 = 0.8}},
        {"{'optimizer':'muon'}",
         {.optimiser = OPTIMISER_MUON,
          .weight_decay = 0.1,
          .beta1 = 0.9,
          .momentum = 0.95,
          .nesterov = true,
          .adamw_lr = 3e-4}},
        {"{'optimizer':'muon','beta1':0.8,'beta2':0.9,'eps':1e-9,'momentum':0.5,'nesterov':false,"
         "'adamw_lr':0.01,'weight_decay':0}",
         {.optimiser = OPTIMISER_MUON, .beta1 = 0.8, .momentum = 0.5, .adamw_lr = 0.01}},
        {"{'optimizer':'sgd'}",
         {.optimiser = OPTIMISER_SGD, .beta1 = 0.9, .momentum = 0.9, .adamw_lr = 3e-4}},
        {"{'optimizer':'sgd','momentum':0,'weight_decay':0.01}",
         {.optimiser = OPTIMISER_SGD, .beta1 = 0.9, .weight_decay = 0.01}},
        {"{'optimizer':'sgd','nesterov':true}",
         {.optimiser = OPTIMISER_SGD, .beta1 = 0.9, .momentum = 0.9, .nesterov = true}},
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CHECK_ROW("%s", cases[i].patch);
        const struct train_options *want = &cases[i].want;
        struct param_faults faults = {0};
        struct train_options opt;
        struct worker_task t = patched_task(cases[i].patch, NULL);
        train_options_read(&t, &opt, &faults);
        assert_int_equal(faults.n, 0);
        assert_int_equal(opt.optimiser, want->optimiser);
        assert_true(opt.weight_decay == want->weight_decay && opt.beta1 == want->beta1);
        assert_int_equal(opt.nesterov, want->nesterov);
        if (want->optimiser != OPTIMISER_ADAMW)
            assert_true(opt.momentum == want->momentum);
        if (want->optimiser == OPTIMISER_MUON)
            assert_true(opt.adamw_lr == want->adamw_lr);
        task_release(&t);
    }
}

/* The published counts (the nmoe family and the "below the floor" pair). */
static void test_counts(void **state)
{
    (void)state;
    static const struct {
        struct model_config cfg;
        int64_t total, active;
    } cases[] = {
        {{.vocab = 50304, .width = 768, .layers = 12, .ffn = 3072}, 190532352, 190532352},
        {{.vocab = 50304,
          .width = 768,
          .layers = 12,
          .ffn = 3072,
          .dense_layers = 1,
          .experts = 64,
          .top_k = 6,
          .shared = 2,
          .expert_ffn = 384},
         755534592,
         191073024},
        {{.vocab = 50304,
          .width = 768,
          .layers = 12,
          .experts = 256,
          .top_k = 7,
          .shared = 1,
          .expert_ffn = 384},
         2836482816,
         192891648},
        {{.vocab = 32768, .width = 512, .layers = 8, .tie_embeddings = true, .ffn = 768},
         34611712,
         34611712},
        {{.vocab = 32768,
          .width = 512,
          .layers = 8,
          .tie_embeddings = true,
          .experts = 8,
          .top_k = 2,
          .expert_ffn = 384},
         62956032,
         34644480},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CHECK_ROW("cases[%zu]", i);
        struct model_config cfg = cases[i].cfg;
        cfg.heads = cfg.kv_heads = 8;
        cfg.context = 1024;
        assert_int_equal(model_config_total(&cfg), cases[i].total);
        assert_int_equal(model_config_active(&cfg), cases[i].active);
    }
}

/* What prereg-train --count says of parameters in a file. */
static cJSON *count(const cJSON *params)
{
    struct err err = {0};
    cJSON *out = NULL;
    char line[1024] = "", path[] = "/tmp/prereg-count-XXXXXX";
    int fd = mkstemp(path);
    FILE *f = tmpfile();

    assert_true(fd >= 0 && f != NULL);
    assert_int_equal(json_write_file(path, params, 0644, &err), 0);
    if (train_count(path, f, &err) < 0)
        fail_msg("%s", err.msg);
    rewind(f);
    assert_non_null(fgets(line, sizeof(line), f));
    assert_int_equal(json_parse(line, strlen(line), &out, &err), 0);
    (void)close(fd);
    (void)fclose(f);
    (void)unlink(path);
    return out;
}

static double number(const cJSON *obj, const char *key)
{
    struct err err = {0};
    double value = 0.0;

    if (json_get_number(obj, key, &value, &err) < 0)
        fail_msg("%s", err.msg);
    return value;
}

#define NMOE                                                                                       \
    "'vocab':50304,'width':768,'heads':12,'layers':12,'context':1024,'tie_embeddings':false,"      \
    "'batch_tokens':524288,'lr':0.001,"
#define NMOE_DENSE NMOE "'ffn':3072"
#define NMOE_MOE64                                                                                 \
    NMOE "'ffn':3072,'dense_layers':1,'experts':64,'top_k':6,'shared':2,'expert_ffn':384"
#define NMOE_MOE256 NMOE "'experts':256,'top_k':7,'shared':1,'expert_ffn':384"
#define GAMMA       "26.2402175563"

/* The published horizons to the step, and tokens per parameter to the digits given. */
static void test_horizons(void **state)
{
    (void)state;
    static const struct {
        const char *model, *horizon;
        int64_t steps, fifth;
        double per_total, per_active;
    } cases[] = {
        {NMOE_DENSE, "'contract':'total','ratio':" GAMMA, 9536, 1907, 26.24, 26.24},
        {NMOE_MOE64, "'contract':'total','ratio':" GAMMA, 37813, 7563, 26.24, 103.76},
        {NMOE_MOE256, "'contract':'total','ratio':" GAMMA, 141963, 28393, 26.24, 385.86},
        {NMOE_DENSE, "'contract':'fixed','tokens':4999610368", 9536, 1907, 26.24, 26.24},
        {NMOE_MOE64, "'contract':'fixed','tokens':4999610368", 9536, 1907, 6.62, 26.17},
        {NMOE_MOE256, "'contract':'fixed','tokens':4999610368", 9536, 1907, 1.76, 25.92},
        {NMOE_DENSE, "'contract':'active','ratio':" GAMMA, 9536, 1907, 26.24, 26.24},
        {NMOE_MOE64, "'contract':'active','ratio':" GAMMA, 9563, 1913, 6.64, 26.24},
        {NMOE_MOE256, "'contract':'active','ratio':" GAMMA, 9654, 1931, 1.78, 26.24},
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CHECK_ROW("cases[%zu]", i);
        char *text = xasprintf("{%s,'horizon':{%s}}", cases[i].model, cases[i].horizon);
        cJSON *params = fixture_params(text), *facts = count(params);
        assert_int_equal(number(facts, "steps"), cases[i].steps);
        assert_int_equal(horizon_fraction(cases[i].steps, 0.2), cases[i].fifth);
        assert_true(fabs(number(facts, "tokens_per_param") - cases[i].per_total) < 0.0051);
        assert_true(fabs(number(facts, "tokens_per_active_param") - cases[i].per_active) < 0.0051);
        assert_true(number(facts, "tokens") == (double)cases[i].steps * 524288.0);
        cJSON_Delete(params);
        cJSON_Delete(facts);
        free(text);
    }
}

/* K / E of the tokens reach an expert: the paper's 2 / 8 x 10.24M. */
static void test_tokens_per_expert(void **state)
{
    (void)state;
    cJSON *params = fixture_params(
        "{'vocab':32768,'width':512,'heads':8,'layers':8,'context':1024,'batch_tokens':2048,"
        "'experts':8,'top_k':2,'expert_ffn':384,'horizon':{'contract':'fixed','tokens':10240000}}");
    cJSON *facts = count(params);

    assert_true(number(facts, "tokens_per_expert") == 2560000.0);
    assert_true(number(facts, "active_ffn") == 768.0);
    /* 6 (active - nothing looked up only: tied) + 12 L C T / 2 */
    assert_true(number(facts, "flops_per_token") == 6.0 * 34644480.0 + 6.0 * 8 * 512 * 1024);
    cJSON_Delete(params);
    cJSON_Delete(facts);
}

static void put_member(cJSON *to, const char *key, const cJSON *from, const char *name)
{
    const cJSON *v = json_member(from, name);

    if (v != NULL)
        json_put(to, key, json_copy(v));
}

/* Every case of the vectors, through --count. */
static void test_vectors(void **state)
{
    (void)state;
    static const char *const same[] = {"vocab",   "width", "layers", "ffn",       "dense_layers",
                                       "experts", "top_k", "shared", "expert_ffn"};
    char *path = path_join(getenv("PREREG_SHARED") == NULL ? "" : getenv("PREREG_SHARED"),
                           "vectors/params.json");
    struct err err = {0};
    cJSON *vectors = NULL;
    const cJSON *cases = NULL, *c;

    if (json_read_file(path, 1 << 20, &vectors, &err) < 0) {
        free(path);
        print_message("  skipped: %s\n", err.msg);
        skip();
    }
    free(path);
    assert_int_equal(json_get_array(vectors, "cases", &cases, &err), 0);
    assert_true(cJSON_GetArraySize(cases) >= 5);
    cJSON_ArrayForEach(c, cases)
    {
        cJSON *params = fixture_params("{'heads':8,'context':1024}");
        for (size_t i = 0; i < ARRAY_LEN(same); i++)
            put_member(params, same[i], c, same[i]);
        put_member(params, "tie_embeddings", c, "tied");
        cJSON *facts = count(params);
        assert_true(number(facts, "params_total") == number(c, "total"));
        assert_true(number(facts, "params_active") == number(c, "active"));
        cJSON_Delete(params);
        cJSON_Delete(facts);
    }
    cJSON_Delete(vectors);
}

static void test_count_faults(void **state)
{
    (void)state;
    struct err err = {0};
    char path[] = "/tmp/prereg-count-XXXXXX";
    int fd = mkstemp(path);
    cJSON *params = fixture_params("{'layers':1,'width':10,'heads':4,'context':8,'ffn':8}");

    assert_true(fd >= 0);
    assert_int_equal(json_write_file(path, params, 0644, &err), 0);
    assert_int_equal(train_count(path, stdout, &err), ERR_USAGE);
    assert_non_null(strstr(err.msg, "heads"));
    (void)close(fd);
    (void)unlink(path);
    assert_int_equal(train_count(path, stdout, &err), ERR_NOT_FOUND);
    cJSON_Delete(params);
}

static void test_match(void **state)
{
    (void)state;
    static const struct {
        const char *on;
        int64_t ffn;
    } cases[] = {{"active", 768}, {"total", 3072 + 0}};
    static const char peers[] = "{'arch':{'moe':{'layers':8,'width':512,'heads':8,'vocab':32768,"
                                "'context':1024,'experts':8,'top_k':2,'expert_ffn':384}}}";

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CHECK_ROW("%s", cases[i].on);
        struct param_faults faults = {0};
        struct train_options opt;
        char *patch = xasprintf("{'layers':8,'width':512,'heads':8,'vocab':32768,'context':1024,"
                                "'batch_tokens':2048,'ffn':null,'match':{'to':'moe','on':'%s'}}",
                                cases[i].on);
        struct worker_task t = patched_task(patch, peers);
        train_options_read(&t, &opt, &faults);
        assert_int_equal(faults.n, 0);
        assert_true(opt.solved);
        assert_int_equal(opt.model.ffn, cases[i].ffn);
        assert_int_equal(opt.model.ffn % 8, 0);
        assert_true(fabs(opt.match_ratio - 1.0) < 0.002);
        free(patch);
        task_release(&t);
    }
}

/* Once the lock holds the solved width, it is used as it stands and no peers are needed. */
static void test_match_already_solved(void **state)
{
    (void)state;
    struct param_faults faults = {0};
    struct train_options opt;
    struct worker_task t = patched_task("{'ffn':40,'match':{'to':'moe','on':'active'}}", NULL);

    train_options_read(&t, &opt, &faults);
    assert_int_equal(faults.n, 0);
    assert_false(opt.solved);
    assert_int_equal(opt.model.ffn, 40);
    task_release(&t);
}

/* Rates by hand: 10 steps to the peak, floors and falling parts in fractions of the horizon. */
static void test_schedules(void **state)
{
    (void)state;
    static const struct schedule cosine = {SCHEDULE_COSINE, 0.1, 0.1, 0.0},
                                 wsd = {SCHEDULE_WSD, 0.1, 0.0, 0.2},
                                 wsd_floor = {SCHEDULE_WSD, 0.1, 0.2, 0.25},
                                 constant = {SCHEDULE_CONSTANT, 0.1, 0.1, 0.0},
                                 cold = {SCHEDULE_COSINE, 0.0, 0.0, 0.0};
    static const struct {
        const struct schedule *s;
        int64_t step, steps;
        double factor;
    } cases[] = {
        {&cosine, 0, 101, 0.1},      {&cosine, 4, 101, 0.5},     {&cosine, 9, 101, 1.0},
        {&cosine, 10, 101, 1.0},     {&cosine, 55, 101, 0.55},   {&cosine, 40, 101, 0.775},
        {&cosine, 70, 101, 0.325},   {&cosine, 100, 101, 0.1},   {&wsd, 0, 100, 0.1},
        {&wsd, 10, 100, 1.0},        {&wsd, 79, 100, 1.0},       {&wsd, 80, 100, 0.95},
        {&wsd, 89, 100, 0.5},        {&wsd, 99, 100, 0.0},       {&wsd_floor, 74, 100, 1.0},
        {&wsd_floor, 79, 100, 0.84}, {&wsd_floor, 99, 100, 0.2}, {&constant, 4, 100, 0.5},
        {&constant, 99, 100, 1.0},   {&cold, 0, 101, 1.0},       {&cold, 50, 101, 0.5},
        {&cold, 100, 101, 0.0},      {&cosine, 0, 1, 1.0},       {&wsd, 18, 37, 1.0},
        {&wsd, 30, 37, 6.0 / 7.0},   {&wsd, 3, 37, 1.0},
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        double got = schedule_factor(cases[i].s, cases[i].step, cases[i].steps);
        if (fabs(got - cases[i].factor) > 1e-12)
            fail_msg("case %zu: %.15g, not %.15g", i, got, cases[i].factor);
    }
}

static cJSON *describe(struct worker_task *t)
{
    struct err err = {0};
    struct strbuf text = STRBUF_INIT;
    cJSON *out = NULL;
    char line[8192];
    FILE *f = tmpfile();

    assert_non_null(f);
    assert_int_equal(train_describe(t, f, &err), 0);
    rewind(f);
    while (fgets(line, sizeof(line), f) != NULL)
        strbuf_adds(&text, line);
    (void)fclose(f);
    assert_int_equal(json_parse(text.buf, text.len, &out, &err), 0);
    strbuf_release(&text);
    task_release(t);
    return out;
}

static void test_describe(void **state)
{
    (void)state;
    static const char *const expected[] = {"val_loss",
                                           "val_bits_per_byte",
                                           "train_loss",
                                           "val_loss:a",
                                           "val_bits_per_byte:a",
                                           "best_val_loss",
                                           "best_val_step",
                                           "val_loss@0.2",
                                           "val_bits_per_byte@0.2",
                                           "val_loss:a@0.2",
                                           "val_bits_per_byte:a@0.2",
                                           "target_hit@0.2",
                                           "val_loss@1",
                                           "val_bits_per_byte@1",
                                           "val_loss:a@1",
                                           "val_bits_per_byte:a@1",
                                           "target_hit@1",
                                           "target_step"};
    static const char left[] = "snapshot/0.2/model.bin";
    struct err err = {0};
    double total = 0.0;
    const cJSON *facts = NULL;
    struct worker_task t = patched_task("{'marks':[1.0],'snapshots':[0.2],'target_loss':2}", NULL);
    cJSON *out = describe(&t);
    const cJSON *metrics = json_member(out, "metrics");

    assert_int_equal(cJSON_GetArraySize(metrics), ARRAY_LEN(expected));
    for (size_t i = 0; i < ARRAY_LEN(expected); i++) {
        CHECK_ROW("%s", expected[i]);
        assert_string_equal(cJSON_GetArrayItem(metrics, (int)i)->valuestring, expected[i]);
    }
    assert_int_equal(json_get_object(out, "facts", &facts, &err), 0);
    assert_int_equal(json_get_number(facts, "params_total", &total, &err), 0);
    assert_true(total == 257 * 32 + 2 * (4 * 32 * 32 + 3 * 32 * 48 + 2 * 32) + 32);
    assert_int_equal(cJSON_GetArraySize(json_member(out, "errors")), 0);
    assert_string_equal(cJSON_GetArrayItem(json_member(out, "artifacts"), 0)->valuestring, left);
    cJSON_Delete(out);

    t = patched_task("{'experts':4,'top_k':1,'expert_ffn':8,'ffn':null}", NULL);
    out = describe(&t);
    const cJSON *note = cJSON_GetArrayItem(json_member(out, "notes"), 0);
    assert_non_null(note);
    assert_non_null(strstr(note->valuestring, "use renormalise = false"));
    cJSON_Delete(out);

    t = patched_task("{'experts':4,'top_k':1,'expert_ffn':8,'ffn':null,'renormalise':false}", NULL);
    out = describe(&t);
    assert_int_equal(cJSON_GetArraySize(json_member(out, "notes")), 0);
    cJSON_Delete(out);

    t = patched_task("{'validation':'tok','marks':[0.5]}", NULL);
    out = describe(&t);
    assert_int_equal(cJSON_GetArraySize(json_member(out, "errors")), 0);
    metrics = json_member(out, "metrics");
    static const char *const own[] = {"val_loss",
                                      "val_bits_per_byte",
                                      "train_loss",
                                      "val_loss:tok",
                                      "val_bits_per_byte:tok",
                                      "best_val_loss",
                                      "best_val_step",
                                      "val_loss@0.5",
                                      "val_bits_per_byte@0.5",
                                      "val_loss:tok@0.5",
                                      "val_bits_per_byte:tok@0.5"};
    assert_int_equal(cJSON_GetArraySize(metrics), ARRAY_LEN(own));
    for (size_t i = 0; i < ARRAY_LEN(own); i++)
        assert_string_equal(cJSON_GetArrayItem(metrics, (int)i)->valuestring, own[i]);
    cJSON_Delete(out);

    t = patched_task("{'heads':3}", NULL);
    out = describe(&t);
    const cJSON *first = cJSON_GetArrayItem(json_member(out, "errors"), 0);
    assert_string_equal(json_member(first, "key")->valuestring, "heads");
    cJSON_Delete(out);
}

/* Moments on the disk and in memory, and Muon's products: by hand for GOOD's two layers. */
static void test_describe_optimisers(void **state)
{
    (void)state;
    const double total = 257 * 32 + 2 * (4 * 32 * 32 + 3 * 32 * 48 + 2 * 32) + 32,
                 rest = 257 * 32 + 5 * 32, /* embedding and norms */
        products = 2 * 5 *
                   (4 * (4 * 32 * (32 * 32) + 2 * 32 * 32 * 32) +
                    3 * (4 * 32 * (32 * 48) + 2 * 32 * 32 * 32));
    const struct {
        const char *patch;
        double moments, products;
    } cases[] = {
        {"{}", 2 * total, 0},
        {"{'optimizer':'muon'}", total + rest, products},
        {"{'optimizer':'sgd'}", total, 0},
    };
    double flops = 0.0;

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CHECK_ROW("%s", cases[i].patch);
        struct worker_task t = patched_task(cases[i].patch, NULL);
        cJSON *out = describe(&t);
        const cJSON *facts = json_member(out, "facts");
        assert_true(number(facts, "disk_bytes") == 4.0 * ((total + cases[i].moments) * 3 + total));
        flops = i == 0 ? number(facts, "flops_per_token") : flops;
        assert_true(number(facts, "flops_per_token") == flops + cases[i].products / 512);
        if (i == 1)
            assert_true(number(facts, "optimizer_flops_per_token") == cases[i].products / 512);
        else
            assert_null(json_member(facts, "optimizer_flops_per_token"));
        cJSON_Delete(out);
    }
}

static double described_memory(const char *patch)
{
    struct worker_task t = patched_task(patch, NULL);
    cJSON *out = describe(&t);
    double bytes = number(json_member(out, "facts"), "memory_bytes");

    cJSON_Delete(out);
    return bytes;
}

/* Of a model of 50 million parameters, mostly hidden matrices: a moment less is 200 MB less. */
static void test_memory_of_optimisers(void **state)
{
    (void)state;
#define LARGE "'width':1024,'heads':8,'ffn':2816,'layers':4"
    const double hidden = 4.0 * 4 * (4 * 1024 * 1024 + 3 * 1024 * 2816), /* bytes */
        total = hidden + 4.0 * (257 * 1024 + 9 * 1024), scratch = 4.0 * 1024 * (2816 + 2 * 1024);
    double adamw = described_memory("{" LARGE "}");
    double muon = described_memory("{" LARGE ",'optimizer':'muon'}");
    double sgd = described_memory("{" LARGE ",'optimizer':'sgd'}");

    /* In the trainer, with its allowance of 3 %, and in the copy for checkpoints. */
    assert_true(fabs(adamw - muon - (1.03 * (hidden - scratch) + hidden)) < 1.0);
    assert_true(fabs(adamw - sgd - 2.03 * total) < 1.0);
}

static double described_seconds(const char *patch, const char *rates)
{
    struct err err = {0};
    double seconds = 0.0;
    struct worker_task t = patched_task(patch, NULL);

    t.rates = rates;
    cJSON *out = describe(&t);
    assert_int_equal(json_get_number(out, "seconds", &seconds, &err), 0);
    assert_true(cJSON_IsArray(json_member(out, "notes")));
    cJSON_Delete(out);
    return seconds;
}

/* The first rate of a file is a token's, in seconds; its name has the instruction set. */
static void change_rates(const char *path, double factor, int n_expected)
{
    struct err err = {0};
    cJSON *rates = NULL, *list;

    assert_int_equal(json_read_file(path, 1u << 16, &rates, &err), 0);
    assert_int_equal(cJSON_GetArraySize(rates), n_expected);
    cJSON_ArrayForEach(list, rates)
    {
        assert_non_null(strstr(list->string, nn_cpu_text(nn_cpu())));
        assert_int_equal(cJSON_GetArraySize(list), 2);
        cJSON_SetNumberValue(list->child, list->child->valuedouble * factor);
        cJSON_SetNumberValue(list->child->next, list->child->next->valuedouble * factor);
    }
    assert_int_equal(json_write_file(path, rates, 0600, &err), 0);
    cJSON_Delete(rates);
}

/* A model is measured once for each precision, and the estimate goes by what is kept. */
static void test_describe_rates(void **state)
{
    (void)state;
    char *folder = scratch_make();
    char *path = path_join(folder, "rates.json");

    assert_true(described_seconds("{}", NULL) > 0.0);
    double first = described_seconds("{}", path);
    assert_true(described_seconds("{}", path) == first);
    change_rates(path, 10.0, 1);
    double slower = described_seconds("{}", path);
    assert_true(slower > 5.0 * (first - 0.1) && slower < 11.0 * first);
    (void)described_seconds("{'precision':'bfloat16'}", path);
    change_rates(path, 1.0, 2);
    (void)described_seconds("{'micro_batch':1}", path);
    change_rates(path, 1.0, 3);
    (void)described_seconds("{'optimizer':'muon'}", path);
    change_rates(path, 1.0, 4);
    free(path);
    scratch_remove(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_faults),
        cmocka_unit_test(test_several_faults_at_once),
        cmocka_unit_test(test_defaults),
        cmocka_unit_test(test_counts),
        cmocka_unit_test(test_horizons),
        cmocka_unit_test(test_tokens_per_expert),
        cmocka_unit_test(test_vectors),
        cmocka_unit_test(test_count_faults),
        cmocka_unit_test(test_match),
        cmocka_unit_test(test_match_already_solved),
        cmocka_unit_test(test_schedules),
        cmocka_unit_test(test_describe),
        cmocka_unit_test(test_describe_rates),
        cmocka_unit_test(test_optimisers),
        cmocka_unit_test(test_describe_optimisers),
        cmocka_unit_test(test_memory_of_optimisers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
