import type { UntypedObject } from "../core/api/object.ts";
import type { CrdManifest } from "../core/crd/crd_object.ts";
import { loadCel } from "../apiserver/crd/cel/cel_library.ts";
import { createCauses } from "../apiserver/crd/definition_rules/crd_rules.ts";

/**
 * Reasons why a server would refuse definitions, such as the estimated cost of a
 * CEL rule, one line each; empty if it accepts them.
 */
export async function refusals(
  definitions: readonly CrdManifest[],
): Promise<string> {
  await loadCel();
  return definitions.flatMap((definition) => {
    const { name } = definition.metadata;
    // The server sets this before it validates.
    const storedVersions = definition.spec.versions
      .filter(({ storage }) => storage).map((version) => version.name);
    const stored = { ...definition, status: { storedVersions } };
    return createCauses(stored as unknown as UntypedObject).map(
      ({ field, message }) =>
        `The server will refuse ${name}: ${field}: ${message}\n`,
    );
  }).join("");
}
