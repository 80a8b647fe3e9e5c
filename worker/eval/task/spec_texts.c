/* Reads a text, or a list of texts, of a task's description into the task's arena. */
#include "worker/eval/task/spec_private.h"

const char *spec_keep_text(struct task_spec *spec, struct params *p, const char *key,
                           const char *fallback)
{
    const char *s = params_string(p, key, fallback);
    return s == NULL ? NULL : arena_strdup(&spec->arena, s);
}

void spec_read_texts(struct task_spec *spec, struct params *p, const char *key,
                     const char *const **out, size_t *n)
{
    const cJSON *array = params_value(p, key);
    const cJSON *member = NULL;
    *n = 0;
    *out = NULL;
    if (array == NULL)
        return;
    const int count = cJSON_GetArraySize(array);
    if (!cJSON_IsArray(array) || count > SPEC_LIST_MAX) {
        params_fault(p, key, "expected a list of at most %d texts", SPEC_LIST_MAX);
        return;
    }
    const char **texts = arena_array(&spec->arena, (size_t)count + 1, sizeof(*texts));
    cJSON_ArrayForEach(member, array)
    {
        if (!cJSON_IsString(member) || member->valuestring[0] == '\0') {
            params_fault(p, key, "[%zu] is not a text, or an empty one", *n);
            break;
        }
        texts[(*n)++] = arena_strdup(&spec->arena, member->valuestring);
    }
    *out = texts;
}
