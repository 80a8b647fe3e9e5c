/*
 * A description is a JSON object that the worker fills while it reads its parameters. The daemon
 * and preregctl read the one line that description_print() writes; faults of the parameters are a
 * member of it ("errors"), not a failure, so that `check` can show all of them with their keys.
 */
#include "worker/report/describe.h"

#include <errno.h>

#include "base/json/json.h"
#include "base/terminal.h"
#include "worker/report/task.h"

void description_init(struct description *d)
{
    d->json = json_object();
    d->metrics = json_array();
    d->facts = json_object();
    d->params = json_object();
    d->notes = json_array();
    json_put_int(d->json, "protocol", TASK_PROTOCOL);
    json_put(d->json, "metrics", d->metrics);
    json_put(d->json, "facts", d->facts);
    json_put(d->json, "params", d->params);
    json_put(d->json, "notes", d->notes);
}

void description_release(struct description *d)
{
    cJSON_Delete(d->json);
    *d = (struct description){0};
}

void description_metric(struct description *d, const char *name)
{
    json_push_string(d->metrics, name);
}

void description_fact(struct description *d, const char *name, double value)
{
    json_put_number(d->facts, name, value);
}

void description_seconds(struct description *d, double seconds)
{
    json_put_number(d->json, "seconds", seconds);
}

void description_note(struct description *d, const char *text)
{
    json_push_string(d->notes, text);
}

/* The member of the object, made by `make` if it is not there yet. */
static cJSON *member_of(cJSON *obj, const char *key, cJSON *(*make)(void))
{
    cJSON *found = cJSON_GetObjectItemCaseSensitive(obj, key);

    if (found == NULL) {
        found = make();
        json_put(obj, key, found);
    }
    return found;
}

void description_artifact(struct description *d, const char *path)
{
    json_push_string(member_of(d->json, "artifacts", json_array), path);
}

void description_reads(struct description *d, const char *stage, const char *path)
{
    cJSON *stages = member_of(d->json, "reads", json_object);

    json_push_string(member_of(stages, stage, json_array), path);
}

void description_param(struct description *d, const char *key, double value)
{
    json_put_number(d->params, key, value);
}

void description_resolves(struct description *d, const char *key, cJSON *value)
{
    cJSON *resolves = cJSON_GetObjectItemCaseSensitive(d->json, "resolves");

    if (resolves == NULL) {
        resolves = json_object();
        json_put(d->json, "resolves", resolves);
    }
    json_put(resolves, key, value);
}

int description_print(struct description *d, const struct param_faults *faults, FILE *out,
                      struct err *err)
{
    struct strbuf text = STRBUF_INIT;
    cJSON *errors = json_array();

    for (size_t i = 0; i < faults->n; i++) {
        cJSON *e = json_object();
        json_put_string(e, "key", faults->items[i].key);
        json_put_string(e, "why", faults->items[i].why);
        json_push(errors, e);
    }
    json_put(d->json, "errors", errors);
    int rc = json_line(d->json, &text, err);
    if (rc == 0) {
        strbuf_addc(&text, '\n');
        terminal_data(out, text.buf, text.len);
        if (fflush(out) != 0 || ferror(out))
            rc = err_set_errno(err, errno, "write the description");
    }
    strbuf_release(&text);
    return rc;
}
