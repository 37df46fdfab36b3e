//go:build unix

// Package dotnetipc talks to running .NET processes, and reads their event traces.
//
// The protocol and the trace format are those of the library libdotnet_ipc, which pkg-config finds; this package adds the
// sockets of Unix. It is one file without dependencies: copy it.
//
//	runtime, err := dotnetipc.ForProcess(pid)
//	providers := []dotnetipc.Provider{{Name: "System.Runtime"}}
//	session, err := runtime.StartTracing(ctx, dotnetipc.TraceConfig{Providers: providers})
//	defer session.Close()
//	for event, err := range dotnetipc.NewTraceReader(session).Events() {
//		fmt.Println(event.Kind.Provider, event.Kind.Name)
//	}
//
// Errors are those of the operating system and of the context, a *StatusError for malformed bytes, and a *RefusedError if
// the runtime refuses a command. Different objects can be used by different goroutines at the same time, one object only by
// one goroutine, except for Session.Stop.
package dotnetipc

/*
#cgo pkg-config: dotnet_ipc
#include <dotnet_ipc.h>
#include <stdlib.h>

// Go functions, which have no const.
void dotnetipcVisitPart(void *context, dipc_part *part);
bool dotnetipcVisitValue(void *context, dipc_field_value *value);
void dotnetipcVisitLabel(void *context, dipc_label *label);

static inline void visit_part(void *context, const dipc_part *part) {
    dotnetipcVisitPart(context, (dipc_part *)part);
}

static inline bool visit_value(void *context, const dipc_field_value *value) {
    return dotnetipcVisitValue(context, (dipc_field_value *)value);
}

static inline void visit_label(void *context, const dipc_label *label) {
    dotnetipcVisitLabel(context, (dipc_label *)label);
}

static inline dipc_status inspect(const uint8_t *bytes, size_t len, uint16_t answer_to, void *context, size_t *detail) {
    return dipc_inspect(bytes, len, answer_to, visit_part, context, detail);
}

static inline dipc_status values(const dipc_metadata *metadata, const uint8_t *payload, size_t len, void *context,
                                 size_t *detail) {
    return dipc_metadata_values(metadata, payload, len, visit_value, context, detail);
}

static inline dipc_status labels(const dipc_label_list *list, void *context) {
    return dipc_labels(list->bytes, list->len, visit_label, context, NULL);
}
*/
import "C"

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"runtime/cgo"
	"strconv"
	"strings"
	"sync"
	"time"
	"unsafe"
)

// Status is the result of a function of the library, one of DIPC_STATUS_* of its header.
type Status int32

// StatusError is an error of the protocol or of its bytes.
type StatusError struct {
	Status Status
	// Detail is the number of the error: for errors in bytes, their offset.
	Detail uint
}

func (e *StatusError) Error() string {
	var text [256]C.char
	C.dipc_status_text(C.int32_t(e.Status), C.size_t(e.Detail), &text[0], C.size_t(len(text)), nil)
	return C.GoString(&text[0])
}

// RefusedError is the refusal of a command by a runtime. Texts that it does not have are empty.
type RefusedError struct {
	HResult uint32
	// Name and Hint explain the HResult.
	Name, Hint string
	// Message is the text of the runtime.
	Message string
}

func (e *RefusedError) Error() string {
	var reasons []string
	for _, reason := range []string{e.Name, e.Hint, e.Message} {
		if reason != "" {
			reasons = append(reasons, reason)
		}
	}
	return fmt.Sprintf("refused with 0x%08x: %s", e.HResult, strings.Join(reasons, "; "))
}

func check(status C.dipc_status, detail C.size_t) error {
	if status == C.DIPC_STATUS_OK {
		return nil
	}
	return &StatusError{Status(status), uint(detail)}
}

// The library must be of the version of the header, or a later one with the same major version.
func init() {
	if version := uint32(C.dipc_version()); version>>16 != C.DIPC_VERSION>>16 || version < C.DIPC_VERSION {
		panic(fmt.Sprintf("libdotnet_ipc has version %#x of the interface, not %#x", version, C.DIPC_VERSION))
	}
}

// memory is outside of Go's heap, because the library stores pointers in it and to it. It is aligned for any object.
type memory struct {
	pointer unsafe.Pointer
	size    int
	cleanup runtime.Cleanup
}

// allocate returns zeros, which are freed when nothing refers to the memory any more, or by free.
func allocate(size int) *memory {
	m := &memory{pointer: C.calloc(1, C.size_t(max(size, 1))), size: size}
	if m.pointer == nil {
		panic("dotnetipc: out of memory")
	}
	m.cleanup = runtime.AddCleanup(m, func(pointer unsafe.Pointer) { C.free(pointer) }, m.pointer)
	return m
}

func allocateBytes(bytes []byte) *memory {
	m := allocate(len(bytes))
	copy(m.bytes(), bytes)
	return m
}

// free frees the memory before the garbage collector does. Nothing must use it afterwards.
func (m *memory) free() {
	m.cleanup.Stop()
	C.free(m.pointer)
	m.pointer = nil
}

func (m *memory) bytes() []byte { return unsafe.Slice((*byte)(m.pointer), m.size) }

func (m *memory) first() *C.uint8_t { return (*C.uint8_t)(m.pointer) }

func (m *memory) len() C.size_t { return C.size_t(m.size) }

func (m *memory) exchange() *C.dipc_exchange { return (*C.dipc_exchange)(m.pointer) }

func (m *memory) session() *C.dipc_session { return (*C.dipc_session)(m.pointer) }

func (m *memory) parser() *C.dipc_parser { return (*C.dipc_parser)(m.pointer) }

func (m *memory) record() *C.dipc_record { return (*C.dipc_record)(m.pointer) }

func (m *memory) metadata() *C.dipc_metadata { return (*C.dipc_metadata)(m.pointer) }

// copyBytes returns a copy of bytes of the library.
func copyBytes(data *C.uint8_t, length C.size_t) []byte {
	return append([]byte{}, unsafe.Slice((*byte)(data), int(length))...)
}

// goString returns a copy of a text; empty for null.
func goString(text C.dipc_text) string {
	// No code unit needs more than three bytes.
	utf8, length := make([]byte, int(text.len)*3+1), C.size_t(0)
	C.dipc_text_to_utf8(text, (*C.char)(unsafe.Pointer(&utf8[0])), C.size_t(len(utf8)), &length)
	return string(utf8[:length])
}

// optionalString returns a copy of a text; nil for null.
func optionalString(text C.dipc_text) *string {
	if text.form == C.DIPC_TEXT_NULL {
		return nil
	}
	s := goString(text)
	return &s
}

// GUID is a GUID in .NET's order: the first three groups of its text are little-endian numbers.
type GUID [16]byte

func (g GUID) String() string {
	return fmt.Sprintf("%08x-%04x-%04x-%x-%x", binary.LittleEndian.Uint32(g[:]), binary.LittleEndian.Uint16(g[4:]),
		binary.LittleEndian.Uint16(g[6:]), g[8:10], g[10:])
}

func guid(guid C.dipc_guid) GUID { return *(*GUID)(unsafe.Pointer(&guid.bytes)) }

// PartKind is the kind of a part of a message, one of DIPC_PART_* of the library's header.
type PartKind uint32

// The kinds of parts.
const (
	PartNumber   PartKind = C.DIPC_PART_NUMBER
	PartBool     PartKind = C.DIPC_PART_BOOL
	PartText     PartKind = C.DIPC_PART_TEXT
	PartGUID     PartKind = C.DIPC_PART_GUID
	PartHResult  PartKind = C.DIPC_PART_HRESULT
	PartReserved PartKind = C.DIPC_PART_RESERVED
	PartBytes    PartKind = C.DIPC_PART_BYTES
)

// Part is a part of a message: a field of the header or of the payload.
type Part struct {
	Name   string
	Kind   PartKind
	Offset int
	Bytes  []byte
	// Number is the value of the kinds that have one.
	Number uint64
	// Text is the value of PartText, or nil for null.
	Text *string
	// ValueName is the name of the value, or nil.
	ValueName *string
}

// Message is a message: its code, its payload, and the number of its bytes.
type Message struct {
	Code    uint16
	Payload []byte
	Len     int
}

// Parse parses the message at the front of some bytes. It returns nil if the message is longer than they are.
func Parse(message []byte) (*Message, error) {
	m := allocateBytes(message)
	defer m.free()
	var parsed C.dipc_message
	var detail C.size_t
	status := C.dipc_parse(m.first(), m.len(), &parsed, &detail)
	if status == C.DIPC_STATUS_MORE {
		return nil, nil
	}
	if err := check(status, detail); err != nil {
		return nil, err
	}
	return &Message{uint16(parsed.code), copyBytes(parsed.payload, parsed.payload_len), int(parsed.len)}, nil
}

// Inspect returns the parts of a message, in order. For a malformed message it returns those before the error, too.
// answerTo is the code of the command that an answer belongs to, or 0.
func Inspect(message []byte, answerTo uint16) ([]Part, error) {
	m := allocateBytes(message)
	defer m.free()
	var parts []Part
	var detail C.size_t
	handle := cgo.NewHandle(&parts)
	defer handle.Delete()
	status := C.inspect(m.first(), m.len(), C.uint16_t(answerTo), unsafe.Pointer(&handle), &detail)
	return parts, check(status, detail)
}

//export dotnetipcVisitPart
func dotnetipcVisitPart(context unsafe.Pointer, part *C.dipc_part) {
	parts := (*cgo.Handle)(context).Value().(*[]Part)
	var length C.size_t
	C.dipc_path_text(part.path, nil, 0, &length)
	name := make([]byte, length)
	C.dipc_path_text(part.path, (*C.char)(unsafe.Pointer(&name[0])), length, &length)
	*parts = append(*parts, Part{
		Name:      string(name[:length]),
		Kind:      PartKind(part.kind),
		Offset:    int(part.offset),
		Bytes:     copyBytes(part.bytes, part.len),
		Number:    uint64(part.number),
		Text:      optionalString(part.text),
		ValueName: optionalString(part.name),
	})
}

// Check returns the HRESULT with which runtimes refuse a request, or 0.
func Check(request []byte) (uint32, error) {
	m := allocateBytes(request)
	defer m.free()
	var hresult C.uint32_t
	var detail C.size_t
	err := check(C.dipc_check(m.first(), m.len(), &hresult, &detail), detail)
	if hresult != 0 {
		err = nil
	}
	return uint32(hresult), err
}

// HResultName returns the name of an HRESULT as in the specification, or an empty text.
func HResultName(hresult uint32) string { return goString(C.dipc_hresult_name(C.uint32_t(hresult))) }

// CommandCode returns the code of a command with this name, for example GetProcessInfo2; 0 if there is none.
func CommandCode(name string) uint16 {
	var row C.dipc_command_row
	for i := C.size_t(0); C.dipc_command_at(i, &row) == C.DIPC_STATUS_OK; i++ {
		if goString(row.name) == name {
			return uint16(row.code)
		}
	}
	return 0
}

// Runtime is the .NET runtime that listens on a socket. Each command has a connection of its own.
type Runtime struct {
	Path string
	// ProcessID is 0 if it is unknown.
	ProcessID int
}

var socketName = regexp.MustCompile(`^dotnet-diagnostic-([0-9]+)-([0-9]+)-socket$`)

// Runtimes returns the runtimes that listen in the folder where processes with this environment have their sockets.
// Sockets of processes that have ended are left out.
func Runtimes() ([]Runtime, error) {
	folder := os.Getenv("TMPDIR")
	if folder == "" {
		folder = "/tmp"
	}
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, err
	}
	var runtimes []Runtime
	for _, entry := range entries {
		name := socketName.FindStringSubmatch(entry.Name())
		if name == nil {
			continue
		}
		processID, err := strconv.Atoi(name[1])
		// The key is the start time of the process. An earlier process with this id may have left a socket.
		if err != nil || (name[2] != "0" && name[2] != startTime(processID)) {
			continue
		}
		path := filepath.Join(folder, entry.Name())
		if conn, err := net.DialTimeout("unix", path, time.Second); err == nil {
			conn.Close()
			runtimes = append(runtimes, Runtime{path, processID})
		}
	}
	return runtimes, nil
}

// ForProcess returns the runtime of a process.
func ForProcess(processID int) (Runtime, error) {
	runtimes, err := Runtimes()
	if err != nil {
		return Runtime{}, err
	}
	for _, runtime := range runtimes {
		if runtime.ProcessID == processID {
			return runtime, nil
		}
	}
	return Runtime{}, fmt.Errorf("no .NET runtime of process %d listens: %w", processID, os.ErrNotExist)
}

// startTime returns the start time of a process as Linux counts it, or "0" if it is unknown.
func startTime(processID int) string {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", processID))
	if err != nil {
		return "0"
	}
	// The name of the program is in brackets, and can contain brackets and blanks.
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	if len(fields) < 20 {
		return "0"
	}
	return fields[19]
}

// call is an exchange on a connection of its own, with the buffer for its messages.
type call struct {
	ctx              context.Context
	conn             net.Conn
	exchange, buffer *memory
	answer           C.dipc_answer
	unwatch          func() bool
}

type build func(buffer *C.uint8_t, size C.size_t, length *C.size_t) C.dipc_status

// call sends the request that a function of the library builds, and receives the answer. The caller closes the call.
func (r Runtime) call(ctx context.Context, build build) (*call, error) {
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "unix", r.Path)
	if err != nil {
		return nil, err
	}
	// 64 KiB are enough for any message.
	c := &call{ctx: ctx, conn: conn, exchange: allocate(int(C.dipc_exchange_size())), buffer: allocate(1 << 16)}
	c.unwatch = context.AfterFunc(ctx, func() { conn.SetDeadline(time.Unix(1, 0)) })
	if err := c.run(build); err != nil {
		c.close()
		return nil, err
	}
	return c, nil
}

func (c *call) run(build build) error {
	var length, detail C.size_t
	if err := check(build(c.buffer.first(), c.buffer.len(), &length), length); err != nil {
		return err
	}
	status := C.dipc_call_init(c.exchange.exchange(), c.buffer.first(), c.buffer.len(), length, &detail)
	if err := check(status, detail); err != nil {
		return err
	}
	if err := c.drive(); err != nil {
		return err
	}
	if err := check(C.dipc_call_finish(c.exchange.exchange(), &c.answer, &detail), detail); err != nil {
		return err
	}
	if c.answer.refused {
		refused := &RefusedError{HResult: uint32(c.answer.hresult), Name: HResultName(uint32(c.answer.hresult))}
		refused.Hint = goString(C.dipc_hresult_hint(c.answer.hresult))
		path := C.CString("message")
		defer C.free(unsafe.Pointer(path))
		var part C.dipc_part
		if C.dipc_find(c.answer.bytes, c.answer.len, 0, path, &part, nil) == C.DIPC_STATUS_OK {
			refused.Message = goString(part.text)
		}
		return refused
	}
	return nil
}

// drive does the steps of the exchange until it is done.
func (c *call) drive() error {
	for {
		var step C.dipc_step
		var detail C.size_t
		if err := check(C.dipc_exchange_step(c.exchange.exchange(), &step, &detail), detail); err != nil {
			return err
		}
		if step.kind == C.DIPC_STEP_DONE {
			return nil
		}
		n, err := transfer(c.conn, &step)
		if c.ctx.Err() != nil {
			return c.ctx.Err()
		}
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return err
		}
		if err := check(C.dipc_exchange_advance(c.exchange.exchange(), C.size_t(n), &detail), detail); err != nil {
			return err
		}
	}
}

// transfer does a step of an exchange. A connection that was reset counts as closed: no bytes.
func transfer(conn net.Conn, step *C.dipc_step) (int, error) {
	memory := unsafe.Slice((*byte)(step.data), int(step.len))
	if step.kind == C.DIPC_STEP_SEND {
		return conn.Write(memory)
	}
	return conn.Read(memory)
}

// grow doubles the buffer, which is full: so it has at most twice the length of what has arrived.
func (c *call) grow(detail *C.size_t) C.dipc_status {
	larger := allocate(2 * c.buffer.size)
	copy(larger.bytes(), c.buffer.bytes())
	c.buffer.free()
	c.buffer = larger
	return C.dipc_exchange_set_buffer(c.exchange.exchange(), larger.first(), larger.len(), detail)
}

func (c *call) close() {
	c.free()
	c.conn.Close()
}

// free ends the call, without its connection.
func (c *call) free() {
	c.unwatch()
	c.exchange.free()
	c.buffer.free()
}

// ProcessInfo is the description of a process. Old runtimes do not have the last three fields.
type ProcessInfo struct {
	ProcessID                     uint64
	RuntimeCookie                 GUID
	CommandLine                   string
	OS                            string
	Arch                          string
	ManagedEntrypointAssemblyName string
	ClrProductVersion             string
	PortableRID                   string
}

var describe = []struct {
	command C.uint16_t
	build   build
}{
	{C.DIPC_COMMAND_GET_PROCESS_INFO3, func(buffer *C.uint8_t, size C.size_t, length *C.size_t) C.dipc_status {
		return C.dipc_build_GetProcessInfo3(buffer, size, length)
	}},
	{C.DIPC_COMMAND_GET_PROCESS_INFO2, func(buffer *C.uint8_t, size C.size_t, length *C.size_t) C.dipc_status {
		return C.dipc_build_GetProcessInfo2(buffer, size, length)
	}},
	{C.DIPC_COMMAND_GET_PROCESS_INFO, func(buffer *C.uint8_t, size C.size_t, length *C.size_t) C.dipc_status {
		return C.dipc_build_GetProcessInfo(buffer, size, length)
	}},
}

// Info returns the description of the process, by the newest command that the runtime knows.
func (r Runtime) Info(ctx context.Context) (*ProcessInfo, error) {
	const unknownCommand = 0x80131385
	for i, command := range describe {
		info, err := r.info(ctx, command.command, command.build)
		var refused *RefusedError
		if i == len(describe)-1 || !errors.As(err, &refused) || refused.HResult != unknownCommand {
			return info, err
		}
	}
	panic("the last command returns")
}

func (r Runtime) info(ctx context.Context, command C.uint16_t, build build) (*ProcessInfo, error) {
	c, err := r.call(ctx, build)
	if err != nil {
		return nil, err
	}
	defer c.close()
	var info C.dipc_process_info
	var detail C.size_t
	status := C.dipc_read_process_info(c.answer.bytes, c.answer.len, command, &info, &detail)
	if err := check(status, detail); err != nil {
		return nil, err
	}
	return &ProcessInfo{
		ProcessID:                     uint64(info.process_id),
		RuntimeCookie:                 guid(info.runtime_cookie),
		CommandLine:                   goString(info.command_line),
		OS:                            goString(info.os),
		Arch:                          goString(info.arch),
		ManagedEntrypointAssemblyName: goString(info.managed_entrypoint_assembly_name),
		ClrProductVersion:             goString(info.clr_product_version),
		PortableRID:                   goString(info.portable_rid),
	}, nil
}

// Environment returns the environment of the process: usually NAME=value, at most 16 MiB.
func (r Runtime) Environment(ctx context.Context) ([]string, error) {
	c, err := r.call(ctx, func(buffer *C.uint8_t, size C.size_t, length *C.size_t) C.dipc_status {
		return C.dipc_build_GetProcessEnvironment(buffer, size, length)
	})
	if err != nil {
		return nil, err
	}
	defer c.close()
	var detail C.size_t
	exchange := c.exchange.exchange()
	const limit = 16 << 20
	status := C.dipc_environment_init(exchange, c.answer.bytes, c.answer.len, limit, c.buffer.first(), c.buffer.len(),
		&detail)
	if err := check(status, detail); err != nil {
		return nil, err
	}
	var entries []string
	for !C.dipc_environment_is_finished(exchange) {
		if err := c.drive(); err != nil {
			return nil, err
		}
		for {
			var entry C.dipc_text
			status := C.dipc_environment_next(exchange, &entry, &detail)
			if status == C.DIPC_STATUS_NOT_FOUND { // nothing more has arrived
				break
			}
			if status == C.DIPC_STATUS_BUFFER_TOO_SMALL { // for the next entry: receive more of it
				status = c.grow(&detail)
				if err := check(status, detail); err != nil {
					return nil, err
				}
				break
			}
			if err := check(status, detail); err != nil {
				return nil, err
			}
			entries = append(entries, goString(entry))
		}
	}
	return entries, nil
}

// Level is the verbosity of a provider.
type Level uint32

// The levels.
const (
	LevelCritical      Level = C.DIPC_LEVEL_CRITICAL
	LevelError         Level = C.DIPC_LEVEL_ERROR
	LevelWarning       Level = C.DIPC_LEVEL_WARNING
	LevelInformational Level = C.DIPC_LEVEL_INFORMATIONAL
	LevelVerbose       Level = C.DIPC_LEVEL_VERBOSE
)

// Provider is a source of events, and which of its events to record.
type Provider struct {
	Name string
	// Keywords selects groups of events; 0 selects all.
	Keywords uint64
	// Level is the verbosity; 0 is LevelInformational.
	Level Level
	// Arguments has settings for the provider: key=value joined by `;`.
	Arguments string
}

// TraceConfig is what a session records.
type TraceConfig struct {
	Providers []Provider
	// BufferMB is the size of the runtime's buffer in MB; 0 is 256.
	BufferMB uint32
	// Rundown makes the trace end with the names of all methods.
	Rundown bool
	// StopTimeout is the time for the runtime to end the session; 0 is 10 seconds.
	StopTimeout time.Duration
}

// StartTracing starts to record events. The context is for the start only.
func (r Runtime) StartTracing(ctx context.Context, config TraceConfig) (*Session, error) {
	if config.BufferMB == 0 {
		config.BufferMB = 256
	}
	if config.StopTimeout == 0 {
		config.StopTimeout = 10 * time.Second
	}
	count := len(config.Providers)
	array := allocate(count * int(unsafe.Sizeof(C.dipc_provider{})))
	defer array.free()
	text := func(s string) (C.dipc_text, *memory) {
		m := allocateBytes([]byte(s))
		return C.dipc_text{data: m.pointer, len: m.len(), form: C.DIPC_TEXT_UTF8}, m
	}
	for i, provider := range config.Providers {
		name, nameMemory := text(provider.Name)
		arguments, argumentsMemory := text(provider.Arguments)
		defer nameMemory.free()
		defer argumentsMemory.free()
		if provider.Keywords == 0 {
			provider.Keywords = 1<<64 - 1
		}
		if provider.Level == 0 {
			provider.Level = LevelInformational
		}
		unsafe.Slice((*C.dipc_provider)(array.pointer), count)[i] = C.dipc_provider{
			keywords:  C.uint64_t(provider.Keywords),
			level:     C.dipc_event_level(provider.Level),
			name:      name,
			arguments: arguments,
		}
	}
	list := C.dipc_providers{items: (*C.dipc_provider)(array.pointer), count: C.size_t(count)}
	c, err := r.call(ctx, func(buffer *C.uint8_t, size C.size_t, length *C.size_t) C.dipc_status {
		return C.dipc_build_CollectTracing2(buffer, size, length, C.uint32_t(config.BufferMB), C.DIPC_FORMAT_NET_TRACE,
			C.bool(config.Rundown), list)
	})
	if err != nil {
		return nil, err
	}
	var id C.uint64_t
	var detail C.size_t
	if err := check(C.dipc_read_SessionId(c.answer.bytes, c.answer.len, &id, &detail), detail); err != nil {
		c.close()
		return nil, err
	}
	c.free()
	// The context may have ended after the answer arrived.
	c.conn.SetDeadline(time.Time{})
	s := &Session{
		runtime:     r,
		stream:      c.conn,
		stopTimeout: config.StopTimeout,
		start:       time.Now(),
		session:     allocate(int(C.dipc_session_size())),
		stopped:     make(chan struct{}),
	}
	return s, check(C.dipc_session_init(s.session.session(), id), 0)
}

// SessionEnd is how a session has ended.
type SessionEnd uint32

// The ends of sessions.
const (
	SessionRunning   SessionEnd = C.DIPC_SESSION_RUNNING
	SessionComplete  SessionEnd = C.DIPC_SESSION_COMPLETE
	SessionCutOff    SessionEnd = C.DIPC_SESSION_CUT_OFF
	SessionTimedOut  SessionEnd = C.DIPC_SESSION_TIMED_OUT
	SessionAbandoned SessionEnd = C.DIPC_SESSION_ABANDONED
)

// Session is the stream of a trace that is being recorded; a file in format NetTrace contains the same bytes.
//
// A runtime that ends a session first writes all buffered events, and blocks until they are read. So read up to io.EOF after
// Stop, too. Close stops the session and discards the rest.
type Session struct {
	runtime     Runtime
	stream      net.Conn
	stopTimeout time.Duration
	start       time.Time
	stop        sync.Once
	// Closed when the goroutine that stops the session has ended.
	stopped chan struct{}
	// Protects the rest.
	mutex    sync.Mutex
	stopping bool
	session  *memory
	end      SessionEnd
}

// now is the time in milliseconds of the session.
func (s *Session) now() C.uint64_t { return C.uint64_t(time.Since(s.start).Milliseconds()) }

// End returns how the session has ended.
func (s *Session) End() SessionEnd {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.session.pointer != nil {
		s.end = SessionEnd(C.dipc_session_end(s.session.session()))
	}
	return s.end
}

// Read reads some bytes of the stream. It returns io.EOF at its end: End is the reason.
func (s *Session) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	n, err := s.stream.Read(p)
	stopping, err := s.report(p[:n], err)
	if err == io.EOF && stopping {
		<-s.stopped // End is known then
	}
	return n, err
}

// report reports the result of reading the stream. It also returns whether the session is being stopped.
func (s *Session) report(bytes []byte, err error) (bool, error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.session.pointer == nil {
		return false, os.ErrClosed
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		C.dipc_session_tick(s.session.session(), s.now())
		C.dipc_session_abandon(s.session.session()) // if the runtime refused the Stop before its deadline
		return true, fmt.Errorf("the runtime did not end the session: %w", err)
	}
	C.dipc_session_stream_advance(s.session.session(), (*C.uint8_t)(unsafe.SliceData(bytes)), C.size_t(len(bytes)))
	if len(bytes) == 0 {
		return s.stopping, io.EOF
	}
	return s.stopping, nil
}

// Stop requests the end of the session, without waiting for it. Any goroutine can call it.
func (s *Session) Stop() {
	s.stop.Do(func() {
		until := s.now() + C.uint64_t(s.stopTimeout.Milliseconds())
		s.stream.SetReadDeadline(time.Now().Add(s.stopTimeout))
		s.mutex.Lock()
		s.stopping = true
		C.dipc_session_stop(s.session.session(), until)
		s.mutex.Unlock()
		go s.driveStop(until)
	})
}

// driveStop does what the library says on the connection that stops the session.
func (s *Session) driveStop(until C.uint64_t) {
	defer close(s.stopped)
	var conn net.Conn
	for {
		kind, bytes, due, failed := s.stopStep()
		switch kind {
		case C.DIPC_STEP_CONNECT:
			var err error
			if conn, err = net.DialTimeout("unix", s.runtime.Path, s.stopTimeout); err != nil {
				// Either the runtime has no room for a connection now, or its process has ended, and so will the stream.
				s.stopAdvance(C.DIPC_STOP_BUSY, s.now(), nil)
				continue
			}
			defer conn.Close()
			conn.SetDeadline(time.Now().Add(s.stopTimeout))
			s.stopAdvance(C.DIPC_STOP_CONNECTED, 0, nil)
		case C.DIPC_STEP_SEND:
			n, _ := conn.Write(bytes)
			s.stopAdvance(C.DIPC_STOP_SENT, C.uint64_t(n), nil)
		case C.DIPC_STEP_RECEIVE:
			n, _ := conn.Read(bytes)
			s.stopAdvance(C.DIPC_STOP_RECEIVED, C.uint64_t(n), bytes[:n])
		default:
			if failed {
				s.stream.SetReadDeadline(time.Unix(1, 0)) // Read returns the error
			}
			if failed || due == 0 || due >= until { // 0: the session is over
				return
			}
			// Until the next attempt to connect.
			time.Sleep(time.Duration(due-min(s.now(), due)) * time.Millisecond)
		}
	}
}

// stopStep returns the next step on the connection that stops the session, with a copy of its bytes: the stream can be read
// while they are sent or received. It also returns when the next step is due, and whether the runtime refused.
func (s *Session) stopStep() (kind C.uint32_t, bytes []byte, due C.uint64_t, failed bool) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	session := s.session.session()
	var step C.dipc_step
	C.dipc_session_tick(session, s.now())
	C.dipc_session_stop_step(session, &step)
	bytes = copyBytes((*C.uint8_t)(step.data), step.len)
	return step.kind, bytes, C.dipc_session_until(session), bool(C.dipc_session_stop_failed(session))
}

// stopAdvance reports the result of the step, with the bytes that were received.
func (s *Session) stopAdvance(event C.uint32_t, value C.uint64_t, received []byte) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	var step C.dipc_step
	C.dipc_session_stop_step(s.session.session(), &step)
	if step.kind == C.DIPC_STEP_RECEIVE {
		copy(unsafe.Slice((*byte)(step.data), int(step.len)), received)
	}
	C.dipc_session_stop_advance(s.session.session(), event, value)
}

// Close stops the session, discards the rest of its stream, and returns the error if the runtime does not end it.
func (s *Session) Close() error {
	s.mutex.Lock()
	closed := s.session.pointer == nil
	s.mutex.Unlock()
	if closed {
		return nil
	}
	s.Stop()
	_, err := io.Copy(io.Discard, s)
	s.End()
	s.stream.Close()
	<-s.stopped
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.session.free()
	return err
}

// EventKind is the description of a kind of event.
type EventKind struct {
	EventID  uint32
	Provider string
	// Name is empty if the event has none.
	Name     string
	Keywords uint64
	Version  uint32
	Level    Level
	// Opcode is -1 if the description states none.
	Opcode int32
	// The description of the fields, and the record that it points into.
	metadata, record *memory
}

func newEventKind(trace *C.dipc_trace, event *C.dipc_event) (uint32, *EventKind) {
	record := allocateBytes(copyBytes(event.payload, event.payload_len))
	metadata := allocate(int(unsafe.Sizeof(C.dipc_metadata{})))
	m := metadata.metadata()
	status := C.dipc_metadata_decode_runtime(trace.version, trace.pointer_size, record.first(), record.len(), m, nil)
	if status != C.DIPC_STATUS_OK {
		return 0, nil
	}
	return uint32(m.id), &EventKind{
		EventID:  uint32(m.event_id),
		Provider: goString(m.provider),
		Name:     goString(m.name),
		Keywords: uint64(m.keywords),
		Version:  uint32(m.version),
		Level:    Level(m.level),
		Opcode:   int32(m.opcode),
		metadata: metadata,
		record:   record,
	}
}

// Field is a field of an event. Its value is a bool, int64, uint64, float64, string, GUID, time.Time, []byte, Decimal or
// CodeUnit, a []Field for an object, or an []any for an array.
type Field struct {
	Name  string
	Value any
}

// Decimal has the 16 bytes of a .NET Decimal.
type Decimal [16]byte

// CodeUnit is a code unit of UTF-16 or UTF-8.
type CodeUnit uint16

// UnknownThread is the id of a thread that the trace does not state.
const UnknownThread = math.MaxUint64

// Event is an event of a trace.
type Event struct {
	// Kind describes the event. It is never nil, but empty if the trace does not describe the event.
	Kind *EventKind
	Time time.Time
	// Opcode is -1 if the trace does not state it.
	Opcode   int32
	Keywords uint64
	Level    Level
	Version  uint32
	// ThreadID is UnknownThread if the trace does not state it.
	ThreadID uint64
	// ThreadName is the name of the thread, in version 6 of the format.
	ThreadName string
	// Processor is -1 if it is unknown.
	Processor         int
	ActivityID        GUID
	RelatedActivityID GUID
	// TraceID and SpanID are those of W3C, in version 6 of the format, or zeros.
	TraceID [16]byte
	SpanID  uint64
	// Labels are all other properties, in version 6 of the format: a text or an int64 for each name.
	Labels  []Field
	Payload []byte
	// Stack has the addresses of the call stack, innermost first. Events with the same stack can share it.
	Stack []uint64
}

// labels are properties of events; nil for those that a list does not have.
type labels struct {
	activityID, relatedActivityID *GUID
	traceID                       [16]byte
	spanID                        uint64
	// These replace what the description of the event states.
	opcode   *int32
	keywords *uint64
	level    *Level
	version  *uint32
	others   []Field
}

//export dotnetipcVisitLabel
func dotnetipcVisitLabel(context unsafe.Pointer, label *C.dipc_label) {
	l := (*cgo.Handle)(context).Value().(*labels)
	id, number := guid(label.guid), uint64(label.number)
	switch label.kind {
	// The first activity counts; of the others the last.
	case C.DIPC_LABEL_ACTIVITY_ID:
		if l.activityID == nil {
			l.activityID = &id
		}
	case C.DIPC_LABEL_RELATED_ACTIVITY_ID:
		if l.relatedActivityID == nil {
			l.relatedActivityID = &id
		}
	case C.DIPC_LABEL_TRACE_ID:
		l.traceID = id
	case C.DIPC_LABEL_SPAN_ID:
		l.spanID = number
	case C.DIPC_LABEL_TEXT:
		l.others = append(l.others, Field{goString(label.name), goString(label.text)})
	case C.DIPC_LABEL_NUMBER:
		l.others = append(l.others, Field{goString(label.name), int64(number)})
	case C.DIPC_LABEL_OPCODE:
		opcode := int32(number)
		l.opcode = &opcode
	case C.DIPC_LABEL_KEYWORDS:
		l.keywords = &number
	case C.DIPC_LABEL_LEVEL:
		level := Level(number)
		l.level = &level
	case C.DIPC_LABEL_VERSION:
		version := uint32(number)
		l.version = &version
	}
}

// or returns what a pointer points to, or another value if it is nil.
func or[T any](value *T, other T) T {
	if value != nil {
		return *value
	}
	return other
}

type thread struct {
	name string
	id   uint64
}

// values collects the values of a payload. Objects and arrays are open until their end.
type values struct {
	fields []Field
	open   []container
}

type container struct {
	name    string
	isArray bool
	fields  []Field
	items   []any
}

func (v *values) add(name string, value any) {
	if len(v.open) == 0 {
		v.fields = append(v.fields, Field{name, value})
		return
	}
	innermost := &v.open[len(v.open)-1]
	if innermost.isArray {
		innermost.items = append(innermost.items, value)
	} else {
		innermost.fields = append(innermost.fields, Field{name, value})
	}
}

func (v *values) close() {
	ended := v.open[len(v.open)-1]
	v.open = v.open[:len(v.open)-1]
	if ended.isArray {
		v.add(ended.name, ended.items)
	} else {
		v.add(ended.name, ended.fields)
	}
}

// Fields decodes the payload. If that does not fit its description, which occurs in valid traces too, it returns the fields
// before the error, and the error.
func (e *Event) Fields() ([]Field, error) {
	if e.Kind.metadata == nil {
		return nil, nil
	}
	payload := allocateBytes(e.Payload)
	defer payload.free()
	var v values
	var detail C.size_t
	handle := cgo.NewHandle(&v)
	defer handle.Delete()
	status := C.values(e.Kind.metadata.metadata(), payload.first(), payload.len(), unsafe.Pointer(&handle), &detail)
	runtime.KeepAlive(e)
	for len(v.open) > 0 {
		v.close()
	}
	return v.fields, check(status, detail)
}

//export dotnetipcVisitValue
func dotnetipcVisitValue(context unsafe.Pointer, value *C.dipc_field_value) C.bool {
	v := (*cgo.Handle)(context).Value().(*values)
	name := goString(value.name)
	switch value.kind {
	case C.DIPC_VALUE_BOOL:
		v.add(name, value.number != 0)
	case C.DIPC_VALUE_INT:
		v.add(name, int64(value.number))
	case C.DIPC_VALUE_UINT:
		v.add(name, uint64(value.number))
	case C.DIPC_VALUE_REAL:
		v.add(name, float64(value.real))
	case C.DIPC_VALUE_TEXT:
		v.add(name, goString(value.text))
	case C.DIPC_VALUE_GUID:
		v.add(name, guid(value.guid))
	case C.DIPC_VALUE_TIME:
		const perSecond, secondsTo1970 = 10_000_000, 11_644_473_600
		seconds, rest := uint64(value.number)/perSecond, uint64(value.number)%perSecond
		v.add(name, time.Unix(int64(seconds)-secondsTo1970, int64(rest)*100).UTC())
	case C.DIPC_VALUE_BYTES:
		v.add(name, copyBytes(value.bytes, value.len))
	case C.DIPC_VALUE_DECIMAL:
		v.add(name, Decimal(guid(value.guid)))
	case C.DIPC_VALUE_CODE_UNIT:
		v.add(name, CodeUnit(value.number))
	case C.DIPC_VALUE_BEGIN_OBJECT:
		v.open = append(v.open, container{name: name})
	case C.DIPC_VALUE_BEGIN_ARRAY:
		v.open = append(v.open, container{name: name, isArray: true})
	case C.DIPC_VALUE_END_OBJECT, C.DIPC_VALUE_END_ARRAY:
		v.close()
	}
	return true
}

// TraceEnd is how a trace ends.
type TraceEnd uint32

// The ends of traces.
const (
	TraceComplete  TraceEnd = C.DIPC_END_COMPLETE
	TraceTruncated TraceEnd = C.DIPC_END_TRUNCATED
	TraceCorrupt   TraceEnd = C.DIPC_END_CORRUPT
)

// TraceReader reads the events of a trace, from a file or a Session, in the order of the stream. A damaged trace has all
// events before the damage: End reports the reason after the last event.
type TraceReader struct {
	reader                 io.Reader
	parser, window, record *memory
	length                 int
	trace                  C.dipc_trace
	kinds                  map[uint32]*EventKind
	threads                map[uint64]thread
	labels                 map[uint32]*labels
	stacks                 map[uint32][]uint64
	// The number of the last event of each capture thread, and whether they begin anew with the next block.
	numbers     map[uint64]uint32
	flush       bool
	lost        uint64
	undescribed EventKind
	ended       bool
	end         TraceEnd
	endText     string
}

// NewTraceReader returns a reader of a trace. It needs no other buffer.
func NewTraceReader(reader io.Reader) *TraceReader {
	t := &TraceReader{
		reader:      reader,
		parser:      allocate(int(C.dipc_parser_size())),
		window:      allocate(1 << 17),
		record:      allocate(int(unsafe.Sizeof(C.dipc_record{}))),
		kinds:       map[uint32]*EventKind{},
		threads:     map[uint64]thread{},
		labels:      map[uint32]*labels{},
		stacks:      map[uint32][]uint64{},
		numbers:     map[uint64]uint32{},
		undescribed: EventKind{Opcode: -1},
	}
	C.dipc_parser_init(t.parser.parser())
	return t
}

// Events returns the events, for a range loop. An error of the reader is the last element, with an event without content.
func (t *TraceReader) Events() iter.Seq2[*Event, error] {
	return func(yield func(*Event, error) bool) {
		for {
			event, err := t.Next()
			if err == io.EOF {
				return
			}
			if err != nil {
				yield(&Event{Kind: &t.undescribed, Opcode: -1}, err)
				return
			}
			if !yield(event, nil) {
				return
			}
		}
	}
}

// Next returns the next event, or io.EOF after the last one.
func (t *TraceReader) Next() (*Event, error) {
	defer runtime.KeepAlive(t)
	for !t.ended {
		record := t.record.record()
		status := C.dipc_parser_next(t.parser.parser(), t.window.first(), C.size_t(t.length), record)
		if err := check(status, 0); err != nil {
			return nil, err
		}
		content := unsafe.Pointer(&record.u)
		switch record.kind {
		case C.DIPC_RECORD_EVENT:
			event := (*C.dipc_event)(content)
			t.number(uint64(event.capture_thread), uint32(event.sequence), 1)
			return t.event(event), nil
		case C.DIPC_RECORD_BLOCK:
			if t.flush {
				clear(t.numbers)
				t.flush = false
			}
		case C.DIPC_RECORD_TRACE:
			t.trace = *(*C.dipc_trace)(content)
		case C.DIPC_RECORD_METADATA:
			// The events of a kind whose description is malformed have none.
			if id, kind := newEventKind(&t.trace, (*C.dipc_event)(content)); kind != nil {
				t.kinds[id] = kind
			}
		case C.DIPC_RECORD_THREAD:
			start := (*C.dipc_thread_start)(content)
			t.threads[uint64(start.thread)] = thread{goString(start.name), uint64(start.thread_id)}
			if _, known := t.numbers[uint64(start.thread)]; !known {
				t.numbers[uint64(start.thread)] = 0
			}
		case C.DIPC_RECORD_REMOVE_THREAD:
			removed := (*C.dipc_thread)(content)
			t.number(uint64(removed.thread), uint32(removed.sequence), 0)
			delete(t.numbers, uint64(removed.thread))
			delete(t.threads, uint64(removed.thread))
		case C.DIPC_RECORD_STACK:
			stack := (*C.dipc_stack)(content)
			t.stacks[uint32(stack.id)] = t.addresses(stack.bytes, stack.len)
		case C.DIPC_RECORD_LABEL_LIST:
			var l labels
			list, handle := (*C.dipc_label_list)(content), cgo.NewHandle(&l)
			status := C.labels(list, unsafe.Pointer(&handle))
			handle.Delete()
			if err := check(status, 0); err != nil {
				return nil, err
			}
			t.labels[uint32(list.id)] = &l
		case C.DIPC_RECORD_SEQUENCE_POINT:
			point := (*C.dipc_sequence_point)(content)
			clear(t.labels)
			clear(t.stacks)
			t.flush = point.flags&1 != 0
			if t.flush {
				clear(t.threads)
			}
			if point.flags&2 != 0 {
				clear(t.kinds)
			}
		case C.DIPC_RECORD_THREAD_SEQUENCE:
			row := (*C.dipc_thread)(content)
			t.number(uint64(row.thread), uint32(row.sequence), 0)
		case C.DIPC_RECORD_END:
			t.finish()
		case C.DIPC_RECORD_MORE:
			if err := t.fill(int(*(*C.size_t)(content))); err != nil {
				return nil, err
			}
		}
	}
	return nil, io.EOF
}

// fill moves the window, so that it can hold `needed` bytes, and reads some.
func (t *TraceReader) fill(needed int) error {
	used := int(C.dipc_parser_release(t.parser.parser()))
	rest := t.window.bytes()[used:t.length]
	if needed > t.window.size {
		window := allocate(max(needed, 2*t.window.size))
		t.length = copy(window.bytes(), rest)
		t.window.free()
		t.window = window
	} else {
		t.length = copy(t.window.bytes(), rest)
	}
	room := t.window.bytes()[t.length:]
	for range 100 { // as in bufio
		n, err := t.reader.Read(room)
		if n < 0 || n > len(room) {
			return fmt.Errorf("the reader has read %d bytes into a buffer of %d", n, len(room))
		}
		t.length += n
		if n == 0 && err == nil {
			continue
		}
		if err == io.EOF {
			if n == 0 {
				t.finish()
			}
			return nil
		}
		return err
	}
	return io.ErrNoProgress
}

// number notes the number of the last event of a thread, and counts the events that are missing before it. `own` is 1 for
// the number of an event that was read, and 0 for one that is only stated.
func (t *TraceReader) number(thread uint64, number, own uint32) {
	last, known := t.numbers[thread]
	missing := number - last - own
	if t.trace.version == 6 {
		if !known { // may have begun with any number
			missing = 0
		}
	} else if t.trace.version == 3 || !known && number == 0 {
		return // version 3 has no numbers; 0 is that of a thread without events
	} else if own == 1 && number == 1 { // a new thread with the id of one that has ended
		missing = 0
	}
	if missing < 1<<31 { // otherwise the number went back
		t.lost += uint64(missing)
	}
	t.numbers[thread] = number
}

// Lost returns how many events the runtime is known to have lost up to here, because its buffer was full or they had more
// than 64 KiB: the gaps in the numbers of each thread's events. Version 3 of the format does not number events.
func (t *TraceReader) Lost() uint64 { return t.lost }

// addresses returns the addresses in the bytes of a stack.
func (t *TraceReader) addresses(data *C.uint8_t, length C.size_t) []uint64 {
	bytes, size := unsafe.Slice((*byte)(data), int(length)), max(int(t.trace.pointer_size), 1)
	var stack []uint64
	for ; len(bytes) >= size; bytes = bytes[size:] {
		var address [8]byte
		copy(address[:], bytes[:size])
		stack = append(stack, binary.LittleEndian.Uint64(address[:]))
	}
	return stack
}

func (t *TraceReader) finish() {
	var end C.dipc_end
	var text [256]C.char
	C.dipc_parser_finish(t.parser.parser(), t.window.first(), C.size_t(t.length), &end)
	C.dipc_parser_end_text(t.parser.parser(), t.window.first(), C.size_t(t.length), &text[0], C.size_t(len(text)), nil)
	t.ended, t.end, t.endText = true, TraceEnd(end.kind), C.GoString(&text[0])
}

// End returns how the trace ends, and a sentence for it. It is valid after the last event.
func (t *TraceReader) End() (TraceEnd, string) { return t.end, t.endText }

func (t *TraceReader) event(event *C.dipc_event) *Event {
	kind := t.kinds[uint32(event.metadata_id)]
	if kind == nil {
		kind = &t.undescribed
	}
	l := t.labels[uint32(event.label_list)]
	if l == nil {
		l = &labels{}
	}
	// Before version 6, an event has the id itself.
	thread, known := t.threads[uint64(event.thread)]
	if !known {
		thread.id = UnknownThread
		if t.trace.version < 6 {
			thread.id = uint64(event.thread)
		}
	}
	// Version 3 has the stack in the event.
	stack := t.stacks[uint32(event.stack_id)]
	if event.stack_len > 0 {
		stack = t.addresses(event.stack, event.stack_len)
	}
	processor := -1
	if event.processor != 1<<32-1 {
		processor = int(event.processor)
	}
	// Seconds and the rest apart, because their product with a billion would overflow.
	ticks, frequency := int64(event.timestamp-t.trace.sync_ticks), int64(max(t.trace.frequency, 1))
	start := time.Unix(0, int64(t.trace.start_unix_nanoseconds)).UTC()
	offset := time.Duration(ticks/frequency)*time.Second + time.Duration(float64(ticks%frequency)*1e9/float64(frequency))
	return &Event{
		Kind:              kind,
		Time:              start.Add(offset),
		Opcode:            or(l.opcode, kind.Opcode),
		Keywords:          or(l.keywords, kind.Keywords),
		Level:             or(l.level, kind.Level),
		Version:           or(l.version, kind.Version),
		ThreadID:          thread.id,
		ThreadName:        thread.name,
		Processor:         processor,
		ActivityID:        or(l.activityID, guid(event.activity_id)),
		RelatedActivityID: or(l.relatedActivityID, guid(event.related_activity_id)),
		TraceID:           l.traceID,
		SpanID:            l.spanID,
		Labels:            l.others,
		Payload:           copyBytes(event.payload, event.payload_len),
		Stack:             stack,
	}
}
