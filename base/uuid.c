#include "base/uuid.h"

#include <sodium/randombytes.h>
#include <stddef.h>
#include <string.h>

static bool is_dash(size_t i)
{
    return i == 8 || i == 13 || i == 18 || i == 23;
}

void uuid_make(char text[UUID_TEXT_SIZE])
{
    static const char hex[] = "0123456789abcdef";
    unsigned char raw[16];
    randombytes_buf(raw, sizeof(raw));
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
