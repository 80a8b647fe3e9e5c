/*
 * The container is podman's: its processes descend from the shim, stay in the attempt's cgroup and
 * carry its marks, so that they end as any worker does; podman passes signals and the exit code on.
 * It has the image read-only, no network, and of the host's files what task.json and the command
 * name.
 */
#include "prereg/task/container.h"

#include <stdlib.h>
#include <string.h>

#include "base/json/json.h"
#include "base/layout/layout.h"
#include "base/xalloc.h"
#include "prereg/lock/image.h"
#include "prereg/lock/object.h"

/* Shows a path of the host in the container under the same name. podman parts what it is given at
 * each ':'. */
static int add_path(struct text_list *w, const char *path, const char *how, struct err *err)
{
    if (strchr(path, ':') != NULL) {
        return err_set(err, ERR_RANGE,
                       "%.200s: podman cannot show a container a path with a ':' in it", path);
    }
    char *word = xasprintf("--volume=%s:%s:%s", path, path, how);
    for (size_t i = 0; i < w->n; i++) {
        if (strcmp(w->items[i], word) == 0) {
            free(word); /* two names of one file */
            return 0;
        }
    }
    text_list_add(w, word);
    return 0;
}

static int add_text(struct text_list *w, const cJSON *path, struct err *err)
{
    return cJSON_IsString(path) ? add_path(w, path->valuestring, "ro", err) : 0;
}

/* What the worker reads: data, inputs, and the folders of earlier attempts. */
static int add_task_paths(struct text_list *w, const char *file, struct err *err)
{
    cJSON *task = NULL;
    const cJSON *m = NULL;
    int rc = json_read_file(file, LAYOUT_TASK_MAX, &task, err);
    const cJSON *data = json_member(task, "data");
    for (m = data == NULL ? NULL : data->child; rc == 0 && m != NULL; m = m->next) {
        rc = add_text(w, json_member(m, "path"), err);
    }
    static const char *const lists[] = {"inputs", "resume"};
    for (size_t i = 0; i < ARRAY_LEN(lists); i++) {
        const cJSON *list = json_member(task, lists[i]);
        for (m = list == NULL ? NULL : list->child; rc == 0 && m != NULL; m = m->next) {
            rc = add_text(w, m, err);
        }
    }
    cJSON_Delete(task);
    return rc;
}

/* podman's own variables, and of the worker's those by which the daemon knows its processes. */
static char **outer_variables(char *const *env)
{
    static const char *const marks[] = {"PREREG_TASK=", "PREREG_EVENTS="};
    char **list = image_runtime_variables();
    size_t n = 0;
    while (list[n] != NULL) {
        n++;
    }
    list = xreallocarray(list, n + ARRAY_LEN(marks) + 1, sizeof(*list));
    for (size_t i = 0; i < ARRAY_LEN(marks); i++) {
        for (size_t k = 0; env[k] != NULL; k++) {
            if (strncmp(env[k], marks[i], strlen(marks[i])) == 0) {
                list[n++] = xstrdup(env[k]);
            }
        }
    }
    list[n] = NULL;
    return list;
}

static void add_options(struct text_list *w, const struct container_task *t, char *const *env)
{
    static const char *const fixed[] = {
        "run",
        "--rm",
        "--pull=never",
        "--read-only",
        "--network=none",
        "--no-hosts",
        "--cgroups=disabled",           /* it stays in the attempt's */
        "--ipc=host",                   /* loaders of batches fill 64 MiB of /dev/shm */
        "--user=0:0",                   /* without root that is the user outside */
        "--security-opt=label=disable", /* files of the host keep their labels */
        "--log-driver=passthrough",     /* its output is the attempt's files */
        "--entrypoint=",                /* the command decides */
    };
    for (size_t i = 0; i < ARRAY_LEN(fixed); i++) {
        text_list_add(w, xstrdup(fixed[i]));
    }
    if (t->stage->run.gpu_thousandths > 0) { /* CUDA_VISIBLE_DEVICES says which are its own */
        text_list_add(w, xstrdup("--device=nvidia.com/gpu=all"));
    }
    if (t->timeout_ms > 0) {
        text_list_add(w, xasprintf("--timeout=%lld", (long long)(t->timeout_ms + 999) / 1000));
    }
    if (t->name != NULL) {
        text_list_add(w, xasprintf("--name=%s", t->name));
    }
    text_list_add(w, xasprintf("--workdir=%s", t->folder));
    for (size_t i = 0; env[i] != NULL; i++) {
        text_list_add(w, xasprintf("--env=%s", env[i]));
    }
}

/* The whole command line of podman. */
static int build(struct text_list *w, const struct container_task *t, char *const *argv,
                 char *const *env, struct err *err)
{
    const struct plan_stage *s = t->stage;
    text_list_add(w, xstrdup("podman"));
    add_options(w, t, env);
    int rc = add_task_paths(w, t->task, err);
    for (size_t i = 0; rc == 0 && argv[i] != NULL && i < s->n_command; i++) {
        if (strcmp(argv[i], s->command[i]) != 0) { /* a file of the command, by its copy's path */
            rc = add_path(w, argv[i], "ro", err);
        }
    }
    if (rc == 0) {
        rc = add_path(w, t->folder, "rw", err);
    }
    text_list_add(w, xstrdup(t->image != NULL ? t->image : s->image));
    for (size_t i = 0; argv[i] != NULL; i++) {
        text_list_add(w, xstrdup(argv[i]));
    }
    text_list_add(w, NULL);
    return rc;
}

int container_command(const struct container_task *t, char ***argv, char ***env, char **exec,
                      struct err *err)
{
    *exec = NULL;
    if (t->stage->image == NULL) {
        *exec = (*argv)[0];
        (*argv)[0] = xstrdup(t->stage->command[0]); /* its own name, though a copy is run */
        return 0;
    }
    struct text_list w = {0};
    int rc = image_runtime(exec, err);
    if (rc != 0 || (rc = build(&w, t, *argv, *env, err)) != 0) {
        xfree_list(w.items);
        free(*exec);
        *exec = NULL;
        return rc;
    }
    char **outer = outer_variables(*env);
    xfree_list(*argv);
    xfree_list(*env);
    *argv = w.items;
    *env = outer;
    return 0;
}
