/*
 * The events that drive the book: plain data, each carrying its own time. The pointers in an event
 * only need to live during slurm_book_step.
 */
#ifndef DAEMON_EXECUTOR_SLURM_EVENT_H
#define DAEMON_EXECUTOR_SLURM_EVENT_H

#include "base/clock.h"
#include "daemon/executor/executor.h"
#include "daemon/executor/slurm/parse.h"

enum slurm_event_kind {
    SLURM_EVENT_START,     /* .start: committed; to be submitted */
    SLURM_EVENT_PROBE,     /* .start, with .start.hint when the book may not know it */
    SLURM_EVENT_TERMINATE, /* .key: it is to checkpoint and end */
    SLURM_EVENT_KILL,      /* .key */
    SLURM_EVENT_TESTED,    /* answers TEST: .shape, .submit */
    SLURM_EVENT_SUBMITTED, /* answers SUBMIT: .name, .submit */
    SLURM_EVENT_QUEUE,     /* answers QUEUE and NAMES: .queue */
    SLURM_EVENT_ACCOUNTED, /* answers ACCOUNTING: .queue */
    SLURM_EVENT_CANCELLED, /* answers CANCEL, however it went */
    SLURM_EVENT_FILES,     /* answers LOOK: .key, .files */
    SLURM_EVENT_TIMER,
};

/* What the attempt's folder says of its job; of PROBE. */
enum slurm_hint {
    SLURM_HINT_NONE,    /* the shell has not looked: it has started or probed it before */
    SLURM_HINT_NEVER,   /* its folder was listed and has no `job`: it was never submitted */
    SLURM_HINT_FENCED,  /* an earlier daemon gave it up, and has left no row of that */
    SLURM_HINT_JOB,     /* .name, .index of its `job` */
    SLURM_HINT_UNCLEAR, /* cannot be read now: the next probe has a hint again */
};

enum slurm_submit_answer {
    SLURM_SUBMIT_DONE,     /* an id came; TEST: it would fit */
    SLURM_SUBMIT_FULL,     /* refused: back-pressure */
    SLURM_SUBMIT_NEVER,    /* refused: it never fits; .text has Slurm's reason */
    SLURM_SUBMIT_UNKNOWN,  /* anything else, the watchdog too (rules 5, 6) */
    SLURM_SUBMIT_NOT_MADE, /* sbatch has not been run: its files could not be written; .text */
};

struct slurm_event {
    enum slurm_event_kind kind;
    struct mono_time mono;
    struct attempt_key key;
    const char *name; /* of a batch */
    const char *text; /* why, or NULL */
    struct {
        const char *id; /* UUID */
        uint32_t shape; /* a number of the shell's for one set of resources and [run.slurm] */
        bool array;     /* [run.slurm] array */
        enum slurm_hint hint;
        const char *name;
        uint32_t index; /* SLURM_INDEX_NONE: a single job */
    } start;
    uint32_t shape;
    enum slurm_submit_answer submit;
    bool no_space; /* NOT_MADE: for want of room */
    struct {
        bool ok; /* false: cannot ask. ACCOUNTED: `off` too when accounting is absent */
        bool off;
        const struct slurm_rows *rows;
    } queue;
    struct {
        bool listed;                   /* false: the folder could not be listed, nothing is known */
        bool launched;                 /* start.json is there */
        bool refused;                  /* the shim refused a second run in the folder (rule 7) */
        int64_t beat;                  /* sequence of its heartbeat; 0 none */
        const char *unfit_node;        /* its node, "" unknown, is not what the program pins, */
        const char *unfit_has;         /* but has this: nothing was begun; NULL: not so */
        const struct attempt_end *end; /* exit.json is there, whole; or NULL */
    } files;
};

#endif
