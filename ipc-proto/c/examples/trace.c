/*
 * Records events of a .NET process for some seconds, and counts them by kind, without a heap and without a file.
 *
 *     trace SOCKET SECONDS [PROVIDER]
 *
 * A runtime that stops a session blocks until the client has read the events that are left. So the loop at the end waits
 * for both connections at once: that of the stream, and that of the request to stop.
 */
#include <dotnet_ipc.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum { KINDS = 1024, NAME = 80, DEADLINE_MS = 10000 };

static struct kind {
    uint32_t metadata_id;
    char provider[NAME], name[NAME];
    unsigned long count;
} kinds[KINDS];

static struct sockaddr_un address;
static uint8_t window[1 << 20];
static size_t window_len;
static dipc_parser parser;
static dipc_trace trace;
static unsigned long events, kinds_len, undescribed;

static int failed(const char *what, dipc_status status, size_t detail) {
    char reason[160];
    dipc_status_text(status, detail, reason, sizeof reason, NULL);
    fprintf(stderr, "trace: %s: %s\n", what, reason);
    return 1;
}

static uint64_t now_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static int connect_to_runtime(void) {
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    if (fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof address) != 0) {
        close(fd);
        return -1;
    }
    return fd;
}

/* Sends the request in `window`, and receives the answer: see client.c. */
static dipc_status call(int fd, size_t len, uint64_t *session_id, size_t *detail) {
    dipc_exchange exchange;
    dipc_answer answer;
    dipc_step step;
    dipc_status status = dipc_call_init(&exchange, window, sizeof window, len, detail);
    while (status == DIPC_STATUS_OK) {
        status = dipc_exchange_step(&exchange, &step, detail);
        if (status != DIPC_STATUS_OK || step.kind == DIPC_STEP_DONE)
            break;
        ssize_t n = step.kind == DIPC_STEP_SEND ? send(fd, step.data, step.len, MSG_NOSIGNAL)
                                                : recv(fd, step.data, step.len, 0);
        if (n >= 0 || errno != EINTR)
            status = dipc_exchange_advance(&exchange, n < 0 ? 0 : (size_t)n, detail);
    }
    if (status == DIPC_STATUS_OK)
        status = dipc_call_finish(&exchange, &answer, detail);
    if (status == DIPC_STATUS_OK)
        status = dipc_read_SessionId(answer.bytes, answer.len, session_id, detail);
    return status;
}

static struct kind *find_kind(uint32_t metadata_id) {
    for (unsigned long i = 0; i < kinds_len; i++)
        if (kinds[i].metadata_id == metadata_id)
            return &kinds[i];
    return NULL;
}

static void describe(const dipc_event *record) {
    dipc_metadata metadata;
    dipc_status status = dipc_metadata_decode_runtime(trace.version, trace.pointer_size, record->payload,
                                                      record->payload_len, &metadata, NULL);
    if (status != DIPC_STATUS_OK || kinds_len == KINDS || find_kind(metadata.id) != NULL)
        return;
    struct kind *kind = &kinds[kinds_len++];
    kind->metadata_id = metadata.id;
    /* A name that is too long is cut off. */
    dipc_text_to_utf8(metadata.provider, kind->provider, NAME, NULL);
    dipc_text_to_utf8(metadata.name, kind->name, NAME, NULL);
    if (metadata.name.len == 0)
        snprintf(kind->name, NAME, "%u", (unsigned)metadata.event_id);
}

/* Handles the records in the window, and moves what is left of it to the front. */
static void parse(void) {
    dipc_record record;
    do {
        dipc_parser_next(&parser, window, window_len, &record);
        if (record.kind == DIPC_RECORD_TRACE)
            trace = record.u.trace;
        else if (record.kind == DIPC_RECORD_METADATA)
            describe(&record.u.event);
        else if (record.kind == DIPC_RECORD_EVENT) {
            struct kind *kind = find_kind(record.u.event.metadata_id);
            events++;
            if (kind != NULL)
                kind->count++;
            else
                undescribed++;
        }
    } while (record.kind != DIPC_RECORD_MORE && record.kind != DIPC_RECORD_END);
    size_t used = dipc_parser_release(&parser);
    memmove(window, window + used, window_len - used);
    window_len -= used;
}

static void read_stream(int fd, dipc_session *session) {
    ssize_t n = recv(fd, window + window_len, sizeof window - window_len, 0);
    if (n < 0 && errno == EINTR)
        return;
    if (n <= 0) {
        dipc_session_stream_advance(session, NULL, 0);
        return;
    }
    dipc_session_stream_advance(session, window + window_len, (size_t)n);
    window_len += (size_t)n;
    parse();
}

/* Does one step on the connection that stops the session. */
static void stop(int *fd, dipc_session *session, const dipc_step *step) {
    if (step->kind == DIPC_STEP_CONNECT) {
        *fd = connect_to_runtime();
        dipc_session_stop_advance(session, *fd < 0 ? DIPC_STOP_FAILED : DIPC_STOP_CONNECTED, 0);
        return;
    }
    ssize_t n = step->kind == DIPC_STEP_SEND ? send(*fd, step->data, step->len, MSG_NOSIGNAL | MSG_DONTWAIT)
                                             : recv(*fd, step->data, step->len, MSG_DONTWAIT);
    if (n < 0 && (errno == EINTR || errno == EAGAIN))
        return;
    dipc_session_stop_advance(session, step->kind == DIPC_STEP_SEND ? DIPC_STOP_SENT : DIPC_STOP_RECEIVED,
                              n < 0 ? 0 : (uint64_t)n);
}

static void record(int fd, uint64_t session_id, uint64_t duration_ms) {
    dipc_session session;
    uint64_t stop_at = now_ms() + duration_ms;
    bool requested = false;
    int stop_fd = -1;
    dipc_session_init(&session, session_id);
    dipc_parser_init(&parser);
    while (dipc_session_end(&session) == DIPC_SESSION_RUNNING) {
        dipc_step step;
        uint64_t now = now_ms(), until;
        dipc_session_tick(&session, now);
        if (!requested && now >= stop_at) {
            dipc_session_stop(&session, now + DEADLINE_MS);
            requested = true;
        }
        dipc_session_stop_step(&session, &step);
        if (step.kind == DIPC_STEP_CONNECT) {
            stop(&stop_fd, &session, &step);
            continue;
        }
        struct pollfd fds[2] = {{-1, POLLIN, 0}, {-1, 0, 0}};
        fds[0].fd = dipc_session_wants_stream(&session) ? fd : -1;
        fds[1].fd = step.kind == DIPC_STEP_DONE ? -1 : stop_fd;
        fds[1].events = step.kind == DIPC_STEP_SEND ? POLLOUT : POLLIN;
        until = requested ? dipc_session_until(&session) : stop_at;
        poll(fds, 2, until > now + 1000 ? 1000 : until > now ? (int)(until - now) : 0);
        if (fds[0].revents != 0)
            read_stream(fd, &session);
        if (fds[1].revents != 0)
            stop(&stop_fd, &session, &step);
    }
    if (stop_fd >= 0)
        close(stop_fd);
}

int main(int argc, char **argv) {
    char end[160];
    uint64_t session_id;
    size_t len, detail;
    if (argc < 3 || argc > 4 || strlen(argv[1]) >= sizeof address.sun_path) {
        fprintf(stderr, "usage: trace SOCKET SECONDS [PROVIDER]\n");
        return 2;
    }
    address.sun_family = AF_UNIX;
    strcpy(address.sun_path, argv[1]);
    int fd = connect_to_runtime();
    if (fd < 0) {
        perror(argv[1]);
        return 1;
    }
    dipc_provider provider;
    dipc_providers providers = {&provider, 1};
    provider.keywords = argc == 4 ? UINT64_MAX : 1; /* 1: the garbage collector */
    provider.level = DIPC_LEVEL_INFORMATIONAL;
    provider.name = dipc_utf8(argc == 4 ? argv[3] : "Microsoft-Windows-DotNETRuntime");
    provider.arguments = dipc_utf8(NULL);
    dipc_build_CollectTracing2(window, sizeof window, &len, 256, DIPC_FORMAT_NET_TRACE, false, providers);
    dipc_status status = call(fd, len, &session_id, &detail);
    if (status != DIPC_STATUS_OK)
        return failed("the request to start a session", status, detail);
    record(fd, session_id, strtoul(argv[2], NULL, 10) * 1000);
    close(fd);
    for (unsigned long i = 0; i < kinds_len; i++)
        if (kinds[i].count > 0)
            printf("%8lu %s/%s\n", kinds[i].count, kinds[i].provider, kinds[i].name);
    dipc_parser_end_text(&parser, window, window_len, end, sizeof end, NULL);
    printf("%8lu events, %lu without a description; the trace is %s\n", events, undescribed, end);
    return strcmp(end, "complete") != 0;
}
