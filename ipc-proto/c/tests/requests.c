/* Builds requests of every command, and compares them with the files of testdata/messages: `requests FOLDER`. */
#include "hex.h"
#include <dotnet_ipc.h>
#include <string.h>

static const char *folder;
static uint8_t buf[4096];
static size_t len;
static int failures;
static char built[64][40];
static size_t count;

/* Compares the request in `buf` with a file. */
static void expect(const char *name, dipc_status status) {
    char path[512];
    size_t expected_len;
    snprintf(path, sizeof path, "%s/%s.request.hex", folder, name);
    uint8_t *expected = read_hex(path, &expected_len);
    if (status != DIPC_STATUS_OK || len != expected_len || memcmp(buf, expected, len) != 0) {
        printf("%s: status %d, %zu bytes instead of %zu\n", name, (int)status, len, expected_len);
        failures++;
    }
    free(expected);
    snprintf(built[count], sizeof built[count], "%.*s", (int)strcspn(name, "."), name);
    count++;
}

#define EXPECT(name, command, ...)                                                                                     \
    do {                                                                                                               \
        /* The exact size is needed, and one byte less is too small. */                                                \
        dipc_status small = dipc_build_##command(NULL, 0, &len, __VA_ARGS__);                                          \
        size_t needed = len;                                                                                           \
        if (small != DIPC_STATUS_BUFFER_TOO_SMALL ||                                                                   \
            dipc_build_##command(buf, needed - 1, &len, __VA_ARGS__) != DIPC_STATUS_BUFFER_TOO_SMALL ||                \
            len != needed) {                                                                                           \
            printf("%s: the required size is wrong\n", name);                                                          \
            failures++;                                                                                                \
        }                                                                                                              \
        memset(buf, 0xa5, sizeof buf);                                                                                 \
        expect(name, dipc_build_##command(buf, needed, &len, __VA_ARGS__));                                            \
    } while (0)

static dipc_provider provider(uint64_t keywords, uint32_t level, const char *name, const char *arguments) {
    dipc_provider provider;
    provider.keywords = keywords;
    provider.level = level;
    provider.name = dipc_utf8(name);
    provider.arguments = dipc_utf8(arguments);
    return provider;
}

static dipc_providers one(const dipc_provider *provider) {
    dipc_providers list = {provider, 1};
    return list;
}

static void tracing(void) {
    static const char runtime[] = "Microsoft-Windows-DotNETRuntime";
    dipc_provider list[4];
    list[0] = provider(1, DIPC_LEVEL_INFORMATIONAL, runtime, NULL);
    EXPECT("CollectTracing.netperf", CollectTracing, 1, DIPC_FORMAT_NET_PERF, one(list));
    list[0] = provider(263882790666240, DIPC_LEVEL_INFORMATIONAL, runtime, "");
    list[1] = provider(UINT64_MAX, DIPC_LEVEL_VERBOSE, "System.Runtime",
                       "EventCounterIntervalSec=1;\"Semi;colon\"=\"a=b;c\";Quote\"=x\"y");
    list[2] = provider(0, DIPC_LEVEL_LOG_ALWAYS, "Empty", "");
    list[3] = provider(9223372036854775808u, DIPC_LEVEL_CRITICAL, "Bindestrich-\xc3\x84-\xe4\xb8\x96", "k=");
    dipc_providers four = {list, 4};
    EXPECT("CollectTracing2.four-providers", CollectTracing2, 1, DIPC_FORMAT_NET_TRACE, false, four);
    list[0] = provider(89142578365, DIPC_LEVEL_VERBOSE, runtime, "");
    EXPECT("CollectTracing3.no-stackwalk", CollectTracing3, 256, DIPC_FORMAT_NET_TRACE, true, false, one(list));
    EXPECT("CollectTracing4.rundown-keyword", CollectTracing4, 64, DIPC_FORMAT_NET_TRACE, 16, true, one(list));
}

static void filters(void) {
    static const uint32_t ids[] = {1, 2, 3};
    static const dipc_event_ids none = {NULL, 0}, first = {ids, 1}, three = {ids, 3};
    dipc_streaming_provider streaming;
    dipc_session_config6 session;
    memset(&session, 0, sizeof session);
    memset(&streaming, 0, sizeof streaming);
    streaming.keywords = 1;
    streaming.level = DIPC_LEVEL_INFORMATIONAL;
    streaming.name = dipc_utf8("Microsoft-Windows-DotNETRuntime");
    streaming.filter.enable = true;
    streaming.filter.event_ids = three;
    session.session.buffer_mb = 1;
    session.session.format = DIPC_FORMAT_NET_TRACE;
    session.session.stackwalk = true;
    session.session.providers.items = &streaming;
    session.session.providers.count = 1;
    EXPECT("CollectTracing5.filter", CollectTracing5, session.session);
    streaming.keywords = 89142578365;
    streaming.level = DIPC_LEVEL_VERBOSE;
    streaming.arguments = dipc_utf8("");
    memset(&streaming.filter, 0, sizeof streaming.filter);
    session.session.buffer_mb = 64;
    session.session.rundown_keyword = 2147615033;
    session.session_buffer_mode = DIPC_BUFFER_MODE_BLOCK;
    EXPECT("CollectTracing6.block", CollectTracing6, session);

    dipc_user_events_provider providers[2];
    dipc_tracepoint_set sets[2];
    memset(providers, 0, sizeof providers);
    sets[0].tracepoint_name = dipc_utf8("one");
    sets[0].event_ids = first;
    sets[1].tracepoint_name = dipc_utf8("none");
    sets[1].event_ids = none;
    providers[0].keywords = 1;
    providers[0].level = DIPC_LEVEL_VERBOSE;
    providers[0].name = dipc_utf8("P");
    providers[0].arguments = dipc_utf8("");
    providers[0].filter.enable = true;
    providers[0].filter.event_ids = three;
    providers[0].tracepoints.default_tracepoint_name = dipc_utf8("rest");
    providers[0].tracepoints.sets.items = sets;
    providers[0].tracepoints.sets.count = 2;
    providers[1].keywords = UINT64_MAX;
    providers[1].name = dipc_utf8("Q");
    providers[1].tracepoints.default_tracepoint_name = dipc_utf8("q");
    session.session.session_type = DIPC_SESSION_TYPE_USER_EVENTS;
    session.session.user_events_providers.items = providers;
    session.session.user_events_providers.count = 2;
    EXPECT("CollectTracing5.user-events-sets", CollectTracing5, session.session);
    memset(&providers[0].filter, 0, sizeof providers[0].filter);
    memset(&providers[0].tracepoints.sets, 0, sizeof providers[0].tracepoints.sets);
    providers[0].tracepoints.default_tracepoint_name = dipc_utf8("tp");
    session.session.rundown_keyword = 0;
    session.session.user_events_providers.count = 1;
    EXPECT("CollectTracing6.user-events", CollectTracing6, session);
}

static void others(void) {
    static const dipc_guid guid = {
        {0x67, 0x45, 0x3e, 0x12, 0x9b, 0xe8, 0xd3, 0x12, 0xa4, 0x56, 0x42, 0x66, 0x14, 0x17, 0x40, 0x00}};
    static const uint8_t bytes[] = {1, 2, 3};
    static const dipc_client_data data = {bytes, 3};
    /* UTF-16 in both forms: lone surrogates are kept. */
    static const uint16_t surrogate[] = {0xd800};
    static const char wire[] = "?L\0A\0B\0_\0X\0";
    dipc_text lone = {surrogate, 1, DIPC_TEXT_UTF16};
    dipc_text lab_x = {wire + 1, 5, DIPC_TEXT_WIRE};
    EXPECT("GenerateCoreDump.logging", GenerateCoreDump, dipc_utf8("/tmp/core"), DIPC_DUMP_FULL, 1);
    EXPECT("GenerateCoreDump.null-name", GenerateCoreDump, dipc_utf8(NULL), DIPC_DUMP_NORMAL, 0);
    EXPECT("GenerateCoreDump2.all-flags", GenerateCoreDump2, dipc_utf8("/nonexistent/dir/x.dmp"), DIPC_DUMP_NORMAL, 255);
    EXPECT("GenerateCoreDump3.triage", GenerateCoreDump3, dipc_utf8("/tmp/core_Triage"), DIPC_DUMP_TRIAGE, 0);
    EXPECT("StopTracing", StopTracing, 140373221446784);
    EXPECT("AttachProfiler.client-data", AttachProfiler, 10, guid, dipc_utf8("/p/prof.so"), data);
    EXPECT("StartupProfiler", StartupProfiler, guid, dipc_utf8("/p/prof.so"));
    EXPECT("SetEnvironmentVariable.absent", SetEnvironmentVariable, dipc_utf8("LAB_DEL"), dipc_utf8(NULL));
    EXPECT("SetEnvironmentVariable.emoji", SetEnvironmentVariable, lab_x, dipc_utf8("v\xc3\xa4rde \xf0\x9f\x98\x80"));
    EXPECT("SetEnvironmentVariable.lone-surrogate", SetEnvironmentVariable, lab_x, lone);
    EXPECT("EnablePerfMap.jitdump", EnablePerfMap, DIPC_PERF_MAP_JIT_DUMP);
    EXPECT("ApplyStartupHook", ApplyStartupHook, dipc_utf8("/hooks/My Hook.dll"));
    expect("GetProcessInfo", dipc_build_GetProcessInfo(buf, sizeof buf, &len));
    expect("ResumeRuntime", dipc_build_ResumeRuntime(buf, sizeof buf, &len));
    expect("GetProcessEnvironment", dipc_build_GetProcessEnvironment(buf, sizeof buf, &len));
    expect("GetProcessInfo2", dipc_build_GetProcessInfo2(buf, sizeof buf, &len));
    expect("DisablePerfMap", dipc_build_DisablePerfMap(buf, sizeof buf, &len));
    expect("GetProcessInfo3", dipc_build_GetProcessInfo3(buf, sizeof buf, &len));
}

/* Reads the providers of the longest request, and the ids of a filter. The time is in proportion to its length. */
static void read_lists(void) {
    enum { PROVIDERS = 2900, IDS = 16000 };
    static uint8_t message[DIPC_MESSAGE_MAX_LEN];
    static dipc_provider list[PROVIDERS];
    static uint32_t ids[IDS];
    dipc_providers providers = {list, PROVIDERS};
    dipc_requested_session session;
    dipc_requested_provider read;
    uint64_t sum = 0;
    uint32_t id, last = 0;
    for (size_t i = 0; i < PROVIDERS; i++)
        list[i] = provider(i, DIPC_LEVEL_ERROR, "", NULL);
    dipc_build_CollectTracing4(message, sizeof message, &len, 1, DIPC_FORMAT_NET_TRACE, 0, true, providers);
    dipc_status status = dipc_request_session(message, len, &session, NULL);
    while (status == DIPC_STATUS_OK && dipc_next_provider(&session.providers, &read) == DIPC_STATUS_OK)
        sum += read.keywords + read.level;
    if (sum != (uint64_t)PROVIDERS * (PROVIDERS - 1) / 2 + PROVIDERS * DIPC_LEVEL_ERROR) {
        printf("the list of providers is not read: status %d\n", (int)status);
        failures++;
    }

    dipc_streaming_provider streaming;
    dipc_session_config config;
    memset(&streaming, 0, sizeof streaming);
    memset(&config, 0, sizeof config);
    for (uint32_t i = 0; i < IDS; i++)
        ids[i] = i;
    streaming.name = dipc_utf8("P");
    streaming.filter.event_ids.items = ids;
    streaming.filter.event_ids.count = IDS;
    config.providers.items = &streaming;
    config.providers.count = 1;
    dipc_build_CollectTracing5(message, sizeof message, &len, config);
    status = dipc_request_session(message, len, &session, NULL);
    if (status == DIPC_STATUS_OK && dipc_next_provider(&session.providers, &read) == DIPC_STATUS_OK)
        while (dipc_next_event_id(&read.event_ids, &id) == DIPC_STATUS_OK)
            last = id;
    if (last != IDS - 1) {
        printf("the ids of a filter are not read: status %d\n", (int)status);
        failures++;
    }
}

int main(int argc, char **argv) {
    dipc_command_row row;
    if (argc != 2)
        return 2;
    folder = argv[1];
    tracing();
    filters();
    others();
    read_lists();
    for (size_t i = 0; dipc_command_at(i, &row) == DIPC_STATUS_OK; i++) {
        size_t at = 0;
        while (at < count && !dipc_text_equals(dipc_utf8(built[at]), row.name))
            at++;
        if (at == count) {
            printf("no request of %.*s is built here\n", (int)row.name.len, (const char *)row.name.data);
            failures++;
        }
    }
    printf("%zu requests built, %d failures\n", count, failures);
    return failures != 0;
}
