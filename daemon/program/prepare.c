/*
 * Prepares an attempt's folder: checks that everything it will use is what was locked, then writes
 * task.json, an empty events.jsonl and the shim's spec.
 *
 * Digests go through the program's cache (prereg/lock/pin.h), so a spawn re-reads only files that
 * stat(2) says have changed; before the verdict the cache is emptied first. Each check sets *why
 * itself, since only it knows whether the finding is lasting (drift, lock) or may pass (missing,
 * host).
 */
#include "daemon/program/prepare.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/files/digest.h"
#include "base/files/file.h"
#include "base/json/json.h"
#include "base/layout/attempt_name.h"
#include "base/layout/layout.h"
#include "base/log.h"
#include "base/xalloc.h"
#include "daemon/executor/shared_work.h"
#include "daemon/program/apparatus.h"
#include "daemon/program/cells.h"
#include "daemon/program/sweep.h"
#include "daemon/program/work.h"
#include "daemon/shim/accept.h"
#include "daemon/shim/current.h"
#include "daemon/shim/files.h"
#include "prereg/amend/amendment.h"
#include "prereg/lock/environment.h"
#include "prereg/lock/lock.h"
#include "prereg/lock/object.h"
#include "prereg/lock/pinned_files.h"
#include "prereg/task/container.h"

/* ---- the lock ---- */

/* Loads the copies in STATE again and compares root and head with those that took effect. */
static int check_copies(struct hosted *h, const struct bundle *b, struct err *err)
{
    struct bundle *now = NULL;
    int rc = bundle_load_own(h->folder, b->origin, &now, err);
    if (rc == 0 && strcmp(now->lock->root, b->lock->root) != 0) {
        rc = err_set(err, ERR_LOCK, "%s holds the lock of another program", h->folder);
    } else if (rc == 0 && strcmp(now->lock->head, b->lock->head) != 0) {
        rc = err_set(err, ERR_LOCK, "%s: its amendments are not those that took effect", h->folder);
    }
    if (rc != 0) {
        if (rc != ERR_IO && rc != ERR_NO_SPACE) { /* an unreadable copy proves nothing */
            err->code = ERR_LOCK;
        }
        rc = err_wrap(err, "the state folder's copy");
    }
    bundle_unref(now);
    return rc;
}

/* True when none of the copies has changed since they were last found good. Otherwise `sum` has
 * their present digests, zero for one that cannot be read. */
static bool copies_are_known(struct hosted *h, struct digest sum[COPIES_NR], struct err *err)
{
    static const char *const names[COPIES_NR] = {LAYOUT_GRID, LAYOUT_LOCK, LAYOUT_AMENDMENTS};
    bool known = true;
    for (size_t i = 0; i < COPIES_NR; i++) {
        char *path = path_join(h->folder, names[i]);
        bool absent = i == COPY_AMENDMENTS && file_kind_at(path) == FILE_ABSENT;
        sum[i] = (struct digest){0};
        if (!absent && pin_digest_own(h->pins, path, &sum[i], err) != 0) {
            sum[i] = (struct digest){0};
            known = false;
        }
        known = known && digest_equal(&sum[i], &h->good_copies[i]);
        free(path);
    }
    return known;
}

/* [pin] files that are not run from STATE/objects are checked in place. */
static int check_pinned(struct hosted *h, const struct bundle *b, struct err *err)
{
    struct pinned_list list = {0};
    int rc = pinned_collect(b->program, &list, NULL, err);
    for (size_t i = 0; rc == 0 && i < list.n; i++) {
        const struct pinned *item = &list.items[i];
        if (!item->command) {
            rc = lock_verify_path(h->pins, lock_file_digest(b->lock, item->name), item->path, err);
            if (rc != 0) {
                rc = err_wrap(err, "[pin] %s", item->name);
            }
        }
    }
    pinned_release(&list);
    return rc;
}

/* Decided by the error of the same check: if it looked again, data that came back a moment later
 * would count as drift, which is final. */
static enum core_start_failure failure_of_data(int rc)
{
    return rc == ERR_LOCK        ? START_FAILED_DRIFT
           : rc == ERR_NOT_FOUND ? START_FAILED_MISSING
                                 : START_FAILED_HOST; /* says nothing about the contents */
}

int prepare_check_lock(struct hosted *h, const struct bundle *b, enum core_start_failure *why,
                       struct err *err)
{
    struct digest sum[COPIES_NR];
    struct err ignored;
    int rc = lock_check_time(b->lock, clock_wall(), err);
    if (rc != 0) {
        *why = START_FAILED_LOCK;
        return rc;
    }
    if (!copies_are_known(h, sum, &ignored)) {
        rc = check_copies(h, b, err);
        if (rc == 0) {
            memcpy(h->good_copies, sum, sizeof(sum));
        }
        *why = rc == ERR_LOCK ? START_FAILED_LOCK : START_FAILED_HOST;
    }
    if (rc == 0) {
        rc = lock_verify(b->program, b->lock, LOCK_DATA | LOCK_TELL_ABSENT, h->pins, NULL, err);
        if (rc == 0 && b->program->n_pin_files + b->program->n_apparatus > 0) {
            rc = check_pinned(h, b, err);
        }
        if (rc == 0) {
            rc = lock_verify_environments(b->program, b->lock, h->pins, err);
        }
        if (rc != 0) {
            *why = failure_of_data(rc);
        }
    }
    return rc;
}

/* The folder of a stage's environment, for the first stage that has it; else NULL. */
static const char *environment_folder(const struct plan_program *p, size_t stage)
{
    const char *path = p->stages[stage].environment_path;
    for (size_t i = 0; path != NULL && i < stage; i++) {
        const char *other = p->stages[i].environment_path;
        path = other != NULL && strcmp(other, path) == 0 ? NULL : path;
    }
    return path;
}

static int64_t environments_bytes(const struct plan_program *p)
{
    int64_t n = 0;
    for (size_t i = 0; i < p->n_stages; i++) {
        const char *path = environment_folder(p, i);
        n += path == NULL ? 0 : environment_bytes(path);
    }
    return n;
}

static void hash_environments(struct hosted *h, const struct plan_program *p)
{
    for (size_t i = 0; i < p->n_stages; i++) {
        const char *path = environment_folder(p, i);
        cJSON *list = NULL;
        struct err err; /* as in hash_again() */
        if (path != NULL) {
            (void)!environment_list(h->pins, path, &list, &err);
        }
        cJSON_Delete(list);
    }
}

/* Hashes each entry of [data], each environment, each [pin] file and model that is used in place,
 * and each object, one after another; the files of a folder are hashed in parallel
 * (base/files/digest.h). Progress is counted in h->hashing. */
static void hash_again(struct hosted *h, const struct plan_program *p, const char *const *paths,
                       size_t n)
{
    int64_t total = environments_bytes(p);
    for (size_t i = 0; i < n; i++) {
        total += digest_bytes_at(paths[i]);
    }
    atomic_store(&h->hashing.done, 0);
    atomic_store(&h->hashing.total, total);
    digest_meter(&h->hashing.done);
    for (size_t i = 0; i < n; i++) {
        struct digest ignored;
        struct err err; /* the check that follows finds it again, and names the file */
        (void)!pin_digest(h->pins, paths[i], &ignored, &err);
    }
    hash_environments(h, p);
    digest_meter(NULL);
    atomic_store(&h->hashing.total, 0);
}

static struct object_home home_of(const struct hosted *h, const struct bundle *b, const char *state)
{
    return (struct object_home){
        .state = state, .program = b->program, .lock = b->lock, .cache = h->pins};
}

/* Objects are the state folder's own copies: a fault in them pauses and never ends a task. */
static enum core_start_failure failure_of_object(int rc)
{
    return rc == ERR_LOCK || rc == ERR_NOT_FOUND ? START_FAILED_LOCK
           : rc == ERR_NO_SPACE                  ? START_FAILED_NO_SPACE
                                                 : START_FAILED_HOST;
}

int prepare_check_objects(struct hosted *h, const struct bundle *b, const char *state,
                          enum core_start_failure *why, struct err *err)
{
    struct strbuf notes = STRBUF_INIT;
    const struct object_home home = home_of(h, b, state);
    int rc = object_check_all(&home, &notes, err);
    for (char *line = notes.buf, *end; notes.len > 0 && (end = strchr(line, '\n')) != NULL;
         line = end + 1) {
        *end = '\0';
        log_warn("%s: %s", h->id, line);
    }
    if (rc != 0) {
        *why = failure_of_object(rc);
    }
    strbuf_release(&notes);
    return rc;
}

/* Empties the cache, hashes everything with progress, then runs the usual checks, which find all
 * digests in the cache. */
int prepare_check_bytes(struct hosted *h, const struct bundle *b, const char *state,
                        enum core_start_failure *why, struct err *err)
{
    const struct plan_program *p = b->program;
    struct pinned_list list = {0};
    struct err ignored;
    (void)!pinned_collect(p, &list, NULL, &ignored);
    const struct object_home home = home_of(h, b, state);
    char **objects = object_paths(&home);
    size_t n_objects = 0;
    while (objects[n_objects] != NULL) {
        n_objects++;
    }
    const char **paths = xcalloc(p->n_data + list.n + n_objects + 1, sizeof(*paths));
    size_t n = 0;
    for (size_t i = 0; i < p->n_data; i++) {
        paths[n++] = p->data[i].abs_path;
    }
    for (size_t i = 0; i < list.n; i++) {
        if (!list.items[i].command) {
            paths[n++] = list.items[i].path;
        }
    }
    for (size_t i = 0; i < n_objects; i++) {
        paths[n++] = objects[i];
    }
    pin_cache_forget(h->pins);
    hash_again(h, p, paths, n);
    free(paths);
    xfree_list(objects);
    pinned_release(&list);
    int rc = prepare_check_lock(h, b, why, err);
    return rc != 0 ? rc : prepare_check_objects(h, b, state, why, err);
}

/* ---- task.json ---- */

/* Earlier attempts' folders, newest first. */
static int resume_folders(const struct prepare *p, char ***list, size_t *n, struct err *err)
{
    struct name_list names;
    char *folder = hosted_task_folder(p->hosted, p->task);
    *list = NULL;
    *n = 0;
    int rc = attempt_list(folder, &names, err);
    for (size_t i = names.n; rc == 0 && i-- > 0;) {
        if (strcmp(names.names[i], path_name(p->folder)) != 0) {
            *list = xreallocarray(*list, *n + 1, sizeof(**list));
            (*list)[(*n)++] = path_join(folder, names.names[i]);
        }
    }
    name_list_release(&names);
    free(folder);
    return rc;
}

static void free_list(char **list, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        free(list[i]);
    }
    free(list);
}

/* Creates the file, which must not exist: an attempt's folder is used once. o NULL: an empty
 * file. */
static int write_line(const char *folder, const char *name, const cJSON *o, struct err *err)
{
    struct strbuf text = STRBUF_INIT;
    char *path = path_join(folder, name);
    int rc = o == NULL ? 0 : json_pretty(o, &text, err);
    int fd = rc == 0 ? open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600) : -1;
    if (rc == 0 && fd < 0) {
        rc = err_set_errno(err, errno, "create %s", path);
    }
    if (rc == 0 && text.len > 0) {
        strbuf_addc(&text, '\n');
        rc = file_write_all(fd, text.buf, text.len, err);
    }
    if (fd >= 0) {
        (void)close(fd);
    }
    free(path);
    strbuf_release(&text);
    return rc;
}

/* One folder for every stage it comes after: that stage's accepted attempt, or the reference model
 * of an apparatus check. */
static int find_inputs(const struct prepare *p, const struct plan_apparatus *check, char **inputs,
                       struct err *err)
{
    const struct plan_program *prog = p->bundle->program;
    const struct plan_stage *s = &prog->stages[p->stage];
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < s->n_after; i++) {
        if (check != NULL) {
            rc = apparatus_model_path(prog, check, &inputs[i], err);
        } else {
            inputs[i] = xstrdup(p->inputs.items[i].folder);
        }
    }
    return rc;
}

/* Another machine sees neither the state folder's links nor, perhaps, the state folder. */
static void name_as_shared(char **paths, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        char *real = shared_work_path(paths[i]);
        free(paths[i]);
        paths[i] = real;
    }
}

/* Also sweeps the earlier attempts' old checkpoints, of which the newest are offered for
 * resuming. */
static int write_task(const struct prepare *p, struct err *err)
{
    const struct plan_program *prog = p->bundle->program;
    const struct plan_stage *s = &prog->stages[p->stage];
    bool of_grid = !hosted_is_check(p->hosted, p->task);
    const struct plan_apparatus *check =
        of_grid ? NULL : apparatus_of(p->hosted, p->bundle, p->task);
    char **inputs = xcalloc(s->n_after + 1, sizeof(*inputs));
    char **resume = NULL;
    size_t n_resume = 0;
    int rc = of_grid || check != NULL
                 ? find_inputs(p, check, inputs, err)
                 : err_set(err, ERR_NOT_FOUND, "the program has this check no longer");
    if (rc == 0) {
        rc = resume_folders(p, &resume, &n_resume, err);
        sweep_attempts(resume, n_resume);
    }
    if (rc == 0 && p->executor != EXECUTOR_LOCAL) {
        name_as_shared(inputs, s->n_after);
        name_as_shared(resume, n_resume);
    }
    if (rc == 0) {
        struct task_attempt a = {.cell = of_grid ? hosted_cell(p->hosted, p->task) : 0,
                                 .stage = p->stage,
                                 .apparatus = check,
                                 .id = p->id,
                                 .no = p->no,
                                 .input_folders = (const char *const *)inputs,
                                 .resume = (const char *const *)resume,
                                 .n_resume = n_resume,
                                 .memory_bytes = s->run.memory_bytes};
        char hex[DIGEST_HEX_SIZE];
        const struct accepted *work = input_work(&p->inputs);
        if (work != NULL) {
            digest_hex(&work->digest, hex);
            a.accepts = (struct task_accepts){.folder = work->folder, .sha256 = hex};
        }
        cJSON *o = task_json_build(prog, p->bundle->lock, &a);
        rc = write_line(p->folder, LAYOUT_TASK, o, err);
        cJSON_Delete(o);
    }
    free_list(resume, n_resume);
    free_list(inputs, s->n_after);
    return rc;
}

/* ---- the shim's spec ---- */

struct spec_sink {
    struct shim_spec *spec;
    const cJSON *own; /* env of the stage */
};

/* PATH of a job with lines of setup is what they made of it, unless the stage has its own. */
static void add_variable(void *ctx, const char *name, const char *value)
{
    const struct spec_sink *sink = ctx;
    if (!sink->spec->takes_job || strcmp(name, "PATH") != 0 ||
        json_member(sink->own, name) != NULL) {
        shim_spec_add_env(sink->spec, name, value);
    }
}

/* Another name of a work runs no worker: the shim itself takes the result (shim/accept.h). */
static int add_accept_spec(const struct prepare *p, struct strbuf *out, struct err *err)
{
    const struct plan_stage *s = &p->bundle->program->stages[p->stage];
    struct shim_spec spec = {
        .exec = xstrdup(p->shim), .grace_ms = p->grace_ms, .threads = 1, .shared = p->shared};
    struct spec_sink sink = {.spec = &spec};
    memcpy(spec.attempt, p->id, sizeof(spec.attempt));
    shim_spec_add_arg(&spec, path_name(p->shim));
    shim_spec_add_arg(&spec, ACCEPT_VERB);
    task_environment(s, p->folder, add_variable, &sink);
    int rc = shim_spec_text(&spec, out, err);
    shim_spec_release(&spec);
    return rc;
}

static size_t list_length(char *const *list)
{
    size_t n = 0;
    while (list[n] != NULL) {
        n++;
    }
    return n;
}

/* What is executed: the worker, or what makes the container of its image. */
static int wrap_command(const struct prepare *p, struct shim_spec *spec, struct err *err)
{
    const struct plan_stage *s = &p->bundle->program->stages[p->stage];
    const char *image = lock_image(p->bundle->lock, s);
    char *task = path_join(p->folder, LAYOUT_TASK);
    const struct container_task inside = {
        .stage = s, .image = image, .folder = p->folder, .task = task};
    const char *worker =
        object_is_of_image(s) ? image : lock_file_digest(p->bundle->lock, s->command[0]);
    (void)snprintf(spec->worker, sizeof(spec->worker), "%s", worker == NULL ? "" : worker);
    int rc = container_command(&inside, &spec->argv, &spec->env, &spec->exec, err);
    spec->n_argv = list_length(spec->argv);
    spec->n_env = list_length(spec->env);
    free(task);
    return rc;
}

static int add_spec(const struct prepare *p, char *const *argv, struct strbuf *out, struct err *err)
{
    const struct plan_stage *s = &p->bundle->program->stages[p->stage];
    struct shim_spec spec = {.memory_bytes = s->run.memory_bytes,
                             .grace_ms = p->grace_ms,
                             .threads = s->threads,
                             .shared = p->shared,
                             .takes_job = p->executor == EXECUTOR_SLURM &&
                                          p->bundle->program->run.slurm.n_setup > 0};
    struct spec_sink sink = {.spec = &spec, .own = s->env};
    char *folder = p->executor == EXECUTOR_LOCAL ? xstrdup(p->folder) : shared_work_path(p->folder);
    const char *pin = p->bundle->program->pin_gpu;
    memcpy(spec.attempt, p->id, sizeof(spec.attempt));
    for (size_t i = 0; argv[i] != NULL; i++) {
        shim_spec_add_arg(&spec, argv[i]);
    }
    task_environment(s, folder, add_variable, &sink);
    free(folder);
    gpu_grant_environment(&p->gpus, s, add_variable, &sink);
    spec.gpus = p->gpus.given;
    spec.asks_gpus = p->executor == EXECUTOR_SLURM && s->run.gpu_thousandths > 0;
    (void)snprintf(spec.pin_gpu, sizeof(spec.pin_gpu), "%s", pin == NULL ? "" : pin);
    int rc = wrap_command(p, &spec, err);
    rc = rc == 0 ? shim_spec_text(&spec, out, err) : rc;
    spec.gpus = (struct gpu_list){0}; /* borrowed */
    shim_spec_release(&spec);
    return rc;
}

/* ---- room ---- */

char *prepare_disk_name(const char *folder, bool of_cells)
{
    char target[PATH_MAX];
    char *cells =
        path_join(folder, LAYOUT_CELLS); /* STATE/programs/ID/cells, or a link to WORK/ID/cells */
    ssize_t n = of_cells ? readlink(cells, target, sizeof(target) - 1) : -1;
    target[n > 0 ? n : 0] = '\0';
    char *inner = path_folder(n > 0 ? target : folder);
    char *outer = path_folder(inner);
    char *name = xasprintf("the disk of %s %s", n > 0 ? "[run] work" : "the state folder", outer);
    free(outer);
    free(inner);
    free(cells);
    return name;
}

static int check_room_at(const char *folder, bool of_cells, int tenths, struct err *err)
{
    struct disk_room room;
    const char *what = NULL;
    char *path = of_cells ? path_join(folder, LAYOUT_CELLS) : xstrdup(folder);
    const bool short_of = disk_room(path, &room) && !disk_has_room(&room, tenths, &what);
    free(path);
    if (!short_of) {
        return 0;
    }
    char *disk = prepare_disk_name(folder, of_cells);
    int rc;
    if (strcmp(what, "inodes") == 0) {
        rc = err_set(err, ERR_NO_SPACE, "%.150s: %lld inodes are free, %lld are needed", disk,
                     (long long)room.free_files, (long long)room.reserve_files * tenths / 10);
    } else {
        rc = err_set(err, ERR_NO_SPACE, "%.150s: %lld KiB are free, %lld KiB are needed", disk,
                     (long long)(room.free_bytes >> 10),
                     (long long)((room.reserve_bytes / 10 * tenths) >> 10));
    }
    free(disk);
    return rc;
}

int prepare_check_room(const char *folder, int tenths, struct err *err)
{
    int rc = check_room_at(folder, false, tenths, err);
    return rc != 0 ? rc : check_room_at(folder, true, tenths, err);
}

/* ---- all of it ---- */

/* Cells that another state has taken since are only a person's to take back. */
static int check_owner(const struct prepare *p, enum core_start_failure *why, struct err *err)
{
    int rc = p->owner == NULL ? 0 : work_keep(p->hosted, p->owner, err);
    *why = rc == ERR_BUSY || rc == ERR_CORRUPT ? START_FAILED_LOCK
           : rc == ERR_NO_SPACE                ? START_FAILED_NO_SPACE
                                               : START_FAILED_HOST;
    return rc;
}

/* First what concerns the whole program, in its lane; then, out of the lane, what concerns this
 * task. */
static int check_all(const struct prepare *p, char ***argv, enum core_start_failure *why,
                     struct err *err)
{
    int rc = prepare_check_lock(p->hosted, p->bundle, why, err);
    if (rc == 0 && !hosted_is_check(p->hosted, p->task)) {
        rc = cells_check(p->hosted, p->cells_used, err);
        *why = rc == ERR_NOT_FOUND ? START_FAILED_MISSING : START_FAILED_HOST;
        rc = rc == 0 ? check_owner(p, why, err) : rc;
    }
    if (rc != 0) {
        return rc;
    }
    const struct object_home home = home_of(p->hosted, p->bundle, p->state);
    rc = object_argv(&home, p->stage, argv, err);
    job_leave_lane(p->job); /* the rest concerns this task only */
    if (rc != 0) {
        *why = failure_of_object(rc);
        return rc;
    }
    rc = inputs_verify(&p->inputs, p->hosted->pins, err);
    if (rc != 0) {
        *why = rc == ERR_LOCK        ? START_FAILED_LOCK
               : rc == ERR_NOT_FOUND ? START_FAILED_MISSING
                                     : START_FAILED_HOST;
        return rc;
    }
    rc = gpu_grant_check(&p->gpus, p->bundle->program->pin_gpu, err);
    if (rc != 0) {
        *why = rc == ERR_LOCK ? START_FAILED_DRIFT : START_FAILED_HOST;
        return rc;
    }
    rc = prepare_check_room(p->hosted->folder, 10, err);
    *why = START_FAILED_NO_SPACE;
    return rc;
}

/* The first folders are synced: their presence later tells an empty cells/ from a mount point
 * without its disk. */
static int make_folder(const struct prepare *p, struct err *err)
{
    char *task = path_folder(p->folder);
    const char *base = p->hosted->folder;
    int rc = p->cells_used ? 0 : dir_make_below(base, task, true, err);
    if (rc == 0) {
        rc = dir_make_below(base, p->folder, false, err);
    }
    free(task);
    return rc;
}

/* Before anything of it is started: a shim of an earlier attempt, on a host that was lost and goes
 * on after all, finds that it was superseded. (A queue's executor writes it itself.) */
static int name_current(const struct prepare *p, struct err *err)
{
    struct attempt_name a = {.no = p->no};
    if (!p->shared || p->executor != EXECUTOR_LOCAL) {
        return 0;
    }
    char *task = path_folder(p->folder);
    memcpy(a.id, p->id, sizeof(a.id));
    int rc = current_write(task, &a, err);
    free(task);
    return rc;
}

/* The copies are damaged or cannot be made: the machine's fault, which pauses, or a full disk. */
static int share_objects(const struct prepare *p, char **argv, struct err *err)
{
    if (p->executor == EXECUTOR_LOCAL) {
        return 0;
    }
    char *work = shared_work_folder(p->hosted->folder);
    int rc = shared_work_objects(p->state, work, p->hosted->pins, argv, err);
    free(work);
    return rc;
}

int prepare_attempt(const struct prepare *p, struct strbuf *spec, enum core_start_failure *why,
                    struct err *err)
{
    char **argv = NULL;
    int rc = check_all(p, &argv, why, err);
    if (rc != 0) {
        goto out;
    }
    if ((rc = make_folder(p, err)) != 0 || (rc = name_current(p, err)) != 0 ||
        (rc = share_objects(p, argv, err)) != 0 || (rc = write_task(p, err)) != 0 ||
        (rc = write_line(p->folder, LAYOUT_EVENTS, NULL, err)) != 0 ||
        (rc = input_work(&p->inputs) != NULL ? add_accept_spec(p, spec, err)
                                             : add_spec(p, argv, spec, err)) != 0) {
        *why = rc == ERR_NO_SPACE ? START_FAILED_NO_SPACE
               : rc == ERR_RANGE  ? START_FAILED_USER
                                  : START_FAILED_HOST;
    }
out:
    xfree_list(argv);
    return rc;
}
