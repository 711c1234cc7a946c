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
    const definitions: CrdManifest[] = [];
    for (const file of operands) definitions.push(...await definitionsOf(file));
    terminal.out(typescriptKinds(definitions));
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

/** CustomResourceDefinitions of a YAML file. */
export async function definitionsOf(
  file: string,
): Promise<readonly CrdManifest[]> {
  const documents = await documentsOf(file);
  const definitions = documents.filter(({ kind }) =>
    kind === "CustomResourceDefinition"
  );
  if (definitions.length === 0) {
    const kinds = documents.map(({ kind }) => kind ?? "no kind");
    throw new UsageError(
      `Cannot read the kinds of ${file}: it has no CustomResourceDefinition: received ${
        [...new Set(kinds)].join(", ") || "an empty file"
      }`,
    );
  }
  for (const { apiVersion, ...definition } of definitions) {
    const { spec } = definition as Partial<CrdManifest>;
    if (
      apiVersion === "apiextensions.k8s.io/v1" &&
      typeof spec?.names?.kind === "string" && Array.isArray(spec.versions)
    ) continue;
    throw new UsageError(
      `Cannot read the kinds of ${file}: a definition must be complete and of apiextensions.k8s.io/v1: received ${apiVersion}`,
    );
  }
  return definitions as unknown as readonly CrdManifest[];
}
