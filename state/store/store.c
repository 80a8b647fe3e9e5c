/* Opens and closes a store: connection, noted heads, healing. The checks of a journal for which a
 * store is opened, and nothing else, are here as well. */
#include "state/store/store.h"

#include "base/layout/layout.h"
#include "state/store/internal.h"

int store_open(const char *state_dir, enum store_mode mode, struct store **out, struct err *err)
{
    assert(state_dir != NULL && out != NULL);
    int rc = store_connect(state_dir, LAYOUT_DATABASE, mode, out, err);
    if (rc != 0 || mode == STORE_READER) {
        return rc;
    }
    if ((rc = heads_open(*out, err)) != 0 || (rc = journal_heal(*out, err)) != 0) {
        store_close(*out);
        *out = NULL;
    }
    return rc;
}

void store_close(struct store *store)
{
    if (store == NULL) {
        return;
    }
    store_rollback(store);
    journal_files_forget(store);
    free(store->journals);
    heads_close(store);
    store_disconnect(store);
}

int store_check_journal(const char *state_dir, uint32_t program, int64_t n_rows, struct err *err)
{
    assert(state_dir != NULL);
    struct store *store = NULL;
    struct journal_file *f = NULL;
    int rc = store_open(state_dir, STORE_READER, &store, err);
    if (rc != 0 || (rc = journal_file_get(store, program, &f, err)) != 0) {
        goto out;
    }
    rc = journal_check(store, program, n_rows, f->path, err);
out:
    store_close(store);
    return rc;
}

int store_check_history(const char *state_dir, uint32_t program, struct err *err)
{
    assert(state_dir != NULL);
    struct store *store = NULL;
    struct journal_file *f = NULL;
    int rc = store_open(state_dir, STORE_READER, &store, err);
    if (rc != 0 || (rc = journal_file_get(store, program, &f, err)) != 0 ||
        (rc = journal_check(store, program, f->committed.n_rows, f->path, err)) != 0) {
        goto out;
    }
    rc = journal_check_end(store, f, err);
out:
    store_close(store);
    return rc;
}
