#include "worker/eval/outcome.h"

#include "base/json.h"
#include "worker/eval/gsm8k.h"
#include "worker/eval/pytext.h"

void outcome_init(struct outcome *o)
{
    memset(o, 0, sizeof(*o));
    o->finite = true;
    strbuf_init(&o->text);
    for (int m = 0; m < SPEC_METRICS_MAX; m++)
        strbuf_init(&o->answer[m]);
}

void outcome_clear(struct outcome *o)
{
    o->fault[0] = '\0';
    o->finite = true;
    o->n = 0;
    o->n_cut = 0;
    o->ended = false;
    strbuf_clear(&o->text);
    for (int m = 0; m < SPEC_METRICS_MAX; m++) {
        o->passed[m] = false;
        o->pred[m] = 0;
        strbuf_clear(&o->answer[m]);
    }
}

void outcome_release(struct outcome *o)
{
    strbuf_release(&o->text);
    for (int m = 0; m < SPEC_METRICS_MAX; m++)
        strbuf_release(&o->answer[m]);
}

/* The first of the greatest; divisors NULL: as they are. */
static size_t first_max(const struct outcome *o, const struct item *divide_by)
{
    size_t best = 0;
    double most = 0.0;
    for (size_t i = 0; i < o->n; i++) {
        double v = o->ll[i];
        if (divide_by != NULL)
            v /= (double)pytext_length(divide_by->options[i], strlen(divide_by->options[i]));
        if (i == 0 || v > most) {
            best = i;
            most = v;
        }
    }
    return best;
}

static void judge_metric(struct outcome *o, const struct task_metric *metric, int m,
                         const struct item *it)
{
    switch (metric->kind) {
    case METRIC_ACC:
        o->pred[m] = first_max(o, NULL);
        o->passed[m] = o->pred[m] == it->gold;
        break;
    case METRIC_ACC_NORM:
        o->pred[m] = first_max(o, it);
        o->passed[m] = o->pred[m] == it->gold;
        break;
    case METRIC_EXACT_MATCH:
        if (metric->filter != NULL && strcmp(metric->filter->key, "strict") == 0)
            gsm8k_filter_strict(o->text.buf, &o->answer[m]);
        else
            gsm8k_filter_flexible(o->text.buf, &o->answer[m]);
        o->passed[m] = gsm8k_same(o->answer[m].buf, it->continuation);
        break;
    case METRIC_PERPLEXITY:
    case METRIC_WORD_PERPLEXITY:
    case METRIC_BYTE_PERPLEXITY:
    case METRIC_BITS_PER_BYTE:
    case METRIC_NR: break;
    }
}

void outcome_judge(struct outcome *o, const struct task_spec *spec, const struct item *it)
{
    if (o->fault[0] != '\0' || !o->finite)
        return;
    for (size_t m = 0; m < spec->n_metrics; m++)
        judge_metric(o, &spec->metrics[m], (int)m, it);
}

static void add_choices(const struct outcome *o, const struct task_spec *spec,
                        const struct item *it, struct strbuf *out)
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
    strbuf_addf(out, "],\"cut\":%zu,\"gold\":%zu", o->n_cut, it->gold);
    for (size_t m = 0; m < spec->n_metrics; m++)
        strbuf_addf(out, ",\"pred%s\":%zu", spec->metrics[m].kind == METRIC_ACC_NORM ? "_norm" : "",
                    o->pred[m]);
}

static void add_generation(const struct outcome *o, const struct task_spec *spec,
                           struct strbuf *out)
{
    strbuf_adds(out, ",\"text\":");
    json_add_string(out, o->text.buf);
    strbuf_addf(out, ",\"ended\":%d,\"cut\":%zu", o->ended, o->n_cut);
    for (size_t m = 0; m < spec->n_metrics; m++) {
        strbuf_addf(out, ",\"%s\":", spec->metrics[m].filter->key);
        json_add_string(out, o->answer[m].buf);
    }
}

void outcome_add_line(const struct outcome *o, const struct task_spec *spec, const struct item *it,
                      size_t index, struct strbuf *out)
{
    strbuf_addf(out, "{\"item\":%zu,\"line\":%u", index, it->line);
    if (o->fault[0] != '\0') {
        strbuf_adds(out, ",\"fault\":");
        json_add_string(out, o->fault);
        strbuf_adds(out, "}\n");
        return;
    }
    if (spec->kind == TASK_GENERATE)
        add_generation(o, spec, out);
    else
        add_choices(o, spec, it, out);
    for (size_t m = 0; m < spec->n_metrics; m++)
        strbuf_addf(out, ",\"%s\":%d", spec->metrics[m].name, o->passed[m]);
    strbuf_adds(out, "}\n");
}

static bool read_choices(struct outcome *o, const cJSON *obj, const struct item *it)
{
    const cJSON *ll = json_member(obj, "ll");
    const cJSON *greedy = json_member(obj, "greedy");
    const cJSON *flag = greedy == NULL ? NULL : greedy->child;
    const cJSON *number = NULL;
    if (!cJSON_IsArray(ll))
        return false;
    cJSON_ArrayForEach(number, ll)
    {
        if (!cJSON_IsNumber(number) || !cJSON_IsNumber(flag) || o->n == it->n_options)
            return false;
        o->ll[o->n] = number->valuedouble;
        o->greedy[o->n++] = flag->valuedouble != 0.0;
        flag = flag->next;
    }
    return o->n == it->n_options;
}

static bool read_raw(struct outcome *o, const cJSON *obj, const struct task_spec *spec,
                     const struct item *it)
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
    if (spec->kind != TASK_GENERATE)
        return read_choices(o, obj, it);
    if (json_get_string(obj, "text", &text, &err) != 0 ||
        json_get_int(obj, "ended", 0, 1, &ended, &err) != 0)
        return false;
    strbuf_adds(&o->text, text);
    o->ended = ended != 0;
    return true;
}

bool outcome_read_line(struct outcome *o, const struct task_spec *spec, const struct item *it,
                       size_t index, const char *line, size_t len)
{
    struct err err = {0};
    cJSON *obj = NULL;
    outcome_clear(o);
    if (json_parse(line, len, &obj, &err) != 0)
        return false;
    bool good = read_raw(o, obj, spec, it);
    cJSON_Delete(obj);
    if (!good)
        return false;
    struct strbuf again = STRBUF_INIT;
    outcome_judge(o, spec, it);
    outcome_add_line(o, spec, it, index, &again);
    good = again.len == len + 1 && memcmp(again.buf, line, len) == 0;
    strbuf_release(&again);
    return good;
}
