/*
 * What slurm.c shares with commands.c (which runs Slurm's commands) and file_jobs.c (which reads
 * and writes the files of jobs, off the loop). For these three files only; slurm.h is the
 * interface.
 */
#ifndef DAEMON_EXECUTOR_SLURM_PARTS_H
#define DAEMON_EXECUTOR_SLURM_PARTS_H

#include <uv.h>

#include "daemon/executor/key_map.h"
#include "daemon/executor/slurm/book.h"
#include "daemon/executor/slurm/shape.h"

/* The commands that may be under way, one of each. */
enum call_kind {
    CALL_TEST,
    CALL_SUBMIT,
    CALL_QUEUE,
    CALL_ACCOUNTING,
    CALL_CANCEL,
    CALL_CONFIG,
    CALL_NR
};

struct slurm_attempt {
    struct attempt_key key;
    char id[UUID_TEXT_SIZE];
    char *folder; /* as the daemon names it */
    uint32_t shape;
    bool has_spec;      /* started by this daemon */
    bool array;         /* [run.slurm] array */
    bool hinting;       /* a job reads its `job` */
    bool ending;        /* a job fences it off; the book has forgotten it */
    struct strbuf spec; /* until it was written */
};

struct call; /* commands.c */

struct slurm {
    struct executor base;
    /* slurm.c: steps the book and performs its acts; `ev` gets the time. */
    void (*step)(struct slurm *x, struct slurm_event *ev);
    /* slurm.c: reports the end and forgets the attempt. */
    void (*report_end)(struct slurm *x, const struct attempt_key *key,
                       const struct attempt_end *end);
    uv_loop_t *loop;
    uv_timer_t timer;
    char *shim_path;
    struct slurm_book *book;
    struct slurm_shapes shapes;
    struct key_map attempts;
    struct call *calls[CALL_NR];
    const char **clusters; /* of all shapes, each once; an element may be NULL: the default */
    size_t n_clusters;
    size_t cap_clusters;
    unsigned n_jobs;       /* file jobs under way */
    bool configured;       /* MaxArraySize is known */
    int64_t config_due_ms; /* else it is not asked for before */
    bool closed;
};

/* commands.c: each answers with the event of its act. */
void command_test(struct slurm *x, const struct slurm_act *act);
void command_submit(struct slurm *x, const char *name, const char *array, const char *exclude,
                    uint32_t shape); /* the files of the batch are there */
void command_cancel(struct slurm *x, const struct slurm_act *act);
void command_ask(struct slurm *x, const struct slurm_act *act); /* QUEUE, NAMES */
void command_account(struct slurm *x, const struct slurm_act *act);
/* Asks for MaxArraySize, once; where that failed, again with a start a minute later. */
void command_config(struct slurm *x, const char *clusters);
void commands_give_up(struct slurm *x);
void commands_free(struct slurm *x);
/* Adds to those that are asked; NULL: the default. Borrowed. */
void commands_add_clusters(struct slurm *x, const char *clusters);

/* file_jobs.c: likewise. */
void file_job_look(struct slurm *x, const struct slurm_act *act);
void file_job_submit(struct slurm *x, const struct slurm_act *act);
void file_job_end(struct slurm *x, const struct slurm_act *act);
void file_job_forget(struct slurm *x, const struct slurm_act *act);
/* Removes what earlier daemons have left in the program's jobs/. */
void file_job_sweep(struct slurm *x, const char *program_folder);
/* Of an attempt that the book does not know: answers with PROBE and what its folder says. */
void file_job_probe(struct slurm *x, struct slurm_attempt *a);
/* Of one that it knows: answers with PROBE and this hint. */
void file_job_probe_with(struct slurm *x, const struct slurm_attempt *a, enum slurm_hint hint,
                         const char *name, uint32_t index);

#endif
