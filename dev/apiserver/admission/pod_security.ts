import type { ObjectMeta, UntypedObject } from "@coracle/operator/client";
import { loadModule, type StatusCause } from "@coracle/operator/internal";
import type { Container, Pod, PodSpec } from "@coracle/operator/kinds";
import { NAMESPACES } from "../namespace_checks.ts";
import { kindSubjectOf } from "../request/resource_request.ts";
import { answerOf } from "../settle.ts";
import { fieldError, invalid } from "../status.ts";
import { type AdmissionPlugin, type Attributes, refusal } from "./admission.ts";
import type { LevelVersion, Violation } from "./pod_security_checks.ts";

const PREFIX = "pod-security.kubernetes.io/";
const PODS = { group: "", plural: "pods" } as const;
const LEVELS = ["privileged", "baseline", "restricted"];
const MODES = ["enforce", "audit", "warn"] as const;

/** Maximum number of pods that are checked against a new policy of their namespace. */
const MAX_PODS = 3_000;

type Policy = Record<typeof MODES[number], LevelVersion>;

/** Resources with a pod template, with the path to it. */
const TEMPLATES: Readonly<Record<string, string>> = {
  "podtemplates": "template",
  "replicationcontrollers": "spec.template",
  "replicasets.apps": "spec.template",
  "deployments.apps": "spec.template",
  "statefulsets.apps": "spec.template",
  "daemonsets.apps": "spec.template",
  "jobs.batch": "spec.template",
  "cronjobs.batch": "spec.jobTemplate.spec.template",
};

type Checks = typeof import("./pod_security_checks.ts");

let checks: Checks | undefined;

/** Pod security checks; loaded when a namespace first asks for them. */
function loadedChecks(): Checks {
  return checks ??= answerOf(
    "pod-security-checks",
    () => loadModule(import("./pod_security_checks.ts")),
  );
}

/** Plug-in that enforces the Pod Security Standards named by the labels of a namespace. */
export const POD_SECURITY: AdmissionPlugin = {
  name: "PodSecurity",
  resources: [
    "namespaces",
    "pods",
    "pods/ephemeralcontainers",
    "pods/resize",
    ...Object.keys(TEMPLATES),
  ],
  validate(attributes): void {
    const { request, object, operation, oldObject } = attributes;
    const { group, plural } = request.definition;
    if (object === undefined) return;
    if (plural === NAMESPACES.plural) return validateNamespace(attributes);
    const isPod = plural === PODS.plural;
    const { labels } = request.context.store.collection(NAMESPACES)
      .get(attributes.namespace) ?? {};
    const { policy, problems } = policyOf(labels);
    if (isPod && operation === "UPDATE" && !isSignificant(object, oldObject)) {
      return;
    }
    const open = (mode: typeof MODES[number]) =>
      policy[mode].level === "privileged";
    if (problems.length === 0 && open("audit") && open("warn")) {
      if (!isPod) return;
      if (open("enforce")) {
        attributes.annotate(`${PREFIX}enforce-policy`, "privileged:latest");
        return;
      }
    }
    const path = TEMPLATES[group === "" ? plural : `${plural}.${group}`];
    const pod = path === undefined ? object : valueAt(object, path);
    if (pod === undefined) return;
    const { spec, metadata = {} } = pod as unknown as Pod;
    evaluate(attributes, { policy, problems }, {
      spec,
      metadata: metadata as ObjectMeta,
      enforces: isPod,
    });
  },
};

function valueAt(
  object: UntypedObject,
  path: string,
): UntypedObject | undefined {
  let value: unknown = object;
  for (const step of path.split(".")) {
    value = (value as Record<string, unknown> | undefined)?.[step];
  }
  return value as UntypedObject | undefined;
}

function evaluate(
  attributes: Attributes,
  { policy, problems }: ReturnType<typeof policyOf>,
  { spec, metadata, enforces }: {
    readonly spec: PodSpec;
    readonly metadata: ObjectMeta;
    readonly enforces: boolean;
  },
): void {
  const { violationsOf } = loadedChecks();
  const found = (mode: typeof MODES[number]) => {
    const violations = violationsOf(policy[mode], spec, metadata);
    return violations.length === 0
      ? undefined
      : `violate PodSecurity "${shown(policy[mode])}": ${detailed(violations)}`;
  };
  if (problems.length > 0) {
    attributes.annotate(
      `${PREFIX}error`,
      `Failed to parse policy: ${
        problems.map(({ field, message }) => `${field}: ${message}`).join(", ")
      }`,
    );
  }
  const audited = found("audit");
  if (audited) {
    attributes.annotate(`${PREFIX}audit-violations`, `would ${audited}`);
  }
  if (enforces) {
    attributes.annotate(`${PREFIX}enforce-policy`, shown(policy.enforce));
    const refused = found("enforce");
    if (refused) {
      throw refusal(attributes, refused.replace("violate", "violates"));
    }
  }
  const warned = found("warn");
  if (warned) attributes.hooks.warn(`would ${warned}`);
}

function shown({ level, version }: LevelVersion): string {
  return `${level}:${version === Infinity ? "latest" : `v1.${version}`}`;
}

function detailed(violations: readonly Violation[]): string {
  return violations.map(({ reason, detail }) => `${reason} (${detail})`)
    .join(", ");
}

/** Security policy in the labels of a namespace; invalid values count as the strictest level. */
function policyOf(
  labels: Readonly<Record<string, string>> = {},
): { policy: Policy; problems: readonly StatusCause[] } {
  const problems: StatusCause[] = [];
  const problem = (label: string, why: string) => {
    const field = `metadata.labels[${label}]`;
    problems.push(fieldError.invalid(field, labels[label], why));
  };
  const parsed = MODES.map((mode): [string, LevelVersion] => {
    const name = `${PREFIX}${mode}`;
    let level = labels[name] ?? "privileged";
    if (!LEVELS.includes(level)) {
      problem(name, `must be one of ${LEVELS.join(", ")}`);
      level = mode === "enforce" ? "restricted" : "privileged";
    }
    const text = labels[`${name}-version`] ?? "latest";
    const minor = /^v1\.(0|[1-9]\d*)$/.exec(text)?.[1];
    if (minor === undefined && text !== "latest") {
      problem(`${name}-version`, 'must be "latest" or "v1.x"');
    }
    const version = minor === undefined ? Infinity : Number(minor);
    return [mode, { level, version }];
  });
  const policy = Object.fromEntries(parsed) as Policy;
  const { enforce } = policy;
  if (
    labels[`${PREFIX}warn`] === undefined &&
    labels[`${PREFIX}enforce`] === enforce.level &&
    enforce.level !== "privileged"
  ) {
    const given = labels[`${PREFIX}warn-version`] !== undefined;
    const { version } = given ? policy.warn : enforce;
    policy.warn = { level: enforce.level, version };
  }
  return { policy, problems };
}

/** Whether an update of a pod changes images or adds containers. */
function isSignificant(
  pod: UntypedObject,
  live: UntypedObject | undefined,
): boolean {
  const images = (object: UntypedObject | undefined) => {
    const { spec } = object as unknown as Pod;
    return [
      spec.containers ?? [],
      spec.initContainers ?? [],
      spec.ephemeralContainers ?? [],
    ].map((containers) =>
      (containers as readonly Container[]).map(({ image }) => image).join(" ")
    ).join("|");
  };
  return images(pod) !== images(live);
}

function validateNamespace(attributes: Attributes): void {
  const { request, object, oldObject, operation, name } = attributes;
  if (request.subresource !== undefined) return;
  const { policy, problems } = policyOf(object?.metadata.labels);
  const before = policyOf(oldObject?.metadata.labels);
  const unchanged = operation === "UPDATE" &&
    JSON.stringify(before.problems) === JSON.stringify(problems);
  if (problems.length > 0 && !unchanged) {
    throw invalid(kindSubjectOf(request, name), problems);
  }
  if (operation !== "UPDATE") return;
  const { enforce } = policy;
  const old = before.policy.enforce;
  const relaxed = enforce.version === old.version &&
    LEVELS.indexOf(enforce.level) <= LEVELS.indexOf(old.level);
  if (enforce.level === "privileged" || relaxed) return;
  for (const warning of existingViolations(attributes, enforce)) {
    attributes.hooks.warn(warning);
  }
}

/** Warnings of the pods that violate a new policy of their namespace. */
function existingViolations(
  { request, name }: Attributes,
  policy: LevelVersion,
): string[] {
  const { violationsOf } = loadedChecks();
  const pods = request.context.store.collection(PODS).scan({ namespace: name });
  const names = new Map<string, string[]>();
  for (const stored of pods.slice(0, MAX_PODS)) {
    const { spec, metadata } = stored.parse() as unknown as Pod;
    const reasons = violationsOf(policy, spec, metadata as ObjectMeta)
      .map(({ reason }) => reason).join(", ");
    if (reasons !== "") {
      names.set(reasons, [...names.get(reasons) ?? [], stored.name]);
    }
  }
  const lines = [...names].map(([reasons, [first, ...others]]) => {
    const more = others.length === 0
      ? ""
      : ` (and ${others.length} other ${others.length === 1 ? "pod" : "pods"})`;
    return `${first}${more}: ${reasons}`;
  }).sort();
  return [
    ...pods.length > MAX_PODS
      ? [
        `new PodSecurity enforce level only checked against the first ${MAX_PODS} of ${pods.length} existing pods`,
      ]
      : [],
    ...lines.length === 0 ? [] : [
      `existing pods in namespace "${name}" violate the new PodSecurity enforce level "${
        shown(policy)
      }"`,
    ],
    ...lines,
  ];
}
