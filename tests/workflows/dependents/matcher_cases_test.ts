import assert from "node:assert/strict";
import { test } from "node:test";
import type { Kind } from "../../../core/api/kind.ts";
import type {
  ApplyObject,
  ManagedFieldsEntry,
  UntypedObject,
} from "../../../core/api/object.ts";
import { keyOf } from "../../../core/api/object_key.ts";
import { ApiServer } from "../../../core/apiserver/server.ts";
import {
  ConfigMap,
  DaemonSet,
  Deployment,
  Pod,
  ReplicaSet,
  Role,
  Secret,
  StatefulSet,
} from "../../../core/kinds/mod.ts";
import { desiredObject } from "../../../workflows/dependents/desired_object.ts";
import { MatchMemory } from "../../../workflows/dependents/match_memory.ts";
import { formOfKind } from "../../../workflows/dependents/value_form.ts";

/** One state of the server and what is asked for then. */
interface Case {
  /** The case of JOSDK's suite that it corresponds to. */
  readonly of: string;
  readonly kind: Kind;
  /** What was applied; without metadata. */
  readonly applied: object;
  /** What another manager changed after that. */
  readonly foreign?: object;
  /** What no server would do, done to the stored object. */
  readonly spoil?: (stored: UntypedObject) => void;
  /** What is asked for now; by default what was applied. */
  readonly asked?: object;
  /** Where it differs; by default nowhere. */
  readonly differs?: string;
}

const labels = { app: "a" };

/** The spec of a workload with one container. */
function workload(container: object = {}, more: object = {}) {
  return {
    spec: {
      ...more,
      selector: { matchLabels: labels },
      template: {
        metadata: { labels },
        spec: { containers: [{ name: "web", image: "web:1", ...container }] },
      },
    },
  };
}

const claims = (...claims: readonly object[]) =>
  workload({}, { serviceName: "a", volumeClaimTemplates: claims });
const claim = (spec: object = {}, more: object = {}) => ({
  metadata: { name: "data" },
  spec: {
    accessModes: ["ReadWriteOnce"],
    resources: { requests: { storage: "1Gi" } },
    ...spec,
  },
  ...more,
});
const resources = (
  requests: object,
  limits: object = { cpu: "4" },
) => workload({ resources: { requests, limits } });
const env = (...values: readonly (readonly [string, string?])[]) =>
  workload({
    env: values.map(([name, value]) =>
      value === undefined ? { name } : { name, value }
    ),
  });
const owned = {
  metadata: {
    ownerReferences: [{
      apiVersion: "v1",
      kind: "ConfigMap",
      name: "owner",
      uid: "1ef74cb4-dbbd-45ef-9caf-aa76186594ea",
    }],
  },
  data: { key1: "val1" },
};
const WEB = '.spec.template.spec.containers[{"name":"web"}]';

/** Appends what stands at a path of a stored object once more. */
function repeat(list: unknown[]): void {
  list.push(structuredClone(list[0]));
}

function containersOf(stored: UntypedObject): Record<string, unknown>[] {
  const { spec } = stored as unknown as {
    spec: { template: { spec: { containers: Record<string, unknown>[] } } };
  };
  return spec.template.spec.containers;
}

const CASES: Readonly<Record<string, Case>> = {
  "an object without any managed fields": {
    of: "statefulSetWithMissingManagedField",
    kind: StatefulSet,
    applied: workload({}, { serviceName: "a" }),
    spoil: ({ metadata }) => delete metadata.managedFields,
    differs: ".spec.template.spec.containers",
  },
  "an object that only others have applied": {
    of: "noMatchWhenNoMatchingController",
    kind: Deployment,
    applied: workload(),
    spoil: ({ metadata }) => {
      for (const entry of metadata.managedFields ?? []) {
        (entry as { manager: string }).manager = "somebody";
      }
    },
    differs: ".spec.template.spec.containers",
  },
  "an entry of ours that stands there twice": {
    of: "exceptionWhenDuplicateController",
    kind: Deployment,
    applied: workload(),
    spoil: ({ metadata }) =>
      repeat(metadata.managedFields as ManagedFieldsEntry[]),
  },
  "a Secret by its texts": {
    of: "matchWithSensitiveResource",
    kind: Secret,
    applied: { stringData: { key1: "val1" } },
  },
  "a Secret that somebody else changed": {
    of: "noMatchWithSensitiveResource",
    kind: Secret,
    applied: { stringData: { key1: "val1" } },
    foreign: { data: { key1: "dmFsMg==" } },
    differs: ".data.key1",
  },
  "what others have added": {
    of: "checksIfAddsNotAddedByController",
    kind: Deployment,
    applied: workload(),
    foreign: { metadata: { labels: { of: "others" } }, spec: { replicas: 3 } },
  },
  "a container of ours that was renamed": {
    of: "throwExceptionWhenManagedListEntryNotFound",
    kind: Deployment,
    applied: workload(),
    spoil: (stored) => {
      containersOf(stored)[0]!["name"] = "foobar";
    },
    differs: `${WEB}.image`,
  },
  "a container of ours that stands there twice": {
    of: "throwExceptionWhenDuplicateManagedListEntryFound",
    kind: Deployment,
    applied: workload(),
    spoil: (stored) => repeat(containersOf(stored)),
  },
  "an item of which no field is named": {
    of: "emptyListElementMatchesAllFields",
    kind: ConfigMap,
    applied: owned,
  },
  "a list that is owned as a whole": {
    of: "wholeComplexFieldManaged",
    kind: Role,
    applied: {
      rules: [{ apiGroups: [""], resources: ["pods"], verbs: ["get"] }],
    },
  },
  "an entry more in a list that is owned as a whole": {
    of: "wholeComplexFieldManaged",
    kind: Role,
    applied: {
      rules: [{ apiGroups: [""], resources: ["pods"], verbs: ["get"] }],
    },
    asked: {
      rules: [{ apiGroups: [""], resources: ["pods"], verbs: ["get", "list"] }],
    },
    differs: ".rules",
  },
  "several items of a list, in another order": {
    of: "multiItemList",
    kind: Pod,
    applied: {
      spec: {
        containers: [{ name: "a", image: "a:1" }, { name: "b", image: "b:1" }],
      },
    },
    asked: {
      spec: {
        containers: [{ name: "b", image: "b:1" }, { name: "a", image: "a:1" }],
      },
    },
  },
  "a value that is asked for otherwise": {
    of: "changeValueInDesiredMakesMatchFail",
    kind: ConfigMap,
    applied: owned,
    asked: { ...owned, data: { key1: "different value" } },
    differs: ".data.key1",
  },
  "a value that is stored otherwise": {
    of: "changeValueActualMakesMatchFail",
    kind: ConfigMap,
    applied: owned,
    spoil: (stored) => {
      (stored as unknown as ConfigMap).data!["key1"] = "different value";
    },
    differs: ".data.key1",
  },
  "a label more": {
    of: "addedLabelInDesiredMakesMatchFail",
    kind: ConfigMap,
    applied: owned,
    asked: {
      ...owned,
      metadata: { ...owned.metadata, labels: { newlabel: "val" } },
    },
    differs: ".metadata.labels",
  },
  "a finalizer": {
    of: "withFinalizer",
    kind: Secret,
    applied: {
      metadata: { finalizers: ["example.com/hold"] },
      data: { key1: "dmFsMQ==" },
    },
  },
  "claim templates": {
    of: "testSanitizeState_statefulSetWithVolumeClaims",
    kind: StatefulSet,
    applied: claims(claim()),
  },
  "claim templates with the status that they get": {
    of: "testSanitizeState_statefulSetWithVolumeClaims",
    kind: StatefulSet,
    applied: claims(claim()),
    asked: claims(claim({}, { status: { phase: "Pending" } })),
  },
  "claim templates with the volume mode that they get": {
    of: "testSanitizeState_statefulSetWithVolumeClaims",
    kind: StatefulSet,
    applied: claims(claim()),
    asked: claims(claim({ volumeMode: "Filesystem" })),
  },
  "a claim template more": {
    of: "testSanitizeState_statefulSetWithVolumeClaims_withMismatch",
    kind: StatefulSet,
    applied: claims(claim()),
    asked: claims(claim(), claim({}, { metadata: { name: "more" } })),
    differs: ".spec.volumeClaimTemplates",
  },
  "a claim template that asks for more": {
    of: "testSanitizeState_statefulSetWithVolumeClaims_withMismatch",
    kind: StatefulSet,
    applied: claims(claim()),
    asked: claims(claim({ resources: { requests: { storage: "2Gi" } } })),
    differs: ".spec.volumeClaimTemplates",
  },
  "a claim template with another status": {
    of: "testSanitizeState_statefulSetWithVolumeClaims_withMismatch",
    kind: StatefulSet,
    applied: claims(claim()),
    asked: claims(claim({}, { status: { phase: "Bound" } })),
    differs: ".spec.volumeClaimTemplates",
  },
  "a claim template with another volume mode": {
    of: "testSanitizeState_statefulSetWithVolumeClaims_withMismatch",
    kind: StatefulSet,
    applied: claims(claim()),
    asked: claims(claim({ volumeMode: "Block" })),
    differs: ".spec.volumeClaimTemplates",
  },
  ...Object.fromEntries(
    ([[StatefulSet, "statefulSet"], [ReplicaSet, "replicaSet"], [
      DaemonSet,
      "daemonSet",
    ]] as const).flatMap(([kind, name]): (readonly [string, Case])[] => {
      const of = `testSanitizeState_${name}WithResources`;
      const asked = resources({ cpu: "2000m", memory: "4096Mi" }, {
        cpu: "4000m",
      });
      return [
        [`resources of a ${kind.kind} that are spelled otherwise`, {
          of,
          kind,
          applied: asked,
        }],
        [`other resources of a ${kind.kind}`, {
          of: `${of}_withMismatch`,
          kind,
          applied: asked,
          asked: resources({ cpu: "2000m", memory: "4097Mi" }),
          differs: `${WEB}.resources.requests.memory`,
        }],
      ];
    }),
  ),
  "fields of managers that no one can read": {
    of: "keepOnlyManagedFields_withInvalidManagedFieldsKey",
    kind: ConfigMap,
    applied: owned,
    spoil: ({ metadata }) => {
      for (const entry of metadata.managedFields ?? []) {
        Object.assign(entry, { fieldsV1: { invalid: 1 } });
      }
    },
    differs: ".data",
  },
  "a container more": {
    of: "whenContainerSizeMismatch_doNothing",
    kind: Pod,
    applied: { spec: { containers: [{ name: "a", image: "a" }] } },
    asked: {
      spec: {
        containers: [{ name: "a", image: "a" }, { name: "b", image: "b" }],
      },
    },
    differs: ".spec.containers[]",
  },
  "a container of another name": {
    of: "whenContainerNameMismatch_doNothing",
    kind: Pod,
    applied: { spec: { containers: [{ name: "a", image: "a" }] } },
    asked: { spec: { containers: [{ name: "b", image: "a" }] } },
    differs: ".spec.containers[]",
  },
  "resources that ask for nothing": {
    of: "whenResourceIsNull_doNothing",
    kind: Deployment,
    applied: workload(),
    asked: workload({ resources: {} }),
  },
  "another resource": {
    of: "whenResourceKeyMismatch_doNothing",
    kind: Deployment,
    applied: workload({ resources: { requests: { cpu: "2" } } }),
    asked: workload({ resources: { requests: { memory: "4Gi" } } }),
    differs: `${WEB}.resources.requests.memory`,
  },
  "resources as they are": {
    of: "whenResourcesHaveSameAmountAndFormat_doNothing",
    kind: Deployment,
    applied: resources({ memory: "4Gi" }),
  },
  "another amount": {
    of: "whenResourcesHaveNumericalAmountMismatch_doNothing",
    kind: Deployment,
    applied: resources({ cpu: "2", memory: "4Gi" }),
    asked: resources({ cpu: "4", memory: "4Gi" }),
    differs: `${WEB}.resources.requests.cpu`,
  },
  "another amount, beside a resource of others": {
    of:
      "whenResourcesHaveNumericalAmountMismatch_withEphemeralStorageAddedByOtherOperator_doNothing",
    kind: Deployment,
    applied: resources({ cpu: "2" }),
    foreign: {
      spec: {
        template: {
          spec: {
            containers: [{
              name: "web",
              resources: { requests: { "ephemeral-storage": "1Gi" } },
            }],
          },
        },
      },
    },
    asked: resources({ cpu: "4" }),
    differs: `${WEB}.resources.requests.cpu`,
  },
  "the same amount in another spelling": {
    of:
      "whenResourcesHaveAmountAndFormatMismatchWithSameNumericalAmount_thenSanitizeActualMap",
    kind: Deployment,
    applied: resources({ cpu: "2", memory: "4Gi" }),
    asked: resources({ cpu: "2000m", memory: "4096Mi" }, { cpu: 4 }),
  },
  "the same amount in another spelling, beside a resource of others": {
    of:
      "whenResourcesHaveAmountAndFormatMismatchWithSameNumericalAmount_withEphemeralStorageAddedByOtherOperator_thenSanitizeActualMap",
    kind: Deployment,
    applied: resources({ cpu: "2", memory: "4Gi" }),
    foreign: {
      spec: {
        template: {
          spec: {
            containers: [{
              name: "web",
              resources: { requests: { "ephemeral-storage": "1Gi" } },
            }],
          },
        },
      },
    },
    asked: resources({ cpu: "2000m", memory: "4096Mi" }),
  },
  "variables where there were none": {
    of: "whenEnvVarsIsEmpty_doNothing",
    kind: Deployment,
    applied: workload(),
    asked: env(["FOO", "foobar"]),
    differs: `${WEB}.env`,
  },
  "other values of variables": {
    of: "whenActualEnvVarValueIsNotEmpty_doNothing",
    kind: Deployment,
    applied: env(["FOO", "foo"], ["BAR", "bar"]),
    asked: env(["FOO", "foo"], ["BAR", "foo"]),
    differs: `${WEB}.env[{"name":"BAR"}].value`,
  },
  "other variables": {
    of: "whenActualAndDesiredEnvVarsAreDifferent_doNothing",
    kind: Deployment,
    applied: env(["FOO", "foo"]),
    asked: env(["BAR", "bar"]),
    differs: `${WEB}.env[]`,
  },
  "a value for a variable that was empty": {
    of: "whenActualEnvVarIsEmpty_doNothing",
    kind: Deployment,
    applied: env(["FOO", ""], ["BAR", ""]),
    asked: env(["FOO", "foo"], ["BAR", ""]),
    differs: `${WEB}.env[{"name":"FOO"}].value`,
  },
  "a blank value for a variable that had none": {
    of: "whenActualEnvVarIsNull_doNothing",
    kind: Deployment,
    applied: env(["FOO"]),
    asked: env(["FOO", " "]),
    differs: `${WEB}.env[{"name":"FOO"}].value`,
  },
  "an empty value for a variable that had none": {
    of: "whenActualEnvVarIsNull_withDesiredEnvVarEmpty_thenSanitizeActualMap",
    kind: Deployment,
    applied: env(["FOO"], ["BAR"]),
    asked: env(["FOO", ""], ["BAR", ""]),
  },
};

async function play(one: Case): Promise<void> {
  const { kind, applied, foreign, spoil, asked = applied } = one;
  const server = await ApiServer.start({ port: false, seed: 1 });
  try {
    const { client } = server;
    const object = (fields: object) => {
      const { metadata, ...rest } = fields as Partial<UntypedObject>;
      return {
        ...rest,
        metadata: { namespace: "default", name: "a", ...metadata },
      } as ApplyObject<UntypedObject>;
    };
    const fieldManager = "controller";
    const manager = { fieldManager, force: true };
    const intent = desiredObject(kind, object(applied) as never);
    let stored = await client.apply(kind, intent, manager) as UntypedObject;
    if (foreign !== undefined) {
      stored = await client.patch(kind, keyOf(stored), foreign as never, {
        type: "strategic",
        fieldManager: "others",
      }) as UntypedObject;
    }
    stored = structuredClone(stored);
    spoil?.(stored);
    const result = new MatchMemory({ form: formOfKind(kind) }).match({
      id: "default/a",
      wish: "this",
      intent: desiredObject(kind, object(asked) as never) as never,
      actual: stored,
      fieldManager,
    });
    assert.equal(result.matches ? undefined : result.field, one.differs);
  } finally {
    await server.stop();
  }
}

for (const [what, one] of Object.entries(CASES)) {
  const verdict = one.differs === undefined ? "matches" : "does not match";
  test(`MatchMemory ${verdict} ${what} [${one.of}]`, () => play(one));
}
