/* Attempt folders as files show them, and rows for those that the journal does not know. */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/files/file.h"
#include "base/json/json.h"
#include "base/layout/layout.h"
#include "state/rebuild/internal.h"

static char *task_folder(const struct rebuilding *r, uint32_t task)
{
    const struct plan_program *p = r->program;
    const struct rebuilding_check *check = rebuild_check_of(r, task);
    if (check != NULL) {
        return layout_check(r->folder, check->name);
    }
    return layout_task(r->folder, p->cells[task / p->n_stages].folder,
                       p->stages[task % p->n_stages].name);
}

/* result.json -> attempt-...: the daemon links only what it has verified. */
static void find_link(const char *folder, struct found_task *f)
{
    char target[256];
    char *path = path_join(folder, LAYOUT_RESULT);
    ssize_t n = readlink(path, target, sizeof(target) - 1);
    f->linked = SIZE_MAX;
    if (n > 0) {
        target[n] = '\0';
        for (size_t i = 0; i < f->n; i++) {
            const char *name = path_name(f->attempts[i].path);
            size_t len = strlen(name);
            if (strncmp(target, name, len) == 0 && target[len] == '/') {
                f->linked = i;
            }
        }
    }
    free(path);
}

static int read_result(struct found_task *f, struct err *err)
{
    const char *attempt = NULL;
    char *path = path_join(f->attempts[f->linked].path, LAYOUT_RESULT);
    int rc = 0;
    if (file_kind_at(path) == FILE_REGULAR) {
        rc = digest_file(path, &f->digest, NULL, err);
        if (rc == 0) {
            rc = json_read_file_lax(path, LAYOUT_RESULT_MAX, &f->result, err);
        }
        if (rc == 0) {
            rc = json_opt_string(f->result, "attempt", &attempt, err);
        }
        f->has_result =
            rc == 0 && (attempt == NULL || strcmp(attempt, f->attempts[f->linked].name.id) == 0);
    }
    free(path);
    return rc;
}

int found_task_read(const struct rebuilding *r, uint32_t task, struct found_task *out,
                    struct err *err)
{
    assert(r != NULL && out != NULL);
    struct name_list names = {0};
    char *folder = task_folder(r, task);
    *out = (struct found_task){.linked = SIZE_MAX};
    int rc = attempt_list(folder, &names, err);
    for (size_t i = 0; rc == 0 && i < names.n; i++) {
        struct found_attempt a;
        if (attempt_name_parse(names.names[i], &a.name)) {
            a.path = path_join(folder, names.names[i]);
            ARRAY_GROW(out->attempts, out->n, out->cap);
            out->attempts[out->n++] = a;
        }
    }
    if (rc == 0 && out->n > 0) {
        find_link(folder, out);
    }
    if (rc == 0 && out->linked != SIZE_MAX) {
        struct err why = {0}; /* a result that cannot be read is none */
        (void)!read_result(out, &why);
    }
    name_list_release(&names);
    free(folder);
    return rc;
}

void found_task_release(struct found_task *f)
{
    assert(f != NULL);
    for (size_t i = 0; i < f->n; i++) {
        free(f->attempts[i].path);
    }
    free(f->attempts);
    cJSON_Delete(f->result);
}

/* ---- rows ---- */

static cJSON *read_part(const struct found_attempt *a, const char *name)
{
    cJSON *json = NULL;
    struct err ignored = {0};
    char *path = path_join(a->path, name);
    (void)!json_read_file(path, LAYOUT_START_MAX, &json, &ignored);
    free(path);
    return json;
}

static struct wall_time time_of(const cJSON *json, const char *key)
{
    struct wall_time t = {0};
    const cJSON *text = json_member(json, key);
    if (cJSON_IsString(text)) {
        (void)clock_wall_parse(text->valuestring, &t);
    }
    return t;
}

static int64_t int_of(const cJSON *json, const char *key, int64_t otherwise)
{
    struct err ignored = {0};
    int64_t v = otherwise;
    return json_opt_int(json, key, -1, JSON_INT_MAX, &v, &ignored) == 0 ? v : otherwise;
}

static enum cause cause_of_code(int64_t code)
{
    return code == 75   ? CAUSE_PREEMPTED
           : code == 64 ? CAUSE_USER_ERROR
           : code == 65 ? CAUSE_BAD_INPUT
           : code == 69 ? CAUSE_NOT_MEASURABLE
           : code == 0  ? CAUSE_BAD_RESULT
                        : CAUSE_CRASH;
}

static void read_exit(const cJSON *exit, struct attempt_row *a)
{
    const cJSON *reason = json_member(exit, "reason");
    const cJSON *rusage = json_member(exit, "rusage");
    a->reason = cJSON_IsString(reason) ? end_reason_from_name(reason->valuestring) : END_REASON_NR;
    a->reason = a->reason == END_REASON_NR ? END_LOST : a->reason;
    a->code = a->reason == END_EXITED ? (int)int_of(exit, "code", -1) : -1;
    a->signal = a->reason == END_SIGNALLED ? (int)int_of(exit, "signal", 0) : 0;
    a->ended = time_of(exit, "time");
    a->ran_ms = int_of(exit, "ran_ms", -1);
    a->user_ms = int_of(rusage, "user_ms", -1);
    a->system_ms = int_of(rusage, "system_ms", -1);
    a->max_rss_bytes = int_of(rusage, "max_rss_bytes", -1);
    switch ((int)a->reason) {
    case END_EXITED: a->cause = cause_of_code(a->code); break;
    case END_DEADLINE: a->cause = CAUSE_TIMEOUT; break;
    case END_MEMORY: a->cause = CAUSE_OOM; break;
    case END_DISK: a->cause = CAUSE_NO_SPACE; break;
    case END_LOST: a->cause = CAUSE_SILENT_DEATH; break;
    case END_PREEMPTED: a->cause = CAUSE_PREEMPTED; break;
    default: a->cause = CAUSE_CRASH; break;
    }
}

static int put(struct rebuilding *r, struct state_row *row, enum task_state to, struct err *err)
{
    struct task_row *t = &r->tasks[row->task];
    row->program = r->no;
    row->from = t->state;
    row->after = *t;
    row->after.state = to;
    if (to != TASK_BLOCKED && to != TASK_NEVER_RUN) {
        row->after.cause = CAUSE_NONE;
    }
    row->detail = REBUILD_UNVERIFIED ": taken from the files";
    int rc = apply_row(r->store, row, err);
    if (rc == 0) {
        *t = row->after;
    }
    return rc;
}

/* Whatever the journal left the task in, to `ready`: an attempt has begun since. */
static int make_ready(struct rebuilding *r, uint32_t task, struct err *err)
{
    struct state_row row = {.task = task};
    attempt_row_init(&row.attempt);
    switch ((int)r->tasks[task].state) {
    case TASK_WAITING: row.kind = ROW_TASK_READY; return put(r, &row, TASK_READY, err);
    case TASK_BLOCKED:
    case TASK_NEVER_RUN: row.kind = ROW_TASK_RETRIED; return put(r, &row, TASK_READY, err);
    default: return 0;
    }
}

/* What the scheduler would have made of it, as far as files tell: nothing is known of progress. */
static enum task_state state_after(const struct rebuilding *r, uint32_t task, enum cause cause)
{
    const struct rebuilding_check *check = rebuild_check_of(r, task);
    size_t stage = check == NULL ? task % r->program->n_stages : check->stage;
    struct task_row *t = &r->tasks[task];
    if (stage == INDEX_NONE) {
        return TASK_BLOCKED;
    }
    const struct stage_run *run = &r->program->stages[stage].run;
    bool at_once =
        cause == CAUSE_USER_ERROR || cause == CAUSE_BAD_INPUT || cause == CAUSE_NOT_MEASURABLE;
    t->spent++;
    t->crashes += cause != CAUSE_PREEMPTED && cause != CAUSE_NO_SPACE;
    bool over = (int64_t)t->crashes >= run->crashes || (int64_t)t->spent >= run->attempts;
    return at_once || over ? TASK_BLOCKED : TASK_READY;
}

static int end_one(struct rebuilding *r, struct state_row *row, bool done, struct err *err)
{
    struct task_row *t = &r->tasks[row->task];
    row->kind = ROW_ATTEMPT_RUNNING;
    row->has_result = false;
    row->attempt.state = ATTEMPT_RUNNING;
    int rc = t->state == TASK_STARTING ? put(r, row, TASK_RUNNING, err) : 0;
    if (rc != 0) {
        return rc;
    }
    row->kind = ROW_ATTEMPT_ENDED;
    row->attempt.state = ATTEMPT_ENDED;
    row->has_result = done;
    if (done) {
        row->attempt.cause = CAUSE_NONE;
        return put(r, row, TASK_DONE, err);
    }
    enum task_state to = state_after(r, row->task, row->attempt.cause);
    t->cause = to == TASK_BLOCKED ? row->attempt.cause : CAUSE_NONE;
    return put(r, row, to, err);
}

/* One folder that the journal does not know of, or does not know the end of. The last one without
 * exit.json may still be at work: the daemon will look. */
static int take_one(struct rebuilding *r, uint32_t task, const struct found_task *f, size_t i,
                    struct err *err)
{
    const struct found_attempt *a = &f->attempts[i];
    bool done = i == f->linked && f->has_result;
    bool known = a->name.no == r->tasks[task].n_attempts;
    struct state_row row = {.task = task, .kind = ROW_ATTEMPT_STARTED, .sealed = true};
    cJSON *start = read_part(a, LAYOUT_START); /* of an attempt that runs, or an older shim's */
    cJSON *exit = read_part(a, LAYOUT_EXIT);
    attempt_row_init(&row.attempt);
    row.attempt.no = a->name.no;
    memcpy(row.attempt.id, a->name.id, sizeof(a->name.id));
    row.attempt.state = ATTEMPT_STARTING;
    row.attempt.started = start != NULL ? time_of(start, "time") : time_of(exit, "started");
    row.time = row.attempt.started;
    row.result_digest = f->digest;
    int rc = 0;
    if (!known) {
        rc = make_ready(r, task, err);
        r->tasks[task].n_attempts = a->name.no;
        if (rc == 0) {
            rc = put(r, &row, TASK_STARTING, err);
        }
    }
    if (rc == 0 && (done || exit != NULL || i + 1 < f->n)) {
        read_exit(exit, &row.attempt);
        row.time = row.attempt.ended;
        rc = end_one(r, &row, done, err);
    }
    cJSON_Delete(start);
    cJSON_Delete(exit);
    return rc;
}

int found_take_in(struct rebuilding *r, uint32_t task, const struct found_task *f, struct err *err)
{
    assert(r != NULL && f != NULL);
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < f->n && r->tasks[task].state != TASK_DONE; i++) {
        bool is_new = f->attempts[i].name.no > r->tasks[task].n_attempts;
        bool is_live =
            f->attempts[i].name.no == r->tasks[task].n_attempts &&
            (r->tasks[task].state == TASK_STARTING || r->tasks[task].state == TASK_RUNNING);
        bool proves = i == f->linked && f->has_result;
        if (is_new || (is_live && (proves || i + 1 < f->n))) {
            rc = take_one(r, task, f, i, err);
        }
    }
    return rc;
}
