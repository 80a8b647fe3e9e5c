/* The program itself: what the kinds of tasks and their options come to. */
#include <math.h>
#include <signal.h>

#include "base/files/file.h"
#include "base/json/json.h"
#include "base/machine/proc.h"
#include "base/xalloc.h"
#include "tests/unit/check.h"
#include "tests/unit/scratch.h"
#include "tests/unit/worker/eval/cli/run_job.h"
#include "truthtable/instruments/items_error.h"
#include "truthtable/instruments/items_table.h"

#define SUMS                                                                                       \
    "{\"task\":\"gsm8k\",\"data\":\"manysums\",\"shots\":0,\"max_tokens\":40,\"viability\":"       \
    "{\"items\":0}}"

#define GROUPS                                                                                     \
    "{\"task\":\"mmlu\",\"data\":\"subjects\",\"groups\":[\"anatomy\",\"astronomy\","              \
    "\"marketing\"]"

static bool has_items(const char *folder)
{
    char *path = path_join(folder, "items.jsonl");
    const bool has = file_kind_at(path) == FILE_REGULAR;
    free(path);
    return has;
}

#define STOPS 40

/* Asked to stop while it generates, again and again: the end is the same bytes. The last attempt
 * may take its time, on a machine where no other comes to its end. */
static void test_stopped_while_generating(void **state)
{
    (void)state;
    const struct job plain = {.folder = "sums", .params = SUMS};
    assert_int_equal(run_job(&plain).code, 0);
    char *folder = NULL;
    char *before = NULL;
    int n_stopped = 0;
    for (int i = 0; i < STOPS; i++) {
        char after[16];
        free(before);
        before = folder;
        folder = xasprintf("sums-%d", i);
        (void)snprintf(after, sizeof(after), "%.3f", 0.02 + 0.01 * i);
        const struct job job = {.folder = folder,
                                .params = SUMS,
                                .resume = before,
                                .term_after = i + 1 < STOPS ? after : NULL};
        struct end end = run_job(&job);
        if (end.code == 0)
            break;
        /* SIGTERM itself before the program listens */
        assert_true(end.code == 75 || end.code == 128 + SIGTERM);
        n_stopped += end.code == 75;
        if (!has_items(folder)) {
            free(folder);
            folder = before;
            before = NULL;
        }
    }
    assert_in_range(n_stopped, 1, STOPS - 1);
    run_assert_same_file("sums", folder, "items.jsonl");
    free(before);
    free(folder);
}

static double number_of(const char *folder, const char *metric, const char *member)
{
    cJSON *m = run_read_metric(folder, metric);
    if (m == NULL)
        fail_msg("no metric %s", metric);
    const cJSON *v = json_member(m, member);
    const double number = v == NULL ? (double)NAN : v->valuedouble;
    cJSON_Delete(m);
    return number;
}

/* Subjects, their groups and the whole; nested as v0.4.3 pools, flat from v0.4.4. */
static void test_groups(void **state)
{
    (void)state;
    const struct job nested = {.folder = "groups", .params = GROUPS ",\"context\":8}"};
    const struct job flat = {.folder = "groups-flat",
                             .params = GROUPS ",\"context\":8,\"harness\":\"0.4.4\"}"};
    assert_int_equal(run_job(&nested).code, 0);
    assert_int_equal(run_job(&flat).code, 0);
    /* 3 items of anatomy, 4 of astronomy, 5 of marketing */
    const double stem = number_of("groups", "acc:stem", "value");
    assert_true(fabs(stem - (3.0 * number_of("groups", "acc:anatomy", "value") +
                             4.0 * number_of("groups", "acc:astronomy", "value")) /
                                7.0) < 1e-15);
    assert_true(number_of("groups", "acc:stem", "n") == 7.0);
    assert_true(number_of("groups", "acc:other", "value") ==
                number_of("groups", "acc:marketing", "value"));
    assert_true(number_of("groups", "acc", "n") == 12.0);
    assert_true(fabs(number_of("groups", "acc", "value") -
                     number_of("groups-flat", "acc", "value")) < 1e-15);
    /* (n - 1) n se^2 of each part */
    const double a = 6.0 * pow(number_of("groups", "acc:anatomy", "se"), 2);
    const double b = 12.0 * pow(number_of("groups", "acc:astronomy", "se"), 2);
    const double c = 20.0 * pow(number_of("groups", "acc:marketing", "se"), 2);
    const double both = 42.0 * pow(number_of("groups", "acc:stem", "se"), 2);
    assert_true(fabs(both - 42.0 * (a + b) / 5.0 / 7.0) < 1e-12);
    const double parents = sqrt((both + c) / 10.0 / 12.0);
    const double leaves = sqrt((a + b + c) / 9.0 / 12.0);
    assert_true(fabs(parents - leaves) > 1e-6);
    assert_true(fabs(number_of("groups", "acc", "se") - parents) < 1e-12);
    assert_true(fabs(number_of("groups-flat", "acc", "se") - leaves) < 1e-12);
    assert_null(run_read_metric("groups", "acc:humanities")); /* not chosen */
}

#define N_SUBJECTS 3
#define N_ASKED    12

/* The table's side of the file, and every item's acc as its line says it. */
static void take_side(struct items_table *t, const char *folder, double sign, int acc[N_ASKED])
{
    struct strbuf text = STRBUF_INIT;
    struct items_stream s;
    struct err err;
    run_read_text(folder, "items.jsonl", &text);
    items_stream_init(&s, "acc", "group", items_table_take, t);
    items_table_begin(t, sign);
    assert_int_equal(items_stream_add(&s, text.buf, text.len, &err), 0);
    assert_int_equal(items_stream_end(&s, &err), 0);
    items_stream_release(&s);
    const char *at = text.buf;
    for (size_t i = 0; i < N_ASKED; i++) {
        at = strstr(at, ",\"acc\":");
        assert_non_null(at);
        acc[i] = at[strlen(",\"acc\":")] - '0';
        at++;
    }
    assert_null(strstr(at, ",\"acc\":"));
    strbuf_release(&text);
}

/* The error that subjects as clusters give two models is that of the sums by hand. */
static void test_groups_as_clusters(void **state)
{
    static const size_t sizes[N_SUBJECTS] = {3, 4, 5};
    static const char *const names[N_SUBJECTS] = {"anatomy", "astronomy", "marketing"};
    const struct job sides[] = {{.folder = "side-a", .params = GROUPS "}"},
                                {.folder = "side-b", .params = GROUPS "}", .model = "model-b"}};
    int acc[2][N_ASKED];
    double diff[N_ASKED];
    size_t cluster[N_ASKED];
    struct items_table t;
    struct item_error got;
    (void)state;
    items_table_init(&t);
    for (size_t i = 0; i < ARRAY_LEN(sides); i++) {
        CHECK_ROW("sides[%zu]", i);
        assert_int_equal(run_job(&sides[i]).code, 0);
        take_side(&t, sides[i].folder, i == 0 ? 1 : -1, acc[i]);
    }
    assert_int_equal(t.unclustered, -1);
    assert_int_equal(t.n_clusters, N_SUBJECTS);
    assert_int_equal(items_table_collect(&t, 1, diff, cluster), N_ASKED);
    items_clustered(diff, cluster, N_ASKED, t.n_clusters, &got);
    double mean = 0;
    double squares = 0;
    for (size_t i = 0; i < N_ASKED; i++)
        mean += (acc[0][i] - acc[1][i]) / (double)N_ASKED;
    for (size_t g = 0, i = 0; g < N_SUBJECTS; g++) {
        double sum = 0;
        assert_string_equal(t.clusters[g], names[g]);
        for (size_t k = 0; k < sizes[g]; k++, i++)
            sum += acc[0][i] - acc[1][i] - mean;
        squares += sum * sum;
    }
    assert_true(squares > 0);
    assert_true(fabs(got.mean - mean) < 1e-12);
    assert_true(fabs(got.se - sqrt(3.0 / 2.0 * squares) / N_ASKED) < 1e-12);
    items_table_release(&t);
}

/* The first so many of each subject, as the harness counts; drawn ones of all together. */
static void test_group_limits(void **state)
{
    (void)state;
    const struct job first = {.folder = "groups-2", .params = GROUPS ",\"limit\":4}"};
    const struct job drawn = {.folder = "groups-drawn",
                              .params = GROUPS ",\"items\":{\"count\":4,\"seed\":180}}"};
    const struct job many = {.folder = "groups-many", .params = GROUPS ",\"limit\":6}"};
    struct strbuf items = STRBUF_INIT;
    assert_int_equal(run_job(&first).code, 0);
    assert_true(number_of("groups-2", "acc", "n") == 11.0);
    assert_true(number_of("groups-2", "acc:anatomy", "n") == 3.0);
    assert_true(number_of("groups-2", "acc:marketing", "n") == 4.0);
    run_read_text("groups-2", "items.jsonl", &items);
    assert_non_null(strstr(items.buf, "\n{\"item\":10,\"line\":4,\"group\":\"marketing\","));
    assert_null(strstr(items.buf, "{\"item\":11,"));
    strbuf_release(&items);
    assert_int_equal(run_job(&drawn).code, 0); /* 0, 1, 2 and 4 */
    assert_true(number_of("groups-drawn", "acc", "n") == 4.0);
    assert_true(number_of("groups-drawn", "acc:astronomy", "n") == 1.0);
    cJSON *empty = run_read_metric("groups-drawn", "acc:other");
    assert_string_equal(json_member(empty, "why")->valuestring, "no_items");
    cJSON_Delete(empty);
    const struct end end = run_job(&many);
    assert_int_equal(end.code, 64);
    assert_non_null(strstr(end.said, "limit: 6 items wanted, the largest group has 5"));
}

static void test_missing_groups(void **state)
{
    (void)state;
    const struct job half = {.folder = "half",
                             .params = "{\"task\":\"mmlu\",\"data\":\"subjects\"}"};
    const struct job one = {
        .folder = "one",
        .params = "{\"task\":\"mmlu\",\"data\":\"subjects\",\"groups\":[\"astronomy\"]}"};
    const struct job bad = {
        .folder = "bad-group",
        .params = "{\"task\":\"mmlu\",\"data\":\"subjects\",\"groups\":[\"astrology\"]}"};
    struct end end = run_job(&half);
    assert_int_equal(end.code, 65);
    assert_non_null(strstr(end.said, "54 of 57 groups of mmlu are missing: abstract_algebra, "
                                     "college_biology, college_chemistry, ..."));
    assert_int_equal(run_job(&one).code, 0);
    assert_true(number_of("one", "acc", "n") == 4.0);
    assert_true(number_of("one", "acc:stem", "n") == 4.0);
    assert_true(number_of("one", "acc:astronomy", "n") == 4.0);
    end = run_job(&bad);
    assert_int_equal(end.code, 64);
    assert_non_null(strstr(end.said, "groups"));
    assert_non_null(strstr(end.said, "is 'astronomy' meant?"));
}

static void test_second_key(void **state)
{
    (void)state;
    const struct job job = {.folder = "second",
                            .params = "{\"task\":\"choices\",\"second_key\":\"key\",\"limit\":4}"};
    const struct job bad = {.folder = "second-bad",
                            .params = "{\"task\":\"choices\",\"second_key\":\"badkey\"}"};
    assert_int_equal(run_job(&job).code, 0);
    assert_true(number_of("second", "acc", "n") == 4.0);
    assert_true(number_of("second", "acc@key", "n") == 3.0);
    assert_true(number_of("second", "acc@key", "value") >=
                1.0 / 3.0); /* all three are right once */
    struct strbuf items = STRBUF_INIT;
    run_read_text("second", "items.jsonl", &items);
    const char *line = strstr(items.buf, "{\"item\":1,");
    assert_non_null(strstr(items.buf, ",\"acc@key\":1,\"acc_norm@key\":1}\n{\"item\":1,"));
    assert_null(memmem(line, (size_t)(strchr(line, '\n') - line), "@key", 4));
    strbuf_release(&items);
    struct end end = run_job(&bad);
    assert_int_equal(end.code, 65);
    assert_non_null(strstr(end.said, "second key badkey"));
    assert_non_null(strstr(end.said, "line 1: gold is not one of the item's 3 choices"));
}

static void test_own_task(void **state)
{
    (void)state;
    const struct job job = {.folder = "own",
                            .params = "{\"task_file\":\"own\",\"data\":\"choices\"}"};
    const struct job plain = {.folder = "not-own", .params = CHOICES};
    assert_int_equal(run_job(&job).code, 0);
    assert_int_equal(run_job(&plain).code, 0);
    assert_true(number_of("own", "acc", "value") == number_of("not-own", "acc", "value"));
    assert_null(run_read_metric("own", "acc_norm"));
}

/* 22 bytes in 5 words; random weights do worse than guessing among 257. */
static void test_perplexities(void **state)
{
    (void)state;
    const struct job pages = {.folder = "pages",
                              .params = "{\"task\":\"wikitext\",\"data\":\"pages\"}"};
    const struct job words = {
        .folder = "words",
        .params = "{\"task\":\"lambada_openai\",\"data\":\"words\",\"bootstrap\":1000}"};
    const struct job no_se = {
        .folder = "words-0",
        .params = "{\"task\":\"lambada_openai\",\"data\":\"words\",\"bootstrap\":0}"};
    assert_int_equal(run_job(&pages).code, 0);
    assert_int_equal(run_job(&words).code, 0);
    assert_int_equal(run_job(&no_se).code, 0);
    const double bytes = number_of("pages", "byte_perplexity", "value");
    assert_true(bytes > 257.0 && bytes < 20000.0);
    assert_true(fabs(number_of("pages", "bits_per_byte", "value") - log2(bytes)) < 1e-12);
    assert_true(fabs(log(number_of("pages", "word_perplexity", "value")) * 5 - log(bytes) * 22) <
                1e-9);
    assert_true(isnan(number_of("pages", "word_perplexity", "se")));
    assert_true(number_of("words", "perplexity", "value") > 50.0);
    assert_true(number_of("words", "perplexity", "se") > 0.0);
    assert_true(isnan(number_of("words-0", "perplexity", "se")));
}

/* A model that says one thing for ever: no score, and the evidence. */
static void test_viability(void **state)
{
    (void)state;
    const struct job job = {.folder = "loops",
                            .params = "{\"task\":\"gsm8k\",\"data\":\"manysums\",\"shots\":0,"
                                      "\"max_tokens\":40}",
                            .model = "model-loop"};
    struct end end = run_job(&job);
    assert_int_equal(end.code, 69);
    assert_non_null(strstr(end.said, "of the first 16 generations 0 are empty and 16 endless "
                                     "repetition, over the 0.9 allowed"));
    run_assert_event("loops", "of the first 16 generations");
    struct strbuf evidence = STRBUF_INIT;
    run_read_text("loops", "viability.json", &evidence);
    assert_non_null(strstr(evidence.buf, "\"looked_at\": 16"));
    assert_non_null(strstr(evidence.buf, "\"answered\": 0"));
    assert_non_null(strstr(evidence.buf, "\"what\": \"endless repetition\""));
    strbuf_release(&evidence);
    assert_int_equal(file_kind_at("loops/result.json"), FILE_ABSENT);
    assert_int_equal(file_kind_at("loops/items.jsonl"), FILE_REGULAR);
}

static char *plan(const char *const *argv, int code)
{
    const struct proc_spec spec = {.argv = argv, .max_out_bytes = 1u << 16};
    struct proc_result result;
    struct err err = {0};
    assert_int_equal(proc_run(&spec, &result, &err), 0);
    if (result.code != code)
        fail_msg("exit %d: %s", result.code, result.err.buf);
    char *said = xstrdup(code == 0 ? result.out.buf : result.err.buf);
    proc_result_release(&result);
    return said;
}

static const char program[] = TEST_BIN_DIR "/prereg-eval";

/* It counts what the run then counts. */
static void test_plan(void **state)
{
    (void)state;
    static const char *const whole[] = {
        program, "--plan", "choices", "--data", "data/choices.jsonl", "--model", "model-a", NULL};
    static const char *const cut[] = {
        program,   "--plan", "choices", "--data", "data/choices.jsonl", "--model",
        "model-a", "--set",  "limit=9", "--set",  "context=8",          NULL};
    static const char *const bad[][8] = {
        {program, "--plan", NULL},
        {program, "--plan", "choices", "--data", NULL},
        {program, "--plan", "choices", "--data", "data/choices.jsonl", NULL},
        {program, "--plan", "choices", "--dat", "x", NULL},
        {program, "--plan", "choices", "--set", "limit", NULL},
        {program, "--plan", "choice", "--data", "data/choices.jsonl", "--model", "model-a", NULL},
    };
    const struct job job = {.folder = "planned", .params = CHOICES};
    struct err err = {0};
    cJSON *result = NULL;
    assert_int_equal(run_job(&job).code, 0);
    assert_int_equal(json_read_file("planned/result.json", 1u << 20, &result, &err), 0);
    const cJSON *facts = json_member(result, "facts");
    char *tokens = xasprintf("\ntokens           %.0f\ndistinct tokens  %.0f (",
                             json_member(facts, "tokens")->valuedouble,
                             json_member(facts, "distinct_tokens")->valuedouble);
    char *said = plan(whole, 0);
    if (strstr(said, tokens) == NULL || strstr(said, "every item fits") == NULL ||
        strstr(said, "\nitems            400\nrequests         1200\n") == NULL ||
        strstr(said, "\ntime   ") == NULL)
        fail_msg("not %s in %s", tokens, said);
    free(said);
    said = plan(cut, 0);
    if (strstr(said, "9 items lose") == NULL)
        fail_msg("%s", said);
    free(said);
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        free(plan(bad[i], 64));
    free(tokens);
    cJSON_Delete(result);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_stopped_while_generating),
        cmocka_unit_test(test_groups),
        cmocka_unit_test(test_groups_as_clusters),
        cmocka_unit_test(test_group_limits),
        cmocka_unit_test(test_missing_groups),
        cmocka_unit_test(test_second_key),
        cmocka_unit_test(test_own_task),
        cmocka_unit_test(test_perplexities),
        cmocka_unit_test(test_viability),
        cmocka_unit_test(test_plan),
    };
    return cmocka_run_group_tests(tests, run_set_up, scratch_leave);
}
