/*
 * A run in two pieces: one ends at horizon.stop, another continues it with init = { run = … }.
 * Weights, metrics, facts and curves from there on are those of a run that made all steps, and
 * whatever would make it another run is refused with its name.
 */
#include <signal.h>

#include "base/files/file.h"
#include "base/json/json.h"
#include "base/xalloc.h"
#include "tests/unit/check.h"
#include "tests/unit/sparse.h"
#include "tests/unit/worker/train/fixture.h"

#define COMMON                                                                                     \
    "'layers':2,'width':32,'heads':2,'ffn':32,'context':32,'batch_tokens':256,'lr':0.003,"         \
    "'seed':3,'mix':{'a':0.7,'b':0.3},'target_loss':2.7,'eval_every':7,'val_tokens':512,"
#define DENSE COMMON
#define MIXTURE                                                                                    \
    COMMON "'dense_layers':1,'experts':96,'top_k':2,'expert_ffn':4,'micro_batch':3,"               \
           "'balance_loss':0.01,'bias_update_rate':0.01,'balance_anneal':0.5,"                     \
           "'reset_dead_experts':2,"
#define HORIZON(rest) "'horizon':{'contract':'fixed','tokens':25600" rest "}"
#define STEPS         100

/* An attempt that has to end well. */
static const char *run_well(struct fixture *f, const char *text)
{
    cJSON *params = fixture_params(text);
    const char *folder = fixture_attempt(f, params, 1e6);
    struct attempt_end end = fixture_run(folder, 0, 0);

    if (end.code != 0)
        fail_msg("exit %d: %s", end.code, end.err.buf);
    attempt_end_release(&end);
    cJSON_Delete(params);
    fixture_forget_last(f);
    return folder;
}

/* result.json without what depends on time, or on where the run began. */
static struct strbuf outcome(const char *folder)
{
    struct strbuf text = fixture_outcome(folder), out = STRBUF_INIT;
    struct err err = {0};
    cJSON *result = NULL;

    assert_int_equal(json_parse(text.buf, text.len, &result, &err), 0);
    cJSON_DeleteItemFromObjectCaseSensitive(result, "read");
    assert_int_equal(json_canonical(result, &out, &err), 0);
    cJSON_Delete(result);
    strbuf_release(&text);
    return out;
}

/* The points of curves after step `after`, line by line. */
static struct strbuf points_after(const char *folder, int after)
{
    struct strbuf events = fixture_file(folder, "events.jsonl"), out = STRBUF_INIT;
    char *rest = events.buf;

    for (char *line = strtok_r(rest, "\n", &rest); line != NULL;
         line = strtok_r(NULL, "\n", &rest)) {
        const char *step = strstr(line, "\"step\":");
        if (strstr(line, "\"type\":\"point\"") != NULL && step != NULL &&
            strtol(step + sizeof("\"step\":") - 1, NULL, 10) > after)
            strbuf_addf(&out, "%s\n", line);
    }
    strbuf_release(&events);
    return out;
}

static cJSON *member_of(const char *folder, const char *name)
{
    struct strbuf text = fixture_file(folder, "result.json");
    struct err err = {0};
    cJSON *result = NULL;

    assert_int_equal(json_parse(text.buf, text.len, &result, &err), 0);
    cJSON *member = json_copy(json_member(result, name));
    cJSON_Delete(result);
    strbuf_release(&text);
    return member;
}

static cJSON *metrics_of(const char *folder)
{
    return member_of(folder, "metrics");
}

static double value_of(const cJSON *metrics, const char *name)
{
    return json_member(json_member(metrics, name), "value")->valuedouble;
}

static void assert_same_text(struct strbuf a, struct strbuf b)
{
    assert_true(a.len > 0);
    assert_string_equal(a.buf, b.buf);
    strbuf_release(&a);
    strbuf_release(&b);
}

static void assert_same_run(const char *whole, const char *continued, int from)
{
    struct strbuf a = fixture_file(whole, "model/model.bin");
    struct strbuf b = fixture_file(continued, "model/model.bin");

    assert_true(a.len == b.len && memcmp(a.buf, b.buf, a.len) == 0);
    strbuf_release(&a);
    strbuf_release(&b);
    assert_same_text(outcome(whole), outcome(continued));
    assert_same_text(points_after(whole, from), points_after(continued, from));
}

/* In two pieces and in three. 0.07 is a step that is evaluated without a mark too. */
static void check_pieces(struct fixture *f, const char *model)
{
    char *whole = xasprintf("{%s" HORIZON("") ",'marks':[0.1,0.5,1]}", model);
    char *first = xasprintf("{%s" HORIZON(",'stop':0.3") ",'marks':[0.07,0.1]}", model);
    char *second = xasprintf("{%s" HORIZON(",'stop':0.6") ",'marks':[0.1,0.5],"
                                                          "'init':{'run':'earlier'}}",
                             model);
    char *last =
        xasprintf("{%s" HORIZON("") ",'marks':[0.1,0.5,1],'init':{'run':'earlier'}}", model);
    const char *reference = run_well(f, whole);

    f->earlier = run_well(f, first);
    assert_same_run(reference, run_well(f, last), 30);
    f->earlier = run_well(f, second);
    assert_same_run(reference, run_well(f, last), 60);
    free(whole);
    free(first);
    free(second);
    free(last);
}

/* Sanitized, only the mixture, which does the same and more. */
static void test_dense(void **state)
{
    if (sparse_part() == 1)
        check_pieces(*state, DENSE);
}

static void test_mixture(void **state)
{
    check_pieces(*state, MIXTURE);
}

/* The second piece is stopped or killed on the way, and resumes from its own checkpoint. */
static void check_killed(struct fixture *f, const char *model, int signo)
{
    char *all = xasprintf("{%s" HORIZON("") "}", model);
    char *first = xasprintf("{%s" HORIZON(",'stop':0.3") "}", model);
    char *rest = xasprintf("{%s" HORIZON("") ",'init':{'run':'earlier'}}", model);
    const char *whole = run_well(f, all);
    f->earlier = run_well(f, first);
    cJSON *params = fixture_params(rest);
    const char *killed = fixture_attempt(f, params, 0.0);
    struct attempt_end end = fixture_run_until(killed, "\"type\":\"checkpoint\"", 2, signo);

    /* Done before it was told, on a busy machine. */
    assert_true(end.code == 0 || end.code == 75 || end.signal == signo);
    attempt_end_release(&end);
    const char *resumed = fixture_attempt(f, params, 1e6);
    end = fixture_run(resumed, 0, 0);
    assert_int_equal(end.code, 0);
    attempt_end_release(&end);
    assert_int_equal(fixture_events_count(resumed, "\"resumed\""), 1);
    assert_same_run(whole, resumed, STEPS - 1);
    cJSON_Delete(params);
    free(all);
    free(first);
    free(rest);
}

static void test_killed(void **state)
{
    check_killed(*state, DENSE, SIGTERM);
}

static void test_muon_killed(void **state)
{
    check_killed(*state, MIXTURE "'optimizer':'muon',", SIGKILL);
}

/* Sanitized, only muon: both are killed and resumed in the same way. */
static void test_sgd_killed(void **state)
{
    if (sparse_part() == 1)
        check_killed(*state, MIXTURE "'optimizer':'sgd','nesterov':true,", SIGKILL);
}

static void test_refusals(void **state)
{
    struct fixture *f = *state;
    static const struct {
        const char *params, *why;
    } cases[] = {
        {"{" DENSE HORIZON("") ",'clip':2,'init':{'run':'earlier'}}",
         "params.clip: the earlier run has absent, this one 2"},
        {"{" DENSE HORIZON("") ",'optimizer':'muon','init':{'run':'earlier'}}",
         "params.optimizer: the earlier run has absent, this one \"muon\""},
        {"{" DENSE "'horizon':{'contract':'fixed','tokens':30720},'init':{'run':'earlier'}}",
         "params.horizon: the earlier run has {\"contract\":\"fixed\",\"tokens\":25600}"},
        {"{" DENSE HORIZON(",'stop':0.3") ",'init':{'run':'earlier'}}",
         "the earlier run is at step 30, this one ends at step 30"},
        {"{" DENSE HORIZON("") ",'marks':[0.15],'init':{'run':'earlier'}}",
         "params.marks: 0.15 was not a mark of the earlier run"},
        {"{" DENSE HORIZON("") ",'marks':[0.1],'init':{'run':'earlier'}}",
         "params.marks: the earlier run has the mark 0.2, this one does not"},
        {"{" DENSE HORIZON("") ",'snapshots':[0.2],'init':{'run':'earlier'}}",
         "params.snapshots: 0.2 is the earlier run's to leave"},
        {"{" DENSE HORIZON(",'stop':0.5") ",'snapshots':[0.6]}", "params.snapshots: 0.6 is after"},
        {"{" DENSE HORIZON("") ",'snapshots':[0.6,0.5]}", "expected rising fractions"},
        {"{" DENSE HORIZON("") ",'init':{'run':'a'}}", "no run that can be continued"},
        {"{" DENSE HORIZON("") ",'init':{'run':'nowhere'}}", "not one of the program's data"},
        {"{" DENSE HORIZON("") ",'init':{'rum':'a'}}", "did you mean \"run\""},
        {"{" MIXTURE HORIZON(",'stop':0.95") "}", "with experts at most 0.9, or 1"},
        {"{" DENSE HORIZON(",'stop':0.5") ",'marks':[0.6]}", "0.6 is after horizon.stop = 0.5"},
        {"{" DENSE HORIZON(",'stop':0.004") "}", "less than one step"},
    };

    f->earlier = run_well(f, "{" DENSE HORIZON(",'stop':0.3") ",'marks':[0.1,0.2]}");
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CHECK_ROW("%s", cases[i].why);
        cJSON *params = fixture_params(cases[i].params);
        struct attempt_end end = fixture_run(fixture_attempt(f, params, 1e6), 0, 0);
        assert_true(end.code == 64 || end.code == 65 || end.code == 1);
        if (strstr(end.err.buf, cases[i].why) == NULL)
            fail_msg("%s", end.err.buf);
        attempt_end_release(&end);
        cJSON_Delete(params);
    }
}

/* A file of it that was altered, and text that was not the earlier run's. */
static void test_other_bytes(void **state)
{
    struct fixture *f = *state;
    struct err err = {0};

    f->earlier = run_well(f, "{" DENSE HORIZON(",'stop':0.3") "}");
    cJSON *params = fixture_params("{" DENSE HORIZON("") ",'init':{'run':'earlier'}}");
    char *run = path_join(f->earlier, "run"), *weights = path_join(run, "weights.bin");
    for (int i = 0; i < 2; i++) {
        struct strbuf body = fixture_file(run, "weights.bin");
        body.buf[body.len / 2] ^= 1;
        assert_int_equal(file_write_atomic(weights, body.buf, body.len, 0644, &err), 0);
        strbuf_release(&body);
        if (i == 1)
            assert_int_equal(
                file_write_atomic(f->corpus_b, "a b c d e f g h i j k l m n o p\n", 32, 0644, &err),
                0);
        struct attempt_end end = fixture_run(fixture_attempt(f, params, 1e6), 0, 0);
        assert_int_equal(end.code, 65);
        if (i == 0)
            assert_non_null(strstr(end.err.buf, "weights.bin is not what the manifest says"));
        attempt_end_release(&end);
    }
    free(run);
    free(weights);
    cJSON_Delete(params);
}

#define VALIDATED                                                                                  \
    "{'layers':2,'width':32,'heads':2,'dense_layers':1,'ffn':32,'experts':8,'top_k':2,"            \
    "'expert_ffn':8,'context':32,'batch_tokens':256,'lr':0.003,'seed':3,'mix':{'a':1},"            \
    "'validation':'b','eval_every':20,'val_tokens':512,"

static void assert_model(const char *a, const char *b, bool same)
{
    struct strbuf x = fixture_file(a, "model/model.bin"), y = fixture_file(b, "model/model.bin");

    assert_int_equal(x.len == y.len && memcmp(x.buf, y.buf, x.len) == 0, same);
    strbuf_release(&x);
    strbuf_release(&y);
}

/* Losses are those of the text, which is part of the run's identity and never of its weights. */
static void test_validation_text(void **state)
{
    struct fixture *f = *state;
    struct err err = {0};
    const char *whole = run_well(f, VALIDATED HORIZON("") ",'marks':[0.5]}");
    cJSON *metrics = metrics_of(whole);

    assert_true(value_of(metrics, "val_loss") == value_of(metrics, "val_loss:b"));
    assert_true(value_of(metrics, "val_loss@0.5") == value_of(metrics, "val_loss:b@0.5"));
    assert_null(json_member(metrics, "val_loss:a"));
    cJSON *read = member_of(whole, "read");
    assert_true(cJSON_IsString(json_member(read, "a")) && cJSON_IsString(json_member(read, "b")));
    cJSON_Delete(read);

    f->earlier = run_well(f, VALIDATED HORIZON(",'stop':0.3") "}");
    const char *rest = VALIDATED HORIZON("") ",'marks':[0.5],'init':{'run':'earlier'}}";
    assert_same_run(whole, run_well(f, rest), 30);

    /* Another text: the same weights, other losses, and no run that goes on from this one. */
    cJSON *params = fixture_params(VALIDATED HORIZON("") ",'marks':[0.5]}");
    struct attempt_end end =
        fixture_run_until(fixture_attempt(f, params, 0.0), "\"type\":\"checkpoint\"", 1, SIGTERM);
    assert_true(end.code == 75 || end.code == 0);
    attempt_end_release(&end);
    assert_int_equal(
        file_write_atomic(f->corpus_b, "a b c d e f g h i j k l m n o p\n", 32, 0644, &err), 0);
    const char *other = fixture_attempt(f, params, 1e6);
    end = fixture_run(other, 0, 0);
    assert_int_equal(end.code, 0);
    attempt_end_release(&end);
    assert_true(fixture_events_count(other, "of another run") > 0);
    assert_int_equal(fixture_events_count(other, "\"resumed\""), 0);
    assert_model(whole, other, true);
    cJSON *others = metrics_of(other);
    assert_true(value_of(metrics, "val_loss") != value_of(others, "val_loss"));
    cJSON_Delete(params);
    params = fixture_params(rest);
    fixture_forget(f);
    end = fixture_run(fixture_attempt(f, params, 1e6), 0, 0);
    assert_int_equal(end.code, 65);
    assert_non_null(strstr(end.err.buf, "data \"b\" is not what the earlier run read"));
    attempt_end_release(&end);
    cJSON_Delete(params);
    cJSON_Delete(metrics);
    cJSON_Delete(others);
}

static void assert_same_file(const char *a, const char *name_a, const char *b, const char *name_b)
{
    struct strbuf x = fixture_file(a, name_a), y = fixture_file(b, name_b);

    assert_true(x.len == y.len && memcmp(x.buf, y.buf, x.len) == 0);
    strbuf_release(&x);
    strbuf_release(&y);
}

#define SNAPSHOTS "{" DENSE HORIZON("") ",'marks':[0.2],'snapshots':[0.3,0.6,1]}"

/* The model at a fraction is that of a run that stopped there; what is measured at it is what that
 * run measured at its end. */
static void test_snapshots(void **state)
{
    struct fixture *f = *state;
    const char *whole = run_well(f, SNAPSHOTS);
    const char *plain = run_well(f, "{" DENSE HORIZON("") ",'marks':[0.2]}");

    f->earlier = run_well(f, "{" DENSE HORIZON(",'stop':0.3") ",'snapshots':[0.3]}");
    assert_same_file(whole, "snapshot/0.3/model.bin", f->earlier, "model/model.bin");
    assert_same_file(whole, "snapshot/0.3/model.bin", f->earlier, "snapshot/0.3/model.bin");
    assert_same_file(whole, "snapshot/1/model.bin", whole, "model/model.bin");
    assert_same_file(whole, "snapshot/1/model.json", whole, "model/model.json");
    assert_same_file(whole, "model/model.bin", plain, "model/model.bin");
    const char *later = run_well(
        f, "{" DENSE HORIZON("") ",'marks':[],'snapshots':[0.3,0.6],'init':{'run':'earlier'}}");
    assert_same_file(whole, "snapshot/0.3/model.bin", later, "snapshot/0.3/model.bin");
    assert_same_file(whole, "snapshot/0.6/model.bin", later, "snapshot/0.6/model.bin");

    cJSON *a = metrics_of(whole), *b = metrics_of(f->earlier);
    static const char *const names[] = {"val_loss", "val_loss:a", "val_loss:b", "val_bits_per_byte",
                                        "val_bits_per_byte:b"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        char *at = xasprintf("%s@0.3", names[i]);
        CHECK_ROW("%s", at);
        assert_non_null(json_member(a, at));
        assert_true(json_equal(json_member(a, at), json_member(b, names[i])));
        free(at);
    }
    cJSON_Delete(a);
    cJSON_Delete(b);
}

/* An attempt that resumes behind a snapshot takes it over; one that finds it damaged goes back to
 * where it can make it again. */
static void check_adopted(struct fixture *f, bool damaged)
{
    const char *whole = run_well(f, SNAPSHOTS);
    cJSON *params = fixture_params(SNAPSHOTS);
    struct err err = {0};
    const char *killed = fixture_attempt(f, params, 0.0);
    struct attempt_end end = fixture_run_until(killed, "\"name\":\"loss\"", 45, SIGTERM);

    assert_true(end.code == 75 || end.code == 0); /* done before it was told, on a busy machine */
    attempt_end_release(&end);
    char *path = path_join(killed, "snapshot/0.3/model.bin");
    if (damaged)
        assert_int_equal(file_write_atomic(path, "x", 1, 0644, &err), 0);
    const char *resumed = fixture_attempt(f, params, 1e6);
    end = fixture_run(resumed, 0, 0);
    assert_int_equal(end.code, 0);
    attempt_end_release(&end);
    assert_int_equal(fixture_events_count(resumed, "\"resumed\""), damaged ? 0 : 1);
    assert_int_equal(fixture_events_count(resumed, "snapshot 0.3 is not whole") > 0, damaged);
    assert_same_file(whole, "snapshot/0.3/model.bin", resumed, "snapshot/0.3/model.bin");
    assert_same_run(whole, resumed, STEPS - 1);
    free(path);
    cJSON_Delete(params);
}

static void test_adopted(void **state)
{
    check_adopted(*state, false);
}

static void test_damaged_snapshot(void **state)
{
    check_adopted(*state, true);
}

/* With a tokenizer that is a file of its own. */
#define WORDS                                                                                      \
    "{" DENSE "'horizon':{'contract':'fixed','tokens':5120},"                                      \
    "'tokenizer':'words','vocab':300,'marks':[],'snapshots':[0.2]}"
#define WORDS_LATER 8 /* a step after the snapshot, at 4 of 20 */

/* Trains the tokenizer; the caller's. */
static char *make_words(struct fixture *f)
{
    char *path = path_join(f->folder, "words.json");
    char *command = xasprintf(TEST_BIN_DIR "/prereg-data tokenizer --vocab 300 --out %s %s "
                                           ">%s.log 2>&1",
                              path, f->corpus, path);

    assert_int_equal(system(command), 0); /* NOLINT: both names are ours */
    free(command);
    f->words = path;
    return path;
}

/* An attempt that ends by SIGTERM, or earlier, after the snapshot. */
static const char *run_words(struct fixture *f, const cJSON *params)
{
    const char *folder = fixture_attempt(f, params, 0.0);
    struct attempt_end end = fixture_run_until(folder, "\"name\":\"loss\"", WORDS_LATER, SIGTERM);

    assert_true(end.code == 75 || end.code == 0);
    attempt_end_release(&end);
    return folder;
}

static bool is_there(const char *folder, const char *name)
{
    char *path = path_join(folder, name);
    const bool there = file_kind_at(path) != FILE_ABSENT;

    free(path);
    return there;
}

/* What a crash leaves is the tokenizer's turn: a folder in its place keeps it from being written,
 * and model.json must not be there yet. Returns the attempt, which failed. */
static const char *run_blocked(struct fixture *f, const cJSON *params)
{
    const char *folder = fixture_attempt(f, params, 1e6);
    char *path = path_join(folder, "snapshot/0.2/tokenizer.json");
    struct err err = {0};

    assert_int_equal(dir_make(path, 0755, &err), 0);
    struct attempt_end end = fixture_run(folder, 0, 0);
    assert_true(end.code != 0 && end.signal == 0);
    attempt_end_release(&end);
    free(path);
    return folder;
}

/* Written or copied in part, a snapshot never counts as whole; files that are not its own are left
 * behind. */
static void test_half_snapshot(void **state)
{
    struct fixture *f = *state;
    char *words = make_words(f);
    cJSON *params = fixture_params(WORDS);
    struct err err = {0};

    assert_false(is_there(run_blocked(f, params), "snapshot/0.2/model.json"));
    fixture_forget_last(f);
    const char *whole = run_words(f, params);
    char *extra = path_join(whole, "snapshot/0.2/notes");
    assert_int_equal(file_write_atomic(extra, "x", 1, 0644, &err), 0);
    const char *blocked = run_blocked(f, params);
    assert_false(is_there(blocked, "snapshot/0.2/model.json"));
    fixture_forget_last(f);

    const char *copied = run_words(f, params);
    assert_int_equal(fixture_events_count(copied, "\"resumed\""), 1);
    assert_same_file(whole, "snapshot/0.2/tokenizer.json", copied, "snapshot/0.2/tokenizer.json");
    assert_false(is_there(copied, "snapshot/0.2/notes"));

    const char *const both[] = {whole, copied};
    for (size_t i = 0; i < ARRAY_LEN(both); i++) {
        char *path = path_join(both[i], "snapshot/0.2/tokenizer.json");
        assert_int_equal(dir_remove(path, &err), 0);
        free(path);
    }
    const char *again = run_words(f, params);
    assert_int_equal(fixture_events_count(again, "\"resumed\""), 0);
    assert_true(fixture_events_count(again, "snapshot 0.2 is not whole") > 0);
    assert_true(is_there(again, "snapshot/0.2/tokenizer.json"));
    free(extra);
    free(words);
    cJSON_Delete(params);
}

/* A rate that is too high for the loss to fall to the end. */
#define UNSTEADY                                                                                   \
    "'layers':2,'width':32,'heads':2,'ffn':32,'context':64,'batch_tokens':512,'lr':0.05,"          \
    "'seed':3,'mix':{'a':0.7,'b':0.3},'target_loss':2.7,'eval_every':1,'val_tokens':1024,"         \
    "'horizon':{'contract':'fixed','tokens':51200},"

/* The lowest of all evaluations, not the last one; a target that was passed between two marks. */
static void test_best_and_hits(void **state)
{
    struct fixture *f = *state;
    const char *folder =
        run_well(f, "{" UNSTEADY "'marks':[0.1,0.9],'schedule':{'kind':'constant'}}");
    struct strbuf points = points_after(folder, 0);
    cJSON *m = metrics_of(folder);
    double best = 1e9, step = -1.0;
    char *rest = points.buf;

    for (char *line = strtok_r(rest, "\n", &rest); line != NULL;
         line = strtok_r(NULL, "\n", &rest)) {
        const char *value = strstr(line, "\"value\":");
        if (strstr(line, "\"name\":\"val_loss\"") == NULL)
            continue;
        double v = strtod(value + sizeof("\"value\":") - 1, NULL);
        if (v < best) {
            best = v;
            step = strtod(strstr(line, "\"step\":") + sizeof("\"step\":") - 1, NULL);
        }
    }
    assert_true(value_of(m, "best_val_loss") == best);
    assert_true(value_of(m, "best_val_step") == step && step < STEPS);
    assert_true(value_of(m, "target_hit@0.1") == 0.0);
    assert_true(value_of(m, "target_hit@0.9") == 1.0);
    assert_true(value_of(m, "target_step") > 10 && value_of(m, "target_step") <= 90);
    strbuf_release(&points);
    cJSON_Delete(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(test_dense),
        fixture_test(test_mixture),
        fixture_test(test_killed),
        fixture_test(test_muon_killed),
        fixture_test(test_sgd_killed),
        fixture_test(test_validation_text),
        fixture_test(test_refusals),
        fixture_test(test_other_bytes),
        fixture_test(test_snapshots),
        fixture_test(test_adopted),
        fixture_test(test_damaged_snapshot),
        fixture_test(test_half_snapshot),
        fixture_test(test_best_and_hits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
