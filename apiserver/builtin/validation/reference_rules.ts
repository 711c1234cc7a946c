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
import { qualifiedNameProblems, subdomainProblems } from "../../names.ts";
import { checkFields, requiredText, text } from "./field_checks.ts";
import { check, type Place, type ValidationRules } from "./place.ts";
import { configKeyProblems } from "./value_problems.ts";
import { checkMode, checkRelativePath } from "./volume_rules.ts";

/** Fields of a Pod that something in it may refer to. */
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
  { fieldPath }: ObjectFieldSelector,
  fields: readonly string[],
  place: Place,
): void {
  if (!fieldPath) {
    place.required("fieldPath");
    return;
  }
  const [, path = fieldPath, subscript] = /^(.*)\['(.*)'\]$/.exec(fieldPath) ??
    [];
  if (!KNOWN_FIELDS.includes(path)) {
    place.invalid(
      "fieldPath",
      fieldPath,
      `error converting fieldPath: field label not supported: ${path}`,
    );
  } else if (subscript === undefined) {
    if (fields.includes(path)) return;
    place.notSupported("fieldPath", path, fields);
  } else if (path === "metadata.labels") {
    place.problems("", subscript, qualifiedNameProblems(subscript));
  } else if (path === "metadata.annotations") {
    const name = subscript.toLowerCase();
    place.problems("", name, qualifiedNameProblems(name));
  } else place.invalid("", path, "does not support subscript");
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
  place: Place,
): void {
  if (needsContainer && !containerName) place.required("containerName");
  else if (!resource) place.required("resource");
  else if (
    !RESOURCES.includes(resource) &&
    !/^(?:limits|requests)\.hugepages-/.test(resource)
  ) place.notSupported("resource", resource, RESOURCES);
  const unit = divisor ?? "0";
  if (Quantity.parse(unit).nano === 0n) return;
  if (/^(?:limits|requests)\.cpu$/.test(resource)) {
    if (unit === "1" || unit === "1m") return;
    place.invalid(
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
    place.invalid(
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
  place: Place,
): void {
  if (fieldRef) {
    checkFieldRef(fieldRef, VARIABLE_FIELDS, place.at("fieldRef"));
  }
  if (resourceFieldRef) {
    checkResourceRef(resourceFieldRef, false, place.at("resourceFieldRef"));
  }
}

/** What messages say of files does not tell which file. */
export function checkFile(file: DownwardAPIVolumeFile, place: Place): void {
  const { path, fieldRef, resourceFieldRef, mode } = file;
  if (!path) place.required("path");
  else checkRelativePath(path, "path", place);
  if (fieldRef) {
    checkFieldRef(fieldRef, FILE_FIELDS, place.at("fieldRef"));
    if (resourceFieldRef) {
      place.invalid(
        "",
        "resource",
        "fieldRef and resourceFieldRef can not be specified simultaneously",
      );
    }
  } else if (resourceFieldRef) {
    checkResourceRef(resourceFieldRef, true, place.at("resourceFieldRef"));
  } else {
    place.required("", "one of fieldRef and resourceFieldRef is required");
  }
  checkMode(mode, "mode", place);
}

function checkFiles(
  { items }: DownwardAPIVolumeSource | DownwardAPIProjection,
  place: Place,
): void {
  for (const file of items ?? []) checkFile(file, place);
}

function checkEnvFrom({ envFrom }: Container, place: Place): void {
  for (const { configMapRef, secretRef } of envFrom ?? []) {
    if (!configMapRef && !secretRef) {
      place.invalid(
        "envFrom",
        "",
        "must specify one of: `configMapRef` or `secretRef`",
      );
    } else if (configMapRef && secretRef) {
      place.invalid(
        "envFrom",
        "",
        "may not have more than one field specified at a time",
      );
    }
  }
}

const NAME = requiredText(subdomainProblems);

/** What is checked of what containers take from elsewhere. */
export const REFERENCE_RULES: ValidationRules = [
  check("api.core.v1.EnvVarSource", checkVariableSource),
  check("api.core.v1.DownwardAPIProjection", checkFiles),
  check("api.core.v1.DownwardAPIVolumeSource", (
    source: DownwardAPIVolumeSource,
    place,
  ) => {
    checkMode(source.defaultMode, "defaultMode", place);
    checkFiles(source, place);
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
      name: (value, field, place) =>
        text(subdomainProblems)(value ?? "", field, place),
      key: requiredText(configKeyProblems),
    })
  ),
];
