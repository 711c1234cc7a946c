import type { APIService } from "../../../core/kinds/apiregistration_v1.ts";
import type { CertificateSigningRequestSpec } from "../../../core/kinds/certificates_v1.ts";
import type { Node } from "../../../core/kinds/core_v1.ts";
import type { ClusterRole } from "../../../core/kinds/rbac_v1.ts";
import type { FieldPath } from "../../validation/field_path.ts";
import {
  label1035Problems,
  labelValueProblems,
  qualifiedNameProblems,
  subdomainProblems,
} from "../../validation/names.ts";
import { oneOf, optionalText } from "./field_checks.ts";
import { shownTexts } from "./go_shown.ts";
import { check, type ValidationRules } from "./validation_rule.ts";
import { networkProblems } from "./value_problems.ts";

const HIGHEST_GROUP_PRIORITY = 20_000;
const HIGHEST_VERSION_PRIORITY = 1_000;

function checkApiService(
  { metadata, spec }: APIService,
  fieldPath: FieldPath,
): void {
  const { group = "", version = "", service } = spec ?? {};
  const name = `${version}.${group}`;
  if (metadata.name !== name) {
    fieldPath.invalid(
      "metadata.name",
      metadata.name,
      `must be \`spec.version+"."+spec.group\`: ${JSON.stringify(name)}`,
    );
  }
  const at = fieldPath.child("spec");
  if (group !== "") at.problems("group", group, subdomainProblems(group));
  else if (version !== "v1") {
    at.required(
      "group",
      "only v1 may have an empty group and it better be legacy kube",
    );
  }
  at.problems("version", version, label1035Problems(version));
  const inRange = (field: string, value: number, highest: number) => {
    if (value > 0 && value <= highest) return;
    at.invalid(field, value, `must be positive and less than ${highest}`);
  };
  inRange(
    "groupPriorityMinimum",
    spec?.groupPriorityMinimum ?? 0,
    HIGHEST_GROUP_PRIORITY,
  );
  inRange(
    "versionPriority",
    spec?.versionPriority ?? 0,
    HIGHEST_VERSION_PRIORITY,
  );
  if (!service) {
    if (!spec?.insecureSkipTLSVerify) return;
    at.invalid(
      "insecureSkipTLSVerify",
      true,
      "local APIServices may not have insecureSkipTLSVerify",
    );
    return;
  }
  if (!service.namespace) at.required("service.namespace");
  if (!service.name) at.required("service.name");
}

/** Minimum validity of a requested certificate in seconds. */
const MIN_CERTIFICATE_SECONDS = 600;

function checkRequest(
  spec: CertificateSigningRequestSpec,
  fieldPath: FieldPath,
): void {
  const { usages, signerName, expirationSeconds } = spec;
  if (!usages?.length) fieldPath.required("usages");
  for (const [index, usage] of (usages ?? []).entries()) {
    if ((usages ?? []).indexOf(usage) < index) {
      fieldPath.duplicate(`usages[${index}]`, usage);
    }
  }
  checkSigner(signerName, fieldPath);
  if (
    expirationSeconds !== undefined &&
    expirationSeconds < MIN_CERTIFICATE_SECONDS
  ) {
    fieldPath.invalid(
      "expirationSeconds",
      expirationSeconds,
      `may not specify a duration less than ${MIN_CERTIFICATE_SECONDS} seconds (10 minutes)`,
    );
  }
}

function checkSigner(name: string | undefined, fieldPath: FieldPath): void {
  if (!name) {
    fieldPath.required("signerName");
    return;
  }
  const [domain = "", path, ...rest] = name.split("/");
  if (path === undefined || rest.length > 0) {
    fieldPath.invalid(
      "signerName",
      name,
      "must be a fully qualified domain and path of the form 'example.com/signer-name'",
    );
    return;
  }
  fieldPath.problems("signerName", domain, subdomainProblems(domain));
  if (domain.split(".").length < 2) {
    fieldPath.invalid(
      "signerName",
      domain,
      "should be a domain with at least two segments separated by dots",
    );
  }
}

const EFFECTS = ["NoSchedule", "PreferNoSchedule", "NoExecute"];

/** Checks a Node; as upstream, messages locate taints in `metadata.taints`. */
function checkNode({ spec = {} }: Node, fieldPath: FieldPath): void {
  const pairs = new Set<string>();
  for (const [index, taint] of (spec.taints ?? []).entries()) {
    const at = fieldPath.child(`metadata.taints[${index}]`);
    const { key, value, effect } = taint;
    at.problems("key", key, qualifiedNameProblems(key));
    optionalText(labelValueProblems)(value, "value", at);
    if (!effect) at.required("effect");
    else oneOf(EFFECTS)(effect, "effect", at);
    if (effect && pairs.has(`${key} ${effect}`)) {
      const name = JSON.stringify(key);
      const what = JSON.stringify(effect);
      fieldPath.child(`metadata.taints[${index}]`).duplicateShown(
        `core.Taint{Key:${name}, Value:${
          JSON.stringify(value ?? "")
        }, Effect:${what}, TimeAdded:<nil>}: taints must be unique by key and effect pair`,
      );
    }
    pairs.add(`${key} ${effect}`);
  }
  const ranges = spec.podCIDRs ?? [];
  const at = fieldPath.child("spec");
  for (const [index, range] of ranges.entries()) {
    at.problems(`podCIDRs[${index}]`, range, networkProblems(range));
  }
  const families = ranges.map((range) => range.includes(":"));
  if (new Set(families).size < families.length) {
    at.invalidShown(
      "podCIDRs",
      shownTexts(ranges),
      "may specify no more than one CIDR for each IP family",
    );
  }
  for (const [index, range] of ranges.entries()) {
    if (ranges.indexOf(range) < index) {
      at.duplicate(`podCIDRs[${index}]`, range);
    }
  }
}

function checkAggregation(
  { aggregationRule }: ClusterRole,
  fieldPath: FieldPath,
): void {
  if (!aggregationRule || aggregationRule.clusterRoleSelectors?.length) return;
  fieldPath.required(
    "aggregationRule.clusterRoleSelectors",
    "at least one clusterRoleSelector required if aggregationRule is non-nil",
  );
}

/** Validation rules of Nodes, CSI drivers, certificate requests and similar kinds. */
export const REGISTRATION_RULES: ValidationRules = [
  check(
    "kube-aggregator.pkg.apis.apiregistration.v1.APIService",
    checkApiService,
  ),
  check("api.certificates.v1.CertificateSigningRequestSpec", checkRequest),
  check("api.core.v1.Node", checkNode),
  check("api.rbac.v1.ClusterRole", checkAggregation),
];
