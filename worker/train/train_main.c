/* prereg-train: trains one model as task.json says. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "worker/report/result.h"
#include "worker/report/stop.h"
#include "worker/report/task.h"
#include "worker/train/train.h"

static const char USAGE[] =
    "usage: prereg-train                      run the task named by $PREREG_TASK\n"
    "       prereg-train --describe TASK      say what it would measure and cost; does no work\n"
    "       prereg-train --count PARAMS       exact parameter counts of a JSON file of parameters\n"
    "       prereg-train --version\n";

static int finish(int rc, const struct err *err)
{
    if (rc < 0)
        (void)fprintf(stderr, "prereg-train: %s\n", err->msg);
    return (int)worker_exit_code(rc);
}

static int describe(const char *path)
{
    struct err err = {0};
    struct task task;

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

static int run(const char *path)
{
    struct err err = {0};
    struct task task;

    /* Before anything that takes time: until then a SIGTERM is a crash, not a wish. */
    int rc = stop_install(&err);
    if (rc < 0)
        return finish(rc, &err);
    rc = task_read(path, &task, &err);
    if (rc < 0) {
        (void)finish(rc, &err);
        task_release(&task);
        return WORKER_USAGE;
    }
    rc = train_run(&task, &err);
    task_release(&task);
    return finish(rc, &err);
}

int main(int argc, char **argv)
{
    const char *task = getenv("PREREG_TASK");

    if (argc == 3 && strcmp(argv[1], "--describe") == 0)
        return describe(argv[2]);
    if (argc == 3 && strcmp(argv[1], "--count") == 0)
        return count(argv[2]);
    if (argc == 2 && strcmp(argv[1], "--version") == 0) {
        (void)printf("prereg-train %s\n", PREREGD_VERSION);
        return WORKER_DONE;
    }
    if (argc == 1 && task != NULL && task[0] != '\0')
        return run(task);
    if (argc == 1)
        (void)fputs("prereg-train: PREREG_TASK is not set\n", stderr);
    (void)fputs(USAGE, stderr);
    return WORKER_USAGE;
}
