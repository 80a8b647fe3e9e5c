/* GPUs that a file describes (PREREG_GPUS), for tests and for trying a program without the machine
 * that it is meant for. The file is read at every call. */
#include <string.h>

#include "base/files/file.h"
#include "base/json/json.h"
#include "base/text.h"
#include "base/xalloc.h"
#include "daemon/gpus/gpus.h"

/* Fails at a member of another name: a person wrote the file, and a misspelled key would be lost.
 */
static int check_keys(const cJSON *o, const char *const *known, size_t n, struct err *err)
{
    const cJSON *m = NULL;
    cJSON_ArrayForEach(m, o)
    {
        size_t i = 0;
        while (i < n && m->string != NULL && strcmp(m->string, known[i]) != 0) {
            i++;
        }
        if (i == n) {
            const char *near = text_nearest(m->string, known, n);
            return err_set(err, ERR_SYNTAX, "\"%.60s\": unknown key%s%s%s", m->string,
                           near == NULL ? "" : "; did you mean \"", near == NULL ? "" : near,
                           near == NULL ? "" : "\"?");
        }
    }
    return 0;
}

/* The keys of every GPU and of its processes. What is not an object was refused before. */
static int check_all_keys(const cJSON *list, struct err *err)
{
    static const char *const of_gpu[] = {"uuid",       "index",  "vendor",
                                         "model",      "driver", "memory_bytes",
                                         "free_bytes", "ecc",    "processes"};
    static const char *const of_process[] = {"pid",          "name", "user",
                                             "memory_bytes", "mark", "attempt"};
    const cJSON *gpu = NULL;
    size_t n = 0;
    cJSON_ArrayForEach(gpu, list)
    {
        const cJSON *process = NULL;
        int rc = check_keys(gpu, of_gpu, ARRAY_LEN(of_gpu), err);
        n++;
        cJSON_ArrayForEach(process, json_member(gpu, "processes"))
        {
            rc = rc == 0 ? check_keys(process, of_process, ARRAY_LEN(of_process), err) : rc;
        }
        if (rc != 0) {
            return err_wrap(err, "GPU %zu", n);
        }
    }
    return 0;
}

static int read_list(const struct strbuf *text, struct gpu_list *out, struct err *err)
{
    cJSON *list = NULL;
    int rc = json_parse(text->buf, text->len, &list, err);
    if (rc == 0 && (rc = gpu_list_from_json(list, out, err)) == 0 &&
        (rc = check_all_keys(list, err)) != 0) {
        gpu_list_release(out);
    }
    cJSON_Delete(list);
    return rc;
}

/* One without known processes has none: the file says all that there is. */
int pretend_list(const char *path, struct gpu_list *out, struct err *err)
{
    struct strbuf text = STRBUF_INIT;
    int rc = file_read(path, GPU_JSON_MAX, &text, err);
    if (rc == 0) {
        rc = read_list(&text, out, err);
        if (rc != 0) {
            rc = err_wrap(err, "%s", path);
        }
    }
    for (size_t i = 0; rc == 0 && i < out->n; i++) {
        struct gpu *g = &out->items[i];
        g->processes_known = true;
        for (size_t k = 0; k < g->n_processes; k++) {
            gpu_process_fill(&g->processes[k]);
        }
    }
    strbuf_release(&text);
    return rc == 0 ? 0 : err_wrap(err, GPU_PRETEND);
}
