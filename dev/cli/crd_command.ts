import type { AdmissionRule } from "@coracle/operator/core";
import type { CrdManifest } from "@coracle/operator/crd";
import type { Command } from "./command.ts";
import { describeFile } from "./operator_file.ts";
import { EXPORT_FLAG } from "./operator_module.ts";
import {
  type ConversionFindings,
  convertedBy,
  sayConversions,
  serviceOf,
} from "./conversions.ts";
import { printManifests } from "./manifest_output.ts";
import {
  EXPLAIN_FLAG,
  type ExportedPolicy,
  policyObjects,
  sayPolicies,
  sayRules,
} from "./policies.ts";
import { textOf } from "./serving.ts";

export const crdCommand: Command = {
  name: "crd",
  operands: "FILE…",
  count: [1, Infinity],
  summary: "print the CustomResourceDefinitions of the kinds in files",
  description:
    "Prints, as YAML, the CustomResourceDefinitions of the kinds that the files\n" +
    "export or register with an Operator, and the admission policies that they\n" +
    "export. The operators in them do not run.\n" +
    "Conversions between versions are tried with generated objects, and refused\n" +
    "if one of them loses or breaks an object.",
  flags: {
    ...EXPORT_FLAG,
    ...EXPLAIN_FLAG,
    "service NAMESPACE/NAME":
      "Service of the operator that converts between versions",
  },
  async run({ flags, operands, terminal }) {
    const service = serviceOf(textOf(flags, "service"));
    const conversions: ConversionFindings[] = [];
    const policies: ExportedPolicy[] = [];
    const rules: AdmissionRule[] = [];
    const manifests = new Map<string, CrdManifest>();
    for (const file of new Set(operands)) {
      const found = await describeFile(file, {
        export: textOf(flags, "export"),
        operators: false,
      });
      conversions.push(...found.conversions);
      policies.push(...found.policies);
      rules.push(...found.rules);
      for (const manifest of found.definitions) {
        manifests.set(manifest.metadata.name, manifest);
      }
    }
    const definitions = convertedBy(
      [...manifests.values()],
      () => service,
      "write --service NAMESPACE/NAME of the Service in front of it",
    );
    const refused = await printManifests(terminal, {
      objects: [...definitions, ...policyObjects(policies)],
      definitions,
    });
    sayPolicies(terminal, policies);
    if (flags["explain"]) sayRules(terminal, rules);
    return Math.max(refused, sayConversions(terminal, conversions));
  },
};
