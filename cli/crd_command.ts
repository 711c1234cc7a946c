import type { CrdManifest } from "../core/crd/crd_object.ts";
import type { Command } from "./command.ts";
import { describeFile, requireDefinitions } from "./operator_file.ts";
import { EXPORT_FLAG } from "./operator_module.ts";
import { refusals } from "./refused_definitions.ts";
import { textOf } from "./serving.ts";
import { yamlDocuments } from "./yaml_documents.ts";

export const crdCommand: Command = {
  name: "crd",
  operands: "FILE…",
  count: [1, Infinity],
  summary: "print the CustomResourceDefinitions of the kinds in files",
  description:
    "Prints, as YAML, the CustomResourceDefinitions of the kinds that the files\n" +
    "export or register with an Operator. The operators in them do not run.",
  flags: [EXPORT_FLAG],
  async run({ flags, operands, terminal }) {
    const manifests = new Map<string, CrdManifest>();
    for (const file of operands) {
      const found = await describeFile(file, {
        export: textOf(flags, EXPORT_FLAG.name),
        operators: false,
      });
      requireDefinitions(file, found);
      for (const manifest of found.definitions) {
        manifests.set(manifest.metadata.name, manifest);
      }
    }
    terminal.out(await yamlDocuments([...manifests.values()]));
    const refused = await refusals([...manifests.values()]);
    terminal.say(refused);
    return refused === "" ? 0 : 1;
  },
};
