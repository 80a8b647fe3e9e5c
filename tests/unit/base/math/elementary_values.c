/* Values of base/math for test_second.py: lines "NAME X Y" in, hexadecimal results out. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/banned.h"
#include "base/math/elementary.h"
#include "base/xalloc.h"

static const struct {
    const char *name;
    double (*f)(double);
} functions[] = {
    {"exp", elementary_exp},     {"expm1", elementary_expm1}, {"log", elementary_log},
    {"log1p", elementary_log1p}, {"log2", elementary_log2},   {"log10", elementary_log10},
    {"sin", elementary_sin},     {"cos", elementary_cos},     {"atan", elementary_atan},
};

int main(void)
{
    char name[9], texts[2][32];

    while (scanf("%8s %31s %31s", name, texts[0], texts[1]) == 3) {
        double x = strtod(texts[0], NULL), y = strtod(texts[1], NULL);
        double result = elementary_pow(x, y);
        for (size_t i = 0; i < ARRAY_LEN(functions); i++)
            if (strcmp(name, functions[i].name) == 0)
                result = functions[i].f(x);
        printf("%a\n", result);
    }
    return 0;
}
