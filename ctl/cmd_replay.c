#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "ctl/ask.h"
#include "ctl/ctl.h"
#include "ctl/load.h"
#include "ctl/out.h"
#include "ctl/verdict_text.h"
#include "truthtable/verdict.h"

#define RECORDS_BYTES_MAX ((size_t)256 << 20)

/* The root of the lock beside the program, or the digest of the plan alone when it is not locked.
 */
static int find_root(const struct program *p, char root[DIGEST_HEX_SIZE], bool *locked,
                     struct err *err)
{
    struct lock *lock = NULL;
    int rc = load_lock(p, &lock, err);
    if (rc != 0) {
        return rc;
    }
    *locked = lock != NULL;
    if (lock != NULL) {
        memcpy(root, lock->root, DIGEST_HEX_SIZE);
        lock_free(lock);
        return 0;
    }
    struct strbuf text = STRBUF_INIT;
    rc = program_canonical(p, &text, err);
    if (rc == 0) {
        struct digest d = digest_bytes(text.buf, text.len);
        digest_hex(&d, root);
    }
    strbuf_release(&text);
    return rc;
}

static int say(const struct ctl_options *o, const cJSON *records, bool locked,
               const struct verdict *verdict, struct err *err)
{
    const char *label = answer_text(records, "label", "imported");
    if (o->json) {
        cJSON *answer = json_object();
        json_put_string(answer, "label", label);
        json_put_bool(answer, "locked", locked);
        json_put_int(answer, "exit_code", (int64_t)verdict_exit_code(verdict));
        json_put(answer, "verdict", json_copy(verdict->json));
        int rc = out_json(answer, err);
        cJSON_Delete(answer);
        return rc;
    }
    struct term t = term_of_stdout();
    struct strbuf sb = STRBUF_INIT;
    strbuf_addf(&sb, "%s records from %s; nothing was executed%s\n\n", label, o->args[1],
                locked ? "" : "; the program is not locked");
    verdict_text(&sb, &t, verdict->json);
    out_text(&sb);
    strbuf_release(&sb);
    return 0;
}

static int replay(const struct ctl_options *o, const struct program *p, enum exit_code *code,
                  struct err *err)
{
    char root[DIGEST_HEX_SIZE];
    bool locked = false;
    cJSON *records = NULL;
    struct evidence evidence;
    struct verdict verdict;
    evidence_init(&evidence, p);
    int rc = find_root(p, root, &locked, err);
    rc = rc == 0 ? json_read_file(o->args[1], RECORDS_BYTES_MAX, &records, err) : rc;
    rc = rc == 0 ? evidence_read_records(&evidence, records, err) : rc;
    if (rc == 0) {
        rc = verdict_compute(&evidence, root, root, &verdict, err);
        if (rc == 0) {
            *code = verdict_exit_code(&verdict);
            rc = say(o, records, locked, &verdict, err);
            verdict_release(&verdict);
        }
    }
    evidence_release(&evidence);
    cJSON_Delete(records);
    return rc;
}

int cmd_replay(const struct ctl_options *o, enum exit_code *code, struct err *err)
{
    struct diag diag;
    struct program *p = NULL;
    diag_init(&diag, o->args[0]);
    int rc = load_program(o->args[0], false, &diag, &p, err);
    rc = rc == 0 ? replay(o, p, code, err) : rc;
    program_free(p);
    diag_release(&diag);
    return rc;
}
