import assert from "node:assert/strict";
import { test } from "node:test";
import type { ResolvedKind } from "../../../core/api/kind.ts";
import type { SourceContext } from "../../../core/controller/event_source.ts";
import { silentLogger } from "../../../core/logger.ts";
import { CrdPresence } from "../../../workflows/graph/activation.ts";

const KIND: ResolvedKind = {
  group: "example.com",
  version: "v1",
  kind: "Widget",
  plural: "widgets",
  scope: "Namespaced",
};

/** A definition that is served, with these fields changed. */
function definition({ deleting = false, served = true, established = true }) {
  return {
    metadata: {
      name: "widgets.example.com",
      ...(deleting && { deletionTimestamp: "2026-01-01T00:00:00Z" }),
    },
    spec: { versions: [{ name: "v1", served }] },
    status: {
      conditions: [{
        type: "Established",
        status: established ? "True" : "False",
      }],
    },
  };
}

/** The presence of the kind on a server that the test plays. */
function presence() {
  const source = new CrdPresence(KIND);
  const triggered: string[] = [];
  let stored: unknown;
  let handler = (_event: object) => {};
  const informer = {
    addHandler(given: typeof handler) {
      handler = given;
      return { synced: Promise.resolve() };
    },
    get: () => stored,
  };
  const context = {
    controller: "gadget",
    log: silentLogger,
    primaries: { keys: () => ["default/a"] },
    trigger: (key: string) => triggered.push(key) > 0,
    informers: {
      acquire: () => ({ informer, release: () => Promise.resolve() }),
    },
  } as unknown as SourceContext<never>;
  return {
    source,
    triggered,
    start: () => source.start(context),
    /** Somebody changes the definition. */
    async put(crd: unknown) {
      stored = crd;
      handler({ initial: false });
      await new Promise((resolve) => setTimeout(resolve));
    },
  };
}

test("CrdPresence needs a definition that is served, established and stays", async () => {
  const { source, start, put } = presence();
  await start();
  assert.equal(source.present, false);
  for (
    const wrong of [{ deleting: true }, { served: false }, {
      established: false,
    }]
  ) {
    await put(definition({}));
    assert.equal(source.present, true);
    await put(definition(wrong));
    assert.equal(source.present, false, JSON.stringify(wrong));
  }
  await source.stop();
});

test("CrdPresence is there after its listeners reacted, and gone before", async () => {
  const { source, start, put, triggered } = presence();
  const seen: (readonly [boolean, boolean])[] = [];
  await source.follow((present) => {
    seen.push([present, source.present]);
    return Promise.resolve();
  });
  await start();
  await put(definition({}));
  assert.equal(source.present, true);
  await put(undefined);
  assert.deepEqual(seen, [[false, false], [true, false], [false, false]]);
  assert.deepEqual(triggered, ["default/a", "default/a"]);
  await source.stop();
});

test("CrdPresence forgets its listeners when it stops, and starts again", async () => {
  const { source, start, put } = presence();
  let calls = 0;
  await source.follow(() => Promise.resolve(void calls++));
  await start();
  await put(definition({}));
  await source.stop();
  assert.deepEqual([calls, source.present], [2, false]);
  await start();
  assert.deepEqual([calls, source.present], [2, true]);
  await source.stop();
});
