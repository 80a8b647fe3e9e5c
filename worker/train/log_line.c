/*
 * Rates and the remaining time are means over this attempt's steps, so a resumed run does not count
 * the time of earlier ones. The text is made by a function of its own, which tests call without a
 * clock.
 */
#include "worker/train/log_line.h"

#include <stdio.h>

#include "base/clock.h"

#define LINE_NS ((int64_t)10 * 1000 * 1000 * 1000)

void log_line_start(struct log_line *l, int64_t first_step)
{
    l->first_step = first_step;
    l->start_ns = l->shown_ns = clock_mono_ns();
}

void log_line_text(const struct log_line *l, int64_t step, double loss, double seconds, char *out,
                   int size)
{
    double done = (double)(step - l->first_step), left = (double)(l->steps - step);
    char said[40] = "", span[32] = "?";

    if (!l->sealed)
        (void)snprintf(said, sizeof(said), "  loss %.4f", loss);
    if (done > 0.0)
        (void)clock_span_text((int64_t)(left * seconds / done * 1e3), span, sizeof(span));
    (void)snprintf(out, (size_t)size, "step %lld of %lld%s  %.0f tokens/s  %s left",
                   (long long)step, (long long)l->steps, said,
                   seconds > 0.0 ? done * (double)l->batch_tokens / seconds : 0.0, span);
}

void log_line_step(struct log_line *l, int64_t step, double loss)
{
    int64_t now = clock_mono_ns();
    char line[LOG_LINE_SIZE];

    if (l->silent || (now - l->shown_ns < LINE_NS && step < l->steps))
        return;
    l->shown_ns = now;
    log_line_text(l, step, loss, (double)(now - l->start_ns) * 1e-9, line, LOG_LINE_SIZE);
    (void)fprintf(stderr, "%s\n", line);
}
