/* The text of `status`: pure functions of the daemon's answers (docs/rpc.md), so that tests can
 * compare it in any situation. */
#ifndef CTL_TEXT_STATUS_TEXT_H
#define CTL_TEXT_STATUS_TEXT_H

#include <cjson/cJSON.h>
#include <stdio.h>

#include "base/strbuf.h"
#include "ctl/text/out.h"

/* Cells drawn before "and N more"; 0: all. */
#define STATUS_CELLS_DEFAULT ((size_t)60)

/* Head, grid of cells and stages, counts, time left, why anything is not running, verdict. `cells`
 * is an array of the cells' objects of the `cells` method; NULL draws no grid. */
void status_program(struct strbuf *sb, const struct term *t, const cJSON *summary,
                    const cJSON *cells, size_t max_cells);

/* Programs of the state folder that the daemon could not load, and why. */
void status_unloaded(struct strbuf *sb, const struct term *t, const cJSON *unloaded);

/* One line a program, for several. */
void status_list(struct strbuf *sb, const struct term *t, const cJSON *programs);

/* "41 of 60 done · 3 running · … · 2 min 10 s left": the line for logs and --watch without a
 * terminal. */
void status_line(struct strbuf *sb, const struct term *t, const cJSON *summary);

/* The daemon's own line. */
void status_daemon(struct strbuf *sb, const struct term *t, const cJSON *ping);

/* A line for an apparatus check, of `explain` and `status`: "apparatus reference: score.acc
 * holds: expected 0.7 within 0.01, got 0.7". When it was made more than once, every result
 * follows in order. */
void status_check(struct strbuf *sb, const cJSON *check);

/* "GPU-4f3a12cd… (index 0, NVIDIA H100)": a GPU of an answer's "gpus". */
void status_gpu(struct strbuf *sb, const cJSON *gpu);

/* A line when the history is unverified or still being checked (of a summary, or of the answer
 * to verdict); else nothing. */
void status_history(struct strbuf *sb, const cJSON *answer);

/* The changes of an amendment, a line each, for people. */

/* " plan.measure.mmlu.metric: "acc" -> "acc_norm" (post hoc)", a line for each change. */
void changes_print(const cJSON *changes, FILE *to);

/* "attempt 1, as locked: acc: expected 0.7 within 0.01, got 0.65: DOES NOT HOLD": a result of an
 * apparatus check (prereg/amend/amend_known.h). */
void changes_add_result(struct strbuf *sb, const cJSON *result);
/* What was known of the apparatus checks that an amendment changes, a line each. */
void changes_print_known(const cJSON *amendment, FILE *to);

/* The answers of `programs` and `disk` (docs/rpc.md) as text. Pure. */
void programs_text(struct strbuf *sb, const struct term *t, const cJSON *answer);
void disk_text(struct strbuf *sb, const struct term *t, const cJSON *answer);

/* "1.2 GiB", "340 KiB", "0"; what `du -h` would print, spelled out. */
void disk_size_text(struct strbuf *sb, int64_t bytes);

#endif
