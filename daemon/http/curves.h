/*
 * Curves of the page: of one metric of one stage, grouped by arm (a condition: cells without the
 * replicates), read from the attempts' events by a job. Sealed as `preregctl curves` has it: what a
 * sealed stage reports is shown after the end, or once a person opened the scores.
 */
#ifndef DAEMON_HTTP_CURVES_H
#define DAEMON_HTTP_CURVES_H

#include "daemon/http/data.h"

/* Whether what this stage measures is sealed now. */
bool curves_are_sealed(const struct hosted *h, size_t stage);
void curves_serve(struct page_request *r, const cJSON *params);

#endif
