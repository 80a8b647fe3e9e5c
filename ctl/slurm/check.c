/*
 * The order of the questions: are the commands there; does the controller answer; do the partitions
 * exist and are there nodes that have what a stage asks for; would Slurm take a job of each stage
 * (--test-only); does a node see the work folder (a probe for stages with GPUs, and one for those
 * without: they may run on other nodes). Signals are held meanwhile, so that the probe is cancelled
 * and its folder removed.
 */
#include "ctl/slurm/check.h"

#include <errno.h>
#include <inttypes.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/files/file.h"
#include "base/json/json.h"
#include "base/layout/layout.h"
#include "base/text.h"
#include "base/xalloc.h"
#include "ctl/slurm/cluster.h"
#include "ctl/slurm/probe.h"
#include "ctl/slurm/tools.h"
#include "daemon/executor/slurm/parse.h"

extern char **environ;

#define GIB ((double)(1 << 30))

struct slurm_asking {
    const struct plan_program *p;
    const struct slurm_check *how;
    struct arena arena;
    struct tools tools;
    struct cluster cluster;
    const char *partition; /* named, or the default */
    char *work;            /* without links */
    char *shim;
    char refused[200]; /* why --test-only refused a stage; the same of another is not repeated */
    struct diag *diag;
    cJSON *answer;
};

static bool is_of_slurm(const struct plan_program *p, size_t stage)
{
    return p->stages[stage].run.executor == EXECUTOR_SLURM;
}

size_t slurm_check_stages(const struct plan_program *p)
{
    size_t n = 0;
    for (size_t s = 0; s < p->n_stages; s++) {
        n += is_of_slurm(p, s);
    }
    return n;
}

/* Where an error of a stage is reported: [run.slurm], else the stage. */
static struct place place_of(const struct slurm_asking *c, size_t stage)
{
    return c->p->run.slurm.place.line > 0 ? c->p->run.slurm.place : c->p->stages[stage].place;
}

static struct slurm_request request_of(const struct slurm_asking *c, size_t stage)
{
    const struct stage_run *r = &c->p->stages[stage].run;
    const struct slurm_settings *s = &c->p->run.slurm;
    return (struct slurm_request){
        .partition = s->partition,
        .account = s->account,
        .qos = s->qos,
        .clusters = s->clusters,
        .options = s->options,
        .n_options = s->n_options,
        .threads = r->threads > 0 ? (uint32_t)r->threads : 1,
        .memory_bytes = r->memory_bytes,
        .gpus = (uint32_t)((r->gpu_thousandths + 999) / 1000), /* a share takes a whole one */
        .time_ms = r->time_ms,
        .login = s->n_setup > 0,
    };
}

/* "8 cores, 32 GiB, 1 GPU, 4 h 0 min" */
static void say_request(const struct slurm_request *r, struct strbuf *out)
{
    char span[48];
    strbuf_add_count(out, r->threads, "core", "cores");
    if (r->memory_bytes > 0) {
        strbuf_addf(out, ", %.3g GiB", (double)r->memory_bytes / GIB);
    }
    if (r->gpus > 0) {
        strbuf_adds(out, ", ");
        strbuf_add_count(out, r->gpus, "GPU", "GPUs");
    }
    if (r->time_ms > 0) {
        strbuf_addf(out, ", %s", clock_span_text(r->time_ms, span, sizeof(span)));
    }
}

/* ---- the controller ---- */

static int ask_cluster(struct slurm_asking *c, struct err *err)
{
    static void (*const readers[])(struct cluster * to, const char *text, size_t len) = {
        cluster_read_config, cluster_read_partitions, cluster_read_nodes};
    char *const *const words[] = {
        slurm_command_config(&c->arena, c->tools.clusters),
        tools_words(&c->tools, (const char *const[8]){"scontrol", "-o", "show", "partition"}),
        tools_words(&c->tools, (const char *const[8]){"scontrol", "-o", "show", "node"}),
    };
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < ARRAY_LEN(words); i++) {
        struct proc_result r = {.out = STRBUF_INIT, .err = STRBUF_INIT};
        rc = tools_ask(&c->tools, words[i], &r, err);
        if (rc == 0) {
            readers[i](&c->cluster, r.out.buf, r.out.len);
        }
        proc_result_release(&r);
    }
    return rc == 0 ? 0 : err_wrap(err, "Slurm does not answer");
}

/* The most jobs that this user may have submitted; -1: no limit, or it is not known. */
static int64_t ask_max_submit(const struct slurm_asking *c)
{
    const struct passwd *me = getpwuid(geteuid());
    const struct tools without_clusters = {.arena = c->tools.arena};
    struct proc_result r = {.out = STRBUF_INIT, .err = STRBUF_INIT};
    struct err ignored;
    int64_t most = -1;
    if (!cluster_accounts(&c->cluster) || me == NULL) {
        return -1;
    }
    char *const *words = tools_words(
        &without_clusters,
        (const char *const[8]){"sacctmgr", "-n", "-P", "show", "association",
                               arena_printf(c->tools.arena, "user=%s", me->pw_name),
                               arena_printf(c->tools.arena, "cluster=%s", c->cluster.name),
                               "format=Account,MaxSubmitJobs"});
    if (tools_run(&c->tools, words, TOOLS_QUERY_MS, &r, &ignored) == 0 && r.code == 0) {
        most = cluster_max_submit(r.out.buf, r.out.len, c->p->run.slurm.account);
    }
    proc_result_release(&r);
    return most;
}

static void put_known(cJSON *o, const char *key, int64_t value)
{
    if (value >= 0) {
        json_put_int(o, key, value);
    } else {
        json_put_null(o, key);
    }
}

/* What Slurm holds back is not an error: it is waited for. */
static void check_limits(struct slurm_asking *c)
{
    const struct slurm_settings *s = &c->p->run.slurm;
    const int64_t submit = ask_max_submit(c);
    if (c->cluster.max_jobs >= 0 && s->max_queued > c->cluster.max_jobs) {
        diag_add(c->diag, DIAG_WARNING, s->place.line, s->place.column,
                 "max_queued is %" PRId64 ", and the controller keeps at most %" PRId64
                 " jobs of all users (MaxJobCount)",
                 s->max_queued, c->cluster.max_jobs);
    }
    if (submit >= 0 && s->max_queued > submit) {
        diag_add(c->diag, DIAG_WARNING, s->place.line, s->place.column,
                 "max_queued is %" PRId64 ", and Slurm takes at most %" PRId64
                 " jobs of you at a time (MaxSubmitJobs): the others wait here",
                 s->max_queued, submit);
    }
    json_put_string(c->answer, "cluster", c->cluster.name);
    json_put_string(c->answer, "version", c->cluster.version);
    put_known(c->answer, "max_array", c->cluster.max_array);
    put_known(c->answer, "max_jobs", c->cluster.max_jobs);
    json_put_bool(c->answer, "accounting", cluster_accounts(&c->cluster));
    put_known(c->answer, "max_submit", submit);
}

/* The partitions must exist and be up. */
static void check_partitions(struct slurm_asking *c)
{
    const struct slurm_settings *s = &c->p->run.slurm;
    char names[160];
    char name[80];
    cluster_partition_names(&c->cluster, names, sizeof(names));
    c->partition = s->partition != NULL ? s->partition : cluster_default_partition(&c->cluster);
    if (c->partition == NULL) {
        diag_add(c->diag, DIAG_ERROR, s->place.line, s->place.column,
                 "run.slurm.partition: this cluster has no default partition: name one of %s",
                 names);
        return;
    }
    if (cluster_lacks_partition(&c->cluster, c->partition, name, sizeof(name))) {
        diag_add(c->diag, DIAG_ERROR, s->place.line, s->place.column,
                 "run.slurm.partition: the cluster has no partition \"%s\"; it has %s", name,
                 names);
        return;
    }
    const struct cluster_partition *one =
        cluster_find_partition(&c->cluster, c->partition, strlen(c->partition));
    if (one != NULL && !one->is_up) {
        diag_add(c->diag, DIAG_WARNING, s->place.line, s->place.column,
                 "partition %s is not up: jobs wait until it is", c->partition);
    }
}

/* ---- each stage ---- */

/* Time and figures against the partitions. False: an error was added. */
static bool check_figures(const struct slurm_asking *c, size_t stage, const struct slurm_request *r)
{
    const struct plan_stage *s = &c->p->stages[stage];
    const struct place at = place_of(c, stage);
    struct cluster_most most;
    char span[48];
    char most_span[48];
    cluster_most(&c->cluster, c->partition, &most);
    if (most.time_ms >= 0 && r->time_ms > most.time_ms) {
        diag_add(c->diag, DIAG_ERROR, at.line, at.column,
                 "run.%s.time: %s, and partition %s allows at most %s (MaxTime)", s->name,
                 clock_span_text(r->time_ms, span, sizeof(span)), c->partition,
                 clock_span_text(most.time_ms, most_span, sizeof(most_span)));
        return false;
    }
    if (most.n_nodes > 0 && !cluster_has_node(&c->cluster, c->partition, r)) {
        struct strbuf asks = STRBUF_INIT;
        say_request(r, &asks);
        diag_add(c->diag, DIAG_ERROR, at.line, at.column,
                 "run.%s: an attempt asks for %s on one node, and no node of partition %s has "
                 "that: they have at most %" PRId64 " cores, %.3g GiB, %" PRId64 " GPUs",
                 s->name, asks.buf, c->partition, most.cores, (double)most.memory_bytes / GIB,
                 most.gpus);
        strbuf_release(&asks);
        return false;
    }
    return true;
}

/* "... to start at 1795840601 using 2 processors on nodes n1 in partition main": into the row. */
static void put_start(cJSON *row, const char *said)
{
    const char *start = strstr(said, " to start at ");
    const char *nodes = strstr(said, " on nodes ");
    const char *digits = start != NULL ? start + strlen(" to start at ") : "";
    char *end = NULL;
    errno = 0;
    const long long at = strtoll(digits, &end, 10);
    const bool known =
        errno == 0 && end != digits && *end == ' ' && at > 0 && at < JSON_INT_MAX / 1000;
    if (known) {
        const int64_t in_ms = (int64_t)at * 1000 - clock_wall().ms;
        json_put_int(row, "starts_in_ms", in_ms > 0 ? in_ms : 0);
    } else {
        json_put_null(row, "starts_in_ms");
    }
    char node[128] = "";
    if (nodes != NULL) {
        nodes += strlen(" on nodes ");
        (void)snprintf(node, sizeof(node), "%.*s", (int)strcspn(nodes, " \n"), nodes);
    }
    text_make_line(node);
    json_put_string(row, "node", node[0] != '\0' ? node : NULL);
}

/* Rule 23: what no node can satisfy would wait for ever. */
static int test_stage(struct slurm_asking *c, size_t stage, const char *script, struct err *err)
{
    const struct slurm_request request = request_of(c, stage);
    const struct place at = place_of(c, stage);
    struct proc_result r = {.out = STRBUF_INIT, .err = STRBUF_INIT};
    struct strbuf asks = STRBUF_INIT;
    char why[200];
    if (!check_figures(c, stage, &request)) {
        return 0;
    }
    const struct slurm_submission s = {.script = script, .folder = c->work};
    int rc =
        tools_run(&c->tools, slurm_command_test(&c->arena, &request, &s), TOOLS_SUBMIT_MS, &r, err);
    say_request(&request, &asks);
    slurm_parse_why(r.err.buf, r.err.len, why, sizeof(why));
    if (rc == 0 && r.code != 0 && slurm_parse_refusal(r.err.buf, r.err.len) == SLURM_REFUSED_FULL) {
        diag_add(c->diag, DIAG_WARNING, at.line, at.column,
                 "run.%s: Slurm takes no more jobs of you now: %s", c->p->stages[stage].name, why);
    } else if (rc == 0 && r.code != 0 && strcmp(why, c->refused) != 0) {
        static const char prefix[] = "allocation failure: ";
        (void)snprintf(c->refused, sizeof(c->refused), "%s", why);
        diag_add(c->diag, DIAG_ERROR, at.line, at.column,
                 "run.%s: Slurm refuses an attempt with %s in partition %s: %s",
                 c->p->stages[stage].name, asks.buf, c->partition,
                 strncmp(why, prefix, sizeof(prefix) - 1) == 0 ? why + sizeof(prefix) - 1
                 : why[0] != '\0'                              ? why
                                                               : "sbatch --test-only failed");
    } else if (rc == 0 && r.code == 0) {
        cJSON *row = json_object();
        json_put_string(row, "stage", c->p->stages[stage].name);
        json_put_string(row, "asks", asks.buf);
        put_start(row, r.err.len > 0 ? r.err.buf : r.out.buf);
        json_push(cJSON_GetObjectItemCaseSensitive(c->answer, "stages"), row);
    }
    strbuf_release(&asks);
    proc_result_release(&r);
    return rc;
}

static int test_stages(struct slurm_asking *c, struct err *err)
{
    static const char script[] = "#!/bin/sh\nexit 0\n"; /* it is never run */
    struct cluster_most most;
    int fd = -1;
    cluster_most(&c->cluster, c->partition, &most);
    json_put_string(c->answer, "partition", c->partition);
    json_put_int(c->answer, "nodes", (int64_t)most.n_nodes);
    put_known(c->answer, "cores", most.cores);
    put_known(c->answer, "memory_bytes", most.memory_bytes);
    put_known(c->answer, "gpus", most.gpus);
    put_known(c->answer, "time_ms", most.time_ms);
    json_put(c->answer, "stages", json_array());
    json_put(c->answer, "probes", json_array());
    int rc = file_in_memory("test", script, sizeof(script) - 1, &fd, err);
    if (rc != 0) {
        return rc;
    }
    char *path = xasprintf("/proc/%d/fd/%d", (int)getpid(), fd);
    for (size_t s = 0; rc == 0 && s < c->p->n_stages; s++) {
        rc = is_of_slurm(c->p, s) ? test_stage(c, s, path, err) : 0;
    }
    free(path);
    (void)close(fd);
    return rc;
}

/* ---- the probe ---- */

static void put_probe(struct slurm_asking *c, size_t stage, const struct probe_result *r)
{
    static const char *const states[] = {
        [PROBE_ANSWERED] = "answered", [PROBE_WAITED] = "waiting", [PROBE_FAILED] = "failed"};
    cJSON *row = json_object();
    json_put_string(row, "stage", c->p->stages[stage].name);
    json_put_string(row, "state", states[r->state]);
    json_put_string(row, "host", r->host[0] != '\0' ? r->host : NULL);
    json_put_string(row, "version", r->version[0] != '\0' ? r->version : NULL);
    json_put_int(row, "waited_ms", r->waited_ms);
    put_known(row, "seen_ms", r->seen_ms);
    if (r->skew_bound_ms >= 0) {
        json_put_int(row, "skew_ms", r->skew_ms);
        json_put_int(row, "skew_bound_ms", r->skew_bound_ms);
    } else {
        json_put_null(row, "skew_ms");
        json_put_null(row, "skew_bound_ms");
    }
    if (r->flock == PROBE_FLOCK_UNKNOWN) {
        json_put_null(row, "flock");
    } else {
        json_put_bool(row, "flock", r->flock == PROBE_FLOCK_SEEN);
    }
    json_put_string(row, "work", c->work);
    json_put_string(row, "why", r->why[0] != '\0' ? r->why : NULL);
    json_push(cJSON_GetObjectItemCaseSensitive(c->answer, "probes"), row);
}

static int probe_stage(struct slurm_asking *c, size_t stage, struct err *err)
{
    const struct slurm_request request = request_of(c, stage);
    const struct place at = place_of(c, stage);
    char span[48];
    struct probe_result r;
    const struct probe_spec spec = {.tools = &c->tools,
                                    .request = &request,
                                    .shim = c->shim,
                                    .setup = c->p->run.slurm.setup,
                                    .n_setup = c->p->run.slurm.n_setup,
                                    .work = c->work,
                                    .wait_ms = c->how->wait_ms};
    int rc = probe_run(&spec, &r, err);
    if (rc != 0) {
        return rc;
    }
    if (r.state == PROBE_FAILED) {
        diag_add(c->diag, DIAG_ERROR, at.line, at.column, "run.%s: %s", c->p->stages[stage].name,
                 r.why);
    } else if (r.state == PROBE_WAITED) {
        diag_add(
            c->diag, DIAG_WARNING, at.line, at.column,
            "run.%s: the probe job waited %s in Slurm and was cancelled: %s; whether nodes see "
            "%s is not shown (--slurm-wait TIME waits longer)",
            c->p->stages[stage].name, clock_span_text(r.waited_ms, span, sizeof(span)), r.why,
            c->work);
    }
    put_probe(c, stage, &r);
    return 0;
}

/* The first stage without GPUs and the first with. */
static int probe_nodes(struct slurm_asking *c, struct err *err)
{
    bool probed[2] = {false, false};
    int rc = 0;
    for (size_t s = 0; rc == 0 && s < c->p->n_stages; s++) {
        bool *done = &probed[c->p->stages[s].run.gpu_thousandths > 0];
        if (is_of_slurm(c->p, s) && !*done) {
            *done = true;
            rc = probe_stage(c, s, err);
        }
    }
    return rc;
}

/* ---- the whole ---- */

/* The work folder, or the nearest folder above it that is there, without links. */
static int find_work(struct slurm_asking *c, struct err *err)
{
    char *path = c->p->run.work != NULL ? path_absolute(c->p->folder, c->p->run.work)
                                        : path_join(c->how->state, LAYOUT_PROGRAMS);
    while (strcmp(path, "/") != 0 && file_kind_at(path) == FILE_ABSENT) {
        char *above = path_folder(path);
        free(path);
        path = above;
    }
    c->work = realpath(path, NULL);
    int rc = c->work != NULL ? 0 : err_set_errno(err, errno, "the work folder %s", path);
    free(path);
    return rc;
}

static int find_shim(struct slurm_asking *c, struct err *err)
{
    struct strbuf self = STRBUF_INIT;
    int rc = 0;
    if (c->p->run.slurm.shim != NULL) {
        c->shim = xstrdup(c->p->run.slurm.shim);
    } else if ((rc = path_of_self(&self, err)) == 0) {
        c->shim = path_join(self.buf, "prereg-shim");
    }
    strbuf_release(&self);
    return rc;
}

static int ask_all(struct slurm_asking *c, struct err *err)
{
    int rc = 0;
    if ((rc = tools_find(err)) != 0 || (rc = find_work(c, err)) != 0 ||
        (rc = find_shim(c, err)) != 0 || (rc = ask_cluster(c, err)) != 0) {
        return rc;
    }
    check_limits(c);
    check_partitions(c);
    if (c->diag->n_errors == 0 && (rc = test_stages(c, err)) != 0) {
        return rc;
    }
    if (c->diag->n_errors == 0 && (rc = probe_nodes(c, err)) != 0) {
        return rc;
    }
    return diag_result(c->diag, err);
}

int slurm_check(const struct slurm_check *check, struct diag *diag, cJSON **answer, struct err *err)
{
    struct slurm_asking c = {.p = check->program, .how = check, .diag = diag};
    sigset_t held;
    sigset_t before;
    *answer = NULL;
    if (slurm_check_stages(check->program) == 0) {
        return err_set(err, ERR_USAGE,
                       "--slurm: no stage of this program runs under Slurm: write executor = "
                       "\"slurm\" in [run] or [run.STAGE]");
    }
    arena_init(&c.arena);
    cluster_init(&c.cluster);
    c.answer = json_object();
    proc_hold_signals(&held, &before);
    c.tools = (struct tools){.arena = &c.arena,
                             .env = slurm_command_environment(&c.arena, environ),
                             .stops = &held,
                             .clusters = check->program->run.slurm.clusters};
    int rc = ask_all(&c, err);
    if (rc == 0) {
        *answer = c.answer;
    } else {
        cJSON_Delete(c.answer);
    }
    free(c.work);
    free(c.shim);
    cluster_release(&c.cluster);
    arena_release(&c.arena);
    (void)sigprocmask(SIG_SETMASK, &before, NULL); /* a signal that waits ends us now */
    return rc;
}
