#include "tests/oracle/engine.h"

#include "base/files/file.h"
#include "base/rng.h"
#include "base/xalloc.h"
#include "worker/nn/gemm.h"

#define CORPUS_DOCUMENTS  600
#define CORPUS_SENTENCES  4
#define CORPUS_SEED       20240229
#define CORPUS_NUMBER_MAX 1000

static int read_options(struct engine *e, struct err *err)
{
    struct param_faults faults = {0};

    train_options_read(&e->task, &e->opt, &faults);
    int rc = param_faults_result(&faults, err);
    param_faults_release(&faults);
    return rc;
}

int engine_open(struct engine *e, const char *task_path, struct err *err)
{
    *e = (struct engine){0};
    int rc = task_read(task_path, &e->task, err);
    if (rc == 0)
        rc = read_options(e, err);
    if (rc == 0)
        rc = train_data_load(&e->task, &e->opt, &e->data, err);
    if (rc < 0)
        return rc;
    gemm_set_threads(e->task.threads);
    return trainer_init(&e->trainer, &e->opt, &e->data, err);
}

void engine_close(struct engine *e)
{
    trainer_release(&e->trainer);
    train_data_release(&e->data);
    task_release(&e->task);
}

size_t engine_step_sequences(const struct engine *e)
{
    return (size_t)(e->opt.batch_tokens / e->opt.model.context);
}

real *engine_logits(struct engine *e, int64_t step)
{
    struct trainer *t = &e->trainer;
    size_t context = (size_t)e->opt.model.context, vocab = (size_t)e->opt.model.vocab;
    size_t n_seqs = engine_step_sequences(e), most = (size_t)e->opt.micro_batch;
    real *logits = real_alloc(n_seqs * context * vocab), *out = logits;

    for (size_t at = 0; logits != NULL && at < n_seqs; at += most) {
        struct run_batch batch = {.tokens = t->tokens,
                                  .batch = n_seqs - at < most ? n_seqs - at : most,
                                  .length = context};
        for (size_t i = 0; i < batch.batch; i++)
            train_data_sequence(&e->data, (uint64_t)step * n_seqs + at + i, t->tokens + i * context,
                                t->targets + i * context);
        run_forward(t->run, &t->w, &batch, NULL);
        for (size_t row = 0; row < batch.batch * context; row++, out += vocab)
            memcpy(out, run_logits(t->run, &t->w, row, 1), vocab * sizeof(*out));
    }
    return logits;
}

real *engine_gradient(struct engine *e)
{
    struct trainer *t = &e->trainer;
    size_t context = (size_t)e->opt.model.context, n_seqs = engine_step_sequences(e);
    size_t most = (size_t)e->opt.micro_batch;
    real *gradient = real_alloc(t->w.table.n_params);

    for (size_t at = 0; gradient != NULL && at < n_seqs; at += most) {
        struct run_batch batch = {.tokens = t->tokens,
                                  .targets = t->targets,
                                  .batch = n_seqs - at < most ? n_seqs - at : most,
                                  .length = context};
        struct run_objective objective = {.balance = e->opt.balance_loss,
                                          .z = e->opt.router_z_loss,
                                          .share = (double)batch.batch / (double)n_seqs,
                                          .noise = {.sigma = e->opt.router_noise,
                                                    .seed = e->opt.seed,
                                                    .first_token = at * context},
                                          .capacity_factor = e->opt.capacity_factor};
        struct run_loss loss;
        for (size_t i = 0; i < batch.batch; i++)
            train_data_sequence(&e->data, at + i, t->tokens + i * context,
                                t->targets + i * context);
        run_gradient(t->run, &t->w, &batch, &objective, NULL, gradient, &loss);
    }
    return gradient;
}

/* A sentence a small model can learn something from, and a number that it cannot. */
static void add_sentence(struct strbuf *out, struct rng *r)
{
    static const char *const who[] = {"the cat", "a dog", "my aunt", "the old king"};
    static const char *const does[] = {"sees", "likes", "follows", "paints"};
    static const char *const what[] = {"a red ball", "the river", "two birds", "nothing"};

    strbuf_addf(out, "%s %s %s %d times. ", who[rng_below(r, 4)], does[rng_below(r, 4)],
                what[rng_below(r, 4)], (int)rng_below(r, CORPUS_NUMBER_MAX));
}

int engine_write_corpus(const char *path, struct err *err)
{
    struct strbuf text = STRBUF_INIT;
    struct rng r;

    rng_seed(&r, CORPUS_SEED);
    for (int i = 0; i < CORPUS_DOCUMENTS; i++) {
        for (int j = 0; j < CORPUS_SENTENCES; j++)
            add_sentence(&text, &r);
        strbuf_adds(&text, "\n<|endoftext|>\n");
    }
    int rc = file_write_atomic(path, text.buf, text.len, 0644, err);
    strbuf_release(&text);
    return rc;
}
