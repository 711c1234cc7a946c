/**
 * Lifecycles of the built-in kinds: the fields that the registry strategies of
 * kube-apiserver set, keep and allocate on create, update and delete. Most are
 * rules (`tools/kubernetes/data/rules/lifecycles.rules`). They see other objects
 * only through the `HookContext` and must not import storage, requests or HTTP.
 *
 * @module
 */
import { timestamp, type UntypedObject } from "@coracle/operator/client";
import { jsonEquals } from "@coracle/operator/internal";
import type { Container, Pod } from "@coracle/operator/kinds";
import { FieldSet } from "../../merge/field_set.ts";
import type { HookContext, ResourceDefinition } from "../../registry.ts";
import { userInfo } from "../../request/user.ts";
import { FieldPath } from "../../validation/field_path.ts";
import { RuleText } from "../../validation/rules/rule_text.ts";
import { Scope } from "../../validation/rules/scope.ts";
import { LIFECYCLES_TEXT } from "../../validation/rules/rule_data.ts";
import { DEFAULT_FUNCTIONS, defaultLine } from "../defaults/default_words.ts";
import { FUNCTIONS } from "../validation/rule_functions.ts";

/** Lifecycle hooks of one kind, besides those of all kinds (upstream's registry strategy). */
export type Lifecycle = Pick<
  ResourceDefinition,
  "prepareForCreate" | "prepareForUpdate" | "gracePeriod" | "resetFields"
>;

/** Rules of lifecycles, such as `create.pods`. */
export const LIFECYCLE_RULES: RuleText = new RuleText({
  text: LIFECYCLES_TEXT,
  compileLine: defaultLine,
  functions: {
    ...FUNCTIONS,
    ...DEFAULT_FUNCTIONS,
    extended: Object.assign,
    namesOnly: (list: readonly { name?: string }[]) =>
      list.map(({ name }) => ({ name })),
    number: (text: unknown) => Number(text) || 0,
    userInfo,
  },
});

const NO_PATH: FieldPath = new FieldPath("", []);

function run(
  block: string,
  object: UntypedObject,
  { subresource, user, now }: HookContext,
  live?: UntypedObject,
): void {
  const rules = LIFECYCLE_RULES.get(block);
  if (rules === undefined) return;
  const scope = new Scope(object, NO_PATH).set("$subresource", subresource)
    .set("$user", user).set("$now", timestamp(now)).set("$live", live);
  rules(scope);
}

/** Fields that a write to the status resets, where they are not only the spec. */
const STATUS_RESETS: Readonly<Record<string, FieldSet>> = {
  "deployments.apps": FieldSet.of([["f:spec"], ["f:metadata", "f:labels"]]),
  pods: FieldSet.of([
    ["f:spec"],
    ["f:metadata", "f:deletionTimestamp"],
    ["f:metadata", "f:ownerReferences"],
  ]),
};

/**
 * Lifecycle of a resource by its rules.
 *
 * @param resource Resource name such as `deployments.apps` or `pods`.
 * @param counted Fields whose changes the generation counts, as dotted paths.
 */
export function lifecycleOf(
  resource: string,
  counted: readonly string[],
): Lifecycle {
  const [create, update] = [`create.${resource}`, `update.${resource}`];
  const isPods = resource === "pods";
  const statusReset = STATUS_RESETS[resource];
  return {
    prepareForCreate: (object, context) => run(create, object, context),
    prepareForUpdate(object, live, context): void {
      const { subresource } = context;
      if (isPods && subresource === "resize") {
        keepResize(object as unknown as Pod, live as unknown as Pod);
      }
      run(update, object, context, live);
      if (subresource === "status") return;
      const isChanged = counted.some((field) =>
        !jsonEquals(readField(object, field), readField(live, field))
      );
      if (!isChanged) return;
      object.metadata.generation = (live.metadata.generation ?? 0) + 1;
    },
    ...(statusReset && {
      resetFields: (subresource) =>
        subresource === "status" ? statusReset : undefined,
    }),
    ...(isPods && { gracePeriod: podGracePeriod }),
  };
}

function readField(object: UntypedObject, path: string): unknown {
  let value: unknown = object;
  for (const name of path.split(".")) {
    value = (value as Record<string, unknown> | undefined)?.[name];
  }
  // The server treats an absent and an empty map as equal.
  const isEmpty = typeof value === "object" && value !== null &&
    Object.keys(value).length === 0;
  return isEmpty ? undefined : value;
}

/** Grace period of a Pod: none without a node, or after it has terminated. */
function podGracePeriod(
  object: UntypedObject,
  requested: number | undefined,
): number {
  const { spec, status } = object as unknown as Pod;
  const isOver = status?.phase === "Failed" || status?.phase === "Succeeded";
  if (!spec.nodeName || isOver) return 0;
  const period = Number(requested ?? spec.terminationGracePeriodSeconds ?? 30);
  return period < 0 ? 1 : period;
}

type ContainerList = "containers" | "initContainers";

const LISTS: readonly ContainerList[] = ["containers", "initContainers"];
/** Metadata that a client may not change by the subresource `resize`. */
const KEPT = [
  "labels",
  "annotations",
  "finalizers",
  "ownerReferences",
  "deletionTimestamp",
] as const;

/** Whether the containers of a list have the same names in the same order. */
function sameNames(pod: Pod, live: Pod, list: ContainerList): boolean {
  const names = ({ spec }: Pod) => spec[list]?.map(({ name }) => name) ?? [];
  return jsonEquals(names(pod), names(live));
}

/**
 * Drops all changes that an update of `pods/resize` must not make, which are
 * all but those of resources and resize policies.
 */
function keepResize(pod: Pod, live: Pod): void {
  const count = ({ spec }: Pod) => LISTS.map((list) => spec[list]?.length ?? 0);
  // What is wrong with the containers is reported by the validation.
  if (!jsonEquals(count(pod), count(live))) return;
  const spec: Pod["spec"] = { ...live.spec };
  if (pod.spec.resources) spec.resources = pod.spec.resources;
  else delete spec.resources;
  for (const list of LISTS) {
    const containers = pod.spec[list];
    if (containers === undefined) continue;
    spec[list] = sameNames(pod, live, list)
      ? containers.map(({ resources, resizePolicy }, index) => ({
        ...live.spec[list]?.[index] as Container,
        ...resources === undefined ? {} : { resources },
        ...resizePolicy === undefined ? {} : { resizePolicy },
      }))
      : containers;
  }
  pod.spec = spec;
  if (live.status) pod.status = live.status;
  const metadata = pod.metadata as unknown as Record<string, unknown>;
  for (const name of KEPT) {
    const value = live.metadata[name];
    if (value === undefined) delete metadata[name];
    else metadata[name] = value;
  }
}
