/*
 * router.csv has a line for each sampled step and layer, samples in order and layers in the same
 * order within each. Columns are found by name, so that a worker may have more of them; the shares
 * are numbered from 0 and stand side by side.
 */
#include "truthtable/report/router_course.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/files/digest.h"
#include "base/files/file.h"
#include "base/json/json.h"
#include "base/layout/layout.h"
#include "base/text.h"
#include "base/xalloc.h"
#include "prereg/program/design.h"

static const char *const VALUE_NAMES[ROUTER_COURSE_VALUES] = {
    [ROUTER_ENTROPY] = "router_entropy",
    [ROUTER_EFFECTIVE] = "router_effective",
    [ROUTER_DEAD] = "router_dead",
};

/* Where each quantity is in a line; INDEX_NONE: nowhere. */
struct csv_columns {
    size_t step;
    size_t layer;
    size_t values[ROUTER_COURSE_VALUES];
    size_t first_share;
    size_t n_shares;
};

/* Takes the text up to the separator off *rest; NULL after the last. */
static char *take(char **rest, char separator)
{
    char *text = *rest;
    if (text != NULL) {
        char *at = strchr(text, separator);
        *rest = at == NULL ? NULL : at + 1;
        if (at != NULL) {
            *at = '\0';
        }
    }
    return text;
}

/* The number of the next share, "share_3" after "share_2". */
static bool is_next_share(const char *name, size_t n)
{
    char wanted[32];
    (void)snprintf(wanted, sizeof(wanted), "share_%zu", n);
    return strcmp(name, wanted) == 0;
}

/* Takes note of what column i is. */
static int see_column(struct csv_columns *c, const char *name, size_t i, struct err *err)
{
    if (strcmp(name, "step") == 0) {
        c->step = i;
    } else if (strcmp(name, "layer") == 0) {
        c->layer = i;
    } else if (is_next_share(name, c->n_shares)) {
        c->first_share = c->n_shares == 0 ? i : c->first_share;
        if (i != c->first_share + c->n_shares) {
            return err_set(err, ERR_SYNTAX, "line 1: %s is not beside the share before it", name);
        }
        c->n_shares++;
    }
    for (size_t k = 0; k < ROUTER_COURSE_VALUES; k++) {
        c->values[k] = strcmp(name, VALUE_NAMES[k]) == 0 ? i : c->values[k];
    }
    return 0;
}

static int read_head(char *line, struct csv_columns *c, struct err *err)
{
    size_t i = 0;
    *c = (struct csv_columns){.step = INDEX_NONE, .layer = INDEX_NONE, .first_share = INDEX_NONE};
    for (size_t k = 0; k < ROUTER_COURSE_VALUES; k++) {
        c->values[k] = INDEX_NONE;
    }
    for (char *name = take(&line, ','); name != NULL; name = take(&line, ',')) {
        int rc = see_column(c, name, i++, err);
        if (rc != 0) {
            return rc;
        }
    }
    if (c->step == INDEX_NONE || c->layer == INDEX_NONE || c->n_shares == 0) {
        return err_set(err, ERR_SYNTAX, "line 1: no columns step, layer and share_0");
    }
    return c->n_shares > ROUTER_EXPERTS_MAX
               ? err_set(err, ERR_RANGE, "line 1: more than %zu experts", ROUTER_EXPERTS_MAX)
               : 0;
}

/* One line as numbers. */
struct sample_line {
    double step;
    double layer;
    double values[ROUTER_COURSE_VALUES]; /* NaN: empty */
    float *shares;                       /* [expert]; borrowed */
    size_t n_fields;
};

/* An empty field is a value that is not known, and no share is. */
static int read_field(const struct csv_columns *c, struct sample_line *out, const char *field,
                      size_t i, struct err *err)
{
    double v = (double)NAN;
    int rc = field[0] == '\0' ? 0 : text_to_double(field, &v, err);
    if (rc != 0) {
        return rc;
    }
    if (i == c->step) {
        out->step = v;
    } else if (i == c->layer) {
        out->layer = v;
    } else if (i >= c->first_share && i < c->first_share + c->n_shares) {
        if (!(v >= 0 && v <= 1)) {
            return err_set(err, ERR_RANGE, "\"%.40s\" is not a share of 1", field);
        }
        out->shares[i - c->first_share] = (float)v;
    }
    for (size_t k = 0; k < ROUTER_COURSE_VALUES; k++) {
        out->values[k] = i == c->values[k] ? v : out->values[k];
    }
    return 0;
}

static int read_line(const struct csv_columns *c, char *line, struct sample_line *out,
                     struct err *err)
{
    *out = (struct sample_line){.step = (double)NAN, .layer = (double)NAN, .shares = out->shares};
    for (size_t k = 0; k < ROUTER_COURSE_VALUES; k++) {
        out->values[k] = (double)NAN;
    }
    for (char *field = take(&line, ','); field != NULL; field = take(&line, ',')) {
        int rc = read_field(c, out, field, out->n_fields++, err);
        if (rc != 0) {
            return rc;
        }
    }
    if (out->n_fields < c->first_share + c->n_shares) {
        return err_set(err, ERR_SYNTAX, "%zu fields, expected %zu", out->n_fields,
                       c->first_share + c->n_shares);
    }
    if (!(out->step >= 0 && out->step <= 1e15) || !(out->layer >= 0 && out->layer < 1e6)) {
        return err_set(err, ERR_RANGE, "no step or no layer");
    }
    if (floor(out->layer) < out->layer) {
        return err_set(err, ERR_SYNTAX, "layer %g is not a whole number", out->layer);
    }
    return 0;
}

/* A course while it grows. */
struct growth {
    struct router_course *c;
    struct csv_columns columns;
    size_t n_lines; /* of layers, so far */
    size_t cap_lines;
    size_t cap_samples;
    size_t cap_layers;
};

/* Room for one more sample. */
static void begin_sample(struct growth *g, double step)
{
    struct router_course *c = g->c;
    if (c->n_samples == g->cap_samples) {
        g->cap_samples = g->cap_samples == 0 ? 64 : 2 * g->cap_samples;
        c->steps = xreallocarray(c->steps, g->cap_samples, sizeof(*c->steps));
        for (size_t k = 0; k < ROUTER_COURSE_VALUES; k++) {
            c->values[k] = xreallocarray(c->values[k], g->cap_samples, sizeof(*c->values[k]));
        }
    }
    for (size_t k = 0; k < ROUTER_COURSE_VALUES; k++) {
        c->values[k][c->n_samples] = 0;
    }
    c->steps[c->n_samples++] = step;
}

/* The first sample says which layers there are; every other one must have the same. */
static int see_layer(struct growth *g, const struct sample_line *line, struct err *err)
{
    struct router_course *c = g->c;
    const bool first = c->n_samples == 0;
    if (first || line->step > c->steps[c->n_samples - 1]) {
        if (!first && g->n_lines != c->n_samples * c->n_layers) {
            return err_set(err, ERR_SYNTAX, "the step before this one lacks a layer");
        }
        begin_sample(g, line->step);
    } else if (line->step < c->steps[c->n_samples - 1]) {
        return err_set(err, ERR_SYNTAX, "steps do not increase");
    }
    if (c->n_samples == 1) {
        if (c->n_layers == ROUTER_LAYERS_MAX) {
            return err_set(err, ERR_RANGE, "more than %zu layers", ROUTER_LAYERS_MAX);
        }
        if (c->n_layers == g->cap_layers) {
            g->cap_layers = g->cap_layers == 0 ? 16 : 2 * g->cap_layers;
            c->layers = xreallocarray(c->layers, g->cap_layers, sizeof(*c->layers));
        }
        c->layers[c->n_layers++] = (int)line->layer;
        return 0;
    }
    const size_t at = g->n_lines - (c->n_samples - 1) * c->n_layers;
    return at >= c->n_layers || c->layers[at] != (int)line->layer
               ? err_set(err, ERR_SYNTAX, "layer %d is not where the first step has it",
                         (int)line->layer)
               : 0;
}

static int add_line(struct growth *g, char *text, struct err *err)
{
    struct router_course *c = g->c;
    if (g->n_lines == g->cap_lines) {
        g->cap_lines = g->cap_lines == 0 ? 64 : 2 * g->cap_lines;
        c->shares = xreallocarray(c->shares, g->cap_lines * c->n_experts, sizeof(*c->shares));
    }
    struct sample_line line = {.shares = c->shares + g->n_lines * c->n_experts};
    int rc = read_line(&g->columns, text, &line, err);
    if (rc == 0 && (rc = see_layer(g, &line, err)) == 0) {
        g->n_lines++;
        for (size_t k = 0; k < ROUTER_COURSE_VALUES; k++) {
            c->values[k][c->n_samples - 1] += line.values[k];
        }
    }
    return rc;
}

/* Sums over layers become means. */
static int finish(struct growth *g, struct err *err)
{
    struct router_course *c = g->c;
    if (c->n_samples == 0) {
        return err_set(err, ERR_SYNTAX, "no step");
    }
    if (g->n_lines != c->n_samples * c->n_layers) {
        return err_set(err, ERR_SYNTAX, "the last step lacks a layer");
    }
    for (size_t k = 0; k < ROUTER_COURSE_VALUES; k++) {
        for (size_t i = 0; i < c->n_samples; i++) {
            c->values[k][i] /= (double)c->n_layers;
        }
    }
    return 0;
}

int router_course_parse(const char *text, size_t len, struct router_course *out, struct err *err)
{
    struct growth g = {.c = out};
    size_t number = 1;
    *out = (struct router_course){0};
    if (memchr(text, '\0', len) != NULL) {
        return err_set(err, ERR_SYNTAX, "not text");
    }
    char *copy = xstrndup(text, len);
    char *rest = copy;
    int rc = read_head(take(&rest, '\n'), &g.columns, err);
    out->n_experts = g.columns.n_shares;
    for (char *line = take(&rest, '\n'); rc == 0 && line != NULL; line = take(&rest, '\n')) {
        number++;
        if (line[0] != '\0' && (rc = add_line(&g, line, err)) != 0) {
            (void)err_wrap(err, "line %zu", number);
        }
    }
    rc = rc == 0 ? finish(&g, err) : rc;
    free(copy);
    if (rc != 0) {
        router_course_release(out);
    }
    return rc;
}

void router_course_release(struct router_course *c)
{
    free(c->steps);
    free(c->layers);
    free(c->shares);
    for (size_t k = 0; k < ROUTER_COURSE_VALUES; k++) {
        free(c->values[k]);
    }
    *c = (struct router_course){0};
}

double router_share(const struct router_course *c, size_t sample, size_t layer, size_t expert)
{
    return (double)c->shares[(sample * c->n_layers + layer) * c->n_experts + expert];
}

/* The digest under which the result names the file; NULL where it does not. */
static const char *named_digest(const cJSON *result)
{
    const cJSON *a = NULL;
    cJSON_ArrayForEach(a, json_member(result, "artifacts"))
    {
        const cJSON *path = json_member(a, "path");
        const cJSON *hex = json_member(a, "sha256");
        if (cJSON_IsString(path) && strcmp(path->valuestring, ROUTER_CSV_NAME) == 0 &&
            cJSON_IsString(hex)) {
            return hex->valuestring;
        }
    }
    return NULL;
}

/* Artifacts are beside the result, in the attempt's folder that the link points to. */
static char *artifact_path(const char *task_folder)
{
    char *link = path_join(task_folder, LAYOUT_RESULT);
    char *real = realpath(link, NULL);
    char *folder = real == NULL ? NULL : path_folder(real);
    char *path = folder == NULL ? NULL : path_join(folder, ROUTER_CSV_NAME);
    free(folder);
    free(real);
    free(link);
    return path;
}

int router_course_read(const char *task_folder, const cJSON *result, struct router_course *out,
                       struct err *err)
{
    const char *hex = named_digest(result);
    struct strbuf text = STRBUF_INIT;
    struct digest said;
    *out = (struct router_course){0};
    if (hex == NULL) {
        return 1;
    }
    char *path = artifact_path(task_folder);
    int rc =
        path == NULL ? err_set(err, ERR_NOT_FOUND, "no result") : digest_from_hex(hex, &said, err);
    if (rc == 0 && (rc = file_read(path, ROUTER_CSV_MAX, &text, err)) == 0) {
        struct digest found = digest_bytes(text.buf, text.len);
        rc = digest_equal(&said, &found)
                 ? router_course_parse(text.buf, text.len, out, err)
                 : err_set(err, ERR_CORRUPT, "not the file that the result is of");
    }
    strbuf_release(&text);
    free(path);
    return rc;
}

void router_courses_add(struct router_courses *all, const char *task_folder, const cJSON *result,
                        size_t cell, size_t stage)
{
    struct router_course course;
    struct err ignored;
    int rc = router_course_read(task_folder, result, &course, &ignored);
    if (rc != 0) {
        all->n_unread += rc < 0 ? 1 : 0;
        return;
    }
    course.cell = cell;
    course.stage = stage;
    ARRAY_GROW(all->items, all->n, all->cap);
    all->items[all->n++] = course;
}

void router_courses_trim(struct router_courses *all, const struct plan_cell *cells)
{
    struct router_course *newest = &all->items[all->n - 1];
    struct router_course *last = newest; /* of those that have shares, the last by condition */
    size_t n = 1;
    for (size_t i = 0; i + 1 < all->n; i++) {
        struct router_course *c = &all->items[i];
        if (c->stage != newest->stage || c->shares == NULL) {
            continue;
        }
        n++;
        last = cells[c->cell].condition > cells[last->cell].condition ? c : last;
        if (cells[c->cell].condition == cells[newest->cell].condition) {
            n = ROUTER_MAPS_MAX + 1;
            last = newest;
            break;
        }
    }
    if (n > ROUTER_MAPS_MAX) {
        free(last->shares);
        last->shares = NULL;
    }
}

void router_courses_release(struct router_courses *all)
{
    for (size_t i = 0; i < all->n; i++) {
        router_course_release(&all->items[i]);
    }
    free(all->items);
    *all = (struct router_courses){0};
}
