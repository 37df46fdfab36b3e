//go:build unix

// Tests with peers that fail, and with sessions that end early. wrapper.py has the same tests.
//
// The variable DOTNET_IPC names the program dotnet-ipc; TESTDATA the folder.
package dotnetipc

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf16"
)

var (
	ctx       = context.Background()
	providers = TraceConfig{Providers: []Provider{{Name: "Microsoft-Windows-DotNETRuntime"}}}
)

// folder returns a folder whose path is short enough for a socket.
func folder(t *testing.T) string {
	path, err := os.MkdirTemp("", "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(path) })
	return path
}

func fakeRuntime(t *testing.T) (*exec.Cmd, Runtime) {
	command := exec.Command(os.Getenv("DOTNET_IPC"), "fake-runtime", "--dir", folder(t))
	input, _ := command.StdinPipe()
	output, _ := command.StdoutPipe()
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		input.Close()
		command.Wait()
	})
	var line struct{ Socket string }
	if err := json.NewDecoder(output).Decode(&line); err != nil {
		t.Fatal(err)
	}
	return command, Runtime{Path: line.Socket}
}

// peer answers each request with these bytes, and then waits.
func peer(t *testing.T, answer []byte) Runtime {
	path := filepath.Join(folder(t), "socket")
	listener, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			t.Cleanup(func() { conn.Close() })
			conn.Read(make([]byte, 65536))
			conn.Write(answer)
		}
	}()
	return Runtime{Path: path}
}

func recording(t *testing.T) []byte {
	data, err := os.ReadFile(filepath.Join(os.Getenv("TESTDATA"), "nettrace/gen-net10-lab-small.nettrace"))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func start(t *testing.T, runtime Runtime, config TraceConfig) *Session {
	session, err := runtime.StartTracing(ctx, config)
	if err != nil {
		t.Fatal(err)
	}
	return session
}

// count returns the number of events up to the end of a trace.
func count(t *testing.T, trace *TraceReader) int {
	events := 0
	for _, err := range trace.Events() {
		if err != nil {
			t.Fatal(err)
		}
		events++
	}
	return events
}

func TestSilentPeer(t *testing.T) {
	ctx, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
	defer cancel()
	if _, err := peer(t, nil).Info(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatal(err)
	}
}

func TestMalformedAnswer(t *testing.T) {
	const badMagic = 65
	_, err := peer(t, []byte("HTTP/1.1 400 Bad Request\r\n\r\n")).Info(ctx)
	var failed *StatusError
	if !errors.As(err, &failed) || failed.Status != badMagic || failed.Detail != 0 {
		t.Fatal(err)
	}
}

func TestRefusal(t *testing.T) {
	_, runtime := fakeRuntime(t)
	_, err := runtime.StartTracing(ctx, TraceConfig{})
	var refused *RefusedError
	if !errors.As(err, &refused) || refused.Name != "DS_IPC_E_BAD_ENCODING" {
		t.Fatal(err)
	}
}

func TestEnvironmentWithLongVariables(t *testing.T) {
	entries := []string{"A=b", "LONG=" + strings.Repeat("x", 40_000), "LONGER=" + strings.Repeat("€", 300_000), "C=d"}
	environment := binary.LittleEndian.AppendUint32(nil, uint32(len(entries)))
	for _, entry := range entries {
		units := utf16.Encode([]rune(entry + "\x00"))
		environment = binary.LittleEndian.AppendUint32(environment, uint32(len(units)))
		for _, unit := range units {
			environment = binary.LittleEndian.AppendUint16(environment, unit)
		}
	}
	answer := []byte("DOTNET_IPC_V1\x00\x1a\x00\xff\x00\x00\x00")
	answer = binary.LittleEndian.AppendUint32(answer, uint32(len(environment)))
	found, err := peer(t, append(append(answer, 0, 0), environment...)).Environment(ctx)
	if err != nil || !slices.Equal(found, entries) {
		t.Fatal(err, len(found))
	}
}

// reads is a stream that returns the same result for ever.
type reads func(room int) int

func (r reads) Read(buffer []byte) (int, error) { return r(len(buffer)), nil }

func TestStreamThatReadsMoreThanItsRoomOrNothing(t *testing.T) {
	for _, test := range []struct {
		read  reads
		error string
	}{
		{func(room int) int { return room + 1 }, "the reader has read 131073 bytes into a buffer of 131072"},
		{func(int) int { return -1 }, "the reader has read -1 bytes into a buffer of 131072"},
		{func(int) int { return 0 }, io.ErrNoProgress.Error()},
	} {
		if _, err := NewTraceReader(test.read).Next(); err == nil || err.Error() != test.error {
			t.Fatal(err)
		}
	}
}

func TestSessionThatIsLeftEarly(t *testing.T) {
	_, runtime := fakeRuntime(t)
	session := start(t, runtime, providers)
	if event, err := NewTraceReader(session).Next(); err != nil || event.Kind.Provider == "" {
		t.Fatal(event, err)
	}
	if err := session.Close(); err != nil || session.End() != SessionComplete {
		t.Fatal(err, session.End())
	}
	session.Stop()
	if err := session.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := session.Read(make([]byte, 1)); !errors.Is(err, os.ErrClosed) {
		t.Fatal(err)
	}
}

func TestStopByOtherGoroutines(t *testing.T) {
	_, runtime := fakeRuntime(t)
	session := start(t, runtime, providers)
	defer session.Close()
	for range 4 {
		time.AfterFunc(200*time.Millisecond, session.Stop)
	}
	trace := NewTraceReader(session)
	events := count(t, trace)
	if end, _ := trace.End(); end != TraceComplete || events == 0 {
		t.Fatal(end, events)
	}
}

func TestProcessThatIsKilled(t *testing.T) {
	process, runtime := fakeRuntime(t)
	session := start(t, runtime, providers)
	defer session.Close()
	trace := NewTraceReader(session)
	if _, err := trace.Next(); err != nil {
		t.Fatal(err)
	}
	process.Process.Kill()
	count(t, trace)
	if end, _ := trace.End(); end != TraceTruncated || session.End() != SessionCutOff {
		t.Fatal(end, session.End())
	}
}

func TestSessionThatTheRuntimeDoesNotEnd(t *testing.T) {
	answer := []byte("DOTNET_IPC_V1\x00\x1c\x00\xff\x00\x00\x00\x07\x00\x00\x00\x00\x00\x00\x00")
	config := providers
	config.StopTimeout = 300 * time.Millisecond
	session := start(t, peer(t, append(answer, recording(t)[:1000]...)), config)
	if err := session.Close(); !errors.Is(err, os.ErrDeadlineExceeded) || session.End() != SessionTimedOut {
		t.Fatal(err, session.End())
	}
}

func TestDamagedTrace(t *testing.T) {
	data := recording(t)
	// The length of a block becomes impossible.
	corrupt := bytes.Join([][]byte{data[:2000], bytes.Repeat([]byte{0xff}, 3000), data[5000:]}, nil)
	for _, test := range []struct {
		data []byte
		end  TraceEnd
	}{{data[:len(data)/2], TraceTruncated}, {corrupt, TraceCorrupt}, {nil, TraceTruncated}} {
		trace := NewTraceReader(bytes.NewReader(test.data))
		events := count(t, trace)
		if end, text := trace.End(); end != test.end || text == "complete" || events >= 142 {
			t.Fatal(end, text, events)
		}
		if _, err := trace.Next(); err != io.EOF {
			t.Fatal(err)
		}
	}
}

// The descriptions and their records are in memory of C, which lives as long as the events.
func TestEventsOutliveTheReader(t *testing.T) {
	var events []*Event
	for event, err := range NewTraceReader(bytes.NewReader(recording(t))).Events() {
		if err != nil {
			t.Fatal(err)
		}
		events = append(events, event)
	}
	for range 3 {
		runtime.GC()
	}
	fields := 0
	for _, event := range events {
		decoded, err := event.Fields()
		if err != nil {
			t.Fatal(err)
		}
		fields += len(decoded)
	}
	if len(events) != 142 || fields < 100 {
		t.Fatal(len(events), fields)
	}
}
