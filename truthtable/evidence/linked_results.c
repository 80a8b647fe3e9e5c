/*
 * Reads the results of an executed program from its folder and the ends of the other tasks from
 * provenance.json. A result decides that a task is done; what provenance.json says of it is only
 * used for tasks without one. Result files were verified when they were accepted, so one that
 * cannot be read now is an error, never a missing value.
 */
#include "truthtable/evidence/linked_results.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/json/json.h"
#include "base/layout/layout.h"
#include "base/xalloc.h"
#include "prereg/task/task_cause.h"

/* One element of "tasks": {"cell", "stage", "end", "cause", "narrower"}. */
static int gather_end(struct evidence *e, const cJSON *entry, struct err *err)
{
    static const struct {
        const char *name;
        enum task_end end;
    } ends[] = {{"done", TASK_END_DONE},
                {"blocked", TASK_END_BLOCKED},
                {"never_run", TASK_END_NEVER_RUN},
                {"pending", TASK_END_PENDING}};
    const char *cell_name = NULL;
    const char *stage_name = NULL;
    const char *end = NULL;
    const char *cause = NULL;
    const char *narrower = NULL;
    int rc = json_get_string(entry, "cell", &cell_name, err);
    if (rc != 0 || (rc = json_get_string(entry, "stage", &stage_name, err)) != 0 ||
        (rc = json_get_string(entry, "end", &end, err)) != 0 ||
        (rc = json_opt_string(entry, "cause", &cause, err)) != 0 ||
        (rc = json_opt_string(entry, "narrower", &narrower, err)) != 0) {
        return rc;
    }
    size_t cell = program_find_cell(e->program, cell_name);
    size_t stage = program_find_stage(e->program, stage_name);
    if (cell == INDEX_NONE || stage == INDEX_NONE) {
        return err_set(err, ERR_NOT_FOUND, "the program has no task %s %s", cell_name, stage_name);
    }
    for (size_t i = 0; i < ARRAY_LEN(ends); i++) {
        if (strcmp(end, ends[i].name) == 0) {
            /* Only a result makes a task done. */
            evidence_set_task(e, cell, stage,
                              ends[i].end == TASK_END_DONE ? TASK_END_PENDING : ends[i].end, cause);
            if (narrower != NULL) {
                evidence_set_narrower(e, cell, stage, narrower);
            }
            return 0;
        }
    }
    return err_set(err, ERR_SYNTAX, "task %s %s ends as \"%.40s\"", cell_name, stage_name, end);
}

/* Adds one task's result, if there is one. JSON is read leniently, because Python writes NaN and
 * Infinity. */
static int gather_result(struct evidence *e, const char *cells, size_t cell, size_t stage,
                         struct err *err)
{
    const struct plan_program *p = e->program;
    char *path =
        xasprintf("%s/%s/%s/" LAYOUT_RESULT, cells, p->cells[cell].folder, p->stages[stage].name);
    cJSON *result = NULL;
    int rc = 0;
    struct stat st;
    /* A link to nothing is there: it named a result once. */
    if (lstat(path, &st) == 0 || (errno != ENOENT && errno != ENOTDIR)) {
        rc = json_read_file_lax(path, LAYOUT_RESULT_MAX, &result, err);
        if (rc == 0 && (rc = evidence_add_result(e, cell, stage, result, err)) == 0) {
            evidence_set_task(e, cell, stage, TASK_END_DONE, NULL);
        } else {
            rc = err_wrap(err, "%s", path);
        }
    }
    cJSON_Delete(result);
    free(path);
    return rc;
}

/* Ends first: a result then overrides the end of its task. */
int gather_evidence(struct evidence *e, const char *cells, const cJSON *ends, struct err *err)
{
    const struct plan_program *p = e->program;
    int rc = 0;
    const cJSON *entry = NULL;
    cJSON_ArrayForEach(entry, ends)
    {
        rc = gather_end(e, entry, err);
        if (rc != 0) {
            return rc;
        }
    }
    for (size_t i = 0; rc == 0 && i < program_n_tasks(p); i++) {
        rc = gather_result(e, cells, i / p->n_stages, i % p->n_stages, err);
    }
    return rc;
}
