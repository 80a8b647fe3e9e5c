/*
 * The clock limits how often anything is drawn, so progress_set() may be called per document. A bar
 * is redrawn with a carriage return and erases the rest of its line. The width is read once, at the
 * start.
 */
#include "worker/data/progress.h"

#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/terminal.h"

#define TERMINAL_NS ((int64_t)100 * 1000 * 1000)
#define LINE_NS     ((int64_t)10 * 1000 * 1000 * 1000)
#define BAR_MAX     40
#define TEXT_ROOM   48 /* columns beside name and bar */
#define LINE_SIZE   256
#define COLUMNS     80 /* of a terminal that does not say */

void progress_start(struct progress *p, const char *what, enum progress_unit unit, double total)
{
    struct winsize size;

    *p = (struct progress){.what = what, .unit = unit, .total = total, .columns = COLUMNS};
    p->terminal = isatty(STDERR_FILENO) == 1;
    if (p->terminal && ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
        p->columns = size.ws_col;
    p->start_ns = p->shown_ns = clock_mono_ns();
}

void progress_text(const struct progress *p, double done, double seconds, int bar_width, char *out,
                   int size)
{
    double share = p->total > 0.0 && done < p->total ? done / p->total : 1.0;
    double rate = seconds > 0.0 ? done / seconds : 0.0;
    char bar[BAR_MAX + 4] = "", span[32] = "?";
    int width = bar_width < BAR_MAX ? bar_width : BAR_MAX;

    if (width > 0) {
        int full = (int)(share * width);
        bar[0] = '[';
        memset(bar + 1, '#', (size_t)full);
        memset(bar + 1 + full, '.', (size_t)(width - full));
        bar[width + 1] = ']';
        bar[width + 2] = ' ';
    }
    if (rate > 0.0)
        (void)clock_span_text((int64_t)((p->total - done) / rate * 1e3 * (share < 1.0)), span,
                              sizeof(span));
    if (p->unit == PROGRESS_BYTES)
        (void)snprintf(out, (size_t)size, "%s  %s%3.0f %%  %.1f MB/s  ETA %s", p->what, bar,
                       100.0 * share, rate / 1e6, span);
    else
        (void)snprintf(out, (size_t)size, "%s  %s%3.0f %%  %.0f/s  ETA %s", p->what, bar,
                       100.0 * share, rate, span);
}

void progress_set(struct progress *p, double done)
{
    int64_t now = clock_mono_ns();
    char line[LINE_SIZE];

    if (now - p->shown_ns < (p->terminal ? TERMINAL_NS : LINE_NS))
        return;
    p->shown_ns = now;
    int room = p->columns - (int)strlen(p->what) - TEXT_ROOM;
    progress_text(p, done, (double)(now - p->start_ns) * 1e-9, p->terminal && room > 4 ? room : 0,
                  line, LINE_SIZE);
    if (p->terminal)
        (void)fputs("\r", stderr);
    terminal_printf(stderr, p->terminal ? "%s" : "%s\n", line); /* it begins with a file's name */
    if (p->terminal)
        (void)fputs("\033[K", stderr);
    p->drawn = p->terminal;
}

void progress_end(struct progress *p)
{
    if (p->drawn)
        (void)fputs("\r\033[K", stderr);
    p->drawn = false;
}
