/* Samples and results files against those that lm-evaluation-harness 0.4.3 wrote of the same
 * records, byte for byte (tests/golden/harness_files.json, made by
 * tests/oracle/harness_golden.py). The answers are a function of the request, the same there. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/files/digest.h"
#include "base/files/file.h"
#include "base/json/json.h"
#include "base/xalloc.h"
#include "tests/unit/check.h"
#include "tests/unit/scratch.h"
#include "worker/eval/harness/harness_files.h"
#include "worker/eval/score/summary.h"

#define GOLDEN TEST_SOURCE_DIR "/tests/golden/harness_files.json"

static const char *const generations[] = {
    " 2 + 2 = 4\n#### 4", " The answer is 7.", "", " It costs $1,234.50 \"now\"\n\té東",
    " 1\n#### 18",        " 5\n#### 5."};

static const char *const subjects[] = {"anatomy", "astronomy", "jurisprudence"};

/* What one case runs on. */
struct lab {
    char *data; /* a folder, or its only file */
    struct eval_options options;
    struct benchmark bench;
    struct judge judge;
    struct summary summary;
    struct strbuf items; /* items.jsonl */
    cJSON *metrics;
};

/* The first 32 bits of the digest of the texts with a NUL between. */
static uint32_t number_of(const char *first, const char *second)
{
    struct digest_stream s;
    digest_start(&s);
    digest_add(&s, first, strlen(first));
    if (second != NULL) {
        digest_add(&s, "", 1);
        digest_add(&s, second, strlen(second));
    }
    const struct digest d = digest_finish(&s);
    return (uint32_t)d.bytes[0] << 24 | (uint32_t)d.bytes[1] << 16 | (uint32_t)d.bytes[2] << 8 |
           d.bytes[3];
}

static void answer(const struct prompts *prompts, size_t item, struct item_outcome *o)
{
    const struct item *it = &prompts->set->items[item];
    struct request_text text;
    request_text_init(&text);
    outcome_clear(o);
    for (size_t i = 0; i < prompt_requests(it); i++) {
        prompt_request(prompts, item, i, &text);
        strbuf_add(&text.preamble, text.context.buf, text.context.len);
        if (it->kind == TASK_GENERATE) {
            strbuf_adds(&o->text,
                        generations[number_of(text.preamble.buf, NULL) % ARRAY_LEN(generations)]);
            break;
        }
        const uint32_t v = it->kind == TASK_ROLLING
                               ? number_of(text.continuation.buf, NULL)
                               : number_of(text.preamble.buf, text.continuation.buf);
        o->ll[o->n] = -(double)(v % 100000) / 1000;
        o->greedy[o->n] = v % 3 == 0;
        o->n_tokens[o->n++] = 1;
    }
    request_text_release(&text);
}

static void ask_all(struct lab *lab)
{
    struct item_outcome o;
    struct err err = {0};
    outcome_init(&o);
    summary_init(&lab->summary, &lab->judge);
    strbuf_adds(&lab->items, "{}\n");
    for (size_t i = 0; i < lab->bench.n_selected; i++) {
        const size_t item = lab->bench.selected[i];
        answer(&lab->bench.prompts, item, &o);
        judge_item(&lab->judge, item, &o);
        outcome_add_line(&o, &lab->judge, item, &lab->items);
        summary_add(&lab->summary, item, &o);
    }
    const struct summary_rules rules = {.bootstrap_iters = 1000};
    assert_int_equal(summary_finish(&lab->summary, &rules, &err), 0);
    lab->metrics = json_object();
    for (size_t i = 0; i < lab->summary.n; i++) {
        cJSON *m = json_object();
        json_put_number(m, "value", lab->summary.entries[i].score.value);
        json_put_int(m, "n", (int64_t)lab->summary.entries[i].score.n);
        if (isfinite(lab->summary.entries[i].score.se))
            json_put_number(m, "se", lab->summary.entries[i].score.se);
        json_put(lab->metrics, lab->summary.entries[i].name, m);
    }
    outcome_release(&o);
}

static char *write_data(const cJSON *files)
{
    const cJSON *file = NULL;
    struct err err = {0};
    cJSON_ArrayForEach(file, files)
    {
        char *path = path_join("data", file->string);
        char *parent = path_folder(path);
        assert_int_equal(dir_make(parent, 0755, &err), 0);
        scratch_put(".", path, file->valuestring);
        free(parent);
        free(path);
    }
    return files->child->next == NULL ? path_join("data", files->child->string) : xstrdup("data");
}

static void set_up(struct lab *lab, const cJSON *golden)
{
    struct err err = {0};
    *lab = (struct lab){.items = STRBUF_INIT};
    lab->data = write_data(json_member(golden, "files"));
    struct eval_options *o = &lab->options;
    const char *task = json_member(golden, "task")->valuestring;
    assert_int_equal(task_builtin_read(task, &o->spec, &err), 0);
    if (strcmp(task, "mmlu") == 0)
        assert_int_equal(task_spec_choose_groups(o->spec, subjects, ARRAY_LEN(subjects), &err), 0);
    o->rules = harness_rules_find(HARNESS_DEFAULT);
    o->shots = json_member(golden, "shots")->valueint;
    o->data = (struct task_data){.name = "data", .path = lab->data};
    o->split = o->spec->split;
    o->fewshot_split = o->spec->fewshot_split;
    if (benchmark_load(&lab->bench, o, &err) != 0)
        fail_msg("%s: %s", task, err.msg);
    assert_int_equal(judge_init(&lab->judge, &lab->bench.set, NULL, &err), 0);
    ask_all(lab);
    assert_int_equal(dir_make("out", 0755, &err), 0);
}

static void tear_down(struct lab *lab)
{
    struct err err = {0};
    cJSON_Delete(lab->metrics);
    summary_release(&lab->summary);
    judge_release(&lab->judge);
    benchmark_release(&lab->bench);
    eval_options_release(&lab->options);
    strbuf_release(&lab->items);
    free(lab->data);
    assert_int_equal(dir_remove("data", &err), 0);
    assert_int_equal(dir_remove("out", &err), 0);
}

static const struct harness_model a_model = {
    .sha256 = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
    .environment = "here",
    .end_text = "<|endoftext|>",
    .end_id = 256,
    .parameters = 1000,
    .max_length = 64};

static int write_files(struct lab *lab, struct err *err)
{
    struct harness_files f = {.bench = &lab->bench,
                              .judge = &lab->judge,
                              .items = "items.jsonl",
                              .folder = "out",
                              .stamp = "",
                              .samples = true};
    const char *missing = NULL;
    f.results.options = &lab->options;
    f.results.metrics = lab->metrics;
    f.results.model = &a_model;
    f.results.bootstrap = 1000;
    f.results.date = (double)NAN;
    scratch_put(".", "items.jsonl", lab->items.buf);
    int rc = harness_files_write(&f, &missing, err);
    assert_null(missing);
    return rc;
}

static void read_out(const char *name, struct strbuf *text)
{
    struct err err = {0};
    char *path = path_join("out", name);
    assert_int_equal(file_read(path, (size_t)1 << 24, text, &err), 0);
    free(path);
}

static void check_samples(const cJSON *samples)
{
    const cJSON *sample = NULL;
    cJSON_ArrayForEach(sample, samples)
    {
        struct strbuf text = STRBUF_INIT;
        char *name = xasprintf("samples_%s.jsonl", sample->string);
        read_out(name, &text);
        assert_string_equal(text.buf, sample->valuestring);
        strbuf_release(&text);
        free(name);
    }
}

/* Members of objects in any order, but those of `results` and `groups` in the harness's. */
static void check_same(const char *key, const cJSON *ours, const cJSON *theirs)
{
    struct strbuf a = STRBUF_INIT;
    struct strbuf b = STRBUF_INIT;
    struct err err = {0};
    const bool ordered = strcmp(key, "results") == 0 || strcmp(key, "groups") == 0;
    assert_non_null(ours);
    assert_int_equal((ordered ? json_line : json_canonical)(ours, &a, &err), 0);
    assert_int_equal((ordered ? json_line : json_canonical)(theirs, &b, &err), 0);
    assert_string_equal(a.buf, b.buf);
    strbuf_release(&a);
    strbuf_release(&b);
}

static void check_results(const cJSON *golden, bool groups)
{
    struct strbuf text = STRBUF_INIT;
    struct err err = {0};
    cJSON *ours = NULL;
    const cJSON *member = NULL;
    read_out("results.json", &text);
    assert_int_equal(json_parse(text.buf, text.len, &ours, &err), 0);
    const cJSON *key = json_member(golden, "keys")->child;
    cJSON_ArrayForEach(member, ours)
    {
        /* The harness names a tokenizer's tokens only where there is one, and its model had none.
         */
        if (strncmp(member->string, "tokenizer_", 10) == 0 ||
            strcmp(member->string, "eot_token_id") == 0 ||
            strcmp(member->string, "max_length") == 0)
            continue;
        assert_non_null(key);
        assert_string_equal(member->string, key->valuestring);
        key = key->next;
    }
    assert_null(key);
    cJSON_ArrayForEach(member, json_member(golden, "scores"))
    {
        cJSON *shots = json_member(ours, member->string) == NULL
                           ? NULL
                           : json_copy(json_member(ours, member->string));
        if (groups && strcmp(member->string, "n-shot") == 0) {
            cJSON_DeleteItemFromObjectCaseSensitive(shots, "mmlu");
            cJSON_DeleteItemFromObjectCaseSensitive(shots, "mmlu_stem");
            cJSON_DeleteItemFromObjectCaseSensitive(shots, "mmlu_humanities");
        }
        check_same(member->string, shots, member);
        cJSON_Delete(shots);
    }
    cJSON_Delete(ours);
    strbuf_release(&text);
}

static cJSON *read_golden(void)
{
    struct err err = {0};
    cJSON *cases = NULL;
    assert_int_equal(json_read_file(GOLDEN, (size_t)1 << 24, &cases, &err), 0);
    return cases;
}

static void test_against_harness(void **state)
{
    (void)state;
    cJSON *cases = read_golden();
    const cJSON *golden = NULL;
    int n = 0;
    cJSON_ArrayForEach(golden, cases)
    {
        struct lab lab;
        struct err err = {0};
        set_up(&lab, golden);
        assert_int_equal(write_files(&lab, &err), 0);
        check_samples(json_member(golden, "samples"));
        check_results(golden, lab.bench.set.n_groups > 1);
        tear_down(&lab);
        n++;
    }
    assert_true(n >= 10);
    cJSON_Delete(cases);
}

/* A changed answer, a line too few and one too many: nothing is written of that file. */
static void test_items_that_do_not_hold(void **state)
{
    (void)state;
    cJSON *cases = read_golden();
    struct lab lab;
    struct err err = {0};
    set_up(&lab, cases->child);
    char *first = strstr(lab.items.buf, "\"pred\":");
    assert_non_null(first);
    first[7] ^= 1;
    assert_int_equal(write_files(&lab, &err), ERR_CORRUPT);
    assert_non_null(strstr(err.msg, "items.jsonl: line 2"));
    first[7] ^= 1;
    strbuf_adds(&lab.items, "{}\n");
    assert_int_equal(write_files(&lab, &err), ERR_CORRUPT);
    lab.items.len -= 4;
    lab.items.buf[lab.items.len] = '\0';
    assert_int_equal(write_files(&lab, &err), ERR_CORRUPT);
    struct name_list names;
    assert_int_equal(dir_list("out", &names, &err), 0);
    assert_int_equal(names.n, 0);
    name_list_release(&names);
    tear_down(&lab);
    cJSON_Delete(cases);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_against_harness),
        cmocka_unit_test(test_items_that_do_not_hold),
    };
    return cmocka_run_group_tests(tests, scratch_enter, scratch_leave);
}
