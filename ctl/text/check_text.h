/* The text of `check`: about the proofs (truthtable/prove/check.h), and with --slurm. Pure, so that
 * tests can compare it. */
#ifndef CTL_TEXT_CHECK_TEXT_H
#define CTL_TEXT_CHECK_TEXT_H

#include "base/strbuf.h"
#include "ctl/text/out.h"
#include "prereg/program/program.h"
#include <cjson/cJSON.h>

/* Appends the text of `proof`, which is check_json()'s. `explained`, which is check_explain()'s,
 * adds the states that end INDETERMINATE, the rows, and the scores that were found; NULL leaves
 * these out. */
void check_text(struct strbuf *sb, const struct term *t, const struct plan_program *p,
                const cJSON *proof, const cJSON *explained);

/* Appends the text of slurm_check()'s answer (daemon/slurm_check/check.h). */
void slurm_text(struct strbuf *sb, const struct term *t, const cJSON *answer);

#endif
