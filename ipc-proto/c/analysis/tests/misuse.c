/* Misuse that can be seen is an error. */
#include <dotnet_ipc_analysis.h>
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

int main(void) {
    static const uint8_t bytes[] = "Nettrace no trace";
    static uint64_t other[32]; /* an object of another kind */
    dipc_analysis *analysis = NULL, *wrong = (dipc_analysis *)other;
    dipc_analysis *misaligned = (dipc_analysis *)((char *)other + 1);
    dipc_analysis_summary found;
    dipc_analysis_function_row function;
    dipc_analysis_collection_row collection;
    dipc_analysis_counter_row counter;
    dipc_analysis_heap_type_row type;
    dipc_text text;
    char sentence[64];
    EXPECT(DIPC_STATUS_NULL_POINTER, dipc_analysis_new(NULL, DIPC_CLOCK_CPU));
    EXPECT(DIPC_STATUS_INVALID_ARGUMENT, dipc_analysis_new(&analysis, DIPC_CLOCK_ALL_EVENTS + 1));
    EXPECT(DIPC_STATUS_OK, dipc_analysis_free(NULL));
    EXPECT(DIPC_STATUS_MISALIGNED, dipc_analysis_free(misaligned));
    EXPECT(DIPC_STATUS_WRONG_KIND, dipc_analysis_free(wrong));
    EXPECT(DIPC_STATUS_NULL_POINTER, dipc_analysis_feed(NULL, bytes, 1));
    EXPECT(DIPC_STATUS_WRONG_KIND, dipc_analysis_feed(wrong, bytes, 1));
    EXPECT(DIPC_STATUS_WRONG_KIND, dipc_analysis_finish(wrong, &found));
    memset(other, 0xff, sizeof other);
    EXPECT(DIPC_STATUS_WRONG_KIND, dipc_analysis_function(wrong, DIPC_ORDER_OWN, 0, &function));

    EXPECT(DIPC_STATUS_OK, dipc_analysis_new(&analysis, DIPC_CLOCK_CPU));
    EXPECT(DIPC_STATUS_NULL_POINTER, dipc_analysis_feed(analysis, NULL, 1));
    EXPECT(DIPC_STATUS_INVALID_LENGTH, dipc_analysis_feed(analysis, bytes, SIZE_MAX));
    EXPECT(DIPC_STATUS_OK, dipc_analysis_feed(analysis, NULL, 0));
    EXPECT(DIPC_STATUS_OK, dipc_analysis_feed(analysis, bytes, sizeof bytes));
    EXPECT(DIPC_STATUS_WRONG_KIND, dipc_analysis_function(analysis, DIPC_ORDER_EXCLUSIVE, 0, &function));
    EXPECT(DIPC_STATUS_WRONG_KIND, dipc_analysis_folded(analysis, &text));
    EXPECT(DIPC_STATUS_NULL_POINTER, dipc_analysis_finish(analysis, NULL));
    EXPECT(DIPC_STATUS_OK, dipc_analysis_finish(analysis, &found));
    EXPECT(DIPC_END_CORRUPT, found.end.kind);
    EXPECT(0, found.events);
    EXPECT(DIPC_STATUS_WRONG_KIND, dipc_analysis_feed(analysis, bytes, 1));
    EXPECT(DIPC_STATUS_NOT_FOUND, dipc_analysis_function(analysis, DIPC_ORDER_EXCLUSIVE, 0, &function));
    EXPECT(DIPC_STATUS_NOT_FOUND, dipc_analysis_function(analysis, DIPC_ORDER_OWN, SIZE_MAX, &function));
    EXPECT(DIPC_STATUS_INVALID_ARGUMENT, dipc_analysis_function(analysis, DIPC_ORDER_OWN + 1, 0, &function));
    EXPECT(DIPC_STATUS_NOT_FOUND, dipc_analysis_collection(analysis, 0, &collection));
    EXPECT(DIPC_STATUS_NOT_FOUND, dipc_analysis_counter(analysis, 0, &counter));
    EXPECT(DIPC_STATUS_NOT_FOUND, dipc_analysis_heap_type(analysis, 0, &type));
    EXPECT(DIPC_STATUS_NULL_POINTER, dipc_analysis_name(analysis, 0, 1, NULL));
    EXPECT(DIPC_STATUS_MISALIGNED, dipc_analysis_name(analysis, 0, 1, (dipc_text *)((char *)&text + 1)));
    EXPECT(DIPC_STATUS_OK, dipc_analysis_name(analysis, 0, 1, &text));
    EXPECT(true, dipc_text_equals(text, dipc_utf8("?!?")));
    EXPECT(DIPC_STATUS_OK, dipc_analysis_folded(analysis, &text));
    EXPECT(0, text.len);
    EXPECT(DIPC_STATUS_OK, dipc_analysis_free(analysis));
    /* An analysis that is not finished is freed too. */
    EXPECT(DIPC_STATUS_OK, dipc_analysis_new(&analysis, DIPC_CLOCK_WAITS));
    EXPECT(DIPC_STATUS_OK, dipc_analysis_free(analysis));
    EXPECT(DIPC_STATUS_OK, dipc_status_text(DIPC_STATUS_FAULT, 0, sentence, sizeof sentence, NULL));
    EXPECT(0, strcmp(sentence, "a fault of the library"));
    if (failures == 0)
        printf("misuse: each is an error\n");
    return failures != 0;
}
