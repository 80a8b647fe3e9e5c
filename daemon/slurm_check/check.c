/*
 * The order of the questions: are the commands there; does the controller answer; do the partitions
 * exist and are there nodes that have what a stage asks for; would Slurm take a job of each stage
 * (stages.c); does a node see the work folder (probes.c). Signals are held meanwhile, so that a
 * probe is cancelled and its folder removed.
 */
#include "daemon/slurm_check/check.h"

#include <errno.h>
#include <inttypes.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/files/file.h"
#include "base/json/json.h"
#include "base/layout/layout.h"
#include "base/xalloc.h"
#include "daemon/slurm_check/asking.h"
#include "prereg/program/work_folder.h"

extern char **environ;

size_t slurm_check_stages(const struct plan_program *p)
{
    size_t n = 0;
    for (size_t s = 0; s < p->n_stages; s++) {
        n += asking_is_of_slurm(p, s);
    }
    return n;
}

/* The place of a key of the whole program, or of what is nearest to it. */
static struct place program_place(const struct slurm_asking *c, struct place key)
{
    size_t first = 0;
    while (first + 1 < c->p->n_stages && !asking_is_of_slurm(c->p, first)) {
        first++;
    }
    return asking_place(c, first, key);
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

/* What Slurm holds back is not an error: it is waited for. */
static void check_limits(struct slurm_asking *c)
{
    const struct slurm_settings *s = &c->p->run.slurm;
    const struct place at = program_place(c, s->max_queued_place);
    const int64_t submit = ask_max_submit(c);
    if (c->cluster.max_jobs >= 0 && s->max_queued > c->cluster.max_jobs) {
        diag_add(c->diag, DIAG_WARNING, at.line, at.column,
                 "run.slurm.max_queued: it is %" PRId64
                 ", and the controller keeps at most %" PRId64 " jobs of all users (MaxJobCount)",
                 s->max_queued, c->cluster.max_jobs);
    }
    if (submit >= 0 && s->max_queued > submit) {
        diag_add(c->diag, DIAG_WARNING, at.line, at.column,
                 "run.slurm.max_queued: it is %" PRId64 ", and Slurm takes at most %" PRId64
                 " jobs of you at a time (MaxSubmitJobs): the others wait here",
                 s->max_queued, submit);
    }
    json_put_string(c->answer, "cluster", c->cluster.name);
    json_put_string(c->answer, "version", c->cluster.version);
    asking_put_known(c->answer, "max_array", c->cluster.max_array);
    asking_put_known(c->answer, "max_jobs", c->cluster.max_jobs);
    json_put_bool(c->answer, "accounting", cluster_accounts(&c->cluster));
    asking_put_known(c->answer, "max_submit", submit);
}

/* The partitions must exist and be up. */
static void check_partitions(struct slurm_asking *c)
{
    const struct slurm_settings *s = &c->p->run.slurm;
    const struct place at = program_place(c, s->partition_place);
    char names[160];
    char name[80];
    cluster_partition_names(&c->cluster, names, sizeof(names));
    c->partition = s->partition != NULL ? s->partition : cluster_default_partition(&c->cluster);
    if (c->partition == NULL) {
        diag_add(c->diag, DIAG_ERROR, at.line, at.column,
                 "run.slurm.partition: this cluster has no default partition: name one of %s",
                 names);
        return;
    }
    if (cluster_lacks_partition(&c->cluster, c->partition, name, sizeof(name))) {
        diag_add(c->diag, DIAG_ERROR, at.line, at.column,
                 "run.slurm.partition: the cluster has no partition \"%s\"; it has %s", name,
                 names);
        return;
    }
    const struct cluster_partition *one =
        cluster_find_partition(&c->cluster, c->partition, strlen(c->partition));
    if (one != NULL && !one->is_up) {
        diag_add(c->diag, DIAG_WARNING, at.line, at.column,
                 "partition %s is not up: jobs wait until it is", c->partition);
    }
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
    work_folder_check(c->p, DIAG_ERROR, c->diag);
    check_limits(c);
    check_partitions(c);
    if (c->diag->n_errors == 0 && (rc = stages_test(c, err)) != 0) {
        return rc;
    }
    if (c->diag->n_errors == 0 && (rc = probes_run(c, err)) != 0) {
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
    c.in_doubt = arena_array(&c.arena, check->program->n_stages, sizeof(*c.in_doubt));
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
