// A program that calls the primitives of the framework: it throws, locks, waits, allocates, starts threads, queues work and
// writes events. All frames of the framework above a method of `Work` carry that out. Mono's compiler compiles it (C# 7)
// with the assemblies of a precompiled runtime, which has the whole framework. It exits when its standard input ends.

using System;
using System.Diagnostics;
using System.Diagnostics.Metrics;
using System.Diagnostics.Tracing;
using System.Runtime.ExceptionServices;
using System.Threading;
using System.Threading.Tasks;

[EventSource(Name = "DotnetIpc-Calls")]
sealed class WorkSource : EventSource
{
    public static readonly WorkSource Log = new WorkSource();

    [Event(1)]
    public void Number(int number, string text)
    {
        WriteEvent(1, number, text);
    }

    [Event(2)]
    public void Empty()
    {
        WriteEvent(2);
    }

    [Event(3)]
    public void Several(int number, double fraction, string text, long other)
    {
        WriteEvent(3, number, fraction, text, other);
    }

    [Event(4, Opcode = EventOpcode.Start)]
    public void OrderStart(int number)
    {
        WriteEvent(4, number);
    }

    [Event(5, Opcode = EventOpcode.Stop)]
    public void OrderStop(int number)
    {
        WriteEvent(5, number);
    }
}

static class Work
{
    static readonly object gate = new object();
    static readonly ActivitySource activities = new ActivitySource("DotnetIpc-Calls");
    static readonly DiagnosticListener listener = new DiagnosticListener("DotnetIpc-Calls");
    static object kept;

    static async Task<int> Fail()
    {
        await Task.Yield();
        throw new InvalidOperationException("expected");
    }

    static async Task Pass()
    {
        await Fail();
    }

    static async Task PassAnywhere()
    {
        await Fail().ConfigureAwait(false);
    }

    static async Task PassValue()
    {
        await new ValueTask<int>(Fail());
    }

    static async Task PassValueAnywhere()
    {
        await new ValueTask<int>(Fail()).ConfigureAwait(false);
    }

    static void Throw()
    {
        foreach (var fail in new Func<Task>[] { Fail, Pass, PassAnywhere, PassValue, PassValueAnywhere })
        {
            try
            {
                fail().GetAwaiter().GetResult();
            }
            catch (InvalidOperationException e)
            {
                try
                {
                    ExceptionDispatchInfo.Capture(e).Throw();
                }
                catch (InvalidOperationException)
                {
                }
            }
        }
    }

    static void Hold(AutoResetEvent isHeld)
    {
        lock (gate)
        {
            isHeld.Set();
            Thread.Sleep(20);
        }
    }

    static void Lock()
    {
        using (var isHeld = new AutoResetEvent(false))
        {
            new Thread(() => Hold(isHeld)).Start();
            isHeld.WaitOne();
            lock (gate)
            {
            }
            new Thread(() => Hold(isHeld)).UnsafeStart();
            isHeld.WaitOne();
            if (Monitor.TryEnter(gate, 1000))
            {
                Monitor.Exit(gate);
            }
        }
    }

    static void Wait()
    {
        using (var never = new ManualResetEvent(false))
        using (var neither = new ManualResetEvent(false))
        {
            never.WaitOne(5);
            WaitHandle.WaitAny(new WaitHandle[] { never, neither }, 5);
            WaitHandle.WaitAll(new WaitHandle[] { never, neither }, 5);
        }
    }

    static void Allocate()
    {
        for (int i = 0; i < 200; i++)
        {
            kept = new string('x', 5000);
            kept = GC.AllocateUninitializedArray<byte>(9000);
            kept = GC.AllocateArray<byte>(9000, true);
            kept = new byte[9000];
            kept = i;
        }
    }

    static void Write(int number)
    {
        WorkSource.Log.Number(number, "text");
        WorkSource.Log.Empty();
        WorkSource.Log.Several(number, 0.5, "text", 7);
        WorkSource.Log.OrderStart(number);
        WorkSource.Log.OrderStop(number);
        listener.Write("order", "text");
        using (activities.StartActivity("order"))
        {
        }
        using (var meter = new Meter("DotnetIpc-Calls"))
        {
            meter.CreateCounter<long>("orders").Add(1);
        }
    }

    static void Main()
    {
        new Thread(() => { while (Console.Read() >= 0) { } Environment.Exit(0); }) { IsBackground = true }.Start();
        for (int number = 0; ; number++)
        {
            Throw();
            Lock();
            Wait();
            Allocate();
            Write(number);
            ThreadPool.QueueUserWorkItem(_ => kept = null);
        }
    }
}
