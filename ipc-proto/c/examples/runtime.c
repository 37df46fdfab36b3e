/*
 * A small runtime: it listens at the socket of a diagnostic port, and answers like one of .NET.
 *
 *     runtime FOLDER
 *
 * It describes itself, returns its environment, and records events until the session is stopped. It refuses all other
 * commands. It ends when its standard input ends. Connections are served one after the other, except for sessions.
 *
 * It also connects to the monitors that DOTNET_DiagnosticPorts names, and does not start, which means that it has no
 * events, until each port with the tag `suspend` has resumed it.
 */
#include <dotnet_ipc.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

static const char PROVIDER[] = "Small-Runtime";

enum { RECEIVE_MS = 2000, TICK_MS = 50, PORTS = 4 };

extern char **environ;

/* The one session: its connection, and the writer of its stream. */
static struct {
    int fd;
    uint64_t id;
    uint32_t ticks;
    bool is_wanted; /* the events of this runtime */
    dipc_writer writer;
    uint8_t buf[8192];
} session = {-1, 0, 0, false, {{0}}, {0}};

/* The ports of monitors, and whether the default port and these still suspend the runtime. */
static struct port {
    dipc_connect_port state;
    struct sockaddr_un address;
    int fd;
    uint64_t wait_until; /* in milliseconds; 0 while it does not wait */
} ports[PORTS];
static size_t port_count;
static bool suspending[1 + PORTS];

static uint8_t receive[65536], reply_space[4096], environment[1 << 20];

static uint64_t nanoseconds(clockid_t clock) {
    struct timespec now;
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static bool send_all(int fd, const uint8_t *data, size_t len) {
    while (len > 0) {
        ssize_t n = send(fd, data, len, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        data += n;
        len -= (size_t)n;
    }
    return true;
}

static void drive(int fd, dipc_exchange *exchange) {
    dipc_step step;
    while (dipc_exchange_step(exchange, &step, NULL) == DIPC_STATUS_OK && step.kind != DIPC_STEP_DONE) {
        struct pollfd ready = {fd, POLLIN, 0};
        ssize_t n;
        if (step.kind == DIPC_STEP_SEND)
            n = send(fd, step.data, step.len, MSG_NOSIGNAL);
        else /* A client that sends nothing counts as one that has closed. */
            n = poll(&ready, 1, RECEIVE_MS) > 0 ? recv(fd, step.data, step.len, 0) : 0;
        if (n >= 0 || errno != EINTR)
            dipc_exchange_advance(exchange, n < 0 ? 0 : (size_t)n, NULL);
    }
}

/* Outputs the bytes of a record. */
static void output(dipc_status status, const dipc_output *out) {
    if (status == DIPC_STATUS_OK)
        send_all(session.fd, out->data, out->len);
}

static void write_tick(void) {
    dipc_output out;
    dipc_event event;
    uint8_t payload[4];
    uint32_t tick = ++session.ticks;
    for (int i = 0; i < 4; i++)
        payload[i] = (uint8_t)(tick >> (8 * i));
    memset(&event, 0, sizeof event);
    event.metadata_id = 1;
    event.sequence = tick;
    event.thread = event.capture_thread = (uint64_t)getpid();
    event.timestamp = nanoseconds(CLOCK_MONOTONIC);
    event.sorted = true;
    event.payload = payload;
    event.payload_len = sizeof payload;
    output(dipc_writer_event(&session.writer, &event, &out), &out);
    output(dipc_writer_flush(&session.writer, &out), &out);
}

/* Starts the stream on a connection that has the reply. */
static void start_stream(int fd) {
    dipc_output out;
    dipc_trace trace;
    dipc_description tick;
    dipc_field field;
    memset(&trace, 0, sizeof trace);
    memset(&tick, 0, sizeof tick);
    session.fd = fd;
    session.ticks = 0;
    trace.pointer_size = sizeof(void *);
    trace.frequency = 1000000000;
    trace.sync_ticks = nanoseconds(CLOCK_MONOTONIC);
    trace.start_unix_nanoseconds = nanoseconds(CLOCK_REALTIME);
    trace.process_id = (uint32_t)getpid();
    trace.processors = 1;
    field.name = dipc_utf8("Count");
    field.kind = DIPC_TYPE_UINT32;
    tick.id = 1;
    tick.event_id = 7;
    tick.provider = dipc_utf8(PROVIDER);
    tick.name = dipc_utf8("Tick");
    tick.level = 4;
    tick.fields = &field;
    tick.field_count = 1;
    dipc_writer_init(&session.writer, &trace, session.buf, sizeof session.buf, NULL);
    if (session.is_wanted)
        output(dipc_writer_describe(&session.writer, &tick, &out), &out);
}

static void stop_stream(void) {
    dipc_output out;
    if (session.fd < 0)
        return;
    output(dipc_writer_finish(&session.writer, &out), &out);
    close(session.fd);
    session.fd = -1;
}

static bool is_suspended(void) { return dipc_suspension_is_suspended(suspending, 1 + port_count); }

static dipc_guid cookie(void) {
    dipc_guid guid;
    memcpy(guid.bytes, "a small runtime!", 16);
    return guid;
}

static void describe(dipc_process_info *info) {
    memset(info, 0, sizeof *info);
    info->version = 1;
    info->process_id = (uint64_t)getpid();
    info->runtime_cookie = cookie();
    info->command_line = dipc_utf8("small-runtime");
    info->os = dipc_utf8("Linux");
    info->arch = dipc_utf8(sizeof(void *) == 8 ? "x64" : "x86");
    info->managed_entrypoint_assembly_name = dipc_utf8(is_suspended() ? "" : "small-runtime");
    info->clr_product_version = dipc_utf8("11.0.0");
    info->portable_rid = dipc_utf8("linux-x64");
}

/* Writes the environment, and returns its length. */
static size_t write_environment(void) {
    static dipc_text entries[4096];
    size_t count = 0, len = 0;
    for (; environ[count] != NULL && count < sizeof entries / sizeof *entries; count++)
        entries[count] = dipc_utf8(environ[count]);
    dipc_write_environment(entries, count, environment, sizeof environment, &len);
    return len <= sizeof environment ? len : 0;
}

/* Sets or removes a variable of this process. Returns why it cannot, or 0. */
static uint32_t set_variable(const dipc_request *request) {
    static char name[32768], value[65536];
    dipc_requested_variable variable;
    if (dipc_request_variable(request->bytes, request->len, &variable, NULL) != DIPC_STATUS_OK ||
        dipc_text_to_utf8(variable.name, name, sizeof name, NULL) != DIPC_STATUS_OK ||
        dipc_text_to_utf8(variable.value, value, sizeof value, NULL) != DIPC_STATUS_OK)
        return DIPC_HRESULT_FAIL;
    if (variable.value.form != DIPC_TEXT_NULL)
        return setenv(name, value, 1) == 0 ? 0 : DIPC_HRESULT_FAIL;
    if (getenv(name) == NULL)
        return DIPC_HRESULT_ENVVAR_NOT_FOUND;
    return unsetenv(name) == 0 ? 0 : DIPC_HRESULT_FAIL;
}

/* Returns which commands this runtime has: those of a program of .NET 11 that was compiled ahead of time. */
static dipc_facts facts(void) {
    dipc_facts facts;
    memset(&facts, 0, sizeof facts);
    facts.version = 11;
    facts.flavour = DIPC_FLAVOUR_NATIVE_AOT;
    facts.is_linux = DIPC_YES;
    facts.is_suspended = is_suspended() ? DIPC_YES : DIPC_NO;
    return facts;
}

/* Returns whether the session that a request starts has this runtime's provider. */
static bool is_wanted(const dipc_request *request) {
    dipc_requested_session session;
    dipc_requested_provider provider;
    if (dipc_request_session(request->bytes, request->len, &session, NULL) != DIPC_STATUS_OK)
        return false;
    while (dipc_next_provider(&session.providers, &provider) == DIPC_STATUS_OK)
        if (dipc_text_equals(provider.name, dipc_utf8(PROVIDER)) || dipc_text_equals(provider.name, dipc_utf8("*")))
            return true;
    return false;
}

/* Serves one connection to a port. */
static void serve(int fd, size_t port) {
    dipc_exchange exchange;
    dipc_request request;
    dipc_process_info info;
    dipc_facts server = facts();
    uint64_t session_id;
    uint32_t hresult;
    size_t len = 0;
    bool streams = false;
    dipc_serve_init(&exchange, receive, sizeof receive, reply_space, sizeof reply_space, NULL);
    drive(fd, &exchange);
    /* After an error the reply is the refusal of a runtime, also of a command that the server does not have. */
    if (dipc_serve_finish(&exchange, &server, &request, &exchange, NULL) == DIPC_STATUS_OK) {
        switch (request.code) {
        case DIPC_COMMAND_GET_PROCESS_INFO:
        case DIPC_COMMAND_GET_PROCESS_INFO2:
        case DIPC_COMMAND_GET_PROCESS_INFO3:
            describe(&info);
            dipc_reply_process_info(&exchange, &info, NULL);
            break;
        case DIPC_COMMAND_GET_PROCESS_ENVIRONMENT:
            len = write_environment();
            dipc_reply_ProcessEnvironment(&exchange, (uint32_t)len, 0, NULL);
            break;
        case DIPC_COMMAND_RESUME_RUNTIME:
            if (dipc_suspension_resume(suspending, 1 + port_count, port) && !is_suspended()) {
                puts("started");
                fflush(stdout);
            }
            dipc_reply_ok(&exchange, NULL); /* also if it is not suspended */
            break;
        case DIPC_COMMAND_SET_ENVIRONMENT_VARIABLE:
            hresult = set_variable(&request);
            if (hresult == 0)
                dipc_reply_ok(&exchange, NULL);
            else
                dipc_reply_refuse(&exchange, hresult, dipc_utf8(NULL), NULL);
            break;
        case DIPC_COMMAND_STOP_TRACING:
            if (dipc_request_session_id(request.bytes, request.len, &session_id, NULL) != DIPC_STATUS_OK)
                break;
            if (session_id == session.id)
                stop_stream(); /* the stream ends before the reply */
            dipc_reply_SessionId(&exchange, session_id, NULL);
            break;
        default: /* others are refused with E_FAIL, such as dumps and a second session, or as unknown */
            if (request.then == DIPC_THEN_STREAM && session.fd < 0) {
                streams = true;
                session.is_wanted = is_wanted(&request);
                dipc_reply_SessionId(&exchange, ++session.id, NULL);
            }
        }
    }
    drive(fd, &exchange);
    if (len > 0)
        send_all(fd, environment, len);
    if (streams)
        start_stream(fd);
    else
        close(fd);
}

static dipc_text variable(void *context, const char *name) {
    (void)context;
    return dipc_utf8(getenv(name));
}

/* Reads which ports the environment names, as the kind of runtime does that only connects. */
static void configure(void) {
    dipc_config config;
    dipc_port port;
    memset(&config, 0, sizeof config);
    dipc_config_init(&config, DIPC_FLAVOUR_CORE_CLR, variable, NULL);
    suspending[0] = dipc_config_default_port_suspends(&config);
    while (port_count < PORTS && dipc_config_port(&config, port_count, &port) == DIPC_STATUS_OK) {
        struct port *to = &ports[port_count++];
        to->fd = -1;
        to->address.sun_family = AF_UNIX;
        suspending[port_count] = port.suspends;
        dipc_text_to_utf8(port.address, to->address.sun_path, sizeof to->address.sun_path, NULL);
        dipc_connect_port_init(&to->state, cookie(), (uint64_t)getpid());
    }
}

static void hang_up(struct port *port) {
    close(port->fd);
    port->fd = -1;
}

/* Does what a port has to do, until it must wait: returns for how many milliseconds, or -1 for a command. */
static int proceed(size_t index) {
    struct port *port = &ports[index - 1];
    dipc_step step;
    uint64_t now;
    while (dipc_connect_port_step(&port->state, &step) == DIPC_STATUS_OK) {
        struct pollfd ready = {port->fd, POLLIN, 0};
        uint32_t event = DIPC_CONNECT_WAITED;
        size_t value = 0;
        switch (step.kind) {
        case DIPC_STEP_CONNECT:
            port->fd = socket(AF_UNIX, SOCK_STREAM, 0);
            event = DIPC_CONNECT_CONNECTED;
            if (connect(port->fd, (struct sockaddr *)&port->address, sizeof port->address) != 0) {
                event = DIPC_CONNECT_FAILED;
                hang_up(port);
            }
            break;
        case DIPC_STEP_WAIT:
            now = nanoseconds(CLOCK_MONOTONIC) / 1000000;
            if (port->wait_until == 0)
                port->wait_until = now + step.len;
            if (now < port->wait_until)
                return (int)(port->wait_until - now);
            port->wait_until = 0;
            break;
        case DIPC_STEP_SEND: /* a new connection has room for so few bytes */
            event = DIPC_CONNECT_SENT;
            value = send_all(port->fd, step.data, step.len) ? step.len : 0;
            if (value == 0)
                hang_up(port);
            break;
        default: /* DIPC_STEP_SERVE; serving closes the connection, or gives it to the session */
            if (poll(&ready, 1, 0) <= 0)
                return -1;
            if ((ready.revents & ~POLLIN) != 0) {
                event = DIPC_CONNECT_HUNG_UP;
                hang_up(port);
                break;
            }
            serve(port->fd, index);
            port->fd = -1;
            event = DIPC_CONNECT_ANSWERED;
        }
        dipc_connect_port_advance(&port->state, event, value);
    }
    return -1;
}

/* Returns the time when this process started, in the unit of Linux; 0 if it is not known. */
static uint64_t start_time(void) {
    char stat[1024];
    unsigned long long time = 0;
    FILE *file = fopen("/proc/self/stat", "r");
    size_t len = file != NULL ? fread(stat, 1, sizeof stat - 1, file) : 0;
    if (file != NULL)
        fclose(file);
    stat[len] = 0;
    /* The name of the program, field 2, can contain blanks and parentheses; after it, field 22 is the 20th. */
    char *field = strrchr(stat, ')');
    for (int i = 2; field != NULL && i < 22; i++)
        field = strchr(field + 1, ' ');
    if (field != NULL)
        sscanf(field, "%llu", &time);
    return time;
}

int main(int argc, char **argv) {
    struct sockaddr_un address;
    char name[64];
    memset(&address, 0, sizeof address);
    address.sun_family = AF_UNIX;
    int listener = socket(AF_UNIX, SOCK_STREAM, 0);
    dipc_socket_name((uint32_t)getpid(), start_time(), name, sizeof name, NULL);
    int len = argc == 2 ? snprintf(address.sun_path, sizeof address.sun_path, "%s/%s", argv[1], name) : -1;
    if (len < 0 || (size_t)len >= sizeof address.sun_path) {
        fprintf(stderr, "usage: runtime FOLDER\n");
        return 2;
    }
    if (bind(listener, (struct sockaddr *)&address, sizeof address) != 0 || listen(listener, 64) != 0) {
        perror(address.sun_path);
        return 1;
    }
    puts(address.sun_path);
    fflush(stdout);
    configure();
    for (;;) {
        struct pollfd fds[2 + PORTS] = {{listener, POLLIN, 0}, {0, POLLIN, 0}};
        int wait = -1;
        for (size_t port = 1; port <= port_count; port++) {
            int rest = proceed(port);
            if (rest >= 0 && (wait < 0 || rest < wait))
                wait = rest;
            fds[1 + port].fd = ports[port - 1].fd;
            fds[1 + port].events = POLLIN;
        }
        if (session.fd >= 0 && (wait < 0 || wait > TICK_MS))
            wait = TICK_MS;
        poll(fds, 2 + port_count, wait);
        if (fds[1].revents != 0)
            break;
        if (fds[0].revents != 0) {
            int fd = accept(listener, NULL, NULL);
            if (fd >= 0)
                serve(fd, 0);
        }
        if (session.fd >= 0 && session.is_wanted && !is_suspended())
            write_tick();
    }
    stop_stream();
    unlink(address.sun_path);
    return 0;
}
