/*
 * The daemon answers in pages of RPC_CELLS_PAGE_MAX cells, so that no answer grows with the grid.
 * The members beside "cells" are those of the last page, the newest. Tasks may change state between
 * two pages: the whole is not a snapshot.
 */

#include "base/json/json.h"
#include "ctl/ask.h"
#include "daemon/rpc/schema.h"

/* One page of the daemon's method `cells`. */
static int fetch_page(struct rpc_client *client, const char *program, int64_t offset, int64_t limit,
                      cJSON **page, struct err *err)
{
    cJSON *params = json_object();
    if (program != NULL) {
        json_put_string(params, "program", program);
    }
    json_put_int(params, "offset", offset);
    json_put_int(params, "limit", limit);
    int rc = rpc_call(client, "cells", params, page, err);
    cJSON_Delete(params);
    return rc;
}

/* Moves the page's cells to the end of `into`; returns how many there were. */
static int64_t take_cells(cJSON *into, cJSON *page)
{
    cJSON *from = cJSON_GetObjectItemCaseSensitive(page, "cells");
    int64_t n = 0;
    while (from != NULL && from->child != NULL) {
        json_push(into, cJSON_DetachItemFromArray(from, 0));
        n++;
    }
    return n;
}

/* Stops at an empty page, too: the number of cells is the daemon's claim. */
int cells_fetch(struct rpc_client *client, const char *program, int64_t max, cJSON **out,
                struct err *err)
{
    cJSON *whole = NULL;
    cJSON *cells = json_array();
    int64_t offset = 0;
    for (;;) {
        int64_t limit = RPC_CELLS_PAGE_MAX;
        /* never more than the caller wants */
        limit = max > 0 && max - offset < limit ? max - offset : limit;
        cJSON *page = NULL;
        int rc = fetch_page(client, program, offset, limit, &page, err);
        if (rc != 0) {
            cJSON_Delete(whole);
            cJSON_Delete(cells);
            return rc;
        }
        int64_t n = take_cells(cells, page);
        offset += n;
        int64_t n_cells = answer_int(page, "n_cells", 0);
        cJSON_Delete(whole);
        whole = page;
        if (n == 0 || offset >= n_cells || (max > 0 && offset >= max)) {
            break;
        }
    }
    cJSON_DeleteItemFromObjectCaseSensitive(whole, "cells");
    cJSON_DeleteItemFromObjectCaseSensitive(whole, "offset");
    json_put(whole, "cells", cells);
    *out = whole;
    return 0;
}
