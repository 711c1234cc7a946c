import { basename } from "node:path";
import type { Kind } from "../core/api/kind.ts";
import { crdManifest } from "../core/crd/crd_manifest.ts";
import { isDefinedKind } from "../core/crd/kind_definition.ts";
import { rbacManifests } from "../core/crd/rbac.ts";
import { operatorAccess } from "../core/operator/operator_access.ts";
import type { OperatorHandle } from "../core/operator/development.ts";
import type { Command } from "./command.ts";
import { UsageError } from "./command.ts";
import { readOperatorModule, requireOperator } from "./operator_module.ts";
import { textOf } from "./serving.ts";
import { suggestion } from "./suggestion.ts";
import { yamlDocuments } from "./yaml_documents.ts";

/** `coracle manifests`: everything that runs an operator in a cluster. */
export const manifestsCommand: Command = {
  name: "manifests",
  operands: "FILE…",
  count: [1, Infinity],
  summary: "print what runs the operators of files in a cluster",
  description:
    "Prints, as YAML, a Namespace, the CustomResourceDefinitions, an account with\n" +
    "the least rights, and a Deployment. The rights follow from what the operators\n" +
    "reconcile and watch; name with --manages the kinds that they only write.",
  flags: [
    {
      name: "image",
      value: "IMAGE",
      required: true,
      help: "the image whose command runs the operator",
    },
    {
      name: "name",
      value: "NAME",
      help: "what it is called; by default as the first file",
    },
    {
      name: "namespace",
      value: "NAME",
      help: "where it runs; by default NAME-system",
    },
    {
      name: "manages",
      value: "KINDS",
      help: "built-in kinds that it only writes, such as ConfigMap,Service",
    },
  ],
  async run({ flags, operands, terminal }) {
    const controllers: OperatorHandle["controllers"][number][] = [];
    for (const file of operands) {
      const module = await readOperatorModule(file);
      await requireOperator(module, await module.exports);
      for (const operator of module.operators) {
        controllers.push(...operator.controllers);
      }
    }
    const name = textOf(flags, "name") ?? nameOf(operands[0] ?? "");
    const manifests = operatorManifests({
      name,
      namespace: textOf(flags, "namespace") ?? `${name}-system`,
      image: textOf(flags, "image") ?? "",
      controllers,
      managed: await builtInKinds(textOf(flags, "manages") ?? ""),
    });
    terminal.out(await yamlDocuments(manifests));
    return 0;
  },
};

/** A name for objects from that of a file. */
function nameOf(file: string): string {
  const name = basename(file).replace(/\..*$/, "").toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, "-").replaceAll(/^-+|-+$/g, "");
  if (name !== "") return name;
  throw new UsageError(
    `Cannot name the operator after ${file}: write --name NAME`,
    "manifests",
  );
}

/** Finds the built-in kinds of a list such as `ConfigMap,Service`. */
async function builtInKinds(list: string): Promise<readonly Kind[]> {
  const names = list.split(",").map((name) => name.trim())
    .filter((name) => name !== "");
  if (names.length === 0) return [];
  const kinds: Readonly<Record<string, unknown>> = await import(
    "../core/kinds/mod.ts"
  );
  return names.map((name) => {
    const kind = kinds[name];
    if (typeof kind === "object" && kind !== null && "plural" in kind) {
      return kind as Kind;
    }
    throw new UsageError(
      `Cannot run manifests: --manages takes kinds of @coracle/operator/kinds: received "${name}"${
        suggestion(name, Object.keys(kinds))
      }`,
      "manifests",
    );
  });
}

/** What {@linkcode operatorManifests} is made from. */
export interface OperatorManifestOptions {
  readonly name: string;
  readonly namespace: string;
  readonly image: string;
  readonly controllers: OperatorHandle["controllers"];
  /** Kinds that are written without being watched. */
  readonly managed: readonly Kind[];
}

/** Everything that runs an operator in a cluster, in the order to apply it. */
export function operatorManifests(
  options: OperatorManifestOptions,
): readonly unknown[] {
  const { name, namespace, image, controllers, managed } = options;
  const definitions = new Map<string, unknown>();
  for (const { kind } of controllers) {
    if (!isDefinedKind(kind)) continue;
    const manifest = crdManifest(kind);
    definitions.set(manifest.metadata.name, manifest);
  }
  const labels = { "app.kubernetes.io/name": name };
  return [
    { apiVersion: "v1", kind: "Namespace", metadata: { name: namespace } },
    ...definitions.values(),
    ...rbacManifests({
      name,
      namespace,
      access: operatorAccess(controllers, managed),
    }),
    {
      apiVersion: "apps/v1",
      kind: "Deployment",
      metadata: { name, namespace, labels },
      spec: {
        replicas: 1,
        // Two that run at once would do everything twice.
        strategy: { type: "Recreate" },
        selector: { matchLabels: labels },
        template: { metadata: { labels }, spec: podSpec(name, image) },
      },
    },
  ];
}

/** One container without any privilege. */
function podSpec(name: string, image: string): unknown {
  return {
    serviceAccountName: name,
    securityContext: {
      runAsNonRoot: true,
      seccompProfile: { type: "RuntimeDefault" },
    },
    containers: [{
      name: "operator",
      image,
      resources: {
        requests: { cpu: "50m", memory: "96Mi" },
        limits: { memory: "256Mi" },
      },
      securityContext: {
        allowPrivilegeEscalation: false,
        readOnlyRootFilesystem: true,
        capabilities: { drop: ["ALL"] },
      },
    }],
  };
}
