/* Parses events.jsonl. A line that is not a JSON object with a "type" counts as malformed; an
 * unknown type, or a member of the wrong kind, is ignored, so that newer workers can say more. Only
 * the latest section, progress and checkpoint of a batch are kept. */
#include "daemon/program/events.h"

#include <stdio.h>
#include <string.h>

#include "base/json/json.h"
#include "base/layout/layout.h"
#include "base/text.h"
#include "daemon/core/core.h"

/* An unknown section keeps the one before. */
static void take_section(const cJSON *o, struct events_said *out)
{
    const char *name = NULL;
    struct err err;
    if (json_get_string(o, "name", &name, &err) == 0) {
        enum section s = section_from_name(name);
        out->section = s < SECTION_NR ? s : out->section;
    }
}

/* A unit that is not a plain name is dropped: it is shown on terminals. */
static void take_progress(const cJSON *o, struct events_said *out)
{
    struct err err;
    int64_t done = 0;
    int64_t total = -1;
    const char *unit = "";
    if (json_get_int(o, "done", 0, JSON_INT_MAX, &done, &err) != 0) {
        return;
    }
    out->progressed = true;
    out->done = done;
    out->total = json_opt_int(o, "total", 0, JSON_INT_MAX, &total, &err) == 0 ? total : -1;
    if (json_opt_string(o, "unit", &unit, &err) == 0) {
        (void)snprintf(out->unit, sizeof(out->unit), "%s", text_is_name(unit) ? unit : "");
    }
}

static void take_step(const cJSON *o, int64_t *step)
{
    struct err err;
    (void)(json_get_int(o, "step", 0, JSON_INT_MAX, step, &err) == 0);
}

static void take_line(const char *line, size_t len, struct events_said *out)
{
    cJSON *o = NULL;
    const char *type = NULL;
    struct err err;
    if (json_parse(line, len, &o, &err) != 0 || !cJSON_IsObject(o) ||
        json_get_string(o, "type", &type, &err) != 0) {
        out->malformed++;
    } else if (strcmp(type, "section") == 0) {
        take_section(o, out);
    } else if (strcmp(type, "progress") == 0) {
        take_progress(o, out);
    } else if (strcmp(type, "checkpoint") == 0) {
        take_step(o, &out->checkpoint);
    } else if (strcmp(type, "resumed") == 0) {
        take_step(o, &out->resumed_from);
    }
    cJSON_Delete(o);
}

/* Curve points arrive in thousands and hold nothing of interest here. They are recognised by their
 * first bytes, as our workers write them, and only scanned for valid JSON; any other line is
 * parsed. */
static bool is_plain_point(const char *line, size_t len)
{
    static const char start[] = "{\"type\":\"point\",";
    struct err err;
    return len > sizeof(start) && memcmp(line, start, sizeof(start) - 1) == 0 &&
           json_scan(line, len, &err) == 0;
}

/* n_bytes ends behind the last whole line; the rest is read again with more text behind it. */
void events_take(const char *text, size_t len, struct events_said *out)
{
    *out = (struct events_said){
        .section = SECTION_NR, .total = -1, .checkpoint = -1, .resumed_from = -1};
    size_t at = 0;
    while (at < len) {
        const char *nl = memchr(text + at, '\n', len - at);
        size_t n = nl == NULL ? len - at : (size_t)(nl - (text + at));
        if (n > LAYOUT_EVENTS_LINE_MAX) {
            out->malformed += CORE_MALFORMED_MAX + 1;
            out->n_bytes = len;
            return;
        }
        if (nl == NULL) {
            break;
        }
        if (!is_plain_point(text + at, n)) {
            take_line(text + at, n, out);
        }
        at += n + 1;
    }
    out->n_bytes = at;
}
