#include "tests/unit/worker/eval/prompt/core_digest.h"

#include <string.h>

#include "worker/eval/prompt/dclm_request.h"

struct reader {
    const struct core_look *look;
    struct core_digests *out;
    struct task_spec *spec;
    struct item_set set;
    struct prompts prompts;
    struct request_text text;
    struct dclm_tokens tokens;
    struct request request;
    struct digest_stream texts;
    struct digest_stream ids;
    struct digest_stream first_texts;
    struct digest_stream first_ids;
};

static void add(struct digest_stream *all, struct digest_stream *first, const void *data,
                size_t len)
{
    digest_add(all, data, len);
    if (first != NULL)
        digest_add(first, data, len);
}

static void add_texts(struct reader *r, bool is_first)
{
    struct digest_stream *first = is_first ? &r->first_texts : NULL;
    add(&r->texts, first, r->text.preamble.buf, r->text.preamble.len + 1);
    add(&r->texts, first, r->text.context.buf, r->text.context.len + 1);
    add(&r->texts, first, r->text.continuation.buf, r->text.continuation.len + 1);
}

static int add_ids(struct reader *r, bool is_first, struct err *err)
{
    const struct request_rules rules = {.tok = r->look->tok, .max_length = DCLM_LENGTH_MAX};
    struct digest_stream *first = is_first ? &r->first_ids : NULL;
    int rc = dclm_request_build(&r->request, &rules, &r->tokens, &r->text, err);
    if (rc != 0)
        return rc;
    const uint32_t head[2] = {(uint32_t)r->request.tokens.n, (uint32_t)r->request.first};
    add(&r->ids, first, head, sizeof(head));
    add(&r->ids, first, r->request.tokens.ids, r->request.tokens.n * sizeof(uint32_t));
    r->out->cut += r->request.n_cut > 0;
    return 0;
}

static int add_item(struct reader *r, size_t item, struct err *err)
{
    const enum core_depth depth = r->look->depth;
    const bool is_first = item < CORE_DIGEST_FIRST;
    const size_t n = prompt_requests(&r->set.items[item]);
    int rc = 0;
    r->out->items++;
    r->out->requests += n;
    for (size_t k = 0; k < n && rc == 0 && (is_first || depth > CORE_DEPTH_FIRST); k++) {
        prompt_request(&r->prompts, item, k, &r->text);
        add_texts(r, is_first);
        if (is_first || depth == CORE_DEPTH_ALL)
            rc = add_ids(r, is_first, err);
    }
    return rc;
}

static int read_task(struct reader *r, struct err *err)
{
    const struct prompt_rules rules = {.shots = -1};
    const struct item_source source = {.path = r->look->folder, .split = ""};
    int rc = task_builtin_read(r->look->task, &r->spec, err);
    if (rc == 0)
        rc = item_set_read(&r->set, r->spec, &source, err);
    if (rc == 0)
        rc = prompts_init(&r->prompts, &r->set, &r->set, &rules, err);
    return rc;
}

int core_digest(const struct core_look *look, struct core_digests *out, struct err *err)
{
    struct reader r = {.look = look, .out = out};
    memset(out, 0, sizeof(*out));
    item_set_init(&r.set);
    request_text_init(&r.text);
    dclm_tokens_init(&r.tokens);
    digest_start(&r.texts);
    digest_start(&r.ids);
    digest_start(&r.first_texts);
    digest_start(&r.first_ids);
    int rc = read_task(&r, err);
    for (size_t i = 0; i < r.set.n && rc == 0; i++)
        rc = add_item(&r, i, err);
    out->texts = digest_finish(&r.texts);
    out->ids = digest_finish(&r.ids);
    out->first_texts = digest_finish(&r.first_texts);
    out->first_ids = digest_finish(&r.first_ids);
    request_release(&r.request);
    dclm_tokens_release(&r.tokens);
    request_text_release(&r.text);
    prompts_release(&r.prompts);
    item_set_release(&r.set);
    task_spec_free(r.spec);
    return rc;
}
