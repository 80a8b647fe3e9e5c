/* The stream's ring, kept answers and the groups of curves. */
#include <stdlib.h>
#include <string.h>

#include "base/json/json.h"
#include "base/xalloc.h"
#include "daemon/http/curve_groups.h"
#include "daemon/http/kept.h"
#include "daemon/http/ring.h"
#include "tests/unit/check.h"

static struct shared_text *text_of(size_t len)
{
    struct strbuf sb = STRBUF_INIT;
    for (size_t i = 0; i < len; i++) {
        strbuf_addc(&sb, 'x');
    }
    return shared_text_make(&sb);
}

/* The oldest are dropped by number and by bytes; who is below the floor starts again. */
static void test_ring(void **state)
{
    (void)state;
    struct ring r;
    uint64_t no = 0;
    ring_init(&r, 10);
    assert_true(ring_reaches(&r, 10));
    assert_false(ring_reaches(&r, 9));
    assert_null(ring_next(&r, 10, &no));
    for (uint64_t i = 0; i < RING_MESSAGES_MAX + 3; i++) {
        ring_push(&r, 11 + 2 * i, text_of(1 + i));
    }
    assert_int_equal(r.n, RING_MESSAGES_MAX);
    assert_int_equal(r.floor, 15);
    assert_false(ring_reaches(&r, 14));
    assert_int_equal(ring_next(&r, 15, &no)->len, 4);
    assert_int_equal(no, 17);
    assert_int_equal(ring_next(&r, 16, &no)->len, 4);
    struct shared_text *kept = shared_text_ref(ring_next(&r, 17, &no));
    ring_push(&r, 1000, text_of(RING_BYTES_MAX + 1)); /* alone */
    assert_int_equal(r.n, 1);
    assert_int_equal(kept->refs, 1);
    assert_int_equal(ring_next(&r, 999, &no)->len, RING_BYTES_MAX + 1);
    assert_null(ring_next(&r, 1000, &no));
    shared_text_unref(kept);
    ring_release(&r);
}

static void expect_json(cJSON *v, const char *wanted)
{
    struct strbuf text = STRBUF_INIT;
    struct err err;
    assert_int_equal(json_line(v, &text, &err), 0);
    assert_string_equal(text.buf, wanted);
    strbuf_release(&text);
    cJSON_Delete(v);
}

/* A group has its cells' mean, least and greatest; thinning hides no excursion. */
static void test_groups(void **state)
{
    (void)state;
    struct curve_cell cells[3] = {{.arm = 0}, {.arm = 1}, {.arm = 0}};
    for (int i = 0; i < 8; i++) {
        curve_points_add(&cells[0].points, i, i == 5 ? 100 : i);
        if (i < 4) {
            curve_points_add(&cells[2].points, i, i + 2);
        }
    }
    curve_points_add(&cells[0].points, 7, 9); /* repeated after a checkpoint */
    assert_int_equal(cells[0].points.n, 8);
    expect_json(
        curve_arm_json(cells, 3, 0, 8),
        "{\"n_cells\":2,\"points\":[[0,1,0,2,2],[1,2,1,3,2],[2,3,2,4,2],[3,4,3,5,2],[4,4,4,4,1],"
        "[5,100,100,100,1],[6,6,6,6,1],[7,9,9,9,1]]}");
    expect_json(curve_arm_json(cells, 3, 0, 2),
                "{\"n_cells\":2,\"points\":[[3,2.5,0,5,2],[7,29.75,4,100,1]]}");
    assert_null(curve_arm_json(cells, 3, 1, 2));
    expect_json(curve_points_json(&cells[0].points, 4), "[[0,0],[3,3],[4,4],[5,100]]");
    for (size_t i = 0; i < 3; i++) {
        curve_points_release(&cells[i].points);
    }
}

/* The extremes stay, in their order; what a resumed attempt repeats is found in what was thinned.
 */
static void test_thin(void **state)
{
    (void)state;
    struct curve_points c = {0};
    for (int i = 0; i < 1000; i++) {
        curve_points_add(&c, i, i == 501 ? 9 : i == 502 ? -9 : i % 3);
        if (c.n >= 64) {
            curve_points_thin(&c);
        }
    }
    assert_true(c.n < 64 && c.n > 15);
    double low = 0;
    double high = 0;
    for (size_t i = 0; i < c.n; i++) {
        assert_true(i == 0 || (c.xs[i] > c.xs[i - 1] && c.xs[i] - c.xs[i - 1] < 150));
        low = c.ys[i] < low ? c.ys[i] : low;
        high = c.ys[i] > high ? c.ys[i] : high;
    }
    assert_true(low == -9 && high == 9);
    curve_points_add(&c, 100, 5);
    assert_true(c.n > 1 && c.xs[c.n - 1] == 100 && c.xs[c.n - 2] < 100);
    curve_points_release(&c);
}

static const char *found_when(const struct kept *k, const char *question, bool final,
                              uint64_t version, int64_t now)
{
    const struct kept_answer *a = kept_find(k, question, version, final, now);
    return a == NULL ? NULL : a->bytes;
}

static const char *found(const struct kept *k, const char *question, uint64_t version, int64_t now)
{
    return found_when(k, question, true, version, now);
}

static void add_kept(struct kept *k, const char *question, const char *bytes, bool final)
{
    const struct kept_new made = {.question = question,
                                  .bytes = bytes,
                                  .len = strlen(bytes) + 1,
                                  .version = 7,
                                  .final = final,
                                  .began_ns = 100};
    kept_add(k, &made, 110);
}

/* While the program runs, 20 times as long as it took; afterwards until it changes; the newest. */
static void test_kept(void **state)
{
    (void)state;
    struct kept k = {.next = 0};
    assert_null(found(&k, "a", 7, 0));
    add_kept(&k, "a", "old", false);
    add_kept(&k, "a", "new", false);
    assert_string_equal(found_when(&k, "a", false, 8, 309), "new");
    assert_null(found_when(&k, "a", false, 7, 310));
    assert_null(found_when(&k, "b", false, 7, 110));
    assert_null(found(&k, "a", 7, 110)); /* it has ended meanwhile */
    add_kept(&k, "a", "last", true);
    assert_null(found_when(&k, "a", false, 7, 110));
    assert_string_equal(found(&k, "a", 7, INT64_MAX), "last");
    assert_null(found(&k, "a", 8, 110));
    add_kept(&k, "b", "b", true);
    add_kept(&k, "c", "c", true);
    add_kept(&k, "d", "d", true);
    assert_string_equal(found(&k, "a", 7, 0), "last");
    add_kept(&k, "e", "e", true);
    assert_null(found(&k, "a", 7, 0));
    assert_string_equal(found(&k, "b", 7, 0), "b");
    char *large = xcalloc(KEPT_BYTES_MAX + 1, 1);
    const struct kept_new made = {.question = "f", .bytes = large, .len = KEPT_BYTES_MAX + 1};
    kept_add(&k, &made, 1);
    assert_null(found(&k, "f", 0, 0));
    free(large);
    const struct kept_new slow = {.question = "s", .bytes = "s", .len = 2};
    const int64_t hour_ns = 3600000000000;
    kept_add(&k, &slow, hour_ns); /* a minute at most */
    assert_string_equal(found_when(&k, "s", false, 0, hour_ns + KEPT_REST_NS - 1), "s");
    assert_null(found_when(&k, "s", false, 0, hour_ns + KEPT_REST_NS));
    kept_release(&k);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_ring), cmocka_unit_test(test_kept),
                                       cmocka_unit_test(test_groups), cmocka_unit_test(test_thin)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
