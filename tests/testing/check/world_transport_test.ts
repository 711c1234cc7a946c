import assert from "node:assert/strict";
import { test } from "node:test";
import type { HttpRequest, HttpResponse } from "@coracle/operator/client";
import type { Change } from "../../../dev/apiserver/storage/history.ts";
import { nextTurn } from "../../../core/clock.ts";
import type { WriteVerdict } from "../../../dev/testing/check/perturbations.ts";
import type {
  EventEntry,
  RequestEntry,
  TraceEntry,
} from "../../../dev/testing/check/trace.ts";
import type { Action } from "../../../dev/testing/check/world_schedule.ts";
import {
  type Surroundings,
  WorldTransport,
} from "../../../dev/testing/check/world_transport.ts";

const MAPS = "/api/v1/namespaces/shop/configmaps";
const encoder = new TextEncoder();

/** Answer of the server: a status, and lines or one object. */
function answer(status: number, ...chunks: readonly string[]): HttpResponse {
  return {
    status,
    headers: {},
    body: (async function* () {
      for (const chunk of chunks) yield encoder.encode(chunk);
    })(),
    cancel: () => Promise.resolve(),
  };
}

/** Transport of a world whose parts note what is asked of them. */
class Fixture {
  readonly actions: Action[] = [];
  readonly trace: TraceEntry[] = [];
  readonly log: string[] = [];
  readonly counters: Surroundings["counters"] = {
    requests: 0,
    writes: 0,
    events: 0,
    watches: 0,
    failed: false,
  };
  readonly transport: WorldTransport;
  answer: (request: HttpRequest) => HttpResponse | Promise<HttpResponse> = () =>
    answer(200, "{}");
  verdict: WriteVerdict = {};
  effect: object | undefined;
  changes: object[] = [];
  attributed: unknown[] = [];
  faultOf: (
    event: { readonly n: number; readonly isInitial: boolean },
  ) => string | undefined = () => undefined;
  isDelayed = false;
  /** Whether a watch that missed an event is closed immediately. */
  closesGaps = true;

  constructor() {
    const perturbations = {
      beforeWrite: () => Promise.resolve(this.verdict),
      effect: () => this.effect,
      isDelayed: () => this.isDelayed,
      lingers: () => false,
      breaks: () => false,
      staleWatch: () => this.log.push("stale watch"),
      endGap: () => this.log.push("end gap"),
      closeLater: (_watch: unknown, close: () => void) => {
        if (this.closesGaps) close();
      },
      onEvent: (event: { readonly n: number; readonly isInitial: boolean }) =>
        this.faultOf(event),
    };
    this.transport = new WorldTransport(
      1,
      {
        inner: {
          send: async (request: HttpRequest) => {
            this.log.push(`send ${request.method}`);
            return await this.answer(request);
          },
        },
        faults: {
          add: ({ count }: { readonly count: number }) => {
            this.log.push(`fault ${count}`);
            return { remove: () => this.log.push("fault removed") };
          },
        },
        schedule: {
          add: (action: Action) => this.actions.push(action),
          delete: (action: Action) => {
            const at = this.actions.indexOf(action);
            if (at >= 0) this.actions.splice(at, 1);
          },
        },
        perturbations,
        chooser: undefined,
        trace: this.trace,
        counters: this.counters,
        now: () => 7,
        active: () => {},
        renewed: () => {},
        takeChanges: () => this.changes.splice(0) as unknown as Change[],
        attribute: (changes: readonly Change[]) => {
          this.attributed.push(...changes);
        },
        crash: (why: string) => this.log.push(`crash ${why}`),
      } as unknown as Surroundings,
    );
  }

  send(
    method: HttpRequest["method"],
    path: string,
    more: Partial<HttpRequest> = {},
  ): Promise<HttpResponse> {
    return this.transport.send({ method, path, headers: {}, ...more });
  }

  /** Lets all pending actions happen, and what follows. */
  async run(): Promise<void> {
    while (this.actions.length > 0) {
      for (const { run } of this.actions.splice(0)) run();
      for (let turn = 0; turn < 9; turn++) await nextTurn();
    }
  }

  /** The entry of a request that is answered. */
  async entryOf(
    method: HttpRequest["method"],
    path: string,
    response: HttpResponse = answer(200, "{}"),
  ): Promise<RequestEntry> {
    this.answer = () => response;
    void this.send(method, path);
    await this.run();
    return this.trace.at(-1) as RequestEntry;
  }
}

test("WorldTransport counts the writes of objects, and no others", async () => {
  const world = new Fixture();
  const counted: string[] = [];
  for (
    const [method, path] of [
      ["GET", MAPS],
      ["POST", MAPS],
      ["POST", `${MAPS}?dryRun=All`],
      ["PATCH", `${MAPS}/a`],
      ["POST", "/api/v1/namespaces/shop/events"],
      ["PUT", "/apis/coordination.k8s.io/v1/namespaces/shop/leases/a"],
      ["POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"],
      ["POST", "/api/v1/namespaces/shop/serviceaccounts/a/token"],
      ["DELETE", `${MAPS}/a`],
    ] as const
  ) {
    const { write } = await world.entryOf(method, path);
    if (write !== undefined) counted.push(`${write} ${method} ${path}`);
  }
  assert.deepEqual(counted, [
    `1 POST ${MAPS}`,
    `2 PATCH ${MAPS}/a`,
    `3 DELETE ${MAPS}/a`,
  ]);
  assert.equal(world.counters.requests, 9);
});

test("WorldTransport notes what an answer says of the object", async () => {
  const world = new Fixture();
  const metadata = {
    name: "a-x1",
    uid: "uid-1",
    generation: 2,
    resourceVersion: "12",
  };
  const made = await world.entryOf(
    "POST",
    MAPS,
    answer(201, JSON.stringify({ metadata, reason: "of a field" })),
  );
  const { name, uid, generation, revision, reason, code, answered } = made;
  assert.deepEqual(
    [name, uid, generation, revision, reason, code, answered],
    ["a-x1", "uid-1", 2, 12, undefined, 201, true],
  );
  const details = {
    uid: "uid-2",
    causes: [{ reason: "NamespaceTerminating" }],
  };
  const refused = await world.entryOf(
    "POST",
    MAPS,
    answer(403, JSON.stringify({ reason: "Forbidden", details })),
  );
  assert.equal(refused.reason, "NamespaceTerminating");
  assert.equal(refused.uid, "uid-2");
  const missing = await world.entryOf(
    "GET",
    `${MAPS}/a`,
    answer(
      404,
      JSON.stringify({ reason: "NotFound", details: { causes: [] } }),
    ),
  );
  assert.equal(missing.reason, "NotFound");
});

test("WorldTransport knows whether the last request failed, but for leases", async () => {
  const world = new Fixture();
  const lease = "/apis/coordination.k8s.io/v1/namespaces/shop/leases/a";
  const failed = async (path: string, code: number) => {
    await world.entryOf("GET", path, answer(code, "{}"));
    return world.counters.failed;
  };
  assert.equal(await failed(MAPS, 500), true);
  assert.equal(await failed(lease, 200), true);
  assert.equal(await failed(`${MAPS}/a`, 404), false);
  assert.equal(await failed(lease, 500), false);
  assert.equal(await failed(MAPS, 409), true);
  assert.equal(await failed(MAPS, 200), false);
  assert.equal(world.transport.isServing, false);
});

test("WorldTransport attributes to a write only the changes of its object", async () => {
  const change = (
    type: string,
    name: string,
    { plural = "configmaps", namespace = "shop" } = {},
  ) => ({
    type,
    revision: 5,
    object: {
      name,
      namespace,
      uid: `uid-${name}`,
      definition: { group: "", plural },
    },
  });
  const attributed = async (
    method: HttpRequest["method"],
    path: string,
    ...changes: readonly object[]
  ) => {
    const world = new Fixture();
    world.answer = () => {
      world.changes.push(...changes);
      return answer(200, "no JSON");
    };
    void world.send(method, path);
    await world.run();
    const { changed, revision, uid } = world.trace[0] as RequestEntry;
    return [changed, revision, uid, world.attributed.length];
  };
  const own = change("ADDED", "a");
  const path = `${MAPS}/a`;
  assert.deepEqual(await attributed("PATCH", path, own), [true, 5, "uid-a", 0]);
  assert.deepEqual(await attributed("POST", MAPS, own), [true, 5, "uid-a", 0]);
  const others = [
    change("MODIFIED", "b"),
    change("MODIFIED", "a", { plural: "secrets" }),
    change("MODIFIED", "a", { namespace: "other" }),
  ];
  assert.deepEqual(await attributed("PATCH", path, ...others), [
    false,
    undefined,
    undefined,
    3,
  ]);
  assert.deepEqual((await attributed("GET", path, own))[3], 1);
  // The garbage collector has deleted what was just made.
  const deleted = change("DELETED", "a");
  assert.deepEqual((await attributed("PATCH", path, own, deleted))[3], 1);
  assert.deepEqual((await attributed("DELETE", path, deleted))[3], 0);
});

test("WorldTransport forgets a request that is aborted, and sends none when dropped", async () => {
  const world = new Fixture();
  const aborted = AbortSignal.abort(new Error("over"));
  await assert.rejects(world.send("GET", MAPS, { signal: aborted }), /over/);
  assert.equal(world.actions.length, 0);
  const stop = new AbortController();
  const sent = world.send("GET", MAPS, { signal: stop.signal });
  assert.equal(world.actions.length, 1);
  stop.abort(new Error("stopped"));
  await assert.rejects(sent, /stopped/);
  assert.equal(world.actions.length, 0);
  void world.send("GET", MAPS);
  world.transport.drop();
  void world.send("GET", MAPS);
  assert.equal(world.actions.length, 0);
  assert.deepEqual(world.log, []);
});

test("WorldTransport crashes before a write, before its answer or after it", async () => {
  for (
    const [place, log, answered] of [
      ["before", ["crash why"], false],
      ["unanswered", ["send POST", "crash why"], false],
      ["after", ["send POST", "crash why"], true],
    ] as const
  ) {
    const world = new Fixture();
    world.verdict = { fault: "crash", crash: { place, why: "why", downMs: 0 } };
    let isAnswered = false;
    void world.send("POST", MAPS).then(() => isAnswered = true);
    await world.run();
    assert.deepEqual(world.log, log);
    const [entry] = world.trace as RequestEntry[];
    assert.equal(world.trace.length, 1);
    assert.deepEqual([entry?.answered, isAnswered], [answered, answered]);
    assert.equal(entry?.fault, "crash");
  }
});

test("WorldTransport checks a write again after the process was suspended", async () => {
  const world = new Fixture();
  world.verdict = { wasSuspended: true };
  let checks = 0;
  const sent = world.send("POST", MAPS, {
    beforeSend: () => {
      if (++checks === 2) throw new Error("no leader");
    },
  });
  const refused = assert.rejects(sent, /no leader/);
  await world.run();
  await refused;
  assert.deepEqual(world.log, []);
  assert.equal(world.trace.length, 1);
});

test("WorldTransport injects a fault into one request, and removes it", async () => {
  const world = new Fixture();
  world.effect = { status: 500 };
  await world.entryOf("GET", MAPS);
  assert.deepEqual(world.log, ["fault 1", "send GET", "fault removed"]);
  const stale = new Fixture();
  stale.effect = { staleAt: 3 };
  stale.answer = () => answer(200);
  void stale.send("GET", `${MAPS}?watch=true`);
  await stale.run();
  // The stale state of a watch lasts as long as the watch.
  assert.deepEqual(stale.log, [
    "fault 1",
    "send GET",
    "stale watch",
    "fault removed",
  ]);
});

test("WorldTransport delivers each line of a watch in its turn, with a number", async () => {
  const world = new Fixture();
  const line = (type: string, resourceVersion: string, name?: string) =>
    `${
      JSON.stringify({ type, object: { metadata: { name, resourceVersion } } })
    }\n`;
  const all = line("ADDED", "3", "a") + line("BOOKMARK", "4") +
    line("MODIFIED", "5", "a");
  world.answer = () => answer(200, all.slice(0, 30), all.slice(30));
  const sent = world.send("GET", `${MAPS}?watch=true&sendInitialEvents=true`);
  for (const { run } of world.actions.splice(0)) run();
  const { body } = await sent;
  for (let turn = 0; turn < 9; turn++) await nextTurn();
  assert.deepEqual(
    world.actions.map(({ name = "", revision }) => `${revision} ${name}`),
    [
      '3 ADDED configmaps//a "resourceVersion":"3"',
      "4 ",
      '5 MODIFIED configmaps//a "resourceVersion":"5"',
      "5 ",
    ],
  );
  await world.run();
  let text = "";
  for await (const chunk of body) text += new TextDecoder().decode(chunk);
  assert.equal(text, all);
  const events = world.trace.filter((one): one is EventEntry =>
    one.type === "event"
  );
  assert.deepEqual(events.map(({ n }) => n), [1, undefined, 2]);
});

test("WorldTransport breaks or expires a watch at an event, as is planned", async () => {
  for (const fault of ["cut", "expire", "missed"]) {
    const world = new Fixture();
    const event = { type: "ADDED", object: { metadata: { name: "a" } } };
    world.answer = () => answer(200, `${JSON.stringify(event)}\n`);
    world.faultOf = () => fault;
    const sent = world.send("GET", `${MAPS}?watch=true`);
    await world.run();
    const { body } = await sent;
    let text = "";
    const reading = (async () => {
      for await (const chunk of body) text += new TextDecoder().decode(chunk);
    })();
    if (fault === "cut") await assert.rejects(reading, /connection was broken/);
    else {
      await reading;
      assert.match(text, /^\{"type":"ERROR",.*"code":410\}\}\n$/);
    }
    assert.doesNotMatch(text, /ADDED/);
    assert.equal(world.actions.length, 0);
  }
});

test("WorldTransport ends its watches and their events when it is dropped", async () => {
  const world = new Fixture();
  const event = { type: "ADDED", object: { metadata: { name: "a" } } };
  let closed: AbortSignal | undefined;
  world.answer = ({ signal }) => {
    closed = signal;
    return answer(200, `${JSON.stringify(event)}\n`);
  };
  void world.send("GET", `${MAPS}?watch=true`);
  for (const { run } of world.actions.splice(0)) run();
  for (let turn = 0; turn < 9; turn++) await nextTurn();
  assert.ok(world.actions.length > 0);
  world.transport.drop();
  assert.equal(world.actions.length, 0);
  assert.equal(closed?.aborted, true);
});

/** Line of a watch. */
function event(type: string, metadata: object): string {
  return `${JSON.stringify({ type, object: { metadata } })}\n`;
}

test("WorldTransport answers a request that is aborted while it is served", async () => {
  const world = new Fixture();
  const stop = new AbortController();
  world.answer = () => {
    stop.abort(new Error("too late"));
    return answer(200, "{}");
  };
  const sent = world.send("GET", `${MAPS}/a`, { signal: stop.signal });
  await world.run();
  assert.equal((await sent).status, 200);
});

test("WorldTransport attributes to no write what changed before it", async () => {
  const world = new Fixture();
  const definition = { group: "", plural: "configmaps" };
  const object = { name: "a", namespace: "shop", uid: "uid-a", definition };
  world.changes.push({ type: "MODIFIED", revision: 4, object });
  const { changed } = await world.entryOf("PATCH", `${MAPS}/a`);
  assert.deepEqual([changed, world.attributed.length], [false, 1]);
});

test("WorldTransport removes the stale state of a list at once", async () => {
  const world = new Fixture();
  world.effect = { staleAt: 3 };
  await world.entryOf("GET", MAPS);
  assert.deepEqual(world.log, ["fault 1", "send GET", "fault removed"]);
});

test("WorldTransport tells a dropped operator nothing, and opens no watch for it", async () => {
  let signal: AbortSignal | undefined;
  for (const path of [`${MAPS}/a`, `${MAPS}?watch=true`]) {
    const world = new Fixture();
    world.answer = (request) => {
      ({ signal } = request);
      world.transport.drop();
      if (!path.includes("watch")) throw new Error("broken");
      return answer(200, event("ADDED", { name: "a" }));
    };
    let isOver = false;
    world.send("GET", path).finally(() => isOver = true).catch(() => {});
    await world.run();
    assert.deepEqual([isOver, world.actions.length], [false, 0]);
  }
  assert.equal(signal?.aborted, true);
});

test("WorldTransport numbers events but those of Events, and knows initial ones", async () => {
  const world = new Fixture();
  const initial: boolean[] = [];
  world.faultOf = ({ isInitial }) => void initial.push(isInitial);
  const lines = [
    event("ADDED", { name: "a", resourceVersion: "3" }),
    event("BOOKMARK", { resourceVersion: "4" }),
    event("ADDED", { name: "b" }),
  ];
  world.answer = () => answer(200, ...lines);
  void world.send("GET", `${MAPS}?watch=true&sendInitialEvents=true`);
  for (const { run } of world.actions.splice(0)) run();
  for (let turn = 0; turn < 9; turn++) await nextTurn();
  // None is before those that came earlier.
  assert.deepEqual(world.actions.map(({ revision }) => revision), [3, 4, 4, 4]);
  await world.run();
  assert.deepEqual(initial, [true, false]);
  world.answer = () => answer(200, lines[0]!);
  const path = "/api/v1/namespaces/shop/events?watch=true";
  void world.send("GET", path);
  await world.run();
  const last = world.trace.at(-1) as EventEntry;
  assert.deepEqual([last.type, last.n, initial.length], [
    "event",
    undefined,
    2,
  ]);
});

test("WorldTransport keeps the number of an event that is delayed", async () => {
  const world = new Fixture();
  world.answer = () =>
    answer(200, event("ADDED", { name: "a" }), event("ADDED", { name: "b" }));
  void world.send("GET", `${MAPS}?watch=true`);
  for (const { run } of world.actions.splice(0)) run();
  for (let turn = 0; turn < 9; turn++) await nextTurn();
  const [first, second] = world.actions.splice(0);
  world.isDelayed = true;
  assert.equal(first?.blocked?.(), true);
  world.isDelayed = false;
  assert.equal(second?.blocked?.(), false);
  second?.run();
  first?.run();
  const numbers = world.trace.filter((one): one is EventEntry =>
    one.type === "event"
  ).map(({ name, n }) => `${name} ${n}`);
  assert.deepEqual(numbers, ["b 2", "a 1"]);
});

test("WorldTransport expires the next watch of a collection that missed an event", async () => {
  const watch = `${MAPS}?watch=true`;
  for (
    const [between, ends] of [
      [undefined, true],
      [MAPS, false],
      [`${watch}&sendInitialEvents=true`, false],
    ] as const
  ) {
    const world = new Fixture();
    world.closesGaps = false;
    world.faultOf = ({ n }) => n === 1 ? "missed" : undefined;
    const added = () => answer(200, event("ADDED", { name: "a" }));
    world.answer = added;
    void world.send("GET", watch);
    await world.run();
    if (between !== undefined) {
      world.answer = () => answer(200, "");
      void world.send("GET", between);
      await world.run();
    }
    world.answer = added;
    const textOf = async () => {
      const sent = world.send("GET", watch);
      await world.run();
      let text = "";
      for await (const chunk of (await sent).body) {
        text += new TextDecoder().decode(chunk);
      }
      return text;
    };
    assert.match(await textOf(), ends ? /"code":410/ : /ADDED/);
    assert.equal(world.log.includes("end gap"), ends);
    assert.match(await textOf(), /ADDED/, "once");
  }
});
