/* Removes files that nothing reads any more. Called in a job when an attempt is prepared, for its
 * task's earlier attempts, and once when the daemon starts, which then holds the state folder's
 * lock. Only names that are surely ours are removed. Temporary files in STATE must be a minute old,
 * because preregctl writes there without that lock. */
#include "daemon/program/sweep.h"

#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/files/file.h"
#include "base/files/shared_dir.h"
#include "base/layout/layout.h"
#include "base/log.h"
#include "base/text.h"
#include "base/xalloc.h"

#define CHECKPOINT_PREFIX "step-"
#define CHECKPOINT_WHOLE  "manifest.json" /* written last */
#define N_KEPT            2
#define TEMP_SUFFIX       ".tmp"
#define TEMP_AGE_S        60 /* in STATE, where preregctl writes, too */

struct checkpoint {
    char *path;
    int64_t step;
    size_t age; /* of its attempt: 0 is the newest */
};

struct checkpoints {
    struct checkpoint *items;
    size_t n;
    size_t cap;
};

/* By step, then by attempt: a resumed attempt can write the same step again. */
static int newest_first(const void *a, const void *b)
{
    const struct checkpoint *x = a;
    const struct checkpoint *y = b;
    if (x->step != y->step) {
        return x->step > y->step ? -1 : 1;
    }
    return x->age < y->age ? -1 : x->age > y->age;
}

/* ".<name>.<uuid>.tmp", as base/files/file.c names them. */
static bool is_temp(const char *name)
{
    size_t len = strlen(name);
    size_t suffix = sizeof(TEMP_SUFFIX) - 1;
    return name[0] == '.' && len > suffix + 1 && strcmp(name + len - suffix, TEMP_SUFFIX) == 0;
}

/* Errors are ignored: a file that stays is removed the next time. */
static void remove_temps(const char *folder, int64_t min_age_s)
{
    struct name_list list = {0};
    struct err ignored;
    if (dir_list(folder, &list, &ignored) == 0) {
        for (size_t i = 0; i < list.n; i++) {
            struct stat st;
            char *path = path_join(folder, list.names[i]);
            if (is_temp(list.names[i]) && lstat(path, &st) == 0 && S_ISREG(st.st_mode) &&
                time(NULL) - st.st_mtime >= min_age_s) {
                (void)unlink(path);
            }
            free(path);
        }
    }
    name_list_release(&list);
}

/* The step of a whole checkpoint of ours; -1: of another form, or without its manifest. */
static int64_t step_of(const char *folder, const char *name)
{
    int64_t step = -1;
    struct err ignored;
    size_t prefix = sizeof(CHECKPOINT_PREFIX) - 1;
    char *manifest = xasprintf("%s/%s/" CHECKPOINT_WHOLE, folder, name);
    if (strncmp(name, CHECKPOINT_PREFIX, prefix) != 0 ||
        text_to_int(name + prefix, 0, INT64_MAX, &step, &ignored) != 0 ||
        file_kind_at(manifest) != FILE_REGULAR) {
        step = -1;
    }
    free(manifest);
    return step;
}

static void collect(const char *attempt, size_t age, struct checkpoints *out)
{
    struct name_list list = {0};
    struct err ignored;
    char *folder = path_join(attempt, LAYOUT_CHECKPOINT);
    shared_list_tree(attempt); /* it may have run on another host */
    if (file_kind_at(folder) == FILE_FOLDER && dir_list(folder, &list, &ignored) == 0) {
        for (size_t i = 0; i < list.n; i++) {
            int64_t step = step_of(folder, list.names[i]);
            if (step >= 0) {
                ARRAY_GROW(out->items, out->n, out->cap);
                out->items[out->n++] =
                    (struct checkpoint){path_join(folder, list.names[i]), step, age};
            }
        }
        remove_temps(folder, 0);
    }
    name_list_release(&list);
    free(folder);
}

void sweep_attempts(char *const *folders, size_t n)
{
    struct checkpoints all = {0};
    for (size_t i = 0; i < n; i++) {
        collect(folders[i], i, &all);
        remove_temps(folders[i], 0);
    }
    if (all.n > 1) {
        qsort(all.items, all.n, sizeof(*all.items), newest_first);
    }
    for (size_t i = 0; i < all.n; i++) {
        struct err err;
        if (i >= N_KEPT && dir_remove(all.items[i].path, &err) != 0) {
            log_warn("%s: an old checkpoint stays: %s", all.items[i].path, err.msg);
        }
        free(all.items[i].path);
    }
    free(all.items);
}

void sweep_state(const char *state)
{
    static const char *const OWN[] = {".", LAYOUT_AMENDMENTS, LAYOUT_REPORT};
    struct name_list programs = {0};
    struct err ignored;
    char *root = path_join(state, LAYOUT_PROGRAMS);
    char *objects = path_join(state, LAYOUT_OBJECTS);
    remove_temps(state, TEMP_AGE_S);
    remove_temps(objects, TEMP_AGE_S);
    if (file_kind_at(root) == FILE_FOLDER && dir_list(root, &programs, &ignored) == 0) {
        for (size_t i = 0; i < programs.n; i++) {
            for (size_t k = 0; k < ARRAY_LEN(OWN); k++) {
                char *folder = xasprintf("%s/%s/%s", root, programs.names[i], OWN[k]);
                remove_temps(folder, TEMP_AGE_S);
                free(folder);
            }
        }
    }
    name_list_release(&programs);
    free(objects);
    free(root);
}
