/*
 * Checks signatures of lock and amendments against the keys that they name, and finds time stamps.
 * Whether a key or an authority is to be trusted is not decided here. Only a signature that is
 * verifiably wrong "fails"; if it cannot be checked, for want of ssh-keygen, the state says so.
 */
#include "truthtable/report/report_trust.h"

#include <stdlib.h>
#include <string.h>

#include "base/files/digest.h"
#include "base/files/file.h"
#include "base/json/json.h"
#include "base/layout/layout.h"
#include "base/xalloc.h"
#include "prereg/amend/amendment.h"
#include "prereg/lock/lock_sign.h"
#include "prereg/lock/signature.h"

/* `signed_text` is what was signed, or rc says why there is no such text. */
static struct signature_seen see(const cJSON *signature, const struct strbuf *signed_text, int rc,
                                 struct err *err, struct arena *a)
{
    struct signature_seen s = {.state = SIGNATURE_NONE};
    struct signature_check check = {0};
    if (!cJSON_IsObject(signature)) {
        return s;
    }
    const cJSON *fingerprint = json_member(signature, "fingerprint");
    s.fingerprint = arena_strdup(a, cJSON_IsString(fingerprint) ? fingerprint->valuestring
                                                                : "a key it does not name");
    if (rc == 0) {
        rc = signature_json_check(signature, signed_text->buf, signed_text->len, NULL, &check, err);
    }
    s.state = rc == 0 ? SIGNATURE_HOLDS : rc == ERR_LOCK ? SIGNATURE_FAILS : SIGNATURE_UNCHECKED;
    s.why = rc == 0 ? NULL : arena_strdup(a, err->msg);
    signature_check_release(&check);
    return s;
}

/* The signature of the lock over its canonical text. */
static struct signature_seen see_lock(const struct lock *lock, struct arena *a)
{
    struct strbuf text = STRBUF_INIT;
    struct err err = {0};
    int rc = lock_text(lock, &text, &err);
    struct signature_seen s = see(json_member(lock->json, "signature"), &text, rc, &err, a);
    strbuf_release(&text);
    return s;
}

/* The same for one amendment. */
static struct signature_seen see_amendment(const cJSON *amendment, struct arena *a)
{
    struct strbuf text = STRBUF_INIT;
    struct err err = {0};
    int rc = amendment_text(amendment, &text, &err);
    struct signature_seen s = see(json_member(amendment, "signature"), &text, rc, &err, a);
    strbuf_release(&text);
    return s;
}

/* Request and response are files beside the lock. */
static void see_stamp(struct report_trust *t, const char *lock_path)
{
    char *request = xasprintf("%s.tsq", lock_path);
    char *response = xasprintf("%s.tsr", lock_path);
    t->stamp_request = t->stamp_request || file_kind_at(request) == FILE_REGULAR;
    t->stamp_response = t->stamp_response || file_kind_at(response) == FILE_REGULAR;
    free(request);
    free(response);
}

/* Equal digests; false if either file cannot be read. */
static bool same_bytes(const char *a, const char *b)
{
    struct digest x;
    struct digest y;
    struct err ignored = {0};
    return digest_file(a, &x, NULL, &ignored) == 0 && digest_file(b, &y, NULL, &ignored) == 0 &&
           digest_equal(&x, &y);
}

/* An authority's answer may come after the program was submitted: it is beside the lock that was
 * submitted, and counts as long as that is the same bytes (as for `preregctl export`). */
static void see_origin_stamp(struct report_trust *t, const char *folder, const char *lock_path)
{
    cJSON *o = NULL;
    const char *grid = NULL;
    struct err ignored = {0};
    char *origin = path_join(folder, LAYOUT_ORIGIN);
    if (file_kind_at(origin) == FILE_REGULAR &&
        json_read_file(origin, LAYOUT_ORIGIN_MAX, &o, &ignored) == 0 &&
        json_get_string(o, "path", &grid, &ignored) == 0) {
        char *there = lock_path_of(grid);
        if (same_bytes(lock_path, there)) {
            see_stamp(t, there);
        }
        free(there);
    }
    cJSON_Delete(o);
    free(origin);
}

/* Every amendment gets an entry, signed or not. */
void report_trust_read(struct report_trust *t, const char *folder, const struct lock *lock,
                       const cJSON *amendments, struct arena *a)
{
    const cJSON *amendment = NULL;
    char *lock_path = path_join(folder, LAYOUT_LOCK);
    *t = (struct report_trust){.lock = see_lock(lock, a)};
    t->amendments =
        arena_array(a, (size_t)cJSON_GetArraySize(amendments) + 1, sizeof(*t->amendments));
    cJSON_ArrayForEach(amendment, amendments)
    {
        t->amendments[t->n_amendments++] = see_amendment(amendment, a);
    }
    see_stamp(t, lock_path);
    see_origin_stamp(t, folder, lock_path);
    free(lock_path);
}
