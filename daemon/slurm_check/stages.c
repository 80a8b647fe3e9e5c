/* What each stage asks for, held against the figures of the partitions and then against
 * `sbatch --test-only` (rule 23). A refusal that may only mean that nodes are away now leaves the
 * stage in doubt: probes.c then has sbatch itself decide. */
#include "daemon/slurm_check/asking.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/files/file.h"
#include "base/json/json.h"
#include "base/text.h"
#include "base/xalloc.h"
#include "daemon/executor/slurm/parse.h"

/* Time and figures against the partitions. False: an error was added. */
static bool check_time(const struct slurm_asking *c, size_t stage, const struct cluster_most *most)
{
    const struct plan_stage *s = &c->p->stages[stage];
    const struct place at = asking_place(c, stage, s->run.time_place);
    char span[48];
    char most_span[48];
    if (most->time_ms < 0 || s->run.time_ms <= most->time_ms) {
        return true;
    }
    diag_add(c->diag, DIAG_ERROR, at.line, at.column,
             "run.%s.time: %s, and partition %s allows at most %s (MaxTime)", s->name,
             clock_span_text(s->run.time_ms, span, sizeof(span)), c->partition,
             clock_span_text(most->time_ms, most_span, sizeof(most_span)));
    return false;
}

/* The key that asks for more than any node has; where only all of them together are too much, the
 * first that is set. */
static struct place excess_place(const struct slurm_asking *c, size_t stage,
                                 const struct slurm_request *r, const struct cluster_most *most)
{
    const struct stage_run *run = &c->p->stages[stage].run;
    const struct place at = r->threads > most->cores               ? run->threads_place
                            : r->memory_bytes > most->memory_bytes ? run->memory_place
                            : r->gpus > most->gpus                 ? run->gpus_place
                            : run->memory_place.line > 0           ? run->memory_place
                            : run->gpus_place.line > 0             ? run->gpus_place
                                                                   : run->threads_place;
    return asking_place(c, stage, at);
}

static bool check_figures(const struct slurm_asking *c, size_t stage, const struct slurm_request *r)
{
    struct cluster_most most;
    cluster_most(&c->cluster, c->partition, &most);
    if (!check_time(c, stage, &most)) {
        return false;
    }
    if (most.n_nodes > 0 && !cluster_has_node(&c->cluster, c->partition, r)) {
        const struct place at = excess_place(c, stage, r, &most);
        struct strbuf asks = STRBUF_INIT;
        asking_say_request(r, &asks);
        diag_add(c->diag, DIAG_ERROR, at.line, at.column,
                 "run.%s: an attempt asks for %s on one node, and no node of partition %s has "
                 "that: they have at most %" PRId64 " core%s, %.3g GiB, %" PRId64 " GPU%s",
                 c->p->stages[stage].name, asks.buf, c->partition, most.cores,
                 most.cores == 1 ? "" : "s", (double)most.memory_bytes / ASKING_GIB, most.gpus,
                 most.gpus == 1 ? "" : "s");
        strbuf_release(&asks);
        return false;
    }
    return true;
}

/* "... to start at 1795840601 using 2 processors on nodes n1 in partition main": into the row. */
static void put_start(cJSON *row, const char *said)
{
    const char *start = strstr(said, " to start at ");
    const char *nodes = strstr(said, " on nodes ");
    const char *digits = start != NULL ? start + strlen(" to start at ") : "";
    char *end = NULL;
    errno = 0;
    const long long at = strtoll(digits, &end, 10);
    const bool known =
        errno == 0 && end != digits && *end == ' ' && at > 0 && at < JSON_INT_MAX / 1000;
    if (known) {
        const int64_t in_ms = (int64_t)at * 1000 - clock_wall().ms;
        json_put_int(row, "starts_in_ms", in_ms > 0 ? in_ms : 0);
    } else {
        json_put_null(row, "starts_in_ms");
    }
    char node[128] = "";
    if (nodes != NULL) {
        nodes += strlen(" on nodes ");
        (void)snprintf(node, sizeof(node), "%.*s", (int)strcspn(nodes, " \n"), nodes);
    }
    text_make_line(node);
    json_put_string(row, "node", node[0] != '\0' ? node : NULL);
}

static void put_stage(struct slurm_asking *c, size_t stage, const char *asks, const char *said)
{
    cJSON *row = json_object();
    json_put_string(row, "stage", c->p->stages[stage].name);
    json_put_string(row, "asks", asks);
    put_start(row, said);
    json_push(cJSON_GetObjectItemCaseSensitive(c->answer, "stages"), row);
}

static bool some_are_away(const struct slurm_asking *c, const struct slurm_request *r)
{
    char ignored[8];
    return cluster_count_away(&c->cluster, c->partition, r, ignored, sizeof(ignored)) > 0;
}

/* sbatch --test-only has failed and said `text`. */
static void refuse(struct slurm_asking *c, size_t stage, const char *asks,
                   const struct strbuf *text)
{
    static const char prefix[] = "allocation failure: ";
    const char *name = c->p->stages[stage].name;
    const enum slurm_refusal refusal = slurm_parse_refusal(text->buf, text->len);
    const struct slurm_request request = asking_request(c, stage);
    char why[200];
    slurm_parse_why(text->buf, text->len, why, sizeof(why));
    const struct place at = asking_place_of_refusal(c, stage, why);
    if (refusal == SLURM_REFUSED_FULL) {
        diag_add(c->diag, DIAG_WARNING, at.line, at.column,
                 "run.%s: Slurm takes no such job of you now: %s", name, why);
    } else if (refusal == SLURM_REFUSED_NODES && some_are_away(c, &request)) {
        c->in_doubt[stage] = true;
    } else if (strcmp(why, c->refused) != 0) {
        (void)snprintf(c->refused, sizeof(c->refused), "%s", why);
        diag_add(c->diag, DIAG_ERROR, at.line, at.column,
                 "run.%s: Slurm refuses an attempt with %s in partition %s: %s", name, asks,
                 c->partition,
                 strncmp(why, prefix, sizeof(prefix) - 1) == 0 ? why + sizeof(prefix) - 1
                 : why[0] != '\0'                              ? why
                                                               : "sbatch --test-only failed");
    }
}

/* Rule 23: what no node can satisfy would wait for ever. */
static int test_stage(struct slurm_asking *c, size_t stage, const char *script, struct err *err)
{
    const struct slurm_request request = asking_request(c, stage);
    struct proc_result r = {.out = STRBUF_INIT, .err = STRBUF_INIT};
    struct strbuf asks = STRBUF_INIT;
    if (!check_figures(c, stage, &request)) {
        return 0;
    }
    const struct slurm_submission s = {.script = script, .folder = c->work};
    int rc =
        tools_run(&c->tools, slurm_command_test(&c->arena, &request, &s), TOOLS_SUBMIT_MS, &r, err);
    asking_say_request(&request, &asks);
    if (rc == 0 && r.code != 0) {
        refuse(c, stage, asks.buf, &r.err);
    } else if (rc == 0) {
        put_stage(c, stage, asks.buf, r.err.len > 0 ? r.err.buf : r.out.buf);
    }
    strbuf_release(&asks);
    proc_result_release(&r);
    return rc;
}

int stages_test(struct slurm_asking *c, struct err *err)
{
    static const char script[] = "#!/bin/sh\nexit 0\n"; /* it is never run */
    struct cluster_most most;
    int fd = -1;
    cluster_most(&c->cluster, c->partition, &most);
    json_put_string(c->answer, "partition", c->partition);
    json_put_int(c->answer, "nodes", (int64_t)most.n_nodes);
    asking_put_known(c->answer, "cores", most.cores);
    asking_put_known(c->answer, "memory_bytes", most.memory_bytes);
    asking_put_known(c->answer, "gpus", most.gpus);
    asking_put_known(c->answer, "time_ms", most.time_ms);
    json_put(c->answer, "stages", json_array());
    json_put(c->answer, "probes", json_array());
    int rc = file_in_memory("test", script, sizeof(script) - 1, &fd, err);
    if (rc != 0) {
        return rc;
    }
    char *path = xasprintf("/proc/%d/fd/%d", (int)getpid(), fd);
    for (size_t s = 0; rc == 0 && s < c->p->n_stages; s++) {
        rc = asking_is_of_slurm(c->p, s) ? test_stage(c, s, path, err) : 0;
    }
    free(path);
    (void)close(fd);
    return rc;
}
