/**
 * `operator.watchKinds`: kinds that come and go while an operator follows them.
 */
import assert from "node:assert/strict";
import {
  type Kind,
  untyped,
  type UntypedObject,
} from "@coracle/operator/client";
import type {
  KindsHandle,
  KindsOptions,
  Operator,
} from "@coracle/operator/core";
import { ConfigMap, CustomResourceDefinition } from "@coracle/operator/kinds";
import { policyRules } from "../../dev/testing/rbac.ts";
import { operatorAccess } from "../../dev/testing/operator_access.ts";
import { limitedClient } from "../support/limited_client.ts";
import { type OperatorFixture, scenario } from "../support/operator_fixture.ts";
import { ON_REAL_CLUSTER } from "../support/scenario_cluster.ts";

const GROUP = "followed.coracle.dev";
const GROUPS = [GROUP];

const kindOf = (name: string): Kind<UntypedObject> =>
  untyped({ group: GROUP, version: "v1", kind: name });

/** Installs a definition, and waits until the server serves its kind. */
async function define(
  fixture: OperatorFixture,
  kind: string,
  { versions = ["v1"], scope = "Namespaced", labels = {} }: {
    readonly versions?: readonly string[];
    readonly scope?: "Namespaced" | "Cluster";
    readonly labels?: Readonly<Record<string, string>>;
  } = {},
): Promise<void> {
  const singular = kind.toLowerCase();
  const plural = `${singular}s`;
  const name = `${plural}.${GROUP}`;
  await fixture.client.apply(CustomResourceDefinition, {
    metadata: { name, labels },
    spec: {
      group: GROUP,
      scope,
      names: { plural, singular, kind, listKind: `${kind}List` },
      versions: versions.map((version, index) => ({
        name: version,
        served: true,
        storage: index === 0,
        schema: {
          openAPIV3Schema: {
            type: "object",
            "x-kubernetes-preserve-unknown-fields": true,
          },
        },
      })),
    },
  });
  await fixture.until(async () => {
    const { status } = await fixture.client.get(CustomResourceDefinition, {
      name,
    });
    return status?.conditions?.some(({ type, status }) =>
      type === "Established" && status === "True"
    ) === true;
  });
}

async function undefine(
  { client }: OperatorFixture,
  kind: string,
): Promise<void> {
  const name = `${kind.toLowerCase()}s.${GROUP}`;
  await client.delete(CustomResourceDefinition, { name });
}

/** Creates an object of a kind, once its kind is served. */
async function create(
  fixture: OperatorFixture,
  kind: string,
  name: string,
  owner?: UntypedObject,
): Promise<UntypedObject> {
  let made: UntypedObject | undefined;
  await fixture.until(async () => {
    made = await fixture.client.create(kindOf(kind), {
      metadata: {
        namespace: "default",
        name,
        ...owner && {
          ownerReferences: [{
            apiVersion: owner.apiVersion as string,
            kind: owner.kind as string,
            name: owner.metadata.name,
            uid: owner.metadata.uid as string,
          }],
        },
      },
      spec: { size: 1 },
    }).catch(() => undefined);
    return made !== undefined;
  });
  return made as UntypedObject;
}

/** An operator whose handler notes events such as `added Apple default/a`. */
async function follow(
  fixture: OperatorFixture,
  operator: Operator,
  options: KindsOptions = {},
): Promise<{ readonly events: string[]; readonly kinds: KindsHandle }> {
  const events: string[] = [];
  const kinds = operator.watchKinds(
    { groups: GROUPS },
    ({ type, key }, kind) =>
      void events.push(
        `${type} ${kind.version} ${kind.kind} ${key}`,
      ),
    options,
  );
  await fixture.start(operator);
  return { events, kinds };
}

const names = ({ followed }: KindsHandle) =>
  followed.map(({ kind }) => kind.kind).sort();

/** Time in which a kind must be followed, in milliseconds. */
const SOON = ON_REAL_CLUSTER ? undefined : 1_000;

scenario(
  "Kinds are followed within a second as their definitions come and go",
  async (fixture) => {
    await define(fixture, "Apple");
    await create(fixture, "Apple", "a");
    const operator = fixture.operator();
    const { events, kinds } = await follow(fixture, operator);
    await fixture.until(() => events.length === 1);
    assert.deepEqual(events, ["added v1 Apple default/a"]);
    await define(fixture, "Banana");
    await fixture.until(() => names(kinds).length === 2, SOON);
    await create(fixture, "Banana", "b");
    await fixture.until(() => events.length === 2, SOON);
    await undefine(fixture, "Apple");
    await fixture.until(() => events.length === 3);
    assert.deepEqual(events.slice(1), [
      "added v1 Banana default/b",
      "deleted v1 Apple default/a",
    ]);
    await fixture.until(() => names(kinds).join() === "Banana");
    // Its definition returns, with another scope.
    await fixture.until(async () =>
      await fixture.client.find(CustomResourceDefinition, {
        name: `apples.${GROUP}`,
      }) === undefined
    );
    await define(fixture, "Apple", { scope: "Cluster" });
    await fixture.until(() => names(kinds).length === 2, SOON);
    assert.equal(operator.health().ready, true);
  },
);

scenario(
  "Followed kinds share an index of owners",
  async (fixture) => {
    await define(fixture, "Cherry");
    await define(fixture, "Date");
    const operator = fixture.operator();
    const { events, kinds } = await follow(fixture, operator);
    const owner = await create(fixture, "Cherry", "tree");
    await create(fixture, "Cherry", "one", owner);
    await create(fixture, "Date", "two", owner);
    await create(fixture, "Date", "other");
    await fixture.until(() => events.length === 4);
    const owned = () =>
      kinds.ownedBy(owner).map(({ kind, metadata }) =>
        `${kind} ${metadata.name}`
      ).sort();
    assert.deepEqual(owned(), ["Cherry one", "Date two"]);
    assert.deepEqual(kinds.ownedBy("unknown"), []);
    const key = { namespace: "default", name: "one" };
    await fixture.client.patch(kindOf("Cherry"), key, {
      metadata: { ownerReferences: null },
    } as never);
    await fixture.until(() => events.length === 5);
    assert.deepEqual(owned(), ["Date two"]);
    await undefine(fixture, "Date");
    await fixture.until(() => names(kinds).join() === "Cherry");
    assert.deepEqual(owned(), []);
  },
);

scenario(
  "Each followed kind has a controller of a reconciler, and why() knows its runs",
  async (fixture) => {
    await define(fixture, "Elder");
    await create(fixture, "Elder", "a");
    const operator = fixture.operator();
    const runs: string[] = [];
    const kinds = operator.watchKinds({ groups: GROUPS }, {
      reconcile({ kind, metadata, spec }) {
        runs.push(`${kind} ${metadata.name} ${spec}`);
      },
    }, { name: "fruit" });
    await fixture.start(operator);
    await fixture.until(() => runs.length === 1);
    await define(fixture, "Fig");
    await create(fixture, "Fig", "b");
    await fixture.until(() => runs.length === 2);
    assert.deepEqual(runs, ["Elder a undefined", "Fig b undefined"]);
    assert.deepEqual(
      operator.why("default/b").map(({ controller }) => controller),
      [`fruit-figs.${GROUP}`],
    );
    await undefine(fixture, "Fig");
    await fixture.until(() => names(kinds).join() === "Elder");
    await fixture.until(() => operator.health().controllers.length === 2);
    await fixture.done(operator.stop());
    assert.deepEqual(
      operator.health().controllers.map(({ name }) => name),
      ["fruit"],
    );
    await fixture.start(operator);
    await fixture.until(() => runs.length === 3);
  },
);

scenario(
  "A kind whose version is no longer served runs no object twice at a time",
  async (fixture) => {
    await define(fixture, "Hazel", { versions: ["v1", "v2"] });
    await create(fixture, "Hazel", "a");
    const operator = fixture.operator({ shutdownGrace: "1s" });
    const runs: string[] = [];
    const ends: (() => void)[] = [];
    const kinds = operator.watchKinds({ groups: GROUPS }, {
      async reconcile({ apiVersion }) {
        runs.push(`${apiVersion}`);
        // Ignores its signal.
        await new Promise<void>((resolve) => ends.push(resolve));
        runs.push("end");
      },
    }, { name: "nuts" });
    await fixture.start(operator);
    await fixture.until(() => runs.length === 1);
    await fixture.client.patch(
      CustomResourceDefinition,
      {
        name: `hazels.${GROUP}`,
      },
      [{ op: "replace", path: "/spec/versions/1/served", value: false }],
      {
        type: "json",
      },
    );
    const versions = () => kinds.followed.map(({ kind }) => kind.version);
    await fixture.until(() => versions().join() === "v1");
    await fixture.until(() =>
      fixture.log.some(({ message }) => message.includes("left behind"))
    );
    await fixture.settle();
    ends[0]?.();
    await fixture.until(() => runs.length === 3);
    assert.deepEqual(runs, [`${GROUP}/v2`, "end", `${GROUP}/v1`]);
    ends[1]?.();
  },
);

scenario(
  "A kind that may not be listed is named, and followed once it may",
  async (fixture) => {
    await define(fixture, "Grape");
    await create(fixture, "Grape", "a");
    const { client, grant } = await limitedClient(fixture, []);
    const planned = fixture.operator({ client });
    planned.watchKinds({ groups: ["apps"] }, () => {});
    await grant(policyRules(operatorAccess(planned, { namespace: "default" })));
    const operator = fixture.operator({ client });
    const { events, kinds } = await follow(fixture, operator);
    assert.equal(operator.health().ready, true);
    assert.equal(operator.health().healthy, true);
    const [grape] = kinds.followed;
    assert.equal(grape?.synced, false);
    assert.match(grape?.error ?? "", /grapes.*forbidden|forbidden.*grapes/);
    const wanted = fixture.operator({ client });
    wanted.watchKinds({ groups: GROUPS }, () => {});
    await grant(policyRules(operatorAccess(wanted, { namespace: "default" })));
    await fixture.until(() => events.length === 1);
    assert.deepEqual(kinds.followed.map(({ synced }) => synced), [true]);
    assert.equal(kinds.followed[0]?.error, undefined);
  },
);

scenario(
  "Built-in kinds are found by discovery, and the objects of a namespace watched",
  async (fixture) => {
    const operator = fixture.operator();
    const seen = new Set<string>();
    const kinds = operator.watchKinds(
      { groups: [""] },
      ({ header }, { kind }) => void seen.add(`${kind} ${header.namespace}`),
      { namespaces: ["default"], labelSelector: "watched=kinds" },
    );
    operator.watchKinds(
      { groups: [""] },
      () => Promise.reject(new Error("An async handler has failed")),
      { labelSelector: "watched=kinds", name: "failing" },
    );
    await fixture.start(operator);
    assert.ok(names(kinds).includes("ConfigMap"));
    assert.ok(!names(kinds).includes("Binding"));
    const labels = { watched: "kinds" };
    await fixture.client.create(ConfigMap, {
      metadata: { namespace: "default", name: "watched-kinds", labels },
    });
    await fixture.until(() => seen.size === 1);
    assert.deepEqual([...seen], ["ConfigMap default"]);
    await fixture.until(() =>
      fixture.log.some(({ fields }) =>
        String(fields["error"]).includes("An async handler has failed")
      )
    );
  },
);
