// Prints what the package dotnetipc says about messages and traces, as tests/messages.c and tests/events.c do.
//
//	lines messages FILE ANSWER_TO ...
//	lines events FILE PIECE
package main

import (
	"bufio"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"dotnetipc"
)

var out = bufio.NewWriter(os.Stdout)

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

func text(s *string) string {
	if s == nil {
		return "-"
	}
	return "+" + hex.EncodeToString([]byte(*s))
}

func status(key string, err error) {
	var failed *dotnetipc.StatusError
	if errors.As(err, &failed) {
		fmt.Fprintf(out, "%s\t%d\t%d\t%s\n", key, failed.Status, failed.Detail, err)
	} else {
		fmt.Fprintf(out, "%s\t0\t0\t\n", key)
	}
}

func messages(file, answerTo string) {
	var digits strings.Builder
	for _, line := range strings.Split(string(must(os.ReadFile(file))), "\n") {
		line, _, _ = strings.Cut(line, "#")
		digits.WriteString(strings.Join(strings.Fields(line), ""))
	}
	message := must(hex.DecodeString(digits.String()))
	fmt.Fprintf(out, "file\t%s\n", file)
	parts, err := dotnetipc.Inspect(message, dotnetipc.CommandCode(answerTo))
	for _, part := range parts {
		fmt.Fprintf(out, "part\t%s\t%d\t%d\t%d\t%d\t%x\t%s\t%s\n", part.Name, part.Offset, len(part.Bytes), part.Kind,
			part.Number, part.Bytes, text(part.Text), text(part.ValueName))
	}
	status("inspect", err)
	parsed, err := dotnetipc.Parse(message)
	if parsed != nil && string(parsed.Payload) != string(message[20:parsed.Len]) {
		panic("the payload differs")
	}
	status("parse", err)
	hresult, err := dotnetipc.Check(message)
	status("check", err)
	name := dotnetipc.HResultName(hresult)
	fmt.Fprintf(out, "hresult\t%d\t%s\n", hresult, text(&name))
}

// The numbers of tests/events.py; those of the C interface are the same.
const (
	isBool, isInt, isUint, isReal, isText, isGUID, begin, end = 0, 1, 2, 3, 4, 5, 10, 11
)

func value(field dotnetipc.Field) {
	kind, written := isReal, ""
	switch content := field.Value.(type) {
	case bool:
		kind, written = isBool, "0"
		if content {
			written = "1"
		}
	case int64:
		kind, written = isInt, strconv.FormatInt(content, 10)
	case uint64:
		kind, written = isUint, strconv.FormatUint(content, 10)
	case string:
		kind, written = isText, hex.EncodeToString([]byte(content))
	case dotnetipc.GUID:
		kind, written = isGUID, hex.EncodeToString(content[:])
	case []dotnetipc.Field, []any:
		fmt.Fprintf(out, "value\t%d\t%x\t0\n", begin, field.Name)
		kind = end
	}
	fmt.Fprintf(out, "value\t%d\t%x\t%s\n", kind, field.Name, written)
}

func labels(event *dotnetipc.Event) {
	var none [16]byte
	if event.TraceID != none {
		fmt.Fprintf(out, "label\t3\t\t0\t\t%x\n", event.TraceID)
	}
	if event.SpanID != 0 {
		fmt.Fprintf(out, "label\t4\t\t%d\t\t%x\n", event.SpanID, none)
	}
	for _, label := range event.Labels {
		switch value := label.Value.(type) {
		case string:
			fmt.Fprintf(out, "label\t5\t%x\t0\t%x\t%x\n", label.Name, value, none)
		case int64:
			fmt.Fprintf(out, "label\t6\t%x\t%d\t\t%x\n", label.Name, value, none)
		}
	}
}

// pieces is a stream that returns so many bytes at once.
type pieces struct {
	file io.Reader
	size int
}

func (p pieces) Read(buffer []byte) (int, error) {
	return p.file.Read(buffer[:min(p.size, len(buffer))])
}

func events(path, piece string) {
	file := must(os.Open(path))
	defer file.Close()
	trace := dotnetipc.NewTraceReader(pieces{file, must(strconv.Atoi(piece))})
	for event, err := range trace.Events() {
		must(0, err)
		kind := event.Kind
		if kind.Provider == "" && kind.EventID == 0 {
			fmt.Fprintln(out, "event")
			continue
		}
		fmt.Fprintf(out, "event\t%x\t%x\t%x\t%x\t%x\t%d\t%d\t%d\t%d\t%d\t%d\n", kind.Provider, kind.Name,
			event.ActivityID[:], event.RelatedActivityID[:], event.ThreadName, event.ThreadID, kind.EventID, event.Version,
			event.Level, event.Opcode, event.Keywords)
		labels(event)
		fields, _ := event.Fields()
		for _, field := range fields {
			value(field)
		}
		fmt.Fprint(out, "stack")
		for _, address := range event.Stack {
			fmt.Fprintf(out, "\t%#x", address)
		}
		fmt.Fprintln(out)
	}
	fmt.Fprintf(out, "lost\t%d\n", trace.Lost())
	ended, _ := trace.End()
	fmt.Fprintf(out, "end\t%d\n", ended)
}

func main() {
	defer out.Flush()
	step := messages
	if os.Args[1] == "events" {
		step = events
	}
	for i := 2; i+1 < len(os.Args); i += 2 {
		step(os.Args[i], os.Args[i+1])
	}
}
