/* Points of attempts into curves, and curves into dots. */

#include <stdlib.h>
#include <string.h>

#include "base/files/file.h"
#include "ctl/text/curves_text.h"
#include "tests/unit/check.h"
#include "tests/unit/scratch.h"

static void write_events(const char *attempt, const char *text)
{
    struct err err;
    char *inner = path_join(scratch_folder, attempt);
    char *path = path_join(inner, "events.jsonl");
    assert_int_equal(dir_make(inner, 0700, &err), 0);
    assert_int_equal(file_write_atomic(path, text, strlen(text), 0600, &err), 0);
    free(path);
    free(inner);
}

#define POINT(step, name, value)                                                                   \
    "{\"type\":\"point\",\"step\":" step ",\"name\":\"" name "\",\"value\":" value "}\n"

/* The second attempt goes on at step 2: what the first did after it is replaced. */
static void test_attempts_are_joined(void **state)
{
    (void)state;
    struct curve_points c = {0};
    write_events("attempt-0001-00000000-0000-4000-8000-00000000000a",
                 POINT("1", "loss", "4") POINT("2", "loss", "3")
                     POINT("3", "loss", "9") "{\"type\":\"note\"}\nnonsense\n");
    write_events("attempt-02-00000000-0000-4000-8000-00000000000b",
                 POINT("3", "loss", "2") POINT("3", "val_loss", "7")
                     POINT("4", "loss", "1") "{\"type\":\"point\",\"step\":5");
    curve_points_read(&c, scratch_folder, "loss");
    assert_int_equal(c.n, 4);
    for (size_t i = 0; i < 4; i++) {
        assert_true(c.xs[i] == (double)(i + 1) && c.ys[i] == (double)(4 - i));
    }
    curve_points_release(&c);
    curve_points_read(&c, "/nowhere", "loss");
    assert_int_equal(c.n, 0);
    curve_points_release(&c);
}

static char *drawn(bool utf8, size_t n)
{
    struct curve_points c[2] = {{0}, {0}};
    struct curve_frame frame = CURVE_FRAME_INIT;
    struct strbuf out = STRBUF_INIT;
    for (int x = 0; x <= 8; x++) {
        curve_points_add(&c[0], x, 8 - x);
        curve_points_add(&c[1], x, 4);
    }
    for (size_t i = 0; i < n; i++) {
        curve_frame_add(&frame, &c[i]);
    }
    frame.columns = 4;
    frame.rows = 2;
    frame.utf8 = utf8;
    curves_draw(&out, &frame, c, n);
    curve_points_release(&c[0]);
    curve_points_release(&c[1]);
    return strbuf_detach(&out);
}

static void test_dots(void **state)
{
    (void)state;
    static const struct {
        bool utf8;
        size_t n;
        const char *text;
    } cases[] = {
        {true, 1,
         "         8 \u2502\u2811\u2884\n"
         "         0 \u2502  \u2811\u2884\n"
         "           0   8\n"},
        {false, 1,
         "         8 |**\n"
         "         0 |  **\n"
         "           0   8\n"},
        {false, 2,
         "         8 |****\n"
         "         0 |  **\n"
         "           0   8\n"},
    };
    for (size_t i = 0; i < 3; i++) {
        char *text = drawn(cases[i].utf8, cases[i].n);
        assert_string_equal(text, cases[i].text);
        free(text);
    }
}

/* One point, equal values, huge values: drawn without leaving the panel. */
static void test_edges(void **state)
{
    (void)state;
    static const double values[][2] = {{1, 1}, {-1e300, 1e300}, {0, 1e-300}};
    for (size_t i = 0; i < 3; i++) {
        struct curve_points c = {0};
        struct curve_frame frame = CURVE_FRAME_INIT;
        struct strbuf out = STRBUF_INIT;
        curve_points_add(&c, 0, values[i][0]);
        curve_points_add(&c, 1e15, values[i][1]);
        curve_frame_add(&frame, &c);
        frame.columns = 20;
        frame.rows = 3;
        frame.utf8 = true;
        curves_draw(&out, &frame, &c, 1);
        assert_non_null(strchr(out.buf, '\n'));
        curve_points_release(&c);
        strbuf_release(&out);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_attempts_are_joined, scratch_enter, scratch_leave),
        cmocka_unit_test(test_dots),
        cmocka_unit_test(test_edges),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
