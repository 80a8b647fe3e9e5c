/*
 * prereg-eval show: prints what is sent to the model about an item, as text and as tokens. Requests
 * are built by the scorer itself, so what is shown is what a run sends. Tokens that a request
 * shares with the one before are not repeated.
 */
#include "worker/eval/cli/item_printer.h"

#include "base/json/json.h"
#include "base/text.h"
#include "base/xalloc.h"

/* A token's text in quotes; its bytes in hexadecimal where they are not whole characters. */
static void add_piece(const struct strbuf *piece, struct strbuf *out)
{
    if (text_is_utf8(piece->buf, piece->len) && memchr(piece->buf, '\0', piece->len) == NULL) {
        json_add_string(out, piece->buf);
        return;
    }
    for (size_t i = 0; i < piece->len; i++)
        strbuf_addf(out, "\\x%02x", (unsigned)(unsigned char)piece->buf[i]);
}

static void add_tokens(const struct request *r, const struct tokenizer *tok, size_t from,
                       struct strbuf *out)
{
    struct strbuf piece = STRBUF_INIT;
    struct err err = {0};
    for (size_t i = from; i < r->tokens.n; i++) {
        strbuf_clear(&piece);
        if (tokenizer_decode(tok, &r->tokens.ids[i], 1, &piece, &err) != 0)
            strbuf_clear(&piece);
        strbuf_addf(out, "%s%7u ", i == r->first ? "  -- scored from here\n" : "",
                    r->tokens.ids[i]);
        add_piece(&piece, out);
        strbuf_addc(out, '\n');
    }
    strbuf_release(&piece);
}

/* How many tokens two requests begin with in common, at most up to what is scored. */
static size_t in_common(const struct request *a, const struct request *b)
{
    size_t n = 0;
    while (n < a->first && n < b->first && a->tokens.ids[n] == b->tokens.ids[n])
        n++;
    return n;
}

/* Tokens of every request, with a mark where scoring begins. */
static void add_requests(const struct item_printer *s, struct strbuf *out)
{
    for (size_t i = 0; i < s->requests.n; i++) {
        const struct request *r = &s->requests.items[i];
        const size_t known = i == 0 ? 0 : in_common(&s->requests.items[i - 1], r);
        strbuf_addf(out, "==== request %zu: %zu tokens", i, r->tokens.n);
        if (r->first < r->tokens.n)
            strbuf_addf(out, ", scored from token %zu", r->first);
        if (r->n_cut > 0)
            strbuf_addf(out, ", %zu cut off at the left", r->n_cut);
        strbuf_adds(out, "\n");
        if (known > 0)
            strbuf_addf(out, "        the first %zu as in the request before\n", known);
        add_tokens(r, s->tok, known, out);
    }
}

static void add_head(const struct item_printer *s, size_t index, struct strbuf *out)
{
    const struct item *it = &s->bench->set.items[index];
    const struct item_group *group = &s->bench->set.groups[it->group];
    strbuf_addf(out, "%s, version %s: item %zu of %zu, line %u\n", group->spec->name,
                group->spec->version, index, s->bench->set.n, it->line);
    if (group->name[0] != '\0')
        strbuf_addf(out, "group    %s%s%s%s\n", group->name, group->parent == NULL ? "" : " (",
                    group->parent == NULL ? "" : group->parent, group->parent == NULL ? "" : ")");
    if (it->n_options > 0)
        strbuf_addf(out, "gold     %zu\n", it->gold);
    else if (it->kind == TASK_GENERATE)
        strbuf_addf(out, "gold     %s\n", it->continuation);
    strbuf_addf(out, "record   %s\n", it->doc);
}

/* The prompt once where options share it, and every continuation. */
static void add_texts(struct item_printer *s, size_t index, struct strbuf *out)
{
    const struct item *it = &s->bench->set.items[index];
    struct request_text *text = &s->text;
    for (size_t i = 0; i < prompt_requests(it); i++) {
        prompt_request(&s->bench->prompts, index, i, text);
        if (it->kind != TASK_ROLLING && (i == 0 || it->kind == TASK_CONTEXT))
            strbuf_addf(out, "==== prompt, %zu bytes\n%s%s\n==== end of the prompt\n",
                        text->preamble.len + text->context.len, text->preamble.buf,
                        text->context.buf);
        if (it->kind == TASK_GENERATE)
            continue;
        strbuf_addf(out, "continuation %zu%s ", i, it->n_options > 0 && i == it->gold ? "*" : "");
        json_add_string(out, text->continuation.buf);
        strbuf_addc(out, '\n');
    }
}

/* Token ids, where scoring begins, and how many were cut off. */
static void add_json_request(const struct request *r, cJSON *list)
{
    cJSON *obj = json_object();
    cJSON *tokens = json_array();
    for (size_t i = 0; i < r->tokens.n; i++)
        json_push_number(tokens, r->tokens.ids[i]);
    json_put(obj, "tokens", tokens);
    json_put_int(obj, "first", (int64_t)r->first);
    json_put_int(obj, "cut", (int64_t)r->n_cut);
    json_push(list, obj);
}

static int add_json(struct item_printer *s, size_t index, const char *fault, struct strbuf *out,
                    struct err *err)
{
    const struct item *it = &s->bench->set.items[index];
    const struct item_group *group = &s->bench->set.groups[it->group];
    cJSON *obj = json_object();
    cJSON *texts = json_array();
    cJSON *requests = json_array();
    cJSON *doc = NULL;
    int rc = json_parse(it->doc, strlen(it->doc), &doc, err);
    json_put_string(obj, "task", group->spec->name);
    json_put_string(obj, "group", group->name);
    json_put_int(obj, "item", (int64_t)index);
    json_put_int(obj, "line", it->line);
    json_put(obj, "doc", doc);
    if (it->n_options > 0)
        json_put_int(obj, "gold", (int64_t)it->gold);
    for (size_t i = 0; i < prompt_requests(it); i++) {
        cJSON *text = json_object();
        prompt_request(&s->bench->prompts, index, i, &s->text);
        json_put_string(text, "preamble", s->text.preamble.buf);
        json_put_string(text, "context", s->text.context.buf);
        json_put_string(text, "continuation", s->text.continuation.buf);
        json_push(texts, text);
    }
    json_put(obj, "texts", texts);
    for (size_t i = 0; i < s->requests.n; i++)
        add_json_request(&s->requests.items[i], requests);
    json_put(obj, "requests", requests);
    if (fault[0] != '\0')
        json_put_string(obj, "fault", fault);
    if (rc == 0)
        rc = json_line(obj, out, err);
    strbuf_addc(out, '\n');
    cJSON_Delete(obj);
    return rc;
}

int item_print(struct item_printer *s, size_t index, bool json, struct strbuf *out, struct err *err)
{
    char fault[FAULT_MAX] = "";
    int rc = 0;
    s->requests.n = 0;
    if (s->tok != NULL)
        rc = scorer_build(s->scorer, index, &s->requests, fault, err);
    if (rc != 0)
        return rc;
    if (json)
        return add_json(s, index, fault, out, err);
    add_head(s, index, out);
    add_texts(s, index, out);
    add_requests(s, out);
    if (fault[0] != '\0')
        strbuf_addf(out, "==== it cannot be asked: %s\n", fault);
    return 0;
}
