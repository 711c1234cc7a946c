import { access, readFile } from "node:fs/promises";
import type { UntypedObject } from "@coracle/operator/client";
import { isJsonObject, parseManifests } from "@coracle/operator/internal";

/**
 * Objects of the YAML file beside an operator file, with the same name;
 * undefined if there is no such file.
 */
export async function examplesBeside(
  operator: string,
): Promise<readonly UntypedObject[] | undefined> {
  const beside = operator.replace(/\.[cm]?[jt]sx?$/, ".yaml");
  const exists = await access(beside).then(() => true, () => false);
  return exists ? await readExamples(beside) : undefined;
}

/**
 * Reads the objects of a YAML file.
 *
 * @throws {TypeError} If the file cannot be read, or a document is no object.
 */
export async function readExamples(
  file: string,
): Promise<readonly UntypedObject[]> {
  const text = await readFile(file, "utf8").catch((error: Error) => {
    throw new TypeError(`Cannot read examples: ${error.message}`);
  });
  const values = await parseManifests(text, {
    subject: file,
    refuse: ({ message, at }) => notExamples(file, `${message}${at}`),
  });
  return values.flatMap((value, at) => {
    if (value === null || value === undefined) return [];
    const isObject = isJsonObject(value) && typeof value["kind"] === "string" &&
      typeof value["apiVersion"] === "string" &&
      isJsonObject(value["metadata"]);
    if (!isObject) {
      throw notExamples(file, `another value in document ${at + 1}`);
    }
    return [value as object as UntypedObject];
  });
}

function notExamples(file: string, received: string): TypeError {
  return new TypeError(
    `Cannot read ${file}: each of its documents must be an object with apiVersion, kind and metadata: received ${received}`,
  );
}
