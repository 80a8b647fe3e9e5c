/* What `amend` and `diff` print of amendments, which may be anybody's files. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json/json.h"
#include "ctl/text/status_text.h"
#include "tests/unit/check.h"

static char *printed(const char *text, void (*print)(const cJSON *what, FILE *to))
{
    char *out = NULL;
    size_t len = 0;
    cJSON *what = NULL;
    struct err err = {0};
    FILE *to = open_memstream(&out, &len);
    assert_non_null(to);
    assert_int_equal(json_parse(text, strlen(text), &what, &err), 0);
    print(what, to);
    assert_int_equal(fclose(to), 0);
    cJSON_Delete(what);
    return out;
}

static void test_changes(void **state)
{
    static const struct {
        const char *changes;
        const char *line;
    } cases[] = {
        {"[{\"path\":[\"plan\",\"measure\",\"acc\",\"metric\"],\"from\":\"s.a\",\"to\":\"s.b\"}]",
         "  plan.measure.acc.metric: \"s.a\" -> \"s.b\"\n"},
        {"[{\"path\":[\"plan\",\"forecast\"],\"to\":1,\"post_hoc\":true}]",
         "  plan.forecast: nothing -> 1  (post hoc)\n"},
        {"[{\"path\":[\"plan\",\"\\u001b[31mred\\n\"],\"to\":1}]", NULL},
        {"[{\"path\":[\"plan\"],\"to\":\"turned \\u202eabout\"}]", NULL},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char *out = printed(cases[i].changes, changes_print);
        if (cases[i].line != NULL) {
            assert_string_equal(out, cases[i].line);
        }
        assert_null(strchr(out, '\x1b'));
        assert_null(strstr(out, "\xe2\x80\xae"));
        assert_ptr_equal(strchr(out, '\n'), out + strlen(out) - 1);
        free(out);
    }
}

static void test_known(void **state)
{
    (void)state;
    char *out = printed("{\"known\":[{\"check\":\"ref\",\"attempt\":2,\"amendment\":1,\"holds\":"
                        "false,\"text\":\"0.5\\u001b[31m\"}]}",
                        changes_print_known);
    assert_non_null(
        strstr(out, "  known then of apparatus.ref: attempt 2, after amendment 1: 0.5"));
    assert_non_null(strstr(out, "DOES NOT HOLD"));
    assert_null(strchr(out, '\x1b'));
    free(out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_changes),
        cmocka_unit_test(test_known),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
