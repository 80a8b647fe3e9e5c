/* Every task of CORE whose file is in the shared data: the texts of all its requests (of a large
 * file those of the first items) and the token ids of the first items under GPT-2's tokenizer,
 * against the digests that tests/oracle/test_core.py takes of llm-foundry's
 * (tests/golden/core_requests.json). */
#include "base/files/file.h"
#include "base/json/json.h"
#include "base/xalloc.h"
#include "tests/unit/check.h"
#include "tests/unit/worker/eval/prompt/core_digest.h"

#define GOLDEN TEST_SOURCE_DIR "/tests/golden/core_requests.json"

#define LARGE 3000 /* items */

/* Where members' files are. */
static const char *const folders[] = {"core", "hellaswag"};

static void assert_digest(const cJSON *member, const char *key, const struct digest *d)
{
    char hex[DIGEST_HEX_SIZE];
    digest_hex(d, hex);
    if (strcmp(json_member(member, key)->valuestring, hex) != 0)
        fail_msg("%s: %s differ", member->string, key);
}

static void check_member(const cJSON *member, const char *data, const struct tokenizer *tok)
{
    const bool is_large = json_member(member, "items")->valueint > LARGE;
    struct core_digests d = {0};
    struct err err = {0};
    char *task = xasprintf("core_%s", member->string);
    int rc = ERR_NOT_FOUND;
    for (size_t i = 0; i < ARRAY_LEN(folders) && rc == ERR_NOT_FOUND; i++) {
        char *folder = path_join(data, folders[i]);
        const struct core_look look = {.task = task,
                                       .folder = folder,
                                       .tok = tok,
                                       .depth = is_large ? CORE_DEPTH_FIRST : CORE_DEPTH_TEXTS};
        rc = core_digest(&look, &d, &err);
        free(folder);
    }
    if (rc != 0)
        fail_msg("%s: %s", task, err.msg);
    assert_int_equal(d.items, json_member(member, "items")->valueint);
    assert_int_equal(d.requests, json_member(member, "requests")->valueint);
    if (!is_large)
        assert_digest(member, "texts", &d.texts);
    assert_digest(member, "first_texts", &d.first_texts);
    assert_digest(member, "first_ids", &d.first_ids);
    free(task);
}

static void test_members(void **state)
{
    (void)state;
    const char *shared = getenv("PREREGD_SHARED");
    char *data = path_join(shared == NULL ? TEST_SOURCE_DIR "/../shared" : shared, "data");
    struct tokenizer *tok = NULL;
    struct strbuf text = STRBUF_INIT;
    struct err err = {0};
    cJSON *golden = NULL;
    const cJSON *member = NULL;
    if (file_kind_at(data) != FILE_FOLDER) {
        free(data);
        skip();
    }
    char *spec = path_join(data, "tokenizers/gpt2");
    assert_int_equal(tokenizer_open(spec, &tok, &err), 0);
    assert_int_equal(file_read(GOLDEN, 1u << 20, &text, &err), 0);
    assert_int_equal(json_parse(text.buf, text.len, &golden, &err), 0);
    assert_int_equal(json_member(golden, "first")->valueint, CORE_DIGEST_FIRST);
    cJSON_ArrayForEach(member, json_member(golden, "members")) check_member(member, data, tok);
    cJSON_Delete(golden);
    strbuf_release(&text);
    tokenizer_free(tok);
    free(spec);
    free(data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_members)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
