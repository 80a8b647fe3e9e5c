/* The text of a successor: what is left out, in whatever form TOML allows, and that the rest stays
 * byte for byte. */
#include "ctl/successor.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/diag.h"
#include "base/xalloc.h"
#include "prereg/load/toml.h"
#include "tests/unit/check.h"

#define ROOT "00112233"

static const struct {
    const char *old;
    const char *successor;
} CASES[] = {
    {"[program]\nname = \"a\" # mine\n",
     "[program]\nname = \"b\"\nsupersedes = \"" ROOT "\" # mine\n"},
    {"program = { name = \"a\", schema = 1 }\n",
     "program = { name = \"b\", supersedes = \"" ROOT "\", schema = 1 }\n"},
    {"[program]\nsupersedes = \"ff\"\nname = 'a'\n",
     "[program]\nsupersedes = \"" ROOT "\"\nname = \"b\"\n"},
    {"[program]\nname = \"a\"\nquestion = \"is \\\" = # [\"\n[[factor]]\nlevels = [1]\nname = "
     "\"x\"\n",
     "[program]\nname = \"b\"\nsupersedes = \"" ROOT
     "\"\nquestion = \"is \\\" = # [\"\n[[factor]]\nlevels = [1]\nname = \"x\"\n"},
    {"[program]\nname = \"a\"\n[[factor]]\nreplicate = true\nlevels = [ 1, # ]\n  2 ]\nname = "
     "\"s\"\n",
     "[program]\nname = \"b\"\nsupersedes = \"" ROOT
     "\"\n[[factor]]\nreplicate = true\n# levels = [ 1, # ]\n#   2 ]   # their results are known: "
     "choose others\nname = \"s\"\n"},
    {"factor = [{ name = \"\xc3\xa4\", levels = [1, 2], replicate = true }]\n[program]\nname = "
     "\"a\"\n",
     "factor = [{ name = \"\xc3\xa4\", replicate = true }]\n[program]\nname = \"b\"\nsupersedes = "
     "\"" ROOT "\"\n"},
    {"[program]\nname = \"a\"\n[outcome]\nA = { prior = 0.5, title = \"\xc3\xb6, }\" }\n"
     "B = { title = 'b', prior = 0.4 }\nC = {prior=0.1}\n",
     "[program]\nname = \"b\"\nsupersedes = \"" ROOT
     "\"\n[outcome]\nA = { title = \"\xc3\xb6, }\" }\nB = { title = 'b' }\nC = {}\n"},
    {"[program]\nname = \"a\"\r\n[outcome.A]\r\nprior = 0.5\r\ntitle = \"t\"\r\n",
     "[program]\nname = \"b\"\nsupersedes = \"" ROOT
     "\"\r\n[outcome.A]\r\n# prior = 0.5   # state it again, with what is known now\r\n"
     "title = \"t\"\r\n"},
    {"[program]\nname = \"a\"\n[forecast]\nx = { condition = \"\"\"1\n > 0\"\"\", confidence = 0.5 "
     "}\n",
     "[program]\nname = \"b\"\nsupersedes = \"" ROOT
     "\"\n[forecast]\nx = { condition = \"\"\"1\n > 0\"\"\" }\n"},
    {"[program]\nname = \"a\"\nforecast.x.confidence = 0.5\n",
     "[program]\nname = \"b\"\nsupersedes = \"" ROOT "\"\nforecast.x.confidence = 0.5\n"},
};

static const struct successor TO = {"b", ROOT};

static char *successor_of(const char *old)
{
    struct strbuf in = STRBUF_INIT;
    struct strbuf out = STRBUF_INIT;
    struct err err = {0};
    strbuf_addf(&in, "%s", old);
    if (successor_write("grid.toml", &in, &TO, &out, &err) != 0) {
        fail_msg("%s", err.msg);
    }
    strbuf_release(&in);
    return strbuf_detach(&out);
}

static void test_what_must_be_stated_again_is_left_out(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
        CHECK_ROW("%s", CASES[i].old);
        char *text = successor_of(CASES[i].old);
        assert_string_equal(text, CASES[i].successor);
        free(text);
    }
}

/* Whatever the form, the new text is TOML. */
static void test_the_successor_can_be_read(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
        CHECK_ROW("%s", CASES[i].old);
        char *text = successor_of(CASES[i].old);
        struct arena arena;
        struct diag diag;
        struct toml_node *root = NULL;
        arena_init(&arena);
        diag_init(&diag, "t");
        assert_int_equal(toml_parse(text, strlen(text), &arena, &root, &diag), 0);
        assert_string_equal(toml_member(toml_member(root, "program"), "name")->string, "b");
        diag_release(&diag);
        arena_release(&arena);
        free(text);
    }
}

static void test_what_is_not_a_program_is_refused(void **state)
{
    static const char *const texts[] = {"", "[program]\n", "[program]\nname = 3\n", "[program\n"};
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        CHECK_ROW("%s", texts[i]);
        struct strbuf in = STRBUF_INIT;
        struct strbuf out = STRBUF_INIT;
        struct err err = {0};
        strbuf_addf(&in, "%s", texts[i]);
        assert_int_equal(successor_write("grid.toml", &in, &TO, &out, &err), ERR_INVALID);
        assert_int_equal(out.len, 0);
        strbuf_release(&in);
        strbuf_release(&out);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_must_be_stated_again_is_left_out),
        cmocka_unit_test(test_the_successor_can_be_read),
        cmocka_unit_test(test_what_is_not_a_program_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
