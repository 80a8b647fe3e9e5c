/*
 * Makes the list of an environment: finds its site-packages, reads the RECORD of each installed
 * package and holds the digest of every file against it, and then looks for files that no RECORD
 * names. Digests go through the cache, so that a list at every spawn costs stats and not reads.
 * What a list cannot cover is an error here, never left out. environment_compare.c compares.
 */
#include "prereg/lock/environment.h"

#include <stdlib.h>
#include <string.h>

#include "base/files/file.h"
#include "base/json/json.h"
#include "base/xalloc.h"
#include "prereg/lock/package_text.h"

#define RECORD_MAX   ((size_t)64 << 20) /* bytes of a RECORD; that of PyTorch has 1.5 million */
#define SETTINGS_MAX ((size_t)1 << 20)  /* bytes of pyvenv.cfg and of a .pth file */
#define LOOSE_MAX    ((size_t)1024)     /* files in no RECORD */
#define FILES_MAX    ((size_t)2000000)  /* that RECORDs name, and that are met in site-packages */
#define SITE_DEPTH   3                  /* of lib/python3.N/site-packages in its environment */
#define DEPTH_MAX    64                 /* folders within each other in site-packages */

#define HEAL ": install it again (docs/locks.md)" /* short enough to be whole in any message */

/* One list in the making. */
struct package_scan {
    struct pin_cache *cache;
    char *site;    /* the folder site-packages */
    char **listed; /* paths of RECORDs, from site-packages on; sorted before the loose files */
    size_t n_listed;
    size_t cap_listed;
    cJSON *packages;
    cJSON *loose;
    size_t n_loose;
    size_t n_met; /* files and folders below site-packages */
};

static bool ends_with(const char *text, const char *end)
{
    size_t n = strlen(text);
    size_t k = strlen(end);
    return n >= k && strcmp(text + n - k, end) == 0;
}

/* What pyvenv.cfg says; a conda prefix has none. The version is NULL where it is not in it. */
static int read_settings(const char *path, char **version, struct err *err)
{
    struct strbuf cfg = STRBUF_INIT;
    char *file = path_join(path, "pyvenv.cfg");
    enum file_kind kind = FILE_ABSENT;
    *version = NULL;
    int rc = file_look(file, &kind, err);
    rc = rc == 0 && kind != FILE_ABSENT ? file_read(file, SETTINGS_MAX, &cfg, err) : rc;
    if (rc == 0 && cfg.len > 0) {
        char *shared = pyvenv_setting(cfg.buf, "include-system-site-packages");
        if (shared != NULL && strcasecmp(shared, "false") != 0) {
            rc = err_set(err, ERR_INVALID,
                         "%.150s uses the system's packages, which are not pinned: make it without "
                         "--system-site-packages",
                         path);
        }
        free(shared);
        *version = pyvenv_setting(cfg.buf, "version");
        if (*version == NULL) {
            *version = pyvenv_setting(cfg.buf, "version_info");
        }
    }
    free(file);
    strbuf_release(&cfg);
    return rc;
}

/* Finds lib/python3.N/site-packages, of which there is one; *name is "python3.N". */
static int find_site(const char *path, char **site, char **name, struct err *err)
{
    struct name_list names = {0};
    char *lib = path_join(path, "lib");
    size_t found = 0;
    int rc = dir_list(lib, &names, err);
    for (size_t i = 0; rc == 0 && i < names.n; i++) {
        char *inner = xasprintf("%s/%s/site-packages", lib, names.names[i]);
        enum file_kind kind = FILE_ABSENT;
        if (strncmp(names.names[i], "python3.", 8) == 0) {
            rc = file_look(inner, &kind, err);
        }
        if (kind == FILE_FOLDER) {
            found++;
            free(*site);
            free(*name);
            *site = xstrdup(inner);
            *name = xstrdup(names.names[i]);
        }
        free(inner);
    }
    if (rc == ERR_NOT_FOUND || (rc == 0 && found != 1)) {
        rc = err_set(err, ERR_INVALID,
                     "%.150s is not an environment of one Python: expected one "
                     "lib/python3.N/site-packages in it, found %zu",
                     path, found);
    }
    name_list_release(&names);
    free(lib);
    return rc;
}

/* Compares one file with what its RECORD says of it. */
static int check_file(const struct package_scan *s, const char *package, const char *file,
                      const struct digest *want, struct err *err)
{
    struct digest found;
    char *path = path_absolute(s->site, file);
    enum file_kind kind = FILE_ABSENT;
    int rc = file_look(path, &kind, err);
    if (rc == 0 &&
        (!package_path_stays_in(file, SITE_DEPTH) || kind == FILE_FOLDER || kind == FILE_OTHER)) {
        rc = err_set(err, ERR_INVALID,
                     "%.60s: RECORD names %.120s, which is not a file of this environment", package,
                     file);
    } else if (rc == 0) {
        rc = pin_digest(s->cache, path, &found, err);
    }
    if (rc == ERR_NOT_FOUND) {
        rc = err_set(err, ERR_LOCK, "%.60s: %.100s is gone; its RECORD names it" HEAL, package,
                     file);
    } else if (rc == 0 && !digest_equal(&found, want)) {
        rc = err_set(err, ERR_LOCK, "%.60s: %.100s differs from its RECORD" HEAL, package, file);
    }
    free(path);
    return rc;
}

/* Notes the path of a file that its RECORD pins, or of the RECORD itself. What has no digest there
 * is met as a loose file, so it must be one that is. Takes the path over. */
static int note_path(struct package_scan *s, const char *info, bool has_digest, char *path,
                     struct err *err)
{
    const size_t n = strlen(info);
    const bool own = strncmp(path, info, n) == 0 && strcmp(path + n, "/RECORD") == 0;
    int rc = 0;
    if (!has_digest && path[0] != '\0' && !package_path_stays_in(path, 0)) {
        rc = err_set(err, ERR_INVALID, "%.80s: RECORD has no digest of %.120s", info, path);
    } else if (s->n_listed >= FILES_MAX) {
        rc = err_set(err, ERR_INVALID, "%.80s: RECORDs name more than %zu files", info, FILES_MAX);
    } else if (has_digest || own) {
        ARRAY_GROW(s->listed, s->n_listed, s->cap_listed);
        s->listed[s->n_listed++] = path;
        return 0;
    }
    free(path);
    return rc;
}

/* Checks each file of the RECORD in the folder `info`, and notes its path. */
static int read_record(struct package_scan *s, const char *package, const char *info,
                       const struct strbuf *text, struct err *err)
{
    int rc = 0;
    const char *line = text->len == 0 ? "" : text->buf;
    for (size_t number = 1; rc == 0 && *line != '\0'; number++) {
        const char *end = strchrnul(line, '\n');
        size_t n = (size_t)(end - line);
        n -= n > 0 && line[n - 1] == '\r' ? 1 : 0;
        struct record_entry entry;
        if (!record_entry_read(line, n, &entry)) {
            return err_set(err, ERR_INVALID,
                           "%.60s: RECORD, line %zu: expected PATH,sha256=HASH,SIZE", package,
                           number);
        }
        if (entry.has_digest && !package_path_is_cache(entry.path)) {
            rc = check_file(s, package, entry.path, &entry.digest, err);
        }
        if (rc != 0) {
            free(entry.path);
        } else {
            rc = note_path(s, info, entry.has_digest, entry.path, err);
        }
        line = *end == '\0' ? end : end + 1;
    }
    return rc;
}

/* Packages that are installed by a link to their sources say so in direct_url.json. */
static int refuse_editable(const char *folder, const char *package, struct err *err)
{
    cJSON *url = NULL;
    char *path = path_join(folder, "direct_url.json");
    int rc = json_read_file(path, SETTINGS_MAX, &url, err);
    if (rc == ERR_NOT_FOUND) {
        rc = 0;
    } else if (rc == 0 && cJSON_IsTrue(json_member(json_member(url, "dir_info"), "editable"))) {
        rc = err_set(err, ERR_INVALID,
                     "%.80s is installed as a link to its sources, which are not pinned: install "
                     "it without --editable",
                     package);
    }
    cJSON_Delete(url);
    free(path);
    return rc;
}

/* Adds the package of one folder NAME-VERSION.dist-info. */
static int add_package(struct package_scan *s, const char *info, struct err *err)
{
    struct strbuf text = STRBUF_INIT;
    char hex[DIGEST_HEX_SIZE];
    char *folder = path_join(s->site, info);
    char *file = path_join(folder, "RECORD");
    char *name = xstrndup(info, strlen(info) - strlen(".dist-info"));
    char *dash = strrchr(name, '-');
    const char *version = dash == NULL ? "" : dash + 1;
    if (dash != NULL) {
        *dash = '\0';
    }
    int rc = json_member(s->packages, name) == NULL
                 ? refuse_editable(folder, name, err)
                 : err_set(err, ERR_INVALID,
                           "%.80s is installed twice, in two folders .dist-info: install it again "
                           "with pip",
                           name);
    if (rc == 0 && (rc = file_read(file, RECORD_MAX, &text, err)) != 0) {
        rc = rc == ERR_NOT_FOUND
                 ? err_set(err, ERR_INVALID, "%.80s has no RECORD: install it with pip", name)
                 : rc;
    }
    if (rc == 0) {
        struct digest sum = digest_bytes(text.buf, text.len);
        cJSON *package = json_object();
        digest_hex(&sum, hex);
        json_put_string(package, "version", version);
        json_put_string(package, "record", hex);
        json_put(s->packages, name, package);
        rc = read_record(s, name, info, &text, err);
    }
    free(name);
    free(file);
    free(folder);
    strbuf_release(&text);
    return rc;
}

static int by_bytes(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* A line of a .pth file that is not code names a folder whose files nothing pins. */
static int refuse_folders(const char *path, const char *name, struct err *err)
{
    struct strbuf text = STRBUF_INIT;
    int rc = file_read(path, SETTINGS_MAX, &text, err);
    if (rc == 0 && text.len > 0 && strlen(text.buf) != text.len) {
        rc = err_set(err, ERR_INVALID, "%.80s holds a NUL", name);
    }
    size_t n = 0;
    const char *line = rc == 0 ? pth_folder(text.buf, &n) : NULL;
    if (line != NULL) {
        rc = err_set(err, ERR_INVALID, "%.80s leads to %.*s, whose files are not pinned", name,
                     (int)(n > 100 ? 100 : n), line);
    }
    strbuf_release(&text);
    return rc;
}

static int look_at(struct package_scan *s, const char *inner, int depth, struct err *err);

/* One name below site-packages: `inner` is its path from there on. */
static int look_at_one(struct package_scan *s, const char *inner, int depth, struct err *err)
{
    char hex[DIGEST_HEX_SIZE];
    struct digest sum;
    char *path = path_join(s->site, inner);
    enum file_kind kind = FILE_ABSENT;
    int rc = file_look(path, &kind, err);
    if (rc == 0 && ++s->n_met > FILES_MAX) {
        rc = err_set(err, ERR_INVALID, "%.100s: more than %zu files", s->site, FILES_MAX);
    } else if (rc == 0 && (kind == FILE_ABSENT || kind == FILE_OTHER)) {
        rc = err_set(err, ERR_INVALID, "%.150s is not a file, or a link that leads nowhere", path);
    } else if (rc == 0 && kind == FILE_FOLDER) {
        rc = strcmp(path_name(inner), "__pycache__") == 0 ? 0 : look_at(s, inner, depth + 1, err);
    } else if (rc == 0) {
        rc = ends_with(inner, ".pth") && depth == 0 ? refuse_folders(path, inner, err) : 0;
        bool is_listed = s->n_listed > 0 && bsearch(&inner, s->listed, s->n_listed,
                                                    sizeof(*s->listed), by_bytes) != NULL;
        if (rc == 0 && !is_listed) {
            rc = s->n_loose++ < LOOSE_MAX
                     ? pin_digest(s->cache, path, &sum, err)
                     : err_set(err, ERR_INVALID, "%.100s: more than %zu files are in no RECORD",
                               s->site, LOOSE_MAX);
            if (rc == 0) {
                digest_hex(&sum, hex);
                json_put_string(s->loose, inner, hex);
            }
        }
    }
    free(path);
    return rc;
}

/* Looks for files that no RECORD names, in a folder below site-packages ("": itself). */
static int look_at(struct package_scan *s, const char *inner, int depth, struct err *err)
{
    struct name_list names = {0};
    char *folder = path_join(s->site, inner);
    int rc = depth > DEPTH_MAX ? err_set(err, ERR_INVALID, "%.150s: folders too deep", folder)
                               : dir_list(folder, &names, err);
    for (size_t i = 0; rc == 0 && i < names.n; i++) {
        char *next = inner[0] == '\0' ? xstrdup(names.names[i]) : path_join(inner, names.names[i]);
        rc = look_at_one(s, next, depth, err);
        free(next);
    }
    name_list_release(&names);
    free(folder);
    return rc;
}

/* The packages, then the loose files. */
static int scan_site(struct package_scan *s, struct err *err)
{
    struct name_list names = {0};
    int rc = dir_list(s->site, &names, err);
    for (size_t i = 0; rc == 0 && i < names.n; i++) {
        if (ends_with(names.names[i], ".dist-info")) {
            rc = add_package(s, names.names[i], err);
        }
    }
    if (rc == 0) {
        if (s->n_listed > 0) {
            qsort(s->listed, s->n_listed, sizeof(*s->listed), by_bytes);
        }
        rc = look_at(s, "", 0, err);
    }
    name_list_release(&names);
    return rc;
}

/* conda's own list of what is in a prefix: a file for each package, which names its files. */
static int add_conda(struct package_scan *s, const char *path, cJSON *out, struct err *err)
{
    struct name_list names = {0};
    char *folder = path_join(path, "conda-meta");
    enum file_kind kind = FILE_ABSENT;
    int rc = file_look(folder, &kind, err);
    rc = rc == 0 && kind == FILE_FOLDER ? dir_list(folder, &names, err) : rc;
    for (size_t i = 0; rc == 0 && i < names.n; i++) {
        struct digest sum;
        char hex[DIGEST_HEX_SIZE];
        char *file = path_join(folder, names.names[i]);
        if (ends_with(file, ".json") && (rc = pin_digest(s->cache, file, &sum, err)) == 0) {
            digest_hex(&sum, hex);
            json_put_string(out, names.names[i], hex);
        }
        free(file);
    }
    name_list_release(&names);
    free(folder);
    return rc;
}

/* The interpreter: a venv's bin/python3 is a link to it. */
static int add_python(struct package_scan *s, const char *path, const char *version, cJSON *out,
                      struct err *err)
{
    struct digest sum;
    char hex[DIGEST_HEX_SIZE];
    char *file = path_join(path, "bin/python3");
    int rc = pin_digest(s->cache, file, &sum, err);
    if (rc == ERR_NOT_FOUND) {
        rc = err_set(err, ERR_INVALID, "%.150s has no bin/python3", path);
    }
    if (rc == 0) {
        digest_hex(&sum, hex);
        json_put_string(out, "version", version);
        json_put_string(out, "sha256", hex);
    }
    free(file);
    return rc;
}

/* Fills `list`, which has its four members in this order. */
static int fill(struct package_scan *s, const char *path, cJSON *list, struct err *err)
{
    char *version = NULL;
    char *name = NULL;
    cJSON *python = json_object();
    cJSON *conda = json_object();
    json_put(list, "python", python);
    json_put(list, "packages", s->packages);
    json_put(list, "loose", s->loose);
    json_put(list, "conda", conda);
    int rc = read_settings(path, &version, err);
    if (rc == 0 && (rc = find_site(path, &s->site, &name, err)) == 0 &&
        (rc = add_python(s, path, version == NULL ? name + strlen("python") : version, python,
                         err)) == 0 &&
        (rc = scan_site(s, err)) == 0) {
        rc = add_conda(s, path, conda, err);
    }
    free(name);
    free(version);
    return rc;
}

/* An empty folder is where a file system is not mounted. */
static int check_there(const char *path, struct err *err)
{
    enum file_kind kind = FILE_ABSENT;
    struct name_list names = {0};
    int rc = file_look(path, &kind, err);
    rc = rc == 0 && kind == FILE_FOLDER ? dir_list(path, &names, err) : rc;
    if (rc == 0 && (kind == FILE_ABSENT || (kind == FILE_FOLDER && names.n == 0))) {
        rc = err_set(err, ERR_NOT_FOUND, "%.200s does not exist, or is empty", path);
    }
    name_list_release(&names);
    return rc;
}

int64_t environment_bytes(const char *path)
{
    char *site = NULL;
    char *name = NULL;
    struct err ignored;
    const int64_t n = find_site(path, &site, &name, &ignored) == 0 ? digest_bytes_at(site) : 0;
    free(site);
    free(name);
    return n;
}

int environment_list(struct pin_cache *cache, const char *path, cJSON **out, struct err *err)
{
    struct package_scan s = {.cache = cache, .packages = json_object(), .loose = json_object()};
    cJSON *list = json_object();
    *out = NULL;
    int rc = check_there(path, err);
    if (rc == 0) {
        rc = fill(&s, path, list, err);
    } else {
        cJSON_Delete(s.packages);
        cJSON_Delete(s.loose);
    }
    for (size_t i = 0; i < s.n_listed; i++) {
        free(s.listed[i]);
    }
    free(s.listed);
    free(s.site);
    if (rc != 0) {
        cJSON_Delete(list);
        return rc;
    }
    *out = list;
    return 0;
}
