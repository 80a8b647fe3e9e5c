/* The accepted results of tasks: which attempt left one, and its digest. What is in a result is in
 * the cell's folder alone. */
#include "state/store/apparatus.h"
#include "state/store/internal.h"

int store_accepted(struct store *store, uint32_t program, uint32_t task, struct store_accepted *out,
                   bool *found, struct err *err)
{
    assert(store != NULL && out != NULL && found != NULL);
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

int store_result_digest(struct store *store, uint32_t program, uint32_t task, struct digest *out,
                        bool *found, struct err *err)
{
    assert(store != NULL && out != NULL && found != NULL);
    sqlite3_stmt *stmt = NULL;
    *found = false;
    int rc = sql_prepare(store->db, "SELECT digest FROM results WHERE program=?1 AND task=?2",
                         &stmt, err);
    if (rc == 0) {
        sql_bind_int(stmt, 1, program);
        sql_bind_int(stmt, 2, task);
        rc = sql_step(stmt, found, err);
    }
    if (rc == 0 && *found) {
        rc = digest_from_hex(sql_col_text(stmt, 0), out, err);
    }
    (void)sqlite3_finalize(stmt);
    return rc;
}
