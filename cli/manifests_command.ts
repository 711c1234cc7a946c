import { basename } from "node:path";
import type { Kind } from "../core/api/kind.ts";
import type { CrdManifest } from "../core/crd/crd_object.ts";
import { rbacManifests } from "../core/crd/rbac.ts";
import {
  isBuiltIn,
  operatorAccess,
  roleAccess,
} from "../core/operator/operator_access.ts";
import {
  readRequests,
  type RecordedRequest,
} from "../testing/request_record.ts";
import { builtInKinds } from "./built_in_kinds.ts";
import { type Command, suggestion, UsageError } from "./command.ts";
import { isLoopback, operatorDeployment } from "./operator_deployment.ts";
import {
  describeFile,
  type FileDescription,
  type OperatorDescription,
} from "./operator_file.ts";
import { EXPORT_FLAG } from "./operator_module.ts";
import {
  recordedAccess,
  recordText,
  writtenResources,
} from "./recorded_access.ts";
import { printManifests } from "./manifest_output.ts";
import { textOf } from "./serving.ts";

/** Flags for what the roles of an operator cannot be derived from. */
export const RIGHTS_FLAGS: Command["flags"] = [
  {
    name: "manages",
    value: "KINDS",
    help:
      "built-in kinds that the operator only writes, such as ConfigMap,Service",
  },
  {
    name: "recorded",
    value: "FILE",
    help:
      "requests that coracle dev --record, or tests with CORACLE_RECORD, wrote",
  },
];

export const manifestsCommand: Command = {
  name: "manifests",
  operands: "FILE…",
  count: [1, Infinity],
  summary: "print the manifests that deploy the operators of files",
  description:
    "Prints, as YAML, a Namespace, the CustomResourceDefinitions, a ServiceAccount\n" +
    "with the least RBAC rules, and a Deployment. The rules follow from what the\n" +
    "operators reconcile, own and watch, and from the requests of a recorded run;\n" +
    "standard error says what was assumed.",
  flags: [
    {
      name: "image",
      value: "IMAGE",
      required: true,
      help: "image whose command runs the operator",
    },
    EXPORT_FLAG,
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
    ...RIGHTS_FLAGS,
  ],
  async run({ flags, operands, terminal }) {
    const name = textOf(flags, "name") ?? nameOf(operands[0] ?? "");
    const namespace = textOf(flags, "namespace") ?? `${name}-system`;
    requireLabel("--name", name);
    requireLabel("--namespace", namespace);
    const files: FileDescription[] = [];
    for (const file of operands) {
      const found = await describeFile(file, {
        export: textOf(flags, EXPORT_FLAG.name),
        operators: true,
      });
      files.push(found);
    }
    const record = textOf(flags, "recorded");
    const input: OperatorManifestInput = {
      name,
      namespace,
      image: textOf(flags, "image") ?? "",
      operators: files.flatMap(({ operators }) => operators),
      definitions: files.flatMap(({ definitions }) => definitions),
      managed: await managedKinds(textOf(flags, "manages") ?? ""),
      recorded: record === undefined ? undefined : readRequests(record),
    };
    const seen = input.recorded &&
      `Seen in ${record}, and granted besides the rules of the operator:\n${
        recordText(input.recorded)
      }`;
    return await printManifests(terminal, {
      objects: operatorManifests(input),
      notes: assumptions(input).map((note) => `${note}\n`).join("") +
        (seen ?? ""),
      definitions: input.definitions,
    });
  },
};

/** Refuses a name that the server would refuse. */
function requireLabel(flag: string, name: string): void {
  if (/^[a-z]([-a-z0-9]{0,61}[a-z0-9])?$/.test(name)) return;
  throw new UsageError(
    `Cannot run manifests: ${flag} must be at most 63 lower-case letters, digits and dashes: received "${name}"`,
  );
}

/** Object name derived from the name of a file. */
export function nameOf(file: string): string {
  const name = basename(file).replace(/\..*$/, "").toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, "-").replaceAll(/^-+|-+$/g, "");
  if (name !== "") return name;
  throw new UsageError(
    `Cannot name the operator after ${file}: write --name NAME`,
  );
}

/** Built-in kinds of a list such as `ConfigMap,Service`. */
export async function managedKinds(list: string): Promise<readonly Kind[]> {
  const names = list.split(",").map((name) => name.trim())
    .filter((name) => name !== "");
  if (names.length === 0) return [];
  const kinds = new Map(
    (await builtInKinds()).map((kind) => [kind.kind, kind]),
  );
  return names.map((name) => {
    const kind = kinds.get(name);
    if (kind !== undefined) return kind;
    throw new UsageError(
      `Cannot run manifests: --manages takes kinds of @coracle/operator/kinds: received "${name}"${
        suggestion(name, [...kinds.keys()])
      }`,
    );
  });
}

export interface OperatorManifestInput {
  readonly name: string;
  readonly namespace: string;
  readonly image: string;
  readonly operators: readonly OperatorDescription[];
  readonly definitions: readonly CrdManifest[];
  /** Kinds that are written but not watched. */
  readonly managed: readonly Kind[];
  /** Requests of a recorded run; undefined if there was none. */
  readonly recorded: readonly RecordedRequest[] | undefined;
}

/** Manifests that deploy an operator, in the order to apply them. */
export function operatorManifests(
  input: OperatorManifestInput,
): readonly unknown[] {
  const { name, namespace, image, operators, managed, recorded = [] } = input;
  const definitions = new Map(
    input.definitions.map((manifest) => [manifest.metadata.name, manifest]),
  );
  const writesOthers = othersWritten(input).length > 0;
  const access = operators.flatMap((operator) =>
    operatorAccess(operator, { namespace, managed, writesOthers })
  );
  return [
    { apiVersion: "v1", kind: "Namespace", metadata: { name: namespace } },
    ...definitions.values(),
    ...rbacManifests({
      name,
      namespace,
      access: [...access, ...recordedAccess(recorded, watchedBy(input))],
    }),
    operatorDeployment({ name, namespace, image, operators }),
  ];
}

/** Namespaces that any of the controllers watches. */
function watchedBy(
  { operators, namespace }: OperatorManifestInput,
): "all" | readonly string[] {
  const all = operators.flatMap(({ controllers, settings }) =>
    controllers.map((controller) =>
      controller.settings.namespaces ?? settings.namespaces
    )
  );
  if (all.includes("all")) return "all";
  return all.flatMap((names) =>
    typeof names === "string" ? [namespace] : names
  );
}

/** Recorded resources that the operator writes, besides its primaries and Events. */
function othersWritten(
  { operators, recorded = [] }: OperatorManifestInput,
): readonly string[] {
  const own = operators.flatMap(({ controllers }) =>
    controllers.map(({ kind }) => resourceOf(kind))
  );
  const known = ["events", "leases.coordination.k8s.io", ...own];
  return writtenResources(recorded).filter((name) => !known.includes(name));
}

function resourceOf({ group, plural }: Kind): string {
  return group === "" ? `${plural}` : `${plural}.${group}`;
}

/** What was assumed, for standard error. */
function assumptions(input: OperatorManifestInput): readonly string[] {
  const { operators, managed, recorded } = input;
  const controllers = operators.flatMap((operator) => operator.controllers);
  const notes: string[] = [];
  const foreign = [
    ...new Set(
      controllers.map(({ kind }) => kind).filter(isBuiltIn).map(resourceOf),
    ),
  ];
  if (recorded === undefined) {
    notes.push(
      "Assumed: the operator writes only what it owns, and Events. Requests of ctx.client and writes of other kinds cannot be seen: add these kinds to owns or --manages, or record a run (coracle dev --record FILE) and pass --recorded FILE.",
    );
    if (foreign.length > 0) {
      notes.push(
        `Assumed: it does not write ${
          foreign.join(", ")
        } or their status, which belong to Kubernetes; a recorded run shows if it does.`,
      );
    }
  }
  const written = [
    ...managed,
    ...controllers.flatMap(({ secondaryKinds }) => secondaryKinds),
  ];
  const [roles] = roleAccess(written);
  if (roles !== undefined) {
    notes.push(
      `Granted: ${
        roles.verbs.join(" and ")
      } on all roles, since the operator writes roles or their bindings: limit the rule by resourceNames to those that it may give.`,
    );
  }
  for (const { settings } of operators) {
    const { probes } = settings;
    if (probes === undefined) {
      notes.push(
        "Assumed: no probes, since the operator has none: new Operator({ probes: { port: 8080 } }) adds them.",
      );
    } else if (probes.port === 0 || isLoopback(probes.host)) {
      notes.push(
        `Left out: the probes, since the kubelet cannot reach ${probes.host} port ${probes.port}.`,
      );
    }
  }
  return [...new Set(notes)];
}
