/*
 * The section "Limitations". Every line is computed from the program, its lock, the verdict or the
 * provenance, so no sentence is in every report. Each function covers one source and adds a line
 * only where it applies; what the design itself leaves open is for its authors to write.
 */
#include <math.h>
#include <string.h>

#include "truthtable/report/amendment_standing.h"
#include "truthtable/report/document/fmt.h"
#include "truthtable/report/report_apparatus.h"
#include "truthtable/report/sections/instrument_blocks.h"
#include "truthtable/report/sections/sections.h"
#include "truthtable/report/verdict_words.h"

#define WOULD_NOT_SHOW "a fault of the apparatus that shifts every score alike would not show."

/* Amendments by what was known when they were made, the worst first. */
static void add_amendments(struct doc *d, const struct report_model *m, struct doc_list *list)
{
    static const char *const said[STANDING_NR] = {
        [STANDING_SEEN] = "when scores had been seen; what they changed is marked post hoc.",
        [STANDING_SEALED] = "when scores existed, sealed: preregd had shown them to no one.",
        [STANDING_KNOWN] = "when results of the apparatus checks changed were known; what was "
                           "changed of those is marked post hoc."};
    size_t n[STANDING_NR] = {0};
    const cJSON *amendment = NULL;
    cJSON_ArrayForEach(amendment, m->amendments)
    {
        n[amendment_standing(amendment)]++;
    }
    for (size_t i = STANDING_NR; i-- > 0;) {
        /* Amendments in advance are not a limitation. */
        if (n[i] > 0 && said[i] != NULL) {
            doc_point(d, list, "%s made %s",
                      fmt_plural(&d->arena, (int64_t)n[i], "amendment was", "amendments were"),
                      said[i]);
        }
    }
    const char *head = member_text(m->verdict, "head");
    /* Amendments after the verdict move the head on. */
    if (head != NULL && strcmp(head, m->lock->head) != 0) {
        doc_point(
            d, list,
            "The verdict was read under an earlier head than the present one: what was amended "
            "since had no part in it.");
    }
}

/* As fmt_plural, for a number read from a file. */
static const char *count_of(struct arena *a, double n, const char *one, const char *many)
{
    return arena_printf(a, "%s %s", fmt_whole(a, n), n == 1 ? one : many);
}

/* Excluded, blocked, ended by persons, never run: each with its consequence. */
static void add_losses(struct doc *d, const struct report_model *m, struct doc_list *list)
{
    struct arena *a = &d->arena;
    const cJSON *coverage = member(m->verdict, "coverage");
    const cJSON *tasks = member(coverage, "tasks");
    double excluded = member_number(member(coverage, "counted"), "excluded");
    double blocked = member_number(tasks, "blocked");
    double never_run = member_number(tasks, "never_run");
    double budget = member_number(member(coverage, "counted"), "budget");
    const char *lost = count_of(a, excluded, "counted task was", "counted tasks were");
    /* Over the budget the verdict is VOID; within it, what remains is a selection. */
    if (excluded > budget) {
        doc_point(d, list, "%s lost for mechanical causes, more than the budget of %.0f.", lost,
                  budget);
    } else if (excluded > 0) {
        doc_point(d, list,
                  "%s excluded, each with its partner in the other arm: what remains of "
                  "those replicates is not random.",
                  lost);
    }
    if (blocked > 0) {
        doc_point(d, list, "%s blocked; the causes are under coverage.",
                  count_of(a, blocked, "task ended", "tasks ended"));
    }
    /* Losses by choice are never excluded, so they leave things open. */
    size_t by_person = report_n_by_person(m);
    if (by_person > 0) {
        doc_point(d, list,
                  "%s by a person, which is not a chance loss: what depends on it is undetermined.",
                  fmt_plural(a, (int64_t)by_person, "task was ended or given up",
                             "tasks were ended or given up"));
    }
    if (never_run > 0) {
        doc_point(d, list, "%s never run.",
                  count_of(a, never_run, "planned task was", "planned tasks were"));
    }
}

/* Scores that the locker could read. */
static void add_reused(struct doc *d, const struct report_model *m, struct doc_list *list)
{
    const cJSON *reused = member(member(m->verdict, "coverage"), "reused");
    const char *root = member_text(reused, "root");
    if (root != NULL) {
        doc_point(d, list,
                  "%s of %zu were taken from an earlier receipt, of root %.16s: their scores were "
                  "known when this program was locked. They count like the others; for them, the "
                  "lock does not show that its claims were made before the data.",
                  count_of(&d->arena, member_number(reused, "cells"), "cell", "cells"),
                  m->program->n_cells, root);
    }
}

/* Cells of a condition. */
static size_t n_replicates(const struct plan_program *p)
{
    return p->n_conditions == 0 ? 0 : p->n_cells / p->n_conditions;
}

/* Smallest detectable differences, from the proofs in the lock. */
static void add_resolution(struct doc *d, const struct report_model *m, struct doc_list *list)
{
    struct arena *a = &d->arena;
    const cJSON *measures = member(m->lock->proof, "measures");
    const char **parts = arena_array(a, m->program->n_measures + 1, sizeof(*parts));
    size_t n = 0;
    const cJSON *measure = NULL;
    cJSON_ArrayForEach(measure, measures)
    {
        const char *name = member_text(measure, "name");
        double v = member_number(measure, "detectable_difference");
        /* Measures without items have no such figure. */
        if (name != NULL && isfinite(v) && n < m->program->n_measures) {
            parts[n++] = arena_printf(a, "%s %s", name, fmt_fixed(a, v, 4));
        }
    }
    if (n > 0) {
        doc_point(d, list,
                  "Differences smaller than these show with less than 80 %% power, from "
                  "item sampling alone: %s.",
                  words_join(a, parts, n, ", "));
    }
}

/* Few replicates make wide intervals; with one there are none. */
static void add_power(struct doc *d, const struct report_model *m, struct doc_list *list)
{
    const struct plan_program *p = m->program;
    size_t n = n_replicates(p);
    if (n == 1) {
        doc_point(d, list,
                  "One replicate a condition: no standard error over replicates exists, and every "
                  "interval of a contrast is undetermined.");
    } else if (n < 5) {
        doc_point(d, list,
                  "%zu replicates a condition: intervals of contrasts rest on %zu "
                  "degree%s of freedom and are wide.",
                  n, n - 1, n == 2 ? "" : "s");
    }
}

struct check_counts {
    size_t n;
    size_t held;   /* on record as held, the second run too where there is one */
    size_t single; /* without a second run on record */
};

/* Counts declarations; each is two entries of the program, the second runs last. */
static struct check_counts count_checks(const struct report_model *m)
{
    const struct plan_program *p = m->program;
    struct check_counts c = {0};
    for (size_t i = 0; i < p->n_apparatus; i++) {
        const size_t first = p->apparatus[i].first;
        if (first == INDEX_NONE) {
            c.n++;
            continue;
        }
        const bool again = report_check_is_shown(m, i);
        const bool holds = cJSON_IsTrue(member(report_check(m, p->apparatus[first].name), "holds"));
        c.held += holds &&
                  (!again || cJSON_IsTrue(member(report_check(m, p->apparatus[i].name), "holds")));
        c.single += holds && !again;
    }
    return c;
}

/* A fault of the apparatus that shifts every score alike shows in nothing but this. */
static void add_apparatus(struct doc *d, const struct report_model *m, struct doc_list *list)
{
    struct arena *a = &d->arena;
    const struct check_counts c = count_checks(m);
    const char *gone = report_apparatus_gone_words(a, m, NULL);
    const char *amended = report_apparatus_amended(a, m);
    if (gone != NULL && c.n == 0) {
        doc_point(d, list,
                  "No reference measurement of the apparatus supports these scores. "
                  "%s So " WOULD_NOT_SHOW,
                  gone);
        return;
    }
    if (c.n == 0) {
        doc_point(
            d, list,
            "No reference measurement of the apparatus was declared: a fault that shifts every "
            "score alike would not show.");
        return;
    }
    if (gone != NULL) {
        doc_point(d, list, "%s", gone);
    }
    if (amended != NULL) {
        doc_point(d, list,
                  "What an apparatus check requires was changed when it had been made: "
                  "that it holds was not laid down in advance. %s",
                  amended);
    }
    if (c.held < c.n) {
        doc_point(d, list, "%s declared, %zu of them on record as held: " WOULD_NOT_SHOW,
                  fmt_plural(a, (int64_t)c.n, "apparatus check was", "apparatus checks were"),
                  c.held);
    }
    if (c.single > 0) {
        doc_point(d, list,
                  "The apparatus checks were not run again after the last evaluation: a change of "
                  "the apparatus during the campaign would not show.");
    }
}

/* Arguments that name no locked file are fine, but argv[0] without a digest is a worker that the
 * lock does not pin. */
static void add_pins(struct doc *d, const struct report_model *m, struct doc_list *list)
{
    const struct plan_program *p = m->program;
    struct arena *a = &d->arena;
    const char **unpinned = arena_array(a, p->n_stages + 1, sizeof(*unpinned));
    size_t n = 0;
    for (size_t i = 0; i < p->n_stages; i++) {
        if (p->stages[i].n_command > 0 &&
            lock_file_digest(m->lock, p->stages[i].command[0]) == NULL) {
            unpinned[n++] = p->stages[i].name;
        }
    }
    if (n > 0 && m->imported == NULL) {
        doc_point(d, list, "The worker of %s has no digest in the lock.",
                  words_join(a, unpinned, n, " and "));
    }
    /* The plan's own choice, but a reader must know it. */
    if (p->pin_workers_record) {
        doc_point(
            d, list,
            "Workers were recorded, not pinned ([pin] workers = \"record\"): one that changed "
            "would have been noted, not refused.");
    }
}

/* What cannot be known of the run: its history, its items, early looks at scores. */
static void add_history(struct doc *d, const struct report_model *m, struct doc_list *list)
{
    struct arena *a = &d->arena;
    /* Without a verified journal, who ran what is hearsay. */
    if (words_history_is_unverified(m)) {
        doc_point(
            d, list, "%s",
            m->provenance == NULL
                ? "There is no provenance.json: who ran what, and how often, is not known."
                : "The journal is missing or short: the history of this run cannot be verified.");
    }
    if (m->imported != NULL) {
        doc_point(
            d, list,
            "The records were imported: who ran what, how often, and which runs were left out is "
            "not known here. A results file without its samples is taken at its word.");
        doc_point(d, list,
                  "Imported records come without their items: the sampling error of a difference, "
                  "paired or clustered, is not computed from items here.");
    }
    /* Looks before the verdict may have influenced decisions. */
    size_t n = member_count(m->provenance, "unblindings");
    if (n > 0) {
        doc_point(d, list, "Scores were opened %s before the verdict.",
                  n == 1 ? "once" : arena_printf(a, "%zu times", n));
    }
}

/* A missing or failing signature, a missing time stamp, an unclean working tree. */
static void add_lock(struct doc *d, const struct report_model *m, struct doc_list *list)
{
    const cJSON *git = member(m->lock->json, "git");
    const struct signature_seen *signature = &m->trust.lock;
    const bool is_signed = signature->state != SIGNATURE_NONE;
    if (signature->state == SIGNATURE_FAILS || signature->state == SIGNATURE_UNCHECKED) {
        doc_point(d, list, "The lock's signature %s: %s.",
                  signature->state == SIGNATURE_FAILS ? "does not hold" : "was not checked",
                  signature->why);
    }
    /* Signature and time stamp are separate: one says who, the other when. */
    if (!is_signed && !m->trust.stamp_response) {
        doc_point(d, list,
                  "The lock is neither signed nor time-stamped: who made it, and when, is its own "
                  "word.");
    } else if (!is_signed) {
        doc_point(d, list, "The lock is not signed: who made it is its own word.");
    } else if (!m->trust.stamp_response) {
        doc_point(d, list,
                  "The lock has no time stamp of a third party: when it was made is its signer's "
                  "word.");
    }
    /* Absent git information is not a limitation of the lock. */
    if (cJSON_IsFalse(member(git, "clean"))) {
        doc_point(d, list,
                  "The git working tree was not clean when the program was locked: the commit on "
                  "record does not hold everything that was locked.");
    }
}

/* Event files that could not be read. */
static void add_curves(struct doc *d, const struct report_model *m, struct doc_list *list)
{
    struct arena *a = &d->arena;
    if (m->curves.n_unread > 0) {
        doc_point(
            d, list, "%s not be read; curves may be short.",
            fmt_plural(a, (int64_t)m->curves.n_unread, "event file could", "event files could"));
    }
}

/* In the order of weight: losses, records, power, instruments, apparatus, then trust. */
void section_limits(struct doc *d, const struct report_model *m)
{
    doc_section(d, "limitations", "Limitations");
    doc_paragraph(d, "Computed from the plan and the records of this run. What the design itself "
                     "leaves open is for its authors to say.");
    struct doc_list *list = doc_list(d);
    add_losses(d, m, list);
    add_reused(d, m, list);
    limits_of_records(d, m, list);
    add_power(d, m, list);
    add_resolution(d, m, list);
    limits_of_instruments(d, m, list);
    add_apparatus(d, m, list);
    add_pins(d, m, list);
    add_lock(d, m, list);
    add_amendments(d, m, list);
    add_history(d, m, list);
    add_curves(d, m, list);
}
