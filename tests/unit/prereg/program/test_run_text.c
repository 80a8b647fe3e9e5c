/* [run] tables in and out of texts; what cannot be told apart by lines stays where it is. */

#include "base/xalloc.h"
#include "prereg/program/run_change.h"
#include "tests/unit/check.h"

static void test_replace(void **state)
{
    static const struct {
        const char *text;
        const char *from;
        const char *out;
    } cases[] = {
        {"a = 1\n", "b = 2\n", "a = 1\n"},
        {"a = 1", "[run]\nslots = 2", "a = 1\n[run]\nslots = 2\n"},
        {"[a]\nx = 1\n[run]\nslots = 1\n[b]\ny = 1\n", "[c]\n", "[a]\nx = 1\n[b]\ny = 1\n"},
        {"[run.a]\nx=1\n[ run ] # how\ny=1\n[runs]\nz=1\n", "\t[run . b]\r\nw = 1\r\n[x]\n",
         "[runs]\nz=1\n\t[run . b]\r\nw = 1\r\n"},
        /* rows of a table are no headers, and neither is a value in brackets */
        {"rows = [\n[\"run\", 1],\n[\"x\", 2],\n]\n[run]\nl = [\n[1, 2],\n]\n[z]\n", "",
         "rows = [\n[\"run\", 1],\n[\"x\", 2],\n]\n[z]\n"},
        {"run = 1\n[[run]]\nx=1\n", "[", "run = 1\n"},
        {"", "", ""},
        {"[\n[run\n[]\n[[\n]", "[run]", "[\n[run\n[]\n[[\n]\n[run]\n"},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CHECK_ROW("%s", cases[i].text);
        struct strbuf out = STRBUF_INIT;
        run_text_replace(cases[i].text, cases[i].from, &out);
        assert_string_equal(out.buf == NULL ? "" : out.buf, cases[i].out);
        strbuf_release(&out);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_replace)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
