/*
 * Judges records from elsewhere by a program's table, through the same path as the program's own
 * records. Without a lock, the digest of the plan's covered values serves as the root, so that the
 * verdict still names exactly one plan.
 */
#include "truthtable/evaluate/verdict.h"

#include <assert.h>

#include "base/files/digest.h"
#include "base/layout/layout.h"

/* The digest of the canonical form of what a lock would cover. */
static int plan_digest(const struct plan_program *p, char hex[DIGEST_HEX_SIZE], struct err *err)
{
    struct strbuf text = STRBUF_INIT;
    int rc = program_canonical(p, &text, err);
    if (rc == 0) {
        struct digest d = digest_bytes(text.buf, text.len);
        digest_hex(&d, hex);
    }
    strbuf_release(&text);
    return rc;
}

/* Root and head are equal: a replay knows no amendments. */
int replay_run(const struct plan_program *p, const char *root, const char *records_path,
               struct table_verdict *out, struct err *err)
{
    assert(p != NULL && records_path != NULL && out != NULL);
    char hex[DIGEST_HEX_SIZE];
    struct evidence e;
    *out = (struct table_verdict){.outcome = INDEX_NONE};
    evidence_init(&e, p);
    int rc = evidence_read_file(&e, records_path, LAYOUT_RECORDS_MAX, err);
    if (rc == 0 && (root != NULL || (rc = plan_digest(p, hex, err)) == 0)) {
        const char *of = root != NULL ? root : hex;
        rc = verdict_compute(&e, of, of, out, err);
    }
    evidence_release(&e);
    return rc;
}
