/* Whole reports, from a program's folder to the files: every kind of verdict, gaps, hostile names,
 * tampering. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/files/digest.h"
#include "base/files/file.h"
#include "base/json/json.h"
#include "base/strbuf.h"
#include "base/xalloc.h"
#include "tests/unit/check.h"
#include "tests/unit/scratch.h"
#include "tests/unit/truthtable/report/fixture.h"
#include "truthtable/report/report.h"

#define WORDS_MAX 12

struct report_case {
    const char *name;
    struct fixture fixture;
    const char *says[WORDS_MAX];  /* in both files, as they stand in HTML and Markdown alike */
    const char *html[WORDS_MAX];  /* in report.html */
    const char *never[WORDS_MAX]; /* in neither */
};

static const struct report_case cases[] = {
    {"bound",
     {.toml = "floor.toml",
      .height = 0.3,
      .blocked_stage = "gsm8k",
      .blocked_cause = "not_measurable",
      .n_blocked = 12},
     {"Below the measurement floor", "None of the 3 counted measures clears its floor",
      "rows 4, 8, 12 and 16 of the table can fire", "0.17 (2.556 bits)", "48 of 60",
      "18 differences between conditions", "the plan that was locked is the plan that was run",
      "counter.k: 0 of 3 measures reach their floor in every cell", "self-consistent",
      "Nothing proves that no data existed before the lock"},
     {"class=\"banner plain\"", "<tr class=\"lit\"><th scope=\"row\" class=\"num plain\">4</th>",
      "12 \xc3\x97 not_<wbr>measurable", "+5.47\xcf\x83", "2,560,000", "loss during train",
      "silent_<wbr>death", "run.train.memory", "Router health"},
     {"UNVERIFIED", "INDETERMINATE", "VOID", " nan", ">nan", "(null)", "before any score",
      "before any data"}},
    {"indeterminate",
     {.toml = "floor.toml",
      .height = 1.2,
      .blocked_stage = "hellaswag",
      .blocked_cause = "cancelled",
      .n_blocked = 1},
     {"INDETERMINATE", "they name O1, O2 and O3", "The data do not choose between them", "2 to 3",
      "1 task was ended or given up by a person", "the priors are not scored",
      "of them undetermined; the largest known is 0.", "by a person, which is not a chance loss",
      "1 cell has no value and no mark", "first error: arch=", "/hellaswag: blocked (cancelled)",
      "preregctl explain arch="},
     {"class=\"banner warn\""},
     {"VOID", " nan", ">nan", "(null)"}},
    {"void",
     {.toml = "floor.toml",
      .height = 0.3,
      .blocked_stage = "mmlu",
      .blocked_cause = "crash",
      .n_blocked = 5,
      .unverified = true,
      .unblinded = true},
     {"VOID", "5 counted tasks are lost, the exclusion budget is 3", "UNVERIFIED HISTORY",
      "1 unblinding", "impatience", "would fire", "/mmlu: blocked (crash)", "binds nothing",
      "Counted tasks lost"},
     {"class=\"banner bad\""},
     {"INDETERMINATE", " nan", ">nan", "(null)"}},
    {"excluded",
     {.toml = "floor.toml",
      .height = 1.2,
      .blocked_stage = "winogrande",
      .blocked_cause = "oom",
      .n_blocked = 1},
     {"1 (budget 3)", "1 counted task was excluded", "excluded: arch=dense,lr=0.001,seed=42"},
     {"<td class=\"num warn\">excluded</td>"},
     {" nan", ">nan", "(null)"}},
    {"bare",
     {.toml = "floor.toml", .height = 0.3, .no_curves = true, .no_provenance = true},
     {"UNVERIFIED HISTORY", "there is no provenance.json beside the verdict",
      "No attempt left a curve", "who ran what, and how often, is not known"},
     {NULL},
     {" nan", ">nan", "(null)"}},
    {"one",
     {.toml = "one.toml"},
     {"The model learns", "The program names no contrast", "&gt;400",
      "target: not_reached in 1 cell"},
     {NULL},
     {" nan", ">nan", "(null)", "the table has computed it by itself"}},
    {"many",
     {.toml = "many.toml", .height = 1},
     {"Width pays", "200 cells in 40 conditions",
      "the table has computed it by itself from the records"},
     {"Too many conditions for a legend"},
     {" nan", ">nan", "(null)"}},
    {"hostile",
     {.toml = "hostile.toml", .height = 0.3},
     {"&lt;script&gt;alert(1)&lt;/script&gt;", "&lt;/td&gt;&lt;b&gt;"},
     {"a|b **bold** [link](http:"},
     {"<script", "<img", "</td><b>", "\xe2\x80\xae", " nan", ">nan", "(null)"}},
};

static struct strbuf read_text(const char *folder, const char *name)
{
    struct strbuf text = STRBUF_INIT;
    struct err err = {0};
    char *path = path_join(folder, name);
    assert_int_equal(file_read(path, (size_t)16 << 20, &text, &err), 0);
    free(path);
    return text;
}

static void assert_has(const struct strbuf *text, const char *words, const char *where)
{
    if (strstr(text->buf, words) == NULL) {
        fail_msg("%s does not say \"%s\"", where, words);
    }
}

static void assert_has_not(const struct strbuf *text, const char *words, const char *where)
{
    if (strstr(text->buf, words) != NULL) {
        fail_msg("%s says \"%s\"", where, words);
    }
}

/* Markdown escapes what HTML does not: the words are looked for without backslashes. */
static void drop_backslashes(struct strbuf *text)
{
    size_t n = 0;
    for (size_t i = 0; i < text->len; i++) {
        if (text->buf[i] != '\\') {
            text->buf[n++] = text->buf[i];
        }
    }
    text->buf[n] = '\0';
    text->len = n;
}

/* Breaking places in table cells would part the words that are looked for in both. */
static void drop_breaks(struct strbuf *text)
{
    struct strbuf out = STRBUF_INIT;
    const char *from = text->buf;
    for (const char *at = strstr(from, "<wbr>"); at != NULL; at = strstr(from, "<wbr>")) {
        strbuf_add(&out, from, (size_t)(at - from));
        from = at + 5;
    }
    strbuf_adds(&out, from);
    strbuf_release(text);
    *text = out;
}

/* Whatever stands in it, the JSON parses, and says what the verdict says. */
static void check_json(const char *folder)
{
    struct err err = {0};
    cJSON *report = NULL;
    cJSON *verdict = NULL;
    char *path = path_join(folder, "report/report.json");
    char *verdict_path = path_join(folder, "report/verdict.json");
    if (json_read_file(path, (size_t)16 << 20, &report, &err) != 0 ||
        json_read_file(verdict_path, (size_t)16 << 20, &verdict, &err) != 0) {
        fail_msg("%s: %s", path, err.msg);
    }
    const cJSON *outcome = json_member(verdict, "outcome");
    assert_string_equal(
        cJSON_GetStringValue(json_member(json_member(report, "verdict"), "outcome")),
        cJSON_IsString(outcome) ? outcome->valuestring : "INDETERMINATE");
    assert_string_equal(cJSON_GetStringValue(json_member(report, "root")),
                        cJSON_GetStringValue(json_member(verdict, "root")));
    assert_true(cJSON_GetArraySize(json_member(report, "sections")) > 8);
    cJSON_Delete(report);
    cJSON_Delete(verdict);
    free(path);
    free(verdict_path);
}

static void check_case(const struct report_case *c, const char *folder)
{
    struct strbuf md = read_text(folder, "report/report.md");
    struct strbuf html = read_text(folder, "report/report.html");
    for (size_t i = 0; i < WORDS_MAX && c->html[i] != NULL; i++) {
        assert_has(&html, c->html[i], c->name);
    }
    check_json(folder);
    drop_backslashes(&md);
    drop_breaks(&html);
    for (size_t i = 0; i < WORDS_MAX && c->says[i] != NULL; i++) {
        assert_has(&html, c->says[i], c->name);
        assert_has(&md, c->says[i], c->name);
    }
    for (size_t i = 0; i < WORDS_MAX && c->never[i] != NULL; i++) {
        assert_has_not(&html, c->never[i], c->name);
        assert_has_not(&md, c->never[i], c->name);
    }
    strbuf_release(&md);
    strbuf_release(&html);
}

static void test_reports(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CHECK_ROW("%s", cases[i].name);
        struct err err = {0};
        char *folder = path_join(scratch_folder, cases[i].name);
        if (fixture_make(&cases[i].fixture, folder, &err) != 0 ||
            report_write(folder, NULL, &err) != 0) {
            fail_msg("%s: %s", cases[i].name, err.msg);
        }
        check_case(&cases[i], folder);
        free(folder);
    }
}

static void test_same_input_same_bytes(void **state)
{
    (void)state;
    struct err err = {0};
    char *folder = path_join(scratch_folder, "bound");
    char *other = path_join(scratch_folder, "elsewhere");
    assert_int_equal(report_write(folder, other, &err), 0);
    static const char *const names[] = {"instruments.json", "report.md", "report.html",
                                        "report.json"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        CHECK_ROW("%s", names[i]);
        char *first = xasprintf("%s/report/%s", folder, names[i]);
        char *second = path_join(other, names[i]);
        struct digest a;
        struct digest b;
        assert_int_equal(digest_file(first, &a, NULL, &err), 0);
        assert_int_equal(digest_file(second, &b, NULL, &err), 0);
        assert_true(digest_equal(&a, &b));
        free(first);
        free(second);
    }
    free(folder);
    free(other);
}

static void test_sums_hold(void **state)
{
    (void)state;
    char *folder = path_join(scratch_folder, "bound/report");
    struct strbuf sums = read_text(folder, "SHA256SUMS");
    size_t n = 0;
    char *rest = NULL;
    for (char *line = strtok_r(sums.buf, "\n", &rest); line != NULL;
         line = strtok_r(NULL, "\n", &rest)) {
        struct digest digest;
        struct err err = {0};
        char hex[DIGEST_HEX_SIZE];
        char *path = path_join(folder, line + 66);
        assert_int_equal(digest_file(path, &digest, NULL, &err), 0);
        digest_hex(&digest, hex);
        assert_memory_equal(hex, line, 64);
        free(path);
        n++;
    }
    assert_int_equal(n, 6); /* instruments.json provenance.json report.html report.json report.md
                             * verdict.json */
    strbuf_release(&sums);
    free(folder);
}

/* A curve is one line: the steps that the first attempt did after its checkpoint are the second's.
 */
static void test_resumed_curves_are_joined(void **state)
{
    (void)state;
    char *folder = path_join(scratch_folder, "one");
    struct strbuf html = read_text(folder, "report/report.html");
    const char *thin = strstr(html.buf, "curve thin\" points=\"");
    assert_non_null(thin);
    double last = -1;
    size_t n = 0;
    for (const char *at = thin + strlen("curve thin\" points=\""); *at != '"'; n++) {
        char *end = NULL;
        double x = strtod(at, &end);
        assert_true(x > last);
        last = x;
        at = strpbrk(end, " \"");
        at += *at == ' ' ? 1 : 0;
    }
    assert_int_equal(n, 81); /* 0, 5, ... 400 */
    strbuf_release(&html);
    free(folder);
}

static void replace_in(const char *path, const char *from, const char *to)
{
    struct strbuf text = STRBUF_INIT;
    struct strbuf out = STRBUF_INIT;
    struct err err = {0};
    assert_int_equal(file_read(path, (size_t)16 << 20, &text, &err), 0);
    const char *at = strstr(text.buf, from);
    assert_non_null(at);
    strbuf_add(&out, text.buf, (size_t)(at - text.buf));
    strbuf_adds(&out, to);
    strbuf_adds(&out, at + strlen(from));
    assert_int_equal(file_write_atomic(path, out.buf, out.len, 0644, &err), 0);
    strbuf_release(&text);
    strbuf_release(&out);
}

static void test_refuses_what_does_not_belong_together(void **state)
{
    static const struct {
        const char *file;
        const char *from;
        const char *to;
        int code;
    } changes[] = {
        {"report/verdict.json", "\"root\": \"", "\"root\": \"0", ERR_LOCK},
        {"grid.toml", "measure.loss['small'].mean < 2", "measure.loss['small'].mean < 3", ERR_LOCK},
        {"grid.toml.lock", "\"schema\"", "\"Schema\"", ERR_LOCK},
        {"report/provenance.json", "{", "[", ERR_SYNTAX},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(changes); i++) {
        CHECK_ROW("%s", changes[i].file);
        struct err err = {0};
        char *folder = xasprintf("%s/changed-%zu", scratch_folder, i);
        char *path = path_join(folder, changes[i].file);
        assert_int_equal(fixture_make(&(struct fixture){.toml = "one.toml"}, folder, &err), 0);
        replace_in(path, changes[i].from, changes[i].to);
        int rc = report_write(folder, NULL, &err);
        if (rc != changes[i].code) {
            fail_msg("%s changed: code %d, %s", changes[i].file, rc, err.msg);
        }
        free(path);
        free(folder);
    }
}

static void test_needs_a_verdict(void **state)
{
    (void)state;
    struct err err = {0};
    char *folder = path_join(scratch_folder, "early");
    char *verdict = path_join(folder, "report/verdict.json");
    assert_int_equal(fixture_make(&(struct fixture){.toml = "one.toml"}, folder, &err), 0);
    assert_int_equal(unlink(verdict), 0);
    assert_int_equal(report_write(folder, NULL, &err), ERR_NOT_FOUND);
    char *page = path_join(folder, "report/report.html");
    assert_int_equal(file_kind_at(page), FILE_ABSENT);
    free(page);
    free(verdict);
    free(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reports),
        cmocka_unit_test(test_same_input_same_bytes),
        cmocka_unit_test(test_sums_hold),
        cmocka_unit_test(test_resumed_curves_are_joined),
        cmocka_unit_test(test_refuses_what_does_not_belong_together),
        cmocka_unit_test(test_needs_a_verdict),
    };
    return cmocka_run_group_tests(tests, scratch_enter, scratch_leave);
}
