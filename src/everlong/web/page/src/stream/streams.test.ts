import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { Streams, type Heard, type Member, type Source, type Want } from "./streams";

/** A stream whose events the test tells itself. */
class Told implements Source {
  open = true;
  #hearers = new Map<string, (message: MessageEvent<string>) => void>();
  constructor(readonly path: string) {}
  addEventListener(type: string, hear: (message: MessageEvent<string>) => void): void {
    this.#hearers.set(type, hear);
  }
  close(): void {
    this.open = false;
  }
  tell(name: string, number: string, channel: string, data: string): void {
    this.#hearers.get(name)?.({ lastEventId: `${number}@${encodeURIComponent(channel)}`, data } as MessageEvent<string>);
  }
  happen(name: "open" | "error"): void {
    this.#hearers.get(name)?.({} as MessageEvent<string>);
  }
  get query(): [string, string][] {
    return [...new URL(this.path, "http://here").searchParams];
  }
}

class Tab implements Member {
  heard: Heard[] = [];
  tell(heard: Heard): void {
    this.heard.push(heard);
  }
  words(): string[] {
    return this.heard.flatMap((one) => ("data" in one ? [one.data] : []));
  }
  connections(): string[] {
    return this.heard.flatMap((one) => ("connection" in one ? [one.connection] : []));
  }
}

const want = (channel: string, key = 1, quiet = false): Want => ({ channel, key, quiet });
let opened: Told[];
let streams: Streams;
const now = () => opened[opened.length - 1];

beforeEach(() => {
  vi.useFakeTimers();
  opened = [];
  streams = new Streams((path) => {
    const told = new Told(path);
    opened.push(told);
    return told;
  });
});
afterEach(() => vi.useRealTimers());

test("ten tabs have one stream, which is opened once for what changes together", () => {
  const tabs = Array.from({ length: 10 }, () => new Tab());
  tabs.forEach((tab, index) => streams.want(tab, [want(`t${index}`)]));
  vi.runAllTimers();
  expect(opened.length).toBe(1);
  expect(now().query.filter(([name]) => name === "thread").length).toBe(10);
  now().tell("hello", "a-0", "t3", "state");
  now().tell("message", "a-1", "t3", "word");
  expect(tabs.map((tab) => tab.words())).toEqual(tabs.map((_, index) => (index === 3 ? ["state", "word"] : [])));
  tabs.slice(1).forEach((tab) => streams.leave(tab));
  vi.runAllTimers();
  expect(now().query).toEqual([["thread", "t0:"]]);
  streams.leave(tabs[0]);
  vi.runAllTimers();
  expect(opened.map((one) => one.open)).toEqual([false, false]);
});

test("a second tab of a thread is told the state, and the first goes on without a gap", () => {
  const [one, two] = [new Tab(), new Tab()];
  streams.want(one, [want("t")]);
  vi.runAllTimers();
  now().tell("hello", "a-0", "t", "state 0");
  now().tell("message", "a-1", "t", "w1");
  streams.want(two, [want("t")]);
  vi.runAllTimers();
  expect(now().query).toEqual([
    ["thread", "t:a-1"],
    ["fresh", "t"],
  ]);
  now().tell("message", "a-2", "t", "w2"); // it was missed while the stream was opened anew
  now().tell("hello", "a-2", "t", "state 2");
  now().tell("message", "a-3", "t", "w3");
  expect(one.words()).toEqual(["state 0", "w1", "w2", "w3"]);
  expect(two.words()).toEqual(["state 2", "w3"]);
});

test("a tab whose state came while the stream changed is told to load what it missed", () => {
  const [one, two] = [new Tab(), new Tab()];
  streams.want(one, [want("t")]);
  vi.runAllTimers();
  now().tell("hello", "a-0", "t", "state 0");
  streams.want(two, [want("u")]);
  vi.runAllTimers(); // what happens in t now is told to nobody
  now().tell("hello", "a-3", "t", "state 3");
  expect(one.connections()).toEqual(["open", "back"]);
  expect(one.words()).toEqual(["state 0", "state 3"]);
});

test("a lost stream is opened again, ever more slowly, from the last numbers", () => {
  const tab = new Tab();
  streams.want(tab, [want("t"), want("")]);
  vi.runAllTimers();
  now().happen("open");
  now().tell("hello", "a-0", "t", "state");
  now().tell("message", "a-7", "t", "w");
  now().tell("message", "a-2", "", "request");
  for (const wait of [500, 1_000, 2_000]) {
    const before = opened.length;
    now().happen("error");
    vi.advanceTimersByTime(wait - 1);
    expect(opened.length).toBe(before);
    vi.advanceTimersByTime(1);
    expect(opened.length).toBe(before + 1);
  }
  expect(now().query).toEqual([
    ["thread", "t:a-7"],
    ["live", "a-2"],
  ]);
  now().happen("open");
  expect(tab.connections().filter((told) => told === "lost").length).toBe(6);
  now().tell("anew", "b-0", "t", "reset");
  expect(tab.words().at(-1)).toBe("reset");
});

test("a tab out of sight is quiet, and is told the state when it is back", () => {
  const [seen, hidden] = [new Tab(), new Tab()];
  streams.want(hidden, [want("t")]);
  vi.runAllTimers();
  now().tell("hello", "a-0", "t", "state 0");
  now().tell("message", "a-1", "t", "w1");
  streams.want(hidden, [want("t", 1, true)]);
  vi.runAllTimers();
  expect(now().query).toEqual([
    ["thread", "t:a-1"],
    ["quiet", "t"],
  ]);
  streams.want(seen, [want("t")]); // another tab shows it: words come again
  vi.runAllTimers();
  expect(now().query.map(([name]) => name)).toEqual(["thread", "fresh"]);
  streams.want(hidden, [want("t", 1, false)]);
  vi.runAllTimers();
  now().tell("hello", "a-9", "t", "state 9");
  expect(hidden.words().at(-1)).toBe("state 9");
  expect(hidden.connections().at(-1)).toBe("back");
});

test("the same thread listened to anew is told its state anew", () => {
  const tab = new Tab();
  streams.want(tab, [want("t", 1)]);
  vi.runAllTimers();
  now().tell("hello", "a-0", "t", "first");
  now().tell("message", "a-1", "t", "w");
  streams.want(tab, []);
  streams.want(tab, [want("t", 2)]);
  vi.runAllTimers();
  expect(now().query).toEqual([["thread", "t:"]]);
});
