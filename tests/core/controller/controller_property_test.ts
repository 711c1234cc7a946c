import assert from "node:assert/strict";
import { test } from "node:test";
import {
  type ControllerHandle,
  keyText,
  type Namespaces,
  type Operator,
  patchStatus,
} from "@coracle/operator/core";
import { ConfigMap, Namespace } from "@coracle/operator/kinds";
import { watch } from "@coracle/operator/sources";
import { fc } from "../../support/property.ts";
import { compareResourceVersions } from "../../../core/api/resource_version.ts";
import { sleep } from "../../../core/clock.ts";
import { Gadget, OperatorFixture } from "../../support/operator_fixture.ts";

const KEYS = ["default/a", "default/b", "other/c"];
const FINALIZER = "gadgets.sample.coracle.dev/finalizer";

/** Command of the property test: a change of the replicas or of the objects. */
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

/** Division of work between the replicas. */
type Parting = "leaderElection" | "sharding";

/** Two replicas, and the rules that their runs must respect. */
class PropertyFixture {
  readonly #fixture: OperatorFixture;
  readonly #parting: Parting;
  readonly #operators: Operator[] = [];
  readonly #handles: ControllerHandle<Gadget>[] = [];
  readonly #moves: Promise<void>[] = [];
  /** Replica that runs each object. */
  readonly #running: Map<string, string> = new Map();
  /** Newest resourceVersion of each object that each replica has run with. */
  readonly #shown: Map<string, string> = new Map();
  /** Last reconciled generation by UID. */
  readonly #worked: Map<string, number> = new Map();
  /** Violations of the rules; an error in a run would only fail the run. */
  readonly #violations: string[] = [];
  #fails = false;
  #last = 0;

  constructor(fixture: OperatorFixture, parting: Parting) {
    this.#fixture = fixture;
    this.#parting = parting;
  }

  async start(): Promise<void> {
    const metadata = { name: "other" };
    await this.#fixture.client.create(Namespace, { metadata }).catch(() => {});
    for (const identity of ["first", "second"]) {
      const operator = this.#fixture.operator({
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
      await this.#fixture.start(operator);
    }
  }

  async take(step: Step): Promise<void> {
    const fixture = this.#fixture;
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
        // The leader cannot renew its lease; the first replica after it leads.
        const fault = faults.add({
          resource: "leases",
          effect: { status: 500 },
        });
        await fixture.advance(14_000);
        fault.remove();
      }
    }
  }

  /** Ends all disturbances; every object must then be reconciled. */
  async settle(): Promise<void> {
    const fixture = this.#fixture;
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

  /** Asserts that no rule was violated. */
  check(): void {
    assert.deepEqual(this.#violations, []);
  }

  /** Deletes all objects and asserts that no state of them is left. */
  async checkEmpty(): Promise<void> {
    const fixture = this.#fixture;
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
      this.#violations.push(`${name} runs in ${identity} and ${other}`);
    }
    if (!metadata.finalizers?.includes(FINALIZER)) {
      this.#violations.push(`${name} has no finalizer`);
    }
    if (compareResourceVersions(shown, resourceVersion) > 0) {
      this.#violations.push(`${name} at ${resourceVersion} after ${shown}`);
    }
    this.#shown.set(view, resourceVersion);
    this.#running.set(name, identity);
    try {
      const { clock } = this.#fixture;
      if (this.#last > 0) await sleep(this.#last, { clock, signal });
      if (this.#fails) throw new Error("As asked");
      return await work();
    } finally {
      this.#running.delete(name);
    }
  }
}

/**
 * Whether an operator has no objects and no state. Waiting keys of a replica that
 * does not lead do not count: the key of an object that was deleted before the
 * watch was attached may stay, and is dropped when the replica leads.
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
  test(`Controller keeps its promises in any history, with ${parting}`, async () => {
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
