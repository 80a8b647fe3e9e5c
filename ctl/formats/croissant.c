/* croissant: the entries of [data] as one dataset in JSON-LD, Croissant 1.0. What the plan knows of
 * an entry is its name, its path and its locked digest. A path with the suffix of a known format is
 * a file, whose locked digest is the SHA-256 of its bytes; any other may be a folder, whose locked
 * digest is of a list of its files, and is described as a set of files. */
#include <stdlib.h>
#include <string.h>

#include "base/files/file.h"
#include "base/json/json.h"
#include "base/xalloc.h"
#include "ctl/formats/writers.h"
#include "prereg/lock/imported.h"

static const char *const file_types[][2] = {{".jsonl", "application/jsonlines"},
                                            {".json", "application/json"},
                                            {".txt", "text/plain"},
                                            {".csv", "text/csv"},
                                            {".tsv", "text/tab-separated-values"},
                                            {".parquet", "application/vnd.apache.parquet"},
                                            {".gz", "application/gzip"},
                                            {".zip", "application/zip"},
                                            {".tar", "application/x-tar"},
                                            {".bin", "application/octet-stream"}};

/* The type of a path's suffix; NULL where it has none that is known. */
static const char *file_type(const char *path)
{
    const char *name = path_name(path);
    for (size_t i = 0; i < ARRAY_LEN(file_types); i++) {
        const size_t n = strlen(file_types[i][0]);
        if (strlen(name) > n && strcmp(name + strlen(name) - n, file_types[i][0]) == 0) {
            return file_types[i][1];
        }
    }
    return NULL;
}

/* The @context that Croissant 1.0 prescribes: terms of schema.org, and its own under cr. */
static cJSON *croissant_context(void)
{
    static const char *const own[] = {"citeAs",       "column",        "equivalentProperty",
                                      "extract",      "field",         "fileProperty",
                                      "fileObject",   "fileSet",       "format",
                                      "includes",     "isLiveDataset", "jsonPath",
                                      "key",          "md5",           "parentField",
                                      "path",         "recordSet",     "references",
                                      "regex",        "repeated",      "replace",
                                      "samplingRate", "separator",     "source",
                                      "subField",     "transform"};
    static const char *const typed[][2] = {
        {"data", "@json"}, {"dataType", "@vocab"}, {"examples", "@json"}};
    cJSON *c = json_object();
    json_put_string(c, "@language", "en");
    json_put_string(c, "@vocab", "https://schema.org/");
    json_put_string(c, "sc", "https://schema.org/");
    json_put_string(c, "cr", "http://mlcommons.org/croissant/");
    json_put_string(c, "rai", "http://mlcommons.org/croissant/RAI/");
    json_put_string(c, "dct", "http://purl.org/dc/terms/");
    json_put_string(c, "conformsTo", "dct:conformsTo");
    for (size_t i = 0; i < ARRAY_LEN(own); i++) {
        char *iri = xasprintf("cr:%s", own[i]);
        json_put_string(c, own[i], iri);
        free(iri);
    }
    for (size_t i = 0; i < ARRAY_LEN(typed); i++) {
        cJSON *t = json_object();
        char *iri = xasprintf("cr:%s", typed[i][0]);
        json_put_string(t, "@id", iri);
        json_put_string(t, "@type", typed[i][1]);
        json_put(c, typed[i][0], t);
        free(iri);
    }
    return c;
}

static cJSON *distribution(const struct receipt_source *s, const struct data_input *d,
                           const struct format_output *out)
{
    const char *digest = lock_data_digest(s->lock, d->name);
    const char *type = digest != NULL ? file_type(d->path) : NULL;
    cJSON *o = json_object();
    json_put_string(o, "@type", type != NULL ? "cr:FileObject" : "cr:FileSet");
    json_put_string(o, "@id", d->name);
    json_put_string(o, "name", path_name(d->path)[0] != '\0' ? path_name(d->path) : d->name);
    if (type != NULL) {
        json_put_string(o, "contentUrl", d->path);
        json_put_string(o, "encodingFormat", type);
        json_put_string(o, "sha256", digest);
        return o;
    }
    char *text = xasprintf("[data] %s, locked with the digest %s: of a file its SHA-256, of a "
                           "folder that of the sorted list of its files' SHA-256 and names",
                           d->name, digest != NULL ? digest : "(none)");
    char *includes = xasprintf("%s%s**", d->path, strcmp(path_name(d->path), "") == 0 ? "" : "/");
    json_put_string(o, "description", text);
    json_put_string(o, "encodingFormat", "application/octet-stream");
    json_put_string(o, "includes", includes);
    format_note(out,
                "%s: its path does not say whether it is a file or a folder: its digest is in "
                "its description alone",
                d->name);
    free(includes);
    free(text);
    return o;
}

int write_croissant(const struct receipt_source *s, const struct format_output *out,
                    struct err *err)
{
    const struct plan_program *p = s->program;
    if (p->n_data == 0 || imported_lock(s->lock)) {
        return err_set(err, ERR_REFUSED, "%s: there is nothing to write",
                       p->n_data == 0 ? "the program has no [data]"
                                      : "the lock was made at an import and pins no data");
    }
    cJSON *o = json_object();
    cJSON *list = json_array();
    for (size_t i = 0; i < p->n_data; i++) {
        json_push(list, distribution(s, &p->data[i], out));
    }
    char *text = xasprintf("The data of the preregistered program %s, as its lock %s pins them.",
                           p->name, s->lock->root);
    json_put(o, "@context", croissant_context());
    json_put_string(o, "@type", "sc:Dataset");
    json_put_string(o, "name", s->id);
    json_put_string(o, "description", text);
    json_put_string(o, "conformsTo", "http://mlcommons.org/croissant/1.0");
    json_put(o, "distribution", list);
    free(text);
    format_note(out,
                "license, url, citeAs, datePublished, version and recordSet are not in a plan: "
                "left out");
    return format_put_json(out, "croissant.json", o, err);
}
