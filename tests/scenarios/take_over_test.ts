import assert from "node:assert/strict";
import {
  kubernetesDependent,
  setStatus,
  watch,
  Workflow,
} from "@coracle/operator";
import { ConfigMap } from "@coracle/operator/kinds";
import { startGadgets } from "../support/gadget_runs.ts";
import { findMap } from "../support/gadget_dependents.ts";
import {
  Gadget,
  type OperatorFixture,
  scenario,
} from "../support/operator_fixture.ts";

/** Field manager of the operator that was there before. */
const OLD = "old-operator";
const TOOK_OVER = "Took over the fields of other managers";

/** Makes a gadget, and the ConfigMap that the old operator has made for it. */
async function inherit(fixture: OperatorFixture): Promise<void> {
  await fixture.create("a");
  await fixture.client.create(ConfigMap, {
    metadata: { namespace: "default", name: "a", labels: { old: "true" } },
    data: { value: "old", gone: "old" },
  }, { fieldManager: OLD });
  // Another entry: what it has changed later.
  await fixture.client.apply(ConfigMap, {
    metadata: { namespace: "default", name: "a" },
    data: { later: "old" },
  }, { fieldManager: OLD });
  await fixture.client.patch(ConfigMap, { namespace: "default", name: "a" }, {
    data: { hand: "made" },
  }, { fieldManager: "kubectl-edit" });
}

/** Who has written which part of the ConfigMap. */
async function managers(fixture: OperatorFixture): Promise<string[]> {
  const { metadata } = (await findMap(fixture, "a"))!;
  return (metadata.managedFields ?? [])
    .map(({ manager, operation }) => `${manager} ${operation}`).sort();
}

function logged(fixture: OperatorFixture): unknown[] {
  return fixture.log.filter(({ message }) => message === TOOK_OVER)
    .map(({ level, fields }) => [level, fields["target"], fields["managers"]]);
}

const desired = () => ({ metadata: { name: "a" }, data: { value: "new" } });

scenario(
  "Dependents take over the fields of named managers once, and no others",
  async (fixture) => {
    await inherit(fixture);
    const start = () =>
      startGadgets(fixture, () => {}, {
        workflow: new Workflow().add(
          "map",
          kubernetesDependent(ConfigMap, { takeOver: [OLD], desired }),
        ),
      });
    const { operator, runs } = await start();
    await fixture.until(() => runs.length > 0);
    const map = await findMap(fixture, "a");
    assert.deepEqual(map?.data, { value: "new", hand: "made" });
    assert.equal(map?.metadata.labels, undefined);
    assert.equal(map?.metadata.ownerReferences?.[0]?.name, "a");
    assert.deepEqual(await managers(fixture), [
      "gadget Apply",
      "kubectl-edit Update",
    ]);
    assert.deepEqual(logged(fixture), [["info", "v1 ConfigMap default/a", [
      OLD,
    ]]]);
    await fixture.done(operator.stop());
    const before = fixture.requests.length;
    const again = await start();
    await fixture.until(() => again.runs.length > 0);
    await fixture.advance(1_000);
    assert.deepEqual(
      fixture.requests.slice(before).map(({ method }) => method)
        .filter((method) => method !== "GET"),
      [],
    );
    assert.equal(logged(fixture).length, 1);
  },
);

for (
  const [place, options] of [
    ["its controller", { takeOver: [OLD, "kubectl-edit"], owns: [ConfigMap] }],
    ["a watch", {
      owns: [watch(ConfigMap, { takeOver: [OLD, "kubectl-edit"] })],
    }],
    ["its controller, without a watch", { takeOver: [OLD, "kubectl-edit"] }],
  ] as const
) {
  scenario(
    `ctx.apply removes what managers to take over of ${place} have left`,
    async (fixture) => {
      await inherit(fixture);
      await startGadgets(
        fixture,
        async (_gadget, ctx) => {
          await ctx.apply(ConfigMap, desired(), { owned: true });
        },
        options,
      );
      await fixture.until(async () =>
        (await findMap(fixture, "a"))?.data?.["value"] === "new"
      );
      assert.deepEqual((await findMap(fixture, "a"))?.data, { value: "new" });
      assert.deepEqual(await managers(fixture), ["gadget Apply"]);
      assert.equal(logged(fixture).length, 1);
    },
  );
}

scenario(
  "setStatus takes over a status, and the finalizer's write no spec",
  async (fixture) => {
    const key = { namespace: "default", name: "a" };
    await fixture.create("a");
    await fixture.client.patch(Gadget, key, {
      spec: { numberOfExecutions: 3 },
    }, { fieldManager: OLD });
    await fixture.client.status.patch(Gadget, key, {
      status: { value: "old", messages: ["old"] },
    }, { fieldManager: OLD });
    await startGadgets(fixture, () => setStatus({ value: "new" }), {
      takeOver: [OLD],
      cleanup() {},
    });
    await fixture.until(async () =>
      (await fixture.gadget("a"))?.status?.value === "new"
    );
    const { metadata, spec, status } = (await fixture.gadget("a"))!;
    assert.equal(status?.messages, undefined);
    assert.equal(spec.numberOfExecutions, 3);
    assert.equal(metadata.finalizers?.length, 1);
    assert.deepEqual(logged(fixture), [[
      "info",
      "sample.coracle.dev/v1 Gadget default/a",
      [OLD],
    ]]);
  },
);
