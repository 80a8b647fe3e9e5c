/*
 * Apparatus checks in the shell: the list in store and mirror, how an amendment changes it, how a
 * result is judged, and what status and provenance show.
 *
 * The list only grows, since a check's place in it is its task number. Whether a check holds is
 * decided by apparatus_judge() and nowhere else: on acceptance, on display and before the verdict.
 */
#include "daemon/program/apparatus.h"
#include "daemon/program/inputs.h"

#include <fcntl.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "base/files/file.h"
#include "base/json/json.h"
#include "base/layout/attempt_name.h"
#include "base/layout/layout.h"
#include "base/text.h"
#include "base/xalloc.h"
#include "daemon/program/prepare.h"
#include "daemon/shim/files.h"
#include "prereg/lock/pinned_files.h"
#include "prereg/program/apparatus_name.h"
#include "prereg/task/task.h"
#include "state/store/apparatus.h"

/* ---- the list ---- */

static int take_check(void *ctx, const struct store_apparatus *a, struct err *err)
{
    struct hosted *h = ctx;
    if (h->n_checks == STORE_APPARATUS_MAX) {
        return err_set(err, ERR_CORRUPT, "more than %u apparatus checks", STORE_APPARATUS_MAX);
    }
    hosted_add_check(h, a->name, program_find_stage(h->bundle->program, a->stage), a->declared);
    return 0;
}

static int read_checks(struct store *store, struct hosted *h, struct err *err)
{
    hosted_forget_checks(h);
    return store_apparatus(store, h->no, take_check, h, err);
}

/* Whether the stored list matches the program's declarations. */
static bool agrees(const struct hosted *h)
{
    const struct plan_program *p = h->bundle->program;
    size_t n = 0;
    for (size_t i = 0; i < h->n_checks; i++) {
        size_t a = program_find_apparatus(p, h->checks[i].name);
        if (h->checks[i].declared != (a != INDEX_NONE) ||
            (a != INDEX_NONE && p->apparatus[a].stage != h->checks[i].stage)) {
            return false;
        }
        n += a != INDEX_NONE;
    }
    return n == p->n_apparatus;
}

/* A list that does not match is synced in a transaction of its own, before the core sees it. */
int apparatus_load(struct store *store, struct hosted *h, bool finished, struct err *err)
{
    int rc = read_checks(store, h, err);
    if (rc != 0 || finished || agrees(h)) {
        return rc; /* a verdict that was given without a check is not checked afterwards */
    }
    rc = store_begin(store, err);
    if (rc == 0) {
        rc = store_apparatus_sync(store, h->no, h->bundle->program, err);
        if (rc == 0) {
            rc = store_commit(store, err);
        } else {
            store_rollback(store);
        }
    }
    return rc == 0 ? read_checks(store, h, err) : rc;
}

/* ---- amended ---- */

/* Its place in the list: its own, else one without a name (from a rebuild), else a new one. */
static uint32_t place_of(const struct core_apparatus *list, uint32_t n, const char *name)
{
    uint32_t at = 0;
    while (at < n && strcmp(list[at].name, name) != 0) {
        at++;
    }
    for (uint32_t i = 0; at == n && i < n; i++) {
        if (list[i].name[0] == '\0') {
            at = i;
        }
    }
    return at;
}

/* Whether the check is new, asks something else, or runs with other params. */
static bool differs(const struct plan_program *now, const struct plan_apparatus *then,
                    const struct stage_set *params_of)
{
    size_t i = program_find_apparatus(now, then->name);
    return i == INDEX_NONE || stage_set_has(params_of, then->stage) ||
           !json_equal(now->apparatus[i].spec, then->spec);
}

/* Starts with every check as not declared, then declares those of the amended program. */
int apparatus_amended(const struct hosted *h, const struct plan_program *then,
                      const struct stage_set *params_of, struct core_apparatus **list, uint32_t *n,
                      struct err *err)
{
    const struct plan_program *now = h->bundle->program;
    struct core_apparatus *out = xcalloc(h->n_checks + then->n_apparatus + 1, sizeof(*out));
    uint32_t count = (uint32_t)h->n_checks;
    for (size_t i = 0; i < h->n_checks; i++) {
        const struct hosted_check *c = &h->checks[i];
        out[i] = (struct core_apparatus){
            .name = c->name,
            .stage = (uint32_t)(c->stage < now->n_stages ? c->stage : now->n_stages)};
    }
    for (size_t i = 0; i < then->n_apparatus; i++) {
        const struct plan_apparatus *a = &then->apparatus[i];
        uint32_t at = place_of(out, count, a->name);
        count += at == count;
        out[at] = (struct core_apparatus){.name = a->name,
                                          .stage = (uint32_t)a->stage,
                                          .declared = true,
                                          .changed = differs(now, a, params_of)};
    }
    plan_link_checks(out, count);
    *list = out;
    *n = count;
    return count <= STORE_APPARATUS_MAX
               ? 0
               : err_set(err, ERR_REFUSED,
                         "more than %u apparatus checks, counting those that "
                         "were taken away",
                         STORE_APPARATUS_MAX);
}

/* Appends new checks and their tasks; existing ones keep their place. */
void apparatus_follow(struct hosted *h, const struct core_apparatus *list, uint32_t n)
{
    size_t before = h->n_checks;
    for (uint32_t i = 0; i < n; i++) {
        const struct core_apparatus *c = &list[i];
        size_t stage = c->stage < h->bundle->program->n_stages ? c->stage : INDEX_NONE;
        if (i >= before) {
            hosted_add_check(h, c->name, stage, c->declared);
            continue;
        }
        if (strcmp(h->checks[i].name, c->name) !=
            0) { /* the slot had no name, so no job can be using it */
            free(h->checks[i].name);
            h->checks[i].name = xstrdup(c->name);
        }
        h->checks[i].stage = stage;
        h->checks[i].declared = c->declared;
    }
    h->tasks = xreallocarray(h->tasks, h->n_tasks + h->n_checks + 1, sizeof(*h->tasks));
    for (size_t i = before; i < h->n_checks; i++) {
        task_row_init(&h->tasks[h->n_tasks + i], TASK_READY);
    }
}

const struct plan_apparatus *apparatus_of(const struct hosted *h, const struct bundle *b,
                                          uint32_t task)
{
    size_t i = program_find_apparatus(b->program, h->checks[task - h->n_tasks].name);
    return i == INDEX_NONE ? NULL : &b->program->apparatus[i];
}

int apparatus_model_path(const struct plan_program *p, const struct plan_apparatus *a, char **out,
                         struct err *err)
{
    struct pinned_list files = {0};
    *out = NULL;
    int rc = pinned_collect(p, &files, NULL, err);
    for (size_t i = 0; rc == 0 && i < files.n && *out == NULL; i++) {
        if (strcmp(files.items[i].name, a->model) == 0) {
            *out = xstrdup(files.items[i].path);
        }
    }
    pinned_release(&files);
    return rc != 0 || *out != NULL
               ? rc
               : err_set(err, ERR_NOT_FOUND, "apparatus.%s: %s is not pinned", a->name, a->model);
}

/* Compares what the task asked (expectation, model, params, stage) with the present
 * declaration. */
bool apparatus_is_current(const struct plan_apparatus *a, const struct bundle *b,
                          const char *attempt_folder)
{
    cJSON *task = NULL;
    struct err ignored;
    bool same = false;
    if (attempt_task_read(attempt_folder, &task, &ignored) == 0) {
        const cJSON *asked = json_member(task, "apparatus");
        const cJSON *stage = json_member(task, "stage");
        cJSON *params = task_params(b->program, b->lock, 0, a->stage);
        same = json_equal(json_member(asked, "expect"), json_member(a->spec, "expect")) &&
               json_equal(json_member(asked, "model"), json_member(a->spec, "model")) &&
               json_equal(json_member(task, "params"), params) && cJSON_IsString(stage) &&
               strcmp(stage->valuestring, b->program->stages[a->stage].name) == 0;
        cJSON_Delete(params);
    }
    cJSON_Delete(task);
    return same;
}

void apparatus_last_words(const char *attempt_folder, char *text, size_t size)
{
    char *path = path_join(attempt_folder, LAYOUT_STDERR);
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    text[0] = '\0';
    if (fd >= 0) {
        text_last_line(fd, 0, text, size);
        (void)close(fd);
    }
    free(path);
}

/* ---- status and provenance ---- */

/* The result to show: that of the last attempt that left one. */
static cJSON *last_result(const struct hosted *h, uint32_t task)
{
    struct name_list names = {0};
    struct err ignored;
    cJSON *result = NULL;
    char *folder = hosted_task_folder(h, task);
    if (attempt_list(folder, &names, &ignored) == 0) {
        for (size_t i = names.n; result == NULL && i-- > 0;) {
            char *path = xasprintf("%s/%s/%s", folder, names.names[i], LAYOUT_RESULT);
            if (file_kind_at(path) == FILE_REGULAR &&
                json_read_file_lax(path, LAYOUT_RESULT_MAX, &result, &ignored) != 0) {
                result = NULL;
            }
            free(path);
        }
    }
    name_list_release(&names);
    free(folder);
    return result;
}

/* "value", "holds" (true, false, or null while unknown) and "why". */
static void put_standing(cJSON *o, const struct plan_apparatus *a, double first,
                         const struct task_row *row, const cJSON *result)
{
    char text[APPARATUS_TEXT_SIZE] = "";
    double value = (double)NAN;
    bool ended = row->state == TASK_DONE || row->cause == CAUSE_APPARATUS;
    if (ended && result != NULL) {
        (void)apparatus_judge(a, first, result, &value, text);
    }
    if (isfinite(value)) {
        json_put_number(o, "value", value);
    } else {
        json_put_null(o, "value");
    }
    if (row->state == TASK_DONE) {
        json_put_bool(o, "holds", true);
        json_put_null(o, "why");
    } else if (row->cause == CAUSE_APPARATUS) {
        json_put_bool(o, "holds", false);
        json_put_string(o, "why", text[0] == '\0' ? cause_name(row->cause) : text);
    } else {
        json_put_null(o, "holds");
        json_put_string(o, "why",
                        row->cause != CAUSE_NONE ? cause_name(row->cause)
                                                 : task_state_name(row->state));
    }
}

/* A removed check: its last question and result. */
static void put_taken_away(cJSON *o, const cJSON *results)
{
    static const char *const keys[] = {"stage", "metric", "expected", "within", "value", "holds"};
    const cJSON *last = cJSON_GetArrayItem(results, cJSON_GetArraySize(results) - 1);
    for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
        const cJSON *v = last == NULL ? NULL : json_member(last, keys[i]);
        json_put(o, keys[i], v == NULL ? cJSON_CreateNull() : json_copy(v));
    }
    json_put_string(o, "why", "an amendment took it away");
}

cJSON *apparatus_json(const struct hosted *h, const struct bundle *b, uint32_t task,
                      const struct task_row *row)
{
    const struct plan_apparatus *a = apparatus_of(h, b, task);
    const char *name = h->checks[task - h->n_tasks].name;
    const bool again = apparatus_name_is_end(name);
    if ((a == NULL && row->n_attempts == 0) ||
        (again && h->status.verdict && !task_state_is_terminal(row->state))) {
        return NULL; /* the latter is of a version that gave the verdict without it */
    }
    char *folder = hosted_task_folder(h, task);
    cJSON *o = json_object();
    cJSON *results = apparatus_results(b->lock, name, folder);
    json_put_string(o, "name", name);
    json_put_bool(o, "declared", a != NULL);
    if (a == NULL) {
        put_taken_away(o, results);
    } else {
        cJSON *result = last_result(h, task);
        json_put_string(o, "stage", b->program->stages[a->stage].name);
        json_put_string(o, "metric", a->metric_text);
        json_put_number(o, "expected", a->value);
        json_put_number(o, "within", a->within);
        const double first = again ? apparatus_shown_first(a, folder) : (double)NAN;
        if (again) {
            json_put_number(o, "again", a->again);
            json_put_number(o, "first", first);
        }
        put_standing(o, a, first, row, result);
        cJSON_Delete(result);
    }
    json_put(o, "results", results);
    free(folder);
    return o;
}

/* ---- before the verdict ---- */

static bool has_task(const struct hosted *h, const char *name)
{
    bool found = false;
    for (size_t i = 0; i < h->n_checks; i++) {
        found = found || strcmp(h->checks[i].name, name) == 0;
    }
    return found;
}

/* Whether some held stage has a result: it was released by checks that held, so they matter now. */
static bool let_go(const struct hosted *h, const struct bundle *b, const struct task_row *rows)
{
    const struct plan_program *p = b->program;
    for (size_t i = 0; i < h->n_tasks; i++) {
        size_t s = i % p->n_stages;
        if (rows[i].state == TASK_DONE && p->stages[s].n_after > 0 &&
            program_stage_is_sealed(p, s)) {
            return true;
        }
    }
    return false;
}

/* Reads the accepted result by its digest and judges it again. */
static int verify_one(const struct hosted *h, const struct plan_apparatus *a, uint32_t task,
                      const struct digest *digests, struct err *err)
{
    char text[APPARATUS_TEXT_SIZE];
    double first = (double)NAN;
    double value = 0;
    cJSON *result = NULL;
    const uint32_t of = hosted_first_run(h, task);
    char *folder = hosted_task_folder(h, task);
    char *path = path_join(folder, LAYOUT_RESULT);
    int rc = accepted_read(path, &digests[task - h->n_tasks], &result, err);
    if (rc == 0 && of != UINT32_MAX) {
        char *before = hosted_task_folder(h, of);
        rc = apparatus_first_value(a, before, &digests[of - h->n_tasks], &first, err);
        free(before);
    }
    if (rc == 0 && apparatus_judge(a, first, result, &value, text) != RESULT_VALID) {
        rc = err_set(err, ERR_LOCK, "%s", text);
    }
    cJSON_Delete(result);
    free(path);
    free(folder);
    return rc == 0 ? 0 : err_wrap(err, "apparatus.%s", a->name);
}

int apparatus_verify_all(const struct hosted *h, const struct bundle *b,
                         const struct task_row *rows, const struct digest *digests, struct err *err)
{
    int rc = 0;
    if (!let_go(h, b, rows)) {
        return 0; /* no evaluation rests on them */
    }
    for (size_t i = 0; rc == 0 && i < b->program->n_apparatus; i++) {
        const char *name = b->program->apparatus[i].name;
        if (!has_task(h, name)) {
            rc = err_set(err, ERR_LOCK, "apparatus.%s was never checked", name);
        }
    }
    for (size_t i = 0; rc == 0 && i < h->n_checks; i++) {
        uint32_t task = (uint32_t)(h->n_tasks + i);
        const struct plan_apparatus *a = apparatus_of(h, b, task);
        if (a == NULL || (a->first != INDEX_NONE && rows[task].state != TASK_DONE)) {
            continue; /* a second run that is not done voids the verdict, and does not prevent it */
        }
        rc = rows[task].state == TASK_DONE
                 ? verify_one(h, a, task, digests, err)
                 : err_set(err, ERR_LOCK, "apparatus.%s does not hold: %s", a->name,
                           task_state_name(rows[task].state));
    }
    return rc;
}

cJSON *apparatus_all_results(const struct hosted *h, const struct lock *lock)
{
    cJSON *all = json_array();
    for (size_t i = 0; i < h->n_checks; i++) {
        char *folder = hosted_task_folder(h, (uint32_t)(h->n_tasks + i));
        cJSON *list = apparatus_results(lock, h->checks[i].name, folder);
        while (list->child != NULL) {
            json_push(all, cJSON_DetachItemFromArray(list, 0));
        }
        cJSON_Delete(list);
        free(folder);
    }
    return all;
}
