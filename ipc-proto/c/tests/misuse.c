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
    static const uint8_t refused[] = "DOTNET_IPC_V1\0\x18\0\x04\x05\0\0\x04\0\0"; /* EnablePerfMap, type 4 */
    dipc_message message;
    dipc_part part;
    size_t detail, len;
    char text[14];
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
    EXPECT(DIPC_STATUS_VIOLATION, dipc_check(refused, 24, NULL, &detail));
    EXPECT(DIPC_STATUS_OK, dipc_status_field(refused, 24, 0, DIPC_STATUS_VIOLATION, detail, text, 14, &len));
    EXPECT(13, len);
    EXPECT(0, strcmp(text, "perf_map_type"));
    EXPECT(DIPC_STATUS_BUFFER_TOO_SMALL, dipc_status_field(refused, 24, 0, DIPC_STATUS_VIOLATION, 0, text, 13, &len));
    EXPECT(14, len);
    EXPECT(DIPC_STATUS_UNEXPECTED_END, dipc_inspect(refused, 23, 0, ignore, NULL, &detail));
    EXPECT(DIPC_STATUS_OK, dipc_status_field(refused, 23, 0, DIPC_STATUS_UNEXPECTED_END, detail, text, 14, NULL));
    EXPECT(0, strcmp(text, "perf_map_type"));
    EXPECT(DIPC_STATUS_NOT_FOUND, dipc_status_field(request, 20, 0, DIPC_STATUS_VIOLATION, 0, text, 14, &len));
    EXPECT(DIPC_STATUS_NOT_FOUND, dipc_status_field(request, 20, 0, DIPC_STATUS_OK, 0, text, 14, &len));
    EXPECT(DIPC_STATUS_NOT_FOUND, dipc_status_field(request, 20, 0, DIPC_STATUS_BAD_SIZE, 20, text, 14, &len));
    EXPECT(DIPC_STATUS_OK, dipc_status_field(request, 20, 0, DIPC_STATUS_BAD_SIZE, 14, text, 14, &len));
    EXPECT(0, strcmp(text, "size"));
    EXPECT(DIPC_STATUS_NULL_POINTER, dipc_status_field(NULL, 20, 0, DIPC_STATUS_BAD_SIZE, 14, text, 14, NULL));
    EXPECT(DIPC_STATUS_NULL_POINTER, dipc_status_field(request, 20, 0, DIPC_STATUS_BAD_SIZE, 14, NULL, 14, NULL));
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
    EXPECT(DIPC_STATUS_OVERRUN, dipc_exchange_advance(&exchange, (size_t)-1, &detail)); /* an error of write() */
    EXPECT(20, detail);
    EXPECT(DIPC_STATUS_OK, dipc_exchange_step(&exchange, &step, NULL));
    EXPECT(DIPC_STEP_DONE, step.kind);
    EXPECT(DIPC_STATUS_OVERRUN, dipc_call_finish(&exchange, &answer, NULL));
    EXPECT(DIPC_STATUS_OK, dipc_call_init(&exchange, buf, sizeof buf, len, NULL));
    EXPECT(DIPC_STATUS_OK, dipc_exchange_advance(&exchange, 20, NULL));
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
    EXPECT(DIPC_STATUS_OVERRUN, dipc_exchange_advance(&exchange, 1, &detail)); /* after the end nothing is lent */
    EXPECT(0, detail);
    EXPECT(DIPC_STATUS_OK, dipc_call_finish(&exchange, &answer, NULL)); /* but the answer is not lost */

    EXPECT(DIPC_STATUS_INVALID_ARGUMENT, dipc_read_process_info(answer.bytes, answer.len, 1, &info, NULL));
    EXPECT(DIPC_STATUS_OK, dipc_read_SessionId(answer.bytes, answer.len, &session_id, NULL));
    EXPECT(DIPC_STATUS_UNEXPECTED, (dipc_build_GetProcessInfo(buf, sizeof buf, &len),
                                    dipc_read_SessionId(buf, len, &session_id, &detail)));
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

static void columns(void) {
    static const uint8_t nothing[] = "Nettrace";
    uint64_t times[2];
    dipc_parser parser;
    dipc_event_columns columns;
    dipc_record next;
    size_t count = 9;
    memset(&parser, 0, sizeof parser);
    memset(&columns, 0, sizeof columns);
    EXPECT(DIPC_STATUS_WRONG_KIND, dipc_parser_next_events(&parser, nothing, 8, &columns, 2, &count));
    EXPECT(DIPC_STATUS_OK, dipc_parser_init(&parser));
    EXPECT(DIPC_STATUS_NULL_POINTER, dipc_parser_next_events(NULL, nothing, 8, &columns, 2, &count));
    EXPECT(DIPC_STATUS_NULL_POINTER, dipc_parser_next_events(&parser, nothing, 8, NULL, 2, &count));
    EXPECT(DIPC_STATUS_NULL_POINTER, dipc_parser_next_events(&parser, nothing, 8, &columns, 2, NULL));
    EXPECT(DIPC_STATUS_NULL_POINTER, dipc_parser_next_events(&parser, NULL, 8, &columns, 2, &count));
    columns.timestamp = times;
    EXPECT(9, count);
    EXPECT(DIPC_STATUS_OK, dipc_parser_next_events(&parser, nothing, 8, &columns, 2, &count));
    EXPECT(0, count);
    EXPECT(DIPC_STATUS_OK, dipc_parser_next(&parser, nothing, 8, &next));
    EXPECT(DIPC_RECORD_MORE, next.kind);
}

static void fields(void) {
    static const uint8_t record[] = "\1\0\0\0P\0\0\0\7\0\0\0T\0\0\0"
                                    "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"
                                    "\2\0\0\0\x9\0\0\0n\0\0\0\x9\0\0\0m\0\0";
    static const uint8_t payload[] = "\5\0\0\0\6\0\0\0";
    dipc_metadata metadata;
    dipc_described_field fields[3];
    dipc_indexed_value values[3];
    size_t count, detail;
    memset(&metadata, 0, sizeof metadata);
    memset(fields, 0, sizeof fields);
    EXPECT(DIPC_STATUS_WRONG_KIND, dipc_metadata_fields(&metadata, fields, 3, &count));
    EXPECT(DIPC_STATUS_OK, dipc_metadata_decode(4, record, sizeof record, &metadata, NULL));
    EXPECT(DIPC_STATUS_NULL_POINTER, dipc_metadata_fields(NULL, fields, 3, &count));
    EXPECT(DIPC_STATUS_NULL_POINTER, dipc_metadata_fields(&metadata, NULL, 3, &count));
    EXPECT(DIPC_STATUS_NULL_POINTER, dipc_metadata_fields(&metadata, fields, 3, NULL));
    EXPECT(DIPC_STATUS_INVALID_LENGTH, dipc_metadata_fields(&metadata, fields, SIZE_MAX, &count));
    EXPECT(DIPC_STATUS_BUFFER_TOO_SMALL, dipc_metadata_fields(&metadata, NULL, 0, &count));
    EXPECT(2, count);
    EXPECT(DIPC_STATUS_BUFFER_TOO_SMALL, dipc_metadata_fields(&metadata, fields, 1, &count));
    EXPECT(DIPC_STATUS_UNKNOWN_TYPE, dipc_fields_values(fields, 2, payload, 8, values, 3, &count, NULL)); /* one is zeros */
    EXPECT(1, count);
    EXPECT(DIPC_STATUS_OK, dipc_metadata_fields(&metadata, fields, 3, &count));
    EXPECT(2, count);
    EXPECT(true, dipc_text_equals(dipc_utf8("m"), fields[1].name));
    EXPECT(DIPC_TYPE_INT32, fields[1].kind);
    EXPECT(true, fields[1].parent == DIPC_NO_PARENT && fields[1].end == 2);
    EXPECT(DIPC_STATUS_NULL_POINTER, dipc_fields_values(NULL, 2, payload, 8, values, 3, &count, NULL));
    EXPECT(DIPC_STATUS_NULL_POINTER, dipc_fields_values(fields, 2, NULL, 8, values, 3, &count, NULL));
    EXPECT(DIPC_STATUS_NULL_POINTER, dipc_fields_values(fields, 2, payload, 8, NULL, 3, &count, NULL));
    EXPECT(DIPC_STATUS_NULL_POINTER, dipc_fields_values(fields, 2, payload, 8, values, 3, NULL, NULL));
    EXPECT(DIPC_STATUS_INVALID_LENGTH, dipc_fields_values(fields, SIZE_MAX, payload, 8, values, 3, &count, NULL));
    EXPECT(DIPC_STATUS_INVALID_LENGTH, dipc_fields_values(fields, 2, payload, 8, values, SIZE_MAX, &count, NULL));
    EXPECT(DIPC_STATUS_BUFFER_TOO_SMALL, dipc_fields_values(fields, 2, payload, 8, values, 1, &count, &detail));
    EXPECT(true, count == 1 && detail == 2);
    EXPECT(DIPC_STATUS_UNEXPECTED_END, dipc_fields_values(fields, 2, payload, 7, values, 3, &count, &detail));
    EXPECT(true, count == 1 && detail == 4);
    EXPECT(DIPC_STATUS_OK, dipc_fields_values(fields, 2, payload, 8, values, 3, &count, &detail));
    EXPECT(true, count == 2 && values[1].field == 1 && values[1].kind == DIPC_VALUE_INT && values[1].u.number == 6);
    EXPECT(DIPC_STATUS_OK, dipc_fields_values(NULL, 0, payload, 8, values, 3, &count, &detail));
    EXPECT(0, count);
}

static void count_label(void *context, const dipc_label *label) {
    if (label->kind == DIPC_LABEL_OPCODE && label->number == 9)
        (*(int *)context)++;
}

static void labels(void) {
    const uint8_t list[] = {7, 9, 0x87, 9};
    size_t detail;
    int visited = 0;
    EXPECT(DIPC_STATUS_NULL_POINTER, dipc_labels(list, sizeof list, NULL, NULL, NULL));
    EXPECT(DIPC_STATUS_NULL_POINTER, dipc_labels(NULL, 1, count_label, &visited, NULL));
    /* The last label is missing, or has no value. */
    EXPECT(DIPC_STATUS_UNEXPECTED_END, dipc_labels(NULL, 0, count_label, &visited, &detail));
    EXPECT(DIPC_STATUS_UNEXPECTED_END, dipc_labels(list, 2, count_label, &visited, &detail));
    EXPECT(DIPC_STATUS_UNEXPECTED_END, dipc_labels(list, 3, count_label, &visited, &detail));
    EXPECT(0, visited);
    EXPECT(DIPC_STATUS_OK, dipc_labels(list, sizeof list, count_label, &visited, &detail));
    EXPECT(2, visited);
}

static void sessions(void) {
    dipc_session session;
    dipc_step step;
    memset(&session, 0, sizeof session);
    EXPECT(sizeof session, dipc_session_size());
    EXPECT(DIPC_STATUS_WRONG_KIND, dipc_session_stream_advance(&session, NULL, 0));
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
    EXPECT(DIPC_STATUS_NULL_POINTER, dipc_session_stream_advance(&session, NULL, 1));
    EXPECT(DIPC_STATUS_NULL_POINTER, dipc_session_stop_step(&session, NULL));
    EXPECT(DIPC_STATUS_INVALID_ARGUMENT, dipc_session_stop_advance(&session, 9, 0));
    EXPECT(DIPC_STATUS_OK, dipc_session_stop(&session, 100));
    EXPECT(DIPC_STATUS_OK, dipc_session_stop_step(&session, &step));
    EXPECT(DIPC_STEP_CONNECT, step.kind);
    EXPECT(DIPC_STATUS_OK, dipc_session_stop_advance(&session, DIPC_STOP_FAILED, 0));
    EXPECT(true, dipc_session_stop_failed(&session));
    EXPECT(DIPC_STATUS_OK, dipc_session_stop(&session, 100));
    EXPECT(DIPC_STATUS_OK, dipc_session_stop_advance(&session, DIPC_STOP_CONNECTED, 0));
    EXPECT(DIPC_STATUS_OVERRUN, dipc_session_stop_advance(&session, DIPC_STOP_SENT, 29));
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
    EXPECT(DIPC_STATUS_WRONG_KIND, dipc_serve_finish(&exchange, NULL, &request, &exchange, NULL));
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
    EXPECT(DIPC_STATUS_NULL_POINTER, dipc_serve_finish(&exchange, NULL, NULL, &exchange, NULL));
    EXPECT(DIPC_STATUS_NULL_POINTER, dipc_serve_finish(&exchange, NULL, &request, NULL, NULL));
    EXPECT(DIPC_STATUS_OK, dipc_serve_finish(&exchange, NULL, &request, &exchange, NULL));
    EXPECT(DIPC_COMMAND_GET_PROCESS_INFO2, request.code);
    EXPECT(DIPC_STATUS_WRONG_KIND, dipc_serve_finish(&exchange, NULL, &request, &exchange, NULL)); /* twice */
    EXPECT(DIPC_STATUS_INVALID_ARGUMENT, dipc_reply_ok(&exchange, NULL)); /* another response */
    EXPECT(DIPC_STATUS_INVALID_ARGUMENT, dipc_reply_SessionId(&exchange, 1, NULL));
    EXPECT(DIPC_STATUS_INVALID_ARGUMENT, dipc_reply_refuse(&exchange, 1, dipc_utf8("no text here"), NULL));
    EXPECT(DIPC_STATUS_NULL_POINTER, dipc_reply_process_info(&exchange, NULL, NULL));
    info.command_line = dipc_utf8("no room");
    EXPECT(DIPC_STATUS_BUFFER_TOO_SMALL, dipc_reply_process_info(&exchange, &info, &detail));
    EXPECT(64 + 2 * 8, detail);
    EXPECT(DIPC_STATUS_OK, dipc_exchange_step(&exchange, &step, NULL));
    EXPECT(24, step.len); /* a refusal */
    EXPECT(DIPC_STATUS_OK, dipc_exchange_advance(&exchange, 1, NULL));
    EXPECT(DIPC_STATUS_ALREADY_SENDING, dipc_reply_refuse(&exchange, 1, dipc_utf8(NULL), NULL));

    EXPECT(DIPC_STATUS_OK, dipc_serve_init(&exchange, receive, 64, send, 64, NULL));
    EXPECT(DIPC_STATUS_OK, dipc_exchange_advance(&exchange, 0, NULL)); /* closed without a request */
    EXPECT(DIPC_STATUS_UNEXPECTED_END, dipc_serve_finish(&exchange, NULL, &request, &exchange, NULL));
    EXPECT(0, request.len);
    EXPECT(DIPC_STATUS_OK, dipc_serve_init(&exchange, receive, 64, send, 64, NULL));
    EXPECT(DIPC_STATUS_OK, dipc_exchange_advance(&exchange, 1, NULL));
    EXPECT(DIPC_STATUS_OK, dipc_exchange_advance(&exchange, 0, NULL));
    EXPECT(DIPC_STATUS_UNEXPECTED_END, dipc_serve_finish(&exchange, NULL, &request, &exchange, NULL));
    EXPECT(1, request.len);
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
    EXPECT(DIPC_STATUS_NULL_POINTER, dipc_writer_init(&writer, NULL, buf, sizeof buf, NULL));
    EXPECT(DIPC_STATUS_INVALID_ARGUMENT, dipc_writer_init(&writer, &trace, buf, sizeof buf, NULL)); /* without a clock */
    trace.frequency = 1000;
    trace.pointer_size = 8;
    EXPECT(DIPC_STATUS_NULL_POINTER, dipc_writer_init(&writer, &trace, NULL, sizeof buf, NULL));
    EXPECT(DIPC_STATUS_BUFFER_TOO_SMALL, dipc_writer_init(&writer, &trace, buf, 1, &detail));
    EXPECT(DIPC_STATUS_WRONG_KIND, dipc_writer_event(&writer, &event, &out)); /* before the header */
    EXPECT(DIPC_STATUS_OK, dipc_writer_init(&writer, &trace, buf, sizeof buf, NULL));
    EXPECT(DIPC_STATUS_NULL_POINTER, dipc_writer_flush(&writer, NULL));
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
    EXPECT(DIPC_STATUS_OK, dipc_writer_flush(&writer, &out));
    EXPECT(true, out.len > 0);
    EXPECT(DIPC_STATUS_OK, dipc_writer_flush(&writer, &out));
    EXPECT(0, out.len);
    event.payload = buf;
    event.payload_len = sizeof buf;
    EXPECT(DIPC_STATUS_BUFFER_TOO_SMALL, dipc_writer_event(&writer, &event, &out));
    EXPECT(DIPC_STATUS_NULL_POINTER, dipc_writer_finish(&writer, NULL));
    EXPECT(DIPC_STATUS_OK, dipc_writer_finish(&writer, &out));
    EXPECT(1, out.len); /* the end mark */
    event.payload_len = 0;
    EXPECT(DIPC_STATUS_WRONG_KIND, dipc_writer_event(&writer, &event, &out)); /* after the end */
    EXPECT(DIPC_STATUS_WRONG_KIND, dipc_writer_flush(&writer, &out));
    EXPECT(DIPC_STATUS_WRONG_KIND, dipc_writer_finish(&writer, &out));
}

static void advertises(void) {
    static const uint8_t frame[] = "ADVR_V1\0a runtime's name\x92\x10\0\0\0\0\0\0\0";
    size_t detail;
    dipc_exchange exchange, moved;
    dipc_advertise advertise;
    dipc_step step;
    memset(&exchange, 0, sizeof exchange);
    EXPECT(DIPC_ADVERTISE_LEN, sizeof frame);
    EXPECT(DIPC_STATUS_MORE, dipc_advertise_parse(frame, 33, &advertise, &detail));
    EXPECT(34, detail);
    EXPECT(DIPC_STATUS_BAD_ADVERTISE, dipc_advertise_parse((const uint8_t *)"AD\0", 3, &advertise, &detail));
    EXPECT(2, detail);
    EXPECT(DIPC_STATUS_NULL_POINTER, dipc_advertise_parse(frame, 34, NULL, NULL));
    EXPECT(DIPC_STATUS_OK, dipc_advertise_parse(frame, 34, &advertise, NULL));
    EXPECT(4242, advertise.process_id);
    EXPECT(0, memcmp(advertise.runtime_cookie.bytes, "a runtime's name", 16));

    EXPECT(DIPC_STATUS_WRONG_KIND, dipc_advertise_finish(&exchange, &advertise, NULL));
    EXPECT(DIPC_STATUS_NULL_POINTER, dipc_advertise_init(NULL));
    EXPECT(DIPC_STATUS_OK, dipc_advertise_init(&exchange));
    EXPECT(DIPC_STATUS_CLOSED, dipc_advertise_finish(&exchange, &advertise, NULL)); /* too early */
    EXPECT(DIPC_STATUS_WRONG_KIND, dipc_environment_next(&exchange, NULL, NULL));
    EXPECT(DIPC_STATUS_OK, dipc_exchange_step(&exchange, &step, NULL));
    EXPECT(34, step.len);
    memcpy(step.data, frame, 8);
    EXPECT(DIPC_STATUS_OK, dipc_exchange_advance(&exchange, 8, NULL));
    moved = exchange;
    memset(&exchange, 0xff, sizeof exchange);
    EXPECT(DIPC_STATUS_OK, dipc_exchange_step(&moved, &step, NULL));
    EXPECT(26, step.len);
    memcpy(step.data, frame + 8, 26);
    EXPECT(DIPC_STATUS_OK, dipc_exchange_advance(&moved, 26, NULL));
    EXPECT(DIPC_STATUS_OVERRUN, dipc_exchange_advance(&moved, 1, NULL)); /* the frame is complete */
    EXPECT(DIPC_STATUS_NULL_POINTER, dipc_advertise_finish(&moved, NULL, NULL));
    advertise.process_id = 0;
    EXPECT(DIPC_STATUS_OK, dipc_advertise_finish(&moved, &advertise, NULL));
    EXPECT(4242, advertise.process_id);
    EXPECT(DIPC_STATUS_OK, dipc_advertise_init(&exchange));
    EXPECT(DIPC_STATUS_OK, dipc_exchange_step(&exchange, &step, NULL));
    step.data[0] = 'G';
    EXPECT(DIPC_STATUS_BAD_ADVERTISE, dipc_exchange_advance(&exchange, 1, NULL));
    EXPECT(DIPC_STATUS_BAD_ADVERTISE, dipc_advertise_finish(&exchange, &advertise, NULL)); /* final */
}

/* The value of one variable, for `dipc_config_init`. */
struct variable {
    const char *name, *value;
};

static dipc_text lookup(void *context, const char *name) {
    const struct variable *variable = (const struct variable *)context;
    return dipc_utf8(strcmp(variable->name, name) == 0 ? variable->value : NULL);
}

static void take_finding(void *context, const dipc_finding *finding) { *(dipc_finding *)context = *finding; }

/* Each list of ports, the ports in it, and the last finding in it: as in ipc-proto/tests/port.rs. */
static void configs(void) {
    static const struct {
        const char *list, *ports[3];
        bool suspends[3], listens;
        uint32_t finding;
        const char *meant;
    } table[] = {
        {"", {NULL, NULL, NULL}, {0, 0, 0}, false, DIPC_FINDING_OTHER, NULL},
        {";;", {NULL, NULL, NULL}, {0, 0, 0}, false, DIPC_FINDING_NO_PORTS, NULL},
        {"/a", {"/a", NULL, NULL}, {1, 0, 0}, false, DIPC_FINDING_SUSPENDS, NULL},
        {";;/a,suspend;;/b,suspend;", {"/b", "/a", NULL}, {1, 1, 0}, false, DIPC_FINDING_OTHER, NULL},
        {"/a,NOSUSPEND,ConNect", {"/a", NULL, NULL}, {0, 0, 0}, false, DIPC_FINDING_OTHER, NULL},
        {"/a,suspend,nosuspend", {"/a", NULL, NULL}, {1, 0, 0}, false, DIPC_FINDING_CONFLICT, NULL},
        {"nosuspend,/a", {"nosuspend", NULL, NULL}, {1, 0, 0}, false, DIPC_FINDING_SUSPENDS, NULL},
        {"/a,nosupend,suspend", {"/a", NULL, NULL}, {1, 0, 0}, false, DIPC_FINDING_UNKNOWN_TAG, "nosuspend"},
        {" /a,suspend", {" /a", NULL, NULL}, {1, 0, 0}, false, DIPC_FINDING_BLANKS, NULL},
        {"a,suspend", {"a", NULL, NULL}, {1, 0, 0}, false, DIPC_FINDING_RELATIVE, NULL},
        {"uds:/a,suspend", {"uds:/a", NULL, NULL}, {1, 0, 0}, false, DIPC_FINDING_SCHEME, "/a"},
        {"/a,suspend;/a,suspend", {"/a", "/a", NULL}, {1, 1, 0}, false, DIPC_FINDING_SAME_ADDRESS, NULL},
        {"/a,suspend;,,", {"/a", NULL, NULL}, {1, 0, 0}, false, DIPC_FINDING_ONLY_COMMAS, NULL},
        {"/a,listen,suspend", {"/a", NULL, NULL}, {1, 0, 0}, true, DIPC_FINDING_LISTEN, NULL},
        {"/\xc3\xa4,nosuspend", {"/\xc3\xa4", NULL, NULL}, {0, 0, 0}, false, DIPC_FINDING_OTHER, NULL},
    };
    struct variable variable = {"DOTNET_DiagnosticPorts", "/a"};
    dipc_config config;
    dipc_port port;
    dipc_finding finding;
    char text[64];
    size_t len;
    memset(&config, 0, sizeof config);
    EXPECT(sizeof config, dipc_config_size());
    EXPECT(DIPC_STATUS_WRONG_KIND, dipc_config_port(&config, 0, &port));
    EXPECT(DIPC_STATUS_WRONG_KIND, dipc_config_findings(&config, take_finding, &finding));
    EXPECT(false, dipc_config_is_enabled(&config));
    EXPECT(false, dipc_config_default_port_suspends(&config));
    EXPECT(DIPC_STATUS_NULL_POINTER, dipc_config_init(&config, DIPC_FLAVOUR_MONO, NULL, NULL));
    EXPECT(DIPC_STATUS_NULL_POINTER, dipc_config_init(NULL, DIPC_FLAVOUR_MONO, lookup, &variable));
    EXPECT(DIPC_STATUS_INVALID_ARGUMENT, dipc_config_init(&config, 4, lookup, &variable));
    for (size_t row = 0; row < sizeof table / sizeof *table; row++) {
        size_t i = 0;
        variable.value = table[row].list;
        EXPECT(DIPC_STATUS_OK, dipc_config_init(&config, DIPC_FLAVOUR_NATIVE_AOT, lookup, &variable));
        EXPECT(true, dipc_config_is_enabled(&config));
        for (; table[row].ports[i] != NULL; i++) {
            EXPECT(DIPC_STATUS_OK, dipc_config_port(&config, i, &port));
            EXPECT(true, dipc_text_equals(port.address, dipc_utf8(table[row].ports[i])));
            EXPECT(table[row].suspends[i], port.suspends);
            EXPECT(table[row].listens ? DIPC_PORT_LISTEN : DIPC_PORT_CONNECT, port.port_type);
        }
        EXPECT(DIPC_STATUS_NOT_FOUND, dipc_config_port(&config, i, &port));
        memset(&finding, 0, sizeof finding);
        EXPECT(DIPC_STATUS_OK, dipc_config_findings(&config, take_finding, &finding));
        EXPECT(table[row].finding, finding.kind);
        EXPECT(true, dipc_text_equals(finding.meant, dipc_utf8(table[row].meant)));
        if (finding.kind != table[row].finding)
            printf("the list is %s\n", table[row].list);
    }
    /* CoreCLR does not listen. */
    variable.value = "/a,listen";
    EXPECT(DIPC_STATUS_OK, dipc_config_init(&config, DIPC_FLAVOUR_CORE_CLR, lookup, &variable));
    EXPECT(DIPC_STATUS_NOT_FOUND, dipc_config_port(&config, 0, &port));
    EXPECT(DIPC_STATUS_NULL_POINTER, dipc_config_findings(&config, NULL, NULL));
    variable.value = "/a\xff";
    EXPECT(DIPC_STATUS_INVALID_ARGUMENT, dipc_config_init(&config, DIPC_FLAVOUR_CORE_CLR, lookup, &variable));
    variable.name = "COMPlus_DefaultDiagnosticPortSuspend";
    variable.value = "1";
    EXPECT(DIPC_STATUS_OK, dipc_config_init(&config, DIPC_FLAVOUR_CORE_CLR, lookup, &variable));
    EXPECT(true, dipc_config_default_port_suspends(&config));
    EXPECT(DIPC_STATUS_OK, dipc_config_init(&config, DIPC_FLAVOUR_MONO, lookup, &variable));
    EXPECT(false, dipc_config_default_port_suspends(&config));
    EXPECT(DIPC_STATUS_OK, dipc_config_findings(&config, take_finding, &finding));
    EXPECT(DIPC_FINDING_UNREAD, finding.kind);
    EXPECT(true, dipc_text_equals(finding.meant, dipc_utf8("DOTNET_DefaultDiagnosticPortSuspend")));
    variable.name = "DOTNET_EnableDiagnostics";
    variable.value = "0";
    EXPECT(DIPC_STATUS_OK, dipc_config_init(&config, DIPC_FLAVOUR_MONO, lookup, &variable));
    EXPECT(false, dipc_config_is_enabled(&config));

    EXPECT(DIPC_STATUS_OK, dipc_port_text(dipc_utf8("/a"), true, dipc_utf8(NULL), text, sizeof text, &len));
    EXPECT(0, strcmp(text, "/a,suspend"));
    EXPECT(10, len);
    EXPECT(DIPC_STATUS_OK, dipc_port_text(dipc_utf8("/a"), false, dipc_utf8(NULL), text, sizeof text, NULL));
    EXPECT(0, strcmp(text, "/a,nosuspend"));
    EXPECT(DIPC_STATUS_BUFFER_TOO_SMALL, dipc_port_text(dipc_utf8("/a"), true, dipc_utf8(NULL), text, 10, &len));
    EXPECT(11, len);
    EXPECT(DIPC_STATUS_INVALID_ARGUMENT, dipc_port_text(dipc_utf8("/a;b"), true, dipc_utf8(NULL), text, sizeof text, NULL));
    EXPECT(DIPC_STATUS_INVALID_ARGUMENT, dipc_port_text(dipc_utf8(NULL), true, dipc_utf8(NULL), text, sizeof text, NULL));
    EXPECT(DIPC_STATUS_OK, dipc_port_text(dipc_utf8("/a"), true, dipc_utf8("/b,later;,/a"), text, sizeof text, NULL));
    EXPECT(0, strcmp(text, "/a,suspend;/b,later"));
    EXPECT(DIPC_STATUS_INVALID_ARGUMENT,
           dipc_port_text(dipc_utf8("/a"), true, dipc_utf8("/\xff"), text, sizeof text, NULL));
}

static void connect_ports(void) {
    bool suspending[3] = {true, false, true};
    dipc_connect_port port;
    dipc_guid cookie;
    dipc_step step;
    memset(&port, 0, sizeof port);
    memset(&cookie, 7, sizeof cookie);
    EXPECT(sizeof port, dipc_connect_port_size());
    EXPECT(DIPC_STATUS_WRONG_KIND, dipc_connect_port_step(&port, &step));
    EXPECT(DIPC_STATUS_WRONG_KIND, dipc_connect_port_advance(&port, DIPC_CONNECT_FAILED, 0));
    EXPECT(DIPC_STATUS_NULL_POINTER, dipc_connect_port_init(NULL, cookie, 42));
    EXPECT(DIPC_STATUS_OK, dipc_connect_port_init(&port, cookie, 42));
    EXPECT(DIPC_STATUS_NULL_POINTER, dipc_connect_port_step(&port, NULL));
    EXPECT(DIPC_STATUS_INVALID_ARGUMENT, dipc_connect_port_advance(&port, 6, 0));
    EXPECT(DIPC_STATUS_OK, dipc_connect_port_advance(&port, DIPC_CONNECT_ANSWERED, 0)); /* does not fit: ignored */
    EXPECT(DIPC_STATUS_OK, dipc_connect_port_step(&port, &step));
    EXPECT(DIPC_STEP_CONNECT, step.kind);
    dipc_connect_port_advance(&port, DIPC_CONNECT_FAILED, 0);
    dipc_connect_port_step(&port, &step);
    EXPECT(DIPC_STEP_WAIT, step.kind);
    EXPECT(10, step.len);
    dipc_connect_port_advance(&port, DIPC_CONNECT_WAITED, 0);
    dipc_connect_port_advance(&port, DIPC_CONNECT_CONNECTED, 0);
    dipc_connect_port_advance(&port, DIPC_CONNECT_SENT, 8);
    dipc_connect_port_step(&port, &step);
    EXPECT(DIPC_STEP_SEND, step.kind);
    EXPECT(26, step.len);
    EXPECT(7, step.data[0]);
    EXPECT(42, step.data[16]);
    EXPECT(DIPC_STATUS_OVERRUN, dipc_connect_port_advance(&port, DIPC_CONNECT_SENT, 27)); /* counts as failed */
    dipc_connect_port_step(&port, &step);
    EXPECT(DIPC_STEP_WAIT, step.kind);
    EXPECT(12, step.len);
    dipc_connect_port_advance(&port, DIPC_CONNECT_WAITED, 0);
    dipc_connect_port_advance(&port, DIPC_CONNECT_CONNECTED, 0);
    EXPECT(DIPC_STATUS_OK, dipc_connect_port_advance(&port, DIPC_CONNECT_SENT, 34));
    dipc_connect_port_step(&port, &step);
    EXPECT(DIPC_STEP_SERVE, step.kind);
    dipc_connect_port_advance(&port, DIPC_CONNECT_HUNG_UP, 0);
    dipc_connect_port_advance(&port, DIPC_CONNECT_CONNECTED, 0);
    dipc_connect_port_advance(&port, DIPC_CONNECT_SENT, 0);
    dipc_connect_port_step(&port, &step);
    EXPECT(DIPC_STEP_WAIT, step.kind);
    EXPECT(12, step.len);
    dipc_connect_port_advance(&port, DIPC_CONNECT_WAITED, 0);
    dipc_connect_port_advance(&port, DIPC_CONNECT_CONNECTED, 0);
    dipc_connect_port_advance(&port, DIPC_CONNECT_SENT, 34);
    dipc_connect_port_step(&port, &step);
    EXPECT(DIPC_STEP_SERVE, step.kind);

    EXPECT(false, dipc_suspension_is_suspended(NULL, 3));
    EXPECT(false, dipc_suspension_resume(NULL, 3, 0));
    EXPECT(true, dipc_suspension_is_suspended(suspending, 3));
    EXPECT(false, dipc_suspension_resume(suspending, 3, 1));
    EXPECT(false, dipc_suspension_resume(suspending, 2, 2)); /* does not exist */
    EXPECT(true, dipc_suspension_resume(suspending, 3, 2));
    EXPECT(false, dipc_suspension_resume(suspending, 3, 2)); /* again */
    EXPECT(true, dipc_suspension_is_suspended(suspending, 3));
    EXPECT(true, dipc_suspension_resume(suspending, 3, 0));
    EXPECT(false, dipc_suspension_is_suspended(suspending, 3));
}

static bool has_ended(void *context, const dipc_runtime *runtime) {
    (void)runtime;
    return *(bool *)context;
}

/* Reports a whole frame on a new connection. Its process id is that of `advertises`. */
static void arrive(dipc_monitor_port *port, uint64_t connection, uint64_t now, dipc_monitor_change *change) {
    uint64_t token, found;
    dipc_step step;
    EXPECT(DIPC_STATUS_OK, dipc_monitor_port_accept(port, connection, 5, now, &token, change, NULL));
    EXPECT(DIPC_CHANGE_NOTHING, change->kind);
    EXPECT(DIPC_STATUS_OK, dipc_monitor_port_receive(port, token, &found, &step));
    EXPECT(true, found == connection);
    EXPECT(DIPC_STEP_RECEIVE, step.kind);
    EXPECT(34, step.len);
    memcpy(step.data, "ADVR_V1\0a runtime's name\x92\x10\0\0\0\0\0\0\0", 34);
    EXPECT(DIPC_STATUS_OK, dipc_monitor_port_advance(port, token, 34, now, change));
    EXPECT(DIPC_CHANGE_ARRIVED, change->kind);
    EXPECT(4242, change->runtime.process_id);
    EXPECT(5, change->runtime.peer);
    EXPECT(DIPC_RUNTIME_IDLE, change->runtime.state);
    EXPECT(DIPC_STATUS_OK, dipc_monitor_port_receive(port, token, &found, &step));
    EXPECT(1, step.len);
}

static void monitor_ports(void) {
    dipc_monitor_port port;
    dipc_monitor_slot slots[2];
    dipc_monitor_change change;
    dipc_runtime runtime;
    dipc_guid cookie;
    dipc_step step;
    uint64_t token, connection;
    size_t detail;
    bool ended = false;
    memset(&port, 0, sizeof port);
    memset(slots, 0xff, sizeof slots);
    memcpy(cookie.bytes, "a runtime's name", 16);
    EXPECT(sizeof port, dipc_monitor_port_size());
    EXPECT(DIPC_STATUS_WRONG_KIND, dipc_monitor_port_accept(&port, 1, 0, 0, &token, &change, NULL));
    EXPECT(DIPC_STATUS_WRONG_KIND, dipc_monitor_port_advance(&port, 1, 0, 0, &change));
    EXPECT(true, dipc_monitor_port_due(&port) == UINT64_MAX);
    EXPECT(DIPC_STATUS_NULL_POINTER, dipc_monitor_port_init(&port, NULL, 2));
    EXPECT(DIPC_STATUS_NULL_POINTER, dipc_monitor_port_init(NULL, slots, 2));
    EXPECT(DIPC_STATUS_INVALID_LENGTH, dipc_monitor_port_init(&port, slots, SIZE_MAX));
    EXPECT(DIPC_STATUS_MISALIGNED, dipc_monitor_port_init(&port, (dipc_monitor_slot *)((char *)slots + 1), 1));
    EXPECT(DIPC_STATUS_OK, dipc_monitor_port_init(&port, NULL, 0));
    EXPECT(DIPC_STATUS_BUFFER_TOO_SMALL, dipc_monitor_port_accept(&port, 1, 0, 0, &token, &change, &detail));
    EXPECT(1, detail);
    EXPECT(DIPC_STATUS_OK, dipc_monitor_port_init(&port, slots, 2));
    EXPECT(DIPC_STATUS_NULL_POINTER, dipc_monitor_port_accept(&port, 1, 0, 0, NULL, &change, NULL));
    EXPECT(DIPC_STATUS_NULL_POINTER, dipc_monitor_port_accept(&port, 1, 0, 0, &token, NULL, NULL));
    EXPECT(DIPC_STATUS_NOT_FOUND, dipc_monitor_port_receive(&port, 7, &connection, &step));
    EXPECT(DIPC_STATUS_OK, dipc_monitor_port_advance(&port, 7, 1, 0, &change));
    EXPECT(DIPC_CHANGE_NOTHING, change.kind);

    arrive(&port, 1, 0, &change);
    EXPECT(true, change.first);
    EXPECT(false, change.has_connection);
    EXPECT(DIPC_STATUS_OK, dipc_monitor_port_runtime(&port, 0, &runtime));
    EXPECT(0, memcmp(runtime.cookie.bytes, cookie.bytes, 16));
    EXPECT(DIPC_STATUS_NOT_FOUND, dipc_monitor_port_runtime(&port, 1, &runtime));
    EXPECT(DIPC_STATUS_NULL_POINTER, dipc_monitor_port_find(&port, cookie, NULL));
    EXPECT(DIPC_STATUS_NULL_POINTER, dipc_monitor_port_take(&port, cookie, 1, NULL)); /* takes nothing */
    EXPECT(DIPC_STATUS_OK, dipc_monitor_port_take(&port, cookie, 1, &connection));
    EXPECT(1, connection);
    EXPECT(DIPC_STATUS_NOT_FOUND, dipc_monitor_port_take(&port, cookie, 1, &connection));
    EXPECT(DIPC_STATUS_OK, dipc_monitor_port_find(&port, cookie, &runtime));
    EXPECT(DIPC_RUNTIME_IN_USE, runtime.state);
    arrive(&port, 2, 2, &change);
    EXPECT(false, change.first);
    EXPECT(false, change.has_connection); /* the caller has it */

    /* A connection of something else, and one that sends nothing. */
    EXPECT(DIPC_STATUS_OK, dipc_monitor_port_accept(&port, 3, 6, 3, &token, &change, NULL));
    EXPECT(DIPC_STATUS_BUFFER_TOO_SMALL, dipc_monitor_port_accept(&port, 4, 0, 3, &token, &change, &detail));
    EXPECT(3, detail);
    EXPECT(DIPC_STATUS_OK, dipc_monitor_port_receive(&port, token, &connection, &step));
    step.data[0] = 'G';
    EXPECT(DIPC_STATUS_NULL_POINTER, dipc_monitor_port_advance(&port, token, 1, 3, NULL)); /* no change is lost */
    EXPECT(DIPC_STATUS_OK, dipc_monitor_port_advance(&port, token, 1, 3, &change));
    EXPECT(DIPC_CHANGE_REJECTED, change.kind);
    EXPECT(DIPC_REJECTION_PROTOCOL, change.rejection);
    EXPECT(DIPC_STATUS_BAD_ADVERTISE, change.status);
    EXPECT(true, change.has_connection && change.connection == 3);
    EXPECT(6, change.runtime.peer);
    EXPECT(DIPC_STATUS_OK, dipc_monitor_port_accept(&port, 4, 0, 4, &token, &change, NULL));
    EXPECT(DIPC_STATUS_OK, dipc_monitor_port_on_due(&port, 400, has_ended, &ended, &change));
    EXPECT(DIPC_REJECTION_TOO_LATE, change.rejection);
    EXPECT(DIPC_STATUS_OK, dipc_monitor_port_accept(&port, 5, 0, 400, &token, &change, NULL));
    EXPECT(DIPC_STATUS_OK, dipc_monitor_port_evict_oldest(&port, &change));
    EXPECT(DIPC_REJECTION_CROWDED, change.rejection);
    EXPECT(DIPC_STATUS_OK, dipc_monitor_port_evict_oldest(&port, &change));
    EXPECT(DIPC_CHANGE_NOTHING, change.kind);

    EXPECT(DIPC_STATUS_OK, dipc_monitor_port_pause_accept(&port, 500));
    EXPECT(DIPC_STATUS_OK, dipc_monitor_port_on_due(&port, 600, NULL, NULL, &change));
    EXPECT(DIPC_CHANGE_ACCEPT_AGAIN, change.kind);

    /* The runtime hangs up, and its process ends. */
    EXPECT(DIPC_STATUS_OK, dipc_monitor_port_remove(&port, cookie, &change));
    EXPECT(DIPC_CHANGE_LEFT, change.kind);
    EXPECT(true, change.has_connection && change.connection == 2);
    EXPECT(DIPC_STATUS_OK, dipc_monitor_port_remove(&port, cookie, &change));
    EXPECT(DIPC_CHANGE_NOTHING, change.kind);
    EXPECT(DIPC_STATUS_OK, dipc_monitor_port_accept(&port, 6, 0, 700, &token, &change, NULL));
    EXPECT(DIPC_STATUS_OK, dipc_monitor_port_receive(&port, token, &connection, &step));
    memcpy(step.data, "ADVR_V1\0a runtime's name\x92\x10\0\0\0\0\0\0\0", 34);
    EXPECT(DIPC_STATUS_OK, dipc_monitor_port_advance(&port, token, 34, 700, &change));
    EXPECT(DIPC_STATUS_OK, dipc_monitor_port_advance(&port, token, 0, 700, &change));
    EXPECT(DIPC_CHANGE_DISCONNECTED, change.kind);
    EXPECT(DIPC_REJECTION_NONE, change.rejection);
    EXPECT(DIPC_RUNTIME_DISCONNECTED, change.runtime.state);
    while (dipc_monitor_port_on_due(&port, 720, has_ended, &ended, &change) == DIPC_STATUS_OK &&
           change.kind != DIPC_CHANGE_NOTHING)
        EXPECT(DIPC_CHANGE_ACCEPT_AGAIN, change.kind);
    EXPECT(true, dipc_monitor_port_due(&port) <= 740);
    ended = true;
    EXPECT(DIPC_STATUS_OK, dipc_monitor_port_on_due(&port, 740, has_ended, &ended, &change));
    EXPECT(DIPC_CHANGE_LEFT, change.kind);
    EXPECT(4242, change.runtime.process_id);
    EXPECT(DIPC_RUNTIME_LEFT, change.runtime.state);
    EXPECT(DIPC_STATUS_NOT_FOUND, dipc_monitor_port_find(&port, cookie, &runtime));
}

int main(void) {
    EXPECT(DIPC_VERSION, dipc_version());
    texts();
    messages();
    requests();
    exchanges();
    traces();
    columns();
    fields();
    labels();
    sessions();
    servers();
    writers();
    advertises();
    configs();
    connect_ports();
    monitor_ports();
    printf("misuse: %d failures\n", failures);
    return failures != 0;
}
