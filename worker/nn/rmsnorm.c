/*
 * The mean of squares is computed in double, as is the root: it scales a whole row, so its error
 * would show in every element. dx is added to what is there, because the residual stream's gradient
 * passes the norm by; the weights' gradient is summed over the rows in a second sweep.
 */
#include "worker/nn/rmsnorm.h"

#include "worker/nn/threads.h"
#include "worker/nn/vec.h"

#define ROWS_A_SUM 64
#define TILE       64

/* Arrays of one call, in the letters of the header. */
struct norm {
    real *y;
    real *rstd;
    real *dx;
    real *dw;
    const real *dy;
    const real *x;
    const real *w;
    const real *kept; /* rstd of the forward pass */
    real eps;
    size_t n;
    size_t c;
};

NN_BODY void forward_rows_body(const struct norm *p, size_t from, size_t to)
{
    size_t c = p->c;
    const real *w = p->w;

    for (size_t r = from; r < to; r++) {
        const real *xr = p->x + r * c;
        real *restrict yr = p->y + r * c;
        double mean = vec_sum_squares(xr, c) / (double)c;
        real s = (real)(1.0 / sqrt(mean + (double)p->eps));

        for (size_t i = 0; i < c; i++)
            yr[i] = xr[i] * s * w[i];
        p->rstd[r] = s;
    }
}

static void forward_rows(const struct norm *p, size_t from, size_t to);
NN_KERNEL(forward_rows, (const struct norm *p, size_t from, size_t to), (p, from, to))

static void forward_part(void *ctx, size_t from, size_t to, int thread)
{
    (void)thread;
    forward_rows(ctx, from, to);
}

void rmsnorm_forward(real *restrict y, real *restrict rstd, const real *restrict x,
                     const real *restrict w, real eps, size_t n, size_t c)
{
    struct norm p = {.y = y, .rstd = rstd, .x = x, .w = w, .eps = eps, .n = n, .c = c};

    nn_parallel_rows(n, c, forward_part, &p);
}

/* dw += sum over rows of dy x s, for columns from TILE first to TILE end, in two levels: a pass of
 * thousands of rows loses no digits. */
NN_BODY void weight_columns_body(const struct norm *p, size_t first_tile, size_t end_tile)
{
    size_t n = p->n, c = p->c;

    for (size_t first = 0; first < n; first += ROWS_A_SUM) {
        size_t end = n - first < ROWS_A_SUM ? n : first + ROWS_A_SUM;
        for (size_t at = first_tile * TILE; at < c && at < end_tile * TILE; at += TILE) {
            size_t width = c - at < TILE ? c - at : TILE;
            real sum[TILE] = {0};
            for (size_t r = first; r < end; r++)
                for (size_t i = 0; i < width; i++)
                    sum[i] += p->dy[r * c + at + i] * p->x[r * c + at + i] * p->kept[r];
            for (size_t i = 0; i < width; i++)
                p->dw[at + i] += sum[i];
        }
    }
}

static void weight_columns(const struct norm *p, size_t first_tile, size_t end_tile);
NN_KERNEL(weight_columns, (const struct norm *p, size_t first_tile, size_t end_tile),
          (p, first_tile, end_tile))

static void weight_part(void *ctx, size_t from, size_t to, int thread)
{
    (void)thread;
    weight_columns(ctx, from, to);
}

NN_BODY void backward_rows_body(const struct norm *p, size_t from, size_t to)
{
    size_t c = p->c;
    const real *w = p->w;

    for (size_t r = from; r < to; r++) {
        const real *xr = p->x + r * c;
        const real *gr = p->dy + r * c;
        real *restrict dr = p->dx + r * c;
        real s = p->kept[r];
        real acc[NN_LANES] = {0};
        size_t i = 0;

        for (; i + NN_LANES <= c; i += NN_LANES)
            for (size_t j = 0; j < NN_LANES; j++)
                acc[j] += gr[i + j] * w[i + j] * xr[i + j];
        for (size_t j = 0; i + j < c; j++)
            acc[j] += gr[i + j] * w[i + j] * xr[i + j];
        real k = nn_lanes_sum(acc) / (real)c * s * s * s;
        for (i = 0; i < c; i++)
            dr[i] += s * gr[i] * w[i] - xr[i] * k;
    }
}

static void backward_rows(const struct norm *p, size_t from, size_t to);
NN_KERNEL(backward_rows, (const struct norm *p, size_t from, size_t to), (p, from, to))

static void backward_part(void *ctx, size_t from, size_t to, int thread)
{
    (void)thread;
    backward_rows(ctx, from, to);
}

void rmsnorm_backward(real *restrict dx, real *restrict dw, const real *restrict dy,
                      const real *restrict x, const real *restrict w, const real *restrict rstd,
                      size_t n, size_t c)
{
    struct norm p = {.dx = dx, .dw = dw, .dy = dy, .x = x, .w = w, .kept = rstd, .n = n, .c = c};

    nn_parallel_rows(n, c, backward_part, &p);
    nn_parallel_rows((c + TILE - 1) / TILE, n * TILE, weight_part, &p);
}
