/* The digest of a task's work: equal between programs where the work is, and different with all
 * that decides a result; and the first difference in words. */
#include <stdlib.h>
#include <string.h>

#include "base/files/file.h"
#include "base/json/json.h"
#include "base/xalloc.h"
#include "prereg/reuse/reuse.h"
#include "prereg/reuse/work.h"
#include "tests/unit/check.h"
#include "tests/unit/prereg/support.h"

enum { TRAIN, SCORE, N_STAGES };

struct side {
    struct plan_program *p;
    struct lock *lock;
    struct digest *works;
};

struct world {
    char *folder;
    struct side then;
};

/* Works over the names of `then`; NULL: its own. */
static struct side side_of(const char *text, const char *folder, const struct side *then)
{
    struct side s = {.p = program_of(text, folder)};
    struct err err = {0};
    assert_int_equal(lock_build(s.p, NULL, NULL, &s.lock, &err), 0);
    s.works = xcalloc(program_n_tasks(s.p), sizeof(*s.works));
    assert_int_equal(work_digests(s.p, s.lock, then == NULL ? s.p : then->p, s.works, &err), 0);
    return s;
}

static void side_release(struct side *s)
{
    free(s->works);
    lock_free(s->lock);
    program_free(s->p);
}

static int world_make(void **state)
{
    struct world *w = xcalloc(1, sizeof(*w));
    w->folder = scratch_make();
    free(scratch_write(w->folder, "corpus.txt", "once\n", 0600));
    free(scratch_write(w->folder, "more.txt", "upon\n", 0600));
    free(scratch_write(w->folder, "worker.sh", "#!/bin/sh\nexit 0\n", 0700));
    free(scratch_write(w->folder, "other.sh", "#!/bin/sh\nexit 1\n", 0700));
    scratch_put(w->folder, "env/bin/python3", "interpreter\n");
    scratch_put(w->folder, "env/pyvenv.cfg", "home = /usr\nversion = 3.11.7\n");
    scratch_put(w->folder, "env/lib/python3.11/site-packages/a-1.dist-info/RECORD",
                "a-1.dist-info/RECORD,,\n");
    w->then = side_of(SMALL_PROGRAM, w->folder, NULL);
    *state = w;
    return 0;
}

static int world_remove(void **state)
{
    struct world *w = *state;
    side_release(&w->then);
    scratch_remove(w->folder);
    free(w);
    return 0;
}

static const struct {
    const char *from;
    const char *to;
    bool train; /* whether its work stays the same, in the first cell */
    bool score;
    const char *difference; /* of the first stage that differs */
} CHANGES[] = {
    {"name = \"small\"", "name = \"large\"", true, true, ""},
    {"levels = [1, 2]", "levels = [1, 2, 3]", true, true, ""},
    {"prior = 0.4", "prior = 0.3", true, true, ""},
    {"slots = 2", "slots = 1", true, true, ""},
    {"corpus = \"corpus.txt\"", "corpus = \"corpus.txt\"\nmore = \"more.txt\"", true, true, ""},
    {"lr = 1e-3", "lr = 2e-3", false, false, "params.lr is 0.002, and was 0.001"},
    {"lr = 1e-3", "lr = 1e-3, mix = { a = 1 }", false, false,
     "params.mix is {\"a\":1}, and was nothing"},
    {"levels = [1, 2]", "levels = [3, 4]", false, false, "params.seed is 3, and was 1"},
    {"corpus = \"corpus.txt\"", "corpus = \"more.txt\"", false, false, "data.corpus is"},
    {"threads = 2", "threads = 1", false, false, "threads is 1, and was 2"},
    {"threads = 2", "threads = 2\nenv = { A = \"1\" }", false, false,
     "env.A is \"1\", and was nothing"},
    {"threads = 2", "threads = 2\nenvironment = \"env\"", false, false, "environment is {"},
    {"\"--quick\"", "\"--slow\"", false, false, "arguments is"},
    {"command = [\"./worker.sh\"]", "command = [\"./other.sh\"]", true, false, "worker is"},
    {"[run]\n", "[pin]\nfiles = [\"more.txt\"]\n[run]\n", true, true, ""},
    {"[run]\n", "[pin]\ngpu = \"H200\"\n[run]\n", false, false, "gpu is \"H200\", and was nothing"},
};

static void test_what_decides_a_result(void **state)
{
    struct world *w = *state;
    for (size_t i = 0; i < ARRAY_LEN(CHANGES); i++) {
        CHECK_ROW("%s", CHANGES[i].to);
        char *text = text_replace(SMALL_PROGRAM, CHANGES[i].from, CHANGES[i].to);
        struct side now = side_of(text, w->folder, &w->then);
        struct strbuf said = STRBUF_INIT;
        assert_int_equal(digest_equal(&now.works[TRAIN], &w->then.works[TRAIN]), CHANGES[i].train);
        assert_int_equal(digest_equal(&now.works[SCORE], &w->then.works[SCORE]), CHANGES[i].score);
        const size_t task = CHANGES[i].train ? SCORE : TRAIN;
        cJSON *a = work_describe(now.p, now.lock, w->then.p, task);
        cJSON *b = work_describe(w->then.p, w->then.lock, w->then.p, task);
        assert_int_equal(work_difference(a, b, &said), CHANGES[i].difference[0] != '\0');
        if (strncmp(said.buf, CHANGES[i].difference, strlen(CHANGES[i].difference)) != 0) {
            fail_msg("expected \"%s\", found \"%s\"", CHANGES[i].difference, said.buf);
        }
        cJSON_Delete(a);
        cJSON_Delete(b);
        strbuf_release(&said);
        side_release(&now);
        free(text);
    }
}

/* The roots differ, and cells that ask for other work do not agree. */
static void test_cells_differ(void **state)
{
    struct world *w = *state;
    const struct digest *works = w->then.works;
    assert_false(digest_equal(&works[TRAIN], &works[N_STAGES + TRAIN])); /* another seed */
    assert_false(digest_equal(&works[SCORE], &works[N_STAGES + SCORE])); /* of another training */
    assert_false(digest_equal(&works[TRAIN], &works[2 * N_STAGES + TRAIN])); /* another arm */
}

#define HEX64 "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define HEAD  "{\"root\":\"" HEX64 "\",\"receipt\":\"" HEX64 "\",\"program\":\"old\",\"tasks\":{"
#define PIN                                                                                        \
    "{\"of\":\"a/b\",\"work\":\"" HEX64 "\",\"sha256\":\"" HEX64 "\",\"accepts\":\"" HEX64 "\"}"

static const struct {
    const char *reuse;
    const char *says; /* NULL: it is well formed */
} PINS[] = {
    {HEAD "\"arch=dense,seed=1/train\":" PIN ",\"arch=dense,seed=1/score\":" PIN "}}", NULL},
    {HEAD "\"arch=dense,seed=9/train\":" PIN "}}", "is not a task that does its own work"},
    {HEAD "\"arch=dense,seed=1/eval\":" PIN "}}", "is not a task"},
    {HEAD "\"train\":" PIN "}}", "is not a task"},
    {HEAD "\"arch=dense,seed=1/train\":{\"of\":\"a/b\"}}}", "work"},
    {HEAD "\"arch=dense,seed=1/train\":3}}", "arch=dense,seed=1/train"},
    {"{\"root\":\"" HEX64 "\"}", "tasks"},
    {"{\"tasks\":{},\"program\":\"old\",\"root\":\"ff\",\"receipt\":\"ff\"}", "the lock's reuse"},
};

static void test_pins_of_a_stranger(void **state)
{
    struct world *w = *state;
    for (size_t i = 0; i < ARRAY_LEN(PINS); i++) {
        CHECK_ROW("%s", PINS[i].reuse);
        struct err err = {0};
        struct lock *lock = NULL;
        struct reuse_pin *pins = NULL;
        cJSON *tree = NULL;
        assert_int_equal(lock_copy(w->then.lock, &lock, &err), 0);
        assert_int_equal(json_parse(PINS[i].reuse, strlen(PINS[i].reuse), &tree, &err), 0);
        assert_int_equal(lock_set_reuse(lock, tree, &err), 0);
        assert_string_not_equal(lock->root, w->then.lock->root);
        int rc = reuse_pins(w->then.p, lock, &pins, &err);
        if (PINS[i].says == NULL) {
            const struct reuse_counts n = reuse_count(w->then.p, pins);
            assert_int_equal(rc, 0);
            assert_int_equal(n.tasks, 2);
            assert_int_equal(n.cells, 1);
        } else {
            assert_int_equal(rc, ERR_LOCK);
            assert_non_null(strstr(err.msg, PINS[i].says));
        }
        /* a plan without [reuse] has no such lock */
        assert_int_equal(lock_verify(w->then.p, lock, LOCK_PLAN, NULL, NULL, &err), ERR_LOCK);
        free(pins);
        lock_free(lock);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_what_decides_a_result, world_make, world_remove),
        cmocka_unit_test_setup_teardown(test_cells_differ, world_make, world_remove),
        cmocka_unit_test_setup_teardown(test_pins_of_a_stranger, world_make, world_remove),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
