/* Numbers, sizes and spans from strings: never out of their stated range, never a crash; UTF-8
 * agrees with itself. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/files/digest.h"
#include "base/text.h"
#include "base/xalloc.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct err err = {0};
    char *s = xmalloc(size + 1);
    memcpy(s, data, size);
    s[size] = '\0';
    int64_t i = 0;
    double d = 0;
    struct digest digest;
    if (text_to_int(s, -5, 1000, &i, &err) == 0 && (i < -5 || i > 1000)) {
        abort();
    }
    if (text_to_double(s, &d, &err) == 0 && !isfinite(d)) {
        abort();
    }
    if (text_to_bytes(s, &i, &err) == 0 && i < 1) {
        abort();
    }
    if (text_to_ms(s, &i, &err) == 0 && i < 1) {
        abort();
    }
    if (digest_from_hex(s, &digest, &err) == 0) {
        char hex[DIGEST_HEX_SIZE];
        digest_hex(&digest, hex);
        if (strcmp(hex, s) != 0) {
            abort();
        }
    }
    static const char *const known[] = {"factor", "stage", "measure"};
    (void)text_nearest(s, known, ARRAY_LEN(known));
    (void)text_is_utf8(s, size);
    (void)text_columns(s);
    free(s);
    return 0;
}
