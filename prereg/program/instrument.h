/*
 * The kinds of instruments, and the fields of each that a forecast may read ("instrument.I.FIELD").
 * The lists are closed: an unknown name is an error when a program is read, and the code that
 * computes an instrument gives every field of its kind a value or a reason (docs/instruments.md).
 */
#ifndef PREREG_PROGRAM_INSTRUMENT_H
#define PREREG_PROGRAM_INSTRUMENT_H

#include <stdbool.h>
#include <stddef.h>

#include "prereg/program/program.h"

enum instrument_kind {
    INSTRUMENT_BAYES,
    INSTRUMENT_MIXED,
    INSTRUMENT_CONNECTOR,
    INSTRUMENT_ITEMS,
    INSTRUMENT_ROUTER,
    INSTRUMENT_ANCHORS,
    INSTRUMENT_COURSE,
    INSTRUMENT_KIND_NR
};

struct instrument_field {
    const char *name;
    bool is_truth; /* else a number */
};

const char *instrument_kind_name(enum instrument_kind k);
/* INSTRUMENT_KIND_NR when unknown. */
enum instrument_kind instrument_kind_find(const char *name);
/* The fields of a kind; *n is their number. */
const struct instrument_field *instrument_fields(enum instrument_kind k, size_t *n);

/* Those that need no declaration are given under these names: margins, dispersion, detectable,
 * apparatus. No declared one bears them. */
bool instrument_name_is_taken(const char *name);

/* `discussion_only` as declared; without the key, an instrument called "supplementary" is. */
bool instrument_discussion_only(const struct plan_instrument *in);

/* What a connector compares unless it says otherwise: the binding counter's contrast, else the only
 * one between two levels; INDEX_NONE when there is no such one. */
size_t instrument_main_contrast(const struct plan_program *p);

/* The facts of router health, as prereg-train reports them: a router's components unless it says
 * otherwise. */
extern const char *const INSTRUMENT_ROUTER_FACTS[];
size_t instrument_n_router_facts(void);

#endif
