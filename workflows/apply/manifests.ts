import { Buffer } from "node:buffer";
import { readdir, stat } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { escaped } from "../../core/api/input.ts";
import type { UntypedObject } from "../../core/api/object.ts";
import { checkOption, typeText } from "../../core/api/options.ts";
import { outsideWork } from "../../core/clock.ts";
import { fileFault, readLimited } from "../../core/config/limited_file.ts";
import { parseManifests } from "../../core/config/yaml_text.ts";
import { isJsonObject } from "../../core/patch/json_value.ts";

/**
 * Reads the objects of a YAML or JSON text, as `kubectl apply` does: of all its
 * documents, and of the lists among them. `0644` is an octal number, `yes` is true.
 *
 * @param text The text; at most 200,000 line breaks and commas.
 * @param options `name` is the name of the text for errors (`"manifests"` by
 * default).
 * @throws {TypeError} If it is no YAML, or a document is no object with apiVersion,
 * kind and name.
 * @throws {RangeError} If it is too large.
 *
 * @example
 * ```ts
 * import { fromYaml } from "@coracle/operator/workflows";
 *
 * const [web] = await fromYaml(`
 * apiVersion: v1
 * kind: ConfigMap
 * metadata: { name: web }
 * `);
 * if (web?.metadata.name !== "web") throw new Error("Unexpected object");
 * ```
 */
export async function fromYaml(
  text: string,
  options: { readonly name?: string | undefined } = {},
): Promise<UntypedObject[]> {
  const subject = "fromYaml()";
  checkOption(text, "string", { name: "text", subject });
  checkOption(options, "object", { name: "options", subject });
  const { name = "manifests" } = options;
  checkOption(name, "name", { name: "name", subject });
  const documents = await parseManifests(text, {
    subject: name,
    // The messages of the parser may quote the text, which may have passwords.
    refuse: ({ code, at }) =>
      new TypeError(
        `Cannot read ${name}: it must be YAML, with --- between documents: received ${code}${at}`,
      ),
  });
  return manifestObjects(documents, name);
}

/** Maximum size of a file, and of the files of a call together, in bytes. */
const MAX_BYTES = 16 << 20;
/** Maximum number of files of a call. */
const MAX_FILES = 1_000;
/** Maximum depth of the folders below a path, and of lists in lists. */
const MAX_DEPTH = 20;

/**
 * Reads the objects of YAML and JSON files, as {@linkcode fromYaml} does.
 *
 * @param paths Files, or folders whose files that end in `.yaml`, `.yml` or `.json`
 * are read, also those of their folders; `*` in the name of a file stands for any
 * characters. What begins with a dot is left out, so that a folder may be a mounted
 * ConfigMap. At most 1,000 files and 16 MiB are read.
 * @throws {Error} If a file or folder cannot be read, or a pattern has no files.
 * @throws {TypeError | RangeError} As `fromYaml` does; the error names the file.
 */
export async function fromFiles(
  ...paths: readonly string[]
): Promise<UntypedObject[]> {
  for (const path of paths) {
    checkOption(path, "name", { name: "path", subject: "fromFiles()" });
  }
  const texts = await outsideWork(readTexts(paths));
  const objects: UntypedObject[] = [];
  for (const [name, text] of texts) {
    objects.push(...await fromYaml(text, { name }));
  }
  return objects;
}

async function readTexts(
  paths: readonly string[],
): Promise<readonly [path: string, text: string][]> {
  const texts: [string, string][] = [];
  let rest = MAX_BYTES;
  for (const path of paths) {
    for (const file of await filesOf(path)) {
      if (texts.length === MAX_FILES) {
        throw new RangeError(
          `Cannot read ${path}: there must be at most ${MAX_FILES} files`,
        );
      }
      const text = await readLimited(file, rest).catch((error) => {
        throw unreadable(file, error);
      });
      if (text === undefined) {
        throw new RangeError(
          `Cannot read ${file}: the files must have at most ${MAX_BYTES} bytes together`,
        );
      }
      rest -= Buffer.byteLength(text);
      texts.push([file, text]);
    }
  }
  return texts;
}

function unreadable(path: string, error: unknown): Error {
  return new Error(`Cannot read ${path}: received ${fileFault(error)}`, {
    cause: error,
  });
}

/** Files of a path, by their names. */
async function filesOf(path: string): Promise<readonly string[]> {
  const name = basename(path);
  if (!name.includes("*")) {
    return await isFolder(path) ? await filesIn(path, MANIFEST, MAX_DEPTH) : [
      path,
    ];
  }
  const parts = name.split("*").map((part) =>
    part.replaceAll(/[\\^$.*+?()[\]{}|]/g, "\\$&")
  );
  const pattern = new RegExp(`^${parts.join(".*")}$`);
  const files = await filesIn(dirname(path), pattern, 0);
  if (files.length > 0) return files;
  throw new Error(`Cannot read ${path}: there is no such file`);
}

const MANIFEST = /\.(?:ya?ml|json)$/;

async function filesIn(
  folder: string,
  pattern: RegExp,
  depth: number,
): Promise<readonly string[]> {
  const names = await readdir(folder).catch((error) => {
    throw unreadable(folder, error);
  });
  const files: string[] = [];
  for (const name of names.sort()) {
    if (name.startsWith(".")) continue;
    const path = join(folder, name);
    // By what links lead to, as those of mounted ConfigMaps.
    if (!await isFolder(path)) {
      if (pattern.test(name)) files.push(path);
    } else if (depth > 0) {
      files.push(...await filesIn(path, pattern, depth - 1));
    }
    if (files.length > MAX_FILES) break;
  }
  return files;
}

async function isFolder(path: string): Promise<boolean> {
  try {
    return (await stat(path)).isDirectory();
  } catch (error) {
    throw unreadable(path, error);
  }
}

/**
 * Returns the objects among values from outside: those of lists in their place, and
 * none for empty documents. The status is left out, as only the controller of a kind
 * may write it.
 *
 * @param source Name of their source, for errors.
 * @throws {TypeError} If they are no list, or one is no object with apiVersion, kind
 * and name.
 */
export function manifestObjects(
  values: Iterable<unknown>,
  source: string,
): UntypedObject[] {
  if (typeof Object(values)[Symbol.iterator] !== "function") {
    throw new TypeError(
      `Cannot read ${source}: they must be a list: received ${
        typeText(values)
      }`,
    );
  }
  const objects: UntypedObject[] = [];
  const open: Iterator<unknown>[] = [values[Symbol.iterator]()];
  for (let number = 1; open.length > 0;) {
    const { done, value } = open.at(-1)!.next();
    if (done) {
      open.pop();
      continue;
    }
    if (value === null || value === undefined) continue;
    const { kind, items } = Object(value) as Record<string, unknown>;
    const isList = Array.isArray(items) || items === null;
    if (String(kind).endsWith("List") && isList) {
      if (open.length > MAX_DEPTH) {
        throw new RangeError(
          `Cannot read ${source}: its lists are nested more than ${MAX_DEPTH} times`,
        );
      }
      open.push((items ?? [])[Symbol.iterator]());
    } else objects.push(manifestObject(value, `${source}, object ${number++}`));
  }
  return objects;
}

function manifestObject(value: unknown, place: string): UntypedObject {
  const refuse = (expected: string, received: unknown) =>
    new TypeError(
      `Cannot read ${place}: it must ${expected}: received ${
        typeof received === "string"
          ? `"${escaped(received.slice(0, 100))}"`
          : typeText(received)
      }`,
    );
  if (!isJsonObject(value)) throw refuse("be an object", value);
  const { apiVersion, kind, metadata } = value;
  for (const [name, text] of Object.entries({ apiVersion, kind })) {
    if (typeof text !== "string" || text === "") {
      throw refuse(`have "${name}"`, text);
    }
  }
  place += `, a ${escaped(String(kind).slice(0, 100))}`;
  const { name, namespace } = Object(metadata) as Record<string, unknown>;
  if (typeof name !== "string" || name === "") {
    throw refuse("have a metadata.name that is text", name);
  }
  if (typeof (namespace ?? "") !== "string") {
    throw refuse("have a metadata.namespace that is text", namespace);
  }
  for (const field of ["labels", "annotations"]) {
    const given = (metadata as Record<string, unknown>)[field] ?? {};
    if (isJsonObject(given)) continue;
    throw refuse(`have a metadata.${field} that is an object`, given);
  }
  const { status: _, ...object } = value;
  return object as unknown as UntypedObject;
}
