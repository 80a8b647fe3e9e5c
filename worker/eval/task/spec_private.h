/* Shared by the readers of a task description (spec_*.c), and private to them. */
#ifndef WORKER_EVAL_TASK_SPEC_PRIVATE_H
#define WORKER_EVAL_TASK_SPEC_PRIVATE_H

#include "worker/eval/task/spec.h"
#include "worker/report/params.h"

#define SPEC_MARK_GROUP  "<group>"
#define SPEC_MARK_SPLIT  "<split>"
#define SPEC_BUILTIN_MAX 128
#define SPEC_FORMS_MAX   8
#define SPEC_COLUMNS_MAX 64
#define SPEC_LIST_MAX    256

struct builtin_task {
    const char *name;
    const unsigned char *text; /* terminated */
};

/* Made by the build from worker/eval/task/shipped, in the order of names. */
extern const struct builtin_task builtin_tasks[];
extern const size_t n_builtin_tasks;

/* Names by enum value, for params_choice(). */
const char *const *spec_kind_names(void);
const char *const *spec_sampler_names(void);
const char *const *spec_style_names(void);
const char *const *spec_metric_names(void);
/* Whether the metric can be computed for tasks of this kind. */
bool spec_metric_suits(enum metric_kind metric, enum task_kind kind);

/* The text under `key`, kept with the spec; `fallback` when absent. */
const char *spec_keep_text(struct task_spec *spec, struct params *p, const char *key,
                           const char *fallback);
/* Texts under `key`, none of them empty; faults otherwise. An absent key is an empty list. */
void spec_read_texts(struct task_spec *spec, struct params *p, const char *key,
                     const char *const **out, size_t *n);
/* All fields of a task but its name, version and about. */
void spec_read_task(struct task_spec *spec, struct params *p);
/* "forms": every shape of record. */
void spec_read_forms(struct task_spec *spec, struct params *p);

#endif
