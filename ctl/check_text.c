#include "ctl/check_text.h"

#include <stdio.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/xalloc.h"
#include "ctl/ask.h"

static double number(const cJSON *object, const char *key, double fallback)
{
    const cJSON *v = json_member(object, key);
    return cJSON_IsNumber(v) ? v->valuedouble : fallback;
}

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

static void add_plan(struct strbuf *sb, const struct term *t, const struct program *p,
                     const cJSON *plan)
{
    char span[48];
    out_styled(sb, t, STYLE_BOLD, p->name);
    strbuf_addf(sb, "  %lld cells, %lld tasks", (long long)answer_int(plan, "cells", 0),
                (long long)answer_int(plan, "tasks", 0));
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

static void add_lines(struct strbuf *sb, const char *heading, const cJSON *list)
{
    if (list != NULL && list->child != NULL) {
        strbuf_addf(sb, "  %s\n", heading);
    }
    for (const cJSON *v = list ? list->child : NULL; v != NULL; v = v->next) {
        strbuf_addf(sb, "    %s\n", cJSON_IsString(v) ? v->valuestring : "?");
    }
}

static void add_table(struct strbuf *sb, const cJSON *table, bool whole)
{
    strbuf_addf(sb, "\ntable: %lld combinations of levels, %lld rows, %lld holes, %lld clashes\n",
                (long long)answer_int(table, "combinations", 0),
                (long long)answer_int(table, "rows", 0), (long long)answer_int(table, "holes", 0),
                (long long)answer_int(table, "clashes", 0));
    if (cJSON_IsNumber(json_member(table, "partial_states"))) {
        strbuf_addf(sb, "%lld partial states, of which %lld end INDETERMINATE\n",
                    (long long)answer_int(table, "partial_states", 0),
                    (long long)answer_int(table, "indeterminate_states", 0));
    } else {
        strbuf_adds(sb, "too many partial states to count\n");
    }
    if (whole) {
        add_lines(sb, "the first that end INDETERMINATE:", json_member(table, "indeterminate"));
    }
}

/* Row number, its levels, its outcome, whether it was reached. */
static void add_rows(struct strbuf *sb, const struct term *t, const struct program *p,
                     const cJSON *reach)
{
    static const struct out_column columns[] = {{"row", "row", OUT_COUNT},
                                                {"levels", "levels", OUT_TEXT},
                                                {"outcome", "outcome", OUT_TEXT},
                                                {"reach", "reach", OUT_TEXT}};
    const cJSON *said = json_member(reach, "rows");
    cJSON *rows = json_array();
    for (size_t i = 0; i < p->n_rows; i++) {
        struct strbuf levels = STRBUF_INIT;
        cJSON *row = json_object();
        for (size_t k = 0; k < p->n_table_inputs; k++) {
            const struct input *in = &p->inputs[p->table_inputs[k]];
            strbuf_addf(&levels, "%s%s", k > 0 ? ", " : "", in->levels[p->rows[i].levels[k]].name);
        }
        const cJSON *word = cJSON_GetArrayItem(said, (int)i);
        json_put_int(row, "row", (int64_t)i + 1);
        json_put_string(row, "levels", levels.buf);
        json_put_string(row, "outcome", p->outcomes[p->rows[i].outcome].name);
        json_put_string(row, "reach", cJSON_IsString(word) ? word->valuestring : NULL);
        json_push(rows, row);
        strbuf_release(&levels);
    }
    strbuf_addc(sb, '\n');
    out_table(sb, t, rows, columns, ARRAY_LEN(columns));
    cJSON_Delete(rows);
}

static void add_outcomes(struct strbuf *sb, const struct term *t, const struct program *p,
                         const cJSON *proof)
{
    static const struct out_column columns[] = {{"outcome", "name", OUT_TEXT},
                                                {"prior", "prior", OUT_NUMBER},
                                                {"reach", "word", OUT_TEXT},
                                                {"title", "title", OUT_TEXT}};
    const cJSON *said = json_member(json_member(proof, "reach"), "outcomes");
    cJSON *rows = json_array();
    for (size_t i = 0; i < p->n_outcomes; i++) {
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

static void add_witnesses(struct strbuf *sb, const cJSON *reach)
{
    strbuf_addf(
        sb, "\nscores that bind an outcome (means of the conditions, in their order; %lld tried)\n",
        (long long)answer_int(reach, "trials", 0));
    const cJSON *outcomes = json_member(reach, "outcomes");
    for (const cJSON *o = outcomes ? outcomes->child : NULL; o != NULL; o = o->next) {
        strbuf_addf(sb, "  %s: %s\n", answer_text(o, "name", "?"),
                    answer_text(o, "scores", "none found"));
    }
}

static void add_measures(struct strbuf *sb, const struct term *t, const struct program *p,
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
        const struct measure *m = &p->measures[i];
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

/* What is equal there (the contract) and what is not; nothing where no worker said anything. */
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
    };
    const cJSON *contrast = NULL;
    strbuf_addc(sb, '\n');
    out_table(sb, t, json_member(fixed, "conditions"), columns, ARRAY_LEN(columns));
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

void check_text(struct strbuf *sb, const struct term *t, const struct program *p,
                const cJSON *proof, bool whole)
{
    const cJSON *reach = json_member(proof, "reach");
    add_plan(sb, t, p, json_member(proof, "plan"));
    add_table(sb, json_member(proof, "table"), whole);
    if (whole) {
        add_rows(sb, t, p, reach);
    }
    add_outcomes(sb, t, p, proof);
    if (whole) {
        add_witnesses(sb, reach);
    }
    add_measures(sb, t, p, proof);
    add_fixed(sb, t, json_member(proof, "fixed"));
}
