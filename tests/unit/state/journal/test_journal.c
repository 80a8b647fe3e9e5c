/* The chain and the cursor of state/journal/: what a row follows from, and where a journal ends. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/files/file.h"
#include "base/json/json.h"
#include "base/xalloc.h"
#include "state/columns.h"
#include "state/journal/cursor.h"
#include "state/journal/line.h"
#include "tests/unit/check.h"

/* Appends n rows to text, each with a detail of `size` bytes. */
static void append_rows(struct journal_chain *chain, struct strbuf *text, int n, size_t size)
{
    struct err err = {0};
    char *detail = xcalloc(size + 1, 1);
    memset(detail, 'x', size);
    for (int i = 0; i < n; i++) {
        cJSON *row = json_object();
        json_put_string(row, "event", "paused");
        json_put_string(row, "detail", detail);
        assert_int_equal(journal_seal(chain, row, text, &err), 0);
        strbuf_addc(text, '\n');
        cJSON_Delete(row);
    }
    free(detail);
}

static int count(void *ctx, const struct journal_row *row, struct err *err)
{
    int *n = ctx;
    (void)err;
    assert_int_equal(row->seq, ++*n);
    return 0;
}

static int replay(const char *text, size_t len, struct journal_chain *chain, int *n,
                  int64_t *n_bytes, struct err *err)
{
    struct journal_cursor c;
    *chain = (struct journal_chain){0};
    *n = 0;
    journal_cursor_init(&c, text, len);
    int rc = journal_replay(&c, chain, count, n, err);
    *n_bytes = c.n_bytes;
    journal_cursor_release(&c);
    return rc;
}

static void test_sealed_rows_replay(void **state)
{
    (void)state;
    struct journal_chain written = {0};
    struct journal_chain read;
    struct strbuf text = STRBUF_INIT;
    struct err err = {0};
    int64_t n_bytes = 0;
    int n = 0;
    append_rows(&written, &text, 3, 5);
    assert_int_equal(replay(text.buf, text.len, &read, &n, &n_bytes, &err), 0);
    assert_int_equal(n, 3);
    assert_int_equal(n_bytes, text.len);
    assert_int_equal(read.n_rows, 3);
    assert_true(digest_equal(&read.head, &written.head));
    strbuf_release(&text);
}

/* Wherever the last line is torn, the rows before it are all that there is. */
static void test_torn_tail_is_left_out(void **state)
{
    (void)state;
    struct journal_chain chain = {0};
    struct strbuf text = STRBUF_INIT;
    struct err err = {0};
    append_rows(&chain, &text, 2, 5);
    size_t whole = text.len;
    append_rows(&chain, &text, 1, 5);
    for (size_t len = whole; len < text.len; len++) {
        int64_t n_bytes = 0;
        int n = 0;
        assert_int_equal(replay(text.buf, len, &chain, &n, &n_bytes, &err), 0);
        assert_int_equal(n, 2);
        assert_int_equal(n_bytes, whole);
    }
    strbuf_release(&text);
}

/* A byte changed, a row left out, a row doubled: the chain ends at the row before. */
static void test_what_was_changed_does_not_chain(void **state)
{
    (void)state;
    struct journal_chain chain = {0};
    struct strbuf text = STRBUF_INIT;
    struct err err = {0};
    append_rows(&chain, &text, 3, 1);
    const size_t row_len = text.len / 3;
    int64_t n_bytes = 0;
    int n = 0;
    char *detail = memchr(text.buf + row_len, 'x', row_len);
    *detail = 'y';
    assert_int_equal(replay(text.buf, text.len, &chain, &n, &n_bytes, &err), ERR_CORRUPT);
    assert_int_equal(n, 1);
    assert_int_equal(chain.n_rows, 1);
    assert_string_equal(err.msg, "the chain does not hold at row 2");
    *detail = 'x';
    assert_int_equal(replay(text.buf + row_len, text.len - row_len, &chain, &n, &n_bytes, &err),
                     ERR_CORRUPT);
    assert_int_equal(n, 0);
    memcpy(text.buf + row_len, text.buf, row_len);
    assert_int_equal(replay(text.buf, text.len, &chain, &n, &n_bytes, &err), ERR_CORRUPT);
    assert_int_equal(n, 1);
    strbuf_release(&text);
}

/* The hash is that of the canonical text: other white space changes the form alone. */
static void test_form_and_hash_are_told_apart(void **state)
{
    (void)state;
    struct journal_chain written = {0};
    struct journal_chain chain = {0};
    struct strbuf text = STRBUF_INIT;
    struct strbuf scratch = STRBUF_INIT;
    struct journal_link link;
    struct err err = {0};
    cJSON *json = NULL;
    append_rows(&written, &text, 1, 5);
    text.buf[text.len - 1] = ' ';
    assert_int_equal(json_parse(text.buf, text.len, &json, &err), 0);
    struct journal_line line = {text.buf, text.len, json};
    assert_int_equal(journal_extend(&chain, &line, &link, &scratch, &err), JOURNAL_HOLDS);
    assert_false(link.is_canonical);
    assert_true(journal_follows(&(struct digest){{0}}, text.buf, text.len, link.said, &scratch));
    assert_false(journal_follows(&link.hash, text.buf, text.len, link.said, &scratch));
    assert_int_equal(journal_extend(&chain, &line, &link, &scratch, &err), JOURNAL_NUMBER);
    line.len--;
    chain.n_rows = 0;
    assert_int_equal(journal_extend(&chain, &line, &link, &scratch, &err), JOURNAL_HASH);
    assert_true(link.is_canonical);
    cJSON_DeleteItemFromObject(json, "hash");
    assert_int_equal(journal_extend(&chain, &line, &link, &scratch, &err), JOURNAL_MEMBER);
    cJSON_Delete(json);
    strbuf_release(&scratch);
    strbuf_release(&text);
}

/* Lines that are longer than a block, and lines that cross one. */
static void test_file_is_read_as_memory_is(void **state)
{
    (void)state;
    struct journal_chain chain = {0};
    struct strbuf text = STRBUF_INIT;
    struct err err = {0};
    char path[] = "/tmp/prereg-test-journal-XXXXXX";
    struct journal_cursor file;
    struct journal_cursor memory;
    append_rows(&chain, &text, 300, 500);
    append_rows(&chain, &text, 2, 200000);
    append_rows(&chain, &text, 1, 5);
    strbuf_adds(&text, "torn");
    int fd = mkstemp(path);
    assert_int_equal(file_write_all(fd, text.buf, text.len, &err), 0);
    assert_int_equal(close(fd), 0);
    assert_int_equal(journal_cursor_open(&file, path, &err), 0);
    journal_cursor_init(&memory, text.buf, text.len);
    const char *a = NULL;
    const char *b = NULL;
    size_t n_a = 0;
    size_t n_b = 0;
    int n = -1;
    do {
        assert_int_equal(journal_cursor_next(&file, &a, &n_a, &err), 0);
        assert_int_equal(journal_cursor_next(&memory, &b, &n_b, &err), 0);
        assert_int_equal(n_a, n_b);
        assert_int_equal(a == NULL, b == NULL);
        assert_true(a == NULL || memcmp(a, b, n_a) == 0);
        n++;
    } while (a != NULL);
    assert_int_equal(n, 303);
    assert_int_equal(file.n_bytes, text.len - 4);
    assert_true(journal_cursor_is_torn(&file) && journal_cursor_is_torn(&memory));
    journal_cursor_release(&memory);
    journal_cursor_release(&file);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(journal_cursor_open(&file, path, &err), ERR_NOT_FOUND);
    journal_cursor_release(&file);
    strbuf_release(&text);
}

static void test_too_long_a_row(void **state)
{
    (void)state;
    struct journal_chain chain = {0};
    struct strbuf text = STRBUF_INIT;
    struct err err = {0};
    struct journal_cursor c;
    const char *line = NULL;
    size_t len = 0;
    char *long_one = xcalloc(JOURNAL_LINE_MAX + 2, 1);
    memset(long_one, 'x', JOURNAL_LINE_MAX + 1);
    cJSON *row = json_object();
    json_put_string(row, "detail", long_one);
    assert_int_equal(journal_seal(&chain, row, &text, &err), ERR_RANGE);
    assert_int_equal(chain.n_rows, 0);
    assert_int_equal(text.len, 0);
    journal_cursor_init(&c, long_one, JOURNAL_LINE_MAX + 1);
    assert_int_equal(journal_cursor_next(&c, &line, &len, &err), ERR_RANGE);
    journal_cursor_release(&c);
    cJSON_Delete(row);
    free(long_one);
    strbuf_release(&text);
}

static void test_kind_of_a_line(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        enum row_kind kind;
    } cases[] = {
        {"{\"detail\":\"\\\"event\\\":\\\"verdict\\\"\",\"event\":\"paused\"}", ROW_PAUSED},
        {"{\"amendment\":{\"number\":1},\"event\":\"amended\"}", ROW_AMENDED},
        {"{\"event\": \"amended\"}", ROW_KIND_NR},
        {"{\"event\":\"amen", ROW_KIND_NR},
        {"{\"event\":\"nothing that is known, and long\"}", ROW_KIND_NR},
        {"", ROW_KIND_NR},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        if (line_kind(cases[i].text, strlen(cases[i].text)) != cases[i].kind) {
            fail_msg("line_kind of %s", cases[i].text);
        }
    }
}

/* Another number in every member. */
static void fill(const struct row_columns *columns, void *row)
{
    for (size_t i = 0; i < columns->n; i++) {
        if (column_is_int(&columns->items[i])) {
            const bool is_time = columns->items[i].type == COLUMN_TIME;
            column_set_int(&columns->items[i], row, (is_time ? 1763694202123 : 3) + (int64_t)i);
        }
    }
}

static void compare(const struct row_columns *columns, const void *a, const void *b)
{
    for (size_t i = 0; i < columns->n; i++) {
        const struct row_column *c = &columns->items[i];
        char hex_a[DIGEST_HEX_SIZE];
        char hex_b[DIGEST_HEX_SIZE];
        const bool same = column_is_int(c)
                              ? column_int(c, a) == column_int(c, b)
                              : strcmp(column_text(c, a, hex_a), column_text(c, b, hex_b)) == 0;
        if (!same && strcmp(c->name, "linked") != 0) { /* a link is a file: not journalled */
            fail_msg("%s of %s is another one", c->name, columns->table);
        }
    }
}

/* A row that is written and read is the same in every column. */
static void test_columns_survive(void **state)
{
    (void)state;
    struct state_row row = {.kind = ROW_ATTEMPT_ENDED};
    struct state_row read;
    struct err err = {0};
    fill(&TASK_COLUMNS, &row.after);
    row.after.state = TASK_BLOCKED;
    row.after.cause = CAUSE_CRASH;
    row.after.ending = CAUSE_CANCELLED;
    row.attempt = (struct attempt_row){.state = ATTEMPT_ENDED,
                                       .id = "00000000-0000-4000-8000-000000000001",
                                       .cause = CAUSE_CRASH,
                                       .reason = END_SIGNALLED,
                                       .section = SECTION_EVAL};
    fill(&ATTEMPT_COLUMNS, &row.attempt);
    cJSON *line = line_from_row(&row, "cell", "stage");
    assert_int_equal(line_to_row(line, 1, &read, &err), 0);
    compare(&TASK_COLUMNS, &row.after, &read.after);
    compare(&ATTEMPT_COLUMNS, &row.attempt, &read.attempt);
    cJSON_Delete(line);
    row = (struct state_row){.kind = ROW_VERDICT};
    fill(&PROGRAM_COLUMNS, &row.status);
    (void)snprintf(row.status.outcome, sizeof(row.status.outcome), "up");
    row.status.verdict_digest = digest_bytes("x", 1);
    line = line_from_row(&row, NULL, NULL);
    assert_int_equal(line_to_row(line, 1, &read, &err), 0);
    compare(&PROGRAM_COLUMNS, &row.status, &read.status);
    cJSON_Delete(line);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sealed_rows_replay),
        cmocka_unit_test(test_torn_tail_is_left_out),
        cmocka_unit_test(test_what_was_changed_does_not_chain),
        cmocka_unit_test(test_form_and_hash_are_told_apart),
        cmocka_unit_test(test_file_is_read_as_memory_is),
        cmocka_unit_test(test_too_long_a_row),
        cmocka_unit_test(test_kind_of_a_line),
        cmocka_unit_test(test_columns_survive),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
