/* Tokenizer, shards, sources, the split and the order of training sequences. */
#include <math.h>
#include <unistd.h>

#include "base/files/file.h"
#include "base/json/json.h"
#include "base/xalloc.h"
#include "tests/unit/check.h"
#include "tests/unit/scratch.h"
#include "worker/data/philox.h"
#include "worker/data/shard.h"
#include "worker/data/source.h"
#include "worker/train/data.h"
#include "worker/train/memory.h"

static char *write_text(const char *name, const char *text, size_t len)
{
    struct err err = {0};
    char *path = path_join(scratch_folder, name);

    if (file_write_atomic(path, text, len, 0644, &err) < 0)
        fail_msg("%s", err.msg);
    return path;
}

static struct tokenizer *bytes(void)
{
    struct tokenizer *tok = NULL;
    struct err err = {0};

    assert_int_equal(tokenizer_open(TOKENIZER_BYTES, &tok, &err), 0);
    return tok;
}

/* The reference vectors of Random123 (kat_vectors, philox4x32-10). */
static void test_philox_vectors(void **state)
{
    (void)state;
    static const struct {
        uint32_t counter[4], key[2], out[4];
    } cases[] = {
        {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
        {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
         {0xffffffff, 0xffffffff},
         {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
        {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
         {0xa4093822, 0x299f31d0},
         {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CHECK_ROW("cases[%zu]", i);
        struct philox p = philox_4x32_10(cases[i].counter, cases[i].key);
        assert_memory_equal(p.word, cases[i].out, sizeof(p.word));
    }
}

static void test_permutation(void **state)
{
    (void)state;
    static const uint64_t sizes[] = {1, 2, 3, 10, 1000, 4097};

    for (size_t s = 0; s < ARRAY_LEN(sizes); s++) {
        CHECK_ROW("sizes[%zu]", s);
        uint64_t n = sizes[s], moved = 0, other = 0;
        char *seen = xcalloc(n, 1);
        for (uint64_t i = 0; i < n; i++) {
            uint64_t to = philox_permute(9, PHILOX_ORDER, 1, 2, i, n);
            assert_true(to < n && !seen[to]);
            seen[to] = 1;
            moved += to != i;
            other += to != philox_permute(9, PHILOX_ORDER, 1, 3, i, n);
        }
        if (n >= 1000)
            assert_true(moved > n * 9 / 10 && other > n * 9 / 10);
        free(seen);
    }
}

static void test_normal(void **state)
{
    (void)state;
    double sum = 0.0, squares = 0.0, fourth = 0.0, pair[2];
    const int n = 100000;

    for (int i = 0; i < n; i++) {
        struct philox words = philox_at(5, PHILOX_INIT, 0, (uint64_t)i);
        philox_normal(&words, pair);
        for (int j = 0; j < 2; j++) {
            sum += pair[j];
            squares += pair[j] * pair[j];
            fourth += pow(pair[j], 4.0);
        }
    }
    assert_true(fabs(sum / (2 * n)) < 0.01);
    assert_true(fabs(squares / (2 * n) - 1.0) < 0.02);
    assert_true(fabs(fourth / (2 * n) - 3.0) < 0.1);
}

static void test_tokenizer(void **state)
{
    (void)state;
    struct tokenizer *tok = bytes(), *none = NULL;
    struct token_list list = {0};
    struct strbuf text = STRBUF_INIT;
    struct err err = {0};
    static const uint32_t outside[] = {257};

    assert_int_equal(tokenizer_vocab(tok), 257);
    assert_int_equal(tokenizer_encode(tok, "h\xc3\xa9", 3, &list, &err), 0);
    token_list_add(&list, tokenizer_end_of_text(tok));
    assert_int_equal(list.n, 4);
    assert_int_equal(list.ids[1], 0xc3);
    assert_int_equal(list.ids[3], 256);
    assert_int_equal(tokenizer_decode(tok, list.ids, list.n, &text, &err), 0);
    assert_string_equal(text.buf, "h\xc3\xa9");
    assert_int_equal(tokenizer_decode(tok, outside, 1, &text, &err), ERR_RANGE);
    assert_int_equal(tokenizer_open("/some/tokenizer.json", &none, &err), ERR_NOT_FOUND);
    assert_null(none);
    strbuf_release(&text);
    token_list_release(&list);
    tokenizer_free(tok);
}

static void assert_document(const struct corpus *c, size_t i, const char *text)
{
    size_t at = 0;

    assert_true(i < c->n_documents);
    for (size_t j = 0; j < i; j++)
        at += c->documents[j].n_tokens;
    assert_int_equal(c->documents[i].n_tokens, strlen(text) + 1);
    assert_int_equal(c->documents[i].n_bytes, strlen(text));
    assert_true(c->documents[i].hash == document_hash(text, strlen(text)));
    for (size_t j = 0; j < strlen(text); j++)
        assert_int_equal(c->tokens[at + j], (unsigned char)text[j]);
    assert_int_equal(c->tokens[at + strlen(text)], 256);
}

static void test_sources(void **state)
{
    (void)state;
    static const char jsonl[] = "{\"text\":\"one\",\"source\":1}\n\n{\"text\":\"two\\nlines\"}";
    static const char separated[] = "three\n<|endoftext|>\r\n\nfour\n\nfour\n<|endoftext|>\n\n";
    struct tokenizer *tok = bytes();
    struct corpus c;
    struct err err = {0};
    char *sub = path_join(scratch_folder, "folder");

    corpus_init(&c);
    assert_int_equal(dir_make(sub, 0755, &err), 0);
    free(write_text("folder/a.jsonl", jsonl, sizeof(jsonl) - 1));
    free(write_text("folder/b.txt", separated, sizeof(separated) - 1));
    assert_int_equal(source_read(sub, tok, &c, &err), 0);
    assert_int_equal(c.n_documents, 4);
    assert_document(&c, 0, "one");
    assert_document(&c, 1, "two\nlines");
    assert_document(&c, 2, "three");
    assert_document(&c, 3, "four\n\nfour");
    assert_int_equal(c.n_bytes, 3 + 9 + 5 + 10);
    corpus_release(&c);
    free(sub);
    tokenizer_free(tok);
}

/* Text without separators is cut at blank lines, each piece at least SOURCE_CUT_BYTES long but the
 * last. */
static void test_unseparated_text(void **state)
{
    (void)state;
    struct strbuf text = STRBUF_INIT;
    struct tokenizer *tok = bytes();
    struct corpus c;
    struct err err = {0};

    corpus_init(&c);
    for (int i = 0; i < 1000; i++)
        strbuf_addf(&text, "paragraph number %04d\n\n", i);
    char *path = write_text("long.txt", text.buf, text.len);
    assert_int_equal(source_read(path, tok, &c, &err), 0);
    assert_int_equal(c.n_documents, (1000 * 23 + SOURCE_CUT_BYTES - 1) / (SOURCE_CUT_BYTES + 23));
    for (size_t i = 0; i + 1 < c.n_documents; i++)
        assert_in_range(c.documents[i].n_bytes, SOURCE_CUT_BYTES - 2, SOURCE_CUT_BYTES + 23);
    corpus_release(&c);
    strbuf_release(&text);
    free(path);
    tokenizer_free(tok);
}

static void test_bad_sources(void **state)
{
    (void)state;
    static const struct {
        const char *name, *text;
        int code;
        const char *says;
    } cases[] = {
        {"x.jsonl", "{\"text\":\"a\"}\n{\"text\":3}\n", ERR_SYNTAX, "line 2"},
        {"x.jsonl", "{\"text\":\"a\"\n", ERR_SYNTAX, "line 1"},
        {"x.jsonl", "[1]\n", ERR_SYNTAX, "line 1"},
        {"x.txt", "\xc0\x80", ERR_SYNTAX, "UTF-8"},
        {"x.bin", SHARD_MAGIC "and too little", ERR_CORRUPT, "shard"},
        {NULL, NULL, ERR_NOT_FOUND, "no such"},
    };
    struct tokenizer *tok = bytes();

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CHECK_ROW("%s", cases[i].says);
        struct corpus c;
        struct err err = {0};
        char *path = cases[i].name == NULL
                         ? path_join(scratch_folder, "absent")
                         : write_text(cases[i].name, cases[i].text, strlen(cases[i].text));
        corpus_init(&c);
        int rc = source_read(path, tok, &c, &err);
        if (rc != cases[i].code || strstr(err.msg, cases[i].says) == NULL)
            fail_msg("case %zu: %d %s", i, rc, err.msg);
        corpus_release(&c);
        free(path);
    }
    tokenizer_free(tok);
}

/* A byte order mark is not a part of the first document. */
static void test_byte_order_mark(void **state)
{
    (void)state;
    static const char *const files[][2] = {
        {"marked.txt", "\xef\xbb\xbfone\n"},
        {"marked.jsonl", "\xef\xbb\xbf{\"text\":\"\\none\\n\\n\"}\n"},
    };
    struct tokenizer *tok = bytes();

    for (size_t i = 0; i < ARRAY_LEN(files); i++) {
        CHECK_ROW("%s", files[i][0]);
        struct corpus c;
        struct err err = {0};
        char *path = write_text(files[i][0], files[i][1], strlen(files[i][1]));
        corpus_init(&c);
        assert_int_equal(source_read(path, tok, &c, &err), 0);
        assert_int_equal(c.n_documents, 1);
        assert_document(&c, 0, "one");
        corpus_release(&c);
        free(path);
    }
    tokenizer_free(tok);
}

static void test_shard(void **state)
{
    (void)state;
    struct tokenizer *tok = bytes();
    struct corpus c, back;
    struct err err = {0};
    struct strbuf body = STRBUF_INIT;
    char *path = path_join(scratch_folder, "s.bin");

    corpus_init(&c);
    corpus_init(&back);
    assert_int_equal(corpus_add(&c, tok, "first", 5, &err), 0);
    assert_int_equal(corpus_add(&c, tok, "second one", 10, &err), 0);
    assert_int_equal(shard_write(path, &c, tok, "stories", &err), 0);
    assert_int_equal(source_read(path, tok, &back, &err), 0);
    assert_int_equal(back.n_documents, 2);
    assert_document(&back, 0, "first");
    assert_document(&back, 1, "second one");
    assert_int_equal(file_read(path, 1 << 20, &body, &err), 0);
    assert_int_equal(body.len, SHARD_HEADER_SIZE + 2 * 24 + 17 * 2);
    /* Every cut and every flipped byte of the payload or of what names it is found. */
    for (size_t len = 0; len < body.len; len++) {
        assert_int_equal(file_write_atomic(path, body.buf, len, 0644, &err), 0);
        assert_true(shard_read(path, tok, &back, &err) < 0);
        assert_int_equal(back.n_documents, 2);
    }
    for (size_t at = 0; at < body.len; at++) {
        if (at >= 112 && at < SHARD_HEADER_SIZE)
            continue; /* the source's name is for people */
        if (at >= 44 && at < 48)
            continue; /* reserved */
        body.buf[at] ^= 1;
        assert_int_equal(file_write_atomic(path, body.buf, body.len, 0644, &err), 0);
        if (shard_read(path, tok, &back, &err) == 0)
            fail_msg("a flipped byte at %zu was not found", at);
        body.buf[at] ^= 1;
    }
    corpus_release(&c);
    corpus_release(&back);
    strbuf_release(&body);
    free(path);
    tokenizer_free(tok);
}

#define WORDS 400

/* A task over two generated sources, and the data it loads. */
struct loaded {
    struct worker_task task;
    struct train_options opt;
    struct train_data data;
};

static void load_with(struct loaded *l, uint64_t seed, const char *validation)
{
    struct err err = {0};
    struct strbuf text = STRBUF_INIT;

    for (int i = 0; i < WORDS; i++)
        strbuf_addf(&text, "{\"text\":\"document %d of the first kind\"}\n", i);
    char *a = write_text("a.jsonl", text.buf, text.len);
    strbuf_clear(&text);
    for (int i = 0; i < WORDS; i++)
        strbuf_addf(&text, "{\"text\":\"THE SECOND KIND, NUMBER %d\"}\n", i);
    char *b = write_text("b.jsonl", text.buf, text.len);
    strbuf_clear(&text);
    *l = (struct loaded){.opt = {.model = {.context = 16},
                                 .tokenizer = TOKENIZER_BYTES,
                                 .mix = {{"a", 0.75}, {"b", 0.25}},
                                 .n_mix = 2,
                                 .seed = seed,
                                 .val_fraction = 0.1}};
    if (validation != NULL) { /* b alone is read as one */
        l->opt.validation = validation;
        l->opt.n_mix = 1;
        l->opt.mix[0].weight = 1.0;
        l->opt.val_fraction = 0.0;
    }
    strbuf_addf(&text, "{\"a\":{\"path\":\"%s\"},\"b\":{\"path\":\"%s\"}}", a, b);
    assert_int_equal(json_parse(text.buf, text.len, &l->task.json, &err), 0);
    l->task.data = l->task.json;
    if (train_data_load(&l->task, &l->opt, &l->data, &err) < 0)
        fail_msg("%s", err.msg);
    strbuf_release(&text);
    free(a);
    free(b);
}

static void load(struct loaded *l, uint64_t seed)
{
    load_with(l, seed, NULL);
}

static void unload(struct loaded *l)
{
    train_data_release(&l->data);
    task_release(&l->task);
}

static void test_split(void **state)
{
    (void)state;
    struct loaded l, other;

    load(&l, 1);
    load(&other, 2);
    for (size_t s = 0; s < 2; s++) {
        const struct train_source *src = &l.data.sources[s];
        assert_int_equal(src->val.n_documents + src->train.n_documents, WORDS);
        assert_in_range(src->val.n_documents, WORDS / 20, WORDS / 5);
        /* the same documents for every seed */
        assert_int_equal(src->val.n, other.data.sources[s].val.n);
        assert_memory_equal(src->val.ids, other.data.sources[s].val.ids,
                            src->val.n * sizeof(uint32_t));
    }
    unload(&l);
    unload(&other);
}

/* All of the source is trained on, all of the other text is held out, and both are counted. */
static void test_validation_text(void **state)
{
    (void)state;
    struct loaded plain, l;

    load(&plain, 1);
    load_with(&l, 1, "b");
    const struct train_source *a = &l.data.sources[0], *all = plain.data.sources;
    assert_int_equal(l.data.n_sources, 1);
    assert_int_equal(a->val.n, 0);
    assert_int_equal(a->train.n_documents, WORDS);
    assert_int_equal(a->train.n, all[0].train.n + all[0].val.n);
    const struct train_source *b = train_data_validated(&l.data, 0);
    assert_int_equal(train_data_n_validated(&l.data), 1);
    assert_string_equal(b->name, "b");
    assert_true(b->weight == 1.0);
    assert_int_equal(b->train.n, 0);
    assert_int_equal(b->val.n_documents, WORDS);
    assert_int_equal(b->val.n, all[1].train.n + all[1].val.n);
    assert_true(digest_equal(&b->read, &all[1].read));
    assert_int_equal(train_data_n_validated(&plain.data), 2);
    assert_ptr_equal(train_data_validated(&plain.data, 1), &all[1]);
    assert_true(memory_corpus_of_data(&l.data) == memory_corpus_of_data(&plain.data));
    assert_true(memory_corpus_of_files(&l.task, &l.opt) ==
                memory_corpus_of_files(&plain.task, &plain.opt));
    unload(&l);
    unload(&plain);
}

static void test_order(void **state)
{
    (void)state;
    struct loaded l, other;
    uint32_t tokens[16], targets[16], again[16], skip[16];
    size_t of_a = 0, differ = 0;
    const size_t n = 2 * MIX_BLOCK;

    load(&l, 1);
    load(&other, 2);
    for (size_t slot = 0; slot < n; slot++) {
        train_data_sequence(&l.data, slot, tokens, targets);
        assert_memory_equal(tokens + 1, targets, 15 * sizeof(uint32_t));
        bool lower = false;
        for (size_t i = 0; i < 16; i++)
            lower = lower || (tokens[i] >= 'a' && tokens[i] <= 'z');
        of_a += lower;
        train_data_sequence(&other.data, slot, again, skip);
        differ += memcmp(tokens, again, sizeof(tokens)) != 0;
    }
    /* exact shares, block by block, whatever was asked before */
    assert_int_equal(of_a, n * 3 / 4);
    assert_true(differ > n * 9 / 10);
    train_data_sequence(&l.data, 12345, tokens, targets);
    train_data_sequence(&l.data, 3, again, skip);
    train_data_sequence(&l.data, 12345, again, skip);
    assert_memory_equal(tokens, again, sizeof(tokens));
    unload(&l);
    unload(&other);
}

/* Within an epoch every window comes up once. */
static void test_epoch_covers_everything(void **state)
{
    (void)state;
    struct loaded l;
    uint32_t tokens[16], targets[16];

    load(&l, 1);
    l.data.n_sources = 1;
    l.data.sources[0].block_part = MIX_BLOCK;
    uint64_t n = l.data.sources[0].n_windows, *sums = xcalloc(n, sizeof(uint64_t));
    assert_true(n < MIX_BLOCK);
    size_t first_epoch = 0;
    for (size_t slot = 0; slot < MIX_BLOCK; slot++) {
        uint64_t place = philox_permute(1, PHILOX_MIX, 0, 0, slot, MIX_BLOCK);
        if (place >= n)
            continue;
        train_data_sequence(&l.data, slot, tokens, targets);
        const struct token_stream *train = &l.data.sources[0].train;
        size_t offset = philox_at(1, PHILOX_OFFSET, 0, 0).word[0] % 16;
        for (uint64_t w = 0; w < n; w++)
            if (memcmp(train->ids + offset + w * 16, tokens, sizeof(tokens)) == 0)
                sums[w]++;
        first_epoch++;
    }
    assert_int_equal(first_epoch, n);
    for (uint64_t w = 0; w < n; w++)
        assert_true(sums[w] >= 1);
    free(sums);
    l.data.n_sources = 2;
    unload(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_philox_vectors),
        cmocka_unit_test(test_permutation),
        cmocka_unit_test(test_normal),
        cmocka_unit_test(test_tokenizer),
        cmocka_unit_test_setup_teardown(test_sources, scratch_enter, scratch_leave),
        cmocka_unit_test_setup_teardown(test_unseparated_text, scratch_enter, scratch_leave),
        cmocka_unit_test_setup_teardown(test_byte_order_mark, scratch_enter, scratch_leave),
        cmocka_unit_test_setup_teardown(test_bad_sources, scratch_enter, scratch_leave),
        cmocka_unit_test_setup_teardown(test_shard, scratch_enter, scratch_leave),
        cmocka_unit_test_setup_teardown(test_split, scratch_enter, scratch_leave),
        cmocka_unit_test_setup_teardown(test_validation_text, scratch_enter, scratch_leave),
        cmocka_unit_test_setup_teardown(test_order, scratch_enter, scratch_leave),
        cmocka_unit_test_setup_teardown(test_epoch_covers_everything, scratch_enter, scratch_leave),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
