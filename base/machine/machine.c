/* Reads uname(2), sysconf(3), /proc/cpuinfo and /proc/meminfo; nothing here can fail, it can only
 * be unknown. */
#include "base/machine/machine.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/text.h"
#include "base/xalloc.h"

void machine_kernel(char *out, size_t size)
{
    struct utsname u;
    out[0] = '\0';
    if (uname(&u) == 0) {
        (void)snprintf(out, size, "%s %s %s", u.sysname, u.release, u.machine);
        text_make_utf8(out);
    }
}

/* Copies what a line "NAME : VALUE" of /proc/cpuinfo gives; false for other lines. */
static bool take_value(const char *line, const char *name, char *out, size_t size)
{
    const size_t n = strlen(name);
    const char *colon = strchr(line, ':');
    if (colon == NULL || strncmp(line, name, n) != 0 || line[n + strspn(line + n, "\t ")] != ':') {
        return false;
    }
    colon += strspn(colon, ": \t");
    (void)snprintf(out, size, "%.*s", (int)strcspn(colon, "\n"), colon);
    return true;
}

/* The first processor's lines are at the beginning: the rest is not read. Guests are often told a
 * bare "AMD EPYC", whatever its generation; family and model tell them apart. */
void machine_cpu(char *out, size_t size)
{
    char line[512];
    char name[160] = "";
    char family[16] = "?";
    char model[16] = "?";
    FILE *f = fopen("/proc/cpuinfo", "re");
    out[0] = '\0';
    while (f != NULL && name[0] == '\0' && fgets(line, sizeof(line), f) != NULL) {
        if (!take_value(line, "cpu family", family, sizeof(family)) &&
            !take_value(line, "model", model, sizeof(model)) &&
            take_value(line, "model name", name, sizeof(name))) {
            (void)snprintf(out, size, "%s (family %s model %s)", name, family, model);
            text_make_utf8(out);
        }
    }
    if (f != NULL) {
        (void)fclose(f);
    }
}

int64_t machine_memory_bytes(void)
{
    long pages = sysconf(_SC_PHYS_PAGES);
    long page = sysconf(_SC_PAGESIZE);
    return pages > 0 && page > 0 ? (int64_t)pages * page : 0;
}

int64_t machine_memory_free_bytes(void)
{
    static const char name[] = "MemAvailable:";
    char line[128];
    int64_t kib = 0;
    FILE *f = fopen("/proc/meminfo", "re");
    while (f != NULL && kib == 0 && fgets(line, sizeof(line), f) != NULL) {
        if (strncmp(line, name, sizeof(name) - 1) == 0) {
            kib = strtoll(line + sizeof(name) - 1, NULL, 10);
        }
    }
    if (f != NULL) {
        (void)fclose(f);
    }
    return kib > 0 && kib < INT64_MAX / 1024 ? kib * 1024 : 0;
}

char *machine_blas_core(const char *blas)
{
    static const char *const marks[] = {"core ", "kernels "};
    const char *at = NULL;
    for (size_t i = 0; blas != NULL && at == NULL && i < ARRAY_LEN(marks); i++) {
        at = strstr(blas, marks[i]);
        at = at == NULL ? NULL : at + strlen(marks[i]);
    }
    return at == NULL ? NULL : xstrndup(at, strcspn(at, ",; "));
}
