/*
 * Gathers and writes /metrics: counters of this daemon's life, and what is true now. A program has
 * one series for each state and cause that occurs in it, so that a program of a thousand cells
 * costs no more than one of ten.
 */
#include "daemon/http/metrics.h"

#include <string.h>

#include "base/machine/machine.h"
#include "base/xalloc.h"
#include "daemon/answers/answer.h"
#include "daemon/core/explain.h"
#include "daemon/http/data.h"
#include "daemon/http/metrics_text.h"
#include "daemon/http/streams.h"
#include "daemon/shell/attempts.h"
#include "daemon/shell/gpu_watch.h"

#define PROGRAMS_MAX ((size_t)100) /* the newest */

/* ---- programs ---- */

static void write_states(struct strbuf *out, const struct hosted *h)
{
    for (int s = 0; s < TASK_STATE_NR; s++) {
        metrics_value(out, "preregd_tasks",
                      (struct metrics_label[]){{"program", h->id},
                                               {"state", task_state_name((enum task_state)s)},
                                               {NULL, NULL}},
                      (double)h->by_state[s]);
    }
}

static void write_causes(struct strbuf *out, const struct hosted *h)
{
    uint32_t n[CAUSE_NR] = {0};
    for (size_t i = 0; i < h->n_tasks; i++) {
        if (h->tasks[i].state == TASK_BLOCKED || h->tasks[i].state == TASK_NEVER_RUN) {
            n[h->tasks[i].cause]++;
        }
    }
    for (int c = 0; c < CAUSE_NR; c++) {
        if (n[c] > 0) {
            metrics_value(out, "preregd_tasks_failed",
                          (struct metrics_label[]){{"program", h->id},
                                                   {"cause", cause_name((enum cause)c)},
                                                   {NULL, NULL}},
                          n[c]);
        }
    }
}

static void write_program_flag(struct strbuf *out, const char *name, const struct hosted *h,
                               bool value)
{
    metrics_value(out, name, (struct metrics_label[]){{"program", h->id}, {NULL, NULL}}, value);
}

enum program_metric { METRIC_STATES, METRIC_CAUSES, METRIC_PAUSED, METRIC_VERDICT };

/* One metric of every program: the series of one name must be together. */
static void each_program(struct strbuf *out, const struct shell *sh, enum program_metric which)
{
    size_t n = 0;
    for (size_t i = sh->cap_programs; i-- > 0 && n < PROGRAMS_MAX;) {
        const struct hosted *h = shell_served(sh, i);
        if (h == NULL) {
            continue;
        }
        n++;
        switch (which) {
        case METRIC_STATES: write_states(out, h); break;
        case METRIC_CAUSES: write_causes(out, h); break;
        case METRIC_PAUSED:
            write_program_flag(out, "preregd_program_paused", h, h->status.paused != 0);
            break;
        case METRIC_VERDICT:
            write_program_flag(out, "preregd_program_verdict", h, h->status.verdict);
            break;
        }
    }
}

static void write_programs(struct strbuf *out, const struct shell *sh)
{
    metrics_head(out, "preregd_tasks", "gauge", "Tasks of the grid by program and state.");
    each_program(out, sh, METRIC_STATES);
    metrics_head(out, "preregd_tasks_failed", "gauge",
                 "Tasks that are blocked or never ran, by program and cause.");
    each_program(out, sh, METRIC_CAUSES);
    metrics_head(out, "preregd_program_paused", "gauge", "Whether the program is paused.");
    each_program(out, sh, METRIC_PAUSED);
    metrics_head(out, "preregd_program_verdict", "gauge", "Whether the program has its verdict.");
    each_program(out, sh, METRIC_VERDICT);
}

/* ---- the machine ---- */

static void write_pair(struct strbuf *out, const char *name, const char *help, double total,
                       double used)
{
    metrics_head(out, name, "gauge", help);
    metrics_value(out, name, (struct metrics_label[]){{"kind", "total"}, {NULL, NULL}}, total);
    metrics_value(out, name, (struct metrics_label[]){{"kind", "used"}, {NULL, NULL}}, used);
}

/* How long the oldest attempt has waited to run, in Slurm's queue or for its shim. */
static double queue_age_s(const struct shell *sh)
{
    int64_t oldest = 0;
    const int64_t now = clock_wall().ms;
    for (const struct shell_attempt *a = sh->attempts; a != NULL; a = a->next) {
        if (!a->closing && a->row.state == ATTEMPT_STARTING && now - a->row.started.ms > oldest) {
            oldest = now - a->row.started.ms;
        }
    }
    return (double)oldest / 1000;
}

static void write_machine(struct strbuf *out, const struct shell *sh)
{
    const struct gpu_list *gpus = gpu_watch_list(sh);
    double threads = 0;
    double memory = 0;
    double held = 0;
    for (const struct shell_attempt *a = sh->attempts; a != NULL; a = a->next) {
        const bool here = a->row.placement.executor == EXECUTOR_LOCAL && !a->closing;
        threads += here ? a->row.placement.threads : 0;
        memory += here ? (double)a->row.placement.memory_bytes : 0;
        held += here ? (double)a->row.placement.gpu_thousandths / 1000 : 0;
    }
    write_pair(out, "preregd_slots", "Slots of this machine.",
               sh->config.slots > 0 ? sh->config.slots : sh->config.cores,
               core_n_slots_used(sh->core));
    write_pair(out, "preregd_cores", "Cores of this machine, and those given to attempts.",
               sh->config.cores, threads);
    write_pair(out, "preregd_memory_bytes", "Memory for attempts, and what was promised to them.",
               (double)sh->config.memory_bytes, memory);
    write_pair(out, "preregd_gpus", "GPUs of this machine, and those given to attempts.",
               gpus == NULL ? 0 : (double)gpus->n, held);
    metrics_single(out, "preregd_queued_attempts", "gauge", "Attempts that Slurm has.",
                   core_n_queued(sh->core));
    metrics_single(out, "preregd_queue_age_seconds", "gauge",
                   "How long the oldest attempt that does not run yet has waited.",
                   queue_age_s(sh));
    metrics_single(out, "preregd_disk_free_bytes", "gauge",
                   "Free bytes of the state folder's file system.", (double)sh->space.free_bytes);
    metrics_single(out, "preregd_disk_bytes", "gauge",
                   "All bytes of the state folder's file system.", (double)sh->space.total_bytes);
}

/* ---- this daemon ---- */

static void write_daemon(struct strbuf *out, const struct http *h)
{
    const struct shell *sh = h->shell;
    const struct pump_commits *commits = pump_commits(sh->pump);
    metrics_head(out, "preregd_info", "gauge", "Always 1; its version.");
    metrics_value(out, "preregd_info",
                  (struct metrics_label[]){{"version", PREREGD_VERSION}, {NULL, NULL}}, 1);
    metrics_single(out, "preregd_start_time_seconds", "gauge", "When this daemon was started.",
                   (double)sh->started.ms / 1000);
    metrics_single(out, "preregd_programs", "gauge", "Programs that are served.",
                   (double)answer_n_programs(sh));
    metrics_single(out, "preregd_programs_unloaded", "gauge",
                   "Programs of the state folder that are not served.", (double)sh->n_unloaded);
    metrics_single(out, "preregd_attempts_live", "gauge", "Attempts that are alive.",
                   (double)core_n_live(sh->core));
    metrics_single(out, "preregd_attempts_started_total", "counter",
                   "Attempts started by this daemon.", (double)sh->counters.attempts_started);
    metrics_head(out, "preregd_attempts_ended_total", "counter",
                 "Attempts that ended while this daemon served, by reason.");
    for (int r = 0; r < END_REASON_NR; r++) {
        metrics_value(
            out, "preregd_attempts_ended_total",
            (struct metrics_label[]){{"reason", end_reason_name((enum end_reason)r)}, {NULL, NULL}},
            (double)sh->counters.attempts_ended[r]);
    }
    metrics_single(out, "preregd_event_bytes_total", "counter", "Bytes of workers' events read.",
                   (double)sh->counters.event_bytes);
    metrics_histogram(out, "preregd_commit_seconds", "Time of one commit of rows and journals.",
                      commits);
    metrics_single(out, "preregd_page_connections", "gauge", "Connections of the page.",
                   (double)h->n_links);
    metrics_single(out, "preregd_page_streams", "gauge", "Streams of the page.",
                   (double)streams_count(h->streams));
    metrics_single(out, "preregd_page_connections_shed_total", "counter",
                   "Connections shed because there were too many.", (double)h->n_shed);
}

void metrics_serve(struct page_request *r)
{
    struct strbuf *out = &r->reply.body;
    r->reply.type = "text/plain; version=0.0.4; charset=utf-8";
    write_daemon(out, r->http);
    write_machine(out, r->http->shell);
    write_programs(out, r->http->shell);
    r->ready = true;
}
