import { describe, expect, test } from "vitest";
import { events, SseParser } from "../src/sse";

const STREAM =
  ': still here\n\ndata: {"delta":"Füße 👣 — "}\n\nevent: odd\nid: 7\ndata: {"delta":"[1]"}\n\n: beat\n\ndata: {"done":true}\n\n';
const EVENTS = ['{"delta":"Füße 👣 — "}', '{"delta":"[1]"}', '{"done":true}'];

function streamed(bytes: Uint8Array, ...cuts: number[]): ReadableStream<Uint8Array> {
  const ends = [...cuts, bytes.length];
  return new ReadableStream({
    start(controller) {
      ends.forEach((end, number) => controller.enqueue(bytes.slice(number ? ends[number - 1] : 0, end)));
      controller.close();
    },
  });
}

async function all(body: ReadableStream<Uint8Array>): Promise<string[]> {
  const found: string[] = [];
  for await (const data of events(body)) found.push(data);
  return found;
}

describe.each([
  ["LF", "\n"],
  ["CRLF", "\r\n"],
  ["CR", "\r"],
])("lines that end in %s", (_, end) => {
  const bytes = new TextEncoder().encode(STREAM.replaceAll("\n", end));

  test("give every event, wherever the bytes are cut in two", async () => {
    for (let cut = 0; cut <= bytes.length; cut += 1) expect(await all(streamed(bytes, cut))).toEqual(EVENTS);
  });

  test("give every event byte by byte", async () => {
    expect(await all(streamed(bytes, ...bytes.keys()))).toEqual(EVENTS);
  });
});

test("heartbeats and other fields are no events", () => {
  expect(new SseParser().push(": still here\n\nevent: x\nretry: 5\n\n")).toEqual([]);
});

test("data of several lines is one event, and a space after the colon is not part of it", () => {
  expect(new SseParser().push("data: a\ndata:b\ndata:  c\n\n")).toEqual(["a\nb\n c"]);
});

test("data with a colon in it, and a field without one", () => {
  expect(new SseParser().push("data: a: b\ndata\n\n")).toEqual(["a: b\n"]);
});

test("an event that is not finished is not told", () => {
  const parser = new SseParser();
  expect(parser.push("data: half\n")).toEqual([]);
  expect(parser.push("\n")).toEqual(["half"]);
});

test("a byte order mark at the start is passed over", async () => {
  expect(await all(streamed(new TextEncoder().encode("\uFEFFdata: x\n\n")))).toEqual(["x"]);
});

test("whoever stops listening ends the stream", async () => {
  let cancelled = false;
  const body = new ReadableStream<Uint8Array>({
    pull: (controller) => controller.enqueue(new TextEncoder().encode("data: x\n\n")),
    cancel: () => {
      cancelled = true;
    },
  });
  for await (const _ of events(body)) break;
  expect(cancelled).toBe(true);
});
