/*
 * Tables of programs and of what they take. Rows for out_table() are built from the answer, because
 * sizes and verdicts are texts there.
 */
#include "ctl/text/status_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json/json.h"
#include "base/xalloc.h"
#include "ctl/ask.h"

void disk_size_text(struct strbuf *sb, int64_t bytes)
{
    static const char *const UNITS[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
    double value = (double)bytes;
    size_t unit = 0;
    while (value >= 1023.5 && unit + 1 < ARRAY_LEN(UNITS)) {
        value /= 1024;
        unit++;
    }
    strbuf_addf(sb, value < 9.95 && unit > 0 ? "%.1f %s" : "%.0f %s", value, UNITS[unit]);
}

static void put_size(cJSON *row, const char *key, const cJSON *from, const char *member)
{
    struct strbuf text = STRBUF_INIT;
    const cJSON *v = json_member(from, member);
    if (cJSON_IsNumber(v)) {
        disk_size_text(&text, answer_int(from, member, 0));
    }
    json_put_string(row, key, cJSON_IsNumber(v) ? text.buf : NULL);
    strbuf_release(&text);
}

static cJSON *program_row(const cJSON *p)
{
    const cJSON *tasks = json_member(p, "tasks");
    const cJSON *verdict = json_member(p, "verdict");
    const cJSON *size = json_member(p, "bytes");
    const char *state = answer_text(p, "state", "?");
    cJSON *row = json_object();
    char *counts = xasprintf("%lld/%lld", (long long)answer_int(tasks, "done", 0),
                             (long long)answer_int(tasks, "planned", 0));
    char last[sizeof("2026-11-21 03:04")];
    (void)snprintf(last, sizeof(last), "%s", answer_text(p, "last", ""));
    if (strlen(last) > 10) {
        last[10] = ' ';
    }
    json_put_string(row, "id", answer_text(p, "id", "?"));
    json_put_string(row, "state", answer_bool(p, "removed") ? "removed" : state);
    json_put_string(row, "verdict",
                    answer_text(verdict, "outcome", answer_text(verdict, "kind", NULL)));
    json_put_string(row, "tasks", counts);
    json_put_int(row, "running", answer_int(tasks, "running", 0));
    json_put_int(row, "priority", answer_int(p, "priority", 0));
    put_size(row, "cells", size, "cells");
    put_size(row, "journal", size, "journal");
    put_size(row, "report", size, "report");
    json_put_string(row, "last", last[0] == '\0' ? NULL : last);
    free(counts);
    return row;
}

static void add_damaged(struct strbuf *sb, const struct term *t, const cJSON *answer)
{
    const cJSON *d = NULL;
    cJSON_ArrayForEach(d, json_member(answer, "damaged"))
    {
        out_styled(sb, t, STYLE_RED, "damaged");
        strbuf_adds(sb, " ");
        out_line(sb, answer_text(d, "id", "?"));
        strbuf_adds(sb, ": ");
        out_line(sb, answer_text(d, "why", "?"));
        strbuf_addc(sb, '\n');
    }
}

static void add_named_size(struct strbuf *sb, const char *name, const cJSON *answer,
                           const char *member)
{
    strbuf_addf(sb, "%s ", name);
    disk_size_text(sb, answer_int(answer, member, 0));
}

/* What belongs to no program, and what is free. */
static void add_shared(struct strbuf *sb, const cJSON *answer)
{
    add_named_size(sb, "shared: workers", answer, "objects_bytes");
    add_named_size(sb, ", database", answer, "database_bytes");
    add_named_size(sb, ", log", answer, "log_bytes");
    add_named_size(sb, "; free", answer, "free_bytes");
    strbuf_adds(sb, " on the disk of the state folder\n");
    if (!answer_bool(answer, "daemon")) {
        strbuf_adds(sb, "no daemon runs: nothing is started (`preregd serve`)\n");
    }
}

void programs_text(struct strbuf *sb, const struct term *t, const cJSON *answer)
{
    static const struct out_column columns[] = {
        {"program", "id", OUT_TEXT},       {"state", "state", OUT_STATE},
        {"verdict", "verdict", OUT_TEXT},  {"done", "tasks", OUT_COUNT},
        {"running", "running", OUT_COUNT}, {"priority", "priority", OUT_COUNT},
        {"cells", "cells", OUT_COUNT},     {"journal", "journal", OUT_COUNT},
        {"report", "report", OUT_COUNT},   {"last activity", "last", OUT_TEXT},
    };
    const cJSON *p = NULL;
    cJSON *rows = json_array();
    cJSON_ArrayForEach(p, json_member(answer, "programs"))
    {
        json_push(rows, program_row(p));
    }
    if (rows->child == NULL) {
        strbuf_adds(sb, "no programs; `preregd submit grid.toml` starts one\n");
    } else {
        out_table(sb, t, rows, columns, ARRAY_LEN(columns));
    }
    add_damaged(sb, t, answer);
    add_shared(sb, answer);
    cJSON_Delete(rows);
}

/* The kinds that take anything, in the order of the answer. */
static void add_kinds(struct strbuf *sb, const struct term *t, const cJSON *p)
{
    static const struct {
        const char *key;
        const char *text;
    } words[] = {
        {"checkpoints_running", "checkpoints of running attempts"},
        {"checkpoints_open", "checkpoints of ended attempts, to resume from"},
        {"checkpoints_done", "checkpoints of finished tasks"},
        {"artifacts", "artifacts"},
        {"dead", "other files of attempts that were not accepted"},
        {"items", "items"},
        {"logs", "logs"},
        {"events", "events"},
        {"records", "tasks, results and folders"},
        {"journal", "journal"},
        {"plan", "plan, lock, amendments"},
        {"report", "report"},
        {"reruns", "reruns"},
    };
    const cJSON *kinds = json_member(p, "kinds");
    cJSON *rows = json_array();
    for (size_t i = 0; i < ARRAY_LEN(words); i++) {
        if (answer_int(kinds, words[i].key, 0) > 0) {
            cJSON *row = json_object();
            put_size(row, "size", kinds, words[i].key);
            json_put_string(row, "what", words[i].text);
            json_push(rows, row);
        }
    }
    static const struct out_column columns[] = {{"size", "size", OUT_COUNT},
                                                {"what", "what", OUT_TEXT}};
    out_table(sb, t, rows, columns, ARRAY_LEN(columns));
    cJSON_Delete(rows);
}

static void add_freeable(struct strbuf *sb, const cJSON *p)
{
    const cJSON *f = NULL;
    cJSON_ArrayForEach(f, json_member(p, "freeable"))
    {
        strbuf_adds(sb, "can be freed: ");
        disk_size_text(sb, answer_int(f, "bytes", 0));
        strbuf_adds(sb, ", ");
        out_line(sb, answer_text(f, "what", "?"));
        strbuf_adds(sb, ": ");
        out_line(sb, answer_text(f, "how", "?"));
        strbuf_addc(sb, '\n');
    }
}

void disk_text(struct strbuf *sb, const struct term *t, const cJSON *answer)
{
    const cJSON *p = NULL;
    cJSON_ArrayForEach(p, json_member(answer, "programs"))
    {
        out_styled(sb, t, STYLE_BOLD, answer_text(p, "id", "?"));
        add_named_size(sb, "", json_member(p, "bytes"), "all");
        strbuf_addc(sb, '\n');
        add_kinds(sb, t, p);
        add_freeable(sb, p);
        strbuf_addc(sb, '\n');
    }
    add_damaged(sb, t, answer);
    add_shared(sb, answer);
}
