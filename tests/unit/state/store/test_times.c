/* The times of a journal's rows, whatever the clock does. */
#include <stdlib.h>
#include <string.h>

#include "base/files/file.h"
#include "base/json/json.h"
#include "base/xalloc.h"
#include "state/journal/line.h"
#include "tests/unit/check.h"
#include "tests/unit/state/fixture.h"

static const char *text_member(const cJSON *line, const char *key)
{
    const cJSON *m = json_member(line, key);
    return cJSON_IsString(m) ? m->valuestring : "";
}

/* Each row of the file: not before the one before it; n_behind of them name a clock that was. */
static void check_times(struct fixture *f, size_t n_behind, const char *clock)
{
    struct err err = {0};
    char last[WALL_TEXT_SIZE] = "";
    char *text = fixture_journal(f);
    for (char *at = text, *nl; (nl = strchr(at, '\n')) != NULL; at = nl + 1) {
        cJSON *line = NULL;
        struct state_row row;
        assert_int_equal(json_parse(at, (size_t)(nl - at), &line, &err), 0);
        assert_true(strcmp(text_member(line, "time"), last) >= 0);
        (void)snprintf(last, sizeof(last), "%s", text_member(line, "time"));
        if (json_member(line, "clock") != NULL) {
            n_behind--;
            assert_string_equal(text_member(line, "clock"), clock);
            assert_int_equal(line_to_row(line, 1, &row, &err), 0);
            assert_true(row.behind_ms > 0);
        }
        cJSON_Delete(line);
    }
    free(text);
    assert_int_equal(n_behind, 0);
}

/* Item 31: a clock that was set back for a moment left rows from 1996 for ever. The store keeps
 * the order of the times itself, after being opened again, too. */
static void test_times_never_go_back(void **state)
{
    struct fixture *f = *state;
    struct state_row rows[] = {walker_start(&f->w, 0), walker_start(&f->w, 2),
                               walker_fail(&f->w, 0, TASK_READY, CAUSE_CRASH)};
    rows[1].time.ms = 820454400000;
    fixture_commit(f, rows, ARRAY_LEN(rows));
    check_times(f, 1, "1996-01-01T00:00:00.000Z");
    store_close(f->store);
    fixture_open(f); /* which goes through the chain */
    rows[0] = walker_fail(&f->w, 2, TASK_READY, CAUSE_CRASH);
    rows[0].time.ms = 820454400000;
    fixture_commit(f, rows, 1);
    check_times(f, 2, "1996-01-01T00:00:00.000Z");
    store_close(f->store);
    fixture_open(f);
}

/* Row 1 is not dated before its lock, which another machine's clock may be a little ahead for. */
static void test_first_row_and_lock(void **state)
{
    struct fixture *f = *state;
    struct err err = {0};
    struct state_row row;
    cJSON *line = NULL;
    struct strbuf text = STRBUF_INIT;
    char *folder = xasprintf("%s/programs/late-00000000", f->dir);
    char *path = path_join(folder, "journal.jsonl");
    uint32_t no = 0;
    assert_int_equal(dir_make(folder, 0700, &err), 0);
    assert_int_equal(store_program_create(
                         f->store, f->program,
                         &(struct store_submission){
                             "late-00000000", root_make("late"), {1763694202000}, {1763694262000}},
                         &no, &err),
                     0);
    assert_int_equal(file_read(path, 1 << 20, &text, &err), 0);
    assert_int_equal(json_parse(text.buf, text.len - 1, &line, &err), 0);
    assert_int_equal(line_to_row(line, no, &row, &err), 0);
    assert_int_equal(row.time.ms, 1763694262000);
    assert_int_equal(row.behind_ms, 60000);
    cJSON_Delete(line);
    strbuf_release(&text);
    free(path);
    free(folder);
}

static int take_ran(void *ctx, uint32_t task, const struct attempt_row *a, struct err *err)
{
    int64_t *ran_ms = ctx;
    (void)err;
    ran_ms[task] = a->ran_ms;
    return 0;
}

/* A journal says it only where it is known: older ones do not. */
static void test_how_long_it_ran(void **state)
{
    struct fixture *f = *state;
    struct err err = {0};
    int64_t ran_ms[6] = {0};
    struct state_row rows[] = {walker_start(&f->w, 0), walker_run(&f->w, 0),
                               walker_done(&f->w, 0, "weights"), walker_start(&f->w, 2)};
    rows[2].attempt.ran_ms = 1234;
    fixture_commit(f, rows, ARRAY_LEN(rows));
    assert_int_equal(store_attempts(f->store, f->no, UINT32_MAX, take_ran, ran_ms, &err), 0);
    assert_int_equal(ran_ms[0], 1234);
    assert_int_equal(ran_ms[2], -1);
    char *text = fixture_journal(f);
    assert_non_null(strstr(text, "\"ran_ms\":1234"));
    assert_null(strstr(text, "\"ran_ms\":-1"));
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_times_never_go_back, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_first_row_and_lock, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_how_long_it_ran, fixture_setup, fixture_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
