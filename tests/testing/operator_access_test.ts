import assert from "node:assert/strict";
import { test } from "node:test";
import { z } from "zod";
import { untyped } from "@coracle/operator/client";
import { defineKind } from "@coracle/operator/crd";
import {
  operatorAccess,
  roleAccess,
} from "../../dev/testing/operator_access.ts";

const kind = (group: string, kind: string) =>
  untyped({ group, version: "v1", kind });
const RBAC = "rbac.authorization.k8s.io";

/** Verbs that an operator needs that writes these kinds. */
function verbsOf(...written: readonly ReturnType<typeof kind>[]): unknown {
  const access = roleAccess(written);
  const verbs = new Set(access.map(({ verbs }) => verbs.join()));
  assert.equal(verbs.size, Math.min(1, access.length));
  return [...verbs][0];
}

test("roleAccess gives rights over roles only to those who write them", () => {
  assert.equal(verbsOf(), undefined);
  assert.equal(verbsOf(kind(RBAC, "RoleBinding")), "bind");
  assert.equal(verbsOf(kind(RBAC, "ClusterRole")), "escalate");
  assert.equal(
    verbsOf(kind(RBAC, "Role"), kind(RBAC, "ClusterRoleBinding")),
    "bind,escalate",
  );
  const foreign = [kind("example.com", "Role"), kind("a.io", "PolicyBinding")];
  assert.equal(verbsOf(...foreign), undefined);
});

type Operator = Parameters<typeof operatorAccess>[0];
type Controller = Operator["controllers"][number];

/** Access of an operator in namespace ops, such as `boats/status get in all`. */
function accessOf(
  controller: Partial<Controller>,
  settings: Partial<Operator["settings"]> = {},
  options: Partial<Parameters<typeof operatorAccess>[1]> = {},
): readonly string[] {
  const operator = {
    controllers: [{
      name: "boat",
      kind: placed("a.example", "boats"),
      secondaryKinds: [],
      readOnlyKinds: [],
      settings: { usesFinalizer: false, install: false, hasStatus: true },
      ...controller,
    } as Controller],
    settings: { namespaces: "all", ...settings } as Operator["settings"],
  };
  return operatorAccess(operator, { namespace: "ops", ...options })
    .map(({ kind: { plural }, subresource, verbs, namespaces }) =>
      `${plural}${
        subresource === undefined ? "" : `/${subresource}`
      } ${verbs.join()} in ${namespaces}`
    );
}

const placed = (
  group: string,
  plural: string,
  scope: "Namespaced" | "Cluster" = "Namespaced",
) => ({ group, version: "v1", kind: plural, plural, scope });

const WATCH = "get,list,watch";
const MANAGE = "get,list,watch,create,update,patch,delete";
const OWN = [
  `boats ${WATCH},update,patch in all`,
  "boats/status get,update,patch in all",
];
const EVENTS = "events get,create,patch in all";

test("operatorAccess gives the rights over each kind of a controller", () => {
  assert.deepEqual(accessOf({}), [...OWN, EVENTS]);
  assert.deepEqual(
    accessOf(
      {
        secondaryKinds: [placed("", "configmaps")],
        readOnlyKinds: [placed("", "secrets")],
      },
      {},
      { managed: [placed("", "services")] },
    ),
    [
      ...OWN,
      "boats/finalizers update in all",
      `configmaps ${MANAGE} in all`,
      `services ${MANAGE} in all`,
      `secrets ${WATCH} in all`,
      EVENTS,
    ],
  );
  assert.deepEqual(accessOf({}, {}, { writesOthers: true }), [
    ...OWN,
    "boats/finalizers update in all",
    EVENTS,
  ]);
});

test("operatorAccess depends on the settings of a controller", () => {
  const settings = { usesFinalizer: true, install: true, hasStatus: false };
  assert.deepEqual(accessOf({ settings } as Partial<Controller>), [
    OWN[0],
    `customresourcedefinitions ${WATCH},create,patch in all`,
    EVENTS,
  ]);
  const pods = { kind: placed("", "pods"), settings };
  assert.equal(
    accessOf(pods as Partial<Controller>)[0],
    `pods ${WATCH},patch in all`,
  );
  const unfinished = {
    ...pods,
    settings: { ...settings, usesFinalizer: false },
  };
  assert.equal(
    accessOf(unfinished as Partial<Controller>)[0],
    `pods ${WATCH} in all`,
  );
});

test("operatorAccess is limited to the namespaces of a controller", () => {
  const places = (
    namespaces: unknown,
    ofOperator: unknown,
    scope?: "Cluster",
  ) =>
    accessOf({
      kind: placed("a.example", "boats", scope),
      settings: { namespaces, hasStatus: false } as Controller["settings"],
    }, { namespaces: ofOperator } as Partial<Operator["settings"]>)
      .map((text) => text.replace(/ .* in/, " in"));
  assert.deepEqual(places(undefined, "current"), [
    "boats in ops",
    "events in ops",
  ]);
  assert.deepEqual(places(["a"], ["b"]), ["boats in a", "events in a"]);
  assert.deepEqual(places(["a"], ["b"], "Cluster"), [
    "boats in all",
    "events in default",
  ]);
});

test("operatorAccess gives the verbs of an election or of shards on Leases", () => {
  assert.deepEqual(
    accessOf({}, { leaderElection: { name: "a" } }).slice(3),
    ["leases get,create,update in ops"],
  );
  assert.deepEqual(
    accessOf({}, { sharding: { name: "a", namespace: "b" } }).slice(3),
    ["leases get,list,create,update,delete in b"],
  );
});

test("operatorAccess gives no right over the status of built-in kinds", () => {
  const settings = { usesFinalizer: false, install: false, hasStatus: true };
  const pods = { kind: placed("", "pods"), settings };
  assert.deepEqual(accessOf(pods as Partial<Controller>), [
    `pods ${WATCH} in all`,
    EVENTS,
  ]);
});

test("operatorAccess gives no right over a status that a kind does not define", () => {
  const names = { group: "a.example", version: "v1", spec: z.object({}) };
  const settings = { usesFinalizer: false, install: false };
  const statusOf = (kind: Controller["kind"]) =>
    accessOf({ kind, settings } as Partial<Controller>)
      .filter((text) => text.includes("/status"));
  assert.deepEqual(statusOf(defineKind({ ...names, kind: "Boat" })), []);
  const status = z.object({});
  assert.equal(
    statusOf(defineKind({ ...names, kind: "Boat", status })).length,
    1,
  );
});

test("operatorAccess gives a job no primaries, and the right to keep its state", () => {
  const job = {
    isJob: true,
    kind: { ...placed("coracle.dev", "operatorjobs"), scope: "Cluster" },
    stateKind: { kind: placed("", "configmaps") },
    readOnlyKinds: [placed("", "services")],
  } as const;
  assert.deepEqual(accessOf(job, { namespaces: ["shop"] }), [
    "configmaps get,create,patch in ops",
    "services get,list,watch in shop",
    "events get,create,patch in default",
  ]);
});

test("operatorAccess gives the rights over the groups of kinds that are followed", () => {
  const access = (
    groups: readonly string[] | undefined,
    isReconciled: boolean,
    namespaces?: readonly string[],
  ) =>
    accessOf({
      kind: placed("apiextensions.k8s.io", "crds", "Cluster"),
      watchedSelection: { selector: { groups }, isReconciled, namespaces },
    }).filter((line) => line.startsWith("*"));
  assert.deepEqual(access(["apps", "batch"], false), [
    `* ${WATCH} in all`,
    `* ${WATCH} in all`,
  ]);
  assert.deepEqual(access(["apps"], true, ["a"]), [
    `* ${WATCH} in a`,
    "* update,patch in a",
    "*/status patch in a",
  ]);
  assert.deepEqual(access(["*.example.com"], false), access(undefined, false));
});

test("operatorAccess lets snapshots tell clusters apart", () => {
  assert.deepEqual(
    accessOf({}, { cache: { snapshot: { path: "/data" } } })
      .filter((line) => line.startsWith("namespaces")),
    ["namespaces get in undefined"],
  );
  assert.deepEqual(
    accessOf({}, { cache: {} }).filter((line) => line.startsWith("namespaces")),
    [],
  );
});
