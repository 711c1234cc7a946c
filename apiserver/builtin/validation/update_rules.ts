import type { StatusCause } from "../../../core/api/api_error.ts";
import type { UntypedObject } from "../../../core/api/object.ts";
import type {
  ConfigMap,
  PersistentVolume,
  PersistentVolumeClaim,
  Pod,
  Secret,
  Service,
} from "../../../core/kinds/core_v1.ts";
import type { LabelSelector } from "../../../core/kinds/meta_v1.ts";
import { jsonEquals, type JsonObject } from "../../../core/patch/json_value.ts";
import { FieldPath } from "../../validation/field_path.ts";
import { shownSelector, shownTexts } from "./go_shown.ts";

/** Check of an update: reports fields that must not change. */
type UpdateRule = (object: never, live: never, fieldPath: FieldPath) => void;

const IMMUTABLE = "field is immutable";

function at(object: UntypedObject, path: string): unknown {
  let value: unknown = object;
  for (const name of path.split(".")) {
    value = (value as JsonObject | undefined)?.[name];
  }
  return value;
}

/** Rule for immutable fields, given by their paths. */
function immutable(...paths: readonly string[]): UpdateRule {
  return (object: UntypedObject, live: UntypedObject, fieldPath) => {
    for (const path of paths) {
      const value = at(object, path);
      if (jsonEquals(value, at(live, path))) continue;
      fieldPath.invalid(path, value, IMMUTABLE);
    }
  };
}

const immutableSelector: UpdateRule = (
  object: UntypedObject,
  live: UntypedObject,
  fieldPath,
) => {
  const selector = at(object, "spec.selector") as LabelSelector | undefined;
  if (jsonEquals(selector, at(live, "spec.selector"))) return;
  fieldPath.invalidShown(
    "spec.selector",
    selector ? shownSelector(selector) : '"null"',
    IMMUTABLE,
  );
};

/** Rule for immutable fields that are reported as forbidden, each with its own message. */
function forbiddenToChange(
  texts: Readonly<Record<string, string>>,
): UpdateRule {
  return (object: UntypedObject, live: UntypedObject, fieldPath) => {
    for (const [path, text] of Object.entries(texts)) {
      if (!jsonEquals(at(object, path), at(live, path))) {
        fieldPath.forbidden(path, text);
      }
    }
  };
}

function frozenData(...fields: readonly string[]): UpdateRule {
  return (
    object: ConfigMap | Secret,
    live: ConfigMap | Secret,
    fieldPath,
  ) => {
    if (!live.immutable) return;
    const why = "field is immutable when `immutable` is set";
    if (!object.immutable) fieldPath.forbidden("immutable", why);
    for (const field of fields) {
      const [value, before] = [object, live].map((each) =>
        (each as unknown as JsonObject)[field]
      );
      if (!jsonEquals(value, before)) fieldPath.forbidden(field, why);
    }
  };
}

const POD_FIELDS =
  "`spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";

/** Spec of a Pod without the fields that an update may change. */
function fixedPart({ spec }: Pod): JsonObject {
  const withoutImages = (containers: readonly { image?: unknown }[] = []) =>
    containers.map(({ image: _, ...rest }) => rest);
  const {
    containers,
    initContainers,
    ephemeralContainers: _,
    activeDeadlineSeconds: __,
    tolerations: ___,
    schedulingGates: ____,
    ...rest
  } = spec;
  return {
    ...rest,
    containers: withoutImages(containers),
    initContainers: withoutImages(initContainers),
  };
}

const podUpdate: UpdateRule = (pod: Pod, live: Pod, fieldPath) => {
  for (const kind of ["containers", "initContainers"] as const) {
    if (pod.spec[kind]?.length === live.spec[kind]?.length) continue;
    fieldPath.forbidden(
      `spec.${kind}`,
      "pod updates may not add or remove containers",
    );
    return;
  }
  const deadline = pod.spec.activeDeadlineSeconds;
  const before = live.spec.activeDeadlineSeconds;
  if (
    deadline === undefined
      ? before !== undefined
      : deadline > (before ?? Infinity)
  ) {
    fieldPath.invalid(
      "spec.activeDeadlineSeconds",
      deadline,
      deadline === undefined
        ? "must not update from a positive integer to nil value"
        : "must be less than or equal to previous value",
    );
  }
  const lasting = ({ spec }: Pod) =>
    (spec.tolerations ?? []).map(({ tolerationSeconds: _, ...rest }) => rest);
  const after = lasting(pod);
  const unchanged = lasting(live).every((toleration) =>
    after.some((other) => jsonEquals(other, toleration))
  );
  if (!unchanged) {
    fieldPath.forbidden(
      "spec.tolerations",
      "existing toleration can not be modified except its tolerationSeconds",
    );
  }
  const gates = new Set(live.spec.schedulingGates?.map(({ name }) => name));
  for (const [index, { name }] of (pod.spec.schedulingGates ?? []).entries()) {
    if (gates.has(name)) continue;
    fieldPath.forbidden(
      `spec.schedulingGates[${index}].name`,
      `only deletion is allowed, but found new scheduling gate '${name}'`,
    );
  }
  if (!jsonEquals(fixedPart(pod), fixedPart(live))) {
    fieldPath.forbidden(
      "spec",
      `pod updates may not change fields other than ${POD_FIELDS}\n`,
    );
  }
};

const serviceUpdate: UpdateRule = (
  service: Service,
  live: Service,
  fieldPath,
) => {
  const before = live.spec?.clusterIPs?.[0];
  const after = service.spec?.clusterIPs?.[0];
  const addressed = live.spec?.type !== "ExternalName" &&
    service.spec?.type !== "ExternalName";
  if (!addressed || before === undefined || after === before) return;
  fieldPath.invalidShown(
    "spec.clusterIPs[0]",
    shownTexts(service.spec?.clusterIPs),
    "may not change once set",
  );
};

const balancerUpdate: UpdateRule = (
  service: Service,
  live: Service,
  fieldPath,
) => {
  const { spec = {} } = service;
  const { spec: before = {} } = live;
  const isBalancer = spec.type === "LoadBalancer" &&
    before.type === "LoadBalancer";
  if (isBalancer && spec.loadBalancerClass !== before.loadBalancerClass) {
    fieldPath.invalid(
      "spec.loadBalancerClass",
      spec.loadBalancerClass,
      "may not change once set",
    );
  }
  const needsHealthPort = isBalancer &&
    spec.externalTrafficPolicy === "Local" &&
    before.externalTrafficPolicy === "Local";
  if (
    needsHealthPort && spec.healthCheckNodePort !== before.healthCheckNodePort
  ) {
    fieldPath.forbidden("spec.healthCheckNodePort", IMMUTABLE);
  }
};

const STATEFUL_SET_FIELDS = [
  "replicas",
  "template",
  "updateStrategy",
  "minReadySeconds",
  "ordinals",
  "persistentVolumeClaimRetentionPolicy",
];

const statefulSetUpdate: UpdateRule = (
  object: UntypedObject,
  live: UntypedObject,
  fieldPath,
) => {
  const fixed = ({ spec }: UntypedObject) =>
    Object.fromEntries(
      Object.entries(spec as JsonObject).filter(([name]) =>
        !STATEFUL_SET_FIELDS.includes(name)
      ),
    );
  if (jsonEquals(fixed(object), fixed(live))) return;
  fieldPath.forbidden(
    "spec",
    "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden",
  );
};

const claimUpdate: UpdateRule = (
  claim: PersistentVolumeClaim,
  live: PersistentVolumeClaim,
  fieldPath,
) => {
  const isBound = claim.status?.phase === "Bound";
  const fixed = ({ spec = {} }: PersistentVolumeClaim) => {
    const { resources = {}, volumeName, ...rest } = spec;
    const { storage, ...requests } = resources.requests ?? {};
    return {
      ...rest,
      ...(live.spec?.volumeName ? { volumeName } : {}),
      resources: {
        ...resources,
        requests: { ...requests, ...(isBound ? {} : { storage }) },
      },
    };
  };
  if (!jsonEquals(fixed(claim), fixed(live))) {
    fieldPath.forbidden(
      "spec",
      "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims\n",
    );
  }
};

/** Mutable fields of a PersistentVolume spec. */
const VOLUME_FIELDS = [
  "accessModes",
  "capacity",
  "claimRef",
  "mountOptions",
  "nodeAffinity",
  "persistentVolumeReclaimPolicy",
  "storageClassName",
  "volumeMode",
];

const volumeUpdate: UpdateRule = (
  volume: PersistentVolume,
  live: PersistentVolume,
  fieldPath,
) => {
  const source = ({ spec = {} }: PersistentVolume) =>
    Object.fromEntries(
      Object.entries(spec).filter(([name]) => !VOLUME_FIELDS.includes(name)),
    );
  if (!jsonEquals(source(volume), source(live))) {
    fieldPath.forbidden(
      "spec.persistentvolumesource",
      "spec.persistentvolumesource is immutable after creation\n",
    );
  }
  const mode = volume.spec?.volumeMode;
  if (mode !== live.spec?.volumeMode) {
    fieldPath.invalid("volumeMode", mode, IMMUTABLE);
  }
  if (!jsonEquals(volume.spec?.nodeAffinity, live.spec?.nodeAffinity)) {
    fieldPath.invalidShown(
      "nodeAffinity",
      volume.spec?.nodeAffinity ? "core.VolumeNodeAffinity" : '"null"',
      "field is immutable, except for updating from beta label to GA",
    );
  }
};

const roleRefUpdate: UpdateRule = (
  object: UntypedObject,
  live: UntypedObject,
  fieldPath,
) => {
  if (jsonEquals(object.roleRef, live.roleRef)) return;
  const { apiGroup, kind, name } = object.roleRef as Record<string, string>;
  fieldPath.invalidShown(
    "roleRef",
    `rbac.RoleRef{APIGroup:${JSON.stringify(apiGroup)}, Kind:${
      JSON.stringify(kind)
    }, Name:${JSON.stringify(name)}}`,
    "cannot change roleRef",
  );
};

const RULES: ReadonlyMap<string, readonly UpdateRule[]> = new Map([
  ["configmaps", [frozenData("data", "binaryData")]],
  ["secrets", [immutable("type"), frozenData("data")]],
  ["pods", [podUpdate]],
  ["services", [serviceUpdate, balancerUpdate]],
  ["persistentvolumeclaims", [claimUpdate]],
  ["persistentvolumes", [volumeUpdate]],
  ["deployments.apps", [immutableSelector]],
  ["replicasets.apps", [immutableSelector]],
  ["daemonsets.apps", [immutableSelector]],
  ["statefulsets.apps", [statefulSetUpdate]],
  ["controllerrevisions.apps", [immutable("data")]],
  ["jobs.batch", [
    immutableSelector,
    immutable(
      "spec.completionMode",
      "spec.podFailurePolicy",
      "spec.backoffLimitPerIndex",
      "spec.managedBy",
      "spec.successPolicy",
    ),
    (object: UntypedObject, live: UntypedObject, fieldPath: FieldPath) => {
      const before = at(live, "spec.completions");
      const isIndexed = at(live, "spec.completionMode") === "Indexed";
      const after = at(object, "spec.completions");
      if (!isIndexed && !jsonEquals(after, before)) {
        fieldPath.invalid("spec.completions", after, IMMUTABLE);
      } else if (
        after !== before && after !== at(object, "spec.parallelism")
      ) {
        fieldPath.invalid(
          "spec.completions",
          after,
          "can only be modified in tandem with spec.parallelism",
        );
      }
      if (!jsonEquals(at(object, "spec.template"), at(live, "spec.template"))) {
        fieldPath.invalidShown(
          "spec.template",
          "core.PodTemplateSpec",
          IMMUTABLE,
        );
      }
    },
  ]],
  ["rolebindings.rbac.authorization.k8s.io", [roleRefUpdate]],
  ["clusterrolebindings.rbac.authorization.k8s.io", [roleRefUpdate]],
  ["ingressclasses.networking.k8s.io", [immutable("spec.controller")]],
  ["runtimeclasses.node.k8s.io", [immutable("handler")]],
  ["priorityclasses.scheduling.k8s.io", [
    forbiddenToChange({ value: "may not be changed in an update." }),
    immutable("preemptionPolicy"),
  ]],
  ["storageclasses.storage.k8s.io", [
    forbiddenToChange({
      parameters: "updates to parameters are forbidden.",
      provisioner: "updates to provisioner are forbidden.",
      reclaimPolicy: "updates to reclaimPolicy are forbidden.",
    }),
    immutable("volumeBindingMode"),
  ]],
  ["csidrivers.storage.k8s.io", [
    immutable("spec.attachRequired", "spec.volumeLifecycleModes"),
  ]],
  ["csistoragecapacities.storage.k8s.io", [
    immutable("nodeTopology", "storageClassName"),
  ]],
  ["volumeattachments.storage.k8s.io", [immutable("spec")]],
  ["endpointslices.discovery.k8s.io", [immutable("addressType")]],
]);

/** Validates an update of an object; returns the violations. */
export function changeCauses(
  resource: string,
  object: UntypedObject,
  live: UntypedObject,
): StatusCause[] {
  const causes: StatusCause[] = [];
  const fieldPath = new FieldPath("", causes);
  for (const rule of RULES.get(resource) ?? []) {
    rule(object as never, live as never, fieldPath);
  }
  return causes;
}
