/*
 * The GPUs of a machine as plain data, and their form in JSON: what prereg-gpus prints
 * (docs/gpus.md) and what a file of simulated GPUs (PREREG_GPUS) has. No driver is asked here.
 *
 * Invariants of a list: UUIDs are valid, and no two GPUs have the same; every number is in its
 * range; texts are one plain line each.
 */
#ifndef BASE_MACHINE_GPU_LIST_H
#define BASE_MACHINE_GPU_LIST_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/strbuf.h"
#include "base/uuid.h"

#define GPU_LIST_MAX     64
#define GPU_PROCESS_MAX  1024 /* of one GPU */
#define GPU_UUID_SIZE    41   /* "GPU-" and 36 characters; a MIG part has as many */
#define GPU_MODEL_SIZE   96
#define GPU_DRIVER_SIZE  80
#define GPU_MEMORY_MAX   (INT64_C(1) << 46)
#define GPU_JSON_MAX     ((size_t)4 * 1024 * 1024)
#define GPU_PRETEND      "PREREG_GPUS" /* names the file of simulated GPUs */
#define GPU_INDEX_PREFIX "AMD-"        /* of an AMD GPU without an identity: its index follows */

enum gpu_vendor { GPU_NVIDIA, GPU_AMD, GPU_VENDOR_NR };
const char *gpu_vendor_name(enum gpu_vendor v); /* "nvidia", "amd" */

struct gpu_process {
    int64_t pid;
    int64_t memory_bytes; /* -1 unknown */
    char name[64];        /* "" unknown; so is user */
    char user[64];
    uint64_t mark;                /* of the attempt that it, or a process above it, is of
                                     (shim/mark.h); 0: none */
    char attempt[UUID_TEXT_SIZE]; /* of the attempt whose control group it is in; "" */
};

struct gpu {
    char uuid[GPU_UUID_SIZE];
    int64_t index; /* as the driver counts, all GPUs of the machine */
    enum gpu_vendor vendor;
    char model[GPU_MODEL_SIZE];
    char driver[GPU_DRIVER_SIZE]; /* "" unknown */
    int64_t memory_bytes;         /* 0 unknown */
    int64_t free_bytes;           /* -1 unknown */
    int ecc;                      /* 1 on, 0 off, -1 unknown or without */
    bool processes_known;
    struct gpu_process *processes;
    size_t n_processes;
};

struct gpu_list {
    struct gpu *items;
    size_t n;
};

void gpu_list_release(struct gpu_list *list); /* all zero afterwards */
/* A GPU with its defaults, to be filled in; ERR_RANGE when there are too many. */
int gpu_list_add(struct gpu_list *list, struct gpu **out, struct err *err) MUST_CHECK;
struct gpu_process *gpu_add_process(struct gpu *g, int64_t pid); /* NULL: there are too many */

/* 1 to 40 letters, digits and '-'. */
bool gpu_uuid_is_valid(const char *uuid);
/* NULL when there is none. */
const struct gpu *gpu_list_find(const struct gpu_list *list, const char *uuid);

/* Reads an array of GPUs. Needed of each: uuid and model; the others have defaults ("index": its
 * place). *out is empty after an error, which names GPU and member. */
int gpu_list_read(const char *text, size_t len, struct gpu_list *out, struct err *err) MUST_CHECK;
int gpu_list_from_json(const cJSON *v, struct gpu_list *out, struct err *err) MUST_CHECK;
/* The other way. The caller deletes it. */
cJSON *gpu_list_json(const struct gpu_list *list);
/* Appends it on one line. */
int gpu_list_write(const struct gpu_list *list, struct strbuf *out, struct err *err) MUST_CHECK;

/* Whether `word` names this GPU: its index, its UUID, or the beginning of its UUID with at least
 * one character behind "GPU-" or "MIG-". */
bool gpu_is_named(const char *uuid, int64_t index, const char *word);
/* Whether `model` is of the kind `pin`: the same, or that and more words ("NVIDIA H100" is the kind
 * of "NVIDIA H100 80GB HBM3"). */
bool gpu_model_is(const char *model, const char *pin);
/* Keeps the GPUs of that vendor that a list of CUDA_VISIBLE_DEVICES or ROCR_VISIBLE_DEVICES names,
 * in the order of the machine; like the driver, reads it up to the first word that names none. NULL
 * leaves all. Appends to *ignored (unless NULL) what was not read. */
void gpu_list_bound(struct gpu_list *list, enum gpu_vendor vendor, const char *visible,
                    struct strbuf *ignored);

/* "GPU-4f3a12cd…": as much of the UUID as tells it from others, for people. */
#define GPU_SHORT_SIZE 20
void gpu_short_name(const char *uuid, char out[GPU_SHORT_SIZE]);
/* Appends a size of memory as a program gives it: "20 GiB", "1536 MiB". */
void gpu_add_memory(struct strbuf *out, int64_t bytes);

#endif
