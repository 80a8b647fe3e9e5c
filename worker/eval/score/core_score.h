/*
 * The score of DCLM's CORE: accuracies centred so that guessing is 0 and all right is 1, and their
 * plain mean.
 *
 *   centred = (acc - 0.01 b) / (1 - 0.01 b),  b: the member's baseline in percent
 *
 * Every member counts the same, however many items it has. A member whose records have categories
 * (jeopardy) has the plain mean over its categories for its accuracy.
 *
 * Standard errors are those of independent parts: of a mean over k parts sqrt(sum se_i^2) / k; that
 * of an accuracy is the harness's (worker/eval/score/marks.h). The two members that ask HellaSwag's
 * items are not independent; as each of them is a twentieth of the whole with a hundredth of its
 * variance, that is left out.
 */
#ifndef WORKER_EVAL_SCORE_CORE_SCORE_H
#define WORKER_EVAL_SCORE_CORE_SCORE_H

#include "worker/eval/score/marks.h"

#define CORE_MEMBERS 22 /* of the whole CORE */

/* A member's accuracy from those of its categories, or of its only part; parts without items are
 * left out. */
struct metric_score core_accuracy(const struct metric_score *parts, size_t n_parts);
/* baseline in percent, under 100. */
struct metric_score core_centred(const struct metric_score *accuracy, double baseline);
/* No value when one of them has none, or there are none. */
struct metric_score core_mean(const struct metric_score *members, size_t n);

#endif
