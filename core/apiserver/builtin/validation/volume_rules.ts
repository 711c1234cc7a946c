import type {
  CSIVolumeSource,
  HostPathVolumeSource,
  KeyToPath,
  NFSVolumeSource,
  PersistentVolumeClaimVolumeSource,
  ProjectedVolumeSource,
  SecretVolumeSource,
  Volume,
} from "../../../kinds/core_v1.ts";
import { check, type Place, type ValidationRules } from "./place.ts";

function checkVolume(volume: Volume, place: Place): void {
  const sources = Object.keys(volume).filter((field) => field !== "name");
  for (const source of sources.slice(1)) {
    place.forbidden(source, "may not specify more than 1 volume type");
  }
  if (sources.length === 0) {
    place.required("", "must specify a volume type");
  }
}

/** What is wrong with a path below a volume. */
export function checkRelativePath(
  path: string,
  below: string,
  place: Place,
): void {
  if (path.startsWith("/")) {
    place.invalid(below, path, "must be a relative path");
  }
  if (path.split("/").includes("..")) {
    place.invalid(below, path, "must not contain '..'");
  }
}

function checkMode(
  mode: number | undefined,
  below: string,
  place: Place,
): void {
  if (mode === undefined || mode >= 0 && mode <= 0o777) return;
  place.invalid(
    below,
    mode,
    "must be a number between 0 and 0777 (octal), both inclusive",
  );
}

function checkKeyToPath({ key, path, mode }: KeyToPath, place: Place): void {
  if (!key) place.required("key");
  if (!path) place.required("path");
  else checkRelativePath(path, "path", place);
  checkMode(mode, "mode", place);
}

function checkSecretVolume(source: SecretVolumeSource, place: Place): void {
  if (!source.secretName) place.required("secretName");
  checkMode(source.defaultMode, "defaultMode", place);
}

function checkProjected(source: ProjectedVolumeSource, place: Place): void {
  checkMode(source.defaultMode, "defaultMode", place);
  for (const [index, one] of (source.sources ?? []).entries()) {
    const at = place.at(`sources[${index}]`);
    const kinds = Object.keys(one);
    if (kinds.length === 0) at.required("", "must specify exactly one");
    for (const kind of kinds.slice(1)) {
      at.forbidden(kind, "may not specify more than 1 volume type per source");
    }
    if (one.secret && !one.secret.name) at.required("secret.name");
    if (one.configMap && !one.configMap.name) at.required("configMap.name");
    if (one.serviceAccountToken && !one.serviceAccountToken.path) {
      at.required("serviceAccountToken.path");
    }
  }
}

/** What is checked of volumes. */
export const VOLUME_RULES: ValidationRules = [
  check("api.core.v1.Volume", checkVolume),
  check("api.core.v1.KeyToPath", checkKeyToPath),
  check("api.core.v1.SecretVolumeSource", checkSecretVolume),
  check(
    "api.core.v1.ConfigMapVolumeSource",
    (source: { name?: string; defaultMode?: number }, place) => {
      if (!source.name) place.required("name");
      checkMode(source.defaultMode, "defaultMode", place);
    },
  ),
  check("api.core.v1.ProjectedVolumeSource", checkProjected),
  check(
    "api.core.v1.HostPathVolumeSource",
    (source: HostPathVolumeSource, place) => {
      if (!source.path) place.required("path");
      else if (source.path.split("/").includes("..")) {
        place.invalid("path", source.path, "must not contain '..'");
      }
    },
  ),
  check("api.core.v1.NFSVolumeSource", (source: NFSVolumeSource, place) => {
    if (!source.server) place.required("server");
    if (!source.path) place.required("path");
    else if (!source.path.startsWith("/")) {
      place.invalid("path", source.path, "must be an absolute path");
    }
  }),
  check(
    "api.core.v1.PersistentVolumeClaimVolumeSource",
    (source: PersistentVolumeClaimVolumeSource, place) => {
      if (!source.claimName) place.required("claimName");
    },
  ),
  check("api.core.v1.CSIVolumeSource", (source: CSIVolumeSource, place) => {
    if (!source.driver) place.required("driver");
  }),
];
