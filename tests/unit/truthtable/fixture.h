/* Programs, evidence and its evaluation for the tests of truthtable/. Everything aborts the test on
 * failure. */
#ifndef TESTS_UNIT_TRUTHTABLE_FIXTURE_H
#define TESTS_UNIT_TRUTHTABLE_FIXTURE_H

#include <stdbool.h>

#include "base/strbuf.h"
#include "prereg/program/program.h"
#include "truthtable/condition/decision_rules.h"
#include "truthtable/evaluate/evaluation.h"
#include "truthtable/evidence/evidence.h"

/* From TOML text; prints the diagnostics when it does not parse. */
struct plan_program *fixture_program(const char *toml);
/* From a file below the source tree. */
struct plan_program *fixture_program_file(const char *relative);
void fixture_rules(const struct plan_program *p, struct rules *out);

/* Marks every task done. */
void fixture_all_done(struct evidence *e);
/* Record of a measure in a cell; n <= 0: none. */
void fixture_score(struct evidence *e, size_t cell, const char *measure, double value, int64_t n);
/* What the rules make of the evidence; lives as long as the evidence. */
void fixture_evaluate(struct evidence *e, const struct rules *rules, struct table_evaluation *ev);

/* Adds the beginning of a program: its name, and the factor "arch" with the levels "x" and "y". */
void fixture_head_text(struct strbuf *out);
/* Adds the whole table over inputs "i0", "i1", ... whose levels are "l0", "l1", ...: outcomes[r]
 * is the row's, of "O0", "O1", ... The last input's level changes first. */
void fixture_table_text(size_t n_inputs, const size_t *n_levels, const size_t *outcomes,
                        size_t n_outcomes, struct strbuf *out);

/* For random tests: $PREREGD_SEED, else of the clock; prints it. */
uint64_t fixture_seed(void);
/* How many random cases a test makes: n, divided by $PREREGD_SPARSE where that is set. */
size_t fixture_cases(size_t n);

#endif
