import assert from "node:assert/strict";
import { Client, patchStatus, type Transport } from "@coracle/operator/core";
import { ConfigMap } from "@coracle/operator/kinds";
import {
  Gadget,
  type OperatorFixture,
  scenario,
} from "../support/operator_fixture.ts";

/** Client whose requests for some paths wait until they are released. */
function held(
  fixture: OperatorFixture,
  isHeld: (path: string) => boolean,
): { readonly client: Client; waiting(): number; letGo(): void } {
  const waiting: (() => void)[] = [];
  let isOpen = false;
  const transport: Transport = {
    ...fixture.transport,
    async send(request) {
      if (!isOpen && isHeld(request.path)) {
        await new Promise<void>((resolve) => waiting.push(resolve));
      }
      return await fixture.transport.send(request);
    },
    close: () => Promise.resolve(),
  };
  return {
    client: new Client({ transport }, { clock: fixture.clock }),
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

async function reconciled(
  fixture: OperatorFixture,
  name: string,
): Promise<void> {
  await fixture.create(name);
  await fixture.until(async () =>
    (await fixture.gadget(name))?.status?.value === "first"
  );
}

scenario(
  "An operator stopped during its start starts again, despite late answers",
  async (fixture) => {
    const { client, waiting, letGo } = held(
      fixture,
      (path) => path.startsWith("/apis/sample.coracle.dev/v1"),
    );
    const operator = fixture.operator({ client });
    operator.register(Gadget, reportsValue);
    const first = operator.start();
    first.catch(() => {});
    await fixture.until(() => waiting() > 0);
    await fixture.done(operator.stop());
    await assert.rejects(first, /the operator: it was stopped/);
    const again = operator.start();
    letGo();
    await fixture.done(again);
    await fixture.settle();
    assert.equal(operator.health().ready, true);
    await reconciled(fixture, "a");
    await fixture.done(operator.stop());
    assert.equal(operator.health().controllers[0]?.informers.length, 0);
  },
);

scenario(
  "A controller removed during its start never runs",
  async (fixture) => {
    const { client, waiting, letGo } = held(
      fixture,
      (path) => path.startsWith("/api/v1"),
    );
    const operator = fixture.operator({ client });
    operator.register(Gadget, reportsValue);
    const maps = operator.register(ConfigMap, { reconcile() {} });
    const starting = operator.start();
    await fixture.until(() => waiting() > 0);
    await fixture.done(operator.unregister("configmap"));
    letGo();
    await fixture.done(starting);
    await fixture.settle();
    assert.equal(maps.health().ready, false);
    assert.equal(maps.health().informers.length, 0);
    await reconciled(fixture, "a");
  },
);

scenario(
  "A controller registered while others start is started, too",
  async (fixture) => {
    const { client, waiting, letGo } = held(
      fixture,
      (path) => path.startsWith("/api/v1"),
    );
    const operator = fixture.operator({ client });
    operator.register(ConfigMap, { reconcile() {} });
    const starting = operator.start();
    await fixture.until(() => waiting() > 0);
    operator.register(Gadget, reportsValue);
    letGo();
    await fixture.done(starting);
    assert.equal(operator.health().ready, true);
    await reconciled(fixture, "a");
  },
);

scenario(
  "Namespaces changed during a start are those of the started controller",
  async (fixture) => {
    const { client, waiting, letGo } = held(
      fixture,
      (path) => /elsewhere.gadgets\?.*sendInitialEvents/.test(path),
    );
    const operator = fixture.operator({ client });
    const gadgets = operator.register(Gadget, reportsValue, {
      namespaces: ["elsewhere"],
    });
    const starting = operator.start();
    await fixture.until(() => waiting() > 0);
    letGo();
    const changed = gadgets.changeNamespaces(["default"]);
    await fixture.done(Promise.all([starting, changed]));
    assert.equal(gadgets.health().ready, true);
    await reconciled(fixture, "a");
  },
);

scenario(
  "A write without an answer does not keep a leader from stopping",
  async (fixture) => {
    const { client, waiting, letGo } = held(
      fixture,
      (path) => path.includes("/configmaps"),
    );
    const operator = fixture.operator({
      client,
      leaderElection: { name: "lock", namespace: "default" },
    });
    operator.register(Gadget, {
      reconcile({ metadata: { name } }, ctx) {
        const metadata = { namespace: "default", name };
        void ctx.client.create(ConfigMap, { metadata }).catch(() => {});
      },
    });
    await fixture.start(operator);
    await fixture.create("a");
    await fixture.until(() => waiting() > 0);
    const before = fixture.clock.now();
    await fixture.done(operator.stop());
    assert.ok(fixture.clock.now() - before < 20_000);
    letGo();
  },
);

for (const way of ["leaderElection", "sharding"] as const) {
  scenario(
    `An operator waits for a server with ${way}, too`,
    async (fixture) => {
      const fault = fixture.faults.add({ effect: { status: 500 } });
      const operator = fixture.operator({
        startErrors: "wait",
        syncTimeout: "5s",
        [way]: { name: "lock", namespace: "default" },
      });
      operator.register(Gadget, reportsValue);
      await fixture.start(operator);
      fault.remove();
      await reconciled(fixture, "a");
    },
    { embedded: "it makes the server refuse" },
  );
}

scenario(
  "An operator without controllers can be started once it has one",
  async (fixture) => {
    const operator = fixture.operator();
    await assert.rejects(operator.start(), /it has no controller/);
    operator.register(Gadget, reportsValue);
    await fixture.start(operator);
    await reconciled(fixture, "a");
  },
);

scenario(
  "A server that is down does not keep an operator from stopping",
  async (fixture) => {
    let isDown = false;
    const transport: Transport = {
      ...fixture.transport,
      send: (request) =>
        isDown
          ? Promise.reject(new Error("connection refused"))
          : fixture.transport.send(request),
      close: () => Promise.resolve(),
    };
    const operator = fixture.operator({
      client: new Client({ transport }, { clock: fixture.clock }),
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
    await fixture.start(operator);
    await fixture.create("a");
    await fixture.until(() => runs > 0);
    const before = fixture.clock.now();
    await fixture.done(operator.stop());
    assert.ok(fixture.clock.now() - before < 30_000);
  },
);
