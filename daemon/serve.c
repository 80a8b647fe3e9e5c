/*
 * The composition of the daemon: opens store, executor, core, pump and server, connects them, and
 * closes them in the reverse direction.
 *
 * The pump's callbacks are here. In one commit the order is: the rows are applied with what goes
 * with them (committing), then the mirror and the attempts follow (committed), then the acts are
 * done. Stopping closes every handle and lets the loop run dry; shims and workers go on, but for
 * what was cancelled, which is ended first.
 */
#include "daemon/serve.h"

#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/files/file.h"
#include "base/json/json.h"
#include "base/layout/layout.h"
#include "base/log.h"
#include "base/machine/machine.h"
#include "base/xalloc.h"
#include "daemon/answers/answer.h"
#include "daemon/core/explain.h"
#include "daemon/executor/local.h"
#include "daemon/executor/slurm/slurm.h"
#include "daemon/http/http.h"
#include "daemon/program/amended.h"
#include "daemon/program/clocks.h"
#include "daemon/program/sweep.h"
#include "daemon/rpc/server.h"
#include "daemon/shared_state.h"
#include "daemon/shell/attempts.h"
#include "daemon/shell/gpu_watch.h"
#include "daemon/shell/load.h"
#include "daemon/shell/notify.h"
#include "daemon/shell/shell.h"
#include "daemon/tenure/hold.h"

#define READ_BUFFER_BYTES    ((size_t)1024 * 1024)
#define STOP_WAIT_MS         30000 /* for cancellations: squeue may block for 9 s, sbatch for more */
#define STOP_LOOK_MS         50
#define MEMORY_RESERVE_BYTES ((int64_t)512 * 1024 * 1024) /* for us and the system */

/* ---- requests, whichever way they came ---- */

static void note_change(void *ctx)
{
    struct shell *sh = ctx;
    server_note_change(sh->server);
    http_note_change(sh->http);
}

/* A number tells where the request came from: the RPC's socket or the page. */
static void answer_deferred(void *ctx, uint64_t connection, const cJSON *result,
                            const struct err *why)
{
    struct shell *sh = ctx;
    if (connection >= HTTP_ID_BASE) {
        http_answer(sh->http, connection, result, why);
    } else {
        const struct server_replies socket = server_replies(sh->server);
        socket.answer(socket.ctx, connection, result, why);
    }
}

static int open_page(struct shell *sh, const struct loopback_address *at, struct err *err)
{
    struct server_handler handler = answer_handler(sh);
    int rc = http_open(sh, &handler, at, &sh->http, err);
    if (rc != 0) {
        http_close(sh->http);
    }
    return rc;
}

/* RPC method `page`. */
static int on_page(void *ctx, bool start, bool new_token, cJSON **out, struct err *err)
{
    struct shell *sh = ctx;
    const bool off = !http_is_open(sh->http);
    if (off && !start) {
        return err_set(
            err, ERR_NOT_FOUND,
            "the page is off: `preregctl open` turns it on, as do `preregd serve --http` "
            "and [http] of serve.toml");
    }
    if (off && sh->stopping) {
        return err_set(err, ERR_NO_DAEMON, "preregd is stopping");
    }
    if (off) {
        const struct loopback_address any = {.host = "127.0.0.1"};
        int rc = open_page(sh, sh->settings.http.on ? &sh->settings.http.at : &any, err);
        if (rc != 0) {
            return rc;
        }
    }
    int rc = new_token ? http_renew_token(sh->http, err) : 0;
    *out = rc == 0 ? http_describe(sh->http) : NULL;
    return rc;
}

/* ---- the pump's callbacks ---- */

/* Within the transaction: an amendment's row brings its apparatus checks. */
static int on_committing(void *ctx, const struct state_row *rows, size_t n, struct err *err)
{
    struct shell *sh = ctx;
    for (size_t i = 0; i < n; i++) {
        const struct state_row *r = &rows[i];
        if (r->kind == ROW_AMENDED) {
            int rc = amended_commit(sh->store, shell_program(sh, r->program), err);
            if (rc != 0) {
                return rc;
            }
        }
    }
    return 0;
}

/* Journalled rows only. The text of another [run] is JSON and is left out. */
static void log_row(const struct hosted *h, const struct state_row *r)
{
    if (!row_kind_is_journalled(r->kind)) {
        return;
    }
    const char *detail = r->detail == NULL || r->kind == ROW_RUN_SETTINGS ? "" : r->detail;
    if (row_kind_is_of_task(r->kind)) {
        char *name = hosted_task_name(h, r->task);
        log_info("%s: %s: %s -> %s %s%s%s", h->id, name, row_kind_name(r->kind),
                 task_state_name(r->after.state), cause_name(r->attempt.cause),
                 detail[0] == '\0' ? "" : ": ", detail);
        free(name);
    } else {
        log_info("%s: %s%s%s", h->id, row_kind_name(r->kind), detail[0] == '\0' ? "" : ": ",
                 detail);
    }
}

/* A struct shell_attempt lives from its committed start to its committed end. */
static void mirror_attempt(struct shell *sh, const struct state_row *r)
{
    sh->counters.attempts_started += r->kind == ROW_ATTEMPT_STARTED;
    if (r->kind == ROW_ATTEMPT_ENDED && r->attempt.reason < END_REASON_NR) {
        sh->counters.attempts_ended[r->attempt.reason]++;
    }
    struct attempt_key key = {.program = r->program, .task = r->task, .no = r->attempt.no};
    struct shell_attempt *a = attempt_find(sh, &key);
    if (r->kind == ROW_ATTEMPT_STARTED) {
        (void)attempt_add(sh, &key, &r->attempt);
    } else if (a != NULL && r->kind == ROW_ATTEMPT_ENDED) {
        attempt_remove(a);
    } else if (a != NULL) {
        attempt_mirror(a, &r->attempt);
        a->must_end = a->must_end || r->kind == ROW_TASK_ENDING;
    }
}

/* After the commit: mirror first, then what follows from single kinds of rows. */
static void on_committed(void *ctx, const struct state_row *rows, size_t n)
{
    struct shell *sh = ctx;
    for (size_t i = 0; i < n; i++) {
        struct hosted *h = shell_program(sh, rows[i].program);
        hosted_apply(h, &rows[i]);
        clocks_at_row(h, &rows[i]);
        if (rows[i].kind == ROW_RUN_SETTINGS) { /* before the acts: an attempt that starts behind
                                                   this row has these limits */
            hosted_take_settings(h);
            shell_prune_all(sh, h);
        }
        if (rows[i].kind == ROW_TASK_LINKED) {
            shell_prune_task(sh, h, rows[i].task);
        }
        if (rows[i].kind == ROW_AMENDED) {
            amended_take_effect(h);
            shell_verify_again(sh, rows[i].program);
        }
        log_row(h, &rows[i]);
        notify_row(sh, h, &rows[i]);
        if (row_kind_is_of_task(rows[i].kind) && rows[i].attempt.no != 0) {
            mirror_attempt(sh, &rows[i]);
        }
    }
    gpu_watch_note(sh);
    note_change(sh);
}

/* The program's rows are rejected. Its attempts go on, and what they hold of the machine stays
 * counted until they end. */
static void on_damaged(void *ctx, uint32_t program, struct err *why)
{
    struct shell *sh = ctx;
    struct hosted *h = shell_program(sh, program);
    const struct err first = *why;
    (void)err_set(why, ERR_CORRUPT,
                  "the rows of %.80s are damaged: stop preregd, run `preregctl rebuild`, start it "
                  "again (%.110s)",
                  h->id, first.msg);
    log_error("%s: nothing more of it is started; the other programs go on: %s", h->id, first.msg);
    load_note_unloaded(sh, h->id, h->bundle->program->name, why);
    h->version++;
    note_change(sh);
}

/* Its folder is gone or cannot be written. Its running attempts go on; it is not reported again
 * until the pump's next try succeeds. */
static void on_withheld(void *ctx, uint32_t program, struct err *why)
{
    struct shell *sh = ctx;
    struct hosted *h = shell_program(sh, program);
    free(h->withheld_why);
    h->withheld_why = NULL;
    if (why != NULL) {
        const struct err first = *why;
        const char *reason = strrchr(first.msg, ':'); /* the path before it may be cut */
        (void)err_set(
            why, first.code,
            "its folder %.150s cannot be written (%.50s): put it back or make it writable",
            h->folder, reason == NULL ? first.msg : reason + 2);
        h->withheld_why = xstrdup(why->msg);
        log_error("%s: its folder %s cannot be written; the other programs go on: %s", h->id,
                  h->folder, first.msg);
    } else {
        log_info("%s: its folder can be written again", h->id);
    }
    h->version++;
    note_change(sh);
}

/* ACT_PROBE. An attempt whose start was dropped, or is still being prepared, is answered here. */
static void probe(struct shell *sh, const struct attempt_key *key)
{
    struct shell_attempt *a = attempt_find(sh, key);
    struct attempt_place place;
    if (a == NULL && pump_damage(sh->pump, key->program) != NULL) {
        struct core_event ev = {.kind = CORE_ATTEMPT_ENDED,
                                .program = key->program,
                                .task = key->task,
                                .attempt_no = key->no};
        ev.ended.reason = END_NEVER_LAUNCHED;
        pump_post(sh->pump, &ev); /* its start was dropped with its row */
        return;
    }
    if (a != NULL && a->preparing) {
        attempts_on_probed(sh, key, HEALTH_UNKNOWN); /* its shim is not started yet */
    } else if (a != NULL) {
        struct executor *x = shell_executor_of(sh, a);
        attempt_locate(a, &place);
        x->ops->probe(x, &place);
    }
}

/* ACT_TERMINATE, ACT_KILL. One that has ended meanwhile needs neither. */
static void end_by_force(struct shell *sh, const struct attempt_key *key, bool kill)
{
    const struct shell_attempt *a = attempt_find(sh, key);
    if (a != NULL) {
        struct executor *x = shell_executor_of(sh, a);
        (kill ? x->ops->kill : x->ops->terminate)(x, key);
    }
}

static void on_act(void *ctx, const struct core_act *act)
{
    struct shell *sh = ctx;
    struct attempt_key key = {.program = act->program, .task = act->task, .no = act->attempt_no};
    switch (act->kind) {
    case ACT_START: shell_start_attempt(sh, act); break;
    case ACT_TERMINATE: end_by_force(sh, &key, false); break;
    case ACT_KILL: end_by_force(sh, &key, true); break;
    case ACT_PROBE: probe(sh, &key); break;
    case ACT_VERIFY: shell_verify_attempt(sh, act); break;
    case ACT_LINK: shell_link_result(sh, act); break;
    case ACT_WATCH_DISK:
    case ACT_WATCH_DATA: shell_watch_disk(sh); break;
    case ACT_VERDICT: shell_compute_verdict(sh, act->program); break;
    case ACT_REPORT: shell_write_report(sh, act->program); break;
    case ACT_REMOVE: shell_remove_cells(sh, act->program); break;
    case ACT_ARM: /* the pump's own */
    case CORE_ACT_NR: assert(act->kind < ACT_ARM); break;
    }
}

/* ---- start and stop ---- */

/* Cores and memory of this machine; the seed of jitter and attempt ids is from the kernel. */
static int machine_config(struct core_config *c, struct err *err)
{
    core_config_default(c);
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    c->cores = cores > 0 ? (uint32_t)cores : 1;
    int64_t memory = machine_memory_bytes();
    c->memory_bytes = memory > 2 * MEMORY_RESERVE_BYTES ? memory - MEMORY_RESERVE_BYTES : memory;
    return getrandom(&c->seed, sizeof(c->seed), 0) == (ssize_t)sizeof(c->seed)
               ? 0
               : err_set_errno(err, errno, "random seed");
}

/* The pump first: it commits what waits, and nothing is posted after it. Jobs that hash are
 * cancelled, since they may take hours. */
static void stop(struct shell *sh)
{
    if (sh->stopping) {
        return;
    }
    if (sh->pump != NULL) {
        pump_close(sh->pump);
    }
    sh->stopping = true;
    job_cancel_hashing();
    if (sh->server != NULL) {
        server_close(sh->server);
    }
    http_close(sh->http);
    for (int i = 0; i < EXECUTOR_NR; i++) {
        if (sh->executors[i] != NULL) {
            sh->executors[i]->ops->close(sh->executors[i]);
        }
    }
    attempts_close(sh);
    for (size_t i = 0; i < sh->cap_programs; i++) {
        if (sh->programs[i] != NULL) {
            shell_close_report(sh->programs[i]);
        }
    }
    history_check_close(sh);
    counted_close(sh);
    gpu_watch_close(sh);
    notify_close(sh);
    uv_close((uv_handle_t *)&sh->stop_due, NULL);
    uv_close((uv_handle_t *)&sh->tick, NULL);
    uv_close((uv_handle_t *)&sh->disk, NULL);
    uv_close((uv_handle_t *)&sh->on_term, NULL);
    uv_close((uv_handle_t *)&sh->on_int, NULL);
    uv_close((uv_handle_t *)&sh->on_usr2, NULL);
    if (sh->tenure != NULL) {
        tenure_hold_close(sh->tenure);
    }
}

/* How many attempts have to be ended that only this daemon would end: those of Slurm, which may not
 * have been asked yet. */
static size_t count_ending(const struct shell *sh)
{
    size_t n = 0;
    for (int i = 0; i < EXECUTOR_NR; i++) {
        const struct executor *x = sh->executors[i];
        n += x != NULL && x->ops->ending != NULL ? x->ops->ending(x) : 0;
    }
    return n;
}

static void on_stop_due(uv_timer_t *timer)
{
    struct shell *sh = timer->data;
    const size_t n = count_ending(sh);
    if (n > 0 && clock_mono().ms < sh->stop_until_ms) {
        return;
    }
    if (n > 0) {
        log_warn("%zu cancelled attempts may still run: Slurm could not be asked to end them; the "
                 "next preregd does it",
                 n);
    }
    stop(sh);
}

/* What a person has cancelled is ended first, for a bounded time: the core would wait for a sign of
 * life, and without a next daemon the jobs would run on. Asked again, it stops at once. */
static void stop_soon(struct shell *sh)
{
    if (sh->stopping || sh->stop_until_ms != 0) {
        stop(sh);
        return;
    }
    for (struct shell_attempt *a = sh->attempts; a != NULL; a = a->next) {
        if (a->must_end && !a->ended && !a->closing) {
            struct executor *x = shell_executor_of(sh, a);
            x->ops->terminate(x, &a->key);
        }
    }
    const size_t n = count_ending(sh);
    if (n == 0) {
        stop(sh);
        return;
    }
    pump_post(sh->pump, &(struct core_event){.kind = CORE_STOPPING});
    log_info("stopping once Slurm has been asked to end %zu cancelled attempts", n);
    sh->stop_until_ms = clock_mono().ms + STOP_WAIT_MS;
    (void)uv_timer_start(&sh->stop_due, on_stop_due, STOP_LOOK_MS, STOP_LOOK_MS);
}

static void on_stop_signal(uv_signal_t *handle, int sig)
{
    log_info("told to stop (signal %d); what runs goes on running", sig);
    stop_soon(handle->data);
}

static void on_stop_request(void *ctx)
{
    stop_soon(ctx);
}

static int open_loop(struct shell *sh, struct err *err)
{
    int rc = uv_loop_init(&sh->loop);
    if (rc != 0) {
        return err_set(err, ERR_IO, "event loop: %s", uv_strerror(rc));
    }
    (void)uv_timer_init(&sh->loop, &sh->stop_due);
    (void)uv_timer_init(&sh->loop, &sh->tick);
    (void)uv_timer_init(&sh->loop, &sh->disk);
    counted_open(sh);
    gpu_watch_open(sh);
    (void)uv_signal_init(&sh->loop, &sh->on_term);
    (void)uv_signal_init(&sh->loop, &sh->on_int);
    (void)uv_signal_init(&sh->loop, &sh->on_usr2);
    sh->stop_due.data = sh->tick.data = sh->disk.data = sh->on_term.data = sh->on_int.data =
        sh->on_usr2.data = sh;
    (void)uv_signal_start(&sh->on_term, on_stop_signal, SIGTERM);
    (void)uv_signal_start(&sh->on_int, on_stop_signal, SIGINT);
    (void)uv_signal_start(&sh->on_usr2, on_stop_signal, SIGUSR2);
    return 0;
}

/* prereg-shim must be beside this executable. */
static int open_executors(struct shell *sh, struct err *err)
{
    struct strbuf own = STRBUF_INIT;
    struct executor_listener listener = {.ctx = sh,
                                         .began = attempts_on_began,
                                         .ended = attempts_on_ended,
                                         .probed = attempts_on_probed,
                                         .full = attempts_on_full};
    int rc = path_of_self(&own, err);
    if (rc == 0) {
        char *shim = path_join(own.buf, "prereg-shim");
        if (access(shim, X_OK) != 0) {
            rc = err_set_errno(err, errno, "%s cannot be run", shim);
        } else {
            char *words = path_join(sh->local, LAYOUT_SHIM_LOG);
            sh->executors[EXECUTOR_LOCAL] =
                local_create(&sh->loop, shim, words, LOCAL_YOUNG_MS, &listener);
            if (sh->tenure != NULL) {
                local_share(sh->executors[EXECUTOR_LOCAL], sh->moved, LOCAL_ELSEWHERE_MS);
            }
            free(words);
            sh->executors[EXECUTOR_SLURM] =
                slurm_create(&sh->loop, shim, sh->config.seed, &listener);
        }
        sh->shim = shim;
    }
    strbuf_release(&own);
    return rc;
}

/* Another daemon has the state folder now: nothing that this process would still write, its socket
 * and its notes included, is its own any more. What runs goes on, and is fenced off by the other
 * one. */
static void on_lost(void *ctx, const struct err *why)
{
    (void)ctx;
    log_error("%s: this daemon stops at once", why->msg);
    _exit(EXIT_MOVED);
}

static int check_tenure(void *ctx, struct err *err)
{
    struct shell *sh = ctx;
    return tenure_hold_check(sh->tenure, err);
}

/* Of a shared state folder every commit is guarded from here on, and the first one says that it was
 * taken over: from then on the journals differ from what the daemon before it knows. */
static int open_store(struct shell *sh, const struct shared_state *shared, struct err *err)
{
    if (shared->is_shared) {
        const bool not_stopped = shared->taken.had_holder && shared->taken.proof != TENURE_RELEASED;
        sh->taken_over = not_stopped ? shared->taken.story : NULL;
        sh->moved = shared->taken.had_holder &&
                    !tenure_is_same_host(&shared->taken.holder, &shared->taken.own);
        sh->tenure = tenure_hold_create(&sh->loop, sh->state, &shared->taken.own, on_lost, sh);
    }
    int rc = store_open(sh->state, STORE_OWNER, &sh->store, err);
    if (rc == 0 && shared->is_shared) {
        store_set_guard(sh->store, check_tenure, sh);
    }
    rc = rc == 0 ? work_owner_init(&sh->owner, sh->state, err) : rc;
    return rc != 0 ? rc : shared_state_journal(shared, sh->store, err);
}

/* The store first: its lock makes this the only daemon of the folder. CORE_ALL_ADDED comes last, so
 * that nothing starts before everything is known. */
static int open_all(struct shell *sh, const struct serve_options *options,
                    const struct shared_state *shared, struct err *err)
{
    static const struct pump_listener template = {.committing = on_committing,
                                                  .committed = on_committed,
                                                  .act = on_act,
                                                  .damaged = on_damaged,
                                                  .withheld = on_withheld};
    struct pump_listener listener = template;
    listener.ctx = sh;
    int rc = 0;
    if ((rc = machine_config(&sh->config, err)) != 0 || (rc = open_store(sh, shared, err)) != 0 ||
        (rc = open_executors(sh, err)) != 0) {
        return rc;
    }
    sh->core = core_create(&sh->config);
    sh->pump = pump_create(&sh->loop, sh->core, sh->store, &listener);
    struct server_handler handler = answer_handler(sh);
    handler.stop = on_stop_request;
    /* one that is asked to stop removes its socket */
    char *socket = path_join(sh->local, LAYOUT_SOCKET);
    struct stat st;
    const bool crashed = lstat(socket, &st) == 0;
    free(socket);
    rc = server_open(&sh->loop, sh->local, &handler, &sh->server, err);
    sh->replies =
        (struct server_replies){.ctx = sh, .answer = answer_deferred, .note_change = note_change};
    sh->page = (struct page_control){.ctx = sh, .ask = on_page};
    if (rc != 0 || (rc = settings_read(sh->state, &sh->settings, err)) != 0) {
        return rc;
    }
    notify_open(sh);
    if (options->http != NULL) { /* the command line wins over serve.toml */
        sh->settings.http.on = true;
        sh->settings.http.at = *options->http;
    }
    if (sh->settings.readers.folder != NULL &&
        (rc = server_open_readers(sh->server, &sh->settings.readers, err)) != 0) {
        return rc;
    }
    rc = load_all(sh, err);
    struct core_event all = {.kind = CORE_ALL_ADDED};
    if (rc != 0 || (rc = pump_request(sh->pump, &all, err)) != 0) {
        return rc;
    }
    if (crashed) {
        notify_crashed(sh);
    }
    return sh->settings.http.on ? open_page(sh, &sh->settings.http.at, err) : 0;
}

static void release_all(struct shell *sh)
{
    for (int i = 0; i < EXECUTOR_NR; i++) {
        if (sh->executors[i] != NULL) {
            sh->executors[i]->ops->free(sh->executors[i]);
        }
    }
    if (sh->pump != NULL) {
        pump_free(sh->pump);
    }
    server_free(sh->server);
    http_free(sh->http);
    settings_release(&sh->settings);
    core_free(sh->core);
    store_close(sh->store);
    tenure_hold_free(sh->tenure);
    for (size_t i = 0; i < sh->cap_programs; i++) {
        hosted_free(sh->programs[i]);
    }
    free(sh->programs);
    for (size_t i = 0; i < sh->n_unloaded; i++) {
        free(sh->unloaded[i].id);
        free(sh->unloaded[i].name);
    }
    free(sh->unloaded);
    key_map_release(&sh->attempt_map);
    gpu_watch_free(sh);
    free(sh->read_buffer);
    free(sh->state);
    free(sh->shim);
}

static int run(struct shell *sh, const struct serve_options *options,
               const struct shared_state *shared, struct err *err)
{
    int rc = open_loop(sh, err);
    if (rc != 0) {
        return rc;
    }
    rc = open_all(sh, options, shared, err);
    if (rc == 0) {
        sweep_state(sh->state);
        shell_watch_disk(sh);
        gpu_watch_start(sh);
        log_info("serving %s (%s, pid %ld, %u cores)", sh->state, PREREGD_VERSION, (long)getpid(),
                 sh->config.cores);
    } else {
        stop(sh);
    }
    (void)uv_run(&sh->loop, UV_RUN_DEFAULT);
    job_join_hashing();
    int left = uv_loop_close(&sh->loop);
    assert(left == 0); /* every handle was closed */
    (void)left;
    return rc;
}

/* Runs the loop until every handle is closed, also when opening failed half-way. */
int serve_state(const struct serve_options *options, struct err *err)
{
    struct shared_state shared;
    (void)signal(SIGPIPE, SIG_IGN);
    int rc = shared_state_open(options, &shared, err);
    if (rc != 0) {
        shared_state_release(&shared);
        return rc;
    }
    job_size_pool();
    struct shell sh = {.state = xstrdup(options->state),
                       .local = shared.local,
                       .started = clock_wall(),
                       .checked_rows = STORE_CHECKED_ROWS};
    sh.read_buffer = xmalloc(READ_BUFFER_BYTES);
    (void)prctl(PR_SET_CHILD_SUBREAPER,
                1); /* orphans of a killed shim become our children (fence.c) */
    rc = run(&sh, options, &shared, err);
    release_all(&sh);
    shared_state_release(&shared);
    return rc;
}
