/*
 * Reads the points of a task's attempts line by line: the time grows as the bytes do, the memory
 * does not. Folders of attempts belong to workers, so nothing is followed and nothing blocks. What
 * becomes of the points is the caller's: a report thins them, a terminal draws them, the live page
 * groups them.
 */
#include "truthtable/evidence/curve_events.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/files/file.h"
#include "base/json/json_pull.h"
#include "base/layout/attempt_name.h"
#include "base/layout/layout.h"
#include "base/text.h"

#define CHUNK_BYTES ((size_t)1 << 20)

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

struct events_reading {
    curve_point_fn *take;
    void *ctx;
    size_t n_unread;
};

/* Most lines are not points, and a substring search rejects them before any parsing. */
static void take_line(struct events_reading *r, const char *line, size_t len)
{
    struct point point;
    if (memmem(line, len, "\"point\"", 7) != NULL && parse_point(line, len, &point)) {
        r->take(r->ctx, point.name, point.x, point.y);
    }
}

/* The whole lines of buf; the remainder is moved to its start, and is empty while the rest of an
 * overlong line is skipped. */
static void take_lines(struct events_reading *r, struct strbuf *buf, bool *skipping)
{
    char *line = buf->buf;
    const char *end = buf->buf + buf->len;
    for (char *stop; (stop = memchr(line, '\n', (size_t)(end - line))) != NULL; line = stop + 1) {
        if (!*skipping) {
            take_line(r, line, (size_t)(stop - line));
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
static void read_events(struct events_reading *r, const char *path)
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
            take_lines(r, &buf, &skipping);
        } else if (n < 0 && errno == EINTR) {
            n = 1;
        }
    }
    r->n_unread += n != 0 ? 1 : 0; /* not read to its end */
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

size_t curve_events_read_task(const char *task_folder, curve_point_fn *take, void *ctx)
{
    struct events_reading r = {.take = take, .ctx = ctx};
    struct name_list names = {0};
    struct err ignored = {0};
    const bool listed = attempt_list(task_folder, &names, &ignored) == 0;
    const uint32_t last = listed ? linked_attempt(task_folder) : 0;
    for (size_t i = 0; listed && i < names.n; i++) {
        struct attempt_name name;
        if (!attempt_name_parse(names.names[i], &name) || name.no > last) {
            continue;
        }
        char *attempt = path_join(task_folder, names.names[i]);
        char *events = path_join(attempt, LAYOUT_EVENTS);
        read_events(&r, events);
        free(events);
        free(attempt);
    }
    name_list_release(&names);
    return r.n_unread;
}
