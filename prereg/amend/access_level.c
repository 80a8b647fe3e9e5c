/*
 * One table of access levels: the name that journal rows and amendments store, and the words that
 * messages print. The names are part of locked files, so they never change.
 */
#include "prereg/amend/access_level.h"

#include <string.h>

static const struct {
    const char *name;
    const char *words;
} LEVELS[ACCESS_NR] = {
    [ACCESS_NOTHING_RUN] = {"nothing_run", "nothing has run"},
    [ACCESS_NOTHING_SCORED] = {"nothing_scored", "nothing has been scored"},
    [ACCESS_SEALED] = {"sealed", "there are scores, sealed"},
    [ACCESS_SEEN] = {"seen", "scores have been seen"},
};

const char *access_level_name(enum access_level level)
{
    return level < ACCESS_NR ? LEVELS[level].name : "?";
}

const char *access_level_words(enum access_level level)
{
    return level < ACCESS_NR ? LEVELS[level].words : "?";
}

enum access_level access_level_from_name(const char *name)
{
    unsigned i = 0;
    while (i < ACCESS_NR && strcmp(LEVELS[i].name, name) != 0) {
        i++;
    }
    return (enum access_level)i;
}
