/*
 * Runs the stages of one cell in order, each as its accepted result was made: under the plan of
 * that time, from the pinned copy of its worker, in a new folder, without earlier attempts. What a
 * stage gives is checked like a result of a run, then compared with the accepted one
 * (rerun_file.c). The work folder is removed in the end or published with --keep; signals are held
 * meanwhile (rerun_worker.c).
 */
#include "ctl/rerun.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/files/file.h"
#include "base/json/json.h"
#include "base/layout/layout.h"
#include "base/machine/machine.h"
#include "base/text.h"
#include "base/uuid.h"
#include "base/xalloc.h"
#include "ctl/receipt/rerun_file.h"
#include "ctl/rerun_worker.h"
#include "prereg/lock/object.h"
#include "prereg/task/container.h"
#include "prereg/task/task.h"
#include "prereg/task/task_result.h"

#define MACHINE_TEXT 256

struct running {
    struct rerun_source *src;
    const struct rerun_spec *spec;
    struct rerun_guard guard;
    char *name; /* "<cell>-<time>" */
    char *base; /* the folder that receives everything */
    char *work; /* base/<name>.work, until it is done */
    cJSON *file;
};

/* A stage whose result names what it read. */
struct rerun_input {
    const struct running *r;
    size_t stage;
};

/* ---- which stages ---- */

/* Marks a stage and every stage that it depends on. */
static void want_stage(const struct plan_program *p, size_t stage, bool *wanted)
{
    wanted[stage] = true;
    for (size_t i = stage + 1; i-- > 0;) { /* stages are in topological order */
        for (size_t k = 0; wanted[i] && k < p->stages[i].n_after; k++) {
            wanted[p->stages[i].after[k]] = true;
        }
    }
}

/* The error for an unknown stage, with the nearest name. */
static int unknown_stage(const struct plan_program *p, const char *name, struct err *err)
{
    const char **names = xcalloc(p->n_stages, sizeof(*names));
    for (size_t i = 0; i < p->n_stages; i++) {
        names[i] = p->stages[i].name;
    }
    const char *near = text_nearest(name, names, p->n_stages);
    free(names);
    return near != NULL
               ? err_set(err, ERR_NOT_FOUND,
                         "no stage is called \"%.80s\"; did you mean \"%.64s\"?", name, near)
               : err_set(err, ERR_NOT_FOUND, "no stage is called \"%.80s\"", name);
}

/* The stage that was named, with what it depends on, or every stage that is done. Stages before
 * a done one are done as well. */
static int choose_stages(const struct running *r, bool *wanted, struct err *err)
{
    const struct plan_program *p = r->src->program;
    if (r->spec->stage == NULL) {
        for (size_t i = 0; i < p->n_stages; i++) {
            wanted[i] = r->src->accepted[i].done;
        }
        return 0;
    }
    size_t stage = program_find_stage(p, r->spec->stage);
    if (stage == INDEX_NONE) {
        return unknown_stage(p, r->spec->stage, err);
    }
    if (!r->src->accepted[stage].done) {
        return err_set(err, ERR_REFUSED, "%s of this cell is not done: there is nothing to compare",
                       p->stages[stage].name);
    }
    want_stage(p, stage, wanted);
    return 0;
}

/* ---- the worker's task ---- */

static char *stage_folder(const struct running *r, size_t stage)
{
    return path_join(r->work, r->src->program->stages[stage].name);
}

/* Makes the stage's folder with its task.json; its inputs are the folders of this rerun, not
 * accepted ones. */
static int write_task(const struct running *r, size_t stage, const char *id, struct err *err)
{
    const struct plan_program *p = r->src->program;
    const struct plan_stage *s = &p->stages[stage];
    char **inputs = xcalloc(s->n_after + 1, sizeof(*inputs));
    for (size_t i = 0; i < s->n_after; i++) {
        inputs[i] = stage_folder(r, s->after[i]);
    }
    const struct task_attempt a = {.cell = r->src->cell,
                                   .stage = stage,
                                   .id = id,
                                   .no = 1,
                                   .input_folders = (const char *const *)inputs,
                                   .memory_bytes = s->run.memory_bytes};
    char *folder = stage_folder(r, stage);
    cJSON *o = task_json_build(p, r->src->lock, &a);
    int rc = mkdir(folder, 0700) != 0 ? err_set_errno(err, errno, "make %s", folder)
                                      : rerun_worker_prepare(folder, o, err);
    cJSON_Delete(o);
    free(folder);
    xfree_list(inputs);
    return rc;
}

/* ---- the worker's result ---- */

/* Verifies that a file has the digest that the result states, because that digest will be
 * compared. */
static int check_artifact(const cJSON *a, const char *folder, struct err *err)
{
    const char *path = NULL;
    const char *hex = NULL;
    struct digest stated;
    struct digest found;
    if (json_get_string(a, "path", &path, err) != 0 ||
        json_get_string(a, "sha256", &hex, err) != 0 || digest_from_hex(hex, &stated, err) != 0) {
        return err_wrap(err, "artifacts");
    }
    if (!path_stays_inside(path)) {
        return err_set(err, ERR_PROTOCOL, "artifact %.100s is outside the attempt", path);
    }
    char *full = path_join(folder, path);
    int rc = digest_file(full, &found, NULL, err);
    if (rc == 0 && !digest_equal(&found, &stated)) {
        rc = err_set(err, ERR_PROTOCOL, "artifact %.100s is not what its digest says", path);
    }
    free(full);
    return rc;
}

/* Looks up a stage that the result says it read (task_input_find): its result is in this rerun. */
static int find_input(const void *ctx, const char *stage, bool *known, cJSON **result,
                      struct err *err)
{
    const struct rerun_input *of = ctx;
    const struct plan_program *p = of->r->src->program;
    const struct plan_stage *s = &p->stages[of->stage];
    for (size_t i = 0; i < s->n_after; i++) {
        if (strcmp(p->stages[s->after[i]].name, stage) == 0) {
            char *folder = stage_folder(of->r, s->after[i]);
            char *path = path_join(folder, LAYOUT_RESULT);
            *known = true;
            int rc = json_read_file_lax(path, LAYOUT_RESULT_MAX, result, err);
            free(path);
            free(folder);
            return rc;
        }
    }
    return 0;
}

/* What it read must be the locked data, and what the stages before it left in this rerun. */
static int check_read(const struct running *r, size_t stage, const cJSON *result, struct err *err)
{
    const struct rerun_input of = {.r = r, .stage = stage};
    const struct task_inputs inputs = {.program = r->src->program,
                                       .lock = r->src->lock,
                                       .cell = r->src->cell,
                                       .stage = stage,
                                       .find = find_input,
                                       .ctx = &of};
    int rc = task_inputs_check(&inputs, result, err);
    return rc == 0 ? task_result_check_read(r->src->lock, result, err) : rc;
}

/* The result must be of this attempt, with metrics, true artifacts and what it should have read. */
static int check_result(const struct running *r, size_t stage, const cJSON *result, const char *id,
                        struct err *err)
{
    const char *attempt = NULL;
    const cJSON *metrics = NULL;
    const cJSON *a;
    int rc = json_get_string(result, "attempt", &attempt, err);
    if (rc != 0 || (rc = json_get_object(result, "metrics", &metrics, err)) != 0) {
        return rc;
    }
    if (strcmp(attempt, id) != 0) {
        return err_set(err, ERR_PROTOCOL, "result.json is of another attempt");
    }
    char *folder = stage_folder(r, stage);
    cJSON_ArrayForEach(a, json_member(result, "artifacts"))
    {
        rc = rc == 0 ? check_artifact(a, folder, err) : rc;
    }
    free(folder);
    return rc == 0 ? check_read(r, stage, result, err) : rc;
}

/* ---- the environment ---- */

/* The environment of the accepted attempt: what its worker reports, and what the shim recorded
 * in exit.json or (older ones) start.json. */
static cJSON *environment_accepted(const struct rerun_accepted *a)
{
    static const char *const names[] = {LAYOUT_START, LAYOUT_EXIT};
    cJSON *start = NULL;
    for (size_t i = 0; start == NULL && i < ARRAY_LEN(names); i++) {
        struct err ignored;
        char *path = path_join(a->folder, names[i]);
        if (json_read_file(path, LAYOUT_START_MAX, &start, &ignored) != 0) {
            start = NULL;
        }
        free(path);
    }
    cJSON *o = rerun_environment(a->result, start);
    cJSON_Delete(start);
    return o;
}

/* The environment of this rerun. The worker's digest is its object's name. */
static cJSON *environment_here(const cJSON *result, const char *object, int64_t threads)
{
    char text[MACHINE_TEXT];
    cJSON *start = json_object();
    json_put_string(start, "worker", path_name(object));
    machine_kernel(text, sizeof(text));
    json_put_string(start, "kernel", text);
    machine_cpu(text, sizeof(text));
    json_put_string(start, "cpu", text);
    json_put_int(start, "threads", threads);
    cJSON *o = rerun_environment(result, start);
    cJSON_Delete(start);
    return o;
}

/* ---- one stage ---- */

/* Adds the comparison of one stage to the rerun file. */
static void add_stage(const struct running *r, size_t stage, const cJSON *result,
                      const char *object)
{
    const struct plan_stage *s = &r->src->program->stages[stage];
    const struct rerun_accepted *a = &r->src->accepted[stage];
    char hex[DIGEST_HEX_SIZE];
    cJSON *was = environment_accepted(a);
    cJSON *now = environment_here(result, object, s->threads);
    digest_hex(&a->digest, hex);
    rerun_file_add(r->file, &(struct rerun_stage){.name = s->name,
                                                  .head = a->head,
                                                  .digest = hex,
                                                  .accepted = {a->result, was},
                                                  .again = {result, now}});
    cJSON_Delete(was);
    cJSON_Delete(now);
}

/* Reads and checks the stage's result.json, and adds the comparison. */
static int take_result(const struct running *r, size_t stage, const char *id, const char *object,
                       struct err *err)
{
    cJSON *result = NULL;
    char *folder = stage_folder(r, stage);
    char *path = path_join(folder, LAYOUT_RESULT);
    int rc = json_read_file_lax(path, LAYOUT_RESULT_MAX, &result, err);
    if (rc == 0) {
        rc = check_result(r, stage, result, id, err);
    }
    if (rc == 0) {
        add_stage(r, stage, result, object);
    } else {
        (void)err_wrap(err, "%s gave no result", r->src->program->stages[stage].name);
    }
    cJSON_Delete(result);
    free(path);
    free(folder);
    return rc;
}

/* The worker's environment as it was, and of our own what chooses among kernels that give the same
 * bytes, so that a rerun can be made by another instruction set. A locked value wins. */
static char **environment_of(const struct plan_stage *s, const char *folder)
{
    static const char *const names[] = {"PREREG_CPU", "PREREG_BFLOAT16"};
    char **list = task_environment_list(s, folder);
    size_t n = 0;
    while (list[n] != NULL) {
        n++;
    }
    list = xreallocarray(list, n + ARRAY_LEN(names) + 1, sizeof(*list));
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        const char *own = getenv(names[i]);
        if (own != NULL && json_member(s->env, names[i]) == NULL) {
            list[n++] = xasprintf("%s=%s", names[i], own);
        }
    }
    list[n] = NULL;
    return list;
}

/* Runs one stage under the plan of its accepted result. */
static int run_stage(const struct running *r, size_t stage, struct err *err)
{
    char id[UUID_TEXT_SIZE];
    char **argv = NULL;
    char **env = NULL;
    /* the result must name it, so that an older result.json cannot be taken for this one */
    uuid_make(id);
    /* the plan and lock that the accepted attempt was given */
    int rc = rerun_source_at(r->src, r->src->accepted[stage].head, err);
    const struct plan_program *p = r->src->program;
    if (rc != 0) {
        return rc;
    }
    /* no cache: each object is read again before it runs */
    const struct object_home home = {
        .state = r->src->state, .program = p, .lock = r->src->lock, .cache = NULL};
    char *folder = stage_folder(r, stage);
    char *object = NULL;
    char *task = NULL;
    char *exec = NULL;
    char *container = NULL;
    rc = object_argv(&home, stage, &argv, err);
    if (rc != 0 || (rc = write_task(r, stage, id, err)) != 0) {
        goto out;
    }
    const struct plan_stage *s = &p->stages[stage];
    const char *image = lock_image(r->src->lock, s);
    object = xstrdup(object_is_of_image(s) ? image : argv[0]);
    env = environment_of(s, folder);
    task = path_join(folder, LAYOUT_TASK);
    container = s->image == NULL ? NULL : xasprintf("prereg-%s", id);
    const struct container_task inside = {
        .stage = s, .image = image, .folder = folder, .task = task, .name = container};
    if ((rc = container_command(&inside, &argv, &env, &exec, err)) != 0) {
        goto out;
    }
    const struct rerun_worker w = {.name = s->name,
                                   .exec = exec,
                                   .argv = argv,
                                   .env = env,
                                   .folder = folder,
                                   .container = container};
    if ((rc = rerun_worker_run(&r->guard, &w, err)) != 0 ||
        (rc = take_result(r, stage, id, object, err)) != 0) {
        goto out;
    }
    rc = rerun_guard_check(&r->guard, err);
out:
    free(container);
    free(object);
    free(task);
    free(exec);
    free(folder);
    xfree_list(env);
    xfree_list(argv);
    return rc;
}

/* Runs the chosen stages in the plan's order. */
static int run_stages(const struct running *r, struct err *err)
{
    const size_t n = r->src->n_stages;
    bool *wanted = xcalloc(n, sizeof(*wanted));
    int rc = choose_stages(r, wanted, err);
    for (size_t i = 0; rc == 0 && i < n; i++) {
        if (wanted[i]) {
            if (r->spec->begins != NULL) {
                r->spec->begins(r->src->program->stages[i].name);
            }
            rc = run_stage(r, i, err);
        }
    }
    free(wanted);
    return rc;
}

/* ---- the whole rerun ---- */

/* Names the rerun after cell and time, and begins its file. */
static void begin(struct running *r)
{
    char time[WALL_TEXT_SIZE];
    const struct plan_program *p = r->src->program;
    const struct rerun_head head = {.tool = PREREGD_VERSION,
                                    .program = p->name,
                                    .root = r->src->lock->root,
                                    .cell = p->cells[r->src->cell].name,
                                    .time = time};
    clock_wall_text(clock_wall(), time);
    r->name = rerun_file_name(head.cell, time);
    r->base = r->spec->out != NULL ? path_absolute(NULL, r->spec->out)
                                   : path_join(r->src->folder, LAYOUT_RERUNS);
    r->work = xasprintf("%s/%s.work", r->base, r->name);
    r->file = rerun_file_begin(&head);
}

/* Writes the rerun file, then publishes the workers' folders where they are kept; both or
 * neither. */
static int finish(struct running *r, struct rerun_made *made, struct err *err)
{
    made->path = xasprintf("%s/%s.json", r->base, r->name);
    /* stages that did not run are listed as left out */
    rerun_file_end(r->file, r->src->program);
    int rc = json_write_file(made->path, r->file, 0644, err);
    if (rc == 0 && r->spec->keep) {
        made->kept = path_join(r->base, r->name);
        rc = dir_publish(r->work, made->kept, false, err);
        if (rc != 0) {
            (void)unlink(made->path);
        }
    }
    made->file = r->file;
    r->file = NULL;
    return rc;
}

/* The work folder is removed in any case, unless finish() has published it. */
int rerun_run(struct rerun_source *src, const struct rerun_spec *spec, struct rerun_made *made,
              struct err *err)
{
    struct running r = {.src = src, .spec = spec, .guard = {.fd = -1}};
    struct err ignored;
    *made = (struct rerun_made){0};
    begin(&r);
    int rc = rerun_guard_open(&r.guard, err);
    if (rc != 0 || (rc = dir_make(r.base, 0700, err)) != 0) {
        goto out;
    }
    /* an existing folder is another rerun's: never shared */
    if (mkdir(r.work, 0700) != 0) {
        rc = err_set_errno(err, errno, "make %s", r.work);
        goto out;
    }
    rc = run_stages(&r, err);
    if (rc == 0) {
        rc = finish(&r, made, err);
    }
    if (dir_remove(r.work, &ignored) != 0) {
        rc = rc != 0 ? err_wrap(err, "%s is left behind", r.work)
                     : err_set(err, ERR_IO, "%s is left behind: %.120s", r.work, ignored.msg);
    }
out:
    rerun_guard_close(&r.guard);
    cJSON_Delete(r.file);
    free(r.work);
    free(r.base);
    free(r.name);
    return rc;
}

void rerun_made_release(struct rerun_made *made)
{
    cJSON_Delete(made->file);
    free(made->path);
    free(made->kept);
    *made = (struct rerun_made){0};
}
