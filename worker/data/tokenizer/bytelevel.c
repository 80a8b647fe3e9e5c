/*
 * The mapping is computed, not tabled: the moved bytes are three ranges, so a comparison or two
 * decides. Characters of the alphabet take one or two bytes of UTF-8.
 */
#include "worker/data/tokenizer/bytelevel.h"

#include <stdint.h>

#include "base/text.h"

#define N_MOVED 68u /* bytes that do not map to themselves */

static bool stands_for_itself(unsigned b)
{
    return (b >= 0x21 && b <= 0x7e) || (b >= 0xa1 && b <= 0xff && b != 0xad);
}

/* The code point of a byte: the moved ones are 0x00-0x20, 0x7f-0xa0 and 0xad. */
static unsigned char_of(unsigned b)
{
    if (stands_for_itself(b))
        return b;
    if (b <= 0x20)
        return 0x100 + b;
    return b == 0xad ? 0x100 + N_MOVED - 1 : 0x100 + 0x21 + (b - 0x7f);
}

/* The byte of a code point, or -1. */
static int byte_of(uint32_t c)
{
    if (c < 0x100)
        return stands_for_itself(c) ? (int)c : -1;
    if (c <= 0x120)
        return (int)(c - 0x100);
    if (c < 0x100 + N_MOVED - 1)
        return (int)(c - 0x121 + 0x7f);
    return c == 0x100 + N_MOVED - 1 ? 0xad : -1;
}

void bytelevel_write(const void *bytes, size_t len, struct strbuf *out)
{
    const unsigned char *b = bytes;

    for (size_t i = 0; i < len; i++) {
        unsigned c = char_of(b[i]);
        if (c >= 0x80)
            strbuf_addc(out, (char)(0xc0 | c >> 6));
        strbuf_addc(out, (char)(c < 0x80 ? c : 0x80 | (c & 0x3f)));
    }
}

bool bytelevel_read(const char *text, size_t len, struct strbuf *out)
{
    size_t start = out->len;

    for (size_t at = 0; at < len;) {
        uint32_t c = 0;
        size_t n = text_utf8_next(text + at, len - at, &c);
        int b = n == 0 ? -1 : byte_of(c);
        if (b < 0) {
            if (out->cap > 0) {
                out->len = start;
                out->buf[start] = '\0';
            }
            return false;
        }
        strbuf_addc(out, (char)b);
        at += n;
    }
    return true;
}
