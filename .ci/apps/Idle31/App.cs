// The program that .NET Core 3.1 runs for the tests. It writes events with known fields, and exits when its standard input
// ends. `.ci/runtimes` compiles it (C# 7, with the assemblies of 3.1).

using System;
using System.Diagnostics;
using System.Diagnostics.Tracing;
using System.Threading;

[EventSource(Name = "DotnetIpc-Idle31")]
sealed class Events : EventSource
{
    public static readonly Events Log = new Events();

    // Without these names the runtime rejects the keywords of the events, and writes none of them.
    public static class Keywords
    {
        public const EventKeywords Ticks = (EventKeywords)0x1;
        public const EventKeywords Rounds = (EventKeywords)0x2;
    }

    // number counts up from 0; square is number * number, and text is "tick " with the number.
    [Event(1, Level = EventLevel.Informational, Keywords = Keywords.Ticks)]
    public void Tick(int number, long square, string text)
    {
        WriteEvent(1, number, square, text);
    }

    // No payload; written after every tenth Tick.
    [Event(2, Level = EventLevel.Verbose, Keywords = Keywords.Rounds)]
    public void Round()
    {
        WriteEvent(2);
    }
}

static class App
{
    static void Main()
    {
        // A background thread does not keep the process alive after Main returns.
        new Thread(Tick) { IsBackground = true }.Start();
        Console.WriteLine("idle31 " + Process.GetCurrentProcess().Id);
        while (Console.In.Read() != -1) { }
    }

    static void Tick()
    {
        for (int number = 0; ; number++)
        {
            Events.Log.Tick(number, (long)number * number, "tick " + number);
            if (number % 10 == 9) Events.Log.Round();
            Thread.Sleep(10);
        }
    }
}
