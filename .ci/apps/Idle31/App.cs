// The program the .NET Core 3.1 runtime runs for the tests: it raises events whose every field is known,
// and ends when its standard input does. `.ci/runtimes` compiles it (C# 7, against 3.1's own assemblies).

using System;
using System.Diagnostics;
using System.Diagnostics.Tracing;
using System.Threading;

[EventSource(Name = "DotnetIpc-Idle31")]
sealed class Events : EventSource
{
    public static readonly Events Log = new Events();

    // Without these names the runtime takes the events' keywords for a mistake and raises none of them.
    public static class Keywords
    {
        public const EventKeywords Ticks = (EventKeywords)0x1;
        public const EventKeywords Rounds = (EventKeywords)0x2;
    }

    // number counts up from 0 by one; square is number * number, text is "tick " and the number.
    [Event(1, Level = EventLevel.Informational, Keywords = Keywords.Ticks)]
    public void Tick(int number, long square, string text)
    {
        WriteEvent(1, number, square, text);
    }

    // No payload; raised after every tenth Tick.
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
        // A background thread does not keep the process alive once Main is over.
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
