import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { compareResourceVersions } from "../../../core/api/resource_version.ts";
import { sleep } from "../../../core/client/retry.ts";
import { patchStatus } from "../../../core/controller/result.ts";
import type { Operator } from "../../../core/operator/operator.ts";
import { Gadget, OperatorCase } from "../../support/operator_case.ts";

const NAMES = ["a", "b", "c"];
const FINALIZER = "gadgets.sample.coracle.dev/finalizer";

/** One thing that happens to the replicas of an operator, or to its objects. */
type Step =
  | { do: "create" | "change" | "mark" | "delete"; name: string }
  | { do: "runs"; fail: boolean; last: number }
  | { do: "advance"; by: number }
  | { do: "restart" | "disturb" | "cut" | "depose"; replica: number };

const name = fc.constantFrom(...NAMES);
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
      ),
      name,
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

/** Two replicas, one of which leads, and what their runs must keep to. */
class PropertyCase {
  readonly #one: OperatorCase;
  readonly #operators: Operator[] = [];
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

  constructor(one: OperatorCase) {
    this.#one = one;
  }

  async start(): Promise<void> {
    for (const identity of ["first", "second"]) {
      const operator = this.#one.operator({
        leaderElection: { name: "lock", identity },
      });
      operator.register(Gadget, {
        reconcile: (gadget, { signal }) =>
          this.#run(identity, gadget, signal, () => {
            const { uid = "", generation = 0 } = gadget.metadata;
            this.#worked.set(uid, generation);
            return patchStatus({ value: gadget.spec.value });
          }),
        cleanup: (gadget, { signal }) =>
          this.#run(identity, gadget, signal, () => {
            this.#worked.delete(gadget.metadata.uid ?? "");
          }),
      }, {
        finalizer: FINALIZER,
        retry: { initial: "500ms", max: "5s", maxAttempts: Infinity },
      });
      this.#operators.push(operator);
      await this.#one.start(operator);
    }
  }

  async take(step: Step): Promise<void> {
    const one = this.#one;
    const { faults } = one;
    switch (step.do) {
      case "create":
        await one.create(step.name).catch(() => {});
        break;
      case "change": {
        const value = String(one.clock.now());
        await one.change(step.name, { value }).catch(() => {});
        break;
      }
      case "mark":
        await one.mark(step.name, { labels: { at: String(one.clock.now()) } })
          .catch(() => {});
        break;
      case "delete":
        await one.remove(step.name).catch(() => {});
        break;
      case "runs":
        this.#fails = step.fail;
        this.#last = step.last;
        break;
      case "advance":
        await one.advance(step.by);
        break;
      case "restart": {
        const operator = this.#operators[step.replica] as Operator;
        await one.done(operator.stop());
        await one.start(operator);
        break;
      }
      case "disturb": {
        const resource = "gadgets";
        const fault = faults.add({
          resource,
          verb: ["patch", "update"],
          effect: { status: 500 },
        });
        await one.advance(3_000);
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
        await one.advance(14_000);
        fault.remove();
      }
    }
  }

  /** From now on all is well: everything must come right. */
  async settle(): Promise<void> {
    const one = this.#one;
    this.#fails = false;
    this.#last = 0;
    one.faults.clear();
    await one.until(async () => {
      const { items } = await one.client.list(Gadget);
      return this.#running.size === 0 &&
        items.every(({ metadata, spec, status }) =>
          metadata.deletionTimestamp === undefined &&
          status?.value === spec.value &&
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
    const one = this.#one;
    for (const name of NAMES) await one.remove(name).catch(() => {});
    await this.settle();
    await one.until(() => this.#operators.every(isEmpty), 300_000);
    assert.equal(this.#worked.size, 0, "everything was cleaned up");
  }

  async #run<R>(
    identity: string,
    { metadata }: Gadget,
    signal: AbortSignal,
    work: () => R,
  ): Promise<R> {
    const { name, resourceVersion = "" } = metadata;
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
      return work();
    } finally {
      this.#running.delete(name);
    }
  }
}

/** Whether an operator remembers nothing, neither an object nor of one. */
function isEmpty(operator: Operator): boolean {
  return operator.health().controllers.every((health) =>
    health.primaries + health.waiting + health.running + health.delayed +
        health.exhausted === 0
  );
}

test("Controller: whatever happens, one run at a time, the finalizer first, the newest state, and nothing left behind", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(step, { maxLength: 25, size: "max" }),
      async (steps) => {
        const one = await OperatorCase.start();
        try {
          const property = new PropertyCase(one);
          await property.start();
          for (const step of steps) {
            await property.take(step);
            property.check();
          }
          await property.settle();
          await property.checkEmpty();
          property.check();
        } finally {
          await one.stop();
        }
      },
    ),
    { numRuns: 20 },
  );
});
