/* The rules by which a daemon counts as gone, in the order in which they are tried. */
#include "state/tenure/judge.h"

#include <assert.h>
#include <string.h>

#include "base/xalloc.h"

static bool is_same_boot(const struct tenure *a, const struct tenure *b)
{
    return strcmp(a->boot_id, b->boot_id) == 0 && strcmp(a->boot_id, "unknown") != 0;
}

bool tenure_sees_process(const struct tenure *holder, const struct tenure *own)
{
    assert(holder != NULL && own != NULL);
    return tenure_is_same_host(holder, own) && is_same_boot(holder, own) &&
           holder->pid_space[0] != '\0' && strcmp(holder->pid_space, own->pid_space) == 0;
}

bool tenure_needs_watch(const struct tenure *holder, const struct tenure *own)
{
    assert(holder != NULL && own != NULL);
    return !holder->released && !tenure_sees_process(holder, own);
}

/* A host's name alone does not identify a machine: without its id nothing is concluded. */
static bool is_rebooted(const struct tenure *holder, const struct tenure *own)
{
    return tenure_is_same_host(holder, own) && holder->machine[0] != '\0' &&
           strcmp(holder->boot_id, own->boot_id) != 0 && strcmp(holder->boot_id, "unknown") != 0 &&
           strcmp(own->boot_id, "unknown") != 0;
}

static void say_held(const struct tenure *holder, struct err *why, const char *rest)
{
    char *who = tenure_text(holder);
    (void)err_set(why, ERR_BUSY, "another preregd serves this state folder (%.120s): %s", who,
                  rest);
    free(who);
}

/* Without a proof: what is known, and what a person may do. */
static void say_unproven(const struct tenure *holder, const struct tenure_evidence *e,
                         struct err *why)
{
    char *rest =
        xasprintf("its heartbeat has not advanced for %lld s%s%s; if it is gone for certain, "
                  "`preregd serve --take-over`",
                  (long long)(e->watched_ms / 1000), e->job_state[0] == '\0' ? "" : ", its job is ",
                  e->job_state);
    say_held(holder, why, rest);
    free(rest);
}

enum tenure_proof tenure_judge(const struct tenure *holder, const struct tenure *own,
                               const struct tenure_evidence *e, struct err *why)
{
    assert(holder != NULL && own != NULL && e != NULL && why != NULL);
    err_clear(why);
    /* 1. It stopped by itself. */
    if (holder->released) {
        return TENURE_RELEASED;
    }
    /* 2. Its process can be seen from here: it decides alone. */
    if (tenure_sees_process(holder, own)) {
        if (!e->process_alive) {
            return TENURE_PROCESS_GONE;
        }
        say_held(holder, why,
                 "its process is running on this host; end it first (`preregctl stop`)");
        return TENURE_NOT_PROVEN;
    }
    /* 3. A heartbeat that advances is proof of life, whatever the other evidence. */
    if (e->moved) {
        say_held(holder, why, "its heartbeat is still advancing");
        return TENURE_NOT_PROVEN;
    }
    /* 4. Not watched long enough: nothing is concluded. */
    if (e->watched_ms < TENURE_WATCH_MS) {
        say_held(holder, why, "it has not been watched for long enough");
        return TENURE_NOT_PROVEN;
    }
    /* 5. Its host was started again since. */
    if (is_rebooted(holder, own)) {
        return TENURE_REBOOTED;
    }
    /* 6. Its job has ended, and with it every process of the job. */
    if (holder->job[0] != '\0' && e->job == TENURE_JOB_IS_OVER) {
        return TENURE_JOB_ENDED;
    }
    /* 7. A person answers for it. */
    if (e->person) {
        return TENURE_BY_PERSON;
    }
    say_unproven(holder, e, why);
    return TENURE_NOT_PROVEN;
}

char *tenure_proof_text(enum tenure_proof proof, const struct tenure_evidence *e)
{
    assert(e != NULL);
    switch (proof) {
    case TENURE_RELEASED: return xstrdup("it had stopped");
    case TENURE_PROCESS_GONE: return xstrdup("its process had ended");
    case TENURE_REBOOTED: return xstrdup("its host had been started again");
    case TENURE_JOB_ENDED: return xasprintf("its Slurm job had ended (%s)", e->job_state);
    case TENURE_BY_PERSON:
        return xasprintf(
            "a person said so (--take-over), its heartbeat had not advanced for %lld s",
            (long long)(e->watched_ms / 1000));
    case TENURE_NOT_PROVEN: break;
    }
    return xstrdup("not proven");
}
