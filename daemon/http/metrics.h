/*
 * /metrics for Prometheus, text format 0.0.4. metrics_write() is pure: the loop gathers the facts,
 * and the text follows from them. Labels are bounded: programs are named by id, and of those with a
 * verdict only the newest are listed. No value of any measurement is among the facts.
 */
#ifndef DAEMON_HTTP_METRICS_H
#define DAEMON_HTTP_METRICS_H

#include "base/strbuf.h"
#include "daemon/http/internal.h"

/* Makes r->reply. */
void metrics_serve(struct page_request *r);

#endif
