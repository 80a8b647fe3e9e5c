/* Who may ask and what for: hosts, origins, tokens, cookies, targets. */
#include <stdlib.h>
#include <string.h>

#include "base/json/json.h"
#include "base/xalloc.h"
#include "daemon/http/guard.h"
#include "daemon/rpc/loopback.h"
#include "tests/unit/check.h"

static void test_hosts(void **state)
{
    (void)state;
    static const struct {
        const char *host;
        bool local;
    } rows[] = {
        {"localhost", true},
        {"LOCALHOST:80", true},
        {"a.localhost:8080", true},
        {"127.0.0.1", true},
        {"127.255.1.2:65535", true},
        {"[::1]", true},
        {"[::1]:1", true},
        {"", false},
        {"localhost:", false},
        {"localhost:65536", false},
        {"localhost:+1", false},
        {"localhost.", false},
        {".localhost", false},
        {"evil-localhost", false},
        {"xlocalhost", false},
        {"localhost.evil.org", false},
        {"128.0.0.1", false},
        {"127.1", false},
        {"127.0.0.1.org", false},
        {"0x7f.0.0.1", false},
        {"[::1", false},
        {"[::2]", false},
        {"localhost@evil", false},
        {"localhost/", false},
        {"local host", false},
        {"evil\tlocalhost", false},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        CHECK_ROW("%s", rows[i].host);
        assert_int_equal(guard_host_is_local(rows[i].host), rows[i].local);
        char *origin = xasprintf("http://%s", rows[i].host);
        assert_int_equal(guard_origin_is_local(origin), rows[i].local);
        free(origin);
    }
    assert_false(guard_origin_is_local("null"));
    assert_false(guard_origin_is_local("localhost"));
    assert_false(guard_origin_is_local("ftp://localhost"));
    assert_false(guard_origin_is_local("http://localhost/x"));
}

static void test_secrets(void **state)
{
    (void)state;
    unsigned char bytes[32];
    char token[GUARD_TOKEN_SIZE];
    char name[24];
    char value[GUARD_COOKIE_MAX + 1];
    for (size_t i = 0; i < sizeof(bytes); i++) {
        bytes[i] = (unsigned char)(i * 7 + 250);
    }
    guard_write_token(bytes, token);
    /* python3: base64.urlsafe_b64encode(bytes((i * 7 + 250) % 256 for i in range(32))) */
    assert_string_equal(token, "-gEIDxYdJCsyOUBHTlVcY2pxeH-GjZSboqmwt77FzNM");
    assert_true(guard_is_token(token));
    assert_false(guard_is_token("short"));
    guard_cookie_of(token, name, value);
    assert_int_equal(strlen(value), 64);
    char *bearer = xasprintf("bearer %s", token);
    assert_true(guard_is_bearer(bearer, token));
    bearer[strlen(bearer) - 1] = 'A';
    assert_false(guard_is_bearer(bearer, token));
    assert_false(guard_is_bearer("Bearer ", token));
    assert_false(guard_is_bearer("Basic x", token));
    assert_false(guard_same_secret("", ""));
    assert_true(guard_same_secret("abc", "abc"));
    assert_false(guard_same_secret("abcd", "abc"));
    assert_false(guard_same_secret("ab", "abc"));
    char *cookies = xasprintf("a=b; %s=%s;c=d", name, value);
    assert_true(guard_has_cookie(cookies, name, value));
    assert_false(guard_has_cookie(cookies, "other", value));
    assert_false(guard_has_cookie("a=b", name, value));
    char *longer = xasprintf("%s=%sx", name, value);
    assert_false(guard_has_cookie(longer, name, value));
    char *inside = xasprintf("x%s=%s", name, value);
    assert_false(guard_has_cookie(inside, name, value));
    free(inside);
    free(longer);
    free(cookies);
    free(bearer);
}

static void test_targets(void **state)
{
    (void)state;
    static const struct {
        const char *uri;
        int rc;
        enum route route;
        const char *params;
    } rows[] = {
        {"/", 0, ROUTE_PAGE, "{}"},
        {"/page.css?v=1", 0, ROUTE_PAGE, "{}"},
        {"/api/status", 0, ROUTE_STATUS, "{}"},
        {"/api/%73tatus?", 0, ROUTE_STATUS, "{}"},
        {"/api/cells?program=a&offset=0&limit=1000", 0, ROUTE_CELLS,
         "{\"program\":\"a\",\"offset\":0,\"limit\":1000}"},
        {"/api/explain?task=a%3Db%2fc+d&&", 0, ROUTE_EXPLAIN, "{\"task\":\"a=b/c d\"}"},
        {"/api/cells?limit=1001", ERR_USAGE, ROUTE_CELLS, NULL},
        {"/api/cells?limit=1e3", ERR_USAGE, ROUTE_CELLS, NULL},
        {"/api/cells?limit=-1", ERR_USAGE, ROUTE_CELLS, NULL},
        {"/api/cells?limit=99999999999999999999", ERR_USAGE, ROUTE_CELLS, NULL},
        {"/api/status?program=a&program=b", ERR_USAGE, ROUTE_STATUS, NULL},
        {"/api/status?program", ERR_USAGE, ROUTE_STATUS, NULL},
        {"/api/status?program=", ERR_USAGE, ROUTE_STATUS, NULL},
        {"/api/status?other=1", ERR_USAGE, ROUTE_STATUS, NULL},
        {"/api/status?program=%", ERR_USAGE, ROUTE_STATUS, NULL},
        {"/api/status?program=%0a", ERR_USAGE, ROUTE_STATUS, NULL},
        {"/api/status?program=%00", ERR_USAGE, ROUTE_STATUS, NULL},
        {"/api/status?program=%ff", ERR_USAGE, ROUTE_STATUS, NULL},
        {"/api/none", ERR_NOT_FOUND, ROUTE_NR, NULL},
        {"/%00", ERR_USAGE, ROUTE_NR, NULL},
        {"api/status", ERR_USAGE, ROUTE_NR, NULL},
        {"", ERR_USAGE, ROUTE_NR, NULL},
        {"/report/x/y?z=1", ERR_USAGE, ROUTE_REPORT, NULL},
        {"/report/x/y", 0, ROUTE_REPORT, "{}"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        CHECK_ROW("%s", rows[i].uri);
        struct guard_target t;
        struct err err = {0};
        struct strbuf text = STRBUF_INIT;
        assert_int_equal(guard_target_parse(rows[i].uri, &t, &err), rows[i].rc);
        assert_int_equal(t.route, rows[i].route);
        if (rows[i].params != NULL) {
            assert_int_equal(json_line(t.params, &text, &err), 0);
            assert_string_equal(text.buf, rows[i].params);
        }
        strbuf_release(&text);
        guard_target_release(&t);
    }
    assert_true(guard_route_is_open(ROUTE_PAGE) && guard_route_is_open(ROUTE_HEALTH));
    for (int r = ROUTE_SESSION; r < ROUTE_NR; r++) {
        assert_false(guard_route_is_open((enum route)r));
    }
}

static void test_addresses(void **state)
{
    (void)state;
    struct loopback_address at;
    struct err err = {0};
    assert_int_equal(loopback_parse("127.0.0.1:0", &at, &err), 0);
    assert_string_equal(at.host, "127.0.0.1");
    assert_int_equal(loopback_parse("[::1]:8080", &at, &err), 0);
    assert_string_equal(at.host, "::1");
    assert_int_equal(at.port, 8080);
    assert_int_equal(loopback_parse("LocalHost:1", &at, &err), 0);
    assert_string_equal(at.host, "127.0.0.1");
    static const char *const bad[] = {
        "",       "127.0.0.1", "0.0.0.0:1",       "::1:1",        "[::1]",       "[::]:1",
        "host:1", ":1",        "127.0.0.1:65536", "127.0.0.1:-1", "127.0.0.1: 1"};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        CHECK_ROW("%s", bad[i]);
        assert_int_equal(loopback_parse(bad[i], &at, &err), ERR_USAGE);
    }
}

static void test_event_ids(void **state)
{
    (void)state;
    uint64_t no = 0;
    assert_true(guard_event_id("ab.1-17", "ab.1", &no));
    assert_int_equal(no, 17);
    assert_false(guard_event_id("ab.2-17", "ab.1", &no));
    assert_false(guard_event_id("ab.1", "ab.1", &no));
    assert_false(guard_event_id("ab.1+17", "ab.1", &no));
    assert_false(guard_event_id("ab.1-", "ab.1", &no));
    assert_false(guard_event_id("ab.1--1", "ab.1", &no));
    assert_false(guard_event_id("ab.1-99999999999999999999", "ab.1", &no));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_hosts),     cmocka_unit_test(test_secrets),
        cmocka_unit_test(test_targets),   cmocka_unit_test(test_addresses),
        cmocka_unit_test(test_event_ids),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
