/**
 * Whatever comes and goes in a running operator, nothing of it stays in its memory.
 *
 * @module
 */
import assert from "node:assert/strict";
import type {
  EventSource,
  KubernetesObject,
  Operator,
} from "@coracle/operator/core";
import { noUpdate, patchStatus } from "../../../core/controller/result.ts";
import { watch } from "../../../core/controller/watch/watch_source.ts";
import { byLabel } from "../../../core/controller/watch/mappers.ts";
import { ConfigMap, Namespace } from "../../../core/kinds/mod.ts";
import { growthOf } from "../../support/growth.ts";
import {
  Gadget,
  type OperatorFixture,
  scenario,
} from "../../support/operator_fixture.ts";

const ROUNDS = 5;
const EMBEDDED = { embedded: "it counts what its own process keeps" };

async function assertNothingGrows(
  round: (number: number) => Promise<void>,
): Promise<void> {
  assert.deepEqual(await growthOf(ROUNDS, round), []);
}

const gone = (fixture: OperatorFixture, name: string) =>
  fixture.until(async () => await fixture.gadget(name) === undefined);

scenario(
  "Primaries that come and go leave nothing, however their runs end",
  async (fixture) => {
    const counts = new Map<string, number>();
    const operator = fixture.operator();
    operator.register(Gadget, {
      async reconcile(gadget, ctx) {
        const { name } = gadget.metadata;
        const runs = (counts.get(name) ?? 0) + 1;
        counts.set(name, runs);
        await ctx.apply(ConfigMap, {
          metadata: { name },
          data: { value: gadget.spec.value },
        });
        if (name.startsWith("failing")) throw new Error("It fails");
        if (name.startsWith("again") && runs < 3) {
          return noUpdate().rescheduleAfter("1s");
        }
        return patchStatus({ value: gadget.spec.value });
      },
      cleanup(gadget) {
        if (gadget.metadata.name.startsWith("stuck") && counts.size > 0) {
          throw new Error("It cannot be cleaned up so far");
        }
      },
    }, {
      owns: [ConfigMap],
      watches: [watch(ConfigMap, {
        name: "others",
        mapper: byLabel("gadget"),
        bounded: true,
      })],
      rateLimit: { limit: 5, period: "1s" },
    });
    const follower = fixture.operator();
    follower.register(Gadget, { reconcile() {} }, {
      name: "follower",
      allEvents: true,
      watches: [watch(ConfigMap, {
        references: ({ metadata }) => [metadata],
      })],
    });
    await fixture.start(operator);
    await fixture.start(follower);
    await assertNothingGrows(async (number) => {
      const names = ["plain", "again", "failing"].map((name) =>
        `${name}-${number}`
      );
      for (const name of names) await fixture.create(name);
      const [plain = ""] = names;
      await fixture.client.create(ConfigMap, {
        metadata: {
          namespace: "default",
          name: `other-${number}`,
          labels: { gadget: plain },
        },
      });
      await fixture.until(() => names.every((name) => counts.has(name)));
      await fixture.change(plain, { value: "second" });
      await fixture.until(async () =>
        (await fixture.gadget(plain))?.status?.value === "second"
      );
      await fixture.advance(5_000);
      for (const name of names) {
        await fixture.remove(name);
        await gone(fixture, name);
      }
      await fixture.client.delete(ConfigMap, {
        namespace: "default",
        name: `other-${number}`,
      });
      await fixture.advance(60_000);
      counts.clear();
    });
  },
  EMBEDDED,
);

scenario(
  "Namespaces that a controller leaves and visits again leave nothing",
  async (fixture) => {
    const namespaces = ["one", "two"];
    for (const name of namespaces) {
      await fixture.client.create(Namespace, { metadata: { name } });
    }
    let runs = 0;
    const operator = fixture.operator();
    const controller = operator.register(Gadget, {
      reconcile: () => void runs++,
    }, {
      namespaces: ["one"],
      watches: [
        watch(ConfigMap, { bounded: true, mapper: byLabel("gadget") }),
        watch(ConfigMap, {
          name: "referred",
          references: ({ metadata }) => [metadata],
        }),
      ],
    });
    await fixture.start(operator);
    await assertNothingGrows(async (number) => {
      for (const namespace of namespaces) {
        const metadata = {
          namespace,
          name: `a-${number}`,
          labels: { gadget: `a-${number}` },
        };
        await fixture.client.create(Gadget, {
          metadata,
          spec: { value: "first" },
        });
        await fixture.client.create(ConfigMap, { metadata });
      }
      for (const next of [["two"], ["one", "two"], ["one"]]) {
        const before = runs;
        await fixture.done(controller.changeNamespaces(next));
        if (next.length > 1) await fixture.until(() => runs > before);
        await fixture.advance(1_000);
      }
      // Its namespace is not watched any more.
      for (const namespace of namespaces) {
        const key = { namespace, name: `a-${number}` };
        await fixture.client.delete(Gadget, key);
        await fixture.client.delete(ConfigMap, key);
      }
      await fixture.advance(60_000);
    });
  },
  EMBEDDED,
);

/** A source that triggers a primary at its start, late, and after its end. */
function source(): EventSource<Gadget> & { late(): void } {
  let trigger = (_key: string) => {};
  return {
    name: "added",
    start(context) {
      trigger = context.trigger;
      trigger("default/steady");
      return Promise.resolve();
    },
    stop: () => Promise.resolve(),
    onPrimary() {},
    late: () => trigger("default/steady"),
  };
}

scenario(
  "Sources and controllers that come and go leave nothing",
  async (fixture) => {
    let runs = 0;
    const operator: Operator = fixture.operator();
    const steady = operator.register(Gadget, {
      reconcile: () => void runs++,
    });
    await fixture.create("steady");
    await fixture.start(operator);
    // Its history is full: it keeps ten runs.
    for (let run = 1; run <= 10; run++) {
      steady.trigger("default/steady");
      await fixture.until(() => runs >= run);
      await fixture.settle();
    }
    await assertNothingGrows(async () => {
      const added = source();
      const before = runs;
      await fixture.done(steady.addSource(added));
      await fixture.until(() => runs > before);
      await fixture.done(steady.removeSource("added"));
      added.late();
      const watched = watch<Gadget, ConfigMap>(ConfigMap, { name: "watched" });
      await fixture.done(steady.addSource(watched));
      await fixture.done(steady.removeSource("watched"));
      const failing: EventSource<KubernetesObject> = {
        name: "failing",
        start: () => Promise.reject(new Error("It cannot start")),
        stop: () => Promise.resolve(),
      };
      await assert.rejects(
        fixture.done(steady.addSource(failing as never)),
        /cannot start/,
      );
      await fixture.advance(1_000);
    });
    await assertNothingGrows(async () => {
      await fixture.done(operator.stop());
      await fixture.done(operator.start());
      await fixture.advance(1_000);
    });
  },
  EMBEDDED,
);
