import assert from "node:assert/strict";
import { test } from "node:test";
import { fc } from "../../support/property.ts";
import { keyText } from "../../../core/api/object_key.ts";
import { compareResourceVersions } from "../../../core/api/resource_version.ts";
import { sleep } from "../../../core/clock.ts";
import type { Namespaces } from "../../../core/controller/namespaces.ts";
import { patchStatus } from "../../../core/controller/result.ts";
import { ConfigMap, Namespace } from "../../../core/kinds/mod.ts";
import type { ControllerHandle } from "../../../core/operator/operator.ts";
import type { Operator } from "../../../core/operator/operator.ts";
import { watch } from "../../../sources/watch_source.ts";
import { Gadget, OperatorFixture } from "../../support/operator_fixture.ts";

const KEYS = ["default/a", "default/b", "other/c"];
const FINALIZER = "gadgets.sample.coracle.dev/finalizer";

/** One thing that happens to the replicas of an operator, or to its objects. */
type Step =
  | { do: "create" | "change" | "mark" | "delete"; key: string }
  | { do: "spoil" | "unmake"; key: string }
  | { do: "namespaces"; to: "all" | readonly string[] }
  | { do: "runs"; fail: boolean; last: number }
  | { do: "advance"; by: number }
  | { do: "restart" | "disturb" | "cut" | "depose"; replica: number };

const key = fc.constantFrom(...KEYS);
const replica = fc.nat(1);
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.record({
      do: fc.constantFrom(
        "create" as const,
        "create" as const,
        "change" as const,
        "mark" as const,
        "delete" as const,
        "spoil" as const,
        "unmake" as const,
      ),
      key,
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      do: fc.constant("namespaces" as const),
      to: fc.constantFrom("all" as const, ["default"], ["default", "other"]),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant("runs" as const),
      fail: fc.boolean(),
      last: fc.constantFrom(0, 50, 3_000),
    }),
  },
  {
    weight: 8,
    arbitrary: fc.record({
      do: fc.constant("advance" as const),
      by: fc.constantFrom(1, 100, 1_000, 5_000, 30_000),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constantFrom(
        "restart" as const,
        "disturb" as const,
        "cut" as const,
        "depose" as const,
      ),
      replica,
    }),
  },
);

/** How the replicas part the work among them. */
type Parting = "leaderElection" | "sharding";

/** Two replicas, and what their runs must keep to. */
class PropertyFixture {
  readonly #one: OperatorFixture;
  readonly #parting: Parting;
  readonly #operators: Operator[] = [];
  readonly #handles: ControllerHandle<Gadget>[] = [];
  readonly #moves: Promise<void>[] = [];
  /** Which replica runs an object. */
  readonly #running: Map<string, string> = new Map();
  /** The newest version of each object that a replica was shown. */
  readonly #shown: Map<string, string> = new Map();
  /** The last generation of each uid that was worked on. */
  readonly #worked: Map<string, number> = new Map();
  /** What must not be; thrown in a run it would only be a failure of the run. */
  readonly #fouls: string[] = [];
  #fails = false;
  #last = 0;

  constructor(fixture: OperatorFixture, parting: Parting) {
    this.#one = fixture;
    this.#parting = parting;
  }

  async start(): Promise<void> {
    const metadata = { name: "other" };
    await this.#one.client.create(Namespace, { metadata }).catch(() => {});
    for (const identity of ["first", "second"]) {
      const operator = this.#one.operator({
        [this.#parting]: { name: "lock", identity },
      });
      const handle = operator.register(Gadget, {
        reconcile: (gadget, ctx) =>
          this.#run(identity, gadget, ctx.signal, async () => {
            const { uid = "", generation = 0, name } = gadget.metadata;
            const { value } = gadget.spec;
            await ctx.apply(ConfigMap, { metadata: { name }, data: { value } });
            this.#worked.set(uid, generation);
            return patchStatus({ value });
          }),
        cleanup: (gadget, { signal }) =>
          this.#run(identity, gadget, signal, () => {
            this.#worked.delete(gadget.metadata.uid ?? "");
          }),
      }, {
        finalizer: FINALIZER,
        sources: [watch(ConfigMap)],
        retry: { initial: "500ms", max: "5s", maxAttempts: Infinity },
      });
      this.#operators.push(operator);
      this.#handles.push(handle);
      await this.#one.start(operator);
    }
  }

  async take(step: Step): Promise<void> {
    const fixture = this.#one;
    const { client, clock, faults } = fixture;
    const now = String(clock.now());
    const metadata = keyOf("key" in step ? step.key : "");
    switch (step.do) {
      case "create":
        await client.create(Gadget, { metadata, spec: { value: "first" } })
          .catch(() => {});
        break;
      case "change":
        await client.patch(Gadget, metadata, { spec: { value: now } })
          .catch(() => {});
        break;
      case "mark":
        await client.patch(Gadget, metadata, { metadata: { labels: { now } } })
          .catch(() => {});
        break;
      case "delete":
        await client.delete(Gadget, metadata).catch(() => {});
        break;
      case "spoil":
        await client.patch(ConfigMap, metadata, { data: { value: now } })
          .catch(() => {});
        break;
      case "unmake":
        await client.delete(ConfigMap, metadata).catch(() => {});
        break;
      case "namespaces":
        this.#move(step.to);
        break;
      case "runs":
        this.#fails = step.fail;
        this.#last = step.last;
        break;
      case "advance":
        await fixture.advance(step.by);
        break;
      case "restart": {
        const operator = this.#operators[step.replica] as Operator;
        await fixture.done(operator.stop());
        await fixture.start(operator);
        break;
      }
      case "disturb": {
        const resource = "gadgets";
        const fault = faults.add({
          resource,
          verb: ["patch", "update"],
          effect: { status: 500 },
        });
        await fixture.advance(3_000);
        fault.remove();
        break;
      }
      case "cut":
        faults.cutWatches();
        faults.compact();
        break;
      case "depose": {
        // Whoever leads cannot renew; who is first afterwards leads next.
        const fault = faults.add({
          resource: "leases",
          effect: { status: 500 },
        });
        await fixture.advance(14_000);
        fault.remove();
      }
    }
  }

  /** From now on all is well: everything must come right. */
  async settle(): Promise<void> {
    const fixture = this.#one;
    this.#fails = false;
    this.#last = 0;
    fixture.faults.clear();
    this.#move("all");
    await fixture.until(async () => {
      const { items } = await fixture.client.list(Gadget);
      const maps = await fixture.client.list(ConfigMap);
      const made = new Map(
        maps.items.map((
          { metadata, data },
        ) => [keyText(metadata), data?.["value"]]),
      );
      return this.#running.size === 0 &&
        items.every(({ metadata, spec, status }) =>
          metadata.deletionTimestamp === undefined &&
          status?.value === spec.value &&
          made.get(keyText(metadata)) === spec.value &&
          this.#worked.get(metadata.uid ?? "") === metadata.generation
        );
    }, 300_000);
  }

  /** No rule was broken. */
  check(): void {
    assert.deepEqual(this.#fouls, []);
  }

  /** Nothing is left of objects that are gone. */
  async checkEmpty(): Promise<void> {
    const fixture = this.#one;
    for (const key of KEYS) {
      await fixture.client.delete(Gadget, keyOf(key)).catch(() => {});
    }
    await this.settle();
    await fixture.until(() => this.#operators.every(isEmpty), 300_000);
    assert.equal(this.#worked.size, 0, "everything was cleaned up");
  }

  #move(namespaces: Namespaces): void {
    for (const handle of this.#handles) {
      this.#moves.push(handle.changeNamespaces(namespaces));
      this.#moves.at(-1)?.catch(() => {});
    }
  }

  async #run<R>(
    identity: string,
    { metadata }: Gadget,
    signal: AbortSignal,
    work: () => R | Promise<R>,
  ): Promise<R> {
    const { namespace, resourceVersion = "" } = metadata;
    const name = `${namespace}/${metadata.name}`;
    const view = `${identity} ${name}`;
    const shown = this.#shown.get(view) ?? "0";
    const other = this.#running.get(name);
    if (other !== undefined) {
      this.#fouls.push(`${name} runs in ${identity} and ${other}`);
    }
    if (!metadata.finalizers?.includes(FINALIZER)) {
      this.#fouls.push(`${name} has no finalizer`);
    }
    if (compareResourceVersions(shown, resourceVersion) > 0) {
      this.#fouls.push(`${name} at ${resourceVersion} after ${shown}`);
    }
    this.#shown.set(view, resourceVersion);
    this.#running.set(name, identity);
    try {
      const { clock } = this.#one;
      if (this.#last > 0) await sleep(this.#last, { clock, signal });
      if (this.#fails) throw new Error("As asked");
      return await work();
    } finally {
      this.#running.delete(name);
    }
  }
}

/**
 * Whether an operator remembers nothing, neither an object nor of one. What waits
 * in a replica that stands by does not count: the key of an object that went
 * before its watch was attached may stay, and is dropped once it leads.
 */
function isEmpty(operator: Operator): boolean {
  return operator.health().controllers.every((health) =>
    health.primaries + (health.active ? health.waiting : 0) + health.running +
        health.delayed + health.exhausted === 0
  );
}

function keyOf(key: string): { namespace: string; name: string } {
  const [namespace = "", name = ""] = key.split("/");
  return { namespace, name };
}

for (const parting of ["leaderElection", "sharding"] as const) {
  test(`Controller: whatever happens, one run at a time, the finalizer first, the newest state, and nothing left behind, with ${parting}`, async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(step, { maxLength: 25, size: "max" }),
        async (steps) => {
          const fixture = await OperatorFixture.start();
          try {
            const property = new PropertyFixture(fixture, parting);
            await property.start();
            for (const step of steps) {
              await property.take(step);
              property.check();
            }
            await property.settle();
            await property.checkEmpty();
            property.check();
          } finally {
            await fixture.stop();
          }
        },
      ),
      { numRuns: 20 },
    );
  });
}
