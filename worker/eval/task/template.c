/*
 * A compiled template is a list of parts: literal text, or a column with a path and filters.
 * Filling walks the path through the record's JSON, applies the filters to the text or to each text
 * of a list, and joins the parts. A template that is one column alone keeps the column's kind,
 * which is how gold answers stay numbers and choices stay lists.
 */
#include "worker/eval/task/template.h"

#include <ctype.h>

#include "base/json/json.h"
#include "base/strbuf.h"
#include "worker/eval/task/template_private.h"

struct part_list {
    struct template_part *first;
    struct template_part **end;
};

static struct template_part *add_part(struct template_scan *s, struct part_list *list)
{
    struct template_part *part = arena_alloc(s->arena, sizeof(*part));
    *list->end = part;
    list->end = &part->next;
    return part;
}

/* Text up to a single brace; a doubled brace is one brace of text. */
static int scan_literal(struct template_scan *s, struct part_list *list, struct err *err)
{
    struct strbuf text = STRBUF_INIT;
    int rc = 0;
    while (s->at[0] != '\0') {
        if ((s->at[0] == '{' || s->at[0] == '}') && s->at[1] == s->at[0])
            s->at++;
        else if (s->at[0] == '{')
            break;
        else if (s->at[0] == '}')
            rc = template_fault(s, err, "a } without its {; write }} for the character");
        if (rc != 0)
            break;
        strbuf_addc(&text, *s->at++);
    }
    if (rc == 0 && text.len > 0)
        add_part(s, list)->literal = arena_strndup(s->arena, text.buf, text.len);
    strbuf_release(&text);
    return rc;
}

/* Literals and fields alternate until the end. */
int template_compile(struct arena *arena, const char *source, const struct template **out,
                     struct err *err)
{
    struct template *t = arena_alloc(arena, sizeof(*t));
    struct template_scan scan = {.arena = arena, .source = source, .at = source};
    struct part_list list = {.end = &t->parts};
    int rc = 0;
    t->source = arena_strdup(arena, source);
    while (rc == 0 && *scan.at != '\0') {
        rc = scan_literal(&scan, &list, err);
        if (rc == 0 && *scan.at == '{')
            rc = template_scan_field(&scan, add_part(&scan, &list), err);
    }
    *out = t;
    return rc;
}

bool template_is_constant(const struct template *t)
{
    for (const struct template_part *p = t->parts; p != NULL; p = p->next)
        if (p->path != NULL)
            return false;
    return true;
}

const char *template_with_filter(struct arena *arena, const struct template *t, const char *filter)
{
    const size_t len = strlen(t->source);
    if (t->parts == NULL || t->parts->path == NULL || t->parts->next != NULL)
        return NULL;
    return arena_printf(arena, "%.*s|%s}", (int)len - 1, t->source, filter);
}

const char *template_path(struct arena *arena, const struct template *t)
{
    if (t->parts == NULL || t->parts->path == NULL || t->parts->next != NULL)
        return NULL;
    return arena_strndup(arena, t->source + 1, strcspn(t->source + 1, " |}"));
}

static void each_column(const struct template_step *path,
                        void (*column)(void *self, const char *name), void *self)
{
    if (path != NULL && strcmp(path->name, TEMPLATE_GROUP) != 0)
        column(self, path->name);
}

void template_each_column(const struct template *t, void (*column)(void *self, const char *name),
                          void *self)
{
    for (const struct template_part *p = t->parts; p != NULL; p = p->next) {
        each_column(p->path, column, self);
        for (const struct template_use *u = p->uses; u != NULL; u = u->next)
            each_column(u->path, column, self);
    }
}

/* What a path found: one node, or one of every member of a list. */
struct nodes {
    const cJSON *node[TEMPLATE_LIST_MAX];
    size_t n;
    bool many;
};

/* The named member of every element of a list. */
static int list_members(struct nodes *nodes, const cJSON *list, const struct template_step *step,
                        struct err *err)
{
    const cJSON *member = NULL;
    nodes->n = 0;
    nodes->many = true;
    cJSON_ArrayForEach(member, list)
    {
        if (nodes->n == TEMPLATE_LIST_MAX)
            return err_set(err, ERR_SYNTAX, "a list of more than %d members", TEMPLATE_LIST_MAX);
        nodes->node[nodes->n] = json_member(member, step->name);
        if (nodes->node[nodes->n] == NULL)
            return err_set(err, ERR_SYNTAX, "member %zu has no '%s'", nodes->n, step->name);
        nodes->n++;
    }
    return 0;
}

/* One step of a path: by name, by index, or by name over every member of a list. */
static int take_step(struct nodes *nodes, const struct template_step *step, struct err *err)
{
    const cJSON *node = nodes->node[0];
    if (nodes->many)
        return err_set(err, ERR_SYNTAX, "a list of lists at '%s'", step->name);
    if (step->name != NULL && cJSON_IsArray(node))
        return list_members(nodes, node, step, err);
    if (step->name != NULL) {
        nodes->node[0] = json_member(node, step->name);
        return nodes->node[0] != NULL ? 0 : err_set(err, ERR_SYNTAX, "no '%s'", step->name);
    }
    nodes->node[0] = cJSON_IsArray(node) ? cJSON_GetArrayItem(node, (int)step->index) : NULL;
    return nodes->node[0] != NULL ? 0 : err_set(err, ERR_SYNTAX, "no member [%zu]", step->index);
}

static int list_of_texts(const struct template_input *in, const struct nodes *nodes,
                         struct value *out, struct err *err)
{
    const char **list = arena_array(in->arena, nodes->n + 1, sizeof(*list));
    for (size_t i = 0; i < nodes->n; i++) {
        if (!cJSON_IsString(nodes->node[i]))
            return err_set(err, ERR_SYNTAX, "[%zu] is not a string", i);
        list[i] = nodes->node[i]->valuestring;
    }
    *out = (struct value){.kind = VALUE_LIST, .list = list, .n = nodes->n};
    return 0;
}

static int list_value(const struct template_input *in, const cJSON *array, struct value *out,
                      struct err *err)
{
    struct nodes nodes = {.many = true};
    const cJSON *member = NULL;
    cJSON_ArrayForEach(member, array)
    {
        if (nodes.n == TEMPLATE_LIST_MAX)
            return err_set(err, ERR_SYNTAX, "has more than %d members", TEMPLATE_LIST_MAX);
        nodes.node[nodes.n++] = member;
    }
    return list_of_texts(in, &nodes, out, err);
}

/* Text, whole number, truth value (as 0 or 1) or list of texts. */
static int node_value(const struct template_input *in, const cJSON *node, struct value *out,
                      struct err *err)
{
    *out = (struct value){0};
    if (cJSON_IsString(node)) {
        out->text = node->valuestring;
        return 0;
    }
    if (cJSON_IsArray(node))
        return list_value(in, node, out, err);
    out->kind = VALUE_NUMBER;
    if (cJSON_IsBool(node)) {
        out->number = cJSON_IsTrue(node);
        return 0;
    }
    if (!cJSON_IsNumber(node) || node->valuedouble > (double)JSON_INT_MAX ||
        node->valuedouble < -(double)JSON_INT_MAX ||
        node->valuedouble != (double)(int64_t)node->valuedouble)
        return err_set(err, ERR_SYNTAX, "is not a text, a whole number or a list of texts");
    out->number = (int64_t)node->valuedouble;
    return 0;
}

/* The value at a path of the record, or the group's name. */
static int path_value(const struct template_input *in, const struct template_step *path,
                      struct value *out, struct err *err)
{
    struct nodes nodes = {.n = 1};
    if (strcmp(path->name, TEMPLATE_GROUP) == 0) {
        *out = (struct value){.text = in->group};
        return 0;
    }
    nodes.node[0] = json_member(in->record, path->name);
    if (nodes.node[0] == NULL)
        return err_set(err, ERR_SYNTAX, "there is no '%s'", path->name);
    int rc = 0;
    for (const struct template_step *s = path->next; s != NULL && rc == 0; s = s->next)
        rc = take_step(&nodes, s, err);
    if (rc == 0)
        rc = nodes.many ? list_of_texts(in, &nodes, out, err)
                        : node_value(in, nodes.node[0], out, err);
    return rc == 0 ? 0 : err_wrap(err, "%s", path->name);
}

static const char *text_of(const struct template_input *in, const struct value *v)
{
    if (v->kind == VALUE_NUMBER)
        return arena_printf(in->arena, "%lld", (long long)v->number);
    return v->text;
}

static int apply_to_text(const struct template_input *in, const struct template_use *use,
                         const struct filter_args *args, const char **text, struct err *err)
{
    struct strbuf out = STRBUF_INIT;
    int rc = use->filter->apply(*text, args, &out, err);
    if (rc == 0)
        *text = arena_strndup(in->arena, out.buf, out.len);
    strbuf_release(&out);
    return rc == 0 ? 0 : err_wrap(err, "%s", use->filter->name);
}

/* One filter on a value; its arguments may be a list from the record. */
static int apply(const struct template_input *in, const struct template_use *use, struct value *v,
                 struct err *err)
{
    struct filter_args args = use->args;
    struct value list = {0};
    int rc = 0;
    if (use->path != NULL) {
        rc = path_value(in, use->path, &list, err);
        if (rc == 0 && list.kind != VALUE_LIST)
            rc = err_set(err, ERR_SYNTAX, "%s is not a list", use->path->name);
        args = (struct filter_args){list.list, list.n};
    }
    if (rc == 0 && v->kind == VALUE_LIST && use->filter->numbers)
        rc = err_set(err, ERR_SYNTAX, "%s: of a list", use->filter->name);
    if (rc != 0)
        return rc;
    if (v->kind == VALUE_LIST) {
        const char **texts = arena_array(in->arena, v->n + 1, sizeof(*texts));
        for (size_t i = 0; i < v->n && rc == 0; i++) {
            texts[i] = v->list[i];
            rc = apply_to_text(in, use, &args, &texts[i], err);
            if (rc != 0)
                err_wrap(err, "[%zu]", i);
        }
        v->list = texts;
        return rc;
    }
    v->text = text_of(in, v);
    rc = apply_to_text(in, use, &args, &v->text, err);
    v->kind = use->filter->numbers ? VALUE_NUMBER : VALUE_TEXT;
    if (rc == 0 && use->filter->numbers)
        v->number = strtoll(v->text, NULL, 10);
    return rc;
}

/* The value of a part after its filters. */
static int part_value(const struct template_input *in, const struct template_part *part,
                      struct value *out, struct err *err)
{
    if (part->literal != NULL) {
        *out = (struct value){.text = part->literal};
        return 0;
    }
    int rc = path_value(in, part->path, out, err);
    for (const struct template_use *u = part->uses; u != NULL && rc == 0; u = u->next) {
        rc = apply(in, u, out, err);
        if (rc != 0)
            err_wrap(err, "%s", part->path->name);
    }
    return rc;
}

int template_fill(const struct template *t, const struct template_input *in, struct value *out,
                  struct err *err)
{
    if (t->parts != NULL && t->parts->next == NULL)
        return part_value(in, t->parts, out, err);
    struct strbuf text = STRBUF_INIT;
    int rc = 0;
    for (const struct template_part *p = t->parts; p != NULL && rc == 0; p = p->next) {
        struct value v = {0};
        rc = part_value(in, p, &v, err);
        if (rc == 0 && v.kind == VALUE_LIST)
            rc = err_set(err, ERR_SYNTAX, "%s is a list inside a text", p->path->name);
        if (rc == 0)
            strbuf_adds(&text, text_of(in, &v));
    }
    *out = (struct value){.text = arena_strndup(in->arena, text.buf, text.len)};
    strbuf_release(&text);
    return rc;
}

int template_fill_text(const struct template *t, const struct template_input *in, const char **out,
                       struct err *err)
{
    struct value v = {0};
    int rc = template_fill(t, in, &v, err);
    if (rc != 0)
        return rc;
    if (v.kind == VALUE_LIST)
        return err_set(err, ERR_SYNTAX, "%s is a list, not a text", t->source);
    *out = text_of(in, &v);
    return 0;
}
