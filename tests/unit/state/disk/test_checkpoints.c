/* What of a finished task's checkpoints is superseded, and how its files are counted. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/files/file.h"
#include "base/xalloc.h"
#include "state/disk/checkpoints.h"
#include "state/disk/usage.h"
#include "tests/unit/check.h"
#include "tests/unit/scratch.h"

#define FIRST  "attempt-01-11111111-1111-4111-8111-111111111111"
#define SECOND "attempt-02-22222222-2222-4222-8222-222222222222"
#define RESULT                                                                                     \
    "{\"items\":\"items.jsonl\",\"artifacts\":[{\"path\":\"checkpoint/step-000002/weights\"},"     \
    "{\"path\":\"model.bin\"}]}"

static const struct {
    const char *name; /* of a checkpoint */
    bool whole;
    bool stays_last; /* with keep = "last" */
    bool stays_none;
} CHECKPOINTS[] = {
    {FIRST "/checkpoint/step-000001", true, false, false},
    {FIRST "/checkpoint/step-000002", true, false, false}, /* the artifact is the other attempt's */
    {FIRST "/checkpoint/step-000009", true, false, false}, /* newer, but not of the accepted one */
    {SECOND "/checkpoint/step-000001", true, false, false},
    {SECOND "/checkpoint/step-000002", true, true, true},  /* holds an artifact */
    {SECOND "/checkpoint/step-000003", true, true, false}, /* the newest whole one */
    {SECOND "/checkpoint/step-000004", false, false, false},
    {SECOND "/checkpoint/best", true, true, true}, /* of another form: the worker's */
    {SECOND "/checkpoint/step-x", true, true, true},
};

static void make_task(const char *folder)
{
    for (size_t i = 0; i < ARRAY_LEN(CHECKPOINTS); i++) {
        char *data = xasprintf("%s/data", CHECKPOINTS[i].name);
        char *manifest = xasprintf("%s/manifest.json", CHECKPOINTS[i].name);
        scratch_put(folder, data, "x");
        if (CHECKPOINTS[i].whole) {
            scratch_put(folder, manifest, "{}");
        }
        free(data);
        free(manifest);
    }
    scratch_put(folder, SECOND "/result.json", RESULT);
}

static void link_result(const char *folder)
{
    char *link = path_join(folder, "result.json");
    assert_int_equal(symlink(SECOND "/result.json", link), 0);
    free(link);
}

static bool is_listed(const struct name_list *list, const char *folder, const char *name)
{
    char *path = path_join(folder, name);
    bool is = false;
    for (size_t i = 0; i < list->n; i++) {
        is = is || strcmp(list->names[i], path) == 0;
    }
    free(path);
    return is;
}

static void check_keep(const char *folder, bool keep_last)
{
    struct name_list list = {0};
    struct err err = {0};
    size_t n = 0;
    assert_int_equal(checkpoints_superseded(folder, keep_last, &list, &err), 0);
    for (size_t i = 0; i < ARRAY_LEN(CHECKPOINTS); i++) {
        CHECK_ROW("%s, keep_last %d", CHECKPOINTS[i].name, keep_last);
        const bool stays = keep_last ? CHECKPOINTS[i].stays_last : CHECKPOINTS[i].stays_none;
        assert_int_equal(is_listed(&list, folder, CHECKPOINTS[i].name), !stays);
        n += !stays;
    }
    assert_int_equal(list.n, n);
    name_list_release(&list);
}

static void test_superseded(void **state)
{
    (void)state;
    struct name_list list = {0};
    struct err err = {0};
    char *folder = scratch_make();
    make_task(folder);
    assert_int_equal(checkpoints_superseded(folder, false, &list, &err), 0);
    assert_int_equal(list.n, 0); /* not done: the next attempt may resume from any of them */
    link_result(folder);
    check_keep(folder, true);
    check_keep(folder, false);
    scratch_remove(folder);
}

/* A worker may keep its best weights through a link, in the accepted attempt or an earlier one. */
static void test_artifacts_behind_links(void **state)
{
    (void)state;
    struct name_list list = {0};
    struct err err = {0};
    char *folder = scratch_make();
    make_task(folder);
    link_result(folder);
    scratch_put(folder, SECOND "/result.json",
                "{\"items\":\"items.jsonl\",\"artifacts\":[{\"path\":\"best/data\"}]}");
    char *best = path_join(folder, SECOND "/best");
    char *items = path_join(folder, SECOND "/items.jsonl");
    assert_int_equal(symlink("checkpoint/step-000001", best), 0);
    assert_int_equal(symlink("../" FIRST "/checkpoint/step-000009/data", items), 0);
    assert_int_equal(checkpoints_superseded(folder, false, &list, &err), 0);
    assert_false(is_listed(&list, folder, SECOND "/checkpoint/step-000001"));
    assert_false(is_listed(&list, folder, FIRST "/checkpoint/step-000009"));
    assert_true(is_listed(&list, folder, SECOND "/checkpoint/step-000002"));
    name_list_release(&list);
    free(items);
    free(best);
    scratch_remove(folder);
}

/* What a link leads to may be another task's, or the user's: none of it is removed. */
static void test_links_are_left_alone(void **state)
{
    (void)state;
    struct name_list list = {0};
    struct err err = {0};
    char *folder = scratch_make();
    scratch_put(folder, "elsewhere/step-000001/manifest.json", "{}");
    scratch_put(folder, "elsewhere/step-000009/manifest.json", "{}");
    scratch_put(folder, SECOND "/checkpoint/step-000002/manifest.json", "{}");
    scratch_put(folder, FIRST "/start.json", "{}");
    scratch_put(folder, SECOND "/result.json", "{}");
    link_result(folder);
    char *whole = path_join(folder, FIRST "/checkpoint");
    char *one = path_join(folder, SECOND "/checkpoint/step-000009");
    assert_int_equal(symlink("../elsewhere", whole), 0);
    assert_int_equal(symlink("../../elsewhere/step-000009", one), 0);
    assert_int_equal(checkpoints_superseded(folder, false, &list, &err), 0);
    assert_int_equal(list.n, 1);
    assert_true(is_listed(&list, folder, SECOND "/checkpoint/step-000002"));
    name_list_release(&list);
    free(one);
    free(whole);
    scratch_remove(folder);
}

/* A result that cannot be read may name anything. */
static void test_unreadable_result(void **state)
{
    (void)state;
    struct name_list list = {0};
    struct err err = {0};
    char *folder = scratch_make();
    make_task(folder);
    link_result(folder);
    scratch_put(folder, SECOND "/result.json", "{\"artifacts\":");
    assert_int_equal(checkpoints_superseded(folder, false, &list, &err), ERR_CORRUPT);
    assert_int_equal(list.n, 0);
    scratch_remove(folder);
}

/* Without a whole checkpoint in the accepted attempt, the newest of any attempt stays. */
static void test_last_of_another(void **state)
{
    (void)state;
    struct name_list list = {0};
    struct err err = {0};
    char *folder = scratch_make();
    scratch_put(folder, FIRST "/checkpoint/step-000001/manifest.json", "{}");
    scratch_put(folder, FIRST "/checkpoint/step-000002/manifest.json", "{}");
    scratch_put(folder, SECOND "/checkpoint/step-000003/torn", "x");
    scratch_put(folder, SECOND "/result.json", "{\"artifacts\":[]}");
    link_result(folder);
    assert_int_equal(checkpoints_superseded(folder, true, &list, &err), 0);
    assert_int_equal(list.n, 2);
    assert_true(is_listed(&list, folder, FIRST "/checkpoint/step-000001"));
    assert_true(is_listed(&list, folder, SECOND "/checkpoint/step-000003"));
    name_list_release(&list);
    scratch_remove(folder);
}

/* Every kind, by files of one byte: each takes the same blocks. */
static void test_kinds(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        enum usage_kind kind;
    } files[] = {
        {"cells/a/done/" SECOND "/model.bin", USAGE_ARTIFACTS},
        {"cells/a/done/" SECOND "/items.jsonl", USAGE_ITEMS},
        {"cells/a/done/" SECOND "/events.jsonl", USAGE_EVENTS},
        {"cells/a/done/" SECOND "/stderr.log", USAGE_LOGS},
        {"cells/a/done/" FIRST "/left", USAGE_DEAD},
        {"cells/a/done/" FIRST "/shim.log", USAGE_LOGS},
        {"cells/a/open/" FIRST "/checkpoint/step-1/x", USAGE_CHECKPOINTS_OPEN},
        {"cells/a/open/" SECOND "/checkpoint/step-1/x", USAGE_CHECKPOINTS_RUNNING},
        {"journal.jsonl", USAGE_JOURNAL},
        {"journal.jsonl.broken", USAGE_JOURNAL},
        {"grid.toml", USAGE_PLAN},
        {"amendments/0001.json", USAGE_PLAN},
        {"report/verdict.json", USAGE_REPORT},
        {"report.log", USAGE_REPORT},
        {"reruns/x.json", USAGE_RERUNS},
    };
    char *folder = scratch_make();
    char *task = path_join(folder, "cells/a/done");
    int64_t wanted[USAGE_KIND_NR] = {0};
    for (size_t i = 0; i < ARRAY_LEN(files); i++) {
        char *path = scratch_write(folder, files[i].name, "x", 0600);
        wanted[files[i].kind] += usage_of_path(path);
        free(path);
    }
    make_task(task);
    link_result(task);
    scratch_put(folder, "cells/a/open/" FIRST "/exit.json", "{}");
    struct usage u;
    usage_of_program(folder, true, &u);
    assert_false(u.partial);
    for (int k = USAGE_DEAD; k < USAGE_KIND_NR; k++) {
        CHECK_ROW("%s", usage_kind_name((enum usage_kind)k));
        if (k == USAGE_RECORDS) {
            assert_true(u.bytes[k] > 0);
        } else if (k >= USAGE_PLAN) { /* with their folders */
            assert_true(u.bytes[k] >= wanted[k]);
        } else {
            assert_int_equal(u.bytes[k], wanted[k]);
        }
    }
    assert_true(u.bytes[USAGE_CHECKPOINTS_OPEN] >= wanted[USAGE_CHECKPOINTS_OPEN]);
    assert_true(u.bytes[USAGE_CHECKPOINTS_RUNNING] >= wanted[USAGE_CHECKPOINTS_RUNNING]);
    assert_true(u.bytes[USAGE_ARTIFACTS] > wanted[USAGE_ARTIFACTS]);
    assert_true(u.superseded_none > u.superseded_last && u.superseded_last > 0);
    assert_int_equal(u.bytes[USAGE_CHECKPOINTS_DONE], u.superseded_none);
    struct usage brief;
    usage_of_program(folder, false, &brief);
    assert_int_equal(usage_cells(&brief), usage_cells(&u));
    free(task);
    scratch_remove(folder);
}

/* A link is counted, not what it leads to; a folder that is missing is no error. */
static void test_links(void **state)
{
    (void)state;
    char *folder = scratch_make();
    char *link = path_join(folder, "report");
    assert_int_equal(symlink("/usr", link), 0);
    struct usage u;
    usage_of_program(folder, true, &u);
    assert_true(u.bytes[USAGE_REPORT] < 65536);
    assert_true(u.cells_missing);
    assert_false(u.partial);
    free(link);
    usage_of_program("/nowhere/at/all", true, &u);
    assert_true(u.partial);
    scratch_remove(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_superseded),
        cmocka_unit_test(test_artifacts_behind_links),
        cmocka_unit_test(test_links_are_left_alone),
        cmocka_unit_test(test_unreadable_result),
        cmocka_unit_test(test_last_of_another),
        cmocka_unit_test(test_kinds),
        cmocka_unit_test(test_links),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
