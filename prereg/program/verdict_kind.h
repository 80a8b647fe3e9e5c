/*
 * The three kinds of verdict: their words and exit codes (docs/exit-codes.md), in one table. Where
 * no outcome binds, verdict.json and the program's row keep the kind's word in the outcome's place,
 * so no outcome may have that name.
 */
#ifndef PREREG_PROGRAM_VERDICT_KIND_H
#define PREREG_PROGRAM_VERDICT_KIND_H

#include "base/err.h"
#include "base/json/json.h"

enum verdict_kind {
    VERDICT_BOUND,         /* one outcome binds (exit 0) */
    VERDICT_INDETERMINATE, /* the rows that can fire disagree (exit 4) */
    VERDICT_VOID, /* over the exclusion budget, or a voiding validity failed or is unknown (exit 7)
                   */
};

/* Returns the kind of `outcome`, a text of verdict.json or of the journal. */
enum verdict_kind verdict_kind_of(const char *outcome);
/* Returns that text: "INDETERMINATE" or "VOID"; NULL for BOUND, where it is the outcome's name. */
const char *verdict_kind_word(enum verdict_kind kind);
/* Returns the "kind" of answers: "bound", "indeterminate" or "void". */
const char *verdict_kind_name(enum verdict_kind kind);
/* Returns the word of the kind with the name `name`, or "?" if no kind without an outcome has it.
 */
const char *verdict_kind_word_of_name(const char *name);
enum exit_code verdict_kind_exit(enum verdict_kind kind);
/* Puts "kind", "outcome" (null unless one binds) and "exit_code" into an answer. */
void verdict_kind_put(cJSON *answer, const char *outcome);

#endif
