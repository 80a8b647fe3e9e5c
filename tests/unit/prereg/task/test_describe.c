/* Workers that answer --describe well, badly and not at all. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/files/file.h"
#include "base/json/json.h"
#include "base/xalloc.h"
#include "prereg/task/describe.h"
#include "prereg/task/task.h"
#include "tests/unit/check.h"
#include "tests/unit/prereg/support.h"

struct answer {
    struct plan_program *p;
    struct describe describe;
    struct diag diag;
    char *folder;
};

/* SMALL_PROGRAM with a worker of these lines of shell; $2 is task.json. */
static struct answer ask(const char *script, int64_t timeout_ms)
{
    struct answer a = {.folder = scratch_make()};
    struct err err = {0};
    char *text = xasprintf("#!/bin/sh\n%s\n", script);
    free(scratch_write(a.folder, "worker.sh", text, 0700));
    free(scratch_write(a.folder, "corpus.txt", "x", 0600));
    free(text);
    a.p = program_of(SMALL_PROGRAM, a.folder);
    diag_init(&a.diag, "grid.toml");
    if (describe_run(a.p, &(struct describe_how){.timeout_ms = timeout_ms}, &a.describe, &a.diag,
                     &err) != 0) {
        fail_msg("%s", err.msg);
    }
    return a;
}

static void answer_release(struct answer *a)
{
    describe_release(&a->describe);
    diag_release(&a->diag);
    program_free(a->p);
    scratch_remove(a->folder);
}

struct lines {
    char *items[32];
    size_t n;
};

static void add_line(void *ctx, const char *name, const char *value)
{
    struct lines *l = ctx;
    assert_true(l->n < ARRAY_LEN(l->items));
    l->items[l->n++] = xasprintf("%s=%s", name, value);
}

static int compare_lines(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static char *sorted_text(struct lines *l)
{
    struct strbuf text = STRBUF_INIT;
    qsort(l->items, l->n, sizeof(l->items[0]), compare_lines);
    for (size_t i = 0; i < l->n; i++) {
        strbuf_addf(&text, "%s\n", l->items[i]);
        free(l->items[i]);
    }
    return strbuf_detach(&text);
}

/* Nothing of the caller's environment is there, a stage's variable replaces, and the folder is like
 * an attempt's: what task_environment() gives, which is what the daemon's spawn gets. */
static void test_environment_of_a_run(void **state)
{
    (void)state;
    char *folder = scratch_make();
    struct strbuf found = STRBUF_INIT;
    struct lines lines = {0};
    struct describe d;
    struct diag diag;
    struct err err = {0};
    char *script = xasprintf("#!/bin/sh\n"
                             "test -e \"${0%%/*}/corpus.txt\" && exit 9\n"
                             "test \"$HOME\" = \"$(pwd -P)\" || exit 8\n"
                             "test -n \"$MINE\" || exec echo '{}'\n"
                             "tr '\\0' '\\n' </proc/$$/environ | LC_ALL=C sort >%s/env\n"
                             "pwd -P >%s/cwd; echo '{}'\n",
                             folder, folder);
    char *text = xasprintf("%s\n[stage.score.env]\nPATH = \"/usr/bin:/bin:/own\"\n"
                           "TZ = \"Asia/Tokyo\"\nMINE = \"1\"\n",
                           SMALL_PROGRAM);
    free(scratch_write(folder, "worker.sh", script, 0700));
    free(scratch_write(folder, "corpus.txt", "x", 0600));
    assert_int_equal(setenv("PREREG_TEST_LEAK", "1", 1), 0);
    assert_int_equal(setenv("TZ", "Europe/Paris", 1), 0);
    struct plan_program *p = program_of(text, folder);
    diag_init(&diag, "grid.toml");
    assert_int_equal(describe_run(p, &(struct describe_how){0}, &d, &diag, &err), 0);
    assert_int_equal(diag.n_items, 0);
    char *cwd_path = path_join(folder, "cwd");
    assert_int_equal(file_read(cwd_path, 4096, &found, &err), 0);
    found.buf[strcspn(found.buf, "\n")] = '\0';
    task_environment(&p->stages[1], found.buf, add_line, &lines);
    char *expected = sorted_text(&lines);
    strbuf_clear(&found);
    char *env_path = path_join(folder, "env");
    assert_int_equal(file_read(env_path, 65536, &found, &err), 0);
    assert_string_equal(found.buf, expected);
    free(env_path);
    free(cwd_path);
    free(expected);
    strbuf_release(&found);
    describe_release(&d);
    diag_release(&diag);
    program_free(p);
    free(text);
    free(script);
    scratch_remove(folder);
}

/* The worker of stage train gets "--quick --describe FILE", that of score "--describe FILE". */
static void test_a_good_worker(void **state)
{
    (void)state;
    struct answer a =
        ask("for f; do :; done\n"
            "test \"$PREREG_TASK\" = \"$f\" || exit 1\n"
            "grep -q '\"peers\"' \"$f\" || exit 1\n"
            "echo '{\"protocol\":1,\"metrics\":[\"acc\"],\"facts\":{\"params_total\":12.5,"
            "\"name\":\"x\"},\"seconds\":3,\"params\":{\"ffn\":8},\"unknown\":[],\"errors\":[]}'",
            0);
    assert_int_equal(a.diag.n_items, 0);
    /* train differs between dense and moe; score is the same task everywhere */
    assert_int_equal(a.describe.n_asked, 3);
    double total = 0;
    const cJSON *answer = describe_find(a.describe.json, a.p, 1, 0);
    assert_true(describe_fact(answer, "params_total", &total));
    assert_true(total > 12.4 && total < 12.6);
    assert_false(describe_fact(answer, "name", &total));
    assert_false(describe_fact(answer, "steps", &total));
    assert_false(describe_fact(NULL, "steps", &total));
    assert_null(json_member(answer, "unknown"));
    describe_check_metrics(a.p, a.describe.json, &a.diag);
    assert_int_equal(a.diag.n_items, 0);
    answer_release(&a);
}

static void test_a_metric_that_is_not_there(void **state)
{
    (void)state;
    struct answer a = ask("echo '{\"metrics\":[\"acc_norm\",\"ac\"]}'", 0);
    describe_check_metrics(a.p, a.describe.json, &a.diag);
    assert_int_equal(a.diag.n_errors, 1);
    assert_string_equal(a.diag.items[0].msg,
                        "measure.acc: its stage yields no metric \"acc\"; did you mean \"ac\"?");
    assert_int_equal(a.diag.items[0].line, a.p->measures[0].place.line);
    assert_int_equal(a.diag.items[0].column, 18); /* the metric's value */
    answer_release(&a);
}

static void test_items(void **state)
{
    static const struct {
        const char *metric;
        const char *script;
        const char *said; /* NULL: nothing */
    } cases[] = {
        {"score.acc", "echo '{\"facts\":{\"items\":60}}'", NULL},
        {"score.acc", "echo '{\"facts\":{\"items\":50}}'",
         "measure.acc: 60 items, and stage \"score\" scores 50 (at arch=dense)"},
        {"score.acc", "echo '{\"facts\":{\"items\":70}}'",
         "measure.acc: 60 items, and stage \"score\" scores 70 (at arch=dense)"},
        {"score.acc:stem", "echo '{\"facts\":{\"items\":70}}'", NULL},
        {"score.acc:stem", "echo '{\"facts\":{\"items\":50}}'",
         "measure.acc: 60 items, and stage \"score\" scores 50 (at arch=dense)"},
        {"score.acc", "echo '{\"facts\":{\"items\":\"60\"}}'", NULL},
        {"score.acc", "echo '{}'", NULL},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CHECK_ROW("%s", cases[i].metric);
        struct answer a = ask(cases[i].script, 0);
        struct plan_measure *m = &a.p->measures[0];
        m->metric_text = cases[i].metric;
        m->metric = cases[i].metric + strlen("score.");
        m->has_items = true;
        m->items = 60;
        m->items_place = (struct place){7, 9};
        describe_check_items(a.p, a.describe.json, &a.diag);
        assert_int_equal(a.diag.n_errors, cases[i].said == NULL ? 0 : 1);
        if (cases[i].said != NULL) {
            assert_string_equal(a.diag.items[0].msg, cases[i].said);
            assert_int_equal(a.diag.items[0].line, 7);
            assert_int_equal(a.diag.items[0].column, 9);
        }
        size_t before = a.diag.n_items;
        describe_check_items(a.p, NULL, &a.diag);
        assert_int_equal(a.diag.n_items, before + 1);
        assert_int_equal(a.diag.items[before].level, DIAG_NOTE);
        answer_release(&a);
    }
}

/* SMALL_PROGRAM allows train 1 GiB, and score what there is. */
static void test_memory(void **state)
{
    static const struct {
        const char *script;
        double machine;
        const char *said; /* NULL: nothing */
        unsigned line;
    } cases[] = {
        {"echo '{\"facts\":{\"memory_bytes\":1073741824}}'", 0, NULL, 0},
        {"echo '{\"facts\":{\"memory_bytes\":1073741825}}'", 0,
         "[run] memory: stage \"train\" needs at least 1024.1 MiB (at arch=dense) and may use "
         "1024.0 MiB; allow more",
         41},
        {"echo '{\"facts\":{\"memory_bytes\":2e9,\"memory_least_bytes\":1e9}}'", 0, NULL, 0},
        {"test $# = 3 && echo '{}' || echo '{\"facts\":{\"memory_bytes\":2097152}}'", 2097151,
         "stage.score: needs at least 2.0 MiB (at arch=dense), and this machine has 2.0 MiB", 20},
        {"echo '{}'", 1, NULL, 0},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CHECK_ROW("%s", cases[i].script);
        struct answer a = ask(cases[i].script, 0);
        assert_int_equal(a.diag.n_items, 0);
        describe_check_memory(a.p, a.describe.json, cases[i].machine, &a.diag);
        assert_int_equal(a.diag.n_errors, cases[i].said == NULL ? 0 : 1);
        if (cases[i].said != NULL) {
            assert_string_equal(a.diag.items[0].msg, cases[i].said);
            assert_int_equal(a.diag.items[0].line, cases[i].line);
        }
        answer_release(&a);
    }
}

static void test_answers(void **state)
{
    (void)state;
    static const struct {
        const char *script;
        enum diag_level level;
        const char *said; /* at stage train */
    } cases[] = {
        {"echo '{\"errors\":[{\"key\":\"heads\",\"why\":\"does not divide width\"}]}'", DIAG_ERROR,
         "stage.train: heads: does not divide width (at arch=dense)"},
        {"echo usage >&2; exit 64", DIAG_WARNING,
         "stage.train: the worker does not describe itself (exit code 64: usage)"},
        {"echo 'ModuleNotFoundError: No module named torch' >&2; exit 1", DIAG_ERROR,
         "stage.train: --describe failed with exit code 1: ModuleNotFoundError: No module named "
         "torch; mend the worker, or write `describe = false` in its stage (at arch=dense)"},
        {"echo 'unknown argument --describe' >&2; exit 2", DIAG_ERROR,
         "stage.train: --describe failed with exit code 2: unknown argument --describe; "},
        {"echo '{}'; exit 1", DIAG_ERROR,
         "stage.train: --describe printed an answer, and failed with exit code 1 (at arch=dense)"},
        {"echo hello", DIAG_WARNING,
         "stage.train: the worker does not describe itself (exit code 0)"},
        {"echo '{\"metrics\":'", DIAG_ERROR, "stage.train: --describe prints no JSON: "},
        {"echo '{\"protocol\":7}'", DIAG_ERROR, "stage.train: --describe speaks protocol 7, not 1"},
        {"echo '{\"metrics\":[1]}'", DIAG_ERROR,
         "stage.train: --describe: \"metrics\" is not an array of names"},
        {"echo '{\"seconds\":-1}'", DIAG_ERROR,
         "stage.train: --describe: \"seconds\" is not a number, not negative"},
        {"echo '{\"errors\":[3]}'", DIAG_ERROR,
         "stage.train: --describe: an error without \"why\""},
        {"echo '{\"notes\":[\"slow here\"]}'", DIAG_WARNING,
         "stage.train: slow here (at arch=dense)"},
        {"echo '{\"notes\":\"slow\"}'", DIAG_ERROR,
         "stage.train: --describe: \"notes\" is not an array of texts"},
        {"kill -9 $$", DIAG_ERROR, "stage.train: --describe was ended by signal 9"},
        {"sleep 60", DIAG_ERROR, "worker.sh did not end within 200 ms (at arch=dense)"},
        {"exec >/dev/null 2>&1; sleep 60", DIAG_ERROR, "worker.sh did not end within 200 ms"},
        {"while :; do echo '{}{}{}{}{}{}{}{}{}{}{}{}{}{}{}{}{}{}{}{}{}{}{}{}{}{}{}{}{}{}{}{}{}{}'; "
         "done",
         DIAG_ERROR, "stage.train: "},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CHECK_ROW("%s", cases[i].script);
        const bool hangs = strstr(cases[i].said, "200 ms") != NULL;
        struct answer a = ask(cases[i].script, hangs ? 200 : 0);
        assert_true(a.diag.n_items >= 1);
        if (strstr(a.diag.items[0].msg, cases[i].said) == NULL) {
            fail_msg("\"%s\" instead of \"%s\"", a.diag.items[0].msg, cases[i].said);
        }
        assert_int_equal(a.diag.items[0].level, cases[i].level);
        assert_int_equal(a.diag.items[0].line, a.p->stages[0].place.line);
        answer_release(&a);
    }
}

/* Of how many tasks prereg-eval is asked where `moe` is what the levels of the training differ by.
 */
static size_t count_asked(const char *moe)
{
    char *folder = scratch_make();
    char *before = xstrdup(getenv("PATH")), *path = xasprintf("%s:%s", folder, before);
    struct describe d;
    struct diag diag;
    struct err err = {0};
    char *part = text_replace(SMALL_PROGRAM, "[\"./worker.sh\"]", "[\"prereg-eval\"]");
    char *whole = text_replace(part, "experts = 4", moe);
    free(scratch_write(folder, "worker.sh", "#!/bin/sh\necho '{}'\n", 0700));
    char *calls = path_join(folder, "calls");
    char *worker = xasprintf("#!/bin/sh\nshift\nfor f; do echo '{}'; done | tee -a %s\n", calls);
    free(scratch_write(folder, "prereg-eval", worker, 0700));
    assert_int_equal(setenv("PATH", path, 1), 0);
    struct plan_program *p = program_of(whole, folder);
    diag_init(&diag, "grid.toml");
    assert_int_equal(
        describe_run(p, &(struct describe_how){.rates = "rates.json"}, &d, &diag, &err), 0);
    struct stat st;
    assert_int_equal(stat(calls, &st), 0);
    const size_t n = (size_t)st.st_size / strlen("{}\n");
    assert_int_equal(setenv("PATH", before, 1), 0);
    describe_release(&d);
    diag_release(&diag);
    program_free(p);
    free(whole), free(part), free(path), free(before), free(calls), free(worker);
    scratch_remove(folder);
    return n;
}

/* An evaluation is asked once for each model, not for each way of training it. */
static void test_asked_for_each_model(void **state)
{
    (void)state;
    assert_int_equal(count_asked("lr = 2e-3, schedule = { kind = \"cosine\" }"), 1);
    assert_int_equal(count_asked("experts = 4"), 2);
    assert_int_equal(count_asked("tokenizer = \"corpus\""), 2);
}

/* A stage that says so is not asked; the others are. */
static void test_describe_false(void **state)
{
    (void)state;
    char *folder = scratch_make();
    struct describe d;
    struct diag diag;
    struct err err = {0};
    char *whole = xstrdup(SMALL_PROGRAM);
    char *at = strstr(whole, "[stage.score]\n");
    assert_non_null(at);
    at += strlen("[stage.score]\n");
    char *with = xasprintf("%.*sdescribe = false\n%s", (int)(at - whole), whole, at);
    free(scratch_write(folder, "worker.sh",
                       "#!/bin/sh\ntest \"$1\" = --quick || exit 1\necho '{}'\n", 0700));
    struct plan_program *p = program_of(with, folder);
    diag_init(&diag, "grid.toml");
    assert_int_equal(describe_run(p, &(struct describe_how){0}, &d, &diag, &err), 0);
    assert_int_equal(diag.n_items, 0);
    assert_int_equal(d.n_asked, 2);
    assert_non_null(describe_find(d.json, p, 0, 0));
    assert_null(describe_find(d.json, p, 0, 1));
    describe_release(&d);
    diag_release(&diag);
    program_free(p);
    free(with);
    free(whole);
    scratch_remove(folder);
}

/* What all conditions share is said once, and nothing stays in the temporary folder. */
static void test_said_once(void **state)
{
    (void)state;
    struct answer a = ask("echo '{\"errors\":[{\"why\":\"no\"}]}'", 0);
    assert_int_equal(a.diag.n_items, 2); /* a line a stage */
    answer_release(&a);
}

/* A value for a whole condition cannot be that of a parameter that each replicate has its own of.
 */
static void test_echoed_params(void **state)
{
    (void)state;
    struct answer fine = ask("echo '{\"params\":{\"ffn\":8,\"lr\":0.5,\"data\":\"corpus\"}}'", 0);
    assert_int_equal(fine.diag.n_items, 0);
    answer_release(&fine);
    /* score has no seed in the plan: one that its worker solves is none of the plan's */
    struct answer a = ask("echo '{\"params\":{\"lr\":0.001,\"seed\":1}}'", 0);
    assert_int_equal(a.diag.n_items, 1);
    assert_int_equal(a.diag.n_errors, 1);
    assert_int_equal(a.diag.items[0].line, 17);
    assert_non_null(strstr(a.diag.items[0].msg, "stage.train: seed: "));
    assert_non_null(strstr(a.diag.items[0].msg, "answer only with what the worker solves"));
    answer_release(&a);
}

/* A program with these evaluations, all of which one worker called prereg-eval describes: a script
 * that is found in $PATH and writes the number of its tasks to `calls`. */
static struct answer ask_evaluations(const char *script, char **calls)
{
    struct answer a = {.folder = scratch_make()};
    struct err err = {0};
    struct strbuf found = STRBUF_INIT;
    char *worker =
        xasprintf("#!/bin/sh\nshift\necho $# >>%s/calls\n"
                  "answer() { echo \"{\\\"facts\\\":{\\\"items\\\":$(tr -d ' \\n' <\"$1\" |"
                  " grep -o '\"params\":{\"n\":[0-9]*' | sed -n '1s/.*://p')}}\"; }\n%s\n",
                  a.folder, script);
    char *path = xasprintf("%s:/usr/bin:/bin", a.folder);
    char *before = xstrdup(getenv("PATH"));
    char *one = text_replace(SMALL_PROGRAM, "command = [\"./worker.sh\"]",
                             "command = [\"prereg-eval\"]\nparams = { n = 1 }\n"
                             "[stage.score.when.arch]\nmoe = { n = 2 }\n"
                             "[stage.more]\nafter = [\"train\"]\ncommand = [\"prereg-eval\"]\n"
                             "params = { n = 3 }\n"
                             "[stage.other]\nafter = [\"train\"]\ncommand = [\"prereg-eval\"]\n"
                             "params = { n = 4 }\nthreads = 2\n"
                             "[stage.last]\nafter = [\"other\"]\ncommand = [\"prereg-eval\"]\n"
                             "params = { n = 5 }\nthreads = 2");
    free(scratch_write(a.folder, "worker.sh", "#!/bin/sh\necho '{}'\n", 0700));
    free(scratch_write(a.folder, "prereg-eval", worker, 0700));
    free(scratch_write(a.folder, "corpus.txt", "x", 0600));
    assert_int_equal(setenv("PATH", path, 1), 0);
    a.p = program_of(one, a.folder);
    diag_init(&a.diag, "grid.toml");
    if (describe_run(a.p, &(struct describe_how){0}, &a.describe, &a.diag, &err) != 0) {
        fail_msg("%s", err.msg);
    }
    assert_int_equal(setenv("PATH", before, 1), 0);
    free(path);
    path = path_join(a.folder, "calls");
    assert_int_equal(file_read(path, 4096, &found, &err), 0);
    *calls = strbuf_detach(&found);
    free(one);
    free(before);
    free(path);
    free(worker);
    return a;
}

/* Evaluations that need no answer of each other, and run in the same environment, are asked at
 * once; whatever else such a process does than print a line for each, they are asked alone. */
static void test_several_at_once(void **state)
{
    static const struct {
        const char *script;
        const char *calls;
    } cases[] = {
        /* dense and moe differ in what makes the model: score and more, other; last is the same of
           both */
        {"for f; do answer \"$f\"; done", "4\n2\n1\n"},
        {"test $# = 1 && answer \"$1\"", "4\n1\n1\n1\n1\n2\n1\n1\n1\n"},
        {"for f; do answer \"$f\"; done; exit $(($# - 1))", "4\n1\n1\n1\n1\n2\n1\n1\n1\n"},
        {"test $# = 1 || shift; for f; do answer \"$f\"; done", "4\n1\n1\n1\n1\n2\n1\n1\n1\n"},
        {"test $# = 1 || echo '{}'; for f; do answer \"$f\"; done", "4\n1\n1\n1\n1\n2\n1\n1\n1\n"},
        {"test $# = 1 || kill -9 $$; answer \"$1\"", "4\n1\n1\n1\n1\n2\n1\n1\n1\n"},
    };
    static const char *const names[] = {"train", "score", "more", "other", "last"};
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CHECK_ROW("%s", cases[i].script);
        char *calls = NULL;
        struct answer a = ask_evaluations(cases[i].script, &calls);
        assert_int_equal(a.diag.n_items, 0);
        assert_string_equal(calls, cases[i].calls);
        for (size_t c = 0; c < 2; c++) {
            const cJSON *stage = json_member(a.describe.json, a.p->conditions[c].name)->child;
            for (size_t s = 0; s < ARRAY_LEN(names); s++, stage = stage->next) {
                double items = 0;
                assert_string_equal(stage->string, names[s]);
                assert_true(describe_fact(stage, "items", &items) == (s > 0));
                assert_int_equal((int)items, s == 1 ? (int)c + 1 : s > 1 ? (int)s + 1 : 0);
            }
        }
        free(calls);
        answer_release(&a);
    }
}

static void test_no_worker(void **state)
{
    (void)state;
    struct plan_program *p = program_of(SMALL_PROGRAM, "/no/such/folder");
    struct describe d;
    struct diag diag;
    struct err err = {0};
    diag_init(&diag, "grid.toml");
    assert_int_equal(describe_run(p, &(struct describe_how){0}, &d, &diag, &err), 0);
    assert_int_equal(diag.n_errors, 2);
    assert_non_null(strstr(diag.items[0].msg, "/no/such/folder/./worker.sh does not exist"));
    assert_null(describe_find(d.json, p, 0, 0));
    describe_release(&d);
    diag_release(&diag);
    program_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_good_worker),
        cmocka_unit_test(test_a_metric_that_is_not_there),
        cmocka_unit_test(test_items),
        cmocka_unit_test(test_answers),
        cmocka_unit_test(test_said_once),
        cmocka_unit_test(test_echoed_params),
        cmocka_unit_test(test_no_worker),
        cmocka_unit_test(test_environment_of_a_run),
        cmocka_unit_test(test_asked_for_each_model),
        cmocka_unit_test(test_describe_false),
        cmocka_unit_test(test_memory),
        cmocka_unit_test(test_several_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
