/* Texts of other formats: whatever a name holds, a reader of YAML gets it back, and a path stays
 * one component. */
#include <stdlib.h>
#include <string.h>

#include "base/files/file.h"
#include "base/json/json.h"
#include "base/xalloc.h"
#include "ctl/formats/format.h"
#include "ctl/formats/output.h"
#include "tests/unit/check.h"
#include "tests/unit/scratch.h"

static void test_yaml_strings(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"", "\"\""},
        {"plain: #text", "\"plain: #text\""},
        {"a\"b\\c", "\"a\\\"b\\\\c\""},
        {"line\nnext\ttab\r", "\"line\\u000anext\\u0009tab\\u000d\""},
        {"\x01\x7f", "\"\\u0001\\u007f\""},
        {"\xc2\x85\xc2\xa0\xe2\x80\xa8\xef\xbb\xbf", "\"\\u0085\\u00a0\\u2028\\ufeff\""},
        {"\xc3\xbc\xf0\x9f\x98\x80", "\"\xc3\xbc\xf0\x9f\x98\x80\""},
        {"\xff"
         "a",
         "\"\\ufffda\""}};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CHECK_ROW("%zu", i);
        struct strbuf sb = STRBUF_INIT;
        yaml_add_string(&sb, cases[i][0]);
        assert_string_equal(sb.buf, cases[i][1]);
        strbuf_release(&sb);
    }
}

static void test_yaml_numbers(void **state)
{
    (void)state;
    static const struct {
        double v;
        const char *text;
    } cases[] = {{0.25, "0.25"},   {1, "1"},          {-3, "-3"},
                 {1e-7, "1.0e-7"}, {1e21, "1.0e+21"}, {1.5e-9, "1.5e-9"}};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CHECK_ROW("%zu", i);
        struct strbuf sb = STRBUF_INIT;
        yaml_add_number(&sb, cases[i].v);
        assert_string_equal(sb.buf, cases[i].text);
        strbuf_release(&sb);
    }
}

static void test_file_names(void **state)
{
    (void)state;
    static const char *const same[] = {"score.acc", "train_loss-2", "a", "x.y.z"};
    static const char *const other[] = {"",   ".",       "..",  "../x", "a/b",
                                        "a.", ".hidden", "a:b", "a b"};
    for (size_t i = 0; i < ARRAY_LEN(same); i++) {
        char *name = format_file_name(same[i], "");
        assert_string_equal(name, same[i]);
        free(name);
    }
    for (size_t i = 0; i < ARRAY_LEN(other); i++) {
        CHECK_ROW("%s", other[i]);
        char *name = format_file_name(other[i], "");
        assert_true(strlen(name) >= 9 && strchr(name, '/') == NULL && name[0] != '.');
        assert_string_not_equal(name, other[i]);
        free(name);
    }
    char *long_one = xcalloc(1, 300);
    memset(long_one, 'x', 299);
    char *name = format_file_name(long_one, "");
    assert_int_equal(strlen(name), 200);
    free(name);
    free(long_one);
    name = format_cell_name("arm=a,seed=1");
    assert_string_equal(name, "arm=a,seed=1");
    free(name);
}

/* Notes are one line and said once; a file is never written over. */
static void test_output(void **state)
{
    (void)state;
    struct err err = {0};
    struct strbuf text = STRBUF_INIT;
    const struct format_output out = {.folder = scratch_folder, .notes = json_array()};
    format_note(&out, "%s left out", "a\nb");
    format_note(&out, "%s left out", "a\nb");
    assert_int_equal(cJSON_GetArraySize(out.notes), 1);
    assert_string_equal(out.notes->child->valuestring, "a b left out");
    strbuf_adds(&text, "one");
    assert_int_equal(format_put(&out, "x/y.txt", &text, &err), 0);
    assert_int_not_equal(format_put(&out, "x/y.txt", &text, &err), 0);
    cJSON_Delete(out.notes);
    strbuf_release(&text);
}

static void test_names(void **state)
{
    (void)state;
    struct err err = {0};
    for (size_t i = 0; i < format_n_names; i++) {
        assert_int_equal(format_check_name(format_names[i], &err), 0);
    }
    assert_int_equal(format_check_name("croisant", &err), ERR_USAGE);
    assert_non_null(strstr(err.msg, "did you mean croissant?"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_yaml_strings), cmocka_unit_test(test_yaml_numbers),
        cmocka_unit_test(test_file_names),   cmocka_unit_test(test_output),
        cmocka_unit_test(test_names),
    };
    return cmocka_run_group_tests(tests, scratch_enter, scratch_leave);
}
