import type { Kind, ResolvedKind } from "@coracle/operator/client";
import type { OperatorHandle } from "@coracle/operator/core";
import { isResolved } from "@coracle/operator/internal";
import { hasStatus } from "../testing/operator_access.ts";
import { plainPolicy } from "./policies.ts";

/** Facts about an operator that tools need; plain data. */
export type OperatorDescription = Pick<
  OperatorHandle,
  "controllers" | "settings"
>;

/** Describes operators as plain data, with the plurals of built-in kinds. */
export async function describeOperators(
  operators: readonly OperatorHandle[],
): Promise<readonly OperatorDescription[]> {
  const builtIn = await builtInKinds();
  return operators.map(({ controllers, settings }) => ({
    controllers: controllers.map((one) => plainController(one, builtIn)),
    settings: plainSettings(settings, builtIn),
  }));
}

type Controller = OperatorHandle["controllers"][number];

function plainController(
  controller: Controller,
  builtIn: readonly ResolvedKind[],
): Controller {
  const { name, kind, isJob, stateKind, secondaryKinds, readOnlyKinds } =
    controller;
  const { clusters, listens, watchedSelection: selection } = controller;
  const reads = clusters?.reads;
  const { settings } = controller;
  const { install, migrateStorage, namespaces, usesFinalizer } = settings;
  const plain = (given: Kind) => plainKind(given, builtIn);
  return {
    name,
    kind: plain(kind),
    isJob,
    stateKind: stateKind && { ...stateKind, kind: plain(stateKind.kind) },
    clusters: clusters &&
      { reads: reads && { ...reads, kind: plain(reads.kind) } },
    watchedSelection: selection && {
      ...selection,
      selector: { groups: selection.selector.groups },
    },
    secondaryKinds: secondaryKinds.map(plain),
    readOnlyKinds: readOnlyKinds.map(plain),
    listens: listens?.map(({ name, port, host }) => ({ name, port, host })),
    settings: {
      install,
      migrateStorage,
      namespaces,
      usesFinalizer,
      hasStatus: hasStatus(kind),
    },
  };
}

/** Names of a kind, from those that are built in if it lacks some. */
function plainKind(given: Kind, builtIn: readonly ResolvedKind[]): Kind {
  const { group, version, kind, plural, scope } = isResolved(given)
    ? given
    : builtIn.find((known) =>
      known.kind === given.kind && known.group === given.group
    ) ?? given;
  return { group, version, kind, plural, scope };
}

function plainSettings(
  settings: OperatorHandle["settings"],
  builtIn: readonly ResolvedKind[],
): OperatorHandle["settings"] {
  const { namespaces, leaderElection, sharding, probes, shutdownGrace } =
    settings;
  const { webhooks, programs } = settings;
  const lease = (options: typeof leaderElection) =>
    options && { name: options.name, namespace: options.namespace };
  return {
    namespaces,
    leaderElection: lease(leaderElection),
    sharding: lease(sharding),
    shutdownGrace,
    programs,
    cache: settings.cache?.snapshot &&
      { snapshot: { path: settings.cache.snapshot.path } },
    policies: settings.policies?.map(({ params, ...policy }) => ({
      ...plainPolicy(policy),
      params: params && plainKind(params, builtIn),
    })),
    webhooks: webhooks && !("serve" in webhooks)
      ? {
        port: webhooks.port,
        host: webhooks.host,
        service: webhooks.service,
        name: webhooks.name,
        certificates: webhooks.certificates,
      }
      : undefined,
    record: settings.record && { path: settings.record.path },
    probes: probes && {
      port: probes.port,
      host: probes.host,
      debug: probes.debug,
      metrics: probes.metrics,
    },
  };
}

/** All kinds of `@coracle/operator/kinds`. */
export async function builtInKinds(): Promise<readonly ResolvedKind[]> {
  const exports = await import("@coracle/operator/kinds");
  return Object.values(exports).filter((value): value is ResolvedKind =>
    typeof value === "object" && "kind" in value && isResolved(value as Kind)
  );
}
