/* records.json, read as replay reads it, NaN as no value: whatever is read gives a verdict, and the
 * same bytes twice. */
#include "base/json.h"
#include "tests/fuzz/truthtable/fuzz_program.h"
#include "truthtable/verdict.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void judge(const struct evidence *e, struct strbuf *out)
{
    struct verdict v;
    struct err err;
    if (verdict_compute(e, "r", "h", &v, &err) != 0 || json_pretty(v.json, out, &err) != 0) {
        abort();
    }
    verdict_release(&v);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct program *p;
    struct evidence e;
    struct err err;
    cJSON *records = NULL;
    if (p == NULL) {
        p = fuzz_program();
    }
    if (json_parse_lax((const char *)data, size, &records, &err) != 0) {
        return 0;
    }
    evidence_init(&e, p);
    if (evidence_read_records(&e, records, &err) == 0) {
        struct strbuf a = STRBUF_INIT;
        struct strbuf b = STRBUF_INIT;
        judge(&e, &a);
        judge(&e, &b);
        if (strcmp(a.buf, b.buf) != 0) {
            abort();
        }
        strbuf_release(&a);
        strbuf_release(&b);
    }
    evidence_release(&e);
    cJSON_Delete(records);
    return 0;
}
