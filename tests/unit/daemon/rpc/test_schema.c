/* The envelope of the RPC: what is taken, what is refused, what is written. */
#include <string.h>

#include "base/json/json.h"
#include "base/xalloc.h"
#include "daemon/rpc/schema.h"
#include "tests/unit/check.h"

struct sample {
    const char *line;
    int code; /* 0: good */
    int64_t id;
    enum rpc_method method;
};

static const struct sample samples[] = {
    {"{\"schema\":1,\"id\":7,\"method\":\"status\",\"params\":{}}", 0, 7, RPC_STATUS},
    {"{\"schema\":1,\"method\":\"ping\"}", 0, 0, RPC_PING},
    {"{\"schema\":1,\"id\":1,\"method\":\"ping\",\"extra\":[1]}", 0, 1, RPC_PING},
    {"{\"schema\":2,\"id\":3,\"method\":\"ping\"}", ERR_VERSION, 3, RPC_METHOD_NR},
    {"{\"schema\":1,\"id\":3,\"method\":\"pong\"}", ERR_USAGE, 3, RPC_METHOD_NR},
    {"{\"schema\":1,\"id\":3,\"method\":\"ping\",\"params\":[]}", ERR_USAGE, 3, RPC_METHOD_NR},
    {"", ERR_SYNTAX, 0, RPC_METHOD_NR},
    {"[]", ERR_SYNTAX, 0, RPC_METHOD_NR},
    {"{\"schema\":1,", ERR_SYNTAX, 0, RPC_METHOD_NR},
    {"{\"schema\":1,\"schema\":1,\"method\":\"ping\"}", ERR_SYNTAX, 0, RPC_METHOD_NR},
};

static void test_requests(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(samples); i++) {
        CHECK_ROW("%s", samples[i].line);
        cJSON *message = NULL;
        struct rpc_request r;
        struct err err;
        int rc = rpc_request_parse(samples[i].line, strlen(samples[i].line), &message, &r, &err);
        assert_int_equal(rc, samples[i].code);
        assert_int_equal(r.id, samples[i].id);
        if (rc == 0) {
            assert_int_equal(r.method, samples[i].method);
        } else {
            assert_null(message);
            assert_null(r.params);
        }
        cJSON_Delete(message);
    }
}

static void test_names(void **state)
{
    (void)state;
    for (int m = 0; m < RPC_METHOD_NR; m++) {
        assert_int_equal(rpc_method_from_name(rpc_method_name((enum rpc_method)m)), m);
    }
    assert_int_equal(rpc_method_from_name("?"), RPC_METHOD_NR);
}

static void test_request_comes_back(void **state)
{
    (void)state;
    struct strbuf text = STRBUF_INIT;
    struct rpc_request r;
    struct err err;
    cJSON *message = NULL;
    cJSON *params = json_object();
    json_put_string(params, "program", "a \"b\" \n c");
    rpc_write_request(&text, 12, "explain", params);
    assert_int_equal(text.buf[text.len - 1], '\n');
    assert_ptr_equal(strchr(text.buf, '\n'), text.buf + text.len - 1);
    assert_int_equal(rpc_request_parse(text.buf, text.len - 1, &message, &r, &err), 0);
    assert_int_equal(r.id, 12);
    assert_int_equal(r.method, RPC_EXPLAIN);
    assert_true(cJSON_Compare(r.params, params, true));
    cJSON_Delete(message);
    cJSON_Delete(params);
    strbuf_release(&text);
}

static void test_an_answer_too_large_is_an_error(void **state)
{
    (void)state;
    struct strbuf text = STRBUF_INIT;
    struct err err;
    cJSON *message = NULL;
    cJSON *big = json_object();
    char *long_text = xmalloc(RPC_RESPONSE_MAX + 1);
    memset(long_text, 'x', RPC_RESPONSE_MAX);
    long_text[RPC_RESPONSE_MAX] = '\0';
    json_put_string(big, "text", long_text);
    rpc_write_result(&text, 5, big);
    assert_true(text.len < 1000);
    assert_int_equal(json_parse(text.buf, text.len, &message, &err), 0);
    assert_true(cJSON_IsFalse(json_member(message, "ok")));
    assert_int_equal((int)json_member(json_member(message, "error"), "code")->valuedouble,
                     ERR_RANGE);
    cJSON_Delete(message);
    cJSON_Delete(big);
    free(long_text);
    strbuf_release(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_requests),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_request_comes_back),
        cmocka_unit_test(test_an_answer_too_large_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
