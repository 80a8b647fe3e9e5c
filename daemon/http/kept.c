/* A ring of the newest answers; an answer to a question that is there already takes its place. */
#include "daemon/http/kept.h"

#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"

const struct kept_answer *kept_find(const struct kept *k, const char *question, uint64_t version,
                                    bool final, int64_t now_ns)
{
    for (size_t i = 0; i < KEPT_ANSWERS; i++) {
        const struct kept_answer *a = &k->items[i];
        if (a->question != NULL && a->final == final && strcmp(a->question, question) == 0 &&
            (final ? a->version == version : now_ns < a->until_ns)) {
            return a;
        }
    }
    return NULL;
}

static struct kept_answer *place_for(struct kept *k, const char *question)
{
    for (size_t i = 0; i < KEPT_ANSWERS; i++) {
        if (k->items[i].question != NULL && strcmp(k->items[i].question, question) == 0) {
            return &k->items[i];
        }
    }
    struct kept_answer *a = &k->items[k->next];
    k->next = (k->next + 1) % KEPT_ANSWERS;
    return a;
}

void kept_add(struct kept *k, const struct kept_new *made, int64_t now_ns)
{
    if (made->len > KEPT_BYTES_MAX) {
        return;
    }
    const int64_t rest = KEPT_REST * (now_ns - made->began_ns);
    struct kept_answer *a = place_for(k, made->question);
    free(a->question);
    free(a->bytes);
    *a = (struct kept_answer){.question = xstrdup(made->question),
                              .bytes = xmalloc(made->len + 1),
                              .len = made->len,
                              .version = made->version,
                              .final = made->final,
                              .until_ns = now_ns + (rest < KEPT_REST_NS ? rest : KEPT_REST_NS)};
    memcpy(a->bytes, made->bytes, made->len);
}

void kept_release(struct kept *k)
{
    for (size_t i = 0; i < KEPT_ANSWERS; i++) {
        free(k->items[i].question);
        free(k->items[i].bytes);
    }
    *k = (struct kept){.next = 0};
}
