/*
 * Fills patterns such as "runs/{arch}_{seed}/results_*.json" with the levels of each cell and looks
 * the result up with glob(3). Levels and folders are escaped, so only the pattern's own * ? [] are
 * special. Exactly one file may match: none is noted for a warning, two are an error, because
 * choosing between them would be a choice of results.
 */
#include <glob.h>
#include <stdlib.h>
#include <string.h>

#include "base/files/file.h"
#include "base/json/json.h"
#include "base/strbuf.h"
#include "base/xalloc.h"
#include "truthtable/imported/map.h"

#define NAME_BYTES_MAX 64

/* Appends a text so that glob(3) takes it literally. */
static void add_literal(struct strbuf *out, const char *text)
{
    for (; *text != '\0'; text++) {
        if (strchr("*?[]\\", *text) != NULL) {
            strbuf_addc(out, '\\');
        }
        strbuf_addc(out, *text);
    }
}

/* Escapes the folder, but not the pattern behind it. */
char *map_pattern_path(const char *folder, const char *pattern)
{
    struct strbuf out = STRBUF_INIT;
    char *full = path_absolute(folder, pattern);
    char *own = full + strlen(full) - strlen(pattern);
    *own = '\0';
    add_literal(&out, full);
    strbuf_adds(&out, pattern);
    free(full);
    return strbuf_detach(&out);
}

/* The text of {name} in a cell; NULL when there is no such factor. */
static const char *text_of(const struct plan_program *p, const char *name, size_t cell,
                           size_t stage)
{
    if (strcmp(name, "stage") == 0) {
        return p->stages[stage].name;
    }
    size_t f = program_find_factor(p, name);
    return f == INDEX_NONE ? NULL : p->factors[f].levels[p->cells[cell].levels[f]].text;
}

/* Replaces every {NAME} by the cell's level; an unknown name is an error. */
static int fill_in(const struct plan_program *p, const char *pattern, size_t cell, size_t stage,
                   struct strbuf *out, struct err *err)
{
    for (const char *at = pattern; *at != '\0'; at++) {
        const char *end = *at == '{' ? strchr(at, '}') : NULL;
        char name[NAME_BYTES_MAX + 1];
        if (end == NULL) {
            strbuf_addc(out, *at);
            continue;
        }
        const size_t len = (size_t)(end - at) - 1;
        const char *text = NULL;
        if (len <= NAME_BYTES_MAX) {
            memcpy(name, at + 1, len);
            name[len] = '\0';
            /* {stage} or a factor; longer names cannot be either. */
            text = text_of(p, name, cell, stage);
        }
        if (text == NULL) {
            return err_set(err, ERR_REFUSED,
                           "pattern \"%.80s\": the program has no factor \"%.*s\"", pattern,
                           (int)(len < NAME_BYTES_MAX ? len : NAME_BYTES_MAX), at + 1);
        }
        add_literal(out, text);
        at = end;
    }
    return 0;
}

struct map_pattern {
    struct map *m;
    const char *folder;
    const char *results;
    const char *samples; /* or NULL */
};

/* A pattern for one cell and stage, as a path for glob(3); the caller frees it. */
static char *filled(const struct map_pattern *pt, const char *pattern, size_t cell, size_t stage,
                    struct err *err)
{
    struct strbuf text = STRBUF_INIT;
    char *full = NULL;
    if (fill_in(pt->m->program, pattern, cell, stage, &text, err) == 0) {
        full = map_pattern_path(pt->folder, text.buf);
    }
    strbuf_release(&text);
    return full;
}

/* Notes that a cell has no file, in words. */
static void say_unmatched(struct map *m, const char *pattern, size_t cell)
{
    char *text = xasprintf("no file %s for %s", path_name(pattern), m->program->cells[cell].name);
    json_push_string(m->unmatched, text);
    free(text);
}

/* The file that was found, with the samples pattern filled in for the same cell. */
static int add_source(const struct map_pattern *pt, const char *path, size_t cell, size_t stage,
                      struct err *err)
{
    struct map *m = pt->m;
    struct map_source s = {.cell = cell, .stage = INDEX_NONE};
    s.results = arena_strdup(&m->arena, path);
    /* Without {stage} the file serves every stage whose task it holds. */
    s.stage = strstr(pt->results, "{stage}") != NULL ? stage : INDEX_NONE;
    if (pt->samples != NULL) {
        char *samples = filled(pt, pt->samples, cell, stage, err);
        if (samples == NULL) {
            return err->code;
        }
        s.samples = arena_array(&m->arena, 1, sizeof(*s.samples));
        s.samples[s.n_samples++] = arena_strdup(&m->arena, samples);
        free(samples);
    }
    ARRAY_GROW(m->sources, m->n_sources, m->cap_sources);
    m->sources[m->n_sources++] = s;
    return 0;
}

/* Looks up one cell's file. */
static int find_one(const struct map_pattern *pt, size_t cell, size_t stage, struct err *err)
{
    glob_t found = {0};
    char *full = filled(pt, pt->results, cell, stage, err);
    if (full == NULL) {
        return err->code;
    }
    int rc = 0;
    int status = glob(full, 0, NULL, &found);
    if (status == GLOB_NOMATCH) {
        say_unmatched(pt->m, full, cell);
    } else if (status != 0) {
        rc = err_set(err, ERR_IO, "look for %s", full);
    } else if (found.gl_pathc > 1) {
        rc = err_set(err, ERR_REFUSED, "two files for %.60s: %s and %s",
                     pt->m->program->cells[cell].name, found.gl_pathv[0], found.gl_pathv[1]);
    } else {
        rc = add_source(pt, found.gl_pathv[0], cell, stage, err);
    }
    globfree(&found);
    free(full);
    return rc;
}

/* With {stage} in the pattern each stage has a file of its own; without it one file serves all. */
int map_add_pattern(struct map *m, const char *folder, const char *results, const char *samples,
                    struct err *err)
{
    const struct map_pattern pt = {m, folder, results, samples};
    const size_t n_stages = strstr(results, "{stage}") != NULL ? m->program->n_stages : 1;
    int rc = 0;
    if (n_stages == 1 && samples != NULL && strstr(samples, "{stage}") != NULL) {
        return err_set(err, ERR_REFUSED, "{stage} is in the pattern of the samples alone");
    }
    for (size_t cell = 0; rc == 0 && cell < m->program->n_cells; cell++) {
        for (size_t stage = 0; rc == 0 && stage < n_stages; stage++) {
            rc = find_one(&pt, cell, stage, err);
        }
    }
    return rc;
}
