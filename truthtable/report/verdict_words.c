/*
 * The verdict in sentences. All texts are derived from verdict.json and the locked plan; nothing is
 * decided here. An open input is described as open, never by its likeliest level.
 */
#include "truthtable/report/verdict_words.h"

#include <math.h>
#include <string.h>

#include "base/json/json.h"
#include "base/strbuf.h"
#include "truthtable/report/document/fmt.h"

/* Absent provenance counts as unverified. */
bool words_history_is_unverified(const struct report_model *m)
{
    const char *history = member_text(m->provenance, "history");
    /* Imported programs have a notice of their own. */
    if (m->imported != NULL) {
        return false; /* it has none, and says so */
    }
    return history == NULL || strcmp(history, "verified") != 0;
}

/* Without provenance, only that the figures follow from the records. */
const char *words_assurance(const struct report_model *m)
{
    const char *level = member_text(m->provenance, "assurance");
    return level == NULL ? "self-consistent" : level;
}

/* Rows are numbered from 1, as in verdict.json. */
bool words_row_fires(const struct report_model *m, size_t row)
{
    return row >= 1 && row <= m->program->n_rows && m->row_fires[row - 1];
}

/* An input that the verdict does not list rules nothing out. */
bool words_level_is_possible(const cJSON *reading, const char *level)
{
    const cJSON *possible = member(reading, "possible");
    if (possible == NULL) {
        return true;
    }
    const cJSON *name = NULL;
    cJSON_ArrayForEach(name, possible)
    {
        if (cJSON_IsString(name) && strcmp(name->valuestring, level) == 0) {
            return true;
        }
    }
    return false;
}

/* Separated by commas, with `last` before the last part. */
const char *words_join(struct arena *a, const char *const *parts, size_t n, const char *last)
{
    struct strbuf text = STRBUF_INIT;
    for (size_t i = 0; i < n; i++) {
        if (i > 0) {
            strbuf_adds(&text, i + 1 == n ? last : ", ");
        }
        strbuf_adds(&text, parts[i]);
    }
    const char *kept = arena_strdup(a, text.buf);
    strbuf_release(&text);
    return kept;
}

/* For table cells, which always have a text. */
const char *words_member(const cJSON *obj, const char *key)
{
    const char *text = member_text(obj, key);
    return text == NULL ? FMT_NONE : text;
}

/* For remarks, which are missing where there is nothing to remark. */
const char *words_or_empty(const cJSON *obj, const char *key)
{
    const char *text = member_text(obj, key);
    return text == NULL ? "" : text;
}

/* Texts as they are; anything else as JSON on one line. */
const char *words_value(struct arena *a, const cJSON *v)
{
    if (cJSON_IsString(v)) {
        return v->valuestring;
    }
    if (v == NULL) {
        return FMT_NONE;
    }
    struct strbuf text = STRBUF_INIT;
    struct err ignored = {0};
    const char *kept = json_line(v, &text, &ignored) == 0 ? arena_strdup(a, text.buf) : FMT_NONE;
    strbuf_release(&text);
    return kept;
}

/* An em dash for an empty list. */
const char *words_list(struct arena *a, const cJSON *list)
{
    const char *text = "";
    const cJSON *v = NULL;
    cJSON_ArrayForEach(v, list)
    {
        if (cJSON_IsString(v)) {
            text = arena_printf(a, "%s%s%s", text, text[0] == '\0' ? "" : ", ", v->valuestring);
        }
    }
    return text[0] == '\0' ? FMT_NONE : text;
}

/* Counts are whole numbers; an unknown one is an em dash. */
const char *words_count(struct arena *a, const cJSON *obj, const char *key)
{
    return fmt_whole(a, member_number(obj, key));
}

/* One number if both ends agree. */
const char *words_interval(struct arena *a, const cJSON *pair)
{
    const cJSON *low = cJSON_GetArrayItem(pair, 0);
    const cJSON *high = cJSON_GetArrayItem(pair, 1);
    if (!cJSON_IsNumber(low) || !cJSON_IsNumber(high)) {
        return FMT_NONE;
    }
    const char *from = fmt_whole(a, low->valuedouble);
    if (low->valuedouble >= high->valuedouble) {
        return from;
    }
    return arena_printf(a, "%s to %s", from, fmt_whole(a, high->valuedouble));
}

/* "none" is possible: a table may have no row for a reading that never occurs. */
const char *words_rows_fired(struct arena *a, const struct report_model *m)
{
    const cJSON *fired = member(m->verdict, "rows_fired");
    size_t n = member_count(m->verdict, "rows_fired");
    if (n == 0) {
        return "none";
    }
    const char **parts = arena_array(a, n, sizeof(*parts));
    const cJSON *row = NULL;
    size_t i = 0;
    cJSON_ArrayForEach(row, fired)
    {
        parts[i++] = cJSON_IsNumber(row) ? fmt_whole(a, row->valuedouble) : FMT_NONE;
    }
    return words_join(a, parts, n, " and ");
}

/* "magnitude and direction stay open, cleared is 0": the inputs in the table's order, open ones
 * first. */
static const char *inputs_phrase(struct arena *a, const struct report_model *m, size_t *n_open)
{
    size_t n = member_count(m->verdict, "inputs");
    const char **open = arena_array(a, n + 1, sizeof(*open));
    const char **read = arena_array(a, n + 1, sizeof(*read));
    size_t n_read = 0;
    const cJSON *input = NULL;
    *n_open = 0;
    cJSON_ArrayForEach(input, member(m->verdict, "inputs"))
    {
        const char *name = member_text(input, "name");
        const char *level = member_text(input, "level");
        /* Decided inputs are quoted with their level, open ones only named. */
        if (name != NULL && level != NULL) {
            read[n_read++] = arena_printf(a, "%s is \xe2\x80\x9c%s\xe2\x80\x9d", name, level);
        } else if (name != NULL) {
            open[(*n_open)++] = name;
        }
    }
    const char *read_text = words_join(a, read, n_read, " and ");
    if (*n_open == 0) {
        return read_text;
    }
    const char *open_text = arena_printf(a, "%s %s open", words_join(a, open, *n_open, " and "),
                                         *n_open == 1 ? "stays" : "stay");
    return n_read == 0 ? open_text : arena_printf(a, "%s while %s", read_text, open_text);
}

/* "None of the 3 counted measures clears its floor. " from the counter that binds, when it is
 * decided; else "". */
static const char *counter_sentence(struct arena *a, const struct report_model *m)
{
    const struct plan_program *p = m->program;
    if (p->binding_counter == INDEX_NONE) {
        return "";
    }
    const cJSON *range =
        member(member(m->verdict, "counters"), p->counters[p->binding_counter].name);
    const cJSON *low = cJSON_GetArrayItem(range, 0);
    const cJSON *high = cJSON_GetArrayItem(range, 1);
    size_t n = 0;
    for (size_t i = 0; i < p->n_measures; i++) {
        n += p->measures[i].counted && p->measures[i].has_floor ? 1 : 0;
    }
    /* A range is not a count, and an open counter gets no sentence. */
    if (!cJSON_IsNumber(low) || !cJSON_IsNumber(high) || low->valuedouble < high->valuedouble ||
        n == 0) {
        return "";
    }
    if (n == 1) {
        return low->valuedouble > 0 ? "The counted measure clears its floor. "
                                    : "The counted measure does not clear its floor. ";
    }
    if (low->valuedouble <= 0) {
        return arena_printf(a, "None of the %zu counted measures clears its floor. ", n);
    }
    return arena_printf(a, "%.0f of the %zu counted measures %s. ", low->valuedouble, n,
                        low->valuedouble > 1 ? "clear their floors" : "clears its floor");
}

/* One row fires, or several that agree. */
static const char *bound_lead(struct arena *a, const struct report_model *m)
{
    size_t n_open = 0;
    const char *phrase = inputs_phrase(a, m, &n_open);
    const char *outcome = member_text(m->verdict, "outcome");
    const char *rows = words_rows_fired(a, m);
    /* "Can fire" is for several rows: which one it is stays open, but the outcome does not. */
    if (member_count(m->verdict, "rows_fired") == 1) {
        return arena_printf(a, "%sIn the data, %s: row %s of the table fires, and it names %s.",
                            counter_sentence(a, m), phrase, rows, outcome);
    }
    return arena_printf(
        a, "%sIn the data, %s: rows %s of the table can fire, and every one of them names %s.",
        counter_sentence(a, m), phrase, rows, outcome);
}

/* Names the outcomes that remain possible. */
static const char *indeterminate_lead(struct arena *a, const struct report_model *m)
{
    size_t n_open = 0;
    const char *phrase = inputs_phrase(a, m, &n_open);
    const struct plan_program *p = m->program;
    const char **names = arena_array(a, p->n_outcomes + 1, sizeof(*names));
    bool *is_named = arena_array(a, p->n_outcomes + 1, sizeof(*is_named));
    size_t n = 0;
    for (size_t r = 0; r < p->n_rows; r++) {
        is_named[p->rows[r].outcome] = is_named[p->rows[r].outcome] || m->row_fires[r];
    }
    /* An outcome is named once, however many of its rows fire, in the order of the plan. */
    for (size_t o = 0; o < p->n_outcomes; o++) {
        if (is_named[o]) {
            names[n++] = p->outcomes[o].name;
        }
    }
    return arena_printf(a,
                        "%sIn the data, %s: rows %s of the table can fire, and they name %s. The "
                        "data do not choose between them.",
                        counter_sentence(a, m), phrase, words_rows_fired(a, m),
                        words_join(a, names, n, " and "));
}

/* The reason of a VOID is the verdict's own sentence. */
const char *words_lead(struct arena *a, const struct report_model *m)
{
    const char *why = member_text(m->verdict, "why");
    switch (m->kind) {
    case VERDICT_BOUND: return bound_lead(a, m);
    case VERDICT_VOID:
        return arena_printf(a,
                            "By a locked rule: %s. No outcome is read off the table, whichever "
                            "rows would fire.",
                            why != NULL ? why
                                        : "the program named what must hold, and it does not");
    case VERDICT_INDETERMINATE: return indeterminate_lead(a, m);
    }
    return "";
}

/* For VOID, says what the table would have read. */
const char *words_reading(struct arena *a, const struct report_model *m)
{
    size_t n_open = 0;
    const char *phrase = inputs_phrase(a, m, &n_open);
    size_t n_rows = m->program->n_rows;
    size_t n_fired = member_count(m->verdict, "rows_fired");
    /* The rule that readers ask about first. */
    const char *open_note = n_open == 0 ? ""
                                        : " An open input keeps every level that the data do not "
                                          "rule out; it is never given a default.";
    const char *rows = fmt_plural(a, (int64_t)n_rows, "row", "rows");
    if (m->kind == VERDICT_VOID) {
        return arena_printf(a,
                            "The comparison is void: what follows shows what the table would have "
                            "read, and binds nothing. %s; %zu of the %s would fire.%s",
                            phrase, n_fired, rows, open_note);
    }
    return arena_printf(a, "Read off mechanically: %s. %zu of the %s fire%s.%s", phrase, n_fired,
                        rows, n_fired == 1 ? "s" : "", open_note);
}
