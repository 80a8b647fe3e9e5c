/* AMD GPUs by the files of the kernel driver amdgpu: a node of /sys/class/kfd for each, whose
 * properties have its identity, and the folder of its render device for what else is known. */
#include <stdlib.h>
#include <string.h>

#include "base/files/file.h"
#include "base/text.h"
#include "base/xalloc.h"
#include "daemon/gpus/gpus.h"

#define NODES     "sys/class/kfd/kfd/topology/nodes"
#define PROCESSES "sys/class/kfd/kfd/proc"
#define SMALL_MAX ((size_t)64 * 1024)

struct amd_node {
    const char *root;
    int64_t number;
    int64_t gpu_id; /* names it below PROCESSES */
    int64_t minor;  /* of /sys/class/drm/renderD<minor> */
    uint64_t unique_id;
};

/* A whole small file without the line's end; false: there is none. */
static bool read_small(const char *path, struct strbuf *out)
{
    struct err ignored;
    strbuf_clear(out);
    if (file_read(path, SMALL_MAX, out, &ignored) != 0) {
        return false;
    }
    while (out->len > 0 && (out->buf[out->len - 1] == '\n' || out->buf[out->len - 1] == ' ')) {
        out->buf[--out->len] = '\0';
    }
    return true;
}

static int64_t read_count(const char *path)
{
    struct strbuf text = STRBUF_INIT;
    struct err ignored;
    int64_t v = -1;
    if (!read_small(path, &text) || text_to_int(text.buf, 0, INT64_MAX, &v, &ignored) != 0) {
        v = -1;
    }
    strbuf_release(&text);
    return v;
}

/* "KEY VALUE" lines; false: the key is not there. */
static bool property(const char *text, const char *key, uint64_t *out)
{
    const size_t n = strlen(key);
    for (const char *line = text; line != NULL && *line != '\0';) {
        if (strncmp(line, key, n) == 0 && line[n] == ' ') {
            *out = strtoull(line + n + 1, NULL, 10);
            return true;
        }
        line = strchr(line, '\n');
        line = line == NULL ? NULL : line + 1;
    }
    return false;
}

/* Video memory, of all banks. */
static int64_t memory_of(const char *folder)
{
    struct name_list banks = {0};
    struct err ignored;
    uint64_t total = 0;
    char *list = path_join(folder, "mem_banks");
    if (dir_list(list, &banks, &ignored) == 0) {
        for (size_t i = 0; i < banks.n; i++) {
            struct strbuf text = STRBUF_INIT;
            uint64_t bytes = 0;
            char *path = xasprintf("%s/%s/properties", list, banks.names[i]);
            if (read_small(path, &text) && property(text.buf, "size_in_bytes", &bytes) &&
                bytes <= (uint64_t)GPU_MEMORY_MAX) {
                total += bytes;
            }
            free(path);
            strbuf_release(&text);
        }
    }
    name_list_release(&banks);
    free(list);
    return total <= (uint64_t)GPU_MEMORY_MAX ? (int64_t)total : GPU_MEMORY_MAX;
}

/* The file of its render device. */
static char *device_file(const struct amd_node *node, const char *name)
{
    return xasprintf("%s/sys/class/drm/renderD%lld/device/%s", node->root, (long long)node->minor,
                     name);
}

static void fill_model(const struct amd_node *node, const char *folder, struct gpu *g)
{
    struct strbuf text = STRBUF_INIT;
    char *product = device_file(node, "product_name");
    char *name = path_join(folder, "name");
    if (read_small(product, &text) && text.len > 0) {
        text_copy_line(g->model, sizeof(g->model), text.buf);
    } else if (read_small(name, &text) && text.len > 0) {
        (void)snprintf(g->model, sizeof(g->model), "AMD %.80s", text.buf);
        text_make_line(g->model);
    } else {
        (void)snprintf(g->model, sizeof(g->model), "AMD GPU");
    }
    free(name);
    free(product);
    strbuf_release(&text);
}

/* A folder for each process that computes, with a file for each GPU of it. */
static void fill_processes(const struct amd_node *node, struct gpu *g)
{
    struct name_list pids = {0};
    struct err ignored;
    char *folder = path_join(node->root, PROCESSES);
    g->processes_known = dir_list(folder, &pids, &ignored) == 0;
    for (size_t i = 0; i < pids.n; i++) {
        int64_t pid = 0;
        char *path = xasprintf("%s/%s/vram_%lld", folder, pids.names[i], (long long)node->gpu_id);
        const int64_t bytes = read_count(path);
        if (bytes >= 0 && text_to_int(pids.names[i], 1, INT32_MAX, &pid, &ignored) == 0) {
            struct gpu_process *p = gpu_add_process(g, pid);
            if (p != NULL) {
                p->memory_bytes = bytes < GPU_MEMORY_MAX ? bytes : GPU_MEMORY_MAX;
                gpu_process_fill(p);
            }
        }
        free(path);
    }
    name_list_release(&pids);
    free(folder);
}

static void fill(const struct amd_node *node, const char *folder, struct gpu *g)
{
    struct strbuf text = STRBUF_INIT;
    char *version = path_join(node->root, "sys/module/amdgpu/version");
    char *used = device_file(node, "mem_info_vram_used");
    g->vendor = GPU_AMD;
    if (node->unique_id != 0) {
        (void)snprintf(g->uuid, sizeof(g->uuid), "GPU-%016llx",
                       (unsigned long long)node->unique_id);
    } else {
        (void)snprintf(g->uuid, sizeof(g->uuid), GPU_INDEX_PREFIX "%lld", (long long)g->index);
    }
    fill_model(node, folder, g);
    if (read_small(version, &text)) {
        text_copy_line(g->driver, sizeof(g->driver), text.buf);
    }
    g->memory_bytes = memory_of(folder);
    const int64_t in_use = read_count(used);
    g->free_bytes = in_use < 0 || in_use > g->memory_bytes ? -1 : g->memory_bytes - in_use;
    fill_processes(node, g);
    free(used);
    free(version);
    strbuf_release(&text);
}

/* A node with computing units of a GPU; processors are nodes, too. */
static bool read_node(const char *folder, struct amd_node *out)
{
    struct strbuf text = STRBUF_INIT;
    uint64_t units = 0;
    uint64_t minor = 0;
    char *id = path_join(folder, "gpu_id");
    char *properties = path_join(folder, "properties");
    out->gpu_id = read_count(id);
    bool is_gpu = out->gpu_id > 0 && read_small(properties, &text) &&
                  property(text.buf, "simd_count", &units) && units > 0 &&
                  property(text.buf, "drm_render_minor", &minor);
    (void)property(text.buf, "unique_id", &out->unique_id);
    out->minor = minor <= INT32_MAX ? (int64_t)minor : 0;
    free(properties);
    free(id);
    strbuf_release(&text);
    return is_gpu;
}

static int by_number(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a;
    const int64_t y = *(const int64_t *)b;
    return x < y ? -1 : x > y;
}

/* In the order of the nodes' numbers, which is the order of ROCR_VISIBLE_DEVICES. */
void amd_list(const char *root, struct gpu_list *out, struct strbuf *notes)
{
    struct name_list names = {0};
    struct err err;
    char *nodes = path_join(root, NODES);
    if (file_kind_at(nodes) != FILE_FOLDER || dir_list(nodes, &names, &err) != 0) {
        name_list_release(&names);
        free(nodes);
        return;
    }
    int64_t *numbers = xcalloc(names.n + 1, sizeof(*numbers));
    size_t n = 0;
    for (size_t i = 0; i < names.n; i++) {
        n += text_to_int(names.names[i], 0, INT32_MAX, &numbers[n], &err) == 0;
    }
    qsort(numbers, n, sizeof(*numbers), by_number);
    int64_t index = 0;
    for (size_t i = 0; i < n; i++) {
        struct amd_node node = {.root = root, .number = numbers[i]};
        struct gpu *g = NULL;
        char *folder = xasprintf("%s/%lld", nodes, (long long)numbers[i]);
        if (read_node(folder, &node) && gpu_list_add(out, &g, &err) == 0) {
            g->index = index++;
            fill(&node, folder, g);
            if (gpu_list_find(out, g->uuid) != g) {
                strbuf_addf(notes, "AMD GPU %lld is left out: another has its UUID %s\n",
                            (long long)g->index, g->uuid);
                free(g->processes);
                out->n--;
            }
        }
        free(folder);
    }
    free(numbers);
    free(nodes);
    name_list_release(&names);
}
