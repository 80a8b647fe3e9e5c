/* Receipts as a whole: made, verified, packed and taken out again; what is refused, and why. */
/* cmocka.h wants those four before it */
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files/digest.h"
#include "base/files/file.h"
#include "base/json/json.h"
#include "base/xalloc.h"
#include "ctl/receipt/export.h"
#include "ctl/receipt/files.h"
#include "ctl/receipt/tar.h"
#include "tests/unit/check.h"
#include "tests/unit/ctl/receipt/forger.h"
#include "tests/unit/ctl/receipt/world.h"

static int set_up(void **state)
{
    static const struct fixture f = {.n_seeds = 2, .n_evals = 2, .n_metrics = 2};
    return world_make(&f, state);
}

static void test_whole(void **state)
{
    struct world *w = *state;
    const struct verify_spec spec = {.folder = w->made.folder};
    struct verify_answer a;
    assert_int_equal(receipt_verify(&spec, &a), 0);
    assert_int_equal(a.level, LEVEL_CONSISTENT);
    assert_true(cJSON_IsTrue(json_member(a.json, "holds")));
    assert_string_equal(json_member(a.json, "records")->valuestring, "executed");
    assert_true(cJSON_GetArraySize(json_member(a.json, "not_shown")) > 4);
    verify_answer_release(&a);
}

static bool says(const cJSON *list, const char *what)
{
    const cJSON *m = NULL;
    cJSON_ArrayForEach(m, list)
    {
        if (strstr(m->valuestring, what) != NULL) {
            return true;
        }
    }
    return false;
}

/* However long it is, and one line. */
static void test_runs(void **state)
{
    struct world *w = *state;
    struct strbuf run = STRBUF_INIT;
    struct err err = {0};
    struct export_made made = {0};
    struct verify_answer a;
    char *program = NULL;
    char *folder = path_join(w->folder, "runs");
    char *out = path_join(w->folder, "runs_out");
    strbuf_adds(&run, "{\"work\":\"/");
    for (int i = 0; i < 1000; i++) {
        strbuf_addc(&run, 'w');
    }
    strbuf_adds(&run, "\\u001b\\u009b\"}");
    const struct fixture f = {.n_seeds = 2, .n_evals = 1, .n_metrics = 1, .other_run = run.buf};
    assert_int_equal(dir_make(folder, 0700, &err), 0);
    assert_int_equal(fixture_make(&f, folder, &program, &err), 0);
    const struct export_spec export = {.program_folder = program, .out = out};
    assert_int_equal(receipt_export(&export, &made, &err), 0);
    const struct verify_spec spec = {.folder = made.folder};
    assert_int_equal(receipt_verify(&spec, &a), 0);
    const cJSON *list = json_member(a.json, "established");
    assert_true(says(list, "[run] was {\"work\":\"/wwwww"));
    assert_true(says(list, "wwwww\\u001b??\"}: 0 tasks were blocked under it"));
    verify_answer_release(&a);
    export_made_release(&made);
    strbuf_release(&run);
    free(program);
    free(out);
    free(folder);
}

/* Every evaluation of the fixture names the model that it read, by the digest of an artifact. */
static void test_inputs(void **state)
{
    struct world *w = *state;
    const struct verify_spec spec = {.folder = w->made.folder};
    static const struct {
        struct fixture f;
        const char *says; /* NULL: it follows */
    } cases[] = {
        {{.other_model = true}, "records.jsonl:2: it read 0000000000000000... of \"train\", whose"},
        {{.our_workers = true}, NULL},
        /* the snapshot of the same training in the place of its last model */
        {{.our_workers = true, .other_model = true},
         "records.jsonl:2: the model that it read of \"train\" is not model/model.bin of the"},
        {{.other_data = true}, "records.jsonl:1: it read other \"corpus\" than was locked"},
    };
    struct verify_answer a;
    assert_int_equal(receipt_verify(&spec, &a), 0);
    assert_true(says(json_member(a.json, "established"), "7 results name what they read"));
    verify_answer_release(&a);

    /* What does not follow is not exported. */
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CHECK_ROW("%zu", i);
        struct fixture f = cases[i].f;
        struct export_made made = {0};
        struct err err = {0};
        char *program = NULL;
        char *folder = path_join(w->folder, "other");
        char *out = path_join(folder, "out");
        f.n_seeds = 2;
        f.n_evals = 1;
        f.n_metrics = 1;
        assert_int_equal(dir_make(folder, 0700, &err), 0);
        assert_int_equal(fixture_make(&f, folder, &program, &err), 0);
        const struct export_spec export = {.program_folder = program, .out = out};
        assert_int_equal(receipt_export(&export, &made, &err),
                         cases[i].says == NULL ? 0 : ERR_LOCK);
        if (cases[i].says != NULL && strstr(err.msg, cases[i].says) == NULL) {
            fail_msg("found \"%s\"", err.msg);
        }
        export_made_release(&made);
        assert_int_equal(dir_remove(folder, &err), 0);
        free(out);
        free(folder);
        free(program);
    }
}

/* What is signed must not depend on who packs it, or when. */
static void test_same_bytes(void **state)
{
    struct world *w = *state;
    struct export_made again;
    struct err err = {0};
    struct digest a;
    struct digest b;
    char *out = path_join(w->folder, "again");
    assert_int_equal(receipt_export(&(struct export_spec){.program_folder = w->program, .out = out},
                                    &again, &err),
                     0);
    assert_string_equal(again.sums, w->made.sums);
    assert_int_equal(digest_file(again.tar, &a, NULL, &err), 0);
    assert_int_equal(digest_file(w->made.tar, &b, NULL, &err), 0);
    assert_true(digest_equal(&a, &b));
    assert_int_equal(dir_remove(out, &err), 0);
    export_made_release(&again);
    free(out);
}

static void test_not_replaced(void **state)
{
    struct world *w = *state;
    struct export_made again;
    struct err err = {0};
    char *out = path_join(w->folder, "out");
    assert_int_equal(receipt_export(&(struct export_spec){.program_folder = w->program, .out = out},
                                    &again, &err),
                     ERR_EXISTS);
    export_made_release(&again);
    free(out);
}

static void append(const char *path, const char *bytes, size_t n)
{
    FILE *file = fopen(path, "ae");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, n, file), n);
    assert_int_equal(fclose(file), 0);
}

/* What no sum covers: nothing but the padding of a record may follow. */
static void test_tar_end(void **state)
{
    static const struct {
        size_t zeros;
        const char *more;
        const char *what; /* NULL: it is taken */
    } cases[] = {{10240, "", NULL},
                 {0, "more", "something follows"},
                 {200000, "more", "something follows"},
                 {(size_t)3 << 20, "", "too many bytes follow"}};
    struct world *w = *state;
    char *tar = path_join(w->folder, "longer.tar");
    char *to = path_join(w->folder, "taken");
    char *zeros = xcalloc((size_t)3 << 20, 1);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CHECK_ROW("%s", cases[i].more);
        struct err f = {0};
        struct err err;
        assert_int_equal(file_copy(w->made.tar, tar, 0600, &err), 0);
        append(tar, zeros, cases[i].zeros);
        append(tar, cases[i].more, strlen(cases[i].more));
        assert_int_equal(dir_make(to, 0700, &err), 0);
        assert_int_equal(tar_read(tar, to, &f), cases[i].what == NULL ? 0 : ERR_LOCK);
        assert_true(cases[i].what == NULL || strstr(f.msg, cases[i].what) != NULL);
        assert_int_equal(dir_remove(to, &err), 0);
        assert_int_equal(unlink(tar), 0);
    }
    free(zeros);
    free(to);
    free(tar);
}

static void test_tar(void **state)
{
    struct world *w = *state;
    struct err f = {0};
    struct err err;
    char *to = path_join(w->folder, "taken");
    assert_int_equal(dir_make(to, 0700, &err), 0);
    assert_int_equal(tar_read(w->made.tar, to, &f), 0);
    const struct verify_spec spec = {.folder = to};
    struct verify_answer a;
    assert_int_equal(receipt_verify(&spec, &a), 0);
    verify_answer_release(&a);
    assert_int_equal(dir_remove(to, &err), 0);
    free(to);
}

static void test_sealed_is_refused(void **state)
{
    struct world *w = *state;
    struct export_made made;
    struct err err = {0};
    char *verdict = path_join(w->program, "report/verdict.json");
    char *away = path_join(w->folder, "verdict.json");
    char *out = path_join(w->folder, "sealed");
    assert_int_equal(rename(verdict, away), 0);
    assert_int_equal(receipt_export(&(struct export_spec){.program_folder = w->program, .out = out},
                                    &made, &err),
                     ERR_REFUSED);
    assert_int_equal(file_kind_at(out), FILE_ABSENT);
    export_made_release(&made);
    assert_int_equal(rename(away, verdict), 0);
    free(out);
    free(away);
    free(verdict);
}

/* Whoever changes the folder while it is read: nothing that became a link is followed, neither a
 * file nor its folder, and what is gone or grew is told. */
static void test_changed_meanwhile(void **state)
{
    struct world *w = *state;
    struct err err;
    struct strbuf text = STRBUF_INIT;
    struct receipt_files files = {.fd = -1};
    struct err f = {0};
    char *folder = path_join(w->folder, "changing");
    char *inner = path_join(folder, "amendments");
    char *one = path_join(inner, "0001.json");
    char *grid = path_join(folder, "grid.toml");
    char *secret = path_join(w->folder, "secret");
    assert_int_equal(dir_make(inner, 0700, &err), 0);
    assert_int_equal(dir_make(secret, 0700, &err), 0);
    char *theirs = path_join(secret, "0001.json");
    const char *const paths[] = {one, grid, theirs};
    for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
        CHECK_ROW("%s", paths[i]);
        assert_int_equal(file_write_atomic(paths[i], "{}", 2, 0600, &err), 0);
    }
    assert_int_equal(files_open(&files, folder, &f), 0);
    assert_int_equal(files_read(&files, "amendments/0001.json", &text, &f), 0);
    assert_int_equal(dir_remove(inner, &err), 0);
    assert_int_not_equal(files_read(&files, "amendments/0001.json", &text, &f), 0);
    assert_int_equal(symlink("../secret", inner), 0);
    assert_int_not_equal(files_read(&files, "amendments/0001.json", &text, &f), 0);
    assert_int_equal(unlink(grid), 0);
    assert_int_equal(symlink("../secret/0001.json", grid), 0);
    assert_int_not_equal(files_read(&files, "grid.toml", &text, &f), 0);
    assert_int_equal(unlink(grid), 0);
    assert_int_equal(mkfifo(grid, 0600), 0);
    assert_int_equal(files_read(&files, "grid.toml", &text, &f), ERR_LOCK);
    assert_string_equal(f.msg, "was changed while the receipt was read");
    assert_int_equal(unlink(grid), 0);
    assert_int_equal(file_write_atomic(grid, "{}", 2, 0600, &err), 0);
    assert_int_equal(truncate(grid, RECEIPT_WHOLE_MAX + 1), 0);
    assert_int_equal(files_read(&files, "grid.toml", &text, &f), ERR_LOCK);
    files_release(&files);
    strbuf_release(&text);
    free(theirs);
    free(secret);
    free(grid);
    free(one);
    free(inner);
    free(folder);
}

/* The last digits of an exponential are another library's; nothing else is. */
static void test_near(void **state)
{
    static const struct {
        const char *expected;
        const char *found;
        bool near;
    } CASES[] = {
        {"{\n  \"a\": 0.026491128763790287\n}\n", "{\n  \"a\": 0.026491128763790273\n}\n", true},
        {"{\n  \"a\": 1000000\n}\n", "{\n  \"a\": 1000001\n}\n", false},
        {"{\n  \"a\": 0.5\n}\n", "{\n  \"a\": 0.500000000001\n}\n", false},
        {"{\n  \"a\": 0\n}\n", "{\n  \"a\": 1e-300\n}\n", false},
        {"{\n  \"a\": 1\n}\n", "{\n  \"a\": null\n}\n", false},
        {"{\n  \"a\": 0.5\n}\n", "{\"a\": 0.5}", false},
        {"{\n  \"a\": 0.026491128763790287\n}\n", "{\"a\":0.026491128763790273}", false}};
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
        CHECK_ROW("%s", CASES[i].expected);
        struct strbuf expected = STRBUF_INIT;
        struct strbuf found = STRBUF_INIT;
        struct err f = {0};
        size_t n = 0;
        strbuf_adds(&expected, CASES[i].expected);
        strbuf_adds(&found, CASES[i].found);
        assert_int_equal(mismatch_texts_near(&f, &expected, &found, &n) == 0, CASES[i].near);
        assert_int_equal(n, CASES[i].near || i == 6 ? 1 : 0);
        assert_int_equal(mismatch_texts(&f, &expected, &found), ERR_LOCK);
        strbuf_release(&expected);
        strbuf_release(&found);
    }
}

static char *copy_of(const struct world *w, const char *name)
{
    struct err err = {0};
    struct name_list names = {0};
    char *to = path_join(w->folder, name);
    assert_int_equal(dir_make(to, 0700, &err), 0);
    assert_int_equal(dir_list(w->made.folder, &names, &err), 0);
    for (size_t i = 0; i < names.n; i++) {
        char *a = path_join(w->made.folder, names.names[i]);
        char *b = path_join(to, names.names[i]);
        if (file_kind_at(a) == FILE_REGULAR) {
            assert_int_equal(file_copy(a, b, 0600, &err), 0);
        }
        free(a);
        free(b);
    }
    name_list_release(&names);
    return to;
}

static void expect_fault(const char *folder, const char *file, const char *what)
{
    const struct verify_spec spec = {.folder = folder};
    struct verify_answer a;
    assert_int_equal(receipt_verify(&spec, &a), ERR_LOCK);
    if (strcmp(a.fault.file, file) != 0 || strstr(a.fault.msg, what) == NULL) {
        fail_msg("wanted %s: %s; is %s: %s", file, what, a.fault.file, a.fault.msg);
    }
    verify_answer_release(&a);
}

/* A statement of a stranger's is not parsed before its sum holds, and never when it holds more
 * values than any statement does. */
static void test_many_values(void **state)
{
    struct world *w = *state;
    struct strbuf text = STRBUF_INIT;
    struct err err = {0};
    char *folder = copy_of(w, "many");
    char *path = path_join(folder, RECEIPT_STATEMENT);
    strbuf_addc(&text, '[');
    for (size_t i = 0; i < 3000000; i++) {
        strbuf_adds(&text, "[],");
    }
    strbuf_adds(&text, "[]]");
    assert_int_equal(file_write_atomic(path, text.buf, text.len, 0600, &err), 0);
    expect_fault(folder, RECEIPT_STATEMENT, "its SHA-256 is not the one");
    assert_int_equal(forge_sums(folder, &err), 0);
    expect_fault(folder, RECEIPT_STATEMENT, "JSON values");
    while (text.len <= (size_t)RECEIPT_STATEMENT_MAX) {
        strbuf_addc(&text, ' ');
    }
    assert_int_equal(file_write_atomic(path, text.buf, text.len, 0600, &err), 0);
    expect_fault(folder, RECEIPT_STATEMENT, "are read at most");
    assert_int_equal(dir_remove(folder, &err), 0);
    strbuf_release(&text);
    free(path);
    free(folder);
}

/* Commas and brackets within strings are no values. */
static void test_nodes(void **state)
{
    static const struct {
        const char *unit;
        bool within;
    } cases[] = {
        {"[],", false}, {"{},", false}, {"\"[[[[,,,,\\\"[[[[,,,,\",", true}, {"0,", false}};
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CHECK_ROW("%s", cases[i].unit);
        struct strbuf text = STRBUF_INIT;
        struct err err = {0};
        while (text.len < (size_t)12 << 20) {
            strbuf_adds(&text, cases[i].unit);
        }
        const int rc = nodes_check(text.buf, text.len, &err);
        assert_int_equal(rc, cases[i].within ? 0 : ERR_RANGE);
        strbuf_release(&text);
    }
}

static bool holds(const char *folder, const char *name, const char *text)
{
    struct strbuf bytes = STRBUF_INIT;
    struct err err = {0};
    char *path = path_join(folder, name);
    assert_int_equal(file_read(path, (size_t)1 << 24, &bytes, &err), 0);
    const bool found = memmem(bytes.buf, bytes.len, text, strlen(text)) != NULL;
    strbuf_release(&bytes);
    free(path);
    return found;
}

static void write_program(const struct world *w, const char *name, const char *text, size_t len)
{
    struct err err = {0};
    char *path = path_join(w->program, name);
    assert_int_equal(file_write_atomic(path, text, len, 0600, &err), 0);
    free(path);
}

static void expect_export(const struct world *w, int code, const char *what)
{
    struct export_made made;
    struct err err = {0};
    char *out = path_join(w->folder, "report-out");
    const struct export_spec spec = {.program_folder = w->program, .out = out};
    assert_int_equal(receipt_export(&spec, &made, &err), code);
    assert_true(code == 0 || strstr(err.msg, what) != NULL);
    assert_int_equal(dir_remove(out, &err), 0);
    export_made_release(&made);
    free(out);
}

/* A report that is not the one of its own sums does not become part of a receipt. */
static void test_report_sums(void **state)
{
    struct world *w = *state;
    struct strbuf was = STRBUF_INIT;
    struct strbuf sums = STRBUF_INIT;
    struct err err = {0};
    char *report = path_join(w->program, "report/report.md");
    char *path = path_join(w->program, "report/SHA256SUMS");
    assert_int_equal(file_read(report, (size_t)1 << 20, &was, &err), 0);
    assert_int_equal(file_read(path, (size_t)1 << 20, &sums, &err), 0);
    expect_export(w, 0, NULL);
    write_program(w, "report/report.md", "another", 7);
    expect_export(w, ERR_LOCK, "report/report.md is not the file that report/SHA256SUMS names");
    write_program(w, "report/report.md", was.buf, was.len);
    assert_int_equal(unlink(path), 0);
    expect_export(w, ERR_LOCK, "report/instruments.json is not the file");
    write_program(w, "report/SHA256SUMS", sums.buf, sums.len);
    expect_export(w, 0, NULL);
    strbuf_release(&was);
    strbuf_release(&sums);
    free(path);
    free(report);
}

/* Hosts have numbers, unless their names are asked for; both follow. */
static void test_hosts(void **state)
{
    static const char *const names[] = {RECEIPT_PROVENANCE, RECEIPT_ENVIRONMENT};
    struct world *w = *state;
    struct export_made named;
    struct verify_answer a;
    struct err err = {0};
    char *out = path_join(w->folder, "named");
    assert_int_equal(
        receipt_export(
            &(struct export_spec){.program_folder = w->program, .out = out, .with_host = true},
            &named, &err),
        0);
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        CHECK_ROW("%s", names[i]);
        assert_false(holds(w->made.folder, names[i], "\"vm\""));
        assert_true(holds(w->made.folder, names[i], "\"host 1\""));
        assert_true(holds(named.folder, names[i], "\"vm\""));
    }
    assert_int_equal(receipt_verify(&(struct verify_spec){.folder = named.folder}, &a), 0);
    verify_answer_release(&a);
    assert_int_equal(dir_remove(out, &err), 0);
    export_made_release(&named);
    free(out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_whole),
        cmocka_unit_test(test_inputs),
        cmocka_unit_test(test_runs),
        cmocka_unit_test(test_same_bytes),
        cmocka_unit_test(test_not_replaced),
        cmocka_unit_test(test_tar),
        cmocka_unit_test(test_tar_end),
        cmocka_unit_test(test_sealed_is_refused),
        cmocka_unit_test(test_changed_meanwhile),
        cmocka_unit_test(test_near),
        cmocka_unit_test(test_many_values),
        cmocka_unit_test(test_nodes),
        cmocka_unit_test(test_hosts),
        cmocka_unit_test(test_report_sums),
    };
    return cmocka_run_group_tests(tests, set_up, world_drop);
}
