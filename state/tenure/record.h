/*
 * STATE/tenure/NNNNNNNN.json: one file for each daemon that has served a shared state folder.
 *
 * The daemon of the highest number serves. A number is claimed with link(2), which fails where the
 * name exists, so it is never claimed twice. Afterwards only its owner replaces the file (rename),
 * to raise `sequence` and, in the end, to set `released`. A daemon that finds a higher number than
 * its own has a successor and must not write any more.
 */
#ifndef STATE_TENURE_RECORD_H
#define STATE_TENURE_RECORD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/uuid.h"

#define TENURE_BEAT_MS 3000 /* between two sequences */

struct tenure {
    int64_t number;   /* from 1 */
    int64_t sequence; /* from 1 */
    bool released;    /* it stopped by itself, and writes no more */
    char host[256];
    char machine[40]; /* /etc/machine-id, or "" */
    char boot_id[40];
    char pid_space[64]; /* of the process's number: /proc/self/ns/pid */
    int64_t pid;
    int64_t pid_start;      /* clock ticks since boot */
    char job[64];           /* of Slurm, in which it runs; "" none; so the next three */
    char cluster[64];       /* "" also where Slurm did not say */
    char job_name[256];     /* likewise */
    char job_submitted[64]; /* as squeue has it; likewise */
    char database[4096];    /* absolute: its local folder, with database, socket and log */
    char database_id[UUID_TEXT_SIZE];
    char time[WALL_TEXT_SIZE]; /* when it was claimed, by its clock */
};

/* Whether daemons of this folder keep tenures: there is a first one. */
bool tenure_is_kept(const char *state);
/* The highest one; *found is false where there is none. ERR_CORRUPT: it cannot be understood. */
int tenure_read(const char *state, struct tenure *out, bool *found, struct err *err) MUST_CHECK;
/* What is in the file of that number. ERR_CORRUPT names the member. */
int tenure_parse(const char *text, size_t len, int64_t number, struct tenure *out,
                 struct err *err) MUST_CHECK;
/* Claims t->number, durably; sequence becomes 1. ERR_EXISTS: another daemon was faster, or a higher
 * number is there. Removes files of earlier numbers, but for the one before. */
int tenure_claim(const char *state, struct tenure *t, struct err *err) MUST_CHECK;
/* Replaces the file of t, with the next sequence. Only after tenure_check(). */
int tenure_renew(const char *state, struct tenure *t, struct err *err) MUST_CHECK;
/* ERR_MOVED: a higher number is there. ERR_IO: cannot be determined now. Lists one small folder. */
int tenure_check(const char *state, const struct tenure *t, struct err *err) MUST_CHECK;

/* Whether both name the same machine: its boots may differ. */
bool tenure_is_same_host(const struct tenure *a, const struct tenure *b);
/* Fills host, machine, boot_id, pid_space of this process, and pid; the rest is zero. */
void tenure_init(struct tenure *t);
/* "host a, process 12, Slurm job 7 of c, boot 1234abcd": for messages and the journal. */
char *tenure_text(const struct tenure *t) __attribute__((returns_nonnull));

/* The folder of database, socket and log: as the last tenure says if that was a daemon of this
 * host, else the state folder itself. The caller frees it. */
char *tenure_local_folder(const char *state) __attribute__((returns_nonnull));

#endif
