/*
 * Fused multiply-add without the instruction: a b + c with one rounding, to nearest, exact in every
 * case. Under flush-to-zero and denormals-are-zero it does as the instruction does.
 *
 * NN_FMA() (worker/nn/real.h) compiles to the instruction where a kernel's target has it and to
 * calls of fmaf() and fma() elsewhere. On x86 worker/nn/fused.c defines these two, so that libm's
 * are not used.
 */
#ifndef WORKER_NN_FUSED_H
#define WORKER_NN_FUSED_H

float fused_float(float a, float b, float c);
double fused_double(double a, double b, double c);

#endif
