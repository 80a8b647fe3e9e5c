#include "worker/eval/item.h"

#include "base/file.h"
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

struct item *item_set_add(struct item_set *set)
{
    ARRAY_GROW(set->items, set->n, set->cap);
    struct item *it = &set->items[set->n++];
    memset(it, 0, sizeof(*it));
    it->group = set->n_groups;
    return it;
}

void item_set_end_group(struct item_set *set, const char *description)
{
    set->groups = xreallocarray(set->groups, set->n_groups + 1, sizeof(*set->groups));
    struct item_group *group = &set->groups[set->n_groups];
    const struct item_group *before = set->n_groups == 0 ? NULL : group - 1;
    group->description = arena_strdup(&set->arena, description);
    group->first = before == NULL ? 0 : before->first + before->n;
    group->n = set->n - group->first;
    set->n_groups++;
}

int item_set_read(struct item_set *set, const struct task_def *def, const char *path,
                  const char *split, int description_newlines, struct err *err)
{
    const bool folder = file_kind_at(path) == FILE_FOLDER;
    if ((def->forms & 1u << FORM_MMLU) != 0) {
        if (folder)
            return item_set_read_mmlu(set, path, split, description_newlines, err);
        return err_set(err, ERR_NOT_FOUND, "%s: not %s", path, item_form_text(FORM_MMLU));
    }
    if (!folder)
        return item_set_read_jsonl(set, def, path, err);
    char *name = xasprintf("%s.jsonl", split);
    char *file = path_join(path, name);
    int rc = item_set_read_jsonl(set, def, file, err);
    free(file);
    free(name);
    return rc;
}

static bool same_text(const char *a, const char *b)
{
    return (a == NULL) == (b == NULL) && (a == NULL || strcmp(a, b) == 0);
}

bool item_equal(const struct item *a, const struct item *b)
{
    if (a->gold != b->gold || a->n_options != b->n_options || !same_text(a->context, b->context) ||
        !same_text(a->continuation, b->continuation))
        return false;
    for (size_t i = 0; i < a->n_options; i++)
        if (strcmp(a->options[i], b->options[i]) != 0)
            return false;
    return true;
}

void item_add_example(const struct item *it, struct strbuf *out)
{
    if (item_is_schema(it))
        strbuf_addf(out, "%s %s", it->options[it->gold], it->continuation);
    else if (it->form == FORM_QUESTION)
        strbuf_addf(out, "%s %s", it->context, it->continuation);
    else
        strbuf_addf(out, "%s %s", it->context, it->options[it->gold]);
}
