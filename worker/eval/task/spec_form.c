/*
 * Reads "forms": the shapes that records of a task may have. Each template is compiled here, and
 * the columns it reads, unless the form adds them itself, become the form's needs; a record is
 * matched to a form by these. A list of templates makes a list of texts.
 */
#include "base/json/json.h"
#include "base/text.h"
#include "base/xalloc.h"
#include "worker/eval/task/spec_private.h"

/* One form while it is read: which columns its templates want of the record. */
struct form_reader {
    struct task_spec *spec;
    struct task_form *form;
    const char *needs[SPEC_COLUMNS_MAX];
    size_t n_needs;
    bool too_many;
};

/* Notes a column that a template reads, once. */
static void on_column(void *self, const char *name)
{
    struct form_reader *r = self;
    for (size_t i = 0; i < r->form->n_adds; i++)
        if (strcmp(r->form->adds[i].name, name) == 0)
            return;
    for (size_t i = 0; i < r->n_needs; i++)
        if (strcmp(r->needs[i], name) == 0)
            return;
    if (r->n_needs == SPEC_COLUMNS_MAX)
        r->too_many = true;
    else
        r->needs[r->n_needs++] = name;
}

/* Compiles one template and notes its columns; a fault names the key. */
static const struct template *compile(struct form_reader *r, struct params *p, const char *key,
                                      const char *source)
{
    const struct template *t = NULL;
    struct err err = {0};
    if (template_compile(&r->spec->arena, source, &t, &err) != 0) {
        params_fault(p, key, "%s", err.msg);
        return NULL;
    }
    template_each_column(t, on_column, r);
    return t;
}

static const struct template *read_template(struct form_reader *r, struct params *p,
                                            const char *key, bool required)
{
    const char *source = params_string(p, key, NULL);
    if (required)
        params_require(p, key);
    return source == NULL ? NULL : compile(r, p, key, source);
}

/* A template, or a list of templates that makes a list of texts. */
static void read_column(struct form_reader *r, struct params *p, const char *key,
                        struct task_column *column)
{
    const cJSON *v = params_value(p, key);
    const cJSON *member = NULL;
    column->name = arena_strdup(&r->spec->arena, key);
    if (v == NULL) {
        params_fault(p, key, "is required");
        return;
    }
    const int count = cJSON_IsArray(v) ? cJSON_GetArraySize(v) : 1;
    const struct template **values =
        arena_array(&r->spec->arena, (size_t)count + 1, sizeof(*values));
    column->values = values;
    if (cJSON_IsString(v)) {
        values[0] = compile(r, p, key, v->valuestring);
        return;
    }
    if (!cJSON_IsArray(v) || count < 2 || count > SPEC_COLUMNS_MAX) {
        params_fault(p, key, "expected a template or a list of 2 to %d", SPEC_COLUMNS_MAX);
        return;
    }
    cJSON_ArrayForEach(member, v)
    {
        if (!cJSON_IsString(member)) {
            params_fault(p, key, "[%zu] is not a template", column->n_values);
            return;
        }
        values[column->n_values++] = compile(r, p, key, member->valuestring);
    }
}

/* "add": columns in order, each a template or a list of them. */
static void read_adds(struct form_reader *r, struct params *p)
{
    const cJSON *obj = params_value(p, "add");
    const cJSON *member = NULL;
    struct params inner;
    if (obj == NULL)
        return;
    if (!cJSON_IsObject(obj) || cJSON_GetArraySize(obj) > SPEC_COLUMNS_MAX) {
        params_fault(p, "add", "expected a table of at most %d columns", SPEC_COLUMNS_MAX);
        return;
    }
    struct task_column *adds =
        arena_array(&r->spec->arena, (size_t)cJSON_GetArraySize(obj) + 1, sizeof(*adds));
    params_init(&inner, obj, p->faults);
    inner.table = arena_printf(&r->spec->arena, "%s.add", p->table);
    r->form->adds = adds;
    cJSON_ArrayForEach(member, obj)
    {
        read_column(r, &inner, member->string, &adds[r->form->n_adds]);
        r->form->n_adds++;
    }
}

/* Which keys a form has depends on the kind of the task; unknown ones are faults. */
static void read_form(struct form_reader *r, struct params *p)
{
    struct task_form *form = r->form;
    const enum task_kind kind = r->spec->kind;
    static const char *const golds[] = {"as_given", "as_text"};
    read_adds(r, p);
    spec_read_texts(r->spec, p, "show", &form->shows, &form->n_shows);
    if (kind == TASK_CHOICE || kind == TASK_LIKELIHOOD || kind == TASK_GENERATE)
        form->context = read_template(r, p, "context", true);
    if (kind == TASK_CHOICE || kind == TASK_CONTEXT) {
        read_column(r, p, kind == TASK_CHOICE ? "choices" : "contexts", &form->options);
        form->gold = read_template(r, p, "gold", true);
    }
    if (kind == TASK_CHOICE)
        form->gold_is_text = params_choice(p, "gold_shown", golds, ARRAY_LEN(golds), 0) == 1;
    if (kind == TASK_CONTEXT || kind == TASK_LIKELIHOOD || kind == TASK_GENERATE)
        form->target = read_template(r, p, "target", true);
    if (kind == TASK_ROLLING) {
        form->text = read_template(r, p, "text", true);
        form->original = read_template(r, p, "original", true);
    }
    form->category = read_template(r, p, "category", false);
    params_finish(p);
    const char **needs = arena_array(&r->spec->arena, r->n_needs + 1, sizeof(*needs));
    for (size_t i = 0; i < r->n_needs; i++)
        needs[i] = r->needs[i];
    form->needs = needs;
    form->n_needs = r->n_needs;
    if (r->too_many)
        params_fault(p, "context", "the form reads more than %d columns", SPEC_COLUMNS_MAX);
    else if (form->n_needs == 0)
        params_fault(p, kind == TASK_ROLLING ? "text" : "context", "the form reads no column");
}

/* With columns given for headerless files, some form has to be made of them. */
static void check_columns(const struct task_spec *spec, struct params *p)
{
    if (spec->n_columns == 0)
        return;
    const char *missing = NULL;
    for (size_t f = 0; f < spec->n_forms; f++) {
        missing = NULL;
        for (size_t i = 0; i < spec->forms[f].n_needs && missing == NULL; i++) {
            bool found = false;
            for (size_t c = 0; c < spec->n_columns; c++)
                found = found || strcmp(spec->columns[c], spec->forms[f].needs[i]) == 0;
            if (!found)
                missing = spec->forms[f].needs[i];
        }
        if (missing == NULL)
            return;
    }
    if (missing == NULL)
        return;
    const char *nearest = text_nearest(missing, spec->columns, spec->n_columns);
    params_fault(p, "columns", "no form can be filled from them: there is no '%s'%s%s%s", missing,
                 nearest == NULL ? "" : "; did you mean '", nearest == NULL ? "" : nearest,
                 nearest == NULL ? "" : "'?");
}

void spec_read_forms(struct task_spec *spec, struct params *p)
{
    const cJSON *array = params_value(p, "forms");
    const cJSON *member = NULL;
    params_require(p, "forms");
    if (array == NULL)
        return;
    const int count = cJSON_GetArraySize(array);
    if (!cJSON_IsArray(array) || count == 0 || count > SPEC_FORMS_MAX) {
        params_fault(p, "forms", "expected a list of 1 to %d tables", SPEC_FORMS_MAX);
        return;
    }
    struct task_form *forms = arena_array(&spec->arena, (size_t)count, sizeof(*forms));
    spec->forms = forms;
    cJSON_ArrayForEach(member, array)
    {
        struct form_reader r = {.spec = spec, .form = &forms[spec->n_forms]};
        struct params inner;
        if (!cJSON_IsObject(member)) {
            params_fault(p, "forms", "[%zu] is not a table", spec->n_forms);
            return;
        }
        params_init(&inner, member, p->faults);
        inner.table = arena_printf(&spec->arena, "forms[%zu]", spec->n_forms);
        read_form(&r, &inner);
        spec->n_forms++;
    }
    check_columns(spec, p);
}
