import assert from "node:assert/strict";
import { z } from "zod";
import {
  defineKind,
  type ObjectOf,
  patchStatus,
  perResourcePollingSource,
} from "@coracle/operator";
import {
  externalBulkDependent,
  externalDependent,
  statusState,
  Workflow,
} from "@coracle/operator/workflows";
import { type OperatorFixture, scenario } from "../support/operator_fixture.ts";

const Tenant = defineKind({
  group: "sample.coracle.dev",
  version: "v1",
  kind: "Tenant",
  spec: z.object({ plan: z.string(), seats: z.array(z.string()).default([]) }),
  status: z.object({
    plan: z.string(),
    accountId: z.string(),
    seatIds: z.record(z.string(), z.string()),
  }).partial(),
});
type Tenant = ObjectOf<typeof Tenant>;

const KEY = { namespace: "default", name: "a" };

/** Item of an external system, which assigns the ids. */
interface Item {
  readonly id: string;
  readonly value: string;
}

class System {
  readonly items: Map<string, Item> = new Map();
  created = 0;

  create(value: string): Promise<Item> {
    const item = { id: `id-${++this.created}`, value };
    this.items.set(item.id, item);
    return Promise.resolve(item);
  }

  update(id: string, value: string): Promise<Item> {
    const item = { id, value };
    this.items.set(id, item);
    return Promise.resolve(item);
  }

  delete(id: string): Promise<void> {
    this.items.delete(id);
    return Promise.resolve();
  }

  /** Source of the items in the status of a tenant. */
  source(name: string, ids: (tenant: Tenant) => readonly string[]) {
    return perResourcePollingSource<Tenant, Item>({
      name,
      id: ({ id }) => id,
      fetch: (tenant) => ids(tenant).flatMap((id) => this.items.get(id) ?? []),
    });
  }

  /** Dependent of one account per tenant with its id in the status. */
  account() {
    return externalDependent<Tenant, { value: string }, Item>({
      source: this.source(
        "accounts",
        ({ status }) =>
          status?.accountId === undefined ? [] : [status.accountId],
      ),
      desired: ({ spec }) => ({ value: spec.plan }),
      create: ({ value }) => this.create(value),
      update: ({ value }, { id }) => this.update(id, value),
      delete: ({ id }) => this.delete(id),
      state: { store: statusState(Tenant, "accountId"), id: ({ id }) => id },
    });
  }

  /** Dependent of one item per seat with the ids in the status. */
  seats() {
    return externalBulkDependent<Tenant, { value: string }, Item>({
      source: this.source(
        "seats",
        ({ status }) => Object.values(status?.seatIds ?? {}),
      ),
      desired: ({ spec }) =>
        new Map(spec.seats.map((seat) => [seat, { value: seat }])),
      create: ({ value }) => this.create(value),
      delete: ({ id }) => this.delete(id),
      state: {
        store: statusState(Tenant, "seatIds", { many: true }),
        id: ({ id }) => id,
      },
    });
  }
}

async function tenant(fixture: OperatorFixture): Promise<Tenant | undefined> {
  return await fixture.client.find(Tenant, KEY);
}

/** Creates, changes, restarts and deletes; `make` returns an operator. */
async function play(
  fixture: OperatorFixture,
  system: System,
  make: () => ReturnType<OperatorFixture["operator"]>,
): Promise<void> {
  await fixture.install(Tenant);
  const operator = make();
  await fixture.start(operator);
  await fixture.client.create(Tenant, {
    metadata: KEY,
    spec: { plan: "small" },
  });
  await fixture.until(async () =>
    (await tenant(fixture))?.status?.plan === "small"
  );
  assert.equal((await tenant(fixture))?.status?.accountId, "id-1");
  const change = (spec: object) => fixture.client.patch(Tenant, KEY, { spec });
  await change({ plan: "large" });
  await fixture.until(() => system.items.get("id-1")?.value === "large");
  await fixture.advance(30_000);
  await fixture.done(operator.stop());
  const next = make();
  await fixture.start(next);
  await change({ plan: "huge" });
  await fixture.until(() => system.items.get("id-1")?.value === "huge");
  await fixture.until(async () =>
    (await tenant(fixture))?.status?.plan === "huge"
  );
  assert.equal(system.created, 1, "it was never made twice");
  assert.equal((await tenant(fixture))?.status?.accountId, "id-1");
  await fixture.client.delete(Tenant, KEY);
  await fixture.until(async () => await tenant(fixture) === undefined);
  assert.equal(system.items.size, 0);
}

scenario(
  "An external id is kept in the status by code, beside other fields [ExternalStateInStatusIT]",
  async (fixture) => {
    const system = new System();
    await play(fixture, system, () => {
      const account = system.account();
      const operator = fixture.operator();
      operator.register(Tenant, {
        async reconcile(tenant, ctx) {
          await account.reconcile(tenant, ctx);
          return patchStatus({ plan: tenant.spec.plan });
        },
        async cleanup(tenant, ctx) {
          await account.delete?.(tenant, ctx);
        },
      }, { sources: account.sources });
      return operator;
    });
  },
);

scenario(
  "An external id is kept in the status by a workflow [ExternalStateInStatusWorkflowIT]",
  async (fixture) => {
    const system = new System();
    await play(fixture, system, () => {
      const workflow = new Workflow<Tenant>().add("account", system.account());
      const operator = fixture.operator();
      operator.register(Tenant, {
        reconcile: ({ spec }) => patchStatus({ plan: spec.plan }),
      }, { workflow });
      return operator;
    });
  },
);

scenario(
  "Ids of many external resources are kept in the status and removed one by one",
  async (fixture) => {
    await fixture.install(Tenant);
    const system = new System();
    const make = () => {
      const workflow = new Workflow<Tenant>().add("seats", system.seats());
      const operator = fixture.operator();
      operator.register(Tenant, { reconcile() {} }, { workflow });
      return operator;
    };
    const operator = make();
    await fixture.start(operator);
    const spec = { plan: "small", seats: ["ann", "bob"] };
    await fixture.client.create(Tenant, { metadata: KEY, spec });
    const ids = async () => (await tenant(fixture))?.status?.seatIds;
    await fixture.until(async () =>
      Object.keys(await ids() ?? {}).length === 2
    );
    assert.deepEqual(await ids(), { ann: "id-1", bob: "id-2" });
    await fixture.done(operator.stop());
    await fixture.start(make());
    await fixture.client.patch(Tenant, KEY, {
      spec: { seats: ["bob", "cid"] },
    });
    await fixture.until(async () => (await ids())?.["cid"] === "id-3");
    await fixture.settle();
    assert.deepEqual(await ids(), { bob: "id-2", cid: "id-3" });
    assert.deepEqual([...system.items.keys()], ["id-2", "id-3"]);
    await fixture.client.delete(Tenant, KEY);
    await fixture.until(async () => await tenant(fixture) === undefined);
    assert.equal(system.items.size, 0);
  },
);
