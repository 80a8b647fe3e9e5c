/* Whatever json_parse accepts must survive a round trip: canonical text parses again to the same
 * canonical text, and so does the pretty form. Read token by token it is the same tree, and so it
 * is as cJSON reads it. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/json/json_pull.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must_agree(const struct strbuf *text, const struct strbuf *canonical)
{
    struct err err = {0};
    struct strbuf again = STRBUF_INIT;
    cJSON *v = NULL;
    if (json_parse(text->buf, text->len, &v, &err) != 0 || json_canonical(v, &again, &err) != 0) {
        abort();
    }
    if (again.len != canonical->len || memcmp(again.buf, canonical->buf, again.len) != 0) {
        abort();
    }
    cJSON_Delete(v);
    strbuf_release(&again);
}

static void must_pull(const uint8_t *data, size_t size, const struct strbuf *canonical)
{
    struct err err = {0};
    struct strbuf again = STRBUF_INIT;
    struct json_pull p;
    struct arena arena;
    enum json_token token = JSON_NULL;
    cJSON *v = NULL;
    arena_init(&arena);
    json_pull_init(&p, (const char *)data, size, false);
    if (json_pull_next(&p, &token, &err) != 0 ||
        json_pull_value(&p, token, &arena, &v, &err) != 0 ||
        json_pull_next(&p, &token, &err) != 0 || token != JSON_END ||
        json_canonical(v, &again, &err) != 0) {
        abort();
    }
    if (again.len != canonical->len || memcmp(again.buf, canonical->buf, again.len) != 0) {
        abort();
    }
    json_pull_release(&p);
    arena_release(&arena);
    strbuf_release(&again);
}

static void must_be_cjsons(const uint8_t *data, size_t size, const cJSON *v)
{
    cJSON *theirs = cJSON_ParseWithLength((const char *)data, size);
    if (!json_equal(v, theirs)) {
        abort();
    }
    cJSON_Delete(theirs);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct err err = {0};
    cJSON *v = NULL;
    if (json_parse((const char *)data, size, &v, &err) != 0) {
        if (v != NULL || err.code == 0) {
            abort();
        }
        return 0;
    }
    struct strbuf canonical = STRBUF_INIT;
    struct strbuf pretty = STRBUF_INIT;
    struct strbuf line = STRBUF_INIT;
    must_be_cjsons(data, size, v);
    /* Refused only for integers beyond 2^53 - 1, which the grammar allows. */
    if (json_canonical(v, &canonical, &err) == 0) {
        if (json_pretty(v, &pretty, &err) != 0 || json_line(v, &line, &err) != 0) {
            abort();
        }
        must_agree(&canonical, &canonical);
        must_agree(&pretty, &canonical);
        must_agree(&line, &canonical);
        must_pull(data, size, &canonical);
    }
    strbuf_release(&canonical);
    strbuf_release(&pretty);
    strbuf_release(&line);
    cJSON_Delete(v);
    return 0;
}
