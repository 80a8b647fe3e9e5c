/*
 * Prints a measurement, as text or JSON. Rates are tokens per second; a spread of seconds turns
 * around when it becomes one of rates. The JSON's keys are read by tests/bench, and `schema` counts
 * their changes.
 */
#include <stdlib.h>
#include <string.h>

#include "base/json/json.h"
#include "base/xalloc.h"
#include "worker/nn/cpu.h"
#include "worker/nn/gemm.h"
#include "worker/nn/product/bfloat16.h"
#include "worker/nn/product/product.h"
#include "worker/train/bench.h"

#define BENCH_SCHEMA 2

static const struct {
    const char *key;
    const char *text;
} PARTS[PASS_NR] = {
    [PASS_BODY] = {"body_gemm", "matrix products of the blocks"},
    [PASS_HEAD] = {"head_gemm", "matrix products of the head"},
    [PASS_ATTENTION] = {"attention", "attention"},
    [PASS_ELEMENTS] = {"elementwise", "norms, rotation, SwiGLU, sums"},
    [PASS_LOSS] = {"cross_entropy", "softmax and cross-entropy"},
    [PASS_ROUTING] = {"routing", "router, gather and scatter"},
    [PASS_OPTIMISER] = {"optimiser", "gradient norm and AdamW"},
    [PASS_REST] = {"rest", "drawing sequences"},
};

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

struct bench_spread bench_spread_of(double *values, size_t n)
{
    qsort(values, n, sizeof(*values), by_value);
    return (struct bench_spread){.median = (values[(n - 1) / 2] + values[n / 2]) / 2.0,
                                 .low = values[0],
                                 .high = values[n - 1]};
}

/* Tokens a second; the slowest pass gives the lowest rate. */
static struct bench_spread rates(const struct bench_result *r, struct bench_spread seconds)
{
    double tokens = (double)r->batch * r->model.context;

    return (struct bench_spread){tokens / seconds.median, tokens / seconds.high,
                                 tokens / seconds.low};
}

static double parts_sum(const struct bench_result *r)
{
    double sum = 0.0;

    for (int i = 0; i < PASS_NR; i++)
        sum += r->part[i];
    return sum;
}

/* An object with median, low and high. */
static void put_spread(cJSON *obj, const char *key, struct bench_spread s)
{
    cJSON *o = json_object();

    json_put_number(o, "median", s.median);
    json_put_number(o, "low", s.low);
    json_put_number(o, "high", s.high);
    json_put(obj, key, o);
}

/* reached: the least time by the machine's limits, over the time that it took. */
static void put_part(cJSON *obj, const struct bench_result *r, int i)
{
    const struct bench_part *work = &r->work[i];
    cJSON *o = json_object();

    json_put_number(o, "seconds", r->part[i]);
    json_put_number(o, "operations", work->operations);
    json_put_number(o, "bytes", work->bytes);
    json_put_string(o, "bound", bench_part_is_memory_bound(work, r) ? "memory" : "peak");
    json_put_number(o, "reached", r->part[i] > 0.0 ? bench_part_bound(work, r) / r->part[i] : 0.0);
    json_put(obj, PARTS[i].key, o);
}

static int print_json(const struct bench_result *r, FILE *out, struct err *err)
{
    struct strbuf text = STRBUF_INIT;
    struct bench_spread rate = rates(r, r->step_seconds);
    bool cpu_time = r->threads == 1;
    cJSON *obj = json_object(), *model = json_object(), *parts = json_object();
    cJSON *roofline = json_object();
    double flops = model_config_flops_per_token(&r->model);

    model_config_put(&r->model, model);
    for (int i = 0; i < PASS_NR; i++)
        json_put_number(parts, PARTS[i].key, r->part[i] / parts_sum(r));
    for (int i = 0; i < PASS_NR; i++)
        put_part(roofline, r, i);
    json_put_int(obj, "schema", BENCH_SCHEMA);
    json_put(obj, "model", model);
    json_put_int(obj, "params_total", model_config_total(&r->model));
    json_put_int(obj, "params_active", model_config_active(&r->model));
    json_put_int(obj, "batch", r->batch);
    json_put_int(obj, "threads", r->threads);
    json_put_string(obj, "blas", gemm_blas_text());
    json_put_string(obj, "products", product_text());
    json_put_string(obj, "kernels", nn_cpu_text(nn_cpu()));
    if (r->precision == PRODUCT_BFLOAT16)
        json_put_bool(obj, "bfloat16_instructions", bfloat16_is_native());
    json_put_int(obj, "n", r->n);
    json_put_string(obj, "clock", cpu_time ? "processor" : "wall");
    put_spread(obj, "wall_tokens_per_second", rates(r, r->step_wall));
    put_spread(obj, "tokens_per_second", rate);
    put_spread(obj, "forward_tokens_per_second", rates(r, r->forward_seconds));
    json_put_number(obj, "flops_per_token", flops);
    json_put_number(obj, "gflops", r->rate * 1e-9);
    json_put_number(obj, "products_gflops", r->products * 1e-9);
    json_put_number(obj, "peak_gflops", r->peak * 1e-9);
    json_put_number(obj, "memory_gbytes_per_second", r->bandwidth * 1e-9);
    json_put_number(obj, "share_of_peak", r->rate / r->peak);
    json_put_number(obj, "products_share_of_peak", r->products / r->peak);
    json_put(obj, "time_shares", parts);
    json_put(obj, "roofline", roofline);
    json_put_number(obj, "peak_rss_bytes", r->peak_bytes);
    json_put_number(obj, "planned_bytes", r->planned_bytes);
    int rc = json_pretty(obj, &text, err);
    if (rc == 0)
        (void)fprintf(out, "%s\n", text.buf);
    strbuf_release(&text);
    cJSON_Delete(obj);
    return rc;
}

/* One row each: share and time, then the roofline. */
static void print_parts(const struct bench_result *r, FILE *out)
{
    (void)fputs("time    share        ms  Goperations        MB  bound   reached\n", out);
    for (int i = 0; i < PASS_NR; i++) {
        const struct bench_part *work = &r->work[i];
        if (r->part[i] <= 0.0)
            continue;
        (void)fprintf(out, "      %5.1f %%  %8.2f  %11.3f  %8.1f  %-6s  %5.1f %%  %s\n",
                      100.0 * r->part[i] / parts_sum(r), r->part[i] * 1e3, work->operations * 1e-9,
                      work->bytes * 1e-6, bench_part_is_memory_bound(work, r) ? "memory" : "peak",
                      100.0 * bench_part_bound(work, r) / r->part[i], PARTS[i].text);
    }
}

static void print_text(const struct bench_result *r, FILE *out)
{
    const struct model_config *cfg = &r->model;
    struct bench_spread wall = rates(r, r->step_wall);
    struct bench_spread step = rates(r, r->step_seconds), fwd = rates(r, r->forward_seconds);
    const double mib = 0x1p20;

    (void)fprintf(out, "model       %.2f M parameters, %.2f M active: %d layers, width %d, ",
                  (double)model_config_total(cfg) * 1e-6, (double)model_config_active(cfg) * 1e-6,
                  cfg->layers, cfg->width);
    (void)fprintf(out, "%d heads, vocabulary %d, %d experts\n", cfg->heads, cfg->vocab,
                  cfg->experts);
    (void)fprintf(out, "step        %lld x %d tokens, %lld thread%s, kernels %s%s, %s\n",
                  (long long)r->batch, cfg->context, (long long)r->threads,
                  r->threads == 1 ? "" : "s", nn_cpu_text(nn_cpu()),
                  r->precision == PRODUCT_FLOAT32 ? ""
                  : bfloat16_is_native()          ? ", bfloat16 by vdpbf16ps"
                                                  : ", bfloat16 by fma",
                  product_text());
    (void)fprintf(out, "training    %.0f tokens/s (median of %lld, %.0f to %.0f)\n", wall.median,
                  (long long)r->n, wall.low, wall.high);
    if (r->threads == 1)
        (void)fprintf(out, "            %.0f tokens a second of processor time (%.0f to %.0f)\n",
                      step.median, step.low, step.high);
    (void)fprintf(out, "forward     %.0f tokens/s (%.0f to %.0f)\n", fwd.median, fwd.low, fwd.high);
    (void)fprintf(out,
                  "machine     %.1f GF/s by the kernel in the nearest cache, %.1f GB/s of memory\n",
                  r->peak * 1e-9, r->bandwidth * 1e-9);
    (void)fprintf(out,
                  "rate        %.1f GF/s: %.1f %% of the kernel's; products alone %.1f: %.1f %%\n",
                  r->rate * 1e-9, 100.0 * r->rate / r->peak, r->products * 1e-9,
                  100.0 * r->products / r->peak);
    if (r->kind == PRODUCTS_OPENBLAS && gemm_is_narrow())
        (void)fputs("            OpenBLAS's core is of AVX2, the processor of AVX-512: "
                    "OPENBLAS_CORETYPE=SkylakeX is faster\n",
                    out);
    (void)fprintf(out, "memory      %.0f MiB at the peak (%.0f planned)\n", r->peak_bytes / mib,
                  r->planned_bytes / mib);
    print_parts(r, out);
}

int bench_print(const struct bench_result *result, bool json, FILE *out, struct err *err)
{
    if (json)
        return print_json(result, out, err);
    print_text(result, out);
    return 0;
}
