/**
 * Whatever comes and goes in an event source, nothing of it stays in its memory.
 *
 * @module
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import type {
  Context,
  EventSource,
  KubernetesObject,
} from "@coracle/operator/core";
import { Expectations } from "../../sources/expectations.ts";
import { cachingInboundSource } from "../../sources/inbound_source.ts";
import {
  perResourcePollingSource,
  pollingSource,
} from "../../sources/polling_source.ts";
import { timerSource } from "../../sources/timer_source.ts";
import { VirtualClock } from "../../dev/testing/virtual_clock.ts";
import { growthOf } from "../support/growth.ts";
import { gadget, recordedContext } from "../support/source_context.ts";

type Source = EventSource<KubernetesObject, unknown>;

/** Life of a primary in a source: it exists, and is deleted after `live`. */
interface Life {
  readonly source: Source;
  /** What happens with a primary, whose resource may be deleted at that time. */
  live(primary: KubernetesObject, clock: VirtualClock): unknown;
  /** What still arrives when it has been deleted. */
  readonly late?: (primary: KubernetesObject) => unknown;
}

const fetched = { id: "a", size: 1 };
const id = (resource: typeof fetched) => resource.id;

/** Polling whose fetch for a primary ends after its deletion. */
function latePolls(isPolled: boolean): Life {
  let answer = Promise.withResolvers<(typeof fetched)[]>();
  const source = perResourcePollingSource<KubernetesObject, typeof fetched>({
    name: "polls",
    id,
    fetch: () => answer.promise,
    accepts: () => isPolled,
  });
  let read: unknown;
  return {
    source,
    live: (primary) => void (read = source.secondaries?.(primary)),
    async late() {
      answer.resolve([fetched]);
      answer = Promise.withResolvers();
      await read;
    },
  };
}

const LIVES: Readonly<Record<string, () => Life>> = {
  timerSource() {
    const source = timerSource("timers");
    return {
      source,
      live({ metadata }) {
        source.schedule(metadata, { every: "1h" });
        source.schedule(metadata, { after: "1s" });
      },
      late: ({ metadata }) => source.schedule(metadata, { every: "1h" }),
    };
  },
  Expectations() {
    const source = new Expectations();
    const live = ({ metadata }: KubernetesObject) =>
      source.set({ key: metadata } as Context<KubernetesObject>, {
        name: "ready",
        timeout: "1h",
        isFulfilled: () => false,
      });
    return { source, live, late: live };
  },
  pollingSource() {
    let found = new Map<string, (typeof fetched)[]>();
    const source = pollingSource({ name: "polls", id, fetch: () => found });
    return {
      source,
      async live(primary) {
        found = new Map([[`default/${primary.metadata.name}`, [fetched]]]);
        await source.poll();
        source.ownExternalWrite(primary, { id: "b", size: 2 });
        source.ownExternalDelete(primary, fetched);
        found = new Map();
        await source.poll();
        await source.poll();
      },
    };
  },
  "pollingSource without resources"() {
    const source = pollingSource({ name: "polls", id, fetch: () => new Map() });
    return {
      source,
      async live(primary) {
        source.ownExternalDelete(primary, fetched);
        await source.poll();
      },
    };
  },
  perResourcePollingSource() {
    let isBroken = false;
    const source = perResourcePollingSource<KubernetesObject, typeof fetched>({
      name: "polls",
      id,
      fetch: () => {
        if (isBroken) throw new Error("away");
        return [fetched];
      },
      interval: () => isBroken ? "no duration" as "1s" : "1s",
    });
    return {
      source,
      async live(primary, clock) {
        await clock.advance(3_000);
        source.ownExternalWrite(primary, { id: "b", size: 2 });
        source.ownExternalDelete(primary, fetched);
        isBroken = true;
        await clock.advance(10_000);
        isBroken = false;
      },
      late(primary) {
        source.ownExternalWrite(primary, fetched);
        source.ownExternalDelete(primary, fetched);
      },
    };
  },
  "perResourcePollingSource, late fetch": () => latePolls(true),
  "perResourcePollingSource, late read": () => latePolls(false),
  cachingInboundSource() {
    const source = cachingInboundSource<KubernetesObject, typeof fetched>({
      name: "inbound",
      id,
      fetch: () => [fetched],
    });
    return {
      source,
      async live(primary) {
        await source.secondaries?.(primary);
        source.push(primary.metadata, { id: "b", size: 2 });
        source.remove(primary.metadata, "b");
        source.pushAll(primary.metadata, [fetched]);
      },
    };
  },
  "cachingInboundSource, late fetch"() {
    let answer = Promise.withResolvers<(typeof fetched)[]>();
    const source = cachingInboundSource<KubernetesObject, typeof fetched>({
      name: "inbound",
      id,
      fetch: () => answer.promise,
    });
    let read: unknown;
    return {
      source,
      live: (primary) => void (read = source.secondaries?.(primary)),
      async late() {
        answer.resolve([fetched]);
        answer = Promise.withResolvers();
        await read;
      },
    };
  },
};

for (const [what, create] of Object.entries(LIVES)) {
  test(`Primaries and starts leave nothing in ${what}`, async () => {
    const clock = new VirtualClock();
    const primaries = new Map<string, KubernetesObject>();
    const empty = recordedContext(clock);
    let triggered = 0;
    const context = {
      ...empty,
      primaries: {
        ...empty.primaries,
        has: (key: string) => primaries.has(key),
        keys: () => primaries.keys(),
        readList: () => Promise.resolve([...primaries.values()]),
      },
      trigger: () => ++triggered > 0,
      retryFailed: () => {},
    } as typeof empty;
    const { source, live, late } = create();
    await source.start(context);
    const found = await growthOf(5, async (number) => {
      const primary = gadget(`a${number}`);
      const { metadata: { name } } = primary;
      const key = { namespace: "default", name };
      primaries.set(`default/${name}`, primary);
      source.onPrimary?.({ type: "added", key, object: primary });
      await live(primary, clock);
      primaries.delete(`default/${name}`);
      source.onPrimary?.({ type: "deleted", key, object: primary });
      await late?.(primary);
      await clock.settle();
    });
    assert.deepEqual(found, []);
    await source.stop();
    assert.equal(clock.pendingTimers, 0);
    const again = await growthOf(5, async () => {
      await source.start(context);
      await source.stop();
    });
    assert.deepEqual(again, []);
    assert.equal(clock.pendingTimers, 0);
  });
}
