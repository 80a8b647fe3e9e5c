/*
 * A line holds the raw answer and the verdicts that follow from it. Reading one back parses the raw
 * part only, judges it again, writes the line again and compares bytes: a line from another
 * version, or one that was edited, cannot pass. JSON is written by hand because the lines are many
 * and their shape is fixed.
 */
#include "worker/eval/score/outcome.h"

#include <string.h>

#include "base/json/json.h"
#include "worker/eval/score/judge.h"

void outcome_init(struct item_outcome *o)
{
    memset(o, 0, sizeof(*o));
    o->finite = true;
    strbuf_init(&o->text);
    for (size_t m = 0; m < SPEC_METRICS_MAX; m++)
        strbuf_init(&o->verdicts[m].answer);
}

void outcome_clear(struct item_outcome *o)
{
    o->fault[0] = '\0';
    o->finite = true;
    o->n = 0;
    o->n_cut = 0;
    o->ended = false;
    strbuf_clear(&o->text);
    for (size_t m = 0; m < SPEC_METRICS_MAX; m++) {
        struct item_verdict *v = &o->verdicts[m];
        v->value = 0.0;
        v->weight = 1.0;
        v->pred = 0;
        v->second = false;
        strbuf_clear(&v->answer);
    }
}

void outcome_release(struct item_outcome *o)
{
    strbuf_release(&o->text);
    for (size_t m = 0; m < SPEC_METRICS_MAX; m++)
        strbuf_release(&o->verdicts[m].answer);
}

/* How many log-likelihoods an item has. */
static size_t n_scores(const struct item *it)
{
    return it->kind == TASK_CHOICE || it->kind == TASK_CONTEXT ? it->n_options : 1;
}

/* Of every option: log-likelihood, greedy, number of tokens. */
static void add_scores(const struct item_outcome *o, struct strbuf *out)
{
    strbuf_adds(out, ",\"ll\":[");
    for (size_t i = 0; i < o->n; i++) {
        char number[JSON_NUMBER_MAX];
        json_number_text(o->ll[i], number);
        strbuf_addf(out, "%s%s", i == 0 ? "" : ",", number);
    }
    strbuf_adds(out, "],\"greedy\":[");
    for (size_t i = 0; i < o->n; i++)
        strbuf_addf(out, "%s%d", i == 0 ? "" : ",", o->greedy[i]);
    strbuf_adds(out, "],\"tokens\":[");
    for (size_t i = 0; i < o->n; i++)
        strbuf_addf(out, "%s%zu", i == 0 ? "" : ",", o->n_tokens[i]);
    strbuf_addf(out, "],\"cut\":%zu", o->n_cut);
}

/* The text, how it ended, and what each filter found in it. */
static void add_generation(const struct item_outcome *o, const struct task_spec *spec,
                           struct strbuf *out)
{
    strbuf_adds(out, ",\"text\":");
    json_add_string(out, o->text.buf);
    strbuf_addf(out, ",\"ended\":%d,\"cut\":%zu", o->ended, o->n_cut);
    for (size_t m = 0; m < spec->n_metrics; m++) {
        if (spec->metrics[m].filter == NULL)
            continue;
        strbuf_addf(out, ",\"%s\":", spec->metrics[m].filter->key);
        json_add_string(out, o->verdicts[m].answer.buf);
    }
}

/* The right option and the ones that the metrics chose. */
static void add_choice(const struct item_outcome *o, const struct task_spec *spec,
                       const struct item *it, struct strbuf *out)
{
    strbuf_addf(out, ",\"gold\":%zu", it->gold);
    for (size_t m = 0; m < spec->n_metrics; m++) {
        const enum metric_kind kind = spec->metrics[m].kind;
        if (kind == METRIC_ACC || kind == METRIC_ACC_NORM)
            strbuf_addf(out, ",\"pred%s\":%zu", kind == METRIC_ACC ? "" : "_norm",
                        o->verdicts[m].pred);
    }
}

/* Of a perplexity the line has the log-likelihood already, and what it is divided by. */
static void add_verdict(const struct item_verdict *v, const struct task_metric *metric,
                        struct strbuf *out)
{
    switch (metric->kind) {
    case METRIC_ACC:
    case METRIC_ACC_NORM:
    case METRIC_EXACT_MATCH: strbuf_addf(out, ",\"%s\":%d", metric->name, v->value != 0.0); break;
    case METRIC_WORD_PERPLEXITY: strbuf_addf(out, ",\"words\":%.0f", v->weight); break;
    case METRIC_BYTE_PERPLEXITY: strbuf_addf(out, ",\"bytes\":%.0f", v->weight); break;
    case METRIC_BITS_PER_BYTE:
    case METRIC_PERPLEXITY:
    case METRIC_NR: break;
    }
}

void outcome_add_line(const struct item_outcome *o, const struct judge *j, size_t index,
                      struct strbuf *out)
{
    const struct item *it = &j->set->items[index];
    const struct task_spec *spec = item_spec(j->set, index);
    const char *group = j->set->groups[it->group].name;
    strbuf_addf(out, "{\"item\":%zu,\"line\":%u", index, it->line);
    if (group[0] != '\0') {
        strbuf_adds(out, ",\"group\":");
        json_add_string(out, group);
    }
    if (o->fault[0] != '\0') {
        strbuf_adds(out, ",\"fault\":");
        json_add_string(out, o->fault);
        strbuf_adds(out, "}\n");
        return;
    }
    if (it->kind == TASK_GENERATE)
        add_generation(o, spec, out);
    else
        add_scores(o, out);
    if (it->kind == TASK_CHOICE || it->kind == TASK_CONTEXT)
        add_choice(o, spec, it, out);
    for (size_t m = 0; m < spec->n_metrics; m++)
        add_verdict(&o->verdicts[m], &spec->metrics[m], out);
    for (size_t m = 0; m < spec->n_metrics && second_key_has(j->second, index); m++)
        strbuf_addf(out, ",\"%s@%s\":%d", spec->metrics[m].name, j->second->name,
                    o->verdicts[m].second);
    strbuf_adds(out, "}\n");
}

/* Three lists of the same length, one entry for each option. */
static bool read_scores(struct item_outcome *o, const cJSON *obj, const struct item *it)
{
    const cJSON *ll = json_member(obj, "ll");
    const cJSON *greedy = json_member(obj, "greedy");
    const cJSON *tokens = json_member(obj, "tokens");
    const cJSON *flag = greedy == NULL ? NULL : greedy->child;
    const cJSON *count = tokens == NULL ? NULL : tokens->child;
    const cJSON *number = NULL;
    if (!cJSON_IsArray(ll))
        return false;
    cJSON_ArrayForEach(number, ll)
    {
        if (!cJSON_IsNumber(number) || !cJSON_IsNumber(flag) || !cJSON_IsNumber(count) ||
            count->valuedouble < 0.0 || count->valuedouble > (double)JSON_INT_MAX ||
            o->n == n_scores(it))
            return false;
        o->ll[o->n] = number->valuedouble;
        o->n_tokens[o->n] = (size_t)count->valuedouble;
        o->greedy[o->n++] = flag->valuedouble != 0.0;
        flag = flag->next;
        count = count->next;
    }
    return o->n == n_scores(it);
}

/* The inverse of add_scores() and add_generation(), without the verdicts. */
static bool read_raw(struct item_outcome *o, const cJSON *obj, const struct item *it)
{
    struct err err = {0};
    const char *text = NULL;
    int64_t cut = 0;
    int64_t ended = 0;
    if (json_opt_string(obj, "fault", &text, &err) != 0)
        return false;
    if (text != NULL) {
        (void)snprintf(o->fault, sizeof(o->fault), "%s", text);
        return true;
    }
    if (json_get_int(obj, "cut", 0, JSON_INT_MAX, &cut, &err) != 0)
        return false;
    o->n_cut = (size_t)cut;
    if (it->kind != TASK_GENERATE)
        return read_scores(o, obj, it);
    if (json_get_string(obj, "text", &text, &err) != 0 ||
        json_get_int(obj, "ended", 0, 1, &ended, &err) != 0)
        return false;
    strbuf_adds(&o->text, text);
    o->ended = ended != 0;
    return true;
}

bool outcome_read_line(struct item_outcome *o, const struct judge *j, size_t index,
                       const char *line, size_t len)
{
    struct err err = {0};
    cJSON *obj = NULL;
    outcome_clear(o);
    if (json_parse(line, len, &obj, &err) != 0)
        return false;
    bool good = read_raw(o, obj, &j->set->items[index]);
    cJSON_Delete(obj);
    if (!good)
        return false;
    struct strbuf again = STRBUF_INIT;
    judge_item(j, index, o);
    outcome_add_line(o, j, index, &again);
    good = again.len == len + 1 && memcmp(again.buf, line, len) == 0;
    strbuf_release(&again);
    return good;
}
