/* One transaction of rows, and each program's part of it alone. Called by the pump, within a turn
 * of the loop. An `amended` row ends a part of the transaction: the rows behind it may be about
 * tasks that the listener adds to the store for it. What follows for a program whose rows are
 * rejected is the pump's decision. */
#include "daemon/shell/batch.h"

#include <stdlib.h>

#include "base/xalloc.h"

/* The index behind the next `amended` row, or n. */
static size_t part_end(const struct state_row *rows, size_t n, size_t from)
{
    while (from < n && rows[from].kind != ROW_AMENDED) {
        from++;
    }
    return from < n ? from + 1 : from;
}

/* Within a transaction. No file is opened here, so ERR_NOT_FOUND can only mean a row that the store
 * lacks: a fault of the rows. */
static int apply(struct store *store, const struct pump_listener *l, const struct state_row *rows,
                 size_t n, struct err *err)
{
    int rc = 0;
    for (size_t from = 0, to; rc == 0 && from < n; from = to) {
        to = part_end(rows, n, from);
        rc = store_apply(store, rows + from, to - from, err);
        if (rc == 0) {
            rc = l->committing(l->ctx, rows + from, to - from, err);
        }
    }
    if (rc == ERR_NOT_FOUND) {
        err->code = ERR_CORRUPT;
    }
    return rc == 0 ? 0 : err->code;
}

int batch_commit(struct store *store, const struct pump_listener *l, const struct core_out *out,
                 struct err *err)
{
    if (out->n_rows == 0) {
        return 0;
    }
    int rc = store_begin(store, err);
    if (rc != 0) {
        return rc;
    }
    rc = apply(store, l, out->rows, out->n_rows, err);
    if (rc == 0) {
        rc = store_commit(store, err);
    }
    if (rc != 0) {
        store_rollback(store);
    }
    return rc;
}

/* ERR_NOT_FOUND is among them: after apply() it can only come from a folder that is missing. */
bool batch_may_wait(int code)
{
    return code == ERR_IO || code == ERR_NO_SPACE || code == ERR_BUSY || code == ERR_NOT_FOUND;
}

uint32_t *batch_programs(const struct core_out *out, size_t *n)
{
    uint32_t *programs = xcalloc(out->n_rows + 1, sizeof(*programs));
    *n = 0;
    for (size_t i = 0; i < out->n_rows; i++) {
        size_t k = 0;
        while (k < *n && programs[k] != out->rows[i].program) {
            k++;
        }
        programs[k] = out->rows[i].program;
        *n += k == *n;
    }
    return programs;
}

/* Always rolls back. store_check_files() is included because a journal may reject a line that the
 * database would accept. */
int batch_try(struct store *store, const struct pump_listener *l, const struct core_out *out,
              uint32_t program, struct err *err)
{
    struct state_row *own = xcalloc(out->n_rows + 1, sizeof(*own));
    size_t n = 0;
    for (size_t i = 0; i < out->n_rows; i++) {
        if (out->rows[i].program == program) {
            own[n++] = out->rows[i];
        }
    }
    int rc = store_begin(store, err);
    if (rc != 0) {
        goto out;
    }
    rc = apply(store, l, own, n, err);
    if (rc == 0) {
        rc = store_check_files(store, err);
    }
    store_rollback(store);
out:
    free(own);
    return rc;
}

void batch_drop(struct core_out *out, uint32_t program)
{
    size_t n = 0;
    for (size_t i = 0; i < out->n_rows; i++) {
        if (out->rows[i].program != program) {
            out->rows[n++] = out->rows[i];
        }
    }
    out->n_rows = n;
    n = 0;
    for (size_t i = 0; i < out->n_acts; i++) {
        if (out->acts[i].program != program) {
            out->acts[n++] = out->acts[i];
        }
    }
    out->n_acts = n;
}

static bool is_same_attempt(const struct state_row *a, const struct state_row *b)
{
    return a->kind == b->kind && a->task == b->task && a->attempt.no == b->attempt.no;
}

static void move_row(const struct state_row *row, struct core_out *to)
{
    size_t i = to->n_rows;
    while (i > 0 && to->rows[i - 1].task != row->task) {
        i--;
    }
    if (i > 0 && row->kind == ROW_PROGRESS && is_same_attempt(&to->rows[i - 1], row)) {
        to->rows[i - 1] = *row;
        return;
    }
    ARRAY_GROW(to->rows, to->n_rows, to->cap_rows);
    struct state_row *copy = &to->rows[to->n_rows++];
    *copy = *row;
    copy->detail = row->detail == NULL ? NULL : arena_strdup(&to->texts, row->detail);
}

static void move_act(const struct core_act *act, struct core_out *to)
{
    for (size_t i = 0; i < to->n_acts; i++) {
        const struct core_act *a = &to->acts[i];
        if ((act->kind == ACT_TERMINATE || act->kind == ACT_KILL) && a->kind == act->kind &&
            a->task == act->task && a->attempt_no == act->attempt_no) {
            return;
        }
    }
    ARRAY_GROW(to->acts, to->n_acts, to->cap_acts);
    to->acts[to->n_acts++] = *act;
}

void batch_move(struct core_out *out, uint32_t program, struct core_out *to)
{
    size_t n = 0;
    for (size_t i = 0; i < out->n_rows; i++) {
        if (out->rows[i].program == program) {
            move_row(&out->rows[i], to);
        } else {
            out->rows[n++] = out->rows[i];
        }
    }
    out->n_rows = n;
    n = 0;
    for (size_t i = 0; i < out->n_acts; i++) {
        if (out->acts[i].program == program && out->acts[i].kind != ACT_PROBE) {
            move_act(&out->acts[i], to);
        } else {
            out->acts[n++] = out->acts[i];
        }
    }
    out->n_acts = n;
}
