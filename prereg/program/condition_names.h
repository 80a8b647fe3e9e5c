/*
 * The names that a condition reads, as its text has them: counter.C, contrast.K.FIELD,
 * contrast.K[M].FIELD, measure.M[...].mean, fact.STAGE.NAME and instrument.I.FIELD. No other form
 * of a condition names anything (docs/truth-table.md), so this needs the tokens of the grammar but
 * not the plan that the condition belongs to: it serves plans that exist only as JSON, in locks and
 * amendments, as well as programs that are still being read. truthtable/condition resolves the same
 * names to indices.
 */
#ifndef PREREG_PROGRAM_CONDITION_NAMES_H
#define PREREG_PROGRAM_CONDITION_NAMES_H

#include <stdbool.h>
#include <stddef.h>

#include "prereg/program/condition_lex.h"

enum condition_root { ROOT_COUNTER, ROOT_CONTRAST, ROOT_MEASURE, ROOT_FACT, ROOT_INSTRUMENT };

struct condition_name {
    enum condition_root root;
    struct token of;      /* C, K, M, STAGE or I */
    struct token measure; /* of contrast.K[M]; else TOKEN_END */
    struct token field;   /* FIELD or NAME; else TOKEN_END */
};

/* Finds the next name from lx->pos on and advances past it; false: there are no more. Passes over
 * tokens that the grammar does not know, so that a faulty text has its names, too. */
bool condition_next_name(struct lexer *lx, struct condition_name *out);

/* Whether the condition reads this measure, as contrast.K[measure] or measure.measure. */
bool condition_reads_measure(const char *text, const char *measure);
/* Whether it reads a fact of this stage. */
bool condition_reads_fact_of(const char *text, const char *stage);
/* Whether it reads this instrument; NULL: any. */
bool condition_reads_instrument(const char *text, const char *instrument);
/* Whether it reads a bf10 of this contrast; NULL: of any. */
bool condition_reads_bf10(const char *text, const char *contrast);

#endif
