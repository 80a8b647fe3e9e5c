/*
 * Lines are built by hand in a string buffer: their shapes are fixed, and a JSON tree per progress
 * line would cost more than the line. Each line goes out with one write(2) on a descriptor in
 * append mode, so lines of a worker and of its children do not mix. A line longer than
 * LAYOUT_EVENTS_LINE_MAX is dropped, since the daemon would refuse it.
 */
#include "worker/report/events.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdarg.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/json/json.h"
#include "base/layout/layout.h"
#include "base/strbuf.h"
#include "base/terminal.h"

#define PROGRESS_GAP_NS 500000000LL

static const char *const SECTION_NAMES[SECTION_NR] = {"setup", "step", "checkpoint", "eval"};

int events_open(struct events *ev, struct err *err)
{
    const char *path = getenv("PREREG_EVENTS");

    *ev = (struct events){.fd = -1, .section = SECTION_NR};
    if (path == NULL || path[0] == '\0')
        return 0;
    ev->fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    if (ev->fd < 0)
        return err_set_errno(err, errno, "open %s", path);
    return 0;
}

void events_close(struct events *ev)
{
    if (ev->fd >= 0)
        (void)close(ev->fd);
    ev->fd = -1;
}

int events_result(const struct events *ev, struct err *err)
{
    if (ev->fault.code == 0)
        return 0;
    *err = ev->fault;
    return err_wrap(err, "events");
}

/* One write(2) a line, so that a reader never sees half of one unless the disk is full or the
 * process is killed. */
static void write_line(struct events *ev, const struct strbuf *line)
{
    ssize_t n;

    do
        n = write(ev->fd, line->buf, line->len);
    while (n < 0 && errno == EINTR);
    if (n < 0)
        (void)err_set_errno(&ev->fault, errno, "write");
    else if ((size_t)n != line->len)
        (void)err_set(&ev->fault, ERR_NO_SPACE, "write: only %zd of %zu bytes", n, line->len);
}

/* Closes the object and writes the line, unless events are off or an earlier write failed. */
static void say(struct events *ev, struct strbuf *line)
{
    strbuf_adds(line, "}\n");
    if (ev->fd >= 0 && ev->fault.code == 0 && line->len <= LAYOUT_EVENTS_LINE_MAX)
        write_line(ev, line);
    strbuf_release(line);
}

/* JSON has no NaN or infinity: they become null. */
static void add_number(struct strbuf *line, double value)
{
    char text[JSON_NUMBER_MAX];

    if (!isfinite(value)) {
        strbuf_adds(line, "null");
        return;
    }
    json_number_text(value, text);
    strbuf_adds(line, text);
}

void events_section(struct events *ev, enum event_section section)
{
    struct strbuf line = STRBUF_INIT;

    if (ev->section == section)
        return;
    ev->section = section;
    strbuf_addf(&line, "{\"type\":\"section\",\"name\":\"%s\"", SECTION_NAMES[section]);
    say(ev, &line);
}

void events_progress(struct events *ev, int64_t done, int64_t total, const char *unit)
{
    struct strbuf line = STRBUF_INIT;
    int64_t now = clock_mono_ns();

    if (done != total && ev->last_progress_ns != 0 && now - ev->last_progress_ns < PROGRESS_GAP_NS)
        return;
    ev->last_progress_ns = now;
    strbuf_addf(&line,
                "{\"type\":\"progress\",\"done\":%lld,\"total\":%lld,\"unit\":", (long long)done,
                (long long)total);
    json_add_string(&line, unit);
    say(ev, &line);
}

void events_point(struct events *ev, int64_t step, const char *name, double value)
{
    struct strbuf line = STRBUF_INIT;

    strbuf_addf(&line, "{\"type\":\"point\",\"step\":%lld,\"name\":", (long long)step);
    json_add_string(&line, name);
    strbuf_adds(&line, ",\"value\":");
    add_number(&line, value);
    say(ev, &line);
}

void events_checkpoint(struct events *ev, int64_t step, const char *path, double seconds,
                       double stall)
{
    struct strbuf line = STRBUF_INIT;

    strbuf_addf(&line, "{\"type\":\"checkpoint\",\"step\":%lld,\"path\":", (long long)step);
    json_add_string(&line, path);
    strbuf_adds(&line, ",\"seconds\":");
    add_number(&line, seconds);
    strbuf_adds(&line, ",\"stall\":");
    add_number(&line, stall);
    say(ev, &line);
}

void events_resumed(struct events *ev, int64_t step)
{
    struct strbuf line = STRBUF_INIT;

    strbuf_addf(&line, "{\"type\":\"resumed\",\"step\":%lld", (long long)step);
    say(ev, &line);
}

void events_environment(struct events *ev, const struct worker_environment *env)
{
    struct strbuf line = STRBUF_INIT;

    strbuf_addf(&line, "{\"type\":\"environment\",\"threads\":%d,\"blas\":", env->threads);
    json_add_string(&line, env->blas);
    if (env->arithmetic != 0)
        strbuf_addf(&line, ",\"arithmetic\":%d", env->arithmetic);
    strbuf_adds(&line, ",\"instructions\":");
    json_add_string(&line, env->instructions);
    say(ev, &line);
}

void events_note(struct events *ev, const char *fmt, ...)
{
    struct strbuf line = STRBUF_INIT;
    char text[1024];
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    if (ev->fd < 0) {
        terminal_printf(stderr, "note: %s\n", text);
        return;
    }
    strbuf_adds(&line, "{\"type\":\"note\",\"text\":");
    json_add_string(&line, text);
    say(ev, &line);
}
