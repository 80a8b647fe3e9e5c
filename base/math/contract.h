/*
 * The version of docs/arithmetic.md that this build computes by: it grows when the bytes of a
 * trained model or a score may change.
 */
#ifndef BASE_MATH_CONTRACT_H
#define BASE_MATH_CONTRACT_H

#define CONTRACT_VERSION      2
#define CONTRACT_QUOTE(n)     #n
#define CONTRACT_TEXT(n)      CONTRACT_QUOTE(n)
#define CONTRACT_VERSION_TEXT CONTRACT_TEXT(CONTRACT_VERSION)

#endif
