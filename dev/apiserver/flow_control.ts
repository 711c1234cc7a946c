import { createHash } from "node:crypto";
import {
  type Clock,
  timestamp,
  type UntypedObject,
} from "@coracle/operator/client";
import { FLOW_OBJECTS } from "./builtin/data/flow_objects.ts";
import type { GroupResource } from "./registry.ts";
import type { RequestInfo } from "./request/request_info.ts";
import type { User } from "./request/user.ts";
import type { Resources } from "./resources.ts";
import type { Store } from "./storage/store.ts";
import type { StoredObject } from "./storage/stored_object.ts";
import { has, hasPath } from "./access/policy_rules.ts";

const GROUP = "flowcontrol.apiserver.k8s.io";
const SCHEMAS: GroupResource = { group: GROUP, plural: "flowschemas" };
const LEVELS: GroupResource = {
  group: GROUP,
  plural: "prioritylevelconfigurations",
};
const COMPONENTS: GroupResource = { group: "", plural: "componentstatuses" };

type Spec = Record<string, unknown>;

/** Objects without kind and metadata, by name. */
type Bodies = Readonly<Record<string, Spec>>;

/** Specs of the objects; shared by all servers of the process. */
let initial: Readonly<Record<"levels" | "schemas", Bodies>> | undefined;

function specs(kind: "levels" | "schemas"): [name: string, spec: Spec][] {
  initial ??= JSON.parse(FLOW_OBJECTS) as NonNullable<typeof initial>;
  return Object.entries(initial[kind]);
}

function levelBodies(): Bodies {
  return Object.fromEntries(
    specs("levels").map(([name, spec]) => [name, { spec, status: {} }]),
  );
}

function schemaBodies(now: number): Bodies {
  return Object.fromEntries(
    specs("schemas").map(([name, spec]) => {
      const { priorityLevelConfiguration: level } = spec as unknown as FlowSpec;
      return [name, { spec, status: dangling(level.name, now, true) }];
    }),
  );
}

/** Components whose status is shown, without a scheduler. */
const COMPONENT_BODIES: Bodies = {
  "controller-manager": healthy("True", "ok"),
  scheduler: healthy(
    "False",
    'Get "https://127.0.0.1:10259/healthz": dial tcp 127.0.0.1:10259: connect: connection refused',
  ),
  "etcd-0": healthy("True", "ok"),
};

function healthy(status: string, message: string): Spec {
  return { conditions: [{ type: "Healthy", status, message }] };
}

/** Condition `Dangling` of a flow schema, by whether its priority level exists. */
function dangling(level: string, now: number, exists: boolean): Spec {
  const text =
    `This FlowSchema references the PriorityLevelConfiguration object named ${
      JSON.stringify(level)
    } `;
  return {
    conditions: [{
      type: "Dangling",
      status: exists ? "False" : "True",
      lastTransitionTime: timestamp(now),
      reason: exists ? "Found" : "NotFound",
      message: `${text}${
        exists ? "and it exists" : "but there is no such object"
      }`,
    }],
  };
}

/** Number of requests that kube-apiserver serves concurrently by default. */
const SEATS = 600;

interface LevelSpec {
  readonly limited?: { readonly nominalConcurrencyShares?: number };
  readonly exempt?: { readonly nominalConcurrencyShares?: number };
}

interface FlowContext {
  readonly store: Store;
  readonly resources: Resources;
  readonly clock: Clock;
}

interface Flow {
  readonly headers: Readonly<Record<string, string>>;
  matches(user: User, verb: string, info: RequestInfo): boolean;
}

/**
 * Objects of priority and fairness, which exist from the start and are created
 * when first needed, and the flow of each request. Requests are neither limited
 * nor queued.
 */
export class FlowControl {
  readonly #context: FlowContext;
  #flows: readonly Flow[] | undefined;
  #provided = false;

  constructor(context: FlowContext) {
    this.#context = context;
    context.store.listen((change, { resource }) => {
      if (resource.group !== GROUP) return;
      this.#flows = undefined;
      if (resource.plural === SCHEMAS.plural) this.#observe(change.object);
    });
  }

  /** Creates the objects of a resource that exist from the start of a server. */
  provide({ group, plural }: GroupResource): void {
    if (group === GROUP) this.#provideFlows();
    else if (plural === COMPONENTS.plural && group === "") {
      this.#fill(COMPONENTS, COMPONENT_BODIES);
    }
  }

  /** Number of seats of each priority level: its share of {@linkcode SEATS}. */
  seats(): readonly (readonly [level: string, seats: number])[] {
    const shares = this.#objects(LEVELS, levelBodies).map(
      ({ metadata: { name }, spec }): [string, number] => {
        const { limited, exempt } = spec as LevelSpec;
        const { nominalConcurrencyShares: some } = limited ?? exempt ?? {};
        return [name, some ?? (limited ? 30 : 0)];
      },
    );
    const total = shares.reduce((sum, [, some]) => sum + some, 0);
    return shares.map((
      [name, some],
    ) => [name, Math.ceil(SEATS * some / total)]);
  }

  /** Headers that name the flow schema and the priority level of a request. */
  headers(
    user: User,
    verb: string,
    info: RequestInfo,
  ): Readonly<Record<string, string>> {
    this.#flows ??= this.#readFlows();
    const flow = this.#flows.find((flow) => flow.matches(user, verb, info));
    return flow?.headers ?? {};
  }

  #provideFlows(): void {
    if (this.#provided) return;
    this.#provided = true;
    this.#fill(LEVELS, levelBodies());
    this.#fill(SCHEMAS, schemaBodies(this.#context.clock.wallTime()));
  }

  #fill(resource: GroupResource, bodies: Bodies): void {
    const { store, resources, clock } = this.#context;
    const definition = resources.find(resource.group, resource.plural);
    if (definition === undefined) return;
    const { kind, storageVersion: version, group } = definition;
    for (const [name, body] of Object.entries(bodies)) {
      if (store.collection(resource).get(name) !== undefined) continue;
      store.put(definition, {
        kind,
        apiVersion: group === "" ? version : `${group}/${version}`,
        metadata: {
          name,
          uid: this.#uidOf(resource, name),
          creationTimestamp: timestamp(clock.wallTime()),
          ...(group === "" ? {} : {
            generation: 1,
            annotations: { "apf.kubernetes.io/autoupdate-spec": "true" },
          }),
        },
        ...body,
      });
    }
  }

  /** UID of an object that is created when needed; it differs between servers. */
  #uidOf({ plural }: GroupResource, name: string): string {
    const { store } = this.#context;
    const namespaces = store.collection({ group: "", plural: "namespaces" });
    const { uid = "" } = namespaces.get("kube-system") ?? {};
    const hash = createHash("sha256").update(`${uid} ${plural} ${name}`);
    const text = hash.digest("hex");
    const parts = [0, 8, 12, 16, 20, 32];
    return parts.slice(1).map((end, index) => text.slice(parts[index], end))
      .join("-");
  }

  /** Sets the condition of a new flow schema, like its controller. */
  #observe({ name }: StoredObject): void {
    queueMicrotask(() => {
      const { store, clock } = this.#context;
      const stored = store.collection(SCHEMAS).get(name);
      const object = stored?.parse();
      const status = object?.status as { conditions?: unknown[] } | undefined;
      if (object === undefined || status?.conditions?.length) return;
      const level = levelOf(object);
      const exists = store.collection(LEVELS).get(level) !== undefined;
      object.status = dangling(level, clock.wallTime(), exists);
      if (stored) store.put(stored.definition, object);
    });
  }

  /** Objects of a resource, including those not created yet. */
  #objects(resource: GroupResource, initial: () => Bodies): UntypedObject[] {
    const { store } = this.#context;
    return this.#provided
      ? [...store.collection(resource).values()].map((one) => one.parse())
      : Object.entries(initial()).map(([name, body]) => ({
        metadata: { name, uid: this.#uidOf(resource, name) },
        ...body,
      } as UntypedObject));
  }

  #readFlows(): Flow[] {
    const levels = new Map(
      this.#objects(LEVELS, levelBodies)
        .map(({ metadata: { name, uid = "" } }) => [name, uid]),
    );
    return this.#objects(SCHEMAS, () => schemaBodies(0))
      .sort((a, b) => precedence(a) - precedence(b))
      .flatMap((schema): Flow[] => {
        const level = levels.get(levelOf(schema));
        if (level === undefined) return [];
        const { rules = [] } = schema.spec as FlowSpec;
        return [{
          headers: {
            "x-kubernetes-pf-flowschema-uid": schema.metadata.uid ?? "",
            "x-kubernetes-pf-prioritylevel-uid": level,
          },
          matches: (user, verb, info) =>
            rules.some((rule) =>
              rule.subjects.some((subject) => isSubject(subject, user)) &&
              allows(rule, verb, info)
            ),
        }];
      });
  }
}

/** Fields of the spec of a flow schema. */
interface FlowSpec {
  readonly matchingPrecedence: number;
  readonly priorityLevelConfiguration: { readonly name: string };
  readonly rules?: readonly Rule[];
}

function precedence({ spec }: UntypedObject): number {
  return (spec as FlowSpec).matchingPrecedence;
}

function levelOf({ spec }: UntypedObject): string {
  return (spec as FlowSpec).priorityLevelConfiguration.name;
}

interface Subject {
  readonly user?: { readonly name: string };
  readonly group?: { readonly name: string };
  readonly serviceAccount?: {
    readonly namespace: string;
    readonly name: string;
  };
}

interface Rule {
  readonly subjects: readonly Subject[];
  readonly resourceRules?: readonly {
    readonly verbs: readonly string[];
    readonly apiGroups: readonly string[];
    readonly resources: readonly string[];
    readonly clusterScope?: boolean;
    readonly namespaces?: readonly string[];
  }[];
  readonly nonResourceRules?: readonly {
    readonly verbs: readonly string[];
    readonly nonResourceURLs: readonly string[];
  }[];
}

function isSubject(
  { user: one, group, serviceAccount }: Subject,
  { name, groups }: User,
): boolean {
  if (one) return one.name === "*" || one.name === name;
  if (group) return group.name === "*" || groups.includes(group.name);
  if (serviceAccount === undefined) return false;
  const prefix = `system:serviceaccount:${serviceAccount.namespace}:`;
  return serviceAccount.name === "*"
    ? name.startsWith(prefix)
    : name === `${prefix}${serviceAccount.name}`;
}

function allows(rule: Rule, verb: string, { resource, path }: RequestInfo) {
  if (resource === undefined) {
    return (rule.nonResourceRules ?? []).some(({ verbs, nonResourceURLs }) =>
      has(verbs, verb) && hasPath(nonResourceURLs, path)
    );
  }
  const { group, plural, subresource, namespace } = resource;
  const name = subresource ? `${plural}/${subresource}` : plural;
  return (rule.resourceRules ?? []).some((one) =>
    has(one.verbs, verb) && has(one.apiGroups, group) &&
    has(one.resources, name) &&
    (namespace === undefined
      ? one.clusterScope === true
      : has(one.namespaces, namespace))
  );
}
