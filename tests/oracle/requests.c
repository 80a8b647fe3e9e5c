#include "tests/oracle/requests.h"

#include <string.h>

#include "worker/report/params.h"

int asker_open(struct asker *a, cJSON *task, const struct tokenizer *tok, size_t context,
               struct err *err)
{
    struct param_faults faults = {0};
    memset(a, 0, sizeof(*a));
    request_text_init(&a->text);
    int rc = task_from_json(task, &a->task, err);
    if (rc != 0)
        return rc;
    eval_options_read(&a->task, &a->options, &faults);
    rc = param_faults_result(&faults, err);
    param_faults_release(&faults);
    if (rc == 0)
        rc = benchmark_load(&a->bench, &a->options, err);
    if (rc == 0)
        rc = judge_init(&a->judge, &a->bench.set, NULL, err);
    if (rc != 0)
        return rc;
    a->lm = (struct lm){.tok = tok, .context = context};
    if (a->options.context > 0)
        a->lm.context = (size_t)a->options.context;
    const struct scorer_setup setup = {.prompts = &a->bench.prompts,
                                       .judge = &a->judge,
                                       .lm = &a->lm,
                                       .rules = {.tok = tok,
                                                 .max_length = a->lm.context,
                                                 .add_bos = a->options.add_bos,
                                                 .one_bos = a->options.rules->one_bos},
                                       .max_tokens = (size_t)a->options.max_tokens};
    return scorer_init(&a->scorer, &setup, err);
}

void asker_release(struct asker *a)
{
    scorer_release(&a->scorer);
    judge_release(&a->judge);
    benchmark_release(&a->bench);
    eval_options_release(&a->options);
    task_release(&a->task);
    request_list_release(&a->list);
    request_text_release(&a->text);
}

static int walk_item(struct asker *a, size_t item, void (*each)(void *, const struct asked *),
                     void *self, struct err *err)
{
    const struct item_set *set = &a->bench.set;
    char fault[FAULT_MAX];
    a->list.n = 0;
    int rc = scorer_build(&a->scorer, item, &a->list, fault, err);
    if (rc == 0 && fault[0] != '\0')
        rc = err_set(err, ERR_INVALID, "item %zu: %s", item, fault);
    const bool rolling = set->items[item].kind == TASK_ROLLING;
    for (size_t k = 0; rc == 0 && k < prompt_requests(&set->items[item]); k++) {
        prompt_request(&a->bench.prompts, item, k, &a->text);
        strbuf_add(&a->text.preamble, a->text.context.buf, a->text.context.len);
        const struct asked one = {.item = item,
                                  .option = k,
                                  .group = set->groups[set->items[item].group].name,
                                  .context = a->text.preamble.buf,
                                  .continuation = a->text.continuation.buf,
                                  .requests = a->list.items + (rolling ? 0 : k),
                                  .n = rolling ? a->list.n : 1};
        each(self, &one);
    }
    return rc;
}

int asker_walk(struct asker *a, void (*each)(void *self, const struct asked *one), void *self,
               struct err *err)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < a->bench.n_selected; i++)
        rc = walk_item(a, a->bench.selected[i], each, self, err);
    return rc;
}

static void add_number(struct digest_stream *s, size_t value)
{
    const unsigned char bytes[4] = {(unsigned char)value, (unsigned char)(value >> 8),
                                    (unsigned char)(value >> 16), (unsigned char)(value >> 24)};
    digest_add(s, bytes, sizeof(bytes));
}

void asked_digest(void *stream, const struct asked *one)
{
    struct digest_stream *s = stream;
    digest_add(s, one->context, strlen(one->context) + 1);
    digest_add(s, one->continuation, strlen(one->continuation) + 1);
    for (size_t r = 0; r < one->n; r++) {
        const struct request *q = &one->requests[r];
        add_number(s, q->tokens.n);
        add_number(s, q->first);
        add_number(s, q->n_cut);
        for (size_t i = 0; i < q->tokens.n; i++)
            add_number(s, q->tokens.ids[i]);
    }
}
