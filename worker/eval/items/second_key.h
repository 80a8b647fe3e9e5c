/*
 * A second set of right answers to the same items, as MMLU-Redux has for MMLU: an item may have
 * one, several, or none, and then does not count under this key.
 *
 * It is either a JSONL file, a line an item,
 *   {"group":"anatomy","item":0,"gold":2}       item: from 0 in its group (in all without "group")
 *   {"group":"anatomy","line":1,"gold":[1,2]}   line: from 1 in its file
 *   {"item":7,"gold":null}                      left out, as are items without a line
 * or a folder in the form of the task's own data, with other right answers and nothing else
 * different; groups that it lacks are left out. So is in both what is about groups that the stage
 * did not choose.
 */
#ifndef WORKER_EVAL_ITEMS_SECOND_KEY_H
#define WORKER_EVAL_ITEMS_SECOND_KEY_H

#include <stdbool.h>
#include <stdint.h>

#include "worker/eval/items/item.h"

struct second_key {
    const char *name; /* of the data; borrowed */
    uint64_t *golds;  /* one bit an option, one word an item of the set; 0: left out */
    size_t n_items;
};

/* ERR_SYNTAX names the line or the item. src->path is the key's. Always valid to release. */
int second_key_read(struct second_key *key, const char *name, const struct item_set *set,
                    const struct item_source *src, struct err *err) MUST_CHECK;
/* The same of the text of a JSONL file. */
int second_key_parse(struct second_key *key, const char *name, const struct item_set *set,
                     const char *text, size_t len, struct err *err) MUST_CHECK;
void second_key_release(struct second_key *key);

/* key may be NULL: no item is in it. */
static inline bool second_key_has(const struct second_key *key, size_t item)
{
    return key != NULL && key->golds[item] != 0;
}

static inline bool second_key_is(const struct second_key *key, size_t item, size_t option)
{
    return (key->golds[item] >> option & 1u) != 0;
}

#endif
