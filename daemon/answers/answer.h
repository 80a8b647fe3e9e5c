/* What each RPC method answers (docs/rpc.md). Nothing here reads a value that could be a score. */
#ifndef DAEMON_ANSWERS_ANSWER_H
#define DAEMON_ANSWERS_ANSWER_H

#include <cjson/cJSON.h>

#include "daemon/program/hosted.h"
#include "daemon/rpc/handler.h"
#include "daemon/shell/shell.h"

struct answer_context {
    struct shell *shell;
    struct server_call *call;
};

typedef int answer_fn(struct answer_context *ctx, const cJSON *params, cJSON **result,
                      struct err *err);

/* Returns the function that answers `method`; every method has one. */
answer_fn *answer_to(enum rpc_method method);

/* Requests and subscriptions of `sh`; the caller sets `stop`, and sh->replies before the first. */
struct server_handler answer_handler(struct shell *sh);

/* Answers a request that set `later`: with result, or with why; both are borrowed. */
static inline void answer_later(const struct shell *sh, uint64_t connection, const cJSON *result,
                                const struct err *why)
{
    sh->replies.answer(sh->replies.ctx, connection, result, why);
}

/* answer_find.c. The program that params name; ERR_NOT_FOUND, or ERR_USAGE when several have the
 * name. */
int answer_find_program(const struct shell *sh, const cJSON *params, struct hosted **out,
                        struct err *err) MUST_CHECK;
/* The same for what cannot be undone: where there are several, params have to name one
 * (ERR_USAGE, with ids to choose from). */
int answer_find_named(const struct shell *sh, const cJSON *params, struct hosted **out,
                      struct err *err) MUST_CHECK;

/* Whether params name a program of the state folder that is damaged, so that it is not served. */
bool answer_is_unloaded(const struct shell *sh, const cJSON *params);

/* ERR_NOT_FOUND: what a task's name looks like, and where to find one. */
int answer_no_task(const struct hosted *h, const char *name, struct err *err) MUST_CHECK;

struct hosted *answer_program_by_root(const struct shell *sh, const char *root); /* or NULL */

int64_t answer_n_programs(const struct shell *sh); /* served */

/* answer_task.c, answer_submit.c */
int answer_cells(struct answer_context *ctx, const cJSON *params, cJSON **result,
                 struct err *err) MUST_CHECK;
int answer_explain(struct answer_context *ctx, const cJSON *params, cJSON **result,
                   struct err *err) MUST_CHECK;
int answer_logs(struct answer_context *ctx, const cJSON *params, cJSON **result,
                struct err *err) MUST_CHECK;
/* Adds the members of TASK (docs/rpc.md). */
void answer_put_task(cJSON *o, const struct shell *sh, const struct hosted *h, uint32_t task);
int answer_submit(struct answer_context *ctx, const cJSON *params, cJSON **result,
                  struct err *err) MUST_CHECK;
int answer_amend(struct answer_context *ctx, const cJSON *params, cJSON **result,
                 struct err *err) MUST_CHECK; /* answer_amend.c */

/* answer_lost.c: a task whose accepted result is gone or changed is given up. */
int answer_lost(struct answer_context *ctx, const cJSON *params, cJSON **result,
                struct err *err) MUST_CHECK;

/* answer_disk.c: all programs, and what they take on the disk. */
int answer_programs(struct answer_context *ctx, const cJSON *params, cJSON **result,
                    struct err *err) MUST_CHECK;
int answer_disk(struct answer_context *ctx, const cJSON *params, cJSON **result,
                struct err *err) MUST_CHECK;

/* answer_page.c: where the live page is. */
int answer_page(struct answer_context *ctx, const cJSON *params, cJSON **result,
                struct err *err) MUST_CHECK;

/* answer_remove.c: gives up the cells of a program that has ended. */
int answer_remove(struct answer_context *ctx, const cJSON *params, cJSON **result,
                  struct err *err) MUST_CHECK;

/* counted_losses.c: SUMMARY's "counted"; and under which limits of [run], narrower than those of
 * others, a task was blocked (state/journal/run_record.h): NULL when it was not, or that is
 * unknown. */
cJSON *counted_json(const struct shell *sh, const struct hosted *h);
const char *counted_narrower(const struct shell *sh, const struct hosted *h, uint32_t task);
/* The timer that reads long journals on for it. */
void counted_open(struct shell *sh);
void counted_close(struct shell *sh);

/* summary.c: SUMMARY of docs/rpc.md, and the state of a task in its words. */
cJSON *summary_json(const struct shell *sh, const struct hosted *h);
/* The state of an apparatus check; NULL when an amendment removed it. And of all of them. */
cJSON *summary_check(const struct shell *sh, const struct hosted *h, uint32_t task);
cJSON *summary_checks(const struct shell *sh, const struct hosted *h);
/* SUMMARY's "state". */
const char *summary_state(const struct shell *sh, const struct hosted *h);
const char *summary_task_state(const struct shell *sh, const struct hosted *h, uint32_t task);
/* The time left in ms; NaN when a stage with open tasks has no estimate. */
double summary_eta_ms(const struct shell *sh, const struct hosted *h);
/* An estimate in ms; null when it is negative, not finite, or beyond ten years. */
void summary_put_span(cJSON *o, const char *key, double ms);
void summary_put_time(cJSON *o, const char *key, struct wall_time t); /* null for 0 */

/* The second half of `amend`: what was prepared and perhaps signed takes effect. */

/* params: {"commit":HEAD,"signature"?}. A signature is checked off the loop, so the answer may come
 * later. */
int amend_commit(struct answer_context *ctx, struct hosted *h, const cJSON *params, cJSON **result,
                 struct err *err) MUST_CHECK;

#endif
