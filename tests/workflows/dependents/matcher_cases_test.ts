import type {
  ManagedFieldsEntry,
  UntypedObject,
} from "@coracle/operator/client";
import {
  ConfigMap,
  Deployment,
  Pod,
  Role,
  Secret,
  StatefulSet,
} from "@coracle/operator/kinds";
import { testMatcher, WEB, workload } from "./matcher_case.ts";

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

testMatcher({
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
});
