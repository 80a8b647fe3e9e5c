/* Requests, scores, lines of items.jsonl and their taking over, with a model one can work out by
 * hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>

#include "base/file.h"
#include "base/xalloc.h"
#include "tests/unit/worker_eval/scratch.h"
#include "worker/eval/items_file.h"
#include "worker/eval/request.h"
#include "worker/eval/scorer.h"
#include "worker/eval/tally.h"

#define CONTEXT 32

/* ln p of a byte is -byte / 64, whatever came before; 'a' is the likeliest; a 'Z' gives NaN.
 * Generates the bytes of `says` one after the other, then end of text. */
struct toy {
    const char *says;
    size_t n_prompt; /* of the generation going on; 0: none */
};

static int toy_score(void *self, const uint32_t *tokens, size_t n, size_t first, double *logprob,
                     bool *is_top, struct err *err)
{
    (void)self;
    (void)err;
    assert_true(first >= 1 && first < n && n - 1 <= CONTEXT);
    for (size_t i = first; i < n; i++) {
        logprob[i - first] = tokens[i] == 'Z' ? (double)NAN : -(double)tokens[i] / 64.0;
        is_top[i - first] = tokens[i] == 'a';
    }
    return 0;
}

static int toy_next(void *self, const uint32_t *tokens, size_t n, float *logits, struct err *err)
{
    struct toy *toy = self;
    (void)tokens;
    (void)err;
    assert_true(n <= CONTEXT);
    if (toy->n_prompt == 0)
        toy->n_prompt = n;
    const size_t at = n - toy->n_prompt;
    for (size_t i = 0; i < TOKENIZER_BYTES_VOCAB; i++)
        logits[i] = 0.0f;
    unsigned char next = at < strlen(toy->says) ? (unsigned char)toy->says[at] : 0;
    logits[next == 0 ? 256 : next] = next == 'Z' ? NAN : 1.0f;
    return 0;
}

struct fixture {
    struct toy toy;
    struct tokenizer *tok;
    struct lm lm;
    struct item_set set;
    struct prompts prompts;
    struct task_spec *spec;
    struct scorer scorer;
    struct outcome outcome;
};

static void fixture_open(struct fixture *f, const char *task, const char *lines, size_t max_tokens)
{
    struct err err = {0};
    const struct item_source src = {.path = "items.in"};
    const struct prompt_rules rules = {0};
    memset(f, 0, sizeof(*f));
    assert_int_equal(task_builtin_read(task, &f->spec, &err), 0);
    assert_int_equal(tokenizer_open(TOKENIZER_BYTES, &f->tok, &err), 0);
    f->lm = (struct lm){&f->toy, f->tok, CONTEXT, TOKENIZER_BYTES_VOCAB, toy_score, toy_next};
    scratch_write("items.in", lines);
    item_set_init(&f->set);
    assert_int_equal(item_set_read(&f->set, f->spec, &src, &err), 0);
    assert_int_equal(prompts_init(&f->prompts, &f->set, &f->set, &rules, &err), 0);
    assert_int_equal(scorer_init(&f->scorer, f->spec, &f->prompts, &f->lm, max_tokens, &err), 0);
    outcome_init(&f->outcome);
}

static void fixture_close(struct fixture *f)
{
    outcome_release(&f->outcome);
    scorer_release(&f->scorer);
    prompts_release(&f->prompts);
    item_set_release(&f->set);
    task_spec_free(f->spec);
    tokenizer_free(f->tok);
}

static void ask(struct fixture *f, size_t index)
{
    struct err err = {0};
    if (scorer_ask(&f->scorer, index, &f->outcome, &err) != 0)
        fail_msg("%s", err.msg);
}

static void test_request(void **state)
{
    (void)state;
    static const struct {
        const char *context, *continuation;
        size_t max_length;
        const char *tokens; /* as text; '@' stands for end of text */
        size_t first, n_cut;
        const char *why; /* not NULL: a fault */
    } cases[] = {
        {"ab", " cd", 32, "ab cd", 2, 0, NULL},
        {"ab \n", " cd", 32, "ab \n cd", 2, 0, NULL}, /* white space moves over */
        {"ab\xc2\xa0", "c", 32,
         "ab\xc2\xa0"
         "c",
         2, 0, NULL},
        {"", " c", 32, "@ c", 1, 0, NULL},
        {"abcdef", "gh", 4, "defgh", 3, 3, NULL}, /* max_length + 1 tokens stay */
        {"abcdef", "ghij", 4, "fghij", 1, 5, NULL},
        {"a", "bcdef", 4, "", 0, 0, "has 5 tokens, the model takes 4"},
        {" \t", "b", 32, "", 0, 0, "the context is empty"},
        {"a", "", 32, "", 0, 0, "the continuation is empty"},
        {"a ", "", 32, "a ", 1, 0, NULL},
    };
    struct err err = {0};
    struct tokenizer *tok = NULL;
    struct request r = {0};
    assert_int_equal(tokenizer_open(TOKENIZER_BYTES, &tok, &err), 0);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const struct request_rules rules = {.tok = tok, .max_length = cases[i].max_length};
        int rc = request_build(&r, &rules, cases[i].context, cases[i].continuation, &err);
        if (cases[i].why != NULL) {
            assert_int_equal(rc, ERR_RANGE);
            assert_non_null(strstr(err.msg, cases[i].why));
            continue;
        }
        assert_int_equal(rc, 0);
        assert_int_equal(r.tokens.n, strlen(cases[i].tokens));
        for (size_t k = 0; k < r.tokens.n; k++) {
            unsigned char c = (unsigned char)cases[i].tokens[k];
            assert_int_equal(r.tokens.ids[k], c == '@' ? 256 : c);
        }
        assert_int_equal(r.first, cases[i].first);
        assert_int_equal(r.n_cut, cases[i].n_cut);
    }
    request_release(&r);
    tokenizer_free(tok);
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
    ask(&f, 0);
    assert_int_equal(f.outcome.n, 3);
    assert_true(f.outcome.ll[0] == -0.5 - 2 * 97.0 / 64);
    assert_true(f.outcome.ll[1] == -0.5 - 364.0 / 64);
    assert_true(f.outcome.ll[2] == -0.5 - 97.0 / 64);
    assert_int_equal(f.outcome.pred[0], 2);
    assert_true(f.outcome.passed[0]);
    assert_int_equal(f.outcome.pred[1], 0); /* per character; the accented letter is one */
    assert_false(f.outcome.passed[1]);
    struct strbuf line = STRBUF_INIT;
    outcome_add_line(&f.outcome, f.spec, &f.set.items[0], 0, &line);
    assert_string_equal(line.buf, "{\"item\":0,\"line\":1,\"ll\":[-3.53125,-6.1875,-2.015625],"
                                  "\"greedy\":[0,0,0],\"cut\":0,\"gold\":2,\"pred\":2,"
                                  "\"pred_norm\":0,\"acc\":1,\"acc_norm\":0}\n");
    ask(&f, 1);
    assert_int_equal(f.outcome.pred[0], 0); /* the first of equals */
    ask(&f, 2);
    assert_string_equal(f.outcome.fault, "option 1: the answer is empty");
    ask(&f, 3);
    assert_false(f.outcome.finite);
    ask(&f, 4); /* one character each: -10.5 and -6.1875; by bytes the first would be ahead */
    assert_int_equal(f.outcome.pred[1], 1);
    strbuf_release(&line);
    fixture_close(&f);
}

static void test_schema(void **state)
{
    (void)state;
    struct fixture f;
    fixture_open(&f, "schema",
                 "{\"context_options\":[\"x \",\"x\"],\"continuation\":\"ab\",\"gold\":1}\n"
                 "{\"context_options\":[\"0123456789012345678901234567890\",\" \"],"
                 "\"continuation\":\"ab\",\"gold\":1}\n",
                 0);
    ask(&f, 0); /* the first context's space is scored with the continuation */
    assert_true(f.outcome.ll[0] == f.outcome.ll[1] - 0.5);
    assert_true(f.outcome.passed[0]);
    ask(&f, 1);
    assert_string_equal(f.outcome.fault, "option 1: the context is empty");
    assert_int_equal(f.outcome.n_cut, 1);
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
    ask(&f, 0);
    assert_true(f.outcome.ended && f.outcome.passed[0] && f.outcome.passed[1]);
    f.toy = (struct toy){" 2 Question: 3", 0};
    ask(&f, 0);
    assert_string_equal(f.outcome.text.buf, " 2 ");
    assert_true(f.outcome.ended && !f.outcome.passed[0] && f.outcome.passed[1]);
    f.toy = (struct toy){"\xffggggggggggggggggggggg", 0};
    ask(&f, 0);
    assert_false(f.outcome.ended);
    assert_string_equal(f.outcome.text.buf, "\xef\xbf\xbdggggggggggggggg");
    assert_int_equal(f.outcome.n_cut, strlen("Question: 1+1\nAnswer:") - (CONTEXT - 16));
    struct strbuf line = STRBUF_INIT;
    struct outcome back;
    outcome_init(&back);
    outcome_add_line(&f.outcome, f.spec, &f.set.items[0], 0, &line);
    assert_true(outcome_read_line(&back, f.spec, &f.set.items[0], 0, line.buf, line.len - 1));
    f.toy = (struct toy){"Z", 0};
    ask(&f, 0);
    assert_false(f.outcome.finite);
    assert_int_equal(scorer_init(&other, f.spec, &f.prompts, &f.lm, CONTEXT, &err), ERR_REFUSED);
    scorer_release(&other);
    outcome_release(&back);
    strbuf_release(&line);
    fixture_close(&f);
}

static void test_lines(void **state)
{
    (void)state;
    struct fixture f;
    struct outcome back;
    struct strbuf line = STRBUF_INIT;
    fixture_open(&f, "choices",
                 "{\"query\":\"q\",\"choices\":[\"a\",\"c\"],\"gold\":0}\n"
                 "{\"query\":\"q\",\"choices\":[\"a\",\"\"],\"gold\":0}\n",
                 0);
    outcome_init(&back);
    for (size_t i = 0; i < 2; i++) {
        const struct item *it = &f.set.items[i];
        ask(&f, i);
        strbuf_clear(&line);
        outcome_add_line(&f.outcome, f.spec, it, i, &line);
        assert_true(outcome_read_line(&back, f.spec, it, i, line.buf, line.len - 1));
        assert_int_equal(back.passed[0], f.outcome.passed[0]);
        assert_string_equal(back.fault, f.outcome.fault);
        /* neither another item's line nor half a line is believed */
        assert_false(outcome_read_line(&back, f.spec, it, i + 1, line.buf, line.len - 1));
        assert_false(outcome_read_line(&back, f.spec, it, i, line.buf, line.len / 2));
    }
    static const char *const lies[] = {
        "{\"item\":0,\"line\":1,\"ll\":[-2,-1],\"greedy\":[0,0],\"cut\":0,\"gold\":0,\"pred\":0,"
        "\"pred_norm\":0,\"acc\":1,\"acc_norm\":1}",
        "{\"item\":0,\"line\":1,\"ll\":[-2],\"greedy\":[0,0],\"cut\":0,\"gold\":0,\"pred\":0,"
        "\"pred_norm\":0,\"acc\":1,\"acc_norm\":1}",
        "{\"item\":0,\"line\":1,\"ll\":[-1,-2,-3],\"greedy\":[0,0,0],\"cut\":0,\"gold\":0,"
        "\"pred\":0,\"pred_norm\":0,\"acc\":1,\"acc_norm\":1}",
        "{\"item\":0}",
        "[]",
        "",
    };
    for (size_t i = 0; i < ARRAY_LEN(lies); i++)
        assert_false(
            outcome_read_line(&back, f.spec, &f.set.items[0], 0, lies[i], strlen(lies[i])));
    outcome_release(&back);
    strbuf_release(&line);
    fixture_close(&f);
}

static bool believe_x(void *self, size_t index, const char *line, size_t len)
{
    size_t *limit = self;
    return len == 1 && line[0] == 'x' && index < *limit;
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
        struct strbuf taken = STRBUF_INIT;
        struct strbuf other = STRBUF_INIT;
        size_t limit = cases[i].limit;
        size_t n = 99;
        const struct items_reader reader = {believe_x, &limit};
        scratch_write("old/" ITEMS_FILE_NAME, cases[i].text);
        assert_int_equal(items_file_take("old", "h", &reader, &taken, &n, &other), cases[i].found);
        assert_int_equal(n, cases[i].n);
        assert_int_equal(taken.len, 2 * n);
        strbuf_release(&taken);
        strbuf_release(&other);
    }
}

static void test_tally(void **state)
{
    (void)state;
    const struct tally ten = {10, 3};
    const struct tally one = {1, 1};
    const struct tally none = {0, 0};
    const struct tally groups[] = {{10, 3}, {0, 0}, {40, 20}};
    assert_true(fabs(tally_se(&ten) - 0.15275252316519466) < 1e-15);
    assert_true(tally_mean(&ten) == 0.3);
    assert_true(isnan(tally_se(&one)) && isnan(tally_mean(&none)));
    assert_true(tally_pooled_se(&ten, 1) == tally_se(&ten));
    const double a = tally_se(&groups[0]);
    const double b = tally_se(&groups[2]);
    const double expected = sqrt((9 * 10 * a * a + 39 * 40 * b * b) / 48 / 50);
    assert_true(fabs(tally_pooled_se(groups, 3) - expected) < 1e-15);
    const struct tally ones[] = {{1, 1}, {1, 0}, {2, 1}};
    assert_true(fabs(tally_pooled_se(ones, 3) - sqrt(0.5 / 1 / 4)) < 1e-15);
    assert_true(isnan(tally_pooled_se(ones, 2)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_request), cmocka_unit_test(test_choices),
        cmocka_unit_test(test_schema),  cmocka_unit_test(test_generation),
        cmocka_unit_test(test_lines),   cmocka_unit_test(test_take_over),
        cmocka_unit_test(test_tally),
    };
    return cmocka_run_group_tests(tests, scratch_enter, scratch_leave);
}
