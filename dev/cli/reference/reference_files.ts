import { dirname, join } from "node:path";
import type { CrdManifest } from "@coracle/operator/crd";
import { UsageError } from "../command.ts";
import { makeFolder, writeOutput } from "../serving.ts";
import { editorSchema } from "./editor_schema.ts";
import { referencePage } from "./reference_page.ts";

/** Pattern of names that may be parts of a path. */
const NAME = /^[a-z0-9](?:[-a-z0-9.]*[a-z0-9])?$/i;

/**
 * Writes `reference.md` about the kinds of definitions, and a JSON Schema for each
 * version, `GROUP/KIND_VERSION.json`: the names that catalogs of schemas have.
 *
 * @returns Paths of the files in the folder.
 */
export async function writeReference(
  folder: string,
  definitions: readonly CrdManifest[],
): Promise<readonly string[]> {
  const files = new Map([["reference.md", referencePage(definitions)]]);
  for (const definition of definitions) {
    const { group, names, versions } = definition.spec;
    for (
      const name of [
        group,
        names.kind,
        ...versions.map((one) => one.name),
      ]
    ) {
      if (NAME.test(name)) continue;
      throw new UsageError(
        `Cannot write the reference: a group, kind or version must be of letters, digits, dashes and dots: received ${
          JSON.stringify(name)
        }`,
      );
    }
    for (const version of versions) {
      const schema = editorSchema(definition, version);
      files.set(
        `${group}/${names.kind.toLowerCase()}_${version.name}.json`,
        `${JSON.stringify(schema, null, 2)}\n`,
      );
    }
  }
  for (const [path, text] of files) {
    const file = join(folder, path);
    await makeFolder(dirname(file));
    await writeOutput(file, text);
  }
  return [...files.keys()];
}
