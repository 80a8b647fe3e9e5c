/* Names of the parts of a program, of one kind at a time: to find one, and to suggest one. */
#ifndef PREREG_PROGRAM_NAMES_H
#define PREREG_PROGRAM_NAMES_H

#include <stddef.h>

#include "prereg/program/program.h"

/* Known names of one kind: an array of structs (or of strings) whose first member is the name. */
struct names {
    const char *what; /* "stage" */
    const void *items;
    size_t n;
    size_t size; /* of an item */
};

struct names names_factors(const struct plan_program *p);
struct names names_levels(const struct plan_factor *f);
struct names names_stages(const struct plan_program *p);
struct names names_measures(const struct plan_program *p);
struct names names_contrasts(const struct plan_program *p);
struct names names_inputs(const struct plan_program *p);
struct names names_input_levels(const struct plan_input *in);
struct names names_outcomes(const struct plan_program *p);
const char *names_at(struct names names, size_t i);      /* of item i */
size_t names_find(struct names names, const char *name); /* INDEX_NONE when unknown */

#endif
