/* Pretokenisation: the byte-level alphabet, GPT-2's scanner against PCRE2, translated patterns. */
#include "base/rng.h"
#include "base/text.h"
#include "base/xalloc.h"
#include "tests/unit/check.h"
#include "worker/data/tokenizer/bytelevel.h"
#include "worker/data/tokenizer/split.h"

/* Writes the pieces with a bar between. */
struct recorder {
    struct split_sink sink;
    struct strbuf text;
};

static int record(struct split_sink *sink, const char *text, size_t len, struct err *err)
{
    struct recorder *r = (struct recorder *)sink;

    (void)err;
    assert_true(len > 0);
    if (r->text.len > 0)
        strbuf_addc(&r->text, '|');
    strbuf_add(&r->text, text, len);
    return 0;
}

static void pieces(const struct split *s, const char *text, size_t len, struct strbuf *out)
{
    struct recorder r = {.sink = {.piece = record}, .text = STRBUF_INIT};
    struct split_scratch scratch = {0};
    struct err err = {0};

    if (split_run(s, &scratch, text, len, &r.sink, &err) < 0)
        fail_msg("%s", err.msg);
    *out = r.text;
    split_scratch_release(&scratch);
}

static void make(struct split *s, const char *pattern)
{
    struct err err = {0};

    split_init(s);
    if (split_add_pattern(s, pattern, &err) < 0)
        fail_msg("%s: %s", pattern, err.msg);
}

static void test_bytelevel(void **state)
{
    (void)state;
    unsigned char all[256];
    struct strbuf text = STRBUF_INIT, back = STRBUF_INIT;

    for (unsigned i = 0; i < 256; i++)
        all[i] = (unsigned char)i;
    bytelevel_write(all, sizeof(all), &text);
    assert_true(text_is_utf8(text.buf, text.len));
    assert_true(bytelevel_read(text.buf, text.len, &back));
    assert_int_equal(back.len, 256);
    assert_memory_equal(back.buf, all, 256);
    strbuf_clear(&text);
    bytelevel_write(" a\n\x7f\xad\xff", 6, &text);
    assert_string_equal(text.buf, "\xc4\xa0"
                                  "a\xc4\x8a\xc4\xa1\xc5\x83\xc3\xbf");
    strbuf_clear(&back);
    assert_false(bytelevel_read("a b", 3, &back));      /* a blank has a character of its own */
    assert_false(bytelevel_read("\xc5\x84", 2, &back)); /* U+0144, behind the last */
    assert_int_equal(back.len, 0);
    strbuf_release(&text);
    strbuf_release(&back);
}

static void test_gpt2_pieces(void **state)
{
    (void)state;
    static const struct {
        const char *text, *pieces;
    } cases[] = {
        {"Hello world", "Hello| world"},
        {"it's I'll we've 'tis d'accord X'S", "it|'s| I|'ll| we|'ve| '|tis| d|'|accord| X|'|S"},
        {"a  b   c", "a| | b|  | c"},
        {"a\n\nb \n c", "a|\n|\n|b| \n| c"},
        {"x  ", "x|  "},
        {"  ", "  "},
        {"abc123 45,6!? ...", "abc|123| 45|,|6|!?| ..."},
        {"\t\tx", "\t|\t|x"},
        {"caf\xc3\xa9 \xe4\xbd\xa0\xe5\xa5\xbd", "caf\xc3\xa9| \xe4\xbd\xa0\xe5\xa5\xbd"},
        {"a \xc2\xa0 b", "a| \xc2\xa0| b"},
        {"a\xe1\xa0\x8e"
         "b",
         "a|\xe1\xa0\x8e|b"}, /* U+180E is no white space */
        {"a\x80\xff b\xc3", "a|\x80\xff| b|\xc3"},
    };
    struct split s;

    make(&s, SPLIT_GPT2);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CHECK_ROW("cases[%zu]", i);
        struct strbuf out;
        pieces(&s, cases[i].text, strlen(cases[i].text), &out);
        assert_string_equal(out.buf, cases[i].pieces);
        strbuf_release(&out);
    }
    split_release(&s);
}

static void random_text(struct rng *rng, struct strbuf *out)
{
    static const char *const bits[] = {
        " ",  " ",    "  ",       "\n",           "\t",      "a",  "Z", "word", "7",
        "42", "'",    "'s",       "'ll",          "'re",     "'v", ".", "!?",   "\x01",
        "\v", "\xff", "\xc3\xa9", "\xe4\xbd\xa0", "\xc2\xa0"};
    strbuf_clear(out);
    for (uint64_t n = rng_below(rng, 14); n > 0; n--)
        strbuf_adds(out, bits[rng_below(rng, ARRAY_LEN(bits))]);
}

/* The scanner decides nothing otherwise than the pattern does. */
static void test_scanner_is_the_pattern(void **state)
{
    (void)state;
    struct split scanner, plain;
    struct strbuf text = STRBUF_INIT;
    struct rng rng;

    make(&scanner, SPLIT_GPT2);
    make(&plain, SPLIT_GPT2);
    split_disable_scanner(&plain);
    rng_seed(&rng, 11);
    for (int i = 0; i < 100000; i++) {
        struct strbuf a, b;
        random_text(&rng, &text);
        pieces(&scanner, text.buf, text.len, &a);
        pieces(&plain, text.buf, text.len, &b);
        if (a.len != b.len || memcmp(a.buf, b.buf, a.len) != 0)
            fail_msg("scanner %s\npattern %s", a.buf, b.buf);
        strbuf_release(&a);
        strbuf_release(&b);
    }
    strbuf_release(&text);
    split_release(&scanner);
    split_release(&plain);
}

static void test_chain(void **state)
{
    (void)state;
    struct split s;
    struct strbuf out;
    struct err err = {0};

    make(&s, "\\p{N}{1,3}");
    assert_int_equal(split_add_pattern(&s, SPLIT_GPT2, &err), 0);
    pieces(&s, "a 12345 b", 9, &out);
    assert_string_equal(out.buf, "a| |123|45| b");
    strbuf_release(&out);
    split_release(&s);
    /* without a stage: everything is one piece, but for what is no UTF-8 */
    split_init(&s);
    pieces(&s, "a b\xff", 4, &out);
    assert_string_equal(out.buf, "a b|\xff");
    strbuf_release(&out);
}

static void test_translation(void **state)
{
    (void)state;
    static const struct {
        const char *pattern, *pcre; /* NULL: refused */
    } cases[] = {
        {"\\s+(?!\\S)", "\\p{White_Space}+(?!\\P{White_Space})"},
        {"[^\\s\\p{L}]?+", "[^\\p{White_Space}\\p{L}]?+"},
        {"\\p{Han}|\\p{^Lu}|\\P{Nd}", "\\p{sc:Han}|\\p{^Lu}|\\P{Nd}"},
        {"(?i:'s)\\d{1,3}\\r\\n\\.", "(?i:'s)\\d{1,3}\\r\\n\\."},
        {"a{2,}", "a{2,}"},
        {"\\w+", NULL},
        {"\\b", NULL},
        {"a{1,3}+", NULL},
        {"^a", NULL},
        {"a$", NULL},
        {"(?<name>a)", NULL},
        {"(*COMMIT)a", NULL},
        {"[a&&b]", NULL},
        {"[[:alpha:]]", NULL},
        {"[]a]", NULL},
        {"[a", NULL},
        {"\\pL", NULL},
        {"\\p{X}", NULL},
        {"a{x", NULL},
        {"\\", NULL},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CHECK_ROW("cases[%zu]", i);
        struct strbuf out = STRBUF_INIT;
        struct err err = {0};
        int rc = split_translate(cases[i].pattern, &out, &err);
        if ((rc < 0) != (cases[i].pcre == NULL))
            fail_msg("%s: %d %s", cases[i].pattern, rc, err.msg);
        if (rc == 0)
            assert_string_equal(out.buf, cases[i].pcre);
        strbuf_release(&out);
    }
}

static void test_bad_patterns(void **state)
{
    (void)state;
    static const struct {
        const char *pattern;
        int code;
        const char *says;
    } cases[] = {
        {"a*", ERR_REFUSED, "empty string"},
        {"(a", ERR_SYNTAX, "character"},
        {"\\p{Nowhere}", ERR_SYNTAX, "character"},
        {"\xff", ERR_SYNTAX, "UTF-8"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct split s;
        struct err err = {0};
        split_init(&s);
        int rc = split_add_pattern(&s, cases[i].pattern, &err);
        if (rc != cases[i].code || strstr(err.msg, cases[i].says) == NULL)
            fail_msg("%s: %d %s", cases[i].pattern, rc, err.msg);
        split_release(&s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bytelevel),   cmocka_unit_test(test_gpt2_pieces),
        cmocka_unit_test(test_chain),       cmocka_unit_test(test_scanner_is_the_pattern),
        cmocka_unit_test(test_translation), cmocka_unit_test(test_bad_patterns),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
