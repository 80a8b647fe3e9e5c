/* What each RPC method answers (docs/rpc.md). Nothing here reads a value that could be a score. */
#ifndef DAEMON_ANSWER_H
#define DAEMON_ANSWER_H

#include <cjson/cJSON.h>

#include "daemon/rpc/schema.h"
#include "daemon/shell.h"

struct answer_context {
    struct shell *shell;
    uint64_t connection;
    bool later;          /* set: server_answer() follows */
    uint32_t subscribed; /* set: the number of the program whose changes the client receives */
    bool stop;           /* set: stop serving once the answer is written */
};

/* Calls the method's function. *result is the caller's; NULL when the answer comes later, or for a
 * subscription. */
int answer_request(struct answer_context *ctx, const struct rpc_request *request, cJSON **result,
                   struct err *err) MUST_CHECK;

/* The program that params name; ERR_NOT_FOUND, or ERR_USAGE when several have the name. */
int answer_find_program(const struct shell *sh, const cJSON *params, struct hosted **out,
                        struct err *err) MUST_CHECK;
/* The same for what cannot be undone: where there are several, params have to name one
 * (ERR_USAGE, with ids to choose from). */
int answer_find_named(const struct shell *sh, const cJSON *params, struct hosted **out,
                      struct err *err) MUST_CHECK;

/* ERR_NOT_FOUND: what a task's name looks like, and where to find one. */
int answer_no_task(const struct hosted *h, const char *name, struct err *err) MUST_CHECK;

struct hosted *answer_program_by_root(const struct shell *sh, const char *root); /* or NULL */

/* The event that subscribers get: {"type":"progress","summary":SUMMARY}. And the response that ends
 * a subscription, which `verdict` answers with, too. */
cJSON *answer_progress(const struct shell *sh, const struct hosted *h);
cJSON *answer_verdict_of(const struct shell *sh, struct hosted *h);

/* answer_task.c, answer_submit.c */
int answer_cells(struct answer_context *ctx, const cJSON *params, cJSON **result,
                 struct err *err) MUST_CHECK;
int answer_explain(struct answer_context *ctx, const cJSON *params, cJSON **result,
                   struct err *err) MUST_CHECK;
int answer_logs(struct answer_context *ctx, const cJSON *params, cJSON **result,
                struct err *err) MUST_CHECK;
int answer_submit(struct answer_context *ctx, const cJSON *params, cJSON **result,
                  struct err *err) MUST_CHECK;
int answer_amend(struct answer_context *ctx, const cJSON *params, cJSON **result,
                 struct err *err) MUST_CHECK; /* answer_amend.c */

/* answer_lost.c: a task whose accepted result is gone or changed is given up. */
int answer_lost(struct answer_context *ctx, const cJSON *params, cJSON **result,
                struct err *err) MUST_CHECK;

/* counted.c: SUMMARY's "counted"; and under which limits of [run], narrower than those of others, a
 * task was blocked (state/journal/run_record.h): NULL when it was not, or that is unknown. */
cJSON *counted_json(const struct shell *sh, const struct hosted *h);
const char *counted_narrower(const struct shell *sh, const struct hosted *h, uint32_t task);

/* summary.c: SUMMARY of docs/rpc.md, and the state of a task in its words. */
cJSON *summary_json(const struct shell *sh, const struct hosted *h);
/* The state of an apparatus check; NULL when an amendment removed it. And of all of them. */
cJSON *summary_check(const struct shell *sh, const struct hosted *h, uint32_t task);
cJSON *summary_checks(const struct shell *sh, const struct hosted *h);
const char *summary_task_state(const struct shell *sh, const struct hosted *h, uint32_t task);
/* An estimate in ms; null when it is negative, not finite, or beyond ten years. */
void summary_put_span(cJSON *o, const char *key, double ms);
void summary_put_time(cJSON *o, const char *key, struct wall_time t); /* null for 0 */

#endif
