/* Requests of DCLM's CORE: three texts tokenised apart, the space before an answer, the cut. */
#include "base/json/json.h"
#include "base/xalloc.h"
#include "tests/unit/check.h"
#include "tests/unit/scratch.h"
#include "worker/data/tokenizer/bytelevel.h"
#include "worker/eval/prompt/dclm_request.h"

#define END_OF_TEXT 256u
#define SPACE_A     257u /* " a" */

/* 'A' in `tokens` stands for " a", '@' for end-of-text. */
static void assert_tokens(const struct request *r, const char *tokens)
{
    assert_int_equal(r->tokens.n, strlen(tokens));
    for (size_t i = 0; i < r->tokens.n; i++) {
        uint32_t expected = (unsigned char)tokens[i];
        if (tokens[i] == 'A')
            expected = SPACE_A;
        if (tokens[i] == '@')
            expected = END_OF_TEXT;
        assert_int_equal(r->tokens.ids[i], expected);
    }
}

struct request_case {
    const char *examples, *context, *answer;
    size_t max_length;
    bool add_bos;
    const char *tokens;
    size_t first, n_cut;
    int rc;
    const char *message;
};

static void set_text(struct request_text *text, const char *examples, const char *context,
                     const char *answer)
{
    strbuf_clear(&text->preamble);
    strbuf_clear(&text->context);
    strbuf_clear(&text->continuation);
    strbuf_adds(&text->preamble, examples);
    strbuf_adds(&text->context, context);
    strbuf_adds(&text->continuation, answer);
}

static void check(const struct tokenizer *tok, const struct request_case *cases, size_t n)
{
    struct request r = {0};
    struct dclm_tokens tokens;
    struct request_text text;
    dclm_tokens_init(&tokens);
    request_text_init(&text);
    for (size_t i = 0; i < n; i++) {
        const struct request_case *c = &cases[i];
        const struct request_rules rules = {
            .tok = tok, .max_length = c->max_length, .add_bos = c->add_bos};
        struct err err = {0};
        set_text(&text, c->examples, c->context, c->answer);
        int rc = dclm_request_build(&r, &rules, &tokens, &text, &err);
        assert_int_equal(rc, c->rc);
        if (rc != 0) {
            assert_string_equal(err.msg, c->message);
            continue;
        }
        assert_tokens(&r, c->tokens);
        assert_int_equal(r.first, c->first);
        assert_int_equal(r.n_cut, c->n_cut);
    }
    request_text_release(&text);
    dclm_tokens_release(&tokens);
    request_release(&r);
}

/* One after the other over the same kept tokens: every change of examples or context counts. */
static const struct request_case of_bytes[] = {
    {"ex", "\nq", "yes", 64, false, "ex\nqyes", 4, 0, 0, NULL},
    {"ex", "\nq", "no", 64, false, "ex\nqno", 4, 0, 0, NULL},
    {"ex", "\np", "no", 64, false, "ex\npno", 4, 0, 0, NULL},
    {"e", "\np", "no", 64, false, "e\npno", 3, 0, 0, NULL},
    {"", "p", "no", 64, false, "pno", 1, 0, 0, NULL},
    {"", "p", "no", 64, true, "@pno", 2, 0, 0, NULL},
    {"", "", "no", 64, false, NULL, 0, 0, ERR_RANGE, "the context is empty"},
    {"", "p", "", 64, false, NULL, 0, 0, ERR_RANGE, "the continuation is empty"},
    {"ab", "cdef", "gh", 8, false, "abcdefgh", 6, 0, 0, NULL},
    {"ab", "cdef", "gh", 7, false, "bcdefgh", 5, 1, 0, NULL},
    {"ab", "cdef", "gh", 3, false, "fgh", 1, 5, 0, NULL},
    {"ab", "cdef", "gh", 2, false, NULL, 0, 0, ERR_RANGE,
     "the continuation has 2 tokens, the model takes 2 with one before it"},
};

static void test_bytes(void **state)
{
    (void)state;
    struct tokenizer *tok = NULL;
    struct err err = {0};
    assert_int_equal(tokenizer_open(TOKENIZER_BYTES, &tok, &err), 0);
    assert_false(tokenizer_begins_texts(tok));
    /* A change of add_bos alone is none within a run: begin anew where it changes. */
    check(tok, of_bytes, 5);
    check(tok, of_bytes + 5, 1);
    check(tok, of_bytes + 6, ARRAY_LEN(of_bytes) - 6);
    tokenizer_free(tok);
}

static const struct request_case of_pieces[] = {
    {"", "q", "a", 64, false, "qA", 1, 0, 0, NULL},
    {"", "q", " a", 64, false, "qA", 1, 0, 0, NULL}, /* it has its space */
    {"", "q", "b", 64, false, "q b", 1, 0, 0, NULL},
    {"x a", "\ny a", "a", 64, false, "xA\nyAA", 5, 0, 0, NULL},
    /* Tokenised apart: the space at the end of the context does not join what follows. */
    {"", "q ", " a", 64, false, "q A", 2, 0, 0, NULL},
    {"", "q ", "a", 64, false, "q A", 2, 0, 0, NULL},
};

/* GPT-2's two files for the bytes, end-of-text and " a". */
static void write_pieces(void)
{
    cJSON *vocab = json_object();
    struct strbuf text = STRBUF_INIT;
    struct err err = {0};
    for (unsigned b = 0; b < 256; b++) {
        const unsigned char byte = (unsigned char)b;
        strbuf_clear(&text);
        bytelevel_write(&byte, 1, &text);
        json_put_int(vocab, text.buf, b);
    }
    json_put_int(vocab, "<|endoftext|>", END_OF_TEXT);
    strbuf_clear(&text);
    bytelevel_write((const unsigned char *)" a", 2, &text);
    json_put_int(vocab, text.buf, SPACE_A);
    assert_int_equal(json_write_file("vocab.json", vocab, 0644, &err), 0);
    strbuf_clear(&text);
    strbuf_adds(&text, "#version: 0.2\n");
    bytelevel_write((const unsigned char *)" ", 1, &text);
    strbuf_adds(&text, " a\n");
    scratch_put(".", "merges.txt", text.buf);
    strbuf_release(&text);
    cJSON_Delete(vocab);
}

static void test_space(void **state)
{
    (void)state;
    struct tokenizer *tok = NULL;
    struct err err = {0};
    write_pieces();
    assert_int_equal(tokenizer_open(".", &tok, &err), 0);
    check(tok, of_pieces, ARRAY_LEN(of_pieces));
    tokenizer_free(tok);
}

/* However long the context of the model: DCLM asks with 2,048 tokens. */
static void test_limit(void **state)
{
    (void)state;
    char context[DCLM_LENGTH_MAX + 2];
    struct tokenizer *tok = NULL;
    struct request r = {0};
    struct dclm_tokens tokens;
    struct request_text text;
    struct err err = {0};
    dclm_tokens_init(&tokens);
    request_text_init(&text);
    assert_int_equal(tokenizer_open(TOKENIZER_BYTES, &tok, &err), 0);
    const struct request_rules rules = {.tok = tok, .max_length = (size_t)1 << 20};
    memset(context, 'c', sizeof(context) - 1);
    context[sizeof(context) - 1] = '\0';
    set_text(&text, "", context, "xyz");
    assert_int_equal(dclm_request_build(&r, &rules, &tokens, &text, &err), 0);
    assert_int_equal(r.tokens.n, DCLM_LENGTH_MAX);
    assert_int_equal(r.n_cut, 4);
    assert_int_equal(r.first, DCLM_LENGTH_MAX - 3);
    request_text_release(&text);
    dclm_tokens_release(&tokens);
    request_release(&r);
    tokenizer_free(tok);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bytes),
        cmocka_unit_test(test_space),
        cmocka_unit_test(test_limit),
    };
    return cmocka_run_group_tests(tests, scratch_enter, scratch_leave);
}
