/* llama2.c's files: checkpoints of our own making, its tokenizer, and stories260K with what is
 * known of it (tests/golden/stories260k.json). */
#include <math.h>

#include "base/files/file.h"
#include "base/json/json.h"
#include "base/xalloc.h"
#include "tests/unit/check.h"
#include "tests/unit/worker/model/formats/place.h"
#include "worker/data/tokenizer/tokenizer.h"
#include "worker/model/formats/import.h"
#include "worker/model/formats/llama2c.h"
#include "worker/model/model.h"
#include "worker/model/score.h"

#define CHECKPOINT "model.bin"
#define PIECES     "tok.bin"

static struct err err;

static int no_error(int rc)
{
    if (rc < 0)
        fail_msg("%s", err.msg);
    return rc;
}

/* dim 8, hidden 4, 2 layers, 2 heads of 4, 1 kv head, 5 words, 3 positions; number i is i. */
static void write_checkpoint(int32_t vocab, size_t extra)
{
    const int32_t head[7] = {8, 4, 2, 2, 1, vocab, 3};
    size_t words = 5, n = words * 8 + 2 * (8 + 64 + 32 + 32 + 64 + 8 + 3 * 32) + 8 + 3 * 4;
    struct strbuf file = STRBUF_INIT;

    if (vocab < 0)
        n += words * 8;
    strbuf_add(&file, head, sizeof(head));
    for (size_t i = 0; i < n + extra; i++) {
        float x = (float)i;
        strbuf_add(&file, &x, sizeof(x));
    }
    place_write(CHECKPOINT, file.buf, file.len);
    strbuf_release(&file);
}

static float first_of(const struct weights *w, enum tensor_role role, int layer)
{
    const real *at = weights_at(w, role, layer);

    assert_non_null(at);
    return at[0];
}

/* Where each tensor begins, and how the rows of a head of q are permuted. */
static void test_layout(void **state)
{
    static const float rows_of_head[8] = {0, 2, 1, 3, 4, 6, 5, 7};
    struct weights w;

    (void)state;
    write_checkpoint(5, 0);
    no_error(llama2c_read_weights(CHECKPOINT, &w, &err));
    assert_true(w.cfg.tie_embeddings);
    assert_int_equal(w.cfg.kv_heads, 1);
    assert_int_equal(w.cfg.context, 3);
    assert_true(first_of(&w, TENSOR_EMBED, -1) == 0.0f);
    assert_true(first_of(&w, TENSOR_NORM_ATTENTION, 1) == 48.0f);
    assert_true(first_of(&w, TENSOR_V, 0) == 40.0f + 16.0f + 128.0f + 64.0f);
    assert_true(first_of(&w, TENSOR_GATE, 1) == 40.0f + 16 + 128 + 64 + 64 + 128 + 16 + 32);
    assert_true(first_of(&w, TENSOR_DOWN, 0) == 40.0f + 16 + 128 + 64 + 64 + 128 + 16 + 64);
    assert_true(first_of(&w, TENSOR_UP, 0) == 40.0f + 16 + 128 + 64 + 64 + 128 + 16 + 128);
    assert_true(first_of(&w, TENSOR_NORM_FINAL, -1) == 40.0f + 16 + 128 + 64 + 64 + 128 + 16 + 192);
    const real *q = weights_at(&w, TENSOR_Q, 0);
    for (size_t r = 0; r < 8; r++)
        assert_true(q[r * 8] == 56.0f + 8.0f * rows_of_head[r]);
    weights_release(&w);
}

/* A negative vocabulary: the head is a matrix of its own, behind the rotary tables. */
static void test_own_head(void **state)
{
    struct weights w;

    (void)state;
    write_checkpoint(-5, 0);
    no_error(llama2c_read_weights(CHECKPOINT, &w, &err));
    assert_false(w.cfg.tie_embeddings);
    assert_int_equal(w.cfg.vocab, 5);
    assert_true(first_of(&w, TENSOR_HEAD, -1) ==
                40.0f + 16 + 128 + 64 + 64 + 128 + 16 + 192 + 8 + 12);
    weights_release(&w);
}

static void check_bad(int code, const char *says)
{
    struct weights w;
    int rc = llama2c_read_weights(CHECKPOINT, &w, &err);

    if (rc != code || strstr(err.msg, says) == NULL)
        fail_msg("code %d: \"%s\", expected %d \"%s\"", rc, err.msg, code, says);
}

static void test_bad_checkpoints(void **state)
{
    static const int32_t later[7] = {0x616b3432, 2, 8, 4, 2, 2, 1}, zero[7] = {0};
    static const int32_t odd[7] = {9, 4, 2, 3, 3, 5, 3}, low[7] = {8, 4, 2, 2, 1, INT32_MIN, 3};

    (void)state;
    write_checkpoint(5, 1);
    check_bad(ERR_CORRUPT, "its header says");
    write_checkpoint(-5, 0);
    struct strbuf file = place_read(CHECKPOINT);
    place_write(CHECKPOINT, file.buf, file.len - 4);
    check_bad(ERR_CORRUPT, "its header says");
    float nan = (float)NAN;
    memcpy(file.buf + 28 + 4 * 41, &nan, sizeof(nan));
    place_write(CHECKPOINT, file.buf, file.len);
    check_bad(ERR_CORRUPT, "tensor model.layers.0.input_layernorm.weight: number 1 is not finite");
    strbuf_release(&file);
    place_write(CHECKPOINT, later, sizeof(later));
    check_bad(ERR_VERSION, "version 2");
    place_write(CHECKPOINT, zero, sizeof(zero));
    check_bad(ERR_CORRUPT, "impossible header");
    place_write(CHECKPOINT, low, sizeof(low));
    check_bad(ERR_CORRUPT, "impossible header");
    place_write(CHECKPOINT, odd, sizeof(odd));
    check_bad(ERR_CORRUPT, "rotary");
    place_write(CHECKPOINT, "abc", 3);
    check_bad(ERR_CORRUPT, "3 bytes");
    assert_int_equal(remove(CHECKPOINT), 0);
    check_bad(ERR_NOT_FOUND, CHECKPOINT);
}

/* A vocabulary of the special pieces, the bytes, and these. */
static void write_pieces(const char *const *pieces, const float *scores, size_t n)
{
    struct strbuf file = STRBUF_INIT;
    const int32_t longest = 8;
    char name[8];

    strbuf_add(&file, &longest, sizeof(longest));
    for (size_t i = 0; i < 259 + n; i++) {
        float score = i < 259 ? 0.0f : scores[i - 259];
        static const char *const special[] = {"<unk>", "\n<s>\n", "\n</s>\n"};
        (void)snprintf(name, sizeof(name), "<0x%02X>", (unsigned)(i - 3));
        const char *text = i < 3 ? special[i] : i < 259 ? name : pieces[i - 259];
        int32_t len = (int32_t)strlen(text);
        strbuf_add(&file, &score, sizeof(score));
        strbuf_add(&file, &len, sizeof(len));
        strbuf_adds(&file, text);
    }
    place_write(PIECES, file.buf, file.len);
    strbuf_release(&file);
}

static void check_ids(const struct tokenizer *tok, const char *text, const uint32_t *want, size_t n)
{
    struct token_list list = {0};

    no_error(tokenizer_encode(tok, text, strlen(text), &list, &err));
    if (list.n != n || (n > 0 && memcmp(list.ids, want, n * sizeof(*want)) != 0))
        fail_msg("\"%s\": %zu tokens, the first %u", text, list.n, list.n > 0 ? list.ids[0] : 0);
    token_list_release(&list);
}

static void test_tokenizer(void **state)
{
    /* 259 onwards. "ab" before "bc" by score; of two equal the first in the text. */
    static const char *const pieces[] = {" ", "a", "b", "c", "ab", "bc", " a", "aa", "\xC3\xA9"};
    static const float scores[] = {-9, -9, -9, -9, -1, -2, -3, -2, -9};
    enum { SPACE = 259, A, B, C, AB, BC, SPACE_A, AA, E_ACUTE };
    struct tokenizer *tok = NULL;
    struct strbuf text = STRBUF_INIT;

    (void)state;
    write_pieces(pieces, scores, ARRAY_LEN(pieces));
    no_error(tokenizer_open(PIECES, &tok, &err));
    assert_int_equal(tokenizer_vocab(tok), 259 + ARRAY_LEN(pieces));
    assert_int_equal(tokenizer_end_of_text(tok), 1);
    assert_true(tokenizer_adds_space(tok));
    assert_true(tokenizer_begins_texts(tok));
    assert_true(tokenizer_losses(tok, &text)); /* what is decoded begins with a blank */
    strbuf_clear(&text);
    check_ids(tok, "", NULL, 0);
    check_ids(tok, "abc", (const uint32_t[]){SPACE, AB, C}, 3);
    check_ids(tok, "bc", (const uint32_t[]){SPACE, BC}, 2);
    check_ids(tok, "aaa", (const uint32_t[]){SPACE, AA, A}, 3);
    check_ids(tok, "a", (const uint32_t[]){SPACE_A}, 1);
    check_ids(tok, "\xC3\xA9\xC3\xA8", (const uint32_t[]){SPACE, E_ACUTE, 3 + 0xC3, 3 + 0xA8}, 4);
    /* The names of special pieces and bytes are text like any other. */
    check_ids(tok, "<", (const uint32_t[]){SPACE, 3 + '<'}, 2);
    const uint32_t ids[] = {1, SPACE_A, BC, 3 + 0xFF, E_ACUTE, 2};
    no_error(tokenizer_decode(tok, ids, ARRAY_LEN(ids), &text, &err));
    assert_string_equal(text.buf, " abc\xFF\xC3\xA9");
    strbuf_release(&text);
    tokenizer_free(tok);
}

static void test_bad_tokenizers(void **state)
{
    static const char *const pieces[] = {" "};
    static const float scores[] = {(float)NAN};
    struct tokenizer *tok = NULL;

    (void)state;
    write_pieces(pieces, scores, 1);
    assert_int_equal(tokenizer_open(PIECES, &tok, &err), ERR_CORRUPT);
    assert_non_null(strstr(err.msg, "piece 259"));
    struct strbuf file = place_read(PIECES);
    place_write(PIECES, file.buf, file.len - 3);
    assert_int_equal(tokenizer_open(PIECES, &tok, &err), ERR_CORRUPT);
    place_write(PIECES, file.buf, 4 + 13 + 13);
    assert_int_equal(tokenizer_open(PIECES, &tok, &err), ERR_CORRUPT);
    strbuf_release(&file);
}

static cJSON *golden(void)
{
    cJSON *obj = NULL;

    no_error(json_read_file(TEST_SOURCE_DIR "/tests/golden/stories260k.json", 1 << 20, &obj, &err));
    return obj;
}

static void check_list(const cJSON *obj, const char *key, const uint32_t *ids, size_t n)
{
    const cJSON *list = NULL, *v;
    size_t i = 0;

    no_error(json_get_array(obj, key, &list, &err));
    assert_int_equal(cJSON_GetArraySize(list), n);
    cJSON_ArrayForEach(v, list) assert_int_equal((uint32_t)v->valuedouble, ids[i++]);
}

/* The tokens of a text as another implementation cut it, and of the documented greedy text. */
static void test_stories_tokens(void **state)
{
    char *path = place_shared("data/models/stories260K/tok512.bin");
    struct tokenizer *tok = NULL;
    struct token_list list = {0};
    const char *text = NULL;

    (void)state;
    if (path == NULL)
        skip();
    cJSON *obj = golden();
    no_error(tokenizer_open(path, &tok, &err));
    no_error(json_get_string(obj, "text", &text, &err));
    no_error(tokenizer_encode(tok, text, strlen(text), &list, &err));
    check_list(obj, "text_ids", list.ids, list.n);
    token_list_release(&list);
    tokenizer_free(tok);
    cJSON_Delete(obj);
    free(path);
}

/* The documented greedy text, and losses and logits as PyTorch has them. */
static void test_stories_model(void **state)
{
    char *path = place_shared("data/models/stories260K");
    struct model *m = NULL;
    uint32_t ids[257] = {1};
    float logits[512];
    double want = 0.0;
    const cJSON *list = NULL, *v;
    size_t n = 1;

    (void)state;
    if (path == NULL)
        skip();
    cJSON *obj = golden();
    no_error(model_open(path, &m, &err));
    while (n < 257) {
        no_error(model_logits(m, ids, n, logits, &err));
        uint32_t top = 0;
        for (uint32_t i = 1; i < 512; i++)
            top = logits[i] > logits[top] ? i : top;
        if (n == 1) {
            size_t i = 0;
            no_error(json_get_array(obj, "first_logits", &list, &err));
            cJSON_ArrayForEach(v, list)
                assert_true(fabs((double)logits[i++] - v->valuedouble) < 1e-3);
            assert_int_equal(i, 512);
        }
        if (top == 1)
            break;
        ids[n++] = top;
    }
    check_list(obj, "greedy_ids", ids + 1, n - 1);
    struct score_request r = {.tokens = ids, .n = n, .first = 1};
    no_error(model_score_all(m, &r, 1, NULL, &err));
    assert_true(r.greedy);
    /* The same text in one generation. */
    struct score_generation g = {.prompt = ids, .n = 1, .max_tokens = 256};
    const struct score_stop stop = {.end_of_text = 1};
    no_error(model_generate_all(m, &g, 1, &stop, &err));
    check_list(obj, "greedy_ids", g.out.ids, g.out.n);
    token_list_release(&g.out);
    no_error(json_get_number(obj, "greedy_loss", &want, &err));
    assert_true(fabs(-r.sum / (double)(n - 1) - want) < 1e-4);
    model_free(m);
    cJSON_Delete(obj);
    free(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_layout),          cmocka_unit_test(test_own_head),
        cmocka_unit_test(test_bad_checkpoints), cmocka_unit_test(test_tokenizer),
        cmocka_unit_test(test_bad_tokenizers),  cmocka_unit_test(test_stories_tokens),
        cmocka_unit_test(test_stories_model),
    };
    return cmocka_run_group_tests(tests, scratch_enter, scratch_leave);
}
