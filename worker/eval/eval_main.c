/* prereg-eval: scores a trained model on one benchmark (docs/evaluation.md,
 * docs/worker-protocol.md). */
#include "worker/eval/run.h"
#include "worker/report/result.h"
#include "worker/report/stop.h"

static const char usage_text[] =
    "usage: prereg-eval                        runs the task named by PREREG_TASK\n"
    "       prereg-eval --describe task.json   says what it would measure\n";

static int run_from(const char *path, bool describe, struct err *err)
{
    struct task task = {0};
    int rc = task_read(path, &task, err);
    if (rc == 0)
        rc = describe ? eval_describe(&task, stdout, err) : eval_run(&task, err);
    task_release(&task);
    return rc;
}

int main(int argc, char **argv)
{
    struct err err = {0};
    const char *path = getenv("PREREG_TASK");
    int rc;
    if (argc == 3 && strcmp(argv[1], "--describe") == 0)
        rc = run_from(argv[2], true, &err);
    else if (argc != 1 || path == NULL)
        rc = err_set(&err, ERR_USAGE, "no task to do");
    else if ((rc = stop_install(&err)) == 0)
        rc = run_from(path, false, &err);
    if (rc != 0)
        fprintf(stderr, "prereg-eval: %s\n", err.msg);
    if (rc != 0 && path == NULL)
        fputs(usage_text, stderr);
    return (int)worker_exit_code(rc);
}
