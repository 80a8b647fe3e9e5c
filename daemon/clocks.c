#include "daemon/clocks.h"

#include <string.h>

#include "base/json.h"
#include "base/log.h"
#include "base/xalloc.h"

#define SLACK_MS 5000 /* that a clock may be set back by whoever keeps it right */

static void note(struct hosted *h, const char *when, struct wall_time now)
{
    char there[WALL_TEXT_SIZE];
    char here[WALL_TEXT_SIZE];
    clock_wall_text(h->latest, there);
    clock_wall_text(now, here);
    free(h->clock_why);
    h->clock_why = xasprintf("the clock was at %s %s, its journal at %s: times in it go back, its "
                             "order holds",
                             here, when, there);
    log_warn("%s: %s", h->id, h->clock_why);
    h->latest = now; /* said once for each time that it is set back */
}

static int take_time(void *ctx, int64_t seq, const char *line, struct err *err)
{
    struct wall_time *last = ctx;
    cJSON *o = NULL;
    struct err unread;
    (void)seq;
    (void)err;
    if (json_parse(line, strlen(line), &o, &unread) == 0) {
        const cJSON *time = json_member(o, "time");
        if (cJSON_IsString(time)) {
            (void)clock_wall_parse(time->valuestring, last);
        }
    }
    cJSON_Delete(o);
    return 0;
}

int clocks_at_start(struct store *store, struct hosted *h, struct err *err)
{
    struct digest head;
    struct wall_time now = clock_wall();
    int64_t n = 0;
    int rc = store_journal_head(store, h->no, &head, &n, err);
    rc = rc != 0 ? rc : store_journal(store, h->no, n, take_time, &h->latest, err);
    if (rc == 0 && h->latest.ms - now.ms > SLACK_MS) {
        note(h, "when the daemon started", now);
    }
    return rc;
}

void clocks_at_row(struct hosted *h, struct wall_time time)
{
    if (h->latest.ms - time.ms > SLACK_MS) {
        note(h, "while the daemon ran", time);
    } else if (time.ms > h->latest.ms) {
        h->latest = time;
    }
}
