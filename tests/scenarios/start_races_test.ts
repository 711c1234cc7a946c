import assert from "node:assert/strict";
import { Client } from "../../core/client/client.ts";
import type { Transport } from "../../core/client/transport.ts";
import { patchStatus } from "../../core/controller/result.ts";
import { ConfigMap } from "../../core/kinds/mod.ts";
import {
  Gadget,
  type OperatorCase,
  scenario,
} from "../support/operator_case.ts";

/** A client whose requests for some paths wait until all are let go. */
function held(
  one: OperatorCase,
  isHeld: (path: string) => boolean,
): { readonly client: Client; waiting(): number; letGo(): void } {
  const waiting: (() => void)[] = [];
  let isOpen = false;
  const transport: Transport = {
    ...one.transport,
    async send(request) {
      if (!isOpen && isHeld(request.path)) {
        await new Promise<void>((resolve) => waiting.push(resolve));
      }
      return await one.transport.send(request);
    },
    close: () => Promise.resolve(),
  };
  return {
    client: new Client({ transport }, { clock: one.clock }),
    waiting: () => waiting.length,
    letGo() {
      isOpen = true;
      for (const resolve of waiting.splice(0)) resolve();
    },
  };
}

const reportsValue = {
  reconcile: (gadget: Gadget) => patchStatus({ value: gadget.spec.value }),
};

async function reconciled(one: OperatorCase, name: string): Promise<void> {
  await one.create(name);
  await one.until(async () =>
    (await one.gadget(name))?.status?.value === "first"
  );
}

scenario(
  "An operator that was stopped while it started starts anew, whatever is answered late",
  async (one) => {
    const { client, waiting, letGo } = held(
      one,
      (path) => path.startsWith("/apis/sample.coracle.dev/v1"),
    );
    const operator = one.operator({ client });
    operator.register(Gadget, reportsValue);
    const first = operator.start();
    first.catch(() => {});
    await one.until(() => waiting() > 0);
    await one.done(operator.stop());
    await assert.rejects(first, /the operator was stopped/);
    const again = operator.start();
    letGo();
    await one.done(again);
    await one.settle();
    assert.equal(operator.health().ready, true);
    await reconciled(one, "a");
    await one.done(operator.stop());
    assert.equal(operator.health().controllers[0]?.informers.length, 0);
  },
);

scenario(
  "A controller that is taken away while it starts never begins",
  async (one) => {
    const { client, waiting, letGo } = held(
      one,
      (path) => path.startsWith("/api/v1"),
    );
    const operator = one.operator({ client });
    operator.register(Gadget, reportsValue);
    const maps = operator.register(ConfigMap, { reconcile() {} });
    const starting = operator.start();
    await one.until(() => waiting() > 0);
    await one.done(operator.unregister("configmap"));
    letGo();
    await one.done(starting);
    await one.settle();
    assert.equal(maps.health().ready, false);
    assert.equal(maps.health().informers.length, 0);
    await reconciled(one, "a");
  },
);

scenario(
  "A controller that is registered while others start is started, too",
  async (one) => {
    const { client, waiting, letGo } = held(
      one,
      (path) => path.startsWith("/api/v1"),
    );
    const operator = one.operator({ client });
    operator.register(ConfigMap, { reconcile() {} });
    const starting = operator.start();
    await one.until(() => waiting() > 0);
    operator.register(Gadget, reportsValue);
    letGo();
    await one.done(starting);
    assert.equal(operator.health().ready, true);
    await reconciled(one, "a");
  },
);

scenario(
  "Namespaces that change while a controller starts are those that it starts with",
  async (one) => {
    const { client, waiting, letGo } = held(
      one,
      (path) => /elsewhere.gadgets\?.*sendInitialEvents/.test(path),
    );
    const operator = one.operator({ client });
    const gadgets = operator.register(Gadget, reportsValue, {
      namespaces: ["elsewhere"],
    });
    const starting = operator.start();
    await one.until(() => waiting() > 0);
    letGo();
    const changed = gadgets.changeNamespaces(["default"]);
    await one.done(Promise.all([starting, changed]));
    assert.equal(gadgets.health().ready, true);
    await reconciled(one, "a");
  },
);

scenario(
  "A write that is never answered does not keep a leader from its end",
  async (one) => {
    const { client, waiting, letGo } = held(
      one,
      (path) => path.includes("/configmaps"),
    );
    const operator = one.operator({
      client,
      leaderElection: { name: "lock", namespace: "default" },
    });
    operator.register(Gadget, {
      reconcile({ metadata: { name } }, ctx) {
        const metadata = { namespace: "default", name };
        void ctx.client.create(ConfigMap, { metadata }).catch(() => {});
      },
    });
    await one.start(operator);
    await one.create("a");
    await one.until(() => waiting() > 0);
    const before = one.clock.now();
    await one.done(operator.stop());
    assert.ok(one.clock.now() - before < 20_000);
    letGo();
  },
);

for (const way of ["leaderElection", "sharding"] as const) {
  scenario(
    `An operator that waits for a server does so with ${way}, too`,
    async (one) => {
      const fault = one.faults.add({ effect: { status: 500 } });
      const operator = one.operator({
        startErrors: "wait",
        syncTimeout: "5s",
        [way]: { name: "lock", namespace: "default" },
      });
      operator.register(Gadget, reportsValue);
      await one.start(operator);
      fault.remove();
      await reconciled(one, "a");
    },
    { embedded: "it makes the server refuse" },
  );
}

scenario(
  "An operator that had no controller can be started once it has one",
  async (one) => {
    const operator = one.operator();
    await assert.rejects(operator.start(), /it has no controller/);
    operator.register(Gadget, reportsValue);
    await one.start(operator);
    await reconciled(one, "a");
  },
);

scenario(
  "A server that is down does not keep an operator from its end",
  async (one) => {
    let isDown = false;
    const transport: Transport = {
      ...one.transport,
      send: (request) =>
        isDown
          ? Promise.reject(new Error("connection refused"))
          : one.transport.send(request),
      close: () => Promise.resolve(),
    };
    const operator = one.operator({
      client: new Client({ transport }, { clock: one.clock }),
    });
    let runs = 0;
    operator.register(Gadget, {
      reconcile(_gadget, ctx) {
        runs++;
        isDown = true;
        for (let count = 0; count < 20; count++) {
          ctx.events.normal("Told", `the ${count}th`);
        }
      },
    });
    await one.start(operator);
    await one.create("a");
    await one.until(() => runs > 0);
    const before = one.clock.now();
    await one.done(operator.stop());
    assert.ok(one.clock.now() - before < 30_000);
  },
);
