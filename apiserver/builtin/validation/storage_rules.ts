import { Quantity } from "../../../core/api/quantity.ts";
import type {
  PersistentVolumeClaimSpec,
  PersistentVolumeSpec,
  TopologySelectorTerm,
} from "../../../core/kinds/core_v1.ts";
import type {
  CSIDriverSpec,
  CSINode,
  CSIStorageCapacity,
  StorageClass,
  VolumeAttachmentSpec,
} from "../../../core/kinds/storage_v1.ts";
import type { FieldPath } from "../../validation/field_path.ts";
import {
  qualifiedNameProblems,
  subdomainProblems,
} from "../../validation/names.ts";
import { oneOf, required } from "./field_checks.ts";
import { check, type ValidationRules } from "./validation_rule.ts";
import { driverName } from "./volume_source_rules.ts";

const ACCESS_MODES = [
  "ReadOnlyMany",
  "ReadWriteMany",
  "ReadWriteOnce",
  "ReadWriteOncePod",
];

function checkAccessModes(
  modes: readonly string[] | undefined,
  why: string,
  fieldPath: FieldPath,
): void {
  if (!modes?.length) {
    fieldPath.required("accessModes", why);
    return;
  }
  for (const mode of modes) {
    if (ACCESS_MODES.includes(mode)) continue;
    fieldPath.notSupported("accessModes", mode, ACCESS_MODES);
  }
  const isOnlyPod = modes.every((mode) => mode === "ReadWriteOncePod");
  if (modes.includes("ReadWriteOncePod") && !isOnlyPod) {
    fieldPath.forbidden(
      "accessModes",
      "may not use ReadWriteOncePod with other access modes",
    );
  }
}

function checkPositive(
  text: string,
  below: string,
  fieldPath: FieldPath,
): void {
  if (Quantity.parse(text).nano > 0n) return;
  fieldPath.invalid(below, text, "must be greater than zero");
}

function checkClaim(
  spec: PersistentVolumeClaimSpec,
  fieldPath: FieldPath,
): void {
  checkAccessModes(
    spec.accessModes,
    "at least 1 access mode is required",
    fieldPath,
  );
  const storage = spec.resources?.requests?.storage;
  if (storage === undefined) fieldPath.required("resources[storage]");
  else checkPositive(storage, "resources[storage]", fieldPath);
  const { storageClassName: name } = spec;
  if (name) {
    fieldPath.problems("storageClassName", name, subdomainProblems(name));
  }
  for (const field of ["dataSource", "dataSourceRef"] as const) {
    const source = spec[field];
    if (source === undefined) continue;
    if (!source.name) fieldPath.required(`${field}.name`);
    if (!source.kind) fieldPath.required(`${field}.kind`);
    if (!source.apiGroup && source.kind !== "PersistentVolumeClaim") {
      fieldPath.invalid(
        field,
        source.kind,
        "must be 'PersistentVolumeClaim' when referencing the default apiGroup",
      );
    }
  }
}

/** Fields of a PersistentVolume spec that are not a volume source. */
const OTHER_FIELDS: readonly string[] = [
  "accessModes",
  "capacity",
  "claimRef",
  "mountOptions",
  "nodeAffinity",
  "persistentVolumeReclaimPolicy",
  "storageClassName",
  "volumeAttributesClassName",
  "volumeMode",
];

function checkVolume(spec: PersistentVolumeSpec, fieldPath: FieldPath): void {
  checkAccessModes(spec.accessModes, "", fieldPath);
  const capacity = Object.entries(spec.capacity ?? {});
  if (capacity.length === 0) fieldPath.required("capacity");
  if (spec.capacity?.storage === undefined || capacity.length > 1) {
    fieldPath.notSupported("capacity", spec.capacity ?? {}, ["storage"]);
  }
  for (const [name, text] of capacity) {
    checkPositive(text, `capacity[${name}]`, fieldPath);
  }
  const sources = Object.keys(spec).filter((field) =>
    !OTHER_FIELDS.includes(field)
  );
  if (sources.length === 0) {
    fieldPath.required("", "must specify a volume type");
  }
  for (const source of sources.slice(1)) {
    fieldPath.forbidden(source, "may not specify more than 1 volume type");
  }
  if (spec.local && !spec.nodeAffinity) {
    fieldPath.required("nodeAffinity", "Local volume requires node affinity");
  }
  const { storageClassName: name } = spec;
  if (name) {
    fieldPath.problems("storageClassName", name, subdomainProblems(name));
  }
}

function checkStorageClass(
  { provisioner, reclaimPolicy, allowedTopologies = [] }: StorageClass,
  fieldPath: FieldPath,
): void {
  if (!provisioner) fieldPath.required("provisioner");
  else {
    const name = provisioner.toLowerCase();
    fieldPath.problems("provisioner", name, qualifiedNameProblems(name));
  }
  if (reclaimPolicy) {
    oneOf(["Delete", "Retain"])(reclaimPolicy, "reclaimPolicy", fieldPath);
  }
  for (const [index, term] of allowedTopologies.entries()) {
    checkTopology(term, fieldPath.child(`allowedTopologies[${index}]`));
  }
}

function checkTopology(
  { matchLabelExpressions = [] }: TopologySelectorTerm,
  fieldPath: FieldPath,
): void {
  for (const [index, { key, values }] of matchLabelExpressions.entries()) {
    const at = fieldPath.child(`matchLabelExpressions[${index}]`);
    required()(values, "values", at);
    for (const [number, value] of (values ?? []).entries()) {
      if (values.indexOf(value) < number) {
        at.duplicate(`values[${number}]`, value);
      }
    }
    at.problems("key", key, qualifiedNameProblems(key));
  }
}

const LIFECYCLE_MODES = ["Persistent", "Ephemeral"];
/** Minimum validity of a token in seconds. */
const MIN_TOKEN_SECONDS = 600;

function checkDriver(spec: CSIDriverSpec, fieldPath: FieldPath): void {
  const audiences = new Set<string>();
  for (
    const [index, { audience = "", expirationSeconds }]
      of (spec.tokenRequests ?? []).entries()
  ) {
    const at = fieldPath.child(`tokenRequests[${index}]`);
    if (audiences.has(audience)) at.duplicate("audience", audience);
    audiences.add(audience);
    if (
      expirationSeconds !== undefined && expirationSeconds < MIN_TOKEN_SECONDS
    ) {
      at.invalid(
        "expirationSeconds",
        expirationSeconds,
        "may not specify a duration less than 10 minutes",
      );
    }
  }
  for (const mode of spec.volumeLifecycleModes ?? []) {
    oneOf(LIFECYCLE_MODES)(mode, "volumeLifecycleModes", fieldPath);
  }
}

function checkCsiNode({ spec }: CSINode, fieldPath: FieldPath): void {
  const names = new Set<string>();
  for (const [index, driver] of (spec.drivers ?? []).entries()) {
    const at = fieldPath.child(`spec.drivers[${index}]`);
    driverName(driver.name, "name", at);
    if (!driver.nodeID) at.required("nodeID");
    if (names.has(driver.name)) at.duplicate("name", driver.name);
    names.add(driver.name);
    const keys = driver.topologyKeys ?? [];
    for (const [number, key] of keys.entries()) {
      if (!key) at.required("");
      if (keys.indexOf(key) < number) at.duplicate("", key);
      at.problems("", key, qualifiedNameProblems(key));
    }
    const count = driver.allocatable?.count;
    if (count !== undefined && count < 0) {
      at.invalid(
        "allocatable.count",
        count,
        "must be greater than or equal to 0",
      );
    }
  }
}

function checkAttachment(
  spec: VolumeAttachmentSpec,
  fieldPath: FieldPath,
): void {
  const { attacher, source, nodeName } = spec;
  driverName(attacher, "attacher", fieldPath);
  const { inlineVolumeSpec, persistentVolumeName } = source ?? {};
  if (!inlineVolumeSpec && persistentVolumeName === undefined) {
    fieldPath.required(
      "source",
      "must specify exactly one of inlineVolumeSpec and persistentVolumeName",
    );
  }
  if (persistentVolumeName !== undefined) {
    fieldPath.problems(
      "source.persistentVolumeName",
      persistentVolumeName,
      subdomainProblems(persistentVolumeName),
    );
  }
  fieldPath.problems("nodeName", nodeName, subdomainProblems(nodeName));
}

/** Validation rules of volumes, claims, storage classes and CSI kinds. */
export const STORAGE_RULES: ValidationRules = [
  check("api.core.v1.PersistentVolumeClaimSpec", checkClaim),
  check("api.core.v1.PersistentVolumeSpec", checkVolume),
  check("api.storage.v1.StorageClass", checkStorageClass),
  check("api.storage.v1.CSINode", checkCsiNode),
  check("api.storage.v1.CSIDriverSpec", checkDriver),
  check(
    "api.storage.v1.CSIStorageCapacity",
    ({ storageClassName, capacity }: CSIStorageCapacity, fieldPath) => {
      fieldPath.problems(
        "storageClassName",
        storageClassName,
        subdomainProblems(storageClassName),
      );
      if (capacity === undefined || Quantity.parse(capacity).nano >= 0n) return;
      fieldPath.invalid(
        "capacity",
        capacity,
        "must be greater than or equal to 0",
      );
    },
  ),
  check("api.storage.v1.VolumeAttachmentSpec", checkAttachment),
];
