/* The parts of a change of [run], and the line that is made of them. */
#include "prereg/program/run_change.h"

#include "base/json/json.h"

static double count_of(const cJSON *change, const char *key)
{
    const cJSON *n = json_member(change, key);
    return cJSON_IsNumber(n) ? n->valuedouble : 0.0;
}

void run_change_settings(const cJSON *change, struct strbuf *out)
{
    const cJSON *run = json_member(change, "run");
    struct strbuf text = STRBUF_INIT;
    struct err ignored;
    if (run != NULL && json_canonical(run, &text, &ignored) == 0) {
        strbuf_adds(out, text.buf);
    }
    strbuf_release(&text);
}

void run_change_tasks(const cJSON *change, struct strbuf *out)
{
    const cJSON *first = json_member(change, "first");
    const cJSON *name = NULL;
    double n = 0;
    cJSON_ArrayForEach(name, first)
    {
        if (cJSON_IsString(name)) {
            strbuf_addf(out, "%s%s", n == 0 ? "" : ", ", name->valuestring);
            n++;
        }
    }
    const double left = count_of(change, "blocked") - n;
    if (n > 0 && left > 0) {
        strbuf_addf(out, " and %.0f more", left);
    }
}

void run_change_line(const cJSON *change, struct strbuf *out)
{
    const double n = count_of(change, "blocked");
    struct strbuf tasks = STRBUF_INIT;
    run_change_tasks(change, &tasks);
    strbuf_addf(out, "from row %.0f of the journal on, [run] was ", count_of(change, "row"));
    run_change_settings(change, out);
    strbuf_addf(out, ": %.0f task%s blocked under it%s%s", n, n == 1 ? " was" : "s were",
                tasks.len == 0 ? "" : ": ", tasks.buf);
    strbuf_release(&tasks);
}
