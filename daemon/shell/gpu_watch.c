/* Asks for GPUs off the loop, one job at a time, and judges on the loop whose their processes are.
 * After a failure nothing is known to the core, so nothing is given until the next answer. */
#include "daemon/shell/gpu_watch.h"

#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/machine/gpu_ask.h"
#include "base/xalloc.h"
#include "daemon/core/explain.h"
#include "daemon/shell/attempts.h"
#include "daemon/shim/mark.h"

#define BUSY_MS    10000
#define PRETEND_MS 1000 /* a file costs nothing */
#define IDLE_MS    (10 * 60 * 1000)
#define NAMED_MAX  2                  /* processes of one GPU; the others are counted */
#define SERVER     "nvidia-cuda-mps"  /* works for the processes that are listed beside it */
#define FIRST_PIDS "pid:[4026531836]" /* the machine's own namespace of process numbers */

struct gpu_watch {
    uv_timer_t timer;
    struct gpu_list list;
    bool known;
    bool asking;
    bool told; /* the core knows them */
    bool other_pids;
    int64_t asked_ms; /* mono: when the last job began */
    char *fault;
};

struct ask_job {
    struct job job;
    struct shell *shell;
    struct gpu_owners before; /* attempts alive when it began */
    struct gpu_list list;
    struct strbuf notes;
    int rc;
    struct err err;
};

/* ---- whose a process is ---- */

static void add_owners(const struct shell *sh, struct gpu_owners *ours)
{
    ours->ids = xreallocarray(ours->ids, ours->n + sh->n_attempts + 1, sizeof(*ours->ids));
    ours->marks = xreallocarray(ours->marks, ours->n + sh->n_attempts + 1, sizeof(*ours->marks));
    for (const struct shell_attempt *a = sh->attempts; a != NULL; a = a->next) {
        if (a->row.placement.gpus[0] != '\0') {
            memcpy(ours->ids[ours->n], a->row.id, UUID_TEXT_SIZE);
            ours->marks[ours->n++] = mark_limit(a->row.id);
        }
    }
}

static void release_owners(struct gpu_owners *ours)
{
    free(ours->ids);
    free(ours->marks);
    *ours = (struct gpu_owners){0};
}

static bool is_ours(const struct gpu_process *p, const struct gpu_owners *ours)
{
    for (size_t i = 0; i < ours->n; i++) {
        if (p->mark == ours->marks[i] || strcmp(p->attempt, ours->ids[i]) == 0) {
            return true;
        }
    }
    return false;
}

/* Where the driver's numbers name other processes here, marks cannot be read: then any process that
 * uses a GPU that we hold is taken for ours. A process without a name has ended since. */
static bool is_foreign(const struct gpu_process *p, const struct gpu_owners *ours, bool held)
{
    if (strncmp(p->name, SERVER, strlen(SERVER)) == 0 || is_ours(p, ours)) {
        return false;
    }
    return ours->other_pids ? !held : p->name[0] != '\0';
}

void gpu_users_text(const struct gpu *g, const struct gpu_owners *ours, bool held,
                    struct strbuf *out)
{
    size_t n = 0;
    for (size_t i = 0; i < g->n_processes; i++) {
        const struct gpu_process *p = &g->processes[i];
        if (!is_foreign(p, ours, held) || ++n > NAMED_MAX) {
            continue;
        }
        strbuf_addf(out, "%spid %lld", n == 1 ? "" : " and ", (long long)p->pid);
        if (p->name[0] != '\0') {
            strbuf_addf(out, " (%.20s)", p->name);
        }
        if (p->user[0] != '\0') {
            strbuf_addf(out, " of user %.20s", p->user);
        }
    }
    if (n > NAMED_MAX) {
        strbuf_addf(out, " and %zu more", n - NAMED_MAX);
    }
}

/* The driver's figures are of one moment, an attempt's of another: what ours have is taken from
 * what is in use, and less than nothing is nothing. */
int64_t gpu_others_bytes(const struct gpu *g, const struct gpu_owners *ours, bool held)
{
    int64_t used = g->memory_bytes - g->free_bytes;
    if (g->free_bytes < 0 || used <= 0 || (ours->other_pids && held)) {
        return 0;
    }
    for (size_t i = 0; i < g->n_processes; i++) {
        const struct gpu_process *p = &g->processes[i];
        if (is_ours(p, ours)) {
            if (p->memory_bytes < 0) {
                return 0;
            }
            used -= p->memory_bytes;
        }
    }
    return used > 0 ? used : 0;
}

/* Whether it is one of a list with commas: "AMD-1" is not in "AMD-10". */
static bool is_in_list(const char *list, const char *uuid)
{
    const size_t n = strlen(uuid);
    while (*list != '\0') {
        const size_t len = strcspn(list, ",");
        if (len == n && memcmp(list, uuid, n) == 0) {
            return true;
        }
        list += len + (list[len] == ',');
    }
    return false;
}

static bool is_held(const struct shell *sh, const char *uuid)
{
    for (const struct shell_attempt *a = sh->attempts; a != NULL; a = a->next) {
        if (is_in_list(a->row.placement.gpus, uuid)) {
            return true;
        }
    }
    return false;
}

/* ---- asking ---- */

/* While nothing wants GPUs they are not asked for, and after a failure they are not known: the core
 * must not rely on what they were. */
static void tell_core(struct shell *sh, struct gpu_owners *ours)
{
    struct gpu_watch *w = sh->gpus;
    struct core_event ev = {.kind = CORE_GPUS};
    struct err ignored;
    ev.gpus.known = core_wants_gpus(sh->core) && w->fault == NULL;
    ev.gpus.n = ev.gpus.known ? w->list.n : 0;
    struct core_gpu *list = xcalloc(ev.gpus.n + 1, sizeof(*list));
    ours->other_pids = w->other_pids;
    for (size_t i = 0; i < ev.gpus.n; i++) {
        const struct gpu *g = &w->list.items[i];
        struct strbuf users = STRBUF_INIT;
        list[i].index = g->index;
        list[i].memory_bytes = g->memory_bytes;
        list[i].others_bytes = gpu_others_bytes(g, ours, is_held(sh, g->uuid));
        memcpy(list[i].uuid, g->uuid, sizeof(list[i].uuid));
        memcpy(list[i].model, g->model, sizeof(list[i].model));
        gpu_users_text(g, ours, is_held(sh, g->uuid), &users);
        (void)snprintf(list[i].used_by, sizeof(list[i].used_by), "%s", users.buf);
        strbuf_release(&users);
    }
    ev.gpus.list = list;
    w->told = ev.gpus.known;
    (void)!pump_request(sh->pump, &ev, &ignored); /* not while commits fail: it is sent again */
    free(list);
}

static void say_list(const struct gpu_list *list, const struct strbuf *notes)
{
    for (size_t i = 0; i < list->n; i++) {
        const struct gpu *g = &list->items[i];
        log_info("GPU %lld: %s, %s, %lld MiB", (long long)g->index, g->uuid, g->model,
                 (long long)(g->memory_bytes >> 20));
    }
    if (notes->len > 0) {
        log_warn("GPUs: %.*s", (int)strcspn(notes->buf, "\n"), notes->buf);
    }
}

static bool same_gpus(const struct gpu_list *a, const struct gpu_list *b)
{
    bool same = a->n == b->n;
    for (size_t i = 0; same && i < a->n; i++) {
        same = strcmp(a->items[i].uuid, b->items[i].uuid) == 0;
    }
    return same;
}

static void take_answer(struct ask_job *j)
{
    struct gpu_watch *w = j->shell->gpus;
    if (j->rc != 0) {
        if (w->fault == NULL || strcmp(w->fault, j->err.msg) != 0) {
            log_warn("GPUs of this machine: %s", j->err.msg);
        }
        free(w->fault);
        w->fault = xstrdup(j->err.msg);
        tell_core(j->shell, &j->before);
        return;
    }
    if (!w->known ? j->list.n > 0 : !same_gpus(&w->list, &j->list)) {
        say_list(&j->list, &j->notes);
    }
    free(w->fault);
    w->fault = NULL;
    w->known = true;
    gpu_list_release(&w->list);
    w->list = j->list;
    j->list = (struct gpu_list){0};
    add_owners(j->shell, &j->before); /* those that have begun since */
    tell_core(j->shell, &j->before);
}

static void arm(struct shell *sh);

static void on_asked(struct job *job)
{
    struct ask_job *j = (struct ask_job *)job;
    j->shell->gpus->asking = false;
    if (!j->shell->stopping) {
        take_answer(j);
        arm(j->shell);
    }
    gpu_list_release(&j->list);
    strbuf_release(&j->notes);
    release_owners(&j->before);
    free(j);
}

static void on_ask_work(struct job *job)
{
    struct ask_job *j = (struct ask_job *)job;
    j->rc = gpu_ask(GPU_ASK_MS, &j->list, &j->notes, &j->err);
}

static void on_timer(uv_timer_t *timer)
{
    struct shell *sh = timer->data;
    struct gpu_watch *w = sh->gpus;
    if (w->asking) {
        return;
    }
    struct ask_job *j = xcalloc(1, sizeof(*j));
    j->job.work = on_ask_work;
    j->job.done = on_asked;
    j->shell = sh;
    j->notes = (struct strbuf)STRBUF_INIT;
    add_owners(sh, &j->before);
    w->asking = true;
    w->asked_ms = clock_mono().ms;
    job_start(&sh->loop, &j->job);
}

static int64_t interval_ms(const struct shell *sh)
{
    const char *pretend = getenv(GPU_PRETEND);
    return !core_wants_gpus(sh->core)              ? IDLE_MS
           : pretend != NULL && pretend[0] != '\0' ? PRETEND_MS
                                                   : BUSY_MS;
}

static void arm(struct shell *sh)
{
    struct gpu_watch *w = sh->gpus;
    const int64_t left = w->asked_ms + interval_ms(sh) - clock_mono().ms;
    uv_update_time(&sh->loop);
    (void)uv_timer_start(&w->timer, on_timer, left > 0 ? (uint64_t)left : 0, 0);
}

/* ---- its life ---- */

void gpu_watch_open(struct shell *sh)
{
    char own[64] = "";
    sh->gpus = xcalloc(1, sizeof(*sh->gpus));
    (void)uv_timer_init(&sh->loop, &sh->gpus->timer);
    sh->gpus->timer.data = sh;
    const ssize_t n = readlink("/proc/self/ns/pid", own, sizeof(own) - 1);
    sh->gpus->other_pids = n > 0 && strcmp(own, FIRST_PIDS) != 0;
}

void gpu_watch_start(struct shell *sh)
{
    on_timer(&sh->gpus->timer);
}

void gpu_watch_note(struct shell *sh)
{
    struct gpu_watch *w = sh->gpus;
    if (w == NULL || w->asking || w->asked_ms == 0 || !core_wants_gpus(sh->core)) {
        return;
    }
    if (!w->told && w->fault == NULL) {
        on_timer(&w->timer);
    } else if (uv_timer_get_due_in(&w->timer) > BUSY_MS) {
        arm(sh);
    }
}

void gpu_watch_close(struct shell *sh)
{
    if (uv_is_closing((uv_handle_t *)&sh->gpus->timer) == 0) {
        uv_close((uv_handle_t *)&sh->gpus->timer, NULL);
    }
}

void gpu_watch_free(struct shell *sh)
{
    if (sh->gpus != NULL) {
        gpu_list_release(&sh->gpus->list);
        free(sh->gpus->fault);
        free(sh->gpus);
        sh->gpus = NULL;
    }
}

const struct gpu_list *gpu_watch_list(const struct shell *sh)
{
    return sh->gpus != NULL && sh->gpus->known ? &sh->gpus->list : NULL;
}

const char *gpu_watch_fault(const struct shell *sh)
{
    return sh->gpus == NULL ? NULL : sh->gpus->fault;
}
