/*
 * Running the real prereg-train: a scratch folder with a generated corpus, attempts inside it,
 * kills on the way. Invariant: everything is under one temporary folder, which fixture_tear_down()
 * removes.
 */
#ifndef TESTS_UNIT_WORKER_TRAIN_FIXTURE_H
#define TESTS_UNIT_WORKER_TRAIN_FIXTURE_H

#include <cjson/cJSON.h>
#include <stddef.h>
#include <stdint.h>

#include "base/strbuf.h"

#define FIXTURE_ATTEMPTS_MAX 64

struct fixture {
    char *folder;
    char *corpus;        /* a JSONL file */
    char *corpus_b;      /* a second source, plain text */
    const char *words;   /* where data "words", a tokenizer, is, or NULL: there is none */
    const char *earlier; /* where data "earlier" is, or NULL: there is none */
    char *attempts[FIXTURE_ATTEMPTS_MAX];
    size_t n_attempts;
    char *apart[FIXTURE_ATTEMPTS_MAX]; /* attempts that were put aside */
    size_t n_apart;
};

/* How an attempt ended. */
struct attempt_end {
    int code;   /* -1 when a signal ended it */
    int signal; /* 0 when none did */
    struct strbuf err;
};

/* A test whose *state is a fixture of its own, released also when it fails. */
int fixture_set_up(void **state);
int fixture_tear_down(void **state);
#define fixture_test(f) cmocka_unit_test_setup_teardown(f, fixture_set_up, fixture_tear_down)

/* Keeps the newest attempt out of the "resume" of later ones; its folder stays, and its name is
 * valid until the release. */
void fixture_forget_last(struct fixture *f);
/* Forgets the attempts so far (their folders stay until the release). */
void fixture_forget(struct fixture *f);

/* Writes attempt-NNN/task.json: params, both sources, every earlier attempt as "resume".
 * checkpoint_seconds < 0: none given. Returns the folder. */
const char *fixture_attempt(struct fixture *f, const cJSON *params, double checkpoint_seconds);

/* Starts the worker in the folder and sends signo after delay_us unless it is 0; waits for the end.
 */
struct attempt_end fixture_run(const char *folder, int signo, int64_t delay_us);
/* Starts the worker and sends signo as soon as its events hold `text` so many times; fails the test
 * when they never do. */
struct attempt_end fixture_run_until(const char *folder, const char *text, int times, int signo);
/* The same, with the signal sent again a millisecond later. */
struct attempt_end fixture_run_twice(const char *folder, const char *text, int times, int signo);
void attempt_end_release(struct attempt_end *end);

/* Starts the worker with a SIGTERM already pending, held back: whoever takes it does so before any
 * work. */
struct attempt_end fixture_run_unwanted(const char *folder);

/* How often the attempt's events hold the text. */
int fixture_events_count(const char *folder, const char *text);

/* The whole of folder/name; fails the test when there is none. */
struct strbuf fixture_file(const char *folder, const char *name);
/* What must be the same however often a run was killed: all metrics, and all facts but timings,
 * memory, as JSON. */
struct strbuf fixture_outcome(const char *folder);

/* What an undisturbed run left. */
struct reference {
    struct strbuf model;
    struct strbuf outcome;
    int64_t us; /* how long it took, where somebody measured */
};

void reference_release(struct reference *ref);
/* Fails the test unless the folder holds the same bytes of model and outcome. */
void reference_assert_same(const struct reference *ref, const char *folder);

/* Parameters from JSON text with single quotes for double ones. */
cJSON *fixture_params(const char *text);

#endif
