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
import type { FieldPath } from "../../validation/field_path.ts";
import { check, type ValidationRules } from "./validation_rule.ts";

function checkVolume(volume: Volume, fieldPath: FieldPath): void {
  const sources = Object.keys(volume).filter((field) => field !== "name");
  for (const source of sources.slice(1)) {
    fieldPath.forbidden(source, "may not specify more than 1 volume type");
  }
  if (sources.length === 0) {
    fieldPath.required("", "must specify a volume type");
  }
}

/** Checks a relative path in a volume. */
export function checkRelativePath(
  path: string,
  below: string,
  fieldPath: FieldPath,
): void {
  if (path.startsWith("/")) {
    fieldPath.invalid(below, path, "must be a relative path");
  }
  if (path.split("/").includes("..")) {
    fieldPath.invalid(below, path, "must not contain '..'");
  }
}

/** Checks a file mode. */
export function checkMode(
  mode: number | undefined,
  below: string,
  fieldPath: FieldPath,
): void {
  if (mode === undefined || mode >= 0 && mode <= 0o777) return;
  fieldPath.invalid(
    below,
    mode,
    "must be a number between 0 and 0777 (octal), both inclusive",
  );
}

function checkKeyToPath(
  { key, path, mode }: KeyToPath,
  fieldPath: FieldPath,
): void {
  if (!key) fieldPath.required("key");
  if (!path) fieldPath.required("path");
  else checkRelativePath(path, "path", fieldPath);
  checkMode(mode, "mode", fieldPath);
}

function checkSecretVolume(
  source: SecretVolumeSource,
  fieldPath: FieldPath,
): void {
  if (!source.secretName) fieldPath.required("secretName");
  checkMode(source.defaultMode, "defaultMode", fieldPath);
}

/** Minimum validity of a projected token in seconds. */
const MIN_TOKEN_SECONDS = 600;

function checkProjected(
  source: ProjectedVolumeSource,
  fieldPath: FieldPath,
): void {
  checkMode(source.defaultMode, "defaultMode", fieldPath);
  const paths = new Set<string>();
  const claim = (path: string | undefined, shown: string) => {
    if (!path) return;
    if (paths.has(path)) {
      fieldPath.invalid("", shown, "conflicting duplicate paths");
    }
    paths.add(path);
  };
  for (const [index, projected] of (source.sources ?? []).entries()) {
    const at = fieldPath.child(`sources[${index}]`);
    for (const kind of Object.keys(projected).slice(1)) {
      at.forbidden(kind, "may not specify more than 1 volume type per source");
    }
    for (const kind of ["secret", "configMap"] as const) {
      const projection = projected[kind];
      if (!projection) continue;
      if (!projection.name) at.required(`${kind}.name`);
      for (const { path } of projection.items ?? []) {
        claim(path, projection.name ?? "");
      }
    }
    for (const { path } of projected.downwardAPI?.items ?? []) {
      claim(path, path);
    }
    checkTokenProjection(projected.serviceAccountToken, at, fieldPath);
  }
}

function checkTokenProjection(
  token: ServiceAccountTokenProjection | undefined,
  fieldPath: FieldPath,
  volume: FieldPath,
): void {
  if (!token) return;
  const { path, expirationSeconds = MIN_TOKEN_SECONDS } = token;
  if (expirationSeconds < MIN_TOKEN_SECONDS) {
    fieldPath.invalid(
      "serviceAccountToken.expirationSeconds",
      expirationSeconds,
      "may not specify a duration less than 10 minutes",
    );
  }
  if (expirationSeconds > 2 ** 32) {
    fieldPath.invalid(
      "serviceAccountToken.expirationSeconds",
      expirationSeconds,
      "may not specify a duration larger than 2^32 seconds",
    );
  }
  if (!path) volume.required("path");
  else checkRelativePath(path, "path", volume);
}

/** Validation rules of Pod volumes. */
export const VOLUME_RULES: ValidationRules = [
  check("api.core.v1.Volume", checkVolume),
  check("api.core.v1.KeyToPath", checkKeyToPath),
  check("api.core.v1.SecretVolumeSource", checkSecretVolume),
  check(
    "api.core.v1.ConfigMapVolumeSource",
    (source: { name?: string; defaultMode?: number }, fieldPath) => {
      if (!source.name) fieldPath.required("name");
      checkMode(source.defaultMode, "defaultMode", fieldPath);
    },
  ),
  check("api.core.v1.ProjectedVolumeSource", checkProjected),
  check(
    "api.core.v1.HostPathVolumeSource",
    (source: HostPathVolumeSource, fieldPath) => {
      if (!source.path) fieldPath.required("path");
      else if (source.path.split("/").includes("..")) {
        fieldPath.invalid("path", source.path, "must not contain '..'");
      }
    },
  ),
  check("api.core.v1.EmptyDirVolumeSource", (
    { sizeLimit = "0" }: EmptyDirVolumeSource,
    fieldPath,
  ) => {
    if (Quantity.parse(sizeLimit).nano >= 0n) return;
    fieldPath.forbidden(
      "sizeLimit",
      "SizeLimit field must be a valid resource quantity",
    );
  }),
];
