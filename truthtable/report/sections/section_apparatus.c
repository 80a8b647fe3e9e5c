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
#include "truthtable/report/sections/json_fields.h"
#include "truthtable/report/sections/row_fields.h"
#include "truthtable/report/sections/sections.h"
#include "truthtable/report/verdict_words.h"

#define MACHINES_MAX ((size_t)32)

/* "0.5 +- 0.02". */
static const char *required(struct arena *a, double value, double within)
{
    return arena_printf(a, "%s \xc2\xb1 %s", fmt_short(a, value, 6), fmt_short(a, within, 4));
}

/* One declared check, as it stood at the verdict. */
static void add_check(struct doc *d, const struct report_model *m, struct doc_table *t,
                      const struct plan_apparatus *declared)
{
    struct arena *a = &d->arena;
    const cJSON *check = report_check(m, declared->name);
    const cJSON *holds = member(check, "holds");
    const bool held = cJSON_IsTrue(holds);
    const char *why = member_text(check, "why");
    struct doc_row *row = doc_row(d, t);
    row->cells[0].text = declared->name;
    row->cells[1].text = declared->metric_text;
    doc_number(d, &row->cells[2], required(a, declared->value, declared->within), declared->value);
    doc_datum(d, &row->cells[2], "within", declared->within);
    double value = member_number(check, "value");
    doc_number(d, &row->cells[3], fmt_short(a, value, 6), value);
    doc_number(d, &row->cells[4],
               check == NULL ? FMT_NONE : fmt_count(a, (int64_t)member_count(check, "attempts")),
               check == NULL ? (double)NAN : (double)member_count(check, "attempts"));
    /* Three states: not measured is neither held nor failed. */
    row->cells[5].text = held ? "holds" : cJSON_IsFalse(holds) ? "FAILS" : "not measured";
    row->cells[5].tone = held ? TONE_GOOD : cJSON_IsFalse(holds) ? TONE_BAD : TONE_WARN;
    doc_flag(d, &row->cells[5], "holds", held ? 1 : cJSON_IsFalse(holds) ? 0 : -1);
    row->cells[6].text = why != NULL                            ? why
                         : check == NULL && m->imported == NULL ? "not on record"
                         : check == NULL                        ? "records were imported"
                         : cJSON_IsBool(holds)                  ? ""
                         : member_count(check, "attempts") == 0 ? "no attempt was made"
                                                                : "no attempt left a score";
}

/* What the program required when the attempt was made. The result has it; without a result it is
 * the declaration, provided that nothing amended it. */
static void add_demand(struct doc *d, struct doc_row *row, const cJSON *result,
                       const struct plan_apparatus *fixed)
{
    struct arena *a = &d->arena;
    double value = member_number(result, "expected");
    double within = member_number(result, "within");
    const char *metric = words_member(result, "metric");
    /* A declaration that was never amended is what was required then. */
    if (result == NULL && fixed != NULL) {
        value = fixed->value;
        within = fixed->within;
        metric = fixed->metric_text;
    }
    row->cells[3].text = metric;
    doc_number(d, &row->cells[4], isfinite(value) ? required(a, value, within) : FMT_NONE, value);
    doc_datum(d, &row->cells[4], "within", within);
}

/* One attempt, with its score and how that was read at the time. */
static void add_attempt(struct doc *d, struct doc_table *t, const char *name, const cJSON *attempt,
                        const cJSON *result)
{
    struct doc_row *row = doc_row(d, t);
    const cJSON *holds = member(result, "holds");
    const double came =
        result == NULL ? member_number(attempt, "came") : member_number(result, "value");
    /* Without a score a check did not fail, it was not measured. */
    const bool failed = cJSON_IsFalse(holds) && isfinite(came);
    row->cells[0].text = name;
    doc_number(d, &row->cells[1], words_count(&d->arena, attempt, "no"),
               member_number(attempt, "no"));
    row->cells[2].text = words_member(attempt, "ended");
    doc_number(d, &row->cells[5], fmt_short(&d->arena, came, 6), came);
    row->cells[6].text = cJSON_IsTrue(holds) ? "holds"
                         : failed            ? "FAILS"
                         : isfinite(came)    ? "not on record"
                                             : "not measured";
    row->cells[6].tone = cJSON_IsTrue(holds) ? TONE_GOOD : failed ? TONE_BAD : TONE_WARN;
    doc_flag(d, &row->cells[6], "holds", cJSON_IsTrue(holds) ? 1 : cJSON_IsFalse(holds) ? 0 : -1);
    doc_datum(d, &row->cells[6], "amendment", member_number(result, "amendment"));
}

/* Adds the attempts of one check. *t: the table, created with its first row. */
static void add_attempts_of(struct doc *d, const struct report_model *m, const char *name,
                            const struct plan_apparatus *fixed, struct doc_table **t)
{
    static const struct doc_column columns[] = {
        {"Check", ALIGN_TEXT},       {"Attempt", ALIGN_NUMBER},       {"Ended", ALIGN_TEXT},
        {"Metric", ALIGN_TEXT},      {"Required then", ALIGN_NUMBER}, {"Came", ALIGN_NUMBER},
        {"Reading then", ALIGN_TEXT}};
    const cJSON *check = report_check(m, name);
    const cJSON *attempt = NULL;
    cJSON_ArrayForEach(attempt, member(check, "attempts"))
    {
        if (*t == NULL) {
            *t = doc_table(d, "apparatus-attempts",
                           "Every attempt of a check that was made more than once or was taken "
                           "away: what was required when it was made, and what it scored.",
                           columns, 7);
        }
        const cJSON *result = report_check_result(check, attempt);
        add_attempt(d, *t, name, attempt, result);
        add_demand(d, (*t)->last, result, fixed);
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
    static const struct doc_column columns[] = {{"Check", ALIGN_TEXT},      {"Metric", ALIGN_TEXT},
                                                {"Required", ALIGN_NUMBER}, {"Came", ALIGN_NUMBER},
                                                {"Attempts", ALIGN_NUMBER}, {"Reading", ALIGN_TEXT},
                                                {"Remark", ALIGN_TEXT}};
    struct doc_table *t = NULL;
    for (size_t i = 0; i < m->program->n_apparatus; i++) {
        if (t == NULL) {
            t = doc_table(d, "apparatus",
                          "What a reference model had to score, on this very apparatus, before any "
                          "counted evaluation might start.",
                          columns, 7);
        }
        add_check(d, m, t, &m->program->apparatus[i]);
    }
    bool failed = false;
    const char *gone = report_apparatus_gone_words(&d->arena, m, &failed);
    if (t == NULL) {
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
                            .worker = member_or(attempt, "worker", FMT_NONE),
                            .threads = member_number(attempt, "threads")};
}

/* Two attempts share a row if everything recorded agrees. */
static bool same_machine(const struct machine *a, const struct machine *b)
{
    bool same_threads = a->threads == b->threads || (isnan(a->threads) && isnan(b->threads));
    return same_threads && strcmp(a->host, b->host) == 0 && strcmp(a->cpu, b->cpu) == 0 &&
           strcmp(a->kernel, b->kernel) == 0 && strcmp(a->blas, b->blas) == 0 &&
           strcmp(a->core, b->core) == 0 && strcmp(a->worker, b->worker) == 0;
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

/* The core is named only if the name of the library does not contain it. */
static void library_cell(struct doc *d, struct doc_cell *cell, const void *row,
                         const struct doc_field *field)
{
    const struct machine *machine = row;
    const bool has_core = strcmp(machine->core, FMT_NONE) != 0;
    (void)field;
    cell->text = has_core && strstr(machine->blas, machine->core) == NULL
                     ? arena_printf(&d->arena, "%s, core %s", machine->blas, machine->core)
                     : machine->blas;
}

static void worker_cell(struct doc *d, struct doc_cell *cell, const void *row,
                        const struct doc_field *field)
{
    (void)field;
    cell->text = fmt_cut(&d->arena, ((const struct machine *)row)->worker, 12);
}

/* Every attempt is counted, those of tasks that failed included. */
static void add_machines(struct doc *d, const struct report_model *m)
{
    static const struct doc_field fields[] = {
        ROW_TEXT("Stages", struct machine, stages),
        ROW_FIGURE("Attempts", row_field_tally, struct machine, n),
        ROW_TEXT("Host", struct machine, label),
        ROW_TEXT("Processor", struct machine, cpu),
        ROW_TEXT("Kernel", struct machine, kernel),
        FIELD_OWN("Linear algebra", ALIGN_TEXT, library_cell),
        ROW_FIGURE("Threads", row_field_number, struct machine, threads),
        FIELD_OWN("Worker", ALIGN_TEXT, worker_cell),
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
    struct doc_table *t = doc_table_of(
        d, "environments",
        "What the attempts ran on, as far as each left word of it; provenance.json has every "
        "attempt, and the names of the hosts. The worker is named by the first digits of its "
        "digest.",
        fields, ARRAY_LEN(fields));
    for (size_t i = 0; i < all->n; i++) {
        (void)doc_row_of(d, t, fields, &all->seen[i]);
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
    add_machines(d, m);
}
