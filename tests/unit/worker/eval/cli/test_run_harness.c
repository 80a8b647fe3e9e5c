/* The harness's files as the program leaves them: of a run that was killed, on a full disk, and
 * exported from an attempt that does or does not hold. */
#include "base/files/digest.h"
#include "base/files/file.h"
#include "base/machine/proc.h"
#include "base/xalloc.h"
#include "tests/unit/check.h"
#include "tests/unit/scratch.h"
#include "tests/unit/worker/eval/cli/run_job.h"

#define SAMPLED "{\"task\":\"choices\",\"samples\":true}"
#define MMLU                                                                                       \
    "{\"task\":\"mmlu\",\"data\":\"subjects\",\"shots\":0,\"groups\":[\"anatomy\",\"astronomy\","  \
    "\"marketing\"]"
#define SUBJECTS MMLU ",\"samples\":true}"

/* Runs the program with these words, under this limit on the size of files (blocks of 512 bytes; 0:
 * none), and says how it ended. */
static struct end run_words(const char *words, unsigned file_blocks)
{
    static const char *const env[] = {"PREREG_TASK=task.json", "PATH=/usr/bin:/bin", NULL};
    char *script = file_blocks == 0 ? xasprintf("exec " TEST_BIN_DIR "/prereg-eval %s", words)
                                    : xasprintf("trap '' XFSZ; ulimit -f %u; exec " TEST_BIN_DIR
                                                "/prereg-eval %s",
                                                file_blocks, words);
    const char *const argv[] = {"/bin/sh", "-c", script, NULL};
    const struct proc_spec spec = {
        .argv = argv, .env = env, .timeout_ms = 20000, .max_out_bytes = 65536};
    struct proc_result result;
    struct err err = {0};
    struct end end = {0};
    assert_int_equal(proc_run(&spec, &result, &err), 0);
    end.code = result.code;
    (void)snprintf(end.said, sizeof(end.said), "%s", result.err.buf);
    proc_result_release(&result);
    free(script);
    return end;
}

static size_t count_files(const char *folder)
{
    struct name_list names;
    struct err err = {0};
    assert_int_equal(dir_list(folder, &names, &err), 0);
    const size_t n = names.n;
    name_list_release(&names);
    return n;
}

/* Whether result.json has the file among its artifacts, with its digest. */
static bool is_artifact(const char *folder, const char *name)
{
    struct err err = {0};
    struct strbuf text = STRBUF_INIT;
    struct digest digest;
    char hex[DIGEST_HEX_SIZE];
    char *path = path_join(folder, name);
    assert_int_equal(digest_file(path, &digest, NULL, &err), 0);
    digest_hex(&digest, hex);
    run_read_text(folder, "result.json", &text);
    const char *at = strstr(text.buf, name);
    const bool found = at != NULL && strstr(at, hex) != NULL;
    strbuf_release(&text);
    free(path);
    return found;
}

static void test_killed_and_resumed(void **state)
{
    (void)state;
    const struct job plain = {.folder = "plain", .params = SAMPLED};
    const struct job killed = {.folder = "killed", .params = SAMPLED, .kill_after_ms = 40};
    const struct job next = {.folder = "next", .params = SAMPLED, .resume = "killed"};
    assert_int_equal(run_job(&plain).code, 0);
    (void)run_job(&killed);
    assert_int_equal(run_job(&next).code, 0);
    run_assert_same_file("plain", "next", "harness/results.json");
    run_assert_same_file("plain", "next", "harness/samples_choices.jsonl");
    assert_true(is_artifact("next", "harness/results.json"));
    assert_true(is_artifact("next", "harness/samples_choices.jsonl"));
    assert_int_equal(count_files("next/harness"), 2);
}

/* Results always, samples when asked for; what an earlier run by hand left goes. */
static void test_without_samples(void **state)
{
    (void)state;
    const struct job asked = {.folder = "again", .params = SAMPLED};
    const struct job job = {.folder = "again", .params = CHOICES};
    assert_int_equal(run_job(&asked).code, 0);
    assert_int_equal(count_files("again/harness"), 2);
    assert_int_equal(run_job(&job).code, 0);
    assert_int_equal(count_files("again/harness"), 1);
    assert_true(is_artifact("again", "harness/results.json"));
}

/* Faulty items are not samples, and not counted. */
static void test_faulty_items(void **state)
{
    (void)state;
    const struct job job = {.folder = "faulty",
                            .params =
                                "{\"task\":\"choices\",\"data\":\"faulty\",\"samples\":true}"};
    struct strbuf text = STRBUF_INIT;
    assert_int_equal(run_job(&job).code, 0);
    run_read_text("faulty", "harness/samples_choices.jsonl", &text);
    assert_non_null(strstr(text.buf, "{\"doc_id\": 0, "));
    assert_null(strstr(text.buf, "{\"doc_id\": 1, "));
    run_read_text("faulty", "harness/results.json", &text);
    assert_non_null(strstr(text.buf, "\"original\": 2,\n      \"effective\": 1\n"));
    assert_non_null(strstr(text.buf, "\"acc_stderr,none\": \"N/A\""));
    strbuf_release(&text);
}

/* A task of one item has no standard error, nor has a group with such a task; what is not asked is
 * not there. */
static void test_no_error(void **state)
{
    (void)state;
    /* all of anatomy and one of astronomy */
    const struct job job = {.folder = "few",
                            .params = MMLU ",\"items\":{\"count\":4,\"seed\":180}}"};
    struct strbuf text = STRBUF_INIT;
    int n = 0;
    assert_int_equal(run_job(&job).code, 0);
    run_read_text("few", "harness/results.json", &text);
    for (const char *at = text.buf; (at = strstr(at, "\"acc_stderr,none\": \"N/A\"")) != NULL; at++)
        n++;
    assert_int_equal(n, 5); /* mmlu and mmlu_stem twice, mmlu_astronomy */
    assert_non_null(strstr(text.buf, "\"mmlu_anatomy\""));
    assert_null(strstr(text.buf, "mmlu_marketing"));
    strbuf_release(&text);
}

/* A limit is one of each task, and so it says. */
static void test_limit(void **state)
{
    (void)state;
    const struct job job = {.folder = "limited", .params = MMLU ",\"limit\":4}"};
    struct strbuf text = STRBUF_INIT;
    assert_int_equal(run_job(&job).code, 0);
    run_read_text("limited", "harness/results.json", &text);
    assert_non_null(strstr(text.buf, "\"original\": 3,\n      \"effective\": 3\n"));
    assert_non_null(strstr(text.buf, "\"original\": 4,\n      \"effective\": 4\n"));
    assert_non_null(strstr(text.buf, "\"original\": 5,\n      \"effective\": 4\n"));
    assert_non_null(strstr(text.buf, "\"limit\": 4.0"));
    strbuf_release(&text);
}

/* Of a model that gives NaN there is nothing to say. */
static void test_no_value(void **state)
{
    (void)state;
    const struct job job = {.folder = "nan", .params = SAMPLED, .model = "model-nan"};
    assert_int_equal(run_job(&job).code, 0);
    assert_int_equal(file_kind_at("nan/harness"), FILE_ABSENT);
    run_assert_event("nan", "no harness/: acc has no value");
}

static void test_full_disk(void **state)
{
    (void)state;
    const struct job job = {.folder = "full", .params = SAMPLED};
    assert_int_equal(run_job(&job).code, 0);
    const struct end end = run_words("export-harness full -o full-out", 200);
    if (end.code != 1 || strstr(end.said, "File too large") == NULL ||
        strchr(end.said, '\n') != strrchr(end.said, '\n'))
        fail_msg("exit %d: %s", end.code, end.said);
    struct name_list names;
    struct err err = {0};
    assert_int_equal(dir_list("full-out", &names, &err), 0);
    assert_int_equal(names.n, 1);
    char *inner = path_join("full-out", names.names[0]);
    assert_int_equal(count_files(inner), 0);
    free(inner);
    name_list_release(&names);
}

static void assert_exported(const char *attempt, const char *out, size_t n_files)
{
    struct err err = {0};
    struct name_list models;
    struct name_list names;
    assert_int_equal(dir_list(out, &models, &err), 0);
    assert_int_equal(models.n, 1);
    assert_int_equal(strncmp(models.names[0], "prereg-", 7), 0);
    char *inner = path_join(out, models.names[0]);
    assert_int_equal(dir_list(inner, &names, &err), 0);
    assert_int_equal(names.n, n_files);
    for (size_t i = 0; i < names.n; i++) {
        struct strbuf ours = STRBUF_INIT;
        struct strbuf theirs = STRBUF_INIT;
        const char *stamp = strstr(names.names[i], "_20");
        assert_non_null(stamp);
        if (strncmp(names.names[i], "samples_", 8) == 0) {
            char *name =
                xasprintf("harness/%.*s.jsonl", (int)(stamp - names.names[i]), names.names[i]);
            run_read_text(inner, names.names[i], &ours);
            run_read_text(attempt, name, &theirs);
            assert_string_equal(ours.buf, theirs.buf);
            free(name);
        } else {
            assert_int_equal(strncmp(names.names[i], "results_20", 10), 0);
        }
        strbuf_release(&ours);
        strbuf_release(&theirs);
    }
    name_list_release(&names);
    name_list_release(&models);
    free(inner);
}

static void test_export(void **state)
{
    (void)state;
    const struct job job = {.folder = "subjects", .params = SUBJECTS};
    assert_int_equal(run_job(&job).code, 0);
    assert_int_equal(run_words("export-harness subjects -o here", 0).code, 0);
    assert_exported("subjects", "here", 4);
}

/* Nothing is exported that does not hold, and the message says what it is. */
static void test_not_exported(void **state)
{
    (void)state;
    static const struct {
        const char *file; /* what is changed in a copy of the attempt: this file */
        const char *from;
        const char *to; /* NULL: it is not there */
        const char *words;
        int code;
        const char *said;
    } cases[] = {
        {NULL, NULL, NULL, "export-harness bent", 64, "takes an attempt's folder and -o FOLDER"},
        {NULL, NULL, NULL, "export-harness bent -o out more", 64, "takes an attempt's folder"},
        {NULL, NULL, NULL, "export-harness bent -o out --x", 64, "unknown option '--x'"},
        {NULL, NULL, NULL, "export-harness nowhere -o out", 65, "nowhere"},
        {"result.json", "", NULL, "export-harness bent -o out", 65, "the attempt is not done"},
        {"task.json", "", NULL, "export-harness bent -o out", 65, "task.json"},
        {"items.jsonl", "", NULL, "export-harness bent -o out", 65, "items.jsonl"},
        {"items.jsonl", "\"acc\":1", "\"acc\":0", "export-harness bent -o out", 65,
         "items.jsonl: line "},
        {"items.jsonl", "{\"item\":399", "[\"item\":399", "export-harness bent -o out", 65,
         "items.jsonl: line 401"},
        {"harness/results.json", "", NULL, "export-harness bent -o out", 65,
         "harness/results.json"},
        {"task.json", "data/choices.jsonl", "data/faulty.jsonl", "export-harness bent -o out", 65,
         "not what the attempt read"},
        {"result.json", "\"value\"", "\"valve\"", "export-harness bent -o out", 69, "has no value"},
    };
    const struct job job = {.folder = "straight", .params = CHOICES};
    assert_int_equal(run_job(&job).code, 0);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CHECK_ROW("%s", cases[i].file);
        static const char *const files[] = {"task.json", "result.json", "items.jsonl",
                                            "harness/results.json"};
        struct err err = {0};
        assert_int_equal(dir_remove("bent", &err), 0);
        for (size_t k = 0; k < ARRAY_LEN(files); k++) {
            CHECK_ROW("%s", files[k]);
            struct strbuf text = STRBUF_INIT;
            char *path = path_join("bent", files[k]);
            run_read_text("straight", files[k], &text);
            const bool bent = cases[i].file != NULL && strcmp(cases[i].file, files[k]) == 0;
            if (bent && cases[i].to != NULL) {
                char *at = strstr(text.buf, cases[i].from);
                assert_non_null(at);
                assert_int_equal(strlen(cases[i].from) >= strlen(cases[i].to), 1);
                const size_t n = strlen(cases[i].to);
                const size_t rest = strlen(cases[i].from) - n;
                memcpy(at, cases[i].to, n);
                memmove(at + n, at + n + rest, strlen(at + n + rest) + 1);
            }
            if (!bent || cases[i].to != NULL)
                scratch_put(".", path, text.buf);
            strbuf_release(&text);
            free(path);
        }
        const struct end end = run_words(cases[i].words, 0);
        if (end.code != cases[i].code || strstr(end.said, cases[i].said) == NULL ||
            strchr(end.said, '\n') != strrchr(end.said, '\n'))
            fail_msg("case %zu: exit %d: %s", i, end.code, end.said);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_killed_and_resumed), cmocka_unit_test(test_without_samples),
        cmocka_unit_test(test_faulty_items),       cmocka_unit_test(test_no_value),
        cmocka_unit_test(test_no_error),           cmocka_unit_test(test_limit),
        cmocka_unit_test(test_full_disk),          cmocka_unit_test(test_export),
        cmocka_unit_test(test_not_exported),
    };
    return cmocka_run_group_tests(tests, run_set_up, scratch_leave);
}
