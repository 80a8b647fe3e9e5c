/* What each voice on a contrast says, and the sentence that sums them up. */
#include <stdlib.h>
#include <string.h>

#include "base/diag.h"
#include "base/json/json.h"
#include "base/xalloc.h"
#include "prereg/load/program_load.h"
#include "tests/unit/check.h"
#include "truthtable/report/agreement.h"

#define HEAD                                                                                       \
    "[program]\nname = \"t\"\nschema = 1\nquestion = \"?\"\n"                                      \
    "[[factor]]\nname = \"arch\"\nlevels = [\"x\", \"y\"]\n"                                       \
    "[[factor]]\nname = \"seed\"\nlevels = [1, 2]\nreplicate = true\n"                             \
    "[stage.exam]\ncommand = [\"w\"]\nparams = { a = \"$arch\", s = \"$seed\" }\n"                 \
    "[measure]\nq = { metric = \"exam.q\", items = 10, chance = 0.1, floor = 0.2 }\n"              \
    "[contrast]\narch = { between = { arch = [\"x\", \"y\"] } }\n"
#define COUNTER "[counter]\nk = { contrast = \"arch\", clears = \"every_cell\", binds = true }\n"
#define TAIL                                                                                       \
    "[[input]]\nname = \"i\"\nlevels = [[\"a\", \"contrast.arch[q].mean > 0\"], [\"b\", "          \
    "\"otherwise\"]]\n"                                                                            \
    "[table]\ninputs = [\"i\"]\nrows = [[\"a\", \"A\"], [\"b\", \"B\"]]\n"                         \
    "[outcome]\nA = { prior = 0.5, title = \"a\" }\nB = { prior = 0.4, title = \"b\" }\n"

#define INTERVAL(low, high, counted)                                                               \
    "{\"counted\":" counted ",\"ci_low\":" low ",\"ci_high\":" high "}"
#define BAYES(reading, more)                                                                       \
    "{\"kind\":\"bayes\",\"contrast\":\"arch\"," more "\"measures\":[{\"reading\":\"" reading      \
    "\"}]}"
#define MIXED(beta, singular)                                                                      \
    "{\"kind\":\"mixed\",\"columns\":[{\"name\":\"arch[y]\",\"of\":\"arch\"}],\"fits\":[{"         \
    "\"singular\":" singular ",\"terms\":[{\"name\":\"arch[y]\",\"beta\":" beta ",\"se\":1}]}]}"
#define CONNECTOR(shows)                                                                           \
    "{\"kind\":\"connector\",\"contrast\":\"arch\",\"benchmarks\":{\"shows\":" shows "},"          \
    "\"loss\":{\"shows\":true}}"

static const struct {
    const char *measures;    /* of the contrast in the verdict */
    const char *instruments; /* in instruments.json */
    size_t n;
    enum voice_says says[4];
    const char *sentence; /* NULL: none */
} CASES[] = {
    {INTERVAL("0.1", "0.3", "true"), "", 1, {SAYS_DIFFERENCE}, NULL},
    {INTERVAL("0.1", "0.3", "true"),
     BAYES("against the null", ""),
     2,
     {SAYS_DIFFERENCE, SAYS_DIFFERENCE},
     "On arch, both that can be read agree: a difference."},
    {INTERVAL("-0.1", "0.3", "true") "," INTERVAL("-0.3", "-0.1", "false"),
     BAYES("for the null", "") "," CONNECTOR("false"),
     3,
     {SAYS_NONE, SAYS_NONE, SAYS_NONE},
     "On arch, all 3 that can be read agree: no difference."},
    {INTERVAL("-0.3", "-0.1", "true"),
     BAYES("for the null", ""),
     2,
     {SAYS_DIFFERENCE, SAYS_NONE},
     "On arch, they do not agree. A difference: Intervals over replicates. No difference: Bayes "
     "factors."},
    /* what cannot be read is named, and never agrees */
    {INTERVAL("null", "null", "true"),
     BAYES("for the null", "") "," CONNECTOR("false"),
     3,
     {SAYS_UNREADABLE, SAYS_NONE, SAYS_NONE},
     "both that can be read agree: no difference. Not to be read: Intervals over replicates."},
    {INTERVAL("null", "null", "true") "," INTERVAL("0.1", "0.2", "true"),
     BAYES("depends on the prior", ""),
     2,
     {SAYS_DIFFERENCE, SAYS_UNREADABLE},
     "fewer than two can be read"},
    {INTERVAL("-1", "1", "true"),
     MIXED("3", "false"),
     2,
     {SAYS_NONE, SAYS_DIFFERENCE},
     "they do not agree. A difference: Mixed model."},
    {INTERVAL("-1", "1", "true"), MIXED("-1.5", "false"), 2, {SAYS_NONE, SAYS_NONE}, "both"},
    {INTERVAL("-1", "1", "true"),
     MIXED("3", "true"),
     2,
     {SAYS_NONE, SAYS_UNREADABLE},
     "fewer than two can be read"},
    /* for discussion only, not computed, about another contrast */
    {INTERVAL("-1", "1", "true"),
     BAYES("for the null", "\"discussion_only\":true,") "," BAYES(
         "for the null",
         "\"why\":\"x\",") ",{\"kind\":\"bayes\",\"contrast\":\"other\",\"measures\":[]}",
     1,
     {SAYS_NONE},
     NULL},
};

static struct plan_program *program_with(const char *counter)
{
    char *text = xasprintf("%s%s%s", HEAD, counter, TAIL);
    struct plan_program *p = NULL;
    struct diag diag;
    struct err err = {0};
    diag_init(&diag, "grid.toml");
    if (program_parse(text, strlen(text), "grid.toml", &p, &diag, &err) != 0) {
        diag_print(&diag, stderr);
        fail_msg("%s", err.msg);
    }
    diag_release(&diag);
    free(text);
    return p;
}

static cJSON *parse(const char *fmt, const char *part)
{
    char *before = xstrdup(fmt);
    char *at = strchr(before, '@');
    *at = '\0';
    char *text = xasprintf("%s%s%s", before, part, at + 1);
    cJSON *o = cJSON_Parse(text);
    if (o == NULL) {
        fail_msg("not JSON: %s", text);
    }
    free(text);
    free(before);
    return o;
}

static struct report_model model_of(struct plan_program *p, const char *measures,
                                    const char *instruments)
{
    return (struct report_model){
        .program = p,
        .verdict = parse("{\"contrasts\":[{\"name\":\"arch\",\"measures\":[@]}]}", measures),
        .instruments = parse("{\"instruments\":[@]}", instruments)};
}

static void test_voices(void **state)
{
    (void)state;
    struct plan_program *p = program_with(COUNTER);
    for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
        CHECK_ROW("%zu: %s", i, CASES[i].instruments);
        struct report_model m = model_of(p, CASES[i].measures, CASES[i].instruments);
        struct arena arena;
        arena_init(&arena);
        const struct agreement g = agreement_of(&arena, &m);
        assert_string_equal(g.contrast, "arch");
        assert_int_equal(g.n, CASES[i].n);
        for (size_t v = 0; v < g.n; v++) {
            assert_int_equal(g.voices[v].says, CASES[i].says[v]);
        }
        if ((g.sentence == NULL) != (CASES[i].sentence == NULL) ||
            (g.sentence != NULL && strstr(g.sentence, CASES[i].sentence) == NULL)) {
            fail_msg("found \"%s\"", g.sentence == NULL ? "none" : g.sentence);
        }
        arena_release(&arena);
        cJSON_Delete(m.verdict);
        cJSON_Delete(m.instruments);
    }
    program_free(p);
}

/* Without a binding counter the first instrument with a contrast decides of which one. */
static void test_the_contrast(void **state)
{
    (void)state;
    struct plan_program *p = program_with("");
    struct report_model m = model_of(p, INTERVAL("1", "2", "true"), BAYES("for the null", ""));
    struct report_model none = model_of(p, INTERVAL("1", "2", "true"), "");
    struct arena arena;
    arena_init(&arena);
    assert_string_equal(agreement_of(&arena, &m).contrast, "arch");
    assert_null(agreement_of(&arena, &none).contrast);
    assert_null(agreement_of(&arena, &none).sentence);
    arena_release(&arena);
    cJSON_Delete(m.verdict);
    cJSON_Delete(m.instruments);
    cJSON_Delete(none.verdict);
    cJSON_Delete(none.instruments);
    program_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_voices),
        cmocka_unit_test(test_the_contrast),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
