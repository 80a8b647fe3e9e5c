/*
 * Starts the worker's process, which writes start.json and executes the worker's program, and
 * reports whether that worked.
 *
 * Up to its execve the process shares the shim's memory, while the shim is held up: copying that
 * memory would cost more than all the rest. So it makes system calls only (and one snprintf),
 * everything that needs memory is prepared before, and what it has to say stays in `struct child`.
 */
#include "daemon/shim/worker.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/layout/layout.h"
#include "daemon/shim/mark.h"

#define EXEC_FAILED_CODE 127
#define STACK_BYTES      ((size_t)64 * 1024)
#ifdef __x86_64__
#define SHARING MAP_PRIVATE /* clone_into() shares all memory */
#else
#define SHARING MAP_SHARED
#endif

/* At the start of a mapping that shim and process share; the process's stack is behind it. */
struct child {
    const struct worker_plan *plan;
    pid_t shim;
    unsigned long limit; /* mark.h */
    struct pid_stat own;
    bool announced;
    int why; /* errno of what failed, start.json unless `announced`; 0: nothing did */
};

static _Noreturn void child_fail(struct child *c, int why)
{
    c->why = why;
    _exit(EXEC_FAILED_CODE);
}

static void child_open(struct child *c, const char *name, int flags, int as)
{
    int fd = open(name, flags, 0600);
    if (fd < 0 || dup2(fd, as) < 0) {
        child_fail(c, errno);
    }
    if (fd != as) {
        (void)close(fd);
    }
}

/* Best effort: it may be refused, and nothing depends on it. */
static void child_prefer_for_oom(int adjustment)
{
    int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
    if (fd >= 0) {
        char text[16];
        int n = snprintf(text, sizeof(text), "%d", adjustment);
        ssize_t ignored = write(fd, text, (size_t)n);
        (void)ignored;
        (void)close(fd);
    }
}

/* start.json, by the process itself: the shim learns its number too late. */
static void child_announce(struct child *c)
{
    const struct worker_plan *p = c->plan;
    if (!pid_stat_read(getpid(), &c->own)) {
        child_fail(c, EIO);
    }
    int why = shim_start_finish(p->start_fd, p->start_text, p->reserved, &c->own);
    if (why != 0) {
        child_fail(c, why);
    }
    c->announced = true;
}

/* The process up to its execve. It leaves silently if the shim is gone. Standard input is /dev/null
 * already, as the shim's. */
static int child_run(void *arg)
{
    struct child *c = arg;
    const struct shim_spec *spec = c->plan->spec;
    /* Both steps, in this order: a shim that died before prctl is noticed by its number. */
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != c->shim) {
        _exit(EXEC_FAILED_CODE);
    }
    mark_set(c->limit);
    child_announce(c);
    (void)setpgid(0, 0);
    child_open(c, LAYOUT_STDOUT, O_WRONLY | O_CREAT | O_APPEND, STDOUT_FILENO);
    child_open(c, LAYOUT_STDERR, O_WRONLY | O_CREAT | O_APPEND, STDERR_FILENO);
    child_prefer_for_oom(c->plan->oom_adjustment);
    struct rlimit none = {0, 0};
    (void)setrlimit(RLIMIT_CORE, &none);
    sigset_t mask;
    (void)sigemptyset(&mask);
    (void)sigprocmask(SIG_SETMASK, &mask, NULL);
    (void)execve(spec->exec, spec->argv, spec->env);
    child_fail(c, errno);
}

/* clone3(), for which the C library has no function. A process that shares memory needs a stack of
 * its own, and so a jump to it; where that is not written down it gets a copy of the memory. */
static pid_t clone_into(int group_fd, char *stack, struct child *c)
{
    struct clone_args args = {.flags = CLONE_VFORK | CLONE_INTO_CGROUP,
                              .exit_signal = SIGCHLD,
                              .cgroup = (__u64)(unsigned)group_fd};
#ifdef __x86_64__
    long rc;
    args.flags |= CLONE_VM;
    args.stack = (__u64)(uintptr_t)stack;
    args.stack_size = STACK_BYTES;
    register int (*run)(void *) __asm__("r12") = child_run;
    register void *arg __asm__("r13") = c;
    __asm__ volatile("syscall\n\t"
                     "testq %%rax, %%rax\n\t"
                     "jnz 1f\n\t"
                     "xorl %%ebp, %%ebp\n\t" /* the end of all frames */
                     "movq %%r13, %%rdi\n\t"
                     "callq *%%r12\n\t" /* does not return */
                     "ud2\n"
                     "1:"
                     : "=a"(rc)
                     : "0"((long)SYS_clone3), "D"(&args), "S"(sizeof(args)), "r"(run), "r"(arg)
                     : "rcx", "r11", "cc", "memory");
    return rc < 0 ? -1 : (pid_t)rc;
#else
    (void)stack;
    pid_t pid = (pid_t)syscall(SYS_clone3, &args, sizeof(args));
    if (pid == 0) {
        (void)child_run(c);
    }
    return pid;
#endif
}

/* Without the C library's own steps around a fork: this process has one thread, and the new one
 * makes system calls alone. */
static pid_t start_process(int group_fd, struct child *c, bool *in_group)
{
    char *stack = (char *)c + sizeof(*c);
    stack += -(uintptr_t)stack & 15; /* as calls want it */
    pid_t pid = group_fd < 0 ? -1 : clone_into(group_fd, stack, c);
    *in_group = pid > 0;
    return pid > 0 ? pid
                   : clone(child_run, stack + STACK_BYTES, CLONE_VM | CLONE_VFORK | SIGCHLD, c);
}

int worker_start(const struct worker_plan *plan, struct worker *out, struct err *err)
{
    const size_t size = sizeof(struct child) + 16 + STACK_BYTES;
    *out = (struct worker){0};
    struct child *c =
        mmap(NULL, size, PROT_READ | PROT_WRITE, SHARING | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    if (c == MAP_FAILED) {
        return err_set_errno(err, errno, "map a stack");
    }
    *c = (struct child){.plan = plan, .shim = getpid(), .limit = mark_limit(plan->spec->attempt)};
    pid_t pid = start_process(plan->group_fd, c, &out->in_group);
    int rc = 0;
    if (pid < 0) {
        rc = err_set_errno(err, errno, "fork");
    } else if (c->why != 0 && !c->announced) {
        rc = err_set_errno(err, c->why, "write " LAYOUT_START);
    } else if (c->why != 0) {
        rc = err_set_errno(err, c->why, "execute %s", plan->spec->exec);
    }
    out->own = c->own;
    out->own.pid = pid > 0 ? pid : 0;
    out->announced = c->announced;
    (void)munmap(c, size);
    return rc;
}
