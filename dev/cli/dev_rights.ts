import {
  type Client,
  type DiscoveredResource,
  type Kind,
  untyped,
  type UntypedObject,
} from "@coracle/operator/client";
import type { OperatorHandle } from "@coracle/operator/core";
import { type CrdManifest, crdManifest } from "@coracle/operator/crd";
import {
  isDefinedKind,
  isResolved,
  parseApiVersion,
} from "@coracle/operator/internal";
import { Namespace } from "@coracle/operator/kinds";
import {
  accountManifest,
  bindingManifest,
  type RbacManifest,
} from "../testing/rbac.ts";
import { neededVerbs } from "../testing/request_record.ts";
import type { AuditEvent } from "../apiserver/request_handler.ts";
import {
  managedKinds,
  operatorRoles,
  recordedRequests,
} from "./operator_manifests.ts";
import {
  describeOperators,
  type OperatorDescription,
} from "./operator_description.ts";

/** Namespace in which operators run. */
const NAMESPACE = "default";

/** Service account of the operators of `coracle dev`; plain data. */
export interface DevAccount {
  /** Name of the account and its roles. */
  readonly name: string;
  /** Whether the account has all rights. */
  readonly admin: boolean;
  /** Values of `--manages`. */
  readonly manages: readonly string[];
  /** Values of `--recorded`. */
  readonly recorded: readonly string[];
}

/** User name of a service account. */
export function userOf({ name }: DevAccount): string {
  return `system:serviceaccount:${NAMESPACE}:${name}`;
}

/**
 * Creates the service account and roles that `coracle manifests` prints, and the
 * namespaces that they are in.
 */
export async function grantRights(
  client: Client,
  operators: readonly OperatorHandle[],
  account: DevAccount,
): Promise<void> {
  const { name, admin, manages, recorded } = account;
  const manifests = admin ? everything(name) : operatorRoles({
    name,
    namespace: NAMESPACE,
    operators: await Promise.all(
      (await describeOperators(operators)).map((one) => resolved(client, one)),
    ),
    definitions: operators.flatMap(watchedDefinitions),
    managed: await managedKinds(manages),
    recorded: recordedRequests(recorded),
  });
  const namespaces = new Set(
    manifests.flatMap(({ metadata }) => metadata.namespace ?? []),
  );
  for (const name of namespaces) {
    await client.apply(Namespace, { metadata: { name } }, { force: true });
  }
  for (const manifest of manifests) {
    const { apiVersion, kind } = manifest;
    await client.apply(
      untyped({ ...parseApiVersion(apiVersion), kind }),
      manifest as object as UntypedObject,
      { force: true },
    );
  }
}

/** Definitions of the kinds of an operator, those of other clusters left out. */
function watchedDefinitions(
  { controllers }: OperatorHandle,
): readonly CrdManifest[] {
  return controllers.filter(({ clusters }) => clusters === undefined)
    .flatMap(({ kind, secondaryKinds, readOnlyKinds }) =>
      [kind, ...secondaryKinds, ...readOnlyKinds].filter(isDefinedKind)
    ).map((kind) => crdManifest(kind));
}

/** Description of an operator, reduced to kinds that the server serves. */
async function resolved(
  client: Client,
  { controllers, settings }: OperatorDescription,
): Promise<OperatorDescription> {
  const known = async (kinds: readonly Kind[]) => {
    const found = kinds.map((kind) =>
      isResolved(kind) ? kind : client.resolve(kind).catch(() => [])
    );
    return (await Promise.all(found)).flat();
  };
  const all = controllers.map(async (controller) => {
    // Its kinds are those of other clusters.
    if (controller.clusters !== undefined) return [controller];
    const { kind, secondaryKinds, readOnlyKinds } = controller;
    const own = await known([kind]);
    const others = {
      secondaryKinds: await known(secondaryKinds),
      readOnlyKinds: await known(readOnlyKinds),
    };
    return own.map((kind) => ({ ...controller, kind, ...others }));
  });
  return { controllers: (await Promise.all(all)).flat(), settings };
}

/** Service account with all rights. */
function everything(name: string): readonly RbacManifest[] {
  const account = { name, namespace: NAMESPACE };
  return [
    accountManifest(account),
    bindingManifest({ name: `${name}-admin` }, "cluster-admin", account),
  ];
}

/**
 * Audit function that reports each right that the operator lacks once, with the
 * rule that grants it. For a resource that the server does not serve, it
 * reports no rule.
 */
export function missingRights(
  account: DevAccount,
  { say, resources }: {
    readonly say: (text: string) => void;
    /** Function that lists the resources of the server. */
    readonly resources: () => Promise<readonly DiscoveredResource[]>;
  },
): (event: AuditEvent) => void {
  const reported = new Set<string>();
  const user = userOf(account);
  const report = async (event: AuditEvent) => {
    const { verb, group, subresource, namespace } = event;
    const resource = subresource === ""
      ? event.resource
      : `${event.resource}/${subresource}`;
    const key = JSON.stringify([verb, group, resource]);
    if (resource === "" || reported.has(key)) return;
    reported.add(key);
    const place = namespace === "" ? "" : ` in namespace ${namespace}`;
    const start = `The operator may not ${verb} ${resource}${place}.`;
    const isServed = (await resources()).some((one) =>
      one.group === group && one.plural === event.resource &&
      (subresource === "" || one.subresources.includes(subresource))
    );
    say(
      isServed
        ? `${start} Its role needs this rule:\n\n` +
          `  - apiGroups: [${JSON.stringify(group)}]\n` +
          `    resources: [${JSON.stringify(resource)}]\n` +
          `    verbs: ${
            JSON.stringify(neededVerbs({ verb, group, resource }, event.status))
          }\n\n` +
          "Add the kind to owns or --manages, or record a run with --record FILE and pass --recorded FILE,\nhere and to coracle manifests. --admin runs the operator with all rights.\n\n"
        : `${start} No rule helps: the server does not serve it.\n\n`,
    );
  };
  return (event) => {
    if (event.status !== 403 || event.user !== user) return;
    // The server may stop before it has answered.
    report(event).catch(() => {});
  };
}
