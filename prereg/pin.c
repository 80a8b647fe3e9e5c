#include "prereg/pin.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/file.h"
#include "base/xalloc.h"

#define REST_NS     ((int64_t)2000000000)
#define OWN_REST_NS ((int64_t)100000000)
#define DEPTH_MAX   64

struct pin_entry {
    char *path;
    struct digest stamp; /* over what stat says of everything at the path */
    struct digest digest;
};

struct pin_cache {
    struct pin_entry *entries;
    size_t n_entries;
    size_t cap;
};

struct pin_cache *pin_cache_create(void)
{
    return xcalloc(1, sizeof(struct pin_cache));
}

void pin_cache_free(struct pin_cache *cache)
{
    if (cache == NULL) {
        return;
    }
    for (size_t i = 0; i < cache->n_entries; i++) {
        free(cache->entries[i].path);
    }
    free(cache->entries);
    free(cache);
}

struct stamp_walk {
    struct digest_stream stream;
    int64_t newest_ns;
    bool whole_seconds; /* of some change: the file system may count no finer */
};

static int64_t time_ns(const struct timespec *t)
{
    return (int64_t)t->tv_sec * 1000000000 + t->tv_nsec;
}

static void add_stat(struct stamp_walk *w, const char *path, const struct stat *st)
{
    int64_t mtime = time_ns(&st->st_mtim);
    int64_t ctime_ns = time_ns(&st->st_ctim);
    const int64_t fields[] = {(int64_t)st->st_dev,
                              (int64_t)st->st_ino,
                              (int64_t)st->st_mode,
                              (int64_t)st->st_size,
                              mtime,
                              ctime_ns};
    digest_add(&w->stream, path, strlen(path) + 1);
    digest_add(&w->stream, fields, sizeof(fields));
    w->newest_ns = mtime > w->newest_ns ? mtime : w->newest_ns;
    w->newest_ns = ctime_ns > w->newest_ns ? ctime_ns : w->newest_ns;
    w->whole_seconds |= st->st_ctim.tv_nsec == 0;
}

static int stamp_walk(struct stamp_walk *w, const char *path, int depth, struct err *err)
{
    struct stat st;
    /* At the top links are followed, as digest_path() does; below they are refused there. */
    if ((depth == 0 ? stat(path, &st) : lstat(path, &st)) != 0) {
        return err_set_errno(err, errno, "stat %s", path);
    }
    add_stat(w, path, &st);
    if (!S_ISDIR(st.st_mode)) {
        return 0;
    }
    if (depth > DEPTH_MAX) {
        return err_set(err, ERR_RANGE, "%s: folders nested deeper than %d", path, DEPTH_MAX);
    }
    struct name_list names;
    int rc = dir_list(path, &names, err);
    for (size_t i = 0; rc == 0 && i < names.n; i++) {
        char *sub = path_join(path, names.names[i]);
        rc = stamp_walk(w, sub, depth + 1, err);
        free(sub);
    }
    name_list_release(&names);
    return rc;
}

struct stamp {
    struct digest digest;
    int64_t newest_ns;
    bool whole_seconds;
};

static int stamp_of(const char *path, struct stamp *out, struct err *err)
{
    struct stamp_walk w = {0};
    digest_start(&w.stream);
    int rc = stamp_walk(&w, path, 0, err);
    *out = (struct stamp){.digest = digest_finish(&w.stream),
                          .newest_ns = w.newest_ns,
                          .whole_seconds = w.whole_seconds};
    return rc;
}

static struct pin_entry *find(struct pin_cache *cache, const char *path)
{
    for (size_t i = 0; i < cache->n_entries; i++) {
        if (strcmp(cache->entries[i].path, path) == 0) {
            return &cache->entries[i];
        }
    }
    return NULL;
}

static void remember(struct pin_cache *cache, const char *path, const struct digest *stamp,
                     const struct digest *digest)
{
    struct pin_entry *e = find(cache, path);
    if (e == NULL) {
        ARRAY_GROW(cache->entries, cache->n_entries, cache->cap);
        e = &cache->entries[cache->n_entries++];
        e->path = xstrdup(path);
    }
    e->stamp = *stamp;
    e->digest = *digest;
}

static int64_t now_ns(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_REALTIME, &t);
    return time_ns(&t);
}

static int digest_cached(struct pin_cache *cache, const char *path, int64_t rest_ns,
                         struct digest *out, struct err *err)
{
    if (cache == NULL) {
        return digest_path(path, out, err);
    }
    struct stamp before;
    struct stamp after;
    int64_t start_ns = now_ns();
    int rc = stamp_of(path, &before, err);
    if (rc != 0) {
        return rc;
    }
    const struct pin_entry *known = find(cache, path);
    if (known != NULL && digest_equal(&known->stamp, &before.digest)) {
        *out = known->digest;
        return 0;
    }
    bool at_rest = before.newest_ns < start_ns - (before.whole_seconds ? REST_NS : rest_ns);
    rc = digest_path(path, out, err);
    if (rc != 0) {
        return rc;
    }
    rc = stamp_of(path, &after, err);
    if (rc == 0 && at_rest && digest_equal(&before.digest, &after.digest)) {
        remember(cache, path, &before.digest, out);
    }
    return rc;
}

int pin_digest(struct pin_cache *cache, const char *path, struct digest *out, struct err *err)
{
    return digest_cached(cache, path, REST_NS, out, err);
}

int pin_digest_own(struct pin_cache *cache, const char *path, struct digest *out, struct err *err)
{
    return digest_cached(cache, path, OWN_REST_NS, out, err);
}
