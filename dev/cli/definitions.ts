import { readFile } from "node:fs/promises";
import process from "node:process";
import { text as readAll } from "node:stream/consumers";
import { Client, loadConfig } from "@coracle/operator/client";
import type { CrdManifest } from "@coracle/operator/crd";
import {
  isJsonObject,
  messageWithCause,
  parseManifests,
} from "@coracle/operator/internal";
import { CustomResourceDefinition } from "@coracle/operator/kinds";
import { type FlagValues, UsageError } from "./command.ts";
import { textOf } from "./serving.ts";

/** YAML document: an object or a list of objects. */
export interface Document {
  readonly apiVersion?: string;
  readonly kind?: string;
  readonly items?: readonly Document[];
}

/** Flags that select a cluster whose definitions are read. */
export const CLUSTER_FLAGS = {
  "context NAME": "context of the kubeconfig; by default the current one",
  "kubeconfig FILE": "kubeconfig; by default as kubectl finds it",
} as const;

/** Where projects publish the definitions of their newest release. */
export const PUBLISHED: Readonly<Record<string, string>> = {
  "argo-cd":
    "https://raw.githubusercontent.com/argoproj/argo-cd/stable/manifests/install.yaml",
  "cert-manager":
    "https://github.com/cert-manager/cert-manager/releases/latest/download/cert-manager.crds.yaml",
  flux: "https://github.com/fluxcd/flux2/releases/latest/download/install.yaml",
  "gateway-api":
    "https://github.com/kubernetes-sigs/gateway-api/releases/latest/download/standard-install.yaml",
  "prometheus-operator":
    "https://github.com/prometheus-operator/prometheus-operator/releases/latest/download/stripped-down-crds.yaml",
};

/** Largest answer, in bytes, and time limit of a download, in milliseconds. */
const LARGEST = 64 * 1024 * 1024;
const DOWNLOAD_LIMIT_MS = 60_000;

/** Objects of a YAML file, a URL or standard input, with the items of lists. */
export async function documentsOf(
  file: string,
): Promise<readonly Document[]> {
  const text = await textAt(file);
  const { parseAllDocuments } = await import("yaml");
  return parseAllDocuments(text, { stringKeys: true }).flatMap((document) => {
    const [error] = document.errors;
    if (error !== undefined) {
      const [why = ""] = error.message.split("\n");
      throw notYaml({ file, text }, error.code, why);
    }
    return objectsIn(document.toJS());
  });
}

/** Objects as {@linkcode documentsOf} reads them, with the values that kubectl reads. */
export async function manifestsOf(
  file: string,
): Promise<readonly Document[]> {
  const text = await textAt(file);
  const values = await parseManifests(text, {
    subject: file,
    refuse: ({ code, message, at }) =>
      notYaml({ file, text }, code, `${message}${at}`),
  });
  return values.flatMap(objectsIn);
}

/** Objects of a document: the items of a list, or the document itself. */
function objectsIn(value: unknown): readonly Document[] {
  const items = isJsonObject(value) ? value["items"] : undefined;
  const all: readonly unknown[] = Array.isArray(items) ? items : [value];
  return all.filter((one) => one !== null && one !== undefined) as Document[];
}

function notYaml(
  { file, text }: { readonly file: string; readonly text: string },
  code: string,
  why: string,
): UsageError {
  const template = /^.*\{\{.*\}\}.*$/m.exec(text)?.[0].trim();
  if (template !== undefined) {
    return new UsageError(
      `Cannot read ${file}: it is a Helm template, so give what "helm template" prints of its chart: received ${template}`,
    );
  }
  const rule = code === "DUPLICATE_KEY"
    ? "YAML, with --- between documents"
    : "YAML";
  return new UsageError(
    `Cannot read ${file}: it must be ${rule}: received ${why}`,
  );
}

/**
 * CustomResourceDefinitions of YAML files. Some files may have only other
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

/** Text of a file, of a URL, or of standard input. */
async function textAt(file: string): Promise<string> {
  try {
    if (/^https?:\/\//.test(file)) return await download(file);
    return await (file === "-"
      ? readAll(process.stdin)
      : readFile(file, "utf8"));
  } catch (error) {
    if (error instanceof UsageError) throw error;
    throw new UsageError(
      `Cannot read ${file}: it must be a readable file or URL: ${
        messageWithCause(error)
      }`,
    );
  }
}

async function download(url: string): Promise<string> {
  const signal = AbortSignal.timeout(DOWNLOAD_LIMIT_MS);
  const response = await fetch(url, { signal });
  if (!response.ok) {
    throw new UsageError(
      `Cannot read ${url}: the server must have it: received ${response.status} ${response.statusText}`,
    );
  }
  const decoder = new TextDecoder();
  let bytes = 0;
  let text = "";
  for await (const chunk of response.body ?? []) {
    bytes += chunk.byteLength;
    if (bytes > LARGEST) {
      throw new UsageError(
        `Cannot read ${url}: it must have at most ${LARGEST} bytes: received more`,
      );
    }
    text += decoder.decode(chunk, { stream: true });
  }
  return text + decoder.decode();
}

/**
 * Definitions that a cluster has, by their names, such as `boats.sea.example`, or
 * all of a group, such as `sea.example`.
 *
 * @returns Those that are installed.
 */
export async function installedDefinitions(
  names: readonly string[],
  flags: FlagValues,
): Promise<readonly CrdManifest[]> {
  const client = new Client(
    await loadConfig({
      kubeconfig: textOf(flags, "kubeconfig"),
      context: textOf(flags, "context"),
    }),
  );
  const wanted = new Set(names);
  const found: unknown[] = [];
  try {
    for await (const one of client.listAll(CustomResourceDefinition)) {
      const isWanted = wanted.has(one.metadata.name) ||
        wanted.has(one.spec.group);
      if (isWanted) found.push(one);
    }
  } finally {
    await client.close();
  }
  return found as CrdManifest[];
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
