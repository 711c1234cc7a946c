import type { AdmissionRule } from "@coracle/operator/core";
import type { CrdManifest } from "@coracle/operator/crd";
import type { Command, CommandTerminal, FlagValues } from "./command.ts";
import { describeFile } from "./operator_file.ts";
import { EXPORT_FLAG } from "./operator_module.ts";
import {
  type ConversionFindings,
  convertedBy,
  sayConversions,
  serviceOf,
} from "./conversions.ts";
import {
  CLUSTER_FLAGS,
  definitionsOf,
  installedDefinitions,
} from "./definitions.ts";
import { printManifests } from "./manifest_output.ts";
import {
  EXPLAIN_FLAG,
  type ExportedPolicy,
  policyObjects,
  sayPolicies,
  sayRules,
} from "./policies.ts";
import { writeReference } from "./reference/reference_files.ts";
import { incompatibleChanges } from "./schema_changes.ts";
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
    "if one of them loses or breaks an object.\n" +
    "With --compare or --context, prints in their place each change that breaks\n" +
    "objects or clients of the earlier definitions, and ends with 1 if there is\n" +
    "one. With --reference, writes a page about the kinds, and a JSON Schema of each\n" +
    "version for editors. The files may then be YAML too.",
  flags: {
    ...EXPORT_FLAG,
    ...EXPLAIN_FLAG,
    "service NAMESPACE/NAME":
      "Service of the operator that converts between versions",
    "reference FOLDER": "folder for reference.md and GROUP/KIND_VERSION.json",
    "compare FILE": "YAML of earlier definitions to compare with",
    ...CLUSTER_FLAGS,
  },
  async run({ flags, operands, terminal }) {
    const service = serviceOf(textOf(flags, "service"));
    const conversions: ConversionFindings[] = [];
    const policies: ExportedPolicy[] = [];
    const rules: AdmissionRule[] = [];
    const manifests = new Map<string, CrdManifest>();
    const reference = textOf(flags, "reference");
    const compares = COMPARISONS.some((flag) => flags[flag] !== undefined);
    for (const file of new Set(operands)) {
      if ((compares || reference !== undefined) && YAML.test(file)) {
        for (const definition of await definitionsOf([file])) {
          manifests.set(definition.metadata.name, definition);
        }
        continue;
      }
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
    if (compares) {
      return await compare([...manifests.values()], flags, terminal);
    }
    if (reference !== undefined) {
      const written = await writeReference(reference, [...manifests.values()]);
      for (const path of written) terminal.say(`Wrote ${reference}/${path}.\n`);
      return 0;
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

/** Flags that name what definitions are compared with. */
const COMPARISONS = ["compare", "context", "kubeconfig"];
const YAML = /(\.ya?ml|^-)$/;

/** Prints what breaks objects of earlier definitions; returns the exit code. */
async function compare(
  definitions: readonly CrdManifest[],
  flags: FlagValues,
  terminal: CommandTerminal,
): Promise<number> {
  const file = textOf(flags, "compare");
  const names = definitions.map(({ metadata }) => metadata.name);
  const earlier = file === undefined
    ? await installedDefinitions(names, flags)
    : await definitionsOf([file]);
  const changes = earlier.flatMap((before) => {
    const definition = definitions.find(({ metadata }) =>
      metadata.name === before.metadata.name
    );
    return definition === undefined
      ? [`${before.metadata.name}: the definition was removed`]
      : incompatibleChanges(definition, before);
  });
  for (const change of changes) terminal.out(`${change}\n`);
  for (const name of names) {
    if (earlier.some(({ metadata }) => metadata.name === name)) continue;
    terminal.say(`${name} is new.\n`);
  }
  terminal.say(
    `${changes.length || "No"} incompatible ${
      changes.length === 1 ? "change" : "changes"
    }.\n`,
  );
  return changes.length > 0 ? 1 : 0;
}
