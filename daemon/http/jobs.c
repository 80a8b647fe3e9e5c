/*
 * What the page reads from files, off the loop. Folders of attempts belong to workers, which may
 * have put links, pipes or devices there: nothing is followed, and only regular files are read. A
 * job knows its request by number, and its answer is dropped when that is gone.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files/file.h"
#include "base/json/json.h"
#include "base/layout/layout.h"
#include "base/text.h"
#include "base/xalloc.h"
#include "daemon/http/data.h"

#define FILES_MAX     ((size_t)2000)
#define FILES_MET_MAX ((size_t)20000)
#define DEPTH_MAX     6

/* ---- the job ---- */

static void on_work(struct job *job)
{
    struct page_job *j = (struct page_job *)job;
    j->rc = j->read(j, &j->err);
}

static void on_done(struct job *job)
{
    struct page_job *j = (struct page_job *)job;
    struct http *h = j->http;
    struct page_request *r = h->closed ? NULL : http_find(h, j->id);
    h->n_jobs--;
    if (!h->closed && j->rc == 0 && j->keep != NULL && j->reply.body.len > 0) {
        j->keep(j);
    }
    if (r != NULL && r->waiting) {
        if (j->rc != 0) {
            reply_error(&r->reply, &j->err);
        } else {
            reply_release(&r->reply);
            r->reply = j->reply;
            reply_init(&j->reply);
        }
        r->ready = true;
        http_resume(r);
    }
    if (j->free_question != NULL) {
        j->free_question(j->question);
    }
    reply_release(&j->reply);
    free(j->folder);
    free(j->name);
    free(j->path);
    free(j);
}

struct page_job *page_job_new(int (*read)(struct page_job *j, struct err *err))
{
    struct page_job *j = xcalloc(1, sizeof(*j));
    j->job = (struct job){.work = on_work, .done = on_done};
    j->read = read;
    reply_init(&j->reply);
    return j;
}

bool page_job_is_stopped(const struct page_job *j)
{
    return atomic_load(&j->http->stopping);
}

void page_job_start(struct page_request *r, struct page_job *j)
{
    struct http *h = r->http;
    j->http = h;
    j->id = r->id;
    if (h->n_jobs++ >= HTTP_JOBS_MAX) {
        reply_refuse(&r->reply, MHD_HTTP_SERVICE_UNAVAILABLE, "busy",
                     "other files are being read: ask again");
        r->ready = true;
        on_done(&j->job); /* which finds no request that waits */
        return;
    }
    r->waiting = true;
    job_start(&h->shell->loop, &j->job);
}

/* ---- tail ---- */

static int open_regular(const char *path, struct stat *st, struct err *err)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0) {
        return err_set_errno(err, errno, "%.150s", path);
    }
    if (fstat(fd, st) != 0 || !S_ISREG(st->st_mode)) {
        (void)close(fd);
        return err_set(err, ERR_NOT_FOUND, "%.150s is not a regular file", path);
    }
    return fd;
}

/* Every character but line ends and tabs that is a control character, or not UTF-8, becomes '?'; a
 * carriage return ends a line. */
static void add_plain(struct strbuf *out, const char *text, size_t len)
{
    for (size_t i = 0; i < len;) {
        uint32_t cp = 0;
        const size_t n = text_utf8_next(text + i, len - i, &cp);
        const bool kept = n > 0 && (cp == '\n' || cp == '\t' ||
                                    (cp >= 0x20 && cp != 0x7f && (cp < 0x80 || cp >= 0xa0)));
        if (kept) {
            strbuf_add(out, text + i, n);
        } else {
            strbuf_addc(out, cp == '\r' && n == 1 ? '\n' : '?');
        }
        i += n > 0 ? n : 1;
    }
}

/* Of an event of a sealed stage: what says how far it is, and nothing that it measured. */
static void add_open_event(struct strbuf *out, const char *line, size_t len)
{
    static const char *const keys[] = {"type", "time", "section", "done", "total", "unit"};
    static const char *const types[] = {"progress", "section", "checkpoint", "resumed"};
    struct err ignored;
    cJSON *event = NULL;
    const char *type = NULL;
    if (json_parse(line, len, &event, &ignored) != 0 ||
        json_get_string(event, "type", &type, &ignored) != 0) {
        cJSON_Delete(event);
        return;
    }
    for (size_t i = 0; i < ARRAY_LEN(types); i++) {
        if (strcmp(type, types[i]) == 0) {
            cJSON *open = json_object();
            for (size_t k = 0; k < ARRAY_LEN(keys); k++) {
                const cJSON *v = json_member(event, keys[k]);
                if (cJSON_IsString(v) || cJSON_IsNumber(v)) {
                    json_put(open, keys[k], json_copy(v));
                }
            }
            if (json_line(open, out, &ignored) == 0) {
                strbuf_addc(out, '\n');
            }
            cJSON_Delete(open);
        }
    }
    cJSON_Delete(event);
}

static void add_open_events(struct strbuf *out, const char *text, size_t len)
{
    const char *end = text + len;
    const char *stop = NULL;
    for (const char *at = text; (stop = memchr(at, '\n', (size_t)(end - at))) != NULL;
         at = stop + 1) {
        add_open_event(out, at, (size_t)(stop - at));
    }
}

int tail_read(struct page_job *j, struct err *err)
{
    struct stat st;
    const int fd = open_regular(j->path, &st, err);
    j->reply.type = "text/plain; charset=utf-8";
    if (fd < 0 && err->code == ERR_NOT_FOUND && file_kind_at(j->path) == FILE_ABSENT) {
        reply_add(&j->reply, "X-Preregd-Offset", "0");
        return 0; /* empty ones are removed at the end of an attempt */
    }
    if (fd < 0) {
        return fd;
    }
    int64_t from = st.st_size > j->bytes ? st.st_size - j->bytes : 0;
    struct strbuf text = STRBUF_INIT;
    strbuf_reserve(&text, (size_t)j->bytes);
    const ssize_t n = pread(fd, text.buf, (size_t)j->bytes, from);
    const int rc = n < 0 ? err_set_errno(err, errno, "read %.150s", j->path) : 0;
    if (n > 0) {
        /* it begins with a whole line, if there is one */
        const char *nl = from > 0 ? memchr(text.buf, '\n', (size_t)n) : NULL;
        const size_t skip = nl == NULL ? 0 : (size_t)(nl - text.buf) + 1;
        from += (int64_t)skip;
        if (j->sealed) {
            add_open_events(&j->reply.body, text.buf + skip, (size_t)n - skip);
        } else {
            add_plain(&j->reply.body, text.buf + skip, (size_t)n - skip);
        }
    }
    reply_add(&j->reply, "X-Preregd-Offset", "%lld", (long long)from);
    strbuf_release(&text);
    (void)close(fd);
    return rc;
}

/* ---- files ---- */

struct file_listing {
    cJSON *list;
    size_t n;
    size_t n_met; /* also of what is not listed */
    bool sealed;  /* workers' names are left out */
    const struct page_job *job;
    bool cut;
};

/* A worker may put a score in a name (val_acc=0.93.ckpt): of a sealed stage only the names that
 * every attempt has are shown. */
static char *shown_name(const struct file_listing *l, const char *path)
{
    static const char *const ours[] = {LAYOUT_STDOUT, LAYOUT_STDERR, LAYOUT_EVENTS, LAYOUT_RESULT};
    for (size_t i = 0; i < ARRAY_LEN(ours); i++) {
        if (strcmp(path, ours[i]) == 0) {
            return xstrdup(path);
        }
    }
    return l->sealed ? xasprintf("sealed, %zu", l->n + 1) : xstrdup(path);
}

static void add_file(struct file_listing *l, const char *path, const struct stat *st)
{
    char time[WALL_TEXT_SIZE];
    char *plain = shown_name(l, path);
    text_make_line(plain);
    cJSON *o = json_object();
    clock_wall_text((struct wall_time){st->st_mtim.tv_sec * 1000 + st->st_mtim.tv_nsec / 1000000},
                    time);
    json_put_string(o, "path", plain);
    json_put_int(o, "bytes", st->st_size);
    json_put_string(o, "modified", time);
    json_push(l->list, o);
    l->n++;
    free(plain);
}

/* Takes the folder's descriptor over. Names are relative to the attempt's folder. */
static void list_folder(struct file_listing *l, int fd, const char *prefix, int depth)
{
    DIR *dir = fdopendir(fd);
    if (dir == NULL) {
        (void)close(fd);
        return;
    }
    for (const struct dirent *e; (e = readdir(dir)) != NULL;) {
        struct stat st;
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0 ||
            fstatat(fd, e->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0) {
            continue;
        }
        if (++l->n_met > FILES_MET_MAX || l->n >= FILES_MAX || page_job_is_stopped(l->job)) {
            l->cut = true;
            break;
        }
        if (S_ISDIR(st.st_mode) && depth == DEPTH_MAX) {
            l->cut = true;
            continue;
        }
        char *path = prefix[0] == '\0' ? xstrdup(e->d_name) : path_join(prefix, e->d_name);
        const int below =
            S_ISDIR(st.st_mode)
                ? openat(fd, e->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
                : -1;
        if (below >= 0) {
            list_folder(l, below, path, depth + 1);
        } else if (S_ISREG(st.st_mode)) {
            add_file(l, path, &st);
        }
        free(path);
    }
    (void)closedir(dir);
}

int files_read(struct page_job *j, struct err *err)
{
    struct file_listing l = {.sealed = j->sealed, .job = j};
    const int fd = open(j->folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0) {
        return err_set_errno(err, errno, "%.150s", j->folder);
    }
    l.list = json_array();
    list_folder(&l, fd, "", 0);
    cJSON *o = json_object();
    json_put_string(o, "folder", j->folder);
    json_put(o, "files", l.list);
    json_put_bool(o, "partial", l.cut);
    reply_json(&j->reply, o);
    cJSON_Delete(o);
    return 0;
}

/* ---- report ---- */

static const char *type_of(const char *name)
{
    static const char *const types[][2] = {
        {".html", "text/html; charset=utf-8"}, {".svg", "image/svg+xml"},
        {".csv", "text/csv; charset=utf-8"},   {".json", "application/json"},
        {".md", "text/plain; charset=utf-8"},  {".txt", "text/plain; charset=utf-8"},
    };
    const size_t n = strlen(name);
    for (size_t i = 0; i < ARRAY_LEN(types); i++) {
        const size_t tail = strlen(types[i][0]);
        if (n > tail && strcmp(name + n - tail, types[i][0]) == 0) {
            return types[i][1];
        }
    }
    return "application/octet-stream";
}

/* Step by step and without following links: what is not below the folder cannot be named. */
static int open_below(const char *folder, const char *name)
{
    int at = open(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    for (const char *rest = name; at >= 0 && *rest != '\0';) {
        const size_t n = strcspn(rest, "/");
        const bool last = rest[n] == '\0';
        char *step = xstrndup(rest, n);
        const int flags = O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | (last ? 0 : O_DIRECTORY);
        const int next = openat(at, step, flags);
        (void)close(at);
        free(step);
        at = next;
        rest += n + !last;
    }
    return at;
}

/* No script, and nothing from elsewhere: a report is one document with its pictures in it. */
int report_read(struct page_job *j, struct err *err)
{
    struct stat st;
    const int fd = open_below(j->folder, j->name);
    if (fd < 0 || fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) {
        if (fd >= 0) {
            (void)close(fd);
        }
        return err_set(err, ERR_NOT_FOUND, "the report has no file %.120s", j->name);
    }
    j->reply.type = type_of(j->name);
    j->reply.policy = "default-src 'none'; style-src 'unsafe-inline'; img-src 'self' data:; "
                      "base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
    j->reply.fd = fd;
    j->reply.fd_bytes = st.st_size;
    return 0;
}
