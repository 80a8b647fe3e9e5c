/*
 * Reads apparatus checks from provenance.json, the attempts' result files and the amendments. What
 * a check demanded may have changed between attempts, so demands are taken from the result on
 * record and not from the present plan, wherever there is one.
 */
#include "truthtable/report/report_apparatus.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/files/file.h"
#include "base/json/json.h"
#include "base/layout/attempt_name.h"
#include "base/layout/layout.h"
#include "base/xalloc.h"
#include "prereg/amend/amendment.h"
#include "prereg/program/apparatus_name.h"
#include "truthtable/report/document/fmt.h"
#include "truthtable/report/verdict_words.h"

/* The metric of the result in the attempt's folder; NAN without one. */
static double came(const char *folder, const struct plan_apparatus *check, const cJSON *attempt)
{
    const char *id = member_text(attempt, "id");
    double no = member_number(attempt, "no");
    const char *metric = strchr(check->metric_text, '.');
    struct err ignored = {0};
    cJSON *result = NULL;
    double value = (double)NAN;
    /* The id becomes part of a path, and the file may come from elsewhere. */
    if (id == NULL || !uuid_is_valid(id) || !(no >= 1 && no < UINT32_MAX) || metric == NULL) {
        return value;
    }
    char *task = layout_check(folder, check->name);
    char *attempt_folder = attempt_path(task, (uint32_t)no, id);
    char *path = path_join(attempt_folder, LAYOUT_RESULT);
    if (file_kind_at(path) == FILE_REGULAR &&
        json_read_file_lax(path, LAYOUT_RESULT_MAX, &result, &ignored) == 0) {
        const cJSON *v = member(member(result, "metrics"), metric + 1);
        value = cJSON_IsNumber(v) ? v->valuedouble : member_number(v, "value");
    }
    cJSON_Delete(result);
    free(path);
    free(attempt_folder);
    free(task);
    return value;
}

/* A linear search: a program has few checks. */
const cJSON *report_check(const struct report_model *m, const char *name)
{
    const cJSON *check = NULL;
    cJSON_ArrayForEach(check, member(m->provenance, "apparatus"))
    {
        if (strcmp(words_member(check, "name"), name) == 0) {
            return check;
        }
    }
    return NULL;
}

bool report_check_is_shown(const struct report_model *m, size_t i)
{
    const struct plan_apparatus *check = &m->program->apparatus[i];
    return check->first == INDEX_NONE || report_check(m, check->name) != NULL;
}

/* Results refer to attempts by number. */
const cJSON *report_check_result(const cJSON *check, const cJSON *attempt)
{
    const double no = member_number(attempt, "no");
    const cJSON *result = NULL;
    cJSON_ArrayForEach(result, member(check, "results"))
    {
        if (member_number(result, "attempt") == no) {
            return result;
        }
    }
    return NULL;
}

/* Adds to the model's own copy of provenance.json; the file is not changed. */
void report_apparatus_read(struct report_model *m, const char *folder)
{
    for (size_t i = 0; i < m->program->n_apparatus; i++) {
        const struct plan_apparatus *check = &m->program->apparatus[i];
        cJSON *attempt = NULL;
        cJSON_ArrayForEach(attempt, member(report_check(m, check->name), "attempts"))
        {
            json_put_number(attempt, "came", came(folder, check, attempt));
        }
    }
}

/* An element of a change's path; "" where it is shorter. */
static const char *path_at(const cJSON *change, int i)
{
    const char *key = cJSON_GetStringValue(cJSON_GetArrayItem(member(change, "path"), i));
    return key == NULL ? "" : key;
}

/* "plan.apparatus" comes or goes as a whole with its only check; else "plan.apparatus.NAME...". */
static bool is_of_checks(const cJSON *change, bool whole)
{
    const bool is_whole = member_count(change, "path") == 2;
    return strcmp(path_at(change, 0), "plan") == 0 &&
           strcmp(path_at(change, 1), "apparatus") == 0 && is_whole == whole;
}

/* Whether a change concerns this check, directly or as a part of all. */
static bool is_of(const cJSON *change, const char *name)
{
    /* All checks at once: it concerns those on either side of the change. */
    if (is_of_checks(change, true)) {
        return member(member(change, "from"), name) != NULL ||
               member(member(change, "to"), name) != NULL;
    }
    return is_of_checks(change, false) && strcmp(path_at(change, 2), name) == 0;
}

bool report_check_is_amended(const struct report_model *m, const char *of)
{
    char name[80]; /* of the declaration, which is that of the second run, too */
    (void)snprintf(name, sizeof(name), "%.*s", (int)apparatus_name_length(of), of);
    const cJSON *amendment = NULL;
    cJSON_ArrayForEach(amendment, m->amendments)
    {
        const cJSON *change = NULL;
        cJSON_ArrayForEach(change, member(amendment, "changes"))
        {
            if (is_of(change, name)) {
                return true;
            }
        }
    }
    return false;
}

/* Attempts that had ended by then; times of one form compare as texts. */
static size_t ended_before(const cJSON *check, const char *time)
{
    size_t n = 0;
    const cJSON *attempt = NULL;
    cJSON_ArrayForEach(attempt, member(check, "attempts"))
    {
        const char *ended = member_text(attempt, "ended");
        n += ended != NULL && strcmp(ended, time) < 0 ? 1 : 0;
    }
    return n;
}

/* One change, in a sentence. */
static const char *change_words(struct arena *a, const cJSON *amendment, const cJSON *change,
                                size_t n_before)
{
    struct strbuf path = STRBUF_INIT;
    const cJSON *from = member(change, "from");
    const cJSON *to = member(change, "to");
    amendment_path_text(change, &path);
    const char *text =
        arena_printf(a, "Amendment %s changed %s from %s to %s when %s of that check had ended.",
                     words_count(a, amendment, "number"), path.buf,
                     from == NULL ? "nothing" : words_value(a, from),
                     to == NULL ? "nothing" : words_value(a, to),
                     fmt_plural(a, (int64_t)n_before, "attempt", "attempts"));
    strbuf_release(&path);
    return text;
}

/* Changes that were made after an attempt of the check had ended. */
const char *report_apparatus_amended(struct arena *a, const struct report_model *m)
{
    const char *text = "";
    const cJSON *amendment = NULL;
    cJSON_ArrayForEach(amendment, m->amendments)
    {
        const char *time = member_text(amendment, "time");
        const cJSON *change = NULL;
        cJSON_ArrayForEach(change, member(amendment, "changes"))
        {
            for (size_t i = 0; time != NULL && i < m->program->n_apparatus; i++) {
                const char *name = m->program->apparatus[i].name;
                size_t n = is_of(change, name) ? ended_before(report_check(m, name), time) : 0;
                text = n == 0 ? text
                              : arena_printf(a, "%s%s%s", text, text[0] == '\0' ? "" : " ",
                                             change_words(a, amendment, change, n));
            }
        }
    }
    return text[0] == '\0' ? NULL : text;
}
