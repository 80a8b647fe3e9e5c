/* What is taken in from events.jsonl, however its bytes arrive. */
#include <string.h>

#include "base/layout/layout.h"
#include "base/strbuf.h"
#include "base/xalloc.h"
#include "daemon/core/core.h"
#include "daemon/program/events.h"
#include "tests/unit/check.h"

struct sample {
    const char *text;
    struct events_said want;
};

/* want: n_bytes, section, progressed, done, total, unit, checkpoint, resumed_from, malformed */
static const struct sample samples[] = {
    {.text = "", .want = {0, SECTION_NR, false, 0, -1, "", -1, -1, 0}},
    {.text = "{\"type\":\"section\",\"name\":\"step\"}",
     .want = {0, SECTION_NR, false, 0, -1, "", -1, -1, 0}}, /* torn: no newline */
    {.text = "{\"type\":\"section\",\"name\":\"eval\"}\n",
     .want = {33, SECTION_EVAL, false, 0, -1, "", -1, -1, 0}},
    {.text = "{\"type\":\"section\",\"name\":\"lunch\"}\n",
     .want = {34, SECTION_NR, false, 0, -1, "", -1, -1, 0}},
    {.text = "{\"type\":\"progress\",\"done\":4,\"total\":9,\"unit\":\"step\"}\n{\"type\":\"pro",
     .want = {53, SECTION_NR, true, 4, 9, "step", -1, -1, 0}},
    {.text = "{\"type\":\"progress\",\"done\":4}\n{\"type\":\"progress\",\"done\":5}\n",
     .want = {58, SECTION_NR, true, 5, -1, "", -1, -1, 0}},
    {.text = "{\"type\":\"progress\",\"done\":-4}\n{\"type\":\"progress\",\"done\":1.5}\n",
     .want = {61, SECTION_NR, false, 0, -1, "", -1, -1, 0}},
    {.text = "{\"type\":\"checkpoint\",\"step\":400}\n{\"type\":\"resumed\",\"step\":7}\n",
     .want = {61, SECTION_NR, false, 0, -1, "", 400, 7, 0}},
    {.text = "nonsense\n\n[1]\n{\"type\":7}\n{\"type\":\"unknown\"}\n{\"type\":\"note\"} x\n",
     .want = {62, SECTION_NR, false, 0, -1, "", -1, -1, 5}},
    {.text = "{\"type\":\"point\",\"step\":1,\"name\":\"loss\",\"value\":3.2}\n{\"type\":\"point\","
             "\"st\n",
     .want = {72, SECTION_NR, false, 0, -1, "", -1, -1, 1}},
};

static void equal(const struct events_said *got, const struct events_said *want, const char *text)
{
    if (got->n_bytes != want->n_bytes || got->section != want->section ||
        got->progressed != want->progressed || got->done != want->done ||
        got->total != want->total || strcmp(got->unit, want->unit) != 0 ||
        got->checkpoint != want->checkpoint || got->resumed_from != want->resumed_from ||
        got->malformed != want->malformed) {
        fail_msg("%s: %zu bytes, section %d, done %lld of %lld, checkpoint %lld, malformed %lld",
                 text, got->n_bytes, (int)got->section, (long long)got->done, (long long)got->total,
                 (long long)got->checkpoint, (long long)got->malformed);
    }
}

static void test_samples(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(samples); i++) {
        CHECK_ROW("%s", samples[i].text);
        struct events_said got;
        events_take(samples[i].text, strlen(samples[i].text), &got);
        equal(&got, &samples[i].want, samples[i].text);
    }
}

/* In whatever portions the bytes come, the same is taken in once. */
static void test_portions(void **state)
{
    (void)state;
    const char *text = "{\"type\":\"section\",\"name\":\"step\"}\ngarbage\n"
                       "{\"type\":\"progress\",\"done\":1}\n{\"type\":\"progress\",\"done\":2}\n";
    size_t len = strlen(text);
    for (size_t cut = 0; cut <= len; cut++) {
        struct events_said a;
        struct events_said b;
        events_take(text, cut, &a);
        assert_true(a.n_bytes <= cut);
        events_take(text + a.n_bytes, len - a.n_bytes, &b);
        assert_int_equal(a.n_bytes + b.n_bytes, len);
        assert_int_equal(a.malformed + b.malformed, 1);
        assert_int_equal(b.progressed ? b.done : a.done, 2);
    }
}

static void test_long_line_breaks_the_protocol(void **state)
{
    (void)state;
    struct strbuf text = STRBUF_INIT;
    struct events_said got;
    strbuf_adds(&text, "{\"type\":\"note\",\"text\":\"");
    while (text.len < LAYOUT_EVENTS_LINE_MAX - 2) {
        strbuf_addc(&text, 'x');
    }
    strbuf_adds(&text, "\"}");
    assert_int_equal(text.len, LAYOUT_EVENTS_LINE_MAX);
    strbuf_addc(&text, '\n');
    events_take(text.buf, text.len, &got);
    assert_int_equal(got.malformed, 0);
    text.buf[text.len - 1] = ' '; /* one byte more, and no end in sight */
    events_take(text.buf, text.len, &got);
    assert_true(got.malformed > CORE_MALFORMED_MAX);
    assert_int_equal(got.n_bytes, text.len);
    strbuf_release(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_samples),
        cmocka_unit_test(test_portions),
        cmocka_unit_test(test_long_line_breaks_the_protocol),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
