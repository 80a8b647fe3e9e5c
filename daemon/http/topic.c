/* Fingerprints decide what is rendered: JSON is made only of the tasks that differ, so that a
 * thousand cells cost a pass over their rows and no more. */
#include "daemon/http/topic.h"

#include <string.h>

#include "base/json/json.h"
#include "base/xalloc.h"
#include "daemon/answers/answer.h"
#include "daemon/shell/attempts.h"

struct topic *topic_create(const struct hosted *h, uint64_t no)
{
    struct topic *t = xcalloc(1, sizeof(*t));
    t->program = h->no;
    t->version = UINT64_MAX;
    ring_init(&t->ring, no);
    return t;
}

void topic_free(struct topic *t)
{
    ring_release(&t->ring);
    shared_text_unref(t->full);
    free(t->prints);
    free(t);
}

/* ---- fingerprints ---- */

static uint64_t mix(uint64_t seed, uint64_t value)
{
    uint64_t x = (seed ^ value) * UINT64_C(0x9e3779b97f4a7c15);
    return x ^ (x >> 29);
}

static uint64_t print_of(const struct task_row *t)
{
    uint64_t p = mix(1, (uint64_t)t->state);
    p = mix(p, (uint64_t)t->cause);
    p = mix(p, t->n_attempts);
    return mix(p, (uint64_t)t->not_before.ms);
}

/* Everything of an attempt at work that a task shows; the time left follows from it. */
static uint64_t print_of_attempt(uint64_t p, const struct attempt_row *a)
{
    p = mix(p, (uint64_t)a->state);
    p = mix(p, (uint64_t)a->section);
    p = mix(p, (uint64_t)a->done);
    p = mix(p, (uint64_t)a->total);
    for (const char *c = a->placement.gpus; *c != '\0'; c++) {
        p = mix(p, (uint64_t)(unsigned char)*c);
    }
    return p;
}

static uint64_t *take_prints(const struct shell *sh, const struct hosted *h)
{
    uint64_t *prints = xcalloc(h->n_tasks, sizeof(*prints));
    for (size_t i = 0; i < h->n_tasks; i++) {
        prints[i] = print_of(&h->tasks[i]);
    }
    for (const struct shell_attempt *a = sh->attempts; a != NULL; a = a->next) {
        if (a->key.program == h->no && a->key.task < h->n_tasks && !a->closing) {
            prints[a->key.task] = print_of_attempt(prints[a->key.task], &a->row);
        }
    }
    return prints;
}

/* ---- messages ---- */

static void push_task(cJSON *list, const struct shell *sh, const struct hosted *h, uint32_t task)
{
    const size_t cell = hosted_cell(h, task);
    cJSON *o = json_object();
    cJSON *state = json_object();
    json_put_int(o, "cell", (int64_t)cell);
    json_put_string(o, "name", h->bundle->program->cells[cell].name);
    json_put_int(o, "stage", (int64_t)hosted_stage(h, task));
    answer_put_task(state, sh, h, task);
    json_put(o, "task", state);
    json_push(list, o);
}

/* Of all tasks, or of those whose prints differ from `before`. NULL: of none. */
static struct shared_text *render(const struct shell *sh, const struct hosted *h,
                                  const uint64_t *before, const uint64_t *now)
{
    const struct plan_program *p = h->bundle->program;
    struct strbuf text = STRBUF_INIT;
    struct err err;
    cJSON *o = json_object();
    cJSON *stages = json_array();
    cJSON *changed = json_array();
    size_t n = 0;
    for (size_t s = 0; s < p->n_stages; s++) {
        json_push_string(stages, p->stages[s].name);
    }
    for (size_t i = 0; i < h->n_tasks; i++) {
        if (before == NULL || before[i] != now[i]) {
            push_task(changed, sh, h, (uint32_t)i);
            n++;
        }
    }
    json_put_string(o, "program", h->id);
    json_put_bool(o, "full", before == NULL);
    json_put_int(o, "n_cells", (int64_t)p->n_cells);
    json_put(o, "stages", stages);
    json_put(o, "changed", changed);
    strbuf_adds(&text, "event: cells\ndata: ");
    const bool fine = (n > 0 || before == NULL) && json_line(o, &text, &err) == 0;
    strbuf_adds(&text, "\n\n");
    cJSON_Delete(o);
    struct shared_text *made = fine ? shared_text_make(&text) : NULL;
    strbuf_release(&text);
    return made;
}

static const struct hosted *find_served(struct topic *t, const struct shell *sh)
{
    const struct hosted *h = shell_served(sh, t->program);
    t->gone = h == NULL;
    t->damaged = h == NULL && shell_program(sh, t->program) != NULL;
    return h;
}

void topic_refresh(struct topic *t, const struct shell *sh, uint64_t *last_no)
{
    const struct hosted *h = find_served(t, sh);
    if (h == NULL) {
        return;
    }
    if (h->version == t->version) {
        return;
    }
    t->version = h->version;
    uint64_t *now = take_prints(sh, h);
    if (t->prints != NULL) {
        struct shared_text *text = render(sh, h, t->prints, now);
        if (text != NULL) {
            ring_push(&t->ring, ++*last_no, text);
        }
    }
    free(t->prints);
    t->prints = now;
}

struct shared_text *topic_full(struct topic *t, const struct shell *sh, uint64_t *last_no,
                               uint64_t *no)
{
    const struct hosted *h = find_served(t, sh);
    uint64_t after = 0;
    if (h == NULL) {
        return NULL;
    }
    if (t->full == NULL || ring_next(&t->ring, t->full_no, &after) != NULL ||
        t->version != h->version) {
        shared_text_unref(t->full);
        t->full = render(sh, h, NULL, NULL);
        t->full_no = ++*last_no;
    }
    *no = t->full_no;
    return t->full;
}
