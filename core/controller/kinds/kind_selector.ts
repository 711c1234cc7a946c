import type { ResolvedKind } from "../../api/kind.ts";
import type { UntypedObject } from "../../api/object.ts";
import {
  checkOption,
  checkOptions,
  type OptionRules,
} from "../../api/options.ts";
import {
  SELECTION_OPTIONS,
  type SelectionOptions,
} from "../../api/selection.ts";
import { compareVersions } from "../../api/version_order.ts";
import type { DiscoveredResource } from "../../client/discovery.ts";
import type { Namespaces } from "../namespaces.ts";
import { crdCondition, type CrdObject } from "../../crd/crd_object.ts";

/**
 * Selection of kinds that the server serves and whose objects can be listed and
 * watched. A kind must match every part that is set; without any, all match.
 */
export interface KindSelector {
  /** API groups, such as `"apps"`, or all below a domain: `"*.crossplane.io"`. */
  readonly groups?: readonly string[] | undefined;
  /** Categories as for kubectl, such as `"managed"`; one of them is enough. */
  readonly categories?: readonly string[] | undefined;
  /**
   * Label selector of CustomResourceDefinitions, such as
   * `"provider in (aws, gcp)"`. Kinds without a definition do not match it.
   */
  readonly labelSelector?: SelectionOptions["labelSelector"];
}

/** Kinds that a controller follows, and what it does with their objects. */
export interface WatchedSelection {
  readonly selector: KindSelector;
  /** Whether a reconciler writes the objects. */
  readonly isReconciled: boolean;
  /** Namespaces of the objects; undefined for those of the operator. */
  readonly namespaces: Namespaces | undefined;
}

const RULES: OptionRules<KindSelector> = {
  groups: { type: "strings?", check: checkGroups },
  categories: "strings?",
  labelSelector: SELECTION_OPTIONS.labelSelector,
};

const GROUP = /^(?:|(?:\*\.)?[a-z0-9]([-a-z0-9.]*[a-z0-9])?)$/;

function checkGroups(groups: readonly string[], subject: string): void {
  for (const group of groups) {
    // The core group has no name; some tools call it so.
    if (GROUP.test(group) && group !== "core") continue;
    throw new TypeError(
      `Cannot read the options of ${subject}: a group is a domain such as "apps" or "*.example.com", or "" for the core group: received ${
        JSON.stringify(group)
      }`,
    );
  }
}

/**
 * Checks the selector of kinds.
 *
 * @throws {TypeError | RangeError | SyntaxError} If it is not valid.
 */
export function checkKindSelector(
  selector: KindSelector,
  subject: string,
): void {
  checkOption(selector, "object", { name: "selector", subject });
  checkOptions(selector, RULES, `${subject}, selector`);
}

/** Whether a selector, apart from its labels, selects a kind. */
function isSelected(
  { groups, categories }: KindSelector,
  kind: {
    readonly group: string;
    readonly categories?: readonly string[] | undefined;
  },
): boolean {
  return (groups === undefined ||
    groups.some((group) =>
      group.startsWith("*.")
        ? kind.group.endsWith(group.slice(1))
        : kind.group === group
    )) &&
    (categories === undefined ||
      categories.some((one) => kind.categories?.includes(one)));
}

/**
 * Kind of a definition, in the version that is preferred among those that the
 * server serves; undefined if it serves none, or the selector does not select it.
 *
 * @param current Version to keep while it is served.
 */
export function kindOfDefinition(
  crd: CrdObject,
  selector: KindSelector,
  current: string | undefined,
): ResolvedKind<UntypedObject> | undefined {
  if (crdCondition(crd, "Established")?.status !== "True") return undefined;
  const { group, scope, versions } = crd.spec;
  const { kind, plural, categories } = crd.status?.acceptedNames ??
    crd.spec.names;
  if (!isSelected(selector, { group, categories })) return undefined;
  const served = versions.filter((one) => one.served).map(({ name }) => name);
  const version = current !== undefined && served.includes(current)
    ? current
    : served.sort(compareVersions)[0];
  return version === undefined
    ? undefined
    : Object.freeze({ group, version, kind, plural, scope });
}

/**
 * Kinds of a discovery that a selector selects, each in the first version, which the
 * server prefers.
 *
 * @param isDefined Whether there is a definition of a name, `plural.group`.
 */
export function discoveredKinds(
  resources: readonly DiscoveredResource[],
  selector: KindSelector,
  isDefined: (name: string) => boolean,
): readonly ResolvedKind<UntypedObject>[] {
  const kinds = new Map<string, ResolvedKind<UntypedObject>>();
  for (const resource of resources) {
    const { group, version, kind, plural, scope, verbs } = resource;
    const name = `${plural}.${group}`;
    if (
      kinds.has(name) || isDefined(name) || !isSelected(selector, resource) ||
      !verbs.includes("list") || !verbs.includes("watch")
    ) continue;
    kinds.set(name, Object.freeze({ group, version, kind, plural, scope }));
  }
  return [...kinds.values()];
}
