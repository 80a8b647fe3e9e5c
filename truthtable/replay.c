#include "truthtable/replay.h"

#include "base/digest.h"
#include "base/json.h"

static int plan_digest(const struct program *p, char hex[DIGEST_HEX_SIZE], struct err *err)
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

int replay_run(const struct program *p, const char *root, const char *records_path,
               struct verdict *out, struct err *err)
{
    char hex[DIGEST_HEX_SIZE];
    struct evidence e;
    cJSON *records = NULL;
    *out = (struct verdict){.outcome = INDEX_NONE};
    evidence_init(&e, p);
    int rc = json_read_file(records_path, REPLAY_RECORDS_BYTES_MAX, &records, err);
    if (rc == ERR_SYNTAX) { /* Python writes NaN, which is no value and no reason to refuse all */
        rc = json_read_file_lax(records_path, REPLAY_RECORDS_BYTES_MAX, &records, err);
    }
    if (rc == 0) {
        rc = evidence_read_records(&e, records, err);
        if (rc != 0) {
            (void)err_wrap(err, "%s", records_path);
        }
    }
    if (rc == 0 && root == NULL) {
        rc = plan_digest(p, hex, err);
        root = hex;
    }
    if (rc == 0) {
        rc = verdict_compute(&e, root, root, out, err);
    }
    cJSON_Delete(records);
    evidence_release(&e);
    return rc;
}
