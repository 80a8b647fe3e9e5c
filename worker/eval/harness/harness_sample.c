/*
 * One line of a samples file, in the harness's order of keys. The three hashes are of the document
 * as indented JSON, of the first request's prompt and of the target; they are chained into the
 * task's hash by the caller's digest stream. Numbers that Python would print through str() are
 * texts here, as they are there.
 */
#include "worker/eval/harness/harness_sample.h"

#include <string.h>

#include "base/json/pyjson.h"
#include "worker/eval/harness/harness_names.h"

static const struct item *item_of(const struct harness_sample *s)
{
    return &s->prompts->set->items[s->item];
}

static const struct task_spec *spec_of(const struct harness_sample *s)
{
    return item_spec(s->prompts->set, s->item);
}

/* The index of the filter's metric. */
static size_t metric_of(const struct harness_sample *s)
{
    const struct task_spec *spec = spec_of(s);
    size_t m = 0;
    while (spec->metrics[m].filter != s->filter)
        m++;
    return m;
}

/* doc_to_target: the index of the right choice, or the text. */
static void add_target(const struct item *it, struct pyjson *w, struct strbuf *text)
{
    if (it->kind != TASK_CHOICE || it->gold_is_text) {
        strbuf_adds(text, it->kind == TASK_CHOICE ? it->options[it->gold] : it->continuation);
        pyjson_string(w, text->buf);
    } else {
        strbuf_addf(text, "%zu", it->gold);
        pyjson_int(w, (int64_t)it->gold);
    }
}

/* The requests as the harness numbers them; the first one's text, which its hash is of, stays in
 * `prompt`. */
static void add_arguments(const struct harness_sample *s, struct pyjson *w, struct strbuf *prompt)
{
    const struct item *it = item_of(s);
    struct request_text text;
    request_text_init(&text);
    pyjson_key(w, "arguments");
    pyjson_open(w, '{');
    for (size_t i = 0; i < prompt_requests(it); i++) {
        char key[32];
        (void)snprintf(key, sizeof(key), "gen_args_%zu", i);
        prompt_request(s->prompts, s->item, i, &text);
        if (it->kind != TASK_ROLLING)
            strbuf_add(&text.preamble, text.context.buf, text.context.len);
        const char *first = it->kind == TASK_ROLLING ? text.continuation.buf : text.preamble.buf;
        if (i == 0)
            strbuf_adds(prompt, first);
        pyjson_key(w, key);
        pyjson_open(w, '{');
        pyjson_key(w, "arg_0");
        pyjson_string(w, first);
        if (it->kind != TASK_ROLLING)
            pyjson_key(w, "arg_1");
        if (it->kind == TASK_GENERATE)
            harness_add_generation(spec_of(s), s->max_tokens, w);
        else if (it->kind != TASK_ROLLING)
            pyjson_string(w, text.continuation.buf);
        pyjson_close(w, '}');
    }
    pyjson_close(w, '}');
    request_text_release(&text);
}

/* The answer to the i-th request, all of it as text: str() of what the harness holds. */
static void add_answer(const struct harness_sample *s, size_t i, struct pyjson *w)
{
    struct strbuf number = STRBUF_INIT;
    const enum task_kind kind = item_of(s)->kind;
    if (kind == TASK_GENERATE) {
        pyjson_string(w, s->outcome->text.buf);
        return;
    }
    pyjson_add_float(&number, s->outcome->ll[i]);
    if (kind != TASK_ROLLING)
        pyjson_open(w, '[');
    pyjson_string(w, number.buf);
    if (kind != TASK_ROLLING) {
        pyjson_string(w, s->outcome->greedy[i] ? "True" : "False");
        pyjson_close(w, ']');
    }
    strbuf_release(&number);
}

/* "resps" as they came, "filtered_resps" after the sample's filter. */
static void add_answers(const struct harness_sample *s, struct pyjson *w)
{
    const size_t n = prompt_requests(item_of(s));
    pyjson_key(w, "resps");
    pyjson_open(w, '[');
    for (size_t i = 0; i < n; i++) {
        pyjson_open(w, '[');
        add_answer(s, i, w);
        pyjson_close(w, ']');
    }
    pyjson_close(w, ']');
    pyjson_key(w, "filtered_resps");
    pyjson_open(w, '[');
    for (size_t i = 0; i < n; i++) {
        if (s->filter != NULL)
            pyjson_string(w, s->outcome->verdicts[metric_of(s)].answer.buf);
        else
            add_answer(s, i, w);
    }
    pyjson_close(w, ']');
}

/* The metric's value for this item: a pair of sum and weight for weighted perplexities. */
static void add_metric(const struct harness_sample *s, size_t m, struct pyjson *w)
{
    const struct item *it = item_of(s);
    const struct item_outcome *o = s->outcome;
    const enum metric_kind kind = spec_of(s)->metrics[m].kind;
    const double value = o->verdicts[m].value;
    pyjson_key(w, metric_kind_name(kind));
    switch (kind) {
    case METRIC_PERPLEXITY: pyjson_float(w, value); break;
    case METRIC_WORD_PERPLEXITY:
    case METRIC_BYTE_PERPLEXITY:
    case METRIC_BITS_PER_BYTE:
        pyjson_open(w, '[');
        pyjson_float(w, value);
        pyjson_int(w, (int64_t)o->verdicts[m].weight);
        pyjson_close(w, ']');
        break;
    case METRIC_ACC:
    case METRIC_ACC_NORM:
    case METRIC_EXACT_MATCH:
        /* The harness keeps an int here and a float there. */
        if (it->kind == TASK_LIKELIHOOD)
            pyjson_int(w, (int64_t)value);
        else
            pyjson_float(w, value);
        break;
    case METRIC_NR: break;
    }
}

/* The metrics of this sample's filter, in the harness's order. */
static void add_metrics(const struct harness_sample *s, struct pyjson *w)
{
    const struct task_spec *spec = spec_of(s);
    for (size_t i = 0; i < METRIC_NR; i++) {
        for (size_t m = 0; m < spec->n_metrics; m++) {
            if (spec->metrics[m].kind == harness_metric_order[i] &&
                spec->metrics[m].filter == s->filter)
                add_metric(s, m, w);
        }
    }
}

/* SHA-256 of a text, also added to the task's hash. */
static void add_hash(struct pyjson *w, const char *key, const struct strbuf *of,
                     struct digest_stream *task)
{
    char hex[DIGEST_HEX_SIZE];
    const struct digest d = digest_bytes(of->buf, of->len);
    digest_hex(&d, hex);
    pyjson_key(w, key);
    pyjson_string(w, hex);
    digest_add(task, hex, DIGEST_HEX_SIZE - 1);
}

int harness_sample_add(const struct harness_sample *s, struct strbuf *out,
                       struct digest_stream *task, struct err *err)
{
    const struct item *it = item_of(s);
    struct strbuf doc = STRBUF_INIT;
    struct strbuf prompt = STRBUF_INIT;
    struct strbuf target = STRBUF_INIT;
    struct pyjson w;
    pyjson_init(&w, &doc, 2);
    int rc = pyjson_text(&w, it->doc, strlen(it->doc), err);
    pyjson_init(&w, out, 0);
    pyjson_open(&w, '{');
    pyjson_key(&w, "doc_id");
    pyjson_int(&w, (int64_t)(s->item - s->prompts->set->groups[it->group].first));
    pyjson_key(&w, "doc");
    if (rc == 0)
        rc = pyjson_text(&w, it->doc, strlen(it->doc), err);
    if (rc == 0) {
        pyjson_key(&w, "target");
        add_target(it, &w, &target);
        add_arguments(s, &w, &prompt);
        add_answers(s, &w);
        add_hash(&w, "doc_hash", &doc, task);
        add_hash(&w, "prompt_hash", &prompt, task);
        add_hash(&w, "target_hash", &target, task);
        add_metrics(s, &w);
        pyjson_close(&w, '}');
        strbuf_addc(out, '\n');
    }
    strbuf_release(&doc);
    strbuf_release(&prompt);
    strbuf_release(&target);
    return rc;
}
