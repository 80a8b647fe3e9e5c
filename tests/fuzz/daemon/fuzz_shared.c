/* What another host wrote into a shared folder: a heartbeat, current-attempt, or the tenure of a
 * daemon, of which one member is the input. Each is refused, or in its ranges and the same when
 * read again. Whole objects would be refused at their first member, so that no seeds are needed. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"
#include "daemon/shim/current.h"
#include "daemon/shim/heartbeat.h"
#include "state/tenure/record.h"

#define NUMBER 7

static const char *const MEMBERS[][2] = {
    {"schema", "1"},        {"number", "7"},
    {"sequence", "9"},      {"released", "false"},
    {"pid", "12"},          {"pid_start", "34"},
    {"host", "\"a\""},      {"machine", "\"m\""},
    {"boot_id", "\"b\""},   {"pid_space", "\"p\""},
    {"job", "\"17\""},      {"cluster", "\"lab\""},
    {"job_name", "\"n\""},  {"job_submitted", "\"5\""},
    {"database", "\"/d\""}, {"database_id", "\"\""},
    {"time", "\"t\""},
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds)
{
    if (!holds) {
        abort();
    }
}

static void try_heartbeat(const char *line)
{
    struct heartbeat h;
    struct heartbeat again;
    struct err err;
    if (heartbeat_parse(line, &h, &err) == 0) {
        check(h.sequence > 0);
        char *text = heartbeat_format(&h);
        check(heartbeat_parse(text, &again, &err) == 0 && memcmp(&h, &again, sizeof(h)) == 0);
        free(text);
    }
}

static void try_current(const char *line)
{
    struct attempt_name a;
    struct err err;
    if (current_parse(line, &a, &err) == 0) {
        check(a.no > 0 && uuid_is_valid(a.id));
    }
}

static void try_tenure(size_t member, const char *value, size_t len)
{
    struct tenure t;
    struct err err;
    struct strbuf text = STRBUF_INIT;
    for (size_t i = 0; i < ARRAY_LEN(MEMBERS); i++) {
        strbuf_addf(&text, "%c\"%s\":", i == 0 ? '{' : ',', MEMBERS[i][0]);
        if (i == member) {
            strbuf_add(&text, value, len);
        } else {
            strbuf_adds(&text, MEMBERS[i][1]);
        }
    }
    strbuf_adds(&text, "}\n");
    const int rc = tenure_parse(text.buf, text.len, NUMBER, &t, &err);
    check(rc == 0 || rc == ERR_CORRUPT);
    check(rc != 0 || (t.number == NUMBER && t.sequence > 0 && t.pid > 0 && t.pid_start >= 0));
    if (rc == 0) {
        free(tenure_text(&t));
    }
    strbuf_release(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0) {
        return 0;
    }
    char *text = xstrndup((const char *)data + 1, size - 1);
    if (data[0] == 'h') {
        try_heartbeat(text);
    } else if (data[0] == 'c') {
        try_current(text);
    } else {
        try_tenure(data[0] % ARRAY_LEN(MEMBERS), (const char *)data + 1, size - 1);
    }
    free(text);
    return 0;
}
