/*
 * The operations of instructions.rs that the C interface has too, for the same table: each twice, and then twelve times. See
 * instructions.py. The standard input is the trace.
 */
#include <dotnet_ipc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Makes callgrind write its counts since the last dump. */
__attribute__((noinline)) static void part_ends(void) {
    __asm__ volatile("");
}

static void require(int condition, const char *what) {
    if (!condition) {
        fprintf(stderr, "instructions.c: %s\n", what);
        exit(1);
    }
}

static uint8_t *trace;
static size_t trace_len;
static uint8_t answer[4096];
static size_t answer_len;

static void decode_answer(unsigned times) {
    dipc_process_info info;
    for (unsigned i = 0; i < times; i++)
        require(dipc_read_process_info(answer, answer_len, DIPC_COMMAND_GET_PROCESS_INFO3, &info, NULL) == DIPC_STATUS_OK,
                "an answer is not read");
}

static void encode_request(unsigned times) {
    static const char *const names[8] = {
        "Microsoft-Windows-DotNETRuntime",       "Microsoft-Windows-DotNETRuntimePrivate",
        "Microsoft-DotNETCore-SampleProfiler",   "Microsoft-Diagnostics-DiagnosticSource",
        "Microsoft-Extensions-Logging",          "Microsoft.AspNetCore.Hosting",
        "System.Net.Http",                       "System.Runtime",
    };
    static uint8_t buf[4096];
    dipc_provider list[8];
    dipc_providers providers = {list, 8};
    size_t len;
    for (size_t i = 0; i < 8; i++) {
        list[i].keywords = 0x14c14fccbd;
        list[i].level = DIPC_LEVEL_VERBOSE;
        list[i].name = dipc_utf8(names[i]);
        list[i].arguments = dipc_utf8(i >= 6 ? "EventCounterIntervalSec=1" : "");
    }
    for (unsigned i = 0; i < times; i++)
        require(dipc_build_CollectTracing2(buf, sizeof buf, &len, 256, DIPC_FORMAT_NET_TRACE, true, providers) ==
                    DIPC_STATUS_OK,
                "a request is not built");
}

static void events(unsigned times) {
    for (unsigned i = 0; i < times; i++) {
        dipc_parser parser;
        dipc_record record;
        uint64_t sum = 0;
        unsigned count = 0;
        require(dipc_parser_init(&parser) == DIPC_STATUS_OK, "no parser");
        do {
            require(dipc_parser_next(&parser, trace, trace_len, &record) == DIPC_STATUS_OK, "no record");
            if (record.kind == DIPC_RECORD_EVENT) {
                count++;
                sum ^= record.u.event.payload_len ^ record.u.event.timestamp ^ record.u.event.thread;
            }
        } while (record.kind != DIPC_RECORD_MORE && record.kind != DIPC_RECORD_END);
        require(count == 406 && sum != 0, "other events");
    }
}

/* `events` by columns. */
static void columns(unsigned times) {
    static uint64_t timestamps[256], threads[256];
    static size_t lengths[256];
    dipc_event_columns wanted;
    memset(&wanted, 0, sizeof wanted);
    wanted.timestamp = timestamps;
    wanted.thread = threads;
    wanted.payload_len = lengths;
    for (unsigned i = 0; i < times; i++) {
        dipc_parser parser;
        dipc_record record;
        uint64_t sum = 0;
        size_t events = 0, count;
        require(dipc_parser_init(&parser) == DIPC_STATUS_OK, "no parser");
        do {
            while (dipc_parser_next_events(&parser, trace, trace_len, &wanted, 256, &count) == DIPC_STATUS_OK && count != 0) {
                for (size_t row = 0; row < count; row++)
                    sum ^= lengths[row] ^ timestamps[row] ^ threads[row];
                events += count;
            }
            require(dipc_parser_next(&parser, trace, trace_len, &record) == DIPC_STATUS_OK, "no record");
        } while (record.kind != DIPC_RECORD_MORE && record.kind != DIPC_RECORD_END);
        require(events == 406 && sum != 0, "other events");
    }
}

/* `fields`: the fields of each description are stored once. */
static void fields(unsigned times) {
    enum { KINDS = 64, FIELDS = 1024, VALUES = 4096, EVENTS = 256 };
    static dipc_described_field described[FIELDS];
    static struct {
        size_t start, count;
    } kinds[KINDS];
    static dipc_indexed_value values[VALUES];
    static uint32_t ids[EVENTS];
    static size_t offsets[EVENTS], lengths[EVENTS];
    dipc_event_columns wanted;
    memset(&wanted, 0, sizeof wanted);
    wanted.metadata_id = ids;
    wanted.payload_offset = offsets;
    wanted.payload_len = lengths;
    for (unsigned i = 0; i < times; i++) {
        dipc_parser parser;
        dipc_record record;
        dipc_metadata metadata;
        uint64_t sum = 0, payloads = 0;
        uint32_t version = 0, pointer_size = 8;
        size_t used = 0, count, stored;
        require(dipc_parser_init(&parser) == DIPC_STATUS_OK, "no parser");
        do {
            while (dipc_parser_next_events(&parser, trace, trace_len, &wanted, EVENTS, &count) == DIPC_STATUS_OK && count != 0)
                for (size_t row = 0; row < count; row++) {
                    size_t kind = ids[row] % KINDS;
                    if (kinds[kind].count == 0)
                        continue;
                    payloads += lengths[row];
                    dipc_fields_values(described + kinds[kind].start, kinds[kind].count, trace + offsets[row],
                                       lengths[row], values, VALUES, &stored, NULL);
                    for (size_t value = 0; value < stored; value++)
                        sum += values[value].u.number + values[value].field;
                }
            require(dipc_parser_next(&parser, trace, trace_len, &record) == DIPC_STATUS_OK, "no record");
            if (record.kind == DIPC_RECORD_TRACE) {
                version = record.u.trace.version;
                pointer_size = record.u.trace.pointer_size;
            } else if (record.kind == DIPC_RECORD_METADATA) {
                require(dipc_metadata_decode_runtime(version, pointer_size, record.u.event.payload,
                                                     record.u.event.payload_len, &metadata, NULL) == DIPC_STATUS_OK &&
                            dipc_metadata_fields(&metadata, described + used, FIELDS - used, &count) == DIPC_STATUS_OK,
                        "no description");
                kinds[metadata.id % KINDS].start = used;
                kinds[metadata.id % KINDS].count = count;
                used += count;
            }
        } while (record.kind != DIPC_RECORD_MORE && record.kind != DIPC_RECORD_END);
        require(payloads == 43096 && sum != 0, "other fields");
    }
}

/* The answer of a server to GetProcessInfo3. */
static void write_answer(void) {
    static const char cookie[] = "a random cookie ";
    uint8_t request[DIPC_HEADER_LEN], send[sizeof answer];
    dipc_process_info info;
    dipc_exchange exchange;
    dipc_request received;
    dipc_step step;
    size_t len;
    memset(&info, 0, sizeof info);
    info.version = 1;
    info.process_id = 7217;
    memcpy(info.runtime_cookie.bytes, cookie, 16);
    info.command_line = dipc_utf8("/usr/share/dotnet/dotnet /srv/shop/Shop.Web.dll --urls http://*:5000");
    info.os = dipc_utf8("Linux");
    info.arch = dipc_utf8("x64");
    info.managed_entrypoint_assembly_name = dipc_utf8("Shop.Web");
    info.clr_product_version = dipc_utf8("10.0.12");
    info.portable_rid = dipc_utf8("linux-x64");
    require(dipc_build_GetProcessInfo3(request, sizeof request, &len) == DIPC_STATUS_OK && len == sizeof request &&
                dipc_serve_init(&exchange, answer, sizeof answer, send, sizeof send, NULL) == DIPC_STATUS_OK &&
                dipc_exchange_step(&exchange, &step, NULL) == DIPC_STATUS_OK && step.len == len,
            "no server");
    memcpy(step.data, request, len);
    require(dipc_exchange_advance(&exchange, len, NULL) == DIPC_STATUS_OK &&
                dipc_serve_finish(&exchange, NULL, &received, &exchange, NULL) == DIPC_STATUS_OK &&
                dipc_reply_process_info(&exchange, &info, NULL) == DIPC_STATUS_OK &&
                dipc_exchange_step(&exchange, &step, NULL) == DIPC_STATUS_OK,
            "no answer");
    answer_len = step.len;
    memcpy(answer, step.data, answer_len);
}

static const struct {
    const char *name;
    void (*operation)(unsigned times);
} operations[] = {
    {"decode answer, C", decode_answer},
    {"encode request, C", encode_request},
    {"events, C", events},
    {"columns, C", columns},
    {"fields, C", fields},
};

int main(void) {
    size_t count = sizeof operations / sizeof *operations, size = 1 << 20;
    require((trace = (uint8_t *)malloc(size)) != NULL, "no memory");
    trace_len = fread(trace, 1, size, stdin);
    write_answer();
    for (size_t i = 0; i < count; i++)
        puts(operations[i].name);
    for (size_t i = 0; i < count; i++) {
        part_ends();
        operations[i].operation(2);
        part_ends();
        operations[i].operation(12);
    }
    part_ends();
    free(trace);
    return 0;
}
