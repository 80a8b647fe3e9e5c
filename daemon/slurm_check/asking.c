/* What a stage asks for, in figures and in words, and the places of faults. sbatch's refusals are
 * text: the key that they name is found by the words that Slurm's sources use for it. */
#include "daemon/slurm_check/asking.h"

#include <string.h>

#include "base/clock.h"
#include "base/json/json.h"

bool asking_is_of_slurm(const struct plan_program *p, size_t stage)
{
    return p->stages[stage].run.executor == EXECUTOR_SLURM;
}

struct slurm_request asking_request(const struct slurm_asking *c, size_t stage)
{
    const struct stage_run *r = &c->p->stages[stage].run;
    const struct slurm_settings *s = &c->p->run.slurm;
    return (struct slurm_request){
        .partition = s->partition,
        .account = s->account,
        .qos = s->qos,
        .clusters = s->clusters,
        .options = s->options,
        .n_options = s->n_options,
        .threads = r->threads > 0 ? (uint32_t)r->threads : 1,
        .memory_bytes = r->memory_bytes,
        .gpus = (uint32_t)((r->gpu_thousandths + 999) / 1000), /* a share takes a whole one */
        .time_ms = r->time_ms,
        .login = s->n_setup > 0,
    };
}

void asking_say_request(const struct slurm_request *r, struct strbuf *out)
{
    char span[48];
    strbuf_add_count(out, r->threads, "core", "cores");
    if (r->memory_bytes > 0) {
        strbuf_addf(out, ", %.3g GiB", (double)r->memory_bytes / ASKING_GIB);
    }
    if (r->gpus > 0) {
        strbuf_adds(out, ", ");
        strbuf_add_count(out, r->gpus, "GPU", "GPUs");
    }
    if (r->time_ms > 0) {
        strbuf_addf(out, ", %s", clock_span_text(r->time_ms, span, sizeof(span)));
    }
}

void asking_put_known(cJSON *o, const char *key, int64_t value)
{
    if (value >= 0) {
        json_put_int(o, key, value);
    } else {
        json_put_null(o, key);
    }
}

/* ---- places ---- */

struct place asking_place(const struct slurm_asking *c, size_t stage, struct place key)
{
    const struct plan_stage *s = &c->p->stages[stage];
    return key.line > 0                     ? key
           : c->p->run.slurm.place.line > 0 ? c->p->run.slurm.place
           : s->run.executor_place.line > 0 ? s->run.executor_place
                                            : s->place;
}

/* The option that `why` quotes, by its name up to "=": "unrecognized option '--foo=1'". */
static const struct place *find_quoted(const struct slurm_settings *s, const char *why)
{
    for (size_t i = 0; i < s->n_options; i++) {
        const char *option = s->options[i];
        const size_t n = strcspn(option, "=");
        if (n > 2 && memmem(why, strlen(why), option, n) != NULL) {
            return &s->options_at[i];
        }
    }
    return NULL;
}

/* The first option of a name or of its letter. */
static const struct place *find_option(const struct slurm_settings *s, const char *name,
                                       const char *letter)
{
    for (size_t i = 0; i < s->n_options; i++) {
        if (strncmp(s->options[i], name, strlen(name)) == 0 ||
            strncmp(s->options[i], letter, strlen(letter)) == 0) {
            return &s->options_at[i];
        }
    }
    return NULL;
}

struct place asking_place_of_refusal(const struct slurm_asking *c, size_t stage, const char *why)
{
    const struct slurm_settings *s = &c->p->run.slurm;
    const struct stage_run *r = &c->p->stages[stage].run;
    const struct {
        const char *words;
        const struct place *at;
    } named[] = {
        {"feature", find_option(s, "--constraint", "-C")},
        {"node name", find_option(s, "--nodelist", "-w")},
        {"node list", find_option(s, "--nodelist", "-w")},
        {"license", find_option(s, "--licenses", "-L")},
        {"reservation", find_option(s, "--reservation", "--reservation")},
        {"wckey", find_option(s, "--wckey", "--wckey")},
        {"account", &s->account_place},
        {"qos", &s->qos_place},
        {"QOS", &s->qos_place},
        {"partition", &s->partition_place},
        {"time limit", &r->time_place},
        {"Memory", &r->memory_place},
        {"generic resource", &r->gpus_place},
        {"CPU count", &r->threads_place},
        {"processors", &r->threads_place},
    };
    const struct place *at = find_quoted(s, why);
    for (size_t i = 0; at == NULL && i < sizeof(named) / sizeof(named[0]); i++) {
        const bool is_named = strstr(why, named[i].words) != NULL;
        at = is_named && named[i].at != NULL && named[i].at->line > 0 ? named[i].at : NULL;
    }
    return asking_place(c, stage, at != NULL ? *at : (struct place){0});
}
