/* What a report must not keep quiet: records that are open, checks that failed and were amended or
 * taken away, amendments that were not made in advance, and what made a comparison void. */

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/files/file.h"
#include "base/json/json.h"
#include "base/xalloc.h"
#include "tests/unit/check.h"
#include "tests/unit/scratch.h"
#include "tests/unit/truthtable/report/fixture.h"
#include "truthtable/report/document/render.h"
#include "truthtable/report/measure_values.h"
#include "truthtable/report/report_model.h"
#include "truthtable/report/sections/sections.h"
#include "truthtable/report/verdict_words.h"

#define WORDS_MAX 9

#define RESULT(no, amendment, expected, value, holds, text)                                        \
    "{\"check\":\"ref\",\"amendment\":" #amendment ",\"stage\":\"score\",\"model\":\"items.txt\"," \
    "\"metric\":\"score.s\",\"expected\":" #expected ",\"within\":0.01,\"value\":" #value          \
    ",\"holds\":" #holds ",\"text\":\"" text "\",\"attempt\":" #no "}"
#define FAILED RESULT(1, 0, 0.9, 0.51, false, "score.s: expected 0.9 within 0.01, got 0.51")
#define HELD   RESULT(2, 1, 0.51, 0.51, true, "score.s: it holds")
#define FIRST  "{\"no\":1,\"id\":\"a\",\"ended\":\"2026-11-21T03:00:00.000Z\"}"
#define SECOND "{\"no\":2,\"id\":\"b\",\"ended\":\"2026-11-21T03:40:00.000Z\"}"
#define GONE   "{\"name\":\"ref\",\"declared\":false,\"holds\":false,\"results\":["
#define THE_CHECK                                                                                  \
    "[apparatus.ref]\nstage  = \"score\"\nmodel  = \"items.txt\"\nexpect = { metric = "            \
    "\"score.s\", value = 0.9, within = 0.01 }\n"

struct sample {
    const char *name;
    struct fixture fixture;
    struct fixture_change change; /* from NULL: no amendment */
    const char *file;             /* of which `key` is put; NULL: none */
    const char *key;
    const char *json;
    const char *says[WORDS_MAX]; /* in report.json */
    const char *never[WORDS_MAX];
};

static char *page_of(const char *folder)
{
    struct report_model m;
    struct err err = {0};
    struct doc doc;
    struct strbuf json = STRBUF_INIT;
    if (report_model_read(&m, folder, &err) != 0) {
        fail_msg("%s: %s", folder, err.msg);
    }
    doc_init(&doc);
    sections_build(&doc, &m);
    render_json(&doc, &json);
    char *text = xstrdup(json.buf);
    strbuf_release(&json);
    doc_release(&doc);
    report_model_release(&m);
    return text;
}

static void make(const struct sample *t, const char *folder)
{
    struct err err = {0};
    int rc = fixture_make(&t->fixture, folder, &err);
    if (rc == 0 && t->change.from != NULL) {
        rc = fixture_amend(folder, &t->change, &err);
    }
    if (rc == 0 && t->file != NULL) {
        rc = fixture_put(folder, t->file, t->key, t->json, &err);
    }
    if (rc != 0) {
        fail_msg("%s: %s", t->name, err.msg);
    }
}

static void expect_told(const struct sample *cases, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const struct sample *t = &cases[i];
        char *folder = path_join(scratch_folder, t->name);
        make(t, folder);
        char *page = page_of(folder);
        for (size_t k = 0; k < WORDS_MAX; k++) {
            if (t->says[k] != NULL && strstr(page, t->says[k]) == NULL) {
                fail_msg("%s: does not say \"%s\"", t->name, t->says[k]);
            }
            if (t->never[k] != NULL && strstr(page, t->never[k]) != NULL) {
                fail_msg("%s: says \"%s\"", t->name, t->never[k]);
            }
        }
        free(page);
        free(folder);
    }
}

/* A gate that is open is not one that is known to be false. */
static void test_open_is_not_near_chance(void **state)
{
    static const struct sample cases[] = {
        {.name = "all-open",
         .fixture = {.toml = "floor.toml",
                     .height = 0.3,
                     .no_curves = true,
                     .blocked_stage = "gsm8k",
                     .blocked_cause = "not_measurable",
                     .n_blocked = 12},
         .says = {"No cell clears the floor of mmlu, hellaswag or winogrande: ",
                  "Whether any cell clears the floor of gsm8k is not known: all its 12 gates are "
                  "undetermined (blocked: not_measurable in 12 cells)."},
         .never = {"or gsm8k"}},
        {.name = "one-open",
         .fixture = {.toml = "floor.toml",
                     .height = 0.3,
                     .no_curves = true,
                     .blocked_stage = "mmlu",
                     .blocked_cause = "cancelled",
                     .n_blocked = 1},
         .says = {"No cell is known to clear the floor of mmlu: 11 cells are below it, 1 gate is "
                  "undetermined (",
                  "No cell clears the floor of hellaswag, winogrande or gsm8k: "},
         .never = {"clears the floor of mmlu"}},
    };
    (void)state;
    expect_told(cases, ARRAY_LEN(cases));
}

/* A record without n where the plan has items is no score of the verdict's, and none of the
 * report's, with or without a floor: the loss here has no gate. */
static void test_without_n(void **state)
{
    static const struct fixture fixture = {.toml = "floor.toml", .height = 1.2, .no_curves = true};
    enum { LOSS = 4 };
    char *folder = path_join(scratch_folder, "without-n");
    struct report_model m;
    struct err err = {0};
    (void)state;
    assert_int_equal(fixture_make(&fixture, folder, &err), 0);
    assert_int_equal(report_model_read(&m, folder, &err), 0);
    assert_string_equal(m.program->measures[LOSS].name, "loss");
    struct measure_reading r = measure_read(&m.arena, &m, LOSS, 0);
    assert_true(isfinite(r.score) && !isfinite(r.n) && r.se > 0 && !r.has_gate);
    m.program->measures[LOSS].has_items = true;
    m.program->measures[LOSS].items = 100;
    r = measure_read(&m.arena, &m, LOSS, 0);
    assert_true(!isfinite(r.score) && !isfinite(r.n));
    assert_string_equal(r.why, "n is not known, the plan says 100 items");
    report_model_release(&m);
    free(folder);
}

static void test_open_records_are_named(void **state)
{
    static const struct sample cases[] = {
        {.name = "named",
         .fixture = {.toml = "floor.toml",
                     .height = 1.2,
                     .no_curves = true,
                     .blocked_stage = "gsm8k",
                     .blocked_cause = "not_measurable",
                     .n_blocked = 12},
         .says = {"12 records (a measure of a cell each) or their gates are undetermined, and what "
                  "rests on them is "
                  "open: gsm8k of arch=dense,lr=0.001,seed=42 (blocked: not_measurable), ",
                  " of arch=dense,lr=0.002,seed=44 (blocked: not_measurable), and 6 more."}},
        {.name = "one",
         .fixture = {.toml = "floor.toml",
                     .height = 1.2,
                     .no_curves = true,
                     .blocked_stage = "hellaswag",
                     .blocked_cause = "cancelled",
                     .n_blocked = 1},
         .says = {"1 record (a measure of a cell) or its gate is undetermined, and what rests on "
                  "it is open: "
                  "hellaswag of arch=dense,lr=0.001,seed=42 ("},
         .never = {" more."}},
        {.name = "none",
         .fixture = {.toml = "floor.toml", .height = 1.2, .no_curves = true},
         .never = {"and what rests on"}},
    };
    (void)state;
    expect_told(cases, ARRAY_LEN(cases));
}

static void test_a_check_taken_away_is_told(void **state)
{
#define AWAY                                                                                       \
    .fixture = {.toml = "checked.toml", .height = 1.5, .no_curves = true},                         \
    .file = "report/provenance.json", .key = "apparatus"
#define WITHOUT .from = THE_CHECK, .to = "", .level = "nothing_scored"
    static const struct sample cases[] = {
        {.name = "failed-away",
         AWAY,
         .change = {WITHOUT, .known = "[" FAILED "]"},
         .json = "[" GONE FAILED "],\"attempts\":[" FIRST "]}]",
         .says =
             {"\"The apparatus check ref was declared, DID NOT HOLD (attempt 1: score.s: expected "
              "0.9 within 0.01, got 0.51), and was taken away by amendment 1.\",\"tone\":\"bad\"",
              "No reference measurement of the apparatus supports these scores. The "
              "apparatus check ref was declared, DID NOT HOLD",
              "asks for no measurement of a reference model any more", "\"apparatus-attempts\"",
              "\"0.9 \xc2\xb1 0.01\"", "\"FAILS\""},
         .never = {"No reference measurement of the apparatus was declared", "in advance\""}},
        {.name = "unknown-away",
         AWAY,
         .change = {WITHOUT, .known = "[" FAILED "]"},
         .json = "[]",
         .says = {"ref was declared, DID NOT HOLD (attempt 1: "},
         .never = {"No reference measurement of the apparatus was declared"}},
        {.name = "unmade-away",
         AWAY,
         .change = {WITHOUT},
         .json = "[" GONE "],\"attempts\":[]}]",
         .says = {"The apparatus check ref was declared and was taken away by amendment 1; no "
                  "result of it is on record.",
                  "in advance\""},
         .never = {"No reference measurement of the apparatus was declared", "POST HOC"}},
    };
#undef AWAY
#undef WITHOUT
    (void)state;
    expect_told(cases, ARRAY_LEN(cases));
}

static void test_a_check_amended_after_its_result(void **state)
{
    static const struct sample cases[] = {
        {.name = "amended",
         .fixture = {.toml = "checked.toml", .height = 1.5, .no_curves = true},
         .change = {.from = "value = 0.9",
                    .to = "value = 0.51",
                    .level = "nothing_scored",
                    .known = "[" FAILED "]"},
         .file = "report/provenance.json",
         .key = "apparatus",
         .json = "[{\"name\":\"ref\",\"declared\":true,\"holds\":true,\"value\":0.51,\"results\":"
                 "[" FAILED "," HELD "],\"attempts\":[" FIRST "," SECOND "]}]",
         .says = {"after its lock: 1 post hoc of apparatus checks, when results of them were known",
                  "1 amendment was made when results of the apparatus checks changed were known",
                  "nothing has been scored; 1 result of an apparatus check", "\"POST HOC\"",
                  "\"Required then\"", "\"0.9 \xc2\xb1 0.01\"", "\"FAILS\"",
                  "that it holds was not laid down in advance"},
         .never = {"before there were scores", "\"in advance\"", "was taken away by"}},
    };
    (void)state;
    expect_told(cases, ARRAY_LEN(cases));
}

static void test_void_names_its_cause(void **state)
{
#define VOIDED                                                                                     \
    .fixture = {                                                                                   \
        .toml = "floor.toml",                                                                      \
        .height = 0.3,                                                                             \
        .no_curves = true,                                                                         \
        .blocked_stage = "mmlu",                                                                   \
        .blocked_cause = "crash",                                                                  \
        .n_blocked = 5                                                                             \
    }
    static const struct sample cases[] = {
        {.name = "budget",
         VOIDED,
         .says = {"\"More counted tasks were lost than the exclusion budget allows\""},
         .never = {"What had to hold for the comparison"}},
        {.name = "validity",
         VOIDED,
         .file = "report/verdict.json",
         .key = "coverage",
         .json = "{\"counted\":{\"excluded\":0,\"budget\":3}}",
         .says = {"\"What had to hold for the comparison to be one did not hold\""},
         .never = {"the exclusion budget allows"}},
    };
#undef VOIDED
    (void)state;
    expect_told(cases, ARRAY_LEN(cases));
}

/* One machine, two stages, of which one's name ends the other's. */
static void test_a_stage_within_another_name(void **state)
{
    static const struct sample cases[] = {
        {.name = "stages",
         .fixture = {.toml = "floor.toml", .height = 1.2, .no_curves = true},
         .file = "report/provenance.json",
         .key = "tasks",
         .json = "[{\"stage\":\"pretrain\",\"attempts\":[{\"host\":\"a\"},{\"host\":\"a\"}]},"
                 "{\"stage\":\"train\",\"attempts\":[{\"host\":\"a\"}]}]",
         .says = {"\"pretrain, train\""}},
    };
    (void)state;
    expect_told(cases, ARRAY_LEN(cases));
}

/* A verdict from elsewhere may lack what its contrasts and pairs are called. */
static void test_what_has_no_name_is_a_dash(void **state)
{
#define NAMELESS                                                                                   \
    .fixture = {.toml = "floor.toml", .height = 1.2, .no_curves = true},                           \
    .file = "report/verdict.json"
    static const struct sample cases[] = {
        {.name = "contrasts",
         NAMELESS,
         .key = "contrasts",
         .json = "[{\"pooled\":{},\"measures\":[{\"mean\":0.5}]}]",
         .says = {"{\"text\":\"\xe2\x80\x94, over \xe2\x80\x94\"},",
                  "{\"text\":\"\xe2\x80\x94\"},{\"text\":\"\xe2\x80\x94\"},"
                  "{\"text\":\"\xe2\x80\x94\",\"value\":null},{\"text\":\"+0.5000\""},
         .never = {"(null)"}},
        {.name = "pairs",
         NAMELESS,
         .key = "pairs",
         .json = "{\"n\":1,\"list\":[{\"difference\":0.5}]}",
         .says = {"\"\xe2\x80\x94 \xe2\x88\x92 \xe2\x80\x94\""},
         .never = {"(null)"}},
    };
#undef NAMELESS
    (void)state;
    expect_told(cases, ARRAY_LEN(cases));
}

/* A table may have 2^18 rows, and all of them may fire: no list is searched for each of them. */
static void test_many_rows_fire(void **state)
{
    enum { ROWS = 1 << 18 };
    static const struct fixture fixture = {.toml = "floor.toml", .height = 1.2, .no_curves = true};
    char *folder = path_join(scratch_folder, "many-rows");
    struct report_model m;
    struct doc d;
    struct err err = {0};
    (void)state;
    assert_int_equal(fixture_make(&fixture, folder, &err), 0);
    assert_int_equal(report_model_read(&m, folder, &err), 0);
    doc_init(&d);
    const struct plan_program before = *m.program;
    cJSON *fired = json_array();
    m.program->rows = arena_array(&d.arena, ROWS, sizeof(*m.program->rows));
    m.program->n_rows = ROWS;
    m.row_fires = arena_array(&d.arena, ROWS, sizeof(*m.row_fires));
    for (int i = 0; i < ROWS; i++) {
        m.program->rows[i] = before.rows[(size_t)i % before.n_rows];
        m.row_fires[i] = true;
        json_push(fired, cJSON_CreateNumber(i + 1));
    }
    cJSON_DeleteItemFromObjectCaseSensitive(m.verdict, "rows_fired");
    json_put(m.verdict, "rows_fired", fired);
    const clock_t from = clock();
    const char *text = words_rows_fired(&d.arena, &m);
    section_table(&d, &m);
    assert_true((double)(clock() - from) / CLOCKS_PER_SEC < 20);
    assert_string_equal(text + strlen(text) - strlen("262,143 and 262,144"), "262,143 and 262,144");
    const struct doc_block *b = d.first;
    while (b->kind != BLOCK_TABLE) {
        b = b->next;
    }
    assert_int_equal(b->table->n_rows, ROWS);
    assert_int_equal(b->table->last->tone, TONE_LIT);
    m.program->rows = before.rows;
    m.program->n_rows = before.n_rows;
    doc_release(&d);
    report_model_release(&m);
    free(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_open_is_not_near_chance),
        cmocka_unit_test(test_without_n),
        cmocka_unit_test(test_open_records_are_named),
        cmocka_unit_test(test_a_check_taken_away_is_told),
        cmocka_unit_test(test_a_check_amended_after_its_result),
        cmocka_unit_test(test_void_names_its_cause),
        cmocka_unit_test(test_a_stage_within_another_name),
        cmocka_unit_test(test_what_has_no_name_is_a_dash),
        cmocka_unit_test(test_many_rows_fire),
    };
    return cmocka_run_group_tests(tests, scratch_enter, scratch_leave);
}
