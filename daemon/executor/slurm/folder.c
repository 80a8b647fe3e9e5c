/* Reads and writes the files of jobs (folder.h). slurm.c calls this from jobs; nothing here knows
 * the book or the loop. */
#include "daemon/executor/slurm/folder.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/files/file.h"
#include "base/files/shared_dir.h"
#include "base/json/json.h"
#include "base/layout/layout.h"
#include "base/text.h"
#include "base/xalloc.h"
#include "daemon/executor/post_mortem.h"
#include "daemon/executor/slurm/script.h"
#include "daemon/shim/current.h"
#include "daemon/shim/fence.h"
#include "daemon/shim/heartbeat.h"

#define SCRIPT_SUFFIX  ".sh"
#define LIST_SUFFIX    ".list"
#define LIST_MAX_BYTES ((size_t)64 << 20)

static char *in_jobs(const char *jobs, const char *name, const char *suffix)
{
    char *file = xasprintf("%s%s", name, suffix);
    char *path = path_join(jobs, file);
    free(file);
    return path;
}

char *slurm_batch_script(const char *jobs, const char *name)
{
    return in_jobs(jobs, name, SCRIPT_SUFFIX);
}

/* By rename, so that a reader sees all of it; what is written for a whole batch is synced once. */
static int write_file(const char *folder, const char *name, const struct strbuf *text,
                      struct err *err)
{
    char *path = path_join(folder, name);
    char *temp = xasprintf("%s.new", path);
    int fd = open(temp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    int rc = fd < 0 ? err_set_errno(err, errno, "create %s", temp)
                    : file_write_all(fd, text->buf, text->len, err);
    if (fd >= 0 && close(fd) != 0 && rc == 0) {
        rc = err_set_errno(err, errno, "write %s", temp);
    }
    if (rc == 0 && rename(temp, path) != 0) {
        rc = err_set_errno(err, errno, "name %s", path);
    }
    free(temp);
    free(path);
    return rc;
}

static int write_job(const struct slurm_batch *b, const struct slurm_member *m, struct err *err)
{
    struct strbuf text = STRBUF_INIT;
    cJSON *o = json_object();
    json_put_string(o, "name", b->name);
    if (b->is_array) {
        json_put_int(o, "index", m->index);
    }
    int rc = json_line(o, &text, err);
    if (rc == 0) {
        rc = write_file(m->folder, LAYOUT_JOB, &text, err);
    }
    cJSON_Delete(o);
    strbuf_release(&text);
    return rc;
}

/* Of an earlier daemon's attempt the spec was written before its `job`. */
static int check_spec(const char *folder, struct err *err)
{
    char *path = path_join(folder, LAYOUT_SPEC);
    bool there = false;
    int rc = shared_find(path, &there, err);
    if (rc == 0 && !there) {
        rc = err_set(err, ERR_NOT_FOUND, "%s: no such file", path);
    }
    free(path);
    return rc;
}

/* The fence last: from then on a late job of an earlier attempt gives up. */
static int write_member(const struct slurm_batch *b, const struct slurm_member *m, struct err *err)
{
    struct attempt_name name = {.no = m->no};
    memcpy(name.id, m->id, sizeof(name.id));
    char *task = path_folder(m->folder);
    int rc = m->spec_is_there ? check_spec(m->folder, err)
                              : write_file(m->folder, LAYOUT_SPEC, &m->spec, err);
    if (rc != 0) {
        goto out;
    }
    rc = write_job(b, m, err);
    if (rc != 0) {
        goto out;
    }
    rc = current_write(task, &name, err);
out:
    free(task);
    return rc;
}

/* Line i + 1 is the folder of index i; an index without an attempt has an empty line. */
static int write_list(const struct slurm_batch *b, struct err *err)
{
    struct strbuf text = STRBUF_INIT;
    char *name = xasprintf("%s" LIST_SUFFIX, b->name);
    uint32_t line = 0;
    for (size_t i = 0; i < b->n_members; i++) {
        for (; line < b->members[i].index; line++) {
            strbuf_addc(&text, '\n');
        }
        strbuf_addf(&text, "%s\n", b->members[i].folder);
        line++;
    }
    int rc = write_file(b->jobs, name, &text, err);
    free(name);
    strbuf_release(&text);
    return rc;
}

static int write_script(const struct slurm_batch *b, struct err *err)
{
    struct strbuf text = STRBUF_INIT;
    char *name = xasprintf("%s" SCRIPT_SUFFIX, b->name);
    char *list = in_jobs(b->jobs, b->name, LIST_SUFFIX);
    const struct slurm_script script = {.shim = b->shim,
                                        .folder = b->is_array ? NULL : b->members[0].folder,
                                        .list = b->is_array ? list : NULL,
                                        .setup = b->setup,
                                        .n_setup = b->n_setup};
    slurm_script_write(&text, &script);
    int rc = write_file(b->jobs, name, &text, err);
    free(list);
    free(name);
    strbuf_release(&text);
    return rc;
}

/* The script's list is made of lines. */
static int check_paths(const struct slurm_batch *b, struct err *err)
{
    for (size_t i = 0; i < b->n_members; i++) {
        if (strchr(b->members[i].folder, '\n') != NULL) {
            return err_set(err, ERR_INVALID, "a folder's name has a line end: %.100s",
                           b->members[i].folder);
        }
    }
    return 0;
}

static int sync_all(const char *folder, struct err *err)
{
    const int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int rc = fd >= 0 && syncfs(fd) == 0 ? 0 : err_set_errno(err, errno, "sync %s", folder);
    if (fd >= 0) {
        (void)close(fd);
    }
    return rc;
}

int slurm_batch_write(const struct slurm_batch *b, struct err *err)
{
    int rc = 0;
    if ((rc = check_paths(b, err)) != 0 || (rc = dir_make(b->jobs, 0700, err)) != 0) {
        return rc;
    }
    for (size_t i = 0; i < b->n_members; i++) {
        rc = write_member(b, &b->members[i], err);
        if (rc != 0) {
            return rc;
        }
    }
    if ((rc = write_list(b, err)) != 0 || (rc = write_script(b, err)) != 0) {
        return rc;
    }
    return sync_all(b->jobs, err);
}

void slurm_batch_remove(const char *jobs, const char *name)
{
    char *script = in_jobs(jobs, name, SCRIPT_SUFFIX);
    char *list = in_jobs(jobs, name, LIST_SUFFIX);
    (void)unlink(script);
    (void)unlink(list);
    free(list);
    free(script);
}

static bool has_name(const struct name_list *list, const char *name)
{
    for (size_t i = 0; i < list->n; i++) {
        if (strcmp(list->names[i], name) == 0) {
            return true;
        }
    }
    return false;
}

/* Also lists the parent, because a listing is what makes a client ask its server again (rule 17).
 */
static bool list_folder(const char *folder, struct name_list *names)
{
    struct name_list beside = {0};
    struct err ignored;
    char *parent = path_folder(folder);
    bool listed = dir_list(parent, &beside, &ignored) == 0 && has_name(&beside, path_name(folder));
    name_list_release(&beside);
    free(parent);
    return listed && dir_list(folder, names, &ignored) == 0;
}

/* Of an attempt: whether its job's files are not needed any more. One that cannot be listed now may
 * be needed. */
static bool is_over(const char *folder)
{
    struct name_list names = {0};
    const bool over = list_folder(folder, &names) &&
                      (has_name(&names, LAYOUT_EXIT) || has_name(&names, FENCE_FILE));
    name_list_release(&names);
    return over;
}

static bool are_over(const char *list)
{
    struct strbuf text = STRBUF_INIT;
    struct err ignored;
    char *rest = NULL;
    bool over = shared_read(list, LIST_MAX_BYTES, &text, &ignored) == 0;
    for (char *line = over && text.len > 0 ? strtok_r(text.buf, "\n", &rest) : NULL;
         over && line != NULL; line = strtok_r(NULL, "\n", &rest)) {
        over = is_over(line);
    }
    strbuf_release(&text);
    return over;
}

void slurm_batch_sweep(const char *jobs)
{
    struct name_list names = {0};
    struct err ignored;
    if (dir_list(jobs, &names, &ignored) == 0) {
        for (size_t i = 0; i < names.n; i++) {
            char name[UUID_TEXT_SIZE];
            (void)snprintf(name, sizeof(name), "%s", names.names[i]);
            char *list = in_jobs(jobs, name, LIST_SUFFIX);
            if (uuid_is_valid(name) && strcmp(path_name(list), names.names[i]) == 0 &&
                are_over(list)) {
                slurm_batch_remove(jobs, name);
            }
            free(list);
        }
    }
    name_list_release(&names);
}

void slurm_folder_look(const char *folder, const char *id, struct slurm_sight *out)
{
    struct name_list names = {0};
    struct heartbeat beat;
    struct err ignored;
    *out = (struct slurm_sight){.listed = list_folder(folder, &names)};
    if (out->listed) {
        out->launched = has_name(&names, LAYOUT_START) || has_name(&names, LAYOUT_EXIT);
        out->refused = has_name(&names, LAYOUT_REFUSED);
        out->is_unfit =
            !out->launched && has_name(&names, LAYOUT_UNFIT) && unfit_read(folder, &out->unfit);
        out->has_end = has_name(&names, LAYOUT_EXIT) && examine_exit(folder, id, &out->end);
        if (has_name(&names, LAYOUT_HEARTBEAT) && heartbeat_read(folder, &beat, &ignored) == 0) {
            out->beat = beat.sequence;
        }
    }
    name_list_release(&names);
}

static bool read_job(const char *folder, struct slurm_job_hint *out)
{
    struct strbuf text = STRBUF_INIT;
    struct err err;
    cJSON *o = NULL;
    const char *name = NULL;
    int64_t index = SLURM_INDEX_NONE;
    char *path = path_join(folder, LAYOUT_JOB);
    const bool good = shared_read(path, LAYOUT_JOB_MAX, &text, &err) == 0 &&
                      json_parse(text.buf, text.len, &o, &err) == 0 &&
                      json_get_string(o, "name", &name, &err) == 0 &&
                      json_opt_int(o, "index", 0, SLURM_INDEX_NONE - 1, &index, &err) == 0 &&
                      uuid_is_valid(name);
    if (good) {
        (void)snprintf(out->name, sizeof(out->name), "%s", name);
        out->index = (uint32_t)index;
    }
    cJSON_Delete(o);
    free(path);
    strbuf_release(&text);
    return good;
}

void slurm_folder_hint(const char *folder, struct slurm_job_hint *out)
{
    struct name_list names = {0};
    *out = (struct slurm_job_hint){.kind = SLURM_HINT_UNCLEAR};
    if (list_folder(folder, &names)) {
        const bool fenced = has_name(&names, FENCE_FILE) && !has_name(&names, LAYOUT_EXIT);
        out->kind = !has_name(&names, LAYOUT_JOB) ? SLURM_HINT_NEVER
                    : fenced                      ? SLURM_HINT_FENCED
                    : read_job(folder, out)       ? SLURM_HINT_JOB
                                                  : SLURM_HINT_UNCLEAR;
    }
    name_list_release(&names);
}

void slurm_folder_words(const char *folder, char *out, size_t size)
{
    static const char *const names[] = {LAYOUT_SHIM_LOG, SLURM_SCRIPT_LOG};
    static const char LEVEL[] = " error "; /* behind the time, in a log */
    out[0] = '\0';
    for (size_t i = 0; i < ARRAY_LEN(names) && out[0] == '\0'; i++) {
        char *path = path_join(folder, names[i]);
        const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
        if (fd >= 0) {
            text_last_line(fd, 0, out, size);
            (void)close(fd);
        }
        free(path);
    }
    const char *level = strstr(out, LEVEL);
    if (level != NULL && level < out + WALL_TEXT_SIZE) {
        const char *words = level + sizeof(LEVEL) - 1;
        memmove(out, words, strlen(words) + 1);
    }
}

int slurm_folder_fence(const char *folder, struct err *err)
{
    const struct strbuf nothing = STRBUF_INIT;
    int rc = write_file(folder, FENCE_FILE, &nothing, err);
    return rc == 0 ? dir_sync(folder, err) : rc;
}
