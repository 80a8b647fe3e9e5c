/* Parts of a report that not every program has: instruments, amendments, what a lock may hold, the
 * apparatus, what attempts ran on. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/files/file.h"
#include "base/json/json.h"
#include "base/rng.h"
#include "base/xalloc.h"
#include "prereg/lock/lock_sign.h"
#include "tests/unit/check.h"
#include "tests/unit/prereg/programs.h"
#include "tests/unit/scratch.h"
#include "tests/unit/truthtable/report/fixture.h"
#include "truthtable/report/document/render.h"
#include "truthtable/report/report_model.h"
#include "truthtable/report/sections/sections.h"

#define INSTRUMENTS TEST_SOURCE_DIR "/tests/unit/truthtable/report/fixtures/instruments.json"
#define MUTATIONS   120

static const struct fixture floor_program = {
    .toml = "floor.toml", .height = 0.3, .no_curves = true};
struct page {
    struct strbuf html;
    struct strbuf md;
    struct strbuf json;
};

static struct page render(const struct report_model *m)
{
    struct doc doc;
    struct page page = {STRBUF_INIT, STRBUF_INIT, STRBUF_INIT};
    doc_init(&doc);
    sections_build(&doc, m);
    render_html(&doc, &page.html);
    render_md(&doc, &page.md);
    render_json(&doc, &page.json);
    doc_release(&doc);
    return page;
}

static void page_release(struct page *page)
{
    strbuf_release(&page->html);
    strbuf_release(&page->md);
    strbuf_release(&page->json);
}

static void assert_says(const struct strbuf *text, const char *words)
{
    if (strstr(text->buf, words) == NULL) {
        fail_msg("the page does not say \"%s\"", words);
    }
}

static void assert_never_says(const struct strbuf *text, const char *words)
{
    if (strstr(text->buf, words) != NULL) {
        fail_msg("the page says \"%s\"", words);
    }
}

static char *make(const char *name)
{
    struct err err = {0};
    char *folder = path_join(scratch_folder, name);
    if (fixture_make(&floor_program, folder, &err) != 0) {
        fail_msg("%s: %s", name, err.msg);
    }
    return folder;
}

static void read_model(struct report_model *m, const char *folder)
{
    struct err err = {0};
    if (report_model_read(m, folder, &err) != 0) {
        fail_msg("%s: %s", folder, err.msg);
    }
}

static cJSON *read_instruments(const struct report_model *m)
{
    struct err err = {0};
    cJSON *json = NULL;
    if (json_read_file(INSTRUMENTS, (size_t)1 << 20, &json, &err) != 0) {
        fail_msg("%s", err.msg);
    }
    cJSON_DeleteItemFromObjectCaseSensitive(json, "root");
    json_put_string(json, "root", m->lock->root);
    return json;
}

static void test_every_kind_of_instrument_is_shown(void **state)
{
    static const char *const html[] = {
        "Instruments: nothing here binds</h2>",
        "<h3>Bayes factors</h3>",
        "0.0898 \xe2\x97\x8b",
        "for no difference</td>",
        "depends on the prior</td>",
        "57 clusters by subject",
        "mmlu, hellaswag: the fit is singular: fact.train.router_load is the same in every row;",
        "fact.train.router_occupancy is a combination of intercept; \xce\xb8 is at its boundary",
        "Mixed model \xc2\xb7 supplementary (discussion only) (POST HOC)</h3>",
        "Discussion only: matter for discussion, and nothing more.",
        "not fitted (3 rows for 3 columns)",
        "CASE-A \xe2\x86\x92 the loss rung shows a gap",
        "+47.4 % perplexity",
        "Limit of identification: the gap of the whole mix",
        "Between the arms of arch: equal (the contract)",
        "a ratio of 1.474 against 1.5, so the trigger does not fire",
        "pinned: no variance to fit",
        "Source of the anchors: table 3 of a paper",
        "no picture of that kind of instrument",
        "Course of a gap over the run \xc2\xb7 course_active</h3>",
        "active: dense_active \xe2\x88\x92 moe",
        "0.333 [0.259, 0.396]",
        "The course course_total is undetermined: at_10: the record is missing.",
        "Its curve is in the figure of the course course_active",
        "<polygon class=\"spread\"",
        ("(\xe2\x88\x92"
         "10.79\xcf\x83)"),
        "P(as tight)",
        "Low power: these observed differences",
        "The anchors (table 3 of a paper) were measured elsewhere",
        "came true</td>",
        /* the scope: as locked, beside what can be held against it */
        "no difference is read below the floors</li>",
        "that a mixture is worse &lt;here&gt;</li>",
        "1.8 times as many are stored</td>",
        "the mix is not the benchmarks&#39;</td>",
        "an expert sees a quarter of the tokens. Its forecast dense_ahead did not come true.",
        "experts and tokens, varied apart</li>",
        "Bayes factors: cannot be read;",
        "rung of benchmarks: no difference; no benchmark clears its floor; the loss shows a gap",
        "not known: not scored</td>",
        "2 of 3 scored: mean Brier 0.3663, 2.889 bits together",
        "id=\"figure-bayes-title\"",
        "id=\"figure-connector-gaps-title\"",
        "id=\"figure-mixed-shares-title\"",
        "id=\"figure-dispersion-title\"",
    };
    static const char *const json[] = {"{\"kind\":\"table\",\"id\":\"bayes\",",
                                       "{\"kind\":\"table\",\"id\":\"mixed\",",
                                       "{\"kind\":\"table\",\"id\":\"forecasts\",",
                                       "\"value\":0.0898,\"ln\":-2.41",
                                       "{\"kind\":\"table\",\"id\":\"connector-ladder\",",
                                       "{\"kind\":\"table\",\"id\":\"course_total-slope\",",
                                       "\"at\":0.33262,\"low\":0.25871,\"high\":0.39609"};
    struct report_model m;
    (void)state;
    char *folder = make("instruments");
    read_model(&m, folder);
    report_model_set_instruments(&m, read_instruments(&m), NULL);
    struct page page = render(&m);
    for (size_t i = 0; i < ARRAY_LEN(html); i++) {
        CHECK_ROW("%s", html[i]);
        assert_says(&page.html, html[i]);
    }
    for (size_t i = 0; i < ARRAY_LEN(json); i++) {
        CHECK_ROW("%s", json[i]);
        assert_says(&page.json, json[i]);
    }
    assert_says(&page.md, "Instruments: nothing here binds");
    assert_never_says(&page.html, "(null)");
    page_release(&page);
    report_model_release(&m);
    free(folder);
}

static cJSON *instrument_of(cJSON *told, const char *kind)
{
    cJSON *at = NULL;
    cJSON_ArrayForEach(at, cJSON_GetObjectItemCaseSensitive(told, "instruments"))
    {
        if (strcmp(json_member(at, "kind")->valuestring, kind) == 0) {
            return at;
        }
    }
    fail_msg("no instrument of kind %s", kind);
    return NULL;
}

/* What has no room in a table or a line is said to be left out. */
static void test_what_is_too_much_is_counted(void **state)
{
    struct report_model m;
    (void)state;
    char *folder = make("much");
    read_model(&m, folder);
    cJSON *told = read_instruments(&m);
    cJSON *priors = json_array();
    cJSON *components = json_array();
    cJSON *dropped = json_array();
    for (int i = 0; i < 2000; i++) {
        cJSON *o = json_object();
        json_put_string(o, "cell", "arch=dense,seed=1234567");
        json_put_string(o, "why", "no router");
        json_push(dropped, o);
        if (i < 12) {
            o = json_object();
            json_put_string(o, "name", "p");
            json_push(priors, json_copy(o));
            json_push(components, o);
        }
    }
    cJSON *fit = cJSON_GetArrayItem(
        cJSON_GetObjectItemCaseSensitive(instrument_of(told, "mixed"), "fits"), 0);
    cJSON_ReplaceItemInObjectCaseSensitive(instrument_of(told, "bayes"), "priors", priors);
    cJSON_ReplaceItemInObjectCaseSensitive(instrument_of(told, "router"), "components", components);
    cJSON_DeleteItemFromObjectCaseSensitive(fit, "dropped");
    json_put(fit, "dropped", dropped);
    report_model_set_instruments(&m, told, NULL);
    struct page page = render(&m);
    assert_says(&page.html, "Of 12 priors the first 8 are shown");
    assert_says(&page.html, "Of 12 components the first 10 are shown");
    assert_says(&page.html, "cells are left out, the first because no router: arch=dense");
    assert_says(&page.json, "arch=dense,see\xe2\x80\xa6");
    page_release(&page);
    report_model_release(&m);
    free(folder);
}

/* A course of two samples for a mixture with so many layers and experts, all of them even. */
static struct router_course even_course(size_t cell, int n_layers, int n_experts)
{
    struct strbuf text = STRBUF_INIT;
    struct router_course c;
    struct err err = {0};
    strbuf_adds(&text, "step,layer,router_effective");
    for (int e = 0; e < n_experts; e++) {
        strbuf_addf(&text, ",share_%d", e);
    }
    for (int i = 0; i < 2 * n_layers; i++) {
        strbuf_addf(&text, "\n%d,%d,%d", 1 + i / n_layers, i % n_layers, n_experts);
        for (int e = 0; e < n_experts; e++) {
            strbuf_addf(&text, ",%.7g", 1.0 / n_experts);
        }
    }
    if (router_course_parse(text.buf, text.len, &c, &err) != 0) {
        fail_msg("%s", err.msg);
    }
    strbuf_release(&text);
    c.cell = cell;
    return c;
}

/* The first cell of every condition: more of them than are drawn, and one more than rows have. */
static void test_routers_are_drawn(void **state)
{
    struct report_model m;
    (void)state;
    char *folder = make("routers");
    read_model(&m, folder);
    m.routers.n_unread = 1;
    for (size_t c = 0; c < m.program->n_cells; c++) {
        ARRAY_GROW(m.routers.items, m.routers.n, m.routers.cap);
        m.routers.items[m.routers.n++] = even_course(c, c == 0 ? 9 : 1, c == 0 ? 40 : 4);
    }
    assert_int_equal(m.program->cells[1].condition, m.program->cells[0].condition);
    m.routers.items[1].steps[1] = 7; /* as many samples as the others, at other steps */
    struct page page = render(&m);
    static const char *const says[] = {
        "Load of the experts of ",
        "Neighbours among the 40 experts share 32 rows. Of 9 layers 6 are shown.",
        "Effective number of experts during train",
        "Dead experts, under 1 % of an even share during train",
        ">even share</text>",
        ", mean of 2 (1 cell has other steps)",
        "1 router.csv is not what the results say, and left out.",
        "class=\"heat h3\""};
    for (size_t i = 0; i < ARRAY_LEN(says); i++) {
        assert_says(&page.html, says[i]);
    }
    page_release(&page);
    report_model_release(&m);
    free(folder);
}

/* More courses over the same marks than a figure holds: the seventeenth begins another one. */
static void test_courses_beyond_one_figure(void **state)
{
    struct report_model m;
    (void)state;
    char *folder = make("courses");
    read_model(&m, folder);
    cJSON *told = read_instruments(&m);
    const cJSON *course = instrument_of(told, "course");
    for (int i = 0; i < 20; i++) {
        char name[32];
        cJSON *more = json_copy(course);
        (void)snprintf(name, sizeof(name), "more_%d", i);
        cJSON_DeleteItemFromObjectCaseSensitive(more, "name");
        json_put_string(more, "name", name);
        json_push(cJSON_GetObjectItemCaseSensitive(told, "instruments"), more);
    }
    report_model_set_instruments(&m, told, NULL);
    struct page page = render(&m);
    assert_says(&page.html, "figure-more_14-gaps-title");
    assert_says(&page.html, "Its curve is in the figure of the course more_14,");
    assert_says(&page.html, "Its curve is in the figure of the course course_active,");
    assert_never_says(&page.html, "figure-more_15-gaps-title");
    page_release(&page);
    report_model_release(&m);
    free(folder);
}

static void test_without_instruments_the_page_is_whole(void **state)
{
    static const struct {
        const char *text; /* of the file; NULL: none */
        const char *says;
    } cases[] = {
        {NULL, "No instrument is shown: there is no instruments.json beside the verdict."},
        {"{\"root\":", "No instrument is shown: "},
        {"{\"root\":\"another\"}",
         "No instrument is shown: instruments.json is not of this program."},
        {"[]", "No instrument is shown: instruments.json is not of this program."},
    };
    (void)state;
    char *folder = make("without");
    char *path = path_join(folder, "report/instruments.json");
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CHECK_ROW("%s", cases[i].text);
        struct report_model m;
        struct err err = {0};
        if (cases[i].text != NULL) {
            assert_int_equal(
                file_write_atomic(path, cases[i].text, strlen(cases[i].text), 0644, &err), 0);
        }
        read_model(&m, folder);
        struct page page = render(&m);
        assert_says(&page.html, cases[i].says);
        assert_says(&page.html, "id=\"record\"");
        assert_says(&page.html, "The verdict does not depend on them.");
        page_release(&page);
        report_model_release(&m);
    }
    free(path);
    free(folder);
}

/* One node, chosen at random, becomes something else. */
static void mutate(cJSON *tree, struct rng *rng)
{
    static const char *const others[] = {"null", "\"<x>\"",  "-1e300", "[]",
                                         "{}",   "[null,1]", "true"};
    struct err err = {0};
    cJSON *at = tree;
    while (cJSON_GetArraySize(at) > 0 && (at == tree || rng_unit(rng) < 0.85)) {
        size_t n = (size_t)cJSON_GetArraySize(at);
        at = cJSON_GetArrayItem(at, (int)((double)n * rng_unit(rng)));
        at = at->string != NULL && strcmp(at->string, "root") == 0 ? tree : at;
    }
    cJSON *other = NULL;
    const char *text = others[(size_t)((double)ARRAY_LEN(others) * rng_unit(rng))];
    assert_int_equal(json_parse(text, strlen(text), &other, &err), 0);
    /* In place: the kind and what hangs on it change, the name and the neighbours stay. */
    cJSON_Delete(at->child);
    at->child = other->child;
    other->child = NULL;
    if (at->valuestring != NULL && (at->type & 0xff) == cJSON_String) {
        cJSON_free(at->valuestring);
    }
    at->valuestring = other->valuestring;
    other->valuestring = NULL;
    at->valuedouble = other->valuedouble;
    at->valueint = other->valueint;
    at->type = other->type;
    cJSON_Delete(other);
}

static void test_a_file_of_another_hand_breaks_nothing(void **state)
{
    struct report_model m;
    struct rng rng;
    (void)state;
    char *folder = make("mutated");
    read_model(&m, folder);
    rng_seed(&rng, 20261121);
    for (int i = 0; i < MUTATIONS; i++) {
        cJSON *tree = read_instruments(&m);
        for (int k = 0; k < 3; k++) {
            mutate(cJSON_GetArrayItem(tree, (int)(5 + 4 * rng_unit(&rng))), &rng);
        }
        report_model_set_instruments(&m, tree, NULL);
        struct page page = render(&m);
        struct err err = {0};
        cJSON *json = NULL;
        if (json_parse(page.json.buf, page.json.len, &json, &err) != 0) {
            fail_msg("mutation %d: %s", i, err.msg);
        }
        assert_never_says(&page.html, "(null)");
        assert_never_says(&page.html, "<x>");
        assert_never_says(&page.html, " nan");
        assert_says(&page.html, "id=\"record\"");
        cJSON_Delete(json);
        page_release(&page);
    }
    report_model_release(&m);
    free(folder);
}

static void test_amendments_are_told_value_by_value(void **state)
{
    static const struct {
        const char *level;
        const char *says[3];
        const char *never;
    } cases[] = {
        {"nothing_run",
         {"nothing has run", "in advance</td>", "instrument.bayes.priors.flame"},
         "POST HOC"},
        {"seen",
         {"amended after its lock: 1 post hoc, when scores had been seen", "POST HOC</td>",
          "1 amendment was made when scores had been seen"},
         "in advance</td>"},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CHECK_ROW("%s", cases[i].level);
        struct report_model m;
        struct err err = {0};
        const struct fixture_change change = {"flame = 0.034", "flame = 0.031", cases[i].level,
                                              NULL};
        char *folder = make(cases[i].level);
        if (fixture_amend(folder, &change, &err) != 0) {
            fail_msg("%s", err.msg);
        }
        read_model(&m, folder);
        struct page page = render(&m);
        for (size_t k = 0; k < 3; k++) {
            assert_says(&page.html, cases[i].says[k]);
        }
        assert_says(&page.html, ">0.034</td>");
        assert_says(&page.html, ">0.031</td>");
        assert_says(&page.html, "a &lt;slip&gt; of the pen");
        assert_says(&page.html, "read under an earlier head");
        assert_says(&page.json, "\"post_hoc\":");
        assert_never_says(&page.html, cases[i].never);
        page_release(&page);
        report_model_release(&m);
        free(folder);
    }
}

static void test_a_broken_chain_is_refused(void **state)
{
    struct report_model m;
    struct err err = {0};
    const struct fixture_change change = {"flame = 0.034", "flame = 0.031", "sealed", NULL};
    (void)state;
    char *folder = make("broken");
    assert_int_equal(fixture_amend(folder, &change, &err), 0);
    assert_int_equal(fixture_put(folder, "amendments/0001.json", "reason", "\"another\"", &err), 0);
    assert_int_equal(report_model_read(&m, folder, &err), ERR_LOCK);
    report_model_release(&m);
    free(folder);
}

static void test_what_the_lock_and_the_provenance_may_hold(void **state)
{
    static const struct {
        const char *file;
        const char *key;
        const char *json;
        const char *says[3];
    } cases[] = {
        {"grid.toml.lock",
         "git",
         "{\"commit\":\"0123456789abcdef0123456789abcdef01234567\",\"clean\":false}",
         {"0123456789abcdef0123456789abcdef01234567", "NOT CLEAN",
          "working tree was not clean when the program was locked"}},
        {"grid.toml.lock",
         "git",
         "{\"commit\":\"0123456789abcdef0123456789abcdef01234567\",\"clean\":true}",
         {"clean: the commit holds what was locked", "neither signed nor time-stamped", ""}},
        {"report/provenance.json",
         "tasks",
         "[{\"cell\":\"arch=dense,lr=0.001,seed=42\",\"stage\":\"train\",\"end\":\"done\","
         "\"cause\":null,\"attempts\":[{\"no\":1,\"host\":\"h\",\"cpu\":\"c\",\"kernel\":\"Linux "
         "6.1\",\"blas\":\"OpenBLAS\",\"core\":\"Haswell\",\"threads\":2,\"worker\":"
         "\"0123456789abcdef\",\"instructions\":\"avx2\"},{\"no\":2,\"host\":\"other\",\"threads\":"
         "null}]}]",
         {"Linux 6.1", "OpenBLAS, core Haswell, avx2", "0123456789a\xe2\x80\xa6"}},
        {"report/provenance.json",
         "apparatus",
         "[]",
         {"asks for no measurement of a reference model", "No reference measurement", ""}},
    };
    (void)state;
    char *folder = make("facts");
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CHECK_ROW("%s", cases[i].file);
        struct report_model m;
        struct err err = {0};
        if (fixture_put(folder, cases[i].file, cases[i].key, cases[i].json, &err) != 0) {
            fail_msg("%s", err.msg);
        }
        read_model(&m, folder);
        struct page page = render(&m);
        for (size_t k = 0; k < 3; k++) {
            assert_says(&page.html, cases[i].says[k]);
        }
        page_release(&page);
        report_model_release(&m);
    }
    free(folder);
}

/* Signs the lock on disk. */
static void sign(const char *folder, const char *key_path)
{
    struct lock *lock = NULL;
    struct err err = {0};
    char *path = path_join(folder, "grid.toml.lock");
    assert_int_equal(lock_read(path, &lock, &err), 0);
    if (lock_sign(lock, key_path, NULL, &err) != 0) {
        fail_msg("%s", err.msg);
    }
    assert_int_equal(json_write_file(path, lock->json, 0644, &err), 0);
    lock_free(lock);
    free(path);
}

static void expect_page(const char *folder, const char *says, const char *never)
{
    struct report_model m;
    read_model(&m, folder);
    struct page page = render(&m);
    assert_says(&page.html, says);
    assert_never_says(&page.html, never);
    page_release(&page);
    report_model_release(&m);
}

/* A signature is held against its key, not only shown; a stamp may lie where the lock came from. */
static void test_signature_and_stamp(void **state)
{
    struct err err = {0};
    (void)state;
    if (!program_is_there("ssh-keygen")) {
        skip();
    }
    char *folder = make("signed");
    char *key = path_join(scratch_folder, "key");
    program_make_key(scratch_folder, "key", "");
    expect_page(folder, "neither signed nor time-stamped", "holds over this lock");
    sign(folder, key);
    expect_page(folder, "holds over this lock, by that key", "DOES NOT HOLD");
    char *lock = path_join(folder, "grid.toml.lock");
    char *origin = path_join(folder, "origin.json");
    char *grid = path_join(scratch_folder, "elsewhere.toml");
    char *there = path_join(scratch_folder, "elsewhere.toml.lock");
    char *stamp = path_join(scratch_folder, "elsewhere.toml.lock.tsr");
    cJSON *o = json_object();
    json_put_string(o, "path", grid);
    assert_int_equal(json_write_file(origin, o, 0644, &err), 0);
    assert_int_equal(file_copy(lock, there, 0644, &err), 0);
    assert_int_equal(file_write_atomic(stamp, "x", 1, 0644, &err), 0);
    expect_page(folder, "response is beside the lock. It was not checked", "no time stamp");
    /* the lock there became another one: its stamp is not this one's */
    assert_int_equal(file_write_atomic(there, "{}", 2, 0644, &err), 0);
    expect_page(folder, "has no time stamp of a third party", "response is beside");
    assert_int_equal(
        fixture_put(folder, "grid.toml.lock", "time", "\"2020-01-01T00:00:00.000Z\"", &err), 0);
    expect_page(folder, "DOES NOT HOLD", "holds over this lock");
    cJSON_Delete(o);
    free(stamp);
    free(there);
    free(grid);
    free(origin);
    free(lock);
    free(key);
    free(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_kind_of_instrument_is_shown),
        cmocka_unit_test(test_what_is_too_much_is_counted),
        cmocka_unit_test(test_routers_are_drawn),
        cmocka_unit_test(test_courses_beyond_one_figure),
        cmocka_unit_test(test_without_instruments_the_page_is_whole),
        cmocka_unit_test(test_a_file_of_another_hand_breaks_nothing),
        cmocka_unit_test(test_amendments_are_told_value_by_value),
        cmocka_unit_test(test_a_broken_chain_is_refused),
        cmocka_unit_test(test_signature_and_stamp),
        cmocka_unit_test(test_what_the_lock_and_the_provenance_may_hold),
    };
    return cmocka_run_group_tests(tests, scratch_enter, scratch_leave);
}
