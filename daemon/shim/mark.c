/* Marks of an attempt on processes: made by the shim's child before it becomes the worker, read by
 * the fence when the shim is gone. */
#include "daemon/shim/mark.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/files/file.h"
#include "base/strbuf.h"
#include "base/text.h"

/* 16 bits that mark it as ours ("PR"), then the first 48 bits of the attempt's id. Below 2^63. */
#define MARK_TOP     UINT64_C(0x5052)
#define MARK_SHIFT   48
#define OOM_WORKER   500
#define OOM_MOST     1000
#define LIMIT_HEADER "Max realtime timeout"
#define LIMITS_MAX   ((size_t)64 * 1024)

_Static_assert(sizeof(unsigned long) == sizeof(uint64_t), "limits of 64 bits");

unsigned long mark_limit(const char *attempt)
{
    uint64_t id = 0;
    unsigned digits = 0;
    for (const char *p = attempt; *p != '\0' && digits < MARK_SHIFT / 4; p++) {
        static const char hex[] = "0123456789abcdef";
        const char *at = strchr(hex, *p);
        if (at != NULL) {
            id = id << 4 | (uint64_t)(at - hex);
            digits++;
        }
    }
    return MARK_TOP << MARK_SHIFT | id;
}

void mark_set(unsigned long limit)
{
    struct rlimit r = {limit, limit};
    (void)setrlimit(RLIMIT_RTTIME, &r);
}

/* Tests the hard limit: a process may lower its soft limit and raise it again, the hard one only
 * falls. */
unsigned long mark_read(pid_t pid)
{
    char path[64];
    char *save = NULL;
    int64_t value = 0;
    struct strbuf text = STRBUF_INIT;
    struct err ignored;
    (void)snprintf(path, sizeof(path), "/proc/%ld/limits", (long)pid);
    if (file_read(path, LIMITS_MAX, &text, &ignored) == 0) {
        char *line = strstr(text.buf, LIMIT_HEADER); /* then the soft limit and the hard one */
        char *soft = line == NULL ? NULL : strtok_r(line + strlen(LIMIT_HEADER), " \n", &save);
        const char *hard = soft == NULL ? NULL : strtok_r(NULL, " \n", &save);
        if (hard == NULL || text_to_int(hard, 1, INT64_MAX, &value, &ignored) != 0 ||
            (uint64_t)value >> MARK_SHIFT != MARK_TOP) {
            value = 0;
        }
    }
    strbuf_release(&text);
    return (unsigned long)value;
}

int mark_oom_adjustment(int own)
{
    return own < OOM_WORKER ? OOM_WORKER : own < OOM_MOST ? own + 1 : OOM_MOST;
}

int mark_oom_read(pid_t pid)
{
    char path[64];
    struct strbuf text = STRBUF_INIT;
    struct err ignored;
    int64_t value = 0;
    (void)snprintf(path, sizeof(path), "/proc/%ld/oom_score_adj",
                   (long)(pid == 0 ? getpid() : pid));
    if (file_read(path, 64, &text, &ignored) == 0) {
        text.buf[strcspn(text.buf, "\n")] = '\0';
        if (text_to_int(text.buf, -1000, OOM_MOST, &value, &ignored) != 0) {
            value = 0;
        }
    }
    strbuf_release(&text);
    return (int)value;
}
