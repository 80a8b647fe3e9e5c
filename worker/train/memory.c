/*
 * The trainer's buffers are counted by the functions that allocate them (trainer_bytes(),
 * run_bytes()), so the estimate follows the code. Tokens are estimated from file sizes before the
 * data is read, and counted afterwards: a shard's header has their number, text in a trained
 * vocabulary is taken at BYTES_PER_TOKEN.
 */
#include "worker/train/memory.h"

#include <math.h>
#include <unistd.h>

#include "worker/data/shard.h"
#include "worker/data/source.h"
#include "worker/nn/threads.h"
#include "worker/train/checkpoint/checkpoint_image.h"
#include "worker/train/data.h"

#define PROCESS_BYTES   0x1p25 /* libraries and the panels that BLAS packs for one thread */
#define ALLOWANCE       0.03   /* of the trainer: what the allocator rounds up */
#define THREAD_BYTES    0x1p24 /* BLAS's buffers of each further one */
#define BYTES_PER_TOKEN 4.0    /* of text, in a trained vocabulary: a low guess of its tokens */

/* The size of a corpus in tokens, file by file. */
struct token_count {
    bool bytes; /* each is a token */
    double tokens;
};

static int count_file(void *ctx, const char *path, int64_t size, struct err *err)
{
    struct token_count *c = ctx;
    double tokens = c->bytes ? (double)size : (double)size / BYTES_PER_TOKEN;

    (void)err;
    (void)shard_count(path, &tokens);
    c->tokens += tokens;
    return 0;
}

/* A file that cannot be inspected counts nothing. */
static void count_data(const struct worker_task *task, const char *name, struct token_count *c)
{
    struct task_data entry;
    struct err ignored;

    if (task_find_data(task, name, &entry, &ignored) == 0)
        (void)!source_each_file(entry.path, count_file, c, &ignored);
}

double memory_corpus_of_files(const struct worker_task *task, const struct train_options *opt)
{
    struct token_count c = {.bytes = strcmp(opt->tokenizer, TOKENIZER_BYTES) == 0};

    for (size_t i = 0; i < opt->n_mix; i++)
        count_data(task, opt->mix[i].name, &c);
    if (opt->validation != NULL)
        count_data(task, opt->validation, &c);
    return c.tokens * sizeof(uint32_t);
}

double memory_corpus_of_data(const struct train_data *data)
{
    double tokens = (double)data->validation.val.n;

    for (size_t i = 0; i < data->n_sources; i++)
        tokens += (double)data->sources[i].train.n + (double)data->sources[i].val.n;
    return tokens * sizeof(uint32_t);
}

void memory_need_of(const struct train_options *opt, double corpus, int threads,
                    struct memory_need *out)
{
    int more = threads - nn_threads(); /* those that run are in trainer_bytes() */
    double parameters = sizeof(real) * (double)model_config_total(&opt->model);

    *out = (struct memory_need){
        .trainer = PROCESS_BYTES + THREAD_BYTES * (threads - 1) +
                   (more > 0 ? more * run_thread_bytes(&opt->model) : 0.0) +
                   (1.0 + ALLOWANCE) * trainer_bytes(opt) +
                   sizeof(struct step_record) * (double)opt->steps,
        .corpus = corpus,
        .saving = parameters,
        .copying = checkpoint_image_bytes(opt) +
                   /* A snapshot is written while the copy's memory is held. */
                   (train_options_snapshots(opt) > 0 ? parameters : 0.0),
    };
}

double memory_least(const struct memory_need *need)
{
    return need->trainer + need->corpus + need->saving;
}

double memory_most(const struct memory_need *need)
{
    return need->trainer + need->corpus + fmax(need->saving, need->copying);
}

double memory_of_machine(void)
{
    long pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGESIZE);

    return pages > 0 && size > 0 ? (double)pages * (double)size : 0.0;
}

double memory_allowed(const struct worker_task *task)
{
    return task->memory_bytes > 0 ? (double)task->memory_bytes : memory_of_machine();
}

void memory_check(const struct memory_need *need, double allowed, const struct train_options *opt,
                  struct param_faults *faults)
{
    const double mib = 0x1p20;
    struct params p;

    if (allowed <= 0.0 || memory_least(need) <= allowed)
        return;
    params_init(&p, NULL, faults);
    params_fault(
        &p, "memory_bytes",
        "the run needs at least %.1f MiB (%lld parameters, %lld sequences a pass, %.1f MiB of "
        "tokens), the task may use %.1f MiB",
        memory_least(need) / mib, (long long)model_config_total(&opt->model),
        (long long)opt->micro_batch, need->corpus / mib, allowed / mib);
}
