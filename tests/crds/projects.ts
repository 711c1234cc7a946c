import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { parseAllDocuments } from "yaml";

// deno-lint-ignore no-explicit-any -- manifests of any form
export type Manifest = any;

/** Definitions of a public project, and samples of their objects. */
export interface Project {
  readonly name: string;
  readonly definitions: readonly Manifest[];
  /** Samples by group and kind. */
  readonly samples: ReadonlyMap<string, readonly Manifest[]>;
}

/** Key of the samples of a kind. */
export function kindKey(group: string, kind: string): string {
  return `${group}/${kind}`;
}

/**
 * Reads projects from the folders in a folder: definitions of version v1 in their
 * YAML and JSON files, objects of the defined kinds, and the samples that bundles
 * of operators have in the annotation `alm-examples`.
 *
 * @param chosen Names of the folders that are read.
 */
export async function readProjects(
  folder: string,
  chosen: RegExp,
): Promise<Project[]> {
  const projects: Project[] = [];
  for (const name of (await readdir(folder)).sort()) {
    if (!chosen.test(name)) continue;
    const manifests: Manifest[] = [];
    for (const file of (await readdir(join(folder, name))).sort()) {
      if (!/\.(ya?ml|json)$/.test(file)) continue;
      manifests.push(...manifestsIn(
        await readFile(join(folder, name, file), "utf8"),
      ));
    }
    const project = projectOf(name, manifests);
    if (project.definitions.length > 0) projects.push(project);
  }
  return projects;
}

function manifestsIn(text: string): Manifest[] {
  return parseAllDocuments(text).flatMap((document) => {
    if (document.errors.length > 0) return [];
    const value = document.toJS();
    if (value?.kind !== "ClusterServiceVersion") return [value];
    try {
      return JSON.parse(value.metadata.annotations["alm-examples"]);
    } catch {
      return [];
    }
  });
}

function projectOf(name: string, manifests: readonly Manifest[]): Project {
  const definitions = new Map<string, Manifest>();
  const samples = new Map<string, Manifest[]>();
  for (const manifest of manifests) {
    const { apiVersion, kind, metadata, spec } = manifest ?? {};
    if (typeof apiVersion !== "string" || typeof kind !== "string") continue;
    if (kind === "CustomResourceDefinition") {
      if (apiVersion === "apiextensions.k8s.io/v1" && spec?.versions) {
        definitions.set(metadata.name, withoutWebhook(manifest));
      }
      continue;
    }
    const key = kindKey(apiVersion.split("/")[0] ?? "", kind);
    samples.set(key, [...samples.get(key) ?? [], manifest]);
  }
  return { name, definitions: [...definitions.values()], samples };
}

/** Definition as its author applies it, but without a conversion webhook. */
function withoutWebhook(
  { apiVersion, kind, metadata, spec }: Manifest,
): Manifest {
  const { labels, annotations, name } = metadata;
  const { conversion: _, ...rest } = spec;
  return {
    apiVersion,
    kind,
    metadata: { name, labels, annotations },
    spec: rest,
  };
}
