/* What the tests of this room share: programs from text. */
#ifndef TESTS_UNIT_PREREG_SUPPORT_H
#define TESTS_UNIT_PREREG_SUPPORT_H

#include "prereg/program/program.h"
#include "tests/unit/scratch.h"

/* A small whole program that loads: two factors, two stages, one measure, one input. */
extern const char *const SMALL_PROGRAM;

/* Loads text as if it lay in `folder` (NULL: /tmp); fails the test when it does not load. */
struct plan_program *program_of(const char *text, const char *folder);
/* Every diagnostic of a text, a line each, as diag_print() writes them; heap. */
char *diagnostics_of(const char *text);
/* What the tests of a section's faults go through: what is added to a text, and a part of what
 * the loader then says. */
struct load_fault {
    const char *added;
    const char *says;
};
/* Fails unless every fault, behind `head`, is an error that says so. */
void expect_faults(const char *head, const struct load_fault *faults, size_t n);
/* text with the first `from` replaced by `to`; fails the test when there is none; heap. */
char *text_replace(const char *text, const char *from, const char *to);

#endif
