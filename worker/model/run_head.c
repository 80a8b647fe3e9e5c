/*
 * Final norm, logits, losses, and their gradients, in chunks of run->head_rows tokens: logits of
 * all tokens at once would be the largest buffer by far. A tied model multiplies by the embedding,
 * so its gradient is added to the embedding's.
 */
#include <assert.h>

#include "worker/model/run.h"
#include "worker/model/run_private.h"
#include "worker/nn/crossent.h"
#include "worker/nn/product/product.h"
#include "worker/nn/rmsnorm.h"

static enum tensor_role head_role(const struct run *run)
{
    return run->cfg.tie_embeddings ? TENSOR_EMBED : TENSOR_HEAD;
}

const real *run_logits(struct run *run, const struct weights *w, size_t first, size_t n)
{
    size_t c = (size_t)run->cfg.width;
    const real *head = weights_at(w, head_role(run), -1);

    assert(n <= run->head_rows);
    rmsnorm_forward(run->xn_last, run->rstd_last + first, run->x_last + first * c,
                    weights_at(w, TENSOR_NORM_FINAL, -1), (real)run->cfg.norm_eps, n, c);
    pass_clock_mark(run->clock, PASS_ELEMENTS);
    product(run->precision, run->logits, run->logits_ld, false, operand_plain(run->xn_last, c),
            operand_turned(head, c), n, (size_t)run->cfg.vocab, c);
    pass_clock_mark(run->clock, PASS_HEAD);
    return run->logits;
}

void run_token_losses(struct run *run, const struct weights *w, const struct run_batch *batch,
                      double *loss)
{
    size_t n = batch->batch * batch->length;

    for (size_t at = 0; at < n; at += run->head_rows) {
        size_t rows = n - at < run->head_rows ? n - at : run->head_rows;
        (void)run_logits(run, w, at, rows);
        crossent_forward(loss + at, NULL, run->logits, batch->targets + at,
                         &(struct crossent_dims){rows, (size_t)run->cfg.vocab, run->logits_ld});
        pass_clock_mark(run->clock, PASS_LOSS);
    }
}

double run_head_gradient(struct run *run, const struct weights *w, const struct run_batch *batch,
                         double share, real *grad)
{
    size_t n = batch->batch * batch->length;
    size_t c = (size_t)run->cfg.width, v = (size_t)run->cfg.vocab, ld = run->logits_ld;
    const real *head = weights_at(w, head_role(run), -1);
    real *d_head = run_grad_at(w, grad, head_role(run), -1);
    real scale = (real)(share / (double)n);
    double sum = 0.0;

    for (size_t at = 0; at < n; at += run->head_rows) {
        size_t rows = n - at < run->head_rows ? n - at : run->head_rows;
        (void)run_logits(run, w, at, rows);
        crossent_forward_backward(run->row_loss, run->logits, scale, batch->targets + at,
                                  &(struct crossent_dims){rows, v, ld});
        pass_clock_mark(run->clock, PASS_LOSS);
        product(run->precision, run->grad.dn + at * c, c, false, operand_plain(run->logits, ld),
                operand_plain(head, c), rows, c, v);
        product(run->precision, d_head, c, true, operand_turned(run->logits, ld),
                operand_plain(run->xn_last, c), v, c, rows);
        pass_clock_mark(run->clock, PASS_HEAD);
        for (size_t i = 0; i < rows; i++)
            sum += run->row_loss[i];
    }
    return sum / (double)n;
}
