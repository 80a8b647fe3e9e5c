/*
 * One line of a samples file, judged again: what follows from the answers in it (resps,
 * filtered_resps) must be what it says of itself (acc, acc_norm, exact_match, perplexities, the
 * three hashes). Pure; knows nothing of files.
 *
 * Where the line alone does not decide (a gold answer that only the task's code knows, a rule that
 * is not known here) nothing is claimed: the metric counts as not recomputed.
 */
#ifndef TRUTHTABLE_IMPORTED_JUDGE_H
#define TRUTHTABLE_IMPORTED_JUDGE_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "base/files/digest.h"

enum judged { JUDGED_NOT, JUDGED_RIGHT };

/* config: the task's own of the results file, or NULL. stored: the line's value of the metric.
 * ERR_CORRUPT when the answers give another. */
int judge_metric(const cJSON *line, const cJSON *config, const char *metric, enum judged *how,
                 struct err *err) MUST_CHECK;

/* Whether the task judges with code of its own ("process_results"): what a metric's name says
 * elsewhere then says nothing, and an item need not have each. */
bool judge_has_own_code(const cJSON *config);

/* filtered_resps against resps, where the filter takes the first answer as it is. */
int judge_filtered(const cJSON *line, struct err *err) MUST_CHECK;

/* The line's hashes. `text` is the line as it is in the file (NULL: not at hand; then doc_hash is
 * not checked). *has_hashes: all three are there; they are then added to `all` in the order in
 * which task_hashes takes them. */
int judge_hashes(const cJSON *line, const char *text, size_t len, struct digest_stream *all,
                 bool *has_hashes, struct err *err) MUST_CHECK;

/* A number as the files hold them: a JSON number or bool, or Python's text of one ("-inf", "nan");
 * null is NaN. False for anything else. */
bool judge_number(const cJSON *v, double *out);

/* The first request's text, or NULL. */
const char *judge_prompt(const cJSON *line);

/* Upstream's exact_match, for the rules that are known here. */

/* The metric's entry in the task's "metric_list" says which rules apply. False when it is not
 * there, or names a rule (a regular expression, lower case beyond ASCII) that is not known; then
 * *right says nothing. */
bool exact_match(const cJSON *config, const char *answer, const char *target, bool *right);

/* Where a member of a JSON object is in its text. Hashes are over text, not over values. */
struct span {
    const char *text;
    size_t len;
};

/* The value of a key without escapes, of the object at `text`. Any bytes will do; of text that is
 * not JSON it may find anything within it, or nothing. */
bool span_member(const char *text, size_t len, const char *key, struct span *out);

#endif
