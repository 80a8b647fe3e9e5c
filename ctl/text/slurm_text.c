/* Draws the answer of check --slurm: the cluster, each stage, each probe. Names are Slurm's, and
 * are shown as text of strangers. */
#include "ctl/text/check_text.h"

#include <inttypes.h>

#include "base/clock.h"
#include "base/json/json.h"
#include "ctl/ask.h"

static void add_span(struct strbuf *sb, int64_t ms)
{
    char span[48];
    strbuf_adds(sb, clock_span_text(ms, span, sizeof(span)));
}

static bool is_known(const cJSON *o, const char *key)
{
    const cJSON *v = json_member(o, key);
    return v != NULL && !cJSON_IsNull(v);
}

static void add_cluster(struct strbuf *sb, const struct term *t, const cJSON *answer)
{
    strbuf_addc(sb, '\n');
    out_styled(sb, t, STYLE_BOLD, "slurm");
    strbuf_adds(sb, "  cluster ");
    out_line(sb, answer_text(answer, "cluster", "?"));
    strbuf_adds(sb, ", Slurm ");
    out_line(sb, answer_text(answer, "version", "?"));
    strbuf_adds(sb, ", partition ");
    out_line(sb, answer_text(answer, "partition", "?"));
    strbuf_adds(sb, ": ");
    strbuf_add_count(sb, answer_int(answer, "nodes", 0), "node", "nodes");
    strbuf_adds(sb, ", at most ");
    strbuf_add_count(sb, answer_int(answer, "cores", 0), "core", "cores");
    strbuf_addf(sb, ", %.3g GiB, ", (double)answer_int(answer, "memory_bytes", 0) / (1 << 30));
    strbuf_add_count(sb, answer_int(answer, "gpus", 0), "GPU", "GPUs");
    strbuf_addc(sb, '\n');
    strbuf_adds(sb, "  limits: ");
    if (is_known(answer, "time_ms")) {
        strbuf_adds(sb, "a job may take ");
        add_span(sb, answer_int(answer, "time_ms", 0));
    } else {
        strbuf_adds(sb, "no time limit of the partition");
    }
    if (is_known(answer, "max_array")) {
        strbuf_addf(sb, ", arrays of up to %" PRId64, answer_int(answer, "max_array", 0));
    }
    if (is_known(answer, "max_jobs")) {
        strbuf_addf(sb, ", %" PRId64 " jobs of all users", answer_int(answer, "max_jobs", 0));
    }
    if (is_known(answer, "max_submit")) {
        strbuf_addf(sb, ", %" PRId64 " of you", answer_int(answer, "max_submit", 0));
    }
    strbuf_adds(sb, cJSON_IsTrue(json_member(answer, "accounting")) ? "\n" : ", no accounting\n");
}

static void add_stage(struct strbuf *sb, const cJSON *row)
{
    strbuf_adds(sb, "  ");
    out_line(sb, answer_text(row, "stage", "?"));
    strbuf_adds(sb, ": ");
    out_line(sb, answer_text(row, "asks", "?"));
    strbuf_adds(sb, ": Slurm would take it");
    if (is_known(row, "starts_in_ms")) {
        const int64_t ms = answer_int(row, "starts_in_ms", 0);
        strbuf_adds(sb, ms < 2000 ? " and start it now" : " and start it in ");
        if (ms >= 2000) {
            add_span(sb, ms);
        }
        if (is_known(row, "node")) {
            strbuf_adds(sb, " on ");
            out_line(sb, answer_text(row, "node", "?"));
        }
    }
    strbuf_addc(sb, '\n');
}

/* What was seen from the node; a probe without an answer is a warning above the report. */
static void add_probe(struct strbuf *sb, const cJSON *row)
{
    strbuf_adds(sb, "  probe: ");
    if (!is_known(row, "seen_ms")) {
        strbuf_adds(sb,
                    answer_int(row, "waited_ms", 0) > 0 ? "waited in the queue: " : "no answer: ");
        out_line(sb, answer_text(row, "why", "?"));
        strbuf_addc(sb, '\n');
        return;
    }
    out_line(sb, answer_text(row, "host", "?"));
    strbuf_adds(sb, " sees ");
    out_line(sb, answer_text(row, "work", "?"));
    strbuf_adds(sb, "; began after ");
    add_span(sb, answer_int(row, "waited_ms", 0));
    strbuf_adds(sb, ", a file goes there and back in ");
    add_span(sb, answer_int(row, "seen_ms", 0));
    if (is_known(row, "skew_ms")) {
        const double skew = (double)answer_int(row, "skew_ms", 0) / 1000;
        strbuf_addf(sb, ", its clock is %+.2f s off (to within %.2f s)", skew,
                    (double)answer_int(row, "skew_bound_ms", 0) / 1000);
    }
    strbuf_adds(sb, ", prereg-shim ");
    out_line(sb, answer_text(row, "version", "?"));
    strbuf_adds(sb, !is_known(row, "flock") ? ""
                    : cJSON_IsTrue(json_member(row, "flock"))
                        ? ", locks of its files are seen here"
                        : ", locks of its files are not seen here (none is needed)");
    strbuf_addc(sb, '\n');
}

void slurm_text(struct strbuf *sb, const struct term *t, const cJSON *answer)
{
    const cJSON *row;
    add_cluster(sb, t, answer);
    cJSON_ArrayForEach(row, json_member(answer, "stages"))
    {
        add_stage(sb, row);
    }
    cJSON_ArrayForEach(row, json_member(answer, "probes"))
    {
        add_probe(sb, row);
    }
}
