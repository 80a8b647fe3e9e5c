/*
 * Submits the probe under a UUID as its name, so that it can be cancelled whatever sbatch answered
 * (rule 1), asks the queue every two seconds for its state, and looks into its folder ten times a
 * second for what the node wrote. A job that is over with an exit code of the job script is judged
 * at once; without, its files are waited for as long as NFS may hide them (rule 17).
 */
#include "daemon/slurm_check/probe.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/files/file.h"
#include "base/text.h"
#include "base/uuid.h"
#include "base/xalloc.h"
#include "daemon/executor/slurm/parse.h"
#include "daemon/executor/slurm/script.h"
#include "daemon/slurm_check/cluster.h"
#include "daemon/slurm_check/probe_script.h"

#define LOOK_MS      100
#define ASK_MS       2000
#define HIDDEN_MS    ((int64_t)35000) /* rule 17: a file was seen 29 s late */
#define TALK_MS      ((int64_t)45000) /* from the job's beginning to its last answer, but for HIDDEN */
#define ROUNDS       3
#define LIMIT_MS     ((int64_t)120000) /* time limit of the job */
#define FILE_MAX     ((size_t)4096)
#define LOG_MAX      ((size_t)1 << 20)
#define NAMES_MAX    64
#define SECONDS_MAX  ((int64_t)100000000000)
#define SKEW_UNKNOWN INT64_MAX

struct probe {
    const struct probe_spec *spec;
    struct probe_result *out;
    char name[UUID_TEXT_SIZE]; /* of the job */
    char *folder;
    char *script;
    char id[32];
    struct mono_time submitted;
    struct mono_time asked; /* the queue */
    struct mono_time begun; /* when it was first seen to run */
    struct mono_time over;  /* ms < 0: it is not */
    bool has_begun;
    enum slurm_state last; /* once it is over */
    char reason[160];      /* for which it waits */
    char node[128];
    int64_t low; /* bounds of the skew */
    int64_t high;
};

static char *file_of(const struct probe *p, const char *name)
{
    return path_join(p->folder, name);
}

static int put(const struct probe *p, const char *name, const struct strbuf *text, mode_t mode,
               struct err *err)
{
    char *path = file_of(p, name);
    int rc = file_write_atomic(path, text->buf, text->len, mode, err);
    free(path);
    return rc;
}

/* Writes all files of the folder; the job script is the executor's. */
static int prepare(struct probe *p, struct err *err)
{
    const struct probe_spec *s = p->spec;
    struct strbuf text = STRBUF_INIT;
    p->folder = xasprintf("%s/.prereg-probe-%s", s->work, p->name);
    p->script = file_of(p, "job.sh");
    char *payload = file_of(p, PROBE_SCRIPT);
    int rc =
        mkdir(p->folder, 0700) == 0 ? 0 : err_set_errno(err, errno, "make a folder in %s", s->work);
    if (rc == 0) {
        probe_script_write(&text, s->shim);
        rc = put(p, PROBE_SCRIPT, &text, 0700, err);
    }
    if (rc == 0) {
        strbuf_clear(&text);
        strbuf_addf(&text, "%s\n", p->name);
        rc = put(p, PROBE_NONCE, &text, 0600, err);
    }
    if (rc == 0) {
        strbuf_clear(&text);
        slurm_script_write(&text, &(struct slurm_script){.shim = payload,
                                                         .folder = p->folder,
                                                         .setup = s->setup,
                                                         .n_setup = s->n_setup});
        rc = put(p, "job.sh", &text, 0700, err);
    }
    free(payload);
    strbuf_release(&text);
    return rc;
}

static int failed(struct probe *p, const char *fmt, ...) PRINTF_LIKE(2, 3);
static int failed(struct probe *p, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    p->out->state = PROBE_FAILED;
    (void)vsnprintf(p->out->why, sizeof(p->out->why), fmt, args);
    va_end(args);
    text_make_line(p->out->why);
    return 0;
}

/* The same, of a key. */
#define FAILED_BY(p, of, ...) ((p)->out->fault = (of), failed((p), __VA_ARGS__))

/* "node n2", or "a node" as long as it has no name. */
static const char *node_of(const struct probe *p, char *out, size_t size)
{
    (void)snprintf(out, size, "%s%s", p->node[0] != '\0' ? "node " : "a node", p->node);
    return out;
}

/* Rule 11: what is refused now and accepted later. */
static bool is_full(const struct proc_result *r)
{
    return r->code != 0 && slurm_parse_refusal(r->err.buf, r->err.len) == SLURM_REFUSED_FULL;
}

/* *done: it was refused, or nothing is known of it; the reason is in the result. */
static int submit(struct probe *p, bool *done, struct err *err)
{
    struct slurm_request request = *p->spec->request;
    struct proc_result r = {.out = STRBUF_INIT, .err = STRBUF_INIT};
    const struct slurm_submission s = {
        .name = p->name, .script = p->script, .folder = p->spec->work};
    char why[200];
    int64_t id = 0;
    request.warn_ms = 0;
    request.time_ms =
        request.time_ms > 0 && request.time_ms < LIMIT_MS ? request.time_ms : LIMIT_MS;
    int rc = tools_run(p->spec->tools, slurm_command_submit(p->spec->tools->arena, &request, &s),
                       TOOLS_SUBMIT_MS, &r, err);
    p->submitted = clock_mono();
    *done = rc == 0 && (r.code != 0 || !slurm_parse_submitted(r.out.buf, r.out.len, &id));
    if (*done) {
        slurm_parse_why(r.err.buf, r.err.len, why, sizeof(why));
        rc = failed(p, "Slurm does not take the probe job%s: %s", is_full(&r) ? " now" : "",
                    why[0] != '\0' ? why : "sbatch printed no job id");
        p->out->state = is_full(&r) ? PROBE_WAITED : PROBE_FAILED;
    }
    (void)snprintf(p->id, sizeof(p->id), "%" PRId64, id);
    proc_result_release(&r);
    return rc;
}

/* Whatever became of sbatch: nothing of this name stays in the queue. */
static void cancel(const struct probe *p)
{
    struct tools t = *p->spec->tools;
    struct proc_result r = {.out = STRBUF_INIT, .err = STRBUF_INIT};
    struct err ignored;
    t.stops = NULL;
    if (tools_run(&t, slurm_command_cancel(t.arena, t.clusters, p->name, "", false), TOOLS_QUERY_MS,
                  &r, &ignored) != 0) {
        err_clear(&ignored); /* it has a time limit of two minutes */
    }
    proc_result_release(&r);
}

/* ---- what the queue says ---- */

static void take_row(struct probe *p, const struct slurm_row *row)
{
    const enum slurm_phase phase = slurm_state_phase(row->state);
    if (row->node[0] != '\0') {
        (void)snprintf(p->node, sizeof(p->node), "%s", row->node);
    }
    if (phase == SLURM_PHASE_WAITING) {
        (void)snprintf(p->reason, sizeof(p->reason), "%s", row->reason);
    } else if (phase != SLURM_PHASE_UNCLEAR && !p->has_begun) {
        p->has_begun = true;
        p->begun = clock_mono();
        p->out->waited_ms = p->begun.ms - p->submitted.ms;
    }
    if (phase == SLURM_PHASE_OVER && p->over.ms < 0) {
        p->over = clock_mono();
        p->last = row->state;
    }
}

static int ask_queue(struct probe *p, struct err *err)
{
    const struct tools *t = p->spec->tools;
    struct proc_result r = {.out = STRBUF_INIT, .err = STRBUF_INIT};
    struct slurm_rows rows = {0};
    p->asked = clock_mono();
    int rc = tools_run(t, slurm_command_queue(t->arena, t->clusters, NULL, p->name), TOOLS_QUERY_MS,
                       &r, err);
    if (rc == 0 && r.code == 0) {
        slurm_parse_queue(r.out.buf, r.out.len, t->arena, &rows);
        for (size_t i = 0; i < rows.n; i++) {
            if (strcmp(rows.rows[i].name, p->name) == 0) {
                take_row(p, &rows.rows[i]);
            }
        }
        if (rows.n == 0 && rows.n_odd == 0 && p->over.ms < 0 && p->has_begun) {
            p->over = clock_mono(); /* it has left the queue */
        }
    }
    proc_result_release(&r);
    return rc == ERR_TIMEOUT ? 0 : rc; /* it cannot be asked now: the job's time still passes */
}

/* The exit code of the job script; -1 when it is not known. */
static int exit_code(const struct probe *p)
{
    const struct tools *t = p->spec->tools;
    struct proc_result r = {.out = STRBUF_INIT, .err = STRBUF_INIT};
    struct err ignored;
    int code = -1;
    char *const *words =
        tools_words(t, (const char *const[8]){"scontrol", "-o", "show", "job", p->id});
    if (tools_run(t, words, TOOLS_QUERY_MS, &r, &ignored) == 0 && r.code == 0) {
        const int64_t value = cluster_number(r.out.buf, r.out.len, "ExitCode");
        code = value >= 0 && value <= 255 ? (int)value : -1;
    }
    proc_result_release(&r);
    return code;
}

/* Reads which line of setup failed, and what it printed last, from the log's end. */
static size_t read_setup(const struct probe *p, char *said, size_t size)
{
    static const char prefix[] = SLURM_SCRIPT_SETUP_LINE;
    struct strbuf log = STRBUF_INIT;
    struct err ignored;
    size_t line = 0;
    char *path = file_of(p, SLURM_SCRIPT_LOG);
    said[0] = '\0';
    if (file_read(path, LOG_MAX, &log, &ignored) == 0) {
        char *last = NULL;
        char *before = NULL;
        char *rest = NULL;
        for (char *s = strtok_r(log.buf, "\n", &rest); s != NULL; s = strtok_r(NULL, "\n", &rest)) {
            before = last;
            last = s;
        }
        if (last != NULL && strncmp(last, prefix, sizeof(prefix) - 1) == 0) {
            line = strtoul(last + sizeof(prefix) - 1, NULL, 10);
            text_copy_line(said, size, before != NULL ? before : "");
        }
    }
    strbuf_release(&log);
    free(path);
    return line;
}

static int setup_failed(struct probe *p, const char *node)
{
    const struct probe_spec *s = p->spec;
    char said[120];
    char text[120] = "";
    const size_t line = read_setup(p, said, sizeof(said));
    if (line == 0 || line > s->n_setup) {
        return FAILED_BY(p, PROBE_FAULT_SETUP, "the lines of [run.slurm] setup failed on %s", node);
    }
    p->out->setup_line = line;
    text_copy_line(text, sizeof(text), s->setup[line - 1]);
    return FAILED_BY(p, PROBE_FAULT_SETUP, "line %zu of [run.slurm] setup failed on %s: %s%s%s%s",
                     line, node, text, said[0] != '\0' ? " (it printed: " : "", said,
                     said[0] != '\0' ? ")" : "");
}

/* A person or the cluster has ended it: that says nothing about the folder. */
static bool was_ended(const struct probe *p)
{
    return p->last == SLURM_CANCELLED || p->last == SLURM_PREEMPTED || p->last == SLURM_NODE_FAIL ||
           p->last == SLURM_BOOT_FAIL;
}

/* The job is over and has left no word. *done as long as its files may still show. */
static int judge_end(struct probe *p, bool *done)
{
    char node[160];
    const char *work = p->spec->work;
    const int code = exit_code(p);
    (void)node_of(p, node, sizeof(node));
    *done = true;
    if (was_ended(p)) {
        (void)failed(p, "the probe job was ended on %s before it had an answer (%s)", node,
                     slurm_state_word(p->last));
        p->out->state = PROBE_WAITED;
        p->out->waited_ms = 0;
        return 0;
    }
    switch (code) {
    case SLURM_SCRIPT_NO_SETUP: return setup_failed(p, node);
    case 126:
        return FAILED_BY(
            p, PROBE_FAULT_WORK,
            "%s sees the work folder %s, but runs no file of it (is it mounted noexec?)", node,
            work);
    case PROBE_EXIT_READ:
    case 127:
        return FAILED_BY(p, PROBE_FAULT_WORK,
                         "%s does not see the work folder %s: set [run] work to a folder of a file "
                         "system that all nodes share",
                         node, work);
    case PROBE_EXIT_PUT:
        return FAILED_BY(p, PROBE_FAULT_WORK, "%s cannot write to the work folder %s", node, work);
    default: break;
    }
    *done = clock_mono().ms - p->over.ms > HIDDEN_MS;
    return *done
               ? FAILED_BY(p, PROBE_FAULT_WORK,
                           "the probe job ended on %s and nothing of it is seen in the work folder "
                           "%s after %lld s: set [run] work to a folder that all nodes share",
                           node, work, (long long)(HIDDEN_MS / 1000))
               : 0;
}

/* ---- what the node says ---- */

/* Whether the folder lists the name and the file is whole: it ends with "end". */
static bool take_file(const struct probe *p, const char *name, struct strbuf *out)
{
    struct name_list names = {0};
    struct err ignored;
    bool listed = false;
    if (dir_list(p->folder, &names, &ignored) == 0 && names.n <= NAMES_MAX) {
        for (size_t i = 0; i < names.n; i++) {
            listed = listed || strcmp(names.names[i], name) == 0;
        }
    }
    name_list_release(&names);
    if (!listed) {
        return false;
    }
    char *path = file_of(p, name);
    strbuf_clear(out);
    const bool read = file_read(path, FILE_MAX, out, &ignored) == 0;
    free(path);
    return read && out->len >= 4 && memcmp(out->buf + out->len - 4, "end\n", 4) == 0;
}

/* The value of a line "KEY VALUE"; false when there is none. */
static bool line_value(const struct strbuf *text, const char *key, char *out, size_t size)
{
    const size_t n = strlen(key);
    for (const char *line = text->buf; line != NULL && *line != '\0';) {
        const char *end = strchr(line, '\n');
        if (strncmp(line, key, n) == 0 && line[n] == ' ') {
            char *value = xasprintf(
                "%.*s", (int)(end != NULL ? end - line - (ptrdiff_t)n - 1 : 200), line + n + 1);
            text_copy_line(out, size, value);
            free(value);
            return true;
        }
        line = end != NULL ? end + 1 : NULL;
    }
    return false;
}

/* Whether the lock that the node holds is seen here. */
static enum probe_flock try_lock(const struct probe *p)
{
    char *path = file_of(p, PROBE_LOCK);
    enum probe_flock seen = PROBE_FLOCK_UNKNOWN;
    int fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    if (fd >= 0) {
        seen = flock(fd, LOCK_EX | LOCK_NB) == 0 ? PROBE_FLOCK_UNSEEN
               : errno == EWOULDBLOCK            ? PROBE_FLOCK_SEEN
                                                 : PROBE_FLOCK_UNKNOWN;
        (void)close(fd);
    }
    free(path);
    return seen;
}

static int take_node(struct probe *p, const struct strbuf *text)
{
    static const char ours[] = "prereg-shim " PREREGD_VERSION;
    char nonce[64] = "";
    char code[16] = "";
    char version[96] = "";
    char lock[16] = "";
    char node[160];
    (void)line_value(text, "name", p->node, sizeof(p->node));
    (void)line_value(text, "host", p->out->host, sizeof(p->out->host));
    (void)line_value(text, "nonce", nonce, sizeof(nonce));
    (void)line_value(text, "code", code, sizeof(code));
    (void)line_value(text, "version", version, sizeof(version));
    (void)line_value(text, "lock", lock, sizeof(lock));
    (void)node_of(p, node, sizeof(node));
    if (strcmp(nonce, p->name) != 0) {
        return FAILED_BY(p, PROBE_FAULT_WORK, "%s reads another file than was written in %s", node,
                         p->spec->work);
    }
    if (strcmp(code, "127") == 0 || strcmp(code, "126") == 0) {
        return FAILED_BY(p, PROBE_FAULT_SHIM,
                         "%s cannot run %s: install prereg-shim there, or set [run.slurm] shim",
                         node, p->spec->shim);
    }
    if (strncmp(version, "prereg-shim ", strlen("prereg-shim ")) != 0) {
        return FAILED_BY(p, PROBE_FAULT_SHIM,
                         "%s of %s is not a prereg-shim that reports its version; this is %s: "
                         "install the same version on the nodes",
                         p->spec->shim, node, ours);
    }
    (void)snprintf(p->out->version, sizeof(p->out->version), "%s",
                   version + strlen("prereg-shim "));
    if (strcmp(version, ours) != 0) {
        return FAILED_BY(p, PROBE_FAULT_SHIM,
                         "%s of %s is %s, this is %s: install the same version on the nodes",
                         p->spec->shim, node, version, ours);
    }
    p->out->flock = strcmp(lock, "held") == 0 ? try_lock(p) : PROBE_FLOCK_UNKNOWN;
    p->out->state = PROBE_ANSWERED;
    return 0;
}

/* ---- clocks ---- */

/* "1795840601.123456", or whole seconds, as milliseconds and how far they may be short; false: it
 * is neither. */
static bool read_clock(const char *text, int64_t *ms, int64_t *short_of)
{
    char *end = NULL;
    errno = 0;
    const long long seconds = strtoll(text, &end, 10);
    if (errno != 0 || end == text || seconds < 0 || seconds > SECONDS_MAX) {
        return false;
    }
    *ms = seconds * 1000;
    *short_of = 999;
    if (*end == '.') {
        int64_t scale = 100;
        for (end++; *end >= '0' && *end <= '9'; end++) {
            *ms += (*end - '0') * scale;
            scale /= 10;
        }
        *short_of = 1;
    }
    return *end == ' ';
}

/* One way there and back: the node's clock showed `theirs` at some time between ours. */
static int measure(struct probe *p, int round, bool *answered, struct err *err)
{
    struct strbuf text = STRBUF_INIT;
    char name[32];
    int64_t theirs = 0;
    int64_t short_of = 0;
    *answered = false;
    (void)snprintf(name, sizeof(name), "ask-%d", round);
    strbuf_addc(&text, '\n');
    const struct mono_time start = clock_mono(); /* before `before`: `way` covers what follows */
    const struct wall_time before = clock_wall();
    int rc = put(p, name, &text, 0600, err);
    (void)snprintf(name, sizeof(name), "pong-%d", round);
    while (rc == 0 && !*answered && clock_mono().ms - start.ms < HIDDEN_MS) {
        if (p->spec->tools->stops != NULL && proc_signal_waits(p->spec->tools->stops)) {
            rc = err_set(err, ERR_REFUSED, "stopped by a signal");
            break;
        }
        *answered = take_file(p, name, &text) && read_clock(text.buf, &theirs, &short_of);
        if (!*answered) {
            clock_sleep_ms(LOOK_MS / 5);
        }
    }
    if (*answered) {
        const int64_t way = clock_mono().ms - start.ms;
        const int64_t low = theirs - (before.ms + way + 2); /* both are cut to whole ms */
        const int64_t high = theirs + short_of - before.ms;
        p->low = low > p->low ? low : p->low;
        p->high = high < p->high ? high : p->high;
        p->out->seen_ms = p->out->seen_ms < 0 || way < p->out->seen_ms ? way : p->out->seen_ms;
    }
    strbuf_release(&text);
    return rc;
}

static int measure_all(struct probe *p, struct err *err)
{
    bool answered = true;
    int rc = 0;
    for (int i = 1; rc == 0 && answered && i <= ROUNDS; i++) {
        rc = measure(p, i, &answered, err);
    }
    if (rc == 0 && !answered) {
        char node[160];
        return FAILED_BY(
            p, PROBE_FAULT_WORK, "%s does not see a new file of the work folder %s within %lld s",
            node_of(p, node, sizeof(node)), p->spec->work, (long long)(HIDDEN_MS / 1000));
    }
    if (rc == 0 && p->low <= p->high) { /* else a clock has jumped meanwhile */
        p->out->skew_ms = p->low + (p->high - p->low) / 2;
        p->out->skew_bound_ms = (p->high - p->low + 1) / 2;
    }
    return rc;
}

/* ---- the whole ---- */

/* What may be reported while the job waits: its reason in words. *done when the time is up, or
 * Slurm will never begin it. */
static int judge_wait(struct probe *p, bool *done)
{
    const char *words = slurm_reason_in_words(p->reason);
    const int64_t waited = clock_mono().ms - p->submitted.ms;
    char why[300];
    (void)snprintf(why, sizeof(why), "%s%s%s%s", p->reason[0] != '\0' ? p->reason : "no reason yet",
                   words != NULL ? " (" : "", words != NULL ? words : "", words != NULL ? ")" : "");
    *done = true;
    if (slurm_reason_is_final(p->reason)) {
        return failed(p, "the probe job would wait in Slurm for ever: %s", why);
    }
    *done = waited >= p->spec->wait_ms;
    if (*done) {
        (void)failed(p, "%s", why);
        p->out->state = PROBE_WAITED;
        p->out->waited_ms = waited;
    }
    return 0;
}

/* From sbatch's answer to the node's. */
static int wait_for_node(struct probe *p, struct strbuf *text, struct err *err)
{
    bool done = false;
    int rc = 0;
    while (rc == 0 && !done) {
        if (p->spec->tools->stops != NULL && proc_signal_waits(p->spec->tools->stops)) {
            return err_set(err, ERR_REFUSED, "stopped by a signal");
        }
        if (take_file(p, PROBE_NODE, text)) {
            if (!p->has_begun) {
                p->out->waited_ms = clock_mono().ms - p->submitted.ms;
            }
            rc = take_node(p, text);
            return rc == 0 && p->out->state == PROBE_ANSWERED ? measure_all(p, err) : rc;
        }
        if (clock_mono().ms - p->asked.ms >= ASK_MS) {
            rc = ask_queue(p, err);
        }
        if (rc == 0 && p->over.ms >= 0) {
            rc = judge_end(p, &done);
        } else if (rc == 0 && !p->has_begun) {
            rc = judge_wait(p, &done);
        } else if (rc == 0 && clock_mono().ms - p->begun.ms > HIDDEN_MS + TALK_MS) {
            char node[160];
            done = true;
            rc = FAILED_BY(p, PROBE_FAULT_WORK,
                           "the probe job runs on %s, but says nothing in the work folder %s%s",
                           node_of(p, node, sizeof(node)), p->spec->work,
                           p->spec->n_setup > 0 ? " (or its lines of setup have not ended)" : "");
        }
        clock_sleep_ms(done ? 0 : LOOK_MS);
    }
    return rc;
}

int probe_run(const struct probe_spec *spec, struct probe_result *out, struct err *err)
{
    struct strbuf text = STRBUF_INIT;
    struct err ignored;
    struct probe p = {
        .spec = spec, .out = out, .over = {-1}, .low = -SKEW_UNKNOWN, .high = SKEW_UNKNOWN};
    bool done = false;
    *out = (struct probe_result){.state = PROBE_FAILED, .skew_bound_ms = -1, .seen_ms = -1};
    uuid_make(p.name);
    int rc = prepare(&p, err);
    if (rc == 0) {
        rc = submit(&p, &done, err);
        if (rc == 0 && !done) {
            rc = wait_for_node(&p, &text, err);
        }
        strbuf_clear(&text);
        (void)put(&p, PROBE_OVER, &text, 0600, &ignored);
        cancel(&p);
    }
    /* what its end left behind under NFS goes with a second try, or stays under its own name */
    if (dir_remove(p.folder, &ignored) != 0) {
        clock_sleep_ms(2 * LOOK_MS);
        (void)!dir_remove(p.folder, &ignored);
    }
    free(p.script);
    free(p.folder);
    strbuf_release(&text);
    return rc;
}
