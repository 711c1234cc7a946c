import assert from "node:assert/strict";
import { test } from "node:test";
import { VirtualClock } from "@coracle/dev";
import { silentLogger } from "@coracle/operator/client";
import type { NamespaceSet } from "@coracle/operator/core";
import { WatchGroup } from "../../../../core/controller/watch/watch_group.ts";

/** A group of watches, and what it has called of its parts, in order. */
class GroupCase {
  readonly clock: VirtualClock = new VirtualClock();
  readonly calls: string[] = [];
  /** What calls wait for; others end at once. */
  readonly gates: Map<string, PromiseWithResolvers<void>> = new Map();
  readonly group: WatchGroup<never>;
  #attached: readonly string[] = [];

  constructor() {
    const called = this.#called;
    const attach = (names: readonly string[] | undefined) => {
      this.#attached = names === undefined ? [] : [...this.#attached, ...names];
      return called("attach", names);
    };
    const attached = () => this.#attached;
    this.group = new WatchGroup({
      primaries: {
        handle() {},
        namespacesOf: (names: NamespaceSet) =>
          names === "all" ? undefined : names,
        release: () => called("release"),
        cache: {
          get namespaces() {
            return attached();
          },
          open: (names?: readonly string[]) => called("open", names),
          keep: (names?: readonly string[]) => called("keep", names),
          attach,
        },
      } as never,
      sources: {
        start: (names: NamespaceSet) => called("start", names),
        changeNamespaces: (names: NamespaceSet) => called("change", names),
        stop: () => called("stop"),
      } as never,
      handler: {} as never,
      clock: this.clock,
      log: silentLogger,
    });
  }

  /** Holds a call back, such as `open a`, until the promise is resolved. */
  hold(call: string): PromiseWithResolvers<void> {
    const gate = Promise.withResolvers<void>();
    this.gates.set(call, gate);
    return gate;
  }

  /** The calls since the last time. */
  async news(): Promise<string[]> {
    await this.clock.settle();
    return this.calls.splice(0);
  }

  readonly #called = (what: string, names?: NamespaceSet): Promise<void> => {
    const call = names === undefined ? what : `${what} ${names}`;
    this.calls.push(call);
    return this.gates.get(call)?.promise ?? Promise.resolve();
  };
}

test("WatchGroup attaches primaries behind their sources, and stops these first", async () => {
  const parts = new GroupCase();
  const { group } = parts;
  await group.watch(["a"], false);
  assert.deepEqual(await parts.news(), [
    "keep a",
    "open a",
    "start a",
    "attach a",
    "keep a",
  ]);
  await group.watch(["a", "b"], false);
  assert.deepEqual(await parts.news(), [
    "keep a,b",
    "open a,b",
    "change a,b",
    "attach a,b",
    "keep a,b",
  ]);
  await group.watch("all", false);
  assert.deepEqual(await parts.news(), [
    "open",
    "change all",
    "attach",
    "keep",
  ]);
  await group.stop();
  assert.deepEqual(await parts.news(), ["stop", "keep ", "release"]);
});

for (const held of ["keep a", "open a"]) {
  test(`WatchGroup leaves what it began if it is replaced in "${held}"`, async () => {
    const parts = new GroupCase();
    const { group } = parts;
    const gate = parts.hold(held);
    const first = group.watch(["a"], false);
    await parts.news();
    const second = group.watch(["b"], false);
    assert.deepEqual(await parts.news(), [
      "keep b",
      "open b",
      "start b",
      "attach b",
      "keep b",
    ]);
    gate.resolve();
    await Promise.all([first, second]);
    assert.deepEqual(await parts.news(), []);
  });

  test(`WatchGroup opens nothing more if it is stopped in "${held}"`, async () => {
    const parts = new GroupCase();
    const { group } = parts;
    const gate = parts.hold(held);
    const watching = group.watch(["a"], false);
    await parts.news();
    await group.stop();
    assert.deepEqual(await parts.news(), ["stop", "keep ", "release"]);
    gate.resolve();
    await assert.rejects(watching, /was stopped/);
    assert.deepEqual(await parts.news(), []);
  });
}

test("WatchGroup watches other namespaces after some that have failed", async () => {
  const parts = new GroupCase();
  const { group } = parts;
  parts.hold("start a").reject(new Error("no route"));
  await assert.rejects(group.watch(["a"], false), /no route/);
  await parts.news();
  await group.watch(["b"], false);
  assert.ok((await parts.news()).includes("attach b"));
});

test("WatchGroup that may start partly attaches late namespaces when they are there", async () => {
  const parts = new GroupCase();
  const { group, clock } = parts;
  const late = parts.hold("open b");
  const watching = group.watch(["a", "b"], true);
  assert.deepEqual(await parts.news(), ["keep a,b", "open a", "open b"]);
  await clock.advance(1_000);
  await watching;
  assert.deepEqual(await parts.news(), ["start a", "attach a"]);
  late.resolve();
  assert.deepEqual(await parts.news(), ["change a,b", "attach b"]);
  assert.equal(clock.pendingTimers, 0);
});
