import type { OpenApiSchema } from "@coracle/operator/core";
import type { CrdManifest } from "@coracle/operator/crd";

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
    Array.from(
      requiredFields(
        schemaOf(stored),
        schemaOf(version),
        "",
      ),
      (path) =>
        `Objects of ${which} ${metadata.name} may lack ${path}, which ${stored.name} requires: give it a default, or make it optional.`,
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

function schemaOf(version: CrdManifest["spec"]["versions"][number]) {
  return version.schema?.openAPIV3Schema ?? {};
}

/** Paths of the fields that a schema requires, and an older one does not. */
function* requiredFields(
  newer: OpenApiSchema,
  older: OpenApiSchema,
  path: string,
): Generator<string> {
  const { properties = {}, required = [] } = newer;
  for (const [name, field] of Object.entries(properties)) {
    const at = path === "" ? name : `${path}.${name}`;
    const before = older.properties?.[name];
    const isGiven = before !== undefined &&
      (older.required?.includes(name) || before.default !== undefined);
    const isNeeded = required.includes(name) && field.default === undefined;
    if (isNeeded && !isGiven) yield at;
    else if (before !== undefined) yield* requiredFields(field, before, at);
  }
  if (newer.items !== undefined && older.items !== undefined) {
    yield* requiredFields(newer.items, older.items, `${path}[]`);
  }
  const [values, others] = [
    newer.additionalProperties,
    older.additionalProperties,
  ];
  if (typeof values === "object" && typeof others === "object") {
    yield* requiredFields(values, others, `${path}.*`);
  }
}
