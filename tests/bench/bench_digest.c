/* How fast SHA-256 goes: over one text, and over the same bytes in pieces as a reader of a file or
 * a checkpoint's writer has them. Processor time, for the machine may be shared. */
#include <stdio.h>
#include <time.h>

#include "base/files/digest.h"
#include "base/xalloc.h"

#define REPEATS     5
#define BYTES       ((size_t)64 << 20)
#define PIECE_BYTES ((size_t)64 << 10)

static double cpu_ms(void)
{
    struct timespec t = {0};
    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static struct digest in_pieces(const unsigned char *bytes)
{
    struct digest_stream s;
    digest_start(&s);
    for (size_t at = 0; at < BYTES; at += PIECE_BYTES) {
        digest_add(&s, bytes + at, PIECE_BYTES);
    }
    return digest_finish(&s);
}

static void print_figure(const char *name, const double ms[REPEATS])
{
    double best = ms[0];
    (void)printf("{\"figure\":\"%s\",\"unit\":\"ms\",\"values\":[", name);
    for (int i = 0; i < REPEATS; i++) {
        (void)printf("%s%.2f", i == 0 ? "" : ",", ms[i]);
        best = ms[i] < best ? ms[i] : best;
    }
    (void)printf("]}\n%s: %.0f MB/s\n", name, (double)BYTES / 1e3 / best);
}

int main(void)
{
    unsigned char *bytes = xmalloc(BYTES);
    double whole[REPEATS];
    double pieces[REPEATS];
    for (size_t i = 0; i < BYTES; i++) {
        bytes[i] = (unsigned char)(i * 2654435761U >> 24);
    }
    for (int i = 0; i < REPEATS; i++) {
        double since = cpu_ms();
        struct digest a = digest_bytes(bytes, BYTES);
        whole[i] = cpu_ms() - since;
        since = cpu_ms();
        struct digest b = in_pieces(bytes);
        pieces[i] = cpu_ms() - since;
        if (!digest_equal(&a, &b)) {
            (void)fprintf(stderr, "bench_digest: the two differ\n");
            return 1;
        }
    }
    print_figure("SHA-256 of 64 MiB, one text, CPU", whole);
    print_figure("SHA-256 of 64 MiB, in pieces of 64 KiB, CPU", pieces);
    free(bytes);
    return 0;
}
