/* Names what the sections show of an instrument. */
#include "truthtable/report/sections/instrument_blocks.h"

#include "truthtable/report/verdict_words.h"

/* Identifiers begin with the instrument's name, which is unique. */
const char *show_id(struct doc *d, const cJSON *instrument, const char *what)
{
    const char *name = words_member(instrument, "name");
    return arena_printf(&d->arena, "%s%s%s", name, what[0] == '\0' ? "" : "-", what);
}
