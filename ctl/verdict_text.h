/* What `verdict` and `replay` draw of verdict.json; pure, so that tests can look at the text. */
#ifndef CTL_VERDICT_TEXT_H
#define CTL_VERDICT_TEXT_H

#include <cjson/cJSON.h>

#include "base/strbuf.h"
#include "ctl/out.h"
#include "truthtable/verdict.h"

void verdict_text(struct strbuf *sb, const struct term *t, const cJSON *verdict);
/* Of one that was computed here: its gates are made one by one. */
void verdict_text_of(struct strbuf *sb, const struct term *t, const struct verdict *v);

#endif
