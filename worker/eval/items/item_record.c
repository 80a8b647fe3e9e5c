/*
 * Makes an item of one record: finds the form it fits, adds the form's columns to it, and fills the
 * templates. Templates read from a scratch arena; only what the item keeps is copied to the set's.
 * Errors are worded for the author of the data: which column is missing, what it may be called, and
 * of which shipped task the record would be an item.
 */
#include "base/json/json.h"
#include "base/text.h"
#include "base/xalloc.h"
#include "worker/eval/items/item_private.h"
#include "worker/eval/task/pytext.h"

/* A form fits a record that has all the columns it reads. */
static bool fits(const struct task_form *form, const cJSON *record)
{
    for (size_t i = 0; i < form->n_needs; i++)
        if (json_member(record, form->needs[i]) == NULL)
            return false;
    return true;
}

#define OTHERS_SHOWN 3

/* Names of shipped tasks that the record is an item of: "; it is an item of winogrande". */
static void add_others(const cJSON *record, struct strbuf *out)
{
    size_t n = 0;
    for (size_t i = 0; i < task_builtin_count() && n < OTHERS_SHOWN; i++) {
        struct task_spec *other = NULL;
        struct err none;
        bool is = false;
        if (task_builtin_read(task_builtin_name(i), &other, &none) == 0)
            for (size_t f = 0; f < other->n_forms; f++)
                is = is || fits(&other->forms[f], record);
        if (is)
            strbuf_addf(out, "%s%s", n++ == 0 ? "; it is an item of " : ", ", other->name);
        task_spec_free(other);
    }
}

/* The first column of the nearest form that the record does not have, and what it may have been
 * meant to be. */
static void say_no_form(const struct task_spec *spec, const cJSON *record, struct err *err)
{
    const char *names[64];
    size_t n_names = 0;
    const cJSON *member = NULL;
    const char *missing = NULL;
    size_t fewest = SIZE_MAX;
    for (size_t f = 0; f < spec->n_forms; f++) {
        const char *first = NULL;
        size_t n_missing = 0;
        for (size_t i = spec->forms[f].n_needs; i-- > 0;) {
            if (json_member(record, spec->forms[f].needs[i]) != NULL)
                continue;
            first = spec->forms[f].needs[i];
            n_missing++;
        }
        if (n_missing < fewest) {
            fewest = n_missing;
            missing = first;
        }
    }
    cJSON_ArrayForEach(member, record)
    {
        if (n_names < ARRAY_LEN(names))
            names[n_names++] = member->string;
    }
    const char *nearest = text_nearest(missing, names, n_names);
    struct strbuf others = STRBUF_INIT;
    if (nearest != NULL)
        strbuf_addf(&others, "; is '%.40s' meant?", nearest);
    else
        add_others(record, &others);
    err_set(err, ERR_SYNTAX, "is not an item of %s: no '%s'%.100s", spec->name, missing,
            others.buf);
    strbuf_release(&others);
}

/* NULL: none fits, err says why. */
static const struct task_form *find_form(const struct task_spec *spec, const cJSON *record,
                                         struct err *err)
{
    for (size_t f = 0; f < spec->n_forms; f++)
        if (fits(&spec->forms[f], record))
            return &spec->forms[f];
    if (cJSON_IsObject(record))
        say_no_form(spec, record, err);
    else
        err_set(err, ERR_SYNTAX, "is not a JSON object");
    return NULL;
}

/* A list of templates makes a list; one alone makes whatever it makes. */
static int fill_column(const struct task_column *column, const struct template_input *in,
                       struct value *out, struct err *err)
{
    if (column->n_values == 0)
        return template_fill(column->values[0], in, out, err);
    const char **list = arena_array(in->arena, column->n_values, sizeof(*list));
    int rc = 0;
    for (size_t i = 0; i < column->n_values && rc == 0; i++)
        rc = template_fill_text(column->values[i], in, &list[i], err);
    *out = (struct value){.kind = VALUE_LIST, .list = list, .n = column->n_values};
    return rc;
}

/* The value as a JSON node, which the caller owns. */
static cJSON *json_of(const struct value *v)
{
    cJSON *holder = json_object();
    if (v->kind == VALUE_TEXT) {
        json_put_string(holder, "v", v->text);
    } else if (v->kind == VALUE_NUMBER) {
        json_put_int(holder, "v", v->number);
    } else {
        cJSON *list = json_array();
        for (size_t i = 0; i < v->n; i++)
            json_push_string(list, v->list[i]);
        json_put(holder, "v", list);
    }
    cJSON *node = cJSON_DetachItemFromObjectCaseSensitive(holder, "v");
    cJSON_Delete(holder);
    return node;
}

/* Adds or replaces columns, in order, so that later ones may read earlier ones. */
static int add_columns(const struct task_form *form, const struct template_input *in, cJSON *record,
                       struct err *err)
{
    for (size_t i = 0; i < form->n_adds; i++) {
        const struct task_column *column = &form->adds[i];
        struct value v = {0};
        int rc = fill_column(column, in, &v, err);
        if (rc != 0)
            return rc;
        cJSON *node = json_of(&v);
        if (json_member(record, column->name) == NULL)
            json_put(record, column->name, node);
        else if (!cJSON_ReplaceItemInObjectCaseSensitive(record, column->name, node))
            cJSON_Delete(node);
    }
    return 0;
}

/* Fills a template, if the form has it, and keeps the text in the set. */
static int keep(struct item_set *set, const struct template *t, const struct template_input *in,
                const char **out, struct err *err)
{
    const char *text = NULL;
    if (t == NULL)
        return 0;
    int rc = template_fill_text(t, in, &text, err);
    if (rc == 0)
        *out = arena_strdup(&set->arena, text);
    return rc;
}

/* The choices or contexts: a list of 2 to ITEM_OPTIONS_MAX texts. */
static int take_options(struct item_set *set, const struct task_form *form,
                        const struct template_input *in, struct item *it, struct err *err)
{
    struct value v = {0};
    int rc = fill_column(&form->options, in, &v, err);
    const size_t n_name = strlen(form->options.name);
    if (rc != 0 && strncmp(err->msg, form->options.name, n_name) == 0 && err->msg[n_name] == ':')
        return rc; /* the column is called so, too, and is named already */
    if (rc != 0)
        return err_wrap(err, "%s", form->options.name);
    if (v.kind != VALUE_LIST)
        return err_set(err, ERR_SYNTAX, "%s is not a list", form->options.name);
    if (v.n < 2 || v.n > ITEM_OPTIONS_MAX)
        return err_set(err, ERR_SYNTAX, "%s has %zu members, not 2 to %d", form->options.name, v.n,
                       ITEM_OPTIONS_MAX);
    const char **options = arena_array(&set->arena, v.n, sizeof(*options));
    for (size_t i = 0; i < v.n; i++)
        options[i] = arena_strdup(&set->arena, v.list[i]);
    it->options = options;
    it->n_options = v.n;
    return 0;
}

/* The place of the choice that is the text; SIZE_MAX: none is. */
static size_t find_choice(const struct item *it, const char *text)
{
    for (size_t i = 0; i < it->n_options; i++)
        if (strcmp(it->options[i], text) == 0)
            return i;
    return SIZE_MAX;
}

/* The place of the choice that is the text but for white space at its ends; SIZE_MAX: none is. */
static size_t find_bare_choice(const struct item *it, const char *text)
{
    const size_t n = strlen(text);
    for (size_t i = 0; i < it->n_options; i++) {
        const char *option = it->options[i] + pytext_lstrip(it->options[i], strlen(it->options[i]));
        if (pytext_rstrip(option, strlen(option)) == n && strncmp(option, text, n) == 0)
            return i;
    }
    return SIZE_MAX;
}

/* Digits that are also the text of a choice: both readings, and how to write each. */
static int refuse_two_readings(const struct task_form *form, const struct template_input *in,
                               const struct item *it, size_t choice, int64_t index, struct err *err)
{
    const char *path =
        form->options.n_values == 0 ? template_path(in->arena, form->options.values[0]) : NULL;
    const char *by_text =
        template_with_filter(in->arena, form->gold,
                             arena_printf(in->arena, "index(%s)", path == NULL ? "CHOICES" : path));
    const char *by_index = template_with_filter(in->arena, form->gold, "integer");
    const char *at = index >= 0 && index < (int64_t)it->n_options ? it->options[index] : NULL;
    return err_set(err, ERR_SYNTAX,
                   "gold '%.20s' is choice %zu as a text and %s%.20s%s as an index: write %s for "
                   "the text, %s for the index",
                   it->options[choice], choice, at == NULL ? "no choice" : "'",
                   at == NULL ? "" : at, at == NULL ? "" : "'",
                   by_text == NULL ? "{COLUMN|index(CHOICES)}" : by_text,
                   by_index == NULL ? "{COLUMN|integer}" : by_index);
}

static int gold_of_text(const struct task_form *form, const struct template_input *in,
                        struct item *it, struct value *v, struct err *err)
{
    struct err none;
    const bool digits = text_to_int(v->text, INT64_MIN, INT64_MAX, &v->number, &none) == 0;
    const size_t choice = digits ? find_bare_choice(it, v->text) : find_choice(it, v->text);
    /* Digits that the task itself has, as "gold": "0", are never anything but an index. */
    if (digits && choice != SIZE_MAX && !template_is_constant(form->gold))
        return refuse_two_readings(form, in, it, choice, v->number, err);
    if (digits)
        v->kind = VALUE_NUMBER;
    else if (choice == SIZE_MAX)
        return err_set(err, ERR_SYNTAX, "gold is '%.40s', which is none of the choices", v->text);
    else
        v->number = (int64_t)choice;
    return 0;
}

/* A number is the index. A text is the right choice itself, or an index in digits; a text that may
 * be either is refused. */
static int take_gold(const struct task_form *form, const struct template_input *in, struct item *it,
                     struct err *err)
{
    struct value v = {0};
    int rc = template_fill(form->gold, in, &v, err);
    if (rc == 0 && v.kind == VALUE_LIST)
        rc = err_set(err, ERR_SYNTAX, "gold is a list");
    if (rc == 0 && v.kind == VALUE_TEXT)
        rc = gold_of_text(form, in, it, &v, err);
    if (rc != 0)
        return rc;
    if (v.number < 0 || v.number >= (int64_t)it->n_options)
        return err_set(err, ERR_SYNTAX, "gold is %lld, but there are %zu choices",
                       (long long)v.number, it->n_options);
    it->gold = (size_t)v.number;
    it->gold_is_text = v.kind == VALUE_TEXT || form->gold_is_text;
    return 0;
}

/* The columns that samples show, as JSON on one line. */
static int take_doc(struct item_set *set, const struct task_form *form, const cJSON *record,
                    struct item *it, struct err *err)
{
    struct strbuf line = STRBUF_INIT;
    cJSON *doc = json_object();
    const cJSON *member = NULL;
    for (size_t i = 0; i < form->n_shows; i++)
        if ((member = json_member(record, form->shows[i])) != NULL)
            json_put(doc, form->shows[i], json_copy(member));
    if (form->n_shows == 0) {
        cJSON_ArrayForEach(member, record)
        {
            if (member->string[0] != '_')
                json_put(doc, member->string, json_copy(member));
        }
    }
    int rc = json_line(doc, &line, err);
    if (rc == 0)
        it->doc = arena_strndup(&set->arena, line.buf, line.len);
    cJSON_Delete(doc);
    strbuf_release(&line);
    return rc;
}

/* The order matters: the gold answer may refer to the options. */
static int fill_item(struct item_set *set, const struct task_form *form,
                     const struct template_input *in, struct item *it, struct err *err)
{
    int rc = keep(set, form->context, in, &it->context, err);
    if (rc != 0 ||
        (form->options.values != NULL && (rc = take_options(set, form, in, it, err)) != 0) ||
        (form->gold != NULL && (rc = take_gold(form, in, it, err)) != 0) ||
        (rc = keep(set, form->target, in, &it->continuation, err)) != 0 ||
        (rc = keep(set, form->text, in, &it->continuation, err)) != 0 ||
        (rc = keep(set, form->original, in, &it->original, err)) != 0)
        return rc;
    return keep(set, form->category, in, &it->category, err);
}

/* Columns first, then texts, then the document, which shows the added columns too. */
int item_take_record(struct item_reader *r, cJSON *record, unsigned line, struct err *err)
{
    struct item_set *set = r->set;
    struct arena scratch;
    struct item it = {.kind = r->spec->kind, .group = set->n_groups, .line = line};
    arena_init(&scratch);
    const struct template_input in = {record, r->group, &scratch};
    const struct task_form *form = find_form(r->spec, record, err);
    int rc = form == NULL ? err->code : add_columns(form, &in, record, err);
    if (rc != 0 || (rc = fill_item(set, form, &in, &it, err)) != 0 ||
        (rc = take_doc(set, form, record, &it, err)) != 0)
        goto out;
    ARRAY_GROW(set->items, set->n, set->cap);
    set->items[set->n++] = it;
out:
    cJSON_Delete(record);
    arena_release(&scratch);
    return rc;
}
