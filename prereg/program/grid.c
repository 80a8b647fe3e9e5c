/* The grid: factors expanded to cells and conditions, their names, and what a cell makes of a
 * stage's parameters. A cell's index is the number that its levels form in mixed radix, first
 * factor slowest; task.c inverts it. Names of cells are identities in records and journals, so
 * their form never changes. */
#include "prereg/program/grid.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/json/json.h"
#include "base/text.h"
#include "base/xalloc.h"

/* A file name holds 255 bytes; temporary names beside it take some. */
#define FOLDER_BYTES_MAX ((size_t)200)
#define FOLDER_HEAD      ((size_t)150)

static bool is_plain(unsigned char c)
{
    return c >= 0x80 || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           (c >= '0' && c <= '9') || (c != '\0' && strchr("._=,+@-", c) != NULL);
}

/* A folder name for a cell: bytes that a path, a shell or a terminal interprets become %XX, and
 * a name that is too long is cut and ends in its digest. '~' and '%' themselves are escaped, so
 * that two cells never share a folder. */
static const char *folder_name(struct arena *arena, const char *name)
{
    struct strbuf out = STRBUF_INIT;
    for (const char *s = name; *s != '\0'; s++) {
        if (is_plain((unsigned char)*s)) {
            strbuf_addc(&out, *s);
        } else {
            strbuf_addf(&out, "%%%02X", (unsigned)(unsigned char)*s);
        }
    }
    const char *folder;
    if (out.len <= FOLDER_BYTES_MAX) {
        folder = strcmp(out.buf, name) == 0 ? name : arena_strdup(arena, out.buf);
    } else {
        struct digest d = digest_bytes(name, strlen(name));
        char hex[DIGEST_HEX_SIZE];
        digest_hex(&d, hex);
        size_t head = FOLDER_HEAD;
        /* do not cut inside a UTF-8 character */
        while (head > 0 && ((unsigned char)out.buf[head] & 0xC0U) == 0x80U) {
            head--;
        }
        folder = arena_printf(arena, "%.*s~%.16s", (int)head, out.buf, hex);
    }
    strbuf_release(&out);
    return folder;
}

/* "arch=moe,lr=0.002"; levels of INDEX_NONE are left out. "all" when nothing is left. */
static const char *point_name(struct plan_program *p, const size_t *levels)
{
    struct strbuf name = STRBUF_INIT;
    for (size_t i = 0; i < p->n_factors; i++) {
        if (levels[i] != INDEX_NONE) {
            strbuf_addf(&name, "%s%s=%s", name.len == 0 ? "" : ",", p->factors[i].name,
                        p->factors[i].levels[levels[i]].text);
        }
    }
    const char *out = arena_strdup(&p->arena, name.len == 0 ? "all" : name.buf);
    strbuf_release(&name);
    return out;
}

/* Conditions are numbered like cells, by their own factors alone. */
static size_t condition_index(const struct plan_program *p, const size_t *levels)
{
    size_t index = 0;
    for (size_t i = 0; i < p->n_factors; i++) {
        if (!p->factors[i].replicate) {
            index = index * p->factors[i].n_levels + levels[i];
        }
    }
    return index;
}

/* Called for every cell; the first cell of a condition makes it. */
static void add_condition(struct plan_program *p, const struct plan_cell *c)
{
    struct plan_condition *k = &p->conditions[c->condition];
    if (k->name != NULL) {
        return;
    }
    k->levels = arena_array(&p->arena, p->n_factors, sizeof(*k->levels));
    for (size_t i = 0; i < p->n_factors; i++) {
        k->levels[i] = p->factors[i].replicate ? INDEX_NONE : c->levels[i];
    }
    k->name = point_name(p, k->levels);
    k->first_cell = c->index;
}

static int by_cell_name(const void *a, const void *b)
{
    const struct plan_cell *const *x = a;
    const struct plan_cell *const *y = b;
    return strcmp((*x)->name, (*y)->name);
}

void grid_expand(struct plan_program *p)
{
    p->n_cells = 1;
    p->n_conditions = 1;
    for (size_t i = 0; i < p->n_factors; i++) {
        p->n_cells *= p->factors[i].n_levels;
        p->n_conditions *= p->factors[i].replicate ? 1 : p->factors[i].n_levels;
    }
    p->cells = arena_array(&p->arena, p->n_cells, sizeof(*p->cells));
    p->conditions = arena_array(&p->arena, p->n_conditions, sizeof(*p->conditions));
    p->cells_by_name = arena_array(&p->arena, p->n_cells, sizeof(*p->cells_by_name));
    for (size_t c = 0; c < p->n_cells; c++) {
        struct plan_cell *cell = &p->cells[c];
        cell->index = c;
        cell->levels = arena_array(&p->arena, p->n_factors, sizeof(*cell->levels));
        size_t rest = c;
        for (size_t i = p->n_factors; i-- > 0;) {
            cell->levels[i] = rest % p->factors[i].n_levels;
            rest /= p->factors[i].n_levels;
        }
        cell->name = point_name(p, cell->levels);
        cell->folder = folder_name(&p->arena, cell->name);
        cell->condition = condition_index(p, cell->levels);
        add_condition(p, cell);
        p->cells_by_name[c] = cell;
    }
    qsort(p->cells_by_name, p->n_cells, sizeof(*p->cells_by_name), by_cell_name);
}

size_t program_find_cell(const struct plan_program *p, const char *name)
{
    size_t low = 0;
    size_t high = p->n_cells;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        int c = strcmp(p->cells_by_name[mid]->name, name);
        if (c == 0) {
            return p->cells_by_name[mid]->index;
        }
        if (c < 0) {
            low = mid + 1;
        } else {
            high = mid;
        }
    }
    return INDEX_NONE;
}

void grid_merge(cJSON *params, const cJSON *over)
{
    assert(cJSON_IsObject(params));
    for (const cJSON *m = over == NULL ? NULL : over->child; m != NULL; m = m->next) {
        cJSON_DeleteItemFromObjectCaseSensitive(params, m->string);
        json_put(params, m->string, json_copy(m));
    }
}

/* The level that a string "$factor" is replaced by; NULL when it is an ordinary string. */
static const struct plan_level *level_of(const struct plan_program *p, size_t cell, const cJSON *v)
{
    if (!cJSON_IsString(v) || v->valuestring[0] != '$') {
        return NULL;
    }
    size_t f = program_find_factor(p, v->valuestring + 1);
    return f == INDEX_NONE ? NULL : &p->factors[f].levels[p->cells[cell].levels[f]];
}

/* Replaces "$factor" strings below v, at any depth. */
static void substitute(const struct plan_program *p, size_t cell, cJSON *v)
{
    cJSON *m = v->child;
    while (m != NULL) {
        cJSON *next = m->next;
        const struct plan_level *level = level_of(p, cell, m);
        if (level != NULL) {
            cJSON *value = json_copy(level->value);
            if (m->string != NULL) {
                value->string = xstrdup(m->string); /* cJSON frees it with free(3) */
            }
            if (!cJSON_ReplaceItemViaPointer(v, m, value)) {
                abort();
            }
        } else {
            substitute(p, cell, m);
        }
        m = next;
    }
}

cJSON *program_task_params(const struct plan_program *p, size_t stage, size_t cell)
{
    assert(stage < p->n_stages && cell < p->n_cells);
    const struct plan_stage *s = &p->stages[stage];
    cJSON *params = json_copy(s->params);
    for (size_t i = 0; s->when != NULL && i < p->n_factors; i++) {
        const struct plan_factor *f = &p->factors[i];
        const cJSON *table = json_member(s->when, f->name);
        const size_t level = p->cells[cell].levels[i];
        for (const cJSON *m = table == NULL ? NULL : table->child; m != NULL; m = m->next) {
            if (program_find_level(f, m->string) == level) {
                grid_merge(params, m);
            }
        }
    }
    substitute(p, cell, params);
    return params;
}

/* ---- where a parameter is written ---- */

/* Whether a parameter's place applies to the condition: one in params, or under a level that it
 * has. */
static bool counts_in(const struct param_place *at, const struct plan_condition *c)
{
    return at->factor == INDEX_NONE || c->levels[at->factor] == at->level;
}

/* Strips the path's last part until a recorded place matches. */
struct place program_param_place(const struct plan_program *p, size_t stage, size_t condition,
                                 const char *param)
{
    const struct plan_stage *s = &p->stages[stage];
    struct place found = s->place;
    char *path = xstrdup(param);
    for (size_t n = strlen(path); n > 0;) {
        bool is_there = false;
        for (size_t i = 0; i < s->n_params_at; i++) { /* the last one is what holds */
            const struct param_place *at = &s->params_at[i];
            if (counts_in(at, &p->conditions[condition]) && strcmp(at->path, path) == 0) {
                found = at->place;
                is_there = true;
            }
        }
        while (!is_there && n > 0 && path[n] != '.' && path[n] != '[') {
            n--;
        }
        path[n] = '\0';
        if (is_there) {
            break;
        }
    }
    free(path);
    return found;
}
