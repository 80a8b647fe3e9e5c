/*
 * The table of versions; a row lists what has changed up to it. Adding a version means adding its
 * name and its row.
 */
#include "worker/eval/task/harness_version.h"

#include <string.h>

#include "base/xalloc.h"

static const char *const names[] = {"0.4.3", "0.4.4", "0.4.9.2", "0.4.10"};

static const struct harness_rules rules[ARRAY_LEN(names)] = {
    {.version = "0.4.3", .drops_last_newline = true},
    {.version = "0.4.4", .pools_leaves = true},
    {.version = "0.4.9.2", .pools_leaves = true, .one_bos = true},
    {.version = "0.4.10",
     .drops_equals_only_of_one_more = true,
     .pools_leaves = true,
     .one_bos = true},
};

const struct harness_rules *harness_rules_find(const char *version)
{
    for (size_t i = 0; i < ARRAY_LEN(rules); i++)
        if (strcmp(rules[i].version, version) == 0)
            return &rules[i];
    return NULL;
}

size_t harness_rules_names(const char *const **out)
{
    *out = names;
    return ARRAY_LEN(names);
}
