/* apparatus: the scores of the apparatus checks of all programs in the state folder, in order of
 * time, from files alone (ctl/apparatus_ledger.h). A program whose files do not bear out its
 * journal is named, and makes the exit code 3. */
#include <stdlib.h>

#include "base/files/file.h"
#include "base/json/json.h"
#include "base/layout/layout.h"
#include "base/xalloc.h"
#include "ctl/apparatus_ledger.h"
#include "ctl/ask.h"
#include "ctl/ctl.h"
#include "ctl/load.h"
#include "ctl/text/out.h"
#include "prereg/lock/imported.h"

#define WORKER_SHOWN 8 /* digits of a worker's digest in the table; --json has all */

/* Adds the entries of one program. One that is only being submitted has no journal yet. */
static void add_program(const char *folder, cJSON *entries, cJSON *faults)
{
    struct err err = {0};
    char *journal = path_join(folder, LAYOUT_JOURNAL);
    const bool is_program = file_kind_at(folder) == FILE_FOLDER && !imported_is_folder(folder) &&
                            file_kind_at(journal) == FILE_REGULAR;
    free(journal);
    if (is_program && apparatus_ledger_add(folder, entries, &err) != 0) {
        cJSON *o = json_object();
        json_put_string(o, "id", path_name(folder));
        json_put_string(o, "why", err.msg);
        json_push(faults, o);
    }
}

static int add_all(const char *state, cJSON *entries, cJSON *faults, struct err *err)
{
    struct name_list names = {0};
    char *programs = path_join(state, LAYOUT_PROGRAMS);
    int rc =
        file_kind_at(programs) == FILE_FOLDER
            ? dir_list(programs, &names, err)
            : err_set(err, ERR_NOT_FOUND, "%s holds no programs, or none that can be read", state);
    for (size_t i = 0; rc == 0 && i < names.n; i++) {
        if (names.names[i][0] != '.') { /* hidden names are never programs */
            char *folder = path_join(programs, names.names[i]);
            add_program(folder, entries, faults);
            free(folder);
        }
    }
    name_list_release(&names);
    free(programs);
    return rc;
}

static double number_of(const cJSON *o, const char *key)
{
    const cJSON *v = json_member(o, key);
    return cJSON_IsNumber(v) ? v->valuedouble : 0;
}

/* What the table shows of an entry: the band as one word, and the beginning of the digest. */
static cJSON *line_of(const cJSON *entry)
{
    cJSON *o = json_copy(entry);
    char *band =
        xasprintf("%.10g +- %.10g", number_of(entry, "expected"), number_of(entry, "within"));
    char *worker = xasprintf("%.*s", WORKER_SHOWN, answer_text(entry, "worker", "-"));
    json_put_string(o, "band", band);
    json_put_string(o, "short", worker);
    free(worker);
    free(band);
    return o;
}

static void say(const cJSON *entries, const cJSON *faults)
{
    static const struct out_column columns[] = {
        {"time", "time", OUT_TEXT},     {"program", "id", OUT_TEXT},
        {"check", "check", OUT_TEXT},   {"run", "run", OUT_TEXT},
        {"metric", "metric", OUT_TEXT}, {"score", "score", OUT_NUMBER},
        {"expected", "band", OUT_TEXT}, {"holds", "holds", OUT_YES},
        {"worker", "short", OUT_TEXT},  {"machine", "host", OUT_TEXT},
    };
    const struct term t = term_of_stdout();
    struct strbuf sb = STRBUF_INIT;
    cJSON *lines = json_array();
    const cJSON *o = NULL;
    cJSON_ArrayForEach(o, entries)
    {
        json_push(lines, line_of(o));
    }
    if (lines->child == NULL && faults->child == NULL) {
        strbuf_adds(&sb, "no apparatus check has been made\n");
    } else if (lines->child != NULL) {
        out_table(&sb, &t, lines, columns, ARRAY_LEN(columns));
    }
    cJSON_ArrayForEach(o, faults)
    {
        strbuf_addf(&sb, "%s: ", answer_text(o, "id", "?"));
        out_line(&sb, answer_text(o, "why", "?"));
        strbuf_addc(&sb, '\n');
    }
    out_text(&sb);
    strbuf_release(&sb);
    cJSON_Delete(lines);
}

int cmd_apparatus(const struct ctl_options *o, enum exit_code *code, struct err *err)
{
    char *state = NULL;
    cJSON *answer = json_object();
    cJSON *entries = json_array();
    cJSON *faults = json_array();
    json_put(answer, "checks", entries);
    json_put(answer, "faults", faults);
    int rc = load_state_folder(o->state, &state, err);
    if (rc == 0) {
        rc = add_all(state, entries, faults, err);
    }
    if (rc == 0) {
        apparatus_ledger_sort(entries);
        *code = faults->child == NULL ? EXIT_OK : EXIT_LOCK;
        if (o->json) {
            rc = out_json(answer, err);
        } else {
            say(entries, faults);
        }
    }
    cJSON_Delete(answer);
    free(state);
    return rc;
}
