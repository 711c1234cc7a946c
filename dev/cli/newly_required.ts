import type { CrdManifest } from "@coracle/operator/crd";
import { schemaChanges, schemaOf } from "./schema_changes.ts";

/**
 * Warnings about fields that a definition requires and that objects written in
 * an older version may lack. The server stores such objects as they were, so
 * that a reconciler reads `undefined` where its type has a value.
 *
 * @param definition New definition.
 * @param earlier Definition that it replaces, if there is one.
 * @returns Sentences, one for each field and version.
 */
export function newlyRequired(
  definition: CrdManifest,
  earlier?: CrdManifest,
): readonly string[] {
  const { spec, metadata } = definition;
  const stored = spec.versions.find(({ storage }) => storage);
  if (stored === undefined || isConverted(definition)) return [];
  const before = earlier?.spec.versions.find(({ name }) =>
    name === stored.name
  );
  const older = [
    ...spec.versions.filter((version) => version !== stored)
      .map((version) => ({ version, which: `${version.name} of` })),
    ...(before === undefined
      ? []
      : [{ version: before, which: `the earlier definition of` }]),
  ];
  return older.flatMap(({ version, which }) =>
    [...schemaChanges(schemaOf(stored), schemaOf(version))]
      .filter(({ isRequired }) => isRequired)
      .map(({ path }) =>
        `Objects of ${which} ${metadata.name} may lack ${path}, which ${stored.name} requires: give it a default, or make it optional.`
      )
  );
}

/** Whether a webhook converts objects, and can fill in what they lack. */
function isConverted({ spec }: CrdManifest): boolean {
  const { conversion } = spec as {
    readonly conversion?: { readonly strategy?: string };
  };
  return conversion?.strategy === "Webhook";
}
