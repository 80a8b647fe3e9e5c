/* What import and `replay --out` share: an imported program's folder, with its report. */
#ifndef CTL_IMPORTING_H
#define CTL_IMPORTING_H

#include "ctl/ctl.h"

/* Writes o->out for the program o->args[0]. replayed: the records.json of a replay, whose own
 * label is kept; NULL: the files that o's map, patterns and records name. */
int import_to_folder(const struct ctl_options *o, const char *replayed, enum exit_code *code,
                     struct err *err) MUST_CHECK;

#endif
