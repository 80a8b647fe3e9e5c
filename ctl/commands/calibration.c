/* calibration: a lab's outcomes against the priors it gave them, from files alone
 * (ctl/calibration.h). Any program whose verdict does not follow makes the exit code 3, though
 * all others are scored. */
#include <stdlib.h>
#include <string.h>

#include "base/files/file.h"
#include "base/json/json.h"
#include "base/layout/layout.h"
#include "base/xalloc.h"
#include "ctl/ask.h"
#include "ctl/calibration.h"
#include "ctl/ctl.h"
#include "ctl/load.h"
#include "ctl/text/out.h"
#include "prereg/lock/imported.h"

/* fewer scored forecasts than this are called few */
#define FEW 20

/* Adds a row for each program of the state folder. A missing folder is an error only when it was
 * asked for, or nothing else was. */
static int add_state(const struct ctl_options *o, cJSON *rows, struct err *err)
{
    char *state = NULL;
    struct name_list names = {0};
    int rc = load_state_folder(o->state, &state, err);
    if (rc != 0) {
        return rc;
    }
    char *programs = path_join(state, LAYOUT_PROGRAMS);
    if (file_kind_at(programs) == FILE_FOLDER) {
        rc = dir_list(programs, &names, err);
    } else if (o->state != NULL || o->n_args == 0) {
        rc = err_set(err, ERR_NOT_FOUND, "%s holds no programs, or none that can be read", state);
    }
    for (size_t i = 0; rc == 0 && i < names.n; i++) {
        char *folder = path_join(programs, names.names[i]);
        /* hidden names are never programs */
        if (names.names[i][0] != '.' && file_kind_at(folder) == FILE_FOLDER) {
            json_push(rows, calibration_program(folder));
        }
        free(folder);
    }
    name_list_release(&names);
    free(programs);
    free(state);
    return rc;
}

/* Adds a row for each imported program's folder among the arguments. */
static int add_imported(const struct ctl_options *o, cJSON *rows, struct err *err)
{
    for (int i = 0; i < o->n_args; i++) {
        if (file_kind_at(o->args[i]) == FILE_ABSENT) {
            return err_set(err, ERR_NOT_FOUND, "%s does not exist", o->args[i]);
        }
        if (!imported_is_folder(o->args[i])) {
            return err_set(err, ERR_INVALID, "%s is not the folder of an imported program",
                           o->args[i]);
        }
        json_push(rows, calibration_program(o->args[i]));
    }
    return 0;
}

/* One paragraph and a table of bins, for priors or forecasts. */
static void say_score(struct strbuf *sb, const struct term *t, const char *what, const cJSON *score)
{
    static const struct out_column columns[] = {
        {"from", "from", OUT_NUMBER}, {"to", "to", OUT_NUMBER},    {"said", "said", OUT_NUMBER},
        {"n", "n", OUT_COUNT},        {"held", "held", OUT_COUNT}, {"share", "share", OUT_NUMBER}};
    const int64_t n = answer_int(score, "scored", 0);
    const int64_t n_stated = answer_int(score, "stated", n);
    strbuf_addf(sb, "\n%s: %lld scored", what, (long long)n);
    if (n_stated > n) {
        strbuf_addf(sb, " of %lld stated", (long long)n_stated);
    }
    if (n > 0) {
        strbuf_addf(sb, ", bits: %.4g in all, %.4g each; mean Brier score %.4g",
                    json_member(score, "bits")->valuedouble,
                    json_member(score, "mean_bits")->valuedouble,
                    json_member(score, "mean_brier")->valuedouble);
    }
    strbuf_adds(sb, "\n");
    if (n > 0) {
        out_table(sb, t, json_member(score, "bins"), columns, ARRAY_LEN(columns));
    }
    if (n > 0 && n < FEW) {
        strbuf_adds(sb, "so few say little about calibration\n");
    }
}

/* The table of programs, then the scores of outcomes and of forecasts. */
static void say(const cJSON *answer)
{
    static const struct out_column columns[] = {
        {"program", "program", OUT_TEXT}, {"history", "history", OUT_TEXT},
        {"status", "status", OUT_TEXT},   {"outcome", "outcome", OUT_TEXT},
        {"prior", "prior", OUT_NUMBER},   {"bits", "bits", OUT_NUMBER},
        {"Brier", "brier", OUT_NUMBER},   {"superseded by", "superseded_by", OUT_TEXT},
        {"why", "why", OUT_TEXT},
    };
    struct term t = term_of_stdout();
    struct strbuf sb = STRBUF_INIT;
    out_table(&sb, &t, json_member(answer, "programs"), columns, ARRAY_LEN(columns));
    say_score(&sb, &t, "outcomes against their priors", json_member(answer, "priors"));
    say_score(&sb, &t, "forecasts", json_member(answer, "forecasts"));
    out_text(&sb);
    strbuf_release(&sb);
}

int cmd_calibration(const struct ctl_options *o, enum exit_code *code, struct err *err)
{
    cJSON *rows = json_array();
    int rc = add_state(o, rows, err);
    if (rc != 0 || (rc = add_imported(o, rows, err)) != 0) {
        cJSON_Delete(rows);
        return rc;
    }
    cJSON *answer = calibration_sum(rows);
    const cJSON *row = NULL;
    *code = EXIT_OK;
    cJSON_ArrayForEach(row, json_member(answer, "programs"))
    {
        /* one unverified program is enough: the sums lack it */
        if (strcmp(answer_text(row, "status", ""), "unverified") == 0) {
            *code = EXIT_LOCK;
        }
    }
    if (o->json) {
        rc = out_json(answer, err);
    } else {
        say(answer);
    }
    cJSON_Delete(answer);
    return rc;
}
