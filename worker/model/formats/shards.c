/*
 * With an index, the distinct file names of its weight map are opened in sorted order; without one,
 * the single file is. Names from the index are confined to the folder: no slash, no leading dot.
 * The tensors of all files are then one sorted list, which must match the map in number and names.
 *
 * A folder with both model.safetensors and an index is read from model.safetensors, as transformers
 * does.
 */
#include "worker/model/formats/shards.h"

#include <stdlib.h>

#include "base/files/file.h"
#include "base/json/json.h"
#include "base/xalloc.h"
#include "worker/model/formats/hf.h"

#define INDEX_MAX (100u << 20)

static int open_one(struct shards *s, const char *folder, const char *name, struct err *err)
{
    char *path = path_join(folder, name);

    s->files = xreallocarray(s->files, s->n + 1, sizeof(*s->files));
    int rc = safetensors_open(path, &s->files[s->n], err);
    if (rc == 0)
        s->n++;
    free(path);
    return rc;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* The distinct files of the weight map, sorted; names point into it. */
static int list_files(const cJSON *map, const char ***out, size_t *n_out, struct err *err)
{
    const char **names = xcalloc((size_t)cJSON_GetArraySize(map) + 1, sizeof(*names));
    const cJSON *v;
    size_t n = 0, distinct = 0;

    *out = names;
    cJSON_ArrayForEach(v, map)
    {
        if (!cJSON_IsString(v) || v->valuestring[0] == '\0' || v->valuestring[0] == '.' ||
            strchr(v->valuestring, '/') != NULL)
            return err_set(err, ERR_CORRUPT, "weight_map: %.80s: expected a file of the folder",
                           v->string);
        names[n++] = v->valuestring;
    }
    qsort(names, n, sizeof(*names), by_text);
    for (size_t i = 0; i < n; i++)
        if (i == 0 || strcmp(names[i], names[distinct - 1]) != 0)
            names[distinct++] = names[i];
    if (distinct > SHARDS_MAX)
        return err_set(err, ERR_CORRUPT, "weight_map: %zu files; at most %d", distinct, SHARDS_MAX);
    *n_out = distinct;
    return 0;
}

static int by_tensor_name(const void *a, const void *b)
{
    const struct shards_tensor *x = a, *y = b;

    return strcmp(x->entry->name, y->entry->name);
}

/* Makes the list of all tensors; none may be there twice. */
static int list_tensors(struct shards *s, struct err *err)
{
    size_t n = 0;

    for (size_t i = 0; i < s->n; i++)
        n += s->files[i].n;
    s->tensors = xcalloc(n, sizeof(*s->tensors));
    for (size_t i = 0; i < s->n; i++)
        for (size_t j = 0; j < s->files[i].n; j++)
            s->tensors[s->n_tensors++] =
                (struct shards_tensor){.entry = &s->files[i].entries[j], .file = &s->files[i]};
    qsort(s->tensors, n, sizeof(*s->tensors), by_tensor_name);
    for (size_t i = 1; i < n; i++)
        if (by_tensor_name(&s->tensors[i - 1], &s->tensors[i]) == 0)
            return err_set(err, ERR_CORRUPT, "tensor %.80s is in two files",
                           s->tensors[i].entry->name);
    return 0;
}

/* Same number and every name found: the map and the files list the same tensors. */
static int check_map(const struct shards *s, const cJSON *map, struct err *err)
{
    const cJSON *v;

    if (s->n_tensors != (size_t)cJSON_GetArraySize(map))
        return err_set(err, ERR_CORRUPT, "weight_map names %d tensors, the files hold %zu",
                       cJSON_GetArraySize(map), s->n_tensors);
    cJSON_ArrayForEach(v, map)
    {
        if (shards_find(s, v->string) == NULL)
            return err_set(err, ERR_CORRUPT, "weight_map: tensor %.80s is not there", v->string);
    }
    return 0;
}

static int open_index(const char *folder, struct shards *s, struct err *err)
{
    const cJSON *map = NULL;
    const char **names = NULL;
    size_t n = 0;

    int rc = json_get_object(s->index, "weight_map", &map, err);
    if (rc == 0)
        rc = list_files(map, &names, &n, err);
    for (size_t i = 0; rc == 0 && i < n; i++)
        rc = open_one(s, folder, names[i], err);
    free(names);
    if (rc == 0)
        rc = list_tensors(s, err);
    return rc == 0 ? check_map(s, map, err) : rc;
}

int shards_open(const char *folder, struct shards *s, struct err *err)
{
    char *index = path_join(folder, HF_FILE_INDEX), *single = path_join(folder, HF_FILE_WEIGHTS);
    int rc;

    *s = (struct shards){0};
    if (file_kind_at(single) != FILE_REGULAR && file_kind_at(index) == FILE_REGULAR) {
        rc = json_read_file(index, INDEX_MAX, &s->index, err);
        if (rc == 0)
            rc = open_index(folder, s, err);
        if (rc < 0 && rc != ERR_IO && rc != ERR_NOT_FOUND)
            rc = err->code = ERR_CORRUPT;
        if (rc < 0)
            (void)err_wrap(err, "%s", HF_FILE_INDEX);
    } else {
        rc = open_one(s, folder, HF_FILE_WEIGHTS, err);
        if (rc == 0)
            rc = list_tensors(s, err);
    }
    free(index);
    free(single);
    if (rc < 0)
        shards_close(s);
    return rc;
}

void shards_close(struct shards *s)
{
    for (size_t i = 0; i < s->n; i++)
        safetensors_close(&s->files[i]);
    free(s->files);
    free(s->tensors);
    cJSON_Delete(s->index);
    *s = (struct shards){0};
}

const struct shards_tensor *shards_find(const struct shards *s, const char *name)
{
    const struct safetensors_entry entry = {.name = name};
    const struct shards_tensor key = {.entry = &entry};

    return bsearch(&key, s->tensors, s->n_tensors, sizeof(*s->tensors), by_tensor_name);
}
