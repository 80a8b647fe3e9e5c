/*
 * How the files of a stage were made: what ought to be alike in every cell, so that the cells
 * differ in the plan's factors and in nothing else. Kept as stage -> setting -> value -> {n, first
 * cell}.
 */
#include <string.h>

#include "base/json/json.h"
#include "base/strbuf.h"
#include "truthtable/imported/import.h"

#define SHOWN_VALUES 4
#define SHOWN_BYTES  60

/* Members of model_args that say where something is. They differ between cells by design. A base
 * model and its adapter are one model together; a tokenizer is not part of it. */
static const char *const place_keys[] = {"pretrained", "model", "path",     "engine",
                                         "peft",       "delta", "tokenizer"};

#define N_PLACES      (sizeof(place_keys) / sizeof(place_keys[0]))
#define N_MODEL_PARTS (N_PLACES - 1)

/* The value of each location, empty where there is none; the first of a repeated key. */
struct model_places {
    struct strbuf values[N_PLACES];
};

/* Which location a member of model_args names; N_PLACES: none. */
static size_t place_of(const char *key, size_t len)
{
    size_t i = 0;
    while (i < N_PLACES &&
           (strlen(place_keys[i]) != len || strncmp(place_keys[i], key, len) != 0)) {
        i++;
    }
    return i;
}

/* Counts a value of a setting, with the first cell that had it. */
static void note(struct import *im, const struct import_task *t, const char *setting,
                 const char *value)
{
    const char *stage = im->program->stages[t->stage].name;
    cJSON *of_stage = cJSON_GetObjectItemCaseSensitive(im->settings, stage);
    if (of_stage == NULL) {
        of_stage = json_object();
        json_put(im->settings, stage, of_stage);
    }
    cJSON *values = cJSON_GetObjectItemCaseSensitive(of_stage, setting);
    if (values == NULL) {
        values = json_object();
        json_put(of_stage, setting, values);
    }
    /* The first cell of a value serves as an example in the warning. */
    cJSON *seen = cJSON_GetObjectItemCaseSensitive(values, value);
    if (seen == NULL) {
        seen = json_object();
        json_put_int(seen, "n", 0);
        json_put_string(seen, "first", im->program->cells[t->cell].name);
        json_put(values, value, seen);
    }
    cJSON *n = cJSON_GetObjectItemCaseSensitive(seen, "n");
    cJSON_SetNumberValue(n, n->valuedouble + 1);
}

/* Absent and null are one: an older version did not write the key. */
static void note_json(struct import *im, const struct import_task *t, const char *setting,
                      const cJSON *v)
{
    struct strbuf text = STRBUF_INIT;
    struct err ignored = {0};
    if (cJSON_IsString(v)) {
        note(im, t, setting, v->valuestring);
    } else if (v != NULL && !cJSON_IsNull(v) && json_line(v, &text, &ignored) == 0) {
        note(im, t, setting, text.buf);
    } else {
        note(im, t, setting, "not said");
    }
    strbuf_release(&text);
}

/* "pretrained=/m,dtype=float32": separates the locations from the other arguments. */
static void split_args(const char *args, struct strbuf *rest, struct model_places *places)
{
    while (*args != '\0') {
        const size_t len = strcspn(args, ",");
        const size_t key = strcspn(args, "=,");
        const size_t place = place_of(args, key);
        if (place == N_PLACES) {
            strbuf_addf(rest, "%s%.*s", rest->len > 0 ? "," : "", (int)len, args);
        } else if (places->values[place].len == 0 && key < len) {
            strbuf_add(&places->values[place], args + key + 1, len - key - 1);
        }
        args += len + (args[len] == ',' ? 1 : 0);
    }
}

/* The same where model_args is an object, as later versions write it. */
static void split_object(const cJSON *args, struct strbuf *rest, struct model_places *places)
{
    for (const cJSON *v = args->child; v != NULL; v = v->next) {
        struct err ignored = {0};
        const size_t place = place_of(v->string, strlen(v->string));
        if (place < N_PLACES) {
            struct strbuf *value = &places->values[place];
            strbuf_adds(value, cJSON_IsString(v) && value->len == 0 ? v->valuestring : "");
            continue;
        }
        strbuf_addf(rest, "%s%s=", rest->len > 0 ? "," : "", v->string);
        if (cJSON_IsString(v)) {
            strbuf_adds(rest, v->valuestring);
        } else if (json_line(v, rest, &ignored) != 0) {
            strbuf_adds(rest, "?");
        }
    }
}

/* "/m", "/base with peft /adapter": what the cell ran, whatever the order of its arguments. */
static void name_model(const struct model_places *places, struct strbuf *model)
{
    for (size_t i = 0; i < N_MODEL_PARTS; i++) {
        const struct strbuf *value = &places->values[i];
        if (value->len > 0 && model->len == 0) {
            strbuf_adds(model, value->buf);
        } else if (value->len > 0) {
            strbuf_addf(model, " with %s %s", place_keys[i], value->buf);
        }
    }
}

/* Model arguments, and the model itself: one model for two cells is worth a warning. */
static void note_model(struct import *im, const struct import_task *t)
{
    const cJSON *args = json_member(json_member(t->results->json, "config"), "model_args");
    const char *cell = im->program->cells[t->cell].name;
    struct strbuf rest = STRBUF_INIT;
    struct strbuf model = STRBUF_INIT;
    struct model_places places;
    for (size_t i = 0; i < N_PLACES; i++) {
        places.values[i] = (struct strbuf)STRBUF_INIT;
    }
    if (cJSON_IsString(args)) {
        split_args(args->valuestring, &rest, &places);
    } else if (cJSON_IsObject(args)) {
        split_object(args, &rest, &places);
    }
    note(im, t, "model_args", rest.len == 0 ? "not said" : rest.buf);
    name_model(&places, &model);
    if (model.len > 0) {
        const cJSON *owner = json_member(im->models, model.buf);
        /* The first cell owns the model; another one is a warning. */
        if (owner == NULL) {
            json_put_string(im->models, model.buf, cell);
        } else if (strcmp(owner->valuestring, cell) != 0) {
            import_warn(im, "one model for two cells: %.100s for %s and for %s", model.buf,
                        owner->valuestring, cell);
        }
    }
    for (size_t i = 0; i < N_PLACES; i++) {
        strbuf_release(&places.values[i]);
    }
    strbuf_release(&rest);
    strbuf_release(&model);
}

/* A digest of the task's own settings, without metadata, which may contain paths. */
static void note_config(struct import *im, const struct import_task *t)
{
    const cJSON *config = t->leaves[0]->config;
    struct strbuf text = STRBUF_INIT;
    struct err ignored = {0};
    if (!cJSON_IsObject(config)) {
        note(im, t, "task settings", "not said");
        return;
    }
    cJSON *copy = json_copy(config);
    cJSON_DeleteItemFromObjectCaseSensitive(copy, "metadata");
    char hex[DIGEST_HEX_SIZE] = "not canonical";
    if (json_canonical(copy, &text, &ignored) == 0) {
        struct digest d = digest_bytes(text.buf, text.len);
        digest_hex(&d, hex);
        hex[12] = '\0';
    }
    note(im, t, "task settings", hex);
    cJSON_Delete(copy);
    strbuf_release(&text);
}

/* Items and prompts, over all leaves, when every one has its hash. */
static void note_items(struct import *im, const struct import_task *t)
{
    const cJSON *hashes = json_member(t->results->json, "task_hashes");
    struct digest_stream all;
    char hex[DIGEST_HEX_SIZE];
    digest_start(&all);
    for (size_t i = 0; i < t->n_leaves; i++) {
        const cJSON *h = json_member(hashes, t->leaves[i]->task);
        if (!cJSON_IsString(h)) {
            return; /* logged by --log_samples alone */
        }
        digest_add(&all, h->valuestring, strlen(h->valuestring));
    }
    struct digest d = digest_finish(&all);
    digest_hex(&d, hex);
    hex[12] = '\0';
    note(im, t, "items and prompts (task_hashes)", hex);
}

/* The plan's number of shots against the one that was run. */
static void check_shots(struct import *im, const struct import_task *t, const cJSON *shots)
{
    cJSON *params = program_task_params(im->program, t->stage, t->cell);
    const cJSON *planned = json_member(params, "shots");
    if (cJSON_IsNumber(planned) && cJSON_IsNumber(shots) &&
        planned->valuedouble != shots->valuedouble) {
        import_warn(im, "the plan says shots = %g for %s, which was run with n-shot %g",
                    planned->valuedouble, im->program->stages[t->stage].name, shots->valuedouble);
    }
    cJSON_Delete(params);
}

/* Notes every setting of one task; nothing is compared yet. */
void settings_note(struct import *im, const struct import_task *t)
{
    static const char *const of_run[] = {"limit",       "gen_kwargs", "fewshot_seed", "random_seed",
                                         "numpy_seed",  "torch_seed", "batch_size",   "num_fewshot",
                                         "model_dtype", "model"};
    static const char *const of_file[] = {"lm_eval_version",      "git_hash",
                                          "transformers_version", "max_length",
                                          "chat_template_sha",    "system_instruction_sha",
                                          "fewshot_as_multiturn"};
    const cJSON *json = t->results->json;
    const char *leaf = t->leaves[0]->task;
    const cJSON *shots = json_member(json_member(json, "n-shot"), leaf);
    note(im, t, "task", t->entry->task);
    note_json(im, t, "n-shot", shots);
    note_json(im, t, "task version", json_member(json_member(json, "versions"), leaf));
    for (size_t i = 0; i < sizeof(of_run) / sizeof(of_run[0]); i++) {
        note_json(im, t, of_run[i], json_member(json_member(json, "config"), of_run[i]));
    }
    for (size_t i = 0; i < sizeof(of_file) / sizeof(of_file[0]); i++) {
        note_json(im, t, of_file[i], json_member(json, of_file[i]));
    }
    note_model(im, t);
    note_config(im, t);
    note_items(im, t);
    check_shots(im, t, shots);
}

/* A setting with two values within a stage becomes a warning that shows the first few. */
void settings_compare(struct import *im)
{
    const cJSON *stage = NULL;
    const cJSON *setting = NULL;
    cJSON_ArrayForEach(stage, im->settings)
    {
        cJSON_ArrayForEach(setting, stage)
        {
            struct strbuf text = STRBUF_INIT;
            int n = 0;
            /* A few values are enough to see the difference. */
            for (const cJSON *v = setting->child; v != NULL && n < SHOWN_VALUES; v = v->next) {
                strbuf_addf(&text, "%s%.*s (%g, first %s)", n++ == 0 ? "" : " and ", SHOWN_BYTES,
                            v->string, json_member(v, "n")->valuedouble,
                            json_member(v, "first")->valuestring);
            }
            if (n > 1) {
                const int more = cJSON_GetArraySize(setting) - n;
                import_warn(im, "configs differ in %s: %s %s%s", stage->string, setting->string,
                            text.buf, more > 0 ? " and more" : "");
            }
            strbuf_release(&text);
        }
    }
}
