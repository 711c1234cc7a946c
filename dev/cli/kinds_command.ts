import { readFile } from "node:fs/promises";
import process from "node:process";
import { text as readAll } from "node:stream/consumers";
import type { CrdManifest } from "@coracle/operator/crd";
import { type Command, UsageError } from "./command.ts";
import { typescriptKinds } from "./typescript_kinds.ts";

export const kindsCommand: Command = {
  name: "kinds",
  operands: "CRD.yaml…",
  count: [1, Infinity],
  summary: "print typed kinds for CustomResourceDefinitions in YAML",
  description:
    "Prints TypeScript with the types and descriptors of the kinds that the\n" +
    "CustomResourceDefinitions in the files define, for operators that use kinds\n" +
    "of others: coracle kinds crds.yaml > kinds.ts. The file - is standard input:\n" +
    "kubectl get crd NAME -o yaml | coracle kinds - > kinds.ts",
  flags: {},
  async run({ operands, terminal }) {
    terminal.out(typescriptKinds(await definitionsOf(operands)));
    return 0;
  },
};

/** YAML document: an object or a list of objects. */
export interface Document {
  readonly apiVersion?: string;
  readonly kind?: string;
  readonly items?: readonly Document[];
}

/** Objects of a YAML file or of standard input, with the items of lists. */
export async function documentsOf(
  file: string,
): Promise<readonly Document[]> {
  const input = file === "-" ? readAll(process.stdin) : readFile(file, "utf8");
  const text = await input.catch((error: Error) => {
    throw new UsageError(
      `Cannot read ${file}: it must be a readable file: ${error.message}`,
    );
  });
  const template = /^.*\{\{.*\}\}.*$/m.exec(text)?.[0].trim();
  const { parseAllDocuments } = await import("yaml");
  return parseAllDocuments(text, { stringKeys: true }).flatMap((document) => {
    const [error] = document.errors;
    if (error !== undefined) {
      if (template !== undefined) {
        throw new UsageError(
          `Cannot read ${file}: it is a Helm template, so give what "helm template" prints of its chart: received ${template}`,
        );
      }
      const rule = error.code === "DUPLICATE_KEY"
        ? "YAML, with --- between documents"
        : "YAML";
      throw new UsageError(
        `Cannot read ${file}: it must be ${rule}: received ${
          error.message.split("\n")[0]
        }`,
      );
    }
    const value: Document | null = document.toJS();
    return value?.items ?? (value === null ? [] : [value]);
  });
}

/**
 * CustomResourceDefinitions of YAML files, of which others may hold other
 * objects.
 *
 * @throws {UsageError} If there are files, and none has a definition, or one
 * cannot be read, or a definition is not complete.
 */
export async function definitionsOf(
  files: readonly string[],
): Promise<readonly CrdManifest[]> {
  const definitions: CrdManifest[] = [];
  const others = new Set<string>();
  for (const file of files) {
    for (const document of await documentsOf(file)) {
      if (document.kind !== "CustomResourceDefinition") {
        others.add(document.kind ?? "no kind");
        continue;
      }
      definitions.push(requireDefinition(document, file));
    }
  }
  if (files.length === 0 || definitions.length > 0) return definitions;
  throw new UsageError(
    `Cannot read the kinds of ${files.join(", ")}: ${
      files.length === 1 ? "it has" : "they have"
    } no CustomResourceDefinition: received ${
      [...others].join(", ") || "an empty file"
    }`,
  );
}

/** Refuses a definition that is not complete. */
function requireDefinition(document: Document, file: string): CrdManifest {
  const { spec } = document as Partial<CrdManifest>;
  if (
    document.apiVersion === "apiextensions.k8s.io/v1" &&
    typeof spec?.names?.kind === "string" && Array.isArray(spec.versions)
  ) {
    const { apiVersion: _, ...definition } = document;
    return definition as unknown as CrdManifest;
  }
  throw new UsageError(
    `Cannot read the kinds of ${file}: a definition must be complete and of apiextensions.k8s.io/v1: received ${document.apiVersion}`,
  );
}
