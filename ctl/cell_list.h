/* All cells of a program, page by page. */
#ifndef CTL_CELL_LIST_H
#define CTL_CELL_LIST_H

#include <cjson/cJSON.h>

#include "base/err.h"
#include "daemon/rpc/client.h"

/* Fetches {"program","n_cells","stages","cells":[…]} with at most max cells (0: all), page by
 * page. The caller deletes *out. */
int cells_fetch(struct rpc_client *client, const char *program, int64_t max, cJSON **out,
                struct err *err) MUST_CHECK;

#endif
