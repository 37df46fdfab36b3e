/*
 * A client for runtimes of every version: asks a .NET process who it is, by the newest command that the runtime knows.
 *
 *     plan SOCKET
 *
 * A runtime that does not know a command says so; the plan then sends the older one, on a new connection. One deadline
 * covers all of them.
 */
#include <dotnet_ipc.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum { LIMIT_MS = 10000 };

static uint8_t buf[65536];

/* Prints what failed, and the reason. */
static int failed(const char *what, dipc_status status, size_t detail) {
    char reason[160];
    dipc_status_text(status, detail, reason, sizeof reason, NULL);
    fprintf(stderr, "plan: %s: %s\n", what, reason);
    return 1;
}

static void print_text(const char *label, dipc_text text) {
    static char utf8[65536];
    dipc_status status = dipc_text_to_utf8(text, utf8, sizeof utf8, NULL);
    printf("%s%s%s\n", label, utf8, status == DIPC_STATUS_OK ? "" : " (cut off)");
}

static int connect_to(const char *path) {
    struct sockaddr_un address;
    memset(&address, 0, sizeof address);
    address.sun_family = AF_UNIX;
    if (strlen(path) >= sizeof address.sun_path) {
        errno = ENAMETOOLONG;
        return -1;
    }
    strcpy(address.sun_path, path);
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    if (fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof address) != 0) {
        close(fd);
        return -1;
    }
    return fd;
}

static int refused(uint32_t hresult) {
    dipc_text hint = dipc_hresult_hint(hresult);
    fprintf(stderr, "plan: refused with 0x%08x: ", (unsigned)hresult);
    fprintf(stderr, "%.*s\n", (int)hint.len, hint.data ? (const char *)hint.data : "");
    return 1;
}

static uint64_t now_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* Waits until the connection is ready, at most until the plan needs the time; without a connection only waits. */
static bool wait_for(int fd, short event, dipc_fallback *plan) {
    struct pollfd ready = {fd, event, 0};
    uint64_t now = now_ms(), until = dipc_fallback_until(plan);
    int n = poll(&ready, 1, until > now ? (int)(until - now) : 0);
    dipc_fallback_tick(plan, now_ms());
    return n > 0;
}

/* Carries out a plan. Returns its last connection, or -1 if the runtime is not reachable. */
static int carry_out(const char *path, dipc_fallback *plan) {
    int fd = -1;
    dipc_step step;
    while (dipc_fallback_step(plan, &step, NULL) == DIPC_STATUS_OK && step.kind != DIPC_STEP_DONE) {
        ssize_t n;
        switch (step.kind) {
        case DIPC_STEP_CONNECT:
            if (fd >= 0)
                close(fd);
            fd = connect_to(path);
            if (fd >= 0)
                dipc_fallback_advance(plan, DIPC_FALLBACK_CONNECTED, 0);
            else if (errno == EAGAIN)
                dipc_fallback_advance(plan, DIPC_FALLBACK_BUSY, now_ms());
            else
                return -1;
            break;
        case DIPC_STEP_WAIT:
            wait_for(-1, 0, plan);
            break;
        case DIPC_STEP_SEND:
            if (!wait_for(fd, POLLOUT, plan))
                break;
            n = send(fd, step.data, step.len, MSG_NOSIGNAL);
            if (n >= 0 || errno != EINTR)
                dipc_fallback_advance(plan, DIPC_FALLBACK_SENT, n < 0 ? 0 : (uint64_t)n);
            break;
        default:
            if (!wait_for(fd, POLLIN, plan))
                break;
            n = recv(fd, step.data, step.len, 0);
            if (n >= 0 || errno != EINTR)
                dipc_fallback_advance(plan, DIPC_FALLBACK_RECEIVED, n < 0 ? 0 : (uint64_t)n);
        }
    }
    return fd;
}

static int describe(const char *path) {
    uint8_t request[DIPC_HEADER_LEN];
    dipc_fallback plan;
    dipc_answer answer;
    dipc_process_info info;
    size_t len, detail;
    dipc_build_GetProcessInfo3(request, sizeof request, &len);
    dipc_status status =
        dipc_fallback_init(&plan, request, len, NULL, buf, sizeof buf, now_ms() + LIMIT_MS, &detail);
    if (status != DIPC_STATUS_OK)
        return failed("the request", status, detail);
    int fd = carry_out(path, &plan);
    if (fd < 0) {
        perror(path);
        return 1;
    }
    close(fd);
    status = dipc_fallback_finish(&plan, &answer, &detail);
    if (status == DIPC_STATUS_OK && answer.refused)
        return refused(answer.hresult);
    if (status == DIPC_STATUS_OK)
        status = dipc_read_process_info(answer.bytes, answer.len, dipc_fallback_command(&plan), &info, &detail);
    if (status != DIPC_STATUS_OK)
        return failed("the answer", status, detail);
    printf("command: 0x%04x\n", (unsigned)dipc_fallback_command(&plan));
    printf("process_id: %llu\n", (unsigned long long)info.process_id);
    print_text("command_line: ", info.command_line);
    print_text("clr_product_version: ", info.clr_product_version);
    return 0;
}

int main(int argc, char **argv) {
    if (argc != 2) {
        fprintf(stderr, "usage: plan SOCKET\n");
        return 2;
    }
    return describe(argv[1]);
}
