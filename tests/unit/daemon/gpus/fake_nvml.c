/* A libnvidia-ml.so.1 for tests: the functions that prereg-gpus asks, with the answers that
 * FAKE_NVML names: "" two GPUs, "hang", "crash", "mismatch", "lost" (GPU 0 does not answer), "mig",
 * "many" (GPU 0 has 300 processes).
 * FAKE_NVML_PID is a process that uses GPU 0. */
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#pragma GCC diagnostic ignored "-Wmissing-prototypes"

struct process {
    unsigned pid;
    unsigned long long memory;
    unsigned gpu_instance;
    unsigned compute_instance;
};

struct memory {
    unsigned long long total;
    unsigned long long free;
    unsigned long long used;
};

#define MANY 300

static char devices[8]; /* 0, 1: GPUs; 4, 5: parts of GPU 0 */

static bool is(const char *what)
{
    const char *set = getenv("FAKE_NVML");
    return set != NULL && strcmp(set, what) == 0;
}

static int number(const void *device)
{
    return (int)((const char *)device - devices);
}

int nvmlInit_v2(void)
{
    if (is("hang")) {
        for (;;) {
            (void)pause();
        }
    }
    if (is("crash")) {
        abort();
    }
    return is("mismatch") ? 18 : 0;
}

int nvmlShutdown(void)
{
    return 0;
}

const char *nvmlErrorString(int rc)
{
    return rc == 18 ? "Driver/library version mismatch" : "GPU is lost";
}

int nvmlSystemGetDriverVersion(char *out, unsigned size)
{
    (void)snprintf(out, size, "550.54.15");
    return 0;
}

int nvmlDeviceGetCount_v2(unsigned *n)
{
    *n = 2;
    return 0;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned i, void **out)
{
    *out = &devices[i];
    return is("lost") && i == 0 ? 15 : 0;
}

int nvmlDeviceGetUUID(void *device, char *out, unsigned size)
{
    const int n = number(device);
    (void)snprintf(out, size, "%s-0000000%d-1111-2222-3333-444455556666", n >= 4 ? "MIG" : "GPU",
                   n);
    return 0;
}

int nvmlDeviceGetName(void *device, char *out, unsigned size)
{
    (void)snprintf(out, size, "NVIDIA H100%s", number(device) >= 4 ? " MIG 1g.10gb" : "");
    return 0;
}

int nvmlDeviceGetMemoryInfo(void *device, struct memory *out)
{
    *out = (struct memory){.total = 1000000, .free = 900000, .used = 100000};
    return number(device) == 1 ? 3 : 0;
}

int nvmlDeviceGetEccMode(void *device, unsigned *now, unsigned *pending)
{
    *now = *pending = 1;
    return number(device) == 1 ? 3 : 0;
}

int nvmlDeviceGetMigMode(void *device, unsigned *now, unsigned *pending)
{
    *now = *pending = is("mig") && number(device) == 0;
    return 0;
}

int nvmlDeviceGetMaxMigDeviceCount(void *device, unsigned *n)
{
    (void)device;
    *n = 3;
    return 0;
}

int nvmlDeviceGetMigDeviceHandleByIndex(void *device, unsigned i, void **out)
{
    (void)device;
    *out = &devices[4 + i];
    return i == 2 ? 6 : 0; /* the third is not there */
}

static int add(void *device, unsigned *n, struct process *list)
{
    const char *pid = getenv("FAKE_NVML_PID");
    if (is("many") && number(device) == 0) {
        const unsigned room = *n;
        *n = MANY;
        for (unsigned i = 0; i < MANY && room >= MANY; i++) {
            list[i] = (struct process){.pid = 5000000 + i, .memory = 1};
        }
        return room >= MANY ? 0 : 7; /* NVML_ERROR_INSUFFICIENT_SIZE */
    }
    *n = pid != NULL && number(device) == 0;
    if (*n > 0) {
        list[0] = (struct process){.pid = (unsigned)strtoul(pid, NULL, 10), .memory = ~0ULL};
    }
    return 0;
}

int nvmlDeviceGetComputeRunningProcesses_v3(void *device, unsigned *n, struct process *list)
{
    return add(device, n, list);
}

/* A desktop. */
int nvmlDeviceGetGraphicsRunningProcesses_v3(void *device, unsigned *n, struct process *list)
{
    (void)device;
    *n = 1;
    list[0] = (struct process){.pid = 1, .memory = 1};
    return 0;
}
