/* The answers that a counter gives are zeros and empty texts, which are judged like any other. */
#include "worker/eval/cli/count.h"

#include "worker/nn/pass_clock.h"

static int count_scores(void *self, struct score_request *r, size_t n, bool (*asked)(void),
                        struct err *err)
{
    struct request_count *c = self;
    (void)asked;
    (void)err;
    score_counter_score(c->counter, r, n, &c->cost);
    return 0;
}

static int count_generations(void *self, struct score_generation *g, size_t n,
                             const struct score_stop *stop, struct err *err)
{
    struct request_count *c = self;
    (void)stop;
    (void)err;
    score_counter_generate(c->counter, g, n, &c->cost);
    return 0;
}

void request_count_answers(struct request_count *c, struct lm *lm)
{
    lm->self = c;
    lm->score = count_scores;
    lm->generate = count_generations;
}

int request_count_items(struct request_count *c, struct scorer *scorer, const size_t *items,
                        size_t n, struct err *err)
{
    const int64_t begin = pass_clock_now_ns(CLOCK_PROCESS_CPUTIME_ID);
    size_t asked = 0;
    int rc = 0;
    for (size_t done = 0; rc == 0 && done < n; done += asked) {
        rc = scorer_ask(scorer, items + done, n - done, &asked, err);
        for (size_t i = 0; rc == 0 && i < asked; i++) {
            const struct item_outcome *o = &scorer->outcomes[i];
            c->n_faults += o->fault[0] != '\0';
            c->n_cut_items += o->n_cut > 0;
            c->n_cut += (double)o->n_cut;
        }
    }
    c->seconds += (double)(pass_clock_now_ns(CLOCK_PROCESS_CPUTIME_ID) - begin) * 1e-9;
    return rc;
}
