/*
 * Runs stages as a rerun does, from copies of the workers in a scratch folder under $TMPDIR, with
 * the member "try" in the task. Costs of the whole are extrapolated from the part that the worker
 * did: time and the files that grow with the work are multiplied, memory and the other files are
 * not. A result is checked as the daemon checks it (prereg/task/task_result.h), but no value of it
 * other than its "try" is used or printed; the task is marked sealed, so that a worker prints no
 * score.
 */
#include "ctl/trial.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/files/file.h"
#include "base/files/temp_folder.h"
#include "base/json/json.h"
#include "base/layout/layout.h"
#include "base/uuid.h"
#include "base/xalloc.h"
#include "ctl/rerun_worker.h"
#include "prereg/lock/object.h"
#include "prereg/task/container.h"
#include "prereg/task/describe.h"
#include "prereg/task/task.h"
#include "prereg/task/task_result.h"

#define UNMEASURABLE 69 /* the worker protocol's */
#define DEPTH_MAX    64

/* The state of one try. */
struct trying {
    const struct plan_program *p;
    const struct lock *lock;
    const struct try_spec *spec;
    struct rerun_guard guard;
    char *scratch;
    cJSON *rows;
};

/* ---- which cells ---- */

/* Cell i has level i of every factor (modulo their number), so every level of each occurs;
 * replicates stay at their first. */
size_t *try_choose_cells(const struct plan_program *p, size_t *n)
{
    size_t most = 1;
    for (size_t f = 0; f < p->n_factors; f++) {
        if (!p->factors[f].replicate && p->factors[f].n_levels > most) {
            most = p->factors[f].n_levels;
        }
    }
    size_t *cells = xcalloc(most, sizeof(*cells));
    for (size_t i = 0; i < most; i++) {
        for (size_t f = 0; f < p->n_factors; f++) {
            const struct plan_factor *factor = &p->factors[f];
            cells[i] = cells[i] * factor->n_levels + (factor->replicate ? 0 : i % factor->n_levels);
        }
    }
    *n = most;
    return cells;
}

/* ---- disk ---- */

/* Bytes of the files below; links are not followed. */
static double bytes_below(const char *path, int depth)
{
    struct name_list names;
    struct err ignored;
    double sum = 0;
    if (dir_list(path, &names, &ignored) == 0 && depth < DEPTH_MAX) {
        for (size_t i = 0; i < names.n; i++) {
            struct stat st;
            char *inner = path_join(path, names.names[i]);
            if (lstat(inner, &st) == 0) {
                sum += S_ISDIR(st.st_mode)   ? bytes_below(inner, depth + 1)
                       : S_ISREG(st.st_mode) ? (double)st.st_size
                                             : 0;
            }
            free(inner);
        }
    }
    name_list_release(&names);
    return sum;
}

/* The size of a regular file; 0 when it is not there. */
static double bytes_of_file(const char *folder, const char *name)
{
    struct stat st;
    char *path = path_join(folder, name);
    const double bytes = lstat(path, &st) == 0 && S_ISREG(st.st_mode) ? (double)st.st_size : 0;
    free(path);
    return bytes;
}

/* The bytes of the files that grow with the work: events and, of an evaluation, items.jsonl. */
static double bytes_that_grow(const cJSON *result, const char *folder)
{
    const cJSON *items = json_member(result, "items");
    double bytes = bytes_of_file(folder, LAYOUT_EVENTS);
    if (cJSON_IsString(items) && path_stays_inside(items->valuestring)) {
        bytes += bytes_of_file(folder, items->valuestring);
    }
    return bytes;
}

/* ---- one stage ---- */

static char *stage_folder(const struct trying *t, size_t cell, size_t stage)
{
    return xasprintf("%s/cells/%zu/%s", t->scratch, cell, t->p->stages[stage].name);
}

/* Makes the stage's folder and task.json, with inputs from this try and the limits of "try". */
static int write_task(const struct trying *t, size_t cell, size_t stage, const char *id,
                      struct err *err)
{
    const struct plan_stage *s = &t->p->stages[stage];
    char **inputs = xcalloc(s->n_after + 1, sizeof(*inputs));
    for (size_t i = 0; i < s->n_after; i++) {
        inputs[i] = stage_folder(t, cell, s->after[i]);
    }
    const struct task_attempt a = {.cell = cell,
                                   .stage = stage,
                                   .id = id,
                                   .no = 1,
                                   .input_folders = (const char *const *)inputs,
                                   .memory_bytes = s->run.memory_bytes};
    char *folder = stage_folder(t, cell, stage);
    cJSON *o = task_json_build(t->p, t->lock, &a);
    cJSON *limits = json_object();
    json_put_int(limits, "steps", t->spec->steps);
    json_put_int(limits, "items", t->spec->items);
    json_put(o, "try", limits);
    /* Before the lock no score may be seen, whatever the plan seals: the last line of a log is
     * shown. */
    cJSON_DeleteItemFromObjectCaseSensitive(o, "sealed");
    json_put_bool(o, "sealed", true);
    int rc = dir_make(folder, 0700, err);
    if (rc == 0) {
        rc = rerun_worker_prepare(folder, o, err);
    }
    cJSON_Delete(o);
    free(folder);
    xfree_list(inputs);
    return rc;
}

/* Whether the member is a positive number. */
static bool positive(const cJSON *o, const char *key, double *out)
{
    const cJSON *v = json_member(o, key);
    *out = cJSON_IsNumber(v) ? v->valuedouble : 0;
    return isfinite(*out) && *out > 0;
}

/* How often the work that was done fits into the whole; 1 when the worker reports nothing. */
static double times_more(const cJSON *result, double *seconds)
{
    const cJSON *tried = json_member(result, "try");
    double done = 0;
    double of = 0;
    *seconds = 0;
    return positive(tried, "done", &done) && positive(tried, "of", &of) &&
                   positive(tried, "seconds", seconds) && of > done
               ? of / done
               : 1;
}

/* A number of 0..most, or null: results come from a worker and may be anything. */
static void put_bounded(cJSON *row, const char *key, double value, double most)
{
    if (isfinite(value) && value >= 0 && value <= most) {
        json_put_number(row, key, value);
    } else {
        json_put_null(row, key);
    }
}

/* What the worker reports that the whole task needs, where that is more than was measured: batch
 * and model of a try are those of the whole, but a checkpoint's copy and later checkpoints may
 * be missing. */
static double at_least_described(const cJSON *described, const char *fact, double seen)
{
    double needed = 0;
    return describe_fact(described, fact, &needed) && needed > seen ? needed : seen;
}

/* What the stage took, and what the whole would take. */
static void put_costs(cJSON *row, const struct rerun_ended *ended, const char *folder,
                      const cJSON *described)
{
    cJSON *result = NULL;
    struct err ignored;
    char *path = path_join(folder, LAYOUT_RESULT);
    double inner = 0;
    if (json_read_file_lax(path, LAYOUT_RESULT_MAX, &result, &ignored) != 0) {
        result = json_object();
    }
    /* 1 unless the worker reports that it did a part */
    double times = times_more(result, &inner);
    double disk = bytes_below(folder, 0);
    /* only the files that grow with the work are multiplied */
    double whole_disk = disk + bytes_that_grow(result, folder) * (times - 1);
    put_bounded(row, "seconds", ended->seconds, TRY_SECONDS_MAX);
    put_bounded(row, "whole_seconds", ended->seconds + inner * (times - 1), TRY_SECONDS_MAX);
    put_bounded(row, "peak_bytes", ended->peak_bytes, JSON_INT_MAX);
    put_bounded(row, "whole_peak_bytes",
                at_least_described(described, "memory_bytes", ended->peak_bytes), JSON_INT_MAX);
    put_bounded(row, "disk_bytes", disk, JSON_INT_MAX);
    put_bounded(row, "whole_disk_bytes", at_least_described(described, "disk_bytes", whole_disk),
                JSON_INT_MAX);
    json_put_bool(row, "ran_whole", !cJSON_IsObject(json_member(result, "try")));
    cJSON_Delete(result);
    free(path);
}

/* A stage of the cell that is being tried. */
struct tried_stage {
    const struct trying *t;
    size_t cell;
    size_t stage;
    const char *id; /* of its attempt */
};

/* Looks up a stage that the result says it read (task_input_find): its result is in this try. */
static int find_input(const void *inputs, const char *stage, bool *known, cJSON **result,
                      struct err *err)
{
    const struct tried_stage *tried = inputs;
    const struct plan_program *p = tried->t->p;
    const struct plan_stage *s = &p->stages[tried->stage];
    int rc = 0;
    for (size_t i = 0; i < s->n_after && !*known; i++) {
        if (strcmp(p->stages[s->after[i]].name, stage) == 0) {
            char *folder = stage_folder(tried->t, tried->cell, s->after[i]);
            char *path = path_join(folder, LAYOUT_RESULT);
            *known = true;
            rc = json_read_file_lax(path, LAYOUT_RESULT_MAX, result, err);
            free(path);
            free(folder);
        }
    }
    return rc;
}

/* A stage is done when it left a result that the daemon would accept. */
static int check_result(const struct tried_stage *tried, const char *folder, struct err *err)
{
    const struct plan_program *p = tried->t->p;
    const struct task_result expected = {.program = p,
                                         .lock = tried->t->lock,
                                         .cell = tried->cell,
                                         .stage = tried->stage,
                                         .folder = folder,
                                         .attempt = tried->id,
                                         .find_input = find_input,
                                         .inputs = tried};
    struct digest ignored;
    cJSON *result = NULL;
    int rc = task_result_read(&expected, &ignored, &result, err);
    cJSON_Delete(result);
    return rc == ERR_NOT_FOUND
               ? err_set(err, ERR_OTHER, "%s ended with code 0 and wrote no " LAYOUT_RESULT,
                         p->stages[tried->stage].name)
               : rc;
}

/* Runs one stage from the scratch folder's objects. */
static int run_worker(const struct trying *t, size_t cell, size_t stage, struct rerun_ended *ended,
                      struct err *err)
{
    const struct plan_stage *s = &t->p->stages[stage];
    const struct object_home home = {.state = t->scratch, .program = t->p, .lock = t->lock};
    char id[UUID_TEXT_SIZE];
    const struct tried_stage tried = {.t = t, .cell = cell, .stage = stage, .id = id};
    char **argv = NULL;
    char **env = NULL;
    char *folder = stage_folder(t, cell, stage);
    char *exec = NULL;
    char *task = NULL;
    char *container = NULL;
    uuid_make(id);
    int rc = object_argv(&home, stage, &argv, err);
    if (rc != 0 || (rc = write_task(t, cell, stage, id, err)) != 0) {
        goto out;
    }
    env = task_environment_list(s, folder);
    task = path_join(folder, LAYOUT_TASK);
    container = s->image == NULL ? NULL : xasprintf("prereg-%s", id);
    const struct container_task inside = {.stage = s,
                                          .image = lock_image(t->lock, s),
                                          .folder = folder,
                                          .task = task,
                                          .name = container};
    if ((rc = container_command(&inside, &argv, &env, &exec, err)) != 0) {
        goto out;
    }
    const struct rerun_worker w = {.name = s->name,
                                   .exec = exec,
                                   .argv = argv,
                                   .env = env,
                                   .folder = folder,
                                   .container = container,
                                   .ended = ended};
    rc = rerun_worker_run(&t->guard, &w, err);
    if (rc == 0) {
        rc = check_result(&tried, folder, err);
    }
out:
    free(container);
    free(exec);
    free(task);
    free(folder);
    xfree_list(env);
    xfree_list(argv);
    return rc;
}

/* A row without costs. */
static cJSON *new_row(const struct trying *t, size_t cell, size_t stage, const char *state,
                      const char *why)
{
    cJSON *row = json_object();
    json_put_string(row, "cell", t->p->cells[cell].name);
    json_put_string(row, "stage", t->p->stages[stage].name);
    json_put_string(row, "state", state);
    json_put_string(row, "why", why);
    return row;
}

/* Whether all inputs of the stage are there; otherwise it is left out. */
static bool has_inputs(const struct trying *t, size_t stage, const bool *done)
{
    const struct plan_stage *s = &t->p->stages[stage];
    for (size_t i = 0; i < s->n_after; i++) {
        if (!done[s->after[i]]) {
            return false;
        }
    }
    return true;
}

/* Runs one stage and adds its row. Only a signal, or a failure of this machine, ends the whole
 * try. */
static int try_stage(struct trying *t, size_t cell, size_t stage, bool *done, struct err *err)
{
    struct rerun_ended ended = {.code = -1};
    struct err why;
    if (!has_inputs(t, stage, done)) {
        json_push(t->rows, new_row(t, cell, stage, "left_out", "an earlier stage gave nothing"));
        return 0;
    }
    if (t->spec->begins != NULL) {
        t->spec->begins(t->p->cells[cell].name, t->p->stages[stage].name);
    }
    int rc = run_worker(t, cell, stage, &ended, &why);
    int stopped = rc == 0 ? rerun_guard_check(&t->guard, err) : 0;
    /* a signal ends the whole try */
    if (rc == ERR_REFUSED || stopped != 0) {
        *err = stopped != 0 ? *err : why;
        return ERR_REFUSED;
    }
    done[stage] = rc == 0;
    cJSON *row = rc == 0                      ? new_row(t, cell, stage, "done", NULL)
                 : ended.code == UNMEASURABLE ? new_row(t, cell, stage, "cannot_be_measured",
                                                        "after so little (exit code 69)")
                                              : new_row(t, cell, stage, "failed", why.msg);
    if (rc == 0) {
        char *folder = stage_folder(t, cell, stage);
        put_costs(row, &ended, folder,
                  describe_find(t->lock->describe, t->p, t->p->cells[cell].condition, stage));
        free(folder);
    }
    json_push(t->rows, row);
    return 0;
}

/* Runs the cell's stages in order, then removes its folder, so that one cell's files are the
 * most there are at a time. */
static int try_cell(struct trying *t, size_t cell, struct err *err)
{
    bool *done = xcalloc(t->p->n_stages, sizeof(*done));
    int rc = 0;
    for (size_t s = 0; rc == 0 && s < t->p->n_stages; s++) {
        rc = try_stage(t, cell, s, done, err);
    }
    free(done);
    char *folder = xasprintf("%s/cells/%zu", t->scratch, cell);
    struct err left;
    int removed = dir_remove(folder, &left); /* the next cell has its room */
    if (rc == 0 && removed != 0) {
        *err = left;
        rc = removed;
    }
    free(folder);
    return rc;
}

/* Copies the workers into the scratch folder first, as submit does into the state folder. */
static int try_cells(struct trying *t, struct err *err)
{
    int rc = object_store_all(t->p, t->lock, t->scratch, NULL, err);
    for (size_t i = 0; rc == 0 && i < t->spec->n_cells; i++) {
        rc = try_cell(t, t->spec->cells[i], err);
    }
    return rc;
}

/* *rows is set in any case, with what was tried before an error. */
int try_run(const struct plan_program *p, const struct lock *lock, const struct try_spec *spec,
            cJSON **rows, struct err *err)
{
    struct temp_folder temp;
    struct trying t = {
        .p = p, .lock = lock, .spec = spec, .guard = {.fd = -1}, .rows = json_array()};
    struct err left;
    int rc = rerun_guard_open(&t.guard, err);
    if (rc != 0 || (rc = temp_folder_make("try", &temp, err)) != 0) {
        goto out;
    }
    t.scratch = temp.path;
    rc = try_cells(&t, err);
    if (temp_folder_remove(&temp, &left) != 0) {
        rc = rc != 0 ? err_wrap(err, "%.200s", left.msg) : err_set(err, ERR_IO, "%s", left.msg);
    }
out:
    rerun_guard_close(&t.guard);
    *rows = t.rows;
    return rc;
}
