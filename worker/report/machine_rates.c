/*
 * The file is read and written whole, each time: it has a line for each shape of a model that was
 * ever described here. Of two workers that write at the same time one loses its numbers and
 * measures again the next time.
 */
#include "worker/report/machine_rates.h"

#include <math.h>

#include "base/files/file.h"
#include "base/json/json.h"
#include "base/machine/machine.h"
#include "base/math/contract.h"
#include "base/strbuf.h"

#define RATES_BYTES_MAX ((size_t)1 << 20)
#define RATE_MAX        1e6 /* seconds: nothing measured here takes longer */

static cJSON *read_file(const char *path)
{
    cJSON *rates = NULL;
    struct err err;

    if (json_read_file(path, RATES_BYTES_MAX, &rates, &err) == 0 && cJSON_IsObject(rates))
        return rates;
    cJSON_Delete(rates);
    return json_object();
}

static void add_key(struct strbuf *key, const char *what)
{
    char cpu[256];

    machine_cpu(cpu, sizeof(cpu));
    strbuf_addf(key, "%s, version " PREREGD_VERSION ", contract " CONTRACT_VERSION_TEXT ", %s", cpu,
                what);
}

static bool is_rate(const cJSON *number)
{
    return cJSON_IsNumber(number) && isfinite(number->valuedouble) && number->valuedouble >= 0.0 &&
           number->valuedouble <= RATE_MAX;
}

bool machine_rates_find(const struct worker_task *task, const char *what, double *values, size_t n)
{
    struct strbuf key = STRBUF_INIT;

    if (task->rates == NULL)
        return false;
    add_key(&key, what);
    cJSON *rates = read_file(task->rates);
    const cJSON *list = json_member(rates, key.buf);
    bool found = cJSON_IsArray(list) && (size_t)cJSON_GetArraySize(list) == n;
    const cJSON *number = found ? list->child : NULL;
    for (; found && number != NULL; number = number->next)
        found = is_rate(number);
    for (size_t i = 0; found && i < n; i++)
        values[i] = cJSON_GetArrayItem(list, (int)i)->valuedouble;
    cJSON_Delete(rates);
    strbuf_release(&key);
    return found;
}

void machine_rates_keep(const struct worker_task *task, const char *what, const double *values,
                        size_t n)
{
    struct strbuf key = STRBUF_INIT;
    struct err ignored;

    if (task->rates == NULL)
        return;
    add_key(&key, what);
    cJSON *rates = read_file(task->rates), *list = cJSON_CreateDoubleArray(values, (int)n);
    cJSON_DeleteItemFromObjectCaseSensitive(rates, key.buf);
    json_put(rates, key.buf, list);
    (void)!json_write_file(task->rates, rates, 0600, &ignored);
    cJSON_Delete(rates);
    strbuf_release(&key);
}

double machine_rates_room(void)
{
    const double free_bytes = (double)machine_memory_free_bytes();

    return free_bytes > 0.0 ? fmin(MACHINE_TRIAL_BYTES, free_bytes / 2.0) : MACHINE_TRIAL_BYTES;
}

bool machine_rates_allowed(double bytes, double flops, struct strbuf *why)
{
    const double room = machine_rates_room();

    if (bytes > room)
        strbuf_addf(why, "measuring it takes %.0f MiB, and may take %.0f", bytes / 0x1p20,
                    room / 0x1p20);
    else if (flops > MACHINE_TRIAL_FLOPS)
        strbuf_addf(why, "measuring it takes %.1e operations, and may take %.0e", flops,
                    MACHINE_TRIAL_FLOPS);
    else
        return true;
    return false;
}

void machine_rates_assumed(const char *why, struct strbuf *note)
{
    strbuf_addf(note,
                "the time is an assumption, %.0e operations a second, since this model was not "
                "measured here: %s",
                TASK_USUAL_FLOPS, why);
}
