/* What `verdict`, `replay` and `import` show of verdict.json. The text is pure, so that tests
 * can compare it. */
#ifndef CTL_TEXT_VERDICT_TEXT_H
#define CTL_TEXT_VERDICT_TEXT_H

#include <cjson/cJSON.h>

#include "base/strbuf.h"
#include "ctl/text/out.h"
#include "truthtable/evaluate/verdict.h"

/* Appends the changes of [run] under which tasks were blocked; runs: as run_record_json() has
 * it, or NULL. */
void verdict_text_runs(struct strbuf *sb, const cJSON *runs);
/* Appends the text of a verdict that was read from its file. program: its id, which the commands in
 * the text then name, where the state folder may hold others with cells of the same name; or NULL.
 */
void verdict_text(struct strbuf *sb, const struct term *t, const cJSON *verdict,
                  const char *program);
/* Appends the text of a verdict that was computed here: its gates are built one by one, because
 * there may be a million. */
void verdict_text_of(struct strbuf *sb, const struct term *t, const struct table_verdict *v);
/* Prints the answer as out_json() does, the verdict as its last member; "schema" is the caller's.
 * The verdict is written as it is made: it may be of a million records. */
int verdict_print_json(const struct table_verdict *v, cJSON *answer, struct err *err) MUST_CHECK;

#endif
