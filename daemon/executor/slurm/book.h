/* clang-format off */
/*
 * What is known of each attempt under Slurm, and what to do next: slurm_book_step(book, event) ->
 * acts. Pure as daemon/core is: no clock, no I/O. All decisions of the Slurm executor are here, so
 * that tests/sim/slurm runs them in virtual time.
 *
 * A batch is what one sbatch submits: an array of attempts, or one. Its name is a UUID: an array's
 * is drawn here, a single job's is its attempt's. An attempt belongs to one batch at a time; name
 * and index are its identity in Slurm, a job id is only a hint (rule 2).
 *
 *   waiting ──SUBMIT──► submitting ──id──► held ──active──► begun ──exit.json──► ended
 *      ▲  ▲                 │ unknown         │ absent, or over without exit.json
 *      │  └──refused: full──┤                 ▼
 *      └──absent, a grace───┴─► unsure       gone ──a grace without a sign of life──► ended
 *
 * Invariants: an attempt ends exactly once. A batch whose answer is unknown is never submitted
 * again before the queue answered well, at least twice over a grace, that its name is absent.
 * "Cannot ask" ends nothing and submits nothing. At most one call of each kind is under way; calls
 * are bounded by a token bucket. Nothing of an attempt is opened before BEGAN or its absence (rule
 * 17).
 *
 * The shell does the acts of one step in order, and answers each that says so, exactly once, also
 * after its watchdog. It steps with SLURM_EVENT_TIMER when slurm_book_next_ms is due. Answers about
 * batches and attempts that have ended meanwhile are harmless.
 */
/* clang-format on */
#ifndef DAEMON_EXECUTOR_SLURM_BOOK_H
#define DAEMON_EXECUTOR_SLURM_BOOK_H

#include "base/arena.h"
#include "daemon/executor/slurm/event.h"

struct slurm_book;

struct slurm_book_config {
    uint64_t seed;           /* of array names; the shell takes it from the kernel */
    uint32_t max_array;      /* MaxArraySize; an array holds at most so many (rule 10) */
    int64_t grace_ms;        /* 180 s (rule 17); slurm_book_set_grace() */
    int64_t round_ms;        /* between two questions while few are held: 5 s;
                                slurm_book_set_round() */
    int64_t round_max_ms;    /* with 10,000: 60 s (rule 13) */
    int64_t gather_ms;       /* how long a batch waits for more: 200 ms */
    int64_t beat_ms;         /* a heartbeat that advanced within it proves life: 60 s */
    int64_t exclude_ms;      /* how long a bad node is excluded: a day (rule 24) */
    uint32_t calls_a_minute; /* token bucket: 120, bursts of half of it (rule 10) */
    uint32_t failed_starts;  /* so many in a row are reported: 5 (rule 24) */
};
void slurm_book_config_default(struct slurm_book_config *c);

/* clang-format off */
/*
 *   TEST        sbatch --test-only with .shape               -> TESTED
 *   SUBMIT      for each entry: write `spec`, `job` {name, index} and `current-attempt`; .name's
 *               list (array) and script; sync all; then sbatch with job name .name, --array=.array
 *               unless it is NULL, --exclude=.exclude unless it is NULL      -> SUBMITTED .name.
 *               .again: its files are there, run sbatch alone
 *   QUEUE       one squeue for everything of the user        -> QUEUE
 *   NAMES       one squeue --name=.name (a comma list)       -> QUEUE
 *   ACCOUNTING  one sacct --name=.name since .since_s        -> ACCOUNTED
 *   CANCEL      scancel --name=.name .ids (blank-separated: one name, re-checked by Slurm too)
 *               in the clusters of .shape; .soft: with --signal=TERM --batch  -> CANCELLED
 *   LOOK        list the parent and the attempt's folder, read what is there -> FILES
 *   BEGAN       report that the attempt may have files
 *   PROBED      report .health
 *   ENDED       .end; where .fence: first leave `fenced` in its folder, so that a job that begins
 *               late gives up; then report. Nothing of .key follows
 *   FORGET      all of the batch .name has ended: remove its list and script, of .shape's jobs/
 *   FULL, ROOM  the controller refuses more; accepts again
 *   NOTE        .text for the log and the status
 */
/* clang-format on */
enum slurm_act_kind {
    SLURM_ACT_TEST,
    SLURM_ACT_SUBMIT,
    SLURM_ACT_QUEUE,
    SLURM_ACT_NAMES,
    SLURM_ACT_ACCOUNTING,
    SLURM_ACT_CANCEL,
    SLURM_ACT_LOOK,
    SLURM_ACT_BEGAN,
    SLURM_ACT_PROBED,
    SLURM_ACT_ENDED,
    SLURM_ACT_FORGET,
    SLURM_ACT_FULL,
    SLURM_ACT_ROOM,
    SLURM_ACT_NOTE,
    SLURM_ACT_NR
};
enum slurm_health { SLURM_ALIVE, SLURM_QUEUED, SLURM_UNSURE };

struct slurm_entry {
    struct attempt_key key;
    uint32_t index; /* of the array; 0 of a single job */
};

struct slurm_act { /* texts and lists are of `out` */
    enum slurm_act_kind kind;
    struct attempt_key key;
    uint32_t shape;
    const char *name;
    const char *array;                 /* "0-5,7" */
    const char *exclude;               /* "n1,n7" */
    const struct slurm_entry *entries; /* of SUBMIT, by index */
    size_t n_entries;
    const char *ids;
    const char *text;
    int64_t since_ms; /* ACCOUNTING: mono; the oldest submission among them, or INT64_MIN: before
                         this daemon */
    const struct attempt_end *end;
    enum slurm_health health;
    bool again;
    bool soft;
    bool fence;
};

struct slurm_out {
    struct slurm_act *acts;
    size_t n;
    size_t cap;
    struct arena texts;
};

struct slurm_book *slurm_book_create(const struct slurm_book_config *config); /* copied */
void slurm_book_free(struct slurm_book *book);
void slurm_out_init(struct slurm_out *out);
void slurm_out_clear(struct slurm_out *out);
void slurm_out_release(struct slurm_out *out);

/* Appends to out. O(log n) but for answers about the queue, which are O(n). */
void slurm_book_step(struct slurm_book *book, const struct slurm_event *event,
                     struct slurm_out *out);
/* When the next SLURM_EVENT_TIMER is due (mono); INT64_MAX: nothing to wait for. */
int64_t slurm_book_next_ms(const struct slurm_book *book);
/* Sets MaxArraySize once scontrol has reported it; at least 1. */
void slurm_book_set_max_array(struct slurm_book *book, uint32_t max_array);

/* [run.slurm] grace, at least 1 s: of all attempts, the longest where programs differ. */
void slurm_book_set_grace(struct slurm_book *book, int64_t grace_ms);

/* [run.slurm] poll, 1 s to 60 s: of all attempts, the shortest where programs differ. */
void slurm_book_set_round(struct slurm_book *book, int64_t round_ms);

/* For status and explain. */
struct slurm_view {
    const char *state;  /* Slurm's word, or ours: "waiting", "submitting" */
    const char *reason; /* Slurm's pending reason, or "" */
    const char *node;   /* or "" */
    const char *name;   /* of its job, or "" */
    uint32_t index;
    bool stale; /* the queue has not answered since two rounds */
};
/* Fills `view` until the next step; false: the book does not know the attempt. */
bool slurm_book_view(const struct slurm_book *book, const struct attempt_key *key,
                     struct slurm_view *view);
size_t slurm_book_count(const struct slurm_book *book); /* attempts that have not ended */
/* Those of them that were to be terminated or killed, and that Slurm has not been asked to end. */
size_t slurm_book_count_ending(const struct slurm_book *book);

#endif
