#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files/file.h"
#include "base/json/json.h"
#include "base/xalloc.h"
#include "state/ownership/work_owner.h"
#include "state/store/internal.h"
#include "tests/unit/check.h"
#include "tests/unit/state/fixture.h"

static void write_journal(struct fixture *f, const char *text, size_t len)
{
    struct err err = {0};
    char *path = scratch_path(f->dir, "journal.jsonl");
    assert_int_equal(file_write_atomic(path, text, len, 0600, &err), 0);
    free(path);
}

/* One task through a crash and to its end, the other waiting for it. */
static void run_a_little(struct fixture *f)
{
    struct state_row rows[] = {
        walker_start(&f->w, 0),
        walker_run(&f->w, 0),
        walker_fail(&f->w, 0, TASK_READY, CAUSE_CRASH),
        walker_start(&f->w, 0),
        walker_run(&f->w, 0),
        walker_done(&f->w, 0, "weights"),
        walker_ready(&f->w, 1),
    };
    fixture_commit(f, rows, ARRAY_LEN(rows));
}

static void test_create(void **state)
{
    struct fixture *f = *state;
    struct err err = {0};
    struct arena texts;
    struct store_program p;
    struct task_row *rows = NULL;
    size_t n = 0;
    uint32_t no = 0;
    struct digest root = root_make("root");
    arena_init(&texts);
    assert_int_equal(store_program_create(f->store, f->program,
                                          &(struct store_submission){SCRATCH_ID, root, {0}, {0}},
                                          &no, &err),
                     ERR_EXISTS);
    assert_int_equal(store_program_find(f->store, "little", &texts, &p, &err), 0);
    assert_int_equal(p.no, f->no);
    assert_int_equal(p.n_cells, 3);
    assert_true(digest_equal(&p.root, &root));
    assert_int_equal(store_program_find(f->store, "little-0", &texts, &p, &err), 0);
    assert_int_equal(store_program_find(f->store, NULL, &texts, &p, &err), 0);
    assert_int_equal(store_program_find(f->store, "large", &texts, &p, &err), ERR_NOT_FOUND);
    assert_int_equal(store_task_rows(f->store, f->no, &rows, &n, &err), 0);
    assert_int_equal(n, 6);
    assert_int_equal(rows[0].state, TASK_READY);
    assert_int_equal(rows[1].state, TASK_WAITING);
    assert_int_equal(rows[1].best_done, -1);
    free(rows);
    arena_release(&texts);
}

/* Recomputes the whole chain of journal.jsonl from the documented rule. */
/* By the letter of docs/receipts.md: not by the text that the store cuts. */
static struct digest hash_of_row(const struct digest *prev, cJSON *line)
{
    struct err err = {0};
    struct strbuf text = STRBUF_INIT;
    char hex[DIGEST_HEX_SIZE];
    cJSON_DeleteItemFromObjectCaseSensitive(line, "hash");
    digest_hex(prev, hex);
    strbuf_adds(&text, hex);
    assert_int_equal(json_canonical(line, &text, &err), 0);
    struct digest d = digest_bytes(text.buf, text.len);
    strbuf_release(&text);
    return d;
}

static int64_t check_chain(struct fixture *f)
{
    struct err err = {0};
    struct digest prev = {{0}};
    int64_t n = 0;
    char *text = fixture_journal(f);
    for (char *at = text, *nl; (nl = strchr(at, '\n')) != NULL; at = nl + 1) {
        cJSON *line = NULL;
        const char *hash = NULL;
        char hex[DIGEST_HEX_SIZE];
        assert_int_equal(json_parse(at, (size_t)(nl - at), &line, &err), 0);
        assert_int_equal(json_get_string(line, "hash", &hash, &err), 0);
        char *said = xstrdup(hash);
        prev = hash_of_row(&prev, line);
        digest_hex(&prev, hex);
        assert_string_equal(hex, said);
        free(said);
        n++;
        cJSON_Delete(line);
    }
    free(text);
    struct digest head;
    int64_t n_rows = 0;
    assert_int_equal(store_journal_head(f->store, f->no, &head, &n_rows, &err), 0);
    assert_int_equal(n_rows, n);
    assert_true(digest_equal(&head, &prev));
    return n;
}

static void test_journal_chain(void **state)
{
    struct fixture *f = *state;
    run_a_little(f);
    assert_int_equal(check_chain(f),
                     1 + 4); /* submitted; two starts and two ends: running and ready are no rows */
    char *text = fixture_journal(f);
    assert_non_null(strstr(
        text, "\"root\":\"4813494d137e1631bba301d5acab6e7bb7aa74ce1185d456565ef51d737677b2\""));
    assert_non_null(strstr(text, "\"cell\":\"seed=1\""));
    free(text);
}

static int note_ending(void *ctx, uint32_t attempt_no, const char *detail, struct err *err)
{
    (void)err;
    strbuf_addf(ctx, "%u %s\n", attempt_no, detail);
    return 0;
}

/* What the journal says in words of one task's attempts, and of no other's. */
static void test_endings(void **state)
{
    struct fixture *f = *state;
    struct err err = {0};
    struct strbuf out = STRBUF_INIT;
    struct state_row rows[] = {walker_start(&f->w, 0),
                               walker_run(&f->w, 0),
                               walker_fail(&f->w, 0, TASK_READY, CAUSE_CRASH),
                               walker_start(&f->w, 2),
                               walker_run(&f->w, 2),
                               walker_done(&f->w, 2, "{}")};
    fixture_commit(f, rows, ARRAY_LEN(rows));
    assert_int_equal(store_endings(f->store, f->no, 0, note_ending, &out, &err), 0);
    assert_string_equal(out.buf, "1 killed by signal 9 ??\n");
    assert_int_equal(store_endings(f->store, f->no, 2, note_ending, &out, &err), 0);
    assert_string_equal(out.buf, "1 killed by signal 9 ??\n");
    strbuf_release(&out);
}

static int count_work(void *ctx)
{
    (*(int64_t *)ctx)++;
    return 0;
}

/* The daemon's loop waits meanwhile: what is done for one task hardly grows with the journal. */
static void test_endings_of_a_long_journal(void **state)
{
    enum { N_OF_OTHERS = 2500, N_BETWEEN = 500 };
    struct fixture *f = *state;
    struct err err = {0};
    struct strbuf out = STRBUF_INIT;
    struct state_row *rows = xcalloc(6 * N_OF_OTHERS, sizeof(*rows));
    size_t n = 0;
    int64_t work = 0;
    for (int i = 0; i < N_OF_OTHERS; i++) {
        for (uint32_t task = i % N_BETWEEN == N_BETWEEN / 2 ? 0 : 2; task <= 2; task += 2) {
            rows[n++] = walker_start(&f->w, task);
            rows[n++] = walker_run(&f->w, task);
            rows[n++] = walker_fail(&f->w, task, TASK_READY, CAUSE_CRASH);
        }
    }
    fixture_commit(f, rows, n);
    free(rows);
    sqlite3_progress_handler(f->store->db, 100, count_work, &work);
    assert_int_equal(store_endings(f->store, f->no, 0, note_ending, &out, &err), 0);
    sqlite3_progress_handler(f->store->db, 0, NULL, NULL);
    assert_string_equal(out.buf, "1 killed by signal 9 ??\n2 killed by signal 9 ??\n"
                                 "3 killed by signal 9 ??\n4 killed by signal 9 ??\n"
                                 "5 killed by signal 9 ??\n");
    assert_in_range(work, 1, 100); /* hundreds of SQLite's steps; 629 when all rows are read */
    strbuf_release(&out);
}

static int note_pause(void *ctx, unsigned paused, const char *why, struct err *err)
{
    (void)err;
    strbuf_addf(ctx, "%u %s\n", paused, why == NULL ? "-" : why);
    return 0;
}

/* Pauses and their reasons, in order; of no row but theirs. */
static void test_pauses(void **state)
{
    struct fixture *f = *state;
    struct err err = {0};
    struct strbuf out = STRBUF_INIT;
    struct program_row status = {0};
    struct state_row rows[6] = {walker_start(&f->w, 0), walker_run(&f->w, 0),
                                walker_fail(&f->w, 0, TASK_READY, CAUSE_CRASH)};
    rows[2].detail = "it said \"event\":\"paused\"";
    status.paused = PAUSE_PERSON;
    rows[3] = program_row_make(&f->w, ROW_PAUSED, status);
    status.paused = PAUSE_PERSON | PAUSE_DATA;
    rows[4] = program_row_make(&f->w, ROW_PAUSED, status);
    rows[4].detail = "corpus is not there";
    status.paused = PAUSE_PERSON;
    rows[5] = program_row_make(&f->w, ROW_RESUMED, status);
    fixture_commit(f, rows, ARRAY_LEN(rows));
    status = (struct program_row){.paused = PAUSE_FAILURES};
    struct state_row more[2] = {program_row_make(&f->w, ROW_PAUSED, status)};
    status = (struct program_row){.failures_accepted = true};
    more[1] = program_row_make(&f->w, ROW_RESUMED, status);
    fixture_commit(f, more, ARRAY_LEN(more));
    assert_int_equal(store_pauses(f->store, f->no, note_pause, &out, &err), 0);
    assert_string_equal(out.buf, "1 -\n9 corpus is not there\n1 -\n64 -\n0 -\n");
    struct store_program p;
    struct arena texts;
    arena_init(&texts);
    assert_int_equal(store_program_find(f->store, "little", &texts, &p, &err), 0);
    assert_true(p.status.failures_accepted && p.status.paused == 0);
    arena_release(&texts);
    strbuf_release(&out);
}

static void test_append_only(void **state)
{
    struct fixture *f = *state;
    struct err err = {0};
    run_a_little(f);
    assert_int_not_equal(sql_exec(f->store->db, "UPDATE journal SET line='{}' WHERE seq=2", &err),
                         0);
    assert_non_null(strstr(err.msg, "append-only"));
    assert_int_not_equal(sql_exec(f->store->db, "DELETE FROM journal WHERE seq=2", &err), 0);
    assert_int_not_equal(
        sql_exec(f->store->db, "INSERT INTO journal VALUES(1, 9, 'x', '{}')", &err), 0);
}

static void test_illegal_moves(void **state)
{
    struct fixture *f = *state;
    struct err err = {0};
    run_a_little(f);
    char *before = dump(f->store, f->no);
    struct walker saved = f->w;
    struct state_row again = walker_start(&f->w, 0); /* it is done */
    assert_int_equal(commit_rows(f->store, &again, 1, &err), ERR_CORRUPT);
    f->w = saved;
    f->w.tasks[0].state = TASK_READY; /* what its maker believes is not what is stored */
    again = walker_start(&f->w, 0);
    assert_int_equal(commit_rows(f->store, &again, 1, &err), ERR_CORRUPT);
    f->w = saved;
    struct state_row skip = walker_done(&f->w, 2, "x"); /* from ready */
    assert_int_equal(commit_rows(f->store, &skip, 1, &err), ERR_CORRUPT);
    f->w = saved;
    struct state_row wrong = walker_start(&f->w, 2);
    wrong.task = 77;
    assert_int_equal(commit_rows(f->store, &wrong, 1, &err), ERR_CORRUPT);
    char *after = dump(f->store, f->no);
    assert_string_equal(before, after);
    (void)check_chain(f);
    free(before);
    free(after);
}

/* A transaction whose second row is refused leaves nothing of its first behind, in neither place.
 */
static void test_all_or_nothing(void **state)
{
    struct fixture *f = *state;
    struct err err = {0};
    char *before = fixture_journal(f);
    struct state_row rows[] = {walker_start(&f->w, 0), walker_start(&f->w, 2)};
    rows[1].from = TASK_WAITING;
    assert_int_equal(commit_rows(f->store, rows, 2, &err), ERR_CORRUPT);
    char *after = fixture_journal(f);
    assert_string_equal(before, after);
    walker_init(&f->w, f->store, f->no, 6);
    run_a_little(f);
    (void)check_chain(f);
    free(before);
    free(after);
}

static void test_two_owners(void **state)
{
    struct fixture *f = *state;
    struct store *other = NULL;
    struct err err = {0};
    assert_int_equal(store_open(f->dir, STORE_OWNER, &other, &err), ERR_BUSY);
    assert_null(other);
    assert_int_equal(store_open(f->dir, STORE_READER, &other, &err), 0);
    run_a_little(f);
    char *theirs = dump(other, f->no);
    char *ours = dump(f->store, f->no);
    assert_string_equal(theirs, ours);
    assert_int_not_equal(sql_exec(other->db, "UPDATE tasks SET state='done'", &err), 0);
    free(theirs);
    free(ours);
    store_close(other);
}

/* The lock's file is gone: the folder is locked all the same. */
static void test_lock_deleted(void **state)
{
    struct fixture *f = *state;
    struct store *second = NULL;
    struct err err = {0};
    char *lock = path_join(f->dir, "state.lock");
    assert_int_equal(unlink(lock), 0);
    assert_int_equal(store_open(f->dir, STORE_OWNER, &second, &err), ERR_BUSY);
    assert_non_null(strstr(err.msg, "state.lock was deleted"));
    free(lock);
}

static void test_not_ours_alone(void **state)
{
    struct fixture *f = *state;
    struct err err = {0};
    char *database = path_join(f->dir, "preregd.db");
    char *moved = path_join(f->dir, "moved.db");
    store_close(f->store);
    f->store = NULL;
    assert_int_equal(chmod(f->dir, 0770), 0);
    assert_int_equal(store_open(f->dir, STORE_OWNER, &f->store, &err), ERR_REFUSED);
    assert_non_null(strstr(err.msg, "0770"));
    assert_int_equal(chmod(f->dir, 0700), 0);
    assert_int_equal(rename(database, moved), 0);
    assert_int_equal(symlink(moved, database), 0);
    assert_int_not_equal(store_open(f->dir, STORE_OWNER, &f->store, &err), 0);
    assert_int_equal(unlink(database), 0);
    assert_int_equal(rename(moved, database), 0);
    fixture_open(f);
    free(moved);
    free(database);
}

static void test_other_version(void **state)
{
    struct fixture *f = *state;
    struct err err = {0};
    assert_int_equal(sql_exec(f->store->db, "PRAGMA user_version=99", &err), 0);
    store_close(f->store);
    f->store = NULL;
    assert_int_equal(store_open(f->dir, STORE_OWNER, &f->store, &err), ERR_VERSION);
    assert_non_null(strstr(err.msg, "another version"));
    assert_int_equal(store_open(f->dir, STORE_READER, &f->store, &err), ERR_VERSION);
}

static void overwrite(const char *path, off_t at, size_t n)
{
    char zeros[8192] = {0};
    FILE *file = fopen(path, "r+");
    assert_non_null(file);
    assert_int_equal(fseeko(file, at, SEEK_SET), 0);
    assert_int_equal(fwrite(zeros, 1, n, file), n);
    assert_int_equal(fclose(file), 0);
}

static void test_damaged_database(void **state)
{
    struct fixture *f = *state;
    struct err err = {0};
    char *path = path_join(f->dir, "preregd.db");
    run_a_little(f);
    store_close(f->store);
    f->store = NULL;
    overwrite(path, 0, 4096);
    assert_int_equal(store_open(f->dir, STORE_OWNER, &f->store, &err), ERR_CORRUPT);
    assert_non_null(strstr(err.msg, "preregctl rebuild"));
    free(path);
}

static void test_damaged_page(void **state)
{
    struct fixture *f = *state;
    struct err err = {0};
    char *path = path_join(f->dir, "preregd.db");
    run_a_little(f);
    store_close(f->store);
    f->store = NULL;
    overwrite(path, 4096, 8192);
    assert_int_equal(store_open(f->dir, STORE_OWNER, &f->store, &err), ERR_CORRUPT);
    free(path);
}

/* A page that nothing reads at opening. */
static void test_damaged_far_page(void **state)
{
    struct fixture *f = *state;
    struct err err = {0};
    int64_t page = 0;
    char *path = path_join(f->dir, "preregd.db");
    run_a_little(f);
    assert_int_equal(sql_int(f->store->db, "SELECT rootpage FROM sqlite_master WHERE name='stages'",
                             &page, &err),
                     0);
    assert_true(page > 1);
    store_close(f->store);
    f->store = NULL;
    overwrite(path, (off_t)(page - 1) * 4096, 4096);
    assert_int_equal(store_open(f->dir, STORE_OWNER, &f->store, &err), ERR_CORRUPT);
    assert_non_null(strstr(err.msg, "preregctl rebuild"));
    free(path);
}

/* Rows that cannot be, though every page is sound: refused, not asserted about later. */
static void test_rows_disagree(void **state)
{
    struct fixture *f = *state;
    struct err err = {0};
    assert_int_equal(sql_exec(f->store->db, "UPDATE tasks SET state='running' WHERE task=2", &err),
                     0);
    store_close(f->store);
    f->store = NULL;
    assert_int_equal(store_open(f->dir, STORE_OWNER, &f->store, &err), ERR_CORRUPT);
}

static void test_lost_database(void **state)
{
    struct fixture *f = *state;
    struct err err = {0};
    char *cells = scratch_path(f->dir, "cells/dense");
    char *path = path_join(f->dir, "preregd.db");
    store_close(f->store);
    f->store = NULL;
    assert_int_equal(dir_make(cells, 0700, &err), 0);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(store_open(f->dir, STORE_OWNER, &f->store, &err), ERR_CORRUPT);
    assert_non_null(strstr(err.msg, "preregctl rebuild"));
    free(cells);
    free(path);
}

static void test_torn_line(void **state)
{
    struct fixture *f = *state;
    run_a_little(f);
    char *before = dump(f->store, f->no);
    char *text = fixture_journal(f);
    char *torn = xasprintf("%s{\"event\":\"attempt_sta", text);
    write_journal(f, torn, strlen(torn));
    fixture_reopen(f);
    char *after = dump(f->store, f->no);
    char *healed = fixture_journal(f);
    assert_string_equal(before, after);
    assert_string_equal(text, healed);
    free(before);
    free(after);
    free(text);
    free(torn);
    free(healed);
}

static void copy_database(const char *dir, const char *suffix_from, const char *suffix_to)
{
    struct err err = {0};
    char *from = xasprintf("%s/preregd.db%s", dir, suffix_from);
    char *to = xasprintf("%s/preregd.db%s", dir, suffix_to);
    assert_int_equal(file_copy(from, to, 0600, &err), 0);
    free(from);
    free(to);
}

/* The journal was synced, the transaction was not: opening must come to the same rows. */
static void test_lines_beyond_the_table(void **state)
{
    struct fixture *f = *state;
    struct err err = {0};
    store_close(f->store);
    copy_database(f->dir, "", ".before");
    fixture_open(f);
    run_a_little(f);
    char *before = dump(f->store, f->no);
    store_close(f->store);
    copy_database(f->dir, ".before", "");
    fixture_open(f);
    char *after = dump(f->store, f->no);
    assert_string_equal(before, after);
    (void)check_chain(f);
    struct state_row more =
        walker_start(&f->w, 1); /* ready again, though that row was not in the journal */
    assert_int_equal(commit_rows(f->store, &more, 1, &err), 0);
    free(before);
    free(after);
}

static void test_lines_lost_by_the_file(void **state)
{
    struct fixture *f = *state;
    run_a_little(f);
    char *text = fixture_journal(f);
    size_t cuts[] = {0, 10, strlen(text) / 2, strlen(text) - 1};
    for (size_t i = 0; i < ARRAY_LEN(cuts); i++) {
        CHECK_ROW("cuts[%zu]", i);
        write_journal(f, text, cuts[i]);
        fixture_reopen(f);
        char *healed = fixture_journal(f);
        assert_string_equal(text, healed);
        free(healed);
    }
    free(text);
}

static void test_tampered_journal(void **state)
{
    struct fixture *f = *state;
    struct err err = {0};
    run_a_little(f);
    char *text = fixture_journal(f);
    size_t len = strlen(text);
    char *changed = xstrdup(text);
    changed[len - 20] = changed[len - 20] == 'a' ? 'b' : 'a';
    write_journal(f, changed, len);
    store_close(f->store);
    f->store = NULL;
    assert_int_equal(store_open(f->dir, STORE_OWNER, &f->store, &err), ERR_CORRUPT);
    char *forged = xasprintf(
        "%s{\"event\":\"unblinded\",\"hash\":\"%064d\",\"seq\":6,\"time\":\"\"}\n", text, 7);
    write_journal(f, forged, strlen(forged));
    assert_int_equal(store_open(f->dir, STORE_OWNER, &f->store, &err), ERR_CORRUPT);
    free(text);
    free(changed);
    free(forged);
}

/* A line in the middle: which it is, and the way that keeps the history. */
static void test_one_line_differs(void **state)
{
    struct fixture *f = *state;
    struct err err = {0};
    run_a_little(f);
    char *before = dump(f->store, f->no);
    char *text = fixture_journal(f);
    char *path = scratch_path(f->dir, "journal.jsonl");
    char *third = strchr(strchr(text, '\n') + 1, '\n') + 1;
    char kept = third[10];
    third[10] = kept == 'a' ? 'b' : 'a';
    write_journal(f, text, strlen(text));
    store_close(f->store);
    f->store = NULL;
    assert_int_equal(store_open(f->dir, STORE_OWNER, &f->store, &err), ERR_CORRUPT);
    assert_non_null(strstr(err.msg, "journal.jsonl:3:"));
    assert_non_null(strstr(err.msg, "mv journal.jsonl"));
    assert_int_equal(unlink(path), 0);
    fixture_open(f);
    third[10] = kept;
    char *healed = fixture_journal(f);
    char *after = dump(f->store, f->no);
    assert_string_equal(healed, text);
    assert_string_equal(after, before);
    assert_int_equal(store_check_journal(f->dir, f->no, 5, &err), 0);
    free(after);
    free(healed);
    free(path);
    free(text);
    free(before);
}

/* The same change in file and database: the chain shows it. */
static void test_row_changed_in_both(void **state)
{
    struct fixture *f = *state;
    struct err err = {0};
    run_a_little(f);
    char *text = fixture_journal(f);
    char *at = strstr(text, "\"crash\"");
    assert_non_null(at);
    memcpy(at, "\"drift\"", 7);
    write_journal(f, text, strlen(text));
    assert_int_equal(sqlite3_exec(f->store->db,
                                  "DROP TRIGGER journal_keeps; UPDATE journal SET "
                                  "line=replace(line, '\"crash\"', '\"drift\"')",
                                  NULL, NULL, NULL),
                     SQLITE_OK);
    assert_int_equal(store_check_journal(f->dir, f->no, 5, &err), ERR_CORRUPT);
    assert_non_null(strstr(err.msg, "does not follow"));
    free(text);
}

/* A head noted apart that the journal lacks: unverified, for good. */
static void test_head_is_missing(void **state)
{
    struct fixture *f = *state;
    struct err err = {0};
    struct arena texts;
    struct store_program p;
    struct digest other = root_make("other");
    run_a_little(f);
    for (unsigned i = 0; i < 3; i++) {
        if (i == 1) {
            heads_note(f->store, SCRATCH_ID, 99, &other, false);
        }
        fixture_reopen(f);
        arena_init(&texts);
        assert_int_equal(store_program_find(f->store, "little", &texts, &p, &err), 0);
        assert_int_equal(p.unverified_history, i > 0);
        arena_release(&texts);
    }
}

/* An older database with a journal that was cut since: what start takes over of the journal must
 * not become the noted head before the two are compared. */
static void test_old_database_and_cut_journal(void **state)
{
    struct fixture *f = *state;
    struct err err = {0};
    struct arena texts;
    struct store_program p;
    struct strbuf old = STRBUF_INIT;
    struct program_row paused[] = {{.paused = 1}, {.paused = 0}};
    char *database = path_join(f->dir, "preregd.db");
    store_close(f->store);
    assert_int_equal(file_read(database, 1 << 26, &old, &err), 0);
    fixture_open(f);
    for (unsigned i = 0; i < ARRAY_LEN(paused); i++) {
        struct state_row row =
            program_row_make(&f->w, i == 0 ? ROW_PAUSED : ROW_RESUMED, paused[i]);
        fixture_commit(f, &row, 1);
    }
    store_close(f->store);
    char *text = fixture_journal(f);
    char *last = strrchr(text, '\n');
    *last = '\0';
    last = strrchr(text, '\n');
    write_journal(f, text, (size_t)(last + 1 - text));
    assert_int_equal(file_write_atomic(database, old.buf, old.len, 0600, &err), 0);
    fixture_open(f);
    arena_init(&texts);
    assert_int_equal(store_program_find(f->store, "little", &texts, &p, &err), 0);
    assert_true(p.unverified_history);
    arena_release(&texts);
    strbuf_release(&old);
    free(text);
    free(database);
}

/* Cut off between the journal's first line and the commit: the program is unknown and can be
 * submitted again. */
static void test_submission_cut_off(void **state)
{
    struct fixture *f = *state;
    struct err err = {0};
    struct digest root = root_make("root");
    char *path = path_join(f->dir, "preregd.db");
    char *heads = path_join(f->dir, "journal.heads");
    store_close(f->store);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(unlink(heads), 0); /* written after the commit */
    free(heads);
    fixture_open(f); /* removes it */
    char *folder = scratch_path(f->dir, "");
    assert_int_equal(file_kind_at(folder), FILE_ABSENT);
    assert_int_equal(dir_make(folder, 0700, &err), 0);
    free(folder);
    assert_int_equal(store_program_create(f->store, f->program,
                                          &(struct store_submission){SCRATCH_ID, root, {5}, {0}},
                                          &f->no, &err),
                     0);
    assert_int_equal(check_chain(f), 1);
    walker_init(&f->w, f->store, f->no, 6);
    run_a_little(f);
    store_close(f->store);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(store_open(f->dir, STORE_OWNER, &f->store, &err), ERR_CORRUPT);
    assert_non_null(strstr(err.msg, "preregctl rebuild"));
    free(path);
}

/* What a submission makes before row 1 is removed at the next opening; what holds anything else is
 * left alone. */
static void test_submission_unfinished(void **state)
{
    struct fixture *f = *state;
    struct err err = {0};
    char *folder = path_join(f->dir, "programs/cut-00000000");
    char *grid = path_join(folder, "grid.toml");
    char *cells = path_join(folder, "cells");
    char *other = path_join(folder, "notes.txt");
    assert_int_equal(dir_make(cells, 0700, &err), 0);
    assert_int_equal(file_write_atomic(grid, "x", 1, 0600, &err), 0);
    assert_int_equal(file_write_atomic(other, "x", 1, 0600, &err), 0);
    fixture_reopen(f);
    assert_int_equal(file_kind_at(grid), FILE_REGULAR);
    assert_int_equal(unlink(other), 0);
    fixture_reopen(f);
    assert_int_equal(file_kind_at(folder), FILE_ABSENT);
    free(other);
    free(cells);
    free(grid);
    free(folder);
}

/* The folder that [run] work gave it goes with it; one that another state has adopted stays. */
static void test_submission_unfinished_elsewhere(void **state)
{
    struct fixture *f = *state;
    struct err err = {0};
    char *folder = path_join(f->dir, "programs/cut-00000000");
    char *link = path_join(folder, "cells");
    char *work = path_join(f->dir, "work/cut-00000000");
    char *cells = path_join(work, "cells");
    char *mark = path_join(work, "owner.json");
    struct work_owner own;
    assert_int_equal(work_owner_init(&own, f->dir, &err), 0);
    for (int adopted = 0; adopted <= 1; adopted++) {
        if (adopted) { /* by a state that is not seen from here */
            (void)snprintf(own.id, sizeof(own.id), "12345678-1234-4234-8234-123456789012");
            (void)snprintf(own.state, sizeof(own.state), "/elsewhere");
        }
        assert_int_equal(dir_make(folder, 0700, &err), 0);
        assert_int_equal(dir_make(cells, 0700, &err), 0);
        assert_int_equal(symlink(cells, link), 0);
        assert_int_equal(work_owner_claim(work, &own, false, &err), 0);
        fixture_reopen(f);
        assert_int_equal(file_kind_at(folder), FILE_ABSENT);
        assert_int_equal(file_kind_at(mark), adopted ? FILE_REGULAR : FILE_ABSENT);
        assert_int_equal(file_kind_at(cells), adopted ? FILE_FOLDER : FILE_ABSENT);
    }
    free(mark);
    free(cells);
    free(work);
    free(link);
    free(folder);
}

static void test_network_file_system(void **state)
{
    (void)state;
    struct err err = {0};
    assert_int_equal(fs_check_local("/tmp", &err), 0);
    assert_int_equal(fs_check_local("/nowhere/at/all", &err), ERR_NOT_FOUND);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_create),
        TEST(test_journal_chain),
        TEST(test_endings),
        TEST(test_endings_of_a_long_journal),
        TEST(test_pauses),
        TEST(test_append_only),
        TEST(test_illegal_moves),
        TEST(test_all_or_nothing),
        TEST(test_two_owners),
        TEST(test_lock_deleted),
        TEST(test_not_ours_alone),
        TEST(test_other_version),
        TEST(test_damaged_database),
        TEST(test_damaged_page),
        TEST(test_damaged_far_page),
        TEST(test_rows_disagree),
        TEST(test_lost_database),
        TEST(test_torn_line),
        TEST(test_lines_beyond_the_table),
        TEST(test_lines_lost_by_the_file),
        TEST(test_tampered_journal),
        TEST(test_one_line_differs),
        TEST(test_row_changed_in_both),
        TEST(test_head_is_missing),
        TEST(test_old_database_and_cut_journal),
        TEST(test_submission_cut_off),
        TEST(test_submission_unfinished),
        TEST(test_submission_unfinished_elsewhere),
        cmocka_unit_test(test_network_file_system),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
