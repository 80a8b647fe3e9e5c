/*
 * Finds, for each cell that the plan selects, a cell of the receipt that did the same work in every
 * stage. A cell of the same name comes first, then any other, each taken once: two cells with one
 * result would be copies. What does not match is reported with the first thing that differs.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json/json.h"
#include "base/text.h"
#include "base/xalloc.h"
#include "prereg/program/cell_name.h"
#include "prereg/program/same_work.h"
#include "prereg/reuse/reuse_source.h"
#include "prereg/reuse/work.h"

#define NOTES_MAX ((size_t)20)

/* A cell of the receipt by what it does. */
struct done_cell {
    struct digest key;
    size_t cell;
};

struct matching {
    const struct plan_program *p;
    const struct lock *lock;
    const struct reuse_source *src;
    struct diag *diag;
    struct digest *now;     /* works of the plan's tasks */
    struct digest *then;    /* of the receipt's */
    size_t *stages;         /* per stage: that of the receipt's program, or INDEX_NONE */
    bool *selected;         /* per cell */
    size_t *taken;          /* per cell: the receipt's cell, or INDEX_NONE */
    bool *used;             /* per task of the receipt: its result is taken */
    struct done_cell *done; /* those that can be taken, by key, then by cell */
    size_t n_done;
    size_t n_notes;
};

/* The receipt's task for a stage of this plan in one of its cells: the one that did the work. */
static size_t task_then(const struct matching *m, size_t cell, size_t stage)
{
    const struct plan_program *old = m->src->program;
    return program_worker_of(old, cell * old->n_stages + m->stages[stage]);
}

/* Whether the cell has a task that does its own work: others follow the task that does theirs. */
static bool is_own(const struct matching *m, size_t cell)
{
    bool own = false;
    for (size_t s = 0; s < m->p->n_stages; s++) {
        const size_t task = cell * m->p->n_stages + s;
        own = own || program_worker_of(m->p, task) == task;
    }
    return own;
}

static struct digest key_now(const struct matching *m, size_t cell)
{
    return digest_bytes(&m->now[cell * m->p->n_stages], m->p->n_stages * sizeof(*m->now));
}

/* False when a stage is missing or has no result that can be taken. */
static bool key_then(const struct matching *m, size_t cell, struct digest *out)
{
    struct digest_stream s;
    digest_start(&s);
    for (size_t i = 0; i < m->p->n_stages; i++) {
        if (m->stages[i] == INDEX_NONE) {
            return false;
        }
        const size_t task = task_then(m, cell, i);
        if (!reuse_record_is_usable(&m->src->records[task])) {
            return false;
        }
        digest_add(&s, &m->then[task], sizeof(m->then[task]));
    }
    *out = digest_finish(&s);
    return true;
}

static int by_key(const void *a, const void *b)
{
    const struct done_cell *x = a;
    const struct done_cell *y = b;
    const int order = memcmp(&x->key, &y->key, sizeof(x->key));
    return order != 0 ? order : x->cell < y->cell ? -1 : x->cell > y->cell ? 1 : 0;
}

/* Whether none of the results that the cell would take is taken. Several cells of the receipt may
 * have one result ([[same_work]]). Requires key_then(). */
static bool is_free(const struct matching *m, size_t cell, size_t then)
{
    bool is = true;
    for (size_t s = 0; s < m->p->n_stages; s++) {
        const size_t task = cell * m->p->n_stages + s;
        is = is && (program_worker_of(m->p, task) != task || !m->used[task_then(m, then, s)]);
    }
    return is;
}

/* Whether the cells have the same level of every factor that both programs have: a worker may read
 * levels in task.json, a seed for example, which no parameter shows. */
static bool has_same_levels(const struct matching *m, size_t cell, size_t then)
{
    const struct plan_program *p = m->p;
    const struct plan_program *old = m->src->program;
    bool same = true;
    for (size_t i = 0; i < p->n_factors; i++) {
        const struct plan_level *now = &p->factors[i].levels[p->cells[cell].levels[i]];
        for (size_t k = 0; k < old->n_factors; k++) {
            const struct plan_level *was = &old->factors[k].levels[old->cells[then].levels[k]];
            same = same && (strcmp(p->factors[i].name, old->factors[k].name) != 0 ||
                            strcmp(now->text, was->text) == 0);
        }
    }
    return same;
}

/* The first of the receipt's cells with the key that the cell can take; INDEX_NONE. */
static size_t find_done(const struct matching *m, size_t cell, const struct digest *key)
{
    size_t low = 0;
    size_t high = m->n_done;
    while (low < high) {
        const size_t mid = low + (high - low) / 2;
        if (memcmp(&m->done[mid].key, key, sizeof(*key)) < 0) {
            low = mid + 1;
        } else {
            high = mid;
        }
    }
    while (low < m->n_done && digest_equal(&m->done[low].key, key) &&
           (!is_free(m, cell, m->done[low].cell) || !has_same_levels(m, cell, m->done[low].cell))) {
        low++;
    }
    return low < m->n_done && digest_equal(&m->done[low].key, key) ? m->done[low].cell : INDEX_NONE;
}

static void take(struct matching *m, size_t cell, size_t then)
{
    m->taken[cell] = then;
    for (size_t s = 0; s < m->p->n_stages; s++) {
        const size_t task = cell * m->p->n_stages + s;
        if (program_worker_of(m->p, task) == task) {
            m->used[task_then(m, then, s)] = true;
        }
    }
}

/* Cells of the same name first, so that a renamed one does not take the result of another. */
static void match_all(struct matching *m)
{
    for (size_t pass = 0; pass < 2; pass++) {
        for (size_t c = 0; c < m->p->n_cells; c++) {
            struct digest key;
            if (!m->selected[c] || m->taken[c] != INDEX_NONE || !is_own(m, c)) {
                continue;
            }
            const struct digest own = key_now(m, c);
            const size_t named = program_find_cell(m->src->program, m->p->cells[c].name);
            const bool same = named != INDEX_NONE && key_then(m, named, &key) &&
                              digest_equal(&own, &key) && is_free(m, c, named);
            const size_t found = pass == 0 ? (same ? named : INDEX_NONE) : find_done(m, c, &own);
            if (found != INDEX_NONE) {
                take(m, c, found);
            }
        }
    }
}

/* ---- selecting ---- */

static bool has_levels(const struct plan_program *p, size_t cell, const struct plan_reuse_cells *e)
{
    bool has = true;
    for (size_t i = 0; i < e->n_where; i++) {
        has = has && p->cells[cell].levels[e->where[i].factor] == e->where[i].level;
    }
    return has;
}

static void select_cells(struct matching *m)
{
    const struct plan_reuse *r = &m->p->reuse;
    for (size_t c = 0; c < m->p->n_cells; c++) {
        m->selected[c] = r->matching;
    }
    for (size_t i = 0; i < r->n_cells; i++) {
        const struct plan_reuse_cells *e = &r->cells[i];
        const size_t named = e->name == NULL ? INDEX_NONE : program_match_cell(m->p, e->name);
        if (e->name != NULL && named == INDEX_NONE) {
            diag_add(m->diag, DIAG_ERROR, e->place.line, e->place.column,
                     "reuse.cells: no cell is called \"%.100s\"", e->name);
        }
        for (size_t c = 0; c < m->p->n_cells; c++) {
            m->selected[c] =
                m->selected[c] || c == named || (e->name == NULL && has_levels(m->p, c, e));
        }
    }
}

/* ---- reporting ---- */

/* Why a cell does not match the receipt's cell of that name. */
static void add_reason(const struct matching *m, size_t cell, struct strbuf *out)
{
    const struct plan_program *old = m->src->program;
    const size_t named = program_find_cell(old, m->p->cells[cell].name);
    for (size_t s = 0; s < m->p->n_stages; s++) {
        const char *stage = m->p->stages[s].name;
        if (m->stages[s] == INDEX_NONE) {
            strbuf_addf(out, "the receipt's program has no stage %s", stage);
            return;
        }
        if (named == INDEX_NONE) {
            continue;
        }
        const size_t task = task_then(m, named, s);
        const size_t own = program_worker_of(m->p, cell * m->p->n_stages + s);
        if (!digest_equal(&m->now[own], &m->then[task])) {
            cJSON *now = work_describe(m->p, m->lock, old, own);
            cJSON *then = work_describe(old, m->src->lock, old, task);
            strbuf_addf(out, "stage %s: ", stage);
            if (!work_difference(now, then, out)) {
                strbuf_adds(out, "the stages that it comes after differ");
            }
            cJSON_Delete(now);
            cJSON_Delete(then);
            return;
        }
        if (!reuse_record_is_usable(&m->src->records[task])) {
            strbuf_addf(out, "stage %s: %s", stage,
                        m->src->records[task].reused
                            ? "it was itself reused: name the receipt of the program that ran it"
                            : "the receipt has no result of it: it ended as ");
            strbuf_adds(out, m->src->records[task].reused ? "" : m->src->records[task].end);
            return;
        }
    }
    strbuf_adds(out, named == INDEX_NONE
                         ? "the receipt has no cell of that name or that work"
                         : "another cell takes that result; declare [[same_work]] if they are one");
}

/* One line for a cell that is not reused: an error where it was asked for. */
static void report_unmatched(struct matching *m, size_t cell)
{
    const struct place at = m->p->reuse.place;
    const bool all = m->p->reuse.matching;
    struct strbuf why = STRBUF_INIT;
    if (all && m->n_notes++ >= NOTES_MAX) {
        return;
    }
    add_reason(m, cell, &why);
    diag_add(m->diag, all ? DIAG_NOTE : DIAG_ERROR, at.line, at.column, "reuse: %.120s %s: %.300s",
             m->p->cells[cell].name, all ? "runs" : "cannot be reused", why.buf);
    strbuf_release(&why);
}

/* Whether a task of the cell does its own work and needs the artifacts of one that is reused. */
static bool needs_weights(const struct matching *m, size_t cell, size_t *stage, size_t *of)
{
    const struct plan_program *p = m->p;
    for (size_t s = 0; m->taken[cell] == INDEX_NONE && s < p->n_stages; s++) {
        const size_t task = cell * p->n_stages + s;
        for (size_t i = 0; program_worker_of(p, task) == task && i < p->stages[s].n_after; i++) {
            const size_t from = program_worker_of(p, cell * p->n_stages + p->stages[s].after[i]);
            if (m->taken[from / p->n_stages] != INDEX_NONE) {
                *stage = s;
                *of = from;
                return true;
            }
        }
    }
    return false;
}

/* Whether a result that the cell takes rests on a work that this program does not take of the same
 * cell of the receipt: then the result would be refused beside another model. */
static bool rests_on_other_work(const struct matching *m, size_t cell)
{
    const size_t n = m->p->n_stages;
    for (size_t s = 0; m->taken[cell] != INDEX_NONE && s < n; s++) {
        const size_t of = program_worker_of(m->p, cell * n + s) / n;
        if (of != cell && (m->taken[of] == INDEX_NONE ||
                           task_then(m, m->taken[of], s) != task_then(m, m->taken[cell], s))) {
            return true;
        }
    }
    return false;
}

/* Files that the earlier program left unpinned are in no digest of its works. */
static void warn_of_unpinned(struct matching *m)
{
    const struct place at = m->p->reuse.place;
    for (size_t i = 0; i < m->p->n_pin_files; i++) {
        if (lock_file_digest(m->src->lock, m->p->pin_files[i]) == NULL) {
            diag_add(m->diag, DIAG_WARNING, at.line, at.column,
                     "reuse: %.150s was not pinned by the earlier program: nothing shows that its "
                     "results were made with this file",
                     m->p->pin_files[i]);
        }
    }
}

static void report(struct matching *m)
{
    const struct plan_program *p = m->p;
    const struct place at = p->reuse.place;
    size_t n = 0;
    size_t n_run = 0;
    for (size_t c = 0; c < p->n_cells; c++) {
        size_t stage = 0;
        size_t of = 0;
        n += m->taken[c] != INDEX_NONE ? 1 : 0;
        if (m->selected[c] && m->taken[c] == INDEX_NONE && is_own(m, c)) {
            report_unmatched(m, c);
            n_run++;
        }
        if (needs_weights(m, c, &stage, &of)) {
            diag_add(m->diag, DIAG_ERROR, at.line, at.column,
                     "reuse: %.100s/%.60s runs, and needs the artifacts of %.100s, which is "
                     "reused: a receipt has results alone; list the cells without it",
                     p->cells[c].name, p->stages[stage].name, p->cells[of / p->n_stages].name);
        }
        if (rests_on_other_work(m, c)) {
            diag_add(m->diag, DIAG_ERROR, at.line, at.column,
                     "reuse: %.100s cannot be reused: under [[same_work]] it would rest on another "
                     "work than in the receipt; list the cells without it, or take it out of that "
                     "[[same_work]]",
                     p->cells[c].name);
        }
    }
    if (n > 0) {
        warn_of_unpinned(m);
    }
    if (p->reuse.matching && n_run > NOTES_MAX) {
        diag_add(m->diag, DIAG_NOTE, at.line, at.column, "reuse: and %zu more run",
                 n_run - NOTES_MAX);
    }
    if (n == 0 && m->diag->n_errors == 0) {
        diag_add(m->diag, DIAG_ERROR, at.line, at.column, "reuse: no cell matches the receipt");
    }
    diag_add(
        m->diag, DIAG_NOTE, at.line, at.column,
        "reuse: %zu of %zu %s from the receipt of %.64s, root %.16s: %s known before this lock", n,
        p->n_cells, text_plural((int64_t)n, "cells is taken", "cells are taken"),
        m->src->program->name, m->src->lock->root,
        text_plural((int64_t)n, "its scores were", "their scores were"));
}

/* ---- what the lock pins ---- */

static int add_pin(const struct matching *m, size_t task, cJSON *tasks, struct err *err)
{
    const struct plan_program *p = m->p;
    const struct plan_program *old = m->src->program;
    const size_t then = task_then(m, m->taken[task / p->n_stages], task % p->n_stages);
    struct strbuf text = STRBUF_INIT;
    char hex[DIGEST_HEX_SIZE];
    int rc = reuse_text(m->src, then, &text, NULL, NULL, err);
    if (rc == 0) {
        cJSON *o = json_object();
        char *name = xasprintf("%s/%s", p->cells[task / p->n_stages].name,
                               p->stages[task % p->n_stages].name);
        char *of = xasprintf("%s/%s", old->cells[then / old->n_stages].name,
                             old->stages[then % old->n_stages].name);
        const struct digest accepts = digest_bytes(text.buf, text.len);
        json_put_string(o, "of", of);
        digest_hex(&m->now[task], hex);
        json_put_string(o, "work", hex);
        digest_hex(&m->src->records[then].text, hex);
        json_put_string(o, "sha256", hex);
        digest_hex(&accepts, hex);
        json_put_string(o, "accepts", hex);
        json_put(tasks, name, o);
        free(of);
        free(name);
    }
    strbuf_release(&text);
    return rc;
}

static int build_pins(const struct matching *m, cJSON **out, struct err *err)
{
    const struct plan_program *p = m->p;
    char hex[DIGEST_HEX_SIZE];
    cJSON *o = json_object();
    cJSON *tasks = json_object();
    int rc = 0;
    json_put_string(o, "root", m->src->lock->root);
    digest_hex(&m->src->sums, hex);
    json_put_string(o, "receipt", hex);
    json_put_string(o, "program", m->src->program->name);
    for (size_t t = 0; rc == 0 && t < program_n_tasks(p); t++) {
        if (m->taken[t / p->n_stages] != INDEX_NONE && program_worker_of(p, t) == t) {
            rc = add_pin(m, t, tasks, err);
        }
    }
    json_put(o, "tasks", tasks);
    if (rc != 0) {
        cJSON_Delete(o);
        o = NULL;
    }
    *out = o;
    return rc;
}

/* ---- all of it ---- */

static void matching_init(struct matching *m)
{
    const struct plan_program *p = m->p;
    const struct plan_program *old = m->src->program;
    m->now = xcalloc(program_n_tasks(p), sizeof(*m->now));
    m->then = xcalloc(program_n_tasks(old), sizeof(*m->then));
    m->stages = xcalloc(p->n_stages, sizeof(*m->stages));
    m->selected = xcalloc(p->n_cells, sizeof(*m->selected));
    m->taken = xcalloc(p->n_cells, sizeof(*m->taken));
    m->used = xcalloc(program_n_tasks(old), sizeof(*m->used));
    m->done = xcalloc(old->n_cells, sizeof(*m->done));
    for (size_t s = 0; s < p->n_stages; s++) {
        m->stages[s] = program_find_stage(old, p->stages[s].name);
    }
    for (size_t c = 0; c < p->n_cells; c++) {
        m->taken[c] = INDEX_NONE;
    }
}

static void matching_release(struct matching *m)
{
    free(m->now);
    free(m->then);
    free(m->stages);
    free(m->selected);
    free(m->taken);
    free(m->used);
    free(m->done);
}

int reuse_match(const struct plan_program *p, const struct lock *lock,
                const struct reuse_source *src, struct diag *diag, cJSON **pins, struct err *err)
{
    struct matching m = {.p = p, .lock = lock, .src = src, .diag = diag};
    *pins = NULL;
    matching_init(&m);
    int rc = work_digests(p, lock, src->program, m.now, err);
    if (rc != 0 || (rc = work_digests(src->program, src->lock, src->program, m.then, err)) != 0) {
        goto out;
    }
    for (size_t c = 0; c < src->program->n_cells; c++) {
        struct done_cell *d = &m.done[m.n_done];
        d->cell = c;
        m.n_done += key_then(&m, c, &d->key) ? 1 : 0;
    }
    qsort(m.done, m.n_done, sizeof(*m.done), by_key);
    select_cells(&m);
    match_all(&m);
    report(&m);
    rc = diag_result(diag, err);
    rc = rc == 0 ? build_pins(&m, pins, err) : rc;
out:
    matching_release(&m);
    return rc;
}
