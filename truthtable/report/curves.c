#include <math.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "base/xalloc.h"
#include "truthtable/report/report_model.h"

#define EVENTS_BYTES_MAX   ((size_t)1 << 30)
#define CURVES_PER_TASK    ((size_t)64) /* names beyond these are not kept */
#define ATTEMPT_PREFIX     "attempt-"
#define ATTEMPT_PREFIX_LEN (sizeof(ATTEMPT_PREFIX) - 1)

void curves_release(struct curve_set *set)
{
    for (size_t i = 0; i < set->n; i++) {
        free(set->curves[i].xs);
        free(set->curves[i].ys);
    }
    free(set->curves);
    *set = (struct curve_set){0};
}

static struct curve *curve_find(struct curve_set *set, struct arena *a, size_t from,
                                const char *name)
{
    for (size_t i = from; i < set->n; i++) {
        if (strcmp(set->curves[i].name, name) == 0) {
            return &set->curves[i];
        }
    }
    if (set->n - from >= CURVES_PER_TASK) {
        return NULL;
    }
    ARRAY_GROW(set->curves, set->n, set->cap);
    struct curve *c = &set->curves[set->n++];
    *c = (struct curve){.name = arena_strdup(a, name)};
    return c;
}

/* A resumed attempt does over what lay after its checkpoint: its points replace those at its steps
 * and after. */
static void curve_add(struct curve *c, double x, double y)
{
    while (c->n > 0 && c->xs[c->n - 1] >= x) {
        c->n--;
    }
    if (c->n == c->cap) {
        c->cap = c->cap == 0 ? 64 : c->cap * 2;
        c->xs = xreallocarray(c->xs, c->cap, sizeof(*c->xs));
        c->ys = xreallocarray(c->ys, c->cap, sizeof(*c->ys));
    }
    c->xs[c->n] = x;
    c->ys[c->n] = y;
    c->n++;
}

static void take_line(struct curve_set *set, struct arena *a, size_t from, const char *line,
                      size_t len)
{
    struct err ignored = {0};
    cJSON *event = NULL;
    if (memmem(line, len, "\"point\"", 7) == NULL || json_parse(line, len, &event, &ignored) != 0) {
        return;
    }
    const char *type = member_text(event, "type");
    const char *name = member_text(event, "name");
    double x = member_number(event, "step");
    double y = member_number(event, "value");
    if (type != NULL && strcmp(type, "point") == 0 && name != NULL && isfinite(x) && isfinite(y)) {
        struct curve *c = curve_find(set, a, from, name);
        if (c != NULL) {
            curve_add(c, x, y);
        }
    }
    cJSON_Delete(event);
}

/* A torn last line is dropped, as the daemon drops it. */
static void read_events(struct curve_set *set, struct arena *a, size_t from, const char *path)
{
    struct strbuf text = STRBUF_INIT;
    struct err ignored = {0};
    if (file_kind_at(path) != FILE_ABSENT &&
        file_read(path, EVENTS_BYTES_MAX, &text, &ignored) != 0) {
        set->n_unread++;
    }
    const char *line = text.buf;
    const char *end = text.buf + text.len;
    while (line < end) {
        const char *stop = memchr(line, '\n', (size_t)(end - line));
        if (stop == NULL) {
            break;
        }
        take_line(set, a, from, line, (size_t)(stop - line));
        line = stop + 1;
    }
    strbuf_release(&text);
}

/* The name of the attempt folder that result.json points into, or NULL: the daemon links
 * "attempt-…/result.json". */
static char *linked_attempt(const char *task_folder)
{
    char *path = path_join(task_folder, "result.json");
    char *target = realpath(path, NULL);
    free(path);
    if (target == NULL) {
        return NULL;
    }
    char *folder = path_folder(target);
    char *name = xstrdup(path_name(folder));
    free(folder);
    free(target);
    if (strncmp(name, ATTEMPT_PREFIX, ATTEMPT_PREFIX_LEN) != 0) {
        free(name);
        return NULL;
    }
    return name;
}

void curves_read_task(struct curve_set *set, struct arena *a, const char *task_folder, size_t cell,
                      size_t stage)
{
    struct name_list names = {0};
    struct err ignored = {0};
    size_t from = set->n;
    if (file_kind_at(task_folder) != FILE_FOLDER || dir_list(task_folder, &names, &ignored) != 0) {
        name_list_release(&names);
        return;
    }
    char *last = linked_attempt(task_folder);
    for (size_t i = 0; i < names.n; i++) {
        bool is_attempt = strncmp(names.names[i], ATTEMPT_PREFIX, ATTEMPT_PREFIX_LEN) == 0;
        if (!is_attempt || (last != NULL && strcmp(names.names[i], last) > 0)) {
            continue;
        }
        char *attempt = path_join(task_folder, names.names[i]);
        char *events = path_join(attempt, "events.jsonl");
        read_events(set, a, from, events);
        free(events);
        free(attempt);
    }
    for (size_t i = from; i < set->n; i++) {
        set->curves[i].cell = cell;
        set->curves[i].stage = stage;
    }
    free(last);
    name_list_release(&names);
}
