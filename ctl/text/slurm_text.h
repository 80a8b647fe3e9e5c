/* The text of `check --slurm` (ctl/slurm/check.h). Pure, so that tests can compare it. */
#ifndef CTL_TEXT_SLURM_TEXT_H
#define CTL_TEXT_SLURM_TEXT_H

#include <cjson/cJSON.h>

#include "base/strbuf.h"
#include "ctl/text/out.h"

/* Appends the text of slurm_check()'s answer. */
void slurm_text(struct strbuf *sb, const struct term *t, const cJSON *answer);

#endif
