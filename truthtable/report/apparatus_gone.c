/*
 * Finds apparatus checks that an amendment removed, and puts their results in words. A check that
 * failed and was then removed must not vanish from the report, so two sources are merged:
 * provenance.json, and the amendments' own lists of changes. Checks that the present plan declares
 * again are not listed.
 */
#include <math.h>
#include <string.h>

#include "prereg/amend/amend_known.h"
#include "truthtable/report/document/fmt.h"
#include "truthtable/report/report_apparatus.h"
#include "truthtable/report/verdict_words.h"

struct gone_check {
    struct check_gone *list;
    size_t n;
    size_t cap;
};

/* Whether the plan, as it is now, has the check. */
static bool is_declared(const struct plan_program *p, const char *name)
{
    for (size_t i = 0; i < p->n_apparatus; i++) {
        if (strcmp(p->apparatus[i].name, name) == 0) {
            return true;
        }
    }
    return false;
}

/* Adds a removed check. If several amendments removed it, the last one counts. */
static void find(struct arena *a, const struct report_model *m, struct gone_check *f,
                 const char *name, double amendment)
{
    /* A check that came back is not gone. */
    if (name == NULL || is_declared(m->program, name)) {
        return;
    }
    for (size_t i = 0; i < f->n; i++) {
        if (strcmp(f->list[i].name, name) == 0) {
            f->list[i].amendment = amendment;
            return;
        }
    }
    if (f->n == f->cap) {
        struct check_gone *more = arena_array(a, 2 * f->cap + 4, sizeof(*more));
        for (size_t i = 0; i < f->n; i++) {
            more[i] = f->list[i];
        }
        f->list = more;
        f->cap = 2 * f->cap + 4;
    }
    f->list[f->n++] = (struct check_gone){.name = name, .amendment = amendment};
}

/* A change may remove all checks (plan.apparatus) or one (plan.apparatus.NAME). */
static void see_change(struct arena *a, const struct report_model *m, struct gone_check *f,
                       const cJSON *change, double amendment)
{
    const cJSON *path = member(change, "path");
    const char *first = cJSON_GetStringValue(cJSON_GetArrayItem(path, 0));
    const char *second = cJSON_GetStringValue(cJSON_GetArrayItem(path, 1));
    const int n = cJSON_GetArraySize(path);
    const cJSON *check = NULL;
    if (first == NULL || second == NULL || strcmp(first, "plan") != 0 ||
        strcmp(second, "apparatus") != 0) {
        return;
    }
    if (n == 3 && member(change, "to") == NULL) {
        find(a, m, f, cJSON_GetStringValue(cJSON_GetArrayItem(path, 2)), amendment);
    }
    if (n != 2) {
        return;
    }
    cJSON_ArrayForEach(check, member(change, "from"))
    {
        find(a, m, f, check->string, amendment);
    }
}

/* What the amendment itself bears of it, where provenance.json has nothing. */
static const cJSON *results_of(const struct report_model *m, const struct check_gone *gone)
{
    const cJSON *results = member(report_check(m, gone->name), "results");
    const cJSON *amendment = NULL;
    /* provenance.json is newer than any amendment and is preferred. */
    if (cJSON_GetArraySize(results) > 0) {
        return results;
    }
    cJSON_ArrayForEach(amendment, m->amendments)
    {
        if (member_number(amendment, "number") == gone->amendment) {
            return member(amendment, AMENDMENT_KNOWN);
        }
    }
    return NULL;
}

/* Counts the results of the check and those that did not hold. */
static void count(const struct report_model *m, struct check_gone *gone)
{
    const cJSON *result = NULL;
    gone->results = results_of(m, gone);
    cJSON_ArrayForEach(result, gone->results)
    {
        /* An amendment lists results of all checks that it touched. */
        const bool is_its = strcmp(words_member(result, "check"), gone->name) == 0;
        gone->n_results += is_its ? 1 : 0;
        gone->n_failed += is_its && cJSON_IsFalse(member(result, "holds")) ? 1 : 0;
    }
}

/* provenance.json first; the amendments then add numbers, and checks that provenance.json lacks. */
size_t report_apparatus_gone(struct arena *a, const struct report_model *m, struct check_gone **out)
{
    struct gone_check f = {0};
    const cJSON *check = NULL;
    const cJSON *amendment = NULL;
    cJSON_ArrayForEach(check, member(m->provenance, "apparatus"))
    {
        if (cJSON_IsFalse(member(check, "declared"))) {
            find(a, m, &f, member_text(check, "name"), (double)NAN);
        }
    }
    cJSON_ArrayForEach(amendment, m->amendments)
    {
        const cJSON *change = NULL;
        cJSON_ArrayForEach(change, member(amendment, "changes"))
        {
            see_change(a, m, &f, change, member_number(amendment, "number"));
        }
    }
    for (size_t i = 0; i < f.n; i++) {
        count(m, &f.list[i]);
    }
    *out = f.list;
    return f.n;
}

/* "attempt 1: score.acc: expected 0.5 within 0.02, got 0.4", of those that did not hold. */
static const char *failed_words(struct arena *a, const struct check_gone *gone)
{
    const char *text = "";
    const cJSON *result = NULL;
    cJSON_ArrayForEach(result, gone->results)
    {
        if (strcmp(words_member(result, "check"), gone->name) == 0 &&
            cJSON_IsFalse(member(result, "holds"))) {
            text = arena_printf(a, "%s%sattempt %s: %s", text, text[0] == '\0' ? "" : "; ",
                                words_count(a, result, "attempt"), words_member(result, "text"));
        }
    }
    return text;
}

/* One check: that it failed, that it held, or that no result is known. */
static const char *sentence(struct arena *a, const struct report_model *m,
                            const struct check_gone *gone)
{
    const size_t n_attempts = member_count(report_check(m, gone->name), "attempts");
    const char *by = isfinite(gone->amendment)
                         ? arena_printf(a, "amendment %s", fmt_whole(a, gone->amendment))
                         : "an amendment";
    if (gone->n_failed > 0) {
        return arena_printf(
            a, "The apparatus check %s was declared, DID NOT HOLD (%s), and was taken away by %s.",
            gone->name, failed_words(a, gone), by);
    }
    if (gone->n_results > 0) {
        return arena_printf(a,
                            "The apparatus check %s was declared, held as was demanded then, and "
                            "was taken away by %s.",
                            gone->name, by);
    }
    return arena_printf(
        a, "The apparatus check %s was declared and was taken away by %s; %s.", gone->name, by,
        m->provenance == NULL ? "what came of it is not known"
        : n_attempts > 0      ? arena_printf(a, "%s of it left no result on record",
                                             fmt_plural(a, (int64_t)n_attempts, "attempt", "attempts"))
                              : "no result of it is on record");
}

/* All sentences in one paragraph. */
const char *report_apparatus_gone_words(struct arena *a, const struct report_model *m, bool *failed)
{
    struct check_gone *gone = NULL;
    const size_t n = report_apparatus_gone(a, m, &gone);
    const char *text = "";
    for (size_t i = 0; i < n; i++) {
        text = arena_printf(a, "%s%s%s", text, i == 0 ? "" : " ", sentence(a, m, &gone[i]));
        if (failed != NULL) {
            *failed = *failed || gone[i].n_failed > 0;
        }
    }
    return n == 0 ? NULL : text;
}
