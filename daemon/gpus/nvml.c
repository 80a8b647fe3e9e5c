/*
 * NVIDIA's management library, opened at run time: no header of it is needed to build. The
 * declarations below are those of nvml.h as documented in NVIDIA's "NVML API Reference Guide"
 * (https://docs.nvidia.com/deploy/nvml-api/), whose versioned functions never change their form:
 * nvmlProcessInfo_v1_t has two members, nvmlProcessInfo_v2_t (of the functions _v2 and _v3) four.
 */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"
#include "daemon/gpus/gpus.h"

#define LIBRARY             "libnvidia-ml.so.1"
#define NVML_SUCCESS        0
#define NVML_TOO_SMALL      7          /* NVML_ERROR_INSUFFICIENT_SIZE */
#define NVML_NOT_LOADED     9          /* NVML_ERROR_DRIVER_NOT_LOADED */
#define NVML_UNKNOWN_MEMORY UINT64_MAX /* NVML_VALUE_NOT_AVAILABLE */
#define NVML_ON             1u         /* NVML_FEATURE_ENABLED, NVML_DEVICE_MIG_ENABLE */
#define PROCESSES_AT_ONCE   64u
#define PROCESSES_MOST      65536u
#define PROCESS_TRIES       8 /* others start meanwhile */

struct nvml_device; /* nvmlDevice_t is a pointer to one */

struct nvml_memory { /* nvmlMemory_t */
    unsigned long long total;
    unsigned long long free;
    unsigned long long used;
};

struct nvml_process_v1 {
    unsigned pid;
    unsigned long long memory;
};

struct nvml_process_v2 {
    unsigned pid;
    unsigned long long memory;
    unsigned gpu_instance;
    unsigned compute_instance;
};

typedef int text_fn(struct nvml_device *, char *, unsigned);
typedef int modes_fn(struct nvml_device *, unsigned *now, unsigned *pending);
typedef int processes_fn(struct nvml_device *, unsigned *n, void *list);

struct nvml {
    void *library;
    int (*init)(void);
    int (*shutdown)(void);
    int (*driver)(char *, unsigned);
    int (*count)(unsigned *);
    int (*device)(unsigned, struct nvml_device **);
    text_fn *uuid;
    text_fn *name;
    int (*memory)(struct nvml_device *, struct nvml_memory *);
    modes_fn *ecc;
    modes_fn *mig_mode;
    int (*mig_count)(struct nvml_device *, unsigned *);
    int (*mig_device)(struct nvml_device *, unsigned, struct nvml_device **);
    processes_fn *computing;
    bool long_processes; /* struct nvml_process_v2 */
    const char *(*error)(int);
};

/* Stores the address of the first of two names that the library has. */
static bool find(const struct nvml *n, const char *name, const char *older, void *slot)
{
    void *address = dlsym(n->library, name);
    address = address == NULL && older != NULL ? dlsym(n->library, older) : address;
    memcpy(slot, &address, sizeof(address)); /* ISO C has no cast to a function */
    return address != NULL;
}

/* Processes that compute, by the newest function; the oldest one has shorter entries. Those that
 * draw a desktop are not asked for: they keep a GPU from no one. */
static void find_processes(struct nvml *n)
{
    n->long_processes = find(n, "nvmlDeviceGetComputeRunningProcesses_v3",
                             "nvmlDeviceGetComputeRunningProcesses_v2", &n->computing);
    if (!n->long_processes) {
        (void)find(n, "nvmlDeviceGetComputeRunningProcesses", NULL, &n->computing);
    }
}

static bool load(struct nvml *n)
{
    *n = (struct nvml){.library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL)};
    if (n->library == NULL) {
        return false;
    }
    find_processes(n);
    (void)find(n, "nvmlErrorString", NULL, &n->error);
    (void)find(n, "nvmlSystemGetDriverVersion", NULL, &n->driver);
    (void)find(n, "nvmlDeviceGetEccMode", NULL, &n->ecc);
    (void)find(n, "nvmlDeviceGetMigMode", NULL, &n->mig_mode);
    (void)find(n, "nvmlDeviceGetMaxMigDeviceCount", NULL, &n->mig_count);
    (void)find(n, "nvmlDeviceGetMigDeviceHandleByIndex", NULL, &n->mig_device);
    (void)find(n, "nvmlShutdown", NULL, &n->shutdown);
    return find(n, "nvmlInit_v2", "nvmlInit", &n->init) &&
           find(n, "nvmlDeviceGetCount_v2", "nvmlDeviceGetCount", &n->count) &&
           find(n, "nvmlDeviceGetHandleByIndex_v2", "nvmlDeviceGetHandleByIndex", &n->device) &&
           find(n, "nvmlDeviceGetUUID", NULL, &n->uuid) &&
           find(n, "nvmlDeviceGetName", NULL, &n->name) &&
           find(n, "nvmlDeviceGetMemoryInfo", NULL, &n->memory);
}

static const char *words_of(const struct nvml *n, int rc)
{
    const char *words = n->error == NULL ? NULL : n->error(rc);
    return words == NULL ? "unknown error" : words;
}

static int64_t clamp_memory(unsigned long long bytes)
{
    return bytes > (unsigned long long)GPU_MEMORY_MAX ? GPU_MEMORY_MAX : (int64_t)bytes;
}

static void take_process(struct gpu *g, unsigned pid, unsigned long long memory)
{
    struct gpu_process *p = pid == 0 ? NULL : gpu_add_process(g, (int64_t)pid);
    if (p != NULL) {
        p->memory_bytes = memory == NVML_UNKNOWN_MEMORY ? -1 : clamp_memory(memory);
        gpu_process_fill(p);
    }
}

/* Asks for the processes into *list, whose entries have `size` bytes: again with more room where
 * there are more than it holds, since a list that is cut would make a GPU in use look free. False:
 * not known. */
static bool ask_processes(const struct nvml *n, struct nvml_device *d, size_t size, void **list,
                          unsigned *count)
{
    unsigned room = PROCESSES_AT_ONCE;
    unsigned held = room; /* by *list: a library that names more than it was given room for is
                             not believed */
    int rc = NVML_TOO_SMALL;
    for (int i = 0; i < PROCESS_TRIES && rc == NVML_TOO_SMALL; i++) {
        *list = xreallocarray(*list, room, size);
        *count = held = room;
        rc = n->computing(d, count, *list);
        room = *count > room ? (*count < PROCESSES_MOST ? *count : PROCESSES_MOST) : 2 * room;
    }
    return rc == NVML_SUCCESS && *count <= held;
}

static void add_processes(const struct nvml *n, struct nvml_device *d, struct gpu *g)
{
    const size_t size =
        n->long_processes ? sizeof(struct nvml_process_v2) : sizeof(struct nvml_process_v1);
    void *list = NULL;
    unsigned count = 0;
    if (n->computing != NULL && ask_processes(n, d, size, &list, &count)) {
        g->processes_known = true;
        for (unsigned i = 0; i < count; i++) {
            if (n->long_processes) {
                const struct nvml_process_v2 *p = (const struct nvml_process_v2 *)list + i;
                take_process(g, p->pid, p->memory);
            } else {
                const struct nvml_process_v1 *p = (const struct nvml_process_v1 *)list + i;
                take_process(g, p->pid, p->memory);
            }
        }
    }
    free(list);
}

struct survey { /* what is being listed, and from where */
    const struct nvml *nvml;
    char driver[GPU_DRIVER_SIZE];
    struct gpu_list *out;
    struct strbuf *notes;
};

static void fill(const struct survey *s, struct nvml_device *d, struct gpu *g)
{
    const struct nvml *n = s->nvml;
    struct nvml_memory m = {0};
    unsigned now = 0;
    unsigned pending = 0;
    (void)snprintf(g->driver, sizeof(g->driver), "%s", s->driver);
    if (n->name(d, g->model, sizeof(g->model)) != NVML_SUCCESS || g->model[0] == '\0') {
        (void)snprintf(g->model, sizeof(g->model), "NVIDIA GPU");
    }
    g->model[sizeof(g->model) - 1] = '\0';
    if (n->memory(d, &m) == NVML_SUCCESS) {
        g->memory_bytes = clamp_memory(m.total);
        g->free_bytes = clamp_memory(m.free);
    }
    if (n->ecc != NULL && n->ecc(d, &now, &pending) == NVML_SUCCESS) {
        g->ecc = now == NVML_ON;
    }
    add_processes(n, d, g);
}

/* One GPU, or one part of a GPU in MIG mode. */
static void take(const struct survey *s, struct nvml_device *d, unsigned index)
{
    char uuid[GPU_MODEL_SIZE] = "";
    struct gpu *g = NULL;
    struct err err;
    int rc = s->nvml->uuid(d, uuid, sizeof(uuid));
    uuid[sizeof(uuid) - 1] = '\0';
    if (rc != NVML_SUCCESS || !gpu_uuid_is_valid(uuid)) {
        strbuf_addf(s->notes, "GPU %u is left out: its UUID cannot be read (%s)\n", index,
                    rc != NVML_SUCCESS ? words_of(s->nvml, rc) : uuid);
    } else if (gpu_list_find(s->out, uuid) != NULL) {
        strbuf_addf(s->notes, "GPU %u is left out: another has its UUID %s\n", index, uuid);
    } else if (gpu_list_add(s->out, &g, &err) != 0) {
        strbuf_addf(s->notes, "GPU %u is left out: %s\n", index, err.msg);
    } else {
        (void)snprintf(g->uuid, sizeof(g->uuid), "%.*s", GPU_UUID_SIZE - 1, uuid);
        g->index = (int64_t)index;
        fill(s, d, g);
    }
}

static void take_parts(const struct survey *s, struct nvml_device *d, unsigned index)
{
    const struct nvml *n = s->nvml;
    unsigned count = 0;
    if (n->mig_count == NULL || n->mig_device == NULL || n->mig_count(d, &count) != NVML_SUCCESS) {
        return;
    }
    for (unsigned i = 0; i < count && i < GPU_LIST_MAX; i++) {
        struct nvml_device *part = NULL;
        if (n->mig_device(d, i, &part) == NVML_SUCCESS) {
            take(s, part, index);
        }
    }
}

static bool is_divided(const struct nvml *n, struct nvml_device *d)
{
    unsigned now = 0;
    unsigned pending = 0;
    return n->mig_mode != NULL && n->mig_mode(d, &now, &pending) == NVML_SUCCESS && now == NVML_ON;
}

static void take_all(struct survey *s)
{
    const struct nvml *n = s->nvml;
    unsigned count = 0;
    int rc = n->count(&count);
    if (rc != NVML_SUCCESS) {
        strbuf_addf(s->notes, "NVIDIA's driver does not count its GPUs: %s\n", words_of(n, rc));
        return;
    }
    if (n->driver == NULL || n->driver(s->driver, sizeof(s->driver)) != NVML_SUCCESS) {
        s->driver[0] = '\0';
    }
    s->driver[sizeof(s->driver) - 1] = '\0';
    for (unsigned i = 0; i < count && i < GPU_LIST_MAX; i++) {
        struct nvml_device *d = NULL;
        rc = n->device(i, &d);
        if (rc != NVML_SUCCESS) {
            strbuf_addf(s->notes, "GPU %u is left out: %s\n", i, words_of(n, rc));
        } else if (is_divided(n, d)) {
            take_parts(s, d, i);
        } else {
            take(s, d, i);
        }
    }
}

/* The library stays loaded: this process ends soon. */
bool nvml_list(struct gpu_list *out, struct strbuf *notes)
{
    struct nvml n;
    if (!load(&n)) {
        if (n.library != NULL) {
            strbuf_adds(notes, LIBRARY " is too old: it lacks functions that are needed\n");
        }
        return false;
    }
    int rc = n.init();
    if (rc != NVML_SUCCESS) {
        if (rc != NVML_NOT_LOADED) {
            strbuf_addf(notes, LIBRARY ": %s\n", words_of(&n, rc));
        }
        return false;
    }
    struct survey s = {.nvml = &n, .out = out, .notes = notes};
    take_all(&s);
    if (n.shutdown != NULL) {
        (void)n.shutdown();
    }
    return true;
}
