/* Shared by the readers of items (item_*.c), and private to them. */
#ifndef WORKER_EVAL_ITEMS_ITEM_PRIVATE_H
#define WORKER_EVAL_ITEMS_ITEM_PRIVATE_H

#include <cjson/cJSON.h>

#include "worker/eval/items/item.h"

/* A group that is being filled. */
struct item_reader {
    struct item_set *set;
    const struct task_spec *spec;
    const char *group; /* its name */
};

/* Appends the item that a record makes, and frees the record. Faults of the data are ERR_SYNTAX. */
int item_take_record(struct item_reader *r, cJSON *record, unsigned line,
                     struct err *err) MUST_CHECK;
/* Append the items of a text; the message of a fault names line and item. */
int item_take_jsonl(struct item_reader *r, const char *text, size_t len,
                    struct err *err) MUST_CHECK;
int item_take_csv(struct item_reader *r, const char *text, size_t len, struct err *err) MUST_CHECK;
/* Appends the groups of one task, which is not a suite, from a folder or a file. */
int item_take_task(struct item_set *set, const struct task_spec *spec,
                   const struct item_source *src, struct err *err) MUST_CHECK;

#endif
