/* items.jsonl: what is read, what is refused, and the errors that come of it, from files to the
 * report. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/files/file.h"
#include "base/json/json.h"
#include "base/xalloc.h"
#include "prereg/lock/lock.h"
#include "tests/unit/check.h"
#include "tests/unit/scratch.h"
#include "tests/unit/truthtable/instruments/sample.h"
#include "truthtable/evaluate/verdict_file.h"
#include "truthtable/instruments/instruments.h"
#include "truthtable/instruments/items_table.h"

static int feed(struct items_table *t, const char *text, size_t piece, struct err *err)
{
    struct items_stream s;
    int rc = 0;
    size_t len = strlen(text);
    items_stream_init(&s, "acc", "group", items_table_take, t);
    items_table_begin(t, 1);
    for (size_t i = 0; rc == 0 && i < len; i += piece) {
        rc = items_stream_add(&s, text + i, len - i < piece ? len - i : piece, err);
    }
    rc = rc != 0 ? rc : items_stream_end(&s, err);
    items_stream_release(&s);
    return rc;
}

/* Keys that were chosen against a hash without a key: items whose product with 2^64 over the golden
 * ratio ends in zeros, names whose FNV-1a ends alike. Looking them up may not pass more slots than
 * keys of any kind do. */
static void test_hostile_keys(void **state)
{
    enum { ITEMS = 4096, NAMES = 200, SLOTS = 1024 };
    const uint64_t inverse = 0xf1de83e19937733dULL; /* of 0x9e3779b97f4a7c15 */
    struct items_table t;
    struct err err;
    size_t n = 0;
    (void)state;
    assert_true(inverse * 0x9e3779b97f4a7c15ULL == 1);
    items_table_init(&t);
    items_table_begin(&t, 1);
    for (uint64_t i = 0; n < ITEMS; i++) {
        const int64_t item = (int64_t)((i << 52 | i << 20) * inverse);
        struct items_line line = {.item = item, .has_value = true, .value = 1};
        n += item >= 0 && items_table_take(&t, &line, &err) == 0 ? 1 : 0;
    }
    assert_true(t.n_passed < 8 * ITEMS);
    t.n_passed = 0;
    n = 0;
    for (size_t i = 0; n < NAMES; i++) {
        uint64_t h = 1469598103934665603ULL;
        char name[32];
        (void)snprintf(name, sizeof(name), "g%zu", i);
        for (const char *c = name; *c != '\0'; c++) {
            h = (h ^ (unsigned char)*c) * 1099511628211ULL;
        }
        if (((h ^ h >> 32) & (SLOTS - 1)) != 0) {
            continue;
        }
        struct items_line line = {.item = (int64_t)n++, .has_cluster = true};
        (void)snprintf(line.cluster, sizeof(line.cluster), "%s", name);
        items_table_begin(&t, 1);
        assert_int_equal(items_table_take(&t, &line, &err), 0);
    }
    assert_true(t.n_passed < 8 * NAMES);
    items_table_release(&t);
}

static void test_lines(void **state)
{
    static const struct {
        const char *text;
        size_t n_items, n_values;
        const char *error; /* NULL: none */
    } cases[] = {
        {"", 0, 0, NULL},
        {"{\"engine\":\"x\"}\n{\"item\":0,\"acc\":1}\n", 1, 1, NULL},
        {"{\"item\":3,\"acc\":true}\n{\"item\":1,\"acc\":0.5}\n", 2, 2, NULL},
        {"{\"item\":0,\"acc\":null}\n{\"item\":1}\n{\"item\":2,\"fault\":\"f\",\"acc\":1}\n", 3, 0,
         NULL},
        {"{\"item\":0,\"acc\":NaN}\n", 1, 0, NULL},
        {"{\"item\":0,\"acc\":1}", 0, 0, "line 1 is cut short"},
        {"{\"item\":0,\"acc\":1}\n\n", 1, 1, "line 2"},
        {"{\"item\":0,\"acc\":1}\n{\"acc\":1}\n", 1, 1, "line 2"},
        {"{\"item\":0,\"acc\":\"1\"}\n", 0, 0, "line 1: \"acc\" is neither"},
        {"{\"item\":0.5,\"acc\":1}\n", 0, 0, "line 1"},
        {"{\"item\":-1,\"acc\":1}\n", 0, 0, "line 1"},
        {"{\"item\":0,\"item\":1,\"acc\":1}\n", 0, 0, "line 1"},
        {"{\"item\":7,\"acc\":1}\n{\"item\":7,\"acc\":1}\n", 1, 1, "line 2: item 7 stands twice"},
        {"[1]\n", 0, 0, "line 1: not an object"},
        {"{\"item\":0,\"acc\":1}\n{\"ite", 1, 1, "line 2 is cut short"},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        for (size_t piece = 1; piece < 40; piece += 6) {
            struct items_table t;
            struct err err = {0};
            double diff[4];
            size_t cluster[4];
            items_table_init(&t);
            int rc = feed(&t, cases[i].text, piece, &err);
            if ((rc == 0) != (cases[i].error == NULL) ||
                (rc != 0 && strstr(err.msg, cases[i].error) == NULL) || t.n != cases[i].n_items ||
                items_table_collect(&t, 1, diff, cluster) != cases[i].n_values) {
                fail_msg("%s in pieces of %zu: %d %s, %zu items", cases[i].text, piece, rc, err.msg,
                         t.n);
            }
            items_table_release(&t);
        }
    }
}

/* A line over the limit is refused before it is kept. */
static void test_long_line(void **state)
{
    struct items_table t;
    struct items_stream s;
    struct err err = {0};
    char *piece = xmalloc((size_t)1 << 20);
    int rc = 0;
    size_t n = 0;
    (void)state;
    memset(piece, ' ', (size_t)1 << 20);
    items_table_init(&t);
    items_stream_init(&s, "acc", NULL, items_table_take, &t);
    while (rc == 0 && n < 100) {
        rc = items_stream_add(&s, piece, (size_t)1 << 20, &err);
        n++;
    }
    assert_int_equal(rc, ERR_RANGE);
    assert_int_equal(n, (ITEMS_LINE_MAX >> 20) + 1);
    items_stream_release(&s);
    items_table_release(&t);
    free(piece);
}

/* Several thousand items and clusters, in rising and falling order: the tables grow. */
static void test_many(void **state)
{
    struct items_table t;
    double diff[5000];
    size_t cluster[5000];
    (void)state;
    items_table_init(&t);
    for (int file = 0; file < 2; file++) {
        struct strbuf text = STRBUF_INIT;
        struct err err = {0};
        for (int i = 0; i < 5000; i++) {
            int item = file == 0 ? i : 4999 - i;
            strbuf_addf(&text, "{\"item\":%d,\"acc\":%d,\"group\":\"g%d\"}\n", item, item % 7,
                        item % 2500);
        }
        assert_int_equal(feed(&t, text.buf, 1000, &err), 0);
        strbuf_release(&text);
    }
    assert_int_equal(items_table_collect(&t, 2, diff, cluster), 5000);
    assert_int_equal(t.n_clusters, 2500);
    assert_int_equal(t.unclustered, -1);
    for (size_t i = 0; i < 5000; i++) {
        assert_true(diff[i] == (double)(i % 7));
        assert_int_equal(cluster[i], i % 2500);
    }
    items_table_release(&t);
}

#define ITEMS_PROGRAM                                                                              \
    "[program]\nname = \"items\"\nschema = 1\n"                                                    \
    "[[factor]]\nname = \"arch\"\nlevels = [\"dense\", \"moe\"]\n"                                 \
    "[[factor]]\nname = \"seed\"\nlevels = [1, 2]\nreplicate = true\n"                             \
    "[stage.score]\ncommand = [\"./w\"]\n"                                                         \
    "[measure]\nacc = { metric = \"score.acc\" }\n"                                                \
    "[contrast]\narch = { between = { arch = [\"moe\", \"dense\"] } }\n"                           \
    "[[input]]\nname = \"i\"\nlevels = [[\"a\", \"contrast.arch.mean > 0\"], [\"b\", "             \
    "\"otherwise\"]]\n"                                                                            \
    "[table]\ninputs = [\"i\"]\nrows = [[\"a\", \"A\"], [\"b\", \"B\"]]\n"                         \
    "[outcome]\nA = { prior = 0.5, title = \"a\" }\nB = { prior = 0.4, title = \"b\" }\n"          \
    "[instrument.items]\ncontrast = \"arch\"\ncluster = \"group\"\n"                               \
    "[instrument.alone]\nkind = \"items\"\ncontrast = \"arch\"\n"                                  \
    "[forecast]\nseen = { condition = \"instrument.items.any_excludes_zero and "                   \
    "instrument.items.max_se < 0.7\", confidence = 0.8 }\n"

struct folder_case {
    bool torn;      /* the last line of one file */
    bool changed;   /* a byte, after its digest was taken */
    bool cluster;   /* one line names another */
    bool short_one; /* one cell lacks an item */
};

static char *task_folder(const char *folder, const struct plan_program *p, size_t cell)
{
    char *path = xasprintf("%s/cells/%s/score", folder, p->cells[cell].folder);
    struct err err;
    assert_int_equal(dir_make(path, 0755, &err), 0);
    return path;
}

/* Scores 2..21 in clusters i mod 4 for the mixture, 2 for dense: the difference of vectors/
 * statistics.json. */
static void write_cell(const char *folder, const struct plan_program *p, size_t cell,
                       const struct folder_case *c)
{
    struct strbuf text = STRBUF_INIT;
    struct strbuf result = STRBUF_INIT;
    char hex[DIGEST_HEX_SIZE];
    struct err err;
    bool moe = cell >= 2;
    char *task = task_folder(folder, p, cell);
    strbuf_adds(&text, "{\"engine\":\"made up\"}\n");
    for (int i = 0; i < (c->short_one && cell == 3 ? 19 : 20); i++) {
        strbuf_addf(&text, "{\"item\":%d,\"group\":%d,\"acc\":%d}\n", i,
                    c->cluster && cell == 1 && i == 5 ? 9 : i % 4, moe ? i + 2 : 2);
    }
    text.len -= c->torn && cell == 2 ? 1 : 0;
    struct digest d = digest_bytes(text.buf, text.len);
    digest_hex(&d, hex);
    if (c->changed && cell == 0) {
        text.buf[text.len - 3] = '3';
    }
    strbuf_addf(
        &result,
        "{\"protocol\":1,\"metrics\":{\"acc\":%s},\"items\":\"items.jsonl\",\"artifacts\":[{"
        "\"path\":\"items.jsonl\",\"sha256\":\"%s\",\"bytes\":1},{\"path\":\"model\",\"sha256\":"
        "\"%zu\"}]}", /* or cells would be copies */
        moe ? "11.5" : "2", hex, cell);
    char *path = path_join(task, "items.jsonl");
    assert_int_equal(file_write_atomic(path, text.buf, text.len, 0644, &err), 0);
    free(path);
    path = path_join(task, "result.json");
    assert_int_equal(file_write_atomic(path, result.buf, result.len, 0644, &err), 0);
    free(path);
    free(task);
    strbuf_release(&text);
    strbuf_release(&result);
}

/* From the folder, in a child process, as prereg-report does. */
static cJSON *sample_of_folder(const char *name, const struct folder_case *c)
{
    struct sample_program t;
    struct table_verdict v;
    struct lock lock = {0};
    struct err err = {0};
    sample_open(&t, ITEMS_PROGRAM);
    struct err ignored;
    assert_int_equal(dir_remove(name, &ignored), 0);
    for (size_t i = 0; i < 4; i++) {
        write_cell(name, t.p, i, c);
        sample_metric(&t, t.p->cells[i].name, "acc", i >= 2 ? 11.5 : 2);
    }
    assert_int_equal(verdict_compute(&t.e, lock.root, lock.head, &v, &err), 0);
    const struct instruments_input in = {
        .folder = name, .program = t.p, .lock = &lock, .verdict = verdict_json(&v)};
    cJSON *apart = instruments_compute_apart(&in, NULL);
    cJSON *here = instruments_compute(&in);
    assert_true(cJSON_Compare(apart, here, true));
    cJSON_Delete(here);
    verdict_release(&v);
    sample_close(&t);
    return apart;
}

static void test_folder(void **state)
{
    static const struct folder_case whole = {0};
    (void)state;
    cJSON *computed = sample_of_folder("whole", &whole);
    const cJSON *m = sample_at(computed, "instruments.items.measures.0");
    sample_expect(m, "n_items", 20, 0);
    sample_expect(m, "n_pairs", 2, 0);
    sample_expect(m, "paired.mean", 9.5, 1e-12);
    sample_expect(m, "paired.se", sqrt(665.0 / 19 / 20), 1e-12);
    sample_expect(m, "clustered.se", 0.6454972243679028, 1e-9);
    sample_expect(m, "clustered.df", 3, 0);
    sample_expect(m, "clustered.n_clusters", 4, 0);
    sample_expect_null(computed, "instruments.alone.measures.0.clustered");
    sample_expect(computed, "instruments.items.fields.max_se", 0.6454972243679028, 1e-9);
    sample_expect(computed, "instruments.alone.fields.max_se", sqrt(665.0 / 19 / 20), 1e-12);
    sample_expect_truth(computed, "instruments.items.fields.all_exclude_zero", true);
    sample_expect_truth(computed, "forecasts.seen.outcome", true);
    cJSON_Delete(computed);
}

static void test_folder_faults(void **state)
{
    static const struct {
        struct folder_case c;
        const char *path;
        const char *why; /* part of it */
    } cases[] = {
        {{.torn = true}, "instruments.items.measures.0.why", "line 21 is cut short"},
        {{.changed = true}, "instruments.items.measures.0.why", "not the one the result is of"},
        {{.cluster = true}, "instruments.items.measures.0.clustered.why", "item 5"},
    };
    static const struct folder_case short_one = {.short_one = true};
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CHECK_ROW("%s", cases[i].path);
        cJSON *computed = sample_of_folder("faulty", &cases[i].c);
        if (strstr(sample_at(computed, cases[i].path)->valuestring, cases[i].why) == NULL) {
            fail_msg("%s", sample_at(computed, cases[i].path)->valuestring);
        }
        sample_expect_null(computed, "instruments.items.fields.max_se");
        sample_expect_null(computed, "forecasts.seen.outcome");
        cJSON_Delete(computed);
    }
    cJSON *computed = sample_of_folder("short", &short_one);
    sample_expect(computed, "instruments.items.measures.0.n_items", 19, 0);
    sample_expect(computed, "instruments.items.measures.0.left_out", 1, 0);
    cJSON_Delete(computed);
}

/* Evidence that does not give the verdict is refused as a whole, and says what differs. */
static void test_other_verdict(void **state)
{
    static const struct folder_case whole = {0};
    struct sample_program t;
    struct lock lock = {0};
    (void)state;
    cJSON_Delete(sample_of_folder("whole", &whole));
    sample_open(&t, ITEMS_PROGRAM);
    cJSON *verdict = cJSON_Parse("{\"outcome\":\"B\"}");
    const struct instruments_input in = {
        .folder = "whole", .program = t.p, .lock = &lock, .verdict = verdict};
    cJSON *computed = instruments_compute(&in);
    sample_expect_text(computed, "why", "the evidence does not give the verdict's outcome");
    assert_int_equal(cJSON_GetArraySize(sample_at(computed, "instruments")), 0);
    cJSON_Delete(computed);
    cJSON_Delete(verdict);
    sample_close(&t);
}

/* A child that dies, here by an assertion on a kind that cannot be, takes nothing along: what is
 * missing is said. */
static void test_crash(void **state)
{
    struct sample_program t;
    struct evidence none;
    struct table_verdict v;
    struct lock lock = {0};
    struct err err = {0};
    (void)state;
    sample_open(&t, TOLD_PROGRAM "[instrument.router]\nstage = \"train\"\n");
    evidence_init(&none, t.p);
    assert_int_equal(verdict_compute(&none, lock.root, lock.head, &v, &err), 0);
    const struct instruments_input in = {
        .folder = "empty", .program = t.p, .lock = &lock, .verdict = verdict_json(&v)};
    cJSON *computed = instruments_compute_apart(&in, NULL);
    sample_expect_null(computed, "why");
    cJSON_Delete(computed);
    t.p->instruments[0].kind = "nothing";
    computed = instruments_compute_apart(&in, NULL);
    sample_expect_text(computed, "why",
                       "they were ended by a fault of their own, or had no memory left");
    assert_int_equal(cJSON_GetArraySize(sample_at(computed, "instruments")), 0);
    assert_int_equal(cJSON_GetArraySize(sample_at(computed, "forecasts")), 0);
    cJSON_Delete(computed);
    verdict_release(&v);
    evidence_release(&none);
    sample_close(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lines),         cmocka_unit_test(test_long_line),
        cmocka_unit_test(test_hostile_keys),  cmocka_unit_test(test_many),
        cmocka_unit_test(test_folder),        cmocka_unit_test(test_folder_faults),
        cmocka_unit_test(test_other_verdict), cmocka_unit_test(test_crash),
    };
    return cmocka_run_group_tests(tests, scratch_enter, scratch_leave);
}
