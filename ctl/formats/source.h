/*
 * What the formats are written from: a receipt that verified, whole and in memory, and, where the
 * program's own folder is at hand, the curves that a receipt does not hold. Constant once opened;
 * everything handed out lives as long as it.
 */
#ifndef CTL_FORMATS_SOURCE_H
#define CTL_FORMATS_SOURCE_H

#include <cjson/cJSON.h>

#include "base/arena.h"
#include "base/clock.h"
#include "ctl/receipt/files.h"
#include "prereg/lock/lock.h"
#include "prereg/program/program.h"
#include "truthtable/evidence/curve_points.h"
#include "truthtable/evidence/evidence.h"

struct source_task {
    const cJSON *result;    /* result.json, or the record of an imported program; NULL: not done */
    const char *cause;      /* why it is not done; NULL where nothing says */
    const cJSON *attempt;   /* of provenance.json: the accepted one; NULL: not known */
    struct wall_time ended; /* of that attempt; 0: not known */
};

struct receipt_source {
    struct arena arena;
    struct receipt_files files;
    struct plan_program *program;
    struct lock *lock; /* as amended */
    char *id;          /* "<name>-<first 8 digits of the root>" */
    const cJSON *verdict;
    const cJSON *provenance;
    bool imported;
    const char *tool;           /* the version that made the receipt */
    struct source_task *tasks;  /* cell * n_stages + stage */
    const char *program_folder; /* borrowed; NULL: no curves */
    struct wall_time ended;     /* the last task's; of an imported program the lock's time */
};

/* The receipt's folder must have been verified. Always valid to release. */
int source_open(struct receipt_source *s, const char *receipt, const char *program_folder,
                struct err *err) MUST_CHECK;
void source_release(struct receipt_source *s);

const struct source_task *source_task(const struct receipt_source *s, size_t cell, size_t stage)
    __attribute__((returns_nonnull));
/* A metric of a task; VALUE_MISSING where there is none. */
struct evidence_value source_metric(const struct receipt_source *s, size_t cell, size_t stage,
                                    const char *metric);

/* A curve of one task; its xs are whole numbers, the steps. */
struct source_curve {
    char *name;
    struct curve_points points;
};
struct source_curves {
    struct source_curve *items;
    size_t n;
    size_t cap;
};
/* All points that the task's attempts reported, in the order of their first sight; none without a
 * program's folder. The caller releases it. */
void source_read_curves(const struct receipt_source *s, size_t cell, size_t stage,
                        struct source_curves *out);
void source_curves_release(struct source_curves *c);

#endif
