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

int main(void) {
    EXPECT(DIPC_VERSION, dipc_version());
    texts();
    messages();
    requests();
    exchanges();
    printf("misuse: %d failures\n", failures);
    return failures != 0;
}
