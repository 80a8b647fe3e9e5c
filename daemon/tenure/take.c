/*
 * Reads who serves, gathers the evidence that state/tenure/judge.h asks for, and claims the next
 * number. The heartbeat is watched by this process's own clock, and read once more after a person's
 * answer. Of two successors that come to the same judgement one gets the number, and the other is
 * refused.
 */
#include "daemon/tenure/take.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/xalloc.h"
#include "daemon/shim/pid.h"
#include "daemon/tenure/slurm_job.h"

#define WATCH_PAUSE_MS 500

/* What cannot be read proves nothing: a process of that number counts as the daemon while its start
 * time, or that of the tenure, is not known. One of another user (EPERM) is not: the state folder
 * has one owner. */
static bool process_is_alive(const struct tenure *t)
{
    struct pid_stat s;
    if (!pid_stat_read((pid_t)t->pid, &s)) {
        return kill((pid_t)t->pid, 0) == 0;
    }
    return (t->pid_start == 0 || s.start == t->pid_start) && s.state != 'Z' && s.state != 'X';
}

/* Until it moves, or the time is over. A record that cannot be read says nothing, and counts as
 * time in which it was not watched. *holder becomes the newest that was read. */
static int watch(const char *state, struct tenure *holder, struct tenure_evidence *e,
                 struct err *err)
{
    const int64_t begun = clock_mono().ms;
    const int64_t number = holder->number;
    int64_t blind = 0;
    log_info("watching the heartbeat of another preregd (host %s) for %d s", holder->host,
             TENURE_WATCH_MS / 1000);
    while (!e->moved && !holder->released && e->watched_ms < TENURE_WATCH_MS) {
        struct tenure now;
        struct err ignored;
        bool found = false;
        clock_sleep_ms(WATCH_PAUSE_MS);
        if (tenure_read(state, &now, &found, &ignored) != 0 || !found) {
            blind += WATCH_PAUSE_MS;
            if (blind > TENURE_WATCH_MS) {
                return err_set(err, ERR_IO,
                               "the heartbeat of the preregd of host %.100s cannot be "
                               "read",
                               holder->host);
            }
        } else {
            e->moved = now.number != number || now.sequence > holder->sequence;
            holder->released = now.number == number && now.released;
        }
        e->watched_ms = clock_mono().ms - begun - blind;
    }
    return 0;
}

static bool asks_person(const struct take_request *q, const struct tenure *holder)
{
    char *who = tenure_text(holder);
    char *question =
        xasprintf("The preregd of %s has not answered for %d s. If it is still running after all, "
                  "it stops at its next write. Take over its state folder?",
                  who, TENURE_WATCH_MS / 1000);
    bool yes = q->confirm != NULL && q->confirm(question);
    free(question);
    free(who);
    return yes;
}

/* The question may have waited for hours. */
static int look_again(const char *state, const struct tenure *holder, struct tenure_evidence *e,
                      struct err *err)
{
    struct tenure now;
    bool found = false;
    int rc = tenure_read(state, &now, &found, err);
    e->moved =
        rc == 0 && (!found || now.number != holder->number || now.sequence > holder->sequence);
    return rc;
}

/* Without another proof. ERR_REFUSED: the answer was no. */
static int ask_person(const struct take_request *q, struct tenure_taken *out,
                      struct tenure_evidence *e, struct err *err)
{
    struct err why;
    e->person = true;
    out->proof = tenure_judge(&out->holder, &out->own, e, &why);
    if (out->proof != TENURE_BY_PERSON) {
        *err = why;
        return err->code;
    }
    if (!asks_person(q, &out->holder)) {
        return err_set(err, ERR_REFUSED, "not taken over: it was not confirmed at a terminal");
    }
    int rc = look_again(q->state, &out->holder, e, err);
    if (rc != 0) {
        return rc;
    }
    out->proof = tenure_judge(&out->holder, &out->own, e, err);
    return out->proof == TENURE_NOT_PROVEN ? err->code : 0;
}

static int find_proof(const struct take_request *q, struct tenure_taken *out,
                      struct tenure_evidence *e, struct err *err)
{
    e->process_alive =
        tenure_sees_process(&out->holder, &out->own) && process_is_alive(&out->holder);
    if (tenure_needs_watch(&out->holder, &out->own)) {
        int rc = watch(q->state, &out->holder, e, err);
        if (rc != 0) {
            return rc;
        }
        if (!e->moved && !out->holder.released) {
            slurm_job_ask(&out->holder, e);
        }
    }
    out->proof = tenure_judge(&out->holder, &out->own, e, err);
    if (out->proof != TENURE_NOT_PROVEN) {
        return 0;
    }
    return q->person ? ask_person(q, out, e, err) : err->code;
}

static void tell(struct tenure_taken *out, const struct tenure_evidence *e)
{
    char *from = tenure_text(&out->holder);
    char *to = tenure_text(&out->own);
    char *how = tenure_proof_text(out->proof, e);
    (void)snprintf(out->story, sizeof(out->story), "by the daemon of %s, from that of %s: %s", to,
                   from, how);
    free(how);
    free(to);
    free(from);
}

int tenure_take(const struct take_request *q, struct tenure_taken *out, struct err *err)
{
    struct tenure_evidence e = {0};
    struct pid_stat own;
    *out = (struct tenure_taken){.proof = TENURE_NOT_PROVEN};
    int rc = tenure_read(q->state, &out->holder, &out->had_holder, err);
    if (rc != 0) {
        return rc;
    }
    tenure_init(&out->own);
    if (!pid_stat_read((pid_t)out->own.pid, &own)) {
        return err_set(err, ERR_IO,
                       "/proc/%lld/stat cannot be read: a successor could not tell whether this "
                       "daemon lives",
                       (long long)out->own.pid);
    }
    out->own.pid_start = own.start;
    slurm_job_of_self(&out->own);
    (void)snprintf(out->own.database, sizeof(out->own.database), "%s", q->database);
    if (q->has_database && out->had_holder &&
        strcmp(out->holder.database_id, q->database_id) == 0) {
        (void)snprintf(out->own.database_id, sizeof(out->own.database_id), "%s", q->database_id);
    }
    if (out->had_holder) {
        rc = find_proof(q, out, &e, err);
        if (rc != 0) {
            return rc;
        }
        tell(out, &e);
    }
    out->own.number = out->holder.number + 1;
    rc = tenure_claim(q->state, &out->own, err);
    return rc == ERR_EXISTS ? err_set(err, ERR_BUSY,
                                      "another preregd has taken the state folder %s "
                                      "at this moment",
                                      q->state)
                            : rc;
}
