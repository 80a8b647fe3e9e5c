/* Items asked in batches, their lines of items.jsonl and their taking over, with a model one can
 * work out by hand. */
#include <math.h>

#include "base/files/file.h"
#include "base/layout/layout.h"
#include "base/xalloc.h"
#include "tests/unit/check.h"
#include "tests/unit/scratch.h"
#include "worker/data/tokenizer/tokenizer_kind.h"
#include "worker/eval/score/items_file.h"
#include "worker/eval/score/scorer.h"

#define CONTEXT 32

/* ln p of a byte is -byte / 64, whatever came before; 'a' is the likeliest; a 'Z' gives NaN.
 * Generates the bytes of `says`, then end of text. */
struct toy {
    const char *says;
    size_t n_calls;
};

static int toy_score(void *self, struct score_request *r, size_t n, bool (*asked)(void),
                     struct err *err)
{
    struct toy *toy = self;
    toy->n_calls++;
    if (asked != NULL && asked())
        return err_set(err, ERR_BUSY, "stopped");
    for (size_t i = 0; i < n; i++) {
        assert_true(r[i].first >= 1 && r[i].first < r[i].n && r[i].n - 1 <= CONTEXT);
        r[i].sum = 0.0;
        r[i].greedy = true;
        for (size_t k = r[i].first; k < r[i].n; k++) {
            const uint32_t id = r[i].tokens[k];
            r[i].sum += id == 'Z' ? (double)NAN : -(double)id / 64.0;
            r[i].greedy = r[i].greedy && id == 'a';
        }
    }
    return 0;
}

static int toy_generate(void *self, struct score_generation *g, size_t n,
                        const struct score_stop *stop, struct err *err)
{
    struct toy *toy = self;
    (void)err;
    toy->n_calls++;
    assert_int_equal(stop->end_of_text, TOKENIZER_BYTES_VOCAB - 1);
    for (size_t i = 0; i < n; i++) {
        assert_true(g[i].n >= 1 && g[i].n + g[i].max_tokens <= CONTEXT);
        g[i].finite = true;
        for (size_t k = 0; k < g[i].max_tokens && !g[i].ended && g[i].finite; k++) {
            const unsigned char next = (unsigned char)(k < strlen(toy->says) ? toy->says[k] : 0);
            g[i].finite = next != 'Z';
            g[i].ended = next == 0;
            if (g[i].ended || !g[i].finite)
                break;
            token_list_add(&g[i].out, next);
            g[i].ended = stop->over(stop->self, i, &g[i].out);
        }
    }
    return 0;
}

struct fixture {
    struct toy toy;
    struct tokenizer *tok;
    struct lm lm;
    struct task_spec *spec;
    struct item_set set;
    struct prompts prompts;
    struct judge judge;
    struct scorer scorer;
};

static struct scorer_setup setup_of(struct fixture *f, size_t max_tokens)
{
    return (struct scorer_setup){.prompts = &f->prompts,
                                 .judge = &f->judge,
                                 .lm = &f->lm,
                                 .rules = {.tok = f->tok, .max_length = CONTEXT},
                                 .max_tokens = max_tokens};
}

static void fixture_open(struct fixture *f, const char *task, const char *lines, size_t max_tokens)
{
    struct err err = {0};
    const struct prompt_rules rules = {.shots = 0};
    memset(f, 0, sizeof(*f));
    assert_int_equal(task_builtin_read(task, &f->spec, &err), 0);
    assert_int_equal(tokenizer_open(TOKENIZER_BYTES, &f->tok, &err), 0);
    f->lm = (struct lm){.self = &f->toy,
                        .tok = f->tok,
                        .context = CONTEXT,
                        .score = toy_score,
                        .generate = toy_generate};
    item_set_init(&f->set);
    if (item_set_parse_jsonl(&f->set, f->spec, lines, strlen(lines), &err) != 0)
        fail_msg("%s", err.msg);
    assert_int_equal(prompts_init(&f->prompts, &f->set, &f->set, &rules, &err), 0);
    assert_int_equal(judge_init(&f->judge, &f->set, NULL, &err), 0);
    const struct scorer_setup setup = setup_of(f, max_tokens);
    assert_int_equal(scorer_init(&f->scorer, &setup, &err), 0);
}

static void fixture_close(struct fixture *f)
{
    scorer_release(&f->scorer);
    judge_release(&f->judge);
    prompts_release(&f->prompts);
    item_set_release(&f->set);
    task_spec_free(f->spec);
    tokenizer_free(f->tok);
}

/* One item alone. */
static const struct item_outcome *ask(struct fixture *f, size_t index)
{
    struct err err = {0};
    size_t n = 0;
    if (scorer_ask(&f->scorer, &index, 1, &n, &err) != 0)
        fail_msg("%s", err.msg);
    assert_int_equal(n, 1);
    return &f->scorer.outcomes[0];
}

/* A space is 32/64 = 0.5 below zero, an 'a' 97/64, an e with acute accent (195 + 169)/64. */
static void test_choices(void **state)
{
    (void)state;
    struct fixture f;
    fixture_open(&f, "choices",
                 "{\"query\":\"q\",\"choices\":[\"aa\",\"\xc3\xa9\",\"a\"],\"gold\":2}\n"
                 "{\"query\":\"q\",\"choices\":[\"b\",\"b\"],\"gold\":0}\n"
                 "{\"query\":\"q\",\"choices\":[\"b\",\"\"],\"gold\":0}\n"
                 "{\"query\":\"q\",\"choices\":[\"bZ\",\"b\"],\"gold\":0}\n"
                 "{\"query\":\"q\",\"choices\":[\"\xf0\x90\x80\x80\",\"\xc3\xa9\"],\"gold\":1}\n",
                 0);
    const struct item_outcome *o = ask(&f, 0);
    assert_int_equal(o->n, 3);
    assert_true(o->ll[0] == -0.5 - 2 * 97.0 / 64);
    assert_true(o->ll[1] == -0.5 - 364.0 / 64);
    assert_true(o->ll[2] == -0.5 - 97.0 / 64);
    assert_int_equal(o->verdicts[0].pred, 2);
    assert_true(o->verdicts[0].value == 1.0);
    assert_int_equal(o->verdicts[1].pred, 0); /* per character; the accented letter is one */
    assert_true(o->verdicts[1].value == 0.0);
    struct strbuf line = STRBUF_INIT;
    outcome_add_line(o, &f.judge, 0, &line);
    assert_string_equal(line.buf, "{\"item\":0,\"line\":1,\"ll\":[-3.53125,-6.1875,-2.015625],"
                                  "\"greedy\":[0,0,0],\"tokens\":[3,3,2],\"cut\":0,\"gold\":2,"
                                  "\"pred\":2,\"pred_norm\":0,\"acc\":1,\"acc_norm\":0}\n");
    o = ask(&f, 1);
    assert_int_equal(o->verdicts[0].pred, 0); /* the first of equals */
    o = ask(&f, 2);
    assert_string_equal(o->fault, "option 1: the answer is empty");
    o = ask(&f, 3);
    assert_false(o->finite);
    o = ask(&f, 4); /* one character each: -10.5 and -6.1875; by bytes the first would be ahead */
    assert_int_equal(o->verdicts[1].pred, 1);
    strbuf_release(&line);
    fixture_close(&f);
}

static size_t n_encoded;

static int count_encoding(const struct tokenizer *tok, const char *text, size_t len,
                          struct token_list *out, struct err *err)
{
    n_encoded++;
    return tokenizer_kind_bytes.encode(tok, text, len, out, err);
}

/* An item's context is encoded once, and each choice with it; a context of another item anew. */
static void test_encodings(void **state)
{
    (void)state;
    struct tokenizer_kind counting = tokenizer_kind_bytes;
    struct fixture f;
    fixture_open(&f, "choices",
                 "{\"query\":\"q\",\"choices\":[\"a\",\"b\",\"c\",\"d\"],\"gold\":2}\n"
                 "{\"query\":\"qr\",\"choices\":[\"a\",\"b\",\"c\",\"d\"],\"gold\":0}\n",
                 0);
    counting.encode = count_encoding;
    f.tok->kind = &counting;
    for (size_t i = 0; i < 2; i++) {
        n_encoded = 0;
        const struct item_outcome *o = ask(&f, i);
        assert_int_equal(n_encoded, 1 + 4);
        for (size_t k = 0; k < 4; k++)
            assert_true(o->ll[k] == -0.5 - (double)('a' + k) / 64);
    }
    fixture_close(&f);
}

static void test_contexts(void **state)
{
    (void)state;
    struct fixture f;
    fixture_open(&f, "schema",
                 "{\"context_options\":[\"x \",\"x\"],\"continuation\":\"ab\",\"gold\":1}\n"
                 "{\"context_options\":[\"0123456789012345678901234567890\",\" \"],"
                 "\"continuation\":\"ab\",\"gold\":1}\n"
                 "{\"context_options\":[\"0123456789012345678901234567890\",\"x\"],"
                 "\"continuation\":\"ab\",\"gold\":1}\n",
                 0);
    const struct item_outcome *o = ask(&f, 0);
    /* the first context's space is scored with the continuation */
    assert_true(o->ll[0] == o->ll[1] - 0.5);
    assert_true(o->verdicts[0].value == 1.0);
    o = ask(&f, 1);
    assert_string_equal(o->fault, "option 1: the context is empty");
    o = ask(&f, 2);
    assert_int_equal(o->n_cut, 1);
    fixture_close(&f);
}

/* The target alone is scored, and the item is right when its every token is the likeliest. */
static void test_likelihood(void **state)
{
    (void)state;
    struct fixture f;
    fixture_open(&f, "lambada_openai", "{\"text\":\"x y aa\"}\n{\"text\":\"x y\"}\n", 0);
    const struct item_outcome *o = ask(&f, 0);
    assert_int_equal(o->n, 1);
    assert_int_equal(o->n_tokens[0], 3);
    assert_true(o->ll[0] == -0.5 - 2 * 97.0 / 64);
    assert_true(o->verdicts[0].value == o->ll[0]);
    assert_true(o->verdicts[1].value == 0.0); /* the space is not the likeliest */
    struct strbuf line = STRBUF_INIT;
    outcome_add_line(o, &f.judge, 0, &line);
    assert_string_equal(line.buf, "{\"item\":0,\"line\":1,\"ll\":[-3.53125],\"greedy\":[0],"
                                  "\"tokens\":[3],\"cut\":0,\"acc\":0}\n");
    strbuf_release(&line);
    fixture_close(&f);
}

/* 80 bytes in windows of 32: the sum is that of all bytes; words and bytes are the page's own. */
static void test_rolling(void **state)
{
    (void)state;
    struct fixture f;
    fixture_open(&f, "wikitext",
                 "{\"page\":\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa "
                 "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\\n\"}\n{\"page\":\"\"}\n"
                 "{\"page\":\" a b\\n\"}\n",
                 0);
    const struct item_outcome *o = ask(&f, 0);
    assert_int_equal(o->n, 1);
    assert_int_equal(f.scorer.requests.n, 3);
    assert_int_equal(o->n_tokens[0], 80);
    assert_true(fabs(o->ll[0] - (78 * -97.0 - 32.0 - 10.0) / 64.0) < 1e-12);
    assert_true(o->verdicts[0].weight == 3.0); /* two words, and what follows the line feed */
    assert_true(o->verdicts[1].weight == 80.0);
    o = ask(&f, 1);
    assert_true(o->ll[0] == 0.0 && o->fault[0] == '\0' && o->finite);
    assert_true(o->verdicts[0].weight == 1.0 && o->verdicts[1].weight == 0.0);
    o = ask(&f, 2);
    assert_true(o->verdicts[0].weight == 4.0);
    struct strbuf line = STRBUF_INIT;
    struct item_outcome back;
    outcome_init(&back);
    outcome_add_line(o, &f.judge, 2, &line);
    assert_non_null(strstr(line.buf, "\"words\":4,\"bytes\":5}"));
    assert_true(outcome_read_line(&back, &f.judge, 2, line.buf, line.len - 1));
    assert_true(back.verdicts[0].weight == 4.0);
    outcome_release(&back);
    strbuf_release(&line);
    fixture_close(&f);
}

static void test_generation(void **state)
{
    (void)state;
    struct fixture f;
    struct err err = {0};
    struct scorer other;
    fixture_open(&f, "gsm8k", "{\"question\":\"1+1\",\"answer\":\"so\\n#### 2\"}\n", 16);
    f.toy.says = " #### 2";
    const struct item_outcome *o = ask(&f, 0);
    assert_true(o->ended && o->verdicts[0].value == 1.0 && o->verdicts[1].value == 1.0);
    f.toy.says = " 2 Question: 3";
    o = ask(&f, 0);
    assert_string_equal(o->text.buf, " 2 ");
    assert_true(o->ended && o->verdicts[0].value == 0.0 && o->verdicts[1].value == 1.0);
    assert_string_equal(o->verdicts[0].answer.buf, JUDGE_NO_MATCH);
    f.toy.says = "\xffggggggggggggggggggggg";
    o = ask(&f, 0);
    assert_false(o->ended);
    assert_string_equal(o->text.buf, "\xef\xbf\xbdggggggggggggggg");
    assert_int_equal(o->n_cut, strlen("Question: 1+1\nAnswer:") - (CONTEXT - 16));
    struct strbuf line = STRBUF_INIT;
    struct item_outcome back;
    outcome_init(&back);
    outcome_add_line(o, &f.judge, 0, &line);
    assert_true(outcome_read_line(&back, &f.judge, 0, line.buf, line.len - 1));
    f.toy.says = "Z";
    o = ask(&f, 0);
    assert_false(o->finite);
    const struct scorer_setup setup = setup_of(&f, CONTEXT);
    assert_int_equal(scorer_init(&other, &setup, &err), ERR_REFUSED);
    scorer_release(&other);
    outcome_release(&back);
    strbuf_release(&line);
    fixture_close(&f);
}

/* Six hundred items of which some are at fault: every batch is asked at once, and gives what the
 * items give alone. */
static void test_batches(void **state)
{
    (void)state;
    enum { N = 600 };
    struct fixture f;
    struct strbuf lines = STRBUF_INIT;
    struct strbuf alone = STRBUF_INIT;
    struct strbuf together = STRBUF_INIT;
    struct err err = {0};
    size_t items[N];
    for (size_t i = 0; i < N; i++) {
        items[i] = i;
        strbuf_addf(
            &lines,
            "{\"query\":\"%zu is the question\",\"choices\":[\"%s\",\"b%zu\"],\"gold\":0}\n", i,
            i % 7 == 3 ? "" : "a", i);
    }
    fixture_open(&f, "choices", lines.buf, 0);
    for (size_t i = 0; i < N; i++)
        outcome_add_line(ask(&f, i), &f.judge, i, &alone);
    f.toy.n_calls = 0;
    size_t n = 0;
    size_t n_batches = 0;
    for (size_t done = 0; done < N; done += n, n_batches++) {
        assert_int_equal(scorer_ask(&f.scorer, items + done, N - done, &n, &err), 0);
        for (size_t i = 0; i < n; i++)
            outcome_add_line(&f.scorer.outcomes[i], &f.judge, done + i, &together);
    }
    assert_string_equal(together.buf, alone.buf);
    assert_in_range(n_batches, 2, N / 20);
    assert_int_equal(f.toy.n_calls, n_batches);
    strbuf_release(&lines);
    strbuf_release(&alone);
    strbuf_release(&together);
    fixture_close(&f);
}

static bool now(void)
{
    return true;
}

static void test_asked_to_stop(void **state)
{
    (void)state;
    struct fixture f;
    struct err err = {0};
    const size_t item = 0;
    size_t n = 9;
    fixture_open(&f, "choices", "{\"query\":\"q\",\"choices\":[\"a\",\"b\"],\"gold\":0}\n", 0);
    f.scorer.setup.asked = now;
    assert_int_equal(scorer_ask(&f.scorer, &item, 1, &n, &err), ERR_BUSY);
    assert_int_equal(n, 0);
    fixture_close(&f);
}

static void test_lines(void **state)
{
    (void)state;
    struct fixture f;
    struct item_outcome back;
    struct strbuf line = STRBUF_INIT;
    fixture_open(&f, "choices",
                 "{\"query\":\"q\",\"choices\":[\"a\",\"c\"],\"gold\":0}\n"
                 "{\"query\":\"q\",\"choices\":[\"a\",\"\"],\"gold\":0}\n",
                 0);
    outcome_init(&back);
    for (size_t i = 0; i < 2; i++) {
        const struct item_outcome *o = ask(&f, i);
        strbuf_clear(&line);
        outcome_add_line(o, &f.judge, i, &line);
        assert_true(outcome_read_line(&back, &f.judge, i, line.buf, line.len - 1));
        assert_true(back.verdicts[0].value == o->verdicts[0].value);
        assert_string_equal(back.fault, o->fault);
        /* neither another item's line nor half a line is believed */
        assert_false(outcome_read_line(&back, &f.judge, 1 - i, line.buf, line.len - 1));
        assert_false(outcome_read_line(&back, &f.judge, i, line.buf, line.len / 2));
    }
#define TAIL ",\"cut\":0,\"gold\":0,\"pred\":0,\"pred_norm\":0,\"acc\":1,\"acc_norm\":1}"
    static const char *const lies[] = {
        "{\"item\":0,\"line\":1,\"ll\":[-2,-1],\"greedy\":[0,0],\"tokens\":[2,2]" TAIL,
        "{\"item\":0,\"line\":1,\"ll\":[-2],\"greedy\":[0,0],\"tokens\":[2,2]" TAIL,
        "{\"item\":0,\"line\":1,\"ll\":[-1,-2],\"greedy\":[0,0],\"tokens\":[2]" TAIL,
        "{\"item\":0,\"line\":1,\"ll\":[-1,-2],\"greedy\":[0,0],\"tokens\":[2,-1]" TAIL,
        "{\"item\":0,\"line\":1,\"ll\":[-1,-2,-3],\"greedy\":[0,0,0],\"tokens\":[2,2,2]" TAIL,
        "{\"item\":0}",
        "[]",
        "",
    };
    static const char truth[] =
        "{\"item\":0,\"line\":1,\"ll\":[-1,-2],\"greedy\":[0,0],\"tokens\":[2,2]" TAIL;
    assert_true(outcome_read_line(&back, &f.judge, 0, truth, strlen(truth)));
    for (size_t i = 0; i < ARRAY_LEN(lies); i++) {
        CHECK_ROW("%s", lies[i]);
        assert_false(outcome_read_line(&back, &f.judge, 0, lies[i], strlen(lies[i])));
    }
    outcome_release(&back);
    strbuf_release(&line);
    fixture_close(&f);
}

static bool believe_x(void *self, size_t index, const char *line, size_t len)
{
    size_t *limit = self;
    return len == 1 && line[0] == 'x' && index < *limit;
}

static bool believe_all(void *self, size_t index, const char *line, size_t len)
{
    (void)self;
    (void)index;
    (void)line;
    return len == 1;
}

/* Sums for every line of the text, as a run of one item a batch leaves them. */
static void write_sums(const char *path, const char *text)
{
    struct strbuf sums = STRBUF_INIT;
    struct digest sum = {0};
    const char *at = text;
    for (const char *stop = NULL; (stop = strchr(at, '\n')) != NULL; at = stop + 1) {
        struct digest_stream stream;
        char hex[DIGEST_HEX_SIZE];
        digest_start(&stream);
        digest_add(&stream, sum.bytes, sizeof(sum.bytes));
        digest_add(&stream, at, (size_t)(stop + 1 - at));
        sum = digest_finish(&stream);
        digest_hex(&sum, hex);
        strbuf_addf(&sums, "%zu %s\n", (size_t)(stop + 1 - text), hex);
    }
    scratch_put(".", path, sums.buf == NULL ? "" : sums.buf);
    strbuf_release(&sums);
}

static void test_take_over(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        size_t limit;
        enum items_found found;
        size_t n;
    } cases[] = {
        {"h\nx\nx\nx\n", 9, ITEMS_SAME, 3},
        {"h\nx\nx\nx", 9, ITEMS_SAME, 2},
        {"h\nx\ny\nx\n", 9, ITEMS_SAME, 1},
        {"h\nx\nx\nx\n", 2, ITEMS_SAME, 2},
        {"h\n", 9, ITEMS_SAME, 0},
        {"h", 9, ITEMS_NONE, 0},
        {"", 9, ITEMS_NONE, 0},
        {"g\nx\n", 9, ITEMS_OTHER, 0},
        {"hh\nx\n", 9, ITEMS_OTHER, 0},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CHECK_ROW("%s", cases[i].text);
        struct strbuf taken = STRBUF_INIT;
        struct strbuf other = STRBUF_INIT;
        size_t limit = cases[i].limit;
        size_t n = 99;
        const struct items_reader reader = {believe_x, &limit};
        scratch_put(".", "old/" LAYOUT_ITEMS, cases[i].text);
        write_sums("old/" ITEMS_SUMS_NAME, cases[i].text);
        assert_int_equal(items_file_take("old", "h", &reader, &taken, &n, &other), cases[i].found);
        assert_int_equal(n, cases[i].n);
        assert_int_equal(taken.len, 2 * n);
        strbuf_release(&taken);
        strbuf_release(&other);
    }
}

/* Lines that read well and are not those that were written. */
static void test_changed_bytes(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        enum items_found found;
        size_t n;
    } cases[] = {
        {"h\nx\nx\nx\n", ITEMS_SAME, 3},    {"h\nx\nx\nx\nx\n", ITEMS_SAME, 3},
        {"h\nx\nz\nx\n", ITEMS_CHANGED, 1}, {"h\nz\nx\nx\n", ITEMS_CHANGED, 0},
        {"h\nx\nx\n", ITEMS_SAME, 2},       {"h\n", ITEMS_SAME, 0},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CHECK_ROW("%s", cases[i].text);
        struct strbuf taken = STRBUF_INIT;
        struct strbuf other = STRBUF_INIT;
        size_t n = 99;
        const struct items_reader reader = {believe_all, NULL};
        scratch_put(".", "old/" LAYOUT_ITEMS, cases[i].text);
        write_sums("old/" ITEMS_SUMS_NAME, "h\nx\nx\nx\n");
        assert_int_equal(items_file_take("old", "h", &reader, &taken, &n, &other), cases[i].found);
        assert_int_equal(n, cases[i].n);
        strbuf_release(&taken);
        strbuf_release(&other);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_changed_bytes), cmocka_unit_test(test_choices),
        cmocka_unit_test(test_encodings),     cmocka_unit_test(test_contexts),
        cmocka_unit_test(test_likelihood),    cmocka_unit_test(test_rolling),
        cmocka_unit_test(test_generation),    cmocka_unit_test(test_batches),
        cmocka_unit_test(test_asked_to_stop), cmocka_unit_test(test_lines),
        cmocka_unit_test(test_take_over),
    };
    return cmocka_run_group_tests(tests, scratch_enter, scratch_leave);
}
