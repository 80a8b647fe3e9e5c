/* One book of the Slurm executor, driven by hand: the events that the shell would bring, and the
 * acts that come back. */
#ifndef TESTS_UNIT_DAEMON_EXECUTOR_SLURM_BENCH_H
#define TESTS_UNIT_DAEMON_EXECUTOR_SLURM_BENCH_H

#include "daemon/executor/slurm/book.h"

#include "tests/unit/check.h"

#define A "0b9b6ad6-3a3e-4b6e-9c0a-1f2e3d4c5b6a"
#define B "1c8c7be7-4b4f-4c7f-8d1b-2a3f4e5d6c7b"

struct bench {
    struct slurm_book *book;
    struct slurm_out out;
    struct arena texts;
    int64_t now_ms;
    char name[UUID_TEXT_SIZE]; /* of the latest SUBMIT */
};

static inline void begin(struct bench *p)
{
    struct slurm_book_config config;
    slurm_book_config_default(&config);
    config.seed = 7;
    *p = (struct bench){.book = slurm_book_create(&config), .now_ms = 1000000};
    slurm_out_init(&p->out);
    arena_init(&p->texts);
}

static inline void finish(struct bench *p)
{
    slurm_book_free(p->book);
    slurm_out_release(&p->out);
    arena_release(&p->texts);
}

static inline void step(struct bench *p, struct slurm_event ev)
{
    ev.mono.ms = p->now_ms;
    slurm_out_clear(&p->out);
    slurm_book_step(p->book, &ev, &p->out);
}

/* The act of a kind among those of the latest step, or NULL. */
static inline const struct slurm_act *act(const struct bench *p, enum slurm_act_kind kind)
{
    for (size_t i = 0; i < p->out.n; i++) {
        if (p->out.acts[i].kind == kind) {
            return &p->out.acts[i];
        }
    }
    return NULL;
}

/* The same; there must be one. */
static inline struct slurm_act must(const struct bench *p, enum slurm_act_kind kind)
{
    const struct slurm_act *a = act(p, kind);
    const struct slurm_act none = {.kind = SLURM_ACT_NR, .name = "", .ids = ""};
    assert_non_null(a);
    return a != NULL ? *a : none;
}

/* How the attempt ended in the latest step; END_REASON_NR: it did not. */
static inline enum end_reason reason(const struct bench *p)
{
    const struct slurm_act *a = act(p, SLURM_ACT_ENDED);
    return a != NULL && a->end != NULL ? a->end->reason : END_REASON_NR;
}

static inline const char *detail(const struct bench *p)
{
    const struct slurm_act *a = act(p, SLURM_ACT_ENDED);
    return a != NULL && a->end != NULL ? a->end->detail : "";
}

static inline struct attempt_key key(uint32_t task)
{
    return (struct attempt_key){.program = 1, .task = task, .no = 1};
}

static inline void start(struct bench *p, uint32_t task, const char *id, bool array)
{
    struct slurm_event ev = {.kind = SLURM_EVENT_START, .key = key(task)};
    ev.start.id = id;
    ev.start.array = array;
    step(p, ev);
}

/* Lets the time pass until the book asks for something of a kind; answers no questions. */
static inline const struct slurm_act *wait_for(struct bench *p, enum slurm_act_kind kind)
{
    for (int i = 0; i < 50 && act(p, kind) == NULL; i++) {
        int64_t next = slurm_book_next_ms(p->book);
        assert_true(next != INT64_MAX);
        p->now_ms = next > p->now_ms ? next : p->now_ms + 1;
        step(p, (struct slurm_event){.kind = SLURM_EVENT_TIMER});
    }
    const struct slurm_act *a = act(p, kind);
    assert_non_null(a);
    return a;
}

static inline void tested(struct bench *p, enum slurm_submit_answer answer)
{
    (void)wait_for(p, SLURM_ACT_TEST);
    step(p, (struct slurm_event){.kind = SLURM_EVENT_TESTED, .submit = answer, .text = "too big"});
}

static inline void submitted(struct bench *p, enum slurm_submit_answer answer)
{
    const struct slurm_act *a = wait_for(p, SLURM_ACT_SUBMIT);
    (void)snprintf(p->name, sizeof(p->name), "%s", a->name);
    step(p, (struct slurm_event){
                .kind = SLURM_EVENT_SUBMITTED, .name = p->name, .submit = answer, .text = "why"});
}

/* Answers the question with rows in squeue's form; NULL: cannot ask. */
static inline void answer(struct bench *p, const char *text)
{
    struct slurm_rows rows = {0};
    p->now_ms++;
    struct slurm_event ev = {.kind = SLURM_EVENT_QUEUE};
    if (text != NULL) {
        slurm_parse_queue(text, strlen(text), &p->texts, &rows);
        ev.queue.ok = true;
        ev.queue.rows = &rows;
    }
    step(p, ev);
}

/* Waits for a question and answers it. */
static inline void queue(struct bench *p, const char *text)
{
    if (act(p, SLURM_ACT_NAMES) == NULL) {
        (void)wait_for(p, SLURM_ACT_QUEUE);
    }
    answer(p, text);
}

static inline const char *row(struct bench *p, const char *state, const char *node)
{
    return arena_printf(&p->texts, "5|5|%s|None|%s|1|%s|1|1\n", state, p->name, node);
}

static inline void files(struct bench *p, uint32_t task, bool launched)
{
    struct slurm_event ev = {.kind = SLURM_EVENT_FILES, .key = key(task)};
    ev.files.listed = true;
    ev.files.launched = launched;
    p->now_ms++;
    step(p, ev);
}

/* One attempt in the queue, under its own name. */
static inline void hold_one(struct bench *p)
{
    begin(p);
    start(p, 0, A, false);
    tested(p, SLURM_SUBMIT_DONE);
    submitted(p, SLURM_SUBMIT_DONE);
    assert_string_equal(p->name, A);
}

#endif
