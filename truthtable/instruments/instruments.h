/*
 * The instruments of a program, computed after its verdict: the content of instruments.json
 * (docs/instruments.md). They inform and never bind; nothing that decides reads them.
 *
 * Gates, contrasts and counters come out of the verdict's own evaluation, run again on the evidence
 * of the program's folder; evidence that does not give the very gates, contrasts and outcome of
 * verdict.json is refused as a whole. Same inputs, same bytes.
 */
#ifndef TRUTHTABLE_INSTRUMENTS_INSTRUMENTS_H
#define TRUTHTABLE_INSTRUMENTS_INSTRUMENTS_H

#include <cjson/cJSON.h>

#include "base/files/digest.h"
#include "prereg/lock/lock.h"
#include "prereg/program/program.h"
#include "truthtable/evidence/evidence.h"

#define INSTRUMENTS_SCHEMA 1
/* The limit of computing in a child process: instruments that take longer are given up. */
#define INSTRUMENTS_SECONDS_MAX 900U
#define INSTRUMENTS_BYTES_MAX   ((size_t)256 << 20)

/* Finds the items of a task's result where they are not beside it: their path, which the caller
 * frees, and the digest that they must have. */
struct instruments_items {
    int (*find)(const void *ctx, size_t cell, size_t stage, char **path, struct digest *said,
                struct err *err);
    const void *ctx;
};

struct instruments_input {
    const char *folder; /* STATE/programs/<id> */
    const struct plan_program *program;
    const struct lock *lock;
    const cJSON *verdict;                  /* verdict.json */
    const cJSON *provenance;               /* provenance.json, or NULL */
    const cJSON *amendments;               /* array of the amendments' files in order, or NULL */
    const struct instruments_items *items; /* NULL: in the folder, beside the results */
};

/* Never NULL; the caller deletes it. What keeps everything from being computed is its "why". The
 * folder is looked into for items alone. */
cJSON *instruments_of_evidence(const struct instruments_input *in, const struct evidence *e)
    __attribute__((returns_nonnull));
/* The same with the evidence of the folder. */
cJSON *instruments_compute(const struct instruments_input *in) __attribute__((returns_nonnull));
/* The same in a child process with a time limit: whatever becomes of it, the caller goes on.
 * `e` NULL: the evidence of the folder. */
cJSON *instruments_compute_apart(const struct instruments_input *in, const struct evidence *e)
    __attribute__((returns_nonnull));

#endif
