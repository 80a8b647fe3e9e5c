/*
 * The trainer's buffers are counted by the functions that allocate them (trainer_bytes(),
 * run_bytes()), so the estimate follows the code. Tokens are estimated from file sizes before the
 * data is read, and counted afterwards: a shard's header says how wide its tokens are, text in a
 * trained vocabulary is taken at BYTES_PER_TOKEN.
 */
#include "worker/train/memory.h"

#include <fcntl.h>
#include <math.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files/file.h"
#include "worker/data/shard.h"
#include "worker/nn/threads.h"
#include "worker/train/checkpoint/checkpoint_image.h"
#include "worker/train/data.h"

#define PROCESS_BYTES   0x1p25 /* libraries and the panels that BLAS packs for one thread */
#define ALLOWANCE       0.03   /* of the trainer: what the allocator rounds up */
#define THREAD_BYTES    0x1p24 /* BLAS's buffers of each further one */
#define BYTES_PER_TOKEN 4.0    /* of text, in a trained vocabulary: a low guess of its tokens */
#define DEPTH_MAX       16

/* Of a packed shard: what its header says a token takes; 0 of anything else. */
static uint32_t shard_token_bytes(const char *path)
{
    unsigned char head[16] = {0};
    int fd = open(path, O_RDONLY | O_CLOEXEC);

    if (fd < 0)
        return 0;
    ssize_t n = read(fd, head, sizeof(head));
    (void)close(fd);
    if (n != (ssize_t)sizeof(head) || memcmp(head, SHARD_MAGIC, sizeof(SHARD_MAGIC) - 1) != 0)
        return 0;
    return head[12] == 4 ? 4 : 2;
}

static double tokens_of_file(const char *path, double size, bool bytes)
{
    uint32_t per_token = shard_token_bytes(path);

    if (per_token > 0)
        return size / per_token;
    return bytes ? size : size / BYTES_PER_TOKEN;
}

/* Tokens of a file or of all files below a folder. */
static double tokens_of(const char *path, bool bytes, int depth)
{
    struct name_list list = {0};
    struct err ignored;
    struct stat st;
    double sum = 0.0;

    if (stat(path, &st) != 0)
        return 0.0;
    if (S_ISREG(st.st_mode))
        return tokens_of_file(path, (double)st.st_size, bytes);
    if (!S_ISDIR(st.st_mode) || depth == DEPTH_MAX)
        return 0.0;
    (void)!dir_list(path, &list, &ignored);
    for (size_t i = 0; i < list.n; i++) {
        char *inner = path_join(path, list.names[i]);
        sum += tokens_of(inner, bytes, depth + 1);
        free(inner);
    }
    name_list_release(&list);
    return sum;
}

double memory_corpus_of_files(const struct worker_task *task, const struct train_options *opt)
{
    bool bytes = strcmp(opt->tokenizer, TOKENIZER_BYTES) == 0;
    double tokens = 0.0;

    for (size_t i = 0; i < opt->n_mix; i++) {
        struct task_data entry;
        struct err ignored;
        if (task_find_data(task, opt->mix[i].name, &entry, &ignored) == 0)
            tokens += tokens_of(entry.path, bytes, 0);
    }
    return tokens * sizeof(uint32_t);
}

double memory_corpus_of_data(const struct train_data *data)
{
    double tokens = 0.0;

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
        .copying = checkpoint_image_bytes(opt),
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
