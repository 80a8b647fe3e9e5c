/*
 * Wall time is written in UTC with three decimals of a second: the form is that of journals and
 * locks.
 */
#include "base/clock.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static int64_t now_ns(clockid_t id)
{
    struct timespec ts = {0};
    (void)clock_gettime(id, &ts);
    return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

struct mono_time clock_mono(void)
{
    return (struct mono_time){now_ns(CLOCK_MONOTONIC) / 1000000};
}

struct wall_time clock_wall(void)
{
    return (struct wall_time){now_ns(CLOCK_REALTIME) / 1000000};
}

int64_t clock_mono_ns(void)
{
    return now_ns(CLOCK_MONOTONIC);
}

void clock_sleep_ms(int64_t ms)
{
    struct timespec ts = {.tv_sec = ms / 1000, .tv_nsec = (ms % 1000) * 1000000};
    while (nanosleep(&ts, &ts) != 0 && errno == EINTR) {
    }
}

void clock_wall_text(struct wall_time t, char text[WALL_TEXT_SIZE])
{
    time_t sec = (time_t)(t.ms / 1000);
    struct tm tm;
    if (t.ms < 0 || gmtime_r(&sec, &tm) == NULL || tm.tm_year > 8099) {
        (void)snprintf(text, WALL_TEXT_SIZE, "?");
        return;
    }
    size_t n = strftime(text, WALL_TEXT_SIZE, "%Y-%m-%dT%H:%M:%S", &tm);
    (void)snprintf(text + n, WALL_TEXT_SIZE - n, ".%03dZ", (int)(t.ms % 1000));
}

bool clock_wall_parse(const char *text, struct wall_time *out)
{
    struct tm tm = {0};
    const char *rest = strptime(text, "%Y-%m-%dT%H:%M:%S", &tm);
    if (rest == NULL || strlen(text) != WALL_TEXT_SIZE - 1 || rest - text != 19) {
        return false;
    }
    int64_t ms = 0;
    for (int i = 1; i <= 3; i++) {
        if (rest[i] < '0' || rest[i] > '9') {
            return false;
        }
        ms = ms * 10 + (rest[i] - '0');
    }
    if (rest[0] != '.' || rest[4] != 'Z') {
        return false;
    }
    *out = (struct wall_time){(int64_t)timegm(&tm) * 1000 + ms};
    return true;
}

const char *clock_span_text(int64_t ms, char *out, size_t size)
{
    long long s = (long long)(ms / 1000);
    if (ms < 0) {
        (void)snprintf(out, size, "?");
    } else if (s < 60) {
        (void)snprintf(out, size, "%lld.%lld s", s, (long long)(ms % 1000 / 100));
    } else if (s < 3600) {
        (void)snprintf(out, size, "%lld min %lld s", s / 60, s % 60);
    } else if (s < (long long)48 * 3600) {
        (void)snprintf(out, size, "%lld h %lld min", s / 3600, s % 3600 / 60);
    } else {
        (void)snprintf(out, size, "%lld d %lld h", s / 86400, s % 86400 / 3600);
    }
    return out;
}

void clock_boot_id(char text[40])
{
    (void)snprintf(text, 40, "unknown");
    FILE *f = fopen("/proc/sys/kernel/random/boot_id", "re");
    if (f == NULL) {
        return;
    }
    char line[64];
    if (fgets(line, sizeof(line), f) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        (void)snprintf(text, 40, "%.39s", line);
    }
    (void)fclose(f);
}
