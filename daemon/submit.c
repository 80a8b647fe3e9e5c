/*
 * `preregd submit`, on the client's side. The files are checked here before a daemon is started for
 * them, and the user is asked before commands run that were never run here. What the user allowed
 * is sent along as digests, because the daemon reads the files again and they may have changed.
 *
 * Progress is printed to standard error, results to standard output.
 */
#include "daemon/submit.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/files/file.h"
#include "base/json/json.h"
#include "base/layout/layout.h"
#include "base/terminal.h"
#include "base/text.h"
#include "base/xalloc.h"
#include "daemon/program/hosted.h"
#include "daemon/rpc/client.h"
#include "daemon/rpc/owner.h"
#include "daemon/submit_check.h"
#include "prereg/amend/amendment.h"
#include "prereg/lock/lock.h"
#include "prereg/lock/trust.h"
#include "prereg/program/verdict_kind.h"
#include "truthtable/evaluate/effect_lines.h"

#define SUBMIT_LIMIT_MS ((int64_t)6 * 60 * 60 * 1000) /* hashing terabytes takes a while */
#define SPARSE_MS       15000
#define RECONNECTS      150 /* while a daemon restarts */
#define RECONNECT_MS    200

static int64_t member_int(const cJSON *o, const char *key, int64_t otherwise)
{
    int64_t v = otherwise;
    struct err err;
    return json_opt_int(o, key, 0, JSON_INT_MAX, &v, &err) == 0 ? v : otherwise;
}

static const char *member_text(const cJSON *o, const char *key, const char *otherwise)
{
    const cJSON *m = json_member(o, key);
    return cJSON_IsString(m) ? m->valuestring : otherwise;
}

/* ---- progress ---- */

struct submit_progress {
    bool tty;
    bool json;
    int64_t said_ms;
    int64_t said_ended;
    char *paused;       /* the reason last printed; NULL: it was not paused */
    struct err blocked; /* only a person can make it go on; code 0: not so */
};

static void add_some(struct strbuf *out, int64_t n, const char *words)
{
    if (n > 0) {
        strbuf_addf(out, ", %lld %s", (long long)n, words);
    }
}

/* "NAME: 3/12 tasks done, 2 running, 4 waiting in Slurm, SPAN left". */
static void progress_line(const cJSON *summary, struct strbuf *out)
{
    const cJSON *t = json_member(summary, "tasks");
    char span[64];
    int64_t running = member_int(t, "running", 0);
    int64_t blocked = member_int(t, "blocked", 0) + member_int(t, "never_run", 0);
    int64_t eta = member_int(summary, "eta_ms", -1);
    const int64_t planned = member_int(t, "planned", 0);
    strbuf_addf(out, "%s: %lld/%lld %s done, %lld running", member_text(summary, "name", "program"),
                (long long)member_int(t, "done", 0), (long long)planned,
                text_plural(planned, "task", "tasks"), (long long)running);
    add_some(out, member_int(t, "starting", 0), "starting");
    add_some(out, member_int(t, "queued", 0), "waiting in Slurm");
    add_some(out, blocked, "blocked or never run");
    const char *state = member_text(summary, "state", "running");
    if (strcmp(state, "paused") == 0) {
        strbuf_addf(out, ", paused (%s)", member_text(summary, "paused_by", "?"));
    } else if (strcmp(state, "running") != 0) {
        strbuf_addf(out, ", %s", state);
    } else if (eta >= 0) {
        strbuf_addf(out, ", %s left", clock_span_text(eta, span, sizeof(span)));
    }
}

/* Prints a pause once, in full and at once: the user may have to act on it. */
static void say_pause(struct submit_progress *p, const cJSON *summary)
{
    bool paused = strcmp(member_text(summary, "state", ""), "paused") == 0;
    const char *by = member_text(summary, "paused_by", "?");
    const char *why = paused ? member_text(summary, "paused_why", "a person asked for it") : NULL;
    bool same = why == NULL || p->paused == NULL ? why == p->paused : strcmp(why, p->paused) == 0;
    if (same) {
        return;
    }
    if (why != NULL && p->tty) {
        (void)fputc('\n', stderr);
    }
    if (why != NULL) {
        terminal_printf(
            stderr, "%s is paused (%s): %s%s\n", member_text(summary, "name", "program"), by, why,
            p->blocked.code != 0 ? "" : "; still waiting (`preregctl status` says what ends it)");
    }
    free(p->paused);
    p->paused = why == NULL ? NULL : xstrdup(why);
}

/* The pauses that no waiting ends, unlike those for a disk, for data or for the machine, and what
 * ends them. A person who paused the program will know when to resume it. */
static const struct {
    const char *by;
    int code;
    const char *cure;
} BLOCKS[] = {
    {"failures", ERR_REFUSED,
     "`preregctl resume` tries its cells again; if they are expected to fail: `preregctl resume "
     "--accept-failures`"},
    {"apparatus", ERR_REFUSED, "`preregctl resume` makes the check again"},
    {"lock", ERR_LOCK,
     "`preregctl resume` once all is as it was locked, `preregctl lost` for a result that is gone"},
};

/* Whether the program waits for a person, from its summary; says so in p->blocked. */
static bool waits_for_person(struct submit_progress *p, const cJSON *summary)
{
    const char *id = member_text(summary, "id", "?");
    const char *by = member_text(summary, "paused_by", "");
    const char *why = member_text(summary, "paused_why", NULL);
    for (size_t i = 0; i < ARRAY_LEN(BLOCKS); i++) {
        if (strcmp(by, BLOCKS[i].by) == 0) {
            (void)err_set(&p->blocked, BLOCKS[i].code, "%.80s waits for you: %s", id,
                          BLOCKS[i].cure);
        }
    }
    if (by[0] == '\0' && why != NULL && !cJSON_IsObject(json_member(summary, "hashing")) &&
        strcmp(member_text(summary, "state", ""), "finishing") == 0) {
        (void)err_set(&p->blocked, ERR_REFUSED,
                      "%.60s gets no verdict yet, and waits for you (`preregctl lost` gives up a "
                      "result that is gone): %s",
                      id, why);
    }
    return p->blocked.code != 0;
}

/* On a terminal one line that is overwritten; elsewhere a line every SPARSE_MS at most. */
static bool on_progress(const cJSON *event, void *context)
{
    struct submit_progress *p = context;
    const cJSON *summary = json_member(event, "summary");
    const cJSON *t = json_member(summary, "tasks");
    int64_t now = clock_mono().ms;
    int64_t ended = member_int(t, "done", 0) + member_int(t, "blocked", 0);
    struct strbuf line = STRBUF_INIT;
    if (summary == NULL) {
        return true;
    }
    const bool blocked = waits_for_person(p, summary);
    if (p->json) {
        return !blocked;
    }
    say_pause(p, summary);
    if (blocked) {
        return false;
    }
    progress_line(summary, &line);
    if (p->tty) {
        (void)fputs("\r", stderr);
        terminal_printf(stderr, "%s", line.buf);
        (void)fputs("\x1b[K", stderr);
    } else if (p->said_ms == 0 || (now - p->said_ms >= SPARSE_MS && ended != p->said_ended)) {
        terminal_printf(stderr, "%s\n", line.buf);
        p->said_ms = now;
        p->said_ended = ended;
    }
    strbuf_release(&line);
    return true;
}

/* ---- the daemon ---- */

/* Starts a daemon only when none listens; any other error is reported. */
static int open_or_start(const char *state, struct rpc_client **c, struct err *err)
{
    int rc = rpc_open(state, c, err);
    if (rc != ERR_NO_DAEMON) {
        return rc;
    }
    rc = rpc_start_daemon(state, err);
    if (rc == 0) {
        terminal_printf(stderr, "started preregd for %s\n", state);
        rc = rpc_open(state, c, err);
    }
    return rc;
}

/* Follows the program to its verdict, or until it waits for a person. When the daemon disappears,
 * it tries to reconnect for half a minute: another daemon may be started, and the program goes on.
 */
static int follow(const char *state, const char *program, bool json, cJSON **verdict,
                  struct err *err)
{
    struct submit_progress p = {.tty = isatty(STDERR_FILENO) == 1, .json = json};
    struct rpc_listener listener = {.on_event = on_progress, .context = &p};
    cJSON *params = json_object();
    int rc = ERR_NO_DAEMON;
    json_put_string(params, "program", program);
    for (int i = 0; i < RECONNECTS && rc == ERR_NO_DAEMON; i++) {
        struct rpc_client *c = NULL;
        rc = rpc_try_open(state, &c, err);
        if (rc == 0) {
            i = 0;
            rpc_set_timeout(c, 0);
            rc = rpc_call_stream(c, "subscribe", params, &listener, verdict, err);
            rpc_close(c);
        }
        if (rc == ERR_NO_DAEMON) {
            clock_sleep_ms(RECONNECT_MS);
        }
    }
    if (p.tty && !json) {
        (void)fputc('\n', stderr);
    }
    free(p.paused);
    cJSON_Delete(params);
    if (rc == 0 && p.blocked.code != 0) {
        *err = p.blocked;
        return err->code;
    }
    return rc == ERR_NO_DAEMON ? rpc_owner_unreachable(state, err) : rc;
}

/* ---- printing ---- */

static void print_json(cJSON *o)
{
    struct strbuf text = STRBUF_INIT;
    struct err err;
    json_put_int(o, "schema", 1);
    if (json_pretty(o, &text, &err) == 0) {
        strbuf_addc(&text, '\n');
        terminal_data(stdout, text.buf, text.len); /* JSON escapes less than a terminal may obey */
    }
    strbuf_release(&text);
}

/* The first line says whether anything is new; the daemon's notes follow. */
static void print_submitted(const cJSON *o)
{
    bool is_new = cJSON_IsTrue(json_member(o, "new")) != 0;
    bool changed = cJSON_IsTrue(json_member(o, "run_changed")) != 0;
    const int64_t n_tasks = member_int(o, "tasks", 0);
    terminal_printf(stdout, "%s %s: %lld %s%s\n", is_new ? "submitted" : "already submitted",
                    member_text(o, "program", "?"), (long long)n_tasks,
                    text_plural(n_tasks, "task", "tasks"),
                    changed ? "; its [run] settings were changed and journalled" : "");
    const char *notes = member_text(o, "notes", "");
    if (notes[0] != '\0') {
        terminal_printf(stdout, "%s%s", notes, notes[strlen(notes) - 1] == '\n' ? "" : "\n");
    }
}

/* The effects are printed whether or not an outcome binds. Without one, the first error and the
 * command that shows it are printed, too. */
static void print_verdict(const cJSON *v)
{
    const cJSON *inner = json_member(v, "verdict");
    const char *word = verdict_kind_word_of_name(member_text(v, "kind", "?"));
    const char *title = member_text(inner, "title", NULL);
    const char *why = member_text(inner, "why", NULL);
    const char *task = effect_error_task(inner);
    struct strbuf lines = STRBUF_INIT;
    if (strcmp(member_text(v, "history", ""), "unverified") == 0) {
        terminal_printf(stdout, "UNVERIFIED HISTORY: `preregctl verdict` shows more\n");
    }
    terminal_printf(stdout, "verdict: %s%s%s\n", member_text(v, "outcome", word),
                    title != NULL || why != NULL ? ": " : "",
                    title != NULL ? title
                    : why != NULL ? why
                                  : "");
    if (title == NULL) {
        effect_error_lines(inner, "  ", &lines);
    }
    effect_lines(inner, EFFECTS_SHOWN, "  ", &lines);
    terminal_printf(stdout, "%s", lines.buf);
    if (title == NULL && task != NULL) {
        terminal_printf(stdout,
                        "  `preregctl explain %s` shows the error, `preregctl verdict` the rest\n",
                        task);
    } else {
        terminal_printf(stdout, "  `preregctl verdict` shows the rest\n");
    }
    terminal_printf(stdout, "  %s\n", member_text(v, "path", "?"));
    strbuf_release(&lines);
}

/* The verdict's own exit code becomes that of the command. */
static int wait_for_verdict(const struct submit_options *o, const char *state, const char *program,
                            enum exit_code *code, struct err *err)
{
    cJSON *verdict = NULL;
    int rc = follow(state, program, o->json, &verdict, err);
    if (rc != 0) {
        return rc;
    }
    *code = (enum exit_code)member_int(verdict, "exit_code", EXIT_ANY);
    if (o->json) {
        print_json(verdict);
    } else {
        print_verdict(verdict);
    }
    cJSON_Delete(verdict);
    return 0;
}

/* The program that the user allowed, by the digests of its lock; "" for one that does not exist. */
struct allowed {
    char root[DIGEST_HEX_SIZE];
    char head[DIGEST_HEX_SIZE];
};

/* One call. The daemon hashes everything that is pinned before it answers, hence the limit of
 * hours. */
static int hand_in(const char *path, const struct submit_options *o, const struct allowed *allowed,
                   const char *state, cJSON **result, struct err *err)
{
    struct rpc_client *c = NULL;
    cJSON *params = json_object();
    json_put_string(params, "path", path);
    if (o->adopt_work) {
        json_put_bool(params, "adopt_work", true);
    }
    if (allowed->root[0] != '\0') {
        json_put_string(params, "root", allowed->root);
    }
    if (allowed->head[0] != '\0') {
        json_put_string(params, "head", allowed->head);
    }
    int rc = open_or_start(state, &c, err);
    if (rc == 0) {
        rpc_set_timeout(c, SUBMIT_LIMIT_MS);
        rc = rpc_call(c, "submit", params, result, err);
        rpc_close(c);
    }
    cJSON_Delete(params);
    return rc;
}

/* Fills in `allowed`. Returns whether `lock` is of a program that has been amended here: its text
 * may be the amended one, which the daemon decides. */
static bool note_allowed(const struct lock *lock, const char *state, struct allowed *allowed)
{
    struct lock *now = NULL;
    struct err unread;
    char *id = lock_program_id(lock);
    char *folder = layout_program(state, id);
    char *amendments = path_join(folder, LAYOUT_AMENDMENTS);
    char *first = amendment_file(amendments, 1, "json");
    bool amended = file_kind_at(first) != FILE_ABSENT;
    memcpy(allowed->root, lock->root, sizeof(allowed->root));
    if (!amended) {
        memcpy(allowed->head, lock->head, sizeof(allowed->head));
    } else if (lock_read_amended(folder, &now, &unread) == 0) {
        memcpy(allowed->head, now->head, sizeof(allowed->head));
    }
    lock_free(now);
    free(first);
    free(amendments);
    free(folder);
    free(id);
    return amended;
}

/* Refuses a program that does not parse, is not locked or was changed, before a daemon is started
 * for it. Asks the user about its commands: a lock that came with a program allows nothing by
 * itself. What the machine or Slurm would refuse is found last. */
static int look_first(const char *path, const char *state, const struct submit_options *o,
                      struct allowed *allowed, struct err *err)
{
    const struct trust_ask ask = {.state = state, .run = o->run, .all = true};
    struct bundle *b = NULL;
    struct lock *beside = NULL;
    struct err unread;
    char *lock = lock_path_of(path);
    int rc = bundle_load(path, lock, path, &b, err);
    if (rc == 0) {
        (void)note_allowed(b->lock, state, allowed);
        rc = lock_check_time(b->lock, clock_wall(), err);
        if (rc == 0) {
            rc = lock_verify(b->program, b->lock, LOCK_FILES, NULL, NULL, err);
        }
    } else if (rc == ERR_LOCK && lock_read(lock, &beside, &unread) == 0 &&
               note_allowed(beside, state, allowed)) {
        rc = bundle_parse(path, path, &b, err);
    }
    if (rc == 0) {
        rc = trust_commands(&ask, b->program, err);
    }
    if (rc == 0) {
        rc = submit_check(o, state, b->program, beside != NULL ? beside : b->lock, err);
    }
    lock_free(beside);
    bundle_unref(b);
    free(lock);
    return rc;
}

int submit_run(const struct submit_options *o, enum exit_code *code, struct err *err)
{
    char *state = NULL;
    cJSON *result = NULL;
    struct allowed allowed = {0};
    char *named = path_absolute(NULL, o->path);
    char *real =
        realpath(named, NULL); /* a linked program's relative paths start where the link leads */
    const char *path = real == NULL ? named : real;
    *code = EXIT_OK;
    int rc = rpc_state_folder(&state, err);
    if (rc != 0) {
        goto out;
    }
    if (file_kind_at(o->path) != FILE_REGULAR) {
        rc = file_kind_at(o->path) == FILE_ABSENT
                 ? err_set(err, ERR_NOT_FOUND, "%s: no such file", o->path)
                 : err_set(err, ERR_INVALID, "%s is not a file", o->path);
        goto out;
    }
    if ((rc = look_first(path, state, o, &allowed, err)) != 0 ||
        (rc = hand_in(path, o, &allowed, state, &result, err)) != 0) {
        goto out;
    }
    if (o->json && !o->wait) {
        print_json(result);
    } else if (!o->json) {
        print_submitted(result);
        (void)fflush(stdout);
    }
    if (o->wait) {
        rc = wait_for_verdict(o, state, member_text(result, "program", ""), code, err);
    }
out:
    cJSON_Delete(result);
    free(real);
    free(named);
    free(state);
    return rc;
}
