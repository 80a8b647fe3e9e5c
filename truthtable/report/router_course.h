/*
 * What the routers of one task did over its steps, from the router.csv that its result names
 * (docs/models.md): the share of the assignments of each expert of each mixture layer, and the
 * layers' mean entropy, effective number and dead experts.
 *
 * A course owns its numbers. Invariants: steps increase strictly; every sample has every layer;
 * shares are in 0..1.
 */
#ifndef TRUTHTABLE_REPORT_ROUTER_COURSE_H
#define TRUTHTABLE_REPORT_ROUTER_COURSE_H

#include <cjson/cJSON.h>
#include <stddef.h>

#include "base/err.h"
#include "prereg/program/program.h"

#define ROUTER_CSV_NAME      "router.csv"
#define ROUTER_CSV_MAX       ((size_t)32 << 20) /* bytes */
#define ROUTER_EXPERTS_MAX   ((size_t)4096)
#define ROUTER_LAYERS_MAX    ((size_t)1024)
#define ROUTER_COURSE_VALUES 3
#define ROUTER_MAPS_MAX      ((size_t)8) /* conditions of a stage whose shares are drawn */

enum router_value { ROUTER_ENTROPY, ROUTER_EFFECTIVE, ROUTER_DEAD };

struct router_course {
    size_t cell;
    size_t stage;
    size_t n_samples;
    size_t n_layers;
    size_t n_experts;
    double *steps;                        /* [sample] */
    int *layers;                          /* [layer]: its number in the model */
    float *shares;                        /* [sample][layer][expert]; NULL: not kept */
    double *values[ROUTER_COURSE_VALUES]; /* [sample]: mean over the layers; NaN where one is not
                                             said */
};

/* Any bytes as router.csv. ERR_SYNTAX with the line; ERR_RANGE for more than this reads. */
int router_course_parse(const char *text, size_t len, struct router_course *out,
                        struct err *err) MUST_CHECK;
/* The file that the result of a task names, below the task's folder; its digest must hold. Returns
 * 1 without reading where the result names none. */
int router_course_read(const char *task_folder, const cJSON *result, struct router_course *out,
                       struct err *err) MUST_CHECK;
void router_course_release(struct router_course *c);

/* The share of an expert, of a course that has them. */
double router_share(const struct router_course *c, size_t sample, size_t layer, size_t expert);

/* The courses of a program. */
struct router_courses {
    struct router_course *items; /* by task */
    size_t n;
    size_t cap;
    size_t n_unread; /* files that are not what their results say */
};
void router_courses_add(struct router_courses *all, const char *task_folder, const cJSON *result,
                        size_t cell, size_t stage);
/* After one was added: lets go of shares that are not drawn, which would fill the memory. Of each
 * stage the first course of a condition keeps them, in the first ROUTER_MAPS_MAX conditions. */
void router_courses_trim(struct router_courses *all, const struct plan_cell *cells);
void router_courses_release(struct router_courses *all);

#endif
