/*
 * Formats effects and the first error, one line for each. The input is verdict.json, possibly from
 * a receipt of a stranger, so every member may be missing or of another type: each access has a
 * fallback, and control characters in names are replaced. Proportions are printed in hundredths and
 * differences with their sign.
 */
#include "truthtable/evaluate/effect_lines.h"

#include <assert.h>
#include <string.h>

#include "base/json/json.h"
#include "prereg/program/verdict_kind.h"
#include "truthtable/evaluate/effects.h"

/* A text of the verdict, or what to print without it. */
static const char *text_at(const cJSON *o, const char *key, const char *otherwise)
{
    const cJSON *v = json_member(o, key);
    return cJSON_IsString(v) ? v->valuestring : otherwise;
}

/* Proportions are printed as percentages. */
static bool is_proportion(const cJSON *effect)
{
    return strcmp(text_at(effect, "unit", ""), UNIT_PROPORTION) == 0;
}

/* A difference has its sign; a proportion is printed in hundredths. */
static void add_number(const cJSON *effect, const cJSON *v, bool is_difference, struct strbuf *out)
{
    if (!cJSON_IsNumber(v)) {
        strbuf_adds(out, "unbounded");
    } else if (is_proportion(effect)) {
        strbuf_addf(out, is_difference ? "%+.2f" : "%.2f", 100 * v->valuedouble);
    } else {
        strbuf_addf(out, is_difference ? "%+.4g" : "%.4g", v->valuedouble);
    }
}

/* A metric without a known unit is named instead. */
static void add_unit(const cJSON *effect, bool is_difference, struct strbuf *out)
{
    const char *unit = text_at(effect, "unit", NULL);
    const char *metric = text_at(effect, "metric", NULL);
    if (unit != NULL && is_proportion(effect)) {
        strbuf_adds(out, is_difference ? " percentage points" : " %");
    } else if (unit != NULL) {
        strbuf_addf(out, " %s", unit);
    } else if (metric != NULL) {
        strbuf_addf(out, " (unit of %s)", metric);
    }
}

/* The value with its unit, its bounds where it is a range, or why it is not known. False: the
 * last. */
static bool add_value(const cJSON *effect, bool is_difference, struct strbuf *out)
{
    const cJSON *value = json_member(effect, "value");
    const cJSON *bounds = json_member(effect, "value_bounds");
    if (cJSON_IsNumber(value)) {
        add_number(effect, value, is_difference, out);
    } else if (cJSON_IsArray(bounds)) {
        add_number(effect, cJSON_GetArrayItem(bounds, 0), is_difference, out);
        strbuf_adds(out, " to ");
        add_number(effect, cJSON_GetArrayItem(bounds, 1), is_difference, out);
    } else {
        strbuf_addf(out, "not known (%s)", text_at(effect, "why", "no reason was given"));
        return false;
    }
    add_unit(effect, is_difference, out);
    return true;
}

/* What n counts follows the number. */
static void add_n(const cJSON *effect, const char *what, struct strbuf *out)
{
    const cJSON *n = json_member(effect, "n");
    if (cJSON_IsNumber(n)) {
        strbuf_addf(out, ", n = %.0f%s%s", n->valuedouble, what[0] == '\0' ? "" : " ", what);
    }
}

/* The interval, or why there is none. */
static void add_interval(const cJSON *effect, struct strbuf *out)
{
    const cJSON *low = json_member(effect, "low");
    const cJSON *high = json_member(effect, "high");
    if (!cJSON_IsNumber(low) || !cJSON_IsNumber(high)) {
        strbuf_addf(out, ", no interval (%s)", text_at(effect, "interval_why", "not known"));
        return;
    }
    strbuf_adds(out, ", 95 % interval ");
    add_number(effect, low, true, out);
    strbuf_adds(out, " to ");
    add_number(effect, high, true, out);
    strbuf_addf(out, " over %s", text_at(effect, "over", "replicates"));
}

/* The mean over measures, and its range over (measure, setting) pairs. */
static void add_pooled(const cJSON *effect, struct strbuf *out)
{
    const cJSON *min = json_member(effect, "min");
    const cJSON *max = json_member(effect, "max");
    const bool cleared = strcmp(text_at(effect, "pooled_over", ""), "cleared") == 0;
    strbuf_addf(out, ", mean over the measures that %s: ", cleared ? "cleared" : "count");
    if (!add_value(effect, true, out)) {
        return;
    }
    if (cJSON_IsNumber(min) && cJSON_IsNumber(max)) {
        strbuf_adds(out, " (from ");
        add_number(effect, min, true, out);
        strbuf_adds(out, " to ");
        add_number(effect, max, true, out);
        strbuf_addc(out, ')');
    }
    add_n(effect, "(measures x settings)", out);
}

/* Names separated by commas, with `before` ahead of the first; nothing for an empty list. */
static void add_names(const cJSON *names, const char *before, struct strbuf *out)
{
    const cJSON *name = NULL;
    bool first = true;
    cJSON_ArrayForEach(name, names)
    {
        if (cJSON_IsString(name)) {
            strbuf_addf(out, "%s%s", first ? before : ", ", name->valuestring);
            first = false;
        }
    }
}

/* How many measures reach their floor, which ones, and which may. */
static void add_counter(const cJSON *effect, struct strbuf *out)
{
    const cJSON *value = json_member(effect, "value");
    const cJSON *bounds = json_member(effect, "value_bounds");
    const cJSON *n = json_member(effect, "n");
    const bool every_cell = strcmp(text_at(effect, "clears", ""), "every_cell") == 0;
    const bool is_one = cJSON_IsNumber(value) && value->valuedouble >= 1 && value->valuedouble < 2;
    if (cJSON_IsNumber(value)) {
        strbuf_addf(out, ": %.0f", value->valuedouble);
    } else {
        const cJSON *low = cJSON_GetArrayItem(bounds, 0);
        const cJSON *high = cJSON_GetArrayItem(bounds, 1);
        strbuf_addf(out, ": %.0f to %.0f", cJSON_IsNumber(low) ? low->valuedouble : 0.0,
                    cJSON_IsNumber(high) ? high->valuedouble : 0.0);
    }
    strbuf_addf(out, " of %.0f measures %s in %s", cJSON_IsNumber(n) ? n->valuedouble : 0.0,
                is_one ? "reaches its floor" : "reach their floor",
                every_cell ? "every cell" : "the mean of each arm");
    add_names(json_member(effect, "clear"), ": ", out);
    add_names(json_member(effect, "open"), "; undetermined: ", out);
}

/* Levels may be any text; a line stays one. */
static void flatten(struct strbuf *sb, size_t from)
{
    for (size_t i = from; i < sb->len; i++) {
        const unsigned char c = (unsigned char)sb->buf[i];
        sb->buf[i] = c < ' ' || c == 0x7f ? '?' : sb->buf[i];
    }
}

/* The whole line: name, sides, value, interval, n. Unknown kinds are printed like a mean. */
static void add_effect(const cJSON *effect, struct strbuf *out)
{
    static const char prefix[] = "contrast.";
    const char *kind = text_at(effect, "kind", "");
    const char *name = text_at(effect, "name", "?");
    const char *a = text_at(effect, "a", NULL);
    const char *b = text_at(effect, "b", NULL);
    const bool of_contrast = strncmp(name, prefix, strlen(prefix)) == 0;
    strbuf_adds(out, of_contrast ? name + strlen(prefix) : name);
    if (a != NULL && b != NULL) {
        strbuf_addf(out, ", %s - %s", a, b);
    }
    if (strcmp(kind, "pooled") == 0) {
        add_pooled(effect, out);
    } else if (strcmp(kind, "counter") == 0) {
        add_counter(effect, out);
    } else {
        /* A slope is one, too: a difference for each step of the levels. */
        const bool is_trend = strcmp(kind, "trend") == 0;
        const bool is_rank = strcmp(kind, "rank") == 0;
        const bool is_difference = is_trend || strcmp(kind, "difference") == 0;
        strbuf_adds(out, ": ");
        if (!add_value(effect, is_difference, out)) {
            return;
        }
        strbuf_adds(out, is_trend ? " a level" : "");
        if (is_difference) {
            add_interval(effect, out);
        }
        add_n(effect, is_difference ? "" : is_rank ? "levels" : "cells", out);
    }
}

/* One effect on one line, whatever its names contain. */
static void add_effect_line(const cJSON *effect, struct strbuf *out)
{
    const size_t from = out->len;
    add_effect(effect, out);
    flatten(out, from);
}

/* A line of "HEAD: TEXT". */
static void add_line(const char *indent, const char *head, const char *text, struct strbuf *out)
{
    const size_t from = out->len;
    strbuf_addf(out, "%s%s: %s", indent, head, text);
    flatten(out, from);
    strbuf_addc(out, '\n');
}

/* Counts all effects, but prints only the first `max`. */
void effect_lines(const cJSON *verdict, size_t max, const char *indent, struct strbuf *out)
{
    assert(indent != NULL && out != NULL);
    const cJSON *effect = NULL;
    size_t n = 0;
    cJSON_ArrayForEach(effect, json_member(verdict, "effects"))
    {
        if (n++ < max) {
            strbuf_adds(out, indent);
            add_effect_line(effect, out);
            strbuf_addc(out, '\n');
        }
    }
    if (n > max) {
        strbuf_addf(out, "%sand %zu more (`preregctl verdict --json`)\n", indent, n - max);
    }
}

/* For the command that shows more of the error. */
const char *effect_error_task(const cJSON *verdict)
{
    return text_at(json_member(verdict, "first_error"), "task", NULL);
}

/* The first open input is enough: the report lists all. */
void effect_error_lines(const cJSON *verdict, const char *indent, struct strbuf *out)
{
    assert(indent != NULL && out != NULL);
    const char *outcome = text_at(verdict, "outcome", "");
    const char *what = text_at(json_member(verdict, "first_error"), "what", NULL);
    const bool is_open = verdict_kind_of(outcome) == VERDICT_INDETERMINATE;
    if (what != NULL) {
        add_line(indent, "first error", what, out);
    }
    const cJSON *input = NULL;
    cJSON_ArrayForEach(input, json_member(verdict, "inputs"))
    {
        if (is_open && text_at(input, "level", NULL) == NULL) {
            struct strbuf head = STRBUF_INIT;
            strbuf_addf(&head, "input %s is open", text_at(input, "name", "?"));
            add_line(indent, head.buf, text_at(input, "why", "no reason was given"), out);
            strbuf_release(&head);
            break;
        }
    }
}
