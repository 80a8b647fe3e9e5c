/*
 * Amendments as text, for `amend`, `diff` and whatever else shows one: a change is "path: from ->
 * to", with values as JSON on one line. Every line passes out_line(), because an amendment's file
 * may come from a stranger.
 */
#include "ctl/text/status_text.h"

#include "base/json/json.h"
#include "base/strbuf.h"
#include "base/terminal.h"
#include "ctl/ask.h"
#include "ctl/text/out.h"
#include "prereg/amend/amend_known.h"
#include "prereg/amend/amendment.h"

/* A value as JSON on one line; an absent one is "nothing". */
static void add_value(struct strbuf *line, const cJSON *value)
{
    struct err err;
    if (value == NULL) {
        strbuf_adds(line, "nothing");
    } else if (json_line(value, line, &err) != 0) {
        strbuf_adds(line, "?");
    }
}

/* Prints one line that is safe on a terminal: an amendment's file may come from a stranger. */
static void print_line(const char *line, FILE *to)
{
    struct strbuf shown = STRBUF_INIT;
    out_line(&shown, line);
    terminal_printf(to, "  %s\n", shown.buf);
    strbuf_release(&shown);
}

/* Changes that were made after results were visible are marked, since they bind differently. */
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
        print_line(line.buf, to);
        strbuf_release(&line);
    }
}

void changes_add_result(struct strbuf *sb, const cJSON *result)
{
    long long amendment = (long long)answer_int(result, "amendment", 0);
    strbuf_addf(sb, "attempt %lld, ", (long long)answer_int(result, "attempt", 0));
    if (amendment == 0) {
        strbuf_adds(sb, "as locked");
    } else {
        strbuf_addf(sb, "after amendment %lld", amendment);
    }
    strbuf_addf(sb, ": %s%s", answer_text(result, "text", "?"),
                answer_bool(result, "holds") ? "" : ": DOES NOT HOLD");
}

void changes_print_known(const cJSON *amendment, FILE *to)
{
    const cJSON *result;
    cJSON_ArrayForEach(result, json_member(amendment, AMENDMENT_KNOWN))
    {
        struct strbuf line = STRBUF_INIT;
        strbuf_addf(&line, "known then of apparatus.%s: ", answer_text(result, "check", "?"));
        changes_add_result(&line, result);
        print_line(line.buf, to);
        strbuf_release(&line);
    }
}
