/*
 * Describes what a task does as one object, and hashes its canonical text with the digests of the
 * works before it. Members must not be added lightly: locks with [reuse] contain these digests.
 */
#include "prereg/reuse/work.h"

#include <stdlib.h>
#include <string.h>

#include "base/json/json.h"
#include "base/xalloc.h"
#include "prereg/program/same_work.h"
#include "prereg/task/task.h"

#define VALUE_SHOWN 60 /* bytes of a value in a message */

/* {NAME: HEX}, null for what the lock does not pin. */
static cJSON *data_of(const struct lock *lock, const struct plan_program *named)
{
    cJSON *o = json_object();
    for (size_t i = 0; i < named->n_data; i++) {
        json_put_string(o, named->data[i].name, lock_data_digest(lock, named->data[i].name));
    }
    return o;
}

static cJSON *pins_of(const struct lock *lock, const struct plan_program *named)
{
    cJSON *o = json_object();
    for (size_t i = 0; i < named->n_pin_files; i++) {
        json_put_string(o, named->pin_files[i], lock_file_digest(lock, named->pin_files[i]));
    }
    return o;
}

/* Files by their digest, whatever their path; all else as written. */
static cJSON *arguments_of(const struct lock *lock, const struct plan_stage *s)
{
    cJSON *list = json_array();
    for (size_t i = 1; i < s->n_command; i++) {
        const char *file = lock_file_digest(lock, s->command[i]);
        char *text =
            xasprintf("%s %s", file != NULL ? "file" : "text", file != NULL ? file : s->command[i]);
        json_push_string(list, text);
        free(text);
    }
    return list;
}

cJSON *work_describe(const struct plan_program *p, const struct lock *lock,
                     const struct plan_program *named, size_t task)
{
    const size_t stage = task % p->n_stages;
    const struct plan_stage *s = &p->stages[stage];
    cJSON *o = json_object();
    json_put_string(o, "stage", s->name);
    json_put_string(o, "worker", lock_file_digest(lock, s->command[0]));
    json_put(o, "arguments", arguments_of(lock, s));
    json_put_int(o, "threads", s->threads);
    json_put(o, "env", s->env == NULL ? json_object() : json_copy(s->env));
    json_put_string(o, "gpu", p->pin_gpu);
    json_put(o, "params", task_params(p, lock, task / p->n_stages, stage));
    json_put(o, "data", data_of(lock, named));
    json_put(o, "pins", pins_of(lock, named));
    if (s->environment != NULL) {
        const cJSON *lists = json_member(lock->locked, "environments");
        const cJSON *list = json_member(lists, s->environment);
        json_put(o, "environment", list == NULL ? cJSON_CreateNull() : json_copy(list));
    }
    return o;
}

/* {STAGE: HEX} of the stages before, whose digests are in `out` already. */
static cJSON *inputs_of(const struct plan_program *p, size_t task, const struct digest *out)
{
    const struct plan_stage *s = &p->stages[task % p->n_stages];
    const size_t first = task - task % p->n_stages;
    cJSON *o = json_object();
    for (size_t i = 0; i < s->n_after; i++) {
        char hex[DIGEST_HEX_SIZE];
        digest_hex(&out[first + s->after[i]], hex);
        json_put_string(o, p->stages[s->after[i]].name, hex);
    }
    return o;
}

/* Works come before their other names, and stages after those that they wait for. */
int work_digests(const struct plan_program *p, const struct lock *lock,
                 const struct plan_program *named, struct digest *out, struct err *err)
{
    struct strbuf text = STRBUF_INIT;
    int rc = 0;
    for (size_t t = 0; rc == 0 && t < program_n_tasks(p); t++) {
        const size_t worker = program_worker_of(p, t);
        if (worker != t) {
            out[t] = out[worker];
            continue;
        }
        cJSON *work = work_describe(p, lock, named, t);
        json_put(work, "inputs", inputs_of(p, t, out));
        strbuf_clear(&text);
        rc = json_canonical(work, &text, err);
        if (rc == 0) {
            out[t] = digest_bytes(text.buf, text.len);
        }
        cJSON_Delete(work);
    }
    strbuf_release(&text);
    return rc;
}

static void add_value(struct strbuf *out, const cJSON *v)
{
    struct err ignored;
    const size_t from = out->len;
    if (v == NULL || cJSON_IsNull(v)) {
        strbuf_adds(out, "nothing");
    } else if (json_line(v, out, &ignored) != 0) {
        strbuf_adds(out, "?");
    }
    if (out->len > from + VALUE_SHOWN) {
        size_t cut = from + VALUE_SHOWN;
        while (cut > from && ((unsigned char)out->buf[cut] & 0xC0U) == 0x80U) {
            cut--;
        }
        out->len = cut;
        out->buf[cut] = '\0';
        strbuf_adds(out, "...");
    }
}

/* The path of the first member that differs, down to where one side is not an object. */
static bool differs_at(const cJSON *now, const cJSON *then, const char *path, struct strbuf *out)
{
    if (json_equal(now, then)) {
        return false;
    }
    if (cJSON_IsObject(now) && cJSON_IsObject(then)) {
        bool found = false;
        for (const cJSON *list = now, *other = then; !found; list = then, other = now) {
            for (const cJSON *m = list->child; m != NULL && !found; m = m->next) {
                char *below =
                    path[0] == '\0' ? xstrdup(m->string) : xasprintf("%s.%s", path, m->string);
                const cJSON *its = json_member(other, m->string);
                found =
                    list == now ? differs_at(m, its, below, out) : differs_at(its, m, below, out);
                free(below);
            }
            if (list == then) {
                return found;
            }
        }
        return found;
    }
    strbuf_addf(out, "%.120s is ", path);
    add_value(out, now);
    strbuf_adds(out, ", and was ");
    add_value(out, then);
    return true;
}

bool work_difference(const cJSON *now, const cJSON *then, struct strbuf *out)
{
    return differs_at(now, then, "", out);
}
