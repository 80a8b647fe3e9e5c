/*
 * The files between daemon and shim, as JSON: the spec (read from a descriptor), start.json and
 * exit.json.
 *
 * All of them are bounded by LAYOUT_START_MAX and carry protocol and attempt id. start.json doubles
 * as the shim's lock, so its inode must stay the same: it is overwritten in place and renamed to
 * exit.json, never replaced. Members that older shims did not write are optional to the reader.
 */
#include "daemon/shim/files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files/file.h"
#include "base/files/shared_dir.h"
#include "base/json/json.h"
#include "base/layout/attempt_name.h"
#include "base/layout/layout.h"
#include "base/text.h"
#include "base/xalloc.h"

#define EXIT_RESERVED_BYTES 4096
#define START_WORKER_BYTES  80
#define SPEC_PIECE_BYTES    ((size_t)8192)
#define OLD_LOCK_FILE       "shim.lock" /* of older shims, which may still run */

static const char *const reason_names[SHIM_REASON_NR] = {
    [SHIM_EXITED] = "exited", [SHIM_SIGNALLED] = "signalled", [SHIM_SPAWN_FAILED] = "spawn_failed",
    [SHIM_MEMORY] = "memory", [SHIM_DISK] = "disk",           [SHIM_MOVED] = "moved",
};

const char *shim_reason_name(enum shim_reason r)
{
    return r < SHIM_REASON_NR ? reason_names[r] : "?";
}

/* ---- what to run ---- */

static void list_add(char ***list, size_t *n, char *item)
{
    *list = xreallocarray(*list, *n + 2, sizeof(**list));
    (*list)[(*n)++] = item;
    (*list)[*n] = NULL;
}

void shim_spec_add_arg(struct shim_spec *s, const char *arg)
{
    list_add(&s->argv, &s->n_argv, xstrdup(arg));
}

void shim_spec_add_env(struct shim_spec *s, const char *name, const char *value)
{
    list_add(&s->env, &s->n_env, xasprintf("%s=%s", name, value));
}

static void list_free(char **list, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        free(list[i]);
    }
    free(list);
}

void shim_spec_release(struct shim_spec *s)
{
    free(s->exec);
    list_free(s->argv, s->n_argv);
    list_free(s->env, s->n_env);
    gpu_list_release(&s->gpus);
    *s = (struct shim_spec){0};
}

static cJSON *strings_json(char *const *list, size_t n)
{
    cJSON *a = json_array();
    for (size_t i = 0; i < n; i++) {
        json_push_string(a, list[i]);
    }
    return a;
}

/* Left out where there are none. */
static void put_gpus(cJSON *o, const struct gpu_list *gpus)
{
    if (gpus != NULL && gpus->n > 0) {
        json_put(o, "gpus", gpu_list_json(gpus));
    }
}

int shim_spec_text(const struct shim_spec *s, struct strbuf *out, struct err *err)
{
    cJSON *o = json_object();
    json_put_int(o, "protocol", SHIM_PROTOCOL);
    json_put_string(o, "attempt", s->attempt);
    json_put_string(o, "exec", s->exec);
    json_put(o, "argv", strings_json(s->argv, s->n_argv));
    json_put(o, "env", strings_json(s->env, s->n_env));
    json_put_int(o, "memory_bytes", s->memory_bytes);
    json_put_int(o, "grace_ms", s->grace_ms);
    json_put_int(o, "threads", s->threads);
    json_put_string(o, "worker", s->worker);
    if (s->shared) {
        json_put_bool(o, "shared", true);
    }
    if (s->takes_job) {
        json_put_bool(o, "takes_job", true);
    }
    if (s->asks_gpus) {
        json_put_bool(o, "asks_gpus", true);
        json_put_string(o, "pin_gpu", s->pin_gpu);
    }
    put_gpus(o, &s->gpus);
    int rc = json_line(o, out, err);
    if (rc == 0 && out->len > LAYOUT_START_MAX) {
        rc = err_set(err, ERR_RANGE,
                     "arguments and environment of the worker take %zu KiB, at most %zu KiB "
                     "can be handed over: put what is long into params or a file",
                     out->len >> 10, LAYOUT_START_MAX >> 10);
    }
    cJSON_Delete(o);
    return rc;
}

static int strings_read(const cJSON *o, const char *key, char ***list, size_t *n, struct err *err)
{
    const cJSON *a = NULL;
    int rc = json_get_array(o, key, &a, err);
    if (rc != 0) {
        return rc;
    }
    const cJSON *item;
    cJSON_ArrayForEach(item, a)
    {
        if (!cJSON_IsString(item)) {
            return err_set(err, ERR_SYNTAX, "\"%s\" holds something that is not a string", key);
        }
        list_add(list, n, xstrdup(item->valuestring));
    }
    return 0;
}

/* After reading it, with what that returned: checks protocol and, when given, the attempt. `name`
 * is for messages. */
static int check_json(int rc, const char *name, const char *attempt, cJSON **out, struct err *err)
{
    const char *id = NULL;
    int64_t protocol = 0;
    if (rc != 0) {
        if (rc == ERR_SYNTAX) {
            err->code = ERR_CORRUPT;
        }
        return err_wrap(err, "%s", name);
    }
    if (json_get_int(*out, "protocol", SHIM_PROTOCOL, SHIM_PROTOCOL, &protocol, err) != 0 ||
        json_get_string(*out, "attempt", &id, err) != 0 || !uuid_is_valid(id) ||
        (attempt != NULL && strcmp(attempt, id) != 0)) {
        cJSON_Delete(*out);
        *out = NULL;
        return err_set(err, ERR_CORRUPT, "%s is not of this attempt and protocol", name);
    }
    return 0;
}

/* Its writer may be on another host. An empty file is ERR_NOT_FOUND. */
static int read_json_in(const char *folder, const char *name, const char *attempt, cJSON **out,
                        struct err *err)
{
    struct strbuf text = STRBUF_INIT;
    char *path = path_join(folder, name);
    *out = NULL;
    int rc = shared_read(path, LAYOUT_START_MAX, &text, err);
    if (rc == 0 && text.len == 0 && strcmp(name, LAYOUT_START) == 0) {
        rc = err_set(err, ERR_NOT_FOUND, LAYOUT_START " is empty");
    } else {
        rc = rc != 0 ? rc : json_parse(text.buf, text.len, out, err);
        rc = check_json(rc, name, attempt, out, err);
    }
    strbuf_release(&text);
    free(path);
    return rc;
}

static void copy_text(char *to, size_t size, const char *from)
{
    (void)snprintf(to, size, "%s", from);
    text_make_utf8(to);
}

/* Members that files of older versions lack. */
static int spec_read_rest(const cJSON *o, struct shim_spec *out, struct err *err)
{
    const char *worker = "";
    int rc = json_opt_int(o, "threads", 0, INT32_MAX, &out->threads, err);
    rc = rc != 0 ? rc : json_opt_string(o, "worker", &worker, err);
    copy_text(out->worker, sizeof(out->worker), worker);
    const char *pin = "";
    out->asks_gpus = cJSON_IsTrue(json_member(o, "asks_gpus"));
    rc = rc != 0 ? rc : json_opt_string(o, "pin_gpu", &pin, err);
    if (rc == 0 && strlen(pin) >= sizeof(out->pin_gpu)) {
        rc = err_set(err, ERR_RANGE, "pin_gpu is too long");
    }
    copy_text(out->pin_gpu, sizeof(out->pin_gpu), pin);
    const cJSON *gpus = json_member(o, "gpus");
    return rc != 0 || gpus == NULL ? rc : gpu_list_from_json(gpus, &out->gpus, err);
}

/* From its beginning, wherever its writer left the offset. */
static int spec_read_text(int fd, struct strbuf *out, struct err *err)
{
    ssize_t n = 1;
    while (n != 0) {
        strbuf_reserve(out, SPEC_PIECE_BYTES);
        n = pread(fd, out->buf + out->len, SPEC_PIECE_BYTES, (off_t)out->len);
        if (n < 0 && errno != EINTR) {
            return err_set_errno(err, errno, "read it");
        }
        out->len += n > 0 ? (size_t)n : 0;
        out->buf[out->len] = '\0';
        if (out->len > LAYOUT_START_MAX) {
            return err_set(err, ERR_RANGE, "it has more than %zu KiB", LAYOUT_START_MAX >> 10);
        }
    }
    return 0;
}

static int spec_read_json(int fd, cJSON **out, struct err *err)
{
    struct strbuf text = STRBUF_INIT;
    *out = NULL;
    int rc = spec_read_text(fd, &text, err);
    rc = rc == 0 ? json_parse(text.buf, text.len, out, err) : rc;
    strbuf_release(&text);
    return check_json(rc, "what to run", NULL, out, err);
}

int shim_spec_read(int fd, struct shim_spec *out, struct err *err)
{
    cJSON *o = NULL;
    const char *exec = NULL;
    *out = (struct shim_spec){0};
    int rc = spec_read_json(fd, &o, err);
    if (rc == 0) {
        copy_text(out->attempt, sizeof(out->attempt), json_member(o, "attempt")->valuestring);
        rc = json_get_string(o, "exec", &exec, err);
    }
    if (rc == 0) {
        out->exec = xstrdup(exec);
        rc = strings_read(o, "argv", &out->argv, &out->n_argv, err);
    }
    if (rc == 0) {
        rc = strings_read(o, "env", &out->env, &out->n_env, err);
    }
    if (rc == 0) {
        rc = json_get_int(o, "memory_bytes", 0, JSON_INT_MAX, &out->memory_bytes, err);
    }
    if (rc == 0) {
        rc = json_get_int(o, "grace_ms", 0, JSON_INT_MAX, &out->grace_ms, err);
    }
    if (rc == 0) {
        rc = spec_read_rest(o, out, err);
    }
    if (rc == 0) {
        rc = json_opt_bool(o, "takes_job", &out->takes_job, err);
        rc = rc != 0 ? rc : json_opt_bool(o, "shared", &out->shared, err);
    }
    if (rc == 0 && out->n_argv == 0) {
        rc = err_set(err, ERR_SYNTAX, "argv is empty");
    }
    cJSON_Delete(o);
    if (rc != 0) {
        shim_spec_release(out);
    }
    return rc;
}

/* ---- the lock ---- */

char *shim_lock_path(const char *folder)
{
    char *path = path_join(folder, OLD_LOCK_FILE);
    if (file_kind_at(path) == FILE_ABSENT) {
        free(path);
        path = path_join(folder, LAYOUT_START);
    }
    return path;
}

/* ---- start.json ---- */

static bool is_empty(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && st.st_size == 0;
}

bool shim_was_started(const char *folder)
{
    char *start = path_join(folder, LAYOUT_START);
    char *exit = path_join(folder, LAYOUT_EXIT);
    bool was = (file_kind_at(start) != FILE_ABSENT && !is_empty(start)) ||
               file_kind_at(exit) != FILE_ABSENT;
    free(exit);
    free(start);
    return was;
}

/* File systems without fallocate() are covered by blanks behind start.json (shim_start_finish). */
int shim_exit_reserve(int fd, bool *reserved, struct err *err)
{
    *reserved = fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, EXIT_RESERVED_BYTES) == 0;
    return *reserved || errno == EOPNOTSUPP || errno == ENOSYS
               ? 0
               : err_set_errno(err, errno, "reserve room for " LAYOUT_EXIT);
}

/* One write at the start of the file: within a page, so that no reader sees half of it. Returns an
 * errno. */
static int overwrite(int fd, const struct strbuf *text)
{
    ssize_t n;
    while ((n = pwrite(fd, text->buf, text->len, 0)) < 0 && errno == EINTR) {
    }
    if (n != (ssize_t)text->len) {
        return n < 0 ? errno : ENOSPC;
    }
    bool too_long = lseek(fd, 0, SEEK_END) > n;
    return !too_long || ftruncate(fd, (off_t)n) == 0 ? 0 : errno;
}

static void put_shim(cJSON *o, const struct shim_start *s)
{
    json_put_int(o, "shim_pid", s->shim_pid);
    json_put_int(o, "shim_start", s->shim_start);
    json_put_string(o, "boot_id", s->boot_id);
    json_put_string(o, "host", s->host);
    json_put_string(o, "kernel", s->kernel);
    json_put_string(o, "cpu", s->cpu);
    json_put_int(o, "threads", s->threads);
    json_put_string(o, "worker", s->worker);
    put_gpus(o, s->gpus);
}

/* Room for the last two members, and for the blanks. */
int shim_start_prepare(const struct shim_start *s, bool reserved, struct strbuf *text,
                       struct err *err)
{
    cJSON *o = json_object();
    json_put_int(o, "protocol", SHIM_PROTOCOL);
    json_put_string(o, "attempt", s->attempt);
    put_shim(o, s);
    if (s->cgroup[0] != '\0') {
        json_put_string(o, "cgroup", s->cgroup);
    }
    json_put_string(o, "time", s->time);
    int rc = json_line(o, text, err);
    cJSON_Delete(o);
    if (rc == 0) {
        text->len--; /* its closing brace */
        strbuf_reserve(text, reserved ? START_WORKER_BYTES : EXIT_RESERVED_BYTES);
    }
    return rc;
}

/* Not synced. It says which processes run in this boot, and none of them survives a loss of power:
 * its absence then says the same as its boot id would. */
int shim_start_finish(int fd, struct strbuf *text, bool reserved, const struct pid_stat *worker)
{
    int n = snprintf(text->buf + text->len, START_WORKER_BYTES,
                     ",\"worker_pid\":%ld,\"worker_start\":%lld}\n", (long)worker->pid,
                     (long long)worker->start);
    text->len += (size_t)n;
    if (!reserved && text->len < EXIT_RESERVED_BYTES) {
        memset(text->buf + text->len, ' ', EXIT_RESERVED_BYTES - text->len);
        text->len = EXIT_RESERVED_BYTES;
        text->buf[text->len - 1] = '\n';
    }
    return overwrite(fd, text);
}

/* Where it ran. Nothing here decides whether the file is believed, so a missing or odd member
 * spoils nothing else. */
static void start_read_place(const cJSON *o, struct shim_start *out)
{
    const struct {
        const char *key;
        char *to;
        size_t size;
    } texts[] = {
        {"kernel", out->kernel, sizeof(out->kernel)},
        {"cpu", out->cpu, sizeof(out->cpu)},
        {"worker", out->worker, sizeof(out->worker)},
        {"cgroup", out->cgroup, sizeof(out->cgroup)},
    };
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        const cJSON *m = json_member(o, texts[i].key);
        if (cJSON_IsString(m)) {
            copy_text(texts[i].to, texts[i].size, m->valuestring);
        }
    }
    const cJSON *time = json_member(o, "started"); /* in exit.json, whose "time" is the end */
    time = time != NULL ? time : json_member(o, "time");
    if (cJSON_IsString(time)) {
        copy_text(out->time, sizeof(out->time), time->valuestring);
    }
    struct err ignored;
    out->threads = -1;
    if (json_opt_int(o, "threads", 1, INT32_MAX, &out->threads, &ignored) != 0) {
        out->threads = -1;
    }
}

/* Opens start.json while the attempt runs and exit.json afterwards; an older shim left both. An
 * empty start.json is only a lock: nothing was started. */
static int open_start(const char *folder, const char *attempt, cJSON **out, struct err *err)
{
    int rc = read_json_in(folder, LAYOUT_START, attempt, out, err);
    if (rc != ERR_NOT_FOUND) {
        return rc;
    }
    rc = read_json_in(folder, LAYOUT_EXIT, attempt, out, err);
    if (rc == 0 && json_member(*out, "shim_pid") == NULL) {
        cJSON_Delete(*out);
        *out = NULL;
        rc = err_set(err, ERR_NOT_FOUND, "it was never started");
    }
    return rc;
}

void shim_start_gpus(const char *folder, const char *attempt, struct gpu_list *out)
{
    cJSON *o = NULL;
    struct err ignored;
    *out = (struct gpu_list){0};
    if (open_start(folder, attempt, &o, &ignored) == 0) {
        const cJSON *gpus = json_member(o, "gpus");
        (void)!(gpus == NULL ? 0 : gpu_list_from_json(gpus, out, &ignored));
    }
    cJSON_Delete(o);
}

int shim_start_read(const char *folder, const char *attempt, struct shim_start *out,
                    struct err *err)
{
    cJSON *o = NULL;
    const char *boot = NULL;
    const char *host = NULL;
    *out = (struct shim_start){0};
    int rc = open_start(folder, attempt, &o, err);
    if (rc != 0) {
        return rc;
    }
    if (json_get_int(o, "shim_pid", 1, INT32_MAX, &out->shim_pid, err) != 0 ||
        json_get_int(o, "shim_start", 0, JSON_INT_MAX, &out->shim_start, err) != 0 ||
        json_get_int(o, "worker_pid", 1, INT32_MAX, &out->worker_pid, err) != 0 ||
        json_get_int(o, "worker_start", 0, JSON_INT_MAX, &out->worker_start, err) != 0 ||
        json_get_string(o, "boot_id", &boot, err) != 0 ||
        json_get_string(o, "host", &host, err) != 0) {
        err->code = ERR_CORRUPT;
        rc = err_wrap(err, LAYOUT_START);
    } else {
        copy_text(out->attempt, sizeof(out->attempt), json_member(o, "attempt")->valuestring);
        copy_text(out->boot_id, sizeof(out->boot_id), boot);
        copy_text(out->host, sizeof(out->host), host);
        start_read_place(o, out);
    }
    cJSON_Delete(o);
    return rc;
}

/* ---- exit.json ---- */

static void put_exit(cJSON *o, const struct shim_exit *x)
{
    char now[WALL_TEXT_SIZE];
    clock_wall_text(clock_wall(), now);
    if (x->reason == SHIM_SPAWN_FAILED || x->signal != 0) {
        json_put_null(o, "code");
    } else {
        json_put_int(o, "code", x->code);
    }
    if (x->signal != 0) {
        json_put_int(o, "signal", x->signal);
    } else {
        json_put_null(o, "signal");
    }
    json_put_string(o, "reason", shim_reason_name(x->reason));
    json_put_bool(o, "asked_to_stop", x->asked_to_stop);
    json_put_int(o, "left_behind", x->left_behind);
    json_put_int(o, "ran_ms", x->ran_ms);
    cJSON *usage = json_object();
    json_put_int(usage, "user_ms", x->user_ms);
    json_put_int(usage, "system_ms", x->system_ms);
    json_put_int(usage, "max_rss_bytes", x->max_rss_bytes);
    json_put(o, "rusage", usage);
    json_put_string(o, "detail", x->detail);
    json_put_string(o, "time", now);
}

/* The worker may write in this folder. If start.json is no longer the file that is locked, a new
 * one is written and renamed instead. */
static int rename_start(const char *folder, int fd, const struct strbuf *text, struct err *err)
{
    struct stat ours;
    struct stat there;
    char *from = path_join(folder, LAYOUT_START);
    char *to = path_join(folder, LAYOUT_EXIT);
    int made = -1;
    int why;
    if (fstat(fd, &ours) == 0 && stat(from, &there) == 0 && ours.st_dev == there.st_dev &&
        ours.st_ino == there.st_ino) {
        why = overwrite(fd, text);
    } else { /* the worker removed or replaced it */
        (void)unlink(from);
        made = open(from, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        why = made < 0 ? errno : overwrite(made, text);
    }
    if (made >= 0) {
        (void)close(made);
    }
    int rc = why == 0 ? 0 : err_set_errno(err, why, "write %s", from);
    if (rc == 0 && rename(from, to) != 0) {
        rc = err_set_errno(err, errno, "rename to %s", to);
    }
    free(to);
    free(from);
    return rc;
}

/* The task of an attempt that ended well moves into exit.json: a study of a million tasks has a
 * file less for each. Returns NULL where it stays: an attempt that failed is looked into by hand,
 * and a worker may have replaced the file by anything. */
static cJSON *task_to_move(const char *folder, const struct shim_exit *x)
{
    cJSON *task = NULL;
    struct strbuf text = STRBUF_INIT;
    struct err ignored;
    char *path = path_join(folder, LAYOUT_TASK);
    struct stat st;
    if (x->reason == SHIM_EXITED && x->code == 0 && lstat(path, &st) == 0 && S_ISREG(st.st_mode) &&
        file_read(path, EXIT_RESERVED_BYTES, &text, &ignored) == 0 &&
        json_parse(text.buf, text.len, &task, &ignored) != 0) {
        task = NULL;
    }
    strbuf_release(&text);
    free(path);
    return task;
}

/* The text of exit.json; *moved when the task is in it, for which there must be room in what was
 * reserved. */
static int exit_text(const char *folder, cJSON *o, const struct shim_exit *x, struct strbuf *text,
                     bool *moved, struct err *err)
{
    cJSON *task = task_to_move(folder, x);
    *moved = task != NULL;
    if (*moved) {
        json_put(o, ATTEMPT_TASK_MEMBER, task);
    }
    int rc = json_line(o, text, err);
    if (*moved && (rc != 0 || text->len >= EXIT_RESERVED_BYTES)) {
        *moved = false;
        cJSON_DeleteItemFromObjectCaseSensitive(o, ATTEMPT_TASK_MEMBER);
        strbuf_clear(text);
        rc = json_line(o, text, err);
    }
    strbuf_addc(text, '\n');
    return rc;
}

static void remove_task(const char *folder)
{
    char *path = path_join(folder, LAYOUT_TASK);
    (void)unlink(path); /* where it stays, its text is there twice */
    free(path);
}

/* Overwrites start.json and renames it: no new space is needed on the way. Not synced, for the
 * reason of start.json: an end that a loss of power removes or tears belongs to an attempt that
 * was lost with the machine, and the daemon's decision about it is in the journal. The cgroup is
 * left out: it is gone. */
int shim_exit_write(const char *folder, int fd, const struct shim_start *start,
                    const struct shim_exit *x, struct err *err)
{
    struct strbuf text = STRBUF_INIT;
    cJSON *o = json_object();
    json_put_int(o, "protocol", SHIM_PROTOCOL);
    json_put_string(o, "attempt", x->attempt);
    if (start->shim_pid > 0) {
        put_shim(o, start);
        json_put_int(o, "worker_pid", start->worker_pid);
        json_put_int(o, "worker_start", start->worker_start);
        json_put_string(o, "started", start->time);
    }
    put_exit(o, x);
    bool moved = false;
    int rc = exit_text(folder, o, x, &text, &moved, err);
    cJSON_Delete(o);
    rc = rc == 0 ? rename_start(folder, fd, &text, err) : rc;
    if (rc == 0 && moved) {
        remove_task(folder);
    }
    strbuf_release(&text);
    return rc;
}

static enum shim_reason reason_from_name(const char *name)
{
    enum shim_reason r = SHIM_EXITED;
    while (r < SHIM_REASON_NR && strcmp(name, reason_names[r]) != 0) {
        r++;
    }
    return r;
}

static int exit_fields(const cJSON *o, struct shim_exit *out, struct err *err)
{
    const char *reason = NULL;
    const char *detail = "";
    const char *time = "";
    const cJSON *usage = NULL;
    int64_t code = -1;
    int64_t sig = 0;
    out->ran_ms = -1;
    if (json_get_string(o, "reason", &reason, err) != 0 ||
        json_opt_string(o, "detail", &detail, err) != 0 ||
        json_get_string(o, "time", &time, err) != 0 ||
        json_opt_int(o, "code", 0, 255, &code, err) != 0 ||
        json_opt_int(o, "signal", 1, 128, &sig, err) != 0 ||
        json_opt_bool(o, "asked_to_stop", &out->asked_to_stop, err) != 0 ||
        json_opt_int(o, "left_behind", 0, JSON_INT_MAX, &out->left_behind, err) != 0 ||
        json_opt_int(o, "ran_ms", 0, JSON_INT_MAX, &out->ran_ms, err) != 0 ||
        json_get_object(o, "rusage", &usage, err) != 0 ||
        json_get_int(usage, "user_ms", 0, JSON_INT_MAX, &out->user_ms, err) != 0 ||
        json_get_int(usage, "system_ms", 0, JSON_INT_MAX, &out->system_ms, err) != 0 ||
        json_get_int(usage, "max_rss_bytes", 0, JSON_INT_MAX, &out->max_rss_bytes, err) != 0) {
        return err->code;
    }
    out->code = (int)code;
    out->signal = (int)sig;
    out->reason = reason_from_name(reason);
    copy_text(out->detail, sizeof(out->detail), detail);
    copy_text(out->time, sizeof(out->time), time);
    return out->reason == SHIM_REASON_NR ? err_set(err, ERR_CORRUPT, "unknown reason") : 0;
}

int shim_exit_read(const char *folder, const char *attempt, struct shim_exit *out, struct err *err)
{
    cJSON *o = NULL;
    *out = (struct shim_exit){0};
    int rc = read_json_in(folder, LAYOUT_EXIT, attempt, &o, err);
    if (rc != 0) {
        return rc;
    }
    copy_text(out->attempt, sizeof(out->attempt), json_member(o, "attempt")->valuestring);
    if (exit_fields(o, out, err) != 0) {
        err->code = ERR_CORRUPT;
        rc = err_wrap(err, LAYOUT_EXIT);
    }
    cJSON_Delete(o);
    return rc;
}
