/*
 * Loading at the start: each program's bundle from its folder, its rows and open attempts from the
 * store, and the check of long journals in the background.
 *
 * A program that cannot be loaded is left out and reported; it never keeps the daemon from
 * starting. An amendment that was interrupted is healed before the bundle is read. verdict.json is
 * written again when it is gone or changed, because it follows from the store.
 */
#include "daemon/load.h"

#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "base/xalloc.h"
#include "daemon/amended.h"
#include "daemon/apparatus.h"
#include "daemon/clocks.h"
#include "prereg/amend/amend_heal.h"

#define ORIGIN_MAX         ((size_t)64 * 1024)
#define CHECK_AGAIN_MS     2000
#define CHECK_AGAIN_MAX_MS ((uint64_t)5 * 60 * 1000)

int load_origin(const char *folder, char **origin, struct err *err)
{
    cJSON *o = NULL;
    const char *path = NULL;
    char *file = path_join(folder, HOSTED_ORIGIN_FILE);
    *origin = NULL;
    int rc = json_read_file(file, ORIGIN_MAX, &o, err);
    if (rc == 0) {
        rc = json_get_string(o, "path", &path, err);
    }
    if (rc == 0) {
        *origin = xstrdup(path);
    }
    cJSON_Delete(o);
    free(file);
    return rc;
}

int load_save_origin(const char *folder, const char *origin, struct err *err)
{
    cJSON *o = json_object();
    char *file = path_join(folder, HOSTED_ORIGIN_FILE);
    json_put_int(o, "schema", 1);
    json_put_string(o, "path", origin);
    int rc = json_write_file(file, o, 0600, err);
    free(file);
    cJSON_Delete(o);
    return rc;
}

/* ---- the mirror ---- */

/* Collects the open attempts, which the core adopts. */
static int take_attempt(void *ctx, uint32_t task, const struct attempt_row *a, struct err *err)
{
    struct live_list *live = ctx;
    (void)err;
    ARRAY_GROW(live->items, live->n, live->cap);
    live->items[live->n++] = (struct core_live){.task = task, .attempt = *a};
    return 0;
}

struct past {
    struct hosted *hosted;
    struct live_list *live;
};

/* Past attempts give malformed lines, running times, and how the last attempt of a blocked task
 * ended. */
static int take_past(void *ctx, uint32_t task, const struct attempt_row *a, struct err *err)
{
    const struct past *past = ctx;
    struct hosted *h = past->hosted;
    struct live_list *live = past->live;
    if (task >= h->n_tasks + h->n_checks) {
        return err_set(err, ERR_CORRUPT,
                       "the store has an attempt of task %u, the program %zu tasks", task,
                       h->n_tasks + h->n_checks);
    }
    if (a->state == ATTEMPT_ENDED) {
        h->malformed += a->malformed;
        hosted_note_time(h, task, a);
        if (h->tasks[task].state == TASK_BLOCKED && h->tasks[task].n_attempts == a->no) {
            ARRAY_GROW(live->ends, live->n_ends, live->cap_ends);
            live->ends[live->n_ends++] = (struct core_end){task, a->code, a->signal};
        }
    }
    return 0;
}

struct pauses {
    struct hosted *hosted;
    unsigned before;
};

/* Replays the pauses, so that each bit gets the reason of the row that set it. */
static int take_pause(void *ctx, unsigned paused, const char *why, struct err *err)
{
    struct pauses *p = ctx;
    (void)err;
    hosted_note_pauses(p->hosted, p->before, paused, why);
    p->before = paused;
    return 0;
}

/* The reason of a pause is in the journal only. */
static int load_pauses(struct store *store, struct hosted *h, struct err *err)
{
    struct pauses p = {.hosted = h};
    return h->status.paused == 0 ? 0 : store_pauses(store, h->no, take_pause, &p, err);
}

/* The order matters: checks before tasks (their number counts in), tasks before attempts. */
int load_mirror(struct store *store, struct hosted *h, const struct store_program *row,
                struct live_list *live, struct err *err)
{
    struct task_row *rows = NULL;
    size_t n = 0;
    const struct program *p = h->bundle->program;
    int rc = apparatus_load(store, h, row->status.verdict, err);
    if (rc == 0) {
        rc = store_task_rows(store, h->no, &rows, &n, err);
    }
    if (rc == 0 && n != program_n_tasks(p) + h->n_checks) {
        free(rows);
        rc = err_set(err, ERR_CORRUPT, "the store has %zu tasks, the program %zu", n,
                     program_n_tasks(p) + h->n_checks);
    }
    if (rc != 0) {
        return rc;
    }
    hosted_set_tasks(h, rows, n);
    h->status = row->status;
    h->unverified = row->unverified_history;
    h->submitted = row->submitted;
    rc = amended_verdict_head(store, h, h->verdict_head, err);
    struct past past = {h, live};
    rc = rc != 0 ? rc : store_attempts(store, h->no, UINT32_MAX, take_past, &past, err);
    rc = rc != 0 ? rc : load_pauses(store, h, err);
    rc = rc != 0 ? rc : clocks_at_start(store, h, err);
    return rc != 0 ? rc : store_live_attempts(store, h->no, take_attempt, live, err);
}

/* ---- all programs ---- */

struct program_list {
    struct arena texts;
    struct store_program *items;
    size_t n;
    size_t cap;
};

static int take_program(void *ctx, const struct store_program *p, struct err *err)
{
    struct program_list *list = ctx;
    (void)err;
    ARRAY_GROW(list->items, list->n, list->cap);
    list->items[list->n] = *p;
    list->items[list->n].id = arena_strdup(&list->texts, p->id);
    list->items[list->n].name = arena_strdup(&list->texts, p->name);
    list->n++;
    return 0;
}

/* Heals an interrupted amendment first: the store's head says whether it took effect. Then the
 * folder must be of the root that the store has. */
static int load_bundle(struct hosted *h, const struct store_program *row, struct err *err)
{
    char *origin = NULL;
    int rc = load_origin(h->folder, &origin, err);
    if (rc == 0) {
        char root[DIGEST_HEX_SIZE];
        char head[DIGEST_HEX_SIZE];
        digest_hex(&row->root, root);
        digest_hex(&row->head, head);
        rc = amendments_heal(h->folder, head, err);
        if (rc == 0) {
            rc = bundle_load_own(h->folder, origin, &h->bundle, err);
        }
        if (rc == 0 && strcmp(root, h->bundle->lock->root) != 0) {
            rc = err_set(err, ERR_LOCK, "the lock in %s is of another program", h->folder);
        }
    }
    free(origin);
    return rc;
}

/* Whether verdict.json has the digest that was journalled. If not, it is written again. */
static bool verdict_is_there(const struct hosted *h, const struct program_row *status)
{
    struct digest d;
    struct err err;
    char *path = path_join(h->folder, "report/verdict.json");
    bool same = digest_file(path, &d, NULL, &err) == 0 && digest_equal(&d, &status->verdict_digest);
    free(path);
    return same;
}

/* ---- journals that are too long to be checked at once ---- */

struct check_job {
    struct job job;
    struct shell *shell;
    uint32_t program;
    int64_t n_rows;
    char *state;
    uv_timer_t timer;       /* until it is tried again */
    uint64_t wait_ms;       /* and how long after the next failure */
    struct check_job *next; /* of those that wait */
    int rc;
    struct err err;
};

static void on_check_work(struct job *job)
{
    struct check_job *j = (struct check_job *)job;
    j->rc = store_check_journal(j->state, j->program, j->n_rows, &j->err);
}

/* The check is over: starts the verdict and the report that waited for it. */
static void let_go(struct shell *sh, struct hosted *h)
{
    h->checking = false;
    h->version++;
    if (h->verdict_due) {
        h->verdict_due = false;
        shell_compute_verdict(sh, h->no);
    }
    if (h->report_due) {
        h->report_due = false;
        shell_write_report(sh, h->no);
    }
}

static void keep_why(struct hosted *h, const char *why)
{
    free(h->history_why);
    h->history_why = why == NULL ? NULL : xstrdup(why);
    h->version++;
}

static void on_check_closed(uv_handle_t *handle)
{
    struct check_job *j = handle->data;
    free(j->state);
    free(j);
}

static void check_done(struct check_job *j)
{
    uv_close((uv_handle_t *)&j->timer, on_check_closed);
}

static void on_check_again(uv_timer_t *timer)
{
    struct check_job *j = timer->data;
    struct check_job **at = &j->shell->waiting_checks;
    while (*at != j) {
        at = &(*at)->next;
    }
    *at = j->next;
    job_start(&j->shell->loop, &j->job);
}

void load_close_checks(struct shell *sh)
{
    while (sh->waiting_checks != NULL) {
        struct check_job *j = sh->waiting_checks;
        sh->waiting_checks = j->next;
        check_done(j);
    }
}

/* A journal that cannot be read proves nothing: it is checked again, after a wait that doubles each
 * time because every check begins at row 1, and status shows why the verdict waits. */
static void check_later(struct check_job *j, struct hosted *h)
{
    if (h->history_why == NULL || strcmp(h->history_why, j->err.msg) != 0) {
        log_warn("%s: its journal cannot be checked: %s", h->id, j->err.msg);
        keep_why(h, j->err.msg);
    }
    j->next = j->shell->waiting_checks;
    j->shell->waiting_checks = j;
    (void)uv_timer_start(&j->timer, on_check_again, j->wait_ms, 0);
    j->wait_ms = 2 * j->wait_ms < CHECK_AGAIN_MAX_MS ? 2 * j->wait_ms : CHECK_AGAIN_MAX_MS;
}

/* The finding is kept in memory only: the next start checks again and sees whether it was
 * repaired. */
static void on_checked(struct job *job)
{
    struct check_job *j = (struct check_job *)job;
    struct hosted *h = j->shell->stopping ? NULL : shell_served(j->shell, j->program);
    if (h != NULL && j->rc != 0 && j->rc != ERR_CORRUPT) {
        check_later(j, h);
        return;
    }
    if (h != NULL) {
        h->unverified |= j->rc != 0;
        keep_why(h, j->rc != 0 ? j->err.msg : NULL);
        if (j->rc != 0) {
            log_error("%s: UNVERIFIED HISTORY: %s", h->id, j->err.msg);
        }
        let_go(j->shell, h);
    }
    check_done(j);
}

int load_check_journal(struct shell *sh, struct hosted *h, struct err *err)
{
    struct digest head;
    int64_t n_rows = 0;
    int rc = store_journal_head(sh->store, h->no, &head, &n_rows, err);
    if (rc != 0 || n_rows <= sh->checked_rows) {
        return rc;
    }
    struct check_job *j = xcalloc(1, sizeof(*j));
    j->job.work = on_check_work;
    j->job.done = on_checked;
    j->shell = sh;
    j->program = h->no;
    j->n_rows = n_rows;
    j->wait_ms = CHECK_AGAIN_MS;
    j->state = xstrdup(sh->state);
    (void)uv_timer_init(&sh->loop, &j->timer);
    j->timer.data = j;
    h->checking = true;
    job_start(&sh->loop, &j->job);
    return 0;
}

/* Without its verdict.json a reported program counts as not reported, so the core asks for the
 * report. */
static int load_one(struct shell *sh, const struct store_program *stored, struct err *err)
{
    struct store_program copy = *stored;
    const struct store_program *row = &copy;
    struct hosted *h = hosted_new(row->no, sh->state, row->id);
    int rc = load_bundle(h, row, err);
    if (rc != 0) {
        hosted_free(h);
        return err_wrap(err, "%s", row->id);
    }
    if (copy.status.reported && !verdict_is_there(h, &copy.status)) {
        log_warn("%s: verdict.json is gone or changed: it is written again", row->id);
        copy.status.reported = false;
    }
    rc = shell_add_program(sh, h, row, err);
    if (rc == 0) {
        shell_mend_report(sh, h);
    }
    return rc;
}

/* A later reason replaces an earlier one of the same program. */
void load_note_unloaded(struct shell *sh, const char *id, const char *name, const struct err *why)
{
    load_forget_unloaded(sh, id);
    ARRAY_GROW(sh->unloaded, sh->n_unloaded, sh->cap_unloaded);
    sh->unloaded[sh->n_unloaded++] =
        (struct unloaded){.id = xstrdup(id), .name = xstrdup(name), .why = *why};
}

void load_forget_unloaded(struct shell *sh, const char *id)
{
    size_t kept = 0;
    for (size_t i = 0; i < sh->n_unloaded; i++) {
        if (strcmp(sh->unloaded[i].id, id) == 0) {
            free(sh->unloaded[i].id);
            free(sh->unloaded[i].name);
        } else {
            sh->unloaded[kept++] = sh->unloaded[i];
        }
    }
    sh->n_unloaded = kept;
}

int load_all(struct shell *sh, struct err *err)
{
    struct program_list list = {0};
    arena_init(&list.texts);
    int rc = store_programs(sh->store, take_program, &list, err);
    for (size_t i = 0; rc == 0 && i < list.n; i++) {
        struct err why;
        if (load_one(sh, &list.items[i], &why) != 0) {
            log_error("%s", why.msg);
            load_note_unloaded(sh, list.items[i].id, list.items[i].name, &why);
        }
    }
    free(list.items);
    arena_release(&list.texts);
    return rc;
}
