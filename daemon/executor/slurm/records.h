/*
 * The records behind the book: attempts, batches, shapes. Private to the pure part of this room;
 * ledger.h finds and changes them, book.h is what others see.
 *
 * A batch's entries are slots of attempts by index: one that has ended, or was never there, is
 * ENTRY_OVER; one whose job must not run any more is ENTRY_STRAY and is cancelled when the queue
 * shows it.
 */
#ifndef DAEMON_EXECUTOR_SLURM_RECORDS_H
#define DAEMON_EXECUTOR_SLURM_RECORDS_H

#include "base/rng.h"
#include "base/strbuf.h"
#include "daemon/executor/slurm/book.h"
#include "daemon/executor/slurm/calls.h"
#include "daemon/executor/slurm/nodes.h"
#include "daemon/executor/slurm/unfit.h"

#define NOWHERE     UINT32_MAX
#define ENTRY_OVER  UINT32_MAX
#define ENTRY_STRAY (UINT32_MAX - 1)
#define LONG_AGO    (INT64_MIN / 4)
#define BATCH_LINGER_MS                                                                            \
    INT64_C(600000) /* strays of a batch without attempts are cancelled so long */

enum attempt_phase {
    PHASE_FREE,
    PHASE_WAITING,    /* to be submitted */
    PHASE_SUBMITTING, /* its sbatch is under way */
    PHASE_UNSURE,     /* perhaps submitted: sbatch's answer is unknown, or an earlier daemon's */
    PHASE_HELD,       /* accepted, not seen active */
    PHASE_BEGUN,
    PHASE_GONE,  /* the queue does not show it alive: its files decide, or a grace */
    PHASE_AGAIN, /* certainly not in the queue: waits for the rest of its batch */
    PHASE_NR
};

enum attempt_want { WANT_NOTHING, WANT_TERMINATE, WANT_KILL };

struct attempt_record {
    struct attempt_key key;
    uint32_t chain; /* of its key's bucket; of the free list */
    uint32_t next;  /* of its shape's waiting list */
    uint32_t prev;
    uint32_t shape;
    uint32_t batch; /* NOWHERE: none */
    uint32_t index;
    uint32_t row; /* while an answer is read: its best row; else NOWHERE */
    uint8_t id[16];
    uint8_t phase;
    uint8_t want;
    uint8_t state; /* enum slurm_state, the latest */
    bool array : 1;
    bool reported_begun : 1;
    bool launched : 1; /* start.json, a heartbeat or an active job was seen */
    bool over : 1;     /* GONE: the queue says so itself */
    bool requeued : 1;
    bool looking : 1;
    bool probe_owed : 1;
    bool accounted : 1;
    bool written : 1; /* a single job of it was refused: its script is there */
    uint16_t node;
    uint16_t reason; /* number in `words`; so the next */
    uint16_t word;   /* of a state that is not in the table */
    uint16_t n_absent;
    uint16_t n_looks; /* good ones since it is gone */
    bool read_once;   /* its files were read before: a higher heartbeat is news */
    int64_t beat;
    int64_t beat_ms;  /* when it was seen to advance */
    int64_t waits_ms; /* begun, and shown waiting again since; LONG_AGO: not */
    int64_t gone_ms;
    int64_t absent_ms;    /* the latest good answer without it was asked for then */
    int64_t look_ms;      /* the latest look was asked for */
    int64_t good_look_ms; /* the latest that was answered well was asked for */
    int64_t signal_ms;    /* the latest cancel */
};

enum batch_state {
    BATCH_SUBMITTING,
    BATCH_UNSURE, /* perhaps in the queue */
    BATCH_HELD,   /* was in the queue for sure */
    BATCH_AGAIN,  /* certainly not in the queue: to be submitted again under its name */
    BATCH_REFUSED /* nothing of it may run */
};

struct batch_record {
    char name[UUID_TEXT_SIZE];
    bool array;
    bool adopted;  /* of an earlier daemon */
    bool listed;   /* while names are collected */
    bool noted;    /* a final pending reason was reported */
    bool seen;     /* the queue has shown it */
    bool excludes; /* nodes, when it was submitted last */
    bool bare;     /* but none that has failed */
    bool forgotten;
    uint8_t state;
    uint8_t n_tries;
    uint32_t chain;
    uint32_t shape;
    uint32_t *entries;
    uint32_t n_entries;
    uint32_t n_live;
    uint32_t n_again;
    uint32_t cancel[2];   /* [soft]: its place in `cancels`, or NOWHERE */
    int64_t submitted_ms; /* answers to older questions do not count */
    int64_t over_ms;      /* when n_live fell to 0 */
};

struct shape_record {
    bool known;
    bool tested;
    bool refused;
    bool doubted; /* refused while nodes were excluded: a test without them may show why */
    bool bare;    /* it did not: the next sbatch excludes no bad node, and shows it */
    struct unfit_list unfit;
    uint8_t n_unclear;
    uint32_t head[2]; /* waiting attempts: [array] */
    uint32_t tail[2];
    uint32_t n_waiting[2];
    int64_t since_ms[2];
    int64_t retest_ms;
    char *why; /* refused */
};

struct list { /* of numbers, a growing array */
    uint32_t *at;
    size_t n;
    size_t cap;
};

struct cancel {
    uint32_t batch;
    char name[UUID_TEXT_SIZE];
    bool soft;
    int64_t checked_ms;
    struct strbuf ids;
};

struct slurm_book {
    struct slurm_book_config config;
    struct rng rng;
    int64_t now_ms;
    struct slurm_out *out; /* of the step */
    struct attempt_record *attempts;
    uint32_t n_attempts;
    uint32_t cap_attempts;
    uint32_t free_attempt;
    uint32_t n_live;
    uint32_t n_waiting;
    uint32_t *keys; /* buckets */
    uint32_t n_keys;
    struct batch_record *batches;
    uint32_t n_batches;
    uint32_t cap_batches;
    uint32_t free_batch;
    uint32_t n_used_batches;
    uint32_t *names;
    uint32_t n_names;
    struct shape_record *shapes;
    uint32_t n_shapes;
    struct node_table nodes;
    struct intern words;
    struct calls calls;

    /* submitting */
    struct list again;
    uint32_t submitting; /* batch under way, or NOWHERE */
    uint32_t testing;    /* shape under way, or NOWHERE */
    bool full;
    uint32_t n_full; /* refusals in a row */
    uint32_t n_not_made;
    int64_t hold_ms;  /* nothing is submitted before */
    bool hold_answer; /* nor before the queue answers well */
    uint32_t batch_most;

    /* asking */
    bool asking;
    bool asked_names;  /* the question under way is about names only */
    struct list asked; /* its batches */
    struct list want_names;
    bool want_round;
    int64_t asked_ms;
    int64_t round_ms;  /* the next is due */
    int64_t good_ms;   /* the latest good answer was asked for */
    int64_t linger_ms; /* rounds go on until then without attempts */
    bool accounting;
    int64_t accounting_off_ms; /* there is none: asked again then */
    struct list account;

    /* ending */
    bool cancelling;
    struct cancel *cancels;
    size_t n_cancels;
    size_t cap_cancels;
    uint32_t n_failed_starts;
    int64_t next_ms;
};

#endif
