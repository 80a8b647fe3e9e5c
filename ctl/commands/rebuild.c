/*
 * rebuild [STATE]: a new database from journals and cell folders (store_rebuild()), and a table of
 * what was found in each program. A journal whose chain does not hold is reported and makes the
 * exit code 3; its records are restored all the same, as unverified.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/files/file.h"
#include "base/json/json.h"
#include "base/xalloc.h"
#include "ctl/ask.h"
#include "ctl/ctl.h"
#include "ctl/load.h"
#include "ctl/text/out.h"
#include "state/rebuild/rebuild.h"

/* What the callback collects. */
struct taken {
    cJSON *programs;
    bool tampered; /* one of them had a journal whose chain does not hold */
};

/* Called for each rebuilt program: keeps it as a row of the answer. */
static void take(void *ctx, const struct rebuilt_program *p)
{
    struct taken *taken = ctx;
    taken->tampered |= p->tampered;
    cJSON *row = json_object();
    cJSON *tasks = json_object();
    for (enum task_state s = 0; s < TASK_STATE_NR; s++) {
        json_put_int(tasks, task_state_name(s), p->n_by_state[s]);
    }
    json_put_string(row, "program", p->id);
    json_put_string(row, "history", p->unverified ? "unverified" : "verified");
    json_put_string(row, "note", p->note);
    json_put_int(row, "journal_rows", p->n_rows);
    json_put_int(row, "records", p->n_records);
    json_put_int(row, "done", p->n_by_state[TASK_DONE]);
    json_put(row, "tasks", tasks);
    json_push(taken->programs, row);
}

/* The rebuilt programs as a table. */
static void say(const char *state, const cJSON *programs)
{
    static const struct out_column columns[] = {
        {"program", "program", OUT_TEXT},       {"history", "history", OUT_TEXT},
        {"journal", "journal_rows", OUT_COUNT}, {"tasks done", "done", OUT_COUNT},
        {"records", "records", OUT_COUNT},      {"note", "note", OUT_TEXT},
    };
    struct term t = term_of_stdout();
    struct strbuf sb = STRBUF_INIT;
    strbuf_addf(&sb, "%s/preregd.db was rebuilt; the old one, if any, is preregd.db.old\n", state);
    if (programs->child != NULL) {
        out_table(&sb, &t, programs, columns, ARRAY_LEN(columns));
    }
    out_text(&sb);
    strbuf_release(&sb);
}

/* The argument, or --state, or the user's own folder; no daemon may be running on it. */
int cmd_rebuild(const struct ctl_options *o, enum exit_code *code, struct err *err)
{
    char *state = NULL;
    int rc = load_state_folder(o->n_args > 0 ? o->args[0] : o->state, &state, err);
    if (rc != 0) {
        return rc;
    }
    cJSON *answer = json_object();
    cJSON *programs = json_array();
    struct taken taken = {.programs = programs};
    rc = store_rebuild(state, take, &taken, err);
    *code = taken.tampered ? EXIT_LOCK : EXIT_OK;
    if (rc == 0 && !o->json) {
        say(state, programs);
    }
    json_put_string(answer, "state", state);
    json_put(answer, "programs", programs);
    if (rc == 0 && o->json) {
        rc = out_json(answer, err);
    }
    cJSON_Delete(answer);
    free(state);
    return rc;
}
