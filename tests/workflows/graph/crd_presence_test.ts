import assert from "node:assert/strict";
import { test } from "node:test";
import { type ResolvedKind, silentLogger } from "@coracle/operator/client";
import type { SourceContext } from "@coracle/operator/core";
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
  const released: string[] = [];
  const logged: string[] = [];
  let stored: unknown;
  let handler = (_event: object) => {};
  const synced = Promise.withResolvers<void>();
  const informer = {
    addHandler(given: typeof handler) {
      handler = given;
      return { synced: synced.promise };
    },
    get: () => stored,
    health: () => ({ healthy: stored !== undefined }),
  };
  const context = {
    controller: "gadget",
    log: { ...silentLogger, info: (text: string) => logged.push(text) },
    primaries: { keys: () => ["default/a"] },
    trigger: (key: string) => triggered.push(key) > 0,
    informers: {
      acquire: () => ({
        informer,
        release: () => Promise.resolve(void released.push("lease")),
      }),
    },
  } as unknown as SourceContext<never>;
  return {
    source,
    triggered,
    released,
    logged,
    /** Starts while the informer has no objects yet. */
    startUnsynced: () => source.start(context),
    sync: () => synced.resolve(),
    start() {
      synced.resolve();
      return source.start(context);
    },
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

test("CrdPresence does not say that it has installed the kind of others", async () => {
  const { source, start, put, logged } = presence();
  await put(definition({}));
  await start();
  await put(definition({}));
  await put(undefined);
  assert.deepEqual(logged, [
    "A kind of others is served",
    "A kind of others has gone",
  ]);
  await source.stop();
});

test("CrdPresence forgets its listeners when it stops, and starts again", async () => {
  const { source, start, put } = presence();
  let calls = 0;
  await source.follow(() => Promise.resolve(void calls++));
  await start();
  assert.equal(source.health().status, "unhealthy");
  await put(definition({}));
  assert.equal(source.health().status, "healthy");
  await source.stop();
  assert.equal(source.health().status, "unknown");
  assert.deepEqual([calls, source.present], [2, false]);
  await start();
  assert.deepEqual([calls, source.present], [2, true]);
  await source.stop();
});

test("CrdPresence has started when it knows the definition", async () => {
  const { source, startUnsynced, sync, put } = presence();
  let isStarted = false;
  const started = startUnsynced().then(() => isStarted = true);
  await new Promise((resolve) => setTimeout(resolve));
  assert.equal(isStarted, false);
  await put(definition({}));
  sync();
  await started;
  assert.equal(source.present, true);
  await source.stop();
});

test("CrdPresence calls a new listener after the change in progress", async () => {
  const { source, start, put } = presence();
  const reaction = Promise.withResolvers<void>();
  await start();
  await source.follow((present) =>
    present ? reaction.promise : Promise.resolve()
  );
  await put(definition({}));
  const seen: boolean[] = [];
  const followed = source.follow((present) => {
    seen.push(present);
    return Promise.resolve();
  });
  reaction.resolve();
  await followed;
  assert.deepEqual(seen, [true]);
  await source.stop();
});

test("CrdPresence goes on after a listener that failed", async () => {
  const { source, start, put, triggered } = presence();
  await start();
  await source.follow((present) =>
    present ? Promise.reject(new Error("As asked")) : Promise.resolve()
  );
  await put(definition({}));
  await put(definition({}));
  assert.deepEqual([source.present, triggered], [true, ["default/a"]]);
  await put(undefined);
  assert.deepEqual([source.present, triggered.length], [false, 2]);
  await source.stop();
});

test("CrdPresence gives its informer back when it stops", async () => {
  const { source, released, start } = presence();
  await start();
  assert.deepEqual(released, []);
  await source.stop();
  await source.stop();
  assert.deepEqual(released, ["lease"]);
});
