import fc from "fast-check";
import assert from "node:assert/strict";
import { test } from "node:test";
import { Informer } from "../../../core/cache/informer.ts";
import { MemoryBudget } from "../../../core/cache/memory_budget.ts";
import type { OwnWrite } from "../../../core/cache/shared_informer.ts";
import { Client } from "../../../core/client/client.ts";
import { VirtualClock } from "../../../core/virtual_clock.ts";
import {
  FakeWatchServer,
  type Fault,
  stateOf,
  Widget,
} from "../../support/fake_watch_server.ts";
import {
  type MemoryPace,
  memoryTransport,
} from "../../support/memory_transport.ts";
import {
  endAtOnce,
  errorEvent,
  fallSilent,
  neverAnswer,
  refuse,
  resetAtOnce,
  sendThen,
} from "../../support/watch_faults.ts";

const FAULTS: readonly Fault[] = [
  endAtOnce,
  errorEvent(410, "Expired"),
  errorEvent(500, "InternalError"),
  fallSilent,
  neverAnswer,
  refuse(403, "Forbidden"),
  refuse(404, "NotFound"),
  refuse(410, "Expired"),
  refuse(422, "Invalid"),
  refuse(429, "TooManyRequests", { "retry-after": "3" }),
  refuse(500, "InternalError"),
  resetAtOnce,
  sendThen("garbage\n", "stay"),
  sendThen('{"type":"ADDED","object":{"meta', "reset"),
  sendThen('{"type":"ADDED","object":{"meta', "end"),
  // Serves for a while and then breaks.
  (call) => {
    call.serve();
    setImmediate(() => call.response.reset());
  },
];

/** What happens next. */
type Command =
  | { readonly do: "put" | "delete" | "own"; readonly key: string }
  | { readonly do: "answer" | "fail"; readonly which: number }
  | {
    readonly do: "fault";
    readonly verb: "list" | "watch";
    readonly fault: number;
  }
  | { readonly do: "end"; readonly how: "clean" | "reset" }
  | { readonly do: "advance"; readonly by: number }
  | {
    readonly do:
      | "bookmark"
      | "compact"
      | "listen"
      | "pages"
      | "settle"
      | "turn";
  };

const KEY = fc.constantFrom("one/a", "one/b", "two/a");

const COMMAND: fc.Arbitrary<Command> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      do: fc.constantFrom("put" as const, "delete" as const, "own" as const),
      key: KEY,
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constantFrom(
        "answer" as const,
        "answer" as const,
        "fail" as const,
      ),
      which: fc.nat(3),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant("fault" as const),
      verb: fc.constantFrom("list" as const, "watch" as const),
      fault: fc.nat(FAULTS.length - 1),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant("end" as const),
      how: fc.constantFrom("clean" as const, "reset" as const),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant("advance" as const),
      by: fc.integer({ min: 1, max: 100_000 }),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constantFrom(
        "compact" as const,
        "bookmark" as const,
        "settle" as const,
        "turn" as const,
        "turn" as const,
        "pages" as const,
        "listen" as const,
      ),
    }),
  },
);

/** What a handler believes, from its events alone. */
class Mirror {
  readonly state: Map<string, string> = new Map();
  readonly faults: string[] = [];

  take(type: string, key: string, resourceVersion: string): void {
    const had = this.state.has(key);
    if (type === "deleted") this.state.delete(key);
    else this.state.set(key, resourceVersion);
    if (had !== (type !== "added")) {
      this.faults.push(`${type} ${key} had ${had}`);
    }
  }

  get entries(): Record<string, string> {
    return Object.fromEntries([...this.state].toSorted());
  }
}

/** What of the objects a history keeps where. */
interface Setting {
  /** Undefined for all, by one watch. */
  readonly namespaces: string[] | undefined;
  /** Whether keys alone are kept wherever that is possible. */
  readonly bounded: boolean;
}

/** So many objects are worth being compressed and given up. */
const MANY = 40;

/** Runs one history and checks what must hold at its end. */
class History {
  readonly clock: VirtualClock = new VirtualClock();
  readonly server: FakeWatchServer;
  readonly pace: MemoryPace;
  readonly informer: Informer<Widget>;
  /** One for the handler that was there first, and one for each late one. */
  readonly mirrors: Mirror[] = [];
  readonly writes: {
    readonly write: OwnWrite<Widget>;
    readonly answer: Widget;
  }[] = [];
  /** The uids of the objects that the writer was told of. */
  readonly known: Set<string> = new Set();
  /** The last change by somebody else that the writer was not told of. */
  readonly owed: Map<
    string,
    { readonly version: string; readonly deleted?: string }
  > = new Map();
  events = 0;

  constructor(
    server: FakeWatchServer,
    pace: MemoryPace,
    { namespaces, bounded }: Setting,
  ) {
    this.server = server;
    this.pace = pace;
    const transport = memoryTransport(server, pace);
    const client = new Client({ transport });
    this.informer = new Informer(client, Widget, {
      clock: this.clock,
      random: () => 0.5,
      namespaces,
      bounded,
      budget: bounded ? new MemoryBudget(1) : undefined,
    });
    for (let i = 0; bounded && i < MANY; i++) server.put(`one/many-${i}`);
    this.listen();
    this.writer = this.informer.addHandler(({ type, key, header }) => {
      this.known.add(header.uid);
      const owed = this.owed.get(key);
      if (owed === undefined) return;
      if (
        type === "deleted" ||
        Number(header.resourceVersion) >= Number(owed.version)
      ) {
        this.owed.delete(key);
      }
    });
  }

  readonly writer;

  listen(): void {
    const mirror = new Mirror();
    this.mirrors.push(mirror);
    this.informer.addHandler(({ type, key, header }) => {
      this.events++;
      mirror.take(type, key, header.resourceVersion);
    });
  }

  async run(command: Command): Promise<void> {
    const { server, clock } = this;
    switch (command.do) {
      case "put": {
        const { resourceVersion: version = "" } = server.put(command.key)
          .metadata;
        this.owed.set(command.key, { version });
        break;
      }
      case "delete": {
        const deleted = server.delete(command.key)?.metadata.uid;
        if (deleted !== undefined) {
          this.owed.set(command.key, { version: server.version, deleted });
        }
        break;
      }
      case "own": {
        const write = this.writer.beginWrite(command.key);
        this.writes.push({ write, answer: server.put(command.key) });
        break;
      }
      case "answer":
      case "fail": {
        const [ended] = this.writes.splice(
          command.which % (this.writes.length || 1),
          1,
        );
        if (command.do === "fail") ended?.write.fail();
        else ended?.write.succeed(ended.answer);
        break;
      }
      case "fault":
        server.script(command.verb, FAULTS[command.fault] as Fault);
        break;
      case "end":
        server.endWatches(command.how);
        break;
      case "advance":
        await clock.advance(command.by);
        break;
      case "settle":
        await clock.settle();
        break;
      case "turn":
        await new Promise(setImmediate);
        break;
      case "compact":
        server.compact();
        break;
      case "bookmark":
        server.bookmark();
        break;
      case "listen":
        this.listen();
        break;
      case "pages":
        server.maxPage = server.maxPage === 1 ? Infinity : 1;
    }
  }

  /**
   * Lets time pass until all is well, then checks.
   *
   * @returns How many objects had only their key kept.
   */
  async check(): Promise<number> {
    const { informer, server, clock } = this;
    this.pace.isSlow = false;
    for (const { write, answer } of this.writes.splice(0)) {
      write.succeed(answer);
    }
    // Changes come in order: once these are seen, all before them are.
    for (const key of ["one/last", "two/last"]) server.put(key);
    const state = JSON.stringify(server.state);
    await clock.runUntil(() =>
      informer.hasSynced &&
      informer.health().watches.every(({ state }) => state === "watching") &&
      this.mirrors.every(({ entries }) => JSON.stringify(entries) === state)
    );
    const givenUp = informer.usage().keyOnly.objects;
    assert.deepEqual(stateOf(await informer.readList()), server.state);
    for (const { faults } of this.mirrors) assert.deepEqual(faults, []);
    for (const [key, { deleted }] of this.owed) {
      // What came and went between two looks was never there.
      if (deleted !== undefined && !this.known.has(deleted)) {
        this.owed.delete(key);
      }
    }
    assert.deepEqual([...this.owed], [], "a foreign change was not told");
    const { events } = this;
    const stopped = informer.stop();
    server.put("one/a");
    await stopped;
    await clock.advance(1_000_000);
    assert.equal(this.events, events, "an event came after stop");
    assert.equal(clock.pendingTimers, 0);
    return givenUp;
  }
}

const SETTINGS: readonly (Setting & { readonly where: string })[] = [
  { where: "in all namespaces", namespaces: undefined, bounded: false },
  {
    where: "in several namespaces",
    namespaces: ["one", "two"],
    bounded: false,
  },
  { where: "with keys alone", namespaces: undefined, bounded: true },
];

for (const { where, ...setting } of SETTINGS) {
  test(`Informer ends up with the server's state after any history, ${where}`, async () => {
    let givenUp = 0;
    await fc.assert(
      fc.asyncProperty(
        fc.array(COMMAND, { maxLength: 40 }),
        fc.record({
          pieceSize: fc.integer({ min: 1, max: 400 }),
          isSlow: fc.boolean(),
        }),
        async (commands, pace) => {
          const server = await FakeWatchServer.start();
          try {
            const history = new History(server, { ...pace }, setting);
            history.informer.start();
            for (const command of commands) await history.run(command);
            givenUp += await history.check();
          } finally {
            await server.stop();
          }
        },
      ),
      { numRuns: setting.bounded ? 100 : 300 },
    );
    assert.equal(givenUp > 0, setting.bounded);
  });
}
