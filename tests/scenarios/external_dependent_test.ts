import assert from "node:assert/strict";
import { perResourcePollingSource, pollingSource } from "@coracle/operator";
import { ConfigMap } from "@coracle/operator/kinds";
import {
  bulkDependent,
  configMapState,
  externalDependent,
  readOnlyBulkDependent,
  Workflow,
} from "@coracle/operator/workflows";
import {
  Gadget,
  type OperatorFixture,
  scenario,
} from "../support/operator_fixture.ts";

/** An account in a system that knows nothing of Kubernetes. */
interface Account {
  readonly id: string;
  readonly owner: string;
  readonly value: string;
}

/** The outside system. */
class Accounts {
  readonly all: Map<string, Account> = new Map();
  created = 0;

  create(owner: string, value: string): Account {
    const account = { id: `id-${++this.created}`, owner, value };
    this.all.set(account.id, account);
    return account;
  }
}

function start(fixture: OperatorFixture, workflow: Workflow<Gadget>) {
  const operator = fixture.operator();
  const controller = operator.register(Gadget, { reconcile() {} }, {
    workflow,
  });
  return { operator, controller };
}

scenario(
  "An external resource with its id in a ConfigMap survives a restart [ExternalStateDependentIT] [ExternalStateIT]",
  async (fixture) => {
    const accounts = new Accounts();
    const make = () => {
      const store = configMapState<Gadget>("-account");
      const source = perResourcePollingSource<Gadget, Account>({
        name: "accounts",
        id: ({ id }) => id,
        fetch: async (gadget) => {
          const key = {
            namespace: "default",
            name: `${gadget.metadata.name}-account`,
          };
          const id = (await fixture.client.find(ConfigMap, key))?.data?.["id"];
          const account = id === undefined ? undefined : accounts.all.get(id);
          return account === undefined ? [] : [account];
        },
      });
      return new Workflow<Gadget>().add(
        "account",
        externalDependent<Gadget, { value: string }, Account>({
          source,
          desired: ({ spec }) => ({ value: spec.value }),
          create: ({ value }, gadget) =>
            Promise.resolve(accounts.create(gadget.metadata.name, value)),
          update: ({ value }, actual, gadget, ctx) => {
            assert.equal(gadget.metadata.name, ctx.key.name);
            const account = { ...actual, value };
            accounts.all.set(actual.id, account);
            return Promise.resolve(account);
          },
          delete: ({ id }) => {
            accounts.all.delete(id);
            return Promise.resolve();
          },
          state: { store, id: ({ id }) => id },
        }),
      );
    };
    const { operator } = start(fixture, make());
    await fixture.start(operator);
    await fixture.create("a");
    await fixture.until(() => accounts.all.size === 1);
    await fixture.advance(30_000);
    assert.equal(accounts.created, 1);
    await fixture.done(operator.stop());
    const next = start(fixture, make());
    await fixture.start(next.operator);
    await fixture.change("a", { value: "second" });
    await fixture.until(() => accounts.all.get("id-1")?.value === "second");
    assert.equal(accounts.created, 1);
    await fixture.remove("a");
    await fixture.until(() => accounts.all.size === 0);
    await fixture.until(async () => (await fixture.gadget("a")) === undefined);
  },
);

scenario(
  "Two external dependents of one type are kept side by side [MultipleManagedExternalDependentSameTypeIT]",
  async (fixture) => {
    const accounts = new Accounts();
    const source = pollingSource<Gadget, Account>({
      name: "accounts",
      id: ({ id }) => id,
      fetch: () => {
        const found = new Map<string, Account[]>();
        for (const account of accounts.all.values()) {
          const key = `default/${account.owner}`;
          found.set(key, [...found.get(key) ?? [], account]);
        }
        return found;
      },
    });
    const account = (suffix: string) =>
      externalDependent<Gadget, { value: string }, Account>({
        source,
        desired: ({ spec }) => ({ value: `${spec.value}${suffix}` }),
        select: ({ value }) => value.endsWith(suffix),
        create: ({ value }, gadget) =>
          Promise.resolve(accounts.create(gadget.metadata.name, value)),
        update: ({ value }, actual) => {
          const next = { ...actual, value };
          accounts.all.set(actual.id, next);
          return Promise.resolve(next);
        },
        delete: ({ id }) => {
          accounts.all.delete(id);
          return Promise.resolve();
        },
      });
    const workflow = new Workflow<Gadget>()
      .add("first", account("-1"))
      .add("second", account("-2"));
    const { operator } = start(fixture, workflow);
    await fixture.start(operator);
    await fixture.create("a");
    const values = () => [...accounts.all.values()].map(({ value }) => value);
    await fixture.until(() => accounts.all.size === 2);
    assert.deepEqual(values().toSorted(), ["first-1", "first-2"]);
    await fixture.change("a", { value: "new" });
    await fixture.until(() => values().toSorted().join() === "new-1,new-2");
    await fixture.remove("a");
    await fixture.until(() => accounts.all.size === 0);
  },
);

for (
  const [name, sourceOf] of [
    [
      "pollingSource",
      (accounts: Accounts, fetched: () => void) =>
        pollingSource<Gadget, Account>({
          name: "accounts",
          id: ({ id }) => id,
          interval: "1h",
          fetch: () => {
            fetched();
            return new Map([["default/a", [...accounts.all.values()]]]);
          },
        }),
    ],
    [
      "perResourcePollingSource",
      (accounts: Accounts, fetched: () => void) =>
        perResourcePollingSource<Gadget, Account>({
          name: "accounts",
          id: ({ id }) => id,
          interval: "1h",
          fetch: () => {
            fetched();
            return [...accounts.all.values()];
          },
        }),
    ],
  ] as const
) {
  scenario(
    `A resource whose creation was not answered is not created twice (${name})`,
    async (fixture) => {
      const accounts = new Accounts();
      let isDown = false;
      let fetches = 0;
      const source = sourceOf(accounts, () => {
        fetches++;
        if (isDown) throw new Error("no route");
      });
      const workflow = new Workflow<Gadget>().add(
        "account",
        externalDependent<Gadget, { value: string }, Account>({
          source,
          desired: ({ spec }) => ({ value: spec.value }),
          create: ({ value }, gadget) => {
            accounts.create(gadget.metadata.name, value);
            isDown = true;
            fetches = 0;
            return Promise.reject(new Error("connection reset"));
          },
          update: ({ value }, actual) => {
            const next = { ...actual, value };
            accounts.all.set(actual.id, next);
            return Promise.resolve(next);
          },
        }),
      );
      const { operator } = start(fixture, workflow);
      await fixture.start(operator);
      await fixture.create("a");
      // While the system does not answer, no run decides.
      await fixture.until(() => fetches > 1);
      assert.equal(accounts.created, 1);
      isDown = false;
      await fixture.change("a", { value: "second" });
      await fixture.until(() => accounts.all.get("id-1")?.value === "second");
      assert.equal(accounts.created, 1);
    },
  );
}

function bulk(relation: "owner" | "annotations") {
  return new Workflow<Gadget>().add(
    "maps",
    bulkDependent<Gadget, ConfigMap>(ConfigMap, {
      relation,
      desired: ({ metadata: { name }, spec }) =>
        Array.from({ length: spec.numberOfExecutions ?? 0 }, (_, index) => ({
          metadata: { name: `${name}-${index}` },
          data: { value: spec.value },
        })),
    }),
    { readyWhen: ({ resource }) => (resource?.size ?? 0) > 0 },
  );
}

for (const relation of ["owner", "annotations"] as const) {
  scenario(
    `The number of ConfigMaps follows the spec, related by ${relation} [ManagedBulkDependentIT] [BulkDependentDeleterIT] [BulkDependentWithConditionIT]`,
    async (fixture) => {
      const names = async () =>
        (await fixture.client.list(ConfigMap, { namespace: "default" })).items
          .map(({ metadata }) => metadata.name)
          .filter((name) => name.startsWith("a-"));
      const { operator } = start(fixture, bulk(relation));
      await fixture.start(operator);
      await fixture.create("a", { numberOfExecutions: 3 });
      await fixture.until(async () => (await names()).length === 3);
      await fixture.change("a", { numberOfExecutions: 1 });
      await fixture.until(async () => (await names()).length === 1);
      await fixture.change("a", { numberOfExecutions: 5, value: "changed" });
      await fixture.until(async () => (await names()).length === 5);
      await fixture.until(async () => {
        const key = { namespace: "default", name: "a-0" };
        return (await fixture.client.get(ConfigMap, key)).data?.["value"] ===
          "changed";
      });
      await fixture.remove("a");
      await fixture.until(async () => (await names()).length === 0);
      await fixture.until(async () =>
        (await fixture.gadget("a")) === undefined
      );
    },
  );
}

scenario(
  "Foreign secondaries are counted and never written [ReadOnlyBulkDependentIT]",
  async (fixture) => {
    const counts: (number | undefined)[] = [];
    const workflow = new Workflow<Gadget>()
      .add("maps", readOnlyBulkDependent<Gadget, ConfigMap>(ConfigMap));
    const operator = fixture.operator();
    operator.register(Gadget, {
      reconcile(_gadget, ctx) {
        counts.push(workflow.resultOf(ctx).resource("maps")?.size);
      },
    }, { workflow });
    await fixture.start(operator);
    const gadget = await fixture.create("a");
    for (const name of ["x", "y"]) {
      await fixture.client.create(ConfigMap, {
        metadata: {
          namespace: "default",
          name,
          ownerReferences: [{
            apiVersion: "sample.coracle.dev/v1",
            kind: "Gadget",
            name: "a",
            uid: gadget.metadata.uid!,
          }],
        },
      });
    }
    await fixture.until(() => counts.at(-1) === 2);
  },
);
