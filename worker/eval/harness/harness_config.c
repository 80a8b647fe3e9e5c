/*
 * The part of a results file that describes one task's configuration: what the harness would have
 * read from its YAML, in its order of keys. Values come from the task description, which holds the
 * harness's own texts; data is named by digest instead of by a path on some hub.
 */
#include <string.h>

#include "worker/eval/harness/harness_names.h"
#include "worker/eval/harness/harness_results.h"

int harness_shots(const struct harness_results *r, const struct harness_row *row)
{
    return r->options->shots < 0 ? row->spec->shots : r->options->shots;
}

int harness_max_tokens(const struct eval_options *o, const struct task_spec *spec)
{
    return o->max_tokens > 0 ? o->max_tokens : spec->max_tokens;
}

static void add_text(struct pyjson *w, const char *key, const char *value)
{
    pyjson_key(w, key);
    pyjson_string(w, value);
}

static void add_digest(struct pyjson *w, const char *key, const struct digest *d)
{
    char hex[DIGEST_HEX_SIZE];
    digest_hex(d, hex);
    add_text(w, key, hex);
}

/* The task's name and alias, and its group's where it has one. */
static void add_place(const struct harness_results *r, const struct harness_row *row,
                      struct pyjson *w)
{
    const struct harness_row *parent =
        row->parent == HARNESS_NONE ? NULL : &r->tree->rows[row->parent];
    add_text(w, "task", row->name);
    if (row->label != NULL)
        add_text(w, "task_alias", row->label);
    if (parent != NULL)
        add_text(w, "group", parent->name);
    if (parent != NULL && parent->label != NULL)
        add_text(w, "group_alias", parent->label);
}

/* Data are named by digest; their paths are left out on purpose. */
static void add_data(const struct harness_results *r, struct pyjson *w)
{
    const struct eval_options *o = r->options;
    add_text(w, "dataset_path", o->data.name);
    pyjson_key(w, "dataset_kwargs");
    pyjson_open(w, '{');
    add_digest(w, "sha256", &r->data);
    if (!digest_is_zero(&r->fewshot_data)) {
        add_text(w, "fewshot_data", o->fewshot_data.name);
        add_digest(w, "fewshot_sha256", &r->fewshot_data);
    }
    pyjson_close(w, '}');
    add_text(w, "test_split", o->split);
    add_text(w, "fewshot_split", o->fewshot_split);
}

static void add_exact_match(const struct task_spec *spec, struct pyjson *w)
{
    pyjson_key(w, "ignore_case");
    pyjson_bool(w, spec->ignores_case);
    pyjson_key(w, "ignore_punctuation");
    pyjson_bool(w, false);
    pyjson_key(w, "regexes_to_ignore");
    pyjson_open(w, '[');
    for (size_t i = 0; i < spec->n_ignores; i++)
        pyjson_string(w, spec->ignores[i]);
    pyjson_close(w, ']');
}

/* Each kind of metric once, although several filters may share it. */
static void add_metrics(const struct task_spec *spec, struct pyjson *w)
{
    pyjson_key(w, "metric_list");
    pyjson_open(w, '[');
    for (size_t m = 0; m < spec->n_metrics; m++) {
        const enum metric_kind kind = spec->metrics[m].kind;
        if (m > 0 && kind == spec->metrics[m - 1].kind)
            continue; /* one a filter */
        pyjson_open(w, '{');
        add_text(w, "metric", metric_kind_name(kind));
        add_text(w, "aggregation", harness_aggregation(kind));
        pyjson_key(w, "higher_is_better");
        pyjson_bool(w, harness_higher_is_better(kind));
        if (kind == METRIC_EXACT_MATCH)
            add_exact_match(spec, w);
        pyjson_close(w, '}');
    }
    pyjson_close(w, ']');
}

/* One entry of filter_list: the regular expression, then take_first. */
static void add_filter(const struct task_filter *filter, struct pyjson *w)
{
    pyjson_open(w, '{');
    add_text(w, "name", filter->name);
    pyjson_key(w, "filter");
    pyjson_open(w, '[');
    pyjson_open(w, '{');
    add_text(w, "function", "regex");
    if (filter->select != 0) {
        pyjson_key(w, "group_select");
        pyjson_int(w, filter->select);
    }
    add_text(w, "regex_pattern", filter->pattern);
    pyjson_close(w, '}');
    pyjson_open(w, '{');
    add_text(w, "function", "take_first");
    pyjson_close(w, '}');
    pyjson_close(w, ']');
    pyjson_close(w, '}');
}

static void add_generation(const struct harness_results *r, const struct task_spec *spec,
                           struct pyjson *w)
{
    if (spec->kind != TASK_GENERATE)
        return;
    pyjson_key(w, "generation_kwargs");
    harness_add_generation(spec, harness_max_tokens(r->options, spec), w);
}

static void add_filters(const struct task_spec *spec, struct pyjson *w)
{
    if (spec->n_filters == 0)
        return;
    pyjson_key(w, "filter_list");
    pyjson_open(w, '[');
    for (size_t i = 0; i < spec->n_filters; i++)
        add_filter(&spec->filters[i], w);
    pyjson_close(w, ']');
}

void harness_config_add(const struct harness_results *r, const struct harness_row *row,
                        struct pyjson *w)
{
    const struct task_spec *spec = row->spec;
    pyjson_open(w, '{');
    add_place(r, row, w);
    add_data(r, w);
    add_text(w, "description", r->bench->set.groups[row->group].description);
    add_text(w, "target_delimiter", spec->delimiter);
    add_text(w, "fewshot_delimiter", spec->shot_delimiter);
    if (spec->sampler == SAMPLER_FIRST) {
        pyjson_key(w, "fewshot_config");
        pyjson_open(w, '{');
        add_text(w, "sampler", "first_n");
        pyjson_close(w, '}');
    }
    pyjson_key(w, "num_fewshot");
    pyjson_int(w, harness_shots(r, row));
    add_metrics(spec, w);
    add_text(w, "output_type", harness_output_type(spec->kind));
    add_generation(r, spec, w);
    pyjson_key(w, "repeats");
    pyjson_int(w, 1);
    add_filters(spec, w);
    pyjson_key(w, "should_decontaminate");
    pyjson_bool(w, false);
    pyjson_key(w, "metadata");
    pyjson_open(w, '{');
    pyjson_key(w, "version");
    harness_add_version(w, spec->version);
    add_digest(w, "description_sha256", &spec->digest);
    pyjson_close(w, '}');
    pyjson_close(w, '}');
}
