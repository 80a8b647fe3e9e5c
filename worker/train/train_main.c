/*
 * prereg-train: trains one model as task.json says, and the commands on finished models
 * (model_commands.h). main() only decides which of them is meant; errors are printed once, in
 * finish(), and become exit codes by worker/report/result.h: a task that asks for what cannot be is
 * 64, a task.json that is not there or not JSON is 65, one that cannot be read now is a crash,
 * which is tried again.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "worker/nn/cpu.h"
#include "worker/nn/threads.h"
#include "worker/report/result.h"
#include "worker/report/stop.h"
#include "worker/report/task.h"
#include "worker/train/bench.h"
#include "worker/train/initial_model.h"
#include "worker/train/model_commands.h"
#include "worker/train/train.h"

static const char USAGE[] =
    "usage: prereg-train                      run the task named by $PREREG_TASK\n"
    "       prereg-train --init MODEL         the same, starting from the weights of a model\n"
    "       prereg-train --describe TASK      say what it would measure and cost; does no work\n"
    "       prereg-train --count FILE         exact parameter counts of parameters, or of a "
    "task's\n"
    "       prereg-train --bench [MODEL|FILE] [--batch N] [--context N] [--threads N] [--steps N]\n"
    "                     [--bfloat16|--openblas] [--json]\n"
    "                                         measure speed, its ceiling and where the time goes\n"
    "       prereg-train export --hf DIR [--tokenizer FILE | --no-tokenizer] [--force] MODEL\n"
    "                                         write a model as a folder for transformers\n"
    "       prereg-train generate MODEL [--prompt TEXT] [--tokens N] [--tokenizer FILE] [--ids]\n"
    "                                         let it continue a text, the likeliest token each "
    "time\n"
    "       prereg-train loss MODEL --text SOURCE [--context N] [--tokenizer FILE]\n"
    "                                         its loss on a text, as a line of JSON\n"
    "       prereg-train --version | --help\n";

/* What was printed counts only when it arrived. */
static int finish(int rc, struct err *err)
{
    if (rc == 0 && (fflush(stdout) != 0 || ferror(stdout)))
        rc = err_set_errno(err, errno, "standard output");
    if (rc < 0)
        (void)fprintf(stderr, "prereg-train: %s\n", err->msg);
    return (int)worker_exit_code(rc);
}

static int describe(const char *path)
{
    struct err err = {0};
    struct worker_task task;

    int rc = task_read(path, &task, &err);
    if (rc == 0)
        rc = train_describe(&task, stdout, &err);
    task_release(&task);
    return finish(rc, &err);
}

static int count(const char *path)
{
    struct err err = {0};

    return finish(train_count(path, stdout, &err), &err);
}

static int bench(int argc, char **argv)
{
    struct bench_options opt;
    struct err err = {0};

    int rc = bench_options_read(argc, argv, &opt, &err);
    if (rc == 0)
        rc = bench_run(&opt, stdout, &err);
    return finish(rc, &err);
}

/* init: NULL, or where the weights start from. */
static int run(const char *path, const char *init)
{
    struct err err = {0};
    struct worker_task task;

    /* Before anything that takes time: until then a SIGTERM is a crash, not a wish. */
    int rc = stop_install(&err);
    if (rc < 0)
        return finish(rc, &err);
    rc = task_read(path, &task, &err);
    if (rc == 0 && init != NULL)
        rc = initial_model_by_hand(&task, init, &err);
    if (rc == 0)
        rc = train_run(&task, &err);
    task_release(&task);
    return finish(rc, &err);
}

/* What is done with a finished model; NULL when the word is not one of them. */
static int (*find_use(const char *word))(int argc, char **argv, FILE *out, struct err *err)
{
    if (strcmp(word, "export") == 0)
        return model_command_export;
    if (strcmp(word, "generate") == 0)
        return model_command_generate;
    return strcmp(word, "loss") == 0 ? model_command_loss : NULL;
}

/* Alone or after a command; any later one may be the text of --prompt. */
static bool asks_for_help(int argc, char **argv)
{
    for (int i = 1; i < argc && i <= 2; i++)
        if (strcmp(argv[i], "--help") == 0)
            return true;
    return false;
}

int main(int argc, char **argv)
{
    const char *task = getenv("PREREG_TASK");
    struct err err = {0};

    if (asks_for_help(argc, argv)) {
        (void)fputs(USAGE, stdout);
        return finish(0, &err);
    }
    if (nn_cpu_check(&err) != 0)
        return finish(err.code, &err);
    nn_flush_denormals();
    if (argc == 3 && strcmp(argv[1], "--describe") == 0)
        return describe(argv[2]);
    if (argc == 3 && strcmp(argv[1], "--count") == 0)
        return count(argv[2]);
    if (argc >= 2 && strcmp(argv[1], "--bench") == 0)
        return bench(argc - 2, argv + 2);
    if (argc >= 2 && find_use(argv[1]) != NULL)
        return finish(find_use(argv[1])(argc - 2, argv + 2, stdout, &err), &err);
    if (argc == 2 && strcmp(argv[1], "--version") == 0) {
        (void)printf("prereg-train %s\n", PREREGD_VERSION);
        return finish(0, &err);
    }
    bool init = argc == 3 && strcmp(argv[1], "--init") == 0;
    if ((argc == 1 || init) && task != NULL && task[0] != '\0')
        return run(task, init ? argv[2] : NULL);
    if (argc == 1 || init)
        (void)fputs("prereg-train: PREREG_TASK is not set\n", stderr);
    (void)fputs(USAGE, stderr);
    return WORKER_USAGE;
}
