/* Who had which limits of [run]: rows as they come in, and the same rows from the store. */
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#include "base/json/json.h"
#include "base/xalloc.h"
#include "prereg/program/run_change.h"
#include "prereg/program/run_limits.h"
#include "state/journal/line.h"
#include "state/store/run_history.h"
#include "tests/unit/check.h"
#include "tests/unit/state/support.h"

#define N_CELLS 4

static const char *const RUNS[] = {
    [0] = "{\"memory\":\"512MiB\"}",
    [1] = "{\"memory\":\"1MiB\"}",
    [2] = "{\"memory\":\"512MiB\",\"slots\":7,\"checkpoint\":\"9s\",\"work\":\"/x\"}",
    [3] = "{\"train\":{\"crashes\":1},\"memory\":\"512MiB\"}",
    [4] = "{\"deadlines\":{\"step\":\"10s\"},\"memory\":\"512MiB\"}",
    [5] = "{}",
    [6] = "{\"eval\":{\"memory\":1},\"memory\":\"512MiB\"}",
    [7] = "{\"memory\":\"1GiB\",\"crashes\":9}",
};

#define NARROW "memory 1048576 bytes, others of its stage had memory 536870912 bytes"

/* Steps of one letter and one digit. R: this [run] from now on. Of the training of that cell: S it
 * starts, X it ends and is blocked, F it ends and is tried again, D it is done, T it is retried, V
 * revived. */
static const struct scenario {
    const char *name;
    const char *steps;
    const char *narrower; /* of the training of cell 0; NULL: it was lost by chance */
} SCENARIOS[] = {
    {"one [run]", "R0 S0 S1 X0 D1", NULL},
    {"narrow for all", "R1 S0 X0 S1 D1 S2 D2", NULL},
    {"narrow for one, then wide", "R1 S0 X0 R0 S1 D1", NARROW},
    {"wide, then narrow for the last", "R0 S1 D1 S2 D2 R1 S0 X0", NARROW},
    {"wide for one that was lost, too", "R0 S1 X1 R1 S0 X0 S2 D2", NARROW},
    {"wide for one of many", "R1 S1 D1 S2 D2 R0 S3 D3 R1 S0 X0", NARROW},
    {"wider than the others", "R1 S1 D1 R0 S0 X0", NULL},
    {"narrowed while it ran", "R0 S0 R1 X0 R0 S1 D1", NARROW},
    {"narrowed and widened while it ran", "R0 S1 D1 S0 R1 R0 X0", NARROW},
    {"narrowed while all ran", "R0 S0 S1 R1 X0 D1", NARROW},
    {"narrow in an earlier attempt", "R1 S0 F0 R0 S0 X0 S1 D1", NARROW},
    {"narrow between its attempts", "R0 S0 F0 R1 R0 S0 X0 S1 D1", NARROW},
    {"narrow only before it was retried", "R1 S0 X0 R0 T0 S0 X0 S1 D1", NULL},
    {"narrow only before it was revived", "R1 S0 X0 V0 R0 S0 X0 S1 D1", NULL},
    {"the other had it wide only before its retry", "R0 S1 X1 R1 T1 S1 D1 S0 X0", NULL},
    {"nobody had the wide one", "R0 R1 S0 X0 S1 D1", NULL},
    {"nobody but itself had the wide one", "R0 S0 F0 R1 S0 X0 S1 D1", NULL},
    {"slots and checkpoints end nothing", "R0 S0 X0 R2 S1 D1", NULL},
    {"another stage's limit", "R6 S0 X0 R0 S1 D1", NULL},
    {"crashes", "R3 S0 X0 R0 S1 D1", "crashes 1, others of its stage had crashes 3"},
    {"a deadline that was measured for others", "R4 S0 X0 R0 S1 D1",
     "a deadline of step of 10000 ms, others of its stage had a measured deadline of step"},
    {"a measured one that was set for others", "R0 S0 X0 R4 S1 D1",
     "a measured deadline of step, others of its stage had a deadline of step of 10000 ms"},
    {"none for others", "R0 S0 X0 R5 S1 D1",
     "memory 536870912 bytes, others of its stage had no limit of memory"},
    {"none, where others had one", "R5 S0 X0 R0 S1 D1", NULL},
    {"two at once", "R0 S0 X0 R7 S1 D1",
     "memory 536870912 bytes, others of its stage had memory 1073741824 bytes; crashes 3, others "
     "of its stage had crashes 9"},
    {"the widest and the narrowest are named", "R0 S0 F0 R1 S0 X0 R0 S1 D1 R7 S2 D2",
     "memory 1048576 bytes, others of its stage had memory 1073741824 bytes; crashes 3, others of "
     "its stage had crashes 9"},
};

struct scene {
    char *dir;
    struct plan_program *program;
    struct store *store;
    uint32_t no;
    struct walker w;
    struct run_record *record; /* fed row by row */
    int64_t seq;
    struct state_row rows[64]; /* to be committed at once */
    size_t n_rows;
};

static void open_scene(struct scene *s, bool with_store)
{
    struct err err = {0};
    const struct store_submission submission = {
        .id = SCRATCH_ID, .root = root_make("root"), .time = {1763694202000}};
    *s = (struct scene){.program = program_make(N_CELLS), .seq = 1};
    if (with_store) {
        s->dir = state_folder_make();
        assert_int_equal(store_open(s->dir, STORE_OWNER, &s->store, &err), 0);
        assert_int_equal(store_program_create(s->store, s->program, &submission, &s->no, &err), 0);
    }
    walker_init(&s->w, s->store, s->no, (size_t)2 * N_CELLS);
    s->record = run_record_create(s->program);
    assert_int_equal(run_record_set(s->record, 1, NULL, &err), 0);
}

static void close_scene(struct scene *s)
{
    run_record_free(s->record);
    store_close(s->store);
    program_drop(s->program);
    if (s->dir != NULL) {
        scratch_remove(s->dir);
    }
}

static void take(struct scene *s, const struct state_row *row)
{
    struct err err = {0};
    assert_true(s->n_rows < ARRAY_LEN(s->rows));
    s->rows[s->n_rows++] = *row;
    if (!row_kind_is_journalled(row->kind)) {
        return;
    }
    s->seq++;
    if (row->kind == ROW_RUN_SETTINGS) {
        cJSON *run = NULL;
        assert_int_equal(json_parse(row->detail, strlen(row->detail), &run, &err), 0);
        assert_int_equal(run_record_set(s->record, s->seq, run, &err), 0);
        cJSON_Delete(run);
        return;
    }
    const size_t cell = row->task / 2;
    cJSON *line = line_from_row(row, s->program->cells[cell].name, "train");
    run_record_take(s->record, line, row);
    cJSON_Delete(line);
}

static void retry(struct scene *s, uint32_t task, enum row_kind kind)
{
    struct state_row row = {.kind = kind,
                            .program = s->no,
                            .task = task,
                            .time = {s->w.now_ms += 17},
                            .from = s->w.tasks[task].state};
    s->w.tasks[task].state = TASK_READY;
    s->w.tasks[task].cause = CAUSE_NONE;
    row.after = s->w.tasks[task];
    attempt_row_init(&row.attempt);
    take(s, &row);
}

static void start(struct scene *s, uint32_t task)
{
    struct state_row row = walker_start(&s->w, task);
    take(s, &row);
    row = walker_run(&s->w, task);
    take(s, &row);
}

static void step(struct scene *s, char what, unsigned no)
{
    const uint32_t task = no * 2;
    struct state_row row;
    switch (what) {
    case 'R':
        row = program_row_make(&s->w, ROW_RUN_SETTINGS, (struct program_row){0});
        row.detail = RUNS[no];
        break;
    case 'S': start(s, task); return;
    case 'T': retry(s, task, ROW_TASK_RETRIED); return;
    case 'V': retry(s, task, ROW_TASK_REVIVED); return;
    case 'X': row = walker_fail(&s->w, task, TASK_BLOCKED, CAUSE_OOM); break;
    case 'F': row = walker_fail(&s->w, task, TASK_READY, CAUSE_CRASH); break;
    default: row = walker_done(&s->w, task, "{}"); break;
    }
    take(s, &row);
}

static void play(struct scene *s, const char *steps)
{
    struct err err = {0};
    s->n_rows = 0;
    for (const char *at = steps; *at != '\0'; at += at[2] == '\0' ? 2 : 3) {
        step(s, at[0], (unsigned)(at[1] - '0'));
    }
    if (s->store != NULL && commit_rows(s->store, s->rows, s->n_rows, &err) != 0) {
        fail_msg("%s", err.msg);
    }
}

static void expect(const char *name, const char *expected, const char *found)
{
    if ((expected == NULL) != (found == NULL) || (found != NULL && strcmp(expected, found) != 0)) {
        fail_msg("%s: expected %s, found %s", name, expected == NULL ? "chance" : expected,
                 found == NULL ? "chance" : found);
    }
}

static void test_scenarios(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(SCENARIOS); i++) {
        CHECK_ROW("%s", SCENARIOS[i].name);
        const struct scenario *c = &SCENARIOS[i];
        struct scene s;
        struct run_record *stored = NULL;
        struct err err = {0};
        open_scene(&s, i % 5 == 2); /* a state folder takes its time */
        play(&s, c->steps);
        expect(c->name, c->narrower, run_record_narrower(s.record, 0, CAUSE_OOM));
        assert_null(run_record_narrower(s.record, 0, CAUSE_CANCELLED));
        assert_null(run_record_narrower(s.record, 1, CAUSE_DEPENDENCY));
        if (s.store == NULL) {
            close_scene(&s);
            continue;
        }
        if (run_record_read(s.store, s.no, s.program, &stored, &err) != 0) {
            fail_msg("%s: %s", c->name, err.msg);
        }
        expect(c->name, c->narrower, run_record_narrower(stored, 0, CAUSE_OOM));
        cJSON *a = run_record_json(s.record);
        cJSON *b = run_record_json(stored);
        assert_true(cJSON_Compare(a, b, true));
        cJSON_Delete(a);
        cJSON_Delete(b);
        run_record_free(stored);
        close_scene(&s);
    }
}

/* ---- the rule in other words ---- */

/* Which of RUNS a cell's training has had, counted since its last retry. */
struct rule {
    unsigned now;
    bool had[N_CELLS][ARRAY_LEN(RUNS)];
    bool runs[N_CELLS];
    char state[N_CELLS]; /* of the last step; 0: ready */
};

static void rule_step(struct rule *r, char what, unsigned no)
{
    if (what == 'R') {
        r->now = no;
        for (size_t c = 0; c < N_CELLS; c++) { /* also of those that wait for another attempt */
            r->had[c][no] |= r->runs[c] || r->state[c] == 'F';
        }
        return;
    }
    if (what == 'T' || what == 'V') {
        memset(r->had[no], 0, sizeof(r->had[no]));
    } else {
        r->had[no][r->now] = true;
    }
    r->runs[no] = what == 'S';
    r->state[no] = what == 'T' || what == 'V' ? 0 : what;
}

static bool run_is_narrower(size_t own, size_t other)
{
    struct run_limits limits[2];
    struct err err = {0};
    for (size_t i = 0; i < 2; i++) {
        const char *text = RUNS[i == 0 ? own : other];
        cJSON *run = NULL;
        assert_int_equal(json_parse(text, strlen(text), &run, &err), 0);
        assert_int_equal(run_limits_read(run, "train", &limits[i], &err), 0);
        cJSON_Delete(run);
    }
    for (int k = 0; k < RUN_LIMIT_NR; k++) {
        if (run_limit_is_narrower((enum run_limit)k, limits[0].of[k], limits[1].of[k])) {
            return true;
        }
    }
    return false;
}

static bool rule_is_narrower(const struct rule *r, size_t cell)
{
    for (size_t c = 0; c < N_CELLS; c++) {
        for (size_t i = 0; c != cell && i < ARRAY_LEN(RUNS); i++) {
            for (size_t k = 0; r->had[c][i] && k < ARRAY_LEN(RUNS); k++) {
                if (r->had[cell][k] && run_is_narrower(k, i)) {
                    return true;
                }
            }
        }
    }
    return false;
}

/* A history of so many steps; those that the cell's state does not allow are left out. */
static void make_history(uint64_t *seed, size_t n, struct strbuf *steps, struct rule *rule)
{
    static const char ALL[] = "RSSSXXFD";
    *rule = (struct rule){0};
    strbuf_adds(steps, "R0");
    rule_step(rule, 'R', 0);
    for (size_t i = 0; i < n; i++) {
        *seed = *seed * 6364136223846793005U + 1442695040888963407U;
        char what = ALL[(*seed >> 33) % (sizeof(ALL) - 1)];
        const unsigned no =
            (unsigned)((*seed >> 45) % (what == 'R' ? ARRAY_LEN(RUNS) : (size_t)N_CELLS));
        const bool runs = what != 'R' && rule->runs[no];
        const char state = what == 'R' ? 0 : rule->state[no];
        what = what == 'S' && state == 'X' ? 'T' : what;
        if ((strchr("XFD", what) != NULL && !runs) ||
            (what == 'S' && (runs || state == 'D' || state == 'X'))) {
            continue;
        }
        strbuf_addf(steps, " %c%u", what, no);
        rule_step(rule, what, no);
    }
    for (unsigned c = 0; c < N_CELLS; c++) { /* nothing runs or waits at the verdict */
        if (rule->state[c] == 'F') {
            strbuf_addf(steps, " S%u", c);
            rule_step(rule, 'S', c);
        }
        if (rule->runs[c]) {
            strbuf_addf(steps, " X%u", c);
            rule_step(rule, 'X', c);
        }
    }
}

/* A record that is asked about nothing else. */
static char *ask_alone(const char *steps, size_t cell)
{
    struct scene s;
    open_scene(&s, false);
    play(&s, steps);
    const char *text = run_record_narrower(s.record, cell * 2, CAUSE_OOM);
    char *kept = text == NULL ? NULL : xstrdup(text);
    close_scene(&s);
    return kept;
}

static void check_history(const char *steps, const struct rule *rule)
{
    struct scene s;
    char *alone[N_CELLS] = {NULL};
    open_scene(&s, false);
    play(&s, steps);
    for (size_t c = 0; c < N_CELLS; c++) {
        alone[c] = ask_alone(steps, c);
        if (rule->state[c] == 'X' && (alone[c] != NULL) != rule_is_narrower(rule, c)) {
            fail_msg("%s: cell %zu: %s", steps, c, alone[c] == NULL ? "chance" : alone[c]);
        }
    }
    for (size_t i = 0; i < (size_t)3 * N_CELLS; i++) { /* in turns: an answer may be kept */
        const size_t c = i * 3 % N_CELLS;
        expect(steps, alone[c], run_record_narrower(s.record, c * 2, CAUSE_OOM));
    }
    for (size_t c = 0; c < N_CELLS; c++) {
        free(alone[c]);
    }
    close_scene(&s);
}

/* Many changes, in any order, against the rule of the header. */
static void test_histories(void **state)
{
    uint64_t seed = 1;
    (void)state;
    for (size_t i = 0; i < 200; i++) {
        struct strbuf steps = STRBUF_INIT;
        struct rule rule;
        make_history(&seed, 20, &steps, &rule);
        check_history(steps.buf, &rule);
        strbuf_release(&steps);
    }
}

/* What is listed, and when there is nothing to list. */
static void test_list(void **state)
{
    struct scene s;
    struct err err = {0};
    cJSON *list = NULL;
    struct strbuf text = STRBUF_INIT;
    (void)state;
    open_scene(&s, true);
    play(&s, "S0 X0");
    assert_int_equal(run_record_read_list(s.store, s.no, &list, &err), 0);
    assert_null(list); /* [run] never changed */
    play(&s, "T0 R0 S0");
    assert_int_equal(run_record_read_list(s.store, s.no, &list, &err), 0);
    assert_int_equal(cJSON_GetArraySize(list), 2);
    run_change_line(list->child, &text);
    assert_string_equal(text.buf, "from row 1 of the journal on, [run] was {}: 1 task was blocked "
                                  "under it: seed=1/train (oom)");
    strbuf_clear(&text);
    run_change_line(list->child->next, &text);
    assert_string_equal(text.buf, "from row 5 of the journal on, [run] was "
                                  "{\"memory\":\"512MiB\"}: 0 tasks were blocked under it");
    cJSON_Delete(list);
    strbuf_release(&text);
    close_scene(&s);
}

static void follow(struct scene *s, struct run_record **r, int64_t rows_max)
{
    struct err err = {0};
    const struct run_bounds bounds = {.rows = rows_max, .step = 1000};
    if (run_record_follow(s->store, s->no, s->program, &bounds, r, &err) != 0) {
        fail_msg("%s", err.msg);
    }
}

/* Asked after each step, it says what the whole journal says then. */
static void test_follow(void **state)
{
    static const char *const STEPS[] = {"S0 X0 S1", "R0", "D1",    "S2 D2", "R1",
                                        "T0 S0",    "X0", "R0 V0", "S0",    "X0"};
    struct scene s;
    struct err err = {0};
    struct run_record *followed = NULL;
    size_t n_narrower = 0;
    (void)state;
    open_scene(&s, true);
    for (size_t i = 0; i < ARRAY_LEN(STEPS); i++) {
        CHECK_ROW("%s", STEPS[i]);
        struct run_record *whole = NULL;
        play(&s, STEPS[i]);
        follow(&s, &followed, INT64_MAX);
        assert_true(run_record_is_known(followed));
        assert_int_equal(run_record_read(s.store, s.no, s.program, &whole, &err), 0);
        const char *expected = run_record_narrower(whole, 0, CAUSE_OOM);
        expect(STEPS[i], expected, run_record_narrower(followed, 0, CAUSE_OOM));
        n_narrower += expected != NULL;
        run_record_free(whole);
    }
    assert_in_range(n_narrower, 1, ARRAY_LEN(STEPS) - 1);
    run_record_free(followed);
    close_scene(&s);
}

/* A long journal is read only where [run] was never changed: then there is nothing to read. */
static void test_follow_long(void **state)
{
    struct scene s;
    struct run_record *followed = NULL;
    (void)state;
    open_scene(&s, true);
    play(&s, "S0 X0 S1 D1");
    follow(&s, &followed, 2);
    assert_true(run_record_is_known(followed));
    assert_null(run_record_narrower(followed, 0, CAUSE_OOM));
    play(&s, "R1");
    for (int i = 0; i < 2; i++) {
        follow(&s, &followed, 2);
        assert_false(run_record_is_known(followed));
    }
    run_record_free(followed);
    close_scene(&s);
}

/* However long the journal is, a call reads so many rows; it ends where one call would have. */
static void test_follow_in_steps(void **state)
{
    struct scene s;
    struct err err = {0};
    struct digest head;
    int64_t n_rows = 0;
    struct run_record *whole = NULL;
    (void)state;
    open_scene(&s, true);
    play(&s, "S0 X0 S1 R0 D1 S2 D2 R1 T0 S0 X0");
    assert_int_equal(store_journal_head(s.store, s.no, &head, &n_rows, &err), 0);
    assert_int_equal(run_record_read(s.store, s.no, s.program, &whole, &err), 0);
    const char *expected = run_record_narrower(whole, 0, CAUSE_OOM);
    assert_non_null(expected);
    for (int64_t step = 1; step <= 2 * n_rows; step++) {
        struct run_record *r = NULL;
        const struct run_bounds bounds = {.rows = INT64_MAX, .step = step};
        int64_t n_calls = 0;
        do {
            assert_int_equal(run_record_follow(s.store, s.no, s.program, &bounds, &r, &err), 0);
            assert_int_equal(run_record_is_known(r), !run_record_is_behind(r));
            n_calls++;
        } while (run_record_is_behind(r));
        assert_true(n_calls * step >= n_rows); /* and from the first change on again */
        assert_true((n_calls - 1) * step < 2 * n_rows);
        expect("in steps", expected, run_record_narrower(r, 0, CAUSE_OOM));
        run_record_free(r);
    }
    run_record_free(whole);
    close_scene(&s);
}

/* Beyond so many changes nothing is told apart, and nothing is chance. */
static void test_too_many(void **state)
{
    struct scene s;
    struct err err = {0};
    (void)state;
    open_scene(&s, false);
    play(&s, "R0 S0 X0 S1 D1");
    for (int i = 0; i <= RUN_CHANGES_MAX - 2; i++) { /* none, and the first, were before */
        cJSON *run = json_object();
        assert_null(run_record_narrower(s.record, 0, CAUSE_OOM));
        json_put_int(run, "attempts", 1 + i);
        assert_int_equal(run_record_set(s.record, ++s.seq, run, &err), 0);
        cJSON_Delete(run);
    }
    assert_non_null(run_record_narrower(s.record, 0, CAUSE_OOM));
    close_scene(&s);
}

/* A journal from elsewhere. */
static void test_no_limit(void **state)
{
    struct scene s;
    struct err err = {0};
    (void)state;
    open_scene(&s, false);
    cJSON *run = json_object();
    json_put_int(run, "memory", -3);
    assert_int_not_equal(run_record_set(s.record, 2, run, &err), 0);
    cJSON_Delete(run);
    close_scene(&s);
}

static size_t bytes_held(void)
{
    const struct mallinfo2 m = mallinfo2();
    return m.uordblks + m.hblkhd;
}

/* A daemon asks the same record for as long as it hosts the program. */
static void test_asked_for_long(void **state)
{
    struct scene s;
    size_t before = 0;
    (void)state;
    open_scene(&s, false);
    play(&s, "R7 S2 D2 R1 S0 X0 R0 S1 X1");
    for (int i = 0; i < 20000; i++) {
        const char *of_0 = run_record_narrower(s.record, 0, CAUSE_OOM);
        assert_non_null(of_0);
        assert_non_null(strstr(of_0, "memory 1048576 bytes"));
        const char *of_1 = run_record_narrower(s.record, 2, CAUSE_OOM);
        assert_non_null(of_1);
        assert_non_null(strstr(of_1, "memory 536870912 bytes"));
        before = i == 0 ? bytes_held() : before;
    }
    assert_in_range(bytes_held(), 0, before + 65536);
    close_scene(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_scenarios),     cmocka_unit_test(test_histories),
        cmocka_unit_test(test_list),          cmocka_unit_test(test_follow),
        cmocka_unit_test(test_follow_long),   cmocka_unit_test(test_follow_in_steps),
        cmocka_unit_test(test_too_many),      cmocka_unit_test(test_no_limit),
        cmocka_unit_test(test_asked_for_long)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
