/*
 * Checkpoints when the disk or the machine fails in the midst of one: the worker dies at every
 * single call its writer makes, or that call fails. What was said to be written is there, and the
 * run ends in the bytes of one that nobody disturbed.
 */
#include <errno.h>
#include <signal.h>

#include "base/files/digest.h"
#include "base/files/file.h"
#include "base/json/json.h"
#include "base/text.h"
#include "base/xalloc.h"
#include "tests/unit/check.h"
#include "tests/unit/sparse.h"
#include "tests/unit/worker/train/fixture.h"

#define TINY                                                                                       \
    "{'layers':1,'width':16,'heads':2,'experts':2,'top_k':1,'expert_ffn':16,'context':32,"         \
    "'batch_tokens':256,'lr':0.003,'seed':3,'horizon':{'contract':'fixed','tokens':%d},"           \
    "'mix':{'a':1},'val_tokens':256}"
#define TOKENS       10240 /* 40 steps */
#define KILLED_CALLS 44    /* the first checkpoint and the second */
#define FAILED_CALLS 30
#define CHECKPOINT   "\"type\":\"checkpoint\""

static cJSON *tiny_params(int tokens)
{
    char *text = xasprintf(TINY, tokens);
    cJSON *params = fixture_params(text);

    free(text);
    return params;
}

static struct reference run_reference(struct fixture *f, const cJSON *params)
{
    const char *folder = fixture_attempt(f, params, 1e6);
    struct attempt_end end = fixture_run(folder, 0, 0);

    if (end.code != 0)
        fail_msg("exit %d: %s", end.code, end.err.buf);
    struct reference ref = {.model = fixture_file(folder, "model/model.bin"),
                            .outcome = fixture_outcome(folder)};
    attempt_end_release(&end);
    fixture_forget(f);
    return ref;
}

/* A sanitized worker's runtime need not be loaded first: what is preloaded allocates nothing. */
static void allow_preload(void)
{
    const char *before = getenv("ASAN_OPTIONS");
    char *options =
        xasprintf("%s:verify_asan_link_order=0", before == NULL ? "detect_leaks=1" : before);

    assert_int_equal(setenv("ASAN_OPTIONS", options, 1), 0);
    free(options);
}

/* Runs the worker with the fault, to its end or until its events say something and a SIGTERM
 * follows; every step is a checkpoint's turn unless one is in flight. */
static struct attempt_end run_faulty(const char *folder, const char *fault, const char *until)
{
    assert_int_equal(setenv("LD_PRELOAD", FAULT_PRELOAD, 1), 0);
    assert_int_equal(setenv("PREREG_FAULT", fault, 1), 0);
    struct attempt_end end =
        until == NULL ? fixture_run(folder, 0, 0) : fixture_run_until(folder, until, 1, SIGTERM);
    assert_int_equal(unsetenv("LD_PRELOAD"), 0);
    assert_int_equal(unsetenv("PREREG_FAULT"), 0);
    return end;
}

/* The number after the last `text` in the events, or -1. */
static long last_number(const char *folder, const char *text)
{
    struct strbuf events = fixture_file(folder, "events.jsonl");
    long number = -1;

    for (const char *at = events.buf; (at = strstr(at, text)) != NULL;) {
        at += strlen(text);
        number = strtol(at, NULL, 10);
    }
    strbuf_release(&events);
    return number;
}

static void test_killed_at_every_call(void **state)
{
    struct fixture *f = *state;
    int killed = 0, resumed = 0;
    const int step = (int)sparse_part(), n = KILLED_CALLS / step;

    cJSON *params = tiny_params(TOKENS);
    struct reference ref = run_reference(f, params);
    for (int call = KILLED_CALLS - (n - 1) * step; call <= KILLED_CALLS; call += step) {
        char fault[32];
        (void)snprintf(fault, sizeof(fault), "kill:%d", call);
        const char *first = fixture_attempt(f, params, 0.0);
        struct attempt_end end = run_faulty(first, fault, NULL);
        if (end.signal != SIGKILL && end.code != 0)
            fail_msg("%s: exit %d: %s", fault, end.code, end.err.buf);
        killed += end.signal == SIGKILL;
        attempt_end_release(&end);
        const char *second = fixture_attempt(f, params, 1e6);
        end = fixture_run(second, 0, 0);
        if (end.code != 0)
            fail_msg("%s: exit %d: %s", fault, end.code, end.err.buf);
        attempt_end_release(&end);
        long said = last_number(first, CHECKPOINT ",\"step\":");
        long from = last_number(second, "\"type\":\"resumed\",\"step\":");
        assert_true(from >= said);
        assert_true(said > 0 || call < KILLED_CALLS);
        resumed += from > 0;
        reference_assert_same(&ref, second);
        fixture_forget(f);
    }
    print_message("  killed at %d calls, %d resumed\n", killed, resumed);
    assert_true(killed >= n * 2 / 3);
    assert_true(resumed >= n / 4);
    reference_release(&ref);
    cJSON_Delete(params);
}

/* One call fails, or all from one on: the steps go on, a note says so, nothing half written stays.
 */
static void test_failed_calls(void **state)
{
    struct fixture *f = *state;
    static const struct {
        int error;
        const char *more, *words;
    } cases[] = {{ENOSPC, "", "No space left"}, {EIO, "+", "Input/output error"}};

    cJSON *params = tiny_params(TOKENS);
    struct reference ref = run_reference(f, params);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CHECK_ROW("cases[%zu]", i);
        int given_up = 0;
        for (int call = 1; call <= FAILED_CALLS; call += 3 + (int)i * 4) {
            char fault[32];
            (void)snprintf(fault, sizeof(fault), "%d:%d%s", cases[i].error, call, cases[i].more);
            const char *folder = fixture_attempt(f, params, 0.0);
            struct attempt_end end = run_faulty(folder, fault, NULL);
            if (end.code != 0)
                fail_msg("%s: exit %d: %s", fault, end.code, end.err.buf);
            attempt_end_release(&end);
            bool gave_up = fixture_events_count(folder, "given up") > 0;
            assert_int_equal(gave_up, fixture_events_count(folder, cases[i].words) > 0);
            given_up += gave_up;
            reference_assert_same(&ref, folder);
            fixture_forget(f);
        }
        assert_true(given_up >= 3);
    }
    reference_release(&ref);
    cJSON_Delete(params);
}

static void write_numbers(const char *checkpoint, const char *name, const struct strbuf *body)
{
    struct err err = {0};
    char *path = path_join(checkpoint, name);

    assert_int_equal(file_write_atomic(path, body->buf, body->len, 0644, &err), 0);
    free(path);
}

/* Puts a NaN into a checkpoint and the right digest into its manifest. */
static void poison(const char *checkpoint)
{
    static const unsigned char nan_bytes[4] = {0, 0, 0xc0, 0x7f};
    struct strbuf weights = fixture_file(checkpoint, "weights.bin");
    struct strbuf manifest = fixture_file(checkpoint, "manifest.json");
    char before[DIGEST_HEX_SIZE], after[DIGEST_HEX_SIZE];

    struct digest d = digest_bytes(weights.buf, weights.len);
    digest_hex(&d, before);
    memcpy(weights.buf + 40, nan_bytes, sizeof(nan_bytes));
    d = digest_bytes(weights.buf, weights.len);
    digest_hex(&d, after);
    char *at = strstr(manifest.buf, before);
    assert_non_null(at);
    memcpy(at, after, DIGEST_HEX_SIZE - 1);
    write_numbers(checkpoint, "weights.bin", &weights);
    write_numbers(checkpoint, "manifest.json", &manifest);
    strbuf_release(&weights);
    strbuf_release(&manifest);
}

/* Whole by its digests, yet not a number: the tensor is named, and it is not taken up. */
static void test_poisoned_checkpoint(void **state)
{
    struct fixture *f = *state;

    cJSON *params = tiny_params(100 * TOKENS);
    const char *first = fixture_attempt(f, params, 0.0);
    struct attempt_end end = fixture_run_until(first, CHECKPOINT, 2, SIGTERM);
    assert_int_equal(end.code, 75);
    attempt_end_release(&end);
    char *newest =
        xasprintf("%s/checkpoint/step-%06ld", first, last_number(first, CHECKPOINT ",\"step\":"));
    poison(newest);
    const char *second = fixture_attempt(f, params, 0.0);
    end = fixture_run(second, 0, 0);
    assert_int_equal(end.code, 65);
    assert_non_null(strstr(end.err.buf, "weights of model.embed_tokens.weight are not finite"));
    attempt_end_release(&end);
    free(newest);
    cJSON_Delete(params);
}

/* The attempt's checkpoints: at most so many, the last of that step, nothing unfinished. */
static void check_folder(const char *attempt, size_t most, long newest)
{
    struct name_list list = {0};
    struct err err = {0};
    char *checkpoints = path_join(attempt, "checkpoint");

    assert_int_equal(dir_list(checkpoints, &list, &err), 0);
    assert_true(list.n > 0 && list.n <= most);
    for (size_t i = 0; i < list.n; i++)
        assert_true(strncmp(list.names[i], "step-", 5) == 0);
    assert_int_equal(strtol(list.names[list.n - 1] + 5, NULL, 10), newest);
    name_list_release(&list);
    free(checkpoints);
}

/* Asked to stop while the disk is full: the checkpoint that cannot be written is an error with its
 * name, not a 75; the last good one stays, nothing half written beside it, and it is taken up. */
static void test_asked_on_a_full_disk(void **state)
{
    struct fixture *f = *state;
    char fault[32];

    cJSON *params = tiny_params(100 * TOKENS);
    (void)snprintf(fault, sizeof(fault), "%d:%d*", ENOSPC, KILLED_CALLS);
    const char *first = fixture_attempt(f, params, 0.0);
    struct attempt_end end = run_faulty(first, fault, "given up");
    assert_int_equal(end.code, 1);
    assert_non_null(strstr(end.err.buf, "checkpoint/step-"));
    assert_non_null(strstr(end.err.buf, "No space left"));
    attempt_end_release(&end);
    long kept = last_number(first, CHECKPOINT ",\"step\":");
    assert_true(kept > 0);
    check_folder(first, 2, kept);
    const char *second = fixture_attempt(f, params, 1e6);
    end = fixture_run_until(second, "\"resumed\"", 1, SIGTERM);
    assert_int_equal(end.code, 75);
    assert_int_equal(last_number(second, "\"type\":\"resumed\",\"step\":"), kept);
    attempt_end_release(&end);
    cJSON_Delete(params);
}

/* Two SIGTERMs, the second while the first is obeyed: one checkpoint, 75, and nothing half written.
 */
static void test_asked_twice(void **state)
{
    struct fixture *f = *state;

    cJSON *params = tiny_params(100 * TOKENS);
    const char *folder = fixture_attempt(f, params, 0.0);
    struct attempt_end end = fixture_run_twice(folder, CHECKPOINT, 3, SIGTERM);
    assert_int_equal(end.signal, 0);
    assert_int_equal(end.code, 75);
    check_folder(folder, 2, last_number(folder, CHECKPOINT ",\"step\":"));
    attempt_end_release(&end);
    cJSON_Delete(params);
}

int main(void)
{
    allow_preload();
    const struct CMUnitTest tests[] = {
        fixture_test(test_killed_at_every_call), fixture_test(test_failed_calls),
        fixture_test(test_poisoned_checkpoint),  fixture_test(test_asked_on_a_full_disk),
        fixture_test(test_asked_twice),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
