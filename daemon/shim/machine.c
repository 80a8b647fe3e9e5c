#include "daemon/shim/machine.h"

#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

#include "base/text.h"

void machine_kernel(char *out, size_t size)
{
    struct utsname u;
    out[0] = '\0';
    if (uname(&u) == 0) {
        (void)snprintf(out, size, "%s %s %s", u.sysname, u.release, u.machine);
        text_make_utf8(out);
    }
}

/* The first processor's line stands near the beginning: the rest is not read. */
void machine_cpu(char *out, size_t size)
{
    char line[512];
    FILE *f = fopen("/proc/cpuinfo", "re");
    out[0] = '\0';
    while (f != NULL && out[0] == '\0' && fgets(line, sizeof(line), f) != NULL) {
        const char *colon = strncmp(line, "model name", 10) == 0 ? strchr(line, ':') : NULL;
        if (colon != NULL) {
            colon += strspn(colon, ": \t");
            (void)snprintf(out, size, "%.*s", (int)strcspn(colon, "\n"), colon);
            text_make_utf8(out);
        }
    }
    if (f != NULL) {
        (void)fclose(f);
    }
}
