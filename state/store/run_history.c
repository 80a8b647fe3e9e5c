/*
 * Reads a run record off the store's copy of the journal: whole, or the rows since the last time.
 * Where [run] never changed, nothing of a task can follow from it, and its rows are not parsed.
 */
#include "state/store/run_history.h"

#include <assert.h>
#include <string.h>

#include "base/json.h"

struct run_reading {
    struct run_record *record;
    uint32_t program;
    bool changed;     /* there is more than one [run]: every row of a task counts */
    int64_t last_row; /* of those walked */
};

static int take_line(void *ctx, int64_t seq, const char *text, struct err *err)
{
    struct run_reading *k = ctx;
    k->last_row = seq;
    return run_record_take_line(k->record, seq, text, k->changed, err);
}

static int see_change(void *ctx, int64_t seq, const char *run, struct err *err)
{
    struct run_reading *k = ctx;
    (void)run;
    (void)err;
    k->changed |= seq > 1;
    return 0;
}

int run_record_read(struct store *store, uint32_t program, const struct program *p,
                    struct run_record **out, struct err *err)
{
    assert(store != NULL && out != NULL);
    struct run_reading k = {.record = run_record_create(p), .program = program};
    int rc = store_runs(store, program, see_change, &k, err);
    rc = rc == 0 ? store_journal(store, program, 1, take_line, &k, err) : rc;
    if (rc != 0) {
        run_record_free(k.record);
        k.record = NULL;
    }
    *out = k.record;
    return rc;
}

/* ---- while it runs ---- */

static int see_row(void *ctx, int64_t seq, const char *text, struct err *err)
{
    struct run_reading *k = ctx;
    (void)err;
    k->last_row = seq;
    k->changed |= strstr(text, "\"event\":\"run_settings\"") != NULL;
    return 0;
}

/* From the first row on: nothing was read yet, or no more was than that [run] never changed. */
static int read_again(struct store *store, const struct program *p, int64_t rows_max,
                      struct run_reading *k, struct err *err)
{
    struct digest head;
    int64_t n_rows = 0;
    k->record = run_record_create(p);
    k->changed = false;
    int rc = store_runs(store, k->program, see_change, k, err);
    rc = rc == 0 ? store_journal_head(store, k->program, &head, &n_rows, err) : rc;
    if (rc == 0 && k->changed && n_rows <= rows_max) {
        return store_journal(store, k->program, 1, take_line, k, err);
    }
    run_record_seen(k->record)->unread = k->changed;
    k->last_row = n_rows;
    return rc;
}

int run_record_follow(struct store *store, uint32_t program, const struct program *p,
                      int64_t rows_max, struct run_record **r, struct err *err)
{
    assert(store != NULL && r != NULL);
    struct run_record *old = *r;
    struct run_record_seen seen = old == NULL ? (struct run_record_seen){0} : *run_record_seen(old);
    struct run_reading k = {
        .record = old, .program = program, .changed = seen.changed, .last_row = seen.last_row};
    int rc = 0;
    if (seen.unread) {
        return 0;
    }
    if (old != NULL) {
        rc = store_journal(store, program, seen.last_row + 1, seen.changed ? take_line : see_row,
                           &k, err);
    }
    if (rc == 0 && (old == NULL || k.changed != seen.changed)) {
        rc = read_again(store, p, rows_max, &k, err);
    }
    if (k.record != old) {
        run_record_free(old);
    }
    if (rc != 0) {
        run_record_free(k.record);
        *r = NULL;
        return rc;
    }
    run_record_seen(k.record)->changed = k.changed;
    run_record_seen(k.record)->last_row = k.last_row;
    *r = k.record;
    return 0;
}

bool run_record_is_known(struct run_record *r)
{
    assert(r != NULL);
    return !run_record_seen(r)->unread;
}

int run_record_read_list(struct store *store, uint32_t program, cJSON **out, struct err *err)
{
    assert(store != NULL && out != NULL);
    struct run_reading k = {.program = program};
    bool any = false;
    *out = NULL;
    int rc = store_runs(store, program, see_change, &k, err);
    if (rc != 0 || !k.changed) {
        return rc;
    }
    k.changed = false; /* which of them had what is not asked */
    k.record = run_record_create(NULL);
    rc = store_journal(store, program, 1, take_line, &k, err);
    cJSON *list = run_record_json(k.record);
    const cJSON *run = NULL;
    cJSON_ArrayForEach(run, list)
    {
        any = any || json_member(run, "blocked")->valuedouble > 0;
    }
    if (rc == 0 && any) {
        *out = list;
    } else {
        cJSON_Delete(list);
    }
    run_record_free(k.record);
    return rc;
}
