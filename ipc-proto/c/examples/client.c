/*
 * A client: asks a .NET process who it is, and for its environment.
 *
 *     client SOCKET info
 *     client SOCKET env
 *
 * It needs no heap: one buffer serves all messages, and has room for the longest variable of an environment.
 */
#include <dotnet_ipc.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* The longest environment. The system provides only the pages of the buffers that are used. */
#define LIMIT (16 << 20)

static uint8_t buf[LIMIT];

/* Prints what failed, and the reason. */
static int failed(const char *what, dipc_status status, size_t detail) {
    char reason[160];
    dipc_status_text(status, detail, reason, sizeof reason, NULL);
    fprintf(stderr, "client: %s: %s\n", what, reason);
    return 1;
}

static void print_text(const char *label, dipc_text text) {
    static char utf8[LIMIT / 2 * 3 + 1]; /* a code unit has up to three bytes */
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

/* Drives an exchange of any kind until it is done. */
static dipc_status drive(int fd, dipc_exchange *exchange, size_t *detail) {
    for (;;) {
        dipc_step step;
        dipc_status status = dipc_exchange_step(exchange, &step, detail);
        if (status != DIPC_STATUS_OK || step.kind == DIPC_STEP_DONE)
            return status;
        ssize_t n = step.kind == DIPC_STEP_SEND ? send(fd, step.data, step.len, MSG_NOSIGNAL)
                                                : recv(fd, step.data, step.len, 0);
        if (n < 0 && errno == EINTR)
            continue;
        /* A connection that was reset counts as closed. */
        status = dipc_exchange_advance(exchange, n < 0 ? 0 : (size_t)n, detail);
        if (status != DIPC_STATUS_OK)
            return status;
    }
}

/* Sends the request of `len` bytes in `buf`, and receives the answer. */
static int call(int fd, size_t len, dipc_answer *answer) {
    dipc_exchange exchange;
    size_t detail;
    dipc_status status = dipc_call_init(&exchange, buf, sizeof buf, len, &detail);
    if (status == DIPC_STATUS_OK)
        status = drive(fd, &exchange, &detail);
    if (status == DIPC_STATUS_OK)
        status = dipc_call_finish(&exchange, answer, &detail);
    if (status != DIPC_STATUS_OK)
        return failed("the call", status, detail);
    if (answer->refused) {
        dipc_text hint = dipc_hresult_hint(answer->hresult);
        fprintf(stderr, "client: refused with 0x%08x: ", (unsigned)answer->hresult);
        fprintf(stderr, "%.*s\n", (int)hint.len, hint.data ? (const char *)hint.data : "");
        return 1;
    }
    return 0;
}

static int info(int fd) {
    dipc_answer answer;
    dipc_process_info info;
    size_t len, detail;
    dipc_build_GetProcessInfo2(buf, sizeof buf, &len);
    if (call(fd, len, &answer) != 0)
        return 1;
    dipc_status status =
        dipc_read_process_info(answer.bytes, answer.len, DIPC_COMMAND_GET_PROCESS_INFO2, &info, &detail);
    if (status != DIPC_STATUS_OK)
        return failed("the answer", status, detail);
    printf("process_id: %llu\n", (unsigned long long)info.process_id);
    print_text("command_line: ", info.command_line);
    print_text("os: ", info.os);
    print_text("arch: ", info.arch);
    print_text("managed_entrypoint_assembly_name: ", info.managed_entrypoint_assembly_name);
    print_text("clr_product_version: ", info.clr_product_version);
    return 0;
}

static int environment(int fd) {
    dipc_answer answer;
    dipc_exchange exchange;
    dipc_text entry;
    size_t len, detail;
    dipc_build_GetProcessEnvironment(buf, sizeof buf, &len);
    if (call(fd, len, &answer) != 0)
        return 1;
    dipc_status status =
        dipc_environment_init(&exchange, answer.bytes, answer.len, LIMIT, buf, sizeof buf, &detail);
    while (status == DIPC_STATUS_OK && !dipc_environment_is_finished(&exchange)) {
        status = drive(fd, &exchange, &detail);
        while (status == DIPC_STATUS_OK) {
            status = dipc_environment_next(&exchange, &entry, &detail);
            if (status == DIPC_STATUS_OK)
                print_text("", entry);
        }
        if (status == DIPC_STATUS_NOT_FOUND) /* nothing more has arrived */
            status = DIPC_STATUS_OK;
    }
    return status == DIPC_STATUS_OK ? 0 : failed("the environment", status, detail);
}

int main(int argc, char **argv) {
    if (argc != 3 || (strcmp(argv[2], "info") != 0 && strcmp(argv[2], "env") != 0)) {
        fprintf(stderr, "usage: client SOCKET info|env\n");
        return 2;
    }
    int fd = connect_to(argv[1]);
    if (fd < 0) {
        perror(argv[1]);
        return 1;
    }
    int code = strcmp(argv[2], "info") == 0 ? info(fd) : environment(fd);
    close(fd);
    return code;
}
