/* Compares the clock with the times of a program's journal, at the start and at every committed
 * row, and notes when the clock is behind by more than SLACK_MS. The note is for status and
 * provenance; rows are never delayed or reordered by it. */
#include "daemon/program/clocks.h"

#include <string.h>

#include "base/log.h"
#include "base/xalloc.h"
#include "state/journal/line.h"

#define SLACK_MS 5000 /* small corrections, such as NTP's, are not worth a note */

static void note(struct hosted *h, const char *when, struct wall_time now)
{
    char there[WALL_TEXT_SIZE];
    char here[WALL_TEXT_SIZE];
    clock_wall_text(h->latest, there);
    clock_wall_text(now, here);
    free(h->clock_why);
    h->clock_why = xasprintf("the clock was at %s %s, its journal at %s: its rows keep that time, "
                             "with the clock's beside it, until the clock has passed it",
                             here, when, there);
    log_warn("%s: %s", h->id, h->clock_why);
    h->clock_behind = true;
}

static int take_time(void *ctx, int64_t seq, const char *line, struct err *err)
{
    struct wall_time *last = ctx;
    (void)seq;
    (void)err;
    *last = line_time(line, strlen(line));
    return 0;
}

/* Reads the time of the last journal line only. */
int clocks_at_start(struct store *store, struct hosted *h, struct err *err)
{
    struct digest head;
    struct wall_time now = clock_wall();
    int64_t n = 0;
    int rc = store_journal_head(store, h->no, &head, &n, err);
    if (rc != 0 || (rc = store_journal(store, h->no, n, take_time, &h->latest, err)) != 0) {
        return rc;
    }
    if (h->latest.ms - now.ms > SLACK_MS) {
        note(h, "when the daemon started", now);
    }
    return 0;
}

void clocks_at_row(struct hosted *h, const struct state_row *row)
{
    h->latest = row->time;
    if (row->behind_ms <= SLACK_MS) {
        h->clock_behind = false;
    } else if (!h->clock_behind) {
        note(h, "while the daemon ran", (struct wall_time){row->time.ms - row->behind_ms});
    }
}
