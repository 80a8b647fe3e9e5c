/*
 * prereg-eval: scores a trained model on one benchmark (docs/evaluation.md,
 * docs/worker-protocol.md). The program either runs the task named by $PREREG_TASK, describes or
 * plans one, or executes one of the commands for people (commands.h). Exit codes are those of
 * worker/report/result.h in all cases.
 */
#include <errno.h>

#include "worker/eval/cli/commands.h"
#include "worker/eval/cli/plan.h"
#include "worker/eval/cli/run.h"
#include "worker/nn/cpu.h"
#include "worker/nn/threads.h"
#include "worker/report/result.h"
#include "worker/report/stop.h"

static const char usage_text[] =
    "usage: prereg-eval                   run the task named by $PREREG_TASK\n"
    "       prereg-eval --describe TASK...\n"
    "                                     say what each would measure, and every fault; does no "
    "work\n"
    "       prereg-eval --plan TASK.json  say what it would ask and how long it would take\n"
    "       prereg-eval --plan TASK --data PATH --model PATH [--fewshot-data PATH]\n"
    "                   [--more-data PATH] [--tokenizer PATH] [--second-key PATH]\n"
    "                   [--set KEY=VALUE]...\n"
    "       prereg-eval tasks             list the tasks: kind, metrics, files and records\n"
    "       prereg-eval tasks NAME        print a task's description, to start one's own from\n"
    "       prereg-eval tasks --check FILE\n"
    "                                     check one's own\n"
    "       prereg-eval show TASK|--task-file FILE --data PATH [--item N] [--count N]\n"
    "                   [--group NAME] [--groups NAME,...] [--shots K] [--split NAME]\n"
    "                   [--fewshot-data PATH] [--fewshot-split NAME]\n"
    "                   [--tokenizer PATH | --model PATH] [--context N]\n"
    "                   [--more-data PATH] [--harness VERSION] [--description-newlines N] "
    "[--json]\n"
    "                                     print what is sent to the model about an item\n"
    "       prereg-eval export-harness ATTEMPT -o FOLDER\n"
    "                                     lm-evaluation-harness's files of a done attempt\n"
    "       prereg-eval --version | --help\n";

/* Runs the task at the path. */
static int run_from(const char *path, struct err *err)
{
    struct worker_task task = {0};
    int rc = task_read(path, &task, err);
    if (rc == 0)
        rc = eval_run(&task, err);
    task_release(&task);
    return rc;
}

/* argv: the arguments after --plan. */
static int plan(int argc, char **argv, struct err *err)
{
    struct worker_task task = {0};
    int rc = plan_read_arguments(argc, argv, &task, err);
    if (rc == 0)
        rc = eval_plan(&task, stdout, err);
    task_release(&task);
    return rc;
}

/* Of any command: what the command line means otherwise does not matter then. */
static bool asks_for_help(int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], "--help") == 0)
            return true;
    return false;
}

/* What was printed counts only when it arrived. */
static int finish(int rc, struct err *err)
{
    if (rc == 0 && (fflush(stdout) != 0 || ferror(stdout)))
        rc = err_set_errno(err, errno, "standard output");
    if (rc != 0)
        fprintf(stderr, "prereg-eval: %s\n", err->msg);
    return (int)worker_exit_code(rc);
}

int main(int argc, char **argv)
{
    struct err err = {0};
    const char *path = getenv("PREREG_TASK");
    int rc;
    if (asks_for_help(argc, argv)) {
        fputs(usage_text, stdout);
        return WORKER_DONE;
    }
    if (argc == 2 && strcmp(argv[1], "--version") == 0) {
        printf("prereg-eval %s\n", PREREGD_VERSION);
        return WORKER_DONE;
    }
    if (nn_cpu_check(&err) != 0)
        return finish(err.code, &err);
    nn_flush_denormals();
    if (argc >= 2 && strcmp(argv[1], "--plan") == 0)
        return finish(plan(argc - 2, argv + 2, &err), &err);
    if (argc > 1 && strcmp(argv[1], "tasks") == 0)
        return finish(command_tasks(argv + 2, stdout, &err), &err);
    if (argc > 1 && strcmp(argv[1], "show") == 0)
        return finish(command_show(argv + 2, stdout, &err), &err);
    if (argc > 1 && strcmp(argv[1], "export-harness") == 0)
        return finish(command_export_harness(argv + 2, stdout, &err), &err);
    bool describe = argc >= 3 && strcmp(argv[1], "--describe") == 0;
    if (!describe && (argc != 1 || path == NULL || path[0] == '\0')) {
        fprintf(stderr, "%s%s", argc == 1 ? "prereg-eval: PREREG_TASK is not set\n" : "",
                usage_text);
        return WORKER_USAGE;
    }
    if (describe)
        rc = eval_describe(argv + 2, (size_t)argc - 2, stdout, &err);
    else if ((rc = stop_install(&err)) == 0)
        rc = run_from(path, &err);
    return finish(rc, &err);
}
