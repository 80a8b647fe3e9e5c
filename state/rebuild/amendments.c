/* Amendments that a crash cut short, before the program is read. */
#include <stdlib.h>
#include <string.h>

#include "base/files/file.h"
#include "base/json/json.h"
#include "base/layout/layout.h"
#include "base/log.h"
#include "prereg/amend/amend_heal.h"
#include "state/rebuild/internal.h"

/* The head that the journal names last; whether it chains is checked when its rows are replayed.
 * False: it cannot be read. */
static bool journal_head(const struct rebuilding *r, const char *root, char head[DIGEST_HEX_SIZE])
{
    struct err ignored;
    struct journal_cursor cursor;
    const char *text = NULL;
    size_t len = 0;
    char *path = path_join(r->folder, LAYOUT_JOURNAL);
    int rc = journal_cursor_open(&cursor, path, &ignored);
    memcpy(head, root, DIGEST_HEX_SIZE);
    while (rc == 0) {
        rc = journal_cursor_next(&cursor, &text, &len, &ignored);
        if (rc != 0 || text == NULL) {
            break;
        }
        if (line_kind(text, len) == ROW_AMENDED) {
            line_amended_head(text, len, head);
        }
    }
    journal_cursor_release(&cursor);
    free(path);
    return rc == 0;
}

void rebuild_heal_amendments(const struct rebuilding *r)
{
    assert(r != NULL);
    struct lock *lock = NULL;
    struct err why;
    char head[DIGEST_HEX_SIZE];
    char *path = path_join(r->folder, LAYOUT_LOCK);
    if (lock_read(path, &lock, &why) == 0 && journal_head(r, lock->root, head) &&
        amendments_heal(r->folder, head, &why) != 0) {
        log_warn("%s: %s", r->id, why.msg);
    }
    lock_free(lock);
    free(path);
}
