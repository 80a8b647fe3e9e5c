/* The names that the text of a condition has, and what it therefore reads: each form of the
 * grammar, words that only look like a name, and texts that are not conditions. */

#include <string.h>

#include "base/strbuf.h"
#include "base/xalloc.h"
#include "prereg/program/condition_names.h"
#include "tests/unit/check.h"

static void add_token(struct strbuf *out, const struct token *t)
{
    strbuf_addf(out, "/%.*s", t->kind == TOKEN_END ? 0 : (int)t->len,
                t->kind == TOKEN_END ? "" : t->start);
}

/* Each name as ROOT/OF/MEASURE/FIELD and a blank. */
static void list_names(const char *text, struct strbuf *out)
{
    struct lexer lx = {.text = text};
    struct condition_name name;
    while (condition_next_name(&lx, &name)) {
        strbuf_addf(out, "%c", "ckmfi"[name.root]);
        add_token(out, &name.of);
        add_token(out, &name.measure);
        add_token(out, &name.field);
        strbuf_addf(out, " ");
    }
}

static void test_names(void **state)
{
    static const struct {
        const char *text;
        const char *names;
    } cases[] = {
        {"otherwise", ""},
        {"counter.k >= 1", "c/k// "},
        {"contrast.arch.mean > 0", "k/arch//mean "},
        {"contrast . arch [ acc ] . bf10>1", "k/arch/acc/bf10 "},
        {"measure.loss['fact.train.x'].mean < 3", "m/loss// "},
        {"fact.train.val_loss > 1 and instrument.bayes.robust",
         "f/train//val_loss i/bayes//robust "},
        {"ratio(fact.train.flops, arch, 'moe', 'dense') within 0.01", "f/train//flops "},
        {"abs(contrast.a[m].mean) > contrast.b[n].sd", "k/a/m/mean k/b/n/sd "},
        {"'contrast.arch[acc].bf10' == 1", ""},
        {"contrast == 1 and fact > 2", ""},
        /* not conditions, and searched to their end */
        {"\" 2x contrast.arch[acc].bf10", "k/arch/acc/bf10 "},
        {"'open contrast.arch[acc].bf10", "k/arch/acc/bf10 "},
        {"contrast.arch[", "k/arch// "},
        {"contrast.fact.train", "k/fact//train "},
        {"contrast.[fact.train.x]", "f/train//x "},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CHECK_ROW("%s", cases[i].text);
        struct strbuf out = STRBUF_INIT;
        list_names(cases[i].text, &out);
        assert_string_equal(out.len == 0 ? "" : out.buf, cases[i].names);
        strbuf_release(&out);
    }
}

static void test_reads(void **state)
{
    static const char text[] = "contrast.arch.mean > 0 and contrast.size[acc].bf10 > 3 and "
                               "fact.train.acc > measure.loss['moe'].mean";
    (void)state;
    assert_true(condition_reads_bf10(text, "size"));
    assert_true(condition_reads_bf10(text, NULL));
    assert_false(condition_reads_bf10(text, "arch"));
    assert_false(condition_reads_bf10("contrast.bf10.mean > 0", NULL));
    assert_true(condition_reads_measure(text, "acc"));
    assert_true(condition_reads_measure(text, "loss"));
    assert_false(condition_reads_measure("fact.train.acc > 0", "acc"));
    assert_true(condition_reads_fact_of(text, "train"));
    assert_false(condition_reads_fact_of(text, "acc"));
    assert_false(condition_reads_instrument(text, NULL));
    assert_true(condition_reads_instrument("instrument.b.robust", "b"));
    assert_false(condition_reads_instrument("instrument.b.robust", "robust"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_names), cmocka_unit_test(test_reads)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
