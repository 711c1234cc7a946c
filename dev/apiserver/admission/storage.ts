import type { UntypedObject } from "@coracle/operator/client";
import type {
  PersistentVolumeClaim,
  StorageClass,
} from "@coracle/operator/kinds";
import { type AdmissionPlugin, type Attributes, refusal } from "./admission.ts";
import { amountsOf } from "./pod_resources.ts";

/** Finalizers of volumes and claims that a controller removes once they are unused. */
const PROTECTIONS: Readonly<Record<string, string>> = {
  persistentvolumes: "kubernetes.io/pv-protection",
  persistentvolumeclaims: "kubernetes.io/pvc-protection",
};

/** Plug-in that adds the finalizers which protect volumes and claims in use. */
export const STORAGE_PROTECTION: AdmissionPlugin = {
  name: "StorageObjectInUseProtection",
  operations: ["CREATE"],
  resources: Object.keys(PROTECTIONS),
  mutate({ object, request }): void {
    const { metadata } = object as UntypedObject;
    const finalizer = PROTECTIONS[request.definition.plural] ?? "";
    if (metadata.finalizers?.includes(finalizer)) return;
    metadata.finalizers = [...metadata.finalizers ?? [], finalizer];
  },
};

/** Plug-in that lets a claim grow only if it is bound and its storage class allows it. */
export const CLAIM_RESIZE: AdmissionPlugin = {
  name: "PersistentVolumeClaimResize",
  operations: ["UPDATE"],
  resources: ["persistentvolumeclaims"],
  validate(attributes): void {
    const claim = attributes.object as unknown as PersistentVolumeClaim;
    const before = attributes.oldObject as unknown as PersistentVolumeClaim;
    const [size, old] = [claim, before].map(({ spec }) =>
      amountsOf(spec?.resources?.requests).get("storage")?.nano ?? 0n
    );
    if (size === undefined || old === undefined || size <= old) return;
    if (before.status?.phase !== "Bound") {
      throw refusal(
        attributes,
        "Only bound persistent volume claims can be expanded",
      );
    }
    const name = classOf(claim);
    if (name !== "" && name === classOf(before) && grows(attributes, name)) {
      return;
    }
    throw refusal(
      attributes,
      "only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must support resize",
    );
  },
};

function classOf({ metadata, spec }: PersistentVolumeClaim): string {
  return metadata?.annotations?.["volume.beta.kubernetes.io/storage-class"] ??
    spec?.storageClassName ?? "";
}

function grows({ hooks }: Attributes, name: string): boolean {
  const found = hooks.find({
    group: "storage.k8s.io",
    plural: "storageclasses",
  }, { name });
  return (found as StorageClass | undefined)?.allowVolumeExpansion === true;
}
