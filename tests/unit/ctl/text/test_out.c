#include <string.h>

#include "base/json/json.h"
#include "base/xalloc.h"
#include "ctl/text/out.h"
#include "tests/unit/check.h"

static const struct term plain = {.columns = 80};
static const struct term coloured = {
    .colour = true, .utf8 = true, .is_terminal = true, .columns = 80};

static cJSON *parse(const char *text)
{
    cJSON *v = NULL;
    struct err err = {0};
    if (json_parse(text, strlen(text), &v, &err) != 0) {
        fail_msg("%s", err.msg);
    }
    return v;
}

static void test_table(void **state)
{
    (void)state;
    static const struct out_column columns[] = {
        {"name", "name", OUT_TEXT}, {"n", "n", OUT_COUNT},         {"share", "share", OUT_NUMBER},
        {"left", "ms", OUT_SPAN},   {"state", "state", OUT_STATE},
    };
    cJSON *rows = parse("[{\"name\":\"a\",\"n\":7,\"share\":0.25,\"ms\":200000,\"state\":\"done\"},"
                        "{\"name\":\"bé\",\"n\":1000,\"share\":null,\"state\":\"blocked\"}]");
    struct strbuf sb = STRBUF_INIT;
    out_table(&sb, &plain, rows, columns, ARRAY_LEN(columns));
    assert_string_equal(sb.buf, "name     n  share  left        state\n"
                                "a        7   0.25  3 min 20 s  done\n"
                                "bé    1000      -  -           blocked\n");
    strbuf_clear(&sb);
    out_table(&sb, &coloured, rows, columns, ARRAY_LEN(columns));
    assert_non_null(strstr(sb.buf, "\033[32mdone\033[0m"));
    assert_non_null(strstr(sb.buf, "\033[31mblocked\033[0m"));
    strbuf_release(&sb);
    cJSON_Delete(rows);
}

static void test_text_of_anywhere(void **state)
{
    (void)state;
    static const struct out_column columns[] = {{"a", "a", OUT_TEXT}, {"b", "b", OUT_TEXT}};
    cJSON *rows = parse("[{\"a\":\"x\\u001b[31m\\ny\",\"b\":\"é\"}]");
    struct strbuf sb = STRBUF_INIT;
    out_table(&sb, &plain, rows, columns, ARRAY_LEN(columns));
    assert_string_equal(sb.buf, "a         b\nx?[31m y  é\n");
    strbuf_release(&sb);
    cJSON_Delete(rows);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_table),
        cmocka_unit_test(test_text_of_anywhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
