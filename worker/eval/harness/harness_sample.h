/*
 * One line of a samples file of lm-evaluation-harness 0.4.3: what was asked, what came back, and
 * the hashes that name document, prompt and target.
 *
 * Log-likelihoods are ours; every other byte is what the harness would have written for the same
 * document.
 */
#ifndef WORKER_EVAL_HARNESS_HARNESS_SAMPLE_H
#define WORKER_EVAL_HARNESS_HARNESS_SAMPLE_H

#include "base/files/digest.h"
#include "worker/eval/prompt/prompt.h"
#include "worker/eval/score/outcome.h"

/* Borrows all of it. */
struct harness_sample {
    const struct prompts *prompts;
    size_t item;                        /* in prompts->set */
    const struct item_outcome *outcome; /* judged, without fault */
    const struct task_filter *filter;   /* NULL: the harness's "none" */
    int max_tokens;                     /* of a generation */
};

/* Appends the line with its line feed, and its three hashes as the harness chains them to `task`.
 * Fails only where item.doc is not JSON. */
int harness_sample_add(const struct harness_sample *s, struct strbuf *out,
                       struct digest_stream *task, struct err *err) MUST_CHECK;

#endif
