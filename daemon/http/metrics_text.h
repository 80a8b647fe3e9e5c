/* The text format 0.0.4 of Prometheus: names, labels and values, escaped as it demands. Pure. */
#ifndef DAEMON_HTTP_METRICS_TEXT_H
#define DAEMON_HTTP_METRICS_TEXT_H

#include "base/strbuf.h"
#include "daemon/shell/pump.h"

struct metrics_label {
    const char *name; /* NULL ends the list */
    const char *value;
};

/* The lines above all series of a name; each name once. type: "gauge", "counter", "histogram". */
void metrics_head(struct strbuf *out, const char *name, const char *type, const char *help);
/* One series; labels may be NULL. What is not finite is written as Prometheus writes it. */
void metrics_value(struct strbuf *out, const char *name, const struct metrics_label *labels,
                   double value);
/* Head and the only series of a name. */
void metrics_single(struct strbuf *out, const char *name, const char *type, const char *help,
                    double value);
void metrics_histogram(struct strbuf *out, const char *name, const char *help,
                       const struct pump_commits *c);

#endif
