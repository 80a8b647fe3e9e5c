/* Makes shapes from a program's settings and an attempt's placement. There are few: one for each
 * stage of each program, and more only after another [run]; so they are searched one by one. */
#include "daemon/executor/slurm/shape.h"

#include <stdlib.h>
#include <string.h>

#include "base/strbuf.h"
#include "base/xalloc.h"

#define WARN_MIN_MS    (60 * 1000)
#define WARN_MAX_MS    (10 * 60 * 1000)
#define WARN_SHARE     10 /* of the time limit */
#define GPU_THOUSANDTH 1000

/* How long before its time limit a job is asked for a checkpoint (rule 21): a tenth of the limit,
 * within bounds, and never more than half of it. */
static int64_t warn_ms(int64_t time_ms)
{
    int64_t warn = time_ms / WARN_SHARE;
    warn = warn < WARN_MIN_MS ? WARN_MIN_MS : warn > WARN_MAX_MS ? WARN_MAX_MS : warn;
    return warn < time_ms / 2 ? warn : time_ms / 2;
}

static void key_text(struct strbuf *out, const char *text)
{
    strbuf_addf(out, "%zu:%s", text == NULL ? 0 : strlen(text), text == NULL ? "" : text);
}

static void key_list(struct strbuf *out, const char *const *list, size_t n)
{
    strbuf_addf(out, "[%zu]", n);
    for (size_t i = 0; i < n; i++) {
        key_text(out, list[i]);
    }
}

static void make_key(struct strbuf *out, const struct slurm_shape *s)
{
    const struct slurm_request *r = &s->request;
    strbuf_addf(out, "%u %u %lld %u %lld %lld %lld ", s->program, r->threads,
                (long long)r->memory_bytes, r->gpus, (long long)r->time_ms, (long long)s->grace_ms,
                (long long)s->poll_ms);
    key_text(out, r->partition);
    key_text(out, r->account);
    key_text(out, r->qos);
    key_text(out, r->clusters);
    key_text(out, s->folder);
    key_text(out, s->shim);
    key_list(out, r->options, r->n_options);
    key_list(out, s->setup, s->n_setup);
}

static const char *keep(struct slurm_shape *s, const char *text)
{
    return text == NULL ? NULL : arena_strdup(&s->texts, text);
}

static const char **keep_list(struct slurm_shape *s, const char *const *list, size_t n)
{
    const char **out = arena_array(&s->texts, n + 1, sizeof(*out));
    for (size_t i = 0; i < n; i++) {
        out[i] = keep(s, list[i]);
    }
    return out;
}

static struct slurm_shape *make_shape(const struct attempt_place *place, const char *own_shim)
{
    const struct slurm_settings *from = &place->program->run.slurm;
    const struct placement *at = place->placement;
    const int64_t time_ms = place->program->stages[place->stage].run.time_ms;
    struct slurm_shape *s = xcalloc(1, sizeof(*s));
    arena_init(&s->texts);
    s->program = place->key.program;
    s->folder = keep(s, place->program_folder);
    s->shim = keep(s, from->shim == NULL ? own_shim : from->shim);
    s->setup = keep_list(s, from->setup, from->n_setup);
    s->n_setup = from->n_setup;
    s->grace_ms = from->grace_ms;
    s->poll_ms = from->poll_ms;
    s->request = (struct slurm_request){
        .partition = keep(s, from->partition),
        .account = keep(s, from->account),
        .qos = keep(s, from->qos),
        .clusters = keep(s, from->clusters),
        .options = keep_list(s, from->options, from->n_options),
        .n_options = from->n_options,
        .threads = at->threads > 0 ? at->threads : 1,
        .memory_bytes = at->memory_bytes,
        .gpus = (uint32_t)((at->gpu_thousandths + GPU_THOUSANDTH - 1) / GPU_THOUSANDTH),
        .time_ms = time_ms,
        .login = from->n_setup > 0,
        .warn_ms = time_ms > 0 ? warn_ms(time_ms) : 0};
    return s;
}

static void free_shape(struct slurm_shape *s)
{
    arena_release(&s->texts);
    free(s->jobs);
    free(s->key);
    free(s);
}

uint32_t slurm_shape_number(struct slurm_shapes *list, const struct attempt_place *place,
                            const char *own_shim)
{
    struct strbuf key = STRBUF_INIT;
    struct slurm_shape *s = make_shape(place, own_shim);
    make_key(&key, s);
    for (uint32_t i = 0; i < list->n; i++) {
        if (strcmp(list->list[i]->key, key.buf) == 0) {
            free_shape(s);
            strbuf_release(&key);
            return i;
        }
    }
    s->key = strbuf_detach(&key);
    ARRAY_GROW(list->list, list->n, list->cap);
    list->list[list->n] = s;
    return (uint32_t)list->n++;
}

void slurm_shapes_release(struct slurm_shapes *list)
{
    for (size_t i = 0; i < list->n; i++) {
        free_shape(list->list[i]);
    }
    free(list->list);
    *list = (struct slurm_shapes){0};
}
