/* ACT_OPEN_RECORDS: the scores may be seen, so the metrics and facts of sealed results are put into
 * the store, as are those of open results whose transaction was lost while their journal line was
 * not. This is done in portions, one in each turn, so that a large program does not hold up the
 * loop. Repeating a portion changes nothing, so a restart simply begins again. */
#include "base/file.h"
#include "base/log.h"
#include "base/xalloc.h"
#include "daemon/program/inputs.h"
#include "daemon/program/result.h"
#include "daemon/shell/shell.h"

#define PORTION  200
#define AGAIN_MS 2000

struct unrecorded {
    uint32_t task;
    struct digest digest;
};

struct opening {
    struct shell *shell;
    uint32_t program;
    struct unrecorded *tasks;
    size_t n;
    size_t cap;
    size_t next;
    uv_timer_t timer;
};

static int take_task(void *ctx, uint32_t task, uint32_t attempt_no, const struct digest *digest,
                     struct err *err)
{
    struct opening *o = ctx;
    (void)attempt_no;
    (void)err;
    ARRAY_GROW(o->tasks, o->n, o->cap);
    o->tasks[o->n++] = (struct unrecorded){.task = task, .digest = *digest};
    return 0;
}

/* A result that is gone or changed is skipped: it must not keep the others from being recorded. */
static int put_one(struct shell *sh, const struct hosted *h, const struct unrecorded *t,
                   struct err *err)
{
    cJSON *result = NULL;
    char *folder = hosted_task_folder(h, t->task);
    char *path = path_join(folder, RESULT_FILE);
    int rc = accepted_read(path, &t->digest, &result, err);
    if (rc == 0) {
        rc = store_put_result(sh->store, h->no, t->task, result, err);
    } else {
        log_error("%s", err->msg); /* stays unrecorded; the verdict reports it, too */
        rc = 0;
    }
    cJSON_Delete(result);
    free(path);
    free(folder);
    return rc;
}

/* One transaction: a portion is recorded whole or not at all. */
static int put_portion(struct opening *o, size_t upto, struct err *err)
{
    struct shell *sh = o->shell;
    const struct hosted *h = shell_program(sh, o->program);
    int rc = store_begin(sh->store, err);
    if (rc != 0) {
        return rc;
    }
    for (size_t i = o->next; rc == 0 && i < upto; i++) {
        rc = put_one(sh, h, &o->tasks[i], err);
    }
    if (rc == 0) {
        rc = store_commit(sh->store, err);
    }
    if (rc != 0) {
        store_rollback(sh->store);
    }
    return rc;
}

static void on_opening_closed(uv_handle_t *handle)
{
    struct opening *o = handle->data;
    free(o->tasks);
    free(o);
}

/* Each turn of the timer records one portion; a failed one is retried after AGAIN_MS. */
static void on_opening(uv_timer_t *timer)
{
    struct opening *o = timer->data;
    struct err err;
    size_t upto = o->n - o->next > PORTION ? o->next + PORTION : o->n;
    if (o->shell->stopping || shell_served(o->shell, o->program) == NULL) {
        uv_close((uv_handle_t *)timer, on_opening_closed);
    } else if (o->next < o->n && put_portion(o, upto, &err) != 0) {
        log_error("records of program %u: %s", o->program, err.msg);
        (void)uv_timer_start(timer, on_opening, AGAIN_MS, 0);
    } else if (upto < o->n) {
        o->next = upto;
        (void)uv_timer_start(timer, on_opening, 0, 0);
    } else {
        struct core_event ev = {.kind = CORE_RECORDS_OPENED, .program = o->program};
        pump_post(o->shell->pump, &ev);
        uv_close((uv_handle_t *)timer, on_opening_closed);
    }
}

void shell_open_records(struct shell *sh, uint32_t program)
{
    struct opening *o = xcalloc(1, sizeof(*o));
    struct err err;
    o->shell = sh;
    o->program = program;
    if (store_results(sh->store, program, true, take_task, o, &err) != 0) {
        log_error("records of program %u: %s", program, err.msg);
    }
    (void)uv_timer_init(&sh->loop, &o->timer);
    o->timer.data = o;
    (void)uv_timer_start(&o->timer, on_opening, 0, 0);
}
