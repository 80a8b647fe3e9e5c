/* GPUs as NVIDIA's kernel module lists them below /proc/driver/nvidia/gpus, a folder for each, by
 * bus address: where its library cannot be used. The order of the addresses is PCI_BUS_ID's. */
#include <stdlib.h>
#include <string.h>

#include "base/files/file.h"
#include "base/text.h"
#include "daemon/gpus/gpus.h"

#define INFORMATION_MAX ((size_t)64 * 1024)

/* The value behind "KEY:" at the start of a line, without blanks around it; false: there is none.
 */
static bool value_of(const char *text, const char *key, char *out, size_t size)
{
    const size_t n = strlen(key);
    for (const char *line = text; line != NULL && *line != '\0';) {
        const char *end = strchr(line, '\n');
        size_t len = end == NULL ? strlen(line) : (size_t)(end - line);
        if (len > n && strncmp(line, key, n) == 0 && line[n] == ':') {
            const char *from = line + n + 1;
            len -= n + 1;
            for (; len > 0 && (*from == ' ' || *from == '\t'); from++) {
                len--;
            }
            while (len > 0 && (from[len - 1] == ' ' || from[len - 1] == '\t')) {
                len--;
            }
            (void)snprintf(out, size, "%.*s", (int)(len < size ? len : size - 1), from);
            text_make_line(out);
            return len > 0;
        }
        line = end == NULL ? NULL : end + 1;
    }
    return false;
}

/* "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.15  Tue ...": the number. */
static void driver_version(const char *root, char *out, size_t size)
{
    struct strbuf text = STRBUF_INIT;
    struct err ignored;
    char line[256];
    char *path = path_join(root, "proc/driver/nvidia/version");
    out[0] = '\0';
    if (file_read(path, INFORMATION_MAX, &text, &ignored) == 0 &&
        value_of(text.buf, "NVRM version", line, sizeof(line))) {
        const char *at = line;
        while (*at != '\0' && strspn(at, "0123456789.") < 3) {
            at += strcspn(at, " ");
            at += strspn(at, " ");
        }
        (void)snprintf(out, size, "%.*s", (int)strspn(at, "0123456789."), at);
    }
    free(path);
    strbuf_release(&text);
}

static void take(const char *folder, const char *driver, struct gpu_list *out, struct strbuf *notes)
{
    struct strbuf text = STRBUF_INIT;
    struct err err;
    char uuid[GPU_MODEL_SIZE] = "";
    struct gpu *g = NULL;
    char *path = path_join(folder, "information");
    if (file_read(path, INFORMATION_MAX, &text, &err) != 0 ||
        !value_of(text.buf, "GPU UUID", uuid, sizeof(uuid)) || !gpu_uuid_is_valid(uuid) ||
        gpu_list_find(out, uuid) != NULL) {
        strbuf_addf(notes, "%s: no UUID that can be used\n", path);
    } else if (gpu_list_add(out, &g, &err) == 0) {
        (void)snprintf(g->uuid, sizeof(g->uuid), "%.*s", GPU_UUID_SIZE - 1, uuid);
        (void)snprintf(g->driver, sizeof(g->driver), "%s", driver);
        if (!value_of(text.buf, "Model", g->model, sizeof(g->model))) {
            (void)snprintf(g->model, sizeof(g->model), "NVIDIA GPU");
        }
    }
    free(path);
    strbuf_release(&text);
}

void nvidia_proc_list(const char *root, struct gpu_list *out, struct strbuf *notes)
{
    struct name_list names = {0};
    struct err ignored;
    char driver[GPU_DRIVER_SIZE];
    char *folder = path_join(root, "proc/driver/nvidia/gpus");
    const size_t before = out->n;
    if (file_kind_at(folder) == FILE_FOLDER && dir_list(folder, &names, &ignored) == 0) {
        driver_version(root, driver, sizeof(driver));
        for (size_t i = 0; i < names.n; i++) {
            char *gpu = path_join(folder, names.names[i]);
            take(gpu, driver, out, notes);
            free(gpu);
        }
    }
    for (size_t i = before; i < out->n; i++) {
        out->items[i].index = (int64_t)(i - before);
    }
    if (out->n > before) {
        strbuf_adds(notes, "the library of NVIDIA's driver (libnvidia-ml.so.1) cannot be used: "
                           "memory and processes of its GPUs are not known\n");
    }
    name_list_release(&names);
    free(folder);
}
