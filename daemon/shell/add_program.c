/* Adds a program of the store to the shell and its core, and journals a [run] table that the
 * journal does not have. load.c calls this at the start, answer_submit.c when a program is
 * submitted. */
#include "daemon/shell/shell.h"

#include <string.h>

#include "base/json/json.h"
#include "base/log.h"
#include "base/xalloc.h"
#include "daemon/core/explain.h"
#include "daemon/program/mirror.h"
#include "daemon/shell/attempts.h"
#include "daemon/shell/gpu_watch.h"

static void make_room(struct shell *sh, uint32_t no)
{
    size_t cap = sh->cap_programs == 0 ? 16 : sh->cap_programs;
    while (cap <= no) {
        cap *= 2;
    }
    if (cap > sh->cap_programs) {
        sh->programs = xreallocarray(sh->programs, cap, sizeof(*sh->programs));
        memset(sh->programs + sh->cap_programs, 0,
               (cap - sh->cap_programs) * sizeof(*sh->programs));
        sh->cap_programs = cap;
    }
}

/* Undoes shell_add_program() for a program that the core refused. */
static void forget_program(struct shell *sh, struct hosted *h, const struct live_list *live)
{
    for (size_t i = 0; i < live->n; i++) {
        struct attempt_key key = {
            .program = h->no, .task = live->items[i].task, .no = live->items[i].attempt.no};
        struct shell_attempt *a = attempt_find(sh, &key);
        if (a != NULL) {
            attempt_remove(a);
        }
    }
    sh->programs[h->no] = NULL;
    hosted_free(h);
}

int shell_change_run(struct shell *sh, struct hosted *h, const struct plan_program *p,
                     struct err *err)
{
    struct core_event ev = {.kind = CORE_PROGRAM_SETTINGS, .program = h->no};
    struct strbuf text = STRBUF_INIT;
    int rc = json_canonical(p->run.covered, &text, err);
    if (rc == 0) {
        plan_init(&ev.added.plan, p, h);
        ev.text = text.buf;
        rc = pump_request(sh->pump, &ev, err);
        plan_release(&ev.added.plan);
    }
    strbuf_release(&text);
    return rc;
}

static int take_run(void *ctx, int64_t seq, const char *run, struct err *err)
{
    struct strbuf *last = ctx;
    (void)seq;
    (void)err;
    strbuf_clear(last);
    strbuf_adds(last, run);
    return 0;
}

/* Journals the [run] of grid.toml when it is not the journal's last one: the file in the state
 * folder was edited, or was written before a row that never came. Nothing runs under a [run] that
 * the journal does not have. Errors do not keep the program from loading: a row that the disk
 * refuses is committed later, and damaged rows are found by the check of the journal. */
static void journal_run(struct shell *sh, struct hosted *h)
{
    struct err err;
    struct strbuf last = STRBUF_INIT;
    cJSON *run = NULL;
    const struct plan_program *p = h->bundle->program;
    int rc = h->status.verdict ? 0 : store_runs(sh->store, h->no, take_run, &last, &err);
    if (rc == 0 && last.len > 0) {
        rc = json_parse(last.buf, last.len, &run, &err);
    }
    if (rc == 0 && run != NULL && !json_equal(run, p->run.covered)) {
        log_warn("%s: [run] of grid.toml is not what the journal has: it is journalled", h->id);
        rc = shell_change_run(sh, h, p, &err);
    }
    if (rc != 0) {
        log_error("%s: its [run]: %s", h->id, err.msg);
    }
    cJSON_Delete(run);
    strbuf_release(&last);
}

/* h becomes the shell's, or is freed when the program cannot be added. The mirror must be loaded
 * before the core, which may act on it at once. */
int shell_add_program(struct shell *sh, struct hosted *h, const struct store_program *row,
                      struct err *err)
{
    struct program_row known;
    struct core_event ev = {.kind = CORE_PROGRAM_ADDED, .program = h->no};
    struct live_list live = {0};
    make_room(sh, h->no);
    sh->programs[h->no] = h;
    int rc = history_check_start(sh, h, err);
    if (rc == 0) {
        rc = mirror_load(sh->store, h, row, &live, err);
    }
    if (rc == 0) {
        for (size_t i = 0; i < live.n; i++) {
            struct attempt_key key = {
                .program = h->no, .task = live.items[i].task, .no = live.items[i].attempt.no};
            (void)attempt_add(sh, &key, &live.items[i].attempt);
        }
        plan_init(&ev.added.plan, h->bundle->program, h);
        ev.added.tasks = h->tasks;
        ev.added.live = live.items;
        ev.added.n_live = live.n;
        ev.added.ends = live.ends;
        ev.added.n_ends = live.n_ends;
        ev.added.status = &h->status;
        ev.added.latest = h->latest;
        ev.added.stop_text = hosted_why_of(h, PAUSE_STOPPING);
        rc = pump_request(sh->pump, &ev, err);
        plan_release(&ev.added.plan);
        if (rc != 0 && !core_program_status(sh->core, h->no, &known)) {
            forget_program(sh, h, &live); /* the core refuses it: what is stored is damaged */
        } else if (rc != 0 && h->withheld_why != NULL) {
            rc = 0; /* it is there, and its rows wait */
        }
        if (rc == 0) {
            journal_run(sh, h);
            gpu_watch_note(sh);
        }
    } else {
        sh->programs[h->no] = NULL;
        hosted_free(h);
    }
    free(live.ends);
    free(live.items);
    return rc;
}
