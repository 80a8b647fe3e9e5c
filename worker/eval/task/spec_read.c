/*
 * Reads the fields of one task, except for the forms of records (spec_form.c). It uses the strict
 * reader of parameters (worker/report/params.h), so unknown keys are faults with a suggestion.
 * Names, patterns and files are checked when the file is read, not when a run meets them.
 */
#include "base/files/file.h"
#include "base/json/json.h"
#include "base/text.h"
#include "base/xalloc.h"
#include "worker/eval/task/pattern.h"
#include "worker/eval/task/spec_private.h"

#define MAX_TOKENS_MOST    4096
#define MAX_TOKENS_DEFAULT 256 /* max_gen_toks of the harness */
#define SEED_DEFAULT       1234

static void check_pattern(struct params *p, const char *key, const char *pattern)
{
    struct pattern *compiled = NULL;
    struct err err = {0};
    if (pattern != NULL && pattern_compile(pattern, &compiled, &err) != 0)
        params_fault(p, key, "%s", err.msg);
    pattern_free(compiled);
}

/* One filter; `key` defaults to its name. */
static void read_filter(struct task_spec *spec, struct params *p, struct task_filter *filter)
{
    params_require(p, "name");
    params_require(p, "pattern");
    filter->name = spec_keep_text(spec, p, "name", "");
    filter->key = spec_keep_text(spec, p, "key", filter->name);
    filter->pattern = spec_keep_text(spec, p, "pattern", "");
    filter->select = (int)params_int(p, "select", -1000, 1000, 0);
    check_pattern(p, "pattern", filter->pattern);
    params_finish(p);
}

static void read_filters(struct task_spec *spec, struct params *p)
{
    const cJSON *array = params_value(p, "filters");
    const cJSON *member = NULL;
    if (array == NULL)
        return;
    const int count = cJSON_GetArraySize(array);
    if (!cJSON_IsArray(array) || count == 0 || count > SPEC_METRICS_MAX) {
        params_fault(p, "filters", "expected a list of 1 to %d tables", SPEC_METRICS_MAX);
        return;
    }
    struct task_filter *filters = arena_array(&spec->arena, (size_t)count, sizeof(*filters));
    cJSON_ArrayForEach(member, array)
    {
        struct params inner;
        params_init(&inner, member, p->faults);
        inner.table = arena_printf(&spec->arena, "filters[%zu]", spec->n_filters);
        if (!cJSON_IsObject(member))
            params_fault(p, "filters", "[%zu] is not a table", spec->n_filters);
        else
            read_filter(spec, &inner, &filters[spec->n_filters]);
        spec->n_filters++;
    }
    spec->filters = filters;
}

static void add_metric(struct task_spec *spec, struct params *p, enum metric_kind kind,
                       const struct task_filter *filter)
{
    if (spec->n_metrics == SPEC_METRICS_MAX) {
        params_fault(p, "metrics", "more than %d metrics", SPEC_METRICS_MAX);
        return;
    }
    const char *name = metric_kind_name(kind);
    if (filter != NULL)
        name = arena_printf(&spec->arena, "%s:%s", name, filter->key);
    for (size_t i = 0; i < spec->n_metrics; i++)
        if (strcmp(spec->metrics[i].name, name) == 0)
            params_fault(p, "metrics", "'%s' is duplicated", name);
    spec->metrics[spec->n_metrics++] = (struct task_metric){kind, name, filter};
}

/* A metric by name; exact_match is one metric for each filter. */
static void take_metric(struct task_spec *spec, struct params *p, const char *name)
{
    const char *const *names = spec_metric_names();
    size_t kind = 0;
    while (kind < METRIC_NR && strcmp(names[kind], name) != 0)
        kind++;
    const char *nearest = text_nearest(name, names, METRIC_NR);
    if (kind == METRIC_NR && nearest != NULL)
        params_fault(p, "metrics", "no metric '%.40s'; did you mean '%s'?", name, nearest);
    else if (kind == METRIC_NR)
        params_fault(p, "metrics", "no metric '%.40s'", name);
    else if (!spec_metric_suits((enum metric_kind)kind, spec->kind))
        params_fault(p, "metrics", "'%s' cannot be had of a task of kind %s", name,
                     task_kind_name(spec->kind));
    else if (kind != METRIC_EXACT_MATCH || spec->n_filters == 0)
        add_metric(spec, p, (enum metric_kind)kind, NULL);
    else
        for (size_t i = 0; i < spec->n_filters; i++)
            add_metric(spec, p, METRIC_EXACT_MATCH, &spec->filters[i]);
}

static void read_metrics(struct task_spec *spec, struct params *p)
{
    const char *const *names = NULL;
    size_t n = 0;
    params_require(p, "metrics");
    spec_read_texts(spec, p, "metrics", &names, &n);
    for (size_t i = 0; i < n; i++)
        take_metric(spec, p, names[i]);
    if (n == 0 && params_has(p, "metrics"))
        params_fault(p, "metrics", "is empty");
}

/* Parents with their members; no group may have two. */
static void read_parents(struct task_spec *spec, struct params *p)
{
    const cJSON *obj = params_value(p, "parents");
    const cJSON *member = NULL;
    struct params inner;
    if (obj == NULL)
        return;
    if (!cJSON_IsObject(obj)) {
        params_fault(p, "parents", "expected a table of lists");
        return;
    }
    const int count = cJSON_GetArraySize(obj);
    struct task_parent *parents = arena_array(&spec->arena, (size_t)count + 1, sizeof(*parents));
    params_init(&inner, obj, p->faults);
    inner.table = "parents";
    cJSON_ArrayForEach(member, obj)
    {
        struct task_parent *parent = &parents[spec->n_parents];
        parent->name = arena_strdup(&spec->arena, member->string);
        if (spec->n_parents == PARAMS_KEYS_MAX) {
            params_fault(p, "parents", "more than %d", PARAMS_KEYS_MAX);
            break;
        }
        spec_read_texts(spec, &inner, parent->name, &parent->members, &parent->n_members);
        for (size_t i = 0; i < parent->n_members; i++)
            if (task_spec_parent_of(spec, parent->members[i]) != SIZE_MAX)
                params_fault(&inner, parent->name, "'%s' has a parent already", parent->members[i]);
        spec->n_parents++;
        spec->parents = parents;
    }
}

/* How examples are chosen and joined. */
static void read_few_shot(struct task_spec *spec, struct params *p)
{
    spec->delimiter = spec_keep_text(spec, p, "delimiter", " ");
    const bool is_dclm = spec->style == STYLE_DCLM;
    spec->shot_delimiter = spec_keep_text(spec, p, "shot_delimiter", is_dclm ? "\n" : "\n\n");
    spec->sampler = (enum sampler_kind)params_choice(p, "sampler", spec_sampler_names(), SAMPLER_NR,
                                                     is_dclm ? SAMPLER_DCLM : SAMPLER_RANDOM);
    spec->shots = (int)params_int(p, "shots", 0, SHOTS_MAX, 0);
    spec->draws_one_more = params_bool(p, "draws_one_more", false);
    spec->seed = (uint64_t)params_int(p, "seed", 0, JSON_INT_MAX, SEED_DEFAULT);
    const char *description = params_string(p, "description", NULL);
    struct err err = {0};
    if (description != NULL &&
        template_compile(&spec->arena, description, &spec->description, &err) != 0)
        params_fault(p, "description", "%s", err.msg);
}

/* Names end in .jsonl or .csv, stay inside the folder, and all or none have <group>. */
static void check_files(struct task_spec *spec, struct params *p)
{
    static const char *const fallback[] = {SPEC_MARK_SPLIT ".jsonl"};
    if (spec->n_files == 0) {
        spec->files = fallback;
        spec->n_files = 1;
    }
    const bool grouped = task_spec_has_groups(spec);
    for (size_t i = 0; i < spec->n_files; i++) {
        const char *file = spec->files[i];
        const size_t len = strlen(file);
        const bool jsonl = len > 6 && strcmp(file + len - 6, ".jsonl") == 0;
        const bool csv = len > 4 && strcmp(file + len - 4, ".csv") == 0;
        if (!jsonl && !csv)
            params_fault(p, "files", "'%s' ends neither in .jsonl nor in .csv", file);
        if (!path_stays_inside(file))
            params_fault(p, "files", "'%s' leaves the folder", file);
        const char *group = strstr(file, SPEC_MARK_GROUP);
        if (grouped != (group != NULL))
            params_fault(p, "files", "all have %s in them, or none", SPEC_MARK_GROUP);
        if (group != NULL && strchr(group, '/') != NULL)
            params_fault(p, "files", "'%s': %s is part of the file's name", file, SPEC_MARK_GROUP);
    }
}

static const char *keep_split(struct task_spec *spec, struct params *p, const char *key,
                              const char *fallback)
{
    const char *split = spec_keep_text(spec, p, key, fallback);
    if (!path_stays_inside(split))
        params_fault(p, key, "'%.60s' leaves the folder", split);
    return split;
}

static void read_data(struct task_spec *spec, struct params *p)
{
    spec->split = keep_split(spec, p, "split", "test");
    spec->fewshot_split = keep_split(spec, p, "fewshot_split", "train");
    spec_read_texts(spec, p, "files", &spec->files, &spec->n_files);
    spec_read_texts(spec, p, "columns", &spec->columns, &spec->n_columns);
    check_files(spec, p);
}

/* Keys of kind generate only. */
static void read_generation(struct task_spec *spec, struct params *p)
{
    spec->max_tokens = MAX_TOKENS_DEFAULT;
    if (spec->kind != TASK_GENERATE)
        return;
    spec->max_tokens = (int)params_int(p, "max_tokens", 1, MAX_TOKENS_MOST, MAX_TOKENS_DEFAULT);
    spec_read_texts(spec, p, "until", &spec->until, &spec->n_until);
    spec_read_texts(spec, p, "ignores", &spec->ignores, &spec->n_ignores);
    for (size_t i = 0; i < spec->n_ignores; i++)
        check_pattern(p, "ignores", spec->ignores[i]);
    spec->ignores_case = params_bool(p, "ignores_case", false);
    read_filters(spec, p);
}

/* The style and what only llm-foundry's has. */
static void read_style(struct task_spec *spec, struct params *p)
{
    spec->style = (enum task_style)params_choice(p, "style", spec_style_names(), TASK_STYLE_NR, 0);
    if (spec->style != STYLE_DCLM)
        return;
    if (spec->kind == TASK_ROLLING || spec->kind == TASK_GENERATE)
        params_fault(p, "style", "'dclm' has no tasks of kind %s", task_kind_name(spec->kind));
    const double v2 = params_number(p, "baseline", 0.0, 99.0, 0.0);
    spec->baselines[BASELINE_V2] = v2;
    spec->baselines[BASELINE_V1] = params_number(p, "baseline_v1", 0.0, 99.0, v2);
}

/* Kind and style come first, because they decide which other keys are allowed. */
void spec_read_task(struct task_spec *spec, struct params *p)
{
    params_require(p, "kind");
    spec->kind = (enum task_kind)params_choice(p, "kind", spec_kind_names(), TASK_KIND_NR, 0);
    read_style(spec, p);
    read_few_shot(spec, p);
    read_data(spec, p);
    read_generation(spec, p);
    read_metrics(spec, p);
    if (spec->style == STYLE_DCLM && (spec->n_metrics != 1 || spec->metrics[0].kind != METRIC_ACC))
        params_fault(p, "metrics", "a task of style dclm has acc and no other");
    read_parents(spec, p);
    spec_read_forms(spec, p);
}
