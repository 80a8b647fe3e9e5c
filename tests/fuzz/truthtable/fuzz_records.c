/* records.json, read as replay reads it, NaN as no value: whatever is read gives a verdict, the
 * same bytes as from a tree of the same text, and as the verdict's own tree. */
#include <stdlib.h>
#include <string.h>

#include "base/json/json.h"
#include "tests/fuzz/truthtable/fuzz_program.h"
#include "truthtable/evaluate/verdict_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void judge(const struct evidence *e, struct strbuf *out)
{
    struct table_verdict v;
    struct err err;
    struct strbuf tree = STRBUF_INIT;
    if (verdict_compute(e, "r", "h", &v, &err) != 0 || verdict_pretty(&v, out, &err) != 0 ||
        json_pretty(verdict_json(&v), &tree, &err) != 0 || strcmp(tree.buf, out->buf) != 0) {
        abort();
    }
    strbuf_release(&tree);
    verdict_release(&v);
}

/* The verdict of the records; false when they are refused. */
static bool verdict_of_text(const struct plan_program *p, const char *text, size_t len,
                            struct strbuf *out)
{
    struct evidence e;
    struct err err;
    evidence_init(&e, p);
    bool read = evidence_read_text(&e, text, len, &err) == 0;
    if (read) {
        judge(&e, out);
    }
    evidence_release(&e);
    return read;
}

static bool verdict_of_tree(const struct plan_program *p, const char *text, size_t len,
                            struct strbuf *out)
{
    struct evidence e;
    struct err err;
    cJSON *records = NULL;
    evidence_init(&e, p);
    bool read = json_parse_lax(text, len, &records, &err) == 0 &&
                evidence_read_records(&e, records, &err) == 0;
    if (read) {
        judge(&e, out);
    }
    evidence_release(&e);
    cJSON_Delete(records);
    return read;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct plan_program *p;
    struct strbuf a = STRBUF_INIT;
    struct strbuf b = STRBUF_INIT;
    if (p == NULL) {
        p = fuzz_program();
    }
    if (verdict_of_text(p, (const char *)data, size, &a) !=
            verdict_of_tree(p, (const char *)data, size, &b) ||
        strcmp(a.buf, b.buf) != 0) {
        abort();
    }
    strbuf_release(&a);
    strbuf_release(&b);
    return 0;
}
