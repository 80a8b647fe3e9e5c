/*
 * For LD_PRELOAD: lets CPUID name avx512_bf16 on a processor that has it under a hypervisor that
 * hides it, so that a PyTorch chooses its kernels for bfloat16. From then on CPUID faults
 * (arch_prctl(2), ARCH_SET_CPUID, inherited by threads), and the handler answers it. Only a Python
 * is treated so, none of its children: compilers handle SIGSEGV themselves. Ends the program with
 * 77 where CPUID cannot be made to fault.
 */
#include <asm/prctl.h>
#include <cpuid.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

enum { FEATURES = 7, AVX512_BF16 = 1 << 5, CANNOT = 77 };

static long let_cpuid(long allowed)
{
    return syscall(SYS_arch_prctl, ARCH_SET_CPUID, allowed);
}

/* Answers CPUID, whose leaf and subleaf are in EAX and ECX; any other fault ends the program as it
 * would have. */
static void on_fault(int number, siginfo_t *info, void *context)
{
    greg_t *regs = ((ucontext_t *)context)->uc_mcontext.gregs;
    const unsigned char *code = (const unsigned char *)regs[REG_RIP];
    unsigned int leaf = (unsigned int)regs[REG_RAX], sub = (unsigned int)regs[REG_RCX];
    unsigned int a, b, c, d;

    if (info->si_code != SI_KERNEL || code[0] != 0x0f || code[1] != 0xa2) {
        (void)signal(number, SIG_DFL);
        return;
    }
    (void)let_cpuid(1);
    __cpuid_count(leaf, sub, a, b, c, d);
    (void)let_cpuid(0);
    if (leaf == FEATURES && sub == 0 && a == 0)
        a = 1; /* there is a subleaf 1 */
    if (leaf == FEATURES && sub == 1)
        a |= AVX512_BF16;
    regs[REG_RAX] = a;
    regs[REG_RBX] = b;
    regs[REG_RCX] = c;
    regs[REG_RDX] = d;
    regs[REG_RIP] += 2;
}

__attribute__((constructor)) static void begin(void)
{
    struct sigaction act = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_NODEFER};

    if (strncmp(program_invocation_short_name, "python", strlen("python")) != 0)
        return;
    (void)unsetenv("LD_PRELOAD");
    if (sigaction(SIGSEGV, &act, NULL) != 0 || let_cpuid(0) != 0) {
        perror("cpuid_bfloat16: CPUID cannot be answered here");
        _exit(CANNOT);
    }
}
