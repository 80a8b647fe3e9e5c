/*
 * The section "Proved of the plan": the proofs that the lock holds, made before there was data.
 * They are printed as locked and not repeated: a later version of the prover must not change an old
 * report.
 */
#include <math.h>

#include "base/xalloc.h"
#include "truthtable/report/sections/json_columns.h"
#include "truthtable/report/sections/sections.h"
#include "truthtable/report/verdict_words.h"

/* Totality and partial states, in one sentence. */
static void add_table_proof(struct doc *d, const cJSON *table)
{
    struct arena *a = &d->arena;
    doc_paragraph(d,
                  "The table is total: %s combinations of levels, %s without a row, %s with more "
                  "than one. Of %s states in which an input stays open, %s end INDETERMINATE.",
                  words_count(a, table, "combinations"), words_count(a, table, "holes"),
                  words_count(a, table, "clashes"), words_count(a, table, "partial_states"),
                  words_count(a, table, "indeterminate_states"));
}

/* How each outcome can come about, with the scores of a witness. */
static void add_outcomes(struct doc *d, const cJSON *outcomes)
{
    static const struct doc_column columns[] = {
        JSON_TEXT("Outcome", "name"),
        JSON_TEXT("Reach", "reach"),
        {"Scores under which it fires", ALIGN_TEXT, json_cell_words, "scores", 0, NULL},
    };
    struct doc_table *t =
        doc_table(d, "reach",
                  "Which outcomes can come about: for each, made-up scores that lead to it, "
                  "found by a search without any data (one score a condition, in their order).",
                  columns, ARRAY_LEN(columns));
    json_rows(d, t, outcomes);
}

/* What floors and design can resolve. */
static void add_resolution(struct doc *d, const cJSON *measures)
{
    static const struct doc_column columns[] = {
        JSON_TEXT("Measure", "name"),
        JSON_SIGMA("Floor over chance", "floor_above_chance"),
        JSON_FIXED("Smallest detectable difference", "detectable_difference", 4),
    };
    struct doc_table *t = doc_table(d, "resolution",
                                    "What the floors and the design can resolve: the floor over "
                                    "chance in binomial standard errors, and the smallest "
                                    "difference of two arms that shows with 80 % power at \xce\xb1 "
                                    "= .05, from item sampling alone.",
                                    columns, ARRAY_LEN(columns));
    json_rows(d, t, measures);
}

/* Locks may be made without proofs. */
void section_proof(struct doc *d, const struct report_model *m)
{
    const cJSON *proof = m->lock->proof;
    doc_section(d, "proofs", "Proved of the plan");
    if (!cJSON_IsObject(proof)) {
        doc_paragraph(d, "The lock holds no proofs: the program was locked without them.");
        return;
    }
    add_table_proof(d, member(proof, "table"));
    if (member_count(member(proof, "reach"), "outcomes") > 0) {
        add_outcomes(d, member(member(proof, "reach"), "outcomes"));
    }
    if (member_count(proof, "measures") > 0) {
        add_resolution(d, member(proof, "measures"));
    }
}
