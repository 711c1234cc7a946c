import { basename } from "node:path";
import process from "node:process";
import { isBuiltIn } from "@coracle/operator/internal";
import { roleAccess } from "../testing/operator_access.ts";
import {
  type Command,
  type FlagValues,
  suggestion,
  UsageError,
} from "./command.ts";
import { denoPermissions } from "./deno_permissions.ts";
import {
  type ImageRuntime,
  isLoopback,
  type Variable,
} from "./operator_deployment.ts";
import { memberRoleName, memberRoles } from "./member_roles.ts";
import { RUNTIME } from "./runtime.ts";
import { sayConversions } from "./conversions.ts";
import { describeFile, type FileDescription } from "./operator_file.ts";
import {
  furtherAccess,
  managedKinds,
  type OperatorManifestInput,
  operatorManifests,
  recordedRequests,
  recordText,
  resourceOf,
} from "./operator_manifests.ts";
import { EXPORT_FLAG } from "./operator_module.ts";
import {
  printManifests,
  sayRefusals,
  writeManifests,
  yamlWriter,
} from "./manifest_output.ts";
import {
  EXPLAIN_FLAG,
  policyObjects,
  sayPolicies,
  sayRules,
} from "./policies.ts";
import { listOf, textOf } from "./serving.ts";

/** Flags for rights that cannot be derived from an operator. */
export const RIGHTS_FLAGS = {
  "manages KIND…":
    "built-in kinds that the operator only writes, such as ConfigMap,Service",
  "recorded FILE…":
    "requests that coracle dev --record, or tests with CORACLE_RECORD, wrote",
} as const;

export const manifestsCommand: Command = {
  name: "manifests",
  operands: "FILE…",
  count: [1, Infinity],
  summary: "print the manifests that deploy the operators of files",
  description:
    "Prints, as YAML, a Namespace, the CustomResourceDefinitions, a ServiceAccount\n" +
    "with the least RBAC rules, and a Deployment; or writes them as a Helm chart or a\n" +
    "kustomization, which have a ServiceMonitor, a PodDisruptionBudget and a\n" +
    "NetworkPolicy to switch on. A file that you edit, such as values.yaml, is not\n" +
    "written again. The rules follow from what the operators reconcile, own and\n" +
    "watch, and from the requests of a recorded run; standard error says what was\n" +
    "assumed.",
  required: ["image"],
  flags: {
    "image IMAGE": "image whose command runs the operator",
    "format FORMAT": "yaml, kustomize or helm; by default yaml",
    "output FOLDER": "folder to write a Helm chart or a kustomization to",
    ...EXPORT_FLAG,
    "name NAME": "name of the operator; by default that of the first file",
    "namespace NAME": "namespace of the operator; by default NAME-system",
    "runtime NAME":
      "runtime of the image: node, deno or bun; by default that of this command",
    ...RIGHTS_FLAGS,
    "env NAME…":
      "variables that the container gets as they are here; no secrets",
    ...EXPLAIN_FLAG,
  },
  async run({ flags, operands, terminal }) {
    const name = textOf(flags, "name") ?? nameOf(operands[0] ?? "");
    const namespace = textOf(flags, "namespace") ?? `${name}-system`;
    requireLabel("--name", name);
    requireLabel("--namespace", namespace);
    const image = requireImage(textOf(flags, "image") ?? "");
    const output = outputOf(flags);
    const runtime = runtimeOf(flags);
    const described: FileDescription[] = [];
    for (const file of new Set(operands)) {
      const found = await describeFile(file, {
        export: textOf(flags, "export"),
        operators: true,
      });
      described.push(found);
    }
    const conversions = described.flatMap(({ conversions }) => conversions);
    const records = listOf(flags, "recorded");
    const input: OperatorManifestInput = {
      name,
      namespace,
      image,
      operators: described.flatMap(({ operators }) => operators),
      definitions: described.flatMap(({ definitions }) => definitions),
      policies: described.flatMap(({ policies }) => policies),
      managed: await managedKinds(listOf(flags, "manages")),
      recorded: recordedRequests(records),
      runtime,
      env: variables(listOf(flags, "env"), process.env),
    };
    const further = furtherAccess(input).map(({ request }) => request);
    const seen = records.length === 0
      ? ""
      : further.length === 0
      ? `Seen in ${records}: nothing besides the rules of the operator.\n`
      : `Seen in ${records}, and granted besides the rules of the operator:\n${
        recordText(further)
      }`;
    const finish = () => {
      sayPolicies(terminal, input.policies);
      if (flags["explain"]) {
        sayRules(terminal, described.flatMap(({ rules }) => rules));
      }
      return sayConversions(terminal, conversions);
    };
    const notes = [
      ...assumptions(input),
      ...runtime === "deno"
        ? [
          `Deno needs these permissions, and those for what your own code calls, reads and writes: ${
            denoPermissions(input.operators).join(" ")
          }`,
        ]
        : [],
    ];
    const text = notes.map((note) => `${note}\n`).join("") + seen;
    if (output === undefined) {
      const found = operatorManifests(input);
      const { namespace, definitions, policies, rbac, userRoles } = found;
      const refused = await printManifests(terminal, {
        objects: [
          namespace,
          ...definitions,
          ...rbac,
          ...userRoles,
          ...memberRoles(input),
          ...found.webhooks,
          ...policyObjects(policies),
          ...found.sources,
          found.deployment,
        ],
        notes: text,
        definitions,
      });
      return Math.max(refused, finish());
    }
    const toYaml = await yamlWriter();
    const files = output.format === "helm"
      ? (await import("./helm_chart.ts")).helmChart(input, toYaml)
      : (await import("./kustomization.ts")).kustomization(input, toYaml);
    const kept = await writeManifests(output.folder, files);
    terminal.say(text);
    for (const path of kept) {
      terminal.say(
        `Kept ${output.folder}/${path}, which you may have edited.\n`,
      );
    }
    const { definitions } = operatorManifests(input);
    const refused = await sayRefusals(terminal, definitions);
    return Math.max(refused, finish());
  },
};

/** Runtime of the image. */
function runtimeOf(flags: FlagValues): ImageRuntime {
  const given = textOf(flags, "runtime") ?? RUNTIME;
  const found = RUNTIMES.find((one) => one === given);
  if (found !== undefined) return found;
  throw new UsageError(
    `Cannot run manifests: --runtime must be node, deno or bun: received "${given}"${
      suggestion(given, RUNTIMES)
    }`,
  );
}

const RUNTIMES: readonly ImageRuntime[] = ["node", "deno", "bun"];

/** Variables that decide on the options of an operator, and so on its rights. */
const OPTION_VARIABLE = /^CORACLE_(?:OPERATOR|CONTROLLER)_/;

/**
 * Variables of the container: those that are named, and those with the options
 * that the operators were loaded with.
 *
 * @throws {UsageError} If one that is named is not set.
 */
function variables(
  named: readonly string[],
  environment: Readonly<Record<string, string | undefined>>,
): readonly Variable[] {
  const options = Object.keys(environment)
    .filter((name) => OPTION_VARIABLE.test(name)).sort();
  return [...new Set([...named, ...options])].map((name) => {
    const value = environment[name];
    // What all objects inherit, such as "constructor", is no variable.
    if (typeof value === "string") return { name, value };
    // What stands behind "=" may be a secret.
    const [shown] = name.split("=");
    throw new UsageError(
      `Cannot run manifests: --env names a variable that is not set here: received "${shown}"`,
    );
  });
}

/** Format and folder of files; undefined for YAML on standard output. */
function outputOf(
  flags: FlagValues,
):
  | { readonly format: "helm" | "kustomize"; readonly folder: string }
  | undefined {
  const format = textOf(flags, "format") ?? "yaml";
  const folder = textOf(flags, "output");
  if (format === "yaml") {
    if (folder === undefined) return undefined;
    throw new UsageError(
      "Cannot run manifests: YAML goes to standard output: leave --output out, or write --format helm or --format kustomize",
    );
  }
  if (format !== "helm" && format !== "kustomize") {
    throw new UsageError(
      `Cannot run manifests: --format must be yaml, kustomize or helm: received "${format}"${
        suggestion(format, ["yaml", "kustomize", "helm"])
      }`,
    );
  }
  if (folder === undefined) {
    throw new UsageError(
      `Cannot run manifests: --format ${format} writes files: write --output FOLDER`,
    );
  }
  if (format === "helm" && flags["namespace"] !== undefined) {
    throw new UsageError(
      "Cannot run manifests: a chart is installed into the namespace of its release: leave --namespace out",
    );
  }
  return { format, folder };
}

/** Refuses a name that the server would refuse. */
function requireLabel(flag: string, name: string): void {
  if (/^[a-z]([-a-z0-9]{0,61}[a-z0-9])?$/.test(name)) return;
  throw new UsageError(
    `Cannot run manifests: ${flag} must be at most 63 lower-case letters, digits and dashes: received "${name}"`,
  );
}

const PART = "[a-z0-9]+(?:(?:\\.|__?|-+)[a-z0-9]+)*";
/** Reference to an image: `HOST:PORT/PATH:TAG@DIGEST`. */
const IMAGE = new RegExp(
  "^(?:(?:[a-zA-Z0-9](?:[-a-zA-Z0-9.]*[a-zA-Z0-9])?|\\[[0-9a-fA-F:]+\\])(?::\\d+)?/)?" +
    `${PART}(?:/${PART})*(?::\\w[\\w.-]{0,127})?(?:@\\w+(?:[-_+.]\\w+)*:[0-9a-f]{32,})?$`,
);

/** Refuses an image that no container runtime could pull. */
function requireImage(image: string): string {
  if (IMAGE.test(image)) return image;
  throw new UsageError(
    `Cannot run manifests: --image must be such as registry.example.com/shop:1.0.0, with a path in lower case: received "${image}"`,
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

/** Assumptions about the operators, one per line, for standard error. */
function assumptions(input: OperatorManifestInput): readonly string[] {
  const { operators, managed, recorded } = input;
  const controllers = operators.flatMap((operator) => operator.controllers);
  const written = [
    ...managed,
    ...controllers.flatMap(({ secondaryKinds }) => secondaryKinds),
  ];
  const notes: string[] = [];
  const known = new Set(written.map(resourceOf));
  const foreign = new Set(
    controllers.map(({ kind }) => kind).filter(isBuiltIn).map(resourceOf)
      .filter((resource) => !known.has(resource)),
  );
  if (recorded === undefined) {
    notes.push(
      "Assumed: the operator reads only what it owns or watches, and writes only what it owns, and Events. Other requests of ctx and ctx.client cannot be seen: add their kinds to owns, watches or --manages, or record a run (coracle dev --record FILE) and pass --recorded FILE.",
    );
    if (foreign.size > 0) {
      notes.push(
        `Assumed: it does not write ${
          [...foreign].join(", ")
        } or their status, which belong to Kubernetes; a recorded run shows if it does.`,
      );
    }
  }
  if (controllers.some(({ clusters }) => clusters !== undefined)) {
    notes.push(
      `Printed: the ClusterRole ${
        memberRoleName(input.name)
      }, which is bound to nobody: apply it in each cluster that joins, and bind it there to the account of its kubeconfig.`,
    );
  }
  const [roles] = roleAccess(written);
  if (roles !== undefined) {
    notes.push(
      `Granted: ${
        roles.verbs.join(" and ")
      } on all roles, since the operator writes roles or their bindings: limit the rule by resourceNames to those that it may give.`,
    );
  }
  const places = controllers.flatMap(({ settings }) =>
    Array.isArray(settings.namespaces) ? settings.namespaces : []
  );
  for (const { settings } of operators) {
    if (Array.isArray(settings.namespaces)) places.push(...settings.namespaces);
  }
  if (places.length > 0 && input.env?.length === 0) {
    notes.push(
      `Assumed: the operator watches ${
        [...new Set(places)].join(", ")
      } wherever it runs; where that comes from the environment, name its variables by --env.`,
    );
  }
  const programs = operators.flatMap(({ settings }) => settings.programs ?? []);
  if (programs.length > 0) {
    notes.push(
      `Assumed: the image has the programs of the operator: ${
        [...new Set(programs)].join(", ")
      }.`,
    );
  }
  for (
    const { name, host } of controllers.flatMap(({ listens = [] }) => listens)
  ) {
    if (!isLoopback(host)) continue;
    notes.push(
      `Left out: the port of the event source "${name}", since nobody outside of the pod reaches ${host}.`,
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
