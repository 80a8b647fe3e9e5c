/*
 * One check of a program against a cluster while it is under way: what check.c, stages.c and
 * probes.c share, and where in grid.toml a fault is reported.
 */
#ifndef DAEMON_SLURM_CHECK_ASKING_H
#define DAEMON_SLURM_CHECK_ASKING_H

#include "base/strbuf.h"
#include "daemon/slurm_check/check.h"
#include "daemon/slurm_check/cluster.h"
#include "daemon/slurm_check/tools.h"

#define ASKING_GIB ((double)(1 << 30))

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
    bool *in_doubt;    /* of each stage: only sbatch itself knows whether a node fits */
    struct diag *diag;
    cJSON *answer;
};

bool asking_is_of_slurm(const struct plan_program *p, size_t stage);
struct slurm_request asking_request(const struct slurm_asking *c, size_t stage);
/* "8 cores, 32 GiB, 1 GPU, 4 h 0 min" */
void asking_say_request(const struct slurm_request *r, struct strbuf *out);
void asking_put_known(cJSON *o, const char *key, int64_t value); /* null where it is negative */

/* The place of a key, or of what is nearest to it where it is unset: [run.slurm], the stage's
 * executor, the stage. */
struct place asking_place(const struct slurm_asking *c, size_t stage, struct place key);
/* The place of what sbatch names in its refusal `why` of a stage's job: an option, or a key. */
struct place asking_place_of_refusal(const struct slurm_asking *c, size_t stage, const char *why);

/* Figures and --test-only of each stage; adds `stages` to the answer. */
int stages_test(struct slurm_asking *c, struct err *err) MUST_CHECK;
/* The probe jobs; adds `probes` to the answer. */
int probes_run(struct slurm_asking *c, struct err *err) MUST_CHECK;

#endif
