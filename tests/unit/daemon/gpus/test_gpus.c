/* prereg-gpus against a fake library of NVIDIA's driver, and its other sources against folders with
 * the files of the kernel's drivers. */
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/machine/proc.h"
#include "base/xalloc.h"
#include "daemon/gpus/gpus.h"
#include "daemon/shim/mark.h"
#include "tests/unit/check.h"
#include "tests/unit/scratch.h"

#define ATTEMPT "01234567-89ab-4def-8123-456789abcdef"
#define HELPER  TEST_BIN_DIR "/prereg-gpus"

/* Runs it with the fake library; returns its exit code. */
static int run(const char *limit, struct gpu_list *out, struct strbuf *notes)
{
    const char *argv[] = {HELPER, limit, NULL};
    struct proc_spec spec = {.argv = argv, .timeout_ms = 20000, .max_out_bytes = GPU_JSON_MAX};
    struct proc_result r;
    struct err err;
    *out = (struct gpu_list){0};
    strbuf_clear(notes);
    if (proc_run(&spec, &r, &err) != 0 ||
        (r.code == 0 && gpu_list_read(r.out.buf, r.out.len, out, &err) != 0)) {
        fail_msg("%s", err.msg);
    }
    strbuf_add(notes, r.err.buf, r.err.len);
    const int code = r.code;
    proc_result_release(&r);
    return code;
}

static void test_nvml(void **state)
{
    (void)state;
    struct gpu_list list;
    struct strbuf notes = STRBUF_INIT;
    assert_int_equal(run(NULL, &list, &notes), 0);
    assert_int_equal(list.n, 2);
    const struct gpu *g = &list.items[0];
    assert_string_equal(g->uuid, "GPU-00000000-1111-2222-3333-444455556666");
    assert_string_equal(g->model, "NVIDIA H100");
    assert_string_equal(g->driver, "550.54.15");
    assert_int_equal(g->memory_bytes, 1000000);
    assert_int_equal(g->free_bytes, 900000);
    assert_int_equal(g->ecc, 1);
    assert_true(g->processes_known);
    assert_int_equal(list.items[1].memory_bytes, 0); /* it does not say */
    assert_int_equal(list.items[1].ecc, -1);
    assert_int_equal(list.items[1].index, 1);
    gpu_list_release(&list);
    strbuf_release(&notes);
}

/* The mark of an attempt is found on a process, and on a child of it that has lost its own. */
static void test_processes(void **state)
{
    (void)state;
    struct gpu_list list;
    struct strbuf notes = STRBUF_INIT;
    char pid_text[24];
    pid_t pid = fork();
    if (pid == 0) {
        mark_set(mark_limit(ATTEMPT));
        for (;;) {
            (void)pause();
        }
    }
    clock_sleep_ms(100);
    (void)snprintf(pid_text, sizeof(pid_text), "%ld", (long)pid);
    (void)setenv("FAKE_NVML_PID", pid_text, 1);
    const int code = run(NULL, &list, &notes);
    (void)unsetenv("FAKE_NVML_PID");
    (void)kill(pid, SIGKILL);
    (void)waitpid(pid, NULL, 0);
    assert_int_equal(code, 0);
    assert_int_equal(list.items[0].n_processes, 1); /* what draws is not listed */
    const struct gpu_process *p = &list.items[0].processes[0];
    assert_int_equal(p->pid, pid);
    assert_int_equal(p->memory_bytes, -1);
    assert_true(p->mark == mark_limit(ATTEMPT));
    assert_string_equal(p->name, "test_daemon_gpu"); /* 15 characters, as the kernel has it */
    assert_int_not_equal(strlen(p->user), 0);
    gpu_list_release(&list);
    strbuf_release(&notes);
}

static void test_harm(void **state)
{
    (void)state;
    static const struct {
        const char *how;
        int code;
        size_t n;
        const char *says;
    } rows[] = {
        {"hang", 3, 0, "a GPU driver did not answer within 300 ms"},
        {"crash", 1, 0, "asking the GPU drivers ended by signal 6"},
        {"mismatch", 0, 0, "libnvidia-ml.so.1: Driver/library version mismatch"},
        {"lost", 0, 1, "GPU 0 is left out: GPU is lost"},
        {"mig", 0, 3, ""},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        CHECK_ROW("%s", rows[i].how);
        struct gpu_list list;
        struct strbuf notes = STRBUF_INIT;
        (void)setenv("FAKE_NVML", rows[i].how, 1);
        const int code = run("300", &list, &notes);
        (void)unsetenv("FAKE_NVML");
        assert_int_equal(code, rows[i].code);
        assert_int_equal(list.n, rows[i].n);
        if (strstr(notes.buf, rows[i].says) == NULL) {
            fail_msg("\"%s\" without \"%s\"", notes.buf, rows[i].says);
        }
        if (i == 4) { /* the parts of GPU 0 are in its place */
            assert_string_equal(list.items[1].uuid, "MIG-00000005-1111-2222-3333-444455556666");
            assert_string_equal(list.items[1].model, "NVIDIA H100 MIG 1g.10gb");
            assert_int_equal(list.items[2].index, 1);
        }
        gpu_list_release(&list);
        strbuf_release(&notes);
    }
}

/* More than any room that was guessed: none of them may be overlooked, or the GPU counts as free.
 */
static void test_many_processes(void **state)
{
    (void)state;
    struct gpu_list list;
    struct strbuf notes = STRBUF_INIT;
    (void)setenv("FAKE_NVML", "many", 1);
    assert_int_equal(run(NULL, &list, &notes), 0);
    (void)unsetenv("FAKE_NVML");
    assert_int_equal(list.items[0].n_processes, 300);
    assert_int_equal(list.items[0].processes[299].pid, 5000299);
    gpu_list_release(&list);
    strbuf_release(&notes);
}

/* A process is one although it has removed its name. */
static void test_a_process_without_a_name(void **state)
{
    (void)state;
    struct gpu_process p = {.pid = getpid()};
    char before[16] = "";
    assert_int_equal(prctl(PR_GET_NAME, before), 0);
    assert_int_equal(prctl(PR_SET_NAME, ""), 0);
    gpu_process_fill(&p);
    assert_int_equal(prctl(PR_SET_NAME, before), 0);
    assert_string_equal(p.name, "unnamed");
    p = (struct gpu_process){.pid = 4194303}; /* none has this number */
    gpu_process_fill(&p);
    assert_string_equal(p.name, "");
}

static void test_visible(void **state)
{
    (void)state;
    struct gpu_list list;
    struct strbuf notes = STRBUF_INIT;
    (void)setenv("CUDA_VISIBLE_DEVICES", "1,9", 1);
    assert_int_equal(run(NULL, &list, &notes), 0);
    (void)unsetenv("CUDA_VISIBLE_DEVICES");
    assert_int_equal(list.n, 1);
    assert_int_equal(list.items[0].index, 1);
    assert_string_equal(notes.buf, "not read of the visible devices: 9\n");
    gpu_list_release(&list);
    strbuf_release(&notes);
}

static void test_pretend(void **state)
{
    (void)state;
    struct gpu_list list;
    struct strbuf notes = STRBUF_INIT;
    char *path = scratch_write(scratch_folder, "gpus.json",
                               "[{\"uuid\":\"GPU-7\",\"model\":\"m\",\"processes\":"
                               "[{\"pid\":4194303,\"name\":\"python\",\"user\":\"x\"}]}]",
                               0600);
    (void)setenv(GPU_PRETEND, path, 1);
    assert_int_equal(run(NULL, &list, &notes), 0);
    assert_int_equal(list.n, 1);
    assert_string_equal(list.items[0].processes[0].name, "python");
    gpu_list_release(&list);
    scratch_put(scratch_folder, "gpus.json", "[{\"uuid\":\"GPU-7\"}]");
    assert_int_equal(run(NULL, &list, &notes), 1);
    assert_non_null(strstr(notes.buf, "PREREG_GPUS: "));
    assert_non_null(strstr(notes.buf, "GPU 1: "));
    /* a key that would be lost, of a GPU and of a process */
    strbuf_clear(&notes);
    scratch_put(scratch_folder, "gpus.json",
                "[{\"uuid\":\"GPU-7\",\"model\":\"m\",\"memory_byte\":1}]");
    assert_int_equal(run(NULL, &list, &notes), 1);
    assert_non_null(strstr(notes.buf, "GPU 1: \"memory_byte\": unknown key; did you mean "
                                      "\"memory_bytes\"?"));
    strbuf_clear(&notes);
    scratch_put(scratch_folder, "gpus.json",
                "[{\"uuid\":\"GPU-7\",\"model\":\"m\",\"processes\":[{\"pid\":1,\"xyz\":2}]}]");
    assert_int_equal(run(NULL, &list, &notes), 1);
    assert_non_null(strstr(notes.buf, "GPU 1: \"xyz\": unknown key"));
    (void)unsetenv(GPU_PRETEND);
    gpu_list_release(&list);
    strbuf_release(&notes);
    free(path);
}

static void test_nvidia_proc(void **state)
{
    (void)state;
    struct gpu_list list = {0};
    struct strbuf notes = STRBUF_INIT;
    nvidia_proc_list(scratch_folder, &list, &notes);
    assert_int_equal(list.n, 0);
    assert_string_equal(notes.buf, "");
    scratch_put(scratch_folder, "proc/driver/nvidia/version",
                "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.15  Tue Mar  5 2024\n");
    scratch_put(scratch_folder, "proc/driver/nvidia/gpus/0000:1b:00.0/information",
                "Model: \t\t NVIDIA A100-SXM4-40GB\nIRQ:   \t\t 1\n"
                "GPU UUID: \t GPU-abc-1\nBus Type: \t PCIe\n");
    scratch_put(scratch_folder, "proc/driver/nvidia/gpus/0000:0a:00.0/information",
                "Model: \t\t NVIDIA L4\nGPU UUID: \t GPU-abc-0\n");
    scratch_put(scratch_folder, "proc/driver/nvidia/gpus/0000:ff:00.0/information",
                "GPU UUID: \t GPU-????????\n");
    nvidia_proc_list(scratch_folder, &list, &notes);
    assert_int_equal(list.n, 2);
    assert_string_equal(list.items[0].uuid, "GPU-abc-0");
    assert_string_equal(list.items[0].driver, "550.54.15");
    assert_string_equal(list.items[1].model, "NVIDIA A100-SXM4-40GB");
    assert_int_equal(list.items[1].index, 1);
    assert_int_equal(list.items[1].memory_bytes, 0);
    assert_false(list.items[1].processes_known);
    assert_non_null(strstr(notes.buf, "0000:ff:00.0/information: no UUID"));
    assert_non_null(strstr(notes.buf, "memory and processes of its GPUs are not known"));
    gpu_list_release(&list);
    strbuf_release(&notes);
}

#define NODES "sys/class/kfd/kfd/topology/nodes/"

static void test_amd(void **state)
{
    (void)state;
    struct gpu_list list = {0};
    struct strbuf notes = STRBUF_INIT;
    scratch_put(scratch_folder, NODES "0/gpu_id", "0\n");
    scratch_put(scratch_folder, NODES "0/properties", "simd_count 0\n");
    scratch_put(scratch_folder, NODES "10/gpu_id", "77\n");
    scratch_put(scratch_folder, NODES "10/name", "navi31\n");
    scratch_put(scratch_folder, NODES "10/properties",
                "simd_count 96\ndrm_render_minor 129\nunique_id 0\n");
    scratch_put(scratch_folder, NODES "2/gpu_id", "55\n");
    scratch_put(scratch_folder, NODES "2/properties",
                "simd_count 304\ndrm_render_minor 128\nunique_id 255\n");
    scratch_put(scratch_folder, NODES "2/mem_banks/0/properties",
                "heap_type 1\nsize_in_bytes 1000\n");
    scratch_put(scratch_folder, "sys/class/drm/renderD128/device/product_name",
                "AMD Instinct MI300X\n");
    scratch_put(scratch_folder, "sys/class/drm/renderD128/device/mem_info_vram_used", "400\n");
    scratch_put(scratch_folder, "sys/module/amdgpu/version", "6.7.0\n");
    scratch_put(scratch_folder, "sys/class/kfd/kfd/proc/4194303/vram_55", "17\n");
    amd_list(scratch_folder, &list, &notes);
    assert_int_equal(list.n, 2);
    const struct gpu *g = &list.items[0];
    assert_string_equal(g->uuid, "GPU-00000000000000ff");
    assert_string_equal(g->model, "AMD Instinct MI300X");
    assert_string_equal(g->driver, "6.7.0");
    assert_int_equal(g->memory_bytes, 1000);
    assert_int_equal(g->free_bytes, 600);
    assert_int_equal(g->n_processes, 1);
    assert_int_equal(g->processes[0].pid, 4194303);
    assert_int_equal(g->processes[0].memory_bytes, 17);
    g = &list.items[1];
    assert_string_equal(g->uuid, "AMD-1"); /* without an identity: by its index */
    assert_string_equal(g->model, "AMD navi31");
    assert_int_equal(g->n_processes, 0);
    gpu_list_release(&list);
    strbuf_release(&notes);
}

static int set_up(void **state)
{
    (void)unsetenv(GPU_PRETEND);
    (void)unsetenv("CUDA_VISIBLE_DEVICES");
    (void)unsetenv("ROCR_VISIBLE_DEVICES");
    return setenv("LD_LIBRARY_PATH", TEST_LIBRARY_DIR, 1) == 0 ? scratch_enter(state) : -1;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nvml),
        cmocka_unit_test(test_processes),
        cmocka_unit_test(test_harm),
        cmocka_unit_test(test_many_processes),
        cmocka_unit_test(test_a_process_without_a_name),
        cmocka_unit_test(test_visible),
        cmocka_unit_test(test_pretend),
        cmocka_unit_test(test_nvidia_proc),
        cmocka_unit_test(test_amd),
    };
    return cmocka_run_group_tests(tests, set_up, scratch_leave);
}
