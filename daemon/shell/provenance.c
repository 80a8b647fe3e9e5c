/* Builds provenance.json: attempts with their machines, the history of [run], unblindings and
 * apparatus checks. Everything here may differ between two runs of the same program; nothing here
 * is in verdict.json (invariant 6). What a worker's files do not state is null, never a guess. */
#include "daemon/shell/provenance.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/files/file.h"
#include "base/json/json.h"
#include "base/layout/layout.h"
#include "base/machine/machine.h"
#include "base/xalloc.h"
#include "daemon/program/apparatus.h"
#include "daemon/program/prepare.h"
#include "daemon/program/result.h"
#include "daemon/shim/files.h"
#include "state/journal/line.h"
#include "state/journal/run_record.h"

#define THREADS_MAX 65536 /* a larger number is not believed */

/* ---- from the store ---- */

static int take_attempt(void *ctx, uint32_t task, const struct attempt_row *a, struct err *err)
{
    struct provenance *p = ctx;
    (void)err;
    ARRAY_GROW(p->attempts, p->n_attempts, p->cap_attempts);
    p->attempts[p->n_attempts++] = (struct provenance_attempt){.task = task, .row = *a};
    return 0;
}

/* Collects "TIME: REASON" from the journal's rows of unblindings and takeovers. No other line is
 * parsed. */
static int take_line(void *ctx, int64_t seq, const char *line, struct err *err)
{
    struct provenance *p = ctx;
    cJSON *o = NULL;
    const char *time = "";
    const char *detail = "";
    (void)seq;
    const enum row_kind kind = line_kind(line, strlen(line));
    if (kind != ROW_UNBLINDED && kind != ROW_TAKEN_OVER) {
        return 0;
    }
    int rc = json_parse(line, strlen(line), &o, err);
    if (rc == 0 && json_opt_string(o, "time", &time, err) == 0 &&
        json_opt_string(o, "detail", &detail, err) == 0) {
        char *text = xasprintf("%s: %s", time, detail);
        json_push_string(kind == ROW_UNBLINDED ? p->unblindings : p->takeovers, text);
        free(text);
    }
    cJSON_Delete(o);
    return rc;
}

/* Adds what the store knows of the history; the mirror may know more, from the check of the
 * journal. */
static int take_history(void *ctx, const struct store_program *row, struct err *err)
{
    struct provenance *p = ctx;
    (void)err;
    if (row->no == p->hosted->no) {
        p->unverified_history |= row->unverified_history;
    }
    return 0;
}

/* Copies everything from store and mirror, so that the job that writes needs neither. */
int provenance_collect(struct shell *sh, const struct hosted *h, struct provenance *out,
                       struct err *err)
{
    *out = (struct provenance){.unverified_history = h->unverified,
                               .hosted = h,
                               .bundle = h->bundle,
                               .unblindings = json_array(),
                               .takeovers = json_array()};
    out->timing = h->verdict_timing == NULL ? json_array() : json_copy(h->verdict_timing);
    out->runs = h->run_record == NULL ? json_array() : run_record_json(h->run_record);
    out->n_checks = h->n_checks;
    out->rows = xcalloc(h->n_tasks + h->n_checks, sizeof(*out->rows));
    memcpy(out->rows, h->tasks, (h->n_tasks + h->n_checks) * sizeof(*out->rows));
    int rc = store_attempts(sh->store, h->no, UINT32_MAX, take_attempt, out, err);
    if (rc == 0) {
        rc = store_journal(sh->store, h->no, 1, take_line, out, err);
    }
    if (rc == 0) {
        rc = store_programs(sh->store, take_history, out, err);
    }
    return rc != 0
               ? rc
               : store_journal_head(sh->store, h->no, &out->journal_head, &out->journal_rows, err);
}

void provenance_release(struct provenance *p)
{
    cJSON_Delete(p->unblindings);
    cJSON_Delete(p->takeovers);
    cJSON_Delete(p->timing);
    cJSON_Delete(p->runs);
    free(p->attempts);
    free(p->rows);
    *p = (struct provenance){0};
}

/* ---- where it ran ---- */

static void put_text_or_null(cJSON *o, const char *key, const char *text)
{
    json_put_string(o, key, text == NULL || text[0] == '\0' ? NULL : text);
}

static void put_count_or_null(cJSON *o, const char *key, int64_t v)
{
    if (v < 0) {
        json_put_null(o, key);
    } else {
        json_put_int(o, key, v);
    }
}

static void put_time_or_null(cJSON *o, const char *key, struct wall_time t)
{
    char text[WALL_TEXT_SIZE];
    clock_wall_text(t, text);
    put_text_or_null(o, key, t.ms == 0 ? NULL : text);
}

/* The first line of events.jsonl if it describes the worker's environment; else NULL. */
static cJSON *said_at_start(const char *folder)
{
    char head[4096];
    cJSON *line = NULL;
    struct err ignored;
    char *path = path_join(folder, LAYOUT_EVENTS);
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    ssize_t n = fd < 0 ? 0 : pread(fd, head, sizeof(head), 0);
    const char *end = n > 0 ? memchr(head, '\n', (size_t)n) : NULL;
    if (end != NULL && json_parse(head, (size_t)(end - head), &line, &ignored) == 0) {
        const cJSON *type = json_member(line, "type");
        if (!cJSON_IsString(type) || strcmp(type->valuestring, "environment") != 0) {
            cJSON_Delete(line);
            line = NULL;
        }
    }
    if (fd >= 0) {
        (void)close(fd);
    }
    free(path);
    return line;
}

/* What a worker states of its environment. Texts are NULL and numbers negative if unknown. */
struct stated_environment {
    const char *blas;
    const char *instructions;
    int64_t threads;
    int64_t arithmetic;
};

/* What a worker states replaces what is known; what it does not state stays. */
static void take_said(const cJSON *from, struct stated_environment *said)
{
    const cJSON *blas = json_member(from, "blas");
    const cJSON *set = json_member(from, "instructions");
    int64_t n = 0;
    struct err ignored;
    said->blas = cJSON_IsString(blas) ? blas->valuestring : said->blas;
    said->instructions = cJSON_IsString(set) ? set->valuestring : said->instructions;
    if (json_get_int(from, "threads", 1, THREADS_MAX, &n, &ignored) == 0) {
        said->threads = n;
    }
    if (json_get_int(from, "arithmetic", 1, INT32_MAX, &n, &ignored) == 0) {
        said->arithmetic = n;
    }
}

/* What the worker itself reports of its arithmetic, in its result or else at its start. `threads`
 * is what it was given, for a worker that reports none. */
static void put_said(cJSON *o, const char *folder, int64_t threads)
{
    cJSON *result = NULL;
    struct err ignored;
    struct stated_environment said = {.threads = threads, .arithmetic = -1};
    char *path = path_join(folder, LAYOUT_RESULT);
    cJSON *start = said_at_start(folder);
    if (start != NULL) {
        take_said(start, &said);
    }
    if (json_read_file_lax(path, LAYOUT_RESULT_MAX, &result, &ignored) == 0 &&
        cJSON_IsObject(json_member(result, "facts"))) {
        take_said(json_member(result, "facts"), &said);
    }
    put_text_or_null(o, "blas", said.blas);
    char *core = machine_blas_core(said.blas);
    put_text_or_null(o, "core", core);
    free(core);
    put_count_or_null(o, "threads", said.threads);
    put_count_or_null(o, "arithmetic", said.arithmetic);
    put_text_or_null(o, "instructions", said.instructions);
    cJSON_Delete(start);
    cJSON_Delete(result);
    free(path);
}

/* Only of an attempt that was given some. */
static void put_gpus(cJSON *o, const char *folder, const char *id)
{
    struct gpu_list gpus;
    shim_start_gpus(folder, id, &gpus);
    if (gpus.n > 0) {
        json_put(o, "gpus", gpu_list_json(&gpus));
    }
    gpu_list_release(&gpus);
}

/* Where an attempt ran, from its start.json. All null if that file is gone. */
static void put_place(cJSON *o, const struct provenance *p, const struct provenance_attempt *a)
{
    struct shim_start start;
    struct err err;
    char *folder = hosted_attempt_folder(p->hosted, a->task, a->row.no, a->row.id);
    bool known = shim_start_read(folder, a->row.id, &start, &err) == 0;
    put_text_or_null(o, "host", known ? start.host : NULL);
    put_text_or_null(o, "kernel", known ? start.kernel : NULL);
    put_text_or_null(o, "cpu", known ? start.cpu : NULL);
    put_text_or_null(o, "worker", known ? start.worker : NULL);
    put_said(o, folder, known ? start.threads : -1);
    put_gpus(o, folder, a->row.id);
    free(folder);
}

static cJSON *attempt_json(const struct provenance *p, const struct provenance_attempt *a)
{
    const struct attempt_row *r = &a->row;
    cJSON *o = json_object();
    json_put_int(o, "no", r->no);
    json_put_string(o, "id", r->id);
    put_time_or_null(o, "started", r->started);
    put_time_or_null(o, "ended", r->ended);
    put_text_or_null(o, "cause", cause_name(r->cause));
    put_count_or_null(o, "code", r->code);
    put_count_or_null(o, "signal", r->signal == 0 ? -1 : r->signal);
    put_count_or_null(o, "resumed_from", r->resumed_from);
    put_place(o, p, a);
    put_count_or_null(o, "max_rss_bytes", r->max_rss_bytes);
    put_count_or_null(o, "user_ms", r->user_ms);
    put_count_or_null(o, "system_ms", r->system_ms);
    return o;
}

/* The attempts of one task, from *next on; *next becomes the first one of another task. */
static cJSON *attempts_json(const struct provenance *p, uint32_t task, size_t *next)
{
    cJSON *attempts = json_array();
    for (; *next < p->n_attempts && p->attempts[*next].task == task; ++*next) {
        json_push(attempts, attempt_json(p, &p->attempts[*next]));
    }
    return attempts;
}

/* The limits of [run] under which the task was lost, if other tasks had wider ones. */
static void put_narrower(cJSON *o, const struct provenance *p, uint32_t task)
{
    const struct task_row *row = &p->rows[task];
    struct run_record *record = p->hosted->run_record;
    const char *narrower = record == NULL || row->state != TASK_BLOCKED
                               ? NULL
                               : run_record_narrower(record, task, row->cause);
    if (narrower != NULL) {
        json_put_string(o, "narrower", narrower);
    }
}

/* Task by task; the attempts are sorted the same way, so one pass over them is enough. */
static cJSON *tasks_json(const struct provenance *p, size_t *next)
{
    cJSON *list = json_array();
    const struct plan_program *prog = p->bundle->program;
    for (uint32_t t = 0; t < prog->n_cells * prog->n_stages; t++) {
        cJSON *o = json_object();
        json_put_string(o, "cell", prog->cells[hosted_cell(p->hosted, t)].name);
        json_put_string(o, "stage", prog->stages[hosted_stage(p->hosted, t)].name);
        json_put_string(o, "end", task_state_name(p->rows[t].state));
        put_text_or_null(o, "cause", cause_name(p->rows[t].cause));
        put_narrower(o, p, t);
        json_put(o, "attempts", attempts_json(p, t, next));
        json_push(list, o);
    }
    return list;
}

/* The apparatus checks, whose attempts follow the grid's. Removed checks are included if they had
 * attempts. */
static cJSON *checks_json(const struct provenance *p, size_t *next)
{
    cJSON *list = json_array();
    for (size_t i = 0; i < p->n_checks; i++) {
        uint32_t task = (uint32_t)(p->hosted->n_tasks + i);
        cJSON *attempts = attempts_json(p, task, next);
        cJSON *o = apparatus_json(p->hosted, p->bundle, task, &p->rows[task]);
        if (o == NULL) {
            cJSON_Delete(attempts);
            continue;
        }
        json_put_string(o, "end", task_state_name(p->rows[task].state));
        put_text_or_null(o, "cause", cause_name(p->rows[task].cause));
        json_put(o, "attempts", attempts);
        json_push(list, o);
    }
    return list;
}

/* Off the loop: reads the attempts' files, then writes atomically. */
int provenance_write(const struct provenance *p, const char *path, struct err *err)
{
    const struct plan_program *prog = p->bundle->program;
    char head[DIGEST_HEX_SIZE];
    cJSON *o = json_object();
    cJSON *journal = json_object();
    digest_hex(&p->journal_head, head);
    json_put_string(journal, "head", head);
    json_put_int(journal, "rows", p->journal_rows);
    json_put_int(o, "schema", 1);
    json_put_string(o, "program", prog->name);
    json_put_string(o, "root", p->bundle->lock->root);
    json_put_string(o, "head", p->bundle->lock->head);
    json_put(o, "journal", journal);
    json_put_string(o, "history", p->unverified_history ? "unverified" : "verified");
    json_put_string(o, "assurance", "self-consistent");
    json_put(o, "validity_timing", json_copy(p->timing));
    json_put(o, "run", prog->run.covered == NULL ? json_object() : json_copy(prog->run.covered));
    json_put(o, "runs", json_copy(p->runs));
    json_put(o, "unblindings", json_copy(p->unblindings));
    if (cJSON_GetArraySize(p->takeovers) > 0) { /* a state folder that hosts share */
        json_put(o, "takeovers", json_copy(p->takeovers));
    }
    size_t next = 0;
    json_put(o, "tasks", tasks_json(p, &next));
    json_put(o, "apparatus", checks_json(p, &next));
    int rc = json_write_file(path, o, 0600, err);
    cJSON_Delete(o);
    return rc;
}
