/* Prints the reference numbers, for test_reference.c (the double build) and test_dispatch.c (the
 * float build under another instruction set). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/worker/model/reference.h"

int main(int argc, char **argv)
{
    unsigned long n = 0;
    double *x = reference_numbers(argc > 1 && strcmp(argv[1], "mixture") == 0, &n);

    for (unsigned long i = 0; i < n; i++)
        (void)printf("%.17g\n", x[i]);
    free(x);
    return 0;
}
