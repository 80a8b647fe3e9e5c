/* What pyjson lays out means what the text meant, and laying it out again changes nothing. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/json/json.h"
#include "base/json/pyjson.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void relay(const char *text, size_t len, int indent, struct strbuf *out)
{
    struct err err = {0};
    struct pyjson w;
    strbuf_clear(out);
    pyjson_init(&w, out, indent);
    if (pyjson_text(&w, text, len, &err) != 0 || w.depth != 0)
        abort();
}

static void must_mean(const struct strbuf *text, const cJSON *v)
{
    struct err err = {0};
    cJSON *again = NULL;
    if (json_parse(text->buf, text->len, &again, &err) != 0 || !cJSON_Compare(v, again, true))
        abort();
    cJSON_Delete(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct err err = {0};
    cJSON *v = NULL;
    struct strbuf line = STRBUF_INIT;
    struct strbuf indented = STRBUF_INIT;
    struct strbuf again = STRBUF_INIT;
    if (json_parse((const char *)data, size, &v, &err) == 0) {
        relay((const char *)data, size, 0, &line);
        relay((const char *)data, size, 2, &indented);
        must_mean(&line, v);
        must_mean(&indented, v);
        relay(indented.buf, indented.len, 0, &again);
        if (again.len != line.len || memcmp(again.buf, line.buf, line.len) != 0)
            abort();
    }
    cJSON_Delete(v);
    strbuf_release(&line);
    strbuf_release(&indented);
    strbuf_release(&again);
    return 0;
}
