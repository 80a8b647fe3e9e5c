#include "truthtable/replay.h"

#include <math.h>
#include <string.h>

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

static const char *text_of(const cJSON *o, const char *key)
{
    const cJSON *m = json_member(o, key);
    return cJSON_IsString(m) ? m->valuestring : NULL;
}

static void print_numbers(const cJSON *list, struct strbuf *out)
{
    const cJSON *n = NULL;
    const char *between = "";
    cJSON_ArrayForEach(n, list)
    {
        strbuf_addf(out, "%s%g", between, n->valuedouble);
        between = ", ";
    }
}

/* Gates come measure by measure. */
static void print_best_gates(const cJSON *gates, struct strbuf *out)
{
    const cJSON *best = NULL;
    const cJSON *g = NULL;
    cJSON_ArrayForEach(g, gates)
    {
        const cJSON *next = g->next;
        if (cJSON_IsNumber(json_member(g, "z")) &&
            (best == NULL ||
             json_member(g, "z")->valuedouble > json_member(best, "z")->valuedouble)) {
            best = g;
        }
        if (next != NULL && strcmp(text_of(next, "measure"), text_of(g, "measure")) == 0) {
            continue;
        }
        if (best == NULL) {
            strbuf_addf(out, "  %-12s no score\n", text_of(g, "measure"));
        } else {
            strbuf_addf(out, "  %-12s best cell %.4f, floor %g: %+.1f sigma\n",
                        text_of(best, "measure"), json_member(best, "score")->valuedouble,
                        json_member(best, "floor")->valuedouble,
                        json_member(best, "z")->valuedouble);
        }
        best = NULL;
    }
}

void replay_print(const struct verdict *v, struct strbuf *out)
{
    const cJSON *j = v->json;
    const char *label = text_of(j, "records");
    const char *title = text_of(j, "title");
    strbuf_addf(out, "%s: outcome %s", text_of(j, "program"), text_of(j, "outcome"));
    strbuf_addf(out, " (records: %s)\n", label == NULL ? "executed" : label);
    if (title != NULL) {
        strbuf_addf(out, "  %s\n", title);
    }
    if (v->why != NULL) {
        strbuf_addf(out, "  %s\n", v->why);
    }
    strbuf_adds(out, "  rows fired: ");
    print_numbers(json_member(j, "rows_fired"), out);
    strbuf_adds(out, "\n");
    const cJSON *c = NULL;
    cJSON_ArrayForEach(c, json_member(j, "counters"))
    {
        strbuf_addf(out, "  counter %s: ", c->string);
        print_numbers(c, out);
        strbuf_adds(out, "\n");
    }
    print_best_gates(json_member(j, "gates"), out);
    if (v->kind == VERDICT_BOUND) {
        strbuf_addf(out, "  prior %g, %.3f bits\n", json_member(j, "prior")->valuedouble,
                    json_member(j, "surprisal_bits")->valuedouble);
    }
}
