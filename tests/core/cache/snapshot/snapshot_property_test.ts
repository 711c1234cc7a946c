import assert from "node:assert/strict";
import { readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { VirtualClock } from "@coracle/dev";
import type { CacheEvent, HandlerRegistration } from "@coracle/operator/client";
import type { Widget } from "../../../support/fake_watch_call.ts";
import { FakeWatchServer } from "../../../support/fake_watch_server.ts";
import { FAULTS } from "../../../support/informer_commands.ts";
import { fc } from "../../../support/property.ts";
import { temporaryFolder } from "../../../support/temporary_folder.ts";
import { type Incarnation, incarnation, settled } from "./warm_informer.ts";

type Command =
  | { readonly do: "put" | "own" | "delete"; readonly key: string }
  | { readonly do: "fault"; readonly fault: number }
  | {
    readonly do: "damage";
    readonly at: number;
    readonly how: "cut" | "flip";
  }
  | { readonly do: "kill" | "stop"; readonly settle: boolean }
  | { readonly do: "compact" | "bookmark" | "flush" | "settle" | "turn" };

const KEY = fc.constantFrom("one/a", "one/b", "two/a");

const COMMAND: fc.Arbitrary<Command> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      do: fc.constantFrom(
        "put" as const,
        "put" as const,
        "own" as const,
        "delete" as const,
      ),
      key: KEY,
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      do: fc.constant("fault" as const),
      fault: fc.nat(FAULTS.length - 1),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      do: fc.constant("damage" as const),
      at: fc.nat(10_000),
      how: fc.constantFrom("cut" as const, "flip" as const),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constantFrom("kill" as const, "stop" as const),
      settle: fc.boolean(),
    }),
  },
  {
    weight: 6,
    arbitrary: fc.record({
      do: fc.constantFrom(
        "compact" as const,
        "bookmark" as const,
        "flush" as const,
        "flush" as const,
        "settle" as const,
        "turn" as const,
        "turn" as const,
      ),
    }),
  },
);

/** Life of an operator's cache over restarts, and what its handlers must see. */
class History {
  readonly #server: FakeWatchServer;
  readonly #path: string;
  readonly #clock: VirtualClock = new VirtualClock();
  /** Every state that the server has had, by key and version. */
  readonly #states: Map<string, string> = new Map();
  readonly #faults: string[] = [];
  #uids = 0;
  #present: Incarnation | undefined;
  #writer: HandlerRegistration<Widget> | undefined;
  /** What a handler of this incarnation knows from its events alone. */
  #mirror: Map<string, string> = new Map();

  constructor(server: FakeWatchServer, path: string) {
    this.#server = server;
    this.#path = path;
  }

  async start(): Promise<void> {
    const mirror = this.#mirror = new Map();
    const one = await incarnation(this.#server, {
      path: this.#path,
      clock: this.#clock,
    });
    this.#present = one;
    one.informer.addHandler((event) => this.#check(event, mirror));
    this.#writer = one.informer.addHandler(() => {}, { name: "writer" });
    one.informer.start();
  }

  #check(event: CacheEvent<Widget>, mirror: Map<string, string>): void {
    const { type, key, header, object } = event;
    const version = header.resourceVersion;
    const known = mirror.get(key);
    const seen = `${type} ${key} ${version} after ${known}`;
    // An exception would only be logged.
    if ((known !== undefined) !== (type !== "added")) this.#faults.push(seen);
    if (type === "deleted") {
      mirror.delete(key);
      return;
    }
    if (Number(version) <= Number(known ?? 0)) this.#faults.push(seen);
    mirror.set(key, version);
    const state = this.#states.get(`${key} ${version}`);
    if (JSON.stringify(object) !== state) {
      this.#faults.push(`${seen}: ${state}`);
    }
  }

  async run(command: Command): Promise<void> {
    const server = this.#server;
    const one = this.#present as Incarnation;
    switch (command.do) {
      case "put":
        this.#put(command.key);
        break;
      case "own": {
        const write = this.#writer?.beginWrite(command.key);
        write?.succeed(this.#put(command.key));
        break;
      }
      case "delete":
        server.delete(command.key);
        break;
      case "fault":
        server.script("watch", FAULTS[command.fault] ?? assert.fail());
        break;
      case "compact":
        server.compact();
        break;
      case "bookmark":
        server.bookmark();
        break;
      case "flush":
        await one.folder.flush();
        break;
      case "settle":
        await this.settle();
        break;
      case "turn":
        await new Promise(setImmediate);
        break;
      case "damage":
        this.#damage(command.at, command.how);
        break;
      case "kill":
      case "stop": {
        if (command.settle) await this.settle();
        const killed = readAll(this.#path);
        await one.stop();
        // A process that is killed writes nothing at its end.
        if (command.do === "kill") writeAll(this.#path, killed);
        await this.start();
      }
    }
  }

  #put(key: string): Widget {
    const uid = `${++this.#uids}-of-the-widgets`;
    const object = this.#server.put(key, { uid });
    const { resourceVersion } = object.metadata;
    this.#states.set(`${key} ${resourceVersion}`, JSON.stringify(object));
    return object;
  }

  #damage(at: number, how: "cut" | "flip"): void {
    for (const [name, bytes] of readAll(this.#path)) {
      const end = at % (bytes.length || 1);
      const changed = Buffer.from(
        how === "cut" ? bytes.subarray(0, end) : bytes,
      );
      if (how === "flip" && bytes.length > 0) {
        changed.writeUInt8(bytes.readUInt8(end) ^ 1, end);
      }
      writeFileSync(join(this.#path, name), changed);
    }
  }

  /** Waits until the cache and the handler show what the server has. */
  async settle(): Promise<void> {
    const one = this.#present as Incarnation;
    // Changes come in order: once this one is seen, all before it are.
    this.#put("two/last");
    await settled(this.#server, one, this.#clock, true);
    assert.deepEqual(this.#faults, []);
    assert.deepEqual(
      Object.fromEntries([...this.#mirror].toSorted()),
      this.#server.state,
    );
    for (const object of this.#server.objects) {
      const { namespace, name } = object.metadata;
      assert.deepEqual(one.informer.get(`${namespace}/${name}`), object);
    }
  }

  async end(): Promise<void> {
    await this.settle();
    await this.#present?.stop();
    assert.equal(this.#clock.pendingTimers, 0);
  }
}

function readAll(path: string): [name: string, bytes: Buffer][] {
  return readdirSync(path).map((
    name,
  ) => [name, readFileSync(join(path, name))]);
}

function writeAll(path: string, files: readonly [string, Buffer][]): void {
  for (const name of readdirSync(path)) rmSync(join(path, name));
  for (const [name, bytes] of files) writeFileSync(join(path, name), bytes);
}

test("Snapshot hides and repeats no event over restarts, faults and damage", async () => {
  const folder = temporaryFolder();
  let runs = 0;
  await fc.assert(
    fc.asyncProperty(
      fc.array(COMMAND, { maxLength: 40 }),
      async (commands) => {
        const server = await FakeWatchServer.start();
        const history = new History(server, join(folder, String(++runs)));
        try {
          await history.start();
          for (const command of commands) await history.run(command);
          await history.end();
        } finally {
          await server.stop();
        }
      },
    ),
    { numRuns: 40 },
  );
});
