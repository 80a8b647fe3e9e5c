/*
 * The set's own functions; reading is in the item_*.c files. Equality compares the documents as
 * JSON values after the cheap comparison of their texts, because Python compares dicts and not
 * their spelling. item_add_example() is the one place that says how an example looks.
 */
#include "worker/eval/items/item.h"

#include "base/json/json.h"
#include "base/xalloc.h"

void item_set_init(struct item_set *set)
{
    memset(set, 0, sizeof(*set));
    arena_init(&set->arena);
}

void item_set_release(struct item_set *set)
{
    free(set->items);
    free(set->groups);
    arena_release(&set->arena);
    memset(set, 0, sizeof(*set));
}

bool item_equal(const struct item *a, const struct item *b)
{
    if (strcmp(a->doc, b->doc) == 0)
        return true;
    if (strlen(a->doc) != strlen(b->doc))
        return false;
    struct err err = {0};
    cJSON *x = NULL;
    cJSON *y = NULL;
    const bool equal = json_parse(a->doc, strlen(a->doc), &x, &err) == 0 &&
                       json_parse(b->doc, strlen(b->doc), &y, &err) == 0 && json_equal(x, y);
    cJSON_Delete(x);
    cJSON_Delete(y);
    return equal;
}

/* By copies instead of a format: describing CORE joins a million examples. */
static void add_joined(struct strbuf *out, const char *before, const char *between,
                       const char *after)
{
    strbuf_adds(out, before);
    strbuf_adds(out, between);
    strbuf_adds(out, after);
}

void item_add_example(const struct item *it, const struct task_spec *spec, struct strbuf *out)
{
    switch (it->kind) {
    case TASK_CHOICE: add_joined(out, it->context, spec->delimiter, it->options[it->gold]); break;
    case TASK_CONTEXT:
        add_joined(out, it->options[it->gold], spec->delimiter, it->continuation);
        break;
    case TASK_LIKELIHOOD:
    case TASK_GENERATE: add_joined(out, it->context, spec->delimiter, it->continuation); break;
    case TASK_ROLLING: add_joined(out, "", spec->delimiter, it->continuation); break;
    case TASK_KIND_NR: break;
    }
}

int item_add_doc_layout(const struct item *it, struct strbuf *out, struct err *err)
{
    cJSON *doc = NULL;
    int rc = json_parse(it->doc, strlen(it->doc), &doc, err);
    if (rc == 0)
        rc = json_pretty(doc, out, err);
    cJSON_Delete(doc);
    return rc;
}
