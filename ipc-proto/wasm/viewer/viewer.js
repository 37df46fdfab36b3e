// The viewer: a file goes in, a table comes out. scripts/viewer.mjs puts it and the library into one page.
import { TraceReader } from "../dist/trace.js";
import { details, summary } from "./text.js";

const $ = (id) => document.getElementById(id);
const ROW = 26;
/** Browsers limit the height of an element. Beyond it, the scroll bar is scaled. */
const MAX_HEIGHT = 8_000_000;
const count = (number) => number.toLocaleString("en-US");

/** The columns of the trace. Events are objects only while they are shown. */
let batches, times, batchOf, indexOf, total, kinds, reader;
/** The numbers of the events that match, in order of time. */
let shown, selected;
let filter, needle, job = 0;

function clear() {
    [batches, kinds, total, selected] = [[], new Map(), 0, -1];
    [times, batchOf, indexOf] = [new Float64Array(1024), new Uint32Array(1024), new Uint16Array(1024)];
    [filter, needle, reader] = [null, "", new TraceReader()];
    $("search").value = "";
    $("detail").hidden = true;
}

function grow() {
    const larger = (type, old) => {
        const next = new type(2 * old.length);
        next.set(old);
        return next;
    };
    times = larger(Float64Array, times);
    batchOf = larger(Uint32Array, batchOf);
    indexOf = larger(Uint16Array, indexOf);
}

function add(batch) {
    const place = batches.push(batch) - 1;
    for (let index = 0; index < batch.length; index += 1) {
        if (total === times.length) {
            grow();
        }
        times[total] = batch.time(index);
        batchOf[total] = place;
        indexOf[total] = index;
        total += 1;
        const kind = batch.kinds[index];
        kinds.set(kind, (kinds.get(kind) ?? 0) + 1);
    }
}

const eventAt = (number) => batches[batchOf[number]].event(indexOf[number]);
const kindAt = (number) => batches[batchOf[number]].kinds[indexOf[number]];
const pause = () => new Promise((done) => setTimeout(done));

async function open(file) {
    job += 1;
    const mine = job;
    clear();
    $("drop").hidden = true;
    $("file").textContent = file.name;
    $("facts").replaceChildren();
    $("progress").hidden = false;
    const size = 2 << 20;
    try {
        for (let at = 0; at < file.size && reader.end === undefined; at += size) {
            $("progress").value = at / file.size;
            reader.push(new Uint8Array(await file.slice(at, at + size).arrayBuffer()));
            if (mine !== job) {
                return;
            }
            for (let batch = reader.next(); batch !== undefined; batch = reader.next()) {
                add(batch);
            }
            await pause();
        }
        reader.close();
        for (let batch = reader.next(); batch !== undefined; batch = reader.next()) {
            add(batch);
        }
        if (mine === job) {
            ready(file);
        }
    } catch (error) {
        fact(`cannot read the file: ${error.message}`, "bad");
    } finally {
        $("progress").hidden = true;
    }
}

function fact(text, kind = "") {
    const chip = document.createElement("span");
    chip.className = `chip ${kind}`;
    chip.textContent = text;
    $("facts").append(chip);
}

function ready(file) {
    const { info, end, lost, lostAtStart } = reader;
    let last = 0;
    for (let number = 0; number < total; number += 1) {
        last = Math.max(last, times[number]);
    }
    fact(`${count(total)} events`);
    fact(`${(file.size / 1e6).toFixed(1)} MB`);
    if (total > 0) {
        fact(`${(last / 1000).toFixed(3)} s`);
    }
    if (info?.processId) {
        fact(`process ${info.processId}`);
    }
    const losses = lost + lostAtStart;
    fact(losses === 0 ? "no event lost" : `${count(losses)} events lost`, losses === 0 ? "good" : "bad");
    fact(end.message, end.kind === "complete" ? "good" : end.kind === "truncated" ? "warn" : "bad");
    $("side").hidden = $("table").hidden = $("search").hidden = false;
    document.body.dataset.ready = file.name;
    side();
    search();
}

/** Makes the list of providers and of their events, the most frequent first. */
function side() {
    const providers = new Map();
    for (const [kind, number] of kinds) {
        const provider = providers.get(kind.provider) ?? { count: 0, events: new Map() };
        providers.set(kind.provider, provider);
        provider.count += number;
        const label = nameOf(kind);
        provider.events.set(label, (provider.events.get(label) ?? 0) + number);
    }
    const sorted = [...providers].sort((a, b) => b[1].count - a[1].count);
    const parts = [heading("Providers"), pick("All events", total, null)];
    for (const [provider, { count }] of sorted.slice(0, PICKS)) {
        parts.push(pick(provider || "(not described)", count, { provider }));
    }
    more(parts, sorted.length);
    const chosen = filter && providers.get(filter.provider);
    if (chosen) {
        parts.push(heading(`Events of ${filter.provider}`));
        for (const [name, number] of [...chosen.events].sort((a, b) => b[1] - a[1]).slice(0, PICKS)) {
            parts.push(pick(name, number, { provider: filter.provider, name }));
        }
        more(parts, chosen.events.size);
    }
    $("side").replaceChildren(...parts);
}

/** The number of providers, and of the events of one, that the list shows: the most frequent ones. */
const PICKS = 1000;

function more(parts, number) {
    if (number > PICKS) {
        parts.push(heading(`${count(number - PICKS)} more`));
    }
}

function heading(text) {
    const element = document.createElement("h2");
    element.textContent = text;
    return element;
}

function pick(text, number, wanted) {
    const button = document.createElement("button");
    const [label, value, bar] = ["span", "span", "span"].map((name) => document.createElement(name));
    label.textContent = button.title = text.slice(0, 400);
    value.textContent = count(number);
    value.className = "count";
    bar.className = "bar";
    bar.style.width = `calc(${(number / total) * 100}% - 28px)`;
    button.className = "pick";
    button.classList.toggle("on", filter?.provider === wanted?.provider && filter?.name === wanted?.name);
    button.append(label, value, bar);
    button.onclick = () => {
        filter = wanted;
        side();
        search();
    };
    return button;
}

const nameOf = (kind) => kind.name || `event ${kind.id}`;

/** Selects the events that match the filter and the search, in order of time. Long searches pause for the page. */
async function search() {
    job += 1;
    const mine = job;
    const words = needle.toLowerCase().split(/\s+/).filter(Boolean);
    const threads = words.filter((word) => /^thread:\d+$/.test(word)).map((word) => Number(word.slice(7)));
    const texts = words.filter((word) => !/^thread:\d+$/.test(word));
    // Whether the names of a kind match is decided once.
    const names = new Map();
    for (const kind of kinds.keys()) {
        const isWanted = !filter || (kind.provider === filter.provider && (filter.name === undefined || nameOf(kind) === filter.name));
        const text = `${kind.provider} ${nameOf(kind)}`.toLowerCase();
        names.set(kind, isWanted ? texts.filter((word) => !text.includes(word)) : null);
    }
    const found = [];
    let then = performance.now();
    let decoded = 0;
    for (let number = 0; number < total; number += 1) {
        const missing = names.get(kindAt(number));
        if (missing === null || (threads.length > 0 && !threads.includes(eventAt(number).threadId))) {
            continue;
        }
        if (missing.length > 0) {
            const text = summary(eventAt(number)).toLowerCase();
            if (missing.some((word) => !text.includes(word))) {
                continue;
            }
            decoded += 1;
            if ((decoded & 255) === 0 && performance.now() - then > 40) {
                $("progress").hidden = false;
                $("progress").value = number / total;
                await pause();
                if (mine !== job) {
                    return;
                }
                then = performance.now();
            }
        }
        found.push(number);
    }
    $("progress").hidden = true;
    shown = Uint32Array.from(found).sort((a, b) => times[a] - times[b] || a - b);
    selected = -1;
    $("detail").hidden = true;
    $("none").hidden = shown.length > 0;
    document.body.dataset.shown = shown.length;
    const height = Math.min(shown.length * ROW, MAX_HEIGHT);
    $("canvas").style.height = `${height}px`;
    $("rows").scrollTop = 0;
    render();
}

/** A match after so many characters may not be visible. */
const FAR = 24;

/** Appends a text, with what was searched marked, and from there on if it might not be visible. */
function marked(element, whole) {
    const word = needle.toLowerCase().split(/\s+/).find((word) => word && whole.toLowerCase().includes(word));
    if (!word) {
        element.textContent = whole.slice(0, 400);
        return;
    }
    const place = whole.toLowerCase().indexOf(word);
    const skipped = place > FAR ? place - FAR / 2 : 0;
    const text = `${skipped > 0 ? "…" : ""}${whole.slice(skipped, place + 400)}`;
    const at = text.toLowerCase().indexOf(word);
    const mark = document.createElement("mark");
    mark.textContent = text.slice(at, at + word.length);
    element.append(text.slice(0, at), mark, text.slice(at + word.length));
}

/** Makes the elements of the visible rows only. */
function render() {
    if (shown === undefined) {
        return;
    }
    const rows = $("rows");
    const visible = Math.ceil(rows.clientHeight / ROW) + 1;
    const height = Math.min(shown.length * ROW, MAX_HEIGHT);
    const range = height - rows.clientHeight;
    const scale = shown.length * ROW > MAX_HEIGHT && range > 0 ? (shown.length * ROW - rows.clientHeight) / range : 1;
    const top = rows.scrollTop * scale;
    const first = Math.max(0, Math.floor(top / ROW));
    const lines = [];
    for (let row = first; row < Math.min(shown.length, first + visible); row += 1) {
        const event = eventAt(shown[row]);
        const line = document.createElement("div");
        line.className = row === selected ? "line on" : "line";
        line.style.top = `${rows.scrollTop + row * ROW - top}px`;
        const cells = [event.time.toFixed(4), String(event.threadId), event.provider, nameOf(event.kind), summary(event)];
        ["number", "number", "provider", "name", "fields"].forEach((name, index) => {
            const cell = document.createElement("span");
            cell.className = name;
            if (index < 2) {
                cell.textContent = cells[index];
            } else {
                marked(cell, cells[index]);
            }
            line.append(cell);
        });
        line.onclick = () => select(row);
        lines.push(line);
    }
    $("canvas").replaceChildren(...lines);
}

function select(row) {
    selected = row;
    const event = eventAt(shown[row]);
    const title = document.createElement("h3");
    const small = document.createElement("small");
    small.textContent = ` ${event.provider}, event ${event.id} version ${event.version}, level ${event.level}`;
    title.append(nameOf(event.kind), small);
    const list = document.createElement("dl");
    const pair = (name, value) => {
        const [dt, dd] = ["dt", "dd"].map((tag) => document.createElement(tag));
        dt.textContent = name;
        dd.textContent = value;
        list.append(dt, dd);
    };
    const date = event.date === null ? "" : `, ${event.date.toISOString()}`;
    pair("time", `${event.time.toFixed(6)} ms${date}`);
    pair("thread", `${event.threadId}${event.thread?.name ? ` ${event.thread.name}` : ""}`);
    if (event.activityId) {
        pair("activity", event.activityId);
    }
    details(event).forEach(([name, text]) => pair(name, text));
    $("detail").replaceChildren(title, list);
    $("detail").hidden = false;
    $("detail").scrollTop = 0;
    render();
}

let delay;
$("search").oninput = () => {
    clearTimeout(delay);
    delay = setTimeout(() => {
        needle = $("search").value;
        search();
    }, 150);
};
$("rows").onscroll = () => requestAnimationFrame(render);
$("rows").onkeydown = (key) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[key.key];
    if (step !== undefined && shown.length > 0) {
        key.preventDefault();
        select(Math.min(shown.length - 1, Math.max(0, selected + step)));
        const top = selected * ROW;
        if (top < $("rows").scrollTop || top + ROW > $("rows").scrollTop + $("rows").clientHeight) {
            $("rows").scrollTop += step * ROW;
        }
    }
};
window.onresize = render;
$("choose").onchange = () => $("choose").files[0] && open($("choose").files[0]);
document.ondragover = (event) => {
    event.preventDefault();
    document.body.classList.add("over");
};
document.ondragleave = () => document.body.classList.remove("over");
document.ondrop = (event) => {
    event.preventDefault();
    document.body.classList.remove("over");
    const file = event.dataTransfer.files[0];
    if (file) {
        open(file);
    }
};
