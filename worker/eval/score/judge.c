/*
 * Applies each metric of an item's task to the raw answer. Regular expressions are compiled once
 * per task and not per item; groups share the task of their spec. Ties go to the first option, as
 * Python's max() and numpy's argmax do. Expressions run under limits (pattern.h); one that gives up
 * makes the item faulty instead of the run.
 */
#include "worker/eval/score/judge.h"

#include <math.h>

#include "base/xalloc.h"
#include "worker/eval/task/pattern.h"
#include "worker/eval/task/pytext.h"

struct judge_task {
    const struct task_spec *spec;
    struct pattern **filters;
    struct pattern **ignores;
};

/* Compiles the task's filters and ignored expressions, named in errors. */
static int compile_filters(struct judge_task *t, struct err *err)
{
    const struct task_spec *spec = t->spec;
    int rc = 0;
    t->filters = xcalloc(spec->n_filters + 1, sizeof(struct pattern *));
    t->ignores = xcalloc(spec->n_ignores + 1, sizeof(struct pattern *));
    for (size_t i = 0; i < spec->n_filters && rc == 0; i++)
        if ((rc = pattern_compile(spec->filters[i].pattern, &t->filters[i], err)) != 0)
            err_wrap(err, "task %s: filter %s", spec->name, spec->filters[i].key);
    for (size_t i = 0; i < spec->n_ignores && rc == 0; i++)
        if ((rc = pattern_compile(spec->ignores[i], &t->ignores[i], err)) != 0)
            err_wrap(err, "task %s: ignores[%zu]", spec->name, i);
    return rc;
}

int judge_init(struct judge *j, const struct item_set *set, const struct second_key *second,
               struct err *err)
{
    *j = (struct judge){.set = set, .second = second};
    j->tasks = xcalloc(set->n_groups, sizeof(*j->tasks));
    j->task_of = xcalloc(set->n_groups, sizeof(*j->task_of));
    for (size_t g = 0; g < set->n_groups; g++) {
        size_t t = 0;
        while (t < j->n_tasks && j->tasks[t].spec != set->groups[g].spec)
            t++;
        j->task_of[g] = t;
        if (t < j->n_tasks)
            continue;
        j->tasks[j->n_tasks++].spec = set->groups[g].spec;
        int rc = compile_filters(&j->tasks[t], err);
        if (rc != 0)
            return rc;
    }
    return 0;
}

static void free_patterns(struct pattern **patterns, size_t n)
{
    for (size_t i = 0; patterns != NULL && i < n; i++)
        pattern_free(patterns[i]);
    free(patterns);
}

void judge_release(struct judge *j)
{
    for (size_t t = 0; t < j->n_tasks; t++) {
        free_patterns(j->tasks[t].filters, j->tasks[t].spec->n_filters);
        free_patterns(j->tasks[t].ignores, j->tasks[t].spec->n_ignores);
    }
    free(j->tasks);
    free(j->task_of);
    *j = (struct judge){0};
}

/* One more than the number of runs of white space, as re.split() counts. */
size_t judge_count_words(const char *text)
{
    const size_t len = strlen(text);
    size_t n = 1;
    for (size_t at = 0; at < len;) {
        const size_t space = pytext_lstrip(text + at, len - at);
        n += space > 0;
        at += space > 0 ? space : 1;
    }
    return n;
}

/* The first of the greatest. divide_by NULL: as they are, else by its options' characters. */
static size_t first_best(const struct item_outcome *o, const struct item *divide_by)
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

/* llm-foundry's choice: the least cross-entropy a token, the first of equals. */
static size_t first_least_surprising(const struct item_outcome *o)
{
    size_t best = 0;
    for (size_t i = 1; i < o->n; i++)
        if (o->ll[i] / (double)o->n_tokens[i] > o->ll[best] / (double)o->n_tokens[best])
            best = i;
    return best;
}

/* What is compared: without what the task ignores. */
static int normalise(const struct judge_task *t, const char *text, struct strbuf *out,
                     struct err *err)
{
    struct strbuf from = STRBUF_INIT;
    int rc = 0;
    strbuf_clear(out);
    strbuf_adds(out, text);
    for (size_t i = 0; i < t->spec->n_ignores && rc == 0; i++) {
        strbuf_clear(&from);
        strbuf_add(&from, out->buf, out->len);
        strbuf_clear(out);
        rc = pattern_delete(t->ignores[i], from.buf, out, err);
    }
    if (rc == 0 && t->spec->ignores_case) {
        strbuf_clear(&from);
        strbuf_add(&from, out->buf, out->len);
        strbuf_clear(out);
        pytext_lower(from.buf, out);
    }
    strbuf_release(&from);
    return rc;
}

/* Equality after both sides lost what the task ignores. */
static int same_answer(const struct judge_task *t, const char *answer, const char *gold, bool *same,
                       struct err *err)
{
    struct strbuf a = STRBUF_INIT;
    struct strbuf b = STRBUF_INIT;
    int rc = normalise(t, answer, &a, err);
    if (rc == 0)
        rc = normalise(t, gold, &b, err);
    *same = rc == 0 && strcmp(a.buf, b.buf) == 0;
    strbuf_release(&a);
    strbuf_release(&b);
    return rc;
}

/* What the metric's filter finds in the text, and whether that is the right answer. */
static int judge_text(const struct judge_task *t, const struct task_filter *filter,
                      const struct item *it, const struct item_outcome *o, struct item_verdict *v,
                      struct err *err)
{
    bool found = true;
    bool same = false;
    int rc = 0;
    if (filter == NULL)
        strbuf_add(&v->answer, o->text.buf, o->text.len);
    else
        rc = pattern_find(t->filters[filter - t->spec->filters], o->text.buf, filter->select,
                          &v->answer, &found, err);
    if (!found)
        strbuf_adds(&v->answer, JUDGE_NO_MATCH);
    if (rc == 0)
        rc = same_answer(t, v->answer.buf, it->continuation, &same, err);
    v->value = same;
    return rc == 0 ? 0 : err_wrap(err, "filter %s", filter == NULL ? "none" : filter->key);
}

/* Fills value, weight and pred of one verdict. */
static int judge_metric(const struct judge_task *t, const struct task_metric *metric,
                        const struct item *it, const struct item_outcome *o, struct item_verdict *v,
                        struct err *err)
{
    v->weight = 1.0;
    switch (metric->kind) {
    case METRIC_ACC:
        v->pred = t->spec->style == STYLE_DCLM ? first_least_surprising(o) : first_best(o, NULL);
        v->value = it->kind == TASK_LIKELIHOOD ? o->greedy[0] : v->pred == it->gold;
        break;
    case METRIC_ACC_NORM:
        v->pred = first_best(o, it);
        v->value = v->pred == it->gold;
        break;
    case METRIC_EXACT_MATCH: return judge_text(t, metric->filter, it, o, v, err);
    case METRIC_PERPLEXITY: v->value = o->ll[0]; break;
    case METRIC_WORD_PERPLEXITY:
        v->value = o->ll[0];
        v->weight = (double)judge_count_words(it->original);
        break;
    case METRIC_BYTE_PERPLEXITY:
    case METRIC_BITS_PER_BYTE:
        v->value = o->ll[0];
        v->weight = (double)strlen(it->original);
        break;
    case METRIC_NR: break;
    }
    return 0;
}

/* A faulty or infinite outcome is not judged. */
void judge_item(const struct judge *j, size_t index, struct item_outcome *o)
{
    const struct item *it = &j->set->items[index];
    const struct judge_task *t = &j->tasks[j->task_of[it->group]];
    struct err err = {0};
    if (o->fault[0] != '\0' || !o->finite)
        return;
    for (size_t m = 0; m < t->spec->n_metrics; m++) {
        struct item_verdict *v = &o->verdicts[m];
        if (judge_metric(t, &t->spec->metrics[m], it, o, v, &err) != 0) {
            (void)snprintf(o->fault, sizeof(o->fault), "%.150s", err.msg);
            return;
        }
        v->second = second_key_has(j->second, index) && second_key_is(j->second, index, v->pred);
    }
}
