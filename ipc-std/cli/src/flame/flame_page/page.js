"use strict";
// A flame graph. The data has one tree for all clocks; `rows` of a clock is what each thread weighs at each call.
const $ = (id) => document.getElementById(id);
const data = JSON.parse($("data").textContent);
const ROW = 20;
/** Calls that are narrower are not drawn, in pixels. */
const NARROW = 0.4;
const isDiff = data.old !== null;

// Call 0 is the root. A caller has a smaller number than its callees.
const size = data.frames.length;
const callers = new Int32Array(size), depths = new Int32Array(size);
for (let call = 1; call < size; call += 1) {
    callers[call] = call - data.callers[call];
    depths[call] = depths[callers[call]] + 1;
}
const names = data.names;
/** Names without arguments, without module, and then without namespaces from the left, where the tool cuts them. */
const forms = names.map((name, number) => {
    const [end, first, ...rest] = data.places[number];
    return [name, name.slice(0, end), name.slice(first, end), ...rest.map((start) => `…${name.slice(start, end)}`)];
});
const methods = names.map((name, number) => name.slice(data.places[number].at(-1), data.places[number][0]));

let clock = data.clock, thread = -1, zoom = 0, selected = -1, hovered = -1, isBefore = false;
/** What each call weighs in the recording, and in the older one: without and with its callees. */
const after = { self: new Float64Array(size), total: new Float64Array(size) };
const before = { self: new Float64Array(size), total: new Float64Array(size) };
/** The weights that are widths, where each call begins, and all calls, the heaviest first. */
let widths = after.total;
const starts = new Float64Array(size), ends = new Float64Array(size);
let order = [];
const isMatch = new Uint8Array(size);
let hasSearch = false;

function addUp({ self, total }, rows, step, isCounted) {
    self.fill(0);
    let call = 0;
    for (let at = 0; at < rows.length; at += step) {
        call += rows[at];
        if (isCounted(rows[at + 1])) {
            self[call] += rows[at + step - 1];
        }
    }
    total.set(self);
    for (call = size - 1; call > 0; call -= 1) {
        total[callers[call]] += total[call];
    }
}

function weigh() {
    const { rows, old } = data.clocks[clock];
    addUp(after, rows, 3, (of) => thread < 0 || of === thread);
    if (isDiff) {
        addUp(before, old, 2, () => true);
    }
    widths = (isBefore ? before : after).total;
    order = Array.from({ length: size }, (_, call) => call).filter((call) => widths[call] > 0);
    order.sort((a, b) => widths[b] - widths[a] || a - b);
    starts.fill(0);
    ends.fill(0);
    for (const call of order) {
        if (call > 0) {
            const caller = callers[call];
            starts[call] = ends[caller];
            ends[caller] += widths[call];
        }
        // From here on, where its next callee begins.
        ends[call] = starts[call];
    }
    if (!(widths[zoom] > 0)) {
        zoom = 0;
    }
    selected = hovered = -1;
    let [all, unnamed] = [0, 0];
    for (let call = 1; call < size; call += 1) {
        all += after.total[call];
        unnamed += names[data.frames[call]].endsWith("!?") ? after.total[call] : 0;
    }
    $("notes").textContent = [`${percent(unnamed, all)} of frames without a name.`, ...data.notes].join(" ");
    layOut();
}

/** After a change of the zoom or the search. */
function layOut() {
    const end = starts[zoom] + widths[zoom];
    let deepest = 0;
    for (const call of order) {
        if (starts[call] < end && starts[call] + widths[call] > starts[zoom] && isWide(call)) {
            deepest = Math.max(deepest, depths[call]);
        }
    }
    $("space").style.height = `${Math.max(0, (deepest + 1) * ROW + 8 - canvas.clientHeight)}px`;
    match();
    $("reset").disabled = zoom === 0 && $("search").value === "";
    describe();
    redraw();
}

function match() {
    const text = $("search").value.trim().toLowerCase();
    hasSearch = text !== "";
    const found = names.map((name) => hasSearch && name.toLowerCase().includes(text));
    const isBelow = new Uint8Array(size), isCovered = new Uint8Array(size), functions = new Set();
    let sum = 0;
    for (let call = 0; call < size; call += 1) {
        isMatch[call] = call > 0 && found[data.frames[call]] ? 1 : 0;
        isBelow[call] = call === zoom || (call > 0 && isBelow[callers[call]]) ? 1 : 0;
        const isInMatch = call > 0 && isCovered[callers[call]];
        isCovered[call] = isInMatch || (isMatch[call] && isBelow[call]) ? 1 : 0;
        if (isMatch[call] && isBelow[call] && widths[call] > 0) {
            functions.add(data.frames[call]);
            sum += isInMatch ? 0 : widths[call];
        }
    }
    const count = functions.size;
    $("matched").textContent = !hasSearch ? "" : `${percent(sum, widths[zoom])} in ${count} function${count === 1 ? "" : "s"}`;
}

const percent = (part, of) => `${(of > 0 ? (100 * part) / of : 0).toFixed(2)} %`;
function amount(weight) {
    const grouped = (number, digits) => number.toLocaleString("en-US", { minimumFractionDigits: digits, maximumFractionDigits: digits });
    switch (data.clocks[clock].unit) {
        case "nanoseconds": return weight >= 1e10 ? `${grouped(weight / 1e9, 3)} s` : `${grouped(weight / 1e6, 3)} ms`;
        case "bytes": return weight >= 1e10 ? `${grouped(weight / 1e9, 3)} GB` : `${grouped(weight / 1e6, 3)} MB`;
        case "events": return `${grouped(weight, 0)} event${weight === 1 ? "" : "s"}`;
        default: return `${grouped(weight, 0)} sample${weight === 1 ? "" : "s"}`;
    }
}

/** The change of the share of a call, in percent of the total. */
function change(call, kind = "total") {
    const share = (of) => (of.total[0] > 0 ? (100 * of[kind][call]) / of.total[0] : 0);
    return share(after) - share(before);
}

function describe() {
    const call = hovered >= 0 ? hovered : selected >= 0 ? selected : zoom;
    $("name").textContent = call === 0 ? `All: ${data.clocks[clock].what}` : names[data.frames[call]];
    const parts = [];
    for (const kind of ["self", "total"]) {
        const of = (weights) => `${percent(weights[kind][call], weights.total[0])} (${amount(weights[kind][call])})`;
        const difference = change(call, kind).toFixed(2);
        const text = document.createElement("span");
        text.textContent = isDiff
            ? `${kind}: before ${of(before)}, after ${of(after)}, `
            : call === 0 && kind === "self" ? "" : `${kind} ${of(after)}${kind === "self" ? " · " : ""}`;
        parts.push(text);
        if (isDiff) {
            const delta = document.createElement("b");
            delta.className = difference > 0 ? "up" : difference < 0 ? "down" : "";
            delta.textContent = `${difference > 0 ? "+" : ""}${difference} %`;
            parts.push(delta, document.createElement("br"));
        }
    }
    if (zoom !== 0 && call !== zoom && starts[call] >= starts[zoom] && depths[call] > depths[zoom]) {
        parts.push(` · ${percent(widths[call], widths[zoom])} of the zoomed call`);
    }
    $("numbers").replaceChildren(...parts);
}

// Drawing.
const canvas = $("graph"), context = canvas.getContext("2d"), scroll = $("scroll");
const FONT = '12px system-ui, "Segoe UI", "DejaVu Sans", sans-serif';
let theme = {}, isPending = false;
const textWidths = new Map();

function readTheme() {
    const style = getComputedStyle(document.documentElement);
    theme = {};
    for (const name of ["back", "text", "dim", "accent", "root", "unnamed", "match", "match-text", "ink", "same", "more", "less", "saturation", "system", "lightness"]) {
        theme[name] = style.getPropertyValue(`--${name}`).trim();
    }
    theme.colours = names.map(colour);
    const items = isDiff
        ? [["larger share", theme.more], ["smaller share", theme.less]]
        : [["your code", hsl(28, 0)], ["framework, runtime", hsl(215, 0, theme.system)], ["without a name", theme.unnamed]];
    $("legend").replaceChildren(...items.map(([text, fill]) => {
        const [item, box] = [document.createElement("span"), document.createElement("i")];
        box.style.background = fill;
        item.append(box, text);
        return item;
    }));
}

const hsl = (hue, shift, saturation = theme.saturation) => `hsl(${hue} ${saturation}% ${Number(theme.lightness) + shift}%)`;
/** One colour for each type of a module, so that calls of one type look alike. */
function colour(name, number) {
    if (name.endsWith("!?")) {
        return theme.unnamed;
    }
    let hash = 7;
    for (const character of name.slice(0, data.places[number].at(-1))) {
        hash = (hash * 31 + character.codePointAt(0)) % 65521;
    }
    const [hue, shift] = [hash % 29, (hash % 5) * 2 - 4];
    if (data.own[number]) {
        return hsl(10 + 1.3 * hue, shift);
    }
    return name.startsWith("EventName: ") ? hsl(150 + hue, shift) : hsl(201 + hue, shift, theme.system);
}

function mix(from, to, part) {
    const parts = (text) => [1, 3, 5].map((at) => Number.parseInt(text.slice(at, at + 2), 16));
    const [a, b] = [parts(from), parts(to)];
    return `rgb(${a.map((value, at) => Math.round(value + (b[at] - value) * part)).join(" ")})`;
}

function fill(call) {
    if (isMatch[call]) {
        return theme.match;
    }
    if (call === 0) {
        return theme.root;
    }
    if (isDiff) {
        const difference = change(call);
        // A small change is visible, and one of 10 % has the whole colour.
        return mix(theme.same, difference > 0 ? theme.more : theme.less, Math.sqrt(Math.min(1, Math.abs(difference) / 10)));
    }
    return theme.colours[data.frames[call]];
}

function widthOf(text) {
    let width = textWidths.get(text);
    if (width === undefined) {
        width = context.measureText(text).width;
        textWidths.set(text, width);
    }
    return width;
}

/** The longest form of a name that fits. */
function label(call, room) {
    if (room < 16) {
        return "";
    }
    if (call === 0) {
        return cut(`All: ${amount(widths[0])}`, room);
    }
    const name = data.frames[call];
    const fitting = forms[name].find((text) => text.length * 3 < room && widthOf(text) <= room);
    return fitting ?? cut(methods[name], room);
}

function cut(text, room) {
    let length = text.length;
    if (length > 400) {
        length = 400;
    } else if (widthOf(text) <= room) {
        return text;
    }
    const mark = widthOf("…");
    while (length > 0) {
        const width = context.measureText(text.slice(0, length)).width + mark;
        if (width <= room) {
            return length < 3 ? "" : `${text.slice(0, length)}…`;
        }
        length = Math.min(length - 1, Math.floor((length * room) / width));
    }
    return "";
}

/** The left and the right edge of a call in pixels; a call that contains the zoomed one fills the window. */
function edges(call) {
    const width = canvas.clientWidth, scale = width / widths[zoom];
    const left = (starts[call] - starts[zoom]) * scale;
    return [Math.max(0, left), Math.min(width, left + widths[call] * scale)];
}

function isWide(call) {
    const [left, right] = edges(call);
    return right - left >= NARROW;
}

function redraw() {
    if (!isPending) {
        isPending = true;
        requestAnimationFrame(() => {
            isPending = false;
            draw();
        });
    }
}

function draw() {
    const ratio = window.devicePixelRatio || 1, width = canvas.clientWidth, height = canvas.clientHeight;
    if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
        [canvas.width, canvas.height] = [Math.round(width * ratio), Math.round(height * ratio)];
    }
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, width, height);
    context.font = FONT;
    context.textBaseline = "middle";
    for (const call of order) {
        const top = 4 + depths[call] * ROW - scroll.scrollTop;
        if (top < -ROW || top > height) {
            continue;
        }
        const [left, right] = edges(call);
        if (!(right - left >= NARROW)) {
            continue;
        }
        const box = [left, top, Math.max(NARROW, right - left - (right - left > 3 ? 1 : 0)), ROW - 1];
        const isPale = hasSearch ? !isMatch[call] : depths[call] < depths[zoom];
        context.globalAlpha = isPale ? 0.5 : 1;
        context.fillStyle = fill(call);
        context.fillRect(...box);
        const text = label(call, box[2] - 8);
        if (text !== "") {
            context.globalAlpha = isPale ? 0.75 : 1;
            context.fillStyle = isMatch[call] ? theme["match-text"] : call === 0 ? theme.text : theme.ink;
            context.fillText(text, left + 4, top + ROW / 2);
        }
        if (call === hovered || call === selected) {
            context.globalAlpha = 1;
            context.strokeStyle = call === selected ? theme.accent : theme.text;
            context.lineWidth = call === selected ? 2 : 1;
            context.strokeRect(left + 0.5, top + 0.5, Math.max(1, box[2] - 1), ROW - 2);
        }
    }
    context.globalAlpha = 1;
}

function callAt(event) {
    const box = canvas.getBoundingClientRect();
    const x = event.clientX - box.left, depth = Math.floor((event.clientY - box.top - 4 + scroll.scrollTop) / ROW);
    for (const call of order) {
        if (depths[call] === depth) {
            const [left, right] = edges(call);
            if (x >= left && x < right && right - left >= NARROW) {
                return call;
            }
        }
    }
    return -1;
}

function zoomTo(call) {
    zoom = call;
    const top = depths[call] * ROW;
    if (top < scroll.scrollTop) {
        scroll.scrollTop = top;
    }
    layOut();
}

function reset() {
    $("search").value = "";
    selected = -1;
    zoomTo(0);
}

// Input.
canvas.addEventListener("pointermove", (event) => {
    const call = callAt(event);
    if (call !== hovered) {
        hovered = call;
        canvas.style.cursor = call < 0 ? "default" : "pointer";
        describe();
        redraw();
    }
});
canvas.addEventListener("pointerleave", () => {
    hovered = -1;
    describe();
    redraw();
});
canvas.addEventListener("click", (event) => {
    const call = callAt(event);
    if (call >= 0) {
        selected = -1;
        zoomTo(call);
    }
});
scroll.addEventListener("scroll", redraw, { passive: true });
$("search").addEventListener("input", layOut);
$("reset").addEventListener("click", reset);

/** Selects a call, and scrolls to it. */
function select(call) {
    selected = call;
    hovered = -1;
    const top = depths[call] * ROW;
    if (top < scroll.scrollTop || top + 2 * ROW > scroll.scrollTop + scroll.clientHeight) {
        scroll.scrollTop = top - scroll.clientHeight / 2;
    }
    describe();
    redraw();
}

const visible = (test) => order.filter((call) => test(call) && isWide(call));
canvas.addEventListener("keydown", (event) => {
    const from = selected >= 0 ? selected : zoom;
    const siblings = () => visible((call) => call > 0 && from > 0 && callers[call] === callers[from]);
    const next = {
        ArrowUp: () => callers[from],
        ArrowDown: () => visible((call) => call > 0 && callers[call] === from)[0],
        ArrowLeft: () => siblings()[siblings().indexOf(from) - 1],
        ArrowRight: () => siblings()[siblings().indexOf(from) + 1],
    }[event.key];
    if (next !== undefined) {
        event.preventDefault();
        select(next() ?? from);
    } else if (event.key === "Enter") {
        zoomTo(from);
    }
});
document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") {
        event.preventDefault();
        // First the search, then the zoom.
        if ($("search").value !== "") {
            $("search").value = "";
            layOut();
        } else {
            reset();
        }
    } else if (event.key === "/" && !/INPUT|SELECT/.test(document.activeElement.tagName)) {
        event.preventDefault();
        $("search").focus();
    } else if (event.key === "Enter" && document.activeElement === $("search")) {
        const call = visible((call) => isMatch[call])[0];
        if (call !== undefined) {
            canvas.focus();
            select(call);
        }
    }
});

// Choices.
function tabs(element, labels, isOn, choose) {
    const buttons = labels.map(({ label, what }, number) => {
        const button = document.createElement("button");
        [button.textContent, button.title] = [label, what];
        button.addEventListener("click", () => {
            choose(number);
            press();
        });
        return button;
    });
    const press = () => buttons.forEach((button, number) => button.setAttribute("aria-pressed", String(isOn(number))));
    element.replaceChildren(...buttons);
    press();
}

function listThreads() {
    const totals = new Map();
    const { rows } = data.clocks[clock];
    for (let at = 0; at < rows.length; at += 3) {
        totals.set(rows[at + 1], (totals.get(rows[at + 1]) ?? 0) + rows[at + 2]);
    }
    const sum = [...totals.values()].reduce((a, b) => a + b, 0);
    const sorted = [...totals].sort((a, b) => b[1] - a[1]);
    if (!totals.has(thread)) {
        thread = -1;
    }
    $("thread").disabled = sorted.length === 1;
    const option = (value, text) => new Option(text, value, false, value === thread);
    $("thread").replaceChildren(
        option(-1, sorted.length === 1 ? "1 thread" : `All ${sorted.length} threads`),
        ...sorted.map(([number, weight]) => option(number, `${data.threads[number]}: ${percent(weight, sum)}`)),
    );
}

/** The name of a file without its folders. */
const base = (path) => path.split(/[\\/]/).pop();
const hasSameName = isDiff && base(data.old) === base(data.title);
const shown = (path) => (hasSameName ? path : base(path));
$("title").textContent = shown(data.title);
$("title").title = data.title;
if (isDiff) {
    const small = document.createElement("small");
    small.textContent = ` compared with ${shown(data.old)}`;
    small.title = data.old;
    $("title").append(small);
    $("thread").hidden = true;
    $("widths").hidden = false;
    const labels = [{ label: "After", what: "Widths of this recording" }, { label: "Before", what: "Widths of the older recording" }];
    tabs($("widths"), labels, (number) => isBefore === (number === 1), (number) => {
        isBefore = number === 1;
        weigh();
    });
}
tabs($("clocks"), data.clocks, (number) => number === clock, (number) => {
    clock = number;
    listThreads();
    weigh();
});
$("thread").addEventListener("change", () => {
    thread = Number($("thread").value);
    weigh();
});

function resize() {
    canvas.style.height = `${scroll.clientHeight}px`;
    layOut();
}
readTheme();
listThreads();
weigh();
resize();
new ResizeObserver(resize).observe(scroll);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
    readTheme();
    redraw();
});
