/* The amended and signed side of a made-up program's folder. */
#include <string.h>

#include "base/diag.h"
#include "base/files/digest.h"
#include "base/files/file.h"
#include "base/json/json.h"
#include "base/layout/layout.h"
#include "prereg/amend/amend_known.h"
#include "prereg/amend/amendment.h"
#include "prereg/load/program_load.h"
#include "prereg/program/program.h"
#include "tests/unit/truthtable/report/fixture.h"

static int replace_in_file(const char *path, const char *from, const char *to, struct err *err)
{
    struct strbuf text = STRBUF_INIT;
    struct strbuf out = STRBUF_INIT;
    int rc = file_read(path, (size_t)1 << 20, &text, err);
    const char *at = rc == 0 ? strstr(text.buf, from) : NULL;
    if (rc == 0 && at == NULL) {
        rc = err_set(err, ERR_INVALID, "%s has no %s", path, from);
    }
    if (rc == 0) {
        strbuf_add(&out, text.buf, (size_t)(at - text.buf));
        strbuf_adds(&out, to);
        strbuf_adds(&out, at + strlen(from));
        rc = file_write_atomic(path, out.buf, out.len, 0644, err);
    }
    strbuf_release(&text);
    strbuf_release(&out);
    return rc;
}

/* What the changed text covers, as a lock of its own would. */
static int relock(const char *path, const struct lock *old, struct lock **out, struct err *err)
{
    struct diag diag;
    struct plan_program *p = NULL;
    diag_init(&diag, path);
    int rc = program_load(path, &p, &diag, err);
    if (rc == 0) {
        rc = lock_build(p, old->describe, NULL, out, err);
    }
    program_free(p);
    diag_release(&diag);
    return rc;
}

static cJSON *changes_of(const struct lock *old, const struct lock *now, const cJSON *known,
                         bool post_hoc)
{
    cJSON *changes = amendment_changes(old->locked, now->locked);
    cJSON *change = NULL;
    cJSON_ArrayForEach(change, changes)
    {
        json_put_string(change, "section", "instruments");
        json_put_bool(change, "post_hoc", post_hoc || amend_is_known(known, change));
    }
    return changes;
}

/* Takes the two lists over. */
static int write_amendment(const char *folder, const struct lock *old, cJSON *const lists[2],
                           const char *level, struct err *err)
{
    struct strbuf text = STRBUF_INIT;
    char hex[DIGEST_HEX_SIZE];
    char *amendments = path_join(folder, LAYOUT_AMENDMENTS);
    char *path = amendment_file(amendments, 1, "json");
    cJSON *o = json_object();
    json_put_int(o, "schema", AMENDMENT_SCHEMA);
    json_put_int(o, "number", 1);
    json_put_string(o, "program", "below_the_floor");
    json_put_string(o, "root", old->root);
    json_put_string(o, "previous", old->root);
    json_put_string(o, "time", "2026-11-21T03:30:00.000Z");
    json_put_string(o, "level", level);
    json_put_string(o, "reason", "a <slip> of the pen");
    json_put(o, "changes", lists[0]);
    if (lists[1] != NULL) {
        json_put(o, AMENDMENT_KNOWN, lists[1]);
    }
    json_put_null(o, "signature");
    int rc = amendment_text(o, &text, err);
    if (rc == 0) {
        struct digest head = digest_bytes(text.buf, text.len);
        digest_hex(&head, hex);
        json_put_string(o, "head", hex);
        rc = dir_make(amendments, 0755, err);
    }
    if (rc == 0) {
        rc = json_write_file(path, o, 0644, err);
    }
    cJSON_Delete(o);
    strbuf_release(&text);
    free(path);
    free(amendments);
    return rc;
}

int fixture_amend(const char *folder, const struct fixture_change *change, struct err *err)
{
    char *path = path_join(folder, "grid.toml");
    char *lock_path = lock_path_of(path);
    struct lock *old = NULL;
    struct lock *now = NULL;
    int rc = lock_read(lock_path, &old, err);
    if (rc == 0) {
        rc = replace_in_file(path, change->from, change->to, err);
    }
    if (rc == 0) {
        rc = relock(path, old, &now, err);
    }
    cJSON *known = NULL;
    if (rc == 0 && change->known != NULL) {
        rc = json_parse(change->known, strlen(change->known), &known, err);
    }
    if (rc == 0) {
        cJSON *const lists[] = {changes_of(old, now, known, strcmp(change->level, "seen") == 0),
                                known};
        rc = write_amendment(folder, old, lists, change->level, err);
    }
    lock_free(old);
    lock_free(now);
    free(lock_path);
    free(path);
    return rc;
}

/* A member of the lock outside what its root covers, or of provenance.json. */
int fixture_put(const char *folder, const char *file, const char *key, const char *json,
                struct err *err)
{
    cJSON *tree = NULL;
    cJSON *value = NULL;
    char *path = path_join(folder, file);
    int rc = json_read_file(path, (size_t)1 << 24, &tree, err);
    if (rc == 0) {
        rc = json_parse(json, strlen(json), &value, err);
    }
    if (rc == 0) {
        cJSON_DeleteItemFromObjectCaseSensitive(tree, key);
        json_put(tree, key, value);
        rc = json_write_file(path, tree, 0644, err);
    }
    cJSON_Delete(tree);
    free(path);
    return rc;
}
