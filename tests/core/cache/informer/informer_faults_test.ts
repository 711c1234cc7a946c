import assert from "node:assert/strict";
import { test } from "node:test";
import {
  endAtOnce,
  errorEvent,
  fallSilent,
  neverAnswer,
  refuse,
  resetAtOnce,
  sendThen,
} from "../../../support/watch_faults.ts";
import { type Fault, sendEvent } from "../../../support/fake_watch_call.ts";
import {
  type InformerCase,
  withInformer,
} from "../../../support/informer_case.ts";

/** Three objects, synced, one watch open. */
async function begin({ server, sync, events }: InformerCase): Promise<void> {
  for (const name of ["a", "b", "c"]) server.put(`default/${name}`);
  await sync();
  events.length = 0;
}

/** Changes while the watch is down: an update, an addition, a deletion. */
function changeAll({ server }: InformerCase): void {
  server.put("default/a");
  server.put("default/d");
  server.delete("default/b");
}

/** The faults after which a watch only resumes: nothing is listed again. */
const INTERRUPTIONS: readonly (readonly [string, Fault])[] = [
  ["a TCP reset before an answer", resetAtOnce],
  ["a TCP reset within a line", sendThen('{"type":"MODIFIED","obj', "reset")],
  ["an end within a line", sendThen('{"type":"MODIFIED","obj', "end")],
  ["a clean end", endAtOnce],
  ["500", refuse(500, "InternalError")],
  ["503", refuse(503, "ServiceUnavailable", { "retry-after": "2" })],
  [
    "429 with Retry-After",
    refuse(429, "TooManyRequests", { "retry-after": "7" }),
  ],
  ["401", refuse(401, "Unauthorized")],
  ["403", refuse(403, "Forbidden")],
];

for (const [name, fault] of INTERRUPTIONS) {
  test(`Informer resumes its watch after ${name}`, () =>
    withInformer(async (parts) => {
      await begin(parts);
      const { server, informer, events } = parts;
      server.script("watch", fault, fault);
      server.endWatches();
      changeAll(parts);
      await parts.settled();
      assert.deepEqual(events, [
        "updated default/a",
        "added default/d",
        "deleted default/b",
      ]);
      assert.equal(informer.health().watches[0]?.relists, 0);
      assert.equal(server.watches, 1);
    }));
}

/** Faults that leave the state in doubt, so that it is read again. */
const DOUBTS: readonly (readonly [string, Fault, string])[] = [
  ["410 as an answer", refuse(410, "Expired"), "received 410 Expired"],
  ["410 as an event", errorEvent(410, "Expired"), "received 410 Expired"],
  [
    "an ERROR event of another sort",
    errorEvent(500, "InternalError"),
    "received 500",
  ],
  ["a line that is not JSON", sendThen("<html>\n", "stay"), "Cannot"],
  ["a line that is no event", sendThen('{"kind":"Pod"}\n', "stay"), "Cannot"],
  [
    "an event without an object",
    sendThen('{"type":"ADDED","object":{"metadata":{}}}\n', "stay"),
    "must have a name",
  ],
  [
    "bytes that are not text",
    sendThen(new Uint8Array([255, 0, 254, 10]), "stay"),
    "Cannot",
  ],
  [
    "an event older than the state before it",
    sendThen(
      '{"type":"MODIFIED","object":{"metadata":{"name":"a","namespace":"default","resourceVersion":"1"}}}\n',
      "stay",
    ),
    "must not be older",
  ],
  ["404", refuse(404, "NotFound"), "404"],
];

for (const [name, fault, message] of DOUBTS) {
  test(`Informer relists after ${name}`, () =>
    withInformer(async (parts) => {
      await begin(parts);
      const { server, informer, events } = parts;
      server.script("watch", fault);
      server.endWatches();
      changeAll(parts);
      await parts.settled();
      assert.deepEqual(events.toSorted(), [
        "added default/d relist",
        "deleted default/b relist unknown",
        "updated default/a relist",
      ]);
      const [health] = informer.health().watches;
      assert.equal(health?.relists, 1);
      assert.ok(
        health.lastError?.message.includes(message),
        health.lastError?.message,
      );
    }));
}

for (
  const [name, fault] of [
    ["expired", errorEvent(410, "Expired")],
    [
      "going backwards",
      sendThen('{"type":"BOOKMARK","object":{"metadata":{}}}\n', "stay"),
    ],
  ] as const
) {
  test(`Informer backs off from a server of which each watch is ${name}`, () =>
    withInformer(async (parts) => {
      await begin(parts);
      const { server, informer, clock } = parts;
      const before = server.calls.length;
      server.script("watch", ...Array<Fault>(40).fill(fault));
      server.endWatches();
      const start = clock.now();
      await parts.until(
        "ten more failures",
        () => (informer.health().watches[0]?.errors ?? 0) >= 10,
      );
      assert.ok(server.calls.length - before <= 30);
      // Pauses from 1.2 s on that double up to 45 s, but for the first.
      assert.ok(clock.now() - start > 100_000, `${clock.now() - start} ms`);
    }, { reconnect: { watchList: false } }));
}

test("Informer does not read a page that leads to itself indefinitely", () =>
  withInformer(async (parts) => {
    const { server, informer } = parts;
    server.put("default/a");
    const page = JSON.stringify({
      kind: "WidgetList",
      apiVersion: "example.dev/v1",
      metadata: { resourceVersion: "101", continue: "here" },
      items: [],
    });
    server.script("list", ...Array<Fault>(2).fill(sendThen(page, "end")));
    informer.start();
    await parts.settled();
    assert.equal(server.calls.filter(({ verb }) => verb === "list").length, 3);
    assert.match(
      informer.health().watches[0]?.lastError?.message ?? "",
      /Cannot list Widget objects: .*a page must not lead to itself/,
    );
  }, { reconnect: { watchList: false } }));

test("Informer resumes after a watch that delivers nothing", () =>
  withInformer(async (parts) => {
    await begin(parts);
    const { server, clock, events, informer } = parts;
    const calls = server.calls.length;
    server.script("watch", fallSilent);
    server.endWatches();
    await parts.until(
      "the silent watch is open",
      () => server.calls.length > calls,
    );
    changeAll(parts);
    await parts.until(
      "it watches",
      () => informer.health().watches[0]?.state === "watching",
    );
    assert.equal(events.length, 0);
    // A third of the time after which the server was asked to end the watch.
    await clock.advance(150_000);
    await parts.settled();
    assert.equal(events.length, 3);
  }));

test("Informer renews a quiet watch of a server without bookmarks, and only that", () =>
  withInformer(async (parts) => {
    // The state is streamed, so that the watch is open from then on.
    await begin(parts);
    const { server, clock, events, informer } = parts;
    const calls = server.calls.length;
    await clock.advance(149_000);
    assert.equal(server.calls.length, calls);
    await clock.advance(1_000);
    await parts.until("it is renewed", () => server.calls.length > calls);
    await parts.settled();
    const [health] = informer.health().watches;
    assert.deepEqual([health?.errors, health?.relists, events], [0, 0, []]);
    assert.equal(server.watches, 1);
  }));

test("Informer resumes after a watch that falls silent between bookmarks", () =>
  withInformer(async (parts) => {
    await begin(parts);
    const { server, clock, informer } = parts;
    server.bookmark();
    const { lastContact } = informer.health().watches[0] ?? {};
    await clock.advance(1);
    server.bookmark();
    await parts.until(
      "the bookmark arrived",
      () => informer.health().watches[0]?.lastContact !== lastContact,
    );
    const calls = server.calls.length;
    await clock.advance(170_000);
    assert.equal(server.calls.length, calls);
    await clock.advance(15_000);
    await parts.settled();
    assert.match(
      informer.health().watches[0]?.lastError?.message ?? "",
      /nothing arrived for 180000 ms/,
    );
    assert.equal(
      server.calls.at(-1)?.query.get("resourceVersion"),
      server.version,
    );
  }));

test("Informer resumes after a silent watch on a server that sent bookmarks", () =>
  withInformer(async (parts) => {
    await begin(parts);
    const { server, clock, events, informer } = parts;
    const silentWatch = async () => {
      const calls = server.calls.length;
      server.script("watch", fallSilent);
      server.endWatches();
      await parts.until(
        "the silent watch is open",
        () =>
          server.calls.length > calls &&
          informer.health().watches[0]?.state === "watching",
      );
    };
    const { lastContact } = informer.health().watches[0] ?? {};
    await clock.advance(1);
    server.bookmark();
    await parts.until(
      "the bookmark arrived",
      () => informer.health().watches[0]?.lastContact !== lastContact,
    );
    await silentWatch();
    changeAll(parts);
    await clock.advance(170_000);
    assert.equal(events.length, 0);
    await clock.advance(15_000);
    await parts.settled();
    assert.equal(events.length, 3);
    assert.match(
      informer.health().watches[0]?.lastError?.message ?? "",
      /Cannot watch Widget objects: nothing arrived for 180000 ms$/,
    );
    // A server that was restarted may send none before its next event.
    await silentWatch();
    changeAll(parts);
    await clock.advance(150_000);
    await parts.settled();
    assert.equal(events.length, 5);
    assert.equal(informer.health().watches[0]?.errors, 1);
  }));

test("Informer aborts a request that gets no response", () =>
  withInformer(async (parts) => {
    await begin(parts);
    const { server, clock, informer } = parts;
    const calls = server.calls.length;
    server.script("watch", neverAnswer);
    server.endWatches();
    await parts.until("the call arrived", () => server.calls.length > calls);
    await clock.advance(76_000);
    await parts.settled();
    assert.match(
      informer.health().watches[0]?.lastError?.message ?? "",
      /nothing arrived for 75000 ms/,
    );
  }));

test("Informer reads a line that arrives byte by byte", () =>
  withInformer(async (parts) => {
    await begin(parts);
    const { server, events } = parts;
    const object = server.put("default/a");
    await parts.settled();
    events.length = 0;
    const metadata = {
      ...object.metadata,
      resourceVersion: "900",
      labels: { "ä": "→" },
    };
    const line =
      JSON.stringify({ type: "MODIFIED", object: { ...object, metadata } }) +
      "\n";
    for (const byte of new TextEncoder().encode(line)) {
      server.send(new Uint8Array([byte]));
      await new Promise((resolve) => setImmediate(resolve));
    }
    await parts.until("the event arrived", () => events.length > 0);
    assert.deepEqual(events, ["updated default/a"]);
  }));

test("Informer logs kind and size of a line of 9 MiB and relists", () =>
  withInformer(async (parts) => {
    await begin(parts);
    const { server, informer, events } = parts;
    server.script("watch", (call) => {
      call.response.writeHead(200, { "content-type": "application/json" });
      const object = { metadata: { name: "big", resourceVersion: "999" } };
      sendEvent(call, "ADDED", { ...object, data: "x".repeat(9 << 20) });
    });
    server.endWatches();
    changeAll(parts);
    await parts.settled();
    assert.match(
      informer.health().watches[0]?.lastError?.message ?? "",
      /Cannot watch Widget objects: .*longer than 8388608 bytes/,
    );
    assert.equal(events.length, 3);
  }));

test("Informer relists from a server that lost its data", () =>
  withInformer(async (parts) => {
    await begin(parts);
    const { server, events } = parts;
    server.loseData();
    server.put("default/a", { uid: "uid-of-a-new-life" });
    server.put("default/e");
    server.endWatches();
    await parts.settled();
    assert.deepEqual(events.toSorted(), [
      "added default/a relist",
      "added default/e relist",
      "deleted default/a relist unknown",
      "deleted default/b relist unknown",
      "deleted default/c relist unknown",
    ]);
  }));

test("Informer shows states of a restored backup whose versions it knew already", () =>
  withInformer(async (parts) => {
    const { server, informer, events, settled } = parts;
    await begin(parts);
    const restore = server.backUp();
    server.put("default/a", { size: 7 });
    server.put("default/b", { size: 8 });
    await settled();
    const known = server.version;
    events.length = 0;
    restore();
    const again = server.put("default/a", { size: 9 });
    assert.ok(Number(again.metadata.resourceVersion) < Number(known));
    server.endWatches();
    await settled();
    assert.equal(informer.get("default/a")?.spec.size, 9);
    assert.equal(informer.get("default/b")?.spec.size, 1);
    assert.ok(events.includes("updated default/a relist"), `${events}`);
    server.put("default/b", { size: 10 });
    await settled();
    assert.equal(informer.get("default/b")?.spec.size, 10);
  }));

test("Informer recovers from a series of faults of every sort", () =>
  withInformer(async (parts) => {
    await begin(parts);
    const { server, informer } = parts;
    server.script("watch", ...INTERRUPTIONS.map(([, fault]) => fault));
    server.script("list", refuse(500, "InternalError"), resetAtOnce);
    server.script("watch", ...DOUBTS.map(([, fault]) => fault));
    server.endWatches("reset");
    changeAll(parts);
    await parts.settled();
    assert.equal(informer.health().healthy, true);
  }));
