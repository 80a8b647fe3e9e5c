/* Folders of transformers: out and in again with the same bits; what either side cannot say is
 * refused by name. */
#include <errno.h>
#include <math.h>
#include <unistd.h>

#include "base/files/file.h"
#include "base/json/json.h"
#include "base/xalloc.h"
#include "tests/unit/check.h"
#include "tests/unit/worker/model/formats/place.h"
#include "worker/data/tokenizer/tokenizer.h"
#include "worker/model/formats/hf.h"
#include "worker/model/formats/hf_export.h"
#include "worker/model/formats/import.h"
#include "worker/model/formats/safetensors.h"

#define MODEL "ours"
#define OUT   "theirs"

static struct err err;

/* In place of renameat2: as it is on a file system that knows its flags, or as on one that does
 * not. */
static bool without_flags;

int __real_renameat2(int from_dir, const char *from, int to_dir, const char *to, unsigned flags);
int __wrap_renameat2(int from_dir, const char *from, int to_dir, const char *to, unsigned flags);

int __wrap_renameat2(int from_dir, const char *from, int to_dir, const char *to, unsigned flags)
{
    if (without_flags && flags != 0) {
        errno = EINVAL;
        return -1;
    }
    return __real_renameat2(from_dir, from, to_dir, to, flags);
}

static int no_error(int rc)
{
    if (rc < 0)
        fail_msg("%s", err.msg);
    return rc;
}

static void remove_all(void)
{
    no_error(dir_remove(MODEL, &err));
    no_error(dir_remove(OUT, &err));
}

/* A model folder of ours with drawn weights. `spoil` may change them. */
static void make_model(const struct model_config *cfg, void (*spoil)(struct weights *w))
{
    struct weights w;
    struct tokenizer *tok = NULL;

    remove_all();
    no_error(weights_init(&w, cfg, &err));
    weights_randomise(&w, 5, 0.5);
    if (spoil != NULL)
        spoil(&w);
    no_error(tokenizer_open(TOKENIZER_BYTES, &tok, &err));
    struct store_info info = {.tokenizer_spec = xstrdup(TOKENIZER_BYTES),
                              .tokenizer = tokenizer_digest(tok)};
    no_error(store_save(MODEL, &w, &info, &err));
    store_info_release(&info);
    tokenizer_free(tok);
    weights_release(&w);
}

static int export_model(bool force)
{
    const struct hf_export job = {.model = MODEL, .out = OUT "/", .force = force};

    return hf_export(&job, &err);
}

static void load(const char *path, struct weights *w, struct store_info *info)
{
    struct import_source src;

    no_error(import_find(path, &src, &err));
    no_error(import_weights(&src, w, info, &err));
    import_source_release(&src);
}

/* Every number, the digest and the tokenizer are the same on the other side. */
static void test_there_and_back(void **state)
{
    const struct model_config shapes[] = {place_dense(), place_grouped(), place_mixture()};

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(shapes); i++) {
        CHECK_ROW("shapes[%zu]", i);
        struct weights a, b;
        struct store_info in, out;
        make_model(&shapes[i], NULL);
        no_error(export_model(false));
        load(MODEL, &a, &in);
        load(OUT, &b, &out);
        assert_int_equal(a.table.n_params, b.table.n_params);
        assert_memory_equal(a.params, b.params, a.table.n_params * sizeof(*a.params));
        assert_true(digest_equal(&in.weights, &out.weights));
        assert_true(digest_equal(&in.tokenizer, &out.tokenizer));
        assert_string_equal(out.tokenizer_spec, TOKENIZER_BYTES);
        assert_int_equal(b.cfg.context, a.cfg.context);
        assert_int_equal(b.cfg.kv_heads, a.cfg.kv_heads);
        assert_int_equal(b.cfg.top_k, a.cfg.top_k);
        assert_int_equal(b.cfg.tie_embeddings, a.cfg.tie_embeddings);
        weights_release(&a);
        weights_release(&b);
        store_info_release(&in);
        store_info_release(&out);
    }
}

/* The gate's rows come first in ours, as w1; w3 is up and w2 down. */
static void test_names_of_experts(void **state)
{
    struct model_config cfg = place_mixture();
    struct weights w;
    struct safetensors st;
    struct store_info info;
    float part[64];
    static const struct {
        const char *name;
        enum tensor_role role;
        size_t rows_before; /* in our stacked tensor, for expert 2 of layer 1 */
        size_t rows;
    } rows[] = {
        {"model.layers.1.block_sparse_moe.experts.2.w1.weight", TENSOR_EXPERT_GATE_UP, 24, 6},
        {"model.layers.1.block_sparse_moe.experts.2.w3.weight", TENSOR_EXPERT_GATE_UP, 30, 6},
        {"model.layers.1.block_sparse_moe.experts.2.w2.weight", TENSOR_EXPERT_DOWN, 16, 8},
        {"model.layers.1.block_sparse_moe.gate.weight", TENSOR_ROUTER, 0, 4},
    };

    (void)state;
    make_model(&cfg, NULL);
    no_error(export_model(false));
    load(MODEL, &w, &info);
    no_error(safetensors_open(OUT "/model.safetensors", &st, &err));
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        CHECK_ROW("%s", rows[i].name);
        const struct safetensors_entry *e = safetensors_find(&st, rows[i].name);
        const struct tensor *t = tensor_find(&w.table, rows[i].role, 1);
        assert_non_null(e);
        assert_int_equal(e->shape[0], rows[i].rows);
        assert_int_equal(e->shape[1], t->cols);
        no_error(safetensors_read(&st, e, part, &err));
        assert_memory_equal(part, w.params + t->offset + rows[i].rows_before * t->cols,
                            (size_t)e->n * sizeof(*part));
    }
    safetensors_close(&st);
    weights_release(&w);
    store_info_release(&info);
}

static void spoil_bias(struct weights *w)
{
    w->route_bias[6] = 0.25f;
}

static void spoil_number(struct weights *w)
{
    weights_at(w, TENSOR_O, 1)[3] = (float)NAN;
}

static void check_refused(const struct model_config *cfg, void (*spoil)(struct weights *w),
                          int code, const char *says)
{
    make_model(cfg, spoil);
    int rc = export_model(false);
    if (rc != code || strstr(err.msg, says) == NULL)
        fail_msg("code %d: \"%s\", expected %d \"%s\"", rc, err.msg, code, says);
    assert_int_equal(file_kind_at(OUT), FILE_ABSENT);
}

static void test_what_cannot_be_said(void **state)
{
    struct model_config cfg = place_mixture();

    (void)state;
    cfg.dense_layers = 1;
    cfg.ffn = 12;
    check_refused(&cfg, NULL, ERR_REFUSED, "dense_layers = 1");
    cfg = place_mixture();
    cfg.shared = 1;
    check_refused(&cfg, NULL, ERR_REFUSED, "shared = 1");
    cfg.renormalise = false;
    check_refused(&cfg, NULL, ERR_REFUSED, "renormalise = false");
    cfg = place_mixture();
    check_refused(&cfg, spoil_bias, ERR_REFUSED, "layer 1 chooses expert 2 with a bias of 0.25");
    check_refused(&cfg, spoil_number, ERR_CORRUPT, "model.layers.1.self_attn.o_proj.weight");
}

static void test_existing_folder(void **state)
{
    struct model_config cfg = place_dense();
    struct name_list list = {0};

    (void)state;
    make_model(&cfg, NULL);
    no_error(export_model(false));
    struct strbuf before = place_read(OUT "/model.safetensors");
    assert_int_equal(export_model(false), ERR_USAGE);
    assert_non_null(strstr(err.msg, "--force"));
    no_error(export_model(true));
    struct strbuf after = place_read(OUT "/model.safetensors");
    assert_int_equal(before.len, after.len);
    assert_memory_equal(before.buf, after.buf, before.len);
    /* What somebody else put there is not removed, not even by force. */
    place_write(OUT "/README.md", "notes", 5);
    assert_int_equal(export_model(true), ERR_USAGE);
    assert_non_null(strstr(err.msg, "holds README.md"));
    assert_int_equal(unlink(OUT "/README.md"), 0);
    /* Nor is something else replaced. */
    assert_int_equal(unlink(OUT "/config.json"), 0);
    assert_int_equal(export_model(true), ERR_USAGE);
    assert_non_null(strstr(err.msg, "not an earlier export"));
    /* Nothing is left beside the folders. */
    no_error(dir_list(".", &list, &err));
    assert_int_equal(list.n, 2);
    name_list_release(&list);
    strbuf_release(&before);
    strbuf_release(&after);
}

/* Where folders cannot be exchanged one is made all the same, and none is written over. */
static void test_plain_file_system(void **state)
{
    struct model_config cfg = place_dense();
    struct name_list list = {0};

    (void)state;
    make_model(&cfg, NULL);
    without_flags = true;
    no_error(export_model(false));
    assert_true(export_model(true) < 0);
    assert_non_null(strstr(err.msg, "rename to"));
    without_flags = false;
    no_error(dir_list(".", &list, &err));
    assert_int_equal(list.n, 2);
    name_list_release(&list);
    no_error(dir_list(OUT, &list, &err));
    assert_int_equal(list.n, 5);
    name_list_release(&list);
}

/* A tokenizer.json goes along as it is, also one that puts a blank before the text. */
static void test_tokenizer_of_its_own(void **state)
{
    static const char text[] =
        "{\"pre_tokenizer\":{\"type\":\"ByteLevel\",\"add_prefix_space\":true},"
        "\"model\":{\"vocab\":{\"a\":0,\"</s>\":1},\"merges\":[]}}";
    const struct hf_export bare = {.model = MODEL, .out = OUT, .no_tokenizer = true};
    const struct hf_export job = {.model = OUT, .out = "again", .tokenizer = "own.json"};
    struct model_config cfg = place_dense();
    struct tokenizer *tok = NULL;

    (void)state;
    make_model(&cfg, NULL);
    no_error(hf_export(&bare, &err));
    place_write("own.json", text, sizeof(text) - 1);
    no_error(tokenizer_open("own.json", &tok, &err));
    assert_true(tokenizer_adds_space(tok));
    assert_string_equal(tokenizer_file_name(tok), "tokenizer.json");
    tokenizer_free(tok);
    no_error(hf_export(&job, &err));
    struct strbuf copy = place_read("again/tokenizer.json");
    assert_string_equal(copy.buf, text);
    strbuf_release(&copy);
    no_error(dir_remove("again", &err));
    assert_int_equal(unlink("own.json"), 0);
}

/* Puts another text for a part of config.json and reads the folder. */
static void check_config(const char *from, const char *to, int code, const char *says)
{
    struct strbuf text = place_read(OUT "/config.json"), changed = STRBUF_INIT;
    struct weights w;
    const char *at = strstr(text.buf, from);

    assert_non_null(at);
    strbuf_add(&changed, text.buf, (size_t)(at - text.buf));
    strbuf_adds(&changed, to);
    strbuf_adds(&changed, at + strlen(from));
    place_write(OUT "/config.json", changed.buf, changed.len);
    int rc = hf_read_weights(OUT, &w, &err);
    if (rc != code || strstr(err.msg, says) == NULL)
        fail_msg("%s: code %d: \"%s\", expected %d \"%s\"", to, rc, err.msg, code, says);
    if (rc == 0)
        weights_release(&w);
    place_write(OUT "/config.json", text.buf, text.len);
    strbuf_release(&text);
    strbuf_release(&changed);
}

static void test_bad_configs(void **state)
{
    static const struct {
        const char *from;
        const char *to;
        int code;
        const char *says;
    } rows[] = {
        {"\"llama\"", "\"gpt2\"", ERR_REFUSED, "model_type \"gpt2\""},
        {"\"silu\"", "\"gelu\"", ERR_REFUSED, "hidden_act \"gelu\""},
        {"\"attention_bias\": false", "\"attention_bias\": true", ERR_REFUSED, "attention_bias"},
        {"\"mlp_bias\": false", "\"mlp_bias\": true", ERR_REFUSED, "mlp_bias"},
        {"\"rope_scaling\": null", "\"rope_scaling\": {}", ERR_REFUSED, "rope_scaling"},
        {"\"rope_scaling\": null", "\"rope_parameters\": {\"rope_type\": \"yarn\"}", ERR_REFUSED,
         "rope_type \"yarn\""},
        {"\"rope_theta\": 10000", "\"rope_theta\": -1", ERR_CORRUPT, "rope_theta"},
        {"\"rope_theta\": 10000", "\"rope_theta\": 0.5", ERR_CORRUPT,
         "rope_theta: must be at least 1"},
        {"\"rms_norm_eps\": ", "\"rms_norm_eps\": -", ERR_CORRUPT, "rms_norm_eps"},
        {"\"use_cache\"", "\"head_dim\": 8, \"use_cache\"", ERR_REFUSED, "head_dim 8"},
        {"\"use_cache\"", "\"quantization_config\": {}, \"use_cache\"", ERR_REFUSED,
         "quantization"},
        {"\"num_attention_heads\": 2", "\"num_attention_heads\": 3", ERR_CORRUPT,
         "config.json: heads: 3 does not divide"},
        {"\"hidden_size\": 8", "\"hidden_size\": 0", ERR_CORRUPT, "hidden_size"},
        {"\"hidden_size\"", "\"hidden\"", ERR_CORRUPT, "\"hidden_size\" is missing"},
        {"\"hidden_size\": 8", "\"hidden_size\": 16", ERR_CORRUPT,
         "model.embed_tokens.weight: shape (257, 8), config.json says (257, 16)"},
        /* Terabytes of weights that are not there: nothing of that size is asked for. */
        {"\"hidden_size\": 8", "\"hidden_size\": 131072", ERR_CORRUPT, "config.json says"},
        {"\"num_hidden_layers\": 2", "\"num_hidden_layers\": 3", ERR_CORRUPT,
         "tensor model.layers.2.input_layernorm.weight is missing"},
        {"\"num_hidden_layers\": 2", "\"num_hidden_layers\": 1", ERR_REFUSED,
         "model.layers.1.input_layernorm.weight is not part"},
        {"\"tie_word_embeddings\": true", "\"tie_word_embeddings\": false", ERR_CORRUPT,
         "lm_head.weight is missing"},
        {"{", "[", ERR_CORRUPT, "line 2"},
    };
    struct model_config cfg = place_dense();

    (void)state;
    make_model(&cfg, NULL);
    no_error(export_model(false));
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        CHECK_ROW("%s", rows[i].from);
        check_config(rows[i].from, rows[i].to, rows[i].code, rows[i].says);
    }
    check_config("\"use_cache\"", "\"sliding_window\": 4, \"use_cache\"", 0, "");
    /* A folder of theirs that happens to hold a folder called model is still theirs. */
    no_error(dir_make(OUT "/model", 0755, &err));
    struct import_source src;
    no_error(import_find(OUT, &src, &err));
    assert_int_equal(src.form, IMPORT_HF);
    import_source_release(&src);
    assert_int_equal(import_find(OUT "/model.safetensors", &src, &err), ERR_NOT_FOUND);
    assert_non_null(strstr(err.msg, "name its folder"));
}

/* As many as heads when it is null, also of a Mixtral, where an absent one is 8. */
static void test_heads_by_default(void **state)
{
    struct model_config cfg = place_mixture();
    char given[40];

    (void)state;
    cfg.kv_heads = cfg.heads;
    make_model(&cfg, NULL);
    no_error(export_model(false));
    (void)snprintf(given, sizeof(given), "\"num_key_value_heads\": %d,", cfg.heads);
    check_config(given, "\"num_key_value_heads\": null,", 0, "");
    check_config(given, "", ERR_CORRUPT, "kv_heads: 8 does not divide");
}

/* Puts another text for a part of tokenizer.json; whether it still counts as "bytes". */
static bool is_bytes_with(const char *from, const char *to)
{
    struct strbuf text = place_read(OUT "/tokenizer.json"), changed = STRBUF_INIT;
    const char *at = strstr(text.buf, from);
    struct import_source src;

    assert_non_null(at);
    strbuf_add(&changed, text.buf, (size_t)(at - text.buf));
    strbuf_adds(&changed, to);
    strbuf_adds(&changed, at + strlen(from));
    place_write(OUT "/tokenizer.json", changed.buf, changed.len);
    no_error(import_find(OUT, &src, &err));
    bool is_bytes = src.tokenizer == NULL;
    import_source_release(&src);
    place_write(OUT "/tokenizer.json", text.buf, text.len);
    strbuf_release(&text);
    strbuf_release(&changed);
    return is_bytes;
}

/* What matters is what it says, not how it is written down. */
static void test_bytes_saved_anew(void **state)
{
    struct model_config cfg = place_dense();

    (void)state;
    make_model(&cfg, NULL);
    no_error(export_model(false));
    assert_true(is_bytes_with("\"version\": \"1.0\",\n ", "\"version\":\"1.0\","));
    assert_true(is_bytes_with("\"fuse_unk\"", "\"ignore_merges\": false, \"fuse_unk\""));
    assert_false(is_bytes_with("\"lstrip\": false", "\"lstrip\": true"));
    assert_false(is_bytes_with("\"use_regex\": false", "\"use_regex\": true"));
    assert_false(is_bytes_with("\"a\": 97,", "\"a\": 300,"));
    assert_false(is_bytes_with("\"merges\": [", "\"merges\": 3, \"x\": ["));
}

/* A NaN in a file of theirs is named. */
static void test_not_finite(void **state)
{
    struct model_config cfg = place_dense();
    struct weights w;
    const uint32_t nan_bits = 0x7FC00001;

    (void)state;
    make_model(&cfg, NULL);
    no_error(export_model(false));
    struct strbuf file = place_read(OUT "/model.safetensors");
    memcpy(file.buf + file.len - sizeof(nan_bits), &nan_bits, sizeof(nan_bits));
    place_write(OUT "/model.safetensors", file.buf, file.len);
    assert_int_equal(hf_read_weights(OUT, &w, &err), ERR_CORRUPT);
    assert_non_null(strstr(err.msg, "tensor model.norm.weight: number 7 is not finite"));
    strbuf_release(&file);
}

#define INDEX OUT "/model.safetensors.index.json"

/* The file as two, with an index made of `format`. */
static void check_index(const char *index, int code, const char *says)
{
    struct weights w;

    place_write(INDEX, index, strlen(index));
    int rc = hf_read_weights(OUT, &w, &err);
    if (rc != code || strstr(err.msg, says) == NULL)
        fail_msg("%s: code %d: \"%s\", expected %d \"%s\"", index, rc, err.msg, code, says);
    if (rc == 0)
        weights_release(&w);
}

static void test_index(void **state)
{
    struct model_config cfg = place_dense();

    (void)state;
    make_model(&cfg, NULL);
    no_error(export_model(false));
    assert_int_equal(rename(OUT "/model.safetensors", OUT "/a.safetensors"), 0);
    check_index("{}", ERR_CORRUPT, "weight_map");
    check_index("{\"weight_map\":{\"x\":\"../a.safetensors\"}}", ERR_CORRUPT,
                "a file of the folder");
    check_index("{\"weight_map\":{\"x\":3}}", ERR_CORRUPT, "a file of the folder");
    check_index("{\"weight_map\":{\"x\":\"b.safetensors\"}}", ERR_NOT_FOUND, "b.safetensors");
    check_index("{\"weight_map\":{\"x\":\"a.safetensors\"}}", ERR_CORRUPT, "names 1 tensors");
    /* All of them, as transformers would write it. */
    struct safetensors st;
    struct strbuf index = STRBUF_INIT;
    no_error(safetensors_open(OUT "/a.safetensors", &st, &err));
    strbuf_adds(&index, "{\"metadata\":{\"total_size\":1},\"weight_map\":{");
    for (size_t i = 0; i < st.n; i++)
        strbuf_addf(&index, "%s\"%s\":\"a.safetensors\"", i == 0 ? "" : ",", st.entries[i].name);
    strbuf_adds(&index, "}}");
    safetensors_close(&st);
    check_index(index.buf, 0, "");
    /* A second file that holds one of them again. */
    const float again[8] = {0};
    const struct safetensors_item item = {
        .name = "model.norm.weight", .rows = ARRAY_LEN(again), .data = again};
    no_error(safetensors_write(OUT "/b.safetensors", &item, 1, &err));
    index.len -= 2; /* }} */
    strbuf_adds(&index, ",\"model.extra.weight\":\"b.safetensors\"}}");
    check_index(index.buf, ERR_CORRUPT, "model.norm.weight is in two files");
    strbuf_release(&index);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_there_and_back),
        cmocka_unit_test(test_names_of_experts),
        cmocka_unit_test(test_what_cannot_be_said),
        cmocka_unit_test(test_existing_folder),
        cmocka_unit_test(test_plain_file_system),
        cmocka_unit_test(test_tokenizer_of_its_own),
        cmocka_unit_test(test_bad_configs),
        cmocka_unit_test(test_heads_by_default),
        cmocka_unit_test(test_bytes_saved_anew),
        cmocka_unit_test(test_not_finite),
        cmocka_unit_test(test_index),
    };
    return cmocka_run_group_tests(tests, scratch_enter, scratch_leave);
}
