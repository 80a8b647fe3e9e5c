/* The two 16-bit floating-point formats, widened to float32. Both are exact. */
#ifndef WORKER_MODEL_FORMATS_HALF_H
#define WORKER_MODEL_FORMATS_HALF_H

#include <stdint.h>
#include <string.h>

static inline float half_from_bits(uint32_t bits)
{
    float f;

    memcpy(&f, &bits, sizeof(f));
    return f;
}

/* The upper half of a float32. */
static inline float half_from_bf16(uint16_t h)
{
    return half_from_bits((uint32_t)h << 16);
}

/* IEEE 754 binary16: 1 sign, 5 exponent (bias 15), 10 fraction bits. */
static inline float half_from_f16(uint16_t h)
{
    uint32_t sign = (uint32_t)(h & 0x8000u) << 16, exponent = (h >> 10) & 0x1Fu;
    uint32_t fraction = h & 0x3FFu;

    if (exponent == 0) { /* zero, or fraction x 2^-24 */
        float f = (float)fraction * 0x1p-24f;
        return sign == 0 ? f : -f;
    }
    if (exponent == 0x1F) /* infinity, NaN */
        return half_from_bits(sign | 0x7F800000u | fraction << 13);
    return half_from_bits(sign | (exponent + 127 - 15) << 23 | fraction << 13);
}

#endif
