/*
 * Resumed = uninterrupted (invariant 6): the real worker is killed at random points, by SIGKILL and
 * SIGTERM, until a run gets through; model.bin, metrics and facts must be those of a run that
 * nobody disturbed. Torn checkpoints are skipped.
 */
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/files/file.h"
#include "base/json/json.h"
#include "base/rng.h"
#include "base/xalloc.h"
#include "tests/unit/check.h"
#include "tests/unit/sparse.h"
#include "tests/unit/worker/train/fixture.h"

#define DENSE                                                                                      \
    "{'layers':2,'width':32,'heads':2,'ffn':48,'context':64,'batch_tokens':512,'lr':0.003,"        \
    "'seed':3,'horizon':{'contract':'fixed','tokens':120000},'mix':{'a':0.7,'b':0.3},"             \
    "'marks':[0.25,0.5],'target_loss':2.5,'eval_every':20,'val_tokens':2048}"
#define MIXTURE                                                                                    \
    "{'layers':2,'width':32,'heads':2,'kv_heads':1,'ffn':32,'dense_layers':1,'experts':96,"        \
    "'top_k':2,'expert_ffn':4,'shared':1,'context':64,'batch_tokens':512,'micro_batch':3,"         \
    "'lr':0.003,'seed':3,'horizon':{'contract':'fixed','tokens':60000},'mix':{'a':0.7,'b':0.3},"   \
    "'balance_loss':0.01,'router_z_loss':0.001,'bias_update_rate':0.01,'balance_anneal':0.5,"      \
    "'router_noise':0.1,'capacity_factor':1.0,"                                                    \
    "'reset_dead_experts':2,'marks':[0.25,1],'val_tokens':2048,'tie_embeddings':false}"

#define CHECKPOINT_SECONDS 0.02
#define CHECKPOINT_EVENT   "\"type\":\"checkpoint\""
#define KILLS_MAX          12

static struct reference run_reference(struct fixture *f, const cJSON *params)
{
    struct reference ref;
    int64_t begin = clock_mono_ns();
    const char *folder = fixture_attempt(f, params, 1e6);
    struct attempt_end end = fixture_run(folder, 0, 0);

    ref.us = (clock_mono_ns() - begin) / 1000;
    if (end.code != 0)
        fail_msg("exit %d: %s", end.code, end.err.buf);
    ref.model = fixture_file(folder, "model/model.bin");
    ref.outcome = fixture_outcome(folder);
    attempt_end_release(&end);
    fixture_forget(f);
    return ref;
}

/* A sanitized worker trains so many times less. */
static cJSON *params_of(const char *text)
{
    cJSON *params = fixture_params(text);
    cJSON *tokens = cJSON_GetObjectItemCaseSensitive(json_member(params, "horizon"), "tokens");

    cJSON_SetNumberHelper(tokens, tokens->valuedouble / (double)sparse_part());
    return params;
}

static bool events_say(const char *folder, const char *text)
{
    return fixture_events_count(folder, text) > 0;
}

/* Kills attempts until one gets through; returns how many of them took up an earlier one's work. */
static int run_killed(struct fixture *f, const cJSON *params, const struct reference *ref,
                      uint64_t seed)
{
    struct rng r;
    int resumed = 0;

    rng_seed(&r, seed);
    for (int kills = 0;; kills++) {
        const char *folder = fixture_attempt(f, params, CHECKPOINT_SECONDS);
        int signo = kills == KILLS_MAX ? 0 : rng_below(&r, 2) == 0 ? SIGKILL : SIGTERM;
        int64_t delay = (int64_t)rng_below(&r, (uint64_t)ref->us);
        struct attempt_end end = fixture_run(folder, signo, delay);
        resumed += events_say(folder, "\"resumed\"");
        bool done = end.code == 0;
        if (!done && end.code != 75 && end.signal != SIGKILL && end.signal != SIGTERM)
            fail_msg("exit %d, signal %d: %s", end.code, end.signal, end.err.buf);
        attempt_end_release(&end);
        if (!done)
            continue;
        reference_assert_same(ref, folder);
        fixture_forget(f);
        return resumed;
    }
}

static pid_t start_load(void)
{
    pid_t pid = fork();

    assert_true(pid >= 0);
    if (pid == 0)
        for (;;)
            __asm__ volatile("");
    return pid;
}

static void end_load(pid_t pid)
{
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
}

/* Half of the seeds beside a process that does nothing but take time. Returns the outcome. */
static struct strbuf check_resume(struct fixture *f, const char *text)
{
    int resumed = 0;

    cJSON *params = params_of(text);
    struct reference ref = run_reference(f, params);
    for (uint64_t seed = 1; seed <= 4; seed++) {
        pid_t load = seed % 2 == 0 ? start_load() : 0;
        resumed += run_killed(f, params, &ref, seed);
        if (load > 0)
            end_load(load);
    }
    print_message("  one run %lld ms; %d attempts took up earlier work\n", (long long)ref.us / 1000,
                  resumed);
    assert_true(resumed > 0);
    struct strbuf outcome = ref.outcome;
    ref.outcome = (struct strbuf)STRBUF_INIT;
    reference_release(&ref);
    cJSON_Delete(params);
    return outcome;
}

static void test_dense(void **state)
{
    struct strbuf outcome = check_resume(*state, DENSE);

    strbuf_release(&outcome);
}

/* So many experts that some are drawn anew on the way. */
static void test_mixture(void **state)
{
    struct strbuf outcome = check_resume(*state, MIXTURE);
    const char *kills = strstr(outcome.buf, "\"router_kills\":");

    assert_non_null(kills);
    assert_true(strtol(kills + sizeof("\"router_kills\":") - 1, NULL, 10) > 0);
    strbuf_release(&outcome);
}

/* The newest checkpoint of an attempt, as a path; fails the test without one. */
static char *newest_checkpoint(const char *attempt)
{
    struct name_list list = {0};
    struct err err = {0};
    char *folder = path_join(attempt, "checkpoint");

    assert_int_equal(dir_list(folder, &list, &err), 0);
    assert_true(list.n >= 1 && list.n <= 3);
    char *path = path_join(folder, list.names[list.n - 1]);
    name_list_release(&list);
    free(folder);
    return path;
}

/* Told to stop, or on a busy machine done before it was told: its checkpoints are there. */
static void assert_stopped(const struct attempt_end *end)
{
    if (end->code != 75 && end->code != 0)
        fail_msg("exit %d, signal %d: %s", end->code, end->signal, end->err.buf);
}

enum damage { DAMAGE_TRUNCATE, DAMAGE_NO_MANIFEST, DAMAGE_FLIP, DAMAGE_NR };

static void damage_checkpoint(const char *checkpoint, enum damage how)
{
    char *weights = path_join(checkpoint, "weights.bin");
    char *manifest = path_join(checkpoint, "manifest.json");
    struct err err = {0};

    if (how == DAMAGE_TRUNCATE) {
        assert_int_equal(truncate(weights, 100), 0);
    } else if (how == DAMAGE_NO_MANIFEST) {
        assert_int_equal(unlink(manifest), 0);
    } else {
        struct strbuf body = fixture_file(checkpoint, "weights.bin");
        body.buf[body.len / 2] ^= 1;
        assert_int_equal(file_write_atomic(weights, body.buf, body.len, 0644, &err), 0);
        strbuf_release(&body);
    }
    free(weights);
    free(manifest);
}

static void test_torn_checkpoint_is_skipped(void **state)
{
    struct fixture *f = *state;

    cJSON *params = params_of(DENSE);
    struct reference ref = run_reference(f, params);
    for (enum damage how = 0; how < DAMAGE_NR; how++) {
        const char *first = fixture_attempt(f, params, 0.0); /* a checkpoint after every step */
        struct attempt_end end = fixture_run_until(first, CHECKPOINT_EVENT, 3, SIGTERM);
        assert_stopped(&end);
        attempt_end_release(&end);
        char *newest = newest_checkpoint(first);
        damage_checkpoint(newest, how);
        const char *second = fixture_attempt(f, params, 1e6);
        end = fixture_run(second, 0, 0);
        assert_int_equal(end.code, 0);
        assert_true(events_say(second, "skipped"));
        assert_true(events_say(second, "\"resumed\"")); /* from the one before */
        reference_assert_same(&ref, second);
        attempt_end_release(&end);
        free(newest);
        fixture_forget(f);
    }
    reference_release(&ref);
    cJSON_Delete(params);
}

/* A checkpoint of other parameters is not taken up. */
static void test_other_run_is_skipped(void **state)
{
    struct fixture *f = *state;

    cJSON *params = params_of(DENSE);
    struct reference ref = run_reference(f, params);
    cJSON *other = json_copy(params);
    cJSON_SetNumberHelper(cJSON_GetObjectItemCaseSensitive(other, "lr"), 0.001);
    const char *first = fixture_attempt(f, other, 0.0);
    struct attempt_end end = fixture_run_until(first, CHECKPOINT_EVENT, 1, SIGTERM);
    assert_stopped(&end);
    attempt_end_release(&end);
    const char *second = fixture_attempt(f, params, 1e6);
    end = fixture_run(second, 0, 0);
    assert_int_equal(end.code, 0);
    assert_true(events_say(second, "of another run"));
    assert_false(events_say(second, "\"resumed\""));
    reference_assert_same(&ref, second);
    attempt_end_release(&end);
    reference_release(&ref);
    cJSON_Delete(params);
    cJSON_Delete(other);
}

/* A byte-level vocabulary for the corpus, with one merge of its own. */
static void write_tokenizer(const char *path, const char *left, const char *right)
{
    struct strbuf text = STRBUF_INIT;
    struct err err = {0};

    strbuf_adds(&text, "{\"pre_tokenizer\":{\"type\":\"ByteLevel\",\"add_prefix_space\":false},"
                       "\"model\":{\"type\":\"BPE\",\"vocab\":{\"</s>\":0,\".\":1,\"\xc4\xa0\":2");
    for (int i = 0; i < 26; i++)
        strbuf_addf(&text, ",\"%c\":%d", 'a' + i, 3 + i);
    strbuf_addf(&text, ",\"%s%s\":29},\"merges\":[\"%s %s\"]}}", left, right, left, right);
    assert_int_equal(file_write_atomic(path, text.buf, text.len, 0644, &err), 0);
    strbuf_release(&text);
}

#define WORDS                                                                                      \
    "{'layers':1,'width':32,'heads':2,'ffn':48,'context':64,'batch_tokens':512,'lr':0.003,"        \
    "'seed':3,'horizon':{'contract':'fixed','tokens':600000},'mix':{'a':1},'val_tokens':2048,"     \
    "'tokenizer':'b','vocab':30}"

/* Nor is one of a tokenizer that is another now: its ids meant other words. */
static void test_other_tokenizer_is_skipped(void **state)
{
    struct fixture *f = *state;
    static const char *const right[] = {"h", "h", "o"}; /* th, th, to */

    cJSON *params = fixture_params(WORDS);
    for (size_t i = 0; i < ARRAY_LEN(right); i++) {
        CHECK_ROW("%s", right[i]);
        write_tokenizer(f->corpus_b, "t", right[i]);
        const char *attempt = fixture_attempt(f, params, 0.0);
        struct attempt_end end = fixture_run_until(attempt, CHECKPOINT_EVENT, 1, SIGTERM);
        if (end.code != 75)
            fail_msg("exit %d: %s", end.code, end.err.buf);
        attempt_end_release(&end);
        assert_int_equal(events_say(attempt, "\"resumed\""), i == 1);
        assert_int_equal(events_say(attempt, "of another run"), i == 2);
    }
    cJSON_Delete(params);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(test_dense),
        fixture_test(test_mixture),
        fixture_test(test_torn_checkpoint_is_skipped),
        fixture_test(test_other_run_is_skipped),
        fixture_test(test_other_tokenizer_is_skipped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
