/* The socket's server: how long a connection may take over a request, and over its answer. */
#include "daemon/rpc/server.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/files/file.h"
#include "base/json/json.h"
#include "base/layout/layout.h"
#include "base/xalloc.h"
#include "tests/unit/check.h"
#include "tests/unit/scratch.h"

#define IDLE_MS   50
#define ANSWER_MS 300 /* of the handler: longer than the limit */
#define REQUEST   "{\"schema\":1,\"id\":1,\"method\":\"ping\",\"params\":{}}\n"

struct scene {
    uv_loop_t loop;
    uv_timer_t timer;
    struct server *server;
    uint64_t connection; /* that waits for its answer; 0: none */
    bool answered;
    int fd; /* the client's */
};

static void on_answer_due(uv_timer_t *timer)
{
    struct scene *s = timer->data;
    const struct server_replies replies = server_replies(s->server);
    cJSON *result = json_object();
    replies.answer(replies.ctx, s->connection, result, NULL);
    s->answered = true;
    cJSON_Delete(result);
}

static int answer_later(void *ctx, struct server_call *call, const struct rpc_request *request,
                        cJSON **result, struct err *err)
{
    struct scene *s = ctx;
    (void)request;
    (void)err;
    *result = NULL;
    call->later = true;
    s->connection = call->connection;
    return uv_timer_start(&s->timer, on_answer_due, ANSWER_MS, 0);
}

static int enter_scene(void **state)
{
    struct scene *s = xcalloc(1, sizeof(*s));
    struct err err = {0};
    struct sockaddr_un addr = {.sun_family = AF_UNIX};
    *state = s;
    if (scratch_enter(state) != 0) {
        return -1;
    }
    *state = s;
    const struct server_handler handler = {.ctx = s, .request = answer_later};
    char *path = path_join(scratch_folder, LAYOUT_SOCKET);
    (void)snprintf(addr.sun_path, sizeof(addr.sun_path), "%s", path);
    free(path);
    (void)uv_loop_init(&s->loop);
    (void)uv_timer_init(&s->loop, &s->timer);
    s->timer.data = s;
    if (server_open(&s->loop, scratch_folder, &handler, &s->server, &err) != 0) {
        return -1;
    }
    server_set_idle(s->server, IDLE_MS);
    s->fd = socket(AF_UNIX, SOCK_STREAM, 0);
    return connect(s->fd, (const struct sockaddr *)&addr, sizeof(addr));
}

static int leave_scene(void **state)
{
    struct scene *s = *state;
    server_close(s->server);
    uv_close((uv_handle_t *)&s->timer, NULL);
    (void)uv_run(&s->loop, UV_RUN_DEFAULT);
    server_free(s->server);
    (void)uv_loop_close(&s->loop);
    (void)close(s->fd);
    free(s);
    return scratch_leave(state);
}

static void send_text(const struct scene *s, const char *text, size_t n)
{
    assert_int_equal(send(s->fd, text, n, MSG_NOSIGNAL), (ssize_t)n);
}

/* Turns the loop until the client can read; what it read: 0 when it was closed. */
static ssize_t read_answer(struct scene *s, char *out, size_t size)
{
    for (;;) {
        ssize_t n = recv(s->fd, out, size - 1, MSG_DONTWAIT);
        if (n >= 0 || errno != EAGAIN) {
            out[n > 0 ? n : 0] = '\0';
            return n;
        }
        (void)uv_run(&s->loop, UV_RUN_ONCE);
    }
}

/* In two parts, so that the limit of a half-sent request was set before. */
static void test_long_answer(void **state)
{
    struct scene *s = *state;
    char answer[256];
    send_text(s, REQUEST, 10);
    for (int i = 0; i < 3; i++) { /* it is accepted and read */
        (void)uv_run(&s->loop, UV_RUN_NOWAIT);
    }
    send_text(s, &REQUEST[10], strlen(REQUEST) - 10);
    assert_true(read_answer(s, answer, sizeof(answer)) > 0);
    assert_true(s->answered);
    assert_non_null(strstr(answer, "\"result\""));
}

static void test_half_a_request(void **state)
{
    struct scene *s = *state;
    char answer[256];
    send_text(s, REQUEST, 10);
    assert_int_equal(read_answer(s, answer, sizeof(answer)), 0);
    assert_int_equal(s->connection, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_long_answer, enter_scene, leave_scene),
        cmocka_unit_test_setup_teardown(test_half_a_request, enter_scene, leave_scene),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
