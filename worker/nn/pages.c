/*
 * Buffers of two large pages and more are aligned to 2 MiB, and the kernel is asked to back them
 * with large pages, but for the end, of which a large page would leave a part unused. Smaller ones
 * are aligned to a cache line, which is also what AVX-512 loads want.
 */
#include "worker/nn/pages.h"

#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

#define CACHE_LINE ((size_t)64)
#define LARGE_PAGE ((size_t)2 << 20)

void *pages_alloc(size_t bytes)
{
    size_t align = bytes >= 2 * LARGE_PAGE ? LARGE_PAGE : CACHE_LINE;

    if (bytes > SIZE_MAX - align)
        return NULL;
    size_t size = bytes == 0 ? align : (bytes + align - 1) / align * align;
    void *p = aligned_alloc(align, size);
    if (p != NULL && align == LARGE_PAGE)
        (void)madvise(p, bytes / align * align,
                      MADV_HUGEPAGE); /* a wish: without it everything works, slower */
    return p;
}
