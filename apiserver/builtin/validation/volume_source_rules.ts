import type {
  AWSElasticBlockStoreVolumeSource,
  AzureDiskVolumeSource,
  AzureFileVolumeSource,
  CephFSVolumeSource,
  CinderVolumeSource,
  CSIPersistentVolumeSource,
  CSIVolumeSource,
  EphemeralVolumeSource,
  FCVolumeSource,
  FlexVolumeSource,
  GCEPersistentDiskVolumeSource,
  GitRepoVolumeSource,
  GlusterfsVolumeSource,
  ISCSIVolumeSource,
  LocalVolumeSource,
  NFSVolumeSource,
  PersistentVolumeClaimVolumeSource,
  PhotonPersistentDiskVolumeSource,
  PortworxVolumeSource,
  QuobyteVolumeSource,
  RBDVolumeSource,
  ScaleIOVolumeSource,
  StorageOSVolumeSource,
  VsphereVirtualDiskVolumeSource,
} from "../../../core/kinds/core_v1.ts";
import type { FieldPath } from "../../validation/field_path.ts";
import { labelProblems, subdomainProblems } from "../../validation/names.ts";
import {
  all,
  between,
  checkFields,
  type FieldCheck,
  required,
  requiredText,
} from "./field_checks.ts";
import {
  check,
  type DefinitionRule,
  type ValidationRules,
} from "./validation_rule.ts";

/** Check of the name of a CSI driver, which has a limit of its own. */
export const driverName: FieldCheck = (value, field, fieldPath) => {
  const name = (value ?? "") as string;
  if (name === "") fieldPath.required(field);
  if (name.length > 63) fieldPath.tooLong(field, 63);
  fieldPath.problems(field, name, subdomainProblems(name.toLowerCase()));
};

const REGISTRY: FieldCheck = (value, field, fieldPath) => {
  const hosts = (value ?? "") as string;
  if (hosts === "") {
    fieldPath.required(
      field,
      "must be a host:port pair or multiple pairs separated by commas",
    );
    return;
  }
  for (const host of hosts.split(",")) {
    if (/^[^:]*:[^:]*$/.test(host)) continue;
    fieldPath.invalid(
      field,
      hosts,
      "must be a host:port pair or multiple pairs separated by commas",
    );
  }
};

const DISK_URIS =
  "https://{account-name}.blob.core.windows.net/{container-name}/{disk-name}.vhd";

function checkAzureDisk(
  { diskName, diskURI, kind }: AzureDiskVolumeSource,
  fieldPath: FieldPath,
): void {
  if (!diskName) fieldPath.required("diskName");
  if (!diskURI) fieldPath.required("diskURI");
  if (kind !== "Managed" && !diskURI?.startsWith("https://")) {
    fieldPath.notSupported("diskURI", diskURI ?? "", [DISK_URIS]);
  }
  if (kind === "Managed" && !diskURI?.startsWith("/subscriptions")) {
    fieldPath.notSupported("diskURI", diskURI ?? "", [
      "/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/microsoft.compute/disks/{disk-id}",
    ]);
  }
}

const IQN =
  /^iqn\.\d{4}-\d{2}\.[^:\s]+(?::.*)?$|^eui\.[0-9A-F]{16}$|^naa\.[0-9A-F]{16}(?:[0-9A-F]{16})?$/i;

function checkIscsi(
  { targetPortal, iqn, lun }: ISCSIVolumeSource,
  fieldPath: FieldPath,
  starts = true,
): void {
  if (!targetPortal) fieldPath.required("targetPortal");
  if (!iqn) fieldPath.required("iqn");
  else if (starts && !/^(?:iqn|eui|naa)/.test(iqn)) {
    fieldPath.invalid(
      "iqn",
      iqn,
      "must be valid format starting with iqn, eui, or naa",
    );
  } else if (!IQN.test(iqn)) {
    fieldPath.invalid("iqn", iqn, "must be valid format");
  }
  between(0, 255)(lun, "lun", fieldPath);
}

function checkFibre(
  { targetWWNs = [], wwids = [], lun }: FCVolumeSource,
  fieldPath: FieldPath,
): void {
  if (targetWWNs.length === 0 && wwids.length === 0) {
    fieldPath.required(
      "targetWWNs",
      "must specify either targetWWNs or wwids, but not both",
    );
  }
  if (targetWWNs.length > 0 && wwids.length > 0) {
    fieldPath.invalid(
      "targetWWNs",
      targetWWNs,
      "targetWWNs and wwids can not be specified simultaneously",
    );
  }
  if (targetWWNs.length === 0) return;
  if (lun === undefined) {
    fieldPath.required("lun", "lun is required if targetWWNs is specified");
  } else between(0, 255)(lun, "lun", fieldPath);
}

function checkNfs(
  { server, path = "" }: NFSVolumeSource,
  fieldPath: FieldPath,
): void {
  if (!server) fieldPath.required("server");
  if (path === "") fieldPath.required("path");
  if (!path.startsWith("/")) {
    fieldPath.invalid("path", path, "must be an absolute path");
  }
}

const PATH = required();
const VOLUME = required();
const RBD = { monitors: required(), image: required() };
const CEPH = { monitors: required() };
const AZURE_FILE = { secretName: required(), shareName: required() };
const GLUSTER = { endpoints: required(), path: PATH };
const SCALE_IO = {
  gateway: required(),
  system: required(),
  volumeName: required(),
};
const FLEX = { driver: required() };
const CINDER = { volumeID: VOLUME };
const STORAGE_OS = { volumeName: requiredText(labelProblems) };

/** Same checks for a volume source of Pods and of PersistentVolumes. */
function checkBoth<T>(
  name: string,
  checks: Partial<Record<keyof T & string, FieldCheck>>,
): readonly DefinitionRule[] {
  return [
    checkFields<T>(`api.core.v1.${name}VolumeSource`, checks),
    checkFields<T>(`api.core.v1.${name}PersistentVolumeSource`, checks),
  ];
}

/** Validation rules of volume sources. */
export const VOLUME_SOURCE_RULES: ValidationRules = [
  check("api.core.v1.NFSVolumeSource", checkNfs),
  check("api.core.v1.AzureDiskVolumeSource", checkAzureDisk),
  check("api.core.v1.ISCSIVolumeSource", checkIscsi),
  check(
    "api.core.v1.ISCSIPersistentVolumeSource",
    (source: ISCSIVolumeSource, fieldPath) =>
      checkIscsi(source, fieldPath, false),
  ),
  check("api.core.v1.FCVolumeSource", checkFibre),
  checkFields<PersistentVolumeClaimVolumeSource>(
    "api.core.v1.PersistentVolumeClaimVolumeSource",
    { claimName: required() },
  ),
  checkFields<EphemeralVolumeSource>("api.core.v1.EphemeralVolumeSource", {
    volumeClaimTemplate: required(),
  }),
  checkFields<CSIVolumeSource>("api.core.v1.CSIVolumeSource", {
    driver: driverName,
  }),
  checkFields<CSIPersistentVolumeSource>(
    "api.core.v1.CSIPersistentVolumeSource",
    { driver: driverName, volumeHandle: required() },
  ),
  checkFields<GCEPersistentDiskVolumeSource>(
    "api.core.v1.GCEPersistentDiskVolumeSource",
    { pdName: required(), partition: between(0, 255) },
  ),
  checkFields<AWSElasticBlockStoreVolumeSource>(
    "api.core.v1.AWSElasticBlockStoreVolumeSource",
    { volumeID: required(), partition: between(0, 255) },
  ),
  checkFields<GitRepoVolumeSource>("api.core.v1.GitRepoVolumeSource", {
    repository: required(),
  }),
  ...checkBoth<RBDVolumeSource>("RBD", RBD),
  ...checkBoth<CephFSVolumeSource>("CephFS", CEPH),
  ...checkBoth<CinderVolumeSource>("Cinder", CINDER),
  ...checkBoth<AzureFileVolumeSource>("AzureFile", AZURE_FILE),
  ...checkBoth<GlusterfsVolumeSource>("Glusterfs", GLUSTER),
  ...checkBoth<FlexVolumeSource>("Flex", FLEX),
  ...checkBoth<ScaleIOVolumeSource>("ScaleIO", SCALE_IO),
  ...checkBoth<StorageOSVolumeSource>("StorageOS", STORAGE_OS),
  checkFields<QuobyteVolumeSource>("api.core.v1.QuobyteVolumeSource", {
    registry: REGISTRY,
    volume: VOLUME,
  }),
  checkFields<PortworxVolumeSource>("api.core.v1.PortworxVolumeSource", {
    volumeID: VOLUME,
  }),
  checkFields<VsphereVirtualDiskVolumeSource>(
    "api.core.v1.VsphereVirtualDiskVolumeSource",
    { volumePath: PATH },
  ),
  checkFields<PhotonPersistentDiskVolumeSource>(
    "api.core.v1.PhotonPersistentDiskVolumeSource",
    { pdID: required() },
  ),
  checkFields<LocalVolumeSource>("api.core.v1.LocalVolumeSource", {
    path: all(PATH),
  }),
];
