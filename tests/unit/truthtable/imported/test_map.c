/* Maps and patterns: which file speaks of which cell and stage. */
#include <stdlib.h>
#include <string.h>

#include "base/files/file.h"
#include "base/json/json.h"
#include "base/xalloc.h"
#include "prereg/load/program_load.h"
#include "tests/unit/check.h"
#include "tests/unit/scratch.h"
#include "truthtable/imported/import.h"
#include "truthtable/imported/map.h"

static const char toml[] =
    "[program]\nname = \"t\"\nschema = 1\nquestion = \"?\"\n"
    "[[factor]]\nname = \"arch\"\nlevels = [\"a*b\", \"moe\"]\n"
    "[[factor]]\nname = \"seed\"\nlevels = [1, 2]\nreplicate = true\n"
    "[stage.train]\ncommand = [\"w\"]\nparams = { a = \"$arch\", s = \"$seed\" }\n"
    "[stage.mmlu]\ncommand = [\"w\"]\nafter = [\"train\"]\nparams = { task = \"mmlu_local\" }\n"
    "[measure]\nq = { metric = \"mmlu.acc\", items = 100, chance = 0.25, floor = 0.3 }\n"
    "[contrast]\nc = { between = { arch = [\"a*b\", \"moe\"] }, over = \"cleared\" }\n"
    "[counter]\nk = { contrast = \"c\", clears = \"every_cell\", binds = true }\n"
    "[[input]]\nname = \"i\"\nlevels = [[\"a\", \"counter.k == 1\"], [\"b\", \"otherwise\"]]\n"
    "[table]\ninputs = [\"i\"]\nrows = [[\"a\", \"O1\"], [\"b\", \"O2\"]]\n"
    "[outcome]\nO1 = { prior = 0.5, title = \"one\" }\nO2 = { prior = 0.4, title = \"two\" }\n";

struct lab {
    struct plan_program *p;
    char *folder;
};

static int set_up(void **state)
{
    static struct lab at;
    struct diag diag;
    struct err err;
    diag_init(&diag, "grid.toml");
    if (program_parse(toml, strlen(toml), "grid.toml", &at.p, &diag, &err) != 0) {
        diag_print(&diag, stderr);
        return -1;
    }
    diag_release(&diag);
    at.folder = scratch_make();
    scratch_put(at.folder, "a*b_1/results_x.json", "{}");
    scratch_put(at.folder, "aXb_1/results_y.json", "{}"); /* what a shell would take a*b for */
    scratch_put(at.folder, "moe_1/results_x.json", "{}");
    scratch_put(at.folder, "moe_2/results_x.json", "{}");
    *state = &at;
    return 0;
}

static int tear_down(void **state)
{
    struct lab *at = *state;
    program_free(at->p);
    scratch_remove(at->folder);
    return 0;
}

static void test_pattern(void **state)
{
    const struct lab *at = *state;
    struct map m;
    struct err err = {0};
    map_init(&m, at->p);
    if (map_add_pattern(&m, at->folder, "{arch}_{seed}/results_*.json", "{arch}_{seed}/s_*.jsonl",
                        &err) != 0) {
        fail_msg("%s", err.msg);
    }
    assert_int_equal(m.n_sources, 3);
    assert_int_equal(m.sources[0].cell, 0);
    assert_non_null(strstr(m.sources[0].results, "/a*b_1/results_x.json"));
    assert_int_equal(m.sources[0].stage, INDEX_NONE);
    assert_int_equal(m.sources[2].cell, 3);
    assert_non_null(strstr(m.sources[2].samples[0], "/moe_2/s_*.jsonl"));
    assert_int_equal(cJSON_GetArraySize(m.unmatched), 1);
    assert_non_null(strstr(m.unmatched->child->valuestring, "arch=a*b,seed=2"));
    assert_string_equal(map_task(&m, 1, 0), "mmlu_local");
    assert_string_equal(map_task(&m, 0, 0), "train");
    map_release(&m);
}

/* What the folder's own name holds is not the shell's. */
static void test_folder_of_a_pattern(void **state)
{
    const struct lab *at = *state;
    struct map m;
    struct err err = {0};
    char *folder = path_join(at->folder, "of[1]*?");
    scratch_put(at->folder, "of[1]*?/moe_1/results_x.json", "{}");
    scratch_put(at->folder, "of[1]*?/map.json",
                "{\"schema\":1,\"files\":[{\"cell\":\"arch=moe,seed=2\",\"results\":\"r.json\","
                "\"samples\":\"s_*.jsonl\"}]}");
    map_init(&m, at->p);
    assert_int_equal(map_add_pattern(&m, folder, "{arch}_{seed}/results_*.json", NULL, &err), 0);
    assert_int_equal(m.n_sources, 1);
    char *path = path_join(folder, "map.json");
    assert_int_equal(map_read(&m, path, &err), 0);
    assert_int_equal(m.n_sources, 2);
    assert_non_null(strstr(m.sources[1].results, "/of[1]*?/r.json"));
    assert_non_null(strstr(m.sources[1].samples[0], "/of\\[1\\]\\*\\?/s_*.jsonl"));
    free(path);
    free(folder);
    map_release(&m);
}

static void test_pattern_refused(void **state)
{
    const struct lab *at = *state;
    static const struct {
        const char *results;
        const char *samples;
        const char *said;
    } cases[] = {
        {"{arhc}/r.json", NULL, "no factor \"arhc\""},
        {"{}/r.json", NULL, "no factor \"\""},
        {"moe_*/results_x.json", NULL, "two files for arch=a*b,seed=1"},
        {"moe_1/results_x.json", "{stage}.jsonl", "{stage}"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct map m;
        struct err err = {0};
        map_init(&m, at->p);
        int rc = map_add_pattern(&m, at->folder, cases[i].results, cases[i].samples, &err);
        if (rc == 0 || strstr(err.msg, cases[i].said) == NULL) {
            fail_msg("case %zu: code %d, \"%s\"", i, rc, err.msg);
        }
        map_release(&m);
    }
}

static void test_file(void **state)
{
    const struct lab *at = *state;
    struct map m;
    struct err err = {0};
    scratch_put(
        at->folder, "map.json",
        "{\"schema\":1,\"label\":\"x\",\"tasks\":{\"mmlu\":\"mine\"},\"metrics\":{\"mmlu\":"
        "{\"acc\":\"acc,none\"}},\"files\":[{\"cell\":\"arch=moe,seed=2\",\"stage\":"
        "\"mmlu\",\"results\":\"r.json\",\"samples\":\"s.jsonl\"}],\"records\":[\"t.json\"]}");
    char *path = path_join(at->folder, "map.json");
    map_init(&m, at->p);
    if (map_read(&m, path, &err) != 0) {
        fail_msg("%s", err.msg);
    }
    assert_int_equal(m.n_sources, 1);
    assert_int_equal(m.sources[0].cell, 3);
    assert_int_equal(m.sources[0].stage, 1);
    assert_int_equal(strncmp(m.sources[0].results, at->folder, strlen(at->folder)), 0);
    assert_int_equal(m.sources[0].n_samples, 1);
    assert_int_equal(m.n_records, 1);
    assert_string_equal(map_task(&m, 1, 0), "mine");
    assert_non_null(map_metrics(&m, 1));
    assert_null(map_metrics(&m, 0));
    map_release(&m);
    free(path);
}

static void test_file_refused(void **state)
{
    const struct lab *at = *state;
    static const struct {
        const char *text;
        const char *said;
    } cases[] = {
        {"[]", "a map is an object"},
        {"{}", "schema"},
        {"{\"schema\":2}", "schema 2"},
        {"{\"schema\":1,\"fles\":[]}", "did you mean \"files\"?"},
        {"{\"schema\":1,\"files\":{}}", "\"files\" is not a list"},
        {"{\"schema\":1,\"files\":[3]}", "files 0: is not an object"},
        {"{\"schema\":1,\"files\":[{\"cell\":\"arch=moe,seed=2\"}]}", "files 0: "},
        {"{\"schema\":1,\"files\":[{\"cell\":\"moe\",\"results\":\"r\"}]}", "no cell \"moe\""},
        {"{\"schema\":1,\"files\":[{\"cell\":\"arch=moe,seed=2\",\"results\":\"r\",\"stage\":"
         "\"mlu\"}]}",
         "did you mean \"mmlu\"?"},
        {"{\"schema\":1,\"files\":[{\"cell\":\"arch=moe,seed=2\",\"results\":\"r\",\"samples\":"
         "[1]}]}",
         "\"samples\""},
        {"{\"schema\":1,\"tasks\":{\"mmlu\":1}}", "tasks.mmlu"},
        {"{\"schema\":1,\"metrics\":{\"mmlu\":[1]}}", "metrics.mmlu"},
        {"{\"schema\":1,\"records\":[1]}", "records 0"},
        {"{\"schema\":1,\"pattern\":[{\"result\":\"x\"}]}", "did you mean \"results\"?"},
        {"{\"schema\":1", "line 1"},
    };
    char *path = path_join(at->folder, "bad.json");
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CHECK_ROW("%s", cases[i].text);
        struct map m;
        struct err err = {0};
        scratch_put(at->folder, "bad.json", cases[i].text);
        map_init(&m, at->p);
        int rc = map_read(&m, path, &err);
        if (rc == 0 || strstr(err.msg, cases[i].said) == NULL || strstr(err.msg, path) == NULL) {
            fail_msg("case %zu: code %d, \"%s\"", i, rc, err.msg);
        }
        map_release(&m);
    }
    free(path);
}

/* ---- a file of records that is exchanged between two readings ---- */

int __wrap_file_read(const char *path, size_t max_bytes, struct strbuf *out, struct err *err);
int __real_file_read(const char *path, size_t max_bytes, struct strbuf *out, struct err *err);

static const char *exchanged;   /* its path; NULL: none */
static const char *replacement; /* what it becomes after it was read once */

int __wrap_file_read(const char *path, size_t max_bytes, struct strbuf *out, struct err *err)
{
    int rc = __real_file_read(path, max_bytes, out, err);
    if (rc == 0 && exchanged != NULL && strcmp(path, exchanged) == 0) {
        struct err ignored;
        assert_int_equal(file_write_atomic(path, replacement, strlen(replacement), 0600, &ignored),
                         0);
    }
    return rc;
}

/* Digest, proof and records are of the bytes that were read first. */
static void test_records_exchanged(void **state)
{
    static const char first[] =
        "{\"schema\":1,\"program\":\"t\",\"label\":\"l\",\"records\":[{\"cell\":"
        "\"arch=moe,seed=1\",\"stage\":\"train\",\"metrics\":{\"x\":{\"value\":1}}}]}";
    static const char second[] =
        "{\"schema\":1,\"program\":\"t\",\"label\":\"l\",\"records\":[{\"cell\":"
        "\"nowhere\",\"stage\":\"none\",\"metrics\":{}}]}";
    const struct lab *at = *state;
    struct map m;
    struct import im;
    struct err err = {0};
    char hex[DIGEST_HEX_SIZE];
    const struct digest digest = digest_bytes(first, strlen(first));
    scratch_put(at->folder, "records.json", first);
    map_init(&m, at->p);
    map_add_records(&m, at->folder, "records.json");
    exchanged = m.records[0];
    replacement = second;
    int rc = import_run(&im, at->p, &m, &err);
    exchanged = NULL;
    if (rc != 0) {
        fail_msg("%s", err.msg);
    }
    assert_int_equal(cJSON_GetArraySize(im.list), 1);
    assert_string_equal(json_member(im.list->child, "cell")->valuestring, "arch=moe,seed=1");
    digest_hex(&digest, hex);
    assert_string_equal(json_member(im.receipts->child, "sha256")->valuestring, hex);
    import_release(&im);
    map_release(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pattern),
        cmocka_unit_test(test_pattern_refused),
        cmocka_unit_test(test_folder_of_a_pattern),
        cmocka_unit_test(test_file),
        cmocka_unit_test(test_file_refused),
        cmocka_unit_test(test_records_exchanged),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
