/* ACT_VERDICT: computes the verdict off the loop and reports it to the core. The text stays in
 * memory: its digest is journalled first, and act_report.c writes the file once that row is
 * committed. While the journal is still being checked the request is only noted. */
#include "base/log.h"
#include "daemon/shell/verdict_job.h"

static void on_verdict_ready(struct verdict_job *j)
{
    struct hosted *h = j->hosted;
    struct core_event ev = {.program = h->no};
    if (j->rc != 0) {
        log_error("%s: no verdict: %s", h->id, j->err.msg);
        h->verdict_waits = j->refused_by_lock;
        ev.kind = CORE_VERDICT_FAILED;
        ev.text = j->err.msg;
    } else {
        ev.kind = CORE_VERDICT_COMPUTED;
        memcpy(ev.verdict.outcome, j->outcome, sizeof(ev.verdict.outcome));
        ev.verdict.digest = j->digest;
        verdict_job_hand_over(j);
    }
    pump_post(j->shell->pump, &ev);
}

void shell_compute_verdict(struct shell *sh, uint32_t program)
{
    struct hosted *h = shell_program(sh, program);
    if (h->checking) {
        h->verdict_due = true;
        return;
    }
    verdict_job_start(sh, h, on_verdict_ready);
}
