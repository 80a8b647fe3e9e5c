/* The data budget: what is estimated from files against what is counted after reading them. */
#include <math.h>
#include <sys/stat.h>

#include "base/files/file.h"
#include "base/xalloc.h"
#include "tests/unit/check.h"
#include "tests/unit/scratch.h"
#include "worker/data/shard.h"
#include "worker/data/source.h"
#include "worker/train/budget.h"

/* Enough that a sample of a source is a small part of it. */
#define LINES 30000

static const char *const WORDS[] = {"amber", "birch", "cedar", "dune", "elm"};

static char *put_file(const char *name, const struct strbuf *text)
{
    struct err err = {0};
    char *path = path_join(scratch_folder, name);

    if (file_write_atomic(path, text->buf, text->len, 0644, &err) < 0)
        fail_msg("%s", err.msg);
    return path;
}

/* Lines that differ in length, as documents of JSON lines or paragraphs of text. */
static char *put_lines(const char *name, bool json)
{
    struct strbuf text = STRBUF_INIT;

    for (size_t i = 0; i < LINES; i++) {
        const char *a = WORDS[i % ARRAY_LEN(WORDS)], *b = WORDS[i / 7 % ARRAY_LEN(WORDS)];
        if (json)
            strbuf_addf(&text, "{\"text\":\"%s grows beside %s, %zu.\",\"n\":%zu}\n", a, b, i, i);
        else
            strbuf_addf(&text, "%s grows beside %s, %zu.\n%s", a, b, i, i % 5 == 0 ? "\n" : "");
    }
    char *path = put_file(name, &text);
    strbuf_release(&text);
    return path;
}

static struct tokenizer *bytes(void)
{
    struct tokenizer *tok = NULL;
    struct err err = {0};

    assert_int_equal(tokenizer_open(TOKENIZER_BYTES, &tok, &err), 0);
    return tok;
}

static double counted(const char *path, const struct tokenizer *tok)
{
    struct corpus corpus;
    struct err err = {0};

    corpus_init(&corpus);
    if (source_read(path, tok, &corpus, &err) < 0)
        fail_msg("%s", err.msg);
    double n = (double)corpus.n_tokens;
    corpus_release(&corpus);
    return n;
}

/* What the budget says of one source, of a run of a million tokens that holds nothing out. */
static struct data_budget budget_at(const char *path, const struct tokenizer *tok)
{
    struct train_options opt = {.steps = 1000, .batch_tokens = 1000, .n_mix = 1};
    struct worker_task task = {.data = NULL};
    struct data_budget b;

    opt.mix[0] = (struct mix_part){.name = "web", .weight = 1.0};
    cJSON *data = cJSON_CreateObject();
    cJSON *entry = cJSON_AddObjectToObject(data, "web");
    cJSON_AddStringToObject(entry, "path", path);
    task.data = data;
    budget_of_files(&task, &opt, tok, &b);
    cJSON_Delete(data);
    return b;
}

static void test_estimates(void **state)
{
    (void)state;
    struct tokenizer *tok = bytes();
    struct corpus corpus;
    struct err err = {0};
    char *json = put_lines("lines.jsonl", true), *text = put_lines("text.txt", false);
    char *shard = path_join(scratch_folder, "packed.shard");

    corpus_init(&corpus);
    assert_int_equal(source_read(json, tok, &corpus, &err), 0);
    assert_int_equal(shard_write(shard, &corpus, tok, "web", &err), 0);
    corpus_release(&corpus);
    const struct {
        const char *path;
        double within; /* of what is counted */
    } cases[] = {{json, 0.02}, {text, 0.02}, {shard, 0.0}, {scratch_folder, 0.02}};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CHECK_ROW("%s", cases[i].path);
        struct data_budget b = budget_at(cases[i].path, tok);
        double want = counted(cases[i].path, tok);
        if (!(fabs(b.sources[0].available / want - 1.0) <= cases[i].within))
            fail_msg("%.0f tokens, not %.0f", b.sources[0].available, want);
        assert_true(fabs(budget_passes(&b) * want / 1e6 - 1.0) <= cases[i].within + 1e-12);
    }
    free(json);
    free(text);
    free(shard);
    tokenizer_free(tok);
}

/* What cannot be read is not known, and says nothing. */
static void add_nothing(void *ctx, const char *name, double value)
{
    (void)ctx;
    fail_msg("%s = %g of data that are not there", name, value);
}

static void test_unknown(void **state)
{
    (void)state;
    struct tokenizer *tok = bytes();
    struct strbuf text = STRBUF_INIT;
    struct train_options opt = {.n_mix = 1};
    struct data_budget b = budget_at("/nowhere/at/all", tok);

    opt.mix[0].name = "web";
    budget_facts(&b, &opt, add_nothing, NULL);
    b = budget_at(scratch_folder, NULL);
    budget_facts(&b, &opt, add_nothing, NULL);
    /* One document longer than the sample: nothing to judge the rest by. */
    for (size_t i = 0; i < 2 * SOURCE_SAMPLE_BYTES; i++)
        strbuf_addc(&text, 'x');
    char *path = put_file("long.txt", &text);
    b = budget_at(path, tok);
    budget_facts(&b, &opt, add_nothing, NULL);
    /* The next file is, for both. */
    free(put_lines("short.txt", false));
    b = budget_at(scratch_folder, tok);
    assert_true(b.sources[0].available > 2.0 * SOURCE_SAMPLE_BYTES);
    strbuf_release(&text);
    free(path);
    tokenizer_free(tok);
}

struct seen_facts {
    double passes, web, unique, per_expert, tokens;
};

static void see(void *ctx, const char *name, double value)
{
    struct seen_facts *s = ctx;

    if (strcmp(name, "passes") == 0)
        s->passes = value;
    else if (strcmp(name, "passes:web") == 0)
        s->web = value;
    else if (strcmp(name, "data_tokens:web") == 0)
        s->tokens = value;
    else if (strcmp(name, "unique_tokens") == 0)
        s->unique = value;
    else if (strcmp(name, "unique_tokens_per_expert") == 0)
        s->per_expert = value;
}

/* 600 of 1000 tokens are drawn from 300: twice; 400 from 800: half. */
static void test_facts(void **state)
{
    (void)state;
    struct train_data data = {.n_sources = 2};
    struct train_options opt = {.n_mix = 2};
    struct data_budget b;
    struct seen_facts s = {0};

    opt.mix[0].name = "web";
    opt.mix[1].name = "maths";
    opt.model.experts = 8;
    opt.model.top_k = 2;
    data.sources[0] = (struct train_source){.weight = 0.6, .train = {.n = 300}};
    data.sources[1] = (struct train_source){.weight = 0.4, .train = {.n = 800}};
    budget_of_data(&data, 1000.0, &b);
    budget_facts(&b, &opt, see, &s);
    assert_true(s.web == 2.0 && s.passes == 2.0 && s.tokens == 300.0);
    assert_true(s.unique == 700.0 && s.per_expert == 175.0);
    opt.model.experts = 0;
    s = (struct seen_facts){0};
    budget_facts(&b, &opt, see, &s);
    assert_true(s.unique == 700.0 && s.per_expert == 0.0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_estimates, scratch_enter, scratch_leave),
        cmocka_unit_test_setup_teardown(test_unknown, scratch_enter, scratch_leave),
        cmocka_unit_test(test_facts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
