/* Programs and evidence for the tests of truthtable/. Everything aborts the test on failure. */
#ifndef TESTS_UNIT_TRUTHTABLE_FIXTURE_H
#define TESTS_UNIT_TRUTHTABLE_FIXTURE_H

#include <stdbool.h>

#include "prereg/program.h"
#include "truthtable/evidence.h"
#include "truthtable/rules.h"

/* From TOML text; prints the diagnostics when it does not parse. */
struct program *fixture_program(const char *toml);
/* From a file below the source tree. */
struct program *fixture_program_file(const char *relative);
void fixture_rules(const struct program *p, struct rules *out);

/* Marks every task done. */
void fixture_all_done(struct evidence *e);
/* Record of a measure in a cell; n <= 0: none. */
void fixture_score(struct evidence *e, size_t cell, const char *measure, double value, int64_t n);

#endif
