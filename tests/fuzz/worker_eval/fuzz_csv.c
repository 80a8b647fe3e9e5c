/* CSV records: fields are terminated strings, lines count up, and the end comes. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "worker/eval/items/csv.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct err err = {0};
    struct arena arena;
    struct csv_reader reader;
    struct csv_record record;
    bool got = true;
    unsigned line = 0;
    size_t total = 0;
    arena_init(&arena);
    int rc = csv_start(&reader, (const char *)data, size, &err);
    while (rc == 0 && got) {
        rc = csv_next(&reader, &arena, &record, &got, &err);
        if (rc != 0 || !got)
            break;
        if (reader.line <= line || record.n == 0)
            abort();
        line = reader.line;
        for (size_t i = 0; i < record.n; i++)
            total += strlen(record.fields[i]);
    }
    if (total > size)
        abort();
    arena_release(&arena);
    return 0;
}
