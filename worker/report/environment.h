/* What an attempt computes with, as its events and its result state it: what decides its bytes, and
 * what is known not to (docs/arithmetic.md). */
#ifndef WORKER_REPORT_ENVIRONMENT_H
#define WORKER_REPORT_ENVIRONMENT_H

struct worker_environment {
    int threads;
    const char *blas;         /* who multiplies matrices: its build and core name */
    int arithmetic;           /* version of the contract in docs/arithmetic.md; 0: not under it */
    const char *instructions; /* the instruction set of the kernels: "avx512" */
};

#endif
