/* Prints the reference numbers of "dense" or "mixture", for test_reference.c (the double build) and
 * test_dispatch.c (the float build under another instruction set); of "dense-openblas" and
 * "mixture-openblas" with OpenBLAS's products. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/worker/model/reference.h"
#include "worker/nn/product/product.h"

int main(int argc, char **argv)
{
    unsigned long n = 0;
    const char *what = argc > 1 ? argv[1] : "dense";

    if (strstr(what, "-openblas") != NULL)
        product_choose(PRODUCTS_OPENBLAS, 1);
    double *x = reference_numbers(strncmp(what, "mixture", 7) == 0, &n);

    for (unsigned long i = 0; i < n; i++)
        (void)printf("%.17g\n", x[i]);
    free(x);
    return 0;
}
