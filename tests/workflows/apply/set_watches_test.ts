import assert from "node:assert/strict";
import { test } from "node:test";
import { VirtualClock } from "@coracle/dev";
import {
  type Context,
  type EventSource,
  type SourceRegistry,
  untyped,
} from "@coracle/operator/core";
import { nextTurn } from "../../../core/clock.ts";
import { SetWatches } from "../../../workflows/apply/set_watches.ts";
import { recordedContext } from "../../support/source_context.ts";

const PART = untyped({
  group: "example.com",
  version: "v1",
  kind: "Part",
  plural: "parts",
  scope: "Namespaced",
});

/** Sources by name, all of which sync at the same time. */
class Registry {
  readonly sources: Map<string, EventSource> = new Map();
  readonly synced: PromiseWithResolvers<void> = Promise.withResolvers();

  async add(source: EventSource): Promise<EventSource> {
    const known = this.sources.get(source.name) ?? source;
    this.sources.set(source.name, known);
    await this.synced.promise;
    return known;
  }

  remove(name: string): Promise<void> {
    this.sources.delete(name);
    return Promise.resolve();
  }
}

/** Watches of sets, with a function that opens the one of parts for a primary. */
async function opened() {
  const clock = new VirtualClock();
  const watches = new SetWatches({
    ...{ name: "shop", kinds: [], namespaces: "all", resource: {} },
  });
  await watches.start(recordedContext(clock));
  const registry = new Registry();
  const open = (name: string, { signal } = new AbortController()) =>
    watches.open(PART, {
      clock,
      key: { namespace: "default", name },
      client: {
        resolve: () => Promise.resolve(PART),
        list: () => Promise.resolve({ items: [], metadata: {} }),
      },
      signal,
      sources: registry as Partial<SourceRegistry<never>>,
      cause: { type: "added" },
    } as unknown as Context<never>);
  return { watches, registry, open };
}

test("SetWatches keeps a watch for a set that opens it while another leaves it", async () => {
  const { watches, registry, open } = await opened();
  const first = open("gone");
  await nextTurn();
  assert.equal(registry.sources.size, 1);
  // Its primary is deleted before the watch has synced.
  watches.release("default/gone", new Set());
  const second = open("next");
  await nextTurn();
  registry.synced.resolve();
  await first;
  const { source } = await second;
  await nextTurn();
  assert.deepEqual([...registry.sources.values()], [source]);
  watches.release("default/next", new Set());
  await nextTurn();
  assert.equal(registry.sources.size, 0);
});

test("SetWatches ends a watch that has synced after its only set was gone", async () => {
  const { watches, registry, open } = await opened();
  const first = open("gone");
  await nextTurn();
  watches.release("default/gone", new Set());
  registry.synced.resolve();
  await first;
  await nextTurn();
  assert.equal(registry.sources.size, 0);
});

test("SetWatches opens a watch for each run that waits, also if one is aborted", async () => {
  const { registry, open } = await opened();
  const aborted = new AbortController();
  const first = open("a", aborted);
  const second = open("b");
  await nextTurn();
  aborted.abort(new Error("it takes too long"));
  await assert.rejects(first, /^Error: it takes too long$/);
  registry.synced.resolve();
  const { source } = await second;
  assert.deepEqual([...registry.sources.values()], [source]);
});
