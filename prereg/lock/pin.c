/*
 * A hash table from path to (stamp, digest). The stamp is a digest over path, device, inode, mode,
 * size and times of everything below the path; when it equals the remembered one, the digest is
 * returned without reading. The stamp is taken before and after reading, and only a file that was
 * at rest is remembered. The mutex guards the table alone: no file is read under it.
 */
#include "prereg/lock/pin.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/files/file.h"
#include "base/xalloc.h"

/* rest before a digest is remembered: any file, and a file of the state folder */
#define REST_NS     ((int64_t)2000000000)
#define OWN_REST_NS ((int64_t)100000000)
#define DEPTH_MAX   64

#define BUCKETS_FIRST ((size_t)64)

struct pin_entry {
    struct pin_entry *next; /* in its bucket */
    char *path;
    struct digest stamp; /* over what stat says of everything at the path */
    struct digest digest;
};

struct pin_cache {
    pthread_mutex_t mutex;
    struct pin_entry **buckets;
    size_t n_buckets; /* a power of two */
    size_t n_entries;
};

struct pin_cache *pin_cache_create(void)
{
    struct pin_cache *cache = xcalloc(1, sizeof(*cache));
    cache->n_buckets = BUCKETS_FIRST;
    cache->buckets = xcalloc(cache->n_buckets, sizeof(struct pin_entry *));
    (void)pthread_mutex_init(&cache->mutex, NULL);
    return cache;
}

void pin_cache_forget(struct pin_cache *cache)
{
    (void)pthread_mutex_lock(&cache->mutex);
    for (size_t i = 0; i < cache->n_buckets; i++) {
        for (struct pin_entry *e = cache->buckets[i], *next; e != NULL; e = next) {
            next = e->next;
            free(e->path);
            free(e);
        }
        cache->buckets[i] = NULL;
    }
    cache->n_entries = 0;
    (void)pthread_mutex_unlock(&cache->mutex);
}

void pin_cache_free(struct pin_cache *cache)
{
    if (cache == NULL) {
        return;
    }
    pin_cache_forget(cache);
    free(cache->buckets);
    (void)pthread_mutex_destroy(&cache->mutex);
    free(cache);
}

/* The state of computing a stamp. */
struct stamp_walk {
    struct digest_stream stream;
    int64_t newest_ns;
    bool whole_seconds; /* of some change: the file system may count no finer */
};

static int64_t time_ns(const struct timespec *t)
{
    return (int64_t)t->tv_sec * 1000000000 + t->tv_nsec;
}

/* Adds one file or folder to the stamp, and keeps the newest time of all. */
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

/* Adds everything at and below the path, folders in the order of dir_list(). */
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

/* FNV-1a */
static size_t hash_of(const char *path)
{
    uint64_t h = UINT64_C(14695981039346656037);
    for (const char *at = path; *at != '\0'; at++) {
        h = (h ^ (unsigned char)*at) * UINT64_C(1099511628211);
    }
    return (size_t)(h ^ h >> 32);
}

static struct pin_entry *find(const struct pin_cache *cache, const char *path)
{
    struct pin_entry *e = cache->buckets[hash_of(path) & (cache->n_buckets - 1)];
    while (e != NULL && strcmp(e->path, path) != 0) {
        e = e->next;
    }
    return e;
}

/* Doubles the buckets, which keeps chains at one entry on average. */
static void grow(struct pin_cache *cache)
{
    size_t n = cache->n_buckets * 2;
    struct pin_entry **buckets = xcalloc(n, sizeof(struct pin_entry *));
    for (size_t i = 0; i < cache->n_buckets; i++) {
        for (struct pin_entry *e = cache->buckets[i], *next; e != NULL; e = next) {
            struct pin_entry **at = &buckets[hash_of(e->path) & (n - 1)];
            next = e->next;
            e->next = *at;
            *at = e;
        }
    }
    free(cache->buckets);
    cache->buckets = buckets;
    cache->n_buckets = n;
}

/* Whether the path was remembered with this stamp; *out is its digest then. */
static bool recall(struct pin_cache *cache, const char *path, const struct digest *stamp,
                   struct digest *out)
{
    (void)pthread_mutex_lock(&cache->mutex);
    const struct pin_entry *e = find(cache, path);
    bool known = e != NULL && digest_equal(&e->stamp, stamp);
    if (known) {
        *out = e->digest;
    }
    (void)pthread_mutex_unlock(&cache->mutex);
    return known;
}

/* Stores or replaces the entry of the path. */
static void remember(struct pin_cache *cache, const char *path, const struct digest *stamp,
                     const struct digest *digest)
{
    (void)pthread_mutex_lock(&cache->mutex);
    struct pin_entry *e = find(cache, path);
    if (e == NULL) {
        if (cache->n_entries >= cache->n_buckets) {
            grow(cache);
        }
        struct pin_entry **at = &cache->buckets[hash_of(path) & (cache->n_buckets - 1)];
        e = xcalloc(1, sizeof(*e));
        e->path = xstrdup(path);
        e->next = *at;
        *at = e;
        cache->n_entries++;
    }
    e->stamp = *stamp;
    e->digest = *digest;
    (void)pthread_mutex_unlock(&cache->mutex);
}

static int64_t now_ns(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_REALTIME, &t);
    return time_ns(&t);
}

/* Stamp, look up, read, stamp again, remember if nothing moved meanwhile. */
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
    if (recall(cache, path, &before.digest, out)) {
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
