/*
 * The loop of a run: adopt the lines of an earlier attempt, check viability, then ask batch after
 * batch and append its lines, until all items are done or a stop is asked for. count_outcome() is
 * called for adopted and for new outcomes alike and in the same order, which is why a resumed run
 * has the same sums to the bit.
 *
 * The first answer that is not finite ends the run: all metrics are then null, and no line is
 * written for that item.
 */
#include "worker/eval/cli/run.h"

#include <sys/resource.h>

#include "base/clock.h"
#include "base/text.h"
#include "worker/eval/cli/evaluation.h"
#include "worker/report/stop.h"

/* Adds the outcome of the next item to the sums. */
static void count_outcome(struct eval_session *e, const struct item_outcome *o)
{
    const size_t item = e->bench.selected[e->n_done];
    e->n_done++;
    if (o->fault[0] != '\0') {
        e->n_faults++;
        return;
    }
    e->n_cut += (double)o->n_cut;
    e->n_cut_items += o->n_cut > 0;
    summary_add(&e->summary, item, o);
    viability_add(&e->viability, &e->judge, item, o);
}

struct believer {
    struct eval_session *e;
    struct item_outcome outcome;
};

/* The callback of items_file_take(): counts the line when it is exactly what we would write. */
static bool believe_line(void *self, size_t index, const char *line, size_t len)
{
    struct believer *b = self;
    struct eval_session *e = b->e;
    if (index >= e->bench.n_selected ||
        !outcome_read_line(&b->outcome, &e->judge, e->bench.selected[index], line, len))
        return false;
    count_outcome(e, &b->outcome);
    return true;
}

/* Tells the user which part of the header differs. */
static void note_other_header(struct eval_session *e, const struct strbuf *other)
{
    struct strbuf names = STRBUF_INIT;
    items_key_difference(&e->header, other, &names);
    events_note(&e->events, "the items of an earlier attempt are not used; changed since: %s",
                names.len == 0 ? "the header" : names.buf);
    strbuf_release(&names);
}

/* From the newest earlier attempt that has lines under our header. */
static int adopt_items(struct eval_session *e, struct err *err)
{
    struct believer believer = {.e = e};
    const struct items_reader reader = {believe_line, &believer};
    struct strbuf taken = STRBUF_INIT;
    struct strbuf other = STRBUF_INIT;
    outcome_init(&believer.outcome);
    for (size_t i = 0; i < e->task->n_resume && e->n_taken == 0; i++) {
        enum items_found found = items_file_take(e->task->resume[i], e->header.buf, &reader, &taken,
                                                 &e->n_taken, &other);
        if (found == ITEMS_OTHER)
            note_other_header(e, &other);
        if (found == ITEMS_CHANGED)
            events_note(&e->events,
                        "items.jsonl of an earlier attempt was changed after it was written; the "
                        "items from number %zu on are asked again",
                        e->n_taken);
    }
    int rc = items_file_create(&e->items, e->header.buf, &taken, err);
    if (rc == 0 && e->n_taken > 0)
        events_resumed(&e->events, (int64_t)e->n_taken);
    outcome_release(&believer.outcome);
    strbuf_release(&taken);
    strbuf_release(&other);
    return rc;
}

/* Whether the generations so far show that this model can be asked for answers at all; the evidence
 * stays beside the items when they show that it cannot. */
static int check_viability(struct eval_session *e, struct err *err)
{
    struct err write_err = {0};
    int rc = viability_check(&e->viability, e->n_done, e->bench.n_selected, err);
    if (rc == ERR_REFUSED && viability_write(&e->viability, &write_err) != 0) {
        *err = write_err;
        rc = err->code;
    }
    return rc;
}

/* The batch's lines by one write. The first answer that is not finite ends the run before its line.
 */
static int write_batch(struct eval_session *e, size_t n, struct err *err)
{
    struct strbuf lines = STRBUF_INIT;
    for (size_t i = 0; i < n && e->null_why == NULL; i++) {
        const struct item_outcome *o = &e->scorer.outcomes[i];
        const size_t item = e->bench.selected[e->n_done];
        if (!o->finite) {
            e->null_why = "not_finite";
            events_note(&e->events, "item %zu (line %u): the model's answer is not finite", item,
                        e->bench.set.items[item].line);
            break;
        }
        outcome_add_line(o, &e->judge, item, &lines);
        count_outcome(e, o);
    }
    int rc = items_file_append(&e->items, &lines, err);
    strbuf_release(&lines);
    return rc;
}

/* One batch: ask, write, and refuse a model that cannot generate. */
static int ask_batch(struct eval_session *e, struct err *err)
{
    size_t n = 0;
    int rc = scorer_ask(&e->scorer, e->bench.selected + e->n_done, e->bench.n_selected - e->n_done,
                        &n, err);
    if (rc == 0)
        rc = write_batch(e, n, err);
    return rc == 0 ? check_viability(e, err) : rc;
}

/* "Asked to stop" promises that what is done is on disk; other errors stay what they are. */
static int sync_items(struct eval_session *e, int rc, struct err *err)
{
    struct err sync_err = {0};
    if (rc == ERR_BUSY)
        (void)err_set(err, rc, "asked to stop after %zu items", e->n_done);
    if (items_file_sync(&e->items, &sync_err) == 0 || (rc != 0 && rc != ERR_BUSY))
        return rc;
    *err = sync_err;
    return err->code;
}

/* Of this process. */
static double cpu_seconds(void)
{
    struct rusage u;
    if (getrusage(RUSAGE_SELF, &u) != 0)
        return 0.0;
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
           (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) * 1e-6;
}

/* Until all items are done, a stop is asked for, or an answer is not finite. */
static int ask_items(struct eval_session *e, struct err *err)
{
    const int64_t start = clock_mono_ns();
    const double cpu_start = cpu_seconds();
    int rc = 0;
    events_section(&e->events, SECTION_EVAL);
    while (rc == 0 && e->null_why == NULL && e->n_done < e->bench.n_selected) {
        events_progress(&e->events, (int64_t)e->n_done, (int64_t)e->bench.n_selected, "item");
        rc = stop_asked() ? err_set(err, ERR_BUSY, "asked to stop") : ask_batch(e, err);
    }
    if (rc == 0)
        events_progress(&e->events, (int64_t)e->n_done, (int64_t)e->bench.n_selected, "item");
    e->seconds = (double)(clock_mono_ns() - start) * 1e-9;
    e->cpu_seconds = cpu_seconds() - cpu_start;
    return sync_items(e, rc, err);
}

static int run(struct eval_session *e, struct err *err)
{
    int rc = evaluation_prepare(e, true, err);
    if (rc != 0 || (rc = items_key_make(e, &e->header, err)) != 0 ||
        (rc = adopt_items(e, err)) != 0 || (rc = check_viability(e, err)) != 0 ||
        (rc = ask_items(e, err)) != 0)
        return rc;
    if (e->n_faults > 0)
        events_note(&e->events, "%zu %s not be asked; items.jsonl names %s", e->n_faults,
                    text_plural((int64_t)e->n_faults, "item could", "items could"),
                    text_plural((int64_t)e->n_faults, "it", "them"));
    if (e->n_cut_items > 0)
        events_note(&e->events, "%zu %s longer than the context; tokens cut off at the left: %.0f",
                    e->n_cut_items, text_plural((int64_t)e->n_cut_items, "item is", "items are"),
                    e->n_cut);
    if ((rc = eval_write_result(e, err)) != 0)
        return rc;
    eval_say_cost(e);
    return events_result(&e->events, err);
}

int eval_run(const struct worker_task *task, struct err *err)
{
    struct eval_session e;
    evaluation_init(&e, task);
    int rc = events_open(&e.events, err);
    if (rc != 0) {
        evaluation_release(&e);
        return rc;
    }
    const struct worker_environment env = model_environment(SCORE_THREADS);
    events_environment(&e.events, &env);
    events_section(&e.events, SECTION_SETUP);
    rc = run(&e, err);
    if (rc == ERR_REFUSED)
        events_note(&e.events, "%s", err->msg);
    events_close(&e.events);
    evaluation_release(&e);
    return rc;
}
