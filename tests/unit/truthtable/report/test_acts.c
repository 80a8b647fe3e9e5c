/* What a journal says was done to a program, and by whom: a resumption is a person's, or names what
 * ended the pause. */
/* cmocka.h wants those four before it */
#include <stdlib.h>
#include <string.h>

#include "base/files/file.h"
#include "base/xalloc.h"
#include "tests/unit/check.h"
#include "tests/unit/scratch.h"
#include "truthtable/report/report_acts.h"

#define AT "\"time\":\"2026-11-23T17:16:00.000Z\""

/* "event", status.paused, and what the table says of it. A task's row has no status. */
struct row {
    const char *event;
    int paused;
    const char *reason;
    const char *what;
};

static void add_row(struct strbuf *text, const struct row *r)
{
    strbuf_addf(text, "{\"seq\":1,\"event\":\"%s\"," AT, r->event);
    if (r->reason != NULL) {
        strbuf_addf(text, ",\"detail\":\"%s\"", r->reason);
    }
    if (r->paused >= 0) {
        strbuf_addf(text, ",\"status\":{\"paused\":%d}}\n", r->paused);
    } else {
        strbuf_adds(text, ",\"task\":{\"cell\":\"c\",\"stage\":\"s\",\"cause\":\"stopped\"}}\n");
    }
}

static void expect_acts(const struct row *rows, size_t n)
{
    char *folder = scratch_make();
    struct err err = {0};
    struct strbuf text = STRBUF_INIT;
    struct arena arena;
    struct report_acts acts;
    char *path = path_join(folder, "journal.jsonl");
    for (size_t i = 0; i < n; i++) {
        add_row(&text, &rows[i]);
    }
    assert_int_equal(file_write_atomic(path, text.buf, text.len, 0600, &err), 0);
    arena_init(&arena);
    report_acts_read(&acts, &arena, folder);
    assert_int_equal(acts.n, n);
    for (size_t i = 0; i < n; i++) {
        assert_string_equal(acts.items[i].what, rows[i].what);
        assert_int_equal(acts.items[i].reason == NULL, rows[i].reason == NULL);
    }
    report_acts_release(&acts);
    arena_release(&arena);
    scratch_remove(folder);
    strbuf_release(&text);
    free(path);
}

/* `cancel --all` in slices is neither a pause nor a resumption, also of a program that was paused
 * before and stays so. */
static void test_cancel_of_all(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {"paused", 1, NULL, "paused"},
        {"resumed", 0, NULL, "resumed"},
        {"paused", 128, NULL, "cancel of all begun"},
        {"task_ended", -1, NULL, "stopped"},
        {"resumed", 0, "every task of it is cancelled", "cancel of all ended"},
        {"paused", 1, "warm", "paused"},
        {"paused", 129, "wrong data", "cancel of all begun"},
        {"paused", 131, "no room", "paused"},
        {"resumed", 129, "room", "resumed"},
        {"resumed", 1, "every task of it is cancelled", "cancel of all ended"},
        {"resumed", 0, NULL, "resumed"},
    };
    expect_acts(rows, ARRAY_LEN(rows));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_cancel_of_all)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
