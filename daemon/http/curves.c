/* Answers about curves. */
#include "daemon/http/curves.h"

bool curves_are_sealed(const struct hosted *h, size_t stage)
{
    return program_stage_is_sealed(h->bundle->program, stage) && !h->status.unsealed &&
           !h->status.unblinded;
}
void curves_serve(struct request *r, const cJSON *params)
{
    (void)params;
    reply_refuse(&r->reply, MHD_HTTP_NOT_FOUND, "not_found", "curves follow");
    r->ready = true;
}
void curves_question_free(struct curves_question *q)
{
    (void)q;
}
