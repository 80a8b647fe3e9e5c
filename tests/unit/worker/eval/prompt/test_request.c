/* Requests beyond the plain cut: rolling windows, prompts of generations, prefix tokens. */
#include <string.h>

#include "base/xalloc.h"
#include "tests/unit/check.h"
#include "worker/eval/prompt/request.h"

static struct tokenizer *tok;

static int set_up(void **state)
{
    (void)state;
    struct err err = {0};
    return tokenizer_open(TOKENIZER_BYTES, &tok, &err);
}

static int tear_down(void **state)
{
    (void)state;
    tokenizer_free(tok);
    return 0;
}

/* '@' in `tokens` stands for the prefix token. */
static void assert_request(const struct request *r, const char *tokens, size_t first)
{
    assert_int_equal(r->tokens.n, strlen(tokens));
    for (size_t i = 0; i < r->tokens.n; i++)
        assert_int_equal(r->tokens.ids[i],
                         tokens[i] == '@' ? TOKENIZER_BYTES_VOCAB - 1 : (unsigned char)tokens[i]);
    assert_int_equal(r->first, first);
}

static const struct {
    size_t max_length;
    const char *text;
    struct {
        const char *tokens;
        size_t first;
    } windows[4];
    size_t n;
} rolls[] = {
    {4, "0123456789", {{"@0123", 1}, {"34567", 1}, {"56789", 3}}, 3},
    {4, "01234567", {{"@0123", 1}, {"34567", 1}}, 2},
    {4, "0123", {{"@0123", 1}}, 1},
    {4, "01234", {{"@0123", 1}, {"01234", 4}}, 2},
    {4, "0", {{"@0", 1}}, 1},
    {1, "012", {{"@0", 1}, {"01", 1}, {"12", 1}}, 3},
    {4, "", {{NULL, 0}}, 0},
};

static void test_windows(void **state)
{
    (void)state;
    struct request_list list = {0};
    struct err err = {0};
    for (size_t i = 0; i < ARRAY_LEN(rolls); i++) {
        CHECK_ROW("%s", rolls[i].text);
        const struct request_rules rules = {.tok = tok, .max_length = rolls[i].max_length};
        list.n = 0;
        assert_int_equal(request_add_windows(&list, &rules, rolls[i].text, &err), 0);
        assert_int_equal(list.n, rolls[i].n);
        for (size_t k = 0; k < list.n; k++)
            assert_request(&list.items[k], rolls[i].windows[k].tokens, rolls[i].windows[k].first);
    }
    request_list_release(&list);
}

static void test_prompt(void **state)
{
    (void)state;
    static const struct {
        const char *prompt;
        size_t max_tokens;
        const char *tokens;
        size_t n_cut;
    } cases[] = {
        {"abc", 4, "abc", 0},
        {"abcdefgh", 4, "efgh", 4},
        {"abcdefgh", 7, "h", 7},
        {"", 4, "@", 0},
    };
    const struct request_rules rules = {.tok = tok, .max_length = 8};
    struct request r = {0};
    struct err err = {0};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CHECK_ROW("%s", cases[i].prompt);
        assert_int_equal(
            request_build_prompt(&r, &rules, cases[i].prompt, cases[i].max_tokens, &err), 0);
        assert_request(&r, cases[i].tokens, strlen(cases[i].tokens));
        assert_int_equal(r.n_cut, cases[i].n_cut);
    }
    request_release(&r);
}

/* With a tokenizer that puts its prefix token before every text: also before the continuation of an
 * empty context, unless the later rule holds. */
static void test_prefix(void **state)
{
    (void)state;
    static const struct {
        const char *context, *continuation;
        bool add_bos, one_bos;
        const char *tokens;
        size_t first;
    } cases[] = {
        {"ab", "c", true, false, "@abc", 3}, {"ab", "c", true, true, "@abc", 3},
        {"", "c", true, false, "@@c", 1},    {"", "c", true, true, "@c", 1},
        {"", "c", false, true, "@c", 1},     {"  ", "c", true, false, "@  c", 1},
    };
    struct request r = {0};
    struct err err = {0};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CHECK_ROW("%s", cases[i].tokens);
        const struct request_rules rules = {
            .tok = tok, .max_length = 8, .add_bos = cases[i].add_bos, .one_bos = cases[i].one_bos};
        assert_int_equal(request_build(&r, &rules, cases[i].context, cases[i].continuation, &err),
                         0);
        assert_request(&r, cases[i].tokens, cases[i].first);
    }
    request_release(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_windows),
        cmocka_unit_test(test_prompt),
        cmocka_unit_test(test_prefix),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
