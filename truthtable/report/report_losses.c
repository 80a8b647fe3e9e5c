/*
 * An attempt that came from step r to step s is lost beyond the step that the next attempt went on
 * from. Only the end of its events is read, where its last progress is; files of hours of training
 * are large. Of a task that never ended well, all attempts are lost as a whole.
 */
#include "truthtable/report/report_losses.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/json/json.h"
#include "base/layout/attempt_name.h"
#include "base/layout/layout.h"
#include "base/xalloc.h"
#include "truthtable/report/report_model.h"

#define TAIL_BYTES ((off_t)1 << 18)

bool attempt_is_lost(const cJSON *attempt)
{
    const char *cause = member_text(attempt, "cause");
    return cause != NULL && cause[0] != '\0' && strcmp(cause, "done") != 0;
}

/* By the wall clock, which may have jumped. */
double attempt_wall_ms(const cJSON *attempt)
{
    const char *started = member_text(attempt, "started");
    const char *ended = member_text(attempt, "ended");
    struct wall_time from;
    struct wall_time to;
    if (started == NULL || ended == NULL || !clock_wall_parse(started, &from) ||
        !clock_wall_parse(ended, &to) || to.ms < from.ms) {
        return (double)NAN;
    }
    return (double)(to.ms - from.ms);
}

/* The last progress that an attempt reported. */
struct last_progress {
    double done; /* NaN: none was found */
    double total;
    bool is_step;
};

/* One line of the events, if it is progress. */
static void take_line(const char *line, size_t len, struct last_progress *out)
{
    cJSON *o = NULL;
    struct err ignored;
    if (memmem(line, len, "\"progress\"", 10) == NULL ||
        json_parse_lax(line, len, &o, &ignored) != 0) {
        return;
    }
    const char *type = member_text(o, "type");
    const char *unit = member_text(o, "unit");
    if (type != NULL && strcmp(type, "progress") == 0 && isfinite(member_number(o, "done"))) {
        out->done = member_number(o, "done");
        out->total = member_number(o, "total");
        out->is_step = unit != NULL && strcmp(unit, "step") == 0;
    }
    cJSON_Delete(o);
}

/* The end of a regular file, whole lines of it. */
static struct last_progress read_progress(const char *path)
{
    struct last_progress out = {.done = (double)NAN, .total = (double)NAN};
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    const off_t size = fd < 0 ? -1 : lseek(fd, 0, SEEK_END);
    const off_t from = size > TAIL_BYTES ? size - TAIL_BYTES : 0;
    char *text = size > 0 ? xmalloc((size_t)(size - from)) : NULL;
    const ssize_t n = text == NULL ? 0 : pread(fd, text, (size_t)(size - from), from);
    const char *end = text == NULL || n <= 0 ? text : text + n;
    const char *line = text;
    if (from > 0 && n > 0) { /* the first line is cut */
        line = memchr(text, '\n', (size_t)n);
    }
    while (line != NULL && line < end) {
        const char *stop = memchr(line, '\n', (size_t)(end - line));
        if (stop == NULL) {
            break;
        }
        take_line(line, (size_t)(stop - line), &out);
        line = stop + 1;
    }
    free(text);
    if (fd >= 0) {
        (void)close(fd);
    }
    return out;
}

/* The step that an attempt went on from; 0: it began at the beginning. */
static double start_of(const cJSON *attempt)
{
    const double from = member_number(attempt, "resumed_from");
    return isfinite(from) ? from : 0;
}

/* What a step of the task's stage is in tokens; NaN where no result says so. */
static double tokens_of_step(const struct report_model *m, size_t cell, size_t stage,
                             const struct last_progress *p)
{
    const size_t task = cell * m->program->n_stages + stage;
    return m->results != NULL && m->results[task] != NULL && p->is_step && p->total > 0
               ? report_fact(m, cell, stage, "tokens", NULL) / p->total
               : (double)NAN;
}

/* One lost attempt of a task; `next` is the one after it, or NULL. */
static struct report_loss loss_of(const cJSON *attempt, const cJSON *next,
                                  const struct last_progress *p, double step_tokens)
{
    const double from = start_of(attempt);
    const double to = next == NULL ? (double)NAN : start_of(next);
    const double wall = attempt_wall_ms(attempt);
    const double lost = fmax(p->done - to, 0);
    struct report_loss out = {.ms = wall, .tokens = lost * step_tokens};
    if (next != NULL && to > 0 && isnan(p->done)) {
        out.ms = (double)NAN;
    } else if (next != NULL && p->done > from) {
        out.ms = wall * lost / (p->done - from);
    }
    return out;
}

/* The lost attempts of one task. */
static void read_task(struct report_losses *out, const struct report_model *m, const char *folder,
                      const cJSON *task, size_t cell)
{
    const char *stage_name = member_text(task, "stage");
    const char *end = member_text(task, "end");
    const bool is_done = end != NULL && strcmp(end, "done") == 0;
    const size_t stage =
        stage_name == NULL ? INDEX_NONE : program_find_stage(m->program, stage_name);
    const cJSON *attempt = NULL;
    cJSON_ArrayForEach(attempt, member(task, "attempts"))
    {
        struct last_progress p = {.done = (double)NAN, .total = (double)NAN};
        const char *id = member_text(attempt, "id");
        const double no = member_number(attempt, "no");
        double step_tokens = (double)NAN;
        if (!attempt_is_lost(attempt)) {
            continue;
        }
        if (cell != INDEX_NONE && stage != INDEX_NONE && id != NULL && no >= 1 && no < 1e9) {
            char *of_task = layout_task(folder, m->program->cells[cell].folder, stage_name);
            char *of_attempt = attempt_path(of_task, (uint32_t)no, id);
            char *events = path_join(of_attempt, LAYOUT_EVENTS);
            p = read_progress(events);
            step_tokens = tokens_of_step(m, cell, stage, &p);
            free(events);
            free(of_attempt);
            free(of_task);
        }
        out->items[out->n++] = loss_of(attempt, is_done ? attempt->next : NULL, &p, step_tokens);
    }
}

void report_losses_read(struct report_losses *out, const struct report_model *m, const char *folder,
                        struct arena *a)
{
    const cJSON *tasks = member(m->provenance, "tasks");
    const cJSON *task = NULL;
    size_t n = 0;
    size_t near = 0;
    *out = (struct report_losses){0};
    cJSON_ArrayForEach(task, tasks)
    {
        const cJSON *attempt = NULL;
        cJSON_ArrayForEach(attempt, member(task, "attempts"))
        {
            n += attempt_is_lost(attempt) ? 1 : 0;
        }
    }
    out->items = arena_array(a, n + 1, sizeof(*out->items));
    cJSON_ArrayForEach(task, tasks)
    {
        const size_t cell = report_cell_near(m, near, member_text(task, "cell"));
        near = cell != INDEX_NONE ? cell : near;
        read_task(out, m, folder, task, cell);
    }
}
