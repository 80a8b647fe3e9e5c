/*
 * The lines that a training under the daemon prints on standard error for `preregctl logs`: one
 * every ten seconds and one for the last step, with the loss unless the plan seals what the stage
 * measures. A run by hand has a bar instead (worker/data/progress.h).
 */
#ifndef WORKER_TRAIN_LOG_LINE_H
#define WORKER_TRAIN_LOG_LINE_H

#include <stdbool.h>
#include <stdint.h>

#define LOG_LINE_SIZE 160

struct log_line {
    bool silent;
    bool sealed;
    int64_t steps;      /* of the whole run */
    int64_t first_step; /* that this attempt began with */
    int64_t batch_tokens;
    int64_t start_ns;
    int64_t shown_ns;
};

/* At the first step of this attempt. */
void log_line_start(struct log_line *l, int64_t first_step);
/* After a step: prints the line when it is due. */
void log_line_step(struct log_line *l, int64_t step, double loss);
/* "step 400 of 5000  loss 3.2123  1234 tokens/s  12 min 3 s left" after that many seconds. */
void log_line_text(const struct log_line *l, int64_t step, double loss, double seconds, char *out,
                   int size);

#endif
