// Command dotnetipc shows the package dotnetipc at work.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"sort"
	"strconv"
	"time"

	"dotnetipc"
)

const usage = `usage:
    dotnetipc list             the .NET processes with their command lines
    dotnetipc info PID         the description of a process
    dotnetipc env PID          its environment
    dotnetipc trace PID [S]    record events for S seconds (5), and count them
    dotnetipc trace FILE       count the events of a trace
    dotnetipc events FILE      print the events of a trace with their fields`

var providers = []dotnetipc.Provider{
	{Name: "Microsoft-Windows-DotNETRuntime", Keywords: 0x1 | 0x8000}, // garbage collector, exceptions
	{Name: "System.Runtime", Arguments: "EventCounterIntervalSec=1"},
}

func list(ctx context.Context) error {
	runtimes, err := dotnetipc.Runtimes()
	if err != nil {
		return err
	}
	for _, runtime := range runtimes {
		if info, err := runtime.Info(ctx); err != nil {
			fmt.Println(runtime.ProcessID, err)
		} else {
			fmt.Println(runtime.ProcessID, info.CommandLine)
		}
	}
	return nil
}

func info(ctx context.Context, runtime dotnetipc.Runtime) error {
	info, err := runtime.Info(ctx)
	if err != nil {
		return err
	}
	fmt.Println("process_id:", info.ProcessID)
	fmt.Println("runtime_cookie:", info.RuntimeCookie)
	fmt.Println("command_line:", info.CommandLine)
	fmt.Println("os:", info.OS)
	fmt.Println("arch:", info.Arch)
	fmt.Println("managed_entrypoint_assembly_name:", info.ManagedEntrypointAssemblyName)
	fmt.Println("clr_product_version:", info.ClrProductVersion)
	fmt.Println("portable_rid:", info.PortableRID)
	return nil
}

func environment(ctx context.Context, runtime dotnetipc.Runtime) error {
	entries, err := runtime.Environment(ctx)
	for _, entry := range entries {
		fmt.Println(entry)
	}
	return err
}

func traceProcess(ctx context.Context, runtime dotnetipc.Runtime, duration time.Duration) error {
	session, err := runtime.StartTracing(ctx, dotnetipc.TraceConfig{Providers: providers})
	if err != nil {
		return err
	}
	defer session.Close()
	time.AfterFunc(duration, session.Stop)
	return count(session)
}

func traceFile(path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	return count(file)
}

// count counts the events by provider, and prints the last one of each.
func count(reader io.Reader) error {
	trace := dotnetipc.NewTraceReader(reader)
	counts, last, total := map[string]int{}, map[string]*dotnetipc.Event{}, 0
	for event, err := range trace.Events() {
		if err != nil {
			return err
		}
		counts[event.Kind.Provider]++
		last[event.Kind.Provider] = event
		total++
	}
	var names []string
	for name := range counts {
		names = append(names, name)
	}
	sort.Slice(names, func(i, j int) bool { return counts[names[i]] > counts[names[j]] })
	for _, name := range names {
		// The fields before an error are good.
		fields, _ := last[name].Fields()
		fmt.Printf("%8d %s; the last one is %s %v\n", counts[name], name, last[name].Kind.Name, fields)
	}
	end, text := trace.End()
	fmt.Printf("%8d events; the trace is %s\n", total, text)
	if end != dotnetipc.TraceComplete {
		os.Exit(1)
	}
	return nil
}

func events(path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	for event, err := range dotnetipc.NewTraceReader(file).Events() {
		if err != nil {
			return err
		}
		fields, _ := event.Fields()
		fmt.Println(event.Time.Format(time.RFC3339Nano), event.ThreadID, event.Kind.Provider, event.Kind.Name, fields)
	}
	return nil
}

func run(arguments []string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if len(arguments) == 1 && arguments[0] == "list" {
		return list(ctx)
	}
	if len(arguments) < 2 || len(arguments) > 3 {
		fmt.Fprintln(os.Stderr, usage)
		os.Exit(2)
	}
	processID, err := strconv.Atoi(arguments[1])
	if err != nil {
		switch arguments[0] {
		case "trace":
			return traceFile(arguments[1])
		case "events":
			return events(arguments[1])
		}
		return err
	}
	runtime, err := dotnetipc.ForProcess(processID)
	if err != nil {
		return err
	}
	switch arguments[0] {
	case "info":
		return info(ctx, runtime)
	case "env":
		return environment(ctx, runtime)
	case "trace":
		seconds := 5.0
		if len(arguments) == 3 {
			if seconds, err = strconv.ParseFloat(arguments[2], 64); err != nil {
				return err
			}
		}
		return traceProcess(ctx, runtime, time.Duration(seconds*float64(time.Second)))
	}
	fmt.Fprintln(os.Stderr, usage)
	os.Exit(2)
	return nil
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "dotnetipc:", err)
		os.Exit(1)
	}
}
