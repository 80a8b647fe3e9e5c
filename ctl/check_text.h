/* What `check` draws of the proofs (truthtable/check.h); pure, so that tests can look at the text.
 */
#ifndef CTL_CHECK_TEXT_H
#define CTL_CHECK_TEXT_H

#include "base/strbuf.h"
#include "ctl/out.h"
#include "prereg/program.h"
#include <cjson/cJSON.h>

/* `proof` is what check_json() gave. `explained`, of check_explain(): also the states that end
 * INDETERMINATE, the rows, and the scores that were found; NULL: without these. */
void check_text(struct strbuf *sb, const struct term *t, const struct program *p,
                const cJSON *proof, const cJSON *explained);

#endif
