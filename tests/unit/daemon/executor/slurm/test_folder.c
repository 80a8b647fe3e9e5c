/* The files of jobs: what one daemon writes is what the shim, the job and the next daemon find. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/files/file.h"
#include "base/layout/layout.h"
#include "base/xalloc.h"
#include "daemon/executor/slurm/folder.h"
#include "daemon/executor/slurm/script.h"
#include "daemon/shim/current.h"
#include "daemon/shim/fence.h"
#include "tests/unit/check.h"
#include "tests/unit/scratch.h"

#define BATCH "aaaaaaaa-0000-4000-8000-00000000000b"

static const char *const IDS[] = {"11111111-0000-4000-8000-000000000001",
                                  "22222222-0000-4000-8000-000000000002"};

static struct slurm_member member_make(size_t i, uint32_t index)
{
    struct slurm_member m = {.no = 3, .index = index, .spec = STRBUF_INIT};
    char *name = attempt_name_format(m.no, IDS[i]);
    struct err err;
    char *cells = path_join(scratch_folder, "cells");
    if (i == 0) {
        assert_int_equal(dir_remove(cells, &err), 0);
    }
    free(cells);
    (void)snprintf(m.id, sizeof(m.id), "%s", IDS[i]);
    m.folder = xasprintf("%s/cells/a=%zu/train/%s", scratch_folder, i, name);
    assert_int_equal(dir_make(m.folder, 0700, &err), 0);
    strbuf_addf(&m.spec, "spec %zu\n", i);
    free(name);
    return m;
}

static void member_release(struct slurm_member *m)
{
    free(m->folder);
    strbuf_release(&m->spec);
}

static char *read_in(const char *folder, const char *name)
{
    char *path = path_join(folder, name);
    char *text = scratch_read(path);
    free(path);
    return text;
}

static void expect_member(const struct slurm_member *m, const char *job)
{
    struct err err;
    struct slurm_job_hint hint;
    char *found = read_in(m->folder, LAYOUT_JOB);
    assert_string_equal(found, job);
    free(found);
    found = read_in(m->folder, LAYOUT_SPEC);
    assert_string_equal(found, m->spec.buf);
    free(found);
    assert_int_equal(current_compare(m->folder, &err), CURRENT_OURS);
    slurm_folder_hint(m->folder, &hint);
    assert_int_equal(hint.kind, SLURM_HINT_JOB);
    assert_string_equal(hint.name, BATCH);
}

/* An attempt that ended before its batch was written leaves an empty line. */
static void test_array(void **state)
{
    struct slurm_member members[] = {member_make(0, 0), member_make(1, 2)};
    char *jobs = path_join(scratch_folder, "jobs");
    struct slurm_batch b = {.name = BATCH,
                            .is_array = true,
                            .jobs = jobs,
                            .shim = "/opt/prereg-shim",
                            .members = members,
                            .n_members = 2};
    struct err err;
    (void)state;
    assert_int_equal(slurm_batch_write(&b, &err), 0);
    expect_member(&members[0], "{\"name\":\"" BATCH "\",\"index\":0}");
    expect_member(&members[1], "{\"name\":\"" BATCH "\",\"index\":2}");
    char *want = xasprintf("%s\n\n%s\n", members[0].folder, members[1].folder);
    char *list = read_in(jobs, BATCH ".list");
    assert_string_equal(list, want);
    char *script = slurm_batch_script(jobs, BATCH);
    assert_int_equal(access(script, F_OK), 0);
    slurm_batch_remove(jobs, BATCH);
    assert_int_not_equal(access(script, F_OK), 0);
    free(script);
    free(list);
    free(want);
    free(jobs);
    member_release(&members[0]);
    member_release(&members[1]);
}

static void test_single(void **state)
{
    struct slurm_member m = member_make(0, 0);
    char *jobs = path_join(scratch_folder, "jobs");
    struct slurm_batch b = {
        .name = BATCH, .jobs = jobs, .shim = "/opt/shim", .members = &m, .n_members = 1};
    struct slurm_job_hint hint;
    struct err err;
    (void)state;
    assert_int_equal(slurm_batch_write(&b, &err), 0);
    expect_member(&m, "{\"name\":\"" BATCH "\"}");
    slurm_folder_hint(m.folder, &hint);
    assert_int_equal(hint.index, SLURM_INDEX_NONE);
    free(jobs);
    member_release(&m);
}

/* Nothing is submitted whose files could not be written. */
static void test_not_written(void **state)
{
    struct slurm_member m = member_make(0, 0);
    struct slurm_batch b = {
        .name = BATCH, .jobs = "/proc/jobs", .shim = "/opt/shim", .members = &m, .n_members = 1};
    struct err err;
    (void)state;
    assert_int_not_equal(slurm_batch_write(&b, &err), 0);
    char *jobs = path_join(scratch_folder, "jobs");
    b.jobs = jobs;
    free(m.folder);
    m.folder = xstrdup("/tmp/a\nb");
    assert_int_equal(slurm_batch_write(&b, &err), ERR_INVALID);
    free(jobs);
    member_release(&m);
}

/* Of an earlier daemon's attempt the spec is on disk, and stays what it is. */
static void test_written_again(void **state)
{
    struct slurm_member m = member_make(0, 0);
    char *jobs = path_join(scratch_folder, "jobs");
    struct slurm_batch b = {
        .name = BATCH, .jobs = jobs, .shim = "/opt/shim", .members = &m, .n_members = 1};
    struct err err;
    (void)state;
    m.spec_is_there = true;
    assert_int_equal(slurm_batch_write(&b, &err), ERR_NOT_FOUND);
    scratch_put(m.folder, LAYOUT_SPEC, "spec 0\n");
    scratch_put(m.folder, LAYOUT_JOB, "{\"name\":\"" BATCH "\"}\n");
    slurm_batch_remove(jobs, BATCH); /* the daemon before died before it wrote it */
    strbuf_clear(&m.spec);
    assert_int_equal(slurm_batch_write(&b, &err), 0);
    strbuf_adds(&m.spec, "spec 0\n");
    expect_member(&m, "{\"name\":\"" BATCH "\"}");
    char *script = slurm_batch_script(jobs, BATCH);
    assert_int_equal(access(script, F_OK), 0);
    free(script);
    free(jobs);
    member_release(&m);
}

/* What a daemon that died has left of batches that are over is removed; nothing else is. */
static void test_sweep(void **state)
{
    struct slurm_member members[] = {member_make(0, 0), member_make(1, 1)};
    char *jobs = path_join(scratch_folder, "jobs");
    struct slurm_batch b = {.name = BATCH,
                            .is_array = true,
                            .jobs = jobs,
                            .shim = "/opt/prereg-shim",
                            .members = members,
                            .n_members = 2};
    struct slurm_batch one = {
        .jobs = jobs, .shim = "/opt/shim", .members = members, .n_members = 1};
    struct err err;
    (void)state;
    (void)snprintf(one.name, sizeof(one.name), "%s", IDS[0]);
    assert_int_equal(slurm_batch_write(&b, &err), 0);
    assert_int_equal(slurm_batch_write(&one, &err), 0);
    scratch_put(jobs, "notes.list", "");
    char *script = slurm_batch_script(jobs, BATCH);
    char *script_of_one = slurm_batch_script(jobs, IDS[0]);
    slurm_batch_sweep(jobs);
    assert_int_equal(access(script_of_one, F_OK), 0);
    scratch_put(members[0].folder, LAYOUT_EXIT, "{}");
    slurm_batch_sweep(jobs);
    assert_int_equal(access(script, F_OK), 0); /* the second one may be needed */
    assert_int_not_equal(access(script_of_one, F_OK), 0);
    assert_int_equal(slurm_folder_fence(members[1].folder, &err), 0);
    slurm_batch_sweep(jobs);
    assert_int_not_equal(access(script, F_OK), 0);
    char *left = read_in(jobs, "notes.list");
    free(left);
    free(script);
    free(script_of_one);
    free(jobs);
    member_release(&members[0]);
    member_release(&members[1]);
}

/* Why a job has not begun: its shim's words, else the last ones of its script. */
static void test_words(void **state)
{
    struct slurm_member m = member_make(0, 0);
    char words[64] = "x";
    (void)state;
    slurm_folder_words(m.folder, words, sizeof(words));
    assert_string_equal(words, "");
    scratch_put(m.folder, SLURM_SCRIPT_LOG, "loading\nline 2 of [run.slurm] setup failed\n");
    slurm_folder_words(m.folder, words, sizeof(words));
    assert_string_equal(words, "line 2 of [run.slurm] setup failed");
    scratch_put(m.folder, LAYOUT_SHIM_LOG, "2026-11-28T08:28:54.596Z error no such model\n");
    slurm_folder_words(m.folder, words, sizeof(words));
    assert_string_equal(words, "no such model");
    member_release(&m);
}

static void test_sight(void **state)
{
    struct slurm_member m = member_make(0, 0);
    struct slurm_sight s;
    struct slurm_job_hint hint;
    struct err err;
    (void)state;
    slurm_folder_look("/nowhere/attempt-01-x", IDS[0], &s);
    assert_false(s.listed);
    slurm_folder_hint("/nowhere/attempt-01-x", &hint);
    assert_int_equal(hint.kind, SLURM_HINT_UNCLEAR);
    slurm_folder_hint(m.folder, &hint);
    assert_int_equal(hint.kind, SLURM_HINT_NEVER);
    scratch_put(m.folder, LAYOUT_JOB, "{\"name\":7}");
    slurm_folder_hint(m.folder, &hint);
    assert_int_equal(hint.kind, SLURM_HINT_UNCLEAR);
    slurm_folder_look(m.folder, IDS[0], &s);
    assert_true(s.listed && !s.launched && !s.refused && s.beat == 0 && !s.has_end);
    assert_false(s.is_unfit);
    scratch_put(m.folder, LAYOUT_UNFIT, "{\"torn");
    slurm_folder_look(m.folder, IDS[0], &s);
    assert_false(s.is_unfit);
    assert_int_equal(unfit_write(m.folder, &(struct unfit){.node = "n1", .has = "NVIDIA T4"}, &err),
                     0);
    slurm_folder_look(m.folder, IDS[0], &s);
    assert_true(s.is_unfit);
    assert_string_equal(s.unfit.node, "n1");
    assert_string_equal(s.unfit.has, "NVIDIA T4");
    scratch_put(m.folder, LAYOUT_START, "");
    scratch_put(m.folder, LAYOUT_REFUSED, "");
    scratch_put(m.folder, LAYOUT_HEARTBEAT, "17 boot host 4_2\n");
    scratch_put(m.folder, LAYOUT_EXIT, "{\"torn");
    slurm_folder_look(m.folder, IDS[0], &s);
    assert_true(s.launched && s.refused && s.beat == 17 && !s.has_end);
    assert_false(s.is_unfit); /* it has begun after all */
    assert_false(fence_is_set(m.folder));
    assert_int_equal(slurm_folder_fence(m.folder, &err), 0);
    assert_true(fence_is_set(m.folder));
    slurm_folder_hint(m.folder, &hint);
    assert_int_equal(hint.kind, SLURM_HINT_UNCLEAR); /* its exit.json decides */
    char *end = path_join(m.folder, LAYOUT_EXIT);
    assert_int_equal(unlink(end), 0);
    slurm_folder_hint(m.folder, &hint);
    assert_int_equal(hint.kind, SLURM_HINT_FENCED);
    free(end);
    member_release(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_array),       cmocka_unit_test(test_single),
        cmocka_unit_test(test_not_written), cmocka_unit_test(test_written_again),
        cmocka_unit_test(test_sweep),       cmocka_unit_test(test_words),
        cmocka_unit_test(test_sight),
    };
    return cmocka_run_group_tests(tests, scratch_enter, scratch_leave);
}
