import { Quantity } from "../../../core/api/quantity.ts";
import type {
  EmptyDirVolumeSource,
  HostPathVolumeSource,
  KeyToPath,
  ProjectedVolumeSource,
  SecretVolumeSource,
  ServiceAccountTokenProjection,
  Volume,
} from "../../../core/kinds/core_v1.ts";
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

/** What is wrong with who may do what with a file. */
export function checkMode(
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

/** The shortest that a token in a volume may be valid, in seconds. */
const SHORTEST_TOKEN = 600;

function checkProjected(source: ProjectedVolumeSource, place: Place): void {
  checkMode(source.defaultMode, "defaultMode", place);
  const paths = new Set<string>();
  const claim = (path: string | undefined, shown: string) => {
    if (!path) return;
    if (paths.has(path)) {
      place.invalid("", shown, "conflicting duplicate paths");
    }
    paths.add(path);
  };
  for (const [index, one] of (source.sources ?? []).entries()) {
    const at = place.at(`sources[${index}]`);
    for (const kind of Object.keys(one).slice(1)) {
      at.forbidden(kind, "may not specify more than 1 volume type per source");
    }
    for (const kind of ["secret", "configMap"] as const) {
      const projection = one[kind];
      if (!projection) continue;
      if (!projection.name) at.required(`${kind}.name`);
      for (const { path } of projection.items ?? []) {
        claim(path, projection.name ?? "");
      }
    }
    for (const { path } of one.downwardAPI?.items ?? []) claim(path, path);
    checkTokenProjection(one.serviceAccountToken, at, place);
  }
}

function checkTokenProjection(
  token: ServiceAccountTokenProjection | undefined,
  place: Place,
  volume: Place,
): void {
  if (!token) return;
  const { path, expirationSeconds = SHORTEST_TOKEN } = token;
  if (expirationSeconds < SHORTEST_TOKEN) {
    place.invalid(
      "serviceAccountToken.expirationSeconds",
      expirationSeconds,
      "may not specify a duration less than 10 minutes",
    );
  }
  if (expirationSeconds > 2 ** 32) {
    place.invalid(
      "serviceAccountToken.expirationSeconds",
      expirationSeconds,
      "may not specify a duration larger than 2^32 seconds",
    );
  }
  if (!path) volume.required("path");
  else checkRelativePath(path, "path", volume);
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
  check("api.core.v1.EmptyDirVolumeSource", (
    { sizeLimit = "0" }: EmptyDirVolumeSource,
    place,
  ) => {
    if (Quantity.parse(sizeLimit).nano >= 0n) return;
    place.forbidden(
      "sizeLimit",
      "SizeLimit field must be a valid resource quantity",
    );
  }),
];
