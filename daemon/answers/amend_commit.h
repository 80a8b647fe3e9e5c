/* The second half of `amend`: what was prepared and perhaps signed takes effect. */
#ifndef DAEMON_ANSWERS_AMEND_COMMIT_H
#define DAEMON_ANSWERS_AMEND_COMMIT_H

#include "daemon/answers/answer.h"
#include "daemon/program/hosted.h"

/* params: {"commit":HEAD,"signature"?}. A signature is checked off the loop, so the answer may come
 * later. */
int amend_commit(struct answer_context *ctx, struct hosted *h, const cJSON *params, cJSON **result,
                 struct err *err) MUST_CHECK;

#endif
