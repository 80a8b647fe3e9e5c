/* Why a program is paused: each pause has its own reason. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/xalloc.h"
#include "daemon/hosted.h"

struct change {
    enum row_kind kind;
    unsigned paused;
    const char *detail;
    const char *by;
    const char *why;
};

static void same(const char *found, const char *wanted)
{
    assert_string_equal(found == NULL ? "(none)" : found, wanted == NULL ? "(none)" : wanted);
}

static void apply(struct hosted *h, const struct change *c)
{
    struct state_row row = {.kind = c->kind, .detail = c->detail};
    row.status.paused = c->paused;
    hosted_apply(h, &row);
    same(hosted_paused_by(h), c->by);
    same(hosted_paused_why(h), c->why);
}

/* As much of a bundle as a verdict's row looks at. */
static struct bundle *bundle_of_head(const char *head)
{
    struct bundle *b = xcalloc(1, sizeof(*b));
    b->refs = 1;
    b->lock = xcalloc(1, sizeof(*b->lock));
    memcpy(b->lock->head, head, strlen(head) + 1);
    return b;
}

static void test_reasons(void **state)
{
    (void)state;
    static const struct change CHANGES[] = {
        {ROW_PAUSED, PAUSE_DATA, "corpus", "data", "corpus"},
        {ROW_PAUSED, PAUSE_DATA | PAUSE_PERSON, NULL, "user", NULL},
        {ROW_PAUSED, PAUSE_DATA | PAUSE_PERSON | PAUSE_DISK, "full", "no_space", "full"},
        {ROW_RESUMED, PAUSE_DATA | PAUSE_PERSON, "room", "user", NULL},
        {ROW_RESUMED, PAUSE_DATA, NULL, "data", "corpus"},
        {ROW_PAUSED, PAUSE_DATA | PAUSE_HOST, "no shim", "host", "no shim"},
        {ROW_PAUSED, PAUSE_DATA | PAUSE_LOCK, "prior", "lock", "prior"},
        {ROW_RESUMED, 0, NULL, NULL, NULL},
        {ROW_PAUSED, PAUSE_DATA, "other", "data", "other"},
        {ROW_RESUMED, 0, NULL, NULL, NULL},
        {ROW_VERDICT_REFUSED, 0, "floor", NULL, "floor"},
        {ROW_VERDICT, 0, NULL, NULL, NULL},
    };
    struct hosted *h = hosted_new(1, "/nowhere", "little-00000000");
    h->bundle = bundle_of_head("5a");
    for (size_t i = 0; i < ARRAY_LEN(CHANGES); i++) {
        apply(h, &CHANGES[i]);
    }
    hosted_set_paused_why(h, PAUSE_DATA, "of no pause");
    same(hosted_paused_why(h), NULL);
    assert_string_equal(h->verdict_head, "5a");
    hosted_free(h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_reasons)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
