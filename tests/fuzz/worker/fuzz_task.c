/* task.json and the parameters in it: read, described, never run. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "worker/train/options.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Without the syncs of file_write_atomic(), which would take all the time. */
static void put_file(const char *path, const uint8_t *data, size_t size)
{
    FILE *f = fopen(path, "wb");

    if (f == NULL || fwrite(data, 1, size, f) != size || fclose(f) != 0)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char path[64];
    struct worker_task task;
    struct err err = {0};

    (void)snprintf(path, sizeof(path), "/dev/shm/fuzz-task-%d.json", (int)getpid());
    put_file(path, data, size);
    if (task_read(path, &task, &err) == 0) {
        struct param_faults faults = {0};
        struct train_options opt;
        train_options_read(&task, &opt, &faults);
        if (faults.n == 0 && (opt.steps < 1 || opt.model.width % opt.model.heads != 0))
            abort();
        param_faults_release(&faults);
    }
    task_release(&task);
    (void)unlink(path);
    return 0;
}
