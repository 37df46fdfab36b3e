/* Misuse that can be seen is an error. */
#include <dotnet_ipc.h>
#include <stdio.h>
#include <string.h>

static int failures;

#define EXPECT(expected, expression)                                                                                   \
    do {                                                                                                               \
        int actual = (int)(expression);                                                                                \
        if (actual != (int)(expected)) {                                                                               \
            printf("line %d: %s is %d\n", __LINE__, #expression, actual);                                              \
            failures++;                                                                                                \
        }                                                                                                              \
    } while (0)

static void ignore(void *context, const dipc_part *part) {
    (void)context;
    (void)part;
}

static void texts(void) {
    static const uint16_t units[2] = {'a', 'b'};
    char utf8[4];
    size_t len;
    dipc_text text = {NULL, 0, DIPC_TEXT_UTF8};
    EXPECT(DIPC_STATUS_OK, dipc_text_to_utf8(text, utf8, 1, &len));
    text.len = 1;
    EXPECT(DIPC_STATUS_NULL_POINTER, dipc_text_to_utf8(text, utf8, 4, &len));
    text.data = "\xff";
    EXPECT(DIPC_STATUS_INVALID_ARGUMENT, dipc_text_to_utf8(text, utf8, 4, &len));
    EXPECT(false, dipc_text_equals(text, text));
    text.form = 9;
    EXPECT(DIPC_STATUS_INVALID_ARGUMENT, dipc_text_to_utf8(text, utf8, 4, &len));
    text.form = DIPC_TEXT_UTF16;
    text.data = (const char *)units + 1;
    EXPECT(DIPC_STATUS_MISALIGNED, dipc_text_to_utf8(text, utf8, 4, &len));
    text.len = SIZE_MAX;
    text.data = units;
    EXPECT(DIPC_STATUS_INVALID_LENGTH, dipc_text_to_utf8(text, utf8, 4, &len));
    text.form = DIPC_TEXT_WIRE;
    EXPECT(DIPC_STATUS_INVALID_LENGTH, dipc_text_to_utf16(text, NULL, 0, &len));
    EXPECT(DIPC_STATUS_NULL_POINTER, dipc_text_to_utf8(dipc_utf8("a"), NULL, 4, &len));
    EXPECT(DIPC_STATUS_BUFFER_TOO_SMALL, dipc_text_to_utf8(dipc_utf8("a\xc3\xa4"), utf8, 3, &len));
    EXPECT(4, len);
    EXPECT(0, strcmp(utf8, "a")); /* no half of a character */
    EXPECT(true, dipc_text_equals(dipc_utf8(NULL), dipc_utf8(NULL)));
    EXPECT(false, dipc_text_equals(dipc_utf8(NULL), dipc_utf8("")));
}

static void messages(void) {
    static const uint8_t request[] = "DOTNET_IPC_V1\0\x14\0\x04\x01\0";
    dipc_message message;
    dipc_part part;
    size_t detail;
    EXPECT(DIPC_STATUS_MORE, dipc_parse(NULL, 0, &message, &detail));
    EXPECT(20, detail);
    EXPECT(DIPC_STATUS_NULL_POINTER, dipc_parse(NULL, 1, &message, NULL));
    EXPECT(DIPC_STATUS_NULL_POINTER, dipc_parse(request, 20, NULL, NULL));
    EXPECT(DIPC_STATUS_INVALID_LENGTH, dipc_parse(request, SIZE_MAX, &message, NULL));
    EXPECT(DIPC_STATUS_NULL_POINTER, dipc_inspect(request, 20, 0, NULL, NULL, NULL));
    EXPECT(DIPC_STATUS_OK, dipc_inspect(request, 20, 0, ignore, NULL, NULL));
    EXPECT(DIPC_STATUS_NULL_POINTER, dipc_find(request, 20, 0, NULL, &part, NULL));
    EXPECT(DIPC_STATUS_NULL_POINTER, dipc_find(request, 20, 0, "size", NULL, NULL));
    EXPECT(DIPC_STATUS_NOT_FOUND, dipc_find(request, 20, 0, "siz", &part, NULL));
    EXPECT(DIPC_STATUS_NOT_FOUND, dipc_find(request, 20, 0, "sizes", &part, NULL));
    EXPECT(DIPC_STATUS_OK, dipc_find(request, 20, 0, "size", &part, NULL));
    EXPECT(DIPC_STATUS_OK, dipc_check(request, 20, NULL, NULL));
    EXPECT(DIPC_STATUS_NULL_POINTER, dipc_command_find(0x0401, NULL));
    EXPECT(DIPC_STATUS_NOT_FOUND, dipc_command_find(0x0499, NULL));
    EXPECT(DIPC_STATUS_NULL_POINTER, dipc_path_text(NULL, NULL, 0, NULL));
}

static void requests(void) {
    uint8_t buf[64];
    size_t len;
    dipc_provider provider;
    dipc_providers providers = {NULL, 1};
    dipc_session_config session;
    memset(&session, 0, sizeof session);
    memset(&provider, 0, sizeof provider);
    EXPECT(DIPC_STATUS_NULL_POINTER, dipc_build_StopTracing(NULL, 64, &len, 1));
    EXPECT(DIPC_STATUS_OK, dipc_build_StopTracing(buf, 64, NULL, 1));
    EXPECT(DIPC_STATUS_NULL_POINTER, dipc_build_CollectTracing(buf, 64, &len, 1, 1, providers));
    providers.items = (const dipc_provider *)((const char *)&provider + 1);
    EXPECT(DIPC_STATUS_MISALIGNED, dipc_build_CollectTracing(buf, 64, &len, 1, 1, providers));
    providers.items = &provider;
    provider.name.form = 9;
    EXPECT(DIPC_STATUS_INVALID_ARGUMENT, dipc_build_CollectTracing(buf, 64, &len, 1, 1, providers));
    session.session_type = 2;
    EXPECT(DIPC_STATUS_INVALID_ARGUMENT, dipc_build_CollectTracing5(buf, 64, &len, session));
}

static void exchanges(void) {
    uint8_t buf[64], larger[128];
    uint64_t session_id;
    size_t len, detail;
    dipc_exchange exchange;
    dipc_step step;
    dipc_answer answer;
    dipc_text entry;
    dipc_process_info info;
    memset(&exchange, 0, sizeof exchange);
    EXPECT(sizeof exchange, dipc_exchange_size());
    EXPECT(DIPC_STATUS_NULL_POINTER, dipc_exchange_step(NULL, &step, NULL));
    EXPECT(DIPC_STATUS_WRONG_KIND, dipc_exchange_step(&exchange, &step, NULL));
    EXPECT(DIPC_STATUS_WRONG_KIND, dipc_exchange_advance(&exchange, 1, NULL));
    EXPECT(DIPC_STATUS_WRONG_KIND, dipc_exchange_set_buffer(&exchange, buf, sizeof buf, NULL));
    EXPECT(DIPC_STATUS_WRONG_KIND, dipc_call_finish(&exchange, &answer, NULL));
    EXPECT(false, dipc_environment_is_finished(&exchange));
    EXPECT(DIPC_STATUS_MISALIGNED, dipc_exchange_step((dipc_exchange *)((char *)&exchange + 1), &step, NULL));

    EXPECT(DIPC_STATUS_OK, dipc_build_GetProcessEnvironment(buf, sizeof buf, &len));
    EXPECT(DIPC_STATUS_UNEXPECTED_END, dipc_call_init(&exchange, buf, sizeof buf, len - 1, NULL));
    EXPECT(DIPC_STATUS_TRAILING_BYTES, dipc_call_init(&exchange, buf, sizeof buf, len + 1, NULL));
    EXPECT(DIPC_STATUS_UNEXPECTED_END, dipc_call_init(&exchange, buf, len, len + 1, NULL));
    EXPECT(DIPC_STATUS_NULL_POINTER, dipc_call_init(NULL, buf, sizeof buf, len, NULL));
    EXPECT(DIPC_STATUS_OK, dipc_call_init(&exchange, buf, sizeof buf, len, NULL));
    EXPECT(DIPC_STATUS_CLOSED, dipc_call_finish(&exchange, &answer, NULL)); /* too early */
    EXPECT(DIPC_STATUS_WRONG_KIND, dipc_environment_next(&exchange, &entry, NULL));
    EXPECT(DIPC_STATUS_NULL_POINTER, dipc_exchange_step(&exchange, NULL, NULL));
    EXPECT(DIPC_STATUS_OK, dipc_exchange_step(&exchange, &step, NULL));
    EXPECT(DIPC_STEP_SEND, step.kind);
    EXPECT(DIPC_STATUS_OK, dipc_exchange_advance(&exchange, SIZE_MAX, NULL)); /* more than there is: all */
    EXPECT(DIPC_STATUS_OK, dipc_exchange_step(&exchange, &step, NULL));
    EXPECT(DIPC_STEP_RECEIVE, step.kind);

    /* The header announces 26 + 50 bytes. */
    memcpy(step.data, "DOTNET_IPC_V1\0\x4c\0\xff\0\0", 20);
    EXPECT(DIPC_STATUS_BUFFER_TOO_SMALL, dipc_exchange_advance(&exchange, 20, &detail));
    EXPECT(0x4c, detail);
    EXPECT(DIPC_STATUS_BUFFER_TOO_SMALL, dipc_exchange_step(&exchange, &step, &detail));
    EXPECT(DIPC_STATUS_BUFFER_TOO_SMALL, dipc_exchange_set_buffer(&exchange, buf, sizeof buf, &detail));
    EXPECT(DIPC_STATUS_NULL_POINTER, dipc_exchange_set_buffer(&exchange, NULL, sizeof buf, &detail));
    memcpy(larger, buf, sizeof buf);
    EXPECT(DIPC_STATUS_OK, dipc_exchange_set_buffer(&exchange, larger, sizeof larger, &detail));
    EXPECT(DIPC_STATUS_OK, dipc_exchange_step(&exchange, &step, NULL));
    EXPECT(0x4c - 20, step.len);
    memset(step.data, 0, step.len);
    step.data[0] = 10; /* incoming_bytes */
    EXPECT(DIPC_STATUS_OK, dipc_exchange_advance(&exchange, step.len, NULL));
    EXPECT(DIPC_STATUS_OK, dipc_exchange_step(&exchange, &step, NULL));
    EXPECT(DIPC_STEP_DONE, step.kind);
    EXPECT(DIPC_STATUS_NULL_POINTER, dipc_call_finish(&exchange, NULL, NULL));
    EXPECT(DIPC_STATUS_OK, dipc_call_finish(&exchange, &answer, NULL));
    EXPECT(DIPC_STATUS_OK, dipc_call_finish(&exchange, &answer, NULL)); /* again */
    EXPECT(DIPC_STATUS_OK, dipc_exchange_advance(&exchange, 1, NULL)); /* after the end: nothing */

    EXPECT(DIPC_STATUS_INVALID_ARGUMENT, dipc_read_process_info(answer.bytes, answer.len, 1, &info, NULL));
    EXPECT(DIPC_STATUS_OK, dipc_read_session_id(answer.bytes, answer.len, &session_id, NULL));
    EXPECT(DIPC_STATUS_UNEXPECTED, (dipc_build_GetProcessInfo(buf, sizeof buf, &len),
                                    dipc_read_session_id(buf, len, &session_id, &detail)));
    EXPECT(0x0400, detail);

    EXPECT(DIPC_STATUS_LIMIT_EXCEEDED,
           dipc_environment_init(&exchange, answer.bytes, answer.len, 9, larger, sizeof larger, &detail));
    EXPECT(10, detail);
    EXPECT(DIPC_STATUS_BUFFER_TOO_SMALL,
           dipc_environment_init(&exchange, answer.bytes, answer.len, 99, larger, 3, &detail));
    EXPECT(DIPC_STATUS_OK,
           dipc_environment_init(&exchange, answer.bytes, answer.len, 99, larger, sizeof larger, &detail));
    EXPECT(DIPC_STATUS_WRONG_KIND, dipc_call_finish(&exchange, &answer, NULL));
    EXPECT(DIPC_STATUS_NOT_FOUND, dipc_environment_next(&exchange, &entry, NULL));
    EXPECT(DIPC_STATUS_OK, dipc_exchange_step(&exchange, &step, NULL));
    EXPECT(10, step.len);
    memcpy(step.data, "\1\0\0\0\1\0\0\0\0", 10);
    EXPECT(DIPC_STATUS_OK, dipc_exchange_advance(&exchange, 10, NULL));
    EXPECT(DIPC_STATUS_OK, dipc_environment_next(&exchange, &entry, NULL));
    EXPECT(0, entry.len);
    EXPECT(true, dipc_environment_is_finished(&exchange));
    EXPECT(DIPC_STATUS_NOT_FOUND, dipc_environment_next(&exchange, &entry, NULL));
}

static bool refuse(void *context, const dipc_field_value *value) {
    (void)value;
    ++*(int *)context;
    return false;
}

static void traces(void) {
    static const uint8_t record[] = "\1\0\0\0P\0\0\0\7\0\0\0T\0\0\0"
                                    "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"
                                    "\2\0\0\0\x9\0\0\0n\0\0\0\x9\0\0\0m\0\0";
    dipc_parser parser;
    dipc_record next;
    dipc_metadata metadata;
    dipc_end end;
    size_t detail;
    int visited = 0;
    char text[64];
    memset(&parser, 0, sizeof parser);
    memset(&metadata, 0, sizeof metadata);
    EXPECT(DIPC_STATUS_WRONG_KIND, dipc_parser_next(&parser, NULL, 0, &next));
    EXPECT(DIPC_STATUS_WRONG_KIND, dipc_parser_finish(&parser, NULL, 0, &end));
    EXPECT(DIPC_STATUS_WRONG_KIND, dipc_parser_skip_block(&parser));
    EXPECT(0, dipc_parser_release(&parser));
    EXPECT(DIPC_STATUS_NULL_POINTER, dipc_parser_init(NULL));
    EXPECT(DIPC_STATUS_OK, dipc_parser_init(&parser));
    EXPECT(DIPC_STATUS_NULL_POINTER, dipc_parser_next(&parser, NULL, 1, &next));
    EXPECT(DIPC_STATUS_NULL_POINTER, dipc_parser_next(&parser, NULL, 0, NULL));
    EXPECT(DIPC_STATUS_OK, dipc_parser_next(&parser, NULL, 0, &next));
    EXPECT(DIPC_RECORD_MORE, next.kind);
    EXPECT(DIPC_STATUS_OK, dipc_parser_next(&parser, record, sizeof record, &next));
    EXPECT(DIPC_RECORD_END, next.kind);
    EXPECT(DIPC_END_CORRUPT, next.u.end.kind);
    EXPECT(DIPC_STATUS_OK, dipc_parser_end_text(&parser, record, sizeof record, text, sizeof text, NULL));

    EXPECT(DIPC_STATUS_INVALID_ARGUMENT, dipc_metadata_decode(5, record, sizeof record, &metadata, NULL));
    EXPECT(DIPC_STATUS_UNEXPECTED_END, dipc_metadata_decode(4, record, 9, &metadata, NULL));
    EXPECT(DIPC_STATUS_WRONG_KIND, dipc_metadata_values(&metadata, record, 8, refuse, &visited, NULL));
    EXPECT(DIPC_STATUS_OK, dipc_metadata_decode(4, record, sizeof record, &metadata, NULL));
    EXPECT(DIPC_STATUS_OK, metadata.problem);
    EXPECT(7, metadata.event_id);
    EXPECT(-1, metadata.opcode);
    EXPECT(DIPC_STATUS_NULL_POINTER, dipc_metadata_values(&metadata, record, 8, NULL, NULL, NULL));
    EXPECT(DIPC_STATUS_OK, dipc_metadata_values(&metadata, record, 8, refuse, &visited, NULL));
    EXPECT(1, visited); /* it wanted no more */
    EXPECT(DIPC_STATUS_UNEXPECTED_END, dipc_metadata_values(&metadata, record, 3, refuse, &visited, &detail));
}

static void sessions(void) {
    dipc_session session;
    dipc_step step;
    memset(&session, 0, sizeof session);
    EXPECT(sizeof session, dipc_session_size());
    EXPECT(DIPC_STATUS_WRONG_KIND, dipc_session_stream(&session, NULL, 0));
    EXPECT(DIPC_STATUS_WRONG_KIND, dipc_session_stop(&session, 1));
    EXPECT(DIPC_STATUS_WRONG_KIND, dipc_session_stop_step(&session, &step));
    EXPECT(DIPC_STATUS_WRONG_KIND, dipc_session_stop_advance(&session, DIPC_STOP_CONNECTED, 0));
    EXPECT(DIPC_STATUS_WRONG_KIND, dipc_session_tick(&session, 1));
    EXPECT(DIPC_STATUS_WRONG_KIND, dipc_session_abandon(&session));
    EXPECT(DIPC_SESSION_RUNNING, dipc_session_end(&session));
    EXPECT(false, dipc_session_wants_stream(&session));
    EXPECT(DIPC_STATUS_OK, dipc_session_init(&session, 7));
    EXPECT(true, dipc_session_wants_stream(&session));
    EXPECT(true, dipc_session_until(&session) == UINT64_MAX);
    EXPECT(DIPC_STATUS_NULL_POINTER, dipc_session_stream(&session, NULL, 1));
    EXPECT(DIPC_STATUS_NULL_POINTER, dipc_session_stop_step(&session, NULL));
    EXPECT(DIPC_STATUS_INVALID_ARGUMENT, dipc_session_stop_advance(&session, 9, 0));
    EXPECT(DIPC_STATUS_OK, dipc_session_stop(&session, 100));
    EXPECT(DIPC_STATUS_OK, dipc_session_stop_step(&session, &step));
    EXPECT(DIPC_STEP_CONNECT, step.kind);
    EXPECT(DIPC_STATUS_OK, dipc_session_stop_advance(&session, DIPC_STOP_FAILED, 0));
    EXPECT(true, dipc_session_stop_failed(&session));
    EXPECT(DIPC_STATUS_OK, dipc_session_stop(&session, 100));
    EXPECT(DIPC_STATUS_OK, dipc_session_tick(&session, 100));
    EXPECT(DIPC_SESSION_TIMED_OUT, dipc_session_end(&session));
}

static void servers(void) {
    uint8_t receive[64], send[64];
    size_t detail;
    dipc_exchange exchange;
    dipc_request request;
    dipc_process_info info;
    dipc_step step;
    memset(&exchange, 0, sizeof exchange);
    memset(&info, 0, sizeof info);
    EXPECT(DIPC_STATUS_WRONG_KIND, dipc_serve_finish(&exchange, &request, &exchange, NULL));
    EXPECT(DIPC_STATUS_WRONG_KIND, dipc_reply_ok(&exchange, NULL));
    EXPECT(DIPC_STATUS_WRONG_KIND, dipc_reply_process_info(&exchange, &info, NULL));
    EXPECT(DIPC_STATUS_BUFFER_TOO_SMALL, dipc_serve_init(&exchange, receive, 19, send, 64, &detail));
    EXPECT(20, detail);
    EXPECT(DIPC_STATUS_BUFFER_TOO_SMALL, dipc_serve_init(&exchange, receive, 64, send, 23, &detail));
    EXPECT(24, detail);
    EXPECT(DIPC_STATUS_INVALID_ARGUMENT, dipc_serve_init(&exchange, receive, 64, receive + 32, 32, NULL));
    EXPECT(DIPC_STATUS_NULL_POINTER, dipc_serve_init(&exchange, NULL, 64, send, 64, NULL));
    EXPECT(DIPC_STATUS_NULL_POINTER, dipc_serve_init(&exchange, receive, 64, NULL, 64, NULL));

    EXPECT(DIPC_STATUS_OK, dipc_serve_init(&exchange, receive, 64, send, 64, NULL));
    EXPECT(DIPC_STATUS_WRONG_KIND, dipc_reply_ok(&exchange, NULL)); /* too early */
    EXPECT(DIPC_STATUS_OK, dipc_exchange_step(&exchange, &step, NULL));
    EXPECT(20, step.len);
    memcpy(step.data, "DOTNET_IPC_V1\0\x14\0\4\4\0", 20);
    EXPECT(DIPC_STATUS_OK, dipc_exchange_advance(&exchange, 20, NULL));
    EXPECT(DIPC_STATUS_NULL_POINTER, dipc_serve_finish(&exchange, NULL, &exchange, NULL));
    EXPECT(DIPC_STATUS_NULL_POINTER, dipc_serve_finish(&exchange, &request, NULL, NULL));
    EXPECT(DIPC_STATUS_OK, dipc_serve_finish(&exchange, &request, &exchange, NULL));
    EXPECT(DIPC_COMMAND_GET_PROCESS_INFO2, request.code);
    EXPECT(DIPC_STATUS_WRONG_KIND, dipc_serve_finish(&exchange, &request, &exchange, NULL)); /* twice */
    EXPECT(DIPC_STATUS_INVALID_ARGUMENT, dipc_reply_ok(&exchange, NULL)); /* another response */
    EXPECT(DIPC_STATUS_INVALID_ARGUMENT, dipc_reply_session_id(&exchange, 1, NULL));
    EXPECT(DIPC_STATUS_INVALID_ARGUMENT, dipc_reply_refuse(&exchange, 1, dipc_utf8("no text here"), NULL));
    EXPECT(DIPC_STATUS_NULL_POINTER, dipc_reply_process_info(&exchange, NULL, NULL));
    info.command_line = dipc_utf8("no room");
    EXPECT(DIPC_STATUS_BUFFER_TOO_SMALL, dipc_reply_process_info(&exchange, &info, &detail));
    EXPECT(64 + 2 * 8, detail);
    EXPECT(DIPC_STATUS_OK, dipc_exchange_step(&exchange, &step, NULL));
    EXPECT(24, step.len); /* a refusal */
    EXPECT(DIPC_STATUS_OK, dipc_exchange_advance(&exchange, 1, NULL));
    EXPECT(DIPC_STATUS_ALREADY_SENDING, dipc_reply_refuse(&exchange, 1, dipc_utf8(NULL), NULL));
}

static void writers(void) {
    uint8_t buf[4096];
    size_t detail;
    dipc_writer writer;
    dipc_trace trace;
    dipc_event event;
    dipc_description description;
    dipc_field field;
    dipc_output out;
    memset(&writer, 0, sizeof writer);
    memset(&trace, 0, sizeof trace);
    memset(&event, 0, sizeof event);
    memset(&description, 0, sizeof description);
    EXPECT(sizeof writer, dipc_writer_size());
    EXPECT(DIPC_STATUS_WRONG_KIND, dipc_writer_event(&writer, &event, &out));
    EXPECT(DIPC_STATUS_BUFFER_TOO_SMALL, dipc_writer_init(&writer, buf, 1, &detail));
    EXPECT(DIPC_STATUS_OK, dipc_writer_init(&writer, buf, sizeof buf, NULL));
    EXPECT(DIPC_STATUS_NULL_POINTER, dipc_writer_trace(&writer, NULL, &out));
    EXPECT(DIPC_STATUS_NULL_POINTER, dipc_writer_flush(&writer, NULL));
    EXPECT(DIPC_STATUS_INVALID_ARGUMENT, dipc_writer_trace(&writer, &trace, &out)); /* without a clock */
    trace.frequency = 1000;
    trace.pointer_size = 8;
    EXPECT(DIPC_STATUS_OK, dipc_writer_trace(&writer, &trace, &out));
    description.field_count = 1;
    EXPECT(DIPC_STATUS_NULL_POINTER, dipc_writer_describe(&writer, &description, &out));
    description.fields = &field;
    description.field_count = DIPC_MAX_FIELDS + 1;
    field.name = dipc_utf8("n");
    field.kind = 99;
    description.field_count = 1;
    EXPECT(DIPC_STATUS_INVALID_ARGUMENT, dipc_writer_describe(&writer, &description, &out));
    event.payload = NULL;
    event.payload_len = 1;
    EXPECT(DIPC_STATUS_NULL_POINTER, dipc_writer_event(&writer, &event, &out));
    do
        EXPECT(DIPC_STATUS_OK, dipc_writer_flush(&writer, &out));
    while (out.len > 0);
    event.payload = buf;
    event.payload_len = sizeof buf;
    EXPECT(DIPC_STATUS_BUFFER_TOO_SMALL, dipc_writer_event(&writer, &event, &out));
}

int main(void) {
    EXPECT(DIPC_VERSION, dipc_version());
    texts();
    messages();
    requests();
    exchanges();
    traces();
    sessions();
    servers();
    writers();
    printf("misuse: %d failures\n", failures);
    return failures != 0;
}
