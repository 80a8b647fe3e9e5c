/*
 * Draws the JSON of the proofs, so that --json and the text cannot disagree: no figure is computed
 * here but counts of rows. The order is that of the questions a user has: how large is the plan, is
 * the table total, which rows and outcomes can come about, are the measures precise enough, what is
 * held fixed.
 */
#include "ctl/text/check_text.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/json/json.h"
#include "base/text.h"
#include "base/xalloc.h"
#include "ctl/ask.h"

/* A number among the object's members, or the fallback. */
static double number(const cJSON *object, const char *key, double fallback)
{
    const cJSON *v = json_member(object, key);
    return cJSON_IsNumber(v) ? v->valuedouble : fallback;
}

/* "1.5 GiB". */
static void add_bytes(struct strbuf *sb, double bytes)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    size_t i = 0;
    while (bytes >= 1024 && i + 1 < ARRAY_LEN(units)) {
        bytes /= 1024;
        i++;
    }
    strbuf_addf(sb, "%.3g %s", bytes, units[i]);
}

/* Size and cost of the plan; costs that no worker reported are left out. */
static void add_plan(struct strbuf *sb, const struct term *t, const struct plan_program *p,
                     const cJSON *plan)
{
    char span[48];
    out_styled(sb, t, STYLE_BOLD, p->name);
    strbuf_adds(sb, "  ");
    strbuf_add_count(sb, answer_int(plan, "cells", 0), "cell", "cells");
    strbuf_adds(sb, ", ");
    strbuf_add_count(sb, answer_int(plan, "tasks", 0), "task", "tasks");
    const int64_t other_names = answer_int(plan, "other_names", 0);
    if (other_names > 0) {
        strbuf_addf(sb, " (%lld of them another name of a work)", (long long)other_names);
    }
    const int64_t reused = answer_int(plan, "reused", 0);
    if (reused > 0) {
        strbuf_addf(sb, " (%lld of them reused)", (long long)reused);
    }
    double petaflops = number(plan, "petaflops", -1);
    if (petaflops >= 0) {
        strbuf_addf(sb, ", %.3g FLOPs", petaflops * 1e15);
    }
    double disk = number(plan, "disk_bytes", -1);
    if (disk >= 0) {
        strbuf_adds(sb, ", disk ");
        add_bytes(sb, disk);
    }
    double seconds = number(plan, "seconds", -1);
    if (seconds >= 0) {
        strbuf_addf(sb, ", %s one after another",
                    clock_span_text((int64_t)(seconds * 1000), span, sizeof(span)));
    }
    strbuf_addf(sb, "\n%s\n", p->question);
}

/* A heading and its lines, or nothing for an empty list. */
static void add_lines(struct strbuf *sb, const char *heading, const cJSON *list)
{
    if (list != NULL && list->child != NULL) {
        strbuf_addf(sb, "  %s\n", heading);
    }
    for (const cJSON *v = list ? list->child : NULL; v != NULL; v = v->next) {
        strbuf_addf(sb, "    %s\n", cJSON_IsString(v) ? v->valuestring : "?");
    }
}

/* Totality of the table, and how many partial states end INDETERMINATE (too many to count: said
 * so). */
static void add_table(struct strbuf *sb, const cJSON *table, bool whole)
{
    const int64_t n_indeterminate = answer_int(table, "indeterminate_states", 0);
    strbuf_adds(sb, "\ntable: ");
    strbuf_add_count(sb, answer_int(table, "combinations", 0), "combination", "combinations");
    strbuf_adds(sb, " of levels, ");
    strbuf_add_count(sb, answer_int(table, "rows", 0), "row", "rows");
    strbuf_adds(sb, ", ");
    strbuf_add_count(sb, answer_int(table, "holes", 0), "hole", "holes");
    strbuf_adds(sb, ", ");
    strbuf_add_count(sb, answer_int(table, "clashes", 0), "clash", "clashes");
    strbuf_addc(sb, '\n');
    if (cJSON_IsNumber(json_member(table, "partial_states"))) {
        strbuf_add_count(sb, answer_int(table, "partial_states", 0), "partial state",
                         "partial states");
        strbuf_addf(sb, ", of which %lld %s INDETERMINATE\n", (long long)n_indeterminate,
                    text_plural(n_indeterminate, "ends", "end"));
    } else {
        strbuf_adds(sb, "too many partial states to count\n");
    }
    if (whole) {
        add_lines(sb, "the first that end INDETERMINATE:", json_member(table, "indeterminate"));
    }
}

/* "a, b, c" of an array of texts or numbers. */
static void add_joined(struct strbuf *sb, const cJSON *list)
{
    for (const cJSON *v = list ? list->child : NULL; v != NULL; v = v->next) {
        strbuf_adds(sb, v == list->child ? "" : ", ");
        if (cJSON_IsString(v)) {
            strbuf_adds(sb, v->valuestring);
        } else {
            strbuf_addf(sb, "%g", v->valuedouble);
        }
    }
}

/* How the row can be reached, with the scores that reach it, or why nothing can. */
static void add_reach(struct strbuf *sb, const cJSON *row)
{
    const cJSON *with = json_member(row, "fires_with");
    strbuf_addf(sb, "    %s", answer_text(row, "reach", "?"));
    if (with != NULL && with->child != NULL) {
        strbuf_adds(sb, " (with rows ");
        add_joined(sb, with);
        strbuf_addc(sb, ')');
    }
    if (cJSON_IsString(json_member(row, "scores"))) {
        strbuf_addf(sb, ": %s", answer_text(row, "scores", ""));
    } else if (cJSON_IsString(json_member(row, "why"))) {
        strbuf_addf(sb, ": %s", answer_text(row, "why", ""));
    }
    strbuf_addc(sb, '\n');
}

/* One row of the table: levels, outcome, how it is reached, and which single gaps leave it open. */
static void add_row(struct strbuf *sb, const struct term *t, const cJSON *row)
{
    char head[32];
    const cJSON *needs = json_member(row, "needs");
    (void)snprintf(head, sizeof(head), "  row %lld", (long long)answer_int(row, "row", 0));
    out_styled(sb, t, STYLE_BOLD, head);
    strbuf_adds(sb, "  ");
    add_joined(sb, json_member(row, "levels"));
    strbuf_addf(sb, " -> %s\n", answer_text(row, "outcome", "?"));
    add_reach(sb, row);
    if (cJSON_IsArray(needs) && needs->child != NULL) {
        strbuf_adds(sb, "    open alone, each of these leaves INDETERMINATE: ");
        add_joined(sb, needs);
        strbuf_addc(sb, '\n');
    } else if (cJSON_IsArray(needs)) {
        strbuf_adds(sb, "    binds still when any one input is open\n");
    }
}

/* All rows that were explained; --json has those beyond. */
static void add_rows(struct strbuf *sb, const struct term *t, const struct plan_program *p,
                     const cJSON *explained)
{
    const cJSON *rows = json_member(explained, "rows");
    /* rows that were not explained here */
    int64_t left = answer_int(explained, "total", 0) - cJSON_GetArraySize(rows);
    strbuf_adds(sb, "\nthe rows, by their levels of ");
    for (size_t i = 0; i < p->n_table_inputs; i++) {
        strbuf_addf(sb, "%s%s", i > 0 ? ", " : "", p->inputs[p->table_inputs[i]].name);
    }
    strbuf_adds(sb, "; scores are means of the conditions, in their order\n");
    for (const cJSON *row = rows ? rows->child : NULL; row != NULL; row = row->next) {
        add_row(sb, t, row);
    }
    const cJSON *first = rows ? rows->child : NULL;
    if (first != NULL && cJSON_IsNumber(json_member(first, "states"))) {
        strbuf_adds(sb, "each row fires in ");
        strbuf_add_count(sb, answer_int(first, "states", 0), "partial state", "partial states");
        strbuf_addc(sb, '\n');
    }
    if (left > 0) {
        strbuf_add_count(sb, left, "more row", "more rows");
        strbuf_addf(sb, "; --json has %s\n", text_plural(left, "it", "them all"));
    }
}

/* Counts the rows of each kind, by the words that the proof uses. */
static void add_row_counts(struct strbuf *sb, const cJSON *reach)
{
    static const char *const words[] = {"witnessed alone", "witnessed", "impossible", "not shown"};
    size_t n[ARRAY_LEN(words)] = {0};
    const cJSON *rows = json_member(reach, "rows");
    for (const cJSON *r = rows ? rows->child : NULL; r != NULL; r = r->next) {
        for (size_t i = 0; i < ARRAY_LEN(words) && cJSON_IsString(r); i++) {
            n[i] += strcmp(r->valuestring, words[i]) == 0 ? 1 : 0;
        }
    }
    strbuf_addf(sb, "rows: %zu witnessed alone, %zu with others, %zu impossible, %zu not shown\n",
                n[0], n[1], n[2], n[3]);
}

/* The outcomes with their priors and whether scores were found that reach them. */
static void add_outcomes(struct strbuf *sb, const struct term *t, const struct plan_program *p,
                         const cJSON *proof)
{
    static const struct out_column columns[] = {{"outcome", "name", OUT_TEXT},
                                                {"prior", "prior", OUT_NUMBER},
                                                {"reach", "word", OUT_TEXT},
                                                {"title", "title", OUT_TEXT}};
    const cJSON *said = json_member(json_member(proof, "reach"), "outcomes");
    cJSON *rows = json_array();
    for (size_t i = 0; i < p->n_outcomes; i++) {
        /* the proof lists outcomes and measures in the plan's order */
        const cJSON *o = cJSON_GetArrayItem(said, (int)i);
        const char *reach = answer_text(o, "reach", "not shown");
        cJSON *row = json_object();
        json_put_string(row, "name", p->outcomes[i].name);
        json_put_number(row, "prior", p->outcomes[i].prior);
        json_put_string(row, "word", answer_bool(o, "binds") ? "witnessed, binds" : reach);
        json_put_string(row, "title", p->outcomes[i].title);
        json_push(rows, row);
    }
    strbuf_addc(sb, '\n');
    out_table(sb, t, rows, columns, ARRAY_LEN(columns));
    const cJSON *priors = json_member(proof, "priors");
    strbuf_addf(sb, "priors sum to %g; %g is left for what the table does not name\n",
                number(priors, "sum", 0), number(priors, "remainder", 0));
    cJSON_Delete(rows);
}

/* The scores that the search found for each outcome. */
static void add_witnesses(struct strbuf *sb, const cJSON *reach)
{
    strbuf_addf(
        sb, "\nscores that fire an outcome (means of the conditions, in their order; %lld tried)\n",
        (long long)answer_int(reach, "trials", 0));
    const cJSON *outcomes = json_member(reach, "outcomes");
    for (const cJSON *o = outcomes ? outcomes->child : NULL; o != NULL; o = o->next) {
        bool found = cJSON_IsString(json_member(o, "scores"));
        strbuf_addf(sb, "  %s%s: %s\n", answer_text(o, "name", "?"),
                    !found                    ? ""
                    : answer_bool(o, "binds") ? ", which binds"
                                              : ", beside others",
                    answer_text(o, "scores", "none found"));
    }
}

/* A row for each measure, with its floor's distance from chance and the smallest detectable
 * difference. */
static void add_measures(struct strbuf *sb, const struct term *t, const struct plan_program *p,
                         const cJSON *proof)
{
    static const struct out_column columns[] = {
        {"measure", "name", OUT_TEXT},       {"items", "items", OUT_COUNT},
        {"chance", "chance", OUT_NUMBER},    {"floor", "floor", OUT_NUMBER},
        {"above chance", "above", OUT_TEXT}, {"detects", "detects", OUT_TEXT},
        {"counted", "counted", OUT_YES},
    };
    const cJSON *said = json_member(proof, "measures");
    cJSON *rows = json_array();
    for (size_t i = 0; i < p->n_measures; i++) {
        const struct plan_measure *m = &p->measures[i];
        const cJSON *o = cJSON_GetArrayItem(said, (int)i);
        cJSON *row = json_object();
        char text[64];
        json_put_string(row, "name", m->name);
        if (m->has_items) {
            json_put_int(row, "items", m->items);
        }
        if (m->has_chance) {
            json_put_number(row, "chance", m->chance);
        }
        if (m->has_floor) {
            json_put_number(row, "floor", m->floor);
        }
        if (cJSON_IsNumber(json_member(o, "floor_above_chance"))) {
            (void)snprintf(text, sizeof(text), "%.2f s.e.", number(o, "floor_above_chance", 0));
            json_put_string(row, "above", text);
        }
        if (cJSON_IsNumber(json_member(o, "detectable_difference"))) {
            (void)snprintf(text, sizeof(text), "%.4f", number(o, "detectable_difference", 0));
            json_put_string(row, "detects", text);
        }
        json_put_bool(row, "counted", m->counted);
        json_push(rows, row);
    }
    strbuf_addc(sb, '\n');
    out_table(sb, t, rows, columns, ARRAY_LEN(columns));
    cJSON_Delete(rows);
}

/* What is equal there (the contract) and what is not; nothing where no worker reported anything. */
static void add_fixed_words(struct strbuf *sb, const char *label, const cJSON *words)
{
    const char *equal = answer_text(words, "equal", "");
    const char *differ = answer_text(words, "not_equal", "");
    const char *unknown = answer_text(words, "unknown", "");
    if (equal[0] || differ[0]) {
        strbuf_addf(sb, "%s\n  equal (the contract): %s\n", label, equal[0] ? equal : "nothing");
        strbuf_addf(sb, "  not equal: %s\n", differ[0] ? differ : "nothing");
    }
    if (unknown[0]) {
        strbuf_addf(sb, "  unknown: %s\n", unknown);
    }
}

/* Whether some row has a number there. */
static bool is_said(const cJSON *rows, const char *key)
{
    const cJSON *row = NULL;
    cJSON_ArrayForEach(row, rows)
    {
        if (cJSON_IsNumber(json_member(row, key))) {
            return true;
        }
    }
    return false;
}

/* What is held fixed over all conditions, then between the arms of each contrast. Columns that no
 * worker says anything of are left out; "unknown" names them. */
static void add_fixed(struct strbuf *sb, const struct term *t, const cJSON *fixed)
{
    static const struct out_column columns[] = {
        {"held fixed", "condition", OUT_TEXT},
        {"P total", "P_total", OUT_COUNT},
        {"P active", "P_active", OUT_COUNT},
        {"ffn", "active ffn width", OUT_COUNT},
        {"tokens", "tokens", OUT_COUNT},
        {"per P total", "tokens/P_total", OUT_NUMBER},
        {"per P active", "tokens/P_active", OUT_NUMBER},
        {"per expert", "tokens per expert", OUT_COUNT},
        {"FLOPs/token", "FLOPs per token", OUT_COUNT},
        {"steps", "steps", OUT_COUNT},
        {"passes", "passes over the data", OUT_NUMBER},
        {"unique per expert", "unique tokens per expert", OUT_COUNT},
    };
    const cJSON *conditions = json_member(fixed, "conditions");
    const cJSON *contrast = NULL;
    struct out_column shown[ARRAY_LEN(columns)] = {columns[0]};
    size_t n = 1;
    for (size_t i = 1; i < ARRAY_LEN(columns); i++) {
        if (is_said(conditions, columns[i].key)) {
            shown[n++] = columns[i];
        }
    }
    strbuf_addc(sb, '\n');
    if (n == 1) {
        strbuf_addf(sb, "held fixed: no worker states %s (docs/python-workers.md)\n",
                    answer_text(fixed, "unknown", "anything"));
        return;
    }
    out_table(sb, t, conditions, shown, n);
    add_fixed_words(sb, "over all conditions", fixed);
    cJSON_ArrayForEach(contrast, json_member(fixed, "contrasts"))
    {
        char label[128];
        (void)snprintf(label, sizeof(label), "between the arms of %s",
                       answer_text(contrast, "contrast", "?"));
        if (answer_text(contrast, "equal", "")[0] || answer_text(contrast, "not_equal", "")[0]) {
            add_fixed_words(sb, label, contrast);
        }
    }
}

/* The parts in their order; see the head of this file. */
void check_text(struct strbuf *sb, const struct term *t, const struct plan_program *p,
                const cJSON *proof, const cJSON *explained)
{
    bool whole = explained != NULL;
    const cJSON *reach = json_member(proof, "reach");
    add_plan(sb, t, p, json_member(proof, "plan"));
    add_table(sb, json_member(proof, "table"), whole);
    add_row_counts(sb, reach);
    if (whole) {
        add_rows(sb, t, p, explained);
    }
    add_outcomes(sb, t, p, proof);
    if (whole) {
        add_witnesses(sb, reach);
    }
    add_measures(sb, t, p, proof);
    add_fixed(sb, t, json_member(proof, "fixed"));
}
