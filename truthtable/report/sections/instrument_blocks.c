/* How the sections find an instrument, and name what they show of it. */
#include "truthtable/report/sections/instrument_blocks.h"

#include <string.h>

#include "truthtable/report/verdict_words.h"

/* The first instrument of a kind. */
const cJSON *show_find(const struct report_model *m, const char *kind)
{
    const cJSON *instrument = NULL;
    cJSON_ArrayForEach(instrument, member(m->instruments, "instruments"))
    {
        if (strcmp(words_member(instrument, "kind"), kind) == 0) {
            return instrument;
        }
    }
    return NULL;
}

/* Identifiers begin with the instrument's name, which is unique. */
const char *show_id(struct doc *d, const cJSON *instrument, const char *what)
{
    const char *name = words_member(instrument, "name");
    return arena_printf(&d->arena, "%s%s%s", name, what[0] == '\0' ? "" : "-", what);
}
