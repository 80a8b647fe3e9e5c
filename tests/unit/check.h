/* cmocka, with the headers that it needs before it. */
#ifndef TESTS_UNIT_CHECK_H
#define TESTS_UNIT_CHECK_H

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
// clang-format on

#endif
