/*
 * The local executor. Every attempt has one struct local_run, from its start or first probe until
 * its end was reported and its shim reaped.
 *
 * A run is advanced by its shim's pidfd, a timer, a probe, and the job that examines the folder. At
 * most one such job exists per run, and the run outlives it, so a finding always has a run to go
 * to. The listener may close everything from inside a callback; code after a call of it checks the
 * state first.
 */
#include "daemon/executor/local.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/files/file.h"
#include "base/layout/layout.h"
#include "base/log.h"
#include "base/text.h"
#include "base/xalloc.h"
#include "daemon/executor/job.h"
#include "daemon/executor/launch.h"
#include "daemon/executor/post_mortem.h"
#include "daemon/shim/group.h"
#include "daemon/shim/pid.h"

#define LOOK_AGAIN_MS     500
#define LOOK_ELSEWHERE_MS 3000
#define BEAT_ALIVE_MS     60000 /* a heartbeat that moved within this long is life */

enum run_state {
    RUN_WATCHED, /* a pidfd is polled */
    RUN_WAITING, /* no pidfd: examined again after a while */
    RUN_REAPING, /* its end was reported; its shim, a child of ours, is not reaped yet */
    RUN_CLOSING, /* ended or closed: handles and the job go, then the memory */
};

struct local {
    struct executor base;
    uv_loop_t *loop;
    struct launch *launch;
    char *groups;     /* the cgroup below which shims make one for each attempt; NULL: none */
    int64_t young_ms; /* how long a shim may take to its lock */
    bool shared;      /* hosts share the state folder; so the next two */
    bool moved;
    int64_t elsewhere_ms;
    struct local_run *runs;
};

struct local_run {
    struct local *owner;
    struct local_run *next;
    struct attempt_key key;
    char id[UUID_TEXT_SIZE];
    char *folder;
    enum run_state state;
    int pidfd;
    pid_t shim;      /* while a pidfd of it is held; 0: another daemon's */
    pid_t child;     /* the shim, when this daemon is to wait for it; 0: none */
    bool kill_asked; /* its shim was asked to kill the tree */
    int64_t born_ms; /* monotonic: when its shim was spawned */
    bool used;       /* its folder, or one beside it, has been there once */
    bool seen_alive; /* its shim was found to hold the lock, or to have a child */
    bool stuck;      /* its shim was killed: it took no lock in time */
    bool elsewhere;  /* found to be on another host, or perhaps there */
    struct mono_time elsewhere_since;
    struct heartbeat_watch beat; /* likewise */
    bool unclear; /* whether it lives could not be determined last time, which was logged */
    bool waited;  /* status below is that of the child */
    int status;
    off_t words_at;  /* length of the shims' words when it was started; -1: by another daemon */
    bool examining;  /* a job examines the folder; never two, and the run outlives it */
    bool asked;      /* a probe waits for its answer */
    bool has_poll;   /* poll is open */
    unsigned n_open; /* handles not closed yet */
    uv_poll_t poll;
    uv_timer_t again;
};

struct examine_job {
    struct job job;
    struct local_run *run;
    bool shim_lives;
    bool used;
    pid_t shim;      /* the run's, when this began */
    bool give_up;    /* on another host, and its heartbeat is still for too long */
    bool has_worker; /* found young, it has a child all the same */
    struct examination found;
};

static void run_advance(struct local_run *r);
static void ended(struct local_run *r, const struct attempt_end *end);

static struct local_run *run_find(const struct local *x, const struct attempt_key *key)
{
    struct local_run *r = x->runs;
    while (r != NULL && (r->key.program != key->program || r->key.task != key->task ||
                         r->key.no != key->no || r->state >= RUN_REAPING)) {
        r = r->next;
    }
    return r;
}

static struct local_run *run_new(struct local *x, const struct attempt_place *place)
{
    struct local_run *r = xcalloc(1, sizeof(*r));
    r->owner = x;
    r->key = place->key;
    r->pidfd = -1;
    r->words_at = -1;
    memcpy(r->id, place->id, sizeof(r->id));
    r->folder = xstrdup(place->folder);
    (void)uv_timer_init(x->loop, &r->again);
    r->again.data = r;
    r->n_open = 1;
    r->next = x->runs;
    x->runs = r;
    return r;
}

static void run_free(struct local_run *r)
{
    struct local_run **at = &r->owner->runs;
    while (*at != r) {
        at = &(*at)->next;
    }
    *at = r->next;
    free(r->folder);
    free(r);
}

/* Frees a closed run once its handles and its job are done. */
static void free_when_done(struct local_run *r)
{
    if (r->n_open == 0 && !r->examining && r->state == RUN_CLOSING) {
        run_free(r);
    }
}

static void on_handle_closed(uv_handle_t *handle)
{
    struct local_run *r = handle->data;
    assert(r->n_open > 0);
    r->n_open--;
    free_when_done(r);
}

static void on_poll_closed(uv_handle_t *handle)
{
    struct local_run *r = handle->data;
    if (r->pidfd >= 0) {
        (void)close(r->pidfd); /* only now: libuv no longer polls it */
        r->pidfd = -1;
    }
    on_handle_closed(handle);
}

static void stop_watching(struct local_run *r)
{
    if (r->has_poll) {
        r->has_poll = false;
        uv_close((uv_handle_t *)&r->poll, on_poll_closed);
    }
}

static void run_close(struct local_run *r)
{
    if (r->state != RUN_CLOSING) {
        r->state = RUN_CLOSING;
        stop_watching(r);
        uv_close((uv_handle_t *)&r->again, on_handle_closed);
    }
}

/* A shim whose spawner was killed has become a child of this daemon, which is a subreaper. Any
 * other shim is not (ECHILD): its spawner waits for it. By the pidfd, for the number may be
 * another's. */
static void reap_heir(struct local_run *r)
{
    siginfo_t info = {0};
    if (waitid(P_PIDFD, (id_t)r->pidfd, &info, WEXITED | WNOHANG) == 0 && info.si_pid != 0) {
        r->waited = true;
        r->status = info.si_code == CLD_EXITED ? W_EXITCODE(info.si_status, 0)
                                               : W_EXITCODE(0, info.si_status);
    }
}

static void reap(struct local_run *r)
{
    if (r->child > 0 && waitpid(r->child, &r->status, WNOHANG) == r->child) {
        r->child = 0;
        r->waited = true;
    } else if (r->child == 0 && r->pidfd >= 0) {
        reap_heir(r);
    }
}

static void on_reap_again(uv_timer_t *timer)
{
    struct local_run *r = timer->data;
    reap(r);
    if (r->child == 0) {
        run_close(r);
    }
}

/* After its end was reported. A probe sees exit.json before the shim, which still tidies up, has
 * ended: the shim is then reaped later. That of a spawner that was killed is to be reaped, too, so
 * every pidfd is held until it says that its shim has ended. */
static void run_leave(struct local_run *r)
{
    if (r->child == 0 && !r->has_poll) {
        run_close(r);
    } else {
        r->state = RUN_REAPING;
        if (!r->has_poll) {
            (void)uv_timer_start(&r->again, on_reap_again, LOOK_AGAIN_MS, LOOK_AGAIN_MS);
        }
    }
}

static void answer(struct local_run *r, enum core_health health)
{
    if (r->asked) {
        const struct executor_listener *l = &r->owner->base.listener;
        r->asked = false;
        l->probed(l->ctx, &r->key, health);
    }
}

/* The pidfd is readable: the shim has ended. Usually exit.json is there, and no job is needed. */
static void on_shim_exit(uv_poll_t *poll, int status, int events)
{
    struct local_run *r = poll->data;
    (void)status;
    (void)events;
    reap(r);
    stop_watching(r);
    struct attempt_end end;
    if (r->state == RUN_REAPING) {
        run_leave(r);
    } else if (r->state == RUN_WATCHED && examine_exit(r->folder, r->id, &end)) {
        ended(r, &end); /* the common case, without a turn of the pool */
    } else {
        run_advance(r);
    }
}

/* Owns pidfd from here on, also on failure. */
static bool watch_pidfd(struct local_run *r, int pidfd)
{
    r->pidfd = pidfd;
    if (uv_poll_init(r->owner->loop, &r->poll, pidfd) != 0) {
        (void)close(pidfd);
        r->pidfd = -1;
        return false;
    }
    r->poll.data = r;
    r->n_open++;
    r->has_poll = true;
    r->state = RUN_WATCHED;
    int rc = uv_poll_start(&r->poll, UV_READABLE, on_shim_exit);
    assert(rc == 0);
    (void)rc;
    return true;
}

static void on_again(uv_timer_t *timer)
{
    run_advance(timer->data);
}

static void look_later(struct local_run *r)
{
    r->state = RUN_WAITING;
    (void)uv_timer_start(&r->again, on_again, LOOK_AGAIN_MS, 0);
}

/* It lives: watches its shim's pidfd, opened by the identity in start.json. */
static void attach(struct local_run *r, const struct examination *found)
{
    int fd = -1;
    struct err err;
    if (r->has_poll) {
        r->state = RUN_WATCHED;
    } else if (r->pidfd >= 0 || /* the last watch is still being closed */
               !found->has_start ||
               pid_open((pid_t)found->start.shim_pid, found->start.shim_start, found->start.boot_id,
                        &fd, &err) != 0 ||
               fd < 0 || !watch_pidfd(r, fd)) {
        look_later(r); /* no start.json yet, or its shim has ended since */
    }
}

/* Why a shim of ours never reached its worker: its log, else its words on standard error (a
 * loader's complaint, say), and how it ended. */
static void explain_unlaunched(struct local_run *r, struct attempt_end *end)
{
    char words[104] = "";
    char how[32] = "";
    if (r->stuck) {
        (void)snprintf(end->detail, sizeof(end->detail),
                       "prereg-shim was stopped or hung before the worker ran; it was killed "
                       "after %lld s",
                       (long long)(r->owner->young_ms / 1000));
        return;
    }
    char *path = path_join(r->folder, LAYOUT_SHIM_LOG);
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd >= 0) {
        text_last_line(fd, 0, words, sizeof(words));
        (void)close(fd);
    } else {
        launch_words(r->owner->launch, r->words_at, words, sizeof(words));
    }
    free(path);
    if (!r->waited && r->shim > 0 && r->child == 0) {
        r->waited = launch_how(r->owner->launch, r->shim, &r->status);
    }
    if (r->waited && WIFSIGNALED(r->status)) {
        (void)snprintf(how, sizeof(how), " (signal %d)", WTERMSIG(r->status));
    } else if (r->waited) {
        (void)snprintf(how, sizeof(how), " (exit code %d)", WEXITSTATUS(r->status));
    }
    if (r->waited || words[0] != '\0') {
        (void)snprintf(end->detail, sizeof(end->detail),
                       "prereg-shim ended%s before the worker ran%s%s", how,
                       words[0] == '\0' ? "" : ": ", words);
    }
}

/* Reports the end, once. The caller must not use the run afterwards without checking its state. */
static void ended(struct local_run *r, const struct attempt_end *end)
{
    const struct executor_listener *l = &r->owner->base.listener;
    struct attempt_end told = *end;
    r->asked = false;
    if (told.reason == END_NEVER_LAUNCHED && told.detail[0] == '\0') {
        explain_unlaunched(r, &told);
    }
    l->ended(l->ctx, &r->key, &told);
    if (r->state != RUN_CLOSING) { /* the listener may close everything */
        run_leave(r);
    }
}

/* Stopped or hung before it took the lock, so before it had a worker: nothing else would ever end
 * it. It is killed through its own pidfd, and then examined like every dead shim (fence, tree), so
 * one that has just taken the lock is safe to kill, too. One whose lock or child was seen has a
 * worker, and only the locked file was removed: it is left to run. */
static void kill_stuck(struct local_run *r)
{
    struct err err;
    if (r->shim <= 0 || !r->has_poll || r->seen_alive || r->stuck ||
        clock_mono().ms - r->born_ms < r->owner->young_ms) {
        return;
    }
    r->stuck = true;
    log_warn("%s: its shim (pid %ld) has taken no lock in %lld s: it is killed", r->folder,
             (long)r->shim, (long long)(r->owner->young_ms / 1000));
    if (pid_signal(r->pidfd, SIGKILL, &err) != 0) {
        log_warn("%s: %s", r->folder, err.msg);
    }
}

static int64_t still_ms(const struct local_run *r)
{
    const struct mono_time now = clock_mono();
    return r->beat.sequence > 0 ? heartbeat_still_ms(&r->beat, now)
                                : now.ms - r->elsewhere_since.ms;
}

/* On another host. One sequence proves nothing; one that rises while we watch does. */
static void note_elsewhere(struct local_run *r, const struct examination *found)
{
    if (!r->elsewhere) {
        r->elsewhere = true;
        r->elsewhere_since = clock_mono();
        log_info("%s: it runs on another host (%s), or ran there: its heartbeat is watched",
                 r->folder, found->has_start ? found->start.host : "not known");
    }
    if (found->has_beat) {
        (void)heartbeat_note(&r->beat, &found->beat, clock_mono());
    }
    r->state = RUN_WAITING;
    (void)uv_timer_start(&r->again, on_again, LOOK_ELSEWHERE_MS, 0);
    answer(r, r->beat.moved && still_ms(r) < BEAT_ALIVE_MS ? HEALTH_ALIVE : HEALTH_UNKNOWN);
}

static void on_examined(struct job *job)
{
    struct examine_job *j = (struct examine_job *)job;
    struct local_run *r = j->run;
    r->examining = false;
    if (r->state >= RUN_REAPING) {
        free_when_done(r);
        free(j);
        return;
    }
    r->unclear = r->unclear && j->found.finding == FOUND_UNCLEAR;
    switch (j->found.finding) {
    case FOUND_ENDED: ended(r, &j->found.end); break;
    case FOUND_ALIVE:
        r->seen_alive = true;
        attach(r, &j->found);
        answer(r, HEALTH_ALIVE);
        break;
    case FOUND_YOUNG:
        r->seen_alive = r->seen_alive || j->has_worker;
        attach(r, &j->found);
        kill_stuck(r);
        answer(r, HEALTH_UNKNOWN);
        break;
    case FOUND_ELSEWHERE: note_elsewhere(r, &j->found); break;
    case FOUND_UNCLEAR:
        if (!r->unclear) { /* it is examined again every second */
            log_warn("%s: cannot tell whether it lives: %s", r->folder, j->found.why);
        }
        r->unclear = true;
        look_later(r);
        answer(r, HEALTH_UNKNOWN);
        break;
    }
    free(j);
}

/* True also when it cannot be determined: only a shim surely without children is killed for being
 * late. */
static bool has_children(pid_t pid)
{
    struct pid_list list = {0};
    struct err ignored;
    bool has = pid_descendants(pid, &list, &ignored) != 0 || list.n > 0;
    pid_list_release(&list);
    return has;
}

static void on_examine(struct job *job)
{
    struct examine_job *j = (struct examine_job *)job;
    const struct local *x = j->run->owner;
    struct fence f = {.folder = j->run->folder,
                      .attempt = j->run->id,
                      .groups = x->groups,
                      .shared = x->shared,
                      .moved = x->moved && j->run->born_ms == 0, /* not started by us */
                      .give_up = j->give_up};
    examine_attempt(&f, j->shim_lives, j->used, &j->found);
    j->has_worker = j->found.finding == FOUND_YOUNG && j->shim > 0 && has_children(j->shim);
}

static void examine(struct local_run *r)
{
    struct examine_job *j = xcalloc(1, sizeof(*j));
    j->job.work = on_examine;
    j->job.done = on_examined;
    j->run = r;
    j->shim_lives = r->has_poll;
    j->used = r->used;
    j->shim = r->shim;
    j->give_up = r->elsewhere && still_ms(r) >= r->owner->elsewhere_ms;
    r->examining = true;
    job_start(r->owner->loop, &j->job);
}

/* Examines the folder, unless a job is already doing so: its finding leads on by itself, to an end,
 * a watch or another examination. */
static void run_advance(struct local_run *r)
{
    if (r->state < RUN_REAPING && !r->examining) {
        (void)uv_timer_stop(&r->again);
        examine(r);
    }
}

/* ---- the calls ---- */

/* The spec is passed as a file in memory, whose name marks the worker's tree (shim/files.h). */
static int local_start(struct executor *base, const struct attempt_place *place, struct err *err)
{
    struct local *x = (struct local *)base;
    struct launched shim;
    char name[sizeof(SHIM_MARK) + UUID_TEXT_SIZE];
    int spec_fd = -1;
    (void)snprintf(name, sizeof(name), SHIM_MARK "%s", place->id);
    int rc = file_in_memory(name, place->spec->buf, place->spec->len, &spec_fd, err);
    if (rc == 0) {
        rc = launch_shim(x->launch, place->folder, x->groups, spec_fd, &shim, err);
    }
    if (spec_fd >= 0) {
        (void)close(spec_fd);
    }
    if (rc != 0) {
        return rc;
    }
    struct local_run *r = run_new(x, place);
    r->shim = shim.pid;
    r->child = shim.is_child ? shim.pid : 0;
    r->used = true;
    r->born_ms = clock_mono().ms;
    r->words_at = shim.words_at;
    if (shim.pidfd < 0 || !watch_pidfd(r, shim.pidfd)) {
        look_later(r);
    }
    x->base.listener.began(x->base.listener.ctx, &place->key);
    return 0;
}

static void local_probe(struct executor *base, const struct attempt_place *place)
{
    struct local *x = (struct local *)base;
    struct local_run *r = run_find(x, &place->key);
    if (r == NULL) {
        r = run_new(x, place);
        r->state = RUN_WAITING;
    }
    r->asked = true;
    r->used = r->used || place->used;
    x->base.listener.began(x->base.listener.ctx, &place->key);
    run_advance(r);
}

static void signal_run(struct local *x, const struct attempt_key *key, int sig)
{
    struct local_run *r = run_find(x, key);
    struct err err;
    if (r != NULL && r->has_poll && pid_signal(r->pidfd, sig, &err) != 0) {
        log_warn("%s: %s", r->folder, err.msg);
    }
}

static void local_terminate(struct executor *base, const struct attempt_key *key)
{
    signal_run((struct local *)base, key, SIGTERM);
}

/* The shim kills its whole tree. One that has been stopped for good, or hangs, does not: at
 * the second request it is killed itself, and its worker dies with it. Remaining processes are
 * cleared when the attempt is buried. */
static void local_kill(struct executor *base, const struct attempt_key *key)
{
    struct local *x = (struct local *)base;
    struct local_run *r = run_find(x, key);
    struct err err;
    if (r != NULL && r->has_poll) {
        signal_run(x, key, r->kill_asked ? SIGKILL : SIGUSR1);
        r->kill_asked = true;
    } else if (r != NULL && r->elsewhere && fence_mark(r->folder, &err) != 0) {
        log_warn("%s: %s", r->folder, err.msg); /* its shim finds the mark at its next heartbeat */
    }
}

/* The rows have all there is to say. */
static bool local_explain(const struct executor *base, const struct attempt_key *key, bool brief,
                          struct strbuf *out)
{
    (void)base;
    (void)key;
    (void)brief;
    (void)out;
    return false;
}

static void local_close(struct executor *base)
{
    struct local *x = (struct local *)base;
    for (struct local_run *r = x->runs; r != NULL; r = r->next) {
        run_close(r); /* frees nothing yet */
    }
}

static void local_free(struct executor *base)
{
    struct local *x = (struct local *)base;
    assert(x->runs == NULL);
    launch_free(x->launch);
    free(x->groups);
    free(x);
}

struct executor *local_create(uv_loop_t *loop, const char *shim_path, const char *words_path,
                              int64_t young_ms, const struct executor_listener *listener)
{
    static const struct executor_ops ops = {.start = local_start,
                                            .probe = local_probe,
                                            .terminate = local_terminate,
                                            .kill = local_kill,
                                            .explain = local_explain,
                                            .close = local_close,
                                            .free = local_free};
    struct local *x = xcalloc(1, sizeof(*x));
    x->base = (struct executor){.ops = &ops, .listener = *listener};
    x->loop = loop;
    x->young_ms = young_ms;
    x->launch = launch_new(shim_path, words_path);
    struct err why;
    if (group_find_base(&x->groups, &why) == 0) {
        size_t n = group_sweep(x->groups);
        log_info("every attempt gets a cgroup in %s; empty ones of earlier attempts removed: %zu",
                 x->groups, n);
    } else {
        log_info("attempts get no cgroup: %s", why.msg);
    }
    return &x->base;
}

void local_share(struct executor *base, bool moved, int64_t elsewhere_ms)
{
    struct local *x = (struct local *)base;
    x->shared = true;
    x->moved = moved;
    x->elsewhere_ms = elsewhere_ms;
}
