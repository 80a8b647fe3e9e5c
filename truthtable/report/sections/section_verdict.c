/*
 * The head of the report and the section "The truth table": what binds and why. Notices come before
 * everything else, so that a verdict is never read without knowing that its history is unverified,
 * its records imported, or its plan amended. Words come from verdict_words.h, effects from the same
 * function that the command line uses.
 */
#include <math.h>
#include <string.h>

#include "base/json/json.h"
#include "base/text.h"
#include "base/xalloc.h"
#include "truthtable/evaluate/effect_lines.h"
#include "truthtable/report/amendment_standing.h"
#include "truthtable/report/document/fmt.h"
#include "truthtable/report/report_apparatus.h"
#include "truthtable/report/sections/row_columns.h"
#include "truthtable/report/sections/sections.h"
#include "truthtable/report/verdict_words.h"

/* As many as a head bears; the rest is in the tables below it. */
#define EFFECTS_IN_HEAD 24

/* A bound outcome is neutral: it is neither good nor bad news. */
static enum doc_tone kind_tone(enum verdict_kind kind)
{
    return kind == VERDICT_BOUND ? TONE_PLAIN : kind == VERDICT_VOID ? TONE_BAD : TONE_WARN;
}

/* The line above the outcome. */
static const char *kind_label(enum verdict_kind kind)
{
    switch (kind) {
    case VERDICT_BOUND: return "Verdict: this outcome binds";
    case VERDICT_INDETERMINATE: return "Verdict: no outcome binds";
    case VERDICT_VOID: return "Verdict: the comparison is void";
    }
    return "";
}

/* The outcome's title, or a description of the kind when none binds. */
static const char *kind_title(const struct report_model *m, enum verdict_kind kind)
{
    /* A bound outcome has a title of its own. */
    const char *title = member_text(m->verdict, "title");
    if (title != NULL) {
        return title;
    }
    const cJSON *counted = member(member(m->verdict, "coverage"), "counted");
    /* A VOID has two possible reasons; the title names it. */
    if (kind == VERDICT_VOID &&
        member_number(counted, "excluded") > member_number(counted, "budget")) {
        return "More counted tasks were lost than the exclusion budget allows";
    }
    return kind == VERDICT_VOID ? "What had to hold for the comparison to be one did not hold"
                                : "The rows that still can fire name different outcomes";
}

/* The few numbers beside the verdict. */
static void banner_numbers(struct doc *d, const struct report_model *m)
{
    struct arena *a = &d->arena;
    struct doc_list *list = &d->banner.figures;
    /* The rows that fired are the verdict itself; the rest puts it in proportion. */
    const char *label = m->kind == VERDICT_VOID ? "Rows that would fire" : "Rows that fire";
    (void)doc_item(d, list, label, words_rows_fired(a, m));
    /* Only a bound outcome has a prior to show. */
    double prior = member_number(m->verdict, "prior");
    double bits = member_number(m->verdict, "surprisal_bits");
    if (isfinite(prior)) {
        (void)doc_item(
            d, list, "Prior of this outcome",
            arena_printf(a, "%s (%s bits)", fmt_short(a, prior, 4), fmt_fixed(a, bits, 3)));
    }
    const cJSON *tasks = member(member(m->verdict, "coverage"), "tasks");
    const cJSON *counted = member(member(m->verdict, "coverage"), "counted");
    /* Completeness belongs beside the verdict. */
    (void)doc_item(d, list, "Tasks done",
                   arena_printf(a, "%s of %s", words_count(a, tasks, "done"),
                                words_count(a, tasks, "planned")));
    double lost = member_number(counted, "excluded");
    /* Over the budget they are losses; within it they are exclusions. */
    bool over = lost > member_number(counted, "budget");
    const char *text = arena_printf(a, "%s (budget %s)", words_count(a, counted, "excluded"),
                                    words_count(a, counted, "budget"));
    struct doc_item *item =
        doc_item(d, list, over ? "Counted tasks lost" : "Counted tasks excluded", text);
    item->tone = over ? TONE_BAD : lost > 0 ? TONE_WARN : TONE_PLAIN;
    (void)doc_item(d, list, "Assurance", words_assurance(m));
    if (words_history_is_unverified(m)) {
        /* Repeated in a notice below: it must not be missed. */
        doc_item(d, list, "History", "UNVERIFIED HISTORY")->tone = TONE_BAD;
    }
    if (m->imported != NULL) {
        doc_item(d, list, "History", "none: imported")->tone = TONE_WARN;
    }
}

/* The lines that preregctl prints of the verdict, one item each. */
static void add_lines(struct doc *d, struct doc_list *list, const struct strbuf *lines)
{
    for (const char *line = lines->buf; *line != '\0';) {
        const size_t len = strcspn(line, "\n");
        doc_point(d, list, "%.*s", (int)len, line);
        line += len + (line[len] == '\n' ? 1 : 0);
    }
}

/* What the inputs read; and where no outcome binds, the first error and a command that shows
 * more. */
static void banner_effects(struct doc *d, const struct report_model *m)
{
    const char *task = effect_error_task(m->verdict);
    const bool is_bound = m->kind == VERDICT_BOUND;
    struct strbuf lines = STRBUF_INIT;
    effect_lines(m->verdict, EFFECTS_IN_HEAD, "", &lines);
    add_lines(d, &d->banner.effects, &lines);
    strbuf_clear(&lines);
    if (!is_bound) {
        effect_error_lines(m->verdict, "", &lines);
    }
    add_lines(d, &d->banner.errors, &lines);
    /* Imported programs have no daemon that could explain a task. */
    if (!is_bound && task != NULL && m->imported == NULL) {
        struct doc_item *item = doc_item(d, &d->banner.errors, "More of it",
                                         arena_printf(&d->arena, "preregctl explain %s", task));
        item->code = true;
    }
    strbuf_release(&lines);
}

/* Every text of a list as a notice. */
static void add_sentences(struct doc *d, const cJSON *list)
{
    const cJSON *note = NULL;
    cJSON_ArrayForEach(note, list)
    {
        if (cJSON_IsString(note)) {
            doc_notice(d, TONE_WARN, "%s", note->valuestring);
        }
    }
}

#define NARROWER_SHOWN 8

/* Tasks lost under narrowed limits leave no cancellation in the record, so each gets a notice. */
static void add_narrower(struct doc *d, const struct report_model *m)
{
    const cJSON *task = NULL;
    size_t n = 0;
    cJSON_ArrayForEach(task, member(m->verdict, "undetermined"))
    {
        const char *limits = member_text(task, "narrower");
        /* The first few by name, the rest by number. */
        if (limits == NULL || n++ >= NARROWER_SHOWN) {
            continue;
        }
        doc_notice(d, TONE_BAD, "%s, stage %s (%s: %s), under narrower limits of [run]: %s.",
                   member_text(task, "cell"), member_text(task, "stage"), member_text(task, "end"),
                   member_text(task, "cause"), limits);
    }
    if (n > NARROWER_SHOWN) {
        doc_notice(d, TONE_BAD, "%zu more %s lost under narrower limits of [run].",
                   n - NARROWER_SHOWN,
                   text_plural((int64_t)(n - NARROWER_SHOWN), "task was", "tasks were"));
    }
}

/* What a reader must know before reading on: where the records come from, what a person cut short,
 * what the engine noted. */
static void add_alarms(struct doc *d, const struct report_model *m)
{
    const char *label = member_text(m->verdict, "records");
    if (label != NULL) {
        doc_notice(d, TONE_WARN,
                   "The records behind this verdict were not executed here; they are labelled "
                   "\xe2\x80\x9c%s\xe2\x80\x9d.",
                   label);
    }
    const size_t n_by_person = report_n_by_person(m);
    if (n_by_person > 0) {
        doc_notice(
            d, TONE_BAD,
            "%s by a person. What depends on such a task is undetermined; it is never excluded.",
            fmt_plural(&d->arena, (int64_t)n_by_person, "task was ended or given up",
                       "tasks were ended or given up"));
    }
    add_narrower(d, m);
    add_sentences(d, member(m->verdict, "notes"));
    add_sentences(d, member(m->imported, "warnings"));
}

/* The plan that ran differs from the plan that was locked: says how often and when it was amended.
 */
static void add_amended(struct doc *d, const struct report_model *m)
{
    static const char *const said[STANDING_NR] = {
        [STANDING_ADVANCE] = "before there were scores",
        [STANDING_KNOWN] = "post hoc of apparatus checks, when results of them were known",
        [STANDING_SEALED] = "when scores existed, sealed",
        [STANDING_SEEN] = "post hoc, when scores had been seen"};
    struct arena *a = &d->arena;
    size_t n[STANDING_NR] = {0};
    const char *parts[STANDING_NR];
    size_t n_parts = 0;
    const cJSON *amendment = NULL;
    cJSON_ArrayForEach(amendment, m->amendments)
    {
        n[amendment_standing(amendment)]++;
    }
    for (size_t i = 0; i < STANDING_NR; i++) {
        if (n[i] > 0) {
            parts[n_parts++] = arena_printf(a, "%zu %s", n[i], said[i]);
        }
    }
    if (n_parts > 0) {
        doc_notice(d, TONE_WARN,
                   "The program was amended after its lock: %s, listed under Amendments and "
                   "unblindings.",
                   words_join(a, parts, n_parts, " and "));
    }
}

/* A removed check belongs in the head, above all if it had failed. */
static void add_apparatus_gone(struct doc *d, const struct report_model *m)
{
    bool failed = false;
    const char *gone = report_apparatus_gone_words(&d->arena, m, &failed);
    if (gone != NULL) {
        doc_notice(d, failed ? TONE_BAD : TONE_WARN, "%s", gone);
    }
}

/* Fills the banner, then adds the notices in the order of their weight. */
void section_banner(struct doc *d, const struct report_model *m)
{
    enum verdict_kind kind = m->kind;
    const char *outcome = member_text(m->verdict, "outcome");
    /* The banner first; notices follow it in the document. */
    d->banner.label = m->imported == NULL ? NULL : "IMPORTED RECORDS";
    d->banner.program = m->program->name;
    d->banner.root = m->lock->root;
    d->banner.head = member_text(m->verdict, "head");
    d->banner.question = m->program->question == NULL ? "" : m->program->question;
    d->banner.kind = kind_label(kind);
    d->banner.tone = kind_tone(kind);
    d->banner.outcome = outcome != NULL ? outcome : verdict_kind_word(kind);
    d->banner.title = kind_title(m, kind);
    /* One sentence that a reader can quote. */
    d->banner.lead = words_lead(&d->arena, m);
    banner_effects(d, m);
    banner_numbers(d, m);
    if (words_history_is_unverified(m)) {
        doc_notice(d, TONE_BAD,
                   "UNVERIFIED HISTORY: %s. The verdict follows from the records as they are on "
                   "disk; how they came about cannot be checked.",
                   m->provenance == NULL ? "there is no provenance.json beside the verdict"
                                         : "rows of the journal were missing, cut off or changed");
    }
    add_alarms(d, m);
    add_amended(d, m);
    add_apparatus_gone(d, m);
    /* Early looks at scores concern every reader. */
    size_t n_unblindings = member_count(m->provenance, "unblindings");
    if (n_unblindings > 0) {
        doc_notice(
            d, TONE_WARN,
            "Scores were unsealed before the verdict: %s, listed under Amendments and unblindings.",
            fmt_plural(&d->arena, (int64_t)n_unblindings, "unblinding", "unblindings"));
    }
}

/* An input's element in verdict.json. */
static const cJSON *input_reading(const struct report_model *m, const char *name)
{
    const cJSON *input = NULL;
    cJSON_ArrayForEach(input, member(m->verdict, "inputs"))
    {
        const char *of = member_text(input, "name");
        if (of != NULL && strcmp(of, name) == 0) {
            return input;
        }
    }
    return NULL;
}

struct level_row {
    const char *input;
    const char *level;
    const char *condition;
    struct row_cell reading;
    const char *why;
};

/* A row for each level, with what the data leave possible. Name and reason only in the input's
 * first row. */
static void add_input(struct doc *d, const struct report_model *m, struct doc_table *t,
                      size_t index)
{
    const struct plan_input *input = &m->program->inputs[index];
    const cJSON *reading = input_reading(m, input->name);
    const char *decided = member_text(reading, "level");
    for (size_t i = 0; i < input->n_levels; i++) {
        const char *level = input->levels[i].name;
        bool possible = words_level_is_possible(reading, level);
        /* A decided input has one possible level, which is lit. */
        bool is_decided = decided != NULL && strcmp(decided, level) == 0;
        const struct level_row row = {
            .input = i == 0 ? input->name : "",
            .level = level,
            .condition = input->levels[i].condition.text,
            .reading = {.text = is_decided ? "decided"
                                : possible ? "possible"
                                           : "ruled out",
                        .tone = possible ? TONE_PLAIN : TONE_MUTED},
            .why = i == 0 ? words_or_empty(reading, "why") : "",
        };
        doc_row(d, t, &row)->tone = is_decided ? TONE_LIT : TONE_PLAIN;
    }
}

/* Inputs of the table, in its order. */
static void add_inputs(struct doc *d, const struct report_model *m)
{
    static const struct doc_column columns[] = {
        ROW_TEXT("Input", struct level_row, input),
        ROW_TEXT("Level", struct level_row, level),
        ROW_TEXT("Condition, as locked", struct level_row, condition),
        ROW_TONED("Reading", struct level_row, reading),
        ROW_TEXT("Why", struct level_row, why),
    };
    struct doc_table *t = doc_table(
        d, "inputs",
        "The inputs of the table and what the data leave possible. A level is ruled out when its "
        "condition is false or an earlier level's is true; an input is decided when one level is "
        "left.",
        columns, ARRAY_LEN(columns));
    for (size_t i = 0; i < m->program->n_table_inputs; i++) {
        add_input(d, m, t, m->program->table_inputs[i]);
    }
}

struct counter_row {
    const char *name;
    const char *value;
    const char *clears;
    const char *contrast;
    const char *binds;
};

/* The counters, with the arms they compare and which one binds. */
static void add_counters(struct doc *d, const struct report_model *m)
{
    static const struct doc_column columns[] = {
        ROW_TEXT("Counter", struct counter_row, name),
        ROW_FIGURE("Value", row_cell_text, struct counter_row, value),
        ROW_TEXT("A measure clears when", struct counter_row, clears),
        ROW_TEXT("Arms of", struct counter_row, contrast),
        ROW_TEXT("Binds", struct counter_row, binds),
    };
    const struct plan_program *p = m->program;
    if (p->n_counters == 0) {
        return;
    }
    struct doc_table *t = doc_table(d, "counters",
                                    "Counters: how many counted measures clear their floors. A "
                                    "range is what open gates leave possible.",
                                    columns, ARRAY_LEN(columns));
    for (size_t i = 0; i < p->n_counters; i++) {
        const struct counter *c = &p->counters[i];
        const struct counter_row row = {
            .name = c->name,
            .value = words_interval(&d->arena, member(member(m->verdict, "counters"), c->name)),
            .clears = c->clears == CLEARS_EVERY_CELL ? "every cell of both arms does"
                                                     : "the mean of each arm does",
            .contrast = p->contrasts[c->contrast].name,
            .binds = c->binds ? "yes" : "no, reported"};
        (void)doc_row(d, t, &row);
    }
}

/* Which levels the data leave possible: [table input][level]. Read once, for a table may have 2^18
 * rows. */
static bool **possible_levels(struct arena *a, const struct report_model *m)
{
    const struct plan_program *p = m->program;
    bool **possible = arena_array(a, p->n_table_inputs, sizeof(*possible));
    for (size_t i = 0; i < p->n_table_inputs; i++) {
        const struct plan_input *input = &p->inputs[p->table_inputs[i]];
        const cJSON *reading = input_reading(m, input->name);
        possible[i] = arena_array(a, input->n_levels, sizeof(**possible));
        for (size_t l = 0; l < input->n_levels; l++) {
            possible[i][l] = words_level_is_possible(reading, input->levels[l].name);
        }
    }
    return possible;
}

/* A row of the truth table as it was read. */
struct table_row {
    struct row_cell number;
    const size_t *levels;  /* by table input */
    bool *const *possible; /* [table input][level] */
    const char *outcome;
    struct row_cell reading;
};

/* The level in the table input `n`, which the column is about. */
static void level_cell(const struct doc_slot *s)
{
    const struct table_row *row = s->row;
    const struct plan_input *input = s->column->of;
    const size_t level = row->levels[s->column->n];
    s->cell->text = input->levels[level].name;
    s->cell->tone = row->possible[s->column->n][level] ? TONE_PLAIN : TONE_MUTED;
}

/* Every input that keeps the row from firing is named, not only the first. */
static const char *ruled_out_by(struct arena *a, const struct plan_program *p,
                                bool *const *possible, const struct plan_row *row)
{
    const char *names = "";
    for (size_t i = 0; i < p->n_table_inputs; i++) {
        if (!possible[i][row->levels[i]]) {
            names = arena_printf(a, "%s%s%s", names, names[0] == '\0' ? "" : ", ",
                                 p->inputs[p->table_inputs[i]].name);
        }
    }
    return arena_printf(a, "ruled out by %s", names);
}

/* Every row, with its levels and whether it fires. Marks and tones agree. */
static void add_rows(struct doc *d, const struct report_model *m)
{
    static const struct doc_column first = ROW_VALUE("Row", struct table_row, number);
    static const struct doc_column last[] = {
        ROW_TEXT("Outcome", struct table_row, outcome),
        ROW_FLAG("Reading", "fires", struct table_row, reading),
    };
    const struct plan_program *p = m->program;
    struct doc_columns columns = doc_columns(d, &first, 1);
    for (size_t i = 0; i < p->n_table_inputs; i++) {
        const struct plan_input *input = &p->inputs[p->table_inputs[i]];
        *doc_column_add(d, &columns, NULL, NULL) =
            (struct doc_column){input->name, ALIGN_TEXT, level_cell, .n = (int)i, .of = input};
    }
    doc_columns_add(d, &columns, last, ARRAY_LEN(last));
    struct doc_table *t = doc_table(d, "truth-table",
                                    "The truth table as locked. A row fires when each of its "
                                    "levels is possible; the outcome binds when all rows that fire "
                                    "agree.",
                                    columns.items, columns.n);
    const bool is_void = m->kind == VERDICT_VOID;
    /* A void table still shows what would have fired, but never as a result. */
    const char *lit = is_void ? "\xe2\x97\x87 would fire" : "\xe2\x97\x86 fires";
    bool *const *possible = possible_levels(&d->arena, m);
    for (size_t i = 0; i < p->n_rows; i++) {
        const bool fires = words_row_fires(m, i + 1);
        const struct plan_row *r = &p->rows[i];
        const struct table_row row = {
            .number = {.text = arena_printf(&d->arena, "%zu", i + 1), .value = (double)(i + 1)},
            .levels = r->levels,
            .possible = possible,
            .outcome = p->outcomes[r->outcome].name,
            .reading = {.text = fires ? lit : ruled_out_by(&d->arena, p, possible, r),
                        .tone = fires ? TONE_PLAIN : TONE_MUTED,
                        .flag = fires},
        };
        doc_row(d, t, &row)->tone = !fires ? TONE_PLAIN : is_void ? TONE_WARN : TONE_LIT;
    }
}

/* A sentence on how the table was read precedes the table. */
void section_table(struct doc *d, const struct report_model *m)
{
    doc_section(d, "truth-table", "The truth table");
    doc_paragraph(d, "%s", words_reading(&d->arena, m));
    add_rows(d, m);
    add_inputs(d, m);
    add_counters(d, m);
}
