/*
 * Reads a run record off the store's copy of the journal: whole, or the rows since the last time.
 * Where [run] never changed, nothing of a task can follow from it, and its rows are not parsed.
 */
#include "state/store/run_history.h"

#include <assert.h>
#include <string.h>

#include "base/json/json.h"

struct run_reading {
    struct run_record *record;
    uint32_t program;
    bool changed;     /* there is more than one [run]: every row of a task counts */
    int64_t last_row; /* of those walked */
    int64_t left;     /* rows that this call may still read */
    bool found;       /* another [run], while it was not known that there is one */
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

int run_record_read(struct store *store, uint32_t program, const struct plan_program *p,
                    struct run_record **out, struct err *err)
{
    assert(store != NULL && out != NULL);
    struct run_reading k = {.record = run_record_create(p), .program = program};
    int rc = store_runs(store, program, see_change, &k, err);
    if (rc == 0) {
        rc = store_journal(store, program, 1, take_line, &k, err);
    }
    if (rc != 0) {
        run_record_free(k.record);
        k.record = NULL;
    }
    *out = k.record;
    return rc;
}

/* ---- while it runs ---- */

/* Looks for another [run] alone: until there is one, no row of a task is asked for. */
static void see_row(struct run_reading *k, int64_t seq, const char *text)
{
    k->last_row = seq;
    k->found = strstr(text, "\"event\":\"run_settings\"") != NULL;
}

static int follow_row(void *ctx, int64_t seq, const char *text, struct err *err)
{
    struct run_reading *k = ctx;
    int rc = 0;
    if (k->changed) {
        rc = take_line(k, seq, text, err);
    } else {
        see_row(k, seq, text);
    }
    k->left--;
    return rc != 0 ? rc : k->found || k->left == 0 ? 1 : 0;
}

/* Begins at the first row again, now reading every row of a task. */
static void begin_again(struct run_record **r, const struct plan_program *p, struct run_reading *k)
{
    run_record_free(*r);
    *r = k->record = run_record_create(p);
    k->changed = true;
    k->found = false;
    k->last_row = 0;
}

static int follow(struct store *store, const struct plan_program *p,
                  const struct run_bounds *bounds, struct run_record **r, struct run_reading *k,
                  struct err *err)
{
    struct digest head;
    int64_t n_rows = 0;
    int rc = store_journal_head(store, k->program, &head, &n_rows, err);
    while (rc == 0 && k->left > 0 && k->last_row < n_rows && !run_record_seen(*r)->unread) {
        rc = store_journal(store, k->program, k->last_row + 1, follow_row, k, err);
        if (rc == 0 && k->found) {
            begin_again(r, p, k);
            run_record_seen(*r)->unread = n_rows > bounds->rows;
        }
    }
    run_record_seen(*r)->changed = k->changed;
    run_record_seen(*r)->last_row = k->last_row;
    run_record_seen(*r)->behind = k->last_row < n_rows && !run_record_seen(*r)->unread;
    return rc;
}

int run_record_follow(struct store *store, uint32_t program, const struct plan_program *p,
                      const struct run_bounds *bounds, struct run_record **r, struct err *err)
{
    assert(store != NULL && r != NULL && bounds->step > 0);
    if (*r == NULL) {
        *r = run_record_create(p);
    }
    struct run_reading k = {.record = *r,
                            .program = program,
                            .changed = run_record_seen(*r)->changed,
                            .last_row = run_record_seen(*r)->last_row,
                            .left = bounds->step};
    int rc = follow(store, p, bounds, r, &k, err);
    if (rc != 0) {
        run_record_free(*r);
        *r = NULL;
    }
    return rc;
}

bool run_record_is_behind(struct run_record *r)
{
    assert(r != NULL);
    return run_record_seen(r)->behind;
}

bool run_record_is_known(struct run_record *r)
{
    assert(r != NULL);
    return !run_record_seen(r)->unread && !run_record_seen(r)->behind;
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
