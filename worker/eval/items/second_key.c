/*
 * Right answers are bits of a word per item, so one item may have several. A JSONL key addresses
 * items by number or by line; a folder key is read with the task's own readers and must ask the
 * same questions, text for text, which guards against a key of another edition.
 */
#include "worker/eval/items/second_key.h"

#include "base/files/file.h"
#include "base/json/json.h"
#include "base/text.h"
#include "base/xalloc.h"

_Static_assert(ITEM_OPTIONS_MAX <= 64, "an option needs a bit");

void second_key_release(struct second_key *key)
{
    free(key->golds);
    *key = (struct second_key){0};
}

static int add_gold(const cJSON *gold, const struct item *it, uint64_t *golds, struct err *err)
{
    if (!cJSON_IsNumber(gold) || gold->valuedouble < 0.0 ||
        gold->valuedouble >= (double)it->n_options ||
        gold->valuedouble != (double)(size_t)gold->valuedouble)
        return err_set(err, ERR_SYNTAX, "gold is not one of the item's %zu choices, from 0",
                       it->n_options);
    *golds |= UINT64_C(1) << (size_t)gold->valuedouble;
    return 0;
}

/* A number, a list of numbers, or null. */
static int take_golds(const cJSON *obj, const struct item *it, uint64_t *golds, struct err *err)
{
    const cJSON *gold = json_member(obj, "gold");
    const cJSON *member = NULL;
    int rc = 0;
    if (gold == NULL)
        return err_set(err, ERR_SYNTAX, "gold is missing");
    if (cJSON_IsNull(gold))
        return 0;
    if (!cJSON_IsArray(gold))
        return add_gold(gold, it, golds, err);
    cJSON_ArrayForEach(member, gold)
    {
        if (rc == 0)
            rc = add_gold(member, it, golds, err);
    }
    return rc;
}

/* The items that "item" and "line" count in: all, or the named group's. */
static int find_range(const cJSON *obj, const struct item_set *set, size_t *first, size_t *n,
                      struct err *err)
{
    const char *group = NULL;
    int rc = json_opt_string(obj, "group", &group, err);
    *first = 0;
    *n = set->n;
    if (rc != 0 || group == NULL)
        return rc;
    const char **names = xcalloc(set->n_groups, sizeof(*names));
    rc = ERR_SYNTAX;
    for (size_t g = 0; g < set->n_groups; g++) {
        names[g] = set->groups[g].name;
        if (strcmp(names[g], group) == 0) {
            *first = set->groups[g].first;
            *n = set->groups[g].n;
            rc = 0;
        }
    }
    const char *nearest = rc == 0 ? NULL : text_nearest(group, names, set->n_groups);
    if (rc != 0)
        (void)err_set(err, rc, "unknown group '%.60s'%s%s%s", group,
                      nearest == NULL ? "" : "; did you mean '", nearest == NULL ? "" : nearest,
                      nearest == NULL ? "" : "'?");
    free(names);
    return rc;
}

/* The first of n items, whose lines rise, that is not above the line; first + n: none. */
static size_t at_line(const struct item_set *set, size_t first, size_t n, int64_t line)
{
    while (n > 0) {
        const size_t half = n / 2;
        if ((int64_t)set->items[first + half].line < line) {
            first += half + 1;
            n -= half + 1;
        } else {
            n = half;
        }
    }
    return first;
}

/* The item that a line addresses, by "item" or by "line". */
static int find_item(const cJSON *obj, const struct item_set *set, size_t *item, struct err *err)
{
    size_t first = 0;
    size_t n = 0;
    int64_t number = -1;
    const bool by_item = json_member(obj, "item") != NULL;
    if (by_item == (json_member(obj, "line") != NULL))
        return err_set(err, ERR_SYNTAX, "one of item and line says which is meant");
    if (!by_item && set->n_groups > 1 && json_member(obj, "group") == NULL)
        return err_set(err, ERR_SYNTAX, "a line is one of its group's file: group is missing");
    int rc = find_range(obj, set, &first, &n, err);
    if (rc == 0)
        rc = json_get_int(obj, by_item ? "item" : "line", 0, JSON_INT_MAX, &number, err);
    if (rc != 0)
        return rc;
    *item = by_item ? first + (size_t)number : at_line(set, first, n, number);
    if (*item < first + n && (by_item || set->items[*item].line == number))
        return 0;
    return err_set(err, ERR_SYNTAX, "there is no %s %lld", by_item ? "item" : "line",
                   (long long)number);
}

/* Whether the line is about a group of the task that is not read. */
static bool is_of_no_interest(const cJSON *obj, const struct item_set *set)
{
    const struct task_spec *spec = set->groups[0].spec;
    const cJSON *group = json_member(obj, "group");
    struct err err = {0};
    return cJSON_IsString(group) && !task_spec_takes_group(spec, group->valuestring) &&
           task_spec_check_group(spec, group->valuestring, &err) == 0;
}

/* Unknown members are errors: a typo would leave an item out. */
static int check_keys(const cJSON *obj, struct err *err)
{
    static const char *const known[] = {"group", "item", "line", "gold"};
    if (!cJSON_IsObject(obj))
        return err_set(err, ERR_SYNTAX, "not an object");
    for (const cJSON *m = obj->child; m != NULL; m = m->next) {
        size_t i = 0;
        while (i < ARRAY_LEN(known) && strcmp(known[i], m->string) != 0)
            i++;
        if (i == ARRAY_LEN(known))
            return err_set(err, ERR_SYNTAX, "'%.40s' is not one of group, item, line, gold",
                           m->string);
    }
    return 0;
}

/* One line of the file: at most one per item. */
static int take_line(struct second_key *key, bool *seen, const struct item_set *set,
                     const char *text, size_t len, struct err *err)
{
    cJSON *obj = NULL;
    size_t item = 0;
    int rc = json_parse(text, len, &obj, err);
    if (rc == 0)
        rc = check_keys(obj, err);
    const bool counts = rc == 0 && !is_of_no_interest(obj, set);
    if (counts)
        rc = find_item(obj, set, &item, err);
    if (rc == 0 && counts && seen[item])
        rc = err_set(err, ERR_SYNTAX, "the item has a line already");
    if (rc == 0 && counts) {
        seen[item] = true;
        rc = take_golds(obj, &set->items[item], &key->golds[item], err);
    }
    cJSON_Delete(obj);
    return rc;
}

static int take_lines(struct second_key *key, const struct item_set *set, const char *text,
                      size_t len, struct err *err)
{
    bool *seen = xcalloc(set->n, sizeof(*seen));
    unsigned line = 0;
    int rc = 0;
    for (size_t at = 0; rc == 0 && at < len;) {
        const char *start = text + at;
        const char *feed = memchr(start, '\n', len - at);
        const size_t n = feed == NULL ? len - at : (size_t)(feed - start);
        at += n + 1;
        line++;
        if (n == 0)
            continue;
        rc = take_line(key, seen, set, start, n, err);
        if (rc != 0) {
            err->code = ERR_SYNTAX;
            rc = err_wrap(err, "line %u", line);
        }
    }
    free(seen);
    return rc;
}

static int read_lines(struct second_key *key, const struct item_set *set, const char *path,
                      struct err *err)
{
    struct strbuf text = STRBUF_INIT;
    int rc = file_read(path, ITEM_FILE_MAX, &text, err);
    if (rc == 0 && (rc = take_lines(key, set, text.buf, text.len, err)) != 0)
        rc = err_wrap(err, "%s", path);
    strbuf_release(&text);
    return rc;
}

static bool same_text(const char *a, const char *b)
{
    return (a == NULL) == (b == NULL) && (a == NULL || strcmp(a, b) == 0);
}

/* Equal texts and options; the right answer may differ. */
static bool same_question(const struct item *a, const struct item *b)
{
    bool same = a->n_options == b->n_options && same_text(a->context, b->context) &&
                same_text(a->continuation, b->continuation);
    for (size_t i = 0; same && i < a->n_options; i++)
        same = strcmp(a->options[i], b->options[i]) == 0;
    return same;
}

/* One group of the other edition against ours. */
static int take_group(struct second_key *key, const struct item_set *set,
                      const struct item_group *ours, const struct item_set *theirs,
                      const struct item_group *group, struct err *err)
{
    if (ours->n != group->n)
        return err_set(err, ERR_SYNTAX, "%s: %zu items, the task has %zu",
                       group->name[0] == '\0' ? "the key" : group->name, group->n, ours->n);
    for (size_t i = 0; i < group->n; i++) {
        const struct item *it = &theirs->items[group->first + i];
        if (!same_question(it, &set->items[ours->first + i]))
            return err_set(err, ERR_SYNTAX, "%s: line %u asks something else than the task",
                           group->name, it->line);
        key->golds[ours->first + i] = UINT64_C(1) << it->gold;
    }
    return 0;
}

/* The key's groups may be a part of the task's. */
static int read_folder(struct second_key *key, const struct item_set *set,
                       const struct item_source *src, struct err *err)
{
    struct item_set theirs;
    item_set_init(&theirs);
    struct item_source part = *src;
    part.may_lack_groups = true;
    int rc = item_set_read(&theirs, set->groups[0].spec, &part, err);
    for (size_t g = 0; g < theirs.n_groups && rc == 0; g++) {
        const struct item_group *group = &theirs.groups[g];
        size_t k = 0;
        while (k < set->n_groups && strcmp(set->groups[k].name, group->name) != 0)
            k++;
        rc = k < set->n_groups
                 ? take_group(key, set, &set->groups[k], &theirs, group, err)
                 : err_set(err, ERR_SYNTAX, "the task has no group '%.60s'", group->name);
    }
    item_set_release(&theirs);
    return rc;
}

static void init(struct second_key *key, const char *name, const struct item_set *set)
{
    *key = (struct second_key){.name = name, .n_items = set->n};
    key->golds = xcalloc(set->n, sizeof(*key->golds));
}

int second_key_parse(struct second_key *key, const char *name, const struct item_set *set,
                     const char *text, size_t len, struct err *err)
{
    init(key, name, set);
    return take_lines(key, set, text, len, err);
}

int second_key_read(struct second_key *key, const char *name, const struct item_set *set,
                    const struct item_source *src, struct err *err)
{
    init(key, name, set);
    int rc = file_kind_at(src->path) == FILE_FOLDER ? read_folder(key, set, src, err)
                                                    : read_lines(key, set, src->path, err);
    return rc == 0 ? 0 : err_wrap(err, "second key %s", name);
}
