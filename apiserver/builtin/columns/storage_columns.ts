import type {
  CSIDriver,
  CSINode,
  StorageClass,
  VolumeAttachment,
} from "../../../core/kinds/storage_v1.ts";
import { ageOf, nameOf, type Printer } from "./cell_text.ts";

const DEFAULT_CLASS_ANNOTATIONS: readonly string[] = [
  "storageclass.kubernetes.io/is-default-class",
  "storageclass.beta.kubernetes.io/is-default-class",
];

/** Printers of the storage kinds. */
export const STORAGE_COLUMNS: Readonly<Record<string, Printer>> = {
  "storageclasses.storage.k8s.io": classCells,
  "csidrivers.storage.k8s.io": driverCells,
  "csinodes.storage.k8s.io": (object: CSINode, now) => [
    nameOf(object),
    object.spec.drivers?.length ?? 0,
    ageOf(object, now),
  ],
  "volumeattachments.storage.k8s.io": (object: VolumeAttachment, now) => [
    nameOf(object),
    object.spec.attacher,
    object.spec.source.persistentVolumeName ?? "",
    object.spec.nodeName,
    object.status?.attached ?? false,
    ageOf(object, now),
  ],
};

function classCells(object: StorageClass, now: number): readonly unknown[] {
  const isDefault = DEFAULT_CLASS_ANNOTATIONS.some((key) =>
    object.metadata.annotations?.[key] === "true"
  );
  return [
    isDefault ? `${nameOf(object)} (default)` : nameOf(object),
    object.provisioner,
    object.reclaimPolicy ?? "Delete",
    object.volumeBindingMode ?? "Immediate",
    object.allowVolumeExpansion ?? false,
    ageOf(object, now),
  ];
}

function driverCells(object: CSIDriver, now: number): readonly unknown[] {
  const { spec } = object;
  const audiences = spec.tokenRequests?.map(({ audience }) => audience);
  return [
    nameOf(object),
    spec.attachRequired ?? true,
    spec.podInfoOnMount ?? false,
    spec.storageCapacity ?? false,
    audiences === undefined ? "<unset>" : audiences.join(","),
    spec.requiresRepublish ?? false,
    (spec.volumeLifecycleModes ?? []).join(",") || "<none>",
    ageOf(object, now),
  ];
}
