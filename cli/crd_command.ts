import { crdManifest } from "../core/crd/crd_manifest.ts";
import type { Command } from "./command.ts";
import { definedKinds, readOperatorModule } from "./operator_module.ts";
import { yamlDocuments } from "./yaml_documents.ts";

/** `coracle crd`: prints the CustomResourceDefinitions of files as YAML. */
export const crdCommand: Command = {
  name: "crd",
  operands: "FILE…",
  count: [1, Infinity],
  summary: "print the CustomResourceDefinitions of the kinds in files",
  description:
    "Prints, as YAML, the CustomResourceDefinitions of the kinds that the files\n" +
    "export or register with an Operator. The operators in them do not run.",
  flags: [],
  async run({ operands, terminal }) {
    const manifests = new Map<string, unknown>();
    for (const file of operands) {
      const module = await readOperatorModule(file);
      for (const kind of await definedKinds(module)) {
        const manifest = crdManifest(kind);
        manifests.set(manifest.metadata.name, manifest);
      }
    }
    terminal.out(await yamlDocuments([...manifests.values()]));
    return 0;
  },
};
