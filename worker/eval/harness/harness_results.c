/*
 * Writes the results file key by key in the harness's order, with pyjson for Python's formatting.
 * Values are copied from result.json, never computed again, so the two files cannot disagree. Where
 * the harness would record something about its own process (versions, seeds, times) there is null.
 */
#include "worker/eval/harness/harness_results.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json/json.h"
#include "base/json/pyjson.h"
#include "base/xalloc.h"
#include "worker/eval/harness/harness_names.h"

#define NAME_DIGITS 12 /* of the model's digest, used as its name */

/* The row's metric in result.json; NULL: it is not there. */
static const cJSON *find_metric(const struct harness_results *r, const struct harness_row *row,
                                const struct task_metric *m)
{
    /* The only group of a set has no name of its own there. */
    if (row->label == NULL || r->bench->set.n_groups == 1)
        return json_member(r->metrics, m->name);
    struct strbuf name = STRBUF_INIT;
    strbuf_addf(&name, "%s:%s", m->name, row->label);
    const cJSON *found = json_member(r->metrics, name.buf);
    strbuf_release(&name);
    return found;
}

const char *harness_results_missing(const struct harness_results *r)
{
    for (size_t i = 0; i < r->tree->n; i++) {
        const struct harness_row *row = &r->tree->rows[i];
        for (size_t m = 0; m < row->spec->n_metrics; m++) {
            const cJSON *found = find_metric(r, row, &row->spec->metrics[m]);
            if (!cJSON_IsNumber(json_member(found, "value")) ||
                !cJSON_IsNumber(json_member(found, "n")))
                return row->spec->metrics[m].name;
        }
    }
    return NULL;
}

/* The harness gives up on a group's standard error when a member has none. */
static bool has_error(const struct harness_results *r, const struct harness_row *row,
                      const struct task_metric *m)
{
    const size_t index = (size_t)(row - r->tree->rows);
    if (!cJSON_IsNumber(json_member(find_metric(r, row, m), "se")))
        return false;
    for (size_t i = index + 1; i < r->tree->n; i++) {
        if (r->tree->rows[i].parent == index && !has_error(r, &r->tree->rows[i], m))
            return false;
    }
    return true;
}

/* Value and standard error under "metric,filter" and "metric_stderr,filter". */
static void add_value(const struct harness_results *r, const struct harness_row *row,
                      const struct task_metric *m, struct pyjson *w)
{
    struct strbuf key = STRBUF_INIT;
    const cJSON *metric = find_metric(r, row, m);
    strbuf_addf(&key, "%s,%s", metric_kind_name(m->kind), harness_filter_name(m));
    pyjson_key(w, key.buf);
    pyjson_float(w, json_member(metric, "value")->valuedouble);
    strbuf_clear(&key);
    strbuf_addf(&key, "%s_stderr,%s", metric_kind_name(m->kind), harness_filter_name(m));
    pyjson_key(w, key.buf);
    if (has_error(r, row, m))
        pyjson_float(w, json_member(metric, "se")->valuedouble);
    else
        pyjson_string(w, "N/A");
    strbuf_release(&key);
}

/* The alias comes first where the task gives one itself, last where it is only the name. */
static void add_row(const struct harness_results *r, const struct harness_row *row,
                    struct pyjson *w)
{
    const struct task_spec *spec = row->spec;
    pyjson_key(w, row->name);
    pyjson_open(w, '{');
    if (row->label != NULL) {
        pyjson_key(w, "alias");
        pyjson_string(w, row->alias);
    }
    for (size_t i = 0; i < METRIC_NR; i++) {
        for (size_t m = 0; m < spec->n_metrics; m++) {
            if (spec->metrics[m].kind == harness_metric_order[i])
                add_value(r, row, &spec->metrics[m], w);
        }
    }
    if (row->label == NULL) {
        pyjson_key(w, "alias");
        pyjson_string(w, row->alias);
    }
    pyjson_close(w, '}');
}

/* "results" for every row, and "groups" for the rows that are groups. */
static void add_values(const struct harness_results *r, struct pyjson *w)
{
    const struct harness_tree *tree = r->tree;
    pyjson_key(w, "results");
    pyjson_open(w, '{');
    for (size_t i = 0; i < tree->n; i++)
        add_row(r, &tree->rows[i], w);
    pyjson_close(w, '}');
    if (!harness_row_is_group(&tree->rows[0]))
        return;
    pyjson_key(w, "groups");
    pyjson_open(w, '{');
    for (size_t i = 0; i < tree->n; i++) {
        if (harness_row_is_group(&tree->rows[i]))
            add_row(r, &tree->rows[i], w);
    }
    pyjson_close(w, '}');
}

/* The names of the rows directly under this one. */
static void add_members(const struct harness_tree *tree, size_t index, struct pyjson *w)
{
    pyjson_key(w, tree->rows[index].name);
    pyjson_open(w, '[');
    for (size_t i = index + 1; i < tree->n; i++) {
        if (tree->rows[i].parent == index)
            pyjson_string(w, tree->rows[i].name);
    }
    pyjson_close(w, ']');
}

/* Groups of groups come after their members. */
static void add_group_subtasks(const struct harness_tree *tree, struct pyjson *w)
{
    pyjson_key(w, "group_subtasks");
    pyjson_open(w, '{');
    for (size_t i = 1; i < tree->n; i++) {
        if (harness_row_is_group(&tree->rows[i]))
            add_members(tree, i, w);
    }
    add_members(tree, 0, w);
    pyjson_close(w, '}');
}

/* "configs" and "versions" of the tasks, sorted by name. */
static void add_configs(const struct harness_results *r, const struct harness_row *const *sorted,
                        struct pyjson *w)
{
    pyjson_key(w, "configs");
    pyjson_open(w, '{');
    for (size_t i = 0; i < r->tree->n; i++) {
        if (harness_row_is_group(sorted[i]))
            continue;
        pyjson_key(w, sorted[i]->name);
        harness_config_add(r, sorted[i], w);
    }
    pyjson_close(w, '}');
    pyjson_key(w, "versions");
    pyjson_open(w, '{');
    for (size_t i = 0; i < r->tree->n; i++) {
        if (harness_row_is_group(sorted[i]))
            continue;
        pyjson_key(w, sorted[i]->name);
        harness_add_version(w, sorted[i]->spec->version);
    }
    pyjson_close(w, '}');
}

/* The per-task tables, each sorted by name. */
static void add_tables(const struct harness_results *r, struct pyjson *w)
{
    const struct harness_row **sorted = harness_tree_sorted(r->tree);
    add_configs(r, sorted, w);
    pyjson_key(w, "n-shot");
    pyjson_open(w, '{');
    for (size_t i = 0; i < r->tree->n; i++) {
        pyjson_key(w, sorted[i]->name);
        pyjson_int(w, harness_shots(r, sorted[i]));
    }
    pyjson_close(w, '}');
    pyjson_key(w, "higher_is_better");
    pyjson_open(w, '{');
    for (size_t i = 0; i < r->tree->n; i++) {
        const struct task_spec *spec = sorted[i]->spec;
        pyjson_key(w, sorted[i]->name);
        pyjson_open(w, '{');
        for (size_t m = 0; m < spec->n_metrics; m++) {
            if (m > 0 && spec->metrics[m].kind == spec->metrics[m - 1].kind)
                continue; /* one a filter */
            pyjson_key(w, metric_kind_name(spec->metrics[m].kind));
            pyjson_bool(w, harness_higher_is_better(spec->metrics[m].kind));
        }
        pyjson_close(w, '}');
    }
    pyjson_close(w, '}');
    free(sorted);
}

/* As in the harness, of the tasks alone. Items that could not be asked are none. */
static void add_sizes(const struct harness_results *r, struct pyjson *w)
{
    pyjson_key(w, "n-samples");
    pyjson_open(w, '{');
    for (size_t i = 0; i < r->tree->n; i++) {
        const struct harness_row *row = &r->tree->rows[i];
        if (harness_row_is_group(row))
            continue;
        pyjson_key(w, row->name);
        pyjson_open(w, '{');
        pyjson_key(w, "original");
        pyjson_int(w, (int64_t)r->bench->set.groups[row->group].n);
        pyjson_key(w, "effective");
        pyjson_int(
            w, (int64_t)json_member(find_metric(r, row, &row->spec->metrics[0]), "n")->valuedouble);
        pyjson_close(w, '}');
    }
    pyjson_close(w, '}');
}

/* Keys that the harness fills and we cannot. */
static void add_nulls(struct pyjson *w, const char *const *keys, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        pyjson_key(w, keys[i]);
        pyjson_null(w);
    }
}

/* "config": the model and the settings of the run. */
static void add_config(const struct harness_results *r, struct pyjson *w)
{
    static const char *const seeds[] = {"gen_kwargs", "random_seed", "numpy_seed", "torch_seed"};
    const struct harness_model *model = r->model;
    /* A drawn subset leaves items out as a limit does, and readers must see that it does. */
    const int64_t limit = r->options->limit > 0 ? r->options->limit : r->options->subset_count;
    struct strbuf args = STRBUF_INIT;
    strbuf_adds(&args, "model=");
    harness_model_name(model, &args);
    strbuf_addf(&args, ",sha256=%s,dtype=float32", model->sha256);
    pyjson_key(w, "config");
    pyjson_open(w, '{');
    pyjson_key(w, "model");
    pyjson_string(w, HARNESS_MODEL_SOURCE);
    pyjson_key(w, "model_args");
    pyjson_string(w, args.buf);
    pyjson_key(w, "model_num_parameters");
    pyjson_int(w, model->parameters);
    pyjson_key(w, "model_dtype");
    pyjson_string(w, "float32");
    pyjson_key(w, "model_revision");
    pyjson_null(w);
    pyjson_key(w, "model_sha");
    pyjson_string(w, model->sha256);
    pyjson_key(w, "batch_size");
    pyjson_null(w);
    pyjson_key(w, "batch_sizes");
    pyjson_open(w, '[');
    pyjson_close(w, ']');
    pyjson_key(w, "device");
    pyjson_string(w, "cpu");
    pyjson_key(w, "use_cache");
    pyjson_null(w);
    pyjson_key(w, "limit");
    if (limit > 0)
        pyjson_float(w, (double)limit);
    else
        pyjson_null(w);
    pyjson_key(w, "bootstrap_iters");
    pyjson_int(w, r->bootstrap);
    add_nulls(w, seeds, ARRAY_LEN(seeds));
    pyjson_key(w, "fewshot_seed");
    pyjson_int(w, (int64_t)r->tree->rows[0].spec->seed);
    pyjson_close(w, '}');
    strbuf_release(&args);
}

static void add_token(const struct harness_model *model, bool there, const char *key,
                      struct pyjson *w)
{
    pyjson_key(w, key);
    pyjson_open(w, '[');
    pyjson_string(w, there ? model->end_text : NULL);
    if (there)
        pyjson_int(w, model->end_id);
    else
        pyjson_null(w);
    pyjson_close(w, ']');
}

/* What the harness appends about its surroundings; tokens as [text, id]. */
static void add_environment(const struct harness_results *r, struct pyjson *w)
{
    static const char *const nulls[] = {"transformers_version", "upper_git_hash"};
    const struct harness_model *model = r->model;
    pyjson_key(w, "git_hash");
    pyjson_null(w);
    pyjson_key(w, "date");
    if (isnan(r->date))
        pyjson_null(w);
    else
        pyjson_float(w, r->date);
    pyjson_key(w, "pretty_env_info");
    pyjson_string(w, model->environment);
    add_nulls(w, nulls, ARRAY_LEN(nulls));
    add_token(model, false, "tokenizer_pad_token", w);
    add_token(model, true, "tokenizer_eos_token", w);
    add_token(model, true, "tokenizer_bos_token", w);
    pyjson_key(w, "eot_token_id");
    pyjson_int(w, model->end_id);
    pyjson_key(w, "max_length");
    pyjson_int(w, model->max_length);
}

/* Hashes, names and times that the harness's tracker adds. */
static void add_tracker(const struct harness_results *r, struct pyjson *w)
{
    static const char *const before[] = {"system_instruction", "system_instruction_sha"};
    static const char *const after[] = {"chat_template", "chat_template_sha", "start_time",
                                        "end_time", "total_evaluation_time_seconds"};
    struct strbuf name = STRBUF_INIT;
    harness_model_name(r->model, &name);
    pyjson_key(w, "task_hashes");
    pyjson_open(w, '{');
    for (size_t i = 0; r->hashes != NULL && i < r->tree->n; i++) {
        if (harness_row_is_group(&r->tree->rows[i]))
            continue;
        pyjson_key(w, r->tree->rows[i].name);
        pyjson_string(w, r->hashes[i]);
    }
    pyjson_close(w, '}');
    pyjson_key(w, "model_source");
    pyjson_string(w, HARNESS_MODEL_SOURCE);
    pyjson_key(w, "model_name");
    pyjson_string(w, name.buf);
    pyjson_key(w, "model_name_sanitized");
    pyjson_string(w, name.buf);
    add_nulls(w, before, ARRAY_LEN(before));
    pyjson_key(w, "fewshot_as_multiturn");
    pyjson_bool(w, false);
    add_nulls(w, after, ARRAY_LEN(after));
    strbuf_release(&name);
}

void harness_results_add(const struct harness_results *r, struct strbuf *out)
{
    struct pyjson w;
    pyjson_init(&w, out, 2);
    pyjson_open(&w, '{');
    add_values(r, &w);
    add_group_subtasks(r->tree, &w);
    add_tables(r, &w);
    add_sizes(r, &w);
    add_config(r, &w);
    add_environment(r, &w);
    add_tracker(r, &w);
    pyjson_close(&w, '}');
}

void harness_model_name(const struct harness_model *model, struct strbuf *out)
{
    strbuf_addf(out, "prereg-%.*s", NAME_DIGITS, model->sha256);
}
