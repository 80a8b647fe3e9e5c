/* page: where the live page is, for its owner alone. What serves it is above this room, and is
 * reached through the shell's page_control. */
#include "base/json/json.h"
#include "daemon/answers/answer.h"

int answer_page(struct answer_context *ctx, const cJSON *params, cJSON **result, struct err *err)
{
    const struct page_control *page = &ctx->shell->page;
    bool start = false;
    bool new_token = false;
    int rc = json_opt_bool(params, "start", &start, err);
    if (rc != 0 || (rc = json_opt_bool(params, "new_token", &new_token, err)) != 0) {
        return rc;
    }
    if (page->ask == NULL) {
        return err_set(err, ERR_NO_DAEMON, "preregd is starting: ask again");
    }
    return page->ask(page->ctx, start, new_token, result, err);
}
