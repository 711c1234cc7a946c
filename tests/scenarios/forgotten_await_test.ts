import assert from "node:assert/strict";
import { test } from "node:test";
import { VirtualClock, withTestCluster } from "@coracle/dev";
import { type Context, Operator, patchStatus } from "@coracle/operator/core";
import { ConfigMap } from "@coracle/operator/kinds";
import { sleep } from "../../core/clock.ts";
import { Gadget } from "../support/operator_fixture.ts";
import { Program, RUNTIME, runtimeCommand } from "../support/program.ts";

const GADGET = {
  apiVersion: "sample.coracle.dev/v1",
  kind: "Gadget",
  metadata: { name: "a" },
  spec: { value: "first" },
};

const HINT = 'write \\"await\\" before';

type Write = (ctx: Context<Gadget>, name: string) => unknown;

const save: Write = (ctx, name) =>
  ctx.apply(ConfigMap, { metadata: { name }, data: { saved: "yes" } });

/** Runs a reconciler whose first write the server refuses, until it is `Done`. */
async function firstWriteRefused(
  write: Write,
  { until }: { readonly until?: string } = {},
): Promise<{ readonly runs: number; readonly log: string }> {
  let runs = 0;
  let log = "";
  await withTestCluster({
    cluster: "embedded",
    kinds: [Gadget],
    clock: new VirtualClock(),
    operator(options) {
      const operator = new Operator(options);
      operator.register(Gadget, {
        async reconcile({ metadata: { name } }, ctx) {
          await write(ctx, runs++ === 0 ? "Refused" : name);
          return patchStatus({ value: "Done" });
        },
      }, { owns: [ConfigMap] });
      return operator;
    },
  }, async (cluster) => {
    await cluster.apply(GADGET);
    const key = { namespace: cluster.namespace, name: "a" };
    await cluster.until(async () =>
      (await cluster.client.get(Gadget, key)).status?.value === "Done"
    );
    if (until) await cluster.until(() => cluster.log.includes(until));
    log = cluster.log;
  })();
  return { runs, log };
}

const FORGOTTEN: Readonly<Record<string, Write>> = {
  "that nobody awaits": (ctx, name) => {
    save(ctx, name);
  },
  "with then only": (ctx, name) => {
    (save(ctx, name) as Promise<object>).then(() => {});
  },
  "with finally only": (ctx, name) => {
    (save(ctx, name) as Promise<object>).finally(() => {});
  },
  "whose error comes long before the end": async (ctx, name) => {
    save(ctx, name);
    await sleep(60_000, ctx);
  },
  "in a run that throws": (ctx, name) => {
    save(ctx, name);
    if (name === "Refused") throw new Error("Cannot go on");
  },
};

for (const [how, write] of Object.entries(FORGOTTEN)) {
  test(`a write ${how} fails its run, which is repeated`, async () => {
    const { runs, log } = await firstWriteRefused(write);
    assert.equal(runs, 2);
    assert.ok(log.includes(`${HINT} ctx.apply(ConfigMap)`), log);
  });
}

const HANDLED: Readonly<Record<string, [runs: number, write: Write]>> = {
  "is awaited later": [2, async (ctx, name) => {
    const saved = save(ctx, name);
    await sleep(60_000, ctx);
    await saved;
  }],
  "is awaited with others": [2, async (ctx, name) => {
    await Promise.all([save(ctx, "b"), save(ctx, name)]);
  }],
  "is caught": [1, (ctx, name) => {
    (save(ctx, name) as Promise<object>).catch(() => {});
  }],
};

for (const [how, [expected, write]] of Object.entries(HANDLED)) {
  test(`a failing write that ${how} is reported no other way`, async () => {
    const { runs, log } = await firstWriteRefused(write);
    assert.equal(runs, expected);
    assert.ok(!log.includes(HINT), log);
  });
}

test("a write that fails after its run is reported by the log", async () => {
  const { runs, log } = await firstWriteRefused((ctx, name) => {
    ctx.clock.setTimer(() => save(ctx, name), 1_000);
  }, { until: HINT });
  assert.equal(runs, 1);
  assert.ok(log.includes(`${HINT} ctx.apply(ConfigMap)`), log);
});

test("a finalizer stays if a write of cleanup that nobody awaits fails", async () => {
  let runs = 0;
  await withTestCluster({
    cluster: "embedded",
    kinds: [Gadget],
    clock: new VirtualClock(),
    operator(options) {
      const operator = new Operator(options);
      operator.register(Gadget, {
        reconcile() {},
        cleanup(_, ctx) {
          const name = runs++ === 0 ? "Refused" : "a";
          ctx.patch(ConfigMap, name, { data: { left: "yes" } });
        },
      });
      return operator;
    },
  }, async ({ apply, client, namespace, until, log }) => {
    const key = { namespace, name: "a" };
    await client.create(ConfigMap, { metadata: key });
    await apply(GADGET);
    await until(async () =>
      (await client.get(Gadget, key)).metadata.finalizers?.length
    );
    await client.delete(Gadget, key);
    await until(async () => await client.find(Gadget, key) === undefined);
    assert.equal(runs, 2);
    const { data } = await client.get(ConfigMap, key);
    assert.deepEqual(data, { left: "yes" }, log);
  })();
});

/** Starts an operator that forgets an `await`, in a process of its own. */
function start(what: string): Program {
  const file = "tests/scenarios/forgetful_operator.ts";
  return new Program([...runtimeCommand(), file, what]);
}

test("an operator survives failed requests in functions not awaited", async () => {
  const program = start("requests");
  try {
    assert.equal(await program.ended(), 0, program.describe());
    const { output } = program;
    assert.match(
      output,
      /"level":"error".* before ctx\.apply\(ConfigMap\) and/,
    );
    assert.match(output, /nobody waits for.*Cannot create ConfigMap default/);
    assert.match(output, /still reconciles/);
  } finally {
    await program.kill();
  }
});

test("an error of other code that nobody awaits does what it always does", async () => {
  const program = start("own");
  try {
    await program.says(/Cannot do my own work/);
    // Bun prints it and goes on.
    if (RUNTIME !== "bun") assert.equal(await program.ended(), 1);
  } finally {
    await program.kill();
  }
});
