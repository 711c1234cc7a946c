/**
 * Callbacks whose result is used at once, given as async functions that fail: an
 * error names each, the work goes on, and no rejection ends the process.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { Client, noMetrics } from "@coracle/operator/client";
import { ConfigMap } from "@coracle/operator/kinds";
import {
  byFunction,
  perResourcePollingSource,
  watch,
} from "@coracle/operator/sources";
import { jsonEquals } from "../../core/patch/json_value.ts";
import { lostLogLines } from "../../core/logger.ts";
import { ExternalCache } from "../../sources/external_cache.ts";
import { Gadget, scenario } from "../support/operator_fixture.ts";

/** Function that a user made async although it is declared otherwise. */
// deno-lint-ignore require-await -- that it is async is the point
const promised = async (): Promise<never> => {
  throw new Error("As asked");
};
const misused = promised as () => never;

scenario(
  "Async filters, mappers, indexes and sources are named, and nothing is lost",
  async (fixture) => {
    const runs: string[] = [];
    const triggered: string[] = [];
    const operator = fixture.operator();
    const controller = operator.register(Gadget, {
      reconcile({ metadata }, ctx) {
        runs.push(metadata.name);
        ctx.events.normal("Ran", "It ran", {
          key: "ran",
          every: "1h",
          repeats: misused,
        });
      },
    }, {
      filters: { add: misused, generic: misused },
      indexes: { odd: { byFunction: misused } },
      retry: { maxAttempts: 2, delay: misused },
      sources: [
        watch(ConfigMap, { name: "mapped", mapper: byFunction(misused) }),
        watch(ConfigMap, {
          name: "filtered",
          filters: { event: misused },
          mapper: byFunction(({ metadata }) => {
            triggered.push(metadata.name);
            return [];
          }),
        }),
        perResourcePollingSource<Gadget, string>({
          name: "polled",
          interval: "1m",
          accepts: misused,
          fetch: () => "value",
        }),
        {
          name: "own",
          start: () => Promise.resolve(),
          stop: () => Promise.resolve(),
          onPrimary: misused,
          onLead: misused,
          health: misused,
        },
      ],
    });
    await fixture.start(operator);
    await fixture.create("x");
    await fixture.until(() => runs.length > 0);
    await fixture.client.create(ConfigMap, {
      metadata: { namespace: "default", name: "map" },
    });
    await fixture.until(() => triggered.includes("map"));
    await fixture.change("x", { value: "second" });
    await fixture.until(() => runs.length > 1);
    await fixture.advance(1_000);
    const errors = fixture.log.map(({ fields }) => String(fields?.["error"]));
    for (
      const name of [
        "filters.generic",
        "filters.event",
        "byFunction",
        "a function that maps to primaries",
        "accepts()",
        "repeats()",
      ]
    ) {
      assert.ok(
        errors.some((error) =>
          error.includes(
            `the result of ${name}: the function must not be async`,
          )
        ),
        `${name}: ${[...new Set(errors)].join("\n")}`,
      );
    }
    const { status, message = "" } = controller.health().sources.get("own")!;
    assert.equal(status, "unhealthy");
    assert.match(message, /health\(\).*must not be async/);
    assert.ok(
      fixture.log.filter(({ message, fields }) =>
        message === "An event source failed" && fields?.["source"] === "own"
      ).length >= 2,
      "onPrimary and onLead, whose promises are allowed, are logged",
    );
  },
);

scenario(
  "Async loggers and metrics do not stop an operator, and lost lines are counted",
  async (fixture) => {
    const logger = {
      debug: misused,
      info: misused,
      warn: misused,
      error: misused,
      with: () => logger,
    };
    const metric = {
      add: misused,
      set: misused,
      observe: misused,
      remove: misused,
    };
    const before = lostLogLines();
    const operator = fixture.operator({
      logger,
      metrics: {
        ...noMetrics,
        counter: () => metric,
        gauge: () => metric,
        histogram: () => metric,
      },
    });
    let runs = 0;
    operator.register(Gadget, {
      reconcile(_, ctx) {
        runs++;
        ctx.log.info("Seen");
      },
    });
    await fixture.start(operator);
    await fixture.create("x");
    await fixture.until(() => runs > 0);
    await fixture.settle();
    assert.ok(lostLogLines() > before);
  },
);

for (
  const [what, random] of [
    ["throws", () => {
      throw new Error("As asked");
    }],
    ["gives NaN", () => NaN],
    ["gives 1", () => 1],
    ["is async", misused],
  ] as readonly [string, () => number][]
) {
  scenario(
    `An operator whose random ${what} starts, leads, watches on and retries`,
    async (fixture) => {
      const client = new Client({ transport: fixture.transport }, {
        clock: fixture.clock,
        random,
      });
      const operator = fixture.operator({
        client,
        random,
        leaderElection: { name: "lock", namespace: "default" },
      });
      let runs = 0;
      operator.register(Gadget, {
        reconcile() {
          if (++runs < 3) throw new Error("Not yet");
        },
      });
      const fault = fixture.faults.add({
        verb: "watch",
        resource: "gadgets",
        effect: { status: 503 },
        count: 3,
      });
      await fixture.start(operator);
      fault.remove();
      await fixture.create("x");
      await fixture.until(() => runs === 3);
      fixture.faults.endWatches();
      await fixture.change("x", { value: "second" });
      await fixture.until(() => runs === 4);
      const faults = fixture.log.filter(({ message }) =>
        message === "Math.random is used instead of the option random"
      );
      assert.ok(faults.length >= 1 && faults.length <= 3, `${faults.length}`);
    },
    { embedded: "it needs faults of the server" },
  );
}

test("An async filter of an external cache is named, and its rejection caught", () => {
  const cache = (options: ConstructorParameters<typeof ExternalCache>[0]) =>
    new ExternalCache<unknown>({ equals: jsonEquals, ...options });
  for (
    const [options, name] of [
      [{ filters: { add: misused } }, "filters.add"],
      [{ filters: { generic: misused } }, "filters.generic"],
      [{ id: misused }, "id()"],
    ] as const
  ) {
    assert.throws(() => cache(options).put("a", 1), {
      message:
        `Cannot use the result of ${name}: the function must not be async, since its result is used at once`,
    });
  }
  for (
    const [options, name] of [
      [{ filters: { update: misused } }, "filters.update"],
      [{ equals: misused }, "equals()"],
    ] as const
  ) {
    const one = cache(options);
    one.put("a", 1);
    assert.throws(() => one.put("a", 2), new RegExp(`of ${name.slice(0, 6)}`));
  }
  const gone = cache({ filters: { delete: misused } });
  gone.put("a", 1);
  assert.throws(() => gone.delete("a"), /of filters\.delete/);
});
