/*
 * Questions to the daemon for commands that need just one. A command that needs several keeps its
 * own rpc_client (commands/status.c, commands/cells.c). Answers are JSON of a daemon that may be of
 * another version, so members are read with a fallback and never assumed.
 */
#include "ctl/ask.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/json/json.h"
#include "ctl/text/out.h"

cJSON *ask_params(const struct ctl_options *o, bool from_args)
{
    const char *program = from_args && o->n_args > 0 ? o->args[0] : o->program;
    cJSON *params = json_object();
    if (program != NULL) {
        json_put_string(params, "program", program);
    }
    return params;
}

void ask_put_reason(const struct ctl_options *o, cJSON *params)
{
    if (o->reason != NULL) {
        json_put_string(params, "reason", o->reason);
    }
}

int ask(const struct ctl_options *o, const char *method, cJSON *params, cJSON **result,
        struct err *err)
{
    struct rpc_client *client = NULL;
    int rc = rpc_open(o->state, &client, err);
    if (rc == 0) {
        rc = rpc_call(client, method, params, result, err);
    }
    rpc_close(client);
    cJSON_Delete(params);
    return rc;
}

int ask_and_say(const struct ctl_options *o, const char *method, cJSON *params,
                void (*say)(const cJSON *answer), struct err *err)
{
    cJSON *answer = NULL;
    int rc = ask(o, method, params, &answer, err);
    if (rc == 0 && o->json) {
        rc = out_json(answer, err);
    } else if (rc == 0) {
        say(answer);
    }
    cJSON_Delete(answer);
    return rc;
}

const char *answer_text(const cJSON *object, const char *key, const char *fallback)
{
    const cJSON *v = json_member(object, key);
    return cJSON_IsString(v) ? v->valuestring : fallback;
}

int64_t answer_int(const cJSON *object, const char *key, int64_t fallback)
{
    const cJSON *v = json_member(object, key);
    bool fits = cJSON_IsNumber(v) && fabs(v->valuedouble) <= (double)JSON_INT_MAX;
    return fits ? (int64_t)v->valuedouble : fallback;
}

bool answer_bool(const cJSON *object, const char *key)
{
    return cJSON_IsTrue(json_member(object, key));
}
