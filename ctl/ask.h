/* Asks the daemon one question over one connection; when no daemon answers, the message says
 * what to do. */
#ifndef CTL_ASK_H
#define CTL_ASK_H

#include <cjson/cJSON.h>

#include "base/err.h"
#include "ctl/ctl.h"
#include "daemon/rpc/client.h"

/* {"program":…}, from the first argument (with from_args) or else from --program; {} without
 * either. The daemon then chooses, where there is only one program to choose. */
cJSON *ask_params(const struct ctl_options *o, bool from_args) __attribute__((returns_nonnull));

/* {"reason":…} of --reason, where it is given. */
void ask_put_reason(const struct ctl_options *o, cJSON *params);

/* Opens a connection, calls `method` and closes it. Frees params; the caller deletes *result. */
int ask(const struct ctl_options *o, const char *method, cJSON *params, cJSON **result,
        struct err *err) MUST_CHECK;

/* The whole of a command that only reports what was done: asks, then prints the answer as JSON
 * or calls `say` with it. Frees params. */
int ask_and_say(const struct ctl_options *o, const char *method, cJSON *params,
                void (*say)(const cJSON *answer), struct err *err) MUST_CHECK;

/* Members of an answer for drawing: a missing member, or one of another type, is the fallback. */
const char *answer_text(const cJSON *object, const char *key, const char *fallback);
int64_t answer_int(const cJSON *object, const char *key, int64_t fallback);
bool answer_bool(const cJSON *object, const char *key);

/* All cells of a program, page by page. */

/* Fetches {"program","n_cells","stages","cells":[…]} with at most max cells (0: all), page by
 * page. The caller deletes *out. */
int cells_fetch(struct rpc_client *client, const char *program, int64_t max, cJSON **out,
                struct err *err) MUST_CHECK;

#endif
