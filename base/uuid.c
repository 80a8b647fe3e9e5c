/* Version 4, from the kernel's random numbers. */
#include "base/uuid.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

static bool is_dash(size_t i)
{
    return i == 8 || i == 13 || i == 18 || i == 23;
}

/* Of the kernel, which gives this few in one piece; it has no other answer but "not yet". */
static void random_bytes(unsigned char *out, size_t n)
{
    ssize_t got;
    while ((got = getrandom(out, n, 0)) < 0 && errno == EINTR) {
    }
    if (got != (ssize_t)n) {
        abort();
    }
}

void uuid_make(char text[UUID_TEXT_SIZE])
{
    static const char hex[] = "0123456789abcdef";
    unsigned char raw[16];
    random_bytes(raw, sizeof(raw));
    raw[6] = (unsigned char)((raw[6] & 0x0FU) | 0x40U);
    raw[8] = (unsigned char)((raw[8] & 0x3FU) | 0x80U);
    size_t n = 0;
    for (size_t i = 0; i < 36; i++) {
        if (is_dash(i)) {
            text[i] = '-';
            continue;
        }
        unsigned char b = raw[n / 2];
        text[i] = hex[n % 2 == 0 ? b >> 4 : b & 15U];
        n++;
    }
    text[36] = '\0';
}

bool uuid_is_valid(const char *text)
{
    if (strlen(text) != 36) {
        return false;
    }
    for (size_t i = 0; i < 36; i++) {
        bool ok = is_dash(i) ? text[i] == '-' : strchr("0123456789abcdef", text[i]) != NULL;
        if (!ok) {
            return false;
        }
    }
    return true;
}
