/*
 * Reads everything that a report is made from. The lock must hold and the verdict must be of its
 * root; everything else may be missing and is then reported as unknown. Values are read as the
 * verdict reads them and never computed again.
 */
#include "truthtable/report/report_model.h"

#include <math.h>
#include <string.h>

#include "base/diag.h"
#include "base/files/file.h"
#include "base/json/json.h"
#include "base/layout/layout.h"
#include "base/xalloc.h"
#include "prereg/amend/amendment.h"
#include "prereg/load/program_load.h"
#include "prereg/lock/imported.h"
#include "truthtable/report/report_apparatus.h"

/* The plan must be the one that the lock covers, amendments included. */
static int read_program(struct report_model *m, const char *folder, struct err *err)
{
    char *path = path_join(folder, LAYOUT_GRID);
    struct diag diag;
    diag_init(&diag, path);
    int rc = program_load(path, &m->program, &diag, err);
    if (rc == 0 && (rc = lock_read_amended(folder, &m->lock, err)) == 0) {
        /* The plan alone: data and workers may be gone when a report is written again. */
        rc = lock_verify(m->program, m->lock, LOCK_PLAN, NULL, NULL, err);
    }
    diag_release(&diag);
    free(path);
    return rc;
}

/* The file must exist and belong to this root. */
static int read_verdict(struct report_model *m, const char *folder, struct err *err)
{
    char *path = path_join(folder, LAYOUT_IN_REPORT(LAYOUT_VERDICT));
    int rc = json_read_file(path, LAYOUT_REPORT_MAX, &m->verdict, err);
    free(path);
    if (rc != 0) {
        return rc;
    }
    const char *root = member_text(m->verdict, "root");
    const char *outcome = member_text(m->verdict, "outcome");
    m->kind = outcome == NULL ? VERDICT_INDETERMINATE : verdict_kind_of(outcome);
    /* A verdict of another root would make a report that looks right and is not. */
    if (root == NULL || strcmp(root, m->lock->root) != 0) {
        return err_set(err, ERR_LOCK, "verdict.json is of root %.64s, the lock of root %s",
                       root == NULL ? "(none)" : root, m->lock->root);
    }
    return 0;
}

/* Absent for replayed records; then who ran what is not known. */
static int read_provenance(struct report_model *m, const char *folder, struct err *err)
{
    char *path = path_join(folder, LAYOUT_IN_REPORT(LAYOUT_PROVENANCE));
    int rc = 0;
    if (file_kind_at(path) != FILE_ABSENT) {
        rc = json_read_file(path, LAYOUT_REPORT_MAX, &m->provenance, err);
    }
    free(path);
    return rc;
}

/* Present for imported programs only. */
static int read_imported(struct report_model *m, const char *folder, struct err *err)
{
    char *path = path_join(folder, LAYOUT_IMPORTED);
    int rc = 0;
    if (file_kind_at(path) != FILE_ABSENT) {
        rc = json_read_file(path, LAYOUT_REPORT_MAX, &m->imported, err);
    }
    free(path);
    return rc;
}

/* The lock was read with its amendments, which verified the chain; the files are read here for
 * display. */
static int read_amendments(struct report_model *m, const char *folder, struct err *err)
{
    char *amendments = path_join(folder, LAYOUT_AMENDMENTS);
    int rc = 0;
    m->amendments = json_array();
    for (size_t i = 1; rc == 0 && i <= m->lock->n_amendments; i++) {
        cJSON *amendment = NULL;
        char *path = amendment_file(amendments, i, "json");
        rc = json_read_file(path, LAYOUT_AMENDMENT_MAX, &amendment, err);
        if (rc == 0) {
            json_push(m->amendments, amendment);
        }
        free(path);
    }
    free(amendments);
    return rc;
}

/* Instruments inform: without them, or with a file that cannot be read, the report is written all
 * the same and says so. */
static void read_instruments(struct report_model *m, const char *folder)
{
    struct err failed = {0};
    cJSON *instruments = NULL;
    char *path = path_join(folder, LAYOUT_IN_REPORT(LAYOUT_INSTRUMENTS));
    if (file_kind_at(path) == FILE_ABSENT) {
        report_model_set_instruments(m, NULL, "there is no instruments.json beside the verdict");
    } else if (json_read_file(path, LAYOUT_REPORT_MAX, &instruments, &failed) != 0) {
        report_model_set_instruments(m, NULL, failed.msg);
    } else {
        report_model_set_instruments(m, instruments, NULL);
    }
    free(path);
}

/* Instruments of another root are refused, and the reason is kept. */
void report_model_set_instruments(struct report_model *m, cJSON *instruments, const char *why)
{
    const char *root = member_text(instruments, "root");
    const bool is_ours = root != NULL && strcmp(root, m->lock->root) == 0;
    cJSON_Delete(m->instruments);
    m->instruments = is_ours ? instruments : NULL;
    m->instruments_why =
        arena_strdup(&m->arena, why != NULL ? why : "instruments.json is not of this program");
    if (!is_ours) {
        cJSON_Delete(instruments);
    }
}

/* An unreadable result is as good as none here: the verdict has already judged it. */
static void read_result(struct report_model *m, const char *task_folder, size_t task)
{
    struct err ignored = {0};
    char *path = path_join(task_folder, LAYOUT_RESULT);
    if (file_kind_at(path) == FILE_REGULAR &&
        json_read_file_lax(path, LAYOUT_RESULT_MAX, &m->results[task], &ignored) == 0) {
        m->n_results++;
    }
    free(path);
}

/* Results and curves of every task, in the order of cells and stages. */
static void read_tasks(struct report_model *m, const char *folder)
{
    const struct plan_program *p = m->program;
    char *cells = path_join(folder, LAYOUT_CELLS);
    m->results = xcalloc(program_n_tasks(p) + 1, sizeof(*m->results));
    for (size_t c = 0; c < p->n_cells; c++) {
        char *cell_folder = path_join(cells, p->cells[c].folder);
        for (size_t s = 0; s < p->n_stages; s++) {
            char *task_folder = path_join(cell_folder, p->stages[s].name);
            read_result(m, task_folder, c * p->n_stages + s);
            curves_read_task(&m->curves, &m->arena, task_folder, c, s);
            const size_t n = m->routers.n;
            if (m->results[c * p->n_stages + s] != NULL) {
                router_courses_add(&m->routers, task_folder, m->results[c * p->n_stages + s], c, s);
            }
            if (m->routers.n > n) {
                router_courses_trim(&m->routers, p->cells);
            }
            free(task_folder);
        }
        free(cell_folder);
    }
    free(cells);
}

/* The records of an imported program are in one file. */
static int read_records(struct report_model *m, const char *folder, struct err *err)
{
    const struct plan_program *p = m->program;
    cJSON *file = NULL;
    const cJSON *r = NULL;
    char *path = path_join(folder, LAYOUT_RECORDS);
    m->results = xcalloc(program_n_tasks(p) + 1, sizeof(*m->results));
    int rc = json_read_file(path, LAYOUT_RECORDS_MAX, &file, err);
    cJSON_ArrayForEach(r, member(file, "records"))
    {
        const char *cell = member_text(r, "cell");
        const char *stage = member_text(r, "stage");
        size_t c = cell == NULL ? INDEX_NONE : program_find_cell(p, cell);
        size_t s = stage == NULL ? INDEX_NONE : program_find_stage(p, stage);
        /* The first record of a task is shown; the verdict has judged them all. */
        if (c != INDEX_NONE && s != INDEX_NONE && m->results[c * p->n_stages + s] == NULL) {
            m->results[c * p->n_stages + s] = json_copy(r);
            m->n_results++;
        }
    }
    cJSON_Delete(file);
    free(path);
    return rc;
}

/* Files list cells in order, so the next one is nearly always the right one. */
size_t report_cell_near(const struct report_model *m, size_t near, const char *name)
{
    const struct plan_program *p = m->program;
    for (size_t i = near; name != NULL && i < near + 2 && i < p->n_cells; i++) {
        if (strcmp(p->cells[i].name, name) == 0) {
            return i;
        }
    }
    return name == NULL ? INDEX_NONE : program_find_cell(p, name);
}

/* Gates by (measure, cell), for constant-time lookup. */
static void index_gates(struct report_model *m)
{
    const struct plan_program *p = m->program;
    const cJSON *gate = NULL;
    size_t cell = 0;
    m->gates = arena_array(&m->arena, p->n_measures * p->n_cells + 1, sizeof(*m->gates));
    cJSON_ArrayForEach(gate, member(m->verdict, "gates"))
    {
        const char *name = member_text(gate, "measure");
        size_t measure = name == NULL ? INDEX_NONE : program_find_measure(p, name);
        size_t found = report_cell_near(m, cell, member_text(gate, "cell"));
        if (measure != INDEX_NONE && found != INDEX_NONE) {
            m->gates[measure * p->n_cells + found] = gate;
            cell = found;
        }
    }
}

/* The rows that fire, for constant-time lookup: a table may have 2^18. */
static void index_rows(struct report_model *m)
{
    const size_t n_rows = m->program->n_rows;
    const cJSON *fired = NULL;
    m->row_fires = arena_array(&m->arena, n_rows + 1, sizeof(*m->row_fires));
    cJSON_ArrayForEach(fired, member(m->verdict, "rows_fired"))
    {
        const bool is_row = cJSON_IsNumber(fired) && fired->valuedouble >= 1 &&
                            fired->valuedouble <= (double)n_rows;
        const size_t row = is_row ? (size_t)fired->valuedouble : 0;
        if (is_row && (double)row == fired->valuedouble) {
            m->row_fires[row - 1] = true;
        }
    }
}

/* What the report cannot do without comes first and fails it. */
int report_model_read(struct report_model *m, const char *folder, struct err *err)
{
    *m = (struct report_model){0};
    arena_init(&m->arena);
    int rc = read_program(m, folder, err);
    if (rc != 0 || (rc = read_verdict(m, folder, err)) != 0 ||
        (rc = read_provenance(m, folder, err)) != 0 || (rc = read_imported(m, folder, err)) != 0 ||
        (rc = read_amendments(m, folder, err)) != 0) {
        return rc;
    }
    read_instruments(m, folder);
    report_apparatus_read(m, folder);
    report_trust_read(&m->trust, folder, m->lock, m->amendments, &m->arena);
    index_gates(m);
    index_rows(m);
    if (m->imported != NULL) {
        return read_records(m, folder, err);
    }
    report_acts_read(&m->acts, &m->arena, folder);
    read_tasks(m, folder);
    return 0;
}

/* Valid after any failure of report_model_read(). */
void report_model_release(struct report_model *m)
{
    report_acts_release(&m->acts);
    if (m->results != NULL) {
        for (size_t i = 0; i < program_n_tasks(m->program); i++) {
            cJSON_Delete(m->results[i]);
        }
        free(m->results);
    }
    curves_release(&m->curves);
    router_courses_release(&m->routers);
    cJSON_Delete(m->verdict);
    cJSON_Delete(m->provenance);
    cJSON_Delete(m->imported);
    cJSON_Delete(m->amendments);
    cJSON_Delete(m->instruments);
    lock_free(m->lock);
    program_free(m->program);
    arena_release(&m->arena);
    *m = (struct report_model){0};
}

/* A member of a result's "metrics" or "facts". */
static const cJSON *result_value(const struct report_model *m, size_t task, const char *group,
                                 const char *name)
{
    return member(member(m->results[task], group), name);
}

/* A value is a number or {"value":…,"n":…,"se":…}. */
static double value_number(const cJSON *v)
{
    return cJSON_IsNumber(v) ? v->valuedouble : member_number(v, "value");
}

/* The same reading of a value as the verdict's. */
struct evidence_value report_metric(const struct report_model *m, size_t cell, size_t stage,
                                    const char *name)
{
    return evidence_value_of(result_value(m, cell * m->program->n_stages + stage, "metrics", name));
}

/* Kept apart from the value, because bounds and reasons are shown as they were written. */
struct metric_words report_metric_words(const struct report_model *m, size_t cell, size_t stage,
                                        const char *name)
{
    const cJSON *v = result_value(m, cell * m->program->n_stages + stage, "metrics", name);
    return (struct metric_words){.why = member_text(v, "why"), .bound = member_text(v, "bound")};
}

/* Facts have no reading by the verdict: the number as it is. */
double report_fact(const struct report_model *m, size_t cell, size_t stage, const char *name,
                   const char **why)
{
    const cJSON *v = result_value(m, cell * m->program->n_stages + stage, "facts", name);
    if (why != NULL) {
        *why = member_text(v, "why");
    }
    return value_number(v);
}

/* The verdict marks such tasks. */
size_t report_n_by_person(const struct report_model *m)
{
    size_t n = 0;
    const cJSON *task = NULL;
    cJSON_ArrayForEach(task, member(m->verdict, "undetermined"))
    {
        n += cJSON_IsTrue(member(task, "by_person")) ? 1 : 0;
    }
    return n;
}

/* NULL for measures without a floor. */
const cJSON *report_gate(const struct report_model *m, size_t measure, size_t cell)
{
    return m->gates[measure * m->program->n_cells + cell];
}
