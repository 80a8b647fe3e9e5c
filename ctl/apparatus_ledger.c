/*
 * The ledger's entries of one program. The journal says which attempts were judged, when, and in
 * which words; the attempt's own files have the numbers, the worker and the machine. The numbers
 * are put into words again and compared with the journal's, whose chain is followed: an entry is
 * never the word of an edited file alone.
 */
#include "ctl/apparatus_ledger.h"

#include <stdlib.h>
#include <string.h>

#include "base/files/file.h"
#include "base/json/json.h"
#include "base/layout/attempt_name.h"
#include "base/layout/layout.h"
#include "base/text.h"
#include "base/xalloc.h"
#include "prereg/amend/amendment.h"
#include "prereg/program/apparatus_name.h"
#include "prereg/task/apparatus_results.h"
#include "state/journal/cursor.h"
#include "state/rows.h"

struct ledger {
    const char *folder;
    const char *id; /* the folder's name */
    const struct lock *lock;
    cJSON *list;
    cJSON *results; /* of each check, once asked for, by name */
};

static const char *text_of(const cJSON *o, const char *key)
{
    const cJSON *v = json_member(o, key);
    return cJSON_IsString(v) ? v->valuestring : "";
}

/* Whether a row says that a check's attempt was judged. */
static bool is_judged(const cJSON *line)
{
    const cJSON *task = json_member(line, "task");
    return strcmp(text_of(line, "event"), row_kind_name(ROW_ATTEMPT_ENDED)) == 0 &&
           json_member(task, "apparatus") != NULL &&
           (strcmp(text_of(task, "state"), task_state_name(TASK_DONE)) == 0 ||
            strcmp(text_of(task, "cause"), cause_name(CAUSE_APPARATUS)) == 0);
}

/* The result of that attempt, as its files have it; NULL: none. */
static const cJSON *find_result(struct ledger *l, const char *check, int64_t attempt)
{
    const cJSON *r = NULL;
    if (json_member(l->results, check) == NULL) {
        char *folder = layout_check(l->folder, check);
        json_put(l->results, check, apparatus_results(l->lock, check, folder));
        free(folder);
    }
    cJSON_ArrayForEach(r, json_member(l->results, check))
    {
        int64_t no = 0;
        struct err ignored;
        if (json_get_int(r, "attempt", 1, UINT32_MAX, &no, &ignored) == 0 && no == attempt) {
            return r;
        }
    }
    return NULL;
}

/* What ran, and where: exit.json repeats start.json, and is there once the attempt has ended. */
static void put_place(cJSON *entry, const char *attempt_folder)
{
    static const char *const keys[] = {"worker", "host", "kernel", "cpu"};
    static const char *const names[] = {LAYOUT_EXIT, LAYOUT_START};
    struct err ignored;
    cJSON *o = NULL;
    for (size_t i = 0; json_member(o, "host") == NULL && i < ARRAY_LEN(names); i++) {
        char *path = path_join(attempt_folder, names[i]);
        cJSON_Delete(o);
        o = NULL;
        if (file_kind_at(path) == FILE_REGULAR &&
            json_read_file(path, LAYOUT_START_MAX, &o, &ignored) != 0) {
            o = NULL;
        }
        free(path);
    }
    for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
        const char *text = text_of(o, keys[i]);
        json_put_string(entry, keys[i], text[0] == '\0' ? NULL : text);
    }
    cJSON_Delete(o);
}

/* A member of the result, or null. */
static void copy_member(cJSON *entry, const char *key, const cJSON *from, const char *member)
{
    const cJSON *v = json_member(from, member);
    json_put(entry, key, v == NULL ? cJSON_CreateNull() : json_copy(v));
}

static cJSON *entry_of(const struct ledger *l, const cJSON *line, const cJSON *r)
{
    static const char *const copied[] = {"expected", "within", "again", "first", "holds", "text"};
    const char *check = text_of(json_member(line, "task"), "apparatus");
    cJSON *o = json_object();
    char *name = xstrndup(check, apparatus_name_length(check));
    json_put_string(o, "program", text_of(json_member(l->lock->plan, "program"), "name"));
    json_put_string(o, "id", l->id);
    json_put_string(o, "check", name);
    json_put_string(o, "run", apparatus_name_is_end(check) ? "after" : "before");
    copy_member(o, "attempt", r, "attempt");
    copy_member(o, "amendment", r, "amendment");
    json_put_string(o, "time", text_of(line, "time"));
    copy_member(o, "metric", r, "metric");
    copy_member(o, "score", r, "value");
    for (size_t i = 0; i < ARRAY_LEN(copied); i++) {
        copy_member(o, copied[i], r, copied[i]);
    }
    free(name);
    return o;
}

/* One row of the journal. Its text is missing where the journal was made from files after its own
 * was lost. */
static int take_row(void *ctx, const struct journal_row *row, struct err *err)
{
    struct ledger *l = ctx;
    const cJSON *line = row->line.json;
    const char *check = text_of(json_member(line, "task"), "apparatus");
    const char *said = text_of(line, "detail");
    const cJSON *attempt = json_member(line, "attempt");
    int64_t no = 0;
    if (!is_judged(line)) {
        return 0;
    }
    int rc = json_get_int(attempt, "no", 1, UINT32_MAX, &no, err);
    if (rc != 0) {
        return rc;
    }
    char shown[80]; /* from a journal that may have been edited; it becomes part of a path, too */
    text_copy_line(shown, sizeof(shown), check);
    char *base = xstrndup(check, apparatus_name_length(check));
    const bool is_name = text_is_name(base);
    free(base);
    const cJSON *r = is_name ? find_result(l, check, no) : NULL;
    if (r == NULL) {
        return err_set(err, ERR_LOCK, "apparatus/%s: attempt %lld has no result in its files",
                       shown, (long long)no);
    }
    if (said[0] != '\0' && strcmp(said, text_of(r, "text")) != 0) {
        return err_set(err, ERR_LOCK,
                       "apparatus/%s: attempt %lld: its files do not say what the journal says",
                       shown, (long long)no);
    }
    const char *id = text_of(attempt, "id");
    cJSON *entry = entry_of(l, line, r);
    char *folder = layout_check(l->folder, check);
    char *place = uuid_is_valid(id) ? attempt_path(folder, (uint32_t)no, id) : xstrdup(folder);
    put_place(entry, place);
    json_push(l->list, entry);
    free(place);
    free(folder);
    return 0;
}

int apparatus_ledger_add(const char *folder, cJSON *list, struct err *err)
{
    struct lock *lock = NULL;
    struct journal_cursor cursor;
    struct journal_chain chain = {0};
    int rc = lock_read_amended(folder, &lock, err);
    if (rc != 0) {
        return rc;
    }
    struct ledger l = {.folder = folder,
                       .id = path_name(folder),
                       .lock = lock,
                       .list = list,
                       .results = json_object()};
    char *path = path_join(folder, LAYOUT_JOURNAL);
    rc = journal_cursor_open(&cursor, path, err);
    if (rc == 0) {
        rc = journal_replay(&cursor, &chain, take_row, &l, err);
    }
    journal_cursor_release(&cursor);
    cJSON_Delete(l.results);
    free(path);
    lock_free(lock);
    return rc;
}

static int by_time(const void *a, const void *b)
{
    static const char *const keys[] = {"time", "program", "id", "check"};
    const cJSON *x = *(cJSON *const *)a;
    const cJSON *y = *(cJSON *const *)b;
    int order = 0;
    for (size_t i = 0; order == 0 && i < ARRAY_LEN(keys); i++) {
        order = strcmp(text_of(x, keys[i]), text_of(y, keys[i]));
    }
    return order;
}

void apparatus_ledger_sort(cJSON *list)
{
    const size_t n = (size_t)cJSON_GetArraySize(list);
    cJSON **entries = xcalloc(n + 1, sizeof(cJSON *));
    for (size_t i = 0; i < n; i++) {
        entries[i] = cJSON_DetachItemFromArray(list, 0);
    }
    qsort(entries, n, sizeof(cJSON *), by_time);
    for (size_t i = 0; i < n; i++) {
        json_push(list, entries[i]);
    }
    free(entries);
}
