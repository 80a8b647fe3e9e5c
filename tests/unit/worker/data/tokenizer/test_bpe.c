/* Byte-level BPE: merging against the plain definition, files read and refused, training. */
#include "base/clock.h"
#include "base/json/json.h"
#include "base/rng.h"
#include "base/xalloc.h"
#include "tests/unit/check.h"
#include "worker/data/tokenizer/bpe_train.h"
#include "worker/data/tokenizer/tokenizer_bpe.h"

/* A vocabulary of the 256 bytes and whatever merges of "a", "b", "c" the seed draws. */
static void random_model(struct bpe *b, uint64_t seed, int n_merges)
{
    struct err err = {0};
    struct strbuf text = STRBUF_INIT;
    struct rng rng;

    rng_seed(&rng, seed);
    bpe_init(b);
    for (uint32_t i = 0; i < 3; i++)
        assert_int_equal(bpe_add_token(b, &"abc"[i], 1, i, &err), 0);
    for (int i = 0; i < n_merges; i++) {
        uint32_t left = (uint32_t)rng_below(&rng, b->n_ids);
        uint32_t right = (uint32_t)rng_below(&rng, b->n_ids);
        size_t n_left = 0, n_right = 0;
        const char *l = bpe_text(b, left, &n_left), *r = bpe_text(b, right, &n_right);
        char *left_text = xstrndup(l, n_left), *right_text = xstrndup(r, n_right);
        strbuf_clear(&text);
        strbuf_add(&text, left_text, n_left);
        strbuf_add(&text, right_text, n_right);
        if (text.len < 12 && bpe_find(b, text.buf, text.len) == BPE_NONE)
            assert_int_equal(bpe_add_token(b, text.buf, text.len, b->n_ids, &err), 0);
        if (text.len < 12)
            assert_int_equal(bpe_add_merge(b, left_text, n_left, right_text, n_right, &err), 0);
        free(left_text);
        free(right_text);
    }
    bpe_finish(b);
    strbuf_release(&text);
}

/* The definition: the pair of lowest rank, leftmost, until there is none. */
static size_t merge_plainly(const struct bpe *b, uint32_t *symbols, size_t n)
{
    for (;;) {
        size_t best = n;
        uint32_t rank = BPE_NONE;
        for (size_t i = 0; i + 1 < n; i++) {
            uint32_t r = bpe_rank(b, symbols[i], symbols[i + 1]);
            if (r < rank) {
                rank = r;
                best = i;
            }
        }
        if (rank == BPE_NONE)
            return n;
        symbols[best] = b->merges[rank].id;
        memmove(symbols + best + 1, symbols + best + 2, (n - best - 2) * sizeof(*symbols));
        n--;
    }
}

static void test_merging(void **state)
{
    (void)state;
    struct rng rng;

    rng_seed(&rng, 5);
    for (int m = 0; m < 60; m++) {
        struct bpe b;
        random_model(&b, (uint64_t)m, 5 + m);
        for (int i = 0; i < 60; i++) {
            char text[200];
            uint32_t plain[200];
            struct token_list list = {0};
            struct err err = {0};
            size_t n = 1 + rng_below(&rng, i % 2 == 0 ? 10 : sizeof(text));
            for (size_t j = 0; j < n; j++) {
                plain[j] = (uint32_t)rng_below(&rng, 3);
                text[j] = "abc"[plain[j]];
            }
            size_t n_plain = merge_plainly(&b, plain, n);
            assert_int_equal(bpe_encode(&b, text, n, &list, &err), 0);
            assert_int_equal(list.n, n_plain);
            assert_memory_equal(list.ids, plain, n_plain * sizeof(*plain));
            token_list_release(&list);
        }
        bpe_release(&b);
    }
}

static void open_text(struct bpe_tokenizer *t, const char *quoted, struct err *err, int *rc)
{
    char *text = xstrdup(quoted);

    for (char *p = text; *p != '\0'; p++)
        if (*p == '\'')
            *p = '"';
    bpe_tokenizer_init(t);
    *rc = bpe_read_json(t, text, strlen(text), err);
    if (*rc == 0)
        *rc = bpe_tokenizer_finish(t, err);
    free(text);
}

#define PLAIN "'pre_tokenizer':{'type':'ByteLevel','add_prefix_space':false}"
#define VOCAB                                                                                      \
    "'vocab':{'a':0,'b':1,'ab':2,'</s>':3,'\xc4\xa0':4,'\xc4\xa0"                                  \
    "ab':5}"
#define MERGES    "'merges':['a b',['\xc4\xa0','ab']]"
#define MODEL     "'model':{'type':'BPE'," VOCAB "," MERGES "}"
#define END_ADDED "'added_tokens':[{'id':3,'content':'</s>','special':true}]"

static void assert_ids(const struct bpe_tokenizer *t, const char *text, size_t n,
                       const uint32_t *ids)
{
    struct token_list list = {0};
    struct err err = {0};

    assert_int_equal(bpe_tokenizer_encode(t, text, strlen(text), &list, &err), 0);
    if (list.n != n || memcmp(list.ids, ids, n * sizeof(*ids)) != 0)
        fail_msg("%s: %zu ids, %u %u %u", text, list.n, list.n > 0 ? list.ids[0] : 0,
                 list.n > 1 ? list.ids[1] : 0, list.n > 2 ? list.ids[2] : 0);
    token_list_release(&list);
}

#define IDS(...)                                                                                   \
    sizeof((const uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t), (const uint32_t[])                 \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }

static void test_encoding(void **state)
{
    (void)state;
    struct bpe_tokenizer t;
    struct err err = {0};
    struct strbuf text = STRBUF_INIT;
    int rc;

    open_text(&t, "{" PLAIN "," MODEL "," END_ADDED "}", &err, &rc);
    assert_int_equal(rc, 0);
    assert_int_equal(t.vocab, 6);
    assert_int_equal(t.end_of_text, 3);
    assert_ids(&t, "ab ab", IDS(2, 5));
    assert_ids(&t, "aab</s>b", IDS(0, 2, 3, 1));
    assert_ids(&t, "xaxb", IDS(2)); /* without a token for x it is as if it were not there */
    assert_true(bpe_tokenizer_losses(&t, &text));
    assert_non_null(strstr(text.buf, "253 of 256"));
    bpe_tokenizer_release(&t);
    open_text(&t, "{'pre_tokenizer':{'type':'ByteLevel','add_prefix_space':true}," MODEL "}", &err,
              &rc);
    assert_int_equal(rc, 0);
    assert_ids(&t, "ab", IDS(5));
    bpe_tokenizer_release(&t);
    open_text(&t,
              "{" PLAIN ",'model':{'unk_token':'b','fuse_unk':true," VOCAB "," MERGES "}," END_ADDED
              "}",
              &err, &rc);
    assert_int_equal(rc, 0);
    assert_ids(&t, "axx", IDS(2)); /* the unknown is b, and a b is a pair */
    assert_ids(&t, "xx", IDS(1));
    bpe_tokenizer_release(&t);
    strbuf_release(&text);
}

static void test_added_tokens(void **state)
{
    (void)state;
    struct bpe_tokenizer t;
    struct err err = {0};
    int rc;

    open_text(&t,
              "{" PLAIN "," MODEL ",'added_tokens':[{'id':3,'content':'</s>'},"
              "{'id':6,'content':'<l>','lstrip':true},{'id':7,'content':'<r>','rstrip':true},"
              "{'id':8,'content':'ba','normalized':true},{'id':9,'content':'<l>b'}]}",
              &err, &rc);
    if (rc < 0)
        fail_msg("%s", err.msg);
    assert_int_equal(t.vocab, 10);
    assert_ids(&t, "a \n<l>a", IDS(0, 6, 0));
    assert_ids(&t, "<r> \xe3\x80\x80 ab", IDS(7, 2));
    assert_ids(&t, "a<l>ba", IDS(0, 9, 0)); /* the longer one, and the first round first */
    assert_ids(&t, "aba</s>", IDS(0, 8, 3));
    bpe_tokenizer_release(&t);
}

static void test_refusals(void **state)
{
    (void)state;
    static const struct {
        const char *json;
        int code;
        const char *says;
    } cases[] = {
        {"[]", ERR_SYNTAX, "model"},
        {"{", ERR_SYNTAX, "line 1"},
        {"{" PLAIN "," MODEL ",'normalizer':{'type':'Sequence','normalizers':[{'type':'NFKC'},{'"
         "type':'Strip'}]}}",
         ERR_REFUSED, "NFKC + Strip"},
        {"{" PLAIN "," MODEL ",'decoder':{'type':'Metaspace'}}", ERR_REFUSED, "decoder Metaspace"},
        {"{" PLAIN "," MODEL ",'post_processor':{'type':'TemplateProcessing'}}", ERR_REFUSED,
         "TemplateProcessing"},
        {"{'pre_tokenizer':null," MODEL "}", ERR_REFUSED, "byte-level"},
        {"{'pre_tokenizer':{'type':'Whitespace'}," MODEL "}", ERR_REFUSED, "Whitespace"},
        {"{'pre_tokenizer':{'type':'ByteLevel'}," MODEL "}", ERR_SYNTAX, "add_prefix_space"},
        {"{'pre_tokenizer':{'type':'Split','pattern':{'Regex':'a'},'behavior':'Removed'}," MODEL
         "}",
         ERR_REFUSED, "Removed"},
        {"{'pre_tokenizer':{'type':'Split','pattern':{'String':'a'},'behavior':'Isolated'}," MODEL
         "}",
         ERR_REFUSED, "Regex"},
        {"{" PLAIN ",'model':{'type':'Unigram'}}", ERR_REFUSED, "Unigram"},
        {"{" PLAIN ",'model':{'dropout':0.1," VOCAB "," MERGES "}}", ERR_REFUSED, "dropout"},
        {"{" PLAIN ",'model':{'byte_fallback':true," VOCAB "," MERGES "}}", ERR_REFUSED,
         "byte_fallback"},
        {"{" PLAIN ",'model':{" VOCAB ",'merges':['a x']}}", ERR_SYNTAX, "merges[0]: \"x\""},
        {"{" PLAIN ",'model':{" VOCAB ",'merges':['b a']}}", ERR_SYNTAX, "\"ba\""},
        {"{" PLAIN ",'model':{" VOCAB ",'merges':['a b c']}}", ERR_SYNTAX, "blank between"},
        {"{" PLAIN ",'model':{'vocab':{'a':0,'b':0},'merges':[]}}", ERR_SYNTAX, "another token"},
        {"{" PLAIN ",'model':{'vocab':{'a':-1},'merges':[]}}", ERR_SYNTAX, "id from 0"},
        {"{" PLAIN ",'model':{'vocab':{'a':0},'merges':[]}}", ERR_REFUSED, "end-of-text"},
        {"{" PLAIN ",'model':{'unk_token':'z'," VOCAB "," MERGES "}}", ERR_SYNTAX, "unk_token"},
        {"{" PLAIN "," MODEL ",'added_tokens':[{'id':9,'content':'x'}]}", ERR_SYNTAX, "expected 6"},
        {"{" PLAIN "," MODEL ",'added_tokens':[{'id':6,'content':'x','single_word':true}]}",
         ERR_REFUSED, "single_word"},
        {"{" PLAIN "," MODEL ",'added_tokens':[{'id':6,'content':'x'},{'id':7,'content':'x'}]}",
         ERR_SYNTAX, "\"x\" is duplicated"},
        {"{" PLAIN ",'model':{'vocab':{'a':0,'</s>':2},'merges':[]},'added_tokens':[{'id':2,"
         "'content':'x'},{'id':2,'content':'</s>'}]}",
         ERR_SYNTAX, "\"x\": id 2 belongs to another token"},
        {"{" PLAIN ",'model':{'vocab':{'a':0,'</s>':3},'merges':[]},'added_tokens':[{'id':2,"
         "'content':'x'},{'id':3,'content':'y'}]}",
         ERR_SYNTAX, "\"y\": id 3 belongs to another token"},
        {"{" PLAIN "," MODEL ",'normalizer':'NFC'}", ERR_REFUSED, "normalizer"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct bpe_tokenizer t;
        struct err err = {0};
        int rc;
        open_text(&t, cases[i].json, &err, &rc);
        if (rc != cases[i].code || strstr(err.msg, cases[i].says) == NULL)
            fail_msg("%s: %d %s", cases[i].json, rc, err.msg);
        bpe_tokenizer_release(&t);
    }
}

/* Whatever changes the ids changes the digest; how the file is written does not. */
static void test_digest(void **state)
{
    (void)state;
#define SOME_VOCAB "'vocab':{'a':0,'b':1,'ab':2,'aa':3,'aab':4,'bb':5,'</s>':6}"
    static const char *const different[] = {
        "{" PLAIN ",'model':{" SOME_VOCAB ",'merges':['a b']}}",
        "{" PLAIN ",'model':{" SOME_VOCAB ",'merges':['aa b']}}",
        "{" PLAIN ",'model':{" SOME_VOCAB ",'merges':['a a']}}",
        "{" PLAIN ",'model':{" SOME_VOCAB ",'merges':['a b','b b']}}",
        "{" PLAIN ",'model':{" SOME_VOCAB ",'merges':['b b','a b']}}",
        "{" PLAIN ",'model':{" SOME_VOCAB ",'merges':['a b'],'unk_token':'a'}}",
        "{" PLAIN ",'model':{" SOME_VOCAB ",'merges':['a b'],'ignore_merges':true}}",
        "{'pre_tokenizer':{'type':'ByteLevel','add_prefix_space':true},'model':{" SOME_VOCAB
        ",'merges':['a b']}}",
        "{'pre_tokenizer':{'type':'ByteLevel','add_prefix_space':false,'use_regex':false},"
        "'model':{" SOME_VOCAB ",'merges':['a b']}}",
        "{" PLAIN ",'model':{" SOME_VOCAB ",'merges':['a b']},'added_tokens':[{'id':6,"
        "'content':'</s>'}]}",
        "{" PLAIN ",'model':{" SOME_VOCAB ",'merges':['a b']},'added_tokens':[{'id':6,"
        "'content':'</s>','rstrip':true}]}",
    };
    struct digest digests[ARRAY_LEN(different)];
    struct bpe_tokenizer t;
    struct err err = {0};
    int rc;

    for (size_t i = 0; i < ARRAY_LEN(different); i++) {
        open_text(&t, different[i], &err, &rc);
        if (rc < 0)
            fail_msg("%s", err.msg);
        digests[i] = bpe_tokenizer_digest(&t);
        for (size_t j = 0; j < i; j++)
            if (digest_equal(&digests[i], &digests[j]))
                fail_msg("%s\n%s", different[i], different[j]);
        bpe_tokenizer_release(&t);
    }
    open_text(&t,
              "{'model':{'merges':[['a','b']]," SOME_VOCAB "},'truncation':{'max_length':9}," PLAIN
              "}",
              &err, &rc);
    assert_int_equal(rc, 0);
    struct digest same = bpe_tokenizer_digest(&t);
    assert_true(digest_equal(&same, &digests[0]));
    bpe_tokenizer_release(&t);
}

static void test_merges_txt(void **state)
{
    (void)state;
    static const char vocab[] = "{\"a\":0,\"b\":1,\"ab\":2,\"<|endoftext|>\":3}";
    static const struct {
        const char *merges, *says; /* NULL: fine */
    } cases[] = {
        {"#version: 0.2\na b\r\n", NULL},
        {"a b", NULL},
        {"", NULL},
        {"a b\n\n", "line 2"},
        {"#version\na  b\n", "line 2"},
        {"a b\nb a\n", "line 2: \"ba\""},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct bpe_tokenizer t;
        struct err err = {0};
        bpe_tokenizer_init(&t);
        int rc = bpe_read_pair(&t, vocab, sizeof(vocab) - 1, cases[i].merges,
                               strlen(cases[i].merges), &err);
        if ((rc == 0) != (cases[i].says == NULL) ||
            (rc < 0 && strstr(err.msg, cases[i].says) == NULL))
            fail_msg("case %zu: %d %s", i, rc, err.msg);
        bpe_tokenizer_release(&t);
    }
}

static void train_on(struct bpe_tokenizer *t, const char *const *documents, size_t n,
                     uint32_t vocab)
{
    struct byte_map counts;
    struct split split;
    struct split_scratch scratch = {0};
    struct err err = {0};

    byte_map_init(&counts);
    split_init(&split);
    assert_int_equal(split_add_pattern(&split, SPLIT_GPT2, &err), 0);
    for (size_t i = 0; i < n; i++)
        assert_int_equal(
            bpe_count_document(&counts, &split, &scratch, documents[i], strlen(documents[i]), &err),
            0);
    bpe_tokenizer_init(t);
    assert_int_equal(bpe_train(&counts, vocab, BPE_TRAIN_MIN_COUNT, NULL, t, &err), 0);
    split_scratch_release(&scratch);
    split_release(&split);
    byte_map_release(&counts);
}

static void assert_token(const struct bpe_tokenizer *t, uint32_t id, const char *text)
{
    size_t n = 0;
    const char *found = bpe_text(&t->bpe, id, &n);

    assert_int_equal(n, strlen(text));
    assert_memory_equal(found, text, n);
}

static void test_training(void **state)
{
    (void)state;
    /* ab comes 5 times; then cd, dc and ab-ab tie at 2, and the lowest ids win. */
    static const char *const documents[] = {"abab", "abab", "ab", "dcd", "cdc"};
    struct bpe_tokenizer t, again;
    struct strbuf why = STRBUF_INIT;
    static const char *const reversed[] = {"cdc", "dcd", "ab", "abab", "abab"};

    train_on(&t, documents, ARRAY_LEN(documents), 300);
    assert_token(&t, 0, "<|endoftext|>");
    assert_token(&t, 1, "!");
    assert_token(&t, 256, "\xc5\x83"); /* byte 0xad, whose character is the last */
    assert_token(&t, 257, "ab");
    assert_token(&t, 258, "cd");
    assert_token(&t, 259, "abab");
    assert_int_equal(t.vocab, 260); /* nothing else comes twice */
    assert_false(bpe_tokenizer_losses(&t, &why));
    train_on(&again, reversed, ARRAY_LEN(reversed), 300);
    struct digest a = bpe_tokenizer_digest(&t), b = bpe_tokenizer_digest(&again);
    assert_true(digest_equal(&a, &b));
    bpe_tokenizer_release(&again);
    bpe_tokenizer_release(&t);
}

/* What is trained loses nothing, whatever the bytes; and is the same after being written. */
static void test_round_trip(void **state)
{
    (void)state;
    static const char *const documents[] = {"the cat and the dog and the end", "the the thea"};
    struct bpe_tokenizer t, again;
    struct strbuf json = STRBUF_INIT;
    struct err err = {0};
    struct rng rng;

    train_on(&t, documents, ARRAY_LEN(documents), 280);
    cJSON *obj = bpe_write_json(&t);
    assert_int_equal(json_pretty(obj, &json, &err), 0);
    cJSON_Delete(obj);
    bpe_tokenizer_init(&again);
    assert_int_equal(bpe_read_json(&again, json.buf, json.len, &err), 0);
    assert_int_equal(bpe_tokenizer_finish(&again, &err), 0);
    struct digest a = bpe_tokenizer_digest(&t), b = bpe_tokenizer_digest(&again);
    assert_true(digest_equal(&a, &b));
    rng_seed(&rng, 3);
    for (int i = 0; i < 5000; i++) {
        static const char *const bits[] = {"the", " cat", "<|endoftext|>", "\xc3\xa9", " "};
        struct strbuf text = STRBUF_INIT, back = STRBUF_INIT;
        struct token_list list = {0};
        for (uint64_t n = rng_below(&rng, 20); n > 0; n--) {
            uint64_t pick = rng_below(&rng, 8);
            if (pick < ARRAY_LEN(bits))
                strbuf_adds(&text, bits[pick]);
            else
                strbuf_addc(&text, (char)rng_below(&rng, 256));
        }
        assert_int_equal(bpe_tokenizer_encode(&again, text.buf, text.len, &list, &err), 0);
        for (size_t j = 0; j < list.n; j++)
            bpe_tokenizer_decode(&again, list.ids[j], &back);
        assert_int_equal(back.len, text.len);
        assert_memory_equal(back.buf, text.buf, text.len);
        token_list_release(&list);
        strbuf_release(&text);
        strbuf_release(&back);
    }
    strbuf_release(&json);
    bpe_tokenizer_release(&t);
    bpe_tokenizer_release(&again);
}

/* One pretoken of a million bytes is no matter of minutes. */
static void test_long_run(void **state)
{
    (void)state;
    const size_t n = 1000000;
    static const char *const documents[] = {"aaaaaaaaaaaaaaaa", "aaaaaaaaaaaaaaaa", "aaa", "aaa"};
    struct bpe_tokenizer t;
    struct token_list list = {0};
    struct err err = {0};
    char *text = xmalloc(n);

    train_on(&t, documents, ARRAY_LEN(documents), 262);
    memset(text, 'a', n);
    int64_t start = clock_mono_ns();
    assert_int_equal(bpe_tokenizer_encode(&t, text, n, &list, &err), 0);
    assert_true(clock_mono_ns() - start < (int64_t)5 * 1000 * 1000 * 1000);
    assert_true(list.n < n / 8);
    token_list_release(&list);
    bpe_tokenizer_release(&t);
    free(text);
}

/* Reading a file of very many added tokens, and text of what they begin with, is no matter of
 * minutes either. */
static void test_many_added(void **state)
{
    (void)state;
    const uint32_t n = 200000;
    struct bpe_tokenizer t;
    struct strbuf json = STRBUF_INIT, text = STRBUF_INIT;
    struct token_list list = {0};
    struct err err = {0};
    int rc;

    strbuf_adds(&json, "{" PLAIN "," MODEL ",'added_tokens':[");
    for (uint32_t i = 0; i < n; i++)
        strbuf_addf(&json, "%s{'id':%u,'content':'<%u>'}", i == 0 ? "" : ",", 6 + i, i);
    strbuf_adds(&json, "]}");
    for (uint32_t i = 0; i < 50000; i++)
        strbuf_addf(&text, "<<%u>", i);
    int64_t start = clock_mono_ns();
    open_text(&t, json.buf, &err, &rc);
    assert_int_equal(rc, 0);
    assert_int_equal(bpe_tokenizer_encode(&t, text.buf, text.len, &list, &err), 0);
    assert_true(clock_mono_ns() - start < (int64_t)10 * 1000 * 1000 * 1000);
    assert_int_equal(list.n, 50000); /* a lone < has no token */
    assert_int_equal(list.ids[49999], 6 + 49999);
    strbuf_clear(&text);
    bpe_tokenizer_decode(&t, 6 + n - 1, &text);
    assert_string_equal(text.buf, "<199999>");
    token_list_release(&list);
    bpe_tokenizer_release(&t);
    strbuf_release(&json);
    strbuf_release(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_merging),      cmocka_unit_test(test_encoding),
        cmocka_unit_test(test_added_tokens), cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_digest),       cmocka_unit_test(test_merges_txt),
        cmocka_unit_test(test_training),     cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_long_run),     cmocka_unit_test(test_many_added),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
