/* Prints log-likelihoods, to the bit, and generated tokens of small models of every kind, for
 * test_dispatch.c. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"
#include "tests/unit/worker/shape.h"
#include "worker/model/engine.h"

#define N 12

static void print(struct engine *e, uint32_t vocab)
{
    struct err err;
    uint32_t tokens[N][40];
    struct score_request r[N];
    struct score_generation g[N];
    const struct score_stop stop = {.end_of_text = 0};

    for (uint32_t i = 0; i < N; i++) {
        for (uint32_t t = 0; t < 40; t++)
            tokens[i][t] = 1 + (t < 20 ? t * t : t * (i / 2 + 3) + i) % (vocab - 1);
        r[i] = (struct score_request){.tokens = tokens[i], .n = 40 - i, .first = 25 - i};
        g[i] =
            (struct score_generation){.prompt = tokens[i], .n = 2 * (size_t)i + 1, .max_tokens = 8};
    }
    if (engine_score(e, r, N, NULL, &err) < 0 || engine_generate(e, g, N, &stop, &err) < 0)
        abort();
    for (size_t i = 0; i < N; i++) {
        uint64_t bits;
        memcpy(&bits, &r[i].sum, sizeof(bits));
        (void)printf("%" PRIx64 " %d", bits, r[i].greedy);
        for (size_t t = 0; t < g[i].out.n; t++)
            (void)printf(" %" PRIu32, g[i].out.ids[t]);
        (void)printf("\n");
        token_list_release(&g[i].out);
    }
}

int main(void)
{
    const struct model_config shapes[] = {
        SHAPE(2, 48, 3, 3, 257, 50, .ffn = 300, .tie_embeddings = true),
        SHAPE(2, 60, 6, 2, 91, 50, .experts = 5, .top_k = 2, .expert_ffn = 20),
    };

    for (size_t i = 0; i < ARRAY_LEN(shapes); i++) {
        struct err err;
        struct weights w;
        struct engine *e = NULL;
        if (weights_init(&w, &shapes[i], &err) < 0)
            abort();
        weights_randomise(&w, 5, 0.3);
        if (engine_create(&w, &e, &err) < 0)
            abort();
        print(e, (uint32_t)shapes[i].vocab);
        engine_free(e);
        weights_release(&w);
    }
    return 0;
}
