/* Reads the curves of a task from the events of its attempts, line by line, and thins them while it
 * reads: the time grows as the bytes do, the memory does not. Called once for every task by
 * report_model.c. */
#include <errno.h>
#include <fcntl.h>
#include <float.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "base/files/file.h"
#include "base/json/json_pull.h"
#include "base/layout/attempt_name.h"
#include "base/layout/layout.h"
#include "base/math/elementary.h"
#include "base/text.h"
#include "base/xalloc.h"
#include "truthtable/report/report_model.h"

#define CHUNK_BYTES     ((size_t)1 << 20)
#define POINTS_MAX      ((size_t)2048) /* of a curve; a drawing shows a few hundred */
#define CURVES_PER_TASK ((size_t)64)   /* names beyond these are not kept */

void curves_release(struct curve_set *set)
{
    for (size_t i = 0; i < set->n; i++) {
        free(set->curves[i].xs);
        free(set->curves[i].ys);
    }
    free(set->curves);
    *set = (struct curve_set){0};
}

/* The curve of this name within the task, added at first sight; NULL beyond the limit. */
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

/* Which width of steps a point falls into. Before the first thinning every step is its own. */
static double bucket_of(const struct curve *c, double x)
{
    return c->width > 0 ? floor(x / c->width) : x;
}

/* Doubles the steps that share a point until half of the room is free. Widths are powers of two, so
 * that curves with the same steps keep the same of them, and one with more of them a part. */
static void curve_thin(struct curve *c)
{
    const double range = c->xs[c->n - 1] - c->xs[0];
    const double first = elementary_pow(2, floor(elementary_log2(range / (double)POINTS_MAX)));
    double width = c->width > 0 ? c->width * 2 : fmax(first, DBL_MIN);
    while (c->n > POINTS_MAX / 2) {
        size_t n = 0;
        c->width = width;
        for (size_t i = 0; i < c->n; i++) {
            if (n == 0 || bucket_of(c, c->xs[i]) != bucket_of(c, c->xs[n - 1])) {
                c->xs[n] = c->xs[i];
                c->ys[n++] = c->ys[i];
            }
        }
        c->n = n;
        width *= 2;
    }
}

/* Appends a point. */
static void curve_push(struct curve *c, double x, double y)
{
    if (c->n == c->cap) {
        c->cap = c->cap == 0 ? 64 : c->cap * 2;
        c->xs = xreallocarray(c->xs, c->cap, sizeof(*c->xs));
        c->ys = xreallocarray(c->ys, c->cap, sizeof(*c->ys));
    }
    c->xs[c->n] = x;
    c->ys[c->n] = y;
    c->n++;
}

/* A resumed attempt repeats what lay after its checkpoint: its points replace those at its steps
 * and after. */
static void curve_add(struct curve *c, double x, double y)
{
    while (c->n > 0 && c->xs[c->n - 1] >= x) {
        c->n--;
    }
    c->last_x = x;
    c->last_y = y;
    /* The first point of a bucket represents it. */
    if (c->n == 0 || bucket_of(c, x) != bucket_of(c, c->xs[c->n - 1])) {
        curve_push(c, x, y);
    }
    if (c->n > POINTS_MAX) {
        curve_thin(c);
    }
}

/* Where a curve ends is shown, whatever was thinned. */
static void curve_end(struct curve *c)
{
    if (c->xs[c->n - 1] < c->last_x) {
        curve_push(c, c->last_x, c->last_y);
    }
}

/* ---- events ---- */

struct point {
    char name[128]; /* longer ones are cut */
    bool is_point;
    double x;
    double y;
};

/* One member of an event's line; others are skipped without being kept. */
static int take_member(struct json_pull *p, struct point *out, struct err *err)
{
    enum json_token token = JSON_END;
    char key[8] = "";
    if (p->string.len < sizeof(key)) {
        memcpy(key, p->string.buf, p->string.len + 1);
    }
    int rc = json_pull_next(p, &token, err);
    if (rc != 0) {
        return rc;
    }
    if (token == JSON_NUMBER && strcmp(key, "step") == 0) {
        out->x = p->number;
    } else if (token == JSON_NUMBER && strcmp(key, "value") == 0) {
        out->y = p->number;
    } else if (token == JSON_STRING && strcmp(key, "type") == 0) {
        out->is_point = strcmp(p->string.buf, "point") == 0;
    } else if (token == JSON_STRING && strcmp(key, "name") == 0) {
        (void)snprintf(out->name, sizeof(out->name), "%s", p->string.buf);
    } else {
        return json_pull_skip(p, token, err);
    }
    return 0;
}

/* Whether the line is a point; it is not built as a tree, for there may be millions. */
static bool parse_point(const char *line, size_t len, struct point *out)
{
    struct json_pull p;
    struct err ignored;
    enum json_token token = JSON_END;
    *out = (struct point){.x = (double)NAN, .y = (double)NAN};
    json_pull_init(&p, line, len, false);
    int rc = json_pull_next(&p, &token, &ignored);
    bool whole = rc == 0 && token == JSON_OBJECT;
    while (whole) {
        rc = json_pull_next(&p, &token, &ignored);
        if (rc == 0 && token == JSON_OBJECT_END) {
            break;
        }
        whole = rc == 0 && take_member(&p, out, &ignored) == 0;
    }
    whole = whole && json_pull_next(&p, &token, &ignored) == 0;
    json_pull_release(&p);
    text_make_utf8(out->name);
    return whole && out->is_point && out->name[0] != '\0' && isfinite(out->x) && isfinite(out->y);
}

/* Most lines are not points, and a substring search rejects them before any parsing. */
static void take_line(struct curve_set *set, struct arena *a, size_t from, const char *line,
                      size_t len)
{
    struct point point;
    if (memmem(line, len, "\"point\"", 7) == NULL || !parse_point(line, len, &point)) {
        return;
    }
    struct curve *c = curve_find(set, a, from, point.name);
    if (c != NULL) {
        curve_add(c, point.x, point.y);
    }
}

/* The whole lines of buf; the remainder is moved to its start, and is empty while the rest of an
 * overlong line is skipped. */
static void take_lines(struct curve_set *set, struct arena *a, size_t from, struct strbuf *buf,
                       bool *skipping)
{
    char *line = buf->buf;
    const char *end = buf->buf + buf->len;
    for (char *stop; (stop = memchr(line, '\n', (size_t)(end - line))) != NULL; line = stop + 1) {
        if (!*skipping) {
            take_line(set, a, from, line, (size_t)(stop - line));
        }
        *skipping = false;
    }
    size_t left = (size_t)(end - line);
    if (left > LAYOUT_EVENTS_LINE_MAX) {
        *skipping = true;
        left = 0;
    }
    memmove(buf->buf, line, left);
    buf->len = left;
}

/* In memory of a chunk and a line. A torn last line is dropped, as the daemon drops it. */
static void read_events(struct curve_set *set, struct arena *a, size_t from, const char *path)
{
    struct strbuf buf = STRBUF_INIT;
    bool skipping = false;
    int64_t total = 0;
    if (file_kind_at(path) == FILE_ABSENT) {
        return;
    }
    /* A worker may have put a link or a FIFO in its place. */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    ssize_t n = fd < 0 ? -1 : 1;
    while (n > 0 && total < LAYOUT_EVENTS_MAX) {
        strbuf_reserve(&buf, CHUNK_BYTES);
        n = read(fd, buf.buf + buf.len, CHUNK_BYTES);
        if (n > 0) {
            buf.len += (size_t)n;
            total += n;
            take_lines(set, a, from, &buf, &skipping);
        } else if (n < 0 && errno == EINTR) {
            n = 1;
        }
    }
    set->n_unread += n != 0 ? 1 : 0; /* not read to its end */
    if (fd >= 0) {
        (void)close(fd);
    }
    strbuf_release(&buf);
}

/* The number of the attempt whose result.json the daemon linked; UINT32_MAX without one. */
static uint32_t linked_attempt(const char *task_folder)
{
    struct attempt_name name;
    char *path = path_join(task_folder, LAYOUT_RESULT);
    char *target = realpath(path, NULL);
    char *folder = path_folder(target == NULL ? "" : target);
    const uint32_t no = attempt_name_parse(path_name(folder), &name) ? name.no : UINT32_MAX;
    free(folder);
    free(target);
    free(path);
    return no;
}

/* Attempts in the order of their numbers, up to the one whose result was accepted; later ones did
 * not count. */
void curves_read_task(struct curve_set *set, struct arena *a, const char *task_folder, size_t cell,
                      size_t stage)
{
    struct name_list names = {0};
    struct err ignored = {0};
    size_t from = set->n;
    if (attempt_list(task_folder, &names, &ignored) != 0) {
        name_list_release(&names);
        return;
    }
    const uint32_t last = linked_attempt(task_folder);
    for (size_t i = 0; i < names.n; i++) {
        struct attempt_name name;
        if (!attempt_name_parse(names.names[i], &name) || name.no > last) {
            continue;
        }
        char *attempt = path_join(task_folder, names.names[i]);
        char *events = path_join(attempt, LAYOUT_EVENTS);
        read_events(set, a, from, events);
        free(events);
        free(attempt);
    }
    for (size_t i = from; i < set->n; i++) {
        curve_end(&set->curves[i]);
        set->curves[i].cell = cell;
        set->curves[i].stage = stage;
    }
    name_list_release(&names);
}
