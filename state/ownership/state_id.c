/* Reads and makes state-id. It is claimed, not only written: two daemons of a shared folder that
 * start at the same moment agree on one. */
#include "state/ownership/state_id.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/files/claim.h"
#include "base/files/file.h"
#include "base/files/shared_dir.h"
#include "base/layout/layout.h"
#include "base/xalloc.h"

#define ID_MAX ((size_t)64)

int state_id_read(const char *state, char id[UUID_TEXT_SIZE], struct err *err)
{
    assert(state != NULL && id != NULL);
    struct strbuf text = STRBUF_INIT;
    char *path = path_join(state, LAYOUT_STATE_ID);
    int rc = shared_read(path, ID_MAX, &text, err);
    if (rc == 0 && text.len == UUID_TEXT_SIZE && text.buf[text.len - 1] == '\n') {
        text.buf[text.len - 1] = '\0';
        memcpy(id, text.buf, UUID_TEXT_SIZE);
    }
    if (rc == ERR_RANGE || (rc == 0 && (text.len != UUID_TEXT_SIZE || !uuid_is_valid(id)))) {
        id[0] = '\0';
        rc = err_set(err, ERR_CORRUPT,
                     "%.150s: expected a UUID on one line: restore it (a program's owner.json in "
                     "[run] work has it as \"state_id\")",
                     path);
    }
    strbuf_release(&text);
    free(path);
    return rc;
}

int state_id_have(const char *state, char id[UUID_TEXT_SIZE], struct err *err)
{
    assert(state != NULL && id != NULL);
    int rc = state_id_read(state, id, err);
    if (rc != ERR_NOT_FOUND) {
        return rc;
    }
    char text[UUID_TEXT_SIZE + 1];
    char *path = path_join(state, LAYOUT_STATE_ID);
    uuid_make(id);
    (void)snprintf(text, sizeof(text), "%s\n", id);
    rc = claim_file(path, text, strlen(text), err);
    free(path);
    return rc == ERR_EXISTS ? state_id_read(state, id, err) : rc;
}
