/* Rerun files: what is the same, what a level needs, and what verify makes of files that somebody
 * changed. */
/* cmocka.h wants those four before it */
#include <stdlib.h>
#include <string.h>

#include "base/files/file.h"
#include "base/json/json.h"
#include "base/layout/layout.h"
#include "base/xalloc.h"
#include "ctl/receipt/export.h"
#include "ctl/receipt/files.h"
#include "ctl/receipt/rerun_file.h"
#include "prereg/load/program_load.h"
#include "prereg/lock/lock.h"
#include "tests/unit/check.h"
#include "tests/unit/ctl/receipt/fixture.h"
#include "tests/unit/scratch.h"

/* ---- comparing ---- */

static cJSON *parse(const char *text)
{
    cJSON *o = NULL;
    struct err err;
    assert_int_equal(json_parse_lax(text, strlen(text), &o, &err), 0);
    return o;
}

static cJSON *compared(const char *accepted, const char *again)
{
    const struct rerun_head head = {"0", "p", "r", "c", "t", 0};
    cJSON *file = rerun_file_begin(&head);
    cJSON *a = parse(accepted);
    cJSON *b = parse(again);
    rerun_file_add(file, &(struct rerun_stage){.name = "train",
                                               .head = "h",
                                               .digest = "d",
                                               .accepted = {a, NULL},
                                               .again = {b, NULL}});
    cJSON_Delete(a);
    cJSON_Delete(b);
    return file;
}

static void test_compare(void **state)
{
    static const struct {
        const char *accepted;
        const char *again;
        bool same;
        int n; /* of what was compared */
    } rows[] = {
        {"{\"metrics\":{\"a\":{\"value\":0.1,\"n\":3}}}",
         "{\"metrics\":{\"a\":{\"n\":3,\"value\":0.1}}}", true, 1},
        {"{\"metrics\":{\"a\":{\"value\":0.1}}}",
         "{\"metrics\":{\"a\":{\"value\":0.10000000000000002}}}", false, 1},
        {"{\"metrics\":{\"a\":{\"value\":0.1,\"se\":1}}}",
         "{\"metrics\":{\"a\":{\"value\":0.1,\"se\":2}}}", false, 1},
        {"{\"metrics\":{\"a\":{\"value\":0.1,\"se\":1}}}", "{\"metrics\":{\"a\":{\"value\":0.1}}}",
         false, 1},
        {"{\"metrics\":{\"a\":1,\"b\":2}}", "{\"metrics\":{\"b\":2,\"a\":1}}", true, 2},
        {"{\"metrics\":{\"a\":1,\"b\":2}}", "{\"metrics\":{\"a\":1}}", false, 2},
        {"{\"metrics\":{\"a\":1}}", "{\"metrics\":{\"a\":1,\"b\":2}}", false, 2},
        {"{\"metrics\":{\"a\":1}}", "{\"metrics\":{}}", false, 1},
        {"{\"metrics\":{\"a\":1}}", "{}", false, 1},
        /* a value that is none is never the same */
        {"{\"metrics\":{\"a\":NaN}}", "{\"metrics\":{\"a\":NaN}}", false, 1},
        {"{\"metrics\":{\"a\":{\"value\":NaN}}}", "{\"metrics\":{\"a\":{\"value\":NaN}}}", false,
         1},
        {"{\"metrics\":{\"a\":{\"value\":0.5}}}", "{\"metrics\":{\"a\":{\"value\":NaN}}}", false,
         1},
        {"{\"metrics\":{\"a\":null}}", "{\"metrics\":{\"a\":null}}", false, 1},
        {"{\"metrics\":{\"a\":{}}}", "{\"metrics\":{\"a\":{}}}", false, 1},
        /* but for a reason that came out again */
        {"{\"metrics\":{\"a\":{\"value\":null,\"why\":\"not_reached\",\"bound\":\">9\"}}}",
         "{\"metrics\":{\"a\":{\"value\":null,\"why\":\"not_reached\",\"bound\":\">9\"}}}", true,
         1},
        {"{\"metrics\":{\"a\":{\"value\":null,\"why\":\"not_reached\",\"bound\":\">9\"}}}",
         "{\"metrics\":{\"a\":{\"value\":null,\"why\":\"not_reached\",\"bound\":\">8\"}}}", false,
         1},
        {"{\"artifacts\":[{\"path\":\"m\",\"sha256\":\"aa\",\"bytes\":1}]}",
         "{\"artifacts\":[{\"path\":\"m\",\"sha256\":\"aa\",\"bytes\":2}]}", true, 1},
        {"{\"artifacts\":[{\"path\":\"m\",\"sha256\":\"aa\"}]}",
         "{\"artifacts\":[{\"path\":\"m\",\"sha256\":\"ab\"}]}", false, 1},
        {"{\"artifacts\":[{\"path\":\"m\",\"sha256\":\"aa\"}]}",
         "{\"artifacts\":[{\"path\":\"n\",\"sha256\":\"aa\"}]}", false, 2},
        {"{\"metrics\":{\"a\":1},\"facts\":{\"seconds\":1}}",
         "{\"metrics\":{\"a\":1},\"facts\":{\"seconds\":2}}", true, 1},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        cJSON *file = compared(rows[i].accepted, rows[i].again);
        const cJSON *s = json_member(file, "stages")->child;
        int n = cJSON_GetArraySize(json_member(s, "metrics")) +
                cJSON_GetArraySize(json_member(s, "artifacts"));
        if (cJSON_IsTrue(json_member(s, "same")) != rows[i].same || n != rows[i].n) {
            fail_msg("row %zu: %d compared", i, n);
        }
        cJSON_Delete(file);
    }
}

static void test_environment(void **state)
{
    const struct rerun_head head = {"0", "p", "r", "c", "t", 0};
    cJSON *result = parse("{\"facts\":{\"threads\":1,\"blas\":\"OpenBLAS 0.3, core Haswell\","
                          "\"arithmetic\":2,\"instructions\":\"avx512\"}}");
    cJSON *start =
        parse("{\"cpu\":\"A\",\"kernel\":\"\",\"worker\":\"w\",\"threads\":8,\"host\":\"h\"}");
    cJSON *a = rerun_environment(result, start);
    cJSON *b =
        parse("{\"worker\":\"w\",\"kernel\":\"K\",\"cpu\":\"B\",\"blas\":null,\"core\":\"Zen\","
              "\"threads\":2,\"arithmetic\":2,\"instructions\":\"avx2\"}");
    cJSON *file = rerun_file_begin(&head);
    (void)state;
    rerun_file_add(file, &(struct rerun_stage){.name = "s",
                                               .head = "h",
                                               .digest = "d",
                                               .accepted = {result, a},
                                               .again = {result, b}});
    const cJSON *e = json_member(json_member(file, "stages")->child, "environment");
    char *text = cJSON_PrintUnformatted(e);
    assert_string_equal(
        text,
        "{\"accepted\":{\"worker\":\"w\",\"kernel\":null,\"cpu\":\"A\",\"blas\":\"OpenBLAS 0.3, "
        "core Haswell\",\"core\":\"Haswell\",\"threads\":1,\"arithmetic\":2,"
        "\"instructions\":\"avx512\"},\"rerun\":{\"worker\":\"w\","
        "\"kernel\":\"K\",\"cpu\":\"B\",\"blas\":null,\"core\":\"Zen\",\"threads\":2,"
        "\"arithmetic\":2,\"instructions\":\"avx2\"},"
        "\"differs\":[\"cpu\",\"core\",\"threads\",\"instructions\"]}");
    free(text);
    cJSON_Delete(file);
    cJSON_Delete(a);
    cJSON_Delete(b);
    cJSON_Delete(start);
    cJSON_Delete(result);
}

static void test_names(void **state)
{
    static const char *const good[] = {"a.json", "arch=dense,seed=1-20261121T160923123Z.json"};
    static const char *const bad[] = {".json",          "a", "a.txt", ".a.json", "a b.json",
                                      "a\xc3\xa4.json", ""};
    (void)state;
    char *name = rerun_file_name("arch=mo/e,seed=1", "2026-11-21T16:09:23.123Z");
    assert_string_equal(name, "arch=mo_e,seed=1-20261121T160923123Z");
    free(name);
    for (size_t i = 0; i < ARRAY_LEN(good); i++) {
        CHECK_ROW("%s", good[i]);
        assert_true(rerun_file_is_name(good[i]));
    }
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        CHECK_ROW("%s", bad[i]);
        assert_false(rerun_file_is_name(bad[i]));
    }
    name = rerun_file_name(
        "..........................................................................",
        "2026-11-21T16:09:23.123Z");
    char *file = xasprintf("%s.json", name);
    assert_true(rerun_file_is_name(file));
    free(file);
    free(name);
}

/* ---- in a receipt ---- */

struct world {
    char *folder;
    char *folder_of_program;
    struct plan_program *program;
    struct lock *lock;
    cJSON *provenance;
    int schema;            /* of the rerun files */
    const char *elsewhere; /* the instruction set of reruns; NULL: that of the accepted attempt */
};

static cJSON *read_json(const char *folder, const char *name)
{
    cJSON *o = NULL;
    struct err err;
    char *path = path_join(folder, name);
    assert_int_equal(json_read_file(path, (size_t)1 << 24, &o, &err), 0);
    free(path);
    return o;
}

static int set_up(void **state)
{
    static const struct fixture f = {.n_seeds = 2, .n_evals = 2, .n_metrics = 2};
    struct world *w = xcalloc(1, sizeof(*w));
    w->schema = RERUN_SCHEMA;
    struct err err = {0};
    struct diag diag;
    w->folder = scratch_make();
    int rc = fixture_make(&f, w->folder, &w->folder_of_program, &err);
    assert_int_equal(rc, 0);
    char *grid = path_join(w->folder_of_program, "grid.toml");
    char *lock = path_join(w->folder_of_program, "grid.toml.lock");
    diag_init(&diag, grid);
    assert_int_equal(program_load(grid, &w->program, &diag, &err), 0);
    assert_int_equal(lock_read(lock, &w->lock, &err), 0);
    w->provenance = read_json(w->folder_of_program, "report/provenance.json");
    diag_release(&diag);
    free(lock);
    free(grid);
    *state = w;
    return 0;
}

static int tear_down(void **state)
{
    struct world *w = *state;
    scratch_remove(w->folder);
    cJSON_Delete(w->provenance);
    lock_free(w->lock);
    program_free(w->program);
    free(w->folder_of_program);
    free(w);
    return 0;
}

/* What a stage of a rerun of the second cell gave. */
typedef void change_fn(cJSON *result);

static void put_stage(const struct world *w, cJSON *file, size_t i, change_fn *change)
{
    const struct plan_program *p = w->program;
    struct digest d;
    struct err err;
    char hex[DIGEST_HEX_SIZE];
    char *name = xasprintf("cells/%s/%s/result.json", p->cells[1].name, p->stages[i].name);
    char *path = path_join(w->folder_of_program, name);
    const cJSON *task =
        cJSON_GetArrayItem(json_member(w->provenance, "tasks"), (int)(p->n_stages + i));
    cJSON *was = read_json(w->folder_of_program, name);
    cJSON *now = json_copy(was);
    cJSON *place = rerun_environment_of(json_member(task, "attempts")->child, w->schema);
    cJSON *there = json_copy(place);
    if (w->elsewhere != NULL && w->schema > 1) {
        cJSON_DeleteItemFromObjectCaseSensitive(there, "instructions");
        json_put_string(there, "instructions", w->elsewhere);
    } else if (w->elsewhere != NULL) { /* of another vendor, which schema 1 made nothing of */
        cJSON_SetValuestring(cJSON_GetObjectItemCaseSensitive(there, "cpu"), "VIA C3");
    }
    assert_int_equal(digest_file(path, &d, NULL, &err), 0);
    digest_hex(&d, hex);
    if (change != NULL) {
        change(now);
    }
    rerun_file_add(file, &(struct rerun_stage){.name = p->stages[i].name,
                                               .head = w->lock->root,
                                               .digest = hex,
                                               .accepted = {was, place},
                                               .again = {now, there}});
    cJSON_Delete(there);
    cJSON_Delete(place);
    cJSON_Delete(now);
    cJSON_Delete(was);
    free(path);
    free(name);
}

static cJSON *begin_rerun(const struct world *w)
{
    const struct plan_program *p = w->program;
    const struct rerun_head head = {
        "0.1.0", p->name, w->lock->root, p->cells[1].name, "2099-01-01T00:00:00.000Z", w->schema};
    return rerun_file_begin(&head);
}

/* All but `left_out`; the last one as `change` makes it. */
static void put_stages(const struct world *w, cJSON *file, size_t left_out, change_fn *change)
{
    const struct plan_program *p = w->program;
    for (size_t i = 0; i < p->n_stages; i++) {
        if (i != left_out) {
            put_stage(w, file, i, i + 1 == p->n_stages ? change : NULL);
        }
    }
}

static cJSON *rerun_of(const struct world *w, size_t left_out, change_fn *change)
{
    cJSON *file = begin_rerun(w);
    put_stages(w, file, left_out, change);
    rerun_file_end(file, w->program);
    return file;
}

static void write_rerun(const char *folder, const cJSON *file)
{
    struct err err;
    char *reruns = path_join(folder, LAYOUT_RERUNS);
    char *path = path_join(reruns, "a.json");
    assert_int_equal(dir_make(reruns, 0755, &err), 0);
    assert_int_equal(json_write_file(path, file, 0644, &err), 0);
    free(path);
    free(reruns);
}

static void export(const struct world *w, struct export_made *made)
{
    struct err err = {0};
    char *out = path_join(w->folder, "out");
    assert_int_equal(dir_remove(out, &err), 0);
    int rc = receipt_export(
        &(struct export_spec){.program_folder = w->folder_of_program, .out = out}, made, &err);
    if (rc != 0) {
        fail_msg("%s", err.msg);
    }
    free(out);
}

/* What verify says of it. */
static cJSON *claims_of(const struct world *w, const cJSON *file)
{
    struct export_made made;
    struct verify_answer a;
    write_rerun(w->folder_of_program, file);
    export(w, &made);
    const struct verify_spec spec = {.folder = made.folder};
    assert_int_equal(receipt_verify(&spec, &a), 0);
    assert_int_equal(a.level, LEVEL_CONSISTENT); /* never more by a claim */
    assert_int_equal(cJSON_GetArraySize(json_member(a.json, "claimed")), 1);
    cJSON *o = json_copy(json_member(a.json, "reruns")->child);
    verify_answer_release(&a);
    export_made_release(&made);
    return o;
}

static void expect_claim(const struct world *w, cJSON *file, const char *expected)
{
    cJSON *o = claims_of(w, file);
    cJSON_DeleteItemFromObjectCaseSensitive(o, "cell");
    cJSON_DeleteItemFromObjectCaseSensitive(o, "time");
    char *text = cJSON_PrintUnformatted(o);
    assert_string_equal(text, expected);
    free(text);
    cJSON_Delete(o);
    cJSON_Delete(file);
}

static void raise_value(cJSON *result)
{
    cJSON *m = cJSON_GetObjectItemCaseSensitive(result, "metrics")->child;
    cJSON_SetNumberValue(cJSON_GetObjectItemCaseSensitive(m, "value"), 0.99);
}

static void give_nothing(cJSON *result)
{
    cJSON_DeleteItemFromObjectCaseSensitive(result, "metrics");
    cJSON_DeleteItemFromObjectCaseSensitive(result, "artifacts");
}

static void give_more(cJSON *result)
{
    cJSON *m = cJSON_GetObjectItemCaseSensitive(result, "metrics");
    json_put_number(m, "more", 1);
}

static void test_claims(void **state)
{
    const struct world *w = *state;
    expect_claim(w, rerun_of(w, SIZE_MAX, NULL),
                 "{\"file\":\"reruns/a.json\",\"claims\":\"re-executed\",\"differs\":[],"
                 "\"left_out\":[]}");
    expect_claim(w, rerun_of(w, 1, NULL),
                 "{\"file\":\"reruns/a.json\",\"claims\":null,\"differs\":[],"
                 "\"left_out\":[\"e0\"]}");
    expect_claim(w, rerun_of(w, SIZE_MAX, raise_value),
                 "{\"file\":\"reruns/a.json\",\"claims\":null,\"differs\":[\"e1\"],"
                 "\"left_out\":[]}");
    expect_claim(w, rerun_of(w, SIZE_MAX, give_nothing),
                 "{\"file\":\"reruns/a.json\",\"claims\":null,\"differs\":[\"e1\"],"
                 "\"left_out\":[]}");
    expect_claim(w, rerun_of(w, SIZE_MAX, give_more),
                 "{\"file\":\"reruns/a.json\",\"claims\":null,\"differs\":[\"e1\"],"
                 "\"left_out\":[]}");
}

/* Another instruction set in every stage is a level of its own; a file of schema 1 stays valid and
 * does not reach it. */
static void test_elsewhere(void **state)
{
    struct world *w = *state;
    w->elsewhere = "avx2";
    expect_claim(w, rerun_of(w, SIZE_MAX, NULL),
                 "{\"file\":\"reruns/a.json\",\"claims\":\"re-executed on another processor\","
                 "\"differs\":[],\"left_out\":[]}");
    w->elsewhere = FIXTURE_INSTRUCTIONS;
    expect_claim(w, rerun_of(w, SIZE_MAX, NULL),
                 "{\"file\":\"reruns/a.json\",\"claims\":\"re-executed\",\"differs\":[],"
                 "\"left_out\":[]}");
    w->elsewhere = "avx2";
    w->schema = 1;
    expect_claim(w, rerun_of(w, SIZE_MAX, NULL),
                 "{\"file\":\"reruns/a.json\",\"claims\":\"re-executed\",\"differs\":[],"
                 "\"left_out\":[]}");
    w->elsewhere = NULL;
    w->schema = RERUN_SCHEMA;
}

/* ---- somebody changed it, and the sums after it ---- */

static void sum_again(const char *folder)
{
    struct receipt_files files;
    struct err f = {0};
    struct err err;
    struct strbuf text = STRBUF_INIT;
    char *path = path_join(folder, "SHA256SUMS");
    assert_int_equal(files_open(&files, folder, &f), 0);
    assert_int_equal(sums_make(&files, &text, &f), 0);
    assert_int_equal(file_write_atomic(path, text.buf, text.len, 0644, &err), 0);
    files_release(&files);
    strbuf_release(&text);
    free(path);
}

/* The first `from` of the file is replaced. */
static int verify_changed(const struct export_made *made, const char *from, const char *to,
                          struct verify_answer *a)
{
    struct strbuf old = STRBUF_INIT;
    struct strbuf now = STRBUF_INIT;
    struct err err;
    char *path = path_join(made->folder, "reruns/a.json");
    assert_int_equal(file_read(path, (size_t)1 << 20, &old, &err), 0);
    const char *at = strstr(old.buf, from);
    if (at == NULL) {
        fail_msg("the file holds no %s", from);
    }
    strbuf_add(&now, old.buf, (size_t)(at - old.buf));
    strbuf_adds(&now, to);
    strbuf_adds(&now, at + strlen(from));
    assert_int_equal(file_write_atomic(path, now.buf, now.len, 0644, &err), 0);
    sum_again(made->folder);
    const struct verify_spec spec = {.folder = made->folder};
    int rc = receipt_verify(&spec, a);
    assert_int_equal(file_write_atomic(path, old.buf, old.len, 0644, &err), 0);
    sum_again(made->folder);
    strbuf_release(&old);
    strbuf_release(&now);
    free(path);
    return rc;
}

static void test_changed(void **state)
{
    static const struct {
        const char *from;
        const char *to;
        int code;
    } rows[] = {
        {"\"schema\": 2", "\"schema\": 3", ERR_VERSION},
        {"\"schema\": 2", "\"schema\": 1", ERR_LOCK}, /* which has shorter environments */
        {"\"schema\": 2", "\"schema\": 0", ERR_LOCK},
        {"\"tool\": \"0.1.0\"", "\"tool\": 1", ERR_LOCK},
        {"\"program\": \"", "\"program\": \"x", ERR_LOCK},
        {"\"root\": \"", "\"root\": \"0", ERR_LOCK},
        {"\"cell\": \"", "\"cell\": \"x", ERR_LOCK},
        {"2099-01-01", "2001-01-01", ERR_LOCK}, /* before the lock */
        {"2099-01-01", "2099-13-01", ERR_LOCK},
        {"\"stage\": \"train\"", "\"stage\": \"e1\"", ERR_LOCK},
        {"\"stage\": \"e0\"", "\"stage\": \"train\"", ERR_LOCK},
        {"\"stage\": \"train\"", "\"stage\": \"nobody\"", ERR_LOCK},
        {"\"head\": \"", "\"head\": \"0", ERR_LOCK},
        {"\"result\": \"", "\"result\": \"0", ERR_LOCK},
        {"\"same\": true", "\"same\": false", ERR_LOCK},
        {"\"name\": \"acc0\"", "\"name\": \"acc9\"", ERR_LOCK},
        {"\"value\": 0.", "\"value\": 0.5", ERR_LOCK}, /* the accepted side's comes first */
        {"\"n\": 100", "\"n\": 101", ERR_LOCK},
        {"\"path\": \"items.jsonl\"", "\"path\": \"other.jsonl\"", ERR_LOCK},
        {"\"rerun\": \"0", "\"rerun\": \"z", ERR_LOCK},
        {"\"rerun\": \"0", "\"rerun\": \"1", ERR_LOCK},   /* it differs, and "same" says not */
        {"\"cpu\": \"AMD", "\"cpu\": \"Intel", ERR_LOCK}, /* of the accepted attempt */
        {"\"differs\": []", "\"differs\": [\"cpu\"]", ERR_LOCK},
        {"\"left_out\": []", "\"left_out\": [\"e0\"]", ERR_LOCK},
        {"\"level\": \"re-executed\"", "\"level\": null", ERR_LOCK},
        {"\"level\": \"re-executed\"", "\"level\": \"re-executed\",\n  \"more\": 1", ERR_LOCK},
        {"\"schema\": 2,", "\"schema\": 2, ", ERR_LOCK}, /* blanks */
        {"{", "", ERR_LOCK},
        {"{", "[", ERR_LOCK},
    };
    const struct world *w = *state;
    struct export_made made;
    cJSON *file = rerun_of(w, SIZE_MAX, NULL);
    write_rerun(w->folder_of_program, file);
    cJSON_Delete(file);
    export(w, &made);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        CHECK_ROW("%s", rows[i].from);
        struct verify_answer a;
        int rc = verify_changed(&made, rows[i].from, rows[i].to, &a);
        if (rc != rows[i].code || strcmp(a.fault.file, "reruns/a.json") != 0) {
            fail_msg("%s -> %s: code %d, %s: %s", rows[i].from, rows[i].to, rc, a.fault.file,
                     a.fault.msg);
        }
        verify_answer_release(&a);
    }
    export_made_release(&made);
}

/* A level that something else claims, and where the second time was: the word of its writer. */
static void test_forged_claim(void **state)
{
    const struct world *w = *state;
    struct export_made made;
    struct verify_answer a;
    cJSON *file = rerun_of(w, SIZE_MAX, raise_value);
    write_rerun(w->folder_of_program, file);
    cJSON_Delete(file);
    export(w, &made);
    assert_int_equal(verify_changed(&made, "\"level\": null", "\"level\": \"re-executed\"", &a),
                     ERR_LOCK);
    verify_answer_release(&a);
    assert_int_equal(verify_changed(&made, "\"value\": 0.99", "\"value\": 0.98", &a), ERR_LOCK);
    assert_string_equal(a.fault.file, "statement.json"); /* the file itself follows */
    verify_answer_release(&a);
    export_made_release(&made);
}

static void no_digest(cJSON *result)
{
    cJSON *a = cJSON_GetObjectItemCaseSensitive(result, "artifacts")->child;
    cJSON_SetValuestring(cJSON_GetObjectItemCaseSensitive(a, "sha256"), "none");
}

static void no_metric(cJSON *result)
{
    cJSON *m = cJSON_GetObjectItemCaseSensitive(result, "metrics");
    json_put_string(m, "word", "good");
}

/* Files that follow from themselves, and that no rerun writes. */
static void test_refused(void **state)
{
    const struct world *w = *state;
    const struct {
        size_t first; /* a stage that comes before all */
        change_fn *change;
        const char *says;
    } rows[] = {{0, NULL, "out of its order"},
                {2, NULL, "out of its order"},
                {SIZE_MAX, no_digest, "not a SHA-256"},
                {SIZE_MAX, no_metric, "\"word\" of the rerun has no value"}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        CHECK_ROW("%s", rows[i].says);
        struct export_made made;
        struct err err = {0};
        char *out = path_join(w->folder, "refused");
        cJSON *file = begin_rerun(w);
        if (rows[i].first != SIZE_MAX) {
            put_stage(w, file, rows[i].first, NULL);
        }
        put_stages(w, file, SIZE_MAX, rows[i].change);
        rerun_file_end(file, w->program);
        write_rerun(w->folder_of_program, file);
        int rc = receipt_export(
            &(struct export_spec){.program_folder = w->folder_of_program, .out = out}, &made, &err);
        if (rc != ERR_LOCK || strstr(err.msg, rows[i].says) == NULL) {
            fail_msg("row %zu: code %d: %s", i, rc, err.msg);
        }
        export_made_release(&made);
        cJSON_Delete(file);
        free(out);
    }
    cJSON *file = rerun_of(w, SIZE_MAX, NULL);
    write_rerun(w->folder_of_program, file);
    cJSON_Delete(file);
}

/* What a crash or --keep left beside the files is none of a receipt's. */
static void test_leftovers(void **state)
{
    const struct world *w = *state;
    struct err err;
    struct export_made made;
    char *work = path_join(w->folder_of_program, "reruns/a.work/train");
    char *odd = path_join(w->folder_of_program, "reruns/notes.txt");
    assert_int_equal(dir_make(work, 0700, &err), 0);
    assert_int_equal(file_write_atomic(odd, "x", 1, 0600, &err), 0);
    export(w, &made);
    char *reruns = path_join(made.folder, LAYOUT_RERUNS);
    struct name_list names = {0};
    assert_int_equal(dir_list(reruns, &names, &err), 0);
    assert_int_equal(names.n, 1);
    name_list_release(&names);
    free(reruns);
    free(odd);
    free(work);
    export_made_release(&made);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_compare),      cmocka_unit_test(test_environment),
        cmocka_unit_test(test_names),        cmocka_unit_test(test_claims),
        cmocka_unit_test(test_elsewhere),    cmocka_unit_test(test_changed),
        cmocka_unit_test(test_forged_claim), cmocka_unit_test(test_refused),
        cmocka_unit_test(test_leftovers),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
