/* Reads $PREREGD_SPARSE. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/text.h"
#include "tests/unit/sparse.h"

size_t sparse_part(void)
{
    const char *text = getenv("PREREGD_SPARSE");
    int64_t part = 1;
    struct err err = {0};

    if (text != NULL && text_to_int(text, 1, 100, &part, &err) != 0) {
        (void)fprintf(stderr, "PREREGD_SPARSE: %s\n", err.msg);
        exit(2);
    }
    return (size_t)part;
}
