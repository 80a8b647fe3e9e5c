#include "base/json.h"
#include "state/store/internal.h"

static int put_record(struct store *store, const int64_t key[3], const cJSON *member,
                      struct err *err)
{
    sqlite3_stmt *stmt = NULL;
    struct strbuf value = STRBUF_INIT;
    int rc = store_stmt(store, STMT_RECORD_INSERT, &stmt, err);
    if (rc == 0) {
        rc = json_canonical(member, &value, err);
    }
    if (rc == 0) {
        for (int i = 0; i < 3; i++) {
            sql_bind_int(stmt, i + 1, key[i]);
        }
        sql_bind_text(stmt, 4, member->string);
        sql_bind_text(stmt, 5, value.buf);
        rc = sql_run(stmt, NULL, err);
    }
    strbuf_release(&value);
    return rc;
}

static int put_group(struct store *store, const int64_t key[3], const cJSON *group, struct err *err)
{
    const cJSON *member = NULL;
    int rc = 0;
    if (!cJSON_IsObject(group)) {
        return 0;
    }
    cJSON_ArrayForEach(member, group)
    {
        rc = put_record(store, key, member, err);
        if (rc != 0) {
            break;
        }
    }
    return rc;
}

/* Invariant 8: a sealed result has no values here before the scores are open. */
static int check_open(struct store *store, uint32_t program, uint32_t task, bool *done,
                      struct err *err)
{
    sqlite3_stmt *stmt = NULL;
    bool row = false;
    int rc = store_stmt(store, STMT_RESULT_GET, &stmt, err);
    if (rc != 0) {
        return rc;
    }
    sql_bind_int(stmt, 1, program);
    sql_bind_int(stmt, 2, task);
    rc = sql_step(stmt, &row, err);
    if (rc != 0 || !row) {
        return rc != 0 ? rc : err_set(err, ERR_NOT_FOUND, "task %u has no result", task);
    }
    bool sealed = sql_col_int(stmt, 0) != 0 && sql_col_int(stmt, 1) == 0;
    *done = sql_col_int(stmt, 2) != 0;
    (void)sqlite3_reset(stmt);
    return sealed ? err_set(err, ERR_REFUSED, "the scores of task %u are sealed", task) : 0;
}

int store_put_result(struct store *store, uint32_t program, uint32_t task, const cJSON *result,
                     struct err *err)
{
    assert(store->open_transaction);
    sqlite3_stmt *stmt = NULL;
    bool done = false;
    int64_t key[3] = {program, task, 0};
    int rc = check_open(store, program, task, &done, err);
    if (rc != 0 || done) {
        return rc;
    }
    rc = put_group(store, key, json_member(result, "metrics"), err);
    if (rc == 0) {
        key[2] = 1;
        rc = put_group(store, key, json_member(result, "facts"), err);
    }
    if (rc == 0) {
        rc = store_stmt(store, STMT_RESULT_MARK, &stmt, err);
    }
    if (rc != 0) {
        return rc;
    }
    sql_bind_int(stmt, 1, program);
    sql_bind_int(stmt, 2, task);
    return sql_run(stmt, NULL, err);
}

int store_accepted(struct store *store, uint32_t program, uint32_t task, struct store_accepted *out,
                   bool *found, struct err *err)
{
    sqlite3_stmt *stmt = NULL;
    *found = false;
    int rc = store_stmt(store, STMT_RESULT_ACCEPTED, &stmt, err);
    if (rc != 0) {
        return rc;
    }
    sql_bind_int(stmt, 1, program);
    sql_bind_int(stmt, 2, task);
    rc = sql_step(stmt, found, err);
    if (rc == 0 && *found) {
        out->attempt_no = (uint32_t)sql_col_int(stmt, 0);
        (void)snprintf(out->attempt_id, sizeof(out->attempt_id), "%s", sql_col_text(stmt, 1));
        rc = digest_from_hex(sql_col_text(stmt, 2), &out->digest, err);
    }
    (void)sqlite3_reset(stmt);
    return rc;
}
