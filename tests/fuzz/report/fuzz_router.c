/* Any bytes as router.csv: a course whose steps increase and whose shares are shares, or nothing.
 */
#include <assert.h>
#include <stdint.h>

#include "truthtable/report/router_course.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct router_course c;
    struct err err = {0};
    if (router_course_parse((const char *)data, size, &c, &err) != 0) {
        assert(err.msg[0] != '\0' && c.shares == NULL);
        return 0;
    }
    assert(c.n_samples > 0 && c.n_layers > 0 && c.n_experts > 0);
    for (size_t s = 0; s < c.n_samples; s++) {
        assert(s == 0 || c.steps[s] > c.steps[s - 1]);
        for (size_t l = 0; l < c.n_layers; l++) {
            for (size_t e = 0; e < c.n_experts; e++) {
                const double share = router_share(&c, s, l, e);
                assert(share >= 0 && share <= 1);
            }
        }
    }
    router_course_release(&c);
    return 0;
}
