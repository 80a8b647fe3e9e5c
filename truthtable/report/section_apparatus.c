#include <math.h>
#include <string.h>

#include "truthtable/report/fmt.h"
#include "truthtable/report/sections.h"
#include "truthtable/report/verdict_words.h"

#define MACHINES_MAX ((size_t)32)

static const cJSON *check_of(const struct report_model *m, const char *name)
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

static void add_check(struct doc *d, const struct report_model *m, struct doc_table *t,
                      const struct apparatus *declared)
{
    struct arena *a = &d->arena;
    const cJSON *check = check_of(m, declared->name);
    const cJSON *holds = member(check, "holds");
    const bool held = cJSON_IsTrue(holds);
    const char *why = member_text(check, "why");
    struct doc_row *row = doc_row(d, t);
    row->cells[0].text = declared->name;
    row->cells[1].text = declared->metric_text;
    doc_number(d, &row->cells[2],
               arena_printf(a, "%s \xc2\xb1 %s", fmt_short(a, declared->value, 6),
                            fmt_short(a, declared->within, 4)),
               declared->value);
    doc_datum(d, &row->cells[2], "within", declared->within);
    double value = member_number(check, "value");
    doc_number(d, &row->cells[3], fmt_short(a, value, 6), value);
    doc_number(d, &row->cells[4],
               check == NULL ? FMT_NONE : fmt_count(a, (int64_t)member_count(check, "attempts")),
               check == NULL ? (double)NAN : (double)member_count(check, "attempts"));
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

/* Only where a check was made more than once. */
static void add_check_attempts(struct doc *d, const struct report_model *m)
{
    static const struct doc_column columns[] = {{"Check", ALIGN_TEXT},
                                                {"Attempt", ALIGN_NUMBER},
                                                {"Ended", ALIGN_TEXT},
                                                {"Came", ALIGN_NUMBER}};
    struct doc_table *t = NULL;
    for (size_t i = 0; i < m->program->n_apparatus; i++) {
        const char *name = m->program->apparatus[i].name;
        const cJSON *attempts = member(check_of(m, name), "attempts");
        const cJSON *several = cJSON_GetArraySize(attempts) > 1 ? attempts : NULL;
        const cJSON *attempt = NULL;
        cJSON_ArrayForEach(attempt, several)
        {
            if (t == NULL) {
                t = doc_table(d, "apparatus-attempts",
                              "Every attempt of a check that was made more than once, and what it "
                              "scored.",
                              columns, 4);
            }
            struct doc_row *row = doc_row(d, t);
            double came = member_number(attempt, "came");
            row->cells[0].text = name;
            doc_number(d, &row->cells[1], words_count(&d->arena, attempt, "no"),
                       member_number(attempt, "no"));
            row->cells[2].text = words_member(attempt, "ended");
            doc_number(d, &row->cells[3], fmt_short(&d->arena, came, 6), came);
        }
    }
}

static void add_checks(struct doc *d, const struct report_model *m)
{
    static const struct doc_column columns[] = {{"Check", ALIGN_TEXT},      {"Metric", ALIGN_TEXT},
                                                {"Required", ALIGN_NUMBER}, {"Came", ALIGN_NUMBER},
                                                {"Attempts", ALIGN_NUMBER}, {"Reading", ALIGN_TEXT},
                                                {"Remark", ALIGN_TEXT}};
    if (m->program->n_apparatus == 0) {
        doc_paragraph(d, "The program asks for no measurement of a reference model.");
        return;
    }
    struct doc_table *t =
        doc_table(d, "apparatus",
                  "What a reference model had to score, on this very apparatus, before any counted "
                  "evaluation might start.",
                  columns, 7);
    for (size_t i = 0; i < m->program->n_apparatus; i++) {
        add_check(d, m, t, &m->program->apparatus[i]);
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
    const char *cpu;
    const char *kernel;
    const char *blas;
    const char *core;
    const char *worker;
    double threads;
    size_t n;
    const char *stages;
};

static const char *member_or(const cJSON *attempt, const char *key, const char *other)
{
    const char *text = member_text(attempt, key);
    return text == NULL || text[0] == '\0' ? other : text;
}

static struct machine machine_of(const cJSON *attempt)
{
    return (struct machine){.host = member_or(attempt, "host", FMT_NONE),
                            .cpu = member_or(attempt, "cpu", FMT_NONE),
                            .kernel = member_or(attempt, "kernel", FMT_NONE),
                            .blas = member_or(attempt, "blas", FMT_NONE),
                            .core = member_or(attempt, "core", FMT_NONE),
                            .worker = member_or(attempt, "worker", FMT_NONE),
                            .threads = member_number(attempt, "threads")};
}

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

static void see_attempt(struct arena *a, struct machines *all, const cJSON *attempt,
                        const char *stage)
{
    struct machine now = machine_of(attempt);
    size_t i = 0;
    while (i < all->n && !same_machine(&all->seen[i], &now)) {
        i++;
    }
    if (i == MACHINES_MAX) {
        all->n_left_out++;
        return;
    }
    if (i == all->n) {
        now.stages = stage;
        all->seen[all->n++] = now;
    }
    struct machine *machine = &all->seen[i];
    machine->n++;
    if (strstr(machine->stages, stage) == NULL) {
        machine->stages = arena_printf(a, "%s, %s", machine->stages, stage);
    }
}

static void add_machine(struct doc *d, struct doc_table *t, const struct machine *machine)
{
    struct arena *a = &d->arena;
    const bool has_core = strcmp(machine->core, FMT_NONE) != 0;
    struct doc_row *row = doc_row(d, t);
    row->cells[0].text = machine->stages;
    doc_number(d, &row->cells[1], fmt_count(a, (int64_t)machine->n), (double)machine->n);
    row->cells[2].text = machine->host;
    row->cells[3].text = machine->cpu;
    row->cells[4].text = machine->kernel;
    row->cells[5].text = has_core && strstr(machine->blas, machine->core) == NULL
                             ? arena_printf(a, "%s, core %s", machine->blas, machine->core)
                             : machine->blas;
    doc_number(d, &row->cells[6], fmt_short(a, machine->threads, 4), machine->threads);
    row->cells[7].text = fmt_cut(a, machine->worker, 12);
}

static void add_machines(struct doc *d, const struct report_model *m)
{
    static const struct doc_column columns[] = {
        {"Stages", ALIGN_TEXT},    {"Attempts", ALIGN_NUMBER}, {"Host", ALIGN_TEXT},
        {"Processor", ALIGN_TEXT}, {"Kernel", ALIGN_TEXT},     {"Linear algebra", ALIGN_TEXT},
        {"Threads", ALIGN_NUMBER}, {"Worker", ALIGN_TEXT}};
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
        "attempt. The worker is told by the first digits of its digest.",
        columns, 8);
    for (size_t i = 0; i < all->n; i++) {
        add_machine(d, t, &all->seen[i]);
    }
    if (all->n_left_out > 0) {
        doc_paragraph(
            d, "%s on still others, not in this table.",
            fmt_plural(&d->arena, (int64_t)all->n_left_out, "attempt ran", "attempts ran"));
    }
}

void section_apparatus(struct doc *d, const struct report_model *m)
{
    doc_section(d, "apparatus", "Apparatus");
    add_checks(d, m);
    add_machines(d, m);
}
