/* The tables of `programs` and `disk`. */
#include <string.h>

#include "base/json/json.h"
#include "base/xalloc.h"
#include "ctl/text/status_text.h"
#include "tests/unit/check.h"

static void test_size(void **state)
{
    (void)state;
    static const struct {
        int64_t bytes;
        const char *text;
    } rows[] = {
        {0, "0 B"},
        {1023, "1023 B"},
        {1024, "1.0 KiB"},
        {10189, "10 KiB"},
        {10188, "9.9 KiB"},
        {1048575, "1.0 MiB"},
        {1 << 20, "1.0 MiB"},
        {INT64_C(3) << 40, "3.0 TiB"},
        {INT64_MAX, "8192 PiB"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct strbuf sb = STRBUF_INIT;
        disk_size_text(&sb, rows[i].bytes);
        assert_string_equal(sb.buf, rows[i].text);
        strbuf_release(&sb);
    }
}

static cJSON *parse(const char *text)
{
    struct err err = {0};
    cJSON *v = NULL;
    assert_int_equal(json_parse(text, strlen(text), &v, &err), 0);
    return v;
}

static void test_programs(void **state)
{
    (void)state;
    const struct term t = {.columns = 80};
    cJSON *answer =
        parse("{\"programs\":[{\"id\":\"a-1\",\"state\":\"finished\",\"verdict\":{\"kind\":"
              "\"void\",\"outcome\":null},"
              "\"tasks\":{\"planned\":4,\"done\":3,\"running\":0},\"bytes\":{\"cells\":2048,"
              "\"journal\":0,"
              "\"report\":1},\"last\":\"2026-11-21T03:04:05.678Z\"}],"
              "\"damaged\":[{\"id\":\"b-\\u001b[31m2\",\"why\":\"its\\nfolder is missing\"}],"
              "\"objects_bytes\":10,\"database_bytes\":20,\"log_bytes\":30,\"free_bytes\":40,"
              "\"daemon\":false}");
    struct strbuf sb = STRBUF_INIT;
    programs_text(&sb, &t, answer);
    assert_non_null(strstr(sb.buf, "a-1"));
    assert_non_null(strstr(sb.buf, " void "));
    assert_non_null(strstr(sb.buf, " 3/4 "));
    assert_non_null(strstr(sb.buf, "2.0 KiB"));
    assert_non_null(strstr(sb.buf, "2026-11-21 03:04\n"));
    assert_non_null(strstr(sb.buf, "damaged b-"));
    assert_null(strstr(sb.buf, "\nfolder"));
    assert_non_null(strstr(sb.buf, "no daemon runs"));
    strbuf_release(&sb);
    cJSON_Delete(answer);
}

/* Of a daemon of another version: nothing is assumed of its answer. */
static void test_strange_answers(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "{}", "{\"programs\":7,\"damaged\":{}}", "{\"programs\":[1,{}],\"damaged\":[null]}",
        "{\"programs\":[{\"id\":5,\"bytes\":[],\"tasks\":\"x\",\"kinds\":3,\"freeable\":[{}]}]}"};
    const struct term t = {.columns = 80};
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        CHECK_ROW("%s", texts[i]);
        struct strbuf sb = STRBUF_INIT;
        cJSON *answer = parse(texts[i]);
        programs_text(&sb, &t, answer);
        disk_text(&sb, &t, answer);
        assert_true(sb.len > 0);
        strbuf_release(&sb);
        cJSON_Delete(answer);
    }
}

static void test_disk(void **state)
{
    (void)state;
    const struct term t = {.columns = 80};
    cJSON *answer =
        parse("{\"programs\":[{\"id\":\"a-1\",\"bytes\":{\"all\":4096},\"kinds\":{\"logs\":1024,"
              "\"items\":0},\"freeable\":[{\"what\":\"all cells\",\"bytes\":3072,\"how\":"
              "\"preregctl remove a-1\"}]}],\"daemon\":true}");
    struct strbuf sb = STRBUF_INIT;
    disk_text(&sb, &t, answer);
    assert_non_null(strstr(sb.buf, "a-1 4.0 KiB\n"));
    assert_non_null(strstr(sb.buf, "1.0 KiB  logs\n"));
    assert_null(strstr(sb.buf, "items"));
    assert_non_null(strstr(sb.buf, "can be freed: 3.0 KiB, all cells: preregctl remove a-1\n"));
    assert_null(strstr(sb.buf, "no daemon"));
    strbuf_release(&sb);
    cJSON_Delete(answer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_size),
        cmocka_unit_test(test_programs),
        cmocka_unit_test(test_strange_answers),
        cmocka_unit_test(test_disk),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
