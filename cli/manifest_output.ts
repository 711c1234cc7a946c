import type { UntypedObject } from "../core/api/object.ts";
import type { CrdManifest } from "../core/crd/crd_object.ts";
import { loadCel } from "../apiserver/crd/cel/cel_library.ts";
import { createCauses } from "../apiserver/crd/definition_rules/crd_rules.ts";
import type { Terminal } from "./command.ts";

/**
 * Prints objects as YAML, notes, and the reasons why a server would refuse the
 * definitions, such as the estimated cost of a CEL rule.
 *
 * @returns The exit code: 1 if a server would refuse a definition.
 */
export async function printManifests(
  terminal: Terminal,
  { objects, notes = "", definitions }: {
    readonly objects: readonly unknown[];
    readonly notes?: string;
    readonly definitions: readonly CrdManifest[];
  },
): Promise<number> {
  const { stringify } = await import("yaml");
  const documents = objects.map((object) =>
    stringify(object, { aliasDuplicateObjects: false, lineWidth: 0 })
  );
  terminal.out(documents.join("---\n"));
  await loadCel();
  const refused = definitions.flatMap(refusals).join("");
  terminal.say(notes + refused);
  return refused === "" ? 0 : 1;
}

function refusals(definition: CrdManifest): readonly string[] {
  const { name } = definition.metadata;
  // The server sets this before it validates.
  const storedVersions = definition.spec.versions
    .filter(({ storage }) => storage).map((version) => version.name);
  const stored = { ...definition, status: { storedVersions } };
  return createCauses(stored as unknown as UntypedObject).map(
    ({ field, message }) =>
      `The server will refuse ${name}: ${field}: ${message}\n`,
  );
}
