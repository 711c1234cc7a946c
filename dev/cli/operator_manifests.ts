import { type Kind, untyped } from "@coracle/operator/client";
import type { CrdManifest } from "@coracle/operator/crd";
import { Lease, sameKind } from "@coracle/operator/internal";
import {
  type AccessVerb,
  isCovered,
  type KindAccess,
  type RbacManifest,
  rbacManifests,
} from "../testing/rbac.ts";
import {
  conversionAccess,
  operatorAccess,
} from "../testing/operator_access.ts";
import {
  ANY_WATCHED_NAMESPACE,
  readRequests,
  type RecordedRequest,
} from "../testing/request_record.ts";
import {
  builtInKinds,
  type OperatorDescription,
} from "./operator_description.ts";
import { suggestion, UsageError } from "./command.ts";
import {
  type ImageRuntime,
  metricsPorts,
  operatorDeployment,
  operatorLabels,
  POD_SETTINGS,
  podEnvironment,
  sourcePorts,
  type Variable,
} from "./operator_deployment.ts";
import { metricsReader, sourceService } from "./optional_manifests.ts";
import { userRoles } from "./user_roles.ts";
import { conversionService, webhookManifests } from "./webhook_manifests.ts";
import { convertedBy } from "./conversions.ts";
import type { ExportedPolicy } from "./policies.ts";

/** Built-in kinds of a list of names such as `ConfigMap`. */
export async function managedKinds(
  names: readonly string[],
): Promise<readonly Kind[]> {
  if (names.length === 0) return [];
  const kinds = new Map(
    (await builtInKinds()).map((kind) => [kind.kind, kind]),
  );
  return names.map((name) => {
    const kind = kinds.get(name);
    if (kind !== undefined) return kind;
    throw new UsageError(
      `Cannot use --manages: it takes kinds of @coracle/operator/kinds: received "${name}"${
        suggestion(name, [...kinds.keys()])
      }`,
    );
  });
}

/** Operators to deploy, and the sources of their roles. */
export interface OperatorManifestInput {
  readonly name: string;
  readonly namespace: string;
  readonly image: string;
  readonly operators: readonly OperatorDescription[];
  /** Definitions, without the place of their conversion. */
  readonly definitions: readonly CrdManifest[];
  readonly policies: readonly ExportedPolicy[];
  /** Kinds that are written but not watched. */
  readonly managed: readonly Kind[];
  /** Runtime of the image. */
  readonly runtime: ImageRuntime;
  /** Variables of the container besides those of the memory. */
  readonly env?: readonly Variable[] | undefined;
  /** Requests of a recorded run; undefined without a recording. */
  readonly recorded: readonly RecordedRequest[] | undefined;
}

/** Sources of the roles of operators. */
export type RolesInput = Pick<
  OperatorManifestInput,
  "name" | "namespace" | "operators" | "definitions" | "managed" | "recorded"
>;

/** Manifests that deploy an operator, in the order to apply them. */
export interface OperatorManifests {
  readonly namespace: unknown;
  readonly definitions: readonly CrdManifest[];
  /** Admission policies. */
  readonly policies: readonly ExportedPolicy[];
  /** Service account, roles and bindings. */
  readonly rbac: readonly RbacManifest[];
  /**
   * Services and configurations of the webhooks, and what keeps a replica there
   * during a drain; empty without admission.
   */
  readonly webhooks: readonly unknown[];
  /** Roles for the users of the kinds. */
  readonly userRoles: readonly RbacManifest[];
  readonly deployment: unknown;
  /** Service of event sources that are called from outside; empty without any. */
  readonly sources: readonly unknown[];
}

export function operatorManifests(
  input: OperatorManifestInput,
): OperatorManifests {
  const { name, namespace, image, operators, runtime } = input;
  const definitions = convertedBy(
    [
      ...new Map(
        input.definitions.map((manifest) => [manifest.metadata.name, manifest]),
      ).values(),
    ],
    (definition) => conversionService(definition, { namespace, operators }),
    "give the operator the option webhooks: { service: { name } }",
  );
  return {
    namespace: {
      apiVersion: "v1",
      kind: "Namespace",
      metadata: { name: namespace },
    },
    definitions,
    policies: [
      ...new Map(
        input.policies.map((one) => [one.policy.metadata.name, one]),
      ).values(),
    ],
    rbac: operatorRoles(input),
    webhooks: webhookManifests({ name, namespace, operators, definitions }),
    userRoles: userRoles(definitions, {
      name,
      labels: operatorLabels(name),
    }),
    deployment: operatorDeployment({
      name,
      namespace,
      image,
      operators,
      settings: {
        ...POD_SETTINGS,
        env: [...podEnvironment(runtime), ...input.env ?? []],
      },
    }),
    sources: sourceService({ name, namespace, ports: sourcePorts(operators) }),
  };
}

/** Service account of operators, their roles and bindings. */
export function operatorRoles(
  input: RolesInput,
): readonly RbacManifest[] {
  const { name, namespace, operators } = input;
  return [
    ...rbacManifests({
      name,
      namespace,
      access: [
        ...declaredAccess(input),
        ...furtherAccess(input).map(({ access }) => access),
      ],
    }),
    ...metricsPorts(operators).some(({ isSecure }) => isSecure)
      ? [metricsReader({ name })]
      : [],
  ].map((manifest) => ({
    ...manifest,
    metadata: { ...manifest.metadata, labels: operatorLabels(name) },
  }));
}

/** Access that follows from the operators and from the kinds that they manage. */
function declaredAccess(
  input: RolesInput,
): readonly KindAccess[] {
  const { namespace, operators, managed, definitions } = input;
  const writesOthers = othersWritten(input).length > 0;
  const access = operators.flatMap((operator) =>
    operatorAccess(operator, { namespace, managed, writesOthers })
  );
  const converted = definitions.filter(({ spec }) => spec.conversion)
    .map(({ metadata }) => conversionAccess(metadata.name));
  return [...access, ...converted];
}

/** Recorded requests that need more than the declared access, with what they need. */
export function furtherAccess(input: RolesInput): readonly {
  readonly request: RecordedRequest;
  readonly access: KindAccess;
}[] {
  const { recorded = [] } = input;
  const declared = declaredAccess(input);
  const needed = recordedAccess(recorded, watchedBy(input));
  return recorded.flatMap((request, index) => {
    const access = needed[index];
    return access === undefined || isOwnLease(request, declared) ||
        isOwnRegistration(request, declared) ||
        isCovered(access, declared)
      ? []
      : [{ request, access }];
  });
}

/**
 * Whether a recorded request is for the operator's own Lease. Its right is
 * granted in the namespace of the deployment, not in that of the recording.
 */
function isOwnLease(
  { verb, group, resource }: RecordedRequest,
  access: readonly KindAccess[],
): boolean {
  return group === Lease.group && resource === Lease.plural &&
    access.some(({ kind, verbs }) =>
      sameKind(kind, Lease) && verbs.some((one) => one === verb)
    );
}

/**
 * Whether a recorded request registers webhooks or policies of the operator, whose
 * names are those of the deployment and not of the recording.
 */
function isOwnRegistration(
  { verb, group, resource }: RecordedRequest,
  access: readonly KindAccess[],
): boolean {
  return access.some(({ kind, names, verbs }) =>
    names !== undefined && kind.group === group && group !== "" &&
    kind.plural === resource && verbs.some((one) => one === verb)
  );
}

/** Namespaces that any of the controllers watches. */
function watchedBy(
  { operators, namespace }: RolesInput,
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
  { operators, recorded = [] }: RolesInput,
): readonly string[] {
  const own = operators.flatMap(({ controllers }) =>
    controllers.map(({ kind }) => resourceOf(kind))
  );
  const known = ["events", "leases.coordination.k8s.io", ...own];
  return writtenResources(recorded).filter((name) => !known.includes(name));
}

/** Name of the resource of a kind, such as `deployments.apps`. */
export function resourceOf({ group, plural }: Kind): string {
  return group === "" ? `${plural}` : `${plural}.${group}`;
}

/** Verbs of requests that write objects. */
const WRITES: readonly string[] = ["create", "update", "patch"];

/**
 * Requests of the files of `--recorded`; undefined without the flag.
 *
 * @throws {UsageError} If one cannot be read or is not a record.
 */
export function recordedRequests(
  files: readonly string[],
): readonly RecordedRequest[] | undefined {
  try {
    return files.length === 0 ? undefined : files.flatMap(readRequests);
  } catch (error) {
    throw new UsageError((error as Error).message);
  }
}

export function recordedAccess(
  requests: readonly RecordedRequest[],
  watched: "all" | readonly string[],
): readonly KindAccess[] {
  const namespaced = new Set(
    requests.filter(({ namespace }) => namespace !== undefined).map(
      requestedResource,
    ),
  );
  return requests.map((request): KindAccess => {
    const { group, verb, namespace } = request;
    const [plural = "", subresource] = request.resource.split("/");
    const isNamespaced = namespaced.has(requestedResource(request));
    return {
      kind: untyped({
        group,
        version: "v1",
        kind: plural,
        plural,
        scope: isNamespaced ? "Namespaced" : "Cluster",
      }),
      verbs: [verb as AccessVerb],
      subresource,
      namespaces: watched === "all" || namespace === undefined
        ? "all"
        : namespace === ANY_WATCHED_NAMESPACE
        ? watched
        : [namespace],
    };
  });
}

/** Resources of requests that write objects, excluding subresources. */
export function writtenResources(
  requests: readonly RecordedRequest[],
): readonly string[] {
  return [
    ...new Set(
      requests.filter(({ verb, resource }) =>
        WRITES.includes(verb) && !resource.includes("/")
      ).map(requestedResource),
    ),
  ];
}

/** Text of recorded requests, with one line per resource. */
export function recordText(requests: readonly RecordedRequest[]): string {
  const verbs = new Map<string, Set<string>>();
  for (const request of requests) {
    const resource = requestedResource(request);
    verbs.set(resource, (verbs.get(resource) ?? new Set()).add(request.verb));
  }
  return [...verbs].sort(([a], [b]) => a < b ? -1 : 1)
    .map(([resource, seen]) =>
      `  ${resource}: ${[...seen].sort().join(", ")}\n`
    )
    .join("");
}

/** Resource with its group, such as `deployments.apps/status`. */
function requestedResource({ group, resource }: RecordedRequest): string {
  if (group === "") return resource;
  const [plural, subresource] = resource.split("/");
  return `${plural}.${group}${
    subresource === undefined ? "" : `/${subresource}`
  }`;
}
