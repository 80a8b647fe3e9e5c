#include "ctl/changes.h"

#include "base/json.h"
#include "base/strbuf.h"
#include "prereg/amendment.h"

static void add_value(struct strbuf *line, const cJSON *value)
{
    struct err err;
    if (value == NULL) {
        strbuf_adds(line, "nothing");
    } else if (json_line(value, line, &err) != 0) {
        strbuf_adds(line, "?");
    }
}

void changes_print(const cJSON *changes, FILE *to)
{
    const cJSON *change;
    cJSON_ArrayForEach(change, changes)
    {
        struct strbuf line = STRBUF_INIT;
        amendment_path_text(change, &line);
        strbuf_adds(&line, ": ");
        add_value(&line, json_member(change, "from"));
        strbuf_adds(&line, " -> ");
        add_value(&line, json_member(change, "to"));
        if (cJSON_IsTrue(json_member(change, "post_hoc"))) {
            strbuf_adds(&line, "  (post hoc)");
        }
        (void)fprintf(to, "  %s\n", line.buf);
        strbuf_release(&line);
    }
}
