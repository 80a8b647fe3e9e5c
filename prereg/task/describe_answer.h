/* Inside of describe: parses one worker's answer, which is untrusted text. */
#ifndef PREREG_TASK_DESCRIBE_ANSWER_H
#define PREREG_TASK_DESCRIBE_ANSWER_H

#include <cjson/cJSON.h>

#include "base/diag.h"
#include "base/machine/proc.h"

struct answer_fault {
    enum diag_level level;
    char *text;
    char *key; /* the parameter that it is about, or NULL */
};

struct answer_faults {
    struct answer_fault *items;
    size_t n;
    size_t cap;
};

/* The known members of the answer, checked; NULL when the worker does not describe or its answer is
 * none (faults say why). */
cJSON *answer_read(const struct proc_result *r, struct answer_faults *faults);
void answer_faults_release(struct answer_faults *faults);

#endif
