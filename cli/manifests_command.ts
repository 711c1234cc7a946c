import { basename } from "node:path";
import type { Kind } from "../core/api/kind.ts";
import type { CrdManifest } from "../core/crd/crd_object.ts";
import { rbacManifests } from "../core/crd/rbac.ts";
import { operatorAccess } from "../core/operator/operator_access.ts";
import type { OperatorHandle } from "../core/operator/development.ts";
import type { Command } from "./command.ts";
import { UsageError } from "./command.ts";
import {
  describeFile,
  type FileDescription,
  requireOperators,
} from "./operator_file.ts";
import { EXPORT_FLAG } from "./operator_module.ts";
import { textOf } from "./serving.ts";
import { suggestion } from "./suggestion.ts";
import { yamlDocuments } from "./yaml_documents.ts";

/** `coracle manifests`: prints the manifests that deploy an operator. */
export const manifestsCommand: Command = {
  name: "manifests",
  operands: "FILE…",
  count: [1, Infinity],
  summary: "print the manifests that deploy the operators of files",
  description:
    "Prints, as YAML, a Namespace, the CustomResourceDefinitions, a ServiceAccount\n" +
    "with the least RBAC rules, and a Deployment. The rules follow from what the\n" +
    "operators reconcile and watch; name kinds that they only write by --manages.",
  flags: [
    EXPORT_FLAG,
    {
      name: "image",
      value: "IMAGE",
      required: true,
      help: "image whose command runs the operator",
    },
    {
      name: "name",
      value: "NAME",
      help: "name of the operator; by default that of the first file",
    },
    {
      name: "namespace",
      value: "NAME",
      help: "namespace of the operator; by default NAME-system",
    },
    {
      name: "manages",
      value: "KINDS",
      help:
        "built-in kinds that the operator only writes, such as ConfigMap,Service",
    },
  ],
  async run({ flags, operands, terminal }) {
    const files: FileDescription[] = [];
    for (const file of operands) {
      const found = await describeFile(file, {
        export: textOf(flags, EXPORT_FLAG.name),
        operators: true,
      });
      requireOperators(file, found);
      files.push(found);
    }
    const name = textOf(flags, "name") ?? nameOf(operands[0] ?? "");
    const manifests = operatorManifests({
      name,
      namespace: textOf(flags, "namespace") ?? `${name}-system`,
      image: textOf(flags, "image") ?? "",
      controllers: files.flatMap(({ operators }) =>
        operators.flatMap(({ controllers }) => controllers)
      ),
      definitions: files.flatMap(({ definitions }) => definitions),
      managed: await builtInKinds(textOf(flags, "manages") ?? ""),
    });
    terminal.out(await yamlDocuments(manifests));
    return 0;
  },
};

/** Object name derived from the name of a file. */
function nameOf(file: string): string {
  const name = basename(file).replace(/\..*$/, "").toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, "-").replaceAll(/^-+|-+$/g, "");
  if (name !== "") return name;
  throw new UsageError(
    `Cannot name the operator after ${file}: write --name NAME`,
    "manifests",
  );
}

/** Built-in kinds of a list such as `ConfigMap,Service`. */
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

/** Input of {@linkcode operatorManifests}. */
export interface OperatorManifestInput {
  readonly name: string;
  readonly namespace: string;
  readonly image: string;
  readonly controllers: OperatorHandle["controllers"];
  /** CustomResourceDefinitions of its kinds. */
  readonly definitions: readonly CrdManifest[];
  /** Kinds that are written but not watched. */
  readonly managed: readonly Kind[];
}

/** Manifests that deploy an operator, in the order to apply them. */
export function operatorManifests(
  input: OperatorManifestInput,
): readonly unknown[] {
  const { name, namespace, image, controllers, managed } = input;
  const definitions = new Map(
    input.definitions.map((manifest) => [manifest.metadata.name, manifest]),
  );
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
        // Two replicas at the same time would reconcile everything twice.
        strategy: { type: "Recreate" },
        selector: { matchLabels: labels },
        template: { metadata: { labels }, spec: podSpec(name, image) },
      },
    },
  ];
}

/** Pod spec with one unprivileged container. */
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
