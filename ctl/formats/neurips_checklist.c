/* neurips-checklist: a section in Markdown with what a receipt knows for the questions of the
 * NeurIPS paper checklist: claims, limitations, reproducibility, data, settings, significance,
 * compute. The answers themselves are the authors'; questions that a receipt knows nothing of are
 * named and left open. */
#include <stdlib.h>
#include <string.h>

#include "base/json/json.h"
#include "base/xalloc.h"
#include "ctl/formats/writers.h"
#include "truthtable/report/document/escape.h"

/* A literal text, then one from outside. */
static void add_pair(struct strbuf *sb, const char *literal, const char *text)
{
    strbuf_adds(sb, literal);
    escape_md(sb, text);
}

static const char *text_or(const cJSON *o, const char *key, const char *otherwise)
{
    const cJSON *m = json_member(o, key);
    return cJSON_IsString(m) ? m->valuestring : otherwise;
}

static double number_or(const cJSON *o, const char *key, double otherwise)
{
    const cJSON *m = json_member(o, key);
    return cJSON_IsNumber(m) ? m->valuedouble : otherwise;
}

static void add_texts(struct strbuf *sb, const char *what, const struct plan_texts *texts)
{
    for (size_t i = 0; i < texts->n; i++) {
        strbuf_addf(sb, "- %s: ", what);
        escape_md(sb, texts->items[i]);
        strbuf_addc(sb, '\n');
    }
}

static void add_claims(struct strbuf *sb, const struct receipt_source *s)
{
    const struct plan_program *p = s->program;
    strbuf_adds(sb, "\n## 1. Claims\n\nThe question, as it was locked before the data: ");
    escape_md(sb, p->question != NULL ? p->question : "(none stated)");
    add_pair(sb, "\n\nThe outcome that the locked table gives: **",
             text_or(s->verdict, "outcome", text_or(s->verdict, "kind", "none")));
    add_pair(sb, "**. ", text_or(s->verdict, "title", text_or(s->verdict, "why", "")));
    strbuf_adds(sb, "\n\n");
    add_texts(sb, "claimed in advance", &p->scope.claims);
    strbuf_adds(sb, "\n## 2. Limitations\n\n");
    add_texts(sb, "not claimed", &p->scope.not_claimed);
    for (size_t i = 0; i < p->scope.n_confounds; i++) {
        add_pair(sb, "- a declared confound: ", p->scope.confounds[i].text);
        strbuf_addc(sb, '\n');
    }
    if (!p->scope.declared) {
        strbuf_adds(sb, "The plan declares no scope.\n");
    }
}

static void add_reproducibility(struct strbuf *sb, const struct receipt_source *s)
{
    const struct plan_program *p = s->program;
    add_pair(sb,
             "\n## 4. Experimental result reproducibility\n\nThe plan, every value that can "
             "influence the answer, is locked under the root ",
             s->lock->root);
    strbuf_adds(sb,
                ". Its receipt holds plan, records and verdict; `preregctl verify` computes the "
                "verdict again from the records");
    strbuf_adds(sb, s->imported ? ". The records were imported: nothing was executed here.\n"
                                : ", `preregctl rerun` trains and scores a cell again.\n");
    strbuf_adds(sb, "\n## 5. Open access to data and code\n\nData and workers by their locked "
                    "digests; whether they are public is not in the receipt.\n\n");
    for (size_t i = 0; i < p->n_data; i++) {
        const char *digest = lock_data_digest(s->lock, p->data[i].name);
        add_pair(sb, "- ", p->data[i].name);
        strbuf_addf(sb, ": `%s`\n", digest != NULL ? digest : "not pinned");
    }
}

static void add_settings(struct strbuf *sb, const struct receipt_source *s)
{
    const struct plan_program *p = s->program;
    strbuf_addf(sb, "\n## 6. Experimental setting and details\n\n%zu cells:\n\n", p->n_cells);
    for (size_t i = 0; i < p->n_factors; i++) {
        add_pair(sb, "- ", p->factors[i].name);
        strbuf_adds(sb, p->factors[i].replicate ? " (replicates):" : ":");
        for (size_t k = 0; k < p->factors[i].n_levels; k++) {
            add_pair(sb, k == 0 ? " " : ", ", p->factors[i].levels[k].text);
        }
        strbuf_addc(sb, '\n');
    }
    strbuf_adds(sb, "\nStages, with their locked parameters:\n\n");
    for (size_t i = 0; i < p->n_stages; i++) {
        struct strbuf json = STRBUF_INIT;
        struct err ignored;
        (void)!json_line(p->stages[i].params, &json, &ignored);
        add_pair(sb, "- ", p->stages[i].name);
        add_pair(sb, ", ", p->stages[i].command[0]);
        add_pair(sb, ": ", json.buf);
        strbuf_addc(sb, '\n');
        strbuf_release(&json);
    }
}

/* A number, or "unknown": of a text of JSON. */
static void add_cell_number(struct strbuf *sb, const cJSON *o, const char *key)
{
    const cJSON *m = json_member(o, key);
    if (cJSON_IsNumber(m)) {
        strbuf_addf(sb, " %.6g |", m->valuedouble);
    } else {
        strbuf_adds(sb, " unknown |");
    }
}

static void add_significance(struct strbuf *sb, const struct receipt_source *s)
{
    const cJSON *contrast = NULL;
    strbuf_adds(sb,
                "\n## 7. Experiment statistical significance\n\n"
                "Mean differences over pairs of cells that differ in the one factor alone. `se` "
                "is the standard error over the n replicates, and the interval of 95 % a t "
                "interval over them. The item error is from sampling the items alone.\n\n"
                "| contrast | measure | n | mean | se | low | high | item error |\n"
                "|---|---|---|---|---|---|---|---|\n");
    cJSON_ArrayForEach(contrast, json_member(s->verdict, "contrasts"))
    {
        const cJSON *m = NULL;
        cJSON_ArrayForEach(m, json_member(contrast, "measures"))
        {
            static const char *const keys[] = {"n", "mean", "se", "ci_low", "ci_high", "item_se"};
            add_pair(sb, "| ", text_or(contrast, "name", "?"));
            add_pair(sb, " | ", text_or(m, "measure", "?"));
            strbuf_adds(sb, " |");
            for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
                add_cell_number(sb, m, keys[i]);
            }
            strbuf_addc(sb, '\n');
        }
    }
}

/* Over all attempts, lost ones included. */
struct compute {
    size_t n_attempts;
    size_t n_lost;
    double cpu_ms;
    double wall_ms;
    double rss_bytes;
    cJSON *machines; /* "CPU, KERNEL" -> true */
};

static void add_attempt(struct compute *c, const cJSON *a)
{
    struct wall_time started = {0};
    struct wall_time ended = {0};
    char *machine = xasprintf("%s, %s", text_or(a, "cpu", "unknown processor"),
                              text_or(a, "kernel", "unknown kernel"));
    if (clock_wall_parse(text_or(a, "started", ""), &started) &&
        clock_wall_parse(text_or(a, "ended", ""), &ended) && ended.ms > started.ms) {
        c->wall_ms += (double)(ended.ms - started.ms);
    }
    c->n_attempts++;
    c->n_lost += cJSON_IsString(json_member(a, "cause")) ? 1 : 0;
    c->cpu_ms += number_or(a, "user_ms", 0) + number_or(a, "system_ms", 0);
    c->rss_bytes = number_or(a, "max_rss_bytes", 0) > c->rss_bytes
                       ? number_or(a, "max_rss_bytes", 0)
                       : c->rss_bytes;
    if (json_member(c->machines, machine) == NULL) {
        json_put_bool(c->machines, machine, true);
    }
    free(machine);
}

static void add_compute(struct strbuf *sb, const struct receipt_source *s)
{
    struct compute c = {.machines = json_object()};
    const cJSON *task = NULL;
    const cJSON *one = NULL;
    cJSON_ArrayForEach(task, json_member(s->provenance, "tasks"))
    {
        cJSON_ArrayForEach(one, json_member(task, "attempts"))
        {
            add_attempt(&c, one);
        }
    }
    strbuf_adds(sb, "\n## 8. Experiments compute resources\n\n");
    if (c.n_attempts == 0) {
        strbuf_adds(sb, "Not known: the records were imported.\n");
    } else {
        strbuf_addf(sb,
                    "%zu attempts, %zu of which ended without a result. In all %.4g hours of "
                    "processor time and %.4g hours of wall time, summed over attempts; at most "
                    "%.4g MiB of memory in one. GPU time is not recorded.\n\n",
                    c.n_attempts, c.n_lost, c.cpu_ms / 3.6e6, c.wall_ms / 3.6e6,
                    c.rss_bytes / 1048576);
    }
    cJSON_ArrayForEach(one, c.machines)
    {
        add_pair(sb, "- ", one->string);
        strbuf_addc(sb, '\n');
    }
    cJSON_Delete(c.machines);
}

int write_neurips_checklist(const struct receipt_source *s, const struct format_output *out,
                            struct err *err)
{
    struct strbuf sb = STRBUF_INIT;
    add_pair(&sb, "# NeurIPS paper checklist: what the receipt of ", s->id);
    strbuf_adds(&sb, " knows\n\nYes, No and NA are for the authors to answer; this is what a "
                     "justification can rest on.\n");
    add_claims(&sb, s);
    add_reproducibility(&sb, s);
    add_settings(&sb, s);
    add_significance(&sb, s);
    add_compute(&sb, s);
    strbuf_adds(&sb, "\n## Not answered here\n\nA receipt knows nothing of: 3 theory and proofs, "
                     "9 code of ethics, 10 broader impacts, 11 safeguards, 12 licenses, 13 new "
                     "assets, 14 and 15 human subjects, 16 use of language models.\n");
    format_note(out, "questions 3 and 9 to 16 are left open, and every Yes, No or NA");
    int rc = format_put(out, "neurips_checklist.md", &sb, err);
    strbuf_release(&sb);
    return rc;
}
