/* Arbitrary bytes as a safetensors file: what opens covers its data exactly and can be read. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "worker/model/formats/safetensors.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_all(const struct safetensors *st, int64_t data_bytes)
{
    int64_t sum = 0;

    for (size_t i = 0; i < st->n; i++) {
        const struct safetensors_entry *e = &st->entries[i];
        struct err err = {0};
        float *out = malloc(((size_t)e->n + 1) * sizeof(*out));
        if (out == NULL || safetensors_find(st, e->name) != e)
            abort();
        int rc = safetensors_read(st, e, out, &err);
        if (rc != 0 && rc != ERR_REFUSED)
            abort();
        sum += e->end - e->begin;
        free(out);
    }
    if (sum != data_bytes)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char path[64];
    struct safetensors st;
    struct err err = {0};

    (void)snprintf(path, sizeof(path), "/dev/shm/fuzz-safetensors-%d", (int)getpid());
    FILE *f = fopen(path, "wb");
    if (f == NULL || fwrite(data, 1, size, f) != size || fclose(f) != 0)
        abort();
    if (safetensors_open(path, &st, &err) == 0) {
        read_all(&st, (int64_t)size - st.data_at);
        safetensors_close(&st);
    }
    (void)unlink(path);
    return 0;
}
