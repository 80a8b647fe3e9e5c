/* Two clocks, two types: durations and deadlines use monotonic time, records for people use wall
 * time. The wall clock may jump; nothing but display and file stamps may depend on it. */
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct mono_time {
    int64_t ms; /* of this boot, awake (CLOCK_MONOTONIC, as libuv's timers): a machine that slept
                   has given no process time to work, so no deadline passes meanwhile */
};

struct wall_time {
    int64_t ms; /* since 1970-01-01T00:00:00Z */
};

#define WALL_TEXT_SIZE sizeof("2026-11-21T03:04:22.123Z")

struct mono_time clock_mono(void);
struct wall_time clock_wall(void);
int64_t clock_mono_ns(void); /* for benchmarks and step timings */
void clock_sleep_ms(int64_t ms);
/* RFC 3339, UTC, milliseconds; text is "?" for times outside years 1970..9999. */
void clock_wall_text(struct wall_time t, char text[WALL_TEXT_SIZE]);
/* The other way, of exactly that form; false for anything else. */
bool clock_wall_parse(const char *text, struct wall_time *out);
/* "4 h 12 min", "3 min 20 s", "12.4 s": for people. Returns out. */
const char *clock_span_text(int64_t ms, char *out, size_t size);
/* Fills the kernel's boot id (36 characters and NUL), or "unknown". */
void clock_boot_id(char text[40]);

#endif
