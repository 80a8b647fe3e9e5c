/*
 * The section "Apparatus": the checks of a reference model with every attempt, and the machines
 * that attempts ran on. What was required is shown as it was at the time of an attempt, since
 * amendments may have changed it. Host names are replaced by labels; provenance.json has them.
 */
#include <math.h>
#include <string.h>

#include "base/xalloc.h"
#include "truthtable/report/document/fmt.h"
#include "truthtable/report/report_apparatus.h"
#include "truthtable/report/sections/json_columns.h"
#include "truthtable/report/sections/row_columns.h"
#include "truthtable/report/sections/sections.h"
#include "truthtable/report/verdict_words.h"

#define MACHINES_MAX ((size_t)32)

/* A declared check as it stood at the verdict, or one attempt of a check with what was required
 * then. What is not known is NAN. */
struct check_row {
    const char *check;
    const char *metric;
    double value; /* required */
    double within;
    struct row_cell came;
    struct row_cell reading;
    double no;         /* of the attempt; of a check: how many it had */
    const char *ended; /* of the attempt */
    double amendment;  /* by which it was read then */
    const char *why;
};

/* "0.5 +- 0.02". */
static void required_cell(const struct doc_slot *s)
{
    const struct check_row *row = s->row;
    struct arena *a = s->arena;
    doc_number(s,
               isfinite(row->value) ? arena_printf(a, "%s \xc2\xb1 %s", fmt_short(a, row->value, 6),
                                                   fmt_short(a, row->within, 4))
                                    : FMT_NONE,
               row->value);
    doc_datum(s, "within", row->within);
}

static void reading_then_cell(const struct doc_slot *s)
{
    row_cell_flag(s);
    doc_datum(s, "amendment", ((const struct check_row *)s->row)->amendment);
}

/* What a reference model scored. */
static struct row_cell came(struct arena *a, double v)
{
    return (struct row_cell){.text = fmt_short(a, v, 6), .value = v};
}

/* One declared check. */
static struct check_row row_of_check(struct arena *a, const struct report_model *m,
                                     const struct plan_apparatus *declared)
{
    const cJSON *check = report_check(m, declared->name);
    const int holds = json_flag(member(check, "holds"));
    const size_t n_attempts = member_count(check, "attempts");
    const bool is_again = declared->first != INDEX_NONE;
    const char *why = member_text(check, "why");
    if (is_again && why == NULL && holds == 1) {
        why = arena_printf(a, "the first time: %s", fmt_short(a, member_number(check, "first"), 6));
    }
    return (struct check_row){
        .check = is_again
                     ? arena_printf(a, "%s, again", m->program->apparatus[declared->first].name)
                     : declared->name,
        .metric = declared->metric_text,
        .value = declared->value,
        .within = declared->within,
        .came = came(a, member_number(check, "value")),
        .reading = row_holds(holds, "not measured"),
        .no = check == NULL ? (double)NAN : (double)n_attempts,
        .why = why != NULL                            ? why
               : check == NULL && m->imported == NULL ? "not on record"
               : check == NULL                        ? "records were imported"
               : holds >= 0                           ? ""
               : n_attempts == 0                      ? "no attempt was made"
                                                      : "no attempt left a score",
    };
}

/* One attempt, with its score and how that was read at the time. What the program required then is
 * in the result; without a result it is the declaration, provided that nothing amended it (`fixed`,
 * or NULL). Without a score a check did not fail, it was not measured. */
static struct check_row row_of_attempt(struct arena *a, const cJSON *check, const cJSON *attempt,
                                       const struct plan_apparatus *fixed)
{
    const cJSON *result = report_check_result(check, attempt);
    const double v =
        result == NULL ? member_number(attempt, "came") : member_number(result, "value");
    const int holds = json_flag(member(result, "holds"));
    const bool is_declared = result == NULL && fixed != NULL;
    struct check_row row = {
        .check = words_member(check, "name"),
        .metric = is_declared ? fixed->metric_text : words_member(result, "metric"),
        .value = is_declared ? fixed->value : member_number(result, "expected"),
        .within = is_declared ? fixed->within : member_number(result, "within"),
        .came = came(a, v),
        .reading = row_holds(holds == 0 && !isfinite(v) ? -1 : holds,
                             isfinite(v) ? "not on record" : "not measured"),
        .no = member_number(attempt, "no"),
        .ended = member_text(attempt, "ended"),
        .amendment = member_number(result, "amendment"),
    };
    row.reading.flag = holds;
    return row;
}

/* Adds the attempts of one check. *t: the table, created with its first row. */
static void add_attempts_of(struct doc *d, const struct report_model *m, const char *name,
                            const struct plan_apparatus *fixed, struct doc_table **t)
{
    static const struct doc_column columns[] = {
        ROW_TEXT("Check", struct check_row, check),
        ROW_FIGURE("Attempt", row_cell_count, struct check_row, no),
        ROW_TEXT("Ended", struct check_row, ended),
        ROW_TEXT("Metric", struct check_row, metric),
        COLUMN("Required then", ALIGN_NUMBER, required_cell),
        ROW_VALUE("Came", struct check_row, came),
        ROW_COLUMN("Reading then", ALIGN_TEXT, reading_then_cell, "holds", struct check_row,
                   reading),
    };
    const cJSON *check = report_check(m, name);
    const cJSON *attempt = NULL;
    cJSON_ArrayForEach(attempt, member(check, "attempts"))
    {
        if (*t == NULL) {
            *t = doc_table(d, "apparatus-attempts",
                           "Every attempt of a check that was made more than once or was taken "
                           "away: what was required when it was made, and what it scored.",
                           columns, ARRAY_LEN(columns));
        }
        const struct check_row row = row_of_attempt(&d->arena, check, attempt, fixed);
        (void)doc_row(d, *t, &row);
    }
}

/* Checks with one attempt are complete in the table above; removed checks show all of theirs. */
static void add_check_attempts(struct doc *d, const struct report_model *m)
{
    struct doc_table *t = NULL;
    struct check_gone *gone = NULL;
    const size_t n_gone = report_apparatus_gone(&d->arena, m, &gone);
    for (size_t i = 0; i < m->program->n_apparatus; i++) {
        const struct plan_apparatus *check = &m->program->apparatus[i];
        /* An amended check has no fixed demand to fall back on. */
        if (member_count(report_check(m, check->name), "attempts") > 1) {
            const bool amended = report_check_is_amended(m, check->name);
            add_attempts_of(d, m, check->name, amended ? NULL : check, &t);
        }
    }
    for (size_t i = 0; i < n_gone; i++) {
        add_attempts_of(d, m, gone[i].name, NULL, &t);
    }
}

/* Removed and amended checks get a notice: what is required now is not the whole story. */
static void add_checks(struct doc *d, const struct report_model *m)
{
    static const struct doc_column columns[] = {
        ROW_TEXT("Check", struct check_row, check),
        ROW_TEXT("Metric", struct check_row, metric),
        COLUMN("Required", ALIGN_NUMBER, required_cell),
        ROW_VALUE("Came", struct check_row, came),
        ROW_FIGURE("Attempts", row_cell_count, struct check_row, no),
        ROW_FLAG("Reading", "holds", struct check_row, reading),
        ROW_TEXT("Remark", struct check_row, why),
    };
    const size_t n = m->program->n_apparatus;
    struct doc_table *t =
        n == 0 ? NULL
               : doc_table(d, "apparatus",
                           "What a reference model had to score, on this very apparatus, before "
                           "any counted evaluation might start, and again after the last one.",
                           columns, ARRAY_LEN(columns));
    for (size_t i = 0; i < n; i++) {
        if (!report_check_is_shown(m, i)) {
            continue;
        }
        const struct check_row row = row_of_check(&d->arena, m, &m->program->apparatus[i]);
        (void)doc_row(d, t, &row);
    }
    bool failed = false;
    const char *gone = report_apparatus_gone_words(&d->arena, m, &failed);
    if (n == 0) {
        doc_paragraph(
            d, gone == NULL ? "The program asks for no measurement of a reference model."
                            : "The program asks for no measurement of a reference model any more.");
    }
    if (gone != NULL) {
        doc_notice(d, failed ? TONE_BAD : TONE_WARN, "%s", gone);
    }
    const char *amended = report_apparatus_amended(&d->arena, m);
    if (amended != NULL) {
        doc_notice(d, TONE_WARN, "What is required above is not what was required at first. %s",
                   amended);
    }
    add_check_attempts(d, m);
}

/* What an attempt ran on, as far as it is known. Attempts that left no result know no library. */
struct machine {
    const char *host;
    const char *label; /* "host 1": a report is made to be shown, provenance.json has the name */
    const char *cpu;
    const char *kernel;
    const char *blas;
    const char *core;
    const char *instructions;
    const char *worker;
    double threads;
    size_t n;
    const char *stages;
};

/* A member's text, or the replacement for one that is missing or empty. */
static const char *member_or(const cJSON *attempt, const char *key, const char *other)
{
    const char *text = member_text(attempt, key);
    return text == NULL || text[0] == '\0' ? other : text;
}

/* The processor, and the models of the GPUs that the attempt was given: "CPU; 2 x NVIDIA H100". */
static const char *processors_of(struct arena *a, const cJSON *attempt)
{
    const char *text = member_or(attempt, "cpu", FMT_NONE);
    const cJSON *gpus = member(attempt, "gpus");
    const cJSON *g = cJSON_IsArray(gpus) ? gpus->child : NULL;
    while (g != NULL) {
        const char *model = member_or(g, "model", "GPU");
        size_t n = 1; /* one attempt has GPUs of one model */
        for (g = g->next; g != NULL && strcmp(member_or(g, "model", "GPU"), model) == 0;
             g = g->next) {
            n++;
        }
        text = arena_printf(a, "%s; %zu x %s", text, n, model);
    }
    return text;
}

/* The environment that an attempt recorded. */
static struct machine machine_of(struct arena *a, const cJSON *attempt)
{
    return (struct machine){.host = member_or(attempt, "host", FMT_NONE),
                            .cpu = processors_of(a, attempt),
                            .kernel = member_or(attempt, "kernel", FMT_NONE),
                            .blas = member_or(attempt, "blas", FMT_NONE),
                            .core = member_or(attempt, "core", FMT_NONE),
                            .instructions = member_or(attempt, "instructions", FMT_NONE),
                            .worker = member_or(attempt, "worker", FMT_NONE),
                            .threads = member_number(attempt, "threads")};
}

/* Two attempts share a row if everything recorded agrees. */
static bool same_machine(const struct machine *a, const struct machine *b)
{
    bool same_threads = a->threads == b->threads || (isnan(a->threads) && isnan(b->threads));
    return same_threads && strcmp(a->host, b->host) == 0 && strcmp(a->cpu, b->cpu) == 0 &&
           strcmp(a->kernel, b->kernel) == 0 && strcmp(a->blas, b->blas) == 0 &&
           strcmp(a->core, b->core) == 0 && strcmp(a->instructions, b->instructions) == 0 &&
           strcmp(a->worker, b->worker) == 0;
}

struct machines {
    struct machine seen[MACHINES_MAX];
    size_t n;
    size_t n_left_out; /* attempts on others than these */
};

/* The label of the host in the table, which the receipt gives it, too (ctl/receipt/hosts.c). */
static const char *label_of(struct arena *a, const struct machines *all, const char *host)
{
    if (strcmp(host, FMT_NONE) == 0) {
        return host;
    }
    size_t n_hosts = 0;
    for (size_t i = 0; i < all->n; i++) {
        size_t first = 0;
        if (strcmp(all->seen[i].host, host) == 0) {
            return all->seen[i].label;
        }
        /* Counts hosts in order of first appearance: "host 1", "host 2". */
        while (strcmp(all->seen[first].host, all->seen[i].host) != 0) {
            first++;
        }
        n_hosts += first == i && strcmp(all->seen[i].host, FMT_NONE) != 0 ? 1 : 0;
    }
    return arena_printf(a, "host %zu", n_hosts + 1);
}

/* Whether "train, score" names the stage; "pretrain" does not name "train". */
static bool lists_stage(const char *stages, const char *stage)
{
    const size_t len = strlen(stage);
    const char *at = stages;
    while (at != NULL && (strncmp(at, stage, len) != 0 || (at[len] != '\0' && at[len] != ','))) {
        at = strstr(at, ", ");
        at = at == NULL ? NULL : at + 2;
    }
    return at != NULL;
}

/* Finds or adds the machine of an attempt, and counts it. */
static void see_attempt(struct arena *a, struct machines *all, const cJSON *attempt,
                        const char *stage)
{
    struct machine now = machine_of(a, attempt);
    size_t i = 0;
    while (i < all->n && !same_machine(&all->seen[i], &now)) {
        i++;
    }
    /* A fleet of machines is counted, not listed. */
    if (i == MACHINES_MAX) {
        all->n_left_out++;
        return;
    }
    if (i == all->n) {
        now.stages = stage;
        now.label = label_of(a, all, now.host);
        all->seen[all->n++] = now;
    }
    struct machine *machine = &all->seen[i];
    machine->n++;
    if (!lists_stage(machine->stages, stage)) {
        machine->stages = arena_printf(a, "%s, %s", machine->stages, stage);
    }
}

/* Core and instruction set are named only if what is before them does not contain them. */
static void library_cell(const struct doc_slot *s)
{
    const struct machine *machine = s->row;
    const char *text = machine->blas;
    if (strcmp(machine->core, FMT_NONE) != 0 && strstr(text, machine->core) == NULL) {
        text = arena_printf(s->arena, "%s, core %s", text, machine->core);
    }
    if (strcmp(machine->instructions, FMT_NONE) != 0 &&
        strstr(text, machine->instructions) == NULL) {
        text = arena_printf(s->arena, "%s, %s", text, machine->instructions);
    }
    s->cell->text = text;
}

static void worker_cell(const struct doc_slot *s)
{
    s->cell->text = fmt_cut(s->arena, ((const struct machine *)s->row)->worker, 12);
}

/* Every attempt is counted, those of tasks that failed included. */
static void add_machines(struct doc *d, const struct report_model *m)
{
    static const struct doc_column columns[] = {
        ROW_TEXT("Stages", struct machine, stages),
        ROW_FIGURE("Attempts", row_cell_tally, struct machine, n),
        ROW_TEXT("Host", struct machine, label),
        ROW_TEXT("Processor", struct machine, cpu),
        ROW_TEXT("Kernel", struct machine, kernel),
        COLUMN("Linear algebra", ALIGN_TEXT, library_cell),
        ROW_FIGURE("Threads", row_cell_number, struct machine, threads),
        COLUMN("Worker", ALIGN_TEXT, worker_cell),
    };
    struct machines *all = arena_alloc(&d->arena, sizeof(*all));
    const cJSON *task = NULL;
    cJSON_ArrayForEach(task, member(m->provenance, "tasks"))
    {
        const cJSON *attempt = NULL;
        cJSON_ArrayForEach(attempt, member(task, "attempts"))
        {
            see_attempt(&d->arena, all, attempt, words_member(task, "stage"));
        }
    }
    if (all->n == 0) {
        return;
    }
    struct doc_table *t = doc_table(
        d, "environments",
        "What the attempts ran on, as far as each left word of it; provenance.json has every "
        "attempt, and the names of the hosts. The worker is named by the first digits of its "
        "digest.",
        columns, ARRAY_LEN(columns));
    for (size_t i = 0; i < all->n; i++) {
        (void)doc_row(d, t, &all->seen[i]);
    }
    if (all->n_left_out > 0) {
        doc_paragraph(
            d, "%s on still others, not in this table.",
            fmt_plural(&d->arena, (int64_t)all->n_left_out, "attempt ran", "attempts ran"));
    }
}

/* Checks first: they say whether the scores can be believed at all. */
void section_apparatus(struct doc *d, const struct report_model *m)
{
    doc_section(d, "apparatus", "Apparatus");
    add_checks(d, m);
    tables_environments(d, m);
    add_machines(d, m);
}
