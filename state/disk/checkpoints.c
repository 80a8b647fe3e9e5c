/*
 * Decides which parts of a finished task's checkpoints may go. The link result.json says which
 * attempt was accepted, its text which files of that attempt are artifacts. A checkpoint is kept
 * when any step of the path of an artifact has its name, or when links of the path lead into it:
 * too much rather than too little. What only a link leads to is not the task's and is left alone.
 */
#include "state/disk/checkpoints.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/json/json.h"
#include "base/layout/attempt_name.h"
#include "base/layout/layout.h"
#include "base/text.h"
#include "base/xalloc.h"

#define STEP_PREFIX "step-"
#define MANIFEST    "manifest.json" /* written last: without it a checkpoint is torn */
#define LINK_MAX    4096

struct found {
    char *path;
    const char *name; /* its last component */
    int64_t step;
    bool accepted; /* of the accepted attempt */
    bool whole;
    bool named; /* by the accepted result */
};

struct found_list {
    struct found *items;
    size_t n;
    size_t cap;
};

bool checkpoint_step(const char *name, int64_t *step)
{
    assert(name != NULL && step != NULL);
    struct err ignored;
    const size_t prefix = sizeof(STEP_PREFIX) - 1;
    return strncmp(name, STEP_PREFIX, prefix) == 0 &&
           text_to_int(name + prefix, 0, INT64_MAX, step, &ignored) == 0;
}

/* The name of the accepted attempt's folder; NULL: no result is linked. The caller frees it. */
static char *find_accepted(const char *task_folder)
{
    char target[LINK_MAX];
    char *link = path_join(task_folder, LAYOUT_RESULT);
    const ssize_t len = readlink(link, target, sizeof(target) - 1);
    free(link);
    if (len <= 0) {
        return NULL;
    }
    target[len] = '\0';
    struct attempt_name name;
    target[strcspn(target, "/")] = '\0';
    return attempt_name_parse(target, &name) ? xstrdup(target) : NULL;
}

/* Whether one component of `path` is `name`. */
static bool has_component(const char *path, const char *name)
{
    const size_t len = strlen(name);
    while (*path != '\0') {
        const size_t n = strcspn(path, "/");
        if (n == len && memcmp(path, name, n) == 0) {
            return true;
        }
        path += n + (path[n] == '/');
    }
    return false;
}

/* Whether an artifact or the items at this path are in the checkpoint, its links resolved. A path
 * that cannot be resolved may be. */
static bool leads_into(const char *attempt_folder, const char *path, const char *checkpoint)
{
    char *full = path_join(attempt_folder, path);
    char *real = realpath(full, NULL);
    const bool absent = real == NULL && (errno == ENOENT || errno == ENOTDIR);
    char *folder = realpath(checkpoint, NULL);
    const size_t n = folder == NULL ? 0 : strlen(folder);
    const bool leads = real == NULL || folder == NULL
                           ? !absent
                           : strncmp(real, folder, n) == 0 && (real[n] == '/' || real[n] == '\0');
    free(folder);
    free(real);
    free(full);
    return leads;
}

struct accepted_result {
    const char *folder; /* of the accepted attempt */
    const cJSON *result;
};

/* Whether the accepted result needs what is at `path` of its attempt from this checkpoint. */
static bool needs(const struct accepted_result *a, const cJSON *path, const struct found *f)
{
    return cJSON_IsString(path) && ((f->accepted && has_component(path->valuestring, f->name)) ||
                                    leads_into(a->folder, path->valuestring, f->path));
}

static bool is_named(const struct accepted_result *a, const struct found *f)
{
    const cJSON *o = NULL;
    cJSON_ArrayForEach(o, json_member(a->result, "artifacts"))
    {
        if (needs(a, json_member(o, "path"), f)) {
            return true;
        }
    }
    return needs(a, json_member(a->result, "items"), f);
}

static bool is_link(const char *path)
{
    struct stat st;
    return lstat(path, &st) == 0 && S_ISLNK(st.st_mode);
}

static void collect_one(char *path, int64_t step, bool accepted, const struct accepted_result *a,
                        struct found_list *out)
{
    char *manifest = path_join(path, MANIFEST);
    struct found f = {.path = path, .name = path_name(path), .step = step, .accepted = accepted};
    f.whole = file_kind_at(manifest) == FILE_REGULAR;
    f.named = is_named(a, &f);
    ARRAY_GROW(out->items, out->n, out->cap);
    out->items[out->n++] = f;
    free(manifest);
}

static void collect(const char *attempt_folder, bool accepted, const struct accepted_result *a,
                    struct found_list *out)
{
    struct name_list names = {0};
    struct err ignored;
    char *folder = path_join(attempt_folder, LAYOUT_CHECKPOINT);
    if (!is_link(folder) && file_kind_at(folder) == FILE_FOLDER &&
        dir_list(folder, &names, &ignored) == 0) {
        for (size_t i = 0; i < names.n; i++) {
            int64_t step = -1;
            char *path = path_join(folder, names.names[i]);
            if (checkpoint_step(names.names[i], &step) && !is_link(path)) {
                collect_one(path, step, accepted, a, out);
            } else {
                free(path);
            }
        }
    }
    name_list_release(&names);
    free(folder);
}

/* The one that `keep = "last"` keeps; NULL: none is whole. */
static const struct found *find_last(const struct found_list *list)
{
    const struct found *best = NULL;
    for (size_t i = 0; i < list->n; i++) {
        const struct found *f = &list->items[i];
        if (f->whole && (best == NULL || f->accepted > best->accepted ||
                         (f->accepted == best->accepted && f->step > best->step))) {
            best = f;
        }
    }
    return best;
}

static int collect_all(const char *task_folder, const char *accepted, struct found_list *out,
                       struct err *err)
{
    struct name_list attempts = {0};
    cJSON *result = NULL;
    char *path = path_join(task_folder, LAYOUT_RESULT);
    int rc = json_read_file_lax(path, LAYOUT_RESULT_MAX, &result, err);
    free(path);
    if (rc != 0) {
        const struct err why = *err;
        return err_set(err, ERR_CORRUPT, "%.120s: its accepted result cannot be read (%.80s)",
                       task_folder, why.msg);
    }
    char *accepted_folder = path_join(task_folder, accepted);
    const struct accepted_result a = {.folder = accepted_folder, .result = result};
    rc = attempt_list(task_folder, &attempts, err);
    for (size_t i = 0; rc == 0 && i < attempts.n; i++) {
        char *folder = path_join(task_folder, attempts.names[i]);
        collect(folder, strcmp(attempts.names[i], accepted) == 0, &a, out);
        free(folder);
    }
    free(accepted_folder);
    name_list_release(&attempts);
    cJSON_Delete(result);
    return rc;
}

int checkpoints_superseded(const char *task_folder, bool keep_last, struct name_list *out,
                           struct err *err)
{
    assert(task_folder != NULL && out != NULL);
    struct found_list all = {0};
    char *accepted = find_accepted(task_folder);
    if (accepted == NULL) {
        return 0;
    }
    int rc = collect_all(task_folder, accepted, &all, err);
    const struct found *last = keep_last ? find_last(&all) : NULL;
    for (size_t i = 0; i < all.n; i++) {
        struct found *f = &all.items[i];
        if (rc == 0 && !f->named && f != last) {
            ARRAY_GROW(out->names, out->n, out->cap);
            out->names[out->n++] = f->path;
        } else {
            free(f->path);
        }
    }
    free(all.items);
    free(accepted);
    return rc;
}
