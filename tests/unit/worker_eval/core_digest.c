#include "tests/unit/worker_eval/core_digest.h"

#include <string.h>

#include "worker/eval/dclm_request.h"
#include "worker/eval/prompt.h"

struct reader {
    struct task_spec *spec;
    struct item_set set;
    struct prompts prompts;
    struct request_text text;
    struct dclm_tokens tokens;
    struct request request;
    struct digest_stream texts;
    struct digest_stream ids;
    struct digest_stream first_ids;
};

static int add_ids(struct reader *r, const struct tokenizer *tok, bool is_first,
                   struct core_digests *out, struct err *err)
{
    const struct request_rules rules = {.tok = tok, .max_length = DCLM_LENGTH_MAX};
    int rc = dclm_request_build(&r->request, &rules, &r->tokens, r->text.preamble.buf,
                                r->text.context.buf, r->text.continuation.buf, err);
    if (rc != 0)
        return rc;
    const uint32_t head[2] = {(uint32_t)r->request.tokens.n, (uint32_t)r->request.first};
    const size_t n_bytes = r->request.tokens.n * sizeof(uint32_t);
    digest_add(&r->ids, head, sizeof(head));
    digest_add(&r->ids, r->request.tokens.ids, n_bytes);
    if (is_first) {
        digest_add(&r->first_ids, head, sizeof(head));
        digest_add(&r->first_ids, r->request.tokens.ids, n_bytes);
    }
    out->cut += r->request.n_cut > 0;
    return 0;
}

static void add_text(struct reader *r, const struct strbuf *text)
{
    digest_add(&r->texts, text->buf, text->len + 1);
}

static int add_items(struct reader *r, const struct tokenizer *tok, bool all_ids,
                     struct core_digests *out, struct err *err)
{
    int rc = 0;
    for (size_t i = 0; i < r->set.n && rc == 0; i++) {
        const bool is_first = i < CORE_DIGEST_FIRST;
        const size_t n = prompt_requests(&r->set.items[i]);
        for (size_t k = 0; k < n && rc == 0; k++) {
            prompt_request(&r->prompts, i, k, &r->text);
            add_text(r, &r->text.preamble);
            add_text(r, &r->text.context);
            add_text(r, &r->text.continuation);
            if (all_ids || is_first)
                rc = add_ids(r, tok, is_first, out, err);
            out->requests++;
        }
        out->items++;
    }
    return rc;
}

static int read_task(struct reader *r, const char *task, const char *folder, struct err *err)
{
    const struct prompt_rules rules = {.shots = -1};
    const struct item_source source = {.path = folder, .split = ""};
    int rc = task_builtin_read(task, &r->spec, err);
    if (rc == 0)
        rc = item_set_read(&r->set, r->spec, &source, err);
    if (rc == 0)
        rc = prompts_init(&r->prompts, &r->set, &r->set, &rules, err);
    return rc;
}

int core_digest(const char *task, const char *folder, const struct tokenizer *tok, bool all_ids,
                struct core_digests *out, struct err *err)
{
    struct reader r = {0};
    memset(out, 0, sizeof(*out));
    item_set_init(&r.set);
    request_text_init(&r.text);
    dclm_tokens_init(&r.tokens);
    digest_start(&r.texts);
    digest_start(&r.ids);
    digest_start(&r.first_ids);
    int rc = read_task(&r, task, folder, err);
    if (rc == 0)
        rc = add_items(&r, tok, all_ids, out, err);
    out->texts = digest_finish(&r.texts);
    if (all_ids)
        out->ids = digest_finish(&r.ids);
    out->first_ids = digest_finish(&r.first_ids);
    request_release(&r.request);
    dclm_tokens_release(&r.tokens);
    request_text_release(&r.text);
    prompts_release(&r.prompts);
    item_set_release(&r.set);
    task_spec_free(r.spec);
    return rc;
}
