/*
 * What the stages were locked to run in, one row for each environment of the lock: a list of
 * packages, or an image. The tasks that ended because it had changed are counted from
 * provenance.json.
 */
#include <math.h>
#include <string.h>

#include "base/xalloc.h"
#include "prereg/lock/environment.h"
#include "truthtable/report/document/fmt.h"
#include "truthtable/report/sections/row_columns.h"
#include "truthtable/report/sections/sections.h"
#include "truthtable/report/verdict_words.h"

#define DIGITS_SHOWN 12

struct locked_environment {
    const char *name; /* as the program names it */
    const char *stages;
    const char *kind;
    const char *interpreter;
    double packages; /* NAN: of an image it is not known */
    const char *digest;
    double drifted; /* tasks; NAN: there is no provenance.json */
};

static double count_drifted(const struct report_model *m, const char *stage)
{
    double n = 0;
    const cJSON *task = NULL;
    cJSON_ArrayForEach(task, member(m->provenance, "tasks"))
    {
        const char *cause = member_text(task, "cause");
        n += cause != NULL && strcmp(cause, "drift") == 0 &&
             strcmp(words_member(task, "stage"), stage) == 0;
    }
    return m->provenance == NULL ? (double)NAN : n;
}

static struct locked_environment row_of(struct arena *a, const struct report_model *m,
                                        const cJSON *list)
{
    const cJSON *python = member(list, "python");
    const bool is_image = environment_image(list) != NULL;
    char hex[DIGEST_HEX_SIZE];
    environment_digest(list, hex);
    struct locked_environment row = {
        .name = list->string,
        .stages = "",
        .kind = is_image                                        ? "image"
                : cJSON_GetArraySize(member(list, "conda")) > 0 ? "conda prefix"
                                                                : "venv",
        .interpreter = is_image
                           ? FMT_NONE
                           : arena_printf(a, "Python %s, %s", words_member(python, "version"),
                                          fmt_cut(a, words_member(python, "sha256"), DIGITS_SHOWN)),
        .packages = is_image ? (double)NAN : (double)cJSON_GetArraySize(member(list, "packages")),
        .digest = fmt_cut(a, hex, DIGITS_SHOWN),
        .drifted = 0,
    };
    for (size_t i = 0; i < m->program->n_stages; i++) {
        const struct plan_stage *s = &m->program->stages[i];
        if (s->environment != NULL && strcmp(s->environment, list->string) == 0) {
            row.stages =
                arena_printf(a, "%s%s%s", row.stages, row.stages[0] == '\0' ? "" : ", ", s->name);
            row.drifted += count_drifted(m, s->name);
        }
    }
    return row;
}

/* Left out where the lock has none. */
void tables_environments(struct doc *d, const struct report_model *m)
{
    static const struct doc_column columns[] = {
        ROW_TEXT("Stages", struct locked_environment, stages),
        ROW_TEXT("Environment", struct locked_environment, name),
        ROW_TEXT("Kind", struct locked_environment, kind),
        ROW_TEXT("Interpreter", struct locked_environment, interpreter),
        ROW_FIGURE("Packages", row_cell_count, struct locked_environment, packages),
        ROW_TEXT("Digest", struct locked_environment, digest),
        ROW_FIGURE("Tasks lost to drift", row_cell_count, struct locked_environment, drifted),
    };
    const cJSON *lists = member(m->lock->locked, "environments");
    struct doc_table *t = NULL;
    const cJSON *list = NULL;
    cJSON_ArrayForEach(list, lists)
    {
        if (t == NULL) {
            t = doc_table(d, "stage-environments",
                          "What the stages were locked to run in. It was compared before every "
                          "attempt and before the verdict, which a difference would have stopped; "
                          "the lock has every package. Interpreters, lists and images are named by "
                          "the first digits of their digest.",
                          columns, ARRAY_LEN(columns));
        }
        const struct locked_environment row = row_of(&d->arena, m, list);
        (void)doc_row(d, t, &row);
    }
}
