/* FIPS 180-4, section 6.2.2, four rounds at a time: h as (a,b,e,f) and (c,d,g,h), the order in
 * which the instructions want it. */
#include "base/sha256.h"

#if defined(__x86_64__)

#include <cpuid.h>
#include <immintrin.h>

static const uint32_t K[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

static bool ask(void)
{
    unsigned a = 0;
    unsigned b = 0;
    unsigned c = 0;
    unsigned d = 0;
    const bool sse41 = __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_SSE4_1) != 0;
    return sse41 && __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (b & bit_SHA) != 0;
}

bool sha256_in_hardware(void)
{
    static int answer = -1; /* threads that ask at once write the same */
    int known = __atomic_load_n(&answer, __ATOMIC_RELAXED);
    if (known < 0) {
        known = ask() ? 1 : 0;
        __atomic_store_n(&answer, known, __ATOMIC_RELAXED);
    }
    return known == 1;
}

#define HARDWARE __attribute__((target("sha,sse4.1,ssse3")))

/* The next four words of the schedule from the sixteen before. */
HARDWARE static __m128i schedule(const __m128i w[4])
{
    const __m128i t =
        _mm_add_epi32(_mm_sha256msg1_epu32(w[0], w[1]), _mm_alignr_epi8(w[3], w[2], 4));
    return _mm_sha256msg2_epu32(t, w[3]);
}

HARDWARE static void one_block(__m128i *abef, __m128i *cdgh, const unsigned char *data)
{
    const __m128i big_endian = _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203);
    const __m128i abef_before = *abef;
    const __m128i cdgh_before = *cdgh;
    __m128i w[4];
    for (int i = 0; i < 4; i++) {
        w[i] = _mm_shuffle_epi8(_mm_loadu_si128((const __m128i_u *)(const void *)(data + 16 * i)),
                                big_endian);
    }
    for (int i = 0; i < 16; i++) {
        const __m128i k = _mm_loadu_si128((const __m128i_u *)(const void *)&K[4 * i]);
        const __m128i wk = _mm_add_epi32(w[0], k);
        const __m128i next = i < 12 ? schedule(w) : w[0];
        *cdgh = _mm_sha256rnds2_epu32(*cdgh, *abef, wk);
        *abef = _mm_sha256rnds2_epu32(*abef, *cdgh, _mm_shuffle_epi32(wk, 0x0e));
        w[0] = w[1];
        w[1] = w[2];
        w[2] = w[3];
        w[3] = next;
    }
    *abef = _mm_add_epi32(*abef, abef_before);
    *cdgh = _mm_add_epi32(*cdgh, cdgh_before);
}

HARDWARE void sha256_blocks(uint32_t h[8], const unsigned char *data, size_t n)
{
    __m128i_u *store = (__m128i_u *)(void *)h;
    const __m128i dcba = _mm_loadu_si128(store);
    const __m128i hgfe = _mm_loadu_si128(store + 1);
    const __m128i cdab = _mm_shuffle_epi32(dcba, 0xb1);
    const __m128i efgh = _mm_shuffle_epi32(hgfe, 0x1b);
    __m128i abef = _mm_alignr_epi8(cdab, efgh, 8);
    __m128i cdgh = _mm_blend_epi16(efgh, cdab, 0xf0);
    for (; n > 0; n--, data += 64) {
        one_block(&abef, &cdgh, data);
    }
    const __m128i feba = _mm_shuffle_epi32(abef, 0x1b);
    const __m128i dchg = _mm_shuffle_epi32(cdgh, 0xb1);
    _mm_storeu_si128(store, _mm_blend_epi16(feba, dchg, 0xf0));
    _mm_storeu_si128(store + 1, _mm_alignr_epi8(dchg, feba, 8));
}

#else

#include <stdlib.h>

bool sha256_in_hardware(void)
{
    return false;
}

void sha256_blocks(uint32_t h[8], const unsigned char *data, size_t n)
{
    (void)h;
    (void)data;
    (void)n;
    abort();
}

#endif
