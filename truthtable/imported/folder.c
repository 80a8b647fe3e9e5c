/*
 * Writes the folder of an imported program. Everything is written into a temporary folder beside
 * the target and published in one step, so an interrupted import leaves either nothing or the
 * earlier import. The checks run twice: before the import reads its files, and again just before
 * publishing. An executed program's folder is refused in any case: imported records never become
 * part of one.
 */
#include "truthtable/imported/folder.h"
#include "truthtable/evaluate/verdict_file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/files/file.h"
#include "base/json/json.h"
#include "base/layout/layout.h"
#include "base/xalloc.h"
#include "truthtable/evidence/evidence.h"

/* Whether the folder has an entry of this name, of any kind. */
static bool holds(const char *folder, const char *name)
{
    char *path = path_join(folder, name);
    bool there = file_kind_at(path) != FILE_ABSENT;
    free(path);
    return there;
}

/* A journal, an origin or cells beside a lock are traces of the daemon. */
static int check_not_executed(const char *folder, struct err *err)
{
    static const char *const traces[] = {LAYOUT_JOURNAL, LAYOUT_ORIGIN, LAYOUT_CELLS};
    for (size_t i = 0; i < ARRAY_LEN(traces); i++) {
        if (holds(folder, traces[i]) && holds(folder, LAYOUT_LOCK)) {
            return err_set(err, ERR_REFUSED,
                           "%s is an executed program (it holds %s): imported records never become "
                           "part of one",
                           folder, traces[i]);
        }
    }
    return 0;
}

/* An unreadable folder counts as not empty. */
static bool is_empty(const char *folder)
{
    struct name_list names = {0};
    struct err ignored;
    bool empty = dir_list(folder, &names, &ignored) == 0 && names.n == 0;
    name_list_release(&names);
    return empty;
}

/* Replacing removes the folder: what no import wrote must not go with it. */
static int check_nothing_else(const char *folder, struct err *err)
{
    static const char *const written[] = {LAYOUT_GRID, LAYOUT_LOCK, LAYOUT_RECORDS, LAYOUT_IMPORTED,
                                          LAYOUT_REPORT};
    struct name_list names = {0};
    int rc = dir_list(folder, &names, err);
    for (size_t i = 0; rc == 0 && i < names.n; i++) {
        size_t k = 0;
        while (k < ARRAY_LEN(written) && strcmp(names.names[i], written[k]) != 0) {
            k++;
        }
        if (k == ARRAY_LEN(written)) {
            rc = err_set(err, ERR_EXISTS, "%s holds %.60s, which no import wrote: not replaced",
                         folder, names.names[i]);
        }
    }
    name_list_release(&names);
    return rc;
}

/* Checks the folder that holds the plan as well as the target. */
int folder_check(const struct folder_spec *spec, struct err *err)
{
    char *home = path_folder(spec->program_path);
    int rc = check_not_executed(home, err);
    free(home);
    if (rc != 0) {
        return rc;
    }
    const enum file_kind kind = file_kind_at(spec->folder);
    if (kind == FILE_ABSENT || (kind == FILE_FOLDER && is_empty(spec->folder))) {
        return 0;
    }
    rc = check_not_executed(spec->folder, err);
    if (rc != 0) {
        return rc;
    }
    if (!imported_is_folder(spec->folder)) {
        return err_set(err, ERR_EXISTS, "%s exists and is not an imported program", spec->folder);
    }
    if (!spec->replace) {
        return err_set(err, ERR_EXISTS, "%s holds an earlier import (--replace gives that up)",
                       spec->folder);
    }
    return check_nothing_else(spec->folder, err);
}

/* ---- the lock's time ---- */

/* The time in the lock, for messages. */
static const char *lock_time(const struct lock *lock)
{
    const cJSON *time = json_member(lock->json, "time");
    return cJSON_IsString(time) ? time->valuestring : "an unknown time";
}

/* Warns of results files older than the lock. Their times come from the clock of the machine that
 * made them. */
static void compare_times(const struct folder_spec *spec, struct import *im)
{
    struct wall_time locked;
    size_t n = 0;
    size_t n_before = 0;
    const cJSON *r = NULL;
    /* A lock made at import cannot be older than any record. */
    if (imported_lock(spec->lock)) {
        import_warn(im, "the plan was locked at import, when its records were already there: this "
                        "is not a pre-registration");
        return;
    }
    if (!clock_wall_parse(lock_time(spec->lock), &locked)) {
        return;
    }
    cJSON_ArrayForEach(r, im->receipts)
    {
        const cJSON *date = json_member(r, "date");
        if (cJSON_IsNumber(date)) {
            n++;
            n_before += date->valuedouble * 1000 < (double)locked.ms ? 1 : 0;
        }
    }
    if (n_before > 0) {
        import_warn(im,
                    "%zu of %zu results files say that they were made before the plan was locked "
                    "(%s)",
                    n_before, n, lock_time(spec->lock));
    }
}

/* ---- what is written ---- */

/* imported.json: what was imported when, under which lock, with every warning and every file's
 * receipt. */
static cJSON *imported_json(const struct folder_spec *spec, const struct import *im)
{
    char now[WALL_TEXT_SIZE];
    clock_wall_text(clock_wall(), now);
    cJSON *o = json_object();
    cJSON *lock = json_object();
    json_put_int(o, "schema", IMPORTED_SCHEMA);
    json_put_string(o, "program", spec->program->name);
    json_put_string(o, "root", spec->lock->root);
    json_put(o, "label", json_copy(json_member(im->records, "label")));
    json_put_string(o, "imported", now);
    json_put_string(lock, "made", imported_lock(spec->lock) ? "at_import" : "before");
    json_put_string(lock, "time", lock_time(spec->lock));
    json_put(o, "lock", lock);
    json_put(o, "warnings", json_copy(im->warnings));
    json_put(o, "files", json_copy(im->receipts));
    return o;
}

/* One task of provenance.json. Imported tasks have no attempts. */
static cJSON *task_json(const struct evidence *e, size_t task)
{
    static const char *const ends[] = {[TASK_END_PENDING] = "no_record",
                                       [TASK_END_DONE] = "done",
                                       [TASK_END_BLOCKED] = "blocked",
                                       [TASK_END_NEVER_RUN] = "never_run"};
    const struct plan_program *p = e->program;
    cJSON *o = json_object();
    json_put_string(o, "cell", p->cells[task / p->n_stages].name);
    json_put_string(o, "stage", p->stages[task % p->n_stages].name);
    json_put_string(o, "end", ends[e->tasks[task].end]);
    json_put_string(o, "cause", e->tasks[task].cause);
    json_put(o, "attempts", json_array());
    return o;
}

/* provenance.json in the daemon's format, without attempts and journal. */
static cJSON *provenance_json(const struct evidence *e, const struct table_verdict *v)
{
    cJSON *o = json_object();
    cJSON *tasks = json_array();
    json_put_int(o, "schema", 1);
    json_put_string(o, "history", "imported");
    json_put_string(o, "assurance", "self-consistent, of imported records");
    for (size_t i = 0; i < program_n_tasks(e->program); i++) {
        json_push(tasks, task_json(e, i));
    }
    json_put(o, "tasks", tasks);
    json_put(o, "validity_timing", json_copy(verdict_timing(v)));
    return o;
}

/* Writes one file and deletes `value`. */
static int put_file(const char *folder, const char *name, cJSON *value, struct err *err)
{
    char *path = path_join(folder, name);
    int rc = json_write_file(path, value, 0644, err);
    free(path);
    cJSON_Delete(value);
    return rc;
}

/* verdict.json, with its last newline. */
static int put_verdict(const char *folder, const struct table_verdict *v, struct err *err)
{
    struct strbuf text = STRBUF_INIT;
    char *path = path_join(folder, LAYOUT_VERDICT);
    int rc = verdict_pretty(v, &text, err);
    strbuf_addc(&text, '\n');
    if (rc == 0) {
        rc = file_write_atomic(path, text.buf, text.len, 0644, err);
    }
    free(path);
    strbuf_release(&text);
    return rc;
}

/* What follows from the records. */
struct folder_facts {
    const struct table_verdict *verdict;
    const cJSON *provenance;
};

/* Writes all files into the temporary folder. */
static int fill(const struct folder_spec *spec, const char *to, const struct import *im,
                const struct folder_facts *told, struct err *err)
{
    char *report = path_join(to, LAYOUT_REPORT);
    char *grid = path_join(to, LAYOUT_GRID);
    cJSON *receipts = imported_json(spec, im);
    int rc = dir_make(report, 0755, err);
    if (rc != 0 || (rc = file_copy(spec->program_path, grid, 0644, err)) != 0 ||
        (rc = put_file(to, LAYOUT_LOCK, json_copy(spec->lock->json), err)) != 0 ||
        (rc = put_file(to, LAYOUT_RECORDS, json_copy(im->records), err)) != 0 ||
        (rc = put_file(to, LAYOUT_IMPORTED, json_copy(receipts), err)) != 0 ||
        (rc = put_file(report, LAYOUT_RECEIPTS, json_copy(receipts), err)) != 0 ||
        (rc = put_verdict(report, told->verdict, err)) != 0) {
        goto out;
    }
    rc = put_file(report, LAYOUT_PROVENANCE, json_copy(told->provenance), err);
out:
    cJSON_Delete(receipts);
    free(grid);
    free(report);
    return rc;
}

/* The temporary folder is removed on every error; what remains is named. */
static int write_whole(const struct folder_spec *spec, const struct import *im,
                       const struct folder_facts *told, struct err *err)
{
    char *full = path_absolute(NULL, spec->folder);
    for (size_t n = strlen(full); n > 1 && full[n - 1] == '/'; n--) {
        full[n - 1] = '\0'; /* without it the temporary folder would be made inside the target */
    }
    char *parent = path_folder(full);
    char *temp = xasprintf("%s.XXXXXX", full);
    struct err ignored;
    int rc = dir_make(parent, 0755, err);
    if (rc != 0) {
        goto out;
    }
    if (mkdtemp(temp) == NULL) {
        rc = err_set_errno(err, errno, "make a folder beside %s", spec->folder);
        goto out;
    }
    (void)chmod(temp, 0755); /* a report is made to be shown */
    if (((rc = fill(spec, temp, im, told, err)) != 0 ||
         (rc = folder_check(spec, err)) != 0 /* once more: reading took its time */ ||
         (rc = dir_publish(temp, full, file_kind_at(full) == FILE_FOLDER, err)) != 0) &&
        dir_remove(temp, &ignored) != 0) {
        (void)err_wrap(err, "%s is left behind", temp);
    }
out:
    free(temp);
    free(parent);
    free(full);
    return rc;
}

/* The verdict is computed from the records that are written, so both agree. */
int folder_write(const struct folder_spec *spec, struct import *im, struct table_verdict *out,
                 struct err *err)
{
    struct evidence e;
    *out = (struct table_verdict){.outcome = INDEX_NONE};
    compare_times(spec, im);
    evidence_init(&e, spec->program);
    int rc = evidence_read_records(&e, im->records, err);
    if (rc != 0 || (rc = verdict_compute(&e, spec->lock->root, spec->lock->root, out, err)) != 0) {
        goto out;
    }
    cJSON *provenance = provenance_json(&e, out);
    const struct folder_facts told = {.verdict = out, .provenance = provenance};
    rc = write_whole(spec, im, &told, err);
    cJSON_Delete(provenance);
out:
    evidence_release(&e);
    return rc;
}
