/*
 * The header is JSON with one member for each thing that a line depends on: engine, model,
 * tokenizer, task description, parameters, and every file that was read. Members are separate so
 * that items_key_difference() can name what changed when an attempt cannot be continued.
 */
#include "worker/eval/cli/evaluation.h"

#include "base/json/json.h"
#include "base/xalloc.h"
#include "worker/eval/cli/run.h"

static void put_digest(cJSON *obj, const char *key, const struct digest *d)
{
    char hex[DIGEST_HEX_SIZE];
    digest_hex(d, hex);
    json_put_string(obj, key, hex);
}

int items_key_make(const struct eval_session *e, struct strbuf *out, struct err *err)
{
    const struct digest model = model_digest(e->model);
    const struct digest tokenizer = tokenizer_digest(e->tok);
    struct strbuf params = STRBUF_INIT;
    int rc = json_canonical(e->task->params, &params, err);
    const struct digest asked = digest_bytes(params.buf, params.len);
    strbuf_release(&params);
    if (rc != 0)
        return rc;
    cJSON *header = json_object();
    json_put_string(header, "engine", EVAL_ENGINE);
    put_digest(header, "model", &model);
    put_digest(header, "tokenizer", &tokenizer);
    put_digest(header, "task", &e->options.spec->digest);
    put_digest(header, "params", &asked);
    for (size_t i = 0; i < e->n_reads; i++) {
        /* A parameter's own name may be taken: the digest of the weights is not that of the data
         * that hold them. */
        char *key = xasprintf("read_%s", e->reads[i].key);
        put_digest(header, key, &e->reads[i].digest);
        free(key);
    }
    rc = json_line(header, out, err);
    cJSON_Delete(header);
    return rc;
}

void items_key_difference(const struct strbuf *ours, const struct strbuf *theirs,
                          struct strbuf *out)
{
    struct err err = {0};
    cJSON *a = NULL;
    cJSON *b = NULL;
    const cJSON *member = NULL;
    if (json_parse(ours->buf, ours->len, &a, &err) == 0 &&
        json_parse(theirs->buf, theirs->len, &b, &err) == 0) {
        cJSON_ArrayForEach(member, a)
        {
            if (!json_equal(member, json_member(b, member->string)))
                strbuf_addf(out, "%s%s", out->len == 0 ? "" : ", ", member->string);
        }
    }
    cJSON_Delete(a);
    cJSON_Delete(b);
}
