/* The lock: what changes its root and what does not, what verification says, what it refuses. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/files/file.h"
#include "base/json/json.h"
#include "base/xalloc.h"
#include "prereg/lock/lock.h"
#include "prereg/task/task.h"
#include "tests/unit/check.h"
#include "tests/unit/prereg/support.h"

struct world { /* a folder with everything SMALL_PROGRAM names */
    char *folder;
    char *lock_path;
};

static int world_make(void **state)
{
    struct world *w = xcalloc(1, sizeof(*w));
    w->folder = scratch_make();
    free(scratch_write(w->folder, "corpus.txt", "once upon a time\n", 0600));
    free(scratch_write(w->folder, "worker.sh", "#!/bin/sh\nexit 0\n", 0700));
    free(scratch_write(w->folder, "grid.toml", SMALL_PROGRAM, 0600));
    w->lock_path = path_join(w->folder, "grid.toml.lock");
    *state = w;
    return 0;
}

static int world_remove(void **state)
{
    struct world *w = *state;
    scratch_remove(w->folder);
    free(w->lock_path);
    free(w);
    return 0;
}

static struct lock *lock_of(const struct plan_program *p)
{
    struct lock *lock = NULL;
    struct err err = {0};
    if (lock_build(p, NULL, NULL, &lock, &err) != 0) {
        fail_msg("%s", err.msg);
    }
    return lock;
}

static char *root_of_text(const struct world *w, const char *text)
{
    struct plan_program *p = program_of(text, w->folder);
    struct lock *lock = lock_of(p);
    char *root = xstrdup(lock->root);
    lock_free(lock);
    program_free(p);
    return root;
}

static void test_write_and_read(void **state)
{
    const struct world *w = *state;
    struct plan_program *p = program_of(SMALL_PROGRAM, w->folder);
    struct lock *lock = lock_of(p);
    struct lock *again = NULL;
    struct err err = {0};
    assert_int_equal(lock_write(lock, w->lock_path, false, &err), 0);
    char *first = scratch_read(w->lock_path);
    assert_int_equal(lock_read(w->lock_path, &again, &err), 0);
    assert_string_equal(again->root, lock->root);
    assert_int_equal(lock_verify(p, again, LOCK_ALL, NULL, NULL, &err), 0);
    char *id = lock_program_id(again);
    assert_int_equal(strlen(id), strlen("small-") + 8);
    assert_memory_equal(id, "small-", 6);
    assert_memory_equal(id + 6, lock->root, 8);
    free(id);
    assert_string_equal(lock_data_digest(again, "corpus"),
                        "4447e148a5ee6086482dcba63867650434144dcd2f88b9ddee40308e36ee20c3");
    assert_null(lock_data_digest(again, "none"));
    assert_non_null(lock_file_digest(again, "./worker.sh"));
    assert_null(lock_file_digest(again, "--quick"));
    /* locking the same again changes no byte, whatever the clock says */
    struct lock *later = lock_of(p);
    assert_int_equal(lock_write(later, w->lock_path, false, &err), 0);
    char *second = scratch_read(w->lock_path);
    assert_string_equal(first, second);
    free(second);
    free(first);
    lock_free(later);
    lock_free(again);
    lock_free(lock);
    program_free(p);
}

static void test_another_lock_is_not_overwritten(void **state)
{
    const struct world *w = *state;
    struct err err = {0};
    struct plan_program *p = program_of(SMALL_PROGRAM, w->folder);
    struct lock *lock = lock_of(p);
    assert_int_equal(lock_write(lock, w->lock_path, false, &err), 0);
    char *text = text_replace(SMALL_PROGRAM, "floor = 0.3", "floor = 0.31");
    struct plan_program *other = program_of(text, w->folder);
    struct lock *changed = lock_of(other);
    assert_int_equal(lock_write(changed, w->lock_path, false, &err), ERR_EXISTS);
    assert_int_equal(lock_write(changed, w->lock_path, true, &err), 0);
    free(scratch_write(w->folder, "grid.toml.lock", "not a lock", 0600));
    assert_int_equal(lock_write(lock, w->lock_path, false, &err), ERR_LOCK);
    lock_free(changed);
    lock_free(lock);
    program_free(other);
    program_free(p);
    free(text);
}

static void test_spacing_and_run_are_free(void **state)
{
    const struct world *w = *state;
    static const char *const free_changes[][2] = {
        {"[data]\n", "# a comment\n\n[data]   # another\n"},
        {"levels = [\"dense\", \"moe\"]", "levels = [\n  \"dense\", # first\n  \"moe\",\n]"},
        {"lr = 1e-3", "lr = 0.001"},
        {"floor = 0.3", "floor = 3e-1"},
        {"name = \"seed\"\nlevels = [1, 2]\nreplicate = true",
         "replicate = true\nlevels = [1, 0x2]\nname = \"seed\""},
        {"slots = 2", "slots = 1\nexecutor = \"local\"\nwork = \"elsewhere\"\nattempts = 2"},
        {"crashes = 5", "crashes = 1"},
        {"memory = \"1GiB\"", "memory = 5"},
        {"step = \"10min\"", "eval = \"1h\""},
        {"checkpoint = \"300s\"", "checkpoint = \"auto\""},
    };
    char *root = root_of_text(w, SMALL_PROGRAM);
    for (size_t i = 0; i < ARRAY_LEN(free_changes); i++) {
        CHECK_ROW("%s", free_changes[i][0]);
        char *text = text_replace(SMALL_PROGRAM, free_changes[i][0], free_changes[i][1]);
        char *now = root_of_text(w, text);
        assert_string_equal(now, root);
        free(now);
        free(text);
    }
    char *without_run =
        xstrndup(SMALL_PROGRAM, (size_t)(strstr(SMALL_PROGRAM, "[run]") - SMALL_PROGRAM));
    char *now = root_of_text(w, without_run);
    assert_string_equal(now, root);
    free(now);
    free(without_run);
    free(root);
}

static void test_order_that_shows_is_locked(void **state)
{
    const struct world *w = *state;
    char *text = text_replace(SMALL_PROGRAM,
                              "O1 = { prior = 0.4, title = \"cleared\" }\n"
                              "O2 = { prior = 0.5, title = \"not cleared\" }\n",
                              "O2 = { prior = 0.5, title = \"not cleared\" }\n"
                              "O1 = { prior = 0.4, title = \"cleared\" }\n");
    char *root = root_of_text(w, SMALL_PROGRAM);
    char *now = root_of_text(w, text);
    assert_string_not_equal(now, root);
    free(now);
    free(root);
    free(text);
}

static void assert_verify(const struct world *w, const char *text, const struct lock *lock,
                          const char *expected)
{
    struct plan_program *p = program_of(text, w->folder);
    struct err err = {0};
    assert_int_equal(lock_verify(p, lock, LOCK_ALL, NULL, NULL, &err), ERR_LOCK);
    if (strstr(err.msg, expected) == NULL) {
        fail_msg("\"%s\" instead of \"%s\"", err.msg, expected);
    }
    program_free(p);
}

static void test_the_first_difference_is_named(void **state)
{
    const struct world *w = *state;
    static const char *const cases[][3] = {
        {"floor = 0.3", "floor = 0.26", "measure.acc.floor: locked 0.3, now 0.26"},
        {"items = 100, ", "", "measure.acc.items: locked 100, now nothing"},
        {"items = 100, ", "items = 100, counted = true, ",
         "measure.acc.counted: locked nothing, now true"},
        {"[\"dense\", \"moe\"]", "[\"dense\", \"moe\", \"x\"]",
         "factor[0].levels[2]: locked nothing, now \"x\""},
        {"[\"no\", \"O2\"]", "[\"no\", \"O1\"]", "table.rows[1][1]: locked \"O2\", now \"O1\""},
        {"threads = 2", "threads = 1", "stage.train.threads: locked 2, now 1"},
        {"experts = 4", "experts = 8", "stage.train.when.arch.moe.experts: locked 4, now 8"},
        {"question = \"Which?\"\n", "", "program.question: locked \"Which?\", now nothing"},
        {"counter.k == 1", "counter.k >= 1",
         "input[0].levels[0][1]: locked \"counter.k == 1\", now \"counter.k >= 1\""},
    };
    struct plan_program *p = program_of(SMALL_PROGRAM, w->folder);
    struct lock *lock = lock_of(p);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CHECK_ROW("%s", cases[i][0]);
        char *text = text_replace(SMALL_PROGRAM, cases[i][0], cases[i][1]);
        assert_verify(w, text, lock, cases[i][2]);
        free(text);
    }
    lock_free(lock);
    program_free(p);
}

static void test_files_and_data(void **state)
{
    const struct world *w = *state;
    struct plan_program *p = program_of(SMALL_PROGRAM, w->folder);
    struct lock *lock = lock_of(p);
    struct err err = {0};
    char *corpus = scratch_write(w->folder, "corpus.txt", "once upon a tide\n", 0600);
    assert_verify(w, SMALL_PROGRAM, lock, "data.corpus: locked ");
    assert_int_equal(lock_verify(p, lock, LOCK_PLAN | LOCK_FILES, NULL, NULL, &err), 0);
    assert_int_equal(unlink(corpus), 0);
    assert_verify(w, SMALL_PROGRAM, lock, "data.corpus: cannot be checked: ");
    free(scratch_write(w->folder, "corpus.txt", "once upon a time\n", 0600));
    char *worker = scratch_write(w->folder, "worker.sh", "#!/bin/sh\nexit 1\n", 0700);
    assert_verify(w, SMALL_PROGRAM, lock, "files../worker.sh: locked ");
    assert_int_equal(lock_verify(p, lock, LOCK_PLAN | LOCK_DATA | LOCK_PINS, NULL, NULL, &err), 0);
    assert_int_equal(unlink(worker), 0);
    assert_verify(w, SMALL_PROGRAM, lock, "files../worker.sh: ");
    free(worker);
    free(corpus);
    lock_free(lock);
    program_free(p);
}

static void test_recorded_workers_are_noted(void **state)
{
    const struct world *w = *state;
    char *text = text_replace(SMALL_PROGRAM, "[run]\n", "[pin]\nworkers = \"record\"\n[run]\n");
    struct plan_program *p = program_of(text, w->folder);
    struct lock *lock = lock_of(p);
    struct err err = {0};
    struct strbuf notes = STRBUF_INIT;
    free(scratch_write(w->folder, "worker.sh", "#!/bin/sh\nexit 1\n", 0700));
    assert_int_equal(lock_verify(p, lock, LOCK_ALL, NULL, &notes, &err), 0);
    assert_non_null(strstr(notes.buf, "files../worker.sh: locked "));
    strbuf_release(&notes);
    lock_free(lock);
    program_free(p);
    free(text);
}

static void test_pinned_files(void **state)
{
    const struct world *w = *state;
    char *text =
        text_replace(SMALL_PROGRAM, "[run]\n", "[pin]\nfiles = [\"notes.md\", \"extra\"]\n[run]\n");
    struct plan_program *p = program_of(text, w->folder);
    struct lock *lock = NULL;
    struct err err = {0};
    assert_int_equal(lock_build(p, NULL, NULL, &lock, &err), ERR_NOT_FOUND);
    assert_null(lock);
    free(scratch_write(w->folder, "notes.md", "a", 0600));
    free(scratch_write(w->folder, "extra/one", "1", 0600));
    lock = lock_of(p);
    assert_int_equal(lock_verify(p, lock, LOCK_ALL, NULL, NULL, &err), 0);
    free(scratch_write(w->folder, "extra/two", "2", 0600));
    assert_int_equal(lock_verify(p, lock, LOCK_PINS, NULL, NULL, &err), ERR_LOCK);
    assert_non_null(strstr(err.msg, "files.extra: locked "));
    lock_free(lock);
    program_free(p);
    free(text);
}

static void look(const struct world *w, const struct lock *lock, const char *name, int wanted)
{
    struct err err = {0};
    char *path = path_join(w->folder, name);
    assert_int_equal(lock_verify_path(NULL, lock_file_digest(lock, name), path, &err), wanted);
    free(path);
}

/* What is not there is told from what differs: a folder, too, that is left empty. One that was
 * locked empty is itself. */
static void test_absence(void **state)
{
    const struct world *w = *state;
    char *text =
        text_replace(SMALL_PROGRAM, "[run]\n", "[pin]\nfiles = [\"extra\", \"none\"]\n[run]\n");
    struct plan_program *p = program_of(text, w->folder);
    struct err err = {0};
    char *corpus = path_join(w->folder, "corpus.txt");
    char *none = path_join(w->folder, "none");
    char *one = scratch_write(w->folder, "extra/one", "1", 0600);
    assert_int_equal(dir_make(none, 0700, &err), 0);
    struct lock *lock = lock_of(p);
    look(w, lock, "extra", 0);
    look(w, lock, "none", 0);
    free(scratch_write(w->folder, "none/one", "1", 0600));
    look(w, lock, "none", ERR_LOCK);
    free(scratch_write(w->folder, "extra/one", "2", 0600));
    look(w, lock, "extra", ERR_LOCK);
    assert_int_equal(unlink(one), 0);
    look(w, lock, "extra", ERR_NOT_FOUND);
    free(scratch_write(w->folder, "corpus.txt", "twice upon a time\n", 0600));
    assert_int_equal(lock_verify(p, lock, LOCK_DATA | LOCK_TELL_ABSENT, NULL, NULL, &err),
                     ERR_LOCK);
    assert_int_equal(unlink(corpus), 0);
    assert_int_equal(lock_verify(p, lock, LOCK_DATA | LOCK_TELL_ABSENT, NULL, NULL, &err),
                     ERR_NOT_FOUND);
    assert_int_equal(lock_verify(p, lock, LOCK_DATA, NULL, NULL, &err), ERR_LOCK);
    lock_free(lock);
    program_free(p);
    free(one);
    free(none);
    free(corpus);
    free(text);
}

/* One changed character anywhere under "locked", or in the root, is seen. */
static void test_tampering(void **state)
{
    const struct world *w = *state;
    static const char *const cases[][2] = {
        {"\"floor\": 0.3", "\"floor\": 0.2"},
        {"\"root\": \"", "\"root\": \"0"},
        {"\"corpus\": \"", "\"corpus\": \"0"},
        {"\"solved\": {}", "\"solved\": {\"all\": {}}"},
        {"\"plan\"", "\"plans\""},
        {"\"schema\": 1,\n  \"root\"", "\"root\""},
        {"{", "{{"},
    };
    struct plan_program *p = program_of(SMALL_PROGRAM, w->folder);
    struct lock *lock = lock_of(p);
    struct err err = {0};
    assert_int_equal(lock_write(lock, w->lock_path, false, &err), 0);
    char *whole = scratch_read(w->lock_path);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CHECK_ROW("%s", cases[i][0]);
        struct lock *read = NULL;
        char *text = text_replace(whole, cases[i][0], cases[i][1]);
        free(scratch_write(w->folder, "grid.toml.lock", text, 0600));
        assert_int_equal(lock_read(w->lock_path, &read, &err), ERR_LOCK);
        assert_null(read);
        free(text);
    }
    /* what is not covered may change */
    char *text = text_replace(whole, "\"name\": \"preregd\"", "\"name\": \"another\"");
    free(scratch_write(w->folder, "grid.toml.lock", text, 0600));
    struct lock *read = NULL;
    assert_int_equal(lock_read(w->lock_path, &read, &err), 0);
    lock_free(read);
    free(text);
    free(whole);
    lock_free(lock);
    program_free(p);
}

/* What somebody put in by hand, root and all: nothing in the program is of that name. */
static void test_names_of_nothing(void **state)
{
    const struct world *w = *state;
    static const char *const tables[] = {"data", "files", "solved", NULL};
    struct plan_program *p = program_of(SMALL_PROGRAM, w->folder);
    for (size_t i = 0; i < ARRAY_LEN(tables); i++) {
        CHECK_ROW("%s", tables[i]);
        struct err err = {0};
        struct lock *lock = lock_of(p);
        cJSON *locked = cJSON_GetObjectItemCaseSensitive(lock->json, "locked");
        cJSON *table =
            tables[i] == NULL ? locked : cJSON_GetObjectItemCaseSensitive(locked, tables[i]);
        assert_int_equal(lock_verify(p, lock, LOCK_PLAN, NULL, NULL, &err), 0);
        json_put_string(table, "another", "0");
        assert_int_equal(lock_verify(p, lock, LOCK_PLAN, NULL, NULL, &err), ERR_LOCK);
        assert_non_null(strstr(err.msg, ".another: locked, and nothing in the program is it"));
        lock_free(lock);
    }
    program_free(p);
}

/* What was solved becomes part of a task's parameters: it has the form of parameters. */
static void test_solved_of_another_form(void **state)
{
    const struct world *w = *state;
    static const struct {
        const char *solved;
        const char *says; /* NULL: it is of that form */
    } cases[] = {{"{\"train\":{\"lr\":1}}", NULL},
                 {"{}", NULL},
                 {"[1]", "expected an object of stages"},
                 {"{\"train\":[1]}", "expected a stage with an object of parameters"},
                 {"{\"train\":null}", "expected a stage with an object of parameters"},
                 {"{\"other\":{}}", "expected a stage with an object of parameters"}};
    struct plan_program *p = program_of(SMALL_PROGRAM, w->folder);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CHECK_ROW("%s", cases[i].solved);
        struct err err = {0};
        struct lock *lock = lock_of(p);
        cJSON *locked = cJSON_GetObjectItemCaseSensitive(lock->json, "locked");
        json_put(cJSON_GetObjectItemCaseSensitive(locked, "solved"), p->conditions[0].name,
                 cJSON_Parse(cases[i].solved));
        assert_int_equal(lock_verify(p, lock, LOCK_PLAN, NULL, NULL, &err),
                         cases[i].says == NULL ? 0 : ERR_LOCK);
        assert_true(cases[i].says == NULL || strstr(err.msg, cases[i].says) != NULL);
        lock_free(lock);
    }
    program_free(p);
}

/* A lock whose time has not come is nothing to keep. */
static void test_a_time_to_come(void **state)
{
    const struct world *w = *state;
    struct err err = {0};
    struct plan_program *p = program_of(SMALL_PROGRAM, w->folder);
    struct lock *lock = lock_of(p);
    struct lock *late = lock_of(p);
    cJSON_DeleteItemFromObjectCaseSensitive(late->json, "time");
    json_put_string(late->json, "time", "2999-01-01T00:00:00.000Z");
    assert_int_equal(lock_write(late, w->lock_path, false, &err), 0);
    assert_int_equal(lock_write(lock, w->lock_path, false, &err), ERR_LOCK);
    char *left = scratch_read(w->lock_path);
    assert_non_null(strstr(left, "2999"));
    free(left);
    assert_int_equal(lock_write(lock, w->lock_path, true, &err), 0);
    left = scratch_read(w->lock_path);
    assert_null(strstr(left, "2999"));
    free(left);
    lock_free(late);
    lock_free(lock);
    program_free(p);
}

static void test_other_versions(void **state)
{
    const struct world *w = *state;
    struct plan_program *p = program_of(SMALL_PROGRAM, w->folder);
    struct lock *lock = lock_of(p);
    struct lock *read = NULL;
    struct err err = {0};
    assert_int_equal(lock_read(w->lock_path, &read, &err), ERR_NOT_FOUND);
    assert_int_equal(lock_write(lock, w->lock_path, false, &err), 0);
    char *whole = scratch_read(w->lock_path);
    char *text = text_replace(whole, "\"schema\": 1", "\"schema\": 2");
    free(scratch_write(w->folder, "grid.toml.lock", text, 0600));
    assert_int_equal(lock_read(w->lock_path, &read, &err), ERR_VERSION);
    free(text);
    free(whole);
    lock_free(lock);
    program_free(p);
}

/* What --describe solved is part of the lock and of the task. */
static void test_solved_params(void **state)
{
    const struct world *w = *state;
    static const char answer[] = "{\"arch=dense\":{\"train\":{\"params\":{\"ffn\":1152},\"facts\":{"
                                 "\"x\":1}},\"score\":null},"
                                 "\"arch=none\":[{\"params\":{\"ffn\":1}}],\"arch=word\":\"x\","
                                 "\"arch=moe\":{\"train\":{\"params\":{}},\"score\":{}}}";
    struct plan_program *p = program_of(SMALL_PROGRAM, w->folder);
    struct lock *plain = lock_of(p);
    struct lock *lock = NULL;
    struct err err = {0};
    cJSON *describe = NULL;
    assert_int_equal(json_parse(answer, sizeof(answer) - 1, &describe, &err), 0);
    assert_int_equal(lock_build(p, describe, NULL, &lock, &err), 0);
    assert_string_not_equal(lock->root, plain->root);
    cJSON *dense = task_params(p, lock, program_find_cell(p, "arch=dense,seed=2"), 0);
    cJSON *moe = task_params(p, lock, program_find_cell(p, "arch=moe,seed=2"), 0);
    int64_t ffn = 0;
    assert_int_equal(json_get_int(dense, "ffn", 0, 10000, &ffn, &err), 0);
    assert_int_equal(ffn, 1152);
    assert_null(json_member(moe, "ffn"));
    cJSON_Delete(moe);
    cJSON_Delete(dense);
    cJSON_Delete(describe);
    lock_free(lock);
    lock_free(plain);
    program_free(p);
}

int main(void)
{
#define IN_WORLD(test) cmocka_unit_test_setup_teardown(test, world_make, world_remove)
    const struct CMUnitTest tests[] = {
        IN_WORLD(test_write_and_read),
        IN_WORLD(test_another_lock_is_not_overwritten),
        IN_WORLD(test_spacing_and_run_are_free),
        IN_WORLD(test_order_that_shows_is_locked),
        IN_WORLD(test_the_first_difference_is_named),
        IN_WORLD(test_files_and_data),
        IN_WORLD(test_recorded_workers_are_noted),
        IN_WORLD(test_pinned_files),
        IN_WORLD(test_absence),
        IN_WORLD(test_tampering),
        IN_WORLD(test_names_of_nothing),
        IN_WORLD(test_solved_of_another_form),
        IN_WORLD(test_a_time_to_come),
        IN_WORLD(test_other_versions),
        IN_WORLD(test_solved_params),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
