/*
 * The files of jobs, read and written off the loop (folder.h). A job copies what it needs of its
 * attempt, which may end meanwhile.
 */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/files/file.h"
#include "base/layout/layout.h"
#include "base/log.h"
#include "base/text.h"
#include "base/xalloc.h"
#include "daemon/executor/job.h"
#include "daemon/executor/shared_work.h"
#include "daemon/executor/slurm/folder.h"
#include "daemon/executor/slurm/slurm_parts.h"

struct file_job {
    struct job job;
    struct slurm *owner;
    struct attempt_key key;
    char *folder; /* of the attempt; SUBMIT, FORGET: of the program */
    char id[UUID_TEXT_SIZE];
    /* by kind */
    char *jobs;
    struct slurm_sight sight;
    struct slurm_job_hint hint;
    struct slurm_batch batch;
    char *array;
    char *exclude;
    uint32_t shape;
    bool fence;
    struct attempt_end end;
    int rc;
    struct err err;
};

static struct file_job *job_new(struct slurm *x, void (*work)(struct job *),
                                void (*done)(struct job *))
{
    struct file_job *j = xcalloc(1, sizeof(*j));
    j->job.work = work;
    j->job.done = done;
    j->owner = x;
    x->n_jobs++;
    return j;
}

static void job_free(struct file_job *j)
{
    assert(j->owner->n_jobs > 0);
    j->owner->n_jobs--;
    for (size_t i = 0; i < j->batch.n_members; i++) {
        free(j->batch.members[i].folder);
        strbuf_release(&j->batch.members[i].spec);
    }
    free(j->batch.members);
    free(j->folder);
    free(j->jobs);
    free(j->array);
    free(j->exclude);
    free(j);
}

static struct file_job *job_about(struct slurm *x, const struct slurm_attempt *a,
                                  void (*work)(struct job *), void (*done)(struct job *))
{
    struct file_job *j = job_new(x, work, done);
    j->key = a->key;
    j->folder = xstrdup(a->folder);
    memcpy(j->id, a->id, sizeof(j->id));
    return j;
}

/* ---- LOOK ---- */

static void on_look(struct job *job)
{
    struct file_job *j = (struct file_job *)job;
    slurm_folder_look(j->folder, j->id, &j->sight);
}

static void on_looked(struct job *job)
{
    struct file_job *j = (struct file_job *)job;
    struct slurm_event ev = {.kind = SLURM_EVENT_FILES, .key = j->key};
    ev.files.listed = j->sight.listed;
    ev.files.launched = j->sight.launched;
    ev.files.refused = j->sight.refused;
    ev.files.beat = j->sight.beat;
    ev.files.unfit_node = j->sight.is_unfit ? j->sight.unfit.node : NULL;
    ev.files.unfit_has = j->sight.is_unfit ? j->sight.unfit.has : NULL;
    ev.files.end = j->sight.has_end ? &j->sight.end : NULL;
    if (!j->owner->closed) {
        j->owner->step(j->owner, &ev);
    }
    job_free(j);
}

void file_job_look(struct slurm *x, const struct slurm_act *act)
{
    const struct slurm_attempt *a = key_map_get(&x->attempts, &act->key);
    if (a != NULL) {
        job_start(x->loop, &job_about(x, a, on_look, on_looked)->job);
        return;
    }
    struct slurm_event ev = {.kind = SLURM_EVENT_FILES, .key = act->key};
    x->step(x, &ev);
}

/* ---- SUBMIT ---- */

/* The program's jobs/, as nodes see it. */
static char *find_jobs(const char *program_folder)
{
    char *work = shared_work_folder(program_folder);
    char *jobs = path_join(work, LAYOUT_JOBS);
    free(work);
    return jobs;
}

static void on_write(struct job *job)
{
    struct file_job *j = (struct file_job *)job;
    j->jobs = find_jobs(j->folder);
    j->batch.jobs = j->jobs;
    for (size_t i = 0; i < j->batch.n_members; i++) { /* as nodes see them */
        char *real = realpath(j->batch.members[i].folder, NULL);
        if (real != NULL) {
            free(j->batch.members[i].folder);
            j->batch.members[i].folder = real;
        }
    }
    j->rc = j->batch.n_members == 0
                ? err_set(&j->err, ERR_NOT_FOUND, "all of the batch has ended meanwhile")
                : slurm_batch_write(&j->batch, &j->err);
}

static void on_wrote(struct job *job)
{
    struct file_job *j = (struct file_job *)job;
    struct slurm *x = j->owner;
    if (!x->closed && j->rc == 0) {
        struct slurm_shape *s = x->shapes.list[j->shape];
        free(s->jobs);
        s->jobs = xstrdup(j->jobs);
        command_submit(x, j->batch.name, j->array, j->exclude, j->shape);
    } else if (!x->closed) {
        struct slurm_event ev = {.kind = SLURM_EVENT_SUBMITTED,
                                 .name = j->batch.name,
                                 .submit = SLURM_SUBMIT_NOT_MADE,
                                 .no_space = j->rc == ERR_NO_SPACE,
                                 .text = j->err.msg};
        x->step(x, &ev);
    }
    job_free(j);
}

static void add_member(struct slurm *x, struct file_job *j, const struct slurm_entry *entry)
{
    struct slurm_attempt *a = key_map_get(&x->attempts, &entry->key);
    if (a == NULL) {
        return; /* it ended meanwhile; its line of the list stays empty */
    }
    struct slurm_member *m = &j->batch.members[j->batch.n_members++];
    j->shape = a->shape;
    m->folder = xstrdup(a->folder);
    memcpy(m->id, a->id, sizeof(m->id));
    m->no = a->key.no;
    m->index = entry->index;
    m->spec_is_there = !a->has_spec;
    m->spec = (struct strbuf)STRBUF_INIT;
    strbuf_add(&m->spec, a->spec.buf, a->spec.len);
}

void file_job_submit(struct slurm *x, const struct slurm_act *act)
{
    if (act->again) {
        command_submit(x, act->name, act->array, act->exclude, act->shape);
        return;
    }
    struct file_job *j = job_new(x, on_write, on_wrote);
    j->batch.members = xcalloc(act->n_entries + 1, sizeof(*j->batch.members));
    j->shape = act->shape;
    for (size_t i = 0; i < act->n_entries; i++) {
        add_member(x, j, &act->entries[i]);
    }
    const struct slurm_shape *s = x->shapes.list[j->shape];
    (void)snprintf(j->batch.name, sizeof(j->batch.name), "%s", act->name);
    j->batch.is_array = act->array != NULL;
    j->folder = xstrdup(s->folder);
    j->batch.shim = s->shim;
    j->batch.setup = s->setup;
    j->batch.n_setup = s->n_setup;
    j->array = act->array == NULL ? NULL : xstrdup(act->array);
    j->exclude = act->exclude == NULL ? NULL : xstrdup(act->exclude);
    job_start(x->loop, &j->job);
}

static void on_fence(struct job *job)
{
    struct file_job *j = (struct file_job *)job;
    j->rc = slurm_folder_fence(j->folder, &j->err);
    if (j->end.reason == END_NEVER_LAUNCHED) {
        char words[sizeof(j->end.detail)];
        const size_t n = strlen(j->end.detail);
        slurm_folder_words(j->folder, words, sizeof(words));
        if (words[0] != '\0') {
            (void)snprintf(j->end.detail + n, sizeof(j->end.detail) - n, "%s%s", n > 0 ? ": " : "",
                           words);
            text_make_utf8(j->end.detail);
        }
    }
}

/* Without the fence a late job could still run; its result would be refused, since it is no longer
 * the current attempt's. */
static void on_fenced(struct job *job)
{
    struct file_job *j = (struct file_job *)job;
    if (j->rc != 0) {
        log_warn("%s: it is given up, but not fenced off: %s", j->folder, j->err.msg);
    }
    if (!j->owner->closed) {
        j->owner->report_end(j->owner, &j->key, &j->end);
    }
    job_free(j);
}

void file_job_end(struct slurm *x, const struct slurm_act *act)
{
    struct slurm_attempt *a = key_map_get(&x->attempts, &act->key);
    if (!act->fence || a == NULL) {
        x->report_end(x, &act->key, act->end);
        return;
    }
    struct file_job *j = job_about(x, a, on_fence, on_fenced);
    j->end = *act->end;
    a->ending = true;
    job_start(x->loop, &j->job);
}

static void on_forget(struct job *job)
{
    struct file_job *j = (struct file_job *)job;
    j->jobs = find_jobs(j->folder);
    slurm_batch_remove(j->jobs, j->batch.name);
}

static void on_forgotten(struct job *job)
{
    job_free((struct file_job *)job);
}

void file_job_forget(struct slurm *x, const struct slurm_act *act)
{
    struct file_job *j = job_new(x, on_forget, on_forgotten);
    j->folder = xstrdup(x->shapes.list[act->shape]->folder);
    (void)snprintf(j->batch.name, sizeof(j->batch.name), "%s", act->name);
    job_start(x->loop, &j->job);
}

static void on_sweep(struct job *job)
{
    struct file_job *j = (struct file_job *)job;
    j->jobs = find_jobs(j->folder);
    slurm_batch_sweep(j->jobs);
}

void file_job_sweep(struct slurm *x, const char *program_folder)
{
    struct file_job *j = job_new(x, on_sweep, on_forgotten);
    j->folder = xstrdup(program_folder);
    job_start(x->loop, &j->job);
}

void file_job_probe_with(struct slurm *x, const struct slurm_attempt *a, enum slurm_hint hint,
                         const char *name, uint32_t index)
{
    struct slurm_event ev = {.kind = SLURM_EVENT_PROBE, .key = a->key};
    ev.start.id = a->id;
    ev.start.shape = a->shape;
    ev.start.array = a->array;
    ev.start.hint = hint;
    ev.start.name = name;
    ev.start.index = index;
    x->step(x, &ev);
}

static void on_hint(struct job *job)
{
    struct file_job *j = (struct file_job *)job;
    slurm_folder_hint(j->folder, &j->hint);
}

static void on_hinted(struct job *job)
{
    struct file_job *j = (struct file_job *)job;
    struct slurm_attempt *a = key_map_get(&j->owner->attempts, &j->key);
    if (a != NULL && !j->owner->closed) {
        a->hinting = false;
    }
    if (a != NULL && !a->ending && !j->owner->closed) {
        file_job_probe_with(j->owner, a, j->hint.kind, j->hint.name, j->hint.index);
    }
    job_free(j);
}

void file_job_probe(struct slurm *x, struct slurm_attempt *a)
{
    if (!a->hinting) {
        a->hinting = true;
        job_start(x->loop, &job_about(x, a, on_hint, on_hinted)->job);
    }
}
