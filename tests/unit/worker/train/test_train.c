/* The real worker's ends: what it learns, what it refuses and with which code, how it stops. */
#include <math.h>
#include <signal.h>

#include "base/files/file.h"
#include "base/json/json.h"
#include "base/machine/proc.h"
#include "base/xalloc.h"
#include "tests/unit/check.h"
#include "tests/unit/sparse.h"
#include "tests/unit/worker/train/fixture.h"
#include "worker/data/shard.h"
#include "worker/data/tokenizer/tokenizer.h"
#include "worker/model/model.h"
#include "worker/model/score.h"
#include "worker/train/log_line.h"

#define SMALL                                                                                      \
    "{'layers':2,'width':32,'heads':2,'ffn':48,'context':64,'batch_tokens':512,'lr':0.003,"        \
    "'seed':3,'horizon':{'contract':'fixed','tokens':120000},'mix':{'a':0.7,'b':0.3}}"

static cJSON *result_of(const char *folder)
{
    struct strbuf text = fixture_file(folder, "result.json");
    struct err err = {0};
    cJSON *result = NULL;

    assert_int_equal(json_parse(text.buf, text.len, &result, &err), 0);
    strbuf_release(&text);
    return result;
}

static double metric(const char *folder, const char *name)
{
    struct err err = {0};
    const cJSON *m = NULL;
    cJSON *result = result_of(folder);
    double value = (double)NAN;

    if (json_get_object(json_member(result, "metrics"), name, &m, &err) < 0 ||
        json_get_number(m, "value", &value, &err) < 0)
        fail_msg("%s", err.msg);
    cJSON_Delete(result);
    return value;
}

static double fact(const char *folder, const char *name)
{
    struct err err = {0};
    cJSON *result = result_of(folder);
    double value = (double)NAN;

    if (json_get_number(json_member(result, "facts"), name, &value, &err) < 0)
        fail_msg("%s", err.msg);
    cJSON_Delete(result);
    return value;
}

/* Mean loss of a sentence under the finished model, read back as an evaluation does. */
static double sentence_loss(const char *folder, const char *text)
{
    struct err err = {0};
    struct tokenizer *tok = NULL;
    struct model *m = NULL;
    struct token_list list = {0};

    assert_int_equal(tokenizer_open(TOKENIZER_BYTES, &tok, &err), 0);
    if (model_open(folder, &m, &err) < 0)
        fail_msg("%s", err.msg);
    assert_int_equal(tokenizer_encode(tok, text, strlen(text), &list, &err), 0);
    struct score_request r = {.tokens = list.ids, .n = list.n, .first = 1};
    assert_int_equal(model_score_all(m, &r, 1, NULL, &err), 0);
    model_free(m);
    tokenizer_free(tok);
    double mean = -r.sum / (double)(list.n - 1);
    token_list_release(&list);
    return mean;
}

/* Whether a finished model may be opened is known before any of it is. */
static void check_opening(const char *folder)
{
    struct err err = {0};

    assert_int_equal(model_check_memory(folder, 0, true, 0, &err), 0);
    assert_int_equal(model_check_memory(folder, 0, false, 1 << 26, &err), 0);
    assert_int_equal(model_check_memory(folder, 0, false, 1 << 17, &err), ERR_USAGE);
    assert_non_null(strstr(err.msg, "the task may use 0.1 MiB"));
    assert_int_equal(model_check_memory("/nowhere", 0, false, 1 << 26, &err), ERR_NOT_FOUND);
}

static void test_learns(void **state)
{
    struct fixture *f = *state;
    cJSON *params = fixture_params(SMALL);
    const char *folder = fixture_attempt(f, params, -1.0);
    struct attempt_end end = fixture_run(folder, 0, 0);

    if (end.code != 0)
        fail_msg("exit %d: %s", end.code, end.err.buf);
    double loss = metric(folder, "val_loss");
    print_message("  validation loss %.3f nats, uniform %.3f\n", loss, log(257.0));
    assert_true(loss > 0.1 && loss < 1.6);
    double bits = metric(folder, "val_bits_per_byte:a");
    assert_true(fabs(bits / (metric(folder, "val_loss:a") / log(2.0)) - 1.0) < 0.02);
    assert_true(fabs(0.7 * metric(folder, "val_loss:a") + 0.3 * metric(folder, "val_loss:b") -
                     loss) < 1e-12);
    assert_true(sentence_loss(folder, "the cat sees a red ball.") + 0.5 <
                sentence_loss(folder, "ehtt ac eses dre alb l.a"));
    check_opening(folder);
    attempt_end_release(&end);
    cJSON_Delete(params);
}

/* The same task gives the same bytes; another seed gives others. */
static void test_is_deterministic(void **state)
{
    struct fixture *f = *state;
    cJSON *params = fixture_params(SMALL);
    cJSON *tokens = cJSON_GetObjectItemCaseSensitive(json_member(params, "horizon"), "tokens");
    struct strbuf model[3];

    cJSON_SetNumberHelper(tokens, tokens->valuedouble / (double)sparse_part());
    for (int i = 0; i < 3; i++) {
        if (i == 2)
            cJSON_SetNumberHelper(cJSON_GetObjectItemCaseSensitive(params, "seed"), 4);
        const char *folder = fixture_attempt(f, params, -1.0);
        struct attempt_end end = fixture_run(folder, 0, 0);
        assert_int_equal(end.code, 0);
        model[i] = fixture_file(folder, "model/model.bin");
        attempt_end_release(&end);
        fixture_forget(f);
    }
    assert_memory_equal(model[0].buf, model[1].buf, model[0].len);
    assert_memory_not_equal(model[0].buf, model[2].buf, model[0].len);
    for (int i = 0; i < 3; i++)
        strbuf_release(&model[i]);
    cJSON_Delete(params);
}

static void check_end(struct fixture *f, const char *params_text, int code, const char *says)
{
    cJSON *params = fixture_params(params_text);
    const char *folder = fixture_attempt(f, params, -1.0);
    struct attempt_end end = fixture_run(folder, 0, 0);
    char *result = path_join(folder, "result.json");

    if (end.code != code || strstr(end.err.buf, says) == NULL)
        fail_msg("%s: exit %d, expected %d with \"%s\": %s", params_text, end.code, code, says,
                 end.err.buf);
    assert_int_equal(file_kind_at(result), FILE_ABSENT);
    free(result);
    attempt_end_release(&end);
    cJSON_Delete(params);
    fixture_forget(f);
}

#define HEAD                                                                                       \
    "{'layers':1,'width':32,'heads':2,'ffn':48,'context':64,'batch_tokens':512,'seed':3,"          \
    "'horizon':{'contract':'fixed','tokens':60000},"

static void write_text(const char *path, const char *text)
{
    struct err err = {0};

    assert_int_equal(file_write_atomic(path, text, strlen(text), 0644, &err), 0);
}

/* A tokenizer of three words. */
#define WORDS                                                                                      \
    "{\"pre_tokenizer\":{\"type\":\"ByteLevel\",\"add_prefix_space\":false},\"model\":{"           \
    "\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":1,\"</s>\":2},\"merges\":[]}}"

/* That lr is missing follows from the misspelled name, and is not a second fault. */
static void test_misspelled_parameter(void **state)
{
    struct fixture *f = *state;
    cJSON *params = fixture_params(HEAD "'mix':{'a':1},'lrr':0.001}");
    struct attempt_end end = fixture_run(fixture_attempt(f, params, -1.0), 0, 0);
    assert_int_equal(end.code, 64);
    assert_non_null(strstr(end.err.buf, "params.lrr: unknown parameter; did you mean \"lr\"?"));
    assert_null(strstr(end.err.buf, "is required"));
    attempt_end_release(&end);
    cJSON_Delete(params);
}

static void test_bad_parameters(void **state)
{
    struct fixture *f = *state;
    check_end(f, HEAD "'mix':{'a':1}}", 64, "params.lr: is required");
    check_end(f, HEAD "'mix':{'a':1},'lr':0.001,'weigth_decay':0}", 64, "weight_decay");
    check_end(f, HEAD "'mix':{'c':1},'lr':0.001}", 64, "not one of the program's data");
    check_end(f, HEAD "'mix':{'a':1},'lr':0.001,'tokenizer':'b','vocab':300}", 65, "tokenizer");
    write_text(f->corpus_b, WORDS);
    check_end(f, HEAD "'mix':{'a':1},'lr':0.001,'tokenizer':'b','vocab':2}", 64,
              "vocab 2 is under the 3 of tokenizer \"b\"");
}

/* The task itself: absent, not JSON, or a link to itself, at which the kernel fails as at a bad
 * disk: that is tried again. */
static void test_unreadable_task(void **state)
{
    static const struct {
        const char *text;
        bool loop;
        int code;
    } cases[] = {{NULL, false, 65}, {"{", false, 65}, {NULL, true, 1}};
    struct fixture *f = *state;
    cJSON *params = fixture_params(SMALL);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const char *folder = fixture_attempt(f, params, -1.0);
        char *task = path_join(folder, "task.json");
        assert_int_equal(remove(task), 0);
        if (cases[i].text != NULL)
            write_text(task, cases[i].text);
        if (cases[i].loop)
            assert_int_equal(symlink("task.json", task), 0);
        struct attempt_end end = fixture_run(folder, 0, 0);
        if (end.code != cases[i].code)
            fail_msg("case %zu: exit %d, expected %d: %s", i, end.code, cases[i].code, end.err.buf);
        assert_non_null(strstr(end.err.buf, "task.json"));
        attempt_end_release(&end);
        free(task);
        fixture_forget(f);
    }
    cJSON_Delete(params);
}

static void test_bad_data(void **state)
{
    struct fixture *f = *state;
    struct err err = {0};
    static const char params[] = HEAD "'mix':{'a':1},'lr':0.001}";

    write_text(f->corpus, "{\"text\": \"fine\"}\n{\"txet\": \"not\"}\n");
    check_end(f, params, 65, "line 2");
    write_text(f->corpus, "{\"text\": \"too short\"}\n{\"text\": \"really\"}\n");
    check_end(f, params, 65, "training tokens");
    assert_int_equal(dir_remove(f->corpus, &err), 0);
    check_end(f, params, 65, "corpus.jsonl");
    write_text(f->corpus_b, "abc \xff\xfe def");
    check_end(f, HEAD "'mix':{'b':1},'lr':0.001}", 65, "not UTF-8");
}

/* A shard of five documents, by the tokenizer "bytes". */
static void make_shard(const char *path)
{
    struct err err = {0};
    struct tokenizer *tok = NULL;
    struct corpus c;
    char text[512];

    corpus_init(&c);
    assert_int_equal(tokenizer_open(TOKENIZER_BYTES, &tok, &err), 0);
    for (int i = 0; i < 40; i++) {
        memset(text, 'a' + i % 26, sizeof(text));
        assert_int_equal(corpus_add(&c, tok, text, 100 + 10 * (size_t)i, &err), 0);
    }
    assert_int_equal(shard_write(path, &c, tok, "a", &err), 0);
    corpus_release(&c);
    tokenizer_free(tok);
}

/* A packed shard that is short, changed, or of another tokenizer: 65, and it is named. */
static void test_bad_shards(void **state)
{
    struct fixture *f = *state;
    static const struct {
        size_t at; /* of the byte that is changed; 0: none */
        off_t cut; /* bytes at the end that are missing */
        const char *says;
    } cases[] = {{0, 10, "corpus.jsonl"}, {5000, 0, "corpus.jsonl"}, {50, 0, "tokenizer"}};
    struct err err = {0};

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CHECK_ROW("%s", cases[i].says);
        make_shard(f->corpus);
        struct strbuf body = fixture_file(f->folder, "corpus.jsonl");
        assert_true(body.len > 6000);
        if (cases[i].at > 0)
            body.buf[cases[i].at] ^= 1;
        body.len -= (size_t)cases[i].cut;
        assert_int_equal(file_write_atomic(f->corpus, body.buf, body.len, 0644, &err), 0);
        strbuf_release(&body);
        check_end(f, HEAD "'mix':{'a':1},'lr':0.001}", 65, cases[i].says);
    }
}

/* --describe sees the tokenizer of a shard in its header, and lines that are items of a benchmark,
 * before the run would. */
static void test_described_sources(void **state)
{
    static const char items[] = "{\"query\":\"a\",\"choices\":[\"b\",\"c\"],\"gold\":0}\n";
    static const char *const said[] = {NULL, "packed with another tokenizer",
                                       "data \\\"a\\\" is not text to train on: "};
    struct fixture *f = *state;
    const char *argv[] = {TEST_BIN_DIR "/prereg-train", "--describe", "task.json", NULL};
    struct err err = {0};
    cJSON *params = fixture_params(HEAD "'mix':{'a':1},'lr':0.001}");

    for (size_t i = 0; i < ARRAY_LEN(said); i++) {
        CHECK_ROW("%zu", i);
        make_shard(f->corpus);
        struct strbuf body = fixture_file(f->folder, "corpus.jsonl");
        body.buf[50] ^= (char)(i == 1);
        if (i == 2) {
            strbuf_clear(&body);
            strbuf_adds(&body, items);
        }
        assert_int_equal(file_write_atomic(f->corpus, body.buf, body.len, 0644, &err), 0);
        strbuf_release(&body);
        const struct proc_spec spec = {
            .argv = argv, .cwd = fixture_attempt(f, params, -1.0), .max_out_bytes = 1u << 16};
        struct proc_result r;
        assert_int_equal(proc_run(&spec, &r, &err), 0);
        assert_int_equal(r.code, 0); /* faults are in the answer */
        assert_int_equal(strstr(r.out.buf, "\"errors\":[]") != NULL, i == 0);
        assert_true(i == 0 || strstr(r.out.buf, said[i]) != NULL);
        proc_result_release(&r);
    }
    cJSON_Delete(params);
}

/* A digest in the task that is not that of the data: what was locked is not what lies there. */
static void test_drifted_data(void **state)
{
    struct fixture *f = *state;
    struct err err = {0};
    cJSON *task = NULL;

    cJSON *params = fixture_params(HEAD "'mix':{'a':1},'lr':0.001}");
    const char *folder = fixture_attempt(f, params, -1.0);
    char *path = path_join(folder, "task.json");
    assert_int_equal(json_read_file(path, 1 << 20, &task, &err), 0);
    cJSON *a =
        cJSON_GetObjectItemCaseSensitive(cJSON_GetObjectItemCaseSensitive(task, "data"), "a");
    json_put_string(a, "sha256",
                    "00000000000000000000000000000000000000000000000000000000000000aa");
    assert_int_equal(json_write_file(path, task, 0644, &err), 0);
    struct attempt_end end = fixture_run(folder, 0, 0);
    assert_int_equal(end.code, 65);
    assert_non_null(strstr(end.err.buf, "not what was locked"));
    attempt_end_release(&end);
    cJSON_Delete(task);
    cJSON_Delete(params);
    free(path);
}

static void test_divergence_names_step_and_tensor(void **state)
{
    struct fixture *f = *state;
    check_end(f, HEAD "'mix':{'a':1},'lr':1e25}", 69, "step ");
    check_end(f, HEAD "'mix':{'a':1},'lr':1e25}", 69, "model.");
}

/* A run that diverges late keeps what it wrote before: whole, finite, and found again. */
static void test_divergence_keeps_the_checkpoint(void **state)
{
    struct fixture *f = *state;

    cJSON *params = fixture_params(HEAD "'mix':{'a':1},'clip':0,'weight_decay':0,'lr':1e18,"
                                        "'schedule':{'warmup':1.0}}");
    const char *first = fixture_attempt(f, params, 0.0);
    struct attempt_end end = fixture_run(first, 0, 0);
    assert_int_equal(end.code, 69);
    assert_non_null(strstr(end.err.buf, "not finite"));
    char broke[64]; /* the step after the last one that the events tell of */
    (void)snprintf(broke, sizeof(broke),
                   "step %d: ", fixture_events_count(first, "\"name\":\"loss\"") + 1);
    assert_non_null(strstr(end.err.buf, broke));
    attempt_end_release(&end);
    int kept = fixture_events_count(first, "\"checkpoint\",\"step\"");
    assert_true(kept > 0);
    const char *second = fixture_attempt(f, params, 0.0);
    end = fixture_run(second, 0, 0);
    assert_int_equal(end.code, 69);
    assert_int_equal(fixture_events_count(second, "\"resumed\""), 1);
    assert_int_equal(fixture_events_count(second, "skipped"), 0);
    attempt_end_release(&end);
    cJSON_Delete(params);
}

/* The curve's value at a step, NaN without one. */
static double point(const char *folder, const char *name, int step)
{
    char *text =
        xasprintf("{\"type\":\"point\",\"step\":%d,\"name\":\"%s\",\"value\":", step, name);
    struct strbuf events = fixture_file(folder, "events.jsonl");
    const char *at = strstr(events.buf, text);
    double value = at == NULL ? (double)NAN : strtod(at + strlen(text), NULL);

    strbuf_release(&events);
    free(text);
    return value;
}

static const char *run_whole(struct fixture *f, const char *text)
{
    cJSON *params = fixture_params(text);
    const char *folder = fixture_attempt(f, params, -1.0);
    struct attempt_end end = fixture_run(folder, 0, 0);

    if (end.code != 0)
        fail_msg("exit %d: %s", end.code, end.err.buf);
    attempt_end_release(&end);
    cJSON_Delete(params);
    return folder;
}

#define SHORT                                                                                      \
    "{'layers':1,'width':32,'heads':2,'ffn':48,'context':64,'batch_tokens':512,'seed':3,"          \
    "'lr':0.003,'val_tokens':1024,'horizon':{'contract':'fixed','tokens':19456}," /* 38 steps */

/* eval_every alone gives a curve of the validation loss; marks are its values at round(fraction x
 * 38). */
static void test_marks_and_the_curve(void **state)
{
    struct fixture *f = *state;
    static const struct {
        const char *metric;
        int step;
    } marks[] = {{"val_loss@0.01", 0},
                 {"val_loss@0.2", 8},
                 {"val_loss@0.46", 17},
                 {"val_loss@0.5", 19},
                 {"val_loss", 38}};

    const char *folder =
        run_whole(f, SHORT "'mix':{'a':0.7,'b':0.3},'eval_every':1,'marks':[0.01,0.2,0.46,0.5]}");
    for (size_t i = 0; i < ARRAY_LEN(marks); i++) {
        CHECK_ROW("%s", marks[i].metric);
        assert_true(metric(folder, marks[i].metric) - point(folder, "val_loss", marks[i].step) ==
                    0.0);
    }
    assert_true(metric(folder, "val_loss:b") - point(folder, "val_loss:b", 38) == 0.0);
    fixture_forget(f);
    folder = run_whole(f, SHORT "'mix':{'a':1},'eval_every':10}");
    for (int step = 1; step <= 38; step++)
        assert_int_equal(isfinite(point(folder, "val_loss", step)), step % 10 == 0 || step == 38);
    fixture_forget(f);
    folder = run_whole(f, SHORT "'mix':{'a':1}}");
    assert_int_equal(fixture_events_count(folder, "\"val_loss\""), 0);
}

/* What `preregctl logs` shows of a training; a sealed loss is not in it. */
static void test_log_lines(void **state)
{
    struct fixture *f = *state;
    struct log_line line = {.steps = 5000, .batch_tokens = 2048, .first_step = 100};
    char text[LOG_LINE_SIZE];

    log_line_text(&line, 600, 3.21234, 250.0, text, sizeof(text));
    assert_string_equal(text, "step 600 of 5000  loss 3.2123  4096 tokens/s  36 min 40 s left");
    line.sealed = true;
    log_line_text(&line, 5000, 3.21234, 2450.0, text, sizeof(text));
    assert_string_equal(text, "step 5000 of 5000  4096 tokens/s  0.0 s left");
    for (int sealed = 0; sealed < 2; sealed++) {
        cJSON *params = fixture_params(SHORT "'mix':{'a':1}}");
        const char *folder = fixture_attempt(f, params, -1.0);
        char *path = path_join(folder, "task.json");
        struct err err = {0};
        cJSON *task = NULL;
        assert_int_equal(json_read_file(path, 1 << 20, &task, &err), 0);
        json_put_bool(task, "sealed", sealed == 1);
        assert_int_equal(json_write_file(path, task, 0644, &err), 0);
        struct attempt_end end = fixture_run(folder, 0, 0);
        assert_int_equal(end.code, 0);
        assert_non_null(strstr(end.err.buf, "step 38 of 38  "));
        assert_int_equal(strstr(end.err.buf, "loss") != NULL, sealed == 0);
        attempt_end_release(&end);
        cJSON_Delete(task);
        cJSON_Delete(params);
        free(path);
        fixture_forget(f);
    }
}

/* Writes which metrics the plan seals into the attempt's task.json; NULL: all, as an earlier daemon
 * says it. */
static void seal(const char *folder, const char *metric)
{
    char *path = path_join(folder, "task.json");
    struct err err = {0};
    cJSON *task = NULL;
    assert_int_equal(json_read_file(path, 1 << 20, &task, &err), 0);
    json_put_bool(task, "sealed", true);
    if (metric != NULL) {
        cJSON *list = json_array();
        json_push_string(list, metric);
        json_put(task, "sealed_metrics", list);
    }
    assert_int_equal(json_write_file(path, task, 0644, &err), 0);
    cJSON_Delete(task);
    free(path);
}

/* No point of a metric that the plan seals is in the events, nor one that gives it away; the result
 * has it all the same. */
static void test_sealed_points(void **state)
{
    struct fixture *f = *state;
    static const struct {
        const char *metric;
        int validation; /* curves of it that are reported */
        int training;
    } rows[] = {{"val_loss", 0, 1},    {"val_loss@0.2", 0, 1}, {"val_bits_per_byte:a", 0, 1},
                {"target_step", 0, 1}, {"train_loss", 1, 0},   {"other", 1, 1},
                {NULL, 0, 0}};

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        CHECK_ROW("%s", rows[i].metric == NULL ? "all" : rows[i].metric);
        cJSON *params = fixture_params(SHORT "'mix':{'a':0.7,'b':0.3},'eval_every':10}");
        const char *folder = fixture_attempt(f, params, -1.0);
        seal(folder, rows[i].metric);
        struct attempt_end end = fixture_run(folder, 0, 0);
        assert_int_equal(end.code, 0);
        assert_int_equal(isfinite(point(folder, "val_loss", 10)), rows[i].validation);
        assert_int_equal(isfinite(point(folder, "val_loss:b", 38)), rows[i].validation);
        assert_int_equal(isfinite(point(folder, "loss", 38)), rows[i].training);
        assert_true(isfinite(metric(folder, "val_loss")));
        assert_int_equal(fixture_events_count(folder, "the plan seals"),
                         rows[i].validation && rows[i].training ? 0 : 1);
        attempt_end_release(&end);
        cJSON_Delete(params);
        fixture_forget(f);
    }
}

static int first_at_or_under(const char *folder, double target, int every)
{
    for (int step = every; step <= 38; step += every)
        if (point(folder, "val_loss", step) <= target)
            return step;
    return -1;
}

/* The first evaluated step at or under the target: the run goes on, or stops, or never gets there.
 */
static void test_target(void **state)
{
    struct fixture *f = *state;

    const char *folder =
        run_whole(f, SHORT "'mix':{'a':1},'target_loss':4.5,'eval_every':3,'marks':[0.5]}");
    int reached = first_at_or_under(folder, 4.5, 3);
    print_message("  reached at step %d\n", reached);
    assert_true(reached > 3 && reached < 30);
    assert_true(metric(folder, "target_step") == (double)reached);
    assert_true(fact(folder, "steps") == 38.0);
    fixture_forget(f);

    folder = run_whole(f, SHORT "'mix':{'a':1},'target_loss':4.5,'eval_every':3,"
                                "'stop_at_target':true,'marks':[1.0]}");
    assert_true(metric(folder, "target_step") == (double)reached);
    assert_true(fact(folder, "steps") == (double)reached);
    assert_true(metric(folder, "val_loss") - point(folder, "val_loss", reached) == 0.0);
    struct strbuf text = fixture_file(folder, "result.json");
    assert_non_null(strstr(text.buf, "stopped_at_target"));
    strbuf_release(&text);
    fixture_forget(f);

    folder = run_whole(f, SHORT "'mix':{'a':1},'target_loss':0.01,'eval_every':3}");
    text = fixture_file(folder, "result.json");
    assert_non_null(strstr(text.buf, "not_reached"));
    assert_non_null(strstr(text.buf, ">38"));
    strbuf_release(&text);
}

/* A SIGTERM that was there before the worker was: 75, and no step is made. */
static void test_stop_asked_before_the_start(void **state)
{
    struct fixture *f = *state;
    cJSON *params = fixture_params(SMALL);
    const char *folder = fixture_attempt(f, params, -1.0);
    struct attempt_end end = fixture_run_unwanted(folder);

    assert_int_equal(end.signal, 0);
    assert_int_equal(end.code, 75);
    assert_int_equal(fixture_events_count(folder, "\"progress\""), 0);
    attempt_end_release(&end);
    cJSON_Delete(params);
}

/* Asked to stop right after a checkpoint: that one is not taken away to be written again. */
static void test_stop_keeps_the_checkpoint(void **state)
{
    struct fixture *f = *state;
    cJSON *params = fixture_params(SMALL);
    const char *folder = fixture_attempt(f, params, 0.0); /* a checkpoint after every step */
    struct attempt_end end = fixture_run_until(folder, "\"checkpoint\",\"step\"", 3, SIGTERM);

    assert_int_equal(end.code, 75);
    /* Each is of another step, so none was written twice. */
    struct strbuf events = fixture_file(folder, "events.jsonl");
    long before = 0;
    for (const char *at = events.buf; (at = strstr(at, "\"checkpoint\",\"step\":")) != NULL; at++) {
        long step = strtol(at + sizeof("\"checkpoint\",\"step\":") - 1, NULL, 10);
        assert_true(step > before);
        before = step;
    }
    strbuf_release(&events);
    attempt_end_release(&end);
    cJSON_Delete(params);
}

/* Runs the parameters with a limit on memory and checkpoints after every step. */
static struct attempt_end run_limited(struct fixture *f, const cJSON *params, double mib,
                                      const char **folder)
{
    struct err err = {0};
    cJSON *task = NULL;

    *folder = fixture_attempt(f, params, 0.0);
    char *path = path_join(*folder, "task.json");
    assert_int_equal(json_read_file(path, 1 << 20, &task, &err), 0);
    json_put_int(task, "memory_bytes", (int64_t)(mib * 0x1p20));
    assert_int_equal(json_write_file(path, task, 0644, &err), 0);
    struct attempt_end end = fixture_run(*folder, 0, 0);
    cJSON_Delete(task);
    free(path);
    return end;
}

static const char LEAST[] = "the run needs at least ";

/* MiB that the worker says it needs; NaN when it says nothing. */
static double least_of(const struct attempt_end *end)
{
    const char *at = strstr(end->err.buf, LEAST);

    return at == NULL ? (double)NAN : strtod(at + sizeof(LEAST) - 1, NULL);
}

/* Less than a run takes is refused before any work, with both amounts; with just that much it runs,
 * but the steps wait for its checkpoints; with plenty they do not. */
static void test_too_little_memory(void **state)
{
    struct fixture *f = *state;
    const char *folder;

    cJSON *params = fixture_params(SHORT "'mix':{'a':1}}");
    struct attempt_end end = run_limited(f, params, 1.0, &folder);
    assert_int_equal(end.code, 64);
    assert_non_null(strstr(end.err.buf, "the task may use 1.0 MiB"));
    double least = least_of(&end);
    assert_true(isfinite(least));
    attempt_end_release(&end);
    for (int plenty = 0; plenty < 2; plenty++) {
        fixture_forget(f);
        end = run_limited(f, params, plenty ? 1000.0 : least + 0.06, &folder);
        if (end.code != 0)
            fail_msg("exit %d: %s", end.code, end.err.buf);
        assert_int_equal(fixture_events_count(folder, "no room for a copy"), !plenty);
        assert_true(fixture_events_count(folder, "\"checkpoint\",\"step\"") > 0);
        attempt_end_release(&end);
    }
    cJSON_Delete(params);
}

#define WIDE                                                                                       \
    "{'layers':1,'width':64,'heads':2,'ffn':64,'vocab':131072,'context':16,'batch_tokens':16,"     \
    "'seed':3,'lr':0.003,'val_tokens':16,'horizon':{'contract':'fixed','tokens':32},'mix':{'a':1}" \
    "}"

/* What a run takes at its peak, while the model is written, is no more than what was said before
 * it began, and not much less. */
static void test_memory_is_foreseen(void **state)
{
    struct fixture *f = *state;
    const char *folder;

    if (SANITIZED) {
        print_message("  skipped: a sanitizer's memory is not the run's\n");
        skip();
    }
    cJSON *params = fixture_params(WIDE);
    struct attempt_end end = run_limited(f, params, 1.0, &folder);
    double least = least_of(&end);
    attempt_end_release(&end);
    fixture_forget(f);
    end = run_limited(f, params, least + 0.06, &folder);
    if (end.code != 0)
        fail_msg("exit %d: %s", end.code, end.err.buf);
    double peak = fact(folder, "peak_rss_bytes") / 0x1p20;
    print_message("  %.1f MiB said, %.1f MiB taken\n", least, peak);
    assert_true(peak <= least && peak > 0.85 * least);
    attempt_end_release(&end);
    cJSON_Delete(params);
}

/* What it prints and cannot deliver is an error. */
static void test_full_output(void **state)
{
    (void)state;
    static const char *const argv[] = {
        "/bin/sh", "-c", "exec " TEST_BIN_DIR "/prereg-train --help >/dev/full", NULL};
    struct proc_spec spec = {.argv = argv, .timeout_ms = 30000, .max_out_bytes = 4096};
    struct proc_result result;
    struct err err = {0};

    if (proc_run(&spec, &result, &err) < 0)
        fail_msg("%s", err.msg);
    assert_int_equal(result.code, 1);
    assert_non_null(strstr(result.err.buf, "standard output"));
    proc_result_release(&result);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(test_learns),
        fixture_test(test_is_deterministic),
        fixture_test(test_bad_parameters),
        fixture_test(test_misspelled_parameter),
        fixture_test(test_unreadable_task),
        fixture_test(test_bad_data),
        fixture_test(test_bad_shards),
        fixture_test(test_described_sources),
        fixture_test(test_drifted_data),
        fixture_test(test_divergence_names_step_and_tensor),
        fixture_test(test_divergence_keeps_the_checkpoint),
        fixture_test(test_marks_and_the_curve),
        fixture_test(test_log_lines),
        fixture_test(test_sealed_points),
        fixture_test(test_target),
        fixture_test(test_stop_asked_before_the_start),
        fixture_test(test_stop_keeps_the_checkpoint),
        fixture_test(test_too_little_memory),
        fixture_test(test_memory_is_foreseen),
        cmocka_unit_test(test_full_output),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
