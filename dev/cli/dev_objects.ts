import { readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { Client, loadConfig, untyped } from "@coracle/operator/client";
import { parseApiVersion } from "@coracle/operator/internal";
import { type Terminal, UsageError } from "./command.ts";
import { manifestsOf } from "./definitions.ts";

/** Object whose kind and name are known. */
interface DevObject {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly name: string };
}

/**
 * Objects of a YAML file, or of all such files of a folder in the order of
 * their names.
 *
 * @throws {UsageError} If there are no objects, or one lacks a kind or name.
 */
export async function objectsOf(
  path: string,
): Promise<readonly DevObject[]> {
  const isFolder = await stat(path).then(
    (found) => found.isDirectory(),
    () => false,
  );
  const files = isFolder
    ? (await readdir(path)).filter((name) => /\.ya?ml$/.test(name)).toSorted()
      .map((name) => join(path, name))
    : [path];
  const objects: DevObject[] = [];
  for (const file of files) {
    for (const document of await manifestsOf(file)) {
      const object = document as Partial<DevObject>;
      if (!object.apiVersion || !object.kind || !object.metadata?.name) {
        throw new UsageError(
          `Cannot apply ${file}: an object must have apiVersion, kind and metadata.name`,
        );
      }
      objects.push(object as DevObject);
    }
  }
  if (objects.length > 0) return objects;
  throw new UsageError(`Cannot apply ${path}: it has no objects`);
}

/** Applies the objects of a path, those without a namespace in `default`. */
export async function applyObjects(
  path: string,
  { kubeconfig, terminal }: {
    readonly kubeconfig: string;
    readonly terminal: Terminal;
  },
): Promise<void> {
  const client = new Client(await loadConfig({ kubeconfig }));
  try {
    for (const { apiVersion, kind, ...object } of await objectsOf(path)) {
      const { metadata } = object;
      await client.apply(untyped({ ...parseApiVersion(apiVersion), kind }), {
        ...object,
        metadata: { namespace: "default", ...metadata },
      });
      terminal.say(`Applied ${kind} ${metadata.name} of ${path}.\n`);
    }
  } catch (error) {
    terminal.say(`Cannot apply ${path}: ${(error as Error).message}\n`);
  } finally {
    await client.close();
  }
}
