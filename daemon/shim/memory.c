/* Sums of memory over a process tree, from /proc. The quick sum reads /proc/PID/status, which costs
 * little and is never too low; the exact one reads smaps_rollup, for which the kernel walks the
 * page tables. A process that ended meanwhile counts 0. */
#include "daemon/shim/memory.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/text.h"

#define PROC_TEXT_MAX 16384

static bool proc_read(const char *path, char text[PROC_TEXT_MAX])
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return false;
    }
    ssize_t n = read(fd, text, PROC_TEXT_MAX - 1);
    (void)close(fd);
    text[n > 0 ? n : 0] = '\0';
    return n > 0;
}

/* The number after `name`, which begins with the line end before it, in lines like "Name:   123 kB"
 * or "name 123"; -1 when absent. */
static int64_t field(const char *text, const char *name)
{
    const char *p = strstr(text, name);
    if (p == NULL) {
        return -1;
    }
    p += strlen(name);
    p += strspn(p, ": \t");
    char digits[24];
    size_t n = strspn(p, "0123456789");
    struct err err;
    int64_t value = -1;
    if (n == 0 || n >= sizeof(digits)) {
        return -1;
    }
    memcpy(digits, p, n);
    digits[n] = '\0';
    return text_to_int(digits, 0, INT64_MAX, &value, &err) == 0 ? value : -1;
}

/* A field in KiB, as bytes; 0 when absent. */
static int64_t kib(const char *text, const char *name)
{
    int64_t v = field(text, name);
    return v > 0 && v < INT64_MAX / 1024 ? v * 1024 : 0;
}

int64_t memory_quick(const struct pid_list *tree)
{
    char path[64];
    char text[PROC_TEXT_MAX];
    int64_t sum = 0;
    for (size_t i = 0; i < tree->n; i++) {
        (void)snprintf(path, sizeof(path), "/proc/%ld/status", (long)tree->pids[i]);
        if (proc_read(path, text)) {
            sum += kib(text, "\nRssAnon:") + kib(text, "\nRssShmem:");
        }
    }
    return sum;
}

int64_t memory_exact(const struct pid_list *tree)
{
    char path[64];
    char text[PROC_TEXT_MAX];
    int64_t sum = 0;
    for (size_t i = 0; i < tree->n; i++) {
        (void)snprintf(path, sizeof(path), "/proc/%ld/smaps_rollup", (long)tree->pids[i]);
        if (proc_read(path, text)) {
            sum += kib(text, "\nPss_Anon:") + kib(text, "\nPss_Shmem:");
        }
    }
    return sum;
}

int64_t memory_oom_kills(void)
{
    char text[PROC_TEXT_MAX];
    return proc_read("/proc/vmstat", text) ? field(text, "\noom_kill ") : -1;
}

/* /proc/vmstat has 170 lines, summed over all processors for every reader. */
int64_t memory_oom_kills_lately(int64_t age_ms)
{
    static int64_t kills;
    static int64_t read_ms = -1; /* monotonic */
    const int64_t now_ms = clock_mono().ms;
    if (read_ms < 0 || now_ms - read_ms > age_ms) {
        kills = memory_oom_kills();
        read_ms = now_ms;
    }
    return kills;
}
