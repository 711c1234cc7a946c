import { Quantity } from "../../../core/api/quantity.ts";
import type {
  ConfigMapEnvSource,
  ConfigMapKeySelector,
  Container,
  DownwardAPIProjection,
  DownwardAPIVolumeFile,
  DownwardAPIVolumeSource,
  EnvVarSource,
  ObjectFieldSelector,
  ResourceFieldSelector,
} from "../../../core/kinds/core_v1.ts";
import type { FieldPath } from "../../validation/field_path.ts";
import {
  qualifiedNameProblems,
  subdomainProblems,
} from "../../validation/names.ts";
import { checkFields, requiredText, text } from "./field_checks.ts";
import { check, type ValidationRules } from "./validation_rule.ts";
import { configKeyProblems } from "./value_problems.ts";
import { checkMode, checkRelativePath } from "./volume_rules.ts";

/** Pod fields that downward API references may select. */
const KNOWN_FIELDS: readonly string[] = [
  "metadata.annotations",
  "metadata.labels",
  "metadata.name",
  "metadata.namespace",
  "metadata.uid",
  "spec.nodeName",
  "spec.restartPolicy",
  "spec.serviceAccountName",
  "spec.schedulerName",
  "status.phase",
  "status.hostIP",
  "status.hostIPs",
  "status.podIP",
  "status.podIPs",
];
const VARIABLE_FIELDS: readonly string[] = [
  "metadata.name",
  "metadata.namespace",
  "metadata.uid",
  "spec.nodeName",
  "spec.serviceAccountName",
  "status.hostIP",
  "status.hostIPs",
  "status.podIP",
  "status.podIPs",
];
const FILE_FIELDS: readonly string[] = [
  "metadata.annotations",
  "metadata.labels",
  "metadata.name",
  "metadata.namespace",
  "metadata.uid",
];

function checkFieldRef(
  { fieldPath: label }: ObjectFieldSelector,
  fields: readonly string[],
  fieldPath: FieldPath,
): void {
  if (!label) {
    fieldPath.required("fieldPath");
    return;
  }
  const [, path = label, subscript] = /^(.*)\['(.*)'\]$/.exec(label) ??
    [];
  if (!KNOWN_FIELDS.includes(path)) {
    fieldPath.invalid(
      "fieldPath",
      label,
      `error converting fieldPath: field label not supported: ${path}`,
    );
  } else if (subscript === undefined) {
    if (fields.includes(path)) return;
    fieldPath.notSupported("fieldPath", path, fields);
  } else if (path === "metadata.labels") {
    fieldPath.problems("", subscript, qualifiedNameProblems(subscript));
  } else if (path === "metadata.annotations") {
    const name = subscript.toLowerCase();
    fieldPath.problems("", name, qualifiedNameProblems(name));
  } else fieldPath.invalid("", path, "does not support subscript");
}

const RESOURCES: readonly string[] = [
  "limits.cpu",
  "limits.ephemeral-storage",
  "limits.memory",
  "requests.cpu",
  "requests.ephemeral-storage",
  "requests.memory",
];
const SIZES: readonly string[] = [
  "1",
  "1k",
  "1M",
  "1G",
  "1T",
  "1P",
  "1E",
  "1Ki",
  "1Mi",
  "1Gi",
  "1Ti",
  "1Pi",
  "1Ei",
];

function checkResourceRef(
  { containerName, resource = "", divisor }: Partial<ResourceFieldSelector>,
  needsContainer: boolean,
  fieldPath: FieldPath,
): void {
  if (needsContainer && !containerName) fieldPath.required("containerName");
  else if (!resource) fieldPath.required("resource");
  else if (
    !RESOURCES.includes(resource) &&
    !/^(?:limits|requests)\.hugepages-/.test(resource)
  ) fieldPath.notSupported("resource", resource, RESOURCES);
  const unit = divisor ?? "0";
  if (Quantity.parse(unit).nano === 0n) return;
  if (/^(?:limits|requests)\.cpu$/.test(resource)) {
    if (unit === "1" || unit === "1m") return;
    fieldPath.invalid(
      "divisor",
      resource,
      "only divisor's values 1m and 1 are supported with the cpu resource",
    );
  } else if (/\.(?:memory|ephemeral-storage|hugepages-.*)$/.test(resource)) {
    if (SIZES.includes(unit)) return;
    const what = resource.includes(".hugepages-")
      ? "hugepages"
      : resource.endsWith("memory")
      ? "memory"
      : "local ephemeral storage";
    fieldPath.invalid(
      "divisor",
      resource,
      `only divisor's values ${
        SIZES.join(", ")
      } are supported with the ${what} resource`,
    );
  }
}

function checkVariableSource(
  { fieldRef, resourceFieldRef }: EnvVarSource,
  fieldPath: FieldPath,
): void {
  if (fieldRef) {
    checkFieldRef(fieldRef, VARIABLE_FIELDS, fieldPath.child("fieldRef"));
  }
  if (resourceFieldRef) {
    checkResourceRef(
      resourceFieldRef,
      false,
      fieldPath.child("resourceFieldRef"),
    );
  }
}

/** Checks a file of a downward API volume; as upstream, messages do not contain its index. */
export function checkFile(
  file: DownwardAPIVolumeFile,
  fieldPath: FieldPath,
): void {
  const { path, fieldRef, resourceFieldRef, mode } = file;
  if (!path) fieldPath.required("path");
  else checkRelativePath(path, "path", fieldPath);
  if (fieldRef) {
    checkFieldRef(fieldRef, FILE_FIELDS, fieldPath.child("fieldRef"));
    if (resourceFieldRef) {
      fieldPath.invalid(
        "",
        "resource",
        "fieldRef and resourceFieldRef can not be specified simultaneously",
      );
    }
  } else if (resourceFieldRef) {
    checkResourceRef(
      resourceFieldRef,
      true,
      fieldPath.child("resourceFieldRef"),
    );
  } else {
    fieldPath.required("", "one of fieldRef and resourceFieldRef is required");
  }
  checkMode(mode, "mode", fieldPath);
}

function checkFiles(
  { items }: DownwardAPIVolumeSource | DownwardAPIProjection,
  fieldPath: FieldPath,
): void {
  for (const file of items ?? []) checkFile(file, fieldPath);
}

function checkEnvFrom({ envFrom }: Container, fieldPath: FieldPath): void {
  for (const { configMapRef, secretRef } of envFrom ?? []) {
    if (!configMapRef && !secretRef) {
      fieldPath.invalid(
        "envFrom",
        "",
        "must specify one of: `configMapRef` or `secretRef`",
      );
    } else if (configMapRef && secretRef) {
      fieldPath.invalid(
        "envFrom",
        "",
        "may not have more than one field specified at a time",
      );
    }
  }
}

const NAME = requiredText(subdomainProblems);

/** Validation rules of environment variables and downward API files. */
export const REFERENCE_RULES: ValidationRules = [
  check("api.core.v1.EnvVarSource", checkVariableSource),
  check("api.core.v1.DownwardAPIProjection", checkFiles),
  check("api.core.v1.DownwardAPIVolumeSource", (
    source: DownwardAPIVolumeSource,
    fieldPath,
  ) => {
    checkMode(source.defaultMode, "defaultMode", fieldPath);
    checkFiles(source, fieldPath);
  }),
  check("api.core.v1.Container", checkEnvFrom),
  checkFields<ConfigMapEnvSource>("api.core.v1.ConfigMapEnvSource", {
    name: NAME,
  }),
  checkFields<ConfigMapEnvSource>("api.core.v1.SecretEnvSource", {
    name: NAME,
  }),
  ...["ConfigMapKeySelector", "SecretKeySelector"].map((definition) =>
    checkFields<ConfigMapKeySelector>(`api.core.v1.${definition}`, {
      name: (value, field, fieldPath) =>
        text(subdomainProblems)(value ?? "", field, fieldPath),
      key: requiredText(configKeyProblems),
    })
  ),
];
