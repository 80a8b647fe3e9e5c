/* SHA-256's compression of whole blocks by the processor's own instructions (x86: SHA extensions),
 * some five times as fast as libsodium's. Private to base/digest.c, which uses libsodium where the
 * processor has none. */
#ifndef BASE_SHA256_H
#define BASE_SHA256_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Whether this processor has the instructions; asked once. */
bool sha256_in_hardware(void);

/* Takes n blocks of 64 bytes into h. Only where sha256_in_hardware(). */
void sha256_blocks(uint32_t h[8], const unsigned char *data, size_t n);

#endif
