/* Asking the daemon: one connection, one question, with words that help when nobody answers. */
#ifndef CTL_ASK_H
#define CTL_ASK_H

#include <cjson/cJSON.h>

#include "ctl/ctl.h"
#include "daemon/rpc/client.h"

/* {"program":…} of --program or the first argument as `from_args` says; {} without. */
cJSON *ask_params(const struct ctl_options *o, bool from_args) __attribute__((returns_nonnull));

/* {"reason":…} of --reason, where it is given. */
void ask_put_reason(const struct ctl_options *o, cJSON *params);

/* One whole question. params is taken over; the caller deletes *result. */
int ask(const struct ctl_options *o, const char *method, cJSON *params, cJSON **result,
        struct err *err) MUST_CHECK;

/* The frame of commands that only say what was done: asks, then prints the answer as JSON or
 * `text`, which gets it. params is taken over. */
int ask_and_say(const struct ctl_options *o, const char *method, cJSON *params,
                void (*say)(const cJSON *answer), struct err *err) MUST_CHECK;

/* Members of an answer as a caller that draws wants them: never an error, a fallback instead. */
const char *answer_text(const cJSON *object, const char *key, const char *fallback);
int64_t answer_int(const cJSON *object, const char *key, int64_t fallback);
bool answer_bool(const cJSON *object, const char *key);

#endif
