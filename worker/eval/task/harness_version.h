/*
 * What differs between versions of lm-evaluation-harness: the stage parameter `harness` chooses one
 * of these. A version covers itself and all up to the next in the table.
 */
#ifndef WORKER_EVAL_TASK_HARNESS_VERSION_H
#define WORKER_EVAL_TASK_HARNESS_VERSION_H

#include <stdbool.h>
#include <stddef.h>

#define HARNESS_DEFAULT "0.4.3"

struct harness_rules {
    const char *version;
    bool drops_last_newline; /* of a description: the template engine loses its final line feed */
    bool drops_equals_only_of_one_more; /* an example equal to the item is dropped only where the
                                           sampler draws one more */
    bool one_bos;      /* the prefix token is not put before a text that begins with it */
    bool pools_leaves; /* a group of groups is pooled from its leaves, not from its groups */
};

/* NULL when unknown. */
const struct harness_rules *harness_rules_find(const char *version);
/* The known versions, the default first. */
size_t harness_rules_names(const char *const **names);

#endif
