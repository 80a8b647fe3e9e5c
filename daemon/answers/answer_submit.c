/*
 * submit: off the loop the program is read, its lock verified against everything it pins, its lock
 * and its workers copied into STATE; then, on the loop, its text is written and it is added to the
 * store and the core.
 *
 * The user's files may change at any time, so each is read once and what was copied is compared
 * with what was verified. Submitting the same root again changes [run] at most, also for a program
 * that was amended since (daemon/answers/resubmit.h).
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/diag.h"
#include "base/files/file.h"
#include "base/json/json.h"
#include "base/layout/layout.h"
#include "base/log.h"
#include "base/machine/gpu_ask.h"
#include "base/machine/machine.h"
#include "base/machine/proc.h"
#include "base/xalloc.h"
#include "daemon/answers/answer.h"
#include "daemon/answers/resubmit.h"
#include "daemon/program/amended.h"
#include "daemon/program/work.h"
#include "daemon/shell/load.h"
#include "daemon/shell/shell.h"
#include "prereg/amend/amendment.h"
#include "prereg/lock/imported.h"
#include "prereg/lock/lock.h"
#include "prereg/lock/lock_sign.h"
#include "prereg/lock/object.h"
#include "prereg/program/gpu_needs.h"
#include "prereg/program/run_limits.h"
#include "prereg/task/describe.h"
#include "truthtable/condition/table_rows.h"
#include "truthtable/prove/check.h"

struct known { /* an amended program that this daemon has */
    struct bundle *bundle;
    char *folder;
};

struct submit_job {
    struct job job;
    struct shell *shell;
    uint64_t connection;
    char *path; /* of grid.toml, absolute */
    char *root; /* of the lock that the user allowed, and its head; NULL: the client does not say */
    char *head;
    char *state;
    struct work_wish wish; /* its owner is the shell's, and constant */
    struct known *amended; /* all of them, as they were when it was asked */
    size_t n_amended;
    struct strbuf text; /* of grid.toml, unless it is one of them */
    struct again again; /* its path is set when it is one of them */
    struct bundle *bundle;
    char *id;
    char *folder;
    struct strbuf notes;
    int rc;
    struct err err;
};

/* ---- off the loop ---- */

/* An imported program is never run: its records come from files, and the two kinds never mix. */
static int check_not_imported(struct submit_job *j)
{
    char *folder = path_folder(j->path);
    bool imported = imported_is_folder(folder);
    free(folder);
    return imported ? err_set(&j->err, ERR_REFUSED,
                              "%s is that of an imported program: its records come from files, and "
                              "it is never run",
                              j->path)
                    : 0;
}

/* A signature that is present must be valid, by a listed signer where a list exists, and present
 * where [lock] demands one. */
static int check_signer(struct submit_job *j, const struct lock *lock)
{
    char *allowed = NULL;
    struct signature_check signer = {0};
    int rc = signature_allowed_signers(NULL, &allowed, &j->err);
    if (rc != 0) {
        return rc;
    }
    rc = lock_check_signer(j->bundle->program, lock, allowed, &signer, &j->err);
    if (rc == 0 && signer.valid && allowed != NULL) {
        strbuf_addf(&j->notes, "the lock is signed by %s (%s), allowed by the daemon's %s\n",
                    signer.principal != NULL ? signer.principal : "a key", signer.fingerprint,
                    allowed);
    } else if (rc == 0 && signer.valid) {
        strbuf_addf(&j->notes,
                    "the lock is signed by %s; the daemon has no file of allowed signers to say "
                    "whose key that is\n",
                    signer.fingerprint);
    }
    signature_check_release(&signer);
    free(allowed);
    return rc;
}

static const struct known *find_amended(const struct submit_job *j, const struct lock *lock)
{
    for (size_t i = 0; i < j->n_amended; i++) {
        if (strcmp(j->amended[i].bundle->lock->root, lock->root) == 0) {
            return &j->amended[i];
        }
    }
    return NULL;
}

/* The files may have been replaced since the user allowed them: compares the root that was
 * allowed. */
static int check_allowed(struct submit_job *j, const struct lock *lock, const char *lock_path)
{
    return j->root == NULL || strcmp(j->root, lock->root) == 0
               ? 0
               : err_set(&j->err, ERR_LOCK,
                         "%.150s changed while it was being submitted: its root was %.16s and is "
                         "%.16s now; run submit again",
                         lock_path, j->root, lock->root);
}

/* The same for the head of an amended program. */
static int check_allowed_head(struct submit_job *j, const char *head)
{
    return j->head == NULL || strcmp(j->head, head) == 0
               ? 0
               : err_set(&j->err, ERR_REFUSED,
                         "the program was amended while it was being submitted: its head was %.16s "
                         "and is %.16s now; run submit again",
                         j->head, head);
}

static int read_amended(struct submit_job *j, const struct known *k, const struct lock *lock)
{
    struct bundle *submitted = NULL;
    int rc = check_allowed_head(j, k->bundle->lock->head);
    if (rc != 0 || (rc = bundle_parse(j->path, j->path, &submitted, &j->err)) != 0) {
        goto out;
    }
    j->again.path = j->path;
    j->again.folder = k->folder;
    j->again.head = k->bundle->lock->head;
    if ((rc = again_read(&j->again, submitted->program, lock, &j->err)) != 0) {
        goto out;
    }
    const char *is = j->again.as_locked ? "this is the text as it was locked, what holds is"
                                        : "this is its present text, as";
    j->bundle = bundle_ref(j->again.bundle);
    strbuf_add_count(&j->notes, (int64_t)j->bundle->lock->n_amendments, "amendment", "amendments");
    strbuf_addf(&j->notes, ", head %s: %s %s/%s\n", j->bundle->lock->head, is, k->folder,
                LAYOUT_GRID);
out:
    bundle_unref(submitted);
    return rc;
}

/* Reads the text once, because an editor may be writing to it. The lock is read again here: the
 * first reading only found out whose it is. */
static int read_text(struct submit_job *j, const char *lock_path)
{
    int rc = file_read(j->path, LAYOUT_GRID_MAX, &j->text, &j->err);
    if (rc != 0 ||
        (rc = bundle_load_text(&j->text, lock_path, j->path, &j->bundle, &j->err)) != 0) {
        return rc;
    }
    return check_allowed(j, j->bundle->lock, lock_path);
}

/* *lock: for an amended program the lock beside the submitted text, which the caller frees. */
static int read_submitted(struct submit_job *j, struct lock **lock)
{
    struct err unread;
    struct lock *beside = NULL;
    const struct known *k = NULL;
    char *lock_path = lock_path_of(j->path);
    int rc = 0;
    if (lock_read(lock_path, &beside, &unread) == 0) { /* its faults are reported below */
        rc = check_allowed(j, beside, lock_path);
        k = find_amended(j, beside);
    }
    if (rc == 0 && k != NULL) {
        rc = read_amended(j, k, beside);
        *lock = beside;
        beside = NULL;
    } else if (rc == 0) {
        rc = read_text(j, lock_path);
    }
    lock_free(beside);
    free(lock_path);
    return rc;
}

/* [run] is not locked and may have changed since the workers stated their needs. Skipped for an
 * amended program, whose workers were asked before the amendment. */
static int check_memory(struct submit_job *j)
{
    const struct lock *lock = j->bundle->lock;
    struct diag diag;
    if (lock->n_amendments > 0) {
        return 0;
    }
    diag_init(&diag, j->path);
    describe_check_memory(j->bundle->program, lock->describe, (double)machine_memory_bytes(),
                          &diag);
    int rc = diag_result(&diag, &j->err);
    diag_release(&diag);
    return rc;
}

/* What no GPU of this machine can ever grant is refused now, and not after hours of waiting. */
static int check_gpus(struct submit_job *j)
{
    const struct plan_program *p = j->bundle->program;
    struct gpu_list list = {0};
    struct diag diag;
    if (!gpu_needs_any(p)) {
        return 0;
    }
    if (gpu_ask(GPU_ASK_MS, &list, NULL, &j->err) != 0) {
        return err_wrap(&j->err, "[run] asks for GPUs, and those of this machine are not known");
    }
    diag_init(&diag, j->path);
    gpu_needs_check(p, &list, DIAG_ERROR, &diag);
    int rc = diag_result(&diag, &j->err);
    diag_release(&diag);
    gpu_list_release(&list);
    return rc;
}

/* Every factor is used by a task, and what is declared as one work was shown to be when locked. */
static int check_taken(struct submit_job *j)
{
    struct diag diag;
    diag_init(&diag, j->path);
    check_factors(j->bundle->program, &diag);
    if (j->bundle->program->workers != NULL) {
        check_same_work(j->bundle->program, j->bundle->lock->describe, &diag);
    }
    int rc = diag_result(&diag, &j->err);
    diag_release(&diag);
    return rc;
}

/* Slurm's own limits are checked by `preregctl check --slurm`. */
static int check_executors(struct submit_job *j)
{
    const struct plan_program *p = j->bundle->program;
    char *sbatch = find_program("sbatch");
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < p->n_stages; i++) {
        if (p->stages[i].run.executor == EXECUTOR_SLURM && sbatch == NULL) {
            rc = err_set(&j->err, ERR_INVALID,
                         "[run.%s] executor \"slurm\": sbatch is not in the daemon's PATH: is "
                         "Slurm's client installed here (Debian: slurm-client)?",
                         p->stages[i].name);
        }
    }
    free(sbatch);
    return rc;
}

/* Cheap tests first; verifying the lock hashes everything that is pinned. */
static int check_submitted(struct submit_job *j)
{
    struct lock *beside = NULL;
    if (check_not_imported(j) != 0) {
        return j->err.code;
    }
    int rc = read_submitted(j, &beside);
    if (rc == 0) {
        const struct lock *lock = beside != NULL ? beside : j->bundle->lock;
        rc = lock_check_time(lock, clock_wall(), &j->err);
        if (rc == 0) {
            rc = check_signer(j, lock);
        }
    }
    lock_free(beside);
    if (rc != 0 || (rc = lock_verify(j->bundle->program, j->bundle->lock, LOCK_ALL, NULL, &j->notes,
                                     &j->err)) != 0) {
        return rc;
    }
    /* a lock need not have been made by `preregctl lock` */
    if ((rc = table_is_total(j->bundle->program, &j->err)) != 0 || (rc = check_taken(j)) != 0) {
        return rc;
    }
    if ((rc = check_executors(j)) != 0 || (rc = check_memory(j)) != 0) {
        return rc;
    }
    return check_gpus(j);
}

/* The target and its parent must belong to this user alone; the folder above them may be shared, as
 * /tmp is: there another user may have put a link in the parent's place, so nothing is made behind
 * it before it is checked. */
static int make_target(const char *work, const char *target, struct err *err)
{
    char *above = path_folder(target);
    int rc = dir_make_durable(work, 0700, err);
    if (rc != 0 || (rc = dir_check_keeps(work, err)) != 0 /* before anything is made in it */ ||
        (rc = dir_make_durable(above, 0700, err)) != 0 || (rc = dir_check_own(above, err)) != 0 ||
        (rc = dir_make_durable(target, 0700, err)) != 0) {
        goto out;
    }
    rc = dir_check_private(target, err);
out:
    free(above);
    return rc == 0 ? 0 : err_wrap(err, "run.work");
}

/* The folder that cells/ leads to, and the link. It is claimed before the link exists: what is
 * behind it may be another state's. */
static int link_cells(const struct submit_job *j, const char *cells, struct err *err)
{
    const struct plan_program *p = j->bundle->program;
    char *work = path_absolute(p->folder, p->run.work);
    char *folder = path_join(work, j->id);
    char *target = path_join(folder, LAYOUT_CELLS);
    int rc = make_target(work, target, err);
    if (rc == ERR_REFUSED || rc == ERR_NOT_FOUND) { /* the folder, not this machine */
        const struct place at = p->run.work_place;
        (void)err_wrap(err, "%s:%u:%u", j->path, at.line, at.column);
        rc = err->code = ERR_INVALID;
    }
    if (rc == 0) {
        rc = work_owner_claim(folder, j->wish.own, j->wish.adopt, err);
    }
    if (rc == 0 && symlink(target, cells) != 0 && errno != EEXIST) {
        rc = err_set_errno(err, errno, "link %s", cells);
    }
    if (rc == 0) {
        rc = dir_sync(j->folder, err);
    }
    free(target);
    free(folder);
    free(work);
    return rc;
}

/* With [run] work, cells/ is a link to a folder there. A cells/ folder that exists already
 * stays. */
static int make_cells(const struct submit_job *j, struct err *err)
{
    const struct plan_program *p = j->bundle->program;
    char *cells = path_join(j->folder, LAYOUT_CELLS);
    int rc = p->run.work == NULL || file_kind_at(cells) == FILE_FOLDER
                 ? dir_make_below(j->folder, cells, true, err)
                 : link_cells(j, cells, err);
    free(cells);
    return rc == 0 ? work_claim(j->folder, &j->wish, err) : rc;
}

/* A folder's name has eight digits of its root only; the lock in it must agree in all of them. */
static int check_same_root(const struct submit_job *j, const char *lock_path, struct err *err)
{
    struct lock *there = NULL;
    struct err unread;
    if (file_kind_at(lock_path) == FILE_ABSENT || lock_read(lock_path, &there, &unread) != 0) {
        return 0; /* a damaged copy is not replaced, and is refused at the first spawn */
    }
    bool same = strcmp(there->root, j->bundle->lock->root) == 0;
    lock_free(there);
    return same
               ? 0
               : err_set(err, ERR_EXISTS,
                         "%s is the folder of another program, whose root begins alike", j->folder);
}

/* An amended program that cannot be loaded is left alone: writing the root's text over it would mix
 * the two. */
static int check_not_amended(const struct submit_job *j, struct err *err)
{
    char *amendments = path_join(j->folder, LAYOUT_AMENDMENTS);
    char *first = amendment_file(amendments, 1, "json");
    int rc = file_kind_at(first) == FILE_ABSENT
                 ? 0
                 : err_set(err, ERR_LOCK,
                           "it has been amended (`preregctl diff`), and %s cannot be read as such: "
                           "see `preregctl status`",
                           j->folder);
    free(first);
    free(amendments);
    return rc;
}

/* Compares the copy with the lock that was read and whose signature was checked: it may have been
 * replaced meanwhile. */
static int copy_lock(const struct submit_job *j, const char *to, struct err *err)
{
    struct lock *copy = NULL;
    char *from = lock_path_of(j->path);
    int rc = file_copy(from, to, 0600, err);
    if (rc == 0) {
        rc = lock_read(to, &copy, err);
    }
    if (rc == 0 && !json_equal(copy->json, j->bundle->lock->json)) {
        rc = err_set(err, ERR_LOCK, "%s changed while it was being submitted; run submit again",
                     from);
        (void)unlink(to);
    }
    lock_free(copy);
    free(from);
    return rc;
}

static int make_folder(struct submit_job *j)
{
    char *lock_path = path_join(j->folder, LAYOUT_LOCK);
    int rc = dir_make_below(j->state, j->folder, true, &j->err);
    if (rc != 0 || (rc = check_same_root(j, lock_path, &j->err)) != 0 ||
        (rc = check_not_amended(j, &j->err)) != 0) {
        goto out;
    }
    if (file_kind_at(lock_path) == FILE_ABSENT) {
        rc = copy_lock(j, lock_path, &j->err);
    }
out:
    free(lock_path);
    return rc;
}

/* The receipt that [reuse] names, and what is accepted of it: from then on it may be moved. */
static int store_reused(struct submit_job *j)
{
    const struct bundle *b = j->bundle;
    const struct reuse_counts n = reuse_count(b->program, b->reuse);
    int rc = reuse_store(b->program, b->lock, j->folder, &j->err);
    if (rc == 0 && n.tasks > 0) {
        strbuf_addf(&j->notes,
                    "%zu of %zu cells are reused from a receipt of root %.16s: their scores were "
                    "known before this lock\n",
                    n.cells, b->program->n_cells, json_member(b->lock->reuse, "root")->valuestring);
    }
    return rc;
}

/* Before anything is written. */
static int check_owner(struct submit_job *j)
{
    const struct plan_program *p = j->bundle->program;
    char *work = p->run.work == NULL ? NULL : path_absolute(p->folder, p->run.work);
    int rc = work_check_new(j->folder, work, &j->wish, &j->err);
    free(work);
    return rc;
}

static int prepare_program(struct submit_job *j)
{
    int rc = check_submitted(j);
    if (rc != 0) {
        return rc;
    }
    j->id = lock_program_id(j->bundle->lock);
    j->folder = layout_program(j->state, j->id);
    if ((rc = check_owner(j)) != 0) {
        return rc;
    }
    char *objects = path_join(j->state, LAYOUT_OBJECTS);
    rc = dir_make_below(j->state, objects, true, &j->err);
    free(objects);
    if (rc != 0 || (rc = object_store_all(j->bundle->program, j->bundle->lock, j->state, &j->notes,
                                          &j->err)) != 0) {
        return rc;
    }
    if (j->again.path == NULL && ((rc = make_folder(j)) != 0 || (rc = store_reused(j)) != 0)) {
        return rc;
    }
    return make_cells(j, &j->err);
}

static void on_submit_work(struct job *job)
{
    struct submit_job *j = (struct submit_job *)job;
    j->rc = prepare_program(j);
}

/* ---- on the loop ---- */

/* Whether another limit of a stage holds. One that cannot be read counts as another. */
static bool changes_limits(const struct plan_program *then, const struct plan_program *now)
{
    for (size_t s = 0; s < now->n_stages; s++) {
        struct run_limits a;
        struct run_limits b;
        struct err ignored;
        if (run_limits_read(then->run.covered, now->stages[s].name, &a, &ignored) != 0 ||
            run_limits_read(now->run.covered, now->stages[s].name, &b, &ignored) != 0 ||
            memcmp(a.of, b.of, sizeof(a.of)) != 0) {
            return true;
        }
    }
    return false;
}

/* The new [run] holds from its row on, which a failing disk may delay until after the answer. */
static int change_run(struct submit_job *j, struct hosted *h)
{
    struct err ignored;
    if (!pump_is_well(j->shell->pump, &j->err)) {
        return j->err.code; /* a change that waits for its commit is not replaced */
    }
    const bool other_limits = changes_limits(h->bundle->program, j->bundle->program);
    h->settings = bundle_ref(j->bundle);
    int rc = shell_change_run(j->shell, h, j->bundle->program, &j->err);
    if (rc != 0 && pump_is_well(j->shell->pump, &ignored)) { /* refused: no row will come */
        bundle_unref(h->settings);
        h->settings = NULL;
    }
    if (rc == 0 && other_limits) {
        strbuf_adds(&j->notes,
                    "a task blocked under narrower limits than other tasks of its stage had is not "
                    "excluded: its measures stay undetermined. `preregctl retry` it before any "
                    "score has been seen\n");
    }
    return rc;
}

/* Creates the program's row, or reads the one of an earlier submission. */
static int find_row(struct submit_job *j, const struct digest *root, struct arena *texts,
                    struct store_program *row, bool *is_new)
{
    struct shell *sh = j->shell;
    uint32_t no = 0;
    struct store_submission submission = {j->id, *root, clock_wall(),
                                          lock_made_at(j->bundle->lock)};
    int rc = store_program_create(sh->store, j->bundle->program, &submission, &no, &j->err);
    *is_new = rc == 0;
    if (rc == 0 || rc == ERR_EXISTS) { /* known, but its folder could not be read at the start */
        rc = store_program_by_root(sh->store, root, texts, row, &j->err);
    }
    return rc;
}

/* To store, mirror and core. A program that did not load at the start comes here, too. */
static int add_program(struct submit_job *j, struct hosted **out, bool *is_new)
{
    struct digest root;
    struct store_program row;
    struct arena texts;
    if (!pump_is_well(j->shell->pump, &j->err) ||
        digest_from_hex(j->bundle->lock->root, &root, &j->err) != 0) {
        return j->err.code;
    }
    arena_init(&texts);
    int rc = find_row(j, &root, &texts, &row, is_new);
    if (rc != 0) {
        goto out;
    }
    struct hosted *h = hosted_new(row.no, j->shell->state, j->id);
    h->bundle = bundle_ref(j->bundle);
    *out = h;
    rc = shell_add_program(j->shell, h, &row, &j->err);
    if (rc == 0) {
        load_forget_unloaded(j->shell, j->id);
    }
out:
    arena_release(&texts);
    return rc;
}

static cJSON *submitted_json(const struct submit_job *j, const struct hosted *h, bool is_new,
                             bool run_changed)
{
    cJSON *o = json_object();
    json_put_string(o, "program", h->id);
    json_put_string(o, "root", h->bundle->lock->root);
    json_put_string(o, "head", h->bundle->lock->head);
    json_put_bool(o, "new", is_new);
    json_put_bool(o, "run_changed", run_changed);
    json_put_int(o, "tasks", (int64_t)h->n_tasks);
    json_put_string(o, "folder", h->folder);
    json_put_string(o, "notes", j->notes.len > 0 ? j->notes.buf : NULL);
    return o;
}

/* Whether no amendment took effect since the job read the program; h may be NULL. */
static int check_head(struct submit_job *j, const struct hosted *h)
{
    bool again = j->again.path != NULL;
    const char *head = again ? j->bundle->lock->head : j->bundle->lock->root;
    bool same =
        h == NULL ? !again : h->amending == NULL && strcmp(h->bundle->lock->head, head) == 0;
    return same ? 0 : err_set(&j->err, ERR_REFUSED, "it was amended meanwhile: submit it again");
}

/* On the loop: no amendment, and no other submission, comes in between. */
static int put_text(struct submit_job *j)
{
    const struct strbuf *text = j->again.path != NULL ? &j->again.text : &j->text;
    char *path = path_join(j->folder, LAYOUT_GRID);
    int rc = load_save_origin(j->folder, j->path, &j->err);
    if (rc == 0) {
        rc = file_write_atomic(path, text->buf, text->len, 0600, &j->err);
    }
    free(path);
    return rc;
}

/* The program it supersedes may have run elsewhere, or never: a note, not an error. */
static void note_superseded(struct submit_job *j, const struct plan_program *p)
{
    if (p->supersedes != NULL) {
        const struct hosted *old = answer_program_by_root(j->shell, p->supersedes);
        strbuf_addf(&j->notes, "it supersedes %s%s\n", old != NULL ? old->id : p->supersedes,
                    old != NULL ? "" : ", which this state folder does not know");
    }
}

/* On the loop: a new program is added; for a known one at most [run] changes. */
static void take_program(struct submit_job *j)
{
    struct hosted *h = answer_program_by_root(j->shell, j->bundle->lock->root);
    bool is_new = false;
    bool run_changed = false;
    const struct err *damage = h == NULL ? NULL : pump_damage(j->shell->pump, h->no);
    if (damage != NULL) {
        j->err = *damage;
        j->rc = damage->code;
        return;
    }
    j->rc = check_head(j, h);
    j->rc = j->rc != 0 ? j->rc : put_text(j);
    if (j->rc != 0) {
        return;
    }
    if (h == NULL) {
        j->rc = add_program(j, &h, &is_new);
    } else if (!program_same_run(h->bundle->program, j->bundle->program)) {
        j->rc = change_run(j, h);
        run_changed = true;
    }
    if (j->rc != 0) {
        return;
    }
    note_superseded(j, h->bundle->program);
    log_info("%s: submitted%s%s", h->id, is_new ? "" : " again",
             run_changed ? " with another [run]" : "");
    cJSON *result = submitted_json(j, h, is_new, run_changed);
    answer_later(j->shell, j->connection, result, NULL);
    cJSON_Delete(result);
}

static void on_submitted(struct job *job)
{
    struct submit_job *j = (struct submit_job *)job;
    if (!j->shell->stopping) {
        if (j->rc == 0) {
            take_program(j);
        }
        if (j->rc != 0) {
            log_warn("submit %s: %s", j->path, j->err.msg);
            answer_later(j->shell, j->connection, NULL, &j->err);
        }
    }
    for (size_t i = 0; i < j->n_amended; i++) {
        bundle_unref(j->amended[i].bundle);
        free(j->amended[i].folder);
    }
    free(j->amended);
    again_release(&j->again);
    strbuf_release(&j->text);
    bundle_unref(j->bundle);
    strbuf_release(&j->notes);
    free(j->folder);
    free(j->id);
    free(j->state);
    free(j->path);
    free(j->root);
    free(j->head);
    free(j);
}

/* Copies the list of amended programs for the job, which must not touch the shell. */
static void note_amended(struct submit_job *j)
{
    const struct shell *sh = j->shell;
    j->amended = xcalloc(sh->cap_programs + 1, sizeof(*j->amended));
    for (size_t i = 0; i < sh->cap_programs; i++) {
        const struct hosted *h = sh->programs[i];
        if (h != NULL && h->bundle->lock->n_amendments > 0) {
            j->amended[j->n_amended++] =
                (struct known){.bundle = bundle_ref(h->bundle), .folder = xstrdup(h->folder)};
        }
    }
}

int answer_submit(struct answer_context *ctx, const cJSON *params, cJSON **result, struct err *err)
{
    const char *path = NULL;
    const char *root = NULL;
    const char *head = NULL;
    bool adopt = false;
    (void)result;
    int rc = json_get_string(params, "path", &path, err);
    if (rc != 0 || (rc = json_opt_string(params, "root", &root, err)) != 0 ||
        (rc = json_opt_string(params, "head", &head, err)) != 0 ||
        (rc = json_opt_bool(params, "adopt_work", &adopt, err)) != 0) {
        return rc;
    }
    if (path[0] != '/') {
        return err_set(err, ERR_USAGE, "\"path\" is not absolute");
    }
    struct submit_job *j = xcalloc(1, sizeof(*j));
    j->job.work = on_submit_work;
    j->job.done = on_submitted;
    j->shell = ctx->shell;
    j->connection = ctx->call->connection;
    j->path = xstrdup(path);
    j->root = root == NULL ? NULL : xstrdup(root);
    j->head = head == NULL ? NULL : xstrdup(head);
    j->state = xstrdup(ctx->shell->state);
    j->wish = (struct work_wish){.own = &ctx->shell->owner, .adopt = adopt};
    strbuf_init(&j->notes);
    strbuf_init(&j->text);
    strbuf_init(&j->again.text);
    note_amended(j);
    ctx->call->later = true;
    job_start_hashing(&ctx->shell->loop, &j->job, NULL);
    return 0;
}
