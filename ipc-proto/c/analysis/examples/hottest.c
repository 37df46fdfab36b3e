/* Prints the ten hottest functions of a trace: hottest FILE. */
#include <dotnet_ipc_analysis.h>
#include <stdio.h>

int main(int argc, char **argv) {
    static uint8_t bytes[1 << 16];
    dipc_analysis *analysis;
    dipc_analysis_summary found;
    dipc_analysis_function_row row;
    FILE *file = argc == 2 ? fopen(argv[1], "rb") : NULL;
    if (!file || dipc_analysis_new(&analysis, DIPC_CLOCK_CPU) != DIPC_STATUS_OK)
        return fprintf(stderr, "usage: hottest FILE, a trace that can be read\n"), 2;
    for (size_t len; (len = fread(bytes, 1, sizeof bytes, file)) > 0;)
        dipc_analysis_feed(analysis, bytes, len);
    if (dipc_analysis_finish(analysis, &found) != DIPC_STATUS_OK || found.end.kind != DIPC_END_COMPLETE)
        fprintf(stderr, "the trace is cut off or damaged\n");
    for (size_t i = 0; i < 10 && dipc_analysis_function(analysis, DIPC_ORDER_EXCLUSIVE, i, &row) == DIPC_STATUS_OK; i++)
        printf("%7.2f %% %7.2f %% %c%.*s\n", 100.0 * row.exclusive / found.total, 100.0 * row.inclusive / found.total,
               row.is_own ? '*' : ' ', (int)row.name.len, (const char *)row.name.data);
    dipc_analysis_free(analysis);
    return fclose(file);
}
