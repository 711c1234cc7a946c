/**
 * Runs a random history of an informer and checks its invariants. A history
 * (informer_commands.ts) mixes foreign and own writes, faults, restarts and late
 * handlers. At its end the store equals the server, each handler's view built
 * from events alone equals the store, every foreign change was delivered to the
 * writer, and no event was delivered without a reason.
 *
 * @module
 */

import assert from "node:assert/strict";
import type {
  CacheEvent,
  HandlerRegistration,
  InformerSelection,
  OwnWrite,
} from "@coracle/operator/client";
import {
  labelRequirements,
  matchesLabels,
} from "../../core/api/label_selector.ts";
import { inShard, parseShardSelector } from "../../core/api/shard_selector.ts";
import { Informer } from "../../core/cache/informer/informer.ts";
import { MemoryBudget } from "../../core/cache/store/memory_budget.ts";
import { Client } from "../../core/client/client.ts";
import { VirtualClock } from "../../dev/testing/virtual_clock.ts";
import { stateOf, Widget } from "./fake_watch_call.ts";
import type { FakeWatchServer } from "./fake_watch_server.ts";
import { type Command, FAULTS } from "./informer_commands.ts";
import { type MemoryPace, memoryTransport } from "./memory_transport.ts";

/** Labels that match and that do not match the selector. */
const ON = { color: "on" };
const OFF = { color: "off" };

/** So many objects are worth being compressed and given up. */
const MANY = 40;

/** Behaviour of the server in a history. */
export interface World extends MemoryPace {
  /** Whether the state can be had as a stream. */
  readonly watchList: FakeWatchServer["watchList"];
}

/** Objects that a handler knows from its events alone. */
class Mirror {
  readonly state: Map<string, string> = new Map();
  readonly faults: string[] = [];
  /** Newest delivered version of each key; absent after versions restarted. */
  newest: Map<string, number> | undefined;

  constructor(ordered: boolean) {
    this.newest = ordered ? new Map() : undefined;
  }

  take({ type, key, header }: CacheEvent<Widget>): void {
    const { resourceVersion } = header;
    const had = this.state.has(key);
    if (type === "deleted") this.state.delete(key);
    else this.state.set(key, resourceVersion);
    if (had !== (type !== "added")) {
      this.faults.push(`${type} ${key} had ${had}`);
    }
    const before = this.newest?.get(key) ?? 0;
    if (Number(resourceVersion) < before) {
      this.faults.push(`${type} ${key} ${resourceVersion} after ${before}`);
    }
    this.newest?.set(key, Number(resourceVersion));
  }

  get entries(): Record<string, string> {
    return Object.fromEntries([...this.state].toSorted());
  }
}

/** Foreign change that was not delivered to the writer. */
interface Debt {
  readonly version: string;
  /** Whether the object was deleted since, or for a moment. */
  readonly gone: boolean;
}

/** Own write that the server has stored but not answered. */
interface StoredWrite {
  readonly write: OwnWrite<Widget>;
  readonly answer: Widget;
}

/** Runs one history of an informer and checks its invariants at the end. */
export class InformerHistory {
  readonly #clock: VirtualClock = new VirtualClock();
  readonly #server: FakeWatchServer;
  readonly #world: World;
  readonly #selection: InformerSelection;
  readonly #informer: Informer<Widget>;
  /** Mirrors of the first handler and of each later one. */
  readonly #mirrors: Mirror[] = [];
  readonly #writer: HandlerRegistration<Widget>;
  readonly #writes: StoredWrite[] = [];
  /** Objects that were delivered to the writer and not deleted. */
  readonly #present: Set<string> = new Set();
  /** Last foreign change of each key that must be delivered to the writer. */
  readonly #owed: Map<string, Debt> = new Map();
  /** The versions of our writes that were answered. */
  readonly #own: Set<string> = new Set();
  /** How many events the changes by others can give the writer, by key. */
  readonly #due: Map<string, number> = new Map();
  /** Events that were delivered to the writer without a reason. */
  readonly #excess: string[] = [];
  readonly #moves: Promise<void>[] = [];
  #namespaces: readonly string[] | undefined;
  #hasLost = false;
  #uids = 0;
  #events = 0;

  constructor(
    server: FakeWatchServer,
    world: World,
    selection: InformerSelection,
  ) {
    this.#server = server;
    this.#world = world;
    this.#selection = selection;
    this.#namespaces = selection.namespaces;
    server.watchList = world.watchList;
    const { bounded = false } = selection;
    const transport = memoryTransport(server, world);
    this.#informer = new Informer(new Client({ transport }), Widget, {
      ...selection,
      clock: this.#clock,
      random: () => 0.5,
      budget: bounded ? new MemoryBudget(1) : undefined,
    });
    for (let i = 0; bounded && i < MANY; i++) server.put(`one/many-${i}`);
    this.#listen();
    this.#writer = this.#informer.addHandler((event) => this.#settle(event));
    this.#informer.start();
  }

  /** Lets the next thing happen. */
  async run(command: Command): Promise<void> {
    const server = this.#server;
    switch (command.do) {
      case "put":
        this.#change(command.key, () => this.#put(command.key, command.on));
        break;
      case "delete":
        this.#change(command.key, () => server.delete(command.key));
        break;
      case "own":
        this.#begin(command.key, command.on);
        break;
      case "answer":
      case "fail": {
        const which = command.which % (this.#writes.length || 1);
        const [ended] = this.#writes.splice(which, 1);
        if (ended === undefined) break;
        if (command.do === "fail") this.#fail(ended);
        else this.#succeed(ended);
        break;
      }
      case "fault":
        server.script(command.verb, FAULTS[command.fault] ?? assert.fail());
        break;
      case "end":
        server.endWatches(command.how);
        break;
      case "advance":
        await this.#clock.advance(command.by);
        break;
      case "settle":
        await this.#clock.settle();
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
        this.#listen();
        break;
      case "pages":
        server.maxPage = server.maxPage === 1 ? Infinity : 1;
        break;
      case "namespaces":
        this.#move(command.to);
        break;
      case "lose":
        this.#lose();
    }
  }

  /**
   * Lets time pass until all is well, then checks.
   *
   * @returns How many objects had only their key kept.
   */
  async check(): Promise<number> {
    const informer = this.#informer;
    const clock = this.#clock;
    this.#world.isSlow = false;
    for (const ended of this.#writes.splice(0)) this.#succeed(ended);
    // Changes come in order: once these are seen, all before them are.
    for (const key of ["one/last", "two/last"]) {
      do this.#server.delete(key); while (
        !this.#isVisible(this.#put(key, true)) && this.#covers(key)
      );
    }
    const expected = this.#expected;
    const state = JSON.stringify(expected);
    await clock.runUntil(() =>
      informer.hasSynced &&
      informer.health().watches.every(({ state }) => state === "watching") &&
      this.#mirrors.every(({ entries }) => JSON.stringify(entries) === state)
    );
    const givenUp = informer.usage().keyOnly.objects;
    assert.deepEqual(stateOf(await informer.readList()), expected);
    for (const { faults } of this.#mirrors) assert.deepEqual(faults, []);
    for (const [key, { gone }] of this.#owed) {
      // What came and went between two looks was never there.
      if (gone && !this.#present.has(key)) this.#owed.delete(key);
    }
    assert.deepEqual([...this.#owed], [], "a foreign change was not told");
    assert.deepEqual(this.#excess, [], "the writer was told too much");
    await this.#checkEnd();
    return givenUp;
  }

  async #checkEnd(): Promise<void> {
    const events = this.#events;
    const stopped = this.#informer.stop();
    this.#server.put("one/a", { labels: ON });
    await stopped;
    await Promise.allSettled(this.#moves);
    await this.#clock.advance(1_000_000);
    assert.equal(this.#events, events, "an event came after stop");
    assert.equal(this.#clock.pendingTimers, 0);
  }

  /** Objects of the server that the informer must contain. */
  get #expected(): Record<string, string | undefined> {
    return stateOf(
      [...this.#server.objects].filter((object) => this.#isVisible(object)),
    );
  }

  #covers(key: string): boolean {
    const [namespace = ""] = key.split("/");
    return this.#namespaces?.includes(namespace) ?? true;
  }

  /** Whether the informer should hold an object. */
  #isVisible({ metadata }: Widget): boolean {
    const { namespace = "", name = "", uid = "", labels } = metadata;
    const { labelSelector, fieldSelector, shardSelector } = this.#selection;
    return this.#covers(`${namespace}/${name}`) &&
      matchesLabels(labelRequirements(labelSelector ?? ""), labels) &&
      (fieldSelector === undefined || labels?.["color"] === ON.color) &&
      (shardSelector === undefined ||
        inShard(parseShardSelector(shardSelector), { uid, namespace }));
  }

  #put(key: string, on: boolean): Widget {
    // What differs stands at the begin, so that hashes of it differ.
    const uid = `${++this.#uids}-of-the-widgets`;
    return this.#server.put(key, { uid, labels: on ? ON : OFF });
  }

  #listen(): void {
    const mirror = new Mirror(!this.#hasLost);
    this.#mirrors.push(mirror);
    this.#informer.addHandler((event) => {
      this.#events++;
      mirror.take(event);
    });
  }

  /** Delivers an event to the writer. */
  #settle({ type, key, header, initial, relist }: CacheEvent<Widget>): void {
    const due = this.#due.get(key) ?? 0;
    const isSure = type === "deleted" || initial || relist;
    const isNews = isSure || due > 0 || !this.#own.has(header.resourceVersion);
    if (!isSure) this.#due.set(key, due - 1);
    if (!isNews || (type === "added" && this.#present.has(key))) {
      this.#excess.push(`${type} ${key} ${header.resourceVersion}`);
    }
    if (type === "deleted") this.#present.delete(key);
    else this.#present.add(key);
    const { version } = this.#owed.get(key) ?? {};
    if (version === undefined) return;
    if (
      type === "deleted" || Number(header.resourceVersion) >= Number(version)
    ) this.#owed.delete(key);
  }

  /** Makes a foreign write. */
  #change(key: string, write: () => Widget | undefined): void {
    const before = this.#server.get(key);
    const was = before !== undefined && this.#isVisible(before);
    write();
    const after = this.#server.get(key);
    const is = after !== undefined && this.#isVisible(after);
    const { version } = this.#server;
    if (was || is) this.#owed.set(key, { version, gone: !is });
    this.#expect(key);
  }

  /** Allows one more event. */
  #expect(key: string): void {
    this.#due.set(key, Math.max(this.#due.get(key) ?? 0, 0) + 1);
  }

  /** Stores an own write without answering it. */
  #begin(key: string, on: boolean): void {
    const write = this.#writer.beginWrite(key);
    const answer = this.#put(key, on);
    this.#writes.push({ write, answer });
    if (this.#isVisible(answer)) return;
    // That it is gone, the writer learns as of a change by somebody else.
    this.#expect(key);
    const debt = this.#owed.get(key);
    if (debt !== undefined) this.#owed.set(key, { ...debt, gone: true });
  }

  #succeed({ write, answer }: StoredWrite): void {
    this.#own.add(answer.metadata.resourceVersion ?? "");
    write.succeed(answer);
  }

  #fail({ write, answer }: StoredWrite): void {
    const { namespace, name } = answer.metadata;
    // For all that the writer knows, somebody else made the change.
    this.#due.set(`${namespace}/${name}`, Infinity);
    write.fail();
  }

  #move(to: readonly string[] | undefined): void {
    const from = this.#namespaces;
    this.#namespaces = to;
    const isLeft = (key: string) => {
      const [namespace = ""] = key.split("/");
      return (from === undefined) !== (to === undefined) ||
        from?.includes(namespace) && !this.#covers(key);
    };
    for (const { state, newest } of this.#mirrors) {
      for (const key of state.keys()) if (isLeft(key)) state.delete(key);
      // The next watch of a namespace does not know how far the last one was.
      for (const key of newest?.keys() ?? []) {
        if (isLeft(key)) newest?.delete(key);
      }
    }
    for (const key of this.#present) if (isLeft(key)) this.#present.delete(key);
    for (const key of this.#owed.keys()) {
      if (isLeft(key)) this.#owed.delete(key);
    }
    this.#moves.push(this.#informer.changeNamespaces(to));
  }

  /**
   * Restarts the versions of the server: only once, since a second time might
   * not be noticeable, and not while a list is read, which may be older than the
   * previous one.
   */
  #lose(): void {
    const { watches } = this.#informer.health();
    const isQuiet = watches.every(({ state }) => state === "watching");
    if (this.#hasLost || !isQuiet) return;
    this.#hasLost = true;
    this.#server.loseData();
    this.#server.endWatches("reset");
    for (const ended of this.#writes.splice(0)) this.#fail(ended);
    this.#owed.clear();
    for (const mirror of this.#mirrors) mirror.newest = undefined;
  }
}
