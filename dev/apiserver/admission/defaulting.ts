import type { UntypedObject } from "@coracle/operator/client";
import type {
  Ingress,
  Node,
  PersistentVolumeClaim,
  PodSpec,
  Taint,
} from "@coracle/operator/kinds";
import type { GroupResource, HookContext } from "../registry.ts";
import type { AdmissionPlugin } from "./admission.ts";

/** Plug-in that adds the taint `not-ready` to new nodes, until a controller removes it. */
export const TAINT_NODES: AdmissionPlugin = {
  name: "TaintNodesByCondition",
  operations: ["CREATE"],
  resources: ["nodes"],
  mutate({ object }): void {
    const { spec = {} } = object as unknown as Node;
    const taint: Taint = {
      key: "node.kubernetes.io/not-ready",
      effect: "NoSchedule",
    };
    const { taints = [] } = spec;
    const present = taints.some(({ key, effect }) =>
      key === taint.key && effect === taint.effect
    );
    if (!present) {
      (object as UntypedObject).spec = { ...spec, taints: [...taints, taint] };
    }
  },
};

/**
 * Plug-in that adds tolerations which keep a Pod on a failing node for five
 * minutes, unless the Pod has its own.
 */
export const DEFAULT_TOLERATION_SECONDS: AdmissionPlugin = {
  name: "DefaultTolerationSeconds",
  resources: ["pods"],
  mutate({ object }): void {
    const { spec } = object as unknown as { spec: PodSpec };
    for (const state of ["not-ready", "unreachable"]) {
      const key = `node.kubernetes.io/${state}`;
      const tolerated = spec.tolerations?.some((toleration) =>
        (!toleration.key || toleration.key === key) &&
        (!toleration.effect || toleration.effect === "NoExecute")
      );
      if (tolerated) continue;
      spec.tolerations = [...spec.tolerations ?? [], {
        key,
        operator: "Exists",
        effect: "NoExecute",
        tolerationSeconds: 300,
      }];
    }
  },
};

/** Plug-in that sets the default storage class of new claims. */
export const DEFAULT_STORAGE_CLASS: AdmissionPlugin = {
  name: "DefaultStorageClass",
  operations: ["CREATE"],
  resources: ["persistentvolumeclaims"],
  mutate({ object, hooks }): void {
    const { spec, metadata } = object as unknown as PersistentVolumeClaim;
    const old = "volume.beta.kubernetes.io/storage-class";
    if (!spec || spec.storageClassName !== undefined) return;
    if (metadata.annotations?.[old] !== undefined) return;
    const standard = defaultOf(hooks, {
      group: "storage.k8s.io",
      plural: "storageclasses",
    }, "storageclass.kubernetes.io/is-default-class");
    if (standard) spec.storageClassName = standard.metadata.name;
  },
};

/** Plug-in that sets the default class of new ingresses. */
export const DEFAULT_INGRESS_CLASS: AdmissionPlugin = {
  name: "DefaultIngressClass",
  operations: ["CREATE"],
  resources: ["ingresses.networking.k8s.io"],
  mutate({ object, hooks }): void {
    const { spec, metadata } = object as unknown as Ingress;
    const old = metadata.annotations?.["kubernetes.io/ingress.class"];
    if (spec?.ingressClassName !== undefined || old !== undefined) return;
    const standard = defaultOf(hooks, {
      group: "networking.k8s.io",
      plural: "ingressclasses",
    }, "ingressclass.kubernetes.io/is-default-class");
    if (!standard) return;
    (object as UntypedObject).spec = {
      ...spec,
      ingressClassName: standard.metadata.name,
    };
  },
};

/** Object annotated as the default: the newest one, then the first by name. */
function defaultOf(
  { list }: HookContext,
  resource: GroupResource,
  annotation: string,
): UntypedObject | undefined {
  let found: UntypedObject | undefined;
  for (const object of list(resource)) {
    if (object.metadata.annotations?.[annotation] !== "true") continue;
    if (found === undefined || precedes(object, found)) found = object;
  }
  return found;
}

function precedes(
  { metadata: one }: UntypedObject,
  { metadata: other }: UntypedObject,
): boolean {
  const { creationTimestamp: time = "" } = one;
  const { creationTimestamp: known = "" } = other;
  return time === known ? one.name < other.name : time > known;
}
