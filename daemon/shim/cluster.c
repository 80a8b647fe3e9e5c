/*
 * What prereg-shim does besides, when a cluster runs it: before the worker (cluster_open), on every
 * tick of its watch (cluster_tick), and before it publishes the end (cluster_may_publish). Numbers
 * of rules are those of docs/slurm.md.
 */
#include "daemon/shim/cluster.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/files/file.h"
#include "base/files/shared_dir.h"
#include "base/layout/layout.h"
#include "base/text.h"
#include "base/xalloc.h"
#include "daemon/shim/current.h"
#include "daemon/shim/fence.h"
#include "daemon/shim/files.h"

#define CURRENT_TRIES    60 /* a file that another host wrote may be seen late */
#define CURRENT_PAUSE_MS 1000

/* "123", or "120_3" of an array: as squeue prints it. */
static char *job_name(void)
{
    const char *array = getenv("SLURM_ARRAY_JOB_ID");
    const char *index = getenv("SLURM_ARRAY_TASK_ID");
    const char *job = getenv("SLURM_JOB_ID");
    return array != NULL && index != NULL ? xasprintf("%s_%s", array, index)
                                          : xstrdup(job == NULL ? "" : job);
}

/* Rule 7: a site may requeue although it was asked not to. */
static int check_restarts(struct err *err)
{
    const char *text = getenv("SLURM_RESTART_COUNT");
    struct err ignored;
    int64_t count = 0;
    bool there = false;
    if (text == NULL || text_to_int(text, 0, INT64_MAX, &count, &ignored) != 0 || count == 0) {
        return 0;
    }
    int rc = shared_find(LAYOUT_START, &there, err);
    if (rc == 0 && !there) {
        rc = shared_find(LAYOUT_EXIT, &there, err);
    }
    if (rc != 0 || !there) {
        return rc;
    }
    const int fd = open(LAYOUT_REFUSED, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    if (fd >= 0) {
        (void)close(fd);
    }
    return err_set(err, ERR_REFUSED,
                   "the cluster put the job back into its queue; this attempt was run before");
}

/* Rule 19. The daemon wrote it before it submitted the job. */
static int check_current(const char *folder, struct err *err)
{
    for (int i = 0; i < CURRENT_TRIES; i++) {
        switch (current_compare(folder, err)) {
        case CURRENT_OURS: return 0;
        case CURRENT_SUPERSEDED:
            return err_set(err, ERR_REFUSED, "this attempt was given up, or another one follows");
        case CURRENT_UNKNOWN: break;
        }
        clock_sleep_ms(CURRENT_PAUSE_MS);
    }
    return err_wrap(err, "whether this attempt is the current one");
}

/* The spec names the attempt; the copy's name does, too. */
static int copy_spec(int *spec_fd, struct err *err)
{
    struct strbuf text = STRBUF_INIT;
    struct shim_spec spec = {0};
    char name[sizeof(SHIM_MARK) + UUID_TEXT_SIZE];
    int fd = -1;
    int rc = shared_read(LAYOUT_SPEC, LAYOUT_SPEC_MAX, &text, err);
    if (rc != 0) {
        goto out;
    }
    rc = file_in_memory(SHIM_MARK, text.buf, text.len, &fd, err);
    if (rc != 0) {
        goto out;
    }
    rc = shim_spec_read(fd, &spec, err);
    (void)close(fd);
    if (rc == 0) {
        (void)snprintf(name, sizeof(name), SHIM_MARK "%s", spec.attempt);
        rc = file_in_memory(name, text.buf, text.len, spec_fd, err);
    }
out:
    shim_spec_release(&spec);
    strbuf_release(&text);
    return rc == 0 ? 0 : err_wrap(err, LAYOUT_SPEC);
}

int cluster_open(struct cluster_job *c, const char *folder, int *spec_fd, struct err *err)
{
    *c = (struct cluster_job){.folder = folder};
    int rc = 0;
    if ((rc = check_restarts(err)) != 0 || (rc = check_current(folder, err)) != 0 ||
        (rc = copy_spec(spec_fd, err)) != 0) {
        return rc;
    }
    char *job = job_name();
    heartbeat_init(&c->beat, job);
    free(job);
    return 0;
}

int cluster_share(struct cluster_job *c, const char *folder, struct err *err)
{
    *c = (struct cluster_job){.folder = folder};
    int rc = check_current(folder, err);
    if (rc == 0) {
        heartbeat_init(&c->beat, NULL);
        (void)cluster_tick(c);
    }
    return rc;
}

/* The device numbers that the cluster has given to the job (nothing is remapped), and TMPDIR. */
static bool is_of_job(const char *variable)
{
    static const char *const names[] = {"CUDA_VISIBLE_DEVICES=",
                                        "NVIDIA_VISIBLE_DEVICES=",
                                        "ROCR_VISIBLE_DEVICES=",
                                        "HIP_VISIBLE_DEVICES=",
                                        "GPU_DEVICE_ORDINAL=",
                                        "ZE_AFFINITY_MASK=",
                                        "SLURM_",
                                        "TMPDIR="};
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        if (strncmp(variable, names[i], strlen(names[i])) == 0) {
            return true;
        }
    }
    return false;
}

static bool is_set(const struct shim_spec *spec, const char *variable)
{
    const size_t n = strcspn(variable, "=") + 1;
    for (size_t i = 0; i < spec->n_env; i++) {
        if (strncmp(spec->env[i], variable, n) == 0) {
            return true;
        }
    }
    return false;
}

void cluster_environment(struct shim_spec *spec, char *const *environment)
{
    for (size_t i = 0; environment[i] != NULL; i++) {
        const char *v = environment[i];
        const char *value = strchr(v, '=');
        if (value == NULL || is_set(spec, v) || (!spec->takes_job && !is_of_job(v))) {
            continue;
        }
        char *name = xstrndup(v, (size_t)(value - v));
        shim_spec_add_env(spec, name, value + 1);
        free(name);
    }
}

/* By a later attempt, or because the daemon gave this one up. */
static bool is_given_up(const struct cluster_job *c)
{
    struct err ignored;
    bool fenced = false;
    return current_compare(c->folder, &ignored) == CURRENT_SUPERSEDED ||
           (shared_find(FENCE_FILE, &fenced, &ignored) == 0 && fenced);
}

/* A heartbeat that cannot be written costs its reader patience, not the worker its life. */
bool cluster_tick(void *cluster)
{
    struct cluster_job *c = cluster;
    struct err ignored;
    const int64_t now = clock_mono().ms;
    if (now < c->due_ms || c->superseded) {
        return !c->superseded;
    }
    c->due_ms = now + HEARTBEAT_PERIOD_MS;
    c->superseded = is_given_up(c);
    if (!c->superseded && heartbeat_write(c->folder, &c->beat, &ignored) != 0) {
        c->due_ms = now + CURRENT_PAUSE_MS;
    }
    return !c->superseded;
}

int cluster_may_publish(struct cluster_job *c, struct err *err)
{
    c->superseded = c->superseded || is_given_up(c);
    return c->superseded
               ? err_set(err, ERR_REFUSED, "this attempt was given up: its end is not published")
               : 0;
}
