/* Samples files that 0.4.3, 0.4.4, 0.4.7 and 0.4.12 wrote (over tasks of a few made-up items and a
 * model of random answers): everything in them is recomputed, and one changed byte of an answer, a
 * document or a score is found. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/files/file.h"
#include "base/json/json.h"
#include "base/xalloc.h"
#include "tests/unit/check.h"
#include "tests/unit/scratch.h"
#include "truthtable/imported/samples.h"

#define FIXTURES "tests/unit/truthtable/imported/fixtures"
#define STAMP    "2026-11-21T09-38-46.908747"

static char *file_of(const char *version, const char *task)
{
    char *name = task == NULL ? xasprintf("%s/results_" STAMP ".json", version)
                              : xasprintf("%s/samples_%s_" STAMP ".jsonl", version, task);
    char *folder = path_join(TEST_SOURCE_DIR, FIXTURES);
    char *path = path_join(folder, name);
    free(folder);
    free(name);
    return path;
}

static void read_results(struct imported_results *r, const char *version)
{
    struct err err;
    char *path = file_of(version, NULL);
    if (results_read(r, path, &err) != 0) {
        fail_msg("%s", err.msg);
    }
    free(path);
}

static int check(const struct imported_results *r, const char *task, const char *path,
                 struct strbuf *said, struct err *err)
{
    struct samples s;
    *err = (struct err){0};
    int rc = samples_init(&s, r, results_find(r, task), err);
    rc = rc == 0 ? samples_read(&s, path, err) : rc;
    rc = rc == 0 ? samples_compare(&s, err) : rc;
    if (rc == 0) {
        samples_describe(&s, said);
        assert_true(s.all_hashes);
    }
    samples_release(&s);
    return rc;
}

static void test_versions(void **state)
{
    (void)state;
    static const struct {
        const char *version;
        const char *task;
        const char *said;
    } cases[] = {
        {"0.4.3", "hs_tiny", "acc,none from the answers, acc_norm,none from the answers"},
        {"0.4.3", "wg_tiny", "acc,none from the answers"},
        {"0.4.3", "gsm_tiny",
         "exact_match,strict-match from the answers, exact_match,flexible-extract from the "
         "answers"},
        {"0.4.3", "lam_tiny", "perplexity,none from the answers, acc,none from the answers"},
        {"0.4.3", "wiki_tiny",
         "word_perplexity,none from the answers, byte_perplexity,none from the answers, "
         "bits_per_byte,none from the answers"},
        {"0.4.3", "many_b", "acc,none from the answers"},
        {"0.4.4", "gsm_tiny",
         "exact_match,strict-match from the answers, exact_match,flexible-extract from the "
         "answers"},
        {"0.4.4", "many_c", "acc,none from the answers"},
        {"0.4.7", "gsm_tiny",
         "exact_match,strict-match from the answers, exact_match,flexible-extract from the "
         "answers"},
        {"0.4.12", "hs_tiny", "acc,none from the answers, acc_norm,none from the answers"},
        {"0.4.12", "wg_tiny", "acc,none from the answers"},
        {"0.4.12", "gsm_tiny",
         "exact_match,strict-match from the answers, exact_match,flexible-extract from the "
         "answers"},
        {"0.4.12", "lam_tiny", "perplexity,none from the answers, acc,none from the answers"},
        {"0.4.12", "many_a", "acc,none from the answers"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CHECK_ROW("%s", cases[i].version);
        struct imported_results r;
        struct err err;
        struct strbuf said = STRBUF_INIT;
        const char *how = NULL;
        read_results(&r, cases[i].version);
        char *path = file_of(cases[i].version, cases[i].task);
        if (check(&r, cases[i].task, path, &said, &err) != 0) {
            fail_msg("%s %s: %s", cases[i].version, cases[i].task, err.msg);
        }
        assert_string_equal(said.buf, cases[i].said);
        assert_int_equal(results_check_group(&r, results_find(&r, "many"), &how, &err), 0);
        assert_string_equal(how, "weighted by size");
        strbuf_release(&said);
        results_release(&r);
        free(path);
    }
}

/* Writes a copy with `from` changed into `to` on the line (from 1); says whether it was there. */
static bool copy_changed(const char *from_path, const char *to_path, size_t line, const char *from,
                         const char *to)
{
    struct strbuf text = STRBUF_INIT;
    struct strbuf out = STRBUF_INIT;
    struct err err;
    assert_int_equal(file_read(from_path, (size_t)1 << 20, &text, &err), 0);
    const char *at = text.buf;
    for (size_t i = 1; i < line; i++) {
        at = strchr(at, '\n') + 1;
    }
    const char *found = strstr(at, from);
    bool there = found != NULL && found < strchr(at, '\n');
    if (there) {
        strbuf_add(&out, text.buf, (size_t)(found - text.buf));
        strbuf_adds(&out, to);
        strbuf_adds(&out, found + strlen(from));
        assert_int_equal(file_write_atomic(to_path, out.buf, out.len, 0600, &err), 0);
    }
    strbuf_release(&text);
    strbuf_release(&out);
    return there;
}

static void test_changed(void **state)
{
    (void)state;
    static const struct {
        const char *task;
        size_t line;
        const char *from;
        const char *to;
        int code;
        const char *said;
    } cases[] = {
        {"hs_tiny", 1, "\"acc\": 0.0", "\"acc\": 1.0", ERR_CORRUPT,
         "line 1: doc_id 0: \"acc\" is 1"},
        {"hs_tiny", 1, "\"acc_norm\": 1.0", "\"acc_norm\": 0.0", ERR_CORRUPT, "acc_norm"},
        {"hs_tiny", 1, "\"acc\": 0.0, ", "", ERR_CORRUPT, "line 2: \"acc\" is there, unlike"},
        {"hs_tiny", 1, "\"acc\": 0.0", "\"acc\": [0.0, 1]", ERR_SYNTAX,
         "line 1: \"acc\" is not a number"},
        {"hs_tiny", 7, "\"acc\": ", "\"ac\": ", ERR_CORRUPT, "line 7: \"acc\" is missing, unlike"},
        {"wiki_tiny", 1, "\"filtered_resps\": [\"-31.9", "\"filtered_resps\": [\"-30.9",
         ERR_CORRUPT, "line 1: \"filtered_resps\""},
        {"hs_tiny", 1, "\"w\": 1.5", "\"w\": 1.25", ERR_CORRUPT, "line 1: \"doc_hash\""},
        {"hs_tiny", 2, "\"doc_id\": 1", "\"doc_id\": 0", ERR_CORRUPT,
         "line 2: doc_id 0 stands twice"},
        {"hs_tiny", 2, "\"doc_id\": 1", "\"doc_id\": -1", ERR_RANGE, "doc_id"},
        {"hs_tiny", 1, "\"-7.87199372755828\"", "\"-17.9\"", ERR_CORRUPT, "filtered_resps"},
        {"gsm_tiny", 1, "\"[invalid]\"", "\"4\"", ERR_CORRUPT, "its answer is the target's"},
        {"gsm_tiny", 12, "\"exact_match\": ", "\"exact_match\": 2", ERR_CORRUPT, "line 12"},
        {"lam_tiny", 1, "\"perplexity\": -16.6", "\"perplexity\": -15.6", ERR_CORRUPT,
         "perplexity"},
        {"wiki_tiny", 1, ", 20]", ", 21]", ERR_CORRUPT, "word_perplexity"},
        {"many_b", 3, "\"target\": ", "\"target\": 1", ERR_CORRUPT, "target_hash"},
        {"many_b", 2, "}", "", ERR_SYNTAX, "line 2"},
    };
    struct imported_results r;
    read_results(&r, "0.4.3");
    char *folder = scratch_make();
    char *changed = path_join(folder, "changed.jsonl");
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CHECK_ROW("%s", cases[i].task);
        struct err err;
        struct strbuf said = STRBUF_INIT;
        char *path = file_of("0.4.3", cases[i].task);
        if (!copy_changed(path, changed, cases[i].line, cases[i].from, cases[i].to)) {
            fail_msg("case %zu: nothing to change", i);
        }
        int rc = check(&r, cases[i].task, changed, &said, &err);
        if (rc != cases[i].code || strstr(err.msg, cases[i].said) == NULL) {
            fail_msg("case %zu: code %d, \"%s\"", i, rc, err.msg);
        }
        strbuf_release(&said);
        free(path);
    }
    scratch_remove(folder);
    free(changed);
    results_release(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_versions),
        cmocka_unit_test(test_changed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
