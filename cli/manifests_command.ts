import { basename } from "node:path";
import { isBuiltIn, roleAccess } from "../core/operator/operator_access.ts";
import { readRequests } from "../testing/request_record.ts";
import { type Command, UsageError } from "./command.ts";
import { isLoopback } from "./operator_deployment.ts";
import { describeFile, type FileDescription } from "./operator_file.ts";
import {
  managedKinds,
  type OperatorManifestInput,
  operatorManifests,
  resourceOf,
} from "./operator_manifests.ts";
import { EXPORT_FLAG } from "./operator_module.ts";
import { recordText } from "./recorded_access.ts";
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
